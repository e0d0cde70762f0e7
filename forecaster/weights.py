r"""How cumulative biases turn into the weights of the per-round game.

Each event E, coordinate i and sign sigma is an expert with gain g_t = sigma * E_mixture[E (p_i -
s_i)]; its cumulative gain is sigma * B. A rule gives every awake expert a weight w(sigma, B, C),
where C = sum_t |g_t|. The game needs the signed difference H = w(+) - w(-) per (event, i), and
the total over all awake experts, by which it is normalised (which never changes its solution).
Scalar events have one expert each, with a cumulative gain G in place of sigma * B.

Adaptive (default): AdaNormalHedge (Luo and Schapire, 2015), with potential and weight

    Phi(R, C) = exp( max(R, 0)^2 / (3 C) ),   w = [ Phi(R + 1, C + 1) - Phi(R - 1, C + 1) ] / 2,

no horizon and no rate. The gain itself plays the part of the regret: the value of the min-max
game, at most zero in theory, takes the place of the learner's loss. Since |g_t| <= E[E], C is at
most the event's occupancy n_T(E), which gives the theorem's sqrt(n_T(E) ln(.)).

Dead zone: with R = sigma * B - z sqrt(C) in place of sigma * B a bias that its own noise explains
has no weight at all. As sqrt(C) never falls, every step of the analysis stands and the bias grows
to at most z sqrt(C) more. It is what lets an anchored forecaster leave its base alone.

Exponential, as printed in the paper: w = exp(rate * sigma * B), with rate = sqrt(2 ln N / T) for
N experts where the horizon T is known, else the anytime rate sqrt(ln N / t).

Both are evaluated in the log domain, relative to the greatest exponent, and cannot overflow.
"""

from __future__ import annotations

from typing import Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from forecaster.events import Awake

Array = NDArray[np.float64]


class WeightRule(Protocol):
    """Turns accumulators into the weights of the per-round game."""

    name: str
    dead_zone: float

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised so that all awake weights sum to 1."""
        ...

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events, normalised to sum to 1."""
        ...


@numba.njit(cache=True, inline="always")
def _exponent(regret: float, variation: float) -> float:
    """Exponent of Phi(R + 1, C + 1)."""
    reach = max(regret + 1.0, 0.0)
    return reach * reach / (3.0 * (variation + 1.0))


@numba.njit(cache=True, inline="always")
def _weight(regret: float, variation: float, top: float) -> float:
    """Compute w(R, C), relative to exp(top)."""
    if regret <= -1.0:
        return 0.0
    scale = 1.0 / (3.0 * (variation + 1.0))
    up = np.exp((regret + 1.0) ** 2 * scale - top)
    down = np.exp(max(regret - 1.0, 0.0) ** 2 * scale - top)
    return float(0.5 * (up - down))


@numba.njit(cache=True)
def _adaptive_top(bias: Array, variation: Array, zone: float) -> float:
    top = 0.0
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            regret = abs(bias[r, i]) - zone * np.sqrt(variation[r, i])
            top = max(top, _exponent(regret, variation[r, i]))
    return top


@numba.njit(cache=True)
def _adaptive_add(bias: Array, variation: Array, zone: float, top: float, table: Array) -> float:
    """Add the signed weights to ``table``, relative to exp(top); return the sum of all."""
    total = 0.0
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            c = variation[r, i]
            noise = zone * np.sqrt(c)
            larger = _weight(abs(bias[r, i]) - noise, c, top)
            smaller = _weight(-abs(bias[r, i]) - noise, c, top)
            total += larger + smaller
            table[r, i] += larger - smaller if bias[r, i] >= 0 else smaller - larger
    return total


@numba.njit(cache=True)
def _adaptive_one_sided(gain: Array, variation: Array, zone: float) -> Array:
    out, top = np.empty(gain.shape[0]), 0.0
    for e in range(gain.shape[0]):
        out[e] = gain[e] - zone * np.sqrt(variation[e])
        top = max(top, _exponent(out[e], variation[e]))
    for e in range(gain.shape[0]):
        out[e] = _weight(out[e], variation[e], top)
    return out


class AdaptiveWeights:
    """AdaNormalHedge weights: no horizon, no rate, sqrt(n_T(E)) per event.

    Parameters
    ----------
    dead_zone : float
        z, at least 0.
    """

    name = "adaptive"

    def __init__(self, dead_zone: float = 0.0) -> None:
        if not dead_zone >= 0:
            raise ValueError(f"dead_zone is {dead_zone}; give a number of at least 0")
        self.dead_zone = dead_zone

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised; zero where every bias lies in its dead zone."""
        zone = self.dead_zone
        top = max(_adaptive_top(view.bias, view.variation, zone) for view in awake)
        table = np.zeros(shape)
        total = 0.0
        for view in awake:
            total += _adaptive_add(view.bias, view.variation, zone, top, table[view.rows])
        return table / total if total > 0 else table

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events; zero where all lie in the dead zone."""
        weights = _adaptive_one_sided(gain, variation, self.dead_zone)
        total = weights.sum()
        return weights / total if total > 0 else weights


@numba.njit(cache=True)
def _exponential_add(bias: Array, rate: float, top: float, table: Array) -> float:
    total = 0.0
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            up = np.exp(rate * bias[r, i] - top)
            down = np.exp(-rate * bias[r, i] - top)
            total += up + down
            table[r, i] += up - down
    return total


class ExponentialWeights:
    """Exponential weights as printed.

    Parameters
    ----------
    experts : int
        N: 2 n |E| for coordinates, the number of scalar events otherwise.
    horizon : int or None
        T, for the fixed rate sqrt(2 ln N / T); None for the anytime rate sqrt(ln N / t).
    """

    name = "exponential"
    dead_zone = 0.0

    def __init__(self, experts: int, horizon: int | None = None) -> None:
        self.experts, self.horizon = experts, horizon

    def rate(self, time: int) -> float:
        """Return the rate at a round, counted from 1."""
        log_experts = np.log(self.experts)
        return float(
            np.sqrt(2 * log_experts / self.horizon if self.horizon else log_experts / time)
        )

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised; ``time`` counts rounds from 1."""
        rate = self.rate(time)
        top = float(rate * max(np.abs(view.bias).max(initial=0) for view in awake))
        table = np.zeros(shape)
        total = sum(_exponential_add(view.bias, rate, top, table[view.rows]) for view in awake)
        return table / total

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events, normalised."""
        weights = np.exp(self.rate(time) * (gain - gain.max()))
        return np.asarray(weights / weights.sum())
