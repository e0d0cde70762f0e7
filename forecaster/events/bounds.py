r"""The theorems' right-hand sides with explicit constants.

Notation. N = 2 n |E| experts, T rounds, S the sum of the positive certificates (weights
normalised to 1), n_T(E) the occupancy of an event, r(a) in R^n the coefficients of a loss.

**Bias, adaptive weights.** For the potential Phi(R, C) = exp(max(R, 0)^2 / (3 C)) and its weight
w, for |g| <= 1 (after Luo and Schapire 2015, Lemma 5; the constants q and k are of ``lemma``),

    Phi(R + g, C + |g|) <= Phi(R, C) + w(R, C) g + q |g| / (C + 1).

Sum over experts. The middle terms are the game's value at the realised outcome, at most
certificate x total weight, and w <= k Phi. The last terms sum to at most l ln(1 + T) per expert,
l = q / ln 2 = .488. Hence the potentials' sum stays below N P,

    P = e^(k S) (1 + l ln(1 + T)).

No potential is below 1: none is above N P - (N - 1). With C <= n_T(E), for each event, coordinate

    |B| <= sqrt(3 n_T(E) Lambda),   Lambda = ln(1 + N (P - 1)) <= ln N + ln P.

**Bias, second-order weights.** With V = sum_t g_t^2 <= n_T(E) in place of C, |B| <= beta(V), about
sqrt(2 V Lambda): ``second_order``.

**Bias, exponential weights.** Hedge with gains in [-1, 1]: |B| <= ln N / rate + rate T / 2 + S,
that is sqrt(2 T ln N) + S at the rate for horizon T, and 2 sqrt(T ln N) + S at the anytime rate.

**Regret from bias.** An agent that best-responds to p plays a with r(a).p <= r(b).p, so

    T x regret <= sum_a max_c [ sum_b <r(b), B_{a, c = b}> - <r(a), B_a> ] + 2 T delta.

Against constants each term is at most D |B_a|, D = max_{a, b} ||r(a) - r(b)||_1; against a policy
at most lambda (|B_a| + sum_b |B_{a, c = b}|), where lambda = max_a ||r(a) - v||_1 for any common
v, and at most D sum_{b != a} |B_{a, c = b}|, both because a policy's cross biases add up to B_a.
With sum_a n_T(a) = T and Cauchy-Schwarz these are D, lambda (1 + sqrt A) and D sqrt(A - 1) times
sqrt(3 A T Lambda). A quantal agent adds ln(A) / eta.

**Contextual swap regret**, where the replacement may depend on what a policy suggests, too, needs
the cross events alone: T x regret <= max_j sum_{a,b} max_c <r(c) - r(a), B_{a, c_j = b}>. The A^2
events of a policy share T rounds: D A sqrt(3 T Lambda) at most.

**Simplex.** Where predictions and s(y) lie in the simplex (indicators of cells), the increments of
an event's n coordinates add up to at most 2 n_T(E) in absolute value, so that with C_i the
variation of coordinate i, sum_i |d_i| sqrt(C_i) <= ||d||_2 sqrt(2 n_T(E)). With adaptive weights
every l1 norm above may therefore be replaced by sqrt(2) times the l2 norm: sqrt(2 n) at most in
place of n / 2.

**Dead zone.** With R = sigma B - z sqrt(C) for sigma B the lemma applies step by step, because
sqrt(C) never falls: every bias stays below z sqrt(n_T(E)) + sqrt(3 n_T(E) Lambda).

**Trust.** A base is broadcast unchanged, and no game is played, until some |B| exceeds w sqrt(C),
w > z, or sooner. Before that round all are within w sqrt(C), so that in it |B| <= w sqrt(C) + 1,
hence R <= (w - z) sqrt(C) + 1; and C >= w^2 wherever |B| > w sqrt(C) is possible at all, since
|B| <= C. The potentials with which the games begin are therefore at most e^((w - z + 1/w)^2 / 3)
each, in place of 1, and with u = w - z + 1/w

    |B| <= z sqrt(n_T(E)) + sqrt(3 n_T(E) Lambda),
    P = e^(k S) (e^(u^2 / 3) + l ln(1 + T)),

before that round and after it. How good the base is, and what it does, does not matter. As long
as it is trusted, |B| <= w sqrt(C) says more.

**Models.** A model's suggestion c(k) to loss k is a comparator with the scalar gain below, so that
following the broadcast costs loss k at most sum_a max(G_{k,a}, 0) <= D sqrt(3 A T Lambda) more than
following the model, where N counts those gains, too. Where their dead zone is wider by
y it is D y sqrt(A T) more; no game was played before, and the
initial potentials are unchanged.

**Scalar events.** One expert per loss, action and comparator, gains divided by the range g of
<r(c) - r(a), p - s>: the gain against every comparator is at most g sqrt(3 n_T(a) Lambda), summed
over actions g sqrt(3 A T Lambda). In the box g = D; where predictions stay in conv s(Y), expected
and true losses lie in [-delta, 1 + delta] and g = 2 + 4 delta at most: no lambda, and n nowhere.

**Joining late.** An agent that enters before round t_0 meets the biases B_T - B_{t_0} of its own
rounds, at most |B_T| + |B_{t_0}| in every event and coordinate, whoever it is that the events were
made for. Every step above is linear in the biases' absolute values, so that with R(t) the bound on
regret per round after t rounds, and S_T for S_{t_0} <= S_T,

    (T - t_0) x regret over t_0..T-1 <= T R(T) + t_0 R(t_0).

Scalar gains have one sign only: an old gain far below zero may be regained, and nothing follows.

**Variation.** An event's variation C = sum_t |g_t| so far, of which n_T(E) is the a-priori bound,
may stand in its place wherever it is known: the lemma is about C. Term by term

    T x regret <= sum_a max_c sum_i |r(c) - r(a)|_i beta(C_{a,i}),   beta(C) = sqrt(3 C Lambda),

the sum over a policy's suggestions b taking the place of the maximum over c, and sum_a max_c
beta(C_{a,c}) for scalar gains. It holds on every log of adaptive or second-order weights, whatever
the signs of the increments, and says nothing before the run. Likewise the last terms of the
potentials' sum are known: N + l sum_e ln(1 + C_e) stands in P for its most, and after
trust was lost the potentials of that moment for N e^(u^2/3), with what ln(1 + C_e) grew since.

**Stays.** Those potentials bound biases from that moment on alone: before it |B_t| <= w sqrt(C_t),
and a bias that was large may have come back by then. An agent that entered before round t_0 and
left before round t_1 meets at most |B_{t_1}| + |B_{t_0}|, whichever side of it they are on:

    |B_t| <= max(w, z + sqrt(3 Lambda)) sqrt(C_T)   for every t <= T.   (A priori w is the smaller.)

**Realised draws.** The above holds in expectation over each round's draw; ``draws`` adds what the
draws do. The paper's statement omits this term.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from regretless.forecaster.events.draws import drawn
from regretless.forecaster.events.lemma import GROWTH, LOGARITHM
from regretless.forecaster.events.second_order import GAINS, STEEPEST
from regretless.market.core.arrays import Array
from regretless.market.losses.basis import Hull


@dataclass(frozen=True)
class BiasBound:
    """Bound on the bias of every event of one instance.

    Parameters
    ----------
    experts : int
        N = 2 n |E|.
    rounds : int
        T.
    slack : float
        S.
    weights : "adaptive", "second-order" or "exponential"
    horizon : int or None
        The horizon that set the exponential rate; None for the anytime rate.
    hull : "box", "simplex" or "image"
        Where predictions lie.
    dead_zone : float
        z of the adaptive weights.
    models_zone : float
        y, by which the zone of the gains against models is wider.
    trust : float
        w, within which a base was broadcast unchanged; 0 where none was trusted.
    trusted : bool
        Whether that is so still.
    growth : float or None
        What multiplies N within Lambda for adaptive weights, where it is known; None for the most
        that it can be.
    stays : bool
        Whether it shall hold after every round so far, for who comes and goes, not the last alone.
    """

    experts: int
    rounds: int
    slack: float
    weights: str = "adaptive"
    horizon: int | None = None
    hull: Hull = "box"
    dead_zone: float = 0.0
    models_zone: float = 0.0
    trust: float = 0.0
    trusted: bool = False
    growth: float | None = None
    stays: bool = False

    def bias(self, occupancy: Array | float) -> Array:
        """Bound |B| in sup norm for events with this occupancy n_T(E)."""
        if self.trusted:
            return np.asarray(self.trust * np.sqrt(occupancy))
        if self.weights == "second-order":
            return GAINS.greatest(occupancy, self.exponent())
        if self.weights == "adaptive":
            noise = self.dead_zone + math.sqrt(3 * self.exponent())
            return np.asarray(max(noise, self.trust * self.stays) * np.sqrt(occupancy))
        return np.full_like(np.asarray(occupancy, dtype=np.float64), self._exponential())

    def bias_at(self, variation: Array) -> Array:
        """Bound |B| for biases of this variation so far, whatever they are."""
        if self.weights == "exponential":
            return np.minimum(variation, self._exponential())
        found = np.where(variation > 0, self.bias(variation), 0.0)
        return found if self.weights == "second-order" else np.minimum(variation, found)

    def of_events(self, occupancy: Array | float) -> tuple[Array, Array]:
        """Bound |B| in sup norm in expectation over the draws, and as drawn, of all events at once.

        As drawn it is a martingale more for each expert (``draws``), in all rounds at once: its
        increments are at most 2, of variance at most E[E].
        """
        expected, moved = self.bias(occupancy), np.asarray(occupancy)
        known = np.stack([moved, np.full_like(moved, np.inf)])
        return expected, expected + drawn(known, math.log(self.experts), 2.0)

    def exponent(self) -> float:
        """Lambda of the weights that adapt."""
        if self.weights == "second-order":
            return math.log(self.experts) + STEEPEST * self.slack
        most = 1 + self._head_start() + LOGARITHM * math.log1p(self.rounds)
        growth = most if self.growth is None else min(most, self.growth)
        power = math.log(growth) + GROWTH * self.slack
        others = math.log1p((1 / self.experts - 1) * math.exp(-power))  # whose potentials are >= 1
        return max(math.log(self.experts) + power + others, 0.0)

    def _head_start(self) -> float:
        """By how much a potential may exceed 1 when a base loses its trust."""
        if self.trust <= self.dead_zone:
            return 0.0
        return math.expm1((self.trust - self.dead_zone + 1 / self.trust) ** 2 / 3)

    def _exponential(self) -> float:
        entropy = math.log(self.experts)
        if self.horizon is None:
            return 2 * math.sqrt(self.rounds * entropy) + self.slack
        rate = math.sqrt(2 * entropy / self.horizon)
        return entropy / rate + rate * self.rounds / 2 + self.slack

    def regret(self, weights: Array, *, policies: int = 0) -> Array:
        """Bound the expected decision swap regret per round, without gap and basis error.

        Parameters
        ----------
        weights : array (K, A, n)
            Coefficients of the losses.
        policies : int
            Number of benchmark policies beside the constants.

        Returns
        -------
        array (K,)
        """
        norms = self._norm(spread, weights), self._norm(centred_norm, weights)
        return self.regret_by(*norms, actions=weights.shape[1], policies=policies)

    def regret_by(
        self,
        widest: Array,
        centred: Array,
        *,
        actions: int,
        policies: int,
        rounds: int | None = None,
    ) -> Array:
        """Bound the same for losses whose norms D and lambda (K,) are known, of so many rounds."""
        rounds = rounds or self.rounds
        own = rounds / actions  # biases are concave in occupancy: equal shares are worst
        share, factor = float(self.bias(own)), widest
        if policies:
            cells, others = self._cells(actions, own), self._cells(actions - 1, own)
            through_policies = np.minimum(widest * others, centred * (1 + cells))
            factor = np.maximum(factor, through_policies)
        return np.asarray(factor * actions * share / rounds)

    def over_intervals(
        self, weights: Array, lengths: Sequence[int], *, run: int, policies: int = 0
    ) -> Array:
        """Bound the sum of expected regret over intervals (``intervals``) of a run (K,).

        Parameters
        ----------
        lengths : sequence of int
            Of the intervals; 1 for a single round, of which nothing is known.
        run : int
            The rounds of the run, which set the intervals' shares.
        """
        norms = self._norm(spread, weights), self._norm(centred_norm, weights)
        total = np.zeros(len(weights))
        for length in lengths:
            shape = {"actions": weights.shape[1], "policies": policies, "rounds": length}
            one = replace(self, experts=self.experts * -(-run // length))
            total += np.minimum(one.regret_by(*norms, **shape), 1.0) * length
        return total

    def regret_to_models(self, weights: Array) -> Array:
        """Bound the expected regret per round to each model that is a comparator (K,)."""
        return self._over_actions(weights, self.models_zone)

    def _over_actions(self, weights: Array, zone: float) -> Array:
        """Bound the sum of every action's greatest gain per round (K,), in a zone of their own."""
        own = self.rounds / weights.shape[1]
        share = float(self.bias(own)) + zone * math.sqrt(own)
        return np.asarray(self._gains(weights) * share / own)

    def contextual(self, weights: Array) -> Array:
        """Bound the expected contextual swap regret per round to any one policy (K,)."""
        cells = weights.shape[1] ** 2  # a played action and a suggestion share the rounds
        share = float(self.bias(self.rounds / cells))
        return np.asarray(self._norm(spread, weights) * cells * share / self.rounds)

    def _gains(self, weights: Array) -> Array:
        return gain_range(weights, None)

    def _norm(self, norm: Callable[..., Array], weights: Array) -> Array:
        """Take the norm that the hull allows."""
        factor = norm(weights)
        if self.hull == "simplex" and self.weights == "adaptive":
            return np.asarray(np.minimum(factor, math.sqrt(2) * norm(weights, order=2)))
        return factor

    def _cells(self, count: int, own: float) -> float:
        """Bound the biases of ``count`` cells that share ``own`` rounds, relative to all in one."""
        return count * float(self.bias(own / count) / self.bias(own))


