"""What the table of agents says of each: its parameters, and its losses in the data's unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.report.run_data import Run
from regretless.scenarios.report.run_figures import regret_by_parameter
from regretless.scenarios.spec.scenario import resolved, validated
from regretless.scenarios.verdict import sentences

ROUNDS = 60
SHOPS: dict[str, Any] = {
    "name": "shops",
    "utility": "newsvendor",
    "parameters": {"underage": [1.0, 6.0], "overage": 2.0},
    "count": 4,
    "actions": 5,
}
OTHERS: dict[str, Any] = {
    "name": "others",
    "utility": "ces",
    "parameters": {"rho": {"choices": [0.4, 0.8]}},
    "count": 3,
    "actions": 3,
}


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    demand = 100 + 60 * np.sin(np.arange(ROUNDS) / 3)
    pd.DataFrame({"pieces": demand}).to_csv(tmp_path / "shop.csv", index=False)
    data = {
        "file": "shop.csv",
        "outcomes": ["pieces"],
        "scale": {"pieces": [20.0, 180.0]},
        "units": {"pieces": "EUR"},
    }
    raw = {"name": "shop", "rounds": ROUNDS, "data": data, "cohort": [SHOPS, OTHERS]}
    return Scenario(validated(raw, origin=tmp_path))


def test_costs_are_those_of_the_orders_in_the_unit_of_the_data(scenario: Scenario) -> None:
    model = scenario.build(seed=1)
    model.run()
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
    model = scenario.build(seed=1)
    model.run()
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
        model = Scenario(validated(raw, origin=Path())).build(seed=3)
        model.run()
        agents = model.agents_frame()
        worst = np.maximum(agents["param_underage"], 2.0) * 160  # of an order as wrong as can be
        np.testing.assert_allclose(agents["loss_offset"] + agents["loss_scale"], worst)
