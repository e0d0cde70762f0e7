"""The losses that are protected, in the basis in which they are linear, on their net of actions.

A loss that is asked for plays the best response of its own linear form, or that of a listed loss
whose form is within ``gamma``, for which a bound holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.forecaster.bases.default import default_basis
from regretless.forecaster.events.cover import nearest
from regretless.forecaster.offline import continuous_actions as nets
from regretless.forecaster.offline.continuous_actions import ContinuousLoss
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis

AnyLoss = Loss | ContinuousLoss

SAME = 1e-12  # linear forms closer than this are equal
FEW = 24  # losses' actions that are a basis themselves
COARSE = 0.25  # net on which the size of a basis is found out
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Choice:
    """How a loss plays: by the best response of a linear form (A,), (A, n)."""

    offset: Array
    weights: Array
    place: tuple[int, int] | None  # stack and row of the listed loss; None for its own form
    apart: float  # how far that loss is at most


@dataclass(frozen=True, eq=False)
class Listed:
    """The protected losses."""

    basis: Basis
    stacks: tuple[Loss, ...]  # distinct within a stack, with values in [0, 1]
    offsets: tuple[Array, ...]  # (K, A) for each stack
    weights: tuple[Array, ...]  # (K, A, n)
    net: Array | None  # (N, m), the points that are actions, where these are continuous
    steepest: float  # greatest Lipschitz constant in the action, 0 without a net

    @classmethod
    def of(cls, estimator: Any, outcomes: Array) -> "Listed":
        """List an estimator's losses, which outcomes (m, d) are about; UserError if none fit."""
        losses = as_list(estimator.losses)
        for loss in losses:
            if loss.outcomes != outcomes.shape[1]:
                count = outcomes.shape[1]
                raise UserError(f"Y has {count} outcomes, a loss has {loss.outcomes}; use as many")
        moving = [loss for loss in losses if isinstance(loss, ContinuousLoss)]
        net = _net(estimator, moving, len(outcomes)) if moving else None
        finite: Any = losses if net is None else [loss.on(net) for loss in moving]
        basis = estimator.basis or default_basis(finite, error=estimator.delta, listed=FEW)
        stacks = [unique_losses(loss if loss.stack else loss.as_stack())[0] for loss in finite]
        try:
            tables = [basis.coefficients(stack) for stack in stacks]
        except ValueError as reason:
            raise UserError(f"basis {type(basis).__name__}: {reason}; leave basis out") from reason
        offsets, weights = zip(*tables, strict=True)
        plain = tuple(map(np.ascontiguousarray, offsets)), tuple(map(np.ascontiguousarray, weights))
        steepest = max((loss.constant for loss in moving), default=0.0)
        return cls(basis, tuple(stacks), *plain, net, steepest)

    @property
    def count(self) -> int:
        """Number of distinct losses, K."""
        return sum(len(offset) for offset in self.offsets)

    @property
    def singles(self) -> list[Loss]:
        """All losses, one by one."""
        return [stack[k] for stack in self.stacks for k in range(len(stack))]

    @property
    def choices(self) -> list[Choice]:
        """How each of them plays."""
        return [
            Choice(offset[k], weights[k], (s, k), 0.0)
            for s, (offset, weights) in enumerate(zip(self.offsets, self.weights, strict=True))
            for k in range(len(offset))
        ]

    @property
    def actions(self) -> int | None:
        """Number of actions A, None where stacks differ."""
        counts = {offset.shape[1] for offset in self.offsets}
        return counts.pop() if len(counts) == 1 else None

    def values(self, outcomes: Array) -> list[Array]:
        """Losses (m, K, A) of each stack at outcomes (m, d); UserError where one leaves [0, 1]."""
        tables = [stack.losses(outcomes) for stack in self.stacks]
        if not all(((t >= -ROUNDING) & (t <= 1 + ROUNDING)).all() for t in tables):
            raise UserError("losses leave [0, 1] at these outcomes; use loss.normalised()")
        return tables

    def finite(self, loss: AnyLoss) -> Loss:
        """Return a single loss of finitely many actions; UserError where it does not fit."""
        if isinstance(loss, ContinuousLoss):
            if self.net is None:
                raise UserError("a loss has continuous actions, the fitted ones do not; fit again")
            if loss.dimension != self.net.shape[1]:
                raise UserError(f"the actions of this model have {self.net.shape[1]} coordinates")
            return loss.on(self.net)
        if loss.stack:
            raise UserError("loss is a stack of losses; give one of them, such as loss[0]")
        return loss

    def holds(self, loss: Loss) -> bool:
        """Whether a single loss is one of the listed ones."""
        return any(_same(loss, other) for other in self.singles)

    def choose(self, loss: Loss, gamma: float) -> Choice:
        """Find out how a single loss plays; UserError if the basis does not span it."""
        try:
            offset, weights = self.basis.coefficients(loss)
        except ValueError as reason:
            raise UserError(f"the fitted basis does not serve this loss: {reason}") from reason
        near = []
        for s, (offsets, tables) in enumerate(zip(self.offsets, self.weights, strict=True)):
            if offsets.shape[1] == loss.actions:
                own = {"kept_offset": offsets, "kept_weights": tables}
                cover = nearest(offset[None], weights[None], **own)
                near.append((float(cover.radius[0]), s, int(cover.representative_of[0])))
        best, s, k = min(near, default=(np.inf, 0, 0))
        if best > max(gamma, SAME):
            return Choice(offset, weights, None, np.inf)
        listed, apart = self.stacks[s][k], 0.0
        if not _same(loss, listed):
            errors = [self.basis.certified_error(own.as_stack()) for own in (loss, listed)]
            apart = best + float(sum(errors))
        return Choice(self.offsets[s][k], self.weights[s][k], (s, k), apart)


def as_list(losses: Any) -> list[AnyLoss]:
    """Return the losses of the constructor; UserError where one is of another kind."""
    if isinstance(losses, Loss | ContinuousLoss):
        return [losses]
    if not isinstance(losses, Sequence):
        raise UserError(f"losses is a {type(losses).__name__}; give a list of losses")
    if not losses:
        raise UserError("losses is empty; list at least one loss to protect")
    for loss in losses:
        if not isinstance(loss, Loss | ContinuousLoss):
            raise UserError(f"losses holds a {type(loss).__name__}; give forms of market.losses")
    if len({isinstance(loss, ContinuousLoss) for loss in losses}) > 1:
        raise UserError("losses mix finite and continuous actions; fit them apart")
    return list(losses)


def _net(estimator: Any, losses: Sequence[ContinuousLoss], rounds: int) -> Array:
    """Return the net, with the theorem's theta where none is given; constants are checked."""
    dimension, theta = losses[0].dimension, estimator.theta
    if any(loss.dimension != dimension for loss in losses):
        raise UserError("losses have actions of several dimensions; fit them apart")
    for loss in losses:
        loss.check(estimator.random_state or 0)
    if theta is None:
        coarse = [loss.on(nets.theta_net(COARSE, dimension)) for loss in losses]
        basis = estimator.basis or default_basis(coarse, error=estimator.delta, listed=FEW)
        size: Any = {"size": basis.size, "lipschitz": basis.lipschitz}
        theta = nets.theorem_theta(**size, rounds=rounds, dimension=dimension)
    return nets.theta_net(theta, dimension)


def _same(loss: Loss, other: Loss) -> bool:
    """Whether two single losses are equal functions of the outcome, action by action."""
    if loss.identity != other.identity:
        return False
    ours, theirs = loss.rows(), other.rows()
    return ours.shape == theirs.shape and bool((ours == theirs).all())
