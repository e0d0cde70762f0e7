"""Trained attackers: what rehearsals are paid, what training finds and leaves, and the seats."""

import copy
import json
import pickle
import runpy
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf, RunCommand
from page_session import steps
from run_files import file_bytes
from small_scenarios import built_in_names, play_to_end, read_scenario

import regretless
from regretless import load
from regretless.agents.adversaries import UpThenDown
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.executor.choice import mapper
from regretless.scenarios.imports import import_modules
from regretless.scenarios.report import training_page
from regretless.scenarios.training import train as training
from regretless.scenarios.training.attack import Rehearsals, prepare_attacks, round_plan
from regretless.scenarios.training.results import file_of, format_table
from regretless.scenarios.training.train import TrainingOptions, train

ROUNDS = 40
LEARNERS = built_in_names(register.learner)
SWAP_LEARNERS = {"blum-mansour", "swap-regret-matching", "tree-swap"}  # with a proved swap regret
KAPPA = 4.0  # of Deng's game: the slope of the surplus's cap in swap regret
GREATEST_PAYOFF = 2.0  # of Deng's game


def cohort_of_game(index: int, response: str) -> dict[str, Any]:
    """Return two followers of Deng's game who respond so."""
    cohort: dict[str, Any] = {"name": f"them {index}", "utility": "game", "actions": 3, "count": 2}
    cohort["response"] = response
    needed_settings = {"quantal-fictitious-play": {"eta": 5.0}, "discrete-choice": {"beta": 5.0}}
    if response in needed_settings:
        cohort["settings"] = needed_settings[response]
    return cohort


def deng_scenario(*responses: str, **keys: Any) -> Scenario:
    """Return Deng's game against a cohort of each response."""
    cohorts = [cohort_of_game(i, response) for i, response in enumerate(responses)]
    settings = {"rounds": ROUNDS, "cohort": cohorts} | keys
    return load("beating-mean-based-learners", **settings)


def random_plan(seed: int, shape: tuple[int, int, int]) -> Any:
    """Return a plan of an attack as files write it."""
    phases_and_sights = shape[:2]
    concentration = np.full(shape[2], 0.3)
    return round_plan(np.random.default_rng(seed).dirichlet(concentration, phases_and_sights))


def play_plan(attack: Any, plan: Any, seed: int) -> tuple[float, Any]:
    """Play a plan's file, with logs; return what was paid and the cohort's mean row."""
    model = play_to_end(read_scenario(attack.file(plan)), seed=seed)
    has_several = len(model.game.cohorts) > 1
    column = f"leader_payoff_{attack.cohort_index(model)}" if has_several else "leader_payoff"
    members = model.agents_frame().query(f"cohort == '{attack.cohort}'")
    return model.rounds_frame()[column].mean(), members.select_dtypes("number").mean()


def learners_and_looks() -> list[tuple[str, bool]]:
    """Return every learner, one by one with a leader who looks and with one who does not."""
    cases = [(name, i % 2 == 1) for i, name in enumerate(LEARNERS)]
    if ("hedge", False) not in cases:
        cases.append(("hedge", False))
    return cases


@pytest.mark.parametrize(("name", "looking"), learners_and_looks())
def test_learners_side_by_side_are_paid_what_a_run_logs(name: str, looking: bool) -> None:  # noqa: FBT001
    seed = 7
    scenario = deng_scenario(name, "hedge")
    attack = prepare_attacks(scenario, phases=3, looking=looking, cohort="them 0")[0]
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        assert rehearsals.together
        plans = np.array([random_plan(k, attack.shape) for k in range(3)])
        paid = rehearsals.paid(plans, seed)
        score = rehearsals.scores(plans[1], [seed])[0]
    played = [play_plan(attack, plan, seed) for plan in plans]
    assert paid == pytest.approx([payoff for payoff, _ in played], abs=1e-12)
    _, row = played[1]
    assert score.surplus == pytest.approx(row["leader_surplus"], abs=1e-12)
    assert score.cap == pytest.approx(row["surplus_cap"], abs=1e-12)
    assert score.surplus <= score.cap + 1e-12
    assert score.value == pytest.approx(0.0, abs=1e-9)  # of Deng's game
    assert np.isfinite(score.certified) == (name in SWAP_LEARNERS)
    assert not score.certified < score.surplus


