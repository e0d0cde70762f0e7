"""What any value of a scenario or study file may be, whatever its key, and keys of other names.

Numbers are finite and fit into 64 bits, as the tables hold them; text has no control characters,
which names would carry into folders, tables and terminals; tables are nested as people nest them.
A file that uses a key or kind of version 0.2.0 with another name now is told the new one;
``docs/renamed.md`` shows the same table to readers.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from regretless.market.core.errors import UserError

LARGEST = 2**63 - 1
DEEPEST = 50  # tables and lists within one another
PROSE = {"description", "source"}  # keys whose text may have several lines
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
SHOWN = 80  # characters of a value in an error line


def check_values(value: Any, place: str = "", depth: int = 0) -> None:
    """Raise UserError at the first value of a parsed file that no key can have.

    ``place``: its key, dotted, cohorts by name; ``depth``: how many tables and lists it lies in.
    """
    if depth > DEEPEST:
        raise UserError(f"{place[:SHOWN]}: nested more than {DEEPEST} deep; write it flatter")
    if isinstance(value, dict):
        for key, entry in value.items():
            _check_text(f"key {shown(key)}", str(key))
            check_values(entry, f"{place}.{key}" if place else str(key), depth + 1)
    elif isinstance(value, list):
        for entry in value:
            name = entry.get("name", "") if isinstance(entry, dict) else ""
            check_values(entry, f"{place}.{name}" if name else place, depth + 1)
    elif isinstance(value, str):
        prose = place in PROSE
        _check_text(f"{place} = {shown(value)}", re.sub(r"[\t\r\n]", "", value) if prose else value)
    elif isinstance(value, int | float):
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{place} = {value}: not a finite number; change the value")
        if abs(value) > LARGEST and isinstance(value, int):
            raise UserError(f"{place} = {shown(value)}: beyond 64 bits; give a smaller number")


def shown(value: Any) -> str:
    """Write a value for an error line, shortened in its middle."""
    text = repr(value)
    half = SHOWN // 2
    return text if len(text) <= SHOWN else f"{text[:half]}...{text[-half:]}"


def _check_text(what: str, text: str) -> None:
    if CONTROL.search(text):
        raise UserError(f"{what}: a control character; drop it")


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
    "adversary.kind": {"breaker": "anti-forecast", "targeted": "regret-maximiser"},
    "forecaster.hull": {"box": "basis"},
}


def check_renamed(raw: dict[str, Any]) -> None:
    """Raise UserError at the first key or kind of a parsed file that has another name now."""
    for table, place, entries in _tables(raw):
        for key, value in entries.items():
            dotted = f"{table}.{key}".lstrip(".")
            shown = f"{place}.{key}".lstrip(".")
            if dotted in KEYS:
                raise UserError(f"{shown} is called '{KEYS[dotted]}' now; rename the key")
            new = VALUES.get(dotted, {}).get(value) if isinstance(value, str) else None
            if new is not None:
                raise UserError(f"{shown} = '{value}' is called '{new}' now; rename it")


def _tables(raw: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the file and its tables: their names, where they are, and their entries."""
    yield "", "", raw
    for name, table in raw.items():
        for entry in table if isinstance(table, list) else [table]:
            if isinstance(entry, dict):
                own = entry.get("name")
                yield name, f"{name}.{own}" if isinstance(table, list) and own else name, entry
