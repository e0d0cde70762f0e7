r"""Announced quantiles beside conformal control: coverage, width, pinball loss and bounds.

``quantile-coverage``: the 5 % and the 95 % quantile of an outcome in [0, 1] are announced before
each round, on three sequences,

    i.i.d.        independent draws of a beta distribution
    drifting      the same about a mean that wanders
    adversarial   an outcome right outside of the announced interval where there is room, else 1/2

by an ``OnlineOmnipredictor`` (``FEW_STEPS`` steps of the grid) and by three methods that shift the
level or the value of a quantile after each round, with an exponentially smoothed forecast and its
past errors to start from:

    adaptive conformal   the level a, a += GAMMA (q - 1[y < v]) (Gibbs and Candes 2021,
                         arXiv:2106.00170), of the last ``WINDOW`` errors
    quantile tracker     the value u over the forecast, u += ETA (q - 1[y < v])
    conformal PID        the tracker and an integrator of its errors (Angelopoulos, Candes and
                         Tibshirani 2023, arXiv:2307.16895)

``coverage`` is that of the interval: from the lower value, of ours from the value before it on the
grid, to the upper one. ``width`` is its mean length, ``pinball`` the mean loss of the two
quantiles. ``bound`` is by how much coverage may fall short of .9, whatever the outcomes are: of
ours the sum of ``bound`` of one and ``bound_below`` of the other level (probability .99); of the
rivals what their recursions imply, since a and u stay in a known range, and empty for the PID. Ours
has one for every announced value, too, and small pinball regret, which they have not.

``quantile-bounds``: which bounds of ours say something after how many rounds, by the steps of the
grid, on independent outcomes and on adversarial ones. ``bound`` and ``bound_below`` are the larger
ones of the two levels. ``lower_5`` is the lower limit of the coverage of the 5 % quantile, which
says nothing at 0, and ``upper_5`` its upper limit, which says nothing at 1; likewise ``lower_95``
of the 95 % quantile. ``values`` is how many values were announced of both levels together, and
``of_use`` the share of rounds whose value has a ``bound`` below 1 of its own.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

LEVELS = np.array([0.05, 0.95])
BOUNDS_AT = (30, 100, 300, 1_000)  # rounds after which bounds are shown
GRIDS = (10, 40, 160)  # steps
NOMINAL = 0.9  # of the interval between them
MEASURED_AT = (300, 1_000, 5_000)  # rounds
FEW_STEPS = 20  # of the grid of announced values
WINDOW = 200  # errors
SMOOTHING = 0.1  # rate of the forecast
GAMMA = 0.005  # of the level
ETA = 0.05  # of the value
SATURATION = 5.0  # C of the integrator, K tan(x ln(t) / (C t)), x the sum of errors
STRENGTH = 1.0  # K
JUST_OUTSIDE = 0.01
WANDERING = 0.01  # standard deviation of a step of the mean


@dataclass(frozen=True)
class Interval:
    """What is announced before a round."""

    quantiles: Array  # (2,)
    low: float  # of the interval that shall cover
    high: float


class Announcer(ABC):
    """Announces an interval and learns the outcome, in turn."""

    @abstractmethod
    def announce(self) -> Interval:
        """Return the quantiles and the interval of the next outcome."""

    @abstractmethod
    def learn(self, outcome: float) -> None:
        """Learn the outcome of the round."""

    @abstractmethod
    def bound(self, rounds: int) -> float:
        """Return by how much coverage may fall short of nominal; NaN where nothing is promised."""


class Ours(Announcer):
    """The announced quantiles of an ``OnlineOmnipredictor``."""

    def __init__(self, steps: int = FEW_STEPS) -> None:
        store = Newsvendor(orders=np.linspace(0, 1, 11), underage=1.0, overage=1.0)
        self.steps = steps
        self._server = OnlineOmnipredictor(
            {"store": store}, quantiles=LEVELS.tolist(), quantile_steps=steps
        )

    def announce(self) -> Interval:
        """Return the quantiles and the interval of the next outcome."""
        by_level = self._server.predict_one().quantiles
        quantiles = np.array([by_level[level] for level in LEVELS])
        low = quantiles[0] - 1 / self.steps
        return Interval(quantiles, float(low), float(quantiles[1]))

    def learn(self, outcome: float) -> None:
        """Learn the outcome of the round."""
        self._server.learn_one(None, outcome)

    def bound(self, rounds: int) -> float:
        """Return the sum of the bounds of the two sides."""
        table = self._server.coverage()
        return float(table["bound_below"].iloc[0] + table["bound"].iloc[1])

    def coverage(self, *, by_value: bool = False) -> pd.DataFrame:
        """Return the table of coverage so far."""
        return self._server.coverage(by_value=by_value)


class Conformal(Announcer):
    """What the rivals share: a smoothed forecast, its errors, and an interval about it."""

    def __init__(self) -> None:
        self._forecast = 0.5
        self._errors: deque[float] = deque(maxlen=WINDOW)
        self._announced = np.zeros(2)

    @abstractmethod
    def _values(self) -> Array:
        """Return the quantiles (2,), which may lie beyond [0, 1]."""

    @abstractmethod
    def _adapt(self, surplus: Array) -> None:
        """Learn q - 1[y < v] of both levels (2,); before the errors learn the round."""

    def announce(self) -> Interval:
        """Return the quantiles and the interval of the next outcome."""
        self._announced = self._values()
        shown = np.sort(np.clip(self._announced, 0.0, 1.0))
        return Interval(shown, float(shown[0]), float(shown[1]))

    def learn(self, outcome: float) -> None:
        """Learn the outcome of the round."""
        is_below = np.array([outcome < self._announced[0], outcome <= self._announced[1]])
        self._adapt(LEVELS - is_below)
        self._errors.append(outcome - self._forecast)
        self._forecast += SMOOTHING * (outcome - self._forecast)


class AdaptiveConformal(Conformal):
    """The level of the quantile of past errors is shifted."""

    def __init__(self) -> None:
        super().__init__()
        self._levels = LEVELS.copy()

    def _values(self) -> Array:
        errors = np.array(self._errors) if self._errors else np.array([-0.5, 0.5])
        values = self._forecast + np.quantile(errors, np.clip(self._levels, 0.0, 1.0))
        values = np.where(self._levels < 0, -np.inf, values)
        return np.where(self._levels > 1, np.inf, values)

    def _adapt(self, surplus: Array) -> None:
        self._levels += GAMMA * surplus

    def bound(self, rounds: int) -> float:
        """Return what the recursion implies."""
        # each level stays in [-GAMMA, 1 + GAMMA] and begins 0.05 from an end of [0, 1]
        return 2 * (float(LEVELS[1]) + GAMMA) / (GAMMA * rounds)


class QuantileTracker(Conformal):
    """The distance of the value from the forecast is shifted."""

    def __init__(self) -> None:
        super().__init__()
        self._distance = np.zeros(2)

    def _values(self) -> Array:
        return self._forecast + self._distance

    def _adapt(self, surplus: Array) -> None:
        self._distance += ETA * surplus

    def bound(self, rounds: int) -> float:
        """Return what the recursion implies."""
        # an error is at most 1 in size, so that a distance is at most 1 + ETA
        return 2 * (1 + ETA) / (ETA * rounds)


class ConformalPid(QuantileTracker):
    """The tracker, with an integrator of the shares that lay outside."""

    def __init__(self) -> None:
        super().__init__()
        self._sum_of_surplus = np.zeros(2)
        self._time = 1

    def _values(self) -> Array:
        angle = self._sum_of_surplus * math.log(self._time + 1) / (SATURATION * (self._time + 1))
        limited = np.clip(angle, -math.pi / 2 + 1e-6, math.pi / 2 - 1e-6)
        return super()._values() + STRENGTH * np.tan(limited)

    def _adapt(self, surplus: Array) -> None:
        super()._adapt(surplus)
        self._sum_of_surplus += surplus
        self._time += 1

    def bound(self, rounds: int) -> float:
        """Promise nothing."""
        return math.nan


ANNOUNCERS: dict[str, Callable[[], Announcer]] = {
    "announced quantiles": Ours,
    "adaptive conformal": AdaptiveConformal,
    "quantile tracker": QuantileTracker,
    "conformal PID": ConformalPid,
}
SEQUENCES = ("i.i.d.", "drifting", "adversarial")


def obvious_outcomes(sequence: str, rounds: int, seed: int) -> Array:
    """Return the outcomes (T,) of a sequence that does not look at what is announced."""
    rng = stream(seed, "paper", "quantile-coverage")
    draws = rng.beta(4, 4, rounds)
    if sequence == "i.i.d.":
        return np.asarray(draws)
    wandering = np.cumsum(WANDERING * rng.standard_normal(rounds))
    folded = np.abs((wandering + 0.5) % 2 - 1)  # reflected at 0 and 1
    return np.asarray(0.7 * folded + 0.3 * draws)


def outside(interval: Interval) -> float:
    """Return an outcome right outside of an interval where there is room, else 1/2."""
    if interval.high + JUST_OUTSIDE <= 1:
        return interval.high + JUST_OUTSIDE
    if interval.low - JUST_OUTSIDE >= 0:
        return interval.low - JUST_OUTSIDE
    return 0.5


def announce(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Announce quantiles of a sequence; yield what they were worth after some of its rounds."""
    sequence, method = instance
    announcer = ANNOUNCERS[method]()
    is_adversarial = sequence == "adversarial"
    outcomes = np.zeros(rounds) if is_adversarial else obvious_outcomes(sequence, rounds, seed)
    n_covered = 0
    sum_of_widths = 0.0
    sum_of_losses = 0.0
    for t in range(1, rounds + 1):
        interval = announcer.announce()
        outcome = outside(interval) if is_adversarial else float(outcomes[t - 1])
        n_covered += interval.low <= outcome <= interval.high
        sum_of_widths += min(interval.high, 1.0) - max(interval.low, 0.0)
        errors = outcome - interval.quantiles
        sum_of_losses += float(np.maximum(LEVELS * errors, (LEVELS - 1) * errors).mean())
        announcer.learn(outcome)
        if t in MEASURED_AT or (t == rounds and rounds < MEASURED_AT[0]):
            yield {
                "sequence": sequence,
                "method": method,
                "rounds": t,
                "coverage": n_covered / t,
                "width": sum_of_widths / t,
                "pinball": sum_of_losses / t,
                "bound": announcer.bound(t),
            }


