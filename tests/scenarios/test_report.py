"""The report of a run: what it shows is what the logs say, in one safe, self-contained page."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from pages import check, panels

from regretless.forecaster.tolerance import slack_limit
from regretless.market.core.errors import UserError
from regretless.market.markets.price_impact import crowding
from regretless.scenarios import load
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.logs.curves import MOST_POINTS, regret_curves, thinned
from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.report import charts, course, market_figures, run_figures
from regretless.scenarios.report import verdict as report_verdict
from regretless.scenarios.report.page import outcome_ends, write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.spec.files import find, override, read
from regretless.scenarios.spec.scenario import validated
from regretless.scenarios.summary import promise
from regretless.scenarios.verdict import sentences, stood

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS, AGENTS = 60, 8


def small(*assignments: str) -> dict[str, Any]:
    settings = [f"rounds={ROUNDS}", f"cohort.growers.count={AGENTS}"]
    return override(read(find("crop-choice")), [*settings, *assignments])


def played(out: Path, raw: dict[str, Any], form: str = "parquet", log_every: int = 1) -> Path:
    scenario = Scenario(validated(raw, origin=find("crop-choice").parent))
    run(scenario, Options(out, form, log_every))
    return out


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("report") / "run", small())


@pytest.fixture
def directory(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


def report(directory: Path) -> str:
    return write_report(directory).read_text(encoding="utf-8")


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_page_shows_the_agents_table(tmp_path: Path, form: str) -> None:
    directory = played(tmp_path / "run", small(), form)
    before = {path.name for path in directory.iterdir()}
    path = write_report(directory)
    assert path == directory / "report.html"
    assert {path.name for path in directory.iterdir()} == before | {"report.html"}
    page = check(path.read_text(encoding="utf-8"))
    agents = read_run(directory)[1]["agents"]
    regrets = (agents[f"{name}_regret"] for name in ("external", "swap", "decision_swap"))
    assert page.rows[1] == [
        "growers",
        str(AGENTS),
        f"{agents['mean_loss'].mean():.4f}",
        *(f"{regret.mean():.4f} / {regret.max():.4f}" for regret in regrets),
        f"{agents['bound_from_bias'].max():.4f}",
        promise(agents["bound_from_variation"].max()),
        promise(agents["bound"].max()),
        f"{agents['exploitability'].max():.4f}",
    ]
    shown = {"verdict", "loss", "regret", "bounds", "spread", "agents", "forecast"}
    if agents["exploitability"].max() > 0:  # else the table tells it
        shown.add("exploitability")
    assert panels(page) == shown
    assert page.tags.count("figure") == page.tags.count("figcaption") == len(shown)
    assert f"{ROUNDS} rounds, seed 7, complete." in page.text
    assert f'agents = pd.read_{form}("agents.{form}")' in page.text


def test_the_verdict_is_that_of_the_run(directory: Path) -> None:
    """Words, figure and table say what the logs do, whatever the alternative."""
    manifest, tables = read_run(directory)
    page, kept = check(report(directory)), manifest["blocks"][0]
    for line in (*sentences(tables["verdict"], tables["agents"]), *manifest["data"]):
        assert line in page.text
    assert f"was broadcast as it was in {kept['kept']:.0%} of the rounds" in page.text
    verdict = tables["verdict"].sort_values("mean_loss", kind="stable")
    start = [row[:2] for row in page.rows].index(["cohort", "alternative"]) + 1
    rows = page.rows[start : start + len(verdict)]
    assert [row[2] for row in rows] == [f"{loss:.4f}" for loss in verdict["mean_loss"]]
    others = verdict[verdict["kind"] != "broadcast"]
    told = [row[4] for row in rows if row[1] != "what they did"]
    assert told == [f"{count} of {AGENTS}" for count in others["better_off"]]
    marks = drawn(report_verdict.figure(tables["verdict"]))
    assert [m.name for m in marks] == ["model", "policy", "best fixed action"]
    assert sorted(np.concatenate([m.x for m in marks])) == sorted(others["gain"])
    halves = np.concatenate([m.error_x.array for m in marks])
    assert sorted(halves) == sorted(others["gain_half"].fillna(0.0))


def test_without_models_there_are_other_alternatives(tmp_path: Path) -> None:
    directory = played(tmp_path / "run", small("forecaster.models=[]", "rounds=20"))
    page = check(report(directory))
    assert {"verdict", "loss"} <= panels(page)
    assert "No models were compared" in page.text
    alone = read_run(directory)[1]["verdict"].query("kind in ['broadcast', 'action']")
    assert report_verdict.figure(alone) is None  # one dot says less than the table


@pytest.mark.parametrize("model", [None, "running-mean"])
def test_the_words_are_chosen_by_the_numbers(directory: Path, model: str | None) -> None:
    """Alike within the interval or as printed, else less or more; what swaps save is the worst."""
    tables = read_run(directory)[1]
    verdict, agents = tables["verdict"], tables["agents"]
    own, best = verdict["kind"] == "broadcast", verdict["kind"] == "model"
    verdict = verdict[own | (best & (verdict["name"] == "running-mean")) if model else own]
    fixed = verdict.iloc[:1].assign(kind="action", name="best of each")
    verdict = pd.concat([verdict, fixed], ignore_index=True)
    for row, (loss, gain, half, word) in enumerate(
        [
            (0.5, 0.2, 0.1, "less than"),
            (0.5, 0.2, 0.3, "about as much as"),
            (0.2, -0.1, 0.0, "more"),
        ]
        if model
        else []
    ):
        verdict.loc[0, "mean_loss"], verdict.loc[1, "mean_loss"] = 0.3, loss
        verdict.loc[1, ["gain", "gain_half"]] = gain, half
        (line,) = sentences(verdict, agents)
        assert f"{word} " in line.split(", ")[0], row
        assert f"with running-mean ({loss:.4f})" in line
    verdict.loc[verdict["kind"] == "action", "mean_loss"] = verdict["mean_loss"].iloc[0] + 1e-6
    (line,) = sentences(verdict, agents)
    assert "about as much as with the best fixed action of each" in line
    worst = agents["decision_swap_regret"].max()
    assert f"regret of the worst of {AGENTS} agents: {worst:.4f} per round." in line


@pytest.mark.parametrize(
    ("lost", "words"),
    [(None, "not corrected"), (12, "not corrected before round 13"), (0, "from the start")],
)
def test_a_base_and_its_trust_in_words(lost: int | None, words: str) -> None:
    line = stood("powers", "aggregate", 0.5, lost)
    assert line.startswith(
        "powers: the models' weighted mean was broadcast as it was in 50% of the"
    )
    assert line.endswith(words)


def test_baseline_has_no_bound_and_no_certificates(tmp_path: Path) -> None:
    page = check(report(played(tmp_path / "run", small("forecaster.kind=running-mean"))))
    assert page.rows[1][7:9] == ["none", "none"]
    assert panels(page) >= {"verdict", "loss", "regret", "spread", "agents", "forecast"}
    assert not panels(page) & {"bounds", "certificates"}
    assert "growers: none" in page.text


def test_worst_agents_come_with_what_their_regret_is_made_of(directory: Path) -> None:
    rows = check(report(directory)).rows
    rows = rows[1 + [row[0] for row in rows].index("agent") :]
    agents = read_run(directory)[1]["agents"].set_index("agent")["decision_swap_regret"]
    sums: dict[int, float] = {}
    for row in rows:
        if len(row) == 8:
            sums[int(row[0])] = 0.0
        sums[next(reversed(sums))] += float(row[-1])
    worst = agents.nlargest(5)
    assert list(sums) == list(worst.index)
    assert list(sums.values()) == pytest.approx(worst.tolist(), abs=5e-4)


def test_what_the_user_wrote_is_escaped(tmp_path: Path) -> None:
    nasty = '</script><b>bold<b> & "$x_$"'
    raw = small("rounds=20")
    name = nasty.removeprefix("</script>")  # which cannot be the name of a folder
    raw |= {"name": f"{name} name", "claim": f"{nasty} claim", "source": f"{nasty} source"}
    raw["cohort"][0]["name"] = f"_{nasty}"
    page = check(report(played(tmp_path / "run", raw)))
    assert "b" not in page.tags
    assert page.rows[1][0] == f"_{nasty}"
    assert f"{name} name" in page.text
    for word in ("claim", "source"):
        assert f"{nasty} {word}" in page.text


def test_cohorts_that_measure_different_things(tmp_path: Path) -> None:
    raw = small("rounds=30")
    only = {"swap": ["swap"], "external": ["external"]}
    for name, measures in only.items():
        raw["cohort"].append(raw["cohort"][0] | {"name": name, "measures": measures})
    page = check(report(played(tmp_path / "run", raw, log_every=4)))
    assert [row[0] for row in page.rows[1:4]] == ["growers", "swap", "external"]
    assert page.rows[2][3] == page.rows[2][5] == page.rows[3][4] == "-"
    assert "decision swap or swap regret per round" in page.charts
    assert "swap (8)" in page.charts
    assert "external (8" not in page.charts  # no panel where nothing was measured


def test_without_any_swap_regret_the_page_says_so(tmp_path: Path) -> None:
    page = check(report(played(tmp_path / "run", small('cohort.growers.measures=["external"]'))))
    assert panels(page) == {"verdict", "loss", "forecast"}
    assert "Swap regret was not measured." in page.text


def test_same_logs_give_the_same_bytes(directory: Path) -> None:
    first = write_report(directory).read_bytes()
    other = shutil.copytree(directory, directory.parent / "elsewhere")
    assert write_report(other).read_bytes() == first


def test_interrupted_run_says_how_far_it_came(tmp_path: Path) -> None:
    def stop(done: int) -> None:
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(load("crop-choice", rounds=ROUNDS), Options(tmp_path / "run"), progress=stop)
    page = check(report(tmp_path / "run"))
    assert f"20 of {ROUNDS} rounds, seed 7, interrupted." in page.text


def test_single_round_has_no_curves(tmp_path: Path) -> None:
    page = check(report(played(tmp_path / "run", small("rounds=1"))))
    assert "1 round, seed 7" in page.text
    assert panels(page) == {"verdict", "spread", "agents", "exploitability"}


def test_what_is_no_run_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no run's directory"):
        write_report(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_broken_manifest_is_refused(directory: Path, text: str) -> None:
    (directory / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"cannot be read|not a run's"):
        write_report(directory)


def test_broken_or_missing_table_is_refused(directory: Path) -> None:
    (directory / "agents.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match="cannot be read"):
        write_report(directory)
    (directory / "agents.parquet").unlink()
    with pytest.raises(UserError, match="no agents table"):
        write_report(directory)


def test_page_that_cannot_be_written_leaves_nothing_behind(directory: Path) -> None:
    (directory / "report.html").mkdir()
    with pytest.raises(UserError, match=r"report\.html is there and"):
        write_report(directory)
    assert not list(directory.glob(".*.tmp"))


@pytest.fixture
def tables(finished: Path) -> dict[str, pd.DataFrame]:
    read = read_run(finished)[1]
    return read | {"regret_curves": regret_curves([read["regret_log"]], read["agents"])}


def drawn(figure: go.Figure | None) -> tuple[Any, ...]:
    assert figure is not None
    return tuple(figure.data)


def test_regret_is_that_of_the_log(tables: dict[str, pd.DataFrame]) -> None:
    mean, worst, bound = drawn(run_figures.regret(tables))
    regret = tables["agents"]["decision_swap_regret"]
    assert (mean.x[0], mean.x[-1]) == (0, ROUNDS - 1)
    assert mean.y[-1] == pytest.approx(regret.mean())
    assert worst.y[-1] == pytest.approx(regret.max())
    assert set(bound.y) == {tables["agents"]["bound"].max()}
    tables["agents"]["bound"] = 2 * worst.y.max()
    assert drawn(run_figures.regret(tables))[-1].visible == "legendonly"  # far above all regret
    tables["agents"]["bound"] = worst.y.max()
    assert drawn(run_figures.regret(tables))[-1].visible is True
    tables["agents"]["bound"] = np.nan  # no theorem applies
    assert len(drawn(run_figures.regret(tables))) == 2


def test_bounds_are_those_of_their_table(tables: dict[str, pd.DataFrame]) -> None:
    lines = drawn(run_figures.bounds(tables))
    assert [line.name for line in lines] == [word for word, _ in run_figures.BOUNDS.values()]
    for line, column in zip(lines, run_figures.BOUNDS, strict=True):
        assert line.x.tolist() == tables["bounds"]["round"].tolist()
        known = tables["bounds"][column].to_numpy()
        assert line.y == pytest.approx(np.maximum(known, charts.LEAST), nan_ok=True)
        assert line.customdata == pytest.approx(known, nan_ok=True)  # which the pointer tells
    agents = tables["agents"]
    for column in ("decision_swap_regret", "bound_from_bias", "bound_from_variation", "bound"):
        assert tables["bounds"][column].iloc[-1] == pytest.approx(agents[column].max())
    assert run_figures.bounds(tables | {"bounds": tables["bounds"].head(1)}) is None


def test_a_bound_that_says_nothing_is_called_so() -> None:
    assert [promise(value) for value in (1.856, 1.0, 0.25, np.nan)] == [
        ">= 1",
        ">= 1",
        "0.25",
        "none",
    ]


def test_two_buttons_choose_the_scale(tables: dict[str, pd.DataFrame]) -> None:
    figure = run_figures.regret(tables)
    assert figure is not None
    (menu,) = figure.layout.updatemenus
    assert [button.args[0] for button in menu.buttons] == [
        {"yaxis.type": "linear", "yaxis.nticks": 0, "yaxis.exponentformat": "none"},
        {"yaxis.type": "log", "yaxis.nticks": 3, "yaxis.exponentformat": "power"},
    ]
    assert menu.buttons[menu.active].args[0]["yaxis.type"] == figure.layout.yaxis.type


def test_data_of_a_figure_cannot_end_their_element() -> None:
    """Whatever text comes to a figure, also text that ``plain`` has not seen."""
    nasty = "</script><!--<script>"
    data = charts.card(charts.panels().add_traces([{"name": nasty}]), "x", nasty)
    assert data.count("</script>") == data.count("<script") == 1
    assert "<!--" not in data
    written = data[data.index("{") : data.rindex("}") + 1]
    assert json.loads(written)["data"][0]["name"] == nasty


def test_a_dot_tells_who_the_agent_is(finished: Path) -> None:
    agents = read_run(finished)[1]["agents"]
    agents.loc[0, "exploitability"] = np.nan
    dots, *_ = drawn(run_figures.agents({"agents": agents}))
    assert dots.x.tolist() == agents["mean_loss"].tolist()
    assert dots.y.tolist() == agents["decision_swap_regret"].tolist()
    assert "exploitability" not in dots.text[0]
    welfare = -(agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"])
    told = [line.partition(": ")[2] for line in dots.text[1].split("<br>")[1:]]
    columns = ("mean_loss", "swap_regret", "decision_swap_regret", "exploitability")
    assert told == [f"{value:.4g}" for value in (welfare[1], *agents.loc[1, list(columns)])]
    assert dots.text[1].startswith(f"agent {agents.loc[1, 'agent']}, ces")


def test_among_very_many_agents_the_worst_are_drawn(finished: Path) -> None:
    count = 3 * run_figures.MOST
    agents = read_run(finished)[1]["agents"].head(1)
    regret = np.random.default_rng(0).random(count)
    many = agents.loc[agents.index.repeat(count)].reset_index(drop=True)
    many = many.assign(decision_swap_regret=regret)
    shown = run_figures.drawn_agents(many)
    assert len(shown) == run_figures.MOST
    worst = np.sort(regret)[-run_figures.MOST // 4 :]
    assert np.isin(worst, shown["regret"]).all()
    assert shown.equals(run_figures.drawn_agents(many))


def test_exploitability_is_counted_per_cohort(finished: Path) -> None:
    agents = read_run(finished)[1]["agents"]
    agents["exploitability"] = 0.0
    assert run_figures.exploitability({"agents": agents}) is None
    agents["exploitability"] = np.resize([0.0, 0.02, np.nan], AGENTS)
    figure = run_figures.exploitability({"agents": agents})
    (bars,) = drawn(figure)
    known = agents["exploitability"].count()
    assert bars.y.sum() == known
    zero = (agents["exploitability"] == 0).sum()
    assert bars.y[0] == zero
    (title,) = figure.layout.annotations  # type: ignore[union-attr]
    share = f"{zero / known:.0%} at 0, worst 0.0200"
    assert title.text == f"growers ({known} of {AGENTS})<br>{share}"


def test_what_the_summary_tells_in_full_is_not_drawn_again(finished: Path) -> None:
    agents = read_run(finished)[1]["agents"].head(1)
    assert run_figures.spread({"agents": agents}) is None
    assert run_figures.exploitability({"agents": agents}) is None


def test_certificates_are_added_up(tables: dict[str, pd.DataFrame]) -> None:
    tables["rounds"]["certificate"] = np.resize([0.5, -1.0], ROUNDS)
    total, allowed = drawn(run_figures.certificates(tables))
    assert total.y[-1] == pytest.approx(0.5 * ROUNDS / 2)
    assert allowed.y[-1] == pytest.approx(slack_limit(ROUNDS))


ENDS = {"a": (5.0, 25.0), "b": (0.0, 1.0), "c": (1.0, 0.0)}


def test_loss_ends_at_the_mean_loss_beside_the_alternatives(
    tables: dict[str, pd.DataFrame],
) -> None:
    own, *others = drawn(run_figures.loss(tables))
    assert own.y[-1] == pytest.approx(tables["agents"]["mean_loss"].mean())
    least = tables["verdict"].groupby("kind")["mean_loss"].min()
    levels = {line.name.removeprefix("best "): line.y[0] for line in others}
    assert levels == {
        "model": least["model"],
        "policy": least["policy"],
        "fixed action": least["action"],
    }


def test_rounds_are_dated_where_the_data_are(finished: Path) -> None:
    page = check(report(finished))
    assert '"2012-01-01T00:00:00"' in page.charts
    figure = charts.panels().add_trace(charts.line([0, 1, 5], [1.0, 2.0, 3.0], "a"))
    figure.update_xaxes(title_text="round; as they are")
    for names in (["Mon", "Tue"], ["2020-01-02", "2020-01-01"]):  # no dates; not in order
        charts.dated(figure, pd.Series(names), "day")
        assert figure.data[0].x.tolist() == [0, 1, 5]
    charts.dated(figure, pd.Series(["2020-01-01", "2020-01-02"]), "day")
    assert [day[:10] for day in figure.data[0].x] == ["2020-01-01", "2020-01-02", "2020-01-02"]
    assert figure.layout.xaxis.title.text == "day; as they are"


def test_forecast_figure_averages_blocks_and_rounds(tables: dict[str, pd.DataFrame]) -> None:
    rounds, forecasts = tables["rounds"], tables["forecasts"]
    second = forecasts.assign(block="second", label_0=0.0)
    tables["forecasts"] = pd.concat([forecasts, second], ignore_index=True)
    outcome, forecast, *_ = drawn(run_figures.forecast(tables, ENDS))
    window = ROUNDS // 5
    assert outcome.y[-1] == pytest.approx(5 + 20 * rounds["y_0"].tail(window).mean())
    said = forecasts.loc[forecasts["drawn"], "label_0"]
    assert forecast.y[-1] == pytest.approx(5 + 20 * said.tail(window).mean() / 2)


def test_market_figure_draws_demand_and_what_it_did(tmp_path: Path) -> None:
    run(load("crowding", rounds=ROUNDS), Options(tmp_path / "run"))
    tables = read_run(tmp_path / "run")[1]
    goods = ["tea", "salt", "rum"]
    figure = market_figures.demand(tables, goods)
    measured = crowding(tables["rounds"], tables["forecasts"]).tail(ROUNDS // 5)
    *demand, concentration, confirmed = drawn(figure)
    for i, (curve, good) in enumerate(zip(demand, goods, strict=True)):
        expected = tables["rounds"][f"demand_{i}"].tail(ROUNDS // 5).mean()
        assert curve.y[-1] == pytest.approx(expected)
        assert curve.name == good
    assert concentration.y[-1] == pytest.approx(measured["concentration"].mean())
    assert confirmed.y[-1] == pytest.approx(measured["confirmed"].mean())
    assert [line.y0 for line in figure.layout.shapes] == [1 / 3, 0]  # type: ignore[union-attr]
    labels = [name for name in tables["forecasts"] if name.startswith("label_")]
    tables["forecasts"] = tables["forecasts"].drop(columns=labels)
    assert len(drawn(market_figures.demand(tables, goods))) == 4


def test_no_figure_without_its_table(tables: dict[str, pd.DataFrame]) -> None:
    assert market_figures.demand(tables, []) is None  # which had no market
    bare = {"agents": tables["agents"]}
    assert run_figures.regret(bare) is None
    assert run_figures.forecast(bare, {}) is None
    assert run_figures.certificates(bare) is None
    assert market_figures.demand(bare, []) is None


def test_long_curves_are_thinned_with_both_ends() -> None:
    rounds = thinned(np.arange(100_000))
    assert len(rounds) == MOST_POINTS
    assert rounds[[0, -1]].tolist() == [0, 99_999]


def test_columns_of_a_market_bear_the_names_of_what_they_stand_for() -> None:
    """A portfolio's shares are those of cohorts, also where goods are as many."""
    shares = pd.DataFrame({"round": [1, 2], "share_0": 0.25, "share_1": 0.75})
    tables = {"rounds": shares, "agents": pd.DataFrame({"cohort": ["rich", "poor"]})}
    for kind, words in (("portfolio", ["rich", "poor"]), ("attendance", ["oil", "gas"])):
        figure = course.market(tables, ["oil", "gas"], kind)
        assert figure is not None
        assert [curve.name for curve in figure.data] == words


def test_outcomes_are_in_their_own_units(finished: Path) -> None:
    config = json.loads((finished / "manifest.json").read_text(encoding="utf-8"))["config"]
    assert outcome_ends(config, 3)["wind, m/s"] == (8.0, 0.0)
    assert outcome_ends({}, 2) == {"outcome 0": (0.0, 1.0), "outcome 1": (0.0, 1.0)}
