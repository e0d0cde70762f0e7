"""No headline says what the tables do not: every named scenario, and baselines, briefly played.

Sentences on the page and on the terminal are read by patterns of their own and compared with the
tables of the run; the terminal's lines fit 80 columns.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from page_session import command

from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.report.page import write_report
from regretless.scenarios.spec.files import catalogue

if TYPE_CHECKING:
    from pathlib import Path

RUNS = [(name, "") for name in catalogue()]
RUNS += [("trend-followers", kind) for kind in ("decision-swap", "running-mean", "aggregate")]
RUNS += [("crop-choice", "exponential-smoothing"), ("consumers", "running-mean")]
LOST = re.compile(
    r"(?P<who>.+) lost (?P<own>[\d.]+) a round (by listening|by their own rules): (.*)"
)
OTHER = re.compile(
    r"(about as much as|less than|more than) with "
    r"(the best of \d+ models, [^(]+|the policy [^(]+|the best fixed action[^(]*) \(([\d.]+)\)"
)
SAVED = re.compile(r"saved (?:the worst of ([\d,]+) agents|the agent) ([\d.]+) a round\.")


def check_sentence(line: str, verdict: pd.DataFrame, agents: pd.DataFrame) -> str:
    """Compare a sentence with the tables; return whom it is about."""
    found = LOST.match(line)
    assert found, line
    members = agents[agents["cohort"] == found["who"]]
    rows = verdict[verdict["cohort"] == found["who"]]
    own = members["mean_loss"].mean()
    assert found["own"] == f"{own:.4f}"
    others = OTHER.findall(line)
    assert others
    assert "(" not in OTHER.sub("", line), line
    for word, what, loss in others:
        kind = "model" if "models" in what else "policy" if "policy" in what else "action"
        best = rows[rows["kind"] == kind].sort_values("mean_loss", kind="stable").iloc[0]
        assert loss == f"{best['mean_loss']:.4f}"
        assert kind == "action" or what.endswith(best["name"])
        unsure = abs(best["gain"]) <= best["gain_half"] or loss == found["own"]
        sign = 0 if unsure else np.sign(best["mean_loss"] - own)
        assert word == {0: "about as much as", 1: "less than", -1: "more than"}[int(sign)], line
    regret = members["decision_swap_regret"].fillna(members["swap_regret"])
    saved = SAVED.search(line)
    assert (saved is None) == regret.isna().all()
    if saved:
        assert saved[2] == f"{max(regret.max(), 0):.4f}"
        assert (saved[1] or "1").replace(",", "") == str(len(members))
    return found["who"]


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_headlines_say_what_the_tables_do(name: str, kind: str, tmp_path: Path) -> None:
    other = f" --set forecaster.kind={kind}" if kind else ""
    printed = command(f"regretless run {name} --rounds 6 --out {tmp_path}/run{other}")
    shown = [row for row in printed.splitlines() if not row.startswith("Logs: ")]
    assert max(map(len, shown)) <= 80
    manifest, tables = read_run(tmp_path / "run")
    agents, verdict = tables["agents"], tables["verdict"]
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    claims = [unescape(text) for text in re.findall(r'<p class="claim">(.*?)</p>', page)]
    told = [check_sentence(claim, verdict, agents) for claim in claims]
    assert told == list(verdict["cohort"].unique())
    flat = " ".join(printed.split())
    assert all(claim in flat for claim in claims)
    assert "Its file says" not in page  # which is of other rounds
    assert not manifest["config"].get("claim")
    for column in ("swap_regret", "exploitability", "external_regret"):
        for _, rows in agents.groupby("cohort"):
            known = rows[column].dropna()
            assert known.empty or f"{known.max():.4f}" in flat, column
