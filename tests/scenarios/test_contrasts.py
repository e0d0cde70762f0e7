"""Contrasts, branches, families, interactions and regressions: by hand, at planted answers."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from page_session import command
from pages import check

from regretless import load_study
from regretless.market.core.errors import UserError
from regretless.scenarios.frames import export
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies.analysis.contrasts import (
    EVERYBODY,
    Rules,
    contrasts_table,
    equivalent,
    interactions_table,
)
from regretless.scenarios.studies.analysis.measures import COHORTS, MARKET, MEASURES, with_everybody
from regretless.scenarios.studies.analysis.parameters import parted, regression_table
from regretless.scenarios.studies.answers import print_summary
from regretless.scenarios.studies.conduct import Options, conduct

BASE = """\
name = "tiny"
rounds = 30
adversary = { kind = "pump-and-dump", outcomes = 2, exposure = [0.0, 1.0], pump = 5, dump = 5 }
cohort = [
  { name = "one", utility = "linear", count = 3, actions = 2 },
  { name = "two", utility = "linear", count = 1, actions = 2, response = "hedge" },
]
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


def pair_of(losses: list[float]) -> Any:
    """Return the one contrast between the first half of some runs and the second."""
    seeds = len(losses) // 2
    parameters = {"run": range(2 * seeds), "seed": [*range(seeds)] * 2}
    keys = pd.DataFrame(parameters | {"key": ["x"] * seeds + ["y"] * seeds})
    table = contrasts_table(frame({r: {"a": v} for r, v in enumerate(losses)}), keys)
    assert len(table) == 1
    return table.iloc[0]


def test_a_contrast_by_hand() -> None:
    row = pair_of([0.1, 0.2, 0.3, 0.2, 0.2, 0.6])
    assert [row[name] for name in ("key", "value", "against", "seeds")] == ["key", "y", "x", 3]
    assert row["mean"] == pytest.approx(0.4 / 3)
    half = 4.302653 * np.std([0.1, 0.0, 0.3], ddof=1) / np.sqrt(3)  # Student's quantile
    assert (row["low"], row["high"]) == pytest.approx((0.4 / 3 - half, 0.4 / 3 + half))


def test_what_is_common_to_a_pair_does_not_widen_it() -> None:
    """Noise of the seeds that is a thousand times the effect cancels."""
    noise = np.random.default_rng(0).random(5)
    row = pair_of([*noise, *(noise + 0.001)])
    assert row["mean"] == pytest.approx(0.001)
    assert row["high"] - row["low"] < 1e-9


def test_everybody_is_every_agent() -> None:
    pooled = with_everybody(frame({0: {"a": 0.4, "b": 0.8}})).set_index("cohort").loc[EVERYBODY]
    assert pooled["mean_loss"] == pytest.approx(0.7)
    assert pooled["agents"] == 4
    assert np.isnan(pooled["swap_regret_mean"])


def test_branches_of_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = conduct(worlds.study(tmp_path, STUDY, BASE), Options(tmp_path / "o", jobs=1))
    assert study.failures()["error"].tolist() == []
    table = study.table("branches").set_index(["branch", "run", "agent"]).sort_index()
    assert (table.loc["nothing", "gain"] == 0.0).all()
    assert (table.loc["calm", "gain"] != 0.0).any()
    others = table.loc["stubborn"].query("agent != 2")
    assert (others["gain"] == 0.0).all()  # no market: nobody notices
    found = study.contrasts().query("key == 'branch'")
    found = found.set_index(["value", "cohort", "measure"]).sort_index()
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
    with pytest.raises(UserError, match=words):  # noqa: PT012 - reading it, or conducting it
        design = worlds.study(tmp_path, STUDY.replace(old, new), BASE)
        conduct(design, Options(tmp_path / "o", jobs=1))
    assert not (tmp_path / "o").exists()


# Families.


SEEDS = 10
RNG = np.random.default_rng(11)


def runs_of(grid: dict[str, list[Any]], seeds: int = SEEDS) -> pd.DataFrame:
    rows = [
        dict(zip(grid, values, strict=True)) | {"seed": seed}
        for values in itertools.product(*grid.values())
        for seed in range(seeds)
    ]
    return pd.DataFrame(rows).rename_axis("run").reset_index()


