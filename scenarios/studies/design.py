"""What a study file says, and the runs that it stands for.

A **setting** is one choice of everything that varies. The settings of a study are the full product
of keys with their values, in which a label may stand for several keys, or a list of rows, or a
sample from ranges. A run is a setting and a seed. Runs are numbered with all seeds of the first
setting first. Runs with equal seeds share their random streams, whatever the
setting (common random numbers: Glasserman and Yao, Management Science 38, 1992); only the points of
a Latin hypercube have seeds of their own.
"""

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.market.logs.final_tables import AGENT_COLUMNS
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config import reasons
from regretless.scenarios.config.files import (
    assign,
    check_values,
    format_value,
    read,
    read_assignment,
)
from regretless.scenarios.config.files import catalogue as named_scenarios
from regretless.scenarios.config.files import find as find_scenario
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Count, Name, Strict
from regretless.scenarios.config.validation import fault_line, validated
from regretless.scenarios.studies.analysis.contrasts import check_margin, controls_of
from regretless.scenarios.studies.analysis.measures import COHORT_COLUMNS, EFFECTS, OF_MARKET, VALUE
from regretless.scenarios.studies.sampling import SampleSpec, check_targets

# What a run directory may do without: nothing in a study is computed from these tables.
Dispensable = Literal["rounds", "forecasts", "regret_log", "swaps", "biases", "edges"]
# Columns of a study's tables and of what is merged with them: no key or label may have their names.
TABLE_COLUMNS = {
    *COHORT_COLUMNS,
    *EFFECTS,
    *VALUE,
    *AGENT_COLUMNS,
    *("seed", "setting", "first", "last", "branch", "against"),
}
MAX_RUNS = 1_000_000
LABELS_NEED_ANOTHER_NAME = "labels need a name without dots that no table's column has"
# By kinds of forecasters: the keys that mean nothing to them, and what is said of each.
KINDS_BARRING = (reasons.BASELINE, reasons.SILENT)
CATALOGUE = Path(__file__).parent / "catalogue"
Setting = dict[str, Any]
Margin = Annotated[float, Field(gt=0)]


class BranchSpec(Strict):
    """Branches of every run: from a round on, something is otherwise."""

    at: Annotated[int, Field(ge=0)] = 0
    """Rounds that a branch shares with the run that it leaves."""
    changes: Annotated[dict[Name, Setting], Field(min_length=1)]
    """By a branch's label, the dotted keys that it changes, and agent.NUMBER to an action."""


