"""``regretless list``: scenarios, studies, and every name that a scenario file may use."""

import importlib
import inspect
import textwrap
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config.files import PACKAGE, catalogue, read

SHORT_MEANINGS = PACKAGE / "listing.toml"  # a line for each bundled scenario and study, in groups
GROUPED_KINDS = ("scenarios", "studies")
STUDIES = PACKAGE / "studies" / "catalogue"
MIN_MEANING_WIDTH = 20  # columns for a meaning beside its name
REGISTRIES = {  # by kind, the registry in ``market.register``, which loads NumPy
    "utilities": "utility",
    "responses": "response",
    "learners": "learner",
    "adversaries": "adversary",
    "policies": "policy",
    "forecasters": "forecaster",
    "models": "forecaster",
    "markets": "market",
}


def listing(kind: str, width: int | None = None, *, verbose: bool = False) -> list[str]:
    """Write names of a kind and what they mean, wrapped to a width if one is given.

    Scenarios and studies have a line each, in groups; ``verbose`` writes their descriptions.
    """
    if kind not in GROUPED_KINDS or verbose:
        meanings = _meanings_of(kind)
        return _two_columns(meanings, width, name_width=_longest_name(meanings))
    meanings_of_group = tomllib.loads(SHORT_MEANINGS.read_text(encoding="utf-8"))[kind]
    name_width = max(_longest_name(meanings) for meanings in meanings_of_group.values())
    indented_width = None if width is None else width - 2
    lines: list[str] = []
    for heading, meanings in meanings_of_group.items():
        rows = _two_columns(meanings, indented_width, name_width=name_width)
        lines += ["", heading, *(f"  {row}" for row in rows)]
    return [*lines[1:], "", f"Whole descriptions: regretless list {kind} --verbose"]


def _longest_name(meanings: Mapping[str, str]) -> int:
    return max(len(name) for name in meanings)


def _two_columns(meanings: Mapping[str, str], width: int | None, *, name_width: int) -> list[str]:
    """Write names, in a column of so many characters, and their meanings beside them."""
    indent = name_width + 2
    lines = []
    for name, meaning in meanings.items():
        parts: list[str] = []
        if width is not None:
            meaning_width = max(width - indent, MIN_MEANING_WIDTH)
            parts = textwrap.wrap(meaning, meaning_width, break_on_hyphens=False)
        parts = parts or [meaning]
        lines.append(f"{name:{indent}}{parts[0]}".rstrip())
        lines += [f"{'':{indent}}{part}".rstrip() for part in parts[1:]]
    return lines


def _meanings_of(kind: str) -> dict[str, str]:
    """Return what each name of a kind means; UserError if there is no such kind."""
    if kind == "scenarios":
        return _descriptions(catalogue().values())
    if kind == "studies":
        return _descriptions(sorted(STUDIES.glob("*.toml")))
    if kind not in REGISTRIES:
        known_kinds = [*GROUPED_KINDS, *REGISTRIES]
        raise UserError(f"list: unknown kind '{kind}'; {closest(kind, known_kinds)}")
    for package in ("agents", "forecaster", "market.markets"):
        importlib.import_module(f"regretless.{package}")  # registers names
    register = importlib.import_module("regretless.market.register")
    registry = getattr(register, REGISTRIES[kind])
    meanings: dict[str, str] = {}
    if kind == "forecasters":
        meanings |= importlib.import_module("regretless.scenarios.config.forecaster").KINDS
    for name in registry.names():
        first_paragraph = (inspect.getdoc(registry[name]) or "").split("\n\n")[0]
        meaning = " ".join(first_paragraph.replace("`", "").split())
        meanings[name] = meaning or "(says nothing)"
    return meanings


def _descriptions(paths: Iterable[Path]) -> dict[str, str]:
    """Return the descriptions of scenario or study files, by their names."""
    return {path.stem: str(read(path).get("description", "")) for path in paths}
