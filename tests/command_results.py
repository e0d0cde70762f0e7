"""What a command printed and how it exited: see the fixtures ``run_command`` and ``refusal_of``."""

from collections.abc import Callable
from typing import NamedTuple


class CommandResult(NamedTuple):
    """Exit status, standard output and standard error of a command."""

    status: int
    out: str
    err: str


RunCommand = Callable[..., CommandResult]  # words of a command line
RefusalOf = Callable[..., str]
