"""A scenario as it was read and changed: its keys as controls of a page, and how it is saved.

Limits and meanings of keys are those of the models that read them. Where a model sets no limit a
slider ends at ``REACH`` times the value, and the number beside it goes further.

A scenario is saved as a file, with a run of it, or with a study, in one folder, under a name
without a path; a file that is there stays. The run is played anew, in a process of its own, from
the file that was saved: players that were replaced on the page are not in it.
"""

import copy
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_args

import tomli_w
from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from regretless.market import register
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import assign, find, format_value, override, read
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Variant, meaning_of
from regretless.scenarios.config.validation import validated

RIVALS = ("running-mean", "exponential-smoothing", "last-value")  # of the forecaster in a study
SEEDS = 5
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")


@dataclass(frozen=True)
class Source:
    """A scenario: its name or path, the parsed file as it was changed, and the file's folder."""

    name: str
    raw: dict[str, Any]
    origin: Path

    @classmethod
    def of(cls, name: str, assignments: tuple[str, ...] = ()) -> "Source":
        """Read a scenario by name or path; UserError if there is none."""
        path = find(name)
        return cls(name, override(read(path), assignments), path.resolve().parent)

    def scenario(self) -> Scenario:
        """Return what is to be built; UserError if the file does not validate."""
        return Scenario(validated(copy.deepcopy(self.raw), origin=self.origin))

    def changed(self, key: str, value: Any) -> "Source":
        """Return it with a value under a dotted key."""
        raw = copy.deepcopy(self.raw)
        assign(raw, key, value)
        return replace(self, raw=raw)

    def portable(self, folder: Path) -> dict[str, Any]:
        """Return the parsed file for another folder: paths that counted from its own are whole."""
        raw = copy.deepcopy(self.raw)
        for table in ("data", "game", "network"):
            named = raw.get(table, {}).get("file")
            if named and self.origin != folder and (self.origin / named).is_file():
                raw[table]["file"] = str((self.origin / named).resolve())
        return raw


class Saving:
    """Saves into a folder, runs into ``runs`` within it; these import the user's ``modules``."""

    def __init__(self, folder: Path, modules: tuple[str, ...] = ()) -> None:
        self.folder, self.modules = folder, modules
        self._said, self._target = "", Path()
        self._process: subprocess.Popen[str] | None = None

    def file(self, source: Source, name: str) -> Path:
        """Write a scenario file; UserError if the name is no name or the file is there."""
        if not NAME.fullmatch(name):
            raise UserError(
                f"save as {format_value(name)}: give letters, digits, - and _, and no path"
            )
        path = self._free(name)
        self._write(path, source.portable(self.folder) | {"name": name})
        self._said = f"Saved: {path}"
        return path

    def _free(self, name: str) -> Path:
        path = self.folder / f"{name}.toml"
        if path.exists():
            raise UserError(f"save as {name}: {path} is there already; give another name")
        return path

    def _write(self, path: Path, raw: dict[str, Any]) -> None:
        try:
            with replacing(path) as draft:
                draft.write_text(tomli_w.dumps(raw), encoding="utf-8", newline="\n")
        except OSError as error:
            raise UserError(f"save as {path}: {error.strerror}; make room") from error

    def run(self, source: Source, name: str) -> None:
        """Save a scenario file and play it into ``runs/NAME``; UserError as of ``file``."""
        if self._process is not None and self._process.poll() is None:
            raise UserError(f"{self._target} is being written; wait for it")
        path, self._target = self.file(source, name), self.folder / "runs" / name
        # -P: a file of the folder, such as a typer.py, is not imported in place of a library.
        words = [sys.executable, "-P", "-m", "regretless", "run", str(path), "--quiet"]
        words += ["--out", str(self._target)]
        words += [word for module in self.modules for word in ("--import", module)]
        self._process = subprocess.Popen(  # noqa: S603 - our own command, its words checked
            words, cwd=self.folder, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        )

    def study(self, source: Source, name: str) -> None:
        """Save a scenario file and a study of it, ``NAME-study.toml``; UserError as of ``file``.

        It compares the forecaster with the baselines that the scenario can have in its place.
        """
        kinds = [source.scenario().spec.forecaster.kind]
        for rival in (rival for rival in RIVALS if rival not in kinds):
            with suppress(UserError):  # it cannot have that one, and nothing else changed
                source.changed("forecaster.kind", rival).scenario().build()
                kinds.append(rival)
        grid = {"grid": {"forecaster.kind": kinds}} if len(kinds) > 1 else {}
        path = self._free(f"{name}-study")
        self._write(path, {"scenario": self.file(source, name).name, "seeds": SEEDS} | grid)
        self._said += f" and {path}. Play it: regretless study {path} --out runs/{name}-study"

    def summary(self) -> str:
        """Say in a line what was saved, or how far it is."""
        if self._process is None:
            return self._said
        if self._process.poll() is None:
            return f"{self._said}. Playing it into {self._target} ..."
        complaint = self._process.communicate()[1].strip()
        if self._process.returncode:
            self._said = (complaint.splitlines() or ["the run was ended"])[-1]
        else:
            self._said += f". Run: {self._target}; regretless report {self._target} makes its page"
        self._process = None
        return self._said