class StudySpec(Strict):
    """A study file."""

    description: str = ""
    """What the study shows, in a sentence."""
    scenario: Name
    """A catalogue name, or a path from the study file."""
    seeds: list[int] = Field(default_factory=lambda: [0])
    """How many seeds, counted from 0, or a list of them."""
    rounds: Count | None = None
    """Rounds of every run, in place of the scenario's."""
    log_every: Count | None = None
    """Rounds between two entries of the regret log; without it every round has one, or none where
    logs = "summary"."""
    leave_out: list[Dispensable] = Field(default_factory=list)
    """Tables that the runs do not keep."""
    fixed: Setting = Field(default_factory=dict, alias="set")
    """Dotted keys that are the same in every run."""
    grid: dict[str, Any] = Field(default_factory=dict)
    """Dotted keys that vary, each with a list of values, or with labels and the keys they stand
    for: all combinations are played."""
    rows: list[Setting] = Field(default_factory=list, alias="list")
    """Dotted keys that vary together: a table is a setting."""
    sample: SampleSpec | None = None
    """Dotted keys that are sampled from ranges."""
    branch: BranchSpec | None = None
    """What would have happened otherwise, in every run."""
    control: Any = None
    """The value or label that the others of its key are compared with, or one for each of several
    keys; the first by default."""
    margin: Margin | dict[Name, Margin] | None = None
    """Up to which a difference counts as none: of all measures in [0, 1], or by measure."""

    @field_validator("seeds", mode="before")
    @classmethod
    def _list_seeds(cls, seeds: Any) -> Any:
        """Turn a number of seeds into a list; check a list."""
        if type(seeds) is int and seeds > 0:
            # More seeds than runs are refused later; a list of all of them is never made.
            n_listed = min(seeds, MAX_RUNS + 1)
            return list(range(n_listed))
        are_seeds = isinstance(seeds, list) and all(
            type(seed) is int and seed >= 0 for seed in seeds
        )
        if not are_seeds or not seeds or len(set(seeds)) != len(seeds):
            hint = "give how many, at least 1, or a list of different seeds"
            raise ValueError(f"{format_value(seeds)}: {hint}")
        return seeds

    @field_validator("fixed", mode="after")
    @classmethod
    def _spell_fixed_keys(cls, fixed: Setting) -> Setting:
        return _with_dotted_keys(fixed)

    @field_validator("grid", mode="after")
    @classmethod
    def _spell_keys_of_labels(cls, grid: dict[str, Any]) -> dict[str, Any]:
        spelled: dict[str, Any] = {}
        for name, values in grid.items():
            spelled[name] = values
            if isinstance(values, dict) and all(isinstance(keys, dict) for keys in values.values()):
                spelled[name] = {label: _with_dotted_keys(keys) for label, keys in values.items()}
        return spelled

    @model_validator(mode="after")
    def _check_design(self) -> "StudySpec":
        if bool(self.grid) + bool(self.rows) + bool(self.sample) > 1:
            raise ValueError("give one of [grid], [[list]] and [sample]")
        for key, values in self.grid.items():
            _check_axis(key, values)
        self._check_number_of_runs()
        self._check_rows()
        sampled_keys = [] if self.sample is None else list(self.sample.keys)
        for key in sampled_keys:
            _refuse_table_column(f"sample.keys.{key}", key)
        self._check_control()
        self._check_keys(sampled_keys)
        return self

    def _check_number_of_runs(self) -> None:
        # The settings are counted before any list of them is made.
        grid_settings = math.prod(len(values) for values in self.grid.values())
        row_settings = max(len(self.rows), 1)
        sample_settings = 1 if self.sample is None else len(self.sample)
        runs = len(self.seeds) * grid_settings * row_settings * sample_settings
        if runs > MAX_RUNS:
            raise ValueError(f"more than {MAX_RUNS} runs; give fewer values, or fewer seeds")

    def _check_rows(self) -> None:
        """Refuse rows that are equal, that have different keys, or a key that no row may have."""
        _refuse_repeats("list", self.rows)
        for number, row in enumerate(self.rows):
            for key in row:
                _refuse_table_column(f"list row {number}: {key}", key)
            unshared_keys = set(row) ^ set(self.rows[0])
            if unshared_keys:
                fault = f"not every row has '{min(unshared_keys)}'"
                longer_row = row if len(row) > len(self.rows[0]) else self.rows[0]
                example = _as_label(longer_row)
                cure = f"give it to all, or let labels give it to some alone, as {example}"
                raise ValueError(f"list row {number}: {fault}; {cure}")

    def _check_control(self) -> None:
        levels: dict[str, list[Any]] = {key: list(values) for key, values in self.grid.items()}
        if self.rows:
            levels = {key: [row[key] for row in self.rows] for key in self.rows[0]}
        controls_of(self.control, levels)

    def _check_keys(self, sampled_keys: list[str]) -> None:
        """Refuse a key that two parts of the file give, or that no study may give."""
        rounds = {} if self.rounds is None else {"rounds": self.rounds}
        parts = [[rounds], [self.fixed], [dict.fromkeys(sampled_keys)], self.rows]
        for name, values in self.grid.items():
            has_labels = isinstance(values, dict)
            parts.append(list(values.values()) if has_labels else [{name: v} for v in values])
            if not has_labels:
                _refuse_tables(name, values)
        for row in self.rows:
            for key, value in row.items():
                _refuse_tables(key, [value])
        keys_of_earlier_parts: set[str] = set()
        for tables in parts:
            keys = {key for table in tables for key in table}
            repeated_keys = keys & keys_of_earlier_parts
            if repeated_keys:
                raise ValueError(f"key '{min(repeated_keys)}' is given twice; drop one of them")
            for key in sorted(keys):
                for earlier_key in sorted(keys_of_earlier_parts):
                    if earlier_key.startswith(f"{key}."):
                        lost = f"key '{earlier_key}' would be lost, since '{key}' is replaced later"
                        raise ValueError(f"{lost}; put '{key}' first, or the key into its table")
            keys_of_earlier_parts |= keys
            for table in tables:
                for key, value in table.items():
                    _check_key(key, value)

    def settings(self) -> list[Setting]:
        """Return every choice of what varies, with labels by their names.

        Of a grid the values of the last key change fastest.
        """
        if self.sample is not None:
            return self.sample.settings()
        if self.rows:
            return self.rows
        combinations = itertools.product(*self.grid.values())  # of a table of labels the labels
        return [dict(zip(self.grid, values, strict=True)) for values in combinations]

    def varied_keys(self) -> dict[str, set[str]]:
        """Return the scenario's keys that differ between settings, by the part of the file."""
        keys_of_grid: set[str] = set()
        for name, values in self.grid.items():
            if isinstance(values, dict):
                for keys_of_label in values.values():
                    keys_of_grid |= set(keys_of_label)
            else:
                keys_of_grid.add(name)
        keys_of_rows = set(self.rows[0]) if self.rows else set()
        sampled_keys = set() if self.sample is None else set(self.sample.keys)
        return {"[grid]": keys_of_grid, "[[list]]": keys_of_rows, "[sample]": sampled_keys}

    def keys_of(self, setting: Setting) -> Setting:
        """Return what a setting puts into the scenario, with the keys that a label stands for."""
        keys: Setting = {}
        for name, value in setting.items():
            labels = self.grid.get(name)
            keys |= labels[value] if isinstance(labels, dict) else {name: value}
        return keys


