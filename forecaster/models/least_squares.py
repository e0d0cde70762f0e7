r"""Recursive least squares with forgetting, on contexts and on the last outcomes.

All n numbers of s(y) are regressed on the same features f: 1, the last outcomes, and the columns of
the context. After t rounds, with forgetting lambda and ridge rho, the coefficients are those of the
discounted ridge regression

    W_t = argmin_W  sum_s lambda^(t-s) |s(y_s) - 1/2 - f_s W|^2 + rho |W|^2
        = (G_t + rho I)^-1 C_t,    G_t = lambda G_(t-1) + f_t' f_t,    C_t likewise with s(y) - 1/2.

The ridge stands outside of what is forgotten: where the features do not move for long, G fades in
the other directions and the coefficients go to 0 there; nothing winds up. A round needs f W alone,
which is one symmetric system, (G + rho I) w = f: the forecast is 1/2 + w C.

**Columns** are learned as they come. Every one enters as a number, standardised by its own mean and
deviation so far and clipped. A column whose values have all been integers, and not many different
ones, enters level by level as well: an hour or a weekday is no quantity. Once it shows anything
else its levels are dropped.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from regretless.forecaster.models.base import Model, features
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.validation import check_positive, check_rate, check_whole
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context

MAX_LEVELS = 50  # that a column may have, to enter level by level
MAX_DEVIATIONS = 3.0  # deviations
LARGEST_VALUE = 1e100  # beyond which a value is not told apart
MAX_FEATURES = 64  # features of each kind: of the past, of the context
MAX_SEASON = 10_000  # rounds


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
            levels = self._levels.get(name)
            if levels is not None and key in levels:
                row[levels[key]] = 1.0
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
def _add_to_grams(row: Array, forgetting: Array, grams: Array) -> None:
    """Add a round to G of discounted regressions, G <- lambda G + f' f (compiled).

    ``row`` (k,) is f, the round's features, ``forgetting`` (S,) lambda in (0, 1] of each of the
    regressions, and ``grams`` (S, k, k) G, which are changed in place.
    """
    for system in range(grams.shape[0]):
        for i in range(row.shape[0]):
            for j in range(row.shape[0]):
                grams[system, i, j] = grams[system, i, j] * forgetting[system] + row[i] * row[j]


@compiled()
def _add_to_cross(row: Array, statistics: Array, forgetting: float, cross: Array) -> None:
    """Add a round to C of a discounted regression, C <- lambda C + f' (s(y) - 1/2) (compiled).

    ``row`` (k,) is f, the round's features, ``statistics`` (n,) s(y), ``forgetting`` lambda in
    (0, 1], and ``cross`` (k, n) C, which is changed in place.
    """
    for i in range(row.shape[0]):
        for j in range(statistics.shape[0]):
            cross[i, j] = cross[i, j] * forgetting + row[i] * (statistics[j] - 0.5)


@compiled()
def _write_row(lagged_outcomes: Array, encoded: Array, row: Array) -> None:
    """Write f, a round's features: a one, its lags and what is known of its context (compiled).

    Parameters
    ----------
    lagged_outcomes : array (L, d)
        Outcomes of the past less one half, in the order of the lags.
    encoded : array (c,)
        Features of the context (``Columns``).
    row : array (1 + L d + c,)
        f; written. ValueError if it has room for another number of features.
    """
    if row.shape[0] != 1 + lagged_outcomes.size + encoded.shape[0]:
        raise ValueError("a regression has another number of features than its past and columns")
    row[0] = 1.0
    n_written = 1
    for lag in range(lagged_outcomes.shape[0]):
        for i in range(lagged_outcomes.shape[1]):
            row[n_written] = lagged_outcomes[lag, i]
            n_written += 1
    for feature in range(encoded.shape[0]):
        row[n_written + feature] = encoded[feature]


@compiled()
def _learn_row(
    lagged_outcomes: Array, encoded: Array, forgetting: Array, row: Array, grams: Array
) -> None:
    """Write f of a round, and add the round to G of discounted regressions (compiled).

    The arrays are those of ``_write_row`` and of ``_add_to_grams``; ``row`` and ``grams`` are
    written.
    """
    _write_row(lagged_outcomes, encoded, row)
    _add_to_grams(row, forgetting, grams)


@compiled()
def _write_systems(
    lagged_outcomes: Array, encoded: Array, grams: Array, ridges: Array, row: Array, systems: Array
) -> None:
    """Write both sides of (G + rho I) w = f of the open round and each of S systems (compiled).

    Parameters
    ----------
    lagged_outcomes, encoded : array (L, d), (c,)
        What f consists of (``_write_row``).
    grams : array (S, k, k)
        G.
    ridges : array (S,)
        rho.
    row : array (k,)
        f; written.
    systems : array (S, k, k)
        G + rho I; written.
    """
    _write_row(lagged_outcomes, encoded, row)
    for system in range(grams.shape[0]):
        for i in range(grams.shape[1]):
            for j in range(grams.shape[2]):
                systems[system, i, j] = grams[system, i, j]
            systems[system, i, i] += ridges[system]


@compiled()
def _put_into_past(observed: Array, position: int, past: Array) -> None:
    """Put an outcome among the last ones, and move those from its position on down (compiled).

    ``observed`` (d',) is the outcome, of which the first d numbers count, and ``past`` (L, d) the
    outcomes less one half, changed in place; the oldest makes way. Behind the last ``position``
    nothing is put.
    """
    if position >= past.shape[0]:
        return
    for lag in range(past.shape[0] - 1, position, -1):
        for i in range(past.shape[1]):
            past[lag, i] = past[lag - 1, i]
    for i in range(past.shape[1]):
        past[position, i] = observed[i] - 0.5


class LearnedRound(NamedTuple):
    """What a regression on the features learns with them: a round's, and how their list changed."""

    row: Array  # (k,), f of the round
    n_new: int  # features that the round added behind the others
    kept: Indices | None  # which of all these are left, in their order; None for all

    def rearranged(self, rows: Array) -> Array:
        """Return rows (m, n) of the features before the round as those (k, n) after it.

        New ones are zero.
        """
        if self.n_new > 0:
            rows = np.pad(rows, ((0, self.n_new), (0, 0)))
        return rows if self.kept is None else rows[self.kept]


class Regressors(Checkpointable):
    """The features of regressions, round by round, and the systems G that they make.

    It knows outcomes and contexts, but nothing of what is regressed on them, so that regressions of
    several bases, and those that forget at several rates, may share it
    (``LeastSquares.share_regressors``). Each of them counts the rounds that it has learned, and a
    round that is learned already is not learned again.

    Attributes
    ----------
    rounds : int
        Those that are learned.
    is_shared : bool
        Whether several regressions hold it.
    columns : Columns
        Of the contexts.
    past : array (L, d)
        The last outcomes less one half, the newest first.
    grams : array (S, k, k)
        G of every system: one for each pair of forgetting and ridge.
    lagged_outcomes : array (lags, d)
        Those of ``past`` that are features of the open round.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("columns", "past")

    def __init__(self, *, lags: Sequence[int], seasons: Sequence[int]) -> None:
        self.lags = lags
        self.seasons = seasons
        self._forgetting = np.zeros(0)  # lambda of every system (S,)
        self._ridges = np.zeros(0)  # and rho
        self.rounds = 0
        self.is_shared = False
        self.columns = Columns(MAX_FEATURES)
        self.past = np.empty((0, 0))
        self.grams = np.zeros((0, 1, 1))
        self.lagged_outcomes = self.past
        self._open_features: Mapping[str, float] = {}
        # The context of the open round, how far ahead it is, and w of every system (S, k), once it
        # is asked for.
        self._context: object = None
        self._ahead = 0
        self._solutions: Array | None = None
        self._last_learned: LearnedRound | None = None

    def system_of(self, forgetting: float, ridge: float) -> int:
        """Return the index of the system with this lambda and rho, which is added if need be."""
        is_this = (self._forgetting == forgetting) & (self._ridges == ridge)
        if is_this.any():
            return int(is_this.argmax())
        self._forgetting = np.append(self._forgetting, forgetting)
        self._ridges = np.append(self._ridges, ridge)
        self.grams = np.concatenate([self.grams, np.zeros((1, *self.grams.shape[1:]))])
        return len(self.grams) - 1

    def alone(self, system: int) -> "Regressors":
        """Return a copy for one regression with this system, which is its only one."""
        copied = deepcopy(self)
        copied.is_shared = False
        copied.keep_system(system)
        return copied

    def keep_system(self, system: int) -> None:
        """Drop all systems but one."""
        kept = slice(system, system + 1)
        self._forgetting = self._forgetting[kept].copy()
        self._ridges = self._ridges[kept].copy()
        self.grams = self.grams[kept].copy()
        self._solutions = None

    def solutions(self, x: object, ahead: int) -> Array:
        """Open a round with this context, and return w (S, k), (G + rho I) w = f, of each system.

        The same ``Context``, which does not change, is not opened again. The systems are solved
        together: of one of them most of the time is NumPy's own before it begins.
        """
        solutions = self._solutions
        is_same_round = isinstance(x, Context) and x is self._context and ahead == self._ahead
        if solutions is None or not is_same_round:
            self.open_round(x, ahead)
            encoded = self.columns.encoded(self._open_features)
            row = np.empty(self.grams.shape[1])
            systems = np.empty(self.grams.shape)
            _write_systems(self.lagged_outcomes, encoded, self.grams, self._ridges, row, systems)
            # By LAPACK: where two actions are alike, the last digits decide, and where an adversary
            # answers to what agents do, others make another run of it.
            solved = np.linalg.solve(systems, row[:, np.newaxis])  # (S, k, 1)
            solutions = np.asarray(solved[:, :, 0], dtype=np.float64)
            self._solutions = solutions
        return solutions

    def open_round(self, x: object, ahead: int) -> None:
        """Open a round that is so many rounds ``ahead`` of the next one."""
        self._context = x
        self._ahead = ahead
        self._solutions = None
        self._open_features = features(x)
        if self.seasons:
            self.lagged_outcomes = self.past[self._positions_of_lags(self.past.shape[1], ahead)]
        else:  # the lags are the last rounds, in their order
            self.lagged_outcomes = self.past.copy()

    def reopen(self, x: object, lagged_outcomes: Array, *, round_index: int) -> None:
        """Go back to a round with these lags, unless it is learned already."""
        if round_index < self.rounds:
            return
        self._solutions = None
        self._open_features = features(x)
        self.lagged_outcomes = lagged_outcomes

    def learn(self, observed: Array, *, round_index: int, newer: int) -> LearnedRound:
        """Learn the open round with its outcome (d,), unless it is learned already."""
        if round_index < self.rounds and self._last_learned is not None:
            return self._last_learned
        if not self.rounds:  # make room for the past, of which nothing is known yet
            width = len(observed[:MAX_FEATURES])
            lags = self._affordable_lags(width)
            self.past = np.zeros((max(lags, default=0), width))
            n_features = 1 + width * len(lags)
            self.grams = np.zeros((len(self.grams), n_features, n_features))
        width = self.past.shape[1]
        shape_of_lags = (len(self._affordable_lags(width)), width)
        if self.lagged_outcomes.shape != shape_of_lags:
            # the round was opened before anything was known, or by a regression with other seasons
            self.lagged_outcomes = np.zeros(shape_of_lags)
        n_new, kept = self._learn_columns()
        row = np.empty(self.grams.shape[1])
        encoded = self.columns.encoded(self._open_features)
        _learn_row(self.lagged_outcomes, encoded, self._forgetting, row, self.grams)
        self.add_to_past(observed, newer)
        self.rounds = round_index + 1
        self._last_learned = LearnedRound(row, n_new, kept)
        return self._last_learned

    def _learn_columns(self) -> tuple[int, Indices | None]:
        """Learn the open round's context; ``n_new`` and ``kept`` of a ``LearnedRound``."""
        n_columns_before = self.columns.size
        remaining = self.columns.learn(self._open_features)
        if remaining is None and self.columns.size == n_columns_before:
            return 0, None
        n_fixed = self.grams.shape[1] - n_columns_before
        n_columns_after = self.columns.size
        if remaining is not None:
            n_columns_after = int(remaining.max(initial=-1)) + 1
        n_new = n_columns_after - n_columns_before
        if n_new > 0:
            self.grams = np.pad(self.grams, ((0, 0), (0, n_new), (0, n_new)))
        if remaining is None:
            return n_new, None
        kept = np.concatenate([np.arange(n_fixed), n_fixed + remaining])
        self.grams = np.ascontiguousarray(self.grams[:, kept[:, np.newaxis], kept])
        return n_new, kept

    def add_to_past(self, observed: Array, newer: int) -> None:
        """Put an outcome (d,) among the last ones, behind the ``newer`` latest."""
        _put_into_past(observed, newer, self.past)  # the newest first
        self._solutions = None

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._solutions = None

    def _positions_of_lags(self, width: int, ahead: int) -> list[int]:
        """Return where the lags are among the last outcomes, seen from the round that is asked."""
        positions = [lag - 1 for lag in self._affordable_lags(width)]
        for index, season in enumerate(self.seasons[: len(positions)]):
            positions[index] = (season - 1 - ahead) % season
        return positions

    def _affordable_lags(self, width: int) -> Sequence[int]:
        """Return the lags whose outcomes, of ``width`` numbers each, are few enough features.

        It is one at least; none before the first round, when the width is 0.
        """
        if not width:
            return []
        return self.lags[: max(1, MAX_FEATURES // width)]


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

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_cross",)

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
        self.regressors = Regressors(lags=self.lags, seasons=self.seasons)
        self._system = self.regressors.system_of(self.forgetting, self.ridge)
        self._cross = np.zeros((1, size))

    @property
    def gram(self) -> Array:
        """G (k, k) of its features."""
        gram: Array = self.regressors.grams[self._system]
        return gram

    @gram.setter
    def gram(self, gram: Array) -> None:
        n_systems = len(self.regressors.grams)
        if self.regressors.grams.shape[1:] != gram.shape:
            self.regressors.grams = np.zeros((n_systems, *gram.shape))
        self.regressors.grams[self._system] = gram

    def share_regressors(self, other: "LeastSquares") -> None:
        """Share the features with another regression of the same lags and seasons.

        It may be of another basis, or forget at another rate. Both must be told the same outcomes
        in the same contexts. From a round on of which one learns its statistics alone, or which it
        lets pass, it goes on by itself.
        """
        self.regressors = other.regressors
        self.regressors.is_shared = True
        self._system = self.regressors.system_of(self.forgetting, self.ridge)

    def _go_on_alone(self) -> None:
        """Share the features with no other regression any more."""
        if self.regressors.is_shared:
            self.regressors = self.regressors.alone(self._system)
            self._system = 0

    def opened(self) -> Any:
        return self.regressors.lagged_outcomes.copy()

    def reopen(self, x: object, opened: Any) -> None:
        self.regressors.reopen(x, opened, round_index=self.time)

    def open_round(self, x: object) -> None:
        """Open a round with this context, as a prediction does, without predicting it."""
        self.regressors.open_round(x, self.ahead)

    def _predicted(self, x: object) -> Array:
        prediction = np.empty(self.size)
        self.write_prediction(x, prediction)
        return prediction

    def write_prediction(self, x: object, prediction: Array) -> None:
        if not self.time:
            self.open_round(x)
            prediction[:] = 0.5
            return
        solution = self.regressors.solutions(x, self.ahead)[self._system]
        np.matmul(solution, self._cross, out=prediction)
        prediction += 0.5

    def _learn(self, statistics: Array) -> None:
        observed = self._outcome
        self._outcome = None
        if observed is None:
            self._go_on_alone()
            observed = statistics
        learned = self.regressors.learn(observed, round_index=self.time, newer=self.newer)
        if not self.time:
            n_features_before = len(learned.row) - learned.n_new
            self._cross = np.zeros((n_features_before, self.size))
        if learned.n_new or learned.kept is not None:
            self._cross = learned.rearranged(self._cross)
        _add_to_cross(learned.row, statistics, self.forgetting, self._cross)

    def skip_round(self, x: object = None) -> None:
        self.skip_round_as(self.point(x))

    def skip_round_as(self, stand_in: Array) -> None:
        """Let a round pass with a forecast (d,) in the place of its outcome, which is missing."""
        if self.time:  # before, there is no past in which the round could be missed
            self._go_on_alone()
            self.regressors.add_to_past(stand_in, self.newer)

    def state(self) -> dict[str, Any]:
        return super().state() | self.regressors.state() | {"gram": self.gram.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.regressors.restore(state)
        self.regressors.rounds = self.time
        self.gram = np.asarray(state["gram"])


def share_features(models: Iterable[Forecaster]) -> None:
    """Let those of the models that are regressions on the same features share them.

    These have the same lags and seasons. All must be told the same outcomes in the same contexts,
    as the models of one aggregate are: their systems are then solved together.
    """
    # By the lags and seasons, the regression with which the others share:
    first_regressions: dict[tuple[tuple[int, ...], tuple[int, ...]], LeastSquares] = {}
    for model in models:
        if type(model) is not LeastSquares:
            continue
        lags_and_seasons = tuple(model.lags), tuple(model.seasons)
        first_regression = first_regressions.setdefault(lags_and_seasons, model)
        if first_regression is not model:
            model.share_regressors(first_regression)
