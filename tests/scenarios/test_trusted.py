"""Where models were kept all through: what is printed in place of a bound, and when that ended."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_pages import parse_page
from small_scenarios import GOLDEN_FOLDER, play_to_end, read_scenario, write_study

from regretless.forecaster.models import Constant
from regretless.forecaster.reference import Reference
from regretless.market.model import MarketModel
from regretless.scenarios.report import run_figures
from regretless.scenarios.report.figures import Run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies import load_study
from regretless.scenarios.studies.analysis import contrasts, measures
from regretless.scenarios.studies.conduct import Options as StudyOptions
from regretless.scenarios.studies.conduct import conduct
from regretless.scenarios.summary import print_summary
from regretless.scenarios.verdict import bounds_to_print, describe_bounds, describe_corrections

BOTH_KEPT = GOLDEN_FOLDER / "keys" / "models-default.toml"
ROUNDS = 60


def kept_models(*assignments: str) -> Any:
    """Return a scenario with data in which nobody's regret gives the models up."""
    return read_scenario("keys/models-default", f"rounds={ROUNDS}", *assignments)


def agents(**columns: Any) -> pd.DataFrame:
    """Return a table of agents with bounds of which the last alone is one."""
    table = {
        "decision_swap_regret": [0.001, 0.002, 0.003],
        "bound_from_bias": [0.01, 0.02, 0.03],
        "bound_from_variation": [0.001, 0.002, 0.12],
        "bound": [0.2, 0.2, 0.3],
        "trusted": pd.array([True, True, False], dtype="boolean"),
    }
    return pd.DataFrame(table | columns)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, MarketModel, Path]:
    """Play the scenario with its cohort of curved losses alone; return it with its folder."""
    scenario = kept_models("cohort.linear.count=0")
    folder = tmp_path_factory.mktemp("trusted") / "run"
    return scenario, run(scenario, Options(folder)), folder


