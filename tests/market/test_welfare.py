"""Welfare in the utility's own units, and the Gini coefficient by its definition."""

import numpy as np
import pandas as pd
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st

from regretless.market.logs import welfare

AMOUNTS = st.lists(st.floats(0, 1e6).map(lambda amount: round(amount, 3)), min_size=1, max_size=12)


@given(AMOUNTS, st.floats(-1e3, 1e3))
def test_gini_and_mean_difference_are_their_definitions(amounts: list[float], shift: float) -> None:
    count, total = len(amounts), sum(amounts)
    pairs = sum(abs(one - other) for one in amounts for other in amounts)
    for values in (amounts, np.array(amounts) + shift):
        apart = welfare.mean_difference(values)
        assert apart == pytest.approx(pairs / count**2, rel=1e-9, abs=1e-8)
    if total == 0:
        assert np.isnan(welfare.gini(amounts))
        return
    assert welfare.gini(amounts) == pytest.approx(pairs / (2 * count * total), abs=1e-9)
    assert 0 <= welfare.gini(amounts) <= (count - 1) / count + 1e-9
    assert welfare.gini(3 * np.array(amounts)) == pytest.approx(welfare.gini(amounts), abs=1e-9)
    for nothing in ([], [0.0, 0.0], [-1.0, 3.0], [-2.0, -1.0]):  # there is no total to share
        assert np.isnan(welfare.gini(nothing))


def test_cohorts_keep_their_order_and_leave_out_who_has_not_played() -> None:
    columns = ["cohort", "mean_loss", "loss_scale", "loss_offset"]
    rows = [
        ("late", 0.5, 2.0, -3.0), ("late", np.nan, 2.0, -3.0), ("early", 0.25, 4.0, -1.0),
        ("absent", np.nan, 1.0, 0.0),
    ]  # fmt: skip
    agents = pd.DataFrame(rows, columns=columns)
    assert welfare.welfare(agents)[[0, 2]].tolist() == [2.0, 0.0]
    table = welfare.cohort_welfare(agents).set_index("cohort")
    assert table.index.tolist() == ["late", "early", "absent"]
    assert table["welfare_mean"].tolist()[:2] == [2.0, 0.0]
    assert np.isnan(table.loc["absent"].to_numpy(dtype=float)).all()
    assert set(welfare.welfare_record(agents)["absent"].values()) == {None}


def test_welfare_is_the_mean_utility_of_the_actions_that_were_played() -> None:
    """CARA utility by its formula, -exp(-gamma w.y), on the log of a run."""
    cara = worlds.cohort("cara", 6, 3, "cara", parameters={"risk_aversion": [0.5, 3.0]})
    model = worlds.played(worlds.scenario(cara, rounds=12))
    agents, (cohort,) = model.agents_frame(), model.game.cohorts
    losses = cohort.loss.losses(model.rounds_frame()[["y_0", "y_1"]].to_numpy())[:, cohort.row_of]
    played = model.regret_frame().pivot_table(index="round", columns="agent", values="action")
    picked = np.take_along_axis(losses, played.to_numpy(int)[..., None], axis=2)[..., 0]
    units = cohort.loss.unit_offset[cohort.row_of] + cohort.loss.unit_scale[cohort.row_of] * picked
    assert welfare.welfare(agents) == pytest.approx(-units.mean(0), abs=1e-12)
    assert (welfare.welfare(agents) < 0).all()
    (table,) = welfare.cohort_welfare(agents).itertuples()
    assert np.isnan(table.welfare_gini)
    assert table.welfare_mean_difference >= 0
