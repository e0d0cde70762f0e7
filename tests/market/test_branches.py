"""Branches share past and random numbers, and differ by the change and its answers alone."""

from typing import Any

import pandas as pd
import pytest
import worlds

from regretless.market.core.errors import UserError
from regretless.market.logs.comparisons import gains
from regretless.market.model import MarketModel
from regretless.scenarios import load

PEOPLE = (
    worlds.cohort("soft", 3, 3, response="quantal", eta=5.0),
    worlds.cohort("own", 4, 3, types=2),
    worlds.cohort("wise", 3, 3, response="exp3"),
    worlds.cohort("alone", 3, 3, response="private"),
)


def market(*, apart: bool = True, played: int = 10, **keys: Any) -> MarketModel:
    given = {"rounds": 40, "adversary": {"kind": "drifting", "outcomes": 2}} | keys
    model = worlds.scenario(*PEOPLE, **given).build(apart=apart)
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


def test_without_a_market_nobody_notices_who_deviates() -> None:
    """Outcomes do not answer, so that the gain is the hindsight one on the outcomes that came."""
    trunk = market()
    branch = trunk.branch({"agent.5": 2})
    for model in (trunk.branch({"forecaster.kind": "running-mean"}), branch, trunk):
        model.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), market(played=40).agents_frame())
    table = gains(trunk, branch)
    assert (table["gain"].drop(index=4) == 0.0).all()
    cohort = trunk.game.cohorts[1]
    outcomes = trunk.rounds_frame()[["y_0", "y_1"]].to_numpy()[10:]
    there = cohort.loss[int(cohort.row_of[1])].losses(outcomes)[:, 2].mean()
    assert table["branch_loss"][4] == pytest.approx(there, abs=1e-12)
    line = branch.agents_frame().iloc[4]
    assert line["guarantee"] == "none"
    assert line[["bound", "bound_from_bias"]].isna().all()
    kept = [model.agents_frame()["guarantee"].drop(index=4) for model in (trunk, branch)]
    assert (kept[0] == kept[1]).all()


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


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(UserError, match=r"build\(apart=True\)"):
        market(apart=False).branch({"agent.4": 0})  # who is one row with others
    trunk = market()
    with pytest.raises(UserError, match="is no branch"):
        gains(trunk, market())
    with pytest.raises(UserError, match="run both equally far"):
        gains(trunk, trunk.branch())
