"""Constant announcements: risk, stable point and optimum against answers by hand."""

import numpy as np
import pytest
from scipy.optimize import brentq
from small_scenarios import cohort_table, make_scenario

from regretless import UserError, load

GRID = np.linspace(0.005, 0.995, 100)


def test_best_responses_to_attendance_have_an_optimal_announcement_and_no_stable_one() -> None:
    """Below the capacity c everybody comes, from c on nobody: the risk is (1 - p)^2, then p^2."""
    changes = {"market.noise": 0.0, "cohort.guests.response": "best-response"}
    model = load("el-farol", rounds=5, **changes).build(seed=1)
    table = model.announcement_risk(GRID)
    comes = GRID < 0.6
    assert table["y_0"].to_numpy() == pytest.approx(np.where(comes, 1.0, 0.0))
    assert table["risk"].to_numpy() == pytest.approx(np.where(comes, 1 - GRID, GRID) ** 2)
    assert not table["is_stable"].any()
    assert GRID[table["is_optimum"]] == pytest.approx([0.595])


def test_the_stable_point_of_smooth_responses_is_where_the_announcement_comes_true() -> None:
    changes = {
        "market.noise": 0.0,
        "cohort.guests.response": "quantal",
        "cohort.guests.eta": 4.0,
    }
    model = load("el-farol", rounds=5, **changes).build(seed=1)
    (coefficients,) = [cohort.loss for cohort in model.game.cohorts]

    def attendance(announced: float) -> float:
        at_home, at_bar = coefficients.losses(np.array([announced]))[0]
        return float(1 / (1 + np.exp(4.0 * (at_bar - at_home))))

    stable = brentq(lambda announced: attendance(announced) - announced, 0.0, 1.0)
    table = model.announcement_risk(np.append(GRID, stable))
    assert table["is_stable"].iloc[-1]
    assert table["is_optimum"].iloc[-1]
    assert table["risk"].iloc[-1] == pytest.approx(0.0, abs=1e-12)
    assert table["y_0"].iloc[30] == pytest.approx(attendance(GRID[30]))


def test_an_outcome_that_does_not_answer_is_best_announced_by_its_mean() -> None:
    crowd = cohort_table("crowd", 3, 3)
    nature = {"kind": "iid", "outcomes": 1, "mean": 0.3}
    model = make_scenario(crowd, rounds=5, adversary=nature).build(seed=1)
    distribution = model.game.adversary.fixed_distribution()
    assert distribution is not None
    mean = float(distribution.weights @ distribution.points[:, 0])
    variance = float(distribution.weights @ (distribution.points[:, 0] - mean) ** 2)
    table = model.announcement_risk(np.append(GRID, mean))
    assert table["risk"].to_numpy() == pytest.approx((np.append(GRID, mean) - mean) ** 2 + variance)
    assert np.flatnonzero(table["is_stable"]).tolist() == [100]
    assert (table["best"] == 100).all()


def test_what_has_no_answer_says_why() -> None:
    with pytest.raises(UserError, match="do not respond"):
        load("el-farol", rounds=5).build().announcement_risk(GRID)
    changes = {"cohort.guests.response": "best-response"}
    model = load("el-farol", rounds=5, **changes).build()
    for grid, fault in [([[0.1, 0.2]], "shape"), ([2.0], r"\[0, 1\]"), (["x"], "grid")]:
        with pytest.raises(UserError, match=fault):
            model.announcement_risk(grid)