def measured(parameters: pd.DataFrame, **columns: Any) -> pd.DataFrame:
    rows = pd.DataFrame({"run": parameters["run"], "cohort": "a", "agents": 1} | columns)
    return rows.reindex(columns=COHORTS)


def test_an_interaction_is_a_difference_of_differences() -> None:
    """Noise of the seeds cancels, and so do effects of each key alone."""
    parameters = runs_of({"a": [0, 1, 2], "b": ["x", "y"], "c": [False, True]})
    a, y = parameters["a"].to_numpy(), (parameters["b"] == "y").to_numpy()
    noise = RNG.normal(size=SEEDS)[parameters["seed"]] + RNG.normal(0, 1e-3, len(parameters))
    loss = 0.1 * a + 0.2 * y + 0.05 * a * y + 0.4 * parameters["c"] + noise
    table = interactions_table(measured(parameters, mean_loss=loss), parameters)
    found = table[(table["key"] == "a") & (table["other_key"] == "b")].set_index("value")
    assert found["against"].tolist() == ["0", "0"]
    assert found["other_value"].tolist() == ["y", "y"]
    np.testing.assert_allclose(found["mean"], [0.05, 0.10], atol=2e-3)
    assert (found["simultaneous_low"] > 0).all()
    others = table[table["other_key"] == "c"]
    assert len(others) == 3  # a and c, b and c
    assert (others["p_adjusted"] > 0.01).all()
    assert (others["simultaneous_low"] < 0).all()


def test_the_control_is_what_others_are_compared_with() -> None:
    parameters = runs_of({"arm": ["one", "two", "none"]}, 3)
    loss = parameters["arm"].map({"one": 0.5, "two": 0.7, "none": 0.4})
    rules = Rules(controls={"arm": "none"})
    found = contrasts_table(measured(parameters, mean_loss=loss), parameters, rules=rules)
    assert found[["value", "against"]].to_numpy().tolist() == [["one", "none"], ["two", "none"]]
    np.testing.assert_allclose(found["mean"], [0.1, 0.3])


def test_all_contrasts_hold_at_once_where_nothing_is_different() -> None:
    """Of 200 null studies 5 % at most have any contrast that is called different."""
    parameters = runs_of({"arm": list("abcd")})
    count, wrong, missed = 200, 0, 0
    for _ in range(count):
        base = RNG.normal(size=(len(parameters), 3))
        columns = {name: base @ RNG.normal(size=3) for name in MEASURES[:5]}
        found = contrasts_table(measured(parameters, **columns), parameters)
        assert len(found) == 15
        wrong += bool((found["p_adjusted"] < 0.05).any())
        missed += bool(((found["simultaneous_low"] > 0) | (found["simultaneous_high"] < 0)).any())
    most = 0.05 * count + 2 * np.sqrt(0.05 * 0.95 * count)
    assert wrong <= most
    assert 1 <= missed <= most  # not so wide that they never miss


@pytest.mark.parametrize(("effect", "least", "most"), [(0.0, 0.9, 1.0), (0.02, 0.0, 0.1)])
def test_equivalence_is_within_the_margin_alone(effect: float, least: float, most: float) -> None:
    """An effect as large as the margin is called equivalent 5 % of the time."""
    parameters, count, shown = runs_of({"arm": [0, 1]}), 100, 0
    for _ in range(count):
        loss = effect * parameters["arm"] + RNG.normal(0, 0.01, len(parameters))
        rows = measured(parameters, mean_loss=loss, welfare_mean=-loss)
        found = contrasts_table(rows, parameters, rules=Rules(margin=0.02))
        said = {row["measure"]: equivalent(row) for row in found.to_dict("records")}
        assert said["welfare_mean"] == ""  # in units of its own, it has no margin
        shown += said["mean_loss"] == "equivalent within 0.02"
    assert least <= shown / count <= most


def test_a_failed_run_costs_its_seed_and_no_more() -> None:
    parameters = runs_of({"arm": ["x", "y", "z"]})
    loss = pd.Series(RNG.normal(size=len(parameters)))
    rows = measured(parameters, mean_loss=loss)
    found = contrasts_table(rows.drop(index=SEEDS + 2), parameters)
    assert found["seeds"].tolist() == [SEEDS - 1, SEEDS]
    assert found["simultaneous_low"].notna().all()


