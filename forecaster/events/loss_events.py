"""Scalar events: conditioning on what hurts, for a finite list of losses.

Other events are those of coordinates (``decision_events``).

For a protected loss k, played action a and comparator c (every fixed action, every policy) the
expert's gain is, with r the coefficients,

    g_t = E_{p ~ mixture_t}[ [BR_k(p) = a] <r(c) - r(a), p - s_t> ] / scale_k.

An agent that best-responds has r(a).p <= r(c).p: what it loses against c while playing a is at most
scale_k times the cumulative gain G, and swap and decision swap regret at most sum_a max_c scale_k
max(G_{k,a,c}, 0), without lambda and without n. While a reference is trusted the gain is the regret
itself. A **model** that predicts s(y) is a comparator too, another one for each loss: c is then the
best response of loss k to the model's prediction. Coordinates have the models' gains beside their
own events. Where all models have failed, their gains are noise: their band is wider.

``scale_k`` keeps gains in [-1, 1]: max ||r(c) - r(a)||_1 over the box, and at most 2 where
predictions stay in conv s(Y), since then expected and true losses lie in [0, 1] and the played
action is the best expected. A loss that was not listed is not protected.

**Assignments** (docs/theory.md, 6). For a loss k, with d_t(a, c) the mean gain given that a is
played, q_t(a) the chance of that, G(a, c) = sum_t q_t(a) d_t(a, c) and U the same of squares,

    F_k = sum_j prod_a sum_c exp(eta_j G - psi_j U) / C / J,    psi_j = -eta_j - ln(1 - eta_j).

With s(a, c) the current shares of c at a, x = eta d - psi d^2 and exp(x) <= 1 + eta d,

    prod_a sum_c s e^(q x) <= prod_a (sum_c s e^x)^q <= sum_a q sum_c s e^x
                           <= 1 + eta sum_a q(a) sum_c s(a, c) d(a, c),

as the q(a) add up to 1. So F_k grows with the mean gain of the weights eta_j F_kj s(a, c) / J, and
one game keeps W, the sum of the gains' potentials and r (N / K) sum_k F_k, r = 1 %, below N P, P =
e^(k S) (1 + r + l ln(1 + T)), and so T x regret of k <= scale_k min_j (L + psi_j U) / eta_j, U =
sum_a max_c U(a, c) <= T, L = A ln C + ln(J K / r) + ln P. Gains keep their own bound, with this P,
and the lesser of both is printed. Where a reference was trusted the F_k begin at 1 when the games
begin; what was regretted before is added: known, or at most A L(T / A) + A. **As drawn**, charged
with the prediction that was broadcast, P / risk stands for P in both; the gains stay charged in
expectation.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet, View
from regretless.forecaster.events.bounds import CURBS, RATES, BiasBound, GainBound, gain_range
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import AdaptiveWeights, Moment, WeightRule, Weights
from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.records import Event, checked_suggestion

ROUNDING = 1e-9  # of a sum of gains
SHARE = 0.01  # r
MOST = 200_000_000  # gains, 32 bytes each


class Gains:
    """The gains of one group's losses, by played action and comparator (K, A, C).

    Comparators are the ``constants`` first ones, which are actions, policies, and from ``fixed`` on
    models. ``scale`` (K,) divides a loss's gains into [-1, 1].
    """

    gain: Array
    variation: Array
    squares: Array
    played_squares: Array  # of gains given that the action is played, times the chance of that
    scale: Array

    def __init__(
        self, group: ProtectedLosses, rows: LossTable, *, fixed: bool, models: int
    ) -> None:
        self.group, self.rows, self.losses = group, rows.slice(group), rows.losses(group)
        self.constants = group.offset.shape[1] if fixed else 0
        self.policies = group.policies if fixed else ()
        self.fixed, self.models = self.constants + len(self.policies), models
        self.shape = (*group.offset.shape, self.fixed + models)

    def suggestions(self, x: object, models: Indices | None) -> Indices:
        """Return what policies suggest given the context, to all alike, and models: (K, C - A)."""
        made = np.empty((self.shape[0], self.shape[2] - self.constants), dtype=np.intp)
        for j, policy in enumerate(self.policies):
            made[:, j] = checked_suggestion(policy, x, self.shape[1])
        if models is not None:
            made[:, len(self.policies) :] = models[self.losses]
        return made

    def of_round(self, suggested: Indices, played: Played) -> Array:
        """Return what a round adds to the gains; while a reference is trusted, the regret.

        It counts at most the lesser of 1, which no normalised loss regrets more than, and a scale.
        """
        weights, shape = self.group.weights, self.shape[:2]
        worth = played.bias[self.rows].reshape(weights.shape) @ weights.swapaxes(1, 2)
        worth = worth - np.einsum("kaa->ka", worth)[:, :, None]
        if played.losses is not None:
            seen, came = (own[self.rows].reshape(shape) for own in (played.seen, played.losses))
            most = (seen * np.minimum(self.scale, 1.0)[:, None])[:, :, None]
            regret = seen[:, :, None] * (came[:, :, None] - came[:, None, :])
            worth = np.clip(np.minimum(worth, regret), -most, most)
        worth = worth / self.scale[:, None, None]
        told = np.take_along_axis(worth, suggested[:, None, :], 2)
        return np.concatenate([worth[:, :, : self.constants], told], axis=2)

    def folded(self, weights: Array, suggested: Indices) -> Array:
        """Turn weights (K A C,) into coordinates' (rows, n), sum_c w_c (r(c) - r(a)) / scale."""
        rows, every = self.group.weights, np.arange(self.shape[0])
        weights = weights.reshape(self.shape)
        pull = np.zeros((*self.shape[:2], self.shape[1]))
        pull[:, :, : self.constants] = weights[:, :, : self.constants]
        for j, action in enumerate(suggested.T, start=self.constants):
            pull[every, :, action] += weights[:, :, j]
        pull /= self.scale[:, None, None]
        table = pull @ rows - pull.sum(2, keepdims=True) * rows
        return np.asarray(table.reshape(-1, rows.shape[2]))

    def exceeds(self, trust: SwitchTest, losses: int, *, hint: bool) -> bool:
        """Whether some regret is more than chance explains, or adds up to more over actions.

        ``losses`` counts the losses that share a kind of test, as the switch test counts.
        """
        regret = np.where(np.isfinite(self.gain), self.gain, 0.0)
        if trust.rejects(regret, self.squares, hint=hint):
            return True
        common = regret.sum(1)  # to the same comparator whatever is played
        common_squares = self.played_squares.sum(1)
        if hint:
            return trust.rejects(common, common_squares, hint=True)
        rejected = False
        if self.fixed:
            best = regret[:, :, : self.fixed].argmax(2)[:, :, None]
            gain = np.take_along_axis(regret, best, 2)[:, :, 0]
            squares = np.take_along_axis(self.played_squares, best, 2)[:, :, 0]
            total = np.maximum(gain, 0.0).sum(1)
            total_squares = np.where(gain > 0, squares, 0.0).sum(1)
            assignments = replace(trust, tests=losses * self.fixed ** self.shape[1])
            rejected = assignments.rejects(total, total_squares)
        if self.models:
            to_models = replace(trust, tests=losses * self.models)
            models = slice(self.fixed, None)
            rejected |= to_models.rejects(common[:, models], common_squares[:, models])
        return rejected


