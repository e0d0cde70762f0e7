"""What a study compares is comparable, and is in its tables, on its page and in its files."""

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from browser import visit_page
from page_session import command
from report_pages import ReportPage, chart_names, parse_page
from small_scenarios import cohort_table, play_to_end, read_scenario, write_study

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.scenarios.report import study_page
from regretless.scenarios.report.study_page import StudyData, setting_curves, setting_names
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import Study, load_study
from regretless.scenarios.studies.analysis.contrasts import EVERYBODY
from regretless.scenarios.studies.analysis.measures import MARKET, interval
from regretless.scenarios.studies.answers import print_summary
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.table_files import export

NASTY = '</script><b>bold<b> & "%{x} $y$"'
RHO = {"rho": [0.3, 0.9]}
CROWD = {
    "name": "crowd",
    "rounds": 12,
    "windows": {"every": 6},
    "measures": ["rounds", "near", "all_or_nothing", "whole"],
    "adversary": {"kind": "iid", "outcomes": 2},
    "market": {"feedback": "same-round", "impact": 0.4},
    "cohort": [
        cohort_table("followers", 3, 2, "ces", parameters=RHO),
        cohort_table(f"learners {NASTY}", 3, 3, "ces", parameters=RHO, response="hedge")
        | {"measures": ["external", "swap"]},
    ],
}
ARMS = f"""\
scenario = "tiny.toml"
description = '''claim {NASTY}'''
seeds = 2
control = "half"
margin = {{ mean_loss = 1.0 }}
set = {{ "cohort.followers.actions" = 3 }}
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
[grid.listen]
nobody = {{ "cohort.followers.response" = "hedge" }}
half = {{}}
others = {{ "cohort.followers.count" = 0 }}
"""
KEYS = ["forecaster.kind", "listen"]


def rounds(model: Any) -> float:
    return float(model.played)


def near(model: Any) -> float:
    return 1.0 - 0.05 * first(model) ** 4


def all_or_nothing(model: Any) -> float:
    return float(first(model) > 0.55)


def whole(model: Any) -> float:
    return 1.0


def beyond(model: Any) -> float:
    return 1.5


def first(model: Any) -> float:
    return float(model.game.history.last(model.played)[0][0])


