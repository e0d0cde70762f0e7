"""The table of offline learning: worst subgroups, splits, methods."""

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paper import omniprediction
from paper.omniprediction_tasks import LISTED, task
from regretless.forecaster import OfflineOmnipredictor

pytestmark = pytest.mark.slow


def test_subgroup_regret_is_the_worst_of_all_groups() -> None:
    rng = np.random.default_rng(0)
    tables = {name: rng.random((200, 10)) for name in LISTED}
    acts = {name: rng.integers(2, size=200) for name in LISTED}
    other = {name: rng.integers(3, size=200) for name in LISTED}
    worst = 0.0
    for name, table in tables.items():
        for a, b in product(range(2), range(3)):
            rows = (acts[name] == a) & (other[name] == b)
            if rows.sum() >= 20:
                worst = max(worst, table[rows, a].mean() - table[rows].mean(0).min())
    played: Any = {omniprediction.OURS: acts, "other": other}
    assert omniprediction.subgroup(acts, played, tables) == pytest.approx(worst)
    assert worst > 0


def test_a_split_has_no_row_twice() -> None:
    one, two = task("wind", 300, 0), task("wind", 300, 1)
    assert len(one.x) == len(one.y) == 300
    assert len(one.fresh_x) == 1461 - 300
    whole = [np.sort(np.concatenate([t.y, t.fresh_y])) for t in (one, two)]
    assert whole[0] == pytest.approx(whole[1])
    assert (one.y != two.y).any()
    assert one.shifted.mean() >= 0.25


def test_omniprediction_measures_every_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    fast = partial(OfflineOmnipredictor, trees=10)
    monkeypatch.setattr(omniprediction, "OfflineOmnipredictor", fast)
    table = pd.DataFrame(
        [row for seed in (0, 1) for row in omniprediction.one_run(("wine", 120), seed)]
    )
    rivals = {"mean, boosted", "quantiles, boosted", "forest weights", "constant"}
    assert set(table["method"]) == {omniprediction.OURS, omniprediction.PER_LOSS} | rivals
    assert set(table["setting"]) == set(omniprediction.SETTINGS)
    silent = table["loss"].isna()
    assert set(table["method"][silent]) == {omniprediction.PER_LOSS}
    assert set(table["setting"][silent]) == {"later"}
    listed = omniprediction.against(table, "listed", "loss")
    assert listed.loc[("wine", 120), "constant"] > 10  # thousandths: a constant is far worse
    assert "standard error of the best one model for all: " in omniprediction.text(table)
    written = omniprediction.TABLES["omniprediction"].write(table, tmp_path / "omniprediction")
    assert [path.name for path in written] == ["omniprediction.csv"]
