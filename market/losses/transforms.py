"""The one-coordinate functions g inside a sum: powers and the logarithm, above a floor.

``power`` 0 stands for ln y, any other number for y ** power. Coordinates below ``floor`` count as
the floor: the least level at which ln y or a negative power is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def transformed(y: Array, power: Array, floor: Array) -> Array:
    """Compute g(y) coordinate by coordinate.

    Parameters
    ----------
    y : array (..., d)
        Outcomes in [0, 1].
    power, floor : arrays that broadcast against y
        0 is the logarithm.

    Returns
    -------
    array
    """
    if (power == 1).all() and not floor.any():
        return y  # beyond the cube too: an affine map of outcomes may come first
    level = np.maximum(y, floor)
    if (power == 1).all():
        return level
    if (power == 0).all():
        return np.asarray(np.log(level))
    with np.errstate(divide="ignore"):
        raised = level**power
        return np.asarray(
            np.where(power == 0, np.log(level), raised) if not power.all() else raised
        )


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
