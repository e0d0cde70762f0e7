"""What a study file says, and the runs that it stands for.

A **setting** is one choice of all that varies: of a full product of keys, in which a label may
stand for several, of a list of rows, or of a sample from ranges. A run is a setting and a seed, all
seeds of the first setting first. Runs with equal seeds share their random streams, whatever the
setting (common random numbers: Glasserman and Yao, Management Science 38, 1992); only the points of
a Latin hypercube have seeds of their own.
"""

import itertools
import json
import math
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
from regretless.scenarios.config.files import assign, check_values, format_value, read
from regretless.scenarios.config.files import catalogue as named_scenarios
from regretless.scenarios.config.files import find as find_scenario
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Count, Name, Strict
from regretless.scenarios.config.validation import fault_line, validated
from regretless.scenarios.studies.analysis.contrasts import check_margin, controls_of
from regretless.scenarios.studies.analysis.measures import COHORTS, EFFECTS, OF_MARKET, VALUE
from regretless.scenarios.studies.sampling import SampleSpec, check_targets

# What a run directory may do without: nothing in a study is computed from these tables.
Dispensable = Literal["rounds", "forecasts", "regret_log", "swaps", "biases", "edges"]
# Columns of a study's tables and of what is merged with them.
TAKEN = {*COHORTS, *EFFECTS, *VALUE, "seed", "setting", "first", "last", "branch", "against"}
TAKEN |= set(AGENT_COLUMNS)
MOST_RUNS = 1_000_000
LABEL_NAMES = "labels need a name without dots that no table's column has"
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
    log_every: Count = 1
    """Rounds between two entries of the regret log."""
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
    def _seeds(cls, seeds: Any) -> Any:
        if type(seeds) is int and seeds > 0:
            return list(range(min(seeds, MOST_RUNS + 1)))  # of too many no list is made
        whole = isinstance(seeds, list) and all(type(seed) is int for seed in seeds)
        if not whole or not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
            wanted = "give how many, at least 1, or a list of different seeds"
            raise ValueError(f"{format_value(seeds)}: {wanted}")
        return seeds

    @model_validator(mode="after")
    def _one_design(self) -> "StudySpec":
        if bool(self.grid) + bool(self.rows) + bool(self.sample) > 1:
            raise ValueError("give one of [grid], [[list]] and [sample]")
        for key, values in self.grid.items():
            _check_axis(key, values)
        runs = len(self.seeds) * math.prod(map(len, self.grid.values())) * max(len(self.rows), 1)
        if runs * (1 if self.sample is None else len(self.sample)) > MOST_RUNS:
            raise ValueError(f"more than {MOST_RUNS} runs; give fewer values, or fewer seeds")
        _refuse_repeats("list", self.rows)
        sampled = [] if self.sample is None else list(self.sample.keys)
        for key in sampled:
            _refuse_taken(f"sample.keys.{key}", key)
        for number, row in enumerate(self.rows):
            for key in row:
                _refuse_taken(f"list row {number}: {key}", key)
            if odd := set(row) ^ set(self.rows[0]):
                lack = f"not every row has '{min(odd)}'"
                raise ValueError(f"list row {number}: {lack}; give it to all")
        levels = {key: [row[key] for row in self.rows] for row in self.rows[:1] for key in row}
        controls_of(self.control, levels or {key: list(own) for key, own in self.grid.items()})
        self._check_keys(sampled)
        return self

    def _check_keys(self, sampled: list[str]) -> None:
        """Refuse a key that two parts of the file give, or that no study may give."""
        rounds = {} if self.rounds is None else {"rounds": self.rounds}
        axes = [[rounds], [self.fixed], [dict.fromkeys(sampled)], self.rows]
        for key, own in self.grid.items():
            axes.append(list(own.values()) if isinstance(own, dict) else [{key: v} for v in own])
        given: set[str] = set()
        for axis in axes:
            keys = {key for table in axis for key in table}
            if keys & given:
                raise ValueError(f"key '{min(keys & given)}' is given twice; drop one of them")
            given |= keys
            for key, value in (pair for table in axis for pair in table.items()):
                if key == "seed":
                    raise ValueError("key 'seed' is taken by the study; use seeds = [...]")
                if "." not in key and isinstance(value, dict):
                    cure = f'write a dotted key in quotes, as in "{key}.NAME"'
                    raise ValueError(f"{key} is a table; {cure}")

    def settings(self) -> list[Setting]:
        """Every choice of what varies, a label by its name; the last entry runs fastest."""
        if self.sample is not None:
            return self.sample.settings()
        product = itertools.product(*self.grid.values())  # of a table its labels
        return self.rows or [dict(zip(self.grid, values, strict=True)) for values in product]

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

    ``raw`` is the scenario file with the run's keys in it, ``origin`` the folder from which a data
    file's path counts, ``folder`` where the logs go; None to send them back.
    """

    run: int
    raw: dict[str, Any]
    origin: str
    log_every: int = 1
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
        own = (self.spec.fixed, *map(self.spec.keys_of, self.settings))
        if rounds is not None and any("rounds" in keys for keys in own):
            raise UserError(f"--rounds {rounds}: the study sets 'rounds' itself; drop the option")
        changed: dict[str, Any] = {} if rounds is None else {"rounds": rounds}
        changed |= {} if seeds is None else {"seeds": list(range(seeds))}
        changed |= {"description": ""} if changed else {}
        return replace(self, spec=self.spec.model_copy(update=changed))

    def _of(self, run: int) -> tuple[Setting, dict[str, int]]:
        setting, place = divmod(run, len(self.spec.seeds))
        seed, sample = self.spec.seeds[place], self.spec.sample
        if sample is not None and sample.own_seeds:
            seed += setting * (max(self.spec.seeds) + 1)
        return self.settings[setting], {"seed": seed}

    def parameters(self) -> list[Setting]:
        """Return the keys and the seed of every run, in the runs' order."""
        return [setting | seed for setting, seed in map(self._of, range(len(self)))]

    def task(self, run: int, imports: tuple[str, ...] = (), folder: str | None = None) -> Task:
        """Return a run, ready to be sent to a worker; UserError if a key has no place."""
        spec, raw, (setting, seed) = self.spec, deepcopy(self.base), self._of(run)
        rounds = {} if spec.rounds is None else {"rounds": spec.rounds}
        for key, value in (spec.fixed | rounds | spec.keys_of(setting) | seed).items():
            assign(raw, key, deepcopy(value))
        origin, left_out = str(self.origin.resolve()), tuple(spec.leave_out)
        return Task(run, raw, origin, spec.log_every, imports, folder, left_out, spec.branch)

    def settings_to_check(self, imports: tuple[str, ...]) -> list[Task]:
        """Return the first run of every setting; UserError names one that does not validate."""
        tasks = []
        for run in range(0, len(self), len(self.spec.seeds)):
            try:
                tasks.append(self.task(run, imports))
                scenario = tasks[-1].scenario()
                check_margin(self.spec.margin, scenario.spec.measures)
                self._check_labels(scenario.spec)
                if self.spec.sample is not None:
                    check_targets(self.spec.sample, scenario.spec)
            except UserError as error:
                raise self.complaint(run, str(error)) from error
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
                raise UserError(f"grid.{name}: {LABEL_NAMES}")

    def complaint(self, run: int, reason: str) -> UserError:
        """Return the error that says which setting of the study has a fault."""
        keys = ", ".join(
            f"{key} = {format_value(value)}" for key, value in self._of(run)[0].items()
        )
        return UserError(f"study '{self.name}'{', ' if keys else ''}{keys}: {reason}")

    def identity(self) -> dict[str, Any]:
        """Return what makes two studies the same, as JSON gives it back."""
        whole = {"file": self.spec.model_dump(by_alias=True, exclude_none=True), "base": self.base}
        known: dict[str, Any] = json.loads(json.dumps(whole, default=str))
        return known


