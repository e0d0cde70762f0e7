"""A recorded broadcast: what agents hear of a game that they do not move, and its outcomes.

Where no outcome depends on what agents do, the game can be played without them, and any share of
them played after it, elsewhere, to the same bytes, with players that say again what was said. Of a
round agents need the context, the drawn atom of every block (the whole mixture where somebody draws
for himself) and the outcome: a few hundred bytes. Where outcomes answer agents a round travels
before it clears, with an outcome that nobody reads, and comes again with its own.

A round is a flat table of arrays. Rounds travel, and lie in files, in blocks: of every array those
of all rounds after one another, and where each ends.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import alone
from regretless.market.game.protocols import Adversary, Forecaster
from regretless.market.game.round import Block
from regretless.market.game.seats import Seat
from regretless.market.records import (
    AdversaryView,
    Context,
    Forecast,
    History,
    Mixture,
    OutcomeDistribution,
    Round,
)

Tree = dict[str, Any]
Said = dict[str, Any]  # of a round: arrays by name
BLOCK = 100  # rounds of a block, at most; none goes over from one chunk of the logs to the next
PARTS = ("points", "weights", "labels")


def packed(rounds: Sequence[Said]) -> Tree:
    """Make a block of rounds."""
    columns = {name: [said[name] for said in rounds] for name in rounds[0]}
    return {
        name: {"rows": np.concatenate(own), "ends": np.cumsum([len(part) for part in own])}
        for name, own in columns.items()
    }


def unpacked(block: Tree) -> Iterator[Said]:
    """Yield the rounds of a block."""
    columns = [np.split(own["rows"], own["ends"][:-1]) for own in block.values()]
    for parts in zip(*columns, strict=True):
        yield dict(zip(block, parts, strict=True))


def end_of(block: Tree) -> int:
    """Return the number before which a block's rounds end."""
    return int(block["number"]["rows"][-1]) + 1


class Record:
    """The rounds of a game so far: in files of a folder, and the last ones, ``open``, here.

    ``seats`` (sequence of Seat): of those for whom it is kept, who say what is needed: mixtures
    where somebody draws for himself, and else the drawn atoms alone; models' predictions where they
    are followed.
    """

    def __init__(self, folder: Path, blocks: Sequence[Block], seats: Sequence[Seat]) -> None:
        self._folder, self._blocks = folder, tuple(enumerate(blocks))
        self._whole = {seat.cohort.block for seat in seats if seat.cohort.private}
        self._led = {seat.cohort.block for seat in seats if seat.comparison.names}
        self._firsts, self.closed = list[int](), 0  # of the blocks, and rounds in them
        self.open: list[Said] = []
        self._read = lru_cache(maxsize=4)(lambda first: checkpoint.load(self._file(first)))

    def note(self, begun: Round) -> None:
        """Note a round in which everybody has decided and nobody learned, with its draw."""
        names, values = begun.context.names, begun.context.values
        said = {"number": np.array([begun.number]), "outcome": begun.outcome, "values": values}
        said["names"] = np.array(names, dtype=np.str_)
        for i, block in self._blocks:
            forecast = begun.forecasts[i]
            if i not in self._whole:
                forecast = Forecast(alone(forecast), 0)
            parts = {key: vars(forecast.mixture)[key] for key in PARTS}
            parts |= {"drawn": np.array([forecast.index])}
            if i in self._led:
                parts["models"] = np.array(block.forecaster.points)
            said |= {f"{i}.{key}": part for key, part in parts.items() if part is not None}
        self.open.append(said)

    def close(self) -> None:
        """Make a block of the open rounds, and write it."""
        if self.open:
            checkpoint.save(self._file(self.closed), packed(self.open))
            self._firsts.append(self.closed)
            self.closed, self.open = self.closed + len(self.open), []

    def restore(self, played: int) -> None:
        """Go on after so many rounds; UserError if not all of them are there."""
        for file in sorted(self._folder.glob("record-*.npz")):
            if int(file.stem.rpartition("-")[2]) == self.closed < played:
                self._firsts.append(self.closed)
                self.closed = end_of(self._read(self.closed))
        if self.closed != played:
            lack = f"--resume: {self._folder} lacks a part of the record"
            raise UserError(f"{lack}; start again with --overwrite")

    def blocks(self, first: int, last: int, most: int) -> list[Tree]:
        """Return the first blocks, so many at most, of the rounds from one to before another."""
        found = list[Tree]()
        while first < last and len(found) < most:
            closed = first < self.closed
            start = self._firsts[bisect(self._firsts, first) - 1] if closed else first
            rounds = slice(first - self.closed, last - self.closed)
            found.append(self._read(start) if closed else packed(self.open[rounds]))
            first = end_of(found[-1])
        return found

    def _file(self, first: int) -> Path:
        return self._folder / f"record-{first:09d}.npz"


@dataclass(frozen=True, eq=False)
class Drawn(Mixture):
    """A mixture from which the atom ``index`` has been drawn."""

    index: int = 0

    def draw(self, rng: np.random.Generator) -> Forecast:
        """Return what was drawn."""
        return Forecast(self, self.index)


class Tape(Checkpointable, Adversary):
    """An adversary that plays recorded rounds again.

    ``outcomes``: coordinates of an outcome, d. ``said``: the round that is played next.
    """

    sees = frozenset({"history"})

    def __init__(self, outcomes: int) -> None:
        self.outcomes, self.said = outcomes, Said()

    def context(self, history: History) -> Context:
        """Begin the next round."""
        return Context(tuple(map(str, self.said["names"])), self.said["values"])

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the realised outcome."""
        return OutcomeDistribution.pure(self.said["outcome"])


class Recorded(Checkpointable, Forecaster):
    """A forecaster that says again what that of the block in this ``place`` said."""

    def __init__(self, tape: Tape, place: int) -> None:
        self._tape, self._place = tape, place

    def _said(self, part: str) -> Any:
        return self._tape.said.get(f"{self._place}.{part}")

    def mixture(self, x: object = None) -> Mixture:
        """Return the recorded mixture."""
        arrays = {key: self._said(key) for key in PARTS}
        return Drawn(**arrays, index=int(self._said("drawn")[0]))

    def update(self, y: ArrayLike) -> None:
        """Learn nothing."""

    @property
    def points(self) -> Array:
        """What the models predicted in the open round (M, n)."""
        return np.asarray(self._said("models"))


class Echo(Block):
    """A block of which all is recorded, labels too."""

    def mixture(self, context: Context) -> Mixture:
        """Return what was said."""
        return self.forecaster.mixture(context)

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Pass on what was said."""
        if self.relay is not None:
            self.relay.add(forecast, self.basis.transform(outcome))
