"""A recorded broadcast: what agents hear of a game that they do not move, and what came.

Where no outcome depends on what agents do, the game can be played without them, and any share of
them played after it, elsewhere, to the same bytes. Of a round they need the context, the drawn
atom of every block (the whole mixture where somebody draws for himself) and the outcome: a few
hundred bytes. Rounds travel in blocks, as trees of arrays that ``market.core.checkpoint`` can save.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.errors import UserError
from regretless.market.game.round import Block
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
    """Collects rounds into a block.

    Parameters
    ----------
    whole : sequence of bool
        Of which blocks of the broadcast the mixtures are kept, and not the drawn atoms alone.
    """

    def __init__(self, whole: Sequence[bool]) -> None:
        self._whole = tuple(whole)
        self._rounds: list[Round] = []

    def __len__(self) -> int:
        """Count the rounds of the open block."""
        return len(self._rounds)

    def add(self, played: Round) -> None:
        """Append a round; UserError if its context has other features than the block's."""
        if self._rounds and played.context.names != self._rounds[0].context.names:
            raise UserError("the context's features change; give every round the same")
        self._rounds.append(played)

    def closed(self) -> Tree:
        """Return the open block, and begin another."""
        rounds, self._rounds = self._rounds, []
        return {
            "first": rounds[0].number,
            "names": list(rounds[0].context.names),
            "contexts": np.stack([played.context.values for played in rounds]),
            "outcomes": np.stack([played.outcome for played in rounds]),
            "blocks": {
                str(i): _packed([played.forecasts[i] for played in rounds], whole=whole)
                for i, whole in enumerate(self._whole)
            },
        }


def _packed(forecasts: Sequence[Forecast], *, whole: bool) -> Tree:
    kept = [slice(None) if whole else slice(f.index, f.index + 1) for f in forecasts]
    mixtures = [(f.mixture, atoms) for f, atoms in zip(forecasts, kept, strict=True)]
    return {
        "drawn": np.array([f.index if whole else 0 for f in forecasts]),
        "sizes": np.array([len(mixture.weights[atoms]) for mixture, atoms in mixtures]),
        "weights": np.concatenate([mixture.weights[atoms] for mixture, atoms in mixtures]),
        "points": np.concatenate([mixture.points[atoms] for mixture, atoms in mixtures]),
        "labels": np.concatenate(
            [m.labels[atoms] for m, atoms in mixtures if m.labels is not None]
        ),
    }


def rounds_of(block: Tree) -> int:
    """Return the number before which a block's rounds end."""
    return int(block["first"]) + len(block["outcomes"])


@dataclass(frozen=True, eq=False)
class Drawn(Mixture):
    """A mixture from which has been drawn.

    Parameters
    ----------
    index : int
        The drawn atom.
    """

    index: int = 0

    def draw(self, rng: np.random.Generator) -> Forecast:
        """Return what was drawn."""
        return Forecast(self, self.index)


@dataclass(frozen=True, eq=False)
class _Said:
    """A recorded round."""

    context: Context
    mixtures: tuple[Drawn, ...]
    outcome: Array


def _said(block: Tree) -> Iterator[_Said]:
    names, parts = tuple(block["names"]), [_drawn(part) for part in block["blocks"].values()]
    mixtures = zip(*parts, strict=True)
    for x, y, drawn in zip(block["contexts"], block["outcomes"], mixtures, strict=True):
        yield _Said(Context(names, x), drawn, y)


def _drawn(part: Tree) -> Iterator[Drawn]:
    ends = np.cumsum(part["sizes"])
    for size, end, index in zip(part["sizes"], ends, part["drawn"], strict=True):
        atoms = slice(end - size, end)
        points, weights, labels = (part[key][atoms] for key in ("points", "weights", "labels"))
        yield Drawn(points, weights, labels=labels, index=int(index))


class Tape(Remembering):
    """Plays recorded rounds again, in the place of the adversary and of all forecasters.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    """

    sees: ClassVar[frozenset[str]] = frozenset({"history"})

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes
        self._coming: Iterator[_Said] = iter(())
        self.now: _Said | None = None

    def load(self, block: Tree) -> None:
        """Go on with the rounds of a block."""
        self._coming = _said(block)

    def context(self, history: History) -> Context:
        """Begin the next round."""
        self.now = next(self._coming)
        return self.now.context

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal what came."""
        assert self.now is not None  # noqa: S101 - a round has begun
        return OutcomeLaw.pure(self.now.outcome)


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
        said: Mixture = tape.now.mixtures[self.place]
        return said

    def learn(self, forecast: Forecast, outcome: Array) -> None:
        """Learn nothing."""
