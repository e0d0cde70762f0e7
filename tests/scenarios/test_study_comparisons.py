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
from regretless.market.model import MarketModel
from regretless.scenarios.report import study_figures, study_sentences
from regretless.scenarios.report.study_data import StudyData, setting_curves, setting_names
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import Study, load_study
from regretless.scenarios.studies.analysis.contrasts import EVERYBODY
from regretless.scenarios.studies.analysis.measures import MARKET, interval
from regretless.scenarios.studies.answers import print_summary
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.table_files import export

MARKUP = '</script><b>bold<b> & "%{x} $y$"'
LEARNERS = f"learners {MARKUP}"
SHARES = ["near", "all_or_nothing", "whole"]  # measures of one's own, within 0 and 1
PARAMETERS = {"rho": [0.3, 0.9]}
CROWD = {
    "name": "crowd",
    "rounds": 12,
    "windows": {"every": 6},
    "measures": ["rounds", *SHARES],
    "adversary": {"kind": "iid", "outcomes": 2},
    "market": {"feedback": "same-round", "impact": 0.4},
    "cohort": [
        cohort_table("followers", 3, 2, "ces", parameters=PARAMETERS),
        cohort_table(LEARNERS, 3, 3, "ces", parameters=PARAMETERS, response="hedge")
        | {"measures": ["external", "swap"]},
    ],
}
ARMS = f"""\
scenario = "tiny.toml"
description = '''claim {MARKUP}'''
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
N_RUNS = 12
LAST_ROUND = 11


def rounds(model: MarketModel) -> float:
    """Return the number of rounds played."""
    return float(model.played)


def first_outcome(model: MarketModel) -> float:
    """Return the first number of the first round's outcome, by which seeds differ."""
    return float(model.game.history.last(model.played)[0][0])


def near(model: MarketModel) -> float:
    """Return a share that is nearly 1 for each seed."""
    return 1.0 - 0.05 * first_outcome(model) ** 4


def all_or_nothing(model: MarketModel) -> float:
    """Return a share that is 0 or 1."""
    return float(first_outcome(model) > 0.55)


def whole(model: MarketModel) -> float:
    """Return a share that is 1 for each seed."""
    return 1.0


def beyond(model: MarketModel) -> float:
    """Return what is no share."""
    return 1.5


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder in which commands run, and register measures."""
    folder = tmp_path_factory.mktemp("working_folder")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(register.measure, "_registered", dict(register.measure._registered))
        patch.setattr(register.measure, "within", dict(register.measure.within))
        register.measure("rounds")(rounds)
        for share in (near, all_or_nothing, whole, beyond):
            register.measure(share.__name__, within=(0, 1))(share)
        yield folder


@pytest.fixture(scope="module")
def arms(working_folder: Path) -> Study:
    """Return a study of who follows which forecast, with the same people and with fewer."""
    design = write_study(working_folder, ARMS, tomli_w.dumps(CROWD), name="arms")
    study = conduct(design, Options(working_folder / "arms", jobs=1))
    command("regretless report arms --tables tables")
    return study


@pytest.fixture(scope="module")
def page(arms: Study) -> ReportPage:
    """Return the page of the study."""
    return parse_page((arms.path / "report.html").read_text(encoding="utf-8"))


@pytest.fixture
def copied_study(arms: Study, tmp_path: Path) -> Path:
    """Return the folder of a copy without its page, which a test may change."""
    return shutil.copytree(arms.path, tmp_path / "arms", ignore=shutil.ignore_patterns("*.html"))


def write_and_parse_report(folder: Path) -> ReportPage:
    """Write the page of a study, and take it apart."""
    return parse_page(write_report(folder).read_text(encoding="utf-8"))


def change_record(folder: Path, **changes: Any) -> None:
    """Change the record of a study."""
    file = folder / "study.json"
    record = json.loads(file.read_text(encoding="utf-8")) | changes
    file.write_text(json.dumps(record), encoding="utf-8")


def remove_run(folder: Path, run: int) -> None:
    """Remove the folder of a run."""
    shutil.rmtree(folder / "runs" / f"run={run:04d}")


def setting_rows(page: ReportPage) -> list[list[str]]:
    """Return the rows of the page's last table, of all settings."""
    (head, *_) = [i for i, row in enumerate(page.rows) if row[-1] == "runs"]
    return page.rows[head + 1 :]


