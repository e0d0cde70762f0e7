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

Plans are searched in runs of at most ``MAX_SEARCHED_ROUNDS`` rounds. Against longer runs, what was
found there is judged at their own length: the phases of a plan are shares of a run. Commitments,
whose best margin depends on the length, are rehearsed at their own length, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless import load
from regretless.market.core.arrays import Array
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.executor.choice import mapper
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.training.attack import Attack, Rehearsals, prepare_attacks
from regretless.scenarios.training.train import (
    FIRST_JUDGING_SEED,
    TrainingOptions,
    prepare_trainings,
)

GAME = "beating-mean-based-learners"
SEED = 1
ROUNDS = 300
ROUNDS_OF_LONGER_RUNS = 1000
MAX_SEARCHED_ROUNDS = 1000
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
    n_rounds = rounds or ROUNDS
    plays_side_by_side = _plays_side_by_side(game_against(name, n_rounds))
    budget = BUDGET_SIDE_BY_SIDE if plays_side_by_side else BUDGET_ONE_BY_ONE
    judged: dict[str, JudgedAttack] = {}
    certified = np.nan
    for sees in ("history", "mixture"):
        row = train_and_judge(name, n_rounds, sees=sees, budget=budget)
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
        judged["brute force"] = best_pure_plan(name, n_rounds)
    line: Row = {"cohort": name, "rounds": n_rounds}
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


def train_and_judge(name: str, rounds: int, *, sees: str, budget: int) -> dict[str, Any]:
    """Search for a plan in so many runs; return the row of ``regretless train`` for these rounds.

    Up to ``MAX_SEARCHED_ROUNDS`` it is what ``regretless train`` finds.
    """
    options = TrainingOptions("cma", budget, phases=N_PHASES, jobs=1, sees=sees)
    (training,) = prepare_trainings(game_against(name, rounds), options)
    searched = _searched_game(name, rounds, sees=sees)
    with mapper(1) as workers:
        training.rehearse_commitments(Rehearsals(training.attack, workers), SEED)
        rehearsals = Rehearsals(searched, workers)
        while training.paid.size + training.search.generation <= budget:
            training.step(rehearsals, SEED)
        return training.judge(workers, SEED).row


def _searched_game(name: str, rounds: int, *, sees: str = "history") -> Attack:
    """Return the attack in whose runs plans are searched, which are not longer than the maximum."""
    scenario = game_against(name, min(rounds, MAX_SEARCHED_ROUNDS))
    (attack,) = prepare_attacks(scenario, phases=N_PHASES, looking=False, cohort=None, sees=sees)
    return attack


def _plays_side_by_side(scenario: Scenario) -> bool:
    """Whether plans against the only cohort are rows of one learner."""
    (attack,) = prepare_attacks(scenario, phases=N_PHASES, looking=False, cohort=None)
    with mapper(1) as workers:
        return Rehearsals(attack, workers).together


def best_pure_plan(name: str, rounds: int) -> JudgedAttack:
    """Judge the best plan of certain outcomes."""
    searched = _searched_game(name, rounds)
    (attack,) = prepare_attacks(
        game_against(name, rounds), phases=N_PHASES, looking=False, cohort=None
    )
    plans = pure_plans(attack.shape[2])
    seeds = range(FIRST_JUDGING_SEED, FIRST_JUDGING_SEED + JUDGING_RUNS)
    with mapper(1) as workers:
        rehearsals = Rehearsals(searched, workers)
        paid = [rehearsals.paid(plans, SEED + number) for number in range(CHOOSING_RUNS)]
        best = plans[int(np.mean(paid, axis=0).argmax())]
        scores = pd.DataFrame(Rehearsals(attack, workers).scores(best, list(seeds)))
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
        min_rounds=N_PHASES,
        why_min_rounds=f"a plan has {N_PHASES} phases",
    ),
    "attacks-followers": Table(
        measure_attacks,
        by=["cohort", "rounds"],
        instances=lambda: ["followers of the forecast"],
        rounds=ROUNDS_OF_LONGER_RUNS,
        layout=lines,
        min_rounds=N_PHASES,
        why_min_rounds=f"a plan has {N_PHASES} phases",
    ),
    "attacks-learners": Table(
        measure_attacks,
        by=["cohort", "rounds"],
        instances=lambda: list(SIDE_BY_SIDE),
        rounds=ROUNDS_OF_LONGER_RUNS,
        layout=lines,
        min_rounds=N_PHASES,
        why_min_rounds=f"a plan has {N_PHASES} phases",
    ),
}
