"""A study directory, and how it survives: nothing in it is ever half-written.

``docs/columns.md`` lists the tables. A run is written into a draft folder and moved to
``runs/run=0000/`` in one step; what is killed leaves drafts, which nobody reads and the next start
removes. ``study.json`` lists the tables; of an earlier study only they and its runs are replaced.
"""

import json
import re
import shutil
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from regretless.market import register
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.logs import ownership
from regretless.scenarios.logs.directory import RunDirectory
from regretless.scenarios.run import versions
from regretless.scenarios.studies.design import Design

RECORD = "study.json"
TABLES = (
    *("parameters", "failures", "cohorts", "value", "effects", "contrasts", "interactions"),
    *("pair_effects", "effects_by_parameter", "contrasts_by_parameter", "regression"),
    *("gains", "sensitivity", "calibration", "windows"),
)
KNOWN = {f"{table}.parquet" for table in TABLES}
DRAFTS, SESSION = ".drafts", "session-"  # one process's drafts lie in a folder of its own
FAILURES = pa.schema(
    [("run", pa.int64()), *((name, pa.string()) for name in ("kind", "error", "traceback"))]
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


class StudyDirectory:
    """Where a study's runs go."""

    def __init__(self, path: Path, design: Design) -> None:
        self.path, self.design = path, design
        self.failures: dict[int, Failure] = {}
        self.files: set[str] = set()
        self._started = time.perf_counter()

    def check(self, *, resume: bool, overwrite: bool) -> bool:
        """Say whether the study is here already and goes on.

        UserError if something else is, or a study that is to be neither resumed nor replaced.
        """
        asked = {"resume": resume, "overwrite": overwrite}
        ownership.check_asked(self.path, "study", **asked)
        if ownership.unused(self.path, RECORD):
            return False
        found = read_record(self.path)
        recorded = ownership.known_as_ours(self.path, "study", found, **asked)
        ownership.check_folder(self.path / "runs")
        ownership.check_folder(self.path / DRAFTS)
        mine = ownership.listed(recorded, KNOWN.__contains__) | {RECORD}
        ownership.check_writable(self.path, KNOWN | {RECORD}, mine)
        for draft in ownership.contents(self.path / DRAFTS):
            ownership.check_folder(draft)
            if not draft.name.startswith(SESSION):
                ownership.refuse(self.path, f"{DRAFTS}/{draft.name}")
        begun = recorded.get("versions", {}).get("regretless")
        if resume and begun != version("regretless"):
            where = f"--resume: {self.path} was begun by {begun or 'another version'}"
            raise UserError(f"{where}; continue it with that version or give another directory")
        if resume and recorded["study"] != self.design.identity():
            reason = f"--resume: {self.path} holds another study"
            raise UserError(f"{reason}; give another --out or the study file as it was")
        if resume:
            return True
        for home in ownership.contents(self.path / "runs"):  # which are replaced
            ownership.check_folder(home)
            if not re.fullmatch(r"run=\d{4,}", home.name):
                ownership.refuse(self.path, f"runs/{home.name}")
            if strays := RunDirectory(home).strays():
                ownership.refuse(home, strays[0])
        return False

    def start(self, *, known: bool) -> list[int]:
        """Make the directory, or clear it of drafts; return the runs that are missing.

        ``known``: whether the study that is here goes on; another one gives way.
        """
        try:
            recorded = read_record(self.path)
            if known:
                self.files = ownership.listed(recorded, KNOWN.__contains__)
            elif recorded is not None:
                self._remove(recorded)
            self.write_record("interrupted")  # first: from now on it is known whose the folder is
            (self.path / "runs").mkdir(exist_ok=True)
            shutil.rmtree(self.path / DRAFTS, ignore_errors=True)
            (self.path / DRAFTS).mkdir()
        except OSError as error:
            reason = f"--out {self.path} cannot be written: {error.strerror}"
            raise UserError(f"{reason}; give another directory") from error
        self._drafts = Path(tempfile.mkdtemp(prefix=SESSION, dir=self.path / DRAFTS))
        self.write("parameters", parameters_table(self.design.parameters()))
        self._write_failures()
        return [run for run in range(len(self.design)) if not self.home(run).exists()]

    def _remove(self, recorded: dict[str, Any]) -> None:
        """Remove an earlier study, which is interrupted from now on."""
        ownership.write_record(self.path / RECORD, recorded | {"status": "interrupted"})
        for home in ownership.contents(self.path / "runs"):
            RunDirectory(home).remove()
        for name in ownership.listed(recorded, KNOWN.__contains__):
            (self.path / name).unlink(missing_ok=True)
        if ownership.our_page(self.path / ownership.REPORT):
            (self.path / ownership.REPORT).unlink()

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
        (draft / ownership.LOCK).unlink(missing_ok=True)
        draft.replace(self.home(answer.run))

    def finish(self, status: str) -> None:
        """Remove the drafts and write how far the study came."""
        shutil.rmtree(self.path / DRAFTS, ignore_errors=True)
        self.write_record(status)

    def write_record(self, status: str) -> None:
        """Write ``study.json``."""
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
        ownership.write_record(self.path / RECORD, record)

    def write(self, name: str, table: pa.Table | pd.DataFrame) -> None:
        """Write a table of the study, which the record lists before it is there."""
        file = f"{name}.parquet"
        if file not in self.files:
            ownership.check_writable(self.path, {file}, set())
            self.files.add(file)
            self.write_record("interrupted")
        if isinstance(table, pd.DataFrame):
            table = pa.Table.from_pandas(table, preserve_index=False)
        with replacing(self.path / file) as draft:
            pq.write_table(table, draft)

    def _write_failures(self) -> None:
        rows = [{"run": run} | vars(self.failures[run]) for run in sorted(self.failures)]
        self.write("failures", pa.Table.from_pylist(rows, schema=FAILURES))


def read_record(path: Path) -> dict[str, Any] | None:
    """Return ``study.json`` of a directory; None if there is none of ours."""
    return ownership.record_of(path / RECORD, "study", "status", "runs")


def parameters_table(parameters: Sequence[dict[str, Any]]) -> pa.Table:
    """Lay out the parameters of the runs, a column of booleans, integers, floats or text per key.

    Tables, lists and mixtures of types are JSON text.
    """
    keys = ["seed", *(key for key in parameters[0] if key != "seed")]
    typed = {key: _typed([row[key] for row in parameters]) for key in keys}
    return pa.table({"run": pa.array(range(len(parameters)), pa.int64())} | typed)


def _typed(values: list[Any]) -> pa.Array:
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind == "mixed-integer-float":
        return pa.array([*map(float, values)])
    if kind in {"boolean", "integer", "floating", "string"}:
        return pa.array(values)
    return pa.array([json.dumps(value, default=str) for value in values])
