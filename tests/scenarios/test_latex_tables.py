"""Tables of runs and studies as LaTeX that goes into a paper as it is."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regretless.scenarios.latex_tables import MAX_COLUMNS, latex_table


@pytest.fixture
def contrasts() -> pd.DataFrame:
    """Differences of three settings, with all columns that a study's table has."""
    return pd.DataFrame(
        {
            "key": "forecaster.kind",
            "value": ["running_mean", "last & first", "100 % {new}"],
            "against": "decision-swap",
            "cohort": "growers",
            "measure": ["mean_loss", "swap_regret_worst", "mean_loss"],
            "seeds": 20,
            "mean": [-0.0123456, 1.5e-5, np.nan],
            "low": [-0.02, -1e-5, np.nan],
            "high": [-0.001, 2e-5, np.nan],
            "same_scale": True,
            "p": [0.0001, 0.2, np.nan],
            "p_adjusted": [0.0004, 0.4, np.nan],
            "verdict": ["lower", "no difference found", ""],
            "floor": [1.0, 2.0, 3.0],
            "ceiling": [1.0, 2.0, 3.0],
        }
    )


def rows_of(latex: str) -> list[list[str]]:
    """Return the cells of the header and of all rows."""
    rows = re.findall(r"^(.*) \\\\$", latex, re.MULTILINE)
    return [re.split(r"(?<!\\) ?& ?", row) for row in rows if r"\caption" not in row]


def check_is_balanced(latex: str) -> None:
    """Check that braces and environments close, and that no character is left special."""
    text = re.sub(r"^%.*$", "", latex, flags=re.MULTILINE)
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    begun = re.findall(r"\\begin\{(\w+)\}", text)
    ended = re.findall(r"\\end\{(\w+)\}", text)
    assert begun == ended[::-1]
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    assert not re.search(r"(?<!\\)[%#~]", text)
    without_mathematics = re.sub(r"\$[^$]*\$", "", text)
    assert not re.search(r"(?<!\\)[_^]", re.sub(r"\\label\{[^}]*\}", "", without_mathematics))


def test_a_table_is_compact_and_every_row_has_all_its_cells(contrasts: pd.DataFrame) -> None:
    latex = latex_table("contrasts", contrasts)
    check_is_balanced(latex)
    rows = rows_of(latex)
    n_columns = latex.count(r"\arraybackslash")
    assert len(rows) == 1 + len(contrasts)
    assert {len(row) for row in rows} == {n_columns}
    assert n_columns <= MAX_COLUMNS


def test_labels_are_words_and_numbers_are_short(contrasts: pd.DataFrame) -> None:
    header, first, second, last = rows_of(latex_table("contrasts", contrasts))
    assert header == [
        *("value", "measure", "mean", r"95 \% interval", "p", "adjusted p", "verdict")
    ]
    assert first[:5] == [
        r"running\_\allowbreak{}mean",
        "average loss",
        "$-$0.01235",
        "[$-$0.02, $-$0.001]",
        (r"\textless{}0.001"),
    ]
    assert second[:3] == [r"last \& first", "swap regret, worst agent", r"1.5$\times10^{-5}$"]
    assert last[:5] == [r"100 \% \{new\}", "average loss", "", "", ""]


def test_what_is_the_same_in_all_rows_and_what_is_left_out_is_in_the_notes(
    contrasts: pd.DataFrame,
) -> None:
    latex = latex_table("contrasts", contrasts)
    assert "In all rows: key forecaster.kind; compared with decision-swap; cohort growers" in latex
    assert "Not shown: floor, ceiling." in latex
    assert r"\caption{Differences between each value of a setting and its control.}" in latex
    assert r"\label{tab:contrasts}" in latex


def test_a_caption_of_ones_own_is_text(contrasts: pd.DataFrame) -> None:
    latex = latex_table("contrasts", contrasts, caption="A 5 % test of R&D")
    assert r"\caption{A 5 \% test of R\&D}" in latex


def test_a_long_table_runs_over_pages() -> None:
    agents = pd.DataFrame({"agent": range(1, 61), "mean_loss": np.linspace(0.0, 1.0, 60)})
    latex = latex_table("agents", agents)
    check_is_balanced(latex)
    assert r"\begin{longtable}{rr}" in latex
    assert len(rows_of(latex)) == 61


def test_actions_are_named_and_large_numbers_are_whole() -> None:
    swaps = pd.DataFrame(
        {"action": [0, 1], "action_name": ["hold", "sell"], "count": [12345.0, 7.0]}
    )
    rows = rows_of(latex_table("swaps", swaps))
    assert rows == [["action", "count"], ["hold", "12,345"], ["sell", "7"]]


