"""What a run says beside its results: what is left out, and what can hardly be meant."""

import json
from pathlib import Path
from typing import Any

import pytest
import worlds
from desk import Call, Refused

from regretless import load
from regretless.agents import ScriptedAgent
from regretless.market import register

FEW = ("--rounds", "5", "--set", "cohort.growers.count=9")
NATURE = """\
name = "nature"
rounds = 12
adversary = {{ kind = "iid", outcomes = 1 }}
[[cohort]]
name = "makers"
utility = "{utility}"
parameters = {{ {parameters} }}
count = {count}
actions = 6
"""
DATA = """\
name = "heat"
rounds = 10
cohort = [{{ name = "bathers", utility = "newsvendor", count = 5, actions = 4 }}]
[data]
file = "heat.csv"
outcomes = ["heat"]
scale = {{ heat = [0.0, {top}] }}
{clip}
"""


@register.agent("noted")
class Mortal(ScriptedAgent):
    """Two of them leave after their fourth round."""

    age = 0

    def act(self, forecast: Any, context: Any) -> int:
        return 0

    def learn(self, losses: Any, outcome: Any) -> None:
        self.age += 1
        if self.age == 4 and self.number <= 2:
            self.leave()


@pytest.fixture
def played(desk: Path, call: Call) -> Any:
    """Run a scenario; returns what it printed in one line, its errors and its manifest's notes."""

    def play(*words: str) -> tuple[str, str, list[str]]:
        answer = call("run", *words, "--out", "run")
        assert answer.status == 0
        manifest = json.loads((desk / "run/manifest.json").read_text(encoding="utf-8"))
        return " ".join(answer.out.split()), answer.err, manifest["notes"]

    return play


def test_an_outcome_that_is_known_before_its_round_is_warned_of(played: Any) -> None:
    known = 'data.context=["month", "wet_yesterday", "wind"]'
    _, wrong, _ = played("crop-choice", *FEW, "--set", known)
    assert "data.context: everybody knows the outcome 'wind'" in wrong


def nature(folder: Path, utility: str, parameters: str, count: int = 20) -> str:
    text = NATURE.format(utility=utility, parameters=parameters, count=count)
    (folder / "nature.toml").write_text(text, encoding="utf-8")
    return str(folder / "nature.toml")


@pytest.mark.parametrize(
    ("utility", "parameters"),
    [
        ("firm", "cost = [72, 144]"),  # nothing is made
        ("linear", "weights = [[0.2], [0.2], [0.2], [0.2], [0.2], [0.2]]"),  # all alike
    ],
)
def test_parameters_out_of_proportion_are_warned_of(
    utility: str, parameters: str, played: Any, tmp_path: Path
) -> None:
    said, wrong, (note,) = played(nature(tmp_path, utility, parameters), "--quiet")
    assert said == ""
    assert wrong == f"regretless: {note}\n"
    assert all(word in note for word in ("cohort.makers", f"'{utility}'", "parameters"))


def test_studies_and_trainings_show_the_warnings_of_their_runs_once(desk: Path, call: Call) -> None:
    nature(desk, "firm", "cost = [72, 144]")
    grid = "[grid]\nrounds = [3, 4]\n"
    Path("sweep.toml").write_text(f'scenario = "nature.toml"\nseeds = 2\n{grid}', encoding="utf-8")
    leader = ["--set", "adversary={kind='up-then-down', outcomes=1}", "--rounds", "8"]
    for words in (
        ["study", "sweep.toml", "--out", "study"],
        ["train", "nature.toml", *leader, "--algorithm", "es", "--budget", "16"],
    ):
        said = call(*words, "--jobs", "1", "--quiet")
        assert (said.status, said.out) == (0, "")
        assert said.err.startswith("regretless: cohort.makers: with utility 'firm' ")
        assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("cost", "count", "warned"), [("{ choices = [0.1, 100.0] }", 20, 0), ("[72, 144]", 200_000, 1)]
)
def test_one_who_can_use_it_is_enough(cost: str, count: int, warned: int, tmp_path: Path) -> None:
    """Of a big population a sample is looked at."""
    file = nature(tmp_path, "firm", f"cost = {cost}", count=count)
    assert len(load(file).build().warnings) == warned


@pytest.mark.parametrize(
    ("top", "clip", "warned"),
    [(7.9, "", 0), (7.0, "", 1), (7.0, "clip = true", 0)],  # of ten rows: 0, 3, 3
)
def test_many_clipped_rows_are_warned_of(
    top: float, clip: str, warned: int, played: Any, tmp_path: Path
) -> None:
    rows = [0, 1, 2, 3, 4, 5, 6, 7.5, 7.6, 7.7]
    (tmp_path / "heat.csv").write_text("\n".join(["heat", *map(str, rows)]), encoding="utf-8")
    (tmp_path / "heat.toml").write_text(DATA.format(top=top, clip=clip), encoding="utf-8")
    _, wrong, _ = played("heat.toml", "--quiet")
    assert wrong.count("data.scale") == wrong.count("30.0 %") == wrong.count("\n") == warned


def test_agents_who_leave_by_themselves_are_counted(played: Any, tmp_path: Path) -> None:
    file = nature(tmp_path, "firm", "cost = 0.1")
    said, _, _ = played(file, "--set", "cohort.makers.response=noted")
    assert "makers: 2 of 20 agents left by themselves, the first in round 4" in said


@pytest.mark.parametrize("kind", ["iid", "drifting", "cyclic", "switching"])
def test_outcomes_that_are_nearly_a_coin_toss_are_asked_for_twice(
    kind: str, tmp_path: Path, refused: Refused
) -> None:
    file = nature(tmp_path, "firm", "cost = 0.1")
    asked = ["--set", f"adversary.kind={kind}", "--set", "adversary.concentration=0.01"]
    wrong = refused("run", file, *asked, "--out", str(tmp_path / "run"))
    assert "concentration is 0.01" in wrong
    assert "extreme = true" in wrong
    rare = {"kind": kind, "outcomes": 1, "concentration": 0.01, "extreme": True}
    meant = worlds.played(load(file, adversary=rare))
    assert meant.rounds_frame()["y_0"].round(2).isin([0.0, 1.0]).mean() > 0.5


def test_a_nature_without_noise_is_named(played: Any, tmp_path: Path) -> None:
    file = nature(tmp_path, "firm", "cost = 0.1")
    said, _, (note,) = played(file, "--set", "adversary.concentration=0")
    assert "adversary.concentration = 0" in note
    assert note in said
