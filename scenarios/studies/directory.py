"""A study directory, and how it survives: nothing in it is ever half-written.

``conduct`` writes through it. A run is written into a draft folder and moved to ``runs/run=0000/``
in one step; what is killed leaves drafts, which nobody reads and the next start removes.
``study.json`` lists the tables (``docs/columns.md``); of an earlier study only they and its runs
are replaced.
"""

import json
import re
import shutil
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from regretless.market import register
from regretless.market.core.checkpoint import replacing
from regretless.scenarios.logs.directory_lock import LOCK, not_ours, unwritable
from regretless.scenarios.logs.ownership import (
    RecordedDirectory,
    check_folder,
    contents,
)
from regretless.scenarios.logs.run_directory import RunDirectory
from regretless.scenarios.run import versions
from regretless.scenarios.studies.design import Design
from regretless.scenarios.studies.tables import STUDY_TABLES

RECORD = "study.json"
TABLES = ("parameters", "failures", *STUDY_TABLES)
DRAFTS = ".drafts"
SESSION = "session-"  # how a folder of the drafts begins: one process's lie in one of its own
FAILURES = pa.schema(
    [
        ("run", pa.int64()),
        ("kind", pa.string()),
        ("error", pa.string()),
        ("traceback", pa.string()),
    ]
)


@dataclass(frozen=True)
class Failure:
    """Why a run has no logs: ``kind`` is the exception's name, or ``WorkerDied``."""

    kind: str
    error: str
    traceback: str = ""


@dataclass(frozen=True)
class Answer:
    """What a worker sends back: ``files`` of the run directory where the task named no folder."""

    run: int
    failure: Failure | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def failure_of(error: BaseException) -> Failure:
    """Describe an exception: its cause's name, its text on one line, its traceback."""
    line = " ".join(str(error).split()) or type(error).__name__
    kind = type(error.__cause__ or error).__name__
    return Failure(kind, line, "".join(traceback.format_exception(error)))


