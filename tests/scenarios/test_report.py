"""The report of a run and what it prints: what the logs say, in one safe, self-contained page."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
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
from regretless.scenarios.report import forecast_figures, market_figures, run_figures, theme
from regretless.scenarios.report.figures import FIGURES, Run
from regretless.scenarios.report.page import Part, table_part
from regretless.scenarios.report.page import page as fill_page
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.summary import MAX_LINES, print_summary
from regretless.scenarios.verdict import (
    alternative_cells,
    bound_text,
    describe_difference,
    records,
    sentences,
)

ROUNDS = 60
AGENTS = 8
WINDOW = 12  # of rolling means, a fifth of the rounds
SMALL = [f"rounds={ROUNDS}", f"cohort.growers.count={AGENTS}"]
Tables = dict[str, pd.DataFrame]


def run_crop_choice(out: Path, *assignments: str, file_format: str = "parquet") -> Path:
    """Run a small crop choice with these keys, and return its folder."""
    run(read_scenario("crop-choice", *SMALL, *assignments), Options(out, file_format))
    return out


def write_and_parse_report(run_folder: Path) -> ReportPage:
    """Write a report, which adds one file to the folder, and take it apart."""
    names_before = {path.name for path in run_folder.iterdir()}
    assert write_report(run_folder) == run_folder / "report.html"
    assert {path.name for path in run_folder.iterdir()} == names_before | {"report.html"}
    return parse_page((run_folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def crop_choice_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that no test changes."""
    return run_crop_choice(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture
def copied_run(crop_choice_run: Path, tmp_path: Path) -> Path:
    """Return the folder of a copy, which a test may change."""
    return shutil.copytree(crop_choice_run, tmp_path / "run")


@pytest.fixture
def tables(crop_choice_run: Path) -> Tables:
    """Return the run's tables, and the curves that a report makes of its log."""
    tables = read_run(crop_choice_run)[1]
    return tables | {"regret_curves": regret_curves([tables["regret_log"]], tables["agents"])}


def traces_of(figure: go.Figure | None) -> tuple[Any, ...]:
    """Return the traces of a figure that must be there."""
    assert figure is not None
    return tuple(figure.data)


@pytest.fixture(scope="module", params=["parquet", "csv"])
def run_in_each_format(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, ReportPage]:
    """Return a file format, the folder of a run in it, and the run's page."""
    folder = tmp_path_factory.mktemp("formats") / "run"
    run_crop_choice(folder, file_format=request.param)
    return request.param, folder, write_and_parse_report(folder)


def test_the_page_says_the_verdict_and_where_data_came_from(
    run_in_each_format: tuple[str, Path, ReportPage],
) -> None:
    _, folder, page = run_in_each_format
    manifest, tables = read_run(folder)
    for line in (*sentences(tables["verdict"], tables["agents"]), *manifest["data"]):
        assert line in page.text


def test_the_page_ranks_the_alternatives_by_their_mean_loss(
    run_in_each_format: tuple[str, Path, ReportPage],
) -> None:
    _, folder, page = run_in_each_format
    verdict = read_run(folder)[1]["verdict"]
    ranked = records(verdict.sort_values("mean_loss", kind="stable"))
    cells = [alternative_cells(row) for row in ranked]
    assert page.rows[1 : 1 + len(cells)] == cells
    for row, row_cells in zip(ranked, cells, strict=True):
        is_broadcast = row["kind"] == "broadcast"
        assert row_cells[-1] == ("" if is_broadcast else f"{row['better_off']} of {AGENTS}")


def test_the_page_shows_mean_and_greatest_regret_and_the_promise(
    run_in_each_format: tuple[str, Path, ReportPage],
) -> None:
    _, folder, page = run_in_each_format
    agents = read_run(folder)[1]["agents"]
    for name in ("external", "swap", "decision swap"):
        regret = agents[f"{name.replace(' ', '_')}_regret"]
        (row,) = [row for row in page.rows if row[0] == name]
        assert row[1:4] == [str(AGENTS), f"{regret.mean():.4f}", f"{regret.max():.4f}"]
    assert row[4] == bound_text(agents["bound_from_bias"].max(), 4)  # of decision swap regret


def test_the_page_shows_what_the_regret_of_the_worst_five_agents_is_made_of(
    run_in_each_format: tuple[str, Path, ReportPage],
) -> None:
    _, folder, page = run_in_each_format
    agents = read_run(folder)[1]["agents"]
    first_row = 1 + [row[0] for row in page.rows].index("agent")
    parts = pd.DataFrame(page.rows[first_row:])
    sums = parts.groupby(0, sort=False)[6].apply(lambda part: part.astype(float).sum())
    worst = agents.set_index("agent")["decision_swap_regret"].nlargest(5)
    assert list(map(int, sums.index)) == list(worst.index)
    assert sums.to_list() == pytest.approx(worst.tolist(), abs=5e-4)


def test_every_figure_has_a_caption_and_rounds_are_dated_where_the_data_are(
    run_in_each_format: tuple[str, Path, ReportPage],
) -> None:
    _, _, page = run_in_each_format
    charts = chart_names(page)
    assert {"alternatives", "loss", "regret", "spread", "agents", "forecast"} <= charts
    assert page.tags.count("figure") == page.tags.count("figcaption") == len(charts)
    assert '"2012-01-01T00:00:00"' in page.charts


def test_the_page_says_how_its_tables_are_read(
    run_in_each_format: tuple[str, Path, ReportPage],
) -> None:
    file_format, _, page = run_in_each_format
    assert f'agents = pd.read_{file_format}("agents.{file_format}")' in page.text


@pytest.mark.parametrize(
    ("assignment", "drawn", "not_drawn"),
    [
        ("forecaster.kind=running-mean", {"loss", "regret", "forecast"}, {"certificates"}),
        ('cohort.growers.measures=["external"]', {"loss", "forecast"}, {"regret", "spread"}),
        ("rounds=1", {"alternatives", "agents"}, {"loss", "regret", "forecast"}),
    ],
)
def test_figures_are_those_that_the_logs_have(
    tmp_path: Path, assignment: str, drawn: set[str], not_drawn: set[str]
) -> None:
    charts = chart_names(write_and_parse_report(run_crop_choice(tmp_path / "run", assignment)))
    assert drawn <= charts
    assert not not_drawn & charts


def test_data_of_a_figure_cannot_end_their_element() -> None:
    """Whatever text comes to a figure, also text that ``plain`` has not seen."""
    dangerous_name = "</script><!--<script>"
    figure = theme.make_panels().add_traces([{"name": dangerous_name}])
    data = replace(FIGURES["run"]["loss"], chart=figure).json
    assert "<" not in data
    assert json.loads(data)["data"][0]["name"] == dangerous_name


def test_same_logs_give_the_same_bytes(copied_run: Path) -> None:
    page = write_report(copied_run).read_bytes()
    elsewhere = shutil.copytree(copied_run, copied_run.parent / "elsewhere")
    assert write_report(elsewhere).read_bytes() == page


def test_a_report_replaces_no_other_file(copied_run: Path) -> None:
    (copied_run / "report.html").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"report\.html is there and"):
        write_report(copied_run)
    assert (copied_run / "report.html").read_text(encoding="utf-8") == "mine"
    assert not list(copied_run.glob(".*.tmp"))


