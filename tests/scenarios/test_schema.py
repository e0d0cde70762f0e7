"""The printed schemas: every bundled file satisfies its own, what is misspelt does not."""

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from desk import Call
from jsonschema import Draft202012Validator

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import CATALOGUE, KEYS, VALUES, check_values, read
from regretless.scenarios.config.validation import validated
from regretless.scenarios.schema import FILES, schema
from regretless.scenarios.studies import design

BUNDLED = [
    ("scenario", CATALOGUE),
    ("scenario", design.CATALOGUE / "scenarios"),  # bases of studies that are in no catalogue
    ("study", design.CATALOGUE),
]
SCENARIO = """\
name = "small"
rounds = 3
adversary = { kind = "iid", outcomes = 2 }
forecaster = { reference = "running-mean" }
windows = { every = 2 }
cohort = [{ name = "few", utility = "linear", actions = 2, basis = "linear" }]
"""
STUDY = """\
scenario = "crop-choice"
seeds = 2
[set]
"forecaster.kind" = "running-mean"
[[list]]
rounds = 3
"""


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schema(kind))


def faults(kind: str, raw: dict[str, Any]) -> list[str]:
    found = list(validator(kind).iter_errors(raw))
    for fault in found:
        found += fault.context  # of the branches of a union, each of its own
    return [fault.message for fault in found]


def test_what_is_printed_is_a_schema_and_bundled_files_satisfy_it(call: Call) -> None:
    for kind in FILES:
        Draft202012Validator.check_schema(schema(kind))
        answer = call("schema", kind)
        assert (answer.status, json.loads(answer.out)) == (0, schema(kind))
    for kind, home in BUNDLED:
        for path in home.glob("*.toml"):
            assert faults(kind, read(path)) == [], path


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("scenario", "rounds = 3", "rounds = 0"),
        ("scenario", "rounds = 3\n", ""),
        ("scenario", 'basis = "linear"', "basis = 3"),
        ("study", "seeds = 2", "seeds = 0"),
        ("study", "[[list]]", "[list]"),
        ("scenario", "rounds = 3", "rounds = 3\ncuont = 3"),
        ("scenario", "every = 2", "every = 2, cuont = 3"),
        ("scenario", "actions = 2", "actions = 2, cuont = 3"),
        ("study", "seeds = 2", "seeds = 2\ncuont = 3"),
    ],
)
def test_what_a_file_may_not_say_is_seen_and_a_misspelt_key_is_named(
    kind: str, old: str, new: str
) -> None:
    """Tables whose further keys are parameters of a building block take any key."""
    text = {"scenario": SCENARIO, "study": STUDY}[kind]
    assert text.count(old) == 1
    assert faults(kind, tomllib.loads(text)) == []
    said = faults(kind, tomllib.loads(text.replace(old, new)))
    assert any("'cuont' was unexpected" in fault for fault in said) if "cuont" in new else said


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"delay": 3}, {"kind": "running-mean", "intervals": True}),
        ({"kind": "calibration", "cells": 4}, {"cells": 4}),
        ({"kind": "exponential-smoothing", "rate": 0.2}, {"rate": 0.2}),
        ({"response": "quantal", "eta": 2.0}, {"response": "quantal"}),
        ({"response": "ensemble", "eta": 2.0}, {"eta": 2.0}),
        ({"cover": {"kind": "snap"}}, {"response": "ensemble", "cover": {"kind": "snap"}}),
        ({"entry_rate": 0.1}, {"response": "hedge", "entry_rate": 0.1}),
        ({"response": "hedge", "settings": {"rate": 0.1}}, {"settings": {"rate": 0.1}}),
        ({"response": "my-own", "signal": {"noise": 0.2}}, {"signal": {"noise": 0.2}}),
    ],
)
def test_keys_go_with_the_kind_of_a_table(good: dict[str, Any], bad: dict[str, Any]) -> None:
    """The schema and the reader agree on what a table of a kind may say."""
    raw = tomllib.loads(SCENARIO)
    (one,) = raw["cohort"]
    of_cohorts = ("response", "eta", "entry_rate", "settings", "signal")
    cohort = any(key in good | bad for key in of_cohorts)
    right, wrong = (
        raw | ({"cohort": [one | own]} if cohort else {"forecaster": own}) for own in (good, bad)
    )
    assert faults("scenario", right) == []
    assert faults("scenario", wrong)
    with pytest.raises(UserError, match=r"cohort\.few\." if cohort else "forecaster"):
        validated(wrong, origin=Path())


def test_names_are_proposed_and_not_demanded() -> None:
    raw = tomllib.loads(SCENARIO)
    raw["adversary"]["kind"] = raw["cohort"][0]["utility"] = "my-own"
    assert faults("scenario", raw) == []
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
    assert schema("study")["properties"]["set"]["description"]


# Names of before.


PAGE = Path(__file__).parents[2] / "docs" / "renamed.md"


def nested(dotted: str, value: Any) -> dict[str, Any]:
    """Build a file with one key; a cohort is one of a list."""
    table, _, key = dotted.rpartition(".")
    if table == "cohort":
        return {"cohort": [{"name": "own", key: value}]}
    return {table: {key: value}} if table else {key: value}


@pytest.mark.parametrize(("old", "new"), KEYS.items())
def test_an_old_key_is_refused_with_its_new_name(old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{old.rpartition('.')[2]} is called '{new}' now"):
        validated(nested(old, 1), origin=Path())
    check_values(nested(f"{old.rpartition('.')[0]}.{new}".lstrip("."), 1))


@pytest.mark.parametrize(
    ("key", "old", "new"), [(key, *pair) for key in VALUES for pair in VALUES[key].items()]
)
def test_an_old_kind_is_refused_with_its_new_name(key: str, old: str, new: str) -> None:
    with pytest.raises(UserError, match=f"{key} = '{old}' is called '{new}' now"):
        validated(nested(key, old), origin=Path())


def test_the_page_names_them_all() -> None:
    pairs = [(old.rpartition(".")[2], new) for old, new in KEYS.items()]
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if "|" in line]
    for old, new in [*pairs, *(pair for kinds in VALUES.values() for pair in kinds.items())]:
        assert any(f"`{old}`" in before and f"`{new}`" in after for before, after in rows)
