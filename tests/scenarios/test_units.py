"""A run's tables in the data's units, with the names of its columns."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from command_results import RunCommand

from regretless import load, read_run

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


@pytest.fixture
def run_directory(tmp_path: Path, sold: pd.DataFrame, run_command: RunCommand) -> Path:
    """Play a run on the sales of a shop, which have a unit."""
    assert len(sold)
    with (tmp_path / "shop.toml").open("a", encoding="utf-8") as file:
        file.write('[data.units]\nsold = "pieces"\n')
    run_command("run", tmp_path / "shop.toml", "--out", tmp_path / "run", "--quiet")
    return tmp_path / "run"


def metadata_of(file: Path, column: str) -> dict[str, str]:
    """Return the metadata of a Parquet file's column as text."""
    metadata = pq.read_schema(file).field(column).metadata
    return {key.decode(): value.decode() for key, value in metadata.items()}


def test_rounds_have_the_names_of_the_data_beside_numbers(
    run_directory: Path, sold: pd.DataFrame
) -> None:
    rounds = read_run(run_directory).rounds
    np.testing.assert_allclose(rounds["sold"], sold["sold"])
    np.testing.assert_allclose(rounds["y_0"], (sold["sold"] - 20.0) / 160.0)
    np.testing.assert_array_equal(rounds["weekday"], rounds["x_0"])
    assert list(rounds)[-2:] == ["sold", "weekday"]


def test_a_model_has_the_columns_of_the_file_with_the_same_numbers(run_directory: Path) -> None:
    model = load(run_directory.parent / "shop.toml").build()
    model.run()
    in_file = pd.read_parquet(run_directory / "rounds.parquet")
    pd.testing.assert_frame_equal(model.rounds_frame(), in_file, check_dtype=False)


def test_one_line_of_metadata_leads_back_to_the_units_of_the_data(
    run_directory: Path, sold: pd.DataFrame
) -> None:
    file = run_directory / "rounds.parquet"
    low, high = json.loads(pq.read_schema(file).field("y_0").metadata[b"scale"])
    in_pieces = low + (high - low) * pd.read_parquet(file)["y_0"]
    np.testing.assert_allclose(in_pieces, sold["sold"])
    assert metadata_of(file, "y_0")["name"] == "sold"
    assert metadata_of(file, "y_0")["unit"] == "pieces"


def test_losses_have_their_unit_and_the_money_that_0_and_1_stand_for(run_directory: Path) -> None:
    file = run_directory / "agents.parquet"
    agent = pd.read_parquet(file).iloc[0]
    loss = metadata_of(file, "mean_loss")
    regret = metadata_of(file, "swap_regret")
    assert loss["unit"] == regret["unit"] == "EUR"
    assert json.loads(loss["scale"]) == pytest.approx(
        [agent["loss_offset"], agent["loss_offset"] + agent["loss_scale"]]
    )
    assert json.loads(regret["scale"]) == pytest.approx([0.0, agent["loss_scale"]])


def test_actions_of_the_log_have_their_names(run_directory: Path) -> None:
    names = json.loads(metadata_of(run_directory / "regret_log.parquet", "action")["actions"])
    swaps = read_run(run_directory).swaps
    for number, name in zip(swaps["action"], swaps["action_name"], strict=True):
        assert names["shop"][number] == name


def test_a_name_that_the_table_has_already_stays_with_it(
    tmp_path: Path, sold: pd.DataFrame, run_command: RunCommand
) -> None:
    sold.rename(columns={"weekday": "atoms"}).to_csv(tmp_path / "sold.csv", index=False)
    text = SCENARIO.replace('"weekday"', '"atoms"')
    (tmp_path / "shop.toml").write_text(text, encoding="utf-8")
    run_command("run", tmp_path / "shop.toml", "--out", tmp_path / "run", "--quiet")
    run = read_run(tmp_path / "run")
    assert set(run.rounds["atoms"]) == {1}
    assert list(run.rounds)[-1] == "sold"
    assert "x_0" in run.in_units().rounds


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_in_units_has_each_quantity_once(
    tmp_path: Path, sold: pd.DataFrame, run_command: RunCommand, form: str
) -> None:
    assert len(sold)
    out = tmp_path / "run"
    run_command("run", tmp_path / "shop.toml", "--out", out, "--format", form, "--quiet")
    assert list(read_run(out).in_units().rounds) == [
        *("round", "sold", "weekday", "certificate", "atoms")
    ]
