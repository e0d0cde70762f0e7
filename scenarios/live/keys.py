"""The numeric keys of a scenario, as controls of a page: value, limits, and what each means.

Keys and values are those of the resolved specification, limits and meanings those of the schema of
scenario files. Where the schema sets no limit a slider needs one all the same: it then ends at
``REACH`` times the value, and the number beside it goes further.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from regretless.scenarios.config.scenario import ScenarioSpec, resolved
from regretless.scenarios.schema import Json, schema

REACH = 4  # times a value where nothing limits it
STEPS = 100  # of a slider over numbers that are not whole
ELSEWHERE = {"seed"}  # keys with a control of their own


@dataclass(frozen=True)
class Key:
    """A numeric key, dotted as on the command line, with its slider and what the schema says of it.

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
    whole = schema("scenario")
    found = list(_walked(resolved(spec), raw, whole, whole.get("$defs", {})))
    return sorted(found, key=lambda key: (not key.given, key.name.startswith("policy.")))


def _walked(value: Any, raw: Any, node: Json, known: Json, name: str = "") -> Iterator[Key]:
    """Yield the numbers in a value that the schema's node describes, of tables that are given."""
    node = _settled(value, node, known)
    if isinstance(value, dict) and isinstance(raw, dict):
        told = node.get("properties", {})
        for key, entry in value.items():
            if "." not in key:
                path = f"{name}.{key}" if name else key
                yield from _walked(entry, raw.get(key), told.get(key, {}), known, path)
    elif isinstance(value, list) and isinstance(raw, list):
        for own, given in zip(value, raw, strict=False):
            if isinstance(own, dict) and "name" in own:
                yield from _walked(
                    own, given, node.get("items", {}), known, f"{name}.{own['name']}"
                )
    elif _number(value) and (raw is None or _number(raw)):
        of_policy = name.startswith("policy.") and isinstance(value, int)  # it is an action
        if not (name in ELSEWHERE or name.startswith("data.codes.") or of_policy):
            yield _key(name, value, node, given=raw is not None)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _settled(value: Any, node: Json, known: Json) -> Json:
    """Follow references, and of several branches take the one that fits the value."""
    kind = {dict: "object", list: "array", int: "integer", float: "number"}.get(type(value))
    keys = set(value) if isinstance(value, dict) else set()
    while branches := _branches(node, known):
        fits = [part for part in branches if part.get("type") in {kind, "number", None}]
        fits = [part for part in fits if keys <= set(part.get("properties", keys))] or fits
        node = (fits or branches)[0]
    return node


def _branches(node: Json, known: Json) -> list[Json]:
    """Return what a node may stand for, with what it says itself; none where it is settled."""
    own = {key: part for key, part in node.items() if key not in {"$ref", "anyOf", "oneOf"}}
    if "$ref" in node:
        return [known[node["$ref"].rpartition("/")[2]] | own]
    parts = node.get("anyOf") or node.get("oneOf") or []
    return [part | own for part in parts]


def _key(name: str, value: float, node: Json, *, given: bool) -> Key:
    """Make a control of a number; the ends of a slider hold its value."""
    whole, least = isinstance(value, int), node.get("minimum", node.get("exclusiveMinimum"))
    most = node.get("maximum", node.get("exclusiveMaximum"))
    low = min(0, REACH * value) if least is None else least
    high = max(REACH * value, 10 if whole else 1.0) if most is None else most
    step = 1 if whole else (high - low) / STEPS
    if "exclusiveMinimum" in node and not whole:
        low += step
    return Key(name, value, low, high, step, node.get("description", ""), given)
