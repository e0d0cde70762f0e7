"""Scalar events: conditioning on what hurts, for a finite list of losses.

For a protected loss k, played action a and comparator c (every fixed action, every policy) the
expert's gain is, with r the coefficients,

    g_t = E_{p ~ mixture_t}[ [BR_k(p) = a] <r(c) - r(a), p - s_t> ] / scale_k.

An agent that best-responds has r(a).p <= r(c).p: what it loses against c while playing a is at most
scale_k times the cumulative gain G, and swap and decision swap regret at most
sum_a max_c scale_k max(G_{k,a,c}, 0), directly, without lambda and without n. One sign suffices: a
bias in the agent's favour needs no correction. While a reference is trusted the gain is the regret
itself (``trust``).

A **model** that predicts s(y) is a comparator too, another one for each loss: c is then the best
response of loss k to the model's prediction, so that the sum of its positive gains bounds what the
agent loses against doing what the model would have it do. Coordinates have the models' gains beside
their own events. Where all models have failed, their gains are noise, whose correction costs those
who would not follow them: their band is wider.

``scale_k`` keeps gains in [-1, 1]: max ||r(c) - r(a)||_1 over the box, and at most 2 where
predictions stay in conv s(Y), since then expected and true losses lie in [0, 1] and the played
action is the best expected.

K A (A + C) numbers take the place of K A (1 + C A) n. The price: a loss that was not listed is not
protected, and a stream that coordinates would learn exactly (a cycle) is learned only as far as it
hurts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.base import Event, EventSet
from regretless.forecaster.events.bounds import BiasBound, GainBound, gain_range
from regretless.forecaster.events.protected import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import AdaptiveWeights, Band, Moment, WeightRule, Weights
from regretless.forecaster.trust import Trust
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.records import checked_suggestion

ROUNDING = 1e-9  # of a sum of gains


class GainEvents(EventSet):
    """The gains of listed losses against actions and policies, where ``fixed``, and M ``models``.

    ``within`` is the range of the gains where predictions stay in conv s(Y): 2 + 4 delta for a
    basis of error delta. Groups are all over the same basis; the rule is adaptive by default.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays",)
    IN_PLACE = True

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        rule: WeightRule | None = None,
        *,
        within: float | None = None,
        models: int = 0,
        fixed: bool = True,
    ) -> None:
        self.rows, self.rule, self.within = LossTable.of(groups), rule or AdaptiveWeights(), within
        self.models, self.losses = models, len(self.rows.start) - 1
        own = [g.offset.shape[1] + len(g.policies) if fixed else 0 for g in self.groups]
        shapes = [(*g.offset.shape, c + models) for g, c in zip(self.groups, own, strict=True)]
        self.experts = sum(k * a * (c - fixed) for k, a, c in shapes)
        cuts = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)])
        self._gain, self._variation = np.zeros(cuts[-1]), np.zeros(cuts[-1])
        self._squares = np.zeros(cuts[-1])  # whatever the variation is
        self.members = [
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
        self._follows = np.zeros(cuts[-1])
        for part in self.members:
            part.view(self._follows)[:, :, part.constants + part.policies :] = 1.0
        self._occupancy = np.zeros(len(self.rows.offset))
        self.arrays = {
            "gain": self._gain,
            "variation": self._variation,
            "squares": self._squares,
            "occupancy": self._occupancy,
        }
        self.reset()

    def reset(self) -> None:
        """Begin anew; an action is never weighed against itself."""
        for array in self.arrays.values():
            array[...] = 0.0
        for part in self.members:
            actions = np.arange(part.constants)
            part.view(self._gain)[:, actions, actions] = -np.inf

    def active(self, x: Any, suggestions: Indices | None = None) -> list[Indices]:
        """Return what every group's policies and models suggest to its losses, (K, C + M) each."""
        return [
            part.suggestions(
                x, None if suggestions is None else suggestions[self.rows.losses(part.group)]
            )
            for part in self.members
        ]

    def top(self, active: list[Indices], moment: Moment) -> float:
        return self.rule.top(self._counted(moment.band), self._variation, moment)

    def weigh(
        self, active: list[Indices], moment: Moment, weights: Weights, share: float = 1.0
    ) -> None:
        """Add the weights: H_(k, a) = sum_c w_c (r(c) - r(a)) / scale for every loss and action."""
        known = self._counted(moment.band), self._variation
        own = share * self.rule.one_sided(*known, moment, top=weights.top)
        weights.add(own, partial(self.folded, active))

    def _counted(self, band: Band) -> Array:
        """Return what the weights see of all gains, but for the common band."""
        if not band.models:
            return self._gain
        return np.asarray(self._gain - band.models * self._follows * np.sqrt(self._variation))

    def exceeds(self, active: list[Indices], trust: Trust, *, hint: bool = False) -> bool:
        """Whether some regret is more than chance explains, or adds up to more over actions."""
        if trust.rejects(self._gain, self._squares, hint=hint):
            return True
        if hint:
            each = ((p.view(self._gain), p.view(self._squares)) for p in self.members)
            return any(trust.rejects(*_over_actions(*own, 0), hint=True) for own in each)
        return any(
            trust.among(tests).rejects(*sums)
            for part in self.members
            for tests, sums in self._totals(part, trust)
        )

    def _totals(self, part: "GroupPart", trust: Trust) -> Iterator[tuple[int, tuple[Array, Array]]]:
        """Yield how many sums over a loss's actions are watched, the greatest ones and their V."""
        each = part.view(self._gain), part.view(self._squares)
        fixed = part.constants + part.policies
        copies = self.losses * trust.tests // self.experts
        if fixed:
            yield copies * fixed ** part.shape[1], _greatest(*each, fixed)
        if self.models:
            yield copies * self.models, _over_actions(*each, fixed)

    def spent(self) -> float:
        return float(np.log1p(self._variation).sum())

    def log_potential(self, band: Band) -> float:
        weighed = np.isfinite(self._gain)
        gain, variation = self._counted(band)[weighed], self._variation[weighed]
        return float(np.logaddexp.reduce(self.rule.potentials(gain, variation, band.zone)))

    def folded(self, active: list[Indices], weights: Array) -> Array:
        """Turn the weights of the scalar events into a table H (rows, n)."""
        tables = []
        for part, suggested in zip(self.members, active, strict=True):
            pull = part.folded(part.view(weights), suggested) / part.scale[:, None, None]
            rows = part.group.weights
            tables.append((pull @ rows - pull.sum(2, keepdims=True) * rows).reshape(-1, self.size))
        return np.concatenate(tables)

    def charge(self, active: list[Indices], played: Played) -> None:
        self.add(active, played, list(self.worths(played)))

    def add(self, active: list[Indices], played: Played, worths: list[Array]) -> None:
        """Add what a round was worth to the gains."""
        for part, suggested, worth in zip(self.members, active, worths, strict=True):
            sums = part.view(self._gain), part.view(self._variation), part.view(self._squares)
            seen = played.seen[self.rows.slice(part.group)].reshape(part.shape[:2])
            _add_gains((worth, seen, part.scale), suggested, sums, 2 if self.rule.squared else 1)
        self._occupancy += played.seen

    def worths(self, played: Played) -> Iterator[Array]:
        """Yield for every group what the bias of each action is worth to every action (K, A, A).

        While a reference is trusted that is the regret, without the margin by which an action was
        expected to be the best. It counts at most the lesser of 1, which no regret of a normalised
        loss exceeds, and a scale, than which actions alone are worse that always are.
        """
        for part in self.members:
            rows, own = part.group.weights, self.rows.slice(part.group)
            worth = played.bias[own].reshape(rows.shape) @ rows.swapaxes(1, 2)
            if played.losses is not None:
                seen, came = (
                    one[own].reshape(rows.shape[:2]) for one in (played.seen, played.losses)
                )
                _regrets(worth, seen, came, part.scale)
            yield worth

    def bound(self, **stand: Any) -> GainBound:
        return GainBound(self.rule, **self.shape, **stand)

    @property
    def shape(self) -> dict[str, Any]:
        """What a bound needs to know of it."""
        return {"within": self.within, "losses": self.losses, "own": self.experts} | {
            "models": self.models
        }

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected decision swap regret (K,): sum_a max_c of the gains' bounds.

        While a reference is trusted the gain is the regret, and stands for itself.
        """
        part = self.members[self.rows.place(group)]
        gains = bound.bias_at(part.view(self._variation))
        if bound.trusted:
            gains = np.maximum(part.view(self._gain), 0.0) + ROUNDING
        gains *= part.scale[:, None, None]
        return np.asarray(gains[:, :, : part.constants + part.policies].max(2).sum(1))

    def table(self) -> Iterator[Event]:
        """Yield loss, action, None, None, occupancy and gains (A + C,) in units of the loss."""
        loss, row = 0, 0
        for part in self.members:
            gains = np.where(np.isfinite(part.view(self._gain)), part.view(self._gain), 0.0)
            for k, action in np.ndindex(part.shape[:2]):
                occupancy = float(self._occupancy[row])
                yield loss + k, action, None, None, occupancy, gains[k, action] * part.scale[k]
                row += 1
            loss += part.shape[0]


@dataclass(frozen=True, eq=False)
class GroupPart:
    """One group's share of the flat accumulators."""

    group: ProtectedLosses
    scale: Array  # (K,) divides a loss's gains into [-1, 1]
    place: slice  # of the flat arrays
    shape: tuple[int, int, int]  # K, A, constants + policies + models
    constants: int  # how many fixed actions are comparators
    policies: int  # and policies; models follow them

    def view(self, flat: Array) -> Array:
        """Return this group's entries as an array of this shape."""
        return flat[self.place].reshape(self.shape)

    def suggestions(self, x: Any, models: Indices | None) -> Indices:
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
        for j, action in enumerate(suggested.T):
            table[every, :, action] += weights[:, :, self.constants + j]
        return table


@compiled()
def _regrets(worth: Array, seen: Array, came: Array, scale: Array) -> None:
    """Put what was regretted in place of what a bias is worth (K, A, A)."""
    for k in range(worth.shape[0]):
        for a in range(worth.shape[1]):
            if seen[k, a] <= 0.0:
                continue
            own, most = worth[k, a, a], seen[k, a] * min(scale[k], 1.0)
            for b in range(worth.shape[2]):
                regret = min(worth[k, a, b] - own, seen[k, a] * (came[k, a] - came[k, b]))
                worth[k, a, b] = min(max(regret, -most), most)


@compiled()
def _over_actions(gain: Array, squares: Array, first: int) -> tuple[Array, Array]:
    """Add up the R of all actions to the same comparator, from the first on, and their V."""
    total, spread = np.zeros((2, gain.shape[0], gain.shape[2] - first))
    for k in range(gain.shape[0]):
        for a in range(gain.shape[1]):
            for c in range(first, gain.shape[2]):
                if gain[k, a, c] > -np.inf:
                    total[k, c - first] += gain[k, a, c]
                    spread[k, c - first] += squares[k, a, c]
    return total, spread


@compiled()
def _greatest(gain: Array, squares: Array, end: int) -> tuple[Array, Array]:
    """Add up every action's greatest R above 0 to comparators before an end (K,), and their V."""
    total, spread = np.zeros(gain.shape[0]), np.zeros(gain.shape[0])
    for k in range(gain.shape[0]):
        for a in range(gain.shape[1]):
            best, its = 0.0, 0.0
            for c in range(end):
                if gain[k, a, c] > best:
                    best, its = gain[k, a, c], squares[k, a, c]
            total[k] += best
            spread[k] += its
    return total, spread


@compiled(error_model="numpy")
def _add_gains(
    known: tuple[Array, Array, Array],
    suggested: Indices,
    sums: tuple[Array, Array, Array],
    power: int,
) -> None:
    """Add gains (K, A, C) of actions that were played, and powers of their sizes."""
    worth, seen, scale = known
    gains, sizes, squares = sums
    constants = gains.shape[2] - suggested.shape[1]
    for k in range(gains.shape[0]):
        for a in range(gains.shape[1]):
            if seen[k, a] <= 0.0:
                continue
            for c in range(gains.shape[2]):
                b = c if c < constants else suggested[k, c - constants]
                gain = (worth[k, a, b] - worth[k, a, a]) / scale[k]
                gains[k, a, c] += gain
                sizes[k, a, c] += gain * gain if power == 2 else abs(gain)
                squares[k, a, c] += gain * gain
