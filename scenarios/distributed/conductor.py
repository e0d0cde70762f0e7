"""The conductor of a run whose agents are shared out: plays the game, and asks the shares."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.core.interrupts import interrupts_between_rounds
from regretless.market.game.round import Game
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import resolved
from regretless.scenarios.distributed.crew import DaskCrew
from regretless.scenarios.distributed.division import divide
from regretless.scenarios.distributed.record import LINES_PER_ROUND, Record
from regretless.scenarios.distributed.remote import SharedGame, by_round_and_agent
from regretless.scenarios.distributed.share import ClosedShare, Recipe, Share
from regretless.scenarios.distributed.tasks import Answer, Question, Task
from regretless.scenarios.executor.base import DIED
from regretless.scenarios.executor.cluster import Cluster
from regretless.scenarios.logs.run_directory import RunDirectory
from regretless.scenarios.run import Options, Player
from regretless.scenarios.studies.directory import Failure

Tree = dict[str, Any]
Frames = dict[str, pd.DataFrame]
BLOCK_ROUNDS = 100  # between two questions, at most
MAX_LINES_PER_TASK = 4 * BLOCK_ROUNDS  # of the record in a worker's hands
MAX_DEATHS_IN_A_ROW = 5  # of workers that got a share nowhere


class Crew(Protocol):
    """Whoever plays shares, one task of each at a time."""

    def give(self, task: Task) -> None:
        """Take a task."""

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Wait for an answer; return the share's index, and the answer or None if it died."""


@dataclass
class ShareStatus:
    """What the conductor knows of a share.

    Attributes
    ----------
    recipe : Recipe
        What it is built from.
    n_lines_heard : int
        How many lines of the record it has heard, as far as is known.
    deaths : int
        How many of its workers have died since it last answered.
    has_answered : bool
        Whether it has answered the last question.
    answer : object
        What it answered.
    """

    recipe: Recipe
    n_lines_heard: int = 0
    deaths: int = 0
    has_answered: bool = True
    answer: Any = None


