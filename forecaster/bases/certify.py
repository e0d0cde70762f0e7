r"""A proof of a basis's error: an upper bound on sup_y |l(a, y) - r_0(a) - sum_i r_i(a) s_i(y)|.

Interval arithmetic. Over a box of outcomes a loss has the exact range c +- w and the functions
the ranges c_i +- w_i, so that everywhere in the box

    |l - r_0 - sum_i r_i s_i|  <=  |c - r_0 - sum_i r_i c_i| + w + sum_i |r_i| w_i.

With ranges of the partial derivatives c_j +- w_j for the loss and c_ij +- w_ij for the functions,
the mean value theorem bounds it by the distance at the box's midpoint plus

    sum_j h_j / 2 (|c_j - sum_i r_i c_ij| + w_j + sum_i |r_i| w_ij)        for sides h_j,

which no longer adds up what loss and functions have in common: where all are smooth the excess
falls with the square of the side. The smaller of the two bounds counts.

Branch and bound. The cube is cut into a grid of boxes, and the pairs (loss, box) with the largest
bounds are cut into 2^d again, best first, until the largest is within a tolerance of the greatest
distance met at a midpoint (which no bound can undercut), or until the budget is spent. Whatever
is left, the largest bound over the remaining boxes holds for every outcome. The first boxes
are even in sqrt(y), finer towards 0, where losses such as y ** 0.3 are steep.

The bound is true in exact arithmetic; ``ROUNDING`` is added for floating point.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.losses import Loss

Enclose = Callable[[Array, Array], tuple[Array, Array]]

BUDGET = 100_000_000  # evaluations of (loss, action, box): about 20 s with 20 functions
TOLERANCE = 0.25
ROUNDING = 1e-12
FIRST_BOXES = 512
NUMBERS = 1 << 22  # in one table of functions over boxes: 32 MiB
FINEST = 1 << 30  # boxes along a side; coordinates are 32-bit


@dataclass(frozen=True)
class ErrorCertificate:
    """What a search has proved."""

    upper: float  # no outcome is further from its linear form than this
    lower: float  # some outcome is as far as this
    evaluations: int  # triples (loss, action, box) that it took


@dataclass(frozen=True)
class _Pairs:
    owner: Indices  # (P,) which loss
    level: Indices  # (P,) how often the box's side was halved
    place: NDArray[np.int32]  # (P, d) the box's coordinates on the grid of its level
    bound: Array  # (P,)

    def __getitem__(self, index: Indices | Mask) -> "_Pairs":
        return _Pairs(self.owner[index], self.level[index], self.place[index], self.bound[index])

    def __add__(self, other: "_Pairs") -> "_Pairs":
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Pairs(*(np.concatenate(pair) for pair in both))


def certify(  # noqa: PLR0913 - what is certified, then how hard to try
    loss: Loss,
    offset: Array,
    weights: Array,
    enclose: Enclose,
    slopes: Enclose,
    *,
    cells: Array | None = None,
    target: float = 0.0,
    tolerance: float = TOLERANCE,
    limit: float = math.inf,
    budget: int = BUDGET,
) -> ErrorCertificate:
    """Bound the error of linear forms over all outcomes, from above and from below.

    They are r_0 (..., A) and r_1..r_n (..., A, n) of one loss or a stack of K, along one axis. From
    boxes ``low, high`` (T, d) ``enclose`` returns the least and greatest values (T, n) of the
    functions there, at points the values themselves, and ``slopes`` those of their partial
    derivatives (T, d, n), at kinks of both sides.

    ``cells`` are edges of the first boxes along each side, ascending from 0 to 1, best where losses
    or functions have kinks; about 512 boxes in all by default. A bound at or below the ``target``
    is good enough, and so is one within a share ``tolerance`` of the greatest error met. It gives
    up when an error above the ``limit`` is met, or after a ``budget`` of (loss, action, box).
    """
    search = _Search(loss, offset, weights, enclose, slopes)
    if cells is None:
        count = max(2, round(FIRST_BOXES ** (1 / loss.outcomes)))
        cells = np.linspace(0, 1, count + 1) ** 2
    if cells[0] != 0 or cells[-1] != 1 or (np.diff(cells) <= 0).any():
        raise ValueError("edges must ascend from 0 to 1")
    pairs = search.start(cells)
    lower, settled = 0.0, 0.0
    while True:
        enough = max(target, (1 + tolerance) * lower)
        cut = (pairs.bound > enough) & (pairs.level < search.deepest)
        settled = max(settled, float(pairs.bound[~cut].max(initial=0.0)))
        pairs = pairs[cut]
        room = (budget - search.evaluations) // (search.actions * search.cost)
        count = min(len(pairs.bound), search.batch, room)
        if count <= 0 or lower > limit:
            break
        worst = np.argpartition(-pairs.bound, count - 1)[:count]
        met, children = search.split(pairs[worst], enough)
        lower = max(lower, met)
        pairs = pairs[np.delete(np.arange(len(pairs.bound)), worst)] + children
    upper = max(settled, float(pairs.bound.max(initial=0.0)))
    return ErrorCertificate(upper + ROUNDING, lower, search.evaluations)


class _Search:
    def __init__(
        self, loss: Loss, offset: Array, weights: Array, enclose: Enclose, slopes: Enclose
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
        self.enclose, self.slopes = enclose, slopes
        children = 2**self.outcomes
        self.cost = 1 + 2 * children
        self.rows = max(1, NUMBERS // max(self.weights.shape[-1], self.actions))
        self.batch = max(1, self.rows // (children * self.outcomes))
        self.evaluations = 0
        self.steps = np.array(list(itertools.product((0, 1), repeat=self.outcomes)))

    def start(self, edges: Array) -> _Pairs:
        """Pair every loss with every box of the first grid."""
        self.edges, self.deepest = edges, math.floor(math.log2(FINEST / len(edges)))
        sides = itertools.product(range(len(edges) - 1), repeat=self.outcomes)
        grid, count = np.array(list(sides), np.int32), len(self.parts)
        level = np.zeros(len(grid), dtype=np.intp)
        bounds = []
        for part in np.split(grid, range(self.rows, len(grid), self.rows)):
            every = np.divmod(np.arange(count * len(part)), len(part))  # losses and boxes
            bound = self._first_order(*every, *self._ends(level[: len(part)], part))
            bounds.append(bound.reshape(count, -1))
        owner, index = np.divmod(np.arange(count * len(grid)), len(grid))
        return _Pairs(owner, level[index], grid[index], np.concatenate(bounds, axis=1).ravel())

    def split(self, pairs: _Pairs, enough: float) -> tuple[float, _Pairs]:
        """Return the greatest error at the boxes' midpoints, and the pairs of their parts."""
        pairs = pairs[np.argsort(pairs.owner, kind="stable")]
        keys = np.column_stack([pairs.level, pairs.place])
        boxes, where = np.unique(keys, axis=0, return_inverse=True)
        level, place, where = boxes[:, 0], boxes[:, 1:], where.ravel()
        low, high = self._ends(level, place)
        met = self._first_order(pairs.owner, where, (low + high) / 2, (low + high) / 2)

        children = len(self.steps)
        finer = (2 * place[:, None, :] + self.steps).reshape(-1, self.outcomes).astype(np.int32)
        levels, owner = np.repeat(level + 1, children), np.repeat(pairs.owner, children)
        index = (where[:, None] * children + np.arange(children)).ravel()
        ends = self._ends(levels, finer)
        bound = self._first_order(owner, index, *ends)
        left = np.flatnonzero(bound > enough)
        if left.size:
            used, where = np.unique(index[left], return_inverse=True)
            second = self._second_order(owner[left], where, ends[0][used], ends[1][used])
            bound[left] = np.minimum(bound[left], second)
        return float(met.max()), _Pairs(owner, levels[index], finer[index], bound)

    def _ends(self, level: Indices, place: NDArray[np.int32]) -> tuple[Array, Array]:
        marks, parts = np.arange(len(self.edges)), 2.0 ** level[:, None]
        low, high = (np.interp(at / parts, marks, self.edges) for at in (place, place + 1))
        return low, high

    def _first_order(self, owner: Indices, index: Indices, low: Array, high: Array) -> Array:
        """Bound the error of each owner (ascending) in the box with each index, worst action."""
        least, greatest = self.enclose(low, high)
        middle, radius = (least + greatest) / 2, (greatest - least) / 2
        bound = np.empty(len(owner))
        for k, part in self._runs(owner):
            boxes = index[part]
            under, over = self.parts[k].enclosure(low[boxes], high[boxes])
            centre = (under + over) / 2 - self.offset[k] - middle[boxes] @ self.weights[k].T
            width = (over - under) / 2 + radius[boxes] @ np.abs(self.weights[k]).T
            bound[part] = (np.abs(centre) + width).max(-1)
        return bound

    def _second_order(self, owner: Indices, index: Indices, low: Array, high: Array) -> Array:
        """Bound the same by the error at the midpoint and the slope of the error."""
        point, half = (low + high) / 2, (high - low) / 2
        least, greatest = self.slopes(low, high)
        middle, radius = (least + greatest) / 2, (greatest - least) / 2
        values = self.enclose(point, point)[0]
        bound = np.empty(len(owner))
        for k, part in self._runs(owner):
            boxes, form = index[part], self.weights[k].T
            under, over = self.parts[k].slopes(low[boxes], high[boxes])
            slope = (under + over).swapaxes(1, 2) / 2 - middle[boxes] @ form
            width = (over - under).swapaxes(1, 2) / 2 + radius[boxes] @ np.abs(form)
            drift = (half[boxes, :, None] * (np.abs(slope) + width)).sum(1)
            error = self.parts[k].losses(point[boxes]) - self.offset[k] - values[boxes] @ form
            bound[part] = (np.abs(error) + drift).max(-1)
        return bound

    def _runs(self, owner: Indices) -> Iterator[tuple[int, slice]]:
        """Yield every owner with its stretch of pairs, and count them."""
        self.evaluations += len(owner) * self.actions
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        for first, last in itertools.pairwise([*starts.tolist(), len(owner)]):
            yield int(owner[first]), slice(first, last)
