"""Branches share past and random numbers, and differ by the change and its answers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless.agents.adversaries import AntiForecast
from regretless.market.core.errors import UserError
from regretless.market.logs.comparisons import gains, policy_regret
from regretless.market.model import MarketModel
from regretless.scenarios import load
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.spec.scenario import validated

OWN = {"name": "own", "utility": "linear", "count": 4, "archetypes": 2, "actions": 3}
QUANTAL = {"name": "soft", "utility": "linear", "count": 3, "actions": 3, "response": "quantal"}
LEARNER = {"name": "wise", "utility": "linear", "count": 3, "actions": 3, "response": "exp3"}
ALONE = {"name": "alone", "utility": "linear", "count": 3, "actions": 3, "response": "private"}
DRIFT = {"kind": "drifting", "outcomes": 2}


def market(*, apart: bool = True, played: int = 10, **keys: Any) -> MarketModel:
    people = [{**QUANTAL, "eta": 5.0}, OWN, LEARNER, ALONE]
    raw = {"name": "own", "rounds": 40, "adversary": DRIFT, "cohort": people} | keys
    model = Scenario(validated(raw, origin=Path())).build(seed=3, apart=apart)
    model.run(played)
    return model


@pytest.mark.parametrize("keys", [{}, {"market": {"impact": 0.4, "feedback": "same-round"}}])
@pytest.mark.parametrize("played", [0, 10])
def test_a_branch_without_changes_goes_on_to_the_same_bytes(
    played: int, keys: dict[str, Any]
) -> None:
    trunk = market(played=played, **keys)
    branch = trunk.branch()
    trunk.run()
    branch.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), branch.agents_frame())
    late = trunk.rounds_frame().iloc[played:].reset_index(drop=True)
    pd.testing.assert_frame_equal(late, branch.rounds_frame())
    assert (gains(trunk, branch)[["gain", "loss_gain"]] == 0.0).all(axis=None)


@pytest.mark.parametrize(
    "name",
    ["late-news", "call-auction", "chain-store", "survival", "quiet-times", "paying-to-know"],
)
def test_accounts_networks_comers_and_games_branch_alike(name: str) -> None:
    trunk = load(name, rounds=14).build(seed=2)
    trunk.run(7)
    branch = trunk.branch()
    trunk.run()
    branch.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), branch.agents_frame())


def test_a_forecaster_of_another_kind_needs_none_of_what_the_first_was_told() -> None:
    """Data have models by default, of which another kind knows nothing."""
    trunk = load("crop-choice", rounds=30, **{"cohort.growers.count": 3}).build()
    trunk.run(20)
    branch = trunk.branch({"forecaster.kind": "running-mean"})
    trunk.run()
    branch.run()
    assert gains(trunk, branch)["gain"].abs().max() > 0
    assert (branch.agents_frame()["guarantee"] == "none").all()


def test_a_branch_does_not_touch_its_trunk() -> None:
    trunk, alone = market(), market()
    trunk.branch({"agent.1": 2, "forecaster.kind": "running-mean"}).run()
    for model in (trunk, alone):
        model.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), alone.agents_frame())


def test_without_a_market_nobody_notices_who_deviates() -> None:
    """Outcomes do not answer, so that the gain is the hindsight one on the outcomes that came."""
    trunk = market()
    branch = trunk.branch({"agent.5": 2})
    trunk.run()
    branch.run()
    table = gains(trunk, branch)
    assert (table["gain"].drop(index=4) == 0.0).all()
    cohort = trunk.game.cohorts[1]
    outcomes = trunk.rounds_frame()[["y_0", "y_1"]].to_numpy()[10:]
    there = cohort.loss[int(cohort.row_of[1])].losses(outcomes)[:, 2].mean()
    assert table["branch_loss"][4] == pytest.approx(there, abs=1e-12)
    line = branch.agents_frame().iloc[4]
    assert line["guarantee"] == "none"
    assert np.isnan(line["bound"])
    assert np.isnan(line["bound_from_bias"])
    assert (
        branch.agents_frame()["guarantee"].drop(index=4)
        == trunk.agents_frame()["guarantee"].drop(index=4)
    ).all()


def test_policy_regret_without_answers_is_external_regret() -> None:
    trunk = market(played=0)
    table = policy_regret(trunk, 4)
    trunk.run()
    line = trunk.agents_frame().iloc[3]
    assert table["gain"].max() == pytest.approx(
        line["external_regret"] * line["loss_scale"], abs=1e-9
    )


def test_who_sees_the_play_sees_the_deviation() -> None:
    """A myopic leader answers a deviator as it answers anybody."""
    people = [{**OWN, "count": 1, "archetypes": 1}]
    trunk = market(adversary={"kind": "myopic", "outcomes": 2}, cohort=people, played=5)
    branch = trunk.branch({"agent.1": 1})
    branch.run()
    worst = trunk.game.cohorts[0].loss.losses(np.eye(2))[:, 0, 1].max()
    assert gains_of(branch) == pytest.approx(worst, abs=1e-12)


def gains_of(branch: MarketModel) -> float:
    assert branch.fork is not None
    own = branch.game.cohorts[0].ledger.own.sum() - branch.fork.branch[0][0]
    return float(own / (branch.played - branch.fork.at))


def test_a_firm_that_sells_more_earns_by_the_formula() -> None:
    """With everybody's output held: q' (a - b (Q - q + q') - c) - q (a - b Q - c)."""
    keys = {"market.noise": 0.0, "market.feedback": "same-round", "market.adjustment": 1.0}
    keys |= {"cohort.firms.parameters.slope": 0.0}
    trunk = load("oligopoly", rounds=30, **keys).build(apart=True)
    trunk.run(5)
    held = {f"agent.{number}": 6 for number in range(1, 5)}
    base, other = trunk.branch(held), trunk.branch(held | {"agent.1": 12})
    base.run()
    other.run()
    assert base.fork is not None
    q, more, price = 0.75, 1.5, 0.9 - 0.1 * 4 * 0.75
    change = 0.1 * (more - q)
    lost = [
        (b.game.cohorts[0].ledger.own.sum(1) - b.fork.branch[0])[b.game.cohorts[0].row_of] / 25  # type: ignore[union-attr]
        for b in (base, other)
    ]
    gain = (lost[0] - lost[1]) * trunk.game.cohorts[0].loss.unit_scale
    assert gain[0] == pytest.approx(more * (price - change - 0.3) - q * (price - 0.3), rel=1e-9)
    assert gain[1:] == pytest.approx(-q * change, rel=1e-9)


def test_a_firm_that_commits_leads_as_stackelberg_has_it() -> None:
    """Others answer (a - b q' - c) / (b N) each; regret, which holds prices, saw none of it."""
    trunk = load("oligopoly", rounds=1000).build(apart=True)
    trunk.run(300)
    other = trunk.branch({"agent.1": 20})
    trunk.run()
    other.run()
    before, after = (m.rounds_frame().query("round >= 600")["y_0"].mean() for m in (trunk, other))
    assert trunk.agents_frame()["swap_regret"].max() < 0.002
    assert before == pytest.approx((0.9 + 4 * 0.3) / 5, rel=0.02)
    assert after == pytest.approx((0.9 - 0.1 * 2.5 + 3 * 0.3) / 4, rel=0.02)
    assert 2.5 * (after - 0.3) > 1.4 * 1.2 * (before - 0.3)


def test_harm_is_seen_where_exploitability_is_0() -> None:
    """Who holds a stock of worth 0.8, then 0.2, has 0.35, where it is sold at 0.5."""
    trunk = load("pump-and-dump", rounds=2000).build()
    fair = {"kind": "iid", "mean": [0.5, 0.3], "concentration": 0.0}
    without = trunk.branch({f"adversary.{key}": value for key, value in fair.items()})
    trunk.run()
    without.run()
    harm = gains(trunk, without).set_index("cohort")["gain"]
    assert (trunk.agents_frame()["exploitability"] == 0.0).all()
    assert harm.drop("followers").to_numpy() == pytest.approx(0.15, abs=0.01)
    assert 0.5 - 0.25 * 0.8 - 0.75 * 0.3 < harm["followers"] < 0.11  # at best they see it coming


@pytest.mark.parametrize(
    ("changes", "whose"),
    [
        ({"cohort.own.response": "hedge"}, "own"),
        ({"cohort.soft.response": "best-response"}, "soft"),
        ({"cohort.wise.response": "regret-matching"}, "wise"),
        ({"cohort.wise.response": "best-response"}, "wise"),
        ({"cohort.soft.eta": 9.0}, "soft"),
    ],
)
@pytest.mark.parametrize("apart", [True, False])
def test_a_cohort_takes_another_rule_and_keeps_its_books(
    changes: dict[str, Any], whose: str, *, apart: bool
) -> None:
    trunk = market(apart=apart)
    branch = trunk.branch(changes)
    before = trunk.agents_frame().set_index("cohort")["mean_loss"]
    assert branch.agents_frame()["mean_loss"].to_numpy() == pytest.approx(before.to_numpy())
    trunk.run()
    branch.run()
    table = gains(trunk, branch).set_index("cohort")
    assert (table["gain"].drop(index=whose) == 0.0).all()
    assert (table.loc[whose, "gain"] != 0.0).any()
    promised = branch.agents_frame().set_index("cohort").loc[whose, "guarantee"]
    assert (promised == "none").all()


def test_another_market_goes_on_from_the_same_level() -> None:
    prices = {"impact": 0.4, "feedback": "lagged"}
    trunk = market(market=prices)
    branch = trunk.branch({"market.impact": 0.0})
    assert branch.game.market is not trunk.game.market
    for model in (trunk, branch):
        model.run()
    fundamental = [
        m.rounds_frame().set_index("round")["fundamental_0"].loc[10:] for m in (trunk, branch)
    ]
    pd.testing.assert_series_equal(*fundamental)  # nature's draws are common
    assert not gains(trunk, branch)["gain"].eq(0.0).all()
    assert gains(trunk, trunk_like(trunk, prices))["gain"].eq(0.0).all()


def trunk_like(trunk: MarketModel, prices: dict[str, Any]) -> MarketModel:
    """Return the branch that changes a parameter to what it is."""
    twin = market(market=prices).branch({"market.impact": prices["impact"]})
    twin.run()
    return twin


def test_players_are_given_as_for_swap() -> None:
    trunk = market()
    branch = trunk.branch(adversary=AntiForecast(2, np.random.default_rng(0)))
    assert type(branch.game.adversary) is AntiForecast
    assert type(trunk.game.adversary) is not AntiForecast
    with pytest.raises(UserError, match="cannot be resumed"):
        branch.branch()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rounds": 3}, "'rounds' does not change"),
        ({"cohort.own.count": 3}, "does not change"),
        ({"cohort.owl.response": "hedge"}, "there is no 'owl'; did you mean 'own'"),
        ({"agent.99": 0}, "there are 13 agents"),
        ({"agent.4": 7}, "give an action from 0 to 2"),
        ({"agent.0": 0}, "does not change"),
        ({"adversary.kind": "drifring"}, "did you mean 'drifting'"),
        ({"adversary.steq": 1.0}, "steq"),
    ],
)
def test_what_cannot_be_changed_is_said(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        market().branch(changes)


def test_agents_that_are_one_row_do_not_deviate_alone() -> None:
    with pytest.raises(UserError, match=r"build\(apart=True\)"):
        market(apart=False).branch({"agent.4": 0})


def test_gains_ask_for_a_branch_that_has_come_as_far() -> None:
    trunk = market()
    with pytest.raises(UserError, match="is no branch"):
        gains(trunk, market())
    with pytest.raises(UserError, match="run both equally far"):
        gains(trunk, trunk.branch())
