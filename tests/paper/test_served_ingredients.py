"""Ingredients of the served forecast and of the autoregression: what a change does."""

import numpy as np
import pandas as pd
import pytest

from paper import served_ingredients
from paper.further_series import FURTHER_SERIES
from paper.public_series import PublicSeries
from paper.rivals import Task, autoregression
from paper.served_ingredients import CHANGES, NOTHING, FullWeights, NoRecalibration
from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.models.aggregate import PANEL_OF_DISTRIBUTIONS
from regretless.market.core.randomness import stream

FIRST = 60


@pytest.fixture
def weekly_series() -> PublicSeries:
    """Return 300 days with a season of seven, noise, and what a month of 30 days repeats."""
    days = np.arange(300)
    rng = stream(0, "tests", "served-ingredients")
    monthly_pattern = np.tile(rng.normal(size=30), 10)
    season = 3 * np.sin(2 * np.pi * days / 7)
    contexts = [{"weekday": float(day % 7)} for day in days]
    return PublicSeries(10 + season + monthly_pattern + rng.normal(size=300), contexts, (30,))


def quantiles_of_even_draws(server: OnlineOmnipredictor) -> list[float]:
    """Teach a server draws from an even distribution; return two quantiles that it forecasts."""
    for outcome in stream(1, "tests", "served-ingredients").uniform(size=40):
        server.predict_one()
        server.learn_one(None, outcome)
    forecast = server.predict_one()
    return [forecast.quantile(level) for level in (0.1, 0.9)]


def test_without_a_change_the_defaults_are_served() -> None:
    losses = {"store": Newsvendor(orders=np.linspace(0, 1, 5), underage=1.0, overage=1.0)}
    default_quantiles = quantiles_of_even_draws(OnlineOmnipredictor(losses, seed=3))
    unchanged_server = CHANGES[NOTHING].make_server(losses, seed=3)
    assert quantiles_of_even_draws(unchanged_server) == default_quantiles
    server_without_recalibration = CHANGES["no recalibration"].make_server(losses, seed=3)
    assert quantiles_of_even_draws(server_without_recalibration) != default_quantiles


def test_a_parameter_of_all_models_is_given_to_those_that_carry_their_errors() -> None:
    models = served_ingredients.models_with(window=256)
    names_of_changed_models = {
        name for name, table in models.items() if table != PANEL_OF_DISTRIBUTIONS[name]
    }
    assert len(models) == 10
    assert names_of_changed_models == {
        "least-squares",
        "least-squares-0.99",
        "last-value-with-errors",
        "regression-with-errors",
        "seasonal-regression",
    }


def test_without_recalibration_weights_stay_as_they_are() -> None:
    outcomes = np.linspace(0.0, 1.0, 101)
    weights = np.full(101, 1 / 101)
    recalibration = NoRecalibration()
    _, probability = recalibration.apply(outcomes, weights)
    recalibration.learn(0.5, probability, number=0)
    kept, _ = recalibration.apply(outcomes, weights)
    np.testing.assert_array_equal(kept, weights)


def test_with_full_weights_an_outcome_counts_the_same_however_far_ahead_it_was_forecast() -> None:
    outcomes = np.linspace(0.0, 1.0, 101)
    recalibration = FullWeights()
    _, probability = recalibration.apply(outcomes, np.full(101, 1 / 101))
    recalibration.learn(0.5, probability, number=0, unknown_before=6)
    assert recalibration.state()["seen"].sum() == pytest.approx(1.0)


def test_an_autoregression_that_forgets_follows_a_dependence_that_changed() -> None:
    """For 300 rounds an outcome is like the one before, and for 200 like its opposite."""
    noise = stream(2, "tests", "served-ingredients").normal(size=500)
    outcomes = np.zeros(500)
    for t in range(1, 500):
        dependence = 0.9 if t < 300 else -0.9
        outcomes[t] = dependence * outcomes[t - 1] + noise[t]
    task = Task(PublicSeries(outcomes, [{}] * 500, ()), steps=1, first=400)
    middle = 4  # of the levels
    errors = autoregression(task)[400:, middle] - outcomes[400:]
    errors_with_forgetting = autoregression(task, forgetting=0.97)[400:, middle] - outcomes[400:]
    assert np.abs(errors_with_forgetting).mean() < 0.9 * np.abs(errors).mean()


def test_quantiles_of_a_single_residual_are_alike(weekly_series: PublicSeries) -> None:
    quantiles = autoregression(Task(weekly_series, 1, FIRST), max_residuals=1)[FIRST:]
    assert np.ptp(quantiles, axis=1).max() == pytest.approx(0.0, abs=1e-9)


def test_every_change_has_a_row_in_ratio_to_none(
    monkeypatch: pytest.MonkeyPatch, weekly_series: PublicSeries
) -> None:
    monkeypatch.setitem(FURTHER_SERIES, "weekly", lambda: weekly_series)
    changes = {name: CHANGES[name] for name in (NOTHING, "no recalibration")}
    rows = served_ingredients.change_ours(("weekly", 1), rounds=120, seed=0, changes=changes)
    table = pd.DataFrame(rows).set_index("changed")
    assert table["own_ratio"].iloc[0] == 1.0
    assert table["own_ratio"].iloc[1] != 1.0
    # the rival is the same, so that its ratio falls as ours costs more
    costs_of_rival = table["rival_ratio"] * table["own_ratio"]
    assert costs_of_rival.iloc[1] == pytest.approx(costs_of_rival.iloc[0])
    assert table["coverage_90"].between(0.5, 1.0).all()
    shown = served_ingredients.text_by_series(table.reset_index())
    assert "no recalibration" in shown


def test_an_autoregression_without_the_weekday_and_the_week_is_measured_beside_the_plain_one(
    monkeypatch: pytest.MonkeyPatch, weekly_series: PublicSeries
) -> None:
    monkeypatch.setitem(FURTHER_SERIES, "weekly", lambda: weekly_series)
    rows = served_ingredients.change_autoregression(("weekly", 1), rounds=300)
    ratios = pd.DataFrame(rows).set_index("changed")["cost_ratio"]
    assert ratios["nothing"] == 1.0
    assert ratios["no lag of a period"] > 1.0
    assert ratios["no context"] > 1.0
    assert ratios["forgetting 0.99"] != 1.0


def test_means_over_series_are_geometric_ones_of_costs() -> None:
    rows = []
    for series, ratio in {"weekly CO2": 2.0, "daily births": 8.0, "hourly wind": 1.0}.items():
        row = {"series": series, "steps": 1, "changed": NOTHING, "rival_ratio": ratio}
        row |= {"own_ratio": 1.0, "crps_ratio": 1.0, "coverage_90": 0.9, "width_90": 1.0}
        rows.append(row)
    shown = served_ingredients.text_by_group(pd.DataFrame(rows))
    over_series = shown.split("\n\n")[0]
    lines = [line.split() for line in over_series.splitlines() if NOTHING in line]
    ratios_of_rival = [float(line[line.index(NOTHING) + 1]) for line in lines]
    assert ratios_of_rival == [4.0, 1.0]  # of the ten, of the six