@dataclass(frozen=True)
class Task:
    """One run, as plain values that travel to a worker.

    Attributes
    ----------
    run : int
        The number of the run in the study.
    raw : dict
        The parsed scenario file, with the run's keys in it.
    origin : str
        The folder from which the path of a data file counts.
    log_every : int
        Rounds between two entries of the regret log.
    imports : tuple of str
        Modules that the worker imports first.
    folder : str, optional
        Where the logs are written; None to send them back.
    leave_out : tuple of str
        Tables that are not kept.
    branch : BranchSpec, optional
        What would have happened otherwise.
    """

    run: int
    raw: dict[str, Any]
    origin: str
    log_every: int | None = None
    imports: tuple[str, ...] = ()
    folder: str | None = None
    leave_out: tuple[str, ...] = ()
    branch: BranchSpec | None = None

    def scenario(self) -> Scenario:
        """Return the validated scenario; UserError if it does not validate."""
        return Scenario(validated(deepcopy(self.raw), origin=Path(self.origin)))


@dataclass(frozen=True)
class Design:
    """A study file that was read, with its base scenario, which lies in the folder ``origin``."""

    name: str
    spec: StudySpec
    base: dict[str, Any]
    origin: Path

    @cached_property
    def settings(self) -> list[Setting]:
        """Every choice of the varied keys."""
        return self.spec.settings()

    def __len__(self) -> int:
        """Count the runs."""
        return len(self.settings) * len(self.spec.seeds)

    def sized(self, *, rounds: int | None = None, seeds: int | None = None) -> "Design":
        """Return the study with other rounds, or so many seeds, and without what its file claims.

        None changes nothing. UserError if the study sets the rounds of its runs itself.
        """
        settings = [self.spec.fixed, *(self.spec.keys_of(setting) for setting in self.settings)]
        if rounds is not None and any("rounds" in keys for keys in settings):
            raise UserError(f"--rounds {rounds}: the study sets 'rounds' itself; drop the option")
        changes: dict[str, Any] = {}
        if rounds is not None:
            changes["rounds"] = rounds
        if seeds is not None:
            changes["seeds"] = list(range(seeds))
        if changes:
            changes["description"] = ""
        return replace(self, spec=self.spec.model_copy(update=changes))

    def with_fixed(self, assignments: Sequence[str]) -> "Design":
        """Return the study with keys that are the same in every run, in place of its file's.

        ``assignments`` are ``KEY=VALUE``, as ``override`` reads them. Without what its file claims.
        UserError for the seed, and for a key that the study varies.
        """
        if not assignments:
            return self
        fixed = dict(self.spec.fixed)
        for assignment in assignments:
            key, value = read_assignment(assignment)
            if key == "seed":
                raise UserError(
                    f"--set {assignment}: a study gives each run its seed; use --seeds N, or "
                    "seeds = [...] in the file"
                )
            self._refuse_varied_key(key)
            try:
                _check_key(key, value)
            except ValueError as error:
                raise UserError(f"--set {error}") from error
            fixed.pop(key, None)  # the last one given is the last one applied
            fixed[key] = value
        changes: dict[str, Any] = {"fixed": fixed, "description": ""}
        if "rounds" in fixed:
            changes["rounds"] = None
        return replace(self, spec=self.spec.model_copy(update=changes))

    def _refuse_varied_key(self, key: str) -> None:
        """Raise UserError if the study varies a key, or a table in which the key stands."""
        for part, varied_keys in self.spec.varied_keys().items():
            for varied_key in varied_keys:
                if key == varied_key or key.startswith(f"{varied_key}."):
                    fault = f"{part} of the study gives '{varied_key}' to each run"
                    raise UserError(f"--set {key}: {fault}; change its values in the study's file")

    def _setting_and_seed(self, run: int) -> tuple[Setting, int]:
        setting_index, seed_index = divmod(run, len(self.spec.seeds))
        seed = self.spec.seeds[seed_index]
        sample = self.spec.sample
        if sample is not None and sample.is_latin_hypercube:
            seed += setting_index * (max(self.spec.seeds) + 1)
        return self.settings[setting_index], seed

    def parameters(self) -> list[Setting]:
        """Return the keys and the seed of every run, in the runs' order."""
        parameters = []
        for run in range(len(self)):
            setting, seed = self._setting_and_seed(run)
            parameters.append(setting | {"seed": seed})
        return parameters

    def task(self, run: int, imports: tuple[str, ...] = (), folder: str | None = None) -> Task:
        """Return a run, ready to be sent to a worker; UserError if the scenario lacks a key."""
        spec = self.spec
        setting, seed = self._setting_and_seed(run)
        values = dict(spec.fixed)
        if spec.rounds is not None:
            values["rounds"] = spec.rounds
        values |= spec.keys_of(setting)
        values["seed"] = seed
        raw = deepcopy(self.base)
        for key, value in values.items():
            assign(raw, key, deepcopy(value), asked_for=values)
        return Task(
            run=run,
            raw=raw,
            origin=str(self.origin.resolve()),
            log_every=spec.log_every,
            imports=imports,
            folder=folder,
            leave_out=tuple(spec.leave_out),
            branch=spec.branch,
        )

    def settings_to_check(self, imports: tuple[str, ...]) -> list[Task]:
        """Return the first run of every setting; UserError names one that does not validate."""
        tasks = []
        for run in range(0, len(self), len(self.spec.seeds)):
            try:
                task = self.task(run, imports)
                scenario = task.scenario()
                check_margin(self.spec.margin, scenario.spec.measures)
                self._check_labels(scenario.spec)
                if self.spec.sample is not None:
                    check_targets(self.spec.sample, scenario.spec)
            except UserError as error:
                raise self.complaint(run, str(error)) from error
            tasks.append(task)
        return tasks

    def _check_labels(self, scenario: ScenarioSpec) -> None:
        """Refuse labels named like a column that only this scenario's tables have.

        These are the parameters of its utilities and the measures that it names.
        """
        columns = set(scenario.measures)
        for cohort in scenario.cohort:
            columns |= set(cohort.parameters)
        for name, values in self.spec.grid.items():
            if isinstance(values, dict) and name in columns:
                raise UserError(f"grid.{name}: {LABELS_NEED_ANOTHER_NAME}")

    def complaint(self, run: int, reason: str) -> UserError:
        """Return the error that says which setting of the study has a fault."""
        setting, _ = self._setting_and_seed(run)
        parts = [f"study '{self.name}'"]
        parts += [f"{key} = {format_value(value)}" for key, value in setting.items()]
        return UserError(f"{', '.join(parts)}: {reason}{self._hint_at_labels(reason)}")

    def _hint_at_labels(self, reason: str) -> str:
        """Return how a key goes with some of the kinds alone, where that is the cure; else empty.

        A study may vary the kind of the forecaster beside a key that only some of the kinds have.
        """
        key = reason.partition(":")[0]
        name = key.removeprefix("forecaster.")
        complaints = {f"{key}: {barred[name]}" for barred in KINDS_BARRING if name in barred}
        kinds = {str(setting.get("forecaster.kind")) for setting in self.settings}
        if reason not in complaints or len(kinds) == 1:
            return ""
        example = '[grid.forecasters] a = { "forecaster.kind" = KIND'
        return f', or let labels give it to other kinds alone, as {example}, "{key}" = VALUE }}'

    def identity(self) -> dict[str, Any]:
        """Return the study file and the base scenario as JSON gives them back.

        Two studies are the same if these are equal.
        """
        file = self.spec.model_dump(by_alias=True, exclude_none=True)
        text = json.dumps({"file": file, "base": self.base}, default=str)
        identity: dict[str, Any] = json.loads(text)
        return identity


