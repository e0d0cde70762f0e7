"""Weights as defined, and biases in expectation."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from weighing import weighed

from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import ProtectedLosses, played_of
from regretless.forecaster.events.weights import (
    GROWTH,
    RULES,
    ExponentialWeights,
    Moment,
    WeightRule,
    rule_of,
)
from regretless.forecaster.unbiased import UnbiasedPrediction

Array = NDArray[np.float64]


def group(seed: int, *, losses: int = 4, actions: int = 3, size: int = 3) -> ProtectedLosses:
    """Draw random linear losses in [0, 1]."""
    rng = np.random.default_rng(seed)
    weights = -rng.dirichlet(np.ones(size), (losses, actions))
    return ProtectedLosses(np.ones((losses, actions)), weights)


@given(st.floats(-200, 200), st.floats(0, 400), st.floats(-1, 1))
def test_the_potential_grows_as_the_lemma_says(regret: float, slack: float, gain: float) -> None:
    """Luo and Schapire, Lemma 5, and the growth constant of the bound's derivation."""
    variation = abs(regret) + slack

    def potential(r: float, c: float) -> float:
        return float(np.exp(max(r, 0.0) ** 2 / (3 * c))) if c > 0 else 1.0

    weight = (potential(regret + 1, variation + 1) - potential(regret - 1, variation + 1)) / 2
    before = potential(regret, variation)
    after = potential(regret + gain, variation + abs(gain))
    limit = before + weight * gain + 1.5 * abs(gain) / (variation + 1)
    assert after <= limit * (1 + 1e-9)
    assert weight <= GROWTH * before * (1 + 1e-9)


def table_of(rule: WeightRule, bias: Array, variation: Array, time: int) -> Array:
    """Return H, normalised."""
    moment = Moment(time, 2 * bias.size)
    return weighed(rule, bias, variation, moment)


@pytest.mark.parametrize("horizon", [None, 400])
def test_exponential_weights_are_those_printed(horizon: int | None) -> None:
    bias = np.random.default_rng(0).uniform(-20, 20, (4, 3))
    rule = ExponentialWeights(horizon)
    rate = np.sqrt(2 * np.log(24) / 400) if horizon else np.sqrt(np.log(24) / 9)
    plus, minus = np.exp(rate * bias), np.exp(-rate * bias)
    expected = (plus - minus) / (plus + minus).sum()
    assert table_of(rule, bias, np.abs(bias), 9) == pytest.approx(expected)


@pytest.mark.parametrize("name", RULES)
def test_huge_biases_do_not_overflow(name: str) -> None:
    bias = np.array([[1e6, -1e6], [3.0, 0.0]])
    table = table_of(rule_of(name), bias, np.abs(bias), 10)
    assert np.isfinite(table).all()
    assert np.abs(table).sum() <= 1 + 1e-12
    assert table[0, 0] > 0 > table[0, 1]


def test_biases_are_accumulated_in_expectation() -> None:
    """Against the definition, with a policy's cross events and a mixture of three points."""
    losses = group(1)
    tests = ProtectedLosses(losses.offset, losses.weights, policies=(int,))
    events = VectorEvents([tests])
    points, mass = np.random.default_rng(2).random((3, 3)), np.array([0.2, 0.3, 0.5])
    truth = np.array([0.1, 0.9, 0.4])
    events.charge(events.active(1), played_of(events.rows, points, mass, truth))
    expected = np.zeros((12, 3))
    for point, weight in zip(points, mass, strict=True):
        choice = (losses.offset + losses.weights @ point).argmin(1)
        expected[np.arange(4) * 3 + choice] += weight * (point - truth)
    rows = list(events.table())
    decision = np.array([row[5] for row in rows[:12]])
    assert decision == pytest.approx(expected)
    cross = {(row[0], row[1], row[3]): row[5] for row in rows[12:]}
    for loss, action in product(range(4), range(3)):
        assert cross[loss, action, 1] == pytest.approx(expected[loss * 3 + action])
        assert (cross[loss, action, 0] == 0).all()
    assert len(rows) == 12 * (1 + 3)
    assert events.experts == 2 * 3 * len(rows)


def test_calls_out_of_order_are_refused() -> None:
    forecaster = UnbiasedPrediction(VectorEvents([group(0)]))
    with pytest.raises(ValueError, match="before a prediction"):
        forecaster.update(np.zeros(3))
    forecaster.predict()
    with pytest.raises(ValueError, match="3 numbers"):
        forecaster.update(np.full(3, 1.5))
