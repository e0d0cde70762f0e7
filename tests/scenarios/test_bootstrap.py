"""Data drawn anew in blocks, and what intervals over such seeds are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import worlds

from regretless.market.core.randomness import stream
from regretless.scenarios import load
from regretless.scenarios.assembly.data import Table
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import read_study

STUDY = """
scenario = "crop-choice"
seeds = 3
rounds = 25
leave_out = ["forecasts"]
[set]
"data.bootstrap" = 5
"cohort.growers.count" = 5
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
"""


def test_blocks_follow_the_table_and_are_as_long_as_asked() -> None:
    outcomes = np.linspace(0, 1, 50)[:, None]
    contexts = np.arange(50.0)[:, None]
    names = tuple(map(str, range(50)))
    table = Table(outcomes, contexts, 0.0, index=names)
    found = table.resampled(8, 20_000, np.random.default_rng(3))
    rows = found.contexts[:, 0].astype(int)
    assert [int(name) for name in found.index] == rows.tolist()
    np.testing.assert_array_equal(found.outcomes, outcomes[rows])
    broken = (np.diff(rows) % 50 != 1).mean()
    assert broken == pytest.approx((1 - 1 / 50) / 8, rel=0.1)
    assert np.bincount(rows, minlength=50).min() > 200
    whole = table.resampled(1, 10, np.random.default_rng(3))
    assert len(whole.outcomes) == 10


def test_every_seed_has_a_history_of_its_own_from_a_named_stream() -> None:
    scenario = load("crop-choice", **{"data.bootstrap": 7, "rounds": 12})
    histories = []
    for seed in (1, 1, 2):
        model = worlds.played(scenario, seed=seed)
        histories.append(model.game.history.last(12))
    np.testing.assert_array_equal(histories[0], histories[1])
    assert not np.array_equal(histories[0], histories[2])
    again = scenario.table.resampled(7, 12, stream(1, "data", "bootstrap"))
    np.testing.assert_array_equal(histories[0], again.outcomes)


def test_intervals_over_replicates_are_their_quantiles(tmp_path: Path) -> None:
    values = np.arange(101.0)
    assert analysis.replicates(values) == pytest.approx((50.0, 2.5, 97.5))
    assert np.isnan(analysis.replicates([1.0])[1:]).all()
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    study = conduct(read_study(str(tmp_path / "study.toml")), Options(tmp_path / "out", jobs=1))
    assert study.ends is analysis.replicates
    found = study.contrasts().query("measure == 'mean_loss'").iloc[0]
    losses = study.cohorts().merge(study.parameters(), on="run")
    wide = losses.pivot_table(index="seed", columns="forecaster.kind", values="mean_loss")
    ends = np.quantile(wide["running-mean"] - wide["decision-swap"], [0.025, 0.975])
    np.testing.assert_allclose(found[["low", "high"]].to_numpy(dtype=float), ends)
