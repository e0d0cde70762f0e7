"""A run whose agents are shared out gives the bytes of a run on one machine, whoever dies."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from run_files import (
    FinishedRun,
    assert_same_run,
    kill_run_after_checkpoint,
    run_status,
    run_to_folder,
    table_bytes,
)
from servers import two_worker_cluster
from small_scenarios import TomlTable, built_in_names, cohort_table, read_scenario

from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.logs import journal
from regretless.scenarios import distributed, executor
from regretless.scenarios.distributed import (
    HERE,
    Answer,
    Conductor,
    DaskCrew,
    Task,
    attempt,
    conductor_of,
)
from regretless.scenarios.executor import Cluster
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.directory import Failure


def world(
    name: str, rounds: int, cohorts: list[TomlTable], *, outcomes: int = 2, **more: Any
) -> TomlTable:
    """Return a scenario; ``adversary`` is "switching" by default."""
    chooses = {"kind": more.pop("adversary", "switching"), "outcomes": outcomes}
    world = {"name": name, "rounds": rounds, "seed": 5, "cohort": cohorts, "adversary": chooses}
    return world | more


def rhos(*choices: float) -> TomlTable:
    return {"rho": {"choices": list(choices)}}


QUANTAL: TomlTable = {"response": "quantal", "eta": 8.0}
SURELY: TomlTable = {
    "response": "certainty-equivalent",
    "parameters": {"p": {"choices": [2.0, 3.0]}},
}
FULL = ["external", "swap", "decision_swap"]
BRIEF: TomlTable = {"seed": 8, "log_agents": 20, "windows": {"every": 40}}
PANEL: TomlTable = {"forecaster": {"models": ["panel"]}}
EVERY: TomlTable = {"windows": {"every": 40}}

PLAIN = world(
    "plain",
    150,
    [cohort_table("farmers", 12, 3, measures=FULL)],
    adversary="drifting",
    forecaster={"kind": "running-mean"},
)
MANY_RULES = [
    cohort_table("farmers", 7, ["wheat", "maize", "oats"], "ces", parameters=rhos(0.5, 0.8))
    | {"measures": [*FULL, "omniprediction", "contextual_swap"]},
    cohort_table("naive", 11, **QUANTAL),
    cohort_table("alone", 1),
    cohort_table("drawing", 9, 3, response="private"),
]
MIXED = world("mixed", 90, MANY_RULES, **EVERY)
SAMPLED = ["rounds=90", "log_agents=6", "windows={starts=[0, 30, 70]}", "forecaster.intervals=true"]
ASKED = PLAIN | {  # in every round, by the market and by an adversary that is told
    "adversary": {"kind": "cma", "rows": 3, "length": 5, "outcomes": 2},
    "market": {"feedback": "same-round"},
    "cohort": [cohort_table("farmers", 12, 3, measures=FULL, **QUANTAL)],
}
COMPARED = MIXED | PANEL | {"name": "compared", "seed": 6}
COUNTED = world(
    "counted",
    90,
    [
        cohort_table("crowd", 3_000_000, 3, types=6, **QUANTAL),
        cohort_table("listed", 13, 3, "ces", parameters={"rho": [0.3, 0.9]}),
        cohort_table("sure", 700, 3, types=4, multiplicity=True),
    ],
    **BRIEF,
)
LED = COUNTED | PANEL | {"name": "led"}
LEARNING = world(
    "learning",
    90,
    [cohort_table("listeners", 5)]
    + [
        cohort_table(rule, 10, 3, "ces", types=3, response=rule, parameters=rhos(0.5, 0.8, 1.0))
        | {"measures": FULL[:2], "settings": {"eta": 40.0} if "quantal" in rule else {}}
        for rule in built_in_names(register.learner)
    ],
    **BRIEF,
)
MOVING = world(
    "moving",
    110,
    [
        cohort_table("always", 7, measures=[*FULL, "exploitability"]),
        cohort_table("late", 9, enters=30, exits=90, gamma=0.2),
        cohort_table("passing", 14, 3, entry_rate=0.02, exit_rate=0.05),
        cohort_table("unsure", 6, 3, enters=50, **QUANTAL),
        cohort_table("doubtful", 9, 3, enters=20, entry_rate=0.03, exit_rate=0.2, **QUANTAL),
        cohort_table("drawing", 8, entry_rate=0.02, exit_rate=0.1, response="private"),
        cohort_table("learners", 6, 3, enters=15, exits=100, response="exp3", measures=FULL[:2]),
    ],
    **BRIEF,
)
NETWORK = {"graph": "small-world", "neighbours": 2, "rewiring": 0.3, "subscribers": [1, 9, 10]}
SURE = cohort_table("sure", 12, 2, "lp-target", **SURELY)
HEARSAY = MIXED | {"name": "hearsay", "network": NETWORK, "cohort": [*MANY_RULES, SURE]}
AT_ONCE, UP_THEN_DOWN = "market.feedback=same-round", "adversary.kind=up-then-down"
PAID = "adversary.weights=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]"


@pytest.fixture(autouse=True)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a chunk of the logs, ask and keep checkpoints of shares every few rounds."""
    if "crashes" in request.keywords:  # other processes do not
        return
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 32)
    monkeypatch.setattr(distributed, "BLOCK", 12)
    monkeypatch.setattr(distributed, "AT_ONCE", 30)
    monkeypatch.setattr(distributed, "SELDOM", 0.0)


