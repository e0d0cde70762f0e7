"""Responses, alike for forecaster and agents, and the sums that they are made from."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regretless.agents.responses import BestResponse, Quantal
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.market.best_response import (
    ResponseTable,
    best_response,
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

LOSSES = st.floats(-2, 2, allow_subnormal=False)  # predictions may leave the hull
LOSSES_OFTEN_TIED = st.sampled_from([0.0, -0.0, 0.25, 0.3, 0.1 + 0.2]) | LOSSES
ETAS = st.floats(1e-3, 1e4)
SEEDS = st.integers(0, 2**32 - 1)


@given(data=st.data(), actions=st.integers(1, 9))
def test_a_best_response_is_the_first_least_loss(data: st.DataObject, actions: int) -> None:
    """Exact ties go to the lowest index, as zeros do; a difference in the last bit is no tie."""
    losses = data.draw(hnp.arrays(np.float64, (3, actions), elements=LOSSES_OFTEN_TIED))
    responses = best_response(losses)
    for row, response in zip(losses, responses, strict=True):
        first_least = min(range(actions), key=row.tolist().__getitem__)
        assert response == first_least
        assert best_response(row) == first_least


class Prediction(NamedTuple):
    """Losses of five rows, and what is forecast."""

    loss: Linear
    point: Array


def draw_exact_sums(rng: np.random.Generator) -> Prediction:
    """Draw multiples of 1/8: sums are exact, so that ties are common."""
    offset = rng.integers(0, 2, (5, 4)) / 8
    weights = rng.integers(-1, 2, (5, 4, 3)) / 8
    return Prediction(Linear(weights, offset), rng.choice([0, 1 / 8, 1 / 2, 1], 3))


def draw_permuted_sums(rng: np.random.Generator) -> Prediction:
    """Draw actions that differ by the order of their terms: equal on paper, not in the last bit."""
    weights = rng.permuted(np.tile(rng.random(6), (5, 4, 1)), axis=-1)
    return Prediction(Linear(weights), np.full(6, rng.random()))


def draw_any_sums(rng: np.random.Generator) -> Prediction:
    loss = Linear(rng.normal(size=(5, 4, 6)), rng.normal(size=(5, 4)))
    return Prediction(loss, rng.random(6))


@pytest.mark.parametrize("draw", [draw_exact_sums, draw_permuted_sums, draw_any_sums])
@pytest.mark.parametrize("kind", ["best response", "quantal"])
def test_the_forecaster_knows_every_agents_strategy(
    kind: str, draw: Callable[[np.random.Generator], Prediction]
) -> None:
    """Best responses ties and all; smooth ones up to the last bits of exp."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        loss, point = draw(rng)
        response = BestResponse() if kind == "best response" else Quantal(draw_eta(rng))
        coefficients = LinearBasis(loss.outcomes).coefficients(loss)
        table = LossTable([ProtectedLosses(*coefficients, eta=response.eta)])
        strategy_of_forecaster = responses_at(table, point).reshape(5, 4)

        forecast = Forecast(Mixture(point[None], np.ones(1), labels=point[None]), 0)
        strategy_of_agents = response.play(response.predicted(forecast, loss, coefficients))

        tolerance = 0.0 if kind == "best response" else 1e-12
        assert np.abs(strategy_of_forecaster - strategy_of_agents).max() <= tolerance


def draw_eta(rng: np.random.Generator) -> float:
    return float(10 ** rng.uniform(-3, 4))


TABLES = hnp.arrays(np.float64, st.tuples(st.just(3), st.integers(1, 5)), elements=LOSSES)


@given(TABLES, ETAS)
def test_quantal_play_is_a_distribution_of_each_row(losses: Array, eta: float) -> None:
    strategy = quantal_response(losses, eta)
    assert strategy.shape == losses.shape
    assert (strategy >= 0).all()
    assert strategy.sum(1) == pytest.approx(np.ones(3), abs=1e-12)


@given(seed=SEEDS, rows=st.integers(1, 4), actions=st.integers(1, 300), eta=ETAS)
@settings(max_examples=40)
def test_quantal_play_has_the_digits_of_its_formula_in_numpy(
    seed: int, rows: int, actions: int, eta: float
) -> None:
    losses = np.random.default_rng(seed).random((rows, actions))
    weights = np.exp(-eta * (losses - losses.min(1, keepdims=True)))
    by_formula = weights / weights.sum(1, keepdims=True)
    assert quantal_response(losses, eta).tobytes() == by_formula.tobytes()


