"""The theorems' right-hand sides with explicit constants.

Notation. N = 2 n |E| experts, T rounds, S the sum of the positive certificates (weights
normalised to 1), n_T(E) the occupancy of an event, r(a) in R^n the coefficients of a loss.

**Bias.** A rule of weights (``weights``) proves |B| <= z sqrt(n_T(E)) + greatest(n_T(E)) for every
event and coordinate, whatever the band z; with the default rule sqrt(3 n_T(E) Lambda).

**Regret from bias.** An agent that best-responds to p plays a with r(a).p <= r(b).p, so

    T x regret <= sum_a max_c [ sum_b <r(b), B_{a, c = b}> - <r(a), B_a> ] + 2 T delta.

Against constants each term is at most D |B_a|, D = max_{a, b} ||r(a) - r(b)||_1; against a policy
at most lambda (|B_a| + sum_b |B_{a, c = b}|), where lambda = max_a ||r(a) - v||_1 for any common
v, and at most D sum_{b != a} |B_{a, c = b}|, both because a policy's cross biases add up to B_a.
With sum_a n_T(a) = T and Cauchy-Schwarz these are D, lambda (1 + sqrt A) and D sqrt(A - 1) times
sqrt(3 A T Lambda). A quantal agent adds ln(A) / eta.

**Contextual swap regret** needs the cross events alone: T x regret <= max_j sum_{a,b} max_c <r(c) -
r(a), B_{a, c_j = b}>. The A^2 events of a policy share T rounds: D A sqrt(3 T Lambda) at most.

**Simplex.** Where predictions and s(y) lie in the simplex, variations C_i of an event's coordinates
add up to at most 2 n_T(E), so that sum_i |d_i| sqrt(C_i) <= ||d||_2 sqrt(2 n_T(E)): with adaptive
weights every l1 norm above may be replaced by sqrt(2) times the l2 norm.

**Trust.** When the games begin all biases and gains are within L(V) + 1 (``switch_test``), and the
rules say what that costs. As long as a reference is trusted, L(V) <= L(C) says more, and of listed
losses the limit of the greatest sum over actions: V <= T / g^2, as no regret exceeds 1.

**Scalar events.** One expert per loss, action and comparator, gains divided by the range g of
<r(c) - r(a), p - s>: summed over actions at most g sqrt(3 A T Lambda). In the box g = D; where
predictions stay in conv s(Y), expected and true losses lie in [-delta, 1 + delta] and g = 2 + 4
delta at most: no lambda, and n nowhere. A **model**'s suggestion to each loss is such a comparator;
where the models' band is wider by y it is D y sqrt(A T) more.

**Joining late** (docs/theory.md, 12). An agent that enters before round t_0 meets the biases B_T -
B_{t_0} of its own rounds: (T - t_0) x regret <= T R(T) + t_0 R(t_0), R(t) the bound after t rounds
with S_T for S_{t_0} <= S_T, as every step above is linear in the biases' absolute values. With what
is known from the moment when trust was lost, for every t <= T, on either side of it, |B_t| <=
max(L(C_T), z sqrt(C_T) + greatest(C_T)). Scalar gains have one sign only: an old gain far below
zero may be regained, and nothing follows.

**Variation.** An event's variation C so far, of which n_T(E) is the a-priori bound, may stand in
its place: T x regret <= sum_a max_c sum_i |r(c) - r(a)|_i beta(C_{a,i}), beta the rule's greatest
bias, and sum_a max_c beta(C_{a,c}) for scalar gains. Likewise what all variations add up to, and
the potentials of the moment when trust was lost, stand in the budget for their most.

All this holds in expectation over each round's draw; ``cost_of_draws`` adds what they do, a term
that the paper's statement omits.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from regretless.forecaster.events.cost_of_draws import drawn
from regretless.forecaster.events.weights import AdaptiveWeights, Stand
from regretless.forecaster.switch_test import SwitchTest
from regretless.market.core.arrays import Array
from regretless.market.losses.basis import Hull

RATES = 2.0 ** -np.arange(1, 11)  # eta, of assignments
CURBS = -RATES - np.log1p(-RATES)  # psi


@dataclass(frozen=True)
class BiasBound(Stand):
    """Bound on the bias of every event of one instance, and on regret with it, None if unknown."""

    signed: ClassVar[bool] = True  # whether biases of either sign are bounded

    hull: Hull = "box"  # where predictions lie
    trusted: bool = False  # whether a reference is broadcast unchanged still
    stays: bool = False  # whether it shall hold after every round so far, for who comes and goes
    within: float | None = None  # range of gains where predictions stay in conv s(Y), if scalar

    @property
    def exponent(self) -> float:
        """What the rule's proof leaves: Lambda for weights that adapt."""
        return self.rule.budget(self)

    def bias(self, occupancy: Array | float) -> Array:
        """Bound |B| in sup norm for events with this occupancy n_T(E)."""
        most = math.inf if self.trust is None else self.trust.most(occupancy)
        within = most if self.rule.squared else np.minimum(occupancy, most)
        if self.trusted:
            return np.asarray(within)
        outside = self.rule.greatest(occupancy, self.exponent)
        found = self.band.zone * np.sqrt(occupancy) + outside
        return np.asarray(np.maximum(found, within) if self.stays and self.trust else found)

    def bias_at(self, variation: Array) -> Array:
        """Bound |B| for biases of this variation so far, whatever they are."""
        found = np.where(variation > 0, self.bias(variation), 0.0)
        return found if self.rule.squared else np.minimum(variation, found)

    def of_events(self, occupancy: Array | float) -> tuple[Array, Array] | None:
        """Bound |B| in sup norm in expectation, and as drawn (``cost_of_draws``), of all events."""
        if not self.signed:
            return None
        expected, moved = self.bias(occupancy), np.asarray(occupancy)
        known = np.stack([moved, np.full_like(moved, np.inf)])
        return expected, expected + drawn(known, math.log(self.experts), 2.0)

    def regret(self, weights: Array, *, policies: int = 0, rounds: int | None = None) -> Array:
        """Bound expected decision swap regret per round (K,) of losses (K, A, n).

        Without gap and error, to so many ``policies`` beside the constants.
        """
        rounds, actions = rounds or self.rounds, weights.shape[1]
        own = rounds / actions  # biases are concave in occupancy: equal shares are worst
        share, widest = float(self.bias(own)), self._norm(spread, weights)
        factor = widest
        if policies:  # biases of cells that share these rounds, relative to all in one
            cells, others = (c * float(self.bias(own / c) / share) for c in (actions, actions - 1))
            centred = self._norm(centred_norm, weights)
            factor = np.maximum(widest, np.minimum(widest * others, centred * (1 + cells)))
        return np.asarray(factor * actions * share / rounds)

    def over_intervals(
        self, weights: Array, lengths: Sequence[int], *, run: int, policies: int = 0
    ) -> Array:
        """Bound the sum of expected regret (K,) over intervals of a ``run``; 1 for one round."""
        total = np.zeros(len(weights))
        for length in lengths:
            one = replace(self, share=length / run, stays=True)
            total += np.minimum(one.regret(weights, policies=policies, rounds=length), 1.0) * length
        return total

    def regret_to_models(self, weights: Array) -> Array:
        """Bound the expected regret per round to each model that is a comparator (K,)."""
        return self._over_actions(weights, self.band.models, self.rounds)

    def _over_actions(self, weights: Array, zone: float, rounds: int) -> Array:
        """Bound the sum of every action's greatest gain per round (K,), in a band of their own."""
        own = rounds / weights.shape[1]
        share = float(self.bias(own)) + zone * math.sqrt(own)
        return np.asarray(gain_range(weights, self.within) * share / own)

    def realised(self, weights: Array, *, policies: int = 0) -> Array | None:
        """Bound decision swap regret per round (K,) as drawn; None where only expectations are."""
        return None

    def since(self, weights: Array, *, joined: int, policies: int = 0) -> Array | None:
        """Bound expected regret per round from round ``joined`` on; ValueError if none was played.

        Without gap and basis error; None for gains of one sign: an old one far below zero may be
        regained.
        """
        if joined and not self.signed:
            return None
        if not 0 <= joined < self.rounds:
            raise ValueError(f"no round since round {joined} in a run of {self.rounds}")
        whole = self.rounds * self.regret(weights, policies=policies)
        if not joined:
            return np.asarray(whole / self.rounds)
        before = joined * replace(self, rounds=joined).regret(weights, policies=policies)
        return np.asarray((whole + before) / (self.rounds - joined))

    def contextual(self, weights: Array) -> Array | None:
        """Bound the expected contextual swap regret per round to any one policy (K,)."""
        if not self.signed:
            return None
        cells = weights.shape[1] ** 2  # a played action and a suggestion share the rounds
        share = float(self.bias(self.rounds / cells))
        return np.asarray(self._norm(spread, weights) * cells * share / self.rounds)

    def _norm(self, norm: Callable[..., Array], weights: Array) -> Array:
        """Take the norm that the hull allows."""
        factor = norm(weights)
        if self.hull == "simplex" and self.rule.rooted:
            return np.asarray(np.minimum(factor, math.sqrt(2) * norm(weights, order=2)))
        return factor


