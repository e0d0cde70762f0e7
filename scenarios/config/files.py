"""Scenario files on disk: the catalogue, a user's own, overrides of keys, and what a value may be.

A file is data (TOML): reading it imports and evaluates nothing. Numbers are finite and fit into 64
bits; text has no control characters, which names would carry into folders, tables and terminals;
tables are nested as people nest them. What has another name since version 0.2.0 is told the new
one, as ``docs/renamed.md`` tells readers.
"""

import re
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.scenarios.config import reasons

HERE = Path(__file__).resolve().parent.parent
TABLES = {".csv", ".parquet"}
CATALOGUE, DATA = HERE / "catalogue", HERE / "data"


def catalogue() -> dict[str, Path]:
    """Named scenarios and their files."""
    return {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}


def find(name: str) -> Path:
    """Path of a named scenario or of a user's file; UserError if there is none."""
    known = catalogue()
    if name in known:
        return known[name]
    path = expanded(name)
    try:
        there, file = path.exists(), path.is_file()
        unended = path.with_name(f"{path.name}.toml").is_file() if path.name else False
    except OSError as error:  # too long for a name, or in a folder that is closed to us
        raise UserError(f"scenario {shown(name)}: {error.strerror}; check the path") from error
    if path.suffix != ".toml" and not there:
        other = f"give a path to a .toml file, or {closest(name, known)}"
        cure = f"for the file write {name}.toml" if unended else other
        raise UserError(f"unknown scenario '{name}'; {cure}")
    if not file:
        what = "is no file" if there else "does not exist"
        raise UserError(f"scenario file '{name}' {what}; check the path")
    if path.suffix in TABLES:
        cure = f"regretless describe {name} --out {path.with_suffix('.toml').name}"
        raise UserError(f"{name} is a table; {cure} writes a scenario for it")
    return path


def read(path: Path) -> dict[str, Any]:
    """Parse a scenario file; UserError if it is not TOML."""
    try:
        return _parsed(path.read_text(encoding="utf-8-sig"), str(path))  # Windows' mark is left out
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} is not valid TOML: {error}; mend that line") from error


def _parsed(text: str, where: str) -> dict[str, Any]:
    """Parse TOML; UserError where Python gives up on what is valid."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise UserError(f"{where}: nested too deep; write it flatter") from error
    except ValueError as error:  # of thousands of digits
        raise UserError(f"{where}: a number beyond 64 bits; give a smaller one") from error


def override(raw: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Apply ``KEY=VALUE`` assignments to a parsed scenario, which is changed and returned.

    Keys are dotted, as in ``cohort.growers.count=50``; a value that is not TOML is text.
    """
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise UserError(f"--set {assignment} is not KEY=VALUE; write e.g. --set rounds=100")
        try:
            value: Any = text.strip()
            with suppress(tomllib.TOMLDecodeError):
                value = _parsed(f"value = {value}", f"{value[:40]}...")["value"]
            assign(raw, key.strip(), value)
        except UserError as error:
            raise UserError(f"--set {error}") from error
    return raw


def assign(raw: dict[str, Any], key: str, value: Any) -> None:
    """Put a value under a dotted key of a parsed scenario, which is changed in place.

    Its description, which is made of the file as it stands, is taken out, and so are the keys of a
    forecaster that mean nothing for a new kind. UserError if the key has no place in the file.
    """
    *path, last = key.split(".")
    raw.pop("description", None)
    table: Any = raw
    for step in path:
        if isinstance(table, list):
            table = {str(entry.get("name")): entry for entry in table if isinstance(entry, dict)}
            if step not in table:
                raise UserError(f"{key}: there is no '{step}'; {closest(step, table)}")
        table = table.setdefault(step, {})
        if not isinstance(table, dict | list):
            raise UserError(f"{key}: '{step}' is a value, not a table; shorten the key")
    if isinstance(table, list):
        raise UserError(f"{key}: name the entry and the key, e.g. cohort.growers.count")
    table[last] = value
    if key == "forecaster.kind" and value not in reasons.OURS:  # which keeps the keys that it knows
        for unknown in reasons.BASELINE:
            table.pop(unknown, None)


LARGEST = 2**63 - 1
SMALLEST = 1e-100  # but for 0, and its inverse the largest: squares and sums are finite
DEEPEST = 50  # tables and lists within one another
PROSE = {"description", "source"}  # keys whose text may have several lines
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
SHOWN = 80  # characters of a value in an error line


def check_values(value: Any, place: str = "", depth: int = 0) -> None:
    """Raise UserError at the first value that no key can have, or name that is another one now.

    ``place``: its key, dotted, cohorts by name; ``depth``: how many tables and lists it lies in.
    """
    if depth > DEEPEST:
        raise UserError(f"{place[:SHOWN]}: nested more than {DEEPEST} deep; write it flatter")
    if isinstance(value, dict):
        for key, entry in value.items():
            own = f"{place}.{key}" if place else str(key)
            _check_key(own, key, entry)
            check_values(entry, own, depth + 1)
    elif isinstance(value, list):
        for entry in value:
            name = entry.get("name", "") if isinstance(entry, dict) else ""
            check_values(entry, f"{place}.{name}" if name else place, depth + 1)
    elif isinstance(value, str):
        if CONTROL.search(re.sub(r"[\t\r\n]", "", value) if place in PROSE else value):
            raise UserError(f"{place} = {shown(value)}: a control character; drop it")
    elif isinstance(value, float) and value and not SMALLEST <= abs(value) <= 1 / SMALLEST:
        wanted = f"give a finite number, 0 or between {SMALLEST:g} and {1 / SMALLEST:g} in size"
        raise UserError(f"{place} = {value}: {wanted}")
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise UserError(f"{place} = {shown(value)}: beyond 64 bits; give a smaller number")


def _check_key(place: str, key: object, entry: object) -> None:
    """Raise UserError for a key, or a name as its value, that is called otherwise now."""
    if CONTROL.search(str(key)):
        raise UserError(f"key {shown(key)}: a control character; drop it")
    dotted = re.sub(r"^cohort\.[^.]+\.", "cohort.", place)
    if dotted in KEYS:
        raise UserError(f"{place} is called '{KEYS[dotted]}' now; rename the key")
    if isinstance(entry, str) and (new := VALUES.get(dotted, {}).get(entry)):
        raise UserError(f"{place} = '{entry}' is called '{new}' now; rename it")


def shown(value: Any) -> str:
    """Write a value for an error line, shortened in its middle."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)  # as a file has it
    half = SHOWN // 2
    return text if len(text) <= SHOWN else f"{text[:half]}...{text[-half:]}"


KEYS = {  # the dotted old key, and the last part of the new one
    "adversary.laws": "distributions",
    "claim": "description",
    "cohort.counted": "multiplicity",
    "cohort.archetypes": "types",
    "cohort.joins": "enters",
    "cohort.leaves": "exits",
    "cohort.within_means": "budget_constraint",
    "forecaster.base": "reference",
    "forecaster.dead_zone": "band",
    "forecaster.trust": "give_up",
}
VALUES = {  # of a dotted key: old values and new ones
    "adversary.kind": {
        "breaker": "anti-forecast",
        "cem": "cma",
        "es": "cma",
        "targeted": "regret-maximiser",
    },
    "forecaster.hull": {"box": "basis"},
}