def test_a_measure_of_the_round_has_a_contrast_whoever_is_there(arms: Study) -> None:
    contrasts = arms.contrasts().query(
        "measure == 'rounds' and cohort == 'everybody' and key == 'listen'"
    )
    assert contrasts[["value", "against", "seeds", "mean"]].to_numpy().tolist() == [
        ["nobody", "half", 2, 0.0],
        ["others", "half", 2, 0.0],
    ]


def test_values_of_a_key_are_plain_text_in_every_table(arms: Study) -> None:
    values = set(arms.effects().query("key == 'listen'")["value"])
    assert values == set(arms.parameters()["listen"])


@pytest.mark.parametrize("share", SHARES)
def test_intervals_of_shares_stay_in_their_range(arms: Study, share: str) -> None:
    """Levels stay in [0, 1], changes in [-1, 1], also where all seeds have an extreme share."""
    of_share = f"measure == '{share}' and cohort == 'everybody'"
    levels = arms.effects().query(of_share)
    changes = arms.contrasts().query(of_share)
    assert len(levels) == 5
    assert ((levels["low"] >= 0) & (levels["high"] <= 1)).all()
    assert ((levels["low"] <= levels["mean"]) & (levels["mean"] <= levels["high"])).all()
    assert ((changes["low"] >= -1) & (changes["high"] <= 1)).all()


def test_a_measure_beyond_its_range_is_refused(working_folder: Path) -> None:
    with pytest.raises(UserError, match=r"measure 'beyond' returned 1.5, not within 0 and 1"):
        play_to_end(read_scenario(CROWD, 'measures=["beyond"]'))


def people_of_arm(arms: Study, arm: str) -> pd.DataFrame:
    """Return who is in the runs of an arm: cohort, unit of loss and parameter of every agent."""
    agents = arms.agents().merge(arms.parameters(), on="run")
    agents = agents[agents["listen"] == arm].sort_values(["forecaster.kind", "seed", "agent"])
    return agents[["cohort", "loss_scale", "param_rho"]].reset_index(drop=True)


def test_arms_that_switch_a_response_hold_the_same_people(arms: Study) -> None:
    pd.testing.assert_frame_equal(people_of_arm(arms, "nobody"), people_of_arm(arms, "half"))
    contrasts = arms.contrasts()
    assert contrasts.loc[contrasts["value"] != "others", "same_scale"].all()


def test_the_market_is_compared_in_pairs_of_seeds(arms: Study) -> None:
    """The spread of the market's numbers, by hand from the runs."""
    rounds = arms.table("rounds").merge(arms.parameters(), on="run")
    deviation = rounds.groupby([*KEYS, "seed"])["y_0"].std(ddof=0)
    difference = deviation["running-mean"] - deviation["decision-swap"]
    contrasts = arms.contrasts().query("key == 'forecaster.kind' and measure == 'y_0_deviation'")
    (row,) = contrasts[["cohort", "mean", "seeds"]].to_numpy().tolist()
    assert row == [MARKET, pytest.approx(difference.mean()), 2]


def test_every_table_is_written_as_it_is_computed(arms: Study) -> None:
    for name, table in arms.results().items():
        pd.testing.assert_frame_equal(pd.read_parquet(arms.path / f"{name}.parquet"), table)


