"""A run directory: a reader sees whole tables or none, and a run that was killed can be resumed.

While a run goes on, everything lies in the folder ``.partial``: each chunk of the logs as a part of
every streamed table (``scenarios.logs.table_parts``), and a checkpoint that says how many chunks
count. At the end each table is put together in a draft, which takes the table's name in one step,
and the folder goes. ``manifest.json`` is written first and lists the tables from before they are
there until after they are gone: of an earlier run only they are replaced
(``scenarios.logs.ownership``).
"""

import json
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa

from regretless.market.core import checkpoint
from regretless.market.core.checkpoint import replacing, sync
from regretless.market.core.errors import UserError
from regretless.market.core.validation import check_int
from regretless.market.logs.chunk import TABLES as STREAMED_TABLES
from regretless.scenarios.logs.column_notes import ColumnNotes
from regretless.scenarios.logs.directory_lock import not_ours, unwritable
from regretless.scenarios.logs.ownership import (
    AGAIN,
    RecordedDirectory,
    check_folder,
    contents,
    is_own_page,
    is_plain_file,
    read_json,
)
from regretless.scenarios.logs.table_parts import (
    whole_table,
    write_csv,
    write_parquet,
    write_part,
)

MANIFEST = "manifest.json"
PARTIAL = ".partial"
CHECKPOINT = "checkpoint.npz"
FORMATS = ("parquet", "csv")
CLOSING_TABLES = (
    *("agents", "swaps", "biases", "bounds", "edges", "models", "verdict", "forecast_scores"),
    *("solutions", "impulse", "coverage"),
)
TABLES = (*STREAMED_TABLES, *CLOSING_TABLES)
TABLE_FILES = {f"{table}.{ending}" for table in (*TABLES, "branches") for ending in FORMATS}
# Files in the folder of parts, or their drafts. The last two are of a run on several workers.
PART = re.compile(
    rf"{CHECKPOINT}|({'|'.join(STREAMED_TABLES)})-\d{{6,}}\.arrow"
    r"|record\.jsonl|shard-\d+-\d+\.npz"
)
BLOCK_BYTES = 1 << 20  # that are read at a time
TEXT_COLUMNS = {
    *("block", "cohort", "kind", "utility", "response", "unit", "guarantee", "best_policy"),
    *("source", "outcome", "aggressor"),
}


def check_format(name: str) -> None:
    """Raise UserError unless tables can be written in this format."""
    if name not in FORMATS:
        raise UserError(f"--format {name} is unknown; choose parquet or csv")


