"""Figures of the note on theory that no other table has.

``certificates``: twelve agents with listed losses, attacked for 20,000 rounds, with games that are
solved as by default and more exactly: the sum S of certificates, regret and its bound from
variation, what that would be if S were 0, how far the greatest gain goes and may go, in roots of
its variation, how much of the sum over actions is the greatest, mean loss, time.

``entry``: twelve agents against outcomes far from the mean prediction: regret from the first round
on, from the middle on, and in the middle half, with the bound from variation of such a stay.

``distance``: random losses and joint distributions of 2 to 4 actions and outcomes: exploitability
over swap regret, and how far it is from the surplus of the payoff that the dual names.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from time import process_time
from typing import Any

import numpy as np

from paper.harness import Row, Table
from paper.listed import Crowd, against_mean, random_losses
from paper.trust import ACTIONS, ATTACKS, SIZE, TRUSTED
from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.events.assignments import Assignments
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.tolerance import LATE
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.exploitability.commitment import leader_surplus, swap_regret_of
from regretless.market.exploitability.distance import worst_leader

ROUNDING = 1e-9
CORNERS = np.array(list(product([0.0, 1.0], repeat=SIZE)))


class Exact(Box):
    """Solves the game of round t to ``late`` / t where that is less than what is asked."""

    def __init__(self, late: float) -> None:
        super().__init__(SIZE)
        self.late, self.time = late, 0

    def solve(self, rows: Any, table: Array, *, tolerance: float, **told: Any) -> Any:
        """Solve it."""
        self.time += 1
        return super().solve(rows, table, tolerance=min(tolerance, self.late / self.time), **told)


def solved(instance: tuple[str, float], rounds: int, seed: int) -> Iterator[Row]:
    """Play an attack, with games solved to ``late`` / t."""
    attack, late = instance
    shape = np.empty((TRUSTED, ACTIONS, SIZE))
    crowd = Crowd(*random_losses(shape, np.random.default_rng(seed), count=TRUSTED))
    listed = ProtectedLosses(crowd.offset, crowd.weights)
    events = Assignments(GainEvents([listed]))
    player, spent = UnbiasedPrediction(events, Exact(late)), 0.0
    for _ in range(rounds):
        start = process_time()
        mixture = player.mixture()
        spent += process_time() - start
        truth = ATTACKS[attack](crowd, mixture, CORNERS)
        crowd.add(crowd.strategies(mixture), truth)
        start = process_time()
        player.update(truth)
        spent += process_time() - start
    bound = player.known_bound()
    sums = crowd.regret()
    worst = int(sums.argmax())
    parts = (crowd.sums[worst].max(1)) / sums[worst]
    yield {
        "attack": attack,
        "tolerance": f"{late:g} / t",
        "S": player.certificate_sum,
        "regret": sums.max() / rounds,
        "variation": player.from_variation(listed).max() / rounds,
        "if S = 0": events.from_variation(replace(bound, certificate_sum=0.0), listed).max()
        / rounds,
        "greatest action": parts.max(),
        "loss": crowd.cost.mean() / rounds,
        "ms": 1e3 * spent / rounds,
    }


def stays(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Compare the regret of stays with its bound."""
    ends = {
        "all rounds": (0, rounds),
        "second half": (rounds // 2, rounds),
        "middle half": (rounds // 4, 3 * rounds // 4),
    }
    shape = np.empty((TRUSTED, ACTIONS, SIZE))
    crowd = Crowd(*random_losses(shape, np.random.default_rng(seed), count=TRUSTED))
    listed, sums = ProtectedLosses(crowd.offset, crowd.weights), {0: crowd.sums.copy()}
    player, bounds = UnbiasedPrediction(VectorEvents([listed])), {0: 0.0}
    for t in range(1, rounds + 1):
        mixture = player.mixture()
        truth = against_mean(crowd, mixture, CORNERS)
        crowd.add(crowd.strategies(mixture), truth)
        player.update(truth)
        if any(t in pair for pair in ends.values()):
            sums[t] = crowd.sums.copy()
            bounds[t] = float(player.from_variation(listed).max())
    for name, (start, end) in ends.items():
        regret = (sums[end] - sums[start]).max(2).sum(1).max()
        told = {"regret": regret, "variation": bounds[end] + bounds[start]}
        yield {"there": name} | {key: value / (end - start) for key, value in told.items()}


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
        lambda: list(product(("hunter of the worst", "against the mean"), (LATE, LATE / 3))),
        20_000,
        3,
    ),
    "entry": Table(stays, ["there"], rounds=2000, seeds=3),
    "distance": Table(
        distances,
        ["games"],
        rounds=1000,
        seeds=1,
        instead={"over swap regret": ["min", "median"], "gap": ["max"]},
        digits=17,
    ),
}
