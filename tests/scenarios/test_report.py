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
import worlds
from pages import Page, check, panels
from written import play

from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.markets.price_impact import crowding
from regretless.scenarios.logs.reading import regret_curves
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.report import market_figures, run_figures, theme
from regretless.scenarios.report.figures import FIGURES, Run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.summary import MOST, print_summary
from regretless.scenarios.verdict import alternative_cells, difference, promise, records, sentences

ROUNDS, AGENTS = 60, 8
FEW = f"rounds={ROUNDS}", f"cohort.growers.count={AGENTS}"
Tables = dict[str, pd.DataFrame]


def played(out: Path, *assignments: str, form: str = "parquet") -> Path:
    run(worlds.told("crop-choice", *FEW, *assignments), Options(out, form))
    return out


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture(scope="module")
def page(finished: Path) -> Page:
    return check(report(finished))


@pytest.fixture
def directory(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def tables(finished: Path) -> Tables:
    read = read_run(finished)[1]
    return read | {"regret_curves": regret_curves([read["regret_log"]], read["agents"])}


def drawn(figure: go.Figure | None) -> tuple[Any, ...]:
    assert figure is not None
    return tuple(figure.data)


def report(directory: Path) -> str:
    return write_report(directory).read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_page_shows_the_tables(tmp_path: Path, form: str) -> None:
    directory = played(tmp_path / "run", form=form)
    before = {path.name for path in directory.iterdir()}
    assert write_report(directory) == directory / "report.html"
    assert {path.name for path in directory.iterdir()} == before | {"report.html"}
    page = check((directory / "report.html").read_text(encoding="utf-8"))
    manifest, tables = read_run(directory)
    agents, verdict = tables["agents"], tables["verdict"]
    for line in (*sentences(verdict, agents), *manifest["data"]):
        assert line in page.text
    ranked = records(verdict.sort_values("mean_loss", kind="stable"))
    cells = [alternative_cells(row) for row in ranked]
    assert page.rows[1 : 1 + len(cells)] == cells
    for name in ("external", "swap", "decision swap"):
        regret = agents[f"{name.replace(' ', '_')}_regret"]
        (row,) = [row for row in page.rows if row[0] == name]
        assert row[1:4] == [str(AGENTS), f"{regret.mean():.4f}", f"{regret.max():.4f}"]
    assert row[4] == promise(agents["bound_from_bias"].max(), 4)
    shown = {"alternatives", "loss", "regret", "spread", "agents", "forecast"}
    assert shown <= panels(page)
    assert page.tags.count("figure") == page.tags.count("figcaption") == len(panels(page))
    assert f'agents = pd.read_{form}("agents.{form}")' in page.text


def test_alternatives_have_their_differences_and_intervals(tables: Tables) -> None:
    others = tables["verdict"].query("kind != 'broadcast'")
    (marks,) = drawn(run_figures.alternatives(Run({}, tables)))
    assert sorted(marks.x) == sorted(others["difference"])
    halves = (others["high"] - others["difference"]).fillna(0.0)
    assert sorted(marks.error_x.array) == sorted(halves)
    alone = tables["verdict"].query("kind in ['broadcast', 'action']")
    assert run_figures.alternatives(Run({}, tables | {"verdict": alone})) is None


@pytest.mark.parametrize(
    ("change", "there", "gone"),
    [
        ("forecaster.kind=running-mean", {"loss", "regret", "forecast"}, {"certificates"}),
        ('cohort.growers.measures=["external"]', {"loss", "forecast"}, {"regret", "spread"}),
        ("rounds=1", {"alternatives", "agents"}, {"loss", "regret", "forecast"}),
    ],
)
def test_figures_are_those_that_the_logs_have(
    change: str, there: set[str], gone: set[str], tmp_path: Path
) -> None:
    page = check(report(played(tmp_path / "run", change)))
    assert there <= panels(page)
    assert not gone & panels(page)


def test_worst_agents_come_with_what_their_regret_is_made_of(page: Page, finished: Path) -> None:
    rows = page.rows[1 + [row[0] for row in page.rows].index("agent") :]
    agents = read_run(finished)[1]["agents"].set_index("agent")["decision_swap_regret"]
    sums = pd.DataFrame(rows).groupby(0, sort=False)[6].apply(lambda part: part.astype(float).sum())
    worst = agents.nlargest(5)
    assert list(map(int, sums.index)) == list(worst.index)
    assert sums.to_list() == pytest.approx(worst.tolist(), abs=5e-4)


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
        play(worlds.told("crop-choice", *FEW), tmp_path / "run", stop=20)
    page = check(report(tmp_path / "run"))
    assert f"20 of {ROUNDS} rounds, seed 7, interrupted." in page.text


def test_what_is_broken_missing_or_of_an_older_version_is_refused(directory: Path) -> None:
    verdict, agents = directory / "verdict.parquet", directory / "agents.parquet"
    older = pd.read_parquet(verdict).rename(columns={"difference": "gain"})
    for change, told in (
        (lambda: older.to_parquet(verdict), "of an older version; run it again"),
        (lambda: agents.write_bytes(b"PAR1"), "cannot be read"),
        (agents.unlink, "no agents table"),
        *(
            (partial((directory / "manifest.json").write_text, text), "cannot be read|not a run's")
            for text in ("{", "[]", "{}")
        ),
        ((directory / "manifest.json").unlink, "is not the folder of a run"),
        (lambda: shutil.rmtree(directory), r"does not exist; give the folder of .* or a training"),
    ):
        change()
        with pytest.raises(UserError, match=told):
            write_report(directory)


def test_regret_and_its_bounds_are_those_of_the_logs(tables: Tables) -> None:
    """In one figure; a bound of 1 or more is not drawn, and the pointer tells true values."""
    mean, worst, *lines = drawn(run_figures.regret(Run({}, tables)))
    regret, kept = tables["agents"]["decision_swap_regret"], tables["bounds"]
    assert (mean.x[0], mean.x[-1]) == (0, ROUNDS - 1)
    assert mean.customdata[-1] == pytest.approx(regret.mean())
    assert worst.customdata[-1] == pytest.approx(regret.max())
    assert lines
    columns = {word: column for column, (word, _) in run_figures.BOUNDS.items()}
    for line in lines:
        told = kept[columns[line.name]]
        assert line.customdata == pytest.approx(told[told < 1].to_numpy())
        assert tables["agents"][columns[line.name]].max() == pytest.approx(told.iloc[-1])
    for column in columns.values():
        tables["agents"][column] = kept[column] = np.nan  # no theorem applies
    assert len(drawn(run_figures.regret(Run({}, tables)))) == 2


def test_loss_ends_at_the_mean_loss_beside_the_alternatives(tables: Tables) -> None:
    own, *others = drawn(run_figures.loss(Run({}, tables)))
    assert own.y[-1] == pytest.approx(tables["agents"]["mean_loss"].mean())
    verdict = tables["verdict"].query("kind != 'broadcast'")
    least = verdict.groupby("kind")["mean_loss"].min()
    assert sorted(line.y[0] for line in others) == sorted(least)


def test_rounds_are_dated_where_the_data_are(page: Page) -> None:
    assert '"2012-01-01T00:00:00"' in page.charts
    figure = theme.panels().add_trace(theme.line([0, 1, 5], [1.0, 2.0, 3.0], "a"))
    figure.update_xaxes(title_text="round; as they are")
    for names in (["Mon", "Tue"], ["2020-01-02", "2020-01-01"]):  # no dates; not in order
        theme.dated(figure, pd.Series(names), "day")
        assert figure.data[0].x.tolist() == [0, 1, 5]
    theme.dated(figure, pd.Series(["2020-01-01", "2020-01-02"]), "day")
    assert [day[:10] for day in figure.data[0].x] == ["2020-01-01", "2020-01-02", "2020-01-02"]
    assert figure.layout.xaxis.title.text == "day; as they are"


def test_forecast_figure_averages_blocks_and_rounds(tables: Tables) -> None:
    rounds, forecasts = tables["rounds"], tables["forecasts"]
    second = forecasts.assign(block="second", label_0=0.0)
    tables["forecasts"] = pd.concat([forecasts, second], ignore_index=True)
    data = {"outcomes": ["a", "b", "c"], "scale": {"a": [5.0, 25.0], "c": [1.0, 0.0]}}
    outcome, forecast, *_ = drawn(run_figures.forecast(Run({"data": data}, tables)))
    window = ROUNDS // 5
    assert outcome.y[-1] == pytest.approx(5 + 20 * rounds["y_0"].tail(window).mean())
    said = forecasts.loc[forecasts["drawn"], "label_0"]
    assert forecast.y[-1] == pytest.approx(5 + 20 * said.tail(window).mean() / 2)


def test_market_figure_draws_demand_and_what_it_did(tmp_path: Path) -> None:
    run(worlds.told("crowding", f"rounds={ROUNDS}"), Options(tmp_path / "run"))
    tables = read_run(tmp_path / "run")[1]
    goods = ["tea", "salt", "rum"]
    data = Run({"adversary": {"outcome_names": goods}}, tables)
    figure = market_figures.demand(data)
    measured = crowding(tables["rounds"], tables["forecasts"]).tail(ROUNDS // 5)
    *demand, concentration, confirmed = drawn(figure)
    for i, (curve, good) in enumerate(zip(demand, goods, strict=True)):
        expected = tables["rounds"][f"demand_{i}"].tail(ROUNDS // 5).mean()
        assert (curve.name, curve.y[-1]) == (good, pytest.approx(expected))
    assert concentration.y[-1] == pytest.approx(measured["concentration"].mean())
    assert confirmed.y[-1] == pytest.approx(measured["confirmed"].mean())
    labels = [name for name in tables["forecasts"] if name.startswith("label_")]
    tables["forecasts"] = tables["forecasts"].drop(columns=labels)
    assert len(drawn(market_figures.demand(data))) == 4


def test_own_measures_are_drawn_by_cohort(tmp_path: Path) -> None:
    """Of the round, of cohorts by name, and of every agent as the mean of its cohort."""
    taken = {
        "report: round": lambda model: model.played,
        "report: cohort": lambda _: {"growers": 2.0},
        "report: agent": lambda _: np.arange(AGENTS, dtype=float),
    }
    for name, measure in taken.items():
        register.measure(name)(measure)
    out = played(tmp_path / "run", "rounds=10", f"measures={json.dumps(list(taken))}")
    assert "measures" in panels(check(report(out)))
    tables = read_run(out)[1]
    ends = {(c.yaxis, c.name): c.y[-1] for c in drawn(market_figures.measures(Run({}, tables)))}
    assert list(ends.values()) == [10.0, 2.0, (AGENTS - 1) / 2]
    assert [name for _, name in ends] == ["all", "growers", "growers"]


# What is printed, in 80 columns and 40 lines.


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
    scenario, shown = worlds.told(name, "rounds=6", *other), []
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
            assert f"before the run, {some} agents" in short
        for row in records(rows.iloc[1:]):
            cells = alternative_cells(row)[1:]
            assert re.search(" +".join(map(re.escape, filter(None, cells))), whole), cells


@pytest.mark.parametrize(
    ("gap", "half", "words"),
    [
        (0.02, 0.03, "no difference found (between -0.0100 and 0.0500)"),
        (-0.02, 0.01, "0.0200 less (95 % interval -0.0300 to -0.0100)"),
        (0.02, float("nan"), "0.0200 more"),
        (0.00001, float("nan"), "a difference below 0.0001"),
    ],
)
def test_an_interval_around_0_is_no_difference_found(gap: float, half: float, words: str) -> None:
    assert difference({"difference": gap, "low": gap - half, "high": gap + half}) == words
