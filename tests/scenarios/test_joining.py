"""Agents who join after the start: whom the theorem covers, what the log holds, who notices."""

import re
from itertools import product
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
COLUMNS = ("external_regret", "swap_regret", "decision_swap_regret")


def cohort(name: str, aversions: list[float] | None = None, **keys: Any) -> dict[str, Any]:
    """Describe investors with these aversions to risk, their losses in the span of monomials."""
    own = {"risk_aversion": {"choices": aversions or [1.0, 2.0]}, "weights": WEIGHTS}
    return cohort_table(name, 8, 3, "mean-variance", parameters=own) | keys


def linear(name: str, weights: list[list[float]], **keys: Any) -> dict[str, Any]:
    return cohort(name, utility="linear", parameters={"weights": weights}, count=2) | keys


def scenario(*cohorts: dict[str, Any], stream: str = "anti-forecast", **keys: Any) -> Scenario:
    adversary = STREAMS[stream] | {"outcomes": 2}
    return make_scenario(*cohorts, **{"rounds": 120, "adversary": adversary} | keys)


def market(*cohorts: dict[str, Any], **keys: Any) -> MarketModel:
    return scenario(*cohorts, **keys).build()


def played(model: MarketModel, rounds: int | None = None) -> list[Round]:
    return [play_round(model.game) for _ in range(rounds or model.rounds)]


def of(model: MarketModel, name: str) -> pd.DataFrame:
    return model.agents_frame().query("cohort == @name")


# Whom the theorem covers.


@pytest.mark.parametrize("joins", [1, 119])
def test_equal_losses_are_covered_and_act_as_the_protected_do(joins: int) -> None:
    model = market(cohort("early"), cohort("late", enters=joins))
    early, late = model.game.cohorts
    _, cover = protection(late, model.game.blocks[0])
    assert cover is not None
    assert (cover.radius == 0).all()
    twin = cover.representative_of  # the early rows are the protected losses, in order
    for number, log in enumerate(played(model)):
        assert (log.decisions[1] is None) == (log.losses[1] is None) == (number < joins)
        if log.decisions[1] is not None and log.decisions[0] is not None:
            theirs, ours = log.decisions
            assert (ours.probabilities == theirs.probabilities[twin]).all()
            assert (ours.predicted == theirs.predicted[twin]).all()
    assert (late.ledger.rounds, early.ledger.rounds) == (120 - joins, 120)
    assert set(of(model, "late")["guarantee"]) == {"decision-swap"}
    assert model.guarantees[1].summary(late) == "decision-swap"
    gamma = paper_gamma(model.game.blocks[0].basis.size, 120)
    assert model.guarantees[1].note == (
        f"late: 8 agents entered before round {joins}, 8 within {gamma:.2g} of a protected loss"
    )


