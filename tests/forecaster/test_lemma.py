"""The lemma of the adaptive weights: its constants are proved by rectangles, and nearly least."""

from collections.abc import Callable

import numpy as np
import pytest

from regretless.forecaster.events.weights import GROWTH, REMAINDER
from regretless.market.core.arrays import Array

Bound = Callable[[Array, Array, Array, Array], Array]


def slope(x: Array) -> Array:
    """Compute E(x) = (e^x - 1) / x."""
    least = np.maximum(x, 1e-300)
    return np.where(x > 1e-8, np.expm1(least) / least, 1 + x)


def below_one(r0: Array, r1: Array, v0: Array, v1: Array) -> Array:
    """Bound K on rectangles with R in [0, 1]."""
    last = r0**2 / (3 * (1 - 3 * v0)) * slope(r0**2 * v0 / (1 - 3 * v0))
    return (r1 + 1) ** 2 / 6 * slope((r1 + 1) ** 2 * v1) - last


def above_one(r0: Array, r1: Array, v0: Array, v1: Array) -> Array:
    """Bound K on rectangles with R >= 1."""
    return below_one(r0, r1, v0, v1) + (r1 - 1) ** 2 / 6 * slope((r1 - 1) ** 2 * v1)


def proved(rectangle: list[float], bound: Bound, limit: float, most: int = 2_000_000) -> bool:
    """Whether K is below the limit on a rectangle (R, v), by halving; False past ``most`` parts."""
    parts = np.array([rectangle])
    while len(parts):
        r0, r1, v0, v1 = parts.T
        # C >= R, and R^2 <= 3 C where R >= 1: beyond it K is negative
        possible = (v0 <= 1 / (3 * (r0 + 1))) & ((r0 < 1) | (v0 <= 1 / (3 + r0**2)))
        parts = parts[possible]
        parts = parts[bound(*parts.T) > limit]
        if len(parts) > most:
            return False
        r0, r1, v0, v1 = parts.T
        wide = r1 - r0 > 6 * (v1 - v0)
        middle = np.where(wide, r0 + r1, v0 + v1) / 2
        left = [r0, np.where(wide, middle, r1), v0, np.where(wide, v1, middle)]
        right = [np.where(wide, middle, r0), r1, np.where(wide, v0, middle), v1]
        parts = np.concatenate([np.array(left).T, np.array(right).T])
    return True


def test_the_remainder_is_proved_and_nearly_least() -> None:
    limit = REMAINDER - 1e-9  # rounding
    assert proved([0.0, 1.0, 0.0, 1 / 3 - 1e-9], below_one, limit)
    assert proved([1.0, 9.0, np.log(3 * REMAINDER), 1 / 6], above_one, limit)
    assert not proved([0.0, 1.0, 0.0, 1 / 3 - 1e-9], below_one, 0.3355, most=20_000)


def potential(regret: Array, variation: Array) -> Array:
    return np.asarray(np.exp(np.maximum(regret, 0.0) ** 2 / (3 * variation)))


@pytest.mark.parametrize("variation", [0.01, 0.3, 1.0, 3.0, 10.2, 40.0, 400.0])
def test_one_step_of_the_potential(variation: float) -> None:
    regret = np.linspace(-2, min(variation, 8 * np.sqrt(variation)), 400)[:, None]
    gain, c = np.linspace(-1, 1, 101), np.float64(variation)
    now = potential(regret, c)
    weight = (potential(regret + 1, c + 1) - potential(regret - 1, c + 1)) / 2
    after = potential(regret + gain, c + np.abs(gain))
    most = now + weight * gain + REMAINDER * np.abs(gain) / (c + 1)
    assert np.all(after <= most + 1e-9 * now)
    assert np.all(weight <= GROWTH * now * (1 + 1e-12))
