"""A study file: the runs it stands for, what it may not say, and what is made of its runs."""

import re
import tomllib
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from desk import Call
from scipy import stats
from worlds import TINY, study

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import load_study
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import CATALOGUE, read_study

SWEEP = """\
scenario = "tiny.toml"
seeds = 2
rounds = 30
[set]
"cohort.farmers.actions" = 4
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
"cohort.farmers.count" = [3, 4]
"""


def test_a_grid_is_the_full_product_times_the_seeds(tmp_path: Path) -> None:
    found = study(tmp_path, SWEEP)
    kinds, counts, seeds = ["decision-swap", "running-mean"], [3, 4], [0, 1]
    expected = [
        {"forecaster.kind": kind, "cohort.farmers.count": count, "seed": seed}
        for kind, count, seed in product(kinds, counts, seeds)
    ]
    assert found.parameters() == expected
    assert len(found) == 8
    for run, row in enumerate(expected):
        raw = found.task(run).raw
        (cohort,) = raw["cohort"]
        assert (raw["seed"], raw["rounds"], cohort["actions"]) == (row["seed"], 30, 4)
        assert raw["forecaster"] == {"kind": row["forecaster.kind"]}
        assert cohort["count"] == row["cohort.farmers.count"]
    assert found.base == tomllib.loads(TINY)


def test_a_list_has_a_setting_per_row(tmp_path: Path) -> None:
    pairs = [(10, "constant"), (20, "last-value")]
    rows = [f'[[list]]\nrounds = {n}\n"forecaster.kind" = "{kind}"\n' for n, kind in pairs]
    text = 'scenario = "tiny.toml"\nseeds = [7, 2]\n' + "".join(rows)
    found = [tuple(row.values()) for row in study(tmp_path, text).parameters()]
    assert found == [(*pair, seed) for pair in pairs for seed in (7, 2)]


LABELS = """\
scenario = "tiny.toml"
seeds = 2
leave_out = ["forecasts"]
[grid]
"cohort.farmers.count" = [3, 4]
[grid.stream]
calm = {}
wild = { "adversary.kind" = "switching", "adversary.length" = 5 }
"""


def test_a_label_stands_for_several_keys(tmp_path: Path) -> None:
    found = study(tmp_path, LABELS)
    expected = [
        {"cohort.farmers.count": count, "stream": stream, "seed": seed}
        for count, stream, seed in product((3, 4), ("calm", "wild"), (0, 1))
    ]
    assert found.parameters() == expected
    raws = [found.task(run).raw for run in range(8)]
    assert [raw["cohort"][0]["count"] for raw in raws] == [3] * 4 + [4] * 4
    calm, wild = {"kind": "drifting", "outcomes": 2}, {"kind": "switching", "outcomes": 2}
    assert [raw["adversary"] for raw in raws[1:3]] == [calm, wild | {"length": 5}]
    other = found.sized(rounds=9, seeds=3)
    assert (len(other), other.task(0).raw["rounds"], other.base) == (12, 9, found.base)
    assert found.sized() == found


@pytest.mark.parametrize("own", ["[grid]\nrounds = [3, 4]\n", "[set]\nrounds = 3\n"])
def test_a_study_that_sets_its_rounds_takes_no_others(tmp_path: Path, own: str) -> None:
    found = study(tmp_path, 'scenario = "tiny.toml"\nseeds = 2\n' + own)
    with pytest.raises(UserError, match="--rounds 9: the study sets 'rounds' itself"):
        found.sized(rounds=9)
    assert len(found.sized(seeds=1)) == len(found) // 2


def test_the_command_plays_a_smaller_edition_without_the_claim(tmp_path: Path, call: Call) -> None:
    study(tmp_path, 'description = "Measured with all seeds."\n' + SWEEP)
    words = f"study {tmp_path}/sweep.toml --rounds 7 --seeds 1 --jobs 1 --out {tmp_path}/out"
    assert call(*words.split()).status == 0
    found = load_study(tmp_path / "out")
    assert list(found.parameters()["seed"]) == [0] * 4
    assert found.table("rounds")["round"].max() == 6
    assert found.record["study"]["file"]["description"] == ""


def test_tables_that_are_left_out_are_not_kept(tmp_path: Path) -> None:
    """And all others are those of the same runs with everything kept."""
    text = LABELS.replace("[3, 4]", "[3]").replace("seeds = 2", "seeds = 1\nrounds = 12")
    whole = text.replace('leave_out = ["forecasts"]', "")
    kept = conduct(study(tmp_path, whole), Options(tmp_path / "whole", jobs=1)).path
    lean = conduct(study(tmp_path, text), Options(tmp_path / "lean", jobs=1)).path
    tables = {str(p.relative_to(kept)): p.read_bytes() for p in kept.rglob("*.parquet")}
    left = {str(p.relative_to(lean)): p.read_bytes() for p in lean.rglob("*.parquet")}
    gone = {f"runs/run=000{run}/forecasts.parquet" for run in (0, 1)}
    assert set(tables) - set(left) == gone
    assert left == {name: table for name, table in tables.items() if name not in gone}
    assert write_report(lean).is_file()
    assert write_report(lean / "runs/run=0001").is_file()


