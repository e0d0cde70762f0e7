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
distance met at a midpoint (which no bound can undercut), or until the budget is spent. The largest
bound over the remaining boxes holds for every outcome, in exact arithmetic; ``ROUNDING`` is added
for floating point.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, grid_points
from regretless.market.losses import Loss

Enclose = Callable[[Array, Array], tuple[Array, Array]]
Pairs = NDArray[Any]  # (P,) records: which loss, a box's lowest and highest corner, the bound

BUDGET = 100_000_000  # evaluations of (loss, action, box): about 20 s with 20 functions
TOLERANCE = 0.25
ROUNDING = 1e-12
FIRST_BOXES = 512
MAX_NUMBERS = 1 << 22  # in one table of functions over boxes: 32 MiB


class ErrorCertificate(NamedTuple):
    """What a search has proved."""

    upper: float  # no outcome is further from its linear form than this
    lower: float  # some outcome is as far as this
    evaluations: int  # triples (loss, action, box) that it took


def certify(
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
    or functions have kinks; by default 512 boxes, finer towards 0, where losses such as y ** 0.3
    are steep. A bound at or below the ``target`` is good enough, and so is one within a share
    ``tolerance`` of the greatest error met. It gives up when an error above the ``limit`` is met,
    or after a ``budget`` of (loss, action, box).
    """
    if cells is None:
        cells = np.linspace(0, 1, max(2, round(FIRST_BOXES ** (1 / loss.outcomes))) + 1) ** 2
    search = _Search(loss, offset, weights, enclose, slopes)
    grid = np.stack(
        [grid_points(edges, loss.outcomes) for edges in (cells[:-1], cells[1:])], axis=1
    )
    owner, index = np.divmod(np.arange(len(search.parts) * len(grid)), len(grid))
    pairs = search.pairs(owner, grid[index], search.first_order(owner, index, grid))
    lower = 0.0
    settled = 0.0
    halves = 2**loss.outcomes
    batch = max(1, MAX_NUMBERS // (max(weights.shape[-1], loss.actions) * halves * loss.outcomes))
    while True:
        accepted = max(target, (1 + tolerance) * lower)
        is_open = pairs["bound"] > accepted
        settled = max(settled, float(pairs["bound"][~is_open].max(initial=0.0)))
        pairs = pairs[is_open]
        affordable = (budget - search.evaluations) // (loss.actions * (1 + 2 * halves))
        count = min(len(pairs), batch, affordable)
        if count <= 0 or lower > limit:
            break
        worst = np.argpartition(-pairs["bound"], count - 1)[:count]
        error_met, children = search.split(pairs[worst], accepted)
        lower = max(lower, error_met)
        pairs = np.concatenate([np.delete(pairs, worst), children])
    upper = max(settled, float(pairs["bound"].max(initial=0.0)))
    return ErrorCertificate(upper + ROUNDING, lower, search.evaluations)


class _Search:
    def __init__(
        self, loss: Loss, offset: Array, weights: Array, enclose: Enclose, slopes: Enclose
    ) -> None:
        many = loss.as_stack()
        self.parts = [many[k] for k in range(len(many))]
        self.outcomes = loss.outcomes
        self.offset = offset.reshape(-1, loss.actions)
        self.weights = weights.reshape(len(many), loss.actions, -1)
        self.enclose = enclose
        self.slopes = slopes
        self.evaluations = 0

    def pairs(self, owner: Indices, box: Array, bound: Array) -> Pairs:
        fields = [("owner", np.intp), ("box", np.float64, (2, self.outcomes)), ("bound", float)]
        table = np.empty(len(owner), dtype=fields)
        table["owner"], table["box"], table["bound"] = owner, box, bound
        return table

    def split(self, pairs: Pairs, enough: float) -> tuple[float, Pairs]:
        """Return the greatest error at the boxes' midpoints, and the pairs of their parts."""
        pairs = pairs[np.argsort(pairs["owner"], kind="stable")]
        boxes, box_of_pair = np.unique(pairs["box"], axis=0, return_inverse=True)
        box_of_pair = box_of_pair.ravel()
        middle = boxes.mean(1, keepdims=True)
        error_met = self.first_order(pairs["owner"], box_of_pair, np.repeat(middle, 2, axis=1))

        marks = np.concatenate([boxes[:, :1], middle, boxes[:, 1:]], axis=1)
        halves = np.array(list(itertools.product((0, 1), repeat=self.outcomes)))
        marks_of_halves = halves[:, None] + np.array([[0], [1]])  # of the marks: (2^d, 2, d)
        halved_boxes = marks[:, marks_of_halves, np.arange(self.outcomes)].reshape(
            -1, 2, self.outcomes
        )
        owner = np.repeat(pairs["owner"], len(halves))
        index = (box_of_pair[:, None] * len(halves) + np.arange(len(halves))).ravel()
        bound = self.first_order(owner, index, halved_boxes)
        undecided = np.flatnonzero(bound > enough)
        if undecided.size:
            used_boxes, box_of_pair = np.unique(index[undecided], return_inverse=True)
            second_order = self._second_order(
                owner[undecided], box_of_pair, halved_boxes[used_boxes]
            )
            bound[undecided] = np.minimum(bound[undecided], second_order)
        return float(error_met.max()), self.pairs(owner, halved_boxes[index], bound)

    def first_order(self, owner: Indices, index: Indices, boxes: Array) -> Array:
        """Bound the error of each owner (ascending) in the box with each index, worst action."""
        low = boxes[:, 0]
        high = boxes[:, 1]
        middle, radius = _middle_and_radius(self.enclose(low, high))
        bound = np.empty(len(owner))
        for k, part in self._runs(owner):
            box_of_owner = index[part]
            centre, width = _middle_and_radius(
                self.parts[k].enclosure(low[box_of_owner], high[box_of_owner])
            )
            centre -= self.offset[k] + middle[box_of_owner] @ self.weights[k].T
            width += radius[box_of_owner] @ np.abs(self.weights[k]).T
            bound[part] = (np.abs(centre) + width).max(-1)
        return bound

    def _second_order(self, owner: Indices, index: Indices, boxes: Array) -> Array:
        """Bound the same by the error at the midpoint and the slope of the error."""
        low = boxes[:, 0]
        high = boxes[:, 1]
        point = (low + high) / 2
        half = (high - low) / 2
        middle, radius = _middle_and_radius(self.slopes(low, high))
        values = self.enclose(point, point)[0]
        bound = np.empty(len(owner))
        for k, part in self._runs(owner):
            box_of_owner = index[part]
            form = self.weights[k].T
            slope, width = _middle_and_radius(
                self.parts[k].slopes(low[box_of_owner], high[box_of_owner])
            )
            slope = np.abs(slope.swapaxes(1, 2) - middle[box_of_owner] @ form)
            width = width.swapaxes(1, 2) + radius[box_of_owner] @ np.abs(form)
            drift = (half[box_of_owner, :, None] * (slope + width)).sum(1)
            error = (
                self.parts[k].losses(point[box_of_owner])
                - self.offset[k]
                - values[box_of_owner] @ form
            )
            bound[part] = (np.abs(error) + drift).max(-1)
        return bound

    def _runs(self, owner: Indices) -> Iterator[tuple[int, slice]]:
        """Yield every owner with its stretch of pairs, and count them."""
        self.evaluations += len(owner) * self.offset.shape[1]
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        for first, last in itertools.pairwise([*starts.tolist(), len(owner)]):
            yield int(owner[first]), slice(first, last)


def _middle_and_radius(ends: tuple[Array, Array]) -> tuple[Array, Array]:
    return (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
