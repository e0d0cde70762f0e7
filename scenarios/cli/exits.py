"""How the command ends when it cannot go on: one line on standard error, and an exit status.

2 is a user's mistake, 130 an interruption, as shells have it, 1 a study of which every run failed.
A fault in a module of the user's own is the user's mistake too, and the line says where it is.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from pathlib import Path
from typing import Any, NoReturn

import typer

from regretless.scenarios.imports import rooms

INTERRUPTED = 130
INSTALLED = {"site-packages", "dist-packages"}  # folders of other packages
RESUMABLE = ("run", "study")
OWN = ", if what is your own has state() and restore(state)"


def fail(line: str, status: int) -> NoReturn:
    """Say why, in one line, and leave."""
    typer.echo("regretless: " + " ".join(line.split()), err=True)
    sys.exit(status)


def interrupted() -> NoReturn:
    """Leave after Ctrl-C; say how to go on where that can be done."""
    resumable = any(command in sys.argv[1:2] for command in RESUMABLE)
    own = "run" in sys.argv[1:2] and any(word.startswith("--import") for word in sys.argv)
    how = "; continue with --resume" + OWN * own
    fail("interrupted" + how * resumable, INTERRUPTED)


def own_code(error: BaseException) -> str | None:
    """Say where in the user's own code an exception came from; None if it did not.

    Own code is what belongs neither to this project's rooms nor to Python nor to others'.
    """
    known = [Path(sysconfig.get_path("stdlib")).resolve(), *map(Path.resolve, rooms())]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename).resolve()
        installed = INSTALLED.intersection(file.parts) or any(map(file.is_relative_to, known))
        if file.is_file() and not installed:
            return f"{file.name}, line {frame.lineno}, in {frame.name}"
    return None


def misused(error: Any) -> NoReturn:
    """Leave because the parser did not understand; point to the help of the command."""
    command = getattr(getattr(error, "ctx", None), "info_name", None)
    help_of = f"regretless {command}" if command in sys.argv[1:2] else "regretless"
    fail(f"{error.format_message().rstrip('.')}; see {help_of} --help", 2)
