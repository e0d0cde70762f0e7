"""No headline says what the tables do not: scenarios of every kind, and baselines, briefly played.

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
from regretless.scenarios.verdict import MANY

if TYPE_CHECKING:
    from pathlib import Path

# one of each kind of sentence: models or none, a policy, learners, a single agent, who comes late
NAMES = ("consumers", "late-news", "spite", "beating-mean-based-learners", "survival", "own-draws")
RUNS = [(name, "") for name in NAMES]
RUNS += [("trend-followers", kind) for kind in ("decision-swap", "running-mean", "aggregate")]
RUNS += [("crop-choice", "exponential-smoothing"), ("pump-and-dump", "")]
RUNS += [pytest.param("mixed-bazaar", "", marks=pytest.mark.catalogue)]
LOST = re.compile(
    r"(?P<who>.+?)(, who)? lost (?P<own>[\d.]+) a round (by listening|by their own rules)[:,] (.*)"
)
OTHER = re.compile(
    r"(about as much as|less than|more than) with "
    r"(the best of \d+ models, [^(]+|the policy [^(]+|the best fixed action[^(]*) \(([\d.]+)\)"
)
REGRET = re.compile(
    r"(Swap|Decision swap) regret of (?:the worst of ([\d,]+) agents(.*?)|the agent): "
    r"([\d.]+) per round\."
)
SHORT = re.compile(
    r"(?:Best off of (\d+) cohorts, beside the best alternative of each,|Worst off) are "
)


def check_sentence(
    line: str, verdict: pd.DataFrame, agents: pd.DataFrame, *, short: bool = False
) -> str:
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
    if not short:
        check_regret(line, members)
    return found["who"]


def check_regret(line: str, members: pd.DataFrame) -> None:
    """Compare the regret of the worst agent, by the name of its measure, with the tables."""
    regret = members["decision_swap_regret"].fillna(members["swap_regret"])
    found = REGRET.search(line)
    assert (found is None) == regret.isna().all()
    if found:
        column = f"{found[1].lower()}_regret".replace(" ", "_")
        assert found[4] == f"{max(members[column].max(), 0):.4f}" == f"{max(regret.max(), 0):.4f}"
        assert (found[2] or "1").replace(",", "") == str(len(members))
        if found[3]:
            assert f", one of {members.loc[regret.idxmax(), 'cohort']}" == found[3]


def check_in_short(claims: list[str], verdict: pd.DataFrame, agents: pd.DataFrame) -> None:
    """Compare three sentences on many cohorts with the tables."""
    own = verdict["kind"] == "broadcast"
    lost = verdict[own].set_index("cohort")["mean_loss"]
    gains = verdict[~own].groupby("cohort", sort=False)["mean_loss"].min() - lost
    *extremes, regret = claims
    assert [SHORT.match(line)[1] for line in extremes] == [str(len(lost)), None]  # type: ignore[index]
    told = [check_sentence(SHORT.sub("", line), verdict, agents, short=True) for line in extremes]
    assert [gains[who] for who in told] == [gains.max(), gains.min()]
    check_regret(regret, agents)


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_headlines_say_what_the_tables_do(name: str, kind: str, tmp_path: Path) -> None:
    other = f" --set forecaster.kind={kind}" if kind else ""
    printed = command(f"regretless run {name} --rounds 6 --out {tmp_path}/run{other}")
    shown = [row for row in printed.splitlines() if not row.startswith("Logs: ")]
    assert max(map(len, shown)) <= 80
    worth = re.findall(r" ([+-]\d\S*)(?: ± (\S+))? *$", printed, re.MULTILINE)
    assert len({len(cell.partition(".")[2]) for row in worth for cell in row if cell}) == 1, worth
    assert not any("e" in cell for row in worth for cell in row)
    manifest, tables = read_run(tmp_path / "run")
    agents, verdict = tables["agents"], tables["verdict"]
    page = write_report(tmp_path / "run").read_text(encoding="utf-8")
    claims = [unescape(text) for text in re.findall(r'<p class="claim">(.*?)</p>', page)]
    cohorts = list(verdict["cohort"].unique())
    if len(cohorts) > MANY:
        check_in_short(claims, verdict, agents)
    else:
        assert [check_sentence(claim, verdict, agents) for claim in claims] == cohorts
    flat = " ".join(printed.split())
    assert all(claim in flat for claim in claims)
    assert "Its file says" not in page  # which is of other rounds
    assert not manifest["config"].get("claim")
    for column in ("swap_regret", "exploitability", "external_regret"):
        for _, rows in agents.groupby("cohort"):
            known = rows[column].dropna()
            assert known.empty or f"{known.max():.4f}" in flat, column
