r"""Forecasts of the outcome y itself, turned into forecasts E s(y) and mended by their own past.

A forecast is an increasing, piecewise linear function Q of a number u per coordinate of y, so that
y = Q(u): the quantiles at the levels u, continued beyond the first and the last as between their
neighbours; sorted samples are quantiles at even levels; a point is Q(u) = y^ + u - 1/2. Every
round remembers the marks u = Q^-1(y) of the outcome, all coordinates together; the prediction
is the mean over the last ``window`` marks

    E s(y) ~ mean_u s(Q(u)).

So these models are distributions: Q(u) over the marks u are outcomes with weights, and every
expectation follows from them (``OutcomeModel.distribution``).

Of a point forecast the marks are its residuals; of quantiles they are probability integral
transforms, even on [0, 1] where the forecast is calibrated, and otherwise they say how it is not.
Before any marks there are the point, the samples, or an even grid of levels; the marks take over
within ``MARKS_TO_TAKE_OVER`` rounds.
"""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.models.base import Model, check, features, in_unit_cube
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.core.validation import check_int, check_unit_vector, check_whole, numbers
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis, checked_basis
from regretless.market.records import Ensemble, RoundFeedback

WINDOW = 64  # marks that are remembered, unless a model says otherwise
MAX_WINDOW = 10_000  # marks
MARKS_TO_TAKE_OVER = 8  # marks without which the forecast is believed as it is
MARK_OF_NO_ERROR = 0.5  # of a point forecast, whose other marks are this plus its error
GOLDEN = 0.6180339887498949  # the fractional parts of its multiples are spread evenly, none alike
MAX_BEYOND = 20.0  # how far beyond 0 and 1 a mark may lie
MIN_SLOPE = 1e-9  # slope of Q where quantiles are equal
MAX_GAP_OF_EQUAL_OUTCOMES = 1e-6  # outcomes so near are the same


class Spread(NamedTuple):
    """A forecast of one outcome: Q of every coordinate."""

    values: Array  # (d, L) quantiles of every coordinate; with L = 1 a point
    levels: Array | None = None  # (L,) ascending, in (0, 1); None for equally likely samples

    def at(self, marks: Array) -> Array:
        """Return the outcomes (m, d) at marks (m, d), kept to [0, 1]."""
        if self._is_point:
            return in_unit_cube(self.values.T + (marks - MARK_OF_NO_ERROR))
        outcomes = []
        for marks_of_coordinate, (levels, values) in zip(marks.T, self._knots(), strict=True):
            outcomes.append(np.interp(marks_of_coordinate, levels, values))
        return in_unit_cube(np.array(outcomes).T)

    def marks_of(self, outcome: Array, share_of_interval: float) -> Array:
        """Return the marks (d,) of an outcome; of many the one at this share of them."""
        if self._is_point:
            error = outcome - self.values[:, 0]
            return np.asarray(error + MARK_OF_NO_ERROR)
        ends_of_marks = []  # where many quantiles are nearly equal, an outcome has many marks
        for y, (levels, values) in zip(outcome, self._knots(), strict=True):
            interval_around_y = (y - MAX_GAP_OF_EQUAL_OUTCOMES, y + MAX_GAP_OF_EQUAL_OUTCOMES)
            ends_of_marks.append(np.interp(interval_around_y, values, levels))
        lowest, highest = np.array(ends_of_marks).T
        return np.asarray(lowest + share_of_interval * (highest - lowest))

    @property
    def _is_point(self) -> bool:
        """Whether it is a point forecast, whose marks are its errors and 1/2."""
        return self.levels is None and self.values.shape[1] == 1

    def _knots(self) -> list[tuple[Array, Array]]:
        """Return levels and values of Q for every coordinate, with a knot beyond either end."""
        size = self.values.shape[1]
        levels = (np.arange(size) + 0.5) / size if self.levels is None else self.levels
        extended_levels = np.concatenate([[-MAX_BEYOND], levels, [1 + MAX_BEYOND]])
        values = np.sort(self.values)  # continued as between the two next to the ends
        slopes = np.diff(values) / np.diff(levels) if size > 1 else np.ones((len(values), 1))
        lowest_value = values[:, 0] - slopes[:, 0] * (extended_levels[1] - extended_levels[0])
        highest_value = values[:, -1] + slopes[:, -1] * (extended_levels[-1] - extended_levels[-2])
        extended_values = np.column_stack([lowest_value, values, highest_value])
        increasing_values = extended_values + MIN_SLOPE * extended_levels
        return [(extended_levels, values) for values in increasing_values]


