"""A share: a part of the agents of every cohort that can be shared out, played in a worker.

It is cut out of the whole market. What its agents hear is told line by line (``record``); what they
do, what became of them and their rows in the logs it says when it is asked.
"""

import json
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.own_code import in_round
from regretless.market.game.adversary_view import summed
from regretless.market.game.protocols import Adversary, Cohort, Forecaster
from regretless.market.game.round import Block, Game, decide
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import validated
from regretless.scenarios.distributed.division import divide
from regretless.scenarios.distributed.record import LINES_PER_ROUND, read_round
from regretless.scenarios.imports import import_modules

Frames = dict[str, pd.DataFrame]
TABLES_OF_AGENTS = ("regret_log", "windows")  # streamed ones that agents have rows in
CHECKPOINT_PAUSE = 50.0  # times what a checkpoint takes pass before the next


@dataclass(frozen=True)
class Recipe:
    """What a share is built from, as plain values.

    Attributes
    ----------
    run : str
        Tells runs apart in a worker that serves several.
    config : dict
        The resolved scenario.
    log_every : int or None
        Rounds between two entries of the regret log.
    imports : tuple of str
        The user's modules.
    folder : str
        Where checkpoints go, if the worker sees it.
    n_shares, index : int
        Which share it is, of how many, counted from 0.
    """

    run: str
    config: dict[str, Any]
    log_every: int | None
    imports: tuple[str, ...]
    folder: str
    n_shares: int
    index: int


@dataclass(frozen=True, eq=False)
class ClosedCohort:
    """What became of the agents that a share has of one cohort.

    Attributes
    ----------
    rows : array (k,)
        Their rows in the whole cohort.
    ledger : mapping
        The state of a ledger that has these rows alone.
    comparison : mapping
        The state of their comparison with the models.
    followed_rows, followed_counts : array (j,), array (j, A, m)
        The rows whose exploitability is followed, and how often each chose each action at each
        outcome; None where nobody is followed.
    """

    rows: Indices
    ledger: Mapping[str, Any]
    comparison: dict[str, Any]
    followed_rows: Indices | None
    followed_counts: Array | None


@dataclass(frozen=True, eq=False)
class ClosedShare:
    """What became of a share's agents, which the whole market takes over.

    Attributes
    ----------
    cohorts : dict
        By the place of each cohort in the whole game.
    greatest_bounds : array
        What the log of bounds has kept, in the order of these cohorts.
    worst_windows : dict
        The worst windows, by measure; nothing where there are no windows.
    """

    cohorts: dict[int, ClosedCohort]
    greatest_bounds: Array
    worst_windows: dict[str, Any]


class Absent(Checkpointable, Adversary, Forecaster):
    """Stands for the adversary and all forecasters, whom nobody asks: what they said is told."""

    def __init__(self, outcomes: int) -> None:
        self.outcomes = outcomes

    def mixture(self, *_: Any, **__: Any) -> Any:
        """Say nothing, and learn nothing."""

    commit = update = mixture


