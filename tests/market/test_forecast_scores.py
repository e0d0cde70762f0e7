"""How good the forecast was: against libraries, by hand, and where the answer is known."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from sklearn.calibration import calibration_curve
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from regretless import UserError, load, read_run
from regretless.market import calibration
from regretless.market.logs.forecast_scores import ensemble_scores, reliability, scores_table
from regretless.market.records import MAX_RECENT, ForecastRecord
from regretless.scenarios.config.files import find, read
from regretless.scenarios.report import run_figures
from regretless.scenarios.report.figures import Run
from regretless.scenarios.run import Options, run


def recorded(labels: np.ndarray[Any, Any], outcomes: np.ndarray[Any, Any]) -> pd.DataFrame:
    """Score label forecasts (T, S) of one outcome (T,)."""
    record = ForecastRecord()
    for label in labels:
        record.add(label[:, None], ["model"] * (len(label) - 1))
    return scores_table({"one": record}, outcomes[:, None], [])


def test_the_crps_is_as_it_is_defined() -> None:
    """E |X - y| - E |X - X'| / 2, as Gneiting and Raftery (2007) define it; NaN is no member."""
    rng = np.random.default_rng(0)
    members, outcome = rng.standard_normal((40, 25)), rng.standard_normal(40)
    for count in (25, 20):
        members[:, count:] = np.nan
        known = members[:, :count]
        apart = np.abs(known[:, :, None] - known[:, None]).mean((1, 2))
        expected = np.abs(known - outcome[:, None]).mean(1) - apart / 2
        np.testing.assert_allclose(ensemble_scores(members, outcome)[0], expected, atol=1e-12)


def test_a_forecast_that_is_right_is_calibrated_and_a_worse_one_has_a_greater_crps() -> None:
    rng = np.random.default_rng(1)
    level = 0.5 + 0.2 * np.sin(np.arange(3000) / 20)
    outcomes = level + 0.05 * rng.standard_normal(3000)
    both = recorded(np.column_stack([level, np.full(3000, 0.5)]), outcomes)
    good, poor = (row for _, row in both[both["kind"] == "outcome"].iterrows())
    assert good["mae"] == pytest.approx(mean_absolute_error(outcomes, level))
    assert good["rmse"] == pytest.approx(root_mean_squared_error(outcomes, level))
    assert good["coverage_90"] == pytest.approx(0.9, abs=0.02)
    assert good["coverage_50"] == pytest.approx(0.5, abs=0.03)
    np.testing.assert_allclose(good.filter(like="pit_").astype(float), 0.1, atol=0.025)
    assert good["crps"] == pytest.approx(0.05 / np.sqrt(np.pi), rel=0.05)  # of a normal one
    assert poor["crps"] > 1.3 * good["crps"]


def test_reliability_is_the_calibration_curve_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    members = rng.standard_normal((400, 33)) + rng.standard_normal((400, 1))
    outcome = rng.standard_normal(400)
    rows, middle = pd.DataFrame(reliability(members, outcome)), np.median(outcome)
    known = calibration_curve(outcome > middle, (members > middle).mean(1), n_bins=10)
    np.testing.assert_allclose(rows[["observed", "predicted"]].T, known)
    assert rows["share"].sum() == pytest.approx(1.0)


def test_figures_of_two_blocks_have_a_curve_for_each_broadcast_and_one_for_a_model() -> None:
    rng = np.random.default_rng(4)
    table = recorded(rng.uniform(0.2, 0.8, (300, 2)), rng.uniform(size=300))
    both = pd.concat([table, table.assign(block="two")], ignore_index=True)
    shown = Run({"data": {"outcomes": ["rain"]}}, {"forecast_scores": both})
    for draw in (run_figures.reliability, run_figures.calibration):
        drawn = draw(shown).data
        curves = [trace for trace in drawn if trace.name.startswith(("broadcast", "model"))]
        names = ["broadcast, one", "broadcast, two", "model"]
        assert sorted(trace.name for trace in curves) == names
        assert sorted(trace.name for trace in curves if trace.showlegend) == names
        assert all((np.diff(trace.x) > 0).all() for trace in curves)


