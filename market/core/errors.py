"""The one exception that means: the user can mend this."""

import difflib
from collections.abc import Iterable
from typing import Any


class UserError(ValueError):
    """A mistake in what the user gave; its text is one line that names the key and the cure."""


class ParameterError(UserError):
    """A parameter of a function or class that is refused, by the name that it has there.

    Whoever knows under which key it was given puts that in front.
    """


MAX_LISTED_CHARACTERS = (
    300  # characters of names that a line lists; of more it lists FEW, those that are near
)
MAX_HINTS = 6
MAX_VALUE_CHARACTERS = 40  # characters of a value


def closest(name: str, known_names: Iterable[str]) -> str:
    """Say what would have been accepted, the nearest name first, for the end of an error line."""
    names = sorted(known_names)
    similar, question = (
        difflib.get_close_matches(name, names, n=MAX_HINTS),
        did_you_mean(name, names),
    )
    if not names:
        return "there is none to choose"
    listed_names = ", ".join(names)
    if len(listed_names) > MAX_LISTED_CHARACTERS:
        examples = ", ".join(similar or names[:MAX_HINTS])
        return f"{question}choose one of {len(names)}, such as {examples}"
    return f"{question}choose one of: {listed_names}"


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """Ask whether the nearest of the known names was meant; empty where none is near."""
    similar = difflib.get_close_matches(name, sorted(known_names), n=1)
    return f"did you mean '{similar[0]}'? " if similar else ""


def brief(value: Any) -> str:
    """Write a value on one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 3]}..."
