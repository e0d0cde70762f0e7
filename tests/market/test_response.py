"""Responses to a table of predicted losses, and that forecaster and agents respond alike."""

import math

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
from regretless.market.response import best_response, quantal_gap, quantal_response

CHECKED = settings(deadline=None, max_examples=100, derandomize=True)
LOSS = st.floats(-2, 2, allow_subnormal=False)  # predictions may leave the hull


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


@given(
    pair=st.integers(1, 5).flatmap(
        lambda actions: hnp.arrays(np.float64, (2, 3, actions), elements=LOSS)
    ),
    closer=st.sampled_from([1.0, 0.1, 1e-3]),
    eta=st.floats(1e-3, 1e4),
)
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
