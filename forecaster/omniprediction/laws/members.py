r"""Single conditional laws: P(y | x) as weights w_j(x) on a support of outcomes y_j.

With such weights the expectation of any function of the outcome is one product,

    E[f(y) | x] = sum_j w_j(x) f(y_j),

also for a loss that comes later, and no basis and no error of one enters. The support is the rows
that were learned from, and after them the nodes of a lattice between their outcomes. Weights are

    leaves       the share of trees in whose leaf x and x_j fall together, divided by the leaf's
                 rows: quantile regression forests (Meinshausen 2006), there for quantiles
    neighbours   a Gaussian kernel in a point forecast m, K((m(x) - m_j) / h), with m_j the forecast
                 for row j of a model that did not see it: a law conditional on a forecast alone
                 (Walz, Henzi, Ziegel, Gneiting 2024, there by isotonic regression)
    residuals    the forecast and what it missed, m(x) + y_j - m_j with the same kernel, each such
                 point shared out between the nodes around it, its mean kept: a wide kernel then
                 smooths the noise and not the forecast
    marginal     the same for all x
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from regretless.forecaster.omniprediction.laws.trees import Leaves, Trees
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.numerics.threads import over_rows

CHUNK = 2048  # rows whose weights are made at once
FEW, MANY = 2500, 40  # rows at most and functions at least where to make weights first is faster
FLOOR = 1e-12  # weight of a row that is no neighbour: nobody is left without a law
FEWEST = 64  # rows whose points are shared out by more than one core
MOST_KNOTS = {1: 1000, 2: 24, 3: 10}  # of a lattice along an axis, by the number of outcomes


class Predictor(Protocol):
    """A conditional law."""

    def expected(self, features: Array, table: Array) -> Array:
        """Return E[f | x] (m, q) at features (m, f) of functions with values (support, q)."""


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
        """See ``Predictor``."""
        nodes = len(self.trees.feature)
        inside = _membership(self.leaves, nodes).T @ sparse.diags(self.weights)
        mass = np.maximum(np.asarray(inside.sum(1)).ravel(), FLOOR)
        shares = sparse.diags(1 / (mass * self.leaves.shape[1])) @ inside
        asked = _membership(self.trees.leaves(features), nodes)
        known = table[: len(self.weights)]
        if len(known) <= FEW and table.shape[1] >= MANY:
            return np.asarray((asked @ shares).toarray() @ known)
        return np.asarray(asked @ (shares @ known))


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
        """See ``Predictor``."""
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
class Lattice:
    """Nodes between outcomes: all combinations of knots, one of each axis.

    Parameters
    ----------
    knots : array (k,)
        Of all axes, one after the other, ascending in each.
    ends : int array (d + 1,)
        Where each axis begins, and the last one ends.

    Raises
    ------
    ValueError
        If these are no axes, as in a file that somebody forged.
    """

    knots: Array
    ends: Indices

    def __post_init__(self) -> None:
        inside = self.ends[0] == 0 and self.ends[-1] == len(self.knots)
        if not inside or (np.diff(self.ends) < 0).any() or not np.isfinite(self.knots).all():
            raise ValueError("these numbers are no lattice")

    @classmethod
    def of(cls, outcomes: Array) -> Self:
        """Take knots among outcomes (m, d); none of more than three."""
        most = MOST_KNOTS.get(outcomes.shape[1], 0)
        axes = [np.unique(column) for column in outcomes.T]
        places = [np.linspace(0, len(axis) - 1, most).round().astype(np.intp) for axis in axes]
        kept = [axis[np.unique(place)] for axis, place in zip(axes, places, strict=True)]
        return cls(np.concatenate(kept), np.cumsum([0, *map(len, kept)]))

    @property
    def nodes(self) -> Array:
        """Where they are (G, d)."""
        axes = np.split(self.knots, self.ends[1:-1])
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


@dataclass(frozen=True, eq=False)
class Residuals:
    """A forecast, and what it missed on rows with nearly the same one.

    Parameters
    ----------
    forecasts, missed : array (r, d)
        Of the rows that may be neighbours: forecast by a model that did not see them, and the
        outcome less that; the first coordinate of what was missed ascends.
    weights : array (r,)
    width : array (d,)
        h, of the kernel.

    Raises
    ------
    ValueError
        If these do not fit each other, as in a file that somebody forged.
    """

    model: Linear | Boosted
    forecasts: Array
    missed: Array
    weights: Array
    width: Array
    lattice: Lattice

    def __post_init__(self) -> None:
        wanted = len(self.weights), len(self.lattice.ends) - 1
        shapes = {self.forecasts.shape, self.missed.shape, (wanted[0], len(self.width))}
        if shapes != {wanted} or (np.diff(self.lattice.ends) < 1).any():
            raise ValueError("what was missed has no place on the lattice")

    @classmethod
    def of(cls, near: Neighbours, outcomes: Array, lattice: Lattice) -> Self:
        """Take the neighbours in a forecast, which are rows of outcomes (m, d)."""
        missed = outcomes[near.places] - near.forecasts
        order = np.argsort(missed[:, 0], kind="stable")
        own = near.forecasts[order], missed[order], near.weights[order]
        return cls(near.model, *own, near.width, lattice)

    def expected(self, features: Array, table: Array) -> Array:
        """See ``Predictor``."""
        return self.around(self.model.forecast(features), table)

    def around(self, here: Array, table: Array) -> Array:
        """Return E[f] (m, q) where forecasts are (m, d)."""
        nodes = int(np.diff(self.lattice.ends).prod())
        return _in_parts(partial(self._shared, nodes), here, table[-nodes:])

    def _shared(self, nodes: int, here: Array) -> Array:
        """Share the points out between the nodes: (m, G)."""
        if here.shape[1] != len(self.width):
            raise ValueError("the forecast has another number of outcomes")
        found = np.zeros((len(here), nodes))
        own = self.forecasts, self.missed, self.weights, 1.0 / self.width
        given = np.ascontiguousarray(here), *own, self.lattice.knots, self.lattice.ends, found
        over_rows(_share, len(here), *given, fewest=FEWEST)
        return np.asarray(found / found.sum(1, keepdims=True))


@compiled(nogil=True)
def _share(  # noqa: PLR0913 - arrays of one kernel
    here: Any,
    forecasts: Any,
    missed: Any,
    weights: Any,
    width: Any,
    knots: Any,
    ends: Any,
    found: Any,
    start: int,
    stop: int,
) -> None:
    """Share out what rows of a span missed; ``width`` is its inverse."""
    axes = len(width)
    below, above, steps = np.zeros(axes, np.intp), np.zeros(axes), np.zeros(len(knots))
    for c in range(axes):
        for b in range(ends[c], ends[c + 1] - 1):
            steps[b] = 1.0 / (knots[b + 1] - knots[b])
    for i in range(start, stop):
        below[0] = 0
        for j in range(len(missed)):
            apart = 0.0
            for c in range(axes):
                apart += ((here[i, c] - forecasts[j, c]) * width[c]) ** 2
                first, last = ends[c], ends[c + 1] - 1
                point = min(max(here[i, c] + missed[j, c], knots[first]), knots[last])
                b = below[0] if c == 0 else first  # along the first axis points only go up
                while b < last and knots[b + 1] <= point:
                    b += 1
                below[c], above[c] = b, (point - knots[b]) * steps[b]
            mass = (np.exp(-0.5 * apart) + FLOOR) * weights[j]
            for corner in range(1 << axes):
                part, node = mass, 0
                for c in range(axes):
                    up = (corner >> c) & 1
                    part *= above[c] if up else 1.0 - above[c]
                    node = node * (ends[c + 1] - ends[c]) + below[c] - ends[c] + up
                if part > 0.0:
                    found[i, node] += part


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
        """See ``Predictor``."""
        known = table[: len(self.weights)]
        return np.tile(np.average(known, 0, self.weights), (len(features), 1))
