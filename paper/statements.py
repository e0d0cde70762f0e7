"""Figures of the note on theory that no other table has: twelve agents with random losses listed.

``certificates``: attacks, with games that are solved as by default and more exactly: the sum S of
certificates, regret and its bound from variation, what that would be if S were 0, the share of the
regret that one action has, mean loss, time.

``assignments``: gains' weights alone, and with a potential over assignments beside them: bounds
from variation and a priori, regret, mean loss.

``margins``: the bound from variation with and without what predictions promised, of the worst and
the median agent, beside regret and mean loss.

``delay``: regret and mean loss where outcomes arrive d rounds late.

``intervals``: the worst regret over windows of 500 rounds, and mean loss, with and without events
of intervals.

``entry``: regret from the first round on, from the middle on, and in the middle half, with the
bound from variation of such a stay, and mean loss.

``distance``: random losses and joint distributions of 2 to 4 actions and outcomes: exploitability
over swap regret, and how far it is from the surplus of the payoff that the dual names.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from paper.harness import Row, Table
from paper.listed import Crowd, Nature
from paper.trust import ATTACKED, ATTACKS, CORNERS, SIZE, random_crowd
from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.delayed import Delayed
from regretless.forecaster.events.base import Intervals
from regretless.forecaster.events.loss_events import Assignments, GainsOfRound
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.unbiased import LATE_TOLERANCE
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.exploitability.commitment import leader_surplus, swap_regret_of
from regretless.market.exploitability.of_joint import worst_leader
from regretless.market.records import Mixture

ROUNDING = 1e-9
PERIOD = 500  # rounds until what switches does so
WINDOW = 500  # rounds
STEP_OF_WINDOWS = WINDOW // 10  # rounds between the ends of two windows


class Exact(Box):
    """Solves the game of round t to ``late`` / t where that is less than what is asked."""

    def __init__(self, late: float) -> None:
        super().__init__(SIZE)
        self.late = late
        self.time = 0

    def solve(self, rows: Any, signed_weights: Array, *, tolerance: float, **options: Any) -> Any:
        """Solve it."""
        self.time += 1
        tolerance = min(tolerance, self.late / self.time)
        return super().solve(rows, signed_weights, tolerance=tolerance, **options)


def listed_crowd(seed: int) -> tuple[Crowd, ProtectedLosses]:
    """Draw the agents, whose losses are all protected."""
    crowd = random_crowd(seed)
    return crowd, ProtectedLosses(crowd.offset, crowd.weights)


def nature_of(name: str, seed: int) -> Nature:
    """Return what chooses s(y)."""
    if name in ATTACKS:
        attack = ATTACKS[name]
        return lambda _, crowd, mixture: attack(crowd, mixture, CORNERS)
    rng = stream(seed, "statements", name)
    means = rng.random((2, SIZE))

    def draw(round_index: int, _crowd: Crowd, _mixture: Mixture) -> Array:
        is_second = name == "switching" and round_index // PERIOD % 2 == 1
        return np.asarray(rng.random(SIZE) < means[int(is_second)], dtype=np.float64)

    return draw


def play(forecaster: Any, crowd: Crowd, nature: Nature, rounds: int) -> Iterator[tuple[int, float]]:
    """Play; yield after every round how many there were, and seconds of processor time so far."""
    seconds = 0.0
    for round_index in range(rounds):
        start = process_time()
        mixture = forecaster.mixture()
        seconds += process_time() - start
        truth = nature(round_index, crowd, mixture)
        crowd.add(crowd.strategies(mixture), truth)
        start = process_time()
        forecaster.update(truth)
        seconds += process_time() - start
        yield round_index + 1, seconds


def play_all(forecaster: Any, crowd: Crowd, nature: Nature, rounds: int) -> float:
    """Play all rounds; return seconds of processor time."""
    seconds = 0.0
    for _, seconds_so_far in play(forecaster, crowd, nature, rounds):
        seconds = seconds_so_far
    return seconds


def solved(instance: tuple[str, float], rounds: int, seed: int) -> Iterator[Row]:
    """Play an attack, with games solved to ``late`` / t."""
    attack, late = instance
    crowd, listed = listed_crowd(seed)
    events = Assignments([listed])
    forecaster = UnbiasedPrediction(events, Exact(late))
    seconds = play_all(forecaster, crowd, nature_of(attack, seed), rounds)
    without_certificates = forecaster.known_bound().with_inputs(certificate_sum=0.0)
    regret = crowd.regret()
    regret_of_one_action = crowd.sums[regret.argmax()].max()
    yield {
        "attack": attack,
        "tolerance": f"{late:g} / t",
        "S": forecaster.certificate_sum,
        "regret": regret.max() / rounds,
        "variation": forecaster.from_variation(listed).max() / rounds,
        "if S = 0": events.from_variation(without_certificates, listed).max() / rounds,
        "of one action": regret_of_one_action / regret.max(),
        "loss": crowd.cost.mean() / rounds,
        "ms": 1e3 * seconds / rounds,
    }


WEIGHTS: dict[str, Callable[[ProtectedLosses], Any]] = {
    "weights alone": lambda listed: GainEvents([listed]),
    "with assignments": lambda listed: Assignments([listed]),
}
OPPONENTS = ("against the mean", "iid", "switching", "hunter of the worst")


def assigned(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play an opponent with a kind of weights."""
    opponent, weights = instance
    crowd, listed = listed_crowd(seed)
    forecaster = UnbiasedPrediction(WEIGHTS[weights](listed))
    play_all(forecaster, crowd, nature_of(opponent, seed), rounds)
    yield {
        "opponent": opponent,
        "weights": weights,
        "regret": crowd.regret().max() / rounds,
        "variation": forecaster.from_variation(listed).max() / rounds,
        "bound": forecaster.beforehand(rounds).a_priori(listed.weights).max(),
        "loss": crowd.cost.mean() / rounds,
    }


