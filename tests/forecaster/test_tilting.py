"""The weights nearest to given ones with which vectors have a given mean."""

import numpy as np
import pytest
from scipy.optimize import minimize

from regretless.forecaster.online.tilting import PRECISION, RIDGE, exactly_tilted, tilted
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream


def relative_entropy(weights: Array, prior: Array) -> float:
    """Return sum_i w_i ln(w_i / v_i)."""
    positive = weights > 0
    return float((weights[positive] * np.log(weights[positive] / prior[positive])).sum())


def hinges(outcomes: Array, n_knots: int) -> Array:
    """Return the outcomes (m,) and their excess over even knots (m, n_knots)."""
    knots = np.linspace(0, 1, n_knots, endpoint=False)
    return np.maximum(outcomes[:, None] - knots, 0.0)


def test_weights_are_exponential_and_have_the_mean() -> None:
    vectors = np.array([[-1.0], [0.0], [2.0]])

    weights = exactly_tilted(vectors, np.full(3, 1 / 3))

    assert weights is not None
    assert weights @ vectors == pytest.approx([0.0], abs=PRECISION)
    assert weights[1] ** 3 == pytest.approx(weights[0] ** 2 * weights[2])


def test_no_other_weights_with_the_mean_are_nearer() -> None:
    """By Pythagoras: other weights with the mean are further by their distance from these."""
    rng = stream(5, "tilt")
    vectors = rng.normal(size=(40, 4))
    prior = rng.dirichlet(np.ones(40))
    vectors -= rng.dirichlet(np.ones(40)) @ vectors  # 0 is within

    nearest = exactly_tilted(vectors, prior)

    assert nearest is not None
    for _ in range(5):
        other = exactly_tilted(vectors, rng.dirichlet(np.ones(40)))
        assert other is not None
        distance = relative_entropy(nearest, prior) + relative_entropy(other, nearest)
        assert relative_entropy(other, prior) == pytest.approx(distance)


@pytest.mark.parametrize("n_knots", [4, 8, 20])
def test_a_mean_with_next_to_no_mass_at_some_knots_is_found(n_knots: int) -> None:
    """As a game names it: nearly all mass at two outcomes, at others than the models expect.

    From the start that a ridge gives such a mean is not found.
    """
    knots = np.linspace(0, 1, n_knots + 1)
    mass = np.full(n_knots + 1, 3e-4)
    mass[[0, -1]] = [0.75, 0.25 - 3e-4 * (n_knots - 1)]
    expected_by_models = np.tile([0.0625, 0.9375], 100)
    outcomes = np.concatenate([expected_by_models, np.linspace(0.01, 0.99, 64), knots])
    vectors = hinges(outcomes, n_knots) - mass @ hinges(knots, n_knots)
    prior = np.repeat([0.9 / 200, 0.05 / 64, 0.05 / len(knots)], [200, 64, len(knots)])

    weights = exactly_tilted(vectors, prior)

    assert weights is not None
    assert np.abs(weights @ vectors).max() <= PRECISION


def test_statistics_that_others_determine_are_no_obstacle() -> None:
    """Indicators of cells add up to 1, so that their covariance is singular."""
    rng = stream(7, "tilt")
    cells = rng.integers(0, 5, 100)
    shares = np.array([0.5, 0.3, 0.1, 0.05, 0.05])
    vectors = np.eye(5)[cells] - shares

    weights = exactly_tilted(vectors, np.full(100, 0.01))

    assert weights is not None
    assert np.bincount(cells, weights) == pytest.approx(shares, abs=1e-10)


def test_there_are_none_where_all_vectors_lie_on_one_side() -> None:
    assert exactly_tilted(np.array([[0.5], [1.0]]), np.full(2, 0.5)) is None


def test_weights_with_a_ridge_are_those_of_a_general_minimiser() -> None:
    rng = stream(4, "tilt")
    vectors = rng.normal(size=(30, 3))
    prior = rng.dirichlet(np.ones(30))

    def program(tilt: Array) -> float:
        log_partition = float(np.log(prior @ np.exp(vectors @ tilt)))
        return log_partition + RIDGE / 2 * float(tilt @ tilt)

    tilt = minimize(program, np.zeros(3), tol=1e-10).x
    terms = prior * np.exp(vectors @ tilt)

    assert tilted(vectors, prior) == pytest.approx(terms / terms.sum(), abs=1e-6)


def test_weights_with_a_ridge_are_kept_where_no_weights_have_the_mean() -> None:
    vectors = np.array([[0.5], [1.0]])

    weights = tilted(vectors, np.full(2, 0.5))

    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] > 0.99  # the outcome that is nearest
