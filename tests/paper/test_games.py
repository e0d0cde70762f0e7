"""Random short games: no regret is above a bound."""

import numpy as np

from paper.games import TABLES


def test_no_regret_is_above_a_bound_in_random_short_games() -> None:
    table = TABLES["games"]
    found = table.summed(table.measure(rounds=75, seeds=2, jobs=1))
    assert (found["games"] == 150).all()
    assert np.isfinite(found["greatest"]).all()
    assert (found["greatest"] > 0).all()
    assert (found["exceeded"] == 0).all()
