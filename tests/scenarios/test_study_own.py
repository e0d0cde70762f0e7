"""Measures of a user's own in studies: averaged over rounds, compared like every other."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from desk import Call

from regretless.scenarios.studies.analysis.measures import COHORTS, effects_table, own_of
from regretless.scenarios.studies.results import Study

MODULE = """
from regretless.market import register

@register.measure("played")
def played(model):
    return model.played

@register.measure("size")
def size(model):
    return {cohort.name: len(cohort.row_of) for cohort in model.game.cohorts}

@register.measure("number")
def number(model):
    return [agent.unique_id for agent in model.agents]
"""
SCENARIO = """
name = "tiny"
rounds = 9
measures = ["played", "size", "number"]
adversary = { kind = "cyclic", outcomes = 2 }
forecaster = { kind = "running-mean" }

[[cohort]]
name = "one"
utility = "linear"
count = 3
actions = 2

[[cohort]]
name = "two"
utility = "linear"
count = 2
actions = 2
"""
STUDY = """
scenario = "tiny.toml"
seeds = 2
[grid]
"cohort.one.count" = [0, 4]
"""


def test_a_study_compares_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    for name, text in {"own.py": MODULE, "tiny.toml": SCENARIO, "s.toml": STUDY}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    words = "study s.toml --out o --import own --quiet --jobs 1"
    assert call(*words.split()).status == 0
    table = Study("o").effects().set_index(["value", "cohort", "measure"])["mean"]
    assert table["0"].index.unique("cohort").tolist() == ["two", "everybody"]
    expected = {
        ("0", "two"): {"played": 5.0, "size": 2.0, "number": 1.5},
        ("4", "one"): {"played": 5.0, "size": 4.0, "number": 2.5},
        ("4", "two"): {"played": 5.0, "size": 2.0, "number": 5.5},
        ("4", "everybody"): {"played": 5.0, "size": 20 / 6, "number": 3.5},
    }
    for place, means in expected.items():
        assert {name: table[(*place, name)] for name in means} == pytest.approx(means)


def test_a_cohort_of_none_is_averaged_over_the_settings_that_have_it() -> None:
    parameters = pd.DataFrame(
        [(0, 0, 0, "a"), (1, 0, 5, "a"), (2, 0, 0, "b"), (3, 0, 5, "b"), (4, 1, 0, "a")],
        columns=["run", "seed", "cohort.one.count", "other"],
    )
    rows = [(1, "one", 0.5), (3, "one", 0.7)]
    rows += [(run, "two", 0.1 * run) for run in range(5)]
    cohorts = pd.DataFrame(rows, columns=["run", "cohort", "mean_loss"]).reindex(columns=COHORTS)
    table = effects_table(cohorts, parameters).query("measure == 'mean_loss'")
    found = table.set_index(["key", "value", "cohort"])[["seeds", "mean"]]
    assert found.loc[("other", "a", "one")].tolist() == [1, 0.5]
    assert found.loc[("cohort.one.count", "5", "one")].tolist() == [1, 0.6]
    assert ("cohort.one.count", "0", "one") not in found.index
    assert found.loc[("other", "a", "two")].tolist() == [1, 0.05]  # seed 1 lacks a run


def test_what_is_said_of_the_round_holds_for_all() -> None:
    agents = pd.DataFrame({"agent": [1, 2, 3], "cohort": ["a", "a", "b"]})
    rows = [("whole", "", np.nan, 4.0), ("one", "a", np.nan, 1.0), ("each", "", 3, 7.0)]
    measures = pd.DataFrame(rows, columns=["measure", "cohort", "agent", "value"])
    table = own_of(measures, agents)
    assert table["whole"].tolist() == [4.0, 4.0]
    assert table["one"].fillna(-1).tolist() == [1.0, -1.0]
    assert table["each"].fillna(-1).tolist() == [-1.0, 7.0]
