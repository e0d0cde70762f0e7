"""A training's directory.

    training.json    what is trained, how far it came, and the files that are its own
    training.npz     the state of the search, while it goes on
    attackers.csv, curve.csv, attack-COHORT.toml    what was found (``scenarios.training.results``)

Of an earlier training only the files that its record lists are replaced.
"""

import json
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.scenarios.logs.ownership import (
    REPORT,
    check_asked,
    check_writable,
    known_as_ours,
    listed,
    our_page,
    record_of,
    unused,
    write_record,
)
from regretless.scenarios.training import CURVE, TABLE

T = TypeVar("T")
RECORD, CHECKPOINT = "training.json", "training.npz"
KNOWN = re.compile(rf"{re.escape(CHECKPOINT)}|{TABLE}|{CURVE}|attack-[\w-]+\.toml")
AGAIN = "start again with --overwrite"


class TrainingDirectory:
    """Where a training goes.

    ``about``: what is trained, and how; ``results`` (collection of str): the files that are written
    at the end.
    """

    def __init__(self, path: Path, about: dict[str, Any], results: Collection[str]) -> None:
        self.path, self._results = path, set(results)
        self._about = json.loads(json.dumps(about | {"version": version("regretless")}))
        self._files: set[str] = set()

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Raise UserError unless a training may be written here: what is there stays as it is."""
        check_asked(self.path, "training", resume=resume, overwrite=overwrite)
        if unused(self.path, RECORD):
            return
        found = read_record(self.path)
        recorded = known_as_ours(self.path, "training", found, resume=resume, overwrite=overwrite)
        self._files = listed(recorded, KNOWN.fullmatch)
        check_writable(self.path, self._results | {CHECKPOINT, RECORD}, self._files | {RECORD})
        if resume:
            self._check_same(recorded)

    def _check_same(self, recorded: dict[str, Any]) -> None:
        if recorded["status"] == "complete":
            raise UserError(f"--resume: the training in {self.path} is complete; nothing to resume")
        if recorded["training"] != self._about:
            where = f"--resume: {self.path} holds another training"
            raise UserError(f"{where}; give another --out or {AGAIN}")

    def start(self) -> None:
        """Make room for a new training: an earlier one's files give way."""
        self._record("interrupted", self._files)  # first: from now on it is known whose they are
        for name in self._files:
            (self.path / name).unlink(missing_ok=True)
        if our_page(self.path / REPORT):
            (self.path / REPORT).unlink()
        self._record("interrupted", {CHECKPOINT})

    def save(self, state: dict[str, Any]) -> None:
        """Keep the state of the search."""
        checkpoint.save(self.path / CHECKPOINT, state)

    def restore(self, fresh: dict[str, Any], take: Callable[[dict[str, Any]], None]) -> bool:
        """Let the search go on from what was kept, which is like ``fresh``; False if nothing was.

        UserError if it is damaged or does not fit.
        """
        if not (self.path / CHECKPOINT).is_file():
            return False
        try:
            state = checkpoint.load(self.path / CHECKPOINT)
            checkpoint.check_like(state, fresh)
            take(state)
        except checkpoint.DAMAGED as error:
            where = f"--resume: {self.path / CHECKPOINT} is damaged"
            raise UserError(f"{where}; {AGAIN}") from error
        return True

    def finish(self, write: Callable[[], T]) -> T:
        """Write the results, and remove the state of the search."""
        check_writable(self.path, self._results, self._files)
        self._record("interrupted", {CHECKPOINT} | self._results)
        written = write()
        (self.path / CHECKPOINT).unlink(missing_ok=True)
        self._record("complete", self._results)
        return written

    def abandon(self) -> None:
        """Leave nothing of a training that came to grief, unless it can go on."""
        if not (self.path / CHECKPOINT).exists():
            with suppress(OSError):  # what cannot be written cannot be removed either
                (self.path / RECORD).unlink(missing_ok=True)

    def _record(self, status: str, files: set[str]) -> None:
        self._files = set(files)
        record = {"training": self._about, "status": status, "files": sorted(files)}
        write_record(self.path / RECORD, record)


def read_record(path: Path) -> dict[str, Any] | None:
    """Return ``training.json`` of a directory; None if there is none of ours."""
    return record_of(path / RECORD, "training", "status", "files")


def interrupted(path: Path) -> bool:
    """Say whether a training is here that is not complete."""
    recorded = read_record(path)
    return recorded is not None and recorded["status"] != "complete"
