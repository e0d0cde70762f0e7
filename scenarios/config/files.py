"""Scenario files on disk: the catalogue, a user's own, overrides of keys, and what a value may be.

A file is data (TOML): reading it imports and evaluates nothing. Numbers are finite and fit into 64
bits; text has no control characters, which names would carry into folders, tables and terminals,
but for the tab that may separate the values of a data file; tables are nested as people nest them.
A key that was renamed since version 0.2.0 is refused with its new name; ``docs/renamed.md`` lists
them for readers.
"""

import re
import tomllib
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.scenarios.config import reasons
from regretless.scenarios.table_endings import is_table

PACKAGE = Path(__file__).resolve().parent.parent
CATALOGUE = PACKAGE / "catalogue"
DATA = PACKAGE / "data"


def catalogue() -> dict[str, Path]:
    """Return the files of the bundled scenarios by name."""
    return {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}


def find(name: str) -> Path:
    """Return the path of a bundled scenario or of a user's file; UserError if there is none."""
    bundled = catalogue()
    if name in bundled:
        return bundled[name]
    path = expanded(name)
    try:
        exists = path.exists()
        is_file = path.is_file()
        has_toml_twin = bool(path.name) and path.with_name(f"{path.name}.toml").is_file()
    except OSError as error:  # too long for a name, or in a folder that may not be read
        reason = f"{error.strerror}; check the path"
        raise UserError(f"scenario {format_value(name)}: {reason}") from error
    if path.suffix != ".toml" and not exists:
        hint = f"give a path to a .toml file, or {closest(name, bundled)}"
        if has_toml_twin:
            hint = f"for the file write {name}.toml"
        raise UserError(f"unknown scenario '{name}'; {hint}")
    if not is_file:
        fault = "is no file" if exists else "does not exist"
        raise UserError(f"scenario file '{name}' {fault}; check the path")
    if is_table(path):
        command = f"regretless describe {name} --out {path.name.split('.')[0]}.toml"
        raise UserError(f"{name} is a table; {command} writes a scenario for it")
    return path


def find_file(key: str, name: str, *folders: Path) -> str:
    """Return the path of a file in the first of several folders that holds it.

    A file of the first folder, the scenario's own, is given by its absolute path. UserError if no
    folder has it.
    """
    origin = folders[0]
    name = str(expanded(name, f"{key}.file"))
    fault = "does not exist"
    with suppress(OSError):  # too long for a name
        for folder in folders:
            path = folder / name
            if path.is_file():
                return str(path.resolve()) if folder is origin else str(path)
        if (origin / name).is_dir():
            fault = "is a folder"
    raise UserError(f"{key}.file {format_value(name)} {fault}; give a path from the scenario file")


def read(path: Path) -> dict[str, Any]:
    """Parse a scenario file; UserError if it is not TOML."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # without the mark that Windows puts first
        return _parse_toml(text, where=str(path))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        line_number = error.object.count(b"\n", 0, error.start) + 1
        fault = f"byte 0x{byte:02x} in line {line_number}"
        raise UserError(f"{path} is not UTF-8: {fault}; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        cure = _cure_of_toml(text, str(error))
        raise UserError(f"{path} is not valid TOML: {error}; {cure}") from error


UNQUOTED = re.compile(r"\s*(?P<key>[\w.-]+)\s*=\s*(?P<text>[^\W\d][^\"'#]*?)\s*(#.*)?")


def _cure_of_toml(text: str, fault: str) -> str:
    """Say what would cure a fault of TOML, which names its line: quotes, if a text has none.

    >>> _cure_of_toml("name = shop", "Invalid value (at line 1, column 8)")
    'text stands in quotes: name = "shop"'
    """
    at = re.search(r"Invalid value \(at line (\d+)", fault)
    line = UNQUOTED.fullmatch(text.splitlines()[int(at[1]) - 1]) if at else None
    if line is None or len(line["text"]) > MAX_VALUE_CHARACTERS:
        return "mend that line"
    if line["text"].lower() in {"true", "false"}:
        return f"write {line['key']} = {line['text'].lower()}"
    return f'text stands in quotes: {line["key"]} = "{line["text"]}"'


def _parse_toml(text: str, *, where: str) -> dict[str, Any]:
    """Parse TOML; UserError, which names ``where``, if it is valid but more than Python reads."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise UserError(f"{where}: nested too deep; write it flatter") from error
    except ValueError as error:  # a number of thousands of digits
        raise UserError(f"{where}: a number beyond 64 bits; give a smaller one") from error


def override(raw: dict[str, Any], assignments: Sequence[str]) -> dict[str, Any]:
    """Apply ``KEY=VALUE`` assignments to a parsed scenario, which is changed and returned.

    Keys are dotted, as in ``cohort.growers.count=50``; a value that is not TOML is text.
    """
    keys = [assignment.partition("=")[0].strip() for assignment in assignments]
    for assignment in assignments:
        key, value = read_assignment(assignment)
        try:
            assign(raw, key, value, asked_for=keys)
        except UserError as error:
            raise UserError(f"--set {error}") from error
    return raw


def read_assignment(assignment: str) -> tuple[str, Any]:
    """Return the dotted key and the value of ``KEY=VALUE``; a value that is not TOML is text.

    >>> read_assignment("cohort.growers.count = 50"), read_assignment("forecaster.kind=none")
    (('cohort.growers.count', 50), ('forecaster.kind', 'none'))
    """
    key, equals, text = assignment.partition("=")
    if not equals or not key:
        raise UserError(f"--set {assignment} is not KEY=VALUE; write e.g. --set rounds=100")
    value: Any = text.strip()
    try:
        with suppress(tomllib.TOMLDecodeError):
            value = _parse_toml(f"value = {value}", where=f"{value[:40]}...")["value"]
    except UserError as error:
        raise UserError(f"--set {error}") from error
    return key.strip(), value


