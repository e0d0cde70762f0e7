"""Bases of polynomials and monomials: what each declares is measured."""

import itertools
import math

import numpy as np
import pytest
from families import targets
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import iv

from regretless.forecaster.bases.multisets import (
    ChebyshevExponentialBasis,
    MonomialBasis,
    TaylorExponentialBasis,
)
from regretless.forecaster.bases.polynomial import BernsteinBasis, PowerBasis
from regretless.market.losses import ExponentialOfSum, PowerOfSum, SeparablePower


@pytest.mark.parametrize(("outcomes", "degree"), [(1, 1), (3, 2), (3, 4), (2, 5), (5, 16)])
def test_lambda_of_the_papers_targets(outcomes: int, degree: int) -> None:
    """Of sum_j (a_j - y_j)^p: d in Bernstein polynomials, d (2^p - 1) in powers, met at a = 1."""
    inner = np.random.default_rng(7).random((200, outcomes))
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=outcomes)))
    centre = corners if degree % 2 else np.concatenate([inner, corners])
    sign = np.where(centre == 0, (-1.0) ** degree, 1.0)
    losses = SeparablePower(sign, np.array(float(degree)), centre=centre)
    for basis in (BernsteinBasis(outcomes, degree), PowerBasis.binomial(degree, outcomes)):
        sums_of_each = np.abs(basis.coefficients(losses)[1]).sum(-1)
        assert sums_of_each.max() == pytest.approx(basis.lipschitz, rel=1e-12)
        assert basis.error == 0
    assert BernsteinBasis(outcomes, degree).lipschitz == outcomes


@pytest.mark.parametrize("degree", [1, 2, 4, 7, 16])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_normalised_targets_need_at_most_the_degree(degree: int, seed: int) -> None:
    """In Bernstein polynomials; an even power about 1/2 needs all of it."""
    basis = BernsteinBasis(2, degree)
    losses = targets(degree, 2)(np.random.default_rng(seed), 30)
    assert np.abs(basis.coefficients(losses)[1]).sum(-1).max() <= degree + 1e-9
    if degree % 2 == 0:
        centred = SeparablePower([[1.0, 0.0]], np.array(float(degree)), centre=np.array(0.5))
        most = np.abs(basis.coefficients(centred.normalised())[1]).sum()
        assert most == pytest.approx(degree)


@pytest.mark.parametrize(("outcomes", "degree", "homogeneous"), [(3, 2, True), (2, 5, False)])
def test_lambda_of_the_papers_sums(outcomes: int, degree: int, *, homogeneous: bool) -> None:
    """1 for A = 1 and absolute weights that add up to 1: bound and reached."""
    basis = MonomialBasis(outcomes, degree, power=0.5, homogeneous=homogeneous)
    weights = np.random.default_rng(3).normal(size=(50, 4, outcomes))
    weights /= np.abs(weights).sum(-1, keepdims=True)
    losses = PowerOfSum(weights, np.array(degree), np.array(0.5))
    assert np.abs(basis.coefficients(losses)[1]).sum(-1) == pytest.approx(np.ones((50, 4)))
    assert basis.lipschitz == 1


def test_published_figures_of_the_exponential() -> None:
    """Sizes and constants at reach 1 and floor 0.01, for three and five outcomes."""
    three, five = (TaylorExponentialBasis(d, reach=1, error=0.1) for d in (3, 5))
    assert (three.size, five.size, three.degree) == (454, 6187, 12)
    assert three.lipschitz == pytest.approx(98.9, abs=0.05)
    kinds = TaylorExponentialBasis, ChebyshevExponentialBasis
    assert [kind(1, reach=1, error=0.01).degree for kind in kinds] == [14, 4]
    rough = [ChebyshevExponentialBasis(d, reach=1, error=0.1) for d in (3, 5)]
    fine = [ChebyshevExponentialBasis(d, reach=1, error=0.01) for d in (3, 5)]
    assert [basis.size for basis in (*rough, *fine)] == [9, 20, 34, 125]
    assert [basis.lipschitz for basis in rough] == pytest.approx([1.529, 1.583], abs=1e-3)


@pytest.mark.parametrize(
    ("outcomes", "given"),
    [
        (3, {"reach": 1.0, "error": 0.1}),
        (2, {"reach": 3.0, "error": 1e-6}),
        (2, {"reach": 4.0, "error": 0.01, "power": 1.0, "floor": 0.0}),
        (2, {"reach": 1.0, "error": 0.01, "power": -1.0, "floor": 0.1}),
        (2, {"reach": 0.1, "error": 0.1}),
    ],
)
def test_chebyshevs_declarations_are_the_worst(outcomes: int, given: dict[str, float]) -> None:
    """Equal weights of every size: error and lambda are bounds on another grid, and reached."""
    basis = ChebyshevExponentialBasis(outcomes, **given)
    sizes = np.linspace(1e-3, 1, 1777)[:, None, None] * basis.reach / basis.outcomes
    weights = np.ones((1777, 1, basis.outcomes)) * sizes
    function = np.full(1777, basis.power), np.full(1777, basis.floor)
    equal = ExponentialOfSum(weights, *function).normalised()
    totals = np.abs(basis.coefficients(equal)[1]).sum(-1)
    assert basis.lipschitz - 1e-5 <= totals.max() <= basis.lipschitz * (1 + 1e-9)
    ends = np.stack([np.zeros(basis.outcomes), np.ones(basis.outcomes)])
    assert basis.audit(equal, ends) == pytest.approx(basis.error, rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 4, 9])
def test_chebyshevs_error_rises_with_the_half_width(degree: int) -> None:
    """So the greatest is at the end of the reach; from the remainder at u = 1, not the tail."""
    widths = np.linspace(0.3, 12, 4000)
    kept = iv(0, widths) + 2 * sum(iv(j, widths) for j in range(1, degree + 1))
    errors = (np.exp(widths) - kept) / (2 * np.sinh(widths))
    assert (np.diff(errors) > -1e-14).all()
    reach = 2 * widths[-1] / math.log(100)
    for share in (1.0, 0.5, 0.2):
        at = np.interp(share * widths[-1], widths, errors)
        basis = ChebyshevExponentialBasis(1, reach=share * reach, error=at + 1e-6)
        assert basis.degree <= degree
        if basis.degree == degree:
            assert basis.error == pytest.approx(at, abs=1e-6)
    assert ChebyshevExponentialBasis(1, reach=reach, error=errors[-1] + 1e-6).degree == degree
