"""What is remembered of a market that is being watched, in bounded memory however long it plays.

points     the course of regret, losses and actions: at most ``POINTS`` of them. When they are
           full every other one goes, its actions added to the next, and from then on half as
           many rounds have one
window     the tables of the last ``WINDOW`` rounds, as they are
paths      at every point each agent's loss and regret so far, among at most ``PATHS`` agents
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.model import MarketModel

POINTS = 400
WINDOW = 1000
PATHS = 2000
COURSE = ("cohort", "kind", "name", "mean_loss")
NEVER = 2**62  # rounds between entries of the regret log, which nothing here reads


@dataclass
class Point:
    """The state of a market after some round.

    Parameters
    ----------
    round : int
        How many rounds had been played.
    regret : list of tuple
        Of each cohort mean and worst leading regret, how many agents have one, and how many of
        those decision swap regret.
    losses : dict
        Mean loss so far of every alternative, by cohort, kind and name (``market.logs.verdict``).
    actions : list of array (A,)
        How often each cohort's agents chose each action since the point before.
    owned : list of array
        Mean cash and goods of each cohort; empty where the market keeps no accounts.
    path : array (2, N)
        Loss and leading regret so far of every agent; of shape (2, 0) among too many.
    """

    round: int
    regret: list[tuple[float, float, int, int]]
    losses: dict[tuple[str, ...], float]
    actions: list[Array]
    owned: list[Array]
    path: np.ndarray[Any, Any]


@dataclass
class Watched:
    """A market's course so far; ``note`` is to be called after every round.

    Parameters
    ----------
    model : MarketModel
        Before its first round. Its logs go here from now on.
    """

    model: MarketModel
    points: list[Point] = field(default_factory=list)
    stride: int = 1
    window: dict[str, pd.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.model.journal.log_every = NEVER
        self.model.stream_logs_to(self._take)
        self._chosen = self._nobody()

    def _nobody(self) -> list[Array]:
        return [np.zeros(cohort.loss.actions) for cohort in self.model.game.cohorts]

    def _take(self, chunk: dict[str, pd.DataFrame]) -> None:
        """Keep the last rounds of a part of the logs."""
        forecasts = chunk["forecasts"]
        parts = {"rounds": chunk["rounds"], "forecasts": forecasts[forecasts["drawn"]]}
        least = self.model.played - WINDOW
        for name, part in parts.items():
            both = pd.concat([self.window[name], part]) if name in self.window else part
            self.window[name] = both[both["round"] >= least].reset_index(drop=True)

    def note(self) -> None:
        """Take note of the round that has just been played."""
        model = self.model
        for place, sums in enumerate(self._chosen):
            played = model.last_actions(place)
            np.add(sums, np.bincount(played[played >= 0], minlength=len(sums)), out=sums)
        if model.played % self.stride == 0 or model.played == model.rounds:
            self.points.append(self._point())
            self._chosen = self._nobody()
        if len(self.points) == POINTS:
            for gone, kept in zip(self.points[::2], self.points[1::2], strict=True):
                for before, after in zip(gone.actions, kept.actions, strict=True):
                    np.add(before, after, out=after)
            self.points, self.stride = self.points[1::2], 2 * self.stride

    def _point(self) -> Point:
        regrets = [self._leading(place) for place in range(len(self.model.game.cohorts))]
        verdict = self.model.verdict_frame()
        keys = (
            zip(*(verdict[column] for column in COURSE[:-1]), strict=True) if len(verdict) else ()
        )
        return Point(
            self.model.played,
            [_summed(*both) for both in regrets],
            dict(zip(keys, verdict.get("mean_loss", ()), strict=True)),
            self._chosen,
            self._owned(),
            self._paths([regret for regret, _ in regrets]),
        )

    def _leading(self, place: int) -> tuple[Array, Array]:
        """Return leading and decision swap regret of a cohort's agents (N,)."""
        row_of = self.model.game.cohorts[place].row_of
        decision, swap = (self.model.measured(place, m)[row_of] for m in ("decision_swap", "swap"))
        return np.where(np.isnan(decision), swap, decision), decision

    def _paths(self, regrets: list[Array]) -> np.ndarray[Any, Any]:
        if sum(map(len, regrets)) > PATHS:
            return np.zeros((2, 0), dtype=np.float32)
        losses = [
            self.model.measured(place, "mean_loss")[cohort.row_of]
            for place, cohort in enumerate(self.model.game.cohorts)
        ]
        return np.array([np.concatenate(losses), np.concatenate(regrets)], dtype=np.float32)

    def _owned(self) -> list[Array]:
        market = self.model.game.market
        if market is None or market.accounts is None:
            return []
        accounts, places = market.accounts, market.accounts.places
        named = [places[cohort.name] for cohort in self.model.game.cohorts]
        return [
            np.concatenate([[accounts.cash[own].mean()], accounts.goods[own].mean(0)])
            for own in named
        ]

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return what figures are drawn of, the tables of a run directory among it."""
        model = self.model
        model.journal.flush()
        made = {
            "agents": model.agents_frame(),
            "verdict": model.verdict_frame(),
            "edges": model.edges_frame(),
            "regret_curves": self._curves(),
            "course": self._losses(),
            "actions": self._long(lambda point: point.actions),
            "owned": self._long(lambda point: point.owned),
        }
        return made | self.window

    def _curves(self) -> pd.DataFrame:
        names = [cohort.name for cohort in self.model.game.cohorts]
        keys = [(name, point.round - 1) for name in names for point in self.points]
        rows = [point.regret[i] for i in range(len(names)) for point in self.points]
        index = pd.MultiIndex.from_tuples(keys, names=["cohort", "round"])
        return pd.DataFrame(rows, index=index, columns=["mean", "max", "count", "kept"])

    def _losses(self) -> pd.DataFrame:
        rows = [
            (point.round - 1, *key, loss)
            for point in self.points
            for key, loss in point.losses.items()
        ]
        return pd.DataFrame(rows, columns=["round", *COURSE])

    def _long(self, told: Callable[[Point], list[Array]]) -> pd.DataFrame:
        """Return a row per point, cohort and action, or thing that is owned."""
        names = [cohort.name for cohort in self.model.game.cohorts]
        rows = [
            (point.round - 1, name, which, value)
            for point in self.points
            for name, values in zip(names, told(point), strict=False)
            for which, value in enumerate(values.tolist())
        ]
        return pd.DataFrame(rows, columns=["round", "cohort", "which", "value"])

    def path(self, agent: int) -> pd.DataFrame:
        """Return loss and regret so far of an agent, a row per point; empty among too many."""
        kept = [point for point in self.points if point.path.shape[1]]
        values = [point.path[:, agent - 1] for point in kept]
        rounds = pd.Index([point.round - 1 for point in kept], name="round")
        return pd.DataFrame(values, index=rounds, columns=["loss", "regret"])


def _summed(regret: Array, decision: Array) -> tuple[float, float, int, int]:
    known = regret[~np.isnan(regret)]
    ends = (known.mean(), known.max()) if len(known) else (np.nan, np.nan)
    return float(ends[0]), float(ends[1]), len(known), int((~np.isnan(decision)).sum())
