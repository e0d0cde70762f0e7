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
# A bound with a risk is for a stretch of rounds, of which ln(1 + T) at the end is known beforehand:
# the first ends at the horizon, the next ones where this logarithm has doubled.
FIRST_STRETCH = 1000  # rounds, where there is no horizon
SHARE_OF_STRETCH = 0.9  # of the risk that is left, for each stretch
MIN_EXPONENT = -1e300  # stands for the exponent of no expert
NEGLIGIBLE = 40.0  # e^-40 of the greatest summand adds nothing to a sum of doubles


class Moment(NamedTuple):
    """When experts are weighed."""

    time: int  # the round, counted from 1
    experts: int  # N, all that are weighed together
    band: Band = PLAIN


class ExpertWeights(ABC):
    """Weights of experts that are not normalised yet, with the greatest of their exponents.

    A round's experts come in parts. Once the greatest exponent of all parts is known, each part
    returns its weights relative to it, so that nothing overflows: the log-sum-exp of the round is
    ``events.base.EventSet.table_of``.
    """

    largest_exponent: float

    @abstractmethod
    def relative_to(self, exponent: float, prior: float = 1.0) -> tuple[Array, float]:
        """Return prior * weights / exp(exponent) and the sum of all experts' weights.

        The weights have the shape of the gains. Where experts have either sign they are those of
        the positive sign less those of the negative one, and the sum is of both.
        """


@dataclass(frozen=True)
class BoundInputs:
    """What every bound depends on: what is known of a forecaster's run.

    With ``log_start`` and ``mean_log_variation`` a bound is data-dependent; without them they are
    taken to be the greatest that they can be.
    """

    experts: int  # N
    rounds: int  # T
    certificate_sum: float  # S, the sum of the positive certificates
    band: Band = PLAIN
    # Within which a reference was broadcast unchanged, if there was one; and whether it is still.
    switch_test: SwitchTest | None = None
    trusted: bool = False
    log_start: float | None = None  # logarithm of the mean potential when the games begin
    mean_log_variation: float | None = None  # of ln(1 + C), over all experts, since then
    added_potential: float = 0.0  # of other potentials, beside the mean, when the games begin
    risk: float = 1.0  # the chance that potentials exceed their bound; 1 where nothing is drawn
    prior: float = 1.0  # of the expert in question, in units of 1 / N


