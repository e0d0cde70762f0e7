"""A crowd that is counted is the crowd that is listed: the same play, regrets, sums and means."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from resuming import check_resumes
from scipy.stats import chisquare
from worlds import Raw

from regretless.market.core.errors import UserError
from regretless.market.logs.branch_gains import gains
from regretless.market.logs.counted import COUNT_COLUMN, agents_in
from regretless.market.logs.welfare import welfare_record
from regretless.scenarios.assembly import populations
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import MANY
from regretless.scenarios.studies.analysis.measures import cohorts_of

REGRETS = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret"]
MARKETS: dict[str, tuple[int, Raw, Raw]] = {  # outcomes, market, cohort
    "none": (3, {}, {}),
    "prices": (3, {"feedback": "same-round"}, {}),
    "attendance": (2, {"kind": "attendance"}, {"actions": 3}),
    "routes": (2, {"kind": "routes", "free": [0.5, 0.0], "load": [0.0, 0.5], "noise": 0.1}, {}),
    "cournot": (2, {"kind": "cournot", "slope": 1e-4, "noise": 0.2}, {}),
    "information": (2, {"kind": "information", "supply": 0.25}, {"actions": 2}),
}


def scenario(cohort: Raw, market: Raw, outcomes: int, **keys: Any) -> Scenario:
    few = worlds.cohort("few", 3, cohort.get("actions", 4))
    own = few | {"name": "crowd", "count": 3000, "types": 7} | cohort
    given = {"adversary": {"kind": "drifting", "outcomes": outcomes}, "market": market or None}
    return worlds.scenario(own, few, **{"rounds": 25} | given | keys)


def handed_out(spec: Any, _: Any) -> Any:
    """Hand out types in their order: the order of protected losses moves digits, too."""
    others = np.random.default_rng(0).integers(spec.types, size=spec.count)
    return np.concatenate([np.arange(spec.types), others[spec.types :]])


@pytest.mark.parametrize("name", MARKETS)
def test_a_counted_crowd_is_the_listed_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To rounding errors: few rounds, since sums in another order differ, and markets answer."""
    monkeypatch.setattr(populations, "draw_types", handed_out)
    monkeypatch.setattr(
        populations, "draw_multiplicity", lambda spec, _: np.bincount(handed_out(spec, None))
    )
    goods, market, cohort = MARKETS[name]
    both = [scenario(cohort | {"multiplicity": n}, market, goods, rounds=8) for n in (False, True)]
    listed, counted = (worlds.played(one, seed=4) for one in both)
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
    near: Raw = {"rtol": 1e-11, "atol": 1e-11, "check_dtype": False}
    pd.testing.assert_frame_equal(listed.rounds_frame(), counted.rounds_frame(), **near)
    pd.testing.assert_frame_equal(listed.verdict_frame(), counted.verdict_frame(), **near)
    pd.testing.assert_frame_equal(*(cohorts_of(frame, 0) for frame in frames), **near)
    records = [pd.DataFrame(welfare_record(frame)).astype(float) for frame in frames]
    pd.testing.assert_frame_equal(*records, rtol=1e-9, atol=1e-12)
    assert repr(counted) == repr(listed)


def test_those_who_draw_follow_their_strategy() -> None:
    """Chi-square of the actions of all, and of those of the rows' own agents."""
    keys = {"response": "quantal", "eta": 2.0, "multiplicity": True, "types": 3, "count": 800}
    cohort: Any = scenario(keys, {}, 2).build().game.cohorts[0]
    heads, predicted = cohort.multiplicity, cohort.loss.losses(np.array([0.3, 0.8]))
    rounds = [cohort._respond(predicted) for _ in range(300)]
    strategy = rounds[0].probabilities
    for decision in rounds:
        assert (decision.counts().sum(1) == heads).all()
        assert (decision.counts()[np.arange(3), decision.actions] >= 1).all()
    total = np.sum([decision.counts() for decision in rounds], axis=0)
    shown = np.sum([np.eye(4)[decision.actions] for decision in rounds], axis=0)
    for seen, each in ((total, heads), (shown, np.ones(3))):
        assert (chisquare(seen, 300 * each[:, None] * strategy, axis=1).pvalue > 1e-3).all()
    spread = np.var([decision.counts()[0, 0] for decision in rounds])
    assert spread == pytest.approx(heads[0] * strategy[0, 0] * (1 - strategy[0, 0]), rel=0.3)


@pytest.mark.parametrize("response", [{}, {"response": "quantal", "eta": 5.0}])
def test_a_billion_agents_are_as_many_rows_as_archetypes(response: Raw) -> None:
    made = scenario(response | {"count": 10**9, "types": 40}, {"impact": 0.3}, 3)
    assert made.resolved.cohorts[0].multiplicity  # unasked
    model = made.build(seed=2)
    model.run(4)
    agents = model.agents_frame()
    crowd = agents[agents["cohort"] == "crowd"]
    assert (len(crowd), int(crowd[COUNT_COLUMN].sum())) == (40, 10**9)
    assert agents_in(agents) == 10**9 + 3
    assert (crowd[COUNT_COLUMN] > 10**9 / 40 * 0.99).all()
    assert "1,000,000,003 agents" in repr(model)
    assert model.verdict_frame()["agents"].iloc[0] == 10**9
    assert model.game.market.last["demand"].sum() <= 1 + 1e-12


def test_it_goes_on_from_a_checkpoint_and_in_a_branch(tmp_path: Path) -> None:
    keys = {"multiplicity": True, "response": "quantal", "eta": 4.0}
    given = scenario(keys, {"impact": 0.3}, 3)
    whole = check_resumes(lambda: given.build(seed=6), 10, tmp_path)
    first = given.build(seed=6)
    first.run(10)
    branch, changed = first.branch(), first.branch({"cohort.crowd.eta": 40.0})
    for model in (branch, changed, first):
        model.run()
    pd.testing.assert_frame_equal(branch.agents_frame(), whole.agents_frame())
    found = gains(first, changed)
    assert agents_in(found) == 3003
    with pytest.raises(UserError, match="multiplicity = false"):
        scenario({"count": MANY + 1}, {}, 3).build().branch({"cohort.crowd.response": "hedge"})