class GainsWithoutMargins(Assignments):
    """Counts no margin: what bounds gains bounds regret."""

    def gains_of_round(self, active: Any, played: Any) -> list[GainsOfRound]:
        """Return the gains, with margins of 0."""
        gains_of_groups = super().gains_of_round(active, played)
        return [gains._replace(margin=np.zeros_like(gains.margin)) for gains in gains_of_groups]


class CoordinatesWithoutMargins(VectorEvents):
    """Counts no margin."""

    def margins(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return 0."""
        return np.zeros_like(self.gained(group, losses))


EVENTS_WITH_MARGINS: dict[tuple[str, str], Callable[[list[ProtectedLosses]], Any]] = {
    ("losses", "without"): GainsWithoutMargins,
    ("losses", "with"): Assignments,
    ("coordinates", "without"): CoordinatesWithoutMargins,
    ("coordinates", "with"): VectorEvents,
}


def with_margins(instance: tuple[str, tuple[str, str]], rounds: int, seed: int) -> Iterator[Row]:
    """Play an opponent with a kind of events, whose bound counts margins or does not."""
    opponent, (events, margins) = instance
    crowd, listed = listed_crowd(seed)
    forecaster = UnbiasedPrediction(EVENTS_WITH_MARGINS[events, margins]([listed]))
    play_all(forecaster, crowd, nature_of(opponent, seed), rounds)
    bounds = forecaster.from_variation(listed) / rounds
    regret = crowd.regret() / rounds
    yield {
        "events": events,
        "opponent": opponent,
        "margins": margins,
        "worst bound": bounds.max(),
        "median bound": np.median(bounds),
        "worst regret": regret.max(),
        "median regret": np.median(regret),
        "loss": crowd.cost.mean() / rounds,
    }


def delayed(late: int, rounds: int, seed: int) -> Iterator[Row]:
    """Play outcomes that are far from the mean prediction and known late."""
    crowd, listed = listed_crowd(seed)
    forecaster = Delayed(lambda: UnbiasedPrediction(VectorEvents([listed])), late)
    play_all(forecaster, crowd, nature_of("against the mean", seed), rounds)
    yield {
        "rounds late": late,
        "regret": crowd.regret().max() / rounds,
        "loss": crowd.cost.mean() / rounds,
    }


def windows(instance: tuple[str, bool], rounds: int, seed: int) -> Iterator[Row]:
    """Measure the worst window."""
    opponent, has_intervals = instance
    crowd, listed = listed_crowd(seed)
    make_events = partial(VectorEvents, [listed])
    events = Intervals(make_events, rounds=rounds) if has_intervals else make_events()
    forecaster = UnbiasedPrediction(events)
    sums = [crowd.sums.copy()]  # after every step of the windows
    for n_played, _ in play(forecaster, crowd, nature_of(opponent, seed), rounds):
        if n_played % STEP_OF_WINDOWS == 0:
            sums.append(crowd.sums.copy())
    steps = WINDOW // STEP_OF_WINDOWS
    sums_of_windows = np.array(sums[steps:]) - np.array(sums[:-steps])
    worst_regret = sums_of_windows.max(3).sum(2).max()
    yield {
        "opponent": opponent,
        "intervals": has_intervals,
        "worst window": worst_regret / WINDOW,
        "regret": crowd.regret().max() / rounds,
        "loss": crowd.cost.mean() / rounds,
    }


class Stay(NamedTuple):
    """The rounds in which agents are there, from 0 on: ``first`` is one of them, ``end`` none."""

    first: int
    end: int


def stays(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Compare the regret of stays with its bound."""
    half = rounds // 2
    quarter = rounds // 4
    stay_of_name = {
        "all rounds": Stay(0, rounds),
        "second half": Stay(half, rounds),
        "middle half": Stay(quarter, 3 * quarter),
    }
    crowd, listed = listed_crowd(seed)
    forecaster = UnbiasedPrediction(VectorEvents([listed]))
    every_loss = np.arange(ATTACKED)
    records = {}
    for name, stay in stay_of_name.items():
        records[name] = forecaster.follow(
            listed,
            every_loss,
            entered=np.full(ATTACKED, stay.first),
            left=np.full(ATTACKED, stay.end),
        )
    ends = set[int]()  # rounds after which the sums are needed
    for stay in stay_of_name.values():
        ends |= {stay.first, stay.end}
    sums = {0: crowd.sums.copy()}  # by the number of rounds played
    mean_costs = {0: 0.0}
    for n_played, _seconds in play(forecaster, crowd, nature_of("against the mean", seed), rounds):
        if n_played in ends:
            sums[n_played] = crowd.sums.copy()
            mean_costs[n_played] = crowd.cost.mean()
    for name, stay in stay_of_name.items():
        length = stay.end - stay.first
        regret = (sums[stay.end] - sums[stay.first]).max(2).sum(1).max()
        bound = float(forecaster.over_stays(records[name]).max())
        yield {
            "there": name,
            "regret": regret / length,
            "variation": bound / length,
            "loss": (mean_costs[stay.end] - mean_costs[stay.first]) / length,
        }


def distances(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Draw as many games as ``rounds``, and what was played in each."""
    rng = stream(seed, "statements", "distance")
    for _game in range(rounds):
        shape = tuple(rng.integers(2, 5, 2))
        loss = rng.random(shape)
        joint = rng.dirichlet(np.full(loss.size, 0.5)).reshape(shape)
        worst = worst_leader(joint, loss)
        swap_regret = swap_regret_of(joint, loss)
        gap = abs(worst.value - leader_surplus(joint, worst.payoff, loss))
        if swap_regret > ROUNDING:
            ratio = worst.value / swap_regret
            yield {"games": "random", "over swap regret": ratio, "gap": gap}


TABLES = {
    "certificates": Table(
        solved,
        ["attack", "tolerance"],
        lambda: list(
            product(
                ("hunter of the worst", "against the mean"), (LATE_TOLERANCE, LATE_TOLERANCE / 3)
            )
        ),
        rounds=20_000,
        seeds=2,
        aggregations={"regret": ["mean", "sem"], "loss": ["mean", "sem"]},
    ),
    "assignments": Table(
        assigned,
        ["opponent", "weights"],
        lambda: list(product(OPPONENTS, WEIGHTS)),
        rounds=2000,
        seeds=2,
    ),
    "margins": Table(
        with_margins,
        ["events", "opponent", "margins"],
        lambda: list(product(OPPONENTS, EVENTS_WITH_MARGINS)),
        rounds=1000,
        seeds=2,
    ),
    "delay": Table(delayed, ["rounds late"], lambda: (0, 10, 100), rounds=4000, seeds=1),
    "intervals": Table(
        windows,
        ["opponent", "intervals"],
        lambda: list(product(("switching", "against the mean"), (False, True))),
        rounds=4000,
        seeds=3,
        min_rounds=WINDOW,
        why_min_rounds=f"a window has {WINDOW}",
    ),
    "entry": Table(
        stays,
        ["there"],
        rounds=2000,
        seeds=3,
        min_rounds=4,
        why_min_rounds="agents enter and leave after quarters of the run",
    ),
    "distance": Table(
        distances,
        ["games"],
        rounds=1000,
        seeds=1,
        aggregations={"over swap regret": ["min", "median"], "gap": ["max"]},
        digits=17,
    ),
}
