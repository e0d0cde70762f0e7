"""Seasons of a context, and what was seen in each of the last rounds.

A season is the combination of all features of the context that have been integers so far: the hour
and the weekday, whether it rained. Seasonal models look for past rounds of the same one. The days
since 1970 of a date are left out, as no day comes back; its month and its weekday are in.
"""

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled

MAX_ROUNDS = 8192  # that are remembered
MAX_SEASONS = 1024  # that are told apart; the oldest makes way for a new one
ROUNDS_BETWEEN_DROPS = 64
LEAST_ROOM = 64  # rows
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


@compiled()
def _mark_kept(codes: Integers, of_all: int, of_season: int, is_kept: Mask) -> None:
    """Mark the last rounds of all, and the last ones of every season (compiled).

    Parameters
    ----------
    codes : int array (m,)
        Of the rounds' seasons, the oldest round first.
    of_all, of_season : int
        How many rounds are kept of all, and of each season.
    is_kept : bool array (m,)
        Written.
    """
    n_of_season = np.zeros(MAX_SEASONS, dtype=np.int64)  # rounds of each season that were passed
    n_rounds = codes.shape[0]
    for i in range(n_rounds - 1, -1, -1):
        is_kept[i] = i >= n_rounds - of_all
        code = codes[i]
        if code != NO_SEASON:
            n_of_season[code] += 1
            if n_of_season[code] <= of_season:
                is_kept[i] = True


@compiled()
def _write_last_of_season(codes: Integers, code: int, last_rounds: Indices) -> int:
    """Write the last rounds of a season, and return how many there are (compiled).

    Parameters
    ----------
    codes : int array (m,)
        Of the rounds' seasons, the oldest round first.
    code : int
        Of the season.
    last_rounds : int array (k,)
        Its last entries are written: the places of at most k rounds, the newest last.
    """
    n_left = last_rounds.shape[0]
    for i in range(codes.shape[0] - 1, -1, -1):
        if n_left == 0:
            break
        if codes[i] == code:
            n_left -= 1
            last_rounds[n_left] = i
    return int(last_rounds.shape[0] - n_left)


class GrowingRows:
    """Rows of an array (m, ...), with room for more behind them, so that one is added quickly."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._room = rows
        self._count = len(rows)

    @property
    def rows(self) -> NDArray[Any]:
        """The rows (m, ...), a view."""
        return self._room[: self._count]

    def append(self, row: Any) -> None:
        """Add a row; where there is no room left, all rows move into one twice as large."""
        if self._count == len(self._room):
            n_rows = max(2 * self._count, LEAST_ROOM)
            larger = np.empty((n_rows, *self._room.shape[1:]), dtype=self._room.dtype)
            larger[: self._count] = self._room
            self._room = larger
        self._room[self._count] = row
        self._count += 1


class PastRounds(Checkpointable):
    """Vectors of d numbers, one for a round, and the season of each, in the order of the rounds.

    It keeps the last ``of_all`` rounds, and the last ``of_season`` of every season, at most
    ``MAX_ROUNDS`` in all. Rounds that it need not keep are dropped together, before every
    ``ROUNDS_BETWEEN_DROPS``-th round: to look for them in every round took most of the time.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("_vectors", "_codes", "_numbers", "_learned", "_code_of_season", "_integers"),
    )

    def __init__(self, size: int, *, of_all: int, of_season: int = 0) -> None:
        self.of_all = of_all
        self.of_season = of_season
        self._vectors = np.zeros((0, size))
        self._codes = np.zeros(0, dtype=np.int64)
        self._numbers = np.zeros(0, dtype=np.int64)
        self._learned = 0  # rounds in all
        self._code_of_season: dict[str, int] = {}
        self._integers = IntegerFeatures()

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs: without the rounds that wait to be dropped.

        So its size does not depend on when rounds were dropped last. ``MAX_ROUNDS`` is left to the
        next drop: until then forecasts are made of more, and those from a checkpoint are the same.
        """
        state = super().state()
        is_needed = self._is_needed()
        for name in ("vectors", "codes", "numbers"):
            state[name] = state[name][is_needed]
        return state

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
            self._rows_of_vectors.append(vector)
            self._rows_of_codes.append(code)
            self._rows_of_numbers.append(number)
        self._forget()

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

    def _forget(self) -> None:
        """Drop what is no longer kept, once in ``ROUNDS_BETWEEN_DROPS`` rounds."""
        if self._learned % ROUNDS_BETWEEN_DROPS or len(self._codes) <= self.of_all:
            return
        is_kept = self._is_needed()
        is_kept[: max(len(is_kept) - MAX_ROUNDS, 0)] = False
        self._keep(is_kept)

    def _is_needed(self) -> Mask:
        """Return which rounds (m,) are among the last of all, or the last of their season."""
        is_needed = np.empty(len(self._codes), dtype=bool)
        _mark_kept(self._codes, self.of_all, self.of_season, is_needed)
        return is_needed

    def _keep(self, is_kept: Mask) -> None:
        """Drop the rounds that are not kept."""
        if not is_kept.all():
            self._vectors = self._vectors[is_kept]
            self._codes = self._codes[is_kept]
            self._numbers = self._numbers[is_kept]

    @property
    def _vectors(self) -> Array:
        """The vectors (m, d), the oldest first."""
        return self._rows_of_vectors.rows

    @_vectors.setter
    def _vectors(self, vectors: Array) -> None:
        self._rows_of_vectors = GrowingRows(vectors)

    @property
    def _codes(self) -> Integers:
        """The codes (m,) of their seasons."""
        return self._rows_of_codes.rows

    @_codes.setter
    def _codes(self, codes: Integers) -> None:
        self._rows_of_codes = GrowingRows(codes)

    @property
    def _numbers(self) -> Integers:
        """How many rounds there were before each (m,), dropped ones included."""
        return self._rows_of_numbers.rows

    @_numbers.setter
    def _numbers(self, numbers: Integers) -> None:
        self._rows_of_numbers = GrowingRows(numbers)

    @property
    def rounds(self) -> int:
        """How many rounds are remembered."""
        return len(self._vectors)

    def last(self, count: int) -> Array:
        """Return the vectors of the last rounds, at most ``count`` (m, d), the newest last."""
        return self._vectors[-count:]

    def last_of_season(self, features: Mapping[str, float], count: int) -> Array:
        """Return those of the last rounds of a context's season, none where it has none (m, d)."""
        season = self._integers.combination(features)
        code = self._code_of_season.get(season)
        if code is None:
            return self._vectors[:0]
        last_rounds = np.empty(count, dtype=np.intp)
        n_rounds = _write_last_of_season(self._codes, code, last_rounds)
        return self._vectors[last_rounds[count - n_rounds :]]
