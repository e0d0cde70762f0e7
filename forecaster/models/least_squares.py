r"""Recursive least squares with forgetting, on contexts and on the last outcomes.

All n numbers of s(y) are regressed on the same features f: 1, the last outcomes, and the columns of
the context. After t rounds, with forgetting lambda and ridge rho, the coefficients are those of the
discounted ridge regression

    W_t = argmin_W  sum_s lambda^(t-s) |s(y_s) - 1/2 - f_s W|^2 + rho |W|^2
        = (G_t + rho I)^-1 C_t,    G_t = lambda G_(t-1) + f_t' f_t,    C_t likewise with s(y) - 1/2.

The ridge stands outside of what is forgotten: where the features do not move for long, G fades in
the other directions and the coefficients go to 0 there; nothing winds up. A round needs f W alone,
which is one symmetric system.

**Columns** are learned as they come. Every one enters as a number, standardised by its own mean and
deviation so far and clipped. A column whose values have all been integers, and not many different
ones, enters level by level as well: an hour or a weekday is no quantity. Once it shows anything
else its levels are dropped.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from regretless.forecaster.models.base import Model, features
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.validation import check_positive, check_rate, check_whole

MAX_LEVELS = 50  # that a column may have, to enter level by level
MAX_DEVIATIONS = 3.0  # deviations
LARGEST_VALUE = 1e100  # beyond which a value is not told apart
MAX_FEATURES = 64  # features of each kind: of the past, of the context
MAX_SEASON = 10_000  # rounds
MAX_SOLVED = 8  # systems that are remembered with their solutions
ONE = np.ones(1)


class Columns(Checkpointable):
    """Turns named numbers into features, at most ``max_size`` of them; ``size`` so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("size", "_moments", "_numbers", "_levels")

    def __init__(self, max_size: int) -> None:
        self.max_size = max_size
        self.size = 0
        # By the column's name: of its values the count, mean and sum of squared distances from it,
        self._moments: dict[str, list[float]] = {}
        # the feature that is its number,
        self._numbers: dict[str, int] = {}
        # and the feature of each level, by the level, while it has few enough to be categories.
        self._levels: dict[str, dict[str, int]] = {}

    def encoded(self, named: Mapping[str, float]) -> Array:
        """Return the features (size,) of a context; what is unknown adds nothing."""
        row = np.zeros(self.size)
        for name, raw_value in named.items():
            feature = self._numbers.get(name)
            if feature is None:
                continue
            value, key = _read(raw_value)
            count, mean, squares = self._moments[name]
            deviation = (squares / count) ** 0.5
            if deviation > 0:
                row[feature] = min(max((value - mean) / deviation, -MAX_DEVIATIONS), MAX_DEVIATIONS)
            level = self._levels.get(name, {}).get(key)
            if level is not None:
                row[level] = 1.0
        return row

    def learn(self, named: Mapping[str, float]) -> Indices | None:
        """Learn a context, new features last; the old ones that remain, or None for all."""
        dropped: list[int] = []
        for name, raw_value in named.items():
            value, key = _read(raw_value)
            if name not in self._numbers:
                if self.size == self.max_size:
                    continue
                self._moments[name] = [0.0, 0.0, 0.0]
                self._numbers[name] = self.size
                self._levels[name] = {}
                self.size += 1
            count, mean, squares = self._moments[name]
            new_mean = mean + (value - mean) / (count + 1)
            new_squares = squares + (value - mean) * (value - new_mean)
            self._moments[name] = [count + 1, new_mean, new_squares]
            levels = self._levels.get(name)
            if levels is not None and key not in levels:
                if not key or len(levels) == MAX_LEVELS:  # no category
                    del self._levels[name]
                    dropped += levels.values()
                elif self.size < self.max_size:
                    levels[key] = self.size
                    self.size += 1
        if not dropped:
            return None
        remaining = np.setdiff1d(np.arange(self.size), dropped)
        new_index = {int(old): new for new, old in enumerate(remaining)}
        self._numbers = {name: new_index[feature] for name, feature in self._numbers.items()}
        for levels_of_column in self._levels.values():
            for level, feature in levels_of_column.items():
                levels_of_column[level] = new_index[feature]
        self.size = len(remaining)
        return remaining


