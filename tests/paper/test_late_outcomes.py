"""Late outcomes of served forecasts: how few rounds may be played."""

from dataclasses import replace

import pytest

from paper.late_outcomes import AHEAD, ARRIVALS, MIN_ROUNDS, TABLES, serve
from regretless.market.core.errors import UserError


def test_rounds_in_which_nothing_is_learned_are_refused_in_one_line() -> None:
    table = replace(TABLES["late-outcomes"], instances=lambda: [("weather", "six late")])

    with pytest.raises(UserError, match=r"^--rounds 5: no outcome .* late .* give at least 7$"):
        table.measure(rounds=5, jobs=1)


@pytest.mark.parametrize("arrival", [*ARRIVALS, AHEAD])
def test_the_fewest_rounds_that_are_taken_have_a_loss(arrival: str) -> None:
    (row,) = serve(("weather", arrival), MIN_ROUNDS, seed=0)

    assert row["mean loss"] >= 0
    assert row["rounds"] >= 1
