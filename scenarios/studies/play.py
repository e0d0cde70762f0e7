"""What a worker does with a task: check its scenario, or play it and say how it went.

Whatever goes wrong in a run, a user's own code included, comes back as a failure to be recorded.
"""

import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.market.logs.comparisons import gains
from regretless.market.model import MarketModel
from regretless.scenarios.executor import beat
from regretless.scenarios.imports import import_modules
from regretless.scenarios.logs.directory import RunDirectory
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.design import Task

# Threads of one process take turns: a run changes process-wide settings, such as warning filters.
TURN = threading.Lock()


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


def check(task: Task) -> Answer:
    """Build a task's market without playing it."""
    return _guarded(task, _build)


def play(task: Task) -> Answer:
    """Play a task and write its run directory, or send it back."""
    return _guarded(task, _play)


def _guarded(task: Task, work: Callable[[Task], Answer]) -> Answer:
    try:
        with TURN:
            import_modules([n for n in task.imports if n.removesuffix(".py") not in sys.modules])
            return work(task)
    except BaseException as error:  # a user's code may raise SystemExit too
        main = threading.current_thread() is threading.main_thread()
        if isinstance(error, KeyboardInterrupt) and main:
            raise  # somebody pressed Ctrl-C
        return Answer(task.run, failure_of(error))


def _build(task: Task) -> Answer:
    model = task.scenario().build(log_every=task.log_every, apart=task.branch is not None)
    if task.branch is not None:
        if task.branch.at >= model.rounds:
            at = f"branch.at = {task.branch.at}"
            raise UserError(f"{at}: a run has {model.rounds} rounds; give fewer")
        for changes in task.branch.changes.values():
            model.branch(changes)
    return Answer(task.run, warnings=model.warnings)


def _play(task: Task) -> Answer:
    if task.folder is not None:
        return Answer(task.run, warnings=_written(task, Path(task.folder)))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        warnings = _written(task, out)
        files = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
        return Answer(task.run, files=files, warnings=warnings)


def _written(task: Task, out: Path) -> tuple[str, ...]:
    """Play a run and write its directory; return the warnings."""
    trunk = run(task.scenario(), Options(out, log_every=task.log_every), progress=beat)
    if task.branch is not None:
        table = pa.Table.from_pandas(_branched(task, trunk), preserve_index=False)
        with replacing(out / "branches.parquet") as draft:
            pq.write_table(table, draft)
    for table in task.leave_out:
        (out / f"{table}.parquet").unlink(missing_ok=True)
    RunDirectory(out).list_files()
    return trunk.warnings


def _branched(task: Task, trunk: MarketModel) -> pd.DataFrame:
    """Play a run's branches, from a twin that has come to where they part, and compare them."""
    asked: Any = task.branch
    twin = task.scenario().build(log_every=trunk.rounds, apart=True)
    twin.run(asked.at, progress=beat)
    parts = []
    for label, changes in asked.changes.items():
        branch = twin.branch(changes)
        branch.run(progress=beat)
        parts.append(gains(trunk, branch))
        parts[-1].insert(0, "branch", label)
    return pd.concat(parts, ignore_index=True)


def failure_of(error: BaseException) -> Failure:
    """Describe an exception: its cause's name, its text on one line, its traceback."""
    line = " ".join(str(error).split()) or type(error).__name__
    kind = type(error.__cause__ or error).__name__
    return Failure(kind, line, "".join(traceback.format_exception(error)))