def test_the_last_rounds_are_kept_and_those_that_an_adversary_imagines_are_not() -> None:
    outcomes = np.concatenate([np.zeros(500), np.ones(MAX_RECENT)])
    (row,) = recorded(np.ones((len(outcomes), 1)), outcomes).query("kind == 'outcome'").itertuples()
    assert (row.mae, row.rounds) == (0.0, MAX_RECENT)
    scores = worlds.played(load("chain-store", rounds=4), seed=1).scores_frame()
    assert set(scores.loc[scores["kind"] == "outcome", "rounds"]) == {4}


def test_scores_of_a_run_are_those_of_its_logs(tmp_path: Path) -> None:
    run(load("crop-choice", rounds=90), Options(tmp_path / "logs"))
    played = read_run(str(tmp_path / "logs"))
    assert not hasattr(played, "agent")
    rounds, forecasts, scores = played.rounds, played.forecasts, played.scores
    drawn = forecasts[forecasts["drawn"]].set_index("round")
    for row in scores.query("source == 'broadcast' and kind == 'outcome'").itertuples():
        label = drawn[row.outcome.replace("y", "label")].to_numpy()
        truth = rounds[row.outcome].to_numpy()
        assert row.mae == pytest.approx(mean_absolute_error(truth, label), rel=1e-9)
    assert set(scores["source"]) == {"broadcast", "", *played.models["model"]}
    means = played.regret_log.groupby("action")["loss"].mean()
    decisions = scores.query("kind == 'decision'").set_index("action")
    np.testing.assert_allclose(decisions["mean_loss"], means[decisions.index], rtol=1e-9)
    assert decisions["share"].sum() == pytest.approx(1.0)
    shown = Run(played.manifest["config"], {"agents": played.agents, "forecast_scores": scores})
    for draw in ("calibration", "decision_calibration", "reliability"):
        assert getattr(run_figures, draw)(shown) is not None
    assert played.manifest["rounds"] == 90
    with pytest.raises(UserError, match="has no table 'accounts'"):
        _ = played.accounts
    with pytest.raises(UserError, match="is not a run directory"):
        read_run(tmp_path)


@pytest.mark.parametrize("eta", [None, 12.0])
def test_biases_are_recomputed_from_the_logs(eta: float | None) -> None:
    raw = read(find("crop-choice"))
    (grower,) = raw["cohort"]
    parameters = {"concentration": 20.0, "weights": grower["parameters"]["weights"]}
    grower |= {"utility": "linear", "count": 6, "parameters": parameters}
    grower |= {} if eta is None else {"response": "quantal", "eta": eta}
    keys = {"rounds": 120, "forecaster": {"models": []}, "cohort": [grower]}  # events of vectors
    model = worlds.played(worlds.told(raw | keys))
    cohort, block = model.game.cohorts[0], model.game.blocks[0]
    rounds, atoms = model.rounds_frame(), model.forecasts_frame()
    truths = rounds[["y_0", "y_1", "y_2"]].to_numpy()[atoms["round"]]
    months, wet = rounds[["x_0", "x_1"]].to_numpy()[atoms["round"]].T
    by_month = np.array([0, 2, 3, 2, 0])[np.searchsorted([3, 6, 9, 11], months, side="right")]
    told = atoms[["p_0", "p_1", "p_2"]].to_numpy(), truths, cohort.coefficients
    how = {"smooth": eta, "mass": atoms["weight"].to_numpy()}
    decision = calibration.decision_calibration(*told, **how)
    cross = calibration.cross_calibration(*told, [by_month, np.where(wet >= 1, 0, 3)], **how)
    for loss, action, policy, suggestion, _, bias in block.forecaster.events.table():
        at = (loss, action) if policy is None else (loss, action, policy, suggestion)
        known = decision if policy is None else cross
        assert known[at] == pytest.approx(np.abs(bias).max() / 120, abs=1e-12)


def test_a_constant_error_on_one_action_is_found() -> None:
    coefficients = np.array([[0.0, 0.5]]), np.array([[[1.0], [0.0]]])
    points = np.array([[0.2], [0.2], [0.9], [0.9]])
    truths = np.array([[0.1], [0.1], [1.0], [0.8]])
    errors = calibration.decision_calibration(points, truths, coefficients)
    assert errors == pytest.approx(np.array([[0.05, 0.0]]))
    split = calibration.cross_calibration(points, truths, coefficients, [[0, 1, 0, 1]])
    assert split[0, 1, 0] == pytest.approx([0.025, 0.025])