def test_the_report_of_an_interrupted_run_says_how_far_it_came(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_to_folder(read_scenario("crop-choice", *SMALL), tmp_path / "run", stop=20)
    page = write_and_parse_report(tmp_path / "run")
    assert f"20 of {ROUNDS} rounds, seed 7, interrupted." in page.text


def write_older_verdict(run_folder: Path) -> None:
    """Write a verdict with the column names of an older version."""
    file = run_folder / "verdict.parquet"
    pd.read_parquet(file).rename(columns={"difference": "gain"}).to_parquet(file)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "of an older version; run it again": write_older_verdict,
    "cannot be read: .*agents": lambda folder: (folder / "agents.parquet").write_bytes(b"PAR1"),
    "no agents table": lambda folder: (folder / "agents.parquet").unlink(),
    "manifest.* cannot be read": lambda folder: (folder / "manifest.json").write_text("{"),
    "cannot be read": lambda folder: (folder / "manifest.json").write_text("[]"),
    "not a run's": lambda folder: (folder / "manifest.json").write_text("{}"),
    "is not the folder of a run": lambda folder: (folder / "manifest.json").unlink(),
    r"does not exist; give the folder of .* or a training": shutil.rmtree,
}


@pytest.mark.parametrize("line", DAMAGES)
def test_a_damaged_run_is_refused_in_a_line_that_says_what_is_wrong(
    copied_run: Path, line: str
) -> None:
    DAMAGES[line](copied_run)
    with pytest.raises(UserError, match=line):
        write_report(copied_run)