def read_study(name: str) -> Design:
    """Read a study file, a bundled one by its name; UserError if it has a fault."""
    bundled = {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}
    path = bundled.get(name) or expanded(name)
    if not path.is_file():
        if path.suffix == ".toml":
            raise UserError(f"study file '{name}' does not exist; check the path")
        hint = f"{closest(name, bundled)} or a path to a .toml file"
        raise UserError(f"unknown study '{name}'; {hint}")
    raw = read(path)
    if "scenario" not in raw and "cohort" in raw:
        raise UserError(f"{path.name} is a scenario; regretless run FILE plays it once")
    try:
        check_values(raw)
        spec = StudySpec.model_validate(raw)
    except UserError as error:
        raise UserError(f"{path.name}: {error}") from error
    except ValidationError as error:
        fault = _innermost_of_first(error.errors())
        key = _spell(fault["loc"], raw)
        known_keys = [field.alias or name for name, field in StudySpec.model_fields.items()]
        line = fault_line(fault, key, known_keys, "study")
        raise UserError(f"{path.name}: {line}") from error
    scenario = _find_base_scenario(spec.scenario, path)
    return Design(path.stem, spec, read(scenario), scenario.parent)


def _find_base_scenario(name: str, study: Path) -> Path:
    """Return the file of a study's scenario: a bundled one, or a path from the study file."""
    bundled = named_scenarios()
    if name in bundled:
        return find_scenario(name)
    path = study.parent / expanded(name, "scenario")  # an absolute path stays as it is
    if not path.is_file():
        hint = f"{closest(name, bundled)} or a path from the study file"
        raise UserError(f"{study.name}: scenario '{name}' does not exist; {hint}")
    return path


