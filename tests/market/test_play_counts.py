"""What agents play is counted by type and action."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless.market.solutions.play import _count_entries


@given(
    agents=st.lists(st.tuples(st.sampled_from([0, 3, 7]), st.integers(0, 2)), max_size=30),
)
def test_entries_are_counted_as_numpy_counts_them(agents: list[tuple[int, int]]) -> None:
    first_entries = np.array([first for first, _ in agents], dtype=np.intp)
    actions = np.array([action for _, action in agents], dtype=np.intp)
    counts = np.zeros(10, dtype=np.int64)
    assert _count_entries(first_entries, actions, counts)
    assert np.array_equal(counts, np.bincount(first_entries + actions, minlength=10))


def test_a_round_in_which_an_agent_is_absent_is_told_apart() -> None:
    first_entries = np.array([0, 0, 2])
    assert not _count_entries(first_entries, np.array([1, -1, 0]), np.zeros(4, dtype=np.int64))


@pytest.mark.parametrize("actions", [[0, 1], [0, 1, 0, 1], [0, 2, 2]])
def test_actions_of_other_agents_or_without_an_entry_are_refused(actions: list[int]) -> None:
    first_entries = np.array([0, 0, 2])
    with pytest.raises(IndexError, match="agent"):
        _count_entries(first_entries, np.array(actions), np.zeros(4, dtype=np.int64))
