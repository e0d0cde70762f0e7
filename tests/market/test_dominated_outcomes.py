"""Outcomes to which no mass needs to be added: the kernel beside its definition."""

import numpy as np
import pytest

from regretless.market.core.randomness import stream
from regretless.market.exploitability import of_joint


def useful_by_definition(gains: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return which candidates (m,) no other outcome dominates; of equals the first stays."""
    outcomes = np.flatnonzero(candidates)
    places = np.arange(gains.shape[1])
    is_no_worse = (gains[:, :, None] <= gains[:, None, outcomes]).all(0)
    is_less_somewhere = (gains[:, :, None] < gains[:, None, outcomes]).any(0)
    is_first = places[:, None] < outcomes
    is_dominated = (is_no_worse & (is_less_somewhere | is_first)).any(0)
    useful = candidates.copy()
    useful[outcomes] = ~is_dominated
    return useful


@pytest.mark.parametrize("levels", [2, 4, 100])
def test_of_outcomes_that_are_no_better_only_the_first_stays(levels: int) -> None:
    rng = stream(levels, "dominated outcomes")
    gains = rng.integers(levels, size=(3, 40)) / levels  # many are equal where levels are few
    candidates = rng.random(40) < 0.7
    is_useful = candidates.copy()

    of_joint._write_useful(gains, is_useful)

    assert np.array_equal(is_useful, useful_by_definition(gains, candidates))
