r"""Weights of second order: a bias as small as the root of its squared increments.

An expert with cumulative gain G and V = sum_t g_t^2 has potential and weight

    Phi(G, V) = sum_j exp(eta_j G - psi_j V) / J,        psi_j = -ln(1 - eta_j) - eta_j,
    w(G, V)   = sum_j eta_j exp(eta_j G - psi_j V) / J,

over a grid of J rates, from 3/4 down by halves: Squint (Koolen and van Erven, 2015, "Second-order
quantile methods for experts and combinatorial games") with a uniform prior over rates, and with
the sharper cost psi of Fan, Grama and Liu (2015) in place of eta^2.

**One step.** For |g| <= 1 and 0 <= eta < 1, exp(eta g - psi g^2) <= 1 + eta g: as the function
f(x) = (x - ln(1 + x)) / x^2 falls in x, eta g - ln(1 + eta g) = (eta g)^2 f(eta g) is at most
(eta g)^2 f(-eta) = psi g^2. Hence Phi(G + g, V + g^2) <= Phi(G, V) + g w(G, V).

**All rounds.** Sum over experts. The game keeps sum w g <= certificate x sum w, and w <= eta_1 Phi,
so that the potentials' sum stays below N exp(eta_1 S), for each expert and at every time. With

    Lambda = ln N + eta_1 S

therefore Phi(G, V) <= e^Lambda: G <= beta(V), the greatest G that this allows. As each summand is
at most J e^Lambda, beta(V) <= min_j (Lambda + ln J + psi_j V) / eta_j, about sqrt(2 V (Lambda + ln
J)), at most 1.06 times as much within the grid, and (Lambda + ln J) / eta_1 where V is small.
``beta`` is concave, as {Phi <= e^Lambda} is convex, and V <= n_T(E) because |g_t| <= E[E].
"""

import numpy as np

from regretless.forecaster.events.mixtures import ExponentialMixture
from regretless.forecaster.events.weights import Awake, WithoutModels
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

RATES = np.array([0.75 * 0.5**j for j in range(10)])  # enough for V up to ten million
COSTS = -np.log1p(-RATES) - RATES
STEEPEST = float(RATES[0])
NEGLIGIBLE = 40.0  # e^-40 of the greatest summand adds nothing to a sum of doubles
GAINS = ExponentialMixture(
    RATES, COSTS, np.full(len(RATES), 1 / len(RATES))
)  # GAINS.greatest is beta


@compiled
def _top(gain: Array, variation: Array, sign: float) -> float:
    """Return the greatest exponent of experts (m,)."""
    top = -np.inf
    for e in range(gain.shape[0]):
        for j in range(RATES.shape[0]):
            top = max(top, RATES[j] * sign * gain[e] - COSTS[j] * variation[e])
    return top


@compiled
def _weigh(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    gain: Array, variation: Array, sign: float, share: float, top: float, out: Array
) -> float:
    """Add ``sign`` times the weights of experts, relative to exp(top), to ``out``; their sum."""
    total = 0.0
    for e in range(gain.shape[0]):
        weight = 0.0
        for j in range(RATES.shape[0]):
            power = RATES[j] * sign * gain[e] - COSTS[j] * variation[e] - top
            if power > -NEGLIGIBLE:
                weight += share * RATES[j] * np.exp(power)
        out[e] += sign * weight
        total += weight
    return total


class SecondOrderWeights(WithoutModels):
    """Weights whose bounds follow the gains' squares: no horizon, no rate."""

    name, dead_zone, squared = "second-order", 0.0, True
    horizon: int | None = None

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised."""
        held = [(view.bias.ravel(), view.variation.ravel()) for view in awake]
        top = max(_top(*own, sign) for own in held for sign in (1.0, -1.0))
        table, total = np.zeros(shape), 0.0
        for view, (bias, variation) in zip(awake, held, strict=True):
            part = table[view.rows].reshape(-1)  # a view
            for sign in (1.0, -1.0):
                total += _weigh(bias, variation, sign, view.share, top, part)
        return table / total

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events, normalised."""
        weights = np.zeros(len(gain))
        top = _top(gain, variation, 1.0)
        return weights / _weigh(gain, variation, 1.0, 1.0, top, weights)
