"""Which losses are protected, and how any loss plays: by itself or as the listed one near it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.forecaster.events.cover import nearest
from regretless.forecaster.omniprediction import nets
from regretless.forecaster.omniprediction.fitting import Listed
from regretless.forecaster.omniprediction.nets import ContinuousLoss
from regretless.forecaster.omniprediction.spans import default_basis
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss

AnyLoss = Loss | ContinuousLoss

SAME = 1e-12  # linear forms closer than this are equal
COARSE = 0.25  # net on which the size of a basis is found out


@dataclass(frozen=True)
class Position:
    """Where a loss stands in the list."""

    stack: int
    row: int


@dataclass(frozen=True, eq=False)
class Choice:
    """How a loss plays.

    Parameters
    ----------
    offset, weights : array (A,), (A, n)
        It plays the best response of this linear form.
    place : Position or None
        The listed loss that stands for it; None where no theorem covers it.
    apart : float
        Bound on its distance from that loss, 0 for a listed one.
    """

    offset: Array
    weights: Array
    place: Position | None
    apart: float


def as_list(losses: Any) -> list[AnyLoss]:
    """Return the losses of the constructor; UserError where one is of another kind."""
    if isinstance(losses, Loss | ContinuousLoss):
        return [losses]
    if not isinstance(losses, Sequence):
        raise UserError(f"losses is a {type(losses).__name__}; give a list of losses")
    given = list(losses)
    if not given:
        raise UserError("losses is empty; list at least one loss to protect")
    for loss in given:
        if not isinstance(loss, Loss | ContinuousLoss):
            raise UserError(f"losses holds a {type(loss).__name__}; give forms of market.losses")
    kinds = {isinstance(loss, ContinuousLoss) for loss in given}
    if len(kinds) > 1:
        raise UserError("losses mix finite and continuous actions; fit them apart")
    return given


def steepest(losses: Any) -> float:
    """Return the greatest Lipschitz constant in the action."""
    return max(loss.constant for loss in as_list(losses) if isinstance(loss, ContinuousLoss))


def listing(estimator: Any, outcomes: Array) -> tuple[Listed, Array | None]:
    """Write an estimator's losses in their basis, on a net where actions are continuous.

    Parameters
    ----------
    outcomes : array (m, d)
    """
    losses = as_list(estimator.losses)
    for loss in losses:
        if loss.outcomes != outcomes.shape[1]:
            raise UserError(
                f"Y has {outcomes.shape[1]} outcomes, a loss has {loss.outcomes}; give it as many"
            )
    moving = [loss for loss in losses if isinstance(loss, ContinuousLoss)]
    net = chosen_net(estimator, moving, len(outcomes)) if moving else None
    own = [on_net(loss, net) if isinstance(loss, ContinuousLoss) else loss for loss in losses]
    basis = estimator.basis
    return Listed.of(own, default_basis(own, estimator.delta) if basis is None else basis), net


def chosen_net(estimator: Any, losses: Sequence[ContinuousLoss], rounds: int) -> Array:
    """Return the net, with the theorem's theta where none is given; constants are checked."""
    dimension, theta, basis = losses[0].dimension, estimator.theta, estimator.basis
    if any(loss.dimension != dimension for loss in losses):
        raise UserError("losses have actions of several dimensions; fit them apart")
    for loss in losses:
        loss.checked(estimator.random_state or 0)
    if theta is None:
        coarse = [loss.on(nets.theta_net(COARSE, dimension)) for loss in losses]
        basis = default_basis(coarse, estimator.delta) if basis is None else basis
        theta = nets.theorem_theta(
            size=basis.size, lipschitz=basis.lipschitz, rounds=rounds, dimension=dimension
        )
    return nets.theta_net(theta, dimension)


def on_net(loss: AnyLoss, net: Array | None) -> Loss:
    """Return a single loss of finitely many actions; UserError where it does not fit the model."""
    if isinstance(loss, ContinuousLoss):
        if net is None:
            raise UserError("a loss has continuous actions, the fitted ones do not; fit again")
        if loss.dimension != net.shape[1]:
            raise UserError(f"the actions of this model have {net.shape[1]} coordinates")
        return loss.on(net)
    if loss.stack:
        raise UserError("loss is a stack of losses; give one of them, such as loss[0]")
    return loss


def choose(listed: Listed, loss: Loss, *, gamma: float) -> Choice:
    """Find out how a loss plays.

    Parameters
    ----------
    loss : single Loss
    gamma : float
        How near a listed loss has to be to stand for it.

    Raises
    ------
    UserError
        If the basis does not span the loss.
    """
    try:
        offset, weights = listed.basis.coefficients(loss)
    except ValueError as reason:
        raise UserError(f"the fitted basis does not serve this loss: {reason}") from reason
    best, at = np.inf, None
    for s, (offsets, tables) in enumerate(zip(listed.offsets, listed.weights, strict=True)):
        if offsets.shape[1] != loss.actions:
            continue
        cover = nearest(offset[None], weights[None], kept_offset=offsets, kept_weights=tables)
        if cover.radius[0] < best:
            best, at = float(cover.radius[0]), Position(s, int(cover.served[0]))
    if at is None or best > max(gamma, SAME):
        return Choice(offset, weights, None, np.inf)
    served, apart = listed.stacks[at.stack][at.row], 0.0
    if not _same(loss, served):
        errors = [listed.basis.certified_error(own.as_stack()) for own in (loss, served)]
        apart = best + float(sum(errors))
    return Choice(listed.offsets[at.stack][at.row], listed.weights[at.stack][at.row], at, apart)


def is_listed(listed: Listed, loss: Loss) -> bool:
    """Whether a single loss is one of the listed ones."""
    return any(_same(loss, other) for other in listed.singles)


def _same(loss: Loss, other: Loss) -> bool:
    """Whether two single losses are equal functions of the outcome, action by action."""
    if loss.identity != other.identity:
        return False
    ours, theirs = loss.rows(), other.rows()
    return ours.shape == theirs.shape and bool((ours == theirs).all())
