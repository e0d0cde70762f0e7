"""Errors that a user can mend, and the pieces from which their one line is made.

The command line prints a ``UserError`` as one line and exits with status 2; every other exception
is a fault of this project and keeps its traceback.
"""

import difflib
from collections.abc import Iterable
from typing import Any


class UserError(ValueError):
    """A mistake in what the user gave; its text is one line that names the key and the cure."""


class ParameterError(UserError):
    """A parameter of a function or class that is refused, by the name that it has there.

    A caller that knows under which key of a file the parameter was given puts the key in front.
    """


class ArgumentTypeError(UserError, TypeError):
    """An argument of the wrong type, where a caller expects a TypeError, as scikit-learn does."""


MAX_LISTED_CHARACTERS = 300  # of accepted names; a longer list is cut down to MAX_HINTS of them
MAX_HINTS = 6
MAX_VALUE_CHARACTERS = 40


def closest(name: str, accepted: Iterable[str]) -> str:
    """Return the end of an error line: which names are accepted, the one most like ``name`` first.

    >>> closest("wheet", ["rye", "wheat"])
    "did you mean 'wheat'? choose one of: rye, wheat"
    """
    names = sorted(accepted)
    if not names:
        return "there is none to choose"
    question = did_you_mean(name, names)
    listed_names = ", ".join(names)
    if len(listed_names) <= MAX_LISTED_CHARACTERS:
        return f"{question}choose one of: {listed_names}"
    similar = difflib.get_close_matches(name, names, n=MAX_HINTS)
    examples = ", ".join(similar or names[:MAX_HINTS])
    return f"{question}choose one of {len(names)}, such as {examples}"


def did_you_mean(name: str, accepted: Iterable[str]) -> str:
    """Return a question whether the most similar name was meant; empty where none is similar."""
    similar = difflib.get_close_matches(name, sorted(accepted), n=1)
    if not similar:
        return ""
    return f"did you mean '{similar[0]}'? "


def brief(value: Any) -> str:
    """Return the ``repr`` of a value on one line of at most ``MAX_VALUE_CHARACTERS`` characters."""
    text = " ".join(repr(value).split())
    if len(text) <= MAX_VALUE_CHARACTERS:
        return text
    return f"{text[: MAX_VALUE_CHARACTERS - 3]}..."
