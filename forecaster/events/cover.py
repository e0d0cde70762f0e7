"""Many losses served through few: gamma-covers of linear forms, with the error that they cost.

A loss l with coefficients (r_0, r) is served through a representative with (q_0, q). Over all
predictions and all values of s in the box the two differ by at most the radius

    max_a max( | d_0 + sum_i max(d_i, 0) | , | d_0 + sum_i min(d_i, 0) | ),     d = r(a) - q(a),

exactly. An agent that plays the representative's best response has at most the representative's
regret plus twice the radius; one that plays its own has no guarantee.

    snapped     the paper's cover: every coefficient, r_0 among them, to a multiple of gamma
    clustered   members of the population: the farthest from all representatives joins them, until
                none is further than the wish (Gonzalez 1985: at most twice the best radius)
    nearest     representatives that are given, such as the losses that are protected already

Snapping leaves up to (2 floor(lambda / gamma + 1/2) + 1)^((n + 1) A) losses, and may raise
sum |r_i| by n gamma / 2.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.weights import AdaptiveWeights, BoundInputs
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled, over_rows


@dataclass(frozen=True, eq=False)
class Cover:
    """Representatives of K losses."""

    offset: Array  # (R, A), of the representatives
    weights: Array  # (R, A, n)
    representative_of: Indices  # (K,) which of them represents each loss
    radius: Array  # (K,) how far it is from it at most, over all actions and outcomes


def paper_gamma(size: int, rounds: int) -> float:
    """Return the paper's gamma for n basis functions and T rounds: 1 / (2 n sqrt(T))."""
    return float(1 / (2 * size * np.sqrt(rounds)))


def uniform_regret(
    size: int, actions: int, *, rounds: int, certificate_sum: float, reach: float, policies: int = 0
) -> tuple[float, float]:
    """Bound the expected regret per round of all losses at once whose lambda is at most ``reach``.

    By adaptive weights on the paper's cover, whose responses all agents play, without basis error;
    and ln of the number of its losses.
    """
    gamma = paper_gamma(size, rounds)
    n_values_of_coefficient = 2 * math.floor(max(reach, 1.0) / gamma + 0.5) + 1
    n_losses = n_values_of_coefficient ** ((size + 1) * actions)
    n_experts = 2 * size * n_losses * actions * (1 + actions * policies)
    bound = CoordinateBound(AdaptiveWeights(), BoundInputs(n_experts, rounds, certificate_sum))
    largest_coefficient = reach + size * gamma / 2
    widest_coefficients = np.zeros((1, actions, 1))  # lambda, and twice as much for D
    widest_coefficients[0, 0, 0] = largest_coefficient
    if actions > 1:
        widest_coefficients[0, 1, 0] = -largest_coefficient
    expected = bound.a_priori(widest_coefficients, policies=policies)
    return float(expected[0]) + (size + 1) * gamma, math.log(n_losses)


def distance(offset: Array, weights: Array) -> Array:
    """Greatest difference over the box of coefficients (..., A), (..., A, n): shape (...)."""
    high = offset + np.maximum(weights, 0).sum(-1)
    low = offset + np.minimum(weights, 0).sum(-1)
    return np.asarray(np.maximum(np.abs(high), np.abs(low)).max(-1))


def snapped(offset: Array, weights: Array, *, gamma: float) -> Cover:
    """Round every coefficient (K, A), (K, A, n) to the nearest multiple of gamma, above 0."""
    if gamma <= 0:
        raise ValueError("gamma must be positive")
    coefficients = np.concatenate([offset[..., None], weights], axis=-1)  # (K, A, 1 + n)
    multiples = np.round(coefficients / gamma).reshape(len(coefficients), -1)
    distinct, representative_of = np.unique(multiples, axis=0, return_inverse=True)
    representative_of = representative_of.ravel()
    representatives = (gamma * distinct).reshape(-1, *coefficients.shape[1:])
    differences = coefficients - representatives[representative_of]
    return Cover(
        offset=np.ascontiguousarray(representatives[..., 0]),
        weights=np.ascontiguousarray(representatives[..., 1:]),
        representative_of=representative_of,
        radius=distance(differences[..., 0], differences[..., 1:]),
    )