GRID = 'scenario = "tiny.toml"\n[grid]\n'
FAULTS = {
    'scenario = "tiny.toml"\nseed = 3\n': "unknown key 'seed'; did you mean 'seeds'?",
    "seeds = 3\n": "key 'scenario' is missing; add it to the study file",
    'scenario = "tiny.toml"\nseeds = 1_000_000_000_000\n': "more than 1000000 runs; give fewer",
    GRID
    + "rounds = [5]\nseed = [1]\n[set]\nlog_agents = nan\n": "set.log_agents = nan: give a finite",
    GRID + '"a.b" = [2, 99999999999999999999]\n': "grid.a.b = 99999999999999999999: beyond 64 bits",
    GRID + '"a\\u0000b" = [2]\n': "key 'a\\x00b': a control character; drop it",
    GRID + "cohort = [[{count = 3}], [{count = 4}]]\n": "grid.cohort: a column of a study's tables",
    GRID + "setting = {a = {rounds = 3}}\n": "grid.setting: labels need a name without dots that",
    'scenario = "tiny.toml"\n[[list]]\ncohort = []\n': "list row 0: cohort: a column of a study's",
    'scenario = "tiny.toml"\nseeds = 0\n': "seeds: 0: give how many, at least 1, or a list",
    'scenario = "tiny.toml"\nseeds = [1, 1]\n': "seeds: [1, 1]: give how many",
    'scenario = "tiny.toml"\nrounds = 0\n': "rounds = 0: must be greater",
    'scenario = "crop-chioce"\n': "'crop-chioce' does not exist; did you mean 'crop-choice'",
    GRID + "rounds = []\n": "grid.rounds = []",
    GRID + "rounds = [5, 5]\n": "grid.rounds repeats 5; drop it",
    GRID + "seed = [1, 2]\n": "key 'seed' is taken by the study; use seeds = [...]",
    GRID + 'forecaster = [{kind = "constant"}]\n': "forecaster is a table; write a dotted key",
    GRID + "rounds = [5]\n[set]\nrounds = 4\n": "key 'rounds' is given twice; drop one",
    GRID + "rounds = [5]\n[[list]]\nrounds = 4\n": "give one of [grid], [[list]] and [sample]",
    GRID + "rounds = 5\n": "grid.rounds = 5: give a list of values, or a table of keys for each",
    GRID + "stream = {a = 3}\n": "grid.stream = {'a': 3}: give a list of values, or a table",
    GRID + "run = {a = {}}\n": "grid.run: labels need a name without dots that no table's column",
    GRID + "s = {a = {seed = 3}}\n": "key 'seed' is taken by the study",
    GRID + "s = {a = {market = {impact = 1}}}\n": "market is a table; write a dotted key in quotes",
    GRID + "s = {a = {rounds = 3}}\nrounds = [4]\n": "key 'rounds' is given twice; drop one",
    'scenario = "tiny.toml"\nleave_out = ["agents"]\n': "leave_out.0 = 'agents': must be",
    'scenario = "tiny.toml"\n[[list]]\nrounds = 4\n[[list]]\nname = "b"\n': "list row 1: not every",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_file_is_one_line_with_the_cure(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError) as caught:
        study(tmp_path, text)
    assert FAULTS[text] in str(caught.value)
    assert str(caught.value).startswith("sweep.toml: ")
    assert "\n" not in str(caught.value)


SETTINGS = {
    '"cohort.farmers.count" = [3, 0]\n': "cohort.farmers.count = 0: every cohort has count = 0",
    '"cohort.framers.count" = [3]\n': "cohort.framers.count: there is no 'framers'; did you mean",
    '"cohort.farmers.cuont" = [3]\n': "unknown key 'cohort.farmers.cuont'; did you mean 'count'?",
}


def test_a_setting_that_does_not_validate_is_named(tmp_path: Path) -> None:
    for line, told in SETTINGS.items():
        with pytest.raises(UserError, match=f"study 'sweep', .*{re.escape(told)}"):
            study(tmp_path, GRID + line).settings_to_check(())


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.toml")), ids=lambda path: path.stem)
def test_bundled_studies_validate(path: Path) -> None:
    found = read_study(path.stem)
    assert found.spec.description
    tasks = found.settings_to_check(())
    assert len(tasks) * len(found.spec.seeds) == len(found)
    for task in tasks[:: max(1, len(tasks) // 6)]:  # the command itself builds them all
        task.scenario().build()


def test_another_directory_is_no_study(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a study directory: give one"):
        load_study(tmp_path)


def cohort_rows(values: dict[int, float]) -> pd.DataFrame:
    """Make a cohorts table whose welfare is given by run."""
    rows = pd.DataFrame({"run": list(values), "cohort": "a", "welfare_mean": list(values.values())})
    return rows.reindex(columns=analysis.COHORTS, fill_value=0.0)


def sweep_of(kinds: list[str], sizes: list[int], seeds: list[int]) -> pd.DataFrame:
    rows = product(kinds, sizes, seeds)
    frame = pd.DataFrame(rows, columns=["forecaster.kind", "size", "seed"])
    frame.insert(0, "run", range(len(frame)))
    return frame


def test_the_value_of_a_forecast_by_hand() -> None:
    """Differences 1, 2, 6 at size 10; at size 20 a run is missing and its partner is left out."""
    parameters = sweep_of(["running-mean", "decision-swap"], [10, 20], [0, 1, 2])
    welfare = [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 2.0, 3.0, 7.0, 4.0, 8.0]  # run 11 is missing
    table = analysis.value_table(cohort_rows(dict(enumerate(welfare))), parameters)
    assert table[["cohort", "size", "baseline", "pairs"]].to_numpy().tolist() == [
        ["a", 10, "running-mean", 3],
        ["a", 20, "running-mean", 2],
    ]
    assert table["mean"].tolist() == [3.0, 1.0]
    half = 4.302652729911275 * np.sqrt(7.0) / np.sqrt(3.0)  # t with 2 degrees; variance (4+1+9)/2
    assert table[["low", "high"]].iloc[0].tolist() == pytest.approx([3 - half, 3 + half])


def test_a_study_of_one_forecaster_has_no_value_table() -> None:
    for kinds in (["decision-swap"], ["running-mean", "constant"]):
        parameters = sweep_of(kinds, [1], [0, 1])
        rows = cohort_rows(dict.fromkeys(range(len(parameters)), 1.0))
        table = analysis.value_table(rows, parameters)
        assert len(table) == 0
        assert list(table)[:3] == ["cohort", "size", "baseline"]


def test_effects_average_over_the_other_keys_by_seed() -> None:
    parameters = sweep_of(["x", "y"], [1, 2], [0, 1])
    values = [1.0, 2.0, 3.0, 6.0, 0.0, 0.0, 8.0]  # the run with y, 2 and seed 1 is missing
    effects = analysis.effects_table(cohort_rows(dict(enumerate(values))), parameters)
    picked = effects[effects["measure"] == "welfare_mean"].set_index(["key", "value"])
    assert picked["seeds"].tolist() == [2, 1, 2, 1]
    assert picked["mean"].tolist() == [3.0, 4.0, 0.75, 5.5]
    assert picked["low"].isna().tolist() == [False, True, False, True]


def test_intervals_cover_at_their_level() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(2.0, 3.0, (2000, 5))
    ends = np.array([analysis.interval(sample)[1:] for sample in samples])
    covered = int(((ends[:, 0] < 2) & (ends[:, 1] > 2)).sum())
    assert stats.binomtest(covered, 2000, analysis.LEVEL).pvalue > 0.001
    assert np.isnan(analysis.interval([])[0])


# Measures of a user's own: averaged over rounds, compared like every other.


SCENARIO = """\
name = "tiny"
rounds = 9
measures = ["played", "size", "number"]
adversary = { kind = "cyclic", outcomes = 2 }
forecaster = { kind = "running-mean" }
cohort = [
  { name = "one", utility = "linear", count = 3, actions = 2 },
  { name = "two", utility = "linear", count = 2, actions = 2 },
]
"""
OWN = """\
scenario = "tiny.toml"
seeds = 2
grid = { "cohort.one.count" = [0, 4] }
"""


def test_a_study_compares_them(tmp_path: Path) -> None:
    register.measure("played")(lambda model: model.played)
    register.measure("size")(lambda model: {c.name: len(c.row_of) for c in model.game.cohorts})
    register.measure("number")(lambda model: [agent.unique_id for agent in model.agents])
    played = conduct(study(tmp_path, OWN, SCENARIO), Options(tmp_path / "out", jobs=1))
    table = played.effects().set_index(["value", "cohort", "measure"])["mean"]
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
    cohorts = pd.DataFrame(rows, columns=["run", "cohort", "mean_loss"])
    cohorts = cohorts.reindex(columns=analysis.COHORTS)
    table = analysis.effects_table(cohorts, parameters).query("measure == 'mean_loss'")
    found = table.set_index(["key", "value", "cohort"])[["seeds", "mean"]]
    assert found.loc[("other", "a", "one")].tolist() == [1, 0.5]
    assert found.loc[("cohort.one.count", "5", "one")].tolist() == [1, 0.6]
    assert ("cohort.one.count", "0", "one") not in found.index
    assert found.loc[("other", "a", "two")].tolist() == [1, 0.05]  # seed 1 lacks a run


def test_what_is_said_of_the_round_holds_for_all() -> None:
    agents = pd.DataFrame({"agent": [1, 2, 3], "cohort": ["a", "a", "b"]})
    rows = [("whole", "", np.nan, 4.0), ("one", "a", np.nan, 1.0), ("each", "", 3, 7.0)]
    measures = pd.DataFrame(rows, columns=["measure", "cohort", "agent", "value"])
    table = analysis.own_of(measures, agents)
    assert table["whole"].tolist() == [4.0, 4.0]
    assert table["one"].fillna(-1).tolist() == [1.0, -1.0]
    assert table["each"].fillna(-1).tolist() == [-1.0, 7.0]
