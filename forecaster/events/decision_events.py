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
from regretless.forecaster.switch_test import SwitchTest
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

    def exceeds(self, active: list[View], trust: SwitchTest, *, hint: bool = False) -> bool:
        return any(trust.rejects(np.abs(view.gain), view.squares, hint=hint) for view in active)

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound it by sum_a max_c sum_i |r(c) - r(a)|_i |B_{a,i}|.

        A policy's suggestions b add up, for r(c) = r(b).
        """
        every_loss = np.arange(len(group.weights))
        return np.asarray(self.most_gained(bound, group, every_loss).max(2).sum(1))

    def least_gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return <r(c) - r(a), B_a>, and for a policy the sum over what it suggests (k, A, C)."""
        coefficients = group.weights[losses]
        decision, cross = self._of_losses(group, losses, "gain")
        value = decision @ coefficients.swapaxes(1, 2)
        gained = [value - np.einsum("kaa->ka", value)[:, :, None]]
        for bias in cross:  # (suggestions, k, A, n)
            suggested = np.einsum("bkan,kbn->ka", bias, coefficients)
            played = np.einsum("bkan,kan->ka", bias, coefficients)
            gained.append((suggested - played)[:, :, None])
        return np.concatenate(gained, axis=2)

    def most_gained(self, bound: BiasBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound it by sum_i |r(c) - r(a)|_i |B_{a,i}|, and likewise what policies suggest."""
        coefficients = group.weights[losses]
        gaps = [np.abs(coefficients - coefficients[:, [c]]) for c in range(coefficients.shape[1])]
        decision, cross = self._of_losses(group, losses, "variation")
        bias = bound.bias_at(decision)
        gained = [(gap * bias).sum(2) for gap in gaps]
        for variation in cross:  # (suggestions, k, A, n)
            of_suggestions = zip(gaps, variation, strict=True)
            costs = [(gap * bound.bias_at(own)).sum(2) for gap, own in of_suggestions]
            gained.append(np.sum(costs, axis=0))
        return np.stack(gained, axis=2)

    def _of_losses(self, group: ProtectedLosses, losses: Indices, name: str) -> tuple[Array, Array]:
        """Return one of the accumulators, by the name of a ``View``'s field, of k losses.

        Of decision events (k, A, n), and of cross events (policies, suggestions, k, A, n).
        """
        shape = group.weights.shape
        decision = getattr(self.views[0], name)[self.rows.slice(group)].reshape(shape)
        cross = getattr(self.views[1 + self.rows.place(group)], name)
        return decision[losses], cross.reshape(*cross.shape[:2], *shape)[:, :, losses]

    def table(self) -> Iterator[Event]:
        loss_of = np.repeat(np.arange(len(self.rows.start) - 1), np.diff(self.rows.start))
        action_of = np.arange(len(loss_of)) - self.rows.start[loss_of]
        for view in self.views:
            for place in np.ndindex(view.occupancy.shape):
                row = view.rows.start + place[-1]
                policy, suggestion = place[:-1] or (None, None)
                event = int(loss_of[row]), int(action_of[row]), policy, suggestion
                yield *event, float(view.occupancy[place]), view.gain[place]
