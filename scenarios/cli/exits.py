"""How the command ends when it cannot go on: one line on standard error, and an exit status.

2 is a user's mistake, 130 an interruption, as shells have it, 1 a study of which every run failed.
A fault in a module of the user's own is the user's mistake too, and the line says where it is.
"""

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

INTERRUPTED = 130
LONGEST = 2000  # characters of a line
RESUMABLE = ("run", "study", "train")
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # not on Windows
CURES = {
    **dict.fromkeys(FULL, "make room"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable"),
    errno.ENAMETOOLONG: "shorten it",
    errno.ENOENT: "leave its folder alone",
}
OWN = ", if what is your own has state() and restore(state)"


def fail(line: str, status: int) -> NoReturn:
    """Say why, in one line, and leave."""
    warn(line)
    sys.exit(status)


def warn(line: str) -> None:
    """Write one line on standard error."""
    plain = "".join(c if c.isprintable() else repr(c)[1:-1] for c in " ".join(line.split()))
    if len(plain) > LONGEST:
        plain = f"{plain[: LONGEST // 2]}...{plain[-LONGEST // 2 :]}"
    typer.echo(f"regretless: {plain}", err=True)


@contextmanager
def traced(*, wanted: bool) -> Iterator[None]:
    """Print the traceback of what goes wrong, before the line that says it, where it is wanted."""
    try:
        yield
    except Exception as error:
        if wanted:
            traceback.print_exception(error)
        raise


def interrupted() -> NoReturn:
    """Leave after Ctrl-C; say how to go on where that can be done."""
    resumable = any(command in sys.argv[1:2] for command in RESUMABLE)
    own = "run" in sys.argv[1:2] and any(word.startswith("--import") for word in sys.argv)
    how = "; continue with --resume" + OWN * own
    fail("interrupted" + how * resumable, INTERRUPTED)


def unusable(error: OSError | MemoryError) -> NoReturn:
    """Leave because the system refused a file, a connection or memory; say how to go on."""
    if isinstance(error, MemoryError):
        fail("there is not enough memory; lower counts, actions or rounds", 2)
    name = os.fsdecode(error.filename) if error.filename else "the system"
    again = "continue with --resume" if sys.argv[1:2] in ([c] for c in RESUMABLE) else "try again"
    cure = CURES.get(error.errno or 0, "mend it")
    fail(f"{name}: {error.strerror or error}; {cure}, then {again}", 2)


def misused(error: Any) -> NoReturn:
    """Leave because the parser did not understand; point to the help of the command."""
    command = getattr(getattr(error, "ctx", None), "info_name", None)
    help_of = f"regretless {command}" if command in sys.argv[1:2] else "regretless"
    said = error.format_message().rstrip(".").replace("Input should be", "must be")
    fail(f"{said}; see {help_of} --help", 2)