@dataclass(frozen=True)
class GainBound(BiasBound):
    """Bound on the gains of scalar events; ``experts`` is their number.

    Parameters
    ----------
    within : float or None
        Range of the gains where predictions stay in conv s(Y).
    """

    within: float | None = None

    def of_events(self, occupancy: Array | float) -> tuple[Array, Array]:
        """Return NaN: gains have one sign and a range of their own."""
        unknown = np.full_like(np.asarray(occupancy), np.nan)
        return unknown, unknown

    def regret(self, weights: Array, *, policies: int = 0) -> Array:
        """Bound the expected decision swap regret per round (K,); policies cost a logarithm."""
        return self._over_actions(weights, 0.0)

    def _gains(self, weights: Array) -> Array:
        return gain_range(weights, self.within)


def gain_range(weights: Array, within: float | None) -> Array:
    """Compute the range (K,) of <r(c) - r(a), p - s>: D, and at most ``within`` if it is given."""
    widest = spread(weights)
    if within is not None:
        widest = np.minimum(widest, within)
    return np.where(widest > 0, widest, 1.0)


def regret_since(bound: BiasBound, weights: Array, *, joined: int, policies: int = 0) -> Array:
    """Bound the expected regret per round from round ``joined`` on, without gap and basis error.

    Parameters
    ----------
    bound : BiasBound
        Of the whole run, on coordinates; more than ``joined`` rounds long.
    weights : array (K, A, n)
        Coefficients of protected losses.
    joined : int
        The round t_0 before which the agents entered.
    policies : int
        Number of benchmark policies beside the constants.

    Returns
    -------
    array (K,)

    Raises
    ------
    ValueError
        If no round was played since, or the bound is one on scalar gains.
    """
    if isinstance(bound, GainBound):
        raise ValueError("scalar gains promise nothing to agents who join late")  # noqa: TRY004
    if not 0 <= joined < bound.rounds:
        raise ValueError(f"no round since round {joined} in a run of {bound.rounds}")
    whole = bound.rounds * bound.regret(weights, policies=policies)
    if not joined:
        return np.asarray(whole / bound.rounds)
    before = joined * replace(bound, rounds=joined).regret(weights, policies=policies)
    return np.asarray((whole + before) / (bound.rounds - joined))


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

    It loses ln(A) / eta against a best response, and its law differs from the one that the
    forecaster expects by eta delta where it does not see the basis (error delta): the sum is least
    at sqrt(ln(A) / delta). Below that ln(A) sqrt(T) suffices: the gap is then 1 / sqrt(T), the
    order of everything else. (The paper has |A| (e^(2 eta delta) - 1) in place of eta delta.)

    Parameters
    ----------
    error : float
        delta, at least 0.
    rounds : int
        T.
    """
    entropy = math.log(actions)
    steepest = entropy * math.sqrt(rounds)
    return min(steepest, math.sqrt(entropy / error)) if error > 0 else steepest
