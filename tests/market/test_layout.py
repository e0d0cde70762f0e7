"""Weights whose actions lie side by side: the same sums to the last bit, wherever they lie."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.market.core.compiled import FEWEST
from regretless.market.losses import Linear
from regretless.market.losses.sums import weighted_sums
from regretless.market.numerics import storage
from regretless.market.response import expected_and_realised, expected_losses

Array = NDArray[np.float64]


def orders(weights: Array) -> list[Array]:
    """Lay the same weights out in memory in several ways."""
    spaced = np.zeros((len(weights) * 2, *weights.shape[1:]))
    spaced[::2] = weights
    abreast = weights.swapaxes(1, 2).copy().swapaxes(1, 2)
    return [weights, abreast, spaced[::2], weights[::-1].copy()[::-1], np.asfortranarray(weights)]


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 6),
    actions=st.integers(1, 37),
    size=st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_sums_are_in_index_order_in_every_layout(
    seed: int, rows: int, actions: int, size: int
) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(rows, actions, size)) * 10.0 ** rng.integers(-9, 9, size)
    offset, point, values = rng.normal(size=(rows, actions)), rng.random(size), rng.random(size)
    expected, true = np.zeros((2, rows, actions))
    for k, a in np.ndindex(rows, actions):
        before, after = offset[k, a], weights[k, a, 0] * values[0]
        for i in range(size):
            before += weights[k, a, i] * point[i]
            after += weights[k, a, i] * values[i] if i else 0.0
        expected[k, a], true[k, a] = before, offset[k, a] + after
    for table in orders(weights):
        assert expected_losses(offset, table, point).tobytes() == expected.tobytes()
        assert weighted_sums(offset, table, values[None]).tobytes() == true.tobytes()
        both = expected_and_realised((offset, offset), table, point=point, outcome=values)
        assert [one.tobytes() for one in both] == [expected.tobytes(), true.tobytes()]


def test_narrow_weights_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(FEWEST, 9, 5))
    loss = Linear(wide).in_single_precision()
    narrow = storage.narrowed(loss.weights)
    assert loss.weights.dtype == np.float64
    assert narrow.dtype == np.float32
    assert (narrow == loss.weights).all()
    assert np.abs(loss.weights - wide).max() <= np.abs(wide).max() * 2.0**-24
    for weights in (wide, storage.copied(wide), loss.weights[:-1], loss.weights * 1e39):
        assert storage.narrowed(weights) is weights
    offset, point = rng.normal(size=wide.shape[:2]), rng.random(5)
    both = [expected_losses(offset, table, point) for table in (loss.weights, narrow)]
    assert both[0].tobytes() == both[1].tobytes()