@given(TABLES, st.tuples(ETAS, ETAS, ETAS))
def test_each_row_may_have_a_closeness_of_its_own(losses: Array, etas: tuple[float, ...]) -> None:
    play = quantal_response(losses, np.array(etas))
    for strategy, losses_of_row, eta in zip(play, losses, etas, strict=True):
        weights = np.exp(-eta * (losses_of_row - losses_of_row.min()))
        assert strategy == pytest.approx(weights / weights.sum(), rel=1e-12, abs=1e-300)


@given(TABLES, ETAS)
def test_logs_of_quantal_play_differ_by_eta_times_the_losses(losses: Array, eta: float) -> None:
    for probabilities, losses_of_row in zip(quantal_response(losses, eta), losses, strict=True):
        is_likely = probabilities > 1e-200
        constant = np.log(probabilities[is_likely]) + eta * losses_of_row[is_likely]
        assert np.ptp(constant) <= 1e-9 * (1 + eta)


@given(TABLES, ETAS)
def test_quantal_play_loses_at_most_the_logarithm_of_actions_over_eta(
    losses: Array, eta: float
) -> None:
    actions = losses.shape[1]
    gap = quantal_gap(actions, eta)
    assert gap == math.log(actions) / eta
    assert Quantal(eta).gap(actions) == gap
    excess_loss = (quantal_response(losses, eta) * losses).sum(1) - losses.min(1)
    assert (excess_loss <= gap + 1e-12).all()


PAIRS = hnp.arrays(
    np.float64, st.tuples(st.just(2), st.just(3), st.integers(1, 5)), elements=LOSSES
)


@given(PAIRS, st.sampled_from([1, 0.1, 1e-3]), ETAS)
def test_quantal_play_is_as_smooth_as_it_says(pair: Array, closeness: float, eta: float) -> None:
    """The l1 change of play is at most eta times the sup-norm change of the losses."""
    losses, other_losses = pair
    near_losses = losses + closeness * (other_losses - losses)
    change_of_play = np.abs(quantal_response(losses, eta) - quantal_response(near_losses, eta))
    change_of_losses = np.abs(losses - near_losses).max(1)
    greatest_change = Quantal(eta).lipschitz * change_of_losses
    assert (change_of_play.sum(1) <= greatest_change + 1e-12).all()


@given(seed=SEEDS, agents=st.integers(1, 300), scale=st.floats(1e-3, 1e5))
def test_an_exact_sum_is_the_sum_of_its_parts_in_any_order(
    seed: int, agents: int, scale: float
) -> None:
    rng = stream(seed, "exact")
    values = rng.normal(size=(agents, 2)) * scale
    parts = np.array_split(rng.permutation(agents), 3)
    sums_of_parts = [total(values[part], np.ones(len(part))) for part in parts]
    assert np.array_equal(sum(sums_of_parts), total(values, np.ones(agents)))


@given(seed=SEEDS, agents=st.integers(1, 300), scale=st.floats(1e-3, 1e5))
def test_an_exact_sum_is_that_of_the_standard_library(seed: int, agents: int, scale: float) -> None:
    values = stream(seed, "exact").normal(size=(agents, 2)) * scale
    exact = [math.fsum(column) for column in values.T]
    summed = total(values, np.ones(agents)).sum(0)
    np.testing.assert_allclose(summed, exact, rtol=1e-15, atol=agents * 2.0**-49)


@given(seed=SEEDS, agents=st.integers(1, 300), scale=st.floats(1e-3, 1e5))
def test_an_exact_sum_of_weighted_rows_is_that_of_as_many_single_ones(
    seed: int, agents: int, scale: float
) -> None:
    rng = stream(seed, "exact")
    values = rng.normal(size=(agents, 2)) * scale
    heads = rng.integers(0, 9, agents)
    repeated = np.repeat(values, heads, axis=0)
    expected = total(repeated, np.ones(len(repeated)))
    assert np.array_equal(total(values, heads.astype(float)), expected)