@pytest.mark.parametrize("name", ["hedge", "exp3", "q-learning"])
@pytest.mark.parametrize("looking", [False, True])
def test_learners_side_by_side_announce_what_they_announce_in_a_run(
    name: str,
    looking: bool,  # noqa: FBT001
) -> None:
    seed = 7
    scenario = deng_scenario(name, "hedge")
    attack = prepare_attacks(scenario, phases=3, looking=looking, cohort="them 0", sees="mixture")[
        0
    ]
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        assert rehearsals.together
        plans = np.array([random_plan(k, attack.shape) for k in range(2)])
        paid = rehearsals.paid(plans, seed)
    assert attack.shape == (3, 9 if looking else 3, 2)
    assert paid == pytest.approx([play_plan(attack, plan, seed)[0] for plan in plans], abs=1e-12)


@pytest.mark.parametrize("response", ["hedge", "exp3", "q-learning"])
def test_runs_that_are_judged_together_are_those_judged_one_by_one(response: str) -> None:
    """Learners draw their actions from the stream of each run."""
    (attack,) = prepare_attacks(deng_scenario(response), phases=3, looking=True, cohort=None)
    plan = random_plan(1, attack.shape)
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        together = rehearsals.scores(plan, [3, 4, 5])
        one_by_one = [rehearsals.scores(plan, [seed])[0] for seed in (3, 4, 5)]
    pd.testing.assert_frame_equal(
        pd.DataFrame(together), pd.DataFrame(one_by_one), check_exact=True
    )
    assert len({score.paid for score in together}) > 1  # the seed counts


def test_learners_whose_losses_are_drawn_are_judged_with_those_of_each_run() -> None:
    weights = [[0.8, 0.2], [0.2, 0.8]]
    cohort = {
        "name": "drawn",
        "utility": "linear",
        "count": 2,
        "actions": 2,
        "response": "hedge",
        "parameters": {"weights": weights, "concentration": 4.0},
    }
    scenario = read_scenario(
        {
            "name": "drawn",
            "rounds": ROUNDS,
            "adversary": {"kind": "up-then-down", "outcomes": 2},
            "cohort": [cohort],
        }
    )
    (attack,) = prepare_attacks(scenario, phases=3, looking=False, cohort=None)
    plan = random_plan(1, attack.shape)
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        assert rehearsals.together
        scores = rehearsals.scores(plan, [3, 4])
    for score, seed in zip(scores, (3, 4), strict=True):
        _, row = play_plan(attack, plan, seed)
        assert score.surplus == pytest.approx(row["leader_surplus"], abs=1e-9)
    assert scores[0].value != scores[1].value


@pytest.fixture
def moved_prices(tmp_path: Path) -> Scenario:
    """Return a scenario in which a leader moves two prices by 0.2 at most."""
    prices = 0.3 + 0.4 * stream(0, "prices").random((15, 2))
    pd.DataFrame(prices, columns=["bread", "milk"]).to_csv(tmp_path / "prices.csv", index=False)
    buyers = {
        "utility": "linear",
        "count": 2,
        "actions": 2,
        "parameters": {"weights": [[1.0, 0.0], [0.0, 1.0]], "concentration": 8.0},
    }
    return read_scenario(
        {
            "name": "moved",
            "rounds": ROUNDS,
            "data": {"file": str(tmp_path / "prices.csv"), "outcomes": ["bread", "milk"]},
            "adversary": {"kind": "up-then-down", "moves": 0.2},
            "forecaster": {"models": []},
            "cohort": [
                {"name": "followers"} | buyers,
                {"name": "learners", "response": "hedge"} | buyers,
            ],
        }
    )


@pytest.mark.parametrize("cohort", ["followers", "learners"])
@pytest.mark.parametrize("looking", [False, True])
def test_a_plan_that_moves_rows_is_paid_what_its_run_logs(
    cohort: str,
    looking: bool,  # noqa: FBT001
    moved_prices: Scenario,
) -> None:
    seed = 5
    (attack,) = prepare_attacks(moved_prices, phases=2, looking=looking, cohort=cohort)
    plan = random_plan(3, attack.shape)
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        paid = rehearsals.paid(plan[None], seed)[0]
        score = rehearsals.scores(plan, [seed])[0]
    logged_payoff, row = play_plan(attack, plan, seed)
    assert paid == pytest.approx(logged_payoff, abs=1e-12)
    assert score.paid == pytest.approx(logged_payoff, abs=1e-12)
    assert score.surplus <= row["surplus_cap"] + 1e-12
    assert np.isnan(score.certified)


