"""A run whose agents are shared out gives the bytes of a run on one machine, whoever dies."""

import os
import shutil
import signal
import time
from collections.abc import Callable
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
from regretless.market.model import MarketModel
from regretless.scenarios.distributed import conductor, share
from regretless.scenarios.distributed.conductor import Conductor, conductor_of
from regretless.scenarios.distributed.crew import DaskCrew
from regretless.scenarios.distributed.tasks import SHARES, Answer, Task, attempt
from regretless.scenarios.executor import cluster as clusters
from regretless.scenarios.executor.cluster import Cluster
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.directory import Failure

pytestmark = pytest.mark.usefixtures("interrupts_as_at_a_terminal")


def scenario_table(
    name: str,
    rounds: int,
    cohorts: list[TomlTable],
    *,
    adversary: str = "switching",
    **keys: Any,
) -> TomlTable:
    """Return a scenario with two outcomes."""
    table: TomlTable = {"name": name, "rounds": rounds, "seed": 5, "cohort": cohorts}
    return table | {"adversary": {"kind": adversary, "outcomes": 2}} | keys


def rho_choices(*choices: float) -> TomlTable:
    """Return parameters of CES losses that are drawn from a few."""
    return {"rho": {"choices": list(choices)}}


QUANTAL: TomlTable = {"response": "quantal", "eta": 8.0}
CERTAINTY_EQUIVALENT: TomlTable = {
    "response": "certainty-equivalent",
    "parameters": {"p": {"choices": [2.0, 3.0]}},
}
REGRETS = ["external", "swap", "decision_swap"]
BRIEF_LOGS: TomlTable = {"seed": 8, "log_agents": 20, "windows": {"every": 40}}
WITH_MODELS: TomlTable = {"forecaster": {"models": ["panel"]}}
WITH_WINDOWS: TomlTable = {"windows": {"every": 40}}

PLAIN = scenario_table(
    "plain",
    150,
    [cohort_table("farmers", 12, 3, measures=REGRETS)],
    adversary="drifting",
    forecaster={"kind": "running-mean"},
)
MANY_RULES = [
    cohort_table("farmers", 7, ["wheat", "maize", "oats"], "ces", parameters=rho_choices(0.5, 0.8))
    | {"measures": [*REGRETS, "omniprediction", "contextual_swap"]},
    cohort_table("naive", 11, **QUANTAL),
    cohort_table("alone", 1),
    cohort_table("drawing", 9, 3, response="private"),
]
MIXED = scenario_table("mixed", 90, MANY_RULES, **WITH_WINDOWS)
SAMPLED = ["rounds=90", "log_agents=6", "windows={starts=[0, 30, 70]}", "forecaster.intervals=true"]
ASKED = PLAIN | {  # in every round, by the market and by an adversary that is told
    "adversary": {"kind": "cma", "rows": 3, "length": 5, "outcomes": 2},
    "market": {"feedback": "same-round"},
    "cohort": [cohort_table("farmers", 12, 3, measures=REGRETS, **QUANTAL)],
}
COMPARED = MIXED | WITH_MODELS | {"name": "compared", "seed": 6}
COUNTED = scenario_table(
    "counted",
    90,
    [
        cohort_table("crowd", 3_000_000, 3, types=6, **QUANTAL),
        cohort_table("listed", 13, 3, "ces", parameters={"rho": [0.3, 0.9]}),
        cohort_table("sure", 700, 3, types=4, multiplicity=True),
    ],
    **BRIEF_LOGS,
)
LED = COUNTED | WITH_MODELS | {"name": "led"}
NEEDED_SETTINGS = {"quantal-fictitious-play": {"eta": 40.0}, "discrete-choice": {"beta": 20.0}}
LEARNING = scenario_table(
    "learning",
    90,
    [cohort_table("listeners", 5)]
    + [
        cohort_table(
            rule, 10, 3, "ces", types=3, response=rule, parameters=rho_choices(0.5, 0.8, 1.0)
        )
        | {"measures": REGRETS[:2], "settings": NEEDED_SETTINGS.get(rule, {})}
        for rule in built_in_names(register.learner)
    ],
    **BRIEF_LOGS,
)
MOVING = scenario_table(
    "moving",
    110,
    [
        cohort_table("always", 7, measures=[*REGRETS, "exploitability"]),
        cohort_table("late", 9, enters=30, exits=90, gamma=0.2),
        cohort_table("passing", 14, 3, entry_rate=0.02, exit_rate=0.05),
        cohort_table("unsure", 6, 3, enters=50, **QUANTAL),
        cohort_table("doubtful", 9, 3, enters=20, entry_rate=0.03, exit_rate=0.2, **QUANTAL),
        cohort_table("drawing", 8, entry_rate=0.02, exit_rate=0.1, response="private"),
        cohort_table("learners", 6, 3, enters=15, exits=100, response="exp3", measures=REGRETS[:2]),
    ],
    **BRIEF_LOGS,
)
NETWORK = {"graph": "small-world", "neighbours": 2, "rewiring": 0.3, "subscribers": [1, 9, 10]}
SURE = cohort_table("sure", 12, 2, "lp-target", **CERTAINTY_EQUIVALENT)
HEARSAY = MIXED | {"name": "hearsay", "network": NETWORK, "cohort": [*MANY_RULES, SURE]}
SAME_ROUND = "market.feedback=same-round"
UP_THEN_DOWN = "adversary.kind=up-then-down"
PAID = "adversary.weights=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]"


