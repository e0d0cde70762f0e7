"""Examples in docstrings are so: every module that has one is run by doctest."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import regretless

EXAMPLE = re.compile(r">>> (?!.*\+SKIP)")
HOME = Path(regretless.__file__).parent
SHOWN = [
    ".".join(path.relative_to(HOME.parent).with_suffix("").parts).removesuffix(".__init__")
    for room in ("market", "forecaster", "agents", "scenarios")
    for path in sorted((HOME / room).rglob("*.py"))
    if EXAMPLE.search(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("name", SHOWN)
def test_examples_print_what_they_show(name: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried > 0
    assert failed == 0


def test_what_a_newcomer_tries_first_has_an_example() -> None:
    """The very functions: a wrapper would hide its example from doctest."""
    finder = doctest.DocTestFinder()
    for thing in (regretless.swap_regret, regretless.stackelberg):
        assert any(found.examples for found in finder.find(thing)), thing
