"""Models: bounded predictions, seasons, mixtures, those of other libraries, the user's."""

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import (
    ensemble,
    linear_model,
    model_selection,
    neighbors,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.tree import DecisionTreeRegressor
from small_scenarios import names_of_models_that_can_be_made

from regretless import RunningMean, UserError
from regretless.forecaster import Aggregate, Constant, LeastSquares, SeasonalNaive
from regretless.forecaster.bases import MonomialBasis, PowerBasis
from regretless.forecaster.models.aggregate import (
    PANEL,
    VARIATION_OFFSET,
    PolynomialWeights,
    make_panel,
)
from regretless.forecaster.models.external import SHORT, OnlineModel, SeriesModel, adapted
from regretless.forecaster.models.least_squares import Columns, LearnedRound, Regressors
from regretless.forecaster.models.outcomes import WINDOW, ColumnForecast
from regretless.forecaster.models.simple import MAX_SEASONS
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.arrays import Array
from regretless.market.records import Context, RoundFeedback

SIZE = 3
FITTED = 4
STREAMS = {  # nan is what is against the aggregate
    "uniform": lambda rng: rng.random((400, SIZE)),
    "shifting": lambda rng: np.repeat(rng.integers(0, 2, (8, SIZE)), 50, axis=0).astype(float),
    "jump": lambda _: np.r_[np.full((300, SIZE), 0.6), np.zeros((300, SIZE))],
    "adverse": lambda _: np.full((400, SIZE), np.nan),
}
ODD = st.sampled_from([1e308, -1e308, np.inf, -np.inf, np.nan, 5e-324, 0.1])
NUMBERS = st.integers(-3, 3).map(float) | ODD | st.floats(-5, 5)
NAMED = st.dictionaries(st.sampled_from(["hour", "3 hour", "load"]), NUMBERS)
PAIRS = st.tuples(NUMBERS, NUMBERS).map(lambda pair: Context(("hour", "load"), np.array(pair)))
CONTEXTS = st.none() | NUMBERS | st.lists(NUMBERS, max_size=3) | NAMED | PAIRS


def predictions_over(player: Any, contexts: list[Any], seed: int = 0, start: int = 0) -> Array:
    """Show a model contexts and random outcomes; return what it predicts, a row a round."""
    predictions = []
    for t, x in enumerate(contexts, start):
        predictions.append(player.predict(x).statistics)
        a, b = np.random.default_rng([seed, t]).random(2)
        player.observe(RoundFeedback(np.array([a, b, a**2]), np.array([a, b])))
    return np.array(predictions)


@pytest.mark.parametrize("name", names_of_models_that_can_be_made())
@settings(max_examples=25, deadline=None)
@given(contexts=st.lists(CONTEXTS, min_size=1, max_size=12), seed=st.integers(0, 100))
def test_predictions_stay_in_the_unit_cube(name: str, contexts: list[Any], seed: int) -> None:
    predictions = predictions_over(register.forecaster[name](SIZE), contexts * 2, seed)
    assert ((predictions >= 0) & (predictions <= 1)).all()


@pytest.mark.parametrize("name", names_of_models_that_can_be_made())
def test_witnesses_resume_and_are_copied(name: str, tmp_path: Path) -> None:
    contexts = [{"hour": t % 4, "load": np.sin(t), "day": t} for t in range(80)]
    uninterrupted, first, second = (register.forecaster[name](SIZE) for _ in range(3))
    predictions = predictions_over(uninterrupted, contexts)
    predictions_over(first, contexts[:60])
    checkpoint.save(tmp_path / "kept", first.state())
    second.restore(checkpoint.load(tmp_path / "kept"))
    copied = copy.deepcopy(first)
    predictions_over(first, contexts[60:], seed=1, start=60)
    for player in (second, copied):
        assert (predictions_over(player, contexts[60:], start=60) == predictions[60:]).all()


def test_a_season_is_a_period_or_a_combination_of_integers() -> None:
    truths = np.random.default_rng(0).random((40, SIZE))
    for player in (SeasonalNaive(SIZE, period=7), SeasonalNaive(SIZE)):
        for t, truth in enumerate(truths):
            expected = truths[t - 7] if t >= 7 else truths[t - 1] if t else np.full(SIZE, 0.5)
            assert (player.predict({"hour": t % 7, "load": 0.1 + t}).statistics == expected).all()
            player.update(truth)


def test_seasons_are_bounded_and_the_oldest_makes_way() -> None:
    player = SeasonalNaive(1)
    for t in range(MAX_SEASONS + 10):
        player.predict({"day": t})
        player.update([t / 2000])
    assert len(player._seasons) == MAX_SEASONS
    assert player.predict({"day": 10}).statistics == [10 / 2000]
    assert player.predict({"day": 9}).statistics == [(MAX_SEASONS + 9) / 2000]


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("seed", range(3))
def test_an_aggregate_keeps_its_bound_against_every_model(stream: str, seed: int) -> None:
    fixed = {f"at {v}": Constant(SIZE, value=v) for v in (0.0, 0.3, 0.6, 1.0)}
    player = Aggregate(make_panel(PANEL, SIZE) if stream == "adverse" else fixed, SIZE)
    logged = []
    for t, row in enumerate(STREAMS[stream](np.random.default_rng(seed))):
        prediction = player.predict(t).statistics
        logged.append((prediction, player.points, np.where(np.isnan(row), prediction < 0.5, row)))
        player.update(logged[-1][-1])
    predictions, models, truths = map(np.array, zip(*logged, strict=True))
    assert ((predictions >= models.min(1) - 1e-12) & (predictions <= models.max(1) + 1e-12)).all()
    gain = (predictions - truths)[:, None] * (predictions[:, None] - models)
    regret = gain.sum(0)
    variation = (gain**2).sum(0)
    largest = np.abs(gain).max()
    growth = (largest**2 / VARIATION_OFFSET + np.log1p(variation / VARIATION_OFFSET)).sum(0)
    assert (regret <= np.sqrt((VARIATION_OFFSET + variation) * growth)).all()
    error = ((predictions - truths) ** 2).sum(0)
    assert (error - ((models - truths[:, None]) ** 2).sum(0) <= 2 * regret + 1e-9).all()


class RecordedRegressors(Regressors):
    """Show the features that were used last."""

    def solutions(self, x: object, ahead: int) -> Any:
        solutions = super().solutions(x, ahead)
        encoded = self.columns.encoded(self._open_features)
        self.used = np.concatenate([[1.0], self.lagged_outcomes.ravel(), encoded])
        return solutions

    def learn(self, observed: Any, *, round_index: int, newer: int) -> LearnedRound:
        learned = super().learn(observed, round_index=round_index, newer=newer)
        self.used = learned.row
        return learned


class Recorded(LeastSquares):
    """Shows the features that it used last."""

    def __init__(self, size: int, **parameters: Any) -> None:
        super().__init__(size, **parameters)
        self.recorded = RecordedRegressors(lags=self.lags, seasons=self.seasons)
        self.recorded.system_of(self.forgetting, self.ridge)
        self.regressors = self.recorded

    @property
    def used(self) -> Any:
        return self.recorded.used


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
@pytest.mark.parametrize("past", [2, FITTED], ids=["outcomes", "vectors"])
def test_least_squares_predict_as_ridge_regression_on_all_rounds_does(
    forgetting: float, past: int
) -> None:
    """Of discounted ridge regression, solved anew in every round; new features are last."""
    rng = np.random.default_rng(0)
    rows = list[Any]()
    player = Recorded(FITTED, lags=2, season=5, forgetting=forgetting, ridge=0.7)
    outcomes = rng.random((80, 2))
    truths = np.column_stack([outcomes, outcomes**2])
    for t in range(80):
        point = player.predict({"hour": int(rng.integers(0, 6)), "load": rng.normal()}).statistics
        if t:
            wide = len(rows[-1])
            design = np.array([np.pad(row, (0, wide - len(row))) for row in rows])
            weighted = design.T * forgetting ** np.arange(t)[::-1]
            gram = weighted @ design + 0.7 * np.eye(wide)
            batch_prediction = 0.5 + player.used @ np.linalg.solve(
                gram, weighted @ (truths[:t] - 0.5)
            )
            assert point == pytest.approx(np.clip(batch_prediction, 0, 1), abs=1e-9)
        player.observe(RoundFeedback(truths[t], outcomes[t] if past == 2 else None))
        rows.append(player.used)


@pytest.mark.parametrize("past", [2, FITTED], ids=["outcomes", "vectors"])
def test_features_are_a_one_then_lags_then_numbers_then_a_column_for_each_whole_number(
    past: int,
) -> None:
    rng = np.random.default_rng(0)
    player = Recorded(FITTED, lags=2, season=5)
    outcomes = rng.random((80, 2))
    truths = np.column_stack([outcomes, outcomes**2])
    for t in range(80):
        player.predict({"hour": int(rng.integers(0, 6)), "load": rng.normal()})
        player.observe(RoundFeedback(truths[t], outcomes[t] if past == 2 else None))
    lagged = (outcomes if past == 2 else truths)[[74, 78, 77]].ravel() - 0.5
    assert player.used[: 1 + 3 * past] == pytest.approx([1.0, *lagged])
    n_hours = 6
    assert len(player.used) == 1 + 3 * past + 2 + n_hours


def test_least_squares_learn_no_outcome_of_an_earlier_round() -> None:
    """A round that tells statistics alone is learned by these, not by what came before it."""
    with_outcomes = LeastSquares(2)
    by_statistics = LeastSquares(2)
    for t, truth in enumerate(np.random.default_rng(0).random((12, 2))):
        for player in (with_outcomes, by_statistics):
            player.predict({"hour": t % 3})
        with_outcomes.observe(RoundFeedback(truth, truth if t % 2 else None))
        by_statistics.observe(RoundFeedback(truth, None))
    prediction = with_outcomes.predict({"hour": 0}).statistics
    assert prediction == pytest.approx(by_statistics.predict({"hour": 0}).statistics)


def test_nothing_winds_up_under_forgetting() -> None:
    """A context stays until no double has the past's weight, then moves: the forecast is sane."""
    rng = np.random.default_rng(2)
    player = LeastSquares(2, forgetting=0.85)
    same = {"hour": 3, "load": 1.5}
    for t in range(5000):
        player.predict(same)
        y = np.clip(0.6 + 0.01 * rng.normal(size=2), 0, 1)
        player.observe(RoundFeedback(y, y))
        assert t <= 100 or np.abs(player.gram).max() <= 1 + 1 / 0.15
    assert player.predict(same).statistics == pytest.approx(np.full(2, 0.6), abs=0.05)
    moved = player.predict({"hour": 4, "load": 1e9}).statistics
    assert np.abs(moved - 0.6).max() < 0.3


MOMENTS = MonomialBasis(2, 2)  # y_1, y_2, their squares and their product
NORMAL = {0.1: -1.2816, 0.3: -0.5244, 0.5: 0.0, 0.7: 0.5244, 0.9: 1.2816}
# The mean of 64 draws errs by 0.1 / 8 in a coordinate, and by less in products of two below 1.
NOISE = 0.1 / np.sqrt(WINDOW)
QUANTILES = [[f"{name}{level}" for level in NORMAL] for name in "ab"]
SAMPLES = [[f"{name}{i}" for i in range(20)] for name in "ab"]
GIVEN: dict[str, tuple[Any, Any, float | None]] = {  # columns, what differs, and most error in root
    "a point": (["a", "b"], (0.0, 0.0), 1.2),
    "a biased point": (["a", "b"], (-0.2, 0.1), None),
    "quantiles too near": (QUANTILES, 0.005, 1.2),
    "quantiles": (QUANTILES, 0.1, 1.2),
    "quantiles too wide": (QUANTILES, 0.3, 1.2),
    "samples too near": (SAMPLES, 0.3, None),
}


def drawn(rng: np.random.Generator, centre: Any, rounds: int = 1) -> Any:
    """Draw outcomes about a centre, correlated, with deviation 0.1."""
    first, other = rng.normal(size=(2, rounds))
    return np.column_stack([first, 0.8 * first + 0.6 * other]) * 0.1 + centre


@functools.cache
def expected(*centre: float) -> Any:
    """E s(y) by Monte Carlo; every model is played the same centres."""
    outcomes = drawn(np.random.default_rng(9), np.array(centre), 200_000)
    return MOMENTS.transform(np.clip(outcomes, 0, 1)).mean(0)


def normal_quantiles(centre: Any, width: float) -> Any:
    """Return the quantiles of a normal distribution about a centre, at the levels of NORMAL."""
    return np.add.outer(centre, width * np.array([*NORMAL.values()]))


def columns_of(names: Any, values: Any) -> dict[str, float]:
    """Return a context with these names and values."""
    return dict(zip(np.ravel(names), np.ravel(values), strict=True))


@pytest.mark.parametrize("name", GIVEN)
def test_a_forecast_becomes_the_mean_over_its_residuals(name: str) -> None:
    """Where it is biased, too: the point itself would miss the variance, 0.01, in squares."""
    columns, differs, root = GIVEN[name]
    levels = list(NORMAL) if columns is QUANTILES else None
    player = ColumnForecast(MOMENTS, columns=columns, levels=levels)
    rng = np.random.default_rng(1)
    sample_rng = np.random.default_rng(5)
    errors = []
    for t in range(2000):
        centre = np.array([0.5 + 0.2 * np.sin(t), 0.5 + 0.2 * np.cos(t)])
        if columns is SAMPLES:  # twenty equally likely outcomes
            values = (centre + drawn(sample_rng, 0.0, 20) * differs).T
        else:
            values = normal_quantiles(centre, differs) if levels else centre + differs
        statistics = player.predict(columns_of(columns, values)).statistics
        if t >= 100 and t % 50 == 0:
            errors.append(statistics - expected(*centre))
        outcome = np.clip(drawn(rng, centre)[0], 0, 1)
        player.observe(RoundFeedback(MOMENTS.transform(outcome), outcome))
    assert np.abs(np.mean(errors, axis=0)).max() < NOISE
    assert root is None or np.sqrt(np.square(errors).mean()) < root * NOISE
    assert name != "a point" or np.abs(errors).max() < 3.5 * NOISE


def test_a_forecast_in_columns_is_taken_at_its_word_before_any_residual() -> None:
    centre = np.array([0.4, 0.6])
    points = np.array([[0.1, 0.9], [0.7, 0.2]])
    independent = np.clip(centre + 0.1 * np.random.default_rng(0).normal(size=(50_000, 2)), 0, 1)
    for columns, values, implied_outcomes, tolerance in (
        (["a", "b"], centre, centre, 1e-9),
        (QUANTILES, normal_quantiles(centre, 0.1), independent, 0.005),
        ([["a", "c"], ["b", "d"]], points.T, points, 1e-9),
    ):
        levels = list(NORMAL) if columns is QUANTILES else None
        player = ColumnForecast(MOMENTS, columns=columns, levels=levels)
        statistics = player.predict(columns_of(columns, values)).statistics
        expected_statistics = MOMENTS.transform(np.atleast_2d(implied_outcomes)).mean(0)
        assert statistics == pytest.approx(expected_statistics, abs=tolerance)


def test_columns_and_levels_must_fit() -> None:
    misfits: list[tuple[Any, Any, str]] = [
        (["a"], None, r"columns is \[\['a'\]\]; give 2 outcomes"),
        ([], None, r"columns is \[\]; give 2 outcomes"),
        ([["a"], ["b", "c"]], None, "each as many, one per level"),
        ([["a", "b"], ["c", "d"]], [0.9, 0.1], "ascending"),
        (["a", "b"], [0.5], "at least two"),
        (["hi", "lo"], None, "no feature 'lo' in the context; did you mean 'low'"),
        (["hi", "no"], None, "feature 'no' is nan"),
    ]
    context = {"hi": 0.1, "low": 0.2, "no": np.nan}
    for columns, levels, message in misfits:
        with pytest.raises(ValueError, match=message):
            ColumnForecast(MOMENTS, columns=columns, levels=levels).predict(context)


class RunningPerFeature:
    """The habits of River: one number, one example at a time."""

    def __init__(self) -> None:
        self.seen: dict[float, list[float]] = {}

    def learn_one(self, x: dict[str, float], y: float) -> None:
        self.seen.setdefault(x["day"], []).append(y)

    def predict_one(self, x: dict[str, float]) -> float:
        return float(np.mean(self.seen.get(x["day"], [0.5])))


@pytest.mark.parametrize("model", [DecisionTreeRegressor(), RunningPerFeature()])
def test_models_of_other_libraries_learn_from_context(model: Any) -> None:
    base = adapted(model, SIZE)
    before = copy.deepcopy(vars(model))
    truths = {0.0: np.array([0.1, 0.2, 0.3]), 1.0: np.array([0.9, 0.8, 0.7])}
    assert (base.predict({"day": 0.0}).statistics == 0.5).all()
    for day in np.random.default_rng(0).integers(2, size=20).astype(float):
        base.predict({"day": day})
        base.update(truths[day])
    for day, truth in truths.items():
        assert base.predict({"day": day}).statistics == pytest.approx(truth)
    assert vars(model) == before, "the user's own object is left as it was"


def test_a_model_of_a_table_tells_features_by_name() -> None:
    """Features come in any order, go and come back: each has a column of its own."""
    base = adapted(DecisionTreeRegressor(random_state=0), 1)
    for day, odd in enumerate(np.random.default_rng(0).integers(2, size=40).astype(float)):
        x = {"odd": odd, "other": 5.0} if day % 3 else {"other": 5.0, "odd": odd}
        if day == 20:
            x = {"odd": odd}
        if day > 30:
            x["new"] = 7.0
        base.predict(x)
        base.update([odd])
    assert base.predict({"new": 7.0, "odd": 1.0}).statistics == pytest.approx([1.0])
    assert base.predict({"odd": 0.0}).statistics == pytest.approx([0.0])


def test_what_a_model_must_offer() -> None:
    model = RunningMean(2)
    assert adapted(model, 2) is model
    assert isinstance(adapted(RunningPerFeature(), 2), OnlineModel)
    with pytest.raises(ValueError, match="object cannot be a base model"):
        adapted(object(), 2)
    with pytest.raises(ValueError, match="needs a model"):
        Aggregate({}, 2)


class CountedFits:
    """Counts its fits; a series is predicted to go on with its last step, or to stay."""

    fits = 0

    def fit(self, y: Any, X: Any = None, fh: Any = None) -> Any:  # noqa: N803 - sktime's name
        assert X is fh is None
        if len(y) < 3:
            raise ValueError("too short")
        self.fits += 1
        self.end = y[-1]
        self.step = y[-1] - y[-2]
        return self


class Sktime(CountedFits):
    """The habits of sktime."""

    def predict(self, fh: Any = None, X: Any = None) -> Array:  # noqa: N803
        assert X is None
        return np.asarray(self.end + self.step * np.asarray(fh))[:, None]

    def update(self, y: Any) -> None:
        raise AssertionError(y)  # it is no vector that was predicted


class Statsforecast(CountedFits):
    """The habits of statsforecast."""

    def predict(self, h: int, X: Any = None) -> dict[str, Array]:  # noqa: N803
        assert X is None
        return {"mean": self.end + self.step * np.arange(1, h + 1)}

    def forecast(self, y: Array, h: int) -> dict[str, Array]:
        return self.fit(y).predict(h)  # type: ignore[no-any-return]


class Forward(Statsforecast):
    """The same, which can follow what comes: it repeats the last number."""

    def predict(self, h: int, X: Any = None) -> dict[str, Array]:  # noqa: N803
        return {"mean": np.full(h, self.end)}

    def forward(self, y: Array, h: int) -> dict[str, Array]:
        return {"mean": np.full(h, y[-1])}


class AtOnce:
    """The habits of statsforecast without a fit that lasts, or a second step."""

    def forecast(self, y: Array, h: int) -> dict[str, Array]:
        return {"mean": np.array([y[-1], *np.full(h - 1, np.nan)])}


def follow_series(model: Any, truths: Array) -> tuple[SeriesModel, Array]:
    """Let a model of series predict each truth before it sees it; return it and the predictions."""
    base: Any = adapted(model, 2, PowerBasis([1.0, 2.0], 1))
    predictions = []
    for t, truth in enumerate(truths):
        predictions.append(base.predict({"day": t}).statistics)
        base.observe(RoundFeedback(np.array([truth, truth**2]), np.array([truth])))
    return base, np.array(predictions)


@pytest.mark.parametrize("model", [Sktime(), Statsforecast()])
def test_series_models_answer_until_the_next_fit(model: Any) -> None:
    truths = np.linspace(0.1, 0.8, 300)
    base, predictions = follow_series(model, truths)
    assert isinstance(base, SeriesModel)
    assert predictions[20:] == pytest.approx(np.column_stack([truths, truths**2])[20:], abs=0.01)
    assert 15 < base._models[0].fits < 30
    assert model.fits == 0, "the user's own object is left as it was"
    assert base.resumable
    copied = copy.deepcopy(base)
    assert (copied.predict().statistics == base.predict().statistics).all()


@pytest.mark.parametrize("model", [Forward(), AtOnce()])
def test_series_models_follow_what_comes(model: Any) -> None:
    """Each repeats the last number, whether asked or where it knows none."""
    base, predictions = follow_series(model, np.tile([0.2, 0.8], 60))
    residuals = np.tile([-0.6, 0.6], 32)
    for t in (100, 101):
        last = 0.8 if t % 2 == 0 else 0.2
        mean = np.clip(last + residuals, 0, 1).mean()
        assert predictions[t, 0] == pytest.approx(mean)
    assert base.predict().statistics[0] == pytest.approx((0.8 - 0.6 + 1.0) / 2)


def test_a_series_that_stays_too_short_is_the_users_to_mend() -> None:
    class Long(Sktime):
        def fit(self, y: Any, X: Any = None, fh: Any = None) -> Any:  # noqa: N803
            raise ValueError("give 400")

    _, predictions = follow_series(Long(), np.full(SHORT - 1, 0.3))
    assert predictions[-1] == pytest.approx([0.3, 0.09])
    with pytest.raises(UserError, match=r"Long on 101 rounds: give 400"):
        follow_series(Long(), np.full(2 * SHORT, 0.3))
    with pytest.raises(ValueError, match="give the basis as well"):
        adapted(Long(), 2)


def test_shares_are_positive_regrets_over_variations_or_alike() -> None:
    weights = PolynomialWeights(models=3, coordinates=2)
    weights.add(np.array([[0.3, -0.1], [0.1, -0.2], [-0.4, -0.3]]))
    positive_regrets = np.array([0.3, 0.1, 0.0])
    of_variations = positive_regrets / (VARIATION_OFFSET + np.array([0.09, 0.01, 0.16]))
    assert weights.shares[:, 0] == pytest.approx(of_variations / of_variations.sum(), abs=1e-15)
    assert weights.shares[:, 1].tolist() == [1 / 3] * 3


@pytest.mark.filterwarnings("ignore")  # of tables with few rows
@pytest.mark.parametrize(
    "regressor",
    [
        linear_model.BayesianRidge(),
        linear_model.LassoCV(),
        linear_model.RANSACRegressor(random_state=0),
        ensemble.HistGradientBoostingRegressor(max_iter=30, min_samples_leaf=3),
        neighbors.KNeighborsRegressor(5),
        svm.SVR(),
        pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.BayesianRidge()),
        model_selection.GridSearchCV(linear_model.Ridge(), {"alpha": [0.1, 1.0]}),
    ],
)
def test_regressors_of_every_kind_predict_several_numbers(
    regressor: object,
) -> None:
    """One that predicts a single number is copied; with too few rows the last value stands."""
    model = adapted(regressor, 2)
    rng = np.random.default_rng(0)
    for round_index in range(60):
        level = round_index % 3 / 4
        prediction = model.predict({"phase": round_index % 3})
        assert prediction.statistics.shape == (2,)
        model.update([level, 0.9 - level + rng.uniform(0.0, 0.01)])
    prediction = model.predict({"phase": 2}).statistics
    assert prediction == pytest.approx([0.5, 0.4], abs=0.2)


