"""One run on many processors or machines: its agents are shared out, the game is not.

The conductor plays the game with those who cannot be shared out; the seats of all others are empty
there, and their cohorts stand-ins that nobody can look into. What agents hear of the game goes on
record. Any share of them, told the record from the first line on, does to the last bit what its
agents do in the whole game. So the shares are asked one question at a time: after every block of
rounds, which they play while the conductor plays the next, for the rows of the logs; where a market
answers to agents, or the adversary is told what they do, in every round for what theirs come to,
which adds up (``market.numerics.exact_sum``). At the end the whole market takes over what became of
all agents, and writes the closing tables as ever.

A worker builds the whole market, cuts its share out and keeps it between tasks. If it dies, the
next one goes on from the share's newest checkpoint, if it sees the run's folder, or from the first
line. A conductor that dies leaves in that folder the record, the rows that were put together and
its own checkpoint, from which ``--resume`` goes on.
"""

import json
import os
import sys
import time
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
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
from regretless.market.game.adversary_view import alone, sight_of, summed
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.protocols import Adversary, Cohort, Forecaster
from regretless.market.game.round import Block, Drawn, Game, decide
from regretless.market.game.seats import PUBLIC, Seat
from regretless.market.logs.journal import Journal
from regretless.market.logs.windows import Windows
from regretless.market.markets.aggregate import Settling
from regretless.market.model import MarketModel
from regretless.market.records import Context, Forecast, Mixture, OutcomeDistribution, Round
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec, resolved, validated
from regretless.scenarios.executor import DIED, Cluster
from regretless.scenarios.imports import import_modules
from regretless.scenarios.logs.directory import RunDirectory
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


# Who can be shared out: agents who meet nobody but in what they come to together. Crowds that are
# counted, by type, stay with the conductor.


def divisible(spec: ScenarioSpec, game: Game) -> tuple[list[int], dict[str, str]]:
    """Return which cohorts can be shared out, by place, and by key why others cannot.

    Those that are counted are in neither. ``spec``: of the game, without empty cohorts.
    """
    if alone := _whole(spec, game):
        return [], alone
    places = []
    for place, (own, seat) in enumerate(zip(spec.cohort, game.seats, strict=True)):
        if why := _together(own, spec, seat):
            alone[f"cohort.{own.name}"] = why
        elif not own.multiplicity:
            places.append(place)
    return places, alone


def _whole(spec: ScenarioSpec, game: Game) -> dict[str, str]:
    """Say what takes all agents in one place."""
    market, why = game.market, dict[str, str]()
    if spec.measures:
        why["measures"] = "a measure of your own may look at all agents"
    for sight in sorted(sight_of(game.adversary) & {"play", "draw"}):
        why["adversary"] = f"it sees '{sight}', which takes all agents in every round"
    adds_up = market is None or type(market).clear is Settling.clear
    if market is not None and (market.personal or market.accounts is not None or not adds_up):
        why["market"] = f"{type(market).__name__} clears agent by agent"
    return why


def _together(cohort: CohortSpec, spec: ScenarioSpec, seat: Seat) -> str:
    """Say why agents of a cohort do not answer one by one; nothing if they do."""
    if cohort.learns and spec.forecaster.objective != "none":
        return "the forecaster's objective asks learners what they are about to play"
    if cohort.learns:
        one_by_one = is_ours(register.learner[cohort.response])
    else:
        one_by_one = any(rule.name == cohort.response and rule.row_by_row for rule in BUILT_IN)
    if not one_by_one:
        return f"response '{cohort.response}' does not answer agent by agent"
    if seat.signal is not PUBLIC or seat.budget is not UNLIMITED:
        return "its agents have signals or means of their own"
    return ""


# What is on record.


