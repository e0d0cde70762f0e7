"""Paths that a user gives, on a command line, in a file or to a function.

A shell leaves the ``~`` of ``--out=~/x`` as it is, and nothing expands one in a file or in Python.
So every path that a user gives passes through ``expanded``.
"""

import os
from pathlib import Path

from regretless.market.core.errors import UserError, brief


def expanded(path: str | os.PathLike[str], key: str = "path") -> Path:
    """Return a path with a leading ``~`` or ``~user`` as that folder, as a shell would.

    UserError if nobody knows the folder; ``key`` is what the user gave the path for.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        given = brief(os.fspath(path))
        raise UserError(f"{key} {given}: no such home folder; write it out") from error
