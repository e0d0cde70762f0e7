r"""How cumulative gains turn into the weights of the round's game, and what that proves of them.

Each event E, coordinate i and sign sigma is an expert with gain g_t = sigma * E_mixture[E (p_i -
s_i)]; its cumulative gain G is sigma * B. Scalar events have one expert each. A rule gives every
active expert a weight w(G, C), where C = sum_t |g_t| or sum_t g_t^2. The game needs the signed
difference w(+) - w(-) per event and coordinate, and the total over all active experts, by which it
is normalised.

The gain itself plays the part of the regret of an expert: the value of the min-max game, at most
zero in theory, takes the place of the learner's loss. Since |g_t| <= E[E], C is at most the event's
occupancy n_T(E), which gives the theorem's sqrt(n_T(E) ln(.)).

**Tolerance band.** With R = G - z sqrt(C) in place of G a bias that its own noise explains has no
weight. As sqrt(C) never falls, R grows by no more than g in a round, so that every step of every
rule's proof stands and the bias grows to at most z sqrt(C) more.

**Where a reference was trusted** (``forecaster.reference``) the games begin late, with gains of at
most w(V) + 1 (its test). Each rule says what that adds to its budget.

All weights are evaluated in the log domain, relative to the greatest exponent.

**One step of the adaptive weights' potential**, with constants that are nearly the least. For
Phi(R, C) = exp(max(R, 0)^2 / (3 C)), w(R, C) = [Phi(R + 1, C + 1) - Phi(R - 1, C + 1)] / 2,
|g| <= 1 and R <= C,

    (1)   Phi(R + g, C + |g|) <= Phi(R, C) + w(R, C) g + q |g| / (C + 1),    q = .338,
    (2)   w(R, C) <= k Phi(R, C),    k = (e^(1/3) - 1/e) / 2.

Luo and Schapire (2015, Lemma 5) have (1) with 3/2 in place of q; (2) holds with e^(1/3) / 2
already.

**Proof of (2).** With v = 1 / (3 (C + 1)) and R >= 1, w / Phi = (e^a - e^b) / 2, where a = (2 R C +
C - R^2) / (3 C (C + 1)) grows with R up to R = C, where it is 1/3, and a - b = 4 R v <= 4/3. So e^a
- e^b = e^a (1 - e^(b - a)) <= e^(1/3) (1 - e^(-4/3)). For R < 1, 1 / Phi >= e^(-1/3) and w / Phi <=
(e^(1/3) - e^(-1/3)) / 2 < k.

**Proof of (1).** max(x, 0)^2 / y is convex, and so is its exponential along g in [0, 1] and in
[-1, 0]. Hence the left side is at most its chords', and q need only be at least

    K(R, C) = (C + 1) { [Phi(R + 1, C + 1) + Phi(R - 1, C + 1)] / 2 - Phi(R, C) }.

For R < 0 it is at most K(0, C). For R >= 1, with s = R^2 / (3 C), from cosh x <= e^(x^2 / 2) and
e^y - 1 <= y e^y,

    K <= (1 - s) e^(s + (1 - s) v) / 3 <= e^v / 3  for s < 1,   K <= 0  for s >= 1,

which is below q where v <= ln(3 q). What is left are 0 <= R <= 1, and 1 <= R <= sqrt(3 C) with
v >= ln(3 q): in terms of R and v, and E(x) = (e^x - 1) / x, which grows,

    K = (R + 1)^2 E((R + 1)^2 v) / 6 + (R - 1)^2 E((R - 1)^2 v) / 6 - R^2 E(R^2 u) / (3 (1 - 3 v)),

with u = v / (1 - 3 v) and without the second term where R < 1. Every term grows with R and with v,
so that on a rectangle the first ones at its upper corner less the last at its lower one bound K;
halving rectangles until that is below q ends (``tests/forecaster/test_weights.py`` does it, half a
million of them). The greatest value of K is .33596, near R = .98 and C = 10.2.

The sum of the last terms of (1) over rounds is at most q / ln 2 ln(1 + C), since z <= ln(1 + z) /
ln 2 on [0, 1].
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.reference import PLAIN, Band, Trust
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

GROWTH = (math.exp(1 / 3) - math.exp(-1)) / 2  # k
REMAINDER = 0.338  # q
LOGARITHM = REMAINDER / math.log(2)
LANES = 64  # numbers looked at side by side
HIGHEST = 500.0  # e^709 is the greatest number
NEWTON = 4  # steps
MANY = 1 << 16  # numbers of a table from which on weights are kept; all weights take 1 ms there


class Moment(NamedTuple):
    """When experts are weighed."""

    time: int  # the round, counted from 1
    experts: int  # N, all that are weighed together
    band: Band = PLAIN


@dataclass(frozen=True, eq=False)
class Sums:
    """What experts of both signs have gained."""

    rows: slice  # of the table to which their weights are added
    bias: Array  # (rows, n), B
    variation: Array  # (rows, n), C as the rule wants it


class Weights:
    """The weights of a round, which events add to: relative to exp(top), until they are normalised.

    The table (R, n) has w(+) - w(-) of coordinates, by the rows of all protected losses and lines
    for other events; ``total`` is the sum of all weights, and ``top`` the greatest exponent.
    """

    def __init__(self, shape: tuple[int, int], top: float) -> None:
        self.table: Array = np.zeros(shape)
        self.top, self.total = top, 0.0
        self._folds = list[tuple[Callable[[Array], Array], Array]]()

    def add(
        self, weights: Array, fold: Callable[[Array], Array], *, total: float | None = None
    ) -> None:
        """Add weights of scalar events (m,), which ``fold`` turns into a table, and their total."""
        self.total += float(weights.sum()) if total is None else total
        self._folds.append((fold, weights))

    def normalised(self) -> Array:
        """Return H (lines, n): all weights add up to 1, or are 0."""
        scale = self.total if self.total > 0 else 1.0
        table: Array = np.divide(self.table, scale, out=self.table)
        for fold, weights in self._folds:
            folded = fold(weights / scale)
            table[: len(folded)] += folded
        return table


@dataclass(frozen=True)
class Stand:
    """What a budget depends on."""

    rule: "WeightRule"
    experts: int  # N
    rounds: int  # T
    certificate_sum: float  # S, the sum of the positive certificates
    band: Band = PLAIN
    trust: Trust | None = None  # within which a reference was broadcast unchanged, if any was
    # logarithm of the mean potential when the games begin, and mean of ln(1 + C) over all experts
    start: float | None = None  # since then; None for the most that they can be
    spent: float | None = None
    beside: float = 0.0  # what other potentials add to the mean when the games begin
    risk: float = 1.0  # the chance that potentials exceed their bound; 1 where nothing is drawn
    share: float = 1.0  # prior of the expert in question, in units of 1 / N

    @property
    def reach(self) -> float:
        """By how many roots of its variation a gain may be outside its band when games begin."""
        own = 0.0 if self.trust is None else self.trust.reach(self.rounds)
        return max(own - self.band.zone, 0.0)


class WeightRule(ABC):
    """Turns gains and variations into weights, and bounds the gains that this leaves."""

    name: ClassVar[str]  # as files have it
    squared: ClassVar[bool] = False  # whether variations add up squares, or sizes
    rooted: ClassVar[bool] = False  # whether the greatest gain is a multiple of the root of a sum

    @abstractmethod
    def top(self, gain: Array, variation: Array, moment: Moment, *, both: bool = False) -> float:
        """Return the greatest exponent of experts, of ``both`` signs or of one."""

    @abstractmethod
    def two_sided(self, sums: Sums, moment: Moment, weights: Weights, share: float) -> None:
        """Add the weights of experts of both signs, with a share in the prior, beside 1."""

    @abstractmethod
    def one_sided(self, gain: Array, variation: Array, moment: Moment, *, top: float) -> Array:
        """Return the weights of experts of one sign (m,); 0 for a gain of -inf."""

    def absolute(self, bias: Array, variation: Array, moment: Moment) -> tuple[Array, Array] | None:
        """Return signed weights (rows, n), and sums by rows, not relative, where they are kept."""
        return None

    @abstractmethod
    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        """Return ln Phi of experts; that of the mean may be the ``start`` of a budget."""

    @abstractmethod
    def budget(self, stand: Stand) -> float:
        """Return what ``greatest`` needs: by the rule's proof, in its own units."""

    @abstractmethod
    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return the greatest R that the proof allows at each variation."""


@compiled(inline="always")
def _noise(variation: float, zone: float) -> float:
    return zone * np.sqrt(variation) if zone > 0.0 else 0.0


@compiled(inline="always", error_model="numpy")
def _highest(bias: float, variation: float, zone: float) -> float:
    above = max(abs(bias) - _noise(variation, zone) + 1.0, 0.0)
    return above * above * (1.0 / (3.0 * (variation + 1.0)))


@compiled(error_model="numpy")
def _greatest(bias: Array, variation: Array, zone: float) -> float:
    """Return the greatest exponent of Phi(R + 1), R = |B| - z sqrt(C), of events (m,)."""
    tops, whole = np.zeros(LANES), bias.shape[0] // LANES * LANES
    for first in range(0, whole, LANES):
        for lane in range(LANES):
            power = _highest(bias[first + lane], variation[first + lane], zone)
            tops[lane] = max(tops[lane], power)
    top: float = tops.max()
    for e in range(whole, bias.shape[0]):
        top = max(top, _highest(bias[e], variation[e], zone))
    return top


@compiled(error_model="numpy")
def _exponents(bias: Array, variation: Array, zone: float, top: float, powers: Array) -> None:
    """Write the exponents of Phi(R + 1) and Phi(R - 1) of events (m,), less ``top``, (2, m)."""
    for e in range(bias.shape[0]):
        regret = abs(bias[e]) - _noise(variation[e], zone)
        scale = 1.0 / (3.0 * (variation[e] + 1.0))
        above, below = max(regret + 1.0, 0.0), max(regret - 1.0, 0.0)
        powers[0, e] = above * above * scale - top
        powers[1, e] = below * below * scale - top


@compiled(error_model="numpy")
def _halves(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, variation: Array, zone: float, share: float, top: float, potentials: Array
) -> None:
    """Put the weights of both signs, that of B's own and the other, in place of potentials."""
    floor, half = np.exp(-top), 0.5 * share
    for e in range(bias.shape[0]):
        potentials[0, e] = half * (potentials[0, e] - potentials[1, e])
        reach = 1.0 - abs(bias[e]) - _noise(variation[e], zone)
        # the other sign has some weight, too, where this is positive
        power = reach * reach * (1.0 / (3.0 * (variation[e] + 1.0))) - top
        potentials[1, e] = power if reach > 0.0 else -np.inf
    for e in range(bias.shape[0]):
        power = potentials[1, e]
        potentials[1, e] = half * (np.exp(power) - floor) if power > -np.inf else 0.0


