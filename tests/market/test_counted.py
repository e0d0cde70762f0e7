"""A crowd that is counted is the crowd that is listed: the same play, regrets, sums and means."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from resuming import check_resumes
from scipy.stats import chisquare
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end

from regretless import MarketModel
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.logs.branch_gains import gains
from regretless.market.logs.counted import COUNT_COLUMN, agents_in
from regretless.market.logs.welfare import welfare_record
from regretless.market.records import Decision
from regretless.scenarios.assembly import populations
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import MULTIPLICITY_THRESHOLD
from regretless.scenarios.studies.analysis.measures import cohorts_of

CROWD = 3000  # agents
TYPES = 7


class CrowdedMarket(NamedTuple):
    """A kind of market, its outcomes, and what its crowd needs."""

    outcomes: int
    market: TomlTable
    crowd: TomlTable


MARKETS = {
    "none": CrowdedMarket(3, {}, {}),
    "prices": CrowdedMarket(3, {"feedback": "same-round"}, {}),
    "attendance": CrowdedMarket(2, {"kind": "attendance"}, {"actions": 3}),
    "routes": CrowdedMarket(
        2, {"kind": "routes", "free": [0.5, 0.0], "load": [0.0, 0.5], "noise": 0.1}, {}
    ),
    "cournot": CrowdedMarket(2, {"kind": "cournot", "slope": 1e-4, "noise": 0.2}, {}),
    "information": CrowdedMarket(2, {"kind": "information", "supply": 0.25}, {"actions": 2}),
}


def crowded_scenario(
    crowd: TomlTable, *, market: TomlTable | None = None, outcomes: int = 3, rounds: int = 25
) -> Scenario:
    """Return a scenario of a crowd of seven types and of three other agents."""
    small_cohort = cohort_table("few", 3, crowd.get("actions", 4))
    defaults = small_cohort | {"name": "crowd", "count": CROWD, "types": TYPES}
    adversary = {"kind": "drifting", "outcomes": outcomes}
    return make_scenario(
        defaults | crowd, small_cohort, rounds=rounds, adversary=adversary, market=market or None
    )


def types_in_order(spec: object, _: object) -> Indices:
    """Hand out types in their order: the order of protected losses moves digits, too."""
    types_of_others = np.random.default_rng(0).integers(TYPES, size=CROWD - TYPES)
    return np.concatenate([np.arange(TYPES), types_of_others])


def count_of_types(spec: object, _: object) -> Indices:
    return np.bincount(types_in_order(spec, None))


class ListedAndCounted(NamedTuple):
    """The same market played with an agent in each row and with many agents in a row."""

    listed: MarketModel
    counted: MarketModel


@cache
def listed_and_counted(name: str) -> ListedAndCounted:
    """Play few rounds, since sums in another order differ in the last digits and markets answer."""
    outcomes, market, crowd = MARKETS[name]
    models = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(populations, "draw_types", types_in_order)
        monkeypatch.setattr(populations, "draw_multiplicity", count_of_types)
        for multiplicity in (False, True):
            scenario = crowded_scenario(
                crowd | {"multiplicity": multiplicity}, market=market, outcomes=outcomes, rounds=8
            )
            models.append(play_to_end(scenario, seed=4))
    return ListedAndCounted(*models)


@cache
def agents_of_both(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    listed, counted = listed_and_counted(name)
    return listed.agents_frame(), counted.agents_frame()


every_market = pytest.mark.parametrize("name", MARKETS)


def assert_nearly_equal(listed: pd.DataFrame, counted: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(listed, counted, rtol=1e-11, atol=1e-11, check_dtype=False)


@every_market
def test_a_counted_row_stands_for_the_listed_agents_of_its_type(name: str) -> None:
    listed, counted = listed_and_counted(name)
    rows = counted.game.cohorts[0]
    agents = listed.game.cohorts[0]
    assert rows.multiplicity is not None
    assert rows.population == CROWD
    assert len(agents.row_of) == CROWD
    assert (rows.counts == agents.counts).all()
    agents_of_row = [counted.view(number).stands_for for number in range(1, TYPES + 1)]
    assert agents_of_row == rows.multiplicity.tolist()
    assert listed.view(1).stands_for == 1
    assert repr(counted) == repr(listed)


@every_market
@pytest.mark.parametrize(
    "column",
    [
        "mean_loss",
        "external_regret",
        "swap_regret",
        "decision_swap_regret",
        "exploitability",
        "bound",
        "bound_from_bias",
    ],
)
def test_a_counted_row_is_measured_as_each_of_its_agents(name: str, column: str) -> None:
    listed, counted = agents_of_both(name)
    of_agents = listed.query("cohort == 'crowd'")[column]
    of_rows = counted.query("cohort == 'crowd'")[column]
    row_of_agent = listed_and_counted(name).listed.game.cohorts[0].row_of
    np.testing.assert_allclose(of_rows.iloc[row_of_agent], of_agents, rtol=0, atol=1e-12)


@every_market
def test_a_counted_crowd_moves_the_market_as_the_listed_one(name: str) -> None:
    listed, counted = listed_and_counted(name)
    assert_nearly_equal(listed.rounds_frame(), counted.rounds_frame())


@every_market
def test_verdicts_on_a_counted_crowd_are_those_on_the_listed_one(name: str) -> None:
    listed, counted = listed_and_counted(name)
    assert_nearly_equal(listed.verdict_frame(), counted.verdict_frame())


@every_market
def test_means_over_a_counted_crowd_are_those_over_the_listed_one(name: str) -> None:
    listed, counted = agents_of_both(name)
    assert_nearly_equal(cohorts_of(listed, 0), cohorts_of(counted, 0))


@every_market
def test_welfare_of_a_counted_crowd_is_that_of_the_listed_one(name: str) -> None:
    listed, counted = agents_of_both(name)
    welfare_of_listed = pd.DataFrame(welfare_record(listed)).astype(float)
    welfare_of_counted = pd.DataFrame(welfare_record(counted)).astype(float)
    pd.testing.assert_frame_equal(welfare_of_listed, welfare_of_counted, rtol=1e-9, atol=1e-12)


class DrawnRounds(NamedTuple):
    """How many agents three rows have, their strategies, and what they drew in 300 rounds."""

    agents: Indices  # (3,)
    strategy: Array  # (3, A)
    decisions: list[Decision]


@cache
def drawn_rounds() -> DrawnRounds:
    crowd = {"response": "quantal", "eta": 2.0, "multiplicity": True, "types": 3, "count": 800}
    cohort = crowded_scenario(crowd, outcomes=2).build().game.cohorts[0]
    predicted = cohort.loss.losses(np.array([0.3, 0.8]))
    decisions = [cohort._respond(predicted) for _ in range(300)]
    return DrawnRounds(cohort.multiplicity, decisions[0].probabilities, decisions)


def test_all_agents_of_a_row_act_and_its_own_agent_is_one_of_them() -> None:
    agents, _, decisions = drawn_rounds()
    for decision in decisions:
        counts = decision.counts()
        assert (counts.sum(1) == agents).all()
        assert (counts[np.arange(3), decision.actions] >= 1).all()


def test_actions_of_all_agents_follow_their_strategy() -> None:
    agents, strategy, decisions = drawn_rounds()
    times_played = np.sum([decision.counts() for decision in decisions], axis=0)
    expected = len(decisions) * agents[:, None] * strategy
    assert (chisquare(times_played, expected, axis=1).pvalue > 1e-3).all()


def test_actions_of_the_agents_that_rows_show_follow_their_strategy() -> None:
    _, strategy, decisions = drawn_rounds()
    times_played = np.sum([np.eye(4)[decision.actions] for decision in decisions], axis=0)
    assert (chisquare(times_played, len(decisions) * strategy, axis=1).pvalue > 1e-3).all()


def test_counts_vary_as_those_of_independent_draws() -> None:
    """A binomial count of n agents with probability p has the variance n p (1 - p)."""
    agents, strategy, decisions = drawn_rounds()
    probability = strategy[0, 0]
    variance = np.var([decision.counts()[0, 0] for decision in decisions])
    assert variance == pytest.approx(agents[0] * probability * (1 - probability), rel=0.3)


BILLION = 10**9
every_response = pytest.mark.parametrize(
    "response", [{}, {"response": "quantal", "eta": 5.0}], ids=["best response", "quantal"]
)


@every_response
def test_a_crowd_of_a_billion_is_counted_unasked(response: TomlTable) -> None:
    crowd = response | {"count": BILLION, "types": 40}
    assert crowded_scenario(crowd).resolved.cohorts[0].multiplicity


@every_response
def test_a_billion_agents_are_as_many_rows_as_types(response: TomlTable) -> None:
    crowd = response | {"count": BILLION, "types": 40}
    model = crowded_scenario(crowd, market={"impact": 0.3}).build(seed=2)
    model.run(4)
    agents = model.agents_frame()
    rows = agents[agents["cohort"] == "crowd"]
    assert len(rows) == 40
    assert int(rows[COUNT_COLUMN].sum()) == BILLION
    assert agents_in(agents) == BILLION + 3
    assert (rows[COUNT_COLUMN] > BILLION / 40 * 0.99).all()
    assert "1,000,000,003 agents" in repr(model)
    assert model.verdict_frame()["agents"].iloc[0] == BILLION
    assert model.game.market.last["demand"].sum() <= 1 + 1e-12


COUNTED_QUANTAL = {"multiplicity": True, "response": "quantal", "eta": 4.0}


def test_a_counted_crowd_goes_on_from_a_checkpoint_and_in_a_branch(tmp_path: Path) -> None:
    scenario = crowded_scenario(COUNTED_QUANTAL, market={"impact": 0.3})

    def build() -> MarketModel:
        return scenario.build(seed=6)

    uninterrupted = check_resumes(build, 10, tmp_path)
    trunk = build()
    trunk.run(10)
    branch = trunk.branch()
    branch.run()
    pd.testing.assert_frame_equal(branch.agents_frame(), uninterrupted.agents_frame())


def test_gains_of_a_changed_branch_are_of_all_agents_that_are_counted() -> None:
    trunk = crowded_scenario(COUNTED_QUANTAL, market={"impact": 0.3}).build(seed=6)
    trunk.run(10)
    changed = trunk.branch({"cohort.crowd.eta": 40.0})
    trunk.run()
    changed.run()
    assert agents_in(gains(trunk, changed)) == CROWD + 3


def test_a_branch_in_which_a_counted_crowd_would_learn_is_refused() -> None:
    trunk = crowded_scenario({"count": MULTIPLICITY_THRESHOLD + 1}).build()
    with pytest.raises(UserError, match="multiplicity = false"):
        trunk.branch({"cohort.crowd.response": "hedge"})