REACH = 4  # times a value where nothing limits it
STEPS = 100  # of a slider over numbers that are not whole
SHARED = {("parameters", "concentration"): "How closely agents' weights follow the given ones."}
Kinds = tuple[str, Sequence[register.Registry]]
BLOCKS: dict[str, Kinds] = {  # of a part of a file, what says whose parameters other keys are
    "adversary": ("kind", [register.adversary]),
    "market": ("kind", [register.market]),
    "policy": ("kind", [register.policy]),
    "forecaster": ("kind", [register.forecaster]),
    "basis": ("kind", [register.basis]),
    "parameters": ("utility", [register.utility]),
    "settings": ("response", register.ANSWERS),
}


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
    found = list(_walked(spec, raw, "", spec))
    return sorted(found, key=lambda key: (not key.given, key.name.startswith("policy.")))


def _walked(
    value: Any, raw: Any, name: str, owner: BaseModel, field: FieldInfo | None = None
) -> Iterator[Key]:
    """Yield the numbers in a value, of tables that are given; ``owner`` is the nearest model."""
    if isinstance(value, BaseModel | dict) and isinstance(raw, dict):
        entries, fields = (value if isinstance(value, dict) else vars(value)), {}
        if isinstance(value, BaseModel):
            owner, fields = value, type(value).model_fields
            entries = entries | (value.model_extra or {})
        barred = value.BARRED if isinstance(value, Variant) else ()
        for key, entry in entries.items():
            if "." not in key and key not in barred:
                path = f"{name}.{key}" if name else key
                yield from _walked(entry, raw.get(key), path, owner, fields.get(key))
    elif isinstance(value, list) and isinstance(raw, list):
        for own, given in zip(value, raw, strict=False):
            if isinstance(given, dict) and "name" in given:
                yield from _walked(own, given, f"{name}.{given['name']}", owner)
    elif _number(value) and (raw is None or _number(raw)):
        whole, limits = isinstance(value, int), dict(_limits(field))
        coded = "data.codes.", "policy." if whole else "data.codes."  # the latter are actions
        if name == "seed" or name.startswith(coded):
            return
        low = limits.get("ge", limits.get("gt", min(0, REACH * value)))
        high = limits.get("le", limits.get("lt", max(REACH * value, 10 if whole else 1.0)))
        step = 1 if whole else (high - low) / STEPS
        low += step * ("gt" in limits and not whole)
        words = _meaning(owner, name, is_key=field is not None)
        yield Key(name, value, low, high, step, words, given=raw is not None)


def _meaning(owner: BaseModel, name: str, *, is_key: bool) -> str:
    """Say what a number means: a key of a model, or else a parameter of its building block."""
    if is_key:
        meaning = meaning_of(type(owner), name.rpartition(".")[2]) or ""
    else:
        meaning = _parameter(owner, name.split("."))
    return " ".join(meaning.split())


def _parameter(owner: BaseModel, words: list[str]) -> str:
    """Say what a parameter of a building block means, in the words of its docstring."""
    part = next((word for word in reversed(words) if word in BLOCKS), "")
    key, registries = BLOCKS.get(part, ("", ()))
    name = str(getattr(owner, key, ""))
    for registry in (own for own in registries if name in own):
        doc = inspect.getdoc(registry[name]) or ""
        entry = re.search(rf"^(\w+, )*{words[-1]}(, \w+)* :.*\n((?: +.*\n?)+)", doc, re.MULTILINE)
        said = entry[3] if entry else SHARED.get((part, words[-1]), doc.split("\n\n")[0])
        return f"A parameter of the {registry.kind} {name}. {said}"
    return ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _limits(part: Any) -> Iterator[tuple[str, float]]:
    if isinstance(part, FieldInfo):
        for own in (part.annotation, *part.metadata):
            yield from _limits(own)
    elif isinstance(part, Ge | Gt | Le | Lt):
        yield from asdict(part).items()
    else:
        for own in get_args(part):  # of an annotated type its annotations as well
            yield from _limits(own)
