"""A run directory: tables streamed in parts, then put together; a reader never sees a torn file.

While a run goes on, each chunk of its logs is a small file under ``.partial/``, and a checkpoint
beside them says which chunks count. At the end the parts of a table are copied, one at a time,
into a temporary file that takes the table's name in one step. What is killed can be resumed from
``.partial/``; what completes leaves nothing but the tables and the manifest.
"""

import json
import zlib
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from regretless.market.core import checkpoint
from regretless.market.core.atomic import replacing, sync
from regretless.market.core.errors import UserError
from regretless.market.logs.journal import TABLES
from regretless.scenarios.logs.holding import contents, held
from regretless.scenarios.logs.parts import (
    Part,
    as_part,
    whole,
    write_csv,
    write_parquet,
    write_part,
)

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint.npz"
MARK = "run"  # a file in .partial that says whose it is
FORMATS = ("parquet", "csv")
ALL_TABLES = (*TABLES, "agents", "swaps", "biases", "bounds", "edges", "models", "verdict")
BLOCK = 1 << 20  # bytes that are read at a time
TEXT = {"block", "cohort", "kind", "utility", "response", "guarantee", "best_policy"}


def check_format(name: str) -> None:
    """Raise UserError unless tables can be written in this format."""
    if name not in FORMATS:
        raise UserError(f"--format {name} is unknown; choose parquet or csv")


