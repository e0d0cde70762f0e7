"""``regretless describe`` of tables with faults: what is left out, and the reason."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from regretless.scenarios.cli import commands

WHOLE = [f"{i * 0.37 % 1:.3f}" for i in range(60)]


def command(*words: str) -> int:
    sys.argv[:] = ["regretless", *words]
    with pytest.raises(SystemExit) as left:
        commands.main()
    return int(left.value.code or 0)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder of one's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def played(desk: Path, head: str, rows: list[str]) -> dict[str, Any]:
    """Describe a table, play its starter for a few rounds, and return its [data]."""
    (desk / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    assert command("describe", "a.csv", "--out", "own.toml") == 0
    assert command("run", "own.toml", "--rounds", "4", "--quiet", "--out", "out") == 0
    data: dict[str, Any] = tomllib.loads(Path("own.toml").read_text())["data"]
    return data


@pytest.mark.parametrize("cell", ["inf", "1e400"])
def test_numbers_with_one_that_is_not_finite_are_neither_words_nor_an_index(
    desk: Path, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    rows = [f"{one},{cell if i == 7 else i + 0.5}" for i, one in enumerate(WHOLE)]
    data = played(desk, "sold,odd", rows)
    assert (data["outcomes"], "index" in data, "context" in data) == (["sold"], False, False)
    printed = capsys.readouterr().out
    assert "odd: numbers that are not finite" in printed
    assert "words" not in printed


def test_two_columns_of_one_name_are_left_out(
    desk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = played(desk, "odd,sold,odd", [f"{one},{one},{one}" for one in WHOLE])
    assert data["outcomes"] == ["sold"]
    printed = capsys.readouterr().out
    for place in (1, 3):
        assert f"odd (column {place}): another column has its name" in printed


@pytest.mark.parametrize("unit", [1e-90, 1e-13])
def test_small_outcomes_fill_their_scale(desk: Path, unit: float) -> None:
    data = played(desk, "sold", [repr(unit * float(one)) for one in WHOLE])
    low, high = data["scale"]["sold"]
    assert 0 == low < 0.9 * unit < high < 1.1 * unit


def test_outcomes_of_which_nearly_all_are_equal_have_a_scale(desk: Path) -> None:
    rows = [f"{0.5 if i == 77 else 0.0}" for i in range(200)]
    assert played(desk, "sold", rows)["scale"]["sold"] == [0.0, 0.5]


@pytest.mark.parametrize(
    ("head", "row", "reason"),
    [
        ("x,y", "{i},{j}", "'x': a counter: it only goes one way; 'y': whole numbers, 2 different"),
        ("x", "{one}e-200", "'x': no number above 1e-100: give them in a smaller unit"),
        ("x,x", "{one},{one}", "'x (column 1)': another column has its name: rename one"),
        ("a,b,c,d,e,f", "u,u,u,u,u,u", "'d': always the same; and 2 more"),
    ],
)
def test_where_nothing_can_be_an_outcome_each_column_has_its_reason(
    desk: Path, capsys: pytest.CaptureFixture[str], head: str, row: str, reason: str
) -> None:
    rows = [row.format(i=i, j=i % 2, one=f"1{one[1:]}") for i, one in enumerate(WHOLE)]
    (desk / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    assert command("describe", "a.csv", "--out", "own.toml") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("regretless: a.csv has no column that can be an outcome; ")
    assert reason in line
    assert not Path("own.toml").exists()
