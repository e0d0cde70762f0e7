"""Many shops at once: each is told what an omnipredictor of its own would tell it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regretless import LastValue, ManyOmnipredictors, OnlineOmnipredictor
from regretless.agents.utilities import LpTarget, Newsvendor
from regretless.forecaster.models import seasonal_regression
from regretless.forecaster.online import many_models
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream

SAME = 1e-9
HIGHEST = np.array([80.0, 160.0, 320.0])  # demand of each of three shops
UNDERAGE = np.array([4.0, 1.0, 2.0])
OVERAGE = np.array([1.0, 4.0, 2.0])
N_SHOPS = 3


def stores(n_orders: int) -> Any:
    orders = np.linspace(0.1, 0.9, n_orders) * HIGHEST[:, None]
    return Newsvendor(orders, underage=UNDERAGE, overage=OVERAGE)


def each_alone(losses: dict[str, Any], **options: Any) -> list[OnlineOmnipredictor]:
    """Return an omnipredictor of its own for each shop."""
    omnipredictors = []
    for shop in range(N_SHOPS):
        own_losses = {name: loss[shop] for name, loss in losses.items()}
        scale = {"demand": (0.0, float(HIGHEST[shop]))}
        omnipredictors.append(OnlineOmnipredictor(own_losses, scale=scale, **options))
    return omnipredictors


def check_same_forecasts(
    shops: ManyOmnipredictors,
    alone: list[OnlineOmnipredictor],
    x: dict[str, Any],
    own_x: list[dict[str, float]],
) -> None:
    forecast = shops.predict_many(x)
    means = forecast.mean
    quantiles = forecast.quantile(0.9)
    actions = {name: shops.act_many(name, x) for name in shops.losses}
    for shop, omnipredictor in enumerate(alone):
        own_forecast = omnipredictor.predict_one(own_x[shop])
        assert means[shop] == pytest.approx(own_forecast.mean, abs=SAME * HIGHEST[shop])
        assert quantiles[shop] == pytest.approx(own_forecast.quantile(0.9), abs=1e-6)
        for name, actions_of_shops in actions.items():
            assert actions_of_shops[shop] == own_forecast.act(name)
        if shop not in forecast.alone:
            own_statistics = own_forecast.statistics
            statistics = forecast.statistics[shop, : len(own_statistics)]
            np.testing.assert_allclose(statistics, own_statistics, atol=SAME)


def check_same_states(state: Any, expected: Any) -> None:
    """Check that two states are the same up to rounding, but for weights that a pool never uses."""
    if isinstance(expected, dict):
        assert state.keys() == expected.keys()
        for key in expected.keys() - {"own", "choice"}:
            check_same_states(state[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(state) == len(expected)
        for part, expected_part in zip(state, expected, strict=True):
            check_same_states(part, expected_part)
    elif isinstance(expected, np.ndarray | float):
        np.testing.assert_allclose(state, expected, rtol=0.0, atol=SAME)
    else:
        assert state == expected


def days(n_days: int, *, noise: float = 0.06) -> Iterator[tuple[int, np.ndarray]]:
    """Yield days with a demand for each shop that is higher on weekends."""
    rng = stream(0, "demand")
    for day in range(n_days):
        demand = (0.4 + 0.3 * (day % 7 >= 5) + rng.normal(0, noise, N_SHOPS)) * HIGHEST
        yield day, demand


def test_a_shop_is_told_what_it_would_be_told_alone() -> None:
    """The second shop misses outcomes; seasons of a week are found in round 48 and later."""
    losses = {"store": stores(9)}
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, HIGHEST)})
    alone = each_alone(losses)
    for day, demand in days(70):
        x = {"weekday": day % 7}
        check_same_forecasts(shops, alone, x, [x] * N_SHOPS)
        if day % 9 == 4:
            demand[1] = np.nan
        shops.learn_many(x, demand)
        for shop, omnipredictor in enumerate(alone):
            is_missing = bool(np.isnan(demand[shop]))
            omnipredictor.learn_one(x, None if is_missing else float(demand[shop]))
    assert shops.counts["missing"].tolist() == [0, 8, 0]
    assert alone[0]._members["seasonal-regression"].model.seasons
    columns = ["mean_loss", "swap_regret", "bound"]
    regrets = shops.regrets()
    for shop, omnipredictor in enumerate(alone):
        own_regrets = omnipredictor.regrets()
        of_shop = regrets[regrets["shop"] == shop]
        np.testing.assert_allclose(of_shop[columns], own_regrets[columns], rtol=1e-9, atol=1e-9)


def test_seasons_that_change_once_old_rounds_are_forgotten_are_learned_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 40 rounds that are remembered a regression makes its columns anew."""
    monkeypatch.setattr(many_models, "MAX_HISTORY", 40)
    monkeypatch.setattr(seasonal_regression, "MAX_HISTORY", 40)
    losses = {"store": stores(5)}
    models = {"seasons": {"kind": "with-errors", "model": "seasonal-regression"}}
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, HIGHEST)}, models=models)
    alone = each_alone(losses, models=models)
    for day, demand in days(68, noise=0.02):
        x = {"week": day // 7, "weekday": day % 7}
        if day > 45:
            check_same_forecasts(shops, alone, x, [x] * N_SHOPS)
        if day == 50:
            demand[1] = np.nan
        shops.learn_many(x, demand)
        for shop, omnipredictor in enumerate(alone):
            is_missing = bool(np.isnan(demand[shop]))
            omnipredictor.learn_one(x, None if is_missing else float(demand[shop]))
    assert alone[0]._members["seasons"].model.seasons
    for shop, omnipredictor in enumerate(alone):
        taken_out = shops.omnipredictor(shop)
        for day in range(68, 71):
            x = {"week": day // 7, "weekday": day % 7}
            forecast = omnipredictor.predict_one(x)
            np.testing.assert_allclose(taken_out.predict_one(x).statistics, forecast.statistics)
            taken_out.learn_one(x, 0.4 * HIGHEST[shop])
            omnipredictor.learn_one(x, 0.4 * HIGHEST[shop])


def test_a_season_that_ends_is_forgotten_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """After 60 days with a week follow days without one, until none of a week is remembered."""
    monkeypatch.setattr(many_models, "MAX_HISTORY", 40)
    monkeypatch.setattr(seasonal_regression, "MAX_HISTORY", 40)
    losses = {"store": stores(5)}
    models = {"seasons": {"kind": "with-errors", "model": "seasonal-regression"}}
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, HIGHEST)}, models=models)
    alone = each_alone(losses, models=models)
    had_seasons = False
    for day, demand_of_weeks in days(125, noise=0.02):
        has_ended = day >= 60
        demand = demand_of_weeks - 0.3 * (has_ended and day % 7 >= 5) * HIGHEST
        shops.learn_many(None, demand)
        for shop, omnipredictor in enumerate(alone):
            omnipredictor.learn_one(None, float(demand[shop]))
        had_seasons |= bool(alone[0]._members["seasons"].model.seasons)
    assert had_seasons
    assert not alone[0]._members["seasons"].model.seasons
    check_same_forecasts(shops, alone, {}, [{}] * N_SHOPS)