def read_study(name: str) -> Design:
    """Read a study file, a bundled one by its name; UserError if it may not be what it is."""
    bundled = {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}
    path = bundled.get(name) or expanded(name)
    if not path.is_file() and path.suffix == ".toml":
        raise UserError(f"study file '{name}' does not exist; check the path")
    if not path.is_file():
        cure = f"{closest(name, bundled)} or a path to a .toml file"
        raise UserError(f"unknown study '{name}'; {cure}")
    raw = read(path)
    if "scenario" not in raw and "cohort" in raw:
        raise UserError(f"{path.name} is a scenario; regretless run FILE plays it once")
    try:
        check_values(raw)
        spec = StudySpec.model_validate(raw)
    except UserError as error:
        raise UserError(f"{path.name}: {error}") from error
    except ValidationError as error:
        own = error.errors()
        alike = [fault for fault in own if fault["loc"][:1] == own[0]["loc"][:1]]
        first = max(alike, key=lambda fault: len(fault["loc"]))  # the innermost of a union
        known = [field.alias or name for name, field in StudySpec.model_fields.items()]
        line = fault_line(first, _place(first["loc"], raw), known, "study")
        raise UserError(f"{path.name}: {line}") from error
    beside = path.parent / expanded(spec.scenario, "scenario")  # an absolute path stays itself
    scenario = find_scenario(spec.scenario) if spec.scenario in named_scenarios() else beside
    if not scenario.is_file():
        cure = f"{closest(spec.scenario, named_scenarios())} or a path from the study file"
        raise UserError(f"{path.name}: scenario '{spec.scenario}' does not exist; {cure}")
    return Design(path.stem, spec, read(scenario), scenario.parent)


def _place(location: tuple[int | str, ...], raw: Any) -> str:
    """Spell a location without the branches of unions, which no file names."""
    spelled = []
    for step in location:
        raw = dict(enumerate(raw)) if isinstance(raw, list) else raw
        if isinstance(raw, dict) and (step in raw or step == location[-1]):
            spelled.append(str(step))
            raw = raw.get(step)
    return ".".join(spelled)


def _check_axis(key: str, values: Any) -> None:
    labels = isinstance(values, dict) and all(isinstance(keys, dict) for keys in values.values())
    if not values or not (labels or isinstance(values, list)):
        wanted = (
            "a list of values, or a table of keys for each label, and a key with dots in quotes"
        )
        raise ValueError(f"grid.{key} = {format_value(values)}: give {wanted}")
    if not labels:
        _refuse_repeats(f"grid.{key}", values)
        _refuse_taken(f"grid.{key}", key)
    elif key in TAKEN or "." in key or key.endswith(OF_MARKET):
        raise ValueError(f"grid.{key}: {LABEL_NAMES}")


def _refuse_taken(where: str, key: str) -> None:
    if key in TAKEN - {"seed"}:  # of which is said what to write instead
        raise ValueError(f"{where}: a column of a study's tables; vary keys in it, as {key}.NAME")


def _refuse_repeats(key: str, values: list[Any]) -> None:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ValueError(
                f"{key} repeats {format_value(value)}; drop it, seeds give repetitions"
            )
