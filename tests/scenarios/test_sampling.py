"""Keys sampled from ranges: designs, published indices, and planted values found again."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from worlds import NATURE, study

from regretless.market.core.errors import UserError
from regretless.scenarios.studies.analysis.measures import COHORTS
from regretless.scenarios.studies.answers import print_summary
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.sampling import (
    SampleSpec,
    Span,
    calibration_table,
    sensitivity_table,
)

STUDY = """
scenario = "tiny.toml"
seeds = 2
[sample]
points = 8
[sample.keys]
"cohort.farmers.count" = [2, 5]
"adversary.concentration" = { low = 0.5, high = 50.0, log = true }
"""


def sampled(points: int, *keys: str, ends: list[float], **more: Any) -> SampleSpec:
    raw = {"points": points, "keys": dict.fromkeys(keys, ends)} | more
    return SampleSpec.model_validate(raw)


def tables(sample: SampleSpec, losses: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a study's cohorts and parameters, one run per setting, with these mean losses."""
    parameters = pd.DataFrame(sample.settings()).rename_axis("run").reset_index().assign(seed=0)
    rows = {"run": parameters["run"], "cohort": "one", "agents": 1, "mean_loss": losses(parameters)}
    return pd.DataFrame(rows).reindex(columns=COHORTS), parameters


def test_a_hypercube_has_one_point_in_each_stratum_and_seeds_of_its_own(tmp_path: Path) -> None:
    found = study(tmp_path, STUDY, NATURE)
    rows = pd.DataFrame(found.parameters())
    assert len(found) == 16
    assert rows["seed"].tolist() == list(range(16))
    share = np.log(rows["adversary.concentration"][::2] / 0.5) / np.log(100)
    assert sorted(np.floor(share * 8)) == list(range(8))
    assert rows["cohort.farmers.count"].value_counts().to_dict() == dict.fromkeys(range(2, 6), 4)
    again, key = pd.DataFrame(found.sized(seeds=1).parameters()), "adversary.concentration"
    assert again[key].tolist() == rows[key][::2].tolist()
    raw = found.task(5).raw
    assert (raw["seed"], raw["adversary"]["concentration"]) == (5, rows[key][5])


def test_the_blocks_of_a_sobol_design_differ_in_one_key() -> None:
    sample = sampled(8, "a", "b", ends=[2.0, 4.0], method="sobol")
    table = pd.DataFrame(sample.settings()).to_numpy().reshape(4, 8, 2)
    a, b, mixed_a, mixed_b = table
    assert len(sample) == 32
    np.testing.assert_array_equal(mixed_a, np.column_stack([b[:, 0], a[:, 1]]))
    np.testing.assert_array_equal(mixed_b, np.column_stack([a[:, 0], b[:, 1]]))


def test_published_indices_of_ishigami_s_function() -> None:
    """Sobol and Levitan 1999: with a = 7 and b = 0.1."""
    sample = sampled(1024, *"xyz", ends=[-np.pi, np.pi], method="sobol")

    def ishigami(p: pd.DataFrame) -> Any:
        return np.sin(p["x"]) * (1 + 0.1 * p["z"] ** 4) + 7 * np.sin(p["y"]) ** 2

    once, again = (sensitivity_table(*tables(sample, ishigami), sample) for _ in range(2))
    pd.testing.assert_frame_equal(once, again, check_exact=True)
    found = once.set_index(["value", "key"])
    wanted = {"first order": [0.3139, 0.4424, 0.0], "total order": [0.5576, 0.4424, 0.2437]}
    for index, numbers in wanted.items():
        for key, number in zip("xyz", numbers, strict=True):
            row = found.loc[(index, key)]
            assert abs(row["mean"] - number) < 0.05
            assert row["low"] < row["mean"] < row["high"]


def test_a_rank_correlation_sees_what_is_monotone() -> None:
    sample = sampled(40, "a", "b", ends=[0.0, 1.0])
    found = sensitivity_table(*tables(sample, lambda p: np.exp(p["a"])), sample).set_index("key")
    assert found["mean"]["a"] == pytest.approx(1.0)
    assert found["low"]["b"] < 0 < found["high"]["b"]
    assert found["runs"].tolist() == [40, 40]


def test_calibration_covers_what_was_planted() -> None:
    """Of linear moments with normal noise the interval holds the truth in 95 % of trials."""
    rng = np.random.default_rng(5)
    sample = sampled(400, "impact", ends=[0.0, 1.0])
    runs = tables(sample, lambda p: 2 * p["impact"] + rng.normal(0, 0.2, len(p)))
    held, widths = 0, []
    truths = rng.uniform(0.2, 0.8, 200)
    for truth in truths:
        target = {"one.mean_loss": 2 * truth + rng.normal(0, 0.2)}
        row = calibration_table(*runs, sample.model_copy(update={"targets": target})).iloc[0]
        held += row["low"] <= truth <= row["high"]
        widths.append(row["high"] - row["low"])
    far = sample.model_copy(update={"targets": {"one.mean_loss": 9.0}})  # no run comes near
    assert calibration_table(*runs, far)[["estimate", "low", "high"]].isna().all(axis=None)
    assert 180 <= held <= 198
    assert np.mean(widths) == pytest.approx(2 * 1.96 * 0.1, rel=0.15)


def test_a_sampled_study_is_played_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STUDY + '[sample.targets]\n"farmers.mean_loss" = 0.5\n'
    design = study(tmp_path, text, NATURE).sized(rounds=5, seeds=1)
    played = conduct(design, Options(tmp_path / "out", jobs=1))
    names = ("effects", "sensitivity", "calibration")
    effects, found, fitted = (pd.read_parquet(played.path / f"{name}.parquet") for name in names)
    assert effects.empty
    assert set(found["key"]) == {"cohort.farmers.count", "adversary.concentration"}
    assert fitted["low"].le(fitted["estimate"]).all()
    print_summary(played)
    printed = capsys.readouterr().out
    assert "Values that give the" in printed
    assert "rank correlation" in printed
    with pytest.raises(UserError, match="every run measured it"):
        played.calibration({"one.unheard_of": 0.1})


def test_shares_and_values_are_inverse() -> None:
    for span in (Span(low=2.0, high=8.0), Span(low=0.1, high=10.0, log=True), Span(low=1, high=9)):
        values = span.values(np.linspace(0.01, 0.99, 7))
        np.testing.assert_allclose(span.values(span.shares(np.array(values))), values)
