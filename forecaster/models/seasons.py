"""Seasons of a context, and what was seen in each of the last rounds.

A season is the combination of all features of the context that have been integers so far: the hour
and the weekday, whether it rained. Seasonal models look for past rounds of the same one. The days
since 1970 of a date are left out, as no day comes back; its month and its weekday are in.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Checkpointable

MAX_ROUNDS = 8192  # that are remembered
MAX_SEASONS = 1024  # that are told apart; the oldest makes way for a new one
NO_SEASON = -1
MONTH_OF_DATE = "{}_month"  # features of a date, beside its days since 1970
WEEKDAY_OF_DATE = "{}_weekday"


class IntegerFeatures(Checkpointable):
    """Names the combination of a context's features that have been integers so far.

    A feature is the day of a date, and left out, where the date's weekday is a feature, too.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_uneven",)

    def __init__(self) -> None:
        self._uneven: list[str] = []  # features that were no integers once, and tell no season

    def combination(self, features: Mapping[str, float]) -> str:
        """Return the combination as text, such as "hour=3.0,weekday=1.0"; "" if there is none."""
        return _combination(tuple(features.items()), tuple(self._uneven))

    def learn(self, features: Mapping[str, float]) -> bool:
        """Learn which features of a context are no integers, and return whether there are more.

        A value that is not finite is not known, and says nothing of its feature.
        """
        n_before = len(self._uneven)
        for name, value in features.items():
            is_even = value.is_integer() or not isfinite(value)
            if not is_even and name not in self._uneven:
                self._uneven.append(name)
        return len(self._uneven) > n_before


@lru_cache(maxsize=4096)
def _combination(features: tuple[tuple[str, float], ...], uneven: tuple[str, ...]) -> str:
    """Return a combination as text; several models ask for that of the same context."""
    names = {name for name, _ in features}
    parts = []
    for name, value in features:
        is_day_of_date = WEEKDAY_OF_DATE.format(name) in names
        if value.is_integer() and name not in uneven and not is_day_of_date:
            parts.append(f"{name}={value!r}")
    return ",".join(parts)


class PastRounds(Checkpointable):
    """Vectors of d numbers, one for a round, and the season of each, in the order of the rounds.

    It keeps the last ``of_all`` rounds, and the last ``of_season`` of every season: at most
    ``MAX_ROUNDS`` in all.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("_vectors", "_codes", "_numbers", "_learned", "_code_of_season", "_integers"),
    )

    def __init__(self, size: int, *, of_all: int, of_season: int = 0) -> None:
        self.of_all = of_all
        self.of_season = of_season
        self._vectors = np.zeros((0, size))  # the oldest first
        self._codes = np.zeros(0, dtype=np.int64)  # of their seasons
        self._numbers = np.zeros(0, dtype=np.int64)  # rounds before each, dropped ones included
        self._learned = 0  # rounds in all
        self._code_of_season: dict[str, int] = {}
        self._integers = IntegerFeatures()

    def add(self, vector: Array, features: Mapping[str, float], *, newer: int) -> None:
        """Remember a vector (d,) of a round with this context, before the ``newer`` latest ones."""
        code = NO_SEASON
        if features:
            code = self._code_of_new_round(features)
        # Of the ``newer`` rounds some may have been dropped: so the place is not counted from the
        # end of those that are kept.
        number = max(self._learned - newer, 0)
        self._learned += 1
        if newer:
            position = int(self._numbers.searchsorted(number))
            later = self._numbers[position:] + 1
            # joined by hand: ``np.insert`` takes 40 microseconds
            vectors = (self._vectors[:position], vector[None], self._vectors[position:])
            self._vectors = np.concatenate(vectors)
            self._codes = np.concatenate((self._codes[:position], [code], self._codes[position:]))
            self._numbers = np.concatenate((self._numbers[:position], [number], later))
        else:
            self._vectors = np.concatenate((self._vectors, vector[None]))
            self._codes = np.concatenate((self._codes, (code,)))
            self._numbers = np.concatenate((self._numbers, (number,)))
        self._forget(code)

    def _code_of_new_round(self, features: Mapping[str, float]) -> int:
        """Learn the features of a round that is added, and return the code of its season."""
        if self._integers.learn(features):
            # A feature turned out to be no integer: none of the combinations comes back.
            self._code_of_season.clear()
            self._leave_season(np.ones(len(self._codes), dtype=bool))
        season = self._integers.combination(features)
        if season and season not in self._code_of_season:
            self._code_of_season[season] = self._free_code()
        return self._code_of_season.get(season, NO_SEASON)

    def _free_code(self) -> int:
        """Return a code for a new season; if there is none left, that of the oldest one."""
        if len(self._code_of_season) < MAX_SEASONS:
            return len(self._code_of_season)
        oldest_season = next(iter(self._code_of_season))
        code = self._code_of_season.pop(oldest_season)
        self._leave_season(self._codes == code)
        return code

    def _leave_season(self, is_left: Mask) -> None:
        """Let rounds have no season, and drop those of them that are not among the last of all."""
        self._codes = np.where(is_left, NO_SEASON, self._codes)
        is_kept = ~is_left
        is_kept[max(len(is_kept) - self.of_all, 0) :] = True
        self._keep(is_kept)

    def _forget(self, code: int) -> None:
        """Drop what is no longer kept after a round of this season."""
        n_before = len(self._codes) - self.of_all  # rounds that are not among the last of all
        if n_before <= 0:
            return
        if not self._code_of_season:  # no round has a season
            self._vectors = self._vectors[n_before:]
            self._codes = self._codes[n_before:]
            self._numbers = self._numbers[n_before:]
            return
        dropped: list[int] = []
        for season in {code, int(self._codes[n_before - 1])}:
            of_season = (self._codes == season).nonzero()[0]
            n_kept = 0 if season == NO_SEASON else self.of_season
            surplus = of_season[: max(len(of_season) - n_kept, 0)]
            dropped += surplus[surplus < n_before].tolist()
        if not dropped and len(self._codes) <= MAX_ROUNDS:
            return
        is_kept = np.ones(len(self._codes), dtype=bool)
        is_kept[dropped] = False
        is_kept[: max(len(is_kept) - MAX_ROUNDS, 0)] = False
        self._keep(is_kept)

    def _keep(self, is_kept: Mask) -> None:
        """Drop the rounds that are not kept."""
        if not is_kept.all():
            self._vectors = self._vectors[is_kept]
            self._codes = self._codes[is_kept]
            self._numbers = self._numbers[is_kept]

    @property
    def rounds(self) -> int:
        """How many rounds are remembered."""
        return len(self._vectors)

    def last(self, count: int) -> Array:
        """Return the vectors of the last rounds, at most ``count`` (m, d), the newest last."""
        return self._vectors[-count:]

    def last_of_season(self, features: Mapping[str, float], count: int) -> Array:
        """Return those of the last rounds of a context's season, none where it has none (m, d)."""
        return self._vectors[self._rounds_of_season(features)[-count:]]

    def _rounds_of_season(self, features: Mapping[str, float]) -> Indices:
        season = self._integers.combination(features)
        code = self._code_of_season.get(season)
        if code is None:
            return np.zeros(0, dtype=np.intp)
        return np.asarray((self._codes == code).nonzero()[0])
