"""Bases of real losses, and certificates of errors: never below the truth, close to it."""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief
from regretless.forecaster.bases import ExactLossesBasis, ReducedBasis, reduced
from regretless.forecaster.bases.certify import ROUNDING, certify
from regretless.forecaster.bases.reduced import SLACK, SupNormFit
from regretless.market import losses as forms
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.base import STEEPEST

STACK = 5
CHOICES = 3
GRID = np.array(list(itertools.product(np.linspace(0, 1, 83) ** 2, repeat=2)))
TWO, FOUR = (np.random.default_rng(n).uniform(0.2, 1.0, (STACK, CHOICES, n)) for n in (2, 4))
EACH = np.ones(STACK)
COUNT = 30
ACTIONS = 4
CLOSE = 1e-9
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


def unseen_outcomes(outcomes: int, count: int = 3000) -> Array:
    """Outcomes at random, a part of them near 0, with all corners and midpoints of edges."""
    rng = np.random.default_rng(99)
    inner = rng.random((count, outcomes)) ** rng.choice([1.0, 2.0], (count, 1))
    return np.concatenate([inner, list(itertools.product([0.0, 0.5, 1.0], repeat=outcomes))])


def greatest_audit(basis: ReducedBasis, losses: list[Loss], outcomes: Array) -> float:
    """Return the greatest error of a basis over losses, measured at outcomes."""
    return max(basis.audit(loss, outcomes) for loss in losses)


def optimal_error(table: Array, values: Array, cap: float) -> float:
    """Least sup-norm error by a program written out in full."""
    size, count = table.shape
    column_of_ones = np.ones((count, 1))
    sides = [
        np.hstack([sign * table.T, -sign * table.T, sign * column_of_ones, -column_of_ones])
        for sign in (1, -1)
    ]
    solution = linprog(
        np.append(np.zeros(2 * size + 1), 1.0),
        A_ub=np.vstack([*sides, np.append(np.ones(2 * size), [0.0, 0.0])]),
        b_ub=np.concatenate([values, -values, [cap]]),
        bounds=[(0, None)] * (2 * size) + [(None, None), (0, None)],
    )
    return float(solution.fun)


@pytest.mark.parametrize("seed", range(10))
def test_the_fit_is_the_optimum(seed: int) -> None:
    """With all points in the program; from one point on up to the slack that is let pass."""
    rng = np.random.default_rng(seed)
    table = rng.random((rng.integers(1, 6), rng.integers(3, 40)))
    cap = float(rng.choice([0.3, 1.0, 2.0, 50.0]))
    count = table.shape[1]
    on_all_points, on_growing_points = (
        SupNormFit(table, cap, working_indices=list(range(n))) for n in (count, 1)
    )
    for scale in (1.0, 0.03, 3.0):
        values = scale * rng.normal(size=count)
        min_error = optimal_error(table, values, cap)
        for fit in (on_all_points, on_growing_points):
            fitted_loss = fit(values)
            errors = np.abs(values - fitted_loss.offset - fitted_loss.weights @ table)
            assert fitted_loss.error == pytest.approx(errors.max(), abs=1e-12)
            assert np.abs(fitted_loss.weights).sum() <= cap * (1 + 1e-12)
        assert on_all_points(values).error == pytest.approx(min_error, abs=1e-8)
        assert (
            min_error - 1e-8
            <= on_growing_points(values).error
            <= max(SLACK * min_error, min_error + LEAST) + 1e-9
        )


def test_the_exact_basis_serves_constants_and_refuses_strangers() -> None:
    """Of stacks with twins within and between them, a constant action needs no function."""
    table = np.array([[[0.2, 0.8], [0.5, 0.5]], [[0.2, 0.8], [0.0, 0.0]]])
    knots = np.array([0.3, 0.6])[:, None]
    kinked = forms.Convex1D(np.ones((2, 2, 1)), knots, -0.5, offset=0.3, dimension=2)
    sums = forms.Linear(table, 0.25), forms.Linear(table[1], 0.25)
    basis = ExactLossesBasis([*sums, forms.MinimumOfRatios(table[0] + 0.1).normalised(), kinked])
    offset, weights = basis.coefficients(sums[1])
    assert offset == pytest.approx([0.25, 0.25])
    assert weights[1] == pytest.approx(np.zeros(6))
    for stranger in (forms.Linear([[0.3, 0.7]]), Leontief([[0.3, 0.7], [0.1, 0.9]])):
        with pytest.raises(ValueError, match="not among those"):
            basis.coefficients(stranger)
    with pytest.raises(ValueError, match="3 outcomes"):
        basis.coefficients(forms.Linear([[0.2, 0.8, 0.0]]))