def test_a_regressor_that_cannot_be_fitted_to_many_rows_is_refused() -> None:
    model = adapted(neighbors.KNeighborsRegressor(metric="no metric"), 1)

    def learn_many_rows() -> None:
        for _ in range(150):
            model.predict({"phase": 1.0})
            model.update([0.5])

    with pytest.raises(UserError, match="KNeighborsRegressor cannot be fitted to"):
        learn_many_rows()


def test_an_aggregate_learns_an_outcome_once() -> None:
    """A round of which only s(y) is known teaches a distribution of outcomes nothing."""
    square = PowerBasis([2.0], 1)
    panel = {"running-mean": {"kind": "past-outcomes"}}
    model = Aggregate(make_panel(panel, square.size, square), square.size)
    for outcome in (0.2, 0.9):
        model.point()
        statistics = square.transform(np.array([outcome]))
        model.observe(RoundFeedback(statistics, np.array([outcome])))
    prediction = model.point()
    model.update(square.transform(np.array([0.5])))
    np.testing.assert_array_equal(model.point(), prediction)


def test_a_feature_is_read_in_standard_deviations_from_its_mean() -> None:
    columns = Columns(max_size=3)
    for temperature in (10.5, 14.5):
        columns.learn({"temperature": temperature})
    assert columns.encoded({"temperature": 14.5})[0] == 1.0
    assert columns.encoded({"temperature": 11.5})[0] == -0.5
