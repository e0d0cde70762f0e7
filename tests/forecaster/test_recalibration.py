"""Forecasts that were too wide or too narrow, mended by how probable they found what came."""

import numpy as np
import pytest

from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.bases.convex import ReLUBasis
from regretless.forecaster.models import PastOutcomes
from regretless.forecaster.models.pool import DistributionPool
from regretless.forecaster.models.recalibration import (
    N_CELLS,
    N_LEVELS,
    PRIOR_ROUNDS,
    SHIFT_OF_CELLS,
    Recalibration,
    add_limit,
    add_outcome,
    levels_of,
    write_recalibrated,
)
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.records import RoundFeedback

LEVELS = (np.arange(400) + 0.5) / 400


def even_forecast(half_width: float) -> tuple[Array, Array]:
    """Return outcomes that are even about one half, and their weights."""
    outcomes = 0.5 + half_width * (2 * LEVELS - 1)
    return outcomes, np.full(len(outcomes), 1 / len(outcomes))


def quantile(outcomes: Array, weights: Array, level: float) -> float:
    return float(outcomes[np.searchsorted(np.cumsum(weights), level)])


def test_a_forecast_stays_as_it_is_until_outcomes_say_something_else() -> None:
    outcomes, weights = even_forecast(0.3)
    recalibrated, probability = Recalibration().apply(outcomes, weights)
    np.testing.assert_allclose(recalibrated, weights, rtol=1e-9)
    assert probability[0] == 0.0
    assert probability[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("half_width", [0.1, 0.4])
def test_intervals_that_were_too_narrow_or_too_wide_come_to_cover(half_width: float) -> None:
    """Outcomes are within 0.2 of one half; 80 % intervals cover 0.4 and 1 of them as they are."""
    rng = stream(0, "recalibration")
    outcomes, weights = even_forecast(half_width)
    recalibration = Recalibration()
    covered = []
    for day in range(600):
        recalibrated, probability = recalibration.apply(outcomes, weights)
        low, high = (quantile(outcomes, recalibrated, level) for level in (0.1, 0.9))
        outcome = 0.5 + 0.2 * (2 * rng.random() - 1)
        covered.append(low <= outcome <= high)
        recalibration.learn(outcome, probability, number=day)
    before = 0.8 * half_width / 0.2
    after = float(np.mean(covered[100:]))
    if half_width > 0.2:
        assert after == pytest.approx(0.8, abs=0.05)
    else:  # half of the outcomes lie beyond all that is forecast
        assert after > before + 0.05


def mean_levels(half_width: float, *, censored: bool) -> Array:
    """Return G at even levels, on average over rounds, where outcomes are within 0.2 of one half.

    The forecast is even within ``half_width`` of it. ``censored`` outcomes are seen up to a limit
    that is drawn in every round.
    """
    rng = stream(2, "recalibration")
    outcomes, weights = even_forecast(half_width)
    recalibration = Recalibration()
    total = np.zeros(N_LEVELS + 1)
    for day in range(3000):
        _, probability = recalibration.apply(outcomes, weights)
        outcome = 0.5 + 0.2 * (2 * rng.random() - 1)
        limit = 0.3 + 0.5 * rng.random()
        if censored and outcome > limit:
            recalibration.learn_limit(limit, probability, number=day)
        else:
            recalibration.learn(outcome, probability, number=day)
        if day >= 200:
            total += levels_of(recalibration.state()["seen"])
    return total / 2800


def test_a_calibrated_forecast_stays_as_it_is_though_outcomes_are_censored() -> None:
    levels = mean_levels(0.2, censored=True)
    np.testing.assert_allclose(levels, np.linspace(0, 1, N_LEVELS + 1), atol=0.04)


@pytest.mark.parametrize("half_width", [0.15, 0.3])
def test_a_forecast_is_mended_as_if_censored_outcomes_had_been_seen(half_width: float) -> None:
    levels = mean_levels(half_width, censored=True)
    levels_of_all_seen = mean_levels(half_width, censored=False)
    np.testing.assert_allclose(levels, levels_of_all_seen, atol=0.05)


def test_a_limit_beyond_all_that_was_forecast_counts_as_the_least_probable_outcome() -> None:
    outcomes, weights = even_forecast(0.1)
    recalibration = Recalibration()
    _, probability = recalibration.apply(outcomes, weights)
    recalibration.learn_limit(0.9, probability, number=0)
    seen = recalibration.state()["seen"]
    assert seen[-1] == pytest.approx(1.0)
    assert seen[:-1].sum() == pytest.approx(0.0)


def test_a_pool_learns_an_estimate_but_counts_the_limit() -> None:
    basis = ReLUBasis(error=0.05)
    pool = DistributionPool({"all": PastOutcomes(basis)}, basis, recalibrated=True)
    for outcome in (0.2, 0.4, 0.6) * 10:
        pool.point()
        pool.learn_checked(basis.transform([outcome]), np.array([outcome]))
    pool.point()
    before = pool.state()["recalibration"]["seen"]
    estimate = np.array([0.6])
    feedback = RoundFeedback(basis.transform(estimate), estimate, limits=np.array([0.3]))
    pool.observe(feedback)
    added = pool.state()["recalibration"]["seen"] - 0.97 * before
    assert added.sum() == pytest.approx(1.0)
    assert added[70:].sum() > 0.2  # some of what lies beyond 0.4, not the estimate alone
    assert added[40:60].sum() > 0.2


def test_outcomes_that_were_forecast_rounds_ahead_count_for_less() -> None:
    """What is learned of a forecast seven rounds ahead depends on the six rounds before."""
    outcomes, weights = even_forecast(0.3)
    recalibration = Recalibration()
    _, probability = recalibration.apply(outcomes, weights)
    recalibration.learn(0.5, probability, number=0, unknown_before=6)
    assert recalibration.state()["seen"].sum() == pytest.approx(1 / 7)


def test_a_pool_remembers_how_many_rounds_ahead_it_forecast() -> None:
    basis = ReLUBasis(error=0.05)
    pool = DistributionPool({"all": PastOutcomes(basis)}, basis, recalibrated=True)
    pool.ahead = 3
    pool.point()
    opened = pool.opened()
    pool.ahead = 0
    pool.point()  # another round, which is forecast one round ahead
    pool.reopen(None, opened)
    pool.observe(RoundFeedback(basis.transform([0.4]), np.array([0.4])))
    assert pool.state()["recalibration"]["seen"].sum() == pytest.approx(1 / 4)


def test_outcomes_that_are_learned_in_another_order_leave_the_same_memory() -> None:
    outcomes, weights = even_forecast(0.3)
    in_order = Recalibration()
    shuffled = Recalibration()
    _, probability = in_order.apply(outcomes, weights)
    came = [0.3, 0.45, 0.5, 0.62, 0.7]
    for number in range(5):
        in_order.learn(came[number], probability, number=number)
    for number in (2, 0, 4, 3, 1):
        shuffled.learn(came[number], probability, number=number)
    np.testing.assert_allclose(shuffled.state()["seen"], in_order.state()["seen"], rtol=1e-12)


def test_a_pool_predicts_the_mean_of_the_distribution_that_it_shows() -> None:
    basis = ReLUBasis(error=0.05)
    models = {"all": PastOutcomes(basis), "last": PastOutcomes(basis, rate=1.0)}
    pool = DistributionPool(models, basis, recalibrated=True)
    rng = stream(1, "recalibration")
    for outcome in rng.beta(4, 4, 60):
        prediction = pool.point()
        shown = pool.distribution()
        assert shown.weights.sum() == pytest.approx(1.0)
        mean = shown.weights @ basis.transform(shown.outcomes)
        np.testing.assert_allclose(prediction, mean, atol=1e-12)
        pool.learn_checked(basis.transform([outcome]), np.array([outcome]))
    as_it_was = DistributionPool(models, basis)
    assert np.abs(as_it_was.point() - pool.point()).max() > 1e-4


def test_several_outcomes_are_never_recalibrated() -> None:
    basis = LinearBasis(2)
    pool = DistributionPool({"all": PastOutcomes(basis)}, basis, recalibrated=True)
    assert pool.state()["recalibration"] is None


def test_an_open_round_keeps_the_steps_of_its_distribution_function_alone() -> None:
    basis = ReLUBasis(error=0.05)
    pool = DistributionPool({"all": PastOutcomes(basis)}, basis, recalibrated=True)
    for outcome in stream(2, "recalibration").beta(4, 4, 60):
        pool.point()
        pool.learn_checked(basis.transform([outcome]), np.array([outcome]))
    pool.point()
    probability = pool._probability
    opened = pool.opened()
    assert probability is not None
    assert 2 * sum(values.nbytes for values in opened["probability"].values()) < probability.nbytes
    pool.point({"weekday": 1.0})
    pool.reopen(None, opened)
    np.testing.assert_array_equal(pool._probability, probability)


EVEN_LEVELS = np.linspace(0.0, 1.0, N_LEVELS + 1)
each_distribution = pytest.mark.parametrize(("seed", "size"), [(1, 1), (2, 7), (3, 300)])


def cells_of(outcomes: Array) -> Array:
    return np.floor(outcomes * N_CELLS + SHIFT_OF_CELLS).astype(np.intp)


def probabilities_of_cells(outcomes: Array, weights: Array) -> Array:
    """Return F before each cell, and 1."""
    of_cells = np.bincount(cells_of(outcomes), weights, minlength=N_CELLS + 1)
    return np.concatenate([[0.0], np.minimum(np.cumsum(of_cells), 1.0)])


def draw_distribution(rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    """Return outcomes, of which several may be in a cell, and weights, of which some are 0."""
    outcomes = np.round(rng.random(size), 2)
    weights = rng.random(size) * rng.integers(0, 2, size)
    weights[0] = 1.0
    return outcomes, weights / weights.sum()


@each_distribution
def test_recalibrated_weights_are_differences_of_g_at_the_cells_probabilities(
    seed: int, size: int
) -> None:
    rng = stream(seed, "distribution")
    outcomes, weights = draw_distribution(rng, size)
    levels = levels_of(rng.random(N_LEVELS))
    probability = np.empty(N_CELLS + 2)
    recalibrated = np.empty(size)

    write_recalibrated(outcomes, weights, levels, probability, recalibrated)

    expected_probability = probabilities_of_cells(outcomes, weights)
    assert probability == pytest.approx(expected_probability, abs=1e-12)
    weights_of_cells = np.diff(np.interp(expected_probability, EVEN_LEVELS, levels))
    cells = cells_of(outcomes)
    share_of_cell = weights / np.bincount(cells, weights)[cells].clip(1e-300)
    assert recalibrated == pytest.approx(weights_of_cells[cells] * share_of_cell, abs=1e-11)


def shares_of_levels(first: float, last: float) -> Array:
    """Return which share of the way from ``first`` to ``last`` is in each cell of probability."""
    positions_within = np.clip(EVEN_LEVELS, first, last)
    return np.asarray(np.diff(positions_within) / (last - first))


@each_distribution
def test_an_outcome_is_counted_evenly_over_the_probabilities_of_its_cell(
    seed: int, size: int
) -> None:
    """Over at least one cell of probability."""
    rng = stream(seed, "outcome")
    probability = probabilities_of_cells(*draw_distribution(rng, size))
    for outcome in [0.0, 0.25, 0.5, 0.77, 1.0]:
        seen_before = rng.random(N_LEVELS)
        seen = seen_before.copy()

        add_outcome(outcome, probability, 0.9, 0.5, seen)

        before, after = probability[cells_of(np.array([outcome]))[0] :][:2]
        half_length = max(after - before, 1 / N_LEVELS) / 2
        middle = np.clip((before + after) / 2, half_length, 1 - half_length)
        added = shares_of_levels(middle - half_length, middle + half_length)
        assert seen == pytest.approx(0.9 * seen_before + 0.5 * added, abs=1e-12)


@each_distribution
def test_what_lies_beyond_a_limit_is_counted_as_g_is_there(seed: int, size: int) -> None:
    rng = stream(seed, "limit")
    probability = probabilities_of_cells(*draw_distribution(rng, size))
    for limit in [0.0, 0.25, 0.5, 0.77, 1.0]:
        seen_before = rng.random(N_LEVELS)
        seen = seen_before.copy()

        add_limit(limit, probability, 0.9, 0.5, seen)

        level = min(probability[cells_of(np.array([limit]))[0] + 1], 1 - 1 / N_LEVELS)
        mass_beyond = np.clip((EVEN_LEVELS[1:] - level) * N_LEVELS, 0.0, 1.0)
        mass_beyond *= seen_before + PRIOR_ROUNDS / N_LEVELS
        added = mass_beyond / mass_beyond.sum()
        assert seen == pytest.approx(0.9 * seen_before + 0.5 * added, abs=1e-12)