@pytest.mark.parametrize(("outcomes", "error"), [(2, 0.1), (2, 0.03), (3, 0.1)])
def test_a_reduced_basis_keeps_its_promised_error(outcomes: int, error: float) -> None:
    """On the sample and on the unseen outcomes of the fit exactly, elsewhere nearly."""
    losses = population(1, outcomes)
    basis = ReducedBasis(losses, error=error)
    report = basis.report
    assert basis.error == max(report.sampled_error, report.unseen_error) <= error
    assert report.functions == 3 * COUNT * ACTIONS
    assert report.size == basis.size < report.functions / 4
    assert report.lipschitz == basis.lipschitz <= 1 + CLOSE
    assert report.cost == pytest.approx(basis.lipschitz * basis.size**0.5)
    assert greatest_audit(basis, losses, basis._sample) == pytest.approx(
        report.sampled_error, rel=1e-6
    )
    assert greatest_audit(basis, losses, unseen_outcomes(outcomes)) <= 1.3 * error
    for loss in losses:
        assert np.abs(basis.coefficients(loss)[1]).sum(-1).max() <= basis.lipschitz + CLOSE


@pytest.mark.parametrize("outcomes", [2, 3])
def test_fresh_agents_are_served_within_a_third_more(outcomes: int) -> None:
    """Agents of the same population that the fit never met."""
    basis = ReducedBasis(population(1, outcomes), error=0.1)
    for seed in (2, 3):
        fresh_agents = population(seed, outcomes, 10)
        assert greatest_audit(basis, fresh_agents, unseen_outcomes(outcomes)) <= 1.3 * 0.1
        assert (
            max(np.abs(basis.coefficients(loss)[1]).sum(-1).max() for loss in fresh_agents)
            <= 1 + CLOSE
        )


@pytest.mark.parametrize("error", [0.1, 0.03])
def test_the_certificate_is_above_what_is_measured(error: float) -> None:
    """For members and for agents that were not listed."""
    basis = ReducedBasis(population(1, 2), error=error)
    for loss in (*population(1, 2), *population(2, 2, 4)):
        assert basis.audit(loss, unseen_outcomes(2)) <= basis.certified_error(loss) <= 3 * error
    assert basis.certified_error(loss[3]) <= basis.certified_error(loss) + CLOSE


