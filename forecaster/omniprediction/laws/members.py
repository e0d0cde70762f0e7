r"""Single conditional laws: P(y | x) as weights w_j(x) on the rows j that were learned from.

With such weights the expectation of any function of the outcome is one product,

    E[f(y) | x] = sum_j w_j(x) f(y_j),

also for a loss that comes later, and no basis and no error of one enters. Weights are

    leaves       the share of trees in whose leaf x and x_j fall together, divided by the leaf's
                 rows: quantile regression forests (Meinshausen 2006), there for quantiles
    neighbours   a Gaussian kernel in a point forecast m, K((m(x) - m_j) / h), with m_j the forecast
                 for row j of a model that did not see it: a law conditional on a forecast alone
                 (Walz, Henzi, Ziegel, Gneiting 2024, there by isotonic regression)
    marginal     the same for all x
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from regretless.forecaster.omniprediction.laws.trees import Leaves, Trees
from regretless.market.core.arrays import Array, Indices

CHUNK = 2048  # rows whose weights are made at once
FEW, MANY = 2500, 40  # rows at most and functions at least where to make weights first is faster
FLOOR = 1e-12  # weight of a row that is no neighbour: nobody is left without a law


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
        here = self.model.forecast(features)
        found = np.empty((len(here), table.shape[1]))
        for first in range(0, len(here), CHUNK):
            near = kernel(here[first : first + CHUNK], self.forecasts, self.width) * self.weights
            near /= near.sum(1, keepdims=True)
            found[first : first + CHUNK] = near @ table[self.places]
        return found


def kernel(here: Array, there: Array, width: Array) -> Array:
    """Weigh forecasts (r, d) by their distance from others (m, d): (m, r)."""
    ours, theirs = here / width, there / width
    apart = (ours**2).sum(1)[:, None] + (theirs**2).sum(1) - 2 * ours @ theirs.T
    return np.asarray(np.exp(-0.5 * np.maximum(apart, 0.0)) + FLOOR)


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
