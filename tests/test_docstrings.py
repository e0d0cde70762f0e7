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


def public_members(module_or_class: Any) -> list[Any]:
    """Return the public classes, properties and functions of a module or a class."""
    members = [
        getattr(module_or_class, name) for name in vars(module_or_class) if not name.startswith("_")
    ]
    if isinstance(module_or_class, ModuleType):
        members = [
            member
            for member in members
            if getattr(member, "__module__", None) == module_or_class.__name__
        ]
    return [
        member for member in members if isinstance(member, type | property | type(public_members))
    ]


@pytest.mark.parametrize("room", [market, forecaster, agents, scenarios])
def test_examples_are_so_and_whoever_overrides_inherits_what_it_is_for(room: ModuleType) -> None:
    for module_info in walk_packages(room.__path__, f"{room.__name__}."):
        with suppress(ImportError):
            module = import_module(module_info.name)
            failed, tried = doctest.testmod(module)
            assert failed == 0, module_info.name
            assert (tried > 0) == bool(EXAMPLE.search(inspect.getsource(module))), module_info.name
            for member in public_members(module):
                assert inspect.getdoc(member), member
                for part in public_members(member) if isinstance(member, type) else ():
                    assert inspect.getdoc(part), (member, part)


def test_what_a_newcomer_tries_first_has_an_example() -> None:
    """The very functions: a wrapper would hide its example from doctest."""
    finder = doctest.DocTestFinder()
    for function in (regretless.swap_regret, regretless.stackelberg):
        assert any(tested.examples for tested in finder.find(function)), function
