"""Tasks of a worker: lines of the record that a share is told, and a question that it is asked.

``attempt`` does a task with the share that this process has, or with a new one.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from regretless.market.core import checkpoint
from regretless.scenarios.distributed.share import Recipe, Share
from regretless.scenarios.studies.conduct import RUN_LOCK
from regretless.scenarios.studies.directory import Failure, failure_of

Question = Callable[[Share], Any]  # a method of a share without arguments


@dataclass(frozen=True, eq=False)
class Task:
    """What a worker is to do for a share.

    Attributes
    ----------
    recipe : Recipe
        What the share is built from, where it is not there.
    first : int
        How many lines it should have heard before. A new share has heard less, and hears nothing
        yet.
    lines : sequence of bytes
        The lines of the record from there on.
    due : int
        How many lines it must have heard before it is asked.
    question : callable
        What it is asked.
    """

    recipe: Recipe
    first: int
    lines: Sequence[bytes]
    due: int
    question: Question


@dataclass(frozen=True, eq=False)
class Answer:
    """How many lines a share has heard, and what it was asked; None if that was not due."""

    n_lines_heard: int
    content: Any


SHARES: dict[tuple[str, int], Share] = {}  # that this process has, by run and index


def attempt(task: Task) -> Answer | Failure:
    """Do a task with the share that is here, or with a new one; what goes wrong comes back."""
    key = (task.recipe.run, task.recipe.index)
    try:
        with RUN_LOCK:
            share = SHARES.get(key)
            if share is None or share.n_lines_heard != task.first:
                share = _rebuild(task)
                SHARES[key] = share
            if share.n_lines_heard == task.first:
                for line in task.lines:
                    share.hear(line)
            is_due = share.n_lines_heard == task.due
            return Answer(share.n_lines_heard, task.question(share) if is_due else None)
    except BaseException as error:  # noqa: BLE001 - a user's code may raise SystemExit too
        return failure_of(error)


def _rebuild(task: Task) -> Share:
    """Build a share, and let it go on from its checkpoint, if that is sound and not ahead."""
    share = Share(task.recipe)
    if not share.file.exists():
        return share
    with suppress(checkpoint.DAMAGED):
        state = checkpoint.load(share.file)
        checkpoint.check_like(state, share.model.state())
        share.model.restore(state)
        if share.n_lines_heard <= task.first:
            return share
    return Share(task.recipe)  # some of it may have been restored


def forget(run: str) -> None:
    """Let go of all shares of a run."""
    for key in [key for key in SHARES if key[0] == run]:
        del SHARES[key]