def set_small_chunks_and_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a chunk of the logs, ask and keep checkpoints of shares every few rounds."""
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 32)
    monkeypatch.setattr(conductor, "BLOCK_ROUNDS", 12)
    monkeypatch.setattr(conductor, "MAX_LINES_PER_TASK", 30)
    monkeypatch.setattr(share, "CHECKPOINT_PAUSE", 0.0)


@pytest.fixture(autouse=True)
def small_chunks_and_shares(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set small chunks where all is played in this process."""
    if "crashes" not in request.keywords:
        set_small_chunks_and_shares(monkeypatch)


class LocalCrew:
    """A crew in this process, some of whose workers die: before a task is done, or after it."""

    def __init__(self, seed: int = 0, deaths: int = 0) -> None:
        self.deaths = deaths
        self._rng = stream(seed, "deaths")
        self._tasks: list[Task] = []

    def give(self, task: Task) -> None:
        """Take a task."""
        self._tasks.append(task)

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Do what was given first; a worker that dies leaves nothing but its checkpoints."""
        task = self._tasks.pop(0)
        index = task.recipe.index
        dies = self.deaths > 0 and self._rng.random() < 0.4
        dies_late = self._rng.random() < 0.5
        if not dies:
            return index, attempt(task)
        if dies_late:
            attempt(task)
        self.deaths -= 1
        SHARES.pop((task.recipe.run, index), None)
        return index, None

    def close(self) -> None:
        """Hold nothing."""


def run_shared_out(
    source: TomlTable | str,
    out: Path,
    shares: int,
    *keys: str,
    crew: Any = None,
    **options: Any,
) -> list[str]:
    """Share a run out; return what is said of it."""
    scenario = read_scenario(source, *keys)
    run_options = Options(out, **options)
    warnings: list[str] = []
    player = Conductor(scenario, crew or LocalCrew(), run_options, shares, warn=warnings.append)
    run(scenario, run_options, player=player)
    return warnings


@pytest.mark.parametrize(
    ("text", "keys", "shares"),
    [
        (MIXED, [], 3),
        (PLAIN, [], 30),  # more than there are agents
        (COMPARED, [], 2),
        (HEARSAY, [], 2),
        ("keys/certainty", [], 2),
        (COUNTED, [], 5),
        (MOVING, [], 5),
        ("keys/windows", SAMPLED, 2),
        ("keys/cover-cluster", ["cohort.linear.count=1300", "rounds=60"], 5),
        (LEARNING, [], 3),
        # asked in every round
        (MIXED, [SAME_ROUND, "rounds=50"], 3),
        (PLAIN, ["market.feedback=lagged", "rounds=50"], 2),
        (PLAIN, [UP_THEN_DOWN, PAID, "rounds=50"], 3),
        (COMPARED, [SAME_ROUND, "rounds=40"], 2),
        (LED, [UP_THEN_DOWN, PAID, "rounds=40"], 3),
        (COUNTED, [SAME_ROUND, "rounds=40"], 2),
        (LEARNING, [SAME_ROUND, "rounds=40"], 3),
        (MOVING, [SAME_ROUND], 2),
        (HEARSAY, [SAME_ROUND, "rounds=40"], 3),
        (ASKED, [], 1),
        (ASKED, [], 2),
        ("oligopoly", ["rounds=40"], 2),
        ("bank-run", ["rounds=40"], 2),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
def test_shares_give_the_bytes_of_the_whole(
    text: TomlTable | str, keys: list[str], shares: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    run_shared_out(text, tmp_path / "logs", shares, *keys, log_every=7)
    assert_same_run(tmp_path / "logs", finished_run(text, *keys, log_every=7))


# Who dies.


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        (PLAIN, 0),
        (ASKED, 4),
        (COMPARED, 6),
        (COUNTED, 6),
        (LEARNING, 7),
        (MOVING, 10),
        (HEARSAY, 10),
    ],
)
def test_shares_of_workers_that_die_are_played_by_others(
    text: TomlTable, seed: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    crew = LocalCrew(seed, deaths=6)
    run_shared_out(text, tmp_path / "logs", 3, crew=crew)
    assert crew.deaths == 0
    assert_same_run(tmp_path / "logs", finished_run(text))


# The conductor stops.


def run_until_interrupted(text: TomlTable, out: Path, interrupt_round: int) -> None:
    """Share a run out to two, and press Ctrl-C once so many rounds are played."""
    scenario = read_scenario(text)
    options = Options(out)

    def interrupt(played: int) -> None:
        if played >= interrupt_round:
            signal.raise_signal(signal.SIGINT)

    player = Conductor(scenario, LocalCrew(), options, 2)
    with pytest.raises(KeyboardInterrupt):
        run(scenario, options, player=player, progress=interrupt)


@pytest.mark.parametrize(
    ("text", "at", "shares"), [(PLAIN, 70, 2), (ASKED, 70, 3), (MOVING, 12, 2), (MOVING, 60, 3)]
)
def test_ctrl_c_leaves_a_run_that_goes_on(
    text: TomlTable, at: int, shares: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    """With as many shares as before, or others."""
    out = tmp_path / "logs"
    run_until_interrupted(text, out, interrupt_round=at)
    n_played = len(pd.read_parquet(out / "rounds.parquet"))
    assert run_status(out) == "interrupted"
    assert at <= n_played < read_scenario(text).resolved.rounds
    agents = pd.read_parquet(out / "agents.parquet")
    model = read_scenario(text).build()
    model.run(n_played)
    pd.testing.assert_frame_equal(agents, model.agents_frame(), check_exact=True)
    run_shared_out(text, out, shares, resume=True)
    assert_same_run(out, finished_run(text))


def test_a_run_in_shares_is_not_continued_on_one_machine(tmp_path: Path) -> None:
    run_until_interrupted(PLAIN, tmp_path / "logs", interrupt_round=70)
    with pytest.raises(UserError, match=r"was begun with --workers or --scheduler; give them"):
        run(read_scenario(PLAIN), Options(tmp_path / "logs", resume=True))


def test_what_is_lost_of_a_record_is_said(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    run_until_interrupted(PLAIN, out, interrupt_round=70)
    record = out / ".partial" / "record.jsonl"
    record.write_bytes(record.read_bytes().replace(b"0.1", b"0.2", 1))
    with pytest.raises(UserError, match=r"lacks a part of the record; start again"):
        run_shared_out(PLAIN, out, 2, resume=True)
    run_shared_out(PLAIN, tmp_path / "again", 2)
    assert run_status(tmp_path / "again") == "complete"


def test_a_run_on_one_machine_is_not_continued_in_shares(tmp_path: Path) -> None:
    out = tmp_path / "logs"
    with pytest.raises(KeyboardInterrupt):
        run_to_folder(read_scenario(PLAIN), out, stop=70)
    with pytest.raises(UserError, match=r"was begun without --workers or --scheduler; drop them"):
        run_shared_out(PLAIN, out, 2, resume=True)


def with_changed_arrays(tree: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tree with each of its arrays changed, but for single numbers."""
    if isinstance(tree, dict):
        return {key: with_changed_arrays(value, change) for key, value in tree.items()}
    is_array = isinstance(tree, np.ndarray) and tree.ndim > 0
    return change(tree) if is_array else tree


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "without a part": lambda tree: {name: tree[name] for name in tree if name != "players"},
    "a strange part": lambda tree: tree | {"players": 7},
    "more axes": lambda tree: with_changed_arrays(tree, lambda array: array[..., None]),
    "words": lambda tree: with_changed_arrays(tree, lambda array: array.astype("U9")),
    "fewer rows": lambda tree: with_changed_arrays(tree, lambda array: array[:1]),
    "as it is": lambda tree: tree,
}
SHARE_CHECKPOINT = Path(".partial", "shard-2-0.npz")


