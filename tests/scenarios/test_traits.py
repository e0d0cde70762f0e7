"""What the table of agents says of each: its parameters, and its losses in the data's unit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import TomlTable, cohort_table, play_to_end, read_scenario

from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel
from regretless.scenarios.report.figures import Run
from regretless.scenarios.report.run_figures import regret_by_parameter
from regretless.scenarios.verdict import regret_rows, sentences

ROUNDS = 60
COSTS = {"underage": [1.0, 6.0], "overage": 2.0}
SHOPS = cohort_table("shops", 4, 5, "newsvendor", parameters=COSTS)
OTHERS = cohort_table("others", 3, 3, "ces", parameters={"rho": {"choices": [0.4, 0.8]}})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traits")
    demand = 100 + 60 * np.sin(np.arange(ROUNDS) / 3)
    pd.DataFrame({"pieces": demand}).to_csv(folder / "shop.csv", index=False)
    return folder


def played(*cohorts: TomlTable, origin: Path = Path(), seed: int = 2, **more: Any) -> MarketModel:
    raw = {"name": "units", "rounds": ROUNDS, "cohort": [*cohorts]} | more
    return play_to_end(read_scenario(raw, origin=origin), seed=seed)


def of_shops(home: Path, *cohorts: TomlTable) -> MarketModel:
    data = {"file": "shop.csv", "outcomes": ["pieces"], "scale": {"pieces": [20.0, 180.0]}}
    return played(*cohorts, origin=home, seed=1, data=data | {"units": {"pieces": "EUR"}})


def lost(agents: Any, column: str = "mean_loss") -> Any:
    """Return a mean loss in the agents' own units."""
    return agents["loss_offset"] + agents["loss_scale"] * agents[column]


def test_costs_are_those_of_the_orders_in_the_unit_of_the_data(home: Path) -> None:
    model = of_shops(home, SHOPS, OTHERS)
    agents, log = model.agents_frame(), model.regret_frame()
    pieces = 20 + 160 * model.rounds_frame()["y_0"].to_numpy()
    orders = np.linspace(20, 180, 5)
    for _, row in agents[:4].iterrows():
        ordered = orders[log.loc[log["agent"] == row["agent"], "action"]]
        short, over = np.maximum(pieces - ordered, 0), np.maximum(ordered - pieces, 0)
        cost = (row["param_underage"] * short + row["param_overage"] * over).mean()
        assert lost(row) == pytest.approx(cost, rel=1e-9)
    assert agents["unit"].tolist() == ["EUR"] * 4 + [""] * 3
    names = model.swaps_frame()["action_name"].dropna().unique()
    assert set(names) <= {f"order {pieces:g}" for pieces in orders}
    shops = sentences(model.verdict_frame(), agents)
    assert f"({lost(agents)[:4].mean():.4g} EUR)" in next(iter(shops))


def test_parameters_are_columns_of_those_who_have_them(home: Path) -> None:
    """Drawn by the seed; a figure has them as coordinates."""
    agents, again = (of_shops(home, SHOPS, OTHERS).agents_frame() for _ in range(2))
    traits = agents.filter(like="param_")
    pd.testing.assert_frame_equal(again.filter(like="param_"), traits)
    shops, others = traits[:4], traits[4:]
    assert shops["param_underage"].between(1, 6).all()
    assert len(shops["param_underage"].unique()) == 4
    assert (shops["param_overage"] == 2.0).all()
    assert set(others["param_rho"]) <= {0.4, 0.8}
    assert shops["param_rho"].isna().all()
    assert others["param_underage"].isna().all()
    drawn = regret_by_parameter(Run({}, {"agents": agents}))
    points = [trace for trace in drawn.data if len(trace.x) == 4]
    np.testing.assert_array_equal(points[0].x, shops["param_underage"])


@pytest.mark.parametrize("multiplicity", [{}, {"multiplicity": True}])
def test_types_have_the_parameters_of_their_agents(home: Path, multiplicity: TomlTable) -> None:
    """Listed types hand their parameters out; with multiplicity a row is a type."""
    agents = of_shops(home, SHOPS | {"count": 6, "types": 2} | multiplicity).agents_frame()
    worst = np.maximum(agents["param_underage"], 2.0) * 160  # of an order as wrong as can be
    np.testing.assert_allclose(agents["loss_offset"] + agents["loss_scale"], worst)


PRICE = {"kind": "iid", "outcomes": ["price"], "scale": {"price": [10.0, 210.0]}}
PRICE["units"] = {"price": "EUR"}
COURNOT = {"market": {"kind": "cournot", "intercept": 0.9, "slope": 0.1}}