@compiled()
def _signed(bias: Array, halves: Array, table: Array) -> float:
    """Add the signed weights of events (m,) to ``table``; return the sum of all."""
    total = 0.0
    for e in range(bias.shape[0]):
        total += halves[0, e]
        total += halves[1, e]
        weight = halves[0, e] - halves[1, e]
        table[e] += weight if bias[e] >= 0 else -weight
    return total


@compiled()
def _spread(bias: Array, halves: Array, signed: Array, sums: Array) -> None:
    size = bias.shape[1]
    for r in range(bias.shape[0]):
        total = 0.0
        for i in range(size):
            own, other = halves[0, r * size + i], halves[1, r * size + i]
            signed[r, i] = own - other if bias[r, i] >= 0 else other - own
            total += own + other
        sums[r] = total


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


class AdaptiveWeights(WeightRule):
    r"""AdaNormalHedge weights: no horizon, no rate, sqrt(n_T(E)) per event. The default.

    Luo and Schapire (2015, "Achieving all with no parameters: AdaNormalHedge"), with potential and
    weight

        Phi(R, C) = exp( max(R, 0)^2 / (3 C) ),   w = [ Phi(R + 1, C + 1) - Phi(R - 1, C + 1) ] / 2.

    **Proof of the bound.** For |g| <= 1 (after their Lemma 5; q and k as above),

        Phi(R + g, C + |g|) <= Phi(R, C) + w(R, C) g + q |g| / (C + 1).

    Sum over experts. The middle terms are the game's value at the realised outcome, at most
    certificate x total weight, and w <= k Phi. The last terms sum to at most l ln(1 + C) per
    expert, l = q / ln 2 = .488, and C <= T. Hence the potentials' sum stays below N P,

        P = e^(k S) (1 + l ln(1 + T)).

    No potential is below 1: none is above N P - (N - 1). With C <= n_T(E), for each expert

        R <= sqrt(3 C Lambda),   Lambda = ln(1 + N (P - 1)) <= ln N + ln P.

    **After trust** no R exceeds u sqrt(C), u the ``reach`` less z: potentials are at most
    e^(u^2 / 3) in place of 1.
    """

    name = "adaptive"
    rooted = True

    def top(self, gain: Array, variation: Array, moment: Moment, *, both: bool = False) -> float:
        if both:
            zone = moment.band.zone
            return float(_greatest(gain.reshape(-1), variation.reshape(-1), zone))
        return float(self._powers(gain, variation, moment).max(initial=0.0))

    def two_sided(self, sums: Sums, moment: Moment, weights: Weights, share: float) -> None:
        """Add the weights of experts of both signs; zero where every bias lies in its band."""
        flat = sums.bias.reshape(-1), sums.variation.reshape(-1)
        halves = self._raised(*flat, moment, top=weights.top, share=share)
        weights.total += _signed(flat[0], halves, weights.table[sums.rows].reshape(-1))

    @staticmethod
    def _raised(
        bias: Array, variation: Array, moment: Moment, *, top: float, share: float
    ) -> Array:
        zone, halves = moment.band.zone, np.empty((2, bias.size))
        _exponents(bias, variation, zone, top, halves)
        _halves(bias, variation, zone, share, top, np.exp(halves, out=halves))
        return halves

    def absolute(self, bias: Array, variation: Array, moment: Moment) -> tuple[Array, Array] | None:
        flat = bias.reshape(-1), variation.reshape(-1)
        if _greatest(*flat, moment.band.zone) > HIGHEST:
            return None
        signed, sums = np.empty(bias.shape), np.empty(len(bias))
        _spread(bias, self._raised(*flat, moment, top=0.0, share=1.0), signed, sums)
        return signed, sums

    @staticmethod
    def _powers(gain: Array, variation: Array, moment: Moment) -> Array:
        """Return the exponents of Phi(R + 1) and Phi(R - 1) of experts of one sign (2, m)."""
        regret = gain - moment.band.zone * np.sqrt(variation)
        scale = 1 / (3 * (variation + 1))
        return np.asarray(np.maximum([regret + 1, regret - 1], 0.0) ** 2 * scale)

    def one_sided(self, gain: Array, variation: Array, moment: Moment, *, top: float) -> Array:
        """Return the weights of experts of one sign (m,); zero where all lie in the band."""
        raised = np.exp(self._powers(gain, variation, moment) - top)
        return np.asarray(0.5 * (raised[0] - raised[1]))

    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        """Return ln Phi(R, C), R = gain - z sqrt(C); 0 where there is no variation."""
        regret = np.maximum(gain - zone * np.sqrt(variation), 0.0)
        least = np.finfo(np.float64).tiny
        return np.asarray(regret**2 / (3 * np.maximum(variation, least)))

    def budget(self, stand: Stand) -> float:
        power = self.growth(stand)
        # all are at least 1
        others = math.log1p((stand.share * (1 / stand.experts) - 1) * math.exp(-power))
        return max(math.log(stand.experts) - math.log(stand.share) + power + others, 0.0)

    @staticmethod
    def growth(stand: Stand) -> float:
        """Return ln P: how far the mean potential may have grown."""
        beside = stand.beside + LOGARITHM * math.log1p(stand.rounds)
        most = float(np.logaddexp(stand.reach**2 / 3, _log(beside)))  # e^709 is a double's most
        if stand.start is not None and stand.spent is not None:
            most = min(most, float(np.logaddexp(stand.start, _log(LOGARITHM * stand.spent))))
        return most + GROWTH * stand.certificate_sum - math.log(stand.risk)

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return sqrt(3 C Lambda)."""
        return np.asarray(math.sqrt(3 * budget) * np.sqrt(variation))


@compiled()
def _exponential(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, noise: Array, rate: float, top: float, share: float, table: Array
) -> float:
    total = 0.0
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            up = share * np.exp(rate * (bias[r, i] - noise[r, i]) - top)
            down = share * np.exp(rate * (-bias[r, i] - noise[r, i]) - top)
            total += up + down
            table[r, i] += up - down
    return total


class ExponentialWeights(WeightRule):
    r"""Exponential weights as printed in the paper: w = exp(rate * R).

    The rate is sqrt(2 ln N / T) where the ``horizon`` T is known, else the anytime rate
    sqrt(ln N / t).

    **Proof of the bound.** Hedge with gains in [-1, 1]: (1 / rate) ln(mean of exp(rate R)) grows by
    at most the certificate and rate / 2 in a round, and never when the rate falls. Hence

        R <= ln N / rate + rate T / 2 + S,

    sqrt(2 T ln N) + S at the rate for horizon T, and 2 sqrt(T ln N) + S at the anytime rate; after
    trust it starts at w(T) + 1 at most, in place of 0.
    """

    name = "exponential"

    def __init__(self, horizon: int | None = None) -> None:
        self.horizon = horizon

    def rate(self, moment: Moment) -> float:
        """Return the rate at a round."""
        entropy = math.log(moment.experts)
        return math.sqrt(2 * entropy / self.horizon if self.horizon else entropy / moment.time)

    def top(self, gain: Array, variation: Array, moment: Moment, *, both: bool = False) -> float:
        regret = (np.abs(gain) if both else gain) - moment.band.zone * np.sqrt(variation)
        return float(self.rate(moment) * regret.max(initial=-np.inf))

    def two_sided(self, sums: Sums, moment: Moment, weights: Weights, share: float) -> None:
        rate, noise = self.rate(moment), moment.band.zone * np.sqrt(sums.variation)
        where = weights.top, share, weights.table[sums.rows]
        weights.total += _exponential(sums.bias, noise, rate, *where)

    def one_sided(self, gain: Array, variation: Array, moment: Moment, *, top: float) -> Array:
        regret = gain - moment.band.zone * np.sqrt(variation)
        weighed = np.isfinite(regret)
        powers = self.rate(moment) * np.where(weighed, regret, 0.0) - top
        return np.where(weighed, np.exp(powers), 0.0)

    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        """Return 0: the budget takes no notice of it."""
        return np.zeros(np.shape(gain))

    def budget(self, stand: Stand) -> float:
        head = float(stand.trust.limit(stand.rounds)) + 1.0 if stand.trust else 0.0
        entropy, rounds = math.log(stand.experts), stand.rounds
        own = entropy - math.log(stand.share)
        if self.horizon is None:
            most = (1 + own / entropy) * math.sqrt(rounds * entropy)
        else:
            rate = math.sqrt(2 * entropy / self.horizon)
            most = own / rate + rate * rounds / 2
        return most + stand.certificate_sum + head

    def greatest(self, variation: Array | float, budget: float) -> Array:
        return np.full_like(np.asarray(variation, dtype=np.float64), budget)


@dataclass(frozen=True, eq=False)
class ExponentialMixture:
    """A mixture of exponentials, sum_j s_j exp(eta_j x - c_j v), over J rates.

    The potential of second-order weights and the supermartingale of the draws have this form.
    """

    rates: Array  # (J,), eta, above 0
    costs: Array  # (J,), c, above 0
    shares: Array  # (J,), s, which add up to 1

    def greatest(self, variation: Array | float, exponent: Array | float) -> Array:
        """Return the greatest x at each v for which the mixture is at most exp(exponent).

        Newton's steps on a convex function from the right: every step is an upper bound. As
        {(x, v)} below the level is convex, the result is concave in v.
        """
        paid = self.costs * np.asarray(variation, dtype=np.float64)[..., None] - np.log(self.shares)
        x = ((exponent + paid) / self.rates).min(-1)
        for _ in range(NEWTON):
            powers = self.rates * x[..., None] - paid
            top = powers.max(-1)
            parts = np.exp(powers - top[..., None])
            total = parts.sum(-1)
            excess = top + np.log(total) - exponent
            x = x - excess * total / (parts @ self.rates)
        return np.asarray(x)


RATES = np.array([0.75 * 0.5**j for j in range(10)])  # enough for V up to ten million
COSTS = -np.log1p(-RATES) - RATES
STEEPEST = float(RATES[0])
NEGLIGIBLE = 40.0  # e^-40 of the greatest summand adds nothing to a sum of doubles
GAINS = ExponentialMixture(RATES, COSTS, np.full(len(RATES), 1 / len(RATES)))  # with beta


@compiled()
def _top(gain: Array, noise: Array, variation: Array, sign: float) -> float:
    top = -np.inf
    for e in range(gain.shape[0]):
        for j in range(RATES.shape[0]):
            top = max(top, RATES[j] * (sign * gain[e] - noise[e]) - COSTS[j] * variation[e])
    return top


@compiled()
def _weigh(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    gain: Array, noise: Array, variation: Array, sign: float, share: float, top: float, out: Array
) -> float:
    """Add ``sign`` times the weights of experts, relative to exp(top), to ``out``; their sum."""
    total = 0.0
    for e in range(gain.shape[0]):
        weight = 0.0
        for j in range(RATES.shape[0]):
            power = RATES[j] * (sign * gain[e] - noise[e]) - COSTS[j] * variation[e] - top
            if power > -NEGLIGIBLE:
                weight += share * RATES[j] * np.exp(power)
        out[e] += sign * weight
        total += weight
    return total


class SecondOrderWeights(WeightRule):
    r"""Weights whose bounds follow the gains' squares: no horizon, no rate.

    An expert with R and V = sum_t g_t^2 has potential and weight

        Phi(R, V) = sum_j exp(eta_j R - psi_j V) / J,        psi_j = -ln(1 - eta_j) - eta_j,
        w(R, V)   = sum_j eta_j exp(eta_j R - psi_j V) / J,

    over a grid of J rates, from 3/4 down by halves: Squint (Koolen and van Erven, 2015,
    "Second-order quantile methods for experts and combinatorial games") with a uniform prior over
    rates, and with the sharper cost psi of Fan, Grama and Liu (2015) in place of eta^2.

    **Proof.** As (x - ln(1 + x)) / x^2 falls in x, exp(eta g - psi g^2) <= 1 + eta g for |g| <= 1
    and 0 <= eta < 1, whence Phi(R + g, V + g^2) <= Phi(R, V) + g w(R, V). The game keeps the sum of
    w g over experts at most at the certificate times that of w <= eta_1 Phi, so that the
    potentials' sum stays below N e^(eta_1 S) times their mean at the start, P_0. With

        Lambda = ln N + ln P_0 + eta_1 S

    therefore Phi(R, V) <= e^Lambda: R <= beta(V), the greatest R that this allows. As each summand
    is at most J e^Lambda, beta(V) <= min_j (Lambda + ln J + psi_j V) / eta_j, about sqrt(2 V
    (Lambda + ln J)), at most 1.06 times as much within the grid, and (Lambda + ln J) / eta_1 where
    V is small. ``beta`` is concave, as {Phi <= e^Lambda} is convex, and V <= n_T(E) because
    |g_t| <= E[E].

    **After trust.** With M the ``strength`` of the test, R <= sqrt(2 (V + 1) M) + 1 and
    eta sqrt(2 (V + 1) M) - psi (V + 1) <= eta^2 M / (2 psi), so that
    P_0 <= sum_j exp(eta_j + psi_j + eta_j^2 M / (2 psi_j)) / J, in place of 1.
    """

    name, squared = "second-order", True

    def top(self, gain: Array, variation: Array, moment: Moment, *, both: bool = False) -> float:
        held = _held(gain, variation, moment)
        return float(max(_top(*held, sign) for sign in ((1.0, -1.0) if both else (1.0,))))

    def two_sided(self, sums: Sums, moment: Moment, weights: Weights, share: float) -> None:
        held = _held(sums.bias, sums.variation, moment)
        part = weights.table[sums.rows].reshape(-1)  # a view
        for sign in (1.0, -1.0):
            weights.total += _weigh(*held, sign, share, weights.top, part)

    def one_sided(self, gain: Array, variation: Array, moment: Moment, *, top: float) -> Array:
        weights = np.zeros(len(gain))
        _weigh(*_held(gain, variation, moment), 1.0, 1.0, top, weights)
        return weights

    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        regret = gain - zone * np.sqrt(variation)
        powers = RATES * regret[..., None] - COSTS * variation[..., None]
        return np.asarray(np.logaddexp.reduce(powers, axis=-1) - math.log(len(RATES)))

    def budget(self, stand: Stand) -> float:
        most = 0.0
        if stand.trust is not None:
            known = RATES**2 * stand.trust.strength(stand.rounds) / (2 * COSTS)
            most = float(np.logaddexp.reduce(RATES + COSTS + known)) - math.log(len(RATES))
        if stand.start is not None:
            most = min(most, stand.start)
        own = math.log(stand.experts) - math.log(stand.share)
        return own + most + STEEPEST * stand.certificate_sum

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return beta(V)."""
        return GAINS.greatest(variation, budget)


