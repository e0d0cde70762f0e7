"""Seasonal naive: the outcome when the season was the same.

The season is the round modulo ``period``; without a period it is the combination of all features
of the context that have been integers so far: the hour, the weekday, whether it rained. In a season
that is new, the last vector is predicted. At most ``MOST`` combinations are kept, the oldest
makes way.
"""

from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, features
from regretless.market import register
from regretless.market.core.arrays import Array

MOST = 1024  # combinations that are kept
LONGEST = 100_000  # a period


@register.forecaster("seasonal-naive")
class SeasonalNaive(Model):
    """The vector last seen in the same season; one half at first.

    Parameters
    ----------
    period : int or None
        Rounds after which the season is the same; None for the combinations of integer features.
    rate : float
        Share of the newest vector within its season, in (0, 1]; 1 is the naive forecast.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last", "_table", "_rows", "_opened", "_uneven")

    def __init__(self, size: int, *, period: int | None = None, rate: float = 1.0) -> None:
        super().__init__(size)
        if period is not None and not (period == int(period) and 1 <= period <= LONGEST):
            raise ValueError(f"period is {period}; give a whole number from 1 to {LONGEST}")
        if not 0 < rate <= 1:
            raise ValueError(f"rate is {rate}; give a number in (0, 1]")
        self.period, self.rate = period, rate
        self._last = np.full(size, 0.5)
        self._table = np.empty((0, size))
        self._rows: dict[str, int] = {}  # of the table, by season, the oldest first
        self._opened = 0  # seasons ever
        self._uneven: list[str] = []  # features that were no integers
        self._open: dict[str, float] = {}

    def _predicted(self, x: Any) -> Array:
        self._open = features(x)
        row = self._rows.get(self._season())
        return self._last if row is None else self._table[row]

    def _season(self) -> str:
        if self.period is not None:
            return str((self.time + self.ahead) % self.period)
        known = [(name, value) for name, value in self._open.items() if value.is_integer()]
        return ",".join(f"{n}={value!r}" for n, value in known if n not in self._uneven)

    def _learn(self, truth: Array) -> None:
        odd = [name for name, value in self._open.items() if not value.is_integer()]
        self._uneven.extend(name for name in odd if name not in self._uneven)
        season = self._season()
        row = self._rows.get(season)
        if row is None:
            row = self._room(season)
            self._table[row] = truth
        self._table[row] = truth + (1 - self.rate) * (self._table[row] - truth)
        self._last = truth

    def _room(self, season: str) -> int:
        """Return a row for a new season, the oldest season's where there are too many."""
        most = self.period or MOST
        row = self._opened % most
        if len(self._rows) == most:
            del self._rows[next(iter(self._rows))]
        elif row == len(self._table):
            more = min(most, max(8, 2 * row)) - row
            self._table = np.concatenate([self._table, np.zeros((more, self.size))])
        self._rows[season] = row
        self._opened += 1
        return row
