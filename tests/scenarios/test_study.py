"""A study file: the runs it stands for, and what it may not say."""

import tomllib
from itertools import product
from pathlib import Path

import pytest
from command_results import RefusalOf, RunCommand
from run_files import table_bytes
from small_scenarios import TINY_SCENARIO, write_study

from regretless.market.core.errors import UserError
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import load_study
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import CATALOGUE, read_study


def test_a_list_has_a_setting_per_row(tmp_path: Path) -> None:
    pairs = [(10, "constant"), (20, "last-value")]
    rows = [f'[[list]]\nrounds = {n}\n"forecaster.kind" = "{kind}"\n' for n, kind in pairs]
    text = 'scenario = "tiny.toml"\nseeds = [7, 2]\n' + "".join(rows)
    settings = [tuple(row.values()) for row in write_study(tmp_path, text).parameters()]
    assert settings == [(*pair, seed) for pair in pairs for seed in (7, 2)]


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


def test_a_table_in_a_label_means_the_keys_in_it_and_one_with_a_kind_the_whole_table(
    tmp_path: Path,
) -> None:
    grid = """
    [grid.stream]
    tables = { cohort = { farmers = { actions = 5 } }, forecaster = { kind = "last-value" } }
    keys = { "cohort.farmers.actions" = 5, "forecaster.kind" = "last-value" }
    """
    design = write_study(tmp_path, 'scenario = "tiny.toml"\n' + grid)
    of_tables, of_keys = (design.spec.keys_of(setting) for setting in design.settings)
    whole_forecaster = {"forecaster": {"kind": "last-value"}}
    assert of_tables == {"cohort.farmers.actions": 5} | whole_forecaster
    assert of_keys == {"cohort.farmers.actions": 5, "forecaster.kind": "last-value"}


@pytest.mark.parametrize("label", ["count", "swap_regret", "utility", "bound", "entered"])
def test_labels_named_like_a_column_of_agents_are_refused(label: str, tmp_path: Path) -> None:
    """They would be found only when the tables are made, after all runs."""
    text = LABELS.replace("[grid.stream]", f"[grid.{label}]")
    assert text != LABELS
    with pytest.raises(UserError, match=f"grid.{label}: labels need a name without dots"):
        write_study(tmp_path, text)


@pytest.mark.parametrize("label", ["y_0_mean", "price_deviation"])
def test_labels_that_end_like_measures_of_the_market_are_refused(
    label: str, tmp_path: Path
) -> None:
    """A study makes such columns of all that the table of rounds has."""
    text = LABELS.replace("[grid.stream]", f"[grid.{label}]")
    with pytest.raises(UserError, match=f"grid.{label}: labels need a name without dots"):
        write_study(tmp_path, text)


def test_a_grid_is_the_full_product_times_the_seeds(tmp_path: Path) -> None:
    """A label stands for several keys."""
    study = write_study(tmp_path, LABELS)
    expected = [
        {"cohort.farmers.count": count, "stream": stream, "seed": seed}
        for count, stream, seed in product((3, 4), ("calm", "wild"), (0, 1))
    ]
    assert study.parameters() == expected
    assert len(study) == 8
    calm = {"kind": "drifting", "outcomes": 2}
    streams = {"calm": calm, "wild": calm | {"kind": "switching", "length": 5}}
    for run, row in enumerate(expected):
        raw = study.task(run).raw
        (cohort,) = raw["cohort"]
        assert (raw["seed"], raw["adversary"]) == (row["seed"], streams[str(row["stream"])])
        assert (cohort["count"], cohort["actions"]) == (row["cohort.farmers.count"], 4)
    assert study.base == tomllib.loads(TINY_SCENARIO)


@pytest.mark.parametrize("own", ["[grid]\nrounds = [3, 4]\n", "[set]\nrounds = 3\n"])
def test_a_study_that_sets_its_rounds_takes_no_others(tmp_path: Path, own: str) -> None:
    study = write_study(tmp_path, 'scenario = "tiny.toml"\nseeds = 2\n' + own)
    assert study.sized() == study
    with pytest.raises(UserError, match="--rounds 9: the study sets 'rounds' itself"):
        study.sized(rounds=9)
    assert len(study.sized(seeds=1)) == len(study) // 2


