"""The conductor's side of a run whose agents are shared out.

The conductor plays the game with those who cannot be shared out; the seats of all others are empty
here, and their cohorts stand-ins that nobody can look into. What was broadcast goes to the shares,
block by block: they play one while the conductor makes the next. Where a market answers to agents,
or the adversary is told what they do, the game asks all shares in every round what theirs come to,
and adds that up (``market.numerics.exact_sum``). Rows of the logs come back, and are put together
chunk by chunk to the bytes of a run on one machine. At the end the whole market takes over what
became of all agents, and writes the closing tables as ever.

A worker that dies is replaced: the share is rebuilt from its newest checkpoint and the record of
the broadcast, which lies in the run's folder. A conductor that dies leaves the record, the rows
that were put together and its own checkpoint there, from which ``--resume`` goes on.
"""

import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Game
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.market.records import Context, Decision, Forecast, Round
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import resolved
from regretless.scenarios.distributed.record import BLOCK, Record, Tree, packed
from regretless.scenarios.distributed.share import divisible, join
from regretless.scenarios.distributed.worker import (
    TABLES,
    Answer,
    Frames,
    Recipe,
    Task,
    attempt,
    forget,
)
from regretless.scenarios.executor import DIED, Cluster
from regretless.scenarios.logs.directory import RunDirectory
from regretless.scenarios.run import Options, Player, interrupts_between_rounds
from regretless.scenarios.studies.directory import Failure

AT_ONCE = 2  # blocks in a worker's hands, at most
LOOKING = 0.5  # seconds between two looks at whether the workers are there
DEATHS = 5  # in a row, of workers that got a share nowhere
Heard = tuple[int, Answer | Failure | str]  # the share; its answer, why it has none, last words


class Remote(Cohort):
    """A cohort whose agents are elsewhere, as others may see it: what they do is not known here."""

    def __init__(self, whole: Cohort) -> None:
        self.name, self.kind, self.utility = whole.name, whole.kind, whole.utility
        self.block, self.policies, self.loss = whole.block, whole.policies, whole.loss
        self._rule = whole.rule

    @property
    def rule(self) -> str:
        """Name of the response rule."""
        return self._rule

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Raise UserError."""
        return self._unknown()

    def _unknown(self) -> NoReturn:
        """Raise UserError: workers know it."""
        why = "is played by workers, and what its agents do is not known here"
        raise UserError(f"cohort.{self.name} {why}; run without --workers and --scheduler")

    ledger = row_of = property(_unknown)


class RemoteSeat(Seat):
    """The seat of a cohort whose agents are elsewhere: here nobody decides, or is remembered."""

    def __init__(self, whole: Seat) -> None:
        self.whole, self.cohort = whole, Remote(whole.cohort)

    def decide(self, *_: Any, number: int, affordable: Any) -> None:
        """Let nobody decide; bounds need to know how many rounds there were."""
        self.whole.cohort.ledger.rounds = self.whole.attendance.spent(number + 1)

    def players(self) -> dict[str, object]:
        """Nobody has a memory here."""
        return {}


class SharedGame(Game):
    """A game of whose cohorts those in some ``places`` are elsewhere.

    ``ask`` is called with a round that has begun, or is played; it returns what each share says.
    """

    def __init__(
        self, whole: Game, places: Sequence[int], ask: Callable[[Round], list[Any]]
    ) -> None:
        vars(self).update(vars(whole))
        away = set(places)
        self.seats = tuple(RemoteSeat(s) if i in away else s for i, s in enumerate(whole.seats))
        self._ask = ask

    def load(self, begun: Round) -> Array | None:
        """Return what all come to in the market."""
        if self.market is None:
            return None
        return np.asarray(self.market.aggregate(begun.decisions) + sum(self._ask(begun)))

    def sums(self, played: Round) -> dict[str, Array]:
        """Return what the agents of each cohort come to, wherever they are."""
        sums = super().sums(played)
        for answer in self._ask(played):
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
        self._given: dict[Any, Task] = {}
        self._run = ""

    def give(self, task: Task) -> None:
        """Hand a task to the worker that has the share, or to one with few."""
        place, held = task.recipe.place, Counter(self._homes.values())
        if place not in self._homes and (free := self._cluster.workers()):
            self._homes[place] = min(free, key=lambda worker: held[worker])
        self._run = task.recipe.run
        future = self._cluster.submit(_attempt_there, task, at=self._homes.get(place))
        self._given[future] = task

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there, after waiting so many seconds at most for the first.

        UserError if the scheduler, or the last worker, is gone.
        """
        while (future := self._cluster.next(patience)) is not None:
            place, patience = self._given.pop(future).recipe.place, 0.0
            if self._cluster.died(future):
                self._homes.pop(place, None)
                self._cluster.refill()
                yield place, DIED
            else:
                self._homes[place], answer = future.result()
                yield place, answer
            future.release()

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


