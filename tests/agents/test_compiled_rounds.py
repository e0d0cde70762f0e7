"""Compiled rounds are those of the general path: every rule, windows, stops, checkpoints."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from resuming import check_resumes
from small_scenarios import make_scenario

from regretless import MarketModel, UserError
from regretless.agents.adversaries import IID
from regretless.agents.cohorts.compiled_rounds import KERNELS
from regretless.agents.learners.repeated_game import Q_LEARNING, _draw_exploring, play_rounds
from regretless.market import register
from regretless.market.core.arrays import draw_rows
from regretless.market.core.compiled import over_rows
from regretless.scenarios.assembly.scenario import Scenario

LEARNERS: list[tuple[str, dict[str, Any]]] = [
    ("q-learning", {"memory": 1, "sees": "all", "beta": 0.001, "initial": "uniform-play"}),
    ("q-learning", {"memory": 2, "sees": "own", "alpha": 0.4}),
    ("q-learning", {"memory": 0, "initial": 5.0}),
    ("hedge", {}),
    ("hedge", {"rate": 0.4}),
    ("discrete-choice", {"beta": 3.0, "discount": 0.5}),
    ("exp3", {}),
    ("exp3", {"exploration": False, "rate": "fixed"}),
    ("regret-matching", {}),
    ("regret-matching-plus", {}),
]
every_kernel = pytest.mark.parametrize(("response", "settings"), LEARNERS, ids=str)


def sellers(name: str, response: str, settings: Any, **keys: Any) -> dict[str, Any]:
    return {
        "name": name,
        "utility": "seller",
        "count": 2,
        "actions": 4,
        "parameters": {"cost": [0.9, 1.1], "quality": 2.0, "lowest": 1.4, "highest": 2.0},
        "response": response,
        "settings": settings,
        "measures": ["external", "swap"],
        **keys,
    }


def small_scenario(*cohorts: Any, rounds: int = 250, **keys: Any) -> Scenario:
    tables = {
        "adversary": {"kind": "iid", "outcomes": 1},
        "market": {"kind": "price-competition", "outside": 0.0},
        "forecaster": {"kind": "none"},
        "logs": "summary",
    }
    return make_scenario(*cohorts, rounds=rounds, **(tables | keys))


def played_both_ways(
    scenario: Scenario, *, log_every: int | None = None
) -> tuple[MarketModel, MarketModel]:
    """Play a scenario in compiled blocks, and on the general path."""
    compiled = scenario.build(seed=3, log_every=log_every)
    assert compiled.compiled is not None
    general = scenario.build(seed=3, log_every=log_every)
    general.compiled = None
    compiled.run()
    general.run()
    return compiled, general


def assert_same(compiled: MarketModel, general: MarketModel) -> None:
    """Compare tables, what players remember, and what the market counted."""
    assert compiled.played == general.played
    for cohort, other in zip(compiled.game.cohorts, general.game.cohorts, strict=True):
        assert cohort.rng.bit_generator.state == other.rng.bit_generator.state
        assert cohort.learner.play() == pytest.approx(other.learner.play(), abs=1e-9)
        assert cohort.learner.rounds == other.learner.rounds
        for name, value in other.ledger.state().items():
            assert cohort.ledger.state()[name] == pytest.approx(value, abs=1e-9), name
    ours = compiled.game.market
    theirs = general.game.market
    assert (ours.profile_counts == theirs.profile_counts).all()
    assert compiled.game.history.mean == pytest.approx(general.game.history.mean)
    assert (compiled.game.history.last(600) == general.game.history.last(600)).all()
    for frame in ("agents_frame", "regret_frame", "windows_frame", "rounds_frame"):
        ours_frame = getattr(compiled, frame)()
        their_frame = getattr(general, frame)()
        assert ours_frame.columns.tolist() == their_frame.columns.tolist()
        for column in their_frame.select_dtypes("number"):
            expected = their_frame[column].to_numpy(float)
            assert ours_frame[column].to_numpy(float) == pytest.approx(
                expected, abs=1e-9, nan_ok=True
            ), (frame, column)


@every_kernel
def test_compiled_rounds_are_those_of_the_general_path(response: str, settings: Any) -> None:
    scenario = small_scenario(sellers("sellers", response, settings))
    assert_same(*played_both_ways(scenario))


def test_every_kernel_is_compared() -> None:
    classes = {register.learner[name] for name, _ in LEARNERS}
    assert classes == set(KERNELS)


def test_learners_of_different_rules_play_together() -> None:
    scenario = small_scenario(
        sellers("remembering", *LEARNERS[0]),
        sellers("hedging", "hedge", {}, actions=3, count=1),
        sellers("matching", "regret-matching", {}, actions=5, count=1),
        rounds=300,
    )
    assert_same(*played_both_ways(scenario))


def test_rounds_between_two_entries_and_windows_are_compiled_blocks() -> None:
    scenario = small_scenario(
        sellers("sellers", *LEARNERS[0]), windows={"starts": [10, 77], "length": 50}
    )
    compiled, general = played_both_ways(scenario, log_every=60)
    assert_same(compiled, general)
    assert compiled.regret_frame()["round"].unique().tolist() == list(range(0, 250, 60))
    assert compiled.windows_frame()["last"].unique().tolist() == [59, 126]


def test_q_learners_remember_the_same_to_the_last_bit() -> None:
    compiled, general = played_both_ways(small_scenario(sellers("sellers", *LEARNERS[0])))
    ours = compiled.game.cohorts[0].learner
    theirs = general.game.cohorts[0].learner
    for name in ("q", "greedy", "state_index", "changed_at"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


QUICK_TO_SETTLE = {"memory": 0, "alpha": 0.5, "gamma": 0.0, "epsilon": 0.02}


def test_a_run_ends_once_no_greedy_action_has_changed_for_so_many_rounds() -> None:
    scenario = small_scenario(
        sellers("sellers", "q-learning", QUICK_TO_SETTLE),
        rounds=20_000,
        until={"greedy_unchanged": 300},
    )
    compiled, general = played_both_ways(scenario)
    assert compiled.played < 20_000
    assert_same(compiled, general)
    changed_at = compiled.game.cohorts[0].learner.changed_at
    assert compiled.played - changed_at.max() == 300


def test_a_stopping_rule_without_a_greedy_strategy_is_refused() -> None:
    scenario = small_scenario(sellers("s", "hedge", {}), until={"greedy_unchanged": 5})
    with pytest.raises(UserError, match=r"until.greedy_unchanged: no cohort has a greedy"):
        scenario.build()


@pytest.mark.parametrize("settings", [LEARNERS[0][1], LEARNERS[1][1]], ids=["all", "own"])
def test_compiled_rounds_go_on_from_a_checkpoint(settings: Any, tmp_path: Path) -> None:
    scenario = small_scenario(sellers("sellers", "q-learning", settings))
    check_resumes(scenario.build, 123, tmp_path)


@pytest.mark.parametrize(
    "keys",
    [
        {"logs": "full"},
        {"forecaster": {"kind": "running-mean"}},
        {"market": {"kind": "first-price"}},
    ],
    ids=str,
)
def test_what_looks_at_single_rounds_is_played_on_the_general_path(keys: Any) -> None:
    cohort = sellers("sellers", "hedge", {})
    if "market" in keys:
        cohort |= {"utility": "bidder", "parameters": {}}
    assert small_scenario(cohort, **keys).build().compiled is None


def test_an_agent_who_leaves_is_played_on_the_general_path() -> None:
    scenario = small_scenario(
        sellers("leaving", "hedge", {}, exits=10), sellers("staying", "hedge", {})
    )
    assert scenario.build().compiled is None


def test_markets_of_one_call_do_not_influence_each_other() -> None:
    """Two markets that are played at once are the two that are played alone."""
    own_losses = np.array([[0.4, 0.9, 0.1, 0.6], [0.4, 0.9, 0.1, 0.6]])  # own action fastest
    own_strides = np.array([[1, 2], [2, 1]])
    uniforms = np.random.default_rng(0).random((2, 200, 2))

    def play(markets: slice) -> np.ndarray[Any, Any]:
        own_uniforms = uniforms[markets]
        n_markets = len(own_uniforms)
        greedy = np.zeros((n_markets, 10), dtype=np.int64)
        profiles = np.zeros((n_markets, 200), dtype=np.int64)
        over_rows(
            play_rounds, n_markets, own_losses, own_strides, np.array([2, 1]), np.array([2, 2]),
            np.full(2, Q_LEARNING), np.tile([0.2, 0.5, 0.0, 0.2], (2, 1)), np.zeros(2, np.intp),
            np.full(2, 3), np.full(2, 3), np.array([0, 6]), np.array([0, 3]), 0, 0, own_uniforms,
            np.zeros((n_markets, 12)), greedy, np.zeros((n_markets, 2), np.int64),
            np.zeros((n_markets, 2), np.int64), np.zeros((n_markets, 2, 2)),
            np.full((n_markets, 2, 2), 0.5), np.zeros((n_markets, 2, 2)),
            np.zeros((n_markets, 2, 2, 2)), profiles, np.zeros(n_markets, np.int64),
        )  # fmt: skip
        return profiles

    together = play(slice(0, 2))
    assert (together[0] == play(slice(0, 1))[0]).all()
    assert (together[1] == play(slice(1, 2))[0]).all()
    assert (together[0] != together[1]).any()


def test_a_branch_in_which_an_agent_plays_one_action_is_played_so_in_every_round() -> None:
    learners = sellers("sellers", "q-learning", {"memory": 0, "initial": 5.0})
    trunk = small_scenario(learners, rounds=120).build(seed=1)
    trunk.run(40)
    times_before = trunk.game.cohorts[0].ledger.count[0, 3]
    branch = trunk.branch({"agent.1": 3})
    branch.run()
    assert branch.game.cohorts[0].ledger.count[0, 3] == times_before + 80


def test_a_market_that_is_replaced_is_played_from_then_on() -> None:
    learners = sellers("sellers", "q-learning", {"memory": 0, "initial": 5.0})
    scenario = small_scenario(learners, rounds=120)
    model = scenario.build(seed=1)
    model.run(40)
    asked_markets = []

    class Counting(IID):
        def commit(self, *what_it_sees: Any) -> Any:
            asked_markets.append(what_it_sees)
            return super().commit(*what_it_sees)

    model.replace(adversary=Counting(1, np.random.default_rng(0)))
    model.run()
    assert len(asked_markets) == 80


def test_a_branch_without_greedy_strategies_is_played_to_its_last_round() -> None:
    cohort = sellers("sellers", "q-learning", QUICK_TO_SETTLE)
    scenario = small_scenario(cohort, until={"greedy_unchanged": 300})
    model = scenario.build(seed=3)
    model.run(20)
    branch = model.branch({"cohort.sellers.response": "hedge"})
    branch.run()
    assert branch.played == 250


@pytest.mark.parametrize("kind", ["first-price", "second-price"])
def test_auctions_whose_ties_are_shared_are_played_in_compiled_blocks(kind: str) -> None:
    bidders = {
        "name": "bidders",
        "utility": "bidder",
        "count": 2,
        "actions": 5,
        "response": "q-learning",
        "settings": {"memory": 1, "sees": "all"},
        "measures": ["external"],
    }
    market = {"kind": kind, "redraw": False, "ties": "split"}
    compiled, general = played_both_ways(small_scenario(bidders, market=market))
    np.testing.assert_array_equal(
        compiled.game.cohorts[0].learner.q, general.game.cohorts[0].learner.q
    )
    described = general.game.market.described()
    assert compiled.game.market.described() == pytest.approx(described)


@pytest.mark.parametrize("greedy", [0, 1, 2])
def test_a_learner_that_explores_draws_by_the_sums_of_its_probabilities(greedy: int) -> None:
    """Beside a boundary, too, where an action is searched for and not computed."""
    share = 0.3
    strategy = np.full(3, share / 3)
    strategy[greedy] += 1.0 - share
    boundaries = np.cumsum(strategy) / strategy.sum()
    beside = np.concatenate([np.nextafter(boundaries[:2], 0.0), np.nextafter(boundaries[:2], 1.0)])
    for uniform in (*boundaries[:2], *beside, *np.linspace(0.0, 0.999, 40)):
        action = _draw_exploring(3, greedy, share, uniform)
        assert action == draw_rows(strategy[np.newaxis], np.array([uniform]))[0]
