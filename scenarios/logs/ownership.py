"""Which files of a directory are ours: those that its record lists, and no others.

Nothing else is replaced or removed, and no link is followed: a directory that has one where a file
of ours belongs is refused.
"""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from filelock import FileLock, Timeout

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError

REPORT = "report.html"
GENERATOR = '<meta name="generator" content="regretless">'  # in every page of ours
AGAIN = "start again with --overwrite"
HEAD = 4096  # characters of a page, among which it stands


class RecordedDirectory:
    """A directory of one kind, whose record, a JSON file, lists the files of ours in it.

    ``KEYS`` are keys of a record with their types, first what it is of; ``KNOWN`` the names that
    its files may have; ``names`` those of the files that may be written.
    """

    KIND: ClassVar[str]
    RECORD: ClassVar[str]
    KEYS: ClassVar[dict[str, type]]
    KNOWN: ClassVar[re.Pattern[str]]

    def __init__(self, path: Path, names: set[str]) -> None:
        self.path, self.names = path, names

    @classmethod
    def record_in(cls, path: Path) -> dict[str, Any] | None:
        """Return the record of a directory; None if there is none of ours, or a link."""
        file, kinds = path / cls.RECORD, cls.KEYS | {"status": str}
        record = read_json(file) if plain(file) else None
        if record is None or not isinstance(record.get("versions", {}), dict):
            return None
        return record if all(isinstance(record.get(k), kinds[k]) for k in kinds) else None

    @classmethod
    def interrupted(cls, path: Path) -> bool:
        """Say whether a directory holds what is not complete."""
        record = cls.record_in(path)
        return record is not None and record["status"] != "complete"

    @classmethod
    def listed(cls, record: dict[str, Any] | None) -> set[str]:
        """Return the files that a record lists, of those that we may have written."""
        files = [] if record is None else record.get("files")
        return set(filter(cls.KNOWN.fullmatch, map(str, files if isinstance(files, list) else ())))

    def write_record(self, record: dict[str, Any]) -> None:
        """Write a record in one step."""
        with replacing(self.path / self.RECORD) as draft:
            draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")

    @contextmanager
    def claimed(self, *, resume: bool, overwrite: bool) -> Iterator[bool]:
        """Hold the directory, if it may be used, and yield whether what is here goes on."""
        self.check(resume=resume, overwrite=overwrite)
        with held(self.path):
            yield self.check(resume=resume, overwrite=overwrite)

    def check(self, *, resume: bool, overwrite: bool) -> bool:
        """Say whether what is here goes on; UserError if it may not be written, and stays."""
        if resume and overwrite:
            how = f"--resume continues a {self.KIND} and --overwrite replaces it"
            raise UserError(f"{how}; give one")
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--out {self.path} is a file; give a directory")
        cut_short = self.path / f".{self.RECORD}.tmp"  # the first record
        if contents(self.path) in ([], [cut_short]):
            return False
        record = self.record_in(self.path)
        if record is None and not self.begun():
            cure = f"give a new or an earlier {self.KIND}'s directory"
            raise UserError(f"--out {self.path} holds other files; {cure}")
        if not (resume or overwrite):
            cure = "continue it with --resume, replace it with --overwrite"
            raise UserError(
                f"--out {self.path} holds a {self.KIND}; {cure} or give another directory"
            )
        self.check_writable(self.names)
        self.check_inside(record or {}, resume=resume)
        return resume

    def begun(self) -> bool:
        """Say whether this is known as ours though there is no record."""
        return False

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if something else is in the way of what is to be written."""

    def check_writable(self, names: set[str]) -> None:
        """Raise UserError if a file that is to be written would replace one that is not ours."""
        record = self.record_in(self.path)
        ours = self.listed(record) | ({self.RECORD} if record is not None else set())
        for name in sorted(names | ours | {self.RECORD}):
            draft = f".{name}.tmp"
            if there(self.path / draft) and not plain(self.path / draft):
                refuse(self.path, draft)
            if there(self.path / name) and not (name in ours and plain(self.path / name)):
                refuse(self.path, name)

    def check_same(self, record: dict[str, Any], what: str, asked: object) -> None:
        """Raise UserError unless the record is of what is asked for, and of this version."""
        if record[next(iter(self.KEYS))] != json.loads(json.dumps(asked, default=str)):
            where = f"--resume: {self.path} holds another {what}"
            raise UserError(f"{where}; give another --out or {AGAIN}")
        begun = record.get("versions", {}).get("regretless")
        if begun != version("regretless"):
            where = f"--resume: the {self.KIND} in {self.path} was begun by"
            by = f"regretless {begun}" if begun else "another version"
            raise UserError(f"{where} {by}; continue it with that version or {AGAIN}")

    def clear(self, names: Collection[str]) -> None:
        """Remove files of ours, and a report of ours."""
        page = self.path / REPORT
        for file in [self.path / name for name in names] + [page] * our_page(page):
            file.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the table that a JSON file holds; None if it cannot be read or holds none."""
    found = None
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else None


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


def check_folder(folder: Path) -> None:
    """Raise UserError if a folder of ours is a link, or no folder."""
    if folder.is_symlink() or (there(folder) and not folder.is_dir()):
        refuse(folder.parent, folder.name)


def refuse(folder: Path, name: str) -> NoReturn:
    """Raise UserError because of what is none of our files."""
    cure = "move it away or give another directory"
    raise UserError(f"--out {folder} holds {name}, which regretless has not written; {cure}")


def unwritable(path: Path, error: OSError) -> UserError:
    """Return the error that says why a directory cannot be written."""
    reason = f"--out {path} cannot be written: {error.strerror}"
    return UserError(f"{reason}; give another directory")


LOCK = ".lock"


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a directory, made if need be, while its files are written.

    The system gives the lock up when the process ends; the empty file holds nobody up.
    """
    lock = path / LOCK
    try:
        path.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # another process has just given it up
            found = lock.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size:
                refuse(path, LOCK)
        own = FileLock(lock)
        own.acquire(blocking=False)
    except Timeout as error:
        reason = f"--out {path}: another process is writing there"
        raise UserError(f"{reason}; wait for it or give another directory") from error
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        yield
    finally:
        with suppress(OSError):  # it cannot be written any more, or is gone
            lock.unlink(missing_ok=True)
        own.release()
        with suppress(OSError):  # it holds files, as it should
            path.rmdir()


def contents(path: Path) -> list[Path]:
    """List what is in a directory beside the lock; nothing where there is no directory."""
    return [found for found in path.iterdir() if found.name != LOCK] if path.is_dir() else []
