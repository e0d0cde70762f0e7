"""Powers, exact and interpolated, and direct sums."""

from __future__ import annotations

import numpy as np
import pytest

from regretless.agents.utilities.forms import CES
from regretless.forecaster.bases import DirectSumBasis, LinearBasis, PowerBasis
from regretless.market.losses.basis import Basis

# low, high, wanted error
RANGES = [
    (0.3, 0.9, 0.01),
    (0.2, 0.6, 0.05),
    (0.5, 2.0, 0.01),
    (1.0, 4.0, 0.02),
    (0.4, 0.6, 1e-6),
    (0.7, 0.7, 0.01),
]


def test_the_audit_is_the_greatest_distance() -> None:
    """The audit finds the error of a single loss at a single outcome."""
    basis = PowerBasis([0.5, 2.0], 1, exact=False)
    loss = CES([[1.0]], 1.0)
    # at exponent 1 the Lagrange weights of 0.5 and 2 are 2/3 and 1/3
    miss = 0.25 - (2 / 3 * 0.25**0.5 + 1 / 3 * 0.25**2)
    assert basis.audit(loss, [[0.25]]) == pytest.approx(abs(miss), abs=1e-14)
    assert basis.audit(loss, [[0.0], [0.25], [1.0]]) == pytest.approx(abs(miss), abs=1e-14)


@pytest.mark.parametrize(("low", "high", "error"), RANGES)
def test_covering_keeps_the_error_that_was_asked_for(low: float, high: float, error: float) -> None:
    """The declared error is the promise, with as few powers as the declaration allows."""
    basis = PowerBasis.covering(low, high, 2, error=error)
    assert 0 <= basis.error <= error
    assert basis.size == 2 * len(basis.exponents)
    assert (basis.exponents >= low).all()
    assert (basis.exponents <= high).all()


def test_covering_grows_with_the_promise_and_refuses_the_impossible() -> None:
    """Smaller errors take more powers, until too many."""
    sizes = [PowerBasis.covering(0.3, 0.9, 1, error=error).size for error in (0.1, 0.01, 0.001)]
    assert sizes == sorted(set(sizes))
    with pytest.raises(ValueError, match="more than 24 powers"):
        PowerBasis.covering(0.05, 3.0, 1, error=0.001)


@pytest.mark.parametrize("exponents", [[0.0, 0.5], [-0.5], [0.5, float("nan")]])
def test_powers_need_positive_exponents(exponents: list[float]) -> None:
    """A power of 0 or below does not map into [0, 1]."""
    with pytest.raises(ValueError, match="exponents must be positive"):
        PowerBasis(exponents, 2)


def test_a_listed_exponent_uses_its_own_power_alone() -> None:
    """At a node the coefficients are the weights, exactly, interpolated or not."""
    for exact in (True, False):
        basis = PowerBasis([0.5, 1.0, 2.0], 2, exact=exact)
        loss = CES([[[0.25, 0.75], [0.5, 0.5]]], [1.0])
        _, weights = basis.coefficients(loss)
        by_power = weights.reshape(2, 2, 3)
        assert np.array_equal(by_power[..., 1], loss.weights[0])
        assert np.array_equal(by_power[..., [0, 2]], np.zeros((2, 2, 2)))


@pytest.mark.parametrize("parts", [[], [LinearBasis(2), LinearBasis(3)]])
def test_parts_need_a_common_outcome(parts: list[Basis]) -> None:
    """Parts over different outcomes cannot stand side by side."""
    with pytest.raises(ValueError, match="same number of outcomes"):
        DirectSumBasis(parts)
