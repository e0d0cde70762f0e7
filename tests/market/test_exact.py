"""Sums that parts add up to, to the last bit."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.core.compiled import FEWEST
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear
from regretless.market.losses.sums import offset_sum
from regretless.market.numerics import storage
from regretless.market.numerics.exact_sum import total
from regretless.market.response import expected_and_realised, expected_losses

SEEDS = st.integers(0, 2**32 - 1)


@given(seed=SEEDS, agents=st.integers(1, 300), scale=st.floats(1e-3, 1e5))
def test_parts_add_up_to_the_whole_in_any_order(seed: int, agents: int, scale: float) -> None:
    """And weighted rows to as many single ones."""
    rng = stream(seed, "exact")
    values = rng.normal(size=(agents, 2)) * scale
    whole = total(values, np.ones(agents))
    parts = np.array_split(rng.permutation(agents), 3)
    assert np.array_equal(sum(total(values[own], np.ones(len(own))) for own in parts), whole)
    exact = [math.fsum(column) for column in values.T]
    np.testing.assert_allclose(whole.sum(0), exact, rtol=1e-15, atol=agents * 2.0**-49)
    heads = rng.integers(0, 9, agents)
    each = np.repeat(values, heads, axis=0)
    assert np.array_equal(total(values, heads.astype(float)), total(each, np.ones(len(each))))


@given(seed=SEEDS, rows=st.integers(1, 6), actions=st.integers(1, 37), size=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_sums_are_in_index_order_however_weights_lie_in_memory(
    seed: int, rows: int, actions: int, size: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(rows, actions, size)) * 10.0 ** rng.integers(-9, 9, size)
    offset, point, values = rng.normal(size=(rows, actions)), rng.random(size), rng.random(size)
    expected, true = offset.copy(), weights[..., 0] * values[0]
    for i in range(size):
        expected += weights[..., i] * point[i]
        true += weights[..., i] * values[i] if i else 0.0
    told = [expected.tobytes(), (offset + true).tobytes()]
    spaced, abreast = np.repeat(weights, 2, 0)[::2], weights.swapaxes(1, 2).copy().swapaxes(1, 2)
    for table in (weights, abreast, spaced, weights[::-1].copy()[::-1], np.asfortranarray(weights)):
        both = expected_and_realised((offset, offset), table, point=point, outcome=values)
        alone = expected_losses(offset, table, point), offset_sum(offset, table, values[None])
        assert [one.tobytes() for one in both] == [one.tobytes() for one in alone] == told


def test_narrow_weights_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(FEWEST, 9, 5))
    loss = Linear(wide).in_single_precision()
    narrow = storage.narrowed(loss.weights)
    assert (loss.weights.dtype, narrow.dtype) == (np.float64, np.float32)
    assert (narrow == loss.weights).all()
    assert np.abs(loss.weights - wide).max() <= np.abs(wide).max() * 2.0**-24
    for weights in (wide, storage.copied(wide), loss.weights[:-1], loss.weights * 1e39):
        assert storage.narrowed(weights) is weights
    offset, point = rng.normal(size=wide.shape[:2]), rng.random(5)
    both = [expected_losses(offset, table, point) for table in (loss.weights, narrow)]
    assert both[0].tobytes() == both[1].tobytes()
