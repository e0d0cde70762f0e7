r"""How cumulative gains turn into the weights of the round's game, and what that proves of them.

Each event E, coordinate i and sign sigma is an expert with gain g_t = sigma * E_mixture[E (p_i -
s_i)], |g_t| <= 1, and cumulative gain G = sigma * B; scalar events have one expert each. A rule
weighs R = G - z sqrt(C), z a tolerance band (docs/theory.md, 8), by the variation C = sum_t |g_t|
or sum_t g_t^2, at most the event's occupancy n_T(E). Where a reference was trusted the games begin
late, with gains of at most L(V) + 1 (``forecaster.switch_test``).

**One step of the adaptive potential.** With Phi and w of ``AdaptiveWeights``, |g| <= 1, R <= C,

    (1)   Phi(R + g, C + |g|) <= Phi(R, C) + w(R, C) g + q |g| / (C + 1),    q = .338,
    (2)   w(R, C) <= k Phi(R, C),    k = (e^(1/3) - 1/e) / 2.

(2): with v = 1 / (3 (C + 1)) and R >= 1, w / Phi = (e^a - e^b) / 2, where a = (2 R C + C - R^2) /
(3 C (C + 1)) grows with R up to 1/3 and a - b = 4 R v <= 4/3; for R < 1 it is below k, too. (1):
chords bound the left side, so that q need only be at least K(R, C) = (C + 1) {[Phi(R + 1, C + 1) +
Phi(R - 1, C + 1)] / 2 - Phi(R, C)}. Where R >= 1 and v <= ln(3 q), cosh x <= e^(x^2 / 2) leaves
e^v / 3. Elsewhere, with u = v / (1 - 3 v), E(x) = (e^x - 1) / x and no second term where R < 1,

    K = (R + 1)^2 E((R + 1)^2 v) / 6 + (R - 1)^2 E((R - 1)^2 v) / 6 - R^2 E(R^2 u) / (3 (1 - 3 v)),

whose terms grow with R and v: halving rectangles until the first ones at the upper corner less the
last at the lower one are below q ends (``tests/forecaster/test_weights.py``).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.mixture_of_rates import COSTS, RATES, greatest_gain
from regretless.forecaster.reference import PLAIN, Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import ParameterError, brief
from regretless.market.core.validation import check_int

GROWTH = (math.exp(1 / 3) - math.exp(-1)) / 2  # k
REMAINDER = 0.338  # q
LOGARITHM = REMAINDER / math.log(2)
LEAST = -1e300  # of an exponent
NEGLIGIBLE = 40.0  # e^-40 of the greatest summand adds nothing to a sum of doubles


class Moment(NamedTuple):
    """When experts are weighed."""

    time: int  # the round, counted from 1
    experts: int  # N, all that are weighed together
    band: Band = PLAIN


class Weights(NamedTuple):
    """Experts whose weights are found once the greatest exponent of all is known."""

    top: float  # the greatest exponent of these
    weights: Callable[[float, float], tuple[Array, float]]  # relative to exp(top), and their sum
    share: float = 1.0  # of these in the prior, beside 1
    rows: slice = slice(None)  # of the game's table, where weights are signed ones of coordinates
    fold: Callable[[Array], Array] | None = None  # turns weights of scalar events into a table


@dataclass(frozen=True)
class Stand:
    """What a budget depends on."""

    rule: "WeightRule"
    experts: int  # N
    rounds: int  # T
    certificate_sum: float  # S, the sum of the positive certificates
    band: Band = PLAIN
    trust: SwitchTest | None = None  # within which a reference was broadcast unchanged, if any was
    # logarithm of the mean potential when the games begin, and mean of ln(1 + C) over all experts
    start: float | None = None  # since then; None for the most that they can be
    spent: float | None = None
    beside: float = 0.0  # what other potentials add to the mean when the games begin
    risk: float = 1.0  # the chance that potentials exceed their bound; 1 where nothing is drawn
    share: float = 1.0  # prior of the expert in question, in units of 1 / N


class WeightRule(ABC):
    """Turns gains and variations into weights, and bounds the gains that this leaves."""

    name: ClassVar[str]  # as files have it
    squared: ClassVar[bool] = False  # whether variations add up squares, or sizes
    rooted: ClassVar[bool] = False  # whether the greatest gain is a multiple of the root of a sum

    def __init__(self, horizon: int | None = None) -> None:
        self.horizon = horizon  # of the run, where the rule has a use for it

    @abstractmethod
    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both: bool = False
    ) -> Weights:
        """Weigh experts of one sign, or of ``both``; a gain of -inf has weight 0.

        Weights are of the gains' shape, those of both signs the difference.
        """

    @abstractmethod
    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        """Return ln Phi of experts; that of the mean may be the ``start`` of a budget."""

    @abstractmethod
    def budget(self, stand: Stand) -> float:
        """Return what ``greatest`` needs: by the rule's proof, in its own units."""

    @abstractmethod
    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return the greatest R that the proof allows at each variation."""


@compiled(error_model="numpy")
def _exponents(gain: Array, variation: Array, zone: float, both: bool, powers: Array) -> float:  # noqa: FBT001
    """Write the exponents of Phi(R + 1) and Phi(R - 1) of experts (m,); the greatest."""
    top = 0.0
    for e in range(gain.shape[0]):
        regret = abs(gain[e]) if both else gain[e]
        if zone > 0.0:
            regret -= zone * np.sqrt(variation[e])
        scale = 1.0 / (3.0 * (variation[e] + 1.0))
        above, below = max(regret + 1.0, 0.0), max(regret - 1.0, 0.0)
        powers[0, e] = above * above * scale
        powers[1, e] = below * below * scale
        top = max(top, powers[0, e])
    return top


@compiled(error_model="numpy")
def _signed(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, variation: Array, zone: float, share: float, top: float, raised: Array
) -> float:
    """Put the signed weights of both signs in place of potentials; the sum of all weights."""
    floor, half, total = np.exp(-top), 0.5 * share, 0.0
    for e in range(bias.shape[0]):
        own, other = half * (raised[0, e] - raised[1, e]), 0.0
        reach = 1.0 - abs(bias[e])
        if zone > 0.0:
            reach -= zone * np.sqrt(variation[e])
        if reach > 0.0:  # the other sign has some weight, too
            power = reach * reach * (1.0 / (3.0 * (variation[e] + 1.0))) - top
            other = half * (np.exp(power) - floor)
        total += own
        total += other
        raised[0, e] = own - other if bias[e] >= 0 else other - own
    return total


class AdaptiveWeights(WeightRule):
    r"""AdaNormalHedge weights: no horizon, no rate, sqrt(n_T(E)) per event. The default.

    Luo and Schapire (2015, "Achieving all with no parameters: AdaNormalHedge"), with potential and
    weight

        Phi(R, C) = exp( max(R, 0)^2 / (3 C) ),   w = [ Phi(R + 1, C + 1) - Phi(R - 1, C + 1) ] / 2.

    By (1) and (2) the potentials' sum stays below N P (docs/theory.md, 2), and none is below 1:

        R <= sqrt(3 C Lambda),   Lambda = ln(1 + N (P - 1)),   P = e^(k S) (1 + l ln(1 + T)),

    l = q / ln 2 = .488. **After trust** no R exceeds u sqrt(C), u the ``reach`` less z: potentials
    begin at e^(u^2 / 3) at most in place of 1.
    """

    name = "adaptive"
    rooted = True

    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both: bool = False
    ) -> Weights:
        flat, powers = (gain.reshape(-1), variation.reshape(-1)), np.empty((2, gain.size))
        zone = moment.band.zone

        def weights(top: float, share: float) -> tuple[Array, float]:
            raised = np.exp(np.subtract(powers, top, out=powers), out=powers)
            if both:
                total = _signed(*flat, zone, share, top, raised)
                return raised[0].reshape(gain.shape), total
            own = share * (0.5 * (raised[0] - raised[1]))
            return own.reshape(gain.shape), float(own.sum())

        return Weights(_exponents(*flat, zone, both, powers), weights)

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
        reach = stand.trust.reach(stand.rounds) if stand.trust else 0.0
        begun = max(reach - stand.band.zone, 0.0) ** 2 / 3
        pairs = [(begun, stand.beside + LOGARITHM * math.log1p(stand.rounds))]
        if stand.start is not None and stand.spent is not None:
            pairs.append((stand.start, LOGARITHM * stand.spent))
        most = min(  # e^709 is a double's most
            float(np.logaddexp(start, math.log(more) if more > 0 else -math.inf))
            for start, more in pairs
        )
        return most + GROWTH * stand.certificate_sum - math.log(stand.risk)

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return sqrt(3 C Lambda)."""
        return np.asarray(math.sqrt(3 * budget) * np.sqrt(variation))


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

    over a grid of J rates, from 3/4 down by halves: Squint (Koolen and van Erven, 2015) with the
    sharper cost psi of Fan, Grama and Liu (2015) in place of eta^2. With Lambda = ln N + ln P_0 +
    eta_1 S, P_0 the mean potential at the start, R <= beta(V), the greatest R with Phi(R, V) <=
    e^Lambda (docs/theory.md, 3), which is concave in V <= n_T(E).

    **After trust.** The switch test has kept this very Phi, with the same V, below its level until
    the round in which it failed, and one round multiplies it by e^(eta_1) at most: ln P_0 is at
    most the test's ``evidence`` + eta_1, in place of 0.
    """

    name, squared = "second-order", True

    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both: bool = False
    ) -> Weights:
        noise = moment.band.zone * np.sqrt(variation)
        regret = (np.abs(gain) if both else gain) - noise
        powers = RATES * regret[..., None] - COSTS * variation[..., None]
        known = gain.ravel(), noise.ravel(), variation.ravel()

        def weights(top: float, share: float) -> tuple[Array, float]:
            own, signs = np.zeros(gain.size), (1.0, -1.0) if both else (1.0,)
            total = sum(_weigh(*known, sign, share, top, own) for sign in signs)
            return own.reshape(gain.shape), total if both else float(own.sum())

        return Weights(float(powers.max(initial=LEAST)), weights)

    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        regret = gain - zone * np.sqrt(variation)
        powers = RATES * regret[..., None] - COSTS * variation[..., None]
        return np.asarray(np.logaddexp.reduce(powers, axis=-1) - math.log(len(RATES)))

    def budget(self, stand: Stand) -> float:
        most = 0.0
        if stand.trust is not None:
            most = stand.trust.evidence + float(RATES[0])
        if stand.start is not None:
            most = min(most, stand.start)
        own = math.log(stand.experts) - math.log(stand.share)
        return own + most + float(RATES[0]) * stand.certificate_sum

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return beta(V)."""
        return greatest_gain(variation, budget)


