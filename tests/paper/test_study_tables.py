"""The tables that are bundled studies, and random games, at a small size: theorems on every row."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streams import FORECASTS, STREAMS

from paper.games import TABLES as GAMES
from paper.tables import TABLES

pytestmark = pytest.mark.slow

SIZES = {  # rounds and seeds
    "streams": (30, 1),
    "covers": (20, 1),
    "speculator": (60, 1),
}
DRAWN = {"streams", "speculator"}  # on a page
ROUNDING = 1e-9
Measured = Callable[[str], pd.DataFrame]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    folder = tmp_path_factory.mktemp("tables")

    @cache
    def table(name: str) -> pd.DataFrame:
        rounds, seeds = SIZES[name]
        done: list[int] = []
        sizes = {"rounds": rounds, "seeds": seeds, "jobs": 1}
        found = TABLES[name].measure(out=folder / name, **sizes, progress=done.append)
        assert done == list(range(1, TABLES[name].cells(seeds) + 1))
        assert found["run"].nunique() == len(done)
        assert (found["rounds"] == rounds).all()
        return found

    return table


@pytest.mark.parametrize("name", SIZES)
def test_a_table_is_printed_drawn_and_written(
    name: str, measured: Measured, tmp_path: Path
) -> None:
    table, whole = measured(name), TABLES[name]
    text = whole.text(table)
    rounds, seeds = SIZES[name]
    assert f", T = {rounds}: mean over {seeds} seeds" in text.splitlines()[0]
    assert "nan" not in text
    rows, *figures = whole.write(table, tmp_path / "out")
    assert rows.name == f"{name}.csv"
    assert [path.name for path in figures] == ([f"{name}.png"] if name in DRAWN else [])
    pd.testing.assert_frame_equal(pd.read_csv(rows)[["run"]], table[["run"]])
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in figures)


def test_every_stream_meets_every_forecast(measured: Measured) -> None:
    table = measured("streams")
    counts = table.groupby(["stream", "forecast"]).size()
    assert len(counts) == len(STREAMS) * len(FORECASTS)
    assert (counts == 1).all()
    assert table["swap_regret"].between(0, 1).all()
    assert (table["milliseconds"] > 0).all()
    ours = table["forecast"].str.startswith("decision-swap")
    assert (table.loc[ours, "swap_regret"] <= table.loc[ours, "bound_from_bias"] + ROUNDING).all()
    assert (table.loc[ours, "certificate"] >= 0).all()
    assert table.loc[~ours, "bound"].isna().all()
    assert table.loc[~ours, "certificate"].isna().all()


def test_only_who_plays_as_promised_has_a_bound(measured: Measured) -> None:
    table = measured("covers")
    assert len(table) == 1 + 8 * 2
    assert (table["mean_swap_regret"] <= table["swap_regret"]).all()
    promised = (table["play"] == "representative") | (table["cover"] == "none")
    assert table.loc[~promised, "bound"].isna().all()
    assert (table.loc[promised, "swap_regret"] <= table.loc[promised, "bound"]).all()


def test_a_speculator_beats_every_forecast_but_ours(measured: Measured) -> None:
    lost = measured("speculator").set_index("forecast")["mean_loss"]
    assert (lost.drop("Decision-Swap") > 0.9).all()
    assert lost["Decision-Swap"] < 0.7


def test_no_regret_is_above_a_bound_in_random_short_games() -> None:
    table = GAMES["games"]
    found = table.summed(table.measure(rounds=75, seeds=2, jobs=1))
    assert (found["games"] == 150).all()
    assert np.isfinite(found["greatest"]).all()
    assert (found["greatest"] > 0).all()
    assert (found["exceeded"] == 0).all()
