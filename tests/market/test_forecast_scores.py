"""How good the forecast was: against libraries, by hand, and where the answer is known."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import mean_absolute_error, root_mean_squared_error
from small_scenarios import play_to_end, read_scenario

from regretless import UserError, load, read_run
from regretless.forecaster.bases import LinearBasis
from regretless.market import calibration
from regretless.market.core.arrays import Array
from regretless.market.logs.forecast_scores import ensemble_scores, reliability, scores_table
from regretless.market.losses.basis import Basis
from regretless.market.model import MarketModel
from regretless.market.records import MAX_RECENT, Forecast, ForecastRecord, Mixture
from regretless.scenarios.config.files import find, read
from regretless.scenarios.logs.reading import PlayedRun
from regretless.scenarios.report import forecast_figures
from regretless.scenarios.report.figures import Run
from regretless.scenarios.run import Options, run


def scores_of(labels: Array, outcomes: Array) -> pd.DataFrame:
    """Score label forecasts (T, S) of one outcome (T,): the broadcast, then those of models."""
    record = ForecastRecord()
    for labels_of_round in labels:
        record.add(labels_of_round[:, None], ["model"] * (len(labels_of_round) - 1))
    return scores_table({"one": record}, outcomes[:, None], [])


@pytest.mark.parametrize("known_members", [25, 20])
def test_the_crps_is_as_it_is_defined(known_members: int) -> None:
    """E |X - y| - E |X - X'| / 2, as Gneiting and Raftery (2007) define it; NaN is no member."""
    rng = np.random.default_rng(0)
    members = rng.standard_normal((40, 25))
    outcome = rng.standard_normal(40)
    members[:, known_members:] = np.nan
    known = members[:, :known_members]
    distance_to_outcome = np.abs(known - outcome[:, None]).mean(1)
    distance_to_each_other = np.abs(known[:, :, None] - known[:, None]).mean((1, 2))
    crps, *_ = ensemble_scores(members, outcome)
    np.testing.assert_allclose(crps, distance_to_outcome - distance_to_each_other / 2, atol=1e-12)


class TwoForecasts(NamedTuple):
    """The level around which normal outcomes of deviation .05 lie, and scores of two forecasts."""

    level: Array
    outcomes: Array
    right: pd.Series  # of who forecasts the level
    poor: pd.Series  # of who forecasts the mean


@pytest.fixture(scope="module")
def two_forecasts() -> TwoForecasts:
    rng = np.random.default_rng(1)
    level = 0.5 + 0.2 * np.sin(np.arange(3000) / 20)
    outcomes = level + 0.05 * rng.standard_normal(3000)
    scores = scores_of(np.column_stack([level, np.full(3000, 0.5)]), outcomes)
    (_, right), (_, poor) = scores[scores["kind"] == "outcome"].iterrows()
    return TwoForecasts(level, outcomes, right, poor)


def test_errors_of_a_forecast_are_those_of_scikit_learn(two_forecasts: TwoForecasts) -> None:
    level, outcomes, right, _ = two_forecasts
    assert right["mae"] == pytest.approx(mean_absolute_error(outcomes, level))
    assert right["rmse"] == pytest.approx(root_mean_squared_error(outcomes, level))


def test_intervals_of_a_right_forecast_cover_as_much_as_they_say(
    two_forecasts: TwoForecasts,
) -> None:
    right = two_forecasts.right
    assert right["coverage_90"] == pytest.approx(0.9, abs=0.02)
    assert right["coverage_50"] == pytest.approx(0.5, abs=0.03)


def test_outcomes_are_equally_often_in_each_tenth_of_a_right_forecast(
    two_forecasts: TwoForecasts,
) -> None:
    shares_of_tenths = two_forecasts.right.filter(like="pit_").astype(float)
    np.testing.assert_allclose(shares_of_tenths, 0.1, atol=0.025)


def test_the_crps_of_a_right_forecast_is_that_of_a_normal_distribution(
    two_forecasts: TwoForecasts,
) -> None:
    assert two_forecasts.right["crps"] == pytest.approx(0.05 / np.sqrt(np.pi), rel=0.05)


def test_a_worse_forecast_has_a_greater_crps(two_forecasts: TwoForecasts) -> None:
    assert two_forecasts.poor["crps"] > 1.3 * two_forecasts.right["crps"]


