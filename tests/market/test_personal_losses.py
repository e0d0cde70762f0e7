"""Markets in which each agent has losses of its own: regrets, learners, logs, and what is refused.

The market is a first-price auction of a user's own. Plain Python clears every round of its log
again for each bid.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless import UserError, exploitability, swap_regret
from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.market.markets import Market
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.run import Options, run

Table = np.ndarray[Any, Any]
GRID = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
AFFORDABLE = 0.5  # the highest bid within anybody's means
VALUES = np.array([0.9, 0.9, 0.8, 0.8, 0.7, 0.6, 0.5, 0.5, 1.0])
BIDDERS: dict[str, dict[str, Any]] = {
    "followers": {"count": 2},
    "hedgers": {"count": 2, "response": "hedge"},
    "gamblers": {"count": 1, "response": "exp3", "enters": 10},
    "poor": {"count": 1, "budget_constraint": True},
    "guests": {"count": 2, "entry_rate": 0.2, "exit_rate": 0.05},
    "scripted": {"count": 1, "response": "own-bidder"},
}
LEARNERS, POOR, SCRIPTED = (3, 4), 6, 9  # numbers of agents


@register.market("own-first-price")
class FirstPrice(Market):
    """The highest bid wins at its price, if it is at least the reserve; ties go to the first."""

    def bids(self, decisions: Any) -> Table:
        pairs = zip(self.cohorts, decisions, strict=True)
        absent = [np.full(len(c.row_of), -1) if d is None else d.actions for c, d in pairs]
        actions = np.concatenate(absent)
        return np.where(actions < 0, -1.0, GRID[actions])

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        """Return the highest bid; the fundamental is the reserve."""
        self.reserve = fundamental[0]
        self.last = {"reserve": fundamental}
        return np.array([max(self.bids(decisions).max(), 0.0)])

    def losses(self, decisions: Any) -> Any:
        """Return (1 - gain) / 2 of every bid of every agent."""
        bids, tables = self.bids(decisions), []
        for i, value in enumerate(VALUES):
            ahead, behind = bids[:i].max(initial=-1.0), bids[i + 1 :].max(initial=-1.0)
            wins = (self.reserve <= GRID) & (ahead < GRID) & (behind <= GRID)
            tables.append((1 - wins * (value - GRID)) / 2)
        sizes = [len(cohort.row_of) for cohort in self.cohorts]
        return np.split(np.array(tables), np.cumsum(sizes)[:-1])

    def affordable(self, place: int) -> Any:
        return np.tile(GRID <= AFFORDABLE, (len(self.cohorts[place].row_of), 1))


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


def auction() -> Scenario:
    form = {"weights": GRID[:, None].tolist(), "gains": [0.0, -0.03, -0.12, -0.28, -0.5]}
    common = {"actions": 5, "utility": "affine", "parameters": form, "response": "best-response"}
    cohorts = [{"name": name} | common | own for name, own in BIDDERS.items()]
    keys = {"adversary": {"kind": "iid", "outcomes": 1}, "market": {"kind": "own-first-price"}}
    keys |= {"forecaster": {"models": ["running-mean"]}, "windows": {"every": 10}}
    return worlds.scenario(*cohorts, rounds=40, **keys)


def lost(bids: dict[int, float], agent: int, reserve: float) -> float:
    highest = max(bids.values())
    winner = min(number for number, bid in bids.items() if bid == highest)
    wins = winner == agent and highest >= reserve
    return (1 - (VALUES[agent - 1] - highest if wins else 0.0)) / 2


def by_hand(model: MarketModel) -> dict[int, tuple[Table, Table]]:
    """Clear every logged round again for each bid: losses (T, 5), actions (T,), by the agent."""
    reserves = model.rounds_frame().set_index("round")["reserve_0"]
    found: dict[int, list[tuple[list[float], int]]] = {}
    for number, played in model.regret_frame().groupby("round"):
        bids = dict(zip(played["agent"], GRID[played["action"]], strict=True))
        for agent, action in zip(played["agent"], played["action"], strict=True):
            row = [lost(bids | {agent: bid}, agent, reserves[number]) for bid in GRID]
            found.setdefault(agent, []).append((row, action))
    logs = {agent: zip(*log, strict=True) for agent, log in found.items()}
    return {agent: (np.array(rows), np.array(actions)) for agent, (rows, actions) in logs.items()}


def charged(agent: int, losses: Table, actions: Table) -> tuple[Table, Table]:
    """Return the losses by hand as the ledger is charged them, and the mixed strategies."""
    if agent == POOR:  # what it cannot afford is worth what it played
        own = losses[np.arange(len(losses)), actions][:, None]
        return np.where(GRID <= AFFORDABLE, losses, own), actions
    if agent not in LEARNERS:
        return losses, actions
    learner, distributions = register.learner["hedge"](), []
    learner.start(1, len(GRID), horizon=len(losses))
    for row, action in zip(losses, actions, strict=True):
        distributions.append(learner.play()[0].copy())
        learner.learn(row[None], np.array([action]))
    return losses, np.array(distributions)


def test_measures_are_those_of_clearing_again_for_each_bid() -> None:
    """Regrets, also of a window; exploitability of the joint of actions and vectors of losses."""
    model = worlds.played(auction())
    table = model.agents_frame().set_index("agent")
    hand, windows, exploited = by_hand(model), model.windows_frame(), []
    assert set(hand) == set(table[table["mean_loss"].notna()].index)
    assert len(hand) >= 8
    bidder: Any = model.game.cohorts[-1]
    assert bidder.agents[0].told == pytest.approx(hand[SCRIPTED][0])
    for agent, logged in hand.items():
        losses, played = charged(agent, *logged)
        own = table.loc[agent]
        found = own[["external_regret", "swap_regret", "decision_swap_regret"]].to_numpy(float)
        assert found == pytest.approx(worlds.regrets(losses, played)[1:])
        if len(losses) == 40:
            last = windows[(windows["agent"] == agent) & (windows["last"] == 39)]
            regret = swap_regret(losses[-10:], played[-10:])
            assert last["swap_regret"].item() == pytest.approx(regret)
        distributions = played if played.ndim == 2 else np.eye(losses.shape[1])[played]
        vectors, which = np.unique(losses, axis=0, return_inverse=True)
        joint = np.zeros(vectors.shape)
        np.add.at(joint, which.ravel(), distributions / len(distributions))
        for name, tolerance in (("exploitability_exact", 0.0), ("exploitability", 0.01)):
            exploited.append(exploitability(joint, vectors, tolerance))
            assert own[name] == pytest.approx(exploited[-1], abs=1e-6)
    assert max(exploited) > 0.1


def test_nothing_is_promised_and_a_line_says_why(tmp_path: Path) -> None:
    run(auction(), Options(tmp_path / "run"))
    agents = pd.read_parquet(tmp_path / "run/agents.parquet")
    assert (agents["guarantee"] == "none").all()
    assert agents[["bound", "bound_from_variation"]].isna().all(axis=None)
    assert agents["swap_regret"].notna().sum() >= 8
    followers = agents[agents["cohort"] == "followers"]
    assert (followers["decision_swap_regret"] <= followers["bound_from_bias"] + 1e-12).all()
    told = json.dumps(json.loads((tmp_path / "run/manifest.json").read_text(encoding="utf-8")))
    assert "followers: no guarantee, since the losses of each agent depend on more" in told


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda own: [100 * table for table in own], r"50.0; for cohort.followers return "),
        (lambda own: [table[:1] for table in own], r"an array \(1, 5\); for cohort.foll"),
        (np.concatenate, r"array.*; return a list with an array, or None, for each of 6"),
    ],
)
def test_losses_that_do_not_fit_are_named(wrong: Any, says: str) -> None:
    class Wrong(FirstPrice):
        """Returns what is none of its agents' losses."""

        def losses(self, decisions: Any) -> Any:
            return wrong(super().losses(decisions))

    model = auction().build()
    model.replace(market=Wrong(model.game.cohorts, np.random.default_rng(0)))
    with pytest.raises(UserError, match=rf"Wrong.losses returned {says}"):
        model.run()
