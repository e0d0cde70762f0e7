r"""Conditioning events: what the forecaster promises to be unbiased on, and the biases so far.

For each protected loss (row of coefficients r(a) in the predicted basis) and action a,

    decision event      E(x, p) = [BR(p) = a]            or the quantal weight q(a, p)
    cross event         E(x, p) = [BR(p) = a, c(x) = b]  for each policy c, suggestion b

(paper, definitions of decision and decision cross calibration, and their smooth versions). The
bias of an event is B = sum_t E_{p ~ mixture_t}[ E(x_t, p) (p - s_t) ], a vector in R^n; its
occupancy is n_T(E) = sum_t E[E(x_t, p)].

Layout. Losses with the same policies form a group. All (loss, action) pairs of all groups are
rows of one table; decision biases have one vector per row. Given x a policy suggests exactly one
b, so of a group's cross biases ``(policies, suggestions, rows, n)`` one slice per policy is awake
in a round, and the per-round game sees a single table (rows, n). Models are comparators by the
scalar gains of ``scalar``: a policy of each loss's own would take a vector event per model, loss,
action and suggestion.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.draws import Draws
from regretless.forecaster.events.kept import MANY, Kept
from regretless.forecaster.events.protected import LossGroup, lines_of, moved_mass, rows_of
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.events.weights import Awake, WeightRule, potentials
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.compiled import compiled
from regretless.market.records import checked_suggestion


@compiled
def _shift(moved: Array, seen: Array, truth: Array) -> None:
    """Turn E[q p] into the gains E[q (p - s)], in place; rows that nobody plays gain nothing."""
    for r in range(moved.shape[0]):
        if seen[r] > 0.0:
            for i in range(moved.shape[1]):
                moved[r, i] -= seen[r] * truth[i]


@compiled
def _add(bias: Array, variation: Array, gain: Array, seen: Array, squared: bool) -> None:  # noqa: FBT001
    for r in range(gain.shape[0]):
        if seen[r] > 0.0:
            for i in range(gain.shape[1]):
                bias[r, i] += gain[r, i]
                variation[r, i] += gain[r, i] ** 2 if squared else abs(gain[r, i])


@compiled
def _beyond(bias: Array, variation: Array, zone: float) -> bool:
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            if abs(bias[r, i]) > zone * np.sqrt(variation[r, i]):
                return True
    return False


@dataclass(frozen=True, eq=False)
class Happening:
    """The events that can happen in a round.

    Parameters
    ----------
    views : list of Awake
        Of the coordinates.
    told : list of int array (K, M)
        What the models suggest to each group's losses; empty without models.
    """

    views: list[Awake]
    told: list[Indices] = field(default_factory=list)


class Events(Remembering):
    """The events of an instance and their accumulated biases.

    Parameters
    ----------
    groups : sequence of LossGroup
        All over the same basis.
    models : int
        M, how many models are comparators.

    Attributes
    ----------
    rows : Rows
    gains : LossEvents or None
        The scalar events of the models.
    size : int
        Number of basis functions, n.
    count : int
        Number of events, |E|: sum over rows of 1 + policies x suggestions.
    experts : int
        2 n |E|, an expert per event, coordinate and sign, and one per scalar event.
    arrays : dict
        Biases, variations and occupancies so far.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays",)
    IN_PLACE = True

    def __init__(self, groups: Sequence[LossGroup], *, models: int = 0) -> None:
        if not groups:
            raise ValueError("a forecaster needs at least one loss to protect")
        self.groups = tuple(groups)
        self.size = int(groups[0].weights.shape[-1])
        sizes = [group.offset.size for group in groups]
        self._bounds = np.cumsum([0, *sizes])
        self.rows = rows_of(groups)
        self._decision = self._accumulators(len(self.rows.offset))
        self._cross = [
            self._accumulators(len(g.policies), g.offset.shape[1], size)
            for g, size in zip(groups, sizes, strict=True)
        ]
        self._kept: dict[tuple[int, ...], Kept] = {}
        parts = {"decision": self._decision}
        parts |= {f"cross{g}": arrays for g, arrays in enumerate(self._cross)}
        self.arrays = {
            f"{name}_{i}": array for name, arrays in parts.items() for i, array in enumerate(arrays)
        }
        self.count = sum(
            size * (1 + len(g.policies) * g.offset.shape[1])
            for g, size in zip(groups, sizes, strict=True)
        )
        self.experts = 2 * self.size * self.count
        self.draws = Draws(groups, self.rows)
        self.arrays |= {f"draws_{name}": kept for name, kept in self.draws.arrays.items()}
        self.gains = LossEvents(groups, models=models, fixed=False) if models else None
        if self.gains is not None:
            self.experts += self.gains.experts
            self.arrays |= {f"models_{name}": kept for name, kept in self.gains.arrays.items()}

    def _accumulators(self, *shape: int) -> tuple[Array, Array, Array]:
        return np.zeros((*shape, self.size)), np.zeros((*shape, self.size)), np.zeros(shape)

    def awake(self, x: Any, points: Array | None = None) -> Happening:
        """Return the events that can happen given the context ``x``.

        Parameters
        ----------
        points : array (M, n), optional
            What each model predicts in this round.

        Raises
        ------
        ValueError
            If a policy suggests an action that its group does not have.
        """
        every = slice(0, len(self.rows.offset))
        views = [Awake(every, *self._decision, kept=self._kept_of((), every))]
        for g, group in enumerate(self.groups):
            rows = slice(int(self._bounds[g]), int(self._bounds[g + 1]))
            for j, policy in enumerate(group.policies):
                suggestion = checked_suggestion(policy, x, group.offset.shape[1])
                bias, variation, occupancy = (part[j, suggestion] for part in self._cross[g])
                kept = self._kept_of((g, j, suggestion), rows)
                views.append(Awake(rows, bias, variation, occupancy, kept=kept))
        return Happening(views, [] if self.gains is None else self.gains.awake(x, points))

    def _kept_of(self, place: tuple[int, ...], rows: slice) -> Kept | None:
        """Return the weights that are kept of a view; None for small tables."""
        if math.prod(self.rows.shape) < MANY:
            return None
        if place not in self._kept:
            self._kept[place] = Kept(rows.stop - rows.start, self.size)
        return self._kept[place]

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint: no weight that was kept stands."""
        super().restore(state)
        self._kept.clear()

    def weighted(self, awake: Happening, rule: WeightRule, time: int) -> Array:
        """Return H (rows, n), the signed weights of the events that can happen, normalised."""
        shape = self.rows.shape
        if self.gains is None:
            return rule.table(awake.views, shape, time)
        gain, variation = self.gains.counted
        table, weights = rule.mixed(awake.views, shape, gain=gain, variation=variation)
        return table + self.gains.folded(awake.told, weights)

    def widen(self, models_zone: float) -> None:
        """Let the weights see no more than G - y sqrt(C) of gains against models."""
        if self.gains is not None:
            self.gains.widen(models_zone)

    def exceeds(self, awake: Happening, zone: float) -> bool:
        """Whether the bias of some event is above ``zone`` times the root of its variation."""
        if self.gains is not None and self.gains.exceeds(awake.told, zone):
            return True
        return any(_beyond(view.bias, view.variation, zone) for view in awake.views)

    def spent(self) -> float:
        """Return the mean of ln(1 + C) over all experts."""
        kept = [variation for _, variation, _ in (self._decision, *self._cross)]
        total = 2 * sum(float(np.log1p(part).sum()) for part in kept)
        beside = 0.0 if self.gains is None else self.gains.spent() * self.gains.experts
        return float((total + beside) / self.experts)

    def potential(self, zone: float) -> float:
        """Return the mean potential of all experts under adaptive weights with this zone."""
        kept = [(bias, variation) for bias, variation, _ in (self._decision, *self._cross)]
        total = sum(
            float(potentials(sign * bias, variation, zone).sum())
            for bias, variation in kept
            for sign in (1, -1)
        )
        beside = 0.0 if self.gains is None else self.gains.potential(zone) * self.gains.experts
        return float((total + beside) / self.experts)

    def charge(
        self, awake: Happening, points: Array, mass: Array, truth: Array, *, squared: bool = False
    ) -> None:
        """Add a round to the biases, in expectation over the mixture.

        Parameters
        ----------
        awake : Happening
            As returned for this round's context.
        points, mass : array (m, n), (m,)
            The mixture.
        truth : array (n,)
            s(y).
        squared : bool
            Whether the variations add up squares (``WeightRule``).
        """
        seen, gain = moved_mass(self.rows, points, mass)
        _shift(gain, seen, truth)
        if len(mass) > 1:
            self.draws.add(seen, truth)
        for view in awake.views:
            own = seen[view.rows]
            _add(view.bias, view.variation, gain[view.rows], own, squared)
            np.add(view.occupancy, own, out=view.occupancy)
            if view.kept is not None:
                view.kept.stale |= own > 0.0
        if self.gains is not None:
            self.gains.add(awake.told, seen, gain, squared=squared)

    def suggested(self, awake: Happening, group: int) -> Indices:
        """Return what the models suggest to the losses of a group (K, M) in an open round."""
        return awake.told[group]

    def bound(self, **run: Any) -> BiasBound:
        """Return the bound on the events' biases; ``run`` are the other fields of ``BiasBound``."""
        zone = 0.0 if self.gains is None else self.gains.models_zone
        return BiasBound(self.experts, models_zone=zone, **run)

    def from_variation(self, bound: BiasBound, group: LossGroup) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,).

        sum_a max_c sum_i |r(c) - r(a)|_i |B_{a,i}| with the bound at its variation for every bias;
        for a policy its suggestions add up, r(c) being that of the suggestion.
        """
        weights, place = group.weights, next(i for i, g in enumerate(self.groups) if g is group)
        actions, (_, cross, _) = weights.shape[1], self._cross[place]
        gaps = [np.abs(weights - weights[:, [c]]) for c in range(actions)]
        own = bound.bias_at(self._decision[1][lines_of(self.groups, group)]).reshape(weights.shape)
        worst = np.max([(gap * own).sum(2) for gap in gaps], axis=0)
        each = []
        for j in range(len(group.policies)):
            biases = [bound.bias_at(cross[j, b]).reshape(weights.shape) for b in range(actions)]
            parts = [(gap * one).sum(2) for gap, one in zip(gaps, biases, strict=True)]
            each.append(np.sum(parts, axis=0))
        return np.asarray(np.max([worst, *each], axis=0).sum(1))

    def table(self) -> Iterator[tuple[int, int, int | None, int | None, float, Array]]:
        """Yield every event: loss, action, policy, suggestion, occupancy, bias (n,)."""
        loss_of = np.repeat(np.arange(len(self.rows.start) - 1), np.diff(self.rows.start))
        action_of = np.arange(len(loss_of)) - self.rows.start[loss_of]
        bias, _, occupancy = self._decision
        for row, loss in enumerate(loss_of):
            yield int(loss), int(action_of[row]), None, None, float(occupancy[row]), bias[row]
        for g, (bias, _, occupancy) in enumerate(self._cross):
            for j, suggestion, row in np.ndindex(occupancy.shape):
                at = int(self._bounds[g]) + row
                yield (
                    int(loss_of[at]),
                    int(action_of[at]),
                    j,
                    suggestion,
                    float(occupancy[j, suggestion, row]),
                    bias[j, suggestion, row],
                )
