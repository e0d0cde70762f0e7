"""The table of bases at a small size, and the command that makes the tables."""

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paper import bases, families, samples
from paper.__main__ import TABLES, main
from paper.families import FAMILIES

pytestmark = pytest.mark.slow

ROUNDING = 1e-9
SMALL = "mixed population"
SLOW = {"reduced", "ramps", "MReLU, as printed", "MReLU, nearest"}  # in three dimensions


def light() -> list[bases.Case]:
    return [
        case
        for case in bases.cases()
        if case.family != SMALL
        and case.outcomes <= 3
        and not case.error < 0.05  # exact ones, without an error, stay
        and not (case.outcomes == 3 and case.basis in SLOW)
    ]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    done: list[int] = []
    small = replace(bases.TABLES["bases"], instances=light)
    measured = small.measure(jobs=1, progress=done.append)
    assert done == list(range(1, len(light()) + 1))
    return measured


def test_no_error_exceeds_what_is_declared(table: pd.DataFrame) -> None:
    assert (table["error_measured"] <= table["error_declared"] + ROUNDING).all()


def test_declared_errors_are_those_asked_for(table: pd.DataFrame) -> None:
    """But for the reduced basis, whose certificate is looser than what it was asked for."""
    rows = table[table["basis"] != "reduced"]
    wanted = rows["delta"].fillna(0.0)
    assert (rows["error_declared"] <= wanted + ROUNDING).all()


def test_no_sum_of_coefficients_exceeds_lambda(table: pd.DataFrame) -> None:
    """Where lambda is declared for normalised losses."""
    rows = table[table["lipschitz_of"] == "normalised"]
    assert (rows["lipschitz_measured"] <= rows["lipschitz"] * (1 + ROUNDING)).all()
    assert table["cost"].tolist() == pytest.approx(table["lipschitz"] * table["n"] ** 0.5)
    raw = set(table.loc[table["lipschitz_of"] == "raw", "basis"])
    assert raw == {"powers", "Bernstein", "Taylor at 0"}


def test_formulas_of_the_sizes(table: pd.DataFrame) -> None:
    """Bernstein d (p + 1), powers p d, ReLU 1 / (4 delta), grids as the paper and a half of it."""
    for p in (2, 4, 8):
        rows = table[table["family"] == f"L_p, p = {p}"].set_index("basis")
        assert rows.loc["Bernstein", "n"] == 3 * (p + 1)
        assert rows.loc["powers", "n"] == rows.loc["powers", "paper_n"] == 3 * p
    relu = table[table["basis"] == "ReLU grid"]
    assert (relu["n"] == np.ceil(1 / (4 * relu["delta"]) - ROUNDING)).all()
    grids = table[table["family"] == "L-Lipschitz"]
    corners, centred = (grids[grids["basis"] == f"grid, {k}"] for k in ("corners", "centred"))
    assert corners["n"].to_numpy() == pytest.approx(corners["paper_n"].to_numpy())
    assert (centred["n"] <= centred["paper_n"]).all()


def test_what_the_paper_prints(table: pd.DataFrame) -> None:
    """Explicit formulas and leading terms are in columns of their own."""
    row = table[(table["basis"] == "Taylor at 0") & (table["d"] == 3) & (table["delta"] == 0.1)]
    taylor = row[row["family"] == "exponential of ln y"].iloc[0]
    family = FAMILIES["exponential of ln y"]
    basis: Any = family.choices["Taylor at 0"].build(family.losses(3), 0.1)
    degree = basis.degree
    assert taylor["paper_n"] == (3 ** (degree + 1) - 3) / 2
    assert taylor["paper_lipschitz"] == pytest.approx(math.exp(3))
    assert taylor["paper_lipschitz"] < taylor["lipschitz"]  # ln y leaves [-1, 1]
    assert math.isnan(taylor["paper_lipschitz_leading"])
    leontief = table[table["family"] == "Leontief"]
    assert leontief["paper_n"].isna().all()
    assert (leontief["paper_n_leading"] > 1e6 * leontief["n"]).all()
    (losses,) = samples.leontief(2)
    error = 0.3 * families.steepest([losses])  # 3 L delta, delta = 0.1
    told = families.printed_leontief([losses], error)
    log = math.log(10)
    assert told["paper_n_leading"] == pytest.approx(16 * log**7 * 1e5)
    assert told["paper_lipschitz_leading"] == pytest.approx(2 * 2**2.5 * log**4.5 * 1e4)
    convex = families.printed_convex([losses], 0.001)["paper_n_leading"]
    assert convex == pytest.approx(math.log(1000) ** (4 / 3) * 100)
    powers = table[table["family"] == "L_p, p = 4"].iloc[0]
    assert powers["paper_lipschitz_leading"] == 4**5 * 3
    monomials = table[table["family"] == "monomials, beta = 3"].iloc[0]
    assert (monomials["n"], monomials["paper_n"], monomials["paper_lipschitz"]) == (10, 27, 27)


def answer(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    """Run `python -m paper`: status, what it printed and what it complained."""
    status = 0
    try:
        main([*map(str, words)])
    except SystemExit as stopped:
        status = int(stopped.code or 0)
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["basis"], "unknown table 'basis'; did you mean 'bases'?"),
        (["tables"], f"choose one of {len(TABLES)}, such as {min(TABLES)}"),
        (["bases", "--rounds", "5"], "--rounds: the table 'bases' plays no rounds"),
        (["covers", "--rounds", "0"], "--rounds"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    status, out_text, complaint = answer(capsys, *words, "--out", out)
    assert (status, out_text) == (2, "")
    assert named in complaint
    assert complaint.count("\n") == 1
    assert not out.exists()


def test_the_command_goes_on_where_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It leaves a study directory, plays what is missing in it, and never mixes two sizes."""
    words = ["speculator", "--seeds", "1", "--jobs", "1", "--out", tmp_path]
    status, first, complaint = answer(capsys, *words, "--rounds", "8")
    assert (status, complaint) == (0, "")
    home = tmp_path / "speculator"
    assert f"written: {home / 'speculator.csv'}" in first
    assert (home / "study.json").is_file()
    runs = sorted(home.glob("runs/run=*"))
    assert len(runs) == 6
    shutil.rmtree(runs[3])
    kept = {run: (run / "manifest.json").read_bytes() for run in runs if run != runs[3]}
    status, again, _ = answer(capsys, *words, "--rounds", "8")
    assert (status, again) == (0, first)
    assert all((run / "manifest.json").read_bytes() == was for run, was in kept.items())
    status, out, complaint = answer(capsys, *words, "--rounds", "9")
    assert (status, out) == (2, "")
    assert complaint.count("\n") == 1
    assert "holds this table with other --rounds or --seeds; give another folder" in complaint
