"""Tables of few rounds: measured, or refused in one line that says how many are needed."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from paper.__main__ import TABLES, main
from paper.harness import Table
from paper.listeners import on_series

NAMES_WITH_A_MINIMUM = (
    "announcements",
    "attacks",
    "attacks-followers",
    "attacks-learners",
    "carried-errors",
    "entry",
    "everyone-rates",
    "exploitation",
    "intervals",
    "late-outcomes",
)


def table_of(name: str) -> Table:
    table = import_module(f"paper.{TABLES[name]}").TABLES[name]
    assert isinstance(table, Table)
    return table


@pytest.mark.parametrize("name", NAMES_WITH_A_MINIMUM)
def test_too_few_rounds_are_refused_in_one_line_that_says_how_many_are_needed(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    least = table_of(name).min_rounds
    with pytest.raises(SystemExit) as stopped:
        main([name, "--rounds", str(least - 1), "--out", str(tmp_path / "out")])
    complaint = capsys.readouterr().err
    assert stopped.value.code == 2
    assert complaint.startswith(f"python -m paper: --rounds {least - 1}: ")
    assert complaint.endswith(f"; give at least {least}\n")
    assert complaint.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "instance"),
    [
        ("entry", ""),
        ("everyone-rates", "against the mean"),
        ("intervals", ("switching", False)),
    ],
)
def test_the_fewest_rounds_that_are_taken_have_a_row(name: str, instance: object) -> None:
    table = replace(table_of(name), instances=lambda: [instance])
    measured = table.measure(rounds=table.min_rounds, jobs=1)
    regrets = measured.select_dtypes("number").drop(columns="slope", errors="ignore")
    assert np.isfinite(regrets.to_numpy()).all()


def test_outcomes_that_are_all_the_same_in_few_rounds_are_compared() -> None:
    rows = pd.DataFrame(on_series("bike-demand", 1))
    assert np.isfinite(rows["as it is"]).all()
