"""The times that solutions take: a row says how large the game is, and what has no time."""

import numpy as np
import pytest

from paper import solution_times as times
from paper.solution_times import solution_times
from regretless.market.solutions import correlated

NINE_GUESTS = ("el-farol", {"cohort.guests.count": 9})


def test_a_row_has_the_number_of_profiles_and_a_time_for_each_solution() -> None:
    (row,) = solution_times(NINE_GUESTS)
    assert row["profiles"] == 10  # from nobody who goes to all nine
    assert all(row[name] >= 0 for name in ("losses", "nash", "ce", "cce", "optimum"))


def test_what_the_first_solution_in_a_process_compiles_is_not_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every game is solved twice, and the row is of the second time."""
    rows = iter([{"losses": 4.0}, {"losses": 0.1}])
    monkeypatch.setattr(times, "_solve", lambda _: next(rows))
    assert list(solution_times(NINE_GUESTS)) == [{"losses": 0.1}]


def test_a_solution_whose_program_is_too_large_has_no_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(correlated, "MAX_NONZEROS", 10)
    (row,) = solution_times(NINE_GUESTS)
    assert np.isnan(row["ce"])
    assert row["optimum"] >= 0
