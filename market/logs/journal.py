"""The model's own logs: tables of rounds, row by row, handed on in chunks of bounded size.

``MarketModel`` adds every round. A full chunk, one frame per table, goes to the ``sink``; without a
sink the chunks stay in memory for the model's frames. docs/columns.md says what a row of each table
is.

A round adds no more than what must be known of it at once: of ``rounds``, ``forecasts`` and
``regret_log`` the arrays are kept as they come, and made into columns when a frame is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import earned, per_agent
from regretless.market.game.protocols import Payoff
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import present_cohorts
from regretless.market.logs.sampling import Logged
from regretless.market.logs.user_columns import Columns, concatenate_columns, states
from regretless.market.logs.windows import Windows
from regretless.market.records import Forecast, Round

Sink = Callable[[dict[str, pd.DataFrame]], None]
CHUNK_ROWS = 200_000  # of the regret log, at most
CHUNK_ROUNDS = 512  # at most
MARKET_TABLES = ("trades", "quotes", "sales")  # have rows of every round
TABLES = (
    *("rounds", "forecasts", "regret_log", "windows", "accounts", "states", "measures"),
    *MARKET_TABLES,
)
LOGGED_MEASURES = ("external", "swap", "decision_swap")


@dataclass(frozen=True, eq=False)
class _BroadcastForecast:
    """What one block broadcast in a round, as the table of forecasts shows it."""

    round_index: int
    block: str
    points: Array  # (m, n)
    weights: Array  # (m,)
    labels: Array | None  # (m, d)
    drawn_atom: int


@dataclass(frozen=True, eq=False)
class _LoggedPlay:
    """What the logged agents of one cohort did in a round, and their regrets so far.

    The k rows are those of the ledger that score the n agents, ``logged.row_of`` (n,).
    """

    round_index: int
    logged: Logged
    actions: Indices  # (n,), -1 for who was absent
    losses: Array  # (k,), of the rows' mixed strategies
    regrets: dict[str, Array | None]  # by measure, per round (k,); None for one that is not kept


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
        # What is known of the rounds since the last chunk: rows of the table of rounds, forecasts,
        # logged play, and columns of all other tables; and the frames of the chunks before it.
        self._open_rows: list[dict[str, Any]] = []
        self._open_forecasts: list[_BroadcastForecast] = []
        self._open_play: list[_LoggedPlay] = []
        self._open: dict[str, list[Columns]] = {table: [] for table in TABLES}
        self._kept: dict[str, list[pd.DataFrame]] = {table: [] for table in TABLES}
        self._open_rounds = 0
        self.watchers: dict[str, Callable[[Round], Columns]] = {
            "accounts": self._account_rows,
            "states": partial(states, self._cohorts, self.logged),
        }
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
        self._payoff = self._game.adversary.payoff
        self._market = self._game.market
        if self._payoff is not None:
            self._check_payoff(self._payoff)
        self.flush()  # a chunk has columns of one leader and one market

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
        self._open_rows.append(self._round_row(played))
        self._open_forecasts.extend(self._forecasts_of_round(played))
        if is_entry:
            self._open_play.extend(self._logged_play(played))
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
        chunk = {table: _make_frame(self._open_columns(table)) for table in TABLES}
        self._open = {table: [] for table in TABLES}
        self._open_rows = []
        self._open_forecasts = []
        self._open_play = []
        self._open_rounds = 0
        if self.sink is not None:
            self.sink(chunk)
        else:
            for table, frame in chunk.items():
                self._kept[table].append(frame)

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of what is in memory."""
        parts = list(self._kept[table])
        open_columns = self._open_columns(table)
        if open_columns:
            parts.append(_make_frame(open_columns))
        parts_with_rows = [part for part in parts if len(part)]
        if parts_with_rows:
            return pd.concat(parts_with_rows, ignore_index=True)
        parts_with_columns = [part for part in parts if len(part.columns)]
        if parts_with_columns:
            return parts_with_columns[0]
        return pd.DataFrame()

    def _open_columns(self, table: str) -> Sequence[Columns]:
        """Return the columns of a table since the last chunk, in parts below one another."""
        if table == "rounds" and self._open_rows:
            return [_columns_of_rows(self._open_rows)]
        if table == "forecasts" and self._open_forecasts:
            return [_columns_of_forecasts(self._open_forecasts)]
        if table == "regret_log":
            columns = _columns_of_play(self._open_play)
            return [columns] if columns else []
        return self._open[table]

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

    def _round_row(self, played: Round) -> dict[str, Any]:
        """Return the row of a round: a number for each column, and arrays.

        An array (c,) under the name ``y_`` is the columns ``y_0``, ``y_1`` and so on.
        """
        row: dict[str, Any] = {"round": played.number}
        if played.context.index is not None:
            index_name, index_value = played.context.index
            row[index_name] = index_value
        row["y_"] = np.array(played.outcome)
        row["x_"] = np.array(played.context.shown)
        row |= self._game.adversary.innermost.round_columns(played.number)
        if self._market is not None:
            for name, values in self._market.last.items():
                row[f"{name}_"] = np.array(values)
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
                row["leader_payoff_"] = np.array(cohort_payoffs)
        return row

    def _forecasts_of_round(self, played: Round) -> list[_BroadcastForecast]:
        """Return what each block broadcast; labels only where all blocks have them."""
        heard = list(self._heard(played))
        has_labels = all(forecast.mixture.labels is not None for _, forecast in heard)
        broadcast = []
        for block, forecast in heard:
            mixture = forecast.mixture
            broadcast.append(
                _BroadcastForecast(
                    round_index=played.number,
                    block=block.name,
                    points=mixture.points,
                    weights=mixture.weights,
                    labels=mixture.labels if has_labels else None,
                    drawn_atom=forecast.index,
                )
            )
        return broadcast

    def _heard(self, played: Round) -> Iterator[tuple[Block, Forecast]]:
        """Yield the blocks whose forecast somebody may hear, each with that of the round."""
        for block, forecast in zip(self._game.blocks, played.forecasts, strict=True):
            if not block.forecaster.is_silent:
                yield block, forecast

    def _logged_play(self, played: Round) -> Iterator[_LoggedPlay]:
        """Yield what the logged agents of every cohort that was there did."""
        for cohort_index, cohort, decision, losses in present_cohorts(self._cohorts, played):
            logged = self.logged[cohort_index]
            ledger = cohort.ledger
            if not isinstance(logged.rows, slice):
                ledger = ledger.excerpt(logged.rows)
            strategies = decision.probabilities[logged.rows]
            yield _LoggedPlay(
                round_index=played.number,
                logged=logged,
                actions=np.array(decision.actions[logged.agents]),
                losses=np.einsum("ka,ka->k", strategies, losses[logged.rows]),
                regrets=ledger.regrets(LOGGED_MEASURES),
            )

    def _account_rows(self, played: Round) -> Columns:
        if self._market is None or self._market.accounts is None or not any(played.decisions):
            return {}
        ids = np.concatenate([logged.ids for logged in self.logged])
        return {"agent": ids} | self._market.accounts.columns(ids - 1)


