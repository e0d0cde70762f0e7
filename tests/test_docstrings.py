"""Docstrings: examples are so, and whatever is public says what it is for, or what it overrides."""

import doctest
import inspect
import re
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import regretless
from regretless import agents, forecaster, market, scenarios

EXAMPLE = re.compile(r">>> (?!.*\+SKIP)")


def public_members(whole: Any) -> list[Any]:
    """Return the public classes, properties and functions of a module or a class."""
    own = [getattr(whole, name) for name in vars(whole) if not name.startswith("_")]
    if isinstance(whole, ModuleType):
        own = [one for one in own if getattr(one, "__module__", None) == whole.__name__]
    return [one for one in own if isinstance(one, type | property | type(public_members))]


@pytest.mark.parametrize("room", [market, forecaster, agents, scenarios])
def test_examples_are_so_and_whoever_overrides_inherits_what_it_is_for(room: ModuleType) -> None:
    for found in walk_packages(room.__path__, f"{room.__name__}."):
        with suppress(ImportError):
            module = import_module(found.name)
            failed, tried = doctest.testmod(module)
            assert failed == 0, found.name
            assert (tried > 0) == bool(EXAMPLE.search(inspect.getsource(module))), found.name
            for one in public_members(module):
                assert inspect.getdoc(one), one
                for part in public_members(one) if isinstance(one, type) else ():
                    assert inspect.getdoc(part), (one, part)


def test_what_a_newcomer_tries_first_has_an_example() -> None:
    """The very functions: a wrapper would hide its example from doctest."""
    finder = doctest.DocTestFinder()
    for thing in (regretless.swap_regret, regretless.stackelberg):
        assert any(found.examples for found in finder.find(thing)), thing
