"""A crowd that is counted is the crowd that is listed: the same play, regrets, sums and means."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from regretless.agents.cohorts.responding import RespondingCohort
from regretless.agents.responses import Quantal
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import observed
from regretless.market.game.round import play_round
from regretless.market.logs.comparisons import gains
from regretless.market.logs.welfare import (
    COUNT,
    agents_in,
    gini,
    mean_difference,
    mean_of,
    means_of,
    welfare_record,
)
from regretless.market.losses import Linear
from regretless.market.markets.congestion import AttendanceMarket
from regretless.market.model import MarketModel
from regretless.market.regret.ledger import Ledger
from regretless.scenarios.build import populations
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.live.watched import Watched
from regretless.scenarios.shards.checks import check_spec
from regretless.scenarios.spec.crowds import MANY
from regretless.scenarios.spec.scenario import validated
from regretless.scenarios.studies.analysis import cohorts_of, windows_of

TOLERANCE = 1e-12
REGRETS = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret"]
Keys = dict[str, Any]
MARKETS: dict[str, tuple[int, Keys, Keys]] = {  # outcomes, market, cohort
    "none": (3, {}, {}),
    "prices": (3, {"feedback": "same-round"}, {}),
    "attendance": (2, {"kind": "attendance"}, {"actions": 3}),
    "routes": (2, {"kind": "routes", "free": [0.5, 0.0], "load": [0.0, 0.5], "noise": 0.1}, {}),
    "cournot": (2, {"kind": "cournot", "slope": 1e-4, "noise": 0.2}, {}),
    "information": (2, {"kind": "information", "supply": 0.25}, {"actions": 2}),
}


def scenario(cohort: Keys, market: Keys, outcomes: int, **keys: Any) -> Scenario:
    own = {"name": "crowd", "utility": "linear", "count": 3000, "archetypes": 7, "actions": 4}
    raw: Keys = {
        "name": "crowd",
        "rounds": 25,
        "adversary": {"kind": "drifting", "outcomes": outcomes},
        "cohort": [own | cohort, {"name": "few", "utility": "linear", "count": 3, "actions": 3}],
    }
    raw["cohort"][1]["actions"] = cohort.get("actions", 4)
    return Scenario(validated(raw | ({"market": market} if market else {}) | keys, origin=Path()))


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[MarketModel, MarketModel]]:
    """Build a crowd as a list in the order of the archetypes, and the same crowd counted.

    The order in which losses are protected moves the last digits of what is predicted.
    """

    def handed_out(spec: Any, _: Any) -> Any:
        others = np.random.default_rng(0).integers(spec.archetypes, size=spec.count)
        return np.concatenate([np.arange(spec.archetypes), others[spec.archetypes :]])

    monkeypatch.setattr(populations, "_shared", handed_out)
    monkeypatch.setattr(
        populations, "drawn_heads", lambda spec, _: np.bincount(handed_out(spec, None))
    )

    def build(
        cohort: Keys | None = None, market: Keys | None = None, goods: int = 3, **keys: Any
    ) -> tuple[MarketModel, MarketModel]:
        listed, counted = (
            scenario((cohort or {}) | {"counted": how}, market or {}, goods, **keys).build(seed=4)
            for how in (False, True)
        )
        return listed, counted

    return build


def same(listed: MarketModel, counted: MarketModel) -> None:
    """Hold two models of one crowd against each other, to rounding errors."""
    (ours, theirs), near = (counted.game.cohorts[0], listed.game.cohorts[0]), TOLERANCE
    assert ours.heads is not None
    assert ours.population == len(theirs.row_of) == 3000
    assert (ours.counts == theirs.counts).all()
    frames = [model.agents_frame() for model in (listed, counted)]
    rows, own = frames
    mine = own[own["cohort"] == "crowd"].iloc[theirs.row_of].reset_index()
    for column in (*REGRETS, "exploitability", "bound", "bound_from_bias"):
        expected = rows.loc[rows["cohort"] == "crowd", column].to_numpy()
        np.testing.assert_allclose(mine[column], expected, rtol=0, atol=near)
    tables = [
        [model.rounds_frame(), model.verdict_frame(), cohorts_of(frame, 0)]
        for model, frame in zip((listed, counted), frames, strict=True)
    ]
    for one, other in zip(*tables, strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=1e-11, atol=1e-11, check_dtype=False)
    records = [pd.DataFrame(welfare_record(frame)).astype(float) for frame in frames]
    pd.testing.assert_frame_equal(*records, rtol=1e-9, atol=near)
    assert repr(counted) == repr(listed)


@pytest.mark.parametrize("name", MARKETS)
def test_a_counted_crowd_is_the_listed_one_in_every_market(name: str, alike: Any) -> None:
    """Few rounds, since sums in another order differ in the last digit, and markets answer."""
    goods, market, cohort = MARKETS[name]
    listed, counted = alike(cohort, market, goods, rounds=8)
    for model in (listed, counted):
        model.run()
    same(listed, counted)


def test_of_those_who_draw_the_regrets_are_the_same(alike: Any) -> None:
    """What rows are charged is their law of play, whatever is drawn."""
    for response in ({"response": "quantal", "eta": 6.0}, {"response": "certainty-equivalent"}):
        listed, counted = alike(response)
        for model in (listed, counted):
            model.run()
        same(listed, counted)


@pytest.mark.parametrize(
    "kind", ["myopic", "look-ahead", "stackelberg-committer", "regret-maximiser"]
)
def test_leaders_are_paid_by_as_many(kind: str, alike: Any) -> None:
    leader = {"kind": kind, "outcomes": 3}
    leader |= {} if kind == "regret-maximiser" else {"weights": [[0.1, 0.9, 0.4]] * 4}
    listed, counted = alike({"response": "quantal", "eta": 6.0}, adversary=leader, rounds=12)
    for model in (listed, counted):
        model.run()
    same(listed, counted)
    if kind != "regret-maximiser":
        paid = [model.tracker.paid(0) for model in (listed, counted)]
        assert paid[0] == pytest.approx(paid[1], abs=TOLERANCE)
        assert "leader_payoff_0" in counted.rounds_frame()
        extents = [model.tracker.extent(0) for model in (listed, counted)]
        assert extents[0] == extents[1]


def test_leaders_that_learn_are_told_of_as_many(alike: Any) -> None:
    seen = [
        observed(model.game.cohorts, play_round(model.game)).play["crowd"]
        for model in alike({"response": "quantal", "eta": 6.0})
    ]
    assert seen[0] == pytest.approx(seen[1], abs=TOLERANCE)
    assert seen[0].sum() == pytest.approx(1)


def test_what_is_wished_for_is_the_same(alike: Any) -> None:
    wish = {"kind": "decision-swap", "objective": "welfare"}
    market = {"kind": "attendance", "feedback": "same-round"}
    listed, counted = alike({"actions": 3}, market, 2, forecaster=wish, rounds=4)
    for model in (listed, counted):
        model.run()
    same(listed, counted)


@register.policy("always-the-second")
def _second(_: Any) -> int:
    return 1


LIES = {"utility": "ces", "parameters": {"rho": 0.5}, "reports": {"rho": [0.3, 0.9]}}


@pytest.mark.parametrize(
    "cohort", [{"joins": 5, "leaves": 20}, {"policies": ["always-the-second"]}, LIES]
)
def test_so_are_late_crowds_liars_policies_models_and_windows(cohort: Keys, alike: Any) -> None:
    models = {"kind": "decision-swap", "models": ["last-value", "running-mean"]}
    listed, counted = alike(cohort, forecaster=models, windows={"every": 5})
    for model in (listed, counted):
        model.run()
    same(listed, counted)
    told = [windows_of(m.windows_frame(), m.agents_frame()) for m in (listed, counted)]
    pd.testing.assert_frame_equal(*told, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("counts", [[1, 4, 2], [3, 3, 3]])
def test_those_who_draw_follow_their_law(counts: list[int]) -> None:
    """Chi-square of the actions of all, and of those of the rows' own agents."""
    loss = Linear(np.random.default_rng(1).random((3, 4, 2)))
    heads = np.array(counts) * 100
    cohort = RespondingCohort(
        name="crowd",
        utility="linear",
        block=0,
        loss=loss,
        row_of=np.arange(3),
        coefficients=(loss.offset, loss.weights),
        response=Quantal(2.0),
        ledger=Ledger(3, 4),
        rng=np.random.default_rng(5),
        heads=heads,
    )
    predicted = loss.losses(np.array([0.3, 0.8]))
    rounds = [cohort._decision(predicted) for _ in range(300)]
    law = rounds[0].probabilities
    total = np.sum([decision.counts() for decision in rounds], axis=0)
    shown = np.sum([np.eye(4)[decision.actions] for decision in rounds], axis=0)
    for decision in rounds:
        assert (decision.counts().sum(1) == heads).all()
        assert (decision.counts()[np.arange(3), decision.actions] >= 1).all()
    for seen, each in ((total, heads), (shown, np.ones(3))):
        for k in range(3):
            assert chisquare(seen[k], 300 * each[k] * law[k]).pvalue > 1e-3
    spread = np.var([decision.counts()[0, 0] for decision in rounds])
    assert spread == pytest.approx(heads[0] * law[0, 0] * (1 - law[0, 0]), rel=0.3)


