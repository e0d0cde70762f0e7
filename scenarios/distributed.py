"""One run on many processors or machines: its agents are shared out, the game is not.

The conductor plays the game with those who cannot be shared out; the seats of all others are empty
there, and their cohorts stand-ins that nobody can look into. What agents hear goes on record. A
share of them, told the record from the first line on, does to the last bit what its agents do in
the whole game. Shares are asked one question at a time: after every block of rounds, which they
play while the conductor plays the next, for the rows of the logs; where a market answers to agents,
or the adversary is told what they do, in every round for what theirs come to, which adds up
(``market.numerics.exact_sum``). In the end the whole market takes over what became of all agents.

A worker builds the whole market, cuts its share out and keeps it between tasks. If it dies, the
next one goes on from the share's checkpoint, if it sees the run's folder, or from the first line.
A conductor that dies leaves there the record, the rows that were put together and its checkpoint,
from which ``--resume`` goes on. No share's checkpoint is ahead of that.
"""

import importlib
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from regretless.agents.responses import BUILT_IN
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import in_round, is_ours
from regretless.market.game.adversary_view import sight_of, summed
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.protocols import Adversary, Cohort, Forecaster
from regretless.market.game.round import Block, Game, decide
from regretless.market.game.seats import PUBLIC, Seat
from regretless.market.markets.aggregate import Settling
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.executor import DIED, Cluster
from regretless.scenarios.imports import import_modules
from regretless.scenarios.logs.run_directory import RunDirectory
from regretless.scenarios.logs.shared_record import Record, read_drawn_round
from regretless.scenarios.run import Options, Player, interrupts_between_rounds
from regretless.scenarios.studies.conduct import TURN
from regretless.scenarios.studies.directory import Failure, failure_of

Tree = dict[str, Any]
Frames = dict[str, pd.DataFrame]
TABLES = ("regret_log", "windows")  # streamed ones that agents have rows in
BLOCK = 100  # rounds between two questions, at most
AT_ONCE = 4 * BLOCK  # lines of the record in a worker's hands, at most
DEATHS = 5  # in a row, of workers that got a share nowhere
SELDOM = 50.0  # of the time that a checkpoint takes pass before the next


def divisible(scenario: ResolvedScenario, game: Game) -> tuple[list[int], dict[str, str]]:
    """Return which cohorts can be shared out, by place, and by key why others cannot.

    Agents can who meet nobody but in what they come to together. Cohorts that are counted, by type,
    are in neither. ``scenario``: from which the game was built.
    """
    market = game.market
    why: dict[str, str] = {}
    places: list[int] = []
    if scenario.spec.measures:
        why["measures"] = "a measure of your own may look at all agents"
    for sight in sorted(sight_of(game.adversary) & {"play", "draw"}):
        why["adversary"] = f"it sees '{sight}', which takes all agents in every round"
    adds_up = market is None or type(market).clear is Settling.clear
    if market is not None and (
        market.has_personal_losses or market.accounts is not None or not adds_up
    ):
        why["market"] = f"{type(market).__name__} clears agent by agent"
    if why:
        return [], why
    for place, (cohort, seat) in enumerate(zip(scenario.cohorts, game.seats, strict=True)):
        reason = _together(cohort, scenario.spec, seat)
        if reason:
            why[f"cohort.{cohort.name}"] = reason
        elif not cohort.multiplicity:
            places.append(place)
    return places, why


def _together(cohort: CohortSpec, spec: ScenarioSpec, seat: Seat) -> str:
    """Say why agents of a cohort do not answer one by one; nothing if they do."""
    if cohort.learns and spec.forecaster.objective != "none":
        return "the forecaster's objective asks learners what they are about to play"
    by_row = {own.name for own in BUILT_IN if own.row_by_row}
    rule = cohort.response
    if not (is_ours(register.learner[rule]) if cohort.learns else rule in by_row):
        return f"response '{rule}' does not answer agent by agent"
    if seat.signal is not PUBLIC or seat.budget is not UNLIMITED:
        return "its agents have signals or means of their own"
    return ""