def lattice(coordinates: int) -> Array:
    """Return points (``WINDOW``, d), even on [0, 1] in each coordinate, as a lattice jointly."""
    steps = np.array([pow(19, i, WINDOW) for i in range(coordinates)])
    return (np.outer(np.arange(WINDOW), steps) % WINDOW + 0.5) / WINDOW


class Coordinates(Basis):
    """The outcome's own d coordinates, of a model that predicts the outcome and knows no losses."""

    lipschitz = 1.0
    error = 0.0
    convex_image = True

    def __init__(self, outcomes: int) -> None:
        self.outcomes = check_int("outcomes", outcomes, least=1)
        self.size = self.outcomes

    def transform(self, y: ArrayLike) -> Array:
        return np.asarray(y, dtype=np.float64)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        raise ValueError("these are a model's own coordinates; give LinearBasis for losses")


class DistributionModel(Model):
    """Predicts E s(y) as the mean of s over a distribution of outcomes; subclasses say which.

    It learns from outcomes y (d,). Where the statistics are the outcome itself (``Coordinates``),
    they are learned in its place.
    """

    basis: Basis

    def __init__(self, basis: Basis) -> None:
        super().__init__(checked_basis(basis).size)
        self.basis = basis
        self._learns_statistics = isinstance(basis, Coordinates)

    def distribution(self, x: object = None) -> Ensemble:
        """Return the forecast as outcomes of the unit cube (m, d), with their probabilities (m,).

        The prediction is the mean of s over them. As ``point`` it may be asked for twice.
        """
        raise NotImplementedError

    def _predicted(self, x: object) -> Array:
        (prediction,) = expected_statistics([self], x)
        return np.asarray(prediction)

    def learn_outcome(self, outcome: ArrayLike) -> None:
        """Learn the outcome (d,) of the round; the basis says its statistics."""
        realised = check_unit_vector("outcome", outcome, self.basis.outcomes)
        self.observe(RoundFeedback(self.basis.transform(realised), realised))

    def _learn(self, statistics: Array) -> None:
        outcome = self._outcome
        self._outcome = None
        if self._learns_statistics:
            outcome = statistics
        if outcome is not None:
            self._learn_outcome(outcome)

    def _learn_outcome(self, outcome: Array) -> None:
        """Learn the outcome (d,), where the forecasts depend on it."""


def expected_statistics(models: Sequence[DistributionModel], x: object) -> Array:
    """Return E s(y) of each of the models (M, n), which have one basis, for the open round.

    The basis is asked once, for the outcomes of all: most bases take about as long for 150 outcomes
    as for 70.
    """
    distributions = [model.distribution(x) for model in models]
    all_outcomes = distributions[0].outcomes
    if len(models) > 1:
        all_outcomes = np.concatenate([forecast.outcomes for forecast in distributions])
    all_images = models[0].basis.transform(all_outcomes)
    means = np.empty((len(models), models[0].size))
    first = 0
    for mean, forecast in zip(means, distributions, strict=True):
        end = first + len(forecast.weights)
        np.matmul(forecast.weights, all_images[first:end], out=mean)
        first = end
    return means


