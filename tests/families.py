"""Stacks of losses that bases claim to serve, extreme ones first: what several suites draw."""

from collections.abc import Callable

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses import (
    Convex1D,
    ExponentialOfSum,
    LipschitzLoss,
    Loss,
    MinimumOfRatios,
    PowerOfSum,
    SeparablePower,
)

Rng = np.random.Generator
Draw = Callable[[Rng, int], Loss]  # so many losses

ACTIONS = 4


def signed(rng: Rng, stack: int, outcomes: int, *, actions: int = ACTIONS) -> Array:
    """Weights of both signs; some rows put all on one coordinate, one row is 0."""
    weights = rng.normal(size=(stack, actions, outcomes))
    lone = np.eye(outcomes)[rng.integers(outcomes, size=(stack, actions))]
    weights = np.where(rng.random((stack, actions, 1)) < 0.3, lone, weights)
    weights[-1, -1] = 0.0
    return weights


def within(rng: Rng, stack: int, outcomes: int, reach: float) -> Array:
    """Weights whose absolute values add up to at most the reach; many reach it."""
    weights = signed(rng, stack, outcomes)
    total = np.abs(weights).sum(-1, keepdims=True)
    share = np.where(rng.random(total.shape) < 0.5, 1.0, rng.random(total.shape))
    return reach * share * weights / np.where(total > 0, total, 1.0)


def powers(exponents: list[float], outcomes: int, *, between: bool = False) -> Draw:
    """Powers about 0 with one of these exponents, or with any in their range, ends included."""

    def draw(rng: Rng, stack: int) -> Loss:
        chosen = rng.choice(exponents, stack)
        if between:
            chosen = rng.uniform(exponents[0], exponents[-1], stack)
            chosen[:2] = exponents[0], exponents[-1]
        return SeparablePower(signed(rng, stack, outcomes), chosen).normalised()

    return draw


def targets(degree: int, outcomes: int) -> Draw:
    """Even powers about any point and odd ones about points outside, up to a degree."""

    def draw(rng: Rng, stack: int) -> Loss:
        chosen = rng.integers(1, degree + 1, stack).astype(float)
        chosen[0] = degree
        shape = stack, ACTIONS, outcomes
        inner = np.where(rng.random(shape) < 0.3, rng.integers(2, size=shape), rng.random(shape))
        outer = rng.choice([-0.3, 0.0, 1.0, 1.2], shape)
        centre = np.where(chosen[:, None, None] % 2 == 0, inner, outer)
        return SeparablePower(signed(rng, stack, outcomes), chosen, centre=centre).normalised()

    return draw


def raw_targets(degree: int, outcomes: int) -> Draw:
    """``sum_j (a_j - y_j)^p`` for an even p, as it stands, a anywhere in the cube."""

    def draw(rng: Rng, stack: int) -> Loss:
        shape = stack, ACTIONS, outcomes
        centre = np.where(rng.random(shape) < 0.3, rng.integers(2, size=shape), rng.random(shape))
        return SeparablePower(np.ones(shape), np.array(float(degree)), centre=centre)

    return draw


def sums(
    degree: int, outcomes: int, *, same: bool = False, raw: bool = False, **inner: float
) -> Draw:
    """Integer powers of a sum; of one degree and without intercepts if ``same``.

    With ``raw`` A = 1, there is no intercept and absolute weights add up to at most 1.
    """
    arrays = {name: np.array(value) for name, value in inner.items()}

    def draw(rng: Rng, stack: int) -> Loss:
        exponent = np.full(stack, degree) if same else rng.integers(1, degree + 1, stack)
        if raw:
            return PowerOfSum(within(rng, stack, outcomes, 1.0), exponent, **arrays)
        intercept = rng.normal(size=(stack, ACTIONS)) * (not same)
        weights = signed(rng, stack, outcomes)
        return PowerOfSum(weights, exponent, intercept=intercept, **arrays).normalised()

    return draw


def exponentials(
    reach: float, outcomes: int, *, power: float = 0.0, floor: float = 0.01, raw: bool = False
) -> Draw:
    """Exponentials of a sum with amplitudes of both signs; with A = 1 if ``raw``."""
    inner = np.array(power), np.array(floor)

    def draw(rng: Rng, stack: int) -> Loss:
        if raw:
            return ExponentialOfSum(within(rng, stack, outcomes, reach), *inner)
        amplitude = rng.choice([-1.0, 1.0], (stack, ACTIONS)) * (0.1 + rng.random((stack, ACTIONS)))
        weights = within(rng, stack, outcomes, reach)
        return ExponentialOfSum(weights, *inner, amplitude=amplitude).normalised()

    return draw


def convex(constant: float, outcomes: int = 1, coordinate: int = 0) -> Draw:
    """Broken lines with slopes up to the constant: one tent, a line, knots outside the cube."""

    def draw(rng: Rng, stack: int) -> Loss:
        knots = rng.uniform(-0.2, 1.2, (stack, ACTIONS, 5))
        kinks = rng.dirichlet(np.full(5, 0.3), (stack, ACTIONS))
        start = -rng.random((stack, ACTIONS))
        knots[0], kinks[0], start[0] = 0.5, 0.0, 0.5  # a line
        tents = slice(1, stack // 2)
        knots[tents, :, 0] = rng.random(knots[tents, :, 0].shape)
        kinks[tents], start[tents] = np.eye(5)[0], -0.5
        top = float(Convex1D(kinks, knots, start).lipschitz().max())
        return Convex1D(
            constant / top * kinks,
            knots,
            constant / top * start,
            coordinate=coordinate,
            dimension=outcomes,
        )

    return draw


def ratios(constant: float, outcomes: int) -> Draw:
    """Minima of ratios, some with every requirement at its least."""

    def draw(rng: Rng, stack: int) -> Loss:
        amplitude = rng.choice([-1.0, 1.0], (stack, ACTIONS)) * rng.uniform(0.5, 1, (stack, 1))
        least = np.abs(amplitude)[..., None] / constant
        needs = least * np.exp(rng.exponential(0.7, (stack, ACTIONS, outcomes)))
        needs[0] = least[0]
        needs[1, :, 0] = least[1, :, 0]
        needs[1, :, 1:] = 50.0
        return MinimumOfRatios(needs, amplitude, offset=(amplitude < 0) * 1.0)

    return draw


def waves(constant: float, outcomes: int) -> Draw:
    """Losses of any form with a Lipschitz constant: triangle waves in the greatest coordinate."""

    def draw(rng: Rng, stack: int) -> Loss:
        shifts = rng.random((stack, ACTIONS))

        def function(y: Array) -> Array:
            return np.abs((constant * y.max(-1)[:, None, None] + 2 * shifts) % 2 - 1)

        return LipschitzLoss(function, np.array(constant), (stack, ACTIONS), outcomes)

    return draw
