"""The one-coordinate functions g inside a sum: powers and the logarithm, above a floor.

``power`` 0 stands for ln y, any other number for y ** power. Coordinates below ``floor`` count as
the floor: the least level at which ln y or a negative power is taken.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.numerics.threads import FEWEST, over_rows


def transformed(y: Array, power: Array, floor: Array) -> Array:
    """Compute g(y) coordinate by coordinate.

    Parameters
    ----------
    y : array (..., d)
        Outcomes in [0, 1].
    power, floor : arrays that broadcast against y
        0 is the logarithm.
    """
    if (power == 1).all() and not floor.any():
        return y  # beyond the cube too: an affine map of outcomes may come first
    level = np.maximum(y, floor)
    if (power == 1).all():
        return level
    if (power == 0).all():
        return np.asarray(np.log(level))
    with np.errstate(divide="ignore"):
        raised = to_power(level, power)
        return raised if power.all() else np.where(power == 0, np.log(level), raised)


def to_power(base: Array, exponent: Array) -> Array:
    """Compute base ** exponent, many rows shared out among the cores.

    Parameters
    ----------
    base, exponent : arrays that broadcast
    """
    shape = np.broadcast_shapes(base.shape, exponent.shape)
    if not shape or shape[0] < FEWEST:
        return np.asarray(base**exponent)
    out = np.empty(shape)
    over_rows(
        _to_power, shape[0], *(np.broadcast_to(part, shape) for part in (base, exponent)), out
    )
    return out


def _to_power(base: Array, exponent: Array, out: Array, first: int, last: int) -> None:
    rows = slice(first, last)  # NumPy lets go of the interpreter's lock in here
    np.power(base[rows], exponent[rows], out=out[rows])


def slope(power: Array, floor: Array) -> Array:
    """Compute the greatest |g'| on [floor, 1]; infinite for a power in (0, 1) without a floor."""
    size = np.where(power == 0, 1.0, np.abs(power))
    with np.errstate(divide="ignore"):
        return np.asarray(size * np.maximum(1.0, floor ** (power - 1.0)))


def check_floor(power: Array, floor: Array) -> None:
    """Raise ValueError where ln y or a negative power would be taken at 0."""
    if not ((floor >= 0) & (floor < 1)).all():
        raise ValueError("floor must lie in [0, 1)")
    if ((power <= 0) & (floor == 0)).any():
        raise ValueError("a logarithm or a negative power needs a floor above 0")