@pytest.mark.parametrize("first", ["[0, 1]", "*best"])
def test_a_row_is_never_taken_for_an_argument_of_the_one_before(first: str) -> None:
    r"""After a line that ends in \\ LaTeX reads a bracket or a star as part of the command."""
    table = pd.DataFrame({"name": ["plain", first], "mean": [1.0, 2.0]})
    assert "\n{}" + first in latex_table("odd", table)


def test_what_is_wider_than_a_line_has_columns_of_fixed_width(contrasts: pd.DataFrame) -> None:
    wide = latex_table("contrasts", contrasts)
    narrow = latex_table("contrasts", contrasts[["value", "mean"]])
    assert wide.startswith(r"% \usepackage{booktabs,array}")
    widths = re.findall(r"p\{([\d.]+)em\}", wide)
    points = 3.985 * 2 * sum(map(float, widths)) + 6 * len(widths)
    assert points <= 345
    assert r"\begin{tabular}{lr}" in narrow


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="there is no pdflatex")
def test_tables_compile_and_fit_into_a_line(tmp_path: Path, contrasts: pd.DataFrame) -> None:
    names = ["[a]", "*b", "R&D_50 %", "a\\b~c^d", "x|y <z>", "\N{MINUS SIGN} ≥ é €"]
    odd = pd.DataFrame({"name": names, "mean": [1e10, -1.5e-12, -2.0, np.inf, 3.0, 4.0]})
    long = pd.concat([contrasts] * 14, ignore_index=True)
    small = [-2.776e-18, -5.551e-17, 0.1234]
    losses = {f"bound_of_round_{number}": small for number in range(5)}
    tables = []
    named_tables = {
        "contrasts": contrasts,
        "odd": odd,
        "long": long,
        "losses": pd.DataFrame(losses),
    }
    for name, table in named_tables.items():
        tables.append(latex_table(name, table))
    packages = r"\usepackage{booktabs,array,longtable}"
    document = "\n".join(
        [r"\documentclass{article}", packages, r"\begin{document}", *tables, r"\end{document}"]
    )
    (tmp_path / "paper.tex").write_text(document, encoding="utf-8")
    compiled = subprocess.run(
        ["pdflatex", "-halt-on-error", "-interaction=batchmode", "paper.tex"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    log = (tmp_path / "paper.log").read_text(encoding="latin-1")
    assert compiled.returncode == 0, log
    assert "Overfull" not in log


def test_a_table_without_rows_is_one() -> None:
    latex = latex_table("failures", pd.DataFrame({"run": [], "error": []}))
    check_is_balanced(latex)
    assert rows_of(latex) == [["run", "error"], [r"\multicolumn{2}{l}{none}"]]


def test_a_table_without_columns_is_one() -> None:
    latex = latex_table("failures", pd.DataFrame())
    check_is_balanced(latex)
    assert r"\begin{tabular}{l}" in latex
    assert r"\multicolumn{1}{l}{none} \\" in latex


def test_several_outcomes_are_told_apart_by_their_numbers() -> None:
    measures = ["y_0_mean", "y_1_mean", "y_1_deviation"]
    text = latex_table("effects", pd.DataFrame({"measure": measures, "mean": [0.1, 0.2, 0.3]}))
    for label in ("outcome 0, mean", "outcome 1, mean", "outcome 1, deviation"):
        assert label in text
    text = latex_table("effects", pd.DataFrame({"measure": ["y_0_mean"], "mean": [0.1]}))
    assert "outcome, mean" in text


def test_gaps_between_columns_count_towards_the_width_of_a_table() -> None:
    few_columns = pd.DataFrame({"a": ["x" * 30, "y"], "b": ["z" * 30, "y"]})
    assert r"\setlength{\tabcolsep}" not in latex_table("effects", few_columns)
    many_columns = pd.DataFrame({letter: [letter * 9, "y"] for letter in "abcdefg"})
    assert r"\setlength{\tabcolsep}" in latex_table("effects", many_columns)


def test_an_action_without_a_name_stands_by_its_number_in_the_column_of_names() -> None:
    swaps = pd.DataFrame({"action": [0, 2], "count": [7, 8], "action_name": ["stay", None]})
    text = latex_table("swaps", swaps)
    assert "count & action " in text
    assert "7 & stay " in text
    assert "8 & 2 " in text
