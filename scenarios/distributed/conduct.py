"""The conductor's side of a run whose agents are shared out.

The conductor plays the game with those who cannot be shared out; the seats of all others are empty
here, and their cohorts stand-ins that nobody can look into. What was broadcast goes to the shares,
block by block, a few blocks ahead of the slowest. Where a market answers to agents, or the
adversary is told what they do, it asks all shares in every round what theirs come to, and adds that
up (``market.numerics.exact_sum``). Rows of the logs come back, and are put together chunk by chunk
to the bytes of a run on one machine; so are the closing tables (``gather``).

A worker that dies is replaced: the share is rebuilt from its newest checkpoint and the record of
the broadcast, which lies in the run's folder. A conductor that dies leaves the record, the rows
that were put together and its own checkpoint there, from which ``--resume`` goes on.
"""

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
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
from regretless.scenarios.distributed.record import Recorder, Tree, outcomes_of, rounds_of
from regretless.scenarios.distributed.worker import Answer, Closing, Frames, Recipe, Task
from regretless.scenarios.executor import Cluster
from regretless.scenarios.logs.directory import RunDirectory
from regretless.scenarios.run import Alone, Options, closing_tables, interrupts_between_rounds
from regretless.scenarios.studies.play import Failure

BLOCK = 100  # rounds of a block, at most; none goes over from one chunk of the logs to the next
AHEAD = 4  # blocks that the conductor is ahead of the slowest share, at most
AT_ONCE = AHEAD // 2  # of them in hand, at most: the next ones are made meanwhile
LOOKING = 0.5  # seconds between two looks at whether somebody presses Ctrl-C
DEATHS = 5  # in a row, of workers that got a share nowhere
ORDER = {"regret_log": ("agent", "round"), "windows": ("agent", "first")}  # the last key leads


@dataclass(eq=False)
class _Progress:
    """How far a share has come.

    Parameters
    ----------
    reached : int
        Rounds that its worker has played; -1 where that is not known.
    best : int
        The most that any worker of it has.
    begun : int
        The round in which its agents have decided and wait; -1 for none.
    chunks : int
        Of the logs whose rows have come.
    deaths : int
        Of its workers, since the last of them got further.
    """

    reached: int = -1
    best: int = 0
    begun: int = -1
    chunks: int = 0
    deaths: int = 0
    busy: bool = False
    closing: Closing | None = None


@dataclass(eq=False)
class _Chunk:
    """A chunk of the logs that waits for the shares' rows; and the state after it."""

    frames: Frames
    played: int
    state: Tree | None = None


