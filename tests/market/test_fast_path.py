"""The fast path: cohorts as arrays against one agent at a time in plain Python, and its threads.

The reference takes from the model who an agent is (its own loss, its own coefficients, its stay)
and what was broadcast, plays with Python's floats and loops, and adds up its own log by the
formulas at the head of ``market.regret.ledger``.
"""

import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.agents.responses import BestResponse
from regretless.market.core.arrays import Array
from regretless.market.game.round import play_round
from regretless.market.game.seats import attending, present
from regretless.market.losses import Linear, Loss, SeparablePower, base, unique_losses
from regretless.market.model import MarketModel
from regretless.market.records import Round, one_hot
from regretless.market.regret.ledger import MEASURES

UTILITIES: dict[str, dict[str, Any]] = {
    "linear": {},
    "ces": {"rho": {"choices": [0.3, 0.9]}},
    "cara": {"risk_aversion": [0.5, 3.0]},
    "mean-variance": {"risk_aversion": [0.5, 2.0]},
    "lp-target": {},
    "newsvendor": {"underage": [1.0, 3.0]},
}
NAIVE = ["certainty-equivalent", "quantal"]  # they hear labels
POLICY = {"kind": "steps", "feature": "season", "edges": [0.5], "actions": [0, 1]}
CLOSE = 1e-9  # between sums in another order; the actions must agree exactly


