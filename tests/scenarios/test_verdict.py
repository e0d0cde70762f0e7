"""Models that a scenario names: who follows them, what that would cost, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.forecaster.models.aggregate import PANEL
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.forecaster import DecisionSwapSpec
from regretless.scenarios.run import Options, run

ROUNDS = 120
RULE: dict[str, Any] = {"kind": "threshold", "feature": "day", "at": 5, "below": 0, "above": 1}
DATA: dict[str, Any] = {"file": "table.csv", "outcomes": ["bread", "fuel"], "context": ["day"]}
DATA["forecasts"] = {"office": {"point": ["said", "fuel_said"]}}
RHO = {"rho": {"choices": [0.4, 0.8]}}
COHORTS = [
    worlds.cohort("few", 4, 3, "ces", parameters=RHO, policies=["weekend"]),
    worlds.cohort("smooth", 2, 3, response="quantal", eta=9.0),
    worlds.cohort("learners", 2, 3, response="hedge"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("verdict")
    rng, days = np.random.default_rng(0), np.arange(ROUNDS)
    frame = pd.DataFrame({"day": days % 7})
    for name, said in (("bread", "said"), ("fuel", "fuel_said")):
        level = 0.5 + 0.2 * np.sin(days / 9) + 0.1 * (days % 7 > 4)
        frame[name] = np.clip(level + 0.1 * rng.standard_normal(ROUNDS), 0, 1)
        frame[said] = np.clip(level + 0.05 * rng.standard_normal(ROUNDS), 0, 1)
    frame.to_csv(home / "table.csv", index=False)
    return home


def scenario(folder: Path, forecaster: dict[str, Any] | None = None, **keys: Any) -> Scenario:
    """Return the scenario under a forecaster; None for the default."""
    raw = {"name": "s", "rounds": ROUNDS, "seed": 1, "data": DATA, "cohort": COHORTS}
    raw |= {"policy": {"weekend": RULE}, **keys}
    raw |= {} if forecaster is None else {"forecaster": forecaster}
    return worlds.told(raw, origin=folder)


@pytest.fixture(scope="module")
def default(folder: Path) -> MarketModel:
    return worlds.played(scenario(folder))


def test_with_data_the_panel_and_the_forecasts_in_it_are_models(default: MarketModel) -> None:
    models, verdict = default.models_frame(), default.verdict_frame()
    assert models["model"].unique().tolist() == [*PANEL, "office"]
    assert models["cohort"].unique().tolist() == ["few", "smooth"]  # learners hear no forecast
    assert verdict.groupby("cohort", sort=False)["kind"].agg(list).to_dict() == {
        "few": ["broadcast", *["model"] * 8, "policy", "action"],
        "smooth": ["broadcast", *["model"] * 8, "action"],
        "learners": ["broadcast", "action"],
        "everybody": ["broadcast", *["model"] * 8, "policy", "action"],
    }


def test_the_verdict_adds_up(default: MarketModel) -> None:
    agents, models = default.agents_frame().set_index("agent"), default.models_frame()
    for name, rows in default.verdict_frame().query("cohort != 'everybody'").groupby("cohort"):
        own = agents[agents["cohort"] == name]
        kinds = rows.set_index("kind")
        told = kinds.loc["broadcast"]
        assert told["agents"] == len(own)
        assert told["mean_loss"] == pytest.approx(own["mean_loss"].mean(), rel=1e-12)
        gaps = rows["mean_loss"] - told["mean_loss"]
        np.testing.assert_allclose(rows["difference"], gaps, atol=1e-12)
        ends = rows[["low", "difference", "high"]].to_numpy()[rows["kind"] != "broadcast"]
        assert (np.diff(ends) > 0).all()
        sure = (ends[:, 0] > 0) | (ends[:, 2] < 0)
        assert (rows["p_adjusted"][rows["kind"] != "broadcast"][~sure] > 0.03).all()
        best = (own["mean_loss"] - own["external_regret"]).mean()
        assert kinds.loc["action", "mean_loss"] == pytest.approx(best, rel=1e-12)
        assert kinds.loc["action", "better_off"] == (own["external_regret"] > 1e-12).sum()
        for model, row in rows[rows["kind"] == "model"].set_index("name").iterrows():
            there = models[(models["cohort"] == name) & (models["model"] == model)]
            assert row["mean_loss"] == pytest.approx(there["mean_loss"].mean(), rel=1e-12)
            assert row["better_off"] == (there["regret_to_model"] > 1e-12).sum()


def test_the_last_block_has_all_agents(default: MarketModel) -> None:
    """Learners, who hear no model, do as they did where the others follow one."""
    verdict, agents = default.verdict_frame(), default.agents_frame()
    rows = verdict[verdict["cohort"] == "everybody"].set_index(["kind", "name"])
    assert (rows["agents"] == len(agents)).all()
    mean = agents["mean_loss"].mean()
    np.testing.assert_allclose(rows["mean_loss"] - rows["difference"], mean, rtol=1e-12)
    assert rows.loc[("broadcast", ""), "mean_loss"] == pytest.approx(mean, rel=1e-12)
    own = verdict[verdict["name"] == "office"].set_index("cohort")
    weighed = (own["difference"] * own["agents"])[["few", "smooth"]].sum() / len(agents)
    assert own.loc["everybody", "difference"] == pytest.approx(weighed, rel=1e-12)
    assert (rows["high"] > rows["low"])[rows["low"].notna()].all()
    assert rows["low"].isna().sum() == 1


@pytest.mark.parametrize("name", [*PANEL, "office"])
def test_to_follow_a_model_costs_what_a_run_with_it_alone_costs(
    name: str, folder: Path, default: MarketModel
) -> None:
    """The outcomes do not react, and hard responses do not randomise."""
    alone = worlds.played(scenario(folder, PANEL.get(name, {"kind": name}))).agents_frame()
    models = default.models_frame().query("cohort == 'few' and model == @name")
    few = alone[alone["cohort"] == "few"]
    np.testing.assert_allclose(models["mean_loss"], few["mean_loss"], atol=1e-12)


def test_regret_to_models_is_to_the_best_of_them(default: MarketModel) -> None:
    """And below its bound; who hears no model has none."""
    agents, models = default.agents_frame().set_index("agent"), default.models_frame()
    few = agents[agents["cohort"] == "few"]
    worst = few["mean_loss"] - models.groupby("agent")["mean_loss"].min()[few.index]
    np.testing.assert_allclose(few["regret_to_models"], worst, atol=1e-12)
    assert (worst <= few["regret_to_models_bound"]).all()
    assert agents.query("cohort == 'learners'")["regret_to_models"].isna().all()


def test_models_are_a_list_or_a_table() -> None:
    listed = DecisionSwapSpec(models=["last-value", {"kind": "seasonal-naive", "rate": 0.3}])
    table = {"last-value": {"kind": "last-value"}}
    table["seasonal-naive"] = {"kind": "seasonal-naive", "rate": 0.3}
    assert DecisionSwapSpec(models=table) == listed
    assert listed.reference.kind == "aggregate"
    panel = DecisionSwapSpec(models=["panel", {"kind": "constant", "name": "half", "value": 0.5}])
    assert panel.models is not None
    assert list(panel.models) == [*PANEL, "half"]
    assert panel.models["half"].parameters == {"value": 0.5}
    assert DecisionSwapSpec(models=panel.model_dump()["models"]) == panel


@pytest.mark.parametrize(
    ("reference", "names", "chosen"),
    [
        ("last-value", ["running-mean", "last-value"], "last-value"),
        ("constant", ["running-mean", "last-value", "constant"], "constant"),
        ({"kind": "last-value", "a": 1}, ["running-mean", "last-value", "reference"], "reference"),
        ("aggregate", ["running-mean", "last-value"], "aggregate"),
    ],
)
def test_a_reference_is_one_of_the_models(reference: Any, names: list[str], chosen: str) -> None:
    told = DecisionSwapSpec(models=["running-mean", "last-value"], reference=reference)
    assert told.models is not None
    assert (list(told.models), told.reference.kind) == (names, chosen)


def test_without_models_the_forecaster_is_plain(folder: Path) -> None:
    model = run(scenario(folder, {"models": []}, rounds=5), Options(folder / "plain"))
    assert "regret_to_models" not in model.agents_frame()
    assert set(model.verdict_frame()["kind"]) == {"broadcast", "policy", "action"}
    assert not (folder / "plain/models.parquet").exists()
    assert (folder / "plain/verdict.parquet").exists()


@pytest.mark.parametrize("name", ["seasonal-0.2", "office"])
def test_who_comes_late_is_compared_over_their_own_rounds(name: str, folder: Path) -> None:
    cohorts = [COHORTS[0], worlds.cohort("late", 2, 3, "ces", parameters=RHO, enters=80)]
    model = worlds.played(scenario(folder, cohort=cohorts))
    alone = worlds.played(scenario(folder, PANEL.get(name, {"kind": name}), cohort=cohorts))
    late = alone.agents_frame().query("cohort == 'late'")
    found = model.models_frame().query("cohort == 'late' and model == @name")
    np.testing.assert_allclose(found["mean_loss"], late["mean_loss"], atol=1e-12)
    agents = model.agents_frame().query("cohort == 'late'").set_index("agent")
    worst = model.models_frame().groupby("agent")["regret_to_model"].max()
    np.testing.assert_allclose(agents["regret_to_models"], worst[agents.index], atol=1e-12)
    assert agents["regret_to_models_bound"].isna().all()