def test_the_leader_who_is_trained_on_rows_moves_them_within_its_budget(
    moved_prices: Scenario,
) -> None:
    (attack,) = prepare_attacks(moved_prices, phases=1, looking=False, cohort="learners")
    always_the_first_move = np.eye(attack.shape[2])[:1, None, :]
    moved = play_to_end(read_scenario(attack.file(always_the_first_move))).rounds_frame()
    assert moved_prices.table is not None
    row_numbers = np.arange(ROUNDS) % len(moved_prices.table.outcomes)
    distances = moved[["y_0", "y_1"]].to_numpy() - moved_prices.table.outcomes[row_numbers]
    assert np.abs(distances) == pytest.approx(0.2)


@pytest.mark.parametrize("looking", [False, True])
@pytest.mark.parametrize("sees", ["history", "mixture"])
def test_followers_are_paid_what_a_run_logs_and_capped_by_their_bound(
    sees: str,
    looking: bool,  # noqa: FBT001
) -> None:
    """The leader of a rehearsal is not taught where it does not look at the last play."""
    seed = 5
    scenario = deng_scenario("best-response", "hedge")
    attack = prepare_attacks(scenario, phases=2, looking=looking, cohort="them 0", sees=sees)[0]
    assert len(read_scenario(json.loads(attack.rehearsed)).spec.cohort) == 1
    plan = random_plan(3, attack.shape)
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        assert not rehearsals.together
        paid = rehearsals.paid(plan[None], seed)[0]
        score = rehearsals.scores(plan, [seed])[0]
    logged_payoff, row = play_plan(attack, plan, seed)
    assert paid == pytest.approx(logged_payoff, abs=1e-12)
    assert score.surplus == pytest.approx(row["leader_surplus"], abs=1e-12)
    assert score.cap == pytest.approx(row["surplus_cap"], abs=1e-12)
    assert score.most == pytest.approx(GREATEST_PAYOFF)
    assert min(KAPPA * row["bound"], GREATEST_PAYOFF) <= score.certified <= score.most


@pytest.mark.parametrize("algorithm", ["cma", "exp3"])
def test_training_finds_nearly_all_that_there_is(algorithm: str, tmp_path: Path) -> None:
    """Up then down takes 3/4 of Hedge in the limit; 90 % of that are found within 800 runs."""
    scenario = deng_scenario("hedge", rounds=2000, seed=11)
    row = train(scenario, TrainingOptions(algorithm, 800, jobs=1), tmp_path / "out").iloc[0]
    assert row["surplus"] >= 0.9 * 0.75
    assert row["low"] <= row["surplus"] <= row["high"]
    assert row["surplus"] <= row["cap"]
    assert np.isnan(row["certified"])


@pytest.fixture(scope="module")
def finished_training(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, Path]:
    """Return the table of a training against two cohorts, and its folder."""
    folder = tmp_path_factory.mktemp("training") / "out"
    return train(
        deng_scenario("hedge", "tree-swap"), TrainingOptions("cma", 64, jobs=1), folder
    ), folder


def test_a_training_tries_its_budget_for_each_cohort_and_leaves_no_state(
    finished_training: tuple[pd.DataFrame, Path],
) -> None:
    table, folder = finished_training
    assert list(table["cohort"]) == ["them 0", "them 1"]
    curve = pd.read_csv(folder / "curve.csv")
    assert curve.groupby("cohort").size().to_dict() == {"them 0": 64, "them 1": 64}
    assert curve["seed"].max() < training.FIRST_JUDGING_SEED  # others are left to judge with
    assert not (folder / "training.npz").exists()


def test_what_is_written_is_a_scenario_that_plays_as_judged(
    finished_training: tuple[pd.DataFrame, Path],
) -> None:
    table, folder = finished_training
    judged = stream(1, "judge", "them 1").integers(
        training.FIRST_JUDGING_SEED, size=training.JUDGING_RUNS
    )
    attacker = load(str(folder / file_of("them 1")))
    surpluses = []
    for seed in (training.FIRST_JUDGING_SEED + judged)[:3].tolist():
        agents = play_to_end(attacker, seed=seed).agents_frame()
        surpluses.append(agents.query("cohort == 'them 1'")["leader_surplus"].mean())
    assert min(surpluses) <= table["high"][1]


