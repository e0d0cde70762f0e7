"""What the command says to whoever sits at it."""

from collections.abc import Callable
from typing import NamedTuple


class Answer(NamedTuple):
    """What a command said: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


Call = Callable[..., Answer]
Refused = Callable[..., str]
