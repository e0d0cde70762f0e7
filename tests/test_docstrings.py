"""Docstrings: examples are so, and whatever is public says what it is for, or what it overrides."""

import doctest
import inspect
import re
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import regretless
from regretless import agents, forecaster, market, scenarios

NAMES = [
    found.name
    for room in (market, forecaster, agents, scenarios)
    for found in walk_packages(room.__path__, f"{room.__name__}.")
]
EXAMPLE = re.compile(r">>> (?!.*\+SKIP)")
HOME = Path(regretless.__file__).parent


def shown(name: str) -> bool:
    """Whether the docstrings of a module have an example."""
    place = HOME.joinpath(*name.split(".")[1:])
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return bool(EXAMPLE.search(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", [*filter(shown, NAMES)])
def test_examples_print_what_they_show(name: str) -> None:
    failed, tried = doctest.testmod(import_module(name))
    assert tried > 0
    assert failed == 0


def test_what_a_newcomer_tries_first_has_an_example() -> None:
    """The very functions: a wrapper would hide its example from doctest."""
    finder = doctest.DocTestFinder()
    for thing in (regretless.swap_regret, regretless.stackelberg):
        assert any(found.examples for found in finder.find(thing)), thing


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