def test_the_figure_of_alternatives_draws_their_differences_with_intervals(tables: Tables) -> None:
    verdict = tables["verdict"].query("kind != 'broadcast'")
    (marks,) = traces_of(run_figures.alternatives(Run({}, tables)))
    assert sorted(marks.x) == sorted(verdict["difference"])
    half_widths = (verdict["high"] - verdict["difference"]).fillna(0.0)
    assert sorted(marks.error_x.array) == sorted(half_widths)


def test_there_is_no_figure_of_alternatives_that_are_single_actions(tables: Tables) -> None:
    tables["verdict"] = tables["verdict"].query("kind in ['broadcast', 'action']")
    assert run_figures.alternatives(Run({}, tables)) is None


def test_the_figure_of_losses_ends_at_the_mean_and_draws_the_best_of_each_kind(
    tables: Tables,
) -> None:
    verdict = tables["verdict"].query("kind != 'broadcast'")
    broadcast, *alternatives = traces_of(run_figures.loss(Run({}, tables)))
    assert broadcast.y[-1] == pytest.approx(tables["agents"]["mean_loss"].mean())
    best_losses = verdict.groupby("kind")["mean_loss"].min()
    assert sorted(line.y[0] for line in alternatives) == sorted(best_losses)


def test_the_figure_of_regret_ends_at_the_mean_and_the_worst_agent(tables: Tables) -> None:
    mean, worst, *_ = traces_of(run_figures.regret(Run({}, tables)))
    regret = tables["agents"]["decision_swap_regret"]
    assert (mean.x[0], mean.x[-1]) == (0, ROUNDS - 1)
    assert mean.customdata[-1] == pytest.approx(regret.mean())
    assert worst.customdata[-1] == pytest.approx(regret.max())


def test_the_figure_of_regret_draws_bounds_below_1_with_their_true_values(tables: Tables) -> None:
    agents = tables["agents"]
    _, _, *bound_lines = traces_of(run_figures.regret(Run({}, tables)))
    column_of = {word: column for column, (word, _) in run_figures.BOUNDS.items()}
    assert bound_lines
    for line in bound_lines:
        bound = tables["bounds"][column_of[line.name]]
        assert line.customdata == pytest.approx(bound[bound < 1].to_numpy())
        assert agents[column_of[line.name]].max() == pytest.approx(bound.iloc[-1])


def test_the_figure_of_regret_has_no_bounds_where_no_theorem_applies(tables: Tables) -> None:
    for column in run_figures.BOUNDS:
        tables["agents"][column] = np.nan
        tables["bounds"][column] = np.nan
    assert len(traces_of(run_figures.regret(Run({}, tables)))) == 2


@pytest.mark.parametrize("names", [["Mon", "Tue"], ["2020-01-02", "2020-01-01"]])
def test_rounds_are_drawn_as_numbers_where_their_names_are_not_dates_in_order(
    names: list[str],
) -> None:
    figure = theme.make_panels().add_trace(theme.line([0, 1, 5], [1.0, 2.0, 3.0], "a"))
    theme.show_dates(figure, theme.NamesOfRounds(pd.Series(names), "day"))
    assert figure.data[0].x.tolist() == [0, 1, 5]


