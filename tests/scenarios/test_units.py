"""A run's tables in the data's units, with the names of its columns."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_results import RunCommand

from regretless import read_run

SCENARIO = """
name = "shop"
rounds = 40

[data]
file = "sold.csv"
outcomes = ["sold"]
context = ["weekday"]
scale = { sold = [20.0, 180.0] }

[[cohort]]
name = "shop"
utility = "newsvendor"
parameters = { underage = 4.0, overage = 1.0 }
currency = "EUR"
actions = 17
"""


@pytest.fixture
def sold(tmp_path: Path) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"sold": rng.integers(30, 170, 40), "weekday": np.arange(40) % 7})
    table.to_csv(tmp_path / "sold.csv", index=False)
    (tmp_path / "shop.toml").write_text(SCENARIO, encoding="utf-8")
    return table


def test_rounds_are_those_of_the_data_and_losses_are_money(
    tmp_path: Path, sold: pd.DataFrame, run_command: RunCommand
) -> None:
    run_command("run", tmp_path / "shop.toml", "--out", tmp_path / "run", "--quiet")
    run = read_run(tmp_path / "run")
    in_units = run.in_units()
    assert in_units.rounds["sold"].to_numpy() == pytest.approx(sold["sold"].to_numpy())
    assert (in_units.rounds["weekday"].to_numpy() == sold["weekday"].to_numpy()).all()
    assert "y_0" in run.rounds
    agent = in_units.agents.iloc[0]
    normalised = run.agents.iloc[0]
    assert agent["unit"] == "EUR"
    best_fixed_cost = agent["mean_loss"] - agent["external_regret"]
    orders = np.linspace(20.0, 180.0, 17)[:, None]
    demands = sold["sold"].to_numpy(float)
    costs = 4.0 * np.maximum(demands - orders, 0.0) + np.maximum(orders - demands, 0.0)
    assert best_fixed_cost == pytest.approx(costs.mean(axis=1).min())
    assert agent["swap_regret"] == pytest.approx(
        normalised["loss_scale"] * normalised["swap_regret"]
    )
