"""The model's own logs: tables of rounds, row by row, handed on in chunks of bounded size.

docs/columns.md says what a row of each table is. A full chunk goes to the ``sink``; without one the
chunks stay in memory for the model's frames.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import earned, per_agent
from regretless.market.game.round import Game
from regretless.market.game.seats import present
from regretless.market.logs.sampling import Logged
from regretless.market.logs.user_columns import Columns, joined, states
from regretless.market.logs.windows import Windows
from regretless.market.records import Round

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

    def __init__(
        self,
        game: Game,
        logged: Sequence[Logged],  # whom regret log and windows follow
        *,
        log_every: int,  # rounds between two of the regret log, counted from the first
        windows: Windows | None,
    ) -> None:
        self._game, self._cohorts, self.log_every = game, game.cohorts, log_every
        self.sink: Sink | None = None  # receives each full chunk, a frame per table
        self.logged, self.windows = tuple(logged), windows
        agents = sum(len(own.ids) for own in self.logged)  # with latecomers: chunks stay short
        every = log_every if windows is None else min(log_every, windows.shortest)
        self.chunk_rounds = max(1, min(CHUNK_ROUNDS, CHUNK_ROWS * every // max(agents, 1)))
        self._open: dict[str, list[Columns]] = {table: [] for table in TABLES}
        self._kept: dict[str, list[pd.DataFrame]] = {table: [] for table in TABLES}
        self._pending = 0
        # What makes the rows of each table of the logged rounds.
        self.watchers: dict[str, Callable[[Round], Columns]] = {
            "regret_log": self._regrets,
            "accounts": self._accounts,
            "states": partial(states, self._cohorts, self.logged),
        }
        self.face()

    def face(self) -> None:
        """Log the game's leader and market, as they are now, in a chunk of their own columns."""
        payoff: Any = self._game.adversary.payoff
        self._payoff, self._market = payoff, self._game.market
        for cohort in () if payoff is None else self._cohorts:
            try:
                payoff.values(cohort.loss[:1], np.zeros((1, cohort.loss.outcomes)))
            except ValueError as error:
                raise UserError(f"the adversary's payoff, cohort.{cohort.name}: {error}") from error
        self.flush()

    def part(self, game: Game, agents: Mapping[int, slice]) -> "Journal":
        """Return one of a game of parts of these cohorts: ``agents`` of each, by its place here."""
        pairs = zip(agents.items(), game.cohorts, strict=True)
        logged = [self.logged[at].part(mine, own.row_of) for (at, mine), own in pairs]
        windows = self.windows and Windows(game.cohorts, logged, self.windows.spans)
        part = Journal(game, logged, log_every=self.log_every, windows=windows)
        part.chunk_rounds = self.chunk_rounds
        return part

    @property
    def at_chunk_end(self) -> bool:
        """Whether everything so far has been handed on."""
        return self._pending == 0

    def add(self, played: Round) -> None:
        """Append a round; hand the chunk on when it is full."""
        found = {} if self._market is None else dict(self._market.extra_tables())
        found |= {"rounds": self._round(played), "forecasts": self._forecasts(played)}
        if played.number % self.log_every == 0:
            found |= {table: watcher(played) for table, watcher in self.watchers.items()}
        for table, columns in found.items():
            if rows := len(next(iter(columns.values()), ())):
                self._open[table].append({"round": np.full(rows, played.number), **columns})
        if self.windows is not None:
            self._open["windows"] += self.windows.add(played.number)
        self._pending += 1
        if self._pending >= self.chunk_rounds:
            self.flush()

    def flush(self) -> None:
        """Hand the open rows on, if there are any."""
        if not self._pending:
            return
        chunk = {table: pd.DataFrame(joined(self._open[table])) for table in TABLES}
        self._open, self._pending = {table: [] for table in TABLES}, 0
        if self.sink is not None:
            self.sink(chunk)
        else:
            for table, frame in chunk.items():
                self._kept[table].append(frame)

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of what is in memory."""
        parts = [part for part in self._kept[table] if len(part)]
        if self._open[table]:
            parts.append(pd.DataFrame(joined(self._open[table])))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def marked(self, agents: pd.DataFrame) -> pd.DataFrame:
        """Say in an agents table who is ``logged``, where not everybody is."""
        ids = np.concatenate([own.ids for own in self.logged])
        return agents.assign(logged=agents["agent"].isin(ids)) if self.samples else agents

    @property
    def samples(self) -> bool:
        """Whether a sample of the agents is logged."""
        return any(isinstance(own.agents, np.ndarray) for own in self.logged)

    def _round(self, played: Round) -> Columns:
        certificates = [f.certificate for f in played.forecasts if f.certificate is not None]
        row: dict[str, Any] = {}
        if played.context.index is not None:
            name, value = played.context.index
            row[name] = value
        row |= {f"y_{i}": value for i, value in enumerate(played.outcome)}
        row |= {f"x_{i}": value for i, value in enumerate(played.context.shown)}
        row |= {} if self._market is None else self._market.columns()
        row["certificate"] = max(certificates, default=np.nan)
        row["atoms"] = sum(len(f.mixture.weights) for f in played.forecasts)
        if self._payoff is not None:
            paid, agents = earned(self._payoff, self._cohorts, played)
            row["leader_payoff"] = per_agent(paid, agents)
            if len(paid) > 1:
                row |= {f"leader_payoff_{i}": own for i, own in enumerate(paid)}
        return {name: np.atleast_1d(value) for name, value in row.items()}

    def _forecasts(self, played: Round) -> Columns:
        parts = []
        widest = max(forecast.statistics.size for forecast in played.forecasts)
        labelled = all(forecast.mixture.labels is not None for forecast in played.forecasts)
        for block, forecast in zip(self._game.blocks, played.forecasts, strict=True):
            mixture = forecast.mixture
            atoms = np.arange(len(mixture.weights))
            points = np.full((widest, len(atoms)), np.nan)
            points[: mixture.points.shape[1]] = mixture.points.T
            columns: Columns = {
                "block": np.array([block.name] * len(atoms), dtype=object),
                "atom": atoms,
                "weight": mixture.weights,
                "drawn": atoms == forecast.index,
            }
            columns |= {f"p_{i}": column for i, column in enumerate(points)}
            if labelled and mixture.labels is not None:
                columns |= {f"label_{i}": column for i, column in enumerate(mixture.labels.T)}
            parts.append(columns)
        return joined(parts)

    def _regrets(self, played: Round) -> Columns:
        parts = []
        for place, cohort, decision, losses in present(self._cohorts, played):
            own = self.logged[place]
            every = isinstance(own.rows, slice)
            ledger = cohort.ledger if every else cohort.ledger.excerpt(own.rows)
            strategy = decision.probabilities[own.rows]
            suffered = np.einsum("ka,ka->k", strategy, losses[own.rows])[own.row_of]
            columns = {"agent": own.ids, "action": decision.actions[own.agents], "loss": suffered}
            for name in LOGGED_REGRETS:
                known = ledger.regret(name.removesuffix("_regret"))
                each = np.full(len(ledger.count), np.nan) if known is None else known
                columns[name] = each[own.row_of]
            here = columns["action"] >= 0
            some = {name: column[here] for name, column in columns.items() if not here.all()}
            parts.append(some or columns)
        return joined(parts)

    def _accounts(self, played: Round) -> Columns:
        if self._market is None or self._market.accounts is None or not any(played.decisions):
            return {}
        ids = np.concatenate([own.ids for own in self.logged])
        return {"agent": ids} | self._market.accounts.columns(ids - 1)
