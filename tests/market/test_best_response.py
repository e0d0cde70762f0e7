"""Responses, alike for forecaster and agents, and the sums that they are made from."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regretless.agents.responses import BestResponse, Quantal
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.market.best_response import (
    best_response,
    expected_and_realised,
    expected_losses,
    quantal_gap,
    quantal_response,
)
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import MIN_SHARED_ROWS
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear
from regretless.market.losses.sums import offset_sum
from regretless.market.numerics import storage
from regretless.market.numerics.exact_sum import total
from regretless.market.records import Forecast, Mixture

CHECKED = settings(deadline=None, max_examples=100, derandomize=True)
LOSS = st.floats(-2, 2, allow_subnormal=False)  # predictions may leave the hull
ETAS, PAIRS = st.floats(1e-3, 1e4), st.tuples(st.just(2), st.just(3), st.integers(1, 5))
SEEDS = st.integers(0, 2**32 - 1)


@given(data=st.data(), actions=st.integers(1, 9))
@CHECKED
def test_a_best_response_is_the_first_least_loss(data: st.DataObject, actions: int) -> None:
    """Exact ties go to the lowest index, as zeros do; a difference in the last bit is no tie."""
    losses = st.sampled_from([0.0, -0.0, 0.25, 0.3, 0.1 + 0.2]) | LOSS
    table = data.draw(hnp.arrays(np.float64, (3, actions), elements=losses))
    for row, choice in zip(table, best_response(table), strict=True):
        assert choice == best_response(row) == min(range(actions), key=row.tolist().__getitem__)


def drawn(kind: str, rng: np.random.Generator) -> tuple[Linear, Array]:
    """Draw losses and a prediction.

    Multiples of 1/8: sums are exact, so ties are common. Actions that differ by the order of their
    terms: equal on paper, apart in the last bit. Or anything.
    """
    if kind == "eighths":
        offset, weights = rng.integers(0, 2, (5, 4)) / 8, rng.integers(-1, 2, (5, 4, 3)) / 8
        return Linear(weights, offset), rng.choice([0, 1 / 8, 1 / 2, 1], 3)
    if kind == "permuted":
        weights = rng.permuted(np.tile(rng.random(6), (5, 4, 1)), axis=-1)
        return Linear(weights), np.full(6, rng.random())
    return Linear(rng.normal(size=(5, 4, 6)), rng.normal(size=(5, 4))), rng.random(6)


@pytest.mark.parametrize("kind", ["eighths", "permuted", "anything"])
def test_the_forecaster_knows_every_agents_strategy(kind: str) -> None:
    """Best responses ties and all; smooth ones up to the last bits of exp."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        loss, point = drawn(kind, rng)
        coefficients = LinearBasis(loss.outcomes).coefficients(loss)
        heard = Forecast(Mixture(point[None], np.ones(1), labels=point[None]), 0)
        eta = float(10 ** rng.uniform(-3, 4))
        for rule, near in ((BestResponse(), 0.0), (Quantal(eta), 1e-12)):
            rows = LossTable([ProtectedLosses(*coefficients, eta=rule.eta)])
            known = responses_at(rows, point).reshape(5, 4)
            play = rule.play(rule.predicted(heard, loss, coefficients))
            assert np.abs(known - play).max() <= near


@given(hnp.arrays(np.float64, PAIRS, elements=LOSS), st.sampled_from([1, 0.1, 1e-3]), ETAS)
@settings(CHECKED, max_examples=200)
def test_quantal_play_is_the_logit_strategy(pair: Array, closer: float, eta: float) -> None:
    """Its logs differ by eta times the losses, it loses at most ln(A) / eta, and is as smooth.

    The l1 change of play is at most eta times the sup-norm change of the losses.
    """
    table, other = pair[0], pair[0] + closer * (pair[1] - pair[0])
    strategy = quantal_response(table, eta)
    assert strategy.shape == table.shape
    assert (strategy >= 0).all()
    assert strategy.sum(1) == pytest.approx(np.ones(3), abs=1e-12)
    for probabilities, losses in zip(strategy, table, strict=True):
        likely = probabilities > 1e-200
        logs = np.log(probabilities[likely]) + eta * losses[likely]
        assert np.ptp(logs) <= 1e-9 * (1 + eta)
    gap = quantal_gap(table.shape[1], eta)
    assert Quantal(eta).gap(table.shape[1]) == gap == math.log(table.shape[1]) / eta
    assert ((strategy * table).sum(1) - table.min(1) <= gap + 1e-12).all()
    moved = np.abs(strategy - quantal_response(other, eta)).sum(1)
    assert (moved <= Quantal(eta).lipschitz * np.abs(table - other).max(1) + 1e-12).all()


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
def test_sums_keep_index_order_in_any_layout(seed: int, rows: int, actions: int, size: int) -> None:
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
    wide = rng.normal(size=(MIN_SHARED_ROWS, 9, 5))
    loss = Linear(wide).in_single_precision()
    narrow = storage.narrowed_to_32_bits(loss.weights)
    assert (loss.weights.dtype, narrow.dtype) == (np.float64, np.float32)
    assert (narrow == loss.weights).all()
    assert np.abs(loss.weights - wide).max() <= np.abs(wide).max() * 2.0**-24
    for weights in (wide, storage.copy_in_layout(wide), loss.weights[:-1], loss.weights * 1e39):
        assert storage.narrowed_to_32_bits(weights) is weights
    offset, point = rng.normal(size=wide.shape[:2]), rng.random(5)
    both = [expected_losses(offset, table, point) for table in (loss.weights, narrow)]
    assert both[0].tobytes() == both[1].tobytes()
