"""The theorems as tests: measured biases and regrets below both bounds, and the rate."""

from __future__ import annotations

import numpy as np
import pytest
import worlds
from streams import STREAMS, market

from regretless.forecaster.events.bounds import BiasBound, centred_norm, spread
from regretless.forecaster.events.weights import AdaptiveWeights, ExponentialWeights
from regretless.market.model import MarketModel

OURS = ["adaptive", "second-order", "exponential"]


def played(stream: str, weights: str, rounds: int, seed: int) -> MarketModel:
    """Play a run of the market of the table of streams."""
    made = market(STREAMS[stream], {"weights": weights}, rounds=rounds, seed=seed)
    return worlds.played(made, log_every=rounds)


@pytest.mark.parametrize("weights", OURS)
@pytest.mark.parametrize("stream", STREAMS)
def test_biases_and_regrets_stay_below_their_bounds(stream: str, weights: str) -> None:
    model = played(stream, weights, 400, 1)
    agents = model.agents_frame()
    regret = agents["decision_swap_regret"].fillna(agents["swap_regret"])
    assert (regret <= agents["bound_from_bias"] + 1e-9).all()
    assert (regret <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    forecaster = model.game.blocks[0].forecaster
    limits = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert np.abs(bias).max() <= limits.bias(occupancy) + 1e-9


@pytest.mark.parametrize("stream", STREAMS)
def test_certificates_add_up_to_little(stream: str) -> None:
    """Their positive parts stay below 0.1 sqrt(T), with the mean at most 1e-3."""
    rounds = 1500
    forecaster = played(stream, OURS[0], rounds, 0).game.blocks[0].forecaster
    assert forecaster.certificate_sum <= 0.1 * np.sqrt(rounds)
    assert forecaster.certificate_sum / rounds <= 1e-3


@pytest.mark.slow
def test_regret_falls_like_the_theorem_on_the_adaptive_stream() -> None:
    """The fitted slope of worst regret against T is at most -0.4."""
    horizons = np.array([250, 1000, 4000])
    regrets = []
    for rounds in horizons:
        seeds = range(6) if rounds < 4000 else range(3)
        runs = [played("adaptive", OURS[0], int(rounds), seed) for seed in seeds]
        regrets.append(np.mean([run.agents_frame()["swap_regret"].max() for run in runs]))
    slope = np.polyfit(np.log(horizons), np.log(regrets), 1)[0]
    assert slope <= -0.4, regrets


def test_a_rare_event_is_unbiased_at_its_own_scale() -> None:
    """The adaptive bound follows the square root of an event's occupancy."""
    bound = BiasBound(AdaptiveWeights(), 1000, 10_000, 1.0)
    assert bound.bias(100.0) == pytest.approx(bound.bias(10_000.0) / 10)
    printed = BiasBound(ExponentialWeights(10_000), 1000, 10_000, 1.0)
    assert printed.bias(100.0) == printed.bias(10_000.0)
    assert printed.bias(1.0) == pytest.approx(np.sqrt(2 * 10_000 * np.log(1000)) + 1.0)


def test_norms_of_coefficients() -> None:
    weights = np.array([[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]])
    assert spread(weights) == pytest.approx([2.0])
    assert centred_norm(weights) == pytest.approx([1.0])
