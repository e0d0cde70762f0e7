"""The columns of contexts as numbers for a regression, learned as they come.

Every column enters as a number, standardised by its own mean and deviation so far and clipped. A
column whose values have all been integers, and not many different ones, enters level by level as
well: an hour or a weekday is no quantity. Once it shows anything else its levels are dropped.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable

LEVELS = 50  # that a column may have, to enter level by level
CLIP = 3.0  # deviations
HUGE = 1e100  # beyond which a value is not told apart


class Columns(Checkpointable):
    """Turns named numbers into features, at most ``room`` of them; ``size`` so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("size", "_moments", "_numbers", "_levels")

    def __init__(self, room: int) -> None:
        self.room, self.size = room, 0
        self._moments: dict[str, list[float]] = {}  # count, mean, sum of squared distances
        self._numbers: dict[str, int] = {}  # the feature of a column
        self._levels: dict[str, dict[str, int]] = {}  # the features of its levels

    def encoded(self, named: Mapping[str, float]) -> Array:
        """Return the features (size,) of a context; what is unknown adds nothing."""
        row = np.zeros(self.size)
        for name, given in named.items():
            if (place := self._numbers.get(name)) is None:
                continue
            value, key = _read(given)
            count, mean, squares = self._moments[name]
            deviation = (squares / count) ** 0.5
            if deviation > 0:
                row[place] = min(max((value - mean) / deviation, -CLIP), CLIP)
            level = self._levels.get(name, {}).get(key)
            if level is not None:
                row[level] = 1.0
        return row

    def learn(self, named: Mapping[str, float]) -> Indices | None:
        """Learn a context, new features last; the old ones that remain, or None for all."""
        dropped: list[int] = []
        for name, given in named.items():
            value, key = _read(given)
            if name not in self._numbers:
                if self.size == self.room:
                    continue
                self._moments[name] = [0.0, 0.0, 0.0]
                self._numbers[name], self._levels[name] = self.size, {}
                self.size += 1
            count, mean, squares = self._moments[name]
            moved = mean + (value - mean) / (count + 1)
            self._moments[name] = [count + 1, moved, squares + (value - mean) * (value - moved)]
            levels = self._levels.get(name)
            if levels is not None and key not in levels:
                if not key or len(levels) == LEVELS:  # no category
                    del self._levels[name]
                    dropped += levels.values()
                elif self.size < self.room:
                    levels[key] = self.size
                    self.size += 1
        return self._without(dropped) if dropped else None

    def _without(self, dropped: list[int]) -> Indices:
        """Close the gaps that dropped features leave."""
        remain = np.setdiff1d(np.arange(self.size), dropped)
        moved = {int(old): new for new, old in enumerate(remain)}
        self._numbers = {name: moved[place] for name, place in self._numbers.items()}
        self._levels = {
            name: {level: moved[place] for level, place in levels.items()}
            for name, levels in self._levels.items()
        }
        self.size = len(remain)
        return remain


@lru_cache(maxsize=1024)
def _read(given: float) -> tuple[float, str]:
    """Return the number, 0 for one that is none, and the level of an integer, else no text.

    Several models read the same few numbers several times a round.
    """
    value = 0.0 if given != given else min(max(given, -HUGE), HUGE)  # noqa: PLR0124
    return value, str(int(value)) if value.is_integer() and abs(value) < 1e9 else ""
