"""What is remembered of a market that is being watched, in bounded memory however long it plays.

points     the course of regret, losses and actions: at most ``POINTS`` of them. When they are
           full every other one goes, its actions added to the next, and from then on half as
           many rounds have one
window     the tables of the last ``WINDOW`` rounds, as they are
paths      at every point each agent's loss and regret so far, among at most ``PATHS`` agents
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.game.seats import mean_over, taken
from regretless.market.model import MarketModel

POINTS = 400
WINDOW = 1000
PATHS = 2000
NEVER = 2**62  # rounds between entries of the regret log, which nothing here reads
TABLES = {
    "regret_curves": ["cohort", "round", "mean", "max", "count", "kept"],
    "course": ["cohort", "round", "kind", "name", "mean_loss"],
    "owned": ["cohort", "round", "which", "value"],
    "actions": ["cohort", "round", "which", "value"],
    "measures": ["round", "measure", "cohort", "agent", "value"],
}


@dataclass
class Point:
    """The rows that a round adds to tables, and every agent's loss and leading regret (2, N).

    ``chosen`` is how often each cohort chose each action since the point before.
    """

    round: int
    rows: dict[str, list[tuple[Any, ...]]]
    chosen: list[Array]
    path: np.ndarray[Any, Any]


class Watched:
    """The course so far of a model, before its first round; ``note`` is called after every one."""

    def __init__(self, model: MarketModel) -> None:
        self.model, self.stride = model, 1
        self.points, self.window = list[Point](), dict[str, pd.DataFrame]()
        model.journal.log_every = NEVER
        model.stream_logs_to(self._take)
        self._chosen = self._nobody()

    def _nobody(self) -> list[Array]:
        return [np.zeros(cohort.loss.actions) for cohort in self.model.game.cohorts]

    def _take(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Keep the last rounds of a part of the logs."""
        forecasts = chunk["forecasts"]
        parts = {"rounds": chunk["rounds"], "forecasts": forecasts[forecasts["drawn"]]}
        for name, part in parts.items():
            both = pd.concat([self.window[name], part]) if name in self.window else part
            self.window[name] = both[both["round"] >= self.model.played - WINDOW]

    def note(self) -> None:
        """Take note of the round that has just been played."""
        model = self.model
        for place, last in model.last.items():
            sums = self._chosen[place]
            sums += taken(model.game.cohorts[place], *last).per_action(len(sums))
        if model.played % self.stride == 0 or model.played == model.rounds:
            self.points.append(self._point(model.played - 1))
            self._chosen = self._nobody()
        if len(self.points) == POINTS:
            for gone, after in zip(self.points[::2], self.points[1::2], strict=True):
                after.chosen = [a + b for a, b in zip(gone.chosen, after.chosen, strict=True)]
            self.points, self.stride = self.points[1::2], 2 * self.stride

    def _point(self, number: int) -> Point:
        model, rows, paths = self.model, dict[str, list[Any]](), []
        verdict = model.verdict_frame()
        columns = [
            verdict[name] for name in ("cohort", "kind", "name", "mean_loss") if len(verdict)
        ]
        rows["course"] = [(who, number, *rest) for who, *rest in zip(*columns, strict=True)]
        rows["regret_curves"], rows["owned"] = [], list(self._owned(number))
        taken_now: Any = model.journal.watchers["measures"]  # the user's own, of this round
        table = pd.DataFrame(taken_now.rows(SimpleNamespace(number=number)))
        rows["measures"] = list(table.itertuples(index=False, name=None))
        for place, cohort in enumerate(model.game.cohorts):
            kinds = ("mean_loss", "decision_swap", "swap")
            loss, decision, swap = (model.measured(place, m) for m in kinds)
            regret, row_of = np.where(np.isnan(decision), swap, decision), cohort.row_of
            known, count = ~np.isnan(regret)[row_of], int((~np.isnan(decision))[row_of].sum())
            ends = np.nan, np.nan
            if known.any():
                ends = mean_over(cohort, regret, known), np.nanmax(regret)
            rows["regret_curves"].append((cohort.name, number, *ends, int(known.sum()), count))
            paths.append([loss[row_of], regret[row_of]])
        path = np.concatenate(paths, axis=1).astype(np.float32)
        return Point(number, rows, self._chosen, path[:, : len(path[0]) * (len(path[0]) <= PATHS)])

    def _owned(self, number: int) -> Iterator[tuple[Any, ...]]:
        """Yield mean cash and goods of each cohort, where the market keeps accounts."""
        market = self.model.game.market
        if market is not None and market.accounts is not None:
            for name, own in market.accounts.places.items():
                means = [market.accounts.cash[own].mean(), *market.accounts.goods[own].mean(0)]
                yield from ((name, number, which, mean) for which, mean in enumerate(means))

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return what figures are drawn of, the tables of a run directory among it."""
        model = self.model
        model.journal.flush()
        rows = {name: [row for p in self.points for row in p.rows.get(name, ())] for name in TABLES}
        names = [cohort.name for cohort in model.game.cohorts]
        rows["actions"] = [
            (name, point.round, which, count)
            for point in self.points
            for name, counts in zip(names, point.chosen, strict=True)
            for which, count in enumerate(counts.tolist())
        ]
        made = {name: pd.DataFrame(rows[name], columns=TABLES[name]) for name in TABLES}
        made["regret_curves"] = made["regret_curves"].set_index(["cohort", "round"])
        closing = {"agents": model.agents_frame(), "verdict": model.verdict_frame()}
        return made | closing | {"edges": model.edges_frame()} | self.window

    def path(self, agent: int) -> pd.DataFrame:
        """Return loss and regret so far of an agent, a row per point; empty among too many."""
        points = [point for point in self.points if point.path.shape[1]]
        values = [point.path[:, agent - 1] for point in points]
        return pd.DataFrame(values, [point.round for point in points], columns=["loss", "regret"])
