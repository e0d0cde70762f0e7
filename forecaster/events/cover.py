r"""Many losses served through few: gamma-covers of linear forms, with the error that they cost.

A loss l with coefficients (r_0, r) is served through a representative with (q_0, q). Over all
predictions and all values of s in the box the two differ by at most the radius

    max_a max( | d_0 + sum_i max(d_i, 0) | , | d_0 + sum_i min(d_i, 0) | ),     d = r(a) - q(a),

exactly. An agent that plays the representative's best response has at most the representative's
regret plus twice the radius. An agent that plays its own best response has no guarantee: the
forecaster is unbiased where the representative acts, not where the agent does.

    snapped     the paper's cover: every coefficient, r_0 among them, to a multiple of gamma
    clustered   members of the population: the farthest from all representatives joins them, until
                none is further than the wish (Gonzalez 1985: at most twice the best radius); each
                step looks in 32 bits for whom it may come nearer, and in 64 bits at those
    nearest     representatives that are given, such as the losses that are protected already

Snapping leaves up to (2 floor(lambda / gamma + 1/2) + 1)^((n + 1) A) losses (the paper counts n A
coefficients of 2 lambda / gamma values), and may raise sum |r_i| by n gamma / 2. It merges few
agents of a diffuse population; clustering and populations made of types merge many.
"""

import math
from dataclasses import dataclass

import numpy as np

from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.weights import AdaptiveWeights
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.compiled import compiled
from regretless.market.numerics.threads import over_rows

F32 = np.float32
PART = 10_000  # losses whose differences are in memory at a time
BLOCK = 512  # losses that are compared together, within the processor's cache
SKETCHED = 2.0**-21  # per coefficient: more than 32 bits and another order of sums leave out


@dataclass(frozen=True, eq=False)
class Cover:
    """Representatives of K losses.

    Parameters
    ----------
    offset, weights : array (R, A), (R, A, n)
        The representatives' coefficients.
    served : int array (K,)
        Which one serves each loss.
    radius : array (K,)
        How far it is from the loss it serves.
    """

    offset: Array
    weights: Array
    served: Indices
    radius: Array


def paper_gamma(size: int, rounds: int) -> float:
    """Return the paper's gamma for n basis functions and T rounds: 1 / (2 n sqrt(T))."""
    return float(1 / (2 * size * np.sqrt(rounds)))


def uniform_regret(  # noqa: PLR0913 - keyword-only from the third
    size: int, actions: int, *, rounds: int, slack: float, reach: float, policies: int = 0
) -> tuple[float, float]:
    """Bound the expected regret per round of all losses at once whose lambda is at most ``reach``.

    For adaptive weights on the paper's cover of them, every agent playing the response
    of its representative: all of them are covered, however many there are.

    Returns
    -------
    tuple of float
        The bound, without basis error, and ln of the cover's number of losses.
    """
    gamma = paper_gamma(size, rounds)
    values = 2 * math.floor(max(reach, 1.0) / gamma + 0.5) + 1
    losses = values ** ((size + 1) * actions)
    experts = 2 * size * losses * actions * (1 + actions * policies)
    bias = BiasBound(AdaptiveWeights(), experts, rounds, slack)
    centred = np.array([reach + size * gamma / 2])
    expected = bias.regret_by(2 * centred, centred, actions=actions, policies=policies)
    return float(expected[0]) + (size + 1) * gamma, math.log(losses)


def distance(offset: Array, weights: Array) -> Array:
    """Greatest difference over the box of coefficients (..., A), (..., A, n): shape (...)."""
    high = offset + np.maximum(weights, 0).sum(-1)
    low = offset + np.minimum(weights, 0).sum(-1)
    return np.asarray(np.maximum(np.abs(high), np.abs(low)).max(-1))


def snapped(offset: Array, weights: Array, *, gamma: float) -> Cover:
    """Round every coefficient to the nearest multiple of gamma.

    Parameters
    ----------
    offset, weights : array (K, A), (K, A, n)
    gamma : float
        Positive.
    """
    if gamma <= 0:
        raise ValueError("gamma must be positive")
    table = np.concatenate([offset[..., None], weights], axis=-1)
    steps = np.round(table / gamma).reshape(len(table), -1)
    distinct, served = np.unique(steps, axis=0, return_inverse=True)
    kept = (gamma * distinct).reshape(-1, *table.shape[1:])
    apart = table - kept[served.ravel()]
    return Cover(
        np.ascontiguousarray(kept[..., 0]),
        np.ascontiguousarray(kept[..., 1:]),
        served.ravel(),
        distance(apart[..., 0], apart[..., 1:]),
    )


