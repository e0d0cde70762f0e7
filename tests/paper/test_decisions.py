"""Decisions beside rivals': what a rival knows, what a round costs, scores by hand."""

import numpy as np
import pandas as pd
import pytest

from paper import decisions, rivals
from paper.public_series import PublicSeries
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream

STEPS = 3
FIRST = 150


@pytest.fixture
def weekly_series() -> PublicSeries:
    """Return 240 days with a season of seven, and normal noise."""
    days = np.arange(240)
    noise = stream(0, "noise").normal(size=240)
    contexts = [{"weekday": float(day % 7)} for day in days]
    return PublicSeries(10 + 3 * np.sin(2 * np.pi * days / 7) + noise, contexts, (7,))


@pytest.mark.parametrize("name", ["autoregression", "conformal tracker", "last period"])
def test_a_rival_forecasts_from_outcomes_that_are_known(
    name: str, weekly_series: PublicSeries
) -> None:
    """What comes after t - 3 changes no forecast of t."""
    changed = weekly_series.outcomes.copy()
    changed[200:] += 50.0
    others = PublicSeries(changed, weekly_series.contexts, weekly_series.periods)
    before = rivals.RIVALS[name](rivals.Task(weekly_series, STEPS, FIRST))
    after = rivals.RIVALS[name](rivals.Task(others, STEPS, FIRST))
    first_changed = 200 + STEPS
    np.testing.assert_array_equal(before[FIRST:first_changed], after[FIRST:first_changed])
    assert np.abs(before[first_changed] - after[first_changed]).max() > 0


def test_a_regression_learns_from_rounds_with_all_of_their_lags(
    weekly_series: PublicSeries,
) -> None:
    """Its last feature is the outcome a whole number of weeks ago that is known, 14 days here."""
    task = rivals.Task(weekly_series, steps=8, first=FIRST)
    fit = task.fit(task.design, FIRST, FIRST + 5)
    first_known = 19  # twelve lags, from 8 to 19 days
    known = weekly_series.outcomes[first_known : FIRST - 7]
    np.testing.assert_array_equal(fit.outcomes, known)
    fortnight_ago = weekly_series.outcomes[first_known - 14 : FIRST - 7 - 14]
    np.testing.assert_array_equal(fit.features[:, -1], fortnight_ago)
    assert np.isfinite(fit.forecast_features).all()


def test_a_long_lag_enters_once_there_are_rounds_that_have_it(weekly_series: PublicSeries) -> None:
    yearly = PublicSeries(weekly_series.outcomes, weekly_series.contexts, (7, 100))
    task = rivals.Task(yearly, steps=1, first=FIRST)
    n_features = task.design.shape[1]
    enough = 100 + rivals.ROWS_PER_FEATURE * n_features
    before = task.fit(task.design, enough - 1, enough)
    assert before.features.shape == (enough - 1 - 12, n_features - 1)
    after = task.fit(task.design, enough, enough + 1)
    assert after.features.shape == (enough - 100, n_features)


def test_a_rival_that_cannot_be_asked_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match=r"--rivals: no rival 'autoregresion'.*autoregression"):
        rivals.check_rivals(["autoregresion"])


def test_too_few_rounds_for_a_first_fit_are_refused_with_how_many_are_enough(
    monkeypatch: pytest.MonkeyPatch, weekly_series: PublicSeries
) -> None:
    monkeypatch.setitem(decisions.PUBLIC_SERIES, "short", lambda: weekly_series)
    with pytest.raises(UserError, match=r"--rounds: 60 are too few.*give at least 108"):
        list(decisions.compare(("short", 7), seed=1, rounds=60, rivals=["autoregression"]))
    rivals.check_rounds(108, 36, steps=7)


def test_a_period_that_is_not_known_yet_leaves_all_outcomes_so_far(
    weekly_series: PublicSeries,
) -> None:
    yearly = PublicSeries(weekly_series.outcomes, weekly_series.contexts, (10 * FIRST,))

    quantiles = rivals.last_period(rivals.Task(yearly, 1, FIRST))

    of_all = np.quantile(yearly.outcomes[:FIRST], rivals.LEVELS)
    assert quantiles[FIRST] == pytest.approx(of_all)


def test_an_autoregression_covers_what_it_describes(weekly_series: PublicSeries) -> None:
    quantiles = rivals.autoregression(rivals.Task(weekly_series, 1, FIRST))[FIRST:]
    outcomes = weekly_series.outcomes[FIRST:]
    assert decisions.coverage(quantiles, outcomes, 90) == pytest.approx(0.9, abs=0.08)
    assert decisions.crps(quantiles, outcomes) == pytest.approx(1 / np.sqrt(np.pi), rel=0.2)


def test_costs_by_hand() -> None:
    orders = np.full((4, 2), 5.0)
    costs = decisions.costs_of(orders, np.array([4.0, 7.0]))
    assert costs.tolist() == [[9, 2], [2, 2], [1, 4], [1, 18]]


def test_a_rival_that_is_twice_as_dear_is_worse_in_every_cell() -> None:
    rows = []
    for series in ("a", "b"):
        for ratio in decisions.COSTS:
            row = {"series": series, "steps": 1, "rival": "dear", "critical_ratio": ratio}
            row |= {"cost_ratio": 2.0, "low": 1.9, "high": 2.1, "log_error": 0.01}
            row |= {"crps": 2.0, "our_crps": 1.0, "milliseconds": 1.0, "our_milliseconds": 2.0}
            for percent in decisions.COVERAGES:
                row |= {f"coverage_{percent}": 0.5, f"our_coverage_{percent}": 0.9}
            rows.append(row)
    line = decisions.by_rival(pd.DataFrame(rows)).loc[(1, "dear")]
    assert line["cost_ratio"] == pytest.approx(2.0)
    assert line["low"] == pytest.approx(2.0 * np.exp(-1.96 * 0.01 / np.sqrt(2)))
    assert (line["cells"], line["worse"], line["better"]) == (8, 8, 0)
    assert line["crps_ratio"] == pytest.approx(2.0)
