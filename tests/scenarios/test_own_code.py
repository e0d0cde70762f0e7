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
from desk import Call, Refused
from pydantic import Field
from written import tables

from regretless import load
from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import blamed
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.config.files import read
from regretless.scenarios.imports import import_modules

SCENARIO = """
name = "borders"
rounds = 40
adversary = {{ kind = "{adversary}", outcomes = 2 }}
forecaster = {{ kind = "{forecaster}" }}
{extra}
[[cohort]]
name = "own"
utility = "{utility}"
count = 2
actions = 3
response = "{response}"
{keys}

[[cohort]]
name = "others"
utility = "linear"
count = 3
actions = 3
response = "best-response"
"""
USUAL = {
    "adversary": "cyclic",
    "forecaster": "running-mean",
    "response": "best-response",
    "utility": "linear",
    "extra": "",
    "keys": "",
}
MODULE = """
import numpy as np
from regretless import Adversary, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.agents.learners import TotalLearner
from regretless.agents.responses import BestResponse
from regretless.market.losses import Linear
from regretless.market.markets import Market
from regretless.market.records import Context, Mixture, Forecast, OutcomeDistribution

@register.agent("own-agent")
class OwnAgent(ScriptedAgent):
    def act(self, forecast, context):
        {act}
        return 0

    def learn(self, losses, outcome):
        {learn}

@register.agent("own-crowd")
class OwnCrowd(ScriptedCrowd):
    def act_many(self, forecasts, contexts):
        {act_many}
        return np.zeros(2, dtype=int)

    def learn_many(self, losses, outcome):
        {learn_many}

@register.learner("own-learner")
class OwnLearner(TotalLearner):
    name = "own-learner"

    def step(self, losses, actions):
        {step}
        return self.strategy

@register.response("own-response")
class OwnResponse(BestResponse):
    name = "own-response"

    def play(self, predicted):
        {play}
        return super().play(predicted)

@register.adversary("own-adversary")
class OwnAdversary(Adversary):
    def __init__(self, outcomes, rng):
        super().__init__(outcomes, rng)
        self.seen = np.zeros(1)

    def context(self, history):
        {context}
        self.seen += 1  # its own: what it handed on is a copy
        return Context(("seen",), self.seen)

    def commit(self, context, history, announced):
        {commit}
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.25))

    def learn(self, payoff, observation):
        {observe}

@register.market("own-market")
class OwnMarket(Market):
    def clear(self, fundamental, decisions):
        {clear}
        return fundamental

@register.forecaster("own-model")
class OwnModel:
    def __init__(self, size):
        self.points = np.full((1, size), 0.5)

    def mixture(self, x):
        {mixture}
        return Mixture(self.points, np.ones(1))

    def predict(self, x=None):
        return Forecast(self.mixture(x), 0)

    def update(self, y):
        {update}
        self.points[0] = y  # its own: what it handed on is a copy

@register.policy("own-policy")
def own_policy(context):
    {policy}
    return 0

@register.policy("own-steps")
class OwnSteps:
    def __init__(self, feature, edges):
        {steps}
        self.feature = None

    def __call__(self, context):
        return 0

@register.utility("own-utility")
def own_utility(population, *, slope=1.0, table=None):
    {utility}
    shape = population.count, population.actions, population.goods
    return Linear(population.rng.random(shape), np.zeros(shape[:2])).normalised()

@register.measure("own-measure")
def own_measure(model):
    {measure}
    return 0.0
"""
PLACES = {  # by hole: what the scenario plays, and how the line names it
    "act": ({"response": "own-agent"}, "OwnAgent.act"),
    "learn": ({"response": "own-agent"}, "OwnAgent.learn"),
    "act_many": ({"response": "own-crowd"}, "OwnCrowd.act_many"),
    "learn_many": ({"response": "own-crowd"}, "OwnCrowd.learn_many"),
    "step": ({"response": "own-learner"}, "OwnLearner.step"),
    "play": ({"response": "own-response"}, "OwnResponse.play"),
    "context": ({"adversary": "own-adversary"}, "OwnAdversary.context"),
    "commit": ({"adversary": "own-adversary"}, "OwnAdversary.commit"),
    "observe": ({"adversary": "own-adversary"}, "OwnAdversary.learn"),
    "clear": ({"extra": 'market = { kind = "own-market" }'}, "OwnMarket.clear"),
    "mixture": ({"forecaster": "own-model"}, "OwnModel.mixture"),
    "update": ({"forecaster": "own-model"}, "OwnModel.update"),
    "policy": ({"keys": 'policies = ["own-policy"]'}, "own_policy"),
    "measure": ({"extra": 'measures = ["own-measure"]'}, "own_measure"),
}
STEPS = '[policy.mine]\nkind = "own-steps"\nfeature = "x"\nedges = [0.5]'
MADE = {  # before the first round; those who are made are handed what the file says
    "utility": ({"utility": "own-utility"}, ""),
    "steps": ({"keys": 'policies = ["mine"]', "extra": STEPS}, ""),
}
HOLES = PLACES | MADE
SEEN = {"adversary": "own-adversary"}  # whose context has a number
SIGNAL = {"keys": 'signal = { noise = 0.1 }\npolicies = ["own-policy"]'}
WRITERS = [
    ("act", 'context.own["signal"] = 9.0', SIGNAL),
    ("act_many", 'contexts.own["signal"] = np.full(2, 9.0)', SIGNAL),
    ("act_many", "contexts.own.clear()", SIGNAL),
    ("act", "context.values[0] = 9.0", SEEN),
    ("act", "context.values = np.ones(1)", SEEN),
    ("act", "forecast.label[:] = 0.0", {}),
    ("act", "forecast.statistics[:] = 0.0", {}),
    ("act", "forecast.mixture.points[:] = 0.0", {}),
    ("act", "forecast.mixture.mean[:] = 0.0", {}),
    ("act", "self.loss.weights[:] = 0.0", {}),
    ("act", "self.model.last_actions(0)[:] = 1", {}),
    ("learn", "losses[:] = 0.0", {}),
    ("learn", "losses.sort()", {}),
    ("learn", "outcome += 1.0", {}),
    ("act_many", "contexts.values[0] = 9.0", SEEN),
    ("act_many", "forecasts.label[:] = 0.0", {}),
    ("act_many", "forecasts.statistics[:] = 0.0", {}),
    ("act_many", "forecasts.which[:] = 0", {}),
    ("act_many", "self.here[:] = False", {}),
    ("learn_many", "losses[:] = 0.0", {}),
    ("step", "losses[:] = 0.0", {}),
    ("step", "actions[:] = 0", {}),
    ("play", "predicted[:] = 0.0", {}),
    ("commit", "context.values[0] = 9.0", {}),
    ("commit", "announced.blocks[0].points[:] = 0.0", {}),
    ("commit", "announced.mean_label[:] = 0.0", {}),
    ("observe", "observation.outcome[:] = 0.0", {}),
    ("clear", "fundamental[:] = 0.0", {}),
    ("clear", "decisions[0].actions[:] = 0", {}),
    ("mixture", "x.values[0] = 9.0", SEEN),
    ("update", "y[:] = 0.0", {}),
    ("policy", "context.values[0] = 9.0", SEEN),
    ("measure", "model.last_actions(0)[:] = 1", {}),
    ("measure", 'model.measured(0, "swap_regret")[:] = 0.0', {}),
]
MISFITS = [  # and what the line has to say of it
    ("act", "return [0.5, [0.5]]", ""),
    ("act", 'return np.array([None, "a", 1], dtype=object)', ""),
    ("act", "return 3", "action 3"),
    ("act", "return 1.5", "1.5"),
    ("act", "return None", "returned None"),
    ("act", "return [0.5, 0.5]", "3 probabilities"),
    ("act", "return [np.nan, 0.5, 0.5]", "3 probabilities"),
    ("act_many", "return [[0.5, 0.5, 0.0], [1.0]]", ""),
    ("step", "return [[1.0], [0.5, 0.5]]", ""),
    ("step", "return losses[0]", ".step returned array([0."),
    ("play", "return [[1.0], [0.5, 0.5]]", ""),
    ("context", "return None", ""),
    ("commit", "return [0.5, 0.5]", "OutcomeDistribution"),
    ("commit", "return OutcomeDistribution.pure([2.0, 0.0])", "[0, 1]"),
    ("commit", "return OutcomeDistribution.pure([0.5])", "over 1 outcomes; return one over 2"),
    ("commit", "return OutcomeDistribution(np.eye(2), [0.5, 0.6])", "weights"),
    ("clear", "return [0.5, [0.5]]", ""),
    ("mixture", "return 0.5", ""),
]
LATE = [  # in a round after a checkpoint
    ("act", "return 3 if self.rng.random() < 0.01 else 0", "action 3"),
    ("commit", "return OutcomeDistribution.pure(np.full(2, history.rounds / 600))", "[0, 1]"),
]


