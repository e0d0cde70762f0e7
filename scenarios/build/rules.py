"""How a cohort responds: the rule of its file, its smoothness, and what the forecaster is told."""

from __future__ import annotations

from typing import Any

from regretless.agents.responses import COMPILED, Checked, ExpectedLoss, Response
from regretless.forecaster.events.bounds import recommended_eta
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.basis import Basis
from regretless.market.losses import Loss
from regretless.market.response import TIE
from regretless.scenarios.build.construct import construct
from regretless.scenarios.spec.cohort import CohortSpec


def response_of(spec: CohortSpec, basis: Basis, losses: Loss, *, rounds: int) -> Response:
    """Make a cohort's response rule.

    Parameters
    ----------
    spec : CohortSpec
    basis : Basis
        Of the block that the cohort hears; its error sets a recommended eta.
    losses : stack
        The cohort's distinct losses.
    rounds : int
        Length of the run, which a recommended eta uses.
    """
    eta = spec.eta
    if eta == "recommended":
        error = 0.0 if basis.hull == "simplex" else float(basis.certified_error(losses))
        eta = recommended_eta(spec.actions, error=error, rounds=rounds)
    given = {} if eta is None else {"eta": eta}
    where = f"response '{spec.response}' of cohort.{spec.name}"
    rule: Response = construct(where, register.response[spec.response], **given)
    if type(rule) in COMPILED:
        return rule
    if isinstance(rule, ExpectedLoss):
        raise UserError(f"{where}: a rule of your own hears no ensembles; use BestResponse's table")
    return Checked(rule)


def told(rule: Response) -> dict[str, Any]:
    """Return the fields of ``LossGroup`` that say how the losses' owners respond."""
    if isinstance(rule, Checked):
        return {"play": rule.play}
    tied = rule.name == "ensemble" and rule.eta is None
    return {"eta": rule.eta, "tie": TIE if tied else 0.0}