def test_a_shop_whose_models_are_given_up_goes_on_with_all_that_it_has_learned() -> None:
    """The third shop has demand that makes each of its orders wrong.

    What its omnipredictor has learned is what one of its own has. Forecasts after that may differ:
    a game has several solutions, and the last digit decides between them.
    """
    losses = {"store": stores(9)}
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, HIGHEST)})
    alone = each_alone(losses)
    for day, demand in days(90):
        x = {"weekday": day % 7}
        order = shops.act_many("store", x)[2]
        if day >= 30:
            demand[2] = 0.0 if order > 0.5 * HIGHEST[2] else HIGHEST[2]
        shops.learn_many(x, demand)
        for shop, omnipredictor in enumerate(alone):
            omnipredictor.learn_one(x, float(demand[shop]))
        trusted = [one._slots[0].reference.trusted for one in alone]
        assert shops.given_up.tolist() == [not is_trusted for is_trusted in trusted]
        if shops.given_up.any():
            break
    assert shops.given_up.tolist() == [False, False, True]
    for shop, omnipredictor in enumerate(alone):
        check_same_states(shops.omnipredictor(shop).state(), omnipredictor.state())
    assert not shops.omnipredictor(2).predict_one(x).is_unchanged
    assert shops.predict_many(x).mean[2] == shops.omnipredictor(2).predict_one(x).mean
    shops.learn_many(x, 0.5 * HIGHEST)
    assert shops.counts["learned"].tolist() == [day + 2] * N_SHOPS


def test_shops_may_have_contexts_of_their_own_and_several_losses() -> None:
    """The price is a whole number at first, and missing once; the third shop has no season."""
    losses = {"store": stores(9), "depot": stores(5)}
    shops = ManyOmnipredictors(losses, scale={"demand": (0.0, HIGHEST)})
    alone = each_alone(losses)
    for day, demand in days(60):
        price = np.array([2.0, 3.0 if day < 20 else 3.5, 0.1 * (day % 10)])
        if day == 10:
            price[0] = np.nan
        x = {"weekday": day % 7, "price": price}
        own_x = [{"weekday": float(day % 7), "price": float(value)} for value in price]
        if day == 10:
            own_x[0]["price"] = np.nan
        check_same_forecasts(shops, alone, x, own_x)
        shops.learn_many(x, {"demand": demand})
        for shop, omnipredictor in enumerate(alone):
            omnipredictor.learn_one(own_x[shop], float(demand[shop]))
    assert not shops.given_up.any()


def test_what_has_no_form_in_arrays_is_served_shop_by_shop() -> None:
    targets = np.linspace(0.0, 1.0, 4)[:, None]
    losses = {"aim": LpTarget(np.broadcast_to(targets, (2, 4, 1)))}
    shops = ManyOmnipredictors(losses)
    single = OnlineOmnipredictor({"aim": losses["aim"][0]})
    for outcome in (0.2, 0.4, 0.3):
        shops.learn_many(None, [outcome, outcome])
        single.learn_one(None, outcome)
    assert shops.given_up.all()
    assert shops.predict_many().mean.tolist() == [single.predict_one().mean] * 2
    assert shops.act_many("aim").tolist() == [single.predict_one().act("aim")] * 2
    assert shops.counts["learned"].tolist() == [3, 3]