class Here:
    """A crew in this process, some of whose workers die: before a task is done, or after it."""

    def __init__(self, seed: int = 0, deaths: int = 0) -> None:
        self._rng, self.deaths = stream(seed, "deaths"), deaths
        self._given: list[Task] = []

    def give(self, task: Task) -> None:
        self._given.append(task)

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Do what was given first; a worker that dies leaves nothing but its checkpoints."""
        task = self._given.pop(0)
        dies, late = self.deaths > 0 and self._rng.random() < 0.4, self._rng.random() < 0.5
        answer = attempt(task) if late or not dies else None
        if dies:
            self.deaths -= 1
            HERE.pop((task.recipe.run, task.recipe.place), None)
        return task.recipe.place, None if dies else answer

    def close(self) -> None:
        """Hold nothing."""


def shared(
    text: TomlTable | str, out: Path, shares: int, *keys: str, crew: Any = None, **options: Any
) -> list[str]:
    """Share a run out; return what is said of it."""
    loaded, given, said = read_scenario(text, *keys), Options(out, **options), list[str]()
    run(loaded, given, player=Conductor(loaded, crew or Here(), given, shares, warn=said.append))
    return said


@pytest.mark.parametrize(
    ("text", "keys", "shares"),
    [
        (MIXED, [], 3),
        (PLAIN, [], 30),  # more than there are agents
        *[(text, [], 2) for text in (COMPARED, HEARSAY, "keys/certainty")],
        *[(text, [], 5) for text in (COUNTED, MOVING)],
        ("keys/windows", SAMPLED, 2),
        ("keys/cover-cluster", ["cohort.linear.count=1300", "rounds=60"], 5),
        (LEARNING, [], 3),
        # asked in every round
        (MIXED, [AT_ONCE, "rounds=50"], 3),
        (PLAIN, ["market.feedback=lagged", "rounds=50"], 2),
        (PLAIN, [UP_THEN_DOWN, PAID, "rounds=50"], 3),
        (COMPARED, [AT_ONCE, "rounds=40"], 2),
        (LED, [UP_THEN_DOWN, PAID, "rounds=40"], 3),
        (COUNTED, [AT_ONCE, "rounds=40"], 2),
        (LEARNING, [AT_ONCE, "rounds=40"], 3),
        (MOVING, [AT_ONCE], 2),
        (HEARSAY, [AT_ONCE, "rounds=40"], 3),
        *[(ASKED, [], of) for of in (1, 2)],
        *[(name, ["rounds=40"], 2) for name in ("oligopoly", "bank-run")],
    ],
    ids=lambda given: given["name"] if isinstance(given, dict) else None,
)
def test_shares_give_the_bytes_of_the_whole(
    text: TomlTable | str, keys: list[str], shares: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    shared(text, tmp_path / "logs", shares, *keys, log_every=7)
    assert_same_run(tmp_path / "logs", finished_run(text, *keys, log_every=7))


# Who dies.


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        *[(PLAIN, 0), (ASKED, 4), (COMPARED, 6), (COUNTED, 6), (LEARNING, 7)],
        *[(MOVING, 10), (HEARSAY, 10)],
    ],
)
def test_the_dead_are_replaced(
    text: TomlTable, seed: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    crew = Here(seed, deaths=6)
    shared(text, tmp_path / "logs", 3, crew=crew)
    assert crew.deaths == 0
    assert_same_run(tmp_path / "logs", finished_run(text))


# The conductor stops.


def stopped(text: TomlTable, out: Path, at: int) -> None:
    loaded, options = read_scenario(text), Options(out)

    def press(played: int) -> None:
        if played >= at:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(loaded, options, player=Conductor(loaded, Here(), options, 2), progress=press)


@pytest.mark.parametrize(
    ("text", "at", "shares"), [(PLAIN, 70, 2), (ASKED, 70, 3), (MOVING, 12, 2), (MOVING, 60, 3)]
)
def test_ctrl_c_leaves_a_run_that_goes_on(
    text: TomlTable, at: int, shares: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    out = tmp_path / "logs"
    stopped(text, out, at=at)
    played = len(pd.read_parquet(out / "rounds.parquet"))
    assert run_status(out) == "interrupted"
    assert at <= played < read_scenario(text).peopled.rounds
    agents = pd.read_parquet(out / "agents.parquet")
    alone = read_scenario(text).build()
    alone.run(played)
    pd.testing.assert_frame_equal(agents, alone.agents_frame(), check_exact=True)
    shared(text, out, shares, resume=True)  # with as many shares as before, or others
    assert_same_run(out, finished_run(text))


def test_what_is_lost_of_a_record_is_said(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    stopped(PLAIN, out, at=70)
    with pytest.raises(UserError, match=r"was begun with --workers or --scheduler; give them"):
        run(read_scenario(PLAIN), Options(out, resume=True))
    record = out / ".partial" / "record.jsonl"
    record.write_bytes(record.read_bytes().replace(b"0.1", b"0.2", 1))
    with pytest.raises(UserError, match=r"lacks a part of the record; start again"):
        shared(PLAIN, out, 2, resume=True)
    shared(PLAIN, tmp_path / "again", 2)
    assert run_status(tmp_path / "again") == "complete"


def test_a_run_on_one_machine_is_not_continued_in_shares(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    with pytest.raises(KeyboardInterrupt):
        run_to_folder(read_scenario(PLAIN), out, stop=70)
    with pytest.raises(UserError, match=r"was begun without --workers or --scheduler; drop them"):
        shared(PLAIN, out, 2, resume=True)


def strange(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a checkpoint without a part, with strange parts, and as it is."""
    yield {name: part for name, part in tree.items() if name != "players"}
    yield tree | {"players": 7}
    yield mapped(tree, lambda array: array[..., None])
    yield mapped(tree, lambda array: array.astype("U9"))
    yield mapped(tree, lambda array: array[:1])
    yield tree


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        return {key: mapped(value, change) for key, value in tree.items()}
    return change(tree) if isinstance(tree, np.ndarray) and tree.ndim else tree


