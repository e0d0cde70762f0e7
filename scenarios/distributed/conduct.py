"""The conductor's side of a run whose agents are shared out.

The conductor plays the game with those who cannot be shared out; the seats of all others are empty
here, and their cohorts stand-ins that nobody can look into. What was broadcast goes to the shares,
block by block: they play one while the conductor makes the next. Where a market answers to agents,
or the adversary is told what they do, it asks all shares in every round what theirs come to, and
adds that up (``market.numerics.exact_sum``). Rows of the logs come back, and are put together chunk
by chunk to the bytes of a run on one machine; so are the closing tables (``gather``).

A worker that dies is replaced: the share is rebuilt from its newest checkpoint and the record of
the broadcast, which lies in the run's folder. A conductor that dies leaves the record, the rows
that were put together and its own checkpoint there, from which ``--resume`` goes on.
"""

import os
from bisect import bisect
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import in_round
from regretless.market.game.adversary_view import summed
from regretless.market.game.round import (
    commit_and_draw,
    decide,
    offer,
    record,
    reveal,
    tell_adversary,
)
from regretless.market.logs.windows import bounded
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import resolved
from regretless.scenarios.distributed.away import divisible, journal_without, without
from regretless.scenarios.distributed.crew import Crew, DaskCrew
from regretless.scenarios.distributed.gather import filled, finish_windows, follow, stacked
from regretless.scenarios.distributed.record import Points, Recorder, Tree, rounds_of
from regretless.scenarios.distributed.worker import Answer, Frames, Recipe, Task
from regretless.scenarios.executor import Cluster
from regretless.scenarios.logs.directory import RunDirectory
from regretless.scenarios.run import Options, Player, closing_tables, interrupts_between_rounds
from regretless.scenarios.studies.directory import Failure

BLOCK = 100  # rounds of a block, at most; none goes over from one chunk of the logs to the next
AT_ONCE = 2  # blocks in a worker's hands, at most
LOOKING = 0.5  # seconds between two looks at whether the workers are there
DEATHS = 5  # in a row, of workers that got a share nowhere
ORDER = {"regret_log": ("agent", "round"), "windows": ("agent", "first")}  # the last key leads


