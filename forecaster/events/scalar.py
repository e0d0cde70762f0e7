r"""Scalar events: conditioning on what hurts, for a finite list of losses.

For a protected loss k, played action a and comparator c (every fixed action, every policy) the
expert's gain is, with r the coefficients,

    g_t = E_{p ~ mixture_t}[ [BR_k(p) = a] <r(c) - r(a), p - s_t> ] / scale_k.

An agent that best-responds has r(a).p <= r(c).p, so what it loses against c while playing a is at
most scale_k times the cumulative gain G: swap and decision swap regret are bounded by

    sum_a max_c scale_k max(G_{k,a,c}, 0)

directly, without lambda and without n. One sign suffices: a bias in the agent's favour needs no
correction.

A **model** that predicts s(y) is a comparator too, and another one for each loss: c is then the
best response of loss k to the model's prediction, so that the sum of its positive gains bounds what
the agent loses against doing what the model would have it do. Coordinates have the models' gains
beside their own events. Where all models have
failed, their gains are noise, whose correction costs those who would not follow them: ``widen``.

``scale_k`` keeps gains in [-1, 1]: max ||r(c) - r(a)||_1 over the box, and at most 2 where
predictions stay in conv s(Y), since then expected and true losses lie in [0, 1] and the played
action is the best expected.

K A (A + C) numbers take the place of K A (1 + C A) n. The price: the forecast learns nothing but
what these losses need, so a loss that was not listed is not protected, and a stream that
coordinates would learn exactly (a cycle) is learned only as far as it hurts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.forecaster.events.bounds import BiasBound, GainBound, gain_range
from regretless.forecaster.events.draws import Draws
from regretless.forecaster.events.protected import LossGroup, best_responses, moved_mass, rows_of
from regretless.forecaster.events.weights import WeightRule, potentials
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.compiled import compiled
from regretless.market.records import checked_suggestion


class LossEvents(Remembering):
    """The scalar events of an instance and their cumulative gains.

    Parameters
    ----------
    groups : sequence of LossGroup
        All over the same basis.
    within : float or None
        Range of the gains where predictions stay in conv s(Y): 2 + 4 delta for a basis of error
        delta. None where they do not.
    models : int
        M, how many models are comparators.
    fixed : bool
        Whether actions and policies are comparators, too.

    Attributes
    ----------
    rows : Rows
    size : int
        Number of basis functions, n.
    experts : int
        Number of scalar events; an action is no comparator of itself.
    arrays : dict
        Gains, variations and occupancies so far.
    models_zone : float
        y, by which the zone of the gains against models is wider.
    """

    REMEMBERED = ("arrays",)
    IN_PLACE = True

    def __init__(
        self,
        groups: Sequence[LossGroup],
        *,
        within: float | None = None,
        models: int = 0,
        fixed: bool = True,
    ) -> None:
        self.groups, self.within, self.models = tuple(groups), within, models
        self.rows = rows_of(self.groups)
        self.size = self.rows.shape[1]
        own = [g.offset.shape[1] + len(g.policies) if fixed else 0 for g in self.groups]
        shapes = [(*g.offset.shape, c + models) for g, c in zip(self.groups, own, strict=True)]
        self.experts = sum(k * a * (c - fixed) for k, a, c in shapes)
        cuts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        self._gain, self._variation = np.zeros(cuts[-1]), np.zeros(cuts[-1])
        self._parts = [
            GroupPart(
                group,
                gain_range(group.weights, within),
                slice(int(first), int(last)),
                shape,
                group.offset.shape[1] if fixed else 0,
                len(group.policies) if fixed else 0,
            )
            for group, first, last, shape in zip(
                self.groups, cuts[:-1], cuts[1:], shapes, strict=True
            )
        ]
        self.models_zone, self._follows = 0.0, np.zeros(cuts[-1])
        for part in self._parts:
            actions = np.arange(part.constants)
            part.view(self._gain)[:, actions, actions] = -np.inf  # never weighed
            part.view(self._follows)[:, :, part.constants + part.policies :] = 1.0
        self._occupancy = np.zeros(len(self.rows.offset))
        self.draws = Draws(self.groups, self.rows)
        self.arrays = {
            "gain": self._gain,
            "variation": self._variation,
            "occupancy": self._occupancy,
        } | {f"draws_{name}": kept for name, kept in self.draws.arrays.items()}

    def awake(self, x: Any, points: Array | None = None) -> list[Indices]:
        """Return what every group's policies and models suggest to its losses, (K, C + M) each.

        Parameters
        ----------
        points : array (M, n), optional
            What each model predicts in this round.

        Raises
        ------
        ValueError
            If a policy suggests an action that its group does not have.
        """
        told = None if points is None else best_responses(self.rows, points)
        made, first = [], 0
        for part in self._parts:
            last = first + part.shape[0]
            made.append(part.told(x, None if told is None else told[first:last]))
            first = last
        return made

    def weighted(self, awake: list[Indices], rule: WeightRule, time: int) -> Array:
        """Return H (rows, n): sum_c w_c (r(c) - r(a)) / scale for every loss and action."""
        return self.folded(awake, rule.one_sided(*self.counted, time))

    @property
    def sums(self) -> tuple[Array, Array]:
        """All gains and their variations, one number per scalar event."""
        return self._gain, self._variation

    @property
    def counted(self) -> tuple[Array, Array]:
        """What the weights see of all gains, and their variations."""
        if not self.models_zone:
            return self.sums
        zone = self.models_zone * self._follows
        return self._gain - zone * np.sqrt(self._variation), self._variation

    def widen(self, models_zone: float) -> None:
        """Let the weights see no more than G - y sqrt(C) of gains against models."""
        self.models_zone = models_zone

    def exceeds(self, awake: list[Indices], zone: float) -> bool:
        """Whether some gain is above ``zone`` times the root of its variation."""
        return bool((self._gain > zone * np.sqrt(self._variation)).any())

    def spent(self) -> float:
        """Return the mean of ln(1 + C) over all scalar events."""
        return float(np.log1p(self._variation).sum() / self.experts)

    def potential(self, zone: float) -> float:
        """Return the mean potential of the scalar events under adaptive weights with this zone."""
        weighed = np.isfinite(self._gain)
        gain, variation = self.counted
        own = potentials(gain[weighed], variation[weighed], zone)
        return float(own.sum() / self.experts)

    def folded(self, awake: list[Indices], weights: Array) -> Array:
        """Turn the weights of the scalar events into a table H (rows, n)."""
        tables = []
        for part, suggested in zip(self._parts, awake, strict=True):
            pull = part.folded(part.view(weights), suggested) / part.scale[:, None, None]
            rows = part.group.weights
            tables.append((pull @ rows - pull.sum(2, keepdims=True) * rows).reshape(-1, self.size))
        return np.concatenate(tables)

    def charge(
        self,
        awake: list[Indices],
        points: Array,
        mass: Array,
        truth: Array,
        *,
        squared: bool = False,
    ) -> None:
        """Add a round to the gains, in expectation over the mixture.

        Parameters
        ----------
        awake : list of array (K, C + M)
            As returned for this round's context.
        points, mass : array (m, n), (m,)
            The mixture.
        truth : array (n,)
            s(y).
        squared : bool
            Whether the variations add up squares (``WeightRule``).
        """
        seen, moved = moved_mass(self.rows, points, mass)
        if len(mass) > 1:
            self.draws.add(seen, truth)
        self.add(awake, seen, moved - seen[:, None] * truth, squared=squared)

    def add(self, awake: list[Indices], seen: Array, bias: Array, *, squared: bool = False) -> None:
        """Add the biases (rows, n) of a round in which rows were played so much (rows,)."""
        first = 0
        for part, suggested in zip(self._parts, awake, strict=True):
            rows = part.group.weights
            own = bias[first : first + rows.shape[0] * rows.shape[1]].reshape(rows.shape)
            first += rows.shape[0] * rows.shape[1]
            worth = own @ rows.swapaxes(1, 2)  # (K, A, A): <r(b), B_a>
            sums = part.view(self._gain), part.view(self._variation)
            _add_gains(worth, part.scale, suggested, sums, 2 if squared else 1)
        self._occupancy += seen

    def suggested(self, awake: list[Indices], group: int) -> Indices:
        """Return what the models suggest to the losses of a group (K, M) in an open round."""
        return awake[group][:, awake[group].shape[1] - self.models :]

    def bound(self, **run: Any) -> GainBound:
        """Return the bound on the gains; ``run`` are the other fields of ``BiasBound``."""
        return GainBound(self.experts, within=self.within, models_zone=self.models_zone, **run)

    def from_variation(self, bound: BiasBound, group: LossGroup) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,).

        sum_a max_c G_{a,c}, with the bound at its variation for every gain.
        """
        part = next(part for part in self._parts if part.group is group)
        gains = bound.bias_at(part.view(self._variation)) * part.scale[:, None, None]
        return np.asarray(gains[:, :, : part.constants + part.policies].max(2).sum(1))

    def table(self) -> Iterator[tuple[int, int, int | None, int | None, float, Array]]:
        """Yield a row per loss and action: loss, action, None, None, occupancy, gains (A + C,).

        Gains are in units of the loss, 0 for the action itself.
        """
        loss, row = 0, 0
        for part in self._parts:
            gains = np.where(np.isfinite(part.view(self._gain)), part.view(self._gain), 0.0)
            for k, action in np.ndindex(part.shape[:2]):
                occupancy = float(self._occupancy[row])
                yield loss + k, action, None, None, occupancy, gains[k, action] * part.scale[k]
                row += 1
            loss += part.shape[0]


