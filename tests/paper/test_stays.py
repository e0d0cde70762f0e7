"""A hundred random games of agents who come and go: no regret is above a bound."""

import pandas as pd
import pytest

from paper.stays import TABLES

pytestmark = pytest.mark.slow


def test_games_are_played_in_parts() -> None:
    one_measurement = TABLES["stays"].measure(rounds=2, first=5, seeds=1, jobs=1)
    parts = [TABLES["stays"].measure(rounds=n, first=i, jobs=1) for i, n in ((5, 1), (6, 1))]
    pd.testing.assert_frame_equal(one_measurement, pd.concat(parts, ignore_index=True))


def test_no_bound_is_below_the_regret_of_whoever_stays_enters_or_leaves() -> None:
    table = pd.DataFrame(TABLES["stays"].rows("", rounds=100, seed=0))
    violated = table[table["below"] > 0]
    assert violated.empty, violated.to_string()
    compared = table.groupby(["bound", "who"])["rows"].sum()
    for bound in ("bound", "bound_from_bias", "bound_from_variation"):
        assert {"stays", "enters", "leaves", "enters and leaves"} <= set(compared[bound].index)
    assert "bound of a window" in compared.index
