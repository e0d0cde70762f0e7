r"""One outcome, and a promise to every task, listed or not: dyadic cells of one number.

Where s(y) is one number in [0, 1] and losses are linear in it, an agent who best-responds to a
prediction p plays an action on an interval of predictions. The events are [p in cell i of width
2^-s] for the scales s = 1..S, of which an interval of predictions that starts and ends with finest
cells is a disjoint union: at most two cells a scale, one where it starts at 0 or ends at 1.

**Prior.** A scale has 1/S of it, and its cells and their signs equal shares: counted as N experts,
as many as there are listed events beside them, each is q = N / (2 S 2^s) of one, so that a cell's
bias is below its rule's bound with 1/q times the experts.

**Regret.** With slopes r(a) and the variations C_e of cells

    T x regret <= sum_a max_c |r(a) - r(c)| sum over a's cells of beta_e(C_e),

for any task, known to nobody beforehand (docs/theory.md, 13), and twice that for who enters late.

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
from regretless.forecaster.events.decision_events import VectorEvents, add, new_sums
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

# Where in its finest cell a prediction lies: few losses tie there.
INSIDE = (math.sqrt(5) - 1) / 2
MAX_ROUNDS = 10_000_000  # whose cells fit into memory
MIN_ROOT_ROUNDS = 13.0  # runs below its square have finer cells than 1 / T


def scales_for(rounds: int) -> int:
    """Return S: what a finest cell may gain, .62 x 2^-S, is within every round's tolerance."""
    return math.ceil(math.log2(max(rounds, MIN_ROOT_ROUNDS * math.sqrt(rounds))))


