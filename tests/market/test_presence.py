"""Agents who enter and leave: their own rounds, what they are promised, who notices, resuming."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.forecaster.events.bounds import BiasBound, GainBound
from regretless.forecaster.events.weights import AdaptiveWeights
from regretless.market.game.round import play_round
from regretless.market.game.seats import AttendanceSpan, drawn_stays
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret import definitions
from regretless.scenarios.assembly.guarantees import over_stays
from regretless.scenarios.assembly.scenario import Scenario

ROUNDS = 60
EMPTY = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret", "bound"]
SMALL_WORLD = {"graph": "small-world", "neighbours": 2, "subscribers": 3}


def cohort(name: str = "guests", **keys: Any) -> dict[str, Any]:
    told = {"name": name, "utility": "linear", "count": 12, "actions": 3}
    return told | {"response": "best-response"} | keys


def rated(name: str = "guests", **keys: Any) -> dict[str, Any]:
    return cohort(name, entry_rate=0.03, exit_rate=0.04) | keys


def scenario(*cohorts: dict[str, Any], **keys: Any) -> Scenario:
    adversary = {"kind": "switching", "outcomes": 2, "length": 10}
    return worlds.scenario(*cohorts, **{"rounds": ROUNDS, "seed": 5, "adversary": adversary} | keys)


def watched(model: MarketModel) -> list[Round]:
    """Play to the end; return every round."""
    rounds = []
    while model.played < model.rounds:
        played = play_round(model.game)
        model.journal.add(played)
        rounds.append(played)
    return rounds


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 2**31),
    st.integers(0, 20),
    st.integers(1, 20),
    st.sampled_from([None, 0.1, 1.0]),
    st.sampled_from([None, 0.1, 1.0]),
)
def test_stays_lie_in_their_window(
    seed: int, first: int, length: int, entry: float | None, leave: float | None
) -> None:
    rng = np.random.default_rng(seed)
    stay = drawn_stays(rng, 30, window=(first, first + length), rates=(entry, leave))
    assert ((first <= stay.entered) & (stay.entered <= stay.left)).all()
    assert (stay.left <= first + length).all()
    here = np.array([stay.here(t) for t in range(first + length + 2)])
    assert (here.sum(0) == stay.left - stay.entered).all()
    if entry in {None, 1.0}:
        assert (stay.entered == first).all()
    if leave == 1.0:
        assert (stay.left == np.minimum(stay.entered + 1, first + length)).all()
    if leave is None:
        assert (stay.left == first + length).all()


@pytest.mark.parametrize("network", [{}, {"network": SMALL_WORLD}], ids=["all", "network"])
def test_everybody_is_measured_over_own_rounds(network: dict[str, Any]) -> None:
    """Regrets equal those recomputed from the rounds in which agents were there."""
    quantal = rated("smooth", response="quantal", eta=8.0, exit_rate=0.1)
    model = scenario(rated(), quantal, **network).build()
    rounds = watched(model)
    frame = model.agents_frame().set_index("agent")
    assert frame["entered"].isna().any()  # somebody never came
    assert frame["left"].lt(ROUNDS).any()
    agent = 0
    for place, who in enumerate(model.game.cohorts):
        for number in range(len(who.row_of)):
            agent += 1
            own = frame.loc[agent]
            there = [played for played in rounds if _there(played, place, number)]
            if pd.isna(own["entered"]):
                assert not there
                assert own[EMPTY].isna().all()
                assert np.isnan(own["exploitability"])
                continue
            numbers = [played.number for played in there]
            assert numbers == list(range(own["entered"], own["left"]))
            row = who.row_of[number]
            losses = np.array([played.losses[place][row] for played in there])  # type: ignore[index]
            strategies = np.array([played.decisions[place].probabilities[row] for played in there])  # type: ignore[union-attr]
            assert own["mean_loss"] == pytest.approx((losses * strategies).sum(1).mean())
            expected = definitions.external_regret(losses, strategies)
            assert own["external_regret"] == pytest.approx(expected)
            assert own["swap_regret"] == pytest.approx(definitions.swap_regret(losses, strategies))
            constants = np.tile(np.arange(3)[:, None], len(strategies))
            swapped = definitions.decision_swap_regret(losses, strategies, constants)
            assert own["decision_swap_regret"] == pytest.approx(swapped)
            assert own["decision_swap_regret"] <= own["bound_from_bias"] + 1e-9


def _there(played: Round, place: int, number: int) -> bool:
    decision = played.decisions[place]
    return decision is not None and bool(decision.actions[number] >= 0)


@pytest.mark.parametrize(
    ("stream", "weights"),
    [("iid", "adaptive"), ("switching", "exponential"), ("anti-forecast", "adaptive")],
)
def test_the_bound_over_own_rounds_holds(stream: str, weights: str) -> None:
    adversary = {"kind": stream, "outcomes": 2}
    forecaster = {"kind": "decision-swap", "weights": weights}
    guests = rated(count=40, entry_rate=0.2, exit_rate=0.01)
    given = scenario(guests, adversary=adversary, forecaster=forecaster, rounds=300)
    agents = given.build().agents_frame()
    assert agents["bound"].isna().all()
    model = worlds.played(given)
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    shorter = agents.assign(own=agents["left"] - agents["entered"]).sort_values("own")
    assert shorter["bound"].iloc[0] > shorter["bound"].iloc[-1]


def test_over_stays_is_the_theorem_row_by_row() -> None:
    weights = np.random.default_rng(0).random((4, 3, 2))
    bias = BiasBound(AdaptiveWeights(), experts=24, rounds=100, certificate_sum=0.3)
    stay = AttendanceSpan(np.array([0, 10, 40, 120]), np.array([200, 50, 41, 200]))
    found = over_stays([bias], weights, stay, policies=0)
    for row, (first, last) in enumerate([(0, 100), (10, 50), (40, 41)]):
        cut = BiasBound(AdaptiveWeights(), experts=24, rounds=last, certificate_sum=0.3)
        (alone,) = cut.since(weights[[row]], joined=first)
        assert found[row] == pytest.approx(alone)
    assert np.isnan(found[3])  # has not come yet
    gains = GainBound(AdaptiveWeights(), experts=24, rounds=100, certificate_sum=0.3)
    scalar = over_stays([gains], weights, stay, policies=0)
    assert np.isnan(scalar).tolist() == [False, True, True, True]


def test_a_stay_is_checked() -> None:
    with pytest.raises(ValueError, match="leaves before it enters"):
        AttendanceSpan(np.array([3]), np.array([2]))
    with pytest.raises(ValueError, match="at least 0"):
        AttendanceSpan(np.array([-1]), np.array([2]))