def write(desk: Path, hole: str, line: str, **also: str) -> str:
    """Write a module in which a method does something, and a scenario; return the name in lines."""
    filled = dict.fromkeys(HOLES, "pass") | {hole: line}
    (desk / "borders.py").write_text(MODULE.format(**filled), encoding="utf-8")
    played, name = HOLES[hole]
    text = SCENARIO.format(**USUAL | also | played)
    (desk / "borders.toml").write_text(text, encoding="utf-8")
    return name


WORDS = ("run", "borders.toml", "--import", "borders")


FAULTS = [(hole, 'raise KeyError("lost")', "): KeyError: ") for hole in PLACES]
FAULTS += [("act", "raise StopIteration", "): StopIteration; ")]
FAULTS += [("clear", "1 / 0", "): ZeroDivisionError: ")]
WRITES = " writes into what it was given (borders.py"
CASES = [(hole, line, WRITES, f": {line}); copy it first\n", also) for hole, line, also in WRITERS]
CASES += [(hole, line, " (borders.py, line ", says, {}) for hole, line, says in FAULTS]
CASES += [(hole, line, "", says, {}) for hole, line, says in MISFITS]


@pytest.mark.parametrize("case", CASES)
def test_who_writes_fails_or_does_not_fit_is_named(
    desk: Path, refused: Refused, case: tuple[Any, ...]
) -> None:
    hole, line, what, says, also = case
    name = write(desk, hole, line, **also)
    told = refused(*WORDS) + "\n"
    assert told.startswith(f"round 0: {name}{what}")
    assert says in told
    assert not (desk / "runs/borders").exists()


