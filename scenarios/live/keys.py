"""The numeric keys of a scenario, as controls of a page: value, limits, and what each means.

Keys and values are those of the specification, limits and meanings those of its models. Where a
model sets no limit a slider needs one all the same: it then ends at ``REACH`` times the value, and
the number beside it goes further.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Variant

REACH = 4  # times a value where nothing limits it
STEPS = 100  # of a slider over numbers that are not whole
ELSEWHERE = {"seed"}  # keys with a control of their own


@dataclass(frozen=True)
class Key:
    """A numeric key, dotted as on the command line, with its slider and what its model says of it.

    ``given`` is whether the file gives it, and not the default.
    """

    name: str
    value: float
    low: float
    high: float
    step: float
    meaning: str
    given: bool


def numeric_keys(spec: ScenarioSpec, raw: dict[str, Any]) -> list[Key]:
    """Return a scenario's numeric keys, those first that its file gives."""
    found = list(_walked(spec, raw, "", None))
    return sorted(found, key=lambda key: (not key.given, key.name.startswith("policy.")))


def _walked(value: Any, raw: Any, name: str, field: FieldInfo | None) -> Iterator[Key]:
    """Yield the numbers in a value, of tables that are given."""
    if isinstance(value, BaseModel | dict) and isinstance(raw, dict):
        fields = type(value).model_fields if isinstance(value, BaseModel) else {}
        extra = value.model_extra if isinstance(value, BaseModel) else None
        entries = vars(value) | (extra or {}) if isinstance(value, BaseModel) else value
        for key, entry in entries.items():
            if "." not in key and not (isinstance(value, Variant) and key in value.BARRED):
                path = f"{name}.{key}" if name else key
                yield from _walked(entry, raw.get(key), path, fields.get(key))
    elif isinstance(value, list) and isinstance(raw, list):
        for own, given in zip(value, raw, strict=False):
            if isinstance(given, dict) and "name" in given:
                yield from _walked(own, given, f"{name}.{given['name']}", None)
    elif _number(value) and (raw is None or _number(raw)):
        of_policy = name.startswith("policy.") and isinstance(value, int)  # it is an action
        if not (name in ELSEWHERE or name.startswith("data.codes.") or of_policy):
            yield _key(name, value, field, given=raw is not None)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _key(name: str, value: float, field: FieldInfo | None, *, given: bool) -> Key:
    """Make a control of a number; the ends of a slider hold its value."""
    whole = isinstance(value, int)
    low, high = min(0, REACH * value), max(REACH * value, 10 if whole else 1.0)
    limits = dict(_limits(field))
    low = limits.get("ge", limits.get("gt", low))
    high = limits.get("le", limits.get("lt", high))
    step = 1 if whole else (high - low) / STEPS
    low += step * ("gt" in limits and not whole)
    meaning = " ".join((field.description or "").split()) if field else ""
    return Key(name, value, low, high, step, meaning, given)


def _limits(part: Any) -> Iterator[tuple[str, float]]:
    """Yield the limits of a field, or of a part of its type, as pydantic calls them."""
    if isinstance(part, FieldInfo):
        for own in (part.annotation, *part.metadata):
            yield from _limits(own)
    elif isinstance(part, Ge | Gt | Le | Lt):
        yield from asdict(part).items()
    else:
        for own in get_args(part):  # of an annotated type its annotations as well
            yield from _limits(own)