@pytest.fixture(scope="module")
def interrupted_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run in two shares that was interrupted, and that no test changes."""
    folder = tmp_path_factory.mktemp("interrupted") / "logs"
    with pytest.MonkeyPatch.context() as patch:
        set_small_chunks_and_shares(patch)
        run_until_interrupted(PLAIN, folder, interrupt_round=70)
    return folder


@pytest.mark.parametrize("name", CHANGES)
def test_a_strange_checkpoint_of_a_share_is_passed_over(
    name: str, interrupted_run: Path, tmp_path: Path, finished_run: FinishedRun
) -> None:
    out = shutil.copytree(interrupted_run, tmp_path / "logs")
    tree = checkpoint.load(out / SHARE_CHECKPOINT)
    checkpoint.save(out / SHARE_CHECKPOINT, CHANGES[name](tree))
    run_shared_out(PLAIN, out, 2, resume=True)
    assert_same_run(out, finished_run(PLAIN))


def test_a_checkpoint_of_a_share_that_is_ahead_is_passed_over(
    interrupted_run: Path, tmp_path: Path, finished_run: FinishedRun
) -> None:
    run_until_interrupted(PLAIN, tmp_path / "later", interrupt_round=100)
    out = shutil.copytree(interrupted_run, tmp_path / "logs")
    shutil.copy(tmp_path / "later" / SHARE_CHECKPOINT, out / SHARE_CHECKPOINT)
    run_shared_out(PLAIN, out, 2, resume=True)
    assert_same_run(out, finished_run(PLAIN))


def test_a_torn_checkpoint_of_a_share_is_passed_over(
    interrupted_run: Path, tmp_path: Path, finished_run: FinishedRun
) -> None:
    out = shutil.copytree(interrupted_run, tmp_path / "logs")
    (out / SHARE_CHECKPOINT).write_bytes((out / SHARE_CHECKPOINT).read_bytes()[:100])
    run_shared_out(PLAIN, out, 2, resume=True)
    assert_same_run(out, finished_run(PLAIN))


# What is played in one place.

WITH_OWN_AGENTS = PLAIN | {
    "cohort": [*PLAIN["cohort"], cohort_table("own", 4, response="watchful")]
}


class Watchful(ScriptedAgent):
    """Looks at the regret of an agent, by default at its own."""

    watched_agent: int | None = None

    def act(self, forecast: Any, context: Any) -> int:
        regret = self.model.view(self.watched_agent or self.number).swap_regret
        return int(not regret > 0.01)


@pytest.mark.parametrize("keys", [[], [SAME_ROUND]])
def test_one_s_own_agents_play_beside_who_is_shared_out(keys: list[str], tmp_path: Path) -> None:
    register.agent("watchful")(Watchful)
    run(read_scenario(WITH_OWN_AGENTS, *keys), Options(tmp_path / "alone"))
    (line,) = run_shared_out(WITH_OWN_AGENTS, tmp_path / "shared", 3, *keys)
    assert_same_run(tmp_path / "shared", tmp_path / "alone")
    assert line.startswith("cohort.own: response 'watchful' does not answer agent by agent; played")


def test_nobody_sees_what_agents_do_who_are_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register.agent("watchful")(Watchful)
    monkeypatch.setattr(Watchful, "watched_agent", 1)
    refusal = r"round 0: Watchful.act: cohort\.farmers is played by workers, .*; run without --work"
    with pytest.raises(UserError, match=refusal):
        run_shared_out(WITH_OWN_AGENTS, tmp_path / "logs", 2)


@pytest.mark.parametrize(("keys", "deaths"), [([], 5), ([SAME_ROUND], 0)])
def test_one_s_own_agents_read_the_regrets_of_those_who_are_elsewhere(
    keys: list[str], deaths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The regret log is as without workers when agents decide and when they learn."""
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 20)
    logs_read: list[pd.DataFrame] = []

    class Reading(Watchful):
        """Reads the regrets of all, and does the first action if they are large."""

        def act(self, forecast: Any, context: Any) -> int:
            logs_read.append(self.model.regret_frame())
            return int(not logs_read[-1]["swap_regret"].mean() > 0.01)

        def learn(self, losses: Any, outcome: Any) -> None:
            logs_read.append(self.model.regret_frame())

    register.agent("watchful")(Reading)
    table = WITH_OWN_AGENTS | {"rounds": 45}
    run(read_scenario(table, *keys), Options(tmp_path / "alone"))
    logs_read_alone = list(logs_read)
    logs_read.clear()
    run_shared_out(table, tmp_path / "shared", 3, *keys, crew=LocalCrew(deaths=deaths))
    assert len(logs_read) == len(logs_read_alone) > 2 * 45
    for read, expected in zip(logs_read, logs_read_alone, strict=True):
        pd.testing.assert_frame_equal(read, expected, check_exact=True)
    assert_same_run(tmp_path / "shared", tmp_path / "alone")


