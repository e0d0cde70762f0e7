"""Conduct a study: check every setting, play what is missing, sum it up."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from regretless.scenarios.executor import DIED, Executor, executor
from regretless.scenarios.logs.ownership import held
from regretless.scenarios.studies.design import Design, Task
from regretless.scenarios.studies.directory import StudyDirectory
from regretless.scenarios.studies.play import Answer, Failure, check, play
from regretless.scenarios.studies.results import Study

PATIENCE = 1800.0  # seconds without a round that a run may take


@dataclass(frozen=True)
class Options:
    """How to conduct a study: the options of ``regretless study``.

    ``patience``: seconds without a round after which a worker is ended and its run has failed.
    """

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

    ``progress`` is called with the number of runs that are over, ``warn`` once with each line of
    which runs warn. UserError if the directory, a setting or the scheduler is at fault; of the
    first two nothing is written. KeyboardInterrupt after what is complete has been summed up.
    """
    directory, warn = StudyDirectory(options.out, design), cache(warn)
    asked = {"resume": options.resume, "overwrite": options.overwrite}
    directory.check(**asked)
    with held(options.out):
        known = directory.check(**asked)
        settings = design.settings_to_check(options.imports)
        with executor(options.jobs, options.scheduler, options.imports) as workers:
            if not known:
                _check(design, workers, settings, warn)
            missing = directory.start(known=known)
            status = "interrupted"
            try:
                folders = None if workers.sends_files else directory.draft
                tasks = (
                    design.task(run, options.imports, folders and str(folders(run)))
                    for run in missing
                )
                answers = workers.answers(play, tasks, options.patience)
                for over, (place, found) in enumerate(answers, start=1):
                    answer = found or _died(missing[place])
                    directory.keep(answer)
                    _warned([answer], warn)
                    progress(len(design) - len(missing) + over)
                status = "complete"
            finally:
                workers.close()  # before the drafts are removed
                for name, table in Study(directory.path).results().items():
                    directory.write(name, table)
                directory.finish(status)
    return Study(options.out)


def _died(run: int) -> Answer:
    return Answer(run, Failure("WorkerDied", DIED))


def _warned(answers: Iterable[Answer], warn: Callable[[str], Any]) -> None:
    for line in dict.fromkeys(line for answer in answers for line in answer.warnings):
        warn(line)


def _check(
    design: Design, workers: Executor, settings: list[Task], warn: Callable[[str], Any]
) -> None:
    """Build the first market of every setting; UserError for the first that cannot be."""
    found = dict(workers.answers(check, settings))
    answers = [found[place] or _died(one.run) for place, one in enumerate(settings)]
    for answer in answers:
        if (fault := answer.failure) is not None:
            other = f"{fault.kind}: {fault.error}; change the setting"
            reason = fault.error if fault.kind == "UserError" else other
            raise design.complaint(answer.run, reason)
    _warned(answers, warn)