def shares(scales: int, experts: int) -> Array:
    """Return q of the cells of every scale (S,), which count as so many experts."""
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
        self.scales = scales
        self.beyond = 2 ** (scales + 1) - 2
        if self.size != 1:
            raise ValueError(f"cells are of one number; these losses are of {self.size}")
        self.experts = experts or 2 * self.beyond
        lines = self.rows.shape[0]
        self.views = [
            new_sums(slice(lines + 2**s - 2, lines + 2 ** (s + 1) - 2), 1, prior=float(q))
            for s, q in enumerate(shares(scales, self.experts), start=1)
        ]  # fmt: skip

    @property
    def alarms(self) -> int:
        """Count all cells with both signs, however few experts they count as in the prior."""
        return 2 * self.beyond

    def active(self, x: object, suggestions: Indices | None = None) -> list[EventSums]:
        return list(self.views)

    def charge(self, active: list[EventSums], played: Played) -> None:
        """Add a round to the biases of the cells that hold a prediction."""
        points, mass, truth = played.distribution
        moved = mass * (points[:, 0] - truth[0])
        for view in active:
            cells = len(view.occupancy)
            cell_of_point = (points[:, 0] * cells).astype(int)
            occupancy = np.bincount(cell_of_point, mass, cells).astype(float)
            gain = np.bincount(cell_of_point, moved, cells).astype(float)
            add(view.arrays, gain[:, None], occupancy, self.rule.squared)

    def bound(self, inputs: BoundInputs, hull: Hull) -> "CellBound":
        return CellBound(self.rule, inputs, hull=hull, scales=self.scales, cells=self.experts)

    @property
    def others(self) -> EventSet:
        return self

    def from_variation(self, bound: RegretBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected swap regret of any losses (K,), cell by cell."""
        biases_of_scales = []
        for sums in self.views:
            of_scale = bound.with_inputs(prior=sums.prior)
            biases_of_scales.append(of_scale.bias_at(sums.variation[:, 0]))
        biases = np.concatenate(biases_of_scales)
        return np.array([gaps @ biases[cells] for cells, gaps in stretches(group, self.scales)])

    def least_gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return minus what all cells may have cost, gap by bias, as one gain (k, 1, 1)."""
        biases = np.concatenate([view.gain[:, 0] for view in self.views])
        cells_and_gaps = stretches(group, self.scales)
        cells_and_gaps_of_losses = (cells_and_gaps[k] for k in losses)
        costs = [gaps @ np.abs(biases[cells]) for cells, gaps in cells_and_gaps_of_losses]
        return -np.reshape(np.array(costs, dtype=np.float64), (-1, 1, 1))

    def most_gained(self, bound: RegretBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound what all cells of a loss gain, cell by cell, as one gain (k, 1, 1)."""
        return self.from_variation(bound, group)[losses, None, None]

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
        cells = np.minimum(2.0 * thresholds, 2.0 ** np.arange(1, self.scales + 1))
        of_scales = [
            self.with_inputs(prior=float(prior)) for prior in shares(self.scales, self.cells)
        ]
        if self.rule.rooted and not self.inputs.trusted:  # multiples of the root of an occupancy
            roots = np.array([float(of_scale.bias(1.0)) for of_scale in of_scales])
            total = math.sqrt(rounds * float(cells @ roots**2))
        else:
            biases = []
            for of_scale, count in zip(of_scales, cells, strict=True):
                biases.append(float(of_scale.bias(rounds / count)))
            total = float(cells @ biases)
        return np.asarray(spread(coefficients) * total / rounds)


@lru_cache(maxsize=256)
def stretches(group: ProtectedLosses, scales: int) -> list[tuple[Indices, Array]]:
    """Return for every loss the fewest cells on which its owner does one thing (m,).

    And the greatest gap between the slope of that and others (m,).
    """
    finest = 2**scales
    cells_and_gaps = []
    predictions = (np.arange(finest)[:, None] + INSIDE) / finest
    for k in range(len(group.offset)):
        alone = ProtectedLosses(group.offset[[k]], group.weights[[k]])
        played = LossTable([alone]).best_responses(predictions)[0]
        slope = alone.weights[0, :, 0]
        gaps = np.abs(slope[:, None] - slope).max(1)
        edges = [0, *(np.flatnonzero(np.diff(played)) + 1).tolist(), finest]
        cells = []
        gaps_of_cells = []
        for first, end in pairwise(edges):
            for cell in _cells(first + finest, end + finest):
                cells.append(cell)
                gaps_of_cells.append(gaps[played[first]])
        cells_and_gaps.append((np.array(cells), np.array(gaps_of_cells)))
    return cells_and_gaps


def _cells(left: int, right: int) -> Iterator[int]:
    """Yield the fewest cells whose union is finest ones, leaves of a tree with root 1."""
    while left < right:
        if left == 1:  # all predictions: the two cells of the first scale
            yield from (0, 1)
            return
        if left & 1:
            yield left - 2
        if right & 1:
            yield right - 3
        left = (left + 1) >> 1
        right = right >> 1


class Line(Box):
    """The game over [0, 1], with one prediction in every finest cell of S ``scales``.

    With ``ends`` (2, 1), the outcomes with s(y) = 0 and 1, every prediction is an ensemble of
    these. Predictions keep off the ties of round numbers in any case.
    """

    def __init__(self, scales: int, *, off_ties: bool = False, ends: Array | None = None) -> None:
        super().__init__(1, off_ties=off_ties)
        self.finest = 2**scales
        self._ends = ends
        self.spelled = ends is not None
        self.hull: Hull = "box" if ends is None else "image"

    def single(self, point: Array) -> Solution:
        solution = Solution(self._near(np.asarray(point)[None]), np.ones(1), None, unchanged=True)
        return self._spelled(solution)

    def _near(self, points: Array) -> Array:
        """Move points (m, 1) to the predictions of their cells."""
        cells = np.floor(np.clip(points, 0.0, 1.0) * self.finest)
        return np.asarray((np.minimum(cells, self.finest - 1) + INSIDE) / self.finest)

    def _spelled(self, solution: Solution) -> Solution:
        if self._ends is None:
            return solution
        weights_of_points = np.hstack([1 - solution.points, solution.points])
        ensembles = tuple(Ensemble(self._ends, weights) for weights in weights_of_points)
        return replace(solution, ensembles=ensembles)

    def _play(self, game: Game) -> Solution:
        def pull(cell: int) -> float:
            return float(game.field(np.array([(cell + INSIDE) / self.finest]))[0])

        # Neighbours with h <= 0 and h >= 0, or one end twice, where no outcome gains: strides
        # double until the sign of h changes, then the stretch between is halved.
        near = int(self._near(game.start.points)[0, 0] * self.finest)
        last = self.finest - 1
        direction = -1 if pull(near) > 0 else 1
        stride = 1
        first = near
        far = min(max(first + direction * stride, 0), last)
        while far != near and pull(far) * direction < 0:
            near = far
            stride = 2 * stride
            far = min(max(first + direction * stride, 0), last)
        low = min(near, far)
        high = max(near, far)
        while high - low > 1:
            middle = (low + high) // 2
            if pull(middle) > 0:
                high = middle
            else:
                low = middle

        cells = np.unique((low, high))
        mass = np.abs([pull(cell) for cell in cells[::-1]])  # h = 0 on average
        if not mass.any():
            mass[0] = 1.0
        has_mass = mass > 0
        points = (cells[has_mass, None] + INSIDE) / self.finest
        mass = mass[has_mass] / mass.sum()
        return self._spelled(Solution(points, mass, self.worst(mass, points, game.fields(points))))

    def choices(self, game: Game) -> Solution:
        """Return predictions all over the line, and the one to start from."""
        points = np.vstack([game.start.points, np.linspace(0, 1, MAX_LATTICE_POINTS)[:, None]])
        points = np.unique(self._near(points), axis=0)
        return self._spelled(Solution(points, np.empty(len(points)), None))


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
