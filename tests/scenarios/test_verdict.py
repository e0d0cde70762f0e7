"""Models that a scenario names: who follows them, what that would cost, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_scenarios import TomlTable, cohort_table, play_to_end, read_scenario

from regretless.forecaster.models.aggregate import PANEL
from regretless.market.model import MarketModel
from regretless.scenarios.config.forecaster import DecisionSwapSpec
from regretless.scenarios.run import Options, run
from regretless.scenarios.verdict import describe_intervals

ROUNDS = 120
RULE = {"kind": "threshold", "feature": "day", "at": 5, "below": 0, "above": 1}
RHO = {"rho": {"choices": [0.4, 0.8]}}
FEW = cohort_table("few", 4, 3, "ces", parameters=RHO, policies=["weekend"])
SMOOTH = cohort_table("smooth", 2, 3, response="quantal", eta=9.0)
LEARNERS = cohort_table("learners", 2, 3, response="hedge")
LATE = cohort_table("late", 2, 3, "ces", parameters=RHO, enters=80)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> TomlTable:
    """Return a scenario whose data have forecasts in them."""
    home = tmp_path_factory.mktemp("verdict")
    rng = np.random.default_rng(0)
    days = np.arange(ROUNDS)
    frame = pd.DataFrame({"day": days % 7})
    for name, said in (("bread", "said"), ("fuel", "fuel_said")):
        level = 0.5 + 0.2 * np.sin(days / 9) + 0.1 * (days % 7 > 4)
        frame[name] = np.clip(level + 0.1 * rng.standard_normal(ROUNDS), 0, 1)
        frame[said] = np.clip(level + 0.05 * rng.standard_normal(ROUNDS), 0, 1)
    frame.to_csv(home / "table.csv", index=False)
    data = {"file": str(home / "table.csv"), "outcomes": ["bread", "fuel"], "context": ["day"]}
    data |= {"forecasts": {"office": {"point": ["said", "fuel_said"]}}}
    own = {"name": "s", "rounds": ROUNDS, "seed": 1, "data": data, "policy": {"weekend": RULE}}
    return own | {"cohort": [FEW, SMOOTH, LEARNERS, LATE]}


@pytest.fixture(scope="module")
def played_market(base: TomlTable) -> MarketModel:
    """Play a scenario as it stands to the end."""
    return play_to_end(read_scenario(base))


def test_with_data_the_panel_and_the_forecasts_in_it_are_models(played_market: MarketModel) -> None:
    models = played_market.models_frame()
    verdict = played_market.verdict_frame()
    assert models["model"].unique().tolist() == [*PANEL, "office"]
    assert models["cohort"].unique().tolist() == ["few", "smooth", "late"]  # learners hear none
    assert verdict.groupby("cohort", sort=False)["kind"].agg(list).to_dict() == {
        "few": ["broadcast", *["model"] * 8, "policy", "action"],
        "smooth": ["broadcast", *["model"] * 8, "action"],
        "learners": ["broadcast", "action"],
        "late": ["broadcast", *["model"] * 8, "action"],
        "everybody": ["broadcast", *["model"] * 8, "policy", "action"],
    }


def test_the_verdict_adds_up(played_market: MarketModel) -> None:
    """Of all agents, too: learners do as they did where the others follow a model."""
    agents = played_market.agents_frame().set_index("agent")
    models = played_market.models_frame()
    for name, rows in played_market.verdict_frame().groupby("cohort"):
        agents_of_row = agents if name == "everybody" else agents[agents["cohort"] == name]
        assert (rows["agents"] == len(agents_of_row)).all()
        mean = agents_of_row["mean_loss"].mean()
        np.testing.assert_allclose(rows["mean_loss"] - rows["difference"], mean, rtol=1e-12)
        kinds = rows.set_index("kind")
        assert kinds.loc["broadcast", "mean_loss"] == pytest.approx(mean, rel=1e-12)
        limits = rows[["low", "difference", "high"]].to_numpy()[rows["kind"] != "broadcast"]
        assert (np.diff(limits) > 0).all()
        sure = (limits[:, 0] > 0) | (limits[:, 2] < 0)
        assert (rows["p_adjusted"][rows["kind"] != "broadcast"][~sure] > 0.03).all()
        best = (agents_of_row["mean_loss"] - agents_of_row["external_regret"]).mean()
        assert kinds.loc["action", "mean_loss"] == pytest.approx(best, rel=1e-12)
        assert kinds.loc["action", "better_off"] == (agents_of_row["external_regret"] > 1e-12).sum()
        for model, row in rows[rows["kind"] == "model"].set_index("name").iterrows():
            losses_of_model = models[
                models["agent"].isin(agents_of_row.index) & (models["model"] == model)
            ]
            gap = -losses_of_model["regret_to_model"].sum() / len(agents_of_row)
            assert row["difference"] == pytest.approx(gap, rel=1e-12)
            assert row["better_off"] == (losses_of_model["regret_to_model"] > 1e-12).sum()


@pytest.mark.parametrize("name", [*PANEL, "office"])
def test_to_follow_a_model_costs_what_a_run_with_it_alone_costs(
    name: str, base: TomlTable, played_market: MarketModel
) -> None:
    """The outcomes do not react, and hard responses do not randomise; over their own rounds."""
    raw = base | {"forecaster": PANEL.get(name, {"kind": name})}
    agents_of_model_run = play_to_end(read_scenario(raw)).agents_frame()
    model_losses = played_market.models_frame().query(
        "cohort in ['few', 'late'] and model == @name"
    )
    expected_losses = agents_of_model_run.query("cohort in ['few', 'late']")["mean_loss"]
    np.testing.assert_allclose(model_losses["mean_loss"], expected_losses, atol=1e-12)


def test_regret_to_models_is_to_the_best_of_them(played_market: MarketModel) -> None:
    """And below its bound, of those who are there throughout; who hears no model has none."""
    agents = played_market.agents_frame().set_index("agent")
    models = played_market.models_frame()
    followers = agents[agents["cohort"] != "learners"]
    worst = followers["mean_loss"] - models.groupby("agent")["mean_loss"].min()[followers.index]
    np.testing.assert_allclose(followers["regret_to_models"], worst, atol=1e-12)
    few, late = (followers[followers["cohort"] == name] for name in ("few", "late"))
    assert (few["regret_to_models"] <= few["regret_to_models_bound"]).all()
    assert late["regret_to_models_bound"].isna().all()
    assert agents.query("cohort == 'learners'")["regret_to_models"].isna().all()


def test_models_are_a_list_or_a_table() -> None:
    seasonal = {"kind": "seasonal-naive", "rate": 0.3}
    table = {"last-value": {"kind": "last-value"}, "seasonal-naive": seasonal}
    listed = DecisionSwapSpec(models=["last-value", seasonal])
    assert DecisionSwapSpec(models=table) == listed
    assert listed.reference.kind == "aggregate"
    panel = DecisionSwapSpec(models=["panel", {"kind": "constant", "name": "half", "value": 0.5}])
    assert list(panel.models) == [*PANEL, "half"]
    assert panel.models["half"].parameters == {"value": 0.5}
    assert DecisionSwapSpec(models=panel.model_dump()["models"]) == panel


def test_a_reference_is_one_of_the_models() -> None:
    for reference, more, chosen in (
        ("last-value", [], "last-value"),
        ("constant", ["constant"], "constant"),
        ({"kind": "last-value", "a": 1}, ["reference"], "reference"),
        ("aggregate", [], "aggregate"),
    ):
        spec = DecisionSwapSpec(models=["running-mean", "last-value"], reference=reference)
        assert list(spec.models) == ["running-mean", "last-value", *more]
        assert spec.reference.kind == chosen


def test_without_models_the_forecaster_is_plain(base: TomlTable, tmp_path: Path) -> None:
    raw = base | {"forecaster": {"models": []}, "rounds": 5, "cohort": [FEW]}
    model = run(read_scenario(raw), Options(tmp_path / "plain"))
    assert "regret_to_models" not in model.agents_frame()
    assert set(model.verdict_frame()["kind"]) == {"broadcast", "policy", "action"}
    written = {path.stem for path in (tmp_path / "plain").iterdir()}
    assert ("models" in written, "verdict" in written) == (False, True)


def test_where_every_interval_is_too_narrow_all_are_named() -> None:
    rows = {"low": [-0.1, 0.0, 0.1], "cohort": ["a", "a", "b"], "effective": [3.0, 4.0, 5.0]}
    *_, last_line = describe_intervals(pd.DataFrame(rows))
    subject = "all 3 intervals, one for each cohort and alternative, are too narrow"
    assert last_line == f"{subject}: effective sample below 30 rounds"