@dataclass(frozen=True, eq=False)
class GroupPart:
    """One group's share of the flat accumulators.

    Parameters
    ----------
    scale : array (K,)
        Divides a loss's gains into [-1, 1].
    place : slice
        Of the flat arrays.
    shape : tuple
        (K, A, constants + policies + models).
    constants, policies : int
        How many fixed actions and policies are comparators; models follow them.
    """

    group: LossGroup
    scale: Array
    place: slice
    shape: tuple[int, int, int]
    constants: int
    policies: int

    def view(self, flat: Array) -> Array:
        """Return this group's entries as an array of this shape."""
        return flat[self.place].reshape(self.shape)

    def told(self, x: Any, models: Indices | None) -> Indices:
        """Return what policies suggest given the context, to all alike, and models: (K, C + M)."""
        made = np.empty((self.shape[0], self.shape[2] - self.constants), dtype=np.intp)
        for j, policy in enumerate(self.group.policies[: self.policies]):
            made[:, j] = checked_suggestion(policy, x, self.shape[1])
        if models is not None:
            made[:, self.policies :] = models
        return made

    def folded(self, weights: Array, suggested: Indices) -> Array:
        """Add every comparator's weight to the action that it suggests: (K, A, A)."""
        losses, actions, _ = self.shape
        table = np.zeros((losses, actions, actions))
        table[:, :, : self.constants] = weights[:, :, : self.constants]
        every = np.arange(losses)
        for j, told in enumerate(suggested.T):
            table[every, :, told] += weights[:, :, self.constants + j]
        return table


@compiled(error_model="numpy")
def _add_gains(
    worth: Array, scale: Array, suggested: Indices, sums: tuple[Array, Array], power: int
) -> None:
    """Add gains (K, A, constants + policies + models) and powers of their sizes to their sums.

    ``worth`` is (K, A, A): what the bias of each action is worth to every action.
    """
    gains, sizes = sums
    constants = gains.shape[2] - suggested.shape[1]
    for k in range(gains.shape[0]):
        for a in range(gains.shape[1]):
            for c in range(gains.shape[2]):
                b = c if c < constants else suggested[k, c - constants]
                gain = (worth[k, a, b] - worth[k, a, a]) / scale[k]
                gains[k, a, c] += gain
                sizes[k, a, c] += gain * gain if power == 2 else abs(gain)