class Conductor(Alone):
    """Plays a run with a crew, or alone where nobody can be shared out.

    Parameters
    ----------
    options : Options
        How to run.
    shares : int
        Into how many the agents are divided.
    imports : tuple of str
        A user's modules, which the workers import.
    warn : callable
        Called with a line for each cohort that is played here, not counted ones.
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
        self._blocks: dict[int, int] = {}  # by the first round, the one before which it ends
        self._said: dict[int, Answer] | None = None  # of the question that is being asked
        self._begun: Tree | None = None
        self._waiting: deque[_Chunk] = deque()
        self._rows: defaultdict[int, list[Frames]] = defaultdict(list)  # by the chunk's number
        self._settled = self._merged = 0  # rounds, and chunks
        self._chunk = 0  # rounds of one, once they are known
        self._over = False
        self._window_bounds: dict[int, Array] = {}
        self._read = lru_cache(maxsize=2 * AHEAD)(lambda first: checkpoint.load(self._file(first)))
        if self._places and not options.resume:  # they build while the conductor does
            for place in range(of):
                self._give(place)

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether anybody is elsewhere."""
        return bool(self._places)

    def take(self, model: MarketModel) -> None:
        """Be given the whole market, some of whose agents stay away."""
        super().take(model)
        self._places, kept = divisible(self._spec, model.game)
        if not self.shared and not kept:
            kept = {"--workers": "all agents are counted, by type"}
        for key, why in kept.items():
            self._warn(f"{key}: {why}; played in this process")
        if not self.shared:
            return
        self._away = without(model.game, self._places)
        self._seats = [model.game.seats[place] for place in self._places]
        self._open = Recorder(model.game.blocks, self._seats)
        self._told = model.game.adversary.observes_play
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
            first = int(file.stem.rpartition("-")[2])
            if first == self._recorded < self._settled:
                self._blocks[first] = rounds_of(self._read(first))
        if self._recorded != self._settled:
            told = f"--resume: {self._folder} lacks a part of the record"
            raise UserError(f"{told}; start again with --overwrite")

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left, until all shares have told their end."""
        if not self.shared:
            super().play(directory, config, progress)
            return
        resumable = not self._away.forgetful()
        if resumable and self.model.rounds > self._chunk:
            checkpoint.check_tree(self._state())
        with interrupts_between_rounds() as stopped, self._absent():
            while not all(share.closing for share in self._shares):
                self._over = self.model.played == self.model.rounds or stopped.is_set()
                ready = not self._over and self._ahead < AHEAD
                if ready:
                    with in_round(self.model.played):
                        self._round(resumable=resumable)
                elif self._over:
                    self._journal.flush()
                    self._close_block()
                self._listen(0.0 if ready else LOOKING)
                self._put_together(directory, config)
                if progress is not None:
                    progress(min(share.best for share in self._shares))
            if stopped.is_set():
                raise KeyboardInterrupt

    def _listen(self, patience: float) -> None:
        """Give everybody something to do, and take note of what is said."""
        for place in range(len(self._shares)):
            self._give(place)
        for heard in self._crew.hear(patience):
            self._note(*heard)

    @property
    def _ahead(self) -> int:
        """How many blocks the slowest share has not played."""
        slowest = min(share.best for share in self._shares)
        return sum(last > slowest for last in islice(reversed(self._blocks.values()), AHEAD))

    @property
    def _recorded(self) -> int:
        """How many rounds there are blocks of."""
        return next(reversed(self._blocks.values()), 0)

    def _round(self, *, resumable: bool) -> None:
        """Play a round with those who are here, and keep what the others need of it."""
        game, load, sums = self._away, None, None
        decided = decide(game, commit_and_draw(game, offer(game)))
        self._open.begin()
        if game.market is not None:
            load = game.market.aggregate(decided.begun.decisions)
            load = load + sum(said.load for said in self._ask(decided.begun))
        played = reveal(game, decided, load)
        record(game, decided, played)
        self._open.rounds.append(played)
        if self._told:
            sums = summed(game.adversary.payoff, game.cohorts, played)
            for said in self._ask():
                for name, own in said.sums.items():
                    sums[name] = sums[name] + own
        self._note_round(tell_adversary(game, played, sums))
        if self._journal.at_chunk_end:
            self._waiting[-1].state = self._state() if resumable else None
        if self._journal.at_chunk_end or len(self._open.rounds) == BLOCK:
            self._close_block()

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

    def _ask(self, begun: Round | None = None) -> list[Any]:
        """Return what all shares say, in order, of the last round or of one that has begun."""
        self._begun = None if begun is None else self._open.begun(begun)
        self._said = {}
        while len(self._said) < len(self._shares):
            self._listen(LOOKING)
        said, self._said, self._begun = self._said, None, None
        return [said[place] for place in range(len(self._shares))]

    def _close_block(self) -> None:
        if self._open.rounds:
            block = self._open.close()
            checkpoint.save(self._file(block["first"]), block)
            self._blocks[block["first"]] = rounds_of(block)

    def _file(self, first: int) -> Path:
        return self._folder / f"record-{first:09d}.npz"

    def _give(self, place: int) -> None:
        """Hand a share on that has nothing to do, if there is something to be done."""
        share = self._shares[place]
        if not share.busy and (task := self._task(place)) is not None:
            share.busy = True
            self._crew.give(task)

    def _task(self, place: int) -> Task | None:
        """Return what a share is to do next; None if it has to wait."""
        share, recipe = self._shares[place], self._recipes[place]
        known = share.reached, share.chunks * self._chunk, self._settled
        if share.reached < 0:
            return Task(recipe, *known)
        recipe = replace(recipe, raw={}, imports=(), folder="")
        first, end, coming = share.reached, known[1] + self._chunk, list[Tree]()
        while first < end and len(coming) < AT_ONCE and (block := self._block_of(first, share)):
            coming.append(block)
            first = rounds_of(block)
        begun = self._begun if first == self._now and place not in (self._said or {}) else None
        if coming or begun:
            return Task(recipe, *known, coming, begun=begun)
        close = self._over and share.reached == self.model.played and share.closing is None
        return Task(recipe, *known, close=True) if close else None

    @property
    def _now(self) -> int:
        """How many rounds have an outcome."""
        return self._recorded + len(self._open.rounds)

    def _block_of(self, number: int, share: _Progress) -> Tree | None:
        """Return a block with a round; one of the open block only to who is asked."""
        if number in self._blocks:
            return self._read(number)
        if number < self._recorded:
            return self._read(max(first for first in self._blocks if first < number))
        if self._said is None or number >= self._now:
            return None
        if number == share.begun == self._now - 1:
            return outcomes_of(self._open.rounds[-1:])
        return self._open.played(number - self._recorded)

    def _note(self, place: int, heard: Answer | Failure | str) -> None:
        """Take note of an answer, or of a worker's death."""
        share = self._shares[place]
        share.busy = False
        where = f"share {place + 1} of {len(self._shares)}"
        if isinstance(heard, Failure):
            told = heard.error if heard.kind == "UserError" else f"{heard.kind}: {heard.error}"
            raise UserError(f"{where}: {told}")
        if isinstance(heard, str):
            share.reached, share.deaths = -1, share.deaths + 1
            if share.deaths == DEATHS:
                raise UserError(f"{where}: {heard}, {DEATHS} times in a row; use more --workers")
            return
        if heard.played > share.best or heard.closing is not None:
            share.best, share.deaths = heard.played, 0
        share.reached, share.closing = heard.played, heard.closing
        share.begun = -1 if heard.load is None else heard.played
        for number, frames in heard.rows:
            if number == share.chunks:  # others are told again, by a share that was rebuilt
                self._rows[number].append(frames)
                share.chunks += 1
        answers = (heard.sums if self._begun is None else heard.load) is not None
        if self._said is not None and heard.played == self._now and answers:
            self._said[place] = heard

    def _put_together(self, directory: RunDirectory, config: dict[str, Any]) -> None:
        """Write the chunks of which all shares have told their rows."""
        while self._waiting and all(share.chunks > self._merged for share in self._shares):
            chunk = self._waiting.popleft()
            told = [chunk.frames, *self._rows.pop(self._merged)]
            rows = {
                name: stacked([own[name] for own in told if name in own], keys)
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
        ends = [share.closing for share in self._shares if share.closing is not None]
        follow(self.model, ends)
        own = closing_tables(self.model)
        self.closed = filled(self.model, ends, self._places, own)
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

    Parameters
    ----------
    workers : int, optional
        Shares, a process of this machine for each; on a cluster one per worker by default.
    scheduler : str, optional
        Address of a Dask scheduler.
    imports : tuple of str
        A user's modules.
    warn : callable
        Called with a line for each cohort that is not shared out.

    Raises
    ------
    UserError
        If Dask is not installed, or the cluster is not there.
    """
    with closing(Cluster(workers, scheduler, imports)) as cluster:
        shares = workers or len(cluster.workers())
        with closing(DaskCrew(cluster)) as crew:
            yield Conductor(scenario, crew, options, shares, imports=imports, warn=warn)