@dataclass(frozen=True)
class GainBound(BiasBound):
    """Bound on the gains of scalar events, ``experts`` in number, and on those of assignments."""

    signed = False
    losses: int = 1  # K, all that are protected
    own: int = 1  # N, the gains of the run
    models: int = 0  # how many comparators are models

    def regret(self, weights: Array, *, policies: int = 0, rounds: int | None = None) -> Array:
        """Bound the expected decision swap regret per round (K,); policies cost a logarithm."""
        played, actions = rounds or self.rounds, weights.shape[1]
        alone = self._over_actions(weights, 0.0, played)
        alone = self._held(alone, (actions + policies) ** actions, weights, played)
        if self.risk < 1 or self.stays or played != self.rounds:
            return alone
        own = self._assignments(weights, policies)
        return alone if own is None else np.minimum(alone, own)

    def regret_to_models(self, weights: Array) -> Array:
        return self._held(super().regret_to_models(weights), self.models, weights, self.rounds)

    def _held(self, alone: Array, tests: int, weights: Array, rounds: int) -> Array:
        """Take the lesser of it and what a test lets a loss of regret at most 1 cost per round."""
        if not self.trusted or self.trust is None:
            return alone
        scale = gain_range(weights, self.within)
        trust = replace(self.trust, tests=self._tested_losses(self.trust) * tests)
        most = trust.most(rounds / np.maximum(scale, 1.0) ** 2)
        return np.minimum(alone, scale * most / rounds)

    def _tested_losses(self, trust: SwitchTest) -> int:
        """Count the losses that share a kind of the switch test, as ``GainEvents`` does."""
        return self.losses * trust.tests // self.own

    def realised(self, weights: Array, *, policies: int = 0) -> Array | None:
        return self._assignments(weights, policies) if self.risk < 1 else None

    def _assignments(self, weights: Array, policies: int) -> Array | None:
        actions, scale = weights.shape[1], gain_range(weights, self.within)
        most = self.assigned(self.rounds, actions, actions + policies + self.models)
        if most is not None and self.trust is not None:  # gained when the games began, at most
            each = actions * (self.trust.limit(self.rounds / actions) + 1)
            losses = self._tested_losses(self.trust)
            together = replace(self.trust, tests=losses * (actions + policies) ** actions)
            least = together.limit(self.rounds / np.maximum(scale, 1.0) ** 2) + 1
            most = most + np.minimum(each, least)
        return None if most is None else np.asarray(scale * most / self.rounds)

    def assigned(self, squares: Array | float, actions: int, comparators: int) -> Array | None:
        """Bound the gain of every assignment whose U is at most ``squares``; None without them."""
        if self.trusted or not self.beside:
            return None
        level = AdaptiveWeights.growth(self) + actions * math.log(comparators)
        level += math.log(len(RATES) * self.losses * self.experts / (self.own * self.beside))
        known = np.asarray(squares)[..., None]
        return np.asarray(((level + CURBS * known) / RATES).min(-1))


