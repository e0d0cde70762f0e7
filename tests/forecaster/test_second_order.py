"""Second-order weights: the step of their proof, their bound, and that it follows the squares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from weighing import weighed

from regretless.forecaster.events.weights import COSTS, GAINS, RATES, Moment, SecondOrderWeights

Array = NDArray[np.float64]


def potential(gain: Any, variation: Any) -> Array:
    """Compute Phi from its definition."""
    powers = RATES * np.asarray(gain)[..., None] - COSTS * np.asarray(variation)[..., None]
    return np.exp(powers).mean(-1)


def weight(gain: float, variation: float) -> float:
    """Compute w from its definition."""
    return float((RATES * np.exp(RATES * gain - COSTS * variation)).mean())


@given(st.floats(-30, 30), st.floats(0, 60), st.floats(-1, 1))
def test_a_step_adds_at_most_what_the_weights_say(gain: float, past: float, step: float) -> None:
    after = potential(gain + step, past + step**2)
    before = potential(gain, past)
    assert after <= (before + weight(gain, past) * step) * (1 + 1e-12)


@given(st.floats(0, 1e6), st.floats(0.1, 60))
def test_the_greatest_gain_is_where_the_potential_reaches_the_level(
    variation: float, exponent: float
) -> None:
    greatest = float(GAINS.greatest(variation, exponent))
    level = float(np.log(potential(greatest, variation)))
    assert exponent - 1e-9 <= level <= exponent + 1e-5  # four steps of Newton: above, by 4e-6
    closed = ((exponent + np.log(len(RATES)) + COSTS * variation) / RATES).min()
    assert greatest <= closed + 1e-9


def test_it_grows_like_the_root_of_squares_and_is_concave() -> None:
    at = np.array([2e2, 2e3, 2e4, 2e5])
    found = GAINS.greatest(at, 12.0)
    assert (found < 1.25 * np.sqrt(2 * at * (12.0 + np.log(len(RATES))))).all()
    grid = np.linspace(0, 500, 1001)
    assert (np.diff(GAINS.greatest(grid, 9.0), n=2) <= 1e-9).all()


def test_the_table_is_the_definition_and_huge_biases_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    bias, squares = rng.normal(size=(4, 3)) * 5, rng.random((4, 3)) * 20
    up, down = (np.vectorize(weight)(sign * bias, squares) for sign in (1, -1))
    rule, moment = SecondOrderWeights(), Moment(1, 24)
    table = weighed(rule, bias, squares, moment)
    assert table == pytest.approx((up - down) / (up + down).sum())
    assert np.isfinite(weighed(rule, 1e6 * bias, 1e3 * squares, moment)).all()
    behind = np.array([-1e6, -2e6]), np.array([1e6, 1e6]), moment
    assert rule.one_sided(*behind, top=rule.top(*behind)).sum() > 0
