"""The fast path: cohorts as arrays against one agent at a time in plain Python, and its threads.

The reference takes from the model who an agent is (its own loss, its own coefficients, its stay)
and what was broadcast, and measures its own log by the definitions.
"""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from log_measures import measure_log
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless.agents.cohorts.responding import RespondingCohort
from regretless.agents.responses import BestResponse
from regretless.market.core.arrays import Array, Indices
from regretless.market.game.round import play_round
from regretless.market.game.seats import is_taking_part, present_cohorts
from regretless.market.model import MarketModel
from regretless.market.records import Decision, Round, one_hot
from regretless.market.regret.ledger import MEASURES, Ledger

UTILITIES: dict[str, TomlTable] = {  # and their parameters
    "linear": {},
    "ces": {"rho": {"choices": [0.3, 0.9]}},
    "cara": {"risk_aversion": [0.5, 3.0]},
    "mean-variance": {"risk_aversion": [0.5, 2.0]},
    "lp-target": {},
    "newsvendor": {"underage": [1.0, 3.0]},
}
RESPONSES = ["best-response", "certainty-equivalent", "quantal"]
POLICY = {"kind": "steps", "feature": "season", "edges": [0.5], "actions": [0, 1]}
CLOSE = 1e-9  # between sums in another order; the actions must agree exactly


def draw_cohort(rng: np.random.Generator, name: str, actions: int) -> TomlTable:
    """Draw agents, alike or not, coming and going or not, with policies or without."""
    count = int(rng.integers(1, 7))
    response = str(rng.choice(RESPONSES))
    hears_labels = response != "best-response"
    utility = "linear" if hears_labels else str(rng.choice(sorted(UTILITIES)))
    cohort = cohort_table(name, count, actions, utility, response=response)
    cohort["parameters"] = UTILITIES[utility]
    if response == "quantal":
        cohort["eta"] = float(rng.choice([1.0, 12.0]))
    if rng.random() < 0.5:
        cohort["types"] = int(rng.integers(1, count + 1))
    if rng.random() < 0.5:
        cohort |= {"entry_rate": 0.4, "exit_rate": 0.2}
    if rng.random() < 0.5:
        measures = list(MEASURES[: rng.integers(4, 6)])
        cohort |= {"policies": ["season"], "measures": measures}
    return cohort


def draw_market(seed: int, folder: Path) -> MarketModel:
    """Draw cohorts, and outcomes and seasons from a small table."""
    rng = np.random.default_rng(seed)
    days = pd.DataFrame(rng.random((15, 2)), columns=["rain", "sun"])
    days["season"] = rng.integers(2, size=15)
    days.to_csv(folder / "days.csv", index=False)
    actions = int(rng.choice([2, 3, 4, 9]))
    always_there = cohort_table("hosts", 2, actions)
    names = [f"c{number}" for number in range(rng.integers(1, 4))]
    cohorts = [draw_cohort(rng, name, actions) for name in names]
    scenario = make_scenario(
        always_there,
        *cohorts,
        rounds=int(rng.integers(3, 16)),
        data={
            "file": str(folder / "days.csv"),
            "outcomes": ["rain", "sun"],
            "context": ["season"],
        },
        policy={"season": POLICY},
        forecaster={"kind": str(rng.choice(["running-mean", "last-value"]))},
        seed=seed,
    )
    return scenario.build()


class LogEntry(NamedTuple):
    """A round of an agent, by the definitions."""

    losses: Array  # (A,)
    strategy: Array  # (A,)
    predicted: Array  # (A,)
    suggested: list[int]  # by policy


def losses_heard(cohort: RespondingCohort, row: int, played: Round) -> Array:
    """Return what an agent expects each action to lose, by its rule."""
    forecast = played.forecasts[cohort.block]
    if cohort.rule == "best-response":
        offset, weights = cohort.coefficients
        return np.asarray(offset[row] + weights[row] @ forecast.statistics)
    return np.asarray(cohort.loss[row].losses(forecast.label))


