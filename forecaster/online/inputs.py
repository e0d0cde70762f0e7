"""What users give an ``OnlineOmnipredictor``: contexts, policies, and losses of a scale."""

import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless.forecaster.models.seasons import MONTH_OF_DATE, WEEKDAY_OF_DATE
from regretless.forecaster.online.validation import (
    FeatureWarning,
    feature_line,
    is_missing,
    named_values,
)
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.losses import Loss, SeparablePower
from regretless.market.records import Policy


@contextmanager
def errors_about(parameter: str, *hints: str) -> Iterator[None]:
    """Turn what is refused into a UserError that names the parameter, and adds a cure."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UserError("; ".join((f"{parameter}: {error}", *hints))) from error


def maker_of(description: Any, registry: register.Registry, *, n_given: int = 0) -> partial[Any]:
    """Return what a name or a table ``{"kind": ...}`` says is to be made, with its parameters.

    Parameters
    ----------
    description : str or mapping
        The name, or the table.
    registry : Registry
        Where the name is looked for.
    n_given : int
        How many arguments, the first ones, the caller itself gives the maker.

    Raises
    ------
    UserError
        If the kind or a parameter has another name.
    """
    parameters: dict[str, Any] = {}
    kind = str(description)
    if isinstance(description, Mapping):
        parameters = dict(description)
        kind = str(parameters.pop("kind", None))
    if kind not in registry:
        raise UserError(f"unknown kind {kind!r}; {closest(kind, registry.names())}")
    maker = registry[kind]
    signature = inspect.signature(maker).parameters
    accepts_any = any(entry.kind is entry.VAR_KEYWORD for entry in signature.values())
    # The caller gives the first ones, and the basis; a description gives the others.
    accepted = [name for name in list(signature)[n_given:] if name != "basis"]
    for name in parameters:
        if name not in accepted and not accepts_any:
            raise UserError(f"'{kind}' has no parameter '{name}'; {closest(str(name), accepted)}")
    return partial(maker, **parameters)


DATE = re.compile(r"\d{4}-\d\d-\d\d([ T].*)?")
Inputs = Mapping[Any, Any] | Sequence[Any] | Array | None  # values by name, or by column
EPOCH = pd.Timestamp("1970-01-01")
N_TARGETS = 11


class ReadContext(dict[str, float]):
    """The numbers of a context that was read already, for many shops at once.

    ``features`` are the names that it had before, as when a date becomes several numbers; whoever
    read it has compared them with those of earlier contexts.
    """

    def __init__(self, numbers: Mapping[str, float], features: Sequence[str]) -> None:
        super().__init__(numbers)
        self.features = features


class Contexts(Checkpointable):
    """Names the numbers of contexts, and remembers the codes of words.

    Words are whole numbers in the order in which they first came. A date has a month, a weekday (0
    is Monday) and the days since 1970. What is missing is left out.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_codes", "_features", "_said")

    def __init__(self) -> None:
        self._codes: dict[str, dict[str, int]] = {}
        self._features: list[str] = []  # names of values that a context had, in order
        self._said: list[str] = []  # names that were missing or new, and warned of

    def numbers(self, x: Inputs, *, learn: bool = False) -> dict[str, float]:
        """Return the numbers of a context by name, in the order of their names.

        ``x`` has values by name, or of the columns ``x_0``, ``x_1`` and so on; new words are left
        out, and remembered with ``learn``. FeatureWarning, once for each name, where earlier
        contexts had other names; UserError if a value is none.
        """
        if isinstance(x, ReadContext):
            if learn:
                self.learn_features(x.features)
            return dict(x)
        named = named_values(x)
        numbers: dict[str, float] = {}
        for name in sorted(named):
            numbers |= self._read(name, named[name], learn)
        if learn:
            self.learn_features(named)
        else:
            # To whoever called the omnipredictor, beyond this method and two of the omnipredictor.
            self.compare_features(named, stacklevel=5)
        return {name: value for name, value in numbers.items() if not np.isnan(value)}

    @property
    def features(self) -> list[str]:
        """Names of the values that a context had, in the order in which they first came."""
        return list(self._features)

    def learn_features(self, names: Iterable[str]) -> None:
        """Remember the names of a context's values."""
        self._features += [name for name in names if name not in self._features]

    def compare_features(self, names: Collection[str], *, stacklevel: int) -> None:
        """Warn of names that a context lacks or has for the first time, of each one once.

        ``stacklevel`` is that of the warning, counted from here.
        """
        if not self._features:
            return
        missing_names = [name for name in self._features if name not in names]
        new_names = [name for name in names if name not in self._features]
        missing = [name for name in missing_names if name not in self._said]
        new = [name for name in new_names if name not in self._said]
        if missing or new:
            self._said += [*missing, *new]
            warnings.warn(feature_line(missing, new), FeatureWarning, stacklevel=stacklevel)

    def _read(self, name: str, value: Any, learn: bool) -> dict[str, float]:  # noqa: FBT001
        if is_missing(value):
            return {}
        if isinstance(value, bool | int | float | np.number | np.bool_ | Decimal):
            return {name: finite(name, value)}
        if isinstance(value, str):
            if not DATE.fullmatch(value):
                with suppress(ValueError):
                    return {name: finite(name, float(value))}
                codes = self._codes.get(name, {})
                if learn:
                    codes = self._codes.setdefault(name, codes)
                    codes.setdefault(value, len(codes))
                return {name: float(codes[value])} if value in codes else {}
        elif not isinstance(value, date | np.datetime64 | pd.Timestamp):
            raise UserError(f"'{name}' is {brief(value)}; give a number, a word or a date")
        try:
            day = pd.Timestamp(value).tz_localize(None)
        except ValueError as error:
            hint = "give a date such as 2026-03-01"
            raise UserError(f"'{name}' is {brief(value)}, which is no date; {hint}") from error
        if pd.isna(day):
            return {}
        return {
            name: float((day - EPOCH) / pd.Timedelta(days=1)),
            MONTH_OF_DATE.format(name): float(day.month),
            WEEKDAY_OF_DATE.format(name): float(day.weekday()),
        }


