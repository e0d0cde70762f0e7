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

from regretless.forecaster.events.base import EventSet, View
from regretless.forecaster.events.bounds import BiasBound, spread
from regretless.forecaster.events.decision_events import VectorEvents, add, view_of
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import AdaptiveWeights, WeightRule
from regretless.forecaster.minimax.cube import MOST_POINTS, Box
from regretless.forecaster.minimax.game import Game, Solution
from regretless.forecaster.models import ExponentialSmoothing
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices
from regretless.market.game.protocols import Forecaster
from regretless.market.losses import Linear
from regretless.market.losses.basis import Hull
from regretless.market.records import Ensemble, Event

# Where in its finest cell a prediction lies: few losses tie there.
INSIDE = (math.sqrt(5) - 1) / 2
SHORT = 13.0  # runs below its square have finer cells than 1 / T


def scales_for(rounds: int) -> int:
    """Return S: what a finest cell may gain, .62 x 2^-S, is within every round's tolerance."""
    return math.ceil(math.log2(max(rounds, SHORT * math.sqrt(rounds))))


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
        self.rows, self.rule = LossTable(groups), rule or AdaptiveWeights()
        self.scales, self.beyond = scales, 2 ** (scales + 1) - 2
        if self.size != 1:
            raise ValueError(f"cells are of one number; these losses are of {self.size}")
        self.experts, lines = experts or 2 * self.beyond, self.rows.shape[0]
        self.views = [
            view_of(slice(lines + 2**s - 2, lines + 2 ** (s + 1) - 2), 1, share=float(q))
            for s, q in enumerate(shares(scales, self.experts), start=1)
        ]  # fmt: skip

    @property
    def alarms(self) -> int:
        """Count all cells with both signs, however few experts they count as in the prior."""
        return 2 * self.beyond

    def active(self, x: object, suggestions: Indices | None = None) -> list[View]:
        return list(self.views)

    def charge(self, active: list[View], played: Played) -> None:
        """Add a round to the biases of the cells that hold a prediction."""
        points, mass, truth = played.distribution
        moved = mass * (points[:, 0] - truth[0])
        for view in active:
            cells = len(view.occupancy)
            which = (points[:, 0] * cells).astype(int)
            seen, gain = (np.bincount(which, own, cells).astype(float) for own in (mass, moved))
            add(view.arrays, gain[:, None], seen, self.rule.squared)

    def bound(self, stand: BiasBound) -> "CellBound":
        return CellBound(**vars(stand), scales=self.scales, cells=self.experts)

    @property
    def others(self) -> EventSet:
        return self

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected swap regret of any losses (K,), cell by cell."""
        shared = ((replace(bound, share=view.share), view.variation[:, 0]) for view in self.views)
        biases = np.concatenate([own.bias_at(variation) for own, variation in shared])
        return np.array([gaps @ biases[cells] for cells, gaps in stretches(group, self.scales)])

    def least_gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return minus what all cells may have cost, gap by bias, as one gain (k, 1, 1)."""
        biases = np.concatenate([view.gain[:, 0] for view in self.views])
        known = stretches(group, self.scales)
        of_losses = (known[k] for k in losses)
        costs = [gaps @ np.abs(biases[cells]) for cells, gaps in of_losses]
        return -np.reshape(np.array(costs, dtype=np.float64), (-1, 1, 1))

    def most_gained(self, bound: BiasBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound what all cells of a loss gain, cell by cell, as one gain (k, 1, 1)."""
        return self.from_variation(bound, group)[losses, None, None]

    def table(self) -> Iterator[Event]:
        return iter(())


@dataclass(frozen=True)
class CellBound(BiasBound):
    """Bound on the bias of every cell, and on the regret of any task."""

    scales: int = 1  # S
    cells: int = 1  # how many experts they count as

    def regret(self, weights: Array, *, policies: int = 0, rounds: int | None = None) -> Array:
        """Bound the expected swap regret per round of losses (K, A, 1), as an array (K,)."""
        rounds, thresholds = rounds or self.rounds, weights.shape[1] - 1
        if not thresholds:
            return np.zeros(len(weights))
        cells = np.minimum(2.0 * thresholds, 2.0 ** np.arange(1, self.scales + 1))
        each = [replace(self, share=float(q)) for q in shares(self.scales, self.cells)]
        if self.rule.rooted and not self.trusted:  # multiples of the root of an occupancy
            roots = np.array([float(one.bias(1.0)) for one in each])
            total = math.sqrt(rounds * float(cells @ roots**2))
        else:
            biases = [float(one.bias(rounds / m)) for one, m in zip(each, cells, strict=True)]
            total = float(cells @ biases)
        return np.asarray(spread(weights) * total / rounds)


@lru_cache(maxsize=256)
def stretches(group: ProtectedLosses, scales: int) -> list[tuple[Indices, Array]]:
    """Return for every loss the fewest cells on which its owner does one thing (m,).

    And the greatest gap between the slope of that and others (m,).
    """
    finest, found = 2**scales, []
    places = (np.arange(finest)[:, None] + INSIDE) / finest
    for k in range(len(group.offset)):
        one = ProtectedLosses(group.offset[[k]], group.weights[[k]])
        played, slope = LossTable([one]).best_responses(places)[0], one.weights[0, :, 0]
        gaps = np.abs(slope[:, None] - slope).max(1)
        edges = [0, *(np.flatnonzero(np.diff(played)) + 1).tolist(), finest]
        own = [(e, gaps[played[first]]) for first, end in pairwise(edges)
               for e in _cells(first + finest, end + finest)]  # fmt: skip
        found.append((np.array([e for e, _ in own]), np.array([gap for _, gap in own])))
    return found


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
        left, right = (left + 1) >> 1, right >> 1


class Line(Box):
    """The game over [0, 1], with one prediction in every finest cell of S ``scales``.

    With ``ends`` (2, 1), the outcomes with s(y) = 0 and 1, every prediction is an ensemble of
    these. Predictions keep off the ties of round numbers in any case.
    """

    def __init__(self, scales: int, *, off_ties: bool = False, ends: Array | None = None) -> None:
        super().__init__(1, off_ties=off_ties)
        self.finest, self._ends, self.spelled = 2**scales, ends, ends is not None
        self.hull: Hull = "box" if ends is None else "image"

    def single(self, point: Array) -> Solution:
        one = Solution(self._near(np.asarray(point)[None]), np.ones(1), None, unchanged=True)
        return self._spelled(one)

    def _near(self, points: Array) -> Array:
        """Move points (m, 1) to the predictions of their cells."""
        cells = np.floor(np.clip(points, 0.0, 1.0) * self.finest)
        return np.asarray((np.minimum(cells, self.finest - 1) + INSIDE) / self.finest)

    def _spelled(self, solution: Solution) -> Solution:
        if self._ends is None:
            return solution
        distributions = np.hstack([1 - solution.points, solution.points])
        return replace(solution, ensembles=tuple(Ensemble(self._ends, d) for d in distributions))

    def _play(self, game: Game) -> Solution:
        def pull(cell: int) -> float:
            return float(game.field(np.array([(cell + INSIDE) / self.finest]))[0])

        # neighbours with h <= 0 and h >= 0, or one end twice, where no outcome gains
        first, stride = int(self._near(game.start.points)[0, 0] * self.finest), 1
        way, near, last = -1 if pull(first) > 0 else 1, first, self.finest - 1
        while (far := min(max(first + way * stride, 0), last)) != near and pull(far) * way < 0:
            near, stride = far, 2 * stride
        low, high = sorted((near, far))
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if pull(middle) > 0 else (middle, high)

        cells = np.unique((low, high))
        mass = np.abs([pull(cell) for cell in cells[::-1]])  # h = 0 on average
        if not mass.any():
            mass[0] = 1.0
        kept = mass > 0
        points, mass = (cells[kept, None] + INSIDE) / self.finest, mass[kept] / mass.sum()
        return self._spelled(Solution(points, mass, self.worst(mass, points, game.fields(points))))

    def choices(self, game: Game) -> Solution:
        """Return predictions all over the line, and the one to start from."""
        points = np.vstack([game.start.points, np.linspace(0, 1, MOST_POINTS)[:, None]])
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
        if rounds < 1:
            raise ValueError(f"rounds is {rounds}; give at least 1")
        nobody, scales = ProtectedLosses(np.zeros((1, 1)), np.zeros((1, 1, 1))), scales_for(rounds)
        model = Reference(reference or ExponentialSmoothing(1), band=band, give_up=give_up)
        super().__init__(CellEvents([nobody], scales), Line(scales), model, seed=seed)

    def update(self, y: ArrayLike) -> None:
        """Learn the outcome, a number in [0, 1] or an array of it."""
        super().update(np.atleast_1d(np.asarray(y, dtype=np.float64)))

    def regret_bound(self, loss: Linear) -> Array:
        """Bound the expected decision swap regret per round so far, of tasks it need not know.

        Against constants (K,); ``loss`` is single (A, 1) or a stack (K, A, 1).
        """
        offset = np.atleast_2d(loss.offset)
        group = ProtectedLosses(offset, np.reshape(loss.weights, (*offset.shape, 1)))
        return self.from_variation(group) / max(self.time, 1)