def test_strange_checkpoints_are_passed_over(tmp_path: Path, finished_run: FinishedRun) -> None:
    out = tmp_path / "logs"
    stopped(PLAIN, out, at=70)
    stopped(PLAIN, tmp_path / "later", at=100)
    file = Path(".partial", "shard-2-0.npz")
    ahead = checkpoint.load(tmp_path / "later" / file)
    for number, tree in enumerate([ahead, *strange(checkpoint.load(out / file)), None]):
        again = shutil.copytree(out, tmp_path / f"{number}")
        if tree is None:  # it is cut
            (again / file).write_bytes((out / file).read_bytes()[:100])
        else:
            checkpoint.save(again / file, tree)
        shared(PLAIN, again, 2, resume=True)
        assert_same_run(again, finished_run(PLAIN))


# What is played in one place.

BESIDE = PLAIN | {"cohort": [*PLAIN["cohort"], cohort_table("own", 4, response="watchful")]}


class Watchful(ScriptedAgent):
    """Looks at the regret of an agent."""

    whose = 0  # 0: its own

    def act(self, forecast: Any, context: Any) -> int:
        regret = self.model.view(self.whose or self.number).swap_regret
        return int(not regret > 0.01)


@pytest.mark.parametrize("keys", [[], [AT_ONCE]])
def test_ones_own_agents_play_beside_who_is_shared_out(keys: list[str], tmp_path: Path) -> None:
    register.agent("watchful")(Watchful)
    run(read_scenario(BESIDE, *keys), Options(tmp_path / "alone"))
    (line,) = shared(BESIDE, tmp_path / "shared", 3, *keys)
    assert_same_run(tmp_path / "shared", tmp_path / "alone")
    says = "cohort.own: response 'watchful' does not answer agent by agent; played"
    assert line.startswith(says)


