r"""Single conditional laws: P(y | x) as weights w_j(x) on the rows j that were learned from.

With such weights the expectation of any function of the outcome is one product,

    E[f(y) | x] = sum_j w_j(x) f(y_j),

also for a loss that comes later, and no basis and no error of one enters. Weights are

    leaves       the share of trees in whose leaf x and x_j fall together, divided by the leaf's
                 rows: quantile regression forests (Meinshausen 2006), there for quantiles
    neighbours   a Gaussian kernel in a point forecast m, K((m(x) - m_j) / h), with m_j the forecast
                 for row j of a model that did not see it: a law conditional on a forecast alone
                 (Walz, Henzi, Ziegel, Gneiting 2024, there by isotonic regression)
    residuals    the forecast and what it missed, m(x) + y_j - m_j with the same kernel, each such
                 point shared out between the two outcomes that it lies between, its mean kept:
                 for one outcome, of which rows lie close; a wide kernel then smooths the noise and
                 not the forecast (conditional residuals, as in Hyndman and Athanasopoulos 2021,
                 5.5, with all of them)
    marginal     the same for all x
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numba
import numpy as np
from scipy import sparse

from regretless.forecaster.omniprediction.laws.trees import Leaves, Trees
from regretless.market.core.arrays import Array, Indices

CHUNK = 2048  # rows whose weights are made at once
FEW, MANY = 2500, 40  # rows at most and functions at least where to make weights first is faster
FLOOR = 1e-12  # weight of a row that is no neighbour: nobody is left without a law
MOST_KNOTS = 1000  # outcomes that residuals are shared out between


class Member(Protocol):
    """A conditional law."""

    def expected(self, features: Array, table: Array) -> Array:
        """Return E[f | x] (m, q) at features (m, f) of functions with values (rows, q)."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """A forest's leaves.

    Parameters
    ----------
    leaves : int array (rows, trees)
        Of the rows that were learned from.
    weights : array (rows,)
        Of these rows; 0 for those that do not count.
    """

    trees: Trees
    leaves: Leaves
    weights: Array

    def expected(self, features: Array, table: Array) -> Array:
        """See ``Member``."""
        nodes = len(self.trees.feature)
        inside = _membership(self.leaves, nodes).T @ sparse.diags(self.weights)
        mass = np.maximum(np.asarray(inside.sum(1)).ravel(), FLOOR)
        shares = sparse.diags(1 / (mass * self.leaves.shape[1])) @ inside
        asked = _membership(self.trees.leaves(features), nodes)
        if len(table) <= FEW and table.shape[1] >= MANY:
            return np.asarray((asked @ shares).toarray() @ table)
        return np.asarray(asked @ (shares @ table))


def _membership(leaves: Leaves, nodes: int) -> Any:
    """0 and 1 (rows, nodes): which row is in which leaf."""
    rows, trees = leaves.shape
    ends = np.arange(0, rows * trees + 1, trees)
    return sparse.csr_matrix((np.ones(rows * trees), leaves.ravel(), ends), (rows, nodes))


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear forecast.

    Parameters
    ----------
    weights : array (1 + f, d)
        The constant first.
    """

    weights: Array

    def forecast(self, features: Array) -> Array:
        """Forecast every row: (m, d)."""
        return np.asarray(self.weights[0] + features @ self.weights[1:])


