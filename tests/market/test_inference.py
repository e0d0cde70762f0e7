"""Intervals of mean differences cover what they say, alone and together."""

from functools import cache, lru_cache

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.regret.inference import (
    MIN_EFFECTIVE_ROUNDS,
    MeanDifferences,
    critical,
    holm,
    mean_differences,
)

ROUNDS = 1000
RUNS = 400
WARM_UP = 300  # rounds, after which a series has forgotten that it began at 0


@lru_cache(maxsize=1)
def correlated_runs(rho: float, series: int) -> Array:
    """Return RUNS times so many AR(1) series (RUNS, ROUNDS, series) of mean 0."""
    noise = stream(0, "ar", str(rho)).standard_normal((RUNS, WARM_UP + ROUNDS, series))
    return np.asarray(lfilter([1.0], [1.0, -rho], noise, axis=1)[:, WARM_UP:])


def holds_zero(intervals: MeanDifferences) -> Array:
    """Return of each difference whether its interval holds the true mean, 0."""
    return np.asarray((intervals.low <= 0) & (intervals.high >= 0))


@cache
def intervals_of_runs(rho: float) -> list[MeanDifferences]:
    """Return the interval of each run of one AR(1) series."""
    return [mean_differences(run) for run in correlated_runs(rho, 1)]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_an_interval_covers_the_mean_in_95_of_100_runs(rho: float) -> None:
    """But for what 400 runs leave open: three standard errors are .033."""
    covered = [holds_zero(interval)[0] for interval in intervals_of_runs(rho)]
    assert 0.95 - 0.045 <= np.mean(covered) <= 0.985


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_series_that_are_covered_have_enough_effective_rounds(rho: float) -> None:
    effective_rounds = [interval.effective_rounds[0] for interval in intervals_of_runs(rho)]
    assert min(effective_rounds) >= MIN_EFFECTIVE_ROUNDS


def test_a_series_too_slow_to_be_covered_is_known_by_its_effective_rounds() -> None:
    slow_runs = correlated_runs(0.98, 1)[:50]
    effective_rounds = [mean_differences(run).effective_rounds[0] for run in slow_runs]
    assert np.quantile(effective_rounds, 0.9) < MIN_EFFECTIVE_ROUNDS


@pytest.mark.parametrize(("rho", "common"), [(0.0, 0.0), (0.5, 2.0), (0.9, 0.0), (0.9, 2.0)])
def test_intervals_of_twelve_differences_hold_together(rho: float, common: float) -> None:
    """In batches of four rounds, as a run keeps them; one alone would miss up to 40 % of them."""
    series = correlated_runs(rho, 13)
    differences = series[..., :12] + common * series[..., 12:]
    batches_of_run = differences.reshape(RUNS, ROUNDS // 4, 4, 12).mean(2)
    all_hold = [holds_zero(mean_differences(batches)).all() for batches in batches_of_run]
    assert 0.92 - 0.03 <= np.mean(all_hold) <= 0.985


def test_rounds_that_alternate_are_no_more_than_there_are() -> None:
    """The formula alone says 7,998,000 of 2,000."""
    alternating = np.tile([0.0, 1.0], 1000)[:, None]
    assert mean_differences(alternating).effective_rounds[0] == 2000


def test_batches_say_the_same_as_rounds() -> None:
    run = correlated_runs(0.5, 2)[0]
    of_rounds = mean_differences(run)
    of_batches = mean_differences(run.reshape(ROUNDS // 4, 4, 2).mean(1))
    np.testing.assert_allclose(of_batches.mean, of_rounds.mean)
    width_of_batches = of_batches.high - of_batches.low
    np.testing.assert_allclose(width_of_batches, of_rounds.high - of_rounds.low, rtol=0.5)


def test_p_values_are_adjusted_as_holm_says() -> None:
    adjusted = holm(np.array([0.01, 0.04, 0.03, 0.005]))
    np.testing.assert_allclose(adjusted, [0.03, 0.06, 0.06, 0.02])


def test_too_few_rounds_have_a_mean_and_no_interval() -> None:
    differences = mean_differences(np.ones((7, 2)))
    np.testing.assert_array_equal(differences.mean, [1.0, 1.0])
    assert np.isnan(differences.low).all()


def test_differences_that_do_not_vary_are_known_exactly() -> None:
    constant = mean_differences(np.stack([np.zeros(50), np.full(50, 0.25)], axis=1))
    np.testing.assert_array_equal(constant.p_adjusted, [1.0, 0.0])
    np.testing.assert_array_equal(constant.low, constant.high)


@pytest.fixture
def thirty_differences() -> Array:
    """Return 40 rounds of independent differences."""
    return np.asarray(stream(0, "alike").normal(size=(2, 40, 30))[1])


@pytest.fixture
def one_difference() -> Array:
    """Return 40 rounds of a difference (40, 1)."""
    return np.asarray(stream(0, "alike").normal(size=(2, 40, 30))[0, :, :1])


def test_one_difference_many_times_over_needs_no_more_than_one(one_difference: Array) -> None:
    copies = np.repeat(one_difference, 5, axis=1)
    assert critical(copies) == pytest.approx(critical(one_difference), rel=0.03)


def test_the_critical_value_minds_neither_the_unit_nor_what_does_not_vary(
    one_difference: Array,
) -> None:
    copies = np.repeat(one_difference, 5, axis=1)
    constant = np.ones((40, 2))
    assert critical(1e-3 * np.hstack([copies, constant])) == critical(copies)


def test_different_differences_share_the_level_and_need_no_more_than_bonferroni(
    one_difference: Array, thirty_differences: Array
) -> None:
    bonferroni = float(stdtrit(39, 1 - 0.025 / 30))
    assert 1.2 * critical(one_difference) < critical(thirty_differences) < bonferroni
