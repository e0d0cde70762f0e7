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

from dataclasses import dataclass
from typing import Protocol

import numba
import numpy as np

from regretless.market.core.arrays import Array


@dataclass(frozen=True, eq=False)
class Awake:
    """The accumulators of the events that can happen in this round, for a range of rows.

    Parameters
    ----------
    rows : slice
        Rows of the table that these events belong to.
    bias, variation : array (rows, n)
        B and sum_t |increment of B|, or of its square, as the rule of the weights wants; views,
        written when the round is charged.
    occupancy : array (rows,)
    share : float
        Of these events' experts in the prior, beside 1 for others.
    """

    rows: slice
    bias: Array
    variation: Array
    occupancy: Array
    share: float = 1.0


class WeightRule(Protocol):
    """Turns accumulators into the weights of the per-round game."""

    name: str
    dead_zone: float
    squared: bool  # whether its variation is the sum of squares, or of absolute values

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised so that all awake weights sum to 1."""

    def mixed(
        self, awake: list[Awake], shape: tuple[int, int], *, gain: Array, variation: Array
    ) -> tuple[Array, Array]:
        """Return H of the coordinates and the weights of scalar events beside them."""

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events, normalised to sum to 1."""


@numba.njit(cache=True)
def _exponents(bias: Array, variation: Array, zone: float, powers: Array) -> float:
    """Write the exponents of Phi(R + 1) and Phi(R - 1), R = |B| - z sqrt(C); the greatest."""
    top = 0.0
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            regret = abs(bias[r, i]) - zone * np.sqrt(variation[r, i])
            scale = 1.0 / (3.0 * (variation[r, i] + 1.0))
            if regret > -1.0:
                powers[0, r, i] = (regret + 1.0) ** 2 * scale
                powers[1, r, i] = max(regret - 1.0, 0.0) ** 2 * scale
                top = max(top, powers[0, r, i])
            else:
                powers[:, r, i] = -np.inf  # no weight
    return top


@numba.njit(cache=True)
def _signed(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    bias: Array,
    variation: Array,
    zone: float,
    share: float,
    top: float,
    potentials: Array,
    table: Array,
) -> float:
    """Add the signed weights to ``table``, relative to exp(top); return the sum of all."""
    total, floor = 0.0, np.exp(-top)
    for r in range(bias.shape[0]):
        for i in range(bias.shape[1]):
            weight = 0.5 * share * (potentials[0, r, i] - potentials[1, r, i])
            total += weight
            reach = 1.0 - abs(bias[r, i]) - zone * np.sqrt(variation[r, i])
            if reach > 0.0:  # the other sign has some weight, too
                scale = 1.0 / (3.0 * (variation[r, i] + 1.0))
                other = 0.5 * share * (np.exp(reach * reach * scale - top) - floor)
                total += other
                weight -= other
            table[r, i] += weight if bias[r, i] >= 0 else -weight
    return total


def potentials(gain: Array, variation: Array, zone: float) -> Array:
    """Return Phi(R, C) of adaptive weights, R = gain - z sqrt(C); 1 where there is no variation."""
    regret = np.maximum(gain - zone * np.sqrt(variation), 0.0)
    least = np.finfo(np.float64).tiny
    return np.asarray(np.exp(regret**2 / (3 * np.maximum(variation, least))))


class AdaptiveWeights:
    """AdaNormalHedge weights: no horizon, no rate, sqrt(n_T(E)) per event.

    Parameters
    ----------
    dead_zone : float
        z, at least 0.
    """

    name, squared = "adaptive", False

    def __init__(self, dead_zone: float = 0.0) -> None:
        if not dead_zone >= 0:
            raise ValueError(f"dead_zone is {dead_zone}; give a number of at least 0")
        self.dead_zone = dead_zone

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised; zero where every bias lies in its dead zone."""
        powers, top = self._powers(awake)
        table, total = self._table(awake, shape, powers, top)
        return table / total if total > 0 else table

    def mixed(
        self, awake: list[Awake], shape: tuple[int, int], *, gain: Array, variation: Array
    ) -> tuple[Array, Array]:
        """Return H (rows, n) and the weights of scalar events, which add up to 1 together.

        Parameters
        ----------
        gain, variation : array (events,)
            Of the scalar events.
        """
        powers, top = self._powers(awake)
        scalars = self._one_sided(gain, variation)
        top = max(top, float(scalars.max(initial=0.0)))
        table, total = self._table(awake, shape, powers, top)
        raised = np.exp(scalars - top)
        weights = 0.5 * (raised[0] - raised[1])
        total += weights.sum()
        return (table / total, weights / total) if total > 0 else (table, weights)

    def _powers(self, awake: list[Awake]) -> tuple[Array, float]:
        """Return the exponents of all coordinates, one view after the other, and the greatest."""
        powers, top, first = np.empty(2 * sum(view.bias.size for view in awake)), 0.0, 0
        for view in awake:
            part = powers[first : first + 2 * view.bias.size].reshape(2, *view.bias.shape)
            top = max(top, _exponents(view.bias, view.variation, self.dead_zone, part))
            first += 2 * view.bias.size
        return powers, top

    def _table(
        self, awake: list[Awake], shape: tuple[int, int], powers: Array, top: float
    ) -> tuple[Array, float]:
        """Return the signed weights (rows, n) of all coordinates relative to exp(top), their sum.

        The exponents are raised in place: one call of NumPy's vectorised exp for all events,
        instead of one scalar call for each.
        """
        raised = np.exp(np.subtract(powers, top, out=powers), out=powers)
        table, total, first = np.zeros(shape), 0.0, 0
        for view in awake:
            part = raised[first : first + 2 * view.bias.size].reshape(2, *view.bias.shape)
            rows = table[view.rows]
            known = view.bias, view.variation, self.dead_zone, view.share
            total += _signed(*known, top, part, rows)
            first += 2 * view.bias.size
        return table, total

    def _one_sided(self, gain: Array, variation: Array) -> Array:
        """Return the exponents of Phi(R + 1) and Phi(R - 1) of scalar events (2, events)."""
        regret = gain - self.dead_zone * np.sqrt(variation)
        scale = 1 / (3 * (variation + 1))
        return np.asarray(np.maximum([regret + 1, regret - 1], 0.0) ** 2 * scale)

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events; zero where all lie in the dead zone."""
        powers = self._one_sided(gain, variation)
        raised = np.exp(powers - powers.max())
        weights = raised[0] - raised[1]
        total = weights.sum()
        return np.asarray(weights / total) if total > 0 else weights


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


class WithoutModels:
    """A rule by which no models are weighed beside coordinates."""

    def mixed(
        self, awake: list[Awake], shape: tuple[int, int], *, gain: Array, variation: Array
    ) -> tuple[Array, Array]:
        """Refuse: models are comparators of the adaptive weights alone."""
        raise ValueError('models need weights = "adaptive"')


class ExponentialWeights(WithoutModels):
    """Exponential weights as printed.

    Parameters
    ----------
    experts : int
        N: 2 n |E| for coordinates, the number of scalar events otherwise.
    horizon : int or None
        T, for the fixed rate sqrt(2 ln N / T); None for the anytime rate sqrt(ln N / t).
    """

    name, squared = "exponential", False
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
