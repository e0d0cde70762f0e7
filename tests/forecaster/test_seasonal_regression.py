"""A regression that finds its seasons: what it finds, what it forecasts, late outcomes, files."""

import numpy as np
import pytest

from regretless.forecaster.models import LeastSquares, SeasonalRegression
from regretless.forecaster.models.seasonal_regression import FIRST_SEARCH, find_seasons
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream

DAY = 12  # rounds


def days_and_weeks(n_rounds: int) -> Array:
    """Return a series (T,) in [0, 1] with a season of a day and one of a week of days."""
    rounds = np.arange(n_rounds)
    days = stream(0, "days").normal(size=DAY).cumsum()
    weeks = stream(0, "weeks").normal(size=7 * DAY)
    noise = stream(0, "noise").normal(size=n_rounds)
    values = 3 * days[rounds % DAY] + 1.5 * weeks[rounds % (7 * DAY)] + 0.1 * noise
    return (values - values.min()) / np.ptp(values)


def mean_error(model: LeastSquares | SeasonalRegression, values: Array, *, skipped: int) -> float:
    """Return the mean absolute error of forecasts one step ahead, without the first ones."""
    errors = []
    for value in values:
        errors.append(abs(float(model.point()[0]) - value))
        model.update(np.array([value]))
    return float(np.mean(errors[skipped:]))


def test_a_day_and_a_week_are_found() -> None:
    assert find_seasons(days_and_weeks(400)[:, None]) == [DAY, 7 * DAY]


@pytest.mark.parametrize("seed", range(5))
def test_a_random_walk_has_no_season(seed: int) -> None:
    steps = stream(seed, "walk").normal(size=500)
    assert find_seasons(steps.cumsum()[:, None]) == []


def test_a_constant_has_no_season() -> None:
    assert find_seasons(np.full((100, 2), 0.3)) == []


@pytest.mark.parametrize("n_rounds", [0, 1, 2])
def test_a_series_of_hardly_any_rounds_has_no_season(n_rounds: int) -> None:
    assert find_seasons(np.zeros((n_rounds, 2))) == []


def test_without_a_season_it_is_least_squares() -> None:
    values = np.clip(0.5 + 0.05 * stream(1, "walk").normal(size=150).cumsum(), 0.0, 1.0)
    seasonal = SeasonalRegression(1, lags=4, forgetting=0.99, ridge=0.01)
    plain = LeastSquares(1, lags=4, forgetting=0.99, ridge=0.01)
    assert mean_error(seasonal, values, skipped=0) == mean_error(plain, values, skipped=0)
    assert seasonal.seasons == []


def test_a_season_that_nobody_names_is_foretold() -> None:
    values = days_and_weeks(600)
    seasonal = mean_error(SeasonalRegression(1), values, skipped=400)
    plain = mean_error(LeastSquares(1, lags=12, ridge=0.01), values, skipped=400)
    assert seasonal < plain / 2


def test_rounds_learned_anew_give_the_regression_that_knew_the_season() -> None:
    """Contexts, and outcomes that come three rounds late, are learned anew as they were."""
    rounds = np.arange(FIRST_SEARCH)
    noise = 0.02 * stream(0, "noise").normal(size=FIRST_SEARCH)
    values = 0.5 + 0.3 * np.sin(2 * np.pi * rounds / DAY) + noise
    late = 3
    finds = SeasonalRegression(1, lags=2, forgetting=1.0, ridge=0.01)
    knows = LeastSquares(1, lags=2, forgetting=1.0, season=[DAY], ridge=0.01)
    for model in (finds, knows):
        opened = []
        for t in range(len(values) + late):
            model.ahead = late
            x = {"hour": float(t % DAY)}
            model.point(x)
            opened.append(model.opened())
            learned = t - late
            if learned >= 0:
                model.reopen({"hour": float(learned % DAY)}, opened[learned])
                model.update(values[[learned]])
    assert finds.seasons == [DAY]
    for hour in range(DAY):
        x = {"hour": float(hour)}
        assert finds.point(x) == pytest.approx(knows.point(x), abs=1e-9)


def test_a_restored_one_goes_on_alike() -> None:
    values = days_and_weeks(300)
    model = SeasonalRegression(1)
    mean_error(model, values[:200], skipped=0)
    copy = SeasonalRegression(1)
    copy.restore(model.state())
    assert copy.seasons == model.seasons != []
    rest = values[200:]
    assert mean_error(copy, rest, skipped=0) == mean_error(model, rest, skipped=0)


def test_an_outcome_that_comes_after_newer_ones_has_its_place() -> None:
    model = SeasonalRegression(1, lags=1)
    for value in (0.1, 0.3):
        model.point()
        model.update(np.array([value]))
    model.newer = 1
    model.update(np.array([0.2]))
    assert model.state()["outcomes"].ravel().tolist() == [0.1, 0.2, 0.3]


def test_a_missing_round_keeps_its_place_and_is_not_learned() -> None:
    """The regression that is learned anew is the one that knew the season, with the same gaps."""
    rounds = np.arange(FIRST_SEARCH)
    noise = 0.02 * stream(0, "noise").normal(size=FIRST_SEARCH)
    values = 0.5 + 0.3 * np.sin(2 * np.pi * rounds / DAY) + noise
    finds = SeasonalRegression(1, lags=2, forgetting=1.0, ridge=0.01)
    knows = LeastSquares(1, lags=2, forgetting=1.0, season=[DAY], ridge=0.01)
    for t in range(FIRST_SEARCH + 3):
        finds.point()
        knows.point()
        if t in {9, 25, 40}:
            gram = knows.state()["gram"]
            finds.skip_round()
            knows.skip_round_as(finds.state()["outcomes"][-1])
            assert (knows.state()["gram"] == gram).all()
        else:
            value = values[[t % FIRST_SEARCH]]
            finds.update(value)
            knows.update(value)
    assert finds.seasons == [DAY]
    assert finds.point() == pytest.approx(knows.point(), abs=1e-9)
