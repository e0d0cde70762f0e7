"""Utilities against their textbooks, those of whose actions a market clears too."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike

from regretless.agents.utilities import forms
from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief, Newsvendor
from regretless.agents.utilities.populations import Population
from regretless.agents.utilities.trading import _write_depositor_losses
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, unique_losses


def random_outcomes(goods: int, count: int = 50) -> Array:
    """Return outcomes (count + 2, goods), the last two with nothing and with all of every good."""
    inner = np.random.default_rng(goods).random((count, goods))
    return np.concatenate([inner, np.zeros((1, goods)), np.ones((1, goods))])


def utility_in_own_units(loss: Loss, outcomes: Array) -> Array:
    """Return the utility (T, ..., A) of a loss, which must lie in [0, 1]."""
    losses = loss.losses(outcomes)
    assert losses.min() >= -1e-9
    assert losses.max() <= 1 + 1e-9
    return np.asarray(-(loss.unit_offset[..., None] + loss.unit_scale[..., None] * losses))


RNG = np.random.default_rng(11)
SHARES_BY_ACTION = RNG.dirichlet(np.ones(3), 4)  # four actions, three goods
POSITIONS = RNG.normal(size=(4, 3))  # long and short
NEEDS = np.array([[0.5, 1.0, 0.0], [2.0, 0.25, 0.5], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
SCALES = np.array([1.0, 2.0, 3.0, 0.5])
ORDERS = np.array([0.0, 0.3, 0.6, 1.0])
WEIGHTS_OF_GOODS = np.array([0.2, 0.3, 0.5])


def units_that_suffice(y: Array) -> Array:
    """Return how many units (T, 4) can be made: the least of y / need over the goods needed."""
    amounts = np.broadcast_to(y[:, None], (len(y), *NEEDS.shape))
    units = np.full(amounts.shape, np.inf)
    np.divide(amounts, NEEDS, out=units, where=NEEDS > 0)
    return np.asarray(units.min(-1))


def cost_of_orders(y: Array) -> Array:
    """Charge 3 for each unit of demand, the second good, that is missing, and 1 for each left."""
    demand = y[:, 1, None]
    return np.asarray(3 * np.maximum(demand - ORDERS, 0) + np.maximum(ORDERS - demand, 0))


# by name: a loss and the textbook's utility (T, 4) of outcomes y (T, 3)
TEXTBOOK: dict[str, tuple[Loss, Callable[[Array], Array]]] = {
    "linear": (
        forms.LinearUtility(POSITIONS),
        lambda y: y @ POSITIONS.T,
    ),
    "separable CES": (
        CES(POSITIONS, 0.5),
        lambda y: y**0.5 @ POSITIONS.T,
    ),
    "CES of constant returns": (
        CES(SHARES_BY_ACTION, 0.5, 1.0),
        lambda y: (y**0.5 @ SHARES_BY_ACTION.T) ** 2,
    ),
    "CES of complements": (
        CES(SHARES_BY_ACTION, -2.0, 0.8, 0.05),
        lambda y: (np.maximum(y, 0.05) ** -2.0 @ SHARES_BY_ACTION.T) ** -0.4,
    ),
    "CES that is convex": (
        CES(SHARES_BY_ACTION, 2.0, v=1.0, y_min=0.3),
        lambda y: (np.maximum(y, 0.3) ** 2 @ SHARES_BY_ACTION.T) ** 0.5,
    ),
    "Cobb-Douglas": (
        CobbDouglas(SHARES_BY_ACTION, A=SCALES),
        lambda y: SCALES * (np.maximum(y[:, None], 0.01) ** SHARES_BY_ACTION).prod(-1),
    ),
    "Leontief": (
        Leontief(NEEDS),
        units_that_suffice,
    ),
    "CARA": (
        forms.CARA(POSITIONS, 1.5),
        lambda y: -np.exp(-1.5 * (y @ POSITIONS.T)),
    ),
    "mean-variance around a reference": (
        forms.MeanVariance(POSITIONS, 2.5, 0.4),
        lambda y: y @ POSITIONS.T - 2.5 / 2 * (y @ POSITIONS.T - 0.4) ** 2,
    ),
    "mean-variance around zero": (
        forms.MeanVariance(SHARES_BY_ACTION, 0.7),
        lambda y: y @ SHARES_BY_ACTION.T - 0.7 / 2 * (y @ SHARES_BY_ACTION.T) ** 2,
    ),
    "newsvendor": (
        Newsvendor(ORDERS, 3.0, 1.0, coordinate=1, outcomes=3),
        lambda y: -cost_of_orders(y),
    ),
    "distance to a target": (
        forms.LpTarget(SHARES_BY_ACTION, 1.5, WEIGHTS_OF_GOODS),
        lambda y: -(np.abs(y[:, None] - SHARES_BY_ACTION) ** 1.5 @ WEIGHTS_OF_GOODS),
    ),
}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_utility_in_its_own_units_is_the_textbook_formula(name: str) -> None:
    loss, formula = TEXTBOOK[name]
    outcomes = random_outcomes(3)
    assert utility_in_own_units(loss, outcomes) == pytest.approx(formula(outcomes), abs=1e-9)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_a_loss_fills_the_interval_from_0_to_1(name: str) -> None:
    loss, _ = TEXTBOOK[name]
    smallest_loss, largest_loss = loss.range()
    assert float(smallest_loss) == pytest.approx(0, abs=1e-9)
    assert float(largest_loss) == pytest.approx(1, abs=1e-9)


def population_loss(name: str, actions: int, goods: int = 2, **parameters: object) -> Loss:
    """Return the losses of three agents of a registered utility, which lie in [0, 1]."""
    population = Population(np.random.default_rng(0), 3, actions, goods)
    loss: Loss = register.utility[name](population, **parameters)
    assert loss.offset.shape == (3, actions)
    smallest_loss, largest_loss = loss.range()
    if smallest_loss.min() >= 0 and largest_loss.max() <= 1:
        return loss
    return loss.normalised()


def assert_gains(loss: Loss, outcomes: Array, expected: Array) -> None:
    """Compare gains with those expected (T, 3, A), or (T, 1, A) where all agents' are the same."""
    gains = utility_in_own_units(loss, outcomes)
    assert gains == pytest.approx(np.broadcast_to(expected, gains.shape), abs=1e-12)


