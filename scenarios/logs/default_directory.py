"""Where a run or a training goes by default: ``runs/NAME``, or the next free ``runs/NAME-2``."""

from collections.abc import Callable
from itertools import count, takewhile
from pathlib import Path

from regretless.scenarios.logs.holding import contents
from regretless.scenarios.logs.ownership import there


def default_directory(
    base: Path, interrupted: Callable[[Path], bool], *, resume: bool, overwrite: bool
) -> Path:
    """Choose among BASE, BASE-2, BASE-3, ...

    Parameters
    ----------
    interrupted : callable
        Says whether a directory holds what ``resume`` may go on with.

    Returns
    -------
    Path
        The first that is free; with ``resume`` the last one that is interrupted, or the
        last one if there is none; with ``overwrite`` BASE.
    """
    numbered = (base if n == 1 else base.with_name(f"{base.name}-{n}") for n in count(1))
    taken = list(takewhile(_taken, numbered))
    if overwrite or not taken:
        return base
    if resume:
        return (list(filter(interrupted, taken)) or taken)[-1]
    return base.with_name(f"{base.name}-{len(taken) + 1}")


def _taken(path: Path) -> bool:
    return there(path) and (not path.is_dir() or bool(contents(path)))