def test_rounds_are_drawn_as_dates_where_these_are_in_order() -> None:
    figure = theme.make_panels().add_trace(theme.line([0, 1, 5], [1.0, 2.0, 3.0], "a"))
    figure.update_xaxes(title_text="round; as they are")
    names = pd.Series(["2020-01-01", "2020-01-02"])
    theme.show_dates(figure, theme.NamesOfRounds(names, "day"))
    assert [day[:10] for day in figure.data[0].x] == ["2020-01-01", "2020-01-02", "2020-01-02"]
    assert figure.layout.xaxis.title.text == "day; as they are"


@pytest.mark.parametrize(
    ("order", "first_day"), [("day first", "2024-04-03"), ("month first", "2024-03-04")]
)
def test_rounds_are_drawn_as_dates_written_as_the_scenario_says(order: str, first_day: str) -> None:
    rounds = pd.DataFrame({"round": [0, 1], "day": ["03/04/2024", "03/05/2024"]})
    if order == "month first":
        rounds["day"] = ["03/04/2024", "04/04/2024"]
    run = Run({"data": {"index": "day", "dates": order}}, {"rounds": rounds})
    figure = theme.make_panels().add_trace(theme.line([0, 1], [1.0, 2.0], "a"))
    theme.show_dates(figure, run.dates)
    assert figure.data[0].x[0][:10] == first_day


def test_the_figure_of_forecasts_averages_blocks_and_rounds_in_the_data_s_unit(
    tables: Tables,
) -> None:
    forecasts = tables["forecasts"]
    second_block = forecasts.assign(block="second", label_0=0.0)
    tables["forecasts"] = pd.concat([forecasts, second_block], ignore_index=True)
    data = {"outcomes": ["a", "b", "c"], "scale": {"a": [5.0, 25.0], "c": [1.0, 0.0]}}
    outcome, forecast, *_ = traces_of(forecast_figures.forecast(Run({"data": data}, tables)))
    mean_outcome = tables["rounds"]["y_0"].tail(WINDOW).mean()
    mean_forecast = forecasts.loc[forecasts["drawn"], "label_0"].tail(WINDOW).mean()
    assert outcome.y[-1] == pytest.approx(5 + 20 * mean_outcome)
    assert forecast.y[-1] == pytest.approx(5 + 20 * mean_forecast / 2)  # the second says 0


GOODS = ["tea", "salt", "rum"]


