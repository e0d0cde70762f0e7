"""Files that are there whole or not at all, and survive a loss of power once they are there."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, *, alone: bool = True) -> Iterator[Path]:
    """Yield a draft beside a file that takes the file's name once the block is done.

    The draft, ``.NAME.tmp``, is synced before it is renamed and the folder after; whoever reads
    sees the old file or the new one. If the block raises or writes nothing the file stays.

    Parameters
    ----------
    alone : bool
        Whether the folder is synced; else who replaces several files does that once.

    Raises
    ------
    OSError
        With the file's own name, whatever library could not write the draft; or if the draft is a
        link, which is not followed.
    """
    draft = path.with_name(f".{path.name}.tmp")
    if draft.is_symlink():
        raise OSError(errno.ELOOP, "is a symbolic link", str(draft))
    try:
        yield draft
        if draft.exists():
            sync(draft)
            draft.replace(path)
            if alone:
                sync(path.parent)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk.

    Windows cannot sync folders; there their names are left to the file system.
    """
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
