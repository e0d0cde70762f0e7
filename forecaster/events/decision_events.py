"""Decision and cross events: what predictions are unbiased on, and the biases so far.

For each protected loss (row of coefficients r(a) in the predicted basis) and action a,

    decision event      E(x, p) = [BR(p) = a]            or the quantal weight q(a, p)
    cross event         E(x, p) = [BR(p) = a, c(x) = b]  for each policy c, suggestion b

(paper, definitions of decision and decision cross calibration, and their smooth versions). The
bias of an event is B = sum_t E_{p ~ mixture_t}[ E(x_t, p) (p - s_t) ], a vector in R^n; its
occupancy is n_T(E) = sum_t E[E(x_t, p)].

Given x a policy suggests exactly one b, so of a group's cross biases ``(policies, suggestions,
rows, n)`` one slice per policy is active in a round, and the game sees a single table (rows, n).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from regretless.forecaster.events.base import EventSet, View
from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import AdaptiveWeights, Moment, WeightRule, Weights
from regretless.forecaster.reference import Trust
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.records import Event, checked_suggestion


def view_of(rows: slice, size: int, *axes: int, share: float = 1.0) -> View:
    """Make new accumulators."""
    shape = *axes, rows.stop - rows.start
    bias, variation, squares = np.zeros((3, *shape, size))
    return View(rows, bias, variation, squares, np.zeros(shape), share)


@compiled()
def add(sums: tuple[Array, Array, Array, Array], gain: Array, seen: Array, squared: bool) -> None:  # noqa: FBT001
    """Add gains (rows, n) to the arrays of a view, where they were seen (rows,)."""
    bias, variation, squares, occupancy = sums
    for r in range(gain.shape[0]):
        if seen[r] > 0.0:
            occupancy[r] += seen[r]
            for i in range(gain.shape[1]):
                bias[r, i] += gain[r, i]
                variation[r, i] += gain[r, i] ** 2 if squared else abs(gain[r, i])
                squares[r, i] += gain[r, i] ** 2


class VectorEvents(EventSet):
    """The decision and cross events of all coordinates, and their accumulated biases.

    Groups are all over the same basis; the rule is adaptive by default. There are N = 2 n |E|
    experts, one per event, coordinate and sign; |E| is the sum over rows of 1 + policies x
    suggestions.
    """

    crossed = joinable = True

    def __init__(self, groups: Sequence[ProtectedLosses], rule: WeightRule | None = None) -> None:
        self.rows, self.rule = LossTable(groups), rule or AdaptiveWeights()
        self.views = [view_of(slice(0, self.rows.shape[0]), self.size)]
        for g in self.groups:
            sizes = self.size, len(g.policies), g.offset.shape[1]
            self.views.append(view_of(self.rows.slice(g), *sizes))
        self.experts = 2 * sum(view.gain.size for view in self.views)

    def active(self, x: object, suggestions: Indices | None = None) -> list[View]:
        """Return the events that can happen: all decision events, and one slice per policy."""
        decision, *cross = self.views
        return [decision] + [
            own.at(j, checked_suggestion(policy, x, group.offset.shape[1]))
            for own, group in zip(cross, self.groups, strict=True)
            for j, policy in enumerate(group.policies)
        ]

    def weigh(self, active: list[View], moment: Moment) -> Iterator[Weights]:
        for view in active:
            found = self.rule.weigh(view.gain, view.variation, moment, both=True)
            yield found._replace(share=view.share, rows=view.rows)

    def charge(self, active: list[View], played: Played) -> None:
        for view in active:
            add(view.arrays, played.bias[view.rows], played.seen[view.rows], self.rule.squared)

    def exceeds(self, active: list[View], trust: Trust, *, hint: bool = False) -> bool:
        return any(trust.rejects(np.abs(view.gain), view.squares, hint=hint) for view in active)

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound it by sum_a max_c sum_i |r(c) - r(a)|_i |B_{a,i}|.

        A policy's suggestions b add up, for r(c) = r(b).
        """
        weights, decision = group.weights, self.views[0].variation[self.rows.slice(group)]
        gaps = [np.abs(weights - weights[:, [c]]) for c in range(weights.shape[1])]

        def costs(variations: Sequence[Array]) -> list[Array]:
            biases = (bound.bias_at(own).reshape(weights.shape) for own in variations)
            return [(gap * own).sum(2) for gap, own in zip(gaps, biases, strict=True)]

        cross = self.views[1 + self.rows.place(group)].variation
        each = [np.max(costs([decision] * len(gaps)), axis=0)]
        each += [np.sum(costs(list(own)), axis=0) for own in cross]
        return np.asarray(np.max(each, axis=0).sum(1))

    def table(self) -> Iterator[Event]:
        loss_of = np.repeat(np.arange(len(self.rows.start) - 1), np.diff(self.rows.start))
        action_of = np.arange(len(loss_of)) - self.rows.start[loss_of]
        for view in self.views:
            for place in np.ndindex(view.occupancy.shape):
                row = view.rows.start + place[-1]
                policy, suggestion = place[:-1] or (None, None)
                event = int(loss_of[row]), int(action_of[row]), policy, suggestion
                yield *event, float(view.occupancy[place]), view.gain[place]