WARY = """\
from regretless import register
from regretless.agents import ScriptedAgent

@register.agent("test-wary")
class Wary(ScriptedAgent):
    def act(self, forecast, context):
        regret = self.model.view(self.number).swap_regret
        best = int(self.loss.losses(forecast.label).argmin())
        return best if not regret > 0.05 else int(1000 * regret) % 3
"""


def test_workers_change_nothing(working_folder: Path) -> None:
    """Agents of a module of one's own are there in each worker."""
    Path("wary.py").write_text(WARY, encoding="utf-8")
    import_modules(["wary"])
    scenario = deng_scenario("test-wary", rounds=10)
    options = TrainingOptions("cma", 16, phases=2, imports=("wary",))
    table = train(scenario, replace(options, jobs=1), working_folder / "one")
    table_of_two = train(scenario, replace(options, jobs=2), working_folder / "two")
    assert table_of_two.equals(table)
    assert Path("two/curve.csv").read_bytes() == Path("one/curve.csv").read_bytes()


def train_until_interrupted(
    scenario: Scenario, options: TrainingOptions, out: Path, at: int
) -> None:
    """Train, and interrupt after so many rehearsals."""

    def interrupt(count: int) -> None:
        if count >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(scenario, options, out, progress=interrupt)


@pytest.mark.parametrize("algorithm", ["cma", "exp3"])
def test_interrupted_training_resumes_to_the_same_bytes(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = 96
    scenario = deng_scenario("hedge", "exp3")
    options = TrainingOptions(algorithm, budget, phases=2, jobs=1)
    undisturbed = train(scenario, options, tmp_path / "whole")
    monkeypatch.setattr(training, "CHECKPOINT_INTERVAL_SECONDS", 0.0)
    train_until_interrupted(scenario, options, tmp_path / "cut", at=128)  # in the second cohort
    assert not (tmp_path / "cut" / "attackers.csv").exists()
    counts: list[int] = []
    resumed = train(scenario, options, tmp_path / "cut", resume=True, progress=counts.append)
    assert min(counts) > budget  # the first cohort is not trained again
    assert resumed.equals(undisturbed)
    for name in ("curve.csv", "attackers.csv", file_of("them 0"), file_of("them 1")):
        content = (tmp_path / "cut" / name).read_bytes()
        assert content == (tmp_path / "whole" / name).read_bytes(), name


def test_a_plan_of_more_phases_than_rounds_is_refused() -> None:
    options = TrainingOptions("cma", 16, phases=500)
    with pytest.raises(UserError, match=r"--phases 500: there are \d+ rounds; give at most \d+"):
        training.prepare_trainings(deng_scenario("hedge"), options)


@pytest.mark.parametrize("stay", [{"enters": 5}, {"exits": 20}])
def test_learners_who_do_not_stay_throughout_are_attacked_beside_others(
    stay: dict[str, int],
) -> None:
    cohorts = [cohort_of_game(0, "best-response"), cohort_of_game(1, "hedge") | stay]
    scenario = load("beating-mean-based-learners", rounds=ROUNDS, cohort=cohorts)
    attack = prepare_attacks(scenario, phases=2, looking=False, cohort="them 1")[0]
    assert [cohort.name for cohort in attack.model(0).game.cohorts] == ["them 0", "them 1"]


TRAIN_HEDGE = [
    *("train", "beating-mean-based-learners", "--cohort", "hedge", "--rounds", "20"),
    *("--algorithm", "cma", "--budget", "16", "--jobs", "1", "--out", "out"),
]


@pytest.fixture
def trained_folder(working_folder: Path, run_command: RunCommand) -> dict[str, bytes]:
    """Train by command to ``out``, and return the bytes of every file."""
    result = run_command(*TRAIN_HEDGE)
    assert result.status == 0
    assert result.err == ""
    return file_bytes()


def test_the_record_of_a_training_names_all_its_files(trained_folder: dict[str, bytes]) -> None:
    record = json.loads(trained_folder["out/training.json"])
    assert record["status"] == "complete"
    names = {f"out/{name}" for name in record["files"]} | {"out/training.json"}
    assert names == set(trained_folder)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            [],
            "--out out holds a training; continue it with --resume, replace it with --overwrite",
        ),
        (["--resume"], "is complete; nothing to resume"),
        (["--resume", "--overwrite"], "give one"),
    ],
)
def test_a_complete_training_is_left_as_it_is(
    trained_folder: dict[str, bytes], refusal_of: RefusalOf, options: list[str], complaint: str
) -> None:
    assert complaint in refusal_of(*TRAIN_HEDGE, *options)
    assert file_bytes() == trained_folder