def bounds_of(instance: tuple[str, int], rounds: int, seed: int) -> Iterator[Row]:
    """Announce quantiles with so many steps; yield what is promised after some of the rounds."""
    sequence, steps = instance
    announcer = Ours(steps)
    outcomes = obvious_outcomes("i.i.d.", rounds, seed)
    for t in range(1, rounds + 1):
        interval = announcer.announce()
        is_adversarial = sequence == "adversarial"
        announcer.learn(outside(interval) if is_adversarial else float(outcomes[t - 1]))
        if t in BOUNDS_AT or t == rounds < BOUNDS_AT[0]:
            table = announcer.coverage()
            by_value = announcer.coverage(by_value=True)
            is_of_use = by_value["bound"] < 1
            yield {
                "sequence": sequence,
                "steps": steps,
                "rounds": t,
                "bound": table["bound"].max(),
                "bound_below": table["bound_below"].max(),
                "lower_5": max(LEVELS[0] - table["bound"].iloc[0], 0.0),
                "upper_5": min(LEVELS[0] + table["bound_below"].iloc[0], 1.0),
                "lower_95": max(LEVELS[1] - table["bound"].iloc[1], 0.0),
                "values": len(by_value),
                "of_use": by_value["rounds"][is_of_use].sum() / by_value["rounds"].sum(),
            }


TABLES = {
    "quantile-bounds": Table(
        rows=bounds_of,
        by=("sequence", "steps", "rounds"),
        instances=lambda: list(product(("i.i.d.", "adversarial"), GRIDS)),
        rounds=BOUNDS_AT[-1],
        seeds=1,
        digits=3,
    ),
    "quantile-coverage": Table(
        rows=announce,
        by=("sequence", "rounds", "method"),
        instances=lambda: list(product(SEQUENCES, ANNOUNCERS)),
        rounds=MEASURED_AT[-1],
        seeds=1,
        digits=3,
    ),
}
