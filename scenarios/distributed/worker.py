"""A worker's side: a share of a run, built where it plays, and rebuilt wherever it is asked for.

A task brings blocks of the recorded broadcast; the answer brings the rows of the logs that were
filled, and at the end what closes the run. A worker keeps its share between tasks. One that has
none, because its process is new, builds it, goes on from the newest checkpoint that it finds (in
the run's folder, where it sees that) or from the first round, and says which rounds it lacks.
"""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.game.round import Decided
from regretless.market.records import Round
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import validated
from regretless.scenarios.distributed.record import Said, Tree, unpacked
from regretless.scenarios.distributed.share import Share, divisible, share_of
from regretless.scenarios.imports import import_modules
from regretless.scenarios.studies.conduct import TURN
from regretless.scenarios.studies.directory import Failure, failure_of

TABLES = ("regret_log", "windows")  # streamed ones that agents have rows in
SELDOM = 50.0  # of its own time pass before the next checkpoint
Frames = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Recipe:
    """What a share is built from, as plain values.

    ``run`` tells runs apart in a worker that serves several, ``raw`` is the resolved scenario,
    ``imports`` are a user's modules. Checkpoints go to the ``folder``, if the worker sees it.
    ``place`` says which share it is, ``of`` how many.
    """

    run: str
    raw: dict[str, Any]
    log_every: int
    imports: tuple[str, ...]
    folder: str
    place: int = 0
    of: int = 1


@dataclass(frozen=True, eq=False)
class Task:
    """Rounds to be played, and what is asked after them.

    The share has played ``reached`` rounds, as far as is known; rows are wanted from round
    ``after`` on; nobody will go back behind ``settled``. Once ``rounds`` are played, perhaps after
    further tasks, an answer is due: where a block ``begun`` is given of the round that begins, in
    which agents are to decide and wait, what they come to in the market; ``closing``: what closes
    the run; else what the adversary is to be told of the last round, if it is.
    """

    recipe: Recipe
    reached: int
    after: int
    settled: int
    rounds: int
    closing: bool
    begun: Tree | None
    blocks: Sequence[Tree]


@dataclass(frozen=True, eq=False)
class Answer:
    """How many rounds a share has played, and what was asked, once it has come so far.

    ``rows`` are the number of each chunk of the logs that was filled, and its tables.
    """

    played: int
    rows: Sequence[tuple[int, Frames]]
    said: Any = None


