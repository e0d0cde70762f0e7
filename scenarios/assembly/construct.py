"""Making registered building blocks from the parameters of a scenario file.

Every step of ``build`` that makes something of a registered name calls ``construct``, and for
parameters that are drawn for each agent ``drawn_values``. Both word a user's mistake as one line.
What a parameter may be is read from its annotation, where that is of plain types: a number for all
agents, text, or lists and tables of such; the maker checks ranges, and arrays of numbers.
"""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError, UserError, did_you_mean
from regretless.market.core.own_code import blamed, copy_for_user, is_ours, is_writing
from regretless.market.losses.basis import Basis
from regretless.scenarios.config.validation import fault_line

PLAIN_TYPES = {int, float, str, bool, NoneType, Any}
ARRAY_TYPES = {np.ndarray, get_origin(Array)}  # an alias of its own since NumPy 2.5
CONTAINER_TYPES = {list, dict, Sequence, Union, UnionType}
STRICT = ConfigDict(strict=True, allow_inf_nan=False)
MAX_VALUE_LENGTH = 60  # characters of a parameter in an error line; a longer one is cut short
END_LENGTH = 28  # characters that are left at both of its ends


def drawn_values(where: str, value: Any, rng: np.random.Generator, count: int) -> Any:
    """Resolve a parameter: a range or choices are drawn per agent, a number is everybody's.

    Two numbers ``[low, high]`` are a range, ``{ choices = [...] }`` a list of numbers, or of texts,
    to draw from; anything else is returned as it stands. Returns array (count,), or the value.
    UserError, with the key ``where``, for a range that descends and for another table.
    """
    match value:
        case [int() | float() as low, int() | float() as high]:
            if low > high:
                raise UserError(f"{where} = {value}: the range descends; write [{high}, {low}]")
            return rng.uniform(low, high, count)
        case {"choices": [_, *_] as choices, **other_keys} if not other_keys:
            types_of_choices = {type(choice) for choice in choices}
            if types_of_choices == {str}:
                return rng.choice(np.asarray(choices), count)
            if types_of_choices <= {int, float}:
                return rng.choice(np.asarray(choices, dtype=np.float64), count)
    if isinstance(value, dict):
        raise UserError(f"{where} = {value}: write {{ choices = [NUMBER, ...] }}")
    return value


def construct(where: str, maker: Any, *arguments: Any, **parameters: Any) -> Any:
    """Call a registered maker; a parameter that does not fit is the user's mistake.

    Parameters are passed to a user's own maker as ``own_code.copy_for_user`` makes them. UserError
    names the building block as ``where``.
    """
    _check_names(where, maker, arguments, parameters)
    for name, reader in _readers(maker).items():
        if name not in parameters:
            continue
        value = parameters[name]
        is_drawn = isinstance(value, np.ndarray)
        takes_arrays = reader.takes_arrays or not is_ours(maker)
        if not (is_drawn and takes_arrays):
            _check_value(f"{where}: {name}", value, reader.adapter)
    copies = {name: copy_for_user(maker, value) for name, value in parameters.items()}
    try:
        return maker(*arguments, **copies)
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        if isinstance(error, UserError) and not isinstance(error, ParameterError):
            raise
        if is_writing(error) and (written := blamed(error)):
            raise UserError(f"{where}: {written}") from error
        reason: object = error
        if isinstance(error, MemoryError):
            reason = "too large for this machine"
        raise UserError(f"{where}: {reason}; check {_listed(parameters) or 'it'}") from error


