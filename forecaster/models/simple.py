"""The simple models: a constant, the last value, the mean, exponential smoothing, seasons."""

from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, features
from regretless.forecaster.models.seasons import IntegerFeatures
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.core.validation import check_range, check_rate, check_whole

MAX_SEASONS = 1024  # combinations that are kept
MAX_PERIOD = 100_000  # a period


@compiled(error_model="numpy")
def _move(value: Array, target: Array, share: float, divisor: float) -> None:
    """Add share (target - value) / divisor to a vector (n,), kept to [0, 1] (compiled)."""
    for i in range(value.shape[0]):
        step = share * (target[i] - value[i]) / divisor
        value[i] = min(max(value[i] + step, 0.0), 1.0)


class Baseline(Model):
    """A vector that moves; subclasses say how."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_value",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._value = np.full(size, 0.5)

    def _predicted(self, x: object) -> Array:
        return self._value


@compiled()
def _blend(value: Array, target: Array, remaining_share: float) -> None:
    """Leave of a vector (n,) its share, and let the target have the rest of it (compiled).

    ``value`` becomes target + remaining_share (value - target), in place.
    """
    for i in range(value.shape[0]):
        value[i] = target[i] + remaining_share * (value[i] - target[i])


@register.forecaster("constant")
class Constant(Baseline):
    """Always the same vector, of this value in [0, 1]."""

    def __init__(self, size: int, *, value: float = 0.5) -> None:
        super().__init__(size)
        self._value = np.full(size, check_range("value", value, 0.0, 1.0))

    def _learn(self, statistics: Array) -> None:
        """Learn nothing."""


@register.forecaster("last-value")
class LastValue(Baseline):
    """The vector of the latest round that is known; one half at first."""

    def _learn(self, statistics: Array) -> None:
        if not self.newer:
            self._value = statistics


@register.forecaster("running-mean")
class RunningMean(Baseline):
    """The mean of all vectors seen; one half at first."""

    def _learn(self, statistics: Array) -> None:
        if self.time:
            _move(self._value, statistics, 1.0, float(self.time + 1))
        else:
            self._value = statistics.copy()


@register.forecaster("exponential-smoothing")
class ExponentialSmoothing(Baseline):
    """Geometrically discounted mean; ``rate`` in (0, 1] is the share of the newest vector.

    A vector that comes after k newer ones has what k rounds would have left of that share.
    """

    def __init__(self, size: int, *, rate: float = 0.1) -> None:
        super().__init__(size)
        self.rate = check_rate("rate", rate)

    def _learn(self, statistics: Array) -> None:
        share = self.rate * (1 - self.rate) ** self.newer
        _move(self._value, statistics, share, 1.0)


@register.forecaster("seasonal-naive")
class SeasonalNaive(Model):
    """The vector last seen in the same season; one half at first.

    The season is the round modulo ``period``; without a period it is the combination of all
    features of the context that have been integers so far: the hour, the weekday, whether it
    rained. In a season that is new, the last vector is predicted. At most ``MAX_SEASONS``
    combinations are kept, the oldest makes way. ``rate`` in (0, 1] is the share of the newest
    vector within its season; 1 is the naive forecast. A vector that comes after a newer one of its
    season has the share that one round would have left of it.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last", "_integers")

    def __init__(self, size: int, *, period: int | None = None, rate: float = 1.0) -> None:
        super().__init__(size)
        self.period: int | None = None
        if period is not None:
            self.period = check_whole("period", period, least=1, most=MAX_PERIOD)
        self.rate = check_rate("rate", rate)
        self._last = np.full(size, 0.5)  # the last vector, which a new season begins with
        # By season, which is text such as "7" or "hour=3.0,weekday=1.0", the oldest first:
        self._seasons: dict[str, Array] = {}  # the vector that is predicted
        self._rounds: dict[str, int] = {}  # the latest round whose vector was learned
        self._integers = IntegerFeatures()
        self._open_season = ""  # of the round that was asked for, by what was known then

    def _predicted(self, x: object) -> Array:
        self._open_features = features(x)
        self._open_season = self._season()
        return self._seasons.get(self._open_season, self._last)

    def _season(self) -> str:
        if self.period is not None:
            return str((self.time + self.ahead) % self.period)
        return self._integers.combination(self._open_features)

    def skip_round(self, x: object = None) -> None:
        self.time += 1  # with a period the next round is of the next season

    def _learn(self, statistics: Array) -> None:
        has_learned_features = self._integers.learn(self._open_features)
        if has_learned_features or self.period is not None:
            self._open_season = self._season()
        season = self._open_season
        max_seasons = self.period or MAX_SEASONS
        if season not in self._seasons and len(self._seasons) == max_seasons:
            oldest_season = next(iter(self._seasons))  # dicts keep the order of insertion
            del self._seasons[oldest_season]
            del self._rounds[oldest_season]
        round_of_vector = self.time + self.ahead
        latest_round_of_season = self._rounds.get(season, round_of_vector)
        if round_of_vector < latest_round_of_season:
            # A newer vector of the season was learned before: what it would have left of this one.
            previous_value = self._seasons[season]
            share = self.rate * (1 - self.rate)
            self._seasons[season] = previous_value + share * (statistics - previous_value)
        else:
            self._learn_newest(season, statistics)
            self._rounds[season] = round_of_vector
        if not self.newer:
            self._last = statistics

    def _learn_newest(self, season: str, statistics: Array) -> None:
        """Learn the newest vector (n,) of a season."""
        if self.rate == 1.0:
            self._seasons[season] = statistics  # of what was before nothing is left
        elif season in self._seasons:
            _blend(self._seasons[season], statistics, 1 - self.rate)
        else:
            self._seasons[season] = statistics.copy()  # the next one of the season changes it

    def state(self) -> dict[str, Any]:
        vectors = np.array([*self._seasons.values()]).reshape(-1, self.size)
        rounds = np.array([*self._rounds.values()], dtype=np.int64)
        seasons = {"seasons": list(self._seasons), "table": vectors, "rounds": rounds}
        return super().state() | seasons

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._seasons = dict(zip(state["seasons"], np.array(state["table"]), strict=True))
        self._rounds = dict(zip(state["seasons"], np.array(state["rounds"]).tolist(), strict=True))