class WeightRule(ABC):
    """Turns gains and variations into weights, and bounds the gains that this leaves.

    A rule of one's own is a subclass, in one file with its proof. Its object stands in place of a
    name wherever Python takes ``weights`` or a ``rule``, as in ``DecisionSwap(losses,
    weights=MyWeights())`` and ``VectorEvents(groups, MyWeights())``; scenario files have the names
    of ``RULES`` alone. ``tests/weight_rules.py`` checks any rule.

    The proof is of these steps. An expert has gained G at variation C, and counts as R = G - z
    sqrt(C). In a round the weighted mean of gains, weights normalised, is at most a certificate,
    and S adds up the positive ones. The rule then claims R <= greatest(C, budget).
    """

    name: ClassVar[str]  # as files and representations have it
    squared: ClassVar[bool] = False  # whether variations add up squares, or sizes
    # Whether ``greatest`` is a multiple of sqrt(C): some bounds are sharper then.
    rooted: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Work ``normalised`` out by a class's own ``weigh``, where it writes this alone."""
        super().__init_subclass__()
        if "weigh" in vars(cls) and "normalised" not in vars(cls):
            cls.normalised = WeightRule.normalised  # type: ignore[method-assign]

    def __init__(self, horizon: int | None = None) -> None:
        self.horizon = horizon  # of the run, where the rule has a use for it

    @abstractmethod
    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both_signs: bool = False
    ) -> ExpertWeights:
        """Weigh experts by their gains and variations, arrays of one shape.

        The rule itself takes the band ``moment.band.factor``, z, off the gains. A gain of -inf has
        weight 0. With ``both_signs`` the gain of either sign is an expert.
        """

    def normalised(self, gain: Array, variation: Array, moment: Moment) -> Array:
        """Return the weights of experts of either sign, beside whom there are no others.

        They are those of the positive sign less those of the negative one, by the sum of both, in
        the shape of the gains. A rule need not write this: it is worked out by ``weigh``.
        """
        weighed = self.weigh(gain, variation, moment, both_signs=True)
        weights, total = weighed.relative_to(weighed.largest_exponent)
        return weights / (total or 1.0)

    @abstractmethod
    def potentials(self, gain: Array, variation: Array, band_factor: float) -> Array:
        """Return ln Phi of experts; that of the mean is ``BoundInputs.log_start``.

        A rule whose budget makes no use of it returns zeros.
        """

    @abstractmethod
    def budget(self, inputs: BoundInputs) -> float:
        """Return what ``greatest`` needs: by the rule's proof, in its own units.

        It counts N, the prior, T and S; and where ``inputs.switch_test`` is not None that the games
        began late, with gains of at most ``switch_test.limit(T)`` + 1. The band is not counted:
        ``guarantees`` adds z sqrt(C).
        """

    def log_growth(self, inputs: BoundInputs) -> float | None:
        """Return ln P: how far the mean of all potentials may have grown, others' among them.

        None where the proof does not say, so that nothing is promised of experts that share the
        game with other potentials; it is None with a switch test where it is without.
        """
        return None

    @abstractmethod
    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return the greatest R that the proof allows at each variation.

        It never falls in variations, and is concave: events that share rounds are bounded by equal
        shares.
        """


@compiled(error_model="numpy")
def adaptive_exponents(
    gain: Array,
    variation: Array,
    band_factor: float,
    both_signs: bool,  # noqa: FBT001
    exponents: Array,
) -> float:
    """Write the exponents of Phi(R + 1, C + 1) and Phi(R - 1, C + 1), and return the greatest.

    Parameters
    ----------
    gain, variation : array (m,)
        G and C of every expert.
    band_factor : float
        z, so that R = G - z sqrt(C).
    both_signs : bool
        Whether the exponents are of |G|: the greater one of an expert of either sign.
    exponents : array (2, m)
        Is written: max(R + 1, 0)^2 / (3 C + 3), and the same of R - 1.
    """
    largest = 0.0
    for e in range(gain.shape[0]):
        regret = abs(gain[e]) if both_signs else gain[e]
        if band_factor > 0.0:
            regret -= band_factor * np.sqrt(variation[e])
        scale = 1.0 / (3.0 * (variation[e] + 1.0))
        regret_if_gained = max(regret + 1.0, 0.0)  # after a round with the gain 1
        regret_if_lost = max(regret - 1.0, 0.0)
        exponents[0, e] = regret_if_gained * regret_if_gained * scale
        exponents[1, e] = regret_if_lost * regret_if_lost * scale
        largest = max(largest, exponents[0, e])
    return largest


@compiled(error_model="numpy")
def relative_adaptive_exponents(
    gain: Array, variation: Array, band_factor: float, exponents: Array
) -> float:
    """Write the exponents of experts of either sign less the greatest, and return the greatest.

    The arguments are those of ``adaptive_exponents``.
    """
    largest = adaptive_exponents(gain, variation, band_factor, True, exponents)  # noqa: FBT003
    for e in range(gain.shape[0]):
        exponents[0, e] -= largest
        exponents[1, e] -= largest
    return largest


@compiled(error_model="numpy")
def signed_adaptive_weights(
    bias: Array,
    variation: Array,
    band_factor: float,
    prior: float,
    exponent: float,
    potentials: Array,
) -> float:
    """Write the weights of both signs, positive less negative, and return the sum of all.

    Parameters
    ----------
    bias, variation : array (m,)
        B and C of every coordinate of every event; its experts have the gains B and -B.
    band_factor, prior : float
        z, and what each weight is multiplied by.
    exponent : float
        That of the scale: weights are relative to e to its power.
    potentials : array (2, m)
        Phi(|B| + 1) and Phi(|B| - 1), relative to the scale. The first row is overwritten with the
        weights.
    """
    floor = np.exp(-exponent)
    half = 0.5 * prior
    total = 0.0
    for e in range(bias.shape[0]):
        leading = half * (potentials[0, e] - potentials[1, e])
        trailing = 0.0
        reach = 1.0 - abs(bias[e])
        if band_factor > 0.0:
            reach -= band_factor * np.sqrt(variation[e])
        if reach > 0.0:  # the other sign has some weight, too
            power = reach * reach * (1.0 / (3.0 * (variation[e] + 1.0))) - exponent
            trailing = half * (np.exp(power) - floor)
        total += leading
        total += trailing
        if bias[e] >= 0:
            potentials[0, e] = leading - trailing
        else:
            potentials[0, e] = trailing - leading
    return total


@compiled(error_model="numpy")
def write_normalised_adaptive_weights(
    bias: Array,
    variation: Array,
    band_factor: float,
    exponent: float,
    potentials: Array,
    weights: Array,
) -> None:
    """Write the weights of both signs, positive less negative, by the sum of all.

    ``weights`` (m,) is written; the other arguments are those of ``signed_adaptive_weights``.
    """
    total = signed_adaptive_weights(bias, variation, band_factor, 1.0, exponent, potentials)
    if total == 0.0:  # nothing is weighed: the weights are 0
        total = 1.0
    for e in range(weights.shape[0]):
        weights[e] = potentials[0, e] / total


@dataclass(eq=False)
class AdaptiveExpertWeights(ExpertWeights):
    """Those of ``AdaptiveWeights``, of m experts."""

    gain: Array  # (m,)
    variation: Array  # (m,)
    shape: tuple[int, ...]  # that of the gains as they were given
    band_factor: float  # z
    both_signs: bool
    exponents: Array  # (2, m), of Phi(R + 1, C + 1) and Phi(R - 1, C + 1)
    largest_exponent: float

    def relative_to(self, exponent: float, prior: float = 1.0) -> tuple[Array, float]:
        potentials = self.exponents - exponent
        np.exp(potentials, out=potentials)
        if self.both_signs:
            total = signed_adaptive_weights(
                self.gain, self.variation, self.band_factor, prior, exponent, potentials
            )
            return potentials[0].reshape(self.shape), total
        weights = prior * (0.5 * (potentials[0] - potentials[1]))
        return weights.reshape(self.shape), float(weights.sum())


def _log_sum(log_start: float, growth: float) -> float:
    """Return ln(exp(log_start) + growth), where the exponential may be no double."""
    log_growth = -math.inf
    if growth > 0:
        log_growth = math.log(growth)
    return float(np.logaddexp(log_start, log_growth))


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
        self, gain: Array, variation: Array, moment: Moment, *, both_signs: bool = False
    ) -> ExpertWeights:
        band_factor = moment.band.factor
        exponents = np.empty((2, gain.size))
        gain_in_line = gain.reshape(-1)
        variation_in_line = variation.reshape(-1)
        largest_exponent = adaptive_exponents(
            gain_in_line, variation_in_line, band_factor, both_signs, exponents
        )
        return AdaptiveExpertWeights(
            gain=gain_in_line,
            variation=variation_in_line,
            shape=gain.shape,
            band_factor=band_factor,
            both_signs=both_signs,
            exponents=exponents,
            largest_exponent=largest_exponent,
        )

    def normalised(self, gain: Array, variation: Array, moment: Moment) -> Array:
        band_factor = moment.band.factor
        gain_in_line = gain.reshape(-1)
        variation_in_line = variation.reshape(-1)
        potentials = np.empty((2, gain.size))
        largest_exponent = relative_adaptive_exponents(
            gain_in_line, variation_in_line, band_factor, potentials
        )
        np.exp(potentials, potentials)  # many at once, faster than one by one in a kernel
        weights = np.empty(gain.shape)
        write_normalised_adaptive_weights(
            gain_in_line,
            variation_in_line,
            band_factor,
            largest_exponent,
            potentials,
            weights.reshape(-1),
        )
        return weights

    def potentials(self, gain: Array, variation: Array, band_factor: float) -> Array:
        """Return ln Phi(R, C), R = gain - z sqrt(C); 0 where there is no variation."""
        regret = np.maximum(gain - band_factor * np.sqrt(variation), 0.0)
        smallest = np.finfo(np.float64).tiny
        return np.asarray(regret**2 / (3 * np.maximum(variation, smallest)))

    def budget(self, inputs: BoundInputs) -> float:
        log_growth = self.log_growth(inputs)
        # ln(1 + (N / q) (P - 1)) for a prior q: the potentials of all others are at least 1.
        others = math.log1p((inputs.prior * (1 / inputs.experts) - 1) * math.exp(-log_growth))
        budget = math.log(inputs.experts) - math.log(inputs.prior) + log_growth + others
        return max(budget, 0.0)

    def log_growth(self, inputs: BoundInputs) -> float:
        """Return ln P: how far the mean potential may have grown.

        It is the lesser of two bounds: the greatest that variations and the start of the games
        allow, and what is known of them. Where the bound has a risk, the variations are the
        greatest of a stretch of rounds, which Ville's inequality needs (docs/theory.md, 6).
        """
        reach = 0.0
        if inputs.switch_test is not None:
            reach = inputs.switch_test.reach(inputs.rounds)
        greatest_log_start = max(reach - inputs.band.factor, 0.0) ** 2 / 3
        of_certificates = GROWTH * inputs.certificate_sum
        if inputs.risk < 1:
            log_rounds, risk = self._stretch(inputs)
            log_start = _log_sum(greatest_log_start, inputs.added_potential)
            if inputs.log_start is not None:
                log_start = min(log_start, inputs.log_start)
            return _log_sum(log_start, LOGARITHM * log_rounds) + of_certificates - math.log(risk)
        greatest_growth = inputs.added_potential + LOGARITHM * math.log1p(inputs.rounds)
        log_mean = _log_sum(greatest_log_start, greatest_growth)
        if inputs.log_start is not None and inputs.mean_log_variation is not None:
            known = _log_sum(inputs.log_start, LOGARITHM * inputs.mean_log_variation)
            log_mean = min(log_mean, known)
        return log_mean + of_certificates

    def _stretch(self, inputs: BoundInputs) -> tuple[float, float]:
        """Return ln(1 + T) at the end of the stretch of rounds, and its part of the risk."""
        log_rounds = math.log1p(self.horizon or FIRST_STRETCH)
        risk = inputs.risk * SHARE_OF_STRETCH
        while math.log1p(inputs.rounds) > log_rounds:
            log_rounds *= 2
            risk *= 1 - SHARE_OF_STRETCH
        return log_rounds, risk

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return sqrt(3 C Lambda)."""
        return np.asarray(math.sqrt(3 * budget) * np.sqrt(variation))


