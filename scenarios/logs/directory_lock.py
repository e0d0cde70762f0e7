"""One writer per directory: the lock that is held while a run, a study or a training writes.

The lock is that of the package ``filelock`` on an empty file, ``.lock``. The operating system gives
it up when the process ends, however it ends, so that nobody waits for a process that is gone.

File systems that cannot lock, as some network folders, are held by a marker in the same file, which
names the process and its machine. A marker of a process of this machine that is gone is taken over;
one of another machine stays until somebody removes it, since nobody here can tell whether its
process lives. So does one of filelock before 3.22, which names no process.
"""

import re
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from regretless.market.core.errors import UserError

LOCK = ".lock"
MAX_MARKER_BYTES = 1024  # more than a marker has, and than is read of a file of somebody else
MARKER_SECONDS = 0.2  # to find that a process is gone, and try once more
MARKER = re.compile(rb"\d+\n\S+\n(\d+\n)?|filelock/\w+\n(\d+\n)?")  # what filelock writes


@contextmanager
def hold_directory(path: Path) -> Iterator[None]:
    """Hold a directory, made if need be, while its files are written.

    Afterwards the lock's file is gone, and so is the directory if nothing else is in it. UserError
    if another process holds it, or if it cannot be written.
    """
    lock_file = path / LOCK
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = _acquire(lock_file)
    except Timeout as error:
        reason = f"--out {path}: another process is writing there"
        raise UserError(f"{reason}; wait for it or give another directory") from error
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        yield
    finally:
        with suppress(OSError):  # it cannot be written any more, or is gone
            lock_file.unlink(missing_ok=True)
        lock.release()
        with suppress(OSError):  # it holds files, as it should
            path.rmdir()


def _acquire(lock_file: Path) -> BaseFileLock:
    """Return the lock, held; Timeout if another process holds it."""
    if _has_marker(lock_file):
        # Older versions of FileLock (4.0 among them) remove a marker that another process left.
        return _acquire_marker(lock_file)
    was_there = lock_file.exists()
    lock = FileLock(lock_file)
    try:
        with warnings.catch_warnings():  # that there is a marker from now on concerns no user
            warnings.simplefilter("ignore")
            lock.acquire(blocking=False)
    except NotImplementedError:  # filelock before 3.24, where the file system cannot lock
        if not was_there:  # else an empty file is the marker of another process
            lock_file.unlink(missing_ok=True)
        return _acquire_marker(lock_file)
    return lock


def _acquire_marker(lock_file: Path) -> BaseFileLock:
    """Return the lock of a file system that cannot lock, held; Timeout if it is another's."""
    lock = SoftFileLock(lock_file)
    lock.acquire(timeout=MARKER_SECONDS, poll_interval=MARKER_SECONDS / 4)
    return lock


def _has_marker(lock_file: Path) -> bool:
    """Whether the lock's file names a process that holds it; UserError if it is not ours."""
    try:
        status = lock_file.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise not_ours(lock_file.parent, LOCK)
        if status.st_size == 0:
            return False
        with lock_file.open("rb") as file:
            content = file.read(MAX_MARKER_BYTES)
    except FileNotFoundError:  # there is none, or another process has just given it up
        return False
    if not MARKER.fullmatch(content):
        raise not_ours(lock_file.parent, LOCK)
    return True


def not_ours(folder: Path, name: str) -> UserError:
    """Return the error that says that a file in the way is none of this project's."""
    hint = "move it away or give another directory"
    return UserError(f"--out {folder} holds {name}, which regretless has not written; {hint}")


def unwritable(path: Path, error: OSError) -> UserError:
    """Return the error that says why a directory cannot be written."""
    reason = f"--out {path} cannot be written: {error.strerror}"
    return UserError(f"{reason}; give another directory")
