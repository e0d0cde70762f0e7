r"""Dyadic cells of one number: what has no bias for a task that nobody listed.

Where s(y) is one number in [0, 1] and losses are linear in it, an agent who best-responds to a
prediction p plays an action on an interval of predictions. The events are [p in cell i of width
2^-s] for the scales s = 1..S, of which an interval of predictions that starts and ends with finest
cells is a disjoint union: at most two cells a scale, one where it starts at 0 or ends at 1.

**Prior.** A scale has 1/S of it, and its cells and their signs equal shares: counted as N experts,
as many as there are listed events beside them, each is q = N / (2 S 2^s) of one. The rules' proofs
go through with q Phi in place of Phi, so that a cell's bias is below its rule's bound with 1/q
times the experts: with adaptive weights Lambda <= ln(4 S 2^s) + ln P, P as in ``weights``.

**Regret.** With slopes r(a), D the greatest gap between two of them, and C_e the variations,

    T x regret = sum_a max_c (r(a) - r(c)) (sum over rounds with action a of y - p)
               <= sum_a max_c |r(a) - r(c)| sum over a's cells of beta_e(C_e).

The cells of all actions are disjoint, and A actions have at most m_s = min(2 (A - 1), 2^s) of them
at scale s. With adaptive weights and the Cauchy-Schwarz inequality a priori

    T x regret <= D sqrt(3 T sum_s m_s Lambda_s) <= D sqrt(6 S (A - 1) T Lambda):

for any task, known to nobody beforehand. Hu and Wu (2024, arXiv:2404.13503) reach O(sqrt(T) log T)
for every task of a binary outcome at once; the dyadic cells are this package's way there. Cells of
one width do not do: predictions change sides within a cell against y = [mean of the mixture < 1/2].

**Who enters late** meets |B_T| + |B_t| at most (``bounds``, "Joining late"): twice the bound.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from regretless.forecaster.events.base import Event
from regretless.forecaster.events.bounds import BiasBound, spread
from regretless.forecaster.events.coordinate import VectorEvents, View
from regretless.forecaster.events.kept import MANY, Kept
from regretless.forecaster.events.protected import (
    LossTable,
    Played,
    ProtectedLosses,
    best_responses,
)
from regretless.forecaster.events.weights import AdaptiveWeights, Band, WeightRule
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled

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

    Parameters
    ----------
    groups : sequence of ProtectedLosses
        Listed losses, of one number. They are as good as any others here.
    scales : int
        S, at least 1.
    rule : WeightRule
        Adaptive by default.
    experts : int, optional
        N, how many they count as; their own number by default.
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
        self.rows, self.rule = LossTable.of(groups), rule or AdaptiveWeights()
        self.scales = scales
        if self.size != 1:
            raise ValueError(f"cells are of one number; these losses are of {self.size}")
        self.beyond = 2 ** (scales + 1) - 2
        self.experts = experts or 2 * self.beyond
        self._kept = {(s,): Kept(2**s, 1) for s in range(1, scales + 1) if self.beyond >= MANY}
        self.views = [
            self._view(s, float(q)) for s, q in enumerate(shares(scales, self.experts), start=1)
        ]
        self.arrays = {
            f"{name}_{s}": array
            for s, view in enumerate(self.views, start=1)
            for name, array in (
                ("bias", view.bias), ("variation", view.variation),
                ("occupancy", view.occupancy), ("squares", view.squares),
            )
        }  # fmt: skip

    def _view(self, scale: int, share: float) -> View:
        cells, first = 2**scale, len(self.rows.offset) + 2**scale - 2
        sums = np.zeros((cells, 1)), np.zeros((cells, 1)), np.zeros(cells), np.zeros((cells, 1))
        return View(slice(first, first + cells), *sums, self._kept.get((scale,)), share)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint: no weight that was kept stands."""
        super(VectorEvents, self).restore(state)
        self._forget()

    def reset(self) -> None:
        """Begin anew."""
        for array in self.arrays.values():
            array[...] = 0.0
        self._forget()

    def _forget(self) -> None:
        for kept in self._kept.values():
            kept.forget()

    def active(self, x: Any, suggestions: Indices | None = None) -> list[View]:
        """Return the cells of every scale."""
        return self.views

    def charge(self, active: list[View], played: Played) -> None:
        """Add a round to the biases of the cells that hold a prediction."""
        points, mass, truth = played.distribution
        for view in active:
            cells = len(view.occupancy)
            each, which = np.unique((points[:, 0] * cells).astype(int), return_inverse=True)
            seen = np.bincount(which.ravel(), mass)
            gain = np.bincount(which.ravel(), mass * (points[:, 0] - truth[0]))[:, None]
            view.bias[each] += gain
            view.variation[each] += gain**2 if self.rule.squared else np.abs(gain)
            view.squares[each] += gain**2
            view.occupancy[each] += seen
            if view.kept is not None:
                view.kept.stale[each] = True

    def spent(self) -> float:
        """Return the sum of ln(1 + C) over all experts by their shares."""
        return 2 * sum(view.share * float(np.log1p(view.variation).sum()) for view in self.views)

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the sum of all experts' potentials by their shares."""
        each = [
            math.log(view.share)
            + self.rule.potentials(sign * view.bias, view.variation, band.zone).ravel()
            for view in self.views
            for sign in (1, -1)
        ]
        return float(np.logaddexp.reduce(np.concatenate(each)))

    def bound(self, **stand: Any) -> "CellBound":
        """Return the bound on all biases, and on the regret of any task."""
        return CellBound(self.rule, scales=self.scales, cells=self.experts, **stand)

    of_anybody = bound

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected swap regret of any losses (K,), cell by cell."""
        each = [
            replace(bound, share=view.share).bias_at(view.variation[:, 0]) for view in self.views
        ]
        biases, total = np.concatenate(each), np.zeros(len(group.offset))
        for which, first, last, widest in stretches(group, self.scales):
            total[which] = widest @ _covered(biases, first, last)
        return total

    anybody_from_variation = from_variation

    def table(self) -> Iterator[Event]:
        """Yield nothing: a cell is no event of a loss."""
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
def stretches(group: ProtectedLosses, scales: int) -> list[tuple[int, Integers, Integers, Array]]:
    """Return for every loss the stretches of finest cells on which its owner does one thing.

    Its number, first cells, ends, and the greatest gaps between the slope of that and others.
    """
    finest, found = 2**scales, []
    places = (np.arange(finest)[:, None] + INSIDE) / finest
    for k in range(len(group.offset)):
        one = ProtectedLosses(group.offset[[k]], group.weights[[k]])
        played, slope = best_responses(LossTable.of([one]), places)[0], one.weights[0, :, 0]
        edges = np.concatenate([[0], np.flatnonzero(np.diff(played)) + 1, [finest]])
        widest = np.abs(slope[:, None] - slope).max(1)[played[edges[:-1]]]
        found.append((k, edges[:-1], edges[1:], widest))
    return found


@compiled()
def _covered(biases: Array, first: Integers, last: Integers) -> Array:
    """Add up the biases of the fewest cells whose union is each stretch (m,) of finest ones."""
    finest, out = biases.shape[0] // 2 + 1, np.zeros(first.shape[0])
    for j in range(first.shape[0]):
        left, right = first[j] + finest, last[j] + finest
        while left < right:
            if left == 1:  # all predictions: the two cells of the first scale
                out[j] += biases[0] + biases[1]
                break
            if left & 1:
                out[j] += biases[left - 2]
                left += 1
            if right & 1:
                right -= 1
                out[j] += biases[right - 2]
            left, right = left >> 1, right >> 1
    return out