@dataclass(eq=False)
class _Progress:
    """How far a share has come.

    Its worker has played ``reached`` rounds, as far as is known, and ``best`` is the most that any
    worker of it has; the rows of ``chunks`` have come; so many ``deaths`` since the last of them
    got further.
    """

    recipe: Recipe
    reached: int = 0
    best: int = 0
    chunks: int = 0
    deaths: int = 0


@dataclass(eq=False)
class _Chunk:
    """A chunk of the logs that waits for the shares' rows; and the state after it."""

    frames: Frames
    played: int
    state: Tree | None = None


class Conductor(Player):
    """Plays a run with a crew, or alone where nobody can be shared out.

    The agents are divided into so many ``shares``; workers import a user's modules, ``imports``;
    ``warn`` is called with a line for each cohort that is played here, not counted ones.
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
        self._crew, self._folder = crew, options.out.absolute() / ".partial"
        self._spec, self._warn = scenario.peopled, warn
        self._places = divisible(self._spec)[0]
        most = max((self._spec.cohort[place].count for place in self._places), default=1)
        run, of = os.urandom(8).hex(), min(shares, most)  # a name, on which nothing depends
        raw, folder = resolved(scenario.spec), str(self._folder)
        recipe = partial(Recipe, run, raw, options.log_every, imports, folder)
        self._shares = [_Progress(recipe(place, of)) for place in range(of)]
        self._asked: tuple[int, bool, Tree | None] = (0, False, None)
        self._said: dict[int, Any] = dict.fromkeys(range(of))  # answers; all of them if none is due
        self._closings: list[Any] = []
        self._waiting: deque[_Chunk] = deque()
        self._rows: defaultdict[int, list[Frames]] = defaultdict(list)  # by the chunk's number
        self._settled = self._merged = 0  # rounds, and chunks
        self._chunk = 0  # rounds of one, once they are known
        self._record = Record(self._folder, (), ())
        self._tell: Callable[[], Any] = lambda: None  # what the shares have done
        if self._places and not options.resume:
            self._ask(0)  # they build while the conductor does

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
        seats = [model.game.seats[place] for place in self._places]
        self._record = Record(self._folder, model.game.blocks, seats)
        self._chunk = model.journal.chunk_rounds
        self._whole, self._away = model.game, SharedGame(model.game, self._places, self._hear_of)
        self._windows: Any = model.journal.windows
        if self._windows is not None:
            self._windows.elsewhere = frozenset(seat.cohort.name for seat in seats)

    def _state(self) -> Tree:
        return self.model.state() | {"shared": True}

    def restore(self, state: Tree) -> None:
        """Continue from a checkpoint, with the record that lies beside it."""
        if not self.shared:
            super().restore(state)
            return
        self.model.game = self._away
        checkpoint.check_like(state, self._state())
        self.model.restore(state)
        self._settled = self.model.played
        self._merged = self._settled // self._chunk
        for share in self._shares:
            share.best, share.chunks = self._settled, self._merged
        self._record.restore(self._settled)

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left, until all shares have closed the run."""
        if not self.shared:
            super().play(directory, config, progress)
            return
        model, resumable = self.model, not self._away.forgetful()
        model.game = self._away

        def tell() -> None:
            self._put_together(directory, config)
            if progress is not None:
                progress(min(share.best for share in self._shares))

        self._tell = tell
        with interrupts_between_rounds() as stopped:
            model.stream_logs_to(lambda rows: self._waiting.append(_Chunk(rows, model.played)))
            if resumable and model.rounds > self._chunk:
                checkpoint.check_tree(self._state())
            while model.played < model.rounds and not stopped.is_set():
                decided = model.begin()
                self._record.note(decided.begun)
                self._record.open[-1]["outcome"] = model.conclude(decided).outcome
                if model.journal.at_chunk_end and resumable:
                    self._waiting[-1].state = self._state()
                if model.journal.at_chunk_end or len(self._record.open) == BLOCK:
                    self._record.close()
                    self._ask(model.played)
            model.journal.flush()
            self._record.close()
            self._ask(model.played, closing=True)
            self._closings = self._answers()
            if model.played < model.rounds:
                raise KeyboardInterrupt

    def _hear_of(self, played: Round) -> list[Any]:
        """Ask all shares what their agents come to in a round that has begun, or is played."""
        last = self._record.open[-1]
        last["outcome"] = played.outcome
        begun = None if played.losses else packed([last])
        self._ask(played.number + (begun is None), begun=begun)
        return self._answers()

    def _ask(self, rounds: int, *, closing: bool = False, begun: Tree | None = None) -> None:
        """Let all shares play so many rounds, and answer, once they have done what they have to."""
        self._answers()
        self._asked, self._said = (rounds, closing, begun), {}
        for place in range(len(self._shares)):
            self._give(place)

    def _answers(self) -> list[Any]:
        """Wait until all shares have done what they were asked; return their answers in order."""
        while len(self._said) < len(self._shares):
            for place, heard in self._crew.hear(LOOKING):
                self._note(place, heard)
            self._tell()
        return [self._said[place] for place in range(len(self._shares))]

    def _give(self, place: int) -> None:
        """Hand a share the blocks that it lacks, the first of many."""
        share = self._shares[place]
        blocks = self._record.blocks(share.reached, self._asked[0], AT_ONCE)
        known = share.reached, share.chunks * self._chunk, self._settled
        self._crew.give(Task(share.recipe, *known, *self._asked, blocks))

    def _note(self, place: int, heard: Answer | Failure | str) -> None:
        """Take note of an answer, or of a worker's death; ask again where more is to be done."""
        share, where = self._shares[place], f"share {place + 1} of {len(self._shares)}"
        if isinstance(heard, Failure):
            why = heard.error if heard.kind == "UserError" else f"{heard.kind}: {heard.error}"
            raise UserError(f"{where}: {why}")
        if isinstance(heard, str):
            share.deaths += 1
            if share.deaths == DEATHS:
                raise UserError(f"{where}: {heard}, {DEATHS} times in a row; use more --workers")
            self._give(place)
            return
        if heard.played > share.best:
            share.best, share.deaths = heard.played, 0
        share.reached = heard.played
        for number, frames in heard.rows:
            if number == share.chunks:  # others come again, from a share that was rebuilt
                self._rows[number].append(frames)
                share.chunks += 1
        if heard.played < self._asked[0]:
            self._give(place)
        else:
            self._said[place] = heard.said

    def _put_together(self, directory: RunDirectory, config: dict[str, Any]) -> None:
        """Write the chunks whose rows have come from all shares."""
        while self._waiting and all(share.chunks > self._merged for share in self._shares):
            chunk, theirs = self._waiting.popleft(), self._rows.pop(self._merged)
            directory.add_chunk(chunk.frames | self._rows_of_all(chunk.frames, theirs))
            self._merged += 1
            if chunk.state is not None:
                if self._windows is not None:  # some of the worst came later
                    chunk.state["journal"]["windows"]["worst"] = self._windows.state()["worst"]
                directory.save_checkpoint(chunk.state, config)
                self._settled = chunk.played

    def _rows_of_all(self, own: Frames, shares: Sequence[Frames]) -> Frames:
        """Return the rows of all agents; what bounds those of windows is known here."""
        parts = {name: [part[name] for part in shares if name in part] for name in TABLES}
        log = _stacked([own["regret_log"], *parts["regret_log"]], "round")
        windows, found = own["windows"], _stacked(parts["windows"], "first")
        if len(found):
            regrets = [name for name in found if name not in {"agent", "first", "last"}]
            theirs = windows["agent"].isin(found["agent"])
            windows.loc[theirs, regrets] = found[regrets].to_numpy()
        for place in self._places if len(found) else ():
            mine = found[found["agent"].isin(self.model.journal.logged[place].ids)]
            if len(mine):
                self._windows.note(self.model.game.cohorts[place].name, mine.reset_index())
        return {"regret_log": log, "windows": windows}

    def tables(self) -> Frames:
        """Return the tables that close the run."""
        self.model.game = self._whole
        join(self.model, self._closings)
        return super().tables()


def _stacked(parts: Sequence[pd.DataFrame], key: str) -> pd.DataFrame:
    """Put the rows of all shares in the order of a run on one machine: by ``key``, then agent."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    order = np.lexsort([table["agent"].to_numpy(), table[key].to_numpy()])
    return table.take(order).reset_index(drop=True)


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
        shares = workers or len(cluster.workers())
        with closing(DaskCrew(cluster)) as crew:
            yield Conductor(scenario, crew, options, shares, imports=imports, warn=warn)