@compiled()
def _exponential(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array, noise: Array, rate: float, top: float, share: float, table: Array
) -> float:
    total = 0.0
    for e in range(bias.shape[0]):
        up = share * np.exp(rate * (bias[e] - noise[e]) - top)
        down = share * np.exp(rate * (-bias[e] - noise[e]) - top)
        total += up + down
        table[e] = up - down
    return total


class ExponentialWeights(WeightRule):
    r"""Exponential weights as printed in the paper: w = exp(rate * R).

    The rate is sqrt(2 ln N / T) where the horizon T is known, else the anytime rate sqrt(ln N / t).
    As (1 / rate) ln(mean of exp(rate R)) grows by at most the certificate and rate / 2 in a round,
    and never when the rate falls,

        R <= ln N / rate + rate T / 2 + S;

    after trust it starts at L(T) + 1 at most, in place of 0.
    """

    name = "exponential"

    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both: bool = False
    ) -> Weights:
        entropy = math.log(moment.experts)
        rate = math.sqrt(2 * entropy / self.horizon if self.horizon else entropy / moment.time)
        noise = moment.band.zone * np.sqrt(variation)
        regret = (np.abs(gain) if both else gain) - noise

        def weights(top: float, share: float) -> tuple[Array, float]:
            if not both:
                own = share * np.exp(rate * regret - top)
                return own, float(own.sum())
            table = np.empty(gain.size)
            total = _exponential(gain.ravel(), noise.ravel(), rate, top, share, table)
            return table.reshape(gain.shape), total

        return Weights(rate * float(regret.max(initial=LEAST)), weights)

    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        return np.zeros(np.shape(gain))  # of which the budget takes no notice

    def budget(self, stand: Stand) -> float:
        head = float(stand.trust.limit(stand.rounds)) + 1.0 if stand.trust else 0.0
        entropy, rounds = math.log(stand.experts), stand.rounds
        own = entropy - math.log(stand.share)
        most = (1 + own / entropy) * math.sqrt(rounds * entropy)
        if self.horizon is not None:
            rate = math.sqrt(2 * entropy / self.horizon)
            most = own / rate + rate * rounds / 2
        return most + stand.certificate_sum + head

    def greatest(self, variation: Array | float, budget: float) -> Array:
        return np.full_like(np.asarray(variation, dtype=np.float64), budget)


RULES: dict[str, type[WeightRule]] = {
    rule.name: rule for rule in (AdaptiveWeights, SecondOrderWeights, ExponentialWeights)
}


def rule_of(name: str, horizon: int | None = None) -> WeightRule:
    """Make the rule of a name; the exponential rate may use the horizon.

    ParameterError if the name is unknown, or the horizon no number of rounds.
    """
    if not isinstance(name, str) or name not in RULES:
        raise ParameterError(f"weights = {brief(name)}: choose from {', '.join(RULES)}")
    if horizon is not None:
        check_int("horizon", horizon, least=1)
    return RULES[name](horizon)
