"""Checks a parsed scenario file: a specification comes out, or one line that says what is wrong.

Every such line names the key, the value and the cure.

The agents of a cohort are either **listed**, a row for each, or **counted**, a row for each type
with the number of its agents. A cohort with ``multiplicity = true`` is counted, and so is one of
more than ``MULTIPLICITY_THRESHOLD`` agents with types, unless it says ``false``. Agents cannot be
counted where those of equal losses differ in anything else: when they enter, what they own,
remember or are told. They are listed then, as long as there is memory for them.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config import reasons
from regretless.scenarios.config.cohort import COHORTS, CohortSpec
from regretless.scenarios.config.files import DATA, check_values, find_file, format_value
from regretless.scenarios.config.games import GAMES, with_actions_of_game
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Variant
from regretless.scenarios.config.world import EdgeListSpec, MarketSpec, gives_own_losses

TYPE_FAULTS = {  # by pydantic's name of the fault: what a value is not, and the cure
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
    """Return the specification that a parsed scenario file describes.

    ``origin`` is the folder of the file, from which paths of data files count. UserError at the
    first fault.
    """
    check_values(raw)
    if "scenario" in raw:
        raise UserError("key 'scenario': this is a study; regretless study FILE --out DIR runs it")
    raw = with_actions_of_game(raw, origin=origin)
    try:
        spec = ScenarioSpec.model_validate(raw)
    except ValidationError as error:
        _check_market_is_known(raw)  # without it utilities and outcomes seem to be missing
        faults = error.errors()
        fault = _most_telling(faults)
        key, known_keys = _locate(fault["loc"], raw)
        line = fault_line(fault, key, known_keys, "scenario")
        if fault["type"] == "string_type" and _may_be_table(fault, faults):
            line += ', or write a table, as { key = "name" }'
        raise UserError(line) from error
    if spec.data is not None:
        spec.data.file = find_file("data", spec.data.file, origin, DATA)
    if spec.game is not None:
        spec.game.file = find_file("game", spec.game.file, origin, GAMES)
    if isinstance(spec.market, MarketSpec) and spec.market.kind == "normal-form":
        file = spec.market.parameters.get("file")
        if not isinstance(file, str) or not file:
            raise UserError("market.file is missing; name a .nfg or .npz file of a game")
        file_found = find_file("game", file, origin, GAMES)
        spec.market = MarketSpec.model_validate(spec.market.model_dump() | {"file": file_found})
    if isinstance(spec.network, EdgeListSpec):
        spec.network.file = find_file("network", spec.network.file, origin)
    return spec


def _check_market_is_known(raw: dict[str, Any]) -> None:
    """Raise UserError if a parsed scenario names a market that nobody registered."""
    table = raw.get("market")
    kind = table.get("kind") if isinstance(table, dict) else None
    if isinstance(kind, str) and kind not in register.market:
        hint = f"{closest(kind, register.market.names())}; a name of your own needs --import MODULE"
        raise UserError(f"market.kind = {format_value(kind)}: unknown; {hint}")


def _most_telling(faults: Sequence[Any]) -> Any:
    """Return the fault to report: the first, but rather a misspelt key than a missing one."""
    first = faults[0]
    if first["type"] != "missing":
        return first
    for fault in faults:
        is_in_the_same_table = fault["loc"][:-1] == first["loc"][:-1]
        if is_in_the_same_table and fault["type"] == "extra_forbidden":
            return fault
    return first


def _may_be_table(fault: Any, faults: Sequence[Any]) -> bool:
    """Whether the value at fault could also be a table, which another of the faults says."""
    *place, _branch_of_union = fault["loc"]
    return any(
        other["type"] == "dict_type" and list(other["loc"][:-1]) == place for other in faults
    )


def resolved(spec: ScenarioSpec) -> dict[str, Any]:
    """Return the specification as plain values, defaults filled in, ready to be written as TOML."""
    return spec.model_dump(exclude_none=True)


def fault_line(fault: Any, key: str, known_keys: list[str], file: str) -> str:
    """Return one of pydantic's faults as a line: the key, the reason and the cure.

    ``known_keys`` are those of the table that the fault is in, ``file`` is "scenario" or "study".
    """
    fault_type = fault["type"]
    if fault_type.startswith("union_tag"):  # the kind of a table is unknown or not given
        return _line_on_kind(fault, key, file)
    if fault_type == "extra_forbidden":
        return f"unknown key '{key}'; {closest(str(fault['loc'][-1]), known_keys)}"
    if fault_type == "missing":
        return _line_on_missing_key(key, file)
    reason = fault["msg"].removeprefix("Value error, ")
    reason = reason[0].lower() + reason[1:]
    if fault_type == "value_error":
        return f"{key}: {reason}" if key else reason
    if fault_type in TYPE_FAULTS:
        return _line_on_type(fault, fault_type, key)
    assignment = f"{key} = {format_value(fault.get('input'))}"
    if reason.startswith("input should be "):
        return f"{assignment}: must be {reason.removeprefix('input should be ')}"
    return f"{assignment}: {reason}; change the value"


def _line_on_kind(fault: Any, key: str, file: str) -> str:
    """Return the line on a table whose kind is unknown or not given, or on what is no table."""
    discriminator = fault["ctx"]["discriminator"].strip("'")  # the key that names the kind
    table = fault["input"]
    if not isinstance(table, dict):
        return _line_on_type(fault, "model_type", key)
    if discriminator not in table:
        return _line_on_missing_key(f"{key}.{discriminator}", file)
    known_kinds = fault["ctx"]["expected_tags"].replace("'", "").split(", ")
    kind = table[discriminator]
    hint = closest(str(kind), known_kinds)
    return f"{key}.{discriminator} = {format_value(kind)}: unknown; {hint}"


def _line_on_type(fault: Any, fault_type: str, key: str) -> str:
    """Return the line on a value of another type, or on a list of another length."""
    reason, hint = TYPE_FAULTS[fault_type]
    limits = fault.get("ctx", {})  # of a list's length, which hints name
    return f"{key} = {format_value(fault.get('input'))}: {reason}; {hint.format(**limits)}"


def _line_on_missing_key(key: str, file: str) -> str:
    return f"key '{key}' is missing; add it to the {file} file"


def _models_by_key(spec: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the model of every table below a specification.

    A table is found by its key, and a branch of a union by the words that choose it too.
    """
    models: dict[str, type[BaseModel]] = {}
    for key, field in spec.model_fields.items():
        for model in _models_in(field.annotation):
            discriminator = model.model_fields.get("graph", model.model_fields.get("kind"))
            choosing_words = () if discriminator is None else get_args(discriminator.annotation)
            inner_models = _models_by_key(model)
            # What was found first stays, but for the words that choose this very model.
            models = inner_models | {key: model} | models
            models.update(dict.fromkeys(choosing_words, model))
    return models


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the pydantic models that a type annotation mentions, in order."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    models: list[type[BaseModel]] = []
    for argument in get_args(annotation):
        models += _models_in(argument)
    return models


