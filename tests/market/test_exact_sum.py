"""Sums that parts add up to, to the last bit."""

import numpy as np

from regretless.market.numerics.exact_sum import COARSE_UNIT, FINE_UNIT, total


def test_sums_are_those_of_the_numbers_in_two_parts() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3))
    weights = rng.integers(0, 5, size=40)
    coarse = np.rint(values / COARSE_UNIT) * COARSE_UNIT
    fine = np.rint((values - coarse) / FINE_UNIT) * FINE_UNIT
    expected = np.array([weights @ coarse, weights @ fine])
    assert np.array_equal(total(values, weights), expected)


def test_sums_of_parts_add_up_whatever_the_order() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((100, 2))
    weights = rng.integers(1, 4, size=100)
    order = rng.permutation(100)
    first_part = total(values[order[:30]], weights[order[:30]])
    second_part = total(values[order[30:]], weights[order[30:]])
    assert np.array_equal(first_part + second_part, total(values, weights))
