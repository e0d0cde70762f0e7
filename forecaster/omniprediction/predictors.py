r"""The randomised predictor: a uniform law over the prediction functions of kept rounds.

Round t of the online forecaster is a function p_t from a context to a law over predictions; the
context enters only through the tuple of the policies' suggestions. What decides p_t is what the
forecaster remembers before round t: biases, variations, the number of rounds and where the last
round ended. That state is kept for some rounds, and p_t solved again for a new tuple, with the very
code of the online round, so that p_t(x_t) is what was played. Each tuple is solved once.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from regretless.forecaster.events.protected import LossGroup, moved_mass, rows_of
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices
from regretless.market.records import Mixture

Suggestions = tuple[int, ...]

OCCUPANCY = "occupancy"  # counted for the bounds; no prediction depends on it


class Suggests:
    """The policy that reads its suggestion from a tuple of all policies'."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __call__(self, x: Suggestions) -> int:
        """Return the suggestion."""
        return int(x[self.place])


class Snapshots:
    """The memories of kept rounds, each kind stacked into one array.

    Parameters
    ----------
    player : UnbiasedPrediction
        Whose rounds they are; its own memory is written over on use.
    count : int
        Rounds to keep, k.
    """

    def __init__(self, player: UnbiasedPrediction, count: int) -> None:
        self.player = player
        self.arrays = {
            name: np.zeros((count, *array.shape)) for name, array in self._memory(player).items()
        }
        self.times = np.zeros(count, dtype=np.int64)
        self.kept = 0

    @staticmethod
    def _memory(player: UnbiasedPrediction) -> dict[str, Array]:
        events = player.events.arrays.items()
        kept = {n: a for n, a in events if n != OCCUPANCY and not n.endswith("_2")}
        return kept | player.solver.state()

    @staticmethod
    def megabytes(player: UnbiasedPrediction, count: int) -> float:
        """Return what ``count`` rounds take."""
        memory = Snapshots._memory(player).values()
        return float(count * sum(array.nbytes for array in memory) / 2**20)

    def keep(self) -> None:
        """Keep the player's memory as it is now."""
        for name, array in self._memory(self.player).items():
            self.arrays[name][self.kept] = array
        self.times[self.kept] = self.player.time
        self.kept += 1

    def __len__(self) -> int:
        return self.kept

    def mixture(self, index: int, suggestions: Suggestions) -> Mixture:
        """Solve the round ``index`` for a tuple of suggestions."""
        player, events = self.player, self.player.events.arrays
        memory = {name: array[index] for name, array in self.arrays.items()}
        player.solver.restore({name: memory.pop(name) for name in player.solver.state()})
        for name, array in memory.items():
            events[name][...] = array
        player.time = int(self.times[index])
        return player.mixture(suggestions)


class KeptPredictors:
    """The uniform law over kept rounds' predictors, solved once per tuple of suggestions."""

    def __init__(self, snapshots: Snapshots) -> None:
        self.snapshots = snapshots
        self._solved: dict[Suggestions, Mixture] = {}

    def at(self, suggestions: Sequence[int]) -> Mixture:
        """Return all kept rounds' mixtures as one, weights divided by their number."""
        key = tuple(int(b) for b in suggestions)
        if key not in self._solved:
            self._solved[key] = self.uncached(key)
        return self._solved[key]

    def uncached(self, suggestions: Suggestions) -> Mixture:
        """Solve every kept round for a tuple."""
        count = len(self.snapshots)
        solved = [self.snapshots.mixture(i, suggestions) for i in range(count)]
        return Mixture(
            np.concatenate([mixture.points for mixture in solved]),
            np.concatenate([mixture.weights for mixture in solved]) / count,
        )

    def by_tuple(self, table: Indices) -> Iterator[tuple[Indices, Mixture]]:
        """Yield each distinct row of suggestions (m, C) as its places in the table and its law."""
        if not table.shape[1]:
            yield np.arange(len(table)), self.at(())
            return
        distinct, place = np.unique(table, axis=0, return_inverse=True)
        for i, row in enumerate(distinct):
            yield np.flatnonzero(place.ravel() == i), self.at(row)


def played(offset: Array, weights: Array, mixture: Mixture) -> Array:
    """Compute the law (A,) of a loss's best response (ties to the lowest) under a mixture.

    Parameters
    ----------
    offset, weights : array (A,), (A, n)
    """
    group: Any = LossGroup(offset[None], weights[None])
    shares, _ = moved_mass(rows_of([group]), mixture.points, mixture.weights)
    return np.asarray(shares / shares.sum())