def read_bounds(model: MarketModel) -> object:
    return model.bounds_frame()


def read_windows(model: MarketModel) -> object:
    return model.windows_frame()


def read_exploitability(model: MarketModel) -> object:
    return model.measured(0, "exploitability")


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("read_table", [read_bounds, read_windows, read_exploitability])
def test_nobody_reads_a_table_that_lacks_agents_who_are_elsewhere(
    read_table: Callable[[MarketModel], object], tmp_path: Path
) -> None:
    @register.agent("reading")
    class Reading(ScriptedAgent):
        """Looks at a table of the run so far."""

        def act(self, forecast: Any, context: Any) -> int:
            read_table(self.model)
            return 0

    farmers = cohort_table("farmers", 12, 3, measures=[*REGRETS, "exploitability"])
    reader = cohort_table("own", 1, response="reading")
    table = PLAIN | WITH_WINDOWS | {"cohort": [farmers, reader]}
    run(read_scenario(table, "rounds=2"), Options(tmp_path / "alone"))
    refusal = r"round 0: Reading.act: cohort\.farmers is played by workers, .*; run without --work"
    with pytest.raises(UserError, match=refusal):
        run_shared_out(table, tmp_path / "shared", 2)


@pytest.mark.parametrize(
    ("keys", "beginning"),
    [
        (["market.kind=portfolio", "rounds=10"], "market: Portfolio clears agent by agent; played"),
        (["cohort.farmers.response=ensemble", "rounds=50"], "cohort.farmers: response 'ensemble'"),
        (
            ["adversary.kind=myopic", PAID, "rounds=50"],
            "adversary: it sees 'play', which takes all",
        ),
        (
            [
                "cohort.farmers.count=2",
                "cohort.farmers.response=q-learning",
                "cohort.farmers.settings={memory=1, sees='all'}",
                'cohort.farmers.measures=["external"]',
                "rounds=50",
            ],
            "cohort.farmers: it watches what all agents play; played",
        ),
    ],
)
def test_what_cannot_be_shared_out_is_played_here_and_said(
    keys: list[str], beginning: str, tmp_path: Path, finished_run: FinishedRun
) -> None:
    (line,) = run_shared_out(PLAIN, tmp_path / "logs", 2, *keys)
    assert line.startswith(beginning)
    assert_same_run(tmp_path / "logs", finished_run(PLAIN, *keys))


