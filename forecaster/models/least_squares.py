r"""Recursive least squares with forgetting, on contexts and on the last outcomes.

All n numbers of s(y) are regressed on the same features f: 1, the last outcomes, and the columns of
the context (``columns``). After t rounds, with forgetting lambda and ridge rho, the coefficients
are those of the discounted ridge regression

    W_t = argmin_W  sum_s lambda^(t-s) |s(y_s) - 1/2 - f_s W|^2 + rho |W|^2
        = (G_t + rho I)^-1 C_t,    G_t = lambda G_(t-1) + f_t' f_t,    C_t likewise with s(y) - 1/2.

The ridge stands outside of what is forgotten: where the features do not move for long, G fades in
the other directions and the coefficients go to 0 there; nothing winds up. A round needs f W alone,
which is one symmetric system; it is eliminated from the last feature to the first, so that levels
of a column, which never come together, leave each other alone.
"""

from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, features
from regretless.forecaster.models.columns import Columns
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

MOST = 64  # features of each kind: of the past, of the context
LONGEST = 10_000  # a season
ONE = np.ones(1)


@register.forecaster("least-squares")
class LeastSquares(Model):
    """A linear forecast from the context and the last outcomes; one half at first.

    Parameters
    ----------
    lags : int
        Outcomes of the past that are features, at least 0; as many as fit in ``MOST`` numbers.
    season : int or None
        One more outcome, so many rounds ago; it has room first.
    forgetting : float
        What a round's weight is multiplied by from round to round, in (0, 1]; 1 forgets nothing.
    ridge : float
        Greater than 0.

    Notes
    -----
    Where it does not observe outcomes, the past is that of s(y).
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_columns", "_past", "_gram", "_cross")

    def __init__(
        self,
        size: int,
        *,
        lags: int = 3,
        season: int | None = None,
        forgetting: float = 1.0,
        ridge: float = 1.0,
    ) -> None:
        super().__init__(size)
        if lags != int(lags) or not 0 <= lags <= MOST:
            raise ValueError(f"lags is {lags}; give a whole number from 0 to {MOST}")
        if season is not None and (season != int(season) or not 1 <= season <= LONGEST):
            raise ValueError(f"season is {season}; give a whole number from 1 to {LONGEST}")
        if not 0 < forgetting <= 1:
            raise ValueError(f"forgetting is {forgetting}; give a number in (0, 1]")
        if not 0 < ridge < np.inf:
            raise ValueError(f"ridge is {ridge}; give a number greater than 0")
        self.lags = [*([int(season)] if season else []), *range(1, int(lags) + 1)]
        self.forgetting, self.ridge = forgetting, ridge
        self._columns = Columns(MOST)
        self._past = np.empty((0, 0))  # the last outcomes, the newest first
        self._seen = self._past  # those that the open round's prediction was made of
        self._gram, self._cross = np.zeros((1, 1)), np.zeros((1, size))
        self._open: dict[str, float] = {}

    def opened(self) -> Any:
        """Return the past that the open round's prediction was made of."""
        return self._past.copy()

    def reopen(self, x: Any, opened: Any) -> None:
        """Go back to a round that was open, with the past as it was known then."""
        self._open, self._seen = features(x), opened

    def _predicted(self, x: Any) -> Array:
        self._open, self._seen = features(x), self._past
        row = self._row()
        if not self.time:
            return np.full(self.size, 0.5)
        return 0.5 + solved(self._gram, self.ridge, row) @ self._cross

    def _row(self) -> Array:
        """Return the features of the open round: 1, the past, the context."""
        past = [self._seen[lag - 1] for lag in self._lagged(self._seen.shape[1])]
        return np.concatenate([ONE, *past, self._columns.encoded(self._open)])

    def _lagged(self, width: int) -> list[int]:
        """Return the lags that have room, one at least; none before the first round."""
        return self.lags[: max(1, MOST // width)] if width else []

    def _learn(self, truth: Array) -> None:
        told, self._outcome = truth if self._outcome is None else self._outcome, None
        if not self.time:  # make room for the past, of which nothing is known yet
            width = len(told[:MOST])
            lagged = self._lagged(width)
            self._past = np.zeros((max(lagged, default=0), width))
            known = 1 + width * len(lagged)
            self._gram, self._cross = np.zeros((known, known)), np.zeros((known, self.size))
        if self._seen.shape != self._past.shape:  # the first round's, of which nothing was known
            self._seen = np.zeros_like(self._past)
        self._grow()
        _add(self._gram, self._cross, self._row(), truth - 0.5, self.forgetting)
        if len(self._past):
            self._past[1:] = self._past[:-1]
            self._past[0] = told[:MOST] - 0.5

    def _grow(self) -> None:
        """Learn the context, and make room for its new features."""
        before = self._columns.size
        remain = self._columns.learn(self._open)
        first = len(self._gram) - before
        after = self._columns.size if remain is None else int(remain.max(initial=-1)) + 1
        if (more := after - before) > 0:
            self._gram = np.pad(self._gram, (0, more))
            self._cross = np.pad(self._cross, ((0, more), (0, 0)))
        if remain is not None:
            rows = np.concatenate([np.arange(first), first + remain])
            self._gram, self._cross = self._gram[np.ix_(rows, rows)], self._cross[rows]


@compiled()
def _add(gram: Array, cross: Array, row: Array, truth: Array, forgetting: float) -> None:
    """Discount both sums, and add a round to them."""
    for i in range(len(row)):
        for j in range(len(row)):
            gram[i, j] = gram[i, j] * forgetting + row[i] * row[j]
        for j in range(len(truth)):
            cross[i, j] = cross[i, j] * forgetting + row[i] * truth[j]


@compiled()
def solved(gram: Array, ridge: float, target: Array) -> Array:
    """Solve (gram + ridge I) z = target for a symmetric, non-negative gram (F, F)."""
    size = len(gram)
    table, z = gram.copy(), target.copy()
    for i in range(size):
        table[i, i] += ridge
    for j in range(size - 1, -1, -1):
        for i in range(j):
            if table[j, i] != 0:
                share = table[j, i] / table[j, j]
                for k in range(i + 1):
                    table[i, k] -= share * table[j, k]
                z[i] -= share * z[j]
    for i in range(size):
        for k in range(i):
            z[i] -= table[i, k] * z[k]
        z[i] /= table[i, i]
    return z
