"""Figures of the note on theory that no other table has: twelve agents with random losses listed.

``certificates``: attacks, with games that are solved as by default and more exactly: the sum S of
certificates, regret and its bound from variation, what that would be if S were 0, the share of the
regret that one action has, mean loss, time.

``assignments``: gains' weights alone, and with a potential over assignments beside them: bounds
from variation and a priori, regret, mean loss.

``delay``: regret and mean loss where outcomes arrive d rounds late.

``intervals``: the worst regret over windows of 500 rounds, and mean loss, with and without events
of intervals.

``entry``: regret from the first round on, from the middle on, and in the middle half, with the
bound from variation of such a stay, and mean loss.

``distance``: random losses and joint distributions of 2 to 4 actions and outcomes: exploitability
over swap regret, and how far it is from the surplus of the payoff that the dual names.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from time import process_time
from typing import Any

import numpy as np

from paper.harness import Row, Table
from paper.listed import Crowd, random_losses
from paper.trust import ACTIONS, ATTACKS, SIZE, TRUSTED
from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.delayed import Delayed
from regretless.forecaster.events.base import Intervals
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.unbiased import LATE_TOLERANCE
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.exploitability.commitment import leader_surplus, swap_regret_of
from regretless.market.exploitability.of_joint import worst_leader

ROUNDING = 1e-9
PERIOD = WINDOW = 500  # rounds
CORNERS = np.array(list(product([0.0, 1.0], repeat=SIZE)))


class Exact(Box):
    """Solves the game of round t to ``late`` / t where that is less than what is asked."""

    def __init__(self, late: float) -> None:
        super().__init__(SIZE)
        self.late, self.time = late, 0

    def solve(self, rows: Any, signed_weights: Array, *, tolerance: float, **told: Any) -> Any:
        """Solve it."""
        self.time += 1
        limit = min(tolerance, self.late / self.time)
        return super().solve(rows, signed_weights, tolerance=limit, **told)


def crowd_of(seed: int) -> tuple[Crowd, ProtectedLosses]:
    """Draw the agents."""
    shape = np.empty((TRUSTED, ACTIONS, SIZE))
    crowd = Crowd(*random_losses(shape, np.random.default_rng(seed), count=TRUSTED))
    return crowd, ProtectedLosses(crowd.offset, crowd.weights)


def answer(name: str, seed: int) -> Callable[[int, Crowd, Any], Array]:
    """Return what chooses s(y)."""
    if name in ATTACKS:
        return lambda _, crowd, mixture: ATTACKS[name](crowd, mixture, CORNERS)
    rng = stream(seed, "statements", name)
    means = rng.random((2, SIZE))
    length = PERIOD if name == "switching" else np.inf
    return lambda t, *_: (rng.random(SIZE) < means[int(t // length) % 2]).astype(float)


def play(player: Any, crowd: Crowd, chooses: Any, rounds: int) -> Iterator[tuple[int, float]]:
    """Play; yield after every round how many there were, and processor time so far."""
    spent = 0.0
    for t in range(rounds):
        start = process_time()
        mixture = player.mixture()
        spent += process_time() - start
        truth = chooses(t, crowd, mixture)
        crowd.add(crowd.strategies(mixture), truth)
        start = process_time()
        player.update(truth)
        spent += process_time() - start
        yield t + 1, spent


def solved(instance: tuple[str, float], rounds: int, seed: int) -> Iterator[Row]:
    """Play an attack, with games solved to ``late`` / t."""
    (attack, late), (crowd, listed) = instance, crowd_of(seed)
    events = Assignments([listed])
    player = UnbiasedPrediction(events, Exact(late))
    *_, (_, spent) = play(player, crowd, answer(attack, seed), rounds)
    exact = player.known_bound().with_inputs(certificate_sum=0.0)
    sums = crowd.regret()
    yield {
        "attack": attack,
        "tolerance": f"{late:g} / t",
        "S": player.certificate_sum,
        "regret": sums.max() / rounds,
        "variation": player.from_variation(listed).max() / rounds,
        "if S = 0": events.from_variation(exact, listed).max() / rounds,
        "of one action": crowd.sums[sums.argmax()].max() / sums.max(),
        "loss": crowd.cost.mean() / rounds,
        "ms": 1e3 * spent / rounds,
    }


WAYS: dict[str, Callable[[ProtectedLosses], Any]] = {
    "weights alone": lambda listed: GainEvents([listed]),
    "with assignments": lambda listed: Assignments([listed]),
}
OPPONENTS = ("against the mean", "iid", "switching", "hunter of the worst")


def assigned(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play an opponent with a kind of weights."""
    (opponent, way), (crowd, listed) = instance, crowd_of(seed)
    player = UnbiasedPrediction(WAYS[way](listed))
    deque(play(player, crowd, answer(opponent, seed), rounds), 0)
    row: Row = {"opponent": opponent, "weights": way, "regret": crowd.regret().max() / rounds}
    row["variation"] = player.from_variation(listed).max() / rounds
    row["bound"] = player.beforehand(rounds).a_priori(listed.weights).max()
    yield row | {"loss": crowd.cost.mean() / rounds}


