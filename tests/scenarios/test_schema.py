"""The printed schemas: every bundled file satisfies its own, what is misspelt does not."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from command_results import RunCommand
from jsonschema import Draft202012Validator

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import CATALOGUE, KEYS, VALUES, check_values, override, read
from regretless.scenarios.config.validation import validated
from regretless.scenarios.schema import FILES, schema
from regretless.scenarios.studies import design

BUNDLED = [
    ("scenario", CATALOGUE),
    ("scenario", design.CATALOGUE / "scenarios"),  # bases of studies that are in no catalogue
    ("study", design.CATALOGUE),
]
COVER = {"kind": "snap"}
FEW = {"name": "few", "utility": "linear", "actions": 2, "basis": "linear"}
SMALL: dict[str, dict[str, Any]] = {
    "scenario": {
        "name": "small",
        "rounds": 3,
        "adversary": {"kind": "iid", "outcomes": 2},
        "forecaster": {"reference": "running-mean"},
        "windows": {"every": 2},
        "cohort": [FEW],
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
    return Draft202012Validator(schema(kind))


def faults(kind: str, raw: dict[str, Any]) -> list[str]:
    found = list(validator(kind).iter_errors(raw))
    for fault in found:
        found += fault.context  # of the branches of a union, each of its own
    return [fault.message for fault in found]


def test_what_is_printed_is_a_schema_and_bundled_files_satisfy_it(run_command: RunCommand) -> None:
    for kind in FILES:
        Draft202012Validator.check_schema(schema(kind))
        answer = run_command("schema", kind)
        assert (answer.status, json.loads(answer.out)) == (0, schema(kind))
        assert faults(kind, SMALL[kind]) == []
    for kind, home in BUNDLED:
        for path in home.glob("*.toml"):
            assert faults(kind, read(path)) == [], path


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("scenario", {"rounds": 0}, "0 is less than the minimum of 1"),
        ("scenario", {"rounds": None}, "'rounds' is a required property"),
        ("scenario", {"cohort": [FEW | {"basis": 3}]}, "3 is not"),
        ("study", {"seeds": 0}, "0 is less than the minimum of 1"),
        ("study", {"list": {"rounds": 3}}, "is not of type 'array'"),
        ("scenario", {"cuont": 3}, "'cuont' was unexpected"),
        ("scenario", {"windows": {"every": 2, "cuont": 3}}, "'cuont' was unexpected"),
        ("scenario", {"cohort": [FEW | {"cuont": 3}]}, "'cuont' was unexpected"),
        ("study", {"cuont": 3}, "'cuont' was unexpected"),
    ],
)
def test_what_a_file_may_not_say_is_seen_and_a_misspelt_key_is_named(
    kind: str, change: dict[str, Any], told: str
) -> None:
    """Tables whose further keys are parameters of a building block take any key."""
    raw = {key: value for key, value in (SMALL[kind] | change).items() if value is not None}
    assert any(told in fault for fault in faults(kind, raw))


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
    right, wrong = (
        SMALL["scenario"] | {table: [FEW | own] if table == "cohort" else own}
        for own in (good, bad)
    )
    assert faults("scenario", right) == []
    assert faults("scenario", wrong)
    with pytest.raises(UserError, match=r"cohort\.few\." if table == "cohort" else "forecaster"):
        validated(wrong, origin=Path())


def test_names_are_proposed_and_not_demanded() -> None:
    own = {"adversary": {"kind": "my-own", "outcomes": 2}, "cohort": [FEW | {"utility": "my-own"}]}
    assert faults("scenario", SMALL["scenario"] | own) == []
    offered = schema("scenario")["$defs"]["RuleSpec"]["properties"]["utility"]["anyOf"]
    assert {"ces", "linear"} <= set(offered[0]["enum"])


def test_every_key_has_its_meaning_below_it() -> None:
    """A key without one would be offered by an editor with no word on what it does."""
    for kind in FILES:
        whole = schema(kind)
        for table in (whole, *whole["$defs"].values()):
            lacking = [k for k, told in table["properties"].items() if "description" not in told]
            assert lacking == [], table
    shown = schema("scenario")["$defs"]["LearnerSpec"]["properties"]["enters"]
    assert shown["description"] == "The round before which they enter."


# Names of before: a file is refused that uses one, with the new one, which the page names too.

PAGE = Path(__file__).parents[2] / "docs" / "renamed.md"
OLD = [(key, old, new) for key in VALUES for old, new in VALUES[key].items()]


def named(dotted: str, value: Any) -> dict[str, Any]:
    """Return a file with one key, of its one cohort where it is about cohorts."""
    own = dotted.replace("cohort.", "cohort.own.")
    return override({"cohort": [{"name": "own"}]}, [f"{own}={value!r}"])


def test_an_old_name_is_refused_with_its_new_name() -> None:
    cases = [(key, 1, new, f"{key.rpartition('.')[2]} is") for key, new in KEYS.items()]
    cases += [(key, old, new, f"{key} = '{old}' is") for key, old, new in OLD]
    for key, value, new, said in cases:
        with pytest.raises(UserError, match=f"{said} called '{new}' now"):
            validated(named(key, value), origin=Path())
        check_values(named(f"{key.rpartition('.')[0]}.{new}".lstrip("."), 1))


def test_the_page_names_them_all() -> None:
    pairs = [(old.rpartition(".")[2], new) for old, new in KEYS.items()]
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if "|" in line]
    for old, new in [*pairs, *(names for _, *names in OLD)]:
        assert any(f"`{old}`" in before and f"`{new}`" in after for before, after in rows)