def test_a_search_that_is_remembered_is_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was fitted since; other functions, parts, promises and seeds are searched for."""
    memory: dict[Any, Any] = {}
    losses = population(1, 1, 3)
    y = unseen_outcomes(1, 50)
    strangers = population(2, 1, 1)
    split = [losses[0][:2], losses[0][2:], *losses[1:]]
    searches: list[tuple[list[Loss], dict[str, Any]]] = [(losses, {}), (losses, {})]
    searches += [(losses[::-1], {}), (losses[:2], {}), (split, {})]
    searches += [(losses, {"error": 0.25}), (losses, {"cap": 2.0}), (losses, {"seed": 1})]
    for count, (sample, keys) in enumerate(searches):
        fitted_bases = []
        for memories in (memory, {}):
            monkeypatch.setattr(reduced, "_remembered", memories)
            fitted_bases.append(ReducedBasis(sample, **({"error": 0.3} | keys)))
        remembered, fresh = fitted_bases
        assert len(memory) == max(count, 1)
        assert fresh.report == remembered.report
        for loss in (*strangers, *sample):
            pairs = zip(remembered.coefficients(loss), fresh.coefficients(loss), strict=True)
            assert all(np.array_equal(*pair) for pair in pairs)
        np.testing.assert_array_equal(remembered.transform(y), fresh.transform(y))


@pytest.mark.parametrize("seed", [20, 53, 59])
@pytest.mark.parametrize("error", [0.1, 3e-4, 1e-6])
def test_the_whole_population_keeps_any_promise(error: float, seed: int) -> None:
    """Every loss is its own linear form, so no promise is too small."""
    rng = np.random.default_rng(seed)
    agents = int(rng.integers(1, 5))
    actions = int(rng.integers(2, 5))
    for needs in rng.uniform(0.25, 1.0, (3, agents, actions, 2)):
        basis = ReducedBasis([Leontief(needs)], error=error)
        assert basis.error <= error
        assert basis.size <= agents * actions


def distances_to_points(y: Array) -> Array:
    """Losses of no form, with slopes of 1 at most."""
    return np.asarray(np.abs(y[:, None, None, :] - TWO).sum(-1) / 2)


FORMS: dict[str, Loss] = {
    "linear": forms.Linear(TWO - 0.5),
    "steep powers": forms.SeparablePower(-TWO, 0.3 * EACH),
    "distances": forms.SeparablePower(TWO, 1.7 * EACH, centre=TWO),
    "ces": forms.PowerOfSum(TWO, 2 * EACH, power=0.5 * EACH),
    "ces, negative": forms.PowerOfSum(TWO, -0.7 * EACH, power=-1.4 * EACH, floor=0.1 * EACH),
    "square": forms.PowerOfSum(TWO - 0.5, 2 * EACH, intercept=np.array(-0.2)),
    "cube": forms.PowerOfSum(TWO - 0.5, 3 * EACH, intercept=np.array(-0.1)),
    "cobb-douglas": forms.ExponentialOfSum(TWO / 2, power=0 * EACH, floor=0.1 * EACH),
    "cara": forms.ExponentialOfSum(-TWO),
    "leontief": forms.MinimumOfRatios(TWO),
    "leontief, one input": forms.MinimumOfRatios(TWO * [1.0, 0.0]),
    "convex": forms.Convex1D(FOUR, FOUR, slope=np.array(-1.0), coordinate=1, dimension=2),
    "any": forms.LipschitzLoss(distances_to_points, EACH, (STACK, CHOICES), 2),
}
# five functions with range [0, 1], all ascending in both coordinates
RISING: list[Loss] = [forms.Linear(np.eye(2)), forms.SeparablePower([[1.0, 0.0]], np.array(1.5))]
RISING += [forms.PowerOfSum([[0.5, 0.5]], np.array(2.0)), forms.MinimumOfRatios([[1.0, 1.0]])]
PLAIN = ExactLossesBasis(RISING)


def least_squares_forms(name: str) -> tuple[tuple[Any, ...], float]:
    """Return what is certified: losses by least squares; the greatest error on a fine grid."""
    loss = FORMS[name].normalised()
    design = np.column_stack([np.ones(len(GRID)), PLAIN.transform(GRID)])
    values = loss.losses(GRID).reshape(len(GRID), -1)
    table = np.linalg.lstsq(design, values, rcond=None)[0]
    coefficients = table.T.reshape(*loss.offset.shape, 6)
    arguments = loss, coefficients[..., 0], coefficients[..., 1:], PLAIN.enclosure, PLAIN.slopes
    return arguments, float(np.abs(design @ table - values).max())


@pytest.mark.parametrize("name", FORMS)
def test_a_certificate_encloses_the_error(name: str) -> None:
    """It is above what a fine grid finds, close to it, and what was met is below."""
    arguments, error = least_squares_forms(name)
    target = 1e-9 if name == "linear" else 0.02  # it has no error, and slopes cancel
    certified = certify(*arguments, target=target, tolerance=0.1, budget=3_000_000)
    assert (
        max(certified.lower, error)
        <= certified.upper
        <= max(1.1 * certified.lower, target) + ROUNDING
    )
    # the grid misses less than its modulus of continuity allows
    assert certified.lower <= error + 0.02


@pytest.mark.parametrize("budget", [1, 20_000, 100_000])
def test_a_certificate_holds_whatever_the_budget(budget: int) -> None:
    """Less effort makes it larger, never wrong, and is kept to after the first grid of 16 cells."""
    arguments, error = least_squares_forms("leontief")
    certified = certify(*arguments, cells=np.linspace(0, 1, 5) ** 2, budget=budget)
    assert certified.upper >= error
    of_first_grid = 16 * STACK * CHOICES
    assert of_first_grid <= certified.evaluations <= max(budget, of_first_grid)


@pytest.mark.parametrize("name", FORMS)
def test_slopes_of_a_loss_hold_all_its_difference_quotients(name: str) -> None:
    """Between two points of a box that differ in one coordinate, by the mean value theorem."""
    loss = FORMS[name]
    rng = np.random.default_rng(1)
    low, high = np.sort(rng.random((2, 60, 2)), axis=0)
    high[::3] = low[::3] + (high[::3] - low[::3]) / 50
    low[1::4] = 0.0
    min_slopes, max_slopes = loss.slopes(low, high)
    assert min_slopes.shape == max_slopes.shape == (60, STACK, CHOICES, 2)
    assert (min_slopes <= max_slopes).all()
    for j in range(2):
        first = low + (high - low) * rng.random((60, 2))
        second = first.copy()
        second[:, j] = low[:, j] + (high - low)[:, j] * rng.random(60)
        step = (second - first)[:, j, None, None]
        quotient = (loss.losses(second) - loss.losses(first)) / step
        assert (quotient >= min_slopes[..., j] - 1e-6).all()
        assert (quotient <= max_slopes[..., j] + 1e-6).all()


def test_nothing_is_claimed_without_a_bound() -> None:
    """Of a power about a centre in the box, and of a form that knows no slopes."""
    power = forms.SeparablePower([[1.0, 1.0]], np.array(0.3))
    for loss in (power, forms.Trade([[1.0, 1.0]], [[0.5, 0.5]])):
        min_slopes, max_slopes = loss.slopes(np.zeros((4, 2)), np.ones((4, 2)))
        assert min_slopes.shape == (4, 1, 2)
        assert (min_slopes <= -STEEPEST).all()
        assert (max_slopes >= STEEPEST).all()
