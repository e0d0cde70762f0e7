"""Bounds are noted in the round after which they hold, and worked out when somebody reads them."""

from typing import Any

import numpy as np
import pytest

from regretless import load
from regretless.forecaster import unbiased
from regretless.market.losses import Loss
from regretless.market.model import MarketModel

ROUNDS = 40
COORDINATES = {"forecaster.events": "coordinates"}
LOSSES = {"forecaster.events": "losses"}
WRONG_MODEL = {"forecaster.models": ["constant"], "forecaster.give_up": 0.1}
NO_MODELS: dict[str, Any] = {"forecaster.models": []}
SECOND_ORDER = {"forecaster.weights": "second-order"}
CASES: dict[str, dict[str, Any]] = {
    "coordinates": {**COORDINATES, **NO_MODELS},
    "coordinates by another rule": {
        **COORDINATES,
        **NO_MODELS,
        "forecaster.weights": "second-order",
    },
    "coordinates and gains against models": COORDINATES,
    "the same after a model was disproved": {**COORDINATES, **WRONG_MODEL},
    "gains of losses while a model is trusted": LOSSES,
    "gains of losses after a model was disproved": {**LOSSES, **WRONG_MODEL},
    "gains of losses without a model": {**LOSSES, **NO_MODELS},
    "gains by another rule": {**LOSSES, **WRONG_MODEL, **SECOND_ORDER},
    "late outcomes": {**LOSSES, **WRONG_MODEL, "forecaster.delay": 2},
    "late outcomes of coordinates": {**COORDINATES, "forecaster.delay": 2},
    "intervals": {**LOSSES, **NO_MODELS, "forecaster.intervals": True},
    "agents who leave": {**COORDINATES, "cohort.growers.exit_rate": 0.05},
}


def few_growers(**changes: Any) -> MarketModel:
    settings = {"cohort.growers.count": 5, "rounds": ROUNDS, **changes}
    return load("crop-choice", **settings).build(seed=4)


@pytest.mark.parametrize("case", CASES)
def test_who_reads_bounds_after_the_run_finds_those_that_held_after_each_round(case: str) -> None:
    read_often = few_growers(**CASES[case])
    for _ in range(ROUNDS):
        read_often.step()
        read_often.bounds_frame()
    read_at_the_end = few_growers(**CASES[case])
    read_at_the_end.run()

    expected = read_often.bounds_frame()
    assert expected["bound"].notna().any()
    assert read_at_the_end.bounds_frame().equals(expected)


def test_bounds_of_a_large_forecaster_are_worked_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = few_growers(**COORDINATES)
    expected.run()
    monkeypatch.setattr(unbiased, "MAX_EXPERTS_OF_EXCERPT", 0)

    model = few_growers(**COORDINATES)
    model.run()

    assert model.bounds_frame().equals(expected.bounds_frame())


def test_a_checkpoint_holds_the_bounds_that_nobody_has_read() -> None:
    undisturbed = few_growers()
    undisturbed.run()
    stopped = few_growers()
    stopped.run(21)
    resumed = few_growers()
    resumed.run(13)  # whose bounds the checkpoint replaces

    resumed.restore(stopped.state())
    resumed.run()

    assert resumed.bounds_frame().equals(undisturbed.bounds_frame())


def test_bounds_from_before_an_agent_was_dismissed_are_still_about_that_agent() -> None:
    read_before = few_growers(**COORDINATES)
    read_later = few_growers(**COORDINATES)
    for model in (read_before, read_later):
        model.run(30)
    bounds_until_then = read_before.bounds_frame()

    for agent in range(4):
        read_later.dismiss(0, agent)

    assert read_later.bounds_frame().equals(bounds_until_then)


def test_no_round_certifies_a_basis(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load("consumers", rounds=10).build(seed=1)
    certified = []

    def certified_error(losses: Loss) -> np.ndarray:
        certified.append(losses)
        return np.zeros(len(losses))

    for block in model.game.blocks:
        monkeypatch.setattr(block.basis, "certified_error", certified_error)

    model.run()
    assert certified == []
    model.bounds_frame()
    assert certified
