"""The report of a run and what it prints: what the logs say, in one safe, self-contained page."""

import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from browser import Visit, visit_page
from report_pages import ReportPage, chart_names, parse_page
from run_files import run_to_folder
from small_scenarios import read_scenario

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.markets.price_impact import crowding
from regretless.scenarios.logs.reading import regret_curves
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.report import market_figures, run_figures, theme
from regretless.scenarios.report.figures import FIGURES, Run
from regretless.scenarios.report.page import page as filled
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.summary import MOST, print_summary
from regretless.scenarios.verdict import alternative_cells, difference, promise, records, sentences

ROUNDS, AGENTS, WINDOW = 60, 8, 12  # of rolling means
FEW = f"rounds={ROUNDS}", f"cohort.growers.count={AGENTS}"
Tables = dict[str, pd.DataFrame]


def played(out: Path, *assignments: str, form: str = "parquet") -> Path:
    run(read_scenario("crop-choice", *FEW, *assignments), Options(out, form))
    return out


def report(directory: Path) -> ReportPage:
    """Write a page, which adds one file to the folder; the page, taken apart."""
    before = {path.name for path in directory.iterdir()}
    assert write_report(directory) == directory / "report.html"
    assert {path.name for path in directory.iterdir()} == before | {"report.html"}
    return parse_page((directory / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture
def directory(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def tables(finished: Path) -> Tables:
    read = read_run(finished)[1]
    return read | {"regret_curves": regret_curves([read["regret_log"]], read["agents"])}


def drawn(figure: go.Figure | None) -> tuple[Any, ...]:
    return tuple(figure.data)


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_page_shows_the_tables(tmp_path: Path, form: str) -> None:
    page = report(played(tmp_path / "run", form=form))
    manifest, tables = read_run(tmp_path / "run")
    agents, verdict = tables["agents"], tables["verdict"]
    for line in (*sentences(verdict, agents), *manifest["data"]):
        assert line in page.text
    ranked = records(verdict.sort_values("mean_loss", kind="stable"))
    cells = [alternative_cells(row) for row in ranked]
    assert page.rows[1 : 1 + len(cells)] == cells
    better = [f"{row['better_off']} of {AGENTS}" * (row["kind"] != "broadcast") for row in ranked]
    assert [row[-1] for row in cells] == better
    for name in ("external", "swap", "decision swap"):
        regret = agents[f"{name.replace(' ', '_')}_regret"]
        (row,) = [row for row in page.rows if row[0] == name]
        assert row[1:4] == [str(AGENTS), f"{regret.mean():.4f}", f"{regret.max():.4f}"]
    assert row[4] == promise(agents["bound_from_bias"].max(), 4)
    shown = {"alternatives", "loss", "regret", "spread", "agents", "forecast"}
    assert shown <= chart_names(page)
    assert page.tags.count("figure") == page.tags.count("figcaption") == len(chart_names(page))
    assert f'agents = pd.read_{form}("agents.{form}")' in page.text
    assert '"2012-01-01T00:00:00"' in page.charts  # rounds are dated where the data are
    rows = page.rows[1 + [row[0] for row in page.rows].index("agent") :]  # what regret is made of
    sums = pd.DataFrame(rows).groupby(0, sort=False)[6].apply(lambda part: part.astype(float).sum())
    worst = agents.set_index("agent")["decision_swap_regret"].nlargest(5)
    assert list(map(int, sums.index)) == list(worst.index)
    assert sums.to_list() == pytest.approx(worst.tolist(), abs=5e-4)


def test_figures_are_those_that_the_logs_have(tmp_path: Path) -> None:
    for change, there, gone in (
        ("forecaster.kind=running-mean", "loss regret forecast", "certificates"),
        ('cohort.growers.measures=["external"]', "loss forecast", "regret spread"),
        ("rounds=1", "alternatives agents", "loss regret forecast"),
    ):
        shown = chart_names(report(played(tmp_path / change, change)))
        assert {*there.split()} <= shown, change
        assert not {*gone.split()} & shown, change


def test_data_of_a_figure_cannot_end_their_element() -> None:
    """Whatever text comes to a figure, also text that ``plain`` has not seen."""
    nasty = "</script><!--<script>"
    made = theme.panels().add_traces([{"name": nasty}])
    data = replace(FIGURES["run"]["loss"], made=made).data
    assert "<" not in data
    assert json.loads(data)["data"][0]["name"] == nasty


def test_same_logs_give_the_same_bytes_and_the_page_replaces_only_itself(directory: Path) -> None:
    first = write_report(directory).read_bytes()
    other = shutil.copytree(directory, directory.parent / "elsewhere")
    assert write_report(other).read_bytes() == first
    (other / "report.html").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"report\.html is there and"):
        write_report(other)
    assert not list(other.glob(".*.tmp"))


def test_interrupted_run_says_how_far_it_came(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_to_folder(read_scenario("crop-choice", *FEW), tmp_path / "run", stop=20)
    assert f"20 of {ROUNDS} rounds, seed 7, interrupted." in report(tmp_path / "run").text


def test_what_is_broken_missing_or_of_an_older_version_is_refused(directory: Path) -> None:
    verdict, agents = directory / "verdict.parquet", directory / "agents.parquet"
    manifest = directory / "manifest.json"
    older = pd.read_parquet(verdict).rename(columns={"difference": "gain"})
    for change, told in (
        (partial(older.to_parquet, verdict), "of an older version; run it again"),
        (partial(agents.write_bytes, b"PAR1"), "cannot be read"),
        (agents.unlink, "no agents table"),
        (partial(manifest.write_text, "{"), "cannot be read"),
        (partial(manifest.write_text, "[]"), "cannot be read"),
        (partial(manifest.write_text, "{}"), "not a run's"),
        (manifest.unlink, "is not the folder of a run"),
        (partial(shutil.rmtree, directory), r"does not exist; give the folder of .* or a training"),
    ):
        change()
        with pytest.raises(UserError, match=told):
            write_report(directory)


def test_figures_draw_the_tables(tables: Tables) -> None:
    """A bound of 1 or more is not drawn, and the pointer tells true values."""
    agents, kept, data = tables["agents"], tables["bounds"], Run({}, tables)
    verdict = tables["verdict"].query("kind != 'broadcast'")
    (marks,) = drawn(run_figures.alternatives(data))
    assert sorted(marks.x) == sorted(verdict["difference"])
    halves = (verdict["high"] - verdict["difference"]).fillna(0.0)
    assert sorted(marks.error_x.array) == sorted(halves)
    alone = tables["verdict"].query("kind in ['broadcast', 'action']")
    assert run_figures.alternatives(Run({}, tables | {"verdict": alone})) is None
    own, *others = drawn(run_figures.loss(data))
    assert own.y[-1] == pytest.approx(agents["mean_loss"].mean())
    least = verdict.groupby("kind")["mean_loss"].min()
    assert sorted(line.y[0] for line in others) == sorted(least)
    mean, worst, *lines = drawn(run_figures.regret(data))
    regret = agents["decision_swap_regret"]
    assert (mean.x[0], mean.x[-1]) == (0, ROUNDS - 1)
    assert mean.customdata[-1] == pytest.approx(regret.mean())
    assert worst.customdata[-1] == pytest.approx(regret.max())
    assert lines
    columns = {word: column for column, (word, _) in run_figures.BOUNDS.items()}
    for line in lines:
        told = kept[columns[line.name]]
        assert line.customdata == pytest.approx(told[told < 1].to_numpy())
        assert agents[columns[line.name]].max() == pytest.approx(told.iloc[-1])
    for column in columns.values():
        agents[column] = kept[column] = np.nan  # no theorem applies
    assert len(drawn(run_figures.regret(data))) == 2


def test_dates_are_drawn_where_they_are_dates_in_order() -> None:
    figure = theme.panels().add_trace(theme.line([0, 1, 5], [1.0, 2.0, 3.0], "a"))
    figure.update_xaxes(title_text="round; as they are")
    for names in (["Mon", "Tue"], ["2020-01-02", "2020-01-01"]):
        theme.dated(figure, pd.Series(names), "day")
        assert figure.data[0].x.tolist() == [0, 1, 5]
    theme.dated(figure, pd.Series(["2020-01-01", "2020-01-02"]), "day")
    assert [day[:10] for day in figure.data[0].x] == ["2020-01-01", "2020-01-02", "2020-01-02"]
    assert figure.layout.xaxis.title.text == "day; as they are"


def test_forecast_figure_averages_blocks_and_rounds(tables: Tables) -> None:
    forecasts = tables["forecasts"]
    second = forecasts.assign(block="second", label_0=0.0)
    tables["forecasts"] = pd.concat([forecasts, second], ignore_index=True)
    data = {"outcomes": ["a", "b", "c"], "scale": {"a": [5.0, 25.0], "c": [1.0, 0.0]}}
    outcome, forecast, *_ = drawn(run_figures.forecast(Run({"data": data}, tables)))
    assert outcome.y[-1] == pytest.approx(5 + 20 * tables["rounds"]["y_0"].tail(WINDOW).mean())
    said = forecasts.loc[forecasts["drawn"], "label_0"]
    assert forecast.y[-1] == pytest.approx(5 + 20 * said.tail(WINDOW).mean() / 2)


def test_market_figure_draws_demand_and_what_it_did(tmp_path: Path) -> None:
    run(read_scenario("crowding", f"rounds={ROUNDS}"), Options(tmp_path / "run"))
    tables = read_run(tmp_path / "run")[1]
    goods = ["tea", "salt", "rum"]
    data = Run({"adversary": {"outcome_names": goods}}, tables)
    seen = {curve.name: curve.y[-1] for curve in drawn(market_figures.demand(data))}
    demand = tables["rounds"].filter(regex="^demand_").tail(WINDOW).mean()
    did = crowding(tables["rounds"], tables["forecasts"]).tail(WINDOW).mean()
    assert list(seen)[:3] == goods
    wanted = [*demand, did["concentration"], did["confirmed"]]
    assert list(seen.values()) == pytest.approx(wanted)
    labels = [name for name in tables["forecasts"] if name.startswith("label_")]
    tables["forecasts"] = tables["forecasts"].drop(columns=labels)
    assert len(drawn(market_figures.demand(data))) == 4


def test_own_measures_are_drawn_by_cohort(tmp_path: Path) -> None:
    """Of the round, of cohorts by name, and of every agent as the mean of its cohort."""
    register.measure("report: round")(lambda model: model.played)
    register.measure("report: cohort")(lambda _: {"growers": 2.0})
    register.measure("report: agent")(lambda _: np.arange(AGENTS, dtype=float))
    named = json.dumps([f"report: {what}" for what in ("round", "cohort", "agent")])
    out = played(tmp_path / "run", "rounds=10", f"measures={named}")
    assert "measures" in chart_names(report(out))
    curves = drawn(market_figures.measures(Run({}, read_run(out)[1])))
    assert [curve.name for curve in curves] == ["all", "growers", "growers"]
    assert [curve.y[-1] for curve in curves] == [10.0, 2.0, (AGENTS - 1) / 2]
    assert len({curve.yaxis for curve in curves}) == 3


RUNS: list[Any] = [  # one of each kind: models or none, a policy, learners, one agent, who is late
    *[(name, "") for name in ("late-news", "beating-mean-based-learners", "survival", "own-draws")],
    *[("trend-followers", kind) for kind in ("decision-swap", "running-mean")],
    ("crop-choice", "exponential-smoothing"),
    pytest.param("mixed-bazaar", "", marks=pytest.mark.catalogue),
]
MEASURES = ("external_regret", "swap_regret", "decision_swap_regret", "exploitability")


@pytest.mark.parametrize(("name", "kind"), RUNS)
def test_what_is_printed_is_in_the_tables(
    name: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [f"forecaster.kind={kind}"] if kind else []
    scenario, shown = read_scenario(name, "rounds=6", *other), []
    model = run(scenario, Options(tmp_path))
    for verbose in (False, True):
        print_summary(scenario, model, tmp_path, verbose=verbose)
        shown.append(capsys.readouterr().out)
        assert all(len(line) <= 80 for line in shown[-1].splitlines() if "Logs: " not in line)
    short, whole = shown
    assert len(short.splitlines()) <= MOST
    tables = read_run(tmp_path)[1]
    agents, verdict = tables["agents"], tables["verdict"]
    for cohort, rows in verdict.groupby("cohort", sort=False):
        own = agents if cohort == "everybody" else agents[agents["cohort"] == cohort]
        best = rows[rows["kind"] != "broadcast"].nsmallest(1, "mean_loss")
        for printed in shown:
            assert f"{own['mean_loss'].mean():.4f}" in printed
            assert re.search(rf"{best['mean_loss'].item():.4f} +[+-]0*\.?\d", printed)
            for column in MEASURES:
                assert own[column].isna().all() or f"{own[column].max():.4f}" in printed
        some = int(own["bound"].notna().sum())  # who hears a forecast of today
        if name == "late-news":
            assert 0 < some < len(own)
            assert f"without correction, {some} agents" in short
        for row in records(rows.iloc[1:]):
            cells = alternative_cells(row)[1:]
            assert re.search(" +".join(map(re.escape, filter(None, cells))), whole), cells


def test_an_interval_around_0_is_no_difference_found() -> None:
    for gap, half, words in (
        (0.02, 0.03, "no difference found (between -0.0100 and 0.0500)"),
        (-0.02, 0.01, "0.0200 less (95 % interval -0.0300 to -0.0100)"),
        (0.02, float("nan"), "0.0200 more"),
        (0.00001, float("nan"), "a difference below 0.0001"),
    ):
        assert difference({"difference": gap, "low": gap - half, "high": gap + half}) == words


NASTY = "</script><script>document.title = 'broken'</script><b>%{x} $y$ & \"q\""
COHORT = {"utility": "linear", "actions": 3, "count": 4}
NASTIEST = {
    "name": "market <b>&amp;",
    "description": f"claim {NASTY}",
    "source": f"by {NASTY}",
    "rounds": 40,
    "windows": {"every": 20},
    "adversary": {"kind": "switching", "outcomes": 2},
    "cohort": [COHORT | {"name": f"crowd {NASTY}"}, COHORT | {"name": "calm"}],
}


@pytest.mark.browser
def test_a_run_page_draws_its_figures_in_light_and_dark(tmp_path: Path) -> None:
    run(read_scenario(NASTIEST), Options(tmp_path / "run"))
    page, written, name = report(tmp_path / "run"), tmp_path / "run/report.html", f"crowd {NASTY}"
    assert "b" not in page.tags
    assert all(
        told in page.text for told in (name, NASTIEST["name"], f"claim {NASTY}", f"by {NASTY}")
    )
    assert written.stat().st_size < 8_000_000
    seen = visit_page(written, tmp_path / "profile")
    assert seen.console == ()
    drawn = {"loss", "regret", "windows", "spread", "agents", "exploitability", "forecast"}
    drawn |= {"certificates", "calibration", "reliability", "decision_calibration"}
    assert seen.document.count('class="js-plotly-plot"') == len(drawn)
    for name in drawn:
        assert seen.count_traces(name) >= 2, name
    assert (
        seen.count_traces("regret") >= 4
    )  # mean and worst agent of two cohorts, and bounds below 1
    assert seen.count_traces("agents") == 2
    assert 'class="card" hidden' not in seen.document  # as it is without scripts
    assert "<title>market &lt;b&gt;&amp;amp;</title>" in seen.document
    assert "crowd &lt;/script&gt;&lt;" in seen.document  # in the legend
    dark = visit_page(
        written, tmp_path / "profile", flags=("--blink-settings=preferredColorScheme=0",)
    )
    for shown, ink in ((seen, theme.INK), (dark, theme.DARK[theme.INK])):
        red, green, blue = (int(ink[i : i + 2], 16) for i in (1, 3, 5))
        assert f"fill: rgb({red}, {green}, {blue})" in shown.document


def visited(
    folder: Path, *parts: Any, program: str = "", body: str = "", width: int = 1400
) -> Visit:
    """Visit a page of tables, with a body before its heading, in a window of a width."""
    sections: dict[str, Any] = {"Tables": parts}
    rest = {"name": "tables", "facts": "", "sentences": ()}
    text = filled("report.html", (program,), sections=sections, **rest)
    written = folder / "page.html"
    written.write_bytes(text.replace("<h1>", f"{body}<h1>", 1).encode())
    return visit_page(written, folder / "profile", flags=(f"--window-size={width},900",))


@pytest.mark.browser
def test_tables_are_sorted_by_a_click_and_wide_ones_say_that_they_scroll(tmp_path: Path) -> None:
    """Numbers by value, whatever follows them, and what is missing last, both ways."""
    rows = [[str(i), value] for i, value in enumerate(["10 ± 1", "9", "-", "1,000"])]
    table = ("table", ["run", "regret"], rows, 1, True)
    click = "const heads = document.querySelectorAll('th button'); heads[1].click();"
    wide = ("table", [f"column {i}" for i in range(60)], [["1"] * 60])
    program = f"{click} heads[3].click(); heads[3].click();"
    seen = visited(tmp_path, table, table, wide, program=program)
    phone = visited(tmp_path, wide, width=600)  # where a row is some lines
    assert seen.console == phone.console == ()
    found = re.findall(r"<td data-head=.regret.>([^<]*)</td></tr>", seen.document)
    assert found == ["9", "10 ± 1", "1,000", "-", "1,000", "10 ± 1", "9", "-"]
    boxes = re.findall(r'<div class="wide([^>]*)>', seen.document + phone.document)
    assert boxes == ['"', '"', ' more" tabindex="0"', '"']


@pytest.mark.browser
def test_what_must_not_be_is_seen(tmp_path: Path) -> None:
    """The console tells of requests, foreign scripts and errors: an empty one means something."""
    foreign = "<script>document.title = 'broken'</script>"
    body = f'<img src="https://example.invalid/a.png">{foreign}'
    seen = visited(tmp_path, program="missing();", body=body)
    for complaint in ("Loading the image", "Executing inline script", "missing is not defined"):
        assert complaint in "\n".join(seen.console)
    assert "<title>tables</title>" in seen.document