def assign(raw: dict[str, Any], key: str, value: Any, *, asked_for: Collection[str] = ()) -> None:
    """Put a value under a dotted key of a parsed scenario, which is changed in place.

    The scenario's description speaks of the file as it stands, so that it is removed. Where the
    forecaster becomes another kind, the keys that mean nothing to that kind are removed too, but
    for those that are ``asked_for`` beside it: they are refused later. UserError if the file has no
    table for the key.
    """
    *table_keys, last_key = key.split(".")
    raw.pop("description", None)
    table: Any = raw
    for table_key in table_keys:
        if isinstance(table, list):
            table = {str(entry.get("name")): entry for entry in table if isinstance(entry, dict)}
            if table_key not in table:
                raise UserError(f"{key}: there is no '{table_key}'; {closest(table_key, table)}")
        table = table.setdefault(table_key, {})
        if not isinstance(table, dict | list):
            raise UserError(f"{key}: '{table_key}' is a value, not a table; shorten the key")
    if isinstance(table, list):
        raise UserError(f"{key}: name the entry and the key, e.g. cohort.growers.count")
    table[last_key] = value
    becomes_a_model = key == "forecaster.kind" and value not in reasons.OURS
    if becomes_a_model:
        tables_asked_for = {".".join(one.split(".")[:2]) for one in asked_for}
        for meaningless_key in reasons.BASELINE:
            if f"forecaster.{meaningless_key}" not in tables_asked_for:
                table.pop(meaningless_key, None)


LARGEST_INTEGER = 2**63 - 1
# The smallest size of a number but for 0; its inverse is the largest. Squares and sums are finite.
SMALLEST_SIZE = 1e-100
LARGEST_SIZE = 1 / SMALLEST_SIZE
MAX_DEPTH = 50  # tables and lists within one another
SEPARATOR_KEYS = {"data.separator", "set.data.separator"}  # which may be a tab
PROSE_KEYS = {"description", "source"}  # their text may have several lines
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MAX_VALUE_CHARACTERS = 80  # of a value in an error line


def check_values(value: Any, key: str = "", depth: int = 0) -> None:
    """Raise UserError at the first value that no key can have, or the first name of old.

    Parameters
    ----------
    value : object
        A parsed file, or a part of it.
    key : str
        The dotted key of that part, with cohorts by name.
    depth : int
        How many tables and lists the part lies in.
    """
    if depth > MAX_DEPTH:
        beginning = key[:MAX_VALUE_CHARACTERS]
        raise UserError(f"{beginning}: nested more than {MAX_DEPTH} deep; write it flatter")
    if isinstance(value, dict):
        for inner_key, entry in value.items():
            dotted_key = f"{key}.{inner_key}" if key else str(inner_key)
            _check_key(dotted_key, inner_key, entry)
            check_values(entry, dotted_key, depth + 1)
    elif isinstance(value, list):
        for entry in value:
            name = entry.get("name", "") if isinstance(entry, dict) else ""
            check_values(entry, f"{key}.{name}" if name else key, depth + 1)
    else:
        _check_plain_value(value, key)


def _check_plain_value(value: object, key: str) -> None:
    """Raise UserError for a text with a control character, or a number beyond 64 bits."""
    if isinstance(value, str):
        text = re.sub(r"[\t\r\n]", "", value) if key in PROSE_KEYS else value
        if value == "\t" and key in SEPARATOR_KEYS:
            return
        if CONTROL_CHARACTER.search(text):
            raise UserError(f"{key} = {format_value(value)}: a control character; drop it")
    elif isinstance(value, float):
        if value and not SMALLEST_SIZE <= abs(value) <= LARGEST_SIZE:
            sizes = f"between {SMALLEST_SIZE:g} and {LARGEST_SIZE:g} in size"
            raise UserError(f"{key} = {value}: give a finite number, 0 or {sizes}")
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise UserError(f"{key} = {format_value(value)}: beyond 64 bits; give a smaller number")


def _check_key(dotted_key: str, key: object, value: object) -> None:
    """Raise UserError for a key, or a name as its value, that has another name now."""
    if CONTROL_CHARACTER.search(str(key)):
        raise UserError(f"key {format_value(key)}: a control character; drop it")
    key_of_any_cohort = re.sub(r"^cohort\.[^.]+\.", "cohort.", dotted_key)
    if key_of_any_cohort in RENAMED_KEYS:
        new_key = RENAMED_KEYS[key_of_any_cohort]
        raise UserError(f"{dotted_key} is called '{new_key}' now; rename the key")
    renamed_values = RENAMED_VALUES.get(key_of_any_cohort, {})
    if isinstance(value, str) and value in renamed_values:
        new_value = renamed_values[value]
        raise UserError(f"{dotted_key} = '{value}' is called '{new_value}' now; rename it")


def format_value(value: Any) -> str:
    """Return a value as an error line shows it: as a file has it, shortened in its middle."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    half = MAX_VALUE_CHARACTERS // 2
    return f"{text[:half]}...{text[-half:]}"


RENAMED_KEYS = {  # the dotted old key, and the last part of the new one
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
RENAMED_VALUES = {  # of a dotted key: old values and new ones
    "adversary.kind": {
        "breaker": "anti-forecast",
        "cem": "cma",
        "es": "cma",
        "targeted": "regret-maximiser",
    },
    "forecaster.hull": {"box": "basis"},
}