def test_a_bound_that_is_the_regret_itself_is_printed_as_trusted(
    finished: tuple[Any, MarketModel, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where errors of the basis are added to the regret, as for these curved losses."""
    scenario, model, folder = finished
    table = model.agents_frame()
    assert table["trusted"].all()
    assert (table["bound_from_variation"] > table["decision_swap_regret"]).all()
    print_summary(scenario, model, folder)
    printed = capsys.readouterr().out
    assert "trusted given the variation" in printed
    assert "without correction" in printed
    assert f"{table['bound_from_variation'].max():.4f} given the variation" not in printed
    assert "Models: weighted mean of the models, never corrected; no correction was needed" in (
        printed
    )


def test_the_report_writes_trusted_in_place_of_the_regret_itself(
    finished: tuple[Any, MarketModel, Path],
) -> None:
    _, model, folder = finished
    page = parse_page(write_report(folder).read_text(encoding="utf-8"))
    row = next(row for row in page.rows if row[0] == "decision swap")
    assert "trusted" in row
    assert any(cell.endswith("without correction") for cell in row)
    assert f"{model.agents_frame()['bound_from_variation'].max():.4f}" not in row


def test_of_agents_who_left_in_time_the_bounds_of_the_others_are_printed() -> None:
    assert bounds_to_print(agents()) == {
        "given the biases": 0.03,
        "given the variation": 0.12,
        "before the run": 0.3,
    }
    assert describe_bounds(agents()) == [
        "0.0300 given the biases",
        "trusted given the variation, 2 agents",
        "0.12 given the variation, 1 agents",
        "0.30 before the run",
    ]


def test_agents_without_a_bound_do_not_hide_that_the_others_are_trusted() -> None:
    """Some hear the forecast late in a network, and have no bound."""
    agents_with_bound = agents(
        bound_from_variation=[0.001, 0.002, np.nan],
        bound=[0.2, 0.2, np.nan],
        trusted=pd.array([True, True, None], dtype="boolean"),
    )
    assert describe_bounds(agents_with_bound) == [
        "0.0300 given the biases",
        "trusted given the variation, 2 agents",
        "0.20 without correction, 2 agents",
    ]


@pytest.mark.parametrize(
    ("first_correction", "kept", "said"),
    [
        (None, 1.0, "never corrected; no correction was needed, and the bound without correction"),
        (None, 0.88, "never disproved; another forecast was preferred in 12 % of the rounds"),
        (None, 0.999, "never disproved; another forecast was preferred in less than 1 % of the"),
        (0, 0.0, "corrected from the start, unchanged in 0 % of the rounds"),
        (
            41,
            0.5,
            "corrected from round 42 on, when following it had cost more than chance explains",
        ),
    ],
)
def test_only_a_forecast_that_was_always_unchanged_needed_no_correction(
    first_correction: int | None, kept: float, said: str
) -> None:
    block = {"kept": kept, "first_correction": first_correction}
    (line,) = describe_corrections("aggregate", {"linear": block}, labels=["decision swap"])
    assert line.startswith(f"Models: weighted mean of the models, {said}")
    assert ("no correction was needed" in line) == (kept == 1)


def test_without_a_guarantee_no_bound_is_said_to_hold() -> None:
    block = {"kept": 1.0, "first_correction": None}
    (line,) = describe_corrections("aggregate", {"linear": block}, labels=["none", "none"])
    assert line == "Models: weighted mean of the models, never corrected."


def test_where_an_objective_prefers_other_forecasts_some_rounds_are_changed() -> None:
    model = play_to_end(kept_models("forecaster.objective=welfare"))
    for block in model.game.blocks:
        described = block.forecaster.described()
        assert described["first_correction"] is None
        assert described["kept"] < 1
    assert not model.agents_frame()["trusted"].any()  # what draws add to the regret is bounded


@pytest.mark.parametrize("delay", [0, 2])
def test_the_first_correction_is_in_the_first_round_that_plays_a_game(delay: int) -> None:
    """Late outcomes say late that a model is wrong: a forecast that is kept has no certificate."""
    wrong = ['forecaster.models=["constant"]', "forecaster.give_up=0.1", "cohort.cara.count=0"]
    model = play_to_end(kept_models(f"forecaster.delay={delay}", *wrong))
    certificates = model.rounds_frame()["certificate"]
    first_game = certificates.first_valid_index()
    assert first_game is not None
    assert 0 < first_game < ROUNDS
    assert (model.agents_frame()["first_correction"] == first_game).all()
    assert not model.agents_frame()["trusted"].any()


def test_who_left_before_the_first_correction_stays_trusted() -> None:
    """What they were promised is their regret; who is there later has a bound."""
    wrong = ['forecaster.models=["constant"]', "forecaster.give_up=0.1", "cohort.cara.count=0"]
    model = play_to_end(kept_models("cohort.linear.exit_rate=0.1", *wrong))
    table = model.agents_frame()
    left_in_time = table["left"] <= table["first_correction"]
    assert 0 < left_in_time.sum() < len(table)
    assert (table["trusted"] == left_in_time).all()


def test_coordinates_bound_the_regret_though_a_reference_is_trusted() -> None:
    model = play_to_end(kept_models("forecaster.events=coordinates", "cohort.cara.count=0"))
    assert not model.agents_frame()["trusted"].any()


def test_no_bound_is_drawn_where_it_is_the_regret_itself() -> None:
    """Before the first correction the bound given the variation was the regret."""
    rounds = [10, 20, 30, 40]
    bounds = pd.DataFrame({"round": rounds, "cohort": "a", "bound": 0.5, "bound_from_bias": 0.1})
    bounds = bounds.assign(bound_from_variation=[0.01, 0.01, 0.2, 0.2])
    table = agents(cohort="a", first_correction=pd.array([20, 20, 20], dtype="Int64"))
    table["guarantee"] = "decision-swap"
    curve = pd.DataFrame({"cohort": "a", "round": rounds, "mean": 0.01, "max": 0.01})
    tables = {"agents": table, "bounds": bounds}
    tables["regret_curves"] = curve.set_index(["cohort", "round"])
    figure = run_figures.regret(Run({}, tables))
    assert figure is not None
    (drawn,) = [line for line in figure.data if line.name == "bound given the variation"]
    assert list(drawn.x) == [30, 40]


def test_a_late_reference_is_corrected_when_its_rounds_are_known() -> None:
    reference = Reference(Constant(1), turns=3)
    assert reference.first_correction is None
    reference.disproved_at = 5
    assert reference.first_correction == 7
    assert Reference(Constant(1), give_up=0.0, turns=3).first_correction == 0


def runs_of_a_study(first_corrections: list[float]) -> pd.DataFrame:
    """Return the cohorts of runs whose forecast was corrected in these rounds; NaN for never."""
    rows = {"run": range(len(first_corrections)), "cohort": "a", "agents": 1, "mean_loss": 0.5}
    table = pd.DataFrame(rows | {"first_correction": first_corrections})
    trusted = table["first_correction"].isna().astype(float)
    return table.assign(trusted=trusted).reindex(columns=measures.COHORT_COLUMNS)


def test_a_study_averages_the_first_correction_and_does_not_test_it() -> None:
    """A run that was never corrected has none; its agents are counted as trusted."""
    parameters = pd.DataFrame({"run": range(4), "seed": [0, 1, 0, 1], "key": ["x", "x", "y", "y"]})
    cohorts = runs_of_a_study([100.0, 300.0, np.nan, 50.0])
    effects = measures.effects_table(cohorts, parameters).set_index(["measure", "value"])
    assert effects.loc[("first_correction", "x"), "mean"] == 200.0
    assert effects.loc[("first_correction", "y"), ["seeds", "mean"]].tolist() == [1, 50.0]
    assert effects.loc[("trusted", "x"), "mean"] == 0.0
    assert effects.loc[("trusted", "y"), "mean"] == 0.5
    tested = contrasts.contrasts_table(cohorts, parameters)
    assert set(tested["measure"]) == {"mean_loss"}


def test_a_study_of_runs_says_when_they_were_corrected(tmp_path: Path) -> None:
    text = """\
scenario = "tiny.toml"
seeds = 1
rounds = 60
[grid]
"forecaster.give_up" = [0.0, 1.0]
"""
    base = BOTH_KEPT.read_text(encoding="utf-8").replace(
        '"stream.csv"', f'"{BOTH_KEPT.parent / "stream.csv"}"'
    )
    conduct(write_study(tmp_path, text, base), StudyOptions(tmp_path / "out", jobs=1))
    cohorts = load_study(tmp_path / "out").cohorts()
    assert cohorts["first_correction"].fillna(-1).tolist() == [0, 0, -1, -1]
    assert cohorts["trusted"].tolist() == [0.0, 0.0, 1.0, 1.0]
    page = parse_page(write_report(tmp_path / "out").read_text(encoding="utf-8"))
    heads = next(row for row in page.rows if row[-1] == "runs")
    assert "first correction (round, where there was one)" in heads
    assert "trusted (share of agents)" in heads
