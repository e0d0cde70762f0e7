"""What draws of a few agents add to the risk of an announcement: formula and simulation agree."""

import pytest

from paper.announcements import announce


def test_the_risk_of_one_guest_is_that_of_a_coin() -> None:
    (row,) = announce((1, 1.0), 300, seed=0)
    assert row["risk of a continuum"] < 0.001
    assert row["risk"] == pytest.approx(0.25, abs=0.001)
    assert row["mean squared error"] == pytest.approx(0.25, abs=1e-9)  # 0 or 1, where 0.5 was said
