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


WHOLE = 300  # characters of names that a line lists; of more it lists FEW, those that are near
FEW = 6
SHORT = 40  # characters of a value


def closest(name: str, known: Iterable[str]) -> str:
    """Say what would have been accepted, the nearest name first, for the end of an error line."""
    names = sorted(known)
    near, hint = difflib.get_close_matches(name, names, n=FEW), hinted(name, names)
    if not names:
        return "there is none to choose"
    whole = ", ".join(names)
    if len(whole) > WHOLE:
        return f"{hint}choose one of {len(names)}, such as {', '.join(near or names[:FEW])}"
    return f"{hint}choose one of: {whole}"


def hinted(name: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of the known names was meant; empty where none is near."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean '{near[0]}'? " if near else ""


def brief(value: Any) -> str:
    """Write a value on one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= SHORT else f"{text[: SHORT - 3]}..."