def layouts_of(weights: Array) -> dict[str, Array]:
    """Return the same weights (K, A, d) as they may lie in memory."""
    return {
        "rows after each other": weights,
        "actions abreast": weights.swapaxes(1, 2).copy().swapaxes(1, 2),
        "with gaps": np.repeat(weights, 2, 0)[::2],
        "from the last row": weights[::-1].copy()[::-1],
        "by columns": np.asfortranarray(weights),
    }


@given(seed=SEEDS, rows=st.integers(1, 6), actions=st.integers(1, 37), size=st.integers(1, 9))
@settings(max_examples=60)
def test_sums_keep_index_order_in_any_layout(seed: int, rows: int, actions: int, size: int) -> None:
    """Expected losses begin at the offset; realised ones add the offset to the whole sum."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(rows, actions, size)) * 10.0 ** rng.integers(-9, 9, size)
    offset = rng.normal(size=(rows, actions))
    point = rng.random(size)
    outcome = rng.random(size)
    expected = offset.copy()
    for index in range(size):
        expected += weights[..., index] * point[index]
    weighted_outcome = weights[..., 0] * outcome[0]
    for index in range(1, size):
        weighted_outcome += weights[..., index] * outcome[index]
    realised = offset + weighted_outcome
    points = np.array([point, outcome, point])
    probabilities = np.array([0.1, 0.2, 0.7])
    played_over_draws = np.zeros((rows, actions))
    for atom, probability in zip(points, probabilities, strict=True):
        choices = best_response(expected_losses(offset, weights, atom))
        played_over_draws += probability * np.eye(actions)[choices]

    for layout, table in layouts_of(weights).items():
        responses = ResponseTable(offset, table, loss_offset=offset)
        for answer in (responses.respond(point), responses.respond_and_realise(point, outcome)):
            assert answer[0].tobytes() == expected.tobytes(), layout
            assert np.array_equal(answer[1], best_response(expected)), layout
        assert answer[2].tobytes() == realised.tobytes(), layout
        strategies = responses.respond_to_mixture(points, probabilities)
        assert strategies.tobytes() == played_over_draws.tobytes(), layout
        heard = [0, 1] * rows
        each_row = responses.respond_to_points(points, np.array(heard[:rows]))
        for row, atom in enumerate(heard[:rows]):
            expected_at_atom, choices_at_atom = responses.respond(points[atom])
            assert each_row[0][row].tobytes() == expected_at_atom[row].tobytes(), layout
            assert each_row[1][row] == choices_at_atom[row], layout
        assert responses.realise(outcome).tobytes() == realised.tobytes(), layout
        assert expected_losses(offset, table, point).tobytes() == expected.tobytes(), layout
        assert offset_sum(offset, table, outcome[None]).tobytes() == realised.tobytes(), layout


@pytest.fixture(scope="module")
def wide_weights() -> Array:
    """Return weights of double precision, of enough rows to be stored in single precision."""
    return np.random.default_rng(0).normal(size=(MIN_SHARED_ROWS, 9, 5))


def test_weights_in_single_precision_are_stored_in_half_the_room(wide_weights: Array) -> None:
    loss = Linear(wide_weights).in_single_precision()
    narrow = storage.narrowed_to_32_bits(loss.weights)
    assert loss.weights.dtype == np.float64
    assert narrow.dtype == np.float32
    assert (narrow == loss.weights).all()
    assert np.abs(loss.weights - wide_weights).max() <= np.abs(wide_weights).max() * 2.0**-24


def test_weights_that_would_lose_digits_or_are_few_are_not_narrowed(wide_weights: Array) -> None:
    single = Linear(wide_weights).in_single_precision().weights
    for reason, weights in {
        "digits": wide_weights,
        "digits, in another layout": storage.copy_in_layout(wide_weights),
        "too few rows": single[:-1],
        "too large for 32 bits": single * 1e39,
    }.items():
        assert storage.narrowed_to_32_bits(weights) is weights, reason


def test_expected_losses_of_narrow_weights_are_the_same_to_the_bit(wide_weights: Array) -> None:
    rng = np.random.default_rng(1)
    single = Linear(wide_weights).in_single_precision().weights
    narrow = storage.narrowed_to_32_bits(single)
    offset = rng.normal(size=wide_weights.shape[:2])
    point = rng.random(5)
    of_single = expected_losses(offset, single, point)
    assert expected_losses(offset, narrow, point).tobytes() == of_single.tobytes()