@pytest.mark.parametrize("market", [{}, COURNOT])
def test_profits_of_firms_are_in_the_unit_of_the_price(market: TomlTable) -> None:
    """With a market, which reads the utility's own units, as without one."""
    parameters = {"cost": 0.3, "capacity": [2.0, 3.0]}
    firms = cohort_table("firms", 3, 5, "firm", parameters=parameters)
    model = played(firms, adversary=PRICE, **market)
    agents, log, swaps = model.agents_frame(), model.regret_frame(), model.swaps_frame()
    price = 10 + 200 * model.rounds_frame()["y_0"].to_numpy()
    for _, row in agents.iterrows():
        sold = row["param_capacity"] * np.arange(5) / 4
        chosen = log.loc[log["agent"] == row["agent"], "action"].to_numpy()
        profit = (sold[chosen] * (price - 70)).mean()
        assert -lost(row) == pytest.approx(profit)
        fixed = max((quantity * (price - 70)).mean() for quantity in sold)
        assert row["loss_scale"] * row["external_regret"] == pytest.approx(fixed - profit)
        own = swaps[swaps["agent"] == row["agent"]]
        assert own["action_name"].tolist() == [f"sell {sold[a]:.6g}" for a in own["action"]]
    assert set(agents["unit"]) == {"EUR"}
    assert model.called["firms"][0] == "sell 0"
    assert model.called["firms"][4] == f"sell {agents['param_capacity'].mean():.6g} (mean)"
    worst = (agents["swap_regret"] * agents["loss_scale"]).max()
    assert f"{worst:.4g}" in [row[4] for row in regret_rows(agents)]


def held(
    first: list[float], second: list[float], utility: str, units: Any = None, **parameters: Any
) -> tuple[MarketModel, Any, Array]:
    """Play one who holds a, or both; return market, row, and gains by the scale of the first."""
    scale, weights = {"a": first, "b": second}, [[1.0, 0.0], [0.4, 0.6]]
    adversary = {"kind": "iid", "outcomes": ["a", "b"], "scale": scale, "units": units or {}}
    funds = cohort_table("funds", 1, 2, utility, parameters=parameters | {"weights": weights})
    model = played(funds, adversary=adversary)
    gains = model.rounds_frame()[["y_0", "y_1"]].to_numpy() @ np.transpose(weights)
    chosen = model.regret_frame()["action"].to_numpy()
    own = first[0] + (first[1] - first[0]) * gains[np.arange(ROUNDS), chosen]
    return model, model.agents_frame().iloc[0], own


def test_utility_of_a_portfolio_is_in_returns() -> None:
    parameters = {"risk_aversion": 1.5, "reference": 0.5}
    model, row, own = held([-0.1, 0.1], [-0.1, 0.1], "mean-variance", **parameters)
    utility = own - 1.5 / 2 / 0.2 * own**2  # variance in returns, about a return of 0
    assert -lost(row) == pytest.approx(utility.mean())
    assert row["unit"] == "return"
    assert model.called["funds"] == ["hold 1 of a", "hold 0.6 of b, 0.4 of a"]


@pytest.mark.parametrize("high", [0.3, 0.1])
def test_a_sum_of_outcomes_is_in_their_unit_where_they_have_one_scale(high: float) -> None:
    _, row, own = held([-0.1, 0.3], [-0.1, high], "linear", units={"a": "USD", "b": "USD"})
    same = -lost(row) == pytest.approx(own.mean())
    assert (row["unit"] == "USD") == (high == 0.3) == same


def test_depositors_wait_or_withdraw() -> None:
    savers = cohort_table("savers", 2, 2, "depositor", parameters={"early": 1.2, "late": 1.5})
    model = played(savers, adversary={"kind": "iid", "outcomes": 1})
    assert model.called["savers"] == ["wait", "withdraw"]
    assert set(model.agents_frame()["unit"]) == {"deposits"}


def test_orders_are_named_by_side_units_and_price() -> None:
    market = {"kind": "order-book", "cash": 9.0, "stock": 9.0, "ticks": 64}
    menu = {"low": 0.25, "high": 0.75, "size": 2.0, "value": 0.5}
    cohorts = [
        cohort_table(side, 2, 4, "orders", response="hedge", parameters=menu | {"side": side})
        for side in ("buy", "sell")
    ]
    model = played(*cohorts, adversary=PRICE, market=market)
    assert model.called["buy"] == ["no order", *(f"buy 2 at {p} EUR" for p in (60, 110, 160))]
    agents, scale = model.agents_frame(), model.game.cohorts[0].loss.unit_scale[0]
    np.testing.assert_allclose(agents["loss_scale"][:2], 200 * scale)
    assert set(agents["unit"]) == {"EUR"}
