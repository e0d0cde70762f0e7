"""One potential over all assignments of comparators to actions, beside the gains' own.

The weights of ``scalar`` treat every pair of a played action a and a comparator c by itself, and
add up the bounds of all A actions. But a decision swap regret is a maximum over **assignments** of
comparators to actions, and a potential over all C^A of them factorises. For a loss k with gains g
in [-1, 1], d_t(a, c) the mean gain given that a is played and q_t(a) the chance of that,

    F_k = sum_j pi_j prod_a sum_c exp(eta_j G(a, c) - psi_j U(a, c)) / C,
    G(a, c) = sum_t q_t(a) d_t(a, c),   U(a, c) = sum_t q_t(a) d_t(a, c)^2,
    eta_j = 2^-j, psi_j = -eta_j - ln(1 - eta_j), pi_j = 1/J, j = 1..J,

where c runs over actions, policies and models.

**One round.** With s(a, c) the current shares of c at a, x = eta d - psi d^2 and
exp(eta d - psi d^2) <= 1 + eta d for |d| <= 1 (``second_order``),

    prod_a sum_c s e^(q x) <= prod_a (sum_c s e^x)^q <= sum_a q sum_c s e^x
                           <= 1 + eta sum_a q(a) sum_c s(a, c) d(a, c):

power means, then the weighted means of geometry and arithmetic, as the q(a) add up to 1. So F_k
grows with the mean gain of the weights pi_j eta_j F_kj s(a, c), and one game serves both families:
with r N / K as the price of each F_k, r = 1 %, and N the number of gains,

    W = sum of the gains' potentials + r (N / K) sum_k F_k

grows in a round by the certificate times at most k W (no eta exceeds the k of ``lemma``) and the
gains' own terms, whence W <= N P, P = e^(k S) (1 + r + l ln(1 + T)).

**What follows.** F_k <= N P K / (r N), so that for every j and every assignment phi at once

    eta_j G_phi - psi_j U_phi <= L,   L = A ln C + ln(J K / r) + ln P,
    T x regret of k <= scale_k min_j (L + psi_j U) / eta_j,   about scale_k sqrt(2 U L),

with U = sum_a max_c U(a, c) <= T: A no longer multiplies ln K. Gains keep their own bound, with
this P, and the lesser of both is printed. Where a reference was trusted the F_k begin at 1 when the
games begin; what was regretted before is added: known, or at most A w(T / A) + A. Alone the
assignments are slow where nothing is hostile, since comparators without any gain keep their shares:
1 % is enough for the bound.

**As drawn.** Charged with the prediction p_t that was broadcast, in place of the mixture, the
proof's steps hold in expectation over the draw given the past: W / (N P) is a supermartingale, and
by Ville's inequality it exceeds 1 / risk at some time with a probability of at most ``risk``. With
P / risk for P the regret that follows is that of the draws, and nothing is to be added for them
(``draws``). The gains stay charged in expectation, with P / risk as well.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.bounds import BiasBound, GainBound
from regretless.forecaster.events.protected import Played, ProtectedLosses
from regretless.forecaster.events.scalar import GainEvents, GroupPart
from regretless.forecaster.events.weights import AdaptiveWeights, Band, Moment, Weights
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.delegated import Delegated

SHARE = 0.01  # r
RATES = 2.0 ** -np.arange(1, 11)  # eta
CURBS = -RATES - np.log1p(-RATES)  # psi
PRIOR = -math.log(len(RATES))


class Assignments(EventSet):
    """Gains, by adaptive weights, with a potential over the assignments of comparators beside.

    ``share`` is r. ``risk`` is the chance that its bounds fail, where the assignments are charged
    with the predictions that are broadcast; None for expectations, whose bounds never fail and
    leave out the draws.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("gains", "arrays", "unseen")
    IN_PLACE = True

    def __init__(
        self, gains: GainEvents, *, share: float = SHARE, risk: float | None = None
    ) -> None:
        self.gains, self.share, self.risk = gains, share, risk
        self.drawn, self.unseen = risk is not None, 0
        self.rows, self.rule = gains.rows, gains.rule
        self.experts, self._losses = gains.experts, len(gains.rows.start) - 1
        self._price = math.log(share * self.experts / self._losses) + PRIOR + np.log(RATES)
        self._parts = [_Part.of(part) for part in gains.members]
        self.arrays = {
            f"{name}_{g}": vars(part)[name]
            for g, part in enumerate(self._parts)
            for name in ("gain", "squares", "before")
        }

    active = Delegated("gains")
    exceeds = Delegated("gains")
    spent = Delegated("gains")
    table = Delegated("gains")

    def top(self, active: list[Indices], moment: Moment) -> float:
        self._refresh()
        own = max(float((part.logs.sum(1) + self._price).max()) for part in self._parts)
        return max(self.gains.top(active, moment), own)

    def weigh(
        self, active: list[Indices], moment: Moment, weights: Weights, share: float = 1.0
    ) -> None:
        """Add the weights of gains and of assignments, which share the loss's rows."""
        self.gains.weigh(active, moment, weights, share)
        made, total = [], 0.0
        for part in self._parts:
            chosen = share * np.exp(part.logs.sum(1) + self._price - weights.top)
            total += float(chosen.sum())
            made.append(_weights(part.shares, chosen).reshape(-1))
        flat = np.concatenate(made)
        weights.add(flat, lambda own: self.gains.folded(active, own), total=total)

    def charge(self, active: list[Indices], played: Played) -> None:
        """Add a round to the gains in expectation, and to the assignments as they are charged."""
        worths, one = list(self.gains.worths(played)), played.drawn
        self.gains.add(active, played, worths)
        if self.drawn:
            self.unseen += one is None
            if one is not None and one.bias is not played.bias:  # one of several predictions
                played, worths = one, list(self.gains.worths(one))
        seen = [played.seen[self.rows.slice(group)] for group in self.groups]
        for part, worth, own, suggestions in zip(self._parts, worths, seen, active, strict=True):
            part.add(worth, own, suggestions)

    def begin(self) -> None:
        """Note that the games begin: what was gained so far is known, and no more weighed."""
        for part in self._parts:
            part.begin()

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the gains' potentials and of the assignments' at their price."""
        self._refresh()
        price = math.log(self.share * self.experts / self._losses) + PRIOR
        own = [(part.logs.sum(1) + price).ravel() for part in self._parts]
        return float(np.logaddexp.reduce([self.gains.log_potential(band), *np.concatenate(own)]))

    def bound(self, **stand: Any) -> "AssignmentBound":
        own = {"beside": self.share, "risk": self.risk or 1.0} | self.gains.shape
        return AssignmentBound(self.rule, **own, **stand)

    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        alone = self.gains.from_variation(bound, group)
        own = None if self.drawn else self._assigned(bound, group)
        return alone if own is None else np.minimum(alone, own)

    def realised(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        return self._assigned(bound, group) if self.drawn and not self.unseen else None

    def _assigned(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        part = self._parts[self.rows.place(group)]
        fixed = part.gain.shape[2] - self.gains.models
        squares = part.squares[:, :, :fixed].max(2).sum(1)
        before = np.maximum(part.before[:, :, :fixed].max(2), 0.0).sum(1)
        after = bound.assigned(squares, part.gain.shape[1], part.gain.shape[2])
        return None if after is None else np.asarray(part.scale * (before + after))

    def reset(self) -> None:
        self.gains.reset()
        for array in self.arrays.values():
            array[...] = 0.0
        self._forget()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint: shares are computed anew."""
        super().restore(state)
        self._forget()

    def _forget(self) -> None:
        for part in self._parts:
            part.stale[...] = 1.0

    def _refresh(self) -> None:
        for part in self._parts:
            part.refresh()