class GainEvents(EventSet):
    """The gains of listed losses against actions and policies, where ``fixed``, and M ``models``.

    ``within`` is the range of the gains where predictions stay in conv s(Y): 2 + 4 delta for a
    basis of error delta. Groups are all over the same basis; the rule is adaptive by default.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_played_squares",)

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        rule: WeightRule | None = None,
        *,
        within: float | None = None,
        models: int = 0,
        fixed: bool = True,
    ) -> None:
        self.rows, self.rule, self.within = LossTable(groups), rule or AdaptiveWeights(), within
        self.members = [Gains(own, self.rows, fixed=fixed, models=models) for own in self.groups]
        self.models, self.losses = models, len(self.rows.start) - 1
        self.has_fixed = fixed
        self.experts = sum(k * a * (c - fixed) for k, a, c in (one.shape for one in self.members))
        if self.experts > MOST:
            many = f"{self.experts:,} gains of an action over another, above {MOST:,}"
            raise UserError(f"forecaster.events = 'losses': {many}; take 'coordinates'")
        *self._ends, end = np.cumsum([math.prod(member.shape) for member in self.members])
        # gains, variations, squares whatever variations are, and squares given the action
        sums = np.zeros((4, end))
        parts = zip(self.members, np.split(sums, self._ends, axis=1), strict=True)
        for member, flat in parts:
            by_kind = flat.reshape(4, *member.shape)
            member.gain, member.variation, member.squares, member.played_squares = by_kind
            member.scale = gain_range(member.group.weights, within)
            actions = np.arange(member.constants)
            member.gain[:, actions, actions] = -np.inf  # never weighed against itself
        follows = [np.broadcast_to(np.arange(m.shape[2]) >= m.fixed, m.shape) for m in self.members]
        wide = np.concatenate([own.ravel() for own in follows])
        self._played_squares = sums[3]
        known = sums[0], sums[1], sums[2], np.zeros(self.rows.shape[0])
        self.views = [View(slice(None), *known, both=False, wide=wide)]

    def active(self, x: object, suggestions: Indices | None = None) -> list[Indices]:
        """Return what every group's policies and models suggest to its losses, (K, C - A) each."""
        return [member.suggestions(x, suggestions) for member in self.members]

    def weigh(self, active: list[Indices], moment: Moment) -> Iterator[Weights]:
        (own,) = self.views
        found = self.rule.weigh(own.counted(moment.band), own.variation, moment)
        yield found._replace(fold=partial(self.folded, active))

    def folded(self, active: list[Indices], weights: Array) -> Array:
        """Turn the weights of the scalar events into a table H (rows, n)."""
        parts = zip(self.members, np.split(weights, self._ends), active, strict=True)
        return np.concatenate([member.folded(own, said) for member, own, said in parts])

    def charge(self, active: list[Indices], played: Played) -> None:
        for member, suggested in zip(self.members, active, strict=True):
            gain = member.of_round(suggested, played)
            member.gain += gain
            member.variation += gain**2 if self.rule.squared else np.abs(gain)
            member.squares += gain**2
            if played.losses is not None:  # the switch test goes on
                chance = played.seen[member.rows].reshape(*member.shape[:2], 1)
                member.played_squares += gain**2 / np.where(chance > 0, chance, 1.0)
        self.views[0].occupancy[:] += played.seen

    @property
    def alarms(self) -> int:
        """Count every kind of test as often as there are experts: they share alpha equally.

        The kinds are single regrets, sums over actions against actions and policies where these
        are comparators, and regrets to models where there are any.
        """
        kinds = 1 + self.has_fixed + (self.models > 0)
        return self.experts * kinds

    def exceeds(self, active: list[Indices], trust: SwitchTest, *, hint: bool = False) -> bool:
        losses = self.losses * trust.tests // self.experts
        return any(member.exceeds(trust, losses, hint=hint) for member in self.members)

    def bound(self, stand: BiasBound) -> GainBound:
        counts: Any = {"losses": self.losses, "own": self.experts, "models": self.models}
        return GainBound(**vars(stand) | counts | {"within": self.within})

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound it by sum_a max_c of the gains' bounds; of gains, while a reference is trusted."""
        member = self.members[self.rows.place(group)]
        gains = bound.bias_at(member.variation)
        if bound.trusted:
            gains = np.maximum(member.gain, 0.0) + ROUNDING
        return np.asarray(member.scale * gains[:, :, : member.fixed].max(2).sum(1))

    def least_gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return the gains against actions and policies (k, A, C), without those against models."""
        member = self.members[self.rows.place(group)]
        gain = member.gain[losses][:, :, : member.fixed]
        known = np.where(np.isfinite(gain), gain, 0.0)
        return np.asarray(member.scale[losses, None, None] * known)

    def most_gained(self, bound: BiasBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound the same by the rule's proof; while a reference is trusted, by the gains."""
        if bound.trusted:
            return self.least_gained(group, losses) + ROUNDING
        member = self.members[self.rows.place(group)]
        most = bound.bias_at(member.variation[losses][:, :, : member.fixed])
        return np.asarray(member.scale[losses, None, None] * most)

    def table(self) -> Iterator[Event]:
        """Yield loss, action, None, None, occupancy and gains (C,) in units of the loss."""
        for member in self.members:
            gains = np.where(np.isfinite(member.gain), member.gain, 0.0)
            occupancy = self.views[0].occupancy[member.rows].reshape(member.shape[:2])
            for k, action in np.ndindex(occupancy.shape):
                event = member.losses.start + k, action, None, None
                yield *event, float(occupancy[k, action]), gains[k, action] * member.scale[k]


