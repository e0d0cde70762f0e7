"""`reproduce streams` at a small size: every cell is there, and the same for any number of jobs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from regretless.scenarios.reproduce import streams


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    done: list[int] = []
    measured = streams.measure(rounds=30, seeds=2, jobs=1, progress=done.append)
    assert done == list(range(1, streams.cells(2) + 1))
    return measured


def test_every_cell_is_measured(table: pd.DataFrame) -> None:
    counts = table.groupby(["stream", "forecast"]).size()
    assert len(counts) == len(streams.STREAMS) * len(streams.FORECASTS)
    assert (counts == 2).all()
    assert table["swap_regret"].between(0, 1).all()
    ours = table["forecast"].str.startswith("decision-swap")
    assert (table.loc[ours, "swap_regret"] <= table.loc[ours, "bound_from_bias"] + 1e-9).all()
    assert table.loc[~ours, "bound"].isna().all()
    assert table.loc[~ours, "certificate"].isna().all()


def test_workers_change_nothing(table: pd.DataFrame) -> None:
    again = streams.measure(rounds=30, seeds=2, jobs=2)
    drop = ["milliseconds"]
    pd.testing.assert_frame_equal(table.drop(columns=drop), again.drop(columns=drop))


def test_table_and_figure(table: pd.DataFrame, tmp_path: Path) -> None:
    printed = streams.text(table)
    cell = table.query("stream == 'iid' and forecast == 'last value'")["swap_regret"]
    assert f"{cell.mean():.4f} ({cell.min():.4f}-{cell.max():.4f})" in printed
    rows, figure = streams.write(table, tmp_path / "streams")
    assert len(pd.read_csv(rows)) == streams.cells(2)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_followers_of_the_past_are_broken_and_the_forecast_is_not() -> None:
    """Last value is wrong every round of the adaptive stream."""
    ours = streams.one_run("adaptive", "decision-swap, adaptive", 1000, 0)["swap_regret"]
    last = streams.one_run("adaptive", "last value", 1000, 0)["swap_regret"]
    assert ours < 0.05
    assert last > 0.2
