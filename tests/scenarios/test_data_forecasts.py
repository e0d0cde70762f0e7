"""Forecasts as columns of a data file: scaled as their outcomes, seen by all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.market.core.errors import UserError
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.scenario import validated

FRAME = pd.DataFrame(
    {
        "temp": [0.0, 10.0, 20.0],
        "wind": [0.2, 0.4, 0.6],
        "month": [1, 2, 3],
        "t1": [1.0, 9.0, 15.0],
        "t2": [2.0, 10.0, 25.0],
        "t3": [3.0, 12.0, 30.0],
        "w1": [0.1, 0.2, -0.5],
        "w2": [0.1, 0.3, 0.5],
        "w3": [0.3, 0.4, 0.7],
    }
)
T, W = ["t1", "t2", "t3"], ["w1", "w2", "w3"]
SCALE = {"temp": [0.0, 20.0]}
QUANTILES: dict[str, Any] = {"levels": [0.1, 0.5, 0.9], "quantiles": [T, W]}


def scenario(folder: Path, forecasts: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Write the table; return a scenario on it as it is parsed from a file."""
    FRAME.to_csv(folder / "table.csv", index=False)
    data = {"file": "table.csv", "outcomes": ["temp", "wind"], "scale": SCALE} | keys
    few = {"name": "few", "utility": "linear", "actions": 2}
    return {"name": "s", "rounds": 5, "data": data | {"forecasts": forecasts}, "cohort": [few]}


def table(folder: Path, forecasts: dict[str, Any], **keys: Any) -> tuple[DataSpec, Table]:
    """Read the table as a scenario would."""
    spec = validated(scenario(folder, forecasts, **keys), origin=folder).data
    assert spec is not None
    return spec, read_table(spec)


def test_forecasts_follow_the_context_in_the_units_of_outcomes(tmp_path: Path) -> None:
    forecasts = {"office": {"point": ["t2", "w2"]}, "ensemble": {"samples": [T, W]}}
    spec, found = table(tmp_path, forecasts, context=["month"])
    assert found.names == (
        "month",
        "forecasts.office.temp.0",
        "forecasts.office.wind.0",
        *(f"forecasts.ensemble.temp.{i}" for i in range(3)),
        *(f"forecasts.ensemble.wind.{i}" for i in range(3)),
    )
    assert spec.features_of("office") == [[found.names[1]], [found.names[2]]]
    assert spec.features_of("ensemble") == [[*found.names[3:6]], [*found.names[6:]]]
    temp, wind = FRAME[T].to_numpy() / 20, FRAME[W].to_numpy()
    by_hand = np.column_stack([FRAME["month"], temp[:, 1], wind[:, 1], temp, wind])
    by_hand[:, 1:] = by_hand[:, 1:].clip(0, 1)  # 25, 30 and -0.5 are beyond the scale
    np.testing.assert_allclose(found.contexts, by_hand, atol=1e-15)
    assert found.notes == (
        "33.3 % of all rows of forecast office were outside their scale and were clipped.",
        "33.3 % of all rows of forecast ensemble were outside their scale and were clipped.",
    )


def test_without_forecasts_the_names_are_the_context(tmp_path: Path) -> None:
    assert table(tmp_path, {}, context=["month"])[1].names == ("month",)


def test_a_reversed_scale_turns_quantiles_round(tmp_path: Path) -> None:
    """The lowest temperature is the highest outcome: its feature is that of the highest level."""
    up = table(tmp_path, {"model-b": QUANTILES})[1].contexts
    down = table(tmp_path, {"model-b": QUANTILES}, scale={"temp": [20.0, 0.0]})[1].contexts
    np.testing.assert_allclose(down[:, :3], 1 - up[:, 2::-1], atol=1e-15)
    assert (np.diff(down[:, :3], axis=1) >= 0).all()
    np.testing.assert_array_equal(down[:, 3:], up[:, 3:])
    skewed = QUANTILES | {"levels": [0.1, 0.5, 0.8]}
    table(tmp_path, {"model-b": skewed})
    with pytest.raises(UserError, match=r"reversed scale of 'temp'; give levels that mirror"):
        table(tmp_path, {"model-b": skewed}, scale={"temp": [20.0, 0.0]})


def test_forecasts_are_seen_before_the_round_and_do_not_swell_the_logs(tmp_path: Path) -> None:
    raw = scenario(tmp_path, {"ensemble": {"samples": [T, W]}}, context=["month"])
    model = worlds.told(raw, origin=tmp_path).build(seed=1)
    seen = model.game.adversary.context(model.game.history)
    assert [seen["month"], seen["forecasts.ensemble.temp.2"]] == [1.0, 3 / 20]
    model.run()
    rounds = model.rounds_frame()
    assert list(rounds.filter(regex="^x_")) == ["x_0"]
    assert rounds["x_0"].tolist() == [1, 2, 3, 1, 2]


def test_a_base_that_serves_half_of_the_agents_costs_the_others_nothing(tmp_path: Path) -> None:
    """A forecast column knows the first outcome, and says the opposite of the second."""
    rng, rounds = np.random.default_rng(0), 400
    known = rng.random((rounds, 2))
    truth = np.clip(known + 0.1 * rng.standard_normal((rounds, 2)), 0.0, 1.0)
    columns = [truth[:, 0], truth[:, 1], known[:, 0], 1.0 - known[:, 1]]
    frame = pd.DataFrame(dict(zip(["first", "second", "m0", "m1"], columns, strict=True)))
    frame.to_csv(tmp_path / "half.csv", index=False)
    slopes = [-1.0, -0.5, 0.0, 0.5, 1.0]
    data = {"file": "half.csv", "outcomes": ["first", "second"]}
    data["forecasts"] = {"office": {"point": ["m0", "m1"]}}
    cohorts = [
        {
            "name": name,
            "utility": "affine",
            "actions": 5,
            "parameters": {
                "weights": [[slope if i == j else 0.0 for i in range(2)] for slope in slopes],
                "gains": [[0.5, 0.27, 0.0, -0.22, -0.5]],
            },
        }
        for j, name in enumerate(["served", "misled"])
    ]
    lost = {}
    for name, table in {
        "plain": {"models": []},
        "ours": {},
        "office alone": {"kind": "office"},
    }.items():
        raw = {"name": "half", "rounds": rounds, "data": data, "cohort": cohorts}
        model = worlds.played(worlds.told(raw | {"forecaster": table}, origin=tmp_path), seed=1)
        agents = model.agents_frame()
        lost[name] = agents["mean_loss"].to_numpy()
        if name == "ours":
            assert (agents["decision_swap_regret"] <= agents["bound"]).all()
            assert (agents["regret_to_models"] <= agents["regret_to_models_bound"]).all()
    assert lost["ours"][0] <= 1.03 * lost["office alone"][0] < lost["plain"][0]
    assert lost["ours"][1] <= lost["plain"][1] < lost["office alone"][1]
