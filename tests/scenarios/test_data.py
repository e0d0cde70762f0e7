"""Tables of outcomes: scaling into [0, 1], what is refused, and the bundled weather."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regretless.market.core.errors import UserError
from regretless.scenarios import load
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.files import DATA

Writer = Callable[[pd.DataFrame, Path], None]

FRAME = pd.DataFrame(
    {
        "day": ["Mon", "Tue", "Wed", "Thu", "Fri"],
        "rain": [0.0, 5.0, 10.0, 20.0, -1.0],
        "warmth": [-10, 0, 10, 30, 40],
        "share": [0.0, 0.25, 0.5, 0.75, 1.0],
        "month": [1, 1, 2, 2, 3],
    }
)


def to_csv(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False)


def to_parquet(frame: pd.DataFrame, path: Path) -> None:
    frame.to_parquet(path)


WRITERS: dict[str, Writer] = {"csv": to_csv, "parquet": to_parquet}


def table(  # noqa: PLR0913 - one parameter per key of the table
    folder: Path,
    frame: pd.DataFrame,
    outcomes: list[str],
    *,
    context: list[str] | None = None,
    scale: dict[str, list[float]] | None = None,
    ending: str = "csv",
) -> Table:
    """Write a frame and read it back as outcomes."""
    path = folder / f"table.{ending}"
    WRITERS[ending](frame, path)
    spec = DataSpec(file=str(path), outcomes=outcomes, context=context or [], scale=scale or {})
    return read_table(spec)


@pytest.mark.parametrize(
    ("ends", "expected", "clipped"),
    [
        ([-1.0, 20.0], [1 / 21, 6 / 21, 11 / 21, 1, 0], 0.0),
        ([0.0, 20.0], [0, 0.25, 0.5, 1, 0], 0.2),
        ([0.0, 10.0], [0, 0.5, 1, 1, 0], 0.4),
        ([10.0, 0.0], [1, 0.5, 0, 0, 1], 0.4),
        ([20.0, -1.0], [20 / 21, 15 / 21, 10 / 21, 0, 1], 0.0),
        ([100.0, 200.0], [0, 0, 0, 0, 0], 1.0),
    ],
)
def test_a_scale_maps_its_ends_to_zero_and_one(
    ends: list[float], expected: list[float], clipped: float, tmp_path: Path
) -> None:
    read = table(tmp_path, FRAME, ["rain"], scale={"rain": ends})
    np.testing.assert_allclose(read.outcomes[:, 0], expected, atol=1e-15)
    assert read.clipped == pytest.approx(clipped)


def test_the_clipped_share_counts_rows_not_cells(tmp_path: Path) -> None:
    scale = {"rain": [0.0, 10.0], "warmth": [0.0, 40.0]}  # rows 4 and 5; row 1
    read = table(tmp_path, FRAME, ["rain", "warmth", "share"], scale=scale)
    assert read.clipped == pytest.approx(3 / 5)
    scale = {"rain": [0.0, 10.0], "warmth": [-10.0, 20.0]}  # rows 4 and 5; the same two
    assert table(tmp_path, FRAME, ["rain", "warmth"], scale=scale).clipped == pytest.approx(2 / 5)


def test_no_outcome_is_a_negative_zero(tmp_path: Path) -> None:
    read = table(tmp_path, FRAME, ["rain"], scale={"rain": [10.0, 0.0]})
    assert not np.signbit(read.outcomes).any()


@pytest.mark.parametrize("ending", WRITERS)
def test_contexts_stand_as_they_are(ending: str, tmp_path: Path) -> None:
    names = ["month", "warmth", "rain"]
    read = table(tmp_path, FRAME, ["share"], context=names, ending=ending)
    np.testing.assert_array_equal(read.contexts, FRAME[names].to_numpy(dtype=float))


def test_csv_and_parquet_give_the_same_bits(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    scale = {"a": [-2.0, 1.5], "b": [2.0, -3.0]}
    read = {
        ending: table(tmp_path, frame, ["a", "b"], context=["c"], scale=scale, ending=ending)
        for ending in WRITERS
    }
    slack = 0.0 if pd.__version__ >= "3" else 1e-12  # pandas 2 reads less well
    for name in ("outcomes", "contexts"):
        ours, theirs = (getattr(read[ending], name) for ending in ("csv", "parquet"))
        np.testing.assert_allclose(ours, theirs, rtol=slack, atol=0.0)
    assert read["csv"].clipped == read["parquet"].clipped > 0


@pytest.mark.parametrize(
    ("values", "read"),
    [
        (pd.array([0, 1, 1], dtype="Int64"), [0, 1, 1]),
        (pd.array([0.5, 1.0, 0.0], dtype="Float64"), [0.5, 1, 0]),
        (np.array([1, 0, 1], dtype=np.int8), [1, 0, 1]),
        (np.array([0.25, 0.5, 1.0], dtype=np.float32), [0.25, 0.5, 1]),
    ],
)
def test_parquet_numbers_of_any_kind(
    values: list[float], read: list[float], tmp_path: Path
) -> None:
    frame = pd.DataFrame({"a": values})
    found = table(tmp_path, frame, ["a"], context=["a"], ending="parquet")
    np.testing.assert_array_equal(found.outcomes[:, 0], read)
    np.testing.assert_array_equal(found.contexts[:, 0], read)


@pytest.mark.parametrize(
    "values",
    [pd.array([0, None, 1], dtype="Int64"), pd.to_timedelta([0, 1, 2]), [[0.0], [1.0], [0.5]]],
)
@pytest.mark.parametrize("key", ["outcomes", "context"])
def test_what_is_no_number_is_refused(key: str, values: list[str], tmp_path: Path) -> None:
    """A date would else be read as nanoseconds since 1970, a missing one as a huge number."""
    frame = pd.DataFrame({"share": [0.0, 0.5, 1.0], "a": values})
    columns = {"outcomes": (["a"], []), "context": (["share"], ["a"])}
    outcomes, context = columns[key]
    with pytest.raises(UserError, match=rf"data\.{key}: column 'a'"):
        table(tmp_path, frame, outcomes, context=context, ending="parquet")


def test_the_scale_that_is_proposed_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"add scale = \{ rain = \[-1, 20\] \}"):
        table(tmp_path, FRAME, ["rain"])
    assert table(tmp_path, FRAME, ["rain"], scale={"rain": [-1, 20]}).clipped == 0


def test_a_data_file_counts_from_the_scenario_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from the folder in which the command happens to run."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    scenario = (
        'name = "s"\nrounds = 2\n[data]\nfile = "t.csv"\noutcomes = ["a"]\n'
        '[[cohort]]\nname = "c"\nutility = "linear"\nactions = 2\n'
    )
    for folder, value in ((home, 0.25), (elsewhere, 0.75)):
        folder.mkdir()
        to_csv(pd.DataFrame({"a": [value]}), folder / "t.csv")
    (home / "s.toml").write_text(scenario, encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    found = load("../home/s.toml").table
    assert found is not None
    assert found.outcomes.tolist() == [[0.25]]
    (home / "t.csv").unlink()
    with pytest.raises(UserError, match=r"'t\.csv' does not exist"):
        load("../home/s.toml")


def test_a_file_in_the_current_folder_does_not_stand_in_for_bundled_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundled = load("crop-choice").table
    monkeypatch.chdir(tmp_path)
    to_csv(weather().head(3), tmp_path / "seattle-weather.csv")
    found = load("crop-choice").table
    assert bundled is not None
    assert found is not None
    np.testing.assert_array_equal(found.outcomes, bundled.outcomes)


# The bundled weather.


def weather() -> pd.DataFrame:
    return pd.read_csv(DATA / "seattle-weather.csv", parse_dates=["date"])


def test_the_weather_has_a_row_for_every_day_of_four_years() -> None:
    frame = weather()
    assert len(frame) == 1461
    days = pd.date_range("2012-01-01", "2015-12-31")
    assert frame["date"].tolist() == days.tolist()