@lru_cache(maxsize=1024)
def _read(raw_value: float) -> tuple[float, str]:
    """Return the number, 0 for one that is none, and the level of an integer, else no text.

    Several models read the same few numbers several times per round.
    """
    value = 0.0
    if raw_value == raw_value:  # noqa: PLR0124 - it is a number
        value = min(max(raw_value, -LARGEST_VALUE), LARGEST_VALUE)
    level = ""
    if value.is_integer() and abs(value) < 1e9:
        level = str(int(value))
    return value, level


@compiled()
def _add_row(row: Array, statistics: Array, forgetting: float, gram: Array, cross: Array) -> None:
    """Add a round to the sums of a discounted regression (compiled).

    G <- lambda G + f' f and C <- lambda C + f' (s(y) - 1/2).

    Parameters
    ----------
    row : array (k,)
        f, the round's features.
    statistics : array (n,)
        s(y).
    forgetting : float
        lambda, in (0, 1].
    gram, cross : array (k, k), (k, n)
        G and C; changed in place.
    """
    for i in range(row.shape[0]):
        for j in range(row.shape[0]):
            gram[i, j] = gram[i, j] * forgetting + row[i] * row[j]
        for j in range(statistics.shape[0]):
            cross[i, j] = cross[i, j] * forgetting + row[i] * (statistics[j] - 0.5)


@compiled()
def _with_ridge(gram: Array, ridge: float) -> Array:
    """Return G + rho I (k, k) (compiled)."""
    regularised = gram.copy()
    for i in range(gram.shape[0]):
        regularised[i, i] += ridge
    return regularised


class SolvedSystem(NamedTuple):
    """A system (G + rho I) w = f that was solved; G and f bit by bit."""

    gram: bytes
    row: bytes
    ridge: float
    solution: Array  # w (k,), which nobody changes


_solved_systems: deque[SolvedSystem] = deque(maxlen=MAX_SOLVED)  # the last ones


def _solution(gram: Array, row: Array, ridge: float) -> Array:
    """Return w (k,) with (G + rho I) w = f, for G (k, k) and f (k,).

    Where several blocks hear of the same outcomes, each in a basis of its own, their regressions
    have the same features: the first one solves the system, and the others find its solution.
    """
    gram_in_bytes = gram.tobytes()
    row_in_bytes = row.tobytes()
    for solved in tuple(_solved_systems):  # a copy, as another thread may add to them
        is_same_row = solved.row == row_in_bytes and solved.ridge == ridge
        if is_same_row and solved.gram == gram_in_bytes:
            return solved.solution
    solution: Array = np.linalg.solve(_with_ridge(gram, ridge), row).astype(np.float64, copy=False)
    _solved_systems.append(SolvedSystem(gram_in_bytes, row_in_bytes, ridge, solution))
    return solution


@compiled()
def _make_room(past: Array, position: int) -> None:
    """Move the rows of ``past`` (L, d) from a position on down by one, in place (compiled)."""
    for lag in range(past.shape[0] - 1, position, -1):
        for i in range(past.shape[1]):
            past[lag, i] = past[lag - 1, i]


