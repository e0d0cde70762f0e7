"""What is known before a round, as numbers: a dict or a row of numbers, words and dates."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief

DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?")
EPOCH = pd.Timestamp("1970-01-01")


class Contexts(Checkpointable):
    """Names the numbers of contexts, and remembers the codes of words.

    Words are whole numbers in the order in which they first came. A date has a month, a weekday (0
    is Monday) and the days since 1970. What is missing is left out.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_codes",)

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {}

    def numbers(self, x: Any, *, learn: bool = False) -> dict[str, float]:
        """Return the numbers of a context by name, in the order of their names.

        ``x`` has values by name, or of the columns ``x_0``, ``x_1`` and so on; new words are left
        out, and remembered with ``learn``.
        """
        if x is None:
            return {}
        named = x if isinstance(x, Mapping) else {f"x_{i}": value for i, value in enumerate(x)}
        found: dict[str, float] = {}
        for name in sorted(map(str, named)):
            value = named.get(name, named.get(int(name) if name.isdigit() else name))
            found |= self._read(name, value, learn)
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def _read(self, name: str, value: Any, learn: bool) -> dict[str, float]:  # noqa: FBT001
        if value is None or value is pd.NaT:
            return {}
        if isinstance(value, bool | int | float | np.number | np.bool_):
            return {name: float(value)}
        if isinstance(value, date | np.datetime64 | pd.Timestamp):
            return _of_date(name, pd.Timestamp(value))
        if not isinstance(value, str):
            raise UserError(f"'{name}' is {brief(value)}; give a number, a word or a date")
        if DATE.fullmatch(value):
            return _of_date(name, pd.Timestamp(value))
        try:
            return {name: float(value)}
        except ValueError:
            codes = self._codes.get(name, {})
            if learn:
                codes = self._codes.setdefault(name, codes)
                codes.setdefault(value, len(codes))
            return {name: float(codes[value])} if value in codes else {}


def _of_date(name: str, day: pd.Timestamp) -> dict[str, float]:
    plain = day.tz_localize(None)
    since = (plain - EPOCH) / pd.Timedelta(days=1)
    return {
        name: float(since),
        f"{name}_month": float(plain.month),
        f"{name}_weekday": float(plain.weekday()),
    }