TWO_GOODS = random_outcomes(2, 60)
VALUES = np.array([[0.25, 0.5, 1.0], [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]])
AGENTS_VALUE, AGENTS_COST, AGENTS_CAPACITY = VALUES


@pytest.mark.parametrize("direction", [1, -1], ids=["buys", "sells"])
def test_a_trader_gains_its_value_less_the_price_of_each_unit(direction: int) -> None:
    """It does nothing, or trades one or two units of either good; no trade at a loss."""
    value = AGENTS_VALUE[:, None]
    good_of_action = [0, 0, 1, 0, 1]
    units_of_action = np.array([0, 1, 1, 2, 2])
    prices = TWO_GOODS[:, None, good_of_action]
    loss = population_loss("trader", 5, value=AGENTS_VALUE, size=2.0 * direction)
    expected = np.maximum(0, direction * units_of_action * (value - prices))
    assert_gains(loss, TWO_GOODS, expected)


@pytest.mark.parametrize("slope", [0.0, 0.3])
def test_a_firm_earns_its_margin_less_what_its_own_sales_take_off_the_price(slope: float) -> None:
    cost = AGENTS_COST[:, None]
    sales = AGENTS_CAPACITY[:, None] * np.linspace(0, 1, 5)
    price = TWO_GOODS[:, 1, None, None]
    loss = population_loss(
        "firm", 5, cost=AGENTS_COST, capacity=AGENTS_CAPACITY, coordinate=1, slope=slope
    )
    assert_gains(loss, TWO_GOODS, sales * (price - cost) - slope * sales**2 / 2)


def test_an_investor_gains_the_growth_of_its_wealth() -> None:
    portfolios = np.array([[1.0, 0.0], [0.5, 0.25], [0.0, 0.0]])
    loss = population_loss("growth", 3, weights=portfolios, low=-0.5, high=1.0)
    returns = 1.5 * TWO_GOODS - 0.5  # from -0.5 to 1
    assert_gains(loss, TWO_GOODS, np.log1p(returns @ portfolios.T)[:, None])


def test_a_bettor_is_paid_by_the_logarithmic_rule() -> None:
    probability = TWO_GOODS[:, 1, None, None]
    bet = np.arange(1, 5) / 5
    loss = population_loss("bettor", 4, coordinate=1)
    expected = probability * np.log(bet) + (1 - probability) * np.log(1 - bet)
    assert_gains(loss, TWO_GOODS, expected)


