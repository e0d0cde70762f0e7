"""Welfare in the utility's own units, and the Gini coefficient by its definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless.market.core.arrays import Array
from regretless.market.logs import welfare


def to_thousandths(amount: float) -> float:
    return round(amount, 3)


AMOUNTS = st.lists(st.floats(0, 1e6).map(to_thousandths), min_size=1, max_size=12).map(np.array)


def sum_of_differences(amounts: Array) -> float:
    """Return sum_ij |x_i - x_j|."""
    return float(np.abs(amounts[:, None] - amounts).sum())


@given(AMOUNTS)
def test_the_mean_difference_is_its_definition(amounts: Array) -> None:
    expected = sum_of_differences(amounts) / len(amounts) ** 2
    assert welfare.mean_difference(amounts) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(AMOUNTS, st.floats(-1e3, 1e3))
def test_the_mean_difference_does_not_change_where_everybody_gets_the_same(
    amounts: Array, shift: float
) -> None:
    expected = sum_of_differences(amounts) / len(amounts) ** 2
    assert welfare.mean_difference(amounts + shift) == pytest.approx(expected, rel=1e-9, abs=1e-8)


@given(AMOUNTS)
def test_the_gini_coefficient_is_its_definition(amounts: Array) -> None:
    assume(amounts.sum() > 0)
    expected = sum_of_differences(amounts) / (2 * len(amounts) * amounts.sum())
    assert welfare.gini(amounts) == pytest.approx(expected, abs=1e-9)


@given(AMOUNTS)
def test_the_gini_coefficient_lies_between_equality_and_one_who_has_all(amounts: Array) -> None:
    assume(amounts.sum() > 0)
    assert 0 <= welfare.gini(amounts) <= (len(amounts) - 1) / len(amounts) + 1e-9


@given(AMOUNTS)
def test_the_gini_coefficient_does_not_depend_on_the_unit(amounts: Array) -> None:
    assume(amounts.sum() > 0)
    assert welfare.gini(3 * amounts) == pytest.approx(welfare.gini(amounts), abs=1e-9)


@pytest.mark.parametrize("amounts", [[], [0.0, 0.0], [-1.0, 3.0], [-2.0, -1.0]], ids=str)
def test_there_is_no_gini_coefficient_where_there_is_no_total_to_share(
    amounts: list[float],
) -> None:
    assert np.isnan(welfare.gini(amounts))


@pytest.fixture
def agents_of_three_cohorts() -> pd.DataFrame:
    """Return agents of which the second has not played, and nobody of the last cohort has."""
    return pd.DataFrame(
        {
            "cohort": ["late", "late", "early", "absent"],
            "mean_loss": [0.5, np.nan, 0.25, np.nan],
            "loss_scale": [2.0, 2.0, 4.0, 1.0],
            "loss_offset": [-3.0, -3.0, -1.0, 0.0],
        }
    )


def test_welfare_is_minus_the_loss_in_its_own_units(agents_of_three_cohorts: pd.DataFrame) -> None:
    assert welfare.welfare(agents_of_three_cohorts)[[0, 2]].tolist() == [2.0, 0.0]


def test_cohorts_keep_their_order_and_leave_out_who_has_not_played(
    agents_of_three_cohorts: pd.DataFrame,
) -> None:
    table = welfare.cohort_welfare(agents_of_three_cohorts).set_index("cohort")
    assert table.index.tolist() == ["late", "early", "absent"]
    assert table["welfare_mean"].tolist()[:2] == [2.0, 0.0]


def test_a_cohort_that_has_not_played_has_no_welfare(agents_of_three_cohorts: pd.DataFrame) -> None:
    table = welfare.cohort_welfare(agents_of_three_cohorts).set_index("cohort")
    assert np.isnan(table.loc["absent"].to_numpy(dtype=float)).all()
    record = welfare.welfare_record(agents_of_three_cohorts)
    assert set(record["absent"].values()) == {None}


def test_welfare_is_the_mean_utility_of_the_actions_that_were_played() -> None:
    """CARA utility by its formula, -exp(-gamma w.y), on the log of a run."""
    investors = cohort_table("cara", 6, 3, "cara", parameters={"risk_aversion": [0.5, 3.0]})
    model = play_to_end(make_scenario(investors, rounds=12))
    cohort = model.game.cohorts[0]
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    log = model.regret_frame()
    actions = log.pivot_table(index="round", columns="agent", values="action").to_numpy(int)
    losses = cohort.loss.losses(outcomes)[:, cohort.row_of]
    losses_of_play = np.take_along_axis(losses, actions[..., None], axis=2)[..., 0]
    offset = cohort.loss.unit_offset[cohort.row_of]
    scale = cohort.loss.unit_scale[cohort.row_of]
    mean_utility = -(offset + scale * losses_of_play).mean(0)

    welfare_of_agents = welfare.welfare(model.agents_frame())

    assert welfare_of_agents == pytest.approx(mean_utility, abs=1e-12)
    assert (welfare_of_agents < 0).all()


def test_negative_welfare_has_a_mean_difference_and_no_gini_coefficient() -> None:
    investors = cohort_table("cara", 6, 3, "cara", parameters={"risk_aversion": [0.5, 3.0]})
    model = play_to_end(make_scenario(investors, rounds=12))
    (investors_welfare,) = welfare.cohort_welfare(model.agents_frame()).itertuples()
    assert np.isnan(investors_welfare.welfare_gini)
    assert investors_welfare.welfare_mean_difference >= 0
