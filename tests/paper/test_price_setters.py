"""What two price setters come to: their regrets, their play, and their buyers' surplus."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_scenarios import read_scenario

from paper.price_setters import (
    MEASURES,
    buyers_surplus,
    greatest_swap_regret,
    joint_play,
    measure_prices,
    stage_game,
)
from paper.study_table import Run
from regretless.scenarios.run import Options, run

SELLERS = {
    "name": "sellers",
    "rounds": 40,
    "market": {"kind": "price-competition", "outside": 0.0},
    "forecaster": {"kind": "none"},
    "cohort": [
        {
            "name": name,
            "utility": "seller",
            "actions": n_prices,
            "count": 1,
            "parameters": {"cost": 1.0, "quality": 2.0, "lowest": 1.4, "highest": 1.9},
            "response": response,
        }
        for name, n_prices, response in [("first", 3, "coin"), ("second", 4, "hedge")]
    ],
}


def test_a_run_is_measured_in_its_second_half(tmp_path: Path) -> None:
    run(read_scenario(SELLERS), Options(out=tmp_path / "run"))
    logs = Run({}, tmp_path / "run")
    (row,) = measure_prices(logs)
    assert list(row) == MEASURES
    second_half = logs.table("rounds").iloc[20:]
    assert row["price"] == pytest.approx(second_half[["price_0", "price_1"]].to_numpy().mean())
    assert row["profit gain"] == pytest.approx((row["first"] + row["second"]) / 2)
    assert 0 < row["distance"] <= 1
    assert row["swap regret"] > 0


def test_the_greatest_swap_regret_is_that_of_the_actions_that_sellers_took() -> None:
    """Two sellers with menus of different length, so that nobody is taken for the other."""
    model = read_scenario(SELLERS).build(seed=3)
    market = model.game.market
    joint = np.zeros((3, 4))
    joint[2, 3] = joint[0, 1] = 0.5
    losses = stage_game(market, joint.shape)
    assert losses.shape == (2, 3, 4)
    first_loss, second_loss = losses
    regret_of_first = 0.5 * (first_loss[2, 3] - first_loss[:, 3].min())
    regret_of_first += 0.5 * (first_loss[0, 1] - first_loss[:, 1].min())
    regret_of_second = 0.5 * (second_loss[2, 3] - second_loss[2].min())
    regret_of_second += 0.5 * (second_loss[0, 1] - second_loss[0].min())
    expected = max(regret_of_first, regret_of_second)
    assert greatest_swap_regret(joint, losses) == pytest.approx(expected)


def test_joint_play_is_read_off_the_prices_that_were_charged() -> None:
    menus = [np.array([1.0, 2.0]), np.array([1.0, 1.5, 2.0])]
    prices = np.array([[1.0, 1.5], [1.0, 1.5], [2.0, 2.0], [2.0, 1.0]])
    expected = [[0.0, 0.5, 0.0], [0.25, 0.0, 0.25]]
    assert joint_play(prices, menus).tolist() == expected


def test_what_buyers_are_left_with_falls_by_what_they_buy() -> None:
    """The slope of their surplus in a price is minus the quantity that is sold at it."""
    market = read_scenario(SELLERS).build(seed=1).game.market
    prices = np.array([[1.5, 1.7]])
    step = 1e-6
    dearer = prices + np.array([[step, 0.0]])
    slope = (buyers_surplus(dearer, market) - buyers_surplus(prices, market)) / step
    assert slope[0] == pytest.approx(-market.quantities(prices)[0, 0], rel=1e-4)
    nobody_buys = SimpleNamespace(quality=np.ones(2), differentiation=0.25, outside=0.0)
    assert buyers_surplus(np.full((1, 2), 50.0), nobody_buys)[0] == pytest.approx(0.0)
