"""A fault in the user's own code is one line that says where; a run goes on when it is mended."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from desk import Call, Refused
from written import tables

from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import blamed
from regretless.scenarios.config.files import read

SCENARIO = """
name = "tiny"
rounds = 600
adversary = { kind = "cyclic", outcomes = 2 }
forecaster = { kind = "running-mean" }
cohort = [{ name = "own", utility = "linear", count = 2, actions = 3, response = "brittle" }]
"""
MODULE = """
from pathlib import Path
from regretless.agents import ScriptedAgent
from regretless.market import register

@register.agent("brittle")
class Brittle(ScriptedAgent):
    played = 0

    def act(self, forecast, context):
        if Path(f"broken-{self.played}").exists():
            return forecast.nothing
        self.played += 1
        return self.played % 3

    def state(self):
        return {"played": self.played}

    def restore(self, state):
        self.played = state["played"]
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a scenario and an agent that fails where a file tells it to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "brittle_agents", raising=False)
    (tmp_path / "tiny.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "brittle_agents.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


WORDS = ("run", "tiny.toml", "--import", "brittle_agents")


def test_after_a_late_fault_the_mended_run_resumes(desk: Path, call: Call) -> None:
    assert call(*WORDS, "--out", "whole").status == 0
    (desk / "broken-550").touch()
    assert call(*WORDS, "--out", "mended").status == 2
    (desk / "broken-550").unlink()
    (desk / "broken-100").touch()  # a run from the start would fail
    assert call(*WORDS, "--out", "mended", "--resume").status == 0
    assert tables(desk / "mended") == tables(desk / "whole")


PARTS = """
from regretless.agents import ScriptedAgent
from regretless.agents.learners import TotalLearner
from regretless.market import register

@register.agent("idle")
class Idle(ScriptedAgent):
    pass

@register.agent("deaf")
class Deaf(ScriptedAgent):
    def __init__(self, loss):
        pass

@register.learner("lawless")
class Lawless(TotalLearner):
    name = "lawless"

    def step(self, losses, actions):
        return losses - 1
"""
MISFITS = {
    "idle": "round 0: class Idle has no act(forecast, context); write it",
    "lawless": "round 1: Lawless.play returned array([-",
    "deaf": "agent 'deaf' takes too few arguments; take the 2 that every one is given",
}


@pytest.fixture
def parts(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work beside a module of parts that do not fit."""
    monkeypatch.delitem(sys.modules, "misfits", raising=False)
    (desk / "misfits.py").write_text(PARTS, encoding="utf-8")
    return desk


@pytest.mark.parametrize("name", MISFITS)
def test_a_part_that_does_not_fit_is_one_line(parts: Path, refused: Refused, name: str) -> None:
    line = refused(*WORDS, "--import", "misfits", "--set", f"cohort.own.response={name}")
    assert line.startswith(MISFITS[name])
    assert not (parts / "runs/tiny").exists()


def test_a_module_that_lacks_another_says_which(desk: Path, refused: Refused) -> None:
    (desk / "needy.py").write_text("import not_installed_anywhere", encoding="utf-8")
    for module, cure in (("needy", "needy needs it: install it"), ("gone", "run from the folder")):
        assert cure in refused(*WORDS, "--import", module)


def test_what_a_response_may_name_is_named_once() -> None:
    for registry, taken in ((register.agent, "hedge"), (register.learner, "quantal")):
        with pytest.raises(UserError, match=f"{registry.kind} '{taken}': there is a .*; choose"):
            registry(taken)(Path)


def fault(call: Callable[[Any], Any]) -> Exception:
    """Return what a call with nonsense raises, as if this file had no part in it."""
    with pytest.raises((AttributeError, TypeError, ImportError)) as raised:
        call(None)
    error = raised.value
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_next is not None
    return error.with_traceback(error.__traceback__.tb_next)


def test_faults_of_the_packages_are_not_the_users() -> None:
    for call in (read, json.loads, pd.read_parquet):  # ours, Python's and others'
        assert blamed(fault(call)) is None
    assert blamed(fault(lambda _: read(None)))  # type: ignore[arg-type]


def test_a_method_that_takes_other_arguments_is_named_when_it_is_registered() -> None:
    with pytest.raises(UserError, match=r"Eager.learn is called with \(losses, outcome\)"):

        @register.agent("eager")
        class Eager(ScriptedAgent):
            """Asks for its action, too."""

            def learn(self, action: int, losses: Any, outcome: Any) -> None:  # type: ignore[override]
                """Learn nothing."""

    assert "eager" not in register.agent
