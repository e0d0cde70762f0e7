r"""A proof of a basis's error: an upper bound on sup_y |l(a, y) - r_0(a) - sum_i r_i(a) s_i(y)|.

Interval arithmetic. Over a box of outcomes a loss has the exact range c +- w and the functions
the ranges c_i +- w_i, so that everywhere in the box

    |l - r_0 - sum_i r_i s_i|  <=  |c - r_0 - sum_i r_i c_i| + w + sum_i |r_i| w_i.

Branch and bound. The cube is cut into a grid of boxes, and the pairs (loss, box) with the largest
bounds are cut into 2^d again, best first, until the largest is within a tolerance of the greatest
distance met at a midpoint (which no bound can undercut), or until the budget is spent. Whatever
is left, the largest bound over the remaining boxes holds for every outcome. Boxes are even in
sqrt(y), finer towards 0, where losses such as y ** 0.3 are steep.

The bound is true in exact arithmetic; ``ROUNDING`` is added for floating point.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from market.losses import Loss

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Enclose = Callable[[Array, Array], tuple[Array, Array]]

BUDGET = 100_000_000  # evaluations of (loss, action, box): about 20 s with 20 functions
TOLERANCE = 0.25
ROUNDING = 1e-12
FIRST_BOXES = 512
NUMBERS = 1 << 22  # in one table of functions over boxes: 32 MiB
FINEST = 1 << 30  # boxes along a side; coordinates are 32-bit


@dataclass(frozen=True)
class Certificate:
    """What a search has proved.

    Attributes
    ----------
    upper : float
        No outcome is further from its linear form than this.
    lower : float
        Some outcome is as far as this.
    evaluations : int
        Triples (loss, action, box) that it took.
    """

    upper: float
    lower: float
    evaluations: int


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a loss and a box, with what is known of the error there."""

    owner: Indices  # (P,) which loss
    level: Indices  # (P,) how often the box's side was halved
    place: NDArray[np.int32]  # (P, d) the box's coordinates on the grid of its level
    bound: Array  # (P,)

    def __getitem__(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> _Pairs:
        return _Pairs(self.owner[index], self.level[index], self.place[index], self.bound[index])

    def __add__(self, other: _Pairs) -> _Pairs:
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Pairs(*(np.concatenate(pair) for pair in both))


def certify(  # noqa: PLR0913 - what is certified, then how hard to try
    loss: Loss,
    offset: Array,
    weights: Array,
    enclose: Enclose,
    *,
    cells: int | None = None,
    target: float = 0.0,
    tolerance: float = TOLERANCE,
    budget: int = BUDGET,
) -> Certificate:
    """Bound the error of linear forms over all outcomes, from above and from below.

    Parameters
    ----------
    loss : Loss
        One loss or a stack of K.
    offset : array (..., A)
        r_0 of every action.
    weights : array (..., A, n)
        r_1..r_n of every action.
    enclose : callable
        From boxes ``low, high`` (T, d) to the least and greatest values (T, n) of the functions
        there. Degenerate boxes, points, must give the values themselves.
    cells : int, optional
        Boxes along each side of the first grid; about 512 boxes in all unless said.
    target : float
        A bound at or below this is good enough.
    tolerance : float
        So is one within this share of the greatest error met.
    budget : int
        Most evaluations of (loss, action, box).

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If the losses are stacked along several axes or the shapes do not match.
    """
    search = _Search(loss, offset, weights, enclose, cells)
    pairs = search.start()
    lower, settled = 0.0, 0.0
    while True:
        enough = max(target, (1 + tolerance) * lower)
        cut = (pairs.bound > enough) & search.divisible(pairs.level)
        settled = max(settled, float(pairs.bound[~cut].max(initial=0.0)))
        pairs = pairs[cut]
        room = (budget - search.evaluations) // (search.actions * (search.children + 1))
        count = min(len(pairs.bound), search.batch, room)
        if count <= 0:
            break
        worst = np.argpartition(-pairs.bound, count - 1)[:count]
        met, children = search.split(pairs[worst])
        lower = max(lower, met)
        pairs = pairs[np.delete(np.arange(len(pairs.bound)), worst)] + children
    upper = max(settled, float(pairs.bound.max(initial=0.0)))
    return Certificate(upper + ROUNDING, lower, search.evaluations)


def certified_error(  # noqa: PLR0913 - as above
    loss: Loss,
    offset: Array,
    weights: Array,
    enclose: Enclose,
    *,
    cells: int | None = None,
    target: float = 0.0,
    tolerance: float = TOLERANCE,
    budget: int = BUDGET,
) -> float:
    """Bound the error of linear forms over all outcomes from above.

    Parameters
    ----------
    loss, offset, weights, enclose, cells, target, tolerance, budget : as in ``certify``

    Returns
    -------
    float
        At least sup_y |l(a, y) - r_0(a) - sum_i r_i(a) s_i(y)| over all losses and actions.
    """
    found = certify(
        loss,
        offset,
        weights,
        enclose,
        cells=cells,
        target=target,
        tolerance=tolerance,
        budget=budget,
    )
    return found.upper


class _Search:
    """The losses with their linear forms, and how boxes are evaluated and cut."""

    def __init__(
        self, loss: Loss, offset: Array, weights: Array, enclose: Enclose, cells: int | None
    ) -> None:
        if len(loss.stack) > 1:
            raise ValueError(f"losses are stacked along {len(loss.stack)} axes; give one stack")
        if offset.shape != (*loss.stack, loss.actions) or weights.shape[:-1] != offset.shape:
            shapes = f"{offset.shape} and {weights.shape}"
            raise ValueError(f"coefficients of shape {shapes} for losses {loss.offset.shape}")
        self.outcomes, self.actions = loss.outcomes, loss.actions
        self.parts = [loss[k] for k in range(len(loss))] if loss.stack else [loss]
        self.offset = offset.reshape(-1, self.actions)
        self.weights = weights.reshape(len(self.parts), self.actions, -1)
        self.enclose = enclose
        self.cells = cells or max(2, round(FIRST_BOXES ** (1 / self.outcomes)))
        self.children = 2**self.outcomes
        size = max(self.weights.shape[-1], self.actions)
        self.batch = max(1, NUMBERS // (size * self.children))
        self.evaluations = 0

    def divisible(self, level: Indices) -> NDArray[np.bool_]:
        """Whether boxes of these levels can be cut once more."""
        return np.asarray(self.cells * 2 ** (level + 1) <= FINEST)

    def start(self) -> _Pairs:
        """Pair every loss with every box of the first grid."""
        grid = np.array(list(itertools.product(range(self.cells), repeat=self.outcomes)), np.int32)
        rows = max(1, NUMBERS // max(self.weights.shape[-1], self.actions))
        parts = [self._whole(grid[first : first + rows]) for first in range(0, len(grid), rows)]
        whole = parts[0]
        for part in parts[1:]:
            whole += part
        return whole

    def split(self, pairs: _Pairs) -> tuple[float, _Pairs]:
        """Return the greatest error at the boxes' midpoints, and the pairs of their parts."""
        pairs = pairs[np.argsort(pairs.owner, kind="stable")]
        keys = np.column_stack([pairs.level, pairs.place])
        boxes, where = np.unique(keys, axis=0, return_inverse=True)
        where = where.ravel()
        level, place = boxes[:, 0], boxes[:, 1:]
        low, high = self._ends(level, place)
        met = self._bound(pairs.owner, where, (low + high) / 2, (low + high) / 2)

        steps = np.array(list(itertools.product((0, 1), repeat=self.outcomes)))
        finer = (2 * place[:, None, :] + steps).reshape(-1, self.outcomes).astype(np.int32)
        levels = np.repeat(level + 1, self.children)
        owner = np.repeat(pairs.owner, self.children)
        index = (where[:, None] * self.children + np.arange(self.children)).ravel()
        bound = self._bound(owner, index, *self._ends(levels, finer))
        return float(met.max()), _Pairs(owner, levels[index], finer[index], bound)

    def _whole(self, place: NDArray[np.int32]) -> _Pairs:
        """Pair every loss with all of these boxes of the first grid."""
        count, boxes = len(self.parts), len(place)
        owner = np.repeat(np.arange(count), boxes)
        index = np.tile(np.arange(boxes), count)
        level = np.zeros(boxes, dtype=np.intp)
        bound = self._bound(owner, index, *self._ends(level, place))
        return _Pairs(owner, level[index], place[index], bound)

    def _ends(self, level: Indices, place: NDArray[np.int32]) -> tuple[Array, Array]:
        """Opposite corners (T, d) of boxes: a division, so that neighbours share their ends."""
        sides = (self.cells * 2**level)[:, None]
        return (place / sides) ** 2, ((place + 1) / sides) ** 2

    def _bound(self, owner: Indices, index: Indices, low: Array, high: Array) -> Array:
        """Bound the error of each owner (ascending) in the box with each index, worst action."""
        least, greatest = self.enclose(low, high)
        middle, radius = (least + greatest) / 2, (greatest - least) / 2
        bound = np.empty(len(owner))
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        for first, last in itertools.pairwise([*starts.tolist(), len(owner)]):
            k, boxes = owner[first], index[first:last]
            under, over = self.parts[k].enclosure(low[boxes], high[boxes])
            centre = (under + over) / 2 - self.offset[k] - middle[boxes] @ self.weights[k].T
            width = (over - under) / 2 + radius[boxes] @ np.abs(self.weights[k]).T
            bound[first:last] = (np.abs(centre) + width).max(-1)
        self.evaluations += len(owner) * self.actions
        return bound