@dataclass(frozen=True)
class Recipe:
    """What a share is built from, as plain values: the share ``place`` of so many, ``of``."""

    run: str  # tells runs apart in a worker that serves several
    raw: Tree  # the resolved scenario
    log_every: int
    imports: tuple[str, ...]  # a user's modules
    folder: str  # of checkpoints, if the worker sees it
    of: int
    place: int


class Absent(Checkpointable, Adversary, Forecaster):
    """Stands for the adversary and all forecasters, whom nobody asks: what they said is told."""

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes

    def mixture(self, *_: Any, **__: Any) -> Any:
        """Say nothing, and learn nothing."""

    commit = update = mixture


class Share:
    """A share that has heard nothing yet; its questions are methods without arguments.

    UserError if a cohort's losses do not come out the same for a part of its agents.
    """

    def __init__(self, recipe: Recipe) -> None:
        import_modules([n for n in recipe.imports if n.removesuffix(".py") not in sys.modules])
        scenario = Scenario(validated(deepcopy(recipe.raw), origin=Path()))
        market = scenario.build(log_every=recipe.log_every)
        self.file = Path(recipe.folder) / f"shard-{recipe.of}-{recipe.place}.npz"
        self._next_save = 0.0
        self._models = list[Array]()  # what those of each block predict
        self._open: Any = None  # the round in which all have decided
        self._last: Any = None  # the one before
        self._chunks = deque[Frames](maxlen=1)  # the last one of the logs
        self._rows: dict[int, Indices] = {}
        agents: dict[int, slice] = {}
        for at in divisible(scenario.resolved, market.game)[0]:
            seat = market.game.seats[at]
            count = len(seat.cohort.row_of)
            mine = slice(*(count * end // recipe.of for end in (recipe.place, recipe.place + 1)))
            if mine.start < mine.stop:
                needed = seat.cohort.rows_of_every_part()
                kept = needed, seat.attendance.watch(), seat.cohort.row_of[mine]
                agents[at] = mine
                self._rows[at] = np.unique(np.concatenate(kept))
        self._cut(market, agents)

    def _cut(self, market: MarketModel, agents: dict[int, slice]) -> None:
        """Take out of a market these agents of its cohorts, by place, and the rows they need."""
        whole = market.game
        rows = self._rows
        absent = Absent(whole.adversary.outcomes)
        blocks = [Block(own.name, own.basis, absent, own.relay) for own in whole.blocks]
        seats = [self._seat(whole.seats[at], rows[at], mine) for at, mine in agents.items()]
        game = Game(blocks, seats, adversary=absent, seed=0)
        self.model = MarketModel(
            game,
            [market.guarantees[at].part(own) for at, own in rows.items()],
            seed=0,
            rounds=market.rounds,
            tracker=market.tracker and market.tracker.part(game.cohorts, rows),
        )
        self.model.journal = market.journal.part(game, agents)
        self.model.stream_logs_to(self._chunks.append)
        settling: Any = whole.market
        self._market = settling and settling.part(game.cohorts, rows)
        self._payoff = whole.adversary.payoff

    def _seat(self, seat: Seat, rows: Indices, agents: slice) -> Seat:
        """Seat a part as its cohort is in the whole market."""
        cohort: Cohort = seat.cohort.part(rows, agents)
        comparison: Any = seat.comparison
        if comparison is not NOT_COMPARED:
            suggest = comparison.suggest.at(rows)
            block = cohort.block
            comparison = comparison.part(rows, cohort.counts, lambda: suggest(self._models[block]))
        return Seat(cohort, seat.attendance.of(rows), comparison=comparison)

    @property
    def heard(self) -> int:
        """How many lines of the record it was told."""
        return 2 * self.model.played + (self._open is not None)

    def hear(self, line: bytes) -> None:
        """Decide in a round that begins, or play it to its end."""
        said = json.loads(line)
        model = self.model
        if self._open is not None:
            begun = replace(self._open, outcome=np.array(said["outcome"]))
            self._last = model.conclude(begun)
            self._open = None
            return
        if model.played and model.journal.at_chunk_end:  # whose rows have been put together
            self._save()
        drawn, self._models = read_drawn_round(said, model.game)
        with in_round(model.played):
            self._open = decide(model.game, drawn)

    def _save(self) -> None:
        """Keep a checkpoint if there has been none for long, where the folder is seen."""
        began = time.monotonic()
        if began >= self._next_save and self.file.parent.is_dir():
            with suppress(OSError):  # no room: the rounds will be played again
                checkpoint.save(self.file, self.model.state())
            now = time.monotonic()
            self._next_save = now + SELDOM * (now - began)

    def nothing(self) -> None:
        """Say nothing."""

    def load(self) -> Array:
        """Say what decisions come to in the market."""
        return np.asarray(self._market.aggregate(self._open.decisions))

    def sums(self) -> dict[str, Array]:
        """Say what the adversary is told of the last round."""
        return summed(self._payoff, self.model.game.cohorts, self._last)

    def rows(self) -> Frames:
        """Say what the last chunk of the logs has of its agents."""
        self.model.journal.flush()
        (chunk,) = self._chunks
        return {name: chunk[name] for name in TABLES if len(chunk[name])}

    def closing(self) -> tuple[Tree, Array, Tree]:
        """Say what ``join`` takes over: of cohorts by place, of bounds and of windows."""
        model = self.model
        ends: dict[Any, Any] = {}
        for own, (place, seat) in enumerate(zip(self._rows, model.game.seats, strict=True)):
            rows = self._rows[place]
            mine = np.unique(seat.cohort.row_of)  # not those for company
            ends[place] = found = {"rows": rows[mine], "compared": seat.comparison.part_state(rows)}
            found["ledger"] = {
                name: part[mine] if np.ndim(part) and len(part) == len(rows) else part
                for name, part in seat.cohort.ledger.state().items()
            }
            if model.tracker is not None:
                found["followed"] = rows[model.tracker.rows[own]], model.tracker.counts(own)
        windows = model.journal.windows
        return ends, model.bounds.state()["kept"], {} if windows is None else windows.worst


Question = Callable[[Share], Any]


@dataclass(frozen=True, eq=False)
class Task:
    """Lines of the record after the ``first``, and what is asked once ``due`` of them are heard.

    A share that is new has heard less than the first, and hears nothing yet.
    """

    recipe: Recipe
    first: int
    lines: Sequence[bytes]
    due: int
    question: Question


Answer = tuple[int, Any]  # how many lines a share has heard, and what was asked if that is due
HERE: dict[tuple[str, int], Share] = {}  # the shares that this process plays


def attempt(task: Task) -> Answer | Failure:
    """Do a task with the share that is here, or with a new one; what goes wrong comes back."""
    key = task.recipe.run, task.recipe.place
    try:
        with TURN:
            share = HERE.get(key)
            if share is None or share.heard != task.first:
                share = HERE[key] = _rebuilt(task)
            for line in task.lines if share.heard == task.first else ():
                share.hear(line)
            return share.heard, task.question(share) if share.heard == task.due else None
    except BaseException as error:  # noqa: BLE001 - a user's code may raise SystemExit too
        return failure_of(error)


def _rebuilt(task: Task) -> Share:
    """Build a share, and let it go on from its checkpoint, if that is sound and not ahead."""
    share = Share(task.recipe)
    if not share.file.exists():
        return share
    with suppress(checkpoint.DAMAGED):
        state = checkpoint.load(share.file)
        checkpoint.check_like(state, share.model.state())
        share.model.restore(state)
        if share.heard <= task.first:
            return share
    return Share(task.recipe)  # some of it may have been restored


def forget(run: str) -> None:
    """Let go of all shares of a run."""
    for key in [key for key in HERE if key[0] == run]:
        del HERE[key]


class Remote(Cohort):
    """A cohort whose agents are elsewhere, as others may see it: what they do is not known here."""

    def __init__(self, whole: Cohort) -> None:
        self.name = whole.name
        self.kind = whole.kind
        self.utility = whole.utility
        self.block = whole.block
        self.policies = whole.policies
        self.loss = whole.loss

    def decide(self, *_: object) -> NoReturn:
        """Raise UserError: workers know it."""
        why = "is played by workers, and what its agents do is not known here"
        raise UserError(f"cohort.{self.name} {why}; run without --workers and --scheduler")

    ledger = row_of = rule = property(decide)


class RemoteSeat(Seat):
    """The seat of a cohort whose agents are elsewhere: here nobody decides, or is remembered."""

    def __init__(self, whole: Seat) -> None:
        self.whole = whole
        self.cohort = Remote(whole.cohort)

    def decide(self, *_: Any, round_index: int, affordable: Any) -> None:
        """Let nobody decide."""

    def record(self, *_: Any, round_index: int, outcome: Array) -> None:
        """Count the rounds alone, which bounds depend on."""
        self.whole.cohort.ledger.rounds = self.whole.attendance.spent(round_index + 1)

    def players(self) -> dict[str, object]:
        """Nobody has a memory here."""
        return {}


class SharedGame(Game):
    """A game of whose cohorts a conductor has some elsewhere."""

    def __init__(self, whole: Game, conductor: "Conductor") -> None:
        vars(self).update(vars(whole))
        away = set(conductor.places)
        self._conductor = conductor
        self.seats = tuple(RemoteSeat(s) if i in away else s for i, s in enumerate(whole.seats))

    def ask_market_to_clear(self, market: Any, begun: Round) -> object:
        """Ask the market for the outcome, given what all come to, wherever they are."""
        load = market.aggregate(begun.decisions) + sum(self._conductor.answers(Share.load))
        return market.answer(begun.outcome, load)

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to, wherever they are."""
        self._conductor.record.end(played.outcome)
        sums = super().sums(played)
        for answer in self._conductor.answers(Share.sums):
            for name, own in answer.items():
                sums[name] = sums[name] + own
        return sums


class DaskCrew:
    """Plays shares, one task of each at a time, on a cluster that is closed by who made it.

    It keeps a share where it is, since that is where it was built.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._run = ""
        self._homes: dict[int, str] = {}

    def give(self, task: Task) -> None:
        """Hand a task to the worker that has the share, or to one with few."""
        place = task.recipe.place
        held = Counter(self._homes.values())
        if place not in self._homes and (free := self._cluster.workers()):
            self._homes[place] = min(free, key=lambda worker: held[worker])
        self._run = task.recipe.run
        self._cluster.submit(place, _attempt_there, task, at=self._homes.get(place))

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Wait for a share's answer, which is None where its worker died.

        UserError if the scheduler, or the last worker, is gone.
        """
        place, found = self._cluster.next()
        if found is None:
            self._homes.pop(place, None)
            self._cluster.refill()
            return place, None
        self._homes[place], answer = found
        return place, answer

    def close(self) -> None:
        """Let the workers forget the run, unless they end with it; nobody waits until they have."""
        if not self._cluster.sends_files:
            return
        dask: Any = importlib.import_module("distributed")  # an extra, which is there
        client = self._cluster.client
        for future in self._cluster.pending:
            future.cancel()
        with suppress(OSError, TimeoutError, UserError):  # who is gone remembers nothing
            for address in self._cluster.workers() if self._run else {}:
                future = client.submit(forget, self._run, workers=[address], pure=False)
                dask.fire_and_forget(future)


def _attempt_there(task: Task) -> tuple[str, Answer | Failure]:
    """Do a task in a Dask worker, and say in which."""
    import distributed  # noqa: PLC0415 - an extra, which Dask's workers have

    return distributed.get_worker().address, attempt(task)


class Conductor(Player):
    """Plays a run with a crew, or alone where nobody can be shared out.

    The agents are divided into at most so many ``shares``; workers import a user's modules,
    ``imports``; ``warn`` is called with a line for each cohort that is played here, unless counted.
    """

    def __init__(
        self,
        scenario: Scenario,
        crew: Any,
        options: Options,
        shares: int,
        *,
        imports: tuple[str, ...] = (),
        warn: Callable[[str], Any] = lambda _: None,
    ) -> None:
        self._scenario = scenario.resolved
        self._crew = crew
        self._most = shares
        self._warn = warn
        folder = options.out.absolute() / ".partial"
        raw = resolved(scenario.spec)
        run = os.urandom(8).hex()  # a name, on which nothing depends
        self._recipe = partial(Recipe, run, raw, options.log_every, imports, str(folder))
        self.record = Record(folder / "record.jsonl")
        self._due = 0
        self._question: Question = Share.nothing
        self._then: Callable[[list[Any]], Any] | None = None  # told what all say, once
        self._ends: list[Any] = []

    @property
    def shared(self) -> bool:
        """Whether anybody is elsewhere."""
        return bool(self.places)

    def take(self, model: MarketModel) -> None:
        """Be given the whole market, some of whose agents stay away."""
        super().take(model)
        self.places, alone = divisible(self._scenario, model.game)
        if not self.shared and not alone:
            alone = {"--workers": "all agents are counted, by type"}
        for key, why in alone.items():
            self._warn(f"{key}: {why}; played in this process")
        cohorts = [model.game.cohorts[place] for place in self.places]
        of = min(self._most, max((len(own.row_of) for own in cohorts), default=0))
        self._recipes = [self._recipe(of, place) for place in range(of)]
        self._heard = [0] * of  # lines, as far as is known
        self._deaths = [0] * of  # of a share's workers since it last answered
        self._said: dict[int, Any] = dict.fromkeys(range(of))  # all of them if no answer is due
        self._private = any(own.private for own in cohorts)
        self._whole = model.game
        self._away = SharedGame(model.game, self)

    def restore(self, state: Tree) -> None:
        """Continue from a checkpoint, with the record that lies beside it."""
        if not self.shared:
            super().restore(state)
            return
        self.model.game = self._away
        checkpoint.check_like(state, self._state())
        self.model.restore(state)
        self.record.restore(2 * self.model.played, state["shared"])
        self._due = len(self.record)
        self._heard = [self._due] * len(self._heard)

    def _state(self) -> Tree:
        return self.model.state() | {"shared": self.record.checksum}

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left, until all shares have closed the run."""
        if not self.shared:
            super().play(directory, config, progress)
            return
        model = self.model
        resumable = not self._away.forgetful()
        full: list[Frames] = []
        model.game = self._away
        self._progress = progress or (lambda _: None)
        model.stream_logs_to(full.append)
        if resumable and model.rounds > model.journal.chunk_rounds:
            checkpoint.check_tree(self._state())

        def put_together(own: Frames, state: Tree | None, said: list[Frames]) -> None:
            directory.add_chunk(_rows_of_all(own, said))
            if state is not None:
                directory.save_checkpoint(state, config)

        self._ask(Share.nothing)  # they build while the first block is played
        with interrupts_between_rounds() as stopped:
            while model.played < model.rounds and not stopped.is_set():
                begun = model.begin()
                self.record.begin(begun, self._whole.blocks, private=self._private)
                self.record.end(model.conclude(begun).outcome)
                if full:
                    state = self._state() if resumable else None
                    self._ask(Share.rows, partial(put_together, full.pop(), state))
                elif len(self.record) - self._due >= 2 * BLOCK:
                    self._ask(Share.nothing)
            model.journal.flush()
            if full:
                self._ask(Share.rows, partial(put_together, full.pop(), None))
            self._ends = self.answers(Share.closing)
            if model.played < model.rounds:
                raise KeyboardInterrupt

    def answers(self, question: Question) -> list[Any]:
        """Ask all shares, and wait for what they say."""
        self._ask(question)
        return self._wait()

    def _ask(self, question: Question, then: Callable[[list[Any]], Any] | None = None) -> None:
        """Ask all shares, once they have answered what they were asked before."""
        self._wait()
        self._question = question
        self._then = then
        self._due = len(self.record)
        self._said = {}
        for place in range(len(self._recipes)):
            self._give(place)

    def _give(self, place: int) -> None:
        """Hand a share the lines that it lacks, the first of many."""
        first = self._heard[place]
        lines = self.record.lines(first, min(first + AT_ONCE, self._due))
        self._crew.give(Task(self._recipes[place], first, lines, self._due, self._question))

    def _wait(self) -> list[Any]:
        """Wait until all shares have answered; return what they say in their order."""
        while len(self._said) < len(self._recipes):
            self._note(*self._crew.hear())
        said = [self._said[place] for place in range(len(self._recipes))]
        then = self._then
        self._then = None
        if then is not None:
            then(said)
        self._progress(self._due // 2)
        return said

    def _note(self, place: int, heard: Answer | Failure | None) -> None:
        """Take note of an answer, or of a worker's death; ask again where more is to be done."""
        where = f"share {place + 1} of {len(self._recipes)}"
        if isinstance(heard, Failure):
            why = heard.error if heard.kind == "UserError" else f"{heard.kind}: {heard.error}"
            raise UserError(f"{where}: {why}")
        if heard is None:
            self._deaths[place] += 1
            if self._deaths[place] == DEATHS:
                raise UserError(f"{where}: {DIED}, {DEATHS} times in a row; use more --workers")
        else:
            self._heard[place], said = heard
            if self._heard[place] == self._due:
                self._said[place] = said
                self._deaths[place] = 0
                return
        self._give(place)

    def tables(self) -> Frames:
        """Return the tables that close the run, once the whole market knows of all agents."""
        market = self.model
        market.game = self._whole
        for place, seat in enumerate(market.game.seats):
            parts = [cohorts[place] for cohorts, *_ in self._ends if place in cohorts]
            for part in parts:
                seat.cohort.ledger.join(part["rows"], part["ledger"])
                if market.tracker is not None and len(part["followed"][0]):
                    market.tracker.join(place, *part["followed"])
            if parts:
                seat.comparison.join([part["compared"] for part in parts])
        market.bounds.join([(list(cohorts), kept) for cohorts, kept, _ in self._ends])
        if market.journal.windows is not None:
            market.journal.windows.join([worst for *_, worst in self._ends])
        return super().tables()


def _rows_of_all(own: Frames, shares: Sequence[Frames]) -> Frames:
    """Return the rows of all agents, by round and agent; the bounds of windows are in our own."""
    logs, windows = ([s[name] for s in shares if name in s] for name in TABLES)
    if logs:
        logs += [own["regret_log"]] if len(own["regret_log"]) else []
        own["regret_log"] = pd.concat(logs).sort_values(["round", "agent"], ignore_index=True)
    if windows:
        found = pd.concat(windows).sort_values(["first", "agent"], ignore_index=True)
        regrets = [name for name in found if name not in {"agent", "first", "last"}]
        theirs = own["windows"]["agent"].isin(found["agent"])
        own["windows"].loc[theirs, regrets] = found[regrets].to_numpy()
    return own


@contextmanager
def conductor_of(
    scenario: Scenario,
    options: Options,
    workers: int | None = None,
    scheduler: str | None = None,
    *,
    imports: tuple[str, ...] = (),
    warn: Callable[[str], Any] = lambda _: None,
) -> Iterator[Conductor]:
    """Yield who plays a scenario with all among whom its agents are shared out (``Cluster``).

    ``workers`` are shares, on a cluster elsewhere one per worker by default.
    """
    with closing(Cluster(workers, scheduler, imports, warn)) as cluster:
        shares = len(cluster.workers()) if workers is None else workers
        with closing(DaskCrew(cluster)) as crew:
            yield Conductor(scenario, crew, options, shares, imports=imports, warn=warn)
