"""How this project's functions are compiled, and where the compiled code is kept.

Numba keeps it beside the source or under the user's home. Where neither can be written, as in a
container with a read-only file system, it is kept in a private folder of the system's temporary
one; where that cannot be had either, nothing is kept and each process compiles for itself.
"""

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on its first call, and keep the code where that is possible.

    ``options`` are those of ``numba.njit``, beside ``cache``.
    """

    def decorated(function: Any) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:
            return _elsewhere(function, options)

    return decorated


def _elsewhere(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Compile a function whose code is kept in a private temporary folder, or nowhere."""
    try:
        numba.config.CACHE_DIR = str(_private(Path(tempfile.gettempdir())))  # type: ignore[attr-defined]
        return numba.njit(cache=True, **options)(function)
    except (OSError, RuntimeError):
        return numba.njit(**options)(function)


def _private(home: Path) -> Path:
    """Return our folder there, made if need be; OSError unless it is this user's alone.

    What is kept is code that will be run: a folder that somebody else has prepared is not used.
    """
    if os.name != "posix":  # there the temporary folder itself is the user's own
        return home / "regretless-numba"
    folder = home / f"regretless-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    alone = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if not alone or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not this user's alone")
    return folder