def _held(gain: Array, variation: Array, moment: Moment) -> tuple[Array, Array, Array]:
    """Return gains, what their noise explains, and variations, one number after the other."""
    flat = variation.ravel()
    return gain.ravel(), moment.band.zone * np.sqrt(flat), flat


@compiled()
def _add_scaled(table: Array, scale: float, signed: Array) -> None:
    for r in range(table.shape[0]):
        for i in range(table.shape[1]):
            table[r, i] += scale * signed[r, i]


class Kept:
    """The weights of one large table of events, which stand until their events are touched.

    A round moves the biases of the rows that somebody plays, a fifth of them where eight actions
    are to choose from. What is kept is not relative to the greatest exponent, which moves every
    round: by the theorem no exponent is above Lambda, some tens. Where one is too great all the
    same, all weights are found anew. It is a function of biases and variations alone, so that a run
    that is resumed goes on with the same bytes.

    ``signed`` (rows, n) are the weights, ``sums`` (rows,) those of both signs', and ``stale``
    (rows,) says which rows have other biases by now.
    """

    def __init__(self, rows: int, size: int) -> None:
        self.signed, self.sums = np.empty((rows, size)), np.empty(rows)
        self.stale, self._zone = np.ones(rows, dtype=bool), np.nan

    def refresh(self, rule: WeightRule, bias: Array, variation: Array, moment: Moment) -> bool:
        """Weigh the rows whose biases have changed; False where that cannot be kept."""
        if moment.band.zone != self._zone:
            self.stale[:] = True
            self._zone = moment.band.zone
        lines = np.flatnonzero(self.stale)
        if not len(lines):
            return True
        fresh = rule.absolute(bias[lines], variation[lines], moment)
        if fresh is None:
            return False
        self.signed[lines], self.sums[lines] = fresh
        self.stale[lines] = False
        return True

    def add(self, weights: Weights, rows: slice, share: float) -> None:
        """Add what is kept."""
        scale = share * math.exp(-weights.top)
        _add_scaled(weights.table[rows], scale, self.signed)
        weights.total += scale * float(self.sums.sum())


RULES: dict[str, Callable[[int | None], WeightRule]] = {
    AdaptiveWeights.name: lambda _: AdaptiveWeights(),
    SecondOrderWeights.name: lambda _: SecondOrderWeights(),
    ExponentialWeights.name: ExponentialWeights,
}


def rule_of(name: str, horizon: int | None = None) -> WeightRule:
    """Make the rule of a name; the exponential rate may use the horizon. ValueError if unknown."""
    if name not in RULES:
        raise ValueError(f"weights '{name}' are unknown; choose from {', '.join(RULES)}")
    return RULES[name](horizon)
