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
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np

from regretless.forecaster.events.kept import HIGHEST, Kept, add_scaled
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

LANES = 64  # numbers looked at side by side


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
    kept : Kept, optional
        Their weights, where those that do not change are kept.
    """

    rows: slice
    bias: Array
    variation: Array
    occupancy: Array
    share: float = 1.0
    kept: Kept | None = None

    @property
    def flat(self) -> tuple[Array, Array]:
        """Bias and variation (rows x n,), one number after the other: views."""
        return self.bias.reshape(-1), self.variation.reshape(-1)


class WeightRule(Protocol):
    """Turns accumulators into the weights of the per-round game."""

    name: str
    dead_zone: float
    squared: bool  # whether its variation is the sum of squares, or of absolute values
    horizon: int | None  # that sets its rate; None without one

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised so that all awake weights sum to 1."""

    def mixed(
        self, awake: list[Awake], shape: tuple[int, int], *, gain: Array, variation: Array
    ) -> tuple[Array, Array]:
        """Return H of the coordinates and the weights of scalar events beside them."""

    def one_sided(self, gain: Array, variation: Array, time: int) -> Array:
        """Return the weights (events,) of scalar events, normalised to sum to 1."""


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


@compiled
def _signed(bias: Array, halves: Array, table: Array) -> float:
    """Add the signed weights of events (m,) to ``table``; return the sum of all."""
    total = 0.0
    for e in range(bias.shape[0]):
        total += halves[0, e]
        total += halves[1, e]
        weight = halves[0, e] - halves[1, e]
        table[e] += weight if bias[e] >= 0 else -weight
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
    horizon: int | None = None

    def __init__(self, dead_zone: float = 0.0) -> None:
        if not dead_zone >= 0:
            raise ValueError(f"dead_zone is {dead_zone}; give a number of at least 0")
        self.dead_zone = dead_zone

    def table(self, awake: list[Awake], shape: tuple[int, int], time: int) -> Array:
        """Return H (rows, n), normalised; zero where every bias lies in its dead zone."""
        kept = self._kept_table(awake, shape)
        if kept is not None:
            return kept
        table, total = self._table(awake, shape, self._top(awake))
        return np.divide(table, total, out=table) if total > 0 else table

    def mixed(
        self, awake: list[Awake], shape: tuple[int, int], *, gain: Array, variation: Array
    ) -> tuple[Array, Array]:
        """Return H (rows, n) and the weights of scalar events, which add up to 1 together.

        Parameters
        ----------
        gain, variation : array (events,)
            Of the scalar events.
        """
        scalars = self._one_sided(gain, variation)
        top = max(self._top(awake), float(scalars.max(initial=0.0)))
        table, total = self._table(awake, shape, top)
        raised = np.exp(scalars - top)
        weights = 0.5 * (raised[0] - raised[1])
        total += weights.sum()
        return (table / total, weights / total) if total > 0 else (table, weights)

    def _top(self, awake: list[Awake]) -> float:
        """Return the greatest exponent of all coordinates."""
        return max(_greatest(*view.flat, self.dead_zone) for view in awake)

    def _table(self, awake: list[Awake], shape: tuple[int, int], top: float) -> tuple[Array, float]:
        """Return the signed weights (rows, n) of all coordinates relative to exp(top), their sum.

        Potentials are raised in one call of NumPy's vectorised exp for all events.
        """
        starts = [0, *accumulate(view.bias.size for view in awake)]
        halves, table, total = np.empty((2, starts[-1])), np.zeros(shape), 0.0
        spans = [slice(first, last) for first, last in pairwise(starts)]
        for view, span in zip(awake, spans, strict=True):
            _exponents(*view.flat, self.dead_zone, top, halves[:, span])
        np.exp(halves, out=halves)
        for view, span in zip(awake, spans, strict=True):
            _halves(*view.flat, self.dead_zone, view.share, top, halves[:, span])
            rows = table[view.rows].reshape(-1)  # a view
            total += _signed(view.flat[0], halves[:, span], rows)
        return table, total

    def _kept_table(self, awake: list[Awake], shape: tuple[int, int]) -> Array | None:
        """Return H from the weights that are kept; None where they are none, or too great."""
        if not all(self._refreshed(view) for view in awake):
            return None
        kept = [(view, view.kept) for view in awake if view.kept is not None]
        total = sum(view.share * own.sums.sum() for view, own in kept)
        table: Array = np.empty(shape)
        table[:] = 0.0
        for view, own in kept:
            add_scaled(table[view.rows], view.share / total if total > 0 else 0.0, own.signed)
        return table

    def _refreshed(self, view: Awake) -> bool:
        """Weigh the events of a view anew whose biases have changed; False if that is too much."""
        if view.kept is None:
            return False
        lines = view.kept.stale_lines(self.dead_zone)
        bias, variation = view.bias[lines], view.variation[lines]
        known = bias.reshape(-1), variation.reshape(-1), self.dead_zone
        halves = np.empty((2, bias.size))
        _exponents(*known, 0.0, halves)
        if halves.max(initial=0.0) > HIGHEST:
            return False
        _halves(*known, 1.0, 0.0, np.exp(halves, out=halves))
        view.kept.keep(lines, bias, halves.reshape(2, *bias.shape))
        return True

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


@compiled
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