class Conductor(Player):
    """Plays a run with a crew, or alone where nobody can be shared out.

    Parameters
    ----------
    scenario : Scenario
        What is played.
    crew : Crew
        Who plays the shares.
    options : Options
        Those of the run.
    max_shares : int
        Into how many shares the agents are divided, at most.
    imports : tuple of str
        The user's modules, which workers import.
    warn : callable
        Is called with a line for each cohort that is played here, unless it is counted.
    """

    def __init__(
        self,
        scenario: Scenario,
        crew: Crew,
        options: Options,
        max_shares: int,
        *,
        imports: tuple[str, ...] = (),
        warn: Callable[[str], Any] = lambda _: None,
    ) -> None:
        if scenario.spec.until is not None:
            raise UserError("until: what agents like best is known in one process; drop workers")
        self._scenario = scenario.resolved
        self._crew = crew
        self._max_shares = max_shares
        self._warn = warn
        folder = options.out.absolute() / ".partial"
        self._make_recipe = partial(
            Recipe,
            os.urandom(8).hex(),  # the run's name, on which nothing depends
            resolved(scenario.spec),
            options.log_every,
            imports,
            str(folder),
        )
        self.record = Record(folder / "record.jsonl")
        self._n_lines_due = 0  # that shares must have heard before they are asked
        self._question: Question = Share.nothing
        self._use_answers: Callable[[list[Any]], None] | None = None
        self._closed_shares: list[ClosedShare] = []

    @property
    def shared(self) -> bool:
        """Whether anybody is elsewhere."""
        return bool(self.places)

    def take(self, model: MarketModel) -> None:
        """Be given the whole market, some of whose agents stay away."""
        super().take(model)
        division = divide(self._scenario, model.game)
        self.places = division.places
        reasons = division.reasons
        if not self.shared and not reasons:
            reasons = {"--workers": "all agents are counted, by type"}
        for key, reason in reasons.items():
            self._warn(f"{key}: {reason}; played in this process")
        cohorts = [model.game.cohorts[cohort_index] for cohort_index in self.places]
        n_agents = max((len(cohort.row_of) for cohort in cohorts), default=0)
        n_shares = min(self._max_shares, n_agents)
        self._shares = [
            ShareStatus(self._make_recipe(n_shares, index)) for index in range(n_shares)
        ]
        self._has_private_draws = any(cohort.private for cohort in cohorts)
        self._whole_game: Game = model.game
        self._shared_game = SharedGame(model.game, set(self.places), self.record, self.ask_all)

    def restore(self, state: Tree) -> None:
        """Continue from a checkpoint, with the record that lies beside it."""
        if not self.shared:
            super().restore(state)
            return
        self.model.game = self._shared_game
        checkpoint.check_like(state, self._state())
        self.model.restore(state)
        self.record.restore(LINES_PER_ROUND * self.model.played, state["shared"])
        self._n_lines_due = len(self.record)
        for share in self._shares:
            share.n_lines_heard = self._n_lines_due

    def _state(self) -> Tree:
        return self.model.state() | {"shared": self.record.checksum}

    def play(
        self, directory: RunDirectory, config: dict[str, Any], progress: Callable[[int], Any] | None
    ) -> None:
        """Play what is left, until all shares have closed the run."""
        if not self.shared:
            super().play(directory, config, progress)
            return
        model = self.model
        model.game = self._shared_game
        is_resumable = not self._shared_game.forgetful()  # all players offer their state
        self._progress = progress or (lambda _: None)
        full_chunks: list[Frames] = []
        model.stream_logs_to(full_chunks.append)
        if is_resumable and model.rounds > model.journal.chunk_rounds:
            checkpoint.check_tree(self._state())

        def ask_for_rows(state: Tree | None) -> None:
            """Ask for the rows of a chunk that is full; then keep it, and the state after it."""
            own_rows = full_chunks.pop()

            def keep(rows_of_shares: list[Frames]) -> None:
                directory.add_chunk(_rows_of_all(own_rows, rows_of_shares))
                if state is not None:
                    directory.save_checkpoint(state, config)

            self._ask(Share.log_rows, keep)

        self._ask(Share.nothing)  # they build while the first block is played
        with interrupts_between_rounds() as stopped:
            while model.played < model.rounds and not stopped.is_set():
                self._play_round()
                if full_chunks:
                    ask_for_rows(self._state() if is_resumable else None)
                elif len(self.record) - self._n_lines_due >= LINES_PER_ROUND * BLOCK_ROUNDS:
                    self._ask(Share.nothing)
            model.journal.flush()
            if full_chunks:
                ask_for_rows(None)
            self._closed_shares = self.ask_all(Share.close)
            if model.played < model.rounds:
                raise KeyboardInterrupt

    def _play_round(self) -> None:
        """Play a round of those who are here, and put on record what the others hear."""
        model = self.model
        current = model.begin()
        blocks = self._whole_game.blocks
        self.record.begin_round(current, blocks, private=self._has_private_draws)
        self.record.end_round(model.conclude(current).outcome)

    def ask_all(self, question: Question) -> list[Any]:
        """Ask all shares, and wait for what they say."""
        self._ask(question)
        return self._wait()

    def _ask(
        self, question: Question, use_answers: Callable[[list[Any]], None] | None = None
    ) -> None:
        """Ask all shares, once they have answered what they were asked before.

        ``use_answers`` is called with what they say, in their order, once all have answered.
        """
        self._wait()
        self._question = question
        self._use_answers = use_answers
        self._n_lines_due = len(self.record)
        for share in self._shares:
            share.has_answered = False
            share.answer = None
            self._give(share)

    def _give(self, share: ShareStatus) -> None:
        """Hand a share the lines that it lacks, the first ones if they are many."""
        first = share.n_lines_heard
        last = min(first + MAX_LINES_PER_TASK, self._n_lines_due)
        self._crew.give(
            Task(
                recipe=share.recipe,
                first=first,
                lines=self.record.lines(first, last),
                due=self._n_lines_due,
                question=self._question,
            )
        )

    def _wait(self) -> list[Any]:
        """Wait until all shares have answered; return what they say, in their order."""
        while not all(share.has_answered for share in self._shares):
            index, answer = self._crew.hear()
            self._take_answer(self._shares[index], answer)
        answers = [share.answer for share in self._shares]
        use_answers = self._use_answers
        self._use_answers = None  # so that whoever waits again does not use them twice
        if use_answers is not None:
            use_answers(answers)
        n_rounds_heard = self._n_lines_due // LINES_PER_ROUND
        self._progress(n_rounds_heard)
        return answers

    def _take_answer(self, share: ShareStatus, answer: Answer | Failure | None) -> None:
        """Take note of an answer, or of a worker's death; ask again where more is to be done."""
        name = f"share {share.recipe.index + 1} of {len(self._shares)}"
        if isinstance(answer, Failure):
            is_user_error = answer.kind == "UserError"
            reason = answer.error if is_user_error else f"{answer.kind}: {answer.error}"
            raise UserError(f"{name}: {reason}")
        if answer is None:
            share.deaths += 1
            if share.deaths == MAX_DEATHS_IN_A_ROW:
                times = f"{MAX_DEATHS_IN_A_ROW} times in a row"
                raise UserError(f"{name}: {DIED}, {times}; use more --workers")
        else:
            share.n_lines_heard = answer.n_lines_heard
            if answer.n_lines_heard == self._n_lines_due:
                share.has_answered = True
                share.answer = answer.content
                share.deaths = 0
                return
        self._give(share)

    def tables(self) -> Frames:
        """Return the tables that close the run, once the whole market knows of all agents."""
        market = self.model
        market.game = self._whole_game
        for cohort_index in range(len(market.game.seats)):
            self._join_cohort(cohort_index)
        market.bounds.join(
            [(list(share.cohorts), share.greatest_bounds) for share in self._closed_shares]
        )
        if market.journal.windows is not None:
            market.journal.windows.join([share.worst_windows for share in self._closed_shares])
        return super().tables()

    def _join_cohort(self, cohort_index: int) -> None:
        """Let a cohort of the whole market take over what became of its agents elsewhere."""
        parts = [
            share.cohorts[cohort_index]
            for share in self._closed_shares
            if cohort_index in share.cohorts
        ]
        if not parts:
            return
        seat = self.model.game.seats[cohort_index]
        tracker = self.model.tracker
        for part in parts:
            seat.cohort.ledger.join(part.rows, part.ledger)
            if tracker is None or part.followed_rows is None or part.followed_counts is None:
                continue
            if len(part.followed_rows):
                tracker.join(cohort_index, part.followed_rows, part.followed_counts)
        seat.comparison.join([part.comparison for part in parts])


