"""A user's code is handed what is read-only; its faults are one line; mended, a run goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf, RunCommand
from pydantic import Field
from run_files import run_status, table_bytes
from small_scenarios import cohort_table, make_scenario

from regretless.agents import ScriptedAgent
from regretless.agents.learners import TotalLearner
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import blamed
from regretless.market.losses import Linear
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.config.files import read

SCENARIO = """
name = "borders"
rounds = 40
adversary = { kind = "cyclic", outcomes = 2 }
forecaster = { kind = "running-mean" }
cohort = [
  { name = "own", utility = "linear", count = 2, actions = 3 },
  { name = "others", utility = "linear", count = 3, actions = 3 },
]
"""
PARTS = """
import numpy as np
from regretless import Adversary, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.agents.learners import TotalLearner
from regretless.agents.responses import BestResponse
from regretless.market.losses import Linear
from regretless.market.markets import Market
from regretless.market.records import Context, Mixture, Forecast, OutcomeDistribution

class Agent(ScriptedAgent):
    def act(self, forecast, context):
        return 0

class Crowd(ScriptedCrowd):
    def act_many(self, forecasts, contexts):
        return np.zeros(2, dtype=int)

class Learner(TotalLearner):
    name = "own"
    def step(self, losses, actions):
        return self.strategy

class Response(BestResponse):
    name = "own"

@register.adversary("seen")
class Nature(Adversary):
    def __init__(self, outcomes, rng):
        super().__init__(outcomes, rng)
        self.seen = np.zeros(1)

    def context(self, history):
        self.seen += 1  # its own: what it handed on is a copy
        return Context(("seen",), self.seen)

    def commit(self, context, history, announced):
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.25))

class Mirror(Market):
    def clear(self, fundamental, decisions):
        return fundamental

class Model:
    def __init__(self, size):
        self.points = np.full((1, size), 0.5)

    def mixture(self, x):
        return Mixture(self.points, np.ones(1))

    def predict(self, x=None):
        return Forecast(self.mixture(x), 0)

    def update(self, y):
        self.points[0] = y  # its own: what it handed on is a copy

@register.policy("first")
def first(context):
    return 0

def measure(model):
    return 0.0

def utility(population, *, slope=1.0):
    shape = population.count, population.actions, population.goods
    return Linear(population.rng.random(shape), np.zeros(shape[:2])).normalised()
"""
METHOD = """
@register.{kind}("own")
class Own({base}):
    def {name}(self, {given}):
        {line}
        return super().{name}({given})
"""
FUNCTION = """
@register.{kind}("own")
def own({given}):
    {line}
    return {base}({given})
