"""Boxes and polytopes of outcomes, and losses stated in their units."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.market.losses import (
    Convex1D,
    ExponentialOfSum,
    Linear,
    LipschitzLoss,
    Loss,
    MinimumOfRatios,
    PowerOfSum,
    SeparablePower,
)
from regretless.market.losses.outcome_spaces import Box, Polytope

RNG = np.random.default_rng(3)
BOX = Box([-1.0, 2.0, 0.5], [1.0, 5.0, 0.75])
TRIANGLE = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]
K, A = 3, 2

PULLED: list[Loss] = [
    Linear(RNG.normal(size=(K, A, 3)), RNG.normal(size=(K, A))),
    SeparablePower(
        RNG.normal(size=(K, A, 3)), RNG.uniform(0.5, 3, K), centre=RNG.normal(size=(K, A, 3))
    ),
    PowerOfSum(RNG.normal(size=(K, A, 3)), 2.0, intercept=RNG.normal(size=(K, A))),
    ExponentialOfSum(RNG.normal(size=(K, A, 3)), amplitude=RNG.normal(size=(K, A))),
    Convex1D(
        RNG.random((K, A, 2)), RNG.uniform(2, 5, (K, A, 2)), slope=-0.3, coordinate=1, dimension=3
    ),
]
WRAPPED: list[Loss] = [
    LipschitzLoss(lambda y: np.abs(y[:, :2]), constant=1.0, shape=(2,), dimension=3, high=5.0)
]


@pytest.mark.parametrize("loss", PULLED + WRAPPED, ids=lambda loss: loss.form)
def test_a_pulled_back_loss_is_the_loss_in_own_units(loss: Loss) -> None:
    unit = RNG.random((50, 3))
    pulled = BOX.pulled_back(loss)
    own = loss.losses(BOX.from_unit(unit))
    assert pulled.losses(unit) == pytest.approx(own, abs=1e-9)
    normal = pulled.normalised()
    table = normal.losses(np.vstack([unit, np.zeros(3), np.ones(3)]))
    assert -1e-9 <= table.min() <= table.max() <= 1 + 1e-9
    back = normal.unit_offset[..., None] + normal.unit_scale[..., None] * table[:-2]
    assert back == pytest.approx(own, abs=1e-9)
    assert BOX.to_unit(BOX.from_unit(unit)) == pytest.approx(unit)


def test_a_minimum_of_ratios_keeps_its_slope() -> None:
    box = Box([0.0, 1.0], [10.0, 2.0])
    loss = MinimumOfRatios(np.array([[1.0, 4.0], [2.0, 0.5]]))
    pulled = box.pulled_back(loss)
    unit = RNG.random((40, 2))
    assert pulled.losses(unit) == pytest.approx(loss.losses(box.from_unit(unit)))
    assert pulled.lipschitz() == pytest.approx(10 * loss.lipschitz())


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
    traders = {"name": "traders", "utility": "linear", "count": 5, "actions": 3}
    model = worlds.played(worlds.scenario(traders, rounds=200, space={"vertices": TRIANGLE}))
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    assert (outcomes.sum(1) <= 1 + 1e-9).all()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