@pytest.fixture(scope="module")
def crowding_tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return the tables of a run whose market moves outcomes."""
    folder = tmp_path_factory.mktemp("crowding") / "run"
    run(read_scenario("crowding", f"rounds={ROUNDS}"), Options(folder))
    return read_run(folder)[1]


def test_the_market_figure_draws_demand_and_what_it_did(crowding_tables: Tables) -> None:
    run_of_market = Run({"adversary": {"outcome_names": GOODS}}, crowding_tables)
    last_of = {curve.name: curve.y[-1] for curve in traces_of(market_figures.demand(run_of_market))}
    rounds = crowding_tables["rounds"]
    demand = rounds.filter(regex="^demand_").tail(WINDOW).mean()
    effect = crowding(rounds, crowding_tables["forecasts"]).tail(WINDOW).mean()
    assert list(last_of)[:3] == GOODS
    expected = [*demand, effect["concentration"], effect["confirmed"]]
    assert list(last_of.values()) == pytest.approx(expected)


def test_without_labels_the_market_figure_does_not_draw_what_was_confirmed(
    crowding_tables: Tables,
) -> None:
    forecasts = crowding_tables["forecasts"]
    labels = [name for name in forecasts if name.startswith("label_")]
    unlabelled = crowding_tables | {"forecasts": forecasts.drop(columns=labels)}
    run_of_market = Run({"adversary": {"outcome_names": GOODS}}, unlabelled)
    assert len(traces_of(market_figures.demand(run_of_market))) == 4


def test_own_measures_are_drawn_by_cohort(tmp_path: Path) -> None:
    """Of the round, of cohorts by name, and of every agent as the mean of its cohort."""
    register.measure("report: round")(lambda model: model.played)
    register.measure("report: cohort")(lambda _: {"growers": 2.0})
    register.measure("report: agent")(lambda _: np.arange(AGENTS, dtype=float))
    names = json.dumps(["report: round", "report: cohort", "report: agent"])
    folder = run_crop_choice(tmp_path / "run", "rounds=10", f"measures={names}")
    assert "measures" in chart_names(write_and_parse_report(folder))
    curves = traces_of(market_figures.measures(Run({}, read_run(folder)[1])))
    assert [curve.name for curve in curves] == ["all", "growers", "growers"]
    assert [curve.y[-1] for curve in curves] == [10.0, 2.0, (AGENTS - 1) / 2]
    assert len({curve.yaxis for curve in curves}) == 3


# one of each kind: models or none, a policy, learners, one agent, who is late
RUNS: list[Any] = [
    ("late-news", None),
    ("beating-mean-based-learners", None),
    ("survival", None),
    ("own-draws", None),
    ("trend-followers", "decision-swap"),
    ("trend-followers", "running-mean"),
    ("crop-choice", "exponential-smoothing"),
    pytest.param("mixed-bazaar", None, marks=pytest.mark.catalogue),
]
MEASURES = ("external_regret", "swap_regret", "decision_swap_regret", "exploitability")


def agents_of(agents: pd.DataFrame, cohort: str) -> pd.DataFrame:
    """Return the rows of a cohort, or of everybody."""
    return agents if cohort == "everybody" else agents[agents["cohort"] == cohort]


@pytest.mark.parametrize(("name", "forecaster"), RUNS)
def test_what_is_printed_is_in_the_tables(
    name: str, forecaster: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assignments = [] if forecaster is None else [f"forecaster.kind={forecaster}"]
    scenario = read_scenario(name, "rounds=6", *assignments)
    model = run(scenario, Options(tmp_path))
    print_summary(scenario, model, tmp_path, verbose=False)
    short = capsys.readouterr().out
    print_summary(scenario, model, tmp_path, verbose=True)
    verbose = capsys.readouterr().out
    for line in [*short.splitlines(), *verbose.splitlines()]:
        assert len(line) <= 80 or "Logs: " in line
    assert len(short.splitlines()) <= MAX_LINES
    tables = read_run(tmp_path)[1]
    for cohort, rows in tables["verdict"].groupby("cohort", sort=False):
        members = agents_of(tables["agents"], cohort)
        best = rows[rows["kind"] != "broadcast"].nsmallest(1, "mean_loss")
        for printed in (short, verbose):
            assert f"{members['mean_loss'].mean():.4f}" in printed
            assert re.search(rf"{best['mean_loss'].item():.4f} +[+-]0*\.?\d", printed)
            for measure in MEASURES:
                is_measured = members[measure].notna().any()
                assert not is_measured or f"{members[measure].max():.4f}" in printed
        for row in records(rows.iloc[1:]):
            cells = [re.escape(cell) for cell in alternative_cells(row)[1:] if cell]
            assert re.search(" +".join(cells), verbose), cells


def test_the_summary_says_how_many_agents_hear_a_forecast_of_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = read_scenario("late-news", "rounds=6")
    model = run(scenario, Options(tmp_path))
    print_summary(scenario, model, tmp_path, verbose=False)
    agents = read_run(tmp_path)[1]["agents"]
    n_bounded = int(agents["bound"].notna().sum())
    assert 0 < n_bounded < len(agents)
    assert f"without correction, {n_bounded} agents" in capsys.readouterr().out


@pytest.fixture(scope="module")
def late_news_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run in which a tenth of the agents have a guarantee."""
    folder = tmp_path_factory.mktemp("late-news") / "run"
    run(read_scenario("late-news", "rounds=40"), Options(folder))
    return folder


