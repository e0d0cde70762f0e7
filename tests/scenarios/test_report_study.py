"""The report of a study: what it shows is what the runs say, also of those that are not there."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from browser import visit
from pages import Page, check, panels
from worlds import study

from regretless.market.core.errors import UserError
from regretless.scenarios.report import study_page
from regretless.scenarios.report.study_page import StudyData, setting_curves, setting_names
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import Study
from regretless.scenarios.studies.analysis.measures import interval
from regretless.scenarios.studies.conduct import Options, conduct

NASTY = '</script><b>bold<b> & "%{x} $y$"'
BASE = f"""\
name = "base"
rounds = 24
windows = {{ every = 12 }}
adversary = {{ kind = "switching", outcomes = 2 }}
cohort = [
  {{ name = '''crowd {NASTY}''', utility = "linear", actions = 2, count = 3 }},
  {{ name = "calm", utility = "linear", actions = 2, count = 3, measures = ["external", "swap"] }},
]
"""
SWEEP = f"""\
scenario = "tiny.toml"
description = '''claim {NASTY}'''
seeds = 2
[set]
"cohort.calm.actions" = 3
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
"cohort.calm.count" = [2, 3]
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    return conduct(study(folder, SWEEP, BASE), Options(folder / "out", jobs=1)).path


@pytest.fixture
def directory(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "out", ignore=shutil.ignore_patterns("report.html"))


@pytest.fixture(scope="module")
def whole(finished: Path) -> Page:
    return shown(finished)


def shown(directory: Path) -> Page:
    return check(write_report(directory).read_text(encoding="utf-8"))


def settings(page: Page) -> list[list[str]]:
    start = next(i for i, row in enumerate(page.rows) if row[-1] == "runs")
    return page.rows[start + 1 :]


