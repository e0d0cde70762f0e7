"""The numeric keys of a scenario, each with a slider and what it means: controls of the live page.

Limits and meanings of keys are those of the models that read them. Where a model sets no limit a
slider ends at ``REACH`` times the value, and the number beside it goes further.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regretless.market import register
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Variant, meaning_of

REACH = 4  # times a value where nothing limits it
SMALLEST_REACH = 1.0  # of a slider whose value is 0 or near it
SMALLEST_WHOLE_REACH = 10
STEPS_PER_SLIDER = 100  # over numbers that are not whole


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
    """Return a scenario's numeric keys, those first that its file, ``raw``, gives."""
    keys = list(_keys_below(spec, raw, path="", model=spec))
    return sorted(keys, key=lambda key: (not key.given, key.name.startswith("policy.")))


def _keys_below(
    value: Any, raw: Any, *, path: str, model: BaseModel, field: FieldInfo | None = None
) -> Iterator[Key]:
    """Yield the numeric keys in a part of a specification.

    Parameters
    ----------
    value : object
        The part, as the model read it: a model, a dictionary, a list or a value.
    raw : object
        The same part of the file; None where the file does not have it. Tables that the file lacks
        are left out.
    path : str
        The dotted key of the part.
    model : BaseModel
        The nearest model that the part belongs to.
    field : FieldInfo or None
        The part as a key of that model; None if it is none, but a parameter of a building block.
    """
    if isinstance(value, BaseModel | dict) and isinstance(raw, dict):
        yield from _keys_of_table(value, raw, path=path, model=model)
    elif isinstance(value, list) and isinstance(raw, list):
        for entry, raw_entry in zip(value, raw, strict=False):
            if isinstance(raw_entry, dict) and "name" in raw_entry:
                entry_path = f"{path}.{raw_entry['name']}"
                yield from _keys_below(entry, raw_entry, path=entry_path, model=model)
    elif _is_number(value) and (raw is None or _is_number(raw)) and not _is_code(path, value):
        yield _make_key(value, path=path, model=model, field=field, given=raw is not None)


def _keys_of_table(
    table: BaseModel | dict[str, Any], raw: dict[str, Any], *, path: str, model: BaseModel
) -> Iterator[Key]:
    """Yield the numeric keys in a table of the file; arguments as of ``_keys_below``."""
    entries: Mapping[str, Any]
    fields: Mapping[str, FieldInfo] = {}
    if isinstance(table, BaseModel):
        entries = vars(table) | (table.model_extra or {})
        fields = type(table).model_fields
        model = table
    else:
        entries = table
    barred = table.BARRED if isinstance(table, Variant) else ()
    for key, entry in entries.items():
        if "." in key or key in barred:
            continue
        entry_path = f"{path}.{key}" if path else key
        yield from _keys_below(
            entry, raw.get(key), path=entry_path, model=model, field=fields.get(key)
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_code(path: str, value: float) -> bool:
    """Whether a number has no slider: the seed, which has its own field, or one for a word."""
    is_action_of_policy = path.startswith("policy.") and isinstance(value, int)
    return path == "seed" or path.startswith("data.codes.") or is_action_of_policy


def _make_key(
    value: float, *, path: str, model: BaseModel, field: FieldInfo | None, given: bool
) -> Key:
    """Return the key of a number, with the ends and steps of its slider."""
    is_whole = isinstance(value, int)
    limits = dict(_limits(field))
    smallest_reach = SMALLEST_WHOLE_REACH if is_whole else SMALLEST_REACH
    low = limits.get("ge", limits.get("gt", min(0, REACH * value)))
    high = limits.get("le", limits.get("lt", max(REACH * value, smallest_reach)))
    step = 1 if is_whole else (high - low) / STEPS_PER_SLIDER
    if "gt" in limits and not is_whole:
        low += step  # the limit itself is not allowed
    if field is not None:
        meaning = meaning_of(type(model), path.rpartition(".")[2]) or ""
    else:
        meaning = _meaning_of_parameter(model, path.split("."))
    return Key(path, value, low, high, step, " ".join(meaning.split()), given)


def _limits(part: Any) -> Iterator[tuple[str, float]]:
    """Yield the limits of a field or of a type, by ``ge``, ``gt``, ``le`` and ``lt``."""
    if isinstance(part, FieldInfo):
        for annotation in (part.annotation, *part.metadata):
            yield from _limits(annotation)
    elif isinstance(part, Ge | Gt | Le | Lt):
        yield from asdict(part).items()
    else:
        for argument in get_args(part):  # of an annotated type its annotations as well
            yield from _limits(argument)


@dataclass(frozen=True)
class BuildingBlocks:
    """Where the parameters in a table of a file are explained.

    ``name_key`` is the key of the model that names the building block, ``registries`` are those in
    which that name may be.
    """

    name_key: str
    registries: Sequence[register.Registry]


BUILDING_BLOCKS = {  # by the table of a file in which their parameters stand
    "adversary": BuildingBlocks("kind", [register.adversary]),
    "market": BuildingBlocks("kind", [register.market]),
    "policy": BuildingBlocks("kind", [register.policy]),
    "forecaster": BuildingBlocks("kind", [register.forecaster]),
    "basis": BuildingBlocks("kind", [register.basis]),
    "parameters": BuildingBlocks("utility", [register.utility]),
    "settings": BuildingBlocks("response", register.ANSWERS),
}
SHARED_PARAMETERS = {  # that many building blocks have, and do not explain
    ("parameters", "concentration"): "How closely agents' weights follow the given ones."
}


def _meaning_of_parameter(model: BaseModel, keys: list[str]) -> str:
    """Say what a parameter of a building block means, in the words of its docstring.

    ``keys`` are the parts of its dotted key.
    """
    parameter = keys[-1]
    table = next((key for key in reversed(keys) if key in BUILDING_BLOCKS), None)
    if table is None:
        return ""
    blocks = BUILDING_BLOCKS[table]
    block_name = str(getattr(model, blocks.name_key, ""))
    registries = [registry for registry in blocks.registries if block_name in registry]
    if not registries:
        return ""
    registry = registries[0]
    docstring = inspect.getdoc(registry[block_name]) or ""
    entry = re.search(rf"^(\w+, )*{parameter}(, \w+)* :.*\n((?: +.*\n?)+)", docstring, re.MULTILINE)
    if entry is not None:
        meaning = entry[3]
    else:
        first_paragraph = docstring.split("\n\n")[0]
        meaning = SHARED_PARAMETERS.get((table, parameter), first_paragraph)
    return f"A parameter of the {registry.kind} {block_name}. {meaning}"