class RunDirectory:
    """Where a run's logs go.

    Parameters
    ----------
    path : Path
        Created if need be.
    format : "parquet" or "csv"

    Raises
    ------
    UserError
        If the path holds something else than an earlier run, or cannot be written.
    """

    def __init__(self, path: Path, format: str = "parquet") -> None:  # noqa: A002 - the option's name
        check_format(format)
        self.path, self.format = path, format
        self.partial = path / ".partial"
        self._chunks, self._checksum = 0, 0
        self._last: dict[str, pd.DataFrame] = {}
        if path.exists() and not path.is_dir():
            raise UserError(f"--out {path} is a file; give a directory")
        if contents(path) and not self._is_run():
            raise UserError(
                f"--out {path} holds other files; give a new or an earlier run's directory"
            )

    def _is_run(self) -> bool:
        begun = contents(self.path) == [self.partial] and not contents(self.partial)
        return begun or (self.partial / MARK).is_file() or self.recorded() is not None

    def held(self) -> AbstractContextManager[None]:
        """Hold the directory while a run writes it; UserError if another process does."""
        return held(self.path)

    def recorded(self) -> dict[str, Any] | None:
        """Return the manifest of the run that is here; None if there is none of ours."""
        try:
            manifest = json.loads((self.path / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        ours = isinstance(manifest, dict) and {"config", "status", "scenario"} <= set(manifest)
        return manifest if ours else None

    @property
    def resumable(self) -> bool:
        """Whether there is a checkpoint to continue from."""
        return (self.partial / CHECKPOINT).is_file()

    def start(self) -> None:
        """Make room for a new run: an earlier run's files give way, its manifest first."""
        try:
            self.partial.mkdir(exist_ok=True)
            (self.partial / MARK).touch()  # at every instant the directory is known to be a run's
            self._remove_tables()
            (self.partial / CHECKPOINT).unlink(missing_ok=True)
            for part in self.partial.iterdir():
                if part.name != MARK:
                    part.unlink()
        except OSError as error:
            reason = f"--out {self.path} cannot be written: {error.strerror}"
            raise UserError(f"{reason}; give another directory") from error

    def _remove_tables(self) -> None:
        for name in (MANIFEST, "report.html", *(f"{t}.{f}" for t in ALL_TABLES for f in FORMATS)):
            (self.path / name).unlink(missing_ok=True)
            (self.path / f".{name}.tmp").unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave nothing of a run that came to grief, unless there is a checkpoint to go on from."""
        if self.resumable:
            return
        with suppress(OSError):  # what cannot be written cannot be removed either
            self._remove_tables()
            self.tidy()

    def tidy(self) -> None:
        """Remove the parts: the checkpoint first, without which they are no run to go on with.

        The mark goes last, since until then it says whose they are.
        """
        (self.partial / CHECKPOINT).unlink(missing_ok=True)
        with suppress(OSError):
            for part in sorted(self.partial.iterdir(), key=lambda part: part.name == MARK):
                part.unlink()
            self.partial.rmdir()

    def add_chunk(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Write one part of every streamed table."""
        for table, frame in chunk.items():
            if len(frame):
                part = self._part(table, self._chunks)
                with replacing(part, alone=False) as draft:
                    write_part(draft, as_part(table, frame))
                self._checksum = _chained(self._checksum, part)
        sync(self.partial)
        self._chunks += 1

    def hold(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Take the last part of every streamed table, behind which there is no checkpoint."""
        self._last = chunk

    def save_checkpoint(self, state: dict[str, Any], config: dict[str, Any]) -> None:
        """Record that all chunks so far count."""
        tree = {"state": state, "chunks": self._chunks, "config": json.dumps(config)}
        tree["parts"] = self._checksum
        checkpoint.save(self.partial / CHECKPOINT, tree)

    def load_checkpoint(self, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the state to resume from, None if there is none.

        Raises
        ------
        UserError
            If the checkpoint belongs to another configuration, or it or a part is damaged.
        """
        file = self.partial / CHECKPOINT
        if not file.exists():
            return None
        try:
            tree = checkpoint.load(file)
        except checkpoint.DAMAGED as error:
            reason = f"--resume: the checkpoint in {self.path} cannot be read"
            raise UserError(f"{reason}; run without --resume") from error
        if tree["config"] != json.dumps(config):
            raise UserError(
                f"--resume: {self.path} holds another configuration; give another --out"
            )
        self._chunks = int(tree["chunks"])
        for part in self.partial.glob("*.arrow"):
            if int(part.stem.rpartition("-")[2]) >= self._chunks:
                part.unlink()
        self._check_parts(tree.get("parts"))
        state: dict[str, Any] = tree["state"]
        return state

    def _check_parts(self, recorded: Any) -> None:
        """Raise UserError unless the parts are those that the checkpoint was written beside."""
        known = f"--resume: {self.path / '.partial'}"
        for chunk in range(self._chunks):
            for table in TABLES:
                part = self._part(table, chunk)
                if part.is_file():
                    self._checksum = _chained(self._checksum, part)
                elif table == TABLES[0]:
                    raise UserError(f"{known} lacks {part.name}; run without --resume")
        if self._checksum != recorded:
            raise UserError(f"{known} holds a damaged part, or lacks one; run without --resume")

    def finish(self, tables: dict[str, pd.DataFrame], manifest: dict[str, Any]) -> None:
        """Put the streamed tables together, write the closing ones, then the manifest."""
        for table in TABLES:
            self._write(table, whole(table, self._parts(table)))
        for table, frame in tables.items():
            self._write(table, iter([pa.Table.from_pandas(frame, preserve_index=False)]))
        sync(self.path)
        for other in set(FORMATS) - {self.format}:
            for table in ALL_TABLES:
                (self.path / f"{table}.{other}").unlink(missing_ok=True)
        self.write_manifest(manifest)
        if manifest["status"] == "complete":
            self.tidy()

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write ``manifest.json`` atomically."""
        with replacing(self.path / MANIFEST) as draft:
            draft.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")

    def _part(self, table: str, chunk: int) -> Path:
        return self.partial / f"{table}-{chunk:06d}.arrow"

    def _parts(self, table: str) -> list[Part]:
        """Find the parts of a table; the last one is held in memory."""
        parts: list[Part] = sorted(self.partial.glob(f"{table}-*.arrow"))
        last = self._last.get(table)
        return parts if last is None or last.empty else [*parts, as_part(table, last)]

    def _write(self, table: str, rows: Iterator[pa.Table]) -> None:
        write = write_csv if self.format == "csv" else write_parquet
        with replacing(self.path / f"{table}.{self.format}", alone=False) as draft:
            write(draft, rows)


def _chained(checksum: int, part: Path) -> int:
    """Add a part's name and content to the checksum of the parts before it."""
    checksum = zlib.crc32(part.name.encode(), checksum)
    with part.open("rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


def read_run(
    path: Path, *, without: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Read a run directory back.

    Parameters
    ----------
    without : collection of str
        Tables that are left on disk.

    Returns
    -------
    manifest : dict
    tables : dict
        A frame per table, by its name without the ending.

    Raises
    ------
    UserError
        If it is not a run directory.
    """
    file = path / MANIFEST
    if not file.is_file():
        raise UserError(f"{path} is not a run directory: it has no {MANIFEST}; give one that has")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        files = [file for ending in FORMATS for file in sorted(path.glob(f"*.{ending}"))]
        text = _text_columns(manifest)
        tables = {file.stem: _read(file, text) for file in files if file.stem not in without}
    except (ValueError, OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read: {reason}; run the scenario again") from error
    return manifest, tables


def _text_columns(manifest: Any) -> set[str]:
    """Columns that are no numbers, among them the one that names the data's rows."""
    try:
        return TEXT | {manifest["config"]["data"]["index"]}
    except (KeyError, TypeError):
        return TEXT


def _read(path: Path, text: set[str]) -> pd.DataFrame:
    return pd.read_parquet(path) if path.suffix == ".parquet" else _read_csv(path, text)


def _read_csv(path: Path, text: set[str]) -> pd.DataFrame:
    """Read a table back; names stay text, empty numbers become NaN."""
    head = pd.read_csv(path, nrows=0)
    kept = dict.fromkeys(text.intersection(head.columns), str)
    numbers = {name: [""] for name in head.columns if name not in text}
    return pd.read_csv(path, dtype=kept, keep_default_na=False, na_values=numbers)
