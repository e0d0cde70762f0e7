"""Making registered building blocks from the parameters of a scenario file."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from agents.utilities import Population
from market.errors import UserError


def drawn_values(value: Any, population: Population) -> Any:
    """Resolve a parameter: a range or choices are drawn per agent, a number is everybody's.

    Two numbers ``[low, high]`` are a range, ``{ choices = [...] }`` a list to draw from; anything
    else goes to the utility as it stands.
    """
    match value:
        case bool() | str():
            return value
        case [int() | float() as low, int() | float() as high]:
            return population.rng.uniform(low, high, population.count)
        case {"choices": [*options]} if options:
            return population.rng.choice(np.asarray(options, dtype=np.float64), population.count)
        case _:
            return value


def construct(where: str, maker: Any, *arguments: Any, **parameters: Any) -> Any:
    """Call a registered maker; a parameter that does not fit is the user's mistake."""
    try:
        inspect.signature(maker).bind(*arguments, **parameters)
    except TypeError as error:
        known = [
            name
            for name, parameter in inspect.signature(maker).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY or name in parameters
        ] or list(inspect.signature(maker).parameters)
        raise UserError(f"{where}: {error}; it takes {', '.join(known)}") from error
    try:
        return maker(*arguments, **parameters)
    except UserError:
        raise
    except (TypeError, ValueError) as error:
        raise UserError(f"{where}: {error}") from error
