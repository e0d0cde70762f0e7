"""The model's own logs: tables of rounds, row by row, handed on in chunks of bounded size.

``MarketModel`` adds every round. A full chunk, one frame per table, goes to the ``sink``; without a
sink the chunks stay in memory for the model's frames. docs/columns.md says what a row of each table
is.

What rounds add to a chunk, and what it makes of them, is in ``market.logs.chunk``.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import is_ours
from regretless.market.game.accounts import Accounts
from regretless.market.game.adversary_view import sums_of
from regretless.market.game.market import Market
from regretless.market.game.protocols import Payoff
from regretless.market.game.round import Block, Game
from regretless.market.logs.chunk import MARKET_TABLES, TABLES, Chunk, make_frame
from regretless.market.logs.logged_rounds import (
    LoggedBlock,
    LoggedRound,
    columns_of_forecasts,
    columns_of_rounds,
    without_ensembles,
)
from regretless.market.logs.sampling import Logged
from regretless.market.logs.user_columns import Columns, concatenate_columns, states
from regretless.market.logs.windows import Windows
from regretless.market.records import CERTAIN, Forecast, Mixture, Round

Sink = Callable[[dict[str, pd.DataFrame]], None]
CHUNK_ROWS = 200_000  # of the regret log, at most
CHUNK_ROUNDS = 512  # at most


class Journal(Checkpointable):
    """Collects rounds into tables; UserError if the adversary's payoff does not fit a cohort.

    Parameters
    ----------
    game : Game
        The game whose rounds are logged.
    logged : sequence of Logged
        Which agents of each cohort the regret log and the windows follow.
    log_every : int
        Rounds between two entries of the regret log, counted from the first.
    windows : Windows or None
    logs_every_round : bool
        Whether the rounds between two entries have rows in the other tables.

    Attributes
    ----------
    sink : callable or None
        Receives each full chunk, a frame per table.
    watchers : dict
        By table, what makes the rows of a logged round.
    """

    REMEMBERED = ("windows",)

    def __init__(
        self,
        game: Game,
        logged: Sequence[Logged],
        *,
        log_every: int,
        windows: Windows | None,
        logs_every_round: bool = True,
    ) -> None:
        self._game = game
        self._cohorts = game.cohorts
        self.log_every = log_every
        self.logs_every_round = logs_every_round
        self.logged = tuple(logged)
        self.windows = windows
        self.sink: Sink | None = None
        self.chunk_rounds = self._rounds_per_chunk()
        self._kept: list[Chunk] = []  # full chunks, where there is no sink
        self._open = Chunk(self._cohorts, self.logged, game.adversary.payoff)
        self.watchers: dict[str, Callable[[Round], Columns]] = {}
        if any(cohort.columns for cohort in self._cohorts):
            self.watchers["states"] = partial(states, self._cohorts, self.logged)
        self._blocks: Sequence[Block] = ()  # of the game when ``_logged_blocks`` was made
        self._logged_blocks: tuple[LoggedBlock, ...] = ()
        self.begin_columns_of_leader_and_market()

    def _rounds_per_chunk(self) -> int:
        """Return after how many rounds a chunk has about ``CHUNK_ROWS`` rows per agent's table.

        Agents who have not entered yet count, so that chunks stay short.
        """
        agents = sum(len(logged.ids) for logged in self.logged)
        rounds_between_rows = self.log_every
        if self.windows is not None:
            rounds_between_rows = min(self.log_every, self.windows.shortest)
        rounds = CHUNK_ROWS * rounds_between_rows // max(agents, 1)
        return max(1, min(CHUNK_ROUNDS, rounds))

    def begin_columns_of_leader_and_market(self) -> None:
        """Log the game's leader and market as they are now; they may just have been replaced.

        UserError if the leader's payoff does not fit a cohort.
        """
        self.flush()  # a chunk has columns of one leader and one market: of the former ones here
        self._payoff = self._game.adversary.payoff
        self._market = self._game.market
        self._leader_is_ours = is_ours(self._game.adversary.innermost.round_columns)
        self._market_is_ours = self._market is None or is_ours(self._market.extra_tables)
        self._open = Chunk(self._cohorts, self.logged, self._payoff)
        self.watchers.pop("accounts", None)
        if self._market is not None and self._market.accounts is not None:
            ids = np.concatenate([logged.ids for logged in self.logged])
            rows = ids - 1  # agents are numbered from 1
            self.watchers["accounts"] = partial(account_rows, self._market.accounts, ids, rows)
        if self._payoff is not None:
            self._check_payoff(self._payoff)

    def _check_payoff(self, payoff: Payoff) -> None:
        """Raise UserError if a payoff cannot be computed of the agents of some cohort."""
        for cohort in self._cohorts:
            first_loss = cohort.loss[:1]
            some_outcome = np.zeros((1, cohort.loss.outcomes))
            try:
                payoff.values(first_loss, some_outcome)
            except ValueError as error:
                location = f"the adversary's payoff, cohort.{cohort.name}"
                raise UserError(f"{location}: {error}") from error

    def part(self, game: Game, agents: Mapping[int, slice]) -> "Journal":
        """Return the journal of a part of the cohorts.

        ``game`` is the part's game, and ``agents`` has, by the index of a cohort here, which of its
        agents belong to the part.
        """
        logged = []
        for (cohort_index, agents_of_part), cohort in zip(
            agents.items(), game.cohorts, strict=True
        ):
            logged_of_cohort = self.logged[cohort_index]
            logged.append(logged_of_cohort.part(agents_of_part, cohort.row_of))
        windows = None
        if self.windows is not None:
            windows = Windows(game.cohorts, logged, self.windows.spans)
        part = Journal(
            game,
            logged,
            log_every=self.log_every,
            logs_every_round=self.logs_every_round,
            windows=windows,
        )
        part.chunk_rounds = self.chunk_rounds
        return part

    @property
    def at_chunk_end(self) -> bool:
        """Whether everything so far has been handed on."""
        return self._open.n_rounds == 0

    def add(self, played: Round) -> None:
        """Append a round; hand the chunk on when it is full."""
        is_entry = played.number % self.log_every == 0
        if not is_entry and not self.logs_every_round:
            self.add_unlogged(played.number)
            return
        chunk = self._open
        chunk.rounds.append(self._as_logged(played))
        if self._market is not None:
            for table, columns in self._market.extra_tables().items():
                kept_columns = columns if self._market_is_ours else _copied(columns)
                chunk.add_rows(table, played.number, kept_columns)
        if is_entry:
            for play, decision, losses in zip(
                chunk.plays, played.decisions, played.losses, strict=True
            ):
                if decision is not None and losses is not None:  # somebody was there
                    play.add(played.number, decision, losses)
            for table, make_rows in self.watchers.items():
                chunk.add_rows(table, played.number, make_rows(played))
        if self.windows is not None:
            chunk.add_windows(self.windows.add(played.number))
        chunk.n_rounds += 1
        if chunk.n_rounds >= self.chunk_rounds:
            self.flush()

    def add_unlogged(self, round_index: int) -> None:
        """Take note of a round that has no rows, but may end a window."""
        if self.windows is None:
            return
        parts = self.windows.add(round_index)
        if parts:
            self._open.add_windows(parts)
            self._open.n_rounds += 1

    def unlogged_rounds(self, round_index: int) -> int:
        """Return how many rounds from this one on have no rows, up to the end of a window.

        The last of them may be one with which a window ends, or after which one begins.
        """
        if self.logs_every_round:
            return 0
        rounds = -round_index % self.log_every
        if self.windows is not None:
            for first, last in self.windows.spans:
                for event in (first - 1, last):
                    if event >= round_index:
                        rounds = min(rounds, event - round_index + 1)
        return rounds

    def flush(self) -> None:
        """Hand the open rows on, if there are any."""
        chunk = self._open
        if chunk.n_rounds == 0:
            return
        self._open = Chunk(self._cohorts, self.logged, self._payoff)
        if self.sink is not None:
            self.sink({table: chunk.frame(table) for table in TABLES})
        else:
            chunk.close()
            self._kept.append(chunk)

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of what is in memory.

        Before the first round, too, it has the columns that are known by then: all, but for
        measures, and what a market of a user's own shows.
        """
        parts = [chunk.frame(table) for chunk in [*self._kept, self._open]]
        parts_with_rows = [part for part in parts if len(part)]
        if parts_with_rows:
            return pd.concat(parts_with_rows, ignore_index=True)
        parts_with_columns = [part for part in parts if len(part.columns)]
        if parts_with_columns:
            return parts_with_columns[0]
        return make_frame(self._columns_without_rows(table))

    def _columns_without_rows(self, table: str) -> Columns:
        """Return the columns of a table in which no round is, as far as they are known."""
        columns: Columns = {}
        if table == "rounds":
            columns = columns_of_rounds([self._imagined_round()], self._payoff)
        elif table == "forecasts":
            columns = columns_of_forecasts([self._imagined_round()])
        elif table == "regret_log":
            columns = concatenate_columns([play.columns() for play in self._open.plays])
        elif table == "windows" and self.windows is not None:
            columns = self.windows.columns_without_rows()
        elif table == "accounts" and self._market is not None and self._market.accounts is not None:
            nobody = np.zeros(0, dtype=np.intp)
            columns = {"round": nobody, "agent": nobody} | self._market.accounts.columns(nobody)
        elif table in MARKET_TABLES and self._market is not None:
            columns = self._columns_of_market_table(table, self._market)
        return {name: values[:0] for name, values in columns.items()}

    @staticmethod
    def _columns_of_market_table(table: str, market: Market) -> Columns:
        """Return a market's own table before it was cleared; nothing of a user's own market."""
        columns = market.extra_tables().get(table) if is_ours(market.extra_tables) else None
        if not columns:
            return {}
        row_count = len(next(iter(columns.values())))
        return {"round": np.zeros(row_count, dtype=np.intp), **columns}

    def _market_columns(self) -> dict[str, Array]:
        """Return a copy of what the market shows of the last clearing, NaN before the first."""
        if self._market is None:
            return {}
        return {name: np.array(values) for name, values in self._market.last.items()}

    def _imagined_round(self) -> LoggedRound:
        """Return a round that has the columns of every round, and numbers that mean nothing."""
        adversary = self._game.adversary
        forecasts = []
        for block in self._game.blocks:
            if block.forecaster.is_silent:
                mixture = Mixture(np.zeros((1, 0)), CERTAIN)
            else:
                points = np.zeros((1, block.basis.size))
                mixture = Mixture(points, CERTAIN, labels=block.basis.inverse(points))
            forecasts.append(Forecast(mixture, 0))
        adversary_columns: Mapping[str, Any] = {}
        if is_ours(adversary.innermost.round_columns):
            adversary_columns = adversary.innermost.round_columns(0)
        return LoggedRound(
            index=0,
            context=adversary.context_for_tables(),
            outcome=np.zeros(adversary.outcomes),
            adversary_columns=adversary_columns,
            market_columns=self._market_columns(),
            blocks=self._blocks_as_logged(),
            forecasts=tuple(forecasts),
            sums={cohort.name: np.zeros((2, 2 + cohort.loss.actions)) for cohort in self._cohorts},
        )

    def marked(self, agents: pd.DataFrame) -> pd.DataFrame:
        """Add a column ``logged`` to an agents table, where not everybody is logged."""
        if not self.samples:
            return agents
        logged_ids = np.concatenate([logged.ids for logged in self.logged])
        return agents.assign(logged=agents["agent"].isin(logged_ids))

    @property
    def samples(self) -> bool:
        """Whether a sample of the agents is logged."""
        return any(isinstance(logged.agents, np.ndarray) for logged in self.logged)

    def _as_logged(self, played: Round) -> LoggedRound:
        """Return what the tables of rounds and forecasts show of a round.

        Arrays that later rounds may overwrite are copied.
        """
        sums = None
        if self._payoff is not None:
            sums = sums_of(self._payoff, self._cohorts, played)
        adversary_columns = self._game.adversary.innermost.round_columns(played.number)
        if not self._leader_is_ours:
            adversary_columns = _copied(adversary_columns)
        return LoggedRound(
            index=played.number,
            context=played.context,
            outcome=np.array(played.outcome),
            adversary_columns=adversary_columns,
            market_columns=self._market_columns(),
            blocks=self._blocks_as_logged(),
            forecasts=without_ensembles(played.forecasts),
            sums=sums,
        )

    def _blocks_as_logged(self) -> tuple[LoggedBlock, ...]:
        """Return the blocks of the game as they are now: others once a forecaster is replaced."""
        blocks = self._game.blocks
        if blocks is not self._blocks:
            self._blocks = blocks
            self._logged_blocks = tuple(
                [LoggedBlock(block.name, not block.forecaster.is_silent) for block in blocks]
            )
        return self._logged_blocks


def _copied(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of columns of a user's own player, who may write into them later."""
    return {name: deepcopy(values) for name, values in columns.items()}


def account_rows(accounts: Accounts, ids: Integers, rows: Indices, played: Round) -> Columns:
    """Return what the logged agents own, by their numbers and their rows of the accounts (n,).

    There are no columns after a round in which nobody was there.
    """
    if not any(played.decisions):
        return {}
    return {"agent": ids, **accounts.columns(rows)}
