r"""Forecasts of the outcome y itself, turned into forecasts E s(y) and mended by their own past.

A forecast is an increasing, piecewise linear function Q of a number u per coordinate of y, so that
y = Q(u): the quantiles at the levels u, continued beyond the first and the last as between their
neighbours; sorted samples are quantiles at even levels; a point is Q(u) = y^ + u - 1/2. Every
round remembers the marks u = Q^-1(y) of the outcome, all coordinates together; the prediction
is the mean over the last ``WINDOW`` marks

    E s(y) ~ mean_u s(Q(u)).

Of a point forecast the marks are its residuals; of quantiles they are probability integral
transforms, even on [0, 1] where the forecast is calibrated, and otherwise they say how it is not.
Before any marks there are the point, the samples, or an even grid of levels; the marks take over
within ``SURE`` rounds.
"""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.models.base import Model, check, features, kept
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.losses.basis import Basis

WINDOW = 64  # marks that are remembered
SURE = 8  # marks without which the forecast is believed as it is
REACH = 20.0  # how far beyond 0 and 1 a mark may lie
TIE = 1e-9  # slope of Q where quantiles are equal
SPAN = 1e-6  # outcomes so near are the same


class Spread(NamedTuple):
    """A forecast of one outcome."""

    values: Array  # (d, L) quantiles of every coordinate; with L = 1 a point
    levels: Array | None = None  # (L,) ascending, in (0, 1); None for equally likely samples

    def at(self, marks: Array) -> Array:
        """Return the outcomes (m, d) at marks (m, d), kept to [0, 1]."""
        pairs = zip(marks.T, self._knots(), strict=True)
        return kept(np.array([np.interp(mark, *knots) for mark, knots in pairs]).T)

    def mark(self, outcome: Array, turn: float) -> Array:
        """Return the marks (d,) of an outcome; among many the one at ``turn`` in [0, 1]."""
        pairs = zip(outcome, self._knots(), strict=True)
        ends = np.array([np.interp((y - SPAN, y + SPAN), *knots[::-1]) for y, knots in pairs])
        return np.asarray(ends[:, 0] + turn * (ends[:, 1] - ends[:, 0]))

    def _knots(self) -> list[tuple[Array, Array]]:
        """Return levels and values of Q for every coordinate, with a knot beyond either end."""
        size = self.values.shape[1]
        levels = (np.arange(size) + 0.5) / size if self.levels is None else self.levels
        wide = np.concatenate([[-REACH], levels, [1 + REACH]])
        values = np.sort(self.values)  # continued as between the two next to the ends
        slopes = np.diff(values) / np.diff(levels) if size > 1 else np.ones((len(values), 1))
        below = values[:, 0] - slopes[:, 0] * (wide[1] - wide[0])
        above = values[:, -1] + slopes[:, -1] * (wide[-1] - wide[-2])
        continued = np.column_stack([below, values, above]) + TIE * wide
        return [(wide, row) for row in continued]


def lattice(coordinates: int) -> Array:
    """Return points (WINDOW, d), even on [0, 1] in every coordinate, as a lattice jointly."""
    steps = np.array([pow(19, i, WINDOW) for i in range(coordinates)])
    return (np.outer(np.arange(WINDOW), steps) % WINDOW + 0.5) / WINDOW


class OutcomeModel(Model):
    """Predicts E s(y) by forecasts of y; subclasses say which. It learns from outcomes."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_marks", "_marked")

    def __init__(self, basis: Basis) -> None:
        super().__init__(basis.size)
        self.basis = basis
        self._marks, self._marked = np.zeros((WINDOW, basis.outcomes)), 0
        self._spread: Spread | None = None

    def _told(self, x: object) -> Spread:
        """Return the forecast of this round's outcome."""
        raise NotImplementedError

    def _predicted(self, x: object) -> Array:
        self._spread = told = self._told(x)
        known = self._marks[: min(self._marked, WINDOW)]
        share = min(self._marked / SURE, 1.0)
        mean = np.zeros(self.size)
        if share > 0:
            mean += share * self.basis.transform(told.at(known)).mean(0)
        if share < 1:
            even = told.values.T if told.levels is None else told.at(lattice(self.basis.outcomes))
            mean += (1 - share) * self.basis.transform(kept(even)).mean(0)
        return mean

    def opened(self) -> Any:
        return None if self._spread is None else self._spread._asdict()

    def reopen(self, x: object, opened: Any) -> None:
        self._spread = None if opened is None else Spread(**opened)

    def _learn(self, truth: Array) -> None:
        if self._outcome is None:
            return
        if self._spread is not None:
            turn = (self.time + 1) * 0.6180339887498949 % 1  # evenly, and never the same
            self._marks[self._marked % WINDOW] = self._spread.mark(self._outcome, turn)
            self._marked += 1
        self._seen(self._outcome)
        self._spread = self._outcome = None

    def _seen(self, outcome: Array) -> None:
        """Learn the outcome (d,), where the forecasts depend on it."""


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
        self.columns = [[names] if isinstance(names, str) else list(names) for names in columns]
        self.levels = own = None if levels is None else np.array(levels, dtype=np.float64)
        counts = {len(names) for names in self.columns} | ({len(own)} if own is not None else set())
        fine: Any = len(columns) == basis.outcomes and len(counts) == 1 and min(counts)
        wanted = f"{basis.outcomes} outcomes' names, each as many, one per level"
        check(fine, "columns", self.columns, wanted)
        fine = own is None or ((np.diff(own) > 0).all() and 0 < own[0] < own[-1] < 1)
        check(fine, "levels", own, "at least two, ascending, between 0 and 1")

    def _told(self, x: object) -> Spread:
        named = features(x)
        for name in itertools.chain(*self.columns):
            if name not in named:
                raise UserError(f"no feature '{name}' in the context; {closest(name, named)}")
            if not np.isfinite(named[name]):
                raise UserError(f"feature '{name}' is {named[name]}; a forecast needs a number")
        return Spread(
            np.array([[named[name] for name in row] for row in self.columns]), self.levels
        )