SHARES = near, all_or_nothing, whole, beyond


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder in which commands run, and register measures."""
    home = tmp_path_factory.mktemp("working_folder")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setattr(register.measure, "_registered", dict(register.measure._registered))
        patch.setattr(register.measure, "within", dict(register.measure.within))
        register.measure("rounds")(rounds)
        for share in SHARES:
            register.measure(share.__name__, within=(0, 1))(share)
        yield home


@pytest.fixture(scope="module")
def arms(working_folder: Path) -> Study:
    """Return a study of who follows which forecast, with the same people and with fewer."""
    design = write_study(working_folder, ARMS, tomli_w.dumps(CROWD), name="arms")
    study = conduct(design, Options(working_folder / "arms", jobs=1))
    command("regretless report arms --tables tables")
    return study


@pytest.fixture(scope="module")
def page(arms: Study) -> ReportPage:
    return parse_page((arms.path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def directory(arms: Study, tmp_path: Path) -> Path:
    return shutil.copytree(arms.path, tmp_path / "arms", ignore=shutil.ignore_patterns("*.html"))


def shown(directory: Path) -> ReportPage:
    return parse_page(write_report(directory).read_text(encoding="utf-8"))


def rewrite(directory: Path, **changes: Any) -> None:
    """Change the record of a study."""
    file = directory / "study.json"
    record = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps(record), encoding="utf-8")


def settings(page: ReportPage) -> list[list[str]]:
    start = next(i for i, row in enumerate(page.rows) if row[-1] == "runs")
    return page.rows[start + 1 :]


def test_a_measure_of_the_round_has_a_contrast_whoever_is_there(arms: Study) -> None:
    own = "measure == 'rounds' and cohort == 'everybody' and key == 'listen'"
    found = arms.contrasts().query(own)[["value", "against", "seeds", "mean"]].to_numpy().tolist()
    assert found == [[other, "half", 2, 0.0] for other in ("nobody", "others")]
    values = set(arms.effects().query("key == 'listen'")["value"])
    assert values == set(arms.parameters()["listen"])  # plain text


def test_intervals_of_shares_stay_in_their_range(arms: Study, working_folder: Path) -> None:
    """Extreme shares of y in [0, 1]: levels stay in [0, 1], changes in [-1, 1], and no other is."""
    for share in CROWD["measures"][1:]:
        own = f"measure == '{share}' and cohort == 'everybody'"
        level, change = arms.effects().query(own), arms.contrasts().query(own)
        assert len(level) == 5
        assert ((level["low"] >= 0) & (level["high"] <= 1)).all()
        assert ((level["low"] <= level["mean"]) & (level["mean"] <= level["high"])).all()
        assert ((change["low"] >= -1) & (change["high"] <= 1)).all()
    with pytest.raises(UserError, match=r"measure 'beyond' returned 1.5, not within 0 and 1"):
        play_to_end(read_scenario(CROWD, 'measures=["beyond"]'))


def test_arms_that_switch_a_response_hold_the_same_people(arms: Study) -> None:
    agents = arms.agents().merge(arms.parameters(), on="run")
    same = [
        own.sort_values([KEYS[0], "seed", "agent"])[["cohort", "loss_scale", "param_rho"]]
        for name, own in agents.groupby("listen")
        if name != "others"
    ]
    for arm in same[1:]:
        pd.testing.assert_frame_equal(arm.reset_index(drop=True), same[0].reset_index(drop=True))
    contrasts = arms.contrasts()
    assert contrasts.loc[contrasts["value"] != "others", "same_scale"].all()


def test_the_market_is_compared_in_pairs(arms: Study) -> None:
    """Every number of the table of rounds, by hand from the runs."""
    rounds = arms.table("rounds").merge(arms.parameters(), on="run")
    deviation = rounds.groupby([*KEYS, "seed"])["y_0"].std(ddof=0)
    apart = deviation["running-mean"] - deviation["decision-swap"]
    found = arms.contrasts().query("key == 'forecaster.kind' and measure == 'y_0_deviation'")
    (row,) = found[["cohort", "mean", "seeds"]].to_numpy().tolist()
    assert row == [MARKET, pytest.approx(apart.mean()), 2]


def test_every_table_is_written_as_csv_and_latex(arms: Study, working_folder: Path) -> None:
    for name, table in arms.results().items():
        pd.testing.assert_frame_equal(pd.read_parquet(arms.path / f"{name}.parquet"), table)
        read = pd.read_csv(working_folder / "tables" / f"{name}.csv")
        assert (list(read), len(read)) == (list(table), len(table))
        latex = (working_folder / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        assert f"\\label{{tab:{name}}}" in latex
        assert latex.count(r"\\") >= len(table)
    with pytest.raises(UserError, match="is not empty; give the tables a folder of their own"):
        export({}, working_folder / "tables")


def test_every_panel_and_a_link_to_every_run_are_there(arms: Study, page: ReportPage) -> None:
    named = {"effects", "interactions", "value", "curves", "windows", "by_parameter"}
    assert chart_names(page) == named
    assert "12 runs: 6 settings, 2 seeds each. 12 done, 0 failed, 0 missing." in page.text
    assert f"claim {NASTY}" in page.text
    assert "Failures" not in page.text
    assert "All settings" in page.text
    assert ["forecaster.kind", "varied", "decision-swap, running-mean"] in page.rows
    assert ["cohort.followers.actions", "fixed", "3"] in page.rows
    assert ["seed", "repeated", "0, 1"] in page.rows
    assert "b" not in page.tags
    text = (arms.path / "report.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="([^#"]*)">', text)
    assert sorted(set(links)) == [f"runs/run={run:04d}/" for run in range(12)]
    assert all((arms.path / link).is_dir() for link in links)


def test_the_page_shows_what_was_tested(arms: Study, page: ReportPage) -> None:
    heads = [row for row in page.rows if "simultaneous interval" in row]
    assert len(heads) == 3  # effects, interactions, by parameter
    assert any("equivalent within 1" in row for row in page.rows)
    row = arms.interactions().query("measure == 'mean_loss'").iloc[0]
    words = [row[name] for name in ("key", "value", "against", "other_key", "other_value")]
    assert any(shown[:5] == words for shown in page.rows)
    regression = arms.regression("swap_regret").set_index(["cohort", "term"])
    others = {"forecaster.kind = running-mean", "listen = nobody", "listen = others"}
    assert {term for _, term in regression.index} == {"constant", "rho"} | others
    slope = regression.loc[("followers", "rho")]
    own = ["followers", "swap_regret", "rho"]
    (shown,) = [float(row[3]) for row in page.rows if row[:3] == own]
    most = slope[["coefficient", "low", "high"]].abs().max()
    assert shown == pytest.approx(slope["coefficient"], abs=0.005 * most)  # three digits of it


def last_digit(number: str) -> float:
    return 10.0 ** -len(number.partition(".")[2])


def test_settings_are_means_over_seeds_with_half_the_interval(
    arms: Study, page: ReportPage
) -> None:
    runs = arms.parameters().merge(arms.cohorts(), on="run")
    rows = settings(page)
    assert len(rows) == 10
    for row in rows:
        own = runs[(runs[KEYS].astype(str) == row[:2]).all(axis=1) & (runs["cohort"] == row[2])]
        assert len(own) == 2
        mean, half = row[3].split(" ± ")
        _, low, high = interval(own["mean_loss"].to_numpy(), (0.0, 1.0))
        numbers = [own["mean_loss"].mean(), (high - low) / 2]
        assert [float(mean), float(half)] == pytest.approx(numbers, abs=last_digit(mean))
        assert row[-1].split() == [str(run) for run in own["run"]]


def test_values_are_those_of_the_table(arms: Study, page: ReportPage) -> None:
    value = arms.value()
    head = next(i for i, row in enumerate(page.rows) if "difference" in row)
    rows = page.rows[head + 1 : head + 1 + len(value)]
    for row, found in zip(rows, value.to_dict("records"), strict=True):
        ends = [float(end) for end in (row[-2], *row[-1].split(" to "))]
        numbers = [found[name] for name in ("mean", "low", "high")]
        assert ends == pytest.approx(numbers, abs=last_digit(row[-2]))
        assert row[-3] == str(found["pairs"])
        assert row[2] == found["baseline"] == "running-mean"


def test_whiskers_of_means_end_where_their_intervals_do(arms: Study) -> None:
    data = StudyData(arms)
    figure, rows = study_page.interactions(data), data.of("pair_effects").dropna(subset="low")
    drawn = set()
    for mark in figure.data:
        assert not mark.error_y.symmetric
        ends = mark.y - mark.error_y.arrayminus, mark.y + mark.error_y.array
        drawn |= {*zip(*np.round(ends, 9).tolist(), strict=True)}
    entries = [(mark.meta, mark.name) for mark in figure.data if mark.showlegend]
    assert len(set(entries)) == len(entries) < len(figure.data)  # though each panel has its lines
    assert {*map(tuple, rows[["low", "high"]].round(9).to_numpy().tolist())} >= drawn
    off_centre = (rows["high"] + rows["low"] - 2 * rows["mean"]).abs()
    assert (off_centre > 1e-6).any()


def test_curves_end_at_the_regret_of_the_last_round(arms: Study) -> None:
    """A mean over agents, then over seeds; swap regret for who kept no decision swap regret."""
    names = setting_names(arms.parameters())
    curves = setting_curves(arms, names)
    agents = arms.agents()
    agents["regret"] = agents["decision_swap_regret"].fillna(agents["swap_regret"])
    agents["setting"] = agents["run"].map(names)
    by_run = agents.groupby(["setting", "cohort", "run"])["regret"].mean()
    expected = by_run.groupby(["setting", "cohort"]).mean()
    last = curves[curves["round"] == 11].set_index(["setting", "cohort"])
    assert (last["seeds"] == 2).all()
    pd.testing.assert_series_equal(last["mean"], expected, check_names=False, check_like=True)
    figure = study_page.curves(StudyData(arms))
    assert len(figure.data) == 10
    assert all(trace.y[-1] in last["mean"].to_numpy() for trace in figure.data)


def test_a_browser_draws_the_figures(arms: Study, page: ReportPage, tmp_path: Path) -> None:
    seen = visit_page(arms.path / "report.html", tmp_path / "profile")
    assert seen.console == ()
    # two keys and three cohorts of one's own measure; a line per value of the second key for who
    # kept decision swap regret, also in the windows; one setting has no followers
    drawn = {"effects": 6, "interactions": 2, "curves": 10, "value": 2, "windows": 4}
    assert {name: seen.count_traces(name) for name in drawn} == drawn
    assert seen.document.count('class="js-plotly-plot"') == len(drawn) + 1
    last = {"runs", "95 % interval", "adjusted p", "equivalence", "clusters"}
    heads = sum(len(row) for row in page.rows if row[-1] in last)
    assert seen.document.count('<button type="button">') == heads
    assert "<title>arms</title>" in seen.document


def test_same_runs_give_the_same_bytes(arms: Study, page: ReportPage, directory: Path) -> None:
    rewrite(directory, written="another day", wall_seconds=1e6)
    assert write_report(directory).read_bytes() == (arms.path / "report.html").read_bytes()


def test_failed_and_missing_runs_are_told(directory: Path) -> None:
    for run in (1, 10, 11):
        shutil.rmtree(directory / "runs" / f"run={run:04d}")
    failure = {"run": 1, "kind": "ValueError", "error": f"it\nrains {NASTY}", "traceback": ""}
    pd.DataFrame([failure]).to_parquet(directory / "failures.parquet")
    page = shown(directory)
    assert "9 done, 1 failed, 2 missing." in page.text
    assert f"run 1: ValueError: it rains {NASTY}" in page.text
    assert page.tags.count("del") == 4  # two cohorts share run 1, the last setting has none
    first, last = settings(page)[0], settings(page)[-1]
    assert "±" not in first[3]  # one seed has no interval
    assert set(last[2:-1]) == {"-"}
    assert "b" not in page.tags
    (directory / "report.html").unlink()
    shutil.rmtree(directory / "runs")
    with pytest.raises(UserError, match="holds no complete run; play the study again"):
        write_report(directory)
    assert not (directory / "report.html").exists()


def test_a_study_of_the_scenario_as_it_is(arms: Study, directory: Path) -> None:
    """Without keys there are no effects and no value, but curves, windows and one setting."""
    table = pd.read_parquet(directory / "parameters.parquet").head(2)
    table[["run", "seed"]].to_parquet(directory / "parameters.parquet")
    for run in range(2, 12):
        shutil.rmtree(directory / "runs" / f"run={run:04d}")
    file = {key: value for key, value in arms.record["study"]["file"].items() if key != "control"}
    rewrite(directory, study=arms.record["study"] | {"file": file})
    page = shown(directory)
    assert "2 runs: 1 setting, 2 seeds each. 2 done" in page.text
    assert chart_names(page) == {"curves", "windows"}
    assert "the scenario as it is" in page.charts
    assert [row[0] for row in settings(page)] == ["followers", f"learners {NASTY}"]


def test_the_page_ranks_by_welfare_and_names_the_key_that_changes_the_unit(
    working_folder: Path,
) -> None:
    """A slope lowers the mean loss, by what losses are divided by, and lowers welfare."""
    key = "cohort.firms.parameters.slope"
    few = 'scenario = "oligopoly"\nseeds = 2\nrounds = 20\nset = { "cohort.firms.actions" = 5 }\n'
    grid = f'[grid]\n"{key}" = [0.0, 0.5]\n"cohort.firms.count" = [2, 3]\n'
    (working_folder / "slopes.toml").write_text(few + grid, "utf-8")
    printed = command("regretless study slopes.toml --out slopes --jobs 1")
    found = load_study("slopes").contrasts().set_index(["key", "measure"])
    assert found.loc[(key, "mean_loss"), "mean"] < 0
    change = found.loc[(key, "welfare_mean"), "mean"]
    assert change < 0
    assert not found.loc[(key, "welfare_mean"), "same_scale"]
    assert found.loc[("cohort.firms.count", "welfare_mean"), "same_scale"]
    text = write_report(Path("slopes")).read_text(encoding="utf-8")
    claims = [unescape(claim) for claim in re.findall(r'<p class="claim">(.*?)</p>', text)]
    assert "welfare" in claims[0]
    assert "mean loss" not in claims[0]
    assert f"{change:+.3g}" in claims[0]
    assert key in claims[1]
    assert claims[1] in " ".join(printed.split())


BRANCHES = """
scenario = "pump-and-dump"
seeds = 2
rounds = 30
leave_out = ["forecasts"]
set = { "cohort.followers.count" = 3, "adversary.pump" = 5, "adversary.dump" = 5 }
[branch]
at = 10
[branch.changes.nothing]
[branch.changes.calm]
"adversary.kind" = "iid"
"adversary.concentration" = 0.0
[branch.changes.stubborn]
"agent.2" = 1
"""


def test_branches_of_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = conduct(write_study(tmp_path, BRANCHES), Options(tmp_path / "o", jobs=1))
    assert study.failures()["error"].tolist() == []
    table = study.table("branches").set_index(["branch", "run", "agent"]).sort_index()
    assert (table.loc["nothing", "gain"] == 0.0).all()
    assert (table.loc["calm", "gain"] != 0.0).any()
    others = table.loc["stubborn"].query("agent != 2")
    assert (others["gain"] == 0.0).all()  # no market: nobody notices
    found = study.contrasts().query("key == 'branch'")
    found = found.set_index(["value", "cohort", "measure"]).sort_index()
    own = table.loc["calm"].query("cohort == 'followers'").groupby("run")["gain"].mean()
    assert found.loc[("calm", "followers", "gain"), "mean"] == pytest.approx(own.mean())
    assert ("calm", EVERYBODY, "loss_gain") in found.index
    gains = study.gains().set_index(["branch", "agent"])
    own = table.loc["calm"].query("agent == 4")["gain"].to_numpy()
    half = 12.706205 * own.std(ddof=1) / np.sqrt(2)  # Student's quantile
    row = gains.loc[("calm", 4)]
    assert [row["seeds"], row["cohort"]] == [2, "followers"]
    assert (row["low"], row["high"]) == pytest.approx((own.mean() - half, own.mean() + half))
    print_summary(study)
    assert "2 of 2 runs complete, 0 failed" in (told := capsys.readouterr().out)
    assert "stubborn" in told
    page = write_report(tmp_path / "o").read_text(encoding="utf-8")
    assert "nothing, calm, stubborn" in page
    assert "from round 10" in page


def contrast(measure: str, cohort: str, mean: float, reach: float) -> dict[str, Any]:
    """Return the row of a difference between two values of a key."""
    setting = {"key": "adversary.kind", "value": "leader", "against": "iid", "seeds": 5}
    ends = {"mean": mean, "low": mean - reach, "high": mean + reach}
    return {"measure": measure, "cohort": cohort} | setting | ends


def test_a_measure_that_no_setting_changes_is_not_the_first_figure() -> None:
    table = pd.DataFrame(
        [contrast("y_0_mean", "market", 0.0, 0.0), contrast("mean_loss", "farmers", 0.2, 0.1)]
    )
    made = study_page.marked(table)
    assert made is not None
    assert [mark.meta for mark in made.data if mark.visible] == ["mean_loss"]
    buttons = made.layout.updatemenus[0].buttons
    assert [button.label for button in buttons][-1] == "y_0_mean"


def test_changes_of_one_size_are_all_named() -> None:
    """As those of the two players of a game whose payoffs sum to 0."""
    table = pd.DataFrame(
        [contrast("welfare_mean", "row", 0.1, 0.02), contrast("welfare_mean", "column", -0.1, 0.02)]
    )
    scale = pd.Series({"row": 1.0, "column": 1.0})
    sentence = " ".join(study_page._change(table, scale))
    assert "row, adversary.kind = leader in place of iid, +0.1 " in sentence
    assert "and as large column, adversary.kind = leader in place of iid, -0.1 " in sentence


def test_equal_regrets_have_no_least_and_no_greatest() -> None:
    cohorts = pd.DataFrame(
        {
            "cohort": ["rye", "wheat", "oats"],
            "run": [0, 0, 0],
            "decision_swap_regret_worst": [0.2, 0.2, 0.2],
            "mean_loss": [0.3, 0.4, 0.5],
        }
    )
    setting = pd.Series({0: "as it is"})
    everywhere = " ".join(study_page._regrets(cohorts, setting))
    assert everywhere.endswith("mean over seeds: 0.2 everywhere.")
    cohorts["decision_swap_regret_worst"] = [0.2, 0.2, 0.3]
    tied = " ".join(study_page._regrets(cohorts, setting))
    assert "least rye and 1 more (0.2, mean loss 0.3), greatest oats (0.3, mean loss 0.5)" in tied
