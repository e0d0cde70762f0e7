"""A recorded broadcast: what agents hear of a game that they do not move, and what came.

Where no outcome depends on what agents do, the game can be played without them, and any share of
them played after it, elsewhere, to the same bytes. Of a round they need the context, the drawn
atom of every block (the whole mixture where somebody draws for himself) and the outcome: a few
hundred bytes. Rounds travel in blocks, as trees of arrays that ``market.core.checkpoint`` can save.
Where a market answers them a round travels before it clears, with an outcome that nobody reads, and
its outcome alone follows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.market import Decisions, Market
from regretless.market.game.protocols import Adversary, Cohort
from regretless.market.game.round import Block, Game
from regretless.market.records import (
    Announcement,
    Context,
    Forecast,
    History,
    Mixture,
    OutcomeLaw,
    Round,
)

Tree = dict[str, Any]


class Recorder:
    """Notes of the rounds of a game what agents need who are elsewhere.

    Parameters
    ----------
    game : Game
        The whole, whose agents say what is needed: mixtures where somebody draws for himself, and
        else the drawn atoms alone; models' predictions where they are followed.

    Attributes
    ----------
    rounds : list of Round
        Since the last block was closed.
    """

    def __init__(self, game: Game) -> None:
        alone = {cohort.block for cohort in game.cohorts if cohort.private}
        self._whole = [i in alone for i in range(len(game.blocks))]
        led = {seat.cohort.block for seat in game.seats if seat.comparison.names}
        self._bases: dict[int, Any] = {i: game.blocks[i].forecaster for i in led}
        self.rounds, self._points = list[Round](), list[dict[int, Array]]()

    def begin(self) -> None:
        """Note what the models say of the round that has begun."""
        self._points.append({i: np.array(base.points) for i, base in self._bases.items()})

    def begun(self, begun: Round) -> Tree:
        """Return a block of the round that has begun."""
        return self._packed([begun], self._points[-1:])

    def played(self, first: int) -> Tree:
        """Return a block of the rounds that were played, without so many of the first."""
        return self._packed(self.rounds[first:], self._points[first:])

    def close(self) -> Tree:
        """Return a block of all rounds, and forget them."""
        block = self.played(0)
        self.rounds, self._points = [], []
        return block

    def _packed(self, rounds: Sequence[Round], points: Sequence[dict[int, Array]]) -> Tree:
        """Make a block; UserError if the context's features change."""
        contexts = [played.context for played in rounds]
        if len({context.names for context in contexts}) > 1:
            raise UserError("the context's features change; give every round the same")
        blocks = {
            str(i): _packed([played.forecasts[i] for played in rounds], whole=every)
            for i, every in enumerate(self._whole)
        }
        for i in self._bases:
            blocks[str(i)]["models"] = np.stack([own[i] for own in points])
        return outcomes_of(rounds) | {
            "names": list(contexts[0].names),
            "contexts": np.stack([context.values for context in contexts]),
            "blocks": blocks,
        }


def outcomes_of(rounds: Sequence[Round]) -> Tree:
    """Make a block of rounds that have been heard: what came of them is all that it says."""
    outcomes = np.stack([played.outcome for played in rounds])
    return {"first": rounds[0].number, "outcomes": outcomes}


def _packed(forecasts: Sequence[Forecast], *, whole: bool) -> Tree:
    atoms = [slice(None) if whole else slice(f.index, f.index + 1) for f in forecasts]
    kept = {
        key: [getattr(f.mixture, key)[own] for f, own in zip(forecasts, atoms, strict=True)]
        for key in ("points", "weights", "labels")
    }
    drawn = np.array([f.index if whole else 0 for f in forecasts])
    sizes = np.array([len(weights) for weights in kept["weights"]])
    return {key: np.concatenate(own) for key, own in kept.items()} | {
        "drawn": drawn,
        "sizes": sizes,
    }


def rounds_of(block: Tree) -> int:
    """Return the number before which a block's rounds end."""
    return int(block["first"]) + len(block["outcomes"])


@dataclass(frozen=True, eq=False)
class RecordedMixture(Mixture):
    """A mixture from which has been drawn.

    Parameters
    ----------
    index : int
        The drawn atom.
    models : array (M, n) or None
        What models predicted, where they are followed.
    """

    index: int = 0
    models: Array | None = None

    def draw(self, rng: np.random.Generator) -> Forecast:
        """Return what was drawn."""
        return Forecast(self, self.index)


def _drawn(part: Tree) -> Iterator[RecordedMixture]:
    said = part.get("models", repeat(None))
    ends = np.cumsum(part["sizes"])
    for size, end, index, models in zip(part["sizes"], ends, part["drawn"], said, strict=False):
        kept = {key: part[key][end - size : end] for key in ("points", "weights", "labels")}
        yield RecordedMixture(**kept, index=int(index), models=models)


class Tape(Remembering, Adversary):
    """Plays recorded rounds again, in the place of the adversary and of all forecasters.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.

    Attributes
    ----------
    mixtures : tuple of RecordedMixture
        Of the round that is played.
    outcome : array (d,)
        Of the same.
    """

    sees = frozenset({"history"})

    def __init__(self, outcomes: int) -> None:
        self.outcomes, self.mixtures = outcomes, tuple[RecordedMixture, ...]()
        self._coming: Iterator[Any] = iter(())
        self.outcome = np.zeros(outcomes)

    def load(self, block: Tree, played: int) -> None:
        """Go on with the rounds of a block that come after so many."""
        self._names, mixtures = tuple(block["names"]), map(_drawn, block["blocks"].values())
        rounds = zip(block["contexts"], block["outcomes"], zip(*mixtures, strict=True), strict=True)
        self._coming = islice(rounds, played - block["first"], None)

    def turn(self) -> Array:
        """Take up the next round; return the values of its context."""
        values, self.outcome, self.mixtures = next(self._coming)
        return np.asarray(values)

    def context(self, history: History) -> Context:
        """Begin the next round."""
        return Context(self._names, self.turn())

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal what came."""
        return OutcomeLaw.pure(self.outcome)


class Charged(Market):
    """A market that was cleared elsewhere: its outcomes come from a tape."""

    answers_at_once = False

    def __init__(self, cohorts: Sequence[Cohort], tape: Tape) -> None:
        super().__init__(cohorts, stream(0, "charged"))
        self._tape = tape

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Return what is on the tape by now."""
        return self._tape.outcome


@dataclass(frozen=True, eq=False)
class Echo(Block):
    """A block whose ``forecaster``, a ``Tape``, says again what was said.

    Parameters
    ----------
    place : int
        Among the blocks.
    """

    place: int = 0

    def mixture(self, context: Context) -> Mixture:
        """Return the recorded mixture."""
        tape: Any = self.forecaster
        said: Mixture = tape.mixtures[self.place]
        return said

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Learn nothing, and pass on what was said."""
        if self.relay is not None:
            self.relay.add(forecast, self.basis.transform(outcome))