class StudyDirectory(RecordedDirectory):
    """Where a study's runs go."""

    KIND = "study"
    RECORD = RECORD
    RECORD_KEYS: ClassVar = {"study": dict, "runs": int}
    FILE_NAMES = re.compile(rf"({'|'.join(TABLES)})\.parquet")

    def __init__(self, path: Path, design: Design) -> None:
        super().__init__(path, {f"{table}.parquet" for table in TABLES})
        self.design = design
        self.failures: dict[int, Failure] = {}
        self.files: set[str] = set()
        self._started = time.perf_counter()

    def check_inside(self, record: dict[str, Any], *, resume: bool) -> None:
        """Raise UserError if a folder of ours is not, or what is resumed is another study."""
        for folder in (self.path / "runs", self.path / DRAFTS, *contents(self.path / DRAFTS)):
            check_folder(folder)
            if folder.parent.name == DRAFTS and not folder.name.startswith(SESSION):
                raise not_ours(self.path, f"{DRAFTS}/{folder.name}")
        if resume:
            self.check_same(record, "study", self.design.identity())
            return
        for home in contents(self.path / "runs"):  # which are replaced
            check_folder(home)
            if not re.fullmatch(r"run=\d{4,}", home.name):
                raise not_ours(self.path, f"runs/{home.name}")
            strangers = RunDirectory(home).strangers()
            if strangers:
                raise not_ours(home, strangers[0])

    def start(self, *, is_known: bool) -> list[int]:
        """Make the directory, or clear it of drafts; return the runs that are missing.

        ``known``: whether the study that is here goes on; another one gives way.
        """
        try:
            earlier = self.record_in(self.path)
            if is_known:
                self.files = self.listed(earlier)
            elif earlier is not None:
                self.write_record(earlier | {"status": "interrupted"})
                for home in contents(self.path / "runs"):
                    RunDirectory(home).remove()
                self.remove_files(self.listed(earlier))
            self._record("interrupted")  # first: from now on it is known whose the folder is
            (self.path / "runs").mkdir(exist_ok=True)
            shutil.rmtree(self.path / DRAFTS, ignore_errors=True)
            (self.path / DRAFTS).mkdir()
        except OSError as error:
            raise unwritable(self.path, error) from error
        self._drafts = Path(tempfile.mkdtemp(prefix=SESSION, dir=self.path / DRAFTS))
        self._write_parameters()
        self._write_failures()
        return [run for run in range(len(self.design)) if not self.home(run).exists()]

    def home(self, run: int) -> Path:
        """Folder of a complete run."""
        return self.path / "runs" / f"run={run:04d}"

    def draft(self, run: int) -> Path:
        """Folder of a run that is being played."""
        return self._drafts / f"run={run:04d}"

    def keep(self, answer: Answer) -> None:
        """Move a run's logs to their place, or record its failure."""
        draft = self.draft(answer.run)
        if answer.failure is not None:
            shutil.rmtree(draft, ignore_errors=True)
            self.failures[answer.run] = answer.failure
            self._write_failures()
            return
        for name, content in answer.files.items():
            draft.mkdir(exist_ok=True)
            (draft / name).write_bytes(content)
        shutil.rmtree(draft / ".partial", ignore_errors=True)  # where the run could not tidy up
        (draft / LOCK).unlink(missing_ok=True)
        draft.replace(self.home(answer.run))

    def finish(self, status: str) -> None:
        """Remove the drafts and write how far the study came."""
        shutil.rmtree(self.path / DRAFTS, ignore_errors=True)
        self._record(status)

    def _record(self, status: str) -> None:
        record = {
            "name": self.design.name,
            "study": self.design.identity(),
            "status": status,
            "runs": len(self.design),
            "complete": sum(self.home(run).exists() for run in range(len(self.design))),
            "failed": len(self.failures),
            "within": register.measure.within,
            "versions": versions(),
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
            "wall_seconds": round(time.perf_counter() - self._started, 3),
            "files": sorted(self.files),
        }
        self.write_record(record)

    def write(self, name: str, table: pa.Table | pd.DataFrame) -> None:
        """Write a table of the study, which the record lists before it is there."""
        file = f"{name}.parquet"
        if file not in self.files:
            self.check_writable({file})
            self.files.add(file)
            self._record("interrupted")
        if isinstance(table, pd.DataFrame):
            table = _with_types(pa.Table.from_pandas(table, preserve_index=False))
        with replacing(self.path / file) as draft:
            pq.write_table(table, draft)

    def drop(self, name: str) -> None:
        """Remove a table that an earlier session wrote and this one cannot."""
        file = f"{name}.parquet"
        if file in self.files:
            (self.path / file).unlink(missing_ok=True)
            self.files.remove(file)

    def _write_parameters(self) -> None:
        rows = self.design.parameters()
        columns = {"run": pa.array(range(len(rows)), pa.int64())}
        for key in ("seed", *(key for key in rows[0] if key != "seed")):
            columns[key] = _typed([row[key] for row in rows])
        self.write("parameters", pa.table(columns))

    def _write_failures(self) -> None:
        rows = [{"run": run} | vars(self.failures[run]) for run in sorted(self.failures)]
        self.write("failures", pa.Table.from_pylist(rows, schema=FAILURES))


def _with_types(table: pa.Table) -> pa.Table:
    """Return a table whose columns have a type each, text where nothing tells which.

    Before version 3 pandas has no type for text, and Arrow none for a column of it without rows.
    """
    for column_index, column in enumerate(table.schema):
        if pa.types.is_null(column.type):
            empty_text = table[column.name].cast(pa.string())
            table = table.set_column(column_index, column.with_type(pa.string()), empty_text)
    return table


def _typed(values: list[Any]) -> pa.Array:
    """Return a column of booleans, integers, floats or text, of anything else as JSON text."""
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind == "mixed-integer-float":
        return pa.array([*map(float, values)])
    if kind in {"boolean", "integer", "floating", "string"}:
        return pa.array(values)
    return pa.array([json.dumps(value, default=str) for value in values])
