"""Keys and kinds that had another name in version 0.2.0: a file that uses one is told the new one.

``docs/renamed.md`` shows the same table to readers.
"""

from collections.abc import Iterator
from typing import Any

from regretless.market.core.errors import UserError

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
