"""The searches that are compared with our own find a plan that plainly pays."""

import numpy as np
import pytest

from paper.searches import Cma, DiagonalCma, Search


@pytest.mark.parametrize("maker", [Cma, DiagonalCma])
def test_a_search_finds_the_outcome_that_pays(maker: type[Search]) -> None:
    search = maker((2, 1, 3), np.random.default_rng(0), paid=(0.0, 1.0))
    for _ in range(20):
        plans = search.propose()
        assert plans.shape == (search.generation, 2, 1, 3)
        search.feedback(plans[:, 0, 0, 2] + plans[:, 1, 0, 0])
    best = search.best()
    assert best.sum(-1) == pytest.approx(1)
    assert best[0, 0, 2] + best[1, 0, 0] > 1.9
