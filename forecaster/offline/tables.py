"""What an estimator is given: tables, policies and losses.

A policy is a fitted classifier or any other object with ``predict``, which is asked about the whole
table at once, or a callable, which is asked row by row: with the row as an array or, where the
table has column names, as a ``Context`` that also answers ``row["month"]``. Choose a policy on
other rows than those of ``fit``: otherwise the rows are no independent sample given the policies,
and no bound holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from regretless.forecaster.bases.default import default_basis
from regretless.forecaster.bases.exact import keys_of
from regretless.forecaster.offline import continuous_actions as nets
from regretless.forecaster.offline.continuous_actions import ContinuousLoss
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief
from regretless.market.core.validation import numbers, refused_in_one_line
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis, checked_basis
from regretless.market.records import Context

MAX_EXACT_LOSSES = 24  # losses' actions that are a basis themselves
COARSE_NET = 0.25  # net on which the size of a basis is found out
ROUNDING = 1e-9

AnyLoss = Loss | ContinuousLoss


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the table that ``fit`` is given."""

    seen: Array  # (m, f + C), features and then the suggestions of policies
    outcomes: Array  # (m, d) in [0, 1]
    weights: Array  # (m,)
    groups: Any = None  # (m,)

    def __getitem__(self, rows: Any) -> "Rows":
        groups = None
        if self.groups is not None:
            groups = self.groups[rows]
        return Rows(self.seen[rows], self.outcomes[rows], self.weights[rows], groups)

    @property
    def exchangeable(self) -> bool:
        """Whether neither groups nor weights say that the rows are not i.i.d. draws."""
        return self.groups is None and bool((self.weights == self.weights[0]).all())


def checked_outcomes(y: Any) -> Array:
    """Return outcomes (m, d) as numbers; a one-dimensional list is d = 1."""
    with refused_in_one_line():
        table = check_array(y, ensure_2d=False, dtype="float64", input_name="y")
    return np.asarray(table).reshape(len(table), -1)


def ends_of(ends: Any, outcomes: Array) -> Array:
    """Return the numbers (d, 2) that become 0 and 1, of the estimator's ``ends``.

    None takes the least and the greatest outcome, and 0 and 1 for a column in [0, 1].
    """
    if ends is not None:
        pairs = numbers("ends", ends)
        if pairs.shape != (outcomes.shape[1], 2) or (pairs[:, 0] == pairs[:, 1]).any():
            raise UserError(f"ends = {brief(ends)}: give a low and a high for each outcome")
        return pairs
    low = outcomes.min(0)
    high = outcomes.max(0)
    is_in_unit_interval = (low >= 0) & (high <= 1)
    low = np.where(is_in_unit_interval, 0.0, low)
    high = np.where(is_in_unit_interval | (high == low), low + 1.0, high)
    return np.stack([low, high], axis=1)


def scaled(outcomes: Array, ends: Array) -> Array:
    """Map outcomes (m, d) into [0, 1]; values beyond the ends are clipped."""
    low, high = ends.T
    return np.asarray(np.clip((outcomes - low) / (high - low), 0.0, 1.0))


@dataclass(frozen=True)
class Threshold:
    """The policy with one action where feature ``column`` is below ``at``, else another."""

    column: int
    at: float
    below: int
    above: int

    def predict(self, X: ArrayLike) -> Indices:
        """Suggest an action for each row of a table (m, f): (m,)."""
        values = np.asarray(X, dtype=np.float64)[:, self.column]
        return np.where(values >= self.at, self.above, self.below).astype(np.intp)


