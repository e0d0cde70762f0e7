"""Controls that a forecast is compared with: a coin, one action for ever, learners over advice."""

from pathlib import Path

import numpy as np
import pytest
from resuming import check_resumes
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end

from regretless import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario

DRIFTING = {"kind": "drifting", "outcomes": 2}


def play_beside_followers(**cohort_keys: object) -> MarketModel:
    """Play a cohort of controls beside followers of the forecast, against drifting outcomes."""
    followers = cohort_table("followers", 3, actions=4)
    controls = cohort_table("controls", 5, actions=4, **cohort_keys)
    scenario = make_scenario(followers, controls, adversary=DRIFTING, rounds=80)
    return play_to_end(scenario, seed=2)


def advised_scenario(*advice: str, response: str = "hedge", **keys: object) -> Scenario:
    followers = cohort_table("followers", 3, actions=4)
    learners = cohort_table("learners", 4, actions=4, response=response, advice=list(advice))
    forecaster: TomlTable = {"models": ["panel"]}
    settings = {"adversary": DRIFTING, "rounds": 80, "forecaster": forecaster} | keys
    return make_scenario(followers, learners, **settings)


def test_a_coin_plays_every_action_equally_often_in_expectation() -> None:
    model = play_beside_followers(response="coin")
    strategy = model.game.cohorts[1].learner.play()
    assert np.array_equal(strategy, np.full(strategy.shape, 0.25))


def test_a_coin_is_charged_for_the_actions_that_it_draws() -> None:
    model = play_beside_followers(response="coin")
    counts = model.game.cohorts[1].ledger.count
    is_whole = counts == np.rint(counts)
    assert is_whole.all()
    assert (counts.sum(axis=1) == 80).all()
    assert (counts > 0).all()  # 80 draws among four actions, of five agents


def test_a_coin_loses_what_the_average_of_the_actions_loses_up_to_chance() -> None:
    coin = play_beside_followers(response="coin").agents_frame().query("cohort == 'controls'")
    fixed = [
        play_beside_followers(response="always", settings={"action": action})
        .agents_frame()
        .query("cohort == 'controls'")["mean_loss"]
        .to_numpy()
        for action in range(4)
    ]
    four_deviations = 4 * 0.5 / np.sqrt(80 * 5)  # of the mean of 400 draws of losses in [0, 1]
    difference = coin["mean_loss"].to_numpy().mean() - np.mean(fixed)
    assert abs(difference) < four_deviations


def test_always_plays_its_action_and_nothing_else() -> None:
    model = play_beside_followers(response="always", settings={"action": 2})
    swaps = model.swaps_frame()
    numbers_of_controls = model.agents_frame().query("cohort == 'controls'")["agent"]
    assert set(swaps[swaps["agent"].isin(numbers_of_controls)]["action"]) == {2}


def test_always_refuses_an_action_that_there_is_not() -> None:
    with pytest.raises(UserError, match="action = 4: give an action from 0 to 3"):
        play_beside_followers(response="always", settings={"action": 4})


def test_hedge_advised_by_actions_alone_is_hedge() -> None:
    advised = play_beside_followers(response="hedge", advice=["actions"])
    plain = play_beside_followers(response="hedge")
    for model in (advised, plain):
        assert model.game.cohorts[1].name == "controls"
    losses = [model.agents_frame()["mean_loss"].to_numpy() for model in (advised, plain)]
    assert np.array_equal(*losses)


def play_newsvendors(*advice: str, rounds: int = 300) -> MarketModel:
    """Play newsvendors of equal costs: one who follows the forecast, and one who takes advice."""
    kind: TomlTable = {"utility": "newsvendor", "parameters": {"underage": 3.0, "overage": 1.0}}
    follower = cohort_table("follower", 1, actions=6, **kind)
    learner = cohort_table("learner", 1, actions=6, response="hedge", advice=list(advice), **kind)
    adversary = {"kind": "drifting", "outcomes": 1}
    forecaster: TomlTable = {"models": ["panel"]}
    scenario = make_scenario(
        follower, learner, adversary=adversary, rounds=rounds, forecaster=forecaster
    )
    return play_to_end(scenario)


def mean_loss_of_learner(model: MarketModel) -> float:
    return float(model.agents_frame().query("cohort == 'learner'")["mean_loss"].iloc[0])