def test_a_training_replaces_one_of_its_kind_and_keeps_other_files(
    trained_folder: dict[str, bytes], run_command: RunCommand
) -> None:
    Path("out/mine.txt").write_text("kept", encoding="utf-8")
    result = run_command(*TRAIN_HEDGE, "--overwrite", "--seed", "5")
    assert result.status == 0
    assert result.err == ""
    assert set(file_bytes()) == {*trained_folder, "out/mine.txt"}
    assert file_bytes()["out/attackers.csv"] != trained_folder["out/attackers.csv"]


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("name", ["attackers.csv", "curve.csv", "attack-hedge.toml", "mine.txt"])
def test_a_training_replaces_no_file_of_somebody_else(name: str, refusal_of: RefusalOf) -> None:
    Path("out").mkdir()
    Path("out", name).write_text("mine", encoding="utf-8")
    for options in ([], ["--resume"], ["--overwrite"]):
        assert "holds other files" in refusal_of(*TRAIN_HEDGE, *options)
        assert file_bytes() == {f"out/{name}": b"mine"}


OPTIONS = TrainingOptions("cma", 64, jobs=1)


def test_a_training_that_is_interrupted_before_it_pauses_keeps_nothing(tmp_path: Path) -> None:
    train_until_interrupted(deng_scenario("hedge", rounds=10), OPTIONS, tmp_path / "out", at=48)
    assert not list((tmp_path / "out").glob("*"))


@pytest.fixture
def interrupted_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Scenario, Path]:
    """Return a scenario, and the folder of an interrupted training of it."""
    monkeypatch.setattr(training, "CHECKPOINT_INTERVAL_SECONDS", 0.0)
    scenario = deng_scenario("hedge", rounds=10)
    train_until_interrupted(scenario, OPTIONS, tmp_path / "out", at=48)
    return scenario, tmp_path / "out"


def test_another_training_is_not_resumed(interrupted_training: tuple[Scenario, Path]) -> None:
    scenario, folder = interrupted_training
    with pytest.raises(UserError, match=r"holds another training \(.*\); give another --out"):
        train(scenario, TrainingOptions("exp3", 64, jobs=1), folder, resume=True)


def cut_payoffs(state_file: Path) -> None:
    """Take payoffs out of a training's state, whose archive stays sound."""
    tree = checkpoint.load(state_file)
    tree["0"]["paid"] = tree["0"]["paid"][:, :3]
    checkpoint.save(state_file, tree)


def write_nonsense(state_file: Path) -> None:
    """Write what is no archive in place of a training's state."""
    state_file.write_bytes(b"PK nonsense")


@pytest.mark.parametrize("damage", [cut_payoffs, write_nonsense])
def test_a_training_with_a_damaged_state_says_so_and_starts_again(
    interrupted_training: tuple[Scenario, Path], damage: Callable[[Path], None]
) -> None:
    scenario, folder = interrupted_training
    damage(folder / "training.npz")
    with pytest.raises(UserError, match=r"start again with --over"):
        train(scenario, OPTIONS, folder, resume=True)
    train(scenario, OPTIONS, folder, overwrite=True)


CONITZER: dict[str, Any] = {
    "name": "conitzer",
    "rounds": 60,
    "game": {"file": "conitzer-sandholm.csv"},
    "adversary": {"kind": "up-then-down"},
}


def conitzer_scenario(response: str) -> Scenario:
    """Return the game of Conitzer and Sandholm, in which commitment pays, for short runs."""
    cohort = {"name": "them", "utility": "game", "actions": 2, "response": response}
    return read_scenario(CONITZER | {"cohort": [cohort]})


