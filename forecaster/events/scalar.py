"""Scalar events: conditioning on what hurts, for a finite list of losses.

For a protected loss k, played action a and comparator c (every fixed action, every policy) the
expert's gain is, with r the coefficients,

    g_t = E_{p ~ mixture_t}[ [BR_k(p) = a] <r(c) - r(a), p - s_t> ] / scale_k.

An agent that best-responds has r(a).p <= r(c).p: what it loses against c while playing a is at most
scale_k times the cumulative gain G, and swap and decision swap regret at most sum_a max_c scale_k
max(G_{k,a,c}, 0), directly, without lambda and without n. One sign suffices: a bias in the agent's
favour needs no correction. While a reference is trusted the gain is the regret itself.

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

**Assignments.** Weights of gains treat every pair of a played action a and a comparator c by
itself, and add up the bounds of all A actions. But a decision swap regret is a maximum over
assignments of comparators to actions, and a potential over all C^A of them factorises. For a loss
k with gains g in [-1, 1], d_t(a, c) the mean gain given that a is played and q_t(a) the chance of
that,

    F_k = sum_j pi_j prod_a sum_c exp(eta_j G(a, c) - psi_j U(a, c)) / C,
    G(a, c) = sum_t q_t(a) d_t(a, c),   U(a, c) = sum_t q_t(a) d_t(a, c)^2,
    eta_j = 2^-j, psi_j = -eta_j - ln(1 - eta_j), pi_j = 1/J, j = 1..J,

where c runs over actions, policies and models.

**One round.** With s(a, c) the current shares of c at a, x = eta d - psi d^2 and exp(eta d - psi
d^2) <= 1 + eta d for |d| <= 1 (``weights``),

    prod_a sum_c s e^(q x) <= prod_a (sum_c s e^x)^q <= sum_a q sum_c s e^x
                           <= 1 + eta sum_a q(a) sum_c s(a, c) d(a, c):

power means, then the weighted means of geometry and arithmetic, as the q(a) add up to 1. So F_k
grows with the mean gain of the weights pi_j eta_j F_kj s(a, c), and one game serves both families:
with r N / K as the price of each F_k, r = 1 %, and N the number of gains,

    W = sum of the gains' potentials + r (N / K) sum_k F_k

grows in a round by the certificate times at most k W (no eta exceeds the k of ``weights``) and the
gains' own terms, whence W <= N P, P = e^(k S) (1 + r + l ln(1 + T)).

**What follows.** F_k <= N P K / (r N), so that for every j and every assignment phi at once

    eta_j G_phi - psi_j U_phi <= L,   L = A ln C + ln(J K / r) + ln P,
    T x regret of k <= scale_k min_j (L + psi_j U) / eta_j,   about scale_k sqrt(2 U L),

with U = sum_a max_c U(a, c) <= T: A no longer multiplies ln K. Gains keep their own bound, with
this P, and the lesser of both is printed. Where a reference was trusted the F_k begin at 1 when the
games begin; what was regretted before is added: known, or at most A w(T / A) + A. Alone the
assignments are slow where nothing is hostile, since comparators without any gain keep their shares:
1 % is enough for the bound.

**As drawn.** Charged with the prediction p_t that was broadcast, in place of the mixture, W / (N P)
is a supermartingale, which by Ville's inequality exceeds 1 / risk at some time with a probability
of at most ``risk``. With P / risk for P the regret that follows is that of the draws, and nothing
is to be added for them (``draws``). The gains stay charged in expectation, with P / risk as well.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.bounds import BiasBound, GainBound, gain_range
from regretless.forecaster.events.protected import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import AdaptiveWeights, Moment, WeightRule, Weights
from regretless.forecaster.reference import Band, Trust
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.records import Event, checked_suggestion

ROUNDING = 1e-9  # of a sum of gains
SHARE = 0.01  # r
RATES = 2.0 ** -np.arange(1, 11)  # eta
CURBS = -RATES - np.log1p(-RATES)  # psi
PRIOR = -math.log(len(RATES))


class GainEvents(EventSet[list[Indices]]):
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
        self.members, end = list[GroupPart](), 0
        for group in self.groups:
            constants, policies = (group.offset.shape[1], len(group.policies)) if fixed else (0, 0)
            shape, first = (*group.offset.shape, constants + policies + models), end
            end += math.prod(shape)
            own = slice(first, end), shape, constants, policies
            self.members.append(GroupPart(group, gain_range(group.weights, within), *own))
        shapes = [part.shape for part in self.members]
        self.experts = sum(k * a * (c - fixed) for k, a, c in shapes)
        # ``squares`` whatever the variation is
        self._gain, self._variation, self._squares, self._follows = np.zeros((4, end))
        for part in self.members:
            part.view(self._follows)[:, :, part.fixed :] = 1.0
        self._occupancy = np.zeros(len(self.rows.offset))
        self.arrays = {"gain": self._gain, "variation": self._variation}
        self.arrays |= {"squares": self._squares, "occupancy": self._occupancy}
        GainEvents.reset(self)

    def reset(self) -> None:
        """Begin anew; an action is never weighed against itself."""
        for array in self.arrays.values():
            array[...] = 0.0
        for part in self.members:
            actions = np.arange(part.constants)
            part.view(self._gain)[:, actions, actions] = -np.inf

    def active(self, x: object, suggestions: Indices | None = None) -> list[Indices]:
        """Return what every group's policies and models suggest to its losses, (K, C + M) each."""
        own = (
            None if suggestions is None else suggestions[self.rows.losses(g)] for g in self.groups
        )
        return [part.suggestions(x, said) for part, said in zip(self.members, own, strict=True)]

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
        copies = self.losses * trust.tests // self.experts
        for part in self.members:
            own, fixed = (part.view(self._gain), part.view(self._squares)), part.fixed
            tests = [(trust, _over_actions(*own, 0))] if hint else []
            if fixed and not hint:
                tests += [(trust.among(copies * fixed ** part.shape[1]), _greatest(*own, fixed))]
            if self.models and not hint:
                tests += [(trust.among(copies * self.models), _over_actions(*own, fixed))]
            if any(test.rejects(*sums, hint=hint) for test, sums in tests):
                return True
        return False

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
                seen, came = played.seen[own], played.losses[own]
                shape = part.shape[:2]
                _regrets(worth, seen.reshape(shape), came.reshape(shape), part.scale)
            yield worth

    def bound(self, stand: BiasBound) -> GainBound:
        return GainBound(**vars(stand) | self.shape)

    @property
    def shape(self) -> dict[str, Any]:
        """What a bound needs to know of it."""
        counts = {"losses": self.losses, "own": self.experts, "models": self.models}
        return {"within": self.within, **counts}

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected decision swap regret (K,): sum_a max_c of the gains' bounds.

        While a reference is trusted the gain is the regret, and stands for itself.
        """
        part = self.members[self.rows.place(group)]
        gains = bound.bias_at(part.view(self._variation))
        if bound.trusted:
            gains = np.maximum(part.view(self._gain), 0.0) + ROUNDING
        gains *= part.scale[:, None, None]
        return np.asarray(gains[:, :, : part.fixed].max(2).sum(1))

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

    @property
    def fixed(self) -> int:
        """How many comparators are no models."""
        return self.constants + self.policies

    def view(self, flat: Array) -> Array:
        """Return this group's entries as an array of this shape."""
        return flat[self.place].reshape(self.shape)

    def suggestions(self, x: object, models: Indices | None) -> Indices:
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


