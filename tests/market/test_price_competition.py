"""Price competition: demand by hand, profits of profiles, and prices that are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_results import RunCommand
from small_scenarios import TomlTable, make_scenario

from regretless import UserError
from regretless.market.game.profiles import all_profiles, profile_strides
from regretless.market.markets.price_competition import MAX_PRESENCE_SETS, PriceCompetition
from regretless.market.records import Decision

SELLER: TomlTable = {"cost": 1.0, "quality": 2.0, "lowest": 1.4, "highest": 2.0}


def seller_cohort(name: str = "sellers", count: int = 2, actions: int = 4, **keys: Any) -> Any:
    parameters = SELLER | keys.pop("parameters", {})
    return {
        "name": name,
        "utility": "seller",
        "count": count,
        "actions": actions,
        "parameters": parameters,
        "response": "hedge",
        "measures": ["swap"],
        **keys,
    }


def price_market(*cohorts: Any, rounds: int = 20, **keys: Any) -> PriceCompetition:
    scenario = price_scenario(*cohorts, rounds=rounds, **keys)
    market = scenario.build(apart=True).game.market
    assert isinstance(market, PriceCompetition)
    return market


def price_scenario(*cohorts: Any, rounds: int = 20, **keys: Any) -> Any:
    return make_scenario(
        *(cohorts or (seller_cohort(),)),
        rounds=rounds,
        adversary={"kind": "iid", "outcomes": 1},
        market={"kind": "price-competition", **keys},
    )


def test_logit_shares_of_two_sellers_and_the_outside_good_by_hand() -> None:
    market = price_market(outside=0.0, differentiation=0.25)
    attractions = np.exp([(2 - 1.5) / 0.25, (2 - 1.6) / 0.25])
    expected = attractions / (attractions.sum() + 1.0)
    assert market.quantities(np.array([1.5, 1.6])) == pytest.approx(expected)


def test_without_an_outside_good_everybody_buys() -> None:
    market = price_market()
    assert market.quantities(np.array([1.5, 1.6])).sum() == pytest.approx(1.0)


def test_logit_demand_of_little_differentiation_does_not_overflow() -> None:
    market = price_market(differentiation=1e-4, outside=0.0)
    assert market.quantities(np.array([1.5, 1.6])) == pytest.approx([1.0, 0.0])


LINEAR = {"demand": "linear", "slope": 0.4, "cross": 0.2}
LINEAR_SELLER = seller_cohort(parameters={"quality": 0.8})


def test_linear_demand_by_hand() -> None:
    market = price_market(LINEAR_SELLER, **LINEAR)
    expected = [0.8 - 0.4 * 1.5 + 0.2 * 1.6, 0.8 - 0.4 * 1.6 + 0.2 * 1.5]
    assert market.quantities(np.array([1.5, 1.6])) == pytest.approx(expected)


def test_prices_of_linear_duopoly_are_those_of_the_closed_form() -> None:
    """(a + b c) / (2 b - d) at Nash, (a + (b - d) c) / (2 (b - d)) together."""
    market = price_market(LINEAR_SELLER, **LINEAR)
    assert market.nash_price() == pytest.approx([1.2 / 0.6] * 2, abs=1e-6)
    assert market.monopoly_price() == pytest.approx([1.0 / 0.4] * 2, abs=1e-4)


def test_linear_demand_of_more_than_one_unit_is_refused() -> None:
    with pytest.raises(UserError, match=r"sells at most 1 unit, not 1.6: divide"):
        price_market(seller_cohort(parameters={"quality": 3.0}), demand="linear")


@pytest.mark.parametrize(
    ("prices", "outside", "expected"),
    [
        ([1.5, 1.6], None, [1.0, 0.0]),
        ([1.5, 1.5], None, [0.5, 0.5]),
        ([1.5, 1.5], 0.6, [0.0, 0.0]),
        ([1.5, 1.5], 0.5, [0.5, 0.5]),
    ],
)
def test_the_cheapest_takes_all_and_ties_are_split(
    prices: list[float], outside: float | None, expected: list[float]
) -> None:
    market = price_market(demand="winner-takes-all", outside=outside)
    assert market.quantities(np.array(prices)) == pytest.approx(expected)


def test_prices_of_the_logit_duopoly_are_those_that_are_published() -> None:
    """Calvano et al. (2020), section III: the prices 1.473 and 1.925, and 0.223 and 0.337."""
    market = price_market(outside=0.0)
    assert market.nash_price() == pytest.approx([1.473] * 2, abs=5e-4)
    assert market.monopoly_price() == pytest.approx([1.925] * 2, abs=5e-4)
    assert market.landmark_profits == pytest.approx((0.223, 0.337), abs=5e-4)
    assert market.profit_gain(0.3375) == pytest.approx(1.0, abs=1e-3)


def test_winner_takes_all_has_no_smooth_best_response() -> None:
    market = price_market(demand="winner-takes-all")
    with pytest.raises(UserError, match="no smooth best response"):
        market.nash_price()
    assert market.profit_gain(0.1) is None


THREE_SELLERS = (
    seller_cohort("cheap", 1, 3),
    seller_cohort("dear", 2, 4, parameters={"cost": [1.0, 1.3], "quality": 2.2}),
)


@pytest.mark.parametrize("demand", ["logit", "winner-takes-all"])
def test_losses_of_profiles_are_minus_the_profits(demand: str) -> None:
    market = price_market(*THREE_SELLERS, demand=demand, outside=0.0)
    profiles = all_profiles(market.action_counts)
    losses = market.profile_losses(profiles)
    assert losses.shape == (3 * 4 * 4, 3)
    assert losses.min() >= 0
    assert losses.max() <= 1
    menus = [np.linspace(1.4, 2.0, count) for count in (3, 4, 4)]
    for profile, loss in zip(profiles, losses, strict=True):
        prices = np.array([menu[action] for menu, action in zip(menus, profile, strict=True)])
        profit = (prices - market.cost) * market.quantities(prices)
        scale = np.concatenate([cohort.loss.unit_scale for cohort in market.cohorts])
        offset = np.concatenate([cohort.loss.unit_offset for cohort in market.cohorts])
        assert offset + scale * loss == pytest.approx(-profit)


def test_profiles_are_computed_where_they_are_too_many_for_a_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = price_market(*THREE_SELLERS)
    monkeypatch.setattr("regretless.market.markets.price_competition.MAX_TABLE_ENTRIES", 10)
    computed = price_market(*THREE_SELLERS)
    profiles = all_profiles(listed.action_counts)
    assert computed.profile_losses(profiles) == pytest.approx(listed.profile_losses(profiles))
    for actions in profiles[::7]:
        deviations = listed._losses_of_deviations(actions)
        assert computed._losses_of_deviations(actions) == pytest.approx(deviations)


def test_profiles_are_numbered_with_the_last_agent_fastest() -> None:
    counts = np.array([2, 3, 4])
    profiles = all_profiles(counts)
    assert profiles[:2].tolist() == [[0, 0, 0], [0, 0, 1]]
    assert (profiles @ profile_strides(counts) == np.arange(24)).all()


def test_a_seller_who_is_absent_sells_nothing_and_moves_nobody() -> None:
    market = price_market(outside=0.0)
    quantities_without_rival = market.quantities(np.array([1.5, 1.6]), np.array([1.0, 0.0]))
    attraction = np.exp(0.5 / 0.25)
    assert quantities_without_rival == pytest.approx([attraction / (attraction + 1), 0.0])


def test_followers_respond_to_what_all_others_charge() -> None:
    market = price_market(outside=0.0)
    expected = market.expected_losses(0, np.array([1.0]))
    others_charge_most = [[action, 3] for action in range(4)]
    assert expected[0] == pytest.approx(market.profile_losses(np.array(others_charge_most))[:, 0])


def test_best_responses_to_the_forecast_play() -> None:
    scenario = price_scenario(seller_cohort(response="best-response"), outside=0.0)
    model = scenario.build()
    model.run()
    assert (model.agents_frame()["guarantee"] == "none").all()


def test_a_utility_without_prices_is_refused() -> None:
    cohort = {"name": "others", "utility": "linear", "actions": 2, "response": "hedge"}
    with pytest.raises(UserError, match='has no prices; use utility = "seller"'):
        price_scenario(cohort).build(apart=True)


def test_without_an_outside_good_a_line_says_that_there_is_no_monopoly_price() -> None:
    market = price_market()
    assert market.nash_price() == pytest.approx(np.full(2, 1.5), abs=1e-6)  # cost + 2 mu
    with pytest.raises(UserError, match=r"market\.outside"):
        market.monopoly_price()
    assert market.landmark_profits is None
    assert "no profit gain" in market.summary()


def test_offers_that_are_equal_in_decimals_share_the_buyers() -> None:
    market = price_market(demand="winner-takes-all", outside=0.1)
    market.quality = np.array([0.3, 0.4])
    assert 0.3 - 0.1 != 0.4 - 0.2
    assert market.quantities(np.array([0.1, 0.2])).tolist() == [0.5, 0.5]
    market.quality = np.array([0.3, 0.3])
    assert 0.3 - 0.2 < 0.1
    assert market.quantities(np.array([0.2, 0.2])).tolist() == [0.5, 0.5]


def test_linear_demand_may_not_exceed_one_unit_whoever_is_absent() -> None:
    """Without the cheap rival the mean price of the others is that of the dear one."""
    menus = [(1.0, 1.1), (1.0, 1.1), (2.8, 3.0)]
    sellers = []
    for number, (lowest, highest) in enumerate(menus):
        parameters = {"cost": 0.5, "quality": 0.8, "lowest": lowest, "highest": highest}
        sellers.append(seller_cohort(name=f"seller-{number}", count=1, parameters=parameters))
    keys = {"demand": "linear", "slope": 0.8}
    with pytest.raises(UserError, match="at most 1 unit"):
        price_market(*sellers, cross=0.45, **keys)
    market = price_market(*sellers, cross=0.3, **keys)
    prices = np.array([1.0, 1.0, 3.0])
    assert market.quantities(prices, np.array([1.0, 0.0, 1.0])).max() <= 1


def test_who_is_absent_leaves_room_however_strong_the_absent_seller_is() -> None:
    weak = seller_cohort("weak", 1, parameters={"quality": 0.5})
    strong = seller_cohort("strong", 1, parameters={"quality": 2.0})
    market = price_market(weak, strong, differentiation=0.001)
    prices = np.array([1.5, 1.5])
    assert market.quantities(prices, np.array([1.0, 0.0])) == pytest.approx([1.0, 0.0])
    assert market.quantities(prices, np.array([0.0, 0.0])) == pytest.approx([0.0, 0.0])


def test_the_profit_gain_has_the_landmarks_of_the_sellers_that_were_there() -> None:
    """The third seller is there in one round of three, each time all at the prices of a monopoly.

    With landmarks of all three, what two sellers share would be more than a monopoly's profit.
    """
    menus = {"lowest": [1.2], "highest": [2.2]}
    cohorts = [seller_cohort(name, 1, 2, parameters=menus) for name in ("a", "b", "c")]
    market = price_market(*cohorts, outside=0.0)
    trio = np.ones(3)
    pair = np.array([1.0, 1.0, 0.0])
    earned = []
    for present in (trio, pair, pair):
        highest = Decision(strategy=None, actions=np.array([1]))
        decisions = [highest, highest, highest if present is trio else None]
        market.clear(np.zeros(1), decisions)
        earned.append(market.profits(np.full(3, 2.2), present).sum())
    at_nash = []
    at_monopoly = []
    for present in (trio, pair, pair):
        at_nash.append(market.profits(market.nash_price(present), present).sum())
        at_monopoly.append(market.profits(market.monopoly_price(present), present).sum())
    gain = (sum(earned) - sum(at_nash)) / (sum(at_monopoly) - sum(at_nash))
    assert market.described()["profit_gain"] == pytest.approx(gain)
    assert f"{100 * gain:.0f} % of the way from Nash to monopoly profit" in market.summary()
    assert "of those present" in market.summary()


def test_landmarks_of_those_present_are_those_of_a_market_of_them_alone() -> None:
    cohorts = [seller_cohort("cheap", 2), seller_cohort("dear", 1, parameters={"cost": 1.2})]
    all_three = price_market(*cohorts, outside=0.0)
    two = price_market(seller_cohort("cheap", 1), cohorts[1], outside=0.0)
    present = np.array([0.0, 1.0, 1.0])
    assert all_three.nash_price(present)[1:] == pytest.approx(two.nash_price(), abs=1e-6)
    assert all_three.monopoly_price(present)[1:] == pytest.approx(two.monopoly_price(), abs=1e-5)


def test_of_too_many_sets_of_sellers_there_is_no_profit_gain_and_a_line_says_so() -> None:
    market = price_market(seller_cohort("many", 6), outside=0.0)
    for number in range(1, MAX_PRESENCE_SETS + 8):
        actions = np.array([int(digit) - 1 for digit in f"{number:06b}"])
        market.clear(np.zeros(1), [Decision(strategy=None, actions=actions)])
    assert market.described()["profit_gain"] is None
    assert "no profit gain, since more than 32 different sets of sellers" in market.summary()


def test_a_seller_alone_has_no_profit_gain() -> None:
    """Its best price is a monopoly's and Nash's at once."""
    market = price_market(seller_cohort("here", 1), seller_cohort("nowhere", 1), outside=0.0)
    assert market.described()["profit_gain"] is None
    market.clear(np.zeros(1), [Decision(strategy=None, actions=np.array([1])), None])
    assert market.described()["profit_gain"] is None
    assert "no profit gain, since no two sellers" in market.summary()


def test_the_log_of_sales_has_price_quantity_cost_and_the_chance_of_each_price() -> None:
    learner = seller_cohort("learner", count=1)
    q_learner = seller_cohort(
        "q-learner", count=1, actions=3, response="q-learning", settings={"epsilon": 0.3}
    )
    model = price_scenario(learner, q_learner, rounds=200, sales=True).build(seed=0)
    model.run()
    sales = model.sales_frame()
    rounds = model.rounds_frame()
    assert len(sales) == 400
    assert sales["cost"].unique().tolist() == [1.0]
    for agent, of_agent in sales.groupby("agent"):
        assert of_agent["price"].tolist() == rounds[f"price_{agent - 1}"].tolist()
        assert of_agent["quantity"].tolist() == rounds[f"quantity_{agent - 1}"].tolist()
    chances = sales.filter(regex=r"chance_\d").to_numpy()
    assert np.nansum(chances, axis=1) == pytest.approx(1.0)
    # A Q-learner explores with probability 0.3, which it divides evenly among its three prices.
    of_q_learner = sales[sales["agent"] == 2]
    assert set(of_q_learner["chance"].round(9)) == {0.1, 0.8}
    assert (of_q_learner["chance"] > 0.5).mean() == pytest.approx(0.8, abs=0.1)
    assert of_q_learner["chance_3"].isna().all()
    # Hedge begins with an even mixture.
    assert sales["chance"].iloc[0] == 0.25


def test_who_is_absent_has_no_row_in_the_log_of_sales() -> None:
    staying = seller_cohort("staying", count=1)
    leaving = seller_cohort("leaving", count=1, exits=5, response="q-learning")
    model = price_scenario(staying, leaving, rounds=10, sales=True).build(seed=0)
    model.run()
    sales = model.sales_frame()
    assert sales["agent"].value_counts().to_dict() == {1: 10, 2: 5}
    assert (sales["chance"] > 0).all()


def test_sales_are_logged_only_where_they_are_asked_for() -> None:
    model = price_scenario(rounds=5).build(seed=0)
    model.run()
    assert model.sales_frame().empty


def test_a_run_of_sellers_is_audited_from_its_log_of_sales(
    working_folder: Path, run_command: RunCommand
) -> None:
    command = ["run", "pricing-algorithms", "--rounds", "300", "--set", "market.sales=true"]
    command += ["--set", "logs=full", "--out", "runs/sellers"]
    assert run_command(*command).status == 0
    log = working_folder / "runs/sellers/sales.parquet"
    audited = run_command(
        *["audit", log, "--price", "price", "--quantity", "quantity", "--cost", "cost"],
        *["--propensity", "chance", "--agent", "agent"],
    )
    assert audited.status == 0
    assert "1: " in audited.out
    assert "2: " in audited.out
