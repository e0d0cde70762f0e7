"""Calibration errors from the log equal what the forecaster accumulated."""

import numpy as np
import pytest
import worlds

from regretless.market.calibration import cross_calibration, decision_calibration
from regretless.market.model import MarketModel
from regretless.scenarios.config.files import find, read

ROUNDS = 120
PLAIN = {"rounds": ROUNDS, "forecaster": {"models": []}}  # events of vectors


def played(response: str) -> MarketModel:
    raw = read(find("crop-choice"))
    grower = raw["cohort"][0] | {"utility": "linear", "count": 6, "response": response}
    grower["parameters"] = {"concentration": 20.0, "weights": grower["parameters"]["weights"]}
    if response == "quantal":
        grower["eta"] = 12.0
    return worlds.played(worlds.told(raw | PLAIN | {"cohort": [grower]}))


@pytest.mark.parametrize(("response", "eta"), [("best-response", None), ("quantal", 12.0)])
def test_biases_are_recomputed_from_the_logs(response: str, eta: float | None) -> None:
    model = played(response)
    cohort, block = model.game.cohorts[0], model.game.blocks[0]
    rounds, atoms = model.rounds_frame(), model.forecasts_frame()
    points = atoms[["p_0", "p_1", "p_2"]].to_numpy()
    truths = rounds[["y_0", "y_1", "y_2"]].to_numpy()[atoms["round"]]
    contexts = rounds[["x_0", "x_1"]].to_numpy()[atoms["round"]]
    mass = atoms["weight"].to_numpy()
    months, wet = contexts.T
    suggestions = np.array(
        [np.array([0, 2, 3, 2, 0])[np.searchsorted([3, 6, 9, 11], months, side="right")],
         np.where(wet >= 1, 0, 3)]
    )  # fmt: skip
    decision = decision_calibration(points, truths, cohort.coefficients, smooth=eta, mass=mass)
    cross = cross_calibration(
        points, truths, cohort.coefficients, suggestions, smooth=eta, mass=mass
    )
    for loss, action, policy, suggestion, _, bias in block.forecaster.events.table():
        kept = np.abs(bias).max() / ROUNDS
        if policy is None:
            assert decision[loss, action] == pytest.approx(kept, abs=1e-12)
        else:
            assert cross[loss, action, policy, suggestion] == pytest.approx(kept, abs=1e-12)


def test_a_constant_error_on_one_action_is_found() -> None:
    coefficients = np.array([[0.0, 0.5]]), np.array([[[1.0], [0.0]]])
    points = np.array([[0.2], [0.2], [0.9], [0.9]])
    truths = np.array([[0.1], [0.1], [1.0], [0.8]])
    errors = decision_calibration(points, truths, coefficients)
    assert errors == pytest.approx(np.array([[0.05, 0.0]]))
    split = cross_calibration(points, truths, coefficients, [[0, 1, 0, 1]])
    assert split[0, 1, 0] == pytest.approx([0.025, 0.025])
