"""Arguments of forecasters made by hand, of estimators and of measures: nonsense is refused.

A UserError of one line names the argument, the value and the cure; nothing else is raised, and no
nonsense passes in silence.
"""

import functools
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meaningless_arguments import MEANINGLESS, NO_NUMBER, refuses_or_works

import regretless
from regretless import OfflineOmnipredictor, OnlineOmnipredictor, UserError
from regretless.agents.utilities import Newsvendor
from regretless.forecaster import (
    Aggregate,
    Constant,
    ExponentialSmoothing,
    LastValue,
    LeastSquares,
    ProtectedLosses,
    Reference,
    RunningMean,
    SeasonalNaive,
    UnbiasedPrediction,
    UniversalDecisionSwap,
    VectorEvents,
    adapted,
)
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.models import ColumnForecast
from regretless.forecaster.offline import Pinball, SquaredError, theta_net
from regretless.forecaster.online.as_sklearn import OmnipredictorEstimator
from regretless.market.exploitability.information_design import mimic_regret, revenue_cap
from regretless.market.exploitability.of_joint import (
    coarse_correlated_distance,
    correlated_distance,
)
from regretless.market.losses import Linear
from regretless.market.records import Forecast

LOSS = Linear([[1.0], [0.5]], [0.0, 0.25])
ROWS = np.linspace(0.0, 1.0, 24).reshape(12, 2)
OUTCOMES = ROWS[:, :1] ** 2
EVENTS = VectorEvents([ProtectedLosses(np.zeros((1, 2)), np.ones((1, 2, 1)))])
TYPES: dict[str, Any] = {"losses": [[[0.1, 0.2]], [[0.3, 0.4]]], "actions": [[0], [1]]}
MATCHING = {"joint": [[0.5, 0.0], [0.0, 0.5]], "losses": [[[0, 1], [1, 0]], [[1, 0], [0, 1]]]}


def fitted(x: Any = ROWS, y: Any = OUTCOMES, **arguments: Any) -> OfflineOmnipredictor:
    """Return an offline omnipredictor that has learned a few rows; a small one by default."""
    cheap = {"base": "ridge", "cv": 2, "trees": 2}
    return OfflineOmnipredictor(**{"losses": [LOSS]} | cheap | arguments).fit(x, y)


def estimated(x: Any = ROWS, y: Any = OUTCOMES[:, 0], **arguments: Any) -> OmnipredictorEstimator:
    """Return an estimator of scikit-learn's kind that has learned a few rows."""
    return OmnipredictorEstimator(**{"models": {"last": "last-value"}} | arguments).fit(x, y)


MADE: dict[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "Constant": (Constant, {"size": 1, "value": 0.5}),
    "LastValue": (LastValue, {"size": 1}),
    "RunningMean": (RunningMean, {"size": 1}),
    "ExponentialSmoothing": (ExponentialSmoothing, {"size": 1, "rate": 0.5}),
    "SeasonalNaive": (SeasonalNaive, {"size": 1, "period": 3, "rate": 0.5}),
    "LeastSquares": (
        LeastSquares,
        {"size": 1, "lags": 2, "season": 3, "forgetting": 0.9, "ridge": 1.0},
    ),
    "Aggregate": (Aggregate, {"models": {"last": LastValue(1)}, "size": 1, "chosen": "last"}),
    "ColumnForecast": (
        ColumnForecast,
        {"basis": LinearBasis(1), "columns": [["low", "high"]], "levels": [0.1, 0.9]},
    ),
    "adapted": (adapted, {"model": LastValue(1), "size": 1, "basis": LinearBasis(1)}),
    "Reference": (Reference, {"model": LastValue(1), "band": 0.25, "give_up": 1.0, "turns": 1}),
    "UnbiasedPrediction": (
        UnbiasedPrediction,
        {"events": EVENTS, "solver": None, "reference": None, "basis": None, "seed": 0},
    ),
    "UniversalDecisionSwap": (
        UniversalDecisionSwap,
        {"rounds": 100, "reference": LastValue(1), "band": 0.25, "give_up": 1.0, "seed": 0},
    ),
    "mimic_regret": (mimic_regret, TYPES | {"outside": 1}),
    "revenue_cap": (
        revenue_cap,
        {"values": [0.5, 1.0], "frequencies": [0.5, 0.5], "regret": 0.1},
    ),
    "correlated_distance": (correlated_distance, MATCHING | {"tolerance": 0.1}),
    "coarse_correlated_distance": (coarse_correlated_distance, MATCHING | {"tolerance": 0.1}),
    "theta_net": (theta_net, {"theta": 0.25, "dimension": 1}),
    "Pinball": (Pinball, {"level": 0.5, "coordinate": 0, "outcomes": 1}),
    "SquaredError": (SquaredError, {"outcomes": 1}),
    "OfflineOmnipredictor": (
        fitted,
        {
            "x": ROWS,
            "y": OUTCOMES,
            "losses": [LOSS],
            "policies": [],
            "basis": None,
            "delta": None,
            "theta": None,
            "gamma": 0.0,
            "kappa": 0.1,
            "rounds_kept": None,
            "events": "coordinates",
            "weights": "adaptive",
            "random_state": 0,
            "base": "ridge",
            "trees": 2,
            "cv": 2,
            "holdout": 0.2,
            "refit": False,
            "ends": None,
        },
    ),
    "OmnipredictorEstimator": (
        estimated,
        {
            "x": ROWS,
            "y": OUTCOMES[:, 0],
            "scale": (0.0, 1.0),
            "losses": None,
            "models": {"last": "last-value"},
            "random_state": 0,
        },
    ),
}