def test_nobody_sees_what_agents_do_who_are_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register.agent("watchful")(Watchful)
    monkeypatch.setattr(Watchful, "whose", 1)
    says = r"round 0: Watchful.act: cohort\.farmers is played by workers, .*; run without --work"
    with pytest.raises(UserError, match=says):
        shared(BESIDE, tmp_path / "logs", 2)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (["market.kind=portfolio", "rounds=10"], "market: Portfolio clears agent by agent; played"),
        (["cohort.farmers.response=ensemble", "rounds=50"], "cohort.farmers: response 'ensemble'"),
        (
            ["adversary.kind=myopic", PAID, "rounds=50"],
            "adversary: it sees 'play', which takes all",
        ),
    ],
)
def test_what_cannot_be_shared_out_is_played_here_and_said(
    keys: list[str], says: str, tmp_path: Path, finished_run: FinishedRun
) -> None:
    (line,) = shared(PLAIN, tmp_path / "logs", 2, *keys)
    assert line.startswith(says)
    assert_same_run(tmp_path / "logs", finished_run(PLAIN, *keys))


def no_weather(x: Any) -> int:
    raise RuntimeError("no\nweather")


def test_a_fault_in_a_share_is_one_line(tmp_path: Path) -> None:
    register.policy("odd")(no_weather)
    with pytest.raises(UserError, match=r"share 1 of 2: .*no_weather.*RuntimeError: no weather"):
        shared(PLAIN, tmp_path / "logs", 2, 'cohort.farmers.policies=["odd"]')
    assert not (tmp_path / "logs").exists()


# The same in processes of a Dask cluster, who are killed: workers, scheduler, conductor.


