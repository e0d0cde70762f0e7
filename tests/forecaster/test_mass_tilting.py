"""The weights nearest to given ones with which the hats of some knots have given means."""

import numpy as np
import pytest

from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.online.mass_tilting import (
    PRECISION,
    masses_at_knots,
    tilted_to_masses,
)
from regretless.forecaster.online.tilting import exactly_tilted
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream


def hat_functions(levels: Array, knots: Array) -> Array:
    """Return the hats (m, n): 1 at their knot, 0 at the others, linear between."""
    return np.column_stack([np.interp(levels, knots, unit) for unit in np.eye(len(knots))])


def test_masses_are_the_means_of_the_hats() -> None:
    rng = stream(1, "masses")
    knots = np.array([0.0, 0.1, 0.5, 0.55, 1.0])
    levels = np.concatenate([rng.random(50), knots])
    weights = rng.dirichlet(np.ones(55))

    masses = masses_at_knots(levels, weights, knots)

    assert masses == pytest.approx(weights @ hat_functions(levels, knots), abs=1e-15)


@pytest.mark.parametrize("n_knots", [2, 9, 41, 129])
def test_weights_have_the_masses_and_are_exponential_in_the_hats(n_knots: int) -> None:
    """So they are the nearest ones: ln w - ln v is linear in the hats, by Csiszar (1975)."""
    rng = stream(2, "masses", str(n_knots))
    knots = np.sort(np.concatenate([[0.0, 1.0], rng.random(n_knots - 2)]))
    levels = np.concatenate([rng.normal(0.4, 0.02, 200).clip(0, 1), rng.random(150), knots])
    prior = rng.dirichlet(np.ones(len(levels)))
    target_masses = rng.dirichlet(np.ones(n_knots))

    weights = tilted_to_masses(levels, prior, knots, target_masses)

    assert weights is not None
    assert np.abs(masses_at_knots(levels, weights, knots) - target_masses).sum() <= 2 * PRECISION
    change = np.log(weights / prior)
    multipliers = change[-n_knots:]
    assert change == pytest.approx(hat_functions(levels, knots) @ multipliers, abs=1e-9)


def test_weights_are_those_of_the_general_program() -> None:
    rng = stream(3, "masses")
    knots = np.linspace(0, 1, 9)
    levels = np.concatenate([rng.beta(2, 9, 100), knots])
    prior = rng.dirichlet(np.ones(109))
    target_masses = rng.dirichlet(np.ones(9))

    weights = tilted_to_masses(levels, prior, knots, target_masses)

    weights_of_general_program = exactly_tilted(hat_functions(levels, knots) - target_masses, prior)
    assert weights == pytest.approx(weights_of_general_program, abs=1e-9)


def test_outcomes_beside_a_knot_without_mass_get_no_weight() -> None:
    knots = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    levels = np.array([0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.9, 1.0])
    target_masses = np.array([0.5, 0.2, 0.0, 0.0, 0.3])

    weights = tilted_to_masses(levels, np.full(8, 1 / 8), knots, target_masses)

    assert weights is not None
    assert np.flatnonzero(weights).tolist() == [0, 1, 2, 7]
    assert weights[7] == pytest.approx(0.3)


def test_nearly_all_mass_where_the_prior_has_next_to_none_is_found() -> None:
    knots = np.linspace(0, 1, 41)
    levels = np.concatenate([np.full(300, 0.0625), knots])
    prior = np.concatenate([np.full(300, 1 / 300), np.full(41, 1e-9)])
    target_masses = np.full(41, 1e-7)
    target_masses[[20, 40]] = [0.75, 0.25 - 39e-7]

    weights = tilted_to_masses(levels, prior, knots, target_masses)

    assert weights is not None
    assert masses_at_knots(levels, weights, knots) == pytest.approx(target_masses, abs=1e-11)


def test_no_weights_are_found_where_no_outcome_touches_a_hat() -> None:
    knots = np.array([0.0, 0.5, 1.0])

    assert tilted_to_masses(np.array([0.0, 0.5]), np.full(2, 0.5), knots, np.full(3, 1 / 3)) is None


def test_no_weights_are_found_where_outcomes_cannot_be_weighted_to_the_masses() -> None:
    """Two hats that share their only outcome have the same ratio of masses always."""
    knots = np.array([0.0, 1.0])

    assert tilted_to_masses(np.array([0.25]), np.ones(1), knots, np.array([0.5, 0.5])) is None


def test_a_corrected_forecast_of_many_orders_is_the_nearest_distribution() -> None:
    """The same as by the general program in the statistics, with 41 orders."""
    store = Newsvendor(np.linspace(0.0, 160.0, 41), underage=4.0, overage=1.0)
    server = OnlineOmnipredictor({"store": store}, scale={"demand": (0.0, 160.0)})
    for day in range(50):  # demand answers the order
        forecast = server.predict_one({"weekday": day % 7})
        if not forecast.is_unchanged:
            break
        server.learn_one({"weekday": day % 7}, 10.0 if forecast.act("store") > 80 else 150.0)

    weights = forecast.weights

    assert not forecast.is_unchanged
    gaps = forecast.basis.transform(forecast.likely) - forecast.statistics
    n_models = len(forecast.models.weights)
    prior = np.full(len(weights), 0.05 / (len(weights) - n_models))
    prior[:n_models] = forecast.models.weights
    assert np.abs(weights @ gaps).max() <= 1e-11
    assert weights == pytest.approx(exactly_tilted(gaps, prior), abs=1e-9)