class Shard:
    """A share that is being played.

    ``after``: a round: it goes on from the newest checkpoint before that can be used, if there is
    one.
    """

    def __init__(self, recipe: Recipe, after: int) -> None:
        import_modules([n for n in recipe.imports if n.removesuffix(".py") not in sys.modules])
        self._recipe, self._folder = recipe, Path(recipe.folder)
        self._identity = json.dumps([recipe.raw, recipe.log_every, recipe.place, recipe.of])
        self._next_save = 0.0
        self._build()
        for number in sorted((n for n in self._files() if n <= after), reverse=True):
            try:
                self._restore(number)
                break
            except checkpoint.DAMAGED:
                self._build()  # some of it may have been restored

    def _build(self) -> None:
        """Build the share, which has played no round."""
        recipe = self._recipe
        scenario = Scenario(validated(deepcopy(recipe.raw), origin=Path()))
        market = scenario.build(log_every=recipe.log_every)
        places, _ = divisible(scenario.peopled, market.game)
        self.share: Share = share_of(market, places, recipe.place, recipe.of)
        self._resumable = not self.share.model.game.forgetful()
        self._rows: list[tuple[int, Frames]] = []
        self._chunk = 0
        self._begun: Decided | None = None
        self._last: Round | None = None
        self.share.model.stream_logs_to(self._take)

    def _take(self, chunk: Frames) -> None:
        frames = {name: chunk[name] for name in TABLES if len(chunk[name])}
        self._rows.append((self._chunk, frames))
        self._chunk += 1

    @property
    def played(self) -> int:
        """Rounds played."""
        return self.share.model.played

    def play(self, task: Task) -> Answer:
        """Play the rounds of a task that come next, and say what is asked then."""
        before, model = self.played, self.share.model
        for block in task.blocks:
            for heard in unpacked(block):
                if heard["number"][0] == self.played:
                    self._through(heard)
        if model.journal.at_chunk_end and before < self.played < model.rounds:
            self._save(task.settled)
        said = self._said(task) if self.played == task.rounds else None
        rows, self._rows = self._rows, []
        return Answer(self.played, rows, said)

    def _decided(self, said: Said) -> Decided:
        """Return the round that begins, which begins once."""
        if self._begun is None:
            self.share.tape.said = said
            self._begun = self.share.model.begin()
        return self._begun

    def _through(self, said: Said) -> None:
        """Play a round to its end."""
        decided = self._decided(said)
        begun, self._begun = replace(decided.begun, outcome=said["outcome"]), None
        self._last = self.share.model.conclude(replace(decided, begun=begun))

    def _said(self, task: Task) -> Any:
        """Return what a task asks for."""
        if task.begun is not None:
            return self.share.load(self._decided(next(unpacked(task.begun))).begun)
        if task.closing:
            self.share.model.journal.flush()
            return self.share.closing()
        return None if self._last is None else self.share.sums(self._last)

    def _save(self, settled: int) -> None:
        """Keep a checkpoint if there has been none for long; remove those that nobody needs."""
        began, files = time.monotonic(), self._files()
        if not self._resumable or began < self._next_save or not self._folder.is_dir():
            return  # or it is another machine, that does not see the folder
        with suppress(OSError):  # no room: the rounds will be played again
            checkpoint.save(self._file(self.played), self._state())
        needed = max((number for number in files if number <= settled), default=0)
        for number in files:
            if number < needed:
                files[number].unlink(missing_ok=True)
        now = time.monotonic()
        self._next_save = now + SELDOM * (now - began)

    def _state(self) -> Tree:
        return {"of": self._identity, "chunk": self._chunk, "state": self.share.model.state()}

    def _restore(self, number: int) -> None:
        """Go on from a checkpoint; one of ``DAMAGED`` if it is damaged or of something else."""
        tree = checkpoint.load(self._file(number))
        checkpoint.check_like(tree, self._state())
        if tree["of"] != self._identity:
            raise ValueError("it is of another share")
        self.share.model.restore(tree["state"])
        self._chunk = int(tree["chunk"])
        if self.played != number:
            raise ValueError(f"it is of round {self.played}")

    def _file(self, number: int) -> Path:
        return self._folder / f"shard-{self._recipe.place}-{number:09d}.npz"

    def _files(self) -> dict[int, Path]:
        """Return the checkpoints that there are, by their rounds."""
        found = self._folder.glob(f"shard-{self._recipe.place}-*.npz") if self._resumable else ()
        return {int(file.stem.rpartition("-")[2]): file for file in found}


_HERE: dict[tuple[str, int], Shard] = {}  # the shares that this process plays


def attempt(task: Task) -> Answer | Failure:
    """Do a task with the share that is here, or with a new one that begins where it can.

    What goes wrong comes back.
    """
    key = task.recipe.run, task.recipe.place
    try:
        with TURN:
            if key not in _HERE or _HERE[key].played != task.reached:
                _HERE[key] = Shard(task.recipe, task.after)
            answer = _HERE[key].play(task)
            if task.closing and answer.said is not None:
                forget(*key)
            return answer
    except BaseException as error:  # noqa: BLE001 - a user's code may raise SystemExit too
        return failure_of(error)


def forget(run: str, place: int | None = None) -> None:
    """Let go of a share, or of all that a run has here."""
    for key in [key for key in _HERE if key[0] == run and place in {None, key[1]}]:
        del _HERE[key]
