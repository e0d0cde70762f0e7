"""What the table of agents says of each: its parameters, and its losses in the data's unit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import resolved
from regretless.scenarios.report.figures import Run
from regretless.scenarios.report.run_figures import regret_by_parameter
from regretless.scenarios.verdict import regret_rows, sentences

ROUNDS = 60
COSTS = {"underage": [1.0, 6.0], "overage": 2.0}
SHOPS = worlds.cohort("shops", 4, 5, "newsvendor", parameters=COSTS)
OTHERS = worlds.cohort("others", 3, 3, "ces", parameters={"rho": {"choices": [0.4, 0.8]}})


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    demand = 100 + 60 * np.sin(np.arange(ROUNDS) / 3)
    pd.DataFrame({"pieces": demand}).to_csv(tmp_path / "shop.csv", index=False)
    data = {"file": "shop.csv", "outcomes": ["pieces"], "scale": {"pieces": [20.0, 180.0]}}
    data["units"] = {"pieces": "EUR"}
    raw = {"name": "shop", "rounds": ROUNDS, "data": data, "cohort": [SHOPS, OTHERS]}
    return worlds.told(raw, origin=tmp_path)


def test_costs_are_those_of_the_orders_in_the_unit_of_the_data(scenario: Scenario) -> None:
    model = worlds.played(scenario, seed=1)
    agents, log = model.agents_frame(), model.regret_frame()
    pieces = 20 + 160 * model.rounds_frame()["y_0"].to_numpy()
    orders = np.linspace(20, 180, 5)
    for row in agents.query("cohort == 'shops'").itertuples():
        ordered = orders[log.loc[log["agent"] == row.agent, "action"]]
        short, over = np.maximum(pieces - ordered, 0), np.maximum(ordered - pieces, 0)
        cost = (row.param_underage * short + row.param_overage * over).mean()
        assert row.loss_offset + row.loss_scale * row.mean_loss == pytest.approx(cost, rel=1e-9)
        assert row.unit == "EUR"
    names = model.swaps_frame()["action_name"].dropna().unique()
    assert set(names) <= {f"order {pieces:g}" for pieces in orders}
    shops = sentences(model.verdict_frame(), agents)
    mean = (agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"])[:4].mean()
    assert f"({mean:.4g} EUR)" in next(iter(shops))


def test_parameters_are_columns_of_those_who_have_them(scenario: Scenario) -> None:
    model = worlds.played(scenario, seed=1)
    agents = model.agents_frame()
    shops, others = (own for _, own in agents.groupby("cohort", sort=False))
    assert shops["param_underage"].between(1, 6).all()
    assert len(shops["param_underage"].unique()) == 4
    assert (shops["param_overage"] == 2.0).all()
    assert shops["param_rho"].isna().all()
    assert set(others["param_rho"]) <= {0.4, 0.8}
    assert others["param_underage"].isna().all()
    assert (others["unit"] == "").all()
    same = scenario.build(seed=1).agents_frame().filter(like="param_")
    pd.testing.assert_frame_equal(same, agents.filter(like="param_"))
    drawn = regret_by_parameter(Run(resolved(scenario.spec), {"agents": agents}))
    assert drawn is not None
    points = [trace for trace in drawn.data if len(trace.x) == 4]
    np.testing.assert_array_equal(points[0].x, shops["param_underage"])


def test_types_have_the_parameters_of_their_agents(scenario: Scenario) -> None:
    """Listed types hand their parameters out; with multiplicity a row is a type."""
    for kind in ({"types": 2}, {"types": 2, "multiplicity": True}):
        raw = resolved(scenario.spec) | {"cohort": [SHOPS | {"count": 6} | kind]}
        model = worlds.played(worlds.told(raw), seed=3)
        agents = model.agents_frame()
        worst = np.maximum(agents["param_underage"], 2.0) * 160  # of an order as wrong as can be
        np.testing.assert_allclose(agents["loss_offset"] + agents["loss_scale"], worst)


def played(**parts: Any) -> Any:
    raw = {"name": "units", "rounds": ROUNDS} | parts
    return worlds.played(worlds.told(raw), seed=2)


PRICE = {"kind": "iid", "outcomes": ["price"], "scale": {"price": [10.0, 210.0]}}
PRICE["units"] = {"price": "EUR"}


@pytest.mark.parametrize("market", [{}, {"market": {"kind": "cournot", "intercept": 0.9}}])
def test_profits_of_firms_are_in_the_unit_of_the_price(market: dict[str, Any]) -> None:
    """With a market, which reads the utility's own units, as without one."""
    parameters = {"cost": 0.3, "capacity": [2.0, 3.0]}
    firms = {"name": "firms", "utility": "firm", "count": 3, "actions": 5}
    if market:
        market["market"] |= {"slope": 0.1}
    model = played(adversary=PRICE, cohort=[firms | {"parameters": parameters}], **market)
    agents, log = model.agents_frame(), model.regret_frame()
    price = 10 + 200 * model.rounds_frame()["y_0"].to_numpy()
    swaps = model.swaps_frame()
    for row in agents.itertuples():
        sold = row.param_capacity * np.arange(5) / 4
        chosen = log.loc[log["agent"] == row.agent, "action"].to_numpy()
        profit = (sold[chosen] * (price - 70)).mean()
        assert -(row.loss_offset + row.loss_scale * row.mean_loss) == pytest.approx(profit)
        fixed = max((quantity * (price - 70)).mean() for quantity in sold)
        assert row.loss_scale * row.external_regret == pytest.approx(fixed - profit)
        own = swaps[swaps["agent"] == row.agent]
        assert own["action_name"].tolist() == [f"sell {sold[a]:.6g}" for a in own["action"]]
    assert set(agents["unit"]) == {"EUR"}
    assert model.called["firms"][0] == "sell 0"
    assert model.called["firms"][4] == f"sell {agents['param_capacity'].mean():.6g} (mean)"
    cells = [row[3:] for row in regret_rows(agents)]
    worst = (agents["swap_regret"] * agents["loss_scale"]).max()
    assert f"{worst:.4g}" in [cell[1] for cell in cells]