@pytest.mark.parametrize("sees", ["history", "mixture"])
def test_what_is_found_never_takes_less_than_the_best_commitment(sees: str, tmp_path: Path) -> None:
    """One generation finds nothing by itself, and the commitment was in it."""
    options = TrainingOptions("cma", 16, phases=2, jobs=1, sees=sees)
    row = train(conitzer_scenario("hedge"), options, tmp_path / "out").iloc[0]
    assert row["surplus"] >= row["commitment"]
    assert row["margin"] > 0
    assert row["commitment_paid"] == pytest.approx(row["value"] + row["commitment"])
    assert row["paid"] == pytest.approx(row["value"] + row["surplus"])


def test_the_first_generation_of_a_training_has_the_best_commitment() -> None:
    scenario = conitzer_scenario("hedge")
    (trained,) = training.prepare_trainings(scenario, TrainingOptions("cma", 16, jobs=1))
    with mapper(1) as workers:
        trained.rehearse_commitments(Rehearsals(trained.attack, workers), 1)
    commitment = trained.best_commitment.plan(trained.attack.shape)
    distances = np.abs(trained.search.propose() - commitment).max((1, 2, 3))
    assert distances.min() < 1e-3
    assert trained.commitment_paid.max() > trained.commitment_paid[0]  # a margin pays


def test_a_list_of_plans_has_the_best_commitment() -> None:
    scenario = conitzer_scenario("hedge")
    (trained,) = training.prepare_trainings(scenario, TrainingOptions("exp3", 16, jobs=1))
    n_arms = len(trained.search.plans)  # type: ignore[attr-defined]
    with mapper(1) as workers:
        trained.rehearse_commitments(Rehearsals(trained.attack, workers), 1)
    plans = trained.search.plans  # type: ignore[attr-defined]
    commitment = trained.best_commitment.plan(trained.attack.shape)
    assert np.abs(plans - commitment).max((1, 2, 3)).min() < 1e-9
    assert len(plans) == n_arms


def test_the_table_prints_a_row_for_the_best_commitment(
    working_folder: Path, run_command: RunCommand
) -> None:
    result = run_command(*TRAIN_HEDGE, "--sees", "mixture")
    assert result.status == 0
    assert "best commitment to hedge" in result.out
    plan = (working_folder / "out" / "attack-hedge.toml").read_text(encoding="utf-8")
    assert "announced-play" in plan


def test_training_names_what_plans_may_see(refusal_of: RefusalOf) -> None:
    line = refusal_of(*TRAIN_HEDGE, "--sees", "draw")
    assert "--sees 'draw' is unknown" in line
    assert "mixture" in line


SHIFTED_PRICES: dict[str, Any] = {
    "name": "bids",
    "rounds": 8,
    "adversary": {"kind": "up-then-down", "outcomes": ["mean price"]},
    "market": {"kind": "price-competition", "outside": 0.0},
}


def sellers_scenario(response: str) -> Scenario:
    """Return sellers whose profits depend on each other's prices, and a leader paid their loss."""
    parameters = {"cost": 1.0, "quality": 2.0, "lowest": 1.4, "highest": 1.9}
    cohort = {"name": "sellers", "utility": "seller", "actions": 4, "count": 2}
    cohort |= {"parameters": parameters, "response": response}
    return read_scenario(SHIFTED_PRICES | {"cohort": [cohort]})


@pytest.mark.parametrize(("response", "sees"), [("hedge", "history"), ("best-response", "mixture")])
def test_where_losses_are_personal_an_attacker_is_paid_what_the_market_charges(
    response: str, sees: str, tmp_path: Path
) -> None:
    """No value of commitment is known there, and no cap."""
    options = TrainingOptions("cma", 16, phases=2, jobs=1, sees=sees)
    table = train(sellers_scenario(response), options, tmp_path / "out")
    row = table.iloc[0]
    assert row[["value", "surplus", "cap", "certified", "most"]].isna().all()
    assert row["paid"] >= row["commitment_paid"]
    assert row["paid_low"] <= row["paid"] <= row["paid_high"]
    assert format_table(table).splitlines()[1].split()[2:] == ["none"] * 8
    model = play_to_end(load(str(tmp_path / "out" / file_of("sellers"))), seed=3)
    mean_payoff = model.rounds_frame()["leader_payoff"].mean()
    assert mean_payoff == pytest.approx(model.agents_frame()["mean_loss"].mean())