def test_every_table_is_exported_as_csv_and_latex(arms: Study, working_folder: Path) -> None:
    for name, table in arms.results().items():
        exported = pd.read_csv(working_folder / "tables" / f"{name}.csv")
        assert list(exported) == list(table)
        assert len(exported) == len(table)
        latex = (working_folder / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        assert f"\\label{{tab:{name}}}" in latex
        assert latex.count(r"\\") >= len(table)


def test_tables_are_exported_to_no_folder_of_other_files(arms: Study, working_folder: Path) -> None:
    with pytest.raises(UserError, match="is not empty; give the tables a folder of their own"):
        export({}, working_folder / "tables")


def test_every_panel_is_on_the_page(page: ReportPage) -> None:
    panels = {"effects", "interactions", "value", "curves", "windows", "by_parameter"}
    assert chart_names(page) == panels
    assert "All settings" in page.text
    assert "Failures" not in page.text


def test_the_page_says_how_many_runs_there_are_and_what_is_varied(page: ReportPage) -> None:
    assert "12 runs: 6 settings, 2 seeds each. 12 done, 0 failed, 0 missing." in page.text
    assert ["forecaster.kind", "varied", "decision-swap, running-mean"] in page.rows
    assert ["cohort.followers.actions", "fixed", "3"] in page.rows
    assert ["seed", "repeated", "0, 1"] in page.rows


def test_texts_of_a_study_are_shown_and_make_no_tags(page: ReportPage) -> None:
    assert f"claim {MARKUP}" in page.text
    assert "b" not in page.tags


def test_the_page_has_a_link_to_every_run(arms: Study, page: ReportPage) -> None:
    text = (arms.path / "report.html").read_text(encoding="utf-8")
    links = set(re.findall(r'<a href="([^#"]*)">', text))
    assert sorted(links) == [f"runs/run={run:04d}/" for run in range(N_RUNS)]
    assert all((arms.path / link).is_dir() for link in links)


def test_the_page_says_what_was_tested_and_how(arms: Study, page: ReportPage) -> None:
    heads = [row for row in page.rows if "simultaneous interval" in row]
    assert len(heads) == 3  # effects, interactions, by parameter
    assert any("equivalent within 1" in row for row in page.rows)
    interaction = arms.interactions().query("measure == 'mean_loss'").iloc[0]
    words = [*interaction[["key", "value", "against", "other_key", "other_value"]]]
    assert words in [row[:5] for row in page.rows]


def test_the_page_shows_the_regression_on_parameters_with_its_digits(
    arms: Study, page: ReportPage
) -> None:
    regression = arms.regression("swap_regret").set_index(["cohort", "term"])
    assert {term for _, term in regression.index} == {
        "constant",
        "rho",
        "forecaster.kind = running-mean",
        "listen = nobody",
        "listen = others",
    }
    slope = regression.loc[("followers", "rho")]
    cells = ["followers", "swap_regret", "rho"]
    (shown,) = [float(row[3]) for row in page.rows if row[:3] == cells]
    greatest = slope[["coefficient", "low", "high"]].abs().max()
    assert shown == pytest.approx(slope["coefficient"], abs=0.005 * greatest)  # three digits of it


def last_digit(number: str) -> float:
    """Return the unit of a printed number's last digit."""
    return 10.0 ** -len(number.partition(".")[2])


def test_settings_are_means_over_seeds_with_half_the_interval(
    arms: Study, page: ReportPage
) -> None:
    runs = arms.parameters().merge(arms.cohorts(), on="run")
    rows = setting_rows(page)
    assert len(rows) == 10
    for row in rows:
        is_setting = (runs[KEYS].astype(str) == row[:2]).all(axis=1)
        runs_of_row = runs[is_setting & (runs["cohort"] == row[2])]
        assert len(runs_of_row) == 2
        mean, half_width = row[3].split(" ± ")
        losses = runs_of_row["mean_loss"]
        _, low, high = interval(losses.to_numpy(), (0.0, 1.0))
        assert float(mean) == pytest.approx(losses.mean(), abs=last_digit(mean))
        assert float(half_width) == pytest.approx((high - low) / 2, abs=last_digit(mean))
        assert row[-1].split() == [str(run) for run in runs_of_row["run"]]


def test_values_of_a_forecast_on_the_page_are_those_of_the_table(
    arms: Study, page: ReportPage
) -> None:
    value = arms.value()
    (head, *_) = [i for i, row in enumerate(page.rows) if "difference" in row]
    rows = page.rows[head + 1 : head + 1 + len(value)]
    for cells, row in zip(rows, value.to_dict("records"), strict=True):
        shown = [float(number) for number in (cells[-2], *cells[-1].split(" to "))]
        expected = [row["mean"], row["low"], row["high"]]
        assert shown == pytest.approx(expected, abs=last_digit(cells[-2]))
        assert cells[-3] == str(row["pairs"])
        assert cells[2] == row["baseline"] == "running-mean"


def test_whiskers_of_means_end_where_their_intervals_do(arms: Study) -> None:
    data = StudyData(arms)
    figure = study_figures.interactions(data)
    intervals = data.table("pair_effects").dropna(subset="low")
    drawn = set()
    for trace in figure.data:
        assert not trace.error_y.symmetric
        low = (trace.y - trace.error_y.arrayminus).round(9)
        high = (trace.y + trace.error_y.array).round(9)
        drawn |= set(zip(low.tolist(), high.tolist(), strict=True))
    expected = set(map(tuple, intervals[["low", "high"]].round(9).to_numpy().tolist()))
    assert drawn <= expected
    distance_of_centre = (intervals["high"] + intervals["low"] - 2 * intervals["mean"]).abs()
    assert (distance_of_centre > 1e-6).any()  # so that a symmetric whisker would be seen


def test_the_legend_of_interactions_names_each_line_once(arms: Study) -> None:
    figure = study_figures.interactions(StudyData(arms))
    entries = [(trace.meta, trace.name) for trace in figure.data if trace.showlegend]
    assert len(set(entries)) == len(entries) < len(figure.data)  # though each panel has its lines


def test_curves_end_at_the_regret_of_the_last_round(arms: Study) -> None:
    """A mean over agents, then over seeds; swap regret for who kept no decision swap regret."""
    names = setting_names(arms.parameters())
    curves = setting_curves(arms, names)
    agents = arms.agents()
    agents["regret"] = agents["decision_swap_regret"].fillna(agents["swap_regret"])
    agents["setting"] = agents["run"].map(names)
    by_run = agents.groupby(["setting", "cohort", "run"])["regret"].mean()
    expected = by_run.groupby(["setting", "cohort"]).mean()
    last = curves[curves["round"] == LAST_ROUND].set_index(["setting", "cohort"])
    assert (last["seeds"] == 2).all()
    pd.testing.assert_series_equal(last["mean"], expected, check_names=False, check_like=True)
    figure = study_figures.curves(StudyData(arms))
    assert len(figure.data) == 10
    for trace in figure.data:
        assert trace.y[-1] in last["mean"].to_numpy()


@pytest.mark.browser
def test_a_browser_draws_the_figures(arms: Study, page: ReportPage, tmp_path: Path) -> None:
    seen = visit_page(arms.path / "report.html", tmp_path / "profile")
    assert seen.console == ()
    # two keys and three cohorts of one's own measure; a line per value of the second key for who
    # kept decision swap regret, also in the windows; one setting has no followers
    n_traces = {"effects": 6, "interactions": 2, "curves": 10, "value": 2, "windows": 4}
    assert {name: seen.count_traces(name) for name in n_traces} == n_traces
    assert seen.document.count('class="js-plotly-plot"') == len(n_traces) + 1
    assert "<title>arms</title>" in seen.document


@pytest.mark.browser
def test_every_head_of_a_table_is_a_button_in_a_browser(
    arms: Study, page: ReportPage, tmp_path: Path
) -> None:
    seen = visit_page(arms.path / "report.html", tmp_path / "profile")
    last_heads = {"runs", "95 % interval", "adjusted p", "equivalence", "clusters"}
    n_heads = sum(len(row) for row in page.rows if row[-1] in last_heads)
    assert seen.document.count('<button type="button">') == n_heads


def test_same_runs_give_the_same_bytes(arms: Study, copied_study: Path) -> None:
    change_record(copied_study, written="another day", wall_seconds=1e6)
    assert write_report(copied_study).read_bytes() == (arms.path / "report.html").read_bytes()


def test_failed_and_missing_runs_are_told(copied_study: Path) -> None:
    for run in (1, 10, 11):
        remove_run(copied_study, run)
    failure = {"run": 1, "kind": "ValueError", "error": f"it\nrains {MARKUP}", "traceback": ""}
    pd.DataFrame([failure]).to_parquet(copied_study / "failures.parquet")
    page = write_and_parse_report(copied_study)
    assert "9 done, 1 failed, 2 missing." in page.text
    assert f"run 1: ValueError: it rains {MARKUP}" in page.text
    assert page.tags.count("del") == 4  # two cohorts share run 1, the last setting has none
    first_setting, *_, last_setting = setting_rows(page)
    assert "±" not in first_setting[3]  # one seed has no interval
    assert set(last_setting[2:-1]) == {"-"}
    assert "b" not in page.tags


def test_a_change_says_on_how_many_seeds_it_rests_where_runs_are_missing(
    copied_study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(load_study(copied_study))
    assert "seeds" not in capsys.readouterr().out.split("Change")[1].splitlines()[1]
    contrasts = pd.read_parquet(copied_study / "contrasts.parquet")
    n_seeds = int(contrasts["seeds"].max())
    contrasts["seeds"] -= 1
    contrasts.to_parquet(copied_study / "contrasts.parquet")
    print_summary(load_study(copied_study))
    assert f"{n_seeds - 1} of {n_seeds}" in capsys.readouterr().out


def test_a_study_without_a_complete_run_has_no_report(copied_study: Path) -> None:
    shutil.rmtree(copied_study / "runs")
    with pytest.raises(UserError, match="holds no complete run; play the study again"):
        write_report(copied_study)
    assert not (copied_study / "report.html").exists()


def test_a_study_of_the_scenario_as_it_is_has_curves_windows_and_one_setting(
    arms: Study, copied_study: Path
) -> None:
    """Without keys there are no effects and no value."""
    table = pd.read_parquet(copied_study / "parameters.parquet").head(2)
    table[["run", "seed"]].to_parquet(copied_study / "parameters.parquet")
    for run in range(2, N_RUNS):
        remove_run(copied_study, run)
    file = dict(arms.record["study"]["file"])
    del file["control"]
    change_record(copied_study, study=arms.record["study"] | {"file": file})
    page = write_and_parse_report(copied_study)
    assert "2 runs: 1 setting, 2 seeds each. 2 done" in page.text
    assert chart_names(page) == {"curves", "windows"}
    assert "the scenario as it is" in page.charts
    assert [row[0] for row in setting_rows(page)] == ["followers", LEARNERS]


SLOPES = """\
scenario = "oligopoly"
seeds = 2
rounds = 20
set = { "cohort.firms.actions" = 5 }
[grid]
"cohort.firms.parameters.slope" = [0.0, 0.5]
"cohort.firms.count" = [2, 3]
"""
SLOPE = "cohort.firms.parameters.slope"


@pytest.fixture(scope="module")
def printed_by_slopes(working_folder: Path) -> str:
    """Play a study of a parameter that is also the unit of losses; return what it printed."""
    (working_folder / "slopes.toml").write_text(SLOPES, encoding="utf-8")
    return command("regretless study slopes.toml --out slopes --jobs 1")


def test_a_key_that_changes_the_unit_of_losses_has_no_same_scale(printed_by_slopes: str) -> None:
    """A slope lowers the mean loss, by what losses are divided by, and lowers welfare."""
    contrasts = load_study("slopes").contrasts().set_index(["key", "measure"])
    assert contrasts.loc[(SLOPE, "mean_loss"), "mean"] < 0
    assert contrasts.loc[(SLOPE, "welfare_mean"), "mean"] < 0
    assert not contrasts.loc[(SLOPE, "welfare_mean"), "same_scale"]
    assert contrasts.loc[("cohort.firms.count", "welfare_mean"), "same_scale"]


def test_the_page_ranks_by_welfare_and_names_the_key_that_changes_the_unit(
    printed_by_slopes: str,
) -> None:
    contrasts = load_study("slopes").contrasts().set_index(["key", "measure"])
    change = contrasts.loc[(SLOPE, "welfare_mean"), "mean"]
    text = write_report(Path("slopes")).read_text(encoding="utf-8")
    claims = [unescape(claim) for claim in re.findall(r'<p class="claim">(.*?)</p>', text)]
    assert "welfare" in claims[0]
    assert "mean loss" not in claims[0]
    assert f"{change:+.3g}" in claims[0]
    assert SLOPE in claims[1]
    assert claims[1] in " ".join(printed_by_slopes.split())


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
STUDENT_QUANTILE = 12.706205  # of 97.5 % with one degree of freedom


@pytest.fixture(scope="module")
def branched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a study whose runs branch in round 10."""
    folder = tmp_path_factory.mktemp("branched")
    return conduct(write_study(folder, BRANCHES), Options(folder / "out", jobs=1))


def gains_of(study: Study, branch: str) -> pd.DataFrame:
    """Return what each agent gains by a branch, in each run."""
    return study.table("branches").query("branch == @branch")


def test_a_branch_without_changes_gains_nothing(branched: Study) -> None:
    assert branched.failures()["error"].tolist() == []
    assert (gains_of(branched, "nothing")["gain"] == 0.0).all()


def test_a_branch_against_another_adversary_gains(branched: Study) -> None:
    assert (gains_of(branched, "calm")["gain"] != 0.0).any()


def test_nobody_notices_a_stubborn_agent_where_there_is_no_market(branched: Study) -> None:
    gains_of_others = gains_of(branched, "stubborn").query("agent != 2")
    assert (gains_of_others["gain"] == 0.0).all()


def test_contrasts_of_a_branch_are_means_of_a_cohort_s_gains(branched: Study) -> None:
    contrasts = branched.contrasts().query("key == 'branch'")
    contrasts = contrasts.set_index(["value", "cohort", "measure"]).sort_index()
    followers = gains_of(branched, "calm").query("cohort == 'followers'")
    mean = followers.groupby("run")["gain"].mean().mean()
    assert contrasts.loc[("calm", "followers", "gain"), "mean"] == pytest.approx(mean)
    assert ("calm", EVERYBODY, "loss_gain") in contrasts.index


def test_gains_of_an_agent_have_student_s_interval_over_seeds(branched: Study) -> None:
    gains = gains_of(branched, "calm").query("agent == 4")["gain"].to_numpy()
    half_width = STUDENT_QUANTILE * gains.std(ddof=1) / np.sqrt(2)
    row = branched.gains().set_index(["branch", "agent"]).loc[("calm", 4)]
    assert row["seeds"] == 2
    assert row["cohort"] == "followers"
    assert row["low"] == pytest.approx(gains.mean() - half_width)
    assert row["high"] == pytest.approx(gains.mean() + half_width)


def test_branches_are_in_the_summary_and_on_the_page(
    branched: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    print_summary(branched)
    printed = capsys.readouterr().out
    assert "2 of 2 runs complete, 0 failed" in printed
    assert "stubborn" in printed
    page = write_report(branched.path).read_text(encoding="utf-8")
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
    figure = study_figures.draw_marks(table)
    assert figure is not None
    assert [trace.meta for trace in figure.data if trace.visible] == ["mean_loss"]
    buttons = figure.layout.updatemenus[0].buttons
    assert [button.label for button in buttons][-1] == "y_0_mean"


def test_the_first_figure_is_the_index_where_it_was_measured() -> None:
    """Distances from equilibria do not come before it, and a measure of one's own does."""
    names = ["mean_loss", "distance_ce", "index_nash_optimum"]
    rows = [contrast(name, "farmers", 0.2, 0.1) for name in names]
    figure = study_figures.draw_marks(pd.DataFrame(rows))
    assert figure is not None
    assert [trace.meta for trace in figure.data if trace.visible] == ["index_nash_optimum"]
    rows.append(contrast("profit", "farmers", 0.2, 0.1))
    with_own = study_figures.draw_marks(pd.DataFrame(rows))
    assert with_own is not None
    assert [trace.meta for trace in with_own.data if trace.visible] == ["profit"]


def test_changes_of_one_size_are_all_named() -> None:
    """As those of the two players of a game whose payoffs sum to 0."""
    table = pd.DataFrame(
        [contrast("welfare_mean", "row", 0.1, 0.02), contrast("welfare_mean", "column", -0.1, 0.02)]
    )
    scale = pd.Series({"row": 1.0, "column": 1.0})
    sentence = " ".join(study_sentences.sentence_on_welfare(table, scale))
    assert "row, adversary.kind = leader in place of iid, +0.1 " in sentence
    assert "and as large column, adversary.kind = leader in place of iid, -0.1 " in sentence


def regret_sentences(worst_regrets: list[float]) -> str:
    """Return what is said of the worst agents' regrets of rye, wheat and oats."""
    cohorts = pd.DataFrame(
        {
            "cohort": ["rye", "wheat", "oats"],
            "run": [0, 0, 0],
            "decision_swap_regret_worst": worst_regrets,
            "mean_loss": [0.3, 0.4, 0.5],
        }
    )
    return " ".join(study_sentences.sentence_on_regrets(cohorts, pd.Series({0: "as it is"})))


def test_equal_regrets_have_no_least_and_no_greatest() -> None:
    assert regret_sentences([0.2, 0.2, 0.2]).endswith("mean over seeds: 0.2 everywhere.")


def test_the_least_regret_of_two_says_that_there_is_one_more() -> None:
    words = "least rye and 1 more (0.2, mean loss 0.3), greatest oats (0.3, mean loss 0.5)"
    assert words in regret_sentences([0.2, 0.2, 0.3])


def test_the_largest_change_says_on_how_many_seeds_it_rests_where_runs_are_missing() -> None:
    table = pd.DataFrame([contrast("welfare_mean", "row", 0.1, 0.02)])
    scale = pd.Series({"row": 1.0})
    of_all = " ".join(study_sentences.sentence_on_welfare(table, scale, n_planned_seeds=5))
    assert "seeds" not in of_all
    of_some = " ".join(study_sentences.sentence_on_welfare(table, scale, n_planned_seeds=8))
    assert of_some.endswith("(95 % interval 0.08 to 0.12), of 5 of 8 seeds.")
