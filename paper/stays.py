"""Regret of who enters, leaves and stays beside every bound that is printed for them.

Every game is a short market, drawn at random: the rounds, the outcomes and who sets them, two or
three cohorts with linear losses of two to four actions, when they enter and leave, how they draw
and respond, the events and weights of the forecaster, its reference and models, the rounds by which
outcomes are late, and whether there are events of intervals. Tables are read at a round within the
game and at its end, and so are the windows. A line has, for a bound and a kind of stay, how many
rows were compared, how many had a regret above the bound (of bounds for realised draws one run in
100 may), the greatest ratio of a regret to its bound, and how many times the regret the bound is in
the median, of regrets above 0. As many games are drawn as there are
rounds, from number ``first`` on: ``--first 400 --rounds 100`` plays games 400 to 499, so that a
long table can be played in parts.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from regretless.market.core.randomness import stream
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import validated

MIN_ROUNDS = 8  # of a game
MAX_ROUNDS = 200
SCALE_OF_ROUNDS = 25.0  # of their exponential distribution
ROUNDING = 1e-9  # of regrets and bounds per round
BOUNDS = {  # the columns that bound a regret, and that regret
    "bound": "decision_swap_regret",
    "bound_from_bias": "decision_swap_regret",
    "bound_from_variation": "decision_swap_regret",
    "regret_to_models_bound": "regret_to_models",
}
WINDOW = "bound of a window"
ADVERSARIES = ("iid", "drifting", "cyclic", "switching", "switching", "anti-forecast")
WEIGHTS = ("adaptive", "second-order", "exponential")
REFERENCES = ("none", "constant", "constant", "running-mean", "last-value")


def random_game(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a scenario, as a file would have it."""
    rounds = int(np.clip(rng.exponential(SCALE_OF_ROUNDS), MIN_ROUNDS, MAX_ROUNDS))
    events = str(rng.choice(["losses", "losses", "coordinates", "everyone"]))
    outcomes = 1 if events == "everyone" else int(rng.integers(1, 5))
    game = {
        "name": "stays",
        "rounds": rounds,
        "seed": int(rng.integers(2**31)),
        "adversary": random_adversary(rng, rounds, outcomes),
        "forecaster": random_forecaster(rng, events),
    }
    cohorts = [random_cohort(rng, "crowd", outcomes)]  # somebody is always there
    for name in ("first", "second")[: int(rng.integers(1, 3))]:
        passing = random_cohort(rng, name, outcomes) | random_stay(rng, rounds)
        cohorts.append(passing)
    game["cohort"] = cohorts
    if rng.random() < 1 / 2:
        game["windows"] = {"every": int(rng.integers(5, rounds + 1))}
    return game


