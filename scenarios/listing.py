"""``regretless list``: scenarios, studies, and every name that a scenario file may use."""

import importlib
import inspect
import textwrap
import tomllib
from collections.abc import Mapping

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config.files import PACKAGE, catalogue, read

SHORT = PACKAGE / "listing.toml"  # a line for each bundled scenario and study
GROUPED = ("scenarios", "studies")
STUDIES = PACKAGE / "studies" / "catalogue"
LEAST_ROOM = 20  # columns for a meaning beside its name
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
    if kind not in GROUPED or verbose:
        return _rows(_named(kind), width)
    groups = tomllib.loads(SHORT.read_text(encoding="utf-8"))[kind]
    column = max(len(name) for group in groups.values() for name in group)
    lines = list[str]()
    for heading, group in groups.items():
        rows = _rows(group, width and width - 2, column)
        lines += ["", heading, *(f"  {row}" for row in rows)]
    return [*lines[1:], "", f"Whole descriptions: regretless list {kind} --verbose"]


def _rows(named: Mapping[str, str], width: int | None, column: int = 0) -> list[str]:
    """Write names and meanings in two columns, the first at least so wide."""
    column = max(column, *(len(name) for name in named)) + 2
    lines = []
    for name, meaning in named.items():
        room = None if width is None else max(width - column, LEAST_ROOM)
        parts = (room and textwrap.wrap(meaning, room, break_on_hyphens=False)) or [meaning]
        for place, part in enumerate(parts):
            lines.append(f"{'' if place else name:{column}}{part}".rstrip())
    return lines


def _named(kind: str) -> dict[str, str]:
    if kind in GROUPED:
        files = catalogue().values() if kind == "scenarios" else sorted(STUDIES.glob("*.toml"))
        return {path.stem: str(read(path).get("description", "")) for path in files}
    if kind not in REGISTRIES:
        known = [*GROUPED, *REGISTRIES]
        raise UserError(f"list: unknown kind '{kind}'; {closest(kind, known)}")
    for room in ("agents", "forecaster", "market.markets"):
        importlib.import_module(f"regretless.{room}")  # registers names
    register = importlib.import_module("regretless.market.register")
    registry = getattr(register, REGISTRIES[kind])
    special = importlib.import_module("regretless.scenarios.config.forecaster").KINDS
    own: dict[str, str] = dict(special) if kind == "forecasters" else {}
    for name in registry.names():  # the first sentence of what each says of itself
        said = (inspect.getdoc(registry[name]) or "").split("\n\n")[0]
        own |= {name: " ".join(said.replace("`", "").split()) or "(says nothing)"}
    return own
