"""Utilities of those whose actions a market clears, against their formulas in their own units."""

from typing import Any

import numpy as np
import pytest

from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, unique_losses

OUTCOMES = np.random.default_rng(1).random((60, 2))


def drawn(name: str, actions: int, goods: int = 2, count: int = 3, **parameters: Any) -> Loss:
    rng = np.random.default_rng(0)
    loss: Loss = register.utility[name](Population(rng, count, actions, goods), **parameters)
    assert loss.offset.shape == (count, actions)
    low, high = loss.range()
    return loss if low.min() >= 0 and high.max() <= 1 else loss.normalised()


def gains(loss: Loss, outcomes: Array) -> Array:
    """Utilities (T, K, A) in their own units."""
    return -(loss.unit_offset[:, None] + loss.unit_scale[:, None] * loss.losses(outcomes))


def test_a_trader_gains_its_value_less_the_price_or_nothing() -> None:
    value = np.array([0.25, 0.5, 1.0])
    for size in (2.0, -2.0):
        got = gains(drawn("trader", 5, value=value, size=size), OUTCOMES)
        assert got[..., 0] == pytest.approx(0.0, abs=1e-12)
        for a, (g, units) in enumerate([(0, 1.0), (1, 1.0), (0, 2.0), (1, 2.0)], 1):
            one = np.maximum(0, np.sign(size) * units * (value - OUTCOMES[:, g, None]))
            assert got[..., a] == pytest.approx(one, abs=1e-12)


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_a_firm_earns_price_less_cost_and_knows_its_impact(slope: float) -> None:
    cost, most = np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 4.0])
    loss = drawn("firm", 5, cost=cost, capacity=most, slope=slope, coordinate=1)
    sold = most[:, None] * np.array([0, 0.25, 0.5, 0.75, 1])
    price = OUTCOMES[:, 1, None, None]
    expected = sold * (price - cost[:, None]) - slope * sold**2 / 2
    assert gains(loss, OUTCOMES) == pytest.approx(expected, abs=1e-12)


def test_depositors_gain_what_the_bank_has_left() -> None:
    loss = drawn("depositor", 2, goods=1, early=1.25, late=2.0)
    assert len(unique_losses(loss)[0]) == 1
    share = np.linspace(0, 1, 41)
    got = gains(loss, share[:, None])[:, 0]
    waits = [2 * max(0.0, 1 - 1.25 * y) / (1 - y) if y < 1 else 0.0 for y in share]
    leaves = [1.25 if 1.25 * y <= 1 else 1 / y for y in share]
    assert got == pytest.approx(np.stack([waits, leaves], axis=1), abs=1e-12)
    runs = share > (2 - 1.25) / (1.25 * (2 - 1)) + 1e-9
    assert (got[runs, 1] > got[runs, 0]).all()
    assert (got[~runs, 0] >= got[~runs, 1] - 1e-12).all()
    steep = np.abs(np.diff(loss.losses(share[:, None])[:, 0], axis=0)) * 40
    assert steep.max() <= loss.lipschitz().max() + 1e-9


def test_growth_is_the_logarithm_of_what_wealth_is_multiplied_by() -> None:
    weights = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 0.0]])
    loss = drawn("growth", 3, weights=weights, low=-0.5, high=1.0)
    returns = -0.5 + 1.5 * OUTCOMES
    assert gains(loss, OUTCOMES)[:, 1] == pytest.approx(np.log1p(returns @ weights.T))
    assert (loss.losses(np.array([[0.0, 0.0], [1.0, 1.0]])) <= 1).all()


def test_bettors_are_scored_by_the_logarithm() -> None:
    loss = drawn("bettor", 4, coordinate=1)
    bet, y = np.arange(1, 5) / 5, OUTCOMES[:, 1, None]
    expected = y * np.log(bet) + (1 - y) * np.log(1 - bet)
    assert gains(loss, OUTCOMES)[:, 0] == pytest.approx(expected)


MISTAKES: list[tuple[str, int, dict[str, Any], str]] = [
    ("trader", 4, {"value": 0.5}, "4 actions for 2 goods"),
    ("trader", 3, {"value": 1.5}, "value"),
    ("firm", 3, {"capacity": 0.0}, "capacity"),
    ("firm", 3, {"slope": -1.0}, "slope"),
    (
        "firm",
        3,
        {"coordinate": 2},
        "coordinate is 2; give a whole number of at least 0 and below 2",
    ),
    ("bettor", 3, {"coordinate": -1}, "coordinate is -1"),
    ("depositor", 2, {"early": 1.2, "late": 2.0, "coordinate": 5}, "coordinate is 5"),
    ("depositor", 3, {"early": 1.2, "late": 2.0}, "3 actions; give 2"),
    ("depositor", 2, {"early": 2.0, "late": 1.5}, "give 1 < early < late"),
    ("growth", 2, {"weights": [[2.0, 0.0], [0, 0]], "low": -0.5, "high": 0.5}, "ruins"),
    ("affine", 2, {"weights": [[1.0, 0.0]]}, "weights have shape"),
    ("affine", 2, {"weights": np.eye(2), "gains": [1.0]}, "gains: give 2 numbers"),
]


@pytest.mark.parametrize(("name", "actions", "parameters", "line"), MISTAKES)
def test_what_makes_no_sense_is_refused(
    name: str, actions: int, parameters: dict[str, Any], line: str
) -> None:
    with pytest.raises(ValueError, match=line):
        drawn(name, actions, **parameters)
