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
    """What agents hear of the game so far, in a file of two lines of JSON per round.

    The first line is what they hear before they decide, the second is the outcome. Numbers read
    back exactly. ``checksum`` is the CRC-32 of all lines.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._line_ends = array("q", [0])  # in bytes from the beginning of the file
        self.checksum = 0

    def __len__(self) -> int:
        return len(self._line_ends) - 1

    def begin(self, drawn: Round, blocks: Sequence[Block], *, private: bool) -> None:
        """Write what agents hear of a round whose forecasts have been drawn.

        ``private``: whether somebody draws from the whole mixture. If not, the prediction that was
        drawn is all that is kept of it.
        """
        block_entries = []
        for block, forecast in zip(blocks, drawn.forecasts, strict=True):
            heard = forecast if private else Forecast(certain_of_drawn(forecast), 0)
            block_entries.append(
                {
                    "points": heard.mixture.points,
                    "weights": heard.mixture.weights,
                    "labels": heard.mixture.labels,
                    "drawn": int(heard.index),
                    "models": np.asarray(block.forecaster.points),
                }
            )
        context = drawn.context.names, drawn.context.values
        self._write({"context": context, "blocks": block_entries})

    def end(self, outcome: Array) -> None:
        """Write the outcome of the round, if it has not been written."""
        is_open = len(self) % 2 == 1
        if is_open:
            self._write({"outcome": outcome})

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, default=np.ndarray.tolist).encode() + b"\n"
        with self._file.open("ab") as file:
            file.write(line)
        self._count(line)

    def _count(self, line: bytes) -> None:
        self._line_ends.append(self._line_ends[-1] + len(line))
        self.checksum = zlib.crc32(line, self.checksum)

    def lines(self, first: int, end: int) -> list[bytes]:
        """Return the lines from ``first`` to before ``end``."""
        if first >= end:
            return []
        with self._file.open("rb") as file:
            file.seek(self._line_ends[first])
            return file.read(self._line_ends[end] - self._line_ends[first]).splitlines()

    def restore(self, lines: int, checksum: int) -> None:
        """Cut the file after so many lines and go on; UserError if not all of them are there."""
        if self._file.exists():
            with self._file.open("rb") as file:
                for line in islice(file, lines):
                    self._count(line)
            os.truncate(self._file, self._line_ends[-1])
        if (len(self), self.checksum) != (lines, checksum):
            fault = f"--resume: {self._file} lacks a part of the record"
            raise UserError(f"{fault}; start again with --overwrite")


def read_drawn_round(entry: dict[str, Any], game: Game) -> tuple[Round, list[Array]]:
    """Return a game's next round as it was written, and what the models of each block predict.

    The outcome of that round is not in the entry; it stands as zeros, and nobody may read it.
    """
    unknown_outcome = np.zeros(game.adversary.outcomes)
    forecasts = []
    predictions_of_models = []
    for block in entry["blocks"]:
        labels = None if block["labels"] is None else np.array(block["labels"])
        mixture = Mixture(np.array(block["points"]), np.array(block["weights"]), labels=labels)
        forecasts.append(Forecast(mixture, block["drawn"]))
        predictions_of_models.append(np.array(block["models"]))
    names, values = entry["context"]
    context = Context(tuple(names), np.array(values))
    drawn = Round(game.history.rounds, context, forecasts=tuple(forecasts), outcome=unknown_outcome)
    return drawn, predictions_of_models
