"""Beliefs about a price: a round by hand, and the bifurcation that is known."""

import math

import numpy as np
import pytest
from small_scenarios import make_scenario

from regretless import MarketModel, UserError, load
from regretless.market.core.arrays import Indices
from regretless.market.markets.heterogeneous_beliefs import HeterogeneousBeliefs
from regretless.market.records import Decision


def belief_market(**keys: object) -> HeterogeneousBeliefs:
    dotted_keys = {f"market.{key}": value for key, value in keys.items()}
    model = load("fundamentalists", **{"cohort.traders.count": 4}, **dotted_keys).build()
    market = model.game.market
    assert isinstance(market, HeterogeneousBeliefs)
    return market


def decision(*actions: int) -> Decision:
    choices: Indices = np.array(actions)
    return Decision(np.full((1, 2), 0.5), choices)


def test_price_and_earnings_of_a_round_are_those_by_hand() -> None:
    """One of four is a fundamentalist: x = 3/4 1.2 0.1 / 1.1, and both have earned by it."""
    market = belief_market(start=0.1)
    outcome = market.clear(np.full(2, 0.5), [decision(0, 1, 1, 1)])
    price = 0.75 * 1.2 * 0.1 / 1.1
    assert market.deviations == pytest.approx([price, 0.1])
    excess_return = price - 1.1 * 0.1
    of_fundamentalists = excess_return * (0.0 - 1.1 * 0.1) - 1.0
    of_chasers = excess_return * (1.2 * 0.1 - 1.1 * 0.1)
    expected = 0.5 + np.array([of_fundamentalists, of_chasers]) / 10.0
    assert outcome == pytest.approx(expected)


def test_profits_beyond_the_span_are_cut_and_counted() -> None:
    market = belief_market(span=0.1)
    outcome = market.clear(np.full(2, 0.5), [decision(0, 1, 1, 1)])
    assert outcome[0] == 0.0
    assert market.described()["clipped"] == 1.0


def play_to_rest(beta: float) -> MarketModel:
    """Play traders of a given intensity of choice until prices rest."""
    keys = {"cohort.traders.settings": {"beta": beta}, "log_agents": 1}
    model = load("fundamentalists", rounds=400, **keys).build(seed=2)
    model.run()
    return model


def test_below_the_bifurcation_the_price_is_the_fundamental_value() -> None:
    deviations = play_to_rest(2.0).rounds_frame()["deviation_0"].to_numpy()
    assert math.log(11) > 2.0
    assert abs(deviations[-50:]).max() < 1e-4


def test_above_the_bifurcation_it_rests_where_the_formula_says() -> None:
    deviations = play_to_rest(3.0).rounds_frame()["deviation_0"].to_numpy()
    rest_point = math.sqrt((1.0 - math.log(11) / 3.0) / (0.1 * 1.2))
    assert deviations[-200:].mean() == pytest.approx(rest_point, rel=0.04)


def test_a_belief_without_a_trend_is_refused() -> None:
    with pytest.raises(UserError, match=r"market.trend = \[1.2\]: give 2 numbers"):
        belief_market(trend=[1.2])


def test_beliefs_that_are_no_outcomes_are_refused() -> None:
    cohort = {"name": "traders", "utility": "linear", "actions": 3, "response": "hedge"}
    market = {"kind": "heterogeneous-beliefs", "trend": [0.0, 1.2]}
    with pytest.raises(UserError, match=r"cohort.traders.actions: give one for each outcome"):
        make_scenario(cohort, adversary={"kind": "iid", "outcomes": 2}, market=market).build()


def test_a_price_that_no_belief_brings_back_is_refused_in_one_line() -> None:
    model = load("fundamentalists", **{"market.trend": [0.0, 3.0]}).build()
    with pytest.raises(UserError, match=r"market.trend = \[0.0, 3.0\]: the price is .*lower the"):
        model.run()
