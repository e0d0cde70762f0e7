"""Models that carry their own past errors: one distribution, of which every statistic is a mean."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless import OnlineOmnipredictor, UserError
from regretless.agents.utilities import Newsvendor
from regretless.forecaster import LastValue, RunningMean, WithErrors
from regretless.forecaster.bases import MonomialBasis, PowerBasis
from regretless.forecaster.models.aggregate import PANEL, PANEL_WITH_ERRORS, Aggregate
from regretless.forecaster.models.outcomes import MARKS_TO_TAKE_OVER
from regretless.forecaster.models.with_errors import _write_distribution, model_of_outcome
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses.basis import Basis
from regretless.market.records import RoundFeedback

PAIR = MonomialBasis(2, 2)  # y_1, y_2, their squares and their product
REGRESSION = {"kind": "least-squares", "lags": 12, "ridge": 0.01, "forgetting": 0.99}


def teach(model: WithErrors, basis: Basis, outcomes: Array) -> None:
    """Let a model forecast and learn outcomes (T, d)."""
    for outcome in outcomes:
        model.predict()
        model.observe(RoundFeedback(basis.transform(outcome), outcome))


def test_it_predicts_the_mean_over_its_last_errors_by_brute_force() -> None:
    outcomes = np.random.default_rng(0).random((30, 1))
    basis = PowerBasis([0.5], 1)
    window = 10
    model = WithErrors(LastValue(1), basis, window=window)
    last_value = 0.5
    errors: list[float] = []
    for outcome in outcomes:
        share = min(len(errors) / MARKS_TO_TAKE_OVER, 1.0)
        expected = (1 - share) * np.sqrt(last_value)
        if errors:
            carried = np.clip(last_value + np.array(errors[-window:]), 0.0, 1.0)
            expected += share * np.sqrt(carried).mean()
        assert model.predict().statistics == pytest.approx([expected])
        model.observe(RoundFeedback(basis.transform(outcome), outcome))
        errors.append(float(outcome[0]) - last_value)
        last_value = float(outcome[0])


def test_its_distribution_has_the_statistics_that_it_predicts() -> None:
    model = WithErrors(RunningMean(2), PAIR)
    teach(model, PAIR, np.random.default_rng(1).random((20, 2)))
    distribution = model.distribution()
    assert distribution.weights.sum() == pytest.approx(1.0)
    assert ((distribution.outcomes >= 0) & (distribution.outcomes <= 1)).all()
    mean = distribution.weights @ PAIR.transform(distribution.outcomes)
    assert model.predict().statistics == pytest.approx(mean)


def test_errors_of_a_round_stay_together() -> None:
    """Two outcomes that add up to one have the product of such outcomes, not of their means."""
    first = np.random.default_rng(2).choice([0.2, 0.8], 64)
    model = WithErrors(RunningMean(2), PAIR)
    teach(model, PAIR, np.column_stack([first, 1 - first]))
    outcomes = model.distribution().outcomes
    assert outcomes.sum(1) == pytest.approx(np.ones(64))
    product = float(model.predict().statistics @ (PAIR.transform([0.5, 0.4]) == 0.2))
    assert product < 0.2


def test_only_the_last_errors_are_carried() -> None:
    model = WithErrors(LastValue(1), PowerBasis([2.0], 1), window=5)
    teach(model, model.basis, np.repeat([[0.1], [0.9], [0.4]], [4, 1, 6], axis=0))
    assert model.distribution().outcomes == pytest.approx(np.full((5, 1), 0.4))


def test_without_a_basis_the_numbers_are_the_outcome() -> None:
    model = model_of_outcome({"kind": "with-errors", "model": "last-value"}, 2)
    for _ in range(3):
        model.predict()
        model.update([0.2, 0.6])
    assert isinstance(model, WithErrors)
    # the errors of three rounds, (-0.3, 0.1) and twice none, with 1/8 each; the point has the rest
    assert model.predict().statistics == pytest.approx([0.2 - 0.2 / 8, 0.6 + 0.1 / 8])


def test_an_error_is_that_of_the_round_in_which_it_was_forecast() -> None:
    """Learned late, every forecast of a trend is as many steps behind as it was made ahead."""
    orders = np.linspace(0.0, 100.0, 5)
    losses = {"shop": Newsvendor(orders, underage=1.0, overage=1.0)}
    models = {"carried": {"kind": "with-errors", "model": "last-value", "window": 8}}
    server = OnlineOmnipredictor(losses, scale=(0.0, 100.0), models=models, steps_ahead=3)
    for day in range(40):
        server.predict_one()
        server.learn_one(None, float(day))
    assert server.predict_one().mean == pytest.approx(42.0, abs=0.5)


@pytest.mark.parametrize("inner", ["last-value", REGRESSION], ids=["last value", "regression"])
def test_a_server_takes_it_as_a_table_and_saves_it(inner: Any, tmp_path: Path) -> None:
    table = {"kind": "with-errors", "model": inner, "window": 32}
    losses = {"shop": Newsvendor([0.0, 0.5, 1.0], underage=1.0, overage=1.0)}
    server = OnlineOmnipredictor(losses, models={"carried": table, "mean": "running-mean"})
    for outcome in np.random.default_rng(3).random(30):
        server.learn_one(None, float(outcome))
    server.save(tmp_path / "kept")
    restored = OnlineOmnipredictor.load(tmp_path / "kept")
    assert restored.predict_one().quantile(0.5) == server.predict_one().quantile(0.5)


def test_a_scenario_takes_it_by_name_and_as_a_table() -> None:
    models = ["with-errors", {"kind": "with-errors", "model": REGRESSION, "name": "regression"}]
    scenario = make_scenario(cohort_table("growers", 3), rounds=20, forecaster={"models": models})
    model = play_to_end(scenario)
    frame = model.models_frame()
    assert set(frame["model"]) == {"with-errors", "regression"}
    assert frame["mean_loss"].between(0.0, 1.0).all()


def test_a_scenario_takes_the_panel_with_two_that_carry_their_errors() -> None:
    forecaster = {"models": ["panel-with-errors"]}
    scenario = make_scenario(cohort_table("growers", 3), rounds=15, forecaster=forecaster)
    model = play_to_end(scenario)
    models = model.models_frame()["model"].unique().tolist()
    assert models == [*PANEL, "last-value-with-errors", "regression-with-errors"]


@pytest.mark.parametrize("n_outcomes", [1, 2])
def test_data_with_one_outcome_are_forecast_with_models_that_carry_errors(
    n_outcomes: int, tmp_path: Path
) -> None:
    names = ["demand", "price"][:n_outcomes]
    table = pd.DataFrame(np.random.default_rng(4).random((20, n_outcomes)), columns=names)
    table.to_csv(tmp_path / "sales.csv", index=False)
    scale = {name: [0.0, 1.0] for name in names}
    data = {"file": str(tmp_path / "sales.csv"), "outcomes": names, "scale": scale}
    scenario = make_scenario(cohort_table("growers", 3), rounds=15, data=data, adversary=None)
    models = play_to_end(scenario).models_frame()["model"].unique().tolist()
    assert models == list(PANEL_WITH_ERRORS if n_outcomes == 1 else PANEL)


def test_an_aggregate_asks_distributions_together_and_gets_what_each_predicts_alone() -> None:
    basis = PowerBasis([0.5, 2.0], 1)
    carried = {"last": WithErrors(LastValue(1), basis), "mean": WithErrors(RunningMean(1), basis)}
    aggregate = Aggregate({**carried, "plain": LastValue(basis.size)}, basis.size)
    for outcome in np.random.default_rng(5).random((30, 1)):
        aggregate.point()
        for point, model in zip(aggregate.points, aggregate.members.values(), strict=True):
            np.testing.assert_allclose(point, model.point(), rtol=0, atol=1e-15)
        aggregate.observe(RoundFeedback(basis.transform(outcome), outcome))


def test_mistakes_are_named_in_one_line() -> None:
    basis = PowerBasis([0.5], 1)
    mistakes: list[tuple[Any, str]] = [
        (lambda: WithErrors(LastValue(2), basis), "model predicts 2 numbers, an outcome has 1"),
        (lambda: WithErrors(object(), basis), "give a model, such as LastValue"),  # type: ignore[arg-type]
        (lambda: WithErrors(LastValue(1), basis, window=0), "window is 0; give a whole number"),
        (lambda: model_of_outcome("last", 1), "unknown kind 'last'"),
        (lambda: model_of_outcome({"kind": "least-squares", "lag": 3}, 1), "did you mean 'lags'"),
        (lambda: model_of_outcome({"kind": "least-squares", "ridge": -1.0}, 1), "must be positive"),
    ]
    for make, line in mistakes:
        with pytest.raises(UserError, match=line) as error:
            make()
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(("n_errors", "n_of_season"), [(0, 0), (1, 0), (3, 2)])
def test_outcomes_are_the_forecast_plus_each_error_and_the_forecast_itself(
    n_errors: int, n_of_season: int
) -> None:
    rng = stream(3, "errors")
    forecast = np.array([0.2, 0.9])
    errors = rng.normal(0.0, 0.4, (n_errors, 2))
    errors_of_season = rng.normal(0.0, 0.4, (n_of_season, 2))
    outcomes = np.empty((n_errors + n_of_season + 1, 2))
    weights = np.empty(len(outcomes))

    _write_distribution(forecast, errors, errors_of_season, (0.1, 0.3, 0.6), outcomes, weights)

    moves = np.concatenate([errors, errors_of_season, [[0.0, 0.0]]])
    assert outcomes == pytest.approx(np.clip(forecast + moves, 0.0, 1.0), abs=1e-15)
    assert weights.tolist() == [0.1] * n_errors + [0.3] * n_of_season + [0.6]
