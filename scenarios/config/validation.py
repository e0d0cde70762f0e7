"""From what a scenario file says to a specification that holds, or one line that says why not.

Every complaint is one line with the key, the value and the cure. A cohort is counted, with a row
for every type and how many agents it has, that says ``multiplicity = true``, and one of more than
``MANY`` agents with types, unless it says ``false``. It cannot be where agents of equal losses
differ in anything else: when they come, what they own, remember or are told. Then its agents are
listed, as long as there is memory for them.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.scenarios.config import reasons
from regretless.scenarios.config.cohort import COHORTS, CohortSpec
from regretless.scenarios.config.files import DATA, check_values, shown
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Variant
from regretless.scenarios.config.world import EdgeListSpec, gives_own_losses

SHAPES = {  # what a value is not, and the cure, by pydantic's name of the fault
    "dict_type": ("not a table", "write {{ key = value }}, or a table in brackets"),
    "model_type": ("not a table", "write {{ key = value }}, or a table in brackets"),
    "model_attributes_type": ("not a table", "write {{ key = value }}, or a table in brackets"),
    "list_type": ("not a list", "write its entries in brackets, as [1, 2]"),
    "int_type": ("not a whole number", "write it without quotes or decimal point, as 100"),
    "float_type": ("not a number", "write it without quotes, as 0.5"),
    "bool_type": ("neither true nor false", "write one of them, without quotes"),
    "string_type": ("not text", 'write it in quotes, as "name"'),
    "string_pattern_mismatch": ("not a name", "give one without slashes that begins with no dot"),
    "too_short": ("too short a list", "give at least {min_length}"),
    "too_long": ("too long a list", "give at most {max_length}"),
}


def validated(raw: dict[str, Any], *, origin: Path) -> ScenarioSpec:
    """Check a parsed scenario file.

    ``origin``: the folder of the file, from which a data file's path counts.
    """
    check_values(raw)
    if "scenario" in raw:
        raise UserError("key 'scenario': this is a study; regretless study FILE --out DIR runs it")
    try:
        spec = ScenarioSpec.model_validate(raw)
    except ValidationError as error:
        first, *others = faults = error.errors()
        if first["type"] == "missing" and others:  # perhaps it is there, misspelt
            beside = [fault for fault in faults if fault["loc"][:-1] == first["loc"][:-1]]
            first = next((fault for fault in beside if fault["type"] == "extra_forbidden"), first)
        raise UserError(fault_line(first, *_place(first["loc"], raw), "scenario")) from error
    if spec.data is not None:
        spec.data.file = _found("data", spec.data.file, origin, DATA)
    if spec.game is not None:
        spec.game.file = _found("game", spec.game.file, origin, DATA / "games")
    if isinstance(spec.network, EdgeListSpec):
        spec.network.file = _found("network", spec.network.file, origin)
    return spec


def _found(key: str, file: str, *folders: Path) -> str:
    """Path of a file in the first folder that holds it."""
    what = "does not exist"
    file = str(expanded(file, f"{key}.file"))
    with suppress(OSError):  # too long for a name
        for folder in folders:
            if (folder / file).is_file():
                return str((folder / file).resolve() if folder is folders[0] else folder / file)
        what = "is a folder" if (folders[0] / file).is_dir() else what
    raise UserError(f"{key}.file {shown(file)} {what}; give a path from the scenario file")


def resolved(spec: ScenarioSpec) -> dict[str, Any]:
    """Return the specification as plain values, defaults filled in, ready to be written as TOML."""
    return spec.model_dump(exclude_none=True)


def fault_line(fault: Any, key: str, known: list[str], file: str) -> str:
    """Write one of pydantic's faults as a line: the key, the reason and the cure.

    ``known`` are the keys of the table that it is in, ``file`` is "scenario" or "study".
    """
    if fault["type"].startswith("union_tag"):  # of a table whose kind is unknown or not given
        kind = fault["ctx"]["discriminator"].strip("'")
        if not isinstance(fault["input"], dict):
            fault = fault | {"type": "model_type"}
        elif kind not in fault["input"]:
            key = f"{key}.{kind}"
            fault = fault | {"type": "missing"}
        else:
            known = fault["ctx"]["expected_tags"].replace("'", "").split(", ")
            given = fault["input"][kind]
            return f"{key}.{kind} = {shown(given)}: unknown; {closest(str(given), known)}"
    if fault["type"] == "extra_forbidden":
        return f"unknown key '{key}'; {closest(str(fault['loc'][-1]), known)}"
    if fault["type"] == "missing":
        return f"key '{key}' is missing; add it to the {file} file"
    reason = fault["msg"].removeprefix("Value error, ")
    reason = reason[0].lower() + reason[1:]
    if fault["type"] == "value_error":
        return f"{key}: {reason}" if key else reason
    given = f"{key} = {shown(fault.get('input'))}"
    if fault["type"] not in SHAPES and reason.startswith("input should be "):
        return f"{given}: must be {reason.removeprefix('input should be ')}"
    reason, cure = SHAPES.get(fault["type"], (reason, "change the value"))
    return f"{given}: {reason}; {cure.format(**fault.get('ctx', {}))}"


def _tables(spec: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """List the models of all tables by their keys, or by the words that tell branches apart."""
    found: dict[str, type[BaseModel]] = {}
    for key, field in spec.model_fields.items():
        for own in _models(field.annotation):
            told = own.model_fields.get("graph", own.model_fields.get("kind"))
            words = get_args(told.annotation) if told is not None else ()
            found = _tables(own) | {key: own} | found | dict.fromkeys(words, own)
    return found


def _models(hint: Any) -> list[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint]
    models: list[type[BaseModel]] = []
    for inside in get_args(hint):
        models += _models(inside)
    return models


def _place(location: tuple[int | str, ...], raw: Any) -> tuple[str, list[str]]:
    """Spell a location with cohorts by name, and list the keys of the table of its last key."""
    tables = _tables(ScenarioSpec) | COHORTS
    spelled: list[str] = []
    own: type[BaseModel] = ScenarioSpec
    for place, step in enumerate(location):
        raw = dict(enumerate(raw)) if isinstance(raw, list) else raw
        if not isinstance(raw, dict):
            break  # what follows names a branch of a union
        if step in raw or step in own.model_fields:  # else it does, too
            raw = raw.get(step)
            named = raw.get("name") if isinstance(raw, dict) and isinstance(step, int) else None
            spelled.append(str(named or step))
        own = tables.get(str(step), own) if place < len(location) - 1 else own
    known = own.known() if issubclass(own, Variant) else list(own.model_fields)
    return ".".join(spelled), known


def check_cohorts(cohorts: Sequence[CohortSpec], *, rounds: int) -> None:
    """Raise UserError at the first cohort whose keys do not go together, or with the others'.

    ``cohorts`` are those that have agents, ``rounds`` is the length of the run.
    """
    has_listeners = any(not cohort.enters and not cohort.learns for cohort in cohorts)
    for cohort in cohorts:
        where = f"cohort.{cohort.name}"
        if cohort.enters >= rounds:
            there = f"the rounds are 0 to {rounds - 1}; enter earlier"
            raise UserError(f"{where}.enters = {cohort.enters}: {there}")
        if cohort.learns and cohort.basis.given and (has_listeners or cohort.enters):
            raise UserError(f"{where}.basis: learners hear no forecast; drop it")
        last = cohort.exits or rounds
        is_anybody_left = any(other.enters <= last < (other.exits or rounds) for other in cohorts)
        if last < rounds and not is_anybody_left:
            raise UserError(f"{where}.exits = {last}: no cohort is left in that round; keep one")
    if all(cohort.enters for cohort in cohorts):
        why = "the forecast is made for it"
        raise UserError(f"all cohorts join late; leave enters out of one, {why}")


MANY = 1_000_000  # agents; a cohort of more is counted by type where it can be
BYTES_PER_LISTED_AGENT = 300  # at the very least; 500 were measured


def settle_counts(cohorts: Sequence[CohortSpec], spec: ScenarioSpec) -> list[CohortSpec]:
    """Return the cohorts with their agents counted by type, or listed one by one.

    UserError if a cohort is to be counted and has no types, or if the list of its agents does not
    fit into memory. ``spec``: the scenario, whose market or network may stand in the way.
    """
    settled: list[CohortSpec] = []
    for cohort in cohorts:
        obstacle = next(_obstacles(cohort, spec), "")
        if cohort.multiplicity and cohort.types is None:
            raise UserError(f"cohort.{cohort.name}.multiplicity: {obstacle}")
        if cohort.multiplicity is None:
            is_counted = cohort.count > MANY and not obstacle
        else:
            is_counted = cohort.multiplicity and not obstacle
        if not is_counted:
            _check_list_fits(cohort, obstacle)
        if is_counted or cohort.multiplicity:
            settled.append(cohort.model_copy(update={"multiplicity": is_counted}))
        else:
            settled.append(cohort)
    return settled


def _check_list_fits(cohort: CohortSpec, obstacle: str) -> None:
    """Raise UserError if there is no memory for a list of the cohort's agents.

    ``obstacle``: why they cannot be counted; empty where the file does not want it.
    """
    if not hasattr(os, "sysconf"):
        return
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed_bytes = BYTES_PER_LISTED_AGENT * cohort.count
    if needed_bytes > memory_bytes:
        short = f"a list of agents takes {needed_bytes / 1e9:,.0f} GB and more, which are not there"
        why = obstacle or "multiplicity is false; leave that out"
        told = f"{short}, and they are not counted, since {why}"
        raise UserError(f"cohort.{cohort.name}.count = {cohort.count}: {told}")


def listed_in_full(spec: ScenarioSpec) -> Iterator[str]:
    """Say of each cohort that asks to be counted, and cannot be, that its agents are listed."""
    for cohort in spec.cohort:
        obstacle = next(_obstacles(cohort, spec), "")
        if cohort.multiplicity and cohort.count and obstacle:
            reason = obstacle.partition("; ")[0]
            yield f"{cohort.name}: agents are listed one by one, since {reason}"


def _obstacles(cohort: CohortSpec, spec: ScenarioSpec) -> Iterator[str]:
    """Yield why a cohort cannot be counted, and what to do about it."""
    if cohort.types is None:
        yield "each agent has a loss of its own; give types, the number of different losses"
    if cohort.own_path:
        yield f"{reasons.OWN_PATH}; drop it"
    for key in ("entry_rate", "exit_rate", "signal", "budget_constraint"):
        if getattr(cohort, key):
            yield f"{key} {reasons.APART}; drop it"
    if spec.network is not None:
        yield f"[network] {reasons.HOPS}; drop it"
    if spec.market is not None and (kind := spec.market.kind) in register.market:
        if gives_own_losses(spec.market):
            yield f"in market '{kind}' each agent has losses of its own; drop multiplicity"
        made = vars(register.market[kind])
        if made and not made.get("supports_multiplicity", False):
            yield f"market '{kind}' {reasons.SINGLY}; choose another, or fewer agents"
