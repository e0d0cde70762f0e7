"""A study file: the runs it stands for, and what it may not say."""

import tomllib
from itertools import product
from pathlib import Path

import pytest
from desk import Call
from worlds import TINY, study
from written import tables

from regretless.market.core.errors import UserError
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import load_study
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import CATALOGUE, read_study


def test_a_list_has_a_setting_per_row(tmp_path: Path) -> None:
    pairs = [(10, "constant"), (20, "last-value")]
    rows = [f'[[list]]\nrounds = {n}\n"forecaster.kind" = "{kind}"\n' for n, kind in pairs]
    text = 'scenario = "tiny.toml"\nseeds = [7, 2]\n' + "".join(rows)
    found = [tuple(row.values()) for row in study(tmp_path, text).parameters()]
    assert found == [(*pair, seed) for pair in pairs for seed in (7, 2)]


LABELS = """\
scenario = "tiny.toml"
description = "Measured with all seeds."
seeds = 2
leave_out = ["forecasts"]
[set]
"cohort.farmers.actions" = 4
[grid]
"cohort.farmers.count" = [3, 4]
[grid.stream]
calm = {}
wild = { "adversary.kind" = "switching", "adversary.length" = 5 }
"""


def test_a_grid_is_the_full_product_times_the_seeds(tmp_path: Path) -> None:
    """A label stands for several keys."""
    found = study(tmp_path, LABELS)
    expected = [
        {"cohort.farmers.count": count, "stream": stream, "seed": seed}
        for count, stream, seed in product((3, 4), ("calm", "wild"), (0, 1))
    ]
    assert found.parameters() == expected
    assert len(found) == 8
    calm = {"kind": "drifting", "outcomes": 2}
    streams = {"calm": calm, "wild": calm | {"kind": "switching", "length": 5}}
    for run, row in enumerate(expected):
        raw = found.task(run).raw
        (cohort,) = raw["cohort"]
        assert (raw["seed"], raw["adversary"]) == (row["seed"], streams[str(row["stream"])])
        assert (cohort["count"], cohort["actions"]) == (row["cohort.farmers.count"], 4)
    assert found.base == tomllib.loads(TINY)


@pytest.mark.parametrize("own", ["[grid]\nrounds = [3, 4]\n", "[set]\nrounds = 3\n"])
def test_a_study_that_sets_its_rounds_takes_no_others(tmp_path: Path, own: str) -> None:
    found = study(tmp_path, 'scenario = "tiny.toml"\nseeds = 2\n' + own)
    assert found.sized() == found
    with pytest.raises(UserError, match="--rounds 9: the study sets 'rounds' itself"):
        found.sized(rounds=9)
    assert len(found.sized(seeds=1)) == len(found) // 2


def test_a_smaller_edition_is_the_same_runs_without_the_claim_and_what_is_left_out(
    tmp_path: Path, call: Call
) -> None:
    text = LABELS.replace("[3, 4]", "[3]")
    whole = text.replace("seeds = 2", "seeds = 1\nrounds = 7").replace("leave_out", "# leave_out")
    kept = conduct(study(tmp_path, whole), Options(tmp_path / "kept", jobs=1))
    study(tmp_path, text)
    words = f"study {tmp_path}/sweep.toml --rounds 7 --seeds 1 --jobs 1 --out {tmp_path}/lean"
    assert call(*words.split()).status == 0
    lean = load_study(tmp_path / "lean")
    assert lean.record["study"]["file"]["description"] == ""
    assert lean.table("rounds")["round"].max() == 6
    ours, theirs = tables(lean.path), tables(kept.path)
    gone = {f"runs/run=000{run}/forecasts.parquet" for run in (0, 1)}
    assert ours == {name: table for name, table in theirs.items() if name not in gone}
    assert gone <= set(theirs)
    assert write_report(lean.path / "runs/run=0001").is_file()


