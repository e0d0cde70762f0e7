"""Many shops: files, late and censored outcomes, steps ahead, announced quantiles, ties."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regretless import ManyOmnipredictors, OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.online.censoring import CensoringWarning
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream

SAME = 1e-9
HIGHEST = np.array([80.0, 160.0, 320.0])  # demand of each of three shops
UNDERAGE = np.array([4.0, 1.0, 2.0])
OVERAGE = np.array([1.0, 4.0, 2.0])
N_SHOPS = 3
SCALE = {"demand": (0.0, HIGHEST)}


def stores(shares_of_highest: Any) -> Newsvendor:
    orders = np.asarray(shares_of_highest) * HIGHEST[:, None]
    return Newsvendor(orders, underage=UNDERAGE, overage=OVERAGE)


def losses_of_shops() -> dict[str, Any]:
    return {"store": stores(np.linspace(0.1, 0.9, 9))}


def omnipredictor_of_each_shop(losses: dict[str, Any], **options: Any) -> list[OnlineOmnipredictor]:
    """Return an omnipredictor of its own for each shop."""
    omnipredictors = []
    for shop in range(N_SHOPS):
        own_losses = {name: loss[shop] for name, loss in losses.items()}
        scale = {"demand": (0.0, float(HIGHEST[shop]))}
        omnipredictors.append(OnlineOmnipredictor(own_losses, scale=scale, **options))
    return omnipredictors


def demand_of_days(n_days: int) -> Array:
    """Return a demand for each day and shop (T, S), higher on weekends."""
    rng = stream(0, "demand of shops")
    weekend = (np.arange(n_days) % 7 >= 5)[:, np.newaxis]
    return (0.4 + 0.3 * weekend + rng.normal(0, 0.06, (n_days, N_SHOPS))) * HIGHEST


def weekday(day: int) -> dict[str, float]:
    return {"weekday": float(day % 7)}


def check_same_forecasts(forecast: Any, own_forecasts: list[Any]) -> None:
    """Check what is forecast to all shops beside the forecast of each one."""
    for shop, own_forecast in enumerate(own_forecasts):
        scale = HIGHEST[shop]
        assert forecast.mean[shop] == pytest.approx(own_forecast.mean, abs=SAME * scale)
        assert forecast.quantile(0.9)[shop] == pytest.approx(own_forecast.quantile(0.9), abs=1e-6)
        assert forecast.loss("store")[shop] == pytest.approx(
            own_forecast.loss("store"), abs=SAME * scale
        )
        assert forecast.act("store")[shop] == own_forecast.act("store")


def test_shops_that_were_saved_go_on_as_if_they_had_not_been(tmp_path: Path) -> None:
    """The second shop misses outcomes; the third has a price, and demand that its orders miss."""
    shops = ManyOmnipredictors(losses_of_shops(), scale=SCALE)

    def play(served: ManyOmnipredictors, day: int, demand: Array) -> Array:
        x = {"weekday": day % 7, "price": np.array([np.nan, 2.0, 2.0 + day % 3])}
        orders = served.act_many("store", x)
        sales = demand.copy()
        if day % 9 == 4:
            sales[1] = np.nan
        if day >= 30:
            sales[2] = 0.0 if orders[2] > 0.5 * HIGHEST[2] else HIGHEST[2]
        served.learn_many(x, sales)
        return orders

    demand = demand_of_days(76)
    for day in range(70):
        play(shops, day, demand[day])
    assert shops.given_up.tolist() == [False, False, True]
    shops.save(tmp_path / "shops")
    loaded = ManyOmnipredictors.load(tmp_path / "shops")
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "shops").read_bytes()
    for day in range(70, 76):
        orders = play(shops, day, demand[day])
        np.testing.assert_array_equal(play(loaded, day, demand[day]), orders)
    pd_columns = ["rounds", "mean_loss", "swap_regret", "bound", "best_model"]
    assert loaded.regrets()[pd_columns].equals(shops.regrets()[pd_columns])
    assert {name: counts.tolist() for name, counts in loaded.counts.items()} == {
        name: counts.tolist() for name, counts in shops.counts.items()
    }


def test_seasons_are_found_after_a_file_as_without_one(tmp_path: Path) -> None:
    """Seasons are looked for from round 48 on."""
    models = {"seasons": {"kind": "with-errors", "model": "seasonal-regression"}}
    shops = ManyOmnipredictors(losses_of_shops(), scale=SCALE, models=models)
    demand = demand_of_days(66)
    for day in range(46):
        shops.learn_many(None, demand[day])
    shops.save(tmp_path / "shops")
    loaded = ManyOmnipredictors.load(tmp_path / "shops")
    for day in range(46, 66):
        shops.learn_many(None, demand[day])
        loaded.learn_many(None, demand[day])
    np.testing.assert_array_equal(loaded.predict_many().mean, shops.predict_many().mean)


def test_a_file_of_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    single = omnipredictor_of_each_shop(losses_of_shops())[0]
    single.save(tmp_path / "single")
    with pytest.raises(UserError, match=r"is no saved ManyOmnipredictors: it holds something else"):
        ManyOmnipredictors.load(tmp_path / "single")


def test_late_outcomes_come_in_any_order_and_to_some_shops_before_others() -> None:
    losses = losses_of_shops()
    shops = ManyOmnipredictors(losses, scale=SCALE)
    omnipredictors = omnipredictor_of_each_shop(losses)
    demand = demand_of_days(30)
    for day in range(20):
        shops.learn_many(weekday(day), demand[day])
        for shop, omnipredictor in enumerate(omnipredictors):
            omnipredictor.learn_one(weekday(day), float(demand[day, shop]))
    for day in range(20, 24):
        forecast = shops.predict_many(weekday(day), key=day)
        check_same_forecasts(
            forecast,
            [omnipredictor.predict_one(weekday(day), key=day) for omnipredictor in omnipredictors],
        )
    shops.learn_late_many(22, demand[22])
    shops.learn_late_many(20, demand[20], shops=[2])
    shops.learn_late_many(23, [demand[23, 0], np.nan, demand[23, 2]])
    shops.learn_late_many(20, demand[20], shops=[0, 1])
    for shop, omnipredictor in enumerate(omnipredictors):
        omnipredictor.learn_late(22, float(demand[22, shop]))
        if shop == 2:
            omnipredictor.learn_late(20, float(demand[20, shop]))
        omnipredictor.learn_late(23, None if shop == 1 else float(demand[23, shop]))
        if shop != 2:
            omnipredictor.learn_late(20, float(demand[20, shop]))
    forecast = shops.predict_many(weekday(24))
    check_same_forecasts(
        forecast, [omnipredictor.predict_one(weekday(24)) for omnipredictor in omnipredictors]
    )
    assert shops.counts["late"].tolist() == [3, 2, 3]
    with pytest.raises(UserError, match=r"no forecast of shop 0 waits under 20; predict_many"):
        shops.learn_late_many(20, demand[20])
    assert shops.counts["late"].tolist() == [3, 2, 3]


@pytest.mark.parametrize("options", [{"steps_ahead": 3}, {"quantiles": [0.1, 0.9]}])
def test_what_arrays_cannot_do_is_what_each_shop_does_alone(options: dict[str, Any]) -> None:
    losses = losses_of_shops()
    shops = ManyOmnipredictors(losses, scale=SCALE, **options)
    omnipredictors = omnipredictor_of_each_shop(losses, **options)
    demand = demand_of_days(25)
    for day in range(25):
        forecast = shops.predict_many(weekday(day + 2))
        own_forecasts = [
            omnipredictor.predict_one(weekday(day + 2)) for omnipredictor in omnipredictors
        ]
        check_same_forecasts(forecast, own_forecasts)
        for level, values in forecast.quantiles.items():
            assert values.tolist() == [
                own_forecast.quantiles[level] for own_forecast in own_forecasts
            ]
        shops.learn_many(weekday(day), demand[day])
        for shop, omnipredictor in enumerate(omnipredictors):
            omnipredictor.learn_one(weekday(day), float(demand[day, shop]))
    assert shops.counts["learned"].tolist() == [25] * N_SHOPS
    if "quantiles" in options:
        of_last_shop = shops.coverage().query("shop == 2").drop(columns="shop")
        assert of_last_shop.reset_index(drop=True).equals(omnipredictors[2].coverage())


def test_sales_that_were_sold_out_are_learned_as_each_shop_learns_them_alone() -> None:
    losses = losses_of_shops()
    shops = ManyOmnipredictors(losses, scale=SCALE)
    omnipredictors = omnipredictor_of_each_shop(losses)
    demand = demand_of_days(40)
    with warnings.catch_warnings(record=True) as recorded_warnings:
        warnings.simplefilter("always")
        for day in range(40):
            x = weekday(day)
            limits = np.array([0.45, 0.0, 0.5]) * HIGHEST if day > 25 else HIGHEST
            is_censored = demand[day] >= limits
            sales = np.minimum(demand[day], limits)
            shops.learn_many(x, sales, censored=is_censored)
            for shop, omnipredictor in enumerate(omnipredictors):
                omnipredictor.learn_one(x, float(sales[shop]), censored=bool(is_censored[shop]))
            forecast = shops.predict_many(x)
            check_same_forecasts(
                forecast, [omnipredictor.predict_one(x) for omnipredictor in omnipredictors]
            )
    assert not shops.given_up.any()
    assert shops.counts["censored"].tolist() == [
        omnipredictor.counts["censored"] for omnipredictor in omnipredictors
    ]
    texts = {
        str(warning.message)
        for warning in recorded_warnings
        if warning.category is CensoringWarning
    }
    assert len(texts) == 2  # that of all shops names the second one
    assert any(text.startswith("shop 1: the last 10 outcomes") for text in texts)
    table = shops.regrets()
    assert table["guarantee"].tolist() == ["none"] * N_SHOPS
    assert table["bound"].isna().all()


def test_of_orders_that_are_listed_twice_the_first_is_best_for_one_shop_and_for_many() -> None:
    losses = {"store": stores([0.2, 0.4, 0.4, 0.4, 0.7, 0.7, 0.9])}
    shops = ManyOmnipredictors(losses, scale=SCALE)
    omnipredictors = omnipredictor_of_each_shop(losses)
    demand = demand_of_days(60)
    for day in range(60):
        forecast = shops.predict_many(weekday(day))
        best_indices = shops.best_actions("store", forecast.statistics)
        assert not set(best_indices.tolist()) & {2, 3, 5}
        for shop, omnipredictor in enumerate(omnipredictors):
            expected = omnipredictor.tasks["store"].expected(
                omnipredictor.predict_one(weekday(day)).statistics
            )
            assert expected[1] == expected[2] == expected[3]
            assert int(expected.argmin()) == best_indices[shop]
            omnipredictor.learn_one(weekday(day), float(demand[day, shop]))
        shops.learn_many(weekday(day), demand[day])
    regrets = shops.regrets()["swap_regret"].to_numpy()
    own_regrets = [omnipredictor.regrets()["swap_regret"][0] for omnipredictor in omnipredictors]
    np.testing.assert_allclose(regrets, own_regrets, atol=SAME)


def test_losses_with_the_same_many_orders_are_served_in_arrays_and_exactly() -> None:
    orders = np.linspace(0.0, 160.0, 41)
    losses = {}
    for underage in (1.0, 4.0, 9.0):
        losses[f"underage {underage:g}"] = Newsvendor(orders, underage=underage, overage=1.0)
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, 160.0)}, shops=2)
    shops.learn_many(None, [60.0, 90.0])
    assert not shops.given_up.any()
    assert shops.omnipredictor(0).basis.error == 0.0


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        (lambda shops: shops.learn_many(None, HIGHEST, censored=[True]), "censored = .*of 3"),
        (lambda shops: shops.learn_many(None, HIGHEST, censored=1), "censored = 1"),
        (
            lambda shops: shops.learn_many(None, HIGHEST, censored=[[True], [True, False]]),
            "censored = .*of 3",
        ),
        (lambda shops: shops.predict_many(key=2.5), "key = 2.5"),
        (lambda shops: shops.learn_late_many("monday", HIGHEST, shops=1), "shops = 1: give a list"),
        (lambda shops: shops.learn_late_many("monday", HIGHEST), "no forecast of shop 0 waits"),
        (lambda shops: shops.coverage(), "no quantiles are announced"),
        (
            lambda shops: ManyOmnipredictors(shops.losses, scale=SCALE, step_ahead=2),
            "no option 'step_ahead'.*steps_ahead",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(mistake: Any, line: str) -> None:
    shops = ManyOmnipredictors(losses_of_shops(), scale=SCALE)
    with pytest.raises(UserError, match=line):
        mistake(shops)
    assert shops.counts["learned"].tolist() == [0, 0, 0]


def test_a_shop_that_is_named_twice_is_refused_before_any_learns() -> None:
    shops = ManyOmnipredictors(losses_of_shops(), scale=SCALE)
    shops.predict_many(key="monday")
    with pytest.raises(UserError, match=r"shops = \[0, 0\].*each once"):
        shops.learn_late_many("monday", HIGHEST, shops=[0, 0])
    assert shops.omnipredictor(0).counts["learned"] == 0
    assert shops.omnipredictor(0).waits_for("monday")


def test_a_forecast_that_one_shop_lacks_is_refused_before_any_learns() -> None:
    shops = ManyOmnipredictors(losses_of_shops(), scale=SCALE, forecasts={"planner": "plan"})
    x = {"plan": np.array([10.0, np.nan, 20.0])}
    with pytest.raises(UserError, match="no forecast 'plan' of shop 1"):
        shops.learn_many(x, 0.5 * HIGHEST)
    with pytest.raises(UserError, match="no forecast 'plan' of shop 1"):
        shops.predict_many(x, key="monday")
    with pytest.raises(UserError, match="no forecast 'plan' in the context"):
        shops.learn_many(None, 0.5 * HIGHEST)
    for shop in range(N_SHOPS):
        assert shops.omnipredictor(shop).counts["learned"] == 0
        assert not shops.omnipredictor(shop).waits_for("monday")


def test_options_are_arrays_or_lists_and_are_the_same_after_a_file(tmp_path: Path) -> None:
    names = np.array([f"order {action}" for action in range(9)])
    shops = ManyOmnipredictors(
        losses_of_shops(),
        scale=SCALE,
        quantiles=np.array([0.1, 0.9]),
        actions={"store": names},
        forecasts={"planner": ("plan",)},
    )
    x = {"plan": 0.5 * HIGHEST}
    shops.learn_many(x, 0.5 * HIGHEST)
    shops.save(tmp_path / "shops")
    again = ManyOmnipredictors.load(tmp_path / "shops")
    forecast = shops.predict_many(x)
    forecast_again = again.predict_many(x)
    assert list(forecast_again.quantiles) == [0.1, 0.9]
    assert forecast_again.act("store").tolist() == forecast.act("store").tolist()
    assert forecast_again.mean == pytest.approx(forecast.mean, abs=SAME)


def test_a_rule_that_fails_for_one_shop_is_refused_before_any_learns() -> None:
    def rule(x: Any) -> int:
        return 20 if x["price"] > 2 else 3

    losses = {"store": Newsvendor([0.0, 3.0, 6.0], underage=UNDERAGE, overage=OVERAGE)}
    policies = {"store": {"by price": rule}}
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, 6.0)}, policies=policies)
    x = {"price": np.array([1.0, 3.0, 1.0])}
    with pytest.raises(UserError, match="policy 'by price' suggests 20"):
        shops.learn_many(x, np.full(N_SHOPS, 4.0))
    with pytest.raises(UserError, match="policy 'by price' suggests 20"):
        shops.predict_many(x, key="monday")
    for shop in range(N_SHOPS):
        assert shops.omnipredictor(shop).counts["learned"] == 0
        assert not shops.omnipredictor(shop).waits_for("monday")
    shops.learn_many(x, np.array([4.0, np.nan, 4.0]))
    assert shops.counts["learned"].tolist() == [1, 0, 1]