def people(parameters: pd.DataFrame, *, slope: float, helped: float = 0.0) -> pd.DataFrame:
    """Draw 20 agents a run; those of a seed are the same people with the same luck.

    Regret grows with rho by ``slope``, and where arm is 1 agents above 0.6 regret ``helped`` less.
    """
    seeds = parameters["seed"].nunique()
    rho, luck = RNG.uniform(0.2, 0.8, (seeds, 20)), RNG.normal(0, 0.1, (seeds, 2, 1))
    noise = RNG.normal(0, 0.01, (len(parameters), 20))
    own, arm = rho[parameters["seed"]], parameters["arm"].to_numpy()[:, None]
    common = (luck[:, 0] + luck[:, 1] * rho)[parameters["seed"]]
    regret = slope * own + common + noise - helped * arm * (own > 0.6)
    names = ["loss_scale", "loss_offset", "external_regret", "decision_swap_regret"]
    kinds = np.where(own.ravel() > 0.5, "late", "early")
    columns = {
        "run": np.repeat(parameters["run"], 20),
        "cohort": "a",
        "swap_regret": regret.ravel(),
    }
    columns |= {"param_rho": own.ravel(), "param_kind": kinds, "exploitability": np.nan}
    columns |= dict.fromkeys(names, 1.0) | {"mean_loss": 0.5}
    return pd.DataFrame(columns).reset_index(drop=True)


def test_intervals_of_a_regression_cover_what_was_planted() -> None:
    """Luck that a seed's agents share in all runs is no information about the slope."""
    parameters, held, count = runs_of({"arm": [0, 1]}, 30), 0, 200
    for _ in range(count):
        agents = people(parameters, slope=0.3)
        found = regression_table(agents, parameters, ["swap_regret"], on=["rho", "arm"])
        row = found.set_index("term").loc["rho"]
        assert row["clusters"] == 30
        held += row["low"] <= 0.3 <= row["high"]
    assert 0.9 <= held / count <= 0.985


def test_a_regression_by_hand() -> None:
    """Without noise: coefficients exactly, words by value, and nothing twice."""
    parameters = runs_of({"arm": [0, 1], "rule": ["x", "y"]}, 3)
    agents = people(parameters, slope=0.0)
    late = agents["param_kind"] == "late"
    arm, rule = (parameters.set_index("run")[k][agents["run"]].to_numpy() for k in ("arm", "rule"))
    agents["swap_regret"] = 0.1 + 0.5 * agents["param_rho"] + 0.2 * late + 0.03 * arm
    agents["swap_regret"] -= 0.07 * (rule == "x")
    agents["param_twice"] = 2 * agents["param_rho"]
    control = {"rule": "y", "kind": "early"}
    found = regression_table(agents, parameters, ["swap_regret"], controls=control)
    coefficients = dict(zip(found["term"], found["coefficient"], strict=True))
    assert coefficients == pytest.approx(
        {"constant": 0.1, "rho": 0.5, "kind = late": 0.2, "arm": 0.03, "rule = x": -0.07}
    )
    with pytest.raises(UserError, match="regression on 'rhoo': did you mean 'rho'"):
        regression_table(agents, parameters, ["swap_regret"], on=["rhoo"])


def test_the_third_that_a_value_helps_is_found() -> None:
    parameters = runs_of({"arm": [0, 1]})
    parts = parted(people(parameters, slope=0.3, helped=0.05))
    found = contrasts_table(parts, parameters).query("measure == 'swap_regret_mean'")
    thirds = found[found["cohort"].str.contains("rho")]
    assert len(thirds) == 3
    np.testing.assert_allclose(thirds["mean"], [0.0, 0.0, -0.05], atol=0.006)
    assert (thirds["p_adjusted"] < 0.05).tolist() == [False, False, True]
    assert found["cohort"].str.contains("kind").sum() == 2


