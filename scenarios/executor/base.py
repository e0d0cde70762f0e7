"""An executor does tasks: here, one after another, in this process."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from regretless.market.core.errors import UserError

DIED = "its worker process ended before that (killed, out of memory, or still for too long)"
T = TypeVar("T")  # a task
A = TypeVar("A")  # its answer


class Executor:
    """Does tasks: here, one after another, in this process.

    ``sends_files``: whether tasks are done where the folders of this process are not seen.
    """

    sends_files: bool = False

    @property
    def capacity(self) -> int:
        """How many tasks are done at once."""
        return 1

    def answers(
        self, work: Callable[[T], A], tasks: Iterable[T], patience: float | None = None
    ) -> Iterator[tuple[int, A | None]]:
        """Yield the index of each task and its answer, as they come; None if its worker died.

        Parameters
        ----------
        work : callable
            Does a task; a function of a module.
        tasks : iterable
            They are taken when there is room for one more.
        patience : float, optional
            For how many seconds a task may show no life; by default for ever.
        """
        yield from enumerate(map(work, tasks))

    def map(
        self,
        work: Callable[[T], A],
        tasks: Sequence[T],
        *,
        progress: Callable[[int], Any] = lambda _: None,
    ) -> list[A]:
        """Do all the work, and return the answers in the tasks' order.

        ``progress`` is called with the number of tasks that are done. UserError if a worker died;
        what the work itself raises is raised here.
        """
        answer_of_task: dict[int, A] = {}
        for index, answer in self.answers(work, tasks):
            if answer is None:
                raise UserError(
                    f"task {index + 1}: {DIED}; start again, with fewer --jobs if memory is"
                )
            answer_of_task[index] = answer
            progress(len(answer_of_task))
        return [answer_of_task[index] for index in range(len(tasks))]

    def close(self) -> None:
        """Let go of everybody, whatever they are doing."""
