"""Conduct a study: check every setting, play what is missing in workers, write the tables.

``regretless study`` calls ``conduct``. Whatever goes wrong in a run, a user's own code included,
comes back from its worker as a failure to be recorded.
"""

import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.market.logs.branch_gains import gains
from regretless.market.model import MarketModel
from regretless.scenarios.executor.base import DIED, Executor
from regretless.scenarios.executor.choice import executor
from regretless.scenarios.executor.worker import beat
from regretless.scenarios.imports import import_modules
from regretless.scenarios.logs.run_directory import RunDirectory
from regretless.scenarios.run import Options as RunOptions
from regretless.scenarios.run import run
from regretless.scenarios.studies.analysis.parameters import (
    NOT_INSTALLED,
    is_statsmodels_installed,
)
from regretless.scenarios.studies.design import Design, Task
from regretless.scenarios.studies.directory import Answer, Failure, StudyDirectory, failure_of
from regretless.scenarios.studies.results import Study
from regretless.scenarios.studies.tables import STUDY_TABLES

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
    directory = StudyDirectory(options.out, design)
    warn_once = cache(warn)
    with directory.claimed(resume=options.resume, overwrite=options.overwrite) as goes_on:
        first_runs = design.settings_to_check(options.imports)
        with executor(options.jobs, options.scheduler, options.imports, warn_once) as workers:
            if not goes_on:
                _check_settings(design, workers, first_runs, warn_once)
            missing_runs = directory.start(is_known=goes_on)
            tasks = _tasks(design, directory, missing_runs, options, send=workers.sends_files)
            n_over = len(design) - len(missing_runs)
            status = "interrupted"
            try:
                for run_index, given_answer in workers.answers(play, tasks, options.patience):
                    answer = given_answer or Answer(missing_runs[run_index], NO_WORKER)
                    directory.keep(answer)
                    for line in answer.warnings:
                        warn_once(line)
                    n_over += 1
                    progress(n_over)
                status = "complete"
            finally:
                workers.close()  # before the drafts are removed
                _write_tables(directory, warn_once)
                directory.finish(status)
    return Study(options.out)


def _tasks(
    design: Design, directory: StudyDirectory, runs: list[int], options: Options, *, send: bool
) -> Iterator[Task]:
    """Yield the tasks of runs, whose logs go into drafts; with ``send`` workers send them back."""
    for run_number in runs:
        folder = None if send else str(directory.draft(run_number))
        yield design.task(run_number, options.imports, folder)


def _write_tables(directory: StudyDirectory, warn: Callable[[str], Any]) -> None:
    """Compute every table that the study has from the runs that are complete, and write it."""
    runs = Study(directory.path)
    if not is_statsmodels_installed():
        warn(f"{NOT_INSTALLED}, then continue with --resume")
    for table in STUDY_TABLES.values():
        if table.available(runs):
            directory.write(table.name, table.of(runs))
        else:
            directory.drop(table.name)


def _check_settings(
    design: Design, workers: Executor, first_runs: list[Task], warn: Callable[[str], Any]
) -> None:
    """Build the market of every setting; UserError names the first one that has a fault."""
    answers_by_place = dict(workers.answers(check, first_runs))
    answers = []
    for setting_index, task in enumerate(first_runs):
        answers.append(answers_by_place[setting_index] or Answer(task.run, NO_WORKER))
    for answer in answers:
        failure = answer.failure
        if failure is None:
            continue
        reason = failure.error
        if failure.kind != "UserError":
            reason = f"{failure.kind}: {failure.error}; change the setting"
        raise design.complaint(answer.run, reason)
    for answer in answers:
        for line in answer.warnings:
            warn(line)


# Threads of one process take turns: a run changes process-wide settings, such as warning filters.
RUN_LOCK = threading.Lock()


def check(task: Task) -> Answer:
    """Build a task's market without playing it."""
    return _guarded(task, _build)


def play(task: Task) -> Answer:
    """Play a task and write its run directory, or send it back."""
    return _guarded(task, _play)


def _guarded(task: Task, work: Callable[[Task], Answer]) -> Answer:
    """Do a task's work; what goes wrong in it is the answer."""
    try:
        with RUN_LOCK:
            import_modules(
                [name for name in task.imports if name.removesuffix(".py") not in sys.modules]
            )
            return work(task)
    except BaseException as error:  # a user's code may raise SystemExit too
        is_main_thread = threading.current_thread() is threading.main_thread()
        if isinstance(error, KeyboardInterrupt) and is_main_thread:
            raise  # somebody pressed Ctrl-C
        return Answer(task.run, failure_of(error))


def _build(task: Task) -> Answer:
    """Build a task's market, and each of its branches; UserError if one cannot be."""
    model = task.scenario().build(log_every=task.log_every, apart=task.branch is not None)
    if task.branch is not None:
        if task.branch.at >= model.rounds:
            raise UserError(
                f"branch.at = {task.branch.at}: a run has {model.rounds} rounds; give fewer"
            )
        for changes in task.branch.changes.values():
            model.branch(changes)
    return Answer(task.run, warnings=model.warnings)


def _play(task: Task) -> Answer:
    """Play a task into its folder, or into a temporary one whose files are sent back."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(task.folder or f"{folder}/run")
        if out.exists():  # what a worker left that hung
            shutil.rmtree(out)
        trunk = run(task.scenario(), RunOptions(out, log_every=task.log_every), progress=beat)
        if task.branch is not None:
            with replacing(out / "branches.parquet") as draft:
                _play_branches(task, trunk).to_parquet(draft, index=False)
        for table in task.leave_out:
            (out / f"{table}.parquet").unlink(missing_ok=True)
        RunDirectory(out).list_files()
        files = {}
        if task.folder is None:
            files = {path.name: path.read_bytes() for path in sorted(out.iterdir())}
    return Answer(task.run, files=files, warnings=trunk.warnings)


def _play_branches(task: Task, trunk: MarketModel) -> pd.DataFrame:
    """Play a run's branches, from a twin that has come to where they part, and compare them."""
    specification: Any = task.branch
    twin = task.scenario().build(log_every=trunk.rounds, apart=True)
    twin.run(specification.at, progress=beat)
    tables = []
    for label, changes in specification.changes.items():
        branch = twin.branch(changes)
        branch.run(progress=beat)
        table = gains(trunk, branch)
        table.insert(0, "branch", label)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
