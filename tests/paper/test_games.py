"""Random short games: no regret is above a bound."""

import numpy as np

from paper.games import measure


def test_no_regret_is_above_a_bound_in_random_short_games() -> None:
    found = measure(150, seed=3)
    assert (found["games"] == 150).all()
    assert np.isfinite(found["greatest"]).all()
    assert (found["greatest"] > 0).all()
    assert (found["exceeded"] == 0).all()