def _numbered(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """Return values as columns, for the name ``y_`` as ``y_0``, ``y_1`` and so on."""
    return {f"{name}{i}": value for i, value in enumerate(values)}


def _make_frame(parts: Sequence[Columns]) -> pd.DataFrame:
    """Put parts of a table together as a frame; text columns keep their type without rows.

    Of an empty array of objects pandas cannot tell that its values would have been text.
    """
    frame = pd.DataFrame(concatenate_columns(parts))
    if len(frame):
        return frame
    text_columns = [name for name in frame if frame[name].dtype == object]
    return frame.astype(dict.fromkeys(text_columns, "str"))


def _columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> Columns:
    """Return rows of the table of rounds as columns; arrays (c,) become c numbered ones.

    Every row has the names of the first.
    """
    columns: Columns = {}
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= _numbered(name, values.T)
    return columns


def _columns_of_forecasts(forecasts: Sequence[_BroadcastForecast]) -> Columns:
    """Return a row per round, block and atom; predictions of fewer numbers end in NaN."""
    atoms_per_forecast = [len(forecast.weights) for forecast in forecasts]
    width = max(forecast.points.shape[1] for forecast in forecasts)
    coordinates = np.full((width, sum(atoms_per_forecast)), np.nan)
    first = 0
    for forecast in forecasts:
        last = first + len(forecast.weights)
        coordinates[: forecast.points.shape[1], first:last] = forecast.points.T
        first = last
    round_indices = [forecast.round_index for forecast in forecasts]
    blocks = np.array([forecast.block for forecast in forecasts], dtype=object)
    drawn_atoms = [forecast.drawn_atom for forecast in forecasts]
    atoms = np.concatenate([np.arange(count) for count in atoms_per_forecast])
    columns: Columns = {
        "round": np.repeat(round_indices, atoms_per_forecast),
        "block": np.repeat(blocks, atoms_per_forecast),
        "atom": atoms,
        "weight": np.concatenate([forecast.weights for forecast in forecasts]),
        "drawn": atoms == np.repeat(drawn_atoms, atoms_per_forecast),
    }
    columns |= _numbered("p_", coordinates)
    labels = [forecast.labels for forecast in forecasts if forecast.labels is not None]
    if len(labels) == len(forecasts):
        columns |= _numbered("label_", np.concatenate(labels).T)
    return columns


def _columns_of_play(plays: Sequence[_LoggedPlay]) -> Columns:
    """Return a row per round and logged agent who was present: action, loss, regrets so far.

    There are no columns where nobody was.
    """
    if not any((play.actions >= 0).any() for play in plays):
        return {}
    agents_per_play = [len(play.actions) for play in plays]
    round_indices = [play.round_index for play in plays]
    columns: Columns = {
        "round": np.repeat(round_indices, agents_per_play),
        "agent": np.concatenate([play.logged.ids for play in plays]),
        "action": np.concatenate([play.actions for play in plays]),
        "loss": np.concatenate([play.losses[play.logged.row_of] for play in plays]),
    }
    for measure in LOGGED_MEASURES:
        parts = []
        for play in plays:
            regret = play.regrets[measure]
            if regret is None:
                parts.append(np.full(len(play.actions), np.nan))
            else:
                parts.append(regret[play.logged.row_of])
        columns[f"{measure}_regret"] = np.concatenate(parts)
    is_present = columns["action"] >= 0
    if is_present.all():
        return columns
    return {name: values[is_present] for name, values in columns.items()}