def test_a_buyer_gains_the_value_of_an_offer_less_its_price() -> None:
    """The outcome is a probability of the good and a payment for each offer."""
    offers = random_outcomes(4)
    probabilities = offers[:, None, ::2]
    payments = offers[:, None, 1::2]
    loss = population_loss("buyer", 2, goods=4, value=AGENTS_VALUE)
    assert_gains(loss, offers, AGENTS_VALUE[:, None] * probabilities - payments)


EARLY = 1.25
LATE = 2.0  # what a depositor is promised who leaves, and who waits
SHARE_THAT_LEAVES = np.linspace(0, 1, 41)


def depositor_loss() -> Loss:
    return population_loss("depositor", 2, goods=1, early=EARLY, late=LATE)


def payments_of_the_bank(share_that_leaves: float) -> tuple[float, float]:
    """Return what a bank that serves who leaves first pays to who waits and to who leaves."""
    paid_early = EARLY * share_that_leaves
    if paid_early > 1:
        return 0.0, 1 / share_that_leaves
    return LATE * (1 - paid_early) / (1 - share_that_leaves), EARLY


def test_depositors_have_one_loss_in_common() -> None:
    distinct, *_ = unique_losses(depositor_loss())
    assert len(distinct) == 1


def test_depositors_gain_what_the_bank_has_left() -> None:
    gains = utility_in_own_units(depositor_loss(), SHARE_THAT_LEAVES[:, None])[:, 0]
    expected = [payments_of_the_bank(share) for share in SHARE_THAT_LEAVES]
    assert gains == pytest.approx(np.array(expected), abs=1e-12)


def test_losses_of_depositors_are_what_the_greatest_payment_leaves_of_it() -> None:
    """Of the coordinate that counts the share who leave."""
    outcomes = np.column_stack([np.full(len(SHARE_THAT_LEAVES), 0.9), SHARE_THAT_LEAVES])
    losses = np.empty((len(outcomes), 1, 2))

    _write_depositor_losses(outcomes, 1, EARLY, LATE, losses)

    payments = np.array([payments_of_the_bank(share) for share in SHARE_THAT_LEAVES])
    assert losses[:, 0] == pytest.approx(1 - payments / LATE, abs=1e-12)


def test_a_depositor_leaves_exactly_if_so_many_others_leave_that_the_bank_fails() -> None:
    gains = utility_in_own_units(depositor_loss(), SHARE_THAT_LEAVES[:, None])[:, 0]
    gain_of_waiting, gain_of_leaving = gains.T
    is_a_run = SHARE_THAT_LEAVES > (LATE - EARLY) / (EARLY * (LATE - 1)) + 1e-9
    assert (gain_of_leaving[is_a_run] > gain_of_waiting[is_a_run]).all()
    assert (gain_of_waiting[~is_a_run] >= gain_of_leaving[~is_a_run] - 1e-12).all()


def test_the_loss_of_depositors_is_no_steeper_than_it_says() -> None:
    loss = depositor_loss()
    losses = loss.losses(SHARE_THAT_LEAVES[:, None])[:, 0]
    slopes = np.abs(np.diff(losses, axis=0)) * 40
    assert slopes.max() <= loss.lipschitz().max() + 1e-9


ONES = np.ones((2, 2))
NAN = float("nan")


def assert_refused(
    message: str, make: Callable[..., Loss], *values: object, **named: object
) -> None:
    """Check that parameters are refused in one line that matches the message."""
    with pytest.raises(ValueError, match=message) as refusal:
        make(*values, **named)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("weights", "exponents", "message"),
    [
        (ONES, [-1.0], "rho = -1: must be positive; .* below 0 give v and y_min"),
        (ONES, [NAN], "rho = nan: give finite numbers"),
        (np.ones((2, 2, 2)), [[0.5, -0.5]], "rho = -0.5: must be positive"),
        (ONES, [0.0, 1.0], "rho = 0: too near 0; use Cobb-Douglas"),
        (ONES, [1e-9, 1.0], "rho = 1e-09: too near 0; use Cobb-Douglas"),
        (ONES, [0.5, 0.0], "v = 0: must be positive"),
        (ONES, [0.5, 1.0, 1.0], r"y_min = 1: must lie in \[0, 1\)"),
        (ONES, [0.5, 1.0, -0.1], r"y_min = -0.1: must lie in \[0, 1\)"),
        (ONES, [0.5, 1.0, [0.1, 0.2]], "y_min must be one number for all agents"),
        (-ONES, [0.5, 1.0], "weights = -1: with v they must be at least 0"),
        ([[1, 1], [0, 0]], [-1.0, 1.0, 0.1], "weights = 0: must be positive for some good"),
        (9 * ONES, [0.001, 1.0], "overflows; make each action's weights sum to 1"),
        (ONES, [-9.0, 1.0, 1e-300], "overflows; .* raise y_min"),
        ([1.0, 1.0], [0.5], r"weights have shape \(2,\); give actions x goods"),
        ([[1.0, 1.0], [1.0]], [0.5], r"weights = .*: .* equally long"),
        (np.ones((3, 2, 2)), [[0.5, 0.6]], r"weights .* stack agents \(3,\) and \(2,\)"),
    ],
)
def test_bad_parameters_of_ces_are_refused(
    weights: ArrayLike, exponents: list[ArrayLike], message: str
) -> None:
    """Exponents are rho, v and y_min, the last two where they are given."""
    assert_refused(message, CES, weights, *exponents)