def _locate(location: tuple[int | str, ...], raw: Any) -> tuple[str, list[str]]:
    """Return the dotted key of a fault's location, and the keys that its table may have.

    In the dotted key cohorts and other entries of lists stand by their names, not by their index.
    """
    models_by_key = _models_by_key(ScenarioSpec) | COHORTS
    spelled_steps: list[str] = []
    model: type[BaseModel] = ScenarioSpec
    last_index = len(location) - 1
    for index, step in enumerate(location):
        if isinstance(raw, list):
            raw = dict(enumerate(raw))
        if not isinstance(raw, dict):
            break  # the steps that follow name a branch of a union
        is_key = step in raw or step in model.model_fields  # else it names a branch of a union, too
        if is_key:
            raw = raw.get(step)
            is_list_entry = isinstance(raw, dict) and isinstance(step, int)
            name = raw.get("name") if is_list_entry else None
            spelled_steps.append(str(name or step))
        if index < last_index:
            model = models_by_key.get(str(step), model)
    known_keys = model.known() if issubclass(model, Variant) else list(model.model_fields)
    return ".".join(spelled_steps), known_keys


def check_cohorts(cohorts: Sequence[CohortSpec], *, rounds: int) -> None:
    """Raise UserError at the first cohort whose keys contradict each other or another cohort.

    ``cohorts`` are those that have agents, ``rounds`` is the length of the run.
    """
    has_listeners = any(not cohort.enters and not cohort.learns for cohort in cohorts)
    for cohort in cohorts:
        key = f"cohort.{cohort.name}"
        if cohort.enters >= rounds:
            reason = f"the rounds are 0 to {rounds - 1}; enter earlier"
            raise UserError(f"{key}.enters = {cohort.enters}: {reason}")
        if cohort.learns and cohort.basis.given and (has_listeners or cohort.enters):
            raise UserError(f"{key}.basis: learners hear no forecast; drop it")
        exit_round = cohort.exits or rounds
        is_anybody_left = any(
            other.enters <= exit_round < (other.exits or rounds) for other in cohorts
        )
        if exit_round < rounds and not is_anybody_left:
            raise UserError(
                f"{key}.exits = {exit_round}: no cohort is left in that round; keep one"
            )
    if all(cohort.enters for cohort in cohorts):
        reason = "the forecast is made for it"
        raise UserError(f"all cohorts join late; leave enters out of one, {reason}")


MULTIPLICITY_THRESHOLD = 1_000_000  # agents; a cohort of more is counted by type where it can be
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
            is_counted = cohort.count > MULTIPLICITY_THRESHOLD and not obstacle
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
        shortage = f"a list of agents takes {needed_bytes / 1e9:,.0f} GB and more"
        reason = obstacle or "multiplicity is false; leave that out"
        raise UserError(
            f"cohort.{cohort.name}.count = {cohort.count}: {shortage}, which are not there,"
            f" and they are not counted, since {reason}"
        )


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
    if spec.market is not None and spec.market.kind in register.market:
        kind = spec.market.kind
        if gives_own_losses(spec.market):
            yield f"in market '{kind}' each agent has losses of its own; drop multiplicity"
        # A maker that is a plain function has no attributes, and says nothing about it.
        attributes = vars(register.market[kind])
        if attributes and not attributes.get("supports_multiplicity", False):
            yield f"market '{kind}' {reasons.SINGLY}; choose another, or fewer agents"