def test_a_policy_that_suggests_no_action_is_named(desk: Path, refused: Refused) -> None:
    write(desk, "policy", 'return "left"')
    assert "'own-policy' suggests 'left'; return an action from 0 to 2" in refused(*WORDS)


@pytest.mark.parametrize(("hole", "line", "says"), LATE)
def test_whoever_breaks_the_rules_late_leaves_no_table(
    desk: Path, refused: Refused, hole: str, line: str, says: str
) -> None:
    name = write(desk, hole, line)
    told = refused(*WORDS, "--rounds", "1500", "--log-every", "500")
    assert name in told
    assert says in told
    assert not list(desk.glob("runs/borders/*.parquet"))
    manifest = desk / "runs/borders/manifest.json"
    assert not manifest.exists() or '"complete"' not in manifest.read_text(encoding="utf-8")


LOSSES = ["None", "np.zeros((5, 3, 2))", "np.zeros((2, 3, 4))", "np.full((2, 3, 2), np.nan)"]


@pytest.mark.parametrize("made", LOSSES)
def test_losses_that_do_not_fit_are_one_line(desk: Path, refused: Refused, made: str) -> None:
    write(desk, "utility", f"return Linear({made})" if "np" in made else "return None")
    told = refused(*WORDS)
    assert "own_utility" in told or "own-utility" in told
    assert "cohort.own" in told
    assert not (desk / "runs/borders").exists()


def test_the_traceback_is_printed_where_it_is_wanted(desk: Path, call: Call) -> None:
    write(desk, "learn", 'raise KeyError("lost")')
    *traced, told = call(*WORDS, "--verbose").err.splitlines()
    assert told.startswith("regretless: round 0: OwnAgent.learn (borders.py")
    assert traced[0] == "Traceback (most recent call last):"
    assert '    raise KeyError("lost")' in traced


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("slope *= 2.0", "parameters = { slope = [0.5, 0.9] }"),
        ("slope.sort()", "parameters = { slope = { choices = [0.5, 0.9] } }"),
        ("population.each('slope', slope)[0] = 1.0", "parameters = { slope = 0.5 }"),
    ],
)
def test_a_utility_that_writes_into_its_parameters_is_named(
    desk: Path, refused: Refused, line: str, keys: str
) -> None:
    write(desk, "utility", line, keys=keys)
    told = refused(*WORDS)
    assert told.startswith("cohort.own.parameters of utility 'own-utility': own_utility")
    assert "own_utility writes into what it was given (borders.py" in told
    assert told.endswith(f": {line}); copy it first")


@pytest.mark.parametrize(
    ("hole", "line", "keys"),
    [
        ("utility", "table[0][0] = 9.0", "parameters = { table = [[0.25, 0.75]] }"),
        ("steps", "edges.append(9.0)", ""),
    ],
)
def test_lists_of_the_file_are_copies(desk: Path, hole: str, line: str, keys: str) -> None:
    """The manifest, and whoever is made next, have what the file says."""
    write(desk, hole, line, **{"keys": keys} if keys else {})
    import_modules(["borders"])
    given = load(str(desk / "borders.toml"))
    before = repr(given.spec)
    given.build()
    assert repr(given.spec) == before


