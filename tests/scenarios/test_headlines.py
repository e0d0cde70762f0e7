"""What a run prints and its page says are the numbers of its tables, in 80 columns and 40 lines."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest
from page_session import command

from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.summary import MOST
from regretless.scenarios.verdict import alternative_cells, difference, records, sentences

if TYPE_CHECKING:
    from pathlib import Path

# one of each kind: models or none, a policy, learners, a single agent, who comes late
NAMES = ("late-news", "beating-mean-based-learners", "survival", "own-draws")
RUNS = [(name, "") for name in NAMES]
RUNS += [("trend-followers", kind) for kind in ("decision-swap", "running-mean")]
RUNS += [("crop-choice", "exponential-smoothing")]
RUNS += [pytest.param("mixed-bazaar", "", marks=pytest.mark.catalogue)]
MEASURES = ("external_regret", "swap_regret", "decision_swap_regret", "exploitability")


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_what_is_printed_is_in_the_tables(name: str, kind: str, tmp_path: Path) -> None:
    other = f" --set forecaster.kind={kind}" if kind else ""
    words = f"regretless run {name} --rounds 6{other} --out {tmp_path}"
    short, whole = command(f"{words}/run"), command(f"{words}/again --verbose")
    assert len(short.splitlines()) <= MOST
    for printed in (short, whole):
        assert all(len(line) <= 80 for line in printed.splitlines() if "Logs: " not in line)
    tables = read_run(tmp_path / "run")[1]
    agents, verdict = tables["agents"], tables["verdict"]
    page = unescape(write_report(tmp_path / "run").read_text(encoding="utf-8"))
    assert all(line in page for line in sentences(verdict, agents))
    for cohort, rows in verdict.groupby("cohort", sort=False):
        own = agents if cohort == "everybody" else agents[agents["cohort"] == cohort]
        best = rows[rows["kind"] != "broadcast"].nsmallest(1, "mean_loss")
        for printed in (short, whole):
            assert f"{own['mean_loss'].mean():.4f}" in printed
            assert re.search(rf"{best['mean_loss'].item():.4f} +[+-]0*\.?\d", printed)
            for column in MEASURES:
                assert own[column].isna().all() or f"{own[column].max():.4f}" in printed
        some = int(own["bound"].notna().sum())  # who hears a forecast of today
        if name == "late-news":
            assert 0 < some < len(own)
            assert f"before the run, {some} agents" in short
        for row in records(rows.iloc[1:]):
            cells = alternative_cells(row)[1:]
            assert re.search(" +".join(map(re.escape, filter(None, cells))), whole), cells


@pytest.mark.parametrize(
    ("gap", "half", "words"),
    [
        (0.02, 0.03, "no difference found (between -0.0100 and 0.0500)"),
        (-0.02, 0.01, "0.0200 less (95 % interval -0.0300 to -0.0100)"),
        (0.02, float("nan"), "0.0200 more"),
        (0.00001, float("nan"), "a difference below 0.0001"),
    ],
)
def test_an_interval_with_0_in_it_is_no_difference_found(
    gap: float, half: float, words: str
) -> None:
    assert difference({"difference": gap, "low": gap - half, "high": gap + half}) == words