def clustered(
    offset: Array, weights: Array, *, radius: float = 0.0, count: int | None = None
) -> Cover:
    """Choose representatives among the losses, the farthest next.

    Parameters
    ----------
    offset, weights : array (K, A), (K, A, n)
    radius : float
        Stop when every loss is this close to a representative.
    count : int, optional
        Stop when there are this many, whatever the radius.
    """
    if radius < 0 or (count is not None and count < 1):
        raise ValueError("radius must be at least 0 and count at least 1")
    chosen: list[int] = []
    here = 0
    near, maybe = np.full(len(offset), np.inf), np.ones(len(offset), dtype=np.bool_)
    served = np.zeros(len(offset), dtype=np.intp)
    sketch = np.empty((1 + weights.shape[2], *offset.T.shape), F32)
    sketch[0], sketch[1:] = offset.T, weights.T
    slack = SKETCHED * len(sketch) * float(np.abs(sketch).sum(0).max())
    while near[here] > radius and len(chosen) < (count or len(offset)):
        over_rows(_maybe_nearer, len(offset), sketch, here, near + slack, maybe)
        found = np.flatnonzero(maybe)
        for rows in np.array_split(found, 1 + len(found) // PART):
            apart = distance(offset[rows] - offset[here], weights[rows] - weights[here])
            closer = apart < near[rows]
            near[rows[closer]], served[rows[closer]] = apart[closer], len(chosen)
        chosen.append(here)
        here = int(near.argmax())
    return Cover(offset[chosen], weights[chosen], served, near)


@compiled(nogil=True)
def _maybe_nearer(  # noqa: PLR0913 - a span of rows
    sketch: Array, here: int, near: Array, maybe: Mask, first: int, last: int
) -> None:
    """Say which losses one of them may be nearer to than ``near`` (K,), by 32 bits.

    With twice the distance as the greatest |2 d_0 + sum_i d_i| + sum_i |d_i| over the actions, a
    block of losses at a time, side by side as the processor adds them.
    """
    middle, width, apart = np.zeros(BLOCK, F32), np.zeros(BLOCK, F32), np.zeros(BLOCK, F32)
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        apart[:] = 0
        for a in range(sketch.shape[1]):
            column, own = sketch[0, a, start:stop], sketch[0, a, here]
            for j in range(stop - start):
                middle[j] = 2 * (column[j] - own)
                width[j] = 0
            for i in range(1, sketch.shape[0]):
                column, own = sketch[i, a, start:stop], sketch[i, a, here]
                for j in range(stop - start):
                    step = column[j] - own
                    middle[j] += step
                    width[j] += abs(step)
            for j in range(stop - start):
                apart[j] = max(apart[j], abs(middle[j]) + width[j])
        found, most = maybe[start:stop], near[start:stop]
        for j in range(stop - start):
            found[j] = apart[j] < 2 * most[j]


def nearest(offset: Array, weights: Array, *, kept_offset: Array, kept_weights: Array) -> Cover:
    """Serve every loss through the nearest of given ones, the first where several are as near.

    Parameters
    ----------
    offset, weights : array (K, A), (K, A, n)
    kept_offset, kept_weights : array (R, A), (R, A, n)
        At least one.
    """
    served, radius = _nearest(offset, weights, kept_offset, kept_weights)
    return Cover(kept_offset, kept_weights, np.asarray(served), np.asarray(radius))


@compiled
def _nearest(
    offset: Array, weights: Array, kept_offset: Array, kept_weights: Array
) -> tuple[Indices, Array]:
    served = np.zeros(offset.shape[0], dtype=np.intp)
    radius = np.full(offset.shape[0], np.inf)
    for k in range(offset.shape[0]):
        for r in range(kept_offset.shape[0]):
            apart = 0.0
            for a in range(offset.shape[1]):
                high = offset[k, a] - kept_offset[r, a]
                low = high
                for i in range(weights.shape[2]):
                    step = weights[k, a, i] - kept_weights[r, a, i]
                    if step > 0.0:
                        high += step
                    else:
                        low += step
                apart = max(apart, abs(high), abs(low))
                if apart >= radius[k]:
                    break
            if apart < radius[k]:
                served[k], radius[k] = r, apart
    return served, radius