class Mortal(DaskCrew):
    """Processes of which so many are killed, some answers apart, while they have work to do."""

    def __init__(self, cluster: Cluster, deaths: int, every: int) -> None:
        super().__init__(cluster)
        self.deaths, self._every, self._answers, self._next = deaths, every, 0, 1
        self._rng = stream(deaths, "deaths")

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Kill somebody if it is time, early or late in what it does, and wait for an answer."""
        self._answers += 1
        if self.deaths and self._answers >= self._next:
            busy = [task.place for task in self._cluster.pending.values()]
            home = self._homes.get(busy[int(self._rng.integers(len(busy)))])
            ask, homes = self._cluster.client.run, [home] * bool(home)
            time.sleep(self._rng.choice([0.0, 0.02, 0.5]))
            for pid in ask(os.getpid, workers=homes, on_error="ignore").values():
                os.kill(pid, signal.SIGKILL)
                self.deaths -= 1
                self._next = self._answers + self._every  # at the next answer where it was dead
        return super().hear()


def with_deaths(
    text: TomlTable, out: Path, rounds: int, deaths: int, every: int, **more: Any
) -> None:
    loaded, options = read_scenario(text, f"rounds={rounds}"), Options(out, **more)
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Cluster(2)) as cluster,
        closing(Mortal(cluster, deaths, every)) as crew,
    ):
        patch.setattr(distributed, "DEATHS", 100)  # Dask ends some more that are long in starting
        run(loaded, options, player=Conductor(loaded, crew, options, 2))
        assert crew.deaths == 0


@pytest.mark.crashes
@pytest.mark.parametrize(
    ("text", "rounds", "every"),
    [(PLAIN, 3000, 12), (ASKED, 600, 300), (LEARNING, 2000, 10), (MOVING, 2000, 10)],
)
def test_twenty_processes_that_are_killed(
    text: TomlTable, rounds: int, every: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    with_deaths(text, tmp_path / "logs", rounds, 5, every)
    assert_same_run(tmp_path / "logs", finished_run(text, f"rounds={rounds}"))


class StoppingCrew(DaskCrew):
    """Processes of which one is stopped, once, while it has work to do."""

    stopped_process = 0

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Stop the worker that has the first share, then wait for an answer."""
        if not self.stopped_process and 0 in self._homes:
            answers = self._cluster.client.run(os.getpid, workers=[self._homes[0]])
            (self.stopped_process,) = answers.values()
            os.kill(self.stopped_process, signal.SIGSTOP)
        return super().hear()


@pytest.mark.crashes
@pytest.mark.parametrize("text", [PLAIN, ASKED])
def test_the_shares_of_a_stopped_worker_are_given_to_another(
    text: TomlTable, tmp_path: Path, finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "SILENT", 3.0)
    warnings: list[str] = []
    scenario, options = read_scenario(text, "rounds=400"), Options(tmp_path / "logs")
    with (
        closing(Cluster(2, warn=warnings.append)) as cluster,
        closing(StoppingCrew(cluster)) as crew,
    ):
        run(scenario, options, player=Conductor(scenario, crew, options, 2))
    name = f"worker process {crew.stopped_process}"
    assert warnings == [f"{name} has shown no life for 3 s; its work is given to another"]
    assert_same_run(tmp_path / "logs", finished_run(text, "rounds=400"))


@pytest.mark.crashes
@pytest.mark.parametrize(("text", "rounds"), [(ASKED, 700), (PLAIN, 4000)])
def test_a_killed_conductor_is_resumed_though_a_worker_dies(
    text: TomlTable, rounds: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    (tmp_path / "own.toml").write_text(tomli_w.dumps(text), encoding="utf-8")
    kill_run_after_checkpoint(tmp_path, "own.toml", "--set", f"rounds={rounds}", "--workers", "2")
    with_deaths(text, tmp_path / "logs", rounds, 1, 10, resume=True)
    assert_same_run(tmp_path / "logs", finished_run(text, f"rounds={rounds}"))


@pytest.mark.crashes
def test_a_cluster_loses_a_worker_then_its_scheduler(
    tmp_path: Path, finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 64)
    loaded, out = read_scenario(ASKED, "rounds=100"), tmp_path / "logs"

    def run_to_folder(address: str, progress: Callable[[int], Any], **more: Any) -> None:
        options = Options(out, **more)
        with conductor_of(loaded, options, scheduler=address) as player:
            run(loaded, options, player=player, progress=progress)

    with two_worker_cluster() as cluster:
        pid = next(iter(cluster.workers.values())).process.pid
        left = {20: lambda: os.kill(pid, signal.SIGKILL), 80: cluster.close}

        def strike(played: int) -> None:
            for at in [at for at in left if played >= at]:
                left.pop(at)()

        with pytest.raises(UserError, match=r"--scheduler \S+ was lost; start it again and use -"):
            run_to_folder(cluster.scheduler_address, strike)
    assert run_status(out) == "interrupted"
    with two_worker_cluster() as again:
        run_to_folder(again.scheduler_address, lambda _: None, resume=True)
    assert table_bytes(out) == table_bytes(finished_run(ASKED, "rounds=100"))
