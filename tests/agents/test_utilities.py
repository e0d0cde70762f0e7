"""Utilities against their textbooks, those of whose actions a market clears too."""

from typing import Any

import numpy as np
import pytest

from regretless.agents.utilities import forms
from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief, Newsvendor
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, unique_losses

NAN, INF = float("nan"), float("inf")


def random_outcomes(goods: int, count: int = 50) -> Array:
    drawn = np.random.default_rng(goods).random((count, goods))
    return np.concatenate([drawn, np.zeros((1, goods)), np.ones((1, goods))])


def utility(loss: Loss, outcomes: Any) -> Array:
    """Return the utility in its own units (T, ..., A), of a loss that must lie in [0, 1]."""
    values = loss.losses(outcomes)
    assert -1e-9 <= values.min() <= values.max() <= 1 + 1e-9
    return np.asarray(-(loss.unit_offset[..., None] + loss.unit_scale[..., None] * values))


RNG = np.random.default_rng(11)
W = RNG.dirichlet(np.ones(3), 4)  # four actions, three goods
RISKY = RNG.normal(size=(4, 3))  # short positions too
NEEDS = np.array([[0.5, 1.0, 0.0], [2.0, 0.25, 0.5], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
SCALES, ORDERS = np.array([1.0, 2.0, 3.0, 0.5]), np.array([0.0, 0.3, 0.6, 1.0])
SHARES = np.array([0.2, 0.3, 0.5])
Y = random_outcomes(3)
EACH, SECOND, SAFE, GAIN = Y[:, None], Y[:, 1, None], Y @ W.T, Y @ RISKY.T
ENOUGH = np.divide(EACH, NEEDS, out=np.full((52, 4, 3), INF), where=NEEDS > 0).min(-1)
MINUS_COST = -3 * np.maximum(SECOND - ORDERS, 0) - np.maximum(ORDERS - SECOND, 0)
TEXTBOOK: list[tuple[Loss, Array]] = [
    (forms.LinearUtility(RISKY), GAIN),
    (CES(RISKY, 0.5), Y**0.5 @ RISKY.T),
    (CES(W, 0.5, 1.0), (Y**0.5 @ W.T) ** 2),
    (CES(W, -2.0, 0.8, 0.05), (np.maximum(Y, 0.05) ** -2.0 @ W.T) ** -0.4),
    (CES(W, 2.0, v=1.0, y_min=0.3), (np.maximum(Y, 0.3) ** 2 @ W.T) ** 0.5),
    (CobbDouglas(W, A=SCALES), SCALES * (np.maximum(EACH, 0.01) ** W).prod(-1)),
    (Leontief(NEEDS), ENOUGH),
    (forms.CARA(RISKY, 1.5), -np.exp(-1.5 * GAIN)),
    (forms.MeanVariance(RISKY, 2.5, 0.4), GAIN - 2.5 / 2 * (GAIN - 0.4) ** 2),
    (forms.MeanVariance(W, 0.7), SAFE - 0.35 * SAFE**2),
    (Newsvendor(ORDERS, 3.0, 1.0, coordinate=1, outcomes=3), MINUS_COST),
    (forms.LpTarget(W, 1.5, SHARES), -(np.abs(EACH - W) ** 1.5 @ SHARES)),
]


@pytest.mark.parametrize(("loss", "expected"), TEXTBOOK, ids=range(len(TEXTBOOK)))
def test_utility_in_its_own_units_is_the_textbook_formula(loss: Loss, expected: Array) -> None:
    """A loss is in [0, 1], fills it, and is minus the utility in other units."""
    assert utility(loss, Y) == pytest.approx(expected, abs=1e-9)
    assert [float(end) for end in loss.range()] == pytest.approx([0, 1], abs=1e-9)


def drawn(name: str, actions: int, goods: int = 2, **parameters: Any) -> Loss:
    population = Population(np.random.default_rng(0), 3, actions, goods)
    loss: Loss = register.utility[name](population, **parameters)
    assert loss.offset.shape == (3, actions)
    low, high = loss.range()
    return loss if low.min() >= 0 and high.max() <= 1 else loss.normalised()


TWO, OFFERS = random_outcomes(2, 60), random_outcomes(4)
VALUE, COST, MOST = np.array([[0.25, 0.5, 1.0], [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]])[..., None]
PRICE = TWO[:, 1, None, None]
BOUGHT, UNITS = VALUE - TWO[:, None, [0, 0, 1, 0, 1]], np.array([0, 1, 1, 2, 2])  # or nothing
SOLD = MOST * np.linspace(0, 1, 5)
EARNED = SOLD * (PRICE - COST)  # less what the firm's own sales take off the price
OWN, BET = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 0.0]]), np.arange(1, 5) / 5
GROWN = np.log1p((1.5 * TWO - 0.5) @ OWN.T)[:, None]
FIRM: dict[str, Any] = {"cost": COST[:, 0], "capacity": MOST[:, 0], "coordinate": 1}
MARKETS: list[tuple[str, dict[str, Any], Array, Array]] = [
    ("trader", {"value": VALUE[:, 0], "size": 2.0}, TWO, np.maximum(0, UNITS * BOUGHT)),
    ("trader", {"value": VALUE[:, 0], "size": -2.0}, TWO, np.maximum(0, -UNITS * BOUGHT)),
    ("firm", FIRM | {"slope": 0.0}, TWO, EARNED),
    ("firm", FIRM | {"slope": 0.3}, TWO, EARNED - 0.3 * SOLD**2 / 2),
    ("growth", {"weights": OWN, "low": -0.5, "high": 1.0}, TWO, GROWN),
    ("bettor", {"coordinate": 1}, TWO, PRICE * np.log(BET) + (1 - PRICE) * np.log(1 - BET)),
    ("buyer", {"value": VALUE[:, 0]}, OFFERS, VALUE * OFFERS[:, None, ::2] - OFFERS[:, None, 1::2]),
]