def test_reliability_is_the_calibration_curve_of_scikit_learn() -> None:
    rng = np.random.default_rng(2)
    members = rng.standard_normal((400, 33)) + rng.standard_normal((400, 1))
    outcome = rng.standard_normal(400)
    curve = pd.DataFrame(reliability(members, outcome))
    median = np.median(outcome)
    probability = (members > median).mean(1)
    expected = calibration_curve(outcome > median, probability, n_bins=10)
    np.testing.assert_allclose(curve[["observed", "predicted"]].T, expected)
    assert curve["share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("draw", [forecast_figures.reliability, forecast_figures.calibration])
def test_a_figure_of_two_blocks_has_a_curve_for_each_broadcast_and_one_for_a_model(
    draw: Callable[[Run], go.Figure],
) -> None:
    rng = np.random.default_rng(4)
    scores = scores_of(rng.uniform(0.2, 0.8, (300, 2)), rng.uniform(size=300))
    of_two_blocks = pd.concat([scores, scores.assign(block="two")], ignore_index=True)
    figure = draw(Run({"data": {"outcomes": ["rain"]}}, {"forecast_scores": of_two_blocks}))
    curves = [trace for trace in figure.data if trace.name.startswith(("broadcast", "model"))]
    names = ["broadcast, one", "broadcast, two", "model"]
    assert sorted(curve.name for curve in curves) == names
    assert sorted(curve.name for curve in curves if curve.showlegend) == names
    for curve in curves:
        assert (np.diff(curve.x) > 0).all(), curve.name


def test_forecasts_are_scored_over_the_last_rounds_that_are_kept() -> None:
    """The forecast is wrong by 1 before."""
    outcomes = np.concatenate([np.zeros(500), np.ones(MAX_RECENT)])
    scores = scores_of(np.ones((len(outcomes), 1)), outcomes)
    (of_outcome,) = scores.query("kind == 'outcome'").itertuples()
    assert of_outcome.mae == 0.0
    assert of_outcome.rounds == MAX_RECENT


def test_rounds_that_an_adversary_imagines_are_not_scored() -> None:
    scores = play_to_end(load("chain-store", rounds=4), seed=1).scores_frame()
    assert set(scores.loc[scores["kind"] == "outcome", "rounds"]) == {4}


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> PlayedRun:
    """Write a run of 90 rounds, and read it."""
    folder = tmp_path_factory.mktemp("run") / "logs"
    run(load("crop-choice", rounds=90), Options(folder))
    return read_run(str(folder))


def test_errors_of_the_broadcast_are_those_of_the_logs(finished_run: PlayedRun) -> None:
    drawn = finished_run.forecasts[finished_run.forecasts["drawn"]].set_index("round")
    rows = finished_run.scores.query("source == 'broadcast' and kind == 'outcome'")
    for row in rows.itertuples():
        label = drawn[row.outcome.replace("y", "label")].to_numpy()
        truth = finished_run.rounds[row.outcome].to_numpy()
        expected = mean_absolute_error(truth, label)
        assert row.mae == pytest.approx(expected, rel=1e-9), row.outcome


def test_the_broadcast_and_every_model_are_scored(finished_run: PlayedRun) -> None:
    sources = set(finished_run.scores["source"])
    assert sources == {"broadcast", "", *finished_run.models["model"]}


def test_decisions_are_scored_by_the_losses_of_the_log(finished_run: PlayedRun) -> None:
    mean_losses = finished_run.regret_log.groupby("action")["loss"].mean()
    decisions = finished_run.scores.query("kind == 'decision'").set_index("action")
    expected = mean_losses[decisions.index]
    np.testing.assert_allclose(decisions["mean_loss"], expected, rtol=1e-9)
    assert decisions["share"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["calibration", "decision_calibration", "reliability"])
def test_scores_of_a_run_have_their_figures(finished_run: PlayedRun, name: str) -> None:
    tables = {"agents": finished_run.agents, "forecast_scores": finished_run.scores}
    draw = getattr(forecast_figures, name)
    assert draw(Run(finished_run.manifest["config"], tables)) is not None


def test_a_run_that_is_read_has_its_tables_and_its_manifest_alone(finished_run: PlayedRun) -> None:
    assert finished_run.manifest["rounds"] == 90
    assert not hasattr(finished_run, "agent")
    with pytest.raises(UserError, match="has no table 'accounts'"):
        _ = finished_run.accounts


def test_a_folder_that_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run directory"):
        read_run(tmp_path)


BIAS_ROUNDS = 120


def crop_choice_of_vectors(eta: float | None) -> MarketModel:
    """Play six growers of linear losses, for whose events biases are vectors."""
    raw = read(find("crop-choice"))
    (grower,) = raw["cohort"]
    parameters = {"concentration": 20.0, "weights": grower["parameters"]["weights"]}
    grower |= {"utility": "linear", "count": 6, "parameters": parameters}
    if eta is not None:
        grower |= {"response": "quantal", "eta": eta}
    keys = {"rounds": BIAS_ROUNDS, "forecaster": {"models": []}, "cohort": [grower]}
    return play_to_end(read_scenario(raw | keys))


@pytest.mark.parametrize("eta", [None, 12.0], ids=["best response", "quantal"])
def test_biases_of_the_forecaster_are_those_recomputed_from_the_logs(eta: float | None) -> None:
    model = crop_choice_of_vectors(eta)
    coefficients = model.game.cohorts[0].coefficients
    rounds = model.rounds_frame()
    atoms = model.forecasts_frame()
    round_of_atom = atoms["round"]
    points = atoms[["p_0", "p_1", "p_2"]].to_numpy()
    truths = rounds[["y_0", "y_1", "y_2"]].to_numpy()[round_of_atom]
    month, rain = rounds[["x_0", "x_1"]].to_numpy()[round_of_atom].T
    by_month = np.array([0, 2, 3, 2, 0])[np.searchsorted([3, 6, 9, 11], month, side="right")]
    by_rain = np.where(rain >= 1, 0, 3)
    mass = atoms["weight"].to_numpy()
    decision_errors = calibration.decision_calibration(
        points, truths, coefficients, smooth=eta, mass=mass
    )
    cross_errors = calibration.cross_calibration(
        points, truths, coefficients, [by_month, by_rain], smooth=eta, mass=mass
    )

    events = model.game.blocks[0].forecaster.events.table()

    for loss, action, policy, suggestion, _, bias in events:
        if policy is None:
            expected = decision_errors[loss, action]
        else:
            expected = cross_errors[loss, action, policy, suggestion]
        assert np.abs(bias).max() / BIAS_ROUNDS == pytest.approx(expected, abs=1e-12)


# Action 0 loses y and action 1 a half; predictions of .2 are too high by .1, those of .9 right in
# the mean.
COEFFICIENTS = np.array([[0.0, 0.5]]), np.array([[[1.0], [0.0]]])
POINTS = np.array([[0.2], [0.2], [0.9], [0.9]])
TRUTHS = np.array([[0.1], [0.1], [1.0], [0.8]])


def test_a_constant_error_on_one_action_is_found() -> None:
    errors = calibration.decision_calibration(POINTS, TRUTHS, COEFFICIENTS)
    assert errors == pytest.approx(np.array([[0.05, 0.0]]))


def test_a_constant_error_is_split_by_what_a_policy_suggests() -> None:
    policy = [0, 1, 0, 1]
    errors = calibration.cross_calibration(POINTS, TRUTHS, COEFFICIENTS, [policy])
    assert errors[0, 1, 0] == pytest.approx([0.025, 0.025])


ROUNDS_NOTED = 150  # more than are worked out together
NAMES_OF_MODELS = ("slow", "fast")


class HalvingBasis(LinearBasis):
    """Its label forecasts are half of what is predicted."""

    def inverse(self, points: Array) -> Array:
        return np.asarray(points / 2)


class HalvingRowsTogether(HalvingBasis):
    """Of whose label forecasts those of many rounds are made together."""

    inverse_is_rowwise = True


class HalvingRowsApart(HalvingBasis):
    """Of whose label forecasts each mixture's are made for themselves."""

    inverse_is_rowwise = False


HALVING = HalvingRowsTogether(2)


def forecast_of(prediction: Array, basis: Basis = HALVING) -> Forecast:
    """Return a forecast whose second atom, the prediction, was drawn."""
    points = np.stack([np.zeros_like(prediction), prediction])
    return Forecast(Mixture(points, np.full(2, 0.5), basis_of_labels=basis), 1)


@pytest.mark.parametrize("basis", [HALVING, HalvingRowsApart(2)])
def test_rounds_that_were_noted_are_those_that_would_have_been_added(basis: Basis) -> None:
    rng = np.random.default_rng(1)
    noted = ForecastRecord()
    added = ForecastRecord()
    for points in rng.random((ROUNDS_NOTED, 3, 2)):
        noted.note(forecast_of(points[0], basis), points[1:], NAMES_OF_MODELS, basis=basis)
        added.add(points / 2, NAMES_OF_MODELS)

    assert np.array_equal(noted.last(MAX_RECENT), added.last(MAX_RECENT))
    assert noted.models == list(NAMES_OF_MODELS)


def test_a_record_goes_on_from_a_checkpoint_with_the_rounds_that_were_noted() -> None:
    rng = np.random.default_rng(2)
    record = ForecastRecord()
    resumed = ForecastRecord()
    no_models = np.empty((0, 2))
    for point in rng.random((5, 2)):
        record.note(forecast_of(point), no_models, (), basis=HALVING)
    resumed.note(forecast_of(np.zeros(2)), no_models, (), basis=HALVING)

    resumed.restore(record.state())

    assert np.array_equal(resumed.last(MAX_RECENT), record.last(MAX_RECENT))


def test_a_record_begins_anew_with_other_models() -> None:
    record = ForecastRecord()
    points = np.full((3, 2), 0.5)
    record.note(forecast_of(points[0]), points[1:], NAMES_OF_MODELS, basis=HALVING)

    record.note(forecast_of(points[0]), points[1:2], ["slow"], basis=HALVING)

    assert record.last(MAX_RECENT).shape == (1, 2, 2)