def test_a_shop_can_be_taken_out_saved_and_goes_on_alike(tmp_path: Path) -> None:
    shops = ManyOmnipredictors({"store": stores(9)}, scale={"demand": (0.0, HIGHEST)})
    for day, demand in days(70):
        shops.learn_many({"weekday": day % 7}, demand)
    shops.omnipredictor(1).save(tmp_path / "shop")
    single = OnlineOmnipredictor.load(tmp_path / "shop")
    for day in range(70, 75):
        x = {"weekday": day % 7}
        assert single.predict_one(x).mean == pytest.approx(shops.predict_many(x).mean[1], abs=1e-7)
        shops.learn_many(x, 0.4 * HIGHEST)
        single.learn_one(x, 0.4 * HIGHEST[1])


@pytest.mark.parametrize(
    ("mistake", "line"),
    [
        (lambda shops: shops.learn_many(None, [1.0]), "y has shape .1,.; give 3 numbers"),
        (lambda shops: shops.learn_many(None, [1.0, np.inf, 2.0]), "y has an infinite number"),
        (lambda shops: shops.learn_many(None, [1.0, 1e9, 2.0]), "'demand' = 1e.09"),
        (lambda shops: shops.learn_many({"day": "monday"}, HIGHEST), "number the words yourself"),
        (lambda shops: shops.learn_many({"price": [1.0]}, HIGHEST), "'price'.* give 3 numbers"),
        (lambda shops: shops.learn_many([1.0], HIGHEST), "give numbers by name"),
        (lambda shops: shops.act_many("shop"), "no loss 'shop'; choose one of: store"),
        (lambda shops: shops.omnipredictor(3), "shop"),
    ],
)
def test_what_cannot_be_meant_is_refused(mistake: Any, line: str) -> None:
    shops = ManyOmnipredictors({"store": stores(3)}, scale={"demand": (0.0, HIGHEST)})
    with pytest.raises(UserError, match=line):
        mistake(shops)
    assert shops.counts["learned"].tolist() == [0, 0, 0]


def test_outcomes_beyond_the_scale_are_clipped_counted_and_warned_of_once() -> None:
    shops = ManyOmnipredictors({"store": stores(3)}, scale={"demand": (0.0, HIGHEST)})
    with pytest.warns(UserWarning, match="'demand' of shop 1 lies beyond its scale"):
        shops.learn_many(None, [10.0, 170.0, 10.0])
    shops.learn_many(None, [10.0, 170.0, 10.0])
    assert shops.counts["clipped"].tolist() == [0, 2, 0]


def test_losses_and_scales_must_be_of_as_many_shops() -> None:
    with pytest.raises(UserError, match="different numbers of shops"):
        ManyOmnipredictors({"store": stores(3)}, shops=4)
    with pytest.raises(UserError, match="none is a stack"):
        ManyOmnipredictors({"store": stores(3)[0]})
    with pytest.raises(UserError, match=r"losses\['store'\] is 3"):
        ManyOmnipredictors({"store": 3}, shops=3)
    with pytest.raises(UserError, match=r"models\['last'\].*of which each shop's own is made"):
        ManyOmnipredictors({"store": stores(3)}, models={"last": LastValue(1)})
    with pytest.raises(UserError, match=r"scale\['demand'\]"):
        ManyOmnipredictors({"store": stores(3)}, scale={"demand": (0.0, [1.0, 2.0])})


def test_names_of_features_may_be_numbers_beside_text() -> None:
    shops = ManyOmnipredictors({"store": stores(3)}, scale={"demand": (0.0, HIGHEST)})
    by_number = shops.act_many("store", {"weekday": 1, 3: 2.0})
    assert by_number.tolist() == shops.act_many("store", {"weekday": 1, "3": 2.0}).tolist()
    with pytest.raises(UserError, match="name features by text"):
        shops.act_many("store", {2.5: 1.0})


@pytest.mark.parametrize("models", ["panel", {"mean": "running-mean"}])
def test_regrets_of_a_shop_that_learned_nothing_are_missing_and_those_of_others_are_not(
    models: Any,
) -> None:
    shops = ManyOmnipredictors(
        {"store": stores(3)}, scale={"demand": (0.0, HIGHEST)}, models=models
    )
    for _ in range(3):
        shops.learn_many(None, [40.0, np.nan, 40.0])
    table = shops.regrets()
    assert table.columns.tolist()[:4] == ["shop", "loss", "rounds", "mean_loss"]
    assert table["rounds"].tolist() == [3, 0, 3]
    single = shops.omnipredictor(0).regrets().iloc[0]
    for column in ("mean_loss", "swap_regret", "bound", "best_model"):
        assert table.isna()[column].tolist() == [False, True, False]
    assert table.loc[0, "mean_loss"] == pytest.approx(single["mean_loss"])
    assert table.loc[0, "best_model"] == single["best_model"]