@dataclass(eq=False)
class _Progress:
    """How far a share has come.

    Its worker has played ``reached`` rounds, as far as is known, and ``best`` is the most that any
    worker of it has; the rows of ``chunks`` have come; so many ``deaths`` since the last of them
    got further.
    """

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
        crew: Crew,
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
        recipe = Recipe(run, resolved(scenario.spec), options.log_every, imports, str(self._folder))
        self._recipes = [replace(recipe, place=place, of=of) for place in range(of)]
        self._shares = [_Progress() for _ in self._recipes]
        self._firsts, self._recorded = list[int](), 0  # first rounds of the blocks, and all rounds
        self._open: list[tuple[Round, Points]] = []  # of the block that is made
        self._asked: tuple[int, str, Tree | None] = (0, "", None)
        self._said: dict[int, Any] = dict.fromkeys(range(of))  # answers; all of them if none is due
        self._closings: list[Any] = []
        self._waiting: deque[_Chunk] = deque()
        self._rows: defaultdict[int, list[Frames]] = defaultdict(list)  # by the chunk's number
        self._settled = self._merged = 0  # rounds, and chunks
        self._chunk = 0  # rounds of one, once they are known
        self._progress: Callable[[int], Any] = lambda _: None
        self._write: Callable[[], Any] = lambda: None  # the chunks that are whole
        self._window_bounds: dict[int, Array] = {}
        self._read = lru_cache(maxsize=4)(lambda first: checkpoint.load(self._file(first)))
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
        if not self.shared:
            return
        self._away = without(model.game, self._places)
        self._seats = [model.game.seats[place] for place in self._places]
        self._recorder = Recorder(model.game.blocks, self._seats)
        self._journal = journal_without(model, self._places)
        self._journal.sink = lambda frames: self._waiting.append(_Chunk(frames, model.played))
        self._chunk = self._journal.chunk_rounds

    def _state(self) -> Tree:
        """Return what a checkpoint needs of the market without the agents who are elsewhere."""
        with self._absent():
            return self.model.state() | {"shared": True, "here": self._journal.state()}

    @contextmanager
    def _absent(self) -> Iterator[None]:
        """Let the market be without the agents who are elsewhere."""
        before, self.model.game = self.model.game, self._away
        try:
            yield
        finally:
            self.model.game = before

    def restore(self, state: Tree) -> None:
        """Continue from a checkpoint, with the record that lies beside it."""
        if not self.shared:
            super().restore(state)
            return
        checkpoint.check_like(state, self._state())
        with self._absent():
            self.model.restore(state)
        self._journal.restore(state["here"])
        self._settled = self.model.played
        self._merged = self._settled // self._chunk
        for share in self._shares:
            share.best, share.chunks = self._settled, self._merged
        for file in sorted(self._folder.glob("record-*.npz")):
            if int(file.stem.rpartition("-")[2]) == self._recorded < self._settled:
                self._firsts.append(self._recorded)
                self._recorded = rounds_of(self._read(self._recorded))
        if self._recorded != self._settled:
            lack = f"--resume: {self._folder} lacks a part of the record"
            raise UserError(f"{lack}; start again with --overwrite")

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left, until all shares have closed the run."""
        if not self.shared:
            super().play(directory, config, progress)
            return
        self._progress, model = progress or self._progress, self.model
        self._write = partial(self._put_together, directory, config)
        resumable = not self._away.forgetful()
        if resumable and model.rounds > self._chunk:
            checkpoint.check_tree(self._state())
        with interrupts_between_rounds() as stopped, self._absent():
            while model.played < model.rounds and not stopped.is_set():
                with in_round(model.played):
                    self._round()
                if self._journal.at_chunk_end:
                    self._waiting[-1].state = self._state() if resumable else None
                if self._journal.at_chunk_end or len(self._open) == BLOCK:
                    self._close_block()
                    self._ask(self._recorded)
            self._journal.flush()
            self._close_block()
            self._ask(self._recorded, "closing")
            self._closings = self._answers()
            if model.played < model.rounds:
                raise KeyboardInterrupt

    def _round(self) -> None:
        """Play a round with those who are here, and note what the others need of it."""
        game, load, sums = self._away, None, None
        decided = decide(game, commit_and_draw(game, offer(game)))
        points = self._recorder.points()
        if game.market is not None:
            self._ask(self.model.played, "load", self._recorder.packed([(decided.begun, points)]))
            load = game.market.aggregate(decided.begun.decisions) + sum(self._answers())
        played = reveal(game, decided, load)
        record(game, decided, played)
        self._open.append((played, points))
        if game.adversary.observes_play:
            sums = summed(game.adversary.payoff, game.cohorts, played)
            self._ask(self.model.played, "sums")
            for answer in self._answers():
                for name, own in answer.items():
                    sums[name] = sums[name] + own
        self._note_round(tell_adversary(game, played, sums))

    def _note_round(self, played: Round) -> None:
        """Note a round, as ``MarketModel.step`` does, and what bounds the windows that end."""
        model = self.model
        model.passed(played)
        for seat in self._seats:
            seat.cohort.ledger.rounds = seat.attendance.spent(model.played)
        if model.tracker is not None:
            model.tracker.add(played)
        self._journal.add(played)
        model.bounds.add(model.played)
        windows = model.journal.windows
        for first, last in windows.spans if windows is not None and windows.bounded else ():
            if last == played.number:
                logged = ((place, model.journal.logged[place]) for place in self._places)
                found = [bounded(model.guarantees[at], first, last, own) for at, own in logged]
                self._window_bounds[first] = np.concatenate(found)

    def _close_block(self) -> None:
        if self._open:
            block, self._open = self._recorder.packed(self._open), []
            checkpoint.save(self._file(block["first"]), block)
            self._firsts.append(block["first"])
            self._recorded = rounds_of(block)

    def _file(self, first: int) -> Path:
        return self._folder / f"record-{first:09d}.npz"

    def _ask(self, rounds: int, ask: str = "", begun: Tree | None = None) -> None:
        """Let all shares play so many rounds, and answer, once they have done what they have to."""
        self._answers()
        self._asked, self._said = (rounds, ask, begun), {}
        for place in range(len(self._shares)):
            self._give(place)

    def _answers(self) -> list[Any]:
        """Wait until all shares have done what they were asked; return their answers in order."""
        while len(self._said) < len(self._shares):
            for place, heard in self._crew.hear(LOOKING):
                self._note(place, heard)
            self._write()
            self._progress(min(share.best for share in self._shares))
        return [self._said[place] for place in range(len(self._shares))]

    def _give(self, place: int) -> None:
        """Hand a share the blocks that it lacks, the first of many."""
        share, blocks = self._shares[place], list[Tree]()
        first = share.reached
        while first < self._asked[0] and len(blocks) < AT_ONCE:
            if first < self._recorded:
                blocks.append(self._read(self._firsts[bisect(self._firsts, first) - 1]))
            else:
                blocks.append(self._recorder.packed(self._open[first - self._recorded :]))
            first = rounds_of(blocks[-1])
        known = share.reached, share.chunks * self._chunk, self._settled
        self._crew.give(Task(self._recipes[place], *known, *self._asked, blocks))

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
            chunk = self._waiting.popleft()
            parts = [chunk.frames, *self._rows.pop(self._merged)]
            rows = {
                name: stacked([own[name] for own in parts if name in own], keys)
                for name, keys in ORDER.items()
            }
            if len(rows["windows"]):
                finish_windows(self.model, rows["windows"], self._window_bounds, self._places)
            directory.add_chunk(chunk.frames | rows)
            self._merged += 1
            if chunk.state is not None:
                chunk.state["journal"] = self.model.journal.state()  # with the worst windows
                directory.save_checkpoint(chunk.state, config)
                self._settled = chunk.played

    def tables(self) -> Frames:
        """Return the tables that close the run."""
        if not self.shared:
            return super().tables()
        follow(self.model, self._closings)
        self.closed = filled(self.model, self._closings, self._places, closing_tables(self.model))
        return self.closed


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