def finite(name: str, value: Any) -> float:
    """Return a number of a context, NaN where it is missing; UserError if it is infinite."""
    try:
        number = float(value)
    except (OverflowError, TypeError):  # of hundreds of digits, or complex
        number = np.inf
    if np.isinf(number):
        raise UserError(f"'{name}' is {brief(value)}; give a finite number, or None") from None
    return number


def policy_of(name: str, rule: Any, actions: Sequence[Any]) -> Policy:
    """Make a policy of a function that answers with an action, or of a table ``{"kind": ...}``.

    The policy takes the numbers of a context, by name, and returns the index of an action. It
    raises UserError if the function suggests what is no action, or looks for a number that the
    context does not have.
    """
    if callable(rule):
        suggested_action: Callable[..., Any] = rule
    else:
        with errors_about(f"policies['{name}']"):
            # any other rule is the name or the table of a registered kind of policy
            make_policy = maker_of(rule, register.policy)
            policy = make_policy()

        def suggested_action(context: Mapping[str, float]) -> Any:
            return actions[policy(context)]

    def index_of_suggestion(context: Mapping[str, float]) -> int:
        try:
            action = suggested_action(context)
        except KeyError as error:
            hint = closest(str(error.args[0]), list(context))
            raise UserError(f"policy '{name}': no {error} in the context; {hint}") from error
        if action not in actions:
            hint = f"return one of {', '.join(map(str, actions))}"
            raise UserError(f"policy '{name}' suggests {brief(action)}; {hint}")
        return actions.index(action)

    return index_of_suggestion


def losses_of_targets(low: float, high: float) -> dict[str, Loss]:
    """Return the squared distance of an outcome to evenly spaced points, one action each."""
    points = np.linspace(low, high, N_TARGETS)[:, None]
    return {"distance": SeparablePower(np.ones((N_TARGETS, 1)), np.array(2.0), centre=points)}
