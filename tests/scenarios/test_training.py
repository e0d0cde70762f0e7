"""Trained attackers: what rehearsals are paid, what training finds and leaves, and the seats."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf, RunCommand
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
from regretless.scenarios.executor import mapper
from regretless.scenarios.imports import import_modules
from regretless.scenarios.training import train as training
from regretless.scenarios.training.attack import Rehearsals, attacks, written
from regretless.scenarios.training.results import file_of
from regretless.scenarios.training.train import Order, train

ROUNDS = 40
LEARNERS = built_in_names(register.learner)


def deng(*responses: str, **keys: Any) -> Scenario:
    cohorts = [
        {"name": f"them {i}", "utility": "game", "actions": 3, "response": name, "count": 2}
        | ({"settings": {"eta": 5.0}} if name == "quantal-fictitious-play" else {})
        for i, name in enumerate(responses)
    ]
    settings = {"rounds": ROUNDS, "cohort": cohorts} | keys
    return load("beating-mean-based-learners", **settings)


def random_plan(seed: int, shape: tuple[int, int, int]) -> Any:
    return written(np.random.default_rng(seed).dirichlet(np.full(shape[2], 0.3), shape[:2]))


def logged(attack: Any, plan: Any, seed: int) -> tuple[float, Any]:
    """Play a plan's file, with logs; return what was paid and the cohort's mean row."""
    raw = attack.file(plan)
    model = play_to_end(read_scenario(raw), seed=seed)
    place = attack.place(model)
    rounds = model.rounds_frame()
    column = f"leader_payoff_{place}" if len(model.game.cohorts) > 1 else "leader_payoff"
    own = model.agents_frame().query(f"cohort == '{attack.cohort}'")
    return rounds[column].mean(), own.select_dtypes("number").mean()


@pytest.mark.parametrize(
    ("name", "looking"), [("hedge", 0), *((name, i % 2) for i, name in enumerate(LEARNERS))]
)
def test_learners_side_by_side_are_paid_what_a_run_logs(name: str, looking: int) -> None:
    attack = attacks(deng(name, "hedge"), phases=3, looking=bool(looking), cohort="them 0")[0]
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        assert rehearsals.together
        plans = np.array([random_plan(k, attack.shape) for k in range(3)])
        paid = rehearsals.paid(plans, 7)
        score = rehearsals.scores(plans[1], [7])[0]
    told = [logged(attack, plan, 7) for plan in plans]
    assert paid == pytest.approx([one for one, _ in told], abs=1e-12)
    assert score.surplus == pytest.approx(told[1][1]["leader_surplus"], abs=1e-12)
    assert score.cap == pytest.approx(told[1][1]["surplus_cap"], abs=1e-12)
    assert score.surplus <= score.cap + 1e-12
    assert score.value == pytest.approx(0.0, abs=1e-9)  # of Deng's game
    swap = {"blum-mansour", "swap-regret-matching", "tree-swap"}
    assert np.isfinite(score.certified) == (name in swap)
    assert not score.certified < score.surplus


def test_followers_are_paid_what_a_run_logs_and_capped_by_their_bound() -> None:
    attack = attacks(deng("best-response", "hedge"), phases=2, looking=True, cohort="them 0")[0]
    assert len(read_scenario(json.loads(attack.rehearsed)).spec.cohort) == 1
    plan = random_plan(3, attack.shape)
    with mapper(1) as workers:
        rehearsals = Rehearsals(attack, workers)
        assert not rehearsals.together
        paid = rehearsals.paid(plan[None], 5)[0]
        score = rehearsals.scores(plan, [5])[0]
    found, row = logged(attack, plan, 5)
    assert paid == pytest.approx(found, abs=1e-12)
    assert score.surplus == pytest.approx(row["leader_surplus"], abs=1e-12)
    assert score.cap == pytest.approx(row["surplus_cap"], abs=1e-12)
    kappa, most = 4.0, 2.0  # of Deng's game: the cap's slope, and the greatest payoff
    assert min(kappa * row["bound"], most) <= score.certified <= score.most == pytest.approx(most)


@pytest.mark.parametrize("algorithm", ["cma", "exp3"])
def test_training_finds_nearly_all_that_there_is(algorithm: str, tmp_path: Path) -> None:
    """Up then down takes 3/4 of Hedge in the limit; 90 % of that are found within 800 runs."""
    scenario = deng("hedge", rounds=2000, seed=11)
    table = train(scenario, Order(algorithm, 800, jobs=1), tmp_path / "out")
    found = table.iloc[0]
    assert found["surplus"] >= 0.9 * 0.75
    assert found["low"] <= found["surplus"] <= found["high"]
    assert found["surplus"] <= found["cap"]
    assert np.isnan(found["certified"])


def test_what_is_written_is_a_scenario_that_plays_as_judged(tmp_path: Path) -> None:
    table = train(deng("hedge", "tree-swap"), Order("cma", 64, jobs=1), tmp_path / "out")
    assert list(table["cohort"]) == ["them 0", "them 1"]
    curve = pd.read_csv(tmp_path / "out" / "curve.csv")
    assert curve.groupby("cohort").size().to_dict() == {"them 0": 64, "them 1": 64}
    assert curve["seed"].max() < training.HALF
    assert not (tmp_path / "out" / "training.npz").exists()
    surplus = []
    drawn = stream(1, "judge", "them 1").integers(training.HALF, size=training.JUDGED)
    for seed in (training.HALF + drawn)[:3].tolist():
        model = play_to_end(load(str(tmp_path / "out" / file_of("them 1"))), seed=seed)
        surplus.append(model.agents_frame().query("cohort == 'them 1'")["leader_surplus"].mean())
    assert min(surplus) <= table["high"][1]


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
    scenario, asked = deng("test-wary", rounds=10), Order("cma", 16, phases=2, imports=("wary",))
    tables = [
        train(scenario, replace(asked, jobs=jobs), working_folder / str(jobs)) for jobs in (1, 2)
    ]
    assert tables[0].equals(tables[1])
    curves = [(working_folder / str(jobs) / "curve.csv").read_bytes() for jobs in (1, 2)]
    assert curves[0] == curves[1]


def stopped(scenario: Scenario, order: Order, out: Path, at: int) -> None:
    def stop(count: int) -> None:
        if count >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(scenario, order, out, progress=stop)


@pytest.mark.parametrize("algorithm", ["cma", "exp3"])
def test_interrupted_training_resumes_to_the_same_bytes(
    algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario, order = deng("hedge", "exp3"), Order(algorithm, 96, phases=2, jobs=1)
    whole = train(scenario, order, tmp_path / "whole")
    monkeypatch.setattr(training, "PAUSE", 0.0)
    stopped(scenario, order, tmp_path / "cut", 128)  # in the second cohort
    assert not (tmp_path / "cut" / "attackers.csv").exists()
    done: list[int] = []
    later = train(scenario, order, tmp_path / "cut", resume=True, progress=done.append)
    assert min(done) > 96
    assert later.equals(whole)
    for name in ("curve.csv", "attackers.csv", file_of("them 0"), file_of("them 1")):
        kept = [(tmp_path / folder / name).read_bytes() for folder in ("whole", "cut")]
        assert kept[0] == kept[1]


WORDS = "train beating-mean-based-learners --cohort hedge --rounds 20 --algorithm cma --budget 16"
HEDGE = [*WORDS.split(), "--jobs", "1"]


@pytest.mark.usefixtures("working_folder")
def test_a_training_goes_to_a_new_directory_or_replaces_one_of_its_kind(
    run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    assert run_command(*HEDGE, "--out", "out")[::2] == (0, "")
    first = file_bytes()
    record = json.loads(first["out/training.json"])
    assert record["status"] == "complete"
    assert {f"out/{name}" for name in record["files"]} | {"out/training.json"} == set(first)
    for words, told in [
        ([], "--out out holds a training; continue it with --resume, replace it with --overwrite"),
        (["--resume"], "is complete; nothing to resume"),
        (["--resume", "--overwrite"], "give one"),
    ]:
        assert told in refusal_of(*HEDGE, "--out", "out", *words)
        assert file_bytes() == first
    Path("out/mine.txt").write_text("kept", encoding="utf-8")
    assert run_command(*HEDGE, "--out", "out", "--overwrite", "--seed", "5")[::2] == (0, "")
    assert set(file_bytes()) == {*first, "out/mine.txt"}
    assert file_bytes()["out/attackers.csv"] != first["out/attackers.csv"]


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("name", ["attackers.csv", "curve.csv", "attack-hedge.toml", "mine.txt"])
def test_a_training_replaces_no_file_of_somebody_else(name: str, refusal_of: RefusalOf) -> None:
    Path("out").mkdir()
    Path("out", name).write_text("mine", encoding="utf-8")
    for words in ([], ["--resume"], ["--overwrite"]):
        assert "holds other files" in refusal_of(*HEDGE, "--out", "out", *words)
        assert file_bytes() == {f"out/{name}": b"mine"}


def test_a_training_that_is_stuck_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, order = deng("hedge", rounds=10), Order("cma", 64, jobs=1)
    stopped(scenario, order, tmp_path / "out", 48)
    assert not list((tmp_path / "out").glob("*"))  # nothing was kept yet
    monkeypatch.setattr(training, "PAUSE", 0.0)
    stopped(scenario, order, tmp_path / "out", 48)
    with pytest.raises(UserError, match=r"holds another training; give another --out or start"):
        train(scenario, Order("exp3", 64, jobs=1), tmp_path / "out", resume=True)
    kept = tmp_path / "out" / "training.npz"
    tree = checkpoint.load(kept)
    tree["0"]["paid"] = tree["0"]["paid"][:, :3]
    checkpoint.save(kept, tree)
    for _ in range(2):
        with pytest.raises(UserError, match=r"start again with --over"):
            train(scenario, order, tmp_path / "out", resume=True)
        kept.write_bytes(b"PK nonsense")
    train(scenario, order, tmp_path / "out", overwrite=True)


def test_a_leader_of_ones_own_payoff_is_refused() -> None:
    members = [{"kind": "myopic", "coordinates": own} for own in ([0], [1, 2])]
    coalition = {"kind": "coalition", "outcomes": 3, "members": members}
    scenario = load("crowding", market=None, adversary=coalition)
    with pytest.raises(UserError, match="drop JointPayoff"):
        attacks(scenario, phases=2, looking=False, cohort=None)


@pytest.mark.parametrize("keys", [{}, {"pure": True}, {"cohort": "followers"}])
def test_the_leaders_seat_is_as_gymnasium_has_it(keys: dict[str, Any]) -> None:
    from gymnasium.utils.env_checker import check_env  # noqa: PLC0415 - slow

    env = regretless.LeaderEnv("beating-mean-based-learners", rounds=30, **keys)
    check_env(env, skip_render_check=True)


def test_in_the_leaders_seat_one_is_paid_what_a_run_logs() -> None:
    """Up then down, played from the seat, against Hedge; observed is what was played last."""
    env = regretless.LeaderEnv("beating-mean-based-learners", rounds=60, cohort="hedge", pure=True)
    seen, _ = env.reset(seed=4)
    assert seen[0] == 0.0
    total, over, seed = 0.0, False, 0
    while not over:
        seen, paid, over, _, info = env.step(int(round(seen[0] * 60) >= 30))
        total += paid
        assert seen[-3:].sum() == pytest.approx(1.0)
        assert info["outcome"].sum() == 1.0
    model = load("beating-mean-based-learners", rounds=60).build(seed=seed)
    assert isinstance(model.game.adversary.adversary, UpThenDown)  # type: ignore[attr-defined]
    model.run()
    assert total == pytest.approx(model.rounds_frame()["leader_payoff_0"].sum())
    with pytest.raises(UserError, match=r"reset\(\) begins another"):
        env.step(0)


def test_the_followers_seats_are_as_pettingzoo_has_them() -> None:
    from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: PLC0415 - slow

    def made() -> Any:
        return regretless.FollowersEnv(deng("best-response", "hedge", rounds=12))

    parallel_api_test(made(), num_cycles=30)
    parallel_seed_test(made, num_cycles=8)


def test_without_libraries_the_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "regretless.scenarios.training.environments", raising=False)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(UserError, match="pip install gymnasium pettingzoo"):
        _ = regretless.LeaderEnv


def test_seats_that_are_not_there_are_refused() -> None:
    with pytest.raises(UserError, match="'hedge' does not follow it"):
        regretless.FollowersEnv("beating-mean-based-learners", cohort="hedge", rounds=5)
    with pytest.raises(UserError, match="has no payoff"):
        regretless.LeaderEnv("consumers")
