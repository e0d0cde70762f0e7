"""Tables of outcomes and forecasts: scaled into [0, 1], refused, drawn anew in blocks."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios import load
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.validation import validated
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.conduct import Options, conduct

FRAME = pd.DataFrame(
    {
        "day": ["Mon", "Tue", "Wed", "Thu", "Fri"],
        "rain": [0.0, 5.0, 10.0, 20.0, -1.0],
        "warmth": [-10, 0, 10, 30, 40],
        "share": [0.0, 0.25, 0.5, 0.75, 1.0],
    }
)
ENDINGS = "csv", "parquet"


def table(folder: Path, frame: pd.DataFrame, outcomes: list[str], **keys: Any) -> Table:
    """Write a frame and read it back as outcomes; ``ending``: of the file."""
    path = folder / f"table.{keys.pop('ending', 'csv')}"
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return read_table(DataSpec(file=str(path), outcomes=outcomes, **keys))


@pytest.mark.parametrize(
    ("ends", "expected", "clipped"),
    [
        ([-1.0, 20.0], [1 / 21, 6 / 21, 11 / 21, 1, 0], 0.0),
        ([0.0, 20.0], [0, 0.25, 0.5, 1, 0], 0.2),
        ([0.0, 10.0], [0, 0.5, 1, 1, 0], 0.4),
        ([10.0, 0.0], [1, 0.5, 0, 0, 1], 0.4),
        ([20.0, -1.0], [20 / 21, 15 / 21, 10 / 21, 0, 1], 0.0),
        ([100.0, 200.0], [0, 0, 0, 0, 0], 1.0),
    ],
)
def test_a_scale_maps_its_ends_to_zero_and_one(
    ends: list[float], expected: list[float], clipped: float, tmp_path: Path
) -> None:
    read = table(tmp_path, FRAME, ["rain"], scale={"rain": ends})
    np.testing.assert_allclose(read.outcomes[:, 0], expected, atol=1e-15)
    assert read.clipped == pytest.approx(clipped)
    assert not np.signbit(read.outcomes).any()  # no 0 is negative


def test_the_clipped_share_counts_rows_not_cells(tmp_path: Path) -> None:
    scale = {"rain": [0.0, 10.0], "warmth": [0.0, 40.0]}  # rows 4 and 5; row 1
    read = table(tmp_path, FRAME, ["rain", "warmth", "share"], scale=scale)
    assert read.clipped == pytest.approx(3 / 5)
    scale = {"rain": [0.0, 10.0], "warmth": [-10.0, 20.0]}  # rows 4 and 5; the same two
    assert table(tmp_path, FRAME, ["rain", "warmth"], scale=scale).clipped == pytest.approx(2 / 5)


def test_csv_and_parquet_give_the_same_bits_and_contexts_as_they_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"]).assign(d=range(200))
    keys: dict[str, Any] = {"context": ["d", "c"], "scale": {"a": [-2.0, 1.5], "b": [2.0, -3.0]}}
    csv, parquet = (table(tmp_path, frame, ["a", "b"], ending=e, **keys) for e in ENDINGS)
    slack = 0.0 if pd.__version__ >= "3" else 1e-12  # pandas 2 reads less well
    np.testing.assert_allclose(csv.outcomes, parquet.outcomes, rtol=slack, atol=0.0)
    np.testing.assert_allclose(csv.contexts, frame[["d", "c"]], rtol=slack, atol=0.0)
    np.testing.assert_array_equal(parquet.contexts, frame[["d", "c"]])
    assert csv.names == parquet.names == ("d", "c")
    assert csv.clipped == parquet.clipped > 0


@pytest.mark.parametrize("kind", ["Int64", "Float64", "int8", "float32"])
def test_parquet_numbers_of_any_kind(kind: str, tmp_path: Path) -> None:
    numbers = [0.25, 1, 0] if kind[0] in "Ff" else [0, 1, 1]
    frame = pd.DataFrame({"a": pd.array(numbers, dtype=kind)})
    found = table(tmp_path, frame, ["a"], context=["a"], ending="parquet")
    np.testing.assert_array_equal(found.outcomes[:, 0], numbers)
    np.testing.assert_array_equal(found.contexts[:, 0], numbers)


def test_data_are_beside_their_scenario_or_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the folder in which the command happens to run."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    cohort = '[[cohort]]\nname = "c"\nutility = "linear"\nactions = 2\n'
    scenario = f'name = "s"\nrounds = 2\ndata = {{file = "t.csv", outcomes = ["a"]}}\n{cohort}'
    for folder, value in ((home, 0.25), (elsewhere, 0.75)):
        folder.mkdir()
        (folder / "t.csv").write_text(f"a\n{value}\n", encoding="utf-8")
    (home / "s.toml").write_text(scenario, encoding="utf-8")
    (elsewhere / "seattle-weather.csv").write_text("precipitation\n1\n", encoding="utf-8")
    monkeypatch.chdir(elsewhere)
    found, bundled = load("../home/s.toml").table, load("crop-choice").table
    assert found is not None
    assert found.outcomes.tolist() == [[0.25]]
    assert bundled is not None
    assert len(bundled.outcomes) == 1461  # every day of four years
    (home / "t.csv").unlink()
    with pytest.raises(UserError, match=r"'t\.csv' does not exist"):
        load("../home/s.toml")


# Forecasts as columns.


FORECAST = pd.DataFrame(
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
    FORECAST.to_csv(folder / "table.csv", index=False)
    data = {"file": "table.csv", "outcomes": ["temp", "wind"], "scale": SCALE} | keys
    few = {"name": "few", "utility": "linear", "actions": 2}
    return {"name": "s", "rounds": 5, "data": data | {"forecasts": forecasts}, "cohort": [few]}


def with_forecasts(folder: Path, forecasts: dict[str, Any], **keys: Any) -> tuple[DataSpec, Table]:
    spec = validated(scenario(folder, forecasts, **keys), origin=folder).data
    assert spec is not None
    return spec, read_table(spec)


def test_forecasts_follow_the_context_in_the_units_of_outcomes(tmp_path: Path) -> None:
    forecasts = {"office": {"point": ["t2", "w2"]}, "ensemble": {"samples": [T, W]}}
    spec, found = with_forecasts(tmp_path, forecasts, context=["month"])
    assert found.names == (
        "month",
        "forecasts.office.temp.0",
        "forecasts.office.wind.0",
        *(f"forecasts.ensemble.temp.{i}" for i in range(3)),
        *(f"forecasts.ensemble.wind.{i}" for i in range(3)),
    )
    assert spec.features_of("office") == [[found.names[1]], [found.names[2]]]
    assert spec.features_of("ensemble") == [[*found.names[3:6]], [*found.names[6:]]]
    temp, wind = FORECAST[T].to_numpy() / 20, FORECAST[W].to_numpy()
    by_hand = np.column_stack([FORECAST["month"], temp[:, 1], wind[:, 1], temp, wind])
    by_hand[:, 1:] = by_hand[:, 1:].clip(0, 1)  # 25, 30 and -0.5 are beyond the scale
    np.testing.assert_allclose(found.contexts, by_hand, atol=1e-15)
    assert found.notes == (
        "33.3 % of all rows of forecast office were outside their scale and were clipped.",
        "33.3 % of all rows of forecast ensemble were outside their scale and were clipped.",
    )


def test_a_reversed_scale_turns_quantiles_round(tmp_path: Path) -> None:
    """The lowest temperature is the highest outcome: its feature is that of the highest level."""
    up = with_forecasts(tmp_path, {"model-b": QUANTILES})[1].contexts
    down = with_forecasts(tmp_path, {"model-b": QUANTILES}, scale={"temp": [20.0, 0.0]})[1].contexts
    np.testing.assert_allclose(down[:, :3], 1 - up[:, 2::-1], atol=1e-15)
    assert (np.diff(down[:, :3], axis=1) >= 0).all()
    np.testing.assert_array_equal(down[:, 3:], up[:, 3:])
    skewed = QUANTILES | {"levels": [0.1, 0.5, 0.8]}
    with_forecasts(tmp_path, {"model-b": skewed})
    with pytest.raises(UserError, match=r"reversed scale of 'temp'; give levels that mirror"):
        with_forecasts(tmp_path, {"model-b": skewed}, scale={"temp": [20.0, 0.0]})


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
    cohorts = []
    for j, name in enumerate(["served", "misled"]):
        weights = [[slope * (i == j) for i in range(2)] for slope in slopes]
        own = {"weights": weights, "gains": [[0.5, 0.27, 0.0, -0.22, -0.5]]}
        cohorts.append({"name": name, "utility": "affine", "actions": 5, "parameters": own})
    lost, raw = {}, {"name": "half", "rounds": rounds, "data": data, "cohort": cohorts}
    kinds = {"plain": {"models": []}, "ours": {}, "office alone": {"kind": "office"}}
    for name, kind in kinds.items():
        told = worlds.told(raw | {"forecaster": kind}, origin=tmp_path)
        agents = worlds.played(told, seed=1).agents_frame()
        lost[name] = agents["mean_loss"].to_numpy()
        if name == "ours":
            assert (agents["decision_swap_regret"] <= agents["bound"]).all()
            assert (agents["regret_to_models"] <= agents["regret_to_models_bound"]).all()
    assert lost["ours"][0] <= 1.03 * lost["office alone"][0] < lost["plain"][0]
    assert lost["ours"][1] <= lost["plain"][1] < lost["office alone"][1]


# Data drawn anew in blocks.


STUDY = """\
scenario = "crop-choice"
seeds = 3
rounds = 5
leave_out = ["forecasts"]
set = { "data.bootstrap" = 5, "cohort.growers.count" = 2 }
grid = { "forecaster.kind" = ["decision-swap", "running-mean"] }
"""


def test_blocks_follow_the_table_and_are_as_long_as_asked() -> None:
    outcomes = np.linspace(0, 1, 50)[:, None]
    contexts = np.arange(50.0)[:, None]
    table = Table(outcomes, contexts, 0.0, index=tuple(map(str, range(50))))
    found = table.resampled(8, 20_000, np.random.default_rng(3))
    rows = found.contexts[:, 0].astype(int)
    assert [int(name) for name in found.index] == rows.tolist()
    np.testing.assert_array_equal(found.outcomes, outcomes[rows])
    broken = (np.diff(rows) % 50 != 1).mean()
    assert broken == pytest.approx((1 - 1 / 50) / 8, rel=0.1)
    assert np.bincount(rows, minlength=50).min() > 200
    assert len(table.resampled(1, 10, np.random.default_rng(3)).outcomes) == 10


def test_every_seed_has_a_history_of_its_own_from_a_named_stream() -> None:
    scenario = load("crop-choice", **{"data.bootstrap": 7, "rounds": 12})
    histories = [worlds.played(scenario, seed=s).game.history.last(12) for s in (1, 1, 2)]
    np.testing.assert_array_equal(histories[0], histories[1])
    assert not np.array_equal(histories[0], histories[2])
    again = scenario.table.resampled(7, 12, stream(1, "data", "bootstrap"))
    np.testing.assert_array_equal(histories[0], again.outcomes)


def test_intervals_over_replicates_are_their_quantiles(tmp_path: Path) -> None:
    values = np.arange(101.0)
    assert analysis.replicates(values) == pytest.approx((50.0, 2.5, 97.5))
    assert np.isnan(analysis.replicates([1.0])[1:]).all()
    study = conduct(worlds.study(tmp_path, STUDY), Options(tmp_path / "out", jobs=1))
    assert study.ends is analysis.replicates
    found = study.contrasts().query("measure == 'mean_loss'").iloc[0]
    losses = study.cohorts().merge(study.parameters(), on="run")
    wide = losses.pivot_table(index="seed", columns="forecaster.kind", values="mean_loss")
    ends = np.quantile(wide["running-mean"] - wide["decision-swap"], [0.025, 0.975])
    np.testing.assert_allclose(found[["low", "high"]].to_numpy(dtype=float), ends)