@pytest.mark.parametrize(("name", "parameters", "outcomes", "expected"), MARKETS)
def test_gains_are_their_formula(name: str, parameters: Any, outcomes: Any, expected: Any) -> None:
    got = utility(drawn(name, expected.shape[-1], outcomes.shape[1], **parameters), outcomes)
    assert got == pytest.approx(np.broadcast_to(expected, got.shape), abs=1e-12)


def test_depositors_gain_what_the_bank_has_left() -> None:
    loss = drawn("depositor", 2, goods=1, early=1.25, late=2.0)
    assert len(unique_losses(loss)[0]) == 1
    share = np.linspace(0, 1, 41)
    got = utility(loss, share[:, None])[:, 0]
    waits = [2 * max(0.0, 1 - 1.25 * y) / (1 - y) if y < 1 else 0.0 for y in share]
    leaves = [1.25 if 1.25 * y <= 1 else 1 / y for y in share]
    assert got == pytest.approx(np.stack([waits, leaves], axis=1), abs=1e-12)
    runs = share > (2 - 1.25) / (1.25 * (2 - 1)) + 1e-9
    assert (got[runs, 1] > got[runs, 0]).all()
    assert (got[~runs, 0] >= got[~runs, 1] - 1e-12).all()
    steep = np.abs(np.diff(loss.losses(share[:, None])[:, 0], axis=0)) * 40
    assert steep.max() <= loss.lipschitz().max() + 1e-9


