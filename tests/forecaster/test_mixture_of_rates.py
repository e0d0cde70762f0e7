"""The greatest gain that a mixture over rates allows, beside the same formula in NumPy."""

import numpy as np
import pytest

from regretless.forecaster.mixture_of_rates import (
    COSTS,
    NEWTON_STEPS,
    RATES,
    greatest_gain,
    greatest_of,
)
from regretless.market.core.randomness import stream


def greatest_by_definition(squares: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Take Newton's steps on ln sum_j exp(eta_j x - psi_j V) / J - exponent for all V at once."""
    deductions = COSTS * squares[:, None] + np.log(len(RATES))
    greatest = ((exponents[:, None] + deductions) / RATES).min(1)
    for _ in range(NEWTON_STEPS):
        terms = np.exp(RATES * greatest[:, None] - deductions)
        excess = np.log(terms.sum(1)) - exponents
        greatest = greatest - excess * terms.sum(1) / (terms @ RATES)
    return greatest


def test_the_kernel_takes_the_steps_of_the_formula() -> None:
    rng = stream(3, "gains")
    squares = rng.uniform(0.0, 500.0, size=50)
    exponents = rng.uniform(1.0, 20.0, size=50)

    greatest = greatest_of(squares, exponents, rates=RATES, costs=COSTS)

    assert greatest == pytest.approx(greatest_by_definition(squares, exponents), rel=1e-12)


def test_equal_numbers_side_by_side_have_the_greatest_gain_of_each_alone() -> None:
    squares = np.array([0.0, 0.0, 7.0, 7.0, 0.0])
    exponents = np.array([5.0, 5.0, 5.0, 6.0, 6.0])

    greatest = greatest_of(squares, exponents, rates=RATES, costs=COSTS)

    alone = [
        float(greatest_of(square, exponent, rates=RATES, costs=COSTS))
        for square, exponent in zip(squares, exponents, strict=True)
    ]
    assert greatest.tolist() == alone


def test_a_single_number_and_a_table_of_them_have_their_own_shapes() -> None:
    table = np.array([[1.0, 2.0], [3.0, np.nan]])

    greatest = greatest_gain(table, 5.0)

    assert greatest.shape == table.shape
    assert greatest_gain(2.0, 5.0).shape == ()
    assert greatest[0, 1] == greatest_gain(2.0, 5.0)
    assert np.isnan(greatest[1, 1])