@dataclass(frozen=True, eq=False)
class Boosted:
    """Boosted trees.

    Parameters
    ----------
    start : array (d,)
    trees : tuple of Trees
        For each coordinate of the outcome.
    """

    start: Array
    trees: tuple[Trees, ...]

    def forecast(self, features: Array) -> Array:
        """Forecast every row: (m, d)."""
        return self.start + np.stack([own.sums(features) for own in self.trees], axis=1)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows with nearly the same forecast.

    Parameters
    ----------
    places : int array (r,)
        The rows that may be neighbours, at most a few thousand.
    forecasts : array (r, d)
        Theirs, by a model that did not see them.
    weights : array (r,)
    width : array (d,)
        h, of the kernel.
    """

    model: Linear | Boosted
    places: Indices
    forecasts: Array
    weights: Array
    width: Array

    def expected(self, features: Array, table: Array) -> Array:
        """See ``Member``."""
        return self.around(self.model.forecast(features), table)

    def around(self, here: Array, table: Array) -> Array:
        """Return E[f] (m, q) where forecasts are (m, d)."""
        return _in_parts(self._near, here, table[self.places])

    def _near(self, here: Array) -> Array:
        """Weigh the neighbours by their distance: (m, r)."""
        ours, theirs = here / self.width, self.forecasts / self.width
        apart = (ours**2).sum(1)[:, None] + (theirs**2).sum(1) - 2 * ours @ theirs.T
        near = (np.exp(-0.5 * np.maximum(apart, 0.0)) + FLOOR) * self.weights
        return np.asarray(near / near.sum(1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Residuals:
    """A forecast of one outcome, and what it missed on rows with nearly the same one.

    Parameters
    ----------
    forecasts, missed, weights : array (r,)
        Of the rows that may be neighbours: forecast by a model that did not see them, the outcome
        less that, which ascends, and how much a row counts.
    width : float
        h, of the kernel.
    knots : array (k,)
        Outcomes, ascending.
    rows : int array (k,)
        Who has them.
    """

    model: Linear | Boosted
    forecasts: Array
    missed: Array
    weights: Array
    width: float
    knots: Array
    rows: Indices

    @classmethod
    def of(cls, near: Neighbours, counting: Indices, outcomes: Array) -> Self:
        """Take the neighbours in a forecast; ``counting`` rows of outcomes (rows, 1) may happen."""
        forecasts, (width,) = near.forecasts[:, 0], near.width
        missed = outcomes[near.places, 0] - forecasts
        order = np.argsort(missed, kind="stable")
        knots, rows = np.unique(outcomes[counting, 0], return_index=True)
        kept = np.unique(np.linspace(0, len(knots) - 1, MOST_KNOTS).round().astype(np.intp))
        own = forecasts[order], missed[order], near.weights[order]
        return cls(near.model, *own, float(width), knots[kept], counting[rows[kept]])

    def expected(self, features: Array, table: Array) -> Array:
        """See ``Member``."""
        return self.around(self.model.forecast(features), table)

    def around(self, here: Array, table: Array) -> Array:
        """Return E[f] (m, q) where forecasts are (m, 1)."""
        return _in_parts(self._shared, here, table[self.rows])

    def _shared(self, here: Array) -> Array:
        """Share the points out between the knots: (m, k)."""
        found = np.zeros((len(here), len(self.knots)))
        neighbours = self.forecasts, self.missed, self.weights, self.width
        _share(np.ascontiguousarray(here[:, 0]), *neighbours, self.knots, found)
        return np.asarray(found / found.sum(1, keepdims=True))


@numba.njit(cache=True, nogil=True)
def _share(  # noqa: PLR0913 - arrays of one kernel
    here: Any, forecasts: Any, missed: Any, weights: Any, width: Any, knots: Any, found: Any
) -> None:
    last = len(knots) - 1
    for i in range(len(here)):
        b = 0
        for j in range(len(missed)):  # ascending, so that b never goes back
            apart = (here[i] - forecasts[j]) / width
            mass = (np.exp(-0.5 * apart * apart) + FLOOR) * weights[j]
            point = min(max(here[i] + missed[j], knots[0]), knots[last])
            while b < last and knots[b + 1] <= point:
                b += 1
            above = (point - knots[b]) / (knots[b + 1] - knots[b]) if b < last else 0.0
            found[i, b] += mass * (1.0 - above)
            if above > 0.0:
                found[i, b + 1] += mass * above


def _in_parts(weigh: Callable[[Array], Array], here: Array, table: Array) -> Array:
    """Expect functions (r, q) with weights (m, r), few rows at a time."""
    found = np.empty((len(here), table.shape[1]))
    for first in range(0, len(here), CHUNK):
        found[first : first + CHUNK] = weigh(here[first : first + CHUNK]) @ table
    return found


@dataclass(frozen=True, eq=False)
class Marginal:
    """The law of all rows.

    Parameters
    ----------
    weights : array (rows,)
    """

    weights: Array

    def expected(self, features: Array, table: Array) -> Array:
        """See ``Member``."""
        return np.tile(np.average(table, 0, self.weights), (len(features), 1))
