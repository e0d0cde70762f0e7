"""What any value of a scenario or study file may be, whatever its key says it is.

Numbers are finite and fit into 64 bits, as the tables hold them; text has no control characters,
which names would carry into folders, tables and terminals; tables are nested as people nest them.
"""

import math
import re
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
