"""What a block forecast in the last rounds, beside its models, and the realised outcomes."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable

KEPT = 4096  # rounds, the last ones; a power of 2 times ``LEAST``
LEAST = 64


class ForecastRecord(Checkpointable):
    """The last label forecasts of a block, and the outcomes that came.

    Attributes
    ----------
    rounds : int
        That were added.
    models : list of str
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rounds", "models", "_labels", "_outcomes")

    def __init__(self) -> None:
        self.rounds, self.models = 0, list[str]()
        self._labels, self._outcomes = np.zeros((0, 1, 0)), np.zeros((0, 0))

    def add(self, labels: Array, outcome: Array, models: Sequence[str]) -> None:
        """Add a round: what the broadcast and then each model said (1 + M, d), and y (d,).

        With other models than before it begins anew.
        """
        if list(models) != self.models or not self.rounds:
            self.models, self.rounds = list(models), 0
            self._labels, self._outcomes = _room(0, labels), _room(0, outcome)
        place = self.rounds % KEPT
        if place == len(self._labels):  # room for twice as many
            more = max(place, LEAST)
            self._labels = np.concatenate([self._labels, _room(more, labels)])
            self._outcomes = np.concatenate([self._outcomes, _room(more, outcome)])
        self._labels[place], self._outcomes[place] = labels, outcome
        self.rounds += 1

    def last(self) -> tuple[Array, Array]:
        """Return the labels (T, 1 + M, d) and outcomes (T, d) that are kept, in order."""
        last = np.arange(max(self.rounds - KEPT, 0), self.rounds) % KEPT
        return self._labels[last], self._outcomes[last]


def _room(rounds: int, like: Array) -> Array:
    return np.zeros((rounds, *like.shape))
