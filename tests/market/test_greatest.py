"""Sums of greatest numbers have the bits of NumPy's."""

import numpy as np
import pytest

from regretless.market.numerics.greatest import sums_of_greatest


@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 2, 2), (3, 7, 5), (2, 21, 22), (0, 3, 3)])
def test_greatest_numbers_are_added_up_in_the_order_of_numpy(shape: tuple[int, int, int]) -> None:
    table = np.random.default_rng(1).normal(size=shape)

    sums = sums_of_greatest(table)

    assert np.array_equal(sums, table.max(2).sum(1))


@pytest.mark.parametrize("comparator", [0, 1, 2])
def test_a_number_that_is_not_known_makes_its_row_unknown(comparator: int) -> None:
    table = np.ones((2, 3, 3))
    table[1, 1, comparator] = np.nan

    sums = sums_of_greatest(table)

    assert sums[0] == 3.0
    assert np.isnan(sums[1])