def test_the_page_says_for_how_many_agents_a_bound_holds(late_news_run: Path) -> None:
    n_bounded = int(read_run(late_news_run)[1]["agents"]["bound"].notna().sum())
    page = write_and_parse_report(late_news_run)
    (row,) = [row for row in page.rows if row[0] == "decision swap"]
    assert row[-1].endswith(f", {n_bounded} agents")


def test_bounds_are_drawn_beside_the_worst_regret_of_whom_they_cover(late_news_run: Path) -> None:
    tables = read_run(late_news_run)[1]
    tables["regret_curves"] = regret_curves([tables["regret_log"]], tables["agents"])
    curves = {curve.name: curve for curve in traces_of(run_figures.regret(Run({}, tables)))}
    covered_agents = tables["agents"][tables["agents"]["guarantee"] != "none"]
    worst_covered = curves["worst agent with a guarantee"].y[-1]
    assert worst_covered == pytest.approx(covered_agents["decision_swap_regret"].max())
    assert worst_covered < curves["worst agent"].y[-1]


def test_a_page_of_learners_alone_speaks_neither_of_models_nor_of_bounds(tmp_path: Path) -> None:
    run(read_scenario("chicken", "rounds=12"), Options(tmp_path / "run"))
    page = write_and_parse_report(tmp_path / "run")
    assert "No models were compared" not in page.text
    assert "On the worst decision swap regret of a cohort" not in page.text


@pytest.mark.parametrize(
    ("mean", "half_width", "words"),
    [
        (0.02, 0.03, "no difference found (between -0.0100 and 0.0500)"),
        (-0.02, 0.01, "0.0200 less (95 % interval -0.0300 to -0.0100)"),
        (0.02, float("nan"), "0.0200 more"),
        (0.00001, float("nan"), "a difference below 0.0001"),
    ],
)
def test_an_interval_around_0_is_no_difference_found(
    mean: float, half_width: float, words: str
) -> None:
    row = {"difference": mean, "low": mean - half_width, "high": mean + half_width}
    assert describe_difference(row) == words


MARKUP = "</script><script>document.title = 'broken'</script><b>%{x} $y$ & \"q\""
COHORT = {"utility": "linear", "actions": 3, "count": 4}
SCENARIO_WITH_MARKUP = {
    "name": "market <b>&amp;",
    "description": f"claim {MARKUP}",
    "source": f"by {MARKUP}",
    "rounds": 40,
    "windows": {"every": 20},
    "adversary": {"kind": "switching", "outcomes": 2},
    "cohort": [COHORT | {"name": f"crowd {MARKUP}"}, COHORT | {"name": "calm"}],
}
DARK_MODE = "--blink-settings=preferredColorScheme=0"
FIGURES_OF_SWITCHING = [
    "loss",
    "regret",
    "windows",
    "spread",
    "agents",
    "exploitability",
    "forecast",
    "certificates",
    "calibration",
    "reliability",
    "decision_calibration",
]


