"""Bases of real losses: the sup-norm program, the choice of functions, the promise that is kept."""

import functools
import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief
from regretless.forecaster.bases import ExactLossesBasis, ReducedBasis
from regretless.forecaster.bases import reduced as bases
from regretless.forecaster.bases.reduced import SLACK, SupNormFit
from regretless.market.core.arrays import Array
from regretless.market.losses import Convex1D, Linear, Loss, MinimumOfRatios

COUNT, ACTIONS = 30, 4
ROUNDING = 1e-9
LEAST = 2e-3  # to which the program minimises unless told otherwise


def population(seed: int, outcomes: int, count: int = COUNT) -> list[Loss]:
    """Draw agents of three forms with many parameters each."""
    rng = np.random.default_rng(seed)
    shape = count, ACTIONS
    return [
        CES(rng.dirichlet(np.ones(outcomes), shape), rng.uniform(0.3, 0.9, count), 1.0),
        CobbDouglas(rng.dirichlet(np.ones(outcomes), shape)),
        Leontief(rng.uniform(0.25, 1.0, (*shape, outcomes))),
    ]


@functools.cache
def reduced(outcomes: int, error: float) -> ReducedBasis:
    return ReducedBasis(population(1, outcomes), error=error)


def unseen(outcomes: int, count: int = 3000) -> Array:
    """Outcomes at random, a part of them near 0, with all corners and midpoints of edges."""
    rng = np.random.default_rng(99)
    inner = rng.random((count, outcomes)) ** rng.choice([1.0, 2.0], (count, 1))
    ends = list(itertools.product([0.0, 0.5, 1.0], repeat=outcomes))
    return np.concatenate([inner, ends])


def worst(basis: ReducedBasis, losses: list[Loss], outcomes: Array) -> float:
    """Greatest error of several stacks."""
    return max(basis.audit(loss, outcomes) for loss in losses)


def optimum(table: Array, values: Array, cap: float) -> float:
    """Least sup-norm error by a program written out in full."""
    size, count = table.shape
    ones = np.ones((count, 1))
    sides = [np.hstack([sign * table.T, -sign * table.T, sign * ones, -ones]) for sign in (1, -1)]
    found = linprog(
        np.append(np.zeros(2 * size + 1), 1.0),
        A_ub=np.vstack([*sides, np.append(np.ones(2 * size), [0.0, 0.0])]),
        b_ub=np.concatenate([values, -values, [cap]]),
        bounds=[(0, None)] * (2 * size) + [(None, None), (0, None)],
    )
    return float(found.fun)


@pytest.mark.parametrize("seed", range(10))
def test_the_fit_is_the_optimum(seed: int) -> None:
    """With all points in the program; from one point on up to the slack that is let pass."""
    rng = np.random.default_rng(seed)
    table = rng.random((rng.integers(1, 6), rng.integers(3, 40)))
    cap = float(rng.choice([0.3, 1.0, 2.0, 50.0]))
    count = table.shape[1]
    whole, grown = (SupNormFit(table, cap, working=list(range(n))) for n in (count, 1))
    for scale in (1.0, 0.03, 3.0):
        values = scale * rng.normal(size=count)
        least = optimum(table, values, cap)
        for fit in (whole, grown):
            found = fit(values)
            errors = np.abs(values - found.offset - found.weights @ table)
            assert found.error == pytest.approx(errors.max(), abs=1e-12)
            assert np.abs(found.weights).sum() <= cap * (1 + 1e-12)
        assert whole(values).error == pytest.approx(least, abs=1e-8)
        assert least - 1e-8 <= grown(values).error <= max(SLACK * least, least + LEAST) + 1e-9


def test_the_exact_basis_serves_constants_and_refuses_strangers() -> None:
    """Of stacks with twins within and between them, a constant action needs no function."""
    table = np.array([[[0.2, 0.8], [0.5, 0.5]], [[0.2, 0.8], [0.0, 0.0]]])
    knots = np.array([0.3, 0.6])[:, None]
    kinked = Convex1D(np.ones((2, 2, 1)), knots, -0.5, offset=0.3, dimension=2)
    sums = Linear(table, 0.25), Linear(table[1], 0.25)
    basis = ExactLossesBasis([*sums, MinimumOfRatios(table[0] + 0.1).normalised(), kinked])
    offset, weights = basis.coefficients(sums[1])
    assert offset == pytest.approx([0.25, 0.25])
    assert weights[1] == pytest.approx(np.zeros(6))
    for stranger in (Linear([[0.3, 0.7]]), Leontief([[0.3, 0.7], [0.1, 0.9]])):
        with pytest.raises(ValueError, match="not among those"):
            basis.coefficients(stranger)
    with pytest.raises(ValueError, match="3 outcomes"):
        basis.coefficients(Linear([[0.2, 0.8, 0.0]]))


