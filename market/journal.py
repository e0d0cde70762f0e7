"""The model's own logs: three tables, row by row, handed on in chunks of bounded size.

``rounds`` has a row per round, ``forecasts`` one per atom of a round's mixture and block,
``regret_log`` one per agent and logged round. A full chunk goes to the ``sink``; without one the
chunks stay in memory for the model's frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from market.records import Round
from market.roles import Cohort

Array = NDArray[np.float64]
Sink = Callable[[dict[str, pd.DataFrame]], None]

CHUNK_ROWS = 200_000
CHUNK_ROUNDS = 512
TABLES = ("rounds", "forecasts", "regret_log")
LOGGED_REGRETS = ("external_regret", "swap_regret", "decision_swap_regret")


class Journal:
    """Collects rounds into tables.

    Parameters
    ----------
    cohorts : sequence of Cohort
    blocks : sequence of str
        Their names.
    log_every : int
        ``regret_log`` has a row per agent every so many rounds, counted from the first, and none
        between.
    sink : callable or None
        Receives each full chunk, a frame per table.
    """

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        blocks: Sequence[str],
        *,
        log_every: int = 1,
        sink: Sink | None = None,
    ) -> None:
        self.log_every, self.sink = log_every, sink
        self._cohorts, self._blocks = tuple(cohorts), tuple(blocks)
        agents = sum(len(cohort.row_of) for cohort in cohorts)
        self.chunk_rounds = max(1, min(CHUNK_ROUNDS, CHUNK_ROWS * log_every // max(agents, 1)))
        self.agent_ids = np.arange(1, agents + 1)  # as Mesa numbers them
        self._open: dict[str, list[pd.DataFrame | dict[str, object]]] = {t: [] for t in TABLES}
        self._kept: dict[str, list[pd.DataFrame]] = {table: [] for table in TABLES}
        self._pending = 0

    @property
    def at_chunk_end(self) -> bool:
        """Whether everything so far has been handed on."""
        return self._pending == 0

    def add(self, played: Round) -> None:
        """Append a round; hand the chunk on when it is full."""
        self._open["rounds"].append(self._round_row(played))
        self._open["forecasts"].extend(self._forecast_rows(played))
        if played.number % self.log_every == 0:
            self._open["regret_log"].append(self._regret_rows(played))
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
        else:
            for table, frame in chunk.items():
                self._kept[table].append(frame)

    def frame(self, table: str) -> pd.DataFrame:
        """Return a table of what is in memory."""
        parts = [part for part in self._kept[table] if len(part)]
        if self._open[table]:
            parts.append(self._closed(table))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _closed(self, table: str) -> pd.DataFrame:
        rows = self._open[table]
        if table == "rounds":
            return pd.DataFrame(rows)
        frames = [row if isinstance(row, pd.DataFrame) else pd.DataFrame(row) for row in rows]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def _round_row(self, played: Round) -> dict[str, object]:
        certificates = [f.certificate for f in played.forecasts if f.certificate is not None]
        row: dict[str, object] = {"round": played.number}
        row |= {f"y_{i}": value for i, value in enumerate(played.outcome)}
        row |= {f"x_{i}": value for i, value in enumerate(played.context.values)}
        row["certificate"] = max(certificates, default=np.nan)
        row["atoms"] = sum(len(forecast.mixture.weights) for forecast in played.forecasts)
        return row

    def _forecast_rows(self, played: Round) -> list[dict[str, object]]:
        widest = max(forecast.point.size for forecast in played.forecasts)
        tables = []
        for name, forecast in zip(self._blocks, played.forecasts, strict=True):
            mixture = forecast.mixture
            atoms = np.arange(len(mixture.weights))
            points = np.full((len(atoms), widest), np.nan)
            points[:, : mixture.points.shape[1]] = mixture.points
            table: dict[str, object] = {
                "round": np.full(len(atoms), played.number),
                "block": [name] * len(atoms),
                "atom": atoms,
                "weight": mixture.weights,
                "drawn": atoms == forecast.index,
            }
            table |= {f"p_{i}": points[:, i] for i in range(widest)}
            if mixture.labels is not None:
                table |= {f"label_{i}": column for i, column in enumerate(mixture.labels.T)}
            tables.append(table)
        return tables

    def _regret_rows(self, played: Round) -> dict[str, object]:
        columns: dict[str, list[Array]] = {"loss": [], **{name: [] for name in LOGGED_REGRETS}}
        for cohort, decision, losses in zip(
            self._cohorts, played.decisions, played.losses, strict=True
        ):
            suffered = (decision.probabilities * losses).sum(1)
            columns["loss"].append(suffered[cohort.row_of])
            for name in LOGGED_REGRETS:
                columns[name].append(agent_regret(cohort, name.removesuffix("_regret")))
        return {
            "round": np.full(len(self.agent_ids), played.number),
            "agent": self.agent_ids,
            "action": np.concatenate([decision.actions for decision in played.decisions]),
            **{name: np.concatenate(parts) for name, parts in columns.items()},
        }


def agent_regret(cohort: Cohort, measure: str) -> Array:
    """Regret per agent (N,) of a cohort; NaN where the measure is not kept."""
    rows = cohort.ledger.regret(measure)
    return np.full(len(cohort.row_of), np.nan) if rows is None else rows[cohort.row_of]