HEAD = 'scenario = "tiny.toml"\n'
GRID = HEAD + "[grid]\n"
LABELLED = GRID + "s = {a = "
KINDS = '[grid]\n"forecaster.kind" = ["constant", "last-value"]\n'
SAMPLE = HEAD + "[sample]\npoints = 8\n[sample.keys]\n"
BRANCH = HEAD + "[branch]\nat = %d\n[branch.changes.other]\n%s\n"
FAULTS = {
    HEAD + "seed = 3\n": "unknown key 'seed'; did you mean 'seeds'?",
    "seeds = 3\n": "key 'scenario' is missing; add it to the study file",
    HEAD + "seeds = 1_000_000_000_000\n": "more than 1000000 runs; give fewer",
    HEAD + "seeds = 0\n": "seeds: 0: give how many, at least 1, or a list",
    HEAD + "seeds = [1, 1]\n": "seeds: [1, 1]: give how many",
    HEAD + "rounds = 0\n": "rounds = 0: must be greater",
    HEAD + 'leave_out = ["agents"]\n': "leave_out.0 = 'agents': must be",
    'scenario = "crop-chioce"\n': "'crop-chioce' does not exist; did you mean 'crop-choice'",
    HEAD + "set = { rounds = 9, log_agents = nan }\n": "set.log_agents = nan: give a finite",
    GRID + '"a.b" = [2, 99999999999999999999]\n': "grid.a.b = 99999999999999999999: beyond 64 bits",
    GRID + '"a\\u0000b" = [2]\n': "key 'a\\x00b': a control character; drop it",
    GRID + "cohort = [[{count = 3}], [{count = 4}]]\n": "grid.cohort: a column of a study's tables",
    GRID + "setting = {a = {rounds = 3}}\n": "grid.setting: labels need a name without dots that",
    GRID + "rounds = []\n": "grid.rounds = []",
    GRID + "rounds = [5, 5]\n": "grid.rounds repeats 5; drop it",
    GRID + "rounds = 5\n": "grid.rounds = 5: give a list of values, or a table of keys for each",
    GRID + "stream = {a = 3}\n": "grid.stream = {'a': 3}: give a list of values, or a table",
    GRID + "seed = [1, 2]\n": "key 'seed' is taken by the study; use seeds = [...]",
    GRID + 'forecaster = [{kind = "constant"}]\n': "forecaster is a table; write a dotted key",
    GRID + "rounds = [5]\n[set]\nrounds = 4\n": "key 'rounds' is given twice; drop one",
    GRID + "rounds = [5]\n[[list]]\nrounds = 4\n": "give one of [grid], [[list]] and [sample]",
    LABELLED + "{seed = 3}}\n": "key 'seed' is taken by the study",
    LABELLED + "{market = {impact = 1}}}\n": "market is a table; write a dotted key in quotes",
    LABELLED + "{rounds = 3}}\nrounds = [4]\n": "key 'rounds' is given twice; drop one",
    HEAD + "[[list]]\ncohort = []\n": "list row 0: cohort: a column of a study's",
    HEAD + '[[list]]\nrounds = 4\n[[list]]\nname = "b"\n': "list row 1: not every",
    GRID + '"cohort.farmers.count" = [3, 0]\n': "farmers.count = 0: every cohort has count = 0",
    GRID + '"cohort.framers.count" = [3]\n': "framers.count: there is no 'framers'; did you mean",
    GRID + '"cohort.farmers.cuont" = [3]\n': "key 'cohort.farmers.cuont'; did you mean 'count'?",
    GRID + '"forecaster.kind" = ["runing-mean"]\n': "did you mean 'running-mean'?",
    SAMPLE.replace("8", "4") + "rounds = [2, 5]\n": "at least 8",
    SAMPLE.replace("8", '12\nmethod = "sobol"') + "rounds = [2, 5]\n": "power of 2",
    SAMPLE + "rounds = [5, 2]\n": "lower end first",
    SAMPLE + "rounds = [2]\n": "give [low, high]",
    SAMPLE + "rounds = { low = -1.0, high = 50.0, log = true }\n": "above 0",
    SAMPLE + '"cohort.nobody.count" = [2, 5]\n': "nobody",
    SAMPLE + "seed = [2, 5]\n": "taken by the study",
    SAMPLE + "rounds = [2, 5]\n[grid]\nseeds = [3]\n": "give one of [grid], [[list]] and [sample]",
    SAMPLE + 'rounds = [2, 5]\n[sample.targets]\n"on.loss" = 0.5\n': "no such measure",
    HEAD + 'control = "harf"\n' + KINDS: "control = 'harf' is a value of no key",
    HEAD + 'control = { "forecaster.kind" = "harf" }\n' + KINDS: "kind = 'harf' is no value",
    HEAD + 'control = "constant"\n' + KINDS + 'name = ["constant", "b"]\n': "of forecaster.kind, "
    "name; write control = { KEY",
    HEAD + "margin = { mean_los = 1.0 }\n": "margin.mean_los: no such measure; did you mean",
    HEAD + "margin = { mean_loss = 0.0 }\n": "margin.mean_loss = 0.0: must be greater",
    HEAD + "margin = -0.1\n": "margin = -0.1: must be greater",
    BRANCH % (50, '"agent.2" = 1'): "branch.at = 50: a run has 50 rounds; give fewer",
    BRANCH % (-1, '"agent.2" = 1'): "branch.at = -1",
    BRANCH % (9, '"agent.9" = 1'): "there are 3 agents",
    BRANCH % (9, '"cohort.farmers.count" = 1'): "does not change",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_file_is_one_line_with_the_cure(tmp_path: Path, text: str) -> None:
    """Also what only the market knows: nothing is written before every setting is built."""
    with pytest.raises(UserError) as caught:  # noqa: PT012 - reading it, or conducting it
        design = study(tmp_path, text)
        conduct(design, Options(tmp_path / "out", jobs=1))
    assert FAULTS[text] in str(caught.value)
    assert str(caught.value).startswith(("sweep.toml: ", "study 'sweep'", "margin."))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.toml")), ids=lambda path: path.stem)
def test_bundled_studies_validate(path: Path) -> None:
    found = read_study(path.stem)
    assert found.spec.description
    tasks = found.settings_to_check(())
    assert len(tasks) * len(found.spec.seeds) == len(found)
    for task in tasks[:: max(1, len(tasks) // 6)]:  # the command itself builds them all
        task.scenario().build()
