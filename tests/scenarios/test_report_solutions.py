"""The solutions of a run's stage game on its page: a table, the price of anarchy, and a figure."""

from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
from report_pages import ReportPage, chart_names, parse_page
from run_files import FinishedRun
from small_scenarios import TomlTable, cohort_table

from regretless import load
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.solutions import stage_game
from regretless.scenarios.logs.reading import log_parts, regret_curves
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.report import page, run_figures
from regretless.scenarios.report.figures import Run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.solution_lines import gain_text, lines_on_solutions

ROUNDS = 40
PIGOU = (
    f"rounds={ROUNDS}",
    "cohort.drivers.count=20",
    'solutions=["nash", "cce", "optimum"]',
    "windows.every=20",
)


def driver_table(name: str, count: int) -> TomlTable:
    """Return a cohort of drivers who choose between two roads, whose hours are the outcome."""
    weights = {"weights": [[-1.0, 0.0], [0.0, -1.0]]}
    return cohort_table(name, count, utility="affine", parameters=weights)


def read_page(run_folder: Path) -> ReportPage:
    """Write the report of a run, and take it apart."""
    return parse_page(write_report(run_folder).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pigou_page(finished_run: FinishedRun) -> ReportPage:
    """Return the page of a run with logs of all rounds, windows and solutions."""
    return read_page(finished_run("pigou", *PIGOU))


def draw_solutions(run_folder: Path) -> go.Figure | None:
    """Draw the figure as the page does, from what the run has kept."""
    manifest, tables = read_run(run_folder)
    curves = regret_curves(log_parts(run_folder), tables["agents"])
    tables = tables | {"regret_curves": curves}
    run = Run(manifest["config"], tables, rounds_played=manifest["played"])
    return run_figures.solutions(run)


def lines_of(figure: go.Figure | None) -> dict[str, go.Scatter]:
    """Return the lines of a figure that must be there, by what the legend says."""
    assert figure is not None
    return {trace.name: trace for trace in figure.data}


def test_the_page_has_a_row_for_play_each_window_and_each_solution(
    finished_run: FinishedRun, pigou_page: ReportPage
) -> None:
    folder = finished_run("pigou", *PIGOU)
    solutions = read_run(folder)[1]["solutions"]
    cells_of = {row[0]: row[1:] for row in pigou_page.rows}
    assert "play, rounds 20 to 39" in cells_of
    for row in solutions.to_dict("records"):
        loss, welfare, gain, distance = cells_of[row["name"]]
        assert loss == f"{row['mean_loss']:.4f}"
        assert welfare == f"{row['welfare']:.4f}"
        assert gain == f"{row['certificate']:.2g}"
        is_play = row["name"].startswith("play")
        assert distance == (f"{row['distance_cce']:.4f}" if is_play else "")


def test_the_page_has_the_price_of_anarchy_and_how_solutions_were_found(
    finished_run: FinishedRun, pigou_page: ReportPage
) -> None:
    folder = finished_run("pigou", *PIGOU)
    solutions = read_run(folder)[1]["solutions"].set_index("name")
    worst_nash = "worst nash" if "worst nash" in solutions.index else "nash"
    ratio = solutions.loc[worst_nash, "welfare"] / solutions.loc["optimum", "welfare"]
    assert ratio > 1.1
    line = f"Price of anarchy: {ratio:.4g}, total loss of the worst Nash equilibrium"
    assert line in pigou_page.text
    assert f"optimum: {solutions.loc['optimum', 'method']}" in pigou_page.text


def test_of_several_cohorts_each_has_rows_and_the_price_of_anarchy_is_of_all(
    finished_run: FinishedRun,
) -> None:
    game = {
        "name": "roads",
        "rounds": 5,
        "adversary": {"kind": "iid", "outcomes": 2},
        "market": {"kind": "routes", "free": [0.5, 0.0], "load": [0.0, 0.5]},
        "solutions": ["nash", "optimum"],
        "cohort": [driver_table("cars", 3), driver_table("lorries", 2)],
    }
    folder = finished_run(game)
    page = read_page(folder)
    owners = [row[0] for row in page.rows if row[1:2] == ["optimum"]]
    assert owners == ["cars", "lorries", EVERYBODY]
    solutions = read_run(folder)[1]["solutions"]
    welfare = solutions[solutions["cohort"] == EVERYBODY].set_index("name")["welfare"]
    worst_nash = welfare.get("worst nash", welfare.get("nash"))
    assert f"Price of anarchy: {worst_nash / welfare['optimum']:.4g}," in page.text


def test_losses_are_drawn_between_the_solutions_of_the_game(
    finished_run: FinishedRun, pigou_page: ReportPage
) -> None:
    folder = finished_run("pigou", *PIGOU)
    tables = read_run(folder)[1]
    lines = lines_of(draw_solutions(folder))
    level_of = tables["solutions"].set_index("name")["mean_loss"]
    drawn_names = set()
    for legend_text, line in lines.items():
        for name in legend_text.split(", "):
            if name in level_of:
                assert line.y == pytest.approx([level_of[name]] * 2)
                drawn_names.add(name)
    assert drawn_names == {name for name in level_of.index if not name.startswith("play")}
    assert lines["range of cce"].fill == "tonexty"
    assert lines["as played"].y[-1] == pytest.approx(tables["agents"]["mean_loss"].mean())
    assert "solutions" in chart_names(pigou_page)


def test_solutions_that_lose_the_same_share_a_line() -> None:
    """Defection is the only equilibrium of the dilemma, correlated or not."""
    agents = pd.DataFrame({"agent": [1, 2], "cohort": "prisoners", "mean_loss": [0.6, 0.8]})
    solutions = pd.DataFrame(
        {
            "name": ["play", "nash", "ce", "optimum"],
            "cohort": "prisoners",
            "mean_loss": [0.7, 0.8, 0.8 - 1e-12, 0.4],
        }
    )
    run = Run({}, {"agents": agents, "solutions": solutions}, rounds_played=9)
    lines = lines_of(run_figures.solutions(run))
    assert lines.keys() == {"nash, ce", "optimum", "as played, whole run"}
    assert lines["nash, ce"].y == pytest.approx([0.8, 0.8])


def test_without_a_log_of_rounds_play_is_drawn_window_by_window(
    finished_run: FinishedRun,
) -> None:
    folder = finished_run("pigou", *PIGOU, log_every=ROUNDS)
    windows = read_run(folder)[1]["windows"]
    means = windows.groupby("first")["mean_loss"].mean()
    stairs = lines_of(draw_solutions(folder))["as played, each window alone"]
    assert stairs.x[:2].tolist() == [0, 20]
    assert stairs.y[[0, 3]] == pytest.approx(means.to_numpy())
    assert "solutions" in chart_names(read_page(folder))


def test_a_run_that_logs_no_rounds_says_how_many_were_played(finished_run: FinishedRun) -> None:
    page = read_page(finished_run("chicken", "rounds=30", 'logs="summary"', log_every=30))
    assert "30 rounds, seed 1, complete." in page.text


def test_without_windows_either_play_is_drawn_as_the_mean_of_the_run(
    finished_run: FinishedRun,
) -> None:
    folder = finished_run("pigou", *PIGOU[:3], log_every=ROUNDS)
    agents = read_run(folder)[1]["agents"]
    level = lines_of(draw_solutions(folder))["as played, whole run"]
    assert level.x.tolist() == [0, ROUNDS - 1]
    assert level.y == pytest.approx([agents["mean_loss"].mean()] * 2)


def test_of_one_round_the_page_says_why_nothing_is_drawn(finished_run: FinishedRun) -> None:
    page = read_page(finished_run("pigou", *PIGOU[1:3], "rounds=1"))
    assert "solutions" not in chart_names(page)
    assert "it takes two rounds, and one was played" in page.text


def test_the_page_says_why_a_market_has_no_solutions(finished_run: FinishedRun) -> None:
    page = read_page(finished_run("shops", "rounds=3", 'solutions=["nash", "optimum"]'))
    assert "nash, optimum: none: market Shops does not say what profiles lose" in page.text
    assert "price of anarchy" not in page.text.lower()
    assert "it takes two rounds" not in page.text


def test_of_too_many_profiles_the_page_says_that_play_was_not_counted(
    finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_game, "MAX_CONFIGURATIONS", 5)
    page = read_page(finished_run("pigou", *PIGOU, "seed=2"))
    assert "What was played has no row and no distances" in page.text
    assert "cce: none: 21 profiles by counts of actions are more than 5" in page.text
    assert "solutions" in chart_names(page)


def test_a_run_whose_play_is_not_counted_says_why() -> None:
    model = load("pigou", rounds=3, solutions=["optimum"]).build()
    model.solved.leave_play_uncounted("agents are shared out among workers")
    model.run()
    lines = list(lines_on_solutions(model, None, width=80))
    assert "play: not counted, since agents are shared out among workers" in lines


def test_a_market_in_memory_shows_the_figure() -> None:
    changes = {"rounds": ROUNDS, "cohort.drivers.count": 20, "solutions": ["nash", "optimum"]}
    model = load("pigou", **changes).build()
    model.run()
    assert "as played" in lines_of(model.show("solutions"))


def test_a_gain_that_is_rounding_is_written_as_zero() -> None:
    assert [gain_text(gain) for gain in (8.9e-16, 0.00204)] == ["0", "0.002"]


def test_a_chart_that_was_drawn_for_a_wider_window_does_not_widen_the_page() -> None:
    (rule,) = [line for line in page.CSS.splitlines() if line.startswith(".card { overflow")]
    assert "overflow: hidden" in rule
