"""Paired contrasts and branches in studies: by hand, at level, and with known answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regretless.market.core.errors import UserError
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies.analysis.contrasts import EVERYBODY, contrasts_table
from regretless.scenarios.studies.analysis.measures import COHORTS, with_everybody
from regretless.scenarios.studies.answers import print_summary
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import read_study

BASE = """
name = "tiny"
rounds = 30
adversary = { kind = "pump-and-dump", outcomes = 2, exposure = [0.0, 1.0], pump = 5, dump = 5 }
[[cohort]]
name = "one"
utility = "linear"
count = 3
actions = 2
[[cohort]]
name = "two"
utility = "linear"
count = 1
actions = 2
response = "hedge"
"""
STUDY = """
scenario = "tiny.toml"
seeds = 2
leave_out = ["forecasts"]
[branch]
at = 10
[branch.changes.nothing]
[branch.changes.calm]
"adversary.kind" = "iid"
"adversary.concentration" = 0.0
[branch.changes.stubborn]
"agent.2" = 1
"""


def frame(losses: dict[int, dict[str, float]]) -> pd.DataFrame:
    """Make a table of cohorts by run, with agents 1 and 3 in cohorts a and b."""
    rows = [
        {"run": run, "cohort": name, "mean_loss": loss, "agents": {"a": 1, "b": 3}[name]}
        for run, own in losses.items()
        for name, loss in own.items()
    ]
    return pd.DataFrame(rows).reindex(columns=COHORTS)


def test_a_contrast_by_hand() -> None:
    parameters = pd.DataFrame(
        {"run": range(6), "seed": [0, 1, 2] * 2, "key": ["x"] * 3 + ["y"] * 3}
    )
    losses = [0.1, 0.2, 0.3, 0.2, 0.2, 0.6]
    table = contrasts_table(
        frame({run: {"a": loss} for run, loss in enumerate(losses)}), parameters
    )
    assert len(table) == 1
    row = table.iloc[0]
    assert [row[name] for name in ("key", "value", "against", "seeds")] == ["key", "y", "x", 3]
    assert row["mean"] == pytest.approx(0.4 / 3)
    half = 4.302653 * np.std([0.1, 0.0, 0.3], ddof=1) / np.sqrt(3)  # Student's quantile
    assert (row["low"], row["high"]) == pytest.approx((0.4 / 3 - half, 0.4 / 3 + half))


def test_what_is_common_to_a_pair_does_not_widen_it() -> None:
    """Noise of the seeds that is a thousand times the effect cancels."""
    noise = np.random.default_rng(0).random(5)
    losses = dict(enumerate([*noise, *(noise + 0.001)]))
    parameters = pd.DataFrame({"run": range(10), "seed": [*range(5)] * 2, "key": [1] * 5 + [2] * 5})
    row = contrasts_table(frame({r: {"a": v} for r, v in losses.items()}), parameters).iloc[0]
    assert row["mean"] == pytest.approx(0.001)
    assert row["high"] - row["low"] < 1e-9


def test_everybody_is_every_agent() -> None:
    pooled = with_everybody(frame({0: {"a": 0.4, "b": 0.8}})).set_index("cohort").loc[EVERYBODY]
    assert pooled["mean_loss"] == pytest.approx(0.7)
    assert pooled["agents"] == 4
    assert np.isnan(pooled["swap_regret_mean"])


def test_branches_of_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tiny.toml").write_text(BASE, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    study = conduct(read_study(str(tmp_path / "study.toml")), Options(tmp_path / "o", jobs=1))
    assert study.failures()["error"].tolist() == []
    table = study.table("branches").set_index(["branch", "run", "agent"]).sort_index()
    assert (table.loc["nothing", "gain"] == 0.0).all()
    assert (table.loc["calm", "gain"] != 0.0).any()
    others = table.loc["stubborn"].query("agent != 2")
    assert (others["gain"] == 0.0).all()  # no market: nobody notices
    found = (
        study.contrasts()
        .query("key == 'branch'")
        .set_index(["value", "cohort", "measure"])
        .sort_index()
    )
    own = table.loc["calm"].query("cohort == 'one'").groupby("run")["gain"].mean()
    assert found.loc[("calm", "one", "gain"), "mean"] == pytest.approx(own.mean())
    assert ("calm", EVERYBODY, "loss_gain") in found.index
    gains = study.gains().set_index(["branch", "agent"])
    own = table.loc["calm"].query("agent == 1")["gain"].to_numpy()
    half = 12.706205 * own.std(ddof=1) / np.sqrt(2)  # Student's quantile
    row = gains.loc[("calm", 1)]
    assert [row["seeds"], row["cohort"]] == [2, "one"]
    assert (row["low"], row["high"]) == pytest.approx((own.mean() - half, own.mean() + half))
    print_summary(study)
    assert "2 of 2 runs complete, 0 failed" in (told := capsys.readouterr().out)
    assert "stubborn" in told
    page = write_report(tmp_path / "o").read_text(encoding="utf-8")
    assert "nothing, calm, stubborn" in page
    assert "from round 10" in page


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("at = 10", "at = 30", r"branch.at = 30: a run has 30 rounds; give fewer"),
        ("at = 10", "at = -1", "branch.at = -1"),
        ('"agent.2" = 1', '"agent.9" = 1', "there are 4 agents"),
        ('"agent.2" = 1', '"cohort.one.count" = 1', "does not change"),
    ],
)
def test_a_faulty_branch_is_one_line_before_anything_is_played(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    (tmp_path / "tiny.toml").write_text(BASE, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=words):
        conduct(read_study(str(tmp_path / "study.toml")), Options(tmp_path / "o", jobs=1))
    assert not (tmp_path / "o").exists()