CROWD = """\
name = "crowd"
rounds = 20
adversary = { kind = "iid", outcomes = 2, concentration = 20.0 }
market = { feedback = "same-round", impact = 0.4 }
cohort = [
{ name = "followers", utility = "ces", parameters = { rho = [0.3, 0.9] }, count = 6, actions = 3 },
]
"""
CONTROLLED = """
scenario = "tiny.toml"
seeds = 3
control = "half"
margin = { mean_loss = 1.0 }
[grid]
"market.impact" = [0.2, 0.8]
[grid.listen]
nobody = { "cohort.followers.response" = "hedge" }
half = { "cohort.followers.response" = "quantal", "cohort.followers.eta" = 0.2 }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    worlds.study(folder, CONTROLLED, CROWD)
    command(f"regretless study {folder / 'sweep.toml'} --out {folder / 'out'} --jobs 1")
    command(f"regretless report {folder / 'out'} --tables {folder / 'tables'}")
    return folder


def test_a_study_file_names_its_control_and_margin(home: Path) -> None:
    study = load_study(home / "out")
    contrasts = study.contrasts()
    listen = contrasts[contrasts["key"] == "listen"]
    assert set(listen["against"]) == {"half"}
    assert set(listen["value"]) == {"nobody"}
    assert listen.set_index("measure")["margin"].dropna().to_dict() == {"mean_loss": 1.0}
    terms = set(study.regression("swap_regret")["term"])
    assert terms == {"constant", "rho", "market.impact", "listen = nobody"}


def test_the_market_is_compared_in_pairs(home: Path) -> None:
    """Every number of the table of rounds, by hand from the runs."""
    study = load_study(home / "out")
    rounds = study.table("rounds").merge(study.parameters(), on="run")
    deviation = rounds.groupby(["market.impact", "listen", "seed"])["y_0"].std(ddof=0)
    apart = deviation[0.8] - deviation[0.2]
    found = study.contrasts().query("key == 'market.impact' and measure == 'y_0_deviation'")
    assert found["cohort"].tolist() == [MARKET]
    assert found["mean"].iloc[0] == pytest.approx(apart.mean())
    assert found["seeds"].iloc[0] == 3


def test_every_table_is_written_as_csv_and_latex(home: Path) -> None:
    study = load_study(home / "out")
    for name, table in study.results().items():
        kept = pd.read_parquet(home / "out" / f"{name}.parquet")
        pd.testing.assert_frame_equal(kept, table)
        read = pd.read_csv(home / "tables" / f"{name}.csv")
        assert list(read) == list(table)
        assert len(read) == len(table)
        latex = (home / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        assert f"\\label{{tab:{name}}}" in latex
        assert latex.count(r"\\") >= len(table)
    with pytest.raises(UserError, match="is not empty; give the tables a folder of their own"):
        export({}, home / "tables")


def test_the_page_shows_what_was_tested(home: Path) -> None:
    page = check((home / "out" / "report.html").read_text(encoding="utf-8"))
    study = load_study(home / "out")
    heads = [row for row in page.rows if "simultaneous interval" in row]
    assert len(heads) == 3  # effects, interactions, by parameter
    assert any("equivalent within 1" in row for row in page.rows)
    row = study.interactions().query("measure == 'mean_loss'").iloc[0]
    words = [row[name] for name in ("key", "value", "against", "other_key", "other_value")]
    assert any(shown[:5] == words for shown in page.rows)
    slope = study.regression("swap_regret").set_index("term").loc["rho"]
    (shown,) = [float(row[3]) for row in page.rows if row[1:3] == ["swap_regret", "rho"]]
    most = slope[["coefficient", "low", "high"]].abs().max()
    assert shown == pytest.approx(slope["coefficient"], abs=0.005 * most)  # three digits of it


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"half"', '"harf"', "control = 'harf' is a value of no key"),
        ('control = "half"', 'control = { listen = "harf" }', "listen = 'harf' is no value"),
        ("mean_loss = 1.0", "mean_los = 1.0", "margin.mean_los: no such measure; did you mean"),
        ("mean_loss = 1.0", "mean_loss = 0.0", "margin.mean_loss = 0.0: must be greater"),
        ("{ mean_loss = 1.0 }", "-0.1", "margin = -0.1: must be greater"),
        ("[0.2, 0.8]", '[0.2, "half"]', "of market.impact, listen; write control = { KEY"),
    ],
)
def test_what_is_no_control_or_margin_is_a_line(home: Path, old: str, new: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        worlds.study(home, CONTROLLED.replace(old, new), CROWD, name="wrong").settings_to_check(())
