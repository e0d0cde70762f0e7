"""Utilities against their textbooks, those of whose actions a market clears too."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regretless.agents.utilities.forms import (
    CARA,
    CES,
    CobbDouglas,
    Leontief,
    LinearUtility,
    LpTarget,
    MeanVariance,
    Newsvendor,
)
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, unique_losses

NAN, INF = float("nan"), float("inf")


def random_outcomes(outcomes: int, count: int = 50) -> Array:
    return np.random.default_rng(outcomes).random((count, outcomes))


def utility(loss: Loss, outcomes: Any) -> Array:
    """Return the utility in its own units (T, ..., A), of a loss that must lie in [0, 1]."""
    values = loss.losses(outcomes)
    assert -1e-9 <= values.min() <= values.max() <= 1 + 1e-9
    return np.asarray(-(loss.unit_offset[..., None] + loss.unit_scale[..., None] * values))


RNG = np.random.default_rng(11)
W = RNG.dirichlet(np.ones(3), 4)  # four actions, three goods
RISKY = RNG.normal(size=(4, 3))  # short positions too
NEEDS = np.array([[0.5, 1.0, 0.0], [2.0, 0.25, 0.5], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
ORDERS = np.array([0.0, 0.3, 0.6, 1.0])
SHARES = np.array([0.2, 0.3, 0.5])
TEXTBOOK: dict[str, tuple[Loss, Callable[[Array, int], float]]] = {
    "linear": (LinearUtility(RISKY), lambda y, a: RISKY[a] @ y),
    "additive CES": (CES(RISKY, 0.5), lambda y, a: RISKY[a] @ y**0.5),
    "CES, substitutes": (CES(W, 0.5, 1.0), lambda y, a: (W[a] @ y**0.5) ** 2),
    "CES, complements": (
        CES(W, -2.0, 0.8, 0.05),
        lambda y, a: (W[a] @ np.maximum(y, 0.05) ** -2.0) ** -0.4,
    ),
    "CES, a floor": (
        CES(W, 2.0, v=1.0, y_min=0.3),
        lambda y, a: (W[a] @ np.maximum(y, 0.3) ** 2) ** 0.5,
    ),
    "Cobb-Douglas": (
        CobbDouglas(W, A=[1.0, 2.0, 3.0, 0.5]),
        lambda y, a: [1.0, 2.0, 3.0, 0.5][a] * math.prod(np.maximum(y, 0.01) ** W[a]),
    ),
    "Leontief": (
        Leontief(NEEDS),
        lambda y, a: min(v / n for v, n in zip(y, NEEDS[a], strict=True) if n > 0),
    ),
    "CARA": (CARA(RISKY, 1.5), lambda y, a: -math.exp(-1.5 * RISKY[a] @ y)),
    "mean-variance": (
        MeanVariance(RISKY, 2.5, 0.4),
        lambda y, a: RISKY[a] @ y - 2.5 / 2 * (RISKY[a] @ y - 0.4) ** 2,
    ),
    "quadratic": (MeanVariance(W, 0.7), lambda y, a: W[a] @ y - 0.35 * (W[a] @ y) ** 2),
    "newsvendor": (
        Newsvendor(ORDERS, 3.0, 1.0, coordinate=1, outcomes=3),
        lambda y, a: -3 * max(y[1] - ORDERS[a], 0) - max(ORDERS[a] - y[1], 0),
    ),
    "distance": (LpTarget(W, 1.5, SHARES), lambda y, a: -SHARES @ np.abs(y - W[a]) ** 1.5),
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_utility_in_its_own_units_is_the_textbook_formula(name: str) -> None:
    """A loss is in [0, 1], fills it, and is minus the utility in other units."""
    loss, rule = TEXTBOOK[name]
    outcomes = np.concatenate([random_outcomes(3), np.zeros((1, 3)), np.ones((1, 3))])
    expected = np.array([[rule(y, a) for a in range(4)] for y in outcomes])
    assert utility(loss, outcomes) == pytest.approx(expected, abs=1e-9)
    assert [float(end) for end in loss.range()] == pytest.approx([0, 1], abs=1e-9)


def drawn(name: str, actions: int, goods: int = 2, **parameters: Any) -> Loss:
    population = Population(np.random.default_rng(0), 3, actions, goods)
    loss: Loss = register.utility[name](population, **parameters)
    assert loss.offset.shape == (3, actions)
    low, high = loss.range()
    return loss if low.min() >= 0 and high.max() <= 1 else loss.normalised()


Y = np.concatenate([random_outcomes(2, 60), np.zeros((1, 2)), np.ones((1, 2))])
VALUE, COST, MOST = np.array([[0.25, 0.5, 1.0], [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]])
SOLD = MOST[:, None] * np.linspace(0, 1, 5)
OWN = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 0.0]])
BET, COIN = np.arange(1, 5) / 5, Y[:, 1, None]


def traded(sign: int) -> Array:
    """Value less price of one unit or two of either good, or nothing."""
    goods, units = [0, 0, 1, 0, 1], np.array([0, 1, 1, 2, 2])
    return np.asarray(np.maximum(0, sign * units * (VALUE[:, None] - Y[:, None, goods])))


def earned(slope: float) -> Array:
    """Price less cost, and less what the firm's own sales take off the price."""
    return np.asarray(SOLD * (Y[:, 1, None, None] - COST[:, None]) - slope * SOLD**2 / 2)