def clustered(
    offset: Array, weights: Array, *, radius: float = 0.0, count: int | None = None
) -> Cover:
    """Choose representatives among losses (K, A), (K, A, n), the farthest next.

    It stops when every loss is within ``radius`` of one of them, or when there are ``count``.
    """
    if radius < 0 or (count is not None and count < 1):
        raise ValueError("radius must be at least 0 and count at least 1")
    representatives = list[int]()
    farthest = 0
    distance = np.full(len(offset), np.inf)
    representative_of = np.zeros(len(offset), dtype=np.intp)
    while distance[farthest] > radius and len(representatives) < (count or len(offset)):
        newest = Representatives(
            offset[[farthest]], weights[[farthest]], np.array([len(representatives)])
        )
        over_rows(
            _assign_to_nearer, len(offset), (offset, weights), newest, distance, representative_of
        )
        representatives.append(farthest)
        farthest = int(distance.argmax())
    return Cover(offset[representatives], weights[representatives], representative_of, distance)


def nearest(offset: Array, weights: Array, *, kept_offset: Array, kept_weights: Array) -> Cover:
    """Serve losses (K, A), (K, A, n) through the nearest of R given ones, the first if alike."""
    distance = np.full(len(offset), np.inf)
    representative_of = np.zeros(len(offset), dtype=np.intp)
    given = Representatives(kept_offset, kept_weights, np.arange(len(kept_offset)))
    over_rows(_assign_to_nearer, len(offset), (offset, weights), given, distance, representative_of)
    return Cover(kept_offset, kept_weights, representative_of, distance)


class Representatives(NamedTuple):
    """Losses that may serve others."""

    offset: Array  # (R, A)
    weights: Array  # (R, A, n)
    numbers: Indices  # (R,) by which they are known


@compiled(nogil=True)
def _assign_to_nearer(
    losses: tuple[Array, Array], representatives: Representatives, distance: Array,
    representative_of: Indices, first: int, last: int,
) -> None:  # fmt: skip
    """Let a span of losses be served by representatives where these are nearer (compiled).

    The distance of two losses is max_a max_s |c_a + <r_a, s>| over s in the unit cube, with c and r
    the differences of their offsets and weights.

    Parameters
    ----------
    losses : tuple of array (K, A) and array (K, A, n)
        Offsets and weights.
    representatives : Representatives
        R losses.
    distance : array (K,)
        How far each loss is from what serves it, over all actions and outcomes; lowered in place.
    representative_of : int array (K,)
        The number of what serves it; written where the distance is lowered.
    first, last : int
        Span of losses.
    """
    offset, weights = losses
    for k in range(first, last):
        for r in range(representatives.offset.shape[0]):
            # Per action the difference is affine in s(y), so over the box of all s(y) it goes from
            # the offsets' difference and all that weights can make it fall to that and all rises.
            greatest_difference = 0.0  # over actions and outcomes
            for a in range(offset.shape[1]):
                offset_difference = offset[k, a] - representatives.offset[r, a]
                rise = 0.0
                fall = 0.0
                for i in range(weights.shape[2]):
                    weight_difference = weights[k, a, i] - representatives.weights[r, a, i]
                    rise += max(weight_difference, 0.0)
                    fall += min(weight_difference, 0.0)
                greatest_difference = max(
                    greatest_difference,
                    abs(offset_difference + rise),
                    abs(offset_difference + fall),
                )
                if greatest_difference >= distance[k]:
                    break
            if greatest_difference < distance[k]:
                distance[k] = greatest_difference
                representative_of[k] = representatives.numbers[r]
