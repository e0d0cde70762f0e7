"""Weights whose actions lie side by side: the same sums to the last bit, wherever they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from benchmarks.crowds import NarrowCrowd
from regretless.forecaster.bases import LinearBasis
from regretless.market.core.errors import UserError
from regretless.market.losses import ExponentialOfSum, Linear, SeparablePower, unique_losses
from regretless.market.losses.sums import to_power, weighted_sums
from regretless.market.numerics import storage
from regretless.market.numerics.threads import FEWEST
from regretless.market.response import expected_losses
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.spec.scenario import validated

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


def test_a_zero_keeps_its_sign() -> None:
    weights, offset = np.full((1, 1, 1), -1.0), np.full((1, 1), -0.0)
    assert np.signbit(expected_losses(offset, weights, np.zeros(1))).all()
    assert np.signbit(weighted_sums(offset, weights, np.zeros((1, 1)))).all()


def test_repeated_arrays_are_read_where_they_are() -> None:
    offset, weights = np.broadcast_to(0.5, (3, 9)), np.broadcast_to(np.arange(4.0), (3, 9, 4))
    assert (expected_losses(offset, weights, np.ones(4)) == 6.5).all()


@pytest.mark.parametrize("count", [3, storage.MANY + 1])
def test_many_losses_have_their_actions_side_by_side(count: int) -> None:
    weights = np.random.default_rng(0).random((count, 4, 5))
    table = storage.side_by_side(weights)
    assert (table == weights).all()
    assert table.strides == ((160, 8, 32) if count > storage.MANY else (160, 40, 8))
    assert storage.side_by_side(table) is table
    assert storage.copied(table) is not table
    assert storage.copied(table).strides == table.strides
    assert (table is weights) == (count <= storage.MANY)


def test_a_loss_and_its_coefficients_are_one_table() -> None:
    """So that one pass over it gives both what is expected and what comes."""
    loss = Linear(np.random.default_rng(0).random((storage.MANY + 1, 4, 5))).normalised()
    assert LinearBasis(5).coefficients(loss)[1] is loss.weights
    assert storage.lies_well(loss.weights)
    assert storage.lies_well(loss[: storage.MANY].weights)
    assert loss.weights[7].tolist() == loss[7].weights.tolist()


def test_equal_losses_are_found_in_every_layout() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(7, size=storage.MANY + 50)
    shares = rng.random((7, 3, 2))
    powers = rng.uniform(1, 2, 7)
    for few in (SeparablePower(shares, powers), ExponentialOfSum(shares, powers)):
        found, place = unique_losses(few[kinds])
        _, first = np.unique(kinds, return_index=True)
        order = kinds[np.sort(first)]
        assert (order[place] == kinds).all()
        assert (found.rows() == few[order].rows()).all()


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


def test_a_crowd_with_narrow_weights_plays_as_with_wide_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = NarrowCrowd(FEWEST)
    narrow = crowd.model()
    monkeypatch.setattr("regretless.agents.cohorts.responding.narrowed", lambda weights: weights)
    wide = crowd.model()
    for model in (narrow, wide):
        model.run(8)
    one, other = narrow.game.cohorts[0].ledger, wide.game.cohorts[0].ledger
    assert one.fixed.tobytes() == other.fixed.tobytes()
    assert one.surprise_fixed.tobytes() == other.surprise_fixed.tobytes()


def test_a_scenario_may_ask_for_single_precision() -> None:
    linear, ces, _ = SCENARIO["cohort"]
    told = SCENARIO | {"cohort": [linear | {"precision": "single"}]}
    losses = Scenario(validated(told, origin=Path())).build().game.cohorts[0].loss
    exact = Scenario(validated(SCENARIO, origin=Path())).build().game.cohorts[0].loss
    assert (losses.weights == losses.weights.astype(np.float32)).all()
    y = np.random.default_rng(0).random((50, 2))
    assert 0 < np.abs(losses.losses(y) - exact.losses(y)).max() < 6e-8
    told = SCENARIO | {
        "cohort": [ces | {"precision": "single", "parameters": {"rho": 0.5, "v": 1}}]
    }
    with pytest.raises(UserError, match=r"cohort.b.precision = \"single\" does not fit a power-of"):
        Scenario(validated(told, origin=Path())).build()


def test_a_run_does_not_depend_on_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to rounding: ranges are summed along memory."""

    def regrets() -> list[Array]:
        model = Scenario(validated(SCENARIO, origin=Path())).build()
        model.run(60)
        return [np.asarray(cohort.ledger.regret("swap")) for cohort in model.game.cohorts]

    few = regrets()
    monkeypatch.setattr(storage, "MANY", 0)
    for one, other in zip(few, regrets(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


SCENARIO: dict[str, Any] = {
    "name": "laid-out",
    "rounds": 60,
    "seed": 5,
    "cohort": [
        {"name": "a", "utility": "linear", "count": 9, "actions": 5},
        {"name": "b", "utility": "ces", "count": 6, "actions": 3, "parameters": {"rho": 0.5}},
        {"name": "c", "utility": "leontief", "count": 4, "actions": 3},
    ],
    "forecaster": {"kind": "running-mean"},
    "adversary": {"kind": "iid", "outcomes": 2},
}


@pytest.mark.parametrize("rows", [3, FEWEST + 1])
def test_powers_are_the_same_on_several_cores(rows: int) -> None:
    rng = np.random.default_rng(0)
    exponent = rng.uniform(-2, 2, (rows, 1))
    for base in (rng.uniform(0.1, 1, (1, 5)), rng.uniform(0.1, 1, (rows, 5))):
        assert to_power(base, exponent).tobytes() == (base**exponent).tobytes()
    assert to_power(np.array(0.5), np.array(2.0)) == 0.25
