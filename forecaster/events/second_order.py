"""Weights of second order: a bias as small as the root of its squared increments."""

import math

import numpy as np

from regretless.forecaster.events.weights import Moment, Stand, Sums, WeightRule, Weights
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.numerics.mixtures import ExponentialMixture

RATES = np.array([0.75 * 0.5**j for j in range(10)])  # enough for V up to ten million
COSTS = -np.log1p(-RATES) - RATES
STEEPEST = float(RATES[0])
NEGLIGIBLE = 40.0  # e^-40 of the greatest summand adds nothing to a sum of doubles
GAINS = ExponentialMixture(
    RATES, COSTS, np.full(len(RATES), 1 / len(RATES))
)  # GAINS.greatest is beta


@compiled()
def _top(gain: Array, noise: Array, variation: Array, sign: float) -> float:
    """Return the greatest exponent of experts (m,)."""
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

    **One step.** For |g| <= 1 and 0 <= eta < 1, exp(eta g - psi g^2) <= 1 + eta g: as the function
    f(x) = (x - ln(1 + x)) / x^2 falls in x, eta g - ln(1 + eta g) = (eta g)^2 f(eta g) is at most
    (eta g)^2 f(-eta) = psi g^2. Hence Phi(R + g, V + g^2) <= Phi(R, V) + g w(R, V).

    **All rounds.** Sum over experts. The game keeps sum w g <= certificate x sum w, and w <= eta_1
    Phi, so that the potentials' sum stays below N e^(eta_1 S) times their mean at the start, P_0.
    With

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
        return (
            math.log(stand.experts)
            - math.log(stand.share)
            + most
            + STEEPEST * stand.certificate_sum
        )

    def greatest(self, variation: Array | float, budget: float) -> Array:
        """Return beta(V)."""
        return GAINS.greatest(variation, budget)


def _held(gain: Array, variation: Array, moment: Moment) -> tuple[Array, Array, Array]:
    """Return gains, what their noise explains, and variations, one number after the other."""
    flat = variation.ravel()
    return gain.ravel(), moment.band.zone * np.sqrt(flat), flat
