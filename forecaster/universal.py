r"""One outcome, and a promise to every task, listed or not: dyadic cells of one number.

Where s(y) is one number in [0, 1] and losses are linear in it, an agent who best-responds to a
prediction p plays an action on an interval of predictions. The events are [p in cell i of width
2^-s] for the scales s = 1..S, of which an interval of predictions that starts and ends with finest
cells is a disjoint union: at most two cells a scale, one where it starts at 0 or ends at 1.

**Prior.** A scale has 1/S of it, and its cells and their signs equal shares: counted as N experts,
as many as there are listed events beside them, each is q = N / (2 S 2^s) of one, so that a cell's
bias is below its rule's bound with 1/q times the experts.

**Regret.** With slopes r(a) and the variations C_e of cells

    T x regret <= sum_a max_c [ |r(a) - r(c)| sum over a's cells of beta_e(C_e) - M(a, c) ],

M the margins promised while a was played (docs/theory.md, 13 and 17), for any task, known to nobody
beforehand.

**The game in one number.** Predictions lie in the finest cells, one in each. With h(p) as in
``minimax.game``, a prediction gains h(p) (p - s) on s(y) = s. If h >= 0 at the first of them, it
alone gains at most h p; likewise the last where h <= 0. If neither, two neighbours have h_i <= 0 <=
h_j, and their mixture with h = 0 on average gains 2^-S |h_i| h_j / (|h_i| + h_j), at most 2^-S / 2,
whatever s is. A search in strides that double, from a model's prediction or the last round's, and
then by halves finds them with O(S) looks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.base import EventSet, EventSums
from regretless.forecaster.events.decision_events import VectorEvents, add_round, new_sums
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.norms import spread
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.minimax.cube import MAX_LATTICE_POINTS, Box
from regretless.forecaster.minimax.game import Game, Solution
from regretless.forecaster.models import ExponentialSmoothing
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.weights import AdaptiveWeights, BoundInputs, WeightRule
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import ParameterError, brief
from regretless.market.core.validation import check_int, check_unit_vector
from regretless.market.game.protocols import Forecaster
from regretless.market.losses import Linear
from regretless.market.losses.basis import Hull
from regretless.market.records import Ensemble, Event

# Where a prediction lies in its finest cell, as a share of the width: few losses tie there.
POSITION_IN_CELL = (math.sqrt(5) - 1) / 2
# Nodes of the tree of cells, in which node i has the children 2 i and 2 i + 1.
ROOT = 1  # all predictions, which is no cell
NODE_OF_FIRST_CELL = 2
MAX_ROUNDS = 10_000_000  # whose cells fit into memory
MIN_ROOT_ROUNDS = 13.0  # runs below its square have finer cells than 1 / T


def scales_for(rounds: int) -> int:
    """Return S: what a finest cell may gain, .62 x 2^-S, is within every round's tolerance."""
    return math.ceil(math.log2(max(rounds, MIN_ROOT_ROUNDS * math.sqrt(rounds))))


def priors_of_scales(scales: int, experts: int) -> Array:
    """Return q of a cell of every scale (S,), where all cells count as so many experts."""
    return np.asarray(experts / (2.0 * scales * 2.0 ** np.arange(1, scales + 1)))


