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

# From the lowest and highest corners of boxes (T, d) to the least and greatest values there.
RangeOverBoxes = Callable[[Array, Array], tuple[Array, Array]]
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
    ranges_of_functions: RangeOverBoxes,
    ranges_of_slopes: RangeOverBoxes,
    *,
    cells: Array | None = None,
    target: float = 0.0,
    tolerance: float = TOLERANCE,
    limit: float = math.inf,
    budget: int = BUDGET,
) -> ErrorCertificate:
    """Bound the error of linear forms over all outcomes, from above and from below.

    They are r_0 (..., A) and r_1..r_n (..., A, n) of one loss or a stack of K, along one axis. From
    boxes ``low, high`` (T, d) ``ranges_of_functions`` returns the least and greatest values (T, n)
    of the functions there, at points the values themselves, and ``ranges_of_slopes`` those of their
    partial derivatives (T, d, n), at kinks of both sides.

    ``cells`` are edges of the first boxes along each side, ascending from 0 to 1, best where losses
    or functions have kinks; by default 512 boxes, finer towards 0, where losses such as y ** 0.3
    are steep. A bound at or below the ``target`` is good enough, and so is one within a share
    ``tolerance`` of the greatest error met. It gives up when an error above the ``limit`` is met,
    or after a ``budget`` of (loss, action, box).
    """
    if cells is None:
        boxes_per_side = max(2, round(FIRST_BOXES ** (1 / loss.outcomes)))
        # squared, so that boxes are finer near 0, where losses such as y ** 0.3 are steep
        cells = np.linspace(0, 1, boxes_per_side + 1) ** 2
    search = _Search(loss, offset, weights, ranges_of_functions, ranges_of_slopes)
    low_corners = grid_points(cells[:-1], loss.outcomes)
    high_corners = grid_points(cells[1:], loss.outcomes)
    first_boxes = np.stack([low_corners, high_corners], axis=1)  # (boxes, 2, d)
    n_pairs = len(search.losses) * len(first_boxes)
    loss_index, box_index = np.divmod(np.arange(n_pairs), len(first_boxes))
    first_bounds = search.first_order(loss_index, box_index, first_boxes)
    # pairs of a loss and a box
    pairs = search.pairs_with_bounds(loss_index, first_boxes[box_index], first_bounds)
    greatest_error_met = 0.0  # at the midpoints of the boxes that were split
    settled_bound = 0.0  # the greatest bound of pairs that are good enough and no longer looked at
    n_children = 2**loss.outcomes  # of a box that is cut
    # a child is bounded twice, and the box's own midpoint is looked at
    evaluations_per_split = loss.actions * (1 + 2 * n_children)
    numbers_per_split = max(weights.shape[-1], loss.actions) * n_children * loss.outcomes
    max_splits_at_once = max(1, MAX_NUMBERS // numbers_per_split)
    while True:
        # a bound up to this is good enough: no bound can be below an error that was met
        accepted = max(target, (1 + tolerance) * greatest_error_met)
        is_open = pairs["bound"] > accepted
        settled_bound = max(settled_bound, float(pairs["bound"][~is_open].max(initial=0.0)))
        pairs = pairs[is_open]
        affordable_splits = (budget - search.evaluations) // evaluations_per_split
        n_splits = min(len(pairs), max_splits_at_once, affordable_splits)
        if n_splits <= 0 or greatest_error_met > limit:
            break
        worst = np.argpartition(-pairs["bound"], n_splits - 1)[:n_splits]
        midpoint_error, children = search.split(pairs[worst], accepted)
        greatest_error_met = max(greatest_error_met, midpoint_error)
        pairs = np.concatenate([np.delete(pairs, worst), children])
    upper = max(settled_bound, float(pairs["bound"].max(initial=0.0)))
    return ErrorCertificate(upper + ROUNDING, greatest_error_met, search.evaluations)


class _Search:
    """Bounds the errors of K single losses over boxes, and counts what that took."""

    def __init__(
        self,
        loss: Loss,
        offset: Array,
        weights: Array,
        ranges_of_functions: RangeOverBoxes,
        ranges_of_slopes: RangeOverBoxes,
    ) -> None:
        stack = loss.as_stack()
        self.losses = [stack[k] for k in range(len(stack))]
        self.outcomes = loss.outcomes
        # the losses' linear forms
        self.offset = offset.reshape(-1, loss.actions)  # (K, A)
        self.weights = weights.reshape(len(stack), loss.actions, -1)  # (K, A, n)
        # ranges of the basis's functions over boxes, and of their partial derivatives
        self.ranges_of_functions = ranges_of_functions
        self.ranges_of_slopes = ranges_of_slopes
        self.evaluations = 0  # of (loss, action, box)

    def pairs_with_bounds(self, loss_index: Indices, box: Array, bound: Array) -> Pairs:
        """Put pairs of losses (P,) and boxes (P, 2, d) together with their bounds (P,).

        Each bound is an upper one, of the error of the pair's loss in its box.
        """
        fields = [("loss", np.intp), ("box", np.float64, (2, self.outcomes)), ("bound", float)]
        pairs = np.empty(len(loss_index), dtype=fields)
        pairs["loss"] = loss_index
        pairs["box"] = box
        pairs["bound"] = bound
        return pairs

    def split(self, pairs: Pairs, enough: float) -> tuple[float, Pairs]:
        """Cut the boxes of pairs into 2^d each.

        Returns the greatest error at the boxes' midpoints, and the pairs of the halved boxes. A
        bound that is ``enough`` needs no second order.
        """
        # bounds are computed loss by loss, for which the pairs of a loss must stand together
        pairs = pairs[np.argsort(pairs["loss"], kind="stable")]
        boxes, box_of_pair = np.unique(pairs["box"], axis=0, return_inverse=True)
        box_of_pair = box_of_pair.ravel()
        midpoints = boxes.mean(1, keepdims=True)  # (boxes, 1, d)
        # boxes without extent (boxes, 2, d): there the bound is the error itself
        points = np.repeat(midpoints, 2, axis=1)
        midpoint_errors = self.first_order(pairs["loss"], box_of_pair, points)

        # Along each axis a child goes from the box's low end to its middle, or from there to the
        # high end: marks 0 to 1, or 1 to 2.
        marks = np.concatenate([boxes[:, :1], midpoints, boxes[:, 1:]], axis=1)  # (boxes, 3, d)
        halves = np.array(list(itertools.product((0, 1), repeat=self.outcomes)))  # (2^d, d)
        marks_of_children = halves[:, None] + np.array([[0], [1]])  # (2^d, 2, d)
        # (boxes, 2^d, 2, d): of coordinate j the marks of coordinate j
        children = marks[:, marks_of_children, np.arange(self.outcomes)]
        children = children.reshape(-1, 2, self.outcomes)  # (boxes 2^d, 2, d)
        n_halves = len(halves)
        loss_index = np.repeat(pairs["loss"], n_halves)
        child_index = (box_of_pair[:, None] * n_halves + np.arange(n_halves)).ravel()
        bound = self.first_order(loss_index, child_index, children)
        undecided = np.flatnonzero(bound > enough)  # the others are good enough as they are
        if undecided.size:
            used_children, box_of_undecided = np.unique(child_index[undecided], return_inverse=True)
            second_order = self._second_order(
                loss_index[undecided], box_of_undecided, children[used_children]
            )
            bound[undecided] = np.minimum(bound[undecided], second_order)
        pairs_of_children = self.pairs_with_bounds(loss_index, children[child_index], bound)
        return float(midpoint_errors.max()), pairs_of_children

    def first_order(self, loss_index: Indices, box_index: Indices, boxes: Array) -> Array:
        """Bound the greatest error of any action of losses (P,), ascending, each in its box."""
        low = boxes[:, 0]
        high = boxes[:, 1]
        middle, radius = _middle_and_radius(self.ranges_of_functions(low, high))  # (boxes, n)
        bound = np.empty(len(loss_index))
        for k, pairs_of_loss in self._pairs_by_loss(loss_index):
            boxes_of_pairs = box_index[pairs_of_loss]
            range_of_loss = self.losses[k].enclosure(low[boxes_of_pairs], high[boxes_of_pairs])
            middle_of_loss, radius_of_loss = _middle_and_radius(range_of_loss)  # (pairs, A)
            middle_of_form = self.offset[k] + middle[boxes_of_pairs] @ self.weights[k].T
            radius_of_form = radius[boxes_of_pairs] @ np.abs(self.weights[k]).T
            # the error is the loss less its linear form: middles are subtracted, radii add up
            middle_of_error = middle_of_loss - middle_of_form
            radius_of_error = radius_of_loss + radius_of_form
            bound[pairs_of_loss] = (np.abs(middle_of_error) + radius_of_error).max(-1)
        return bound

    def _second_order(self, loss_index: Indices, box_index: Indices, boxes: Array) -> Array:
        """Bound the same by the error at the midpoint and the slope of the error."""
        low = boxes[:, 0]
        high = boxes[:, 1]
        midpoint = (low + high) / 2
        half_side = (high - low) / 2
        middle, radius = _middle_and_radius(self.ranges_of_slopes(low, high))  # (boxes, d, n)
        values = self.ranges_of_functions(midpoint, midpoint)[0]
        bound = np.empty(len(loss_index))
        for k, pairs_of_loss in self._pairs_by_loss(loss_index):
            boxes_of_pairs = box_index[pairs_of_loss]
            weights = self.weights[k].T  # (n, A)
            slopes_of_loss = self.losses[k].slopes(low[boxes_of_pairs], high[boxes_of_pairs])
            middle_of_loss, radius_of_loss = _middle_and_radius(slopes_of_loss)
            # those are (pairs, A, d); from here on (pairs, d, A), of the error: loss less form
            middle_of_form = middle[boxes_of_pairs] @ weights
            radius_of_form = radius[boxes_of_pairs] @ np.abs(weights)
            middle_of_error = middle_of_loss.swapaxes(1, 2) - middle_of_form
            radius_of_error = radius_of_loss.swapaxes(1, 2) + radius_of_form
            steepest_slope = np.abs(middle_of_error) + radius_of_error
            drift = (half_side[boxes_of_pairs, :, None] * steepest_slope).sum(1)
            losses = self.losses[k].losses(midpoint[boxes_of_pairs])
            error = losses - self.offset[k] - values[boxes_of_pairs] @ weights
            bound[pairs_of_loss] = (np.abs(error) + drift).max(-1)
        return bound

    def _pairs_by_loss(self, loss_index: Indices) -> Iterator[tuple[int, slice]]:
        """Yield every loss with its stretch of pairs, and count the evaluations."""
        self.evaluations += len(loss_index) * self.offset.shape[1]
        starts = np.flatnonzero(np.diff(loss_index, prepend=-1))  # where another loss begins
        for first, end in itertools.pairwise([*starts.tolist(), len(loss_index)]):
            yield int(loss_index[first]), slice(first, end)


def _middle_and_radius(ends: tuple[Array, Array]) -> tuple[Array, Array]:
    """Write ranges from their lowest to their highest ends as middle +- radius."""
    lowest, highest = ends
    return (lowest + highest) / 2, (highest - lowest) / 2
