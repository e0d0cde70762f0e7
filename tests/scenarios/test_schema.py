"""The printed schemas: every bundled file satisfies its own, what is misspelt does not."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command_results import RunCommand
from jsonschema import Draft202012Validator
from small_scenarios import write_study

from regretless.market.core.errors import UserError
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import (
    CATALOGUE,
    RENAMED_KEYS,
    RENAMED_VALUES,
    check_values,
    override,
    read,
)
from regretless.scenarios.config.validation import validated
from regretless.scenarios.schema import FILES, schema
from regretless.scenarios.studies import design

BUNDLED_FOLDERS = [
    ("scenario", CATALOGUE),
    ("scenario", design.CATALOGUE / "scenarios"),  # bases of studies that are in no catalogue
    ("study", design.CATALOGUE),
]
COVER = {"kind": "snap"}
COHORT = {"name": "few", "utility": "linear", "actions": 2, "basis": "linear"}
SMALL_FILES: dict[str, dict[str, Any]] = {
    "scenario": {
        "name": "small",
        "rounds": 3,
        "adversary": {"kind": "iid", "outcomes": 2},
        "forecaster": {"reference": "running-mean"},
        "windows": {"every": 2},
        "cohort": [COHORT],
    },
    "study": {
        "scenario": "crop-choice",
        "seeds": 2,
        "set": {"forecaster.kind": "running-mean"},
        "list": [{"rounds": 3}],
    },
}


@cache
def validator(kind: str) -> Draft202012Validator:
    """Return the validator of a kind of file."""
    return Draft202012Validator(schema(kind))


def fault_messages(kind: str, raw: dict[str, Any]) -> list[str]:
    """Return what a schema says against a file."""
    faults = list(validator(kind).iter_errors(raw))
    for fault in faults:
        faults += fault.context  # of the branches of a union, each of its own
    return [fault.message for fault in faults]


every_kind = pytest.mark.parametrize("kind", FILES)


@every_kind
def test_what_is_printed_is_a_schema_that_a_small_file_satisfies(
    kind: str, run_command: RunCommand
) -> None:
    Draft202012Validator.check_schema(schema(kind))
    result = run_command("schema", kind)
    assert result.status == 0
    assert json.loads(result.out) == schema(kind)
    assert fault_messages(kind, SMALL_FILES[kind]) == []


@pytest.mark.parametrize(("kind", "folder"), BUNDLED_FOLDERS)
def test_bundled_files_satisfy_their_schema(kind: str, folder: Path) -> None:
    for path in folder.glob("*.toml"):
        assert fault_messages(kind, read(path)) == [], path


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("scenario", {"rounds": 0}, "0 is less than the minimum of 1"),
        ("scenario", {"rounds": None}, "'rounds' is a required property"),
        ("scenario", {"cohort": [COHORT | {"basis": 3}]}, "3 is not"),
        ("study", {"seeds": 0}, "0 is less than the minimum of 1"),
        ("study", {"list": {"rounds": 3}}, "is not of type 'array'"),
        ("scenario", {"cuont": 3}, "'cuont' was unexpected"),
        ("scenario", {"windows": {"every": 2, "cuont": 3}}, "'cuont' was unexpected"),
        ("scenario", {"cohort": [COHORT | {"cuont": 3}]}, "'cuont' was unexpected"),
        ("study", {"cuont": 3}, "'cuont' was unexpected"),
    ],
)
def test_what_a_file_may_not_say_is_seen_and_a_misspelt_key_is_named(
    kind: str, change: dict[str, Any], message: str
) -> None:
    """Tables whose further keys are parameters of a building block take any key."""
    raw = {key: value for key, value in (SMALL_FILES[kind] | change).items() if value is not None}
    assert any(message in fault for fault in fault_messages(kind, raw))


@pytest.mark.parametrize(
    ("table", "good", "bad"),
    [
        ("forecaster", {"delay": 3}, {"kind": "running-mean", "intervals": True}),
        ("forecaster", {"kind": "calibration", "cells": 4}, {"cells": 4}),
        ("forecaster", {"kind": "exponential-smoothing", "rate": 0.2}, {"rate": 0.2}),
        ("cohort", {"response": "quantal", "eta": 2.0}, {"response": "quantal"}),
        ("cohort", {"response": "ensemble", "eta": 2.0}, {"eta": 2.0}),
        ("cohort", {"cover": COVER}, {"response": "hedge", "cover": COVER}),
        ("cohort", {"acts_on": "report"}, {"response": "hedge", "acts_on": "report"}),
        ("cohort", {"response": "hedge", "settings": {"rate": 0.1}}, {"settings": {"rate": 0.1}}),
        ("cohort", {"response": "my-own", "signal": {"noise": 0.2}}, {"signal": {"noise": 0.2}}),
    ],
)
def test_keys_go_with_the_kind_of_a_table(
    table: str, good: dict[str, Any], bad: dict[str, Any]
) -> None:
    """The schema and the reader agree on what a table of a kind may say."""
    is_cohort = table == "cohort"
    right = SMALL_FILES["scenario"] | {table: [COHORT | good] if is_cohort else good}
    wrong = SMALL_FILES["scenario"] | {table: [COHORT | bad] if is_cohort else bad}
    assert fault_messages("scenario", right) == []
    assert fault_messages("scenario", wrong)
    with pytest.raises(UserError, match=r"cohort\.few\." if is_cohort else "forecaster"):
        validated(wrong, origin=Path())


def test_names_of_one_s_own_satisfy_the_schema() -> None:
    own_parts = {
        "adversary": {"kind": "my-own", "outcomes": 2},
        "cohort": [COHORT | {"utility": "my-own"}],
    }
    assert fault_messages("scenario", SMALL_FILES["scenario"] | own_parts) == []


def test_built_in_names_are_proposed() -> None:
    utility = schema("scenario")["$defs"]["RuleSpec"]["properties"]["utility"]
    proposed = utility["anyOf"][0]["enum"]
    assert {"ces", "linear"} <= set(proposed)


@every_kind
def test_every_key_has_a_meaning(kind: str) -> None:
    """A key without one would be offered by an editor with no word on what it does."""
    whole = schema(kind)
    for table in (whole, *whole["$defs"].values()):
        for key, node in table["properties"].items():
            assert "description" in node, key


def test_the_meaning_of_a_key_is_the_line_below_it() -> None:
    node = schema("scenario")["$defs"]["LearnerSpec"]["properties"]["enters"]
    assert node["description"] == "The round before which they enter."


# Names of before: a file is refused that uses one, with the new one, which the page names too.

PAGE = Path(__file__).parents[2] / "docs" / "renamed.md"
OLD_VALUES = [(key, old, new) for key in RENAMED_VALUES for old, new in RENAMED_VALUES[key].items()]


def file_with(dotted_key: str, value: Any) -> dict[str, Any]:
    """Return a file with one key, of its one cohort where it is about cohorts."""
    key = dotted_key.replace("cohort.", "cohort.own.")
    return override({"cohort": [{"name": "own"}]}, [f"{key}={value!r}"])


@pytest.mark.parametrize(("key", "new"), RENAMED_KEYS.items())
def test_an_old_key_is_refused_with_its_new_name(key: str, new: str) -> None:
    table, _, name = key.rpartition(".")
    with pytest.raises(UserError, match=f"{name} is called '{new}' now"):
        validated(file_with(key, 1), origin=Path())
    check_values(file_with(f"{table}.{new}".lstrip("."), 1))  # which is no old name


@pytest.mark.parametrize(("key", "old", "new"), OLD_VALUES)
def test_an_old_value_is_refused_with_its_new_name(key: str, old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{key} = '{old}' is called '{new}' now"):
        validated(file_with(key, old), origin=Path())
    check_values(file_with(key, new))


def test_the_page_names_every_old_name_with_its_new_one() -> None:
    pairs = [(old.rpartition(".")[2], new) for old, new in RENAMED_KEYS.items()]
    pairs += [(old, new) for _, old, new in OLD_VALUES]
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if "|" in line]
    for old, new in pairs:
        assert any(f"`{old}`" in before and f"`{new}`" in after for before, after in rows), old


@pytest.mark.parametrize(
    "assignments",
    [
        ["forecaster.quantiles=[0.1]", "forecaster.kind=running-mean"],
        ["forecaster.kind=running-mean", "forecaster.quantiles=[0.1]"],
    ],
)
def test_a_key_that_is_set_beside_a_kind_for_which_it_means_nothing_is_refused(
    assignments: list[str],
) -> None:
    raw = override({**SMALL_FILES["scenario"], "forecaster": {}}, assignments)
    with pytest.raises(UserError, match=r"forecaster\.quantiles: a model alone corrects nothing"):
        validated(raw, origin=Path())


@pytest.mark.parametrize(
    "settings",
    [
        '[set]\n"forecaster.weights" = "exponential"\n"forecaster.kind" = "running-mean"',
        '[set]\n"forecaster.kind" = "running-mean"\n"forecaster.weights" = "exponential"',
        '[set]\n"forecaster.weights" = "exponential"\n[grid]\n"forecaster.kind" = ["running-mean"]',
        '[[list]]\n"forecaster.weights" = "exponential"\n"forecaster.kind" = "running-mean"',
    ],
)
def test_a_study_that_sets_a_key_beside_a_kind_for_which_it_means_nothing_is_refused(
    settings: str, tmp_path: Path
) -> None:
    study = write_study(tmp_path, f'scenario = "tiny.toml"\n{settings}\n')
    with pytest.raises(UserError, match=r"forecaster\.weights: a model alone corrects nothing"):
        study.settings_to_check(())


def test_a_study_of_kinds_is_told_how_a_key_is_given_to_some_of_them_alone(
    tmp_path: Path,
) -> None:
    text = 'scenario = "tiny.toml"\n[set]\n"forecaster.weights" = "exponential"\n'
    kinds = '[grid]\n"forecaster.kind" = ["decision-swap", "running-mean"]\n'
    study = write_study(tmp_path, text + kinds)
    cure = r'let labels give it to other kinds alone, as .*"forecaster\.weights" = VALUE }$'
    with pytest.raises(UserError, match=cure):
        study.settings_to_check(())
    labels = '[grid.forecasters]\na = { "forecaster.kind" = "decision-swap", '
    labels += '"forecaster.weights" = "exponential" }\nb = { "forecaster.kind" = "running-mean" }\n'
    study = write_study(tmp_path, 'scenario = "tiny.toml"\n' + labels)
    assert len(study.settings_to_check(())) == 2


def test_a_study_may_replace_a_kind_beside_keys_of_its_scenario(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, 'scenario = "tiny.toml"\n[set]\n"forecaster.kind" = "running-mean"\n'
    )
    study.base["forecaster"] = {"weights": "exponential"}
    assert study.task(0).raw["forecaster"] == {"kind": "running-mean"}


def test_a_branch_that_changes_a_key_beside_a_kind_for_which_it_means_nothing_is_refused() -> None:
    changes = {"forecaster.weights": "exponential", "forecaster.kind": "running-mean"}
    trunk = Scenario(validated(SMALL_FILES["scenario"], origin=Path())).build()
    with pytest.raises(UserError, match=r"forecaster\.weights: a model alone corrects nothing"):
        trunk.branch(changes)


@pytest.mark.parametrize("value", ["adaptive", "exponential"])
def test_a_key_without_a_meaning_is_refused_whatever_its_value(value: str) -> None:
    forecaster = {"kind": "running-mean", "weights": value}
    raw = {**SMALL_FILES["scenario"], "forecaster": forecaster}
    with pytest.raises(UserError, match=r"forecaster\.weights: a model alone corrects nothing"):
        validated(raw, origin=Path())


@pytest.mark.parametrize("kind", ["none", "aggregate"])
def test_a_reference_that_is_no_single_model_takes_no_parameters(kind: str) -> None:
    forecaster = {"models": ["panel"], "reference": {"kind": kind, "rate": 0.1}}
    raw = {**SMALL_FILES["scenario"], "forecaster": forecaster}
    complaint = f'forecaster.reference: rate means nothing with kind = "{kind}"; drop it'
    with pytest.raises(UserError, match=complaint):
        validated(raw, origin=Path())


def test_steps_of_the_grid_of_quantiles_need_quantiles() -> None:
    raw = {**SMALL_FILES["scenario"], "forecaster": {"quantile_steps": 10}}
    with pytest.raises(UserError, match=r"quantile_steps = 10 .*add quantiles = \[0.05, 0.95\]"):
        validated(raw, origin=Path())


def test_followers_may_become_learners_in_a_branch_though_nobody_set_what_learners_lack() -> None:
    trunk = Scenario(validated(SMALL_FILES["scenario"], origin=Path())).build()
    (cohort,) = SMALL_FILES["scenario"]["cohort"]
    branch = trunk.branch({f"cohort.{cohort['name']}.response": "hedge"})
    branch.run(2)
    (learners,) = branch.game.cohorts
    assert learners.learner.name == "hedge"
