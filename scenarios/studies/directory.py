"""A study directory, and how it survives: nothing in it is ever half-written.

    study.json            the study as it was read, versions, and how far it came
    parameters.parquet    a row per run: `run`, `seed`, and a typed column per key that varies
    runs/run=0000/        a run directory (as `regretless run` writes it), there once it is complete
    failures.parquet      a row per run that failed: `run`, `kind`, `error`, `traceback`
    cohorts, value, effects .parquet    what `scenarios.studies.analysis.measures` makes of the runs
    contrasts, interactions .parquet    what each key, two keys together, and each branch change
    *_by_parameter.parquet              the same among agents alike in a parameter
    regression.parquet    regrets of agents on their parameters and the keys
    gains.parquet         what each branch did to each agent, over seeds
    sensitivity, calibration .parquet   of keys that were sampled (`scenarios.studies.sampling`)
    windows.parquet       regret over windows, where the runs have it

A run is written into a draft folder and moved to its place in one step. What is killed leaves
drafts, which nobody reads and the next start removes. ``study.json`` lists the tables; of an
earlier study only they and its runs are replaced.
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


@dataclass(frozen=True)
class Failure:
    """Why a run has no logs.

    ``kind``: the exception's name, or ``WorkerDied``; ``error``: one line.
    """

    kind: str
    error: str
    traceback: str = ""


@dataclass(frozen=True)
class Answer:
    """What a worker sends back.

    ``files`` (dict of str to bytes): the run directory, where the task named no folder;
    ``warnings`` (tuple of str): what can hardly be meant (``scenarios.notes``).
    """

    run: int
    failure: Failure | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def failure_of(error: BaseException) -> Failure:
    """Describe an exception: its cause's name, its text on one line, its traceback."""
    line = " ".join(str(error).split()) or type(error).__name__
    kind = type(error.__cause__ or error).__name__
    return Failure(kind, line, "".join(traceback.format_exception(error)))


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
        ownership.check_asked(self.path, "study", resume=resume, overwrite=overwrite)
        if ownership.unused(self.path, RECORD):
            return False
        recorded = read_record(self.path)
        recorded = ownership.known_as_ours(
            self.path, "study", recorded, resume=resume, overwrite=overwrite
        )
        self._check_entries(recorded)
        if resume:
            self._check_same(recorded)
        for home in [] if resume else ownership.contents(self.path / "runs"):  # which are replaced
            ownership.check_folder(home)
            if not re.fullmatch(r"run=\d{4,}", home.name):
                ownership.refuse(self.path, f"runs/{home.name}")
            if strays := RunDirectory(home).strays():
                ownership.refuse(home, strays[0])
        return resume

    def _check_entries(self, recorded: dict[str, Any]) -> None:
        """Raise UserError if something lies in the way that is not the study's."""
        ownership.check_folder(self.path / "runs")
        ownership.check_folder(self.path / DRAFTS)
        ownership.check_writable(
            self.path, KNOWN | {RECORD}, ownership.listed(recorded, KNOWN.__contains__) | {RECORD}
        )
        for found in ownership.contents(self.path / DRAFTS):
            ownership.check_folder(found)
            if not found.name.startswith(SESSION):
                ownership.refuse(self.path, f"{DRAFTS}/{found.name}")

    def _check_same(self, recorded: dict[str, Any]) -> None:
        begun = recorded.get("versions", {}).get("regretless")
        if begun != version("regretless"):
            where = f"--resume: {self.path} was begun by {begun or 'another version'}"
            raise UserError(f"{where}; continue it with that version or give another directory")
        if recorded["study"] != self.design.identity():
            reason = f"--resume: {self.path} holds another study"
            raise UserError(f"{reason}; give another --out or the study file as it was")

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
        if f"{name}.parquet" not in self.files:
            ownership.check_writable(self.path, {f"{name}.parquet"}, set())
            self.files.add(f"{name}.parquet")
            self.write_record("interrupted")
        if isinstance(table, pd.DataFrame):
            table = pa.Table.from_pandas(table, preserve_index=False)
        with replacing(self.path / f"{name}.parquet") as draft:
            pq.write_table(table, draft)

    def _write_failures(self) -> None:
        rows = [{"run": run} | vars(self.failures[run]) for run in sorted(self.failures)]
        self.write("failures", pa.Table.from_pylist(rows, schema=FAILURES))


def read_record(path: Path) -> dict[str, Any] | None:
    """Return ``study.json`` of a directory; None if there is none of ours."""
    return ownership.record_of(path / RECORD, "study", "status", "runs")


def parameters_table(parameters: Sequence[dict[str, Any]]) -> pa.Table:
    """Lay out the parameters of the runs, one typed column per key.

    A column of numbers with a fraction among them holds floats; tables, lists and mixtures of types
    are JSON text.
    """
    keys = ["seed", *(key for key in parameters[0] if key != "seed")]
    columns = {key: [row[key] for row in parameters] for key in keys}
    typed = {key: typed_column(values) for key, values in columns.items()}
    return pa.table({"run": pa.array(range(len(parameters)), pa.int64())} | typed)


def typed_column(values: Sequence[Any]) -> pa.Array:
    """Turn values of one key into a column of booleans, integers, floats or text."""
    kind = pd.api.types.infer_dtype(values, skipna=False)
    if kind == "mixed-integer-float":
        return pa.array([*map(float, values)])
    if kind in {"boolean", "integer", "floating", "string"}:
        return pa.array(values)
    return pa.array([json.dumps(value, default=str) for value in values])