"""
PLACES = {  # what is called: its kind, who does otherwise, and what it is given
    "act": ("agent", "Agent.act", "forecast, context"),
    "learn": ("agent", "Agent.learn", "losses, outcome"),
    "act_many": ("agent", "Crowd.act_many", "forecasts, contexts"),
    "learn_many": ("agent", "Crowd.learn_many", "losses, outcome"),
    "step": ("learner", "Learner.step", "losses, actions"),
    "play": ("response", "Response.play", "predicted"),
    "context": ("adversary", "Nature.context", "history"),
    "commit": ("adversary", "Nature.commit", "context, history, announced"),
    "observe": ("adversary", "Nature.learn", "payoff, observation"),
    "clear": ("market", "Mirror.clear", "fundamental, decisions"),
    "mixture": ("forecaster", "Model.mixture", "x"),
    "update": ("forecaster", "Model.update", "y"),
    "policy": ("policy", "first", "context"),
    "measure": ("measure", "measure", "model"),
    "utility": ("utility", "utility", "population, slope=1.0"),
}
PLAYED = dict.fromkeys(("agent", "learner", "response"), "cohort.own.response=own") | {
    "adversary": "adversary.kind=own",
    "market": 'market={kind="own"}',
    "forecaster": "forecaster.kind=own",
    "policy": 'cohort.own.policies=["own"]',
    "measure": 'measures=["own"]',
    "utility": "cohort.own.utility=own",
}
SEEN = "adversary.kind=seen"  # whose context has a number
SIGNAL = "cohort.own.signal={noise=0.1}", 'cohort.own.policies=["first"]'
WRITERS = [
    ("act", 'context.own["signal"] = 9.0', *SIGNAL),
    ("act_many", 'contexts.own["signal"] = np.full(2, 9.0)', *SIGNAL),
    ("act_many", "contexts.own.clear()", *SIGNAL),
    ("act", "context.values[0] = 9.0", SEEN),
    ("act", "context.values = np.ones(1)", SEEN),
    ("act", "forecast.label[:] = 0.0"),
    ("act", "forecast.statistics[:] = 0.0"),
    ("act", "forecast.mixture.points[:] = 0.0"),
    ("act", "forecast.mixture.mean[:] = 0.0"),
    ("act", "self.loss.weights[:] = 0.0"),
    ("act", "self.model.last_actions(0)[:] = 1"),
    ("learn", "losses[:] = 0.0"),
    ("learn", "losses.sort()"),
    ("learn", "outcome += 1.0"),
    ("act_many", "contexts.values[0] = 9.0", SEEN),
    ("act_many", "forecasts.label[:] = 0.0"),
    ("act_many", "forecasts.statistics[:] = 0.0"),
    ("act_many", "forecasts.which[:] = 0"),
    ("act_many", "self.here[:] = False"),
    ("learn_many", "losses[:] = 0.0"),
    ("step", "losses[:] = 0.0"),
    ("step", "actions[:] = 0"),
    ("play", "predicted[:] = 0.0"),
    ("commit", "context.values[0] = 9.0"),
    ("commit", "announced.blocks[0].points[:] = 0.0"),
    ("commit", "announced.mean_label[:] = 0.0"),
    ("observe", "observation.outcome[:] = 0.0"),
    ("clear", "fundamental[:] = 0.0"),
    ("clear", "decisions[0].actions[:] = 0"),
    ("mixture", "x.values[0] = 9.0", SEEN),
    ("update", "y[:] = 0.0"),
    ("policy", "context.values[0] = 9.0", SEEN),
    ("measure", "model.last_actions(0)[:] = 1"),
    ("measure", 'model.measured(0, "swap_regret")[:] = 0.0'),
    ("utility", "slope *= 2.0", "cohort.own.parameters.slope=[0.5, 0.9]"),
    ("utility", "slope.sort()", "cohort.own.parameters.slope={choices=[0.5, 0.9]}"),
    ("utility", "population.each('slope', slope)[0] = 1.0", "cohort.own.parameters.slope=0.5"),
]
MISFITS = [  # and what the line has to say of it
    ("act", "return [0.5, [0.5]]", ""),
    ("act", 'return np.array([None, "a", 1], dtype=object)', ""),
    ("act", "return 3", "action 3"),
    ("act", "return 3 if self.rng.random() < 0.1 else 0", "action 3"),
    ("act", "return 1.5", "1.5"),
    ("act", "return None", "returned None"),
    ("act", "return [0.5, 0.5]", "3 probabilities"),
    ("act", "return [np.nan, 0.5, 0.5]", "3 probabilities"),
    ("act_many", "return [[0.5, 0.5, 0.0], [1.0]]", ""),
    ("act_many", "return [0]", "2 x 3 probabilities"),
    ("act_many", "return [0, 3]", "2 x 3 probabilities"),
    ("act_many", "return [0.5, 0.5]", "2 x 3 probabilities"),
    ("act_many", "return [[1.0, 1.0, -1.0]] * 2", "2 x 3 probabilities"),
    ("act_many", "return [[0.3] * 3] * 2", "2 x 3 probabilities"),
    ("act_many", 'return "all"', "2 x 3 probabilities"),
    ("step", "return [[1.0], [0.5, 0.5]]", ""),
    ("step", "return losses[0]", r"returned array\(\[0\."),
    ("play", "return [[1.0], [0.5, 0.5]]", ""),
    ("context", "return None", ""),
    ("commit", "return [0.5, 0.5]", "OutcomeDistribution"),
    ("commit", "return OutcomeDistribution.pure([2.0, 0.0])", r"\[0, 1\]"),
    ("commit", "return OutcomeDistribution.pure(np.full(2, history.rounds / 30))", r"\[0, 1\]"),
    ("commit", "return OutcomeDistribution.pure([0.5])", "over 1 outcomes; return one over 2"),
    ("commit", "return OutcomeDistribution(np.eye(2), [0.5, 0.6])", "weights"),
    ("commit", "return OutcomeDistribution(np.eye(2), [np.nan, 0.6])", "at least 0"),
    ("commit", "return OutcomeDistribution(np.eye(2), [-1.0, 2.0])", "at least 0"),
    ("commit", "return OutcomeDistribution(np.eye(2), [1.0])", "one weight"),
    ("commit", "return OutcomeDistribution.pure([np.nan, 0.0])", r"\[0, 1\]"),
    ("clear", "return [0.5, [0.5]]", ""),
    ("mixture", "return 0.5", ""),
    ("policy", 'return "left"', "suggests 'left'; return an action from 0 to 2"),
    ("measure", 'return "much"', "returned 'much', no number"),
    ("measure", "return [1.0, 2.0]", r"returned shape \(2,\)"),
    ("measure", 'return {"nobody": 1.0}', "no cohort 'nobody'"),
    ("utility", "return None", "gave NoneType; return a stacked loss of shape"),
    ("utility", "return Linear(np.zeros((5, 3, 2)))", "stacked loss of shape"),
    ("utility", "return Linear(np.zeros((2, 3, 4)))", "stacked loss of shape"),
    ("utility", "return Linear(np.full((2, 3, 2), np.nan))", "not finite"),
]
FAULTS = [(place, 'raise KeyError("lost")', ": KeyError: ") for place in PLACES]
FAULTS += [("act", "raise StopIteration", ": StopIteration; ")]
FAULTS += [("clear", "1 / 0", ": ZeroDivisionError: ")]
CASES = [
    (*row[:2], f" writes into .*: {re.escape(row[1])}\\); copy it first$", *row[2:])
    for row in WRITERS
]
CASES += MISFITS + FAULTS


def write(working_folder: Path, place: str, line: str, *keys: str) -> tuple[list[str], str]:
    """Write a module in which a line is at a place; return words that play it, and who is named."""
    kind, base, parameters = PLACES[place]
    base, _, name = base.partition(".")
    form = METHOD if name else FUNCTION
    definition = form.format(kind=kind, base=base, name=name, given=parameters, line=line)
    (working_folder / "borders.py").write_text(PARTS + definition, encoding="utf-8")
    (working_folder / "borders.toml").write_text(SCENARIO, encoding="utf-8")
    command = ["run", "borders.toml", "--import", "borders"]
    for key in (PLAYED[kind], *keys):
        command += ["--set", key]
    return command, f"Own.{name}" if name else "own"


@pytest.mark.parametrize("case", CASES)
def test_who_writes_fails_or_does_not_fit_is_named(
    working_folder: Path, refusal_of: RefusalOf, case: tuple[str, ...]
) -> None:
    place, line, says, *keys = case
    command, name = write(working_folder, place, line, *keys)
    complaint = refusal_of(*command)
    assert complaint.startswith("round ") or place == "utility"
    assert re.search(rf"\b{name}\b.*{says}", complaint)
    assert "(borders.py, line " in complaint or case in MISFITS
    assert not (working_folder / "runs/borders").exists()


def test_the_traceback_is_printed_where_it_is_wanted(
    working_folder: Path, run_command: RunCommand
) -> None:
    command, _ = write(working_folder, "learn", 'raise KeyError("lost")')
    *traced, last_line = run_command(*command, "--verbose").err.splitlines()
    assert last_line.startswith("regretless: round 0: Own.learn (borders.py")
    assert traced[0] == "Traceback (most recent call last):"
    assert '    raise KeyError("lost")' in traced


def test_lists_of_the_file_are_copies() -> None:
    """The manifest, and whoever is made next, have what the file says."""

    @register.utility("greedy")
    def greedy(population: Any, *, table: list[list[float]]) -> Linear:
        table[0][0] = 9.0
        return Linear(np.zeros((population.count, 2, 2)))

    @register.policy("greedy")
    class Greedy:
        def __init__(self, feature: str, edges: list[float]) -> None:
            edges.append(9.0)
            self.feature = None

        def __call__(self, context: Any) -> int:
            return 0

    table = {"table": [[0.25, 0.75]]}
    cohort = cohort_table("own", 2, 2, "greedy", parameters=table, policies=["mine"])
    mine = {"kind": "greedy", "feature": "x", "edges": [0.5]}
    scenario = make_scenario(cohort, policy={"mine": mine})
    before = repr(scenario.spec)
    scenario.build()
    assert repr(scenario.spec) == before


Share = Annotated[float, Field(ge=0, le=1)]


def annotated(
    _: int, *, rate: float = 0.1, ends: list[float] | None = None, part: Share = 0
) -> Any:
    return rate, ends, part


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"rate": "fast"}, "own: rate = 'fast': not a number; write it without quotes"),
        ({"rate": True}, "own: rate = true: not a number"),
        ({"rate": {}}, "own: rate = {}: not a number"),
        ({"ends": 0.5}, "own: ends = 0.5: not a list; write its entries in brackets"),
        ({"ends": [0.5, "x"]}, "own: ends = 'x': not a number"),
        ({"part": 2.0}, "own: part = 2.0: must be less than or equal to 1"),
    ],
)
def test_a_parameter_is_what_is_annotated(parameters: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError, match=re.escape(line)):
        construct("own", annotated, 0, **parameters)
    assert construct("own", annotated, 0, rate=1, ends=[0.5, 2]) == (1, [0.5, 2], 0)
    drawn = construct("own", annotated, 0, rate=np.array([0.1, 0.2]))[0]  # for each agent
    assert drawn.tolist() == [0.1, 0.2]


class Brittle(ScriptedAgent):
    """Fails at a round that a file in the current folder names."""

    played = 0

    def act(self, forecast: Any, context: Any) -> int:
        if Path(f"broken-{self.played}").exists():
            raise KeyError(self.played)
        self.played += 1
        return self.played % 3

    def state(self) -> dict[str, Any]:
        return {"played": self.played}

    def restore(self, state: dict[str, Any]) -> None:
        self.played = state["played"]


def test_after_a_late_fault_the_mended_run_resumes(
    working_folder: Path, run_command: RunCommand
) -> None:
    register.agent("brittle")(Brittle)
    command, _ = write(working_folder, "act", "pass", "cohort.own.response=brittle")
    command += ["--rounds", "600", "--out"]
    assert run_command(*command, "whole").status == 0
    Path("broken-550").touch()
    assert run_command(*command, "mended").status == 2
    assert (table_bytes(working_folder / "mended"), run_status(working_folder / "mended")) == (
        {},
        "interrupted",
    )
    Path("broken-550").unlink()
    Path("broken-100").touch()  # a run from the start would fail
    assert run_command(*command, "mended", "--resume").status == 0
    assert table_bytes(working_folder / "mended") == table_bytes(working_folder / "whole")


class Idle(ScriptedAgent):
    """Lacks its method."""


class Deaf(Brittle):
    """Takes too few arguments."""

    def __init__(self, loss: Any) -> None: ...


class Secretive(Brittle):
    """Offers a state that no file can keep."""

    def state(self) -> dict[str, Any]:
        return {"seen": {1, 2}}


class Nobody:
    """Is no adversary."""

    def __init__(self, outcomes: int, rng: Any) -> None: ...


class Negative(TotalLearner):
    """Plays what is no probability."""

    name = "own"
    row = (-0.5, 1.0, 0.5)

    def step(self, losses: Any, actions: Any) -> Any:
        return np.tile(self.row, (len(losses), 1))


class Excessive(Negative):
    """Plays more than there is."""

    row = 0.5, 0.5, 0.5


@pytest.mark.parametrize(
    ("kind", "part", "says"),
    [
        ("agent", Idle, "round 0: class Idle has no act(forecast, context); write it"),
        ("learner", Negative, "round 1: Negative.play returned array([-0.5"),
        ("learner", Excessive, "round 1: Excessive.play returned array([0.5, 0.5, 0.5"),
        ("agent", Deaf, "agent 'own' takes too few arguments; take the 2 that every one"),
        ("response", list, "'own' of cohort.own has no name, hears_label"),
        ("adversary", Nobody, "adversary 'own' is no Adversary; let it subclass"),
        (  # told before the first round, not at the first checkpoint
            *("agent", Secretive),
            "state(): players.cohort own.agents.0.seen = {1, 2} cannot be kept in a file; give arr",
        ),
    ],
)
def test_what_is_no_part_is_one_line(
    working_folder: Path, refusal_of: RefusalOf, kind: str, part: Any, says: str
) -> None:
    getattr(register, kind)("own")(part)
    write(working_folder, "act", "pass")
    assert says in refusal_of("run", "borders.toml", "--set", PLAYED[kind], "--rounds", "600")
    assert not (working_folder / "runs/borders").exists()


@pytest.mark.parametrize(
    ("content", "exit_status", "says"),
    [
        ("import not_installed_anywhere", 2, "module needs it: install it"),
        ('raise SystemExit("bye")', 2, "--import module failed: S"),
        ('class Odd(BaseException): ...\nraise Odd("so")', 2, "--import module failed: Odd"),
        ("", 2, "run from the folder"),  # there is none
        ("raise KeyboardInterrupt", 130, ""),
    ],
)
def test_whatever_a_module_raises_is_one_line(
    working_folder: Path, run_command: RunCommand, content: str, exit_status: int, says: str
) -> None:
    write(working_folder, "act", "pass")
    if content:
        (working_folder / "module.py").write_text(content, encoding="utf-8")
    answer = run_command("run", "borders.toml", "--import", "module")
    assert (answer.status, answer.err.count("\n")) == (exit_status, 1)
    assert says in answer.err


def test_what_a_response_may_name_is_named_once() -> None:
    for registry, taken in ((register.agent, "hedge"), (register.learner, "quantal")):
        with pytest.raises(UserError, match=f"{registry.kind} '{taken}': there is a .*; choose"):
            registry(taken)(Path)


def error_of(function: Callable[[Any], Any]) -> Exception:
    """Return what a call with nonsense raises, as if this file had no part in it."""
    with pytest.raises((AttributeError, TypeError, ImportError)) as raised:
        function(None)
    error = raised.value
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)


@pytest.mark.parametrize("function", [read, json.loads, pd.read_parquet])
def test_faults_of_packages_are_not_the_user_s(function: Callable[[Any], Any]) -> None:
    """Of ours, of Python's and of others'."""
    assert blamed(error_of(function)) is None


def test_a_fault_of_the_user_s_call_is_the_user_s() -> None:
    assert blamed(error_of(lambda _: read(None)))  # type: ignore[arg-type]


def test_a_method_that_takes_other_arguments_is_named_when_it_is_registered() -> None:
    with pytest.raises(UserError, match=r"Eager.learn is called with \(losses, outcome\)"):

        @register.agent("eager")
        class Eager(ScriptedAgent):
            """Asks for its action, too."""

            def learn(self, action: int, losses: Any, outcome: Any) -> None:  # type: ignore[override]
                """Learn nothing."""

    assert "eager" not in register.agent