def gain_range(weights: Array, within: float | None) -> Array:
    """Compute the range (K,) of <r(c) - r(a), p - s>: D, and at most ``within`` if it is given."""
    widest = spread(weights)
    if within is not None:
        widest = np.minimum(widest, within)
    return np.where(widest > 0, widest, 1.0)


def spread(weights: Array, *, order: int = 1) -> Array:
    """Compute D (K,): the greatest norm of the gap between two actions' coefficients (K, A, n)."""
    gaps = [
        np.linalg.norm(weights - weights[:, [a]], ord=order, axis=2).max(1)
        for a in range(weights.shape[1])
    ]
    return np.asarray(np.max(gaps, axis=0))


def centred_norm(weights: Array, *, order: int = 1) -> Array:
    """Compute lambda (K,): the greatest norm after subtracting the coordinates' midrange."""
    centre = (weights.max(1, keepdims=True) + weights.min(1, keepdims=True)) / 2
    return np.asarray(np.linalg.norm(weights - centre, ord=order, axis=2).max(1))


def recommended_eta(actions: int, *, error: float, rounds: int) -> float:
    """Return the smoothness that balances a quantal agent's two costs.

    It loses ln(A) / eta against a best response, and eta delta where it does not see the basis
    (error delta): the sum is least at sqrt(ln(A) / delta). At ln(A) sqrt(T) the gap is 1 / sqrt(T),
    the order of everything else. (The paper has |A| (e^(2 eta delta) - 1) in place of eta delta.)
    """
    entropy = math.log(actions)
    steepest = entropy * math.sqrt(rounds)
    return min(steepest, math.sqrt(entropy / error)) if error > 0 else steepest
