"""The record of a run that is shared out: what its agents hear of the game, round by round."""

import json
import os
import zlib
from array import array
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import certain_of_drawn
from regretless.market.game.round import Block, Game
from regretless.market.records import Context, Forecast, Mixture, Round


class Record:
    """What agents hear of the game so far, in a file: two lines of JSON a round.

    The first is heard before they decide, the second is the outcome; numbers read back exactly.
    ``checksum`` is of all lines.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._ends, self.checksum = file, array("q", [0]), 0

    def __len__(self) -> int:
        return len(self._ends) - 1

    def begin(self, begun: Round, blocks: Sequence[Block], *, private: bool) -> None:
        """Note a round that begins; ``private``: whether somebody draws from the whole mixture."""
        said = []
        for block, forecast in zip(blocks, begun.forecasts, strict=True):
            heard = forecast if private else Forecast(certain_of_drawn(forecast), 0)
            mixture, models = heard.mixture, np.asarray(block.forecaster.points)
            atoms = {"points": mixture.points, "weights": mixture.weights, "labels": mixture.labels}
            said.append(atoms | {"drawn": int(heard.index), "models": models})
        context = begun.context.names, begun.context.values
        self._add({"context": context, "blocks": said})

    def end(self, outcome: Array) -> None:
        """Note the outcome of the round, once."""
        if len(self) % 2:
            self._add({"outcome": outcome})

    def _add(self, said: dict[str, Any]) -> None:
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


def understood(said: dict[str, Any], game: Game) -> tuple[Round, list[Array]]:
    """Return a game's next round as it was noted, and what the models of each block predict.

    Its outcome nobody may read.
    """
    forecasts, unknown = list[Forecast](), np.zeros(game.adversary.outcomes)
    for own in said["blocks"]:
        labels = None if own["labels"] is None else np.array(own["labels"])
        mixture = Mixture(np.array(own["points"]), np.array(own["weights"]), labels=labels)
        forecasts.append(Forecast(mixture, own["drawn"]))
    names, values = said["context"]
    context = Context(tuple(names), np.array(values))
    drawn = Round(game.history.rounds, context, forecasts=tuple(forecasts), outcome=unknown)
    return drawn, [np.array(own["models"]) for own in said["blocks"]]
