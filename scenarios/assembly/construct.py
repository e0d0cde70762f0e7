"""Making registered building blocks from the parameters of a scenario file."""

import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np

from regretless.market.core.errors import UserError, hinted
from regretless.market.core.own_code import blamed, is_writing, lent


def drawn_values(where: str, value: Any, rng: np.random.Generator, count: int) -> Any:
    """Resolve a parameter: a range or choices are drawn per agent, a number is everybody's.

    Two numbers ``[low, high]`` are a range, ``{ choices = [...] }`` a list of numbers, or of texts,
    to draw from; anything else is returned as it stands. Returns array (count,), or the value.
    """
    match value:
        case bool() | str():
            return value
        case [int() | float() as low, int() | float() as high]:
            if low > high:
                raise UserError(f"{where} = {value}: the range descends; write [{high}, {low}]")
            return rng.uniform(low, high, count)
        case {"choices": [_, *_] as options, **rest} if not rest:
            texts = all(isinstance(option, str) for option in options)
            numbers = all(type(option) in {int, float} for option in options)
            if not (texts or numbers):
                raise UserError(f"{where} = {value}: write {{ choices = [NUMBER, ...] }}")
            return rng.choice(np.asarray(options, dtype=None if texts else np.float64), count)
        case dict():
            raise UserError(f"{where} = {value}: write {{ choices = [NUMBER, ...] }}")
        case _:
            return value


def construct(where: str, maker: Any, *arguments: Any, **parameters: Any) -> Any:
    """Call a registered maker; a parameter that does not fit is the user's mistake.

    Parameters are handed to a maker of the user's own as ``market.core.own_code.lent`` says.
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
        hint = "".join(hinted(name, known) for name in parameters if name not in known)
        raise UserError(f"{where}: {error}; {hint}it takes {taken}") from error
    try:
        return maker(*arguments, **{name: lent(maker, own) for name, own in parameters.items()})
    except UserError:
        raise
    except (TypeError, ValueError, ArithmeticError, MemoryError) as error:
        if is_writing(error) and (written := blamed(error)):
            raise UserError(f"{where}: {written}") from error
        texts = {name: " ".join(repr(value).split()) for name, value in parameters.items()}
        ends = {n: t if len(t) < 60 else f"{t[:28]} ... {t[-28:]}" for n, t in texts.items()}
        given = ", ".join(f"{name} = {text}" for name, text in ends.items())
        reason = "too large for this machine" if isinstance(error, MemoryError) else error
        raise UserError(f"{where}: {reason}; check {given or 'it'}") from error


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