def test_the_page_of_a_training_says_what_was_paid_where_no_cap_is_known(tmp_path: Path) -> None:
    options = TrainingOptions("cma", 16, phases=2, jobs=1)
    train(sellers_scenario("hedge"), options, tmp_path / "out")
    page = training_page.text(tmp_path / "out")
    assert "of commitment is known, and no cap" in page


def test_in_a_market_plans_look_at_the_forecast_and_not_at_play() -> None:
    """Who sees play would plan with outcomes that the market moves."""
    market = {"feedback": "lagged", "impact": 0.4}
    adversary = {"kind": "up-then-down", "outcomes": 3}
    cohort = {"name": "them", "utility": "linear", "actions": 3, "count": 2}
    scenario = read_scenario(
        {"name": "lagged", "rounds": 20, "market": market, "adversary": adversary}
        | {"cohort": [cohort]}
    )
    attack = prepare_attacks(scenario, phases=2, looking=False, cohort=None, sees="mixture")[0]
    assert attack.looks_at == ("forecast",)
    plan = random_plan(1, attack.shape)
    with mapper(1) as workers:
        paid = Rehearsals(attack, workers).paid(plan[None], 4)[0]
    assert paid == pytest.approx(play_plan(attack, plan, 4)[0], abs=1e-12)


def squeeze(mover: dict[str, Any]) -> Scenario:
    """Return a scenario of shops whose demand, in a bundled table, somebody moves."""
    shops = {"name": "shops", "utility": "newsvendor", "count": 2, "actions": 3}
    data = {"file": "bike-demand.csv", "outcomes": ["bikers"], "scale": {"bikers": [0.0, 660.0]}}
    return read_scenario(
        {"name": "squeeze", "rounds": 20, "cohort": [shops], "data": data, "adversary": mover}
    )


def test_a_plan_for_rows_of_a_bundled_table_names_the_table() -> None:
    scenario = squeeze({"kind": "myopic", "moves": 60.0})
    (attack,) = prepare_attacks(scenario, phases=2, looking=False, cohort=None)
    file = attack.file(random_plan(1, attack.shape))
    assert file["data"]["file"] == "bike-demand.csv"
    assert file["adversary"]["moves"] == 60.0


def test_who_moves_rows_without_a_payoff_is_refused_with_one_who_has_one() -> None:
    cure = "{ kind = 'up-then-down', moves = 60.0 }"
    scenario = squeeze({"kind": "anti-forecast", "moves": 60.0})
    with pytest.raises(UserError, match=f"no payoff; give one that has, .*{cure}"):
        prepare_attacks(scenario, phases=2, looking=False, cohort=None)
    prepare_attacks(
        squeeze(tomllib.loads(f"adversary = {cure}")["adversary"]),
        phases=2,
        looking=False,
        cohort=None,
    )


def test_a_leader_with_a_payoff_of_one_s_own_is_refused() -> None:
    members = [
        {"kind": "myopic", "coordinates": [0]},
        {"kind": "myopic", "coordinates": [1, 2]},
    ]
    coalition = {"kind": "coalition", "outcomes": 3, "members": members}
    scenario = load("crowding", market=None, adversary=coalition)
    with pytest.raises(UserError, match="drop JointPayoff"):
        prepare_attacks(scenario, phases=2, looking=False, cohort=None)


@pytest.mark.parametrize("keys", [{}, {"pure": True}, {"cohort": "followers"}])
def test_the_leader_s_seat_is_as_gymnasium_has_it(keys: dict[str, Any]) -> None:
    from gymnasium.utils.env_checker import check_env  # noqa: PLC0415 - slow

    env = regretless.LeaderEnv("beating-mean-based-learners", rounds=30, **keys)
    check_env(env, skip_render_check=True)


def test_in_the_leader_s_seat_one_is_paid_what_a_run_logs() -> None:
    """Up then down, played from the seat, against Hedge; observed is what was played last."""
    n_rounds = 60
    env = regretless.LeaderEnv(
        "beating-mean-based-learners", rounds=n_rounds, cohort="hedge", pure=True
    )
    observation, _ = env.reset(seed=4)
    assert observation[0] == 0.0  # the share of rounds that are played
    total = 0.0
    is_over = False
    while not is_over:
        is_second_half = round(observation[0] * n_rounds) >= n_rounds // 2
        observation, payoff, is_over, _, info = env.step(int(is_second_half))
        total += payoff
        assert observation[-3:].sum() == pytest.approx(1.0)
        assert info["outcome"].sum() == 1.0
    model = load("beating-mean-based-learners", rounds=n_rounds).build(seed=0)
    assert isinstance(model.game.adversary.adversary, UpThenDown)  # type: ignore[attr-defined]
    model.run()
    assert total == pytest.approx(model.rounds_frame()["leader_payoff_0"].sum())
    with pytest.raises(UserError, match=r"reset\(\) begins another"):
        env.step(0)


