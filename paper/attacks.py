"""The strongest attacks found on learners and followers, beside each one's cap.

The game is that of Deng, Schneider and Sivan (2019), in which commitment is worth 0 and payoffs are
from -2 to 2. A line is a cohort: what the leader takes per round beyond that, by

    commitment   the best margin of those that ``regretless train`` tries
    history      a plan found by CMA-ES that depends on the phase of the run alone
    mixture      one that depends on announced play and forecast, too (``train --sees mixture``)
    brute force  the best of all plans that play one outcome for certain in each of eight phases,
                 where plans can be played side by side

and the greatest of these, with its 95 % interval, the cap of the attackers tried (kappa times the
swap regret of the judged runs) and the cap of any attacker by the theorem, "none" without one.
Every plan is judged in runs with seeds that no search had. Nobody is random but the learners and
the outcomes that a plan draws.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import load
from regretless.market.core.arrays import Array
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.executor.choice import mapper
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.training.attack import Rehearsals, prepare_attacks
from regretless.scenarios.training.train import FIRST_JUDGING_SEED, TrainingOptions, train

GAME = "beating-mean-based-learners"
SEED = 1
ROUNDS = 300
ROUNDS_OF_LONGER_RUNS = 1000
N_PHASES = 8
JUDGING_RUNS = 20
CHOOSING_RUNS = 4  # in which the best plan of certain outcomes is chosen
BUDGET_SIDE_BY_SIDE = 512  # training runs against learners whose runs are played together
BUDGET_ONE_BY_ONE = 48  # against all others
ATTACKED: dict[str, dict[str, Any]] = {  # by name, what a cohort of the game answers with
    "followers of the forecast": {"response": "best-response"},
    "Hedge": {"response": "hedge"},
    "Blum-Mansour": {"response": "blum-mansour"},
    "swap regret matching": {"response": "swap-regret-matching"},
    "Q-learning": {"response": "q-learning"},
    "Hedge over models and actions": {"response": "hedge", "advice": ["panel", "actions"]},
    "a coin": {"response": "coin"},
    "always the first action": {"response": "always"},
}
# Those against whom all plans of a generation are played together, in longer runs.
SIDE_BY_SIDE = ("Hedge", "Blum-Mansour", "swap regret matching", "Q-learning", "a coin")
ATTACKS = ("commitment", "history", "mixture", "brute force")


def game_against(name: str, rounds: int) -> Scenario:
    """Return the game of so many rounds against one cohort of ``ATTACKED``."""
    cohort = {"name": "attacked", "utility": "game", "actions": 3} | ATTACKED[name]
    return load(GAME, rounds=rounds, cohort=[cohort], seed=SEED)


@dataclass(frozen=True)
class JudgedAttack:
    """What an attack took in the judged runs: surplus, its interval, and the cap of these runs."""

    surplus: float
    low: float
    high: float
    cap: float


def measure_attacks(name: str, rounds: int | None = None) -> Iterator[Row]:
    """Attack one cohort in every way; yield its line."""
    scenario = game_against(name, rounds or ROUNDS)
    plays_side_by_side = _plays_side_by_side(scenario)
    budget = BUDGET_SIDE_BY_SIDE if plays_side_by_side else BUDGET_ONE_BY_ONE
    judged: dict[str, JudgedAttack] = {}
    certified = np.nan
    for sees in ("history", "mixture"):
        options = TrainingOptions("cma", budget, phases=N_PHASES, jobs=1, sees=sees)
        with tempfile.TemporaryDirectory() as folder:
            row = train(scenario, options, Path(folder) / "attack").iloc[0]
        judged[sees] = JudgedAttack(row["surplus"], row["low"], row["high"], row["cap"])
        if sees == "history":
            certified = row["certified"]
            judged["commitment"] = JudgedAttack(
                row["commitment"],
                row["commitment_low"],
                row["commitment_high"],
                row["commitment_cap"],
            )
    if plays_side_by_side:
        judged["brute force"] = best_pure_plan(scenario)
    line: Row = {"cohort": name, "rounds": scenario.spec.rounds}
    for attack in ATTACKS:
        line[attack] = judged[attack].surplus if attack in judged else np.nan
    name_of_strongest = max(judged, key=lambda attack: judged[attack].surplus)
    strongest = judged[name_of_strongest]
    line["strongest"] = strongest.surplus
    line["low"] = strongest.low
    line["high"] = strongest.high
    line["by"] = name_of_strongest
    line["cap, tried"] = strongest.cap
    line["cap, any"] = certified
    yield line


def _plays_side_by_side(scenario: Scenario) -> bool:
    """Whether plans against the only cohort are rows of one learner."""
    (attack,) = prepare_attacks(scenario, phases=N_PHASES, looking=False, cohort=None)
    with mapper(1) as workers:
        return Rehearsals(attack, workers).together


def best_pure_plan(scenario: Scenario) -> JudgedAttack:
    """Judge the best plan of certain outcomes."""
    (attack,) = prepare_attacks(scenario, phases=N_PHASES, looking=False, cohort=None)
    plans = pure_plans(attack.shape[2])
    seeds = range(FIRST_JUDGING_SEED, FIRST_JUDGING_SEED + JUDGING_RUNS)
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        paid = [rehearsals.paid(plans, SEED + number) for number in range(CHOOSING_RUNS)]
        best = plans[int(np.mean(paid, axis=0).argmax())]
        scores = pd.DataFrame(rehearsals.scores(best, list(seeds)))
    surplus, low, high = interval(scores["surplus"].to_numpy())
    return JudgedAttack(surplus, low, high, cap=float(scores["cap"].mean()))


def pure_plans(n_outcomes: int) -> Array:
    """Return all plans (n, P, 1, m) that play one of m outcomes for certain in each phase."""
    choices = np.array(list(product(range(n_outcomes), repeat=N_PHASES)))
    return np.asarray(np.eye(n_outcomes)[choices][:, :, None])


def lines(table: pd.DataFrame) -> str:
    """Lay the lines out; a cap or an attack that there is not is ``none``."""
    return table.to_string(index=False, na_rep="none", float_format="{:.3f}".format)


TABLES = {
    "attacks": Table(
        measure_attacks,
        by=["cohort", "rounds"],
        instances=lambda: list(ATTACKED),
        rounds=ROUNDS,
        layout=lines,
    ),
    "attacks-followers": Table(
        measure_attacks,
        by=["cohort", "rounds"],
        instances=lambda: ["followers of the forecast"],
        rounds=ROUNDS_OF_LONGER_RUNS,
        layout=lines,
    ),
    "attacks-learners": Table(
        measure_attacks,
        by=["cohort", "rounds"],
        instances=lambda: list(SIDE_BY_SIDE),
        rounds=ROUNDS_OF_LONGER_RUNS,
        layout=lines,
    ),
}