@pytest.mark.parametrize("name", MADE)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_junk_for_an_argument_is_refused_or_works(name: str, data: st.DataObject) -> None:
    function, sound = MADE[name]
    function(**sound)
    argument = data.draw(st.sampled_from(sorted(sound)))
    refuses_or_works(function, {**sound, argument: data.draw(MEANINGLESS)})


NUMBERS = [
    *(("Constant", "value"), ("Constant", "size"), ("ExponentialSmoothing", "rate")),
    *(("SeasonalNaive", "period"), ("SeasonalNaive", "rate"), ("LeastSquares", "lags")),
    *(("LeastSquares", "season"), ("LeastSquares", "forgetting"), ("LeastSquares", "ridge")),
    *(("Reference", "band"), ("Reference", "give_up"), ("Reference", "turns")),
    *(("UniversalDecisionSwap", "rounds"), ("UniversalDecisionSwap", "band")),
    *(("UnbiasedPrediction", "seed"), ("mimic_regret", "outside"), ("revenue_cap", "regret")),
    *(("correlated_distance", "tolerance"), ("theta_net", "theta"), ("Pinball", "level")),
    *(("OfflineOmnipredictor", "delta"), ("OfflineOmnipredictor", "theta")),
    *(("OfflineOmnipredictor", "gamma"), ("OfflineOmnipredictor", "kappa")),
    *(("OfflineOmnipredictor", "trees"), ("OfflineOmnipredictor", "holdout")),
    *(("OfflineOmnipredictor", "ends"), ("OmnipredictorEstimator", "random_state")),
]
# what is no nonsense there: a band, a seed, a tolerance or a radius may be as large as one likes
LARGE_IS_FINE = {"band", "give_up", "ridge", "regret", "tolerance", "seed", "random_state"}
LARGE_IS_FINE |= {"gamma", "delta", "theta", "turns"}


@pytest.mark.parametrize("nonsense", NO_NUMBER)
@pytest.mark.parametrize(("name", "argument"), NUMBERS)
def test_no_nonsense_for_a_number_passes_in_silence(
    name: str, argument: str, nonsense: str
) -> None:
    function, sound = MADE[name]
    if argument in LARGE_IS_FINE and nonsense in ("huge", "of hundreds of digits"):
        pytest.skip("a number as large as one likes has a meaning there")
    with pytest.raises(UserError, match=argument):
        function(**{**sound, argument: NO_NUMBER[nonsense]})


# verbs of what was made