class Record:
    """What agents hear of the game so far, in a file: two lines of JSON a round.

    The first is heard before they decide, the second is the outcome; numbers read back exactly.
    ``checksum`` is of all lines.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._ends, self.checksum = file, array("q", [0]), 0

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, said: Tree) -> None:
        """Write one more line: numbers, text and arrays by name."""
        line = json.dumps(said, default=np.ndarray.tolist).encode() + b"\n"
        with self._file.open("ab") as file:
            file.write(line)
        self._note(line)

    def _note(self, line: bytes) -> None:
        self._ends.append(self._ends[-1] + len(line))
        self.checksum = zlib.crc32(line, self.checksum)

    def lines(self, first: int, last: int) -> list[bytes]:
        """Return the lines from one to before another."""
        if first >= last:
            return []
        with self._file.open("rb") as file:
            file.seek(self._ends[first])
            return file.read(self._ends[last] - self._ends[first]).splitlines()

    def restore(self, lines: int, checksum: int) -> None:
        """Go on after so many lines; UserError if not all of them are there."""
        if self._file.exists():
            with self._file.open("rb") as file:
                for line in islice(file, lines):
                    self._note(line)
            os.truncate(self._file, self._ends[-1])
        if (len(self), self.checksum) != (lines, checksum):
            lack = f"--resume: {self._file} lacks a part of the record"
            raise UserError(f"{lack}; start again with --overwrite")


def told(begun: Round, blocks: Sequence[Block], *, private: bool) -> Tree:
    """Return what is said of a round that begins: of every block what was drawn.

    ``private``: whether somebody draws for himself, from the whole mixture.
    """
    said = []
    for block, forecast in zip(blocks, begun.forecasts, strict=True):
        heard = forecast if private else Forecast(alone(forecast), 0)
        mixture, models = heard.mixture, np.asarray(block.forecaster.points)
        atoms = {"points": mixture.points, "weights": mixture.weights, "labels": mixture.labels}
        said.append(atoms | {"drawn": int(heard.index), "models": models})
    context = begun.context.names, begun.context.values  # noqa: PD011 - no table's
    return {"context": context, "blocks": said}


def understood(said: Tree, outcomes: int) -> tuple[Drawn, list[Array]]:
    """Return a round that was told, and what the models of each block predict.

    Its outcome, of so many coordinates, nobody may read.
    """
    forecasts, unknown = [], np.zeros(outcomes)
    for own in said["blocks"]:
        labels = None if own["labels"] is None else np.array(own["labels"])
        mixture = Mixture(np.array(own["points"]), np.array(own["weights"]), labels=labels)
        forecasts.append(Forecast(mixture, own["drawn"]))
    names, values = said["context"]
    context = Context(tuple(names), np.array(values))
    drawn = Drawn(context, tuple(forecasts), OutcomeDistribution.pure(unknown), unknown)
    return drawn, [np.array(own["models"]) for own in said["blocks"]]


# A worker's side: a share, which plays by what it hears.


@dataclass(frozen=True)
class Recipe:
    """What a share is built from, as plain values: the share ``place`` of so many, ``of``.

    ``run`` tells runs apart in a worker that serves several, ``raw`` is the resolved scenario,
    ``imports`` are a user's modules. Checkpoints go to the ``folder``, if the worker sees it.
    """

    run: str
    raw: Tree
    log_every: int
    imports: tuple[str, ...]
    folder: str
    of: int
    place: int


class Absent(Checkpointable, Adversary, Forecaster):
    """Stands for the adversary and all forecasters, whom nobody asks: what they said is told."""

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes

    def mixture(self, *_: Any, **__: Any) -> NoReturn:
        """Say nothing."""
        raise NotImplementedError("it is elsewhere")

    update = commit = mixture


class Relayed(Block):
    """A block that passes on what it is told to have said, to those who hear it later."""

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Pass on what was said."""
        if self.relay is not None:
            self.relay.add(forecast, self.basis.transform(outcome))


