"""The model's own logs: tables of rounds, row by row, handed on in chunks of bounded size.

docs/columns.md says what a row of each table is. A full chunk goes to the ``sink``; without one the
chunks stay in memory for the model's frames.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import earned, per_agent
from regretless.market.game.market import Market
from regretless.market.game.protocols import Cohort
from regretless.market.game.seats import present
from regretless.market.logs.sampling import Logged, logged_agents
from regretless.market.logs.user_columns import OwnMeasures, States
from regretless.market.logs.windows import Windows
from regretless.market.records import Round
from regretless.market.regret.ledger import Ledger

Columns = dict[str, NDArray[Any]]
Sink = Callable[[dict[str, pd.DataFrame]], None]
CHUNK_ROWS = 200_000
CHUNK_ROUNDS = 512
MARKET_TABLES = ("trades", "quotes")  # of every round
TABLES = (
    *("rounds", "forecasts", "regret_log", "windows", "accounts", "states", "measures"),
    *MARKET_TABLES,
)
LOGGED_REGRETS = ("external_regret", "swap_regret", "decision_swap_regret")


class Journal(Checkpointable):
    """Collects rounds into tables; UserError if the payoff does not fit a cohort."""

    REMEMBERED = ("windows",)

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        cohorts: Sequence[Cohort],
        blocks: Sequence[str],
        *,
        log_every: int = 1,  # rounds between two of the regret log, counted from the first
        payoff: Any = None,  # the adversary's, if it has one
        market: Market | None = None,
        logged: Sequence[Logged] = (),  # whom regret log and windows follow; all by default
        windows: Windows | None = None,
    ) -> None:
        self.log_every = log_every
        self.sink: Sink | None = None  # receives each full chunk, a frame per table
        self._cohorts, self._blocks = tuple(cohorts), tuple(blocks)
        self.logged, self.windows = tuple(logged) or logged_agents(self._cohorts, None), windows
        agents = sum(len(own.ids) for own in self.logged)  # with latecomers: chunks stay short
        every = log_every if windows is None else min(log_every, windows.shortest)
        self.chunk_rounds = max(1, min(CHUNK_ROUNDS, CHUNK_ROWS * every // max(agents, 1)))
        self._open: dict[str, list[Columns]] = {table: [] for table in TABLES}
        self._kept: dict[str, list[pd.DataFrame]] = {table: [] for table in TABLES}
        self._pending = 0
        states = States(self._cohorts, self.logged)
        self.watchers: dict[str, States | OwnMeasures] = {"states": states}  # they add rows, too
        self.face(payoff, market)

    def face(self, payoff: Any, market: Market | None) -> None:
        """Log this leader's payoff and this market from now on, in a chunk of their own columns."""
        for cohort in () if payoff is None else self._cohorts:
            try:
                payoff.values(cohort.loss[:1], np.zeros((1, cohort.loss.outcomes)))
            except ValueError as error:
                raise UserError(f"the adversary's payoff, cohort.{cohort.name}: {error}") from error
        self.flush()
        self._payoff, self._market = payoff, market

    def part(self, cohorts: Sequence[Cohort], agents: Mapping[int, slice]) -> "Journal":
        """Return one of cohorts that are parts of these: ``agents`` of each, by its place here."""
        pairs = zip(agents.items(), cohorts, strict=True)
        logged = [self.logged[at].part(mine, own.row_of) for (at, mine), own in pairs]
        windows = self.windows and Windows(cohorts, logged, self.windows.spans)
        every = self.log_every
        part = Journal(cohorts, self._blocks, log_every=every, logged=logged, windows=windows)
        part.chunk_rounds = self.chunk_rounds
        return part

    @property
    def at_chunk_end(self) -> bool:
        """Whether everything so far has been handed on."""
        return self._pending == 0

    def add(self, played: Round) -> None:
        """Append a round; hand the chunk on when it is full."""
        self._open["rounds"].append(self._round_row(played))
        self._open["forecasts"].append(self._forecast_rows(played))
        for table, columns in ({} if self._market is None else self._market.extra_tables()).items():
            if rows := len(next(iter(columns.values()))):
                self._open[table].append({"round": np.full(rows, played.number), **columns})
        if played.number % self.log_every == 0:
            if any(played.decisions):
                self._open["regret_log"].append(self._regret_rows(played))
                if self._market is not None and (accounts := self._market.accounts) is not None:
                    ids = np.concatenate([own.ids for own in self.logged])
                    row: Columns = {"round": np.full(len(ids), played.number), "agent": ids}
                    self._open["accounts"].append(row | accounts.columns(ids - 1))
            for table, watcher in self.watchers.items():
                if seen := watcher.rows(played):
                    self._open[table].append(seen)
        if self.windows is not None:
            self._open["windows"] += self.windows.add(played.number)
        self._pending += 1
        if self._pending >= self.chunk_rounds:
            self.flush()

    def flush(self) -> None:
        """Hand the open rows on, if there are any."""
        if not self._pending:
            return
        chunk = {table: self._closed(table) for table in TABLES}
        self._open, self._pending = {table: [] for table in TABLES}, 0
        if self.sink is not None:
            self.sink(chunk)
            return
        for table, frame in chunk.items():
            self._kept[table].append(frame)

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of what is in memory."""
        parts = [part for part in self._kept[table] if len(part)]
        if self._open[table]:
            parts.append(self._closed(table))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def marked(self, agents: pd.DataFrame) -> pd.DataFrame:
        """Say in an agents table who is ``logged``, where not everybody is."""
        if not self.samples:
            return agents
        ids = np.concatenate([own.ids for own in self.logged])
        return agents.assign(logged=agents["agent"].isin(ids))

    @property
    def samples(self) -> bool:
        """Whether a sample of the agents is logged."""
        return any(isinstance(own.agents, np.ndarray) for own in self.logged)

    def _closed(self, table: str) -> pd.DataFrame:
        rows = self._open[table]
        names = rows[0] if rows else ()
        return pd.DataFrame({name: np.concatenate([row[name] for row in rows]) for name in names})

    def _round_row(self, played: Round) -> Columns:
        certificates = [f.certificate for f in played.forecasts if f.certificate is not None]
        row: Columns = {"round": np.array([played.number])}
        if played.context.index is not None:
            name, value = played.context.index
            row[name] = np.array([value], dtype=object)
        row |= {f"y_{i}": value[None] for i, value in enumerate(played.outcome)}
        row |= {f"x_{i}": value[None] for i, value in enumerate(played.context.shown)}
        if self._market is not None:
            row |= self._market.columns()
        row["certificate"] = np.array([max(certificates, default=np.nan)])
        row["atoms"] = np.array([sum(len(f.mixture.weights) for f in played.forecasts)])
        if self._payoff is not None:
            paid, agents = earned(self._payoff, self._cohorts, played)
            row["leader_payoff"] = np.array([per_agent(paid, agents)])
            if len(paid) > 1:
                row |= {f"leader_payoff_{i}": own[None] for i, own in enumerate(paid)}
        return row

    def _forecast_rows(self, played: Round) -> Columns:
        widest = max(forecast.statistics.size for forecast in played.forecasts)
        mixtures = [forecast.mixture for forecast in played.forecasts]
        counts = [len(mixture.weights) for mixture in mixtures]
        atoms = np.concatenate([np.arange(count) for count in counts])
        drawn = np.repeat([forecast.index for forecast in played.forecasts], counts) == atoms
        points = np.full((len(atoms), widest), np.nan)
        for end, mixture in zip(np.cumsum(counts), mixtures, strict=True):
            points[end - len(mixture.weights) : end, : mixture.points.shape[1]] = mixture.points
        columns: Columns = {
            "round": np.full(len(atoms), played.number),
            "block": np.repeat(np.array(self._blocks, dtype=object), counts),
            "atom": atoms,
            "weight": np.concatenate([mixture.weights for mixture in mixtures]),
            "drawn": drawn,
        }
        columns |= {f"p_{i}": column for i, column in enumerate(points.T)}
        labels = [mixture.labels for mixture in mixtures if mixture.labels is not None]
        if len(labels) == len(mixtures):
            columns |= {f"label_{i}": part for i, part in enumerate(np.concatenate(labels).T)}
        return columns

    def _regret_rows(self, played: Round) -> Columns:
        names = ("agent", "action", "loss", *LOGGED_REGRETS)
        columns: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        for place, cohort, decision, losses in present(self._cohorts, played):
            own = self.logged[place]
            ledger = own.read(cohort.ledger)
            columns["agent"].append(own.ids)
            columns["action"].append(decision.actions[own.agents])
            suffered = (decision.probabilities[own.rows] * losses[own.rows]).sum(1)
            columns["loss"].append(suffered[own.row_of])
            for name in LOGGED_REGRETS:
                columns[name].append(spread(ledger, own.row_of, name.removesuffix("_regret")))
        row = {name: np.concatenate(parts) for name, parts in columns.items()}
        here = row["action"] >= 0
        if not here.all():
            row = {name: column[here] for name, column in row.items()}
        return {"round": np.full(len(row["agent"]), played.number)} | row


def spread(ledger: Ledger, row_of: Indices, measure: str) -> Array:
    """Regret per agent, from the rows that score them; NaN where the measure is not kept."""
    rows = ledger.regret(measure)
    return np.full(len(row_of), np.nan) if rows is None else rows[row_of]
