"""AutoETS and AutoARIMA as models: fitted every so many rounds, with their quantiles."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless import OnlineOmnipredictor, UserError
from regretless.agents.utilities import Newsvendor
from regretless.forecaster.bases import PowerBasis
from regretless.forecaster.models.auto_series import AutoARIMA, AutoETS, AutoSeries
from regretless.market.core.arrays import Array

SQUARE = PowerBasis([2.0], 1)
HALF_WIDTH = {50: 0.1, 80: 0.2, 95: 0.3}  # of the stand-in's intervals
FITTED_TO: list[int] = []  # how many outcomes each fit of the stand-in had


class StandIn:
    """Forecasts the last outcome, with intervals of a fixed width, as statsforecast answers."""

    def __init__(self, season_length: int = 1) -> None:
        self.season_length = season_length

    def fit(self, y: Array) -> "StandIn":
        FITTED_TO.append(len(y))
        return self

    def forward(self, y: Array, h: int, level: list[int]) -> dict[str, Any]:
        answer = {"mean": np.full(h, y[-1])}
        for percent in level:
            answer[f"lo-{percent}"] = np.full(h, y[-1] - HALF_WIDTH[percent])
            answer[f"hi-{percent}"] = np.full(h, y[-1] + HALF_WIDTH[percent])
        return answer


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-in where the models of statsforecast are."""
    models: Any = ModuleType("statsforecast.models")
    models.AutoETS = StandIn
    models.AutoARIMA = StandIn
    monkeypatch.setitem(sys.modules, "statsforecast", ModuleType("statsforecast"))
    monkeypatch.setitem(sys.modules, "statsforecast.models", models)
    FITTED_TO.clear()


def learn(model: AutoSeries, outcomes: Array) -> None:
    """Let a model forecast and learn outcomes (T,)."""
    for outcome in outcomes:
        model.predict()
        model.learn_outcome([outcome])


@pytest.mark.usefixtures("stand_in")
def test_it_is_fitted_again_when_rounds_have_doubled_and_then_every_so_many() -> None:
    model = AutoETS(SQUARE.size, basis=SQUARE, refit=30, fitted_rounds=50)
    learn(model, np.random.default_rng(0).random(150))
    assert FITTED_TO == [10, 20, 40, 50, 50, 50]  # after 10, 20, 40, 70, 100 and 130 rounds


@pytest.mark.usefixtures("stand_in")
def test_its_distribution_is_within_the_quantiles_where_these_hold() -> None:
    """Outcomes that move by at most 0.05 are marks near the middle of the last one's interval."""
    model = AutoETS(SQUARE.size, basis=SQUARE)
    outcomes = 0.5 + 0.05 * np.random.default_rng(1).random(120)
    learn(model, outcomes)
    distribution = model.distribution()
    assert np.abs(distribution.outcomes - outcomes[-1]).max() < 0.1
    expected = distribution.weights @ distribution.outcomes[:, 0] ** 2
    assert model.point() == pytest.approx([expected])


@pytest.mark.usefixtures("stand_in")
def test_it_resumes_with_the_fit_of_its_last_rounds() -> None:
    outcomes = np.random.default_rng(2).random(60)
    uninterrupted = AutoARIMA(SQUARE.size, basis=SQUARE, refit=20)
    learn(uninterrupted, outcomes)
    restored = AutoARIMA(SQUARE.size, basis=SQUARE, refit=20)
    restored.restore(uninterrupted.state())
    assert (restored.point() == uninterrupted.point()).all()


@pytest.mark.usefixtures("stand_in")
def test_a_scenario_and_a_server_take_it_by_name(tmp_path: Path) -> None:
    models = ["panel", {"kind": "auto-ets", "season": 7, "name": "weekly"}, "auto-arima"]
    scenario = make_scenario(cohort_table("growers", 3), rounds=30, forecaster={"models": models})
    frame = play_to_end(scenario).models_frame()
    assert {"weekly", "auto-arima"} < set(frame["model"])
    losses = {"shop": Newsvendor([0.0, 0.5, 1.0], underage=1.0, overage=1.0)}
    server = OnlineOmnipredictor(losses, models={"ets": {"kind": "auto-ets"}})
    for outcome in np.random.default_rng(3).random(30):
        server.learn_one(None, float(outcome))
    server.save(tmp_path / "kept")
    restored = OnlineOmnipredictor.load(tmp_path / "kept")
    assert restored.predict_one().quantile(0.9) == server.predict_one().quantile(0.9)


def test_without_its_package_a_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsforecast", None)
    monkeypatch.setitem(sys.modules, "statsforecast.models", None)
    scenario = make_scenario(cohort_table("growers", 3), forecaster={"models": ["auto-ets"]})
    with pytest.raises(UserError, match=r"pip install 'regretless\[forecasts\]'.*pandas below 3"):
        scenario.build()


@pytest.mark.usefixtures("stand_in")
def test_too_few_rounds_for_a_season_are_refused() -> None:
    with pytest.raises(UserError, match="fitted_rounds is 40; give a whole number from 48"):
        AutoETS(SQUARE.size, basis=SQUARE, season=24, fitted_rounds=40)


@pytest.mark.skipif(importlib.util.find_spec("statsforecast") is None, reason="no statsforecast")
@pytest.mark.parametrize("model_of_kind", [AutoETS, AutoARIMA])
def test_a_real_one_learns_a_season(model_of_kind: type[AutoSeries]) -> None:
    model = model_of_kind(SQUARE.size, basis=SQUARE, season=4)
    week = np.array([0.2, 0.4, 0.6, 0.8])
    noise = 0.01 * np.random.default_rng(4).standard_normal(80)
    learn(model, np.clip(np.tile(week, 20) + noise, 0.0, 1.0))
    distribution = model.distribution()
    mean = float(distribution.weights @ distribution.outcomes[:, 0])
    assert mean == pytest.approx(0.2, abs=0.05)  # the next outcome is the first of a season
