"""A directory in which this project may write, and the files in it that are the project's own.

A run, a study and a training each write into a directory of one kind. A JSON file in it, the
record, says what it is of, how far it came (``status``) and which files were written (``files``).
Before anything is written a command claims the directory (``RecordedDirectory.claimed``): no other
process may be writing there; where something is there, ``--resume`` or ``--overwrite`` must be
given; and what would be replaced must be in the record. No other file is replaced or removed, and
no link is followed: a link where a file of the project belongs is refused.
"""

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError, brief
from regretless.scenarios.logs.directory_lock import LOCK, hold_directory, not_ours

REPORT = "report.html"
GENERATOR = '<meta name="generator" content="regretless">'  # in every page of this project
PAGE_HEAD_CHARACTERS = 4096  # of a page, among which it stands
AGAIN = "start again with --overwrite"


def first_difference(kept: object, asked_for: object, key: str = "") -> str:
    """Name the first key in which two JSON values differ, and both of its values.

    An entry of a list of tables is called by its name, if it has one.

    >>> first_difference({"rounds": 10, "seed": 1}, {"rounds": 10, "seed": 2})
    'seed = 1, not 2'
    >>> kept, asked_for = {"name": "growers", "count": 3}, {"name": "growers", "count": 5}
    >>> first_difference({"cohort": [kept]}, {"cohort": [asked_for]})
    'cohort.growers.count = 3, not 5'
    """
    entries = dict[str, tuple[object, object]]()
    if isinstance(kept, dict) and isinstance(asked_for, dict):
        entries = {name: (kept.get(name), asked_for.get(name)) for name in [*kept, *asked_for]}
    elif isinstance(kept, list) and isinstance(asked_for, list) and len(kept) == len(asked_for):
        for index, (kept_entry, entry) in enumerate(zip(kept, asked_for, strict=True)):
            name = entry.get("name", index) if isinstance(entry, dict) else index
            entries[str(name)] = (kept_entry, entry)
    for name, (kept_value, value) in entries.items():
        if kept_value != value:
            return first_difference(kept_value, value, f"{key}.{name}".lstrip("."))
    return f"{key} = {brief(kept)}, not {brief(asked_for)}"