def random_adversary(rng: np.random.Generator, rounds: int, outcomes: int) -> dict[str, Any]:
    """Draw who sets the outcomes; some change their mind within the game."""
    adversary: dict[str, Any] = {"kind": str(rng.choice(ADVERSARIES)), "outcomes": outcomes}
    if adversary["kind"] == "switching":
        adversary["length"] = int(rng.integers(3, max(rounds // 2, 5)))
        adversary["concentration"] = float(rng.choice([0.5, 20.0, 500.0]))
    if adversary["kind"] == "cyclic":
        adversary["period"] = float(rng.integers(10, 2 * rounds))
    return adversary


def random_forecaster(rng: np.random.Generator, events: str) -> dict[str, Any]:
    """Draw the forecaster's keys; ``events`` are given."""
    forecaster: dict[str, Any] = {
        "events": events,
        "weights": str(rng.choice(WEIGHTS)),
        "delay": int(rng.choice([0, 0, 1, 3])),
        "intervals": bool(rng.random() < 1 / 4),
        "models": [],
    }
    reference = str(rng.choice(REFERENCES))
    if reference != "none":
        forecaster["reference"] = {"kind": reference}
        forecaster["give_up"] = float(rng.choice([0.0, 0.1, 0.3, 1.0, 1.0, 1.0]))
    if rng.random() < 1 / 4:
        forecaster["models"] = ["running-mean", "last-value"]
    return forecaster


def random_cohort(rng: np.random.Generator, name: str, outcomes: int) -> dict[str, Any]:
    """Draw a cohort: its losses and its response."""
    actions = int(rng.integers(2, 5))
    cohort: dict[str, Any] = {
        "name": name,
        "utility": "linear",
        "count": int(rng.integers(1, 3)),
        "actions": actions,
        "measures": ["swap", "decision_swap"],
    }
    if rng.random() < 3 / 4:  # each action has an outcome of its own, if there are enough
        outcome_of_action = np.eye(outcomes)[rng.integers(outcomes, size=actions)]
        weights = outcome_of_action * rng.random((actions, 1))
        cohort["parameters"] = {"weights": weights.tolist()}
        cohort["count"] = 1
    response = str(rng.choice(["best-response", "best-response", "private", "quantal"]))
    if response != "best-response":
        cohort["response"] = response
    if response == "quantal":
        cohort["eta"] = float(rng.choice([4.0, 30.0]))
    return cohort


def random_stay(rng: np.random.Generator, rounds: int) -> dict[str, Any]:
    """Draw when a cohort is there: at most one entry and one exit, or rates of both."""
    kind = str(rng.choice(["whole", "exit", "exit", "exit", "entry", "both", "rates"]))
    stay: dict[str, Any] = {}
    if kind in ("entry", "both"):
        stay["enters"] = int(rng.integers(1, rounds))
    if kind in ("exit", "both"):
        stay["exits"] = int(rng.integers(stay.get("enters", 0) + 1, rounds + 1))
    if kind == "rates":
        stay["entry_rate"] = float(rng.choice([0.02, 0.2]))
        stay["exit_rate"] = float(rng.choice([0.005, 0.05]))
    return stay


class Comparison(NamedTuple):
    """A regret beside a bound that is printed for it, both per round."""

    bound_name: str
    stay: str  # when the agent was there, in words
    regret: float
    bound: float


def comparisons(model: MarketModel) -> Iterator[Comparison]:
    """Yield all regrets that have a bound, of the agents and of the windows."""
    agents = model.agents_frame()
    stay_of = {}
    for agent in agents.to_dict("records"):
        stay_of[agent["agent"]] = stay_of_agent(agent, model.played)
        stay = stay_of[agent["agent"]]
        for bound, measure in BOUNDS.items():
            if bound in agent and pd.notna(agent[bound]) and pd.notna(agent[measure]):
                yield Comparison(bound, stay, regret=agent[measure], bound=agent[bound])
    windows = model.windows_frame()
    if "bound" in windows:
        for window in windows.dropna(subset=["bound"]).to_dict("records"):
            stay = stay_of[window["agent"]]
            regret = window["decision_swap_regret"]
            yield Comparison(WINDOW, stay, regret=regret, bound=window["bound"])


def stay_of_agent(agent: Mapping[Any, Any], played: int) -> str:
    """Say in words when an agent was there."""
    entered = agent.get("entered", 0)
    if pd.isna(entered):
        return "not yet"
    has_left = agent.get("left", played) < played
    if entered > 0:
        return "enters and leaves" if has_left else "enters"
    return "leaves" if has_left else "stays"


def play(game: dict[str, Any], look: int) -> Iterator[Row]:
    """Play a game; yield a row for each comparison, after ``look`` rounds and at the end."""
    model = Scenario(validated(game, origin=Path())).build(log_every=game["rounds"])
    for rounds in (look, game["rounds"]):
        model.run(rounds)  # until so many have been played
        for comparison in comparisons(model):
            ratio = max(comparison.regret - ROUNDING, 0.0) / max(comparison.bound, ROUNDING)
            yield {
                "bound": comparison.bound_name,
                "who": comparison.stay,
                "rows": 1,
                "below": int(ratio > 1),
                "greatest": ratio,
                "times": 1 / ratio if ratio > 0 else np.nan,
            }


def stays(_: str, rounds: int, seed: int, first: int = 0) -> Iterator[Row]:
    """Play as many games, from number ``first`` on; a game depends on its seed and number alone."""
    for number in range(first, first + rounds):
        rng = stream(seed, "stays", str(number))
        game = random_game(rng)
        yield from play(game, look=int(rng.integers(1, game["rounds"])))


SUMS = {"rows": "sum", "below": "sum", "greatest": "max", "times": "median"}
TABLES = {
    "stays": Table(
        stays, ["bound", "who"], rounds=3000, seeds=1, first=0, aggregations=SUMS, digits=3
    )
}