@st.composite
def markets(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a scenario: one to three cohorts, alike or not, coming and going, with policies."""
    actions = draw(st.sampled_from([2, 3, 4, 9]))
    cohorts = [_cohort(draw, i, actions) for i in range(draw(st.integers(1, 3)))]
    cohorts.append({"name": "hosts", "utility": "linear", "count": 2, "actions": actions})
    cohorts[-1]["response"] = "best-response"  # somebody is there from the start
    return {
        "name": "fast",
        "rounds": draw(st.integers(3, 15)),
        "seed": draw(st.integers(0, 2**31)),
        "cohort": cohorts,
        "policy": {"season": POLICY},
        "forecaster": {"kind": draw(st.sampled_from(["running-mean", "last-value"]))},
    }


def _cohort(draw: st.DrawFn, place: int, actions: int) -> dict[str, Any]:
    count = draw(st.integers(1, 6))
    table: dict[str, Any] = {"name": f"c{place}", "count": count, "actions": actions}
    table["response"] = draw(st.sampled_from(["best-response", *NAIVE]))
    served = ["linear"] if table["response"] in NAIVE else sorted(UTILITIES)
    table["utility"] = draw(st.sampled_from(served))
    if table["response"] == "quantal":
        table["eta"] = draw(st.sampled_from([1.0, 12.0]))
    table["parameters"] = UTILITIES[table["utility"]]
    if draw(st.booleans()):
        table["types"] = draw(st.integers(1, count))
    if draw(st.booleans()):
        table |= {"entry_rate": 0.4, "exit_rate": 0.2}
    if draw(st.booleans()):
        table |= {"policies": ["season"], "measures": list(MEASURES)}
    return table


def built(raw: dict[str, Any], folder: Path) -> MarketModel:
    """Build a market whose outcomes and seasons are read from a small table."""
    rng = np.random.default_rng(raw["seed"])
    data = folder / "days.csv"
    rows = [
        f"{a:.3f},{b:.3f},{s}"
        for a, b, s in zip(*rng.random((2, 15)), rng.integers(2, size=15), strict=True)
    ]
    data.write_text("\n".join(["rain,sun,season", *rows]) + "\n", encoding="utf-8")
    told = {"file": "days.csv", "outcomes": ["rain", "sun"], "context": ["season"]}
    return worlds.told(raw | {"data": told}, origin=folder).build()


class Naive:
    """One agent on its own: a single loss, and its offset and weights in the basis."""

    def __init__(self, loss: Loss, offset: list[float], weights: list[list[float]]) -> None:
        self.loss, self.offset, self.weights = loss, offset, weights
        self.log: list[tuple[list[float], list[float], list[float], list[int]]] = []

    def expected(self, point: list[float]) -> list[float]:
        """Losses in the basis, term by term in index order."""
        table = []
        for offset, row in zip(self.offset, self.weights, strict=True):
            total = offset
            for weight, coordinate in zip(row, point, strict=True):
                total += weight * coordinate
            table.append(total)
        return table

    def suffered(self, outcome: Array) -> list[float]:
        values: list[float] = self.loss.losses(outcome).tolist()
        return values


def logit(table: list[float], eta: float) -> list[float]:
    powers = [math.exp(-eta * (loss - min(table))) for loss in table]
    return [power / sum(powers) for power in powers]


def naives(cohort: Any) -> list[Naive]:
    offset, weights = cohort.coefficients
    return [
        Naive(cohort.loss[int(k)], offset[k].tolist(), weights[k].tolist()) for k in cohort.row_of
    ]


def followed(cohort: Any, agents: list[Naive], played: Round, place: int) -> None:
    """Play a round for every agent who was there and compare what it did."""
    decision: Any = played.decisions[place]
    forecast = played.forecasts[cohort.block]
    suggested = [int(policy(played.context)) for policy in cohort.policies]
    there = attending(decision, cohort)
    for number, agent in enumerate(agents):
        if not there[number]:
            assert decision.actions[number] == -1
            continue
        if cohort.rule == "best-response":
            table = agent.expected(forecast.statistics.tolist())
        else:
            table = agent.suffered(forecast.label)
        row = int(cohort.row_of[number])
        assert decision.predicted[row].tolist() == pytest.approx(table, abs=CLOSE)
        if cohort.rule == "quantal":
            strategy = logit(table, cohort.response.eta)
            assert decision.probabilities[row].tolist() == pytest.approx(strategy, abs=CLOSE)
        else:
            mine = decision.predicted[row].tolist() if cohort.rule != "best-response" else table
            strategy = [float(a == mine.index(min(mine))) for a in range(len(table))]
            assert decision.actions[number] == strategy.index(1.0)
            assert decision.probabilities[row].tolist() == strategy
        agent.log.append((strategy, table, agent.suffered(played.outcome), suggested))


@settings(max_examples=40)
@given(raw=markets())
def test_cohorts_do_what_every_agent_would_alone(
    raw: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Same actions, same strategies, same sums, same regret."""
    model = built(raw, tmp_path_factory.mktemp("market"))
    cohorts = model.game.cohorts
    agents = [naives(cohort) for cohort in cohorts]
    for _ in range(raw["rounds"]):
        played = play_round(model.game)
        for place, cohort, _, _ in present(cohorts, played):
            followed(cohort, agents[place], played, place)
    for cohort, own in zip(cohorts, agents, strict=True):
        for agent, row in zip(own, cohort.row_of, strict=True):
            check(cohort.ledger, int(row), agent)


def check(ledger: Any, row: int, agent: Naive) -> None:
    assert np.broadcast_to(ledger.rounds, len(ledger.count))[row] == len(agent.log)
    if not agent.log:
        return
    play, predicted, losses, suggested = map(np.array, zip(*agent.log, strict=True))
    fixed = play.T @ losses
    assert ledger.fixed[row] == pytest.approx(fixed, abs=CLOSE)
    assert ledger.surprise_fixed[row] == pytest.approx(play.T @ (predicted - losses), abs=CLOSE)
    for j, told in enumerate(suggested.T):
        followed = play.T @ losses[np.arange(len(told)), told]
        assert ledger.followed[row][:, j] == pytest.approx(followed, abs=CLOSE)
        for c in range(len(fixed)) if len(ledger.contextual) else ():
            here = told == c
            kept = ledger.contextual[row][j, c]
            assert kept == pytest.approx(play[here].T @ losses[here], abs=CLOSE)
    swap = (np.diag(fixed) - fixed.min(1)).sum() / len(agent.log)
    assert ledger.regret("swap")[row] == pytest.approx(swap, abs=CLOSE)


def test_a_fork_starts_threads_of_its_own() -> None:
    program = """
import os
import numpy as np
from regretless.market.core import compiled
from regretless.market.response import best_response
compiled.LANES = 2
table = np.random.default_rng(0).random((30_000, 3))
here = best_response(table)
child = os.fork()
if child == 0:
    os._exit(int((best_response(table) != here).any()))
raise SystemExit(os.waitpid(child, 0)[1])
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 40),
    actions=st.integers(1, 18),
    shared=st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_many_outcomes_and_one_at_a_time(
    seed: int, rows: int, actions: int, *, shared: bool
) -> None:
    """The compiled sum and the broadcast one agree to the last bit."""
    rng = np.random.default_rng(seed)
    shape = rows, actions
    exponent = np.full(rows, 0.7) if shared else rng.uniform(0.3, 2, rows)
    for loss in (
        Linear(rng.normal(size=(*shape, 4)), rng.normal(size=shape)),
        SeparablePower(rng.normal(size=(*shape, 4)), exponent, offset=rng.normal(size=shape)),
    ):
        outcomes = rng.random((3, 4))
        one_by_one = np.array([loss.losses(outcome) for outcome in outcomes])
        assert (one_by_one == loss.losses(outcomes)).all()


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 60))
@settings(max_examples=50, deadline=None)
def test_equal_losses_are_found_by_hash_as_by_order(seed: int, rows: int) -> None:
    """In order of first appearance; minus zero is zero."""
    rng = np.random.default_rng(seed)
    weights = rng.choice([-1.0, -0.0, 0.0], (rows, 2, 2))
    loss = SeparablePower(weights, rng.choice([1.0, 2.0], rows))
    kinds = [
        (*row.ravel().tolist(), power) for row, power in zip(weights, loss.exponent, strict=True)
    ]
    first = list(dict.fromkeys(kinds))
    types, type_of = unique_losses(loss)
    assert len(types) == len(first)
    assert type_of.tolist() == [first.index(kind) for kind in kinds]
    assert (types.weights == np.array([kind[:4] for kind in first]).reshape(-1, 2, 2)).all()


def test_losses_whose_hashes_collide_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that are all alike do not see which of two weights is which."""
    alike = SimpleNamespace(integers=lambda _, size, dtype: np.zeros(size, dtype))
    monkeypatch.setattr(base, "stream", lambda *_: alike)
    loss = Linear([[[1.0, 2.0]], [[2.0, 1.0]]])
    types, type_of = unique_losses(loss)
    assert types is loss
    assert type_of.tolist() == [0, 1]


class Contrary(BestResponse):
    """Inherits from the best response and plays otherwise: the worst action half of the time."""

    def play(self, predicted: Array) -> Array:
        return (one_hot(predicted.argmax(1), 3) + super().play(predicted)) / 2


@pytest.mark.parametrize("utility", ["linear", "ces"])
def test_a_subclass_is_played_by_its_own_strategy(utility: str) -> None:
    table = {"name": "c", "utility": utility, "count": 5, "actions": 3}
    game = worlds.scenario(table | {"parameters": UTILITIES[utility]}, rounds=4).build().game
    (cohort,) = game.cohorts
    play_round(game)
    cohort.response = Contrary()
    for _ in range(3):
        played = play_round(game)
        (decision,), (losses,) = played.decisions, played.losses
        strategy = Contrary().play(decision.predicted)
        assert decision.probabilities.tolist() == strategy.tolist()
        assert losses.tolist() == cohort.loss.losses(played.outcome).tolist()
