"""Bases for convex losses of one coordinate: errors, constants and sizes as declared."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regretless.forecaster.bases import OptimisedConvexBasis, RampBasis, ReLUBasis
from regretless.forecaster.bases.convex import ConvexBasis, ConvexTable, distances, relu, tables
from regretless.market.core.arrays import Array
from regretless.market.losses import Convex1D, ExponentialOfSum, Loss, MinimumOfRatios, PowerOfSum

ROUNDING = 1e-11
FINE = np.linspace(0, 1, 1999)

THIRD = {"outcomes": 3, "coordinate": 2}
WISHES: list[tuple[type[ConvexBasis], dict[str, Any]]] = [
    *((ReLUBasis, {"error": error}) for error in (0.25, 0.1, 0.005)),
    *((OptimisedConvexBasis, {"error": error}) for error in (0.26, 0.1, 0.02, 0.01)),
    (OptimisedConvexBasis, {"error": 0.02, "cap": 3.0}),
    *((kind, {"error": 0.1} | THIRD) for kind in (ReLUBasis, OptimisedConvexBasis)),
    *((kind, {"error": 0.4, "constant": 4.0}) for kind in (ReLUBasis, OptimisedConvexBasis)),
]


@pytest.mark.parametrize(("kind", "wish"), WISHES)
def test_hinges_are_the_extreme_members(kind: type[ConvexBasis], wish: dict[str, Any]) -> None:
    """L |y - t|, L max(y - t, 0) and L max(t - y, 0), for every t of a fine grid.

    They need nearly the declared error, and with a line nearly the declared lambda.
    """
    basis: ConvexBasis = kind(**wish)
    knots = np.broadcast_to(np.linspace(0, 1, 1301)[:, None, None], (1301, 3, 1))
    kinks = np.broadcast_to(basis.constant * np.array([[2.0], [1.0], [1.0]]), knots.shape)
    slope = np.broadcast_to(basis.constant * np.array([-1.0, 0.0, -1.0]), (1301, 3))
    place = {"coordinate": basis.coordinate, "dimension": basis.outcomes}
    hinges = Convex1D(kinks, knots, slope=slope, offset=np.array(0.3), **place)
    outcomes = np.random.default_rng(0).random((len(FINE), basis.outcomes))
    outcomes[:, basis.coordinate] = FINE
    assert 0.9 * basis.error <= basis.audit(hinges, outcomes) <= basis.error + ROUNDING
    line = replace(hinges[0], kinks=np.zeros((3, 1)), slope=np.full(3, basis.constant))
    sums = [np.abs(basis.coefficients(x)[1]).sum(-1).max() for x in (hinges, line)]
    assert 0.98 * basis.lipschitz <= max(sums) <= basis.lipschitz + ROUNDING


@pytest.mark.parametrize("error", [0.25, 0.02, 0.001])
@pytest.mark.parametrize("constant", [1.0, 3.0])
def test_a_broken_line_takes_a_quarter_over_the_error(error: float, constant: float) -> None:
    """N = L / (4 error), rounded up, and lambda L."""
    basis = ReLUBasis(error=error * constant, constant=constant)
    assert basis.size == int(np.ceil(1 / (4 * error) - 1e-9))
    assert (basis.error, basis.lipschitz) == (constant / (4 * basis.size), constant)


def test_no_basis_of_this_size_does_better_with_its_functions() -> None:
    """The half excess is the best constant: errors of both signs are equal."""
    basis, outcomes = ReLUBasis(error=0.05), FINE[:, None]
    loss = Convex1D(np.full((1, 1), 2.0), np.array([[0.5]]), slope=np.array(-1.0))
    offset, weights = basis.coefficients(loss)
    gap = offset + basis.transform(outcomes) @ weights[0] - loss.losses(outcomes)[:, 0]
    assert gap.max() == pytest.approx(-gap.min()) == pytest.approx(basis.error)


@pytest.mark.parametrize(("error", "sizes"), [(0.05, (3, 5)), (0.02, (7, 13)), (0.01, (11, 25))])
def test_an_optimised_basis_is_smaller(error: float, sizes: tuple[int, int]) -> None:
    """Than the broken line, at the same error and lambda."""
    optimised, line = OptimisedConvexBasis(error=error), ReLUBasis(error=error)
    assert optimised.error <= error
    assert (optimised.size, line.size) == sizes
    assert optimised.lipschitz <= line.lipschitz + ROUNDING


def test_kinks_are_knots_where_that_takes_fewer_functions() -> None:
    shop = Convex1D(kinks=[[4.0]], knots=[[0.5]], slope=-1.0, offset=0.5)
    assert relu([shop]).knots.tolist() == [0.0, 0.5, 1.0]  # type: ignore[attr-defined]
    assert relu([shop]).error == 0
    assert relu([shop], error=0.3).error > 0


def test_every_shipped_table_is_what_it_declares() -> None:
    """Functions in [0, 1] that fill it, the outcome first, fewer for a greater error."""
    for table in tables():
        assert table.functions[:, 0] == pytest.approx(np.linspace(0, 1, len(table.rows)))
        assert table.functions.min(0) == pytest.approx(0, abs=1e-6)
        assert table.functions.max(0) == pytest.approx(1, abs=1e-6)
        assert table.lipschitz <= 3
    tight = [table.error for table in tables() if table.lipschitz <= 1 + ROUNDING]
    assert tight == sorted(tight, reverse=True)


def test_the_certificate_covers_what_lies_between_the_grid_points() -> None:
    """A table that is exact at every grid point still errs between them, on the diagonal."""
    exact = ConvexTable(distances(5), np.column_stack([np.zeros(5), np.eye(5)]))
    # |y - t| at y = t = 1/8 is 0, the mean of its four neighbours 1/8
    assert 0.125 <= exact.error <= 0.25 + ROUNDING


STACK, ACTIONS = 8, 3
LEAST = 0.1


def ces(outcomes: int, low: float, high: float) -> PowerOfSum:
    rho, minus = np.linspace(low, high, STACK), -np.ones((STACK, ACTIONS))
    weights, floor = shares(outcomes), np.full(STACK, LEAST)
    return PowerOfSum(weights, 1 / rho, power=rho, floor=floor, amplitude=minus).normalised()


def shares(outcomes: int) -> Array:
    return np.random.default_rng(outcomes).dirichlet(np.ones(outcomes), (STACK, ACTIONS))


def cobb_douglas(outcomes: int) -> ExponentialOfSum:
    floor = np.full(STACK, LEAST)
    return ExponentialOfSum(shares(outcomes), power=np.zeros(STACK), floor=floor).normalised()


def leontief(outcomes: int) -> MinimumOfRatios:
    needs = np.random.default_rng(5).uniform(0.5, 1.5, (STACK, ACTIONS, outcomes))
    return MinimumOfRatios(needs).normalised()


# losses, knots, floor; the first are minus distribution functions of positive measures
MEASURES: dict[str, Callable[[], tuple[Loss, int, float]]] = {
    "ces, complements": lambda: (ces(3, -2.0, -0.2), 4, LEAST),
    "ces, substitutes": lambda: (ces(3, 0.1, 0.5), 4, LEAST),
    "ces of two goods": lambda: (ces(2, 0.3, 0.9), 6, LEAST),
    "cobb-douglas": lambda: (cobb_douglas(3), 4, LEAST),
    "leontief": lambda: (leontief(3), 4, 0.0),
    "leontief of two goods": lambda: (leontief(2), 7, 0.0),
}


def grid(outcomes: int) -> Array:
    """Outcomes (T, d), denser towards 0, off the knots."""
    ticks = {2: 73, 3: 23}[outcomes]
    return np.array(list(itertools.product(np.linspace(0, 1, ticks) ** 1.7, repeat=outcomes)))


@pytest.mark.parametrize("name", MEASURES)
def test_weights_are_a_measure_where_the_loss_is_one(name: str) -> None:
    """Of one sign, so that their sum is at most the range of the loss: lambda is at most 1."""
    loss, knots, floor = MEASURES[name]()
    basis = RampBasis([loss], knots=knots, floor=floor, budget=1)
    assert basis.coefficients(loss)[1].max() <= ROUNDING
    assert basis.lipschitz <= 1 + ROUNDING


# error of plain interpolation as published for some population, d = 3, y_min = 0.1
PUBLISHED = {
    4: {"ces": 0.065, "cobb-douglas": 0.021, "leontief": 0.236},
    8: {"ces": 0.017, "cobb-douglas": 0.005, "leontief": 0.101},
}


@pytest.mark.parametrize("form", ["ces", "cobb-douglas", "leontief"])
@pytest.mark.parametrize("knots", [4, 8])
def test_errors_are_those_of_interpolation_halved(knots: int, form: str) -> None:
    """Of the published size, with 63 and 511 functions; taking off half the excess halves it."""
    losses = {"ces": ces(3, -1.2, -0.2), "cobb-douglas": cobb_douglas(3), "leontief": leontief(3)}
    loss: Loss = losses[form]
    floor = 0.0 if form == "leontief" else LEAST
    basis = RampBasis([loss], knots=knots, floor=floor, budget=1)
    assert basis.size == knots**3 - 1
    halved = basis.audit(loss, grid(3))
    assert halved == pytest.approx(PUBLISHED[knots][form] / 2, rel=0.7)


@pytest.mark.parametrize("wish", [0.1, 0.05])
def test_the_fewest_knots_for_a_wish(wish: float) -> None:
    """The certified error is within the wish; with one knot fewer it would not be."""
    losses = [ces(2, -2.0, -0.2), cobb_douglas(2), leontief(2)]
    basis = RampBasis(losses, error=wish, budget=1_000_000)
    assert basis.error <= wish
    assert max(basis.audit(loss, grid(2)) for loss in losses) <= wish
    fewer = RampBasis(losses, knots=len(basis.knots) - 1, budget=1_000_000)
    assert fewer.error > 0.95 * wish


@pytest.mark.slow
def test_a_wish_that_no_knots_fulfil_is_refused() -> None:
    """Whether a sample or only the certificate says so."""
    for wish, budget in ((0.001, 1_000_000), (0.1, 1)):
        with pytest.raises(ValueError, match=f"no 12 knots or fewer have an error of {wish}"):
            RampBasis([leontief(3)[:1]], error=wish, budget=budget)