class Assignments(GainEvents):
    """Gains, by adaptive weights, with a potential over the assignments of comparators beside.

    ``share`` is r. ``risk`` is the chance that its bounds fail, where the assignments are charged
    with the predictions that are broadcast; None for expectations, whose bounds never fail and
    leave out the draws. The rest is as in ``GainEvents``.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("unseen", "_parts")

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        rule: WeightRule | None = None,
        *,
        share: float = SHARE,
        risk: float | None = None,
        **gains: Any,
    ) -> None:
        super().__init__(groups, rule, **gains)
        self.share, self.risk, self.drawn, self.unseen = share, risk, risk is not None, 0
        self._price = math.log(share * self.experts / self.losses / len(RATES))
        # G, U and what was gained before the games (3, K, A, C)
        self._parts = [np.zeros((3, *member.shape)) for member in self.members]

    def weigh(self, active: list[Indices], moment: Moment) -> Iterator[Weights]:
        """Yield the gains and then the assignments, which share the losses' rows."""
        yield from super().weigh(active, moment)
        rated = self._price + np.log(RATES)
        known = [_shares(gain, squares) for gain, squares, _ in self._parts]
        powers = [logs.sum(1) + rated for _, logs in known]

        def weights(top: float, share: float) -> tuple[Array, float]:
            chosen = [share * np.exp(own - top) for own in powers]
            pairs = zip(known, chosen, strict=True)
            made = [np.einsum("kj,kajc->kac", own, shares).ravel() for (shares, _), own in pairs]
            return np.concatenate(made), sum(float(own.sum()) for own in chosen)

        top = max(float(own.max()) for own in powers)
        yield Weights(top, weights, fold=partial(self.folded, active))

    def charge(self, active: list[Indices], played: Played) -> None:
        """Add a round to the gains in expectation, and to the assignments as they are charged."""
        super().charge(active, played)
        if self.drawn:
            self.unseen += played.drawn is None
            played = played.drawn or played
        for member, suggested, part in zip(self.members, active, self._parts, strict=True):
            gain = member.of_round(suggested, played)
            seen = played.seen[member.rows].reshape(*member.shape[:2], 1)
            if played.losses is not None:  # no game yet: it is known, and not weighed
                part[2] += gain
                continue
            part[0] += gain
            part[1] += gain**2 / np.where(seen > 0, seen, 1.0)

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the gains' potentials and of the assignments' at their price."""
        known = (_shares(gain, squares)[1].sum(1) for gain, squares, _ in self._parts)
        own = [(logs + self._price).ravel() for logs in known]
        return float(np.logaddexp.reduce([super().log_potential(band), *np.concatenate(own)]))

    def bound(self, stand: BiasBound) -> GainBound:
        return replace(super().bound(stand), beside=self.share, risk=self.risk or 1.0)

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        alone = super().from_variation(bound, group)
        own = None if self.drawn else self._assigned(bound, group)
        return alone if own is None else np.minimum(alone, own)

    def over_stay(
        self, bound: Any, group: ProtectedLosses, losses: Indices, at_entry: Array
    ) -> Array:
        """Bound it by the gains, and by the assignments where they are charged in expectation.

        An assignment gained G_0 before the games and, since then, what its potential allows:
        from entry to exit at most sum_a max_c (G_0 - G_s) more than that.
        """
        alone = super().over_stay(bound, group, losses, at_entry)
        if self.drawn:
            return alone
        place = self.rows.place(group)
        member, (_, squares, before) = self.members[place], self._parts[place]
        most_squares = squares[losses][:, :, : member.fixed].max(2).sum(1)
        since_the_games_began = bound.assigned(most_squares, *member.shape[1:])
        if since_the_games_began is None:
            return alone
        scale = member.scale[losses]
        known = scale[:, None, None] * before[losses][:, :, : member.fixed] - at_entry
        together = known.max(2).sum(1) + scale * since_the_games_began
        return np.asarray(np.minimum(alone, together))

    def realised(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        return self._assigned(bound, group) if self.drawn and not self.unseen else None

    def _assigned(self, bound: Any, group: ProtectedLosses) -> Array | None:
        place = self.rows.place(group)
        member, (_, squares, before) = self.members[place], self._parts[place]
        most = squares[:, :, : member.fixed].max(2).sum(1)
        after = bound.assigned(most, *member.shape[1:])
        known = np.maximum(before[:, :, : member.fixed].max(2), 0.0).sum(1)
        return None if after is None else np.asarray(member.scale * (known + after))


def _shares(gain: Array, squares: Array) -> tuple[Array, Array]:
    """Return the shares of comparators (K, A, J, C), and the logarithms of their sums (K, A, J)."""
    powers = RATES[:, None] * gain[:, :, None] - CURBS[:, None] * squares[:, :, None]
    top = powers.max(3, keepdims=True)
    shares = np.exp(powers - top)
    total = shares.sum(3, keepdims=True)
    return shares / total, (top + np.log(total / gain.shape[2]))[..., 0]
