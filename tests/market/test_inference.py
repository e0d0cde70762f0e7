"""Intervals of mean differences cover what they say, alone and together."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.special import stdtrit

from regretless.market.core.randomness import stream
from regretless.market.regret.inference import (
    MIN_EFFECTIVE_ROUNDS,
    critical,
    holm,
    mean_differences,
)

ROUNDS, RUNS = 1000, 400


@lru_cache(maxsize=1)
def correlated(rho: float, series: int) -> np.ndarray:
    """Return RUNS times so many AR(1) series (RUNS, ROUNDS, series) of mean 0."""
    noise = stream(0, "ar", str(rho)).standard_normal((RUNS, ROUNDS + 300, series))
    return lfilter([1.0], [1.0, -rho], noise, axis=1)[:, 300:]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_intervals_cover(rho: float) -> None:
    """95 % intervals hold the mean, but for what 400 runs leave open (three errors are .033).

    Slower series are known by their effective sample.
    """
    found = [mean_differences(run) for run in correlated(rho, 1)]
    held = np.mean([(f.low[0] <= 0) & (f.high[0] >= 0) for f in found])
    assert 0.95 - 0.045 <= held <= 0.985
    assert min(f.effective_rounds[0] for f in found) >= MIN_EFFECTIVE_ROUNDS
    slow = [mean_differences(run).effective_rounds[0] for run in correlated(0.98, 1)[:50]]
    assert np.quantile(slow, 0.9) < MIN_EFFECTIVE_ROUNDS


@pytest.mark.parametrize(("rho", "common"), [(0.0, 0.0), (0.5, 2.0), (0.9, 0.0), (0.9, 2.0)])
def test_intervals_of_many_differences_hold_together(rho: float, common: float) -> None:
    """Twelve at once, in batches as a run keeps them; one alone would miss up to 40 % of them."""
    drawn = correlated(rho, 13)
    batches = (drawn[..., :12] + common * drawn[..., 12:]).reshape(RUNS, 250, 4, 12).mean(2)
    found = [mean_differences(run) for run in batches]
    together = np.mean([np.all((f.low <= 0) & (f.high >= 0)) for f in found])
    assert 0.92 - 0.03 <= together <= 0.985


def test_rounds_that_alternate_are_no_more_than_there_are() -> None:
    """The formula alone says 7,998,000 of 2,000."""
    alternating = np.tile([0.0, 1.0], 1000)[:, None]
    assert mean_differences(alternating).effective_rounds[0] == 2000


def test_batches_say_the_same_as_rounds() -> None:
    run = correlated(0.5, 2)[0]
    alone, batched = mean_differences(run), mean_differences(run.reshape(250, 4, 2).mean(1))
    np.testing.assert_allclose(batched.mean, alone.mean)
    np.testing.assert_allclose(batched.high - batched.low, alone.high - alone.low, rtol=0.5)


def test_p_is_adjusted_as_holm_says_and_what_cannot_be_said_is_not_said() -> None:
    np.testing.assert_allclose(holm(np.array([0.01, 0.04, 0.03, 0.005])), [0.03, 0.06, 0.06, 0.02])
    few = mean_differences(np.ones((7, 2)))
    assert np.isnan(few.low).all()
    np.testing.assert_array_equal(few.mean, [1.0, 1.0])
    same = mean_differences(np.stack([np.zeros(50), np.full(50, 0.25)], axis=1))
    np.testing.assert_array_equal(same.p_adjusted, [1.0, 0.0])
    np.testing.assert_array_equal(same.low, same.high)


def test_one_difference_many_times_over_needs_no_more_than_one() -> None:
    """In any unit, and where some do not vary; others share the level."""
    one, many = stream(0, "alike").normal(size=(2, 40, 30))
    alone, alike = critical(one[:, :1]), np.repeat(one[:, :1], 5, axis=1)
    assert critical(alike) == pytest.approx(alone, rel=0.03)
    assert critical(1e-3 * np.hstack([alike, np.ones((40, 2))])) == critical(alike)
    assert 1.2 * alone < critical(many) < float(stdtrit(39, 1 - 0.025 / 30))
