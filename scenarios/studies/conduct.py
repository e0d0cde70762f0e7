"""Conduct a study: check every setting, play what is missing in workers, sum it up.

Whatever goes wrong in a run, a user's own code included, comes back from its worker as a failure to
be recorded.
"""

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.market.logs.branch_gains import gains
from regretless.market.model import MarketModel
from regretless.scenarios.executor import DIED, Executor, beat, executor
from regretless.scenarios.imports import import_modules
from regretless.scenarios.logs.run_directory import RunDirectory
from regretless.scenarios.run import Options as RunOptions
from regretless.scenarios.run import run
from regretless.scenarios.studies.design import Design, Task
from regretless.scenarios.studies.directory import Answer, Failure, StudyDirectory, failure_of
from regretless.scenarios.studies.results import Study

PATIENCE = 1800.0  # seconds without a round that a run may take
NO_WORKER = Failure("WorkerDied", DIED)


@dataclass(frozen=True)
class Options:
    """The options of ``regretless study``; ``patience`` is in seconds without a round."""

    out: Path
    jobs: int | None = None
    scheduler: str | None = None
    resume: bool = False
    overwrite: bool = False
    imports: tuple[str, ...] = ()
    patience: float = PATIENCE


def conduct(
    design: Design,
    options: Options,
    *,
    progress: Callable[[int], Any] = lambda _: None,
    warn: Callable[[str], Any] = lambda _: None,
) -> Study:
    """Play a study to its end.

    ``progress`` is called with the number of runs that are over, ``warn`` once with each warning.
    UserError if the directory, a setting or the scheduler is at fault, before anything is written;
    KeyboardInterrupt after what is complete has been summed up.
    """
    directory, warn = StudyDirectory(options.out, design), cache(warn)
    with directory.claimed(resume=options.resume, overwrite=options.overwrite) as known:
        settings = design.settings_to_check(options.imports)
        with executor(options.jobs, options.scheduler, options.imports, warn) as workers:
            if not known:
                _check_settings(design, workers, settings, warn)
            missing = directory.start(known=known)
            folders = [None if workers.sends_files else str(directory.draft(r)) for r in missing]
            pairs = zip(missing, folders, strict=True)
            tasks = (design.task(run, options.imports, folder) for run, folder in pairs)
            status = "interrupted"
            try:
                answers = workers.answers(play, tasks, options.patience)
                for over, (place, found) in enumerate(answers, start=1):
                    answer = found or Answer(missing[place], NO_WORKER)
                    directory.keep(answer)
                    for line in answer.warnings:
                        warn(line)
                    progress(len(design) - len(missing) + over)
                status = "complete"
            finally:
                workers.close()  # before the drafts are removed
                for name, table in Study(directory.path).results().items():
                    directory.write(name, table)
                directory.finish(status)
    return Study(options.out)


def _check_settings(
    design: Design, workers: Executor, settings: list[Task], warn: Callable[[str], Any]
) -> None:
    found = dict(workers.answers(check, settings))
    answers = [found[place] or Answer(one.run, NO_WORKER) for place, one in enumerate(settings)]
    for answer in answers:
        if (fault := answer.failure) is not None:
            other = f"{fault.kind}: {fault.error}; change the setting"
            reason = fault.error if fault.kind == "UserError" else other
            raise design.complaint(answer.run, reason)
    for line in (line for answer in answers for line in answer.warnings):
        warn(line)


# Threads of one process take turns: a run changes process-wide settings, such as warning filters.
TURN = threading.Lock()


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
    with tempfile.TemporaryDirectory() as folder:
        out = Path(task.folder or f"{folder}/run")
        if out.exists():  # what a worker left that hung
            shutil.rmtree(out)
        trunk = run(task.scenario(), RunOptions(out, log_every=task.log_every), progress=beat)
        if task.branch is not None:
            with replacing(out / "branches.parquet") as draft:
                _branched(task, trunk).to_parquet(draft, index=False)
        for table in task.leave_out:
            (out / f"{table}.parquet").unlink(missing_ok=True)
        RunDirectory(out).list_files()
        sent = [] if task.folder else sorted(out.iterdir())
        files = {path.name: path.read_bytes() for path in sent}
    return Answer(task.run, files=files, warnings=trunk.warnings)


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