class Share:
    """A share that has heard nothing yet.

    UserError if a cohort's losses do not come out the same for a part of its agents.
    """

    def __init__(self, recipe: Recipe) -> None:
        import_modules([n for n in recipe.imports if n.removesuffix(".py") not in sys.modules])
        scenario = Scenario(validated(deepcopy(recipe.raw), origin=Path()))
        market = scenario.build(log_every=recipe.log_every)
        self._name, self._folder = f"shard-{recipe.of}-{recipe.place}-", Path(recipe.folder)
        self._next_save = 0.0
        self._models = list[Array]()  # what those of each block predict
        self._open: Any = None  # the round in which all have decided
        self._last: Any = None  # the one before
        self._logs = Frames()  # the last chunk
        agents = dict[int, slice]()
        for at in divisible(scenario.peopled, market.game)[0]:
            count = len(market.game.cohorts[at].row_of)
            ends = (count * part // recipe.of for part in (recipe.place, recipe.place + 1))
            agents[at] = slice(*ends)
        self._cut(market, {at: own for at, own in agents.items() if own.start < own.stop})

    def _cut(self, market: MarketModel, agents: dict[int, slice]) -> None:
        """Take out of a market these agents of its cohorts, by place, and the rows they need."""
        whole, self._rows = market.game, dict[int, Indices]()
        for at, mine in agents.items():
            seat = whole.seats[at]
            kept = seat.cohort.company(), seat.attendance.watch(), seat.cohort.row_of[mine]
            self._rows[at] = np.unique(np.concatenate(kept))
        seats = [self._seat(whole.seats[at], self._rows[at], mine) for at, mine in agents.items()]
        cohorts, absent = [seat.cohort for seat in seats], Absent(whole.adversary.outcomes)
        blocks = [Relayed(own.name, own.basis, absent, own.relay) for own in whole.blocks]
        self.model = MarketModel(
            Game(blocks, seats, adversary=absent, seed=0),
            [_empty(market.guarantees[at], own) for at, own in self._rows.items()],
            seed=0,
            rounds=market.rounds,
            tracker=market.tracker and market.tracker.part(cohorts, self._rows),
        )
        self.model.journal = _journal(market.journal, self.model.game, agents)
        self.model.stream_logs_to(self._keep)
        self._market: Any = whole.market and whole.market.part(cohorts, self._rows)
        self._payoff = whole.adversary.payoff

    def _seat(self, seat: Seat, rows: Indices, agents: slice) -> Seat:
        """Seat a part as its cohort is in the whole market."""
        cohort: Cohort = seat.cohort.part(rows, agents)
        comparison: Any = seat.comparison
        if comparison is not NOT_COMPARED:
            suggest, block = comparison.suggest.at(rows), cohort.block
            comparison = comparison.part(rows, cohort.counts, lambda: suggest(self._models[block]))
        return Seat(cohort, seat.attendance.of(rows), comparison=comparison)

    def _keep(self, chunk: Frames) -> None:
        self._logs = {name: chunk[name] for name in TABLES if len(chunk[name])}

    @property
    def heard(self) -> int:
        """How many lines of the record it was told."""
        return 2 * self.model.played + (self._open is not None)

    def hear(self, line: bytes) -> None:
        """Decide in a round that begins, or play it to its end."""
        said, model = json.loads(line), self.model
        if self._open is None:
            drawn, self._models = understood(said, model.game.adversary.outcomes)
            with in_round(model.played):
                self._open = decide(model.game, drawn)
            return
        begun = replace(self._open.begun, outcome=np.array(said["outcome"]))
        self._last, self._open = model.conclude(replace(self._open, begun=begun)), None
        if model.journal.at_chunk_end and model.played < model.rounds:
            self._save()

    def answer(self, question: str) -> Any:
        """Say what is asked.

        ``load``: what decisions come to in the market; ``sums``: what the adversary is told of the
        last round; ``rows``: of the last chunk of the logs; ``closing``: what ``join`` takes over.
        """
        match question:
            case "load":
                return np.asarray(self._market.aggregate(self._open.begun.decisions))
            case "sums":
                return summed(self._payoff, self.model.game.cohorts, self._last)
            case "rows":
                self.model.journal.flush()
                return self._logs
            case "closing":
                windows = self.model.journal.windows
                worst = {} if windows is None else windows.worst
                return dict(self._ends()), self.model.bounds.state()["kept"], worst
        return None

    def _ends(self) -> Iterator[tuple[int, Tree]]:
        """Yield what became of the agents of each cohort, by its place in the whole market."""
        tracker = self.model.tracker
        for own, (place, seat) in enumerate(zip(self._rows, self.model.game.seats, strict=True)):
            rows, mine = self._rows[place], np.unique(seat.cohort.row_of)  # not those for company
            ledger = {
                name: part[mine] if np.ndim(part) and len(part) == len(rows) else part
                for name, part in seat.cohort.ledger.state().items()
            }
            found = {"rows": rows[mine], "ledger": ledger, "followed": None}
            if tracker is not None:
                found["followed"] = rows[tracker.rows[own]], tracker.bins.counts(own)
            yield place, found | {"compared": seat.comparison.part_state(rows)}

    def _save(self) -> None:
        """Keep a checkpoint if there has been none for long, and the newest one before it."""
        began, played = time.monotonic(), self.model.played
        if began < self._next_save or not self._folder.is_dir():
            return  # or it is another machine, that does not see the folder
        file = self._folder / f"{self._name}{played:09d}.npz"
        with suppress(OSError):  # no room: the rounds will be played again
            checkpoint.save(file, self.model.state())
            for _, older in self.files(played - 1)[1:]:
                older.unlink(missing_ok=True)
        now = time.monotonic()
        self._next_save = now + SELDOM * (now - began)

    def files(self, most: int) -> list[tuple[int, Path]]:
        """Return checkpoints, the newest first: of how many rounds, at most so many, and where."""
        found = ((int(f.stem.split("-")[-1]), f) for f in self._folder.glob(f"{self._name}*.npz"))
        return sorted((one for one in found if one[0] <= most), reverse=True)


def _empty(promise: Guarantee, rows: Indices) -> Guarantee:
    """Promise the same to the same rows, and say nothing of what the whole market bounds."""
    bound = None if promise.bound is None else lambda: np.full(len(rows), np.nan)
    covers = None if promise.covers is None else promise.covers[rows]
    return Guarantee(promise.label, bound, covers=covers)


def _journal(whole: Journal, game: Game, agents: dict[int, slice]) -> Journal:
    """Log parts of cohorts, in chunks and windows as the whole is logged."""
    pairs = zip(agents.items(), game.cohorts, strict=True)
    logged = [whole.logged[at].part(mine, own.row_of) for (at, mine), own in pairs]
    windows = whole.windows and Windows(game.cohorts, logged, whole.windows.spans)
    names, every = [block.name for block in game.blocks], whole.log_every
    journal = Journal(game.cohorts, names, log_every=every, logged=logged, windows=windows)
    journal.chunk_rounds = whole.chunk_rounds
    return journal


@dataclass(frozen=True, eq=False)
class Task:
    """Lines of the record after the ``first``, and what is asked once ``due`` lines are heard.

    That may take further tasks. A share that is new has heard less, and hears nothing yet.
    """

    recipe: Recipe
    first: int
    lines: Sequence[bytes]
    due: int
    question: str


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
            return share.heard, share.answer(task.question) if share.heard == task.due else None
    except BaseException as error:  # noqa: BLE001 - a user's code may raise SystemExit too
        return failure_of(error)


def _rebuilt(task: Task) -> Share:
    """Build a share, and let it go on from where it has yet to hear all that a task is about."""
    share, last = Share(task.recipe), task.first - (task.question == "rows")
    for _, file in share.files(last // 2):
        try:
            state = checkpoint.load(file)
            checkpoint.check_like(state, share.model.state())
            share.model.restore(state)
            break
        except checkpoint.DAMAGED:
            share = Share(task.recipe)  # some of it may have been restored
    return share


def forget(run: str) -> None:
    """Let go of all shares of a run."""
    for key in [key for key in HERE if key[0] == run]:
        del HERE[key]


# The conductor's side.


class Remote(Cohort):
    """A cohort whose agents are elsewhere, as others may see it: what they do is not known here."""

    def __init__(self, whole: Cohort) -> None:
        self.name, self.kind, self.utility = whole.name, whole.kind, whole.utility
        self.block, self.policies, self.loss = whole.block, whole.policies, whole.loss

    def decide(self, *_: object) -> NoReturn:
        """Raise UserError: workers know it."""
        why = "is played by workers, and what its agents do is not known here"
        raise UserError(f"cohort.{self.name} {why}; run without --workers and --scheduler")

    ledger = row_of = rule = property(decide)


class RemoteSeat(Seat):
    """The seat of a cohort whose agents are elsewhere: here nobody decides, or is remembered."""

    def __init__(self, whole: Seat) -> None:
        self.whole, self.cohort = whole, Remote(whole.cohort)

    def decide(self, *_: Any, number: int, affordable: Any) -> None:
        """Let nobody decide."""

    def record(self, *_: Any, number: int, outcome: Array) -> None:
        """Count the rounds alone, which bounds depend on."""
        self.whole.cohort.ledger.rounds = self.whole.attendance.spent(number + 1)

    def players(self) -> dict[str, object]:
        """Nobody has a memory here."""
        return {}


class SharedGame(Game):
    """A game of whose cohorts those in some ``places`` are elsewhere.

    ``ask`` asks a question in a round that has begun, or is played; it returns what each share
    says.
    """

    def __init__(
        self, whole: Game, places: Sequence[int], ask: Callable[[str, Round], list[Any]]
    ) -> None:
        vars(self).update(vars(whole))
        away = set(places)
        self.seats = tuple(RemoteSeat(s) if i in away else s for i, s in enumerate(whole.seats))
        self._ask = ask

    def load(self, begun: Round) -> Array | None:
        """Return what all come to in the market."""
        if self.market is None:
            return None
        return np.asarray(self.market.aggregate(begun.decisions) + sum(self._ask("load", begun)))

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to, wherever they are."""
        sums = super().sums(played)
        for answer in self._ask("sums", played):
            for name, own in answer.items():
                sums[name] = sums[name] + own
        return sums


class DaskCrew:
    """Plays shares, one task of each at a time, on a cluster that is closed by who made it.

    It keeps a share where it is, since that is where it was built.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._homes: dict[int, str] = {}
        self._given: dict[Any, Recipe] = {}
        self._run = ""

    def give(self, task: Task) -> None:
        """Hand a task to the worker that has the share, or to one with few."""
        place, held = task.recipe.place, Counter(self._homes.values())
        if place not in self._homes and (free := self._cluster.workers()):
            self._homes[place] = min(free, key=lambda worker: held[worker])
        self._run = task.recipe.run
        future = self._cluster.submit(_attempt_there, task, at=self._homes.get(place))
        self._given[future] = task.recipe

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Wait for a share's answer, which is None where its worker died.

        UserError if the scheduler, or the last worker, is gone.
        """
        future, answer = self._cluster.next(), None
        place = self._given.pop(future).place
        if self._cluster.died(future):
            self._homes.pop(place, None)
            self._cluster.refill()
        else:
            self._homes[place], answer = self._cluster.result(future)
        future.release()
        return place, answer

    def close(self) -> None:
        """Let the workers forget the run."""
        for future in self._given:
            future.cancel()
        with suppress(OSError, TimeoutError):  # who is gone remembers nothing
            if self._run and self._cluster.client.status == "running":
                self._cluster.client.run(forget, self._run, on_error="ignore")


def _attempt_there(task: Task) -> tuple[str, Answer | Failure]:
    """Do a task in a Dask worker, and say in which."""
    import distributed  # noqa: PLC0415 - an extra, which Dask's workers have

    return distributed.get_worker().address, attempt(task)


class Conductor(Player):
    """Plays a run with a crew, or alone where nobody can be shared out.

    The agents are divided into at most so many ``shares``; workers import a user's modules,
    ``imports``; ``warn`` is called with a line for each cohort that is played here, not counted
    ones.
    """

    def __init__(  # noqa: PLR0913 - keyword-only from the fifth
        self,
        scenario: Scenario,
        crew: Any,
        options: Options,
        shares: int,
        *,
        imports: tuple[str, ...] = (),
        warn: Callable[[str], Any] = lambda _: None,
    ) -> None:
        self._spec, self._crew, self._most, self._warn = scenario.peopled, crew, shares, warn
        folder, raw = options.out.absolute() / ".partial", resolved(scenario.spec)
        run = os.urandom(8).hex()  # a name, on which nothing depends
        self._recipe = partial(Recipe, run, raw, options.log_every, imports, str(folder))
        self._record, self._due, self._question = Record(folder / "record.jsonl"), 0, ""
        self._full: list[Frames] = []  # chunks of the logs that lack the shares' rows
        self._waiting: tuple[Frames, Tree | None] | None = None  # one whose rows were asked for
        self._ends: list[Any] = []

    @property
    def shared(self) -> bool:
        """Whether anybody is elsewhere."""
        return bool(self._places)

    def take(self, model: MarketModel) -> None:
        """Be given the whole market, some of whose agents stay away."""
        super().take(model)
        self._places, alone = divisible(self._spec, model.game)
        if not self.shared and not alone:
            alone = {"--workers": "all agents are counted, by type"}
        for key, why in alone.items():
            self._warn(f"{key}: {why}; played in this process")
        cohorts = [model.game.cohorts[place] for place in self._places]
        of = min(self._most, max((len(own.row_of) for own in cohorts), default=0))
        self._recipes = [self._recipe(of, place) for place in range(of)]
        self._heard = [0] * of  # lines, as far as is known
        self._deaths = [0] * of  # of a share's workers since it last answered
        self._said: dict[int, Any] = dict.fromkeys(range(of))  # all of them if no answer is due
        self._private = any(own.private for own in cohorts)
        self._whole, self._away = model.game, SharedGame(model.game, self._places, self._heard_of)

    def restore(self, state: Tree) -> None:
        """Continue from a checkpoint, with the record that lies beside it."""
        if not self.shared:
            super().restore(state)
            return
        self.model.game = self._away
        checkpoint.check_like(state, self._state())
        self.model.restore(state)
        self._record.restore(2 * self.model.played, state["shared"])
        self._due = len(self._record)
        self._heard = [self._due] * len(self._heard)

    def _state(self) -> Tree:
        return self.model.state() | {"shared": self._record.checksum}

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left, until all shares have closed the run."""
        if not self.shared:
            super().play(directory, config, progress)
            return
        model, journal, resumable = self.model, self.model.journal, not self._away.forgetful()
        model.game = self._away
        self._directory, self._config = directory, config
        self._progress = progress or (lambda _: None)
        model.stream_logs_to(self._full.append)
        if resumable and model.rounds > journal.chunk_rounds:
            checkpoint.check_tree(self._state())
        self._ask("")  # they build while the first block is played
        with interrupts_between_rounds() as stopped:
            while model.played < model.rounds and not stopped.is_set():
                decided = model.begin()
                self._record.add(told(decided.begun, self._whole.blocks, private=self._private))
                self._revealed(model.conclude(decided))
                if self._full:
                    self._ask("rows", self._state() if resumable else None)
                elif len(self._record) - self._due >= 2 * BLOCK:
                    self._ask("")
            journal.flush()
            if self._full:
                self._ask("rows")
            self._ask("closing")
            self._ends = self._answers()
            if model.played < model.rounds:
                raise KeyboardInterrupt

    def _revealed(self, played: Round) -> None:
        """Note the outcome of a round, once."""
        if len(self._record) % 2:
            self._record.add({"outcome": played.outcome})

    def _heard_of(self, question: str, played: Round) -> list[Any]:
        """Ask all shares what their agents come to in a round that has begun, or is played."""
        if question == "sums":
            self._revealed(played)
        self._ask(question)
        return self._answers()

    def _ask(self, question: str, state: Tree | None = None) -> None:
        """Ask all shares, once they have answered what they were asked before.

        ``state``: after the chunk whose rows are asked for.
        """
        self._answers()
        self._waiting = (self._full.pop(), state) if question == "rows" else None
        self._question, self._due, self._said = question, len(self._record), {}
        for place in range(len(self._recipes)):
            self._give(place)

    def _give(self, place: int) -> None:
        """Hand a share the lines that it lacks, the first of many."""
        first = self._heard[place]
        lines = self._record.lines(first, min(first + AT_ONCE, self._due))
        self._crew.give(Task(self._recipes[place], first, lines, self._due, self._question))

    def _answers(self) -> list[Any]:
        """Wait until all shares have answered; return what they say in their order."""
        while len(self._said) < len(self._recipes):
            self._note(*self._crew.hear())
        said = [self._said[place] for place in range(len(self._recipes))]
        if self._waiting is not None:
            (frames, state), self._waiting = self._waiting, None
            self._directory.add_chunk(frames | _rows_of_all(frames, said))
            if state is not None:
                self._directory.save_checkpoint(state, self._config)
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
                self._said[place], self._deaths[place] = said, 0
                return
        self._give(place)

    def tables(self) -> Frames:
        """Return the tables that close the run."""
        self.model.game = self._whole
        self._join()
        return super().tables()

    def _join(self) -> None:
        """Let the whole market take over what became of the agents of all shares."""
        market = self.model
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


def _rows_of_all(own: Frames, shares: Sequence[Frames]) -> Frames:
    """Return the rows of all agents; what bounds those of windows is known here."""
    parts = {name: [part[name] for part in shares if name in part] for name in TABLES}
    log = _stacked([own["regret_log"], *parts["regret_log"]], "round")
    windows, found = own["windows"], _stacked(parts["windows"], "first")
    if len(found):
        regrets = [name for name in found if name not in {"agent", "first", "last"}]
        theirs = windows["agent"].isin(found["agent"])
        windows.loc[theirs, regrets] = found[regrets].to_numpy()
    return {"regret_log": log, "windows": windows}


def _stacked(parts: Sequence[pd.DataFrame], key: str) -> pd.DataFrame:
    """Put the rows of all shares in the order of a run on one machine: by ``key``, then agent."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame()
    return pd.concat(parts).sort_values([key, "agent"], ignore_index=True)


@contextmanager
def conductor_of(  # noqa: PLR0913 - keyword-only from the fifth
    scenario: Scenario,
    options: Options,
    workers: int | None = None,
    scheduler: str | None = None,
    *,
    imports: tuple[str, ...] = (),
    warn: Callable[[str], Any] = lambda _: None,
) -> Iterator[Conductor]:
    """Yield who plays a scenario together with all among whom its agents are shared out.

    ``workers`` are shares, a process of this machine for each; on a cluster, of which ``scheduler``
    is the address, one per worker by default. UserError if Dask is not installed, or the cluster is
    not there.
    """
    with closing(Cluster(workers, scheduler, imports)) as cluster:
        shares = len(cluster.workers()) if workers is None else workers
        with closing(DaskCrew(cluster)) as crew:
            yield Conductor(scenario, crew, options, shares, imports=imports, warn=warn)
