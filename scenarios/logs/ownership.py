"""Which files of a directory are ours: those that its record lists, and no others.

Nothing else is replaced or removed, and no link is followed: a directory that has one where a file
of ours belongs is refused.
"""

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, takewhile
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from filelock import FileLock, Timeout

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError

T = TypeVar("T")
REPORT = "report.html"
GENERATOR = '<meta name="generator" content="regretless">'  # in every page of ours
HEAD = 4096  # characters of a page, among which it stands


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the table that a JSON file holds; None if it cannot be read or holds none."""
    found = None
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else None


def record_of(file: Path, *keys: str) -> dict[str, Any] | None:
    """Return the record in a file of ours, which has these keys; None of a link or another file."""
    record = read_json(file) if plain(file) else None
    return record if record is not None and {*keys} <= set(record) else None


def write_record(file: Path, record: dict[str, Any]) -> None:
    """Write a record in one step."""
    with replacing(file) as draft:
        draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def unused(path: Path, record: str) -> bool:
    """Say whether a directory holds nothing, but perhaps a first record that was cut short."""
    return contents(path) in ([], [path / f".{record}.tmp"])


def listed(record: dict[str, Any] | None, known: Callable[[str], Any]) -> set[str]:
    """Return the files that a record lists, of those that we may have written, which are known."""
    files = [] if record is None else record.get("files")
    return set(filter(known, map(str, files))) if isinstance(files, list) else set()


def there(path: Path) -> bool:
    """Say whether something has this name, be it a link that leads nowhere."""
    return os.path.lexists(path)


def plain(path: Path) -> bool:
    """Say whether this is a file, and no link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def our_page(path: Path) -> bool:
    """Say whether a page was written by this project."""
    if not plain(path):
        return False
    with path.open(encoding="utf-8", errors="replace") as page:
        return GENERATOR in page.read(HEAD)


def check_asked(path: Path, kind: str, *, resume: bool, overwrite: bool) -> None:
    """Raise UserError if options contradict each other, or a run is to be written to a file."""
    if resume and overwrite:
        raise UserError(f"--resume continues a {kind} and --overwrite replaces it; give one")
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path} is a file; give a directory")


def known_as_ours(path: Path, kind: str, record: T | None, *, resume: bool, overwrite: bool) -> T:
    """Return the record of what a directory holds, None of others' files, if it may be used."""
    if record is None:
        cure = f"give a new or an earlier {kind}'s directory"
        raise UserError(f"--out {path} holds other files; {cure}")
    if not (resume or overwrite):
        cure = "continue it with --resume, replace it with --overwrite or give another directory"
        raise UserError(f"--out {path} holds a {kind}; {cure}")
    return record


def check_writable(folder: Path, names: set[str], ours: set[str]) -> None:
    """Raise UserError if a file that is to be written would replace one that is not ours."""
    for name in sorted(names | ours):
        draft = folder / f".{name}.tmp"
        if there(draft) and not plain(draft):
            refuse(folder, draft.name)
        if there(folder / name) and not (name in ours and plain(folder / name)):
            refuse(folder, name)


def check_folder(folder: Path) -> None:
    """Raise UserError if a folder of ours is a link, or no folder."""
    if folder.is_symlink() or (there(folder) and not folder.is_dir()):
        refuse(folder.parent, folder.name)


def refuse(folder: Path, name: str) -> NoReturn:
    """Raise UserError because of what is none of our files."""
    cure = "move it away or give another directory"
    raise UserError(f"--out {folder} holds {name}, which regretless has not written; {cure}")


LOCK = ".lock"


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a directory, made if need be, while its files are written.

    The system gives the lock up when the process ends; the empty file holds nobody up.
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


def default_directory(
    base: Path, interrupted: Callable[[Path], bool], *, resume: bool, overwrite: bool
) -> Path:
    """Choose among BASE, BASE-2, ...: the first that is free.

    With ``resume`` it is the last one that is interrupted, or the last if there is none; with
    ``overwrite`` BASE.
    """
    numbered = (base if n == 1 else base.with_name(f"{base.name}-{n}") for n in count(1))
    taken = list(takewhile(lambda at: there(at) and (not at.is_dir() or contents(at)), numbered))
    if overwrite or not taken:
        return base
    if resume:
        return (list(filter(interrupted, taken)) or taken)[-1]
    return base.with_name(f"{base.name}-{len(taken) + 1}")