class RunDirectory(RecordedDirectory):
    """Where the logs of a run go.

    Parameters
    ----------
    path : Path
        The directory, which is made if need be.
    format : str
        In which the tables are written, "parquet" or "csv".
    """

    KIND = "run"
    RECORD = MANIFEST
    RECORD_KEYS: ClassVar = {"config": dict, "scenario": str}
    FILE_NAMES = re.compile("|".join(map(re.escape, TABLE_FILES)))
    SCRATCH = PARTIAL

    def __init__(self, path: Path, format: str = "parquet") -> None:  # noqa: A002 - the option's name
        check_format(format)
        super().__init__(path, {f"{table}.{format}" for table in TABLES})
        self.format = format
        self.partial = path / PARTIAL
        self._n_chunks = 0
        self._checksum_of_parts = 0

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if ``.partial`` is none of this project's, or something in it."""
        check_folder(self.partial)
        for part in contents(self.partial):
            if not (is_plain_file(part) and _is_part(part)):
                raise not_ours(self.path, f"{PARTIAL}/{part.name}")

    def start(self, manifest: dict[str, Any]) -> None:
        """Begin a new run, whose manifest is written; the files of an earlier run are removed."""
        try:
            self.partial.mkdir(exist_ok=True)
            (self.partial / CHECKPOINT).unlink(missing_ok=True)  # nothing resumes from it any more
            earlier_files = self.listed(self.record_in(self.path))
            self.write_manifest(manifest, earlier_files)  # which are this run's from now on
            self.remove_files(earlier_files)
            self._remove_parts()
        except OSError as error:
            with suppress(OSError):  # it is not empty
                self.partial.rmdir()
            raise unwritable(self.path, error) from error

    def add_chunk(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Write one part of every streamed table of which the chunk has columns.

        A table with columns and no rows is that of a market in which nobody has traded yet.
        """
        for table, frame in chunk.items():
            if len(frame.columns):
                part = self._part(table, self._n_chunks)
                write_part(part, table, frame)
                self._checksum_of_parts = _checksum(part, self._checksum_of_parts)
        sync(self.partial)
        self._n_chunks += 1

    def save_checkpoint(self, state: dict[str, Any], config: dict[str, Any]) -> None:
        """Keep the state of the run, and that all chunks so far count."""
        tree = {
            "state": state,
            "chunks": self._n_chunks,
            "config": json.dumps(config),
            "parts": self._checksum_of_parts,
        }
        checkpoint.save(self.partial / CHECKPOINT, tree)

    def load_checkpoint(self, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the state to resume from, None if there is none.

        Parts that were written after the checkpoint are removed. UserError if the checkpoint or a
        part is damaged, or if the run that was begun has another configuration.
        """
        file = self.partial / CHECKPOINT
        if not file.exists():
            return None
        try:
            tree = checkpoint.load(file)
            checkpoint.check_like(tree, {"state": {}, "chunks": 0, "config": "", "parts": 0})
            max_chunks = config["rounds"]  # each has a round at least
            self._n_chunks = check_int("chunks", tree["chunks"], least=0, below=max_chunks + 1)
            expected_checksum = check_int("parts", tree["parts"], least=0)
        except checkpoint.DAMAGED as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            what = f"--resume: the checkpoint in {self.path} cannot be read: {reason}"
            raise UserError(f"{what}; {AGAIN}") from error
        if tree["config"] != json.dumps(config):
            what = f"{self.path} holds another configuration"
            raise UserError(f"--resume: {what}; give another --out")
        for chunk in range(self._n_chunks):
            for table in STREAMED_TABLES:
                part = self._part(table, chunk)
                if part.is_file():
                    self._checksum_of_parts = _checksum(part, self._checksum_of_parts)
        if self._checksum_of_parts != expected_checksum:
            what = f"--resume: {self.partial} holds a damaged part, or lacks one"
            raise UserError(f"{what}; {AGAIN}")
        for part in self.partial.glob("*.arrow"):
            if _is_part(part) and int(part.stem.rpartition("-")[2]) >= self._n_chunks:
                part.unlink()
        state: dict[str, Any] = tree["state"]
        return state

    def finish(self, closing_tables: dict[str, pd.DataFrame], manifest: dict[str, Any]) -> None:
        """Write all tables, the streamed ones from their parts, and the manifest of the run's end.

        At every instant the manifest lists the tables that are there. The parts of a run that is
        complete are removed; an interrupted one may go on.
        """
        parts = {table: sorted(self.partial.glob(f"{table}-*.arrow")) for table in STREAMED_TABLES}
        streamed = [table for table in STREAMED_TABLES if parts[table]]
        names = {f"{table}.{self.format}" for table in [*closing_tables, *streamed]}
        earlier_files = self.listed(self.record_in(self.path))
        self.check_writable(names)
        self.write_manifest(manifest | {"status": "interrupted"}, earlier_files | names)
        notes = ColumnNotes(manifest, closing_tables["agents"])
        for table in STREAMED_TABLES:
            self._write(table, whole_table(table, parts[table]), notes)
        for table, frame in closing_tables.items():
            self._write(table, iter([pa.Table.from_pandas(frame, preserve_index=False)]), notes)
        sync(self.path)
        for name in earlier_files - names:
            (self.path / name).unlink(missing_ok=True)
        self.write_manifest(manifest, names)
        if manifest["status"] == "complete":
            self.tidy()

    def tidy(self) -> None:
        """Remove the folder of parts, and leave what is in it of somebody else."""
        with suppress(OSError):  # the run is complete whether or not they can be removed
            self._remove_parts()
            self.partial.rmdir()

    def abandon(self) -> None:
        """Remove the files of a run that came to grief, unless it can go on from a checkpoint."""
        if (self.partial / CHECKPOINT).is_file():
            return
        with suppress(OSError):  # what cannot be written cannot be removed either
            self.remove()

    def remove(self) -> None:
        """Remove a run, the manifest last, and the directory if nothing else is in it."""
        self.remove_files(self.listed(self.record_in(self.path)))
        self.tidy()
        self.remove_files([MANIFEST])
        with suppress(OSError):  # it holds what is somebody else's
            self.path.rmdir()

    def write_manifest(self, manifest: dict[str, Any], files: Collection[str] = ()) -> None:
        """Write ``manifest.json`` in one step, with the tables that it lists."""
        self.write_record(manifest | {"files": sorted(files)})

    def list_files(self) -> None:
        """Let the manifest list the tables that are there, after some were added or removed."""
        manifest = self.record_in(self.path)
        if manifest is not None:
            names = [name for name in TABLE_FILES if is_plain_file(self.path / name)]
            self.write_manifest(manifest, names)

    def strangers(self) -> list[str]:
        """Return the names of what is in the directory and is not this run's, in order."""
        own_names = self.listed(self.record_in(self.path)) | {MANIFEST}
        strangers = []
        for entry in contents(self.path):
            is_own = entry.name in own_names and is_plain_file(entry)
            if not is_own and not is_own_page(entry):
                strangers.append(entry.name)
        return sorted(strangers)

    def _remove_parts(self) -> None:
        """Remove the checkpoint, then the parts: one without the others is no run to resume."""
        (self.partial / CHECKPOINT).unlink(missing_ok=True)
        for part in contents(self.partial):
            if _is_part(part):
                part.unlink()

    def _part(self, table: str, chunk: int) -> Path:
        return self.partial / f"{table}-{chunk:06d}.arrow"

    def _write(self, table: str, parts: Iterator[pa.Table], notes: ColumnNotes) -> None:
        """Write a table, with names and meanings of its columns, from its parts."""
        write = write_csv if self.format == "csv" else write_parquet
        with replacing(self.path / f"{table}.{self.format}", sync_folder=False) as draft:
            write(draft, (notes.add(table, rows) for rows in parts))


def _is_part(file: Path) -> bool:
    """Whether a file in ``.partial`` has the name of a part, or of the draft of one."""
    name = re.sub(r"^\.(.*)\.tmp$", r"\1", file.name)
    return PART.fullmatch(name) is not None


def _checksum(part: Path, checksum: int) -> int:
    """Return the checksum of the parts so far, and of one more with its name."""
    checksum = zlib.crc32(part.name.encode(), checksum)
    with part.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def read_run(
    path: Path, *, without: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Return the manifest of a run directory, and its tables by their names without the ending.

    Tables ``without`` are left on disk. UserError if it is not a run directory.
    """
    file = path / MANIFEST
    if not file.is_file():
        raise UserError(f"{path} is not a run directory: it has no {MANIFEST}; give one that has")
    manifest = read_json(file)
    if manifest is None:
        raise UserError(f"{file} cannot be read: it is no table in JSON; run the scenario again")
    text_columns = set(TEXT_COLUMNS)
    with suppress(KeyError, TypeError):  # no data, or nothing of ours
        text_columns |= {manifest["config"]["data"]["index"]}  # which names the data's rows
    tables = {}
    try:
        names = RunDirectory.listed(manifest) if "files" in manifest else TABLE_FILES
        for name in sorted(names):
            table_file = path / name
            if table_file.is_file() and table_file.stem not in without:
                tables[table_file.stem] = _read_table(table_file, text_columns)
    except (ValueError, OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read: {reason}; run the scenario again") from error
    return manifest, tables


def _read_table(path: Path, text_columns: set[str]) -> pd.DataFrame:
    """Read a table back; of a CSV names stay text, and empty numbers become NaN."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    columns = [str(name) for name in pd.read_csv(path, nrows=0)]
    types = {name: str for name in columns if name in text_columns}
    missing_numbers = {name: [""] for name in columns if name not in text_columns}
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=missing_numbers)
