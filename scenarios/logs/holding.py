"""One writer for a directory: a run or a study that is being written is held by a lock."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import plain, refuse, there

LOCK = ".lock"


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a directory, made if need be, while its files are written.

    The system gives the lock up when the process ends, however it ends; the empty file that may be
    left behind holds nobody up.

    Raises
    ------
    UserError
        If another process holds it, or it cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if there(path / LOCK) and not (plain(path / LOCK) and _empty(path / LOCK)):
            refuse(path, LOCK)
        lock = FileLock(path / LOCK)
        lock.acquire(blocking=False)
    except Timeout as error:
        reason = f"--out {path}: another process is writing there"
        raise UserError(f"{reason}; wait for it or give another directory") from error
    except OSError as error:
        reason = f"--out {path} cannot be written: {error.strerror}"
        raise UserError(f"{reason}; give another directory") from error
    try:
        yield
    finally:
        with suppress(OSError):  # it cannot be written any more, or is gone
            (path / LOCK).unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):  # it holds files, as it should
            path.rmdir()


def _empty(path: Path) -> bool:
    with suppress(FileNotFoundError):  # another process has just given it up
        return path.stat().st_size == 0
    return True


def contents(path: Path) -> list[Path]:
    """List what is in a directory beside the lock; nothing where there is no directory."""
    return [found for found in path.iterdir() if found.name != LOCK] if path.is_dir() else []