def test_every_panel_and_a_link_to_every_run_are_there(finished: Path, whole: Page) -> None:
    assert panels(whole) == {"effects", "interactions", "value", "curves", "windows"}
    assert "8 runs: 4 settings, 2 seeds each. 8 done, 0 failed, 0 missing." in whole.text
    assert f"claim {NASTY}" in whole.text
    assert "Failures" not in whole.text
    assert "All settings" in whole.text
    assert ["forecaster.kind", "varied", "decision-swap, running-mean"] in whole.rows
    assert ["cohort.calm.actions", "fixed", "3"] in whole.rows
    assert ["seed", "repeated", "0, 1"] in whole.rows
    assert "b" not in whole.tags
    text = (finished / "report.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="([^#"]*)">', text)
    assert sorted(set(links)) == [f"runs/run={run:04d}/" for run in range(8)]
    assert all((finished / link).is_dir() for link in links)


def test_whiskers_of_means_end_where_their_intervals_do(finished: Path) -> None:
    data = StudyData(Study(finished))
    figure, rows = study_page.interactions(data), data.of("pair_effects").dropna(subset="low")
    assert figure is not None
    drawn = {
        (round(end, 9), round(other, 9))
        for mark in figure.data
        for end, other in zip(
            mark.y - mark.error_y.arrayminus, mark.y + mark.error_y.array, strict=True
        )
    }
    assert not all(mark.error_y.symmetric for mark in figure.data)
    entries = [(mark.meta, mark.name) for mark in figure.data if mark.showlegend]
    assert len(set(entries)) == len(entries) < len(figure.data)  # though each panel has its lines
    assert {(low, high) for low, high in rows[["low", "high"]].round(9).to_numpy()} >= drawn
    off_centre = (rows["high"] + rows["low"] - 2 * rows["mean"]).abs()
    assert (off_centre > 1e-6).any()


def test_a_browser_draws_the_figures(finished: Path, whole: Page, tmp_path: Path) -> None:
    seen = visit(finished / "report.html", tmp_path / "profile")
    assert seen.console == ()
    # of the measure that is chosen: two keys, and the one cohort that kept it
    assert seen.traces("effects") == 2
    assert seen.traces("interactions") == 2  # of that cohort, a line per value of the second key
    assert seen.traces("curves") == 8  # two cohorts in four settings
    assert seen.traces("value") == 2
    assert seen.traces("windows") == 4  # of the cohort that kept decision swap regret
    assert seen.document.count('class="js-plotly-plot"') == 5
    last = {"runs", "95 % interval", "adjusted p", "clusters"}
    heads = sum(len(row) for row in whole.rows if row[-1] in last)
    assert seen.document.count('<button type="button">') == heads
    assert "<title>sweep</title>" in seen.document


def test_settings_are_means_over_seeds_with_half_the_interval(finished: Path, whole: Page) -> None:
    study = Study(finished)
    runs = study.parameters().merge(study.cohorts(), on="run")
    keys = ["forecaster.kind", "cohort.calm.count"]
    rows = settings(whole)
    assert len(rows) == 8
    for row in rows:
        own = runs[(runs[keys].astype(str) == row[:2]).all(axis=1) & (runs["cohort"] == row[2])]
        assert len(own) == 2
        mean, half = map(float, row[3].split(" ± "))
        last = 10.0 ** -len(row[3].partition(".")[2].partition(" ")[0])
        assert mean == pytest.approx(own["mean_loss"].mean(), abs=last)
        _, low, high = interval(own["mean_loss"].to_numpy(), (0.0, 1.0))
        assert half == pytest.approx((high - low) / 2, abs=last)
        assert row[-1].split() == [str(run) for run in own["run"]]


def test_values_are_those_of_the_table(finished: Path, whole: Page) -> None:
    value = Study(finished).value()
    head = next(i for i, row in enumerate(whole.rows) if "difference" in row)
    rows = whole.rows[head + 1 : head + 1 + len(value)]
    for row, found in zip(rows, value.to_dict("records"), strict=True):
        ends = [float(end) for end in (row[-2], *row[-1].split(" to "))]
        assert row[-3] == str(found["pairs"])
        last = 10.0 ** -len(row[-2].partition(".")[2])
        assert ends == pytest.approx([found["mean"], found["low"], found["high"]], abs=last)
        assert row[2] == found["baseline"] == "running-mean"


def test_curves_end_at_the_regret_of_the_last_round(finished: Path) -> None:
    """A mean over agents, then over seeds; swap regret for who kept no decision swap regret."""
    study = Study(finished)
    names = setting_names(study.parameters())
    curves = setting_curves(study, names)
    assert curves is not None
    agents = study.agents()
    agents["regret"] = agents["decision_swap_regret"].fillna(agents["swap_regret"])
    agents["setting"] = agents["run"].map(names)
    by_run = agents.groupby(["setting", "cohort", "run"])["regret"].mean()
    expected = by_run.groupby(["setting", "cohort"]).mean()
    last = curves[curves["round"] == 23].set_index(["setting", "cohort"])
    assert (last["seeds"] == 2).all()
    pd.testing.assert_series_equal(last["mean"], expected, check_names=False, check_like=True)
    figure = study_page.curves(StudyData(study))
    assert figure is not None
    assert len(figure.data) == 8
    assert all(trace.y[-1] in last["mean"].to_numpy() for trace in figure.data)


def test_same_runs_give_the_same_bytes(finished: Path, whole: Page, directory: Path) -> None:
    record = json.loads((directory / "study.json").read_text(encoding="utf-8"))
    record |= {"written": "another day", "wall_seconds": 1e6}
    (directory / "study.json").write_text(json.dumps(record), encoding="utf-8")
    assert write_report(directory).read_bytes() == (finished / "report.html").read_bytes()


def test_failed_and_missing_runs_are_told(directory: Path) -> None:
    for run in (1, 6, 7):
        shutil.rmtree(directory / "runs" / f"run={run:04d}")
    failure = {"run": 1, "kind": "ValueError", "error": f"it\nrains {NASTY}", "traceback": ""}
    pd.DataFrame([failure]).to_parquet(directory / "failures.parquet")
    page = shown(directory)
    assert "5 done, 1 failed, 2 missing." in page.text
    assert f"run 1: ValueError: it rains {NASTY}" in page.text
    assert page.tags.count("del") == 4  # two cohorts share run 1, nobody is left of runs 6 and 7
    first, last = settings(page)[0], settings(page)[-1]
    assert "±" not in first[3]  # one seed has no interval
    assert set(last[2:-1]) == {"-"}
    assert "b" not in page.tags


def test_a_study_of_the_scenario_as_it_is(finished: Path, directory: Path) -> None:
    """Without keys there are no effects and no value, but curves, windows and one setting."""
    table = pd.read_parquet(directory / "parameters.parquet").head(2)
    table[["run", "seed"]].to_parquet(directory / "parameters.parquet")
    for run in range(2, 8):
        shutil.rmtree(directory / "runs" / f"run={run:04d}")
    page = shown(directory)
    assert "2 runs: 1 setting, 2 seeds each. 2 done" in page.text
    assert panels(page) == {"curves", "windows"}
    assert "the scenario as it is" in page.charts
    assert [row[0] for row in settings(page)] == [f"crowd {NASTY}", "calm"]


def test_without_a_complete_run_there_is_no_page(directory: Path) -> None:
    shutil.rmtree(directory / "runs")
    with pytest.raises(UserError, match="holds no complete run; play the study again"):
        write_report(directory)
    assert not (directory / "report.html").exists()
