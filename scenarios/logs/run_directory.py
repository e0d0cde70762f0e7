"""A run directory: tables streamed in parts, then put together; a reader never sees a torn file.

While a run goes on, each chunk of its logs is a small file under ``.partial/``, and a checkpoint
beside them says which chunks count. At the end the parts of a table are copied into a temporary
file that takes the table's name in one step. What is killed can be resumed; what completes leaves
nothing but the tables and the manifest, which lists them. Of an earlier run only what its manifest
lists is replaced (``scenarios.logs.ownership``).

A part is an Arrow file as it lies in memory. Of a table with a row per agent and round,
``BY_AGENT``, the whole is in the order of the agents, each one's rounds in theirs, so that a reader
of one path skips all other row groups. It is put together in passes over the parts, each for the
agents next in order: ``PASSES`` of them, if that makes neither few nor many rows.
"""

import json
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from regretless.market.core import checkpoint
from regretless.market.core.arrays import Integers
from regretless.market.core.checkpoint import replacing, sync
from regretless.market.core.errors import UserError
from regretless.market.core.validation import check_int
from regretless.market.logs.journal import TABLES
from regretless.scenarios.logs.ownership import (
    AGAIN,
    REPORT,
    RecordedDirectory,
    check_folder,
    contents,
    our_page,
    plain,
    read_json,
    refuse,
    unwritable,
)

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint.npz"
MARK = "run"  # a file in .partial that says whose it is
FORMATS = ("parquet", "csv")
CLOSING = ("agents", "swaps", "biases", "bounds", "edges", "models", "verdict", "forecast_scores")
ALL_TABLES = (*TABLES, *CLOSING)
KNOWN = {f"{table}.{ending}" for table in (*ALL_TABLES, "branches") for ending in FORMATS}
PART = re.compile(  # of .partial; the last two are of a run that is shared out
    rf"{MARK}|{CHECKPOINT}|({'|'.join(TABLES)})-\d{{6,}}\.arrow|record\.jsonl"
    r"|shard-\d+-\d+\.npz"
)
BLOCK = 1 << 20  # bytes that are read at a time
TEXT = {
    *("block", "cohort", "kind", "utility", "response", "unit", "guarantee", "best_policy"),
    *("source", "outcome", "aggressor"),
}


def check_format(name: str) -> None:
    """Raise UserError unless tables can be written in this format."""
    if name not in FORMATS:
        raise UserError(f"--format {name} is unknown; choose parquet or csv")