class RecordedDirectory:
    """A directory of one kind, whose record lists the project's own files in it.

    Subclasses say what they are.

    Attributes
    ----------
    KIND : str
        What the directory is of, in error lines.
    RECORD : str
        The record's file name.
    RECORD_KEYS : dict
        Keys of every record with the types of their values. The first holds what was asked for,
        which is compared when it is resumed.
    FILE_NAMES : Pattern
        The names that files of this kind may have.
    SCRATCH : str
        The folder that a start makes before the record; "" if it makes none.

    Parameters
    ----------
    path : Path
        The directory; it need not be there.
    writable_names : set of str
        Names of the files that may be written, of those that are given when the run goes on.
    """

    KIND: ClassVar[str]
    RECORD: ClassVar[str]
    RECORD_KEYS: ClassVar[dict[str, type]]
    FILE_NAMES: ClassVar[re.Pattern[str]]
    SCRATCH: ClassVar[str] = ""

    def __init__(self, path: Path, writable_names: set[str]) -> None:
        self.path = path
        self.writable_names = writable_names

    @classmethod
    def record_in(cls, path: Path) -> dict[str, Any] | None:
        """Return the record in a directory; None if there is none of this kind, or a link."""
        file = path / cls.RECORD
        record = read_json(file) if is_plain_file(file) else None
        if record is None or not isinstance(record.get("versions", {}), dict):
            return None
        for key, kind in (cls.RECORD_KEYS | {"status": str}).items():
            if not isinstance(record.get(key), kind):
                return None
        return record

    @classmethod
    def interrupted(cls, path: Path) -> bool:
        """Whether a directory holds what was begun and is not complete."""
        record = cls.record_in(path)
        return record is not None and record["status"] != "complete"

    @classmethod
    def listed(cls, record: dict[str, Any] | None) -> set[str]:
        """Return the files that a record lists, of those that this kind may write."""
        files = None if record is None else record.get("files")
        if not isinstance(files, list):
            return set()
        return {str(name) for name in files if cls.FILE_NAMES.fullmatch(str(name))}

    def write_record(self, record: dict[str, Any]) -> None:
        """Write the record in one step."""
        with replacing(self.path / self.RECORD) as draft:
            draft.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")

    @contextmanager
    def claimed(self, *, resume: bool, overwrite: bool) -> Iterator[bool]:
        """Hold the directory if it may be written; yield whether what is there goes on."""
        self.check(resume=resume, overwrite=overwrite)  # before a directory is made for the lock
        with hold_directory(self.path):
            yield self.check(resume=resume, overwrite=overwrite)

    def check(self, *, resume: bool, overwrite: bool) -> bool:
        """Return whether what is there goes on; UserError, and no change, if it may not be used."""
        if resume and overwrite:
            ways_out = f"--resume continues a {self.KIND} and --overwrite replaces it"
            raise UserError(f"{ways_out}; give one")
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--out {self.path} is a file; give a directory")
        if self.is_unused():
            return False
        record = self.record_in(self.path)
        if record is None:
            if exists(self.path / self.RECORD):
                raise not_ours(self.path, self.RECORD)
            hint = f"give a new or an earlier {self.KIND}'s directory"
            raise UserError(f"--out {self.path} holds other files; {hint}")
        if not (resume or overwrite):
            hint = "continue it with --resume, replace it with --overwrite"
            raise UserError(
                f"--out {self.path} holds a {self.KIND}; {hint} or give another directory"
            )
        self.check_writable(self.writable_names)
        self.check_inside(record, resume=resume)
        return resume

    def is_unused(self) -> bool:
        """Whether nothing is there, or no more than a start leaves that ends before its record."""
        for entry in contents(self.path):
            is_draft = entry.name == draft_of(self.RECORD)
            is_scratch = entry.name == self.SCRATCH and entry.is_dir() and not entry.is_symlink()
            if not is_draft and not (is_scratch and not contents(entry)):
                return False
        return True

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if something else is in the way of what is to be written."""

    def check_writable(self, names: set[str]) -> None:
        """Raise UserError if a file that is to be written would replace one of somebody else."""
        record = self.record_in(self.path)
        own_names = self.listed(record)
        if record is not None:
            own_names.add(self.RECORD)
        for name in sorted(names | own_names | {self.RECORD}):
            draft = draft_of(name)
            if exists(self.path / draft) and not is_plain_file(self.path / draft):
                raise not_ours(self.path, draft)
            is_own = name in own_names and is_plain_file(self.path / name)
            if exists(self.path / name) and not is_own:
                raise not_ours(self.path, name)

    def check_same(self, record: dict[str, Any], what: str, asked_for: object) -> None:
        """Raise UserError unless a record is of what is asked for, and of this version."""
        main_key = next(iter(self.RECORD_KEYS))
        kept = record[main_key]
        asked_for = json.loads(json.dumps(asked_for, default=str))
        if kept != asked_for:
            where = f"--resume: {self.path} holds another {what}"
            where = f"{where} ({first_difference(kept, asked_for)})"
            raise UserError(f"{where}; give another --out or {AGAIN}")
        first_version = record.get("versions", {}).get("regretless")
        if first_version != version("regretless"):
            where = f"--resume: the {self.KIND} in {self.path} was begun by"
            by = f"regretless {first_version}" if first_version else "another version"
            raise UserError(f"{where} {by}; continue it with that version or {AGAIN}")

    def remove_files(self, names: Collection[str]) -> None:
        """Remove files of this kind, their drafts, and a report of them."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)
            (self.path / draft_of(name)).unlink(missing_ok=True)
        if is_own_page(self.path / REPORT):
            (self.path / REPORT).unlink()


def draft_of(name: str) -> str:
    """Return the name that a file has while it is written (``checkpoint.replacing``)."""
    return f".{name}.tmp"


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the table that a JSON file holds; None if it cannot be read or holds none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def contents(path: Path) -> list[Path]:
    """Return what is in a directory beside its lock; nothing where there is no directory."""
    if not path.is_dir():
        return []
    return [entry for entry in path.iterdir() if entry.name != LOCK]


def exists(path: Path) -> bool:
    """Whether something has this name, be it a link that leads nowhere."""
    return os.path.lexists(path)


def is_plain_file(path: Path) -> bool:
    """Whether this is a file, and no link."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def is_own_page(path: Path) -> bool:
    """Whether a page was written by this project."""
    if not is_plain_file(path):
        return False
    with path.open(encoding="utf-8", errors="replace") as page:
        return GENERATOR in page.read(PAGE_HEAD_CHARACTERS)


def check_folder(folder: Path) -> None:
    """Raise UserError if a folder of this project is a link, or no folder."""
    if folder.is_symlink() or (exists(folder) and not folder.is_dir()):
        raise not_ours(folder.parent, folder.name)
