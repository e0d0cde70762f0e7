"""Responses to a table of predicted losses, and that forecaster and agents respond alike."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from regretless.agents.responses import BestResponse, Quantal
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear
from regretless.market.records import Forecast, Mixture
from regretless.market.response import best_response, expected_losses, quantal_gap, quantal_response

CHECKED = settings(deadline=None, max_examples=100, derandomize=True)
LOSS = st.floats(-2, 2, allow_subnormal=False)
ETA = st.floats(1e-3, 1e4)


def agents_play(loss: Linear, point: Array) -> Array:
    """Strategy of play (K, A) of best responders in the linear basis."""
    rule, coefficients = BestResponse(), LinearBasis(loss.outcomes).coefficients(loss)
    forecast = Forecast(Mixture(point[None], np.ones(1)), 0)
    return rule.play(rule.predicted(forecast, loss, coefficients))


def forecasters_idea(loss: Linear, point: Array, eta: float | None = None) -> Array:
    """Strategy of play (K, A) that the forecaster's events attribute to the same agents."""
    rows = LossTable([ProtectedLosses(*LinearBasis(loss.outcomes).coefficients(loss), eta=eta)])
    return responses_at(rows, point).reshape(len(loss), loss.actions)


def tables(actions: int) -> st.SearchStrategy[Array]:
    """Draw tables of losses (3, actions), not only in [0, 1]: predictions may leave the hull."""
    return hnp.arrays(np.float64, (3, actions), elements=LOSS)


@given(data=st.data(), actions=st.integers(1, 9))
@CHECKED
def test_a_best_response_is_the_first_least_loss(data: st.DataObject, actions: int) -> None:
    """Exact ties go to the lowest index, as zeros do; a difference in the last bit is no tie."""
    losses = st.sampled_from([0.0, -0.0, 0.25, 0.3, 0.1 + 0.2]) | LOSS
    table = data.draw(hnp.arrays(np.float64, (3, actions), elements=losses))
    for row, choice in zip(table, best_response(table), strict=True):
        assert choice == best_response(row) == min(range(actions), key=row.tolist().__getitem__)


def eighths(rng: np.random.Generator) -> tuple[Linear, Array]:
    """Coefficients and prediction in multiples of 1/8: sums are exact, so ties are common."""
    offset, weights = rng.integers(0, 2, (5, 4)) / 8, rng.integers(-1, 2, (5, 4, 3)) / 8
    return Linear(weights, offset), rng.choice([0, 1 / 8, 1 / 2, 1], 3)


def permuted(rng: np.random.Generator) -> tuple[Linear, Array]:
    """Actions that differ by the order of their terms: equal on paper, apart in the last bit."""
    terms = rng.random(6)
    weights = np.array([[rng.permutation(terms) for _ in range(4)] for _ in range(5)])
    return Linear(weights), np.full(6, rng.random())


def anything(rng: np.random.Generator) -> tuple[Linear, Array]:
    return Linear(rng.normal(size=(5, 4, 6)), rng.normal(size=(5, 4))), rng.random(6)


@pytest.mark.parametrize("draw", [eighths, permuted, anything])
def test_the_forecaster_knows_every_agents_action(
    draw: Callable[[np.random.Generator], tuple[Linear, Array]],
) -> None:
    """On hundreds of predictions, ties among them, both take the same action."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        loss, point = draw(rng)
        assert np.array_equal(forecasters_idea(loss, point), agents_play(loss, point))


@given(seed=st.integers(0, 2**32 - 1), eta=ETA)
@CHECKED
def test_the_forecaster_knows_the_quantal_strategy(seed: int, eta: float) -> None:
    """Smooth events weigh an action as the agent does, up to the last bits of exp."""
    loss, point = anything(np.random.default_rng(seed))
    table = expected_losses(loss.offset, loss.weights, point)
    strategy = forecasters_idea(loss, point, eta)
    assert strategy == pytest.approx(quantal_response(table, eta), abs=1e-12)


@given(table=st.integers(1, 5).flatmap(tables), eta=ETA)
@CHECKED
def test_quantal_play_is_the_logit_strategy(table: Array, eta: float) -> None:
    """Its logs differ by eta times the losses, and it loses at most ln(A) / eta."""
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


@given(
    pair=st.integers(1, 5).flatmap(lambda actions: st.tuples(tables(actions), tables(actions))),
    closer=st.sampled_from([1.0, 0.1, 1e-3]),
    eta=ETA,
)
@CHECKED
def test_quantal_play_moves_at_most_eta_times_the_table(
    pair: tuple[Array, Array], closer: float, eta: float
) -> None:
    """The l1 change of play is at most eta times the sup-norm change of the losses."""
    one, other = pair[0], pair[0] + closer * (pair[1] - pair[0])
    moved = np.abs(quantal_response(one, eta) - quantal_response(other, eta)).sum(1)
    assert (moved <= Quantal(eta).lipschitz * np.abs(one - other).max(1) + 1e-12).all()
