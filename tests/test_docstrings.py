"""Every public class, function and method says what it is for, or what it overrides does."""

import inspect
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

from regretless import agents, forecaster, market, scenarios

NAMES = [
    found.name
    for room in (market, forecaster, agents, scenarios)
    for found in walk_packages(room.__path__, f"{room.__name__}.")
]


def public(whole: Any) -> list[Any]:
    kinds = type, property, type(public)
    own = [getattr(whole, name) for name in vars(whole) if not name.startswith("_")]
    found = [one for one in own if isinstance(one, kinds)]
    return [one for one in found if not isinstance(whole, ModuleType) or written_in(one, whole)]


def written_in(one: Any, module: ModuleType) -> bool:
    return getattr(one, "__module__", None) == module.__name__


def test_whoever_overrides_inherits_what_it_is_for() -> None:
    for name in NAMES:
        with suppress(ImportError):
            for one in public(import_module(name)):
                assert inspect.getdoc(one), one
                for part in public(one) if isinstance(one, type) else ():
                    assert inspect.getdoc(part), (one, part)