@pytest.mark.parametrize(("outcomes", "error"), [(2, 0.1), (2, 0.03), (3, 0.1)])
def test_the_promise_is_kept(outcomes: int, error: float) -> None:
    """On the sample and on the unseen outcomes of the fit exactly, elsewhere nearly."""
    basis, losses = reduced(outcomes, error), population(1, outcomes)
    report = basis.report
    assert basis.error == max(report.sampled_error, report.unseen_error) <= error
    assert report.functions == 3 * COUNT * ACTIONS
    assert report.size == basis.size < report.functions / 4
    assert report.lipschitz == basis.lipschitz <= 1 + ROUNDING
    assert report.cost == pytest.approx(basis.lipschitz * basis.size**0.5)
    assert worst(basis, losses, basis._sample) == pytest.approx(report.sampled_error, rel=1e-6)
    for loss in losses:
        _, weights = basis.coefficients(loss)
        assert np.abs(weights).sum(-1).max() <= basis.lipschitz + ROUNDING
    assert worst(basis, losses, unseen(outcomes)) <= 1.3 * error


def test_a_search_that_is_remembered_is_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was fitted since; other functions, parts, promises and seeds are searched for."""
    memory: dict[Any, Any] = {}
    losses, y, strangers = population(1, 1, 3), unseen(1, 50), population(2, 1, 1)
    split = [losses[0][:2], losses[0][2:], *losses[1:]]
    asked: list[tuple[list[Loss], dict[str, Any]]] = [(losses, {}), (losses, {})]
    asked += [(losses[::-1], {}), (losses[:2], {}), (split, {})]
    asked += [(losses, {"error": 0.25}), (losses, {"cap": 2.0}), (losses, {"seed": 1})]
    for count, (given, keys) in enumerate(asked):
        found = []
        for memories in (memory, {}):
            monkeypatch.setattr(bases, "_remembered", memories)
            found.append(ReducedBasis(given, **({"error": 0.3} | keys)))
        known, fresh = found
        assert len(memory) == max(count, 1)
        assert fresh.report == known.report
        for loss in (*strangers, *given):
            for ours, theirs in zip(
                known.coefficients(loss), fresh.coefficients(loss), strict=True
            ):
                np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(known.transform(y), fresh.transform(y))


@pytest.mark.parametrize(("outcomes", "error"), [(2, 0.1), (3, 0.1)])
def test_fresh_agents_are_served_within_a_third_more(outcomes: int, error: float) -> None:
    """Agents of the same population that the fit never met."""
    basis = reduced(outcomes, error)
    for seed in (2, 3):
        few = population(seed, outcomes, 10)
        assert worst(basis, few, unseen(outcomes)) <= 1.3 * error
        for loss in few:
            assert np.abs(basis.coefficients(loss)[1]).sum(-1).max() <= 1 + ROUNDING


@pytest.mark.parametrize("error", [0.1, 0.03])
def test_the_certificate_is_above_what_is_measured(error: float) -> None:
    """For members and for agents that were not listed."""
    basis = reduced(2, error)
    for losses in (population(1, 2), population(2, 2, 4)):
        for loss in losses:
            certified = basis.certified_error(loss)
            assert certified >= basis.audit(loss, unseen(2))
            assert certified <= 3 * error
    alone = population(1, 2)[2][5]
    assert basis.certified_error(alone) <= basis.certified_error(population(1, 2)[2]) + ROUNDING


@pytest.mark.parametrize("seed", [20, 53, 59])
@pytest.mark.parametrize("error", [0.1, 3e-4, 1e-6])
def test_the_whole_population_keeps_any_promise(error: float, seed: int) -> None:
    """Every loss is its own linear form, so no promise is too small."""
    rng = np.random.default_rng(seed)
    agents, actions = int(rng.integers(1, 5)), int(rng.integers(2, 5))
    for needs in rng.uniform(0.25, 1.0, (3, agents, actions, 2)):
        basis = ReducedBasis([Leontief(needs)], error=error)
        assert basis.error <= error
        assert basis.size <= agents * actions
