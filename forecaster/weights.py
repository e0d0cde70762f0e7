r"""How cumulative biases turn into the weights of the per-round game.

Each event E, coordinate i and sign sigma is an expert with gain g_t = sigma * E_mixture[E (p_i -
s_i)]; its cumulative gain is sigma * B. A rule gives every awake expert a weight w(sigma, B, C),
where C = sum_t |g_t|. The game needs the signed difference H = w(+) - w(-) per (event, i), and
the total over all awake experts, by which it is normalised (which never changes its solution).

Adaptive (default): AdaNormalHedge (Luo and Schapire, 2015), with potential and weight

    Phi(R, C) = exp( max(R, 0)^2 / (3 C) ),   w = [ Phi(R + 1, C + 1) - Phi(R - 1, C + 1) ] / 2,

no horizon and no rate. The gain itself plays the part of the regret: the value of the min-max
game, at most zero in theory, takes the place of the learner's loss. Since |g_t| <= E[E], C is at
most the event's occupancy n_T(E), which gives the theorem's sqrt(n_T(E) ln(.)).

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
    """Turns awake accumulators into the table of the per-round game."""

    name: str

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised so that all awake weights sum to 1."""
        ...


@numba.njit(cache=True)
def _adaptive_top(bias: Array, variation: Array) -> float:
    top = 0.0
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            reach = abs(bias[r, i]) + 1.0
            top = max(top, reach * reach / (3.0 * (variation[r, i] + 1.0)))
    return top


@numba.njit(cache=True)
def _adaptive_add(bias: Array, variation: Array, top: float, table: Array) -> float:
    """Add the signed weights to ``table``, relative to exp(top); return the sum of all."""
    total = 0.0
    floor = np.exp(-top)
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            size = abs(bias[r, i])
            scale = 1.0 / (3.0 * (variation[r, i] + 1.0))
            up = np.exp((size + 1.0) ** 2 * scale - top)
            if size >= 1.0:
                larger, smaller = 0.5 * (up - np.exp((size - 1.0) ** 2 * scale - top)), 0.0
            else:
                larger = 0.5 * (up - floor)
                smaller = 0.5 * (np.exp((1.0 - size) ** 2 * scale - top) - floor)
            total += larger + smaller
            table[r, i] += larger - smaller if bias[r, i] >= 0 else smaller - larger
    return total


class AdaptiveWeights:
    """AdaNormalHedge weights: no horizon, no rate, sqrt(n_T(E)) per event."""

    name = "adaptive"

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised."""
        top = max(_adaptive_top(view.bias, view.variation) for view in awake)
        table = np.zeros(shape)
        total = 0.0
        for view in awake:
            total += _adaptive_add(view.bias, view.variation, top, table[view.rows])
        return table / total


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
        N = 2 n |E|.
    horizon : int or None
        T, for the fixed rate sqrt(2 ln N / T); None for the anytime rate sqrt(ln N / t).
    """

    name = "exponential"

    def __init__(self, experts: int, horizon: int | None = None) -> None:
        self.experts, self.horizon = experts, horizon

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised; ``time`` counts rounds from 1."""
        log_experts = np.log(self.experts)
        rate = np.sqrt(2 * log_experts / self.horizon if self.horizon else log_experts / time)
        top = float(rate * max(np.abs(view.bias).max(initial=0) for view in awake))
        table = np.zeros(shape)
        total = sum(_exponential_add(view.bias, rate, top, table[view.rows]) for view in awake)
        return table / total
