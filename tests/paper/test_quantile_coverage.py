"""Announced quantiles beside conformal control: the rivals keep what their recursions imply."""

import numpy as np
import pytest

from paper.quantile_coverage import (
    ANNOUNCERS,
    NOMINAL,
    SEQUENCES,
    ConformalPid,
    Interval,
    announce,
    bounds_of,
    outside,
)

RIVALS = [name for name in ANNOUNCERS if name != "announced quantiles"]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("method", RIVALS)
def test_a_rival_covers_as_its_recursion_implies(method: str, sequence: str) -> None:
    rows = list(announce((sequence, method), rounds=1000, seed=1))
    assert [row["rounds"] for row in rows] == [300, 1000]
    for row in rows:
        assert 0 <= row["width"] <= 1
        if method == "conformal PID":
            assert np.isnan(row["bound"])
        else:
            assert row["coverage"] >= NOMINAL - row["bound"]


def test_ours_covers_as_promised() -> None:
    (row,) = announce(("drifting", "announced quantiles"), rounds=40, seed=1)
    assert row["coverage"] >= NOMINAL - row["bound"]


def test_bounds_by_the_steps_of_the_grid_say_what_the_table_of_coverage_says() -> None:
    (row,) = bounds_of(("adversarial", 4), rounds=12, seed=0)
    assert row["rounds"] == 12
    assert row["lower_5"] == 0.0  # a bound of twelve rounds says nothing of 5 %
    assert 0.05 <= row["upper_5"] <= min(0.05 + row["bound_below"], 1.0)
    assert 0.0 <= row["of_use"] <= 1.0


def test_the_adversary_is_outside_where_there_is_room() -> None:
    quantiles = np.array([0.2, 0.8])
    assert outside(Interval(quantiles, 0.2, 0.8)) > 0.8
    assert outside(Interval(quantiles, 0.2, 1.0)) < 0.2
    assert outside(Interval(quantiles, 0.0, 1.0)) == 0.5


def test_the_integrator_widens_what_covers_too_little() -> None:
    """After many outcomes beyond the upper quantile its value is higher than the tracker's."""
    pid = ConformalPid()
    for _ in range(30):
        pid.announce()
        pid.learn(1.0)
    assert pid.announce().quantiles[1] >= ANNOUNCERS["quantile tracker"]().announce().quantiles[1]