def test_a_cobb_douglas_scale_of_zero_is_refused() -> None:
    assert_refused("A = 0: must be positive", CobbDouglas, ONES, 0.0)


def test_cobb_douglas_without_actions_is_refused() -> None:
    message = r"alpha have shape \(0, 2\); give actions x goods"
    assert_refused(message, CobbDouglas, np.empty((0, 2)))


def test_a_leontief_action_that_needs_nothing_is_refused() -> None:
    message = "a = 0: each action must need some good"
    assert_refused(message, Leontief, [[1.0, 0.0], [0.0, 0.0]])


def test_a_leontief_need_so_small_that_it_overflows_is_refused() -> None:
    assert_refused("overflows; raise the smallest positive a", Leontief, [[1e-310, 1e-310]])


def test_a_risk_aversion_so_large_that_cara_overflows_is_refused() -> None:
    assert_refused("overflows; lower risk_aversion", forms.CARA, -ONES, 1000.0)


def test_an_infinite_reference_of_mean_variance_is_refused() -> None:
    message = "reference = inf: give finite numbers"
    assert_refused(message, forms.MeanVariance, ONES, 1.0, float("inf"))


def test_weights_of_a_target_for_more_goods_than_there_are_are_refused() -> None:
    message = "give one weight for each good"
    assert_refused(message, forms.LpTarget, ONES, 2.0, [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("orders", "underage", "message"),
    [
        ([0.5], -1.0, "underage = -1: must be at least 0"),
        ([0.5, -1.5], 1.0, "orders = -1.5: must be at least 0"),
        (0.5, 1.0, r"orders have shape \(\); give actions"),
    ],
)
def test_bad_orders_and_costs_of_a_newsvendor_are_refused(
    orders: ArrayLike, underage: float, message: str
) -> None:
    assert_refused(message, Newsvendor, orders, underage, 1.0)


def test_a_newsvendor_whose_coordinate_is_no_whole_number_is_refused() -> None:
    message = "coordinate is 0.0; give a whole"
    assert_refused(message, Newsvendor, [0.5], 1.0, 1.0, coordinate=0.0)


@pytest.mark.parametrize(
    ("utility", "actions", "parameters", "message"),
    [
        ("trader", 3, {"value": 1.5}, "value"),
        ("firm", 3, {"slope": -1.0}, "slope"),
        ("firm", 3, {"coordinate": 2}, "is 2; give a whole number of at least 0 and below 2"),
        ("bettor", 3, {"coordinate": -1}, "coordinate is -1"),
        ("depositor", 2, {"early": 1.2, "late": 2.0, "coordinate": 5}, "coordinate is 5"),
        ("depositor", 3, {"early": 1.2, "late": 2.0}, "3 actions; give 2"),
        ("growth", 2, {"weights": [[2.0, 0], [0, 0]], "low": -0.5, "high": 0.5}, "ruins"),
        ("affine", 2, {"weights": [[1.0, 0.0]]}, "weights have shape"),
        ("affine", 2, {"weights": np.eye(2), "gains": [1.0]}, "gains: give 2 numbers"),
    ],
)
def test_bad_parameters_of_a_registered_utility_are_refused(
    utility: str, actions: int, parameters: dict[str, object], message: str
) -> None:
    assert_refused(message, population_loss, utility, actions, **parameters)
