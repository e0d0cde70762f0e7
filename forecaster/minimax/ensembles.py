r"""Predictions as ensembles: at most n + 1 weighted outcomes whose mean of s(y) is the prediction.

Caratheodory: a mean of many points of R^n is a mean of n + 1 of them. Weights w with A w = b, one
column (s(y_e), 1) per outcome, move along the null space of A until one of them is 0; the null
space is then turned so that all but one of its vectors leave that outcome alone, and so on.

The ensemble nearest to a point that may lie outside of conv s(Y) is found as by Wolfe (1976): least
squares over the outcomes so far, then the best outcome in the direction of what is left over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses.basis import Support
from regretless.market.records import Ensemble

LIGHTEST = 1e-12  # outcomes with less weight are dropped
CANDIDATES = 128
CLOSE = 1e-9  # how much nearer an outcome must bring an ensemble
STEPS, MOST = 200, 10_000


@dataclass(frozen=True, eq=False)
class WeightedOutcomes(Ensemble):
    """An ensemble with the images s(y) (e, n) of its outcomes."""

    images: Array

    @property
    def point(self) -> Array:
        """The prediction (n,), the mean of s over the ensemble."""
        return np.clip(self.weights @ self.images, 0.0, 1.0)

    @classmethod
    def of(cls, outcomes: Array, images: Array, weights: Array) -> Self:
        """Take the outcomes with weight, and of them at most n + 1; read only."""
        kept = np.flatnonzero(weights > LIGHTEST)
        light = fewest(images[kept], weights[kept])
        kept, light = kept[light > 0], light[light > 0]
        parts = outcomes[kept], light / light.sum(), images[kept]
        for array in parts:
            array.flags.writeable = False
        return cls(*parts)


def fewest(images: Array, weights: Array) -> Array:
    """Find weights (e,) with the same mean of ``images`` (e, n), at most n + 1 of them positive."""
    if len(images) <= images.shape[1] + 1:
        return weights
    table = np.column_stack([images, np.ones(len(images))])
    free, left = np.linalg.qr(table, mode="complete")[0][:, table.shape[1] :], weights.copy()
    while free.shape[1]:
        along = free[:, 0] if free[:, 0].max() >= -free[:, 0].min() else -free[:, 0]
        falling = along > 0
        ratio = np.where(falling, left / np.where(falling, along, 1.0), np.inf)
        gone = int(ratio.argmin())
        left = np.maximum(left - ratio[gone] * along, 0.0)
        left[gone] = 0.0
        free = _without(free, gone)
    return left


def _without(free: Array, gone: int) -> Array:
    """Turn an orthonormal basis (e, m) so that one vector alone moves ``gone``; drop that one."""
    mirror = free[gone].copy()
    mirror[0] += np.copysign(np.linalg.norm(mirror), mirror[0])
    square = float(mirror @ mirror)
    turned = free - np.outer(free @ mirror, 2 * mirror / square) if square > 0 else free
    rest = np.ascontiguousarray(turned[:, 1:])
    rest[gone] = 0.0
    return rest


def candidates(support: Support) -> tuple[Array, Array]:
    """Outcomes (K, d) and images (K, n) that are best in some direction, in fixed order."""
    rng = stream(0, "supports", "candidates")
    found = [support.best(h) for h in rng.standard_normal((CANDIDATES, support.size))]
    images = np.array([vertex.image for vertex in found])
    first = np.sort(np.unique(images, axis=0, return_index=True)[1])
    return np.array([found[i].outcome for i in first]), images[first]


def mean_of(parts: Sequence[WeightedOutcomes], mass: Array) -> WeightedOutcomes:
    """Mix them into one."""
    weights = np.concatenate([m * part.weights for m, part in zip(mass, parts, strict=True)])
    outcomes = np.concatenate([part.outcomes for part in parts])
    return WeightedOutcomes.of(outcomes, np.concatenate([part.images for part in parts]), weights)


def nearest_outcomes(target: Array, support: Support, start: WeightedOutcomes) -> WeightedOutcomes:
    """Find the ensemble whose mean of s is nearest to ``target`` (n,), from another ensemble on."""
    outcomes, images = start.outcomes, start.images
    aim = np.append(np.zeros(len(target)), 1.0)
    for _ in range(STEPS):
        table = np.vstack([(images - target).T, np.ones(len(images))])
        weights = scipy.optimize.nnls(table, aim, maxiter=MOST)[0]
        weights /= weights.sum()
        rest = target - weights @ images
        vertex = support.best(rest)
        if rest @ (vertex.image - weights @ images) <= CLOSE:
            break
        kept = weights > 0
        outcomes = np.vstack([outcomes[kept], vertex.outcome])
        images = np.vstack([images[kept], vertex.image])
    else:
        weights = np.append(weights[weights > 0], 0.0)
    return WeightedOutcomes.of(outcomes, images, weights)
