"""Sums of g(y_j) over the coordinates of an outcome, in index order, for many losses at once.

Sums at many outcomes and sums of many losses at one (compiled) are the same to the last bit.

g is a power or the logarithm above a floor: ``power`` 0 stands for ln y, any other number for
y ** power, and coordinates below ``floor`` count as the floor.
"""

from enum import Enum, auto

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import MIN_SHARED_ROWS, compiled, over_rows


class InnerFunction(Enum):
    """Which function g is, of all losses of a stack; how it is computed depends on it."""

    SAME = auto()  # y itself, beyond the cube too: an affine map of outcomes may come first
    FLOORED = auto()  # max(y, floor)
    LOGARITHM = auto()
    POWER = auto()
    POWER_OR_LOGARITHM = auto()  # one for some losses, the other for others


def inner_function(power: Array, floor: Array) -> InnerFunction:
    """Return which function g is for these powers and floors."""
    if (power == 1).all():
        return InnerFunction.FLOORED if floor.any() else InnerFunction.SAME
    if (power == 0).all():
        return InnerFunction.LOGARITHM
    return InnerFunction.POWER if power.all() else InnerFunction.POWER_OR_LOGARITHM


@compiled(nogil=True)
def weighted_rows(
    offset: Array, weights: Array, values: Array, out: Array, first: int, last: int
) -> None:
    """Write offset + sum_i weights[:, i] values[i] for a span of losses (compiled).

    Parameters
    ----------
    offset : array (K, A)
        Added last.
    weights : array (K, d, A)
        By loss, coordinate and action.
    values : array (K, d) or (1, d)
        Of each loss, or of all.
    out : array (K, A)
        Written.
    first, last : int
        Span of losses.
    """
    for k in range(first, last):
        row_values = values[min(k, values.shape[0] - 1)]
        for a in range(out.shape[1]):
            out[k, a] = -0.0  # changes no sum, not even the sign of a zero
        for i in range(row_values.shape[0]):
            for a in range(out.shape[1]):
                out[k, a] += weights[k, i, a] * row_values[i]
        for a in range(out.shape[1]):
            out[k, a] += offset[k, a]


def offset_sum(offset: Array, weights: Array, values: Array) -> Array:
    """Return offset (..., A) + sum_j weights[..., a, j] values[..., j]: (T, ..., A).

    ``weights`` are (..., A, d) and ``values`` (T, ..., d); without the axis T it is missing in what
    is returned, too. Many losses at one outcome are bound by memory: a kernel reads each weight
    once. Of others adding up whole planes beats a product over the short axis.
    """
    if weights.ndim == 3 and values.ndim == 2:
        out = np.empty(offset.shape)
        over_rows(weighted_rows, len(out), offset, weights.swapaxes(1, 2), values, out)
        return out
    total = weights[..., 0] * values[..., None, 0]
    for j in range(1, weights.shape[-1]):
        total += weights[..., j] * values[..., None, j]
    return np.asarray(offset + total)


def transformed(y: Array, power: Array, floor: Array, function: InnerFunction) -> Array:
    """Return g(y) of outcomes (..., d), against which ``power`` and ``floor`` broadcast.

    ``function`` is their ``inner_function``, which is the same in every round.
    """
    if function is InnerFunction.SAME:
        return y
    floored = np.maximum(y, floor)
    if function is InnerFunction.FLOORED:
        return floored
    if function is InnerFunction.LOGARITHM:
        return np.asarray(np.log(floored))
    with np.errstate(divide="ignore"):
        raised = to_power(floored, power)
        if function is InnerFunction.POWER:
            return raised
        return np.where(power == 0, np.log(floored), raised)


def to_power(base: Array, exponent: Array) -> Array:
    """Return base ** exponent (broadcast); many rows are shared out among the cores."""
    if max((*base.shape, *exponent.shape), default=1) < MIN_SHARED_ROWS:
        return np.asarray(base**exponent)
    shape = np.broadcast_shapes(base.shape, exponent.shape)
    if shape[0] < MIN_SHARED_ROWS:
        return np.asarray(base**exponent)
    out = np.empty(shape)
    bases = np.broadcast_to(base, shape)
    exponents = np.broadcast_to(exponent, shape)
    over_rows(_to_power, shape[0], bases, exponents, out)
    return out


def _to_power(base: Array, exponent: Array, out: Array, first: int, last: int) -> None:
    """Write base ** exponent of a span of rows; all arrays are of one shape.

    It is not compiled: NumPy lets go of the interpreter's lock by itself, and the results are
    NumPy's to the last bit.
    """
    span = slice(first, last)
    np.power(base[span], exponent[span], out=out[span])


def slope(power: Array, floor: Array) -> Array:
    """Return the greatest |g'| on [floor, 1]; infinite for a power in (0, 1) without a floor."""
    factor = np.where(power == 0, 1.0, np.abs(power))
    with np.errstate(divide="ignore"):
        return np.asarray(factor * np.maximum(1.0, floor ** (power - 1.0)))


def check_floor(power: Array, floor: Array) -> None:
    """Raise ValueError where ln y or a negative power would be taken at 0."""
    if not ((floor >= 0) & (floor < 1)).all():
        raise ValueError("floor must lie in [0, 1)")
    if ((power <= 0) & (floor == 0)).any():
        raise ValueError("a logarithm or a negative power needs a floor above 0")
