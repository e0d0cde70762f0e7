"""The fast path: cohorts as arrays against one agent at a time in plain Python, and its threads.

The reference takes from the model who an agent is (its own loss, its own coefficients, its stay)
and what was broadcast, and measures its own log by the definitions.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.agents.responses import BestResponse
from regretless.market.core.arrays import Array
from regretless.market.game.round import play_round
from regretless.market.game.seats import is_taking_part, present_cohorts
from regretless.market.model import MarketModel
from regretless.market.records import Round, one_hot
from regretless.market.regret.ledger import MEASURES, Ledger

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


def drawn_market(seed: int, folder: Path) -> MarketModel:
    """Draw cohorts, alike or not, coming and going, and outcomes and seasons from a small table."""
    rng = np.random.default_rng(seed)
    days = pd.DataFrame(rng.random((15, 2)), columns=["rain", "sun"])
    days.assign(season=rng.integers(2, size=15)).to_csv(folder / "days.csv", index=False)
    actions = int(rng.choice([2, 3, 4, 9]))
    cohorts = [worlds.cohort("hosts", 2, actions)]  # somebody is there from the start
    for place in range(rng.integers(1, 4)):
        count, response = int(rng.integers(1, 7)), str(rng.choice(["best-response", *NAIVE]))
        utility = "linear" if response in NAIVE else str(rng.choice(sorted(UTILITIES)))
        own = worlds.cohort(f"c{place}", count, actions, utility, response=response)
        own["parameters"] = UTILITIES[utility]
        more: list[worlds.Raw] = [
            {"types": int(rng.integers(1, count + 1))},
            {"entry_rate": 0.4, "exit_rate": 0.2},
            {"policies": ["season"], "measures": list(MEASURES[: rng.integers(4, 6)])},
        ]
        for keys in more:
            own |= keys if rng.random() < 0.5 else {}
        own |= {"eta": float(rng.choice([1.0, 12.0]))} if response == "quantal" else {}
        cohorts.append(own)
    keys = {"file": str(folder / "days.csv"), "outcomes": ["rain", "sun"], "context": ["season"]}
    heard = {"kind": str(rng.choice(["running-mean", "last-value"]))}
    given = {"data": keys, "policy": {"season": POLICY}, "forecaster": heard, "seed": seed}
    return worlds.scenario(*cohorts, rounds=int(rng.integers(3, 16)), **given).build()


def check_round(cohort: Any, played: Round, place: int, logs: list[list[Any]]) -> None:
    """Play a round for every agent who was there, on its own, and compare what it did."""
    decision: Any = played.decisions[place]
    forecast, there = played.forecasts[cohort.block], is_taking_part(decision, cohort)
    suggested = [int(policy(played.context)) for policy in cohort.policies]
    for number, (row, log) in enumerate(zip(cohort.row_of.tolist(), logs, strict=True)):
        if not there[number]:
            assert decision.actions[number] == -1
            continue
        loss, (offset, weights) = cohort.loss[row], cohort.coefficients
        heard = offset[row] + weights[row] @ forecast.statistics
        if cohort.rule != "best-response":
            heard = loss.losses(forecast.label)
        table, strategy = decision.predicted[row], decision.probabilities[row]
        assert table == pytest.approx(heard, abs=CLOSE)
        if cohort.rule == "quantal":
            powers = np.exp(-cohort.response.eta * (heard - heard.min()))
            assert strategy == pytest.approx(powers / powers.sum(), abs=CLOSE)
        else:
            assert decision.actions[number] == table.argmin()
            assert strategy.tolist() == np.eye(len(table))[table.argmin()].tolist()
        log.append((loss.losses(played.outcome), strategy, table, suggested))


def check_sums(ledger: Ledger, row: int, log: list[Any]) -> None:
    assert np.broadcast_to(ledger.rounds, len(ledger.count))[row] == len(log)
    if log:
        losses, play, predicted, suggested = map(np.array, zip(*log, strict=True))
        wrong, suggested = predicted - losses, suggested.astype(int)
        followed = play.T @ np.take_along_axis(wrong, suggested, axis=1)
        assert ledger.surprise_fixed[row] == pytest.approx(play.T @ wrong, abs=CLOSE)
        assert ledger.surprise_followed[row] == pytest.approx(followed, abs=CLOSE)
        constants = np.tile(np.arange(losses.shape[1])[:, None], len(log))
        policies = np.concatenate([constants, suggested.T])
        for measure in ledger.measures:
            known = worlds.measured(measure, losses, play, policies)
            assert ledger.regret(measure)[row] == pytest.approx(known, abs=CLOSE)


@pytest.mark.parametrize("seed", range(40))
def test_cohorts_do_what_every_agent_would_alone(seed: int, tmp_path: Path) -> None:
    model = drawn_market(seed, tmp_path)
    cohorts = model.game.cohorts
    logs: list[list[list[Any]]] = [[[] for _ in cohort.row_of] for cohort in cohorts]
    for _ in range(model.rounds):
        played = play_round(model.game)
        for place, cohort, _, _ in present_cohorts(cohorts, played):
            check_round(cohort, played, place, logs[place])
    for cohort, own in zip(cohorts, logs, strict=True):
        for row, log in zip(cohort.row_of, own, strict=True):
            check_sums(cohort.ledger, int(row), log)


def test_a_fork_starts_threads_of_its_own() -> None:
    program = """
import os
import numpy as np
from regretless.market.core import compiled
from regretless.market.best_response import best_response
compiled.MAX_THREADS = 2
table = np.random.default_rng(0).random((30_000, 3))
here = best_response(table)
child = os.fork()
if child == 0:
    os._exit(int((best_response(table) != here).any()))
raise SystemExit(os.waitpid(child, 0)[1])
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0


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
