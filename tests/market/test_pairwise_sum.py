"""The sum of a kernel has the bits of NumPy's."""

import numpy as np
import pytest

from regretless.market.numerics.pairwise_sum import pairwise_sum


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 16, 23, 127, 128, 129, 136, 257, 1023, 5000])
def test_numbers_are_added_up_in_the_order_of_numpy(count: int) -> None:
    rows = np.random.default_rng(count).normal(size=(5, count))

    sums = [pairwise_sum(row) for row in rows]

    assert np.array_equal(sums, np.add.reduce(rows, axis=1))
