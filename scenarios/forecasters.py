"""From the [forecaster] table of a scenario to one forecaster per block."""

from __future__ import annotations

from collections.abc import Sequence

from forecaster.protected import LossGroup
from forecaster.unbiased import UnbiasedPrediction
from market import register
from market.basis import Basis
from market.errors import UserError, closest
from market.roles import Forecaster
from scenarios.construct import construct
from scenarios.spec import ForecasterSpec


def make_forecaster(
    spec: ForecasterSpec, basis: Basis, groups: Sequence[LossGroup], *, rounds: int
) -> Forecaster:
    """Make the forecaster of a block.

    Parameters
    ----------
    spec : ForecasterSpec
    basis : Basis
        What it predicts.
    groups : sequence of LossGroup
        The losses of the cohorts that hear it.
    rounds : int
        Length of the run, which the exponential rate may use.

    Raises
    ------
    UserError
        If the kind is unknown or a parameter does not fit it.
    """
    if spec.kind == "decision-swap":
        if spec.parameters:
            unknown = next(iter(spec.parameters))
            known = ["kind", "weights", "base"]
            raise UserError(f"unknown key 'forecaster.{unknown}'; {closest(unknown, known)}")
        return UnbiasedPrediction(groups, weights=spec.weights, horizon=rounds, hull=basis.hull)
    where = f"forecaster '{spec.kind}'"
    if spec.kind not in register.forecaster:
        known = ["decision-swap", *register.forecaster.names()]
        raise UserError(f"unknown {where}; {closest(spec.kind, known)}")
    maker = register.forecaster[spec.kind]
    baseline: Forecaster = construct(where, maker, basis.size, **spec.parameters)
    return baseline