def no_weather(x: Any) -> int:
    raise RuntimeError("no\nweather")


def test_a_fault_in_a_share_is_one_line(tmp_path: Path) -> None:
    register.policy("odd")(no_weather)
    with pytest.raises(UserError, match=r"share 1 of 2: .*no_weather.*RuntimeError: no weather"):
        run_shared_out(PLAIN, tmp_path / "logs", 2, 'cohort.farmers.policies=["odd"]')
    assert not (tmp_path / "logs").exists()


# The same in processes of a Dask cluster, who are killed: workers, scheduler, conductor.


class MortalCrew(DaskCrew):
    """Processes of which so many are killed, some answers apart, while they have work to do."""

    def __init__(self, cluster: Cluster, deaths: int, every: int) -> None:
        super().__init__(cluster)
        self.deaths = deaths
        self._answers_between = every
        self._answers = 0
        self._answer_of_next_death = 1
        self._rng = stream(deaths, "deaths")

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Kill somebody if it is time, early or late in what it does, and wait for an answer."""
        self._answers += 1
        if self.deaths and self._answers >= self._answer_of_next_death:
            self._kill_a_busy_worker()
        return super().hear()

    def _kill_a_busy_worker(self) -> None:
        """Kill the worker of a share; where it is dead already, try again at the next answer."""
        places = [task.place for task in self._cluster.pending.values()]
        address = self._homes.get(places[int(self._rng.integers(len(places)))])
        addresses = [] if address is None else [address]
        time.sleep(self._rng.choice([0.0, 0.02, 0.5]))
        pids = self._cluster.client.run(os.getpid, workers=addresses, on_error="ignore")
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
            self.deaths -= 1
            self._answer_of_next_death = self._answers + self._answers_between


def run_with_deaths(
    text: TomlTable, out: Path, rounds: int, deaths: int, every: int, **options: Any
) -> None:
    """Share a run out to two processes, of which so many are killed."""
    scenario = read_scenario(text, f"rounds={rounds}")
    run_options = Options(out, **options)
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(Cluster(2)) as cluster,
        closing(MortalCrew(cluster, deaths, every)) as crew,
    ):
        patch.setattr(
            conductor, "MAX_DEATHS_IN_A_ROW", 100
        )  # Dask ends some more that are long in starting
        run(scenario, run_options, player=Conductor(scenario, crew, run_options, 2))
        assert crew.deaths == 0


@pytest.mark.crashes
@pytest.mark.parametrize(
    ("text", "rounds", "every"),
    [(PLAIN, 3000, 12), (ASKED, 600, 300), (LEARNING, 2000, 10), (MOVING, 2000, 10)],
)
def test_processes_that_are_killed_are_replaced(
    text: TomlTable, rounds: int, every: int, tmp_path: Path, finished_run: FinishedRun
) -> None:
    run_with_deaths(text, tmp_path / "logs", rounds, 5, every)
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
    monkeypatch.setattr(clusters, "SILENT_SECONDS", 3.0)
    warnings: list[str] = []
    scenario = read_scenario(text, "rounds=400")
    options = Options(tmp_path / "logs")
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
    run_with_deaths(text, tmp_path / "logs", rounds, 1, 10, resume=True)
    assert_same_run(tmp_path / "logs", finished_run(text, f"rounds={rounds}"))


@pytest.mark.crashes
def test_a_cluster_loses_a_worker_then_its_scheduler(
    tmp_path: Path, finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 64)
    scenario = read_scenario(ASKED, "rounds=100")
    out = tmp_path / "logs"

    def play(address: str, progress: Callable[[int], Any], **keys: Any) -> None:
        options = Options(out, **keys)
        with conductor_of(scenario, options, scheduler=address) as player:
            run(scenario, options, player=player, progress=progress)

    with two_worker_cluster() as cluster:
        pid = next(iter(cluster.workers.values())).process.pid
        strike_at = {20: lambda: os.kill(pid, signal.SIGKILL), 80: cluster.close}

        def strike(played: int) -> None:
            for at in [at for at in strike_at if played >= at]:
                strike_at.pop(at)()

        with pytest.raises(UserError, match=r"--scheduler \S+ was lost; start it again and use -"):
            play(cluster.scheduler_address, strike)
    assert run_status(out) == "interrupted"
    with two_worker_cluster() as other_cluster:
        play(other_cluster.scheduler_address, lambda _: None, resume=True)
    assert table_bytes(out) == table_bytes(finished_run(ASKED, "rounds=100"))