Share = Annotated[float, Field(ge=0, le=1)]
Ends = list[float] | None


def annotated(_: int, *, rate: float = 0.1, ends: Ends = None, part: Share = 0) -> Any:
    return rate, ends, part


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"rate": "fast"}, "own: rate = 'fast': not a number; write it without quotes"),
        ({"rate": True}, "own: rate = true: not a number"),
        ({"rate": {}}, "own: rate = {}: not a number"),
        ({"ends": 0.5}, "own: ends = 0.5: not a list; write its entries in brackets"),
        ({"ends": [0.5, "x"]}, "own: ends = 'x': not a number"),
        ({"part": 2.0}, "own: part = 2.0: must be less than or equal to 1"),
    ],
)
def test_a_parameter_is_what_is_annotated(given: dict[str, Any], line: str) -> None:
    with pytest.raises(UserError, match=re.escape(line)):
        construct("own", annotated, 0, **given)
    assert construct("own", annotated, 0, rate=1, ends=[0.5, 2]) == (1, [0.5, 2], 0)
    drawn = construct("own", annotated, 0, rate=np.array([0.1, 0.2]))[0]  # for each agent
    assert drawn.tolist() == [0.1, 0.2]


OTHERS = """
from pathlib import Path
from regretless import register
from regretless.agents import ScriptedAgent

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

@register.agent("idle")
class Idle(ScriptedAgent):
    pass

@register.agent("deaf")
class Deaf(ScriptedAgent):
    def __init__(self, loss):
        pass

@register.agent("secretive")
class Secretive(Idle):
    def state(self):
        return {"seen": {1, 2}}

    def restore(self, state):
        pass

@register.response("mute")
def mute():
    return None

@register.adversary("nobody")
class Nobody:
    def __init__(self, outcomes, rng):
        self.outcomes = outcomes
"""
SET = ("--import", "others", "--set")


@pytest.fixture
def others(desk: Path) -> Path:
    """Work beside a module of parts that are wrong as they stand, or where a file tells them to."""
    write(desk, "step", "return losses - 1")
    (desk / "others.py").write_text(OTHERS, encoding="utf-8")
    return desk


def test_after_a_late_fault_the_mended_run_resumes(others: Path, call: Call) -> None:
    words = (*WORDS, *SET, "cohort.own.response=brittle", "--rounds", "600", "--out")
    assert call(*words, "whole").status == 0
    (others / "broken-550").touch()
    assert call(*words, "mended").status == 2
    (others / "broken-550").unlink()
    (others / "broken-100").touch()  # a run from the start would fail
    assert call(*words, "mended", "--resume").status == 0
    assert tables(others / "mended") == tables(others / "whole")


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("own.response=idle", "round 0: class Idle has no act(forecast, context); write it"),
        ("own.response=own-learner", "round 1: OwnLearner.play returned array([-"),
        ("own.response=deaf", "agent 'deaf' takes too few arguments; take the 2 that every one"),
        ("own.response=mute", "'mute' of cohort.own has no name, hears_label"),
        ("adversary.kind=nobody", "adversary 'nobody' is no Adversary; let it subclass"),
        (  # told before the first round, not at the first checkpoint
            "own.response=secretive",
            "state(): players.cohort own.agents.0.seen = {1, 2} cannot be kept in a file; give arr",
        ),
    ],
)
def test_what_is_no_part_is_one_line(others: Path, refused: Refused, part: str, says: str) -> None:
    part = part.replace("own.", "cohort.own.")
    assert says in refused(*WORDS, *SET, part, "--rounds", "600")
    assert not (others / "runs/borders").exists()


MODULES = {  # what it holds, and what is said of it
    "needy": ("import not_installed_anywhere", "needy needs it: install it"),
    "bye": ('raise SystemExit("bye")', "--import bye failed: S"),
    "odd": ('class Odd(BaseException): ...\nraise Odd("so")', "--import odd failed: Odd"),
    "gone": ("", "run from the folder"),
}


@pytest.mark.parametrize("module", MODULES)
def test_whatever_a_module_raises_is_one_line(desk: Path, refused: Refused, module: str) -> None:
    write(desk, "act", "pass")
    content, says = MODULES[module]
    if content:
        (desk / f"{module}.py").write_text(content, encoding="utf-8")
    assert says in refused("run", "borders.toml", "--import", module)


def test_an_interrupt_within_a_module_is_an_interruption(desk: Path, call: Call) -> None:
    write(desk, "act", "pass")
    (desk / "pressed.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    answer = call("run", "borders.toml", "--import", "pressed")
    assert (answer.status, answer.err.count("\n")) == (130, 1)


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