class OutcomeModel(DistributionModel):
    """Its distribution is that of quantiles or points, mended by their past.

    ``window`` is the number of past marks that it remembers, and of which its distribution is made.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_marks", "_marked")

    def __init__(self, basis: Basis, *, window: int = WINDOW) -> None:
        super().__init__(basis)
        self.window = check_whole("window", window, least=1, most=MAX_WINDOW)
        self._marks = np.zeros((self.window, basis.outcomes))
        self._marked = 0
        self._spread: Spread | None = None

    def _forecast_of_outcome(self, x: object) -> Spread:
        """Return the forecast of this round's outcome."""
        raise NotImplementedError

    def distribution(self, x: object = None) -> Ensemble:
        spread = self._forecast_of_outcome(x)
        self._spread = spread
        n_marks = min(self._marked, self.window)
        share = min(self._marked / MARKS_TO_TAKE_OVER, 1.0)
        outcomes = []
        weights = []
        if n_marks:
            outcomes.append(spread.at(self._marks[:n_marks]))
            weights.append(np.full(n_marks, share / n_marks))
        if share < 1:
            believed = spread.values.T
            if spread.levels is not None:
                believed = spread.at(lattice(self.basis.outcomes))
            outcomes.append(in_unit_cube(believed))
            weights.append(np.full(len(believed), (1 - share) / len(believed)))
        return Ensemble(np.concatenate(outcomes), np.concatenate(weights))

    def opened(self) -> Any:
        return None if self._spread is None else self._spread._asdict()

    def reopen(self, x: object, opened: Any) -> None:
        self._spread = None if opened is None else Spread(**opened)

    def _learn_outcome(self, outcome: Array) -> None:
        if self._spread is not None:
            # of many equal marks one by the golden ratio: evenly over time, and never the same
            share_of_interval = (self.time + 1) * GOLDEN % 1
            marks = self._spread.marks_of(outcome, share_of_interval)
            self._marks[self._marked % self.window] = marks
            self._marked += 1
            self._spread = None


class ColumnForecast(OutcomeModel):
    """Forecasts of y that are columns of the context, scaled to [0, 1] as y is.

    ``columns`` have an entry for each coordinate of y: the name of a feature, for a point forecast,
    or several names: quantiles, in the order of ``levels``, which ascend in (0, 1), or without
    levels samples, the first of every coordinate being one outcome, and so on.
    """

    def __init__(
        self,
        basis: Basis,
        *,
        columns: Sequence[str | Sequence[str]],
        levels: Sequence[float] | None = None,
    ) -> None:
        super().__init__(basis)
        self.columns = checked_columns(columns)
        self.levels: Array | None = None
        counts = {len(names) for names in self.columns}
        if levels is not None:
            self.levels = checked_levels(levels)
            counts.add(len(self.levels))
        is_fine = len(self.columns) == basis.outcomes and len(counts) == 1 and min(counts) > 0
        expected = f"{basis.outcomes} outcomes' names, each as many, one per level"
        check(is_fine, "columns", self.columns, expected)

    def _forecast_of_outcome(self, x: object) -> Spread:
        values_by_name = features(x)
        for name in itertools.chain(*self.columns):
            if name not in values_by_name:
                hint = closest(name, values_by_name)
                raise UserError(f"no feature '{name}' in the context; {hint}")
            value = values_by_name[name]
            if not np.isfinite(value):
                raise UserError(f"feature '{name}' is {value}; a forecast needs a number")
        names = itertools.chain(*self.columns)
        quantiles = np.array([values_by_name[name] for name in names])
        return Spread(quantiles.reshape(len(self.columns), -1), self.levels)


def checked_columns(columns: Any) -> list[list[str]]:
    """Return the names of features for each outcome; ParameterError if they are none."""
    expected = "a list with the name of a feature, or a list of names, for each outcome"
    check(isinstance(columns, list | tuple), "columns", columns, expected)
    names_of = [[names] if isinstance(names, str) else names for names in columns]
    for names in names_of:
        is_list = isinstance(names, list | tuple)
        is_fine = is_list and all(isinstance(name, str) for name in names)
        check(is_fine, "columns", columns, expected)
    return [list(names) for names in names_of]


def checked_levels(levels: Any) -> Array:
    """Return levels of quantiles; ParameterError unless there are two or more that ascend."""
    ascending_levels = numbers("levels", levels)
    expected = "at least two, ascending, between 0 and 1"
    check(ascending_levels.ndim == 1 and len(ascending_levels) > 1, "levels", levels, expected)
    is_within = ascending_levels[0] > 0 and ascending_levels[-1] < 1
    is_ascending = bool((np.diff(ascending_levels) > 0).all()) and is_within
    check(is_ascending, "levels", levels, expected)
    return ascending_levels