@pytest.mark.parametrize(
    ("stream", "joins", "delay"),
    [("iid", 1, 0), ("anti-forecast", 190, 0), ("anti-forecast", 41, 3), ("switching", 1, 3)],
)
def test_regret_of_the_covered_stays_below_its_bounds(stream: str, joins: int, delay: int) -> None:
    near = cohort("late", [1.0, 1.004, 2.0, 1.997, 3.0], count=16, enters=joins, gamma=0.01)
    late = {"forecaster": {"delay": delay}}
    model = market(cohort("early"), near, stream=stream, rounds=200, seed=joins, **late)
    model.run()
    agents = of(model, "late")
    covered = agents["guarantee"] == "decision-swap"
    assert 0 < covered.sum() < len(agents)
    held = agents[covered]
    assert (held["decision_swap_regret"] <= held["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert agents.loc[~covered, "bound"].isna().all()
    assert set(agents.loc[~covered, "guarantee"]) == {"none"}


def test_bound_since_the_start_is_the_bound() -> None:
    weights = np.random.default_rng(0).normal(size=(4, 3, 2))
    for bound in (
        CoordinateBound(AdaptiveWeights(), BoundInputs(100, 500, 2.0)),
        CoordinateBound(ExponentialWeights(500), BoundInputs(100, 500, 2.0)),
        CoordinateBound(AdaptiveWeights(), BoundInputs(100, 500, 2.0), hull="simplex"),
    ):
        for policies in (0, 2):
            whole = bound.a_priori(weights, policies=policies)
            joins = (0, 1, 250, 499)
            since = [bound.over_stay(weights, joined=joined, policies=policies) for joined in joins]
            assert since[0] == pytest.approx(whole)
            assert (np.diff([whole, *since[1:]], axis=0) > 0).all()  # few rounds promise little
    for joined in (-1, 500):
        with pytest.raises(ValueError, match="no round since round"):
            CoordinateBound(AdaptiveWeights(), BoundInputs(100, 500, 2.0)).over_stay(
                weights, joined=joined
            )
    assert (
        GainBound(AdaptiveWeights(), BoundInputs(100, 500, 2.0)).over_stay(weights, joined=5)
        is None
    )


def test_who_leaves_may_have_the_bias_up_to_which_a_reference_is_trusted() -> None:
    """Bounds of stays hold after every round, those before trust was lost included."""
    occupancy = np.array([1.0, 5.0, 100.0])
    for rule, trust in product(map(rule_of, RULES), (SwitchTest(100), SwitchTest(100, 2.0))):
        stay = CoordinateBound(
            rule, BoundInputs(100, 500, 2.0, switch_test=trust), holds_throughout=True
        )
        kept = np.minimum(trust.most(occupancy), occupancy)
        assert (stay.bias(occupancy) >= kept).all()
        assert (stay.with_inputs(trusted=True).bias(occupancy) >= kept).all()


def test_who_is_too_far_is_not_covered() -> None:
    """A covered row plays the protected loss, the others their own."""
    model = market(cohort("early"), cohort("late", [1.0, 1.001, 3.0], enters=5, gamma=0.004))
    late, block = model.game.cohorts[1], model.game.blocks[0]
    own, covers = block.basis.coefficients(late.loss), model.guarantees[1].covers
    assert covers is not None
    assert (len(covers), covers.sum()) == (3, 2)
    theirs = model.game.cohorts[0].coefficients[1]
    for mine, alone, covered in zip(late.coefficients[1], own[1], covers, strict=True):
        assert (mine == theirs).all((1, 2)).any() if covered else (mine == alone).all()
    assert (late.coefficients[1] != own[1]).any()
    model.run()
    labels = np.where(covers[late.row_of], "decision-swap", "none")
    assert (of(model, "late")["guarantee"] == labels).all()
    count = (labels != "none").sum()
    assert model.guarantees[1].summary(late) == f"decision-swap for {count} of 8"


def answering(**keys: Any) -> Scenario:
    early = linear("early", WEIGHTS, response="quantal", eta=8.0)
    return scenario(early, linear("late", WEIGHTS[: keys.get("actions", 3)], enters=40) | keys)


def weather(policies: list[str]) -> Scenario:
    raw = read(find("crop-choice"))
    raw["policy"]["winter"] = {"kind": "threshold", "feature": "month", "at": 3}
    raw["policy"]["winter"] |= {"below": 1, "above": 2}
    del raw["cohort"][0]["parameters"]["concentration"]  # alike
    growers = raw["cohort"][0] | {"count": 12, "measures": list(MEASURES)}
    late = growers | {"name": "late", "policies": policies, "enters": 30}
    raw |= {"rounds": 80, "cohort": [growers, late], "forecaster": {"events": "coordinates"}}
    return read_scenario(raw)


def served(**forecaster: Any) -> Scenario:
    return scenario(cohort("early"), cohort("late", enters=40), forecaster=forecaster, rounds=50)


@pytest.mark.parametrize(
    ("told", "keys", "label"),
    [
        (answering, {}, "none"),  # plays a best response, and quantal agents alone are protected
        (answering, {"response": "quantal", "eta": 9.0}, "none"),
        (answering, {"response": "quantal", "eta": 8.0}, "smooth-decision-swap"),
        (answering, {"response": "certainty-equivalent"}, "none"),
        (answering, {"response": "quantal", "eta": 8.0, "actions": 2}, "none"),
        (weather, {"policies": ["by-month"]}, "decision-swap"),
        (weather, {"policies": []}, "decision-swap"),
        (weather, {"policies": ["winter"]}, "none"),
        (served, {"kind": "running-mean"}, "none"),
        (served, {"kind": "calibration", "cells": 2}, "none"),
        (served, {"events": "losses"}, "none"),  # a gain may fall before they join, and rise after
    ],
)
def test_the_protected_must_be_alike_and_unbiased_coordinates(
    told: Any, keys: dict[str, Any], label: str
) -> None:
    """They respond alike, and follow all policies of who comes."""
    model = play_to_end(told(**keys))
    agents = of(model, "late")
    assert set(agents["guarantee"]) == {label}
    assert (agents["decision_swap_regret"] <= agents["bound"].fillna(np.inf)).all()
    assert agents["bound"].isna().all() == (label == "none")
    note = model.guarantees[1].note
    assert re.match(r"late: \d+ agents entered before round \d\d[;,] ", note)
    assert ("no guarantee, since" in note) == (label == "none")


@pytest.mark.parametrize(
    ("response", "eta"), [("quantal", 8.0), ("ensemble", 8.0), ("ensemble", None)]
)
@pytest.mark.parametrize("shift", [0.0, 0.001])
def test_naive_agents_play_the_distribution_of_their_protected_loss(
    response: str, eta: float | None, shift: float
) -> None:
    keys = {"response": response, "eta": eta}
    moved = [[0.7 - shift, 0.3 + shift], *WEIGHTS[1:]]
    late = linear("late", moved, enters=40, gamma=0.01, **keys)
    model = market(linear("early", WEIGHTS, **keys), late)
    for log in played(model)[40:]:
        theirs, ours = (choice.probabilities for choice in log.decisions if choice is not None)
        assert ours == pytest.approx(theirs, rel=0, abs=1e-12 if shift else 0.0)
    label = "decision-swap" if eta is None else "smooth-decision-swap"
    assert set(of(model, "late")["guarantee"]) == {label}


# Which block they hear.


def test_they_hear_the_block_that_spans_their_losses() -> None:
    """An exact one before one that approximates; nobody who was there moves."""
    ramped = cohort("ramped", utility="cobb-douglas", parameters={}, basis="ramps", count=2)
    early = [ramped, cohort("exact"), linear("plain", WEIGHTS)]
    late = [linear("late", WEIGHTS, enters=4), cohort("later", enters=5)]
    late += [cohort("last", utility="leontief", parameters={}, enters=6, count=2)]
    model = market(*late, *early, rounds=8)
    heard = {seated.name: model.game.blocks[seated.block].name for seated in model.game.cohorts}
    assert [block.name for block in model.game.blocks] == ["ramps", "monomials", "linear"]
    expected = {"later": "monomials", "last": "ramps", "ramped": "ramps", "exact": "monomials"}
    assert heard.pop("late") in {"monomials", "linear"}  # degree 2 spans linear losses, too
    assert heard == expected | {"plain": "linear"}
    assert list(heard) == [*expected, "plain"]
    model.run()


def test_who_comes_late_with_losses_that_nobody_else_has_gets_a_block_from_the_start() -> None:
    """What the others hear does not change, and the bound counts from the entry."""
    late = cohort("late", utility="leontief", parameters={}, enters=40, count=2)
    early = linear("early", WEIGHTS)
    keys: dict[str, Any] = {"forecaster": {"events": "coordinates"}, "stream": "iid"}
    alone = market(early, **keys)
    joined = market(early, late, **keys)
    alone.run()
    joined.run()
    assert [block.name for block in joined.game.blocks] == ["linear", "reduced"]
    pd.testing.assert_frame_equal(alone.rounds_frame()[["y_0"]], joined.rounds_frame()[["y_0"]])
    agents = of(joined, "late")
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["entered"] == 40).all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert "block reduced is made for them from the start" in joined.guarantees[1].note


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
    model = market(cohort("early"), cohort("late", enters=4, **keys), rounds=8)
    early, late = model.game.cohorts
    assert early.block != late.block
    model.run()
    assert of(model, "late")["mean_loss"].between(0, 1).all()


def test_blocks_of_late_cohorts_have_names_of_their_own() -> None:
    reports = {"risk_aversion": 5.0}
    late = [cohort("late", enters=4, reports=reports), cohort("plain", enters=5)]
    model = market(*late, cohort("early"), rounds=8)
    assert [block.name for block in model.game.blocks] == ["monomials", "monomials-2"]
    assert [seated.block for seated in model.game.cohorts] == [1, 0, 0]


# What the log holds.


def test_views_wait_until_they_have_played() -> None:
    model = market(cohort("early"), cohort("late", enters=2))
    late = list(model.agents.select(lambda agent: agent.cohort == "late"))
    for played_so_far in (0, 1, 2):
        model.run(played_so_far)
        assert {agent.action for agent in late} == {-1}
        assert np.isnan([[agent.swap_regret, agent.mean_loss] for agent in late]).all()
        assert of(model, "late")[["mean_loss", *COLUMNS, "bound_from_bias"]].isna().all().all()
        assert of(model, "early")["mean_loss"].notna().all()
    model.run(3)
    assert min(agent.action for agent in late) >= 0
    assert [agent.swap_regret for agent in late] == of(model, "late")["swap_regret"].tolist()
    assert of(model, "late")[["mean_loss", *COLUMNS]].notna().all().all()


LATECOMERS = (
    cohort("late", [1.0, 3.0], enters=40),
    cohort("quantal", enters=41, response="quantal", eta=5.0),
    cohort("gamblers", enters=42, response="exp3", count=3),
)


@pytest.mark.parametrize("first", [False, True])
def test_late_agents_disturb_nobody(*, first: bool) -> None:
    """The others' columns are the same with and without them, wherever they stand in the file."""
    early = [cohort("early"), cohort("smooth", response="quantal", eta=5.0)]
    alone = market(*early)
    joined = market(*LATECOMERS, *early) if first else market(*early, *LATECOMERS)
    alone.run()
    joined.run()
    for frame in ("rounds_frame", "forecasts_frame", "biases_frame"):
        pd.testing.assert_frame_equal(getattr(alone, frame)(), getattr(joined, frame)())
    shift = sum(one["count"] for one in LATECOMERS) if first else 0
    theirs = joined.agents_frame().query("cohort in ['early', 'smooth']").reset_index(drop=True)
    theirs["agent"] -= shift
    assert (theirs[["entered", "left"]] == [0, joined.rounds]).all(axis=None)
    theirs = theirs.drop(columns=["entered", "left"])
    pd.testing.assert_frame_equal(theirs, alone.agents_frame())
    log = joined.regret_frame()
    log["agent"] -= shift
    log = log[log["agent"].between(1, 16)].reset_index(drop=True)
    pd.testing.assert_frame_equal(log, alone.regret_frame())
