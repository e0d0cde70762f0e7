r"""Outcomes of one's own: a loss averaged over a declared law of noise around the common outcome.

Where every farm has its own rain, agent i meets z_i = clip(y + e_i, 0, 1) with noise e_i of a law
that is known. What it expects to lose is again a loss of y,

    l~(a, y) = sum_m w_m l(a, clip(y + e_m, 0, 1)),

so that forecaster, ledger and theorems need nothing new: regret is over l~, the mean over the
agent's own luck. It is as steep as l at most, since clipping and averaging never stretch. The law
puts on each coordinate that it shakes

    -sqrt(3) sigma, 0, sqrt(3) sigma    with weights 1/6, 2/3, 1/6,

whose first five moments are the normal law's (Gauss and Hermite's three nodes), independently.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import Loss
from regretless.market.losses.lipschitz import LipschitzLoss

NODES = ((-np.sqrt(3.0), 1 / 6), (0.0, 2 / 3), (np.sqrt(3.0), 1 / 6))


@dataclass(frozen=True, eq=False)
class AveragedLoss(LipschitzLoss):
    """A loss averaged over noise around the outcome; ``averaged`` makes it."""

    form: ClassVar[str] = "averaged"


def averaged(loss: Loss, deviation: float, coordinates: Sequence[int]) -> AveragedLoss:
    """Average a loss over noise around the outcome.

    Parameters
    ----------
    loss : Loss
        One, or a stack.
    deviation : float
        sigma, at least 0.
    coordinates : sequence of int
        Which of the outcome's are shaken, 3^c nodes in all.
    """
    low, high = loss.range()
    return AveragedLoss(
        partial(_mean, loss, *_law(deviation, coordinates, loss.outcomes)),
        loss.lipschitz(),
        loss.offset.shape,
        loss.outcomes,
        low=low,
        high=high,
        unit_scale=loss.unit_scale,
        unit_offset=loss.unit_offset,
    )


def _law(deviation: float, coordinates: Sequence[int], size: int) -> tuple[Array, Array]:
    """Return the nodes (m, d) and their weights (m,)."""
    nodes = list(product(NODES, repeat=len(coordinates)))
    shifts = np.zeros((len(nodes), size))
    shifts[:, list(coordinates)] = [[deviation * at for at, _ in node] for node in nodes]
    return shifts, np.array([np.prod([weight for _, weight in node]) for node in nodes])


def _mean(loss: Loss, shifts: Array, weights: Array, y: Array) -> Array:
    """Return the mean losses (T, ..., A) at outcomes (T, d)."""
    total = np.zeros((len(y), *loss.offset.shape))
    for shift, weight in zip(shifts, weights, strict=True):
        total += weight * loss.losses(np.clip(y + shift, 0.0, 1.0))
    return total