def held(
    first: list[float], second: list[float], utility: str, units: Any = None, **parameters: Any
) -> Any:
    """Play one who holds a, or both; return market, row, and gains by the scale of the first."""
    scale, weights = {"a": first, "b": second}, [[1.0, 0.0], [0.4, 0.6]]
    adversary = {"kind": "iid", "outcomes": ["a", "b"], "scale": scale, "units": units or {}}
    own = {"utility": utility, "parameters": parameters | {"weights": weights}}
    model = played(adversary=adversary, cohort=[own | {"name": "funds", "actions": 2}])
    low, high = first
    gains = model.rounds_frame()[["y_0", "y_1"]].to_numpy() @ np.transpose(weights)
    chosen = model.regret_frame()["action"].to_numpy()
    own_gains = low + (high - low) * gains[np.arange(ROUNDS), chosen]
    return model, model.agents_frame().iloc[0], own_gains


def test_utility_of_a_portfolio_is_in_returns() -> None:
    parameters = {"risk_aversion": 1.5, "reference": 0.5}
    model, row, own = held([-0.1, 0.1], [-0.1, 0.1], "mean-variance", **parameters)
    utility = own - 1.5 / 2 / 0.2 * own**2  # variance in returns, about a return of 0
    told = -(row["loss_offset"] + row["loss_scale"] * row["mean_loss"])
    assert told == pytest.approx(utility.mean())
    assert row["unit"] == "return"
    assert model.called["funds"] == ["hold 1 of a", "hold 0.6 of b, 0.4 of a"]


@pytest.mark.parametrize("high", [0.3, 0.1])
def test_a_sum_of_outcomes_is_in_their_unit_where_they_have_one_scale(high: float) -> None:
    _, row, own = held([-0.1, 0.3], [-0.1, high], "linear", units={"a": "USD", "b": "USD"})
    told = -(row["loss_offset"] + row["loss_scale"] * row["mean_loss"])
    assert (row["unit"] == "USD") == (high == 0.3) == (told == pytest.approx(own.mean()))


def test_depositors_wait_or_withdraw() -> None:
    parameters = {"early": 1.2, "late": 1.5}
    savers = {"name": "savers", "utility": "depositor", "count": 2, "actions": 2}
    adversary = {"kind": "iid", "outcomes": 1}
    model = played(adversary=adversary, cohort=[savers | {"parameters": parameters}])
    assert model.called["savers"] == ["wait", "withdraw"]
    assert set(model.agents_frame()["unit"]) == {"deposits"}


def test_orders_are_named_by_side_units_and_price() -> None:
    market = {"kind": "order-book", "cash": 9.0, "stock": 9.0, "ticks": 64}
    own = {"utility": "orders", "actions": 4, "response": "hedge"}
    menu = {"low": 0.25, "high": 0.75, "size": 2.0, "value": 0.5}
    sides = [{"name": side, "parameters": menu | {"side": side}} for side in ("buy", "sell")]
    cohorts = [own | side | {"count": 2} for side in sides]
    model = played(adversary=PRICE, market=market, cohort=cohorts)
    assert model.called["buy"] == ["no order", *(f"buy 2 at {p} EUR" for p in (60, 110, 160))]
    gain = model.game.cohorts[0].loss
    agents = model.agents_frame()
    np.testing.assert_allclose(agents["loss_scale"][:2], 200 * gain.unit_scale[[0, 0]])
    assert set(agents["unit"]) == {"EUR"}