MARKETS: list[tuple[str, int, dict[str, Any], Array]] = [
    *(("trader", 5, {"value": VALUE, "size": 2.0 * i}, traded(i)) for i in (1, -1)),
    *(
        ("firm", 5, {"cost": COST, "capacity": MOST, "slope": s, "coordinate": 1}, earned(s))
        for s in (0.0, 0.3)
    ),
    ("growth", 3, {"weights": OWN, "low": -0.5, "high": 1.0}, np.log1p((1.5 * Y - 0.5) @ OWN.T)),
    ("bettor", 4, {"coordinate": 1}, COIN * np.log(BET) + (1 - COIN) * np.log(1 - BET)),
]


@pytest.mark.parametrize(("name", "actions", "parameters", "expected"), MARKETS)
def test_gains_are_their_formula(name: str, actions: int, parameters: Any, expected: Array) -> None:
    got = utility(drawn(name, actions, **parameters), Y)
    wanted = np.broadcast_to(expected.reshape(62, -1, actions), got.shape)
    assert got == pytest.approx(wanted, abs=1e-12)


def test_buyers_gain_their_value_less_the_price_of_an_arm() -> None:
    offers = random_outcomes(4)
    units, prices = offers[:, None, ::2], offers[:, None, 1::2]
    got = utility(drawn("buyer", 2, goods=4, value=VALUE), offers)
    assert got == pytest.approx(VALUE[:, None] * units - prices)


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
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: CES(ONES, -1.0), "rho = -1: must be positive; .* below 0 give v and y_min"),
    (lambda: CES(ONES, NAN), "rho = nan: give finite numbers"),
    (lambda: CES(np.ones((2, 2, 2)), [0.5, -0.5]), "rho = -0.5: must be positive"),
    (lambda: CES(ONES, 0.0, 1.0), "rho = 0: too near 0; use Cobb-Douglas"),
    (lambda: CES(ONES, 1e-9, 1.0), "rho = 1e-09: too near 0; use Cobb-Douglas"),
    (lambda: CES(ONES, -1.0, 1.0), "rho = -1: below 0 it needs y_min above 0, such as y_min ="),
    (lambda: CES(ONES, 0.5, 0.0), "v = 0: must be positive"),
    (lambda: CES(ONES, 0.5, 1.0, 1.0), r"y_min = 1: must lie in \[0, 1\)"),
    (lambda: CES(ONES, 0.5, 1.0, -0.1), r"y_min = -0.1: must lie in \[0, 1\)"),
    (lambda: CES(ONES, 0.5, 1.0, [0.1, 0.2]), "y_min must be one number for all agents"),
    (lambda: CES(-ONES, 0.5, 1.0), "weights = -1: with v they must be at least 0"),
    (lambda: CES([[1, 1], [0, 0]], -1.0, 1.0, 0.1), "weights = 0: must be positive for some good"),
    (lambda: CES(9 * ONES, 0.001, 1.0), "overflows; make each action's weights sum to 1"),
    (lambda: CES(ONES, -9.0, 1.0, 1e-300), "overflows; .* raise y_min"),
    (lambda: CES([1.0, 1.0], 0.5), r"weights have shape \(2,\); give actions x goods"),
    (lambda: CES([[1.0, 1.0], [1.0]], 0.5), r"weights = .*: .* equally long"),
    (lambda: CES(np.ones((3, 2, 2)), [0.5, 0.6]), r"weights .* stack agents \(3,\) and \(2,\)"),
    (lambda: CobbDouglas(-ONES), "alpha = -1: must be at least 0"),
    (lambda: CobbDouglas(ONES, 0.0), "A = 0: must be positive"),
    (lambda: CobbDouglas(np.empty((0, 2))), r"alpha have shape \(0, 2\); give actions x goods"),
    (lambda: Leontief([[1.0, -1.0]]), "a = -1: must be at least 0"),
    (lambda: Leontief([[1.0, 0.0], [0.0, 0.0]]), "a = 0: each action must need some good"),
    (lambda: Leontief([[1e-310, 1e-310]]), "overflows; raise the smallest positive a"),
    (lambda: CARA(ONES, 0.0), "risk_aversion = 0: must be at least 1e-06; use linear utility"),
    (lambda: CARA(-ONES, 1000.0), "overflows; lower risk_aversion"),
    (lambda: MeanVariance(ONES, 1.0, INF), "reference = inf: give finite numbers"),
    (lambda: Newsvendor([0.5], -1.0, 1.0), "underage = -1: must be at least 0"),
    (lambda: Newsvendor([0.5], 0.0, [1.0, 0.0]), "underage = 0: must be positive where overage"),
    (lambda: Newsvendor([0.5, -1.5], 1.0, 1.0), "orders = -1.5: must be at least 0"),
    (lambda: Newsvendor(0.5, 1.0, 1.0), r"orders have shape \(\); give actions"),
    (lambda: Newsvendor([0.5], 1.0, 1.0, coordinate=0.0), "coordinate is 0.0; give a whole"),  # type: ignore[arg-type]
    (lambda: LpTarget(ONES, 2.0, [1.0, -1.0]), "weights = -1: must be at least 0"),
    (lambda: LpTarget(ONES, 2.0, [1.0, 1.0, 1.0]), "give one weight for each good"),
    (lambda: drawn("trader", 4, value=0.5), "4 actions for 2 goods"),
    (lambda: drawn("trader", 3, value=1.5), "value"),
    (lambda: drawn("firm", 3, capacity=0.0), "capacity"),
    (lambda: drawn("firm", 3, slope=-1.0), "slope"),
    (lambda: drawn("firm", 3, coordinate=2), "is 2; give a whole number of at least 0 and below 2"),
    (lambda: drawn("bettor", 3, coordinate=-1), "coordinate is -1"),
    (lambda: drawn("depositor", 2, early=1.2, late=2.0, coordinate=5), "coordinate is 5"),
    (lambda: drawn("depositor", 3, early=1.2, late=2.0), "3 actions; give 2"),
    (lambda: drawn("growth", 2, weights=[[2.0, 0.0], [0, 0]], low=-0.5, high=0.5), "ruins"),
    (lambda: drawn("affine", 2, weights=[[1.0, 0.0]]), "weights have shape"),
    (lambda: drawn("affine", 2, weights=np.eye(2), gains=[1.0]), "gains: give 2 numbers"),
]


@pytest.mark.parametrize(("make", "says"), REFUSED, ids=range(len(REFUSED)))
def test_parameters_outside_their_domain_are_refused(make: Callable[[], Any], says: str) -> None:
    """The error is one line with the parameter, the value and the cure."""
    with pytest.raises(ValueError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)