class CellEvents(VectorEvents):
    """The cells of all scales; their lines of the table follow those of the listed losses.

    ``groups`` are of one number, ``scales`` is S, at least 1, and ``experts`` is N, how many they
    count as; their own number by default.
    """

    crossed = False

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        scales: int,
        rule: WeightRule | None = None,
        *,
        experts: int | None = None,
    ) -> None:
        self.rows = LossTable(groups)
        self.rule = rule or AdaptiveWeights()
        self.scales = scales  # S: cells have the widths 1/2 to 2^-S
        self.cell_rows = 2 ** (scales + 1) - 2  # 2 + 4 + ... + 2^S cells
        if self.size != 1:
            raise ValueError(f"cells are of one number; these losses are of {self.size}")
        self.experts = experts or 2 * self.cell_rows
        # Scale s has 2^s cells, of width 2^-s; in the game's table they follow the losses' rows.
        n_rows = self.rows.shape[0]
        self.views = []
        for scale, prior in enumerate(priors_of_scales(scales, self.experts), start=1):
            first_row = n_rows + 2**scale - 2  # after the 2 + ... + 2^(s - 1) cells of wider scales
            rows_of_scale = slice(first_row, first_row + 2**scale)
            self.views.append(new_sums(rows_of_scale, 1, prior=float(prior)))

    @property
    def alarms(self) -> int:
        """Count all cells with both signs, however few experts they count as in the prior."""
        return 2 * self.cell_rows

    def active(self, x: object, suggestions: Indices | None = None) -> list[EventSums]:
        return list(self.views)

    def charge(self, active: list[EventSums], played: Played) -> None:
        """Add a round to the biases of the cells that hold a prediction."""
        points, mass, statistics = played.distribution
        bias_of_points = mass * (points[:, 0] - statistics[0])
        for sums_of_scale in active:
            n_cells = len(sums_of_scale.occupancy)  # all of one width
            cell_of_point = (points[:, 0] * n_cells).astype(int)
            occupancy = np.bincount(cell_of_point, mass, n_cells).astype(float)
            bias = np.bincount(cell_of_point, bias_of_points, n_cells).astype(float)
            add_round(
                *sums_of_scale.arrays, bias[:, None], occupancy, 0, statistics, self.rule.squared
            )

    def bound(self, inputs: BoundInputs, hull: Hull) -> "CellBound":
        return CellBound(self.rule, inputs, hull=hull, scales=self.scales, cells=self.experts)

    @property
    def others(self) -> EventSet:
        return self

    def gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return (r(c) - r(a)) B, B the sum of the biases of the cells at which a is played."""
        biases = np.concatenate([view.gain[:, 0] for view in self.views])
        return self._by_actions(biases, group, losses) * _slope_gaps(group, losses)

    def most_gained(self, bound: RegretBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound it by |r(c) - r(a)| times the sum of what the cells' biases are at most."""
        biases_of_scales = []
        for sums in self.views:
            bound_of_scale = bound.with_inputs(prior=sums.prior)
            biases_of_scales.append(bound_of_scale.bias_at(sums.variation[:, 0]))
        greatest_biases = np.concatenate(biases_of_scales)
        absolute_gaps = np.abs(_slope_gaps(group, losses))
        return self._by_actions(greatest_biases, group, losses) * absolute_gaps

    def margins(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return the sums of l(c, p) - l(a, p) over predictions at which a was played (k, A, A)."""
        occupancies = np.concatenate([view.occupancy for view in self.views])
        predictions = np.concatenate([view.predicted[:, 0] for view in self.views])
        offset = group.offset[losses]
        of_offsets = self._by_actions(occupancies, group, losses) * _gaps(offset)
        slope_gaps = _slope_gaps(group, losses)
        return of_offsets + self._by_actions(predictions, group, losses) * slope_gaps

    def _by_actions(self, of_cells: Array, group: ProtectedLosses, losses: Indices) -> Array:
        """Add up what is known of all cells by the action that a loss's owner plays (k, A, 1)."""
        cells_and_actions = cells_of_actions(group, self.scales)
        n_actions = group.offset.shape[1]
        sums = np.zeros((len(losses), n_actions, 1))
        for place, k in enumerate(losses):
            cells, actions = cells_and_actions[k]
            sums[place, :, 0] = np.bincount(actions, of_cells[cells], minlength=n_actions)
        return sums

    def table(self) -> Iterator[Event]:
        return iter(())


@dataclass(frozen=True)
class CellBound(CoordinateBound):
    """Bound on the bias of every cell, and on the regret of any task."""

    scales: int = 1  # S
    cells: int = 1  # how many experts they count as

    def a_priori(
        self, coefficients: Array, *, policies: int = 0, rounds: int | None = None
    ) -> Array:
        """Bound the swap regret per round of losses (K, A, 1), as an array (K,)."""
        rounds = rounds or self.inputs.rounds
        thresholds = coefficients.shape[1] - 1
        if not thresholds:
            return np.zeros(len(coefficients))
        # how many cells of each scale the predictions of all actions are made of, at most (S,)
        n_cells = np.minimum(2.0 * thresholds, 2.0 ** np.arange(1, self.scales + 1))
        priors = priors_of_scales(self.scales, self.cells)
        bounds_of_scales = [self.with_inputs(prior=float(prior)) for prior in priors]
        if self.rule.rooted and not self.inputs.trusted:  # multiples of the root of an occupancy
            factors = np.array([float(bound.bias(1.0)) for bound in bounds_of_scales])
            total_bias = math.sqrt(rounds * float(n_cells @ factors**2))
        else:
            biases = []
            for bound, count in zip(bounds_of_scales, n_cells, strict=True):
                biases.append(float(bound.bias(rounds / count)))
            total_bias = float(n_cells @ biases)
        return np.asarray(spread(coefficients) * total_bias / rounds)


@lru_cache(maxsize=256)
def cells_of_actions(group: ProtectedLosses, scales: int) -> list[tuple[Indices, Indices]]:
    """Return for every loss the fewest cells on each of which its owner plays one action (m,).

    And, of each cell, that action (m,). With S ``scales`` the finest cells have the width 2^-S.
    """
    n_finest_cells = 2**scales
    cells_and_actions = []
    predictions = (np.arange(n_finest_cells)[:, None] + POSITION_IN_CELL) / n_finest_cells
    for k in range(len(group.offset)):
        table_of_loss = LossTable([ProtectedLosses(group.offset[[k]], group.weights[[k]])])
        (best_actions,) = table_of_loss.best_responses(predictions)  # (2^S,), of the only loss
        changes = np.flatnonzero(np.diff(best_actions)) + 1
        edges = [0, *changes.tolist(), n_finest_cells]  # between two of them one action is the best
        cells = []
        actions_of_cells = []
        for first_cell, end_cell in pairwise(edges):
            # In the tree of all cells, whose node i has the children 2 i and 2 i + 1, the finest
            # cells are the leaves, the nodes from 2^S on.
            first_leaf = n_finest_cells + first_cell
            end_leaf = n_finest_cells + end_cell
            for cell in _cells_of_interval(first_leaf, end_leaf):
                cells.append(cell)
                actions_of_cells.append(best_actions[first_cell])
        cells_and_actions.append((np.array(cells), np.array(actions_of_cells)))
    return cells_and_actions


def _slope_gaps(group: ProtectedLosses, losses: Indices) -> Array:
    """Return r(c) - r(a) of k of a group's losses by played action and comparator (k, A, A)."""
    return _gaps(group.weights[losses, :, 0])


def _gaps(of_actions: Array) -> Array:
    """Return the values (k, A) of comparators less those of played actions (k, A, A)."""
    return np.asarray(of_actions[:, None, :] - of_actions[:, :, None])


def _cells_of_interval(left: int, right: int) -> Iterator[int]:
    """Yield the fewest cells whose union is the finest ones from ``left`` to before ``right``.

    Both are nodes of the tree of ``minimax.game.field_of_cells``, with the finest cells as leaves,
    and go up a scale at a time; what is yielded are numbers of cells, nodes less 2.
    """
    while left < right:
        if left == ROOT:  # all predictions: the two cells of the first scale
            yield from (0, 1)
            return
        if left & 1:  # a right child: its parent begins outside of the interval
            yield left - NODE_OF_FIRST_CELL
        if right & 1:  # the node before it is a left child, whose parent ends outside
            node_before = right - 1
            yield node_before - NODE_OF_FIRST_CELL
        left = (left + 1) >> 1
        right = right >> 1


class Line(Box):
    """The game over [0, 1], with one prediction in every finest cell of S ``scales``.

    With ``ends`` (2, 1), the outcomes with s(y) = 0 and 1, every prediction is an ensemble of
    these. Predictions keep off the ties of round numbers in any case.
    """

    def __init__(self, scales: int, *, off_ties: bool = False, ends: Array | None = None) -> None:
        super().__init__(1, off_ties=off_ties)
        self.n_finest_cells = 2**scales
        self._ends = ends
        self.has_ensembles = ends is not None
        self.hull: Hull = "box" if ends is None else "image"

    def single(self, point: Array) -> Solution:
        solution = Solution(
            self._in_cells(np.asarray(point)[None]), np.ones(1), None, unchanged=True
        )
        return self._with_ensembles(solution)

    def _in_cells(self, points: Array) -> Array:
        """Move points (m, 1) to the predictions of their cells."""
        cells = np.floor(np.clip(points, 0.0, 1.0) * self.n_finest_cells)
        return np.asarray(
            (np.minimum(cells, self.n_finest_cells - 1) + POSITION_IN_CELL) / self.n_finest_cells
        )

    def _with_ensembles(self, solution: Solution) -> Solution:
        if self._ends is None:
            return solution
        weights_of_points = np.hstack([1 - solution.points, solution.points])
        ensembles = tuple(Ensemble(self._ends, weights) for weights in weights_of_points)
        return replace(solution, ensembles=ensembles)

    def _play(self, game: Game) -> Solution:
        def field_in(cell: int) -> float:
            """Return h at the prediction of a finest cell."""
            return float(game.field(np.array([(cell + POSITION_IN_CELL) / self.n_finest_cells]))[0])

        # Neighbours with h <= 0 and h >= 0, or one end twice, where no outcome gains: strides
        # double until the sign of h changes, then the stretch between is halved.
        near = int(self._in_cells(game.start.points)[0, 0] * self.n_finest_cells)
        last = self.n_finest_cells - 1
        direction = -1 if field_in(near) > 0 else 1
        stride = 1
        first = near
        far = min(max(first + direction * stride, 0), last)
        while far != near and field_in(far) * direction < 0:
            near = far
            stride = 2 * stride
            far = min(max(first + direction * stride, 0), last)
        low = min(near, far)
        high = max(near, far)
        while high - low > 1:
            middle = (low + high) // 2
            if field_in(middle) > 0:
                high = middle
            else:
                low = middle

        cells = np.unique((low, high))
        mass = np.abs([field_in(cell) for cell in cells[::-1]])  # h = 0 on average
        if not mass.any():
            mass[0] = 1.0
        has_mass = mass > 0
        points = (cells[has_mass, None] + POSITION_IN_CELL) / self.n_finest_cells
        mass = mass[has_mass] / mass.sum()
        certificate = self.worst_case(mass, points, game.fields(points))
        return self._with_ensembles(Solution(points, mass, certificate))

    def choices(self, game: Game) -> Solution:
        """Return predictions all over the line, and the one to start from."""
        points = np.vstack([game.start.points, np.linspace(0, 1, MAX_LATTICE_POINTS)[:, None]])
        points = np.unique(self._in_cells(points), axis=0)
        return self._with_ensembles(Solution(points, np.empty(len(points)), None))


class UniversalDecisionSwap(UnbiasedPrediction):
    """No decision swap regret for any task of one outcome, whether or not it is known.

    Parameters
    ----------
    rounds : int
        T, at least 1; it sets the scales. A longer run has larger certificates.
    reference : Forecaster, optional
        A model of one number, broadcast where it is good; exponential smoothing by default.
    band, give_up : float
        As in ``Reference``; with ``give_up`` 0 it is never trusted.
    seed : int
        As in ``UnbiasedPrediction``.

    Examples
    --------
    >>> forecaster = UniversalDecisionSwap(1000)
    >>> for y in [1.0, 0.0, 0.0, 1.0] * 250:
    ...     mixture = forecaster.mixture()
    ...     forecaster.update(y)
    >>> abs(float(mixture.mean[0]) - 0.5) < 0.1
    True
    """

    def __init__(
        self,
        rounds: int,
        *,
        reference: Forecaster | None = None,
        band: float = 0.0,
        give_up: float = 0.0,
        seed: int = 0,
    ) -> None:
        scales = scales_for(check_int("rounds", rounds, least=1, below=MAX_ROUNDS + 1))
        nobody = ProtectedLosses(np.zeros((1, 1)), np.zeros((1, 1, 1)))
        smoothed = ExponentialSmoothing(1) if reference is None else reference
        model = Reference(smoothed, band=band, give_up=give_up)
        super().__init__(CellEvents([nobody], scales), Line(scales), model, seed=seed)

    def update(self, y: ArrayLike) -> None:
        """Learn the outcome, a number in [0, 1] or an array of it."""
        super().update(check_unit_vector("y", y, 1))

    def regret_bound(self, loss: Linear) -> Array:
        """Bound the expected decision swap regret per round so far, of tasks it need not know.

        Against constants (K,); ``loss`` is single (A, 1) or a stack (K, A, 1).
        """
        if not isinstance(loss, Linear) or loss.outcomes != 1:
            raise ParameterError(f"loss = {brief(loss)}: give a Linear loss of one outcome")
        offset = np.atleast_2d(loss.offset)
        group = ProtectedLosses(offset, np.reshape(loss.weights, (*offset.shape, 1)))
        return self.from_variation(group) / max(self.time, 1)