def delayed(late: int, rounds: int, seed: int) -> Iterator[Row]:
    """Play outcomes that are far from the mean prediction and known late."""
    crowd, listed = crowd_of(seed)
    player = Delayed(lambda: UnbiasedPrediction(VectorEvents([listed])), late)
    deque(play(player, crowd, answer("against the mean", seed), rounds), 0)
    row = {"rounds late": late, "regret": crowd.regret().max() / rounds}
    yield row | {"loss": crowd.cost.mean() / rounds}


def windows(instance: tuple[str, bool], rounds: int, seed: int) -> Iterator[Row]:
    """Measure the worst window."""
    (opponent, short), (crowd, listed) = instance, crowd_of(seed)
    make = partial(VectorEvents, [listed])
    player = UnbiasedPrediction(Intervals(make, rounds=rounds) if short else make())
    sums = [crowd.sums.copy()]
    for t, _ in play(player, crowd, answer(opponent, seed), rounds):
        if t % (WINDOW // 10) == 0:
            sums.append(crowd.sums.copy())
    stretches = np.array(sums[10:]) - np.array(sums[:-10])
    worst = stretches.max(3).sum(2).max() / WINDOW
    row = {"opponent": opponent, "intervals": short, "worst window": worst}
    row["regret"] = crowd.regret().max() / rounds
    yield row | {"loss": crowd.cost.mean() / rounds}


def stays(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Compare the regret of stays with its bound."""
    half, quarter = rounds // 2, rounds // 4
    ends = {
        "all rounds": (0, rounds),
        "second half": (half, rounds),
        "middle half": (quarter, 3 * quarter),
    }
    crowd, listed = crowd_of(seed)
    player = UnbiasedPrediction(VectorEvents([listed]))
    every_loss = np.arange(TRUSTED)
    records = {
        name: player.follow(
            listed,
            every_loss,
            entered=np.full(TRUSTED, start),
            left=np.full(TRUSTED, end),
        )
        for name, (start, end) in ends.items()
    }
    sums, costs = {0: crowd.sums.copy()}, {0: 0.0}
    for t, __ in play(player, crowd, answer("against the mean", seed), rounds):
        if any(t in pair for pair in ends.values()):
            sums[t], costs[t] = crowd.sums.copy(), crowd.cost.mean()
    for name, (start, end) in ends.items():
        regret = (sums[end] - sums[start]).max(2).sum(1).max()
        bound = float(player.over_stays(records[name]).max())
        row = {"regret": regret, "variation": bound}
        row["loss"] = costs[end] - costs[start]
        yield {"there": name} | {key: value / (end - start) for key, value in row.items()}


def distances(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Draw as many games, and what was played in each."""
    rng = stream(seed, "statements", "distance")
    for __ in range(rounds):
        shape = tuple(rng.integers(2, 5, 2))
        loss = rng.random(shape)
        joint = rng.dirichlet(np.full(loss.size, 0.5)).reshape(shape)
        found, regret = worst_leader(joint, loss), swap_regret_of(joint, loss)
        gap = abs(found.value - leader_surplus(joint, found.payoff, loss))
        if regret > ROUNDING:
            yield {"games": "random", "over swap regret": found.value / regret, "gap": gap}


TABLES = {
    "certificates": Table(
        solved,
        ["attack", "tolerance"],
        lambda: list(
            product(
                ("hunter of the worst", "against the mean"), (LATE_TOLERANCE, LATE_TOLERANCE / 3)
            )
        ),
        20_000,
        2,
        {"regret": ["mean", "sem"], "loss": ["mean", "sem"]},
    ),
    "assignments": Table(
        assigned, ["opponent", "weights"], lambda: list(product(OPPONENTS, WAYS)), 2000, 2
    ),
    "delay": Table(delayed, ["rounds late"], lambda: (0, 10, 100), 4000, 1),
    "intervals": Table(
        windows,
        ["opponent", "intervals"],
        lambda: list(product(("switching", "against the mean"), (False, True))),
        4000,
        3,
    ),
    "entry": Table(stays, ["there"], rounds=2000, seeds=3),
    "distance": Table(
        distances,
        ["games"],
        rounds=1000,
        seeds=1,
        aggregations={"over swap regret": ["min", "median"], "gap": ["max"]},
        digits=17,
    ),
}
