"""Making registered building blocks from the parameters of a scenario file.

What a parameter may be is read from its annotation, where that is of plain types: a number for all
agents, text, or lists and tables of such; the maker checks ranges, and arrays of numbers.
"""

import inspect
from collections.abc import Iterable, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError

from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError, UserError, did_you_mean
from regretless.market.core.own_code import blamed, copy_for_user, is_ours, is_writing
from regretless.scenarios.config.validation import fault_line

PLAIN = {int, float, str, bool, NoneType, Any}
ARRAYS = {np.ndarray, get_origin(Array)}  # an alias of its own since NumPy 2.5
HOLDERS = {list, dict, Sequence, Union, UnionType}
STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def drawn_values(where: str, value: Any, rng: np.random.Generator, count: int) -> Any:
    """Resolve a parameter: a range or choices are drawn per agent, a number is everybody's.

    Two numbers ``[low, high]`` are a range, ``{ choices = [...] }`` a list of numbers, or of texts,
    to draw from; anything else is returned as it stands. Returns array (count,), or the value.
    """
    match value:
        case [int() | float() as low, int() | float() as high]:
            if low > high:
                raise UserError(f"{where} = {value}: the range descends; write [{high}, {low}]")
            return rng.uniform(low, high, count)
        case {"choices": [_, *_] as options, **rest} if not rest:
            kinds = {type(option) for option in options}
            if kinds == {str} or kinds <= {int, float}:
                kind = None if kinds == {str} else np.float64
                return rng.choice(np.asarray(options, dtype=kind), count)
    if isinstance(value, dict):
        raise UserError(f"{where} = {value}: write {{ choices = [NUMBER, ...] }}")
    return value


def construct(where: str, maker: Any, *arguments: Any, **parameters: Any) -> Any:
    """Call a registered maker; a parameter that does not fit is the user's mistake.

    Parameters are passed to a user's own maker as ``own_code.copy_for_user`` makes them.
    """
    try:
        inspect.signature(maker).bind_partial(*arguments, **parameters)  # what is misspelt, first
        inspect.signature(maker).bind(*arguments, **parameters)
    except TypeError as error:
        if str(error) == "too many positional arguments":
            wanted = f"take the {len(arguments)} that every one is given"
            raise UserError(f"{where} takes too few arguments; {wanted}") from error
        known = list(inspect.signature(maker).parameters)[len(arguments) :]
        taken = ", ".join(known) or "no parameters"
        hint = "".join(did_you_mean(name, known) for name in parameters if name not in known)
        raise UserError(f"{where}: {error}; {hint}it takes {taken}") from error
    for name, (reader, stacks) in _readers(maker).items():
        drawn = isinstance(parameters.get(name), np.ndarray)
        if name in parameters and not (drawn and (stacks or not is_ours(maker))):
            _check(f"{where}: {name}", parameters[name], reader)
    try:
        return maker(
            *arguments, **{name: copy_for_user(maker, own) for name, own in parameters.items()}
        )
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        if isinstance(error, UserError) and not isinstance(error, ParameterError):
            raise
        if is_writing(error) and (written := blamed(error)):
            raise UserError(f"{where}: {written}") from error
        told = {name: value for name, value in parameters.items() if not callable(value)}
        texts = {name: " ".join(repr(value).split()) for name, value in told.items()}
        ends = {n: t if len(t) < 60 else f"{t[:28]} ... {t[-28:]}" for n, t in texts.items()}
        given = ", ".join(f"{name} = {text}" for name, text in ends.items())
        reason = "too large for this machine" if isinstance(error, MemoryError) else error
        raise UserError(f"{where}: {reason}; check {given or 'it'}") from error


@cache
def _readers(maker: Any) -> dict[str, tuple[TypeAdapter[Any], bool]]:
    """Make what reads each parameter of plain types; also whether arrays are annotated beside."""
    source = maker.__init__ if isinstance(maker, type) else maker  # type: ignore[misc]
    try:
        hints = get_type_hints(source, include_extras=True)
    except (AttributeError, NameError, TypeError):  # of a user's own, for a type checker alone
        return {}
    readers: dict[str, tuple[TypeAdapter[Any], bool]] = {}
    for name, hint in hints.items():
        kinds = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
        alone = tuple(kind for kind in kinds if get_origin(kind) not in ARRAYS)
        if alone and all(map(_plain, alone)):
            either: Any = Union[alone]  # noqa: UP007 - of as many as there are
            readers[name] = TypeAdapter(either, config=STRICT), alone != kinds
    return readers


def _plain(hint: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _plain(inside[0])
    return hint in PLAIN or origin is Literal or (origin in HOLDERS and all(map(_plain, inside)))


def _check(where: str, value: Any, reader: TypeAdapter[Any]) -> None:
    """Raise UserError unless a value is of the annotated type, and in the annotated range."""
    array = isinstance(value, np.ndarray)
    try:
        reader.validate_python(value.tolist() if array or isinstance(value, np.generic) else value)
    except ValidationError as error:
        if array:
            raise UserError(f"{where} is drawn for each agent; give one value for all") from error
        fault = max(error.errors(), key=lambda own: len(own["loc"]))  # the innermost of a union
        raise UserError(fault_line(fault, where, [], "scenario")) from error


def offering(where: str, made: Any, wanted: Iterable[str]) -> Any:
    """Return what a registered maker made; UserError unless it has what its role needs."""
    missing = [name for name in wanted if not hasattr(made, name)]
    if missing:
        raise UserError(f"{where} has no {', '.join(missing)}; add it")
    return made


def with_length(maker: Any, parameters: dict[str, Any], rounds: int) -> dict[str, Any]:
    """Add the length of the run to the parameters of a maker that takes ``rounds``."""
    takes = "rounds" in inspect.signature(maker).parameters
    return {"rounds": rounds} | parameters if takes else parameters
