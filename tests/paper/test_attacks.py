"""The table of the strongest attacks found: which plans are tried, and that the best one counts."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paper import attacks
from regretless import MarketModel
from regretless.scenarios.executor.choice import mapper
from regretless.scenarios.training import attack as rehearsed
from regretless.scenarios.training import train as training
from regretless.scenarios.training.attack import Rehearsals, prepare_attacks

ROUNDS = 60


def test_brute_force_takes_at_least_what_up_then_down_does() -> None:
    scenario = attacks.game_against("Hedge", ROUNDS)
    (attack,) = prepare_attacks(scenario, phases=attacks.N_PHASES, looking=False, cohort=None)
    up, down = np.eye(2)
    half = attacks.N_PHASES // 2
    up_then_down = np.array([up] * half + [down] * half)[:, None]
    with mapper(1) as workers:
        (score,) = Rehearsals(attack, workers).scores(up_then_down, [1])
    best = attacks.best_pure_plan("Hedge", ROUNDS)
    assert score.surplus - 1e-12 <= best.surplus <= best.cap
    assert len(np.unique(attacks.pure_plans(2), axis=0)) == 2**attacks.N_PHASES


def test_short_runs_are_attacked_as_train_attacks_them(tmp_path: Path) -> None:
    scenario = attacks.game_against("Hedge", 20)
    options = training.TrainingOptions("cma", 32, phases=attacks.N_PHASES, jobs=1, sees="mixture")
    table = training.train(scenario, options, tmp_path / "attack")
    row = attacks.train_and_judge("Hedge", 20, sees="mixture", budget=32)
    pd.testing.assert_series_equal(
        pd.Series(row), table.iloc[0], check_names=False, check_exact=True
    )


def test_plans_against_long_runs_are_searched_in_shorter_ones_and_judged_at_full_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attacks, "MAX_SEARCHED_ROUNDS", 20)
    rounds_played = []
    play = rehearsed._joint_distributions

    def note_rounds(models: list[MarketModel], *arguments: Any) -> Any:
        rounds_played.append(models[0].rounds)
        return play(models, *arguments)

    monkeypatch.setattr(rehearsed, "_joint_distributions", note_rounds)
    row = attacks.train_and_judge("Blum-Mansour", 60, sees="history", budget=32)
    n_generations = 2
    assert rounds_played.count(20) == n_generations
    n_judged_plans = 2  # the commitment and what was found, all runs at once
    assert rounds_played.count(60) == training.COMMITMENT_RUNS + n_judged_plans
    shorter_row = attacks.train_and_judge("Blum-Mansour", 20, sees="history", budget=32)
    assert row["certified"] < shorter_row["certified"]


@pytest.mark.parametrize("name", ["Blum-Mansour", "followers of the forecast"])
def test_the_strongest_attack_is_the_best_of_all_and_below_each_cap(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attacks, "BUDGET_SIDE_BY_SIDE", 16)
    monkeypatch.setattr(attacks, "BUDGET_ONE_BY_ONE", 16)
    monkeypatch.setattr(training, "JUDGING_RUNS", 4)
    (line,) = attacks.measure_attacks(name, 20)
    tried = [line[attack] for attack in attacks.ATTACKS]
    assert line["strongest"] == np.nanmax(tried)
    assert line["history"] >= line["commitment"]
    assert line["low"] <= line["strongest"] <= line["high"]
    assert line["strongest"] <= line["cap, tried"] + 1e-9
    assert line["strongest"] <= line["cap, any"]
    plays_run_by_run = np.isnan(line["brute force"])
    assert plays_run_by_run == (name == "followers of the forecast")
    assert ("none" in attacks.lines(pd.DataFrame([line]))) == plays_run_by_run
