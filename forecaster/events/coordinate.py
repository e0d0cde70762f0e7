"""Decision and cross events: what predictions are unbiased on, and the biases so far.

For each protected loss (row of coefficients r(a) in the predicted basis) and action a,

    decision event      E(x, p) = [BR(p) = a]            or the quantal weight q(a, p)
    cross event         E(x, p) = [BR(p) = a, c(x) = b]  for each policy c, suggestion b

(paper, definitions of decision and decision cross calibration, and their smooth versions). The
bias of an event is B = sum_t E_{p ~ mixture_t}[ E(x_t, p) (p - s_t) ], a vector in R^n; its
occupancy is n_T(E) = sum_t E[E(x_t, p)].

All (loss, action) pairs are rows of one table, with one vector of decision biases each. Given x a
policy suggests exactly one b, so of a group's cross biases ``(policies, suggestions, rows, n)`` one
slice per policy is active in a round, and the game sees a single table (rows, n). Models are
comparators by the gains of ``scalar``: a policy of each loss's own would take a vector event per
model, loss, action and suggestion.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.protected import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import (
    MANY,
    AdaptiveWeights,
    Kept,
    Moment,
    Sums,
    WeightRule,
    Weights,
)
from regretless.forecaster.reference import Band, Trust
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.records import Event, checked_suggestion


@compiled()
def _add(sums: tuple[Array, Array, Array], gain: Array, seen: Array, squared: bool) -> None:  # noqa: FBT001
    bias, variation, squares = sums
    for r in range(gain.shape[0]):
        if seen[r] > 0.0:
            for i in range(gain.shape[1]):
                bias[r, i] += gain[r, i]
                variation[r, i] += gain[r, i] ** 2 if squared else abs(gain[r, i])
                squares[r, i] += gain[r, i] ** 2


@dataclass(frozen=True, eq=False)
class View(Sums):
    """The accumulators of the events that can happen in a round, written when it is charged."""

    occupancy: Array  # (rows,)
    squares: Array
    kept: Kept | None = None  # their weights, where those that do not change are kept
    share: float = 1.0  # of each in the prior, beside 1 for others


Accumulators = tuple[Array, Array, Array, Array]  # bias, variation, occupancy, squares


def numbered(parts: Iterable[Accumulators]) -> dict[str, Array]:
    """Name all arrays."""
    return {f"{g}_{i}": array for g, part in enumerate(parts) for i, array in enumerate(part)}


class VectorEvents(EventSet[list[View]]):
    """The decision and cross events of all coordinates, and their accumulated biases.

    Groups are all over the same basis; the rule is adaptive by default. There are N = 2 n |E|
    experts, one per event, coordinate and sign; |E| is the sum over rows of 1 + policies x
    suggestions.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays",)
    IN_PLACE = True
    crossed = joinable = True

    def __init__(self, groups: Sequence[ProtectedLosses], rule: WeightRule | None = None) -> None:
        self.rows, self.rule = LossTable.of(groups), rule or AdaptiveWeights()
        sizes = [group.offset.size for group in groups]
        self._decision = self._accumulators(len(self.rows.offset))
        self._cross = [
            self._accumulators(len(g.policies), g.offset.shape[1], size)
            for g, size in zip(groups, sizes, strict=True)
        ]
        self._kept: dict[tuple[int, ...], Kept] = {}
        self.arrays = numbered([self._decision, *self._cross])
        cross = [len(group.policies) * group.offset.shape[1] for group in groups]
        events = sum(size * (1 + own) for size, own in zip(sizes, cross, strict=True))
        self.experts = 2 * self.size * events

    def _accumulators(self, *shape: int) -> Accumulators:
        bias, variation, squares = (np.zeros((*shape, self.size)) for _ in range(3))
        return bias, variation, np.zeros(shape), squares

    @property
    def _sums(self) -> list[tuple[Array, Array, float]]:
        return [(bias, variation, 1.0) for bias, variation, *_ in (self._decision, *self._cross)]

    def active(self, x: object, suggestions: Indices | None = None) -> list[View]:
        """Return the events that can happen: all decision events, and one slice per policy."""
        every = slice(0, len(self.rows.offset))
        views = [View(every, *self._decision, self._kept_of((), every))]
        for g, group in enumerate(self.groups):
            rows = self.rows.slice(group)
            for j, policy in enumerate(group.policies):
                suggestion = checked_suggestion(policy, x, group.offset.shape[1])
                bias, variation, occupancy, squares = (own[j, suggestion] for own in self._cross[g])
                kept = self._kept_of((g, j, suggestion), rows)
                views.append(View(rows, bias, variation, occupancy, squares, kept))
        return views

    def _kept_of(self, place: tuple[int, ...], rows: slice) -> Kept | None:
        if math.prod(self.rows.shape) < MANY:
            return None
        if place not in self._kept:
            self._kept[place] = Kept(rows.stop - rows.start, self.size)
        return self._kept[place]

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint: no weight that was kept stands."""
        super().restore(state)
        self._forget()

    def reset(self) -> None:
        for array in self.arrays.values():
            array[...] = 0.0
        self._forget()

    def _forget(self) -> None:
        for kept in self._kept.values():
            kept.stale[:] = True

    def top(self, active: list[View], moment: Moment) -> float:
        """Return the greatest exponent; 0 where all weights are kept."""
        if all(self._refreshed(view, moment) for view in active):
            return 0.0
        own = self.rule.top
        return max(own(view.bias, view.variation, moment, both=True) for view in active)

    def _refreshed(self, view: View, moment: Moment) -> bool:
        kept = view.kept
        return kept is not None and kept.refresh(self.rule, view.bias, view.variation, moment)

    def weigh(
        self, active: list[View], moment: Moment, weights: Weights, share: float = 1.0
    ) -> None:
        kept = [view.kept for view in active if self._refreshed(view, moment)]
        if len(kept) == len(active):
            for view, own in zip(active, kept, strict=True):
                assert own is not None  # noqa: S101 - all are kept
                own.add(weights, view.rows, share * view.share)
            return
        for view in active:
            self.rule.two_sided(view, moment, weights, share * view.share)

    def charge(self, active: list[View], played: Played) -> None:
        for view in active:
            own = played.seen[view.rows]
            sums = view.bias, view.variation, view.squares
            _add(sums, played.bias[view.rows], own, self.rule.squared)
            np.add(view.occupancy, own, out=view.occupancy)
            if view.kept is not None:
                view.kept.stale |= own > 0.0

    def exceeds(self, active: list[View], trust: Trust, *, hint: bool = False) -> bool:
        return any(trust.rejects(np.abs(view.bias), view.squares, hint=hint) for view in active)

    def spent(self) -> float:
        return 2 * sum(share * float(np.log1p(own).sum()) for _, own, share in self._sums)

    def log_potential(self, band: Band) -> float:
        each = [
            math.log(share) + self.rule.potentials(sign * bias, own, band.zone).ravel()
            for bias, own, share in self._sums
            for sign in (1, -1)
        ]
        return float(np.logaddexp.reduce(np.concatenate(each)))

    def bound(self, stand: BiasBound) -> BiasBound:
        return stand

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,).

        It is sum_a max_c sum_i |r(c) - r(a)|_i |B_{a,i}|, where a policy's suggestions b add up for
        r(c) = r(b).
        """
        weights, place = group.weights, self.rows.place(group)
        actions, cross = weights.shape[1], self._cross[place][1]
        gaps = [np.abs(weights - weights[:, [c]]) for c in range(actions)]
        own = bound.bias_at(self._decision[1][self.rows.slice(group)]).reshape(weights.shape)
        worst = np.max([(gap * own).sum(2) for gap in gaps], axis=0)
        each = []
        for j in range(len(group.policies)):
            biases = [bound.bias_at(cross[j, b]).reshape(weights.shape) for b in range(actions)]
            parts = [(gap * one).sum(2) for gap, one in zip(gaps, biases, strict=True)]
            each.append(np.sum(parts, axis=0))
        return np.asarray(np.max([worst, *each], axis=0).sum(1))

    def table(self) -> Iterator[Event]:
        loss_of = np.repeat(np.arange(len(self.rows.start) - 1), np.diff(self.rows.start))
        action_of = np.arange(len(loss_of)) - self.rows.start[loss_of]
        bias, _, occupancy, _ = self._decision
        for row, loss in enumerate(loss_of):
            yield int(loss), int(action_of[row]), None, None, float(occupancy[row]), bias[row]
        for g, (bias, _, occupancy, _) in enumerate(self._cross):
            for j, suggestion, row in np.ndindex(occupancy.shape):
                at = self.rows.slice(self.groups[g]).start + row
                place = j, suggestion, row
                event = int(loss_of[at]), int(action_of[at]), j, suggestion
                yield *event, float(occupancy[place]), bias[place]
