"""``[forecaster] quantiles``: the table ``coverage`` of a run, and what it prints of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_results import RunCommand
from small_scenarios import TINY_SCENARIO, cohort_table, make_scenario, play_to_end

from regretless import UserError
from regretless.forecaster.quantile_forecaster import QuantileForecaster

LEVELS = [0.1, 0.9]
QUANTILES: dict[str, Any] = {"quantiles": LEVELS, "quantile_steps": 4}
FOLLOWERS = cohort_table("followers", 3, 3)


def check_promise(table: pd.DataFrame) -> None:
    level = table["quantile"]
    assert (table["guarantee"] == "coverage").all()
    assert (table["coverage"] >= level - table["bound"] - 1e-9).all()
    assert (table["below"] <= level + table["bound_below"] + 1e-9).all()


@pytest.mark.parametrize("adversary", ["iid", "anti-forecast"])
@pytest.mark.parametrize(
    "keys", [{}, {"delay": 2}, {"weights": "second-order"}, {"models": ["running-mean"]}], ids=str
)
def test_the_promise_is_kept(keys: dict[str, Any], adversary: str) -> None:
    scenario = make_scenario(
        FOLLOWERS,
        rounds=60,
        adversary={"kind": adversary, "outcomes": 2},
        forecaster=QUANTILES | keys,
    )
    table = play_to_end(scenario).coverage_frame()
    assert table["outcome"].tolist() == ["y_0", "y_0", "y_1", "y_1"]
    assert table["quantile"].tolist() == LEVELS * 2
    assert (table["rounds"] == 60).all()
    check_promise(table)


def test_the_table_counts_what_the_drawn_forecasts_announced() -> None:
    """The announced value is the least at which the forecast reaches the level."""
    scenario = make_scenario(
        FOLLOWERS, rounds=40, adversary={"kind": "drifting", "outcomes": 1}, forecaster=QUANTILES
    )
    model = play_to_end(scenario)
    forecasts = model.forecasts_frame()
    drawn = forecasts[(forecasts["block"] == "quantiles") & forecasts["drawn"]]
    outcomes = model.rounds_frame()["y_0"].to_numpy()
    indicators = drawn[[f"p_{i}" for i in range(1, 5)]].to_numpy()  # p_0 is of the outcome itself
    up_to_value = np.column_stack([indicators, np.ones(len(drawn))])
    for level, row in model.coverage_frame().set_index("quantile").iterrows():
        announced = (up_to_value >= level - 1e-9).argmax(axis=1) / 4
        assert row["coverage"] == pytest.approx((outcomes <= announced + 1e-9).mean())


def test_other_blocks_keep_their_forecasts() -> None:
    """Without models, whose switch tests share a risk, nothing else changes in the first round."""
    plain = make_scenario(FOLLOWERS, rounds=1, forecaster={})
    with_quantiles = make_scenario(FOLLOWERS, rounds=1, forecaster=QUANTILES)
    before = play_to_end(plain).forecasts_frame()
    after = play_to_end(with_quantiles).forecasts_frame()
    own = after[after["block"] != "quantiles"].dropna(axis=1, how="all")
    pd.testing.assert_frame_equal(before, own[before.columns])
    assert not any(
        isinstance(block.forecaster, QuantileForecaster) for block in play_to_end(plain).game.blocks
    )


def test_nothing_is_promised_where_the_adversary_sees_the_draw() -> None:
    scenario = make_scenario(
        FOLLOWERS, rounds=10, adversary={"kind": "draw-seer", "outcomes": 1}, forecaster=QUANTILES
    )
    table = play_to_end(scenario).coverage_frame()
    assert (table["guarantee"] == "none").all()
    assert table[["bound", "bound_below"]].isna().all(axis=None)
    assert table["coverage"].between(0, 1).all()


def test_a_run_writes_the_table_and_prints_a_line(
    run_command: RunCommand, working_folder: Path
) -> None:
    (working_folder / "tiny.toml").write_text(TINY_SCENARIO)
    result = run_command(
        *("run", "tiny.toml", "--rounds", "20", "--out", "out"),
        *("--set", "forecaster.quantiles=[0.05, 0.95]", "--set", "forecaster.quantile_steps=4"),
    )
    assert result.status == 0
    assert "Share of y_0 at most its announced quantiles" in result.out
    table = pd.read_parquet("out/coverage.parquet")
    assert len(table) == 4
    check_promise(table)


@pytest.mark.parametrize("levels", [[0.0], [0.5, 0.5], [1.5]])
def test_levels_that_are_none_are_refused(levels: list[float]) -> None:
    with pytest.raises(UserError, match=r"forecaster.quantiles: .*between 0 and 1"):
        make_scenario(FOLLOWERS, forecaster={"quantiles": levels})


def test_a_model_alone_announces_none() -> None:
    with pytest.raises(UserError, match=r'forecaster.quantiles: .*kind = "decision-swap"'):
        make_scenario(FOLLOWERS, forecaster={"kind": "running-mean", "quantiles": [0.5]})