class Assignments(GainEvents):
    """Gains, by adaptive weights, with a potential over the assignments of comparators beside.

    ``share`` is r. ``risk`` is the chance that its bounds fail, where the assignments are charged
    with the predictions that are broadcast; None for expectations, whose bounds never fail and
    leave out the draws. The rest is as in ``GainEvents``.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("unseen",)

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
        self._price = math.log(share * self.experts / self.losses) + PRIOR
        self._parts = [_Part(part) for part in self.members]
        for g, part in enumerate(self._parts):
            self.arrays |= {f"gain_{g}": part.gain, f"squares_{g}": part.squares}
            self.arrays[f"before_{g}"] = part.before

    def top(self, active: list[Indices], moment: Moment) -> float:
        own = [float((part.refreshed().sum(1) + self._rated).max()) for part in self._parts]
        return max(super().top(active, moment), *own)

    @property
    def _rated(self) -> Array:
        return np.asarray(self._price + np.log(RATES))

    def weigh(
        self, active: list[Indices], moment: Moment, weights: Weights, share: float = 1.0
    ) -> None:
        """Add the weights of gains and of assignments, which share the loss's rows."""
        super().weigh(active, moment, weights, share)
        made, total = [], 0.0
        for part in self._parts:
            chosen = share * np.exp(part.logs.sum(1) + self._rated - weights.top)
            total += float(chosen.sum())
            made.append(_weights(part.shares, chosen).reshape(-1))
        weights.add(np.concatenate(made), partial(self.folded, active), total=total)

    def charge(self, active: list[Indices], played: Played) -> None:
        """Add a round to the gains in expectation, and to the assignments as they are charged."""
        worths, one = list(self.worths(played)), played.drawn
        self.add(active, played, worths)
        if self.drawn:
            self.unseen += one is None
            if one is not None and one.bias is not played.bias:  # one of several predictions
                played, worths = one, list(self.worths(one))
        for part, worth, suggestions in zip(self._parts, worths, active, strict=True):
            seen = played.seen[self.rows.slice(part.of.group)]
            part.add(worth, seen.reshape(worth.shape[:2]), suggestions)

    def begin(self) -> None:
        """Note that the games begin: what was gained so far is known, and no more weighed."""
        for part in self._parts:
            part.before += part.gain
            part.gain[...] = part.squares[...] = 0.0
        self._forget()

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the gains' potentials and of the assignments' at their price."""
        own = [(part.refreshed().sum(1) + self._price).ravel() for part in self._parts]
        return float(np.logaddexp.reduce([super().log_potential(band), *np.concatenate(own)]))

    def bound(self, stand: BiasBound) -> "AssignmentBound":
        own = {"beside": self.share, "risk": self.risk or 1.0} | self.shape
        return AssignmentBound(**vars(stand) | own)

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        alone = super().from_variation(bound, group)
        own = None if self.drawn else self._assigned(bound, group)
        return alone if own is None else np.minimum(alone, own)

    def realised(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        return self._assigned(bound, group) if self.drawn and not self.unseen else None

    def _assigned(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        part = self._parts[self.rows.place(group)]
        fixed = part.gain.shape[2] - self.models
        squares = part.squares[:, :, :fixed].max(2).sum(1)
        before = np.maximum(part.before[:, :, :fixed].max(2), 0.0).sum(1)
        after = bound.assigned(squares, part.gain.shape[1], part.gain.shape[2])
        return None if after is None else np.asarray(part.of.scale * (before + after))

    def reset(self) -> None:
        super().reset()
        self._forget()

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._forget()

    def _forget(self) -> None:
        for part in self._parts:
            part.stale[...] = 1.0


@dataclass(frozen=True)
class AssignmentBound(GainBound):
    """Bound on gains, and on the regret of assignments."""

    def regret(self, weights: Array, *, policies: int = 0, rounds: int | None = None) -> Array:
        alone = super().regret(weights, policies=policies, rounds=rounds)
        if self.risk < 1 or self.stays or rounds not in (None, self.rounds):
            return alone
        own = self._assignments(weights, policies)
        return alone if own is None else np.minimum(alone, own)

    def realised(self, weights: Array, *, policies: int = 0) -> Array | None:
        return self._assignments(weights, policies) if self.risk < 1 else None

    def _assignments(self, weights: Array, policies: int) -> Array | None:
        actions = weights.shape[1]
        most = self.assigned(self.rounds, actions, actions + policies + self.models)
        if most is None:
            return None
        if self.trust is not None:
            most = most + self._before(weights, actions + policies)
        return np.asarray(self._gains(weights) * most / self.rounds)

    def _before(self, weights: Array, comparators: int) -> Array:
        """Bound what every assignment had gained when the games began (K,): both tests' limits."""
        assert self.trust is not None  # noqa: S101 - whoever asks has looked
        actions, scale = weights.shape[1], np.maximum(self._gains(weights), 1.0)
        each = actions * (self.trust.limit(self.rounds / actions) + 1)
        together = self.trust.among(self._copies * comparators**actions)
        return np.asarray(np.minimum(each, together.limit(self.rounds / scale**2) + 1))

    def assigned(self, squares: Array | float, actions: int, comparators: int) -> Array | None:
        """Bound the gain of every assignment whose U is at most ``squares``."""
        if self.trusted:
            return None
        price = self.losses * self.experts / (self.own * self.beside)
        level = AdaptiveWeights.growth(self) + math.log(price) - PRIOR
        level += actions * math.log(comparators)
        known = np.asarray(squares)[..., None]
        return np.asarray(((level + CURBS * known) / RATES).min(-1))


