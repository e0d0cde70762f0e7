"""`reproduce anchoring` and `reproduce events` at a small size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regretless.scenarios.reproduce import anchoring, events


@pytest.fixture(scope="module")
def anchored() -> pd.DataFrame:
    done: list[int] = []
    measured = anchoring.measure(rounds=25, seeds=1, jobs=1, progress=done.append)
    assert done == list(range(1, anchoring.cells(1) + 1))
    return measured


@pytest.fixture(scope="module")
def conditioned() -> pd.DataFrame:
    done: list[int] = []
    measured = events.measure(rounds=25, seeds=1, jobs=1, progress=done.append)
    assert done == list(range(1, events.cells(1) + 1))
    return measured


def test_every_anchored_cell_is_measured(anchored: pd.DataFrame) -> None:
    counts = anchored.groupby(["stream", "base", "zone"], dropna=False).size()
    assert len(counts) == len(anchoring.ALL) * len(anchoring.CELLS)
    with_base = anchored[anchored["zone"].notna()]
    assert with_base["kept"].between(0, 1).all()
    assert (with_base["swap_regret"] <= with_base["bound_from_bias"] + 1e-9).all()
    assert anchored.loc[anchored["zone"].isna(), "kept"].isna().all()


def test_wide_zones_keep_the_base(anchored: pd.DataFrame) -> None:
    """The share of rounds in which the base has its way grows with the zone."""
    kept = anchored.pivot_table(index=["stream", "base"], columns="zone", values="kept")
    assert (kept[anchoring.ZONES[-1]] >= kept[anchoring.ZONES[0]]).all()


def test_the_curve_applies_the_rule() -> None:
    """Benign streams are judged by the base, hostile ones by the plain forecaster."""
    cells = [("none", np.nan, 0.010), ("b", np.nan, 0.020), ("b", 0.5, 0.019), ("b", 1.0, 0.030)]
    rows = [
        {"stream": s, "base": b, "zone": z, "swap_regret": regret + shift}
        | {"kept": 0.5, "bound": 1.0, "bound_from_bias": 2 * regret}
        for s in ("iid", "adaptive")
        for b, z, regret in cells
        for shift in (-0.001, 0.001)
    ]
    curve = anchoring.curve(pd.DataFrame(rows))
    assert curve["regret"].tolist() == pytest.approx([0.019, 0.030] * 2)
    assert curve["alone"].tolist() == pytest.approx([0.020] * 4)
    assert curve["plain"].tolist() == pytest.approx([0.010] * 4)
    assert curve["wanted"].tolist() == pytest.approx([0.026] * 2 + [0.014] * 2)
    assert curve["met"].tolist() == [True, False, False, False]
    assert curve["bound_from_bias"].tolist() == pytest.approx([0.038, 0.060] * 2)


def test_anchored_files(anchored: pd.DataFrame, tmp_path: Path) -> None:
    assert "met" in anchoring.text(anchored)
    runs, means, figure = anchoring.write(anchored, tmp_path / "out")
    assert len(pd.read_csv(runs)) == anchoring.cells(1)
    cells = len(anchoring.BASES) * len(anchoring.ZONES)
    assert len(pd.read_csv(means)) == len(anchoring.ALL) * cells
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_every_kind_of_events_is_measured(conditioned: pd.DataFrame) -> None:
    counts = conditioned.groupby(["stream", "problem", "events"]).size()
    assert len(counts) == 4 * len(events.CELLS)
    ours = conditioned["events"] != "calibration"
    assert conditioned.loc[~ours, "bound"].isna().all()
    own = conditioned[ours]
    assert (own["swap_regret"] <= own["bound_from_bias"] + 1e-9).all()
    assert (own["bound_from_bias"] <= own["bound"]).all()


def test_scalars_keep_fewer_numbers_where_many_are_predicted(conditioned: pd.DataFrame) -> None:
    numbers = conditioned.groupby(["problem", "events"])["numbers"].first()
    rows = 20 * 5
    assert numbers["nine powers", "coordinates"] == 2 * rows * 9 + rows
    assert numbers["nine powers", "losses"] == 2 * rows * 5 + rows


def test_events_files(conditioned: pd.DataFrame, tmp_path: Path) -> None:
    assert "none" in events.text(conditioned)
    rows, figure = events.write(conditioned, tmp_path / "out")
    assert len(pd.read_csv(rows)) == events.cells(1)
    assert figure.read_bytes().startswith(b"\x89PNG")