def _check_names(
    where: str, maker: Any, arguments: tuple[Any, ...], parameters: dict[str, Any]
) -> None:
    """Raise UserError if a maker does not take the arguments, or parameters of these names."""
    signature = inspect.signature(maker)
    try:
        signature.bind_partial(*arguments, **parameters)  # what is misspelt, first
        signature.bind(*arguments, **parameters)
    except TypeError as error:
        if str(error) == "too many positional arguments":
            expected = f"take the {len(arguments)} that every one is given"
            raise UserError(f"{where} takes too few arguments; {expected}") from error
        accepted = list(signature.parameters)[len(arguments) :]
        listed = ", ".join(accepted) or "no parameters"
        hints = [did_you_mean(name, accepted) for name in parameters if name not in accepted]
        raise UserError(f"{where}: {error}; {''.join(hints)}it takes {listed}") from error


def _listed(parameters: dict[str, Any]) -> str:
    """Write parameters for an error line, long values cut short in their middle."""
    entries = []
    for name, value in parameters.items():
        if callable(value) or isinstance(value, Basis):  # no part of a file
            continue
        text = " ".join(repr(value).split())
        if len(text) >= MAX_VALUE_LENGTH:
            text = f"{text[:END_LENGTH]} ... {text[-END_LENGTH:]}"
        entries.append(f"{name} = {text}")
    return ", ".join(entries)


@dataclass(frozen=True)
class _Reader:
    """What checks a parameter whose annotation is of plain types."""

    adapter: TypeAdapter[Any]
    takes_arrays: bool  # whether arrays are annotated beside


@cache
def _readers(maker: Any) -> dict[str, _Reader]:
    """Make what checks each parameter of a maker that is of plain types."""
    source = maker.__init__ if isinstance(maker, type) else maker  # type: ignore[misc]
    try:
        hints = get_type_hints(source, include_extras=True)
    except (AttributeError, NameError, TypeError):  # of a user's own, for a type checker alone
        return {}
    readers: dict[str, _Reader] = {}
    for name, hint in hints.items():
        alternatives = (hint,)
        if get_origin(hint) in {Union, UnionType}:
            alternatives = get_args(hint)
        plain = tuple(kind for kind in alternatives if get_origin(kind) not in ARRAY_TYPES)
        if plain and all(map(_is_plain, plain)):
            any_of_them: Any = Union[plain]  # noqa: UP007 - of as many as there are
            adapter = TypeAdapter(any_of_them, config=STRICT)
            readers[name] = _Reader(adapter, takes_arrays=plain != alternatives)
    return readers


def _is_plain(hint: Any) -> bool:
    """Whether an annotation is of plain types, or of lists and tables of such."""
    origin = get_origin(hint)
    inside = get_args(hint)
    if origin is Annotated:
        return _is_plain(inside[0])
    if hint in PLAIN_TYPES or origin is Literal:
        return True
    return origin in CONTAINER_TYPES and all(map(_is_plain, inside))


def _check_value(where: str, value: Any, adapter: TypeAdapter[Any]) -> None:
    """Raise UserError unless a value is of the annotated type, and in the annotated range."""
    is_array = isinstance(value, np.ndarray)
    if is_array or isinstance(value, np.generic):
        value = value.tolist()
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        if is_array:
            raise UserError(f"{where} is drawn for each agent; give one value for all") from error
        faults = error.errors()
        innermost = max(faults, key=lambda fault: len(fault["loc"]))  # of a union
        line = fault_line(innermost, where, [], "scenario")
        takes_numbers_too = any(fault["type"] == "float_type" for fault in faults)
        if innermost["type"] == "literal_error" and takes_numbers_too:
            line += " or a number"
        raise UserError(line) from error


def offering(where: str, constructed: Any, attributes: Iterable[str]) -> Any:
    """Return what a registered maker made; UserError unless it has what its role needs."""
    missing = [name for name in attributes if not hasattr(constructed, name)]
    if missing:
        raise UserError(f"{where} has no {', '.join(missing)}; add it")
    return constructed


def with_length(maker: Any, parameters: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Add the length of the run to the parameters of a maker that takes ``rounds``."""
    if "rounds" in inspect.signature(maker).parameters:
        return {"rounds": rounds, **parameters}
    return parameters