FORECASTERS: dict[str, Callable[[], Any]] = {
    "constant": lambda: Constant(2),
    "last value": lambda: LastValue(2),
    "running mean": lambda: RunningMean(2),
    "smoothing": lambda: ExponentialSmoothing(2),
    "seasonal": lambda: SeasonalNaive(2),
    "least squares": lambda: LeastSquares(2),
    "aggregate": lambda: Aggregate({"last": LastValue(2), "seasonal": SeasonalNaive(2)}, 2),
    "decision swap": lambda: regretless.DecisionSwap([Linear(np.eye(2))]),
    "smooth": lambda: regretless.SmoothDecisionSwap([Linear(np.eye(2))], eta=2.0),
    "non-linear": lambda: regretless.NonLinearDecisionSwap([Linear(np.eye(2))], LinearBasis(2)),
}
NO_VECTOR: dict[str, Any] = NO_NUMBER | {
    "None": None,
    "one number": 0.5,
    "three numbers": [0.1, 0.2, 0.3],
    "nan within": [0.5, np.nan],
    "inf within": [np.inf, 0.5],
    "negative within": [0.5, -0.1],
    "above 1": [0.5, 1.5],
    "text within": ["0.5", "0.5"],
    "a table": [[0.5, 0.5]],
}
NO_CONTEXT: dict[str, Any] = {
    "text": "5",
    "an object": object(),
    "a function": len,
    "a ragged table": [[1], [2, 3]],
    "text by name": {"hour": "5"},
    "None by name": {"hour": None},
    "a list by name": {"hour": [1]},
    "complex": 1j,
    "of hundreds of digits": {"hour": 10**400},
}


@pytest.mark.parametrize("nonsense", NO_VECTOR)
@pytest.mark.parametrize("name", FORECASTERS)
def test_a_forecaster_learns_no_nonsense(name: str, nonsense: str) -> None:
    forecaster = FORECASTERS[name]()
    before = forecaster.predict(None).mixture.mean
    with pytest.raises(UserError, match=r"y = |y has shape"):
        forecaster.update(NO_VECTOR[nonsense])
    assert (forecaster.predict(None).mixture.mean == before).all()


@pytest.mark.parametrize("nonsense", NO_CONTEXT)
@pytest.mark.parametrize("name", ["constant", "seasonal", "least squares", "aggregate"])
def test_a_model_reads_no_nonsense(name: str, nonsense: str) -> None:
    with pytest.raises(UserError, match=r"x = |x\['hour'\] is "):
        FORECASTERS[name]().predict(NO_CONTEXT[nonsense])


@pytest.mark.parametrize("nonsense", NO_VECTOR)
def test_one_number_is_learned_alone_or_in_a_row_and_no_nonsense_is(nonsense: str) -> None:
    forecaster = UniversalDecisionSwap(100)
    for outcome in (1.0, [0.0], np.array(1.0), 1):
        forecaster.predict()
        forecaster.update(outcome)
    forecaster.predict()
    if nonsense == "one number":
        forecaster.update(NO_VECTOR[nonsense])
        return
    with pytest.raises(UserError, match=r"y = |y has shape"):
        forecaster.update(NO_VECTOR[nonsense])


def test_an_update_before_a_prediction_is_refused() -> None:
    with pytest.raises(UserError, match="update before a prediction; call mixture or predict"):
        regretless.DecisionSwap([LOSS]).update([0.5])


@pytest.mark.parametrize("loss", [None, 5, "x", Linear(np.eye(2)), [LOSS]])
def test_a_bound_is_of_a_linear_loss_of_one_outcome(loss: Any) -> None:
    with pytest.raises(UserError, match=r"loss = .*give a Linear loss of one outcome"):
        UniversalDecisionSwap(100).regret_bound(loss)


@functools.cache
def offline_model() -> OfflineOmnipredictor:
    return fitted()


QUESTIONS: dict[str, Mapping[str, Any]] = {
    "predict": {"X": ROWS},
    "predict_outcome": {"X": ROWS},
    "predict_quantiles": {"X": ROWS, "levels": [0.5]},
    "predict_frame": {"X": ROWS, "levels": [0.5]},
    "act": {"loss": LOSS, "X": ROWS},
    "act_proba": {"loss": LOSS, "X": ROWS},
    "expected_loss": {"loss": LOSS, "X": ROWS},
    "score": {"X": ROWS, "y": OUTCOMES, "sample_weight": None},
    "decision_swap_regret": {"loss": LOSS, "X": ROWS, "y": OUTCOMES},
    "omniprediction_regret": {"loss": LOSS, "X": ROWS, "y": OUTCOMES},
    "certificate": {"loss": LOSS, "measure": "decision_swap"},
    "bound": {"loss": LOSS, "measure": "decision_swap"},
    "save": {"path": "/nowhere/at/all"},
    "load": {"path": "/nowhere/at/all"},
}


