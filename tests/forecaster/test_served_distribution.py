"""What is served is one distribution: its statistics, its quantiles and the best actions agree."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regretless import OnlineOmnipredictor
from regretless.agents.utilities import (
    CARA,
    CES,
    CobbDouglas,
    Leontief,
    LpTarget,
    MeanVariance,
    Newsvendor,
)
from regretless.forecaster.bases.exact import ExactLossesBasis
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss

SHARES = np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]])  # three actions over two outcomes
UTILITIES: dict[str, Callable[[], Loss]] = {
    "ces": lambda: CES(SHARES, rho=0.5),
    "cobb-douglas": lambda: CobbDouglas(SHARES),
    "leontief": lambda: Leontief(SHARES),
    "cara": lambda: CARA(SHARES, risk_aversion=2.0),
    "mean-variance": lambda: MeanVariance(SHARES, risk_aversion=4.0),
    "newsvendor": lambda: Newsvendor([0.0, 0.25, 0.5, 0.75, 1.0], underage=4.0, overage=1.0),
    "lp-target": lambda: LpTarget(SHARES, p=3.0),
}
ROUNDS = 30


def make_series() -> dict[str, Array]:
    """Make five series of two outcomes each (ROUNDS, 2)."""
    rng = np.random.default_rng(0)
    time = np.arange(ROUNDS)
    phases = np.array([0.0, 1.0])
    return {
        "chance": rng.beta(2, 3, (ROUNDS, 2)),
        "trend": np.clip(0.02 * time[:, None] + 0.1 * rng.normal(size=(ROUNDS, 2)) + 0.2, 0, 1),
        "season": 0.5 + 0.4 * np.sin(2 * np.pi * time[:, None] / 7 + phases),
        "regimes": np.repeat(rng.random((ROUNDS // 10, 2)), 10, axis=0),
        "ends": rng.integers(0, 2, (ROUNDS, 2)).astype(float),
    }


SERIES = make_series()


def excess_of_action(server: OnlineOmnipredictor, forecast: Any, name: str) -> float:
    """Return by how much the action's expected loss exceeds the least one, in [0, 1]."""
    task = server.tasks[name]
    expected_losses = forecast.weights @ task.loss.losses(forecast.likely)
    action = list(task.actions).index(forecast.act(name))
    return float(expected_losses[action] - expected_losses.min())


@pytest.mark.parametrize("series", SERIES)
@pytest.mark.parametrize("utility", UTILITIES)
def test_the_action_is_the_best_one_under_the_distribution(utility: str, series: str) -> None:
    """In every round, before the models are corrected and after."""
    loss = UTILITIES[utility]()
    server = OnlineOmnipredictor(
        {"one": loss}, models={"mean": "running-mean", "last": "last-value"}
    )
    assert server.basis.error <= 1e-12
    for t, outcome in enumerate(SERIES[series][:, : loss.outcomes]):
        if t == ROUNDS - 8:
            server._slots[0].reference.disproved_at = t
        forecast = server.predict_one({"day": t % 7})
        assert forecast.is_unchanged == (t < ROUNDS - 8)
        assert excess_of_action(server, forecast, "one") <= 1e-9
        mean_of_statistics = forecast.weights @ server.basis.transform(forecast.likely)
        assert mean_of_statistics == pytest.approx(forecast.statistics, abs=1e-9)
        assert (forecast.weights >= 0).all()
        assert forecast.weights.sum() == pytest.approx(1.0)
        server.learn_one({"day": t % 7}, outcome)


def test_before_any_outcome_every_value_is_possible() -> None:
    server = OnlineOmnipredictor({"shop": UTILITIES["newsvendor"]()})
    first = server.predict_one()
    assert [first.quantile(level) for level in (0.1, 0.5, 0.9)] == pytest.approx(
        [0.1, 0.5, 0.9], abs=0.02
    )


def test_the_distribution_is_the_mixture_of_the_models_with_one_weight_each() -> None:
    """A model that knows the outcome has all the weight in the end, and the quantiles are its."""
    shop = Newsvendor([0.0, 0.5, 1.0], underage=1.0, overage=1.0)
    models = {"wrong": {"kind": "constant", "value": 0.1}, "mean": "running-mean"}
    server = OnlineOmnipredictor({"shop": shop}, models=models, forecasts={"right": "plan"})
    for outcome in np.random.default_rng(1).random(120):
        server.learn_one({"plan": outcome}, outcome)
    forecast = server.predict_one({"plan": 0.8})
    assert forecast.quantile(0.05) == pytest.approx(0.8, abs=0.01)
    assert forecast.quantile(0.95) == pytest.approx(0.8, abs=0.01)
    assert forecast.weights @ forecast.basis.transform(forecast.likely) == pytest.approx(
        forecast.statistics, abs=1e-12
    )


def test_quantiles_are_those_of_the_weighted_outcomes_by_brute_force() -> None:
    server = OnlineOmnipredictor({"shop": UTILITIES["newsvendor"]()})
    for outcome in np.random.default_rng(2).beta(2, 5, 50):
        server.learn_one(None, outcome)
    forecast = server.predict_one()
    for level in (0.05, 0.3, 0.5, 0.95):
        values = np.sort(np.unique(forecast.outcomes))
        up_to = [forecast.weights[forecast.outcomes[:, 0] <= value].sum() for value in values]
        smallest_value = values[np.array(up_to) >= level - 1e-12][0]
        assert forecast.quantile(level) == smallest_value


def test_few_losses_of_any_family_are_represented_exactly() -> None:
    leontief = Leontief(SHARES)
    several = {"leontief": leontief, "target": LpTarget(SHARES, p=3.0)}
    for losses in ({"leontief": leontief}, several):
        server = OnlineOmnipredictor(losses)
        assert isinstance(server.basis, ExactLossesBasis)
        assert server.basis.error == 0.0


def test_many_losses_of_several_families_are_served_by_their_bases() -> None:
    """There is no game over conv s(Y) then; the forecast is a distribution all the same."""
    targets = np.random.default_rng(3).random((150, 2))
    losses = {"many": LpTarget(targets, p=2.0), "other": MeanVariance(SHARES, risk_aversion=1.0)}
    server = OnlineOmnipredictor(losses, models={"mean": "running-mean"})
    for t in range(30):
        if t == 20:
            server._slots[0].reference.disproved_at = t
        forecast = server.predict_one()
        assert forecast.weights.sum() == pytest.approx(1.0)
        assert forecast.act("many") in range(150)
        server.learn_one(None, [0.3, 0.6])
    assert server.counts["learned"] == 30
