"""Several open forecasts: late outcomes in any order, missing ones, and forecasts steps ahead."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import OnlineOmnipredictor, UserError, external_regret, swap_regret
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.models import LastValue, LeastSquares, SeasonalNaive
from regretless.forecaster.models.pool import ROUNDS_TO_TAKE_OVER
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear

ORDERS = [0.0, 25.0, 50.0, 75.0, 100.0]
UNDERAGE = 3.0
HIGHEST_COST = UNDERAGE * 100.0
SIMPLE_MODELS = {
    "mean": "running-mean",
    "last": "last-value",
    "season": {"kind": "seasonal-naive", "period": 3},
}


LAST_VALUE = {"kind": "past-outcomes", "rate": 1.0}  # is certain of it


def make_server(**options: object) -> OnlineOmnipredictor:
    """Make a server of one store whose demand lies between 0 and 100."""
    store = Newsvendor(orders=ORDERS, underage=UNDERAGE, overage=1.0)
    settings_of_server = {"models": SIMPLE_MODELS} | options
    return OnlineOmnipredictor(
        {"store": store}, scale={"demand": (0.0, 100.0)}, **settings_of_server
    )


def make_followed_server(model: object, **options: object) -> OnlineOmnipredictor:
    """Make a server that broadcasts what its only model predicts."""
    return make_server(models={"only": model}, **options)


def costs_of_all_orders(demand: float) -> Array:
    orders = np.array(ORDERS)
    return UNDERAGE * np.maximum(demand - orders, 0) + np.maximum(orders - demand, 0)


def expected_demand(forecast: object) -> float:
    """Return the mean of the demand that is forecast."""
    return float(forecast.mean)  # type: ignore[attr-defined]


def test_two_open_forecasts_are_learned_one_after_the_other() -> None:
    server = make_server()
    server.predict_one({"weekday": 1}, key="monday")
    server.predict_one({"weekday": 1}, key="tuesday")

    server.learn_late("monday", 40.0)
    server.learn_late("tuesday", 60.0)

    assert server.counts["learned"] == server.counts["late"] == 2
    assert server.regrets()["rounds"].item() == 2
    assert server.regrets()["slots"].item() == 2


@dataclass
class PlainReference:
    """What a server must have counted, from the orders that it told."""

    costs: list[Array] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    missing: int = 0

    def learn(self, order: float, demand: float | None) -> None:
        if demand is None:
            self.missing += 1
        else:
            self.costs.append(costs_of_all_orders(demand))
            self.actions.append(ORDERS.index(order))


demands = st.one_of(st.none(), st.floats(0.0, 100.0))
# A step opens a forecast, or brings the outcome of one that is open, at a place among all open.
steps = st.lists(st.tuples(st.booleans(), st.integers(0, 30), demands), min_size=1, max_size=40)


@settings(max_examples=25, deadline=None)
@given(steps)
def test_counts_ledger_and_losses_are_those_of_a_plain_reference(
    steps: list[tuple[bool, int, float | None]],
) -> None:
    server = make_server()
    reference = PlainReference()
    open_orders: dict[str, float] = {}
    most_open = 1
    late = 0
    for number, (opens, position, demand) in enumerate(steps):
        if opens or not open_orders:
            forecast = server.predict_one({"weekday": number % 7}, key=number)
            open_orders[str(number)] = forecast.act("store")
            most_open = max(most_open, len(open_orders))
        else:
            key = sorted(open_orders)[position % len(open_orders)]
            server.learn_late(key, demand)
            reference.learn(open_orders.pop(key), demand)
            late += demand is not None

    rounds = len(reference.costs)
    assert server.counts["learned"] == server.counts["late"] == late == rounds
    assert server.counts["missing"] == reference.missing
    if not rounds:
        return
    row = server.regrets().iloc[0]
    costs = np.array(reference.costs)
    actions = np.array(reference.actions)
    assert row["rounds"] == rounds
    assert row["slots"] == most_open
    assert row["mean_loss"] == pytest.approx(costs[np.arange(rounds), actions].mean(), abs=1e-9)
    log = costs / HIGHEST_COST, actions
    assert row["external_regret"] == pytest.approx(HIGHEST_COST * external_regret(*log), abs=1e-9)
    assert row["swap_regret"] == pytest.approx(HIGHEST_COST * swap_regret(*log), abs=1e-9)
    assert row["swap_regret"] <= row["bound"] + 1e-9
    assert row["swap_regret"] <= row["bound_from_variation"] + 1e-6


def test_any_order_of_the_same_outcomes_leads_to_the_same_forecast() -> None:
    outcomes = {f"day {t}": demand for t, demand in enumerate([20.0, 90.0, 35.0, 60.0, 10.0, 80.0])}
    in_order = make_server()
    shuffled = make_server()
    for server in (in_order, shuffled):
        for key in outcomes:
            server.predict_one({}, key=key)

    for key, demand in outcomes.items():
        in_order.learn_late(key, demand)
    for key in ["day 5", "day 0", "day 3", "day 2", "day 4", "day 1"]:
        shuffled.learn_late(key, outcomes[key])

    forecast_of_shuffled = shuffled.predict_one({})
    expected = in_order.predict_one({})
    assert forecast_of_shuffled.statistics == pytest.approx(expected.statistics, abs=1e-9)
    assert forecast_of_shuffled.act("store") == expected.act("store")
    pd.testing.assert_frame_equal(shuffled.regrets(), in_order.regrets())


def test_a_forecast_is_made_of_all_that_is_known_and_nothing_else() -> None:
    """With the last value alone, two rounds late, brute force: what came three rounds ago."""
    server = make_followed_server(LAST_VALUE)
    outcomes = np.random.default_rng(0).uniform(0, 100, 2 * ROUNDS_TO_TAKE_OVER)
    for t, _ in enumerate(outcomes):
        forecast = server.predict_one({}, key=t)
        if t >= 3 + ROUNDS_TO_TAKE_OVER:
            assert expected_demand(forecast) == pytest.approx(outcomes[t - 3])
        if t >= 2:
            server.learn_late(t - 2, outcomes[t - 2])


def test_an_old_outcome_does_not_pass_for_the_newest_one() -> None:
    server = make_followed_server(LAST_VALUE)
    for _ in range(ROUNDS_TO_TAKE_OVER):
        server.learn_one({}, 50.0)
    for day in ("monday", "tuesday"):
        server.predict_one({}, key=day)
    server.learn_late("tuesday", 80.0)
    server.learn_late("monday", 20.0)
    assert expected_demand(server.predict_one({})) == pytest.approx(80.0)


def test_a_late_regression_learns_from_what_it_knew_when_it_forecast() -> None:
    """Demand repeats after two rounds: known one round late, it is the last known one."""
    server = make_followed_server({"kind": "least-squares", "lags": 1})
    outcomes = [20.0, 80.0] * 100
    for t, outcome in enumerate(outcomes):
        forecast = server.predict_one({}, key=t)
        if t:
            server.learn_late(t - 1, outcomes[t - 1])
        if t >= 100:
            assert expected_demand(forecast) == pytest.approx(outcome, abs=10.0)


def test_a_keyed_forecast_learned_at_once_is_like_one_without_a_key() -> None:
    keyed = make_server(models="panel")
    plain = make_server(models="panel")
    for t, demand in enumerate(np.random.default_rng(2).uniform(0, 100, 30)):
        context = {"weekday": t % 7}
        with_key = keyed.predict_one(context, key=t)
        without = plain.predict_one(context)
        assert with_key.statistics.tobytes() == without.statistics.tobytes()
        keyed.learn_late(t, demand)
        plain.learn_one(context, demand)
    pd.testing.assert_frame_equal(keyed.regrets(), plain.regrets())


def test_a_forecast_that_is_dropped_leaves_no_trace() -> None:
    """Its key is used again, or its outcome is missing."""
    disturbed = make_server()
    plain = make_server()
    for t, demand in enumerate([20.0, 70.0, 40.0, 90.0, 30.0]):
        disturbed.predict_one({}, key="never comes")
        disturbed.predict_one({}, key="never comes")
        disturbed.learn_late("never comes", None)
        for server in (disturbed, plain):
            server.predict_one({}, key=t)
            server.learn_late(t, demand)
    expected = plain.predict_one({}).statistics
    assert disturbed.predict_one({}).statistics.tobytes() == expected.tobytes()
    assert disturbed.counts["missing"] == 5


def test_a_mistaken_outcome_leaves_the_forecast_open() -> None:
    server = make_server()
    server.predict_one({}, key="monday")
    with pytest.raises(UserError, match="give a number for each outcome, or None"):
        server.learn_late("monday", "much")
    server.learn_late("monday", 10.0)
    assert server.counts["learned"] == 1


def test_the_switch_tests_of_all_slots_spend_twice_alpha_at_most() -> None:
    server = make_server()
    for key in range(20):
        server.predict_one({}, key=key)
    tests = [slot.switch_test for slot in server._slots if slot.switch_test is not None]
    spent = sum(test.tests * np.exp(-test.evidence) for test in tests)
    assert len(tests) == 20
    assert 0.01 < spent <= 0.02 + 1e-12


STEPS = 3


def test_steps_ahead_forecasts_the_outcome_after_the_ones_between() -> None:
    """The orders are charged with the outcomes that they were made for, by brute force."""
    server = make_followed_server(LAST_VALUE, steps_ahead=STEPS)
    outcomes = np.random.default_rng(3).uniform(0, 100, 2 * ROUNDS_TO_TAKE_OVER)
    costs = []
    orders: dict[int, float] = {}
    for t, demand in enumerate(outcomes):
        forecast = server.predict_one({"weekday": (t + STEPS - 1) % 7})
        orders[t + STEPS - 1] = forecast.act("store")
        if t > ROUNDS_TO_TAKE_OVER + STEPS:
            assert expected_demand(forecast) == pytest.approx(outcomes[t - 1])
        assert len(server._planned) <= STEPS
        server.learn_one({"weekday": t % 7}, demand)
        if t >= STEPS - 1:
            costs.append(costs_of_all_orders(demand)[ORDERS.index(orders[t])])
        if t == STEPS - 2:
            before = server.regrets()["mean_loss"].item() * (STEPS - 1)
    total = server.regrets()["mean_loss"].item() * len(outcomes)
    assert total - before == pytest.approx(sum(costs))
    assert server.counts == dict.fromkeys(server.counts, 0) | {"learned": len(outcomes)}


def test_what_is_learned_without_forecasts_is_learned_steps_ahead() -> None:
    """A table is learned row by row as if each row had been forecast in its time."""
    with_forecasts, only_taught = (
        make_followed_server({"kind": "least-squares", "lags": 1}, steps_ahead=STEPS)
        for _ in range(2)
    )
    level = 50.0
    rng = np.random.default_rng(4)
    for t in range(150):
        level = 50.0 + 0.8 * (level - 50.0) + rng.normal(0, 8)
        demand = float(np.clip(level, 0, 100))
        with_forecasts.predict_one({"weekday": (t + STEPS - 1) % 7})
        for server in (with_forecasts, only_taught):
            server.learn_one({"weekday": t % 7}, demand)
    taught_demand = expected_demand(only_taught.predict_one({"weekday": 1}))
    assert taught_demand == pytest.approx(
        expected_demand(with_forecasts.predict_one({"weekday": 1})), abs=1.0
    )


def test_a_missing_outcome_takes_its_forecast_with_it() -> None:
    server = make_server(steps_ahead=2)
    server.predict_one({})  # of outcome 1
    server.learn_one({}, 30.0)
    later = server.predict_one({}).act("store")  # of outcome 2
    server.learn_one({}, None)
    before = server.regrets()["mean_loss"].item()
    server.learn_one({}, 55.0)
    total = server.regrets()["mean_loss"].item() * 2
    assert server.counts["missing"] == 1
    assert total - before == pytest.approx(costs_of_all_orders(55.0)[ORDERS.index(later)])


@pytest.mark.parametrize("steps_ahead", [0, -1, 1.5, True, "two", 10**6])
def test_a_number_of_steps_that_is_none_is_refused(steps_ahead: object) -> None:
    with pytest.raises(UserError, match=r"steps_ahead is .*; give a whole number of at least 1"):
        make_server(steps_ahead=steps_ahead)


def play_on(server: OnlineOmnipredictor, first: int) -> list[bytes]:
    """Go on with open forecasts and new ones; return what is broadcast."""
    broadcast = []
    for t in range(first, first + 8):
        broadcast.append(
            server.predict_one({"weekday": t % 7}, key=f"late {t}").statistics.tobytes()
        )
        server.learn_late(f"late {t - 3}", 10.0 * (t % 9))
        broadcast.append(server.predict_one({"weekday": t % 7}).statistics.tobytes())
        server.learn_one({"weekday": t % 7}, 100.0 - 10.0 * (t % 8))
    return broadcast


@pytest.mark.filterwarnings("ignore:x lacks 'day'")  # which some contexts have and some have not
@pytest.mark.parametrize("steps_ahead", [1, STEPS])
@pytest.mark.parametrize("models", ["panel", SIMPLE_MODELS])
def test_open_forecasts_are_saved(tmp_path: Path, steps_ahead: int, models: object) -> None:
    server = make_server(models=models, steps_ahead=steps_ahead)
    for t in range(12):
        server.predict_one({"weekday": t % 7, "day": "2026-03-01"}, key=f"late {t}")
        if t >= 3:
            server.learn_late(f"late {t - 3}", 10.0 * (t % 10))
        server.learn_one({"weekday": t % 7}, 50.0)
    server.save(tmp_path / "kept")
    again = OnlineOmnipredictor.load(tmp_path / "kept")
    again.save(tmp_path / "kept again")

    assert (tmp_path / "kept").read_bytes() == (tmp_path / "kept again").read_bytes()
    assert play_on(again, first=12) == play_on(server, first=12)
    assert again.counts == server.counts
    pd.testing.assert_frame_equal(again.regrets(), server.regrets())


def test_forecasts_beyond_the_last_slot_share_it_without_a_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("regretless.forecaster.online.omnipredictor.MAX_SLOTS", 2)
    server = make_server()
    for key in range(4):
        server.predict_one({}, key=key)
    for key in (3, 0, 2, 1):
        server.learn_late(key, 20.0 * key)
    row = server.regrets().iloc[0]
    assert row["slots"] == 2
    assert np.isnan(row["bound_from_variation"])
    assert row["swap_regret"] <= row["bound"] + 1e-9


def test_a_season_keeps_its_phase_however_many_rounds_are_open() -> None:
    """A regression on the outcome of a season ago, whose season is three rounds."""
    model = LeastSquares(1, lags=0, season=3)
    for t in range(60):
        model.point()
        model.update([0.2 + 0.3 * (t % 3)])
    for ahead in range(7):
        model.ahead = ahead
        assert model.point() == pytest.approx([0.2 + 0.3 * (ahead % 3)], abs=0.1)


def test_a_season_is_not_set_back_by_an_older_outcome() -> None:
    model = SeasonalNaive(1, period=2)
    for position, (round_index, value) in enumerate([(0, 0.1), (1, 0.2), (4, 0.9), (2, 0.5)]):
        model.ahead = round_index - position
        model.newer = int(round_index == 2)
        model.update([value])
    model.ahead = 6 - model.time
    assert model.point() == pytest.approx([0.9])


def test_a_last_value_is_that_of_the_latest_round() -> None:
    model = LastValue(1)
    model.update([0.7])
    model.newer = 1
    model.update([0.2])
    assert model.point() == pytest.approx([0.7])


def test_the_bound_counts_rounds_that_are_charged_and_not_taught_yet() -> None:
    """A step ahead the last outcomes wait to be taught, while their regret is there already."""
    losses = {"either": Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))}  # y, and 1 - y
    for outcome in (0.0, 1.0):
        server = OnlineOmnipredictor(losses, scale={"y": (0.0, 1.0)}, steps_ahead=2)
        server.learn_one({}, outcome)
        row = server.regrets().iloc[0]
        assert row["bound_from_variation"] >= row["swap_regret"]


LOOK_BACK = [
    {"kind": "seasonal-naive", "period": 4},
    {"kind": "least-squares", "season": 4, "lags": 0, "ridge": 1e-6},
    "seasonal-regression",
]


@pytest.mark.parametrize("model", LOOK_BACK)
@pytest.mark.parametrize("steps_ahead", [1, 3])
def test_a_missing_round_leaves_the_season_where_it_is(model: object, steps_ahead: int) -> None:
    """Demand of 10, 90, 30, 70 in turn is forecast as if no outcome had been missing."""
    complete = make_followed_server(model, steps_ahead=steps_ahead)
    with_gaps = make_followed_server(model, steps_ahead=steps_ahead)
    for t in range(120):
        demand = [10.0, 90.0, 30.0, 70.0][t % 4]
        forecast_of_gaps = with_gaps.predict_one()
        if t > 81:
            assert forecast_of_gaps.mean == pytest.approx(complete.predict_one().mean, abs=3.0)
        complete.learn_one(None, demand)
        with_gaps.learn_one(None, None if t in {81, 95, 98} else demand)
    assert with_gaps.counts["missing"] == 3
    assert with_gaps.regrets()["rounds"].item() == 117


def test_gaps_are_saved(tmp_path: Path) -> None:
    def learn(server: OnlineOmnipredictor, first: int, last: int) -> None:
        for t in range(first, last):
            demand = 50.0 + 30.0 * np.sin(t / 2)
            server.learn_one(None, None if t in {30, 39, 41} else demand)

    uninterrupted = make_server(models="panel")
    learn(uninterrupted, 0, 60)
    uninterrupted.save(tmp_path / "uninterrupted")

    server = make_server(models="panel")
    for first in (0, 20, 40):  # the seasonal regression learns all rounds anew after the last one
        learn(server, first, first + 20)
        server.save(tmp_path / "server")
        server = OnlineOmnipredictor.load(tmp_path / "server")
    assert (tmp_path / "server").read_bytes() == (tmp_path / "uninterrupted").read_bytes()