class Listed:
    """The protected losses of an estimator, about outcomes (m, d); UserError if none fit.

    They are in the ``basis`` in which they are linear: ``stacks``, distinct within a stack, have
    ``forms``, offset (K, A) and weights (K, A, n). ``net`` (N, m) has the points that are
    continuous actions; ``steepest`` is the greatest Lipschitz constant in the action, 0 without.
    """

    def __init__(self, estimator: Any, outcomes: Array) -> None:
        losses = as_list(estimator.losses)
        if estimator.basis is not None:
            checked_basis(estimator.basis)
        self.outcomes = outcomes.shape[1]
        for loss in losses:
            if loss.outcomes != outcomes.shape[1]:
                fault = f"y has {outcomes.shape[1]} outcomes, a loss has {loss.outcomes}"
                raise UserError(f"{fault}; use as many")
        continuous = [loss for loss in losses if isinstance(loss, ContinuousLoss)]
        finite: Any = losses

        def basis_of(finite: Any) -> Basis:
            return estimator.basis or default_basis(
                finite, error=estimator.delta, listed=MAX_EXACT_LOSSES
            )

        self.net: Array | None = None
        if continuous:  # the theorem's theta where none is given; constants are checked
            dimension = continuous[0].dimension
            theta = estimator.theta
            if any(loss.dimension != dimension for loss in continuous):
                raise UserError("losses have actions of several dimensions; fit them apart")
            for loss in continuous:
                loss.check(estimator.random_state or 0)
            if theta is None:
                coarse_net = nets.theta_net(COARSE_NET, dimension)
                basis = basis_of([loss.on(coarse_net) for loss in continuous])
                theta = nets.theorem_theta(
                    size=basis.size,
                    lipschitz=basis.lipschitz,
                    rounds=len(outcomes),
                    dimension=dimension,
                )
            net = nets.theta_net(theta, dimension)
            self.net = net
            finite = [loss.on(net) for loss in continuous]
        self.steepest = max((loss.constant for loss in continuous), default=0.0)
        self.basis = basis_of(finite)
        self.stacks = [unique_losses(loss if loss.stack else loss.as_stack())[0] for loss in finite]
        try:
            forms = [self.basis.coefficients(stack) for stack in self.stacks]
        except ValueError as reason:
            kind = type(self.basis).__name__
            raise UserError(f"basis {kind}: {reason}; leave basis out") from reason
        self.forms = []
        for offset, weights in forms:
            self.forms.append((np.ascontiguousarray(offset), np.ascontiguousarray(weights)))

    @property
    def single_losses(self) -> list[Loss]:
        """All K losses, one by one."""
        return [stack[k] for stack in self.stacks for k in range(len(stack))]

    def values(self, outcomes: Array) -> list[Array]:
        """Losses (m, K, A) of each stack at outcomes (m, d); UserError where one leaves [0, 1]."""
        tables = [stack.losses(outcomes) for stack in self.stacks]
        for table in tables:
            if ((table >= -ROUNDING) & (table <= 1 + ROUNDING)).all():
                continue
            raise UserError("losses leave [0, 1] at these outcomes; use loss.normalised()")
        return tables

    def inputs(self, policies: Sequence[Any], X: Any, features: Array) -> Array:
        """Join the features (m, f) of a table X and every policy's suggestions: (m, f + C).

        Each policy is asked once; points are rounded to the net. UserError if one is no action.
        """
        check_policies(policies)
        actions = {stack.actions for stack in self.stacks}
        if policies and self.net is None and len(actions) > 1:
            raise UserError("policies need losses with one number of actions; fit them apart")
        rows: Any = features
        columns: list[Any] = [features]
        if hasattr(X, "columns"):
            column_names = tuple(map(str, X.columns))
            rows = [Context(column_names, row) for row in features]
        for policy in policies:
            if hasattr(policy, "predict"):
                answers = policy.predict(X)
            else:
                answers = [policy(row) for row in rows]
            if self.net is not None:
                columns.append(nets.snap(answers, self.net)[:, None])
                continue
            name = getattr(policy, "__name__", type(policy).__name__)
            try:
                suggestions = np.asarray(answers, dtype=np.float64).reshape(len(features), 1)
            except (TypeError, ValueError) as error:
                raise UserError(f"policy {name}: give one action per row") from error
            is_action = (suggestions >= 0) & (suggestions < max(actions)) & (suggestions % 1 == 0)
            if not is_action.all():
                fault = f"policy {name} suggests {suggestions[~is_action][0]:g}"
                raise UserError(f"{fault}; actions are 0 to {max(actions) - 1}")
            columns.append(suggestions)
        return np.hstack(columns)

    def finite(self, loss: AnyLoss) -> Loss:
        """Return a single loss of finitely many actions; UserError where it does not fit."""
        if not isinstance(loss, AnyLoss):
            raise UserError(f"loss = {brief(loss)}: give a single loss of market.losses")
        if isinstance(loss, ContinuousLoss):
            # the net (N, m) has the points that stand for all continuous actions
            if self.net is None or loss.dimension != self.net.shape[1]:
                fault = "the fitted losses have no such continuous actions"
                raise UserError(f"{fault}; fit again with it")
            self._check_outcomes(loss)
            return loss.on(self.net)
        if loss.stack:
            raise UserError("loss is a stack of losses; give one of them, such as loss[0]")
        self._check_outcomes(loss)
        return loss

    def _check_outcomes(self, loss: AnyLoss) -> None:
        if loss.outcomes != self.outcomes:
            fault = f"loss is of {loss.outcomes} outcomes, the fitted ones are of {self.outcomes}"
            raise UserError(f"{fault}; give one of as many")


def check_policies(policies: Any) -> None:
    """Raise UserError unless policies are a list of what can be asked for actions."""
    if not isinstance(policies, list | tuple):
        raise UserError(f"policies = {brief(policies)}: give a list of them")
    for policy in policies:
        method = getattr(policy, "predict", policy)
        if isinstance(policy, type) or not callable(method):
            hint = "give a function of a row, or an object with predict"
            raise UserError(f"policies holds {brief(policy)}: {hint}")


def as_list(losses: Any) -> list[AnyLoss]:
    """Return the losses of the constructor; UserError where one is of another kind."""
    listed = list(losses) if isinstance(losses, list | tuple) else [losses]
    if not listed:
        raise UserError("losses is empty; list at least one loss to protect")
    for loss in listed:
        if not isinstance(loss, AnyLoss):
            raise UserError(f"losses holds a {type(loss).__name__}; give forms of market.losses")
    if len({isinstance(loss, ContinuousLoss) for loss in listed}) > 1:
        raise UserError("losses mix finite and continuous actions; fit them apart")
    return listed


def same(loss: Loss, other: Loss) -> bool:
    """Whether two single losses are equal functions of the outcome, action by action."""
    return keys_of(loss.as_stack()) == keys_of(other.as_stack())
