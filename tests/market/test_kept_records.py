"""What users keep of a round does not change in later rounds."""

from typing import Any

import numpy as np
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless import MarketModel, ScriptedAgent, register
from regretless.market.core.arrays import Array
from regretless.market.records import Context, Ensemble, Forecast, Mixture


class InPlaceForecaster:
    """Forecasts a running average, and moves it in the array that it has returned."""

    def __init__(self, size: int) -> None:
        self.points = np.full((1, size), 0.5)

    def predict(self, x: Any = None) -> Forecast:
        return Forecast(Mixture(self.points, np.ones(1)), 0)

    def update(self, y: Array) -> None:
        self.points *= 0.9
        self.points += 0.1 * y

    def state(self) -> TomlTable:
        return {"points": self.points.copy()}

    def restore(self, state: TomlTable) -> None:
        self.points = state["points"].copy()


class NotingAgent(ScriptedAgent):
    """Writes a number of its own into the features of every round."""

    features_before_it_wrote: list[dict[str, float]]

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.features_before_it_wrote = []

    def act(self, forecast: Any, context: Context) -> int:
        self.features_before_it_wrote.append(dict(context.features))
        context.features["mine"] = 1.0  # type: ignore[index]
        return 0


def build(response: str, forecaster: str = "constant") -> MarketModel:
    agents = cohort_table("agents", 1, 3, response=response)
    return make_scenario(agents, forecaster={"kind": forecaster}, rounds=5).build()


@pytest.mark.usefixtures("registries")
def test_a_forecaster_that_writes_into_what_it_returned_changes_no_earlier_round() -> None:
    register.forecaster("in-place")(InPlaceForecaster)
    model = build("best-response", "in-place")
    rounds = []
    points_at_first = []
    while not model.is_finished:
        played = model.conclude(model.begin())
        rounds.append(played)
        points_at_first.append(played.mixtures[0].points.copy())
    assert not np.array_equal(points_at_first[0], points_at_first[-1])
    points_at_the_end = [played.mixtures[0].points for played in rounds]
    np.testing.assert_array_equal(points_at_the_end, points_at_first)
    logged_points = model.forecasts_frame()[["p_0", "p_1"]].to_numpy()
    np.testing.assert_array_equal(logged_points, np.concatenate(points_at_first))


@pytest.mark.usefixtures("registries")
def test_what_an_agent_writes_into_features_is_gone_in_the_next_round_and_market() -> None:
    register.agent("noting")(NotingAgent)
    for _ in range(2):
        model = build("noting")
        model.run()
        (agent,) = model.game.cohorts[0].agents  # type: ignore[attr-defined]
        assert agent.features_before_it_wrote == [{}] * 5


def test_a_copied_mixture_shares_no_array() -> None:
    ensemble = Ensemble(outcomes=np.zeros((1, 2)), weights=np.ones(1))
    mixture = Mixture(
        points=np.zeros((1, 2)),
        weights=np.ones(1),
        certificate=0.25,
        labels=np.zeros((1, 2)),
        ensembles=(ensemble,),
    )
    copied = mixture.copied()
    assert copied.certificate == 0.25
    assert copied.labels is not None
    assert mixture.labels is not None
    assert copied.ensembles is not None
    for array, original in (
        (copied.points, mixture.points),
        (copied.weights, mixture.weights),
        (copied.labels, mixture.labels),
        (copied.ensembles[0].outcomes, ensemble.outcomes),
        (copied.ensembles[0].weights, ensemble.weights),
    ):
        np.testing.assert_array_equal(array, original)
        assert not np.shares_memory(array, original)
        assert not array.flags.writeable