def test_a_smaller_edition_is_the_same_runs_without_the_claim_and_what_is_left_out(
    tmp_path: Path, run_command: RunCommand
) -> None:
    text = LABELS.replace("[3, 4]", "[3]")
    whole = text.replace("seeds = 2", "seeds = 1\nrounds = 7").replace("leave_out", "# leave_out")
    lean_study = conduct(write_study(tmp_path, whole), Options(tmp_path / "kept", jobs=1))
    write_study(tmp_path, text)
    words = f"study {tmp_path}/sweep.toml --rounds 7 --seeds 1 --jobs 1 --out {tmp_path}/lean"
    assert run_command(*words.split()).status == 0
    lean = load_study(tmp_path / "lean")
    assert lean.record["study"]["file"]["description"] == ""
    assert lean.table("rounds")["round"].max() == 6
    ours = table_bytes(lean.path)
    theirs = table_bytes(lean_study.path)
    gone = {f"runs/run=000{run}/forecasts.parquet" for run in (0, 1)}
    assert ours == {name: table for name, table in theirs.items() if name not in gone}
    assert gone <= set(theirs)
    assert write_report(lean.path / "runs/run=0001").is_file()


def test_keys_that_are_set_are_those_of_the_file_in_every_run(
    tmp_path: Path, run_command: RunCommand
) -> None:
    assignments = ("cohort.farmers.actions=5", 'forecaster={ kind = "last-value" }', "rounds=6")
    words = ["--jobs", "1", "--quiet", "--out"]
    write_study(tmp_path, LABELS)
    settings = [word for assignment in assignments for word in ("--set", assignment)]
    command = run_command(
        "study", str(tmp_path / "sweep.toml"), *settings, *words, str(tmp_path / "given")
    )
    assert (command.status, command.err) == (0, "")
    given = load_study(tmp_path / "given")
    in_file = LABELS.replace('"cohort.farmers.actions" = 4', '"cohort.farmers.actions" = 5')
    in_file = in_file.replace("[grid]", 'forecaster = { kind = "last-value" }\nrounds = 6\n[grid]')
    conduct(write_study(tmp_path, in_file), Options(tmp_path / "written", jobs=1))
    assert table_bytes(given.path) == table_bytes(tmp_path / "written")
    assert given.record["study"]["file"]["description"] == ""


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("seed=3", "--set seed=3: a study gives each run its seed; use --seeds N"),
        ("cohort.farmers.count=9", "--set cohort.farmers.count: [grid] of the study gives"),
        ("adversary.length=9", "--set adversary.length: [grid] of the study gives"),
        ("cohort.farmers", "--set cohort.farmers is not KEY=VALUE"),
        ("cohort.millers.count=9", "cohort.millers.count: there is no 'millers'"),
        ("cohort.farmers.actoins=9", "did you mean 'actions'"),
    ],
)
def test_a_key_that_cannot_be_set_is_refused_before_anything_is_written(
    assignment: str, complaint: str, tmp_path: Path, refusal_of: RefusalOf
) -> None:
    write_study(tmp_path, LABELS)
    out = tmp_path / "out"
    assert complaint in refusal_of(
        "study", tmp_path / "sweep.toml", "--set", assignment, "--out", out
    )
    assert not out.exists()


def test_rounds_are_set_in_one_way(tmp_path: Path) -> None:
    study = write_study(tmp_path, LABELS.replace("seeds = 2", "seeds = 2\nrounds = 9"))
    smaller_study = study.with_fixed(["rounds=5"])
    assert smaller_study.task(0).raw["rounds"] == 5
    with pytest.raises(UserError, match="--rounds 7: the study sets 'rounds' itself"):
        smaller_study.sized(rounds=7)


@pytest.mark.parametrize("path", sorted(CATALOGUE.glob("*.toml")), ids=lambda path: path.stem)
def test_bundled_studies_validate(path: Path) -> None:
    study = read_study(path.stem)
    assert study.spec.description
    tasks = study.settings_to_check(())
    assert len(tasks) * len(study.spec.seeds) == len(study)
    for task in tasks[:: max(1, len(tasks) // 6)]:  # the command itself builds them all
        task.scenario().build()


def test_a_date_as_control_is_refused_in_one_line(tmp_path: Path) -> None:
    text = 'scenario = "tiny.toml"\ncontrol = 2020-02-29\n[grid]\nrounds = [3, 4]\n'
    with pytest.raises(UserError, match=r"control = .* is a value of no key"):
        write_study(tmp_path, text)
