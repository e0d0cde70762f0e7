"""Which basis serves which losses, and which theorem covers which cohort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from agents.cohort import Cohort
from agents.scripted import ScriptedCohort
from forecaster.bases import DirectSumBasis, LinearBasis, PowerBasis
from forecaster.bounds import draw_term
from forecaster.unbiased import UnbiasedPrediction
from market.errors import UserError
from market.losses import Loss, SeparablePower
from market.model import Guarantee
from market.round import Block

Array = NDArray[np.float64]

MOST_EXACT = 6  # distinct exponents that are listed one by one; more are interpolated
BASIS_ERROR = 0.01  # declared error of an interpolating power basis


def form_of(loss: Loss) -> str:
    """Name the block that serves a stack of losses."""
    assert isinstance(loss, SeparablePower)
    return "linear" if (loss.exponent == 1).all() else "power"


def direct_sum(losses: Sequence[Loss], outcomes: int) -> DirectSumBasis:
    """Direct sum of one basis per loss form, in the order in which the losses come."""
    exponents: dict[str, list[Array]] = {}
    for loss in losses:
        assert isinstance(loss, SeparablePower)
        exponents.setdefault(form_of(loss), []).append(loss.exponent)
    return DirectSumBasis(
        [
            LinearBasis(outcomes)
            if form == "linear"
            else power_basis(np.unique(np.concatenate(stacked)), outcomes)
            for form, stacked in exponents.items()
        ]
    )


def power_basis(exponents: Array, outcomes: int) -> PowerBasis:
    """Exact for a few exponents, interpolating for many."""
    if len(exponents) <= MOST_EXACT:
        return PowerBasis(exponents, outcomes)
    low, high = float(exponents[0]), float(exponents[-1])
    try:
        return PowerBasis.covering(low, high, outcomes, error=BASIS_ERROR)
    except ValueError as error:
        raise UserError(f"cohort parameters rho: {error}") from error


def guarantee(seat: Cohort | ScriptedCohort, block: Block, losses: int) -> Guarantee:
    """Say which theorem covers a cohort, with its bound; ``none`` where none does.

    Parameters
    ----------
    seat : cohort
    block : Block
        What it hears.
    losses : int
        Distinct losses of the whole run, for the union over all of them.
    """
    forecaster = block.forecaster
    if not isinstance(forecaster, UnbiasedPrediction) or not isinstance(seat, Cohort):
        return Guarantee()
    if seat.response.hears_label and (seat.response.eta is None or not block.basis.convex_image):
        return Guarantee()
    policies, actions = len(seat.policies), seat.loss.actions

    def bound() -> Array:
        expected = forecaster.bias_bound().regret(seat.coefficients[1], policies=policies)
        drawn = draw_term(forecaster.time, losses, actions=actions, comparators=actions + policies)
        return expected + drawn + 2 * block.basis.error + seat.gap()

    label = "smooth-decision-swap" if seat.response.hears_label else "decision-swap"
    return Guarantee(label, bound)