def test_who_is_advised_by_one_model_alone_loses_what_following_it_costs() -> None:
    model = play_newsvendors("smoothing-0.2")
    following = model.models_frame().query("model == 'smoothing-0.2'")["mean_loss"].iloc[0]
    assert mean_loss_of_learner(model) == pytest.approx(following, abs=1e-12)


def test_hedge_over_advice_loses_little_more_than_the_best_model_and_the_best_action() -> None:
    model = play_newsvendors("panel", "actions", rounds=400)
    learner = model.game.cohorts[1]
    assert learner.advice.n_experts == 7 + 6
    bound_of_hedge = learner.learner.bound(400)
    best_model = model.models_frame()["mean_loss"].min()
    assert mean_loss_of_learner(model) <= best_model + bound_of_hedge
    regrets = model.agents_frame().query("cohort == 'learner'")["external_regret"]
    assert regrets.max() <= bound_of_hedge


def test_a_model_that_carries_its_errors_advises_by_its_name() -> None:
    learner = play_newsvendors("last-value-with-errors", "actions", rounds=5).game.cohorts[1]
    assert learner.advice.n_experts == 1 + 6


def test_a_learner_over_advice_resumes_to_the_same_bits(tmp_path: Path) -> None:
    scenario = advised_scenario("panel", "actions")
    check_resumes(lambda: scenario.build(seed=4), 33, tmp_path)


def test_advised_learners_may_come_and_go() -> None:
    followers = cohort_table("followers", 2, actions=3)
    learners = cohort_table(
        "learners",
        4,
        actions=3,
        response="hedge",
        advice=["panel", "actions"],
        entry_rate=0.2,
        exit_rate=0.1,
    )
    model = play_to_end(make_scenario(followers, learners, adversary=DRIFTING))
    assert model.agents_frame().query("cohort == 'learners'")["mean_loss"].notna().any()


@pytest.mark.parametrize("response", ["best-response", "exp3"])
def test_in_a_branch_advised_learners_may_answer_in_another_way(response: str) -> None:
    trunk = advised_scenario("panel", "actions").build()
    trunk.run(20)
    branch = trunk.branch({"cohort.learners.response": response})
    branch.run()
    rows = branch.agents_frame().query("cohort == 'learners'")
    assert set(rows["response"]) == {response}


def test_in_a_branch_learners_may_be_advised_otherwise() -> None:
    trunk = advised_scenario("panel", "actions").build()
    trunk.run(20)
    branch = trunk.branch({"cohort.learners.advice": ["actions"]})
    assert branch.game.cohorts[1].advice.n_experts == 4


def test_a_bandit_learner_cannot_follow_advice() -> None:
    with pytest.raises(UserError, match="advice: exp3 is told the loss of its own action alone"):
        advised_scenario("panel", response="exp3").build()


@pytest.mark.parametrize(
    ("advice", "line"),
    [
        (["panle"], r"cohort\.learners\.advice: unknown adviser 'panle'; did you mean 'panel'"),
        (["panel", "action"], "unknown adviser 'action'; did you mean 'actions'"),
        (["actions", "actions"], "'actions' is listed twice"),
        ([], "advice = .*: too short a list"),
    ],
)
def test_advice_that_there_is_not_is_refused_in_one_line(advice: list[str], line: str) -> None:
    with pytest.raises(UserError, match=line):
        advised_scenario(*advice).build()


def test_an_adversary_who_looks_ahead_can_copy_advice_and_models() -> None:
    """It plays copies of the game, with the models and what they remember of the context."""
    cohorts = [
        cohort_table("followers", 2, actions=3),
        cohort_table("learners", 2, actions=3, response="hedge", advice=["panel"]),
    ]
    scenario = make_scenario(
        *cohorts,
        adversary={"kind": "look-ahead", "outcomes": 2},
        forecaster={"models": ["panel"]},
        rounds=12,
    )
    model = play_to_end(scenario)
    assert model.played == 12


def test_a_leader_is_paid_by_cohorts_with_different_numbers_of_actions() -> None:
    cohorts = [cohort_table("three", 2, actions=3), cohort_table("four", 2, actions=4)]
    members = [
        {"kind": "myopic", "coordinates": [0], "grid": 3},
        {"kind": "cyclic", "coordinates": [1], "period": 10.0},
    ]
    adversary = {"kind": "coalition", "outcomes": 2, "members": members}
    model = play_to_end(make_scenario(*cohorts, adversary=adversary, rounds=5))
    assert model.played == 5
