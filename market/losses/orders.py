r"""What orders come to, for agents who choose among lists of them.

An action is up to m orders, each for ``units`` (below 0 for a sale) of an ``asset`` at a ``limit``.
What they earn is no function of prices alone, since others compete for the same units: a market
says it (``Market.losses``). As a function of the outcome y this form says what a follower of the
forecast believes: an order for q units at limit p of something worth W + C f fills with a chance
that is linear in its limit,

    l(a, y) = - sum over orders of  q (W + C f - p) (1/2 + sign(q) (p - m) / width),

where, without a common value (C = 0), y is the price and m = y; with one, y is the fundamental
f and m = 1/2. Both are linear in y.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses.base import default
from regretless.market.losses.separable import Linear

OWN = dict.fromkeys(("units", "limit", "asset"), "am") | {"keeps": "a", "rests": "a"}
OWN |= {"worth": "ad", "common": "", "most": ""}
MOST_FEE = 1 / 8  # that a market may charge, or pay, for a unit


@dataclass(frozen=True, eq=False, init=False)
class Orders(Linear):
    """A linear loss that knows the orders behind each action.

    Parameters
    ----------
    weights, offset : as in ``Linear``
    units, limit, asset : array (..., A, m)
        Of the orders of each action; 0 units for none.
    keeps, rests : array (..., A)
        1 where an action leaves what its agent has on the book, 0 where it cancels it first; 1
        where what is not traded at once stays on the book, 0 where it is dropped.
    worth : array (..., A, d)
        What a unit of each good is worth to the agent, W; the same for all actions.
    common, most : array (...)
        C, how much of the fundamental adds to it; units that may be traded or open in a round.
    """

    AXES: ClassVar[Mapping[str, str]] = {**Linear.AXES, **OWN}

    units: Array = default(0.0)
    limit: Array = default(0.0)
    asset: Array = default(0.0)
    keeps: Array = default(0.0)
    rests: Array = default(0.0)
    worth: Array = default(0.0)
    common: Array = default(0.0)
    most: Array = default(0.0)

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **fields: Any) -> None:
        for name in OWN:
            object.__setattr__(self, name, np.asarray(fields.pop(name), dtype=np.float64))
        super().__init__(weights, offset, **fields)


def order_losses(
    units: Array, limit: Array, *, width: float, reach: Array, worth: Array, **fields: Array
) -> Orders:
    """Return the losses of N agents in [0, 1], 1/2 being to earn nothing.

    ``units`` and ``limit`` are (N, A, m), ``worth`` (N, d), the other fields as in ``Orders``, with
    ``keeps`` and ``rests`` (A,) of all. The chance moves by 1 as a limit moves by ``width``;
    ``reach`` (N,) is the most that an agent can gain or lose in a round, in units of its utility.
    """
    shared, asset = fields["common"][:, None, None], fields["asset"]
    mine = np.eye(worth.shape[1])[asset.astype(np.intp)]  # (N, A, m, d)
    edge = (mine * worth[:, None, None]).sum(-1) - limit
    near = np.sign(units) / width
    chance = 0.5 + near * (limit - np.where(shared > 0, 0.5, 0.0))
    slope = np.where(shared > 0, -units * shared * chance, units * edge * near)
    weights = (slope[..., None] * mine).sum(2)
    offset = -(units * edge * chance).sum(2)
    ends = np.minimum(weights, 0).sum(2), np.maximum(weights, 0).sum(2)
    believed = np.maximum(*(np.abs(offset + end).max(1) for end in ends))
    scale = np.maximum(np.maximum(reach, believed), np.finfo(float).tiny)
    flags = {key: np.broadcast_to(fields[key], offset.shape) for key in ("keeps", "rests")}
    return Orders(
        weights / (2 * scale)[:, None, None],
        0.5 + offset / (2 * scale)[:, None],
        unit_scale=2 * scale,
        unit_offset=-scale,
        units=units,
        limit=limit,
        worth=np.repeat(worth[:, None], offset.shape[1], axis=1),
        **(fields | flags),
    )
