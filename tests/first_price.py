"""A first-price auction whose bidders have losses of their own, and what they come to by hand."""

from pathlib import Path
from typing import Any

import numpy as np

from regretless import register
from regretless.agents.cohorts.own_agents import ScriptedAgent
from regretless.market.markets import Market
from regretless.market.model import MarketModel

Table = np.ndarray[Any, Any]
GRID = [0.0, 0.25, 0.5, 0.75, 1.0]
AFFORDABLE = 0.5  # the highest bid within anybody's means
SCENARIO = """
name = "first-price"
rounds = 40
seed = 3

[adversary]
kind = "iid"
outcomes = 1

[market]
kind = "own-first-price"
values = [0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.5, 1.0]

[forecaster]
models = ["running-mean"]

[windows]
every = 10
"""
COHORT = """
[[cohort]]
name = "{name}"
response = "{response}"
count = {count}
actions = 5
utility = "affine"
parameters.weights = [[0.0], [0.25], [0.5], [0.75], [1.0]]
parameters.gains = [0.0, -0.03, -0.12, -0.28, -0.5]
"""
BIDDERS = (
    COHORT.format(name="followers", response="best-response", count=2),
    COHORT.format(name="hedgers", response="hedge", count=2),
    COHORT.format(name="gamblers", response="exp3", count=1) + "enters = 10\n",
    COHORT.format(name="poor", response="best-response", count=1) + "budget_constraint = true\n",
    COHORT.format(name="guests", response="best-response", count=2)
    + "entry_rate = 0.2\nexit_rate = 0.05\n",
    COHORT.format(name="scripted", response="own-bidder", count=1),
)


@register.market("own-first-price")
class FirstPrice(Market):
    """The highest bid wins at its price, if it is at least the reserve; ties go to the first."""

    def __init__(self, cohorts: Any, rng: Any, *, values: Any) -> None:
        super().__init__(cohorts, rng)
        self.values = np.array(values)

    def bids(self, decisions: Any) -> Table:
        pairs = zip(self.cohorts, decisions, strict=True)
        absent = [np.full(len(c.row_of), -1) if d is None else d.actions for c, d in pairs]
        actions = np.concatenate(absent)
        return np.where(actions < 0, -1.0, np.array(GRID)[actions])

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        """Return the highest bid; the fundamental is the reserve."""
        self.reserve = fundamental[0]
        self.last = {"reserve": fundamental}
        return np.array([max(self.bids(decisions).max(), 0.0)])

    def losses(self, decisions: Any) -> Any:
        """Return (1 - gain) / 2 of every bid of every agent."""
        bids, grid, tables = self.bids(decisions), np.array(GRID), []
        for i, value in enumerate(self.values[: len(bids)]):
            ahead, behind = bids[:i].max(initial=-1.0), bids[i + 1 :].max(initial=-1.0)
            wins = (grid >= self.reserve) & (grid > ahead) & (grid >= behind)
            tables.append((1 - wins * (value - grid)) / 2)
        sizes = [len(cohort.row_of) for cohort in self.cohorts]
        return np.split(np.array(tables), np.cumsum(sizes)[:-1])

    def affordable(self, place: int) -> Any:
        own = np.array(GRID) <= AFFORDABLE
        return np.tile(own, (len(self.cohorts[place].row_of), 1))


@register.agent("own-bidder")
class Bidder(ScriptedAgent):
    """Bids at random, and writes down what it is told."""

    def __init__(self, loss: Any, rng: Any) -> None:
        super().__init__(loss, rng)
        self.told: list[Table] = []

    def act(self, forecast: Any, context: Any) -> int:
        return int(self.rng.integers(5))

    def learn(self, losses: Any, outcome: Any) -> None:
        self.told.append(np.array(losses))


def written(folder: Path, cohorts: tuple[str, ...] = BIDDERS) -> str:
    path = folder / "first-price.toml"
    path.write_text(SCENARIO + "".join(cohorts), encoding="utf-8")
    return str(path)


def by_hand(model: MarketModel) -> dict[int, tuple[Table, Table]]:
    """Clear every logged round again for each bid: losses (T, 5), actions (T,), by the agent."""
    market: Any = model.game.market
    reserves = model.rounds_frame().set_index("round")["reserve_0"]
    rows: dict[int, list[list[float]]] = {}
    played: dict[int, list[int]] = {}
    for number, round_ in model.regret_frame().groupby("round"):
        bids = {a: GRID[b] for a, b in zip(round_["agent"], round_["action"], strict=True)}
        for agent, action in zip(round_["agent"], round_["action"], strict=True):
            value = market.values[agent - 1]
            own = [_lost(bids | {agent: bid}, agent, reserves[number], value) for bid in GRID]
            rows.setdefault(agent, []).append(own)
            played.setdefault(agent, []).append(action)
    return {agent: (np.array(rows[agent]), np.array(played[agent])) for agent in rows}


def _lost(bids: dict[int, float], agent: int, reserve: float, value: float) -> float:
    highest = max(bids.values())
    winner = min(number for number, bid in bids.items() if bid == highest)
    gain = value - highest if winner == agent and highest >= reserve else 0.0
    return (1 - gain) / 2