def check_decision(cohort: RespondingCohort, decision: Decision, agent: int, played: Round) -> None:
    """Hold what an agent did in a round against what it would have done alone."""
    row = int(cohort.row_of[agent])
    strategy = decision.probabilities[row]
    expected_losses = losses_heard(cohort, row, played)
    predicted = decision.predicted[row]
    assert predicted == pytest.approx(expected_losses, abs=CLOSE)
    if cohort.rule == "quantal":
        excess = expected_losses - expected_losses.min()
        weights = np.exp(-cohort.response.eta * excess)
        assert strategy == pytest.approx(weights / weights.sum(), abs=CLOSE)
    else:
        best = predicted.argmin()
        assert decision.actions[agent] == best
        assert strategy.tolist() == np.eye(len(predicted))[best].tolist()


def no_entries_yet(cohort: RespondingCohort) -> list[list[LogEntry]]:
    return [[] for _ in cohort.row_of]


def play_beside_single_agents(model: MarketModel) -> list[list[list[LogEntry]]]:
    """Play every round for every agent who is there, on its own, and compare what it did.

    Returns the log of each agent of each cohort.
    """
    cohorts = model.game.cohorts
    logs = [no_entries_yet(cohort) for cohort in cohorts]
    for _ in range(model.rounds):
        played = play_round(model.game)
        for number, cohort, _, _ in present_cohorts(cohorts, played):
            decision = played.decisions[number]
            suggested = [int(policy(played.context)) for policy in cohort.policies]
            is_there = is_taking_part(decision, cohort)
            for agent, row in enumerate(cohort.row_of.tolist()):
                if not is_there[agent]:
                    assert decision.actions[agent] == -1
                    continue
                check_decision(cohort, decision, agent, played)
                losses = cohort.loss[row].losses(played.outcome)
                strategy = decision.probabilities[row]
                predicted = decision.predicted[row]
                entry = LogEntry(losses, strategy, predicted, suggested)
                logs[number][agent].append(entry)
    return logs


def check_ledger(ledger: Ledger, row: int, log: list[LogEntry]) -> None:
    """Hold a row's sums and regrets against the log of one of its agents."""
    assert np.broadcast_to(ledger.rounds, len(ledger.count))[row] == len(log)
    if not log:
        return
    losses, play, predicted, suggested = (np.array(column) for column in zip(*log, strict=True))
    suggested = suggested.astype(int)  # also of no policy
    surprise = predicted - losses
    surprise_of_policies = np.take_along_axis(surprise, suggested, axis=1)
    assert ledger.surprise_fixed[row] == pytest.approx(play.T @ surprise, abs=CLOSE)
    followed = play.T @ surprise_of_policies
    assert ledger.surprise_followed[row] == pytest.approx(followed, abs=CLOSE)
    constants = np.tile(np.arange(losses.shape[1])[:, None], len(log))
    policies: Indices = np.concatenate([constants, suggested.T])
    for measure in ledger.measures:
        expected = measure_log(measure, losses, play, policies)
        assert ledger.regret(measure)[row] == pytest.approx(expected, abs=CLOSE), measure


@pytest.mark.parametrize("seed", range(40))
def test_cohorts_do_and_regret_what_every_agent_would_alone(seed: int, tmp_path: Path) -> None:
    model = draw_market(seed, tmp_path)
    logs = play_beside_single_agents(model)
    for cohort, logs_of_cohort in zip(model.game.cohorts, logs, strict=True):
        for row, log in zip(cohort.row_of, logs_of_cohort, strict=True):
            check_ledger(cohort.ledger, int(row), log)


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
        worst = one_hot(predicted.argmax(1), predicted.shape[1])
        return (worst + super().play(predicted)) / 2


@pytest.mark.parametrize("utility", ["linear", "ces"])
def test_a_subclass_is_played_by_its_own_strategy(utility: str) -> None:
    table = cohort_table("c", 5, 3, utility, parameters=UTILITIES[utility])
    game = make_scenario(table, rounds=4).build().game
    (cohort,) = game.cohorts
    play_round(game)
    cohort.response = Contrary()
    for _ in range(3):
        played = play_round(game)
        (decision,) = played.decisions
        (losses,) = played.losses
        strategy = Contrary().play(decision.predicted)
        assert decision.probabilities.tolist() == strategy.tolist()
        assert losses.tolist() == cohort.loss.losses(played.outcome).tolist()
