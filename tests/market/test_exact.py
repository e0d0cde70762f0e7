"""Sums that parts add up to, to the last bit."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regretless.market.core.randomness import stream
from regretless.market.numerics.exact_sum import total, total_taken


@given(seed=st.integers(0, 2**32 - 1), agents=st.integers(1, 300), scale=st.floats(1e-3, 1e5))
def test_parts_add_up_to_the_whole_in_any_order(seed: int, agents: int, scale: float) -> None:
    rng = stream(seed, "exact")
    table = rng.normal(size=(7, 3, 2)) * scale
    rows, actions = rng.integers(7, size=agents), rng.integers(3, size=agents)
    whole = total_taken(table, rows, actions, np.zeros(0))
    parts = np.array_split(rng.permutation(agents), 3)
    told = [total_taken(table, rows[own], actions[own], np.zeros(0)) for own in parts]
    assert np.array_equal(sum(told), whole)
    exact = [math.fsum(column) for column in table[rows, actions].T]
    np.testing.assert_allclose(whole.sum(0), exact, rtol=1e-15, atol=agents * 2.0**-49)


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 50))
def test_weighted_rows_are_as_many_single_ones(seed: int, rows: int) -> None:
    rng = stream(seed, "exact")
    values, heads = rng.random((rows, 2)), rng.integers(0, 9, rows)
    each = np.repeat(values, heads, axis=0)
    whole = total(values, heads.astype(np.float64))
    assert np.array_equal(whole, total(each, np.ones(len(each))))
    taken = total_taken(values[:, None], np.arange(rows), np.zeros(rows, int), heads * 1.0)
    assert np.array_equal(whole, taken)