@pytest.mark.parametrize("name", QUESTIONS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_junk_in_a_question_is_refused_or_answered(name: str, data: st.DataObject) -> None:
    question = getattr(offline_model(), name)
    sound = QUESTIONS[name]
    argument = data.draw(st.sampled_from(sorted(sound)))
    junk = data.draw(MEANINGLESS)
    if argument == "path" and isinstance(junk, str):
        return  # it may well be a file
    refuses_or_works(question, {**sound, argument: junk})


@pytest.mark.parametrize("loss", [None, "x", 5, Linear(np.eye(2)), LOSS.as_stack()])
@pytest.mark.parametrize("verb", ["act", "act_proba", "expected_loss"])
def test_what_is_no_loss_of_these_outcomes_has_no_action(verb: str, loss: Any) -> None:
    with pytest.raises(UserError, match="loss"):
        getattr(offline_model(), verb)(loss, ROWS)


@pytest.mark.parametrize("measure", [None, 5, "swap", ["decision_swap"]])
def test_what_is_no_measure_has_no_certificate(measure: Any) -> None:
    with pytest.raises(UserError, match=r"no measure .*choose one of: decision_swap, omnip"):
        offline_model().certificate(LOSS, measure)


@pytest.mark.parametrize("levels", [None, "x", 0.5, [0.0], [1.0], [np.nan], ["0.5"], [[0.5]]])
def test_what_is_no_level_has_no_quantile(levels: Any) -> None:
    with pytest.raises(UserError, match="levels = "):
        offline_model().predict_quantiles(ROWS, levels)


def test_a_table_of_outcomes_has_a_row_for_each_context() -> None:
    with pytest.raises(UserError, match=r"y has shape \(11, 1\), X has 12 rows"):
        offline_model().score(ROWS, OUTCOMES[:11])


@pytest.mark.parametrize("regret", [None, "x", 0, 1, -0.1, np.nan, [0.1]])
def test_what_is_no_regret_has_no_sample_size(regret: Any) -> None:
    with pytest.raises(UserError, match=r"regret = .*give a number between 0 and 1"):
        OfflineOmnipredictor([LOSS], base="none").sample_size(regret)


# the adapters of River and scikit-learn


@pytest.mark.parametrize("nonsense", NO_NUMBER)
@pytest.mark.parametrize("end", ["low", "high"])
def test_ends_of_a_regressor_are_two_numbers(end: str, nonsense: str) -> None:
    pytest.importorskip("river")
    if (end, nonsense) in {("low", "negative"), ("high", "huge")}:
        pytest.skip("it is an end")
    with pytest.raises(UserError, match="low, high"):
        regretless.OmnipredictorRegressor(**{"low": 0.0, "high": 10.0, end: NO_NUMBER[nonsense]})


@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_junk_for_a_regressor_is_refused_or_works(data: st.DataObject) -> None:
    pytest.importorskip("river")
    sound: dict[str, Any] = {"low": 0.0, "high": 9.0, "losses": None, "seed": 0}
    sound["models"] = {"last": "last-value"}
    argument = data.draw(st.sampled_from(sorted(sound)))
    refuses_or_works(regretless.OmnipredictorRegressor, {**sound, argument: data.draw(MEANINGLESS)})
    regressor = regretless.OmnipredictorRegressor(0.0, 9.0, models=sound["models"])
    refuses_or_works(regressor.predict_one, {"x": data.draw(MEANINGLESS)})
    refuses_or_works(regressor.learn_one, {"x": {"a": 1.0}, "y": data.draw(MEANINGLESS)})
    refuses_or_works(regressor.learn_one, {"x": data.draw(MEANINGLESS), "y": 1.0})


@settings(max_examples=40, deadline=None, derandomize=True)
@given(junk=MEANINGLESS)
def test_any_junk_for_an_estimators_rows_is_refused_or_works(junk: Any) -> None:
    estimator = estimated()
    refuses_or_works(estimator.predict, {"X": junk})
    refuses_or_works(estimator.partial_fit, {"X": ROWS, "y": junk})
    refuses_or_works(estimator.partial_fit, {"X": junk, "y": OUTCOMES[:, 0]})


# files with models and policies of the user's own


class Half:
    """A model of the user's own, which always says one half."""

    def predict(self, x: Any) -> Forecast:
        return LastValue(self.size).predict(x)

    def __init__(self, size: int = 2) -> None:
        self.size = size

    def update(self, y: Any) -> None:
        """Learn nothing."""

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Remember nothing."""


@pytest.fixture
def file_with_own_model(tmp_path: Path) -> Path:
    """Save a server with a model and a policy of the user's own."""
    shop = Newsvendor([0.0, 0.5, 1.0], underage=4.0, overage=1.0)
    models = {"own": Half(1), "last": "last-value"}
    policies = {"shop": {"none": lambda _: 0.0}}
    server = OnlineOmnipredictor({"shop": shop}, models=models, policies=policies)
    server.learn_one({"hour": 1}, 0.5)
    server.save(tmp_path / "kept")
    return tmp_path / "kept"


POLICIES = {"shop": {"none": lambda _: 0.0}}
LOADED: dict[str, tuple[Any, Any, str]] = {
    "no models": (5, POLICIES, "models = 5: give models by name"),
    "a name that is none": ({3: Half()}, POLICIES, "models = .*: give models by name"),
    "too few models": ({}, POLICIES, r"give models\['own'\], as it was made"),
    "no model": ({"own": 5}, POLICIES, r"models\['own'\] is of type int"),
    "a class": ({"own": Half}, POLICIES, r"models\['own'\] is of type type"),
    "one too many": ({"own": Half(), "b": Half()}, POLICIES, r"models\['b'\]: the file needs"),
    "one that is kept": ({"own": Half(), "last": Half()}, POLICIES, r"models\['last'\]: the file"),
    "no policies": ({"own": Half()}, 5, "policies = 5"),
    "no policy": ({"own": Half()}, {"shop": {"none": 5}}, r"policies\['shop'\]\['none'\] = 5"),
    "a policy too many": (
        {"own": Half()},
        {"shop": {"none": len, "b": len}},
        r"policies\['shop'\]\['b'\]: the file needs none",
    ),
    "a policy of another loss": (
        {"own": Half()},
        POLICIES | {"mall": {"b": len}},
        r"policies\['mall'\]\['b'\]: the file needs none",
    ),
}


@pytest.mark.parametrize("case", LOADED)
def test_what_a_file_does_not_need_is_refused(file_with_own_model: Path, case: str) -> None:
    models, policies, reason = LOADED[case]
    with pytest.raises(UserError, match=reason) as refusal:
        OnlineOmnipredictor.load(file_with_own_model, models=models, policies=policies)
    assert "\n" not in str(refusal.value)


def test_a_model_of_too_many_numbers_is_named() -> None:
    server = OnlineOmnipredictor({"a": LOSS}, models={"own": Half(2), "last": "last-value"})
    reason = r"models\['own'\]: the model predicted \[0.5 0.5\]; it must predict 1 finite number"
    with pytest.raises(UserError, match=reason):
        server.predict_one()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(junk=MEANINGLESS)
def test_any_junk_for_a_files_models_is_refused_or_works(
    tmp_path_factory: pytest.TempPathFactory, junk: Any
) -> None:
    folder = tmp_path_factory.getbasetemp() / "plain"
    if not folder.exists():
        OnlineOmnipredictor({"a": LOSS}, models={"last": "last-value"}).save(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refuses_or_works(OnlineOmnipredictor.load, {"path": folder, "models": junk})
        refuses_or_works(OnlineOmnipredictor.load, {"path": folder, "models": {"last": junk}})
        refuses_or_works(OnlineOmnipredictor.load, {"path": folder, "policies": junk})
