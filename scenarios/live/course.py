"""How a market that is played live has gone so far: losses, regrets, actions and what is owned.

A ``CourseRecorder`` watches a model from its first round on, and makes the tables from which the
page's figures are drawn. A run directory has the same tables, and its regret log has every round;
here the memory is bounded, however long somebody watches:

- Curves have at most ``MAX_POINTS`` points. When they are full every other point is dropped, and
  from then on half as many rounds have one.
- Of the tables ``rounds`` and ``forecasts`` the last ``WINDOW_ROUNDS`` rounds are kept.
- Each agent's loss and regret are part of a point only among at most ``MAX_AGENTS_WITH_PATHS``.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.game.protocols import Cohort
from regretless.market.game.seats import taken_actions
from regretless.market.logs import user_columns
from regretless.market.model import MarketModel

MAX_POINTS = 400
WINDOW_ROUNDS = 1000
MAX_AGENTS_WITH_PATHS = 2000
NEVER = 2**62  # rounds between entries of the regret log, which nothing here reads

COLUMNS = {  # of the tables whose rows are collected point by point
    "regret_curves": ["cohort", "round", "mean", "max", "count", "kept"],
    "course": ["cohort", "round", "kind", "name", "mean_loss"],
    "owned": ["cohort", "round", "which", "value"],
    "actions": ["cohort", "round", "which", "value"],
    "measures": ["round", "measure", "cohort", "agent", "value"],
}
ACCUMULATED = "actions"  # the one table whose rows are made of two points, when it is asked for

TableRow = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Point:
    """What is remembered of one round.

    Attributes
    ----------
    round_index : int
        The round after which the point was taken.
    rows : dict
        The rows that it adds to each table of ``COLUMNS``, except for ``ACCUMULATED``.
    action_counts : list of arrays (A,)
        How often each cohort has chosen each of its actions so far.
    paths : array (2, N)
        Mean loss and leading regret of every agent so far; (2, 0) among too many agents.
    """

    round_index: int
    rows: dict[str, list[TableRow]]
    action_counts: list[Array]
    paths: np.ndarray[Any, Any]


class CourseRecorder:
    """Records the course of a model that has not played yet.

    ``record_round`` is to be called after every round. The model's logs are taken over: they are
    streamed to the recorder, and its regret log is not kept.
    """

    def __init__(self, model: MarketModel) -> None:
        self.model = model
        self.points: list[Point] = []
        self.rounds_per_point = 1
        self.last_rounds: dict[str, pd.DataFrame] = {}
        self._action_counts = [np.zeros(cohort.loss.actions) for cohort in model.game.cohorts]
        model.journal.log_every = NEVER
        model.stream_logs_to(self._keep_last_rounds)

    def _keep_last_rounds(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Append a chunk of the logs to the tables by round, and drop rounds that are too old."""
        rounds = chunk["rounds"]
        forecasts = chunk["forecasts"]
        if len(forecasts):  # nobody may have forecast, and then the table has no columns
            forecasts = forecasts[forecasts["drawn"]]
        self._append_rows("rounds", rounds)
        self._append_rows("forecasts", forecasts)

    def _append_rows(self, name: str, new_rows: pd.DataFrame) -> None:
        """Append rows to a table by round, and drop those of rounds that are too old."""
        parts = [self.last_rounds.get(name, pd.DataFrame()), new_rows]
        parts_with_rows = [part for part in parts if len(part)]
        if not parts_with_rows:
            self.last_rounds[name] = new_rows
            return
        rows = pd.concat(parts_with_rows)
        first_kept_round = self.model.played - WINDOW_ROUNDS
        self.last_rounds[name] = rows[rows["round"] >= first_kept_round]

    def record_round(self) -> None:
        """Take note of the round that has just been played."""
        model = self.model
        for cohort_index, decision in model.last.items():
            counts = self._action_counts[cohort_index]
            taken = taken_actions(model.game.cohorts[cohort_index], *decision)
            counts += taken.per_action(len(counts))
        if model.played % self.rounds_per_point == 0 or model.is_finished:
            self.points.append(self._make_point())
        if len(self.points) == MAX_POINTS:
            self.points = self.points[1::2]
            self.rounds_per_point *= 2

    def _make_point(self) -> Point:
        """Return the point of the round that has just been played."""
        round_index = self.model.played - 1
        curve_rows: list[TableRow] = []
        paths = []
        for cohort_index, cohort in enumerate(self.model.game.cohorts):
            losses = self.model.measured(cohort_index, "mean_loss")
            decision_swap = self.model.measured(cohort_index, "decision_swap")
            swap = self.model.measured(cohort_index, "swap")
            regrets = np.where(np.isnan(decision_swap), swap, decision_swap)
            n_with_decision_swap = int((~np.isnan(decision_swap))[cohort.row_of].sum())
            mean, worst, n_measured = _mean_and_worst(regrets[cohort.row_of], cohort)
            curve_rows.append(
                (cohort.name, round_index, mean, worst, n_measured, n_with_decision_swap)
            )
            paths.append([losses[cohort.row_of], regrets[cohort.row_of]])
        all_paths = np.concatenate(paths, axis=1).astype(np.float32)
        if all_paths.shape[1] > MAX_AGENTS_WITH_PATHS:
            all_paths = all_paths[:, :0]
        rows = {
            "regret_curves": curve_rows,
            "course": self._course_rows(round_index),
            "owned": self._owned_rows(round_index),
            "measures": self._measure_rows(round_index),
        }
        action_counts = [counts.copy() for counts in self._action_counts]
        return Point(round_index, rows, action_counts, all_paths)

    def _course_rows(self, round_index: int) -> list[TableRow]:
        """Return the mean loss so far of each cohort, as played and with each alternative."""
        columns = ["cohort", "kind", "name", "mean_loss"]
        verdict = self.model.verdict_frame().reindex(columns=columns)
        rows: list[TableRow] = []
        for cohort, kind, name, mean_loss in verdict.to_numpy():
            rows.append((cohort, round_index, kind, name, mean_loss))
        return rows

    def _owned_rows(self, round_index: int) -> list[TableRow]:
        """Return each cohort's mean cash and goods; nothing where the market keeps no accounts."""
        market = self.model.game.market
        if market is None or market.accounts is None:
            return []
        accounts = market.accounts
        rows: list[TableRow] = []
        for cohort, agents in accounts.places.items():
            means = [accounts.cash[agents].mean(), *accounts.goods[agents].mean(axis=0)]
            for which, mean in enumerate(means):  # 0 is cash, and k the good k - 1
                rows.append((cohort, round_index, which, mean))
        return rows

    def _measure_rows(self, round_index: int) -> list[TableRow]:
        """Return what the user's own measures say now."""
        measures = pd.DataFrame(user_columns.measures(self.model, self.model.own_measures))
        return [(round_index, *row) for row in measures.itertuples(index=False, name=None)]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables from which figures are drawn, those of a run directory among them."""
        model = self.model
        model.journal.flush()
        tables: dict[str, pd.DataFrame] = {}
        for name, columns in COLUMNS.items():
            rows = self._action_rows() if name == ACCUMULATED else self._rows_of_points(name)
            tables[name] = pd.DataFrame(rows, columns=columns)
        tables["regret_curves"] = tables["regret_curves"].set_index(["cohort", "round"])
        tables["agents"] = model.agents_frame()
        tables["verdict"] = model.verdict_frame()
        tables["bounds"] = model.bounds_frame()
        tables["edges"] = model.edges_frame()
        return tables | self.last_rounds

    def _rows_of_points(self, table: str) -> list[TableRow]:
        rows: list[TableRow] = []
        for point in self.points:
            rows += point.rows[table]
        return rows

    def _action_rows(self) -> list[TableRow]:
        """Return how often each action was chosen between each point and the one before."""
        rows: list[TableRow] = []
        cohorts = self.model.game.cohorts
        counts_before = [np.zeros(cohort.loss.actions) for cohort in cohorts]
        for point in self.points:
            for cohort_index, cohort in enumerate(cohorts):
                new_counts = point.action_counts[cohort_index] - counts_before[cohort_index]
                for action, count in enumerate(new_counts):
                    rows.append((cohort.name, point.round_index, action, count))
            counts_before = point.action_counts
        return rows

    def path(self, agent: int) -> pd.DataFrame:
        """Return an agent's ``loss`` and ``regret`` so far, a row per point, by round.

        ``agent`` counts from 1. The table is empty where there are too many agents.
        """
        points = [point for point in self.points if point.paths.shape[1]]
        return pd.DataFrame(
            [point.paths[:, agent - 1] for point in points],
            index=[point.round_index for point in points],
            columns=["loss", "regret"],
        )


def _mean_and_worst(regrets: Array, cohort: Cohort) -> tuple[float, float, int]:
    """Return mean and greatest regret of a cohort's agents, and how many entries have one.

    Parameters
    ----------
    regrets : array (K,)
        One for each entry of ``cohort.row_of``, which stands for one agent or for many; NaN where
        none was measured.
    """
    is_measured = ~np.isnan(regrets)
    if not is_measured.any():
        return np.nan, np.nan, 0
    n_agents = cohort.multiplicity_of(is_measured)
    mean = float(np.average(regrets[is_measured], weights=n_agents))
    return mean, float(regrets[is_measured].max()), int(is_measured.sum())