def test_demand_is_what_the_drawn_counts_come_to() -> None:
    keys = {"response": "quantal", "eta": 4.0, "counted": True}
    model = scenario(keys, {"feedback": "lagged"}, 3).build(seed=1)
    model.run(3)
    shares, total = model.game.market.tables, np.zeros(3)
    for place, cohort in enumerate(model.game.cohorts):
        actions, counts = model.last[place]
        for row, action in enumerate(actions):
            played = counts()[row] if counts is not None else np.eye(4)[action]
            total += played @ shares[place][cohort.row_of[row]]
    assert model.game.market.last["demand"] == pytest.approx(total / 3003, abs=TOLERANCE)


@pytest.mark.parametrize("response", [{}, {"response": "quantal", "eta": 5.0}])
def test_a_billion_agents_are_as_many_rows_as_archetypes(response: Keys) -> None:
    made = scenario(response | {"count": 10**9, "archetypes": 40}, {"impact": 0.3}, 3)
    assert made.peopled.cohort[0].counted  # unasked
    model = made.build(seed=2)
    model.run(4)
    agents = model.agents_frame()
    crowd = agents[agents["cohort"] == "crowd"]
    assert (len(crowd), int(crowd[COUNT].sum())) == (40, 10**9)
    assert agents_in(agents) == 10**9 + 3
    assert (crowd[COUNT] > 10**9 / 40 * 0.99).all()
    assert "1,000,000,003 agents" in repr(model)
    assert model.verdict_frame()["agents"].iloc[0] == 10**9
    assert model.game.market.last["demand"].sum() <= 1 + TOLERANCE