def _rows_of_all(rows_of_conductor: Frames, shares: Sequence[Frames]) -> Frames:
    """Return the rows of all agents, by round and agent; the bounds of windows are in our own.

    ``rows_of_conductor`` has the tables of a chunk of the logs, as of the agents that are played
    here, and is changed in place; ``shares`` has those that agents elsewhere have rows in.
    """
    logs = [share["regret_log"] for share in shares if "regret_log" in share]
    windows = [share["windows"] for share in shares if "windows" in share]
    if logs:
        logs.append(rows_of_conductor["regret_log"])
        rows_of_conductor["regret_log"] = by_round_and_agent(logs)
    if windows:
        regrets_of_others = pd.concat(windows).sort_values(["first", "agent"], ignore_index=True)
        keys = {"agent", "first", "last"}
        columns = [column for column in regrets_of_others if column not in keys]
        is_elsewhere = rows_of_conductor["windows"]["agent"].isin(regrets_of_others["agent"])
        rows_of_conductor["windows"].loc[is_elsewhere, columns] = regrets_of_others[
            columns
        ].to_numpy()
    return rows_of_conductor


@contextmanager
def conductor_of(
    scenario: Scenario,
    options: Options,
    workers: int | None = None,
    scheduler: str | None = None,
    *,
    imports: tuple[str, ...] = (),
    warn: Callable[[str], Any] = lambda _: None,
) -> Iterator[Conductor]:
    """Yield who plays a scenario with all among whom its agents are shared out (``Cluster``).

    ``workers`` are shares, on a cluster elsewhere one per worker by default.
    """
    with closing(Cluster(workers, scheduler, imports, warn)) as cluster:
        n_shares = len(cluster.workers()) if workers is None else workers
        with closing(DaskCrew(cluster)) as crew:
            yield Conductor(scenario, crew, options, n_shares, imports=imports, warn=warn)