def _innermost_of_first(faults: Sequence[Any]) -> Any:
    """Return the fault to report: of those of the first faulty key the one that lies deepest.

    Pydantic lists a fault for every branch of a union.
    """
    first_key = faults[0]["loc"][:1]
    faults_of_key = [fault for fault in faults if fault["loc"][:1] == first_key]
    return max(faults_of_key, key=lambda fault: len(fault["loc"]))


def _spell(location: tuple[int | str, ...], raw: Any) -> str:
    """Return a location as a dotted key, without the branches of unions, which no file names."""
    spelled_steps = []
    for step in location:
        if isinstance(raw, list):
            raw = dict(enumerate(raw))
        if isinstance(raw, dict) and (step in raw or step == location[-1]):
            spelled_steps.append(str(step))
            raw = raw.get(step)
    return ".".join(spelled_steps)


def _check_axis(name: str, values: Any) -> None:
    """Raise ValueError if an entry of [grid] is neither a list of values nor a table of labels."""
    has_labels = isinstance(values, dict) and all(
        isinstance(keys, dict) for keys in values.values()
    )
    if not values or not (has_labels or isinstance(values, list)):
        forms = "a list of values, or a table of keys for each label, and a key with dots in quotes"
        raise ValueError(f"grid.{name} = {format_value(values)}: give {forms}")
    if not has_labels:
        _refuse_repeats(f"grid.{name}", values)
        _refuse_table_column(f"grid.{name}", name)
    elif name in TABLE_COLUMNS or "." in name or name.endswith(OF_MARKET):
        raise ValueError(f"grid.{name}: {LABELS_NEED_ANOTHER_NAME}")