class Share:
    """A share that has heard nothing yet; its questions are methods without arguments.

    UserError if a cohort's losses do not come out the same for a part of its agents.
    """

    def __init__(self, recipe: Recipe) -> None:
        import_modules(_not_imported(recipe.imports))
        scenario = Scenario(validated(deepcopy(recipe.config), origin=Path()))
        market = scenario.build(log_every=recipe.log_every)
        self.file = Path(recipe.folder) / f"shard-{recipe.n_shares}-{recipe.index}.npz"
        self._next_save = 0.0  # by the monotonic clock
        self._model_predictions: list[Array] = []  # of each block's models, in this round
        self._current: Round | None = None  # the round in which all have decided
        self._last: Round | None = None  # the one before
        self._last_chunk: deque[Frames] = deque(maxlen=1)  # of the logs
        agents_of: dict[int, slice] = {}  # by the place of their cohort
        self._rows_of: dict[int, Indices] = {}  # those that they need, too
        for cohort_index in divide(scenario.resolved, market.game).places:
            seat = market.game.seats[cohort_index]
            agents = _agents_of_share(len(seat.cohort.row_of), recipe)
            if agents.start < agents.stop:
                agents_of[cohort_index] = agents
                self._rows_of[cohort_index] = _rows_needed(seat, agents)
        self._cut_out(market, agents_of)

    def _cut_out(self, market: MarketModel, agents_of: dict[int, slice]) -> None:
        """Take these agents, and the rows they need, out of the whole market."""
        full_game = market.game
        rows_of = self._rows_of
        absent = Absent(full_game.adversary.outcomes)
        blocks = [Block(block.name, block.basis, absent, block.relay) for block in full_game.blocks]
        seats = [
            self._seat_of_part(full_game.seats[cohort_index], rows_of[cohort_index], agents)
            for cohort_index, agents in agents_of.items()
        ]
        game = Game(blocks, seats, adversary=absent, seed=0)
        tracker = market.tracker
        self.model = MarketModel(
            game,
            [market.guarantees[cohort_index].part(rows) for cohort_index, rows in rows_of.items()],
            seed=0,
            rounds=market.rounds,
            tracker=None if tracker is None else tracker.part(game.cohorts, rows_of),
        )
        self.model.journal = market.journal.part(game, agents_of)
        self.model.stream_logs_to(self._last_chunk.append)
        settling: Any = full_game.market
        self._market = None if settling is None else settling.part(game.cohorts, rows_of)
        self._payoff = full_game.adversary.payoff

    def _seat_of_part(self, seat: Seat, rows: Indices, agents: slice) -> Seat:
        """Seat a part of a cohort as the whole is seated."""
        cohort: Cohort = seat.cohort.part(rows, agents)
        comparison: Any = seat.comparison
        if comparison is not NOT_COMPARED:
            suggest = comparison.suggest.at(rows)
            block = cohort.block
            comparison = comparison.part(
                rows, cohort.counts, lambda: suggest(self._model_predictions[block])
            )
        return Seat(cohort, seat.attendance.of(rows), comparison=comparison)

    @property
    def n_lines_heard(self) -> int:
        """How many lines of the record it was told."""
        return LINES_PER_ROUND * self.model.played + (self._current is not None)

    def hear(self, line: bytes) -> None:
        """Decide in a round that begins, or play it to its end."""
        content = json.loads(line)
        model = self.model
        if self._current is not None:
            outcome = np.array(content["outcome"])
            self._last = model.conclude(replace(self._current, outcome=outcome))
            self._current = None
            return
        if model.played and model.journal.at_chunk_end:  # whose rows have been put together
            self._save()
        drawn, self._model_predictions = read_round(content, model.game)
        with in_round(model.played):
            self._current = decide(model.game, drawn)

    def _save(self) -> None:
        """Keep a checkpoint if there has been none for long, where the folder is seen."""
        start = time.monotonic()
        if start < self._next_save or not self.file.parent.is_dir():
            return
        with suppress(OSError):  # no room: the rounds will be played again
            checkpoint.save(self.file, self.model.state())
        end = time.monotonic()
        self._next_save = end + CHECKPOINT_PAUSE * (end - start)

    def nothing(self) -> None:
        """Say nothing."""

    def market_load(self) -> Array:
        """Say what decisions come to in the market."""
        if self._market is None or self._current is None:
            raise ValueError("there is no market, or no round in which all have decided")
        return np.asarray(self._market.aggregate(self._current.decisions))

    def sums(self) -> dict[str, Array]:
        """Say what the adversary is told of the last round."""
        if self._last is None:
            raise ValueError("no round has been played to its end")
        return summed(self._payoff, self.model.game.cohorts, self._last)

    def log_rows(self) -> Frames:
        """Say what the last chunk of the logs has of its agents."""
        self.model.journal.flush()
        (chunk,) = self._last_chunk
        return {name: chunk[name] for name in TABLES_OF_AGENTS if len(chunk[name])}

    def regret_log(self) -> pd.DataFrame:
        """Say what the regret log has of its agents since the last chunk of the logs."""
        return self.model.journal.frame("regret_log")

    def close(self) -> ClosedShare:
        """Say what became of its agents."""
        model = self.model
        windows = model.journal.windows
        return ClosedShare(
            cohorts={
                cohort_index: self._close_cohort(share_index)
                for share_index, cohort_index in enumerate(self._rows_of)
            },
            greatest_bounds=model.bounds.state()["logged_rows"],
            worst_windows={} if windows is None else windows.worst,
        )

    def _close_cohort(self, own_place: int) -> ClosedCohort:
        """Say what became of the agents of a cohort, by its place among those of the share."""
        seat = self.model.game.seats[own_place]
        whole_rows = list(self._rows_of.values())[own_place]
        rows_of_agents = np.unique(seat.cohort.row_of)  # without those that they only need
        ledger = {}
        for name, value in seat.cohort.ledger.state().items():
            is_by_row = np.ndim(value) > 0 and len(value) == len(whole_rows)
            ledger[name] = value[rows_of_agents] if is_by_row else value
        followed_rows = None
        followed_counts = None
        tracker = self.model.tracker
        if tracker is not None:
            followed_rows = whole_rows[tracker.rows[own_place]]
            followed_counts = tracker.counts(own_place)
        return ClosedCohort(
            rows=whole_rows[rows_of_agents],
            ledger=ledger,
            comparison=seat.comparison.part_state(whole_rows),
            followed_rows=followed_rows,
            followed_counts=followed_counts,
        )


def _not_imported(modules: tuple[str, ...]) -> list[str]:
    return [module for module in modules if module.removesuffix(".py") not in sys.modules]


def _agents_of_share(n_agents: int, recipe: Recipe) -> slice:
    """Return which agents of a cohort a share has: about as many as every other share."""
    first = n_agents * recipe.index // recipe.n_shares
    after_last = n_agents * (recipe.index + 1) // recipe.n_shares
    return slice(first, after_last)


def _rows_needed(seat: Seat, agents: slice) -> Indices:
    """Return the rows of a cohort that some of its agents need, their own among them."""
    always_needed = seat.cohort.rows_of_every_part()
    rows = [always_needed, seat.attendance.watch(), seat.cohort.row_of[agents]]
    return np.unique(np.concatenate(rows))
