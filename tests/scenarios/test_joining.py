"""Agents who join after the start: whom the theorem covers, what the log holds, who notices."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import cohort_table, make_scenario, play_to_end, read_scenario

from regretless.forecaster.events.cover import paper_gamma
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.gain_bound import GainBound
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import (
    RULES,
    AdaptiveWeights,
    BoundInputs,
    ExponentialWeights,
    rule_of,
)
from regretless.market.game.round import play_round
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret.ledger import MEASURES
from regretless.scenarios.assembly.latecomers import protection
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import find, read

WEIGHTS = [[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]
STREAMS: dict[str, dict[str, Any]] = {
    "iid": {"kind": "iid"},
    "anti-forecast": {"kind": "anti-forecast", "strength": 0.5},
    "switching": {"kind": "switching", "length": 40},
}
REGRETS = ["external_regret", "swap_regret", "decision_swap_regret"]
ROUNDS = 120


def investors(name: str, aversions: list[float] | None = None, **keys: Any) -> dict[str, Any]:
    """Return investors with these aversions to risk, their losses in the span of monomials."""
    parameters = {"risk_aversion": {"choices": aversions or [1.0, 2.0]}, "weights": WEIGHTS}
    return cohort_table(name, 8, 3, "mean-variance", parameters=parameters) | keys


def linear_cohort(name: str, weights: list[list[float]], **keys: Any) -> dict[str, Any]:
    """Return two agents with linear losses."""
    return cohort_table(name, 2, 3, parameters={"weights": weights}) | keys


def scenario_of(*cohorts: dict[str, Any], stream: str = "anti-forecast", **keys: Any) -> Scenario:
    """Return a scenario of 120 rounds against one of the streams, with two outcomes."""
    adversary = STREAMS[stream] | {"outcomes": 2}
    return make_scenario(*cohorts, **{"rounds": ROUNDS, "adversary": adversary} | keys)


def build_model(*cohorts: dict[str, Any], **keys: Any) -> MarketModel:
    """Return the model of such a scenario, before its first round."""
    return scenario_of(*cohorts, **keys).build()


def play_rounds(model: MarketModel) -> list[Round]:
    """Play all rounds, and return each with its decisions and losses."""
    return [play_round(model.game) for _ in range(model.rounds)]


def agents_of(model: MarketModel, name: str) -> pd.DataFrame:
    """Return the rows of a cohort."""
    return model.agents_frame().query("cohort == @name")


# Whom the theorem covers.


every_entry = pytest.mark.parametrize("joins", [1, 119])


def early_and_late(joins: int) -> MarketModel:
    """Return a model in which a cohort with the losses of another joins it in a round."""
    return build_model(investors("early"), investors("late", enters=joins))


@every_entry
def test_equal_losses_act_as_the_protected_do(joins: int) -> None:
    model = early_and_late(joins)
    late = model.game.cohorts[1]
    _, cover = protection(late, model.game.blocks[0])
    assert cover is not None
    assert (cover.radius == 0).all()
    protected_row = cover.representative_of  # the early rows are the protected losses, in order
    for log in play_rounds(model)[joins:]:
        early_decision, late_decision = log.decisions
        assert early_decision is not None
        assert late_decision is not None
        expected = early_decision.probabilities[protected_row]
        assert (late_decision.probabilities == expected).all()
        assert (late_decision.predicted == early_decision.predicted[protected_row]).all()


@every_entry
def test_who_joins_plays_and_loses_from_the_round_of_entry_on(joins: int) -> None:
    model = early_and_late(joins)
    for number, log in enumerate(play_rounds(model)):
        is_absent = number < joins
        assert (log.decisions[1] is None) == is_absent
        assert (log.losses[1] is None) == is_absent
    early, late = model.game.cohorts
    assert early.ledger.rounds == ROUNDS
    assert late.ledger.rounds == ROUNDS - joins


@every_entry
def test_equal_losses_are_covered(joins: int) -> None:
    model = early_and_late(joins)
    model.run()
    assert set(agents_of(model, "late")["guarantee"]) == {"decision-swap"}
    guarantee = model.guarantees[1]
    assert guarantee.summary(model.game.cohorts[1]) == "decision-swap"
    gamma = paper_gamma(model.game.blocks[0].basis.size, ROUNDS)
    assert guarantee.note == (
        f"late: 8 agents entered before round {joins}, 8 within {gamma:.2g} of a protected loss"
    )


@pytest.mark.parametrize(
    ("stream", "joins", "delay"),
    [("iid", 1, 0), ("anti-forecast", 190, 0), ("anti-forecast", 41, 3), ("switching", 1, 3)],
)
def test_regret_of_the_covered_stays_below_its_bounds(stream: str, joins: int, delay: int) -> None:
    aversions = [1.0, 1.004, 2.0, 1.997, 3.0]  # the last is too far
    late = investors("late", aversions, count=16, enters=joins, gamma=0.01)
    model = build_model(
        investors("early"),
        late,
        stream=stream,
        rounds=200,
        seed=joins,
        forecaster={"delay": delay},
    )
    model.run()
    agents = agents_of(model, "late")
    is_covered = agents["guarantee"] == "decision-swap"
    assert 0 < is_covered.sum() < len(agents)
    covered = agents[is_covered]
    assert (covered["decision_swap_regret"] <= covered["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert agents.loc[~is_covered, "bound"].isna().all()
    assert set(agents.loc[~is_covered, "guarantee"]) == {"none"}


N_ROUNDS_OF_BOUND = 500
INPUTS = BoundInputs(100, N_ROUNDS_OF_BOUND, 2.0)
COORDINATE_BOUNDS = {
    "adaptive": CoordinateBound(AdaptiveWeights(), INPUTS),
    "exponential": CoordinateBound(ExponentialWeights(N_ROUNDS_OF_BOUND), INPUTS),
    "adaptive on a simplex": CoordinateBound(AdaptiveWeights(), INPUTS, hull="simplex"),
}
LOSS_WEIGHTS = np.random.default_rng(0).normal(size=(4, 3, 2))


@pytest.mark.parametrize("policies", [0, 2])
@pytest.mark.parametrize("name", COORDINATE_BOUNDS)
def test_the_bound_of_a_stay_since_the_start_is_the_bound_and_grows_with_the_entry(
    name: str, policies: int
) -> None:
    bound = COORDINATE_BOUNDS[name]
    since_start = bound.over_stay(LOSS_WEIGHTS, joined=0, policies=policies)
    assert since_start == pytest.approx(bound.a_priori(LOSS_WEIGHTS, policies=policies))
    last = since_start
    for joined in (1, 250, 499):  # few rounds promise little
        of_stay = bound.over_stay(LOSS_WEIGHTS, joined=joined, policies=policies)
        assert (of_stay > last).all()
        last = of_stay


@pytest.mark.parametrize("joined", [-1, N_ROUNDS_OF_BOUND])
def test_there_is_no_bound_of_a_stay_without_a_round(joined: int) -> None:
    with pytest.raises(ValueError, match="no round since round"):
        COORDINATE_BOUNDS["adaptive"].over_stay(LOSS_WEIGHTS, joined=joined)


def test_events_of_gains_have_no_bound_of_a_stay() -> None:
    assert GainBound(AdaptiveWeights(), INPUTS).over_stay(LOSS_WEIGHTS, joined=5) is None


@pytest.mark.parametrize("switch_test", [SwitchTest(100), SwitchTest(100, 2.0)])
@pytest.mark.parametrize("rule", RULES)
def test_who_leaves_may_have_the_bias_up_to_which_a_reference_is_trusted(
    rule: str, switch_test: SwitchTest
) -> None:
    """Bounds of stays hold after every round, those before trust was lost included."""
    occupancy = np.array([1.0, 5.0, 100.0])
    inputs = BoundInputs(100, N_ROUNDS_OF_BOUND, 2.0, switch_test=switch_test)
    bound = CoordinateBound(rule_of(rule), inputs, holds_throughout=True)
    trusted_bias = np.minimum(switch_test.most(occupancy), occupancy)
    assert (bound.bias(occupancy) >= trusted_bias).all()
    assert (bound.with_inputs(trusted=True).bias(occupancy) >= trusted_bias).all()


@pytest.fixture
def partly_covered() -> MarketModel:
    """Return a model of latecomers of whom a third is too far from a protected loss."""
    late = investors("late", [1.0, 1.001, 3.0], enters=5, gamma=0.004)
    return build_model(investors("early"), late)


def test_a_covered_row_plays_the_protected_loss_and_others_their_own(
    partly_covered: MarketModel,
) -> None:
    early, late = partly_covered.game.cohorts
    is_covered = partly_covered.guarantees[1].covers
    assert is_covered is not None
    assert len(is_covered) == 3
    assert is_covered.sum() == 2
    protected = early.coefficients[1]
    own_coefficients = partly_covered.game.blocks[0].basis.coefficients(late.loss)[1]
    for row, coefficients in enumerate(late.coefficients[1]):
        if is_covered[row]:
            assert (coefficients == protected).all((1, 2)).any()
        else:
            assert (coefficients == own_coefficients[row]).all()
    assert (late.coefficients[1] != own_coefficients).any()


def test_who_is_too_far_has_no_guarantee_and_is_counted(partly_covered: MarketModel) -> None:
    late = partly_covered.game.cohorts[1]
    guarantee = partly_covered.guarantees[1]
    assert guarantee.covers is not None
    partly_covered.run()
    labels = np.where(guarantee.covers[late.row_of], "decision-swap", "none")
    assert (agents_of(partly_covered, "late")["guarantee"] == labels).all()
    n_covered = (labels != "none").sum()
    assert guarantee.summary(late) == f"decision-swap for {n_covered} of 8"


def late_beside_quantal(**keys: Any) -> Scenario:
    """Return latecomers who answer in their way, beside quantal agents with the same losses."""
    early = linear_cohort("early", WEIGHTS, response="quantal", eta=8.0)
    late = linear_cohort("late", WEIGHTS[: keys.get("actions", 3)], enters=40)
    return scenario_of(early, late | keys)


def late_growers(policies: list[str]) -> Scenario:
    """Return growers of crop choice who come late, with these policies, beside some like them."""
    raw = read(find("crop-choice"))
    winter = {"kind": "threshold", "feature": "month", "at": 3, "below": 1, "above": 2}
    raw["policy"]["winter"] = winter
    del raw["cohort"][0]["parameters"]["concentration"]  # so that all are alike
    growers = raw["cohort"][0] | {"count": 12, "measures": list(MEASURES)}
    late = growers | {"name": "late", "policies": policies, "enters": 30}
    raw |= {"rounds": 80, "cohort": [growers, late], "forecaster": {"events": "coordinates"}}
    return read_scenario(raw)


def late_under(**forecaster: Any) -> Scenario:
    """Return latecomers under a forecaster."""
    cohorts = [investors("early"), investors("late", enters=40)]
    return scenario_of(*cohorts, forecaster=forecaster, rounds=50)


QUANTAL = {"response": "quantal", "eta": 8.0}


@pytest.mark.parametrize(
    ("make", "keys", "label"),
    [
        # plays a best response, and quantal agents alone are protected
        (late_beside_quantal, {}, "none"),
        (late_beside_quantal, {"response": "quantal", "eta": 9.0}, "none"),
        (late_beside_quantal, QUANTAL, "smooth-decision-swap"),
        (late_beside_quantal, {"response": "certainty-equivalent"}, "none"),
        (late_beside_quantal, QUANTAL | {"actions": 2}, "none"),
        (late_growers, {"policies": ["by-month"]}, "decision-swap"),
        (late_growers, {"policies": []}, "decision-swap"),
        (late_growers, {"policies": ["winter"]}, "none"),
        (late_under, {"kind": "running-mean"}, "none"),
        (late_under, {"kind": "calibration", "cells": 2}, "none"),
        # a gain may fall before they join, and rise after
        (late_under, {"events": "losses"}, "none"),
    ],
)
def test_the_protected_must_be_alike_and_unbiased_coordinates(
    make: Callable[..., Scenario], keys: dict[str, Any], label: str
) -> None:
    """They respond alike, and follow all policies of who comes."""
    model = play_to_end(make(**keys))
    agents = agents_of(model, "late")
    assert set(agents["guarantee"]) == {label}
    assert (agents["decision_swap_regret"] <= agents["bound"].fillna(np.inf)).all()
    assert agents["bound"].isna().all() == (label == "none")
    note = model.guarantees[1].note
    assert re.match(r"late: \d+ agents entered before round \d\d[;,] ", note)
    assert ("no guarantee, since" in note) == (label == "none")


@pytest.mark.parametrize(
    ("response", "eta"), [("quantal", 8.0), ("ensemble", 8.0), ("ensemble", None)]
)
@pytest.mark.parametrize(("shift", "tolerance"), [(0.0, 0.0), (0.001, 1e-12)])
def test_naive_agents_play_the_distribution_of_their_protected_loss(
    response: str, eta: float | None, shift: float, tolerance: float
) -> None:
    keys = {"response": response, "eta": eta}
    shifted = [[0.7 - shift, 0.3 + shift], *WEIGHTS[1:]]
    late = linear_cohort("late", shifted, enters=40, gamma=0.01, **keys)
    model = build_model(linear_cohort("early", WEIGHTS, **keys), late)
    for log in play_rounds(model)[40:]:
        early_decision, late_decision = log.decisions
        assert early_decision is not None
        assert late_decision is not None
        expected = pytest.approx(early_decision.probabilities, rel=0, abs=tolerance)
        assert late_decision.probabilities == expected
    label = "decision-swap" if eta is None else "smooth-decision-swap"
    assert set(agents_of(model, "late")["guarantee"]) == {label}


# Which block they hear.


def test_they_hear_the_block_that_spans_their_losses() -> None:
    """An exact one before one that approximates; nobody who was there moves."""
    early = [
        investors("ramped", utility="cobb-douglas", parameters={}, basis="ramps", count=2),
        investors("exact"),
        linear_cohort("plain", WEIGHTS),
    ]
    late = [
        linear_cohort("late", WEIGHTS, enters=4),
        investors("later", enters=5),
        investors("last", utility="leontief", parameters={}, enters=6, count=2),
    ]
    model = build_model(*late, *early, rounds=8)
    assert [block.name for block in model.game.blocks] == ["ramps", "monomials", "linear"]
    block_of = {seat.name: model.game.blocks[seat.block].name for seat in model.game.cohorts}
    assert block_of.pop("late") in {"monomials", "linear"}  # degree 2 spans linear losses, too
    assert list(block_of.items()) == [
        ("later", "monomials"),
        ("last", "ramps"),
        ("ramped", "ramps"),
        ("exact", "monomials"),
        ("plain", "linear"),
    ]
    model.run()


def test_who_comes_late_with_losses_that_nobody_else_has_gets_a_block_from_the_start() -> None:
    """What the others hear does not change, and the bound counts from the entry."""
    early = linear_cohort("early", WEIGHTS)
    late = investors("late", utility="leontief", parameters={}, enters=40, count=2)
    keys: dict[str, Any] = {"forecaster": {"events": "coordinates"}, "stream": "iid"}
    without_late = build_model(early, **keys)
    with_late = build_model(early, late, **keys)
    without_late.run()
    with_late.run()
    assert [block.name for block in with_late.game.blocks] == ["linear", "reduced"]
    outcomes = with_late.rounds_frame()[["y_0"]]
    pd.testing.assert_frame_equal(outcomes, without_late.rounds_frame()[["y_0"]])
    agents = agents_of(with_late, "late")
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["entered"] == 40).all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert "block reduced is made for them from the start" in with_late.guarantees[1].note


@pytest.mark.parametrize(
    "keys",
    [
        {"basis": "ramps", "utility": "cobb-douglas", "parameters": {}},
        {"cover": {"kind": "cluster", "count": 1}},
        {"reports": {"risk_aversion": 5.0}},
    ],
)
def test_who_comes_late_may_name_a_basis_a_cover_or_reports(keys: dict[str, Any]) -> None:
    """Something is protected for such a cohort from the start, in a block of its own."""
    model = build_model(investors("early"), investors("late", enters=4, **keys), rounds=8)
    early, late = model.game.cohorts
    assert early.block != late.block
    model.run()
    assert agents_of(model, "late")["mean_loss"].between(0, 1).all()


def test_blocks_of_late_cohorts_have_names_of_their_own() -> None:
    reporting = investors("late", enters=4, reports={"risk_aversion": 5.0})
    model = build_model(reporting, investors("plain", enters=5), investors("early"), rounds=8)
    assert [block.name for block in model.game.blocks] == ["monomials", "monomials-2"]
    assert [seat.block for seat in model.game.cohorts] == [1, 0, 0]


# What the log holds.


@pytest.mark.parametrize("n_played", [0, 1, 2])
def test_agents_who_have_not_come_have_no_action_and_no_measures(n_played: int) -> None:
    model = build_model(investors("early"), investors("late", enters=2))
    model.run(n_played)
    for agent in model.agents.select(lambda agent: agent.cohort == "late"):
        assert agent.action == -1
        assert np.isnan(agent.swap_regret)
        assert np.isnan(agent.mean_loss)
    measures = agents_of(model, "late")[["mean_loss", *REGRETS, "bound_from_bias"]]
    assert measures.isna().all().all()
    assert agents_of(model, "early")["mean_loss"].notna().all()


def test_agents_who_have_played_have_an_action_and_measures() -> None:
    model = build_model(investors("early"), investors("late", enters=2))
    model.run(3)
    late = list(model.agents.select(lambda agent: agent.cohort == "late"))
    assert min(agent.action for agent in late) >= 0
    table = agents_of(model, "late")
    assert [agent.swap_regret for agent in late] == table["swap_regret"].tolist()
    assert table[["mean_loss", *REGRETS]].notna().all().all()


EARLY = [investors("early"), investors("smooth", response="quantal", eta=5.0)]
LATECOMERS = [
    investors("late", [1.0, 3.0], enters=40),
    investors("quantal", enters=41, response="quantal", eta=5.0),
    investors("gamblers", enters=42, response="exp3", count=3),
]


@pytest.mark.parametrize("place", ["first in the file", "last in the file"])
def test_late_agents_disturb_nobody(place: str) -> None:
    """The others' columns are the same with and without them, wherever they stand in the file.

    But for their bounds, which hold for more agents at once and are a little wider.
    """
    is_first = place == "first in the file"
    without_late = build_model(*EARLY)
    with_late = build_model(*LATECOMERS, *EARLY) if is_first else build_model(*EARLY, *LATECOMERS)
    without_late.run()
    with_late.run()
    for frame in ("rounds_frame", "forecasts_frame", "biases_frame"):
        pd.testing.assert_frame_equal(getattr(with_late, frame)(), getattr(without_late, frame)())
    n_before = sum(cohort["count"] for cohort in LATECOMERS) if is_first else 0
    agents = with_late.agents_frame().query("cohort in ['early', 'smooth']").reset_index(drop=True)
    agents["agent"] -= n_before
    assert (agents[["entered", "left"]] == [0, with_late.rounds]).all(axis=None)
    agents = agents.drop(columns=["entered", "left"])
    agents_without_late = without_late.agents_frame()
    bounds = ["bound", "bound_from_variation"]
    widened = (agents[bounds] / agents_without_late[bounds]).to_numpy()
    widened = widened[np.isfinite(widened)]  # learners have no bound
    assert (widened >= 1.0).all()
    assert (widened <= 1.1).all()
    pd.testing.assert_frame_equal(
        agents.drop(columns=bounds), agents_without_late.drop(columns=bounds)
    )
    log = with_late.regret_frame()
    log["agent"] -= n_before
    log = log[log["agent"].between(1, len(agents))].reset_index(drop=True)
    pd.testing.assert_frame_equal(log, without_late.regret_frame())