ONES = np.ones((2, 2))
REFUSED: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
    (CES, (ONES, -1.0), {}, "rho = -1: must be positive; .* below 0 give v and y_min"),
    (CES, (ONES, NAN), {}, "rho = nan: give finite numbers"),
    (CES, (np.ones((2, 2, 2)), [0.5, -0.5]), {}, "rho = -0.5: must be positive"),
    (CES, (ONES, 0.0, 1.0), {}, "rho = 0: too near 0; use Cobb-Douglas"),
    (CES, (ONES, 1e-9, 1.0), {}, "rho = 1e-09: too near 0; use Cobb-Douglas"),
    (CES, (ONES, 0.5, 0.0), {}, "v = 0: must be positive"),
    (CES, (ONES, 0.5, 1.0, 1.0), {}, r"y_min = 1: must lie in \[0, 1\)"),
    (CES, (ONES, 0.5, 1.0, -0.1), {}, r"y_min = -0.1: must lie in \[0, 1\)"),
    (CES, (ONES, 0.5, 1.0, [0.1, 0.2]), {}, "y_min must be one number for all agents"),
    (CES, (-ONES, 0.5, 1.0), {}, "weights = -1: with v they must be at least 0"),
    (CES, ([[1, 1], [0, 0]], -1.0, 1.0, 0.1), {}, "weights = 0: must be positive for some good"),
    (CES, (9 * ONES, 0.001, 1.0), {}, "overflows; make each action's weights sum to 1"),
    (CES, (ONES, -9.0, 1.0, 1e-300), {}, "overflows; .* raise y_min"),
    (CES, ([1.0, 1.0], 0.5), {}, r"weights have shape \(2,\); give actions x goods"),
    (CES, ([[1.0, 1.0], [1.0]], 0.5), {}, r"weights = .*: .* equally long"),
    (CES, (np.ones((3, 2, 2)), [0.5, 0.6]), {}, r"weights .* stack agents \(3,\) and \(2,\)"),
    (CobbDouglas, (ONES, 0.0), {}, "A = 0: must be positive"),
    (CobbDouglas, (np.empty((0, 2)),), {}, r"alpha have shape \(0, 2\); give actions x goods"),
    (Leontief, ([[1.0, 0.0], [0.0, 0.0]],), {}, "a = 0: each action must need some good"),
    (Leontief, ([[1e-310, 1e-310]],), {}, "overflows; raise the smallest positive a"),
    (forms.CARA, (-ONES, 1000.0), {}, "overflows; lower risk_aversion"),
    (forms.MeanVariance, (ONES, 1.0, INF), {}, "reference = inf: give finite numbers"),
    (Newsvendor, ([0.5], -1.0, 1.0), {}, "underage = -1: must be at least 0"),
    (Newsvendor, ([0.5, -1.5], 1.0, 1.0), {}, "orders = -1.5: must be at least 0"),
    (Newsvendor, (0.5, 1.0, 1.0), {}, r"orders have shape \(\); give actions"),
    (Newsvendor, ([0.5], 1.0, 1.0), {"coordinate": 0.0}, "coordinate is 0.0; give a whole"),
    (forms.LpTarget, (ONES, 2.0, [1.0, 1.0, 1.0]), {}, "give one weight for each good"),
    (drawn, ("trader", 3), {"value": 1.5}, "value"),
    (drawn, ("firm", 3), {"slope": -1.0}, "slope"),
    (drawn, ("firm", 3), {"coordinate": 2}, "is 2; give a whole number of at least 0 and below 2"),
    (drawn, ("bettor", 3), {"coordinate": -1}, "coordinate is -1"),
    (drawn, ("depositor", 2), {"early": 1.2, "late": 2.0, "coordinate": 5}, "coordinate is 5"),
    (drawn, ("depositor", 3), {"early": 1.2, "late": 2.0}, "3 actions; give 2"),
    (drawn, ("growth", 2), {"weights": [[2.0, 0], [0, 0]], "low": -0.5, "high": 0.5}, "ruins"),
    (drawn, ("affine", 2), {"weights": [[1.0, 0.0]]}, "weights have shape"),
    (drawn, ("affine", 2), {"weights": np.eye(2), "gains": [1.0]}, "gains: give 2 numbers"),
]


@pytest.mark.parametrize(("make", "values", "named", "says"), REFUSED, ids=range(len(REFUSED)))
def test_bad_parameters_are_refused(make: Any, values: Any, named: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        make(*values, **named)
    assert "\n" not in str(caught.value)