def test_views_and_the_live_page_count_everybody() -> None:
    model = scenario({"count": 10**7, "archetypes": 5}, {}, 3).build(seed=2)
    watched = Watched(model)
    for _ in range(3):
        model.step()
        watched.note()
    assert sum(view.stands_for for view in model.agents) == 10**7 + 3
    tables = watched.tables()
    taken = tables["actions"].groupby(["cohort", "round"])["value"].sum()
    assert (taken["crowd"] == 10**7).all()
    ends = tables["regret_curves"].loc["crowd"].iloc[-1]
    crowd = tables["agents"].query("cohort == 'crowd'")
    assert ends["mean"] == pytest.approx(mean_of(crowd, "decision_swap_regret"), abs=TOLERANCE)


def test_every_archetype_has_somebody() -> None:
    spec = scenario({"count": 60, "archetypes": 50, "counted": True}, {}, 3).peopled.cohort[0]
    for root in range(20):
        heads = populations.drawn_heads(spec, root)
        assert (heads >= 1).all()
        assert heads.sum() == 60


def test_a_crowd_is_counted_above_a_million_or_where_it_is_asked_for() -> None:
    def counted(**keys: Any) -> bool:
        return bool(scenario(keys, {}, 3).peopled.cohort[0].counted)

    assert not counted(count=MANY)
    assert counted(count=MANY + 1)
    assert not counted(count=MANY + 1, counted=False)
    assert not counted(count=MANY + 1, response="hedge")
    assert not counted(count=MANY + 1, exit_rate=0.1)
    assert counted(count=10, counted=True)


OBSTACLES: list[tuple[Keys, Keys, str]] = [
    ({"archetypes": None}, {}, "give archetypes"),
    ({"response": "hedge"}, {}, "response = 'hedge'"),
    ({"response": "private"}, {}, "response = 'private'"),
    ({"entry_rate": 0.5}, {}, "entry_rate tells agents"),
    ({"within_means": True}, {}, "within_means tells agents"),
    ({}, {"network": {"graph": "small-world"}}, "[network]"),
    ({}, {"market": {"kind": "portfolio"}}, "market 'portfolio' deals"),
]


