"""What users give an ``OnlineOmnipredictor``: contexts, policies, and losses of a scale."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.losses import Loss, SeparablePower
from regretless.market.records import Policy


@contextmanager
def naming(what: str, *more: str) -> Iterator[None]:
    """Turn what is refused into a UserError that names the parameter, and adds a cure."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UserError("; ".join((f"{what}: {error}", *more))) from error


def maker_of(told: Any, known: register.Registry) -> partial[Any]:
    """Return what a name or a table ``{"kind": ...}`` says is to be made, with its parameters."""
    table = told if isinstance(told, Mapping) else {"kind": told}
    if (kind := str(table.get("kind"))) not in known:
        raise UserError(f"unknown kind {kind!r}; {closest(kind, known.names())}")
    return partial(known[kind], **{key: one for key, one in table.items() if key != "kind"})


DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?")
Inputs = Mapping[Any, Any] | Sequence[Any] | Array | None  # values by name, or by column
EPOCH = pd.Timestamp("1970-01-01")
POINTS = 11


class Contexts(Checkpointable):
    """Names the numbers of contexts, and remembers the codes of words.

    Words are whole numbers in the order in which they first came. A date has a month, a weekday (0
    is Monday) and the days since 1970. What is missing is left out.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_codes",)

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {}

    def numbers(self, x: Inputs, *, learn: bool = False) -> dict[str, float]:
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
        if isinstance(value, str):
            if not DATE.fullmatch(value):
                with suppress(ValueError):
                    return {name: float(value)}
                codes = self._codes.get(name, {})
                if learn:
                    codes = self._codes.setdefault(name, codes)
                    codes.setdefault(value, len(codes))
                return {name: float(codes[value])} if value in codes else {}
        elif not isinstance(value, date | np.datetime64 | pd.Timestamp):
            raise UserError(f"'{name}' is {brief(value)}; give a number, a word or a date")
        day = pd.Timestamp(value).tz_localize(None)
        since = float((day - EPOCH) / pd.Timedelta(days=1))
        parts = {"_month": float(day.month), "_weekday": float(day.weekday())}
        return {name: since} | {f"{name}{part}": number for part, number in parts.items()}


def policy_of(name: str, told: Any, actions: Sequence[Any]) -> Policy:
    """Make a policy of a function that answers with an action, or of a table ``{"kind": ...}``.

    It answers to the numbers of a context, by name, with an action's place.
    It raises UserError if an answer is no action, or a number is missing.
    """
    answers: Callable[..., Any] = told
    if not callable(told):
        with naming(f"policies['{name}']"):
            made = maker_of(told, register.policy)()
        answers = lambda x: actions[made(x)]  # noqa: E731 - typed

    def place(context: Mapping[str, float]) -> int:
        try:
            answer = answers(context)
        except KeyError as error:
            known = closest(str(error.args[0]), list(context))
            raise UserError(f"policy '{name}': no {error} in the context; {known}") from error
        if answer not in actions:
            wanted = f"return one of {', '.join(map(str, actions))}"
            raise UserError(f"policy '{name}' suggests {brief(answer)}; {wanted}")
        return actions.index(answer)

    return place


def targets(low: float, high: float) -> dict[str, Loss]:
    """Return the squared distance of an outcome to evenly spaced points, one action each."""
    points = np.linspace(low, high, POINTS)[:, None]
    return {"distance": SeparablePower(np.ones((POINTS, 1)), np.array(2.0), centre=points)}
