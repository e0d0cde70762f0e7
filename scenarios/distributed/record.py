"""A recorded broadcast: what agents hear of a game that they do not move, and its outcomes.

Where no outcome depends on what agents do, the game can be played without them, and any share of
them played after it, elsewhere, to the same bytes, with players that say again what was said. Of a
round agents need the context, the drawn atom of every block (the whole mixture where somebody draws
for himself) and the outcome: a few hundred bytes. Rounds travel in blocks, as trees of arrays that
``market.core.checkpoint`` can save. Where outcomes answer agents a round travels before it clears,
with an outcome that nobody reads, and its outcome alone follows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
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
PARTS = ("points", "weights", "labels")


Points = dict[int, Array]  # what the models of blocks said of a round, where they are followed


class Recorder:
    """Packs of rounds of a game what agents need who are elsewhere.

    ``seats`` (sequence of Seat): of those agents, who say what is needed: mixtures where somebody
    draws for himself, and else the drawn atoms alone; models' predictions where they are followed.
    """

    def __init__(self, blocks: Sequence[Block], seats: Sequence[Seat]) -> None:
        alone = {seat.cohort.block for seat in seats if seat.cohort.private}
        self._whole = [i in alone for i in range(len(blocks))]
        led = {seat.cohort.block for seat in seats if seat.comparison.names}
        self._led = {i: blocks[i].forecaster for i in led}

    def points(self) -> Points:
        """Return what the models say of the round that has begun."""
        return {i: np.array(own.points) for i, own in self._led.items()}

    def packed(self, noted: Sequence[tuple[Round, Points]]) -> Tree:
        """Make a block of rounds; UserError if the context's features change."""
        rounds, points = zip(*noted, strict=True)
        contexts = [played.context for played in rounds]
        if len({context.names for context in contexts}) > 1:
            raise UserError("the context's features change; give every round the same")
        blocks = {
            str(i): _packed([played.forecasts[i] for played in rounds], whole=every)
            for i, every in enumerate(self._whole)
        }
        for i in self._led:
            blocks[str(i)]["models"] = np.stack([own[i] for own in points])
        return {
            "first": rounds[0].number,
            "outcomes": np.stack([played.outcome for played in rounds]),
            "names": list(contexts[0].names),
            "contexts": np.stack([context.values for context in contexts]),
            "blocks": blocks,
        }


def rounds_of(block: Tree) -> int:
    """Return the number before which a block's rounds end."""
    return int(block["first"]) + len(block["outcomes"])


def _packed(forecasts: Sequence[Forecast], *, whole: bool) -> Tree:
    """Make a block of forecasts: whole mixtures, or the drawn atoms as they stand in theirs."""
    kinds = [key for key in PARTS if vars(forecasts[0].mixture)[key] is not None]
    atoms = [slice(None) if whole else slice(f.index, f.index + 1) for f in forecasts]
    columns = {
        key: np.concatenate(
            [vars(f.mixture)[key][own] for f, own in zip(forecasts, atoms, strict=True)]
        )
        for key in kinds
    }
    sizes = [len(f.mixture.weights) if whole else 1 for f in forecasts]
    drawn = [f.index if whole else 0 for f in forecasts]
    return columns | {"drawn": np.array(drawn), "sizes": np.array(sizes)}


@dataclass(frozen=True, eq=False)
class Drawn(Mixture):
    """A mixture from which has been drawn.

    ``index``: the drawn atom; ``models`` (array (M, n)): what models predicted, where they are
    followed.
    """

    index: int = 0
    models: Any = None

    def draw(self, rng: np.random.Generator) -> Forecast:
        """Return what was drawn."""
        return Forecast(self, self.index)


def _drawn(part: Tree) -> Iterator[Drawn]:
    said = part.get("models", repeat(None))
    ends = np.cumsum(part["sizes"])
    for size, end, index, models in zip(part["sizes"], ends, part["drawn"], said, strict=False):
        arrays = {key: part[key][end - size : end] for key in PARTS if key in part}
        yield Drawn(**arrays, index=int(index), models=models)


class Tape(Checkpointable, Adversary):
    """An adversary that plays recorded rounds again.

    ``outcomes``: coordinates of an outcome, d. ``mixtures`` (tuple of Drawn): of the round that is
    played, one per block.
    """

    sees = frozenset({"history"})

    def __init__(self, outcomes: int) -> None:
        self.outcomes, self.mixtures = outcomes, tuple[Drawn, ...]()
        self._coming: Iterator[Any] = iter(())
        self._outcome = np.zeros(outcomes)

    def load(self, block: Tree, played: int) -> None:
        """Go on with the rounds of a block that come after so many."""
        self._names, mixtures = tuple(block["names"]), map(_drawn, block["blocks"].values())
        rounds = zip(block["contexts"], block["outcomes"], zip(*mixtures, strict=True), strict=True)
        self._coming = islice(rounds, played - block["first"], None)

    def context(self, history: History) -> Context:
        """Begin the next round."""
        values, self._outcome, self.mixtures = next(self._coming)
        return Context(self._names, values)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Seal the realised outcome."""
        return OutcomeDistribution.pure(self._outcome)


class Recorded(Checkpointable, Forecaster):
    """A forecaster that says again what that of a block said.

    ``place``: of the block.
    """

    def __init__(self, tape: Tape, place: int) -> None:
        self._tape, self._place = tape, place

    def mixture(self, x: object = None) -> Mixture:
        """Return the recorded mixture."""
        return self._tape.mixtures[self._place]

    def update(self, y: ArrayLike) -> None:
        """Learn nothing."""

    @property
    def points(self) -> Array:
        """What the models predicted in the open round (M, n)."""
        models = self._tape.mixtures[self._place].models
        return np.empty((0, 0)) if models is None else np.asarray(models)


class Echo(Block):
    """A block of which all is recorded, labels too."""

    def mixture(self, context: Context) -> Mixture:
        """Return what was said."""
        return self.forecaster.mixture(context)

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Pass on what was said."""
        if self.relay is not None:
            self.relay.add(forecast, self.basis.transform(outcome))
