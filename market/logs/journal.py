"""The model's own logs: tables of rounds, row by row, handed on in chunks of bounded size.

``MarketModel`` adds every round. A full chunk, one frame per table, goes to the ``sink``; without a
sink the chunks stay in memory for the model's frames. docs/columns.md says what a row of each table
is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import earned, per_agent
from regretless.market.game.protocols import Payoff
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import present_cohorts
from regretless.market.logs.sampling import Logged
from regretless.market.logs.user_columns import Columns, concatenate_columns, states
from regretless.market.logs.windows import Windows
from regretless.market.records import Decision, Forecast, Round
from regretless.market.regret.ledger import Ledger

Sink = Callable[[dict[str, pd.DataFrame]], None]
CHUNK_ROWS = 200_000  # of the regret log, at most
CHUNK_ROUNDS = 512  # at most
MARKET_TABLES = ("trades", "quotes")  # have rows of every round
TABLES = (
    *("rounds", "forecasts", "regret_log", "windows", "accounts", "states", "measures"),
    *MARKET_TABLES,
)
LOGGED_MEASURES = ("external", "swap", "decision_swap")


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
        # The columns of the rounds since the last chunk, and the frames of the chunks before it.
        self._open: dict[str, list[Columns]] = {table: [] for table in TABLES}
        self._kept: dict[str, list[pd.DataFrame]] = {table: [] for table in TABLES}
        self._open_rounds = 0
        self.watchers: dict[str, Callable[[Round], Columns]] = {
            "regret_log": self._regret_rows,
            "accounts": self._account_rows,
            "states": partial(states, self._cohorts, self.logged),
        }
        self.add_columns_of_leader_and_market()

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

    def add_columns_of_leader_and_market(self) -> None:
        """Log the game's leader and market as they are now; they may just have been replaced.

        UserError if the leader's payoff does not fit a cohort.
        """
        self._payoff = self._game.adversary.payoff
        self._market = self._game.market
        if self._payoff is not None:
            self._try_payoff(self._payoff)
        self.flush()  # a chunk has columns of one leader and one market

    def _try_payoff(self, payoff: Payoff) -> None:
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
        return self._open_rounds == 0

    def add(self, played: Round) -> None:
        """Append a round; hand the chunk on when it is full."""
        is_entry = played.number % self.log_every == 0
        if not is_entry and not self.logs_every_round:
            self.add_unlogged(played.number)
            return
        tables: dict[str, Mapping[str, NDArray[Any]]] = {}
        if self._market is not None:
            tables |= self._market.extra_tables()
        tables["rounds"] = self._round_row(played)
        tables["forecasts"] = self._forecast_rows(played)
        if is_entry:
            for table, make_rows in self.watchers.items():
                tables[table] = make_rows(played)
        for table, columns in tables.items():
            row_count = len(next(iter(columns.values()), ()))
            # A market's table keeps its columns and their types although nothing was traded.
            is_first_of_market = table in MARKET_TABLES and columns and not self._open[table]
            if row_count or is_first_of_market:
                round_column = np.full(row_count, played.number)
                self._open[table].append({"round": round_column, **columns})
        if self.windows is not None:
            self._open["windows"] += self.windows.add(played.number)
        self._open_rounds += 1
        if self._open_rounds >= self.chunk_rounds:
            self.flush()

    def add_unlogged(self, round_index: int) -> None:
        """Take note of a round that has no rows, but may end a window."""
        if self.windows is None:
            return
        parts = self.windows.add(round_index)
        if parts:
            self._open["windows"] += parts
            self._open_rounds += 1

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
        if self._open_rounds == 0:
            return
        chunk = {table: _make_frame(self._open[table]) for table in TABLES}
        self._open = {table: [] for table in TABLES}
        self._open_rounds = 0
        if self.sink is not None:
            self.sink(chunk)
        else:
            for table, frame in chunk.items():
                self._kept[table].append(frame)

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of what is in memory."""
        parts = list(self._kept[table])
        if self._open[table]:
            parts.append(_make_frame(self._open[table]))
        parts_with_rows = [part for part in parts if len(part)]
        if parts_with_rows:
            return pd.concat(parts_with_rows, ignore_index=True)
        parts_with_columns = [part for part in parts if len(part.columns)]
        if parts_with_columns:
            return parts_with_columns[0]
        return pd.DataFrame()

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

    def _round_row(self, played: Round) -> Columns:
        row: dict[str, Any] = {}
        if played.context.index is not None:
            index_name, index_value = played.context.index
            row[index_name] = index_value
        row |= _numbered("y", played.outcome)
        row |= _numbered("x", played.context.shown)
        if self._market is not None:
            row |= self._market.columns()
        certificates = [
            forecast.certificate
            for forecast in played.forecasts
            if forecast.certificate is not None
        ]
        row["certificate"] = max(certificates, default=np.nan)
        row["atoms"] = sum(len(forecast.mixture.weights) for _, forecast in self._heard(played))
        if self._payoff is not None:
            cohort_payoffs, agents = earned(self._payoff, self._cohorts, played)
            row["leader_payoff"] = per_agent(cohort_payoffs, agents)
            if len(cohort_payoffs) > 1:
                row |= _numbered("leader_payoff", cohort_payoffs)
        return {name: np.atleast_1d(value) for name, value in row.items()}

    def _forecast_rows(self, played: Round) -> Columns:
        """Return a row per block and atom of its mixture; shorter predictions end in NaN."""
        heard = list(self._heard(played))
        if not heard:
            return {}
        width = max(forecast.statistics.size for _, forecast in heard)
        has_labels = all(forecast.mixture.labels is not None for _, forecast in heard)
        parts = []
        for block, forecast in heard:
            parts.append(_atom_rows(block.name, forecast, width=width, has_labels=has_labels))
        return concatenate_columns(parts)

    def _heard(self, played: Round) -> Iterator[tuple[Block, Forecast]]:
        """Yield the blocks whose forecast somebody may hear, each with that of the round."""
        for block, forecast in zip(self._game.blocks, played.forecasts, strict=True):
            if not block.forecaster.is_silent:
                yield block, forecast

    def _regret_rows(self, played: Round) -> Columns:
        parts = []
        for cohort_index, cohort, decision, losses in present_cohorts(self._cohorts, played):
            logged = self.logged[cohort_index]
            logs_all = isinstance(logged.rows, slice)
            ledger = cohort.ledger if logs_all else cohort.ledger.excerpt(logged.rows)
            parts.append(_agent_rows(logged, ledger, decision, losses))
        return concatenate_columns(parts)

    def _account_rows(self, played: Round) -> Columns:
        if self._market is None or self._market.accounts is None or not any(played.decisions):
            return {}
        ids = np.concatenate([logged.ids for logged in self.logged])
        return {"agent": ids} | self._market.accounts.columns(ids - 1)


