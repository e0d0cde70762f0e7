"""Constant announcements: risk, stable point and optimum against answers by hand."""

import numpy as np
import pytest
from scipy.optimize import brentq
from small_scenarios import cohort_table, make_scenario

from regretless import UserError, load
from regretless.market.core.randomness import stream

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
    variance = attendance(stable) * (1 - attendance(stable)) / 100  # of 100 guests who draw
    assert table["risk"].iloc[-1] == pytest.approx(variance)
    assert table["y_0"].iloc[30] == pytest.approx(attendance(GRID[30]))


@pytest.mark.parametrize(("guests", "adjustment"), [(1, 1.0), (20, 0.4)])
def test_the_risk_counts_that_few_agents_draw_their_actions(guests: int, adjustment: float) -> None:
    """Against the mean squared error of a constant forecast in 1,000 rounds."""
    changes = {
        "market.adjustment": adjustment,
        "forecaster": {"kind": "constant"},
        "cohort.guests.count": guests,
        "cohort.guests.response": "quantal",
        "cohort.guests.eta": 1.0,
    }
    model = load("el-farol", rounds=1000, **changes).build(seed=1)
    model.run()
    rounds = model.rounds_frame()
    announced = 0.5  # by the constant forecaster
    (row,) = model.announcement_risk([announced]).to_dict("records")
    share = row["y_0"]
    expected = share * (1 - share) / guests * adjustment / (2 - adjustment)
    assert row["variance_of_draws"] == pytest.approx(expected)
    squared_errors = (rounds["y_0"].iloc[100:] - announced) ** 2
    assert row["risk"] == pytest.approx(squared_errors.mean(), rel=0.2)


def test_the_variance_of_draws_of_flows_on_three_roads_is_that_of_simulated_loads() -> None:
    market = load("braess", rounds=5, **{"cohort.drivers.count": 6}).build().game.market
    shares = np.array([0.2, 0.3, 0.5])
    strategies = [np.tile(shares, (len(cohort.loss), 1)) for cohort in market.cohorts]
    profiles = stream(3, "profiles").choice(3, size=(20_000, 6), p=shares)
    outcomes = market.rest(np.full(market.goods, 0.5), market.level_of_profiles(profiles))
    averaged = market.adjustment / (2 - market.adjustment)
    assert market.variance_of_draws(strategies) == pytest.approx(
        averaged * outcomes.var(axis=0), rel=0.05, abs=1e-12
    )


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
