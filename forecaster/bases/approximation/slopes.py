r"""Ranges of the partial derivatives of a loss over boxes of outcomes, for second-order bounds.

    separable power        w_j rho |x|^(rho - 1) sign x                     with x = y_j - c_j
    power of a sum         A beta S^(beta - 1) w_j g'(y_j)
    exponential of a sum   A exp(S) w_j g'(y_j)
    minimum of ratios      A / a_j where input j is scarcest, 0 elsewhere
    convex in one y_j      slope plus the kinks to the left
    Lipschitz              anything between -L and L

Every factor is monotone between its turning points, so its range lies between its ends. At kinks
the range holds the derivatives on both sides, which is what the mean value theorem needs.
"""

import functools

import numpy as np

from regretless.market import losses
from regretless.market.core.arrays import Array
from regretless.market.losses.of_sum import OfSum
from regretless.market.losses.transforms import transformed

Range = tuple[Array, Array]

STEEPEST = 1e150  # stands for infinity, and can be multiplied and added up


def loss_slopes(loss: losses.Loss, low: Array, high: Array) -> Range:
    """Bound the partial derivatives of a loss over boxes.

    Parameters
    ----------
    loss : Loss
        One loss or a stack.
    low, high : array (T, d)
        Opposite corners of each box.

    Returns
    -------
    arrays (T, ..., A, d), (T, ..., A, d)
        Least and greatest value of every derivative; ``STEEPEST`` where there is no bound.
    """
    axes = *(1,) * len(loss.offset.shape), loss.outcomes
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        least, most = _slopes(loss, low.reshape(-1, *axes), high.reshape(-1, *axes))
    shape = len(low), *loss.offset.shape, loss.outcomes
    least, most = np.broadcast_to(least, shape), np.broadcast_to(most, shape)
    return np.maximum(least, -STEEPEST), np.minimum(most, STEEPEST)


@functools.singledispatch
def _slopes(loss: losses.Loss, low: Array, high: Array) -> Range:
    """Claim nothing about a form that is not known."""
    bound = np.full(_shape(loss, low, high), STEEPEST)
    return -bound, bound


@_slopes.register
def _(loss: losses.SeparablePower, low: Array, high: Array) -> Range:
    left, right = low - loss.centre, high - loss.centre
    rho = loss.exponent[..., None, None]
    first = rho * np.abs(left) ** (rho - 1) * np.where(left >= 0, 1.0, -1.0)
    last = rho * np.abs(right) ** (rho - 1) * np.where(right > 0, 1.0, -1.0)
    steep = (rho < 1) & (left <= 0) & (right >= 0)
    least = np.where(steep, -STEEPEST, np.minimum(first, last))
    most = np.where(steep, STEEPEST, np.maximum(first, last))
    return _product((loss.weights, loss.weights), (least, most))


@_slopes.register
def _(loss: losses.PowerOfSum, low: Array, high: Array) -> Range:
    beta = loss.exponent[..., None]
    least, most = _sums(loss, low, high)
    ends = beta * least ** (beta - 1), beta * most ** (beta - 1)
    across = (least < 0) & (most > 0)
    outer = np.where(across, np.minimum(0, np.minimum(*ends)), np.minimum(*ends))
    upper = np.where(across, np.maximum(0, np.maximum(*ends)), np.maximum(*ends))
    return _chained(loss, (outer, upper), low, high)


@_slopes.register
def _(loss: losses.ExponentialOfSum, low: Array, high: Array) -> Range:
    least, most = _sums(loss, low, high)
    return _chained(loss, (np.exp(least), np.exp(most)), low, high)


@_slopes.register
def _(loss: losses.MinimumOfRatios, low: Array, high: Array) -> Range:
    needed = loss.requirements > 0
    rates = 1 / np.where(needed, loss.requirements, np.inf)
    under, over = (np.where(needed, end * rates, np.inf) for end in (low, high))
    possible = under <= over.min(-1, keepdims=True)
    rivals = np.where(np.eye(loss.outcomes, dtype=bool), np.inf, under[..., None, :]).min(-1)
    scale = loss.amplitude[..., None] * rates
    sole, among = (chance.astype(np.float64) for chance in (over < rivals, possible))
    return _product((scale, scale), (sole, among))


@_slopes.register
def _(loss: losses.Convex1D, low: Array, high: Array) -> Range:
    own = np.arange(loss.outcomes) == loss.coordinate
    left, right = (end[..., loss.coordinate, None] for end in (low, high))
    least = loss.slope + np.where(loss.knots <= left, loss.kinks, 0.0).sum(-1)
    most = loss.slope + np.where(loss.knots < right, loss.kinks, 0.0).sum(-1)
    return least[..., None] * own, most[..., None] * own


@_slopes.register
def _(loss: losses.LipschitzLoss, low: Array, high: Array) -> Range:
    bound = np.broadcast_to(loss.lipschitz()[..., None, None], _shape(loss, low, high))
    return -bound, bound


def _shape(loss: losses.Loss, low: Array, high: Array) -> tuple[int, ...]:
    """Return (T, ..., A, d)."""
    return np.broadcast_shapes(low.shape, high.shape, (*loss.offset.shape, loss.outcomes))


def _sums(loss: OfSum, low: Array, high: Array) -> Range:
    """Range (T, ..., A) of the sum inside."""
    power, floor = loss.power[..., None, None], loss.floor[..., None, None]
    ends = [loss.weights * transformed(y, power, floor) for y in (low, high)]
    return (
        np.asarray(loss.intercept + np.minimum(*ends).sum(-1)),
        np.asarray(loss.intercept + np.maximum(*ends).sum(-1)),
    )


def _chained(loss: OfSum, outer: Range, low: Array, high: Array) -> Range:
    """Multiply the outer derivative by amplitude, weight and g', which is 0 below the floor."""
    power, floor = loss.power[..., None, None], loss.floor[..., None, None]
    size = np.where(power == 0, 1.0, power)
    ends = [size * np.maximum(y, floor) ** (power - 1) for y in (low, high)]
    least, most = np.minimum(*ends), np.maximum(*ends)
    flat, partly = high <= floor, low < floor
    least = np.where(flat, 0.0, np.where(partly, np.minimum(least, 0), least))
    most = np.where(flat, 0.0, np.where(partly, np.maximum(most, 0), most))
    scale = loss.amplitude[..., None] * loss.weights
    inner = _product((scale, scale), (least, most))
    return _product((outer[0][..., None], outer[1][..., None]), inner)


def _product(first: Range, second: Range) -> Range:
    """Range of a product of two quantities in these ranges."""
    ones, others = ([np.clip(end, -STEEPEST, STEEPEST) for end in pair] for pair in (first, second))
    products = [one * other for one in ones for other in others]
    return (
        np.minimum(np.minimum(products[0], products[1]), np.minimum(products[2], products[3])),
        np.maximum(np.maximum(products[0], products[1]), np.maximum(products[2], products[3])),
    )