@compiled()
def add_second_order_weights(
    gain: Array,
    width_of_band: Array,
    variation: Array,
    sign: float,
    prior: float,
    reference_exponent: float,
    signed_weights: Array,
) -> float:
    """Add weights times their sign to ``signed_weights``; return the sum of the weights alone.

    Parameters
    ----------
    gain, width_of_band, variation : array (m,)
        G, z sqrt(V) and V of every expert; its gain is the sign times G.
    sign, prior : float
        1 or -1, and what each weight is multiplied by.
    reference_exponent : float
        Weights are relative to exp(reference_exponent), so that none overflows.
    signed_weights : array (m,)
        Is added to.
    """
    total = 0.0
    for e in range(gain.shape[0]):
        weight = 0.0
        for j in range(RATES.shape[0]):  # RATES are eta_j and COSTS psi_j of the mixture
            exponent = RATES[j] * (sign * gain[e] - width_of_band[e]) - COSTS[j] * variation[e]
            relative_exponent = exponent - reference_exponent
            if relative_exponent > -NEGLIGIBLE:
                weight += prior * RATES[j] * np.exp(relative_exponent)
        signed_weights[e] += sign * weight
        total += weight
    return total


@dataclass(frozen=True, eq=False)
class SecondOrderExpertWeights(ExpertWeights):
    """Those of ``SecondOrderWeights``."""

    gain: Array
    width_of_band: Array  # z sqrt(V), of the gains' shape
    variation: Array
    both_signs: bool
    largest_exponent: float

    def relative_to(self, exponent: float, prior: float = 1.0) -> tuple[Array, float]:
        weights = np.zeros(self.gain.size)
        total = 0.0
        signs = (1.0, -1.0) if self.both_signs else (1.0,)
        for sign in signs:
            total += add_second_order_weights(
                self.gain.ravel(),
                self.width_of_band.ravel(),
                self.variation.ravel(),
                sign,
                prior,
                exponent,
                weights,
            )
        if not self.both_signs:
            total = float(weights.sum())
        return weights.reshape(self.gain.shape), total


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

    name = "second-order"
    squared = True

    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both_signs: bool = False
    ) -> ExpertWeights:
        band_factor = moment.band.factor  # z
        width_of_band = band_factor * np.sqrt(variation)
        greater_gain = np.abs(gain) if both_signs else gain  # of the two signs, if both are experts
        regret = greater_gain - width_of_band
        # one exponent for each expert and rate, the rates along a further axis
        exponents = RATES * regret[..., None] - COSTS * variation[..., None]
        return SecondOrderExpertWeights(
            gain=gain,
            width_of_band=width_of_band,
            variation=variation,
            both_signs=both_signs,
            largest_exponent=float(exponents.max(initial=MIN_EXPONENT)),
        )

    def potentials(self, gain: Array, variation: Array, band_factor: float) -> Array:
        regret = gain - band_factor * np.sqrt(variation)
        powers = RATES * regret[..., None] - COSTS * variation[..., None]
        return np.asarray(np.logaddexp.reduce(powers, axis=-1) - math.log(len(RATES)))

    def budget(self, inputs: BoundInputs) -> float:
        # What one round with the gain 1, or a certificate of 1, adds to a log-potential at most.
        greatest_rate = float(RATES[0])
        greatest_log_start = 0.0
        if inputs.switch_test is not None:
            greatest_log_start = inputs.switch_test.evidence + greatest_rate
        if inputs.log_start is not None:
            greatest_log_start = min(greatest_log_start, inputs.log_start)
        log_inverse_prior = math.log(inputs.experts) - math.log(inputs.prior)
        return log_inverse_prior + greatest_log_start + greatest_rate * inputs.certificate_sum

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return beta(V)."""
        return greatest_gain(variation, budget)


@compiled()
def signed_exponential_weights(
    bias: Array, width_of_band: Array, rate: float, exponent: float, prior: float, weights: Array
) -> float:
    """Write the weights of both signs, positive less negative, and return the sum of all.

    Parameters
    ----------
    bias, width_of_band : array (m,)
        B and z sqrt(C) of every coordinate of every event; its experts have the gains B and -B.
    rate, prior : float
        That of the exponential, and what each weight is multiplied by.
    exponent : float
        That of the scale: weights are relative to e to its power.
    weights : array (m,)
        Is written.
    """
    total = 0.0
    for e in range(bias.shape[0]):
        positive = prior * np.exp(rate * (bias[e] - width_of_band[e]) - exponent)
        negative = prior * np.exp(rate * (-bias[e] - width_of_band[e]) - exponent)
        total += positive + negative
        weights[e] = positive - negative
    return total


@dataclass(frozen=True, eq=False)
class ExponentialExpertWeights(ExpertWeights):
    """Those of ``ExponentialWeights``."""

    gain: Array
    width_of_band: Array  # z sqrt(C), of the gains' shape
    regret: Array  # R, of the greater sign where there are both
    rate: float
    both_signs: bool
    largest_exponent: float

    def relative_to(self, exponent: float, prior: float = 1.0) -> tuple[Array, float]:
        if not self.both_signs:
            weights = prior * np.exp(self.rate * self.regret - exponent)
            return weights, float(weights.sum())
        signed_weights = np.empty(self.gain.size)
        total = signed_exponential_weights(
            self.gain.ravel(),
            self.width_of_band.ravel(),
            self.rate,
            exponent,
            prior,
            signed_weights,
        )
        return signed_weights.reshape(self.gain.shape), total


class ExponentialWeights(WeightRule):
    r"""Exponential weights as printed in the paper: w = exp(rate * R).

    The rate is sqrt(2 ln N / T) where the horizon T is known, else the anytime rate sqrt(ln N / t).
    As (1 / rate) ln(mean of exp(rate R)) grows by at most the certificate and rate / 2 in a round,
    and never when the rate falls,

        R <= ln N / (last rate) + (sum of rates) / 2 + S,

    which is sqrt(2 T ln N) + S at the horizon, and 2 sqrt(T ln N) + S without one, as 1 / sqrt(t)
    <= 2 sqrt(t) - 2 sqrt(t - 1); after trust it starts at L(T) + 1 at most, in place of 0.
    """

    name = "exponential"

    def weigh(
        self, gain: Array, variation: Array, moment: Moment, *, both_signs: bool = False
    ) -> ExpertWeights:
        entropy = math.log(moment.experts)
        if self.horizon:
            rate = math.sqrt(2 * entropy / self.horizon)
        else:
            rate = math.sqrt(entropy / moment.time)
        band_factor = moment.band.factor  # z
        width_of_band = band_factor * np.sqrt(variation)
        greater_gain = np.abs(gain) if both_signs else gain  # of the two signs, if both are experts
        regret = greater_gain - width_of_band
        return ExponentialExpertWeights(
            gain=gain,
            width_of_band=width_of_band,
            regret=regret,
            rate=rate,
            both_signs=both_signs,
            # the round's weights, of all kinds of experts, are relative to the greatest exponent
            largest_exponent=rate * float(regret.max(initial=MIN_EXPONENT)),
        )

    def potentials(self, gain: Array, variation: Array, band_factor: float) -> Array:
        return np.zeros(np.shape(gain))  # of which the budget takes no notice

    def budget(self, inputs: BoundInputs) -> float:
        greatest_start = 0.0
        if inputs.switch_test is not None:
            greatest_start = float(inputs.switch_test.limit(inputs.rounds)) + 1.0
        entropy = math.log(inputs.experts)
        log_inverse_prior = entropy - math.log(inputs.prior)
        if self.horizon is None:
            growth = (1 + log_inverse_prior / entropy) * math.sqrt(inputs.rounds * entropy)
        else:
            rate = math.sqrt(2 * entropy / self.horizon)
            growth = log_inverse_prior / rate + rate * inputs.rounds / 2
        return growth + inputs.certificate_sum + greatest_start

    def greatest(self, variation: Array | float, budget: float) -> Array:
        return np.full_like(np.asarray(variation, dtype=np.float64), budget)


RULES: dict[str, type[WeightRule]] = {
    rule.name: rule for rule in (AdaptiveWeights, SecondOrderWeights, ExponentialWeights)
}


def rule_of(weights: "str | WeightRule", horizon: int | None = None) -> WeightRule:
    """Make the rule of a name, or return a rule of one's own as it is.

    The exponential rate may use the horizon, a number of rounds. ParameterError if the name is
    unknown, or the horizon is none.
    """
    if horizon is not None:
        check_int("horizon", horizon, least=1)
    if isinstance(weights, WeightRule):
        return weights
    if not isinstance(weights, str) or weights not in RULES:
        names = ", ".join(RULES)
        raise ParameterError(f"weights = {brief(weights)}: choose from {names}, or give a rule")
    return RULES[weights](horizon)
