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

LINES_PER_ROUND = 2  # what is heard before agents decide, and the outcome


class Record:
    """What agents hear of the game so far, in a file: two lines of JSON a round.

    The first is heard before they decide, the second is the outcome; numbers read back exactly.
    ``checksum`` is of all lines.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ends = array("q", [0])  # of the lines, in bytes from the start of the file
        self.checksum = 0

    def __len__(self) -> int:
        return len(self._ends) - 1

    def begin_round(self, current: Round, blocks: Sequence[Block], *, private: bool) -> None:
        """Note a round that begins; ``private``: whether somebody draws from the whole mixture."""
        broadcasts = []
        for block, forecast in zip(blocks, current.forecasts, strict=True):
            recorded_forecast = forecast if private else Forecast(certain_of_drawn(forecast), 0)
            broadcasts.append(
                {
                    "points": recorded_forecast.mixture.points,
                    "weights": recorded_forecast.mixture.weights,
                    "labels": recorded_forecast.mixture.labels,
                    "drawn": int(recorded_forecast.index),
                    "models": np.asarray(block.forecaster.points),
                }
            )
        context = (current.context.names, current.context.values)
        self._write({"context": context, "blocks": broadcasts})

    def end_round(self, outcome: Array) -> None:
        """Note the outcome of the round, once."""
        if len(self) % LINES_PER_ROUND:  # the round has begun
            self._write({"outcome": outcome})

    def _write(self, content: dict[str, Any]) -> None:
        line = json.dumps(content, default=np.ndarray.tolist).encode() + b"\n"
        with self._file.open("ab") as file:
            file.write(line)
        self._count(line)

    def _count(self, line: bytes) -> None:
        self._ends.append(self._ends[-1] + len(line))
        self.checksum = zlib.crc32(line, self.checksum)

    def lines(self, first: int, last: int) -> list[bytes]:
        """Return the lines from one to before another."""
        if first >= last:
            return []
        with self._file.open("rb") as file:
            file.seek(self._ends[first])
            return file.read(self._ends[last] - self._ends[first]).splitlines()

    def restore(self, n_lines: int, checksum: int) -> None:
        """Go on after so many lines; UserError if not all of them are there."""
        if self._file.exists():
            with self._file.open("rb") as file:
                for line in islice(file, n_lines):
                    self._count(line)
            os.truncate(self._file, self._ends[-1])
        if len(self) != n_lines or self.checksum != checksum:
            raise UserError(
                f"--resume: {self._file} lacks a part of the record; start again with --overwrite"
            )


def read_round(content: dict[str, Any], game: Game) -> tuple[Round, list[Array]]:
    """Return a game's next round as it was noted, and what the models of each block predict.

    Its outcome nobody may read.
    """
    forecasts = []
    model_predictions = []
    for broadcast in content["blocks"]:
        labels = None if broadcast["labels"] is None else np.array(broadcast["labels"])
        points = np.array(broadcast["points"])
        mixture = Mixture(points, np.array(broadcast["weights"]), labels=labels)
        forecasts.append(Forecast(mixture, broadcast["drawn"]))
        model_predictions.append(np.array(broadcast["models"]))
    names, values = content["context"]
    drawn = Round(
        game.history.rounds,
        Context(tuple(names), np.array(values)),
        forecasts=tuple(forecasts),
        outcome=np.zeros(game.adversary.outcomes),
    )
    return drawn, model_predictions