@pytest.mark.parametrize(("cohort", "keys", "reason"), OBSTACLES)
def test_what_tells_agents_apart_is_refused(cohort: Keys, keys: Keys, reason: str) -> None:
    with pytest.raises(UserError, match=r"^cohort\.crowd\.counted: ") as refused:
        scenario({"counted": True} | cohort, keys.pop("market", {}), 3, **keys)
    assert reason in str(refused.value)
    assert ";" in str(refused.value)


def test_a_market_of_ones_own_says_that_it_weighs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(register.market, "_known", dict(register.market._known))

    @register.market("by-hand")
    class ByHand(AttendanceMarket):
        """It inherits the word of another class, which says nothing of its own ``clear``."""

    with pytest.raises(UserError, match="market 'by-hand' deals with agents one by one"):
        scenario({"counted": True, "actions": 3}, {"kind": "by-hand"}, 2)
    ByHand.weighs = True
    scenario({"counted": True, "actions": 3}, {"kind": "by-hand"}, 2).build().run(2)


def test_a_list_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(UserError, match="are not counted, since its agents have a loss each"):
        scenario({"count": 10**12, "archetypes": None}, {}, 3)


def test_single_agents_do_not_leave_a_count() -> None:
    model = scenario({"counted": True}, {}, 3).build()
    model.run(2)
    with pytest.raises(UserError, match="counted = false"):
        model.agents[1].remove()
    with pytest.raises(UserError, match="counted = false"):
        model.branch({"agent.1": 0})
    with pytest.raises(UserError, match="counted = false"):
        scenario({"counted": True}, {}, 3).build(apart=True)
    with pytest.raises(UserError, match="counted = false"):
        scenario({"counted": True}, {}, 3).build(room={"crowd": 2})


def test_counts_alone_are_not_shared_out() -> None:
    spec = scenario({"count": 10**9}, {}, 3).peopled
    check_spec(spec, 3)
    with pytest.raises(UserError, match=r"^cohort\.crowd\.counted: all crowds are counted"):
        check_spec(spec.model_copy(update={"cohort": spec.cohort[:1]}))


def test_it_goes_on_from_a_checkpoint_and_in_a_branch(tmp_path: Path) -> None:
    keys = {"counted": True, "response": "quantal", "eta": 4.0}
    whole, first, second = (scenario(keys, {"impact": 0.3}, 3).build(seed=6) for _ in range(3))
    whole.run()
    first.run(10)
    branch = first.branch()
    checkpoint.save(tmp_path / "state.npz", first.state())
    second.restore(checkpoint.load(tmp_path / "state.npz"))
    changed = first.branch({"cohort.crowd.eta": 40.0})
    for model in (second, branch, changed, first):
        model.run()
    for model in (second, branch):
        pd.testing.assert_frame_equal(model.agents_frame(), whole.agents_frame())
    found = gains(first, changed)
    assert agents_in(found) == 3003
    with pytest.raises(UserError, match="counted = false"):
        scenario({"count": MANY + 1}, {}, 3).build().branch({"cohort.crowd.response": "hedge"})


@given(st.lists(st.tuples(st.floats(0, 10), st.integers(1, 6)), min_size=1, max_size=8))
def test_counts_weigh_as_repeated_rows_do(pairs: list[tuple[float, int]]) -> None:
    values, heads = (np.array(part) for part in zip(*pairs, strict=True))
    listed = np.repeat(values, heads)
    assert mean_difference(values, heads) == pytest.approx(mean_difference(listed), abs=1e-9)
    assert gini(values, heads) == pytest.approx(gini(listed), abs=1e-9, nan_ok=True)
    table = pd.DataFrame({"cohort": "a", "x": values, "y": np.nan, COUNT: heads})
    assert mean_of(table, "x") == pytest.approx(listed.mean(), abs=1e-9)
    assert np.isnan(mean_of(table, "y"))
    assert agents_in(pd.concat([table, table.drop(columns=COUNT)])) == len(listed) + len(pairs)
    found = means_of(table, ["cohort"], ["x", "y"])
    assert found["x"].item() == pytest.approx(listed.mean(), abs=1e-9)
    assert np.isnan(found["y"].item())


def test_no_other_run_has_the_column() -> None:
    model = scenario({}, {}, 3).build()
    model.run(2)
    assert COUNT not in model.agents_frame()