def _numbered(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Return values as columns ``name_0``, ``name_1`` and so on."""
    return {f"{name}_{i}": value for i, value in enumerate(values)}


def _make_frame(parts: Sequence[Columns]) -> pd.DataFrame:
    """Put parts of a table together as a frame; text columns keep their type without rows.

    Of an empty array of objects pandas cannot tell that its values would have been text.
    """
    frame = pd.DataFrame(concatenate_columns(parts))
    if len(frame):
        return frame
    text_columns = [name for name in frame if frame[name].dtype == object]
    return frame.astype(dict.fromkeys(text_columns, "str"))


def _atom_rows(block: str, forecast: Forecast, *, width: int, has_labels: bool) -> Columns:
    """Return a row per atom of one block's mixture."""
    mixture = forecast.mixture
    atoms = np.arange(len(mixture.weights))
    coordinates = np.full((width, len(atoms)), np.nan)
    coordinates[: mixture.points.shape[1]] = mixture.points.T
    columns: Columns = {
        "block": np.array([block] * len(atoms), dtype=object),
        "atom": atoms,
        "weight": mixture.weights,
        "drawn": atoms == forecast.index,
    }
    columns |= _numbered("p", coordinates)
    if has_labels and mixture.labels is not None:
        columns |= _numbered("label", mixture.labels.T)
    return columns


def _agent_rows(logged: Logged, ledger: Ledger, decision: Decision, losses: Array) -> Columns:
    """Return a row per logged agent who was present: action, loss, regrets so far.

    ``ledger`` has the logged rows alone, ``losses`` (K, A) are those of all rows.
    """
    strategies = decision.probabilities[logged.rows]
    expected_losses = np.einsum("ka,ka->k", strategies, losses[logged.rows])
    columns: Columns = {
        "agent": logged.ids,
        "action": decision.actions[logged.agents],
        "loss": expected_losses[logged.row_of],
    }
    for measure, regret in ledger.regrets(LOGGED_MEASURES).items():
        if regret is None:
            columns[f"{measure}_regret"] = np.full(len(logged.ids), np.nan)
        else:
            columns[f"{measure}_regret"] = regret[logged.row_of]
    is_present = columns["action"] >= 0
    if is_present.all():
        return columns
    return {name: values[is_present] for name, values in columns.items()}