def _with_dotted_keys(keys: Setting, prefix: str = "") -> Setting:
    """Return keys with what stands in tables under dotted keys, as TOML means an unquoted dot.

    A table that names a ``kind`` stays one: it takes the place of the scenario's table as a whole,
    since the other keys of that belong to another kind.
    """
    spelled: Setting = {}
    for name, value in keys.items():
        key = f"{prefix}{name}"
        is_part_of_table = isinstance(value, dict) and "." not in name and "kind" not in value
        keys_of_part = {key: value}
        if is_part_of_table and value:
            keys_of_part = _with_dotted_keys(value, f"{key}.")
        repeated_keys = spelled.keys() & keys_of_part.keys()
        if repeated_keys:
            raise ValueError(f"key '{min(repeated_keys)}' is given twice; drop one of them")
        spelled |= keys_of_part
    return spelled


def _check_key(key: str, value: Any) -> None:
    """Raise ValueError for the seed, which a study gives, and for a table in place of a value."""
    if key == "seed":
        raise ValueError("key 'seed' is taken by the study; use seeds = [...]")
    if "." not in key and isinstance(value, dict) and "kind" not in value:
        _refuse_tables(key, [value])


def _as_label(keys: Iterable[str]) -> str:
    """Return how a label of a grid gives these keys.

    >>> _as_label(["seed", "rounds"])
    '[grid.rows] a = { "seed" = VALUE, "rounds" = VALUE }'
    """
    values = ", ".join(f'"{key}" = VALUE' for key in keys)
    return f"[grid.rows] a = {{ {values} }}"


def _refuse_tables(key: str, values: Sequence[Any]) -> None:
    """Raise ValueError for a table among the values of a key, which are cells of a column."""
    if any(isinstance(value, dict) for value in values):
        hint = f'write a dotted key in quotes, as in "{key}.NAME"'
        raise ValueError(f"{key} is a table; {hint}")


def _refuse_table_column(description: str, key: str) -> None:
    """Raise ValueError for a key that is called like a column of the study's tables.

    The seed is left to ``_check_key``, which says what to write instead.
    """
    if key in TABLE_COLUMNS - {"seed"}:
        hint = f"vary keys in it, as {key}.NAME"
        raise ValueError(f"{description}: a column of a study's tables; {hint}")


def _refuse_repeats(key: str, values: list[Any]) -> None:
    """Raise ValueError if a value is listed twice; values may be tables, which have no hash."""
    for index, value in enumerate(values):
        if value in values[:index]:
            repeated = format_value(value)
            raise ValueError(f"{key} repeats {repeated}; drop it, seeds give repetitions")