def test_the_followers_seats_are_as_pettingzoo_has_them() -> None:
    from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: PLC0415 - slow

    def make_env() -> Any:
        return regretless.FollowersEnv(deng_scenario("best-response", "hedge", rounds=12))

    parallel_api_test(make_env(), num_cycles=30)
    parallel_seed_test(make_env, num_cycles=8)


def test_followers_observe_the_same_space_whoever_is_drawn() -> None:
    """The basis of their forecast has another length for other seeds."""
    from pettingzoo.test import api_test  # noqa: PLC0415 - slow
    from pettingzoo.utils import parallel_to_aec  # noqa: PLC0415 - slow

    env = regretless.FollowersEnv("call-auction", rounds=4)
    lengths_of_predictions = set()
    for seed in range(3):
        observations, _ = env.reset(seed=seed)
        for agent, observation in observations.items():
            assert env.observation_space(agent).contains(observation)
        blocks = env._run.model.game.blocks
        lengths_of_predictions.add(blocks[0].basis.size)
    assert len(lengths_of_predictions) > 1
    api_test(parallel_to_aec(env), num_cycles=10)


def test_followers_observe_what_they_expect_to_lose() -> None:
    """Who takes the first action with the least of it plays as one who is not asked."""
    scenario = deng_scenario("best-response", "hedge", rounds=12)
    env = regretless.FollowersEnv(scenario)
    observations, _ = env.reset(seed=3)
    seed_of_run = int(stream(3, "environment").integers(2**31))  # as ``reset`` draws it
    model = scenario.build(seed=seed_of_run, apart=True)
    model.run()
    log = model.regret_frame()
    for round_index in range(12):
        actions = {}
        for agent, observation in observations.items():
            n_actions = int(env.action_space(agent).n)
            actions[agent] = int(observation[-n_actions:].argmin())
            number = int(agent.removeprefix("agent_"))
            row = log[(log["round"] == round_index) & (log["agent"] == number)]
            assert actions[agent] == row["action"].item()
        observations, *_ = env.step(actions)


def test_a_copy_of_the_followers_seats_begins_anew() -> None:
    env = regretless.FollowersEnv(deng_scenario("best-response", "hedge", rounds=4))
    env.reset(seed=3)
    env.step(dict.fromkeys(env.agents, 0))
    for again in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):  # noqa: S301 - our own
        first_observations, _ = again.reset(seed=3)
        observations, _ = env.reset(seed=3)
        for agent, observation in observations.items():
            assert (first_observations[agent] == observation).all()
        assert again.possible_agents == env.possible_agents
        assert again.render_mode is None


def test_stable_baselines3_trains_followers_through_supersuit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program is that of the page, where both libraries are installed."""
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("supersuit")
    page = Path(__file__).parents[2] / "docs/exploitation.md"
    (program,) = [step.text for step in steps(page.read_text("utf-8")) if step.file == "ppo.py"]
    (tmp_path / "ppo.py").write_text(program, encoding="utf-8")
    runpy.run_path(str(tmp_path / "ppo.py"))
    assert capsys.readouterr().out == "(8,) 768\n"


def test_without_libraries_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "regretless.scenarios.training.environments", raising=False)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(UserError, match="pip install gymnasium pettingzoo"):
        _ = regretless.LeaderEnv


def test_there_is_no_follower_s_seat_in_a_cohort_that_does_not_follow() -> None:
    with pytest.raises(UserError, match="'hedge' does not follow it"):
        regretless.FollowersEnv("beating-mean-based-learners", cohort="hedge", rounds=5)


def test_there_is_no_leader_s_seat_where_none_has_a_payoff() -> None:
    with pytest.raises(UserError, match="has no payoff"):
        regretless.LeaderEnv("consumers")