@dataclass(frozen=True)
class AssignmentBound(GainBound):
    """Bound on gains, and on the regret of assignments."""

    def regret(self, weights: Array, *, policies: int = 0, rounds: int | None = None) -> Array:
        """Bound the expected decision swap regret per round (K,), by the lesser of two proofs."""
        alone = super().regret(weights, policies=policies, rounds=rounds)
        if self.risk < 1 or self.stays or rounds not in (None, self.rounds):
            return alone
        own = self._assignments(weights, policies)
        return alone if own is None else np.minimum(alone, own)

    def realised(self, weights: Array, *, policies: int = 0) -> Array | None:
        """Bound it as drawn, if that is what the assignments are charged with."""
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


@dataclass(frozen=True, eq=False)
class _Part:
    """The assignments of one group's losses."""

    gain: Array  # (K, A, C), G since the games began
    squares: Array  # U
    before: Array  # what was gained before
    shares: Array  # (K, A, J, C) of every comparator among those of its action, by rates
    logs: Array  # (K, A, J) of the sums over comparators, which the shares are of
    stale: Array  # (K, A), above 0 where shares and logs are to be computed anew
    scale: Array  # (K,) divides a loss's gains into [-1, 1]

    @classmethod
    def of(cls, part: GroupPart) -> "_Part":
        """Make room for a group's losses."""
        losses, actions, comparators = part.shape
        wide = losses, actions, len(RATES), comparators
        gain, squares, before = np.zeros((3, *part.shape))
        room = np.empty(wide), np.empty(wide[:3]), np.ones(wide[:2])
        return cls(gain, squares, before, *room, part.scale)

    def begin(self) -> None:
        """Keep apart what was gained so far."""
        np.add(self.before, self.gain, out=self.before)
        self.gain[...] = self.squares[...] = 0.0
        self.stale[...] = 1.0

    def add(self, worth: Array, seen: Array, suggested: Indices) -> None:
        """Add a round: what the bias of each action is worth to every other (K, A, A)."""
        played = seen.reshape(self.gain.shape[:2])
        _add(worth, played, self.scale, suggested, (self.gain, self.squares))
        np.maximum(self.stale, played, out=self.stale)

    def refresh(self) -> None:
        """Compute the shares of actions that were played since they were computed."""
        _share(self.stale, self.gain, self.squares, self.shares, self.logs)
        self.stale[...] = 0.0


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
    """Return sum_j chosen (K, J) shares (K, A, J, C)."""
    losses, actions, rates, count = shares.shape
    made = np.zeros((losses, actions, count))
    for k in range(losses):
        for a in range(actions):
            for j in range(rates):
                for c in range(count):
                    made[k, a, c] += chosen[k, j] * shares[k, a, j, c]
    return made
