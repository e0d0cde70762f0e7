"""Welfare in the utility's own units, and the Gini coefficient by its definition."""

import numpy as np
import pandas as pd
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st

from regretless.market.logs.welfare import (
    cohort_welfare,
    gini,
    mean_difference,
    welfare,
    welfare_record,
)

AMOUNTS = st.lists(st.floats(0, 1e6).map(lambda amount: round(amount, 3)), min_size=1, max_size=12)


def all_pairs(values: list[float]) -> float:
    return sum(abs(one - other) for one in values for other in values)


@given(AMOUNTS)
def test_gini_is_its_definition(amounts: list[float]) -> None:
    count, total = len(amounts), sum(amounts)
    if total == 0:
        assert np.isnan(gini(amounts))
        return
    assert gini(amounts) == pytest.approx(all_pairs(amounts) / (2 * count * total), abs=1e-9)
    assert 0 <= gini(amounts) <= (count - 1) / count + 1e-9
    assert gini(3 * np.array(amounts)) == pytest.approx(gini(amounts), abs=1e-9)
    for values in ([], [0.0, 0.0], [-1.0, 3.0], [-2.0, -1.0]):  # there is no total to share
        assert np.isnan(gini(values))


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), st.floats(-1e3, 1e3))
def test_the_mean_difference_is_its_definition_and_ignores_shifts(
    values: list[float], shift: float
) -> None:
    expected = all_pairs(values) / len(values) ** 2
    assert mean_difference(values) == pytest.approx(expected, abs=1e-9)
    assert mean_difference(np.array(values) + shift) == pytest.approx(expected, abs=1e-8)


def test_cohorts_keep_their_order_and_leave_out_who_has_not_played() -> None:
    agents = pd.DataFrame(
        {
            "cohort": ["late", "late", "early", "absent"],
            "mean_loss": [0.5, np.nan, 0.25, np.nan],
            "loss_scale": [2.0, 2.0, 4.0, 1.0],
            "loss_offset": [-3.0, -3.0, -1.0, 0.0],
        }
    )
    assert welfare(agents)[[0, 2]].tolist() == [2.0, 0.0]
    table = cohort_welfare(agents).set_index("cohort")
    assert table.index.tolist() == ["late", "early", "absent"]
    assert table["welfare_mean"].tolist()[:2] == [2.0, 0.0]
    assert np.isnan(table.loc["absent"].to_numpy(dtype=float)).all()
    assert set(welfare_record(agents)["absent"].values()) == {None}


def test_welfare_is_the_mean_utility_of_the_actions_that_were_played() -> None:
    """CARA utility by its formula, -exp(-gamma w.y), on the log of a run."""
    cara = worlds.cohort("cara", 6, 3, "cara", parameters={"risk_aversion": [0.5, 3.0]})
    model = worlds.played(worlds.scenario(cara, rounds=12))
    agents, rounds, log = model.agents_frame(), model.rounds_frame(), model.regret_frame()
    outcomes = rounds.filter(regex=r"^y_\d+$").to_numpy()
    (cohort,) = model.game.cohorts
    losses = cohort.loss.losses(outcomes)[:, cohort.row_of]
    played = log.sort_values(["round", "agent"])["action"].to_numpy().reshape(12, 6, 1)
    picked = np.take_along_axis(losses, played, axis=2)[..., 0]
    units = cohort.loss.unit_offset[cohort.row_of] + cohort.loss.unit_scale[cohort.row_of] * picked
    assert welfare(agents) == pytest.approx(-units.mean(0), abs=1e-12)
    assert (welfare(agents) < 0).all()
    table = cohort_welfare(agents).set_index("cohort")
    assert np.isnan(table.loc[cohort.name, "welfare_gini"])
    assert table.loc[cohort.name, "welfare_mean_difference"] >= 0