@register.forecaster("least-squares")
class LeastSquares(Model):
    """A linear forecast from the context and the last outcomes; one half at first.

    Features are ``lags`` outcomes of the past (of s(y), where it observes none) and those a
    ``season`` ago, a number of rounds or several, which have room first: as many as fit in
    ``MAX_FEATURES`` numbers.
    ``forgetting`` in (0, 1] multiplies a round's weight from round to round, ``ridge`` is above 0.

    Where outcomes come late it forecasts directly: the lags are those of the last outcomes that are
    known when it is asked, and it learns the outcome from these. The season keeps its phase: it is
    the latest known one that lies whole seasons back. In the place of an outcome that is missing
    stands the forecast of it.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_columns", "_past", "_gram", "_cross")

    def __init__(
        self,
        size: int,
        *,
        lags: int = 3,
        season: int | Sequence[int] | None = None,
        forgetting: float = 1.0,
        ridge: float = 1.0,
    ) -> None:
        super().__init__(size)
        n_lags = check_whole("lags", lags, least=0, most=MAX_FEATURES)
        given_seasons: Sequence[int] = []
        if isinstance(season, list | tuple):
            given_seasons = season
        elif season is not None:
            given_seasons = [cast("int", season)]
        self.seasons = [
            check_whole("season", rounds, least=1, most=MAX_SEASON) for rounds in given_seasons
        ]
        # how many rounds back each lag is, the seasons' first
        self.lags = [*self.seasons, *range(1, n_lags + 1)]
        self.forgetting = check_rate("forgetting", forgetting)
        self.ridge = check_positive("ridge", ridge)
        self._columns = Columns(MAX_FEATURES)
        self._past = np.empty((0, 0))  # the last outcomes, the newest first
        self._lagged_outcomes = self._past  # (lags, width), of the open round's prediction
        self._gram = np.zeros((1, 1))
        self._cross = np.zeros((1, size))

    def opened(self) -> Any:
        return self._lagged_outcomes.copy()

    def reopen(self, x: object, opened: Any) -> None:
        self._open_features = features(x)
        self._lagged_outcomes = opened

    def open_round(self, x: object) -> None:
        """Open a round with this context, as a prediction does, without predicting it."""
        self._open_features = features(x)
        if self.seasons:
            self._lagged_outcomes = self._past[self._positions_of_lags(self._past.shape[1])]
        else:  # the lags are the last rounds, in their order
            self._lagged_outcomes = self._past.copy()

    def _predicted(self, x: object) -> Array:
        self.open_round(x)
        row = self._row()
        if not self.time:
            return np.full(self.size, 0.5)
        return np.asarray(0.5 + _solution(self._gram, row, self.ridge) @ self._cross)

    def _row(self) -> Array:
        encoded = self._columns.encoded(self._open_features)
        return np.concatenate((ONE, self._lagged_outcomes.ravel(), encoded))

    def _positions_of_lags(self, width: int) -> list[int]:
        """Return where the lags are among the last outcomes, seen from the round that is asked."""
        positions = [lag - 1 for lag in self._affordable_lags(width)]
        for index, season in enumerate(self.seasons[: len(positions)]):
            positions[index] = (season - 1 - self.ahead) % season
        return positions

    def _affordable_lags(self, width: int) -> list[int]:
        """Return the lags whose outcomes, of ``width`` numbers each, are few enough features.

        It is one at least; none before the first round, when the width is 0.
        """
        if not width:
            return []
        return self.lags[: max(1, MAX_FEATURES // width)]

    def _learn(self, statistics: Array) -> None:
        observed = statistics if self._outcome is None else self._outcome
        self._outcome = None
        if not self.time:  # make room for the past, of which nothing is known yet
            width = len(observed[:MAX_FEATURES])
            lags = self._affordable_lags(width)
            self._past = np.zeros((max(lags, default=0), width))
            n_features = 1 + width * len(lags)
            self._gram = np.zeros((n_features, n_features))
            self._cross = np.zeros((n_features, self.size))
        width = self._past.shape[1]
        shape_of_lags = (len(self._affordable_lags(width)), width)
        if self._lagged_outcomes.shape != shape_of_lags:
            # the round was opened before anything was known
            self._lagged_outcomes = np.zeros(shape_of_lags)
        n_columns_before = self._columns.size
        remaining = self._columns.learn(self._open_features)
        n_fixed = len(self._gram) - n_columns_before
        n_columns_after = self._columns.size
        if remaining is not None:
            n_columns_after = int(remaining.max(initial=-1)) + 1
        n_new = n_columns_after - n_columns_before
        if n_new > 0:
            self._gram = np.pad(self._gram, (0, n_new))
            self._cross = np.pad(self._cross, ((0, n_new), (0, 0)))
        if remaining is not None:
            rows = np.concatenate([np.arange(n_fixed), n_fixed + remaining])
            self._gram = self._gram[np.ix_(rows, rows)]
            self._cross = self._cross[rows]
        _add_row(self._row(), statistics, self.forgetting, self._gram, self._cross)
        self._add_to_past(observed)

    def skip_round(self, x: object = None) -> None:
        self.skip_round_as(self.point(x))

    def skip_round_as(self, stand_in: Array) -> None:
        """Let a round pass with a forecast (d,) in the place of its outcome, which is missing."""
        if self.time:  # before, there is no past in which the round could be missed
            self._add_to_past(stand_in)

    def _add_to_past(self, observed: Array) -> None:
        """Put an outcome (d,) among the last ones, behind the ``newer`` latest."""
        position = self.newer  # the newest first
        if position < len(self._past):
            _make_room(self._past, position)
            self._past[position] = observed[:MAX_FEATURES] - 0.5
