"""Impulses: one agent plays something else for some rounds, and what follows is compared."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import tomli_w
from command_results import RunCommand
from small_scenarios import cohort_table, make_scenario

from regretless import MarketModel, UserError
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.validation import resolved, validated
from regretless.scenarios.report.figures import Run
from regretless.scenarios.report.run_figures import impulse as impulse_figure
from regretless.scenarios.report.study_data import StudyData
from regretless.scenarios.report.study_figures import impulse as impulse_figure_of_study
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.analysis.measures import impulse_table
from regretless.scenarios.studies.results import Study


def sellers_scenario(**impulse: Any) -> Scenario:
    """Return Q-learners who explore no more and remember both last prices."""
    settings = {"memory": 1, "sees": "all", "epsilon": 0.0, "initial": "uniform-play"}
    sellers = cohort_table(
        "sellers",
        2,
        4,
        "seller",
        parameters={"cost": 1.0, "quality": 2.0, "lowest": 1.4, "highest": 2.0},
        response="q-learning",
        settings=settings,
        measures=["external"],
    )
    return make_scenario(
        sellers,
        rounds=40,
        adversary={"kind": "iid", "outcomes": 1},
        market={"kind": "price-competition", "outside": 0.0},
        forecaster={"kind": "none"},
        logs="summary",
        impulse={"cohort": "sellers", "actions": [0], **impulse},
    )


def played(scenario: Scenario) -> MarketModel:
    model = scenario.build(seed=3)
    model.run()
    return model


def path_of(**impulse: Any) -> pd.DataFrame:
    """Return the table of an impulse after the last round of a run."""
    scenario = sellers_scenario(**impulse)
    return scenario.impulse_path(played(scenario))


def test_nothing_differs_before_the_impulse() -> None:
    path = path_of().query("offset < 0")
    assert path["action"].tolist() == path["action_without"].tolist()
    assert path["offset"].unique().tolist() == [-5, -4, -3, -2, -1]


def test_the_agent_plays_the_actions_and_then_its_own_rule() -> None:
    path = path_of(agent=2, actions=[0, 3], length=3, after=2)
    actions_of_agent = path[path["agent"] == 2].set_index("offset")["action"]
    assert actions_of_agent.loc[0:2].tolist() == [0, 3, 3]
    assert actions_of_agent.index.max() == 4


def test_a_rival_sees_the_impulse_one_round_later() -> None:
    path = path_of(actions=[3]).query("agent == 2 and offset == 0")
    assert path["action"].tolist() == path["action_without"].tolist()


def test_losses_are_those_of_the_actions_played() -> None:
    scenario = sellers_scenario(actions=[3])
    model = played(scenario)
    path = scenario.impulse_path(model)
    actions = path.pivot_table(index="offset", columns="agent", values="action").to_numpy(int)
    losses = path.pivot_table(index="offset", columns="agent", values="loss").to_numpy()
    np.testing.assert_allclose(losses, model.game.market.profile_losses(actions))


def test_the_run_itself_is_not_changed() -> None:
    scenario = sellers_scenario()
    model = played(scenario)
    values = model.game.cohorts[0].learner.q.copy()
    scenario.impulse_path(model)
    assert model.played == 40
    np.testing.assert_array_equal(model.game.cohorts[0].learner.q, values)


def test_a_run_writes_the_path_around_an_impulse_in_its_middle(tmp_path: Path) -> None:
    model = run(sellers_scenario(round=10, before=3, after=4), Options(tmp_path / "out"))
    path = pd.read_parquet(tmp_path / "out/impulse.parquet")
    assert path["offset"].unique().tolist() == [-3, -2, -1, 0, 1, 2, 3, 4]
    figure = impulse_figure(Run({}, {"impulse": path, "agents": model.agents_frame()}))
    assert figure is not None
    assert figure.data[0].y[3] == 0.0


@pytest.mark.parametrize(
    ("impulse", "line"),
    [
        ({"cohort": "seller"}, "impulse.cohort 'seller'; did you mean 'sellers'"),
        ({"agent": 3}, "impulse.agent = 3: cohort.sellers has 2 agents"),
        ({"actions": [4]}, r"impulse.actions = \[4\]: cohort.sellers has the actions 0 to 3"),
        ({"round": 40}, "impulse.round = 40: the rounds are 0 to 39"),
        ({"round": 2}, "round = 2 has no 5 rounds before it"),
        ({"actions": [1, 2], "length": 1}, "length = 1: there are 2 actions"),
    ],
)
def test_an_impulse_that_cannot_be_is_refused_in_one_line(impulse: Any, line: str) -> None:
    with pytest.raises(UserError, match=line):
        sellers_scenario(**impulse)


def test_a_study_averages_paths_over_seeds() -> None:
    paths = [
        pd.DataFrame(
            {
                "run": run_number,
                "offset": [0, 1],
                "agent": 1,
                "cohort": "sellers",
                "action": [0, 4 + 2 * run_number],
                "loss": 0.5,
                "action_without": 6,
                "loss_without": 0.25,
            }
        )
        for run_number in (0, 1)
    ]
    parameters = pd.DataFrame({"run": [0, 1], "seed": [0, 1]})
    table = impulse_table(pd.concat(paths), parameters).set_index(["offset", "measure"])
    answer = table.loc[(1, "action_difference")]
    assert (answer["seeds"], answer["mean"]) == (2, -1.0)
    assert answer["low"] == pytest.approx(-1.0 - 12.706 * 1.0, abs=1e-3)  # Student, one degree
    assert table.loc[(0, "loss_difference"), "mean"] == 0.25


def test_a_study_has_a_table_and_a_figure_of_its_impulses(
    working_folder: Path, run_command: RunCommand
) -> None:
    scenario = sellers_scenario(before=1, after=2)
    (working_folder / "sellers.toml").write_text(
        tomli_w.dumps(resolved(scenario.spec)), encoding="utf-8"
    )
    text = 'scenario = "sellers.toml"\nseeds = 2\n'
    (working_folder / "cut.toml").write_text(text, encoding="utf-8")
    assert run_command("study", "cut.toml", "--out", "cut", "--jobs", 1, "--quiet").status == 0
    table = Study(Path("cut")).impulse_response()
    assert table["seeds"].unique().tolist() == [2]
    assert sorted(table["offset"].unique()) == [-1, 0, 1, 2]
    figure = impulse_figure_of_study(StudyData(Study(Path("cut"))))
    assert figure is not None
    assert [trace.name for trace in figure.data].count("the scenario as it is") == 2


def test_an_impulse_after_the_round_at_which_until_ended_the_run_is_refused(tmp_path: Path) -> None:
    raw = resolved(sellers_scenario(round=30, before=2, after=2).spec)
    scenario = Scenario(validated(raw | {"until": {"greedy_unchanged": 5}}, origin=Path()))
    with pytest.raises(UserError, match=r"impulse.round = 30: 'until' ended the run after"):
        run(scenario, Options(tmp_path / "run"))


def impulse_on_data(folder: Path, **impulse: Any) -> tuple[str, ...]:
    """Return what is warned of a run on 30 rows of data with an impulse."""
    pd.DataFrame({"demand": np.linspace(0.1, 0.9, 30)}).to_csv(folder / "days.csv", index=False)
    scenario = make_scenario(
        cohort_table("shops", 2, 3, "newsvendor"),
        rounds=28,
        origin=folder,
        adversary=None,
        data={"file": "days.csv", "outcomes": ["demand"]},
        impulse={"cohort": "shops", "actions": [0], **impulse},
    )
    return scenario.build().warnings


def test_an_impulse_beyond_the_last_row_of_data_is_said(tmp_path: Path) -> None:
    (line,) = impulse_on_data(tmp_path)
    assert "the data end with round 29, and begin anew after it, for the rounds up to 53" in line
    assert "give an earlier impulse.round" in line


@pytest.mark.parametrize("keys", [{"round": 9}, {"before": 0, "after": 1}])
def test_nothing_is_said_of_an_impulse_within_the_data(
    tmp_path: Path, keys: dict[str, int]
) -> None:
    assert impulse_on_data(tmp_path, **keys) == ()