class _Part:
    """The assignments of one group's losses: G and U (K, A, C), and what was gained ``before``.

    ``shares`` (K, A, J, C) are those of every comparator among its action's, by rates, and ``logs``
    (K, A, J) of the sums over comparators; those of actions that are ``stale`` (K, A) by now, above
    0, are computed anew.
    """

    def __init__(self, of: GroupPart) -> None:
        losses, actions, comparators = of.shape
        self.of = of
        self.gain, self.squares, self.before = np.zeros((3, *of.shape))
        self.shares = np.empty((losses, actions, len(RATES), comparators))
        self.logs, self.stale = np.empty(self.shares.shape[:3]), np.ones((losses, actions))

    def add(self, worth: Array, seen: Array, suggested: Indices) -> None:
        """Add a round: what the bias of each action is worth to every other (K, A, A)."""
        _add(worth, seen, self.of.scale, suggested, (self.gain, self.squares))
        np.maximum(self.stale, seen, out=self.stale)

    def refreshed(self) -> Array:
        """Return ``logs``, those of actions that were played since computed anew."""
        _share(self.stale, self.gain, self.squares, self.shares, self.logs)
        self.stale[...] = 0.0
        return self.logs


@compiled(error_model="numpy")
def _add(
    worth: Array, played: Array, scale: Array, suggested: Indices, sums: tuple[Array, Array]
) -> None:
    """Add the gains of actions that were played, and their squares in terms of the mean."""
    gain, squares = sums
    constants = gain.shape[2] - suggested.shape[1]
    for k in range(gain.shape[0]):
        for a in range(gain.shape[1]):
            if played[k, a] <= 0.0:
                continue
            for c in range(gain.shape[2]):
                b = c if c < constants else suggested[k, c - constants]
                own = (worth[k, a, b] - worth[k, a, a]) / scale[k]
                gain[k, a, c] += own
                squares[k, a, c] += own * own / played[k, a]


@compiled(error_model="numpy")
def _share(played: Array, gain: Array, squares: Array, shares: Array, logs: Array) -> None:
    """Write the shares of comparators and the logarithms of their sums."""
    count = gain.shape[2]
    for k in range(gain.shape[0]):
        for a in range(gain.shape[1]):
            if played[k, a] <= 0.0:
                continue
            for j in range(RATES.shape[0]):
                top = -np.inf
                for c in range(count):
                    power = RATES[j] * gain[k, a, c] - CURBS[j] * squares[k, a, c]
                    shares[k, a, j, c] = power
                    top = max(top, power)
                total = 0.0
                for c in range(count):
                    shares[k, a, j, c] = np.exp(shares[k, a, j, c] - top)
                    total += shares[k, a, j, c]
                for c in range(count):
                    shares[k, a, j, c] /= total
                logs[k, a, j] = top + np.log(total / count)


@compiled()
def _weights(shares: Array, chosen: Array) -> Array:
    losses, actions, rates, count = shares.shape
    made = np.zeros((losses, actions, count))
    for k in range(losses):
        for a in range(actions):
            for j in range(rates):
                for c in range(count):
                    made[k, a, c] += chosen[k, j] * shares[k, a, j, c]
    return made
