"""Forecasts on their way through a network: who is h hops away hears them h rounds later."""

import numpy as np

from regretless.forecaster.bases import LinearBasis
from regretless.market.game.network import DelayedForecasts
from regretless.market.records import Forecast, Mixture

OUTCOMES = 2
DEPTH = 3  # hops to the farthest agent that hears


def relay_after(rounds: int) -> DelayedForecasts:
    """Broadcast 0, 1/10, 2/10 and so on in every coordinate."""
    relay = DelayedForecasts(LinearBasis(OUTCOMES), DEPTH)
    for round_index in range(rounds):
        point = np.full((1, OUTCOMES), round_index / 10)
        relay.add(Forecast(Mixture(point, np.ones(1), labels=point), 0), point[0])
    return relay


def forecasts_heard(relay: DelayedForecasts) -> list[list[float] | None]:
    """Return the prediction that reaches each distance."""
    predictions: list[list[float] | None] = []
    for distance in range(1, DEPTH + 1):
        forecast = relay.forecast_heard_at(distance)
        predictions.append(None if forecast is None else forecast.statistics.tolist())
    return predictions


def test_a_forecast_is_heard_one_round_later_with_every_hop() -> None:
    assert forecasts_heard(relay_after(5)) == [[0.4, 0.4], [0.3, 0.3], [0.2, 0.2]]


def test_nothing_is_heard_before_the_first_forecast_has_come_through() -> None:
    assert forecasts_heard(relay_after(2)) == [[0.1, 0.1], [0.0, 0.0], None]


def test_a_restored_relay_passes_on_what_was_on_its_way() -> None:
    relay = DelayedForecasts(LinearBasis(OUTCOMES), DEPTH)
    relay.restore(relay_after(5).state())
    assert forecasts_heard(relay) == forecasts_heard(relay_after(5))
    label = relay.forecast_heard_at(2).label  # type: ignore[union-attr]
    assert label is not None
    assert label.tolist() == [0.3, 0.3]