@pytest.fixture(scope="module")
def run_with_markup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run whose texts try to be scripts and tags, with its report."""
    folder = tmp_path_factory.mktemp("markup") / "run"
    run(read_scenario(SCENARIO_WITH_MARKUP), Options(folder))
    write_report(folder)
    return folder


def test_texts_of_a_scenario_are_shown_and_make_no_tags(run_with_markup: Path) -> None:
    page = parse_page((run_with_markup / "report.html").read_text(encoding="utf-8"))
    assert "b" not in page.tags
    for text in (f"crowd {MARKUP}", "market <b>&amp;", f"claim {MARKUP}", f"by {MARKUP}"):
        assert text in page.text


def test_a_page_is_below_eight_megabytes(run_with_markup: Path) -> None:
    assert (run_with_markup / "report.html").stat().st_size < 8_000_000


@pytest.mark.browser
def test_a_browser_draws_every_figure_without_complaint(
    run_with_markup: Path, tmp_path: Path
) -> None:
    seen = visit_page(run_with_markup / "report.html", tmp_path / "profile")
    assert seen.console == ()
    assert seen.document.count('class="js-plotly-plot"') == len(FIGURES_OF_SWITCHING)
    for name in FIGURES_OF_SWITCHING:
        assert seen.count_traces(name) >= 2, name
    # mean and worst agent of two cohorts, and bounds below 1
    assert seen.count_traces("regret") >= 4
    assert seen.count_traces("agents") == 2
    assert 'class="card" hidden' not in seen.document  # as it is without scripts
    assert "<title>market &lt;b&gt;&amp;amp;</title>" in seen.document
    assert "crowd &lt;/script&gt;&lt;" in seen.document  # in the legend


@pytest.mark.browser
@pytest.mark.parametrize(
    ("flags", "ink"),
    [((), theme.INK), ((DARK_MODE,), theme.DARK[theme.INK])],
    ids=["light", "dark"],
)
def test_a_browser_draws_in_light_and_dark(
    run_with_markup: Path, tmp_path: Path, flags: tuple[str, ...], ink: str
) -> None:
    seen = visit_page(run_with_markup / "report.html", tmp_path / "profile", flags=flags)
    red, green, blue = (int(ink[i : i + 2], 16) for i in (1, 3, 5))
    assert f"fill: rgb({red}, {green}, {blue})" in seen.document


def visit_tables(
    folder: Path, *parts: Part, program: str = "", body: str = "", width: int = 1400
) -> Visit:
    """Visit a page of tables, with a body before its heading, in a window of a width."""
    sections: dict[str, Any] = {"Tables": parts}
    page = fill_page(
        "report.html", (program,), sections=sections, name="tables", facts="", sentences=()
    )
    file = folder / "page.html"
    file.write_bytes(page.replace("<h1>", f"{body}<h1>", 1).encode())
    return visit_page(file, folder / "profile", flags=(f"--window-size={width},900",))


WIDE_TABLE = table_part([f"column {i}" for i in range(60)], [["1"] * 60])


@pytest.mark.browser
def test_a_click_sorts_a_table_by_value_and_another_the_other_way(tmp_path: Path) -> None:
    """Numbers are sorted by value, whatever follows them, and what is missing last, both ways."""
    rows = [["0", "10 ± 1"], ["1", "9"], ["2", "-"], ["3", "1,000"]]
    table = table_part(["run", "regret"], rows, is_sortable=True)
    heads = "const heads = document.querySelectorAll('th button');"
    program = f"{heads} heads[1].click(); heads[3].click(); heads[3].click();"
    seen = visit_tables(tmp_path, table, table, program=program)
    assert seen.console == ()
    regret_cells = re.findall(r"<td data-head=.regret.>([^<]*)</td></tr>", seen.document)
    assert regret_cells[:4] == ["9", "10 ± 1", "1,000", "-"]
    assert regret_cells[4:] == ["1,000", "10 ± 1", "9", "-"]


@pytest.mark.browser
def test_a_table_wider_than_the_window_says_that_it_scrolls(tmp_path: Path) -> None:
    narrow_table = table_part(["run", "regret"], [["0", "9"]])
    desktop = visit_tables(tmp_path, narrow_table, WIDE_TABLE)
    assert desktop.console == ()
    boxes = re.findall(r'<div class="wide([^>]*)>', desktop.document)
    assert boxes == ['"', ' more" tabindex="0"']


@pytest.mark.browser
def test_on_a_phone_a_row_is_some_lines_and_no_table_scrolls(tmp_path: Path) -> None:
    phone = visit_tables(tmp_path, WIDE_TABLE, width=600)
    assert phone.console == ()
    assert re.findall(r'<div class="wide([^>]*)>', phone.document) == ['"']


@pytest.mark.browser
def test_requests_foreign_scripts_and_errors_are_in_the_console(tmp_path: Path) -> None:
    """So an empty console means something."""
    foreign_script = "<script>document.title = 'broken'</script>"
    body = f'<img src="https://example.invalid/a.png">{foreign_script}'
    seen = visit_tables(tmp_path, program="missing();", body=body)
    console = "\n".join(seen.console)
    assert "Loading the image" in console
    assert "Executing inline script" in console
    assert "missing is not defined" in console
    assert "<title>tables</title>" in seen.document
