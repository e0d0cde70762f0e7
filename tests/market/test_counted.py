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
from regretless.scenarios.config.validation import MANY
from regretless.scenarios.studies.analysis.measures import cohorts_of

REGRETS = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret"]
MARKETS: dict[str, tuple[int, TomlTable, TomlTable]] = {  # outcomes, market, cohort
    "none": (3, {}, {}),
    "prices": (3, {"feedback": "same-round"}, {}),
    "attendance": (2, {"kind": "attendance"}, {"actions": 3}),
    "routes": (2, {"kind": "routes", "free": [0.5, 0.0], "load": [0.0, 0.5], "noise": 0.1}, {}),
    "cournot": (2, {"kind": "cournot", "slope": 1e-4, "noise": 0.2}, {}),
    "information": (2, {"kind": "information", "supply": 0.25}, {"actions": 2}),
}


def scenario(cohort: TomlTable, market: TomlTable, outcomes: int, **keys: Any) -> Scenario:
    few = cohort_table("few", 3, cohort.get("actions", 4))
    own = few | {"name": "crowd", "count": 3000, "types": 7} | cohort
    given = {"adversary": {"kind": "drifting", "outcomes": outcomes}, "market": market or None}
    return make_scenario(own, few, **{"rounds": 25} | given | keys)


def handed_out(spec: Any, _: Any) -> Any:
    """Hand out types in their order: the order of protected losses moves digits, too."""
    others = np.random.default_rng(0).integers(spec.types, size=spec.count)
    return np.concatenate([np.arange(spec.types), others[spec.types :]])


@pytest.mark.parametrize("name", MARKETS)
def test_a_counted_crowd_is_the_listed_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To rounding errors: few rounds, since sums in another order differ, and markets answer."""
    monkeypatch.setattr(populations, "_shared", handed_out)
    monkeypatch.setattr(
        populations, "drawn_multiplicity", lambda spec, _: np.bincount(handed_out(spec, None))
    )
    goods, market, cohort = MARKETS[name]
    both = [scenario(cohort | {"multiplicity": n}, market, goods, rounds=8) for n in (False, True)]
    listed, counted = (play_to_end(one, seed=4) for one in both)
    ours, theirs = counted.game.cohorts[0], listed.game.cohorts[0]
    assert ours.multiplicity is not None
    assert ours.population == len(theirs.row_of) == 3000
    assert (ours.counts == theirs.counts).all()
    assert [counted.view(i + 1).stands_for for i in range(7)] == ours.multiplicity.tolist()
    assert listed.view(1).stands_for == 1
    frames = rows, own = [model.agents_frame() for model in (listed, counted)]
    mine = own[own["cohort"] == "crowd"].iloc[theirs.row_of]
    for column in (*REGRETS, "exploitability", "bound", "bound_from_bias"):
        expected = rows.loc[rows["cohort"] == "crowd", column]
        np.testing.assert_allclose(mine[column], expected, rtol=0, atol=1e-12)
    near: TomlTable = {"rtol": 1e-11, "atol": 1e-11, "check_dtype": False}
    pd.testing.assert_frame_equal(listed.rounds_frame(), counted.rounds_frame(), **near)
    pd.testing.assert_frame_equal(listed.verdict_frame(), counted.verdict_frame(), **near)
    pd.testing.assert_frame_equal(*(cohorts_of(frame, 0) for frame in frames), **near)
    records = [pd.DataFrame(welfare_record(frame)).astype(float) for frame in frames]
    pd.testing.assert_frame_equal(*records, rtol=1e-9, atol=1e-12)
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


@pytest.mark.parametrize("response", [{}, {"response": "quantal", "eta": 5.0}])
def test_a_billion_agents_are_as_many_rows_as_archetypes(response: TomlTable) -> None:
    made = scenario(response | {"count": 10**9, "types": 40}, {"impact": 0.3}, 3)
    assert made.peopled.cohort[0].multiplicity  # unasked
    model = made.build(seed=2)
    model.run(4)
    agents = model.agents_frame()
    rows = agents[agents["cohort"] == "crowd"]
    assert len(rows) == 40
    assert int(rows[COUNT].sum()) == BILLION
    assert agents_in(agents) == BILLION + 3
    assert (rows[COUNT] > BILLION / 40 * 0.99).all()
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
    trunk = crowded_scenario({"count": MANY + 1}).build()
    with pytest.raises(UserError, match="multiplicity = false"):
        trunk.branch({"cohort.crowd.response": "hedge"})
