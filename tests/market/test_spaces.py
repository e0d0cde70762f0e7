"""Boxes and polytopes of outcomes; losses in their units are in ``test_losses.py``."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.market.losses import ExponentialOfSum, Linear
from regretless.market.losses.outcome_spaces import Box, Polytope

RNG = np.random.default_rng(3)
BOX = Box([-1.0, 2.0, 0.5], [1.0, 5.0, 0.75])
TRIANGLE = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]


def test_a_transformed_sum_has_no_other_space() -> None:
    loss = ExponentialOfSum(np.ones((1, 3)), power=0.0, floor=0.1)
    with pytest.raises(ValueError, match="unit cube"):
        BOX.pulled_back(loss)
    with pytest.raises(ValueError, match="2 outcomes in 3"):
        BOX.pulled_back(Linear(np.ones((1, 2))))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([0.0], [0.0], "above its low"),
        ([0.0], [np.inf], "finite"),
        ([0.0, 1.0], [1.0], "one number per coordinate"),
    ],
)
def test_a_box_needs_sides(low: Any, high: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Box(low, high)


def test_a_polytope_keeps_what_is_inside_and_draws_the_rest_to_its_border() -> None:
    space = Polytope(TRIANGLE)
    mixes = RNG.dirichlet(np.ones(3), 100)
    inside = space.to_unit(mixes @ np.array(TRIANGLE))
    assert space.confined(inside) == pytest.approx(inside, abs=1e-12)
    cube = RNG.random((400, 2))
    moved = space.confined(cube)
    assert (moved.sum(1) <= 1 + 1e-9).all()
    outside = cube.sum(1) > 1
    assert 0.3 < outside.mean() < 0.7
    assert moved[outside].sum(1) == pytest.approx(1.0)  # the long side, in units of the cube
    assert moved[~outside] == pytest.approx(cube[~outside], abs=1e-12)


def test_polytopes_of_one_and_three_dimensions() -> None:
    line = Polytope([[1.0], [3.0], [2.0]])
    assert line.confined([[0.3]]) == pytest.approx(np.array([[0.3]]))
    simplex = Polytope(np.vstack([np.zeros(3), np.eye(3)]))
    assert simplex.confined([0.2, 0.3, 0.4]) == pytest.approx([0.2, 0.3, 0.4])
    assert simplex.confined([0.5, 0.5, 0.5]) == pytest.approx([1 / 3] * 3)
    with pytest.raises(ValueError, match="span all dimensions"):
        Polytope([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])


def test_a_market_in_a_polytope_keeps_its_guarantee() -> None:
    traders, space = worlds.cohort("traders", 5, 3), {"vertices": TRIANGLE}
    model = worlds.played(worlds.scenario(traders, rounds=200, space=space))
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    assert (outcomes.sum(1) <= 1 + 1e-9).all()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
