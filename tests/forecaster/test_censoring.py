"""Outcomes that are known to be at least so much: sales of what was sold out."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from regretless import OnlineOmnipredictor, UserError
from regretless.agents.utilities import MeanVariance, Newsvendor
from regretless.forecaster.online import CensoringWarning
from regretless.forecaster.online.censoring import mean_beyond
from regretless.market.core.arrays import Array
from regretless.market.records import Ensemble

ORDERS = np.linspace(0.0, 200.0, 41)
SCALE = {"demand": (0.0, 200.0)}
MODELS = {"mean": {"kind": "past-outcomes"}}  # all past outcomes alike
UNDERAGE = 4.0  # beside an overage of 1: the best order is the 80 % quantile


def make_server(*, underage: float = UNDERAGE, **options: object) -> OnlineOmnipredictor:
    store = Newsvendor(orders=ORDERS, underage=underage, overage=1.0)
    arguments = {"scale": SCALE, "models": MODELS} | options
    return OnlineOmnipredictor({"store": store}, **arguments)


def sell(server: OnlineOmnipredictor, demands: Array, *, tells_censoring: bool) -> list[float]:
    """Order each day what the server says, and tell it sales; return the orders."""
    orders = []
    for demand in demands:
        order = server.predict_one().act("store")
        sold = min(order, float(demand))
        is_sold_out = bool(demand >= order)
        server.learn_one({}, sold, censored=is_sold_out and tells_censoring)
        orders.append(order)
    return orders


@pytest.fixture
def demands() -> Array:
    return np.random.default_rng(3).normal(80.0, 15.0, 300)


@pytest.mark.parametrize("seed", [3, 5, 7])
def test_who_tells_what_was_sold_out_sees_demand_rise(seed: int) -> None:
    """Demand rises from 60 to 120; who takes sales for demand never learns of it.

    For some ninety days after the rise orders are up to 15 above the best one: the recalibration
    remembers that demand was above all forecasts, and of what was sold out it is not known how far.
    The last hundred days are beyond that.
    """
    rng = np.random.default_rng(seed)
    demands = np.concatenate([rng.normal(60.0, 10.0, 60), rng.normal(120.0, 10.0, 240)])
    newest_first = {"smoothing": {"kind": "past-outcomes", "rate": 0.1}}
    server = make_server(models=newest_first)
    server_of_sales = make_server(models=newest_first)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)
        orders = sell(server, demands, tells_censoring=True)
    orders_from_sales = sell(server_of_sales, demands, tells_censoring=False)
    best_order = 120.0 + 8.4  # the 80 % quantile
    assert np.mean(orders[-100:]) == pytest.approx(best_order, abs=4.0)
    assert np.mean(orders_from_sales[-100:]) < 90.0


def test_a_censored_outcome_is_redistributed_to_what_the_forecast_has_beyond_it() -> None:
    """The mean of 0.5 and 0.9 with weights 2 : 1, and 0.002 of an even part from 0.4 to 1."""
    forecast = Ensemble(np.array([[0.1], [0.3], [0.5], [0.9]]), np.array([0.4, 0.3, 0.2, 0.1]))
    mean = mean_beyond(np.array([0.4]), np.array([True]), forecast)
    expected = (0.998 * (0.2 * 0.5 + 0.1 * 0.9) + 0.002 * 0.7) / (0.998 * 0.3 + 0.002)
    assert mean[0] == pytest.approx(expected)


def test_beyond_everything_that_is_forecast_outcomes_are_even() -> None:
    forecast = Ensemble(np.array([[0.1], [0.3]]), np.array([0.5, 0.5]))
    mean = mean_beyond(np.array([0.6]), np.array([True]), forecast)
    assert mean[0] == pytest.approx(0.8)


def test_of_several_outcomes_those_that_are_known_stay() -> None:
    points = np.array([[0.2, 0.9], [0.8, 0.1], [0.9, 0.6]])
    forecast = Ensemble(points, np.full(3, 1 / 3))
    mean = mean_beyond(np.array([0.5, 0.3]), np.array([True, False]), forecast)
    assert mean[0] == pytest.approx(0.85, abs=0.01)
    assert mean[1] == 0.3


def test_nothing_is_guaranteed_once_an_outcome_was_censored() -> None:
    server = make_server()
    server.learn_one({}, 50.0)
    row = server.regrets().iloc[0]
    assert row["guarantee"] == "decision-swap"
    assert np.isfinite(row["bound"])
    server.learn_one({}, 50.0, censored=True)
    row = server.regrets().iloc[0]
    assert row["guarantee"] == "none"
    assert np.isnan(row["bound"])
    assert np.isnan(row["bound_from_variation"])
    assert server.counts["censored"] == 1


def test_a_row_of_censored_outcomes_is_said_once() -> None:
    server = make_server()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(25):
            server.learn_one({}, 50.0, censored=True)
    assert len(caught) == 1
    assert caught[0].category is CensoringWarning
    assert "last 10 outcomes were all censored" in str(caught[0].message)


def test_a_censored_outcome_may_come_late() -> None:
    """What lies beyond it is what is forecast when it comes; no slot is taken for that."""
    server = make_server()
    for demand in (60.0, 70.0, 80.0) * 5:
        server.learn_one({}, demand)
    server.predict_one(key="monday")
    server.learn_late("monday", 75.0, censored={"demand": True})
    assert server.counts["censored"] == 1
    assert server.regrets()["slots"].item() == 1
    assert server.predict_one().outcomes[:, 0].max() >= 80.0


def test_exploring_orders_are_larger_and_are_charged(demands: Array) -> None:
    server = make_server(exploring=0.2)
    costs = []
    explored = 0
    for demand in demands[:150].clip(0.0, 200.0):
        forecast = server.predict_one()
        order = forecast.act("store")
        if forecast.explores:
            explored += 1
            assert order >= min(forecast.quantile(0.95), 200.0)
        costs.append(UNDERAGE * max(demand - order, 0.0) + max(order - demand, 0.0))
        server.learn_one({}, demand)
    assert 15 <= explored <= 45
    assert server.regrets()["mean_loss"].item() == pytest.approx(np.mean(costs))
    assert server.regrets()["guarantee"].item() == "none"


def test_a_saved_server_goes_on_exploring_and_counting(tmp_path: Path, demands: Array) -> None:
    server = make_server(exploring=0.1)
    sell(server, demands[:40], tells_censoring=True)
    server.save(tmp_path / "server")
    again = OnlineOmnipredictor.load(tmp_path / "server")
    for one in (server, again):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CensoringWarning)
            sell(one, demands[40:60], tells_censoring=True)
    assert again.counts == server.counts
    assert again.regrets().equals(server.regrets())


def test_what_an_untaught_outcome_is_known_to_exceed_is_saved(
    tmp_path: Path, demands: Array
) -> None:
    """With outcomes ahead models are taught later; the file holds what they will be taught."""
    server = make_server(steps_ahead=3)
    for demand in demands[:30]:
        server.learn_one({}, min(float(demand), 90.0), censored=bool(demand >= 90.0))
    server.learn_one({}, 85.0, censored=True)
    server.save(tmp_path / "server")
    again = OnlineOmnipredictor.load(tmp_path / "server")
    assert again.predict_one().quantile(0.9) == server.predict_one().quantile(0.9)


def test_an_open_forecast_of_a_state_that_knows_no_limits_is_learned() -> None:
    server = make_server()
    server.learn_one({}, 60.0)
    server.predict_one(key="monday")
    older_state = server.state()
    del older_state["open"]["waiting"]["monday"]["limits"]
    again = make_server()
    again.restore(older_state)
    again.learn_late("monday", 70.0)
    assert again.counts["learned"] == 2


def test_what_cannot_be_meant_is_refused() -> None:
    server = make_server()
    with pytest.raises(UserError, match="censored = 'yes': give True where"):
        server.learn_one({}, 50.0, censored="yes")
    with pytest.raises(UserError, match="censored: no outcome 'sales'"):
        server.learn_one({}, 50.0, censored={"sales": True})
    assert server.counts["learned"] == 0
    with pytest.raises(UserError, match="exploring"):
        make_server(exploring=1.5)
    portfolio = MeanVariance([[0.0], [0.5], [1.0]], 1.0)
    with pytest.raises(UserError, match=r"losses\['fund'\] has no orders"):
        OnlineOmnipredictor({"fund": portfolio}, exploring=0.1)