class RunDirectory(RecordedDirectory):
    """Where a run's logs go. ``path``: created if need be; ``format``: "parquet" or "csv"."""

    KIND, RECORD = "run", MANIFEST
    KEYS: ClassVar = {"config": dict, "scenario": str}
    KNOWN = re.compile("|".join(map(re.escape, KNOWN)))

    def __init__(self, path: Path, format: str = "parquet") -> None:  # noqa: A002 - the option's name
        check_format(format)
        super().__init__(path, {f"{table}.{format}" for table in ALL_TABLES})
        self.format, self.partial = format, path / ".partial"
        self._chunks, self._checksum = 0, 0

    @classmethod
    def interrupted(cls, path: Path) -> bool:
        """Say whether a run is here that is not complete."""
        marked = (path / ".partial" / MARK).is_file()
        return super().interrupted(path) or (marked and cls.record_in(path) is None)

    def begun(self) -> bool:
        """Say whether a run was begun here whose manifest is not written yet."""
        empty = contents(self.path) == [self.partial] and not contents(self.partial)
        return empty or (self.partial / MARK).is_file()

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if ``.partial`` is not ours, or something in it."""
        check_folder(self.partial)
        for part in contents(self.partial):
            if not (plain(part) and _is_part(part)):
                refuse(self.path, f".partial/{part.name}")

    def start(self, manifest: dict[str, Any]) -> None:
        """Make room for a new run, whose manifest is written: an earlier run's files give way."""
        try:
            self.partial.mkdir(exist_ok=True)
            (self.partial / MARK).touch()  # at every instant the directory is known to be a run's
            (self.partial / CHECKPOINT).unlink(missing_ok=True)
            before = self.listed(self.record_in(self.path))
            self.write_manifest(manifest, before)  # which are this run's from now on
            self.clear(before)
            for part in contents(self.partial):
                if part.name != MARK and _is_part(part):
                    part.unlink()
        except OSError as error:
            with suppress(OSError):
                self.tidy()
            raise unwritable(self.path, error) from error

    def clear(self, names: Collection[str]) -> None:
        """Remove tables of ours, all drafts, and a report of ours."""
        drafts = [f".{name}.tmp" for name in (*KNOWN, MANIFEST, REPORT)]
        super().clear([*names, *drafts])

    def strays(self) -> list[str]:
        """Return the names of what is here and is not this run's."""
        ours = self.listed(self.record_in(self.path)) | {MANIFEST}
        found = [f for f in contents(self.path) if not (f.name in ours and plain(f))]
        return sorted(file.name for file in found if not our_page(file))

    def remove(self) -> None:
        """Remove a run, and the directory if nothing else is in it."""
        self.clear([*self.listed(self.record_in(self.path)), MANIFEST])
        self.tidy()
        with suppress(OSError):  # it holds what is not ours
            self.path.rmdir()

    def abandon(self) -> None:
        """Leave nothing of a run that came to grief, unless there is a checkpoint to go on from."""
        if not (self.partial / CHECKPOINT).is_file():
            with suppress(OSError):  # what cannot be written cannot be removed either
                self.remove()

    def tidy(self) -> None:
        """Remove the parts: the checkpoint first, and last the mark, which says whose they are."""
        (self.partial / CHECKPOINT).unlink(missing_ok=True)
        with suppress(OSError):
            for part in sorted(contents(self.partial), key=lambda part: part.name == MARK):
                if _is_part(part):
                    part.unlink()
            self.partial.rmdir()

    def add_chunk(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Write one part of every streamed table."""
        for table, frame in chunk.items():
            # A chunk without rows counts if it has columns: those of a market without trades.
            if len(frame.columns):
                part = self._part(table, self._chunks)
                rows = pa.Table.from_pandas(frame, preserve_index=False, nthreads=1)
                rows = rows.take(_order(rows)) if table in BY_AGENT else rows
                with (
                    replacing(part, sync_folder=False) as draft,
                    pa.ipc.new_file(str(draft), rows.schema) as writer,
                ):
                    writer.write_table(rows)
                self._checksum = _chained(self._checksum, part)
        sync(self.partial)
        self._chunks += 1

    def save_checkpoint(self, state: dict[str, Any], config: dict[str, Any]) -> None:
        """Record that all chunks so far count."""
        tree = {"state": state, "chunks": self._chunks, "config": json.dumps(config)}
        tree["parts"] = self._checksum
        checkpoint.save(self.partial / CHECKPOINT, tree)

    def load_checkpoint(self, config: dict[str, Any]) -> dict[str, Any] | None:
        """Return the state to resume from, None if there is none."""
        file = self.partial / CHECKPOINT
        if not file.exists():
            return None
        try:
            tree = checkpoint.load(file)
            checkpoint.check_like(tree, {"state": {}, "chunks": 0, "config": "", "parts": 0})
            most_chunks = config["rounds"]  # each has a round at least
            self._chunks = check_int("chunks", tree["chunks"], least=0, below=most_chunks + 1)
            checksum_of_parts = check_int("parts", tree["parts"], least=0)
        except checkpoint.DAMAGED as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            unread = f"--resume: the checkpoint in {self.path} cannot be read: {reason}"
            raise UserError(f"{unread}; {AGAIN}") from error
        if tree["config"] != json.dumps(config):
            other = f"{self.path} holds another configuration"
            raise UserError(f"--resume: {other}; give another --out")
        for part in (self._part(table, i) for i in range(self._chunks) for table in TABLES):
            self._checksum = _chained(self._checksum, part) if part.is_file() else self._checksum
        if self._checksum != checksum_of_parts:
            known = f"--resume: {self.partial} holds a damaged part, or lacks one"
            raise UserError(f"{known}; {AGAIN}")
        for part in self.partial.glob("*.arrow"):  # written since
            if _is_part(part) and int(part.stem.rpartition("-")[2]) >= self._chunks:
                part.unlink()
        state: dict[str, Any] = tree["state"]
        return state

    def finish(self, tables: dict[str, pd.DataFrame], manifest: dict[str, Any]) -> None:
        """Put all tables together; at every instant the manifest lists those that are there."""
        streamed = {table: sorted(self.partial.glob(f"{table}-*.arrow")) for table in TABLES}
        names = {f"{table}.{self.format}" for table in [*tables, *filter(streamed.get, TABLES)]}
        before = self.listed(self.record_in(self.path))
        self.check_writable(names)
        self.write_manifest(manifest | {"status": "interrupted"}, before | names)
        for table, parts in streamed.items():
            self._write(table, whole(table, parts))
        for table, frame in tables.items():
            self._write(table, iter([pa.Table.from_pandas(frame, preserve_index=False)]))
        sync(self.path)
        for name in before - names:
            (self.path / name).unlink(missing_ok=True)
        self.write_manifest(manifest, names)
        if manifest["status"] == "complete":
            self.tidy()

    def write_manifest(self, manifest: dict[str, Any], files: Collection[str] = ()) -> None:
        """Write ``manifest.json`` atomically, with the tables that are there."""
        self.write_record(manifest | {"files": sorted(files)})

    def list_files(self) -> None:
        """Let the manifest list what is there, after tables were added or removed."""
        if (manifest := self.record_in(self.path)) is not None:
            self.write_manifest(manifest, [name for name in KNOWN if plain(self.path / name)])

    def _part(self, table: str, chunk: int) -> Path:
        return self.partial / f"{table}-{chunk:06d}.arrow"

    def _write(self, table: str, rows: Iterator[pa.Table]) -> None:
        write = write_csv if self.format == "csv" else write_parquet
        with replacing(self.path / f"{table}.{self.format}", sync_folder=False) as draft:
            write(draft, rows)


def _is_part(part: Path) -> bool:
    """Say whether a file in ``.partial``, or a draft, has a name that we give."""
    return PART.fullmatch(re.sub(r"^\.(.*)\.tmp$", r"\1", part.name)) is not None


def _chained(checksum: int, part: Path) -> int:
    checksum = zlib.crc32(part.name.encode(), checksum)
    with part.open("rb") as file:
        while block := file.read(BLOCK):
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
    text = TEXT  # columns that are no numbers, among them the one that names the data's rows
    try:
        names = RunDirectory.listed(manifest) if "files" in manifest else KNOWN
        files = [path / name for name in sorted(names) if (path / name).is_file()]
        with suppress(KeyError, TypeError):  # no data, or nothing of ours
            text = TEXT | {manifest["config"]["data"]["index"]}
        tables = {file.stem: _read(file, text) for file in files if file.stem not in without}
    except (ValueError, OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read: {reason}; run the scenario again") from error
    return manifest, tables


def _read(path: Path, text: set[str]) -> pd.DataFrame:
    """Read a table back; of a CSV names stay text, empty numbers become NaN."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    head = pd.read_csv(path, nrows=0)
    types = dict.fromkeys(text.intersection(head.columns), str)
    numbers = {name: [""] for name in head.columns if name not in text}
    return pd.read_csv(path, dtype=types, keep_default_na=False, na_values=numbers)


BY_AGENT = {"regret_log", "accounts", "states"}
GROUP = 100_000  # rows of a row group: so many are read where one agent is asked for
PASSES = 20
FEWEST, MOST = 100_000, 5_000_000  # rows of a pass, unless one agent has more
OPEN = 200  # parts that are open at a time


def _order(table: pa.Table) -> Integers:
    """Return which rows come first in the order of agents, each one's as they come."""
    return np.argsort(table["agent"].to_numpy(), kind="stable")


def whole(name: str, parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the rows of all parts of a table, some at a time, in the order in which it is kept."""
    if name not in BY_AGENT:
        yield from map(_opened, parts)
        return
    for low, high in pairwise(_cuts(parts)):
        yield from _pass(parts, low, high)
        pa.default_memory_pool().release_unused()


def _pass(parts: Sequence[Path], low: int, high: int) -> Iterator[pa.Table]:
    """Yield the rows of agents from ``low`` to below ``high``; gone before the next pass."""
    joined = pa.table({})
    for start in range(0, len(parts), OPEN):
        tables = [_opened(part) for part in parts[start : start + OPEN]]
        ends = [np.searchsorted(own["agent"].to_numpy(), [low, high]) for own in tables]
        some = [own.slice(at, to - at) for own, (at, to) in zip(tables, ends, strict=True)]
        joined = _joined([joined, *some] if start else some)
    order = _order(joined)
    yield from (joined.take(order[i : i + GROUP]) for i in range(0, len(order), GROUP))


def _opened(part: Path) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(str(part))).read_all()


def _cuts(parts: Sequence[Path]) -> Integers:
    """Return the agents with whom the passes begin, and one that is above all."""
    rows = np.zeros(0, np.int64)
    for part in parts:
        found = np.bincount(_opened(part)["agent"].to_numpy(), minlength=len(rows))
        found[: len(rows)] += rows
        rows = found
    before = np.cumsum(rows) - rows
    most = np.clip(rows.sum() // PASSES, FEWEST, MOST)
    firsts = np.flatnonzero(np.diff(before // most, prepend=-1))
    return np.append(firsts, len(rows))


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables one behind the other, and lay each column out in one piece."""
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def write_parquet(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one behind the other, nothing if there are none.

    Of whole numbers it is the steps that are kept, the others are split into their bytes: along a
    path steps and leading bytes hardly change. To look for equal ones would cost most of the time.
    """
    for first in tables:
        fits = {
            "DELTA_BINARY_PACKED": pa.types.is_integer,
            "BYTE_STREAM_SPLIT": pa.types.is_floating,
        }
        found = {f.name: name for f in first.schema for name, is_ in fits.items() if is_(f.type)}
        options: dict[str, Any] = {"column_encoding": found, "write_batch_size": GROUP}
        options["use_dictionary"] = [n for n in first.schema.names if n not in found]
        with pq.ParquetWriter(path, first.schema, **options) as writer:
            for table in chain([first], tables):
                writer.write_table(table.cast(writer.schema), row_group_size=GROUP)


def write_csv(path: Path, tables: Iterator[pa.Table]) -> None:
    """Write tables one behind the other, nothing if there are none."""
    for i, table in enumerate(tables):
        frame = table.to_pandas()
        frame.to_csv(path, mode="a" if i else "w", header=not i, index=False, lineterminator="\n")
