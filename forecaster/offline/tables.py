"""What an estimator is given: tables and losses; and what it asks of a fit.

A policy is a fitted classifier or any other object with ``predict``, which is asked about the whole
table at once, or a callable, which is asked row by row: with the row as an array or, where the
table has column names, as a ``Context`` that also answers ``row["month"]``. Choose a policy on
other rows than those of ``fit``: otherwise the rows are no independent sample given the policies,
and no bound holds.

Losses are in the basis in which they are linear, on their net of actions. A loss that is asked for
plays the best response of its own linear form, or that of a listed loss whose form is within
``gamma``, for which a bound holds.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from regretless.forecaster.bases import default_basis
from regretless.forecaster.bases.of_losses import keys_of
from regretless.forecaster.events.cover import nearest
from regretless.forecaster.offline import continuous_actions as nets
from regretless.forecaster.offline.continuous_actions import ContinuousLoss
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis
from regretless.market.records import Context

SAME = 1e-12  # linear forms closer than this are equal
FEW = 24  # losses' actions that are a basis themselves
COARSE = 0.25  # net on which the size of a basis is found out
ROUNDING = 1e-9

AnyLoss = Loss | ContinuousLoss


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table as a predictor sees them, and what else is known of them in ``fit``."""

    features: Array  # (m, f)
    suggestions: Indices  # (m, C), the policies'
    outcomes: Any = None  # (m, d) in [0, 1]
    weights: Any = None  # (m,)
    groups: Any = None  # (m,)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> "Rows":
        own = {name: one[rows] for name, one in vars(self).items() if one is not None}
        return replace(self, **own)

    @property
    def joined(self) -> Array:
        """Features and suggestions (m, f + C)."""
        return np.concatenate([self.features, self.suggestions.astype(np.float64)], axis=1)

    @property
    def exchangeable(self) -> bool:
        """Whether neither groups nor weights say that the rows are not i.i.d. draws."""
        return self.groups is None and bool((self.weights == self.weights[0]).all())


@contextmanager
def refused_in_one_line() -> Iterator[None]:
    """Turn what scikit-learn refuses into a UserError."""
    try:
        yield
    except ValueError as error:
        raise UserError(" ".join(str(error).split())) from error


def checked_features(estimator: Any, X: Any, *, rows: int | None = None) -> Array:
    """Return the features (m, f), by scikit-learn's rules; None and [] are no features to fit."""
    if rows is not None and (X is None or (isinstance(X, list) and not X)):
        X = np.empty((rows, 0))  # noqa: N806 - scikit-learn's name
    own: Any = {"reset": rows is not None, "dtype": "float64", "ensure_min_features": 0}
    with refused_in_one_line():
        return np.asarray(validate_data(estimator, X, **own))


def _numbers(values: Any, name: str) -> Array:
    with refused_in_one_line():
        return np.asarray(check_array(values, ensure_2d=False, dtype="float64", input_name=name))


def checked_outcomes(Y: Any) -> Array:
    """Return outcomes (m, d) as numbers; a one-dimensional list is d = 1."""
    if Y is None:
        raise UserError("fit requires y to be passed, but the target y is None; give outcomes")
    table = _numbers(Y, "Y")
    return table.reshape(len(table), -1)


def checked_rows(estimator: Any, X: Any, Y: Any, sample_weight: Any, groups: Any) -> Rows:
    """Return the rows of ``fit``, nobody asked for suggestions yet and outcomes in their units."""
    outcomes = checked_outcomes(Y)
    features = checked_features(estimator, X, rows=len(outcomes))
    weights = np.ones(len(outcomes)) if sample_weight is None else sample_weight
    with refused_in_one_line():
        weights = _numbers(column_or_1d(weights), "sample_weight")
        named = None if groups is None else column_or_1d(groups)
        check_consistent_length(features, outcomes, weights, named)
    if (weights < 0).any() or not weights.any():
        raise UserError("sample_weight: give numbers of at least 0, not all zero")
    if named is not None and (named == named[0]).all():
        raise UserError("groups: all rows are in one group; give at least two, or leave groups out")
    return Rows(features, np.empty((len(features), 0), np.intp), outcomes, weights, named)


def ends_of(given: Any, outcomes: Array) -> Array:
    """Return the numbers (d, 2) that become 0 and 1: ``given``, the estimator's ``ends``.

    None takes the least and the greatest outcome, and 0 and 1 for a column in [0, 1].
    """
    if given is not None:
        pairs = np.asarray(given, dtype=np.float64)
        fine = pairs.shape == (outcomes.shape[1], 2) and np.isfinite(pairs).all()
        if not (fine and (pairs[:, 0] != pairs[:, 1]).all()):
            raise UserError(f"ends = {given!r}: give a low and a high for each outcome")
        return pairs
    low, high = outcomes.min(0), outcomes.max(0)
    inside = (low >= 0) & (high <= 1)
    low = np.where(inside, 0.0, low)
    return np.stack([low, np.where(inside | (high == low), low + 1.0, high)], axis=1)


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


@dataclass(frozen=True, eq=False)
class Choice:
    """How a loss plays: by the best response of a linear form (A,), (A, n)."""

    offset: Array
    weights: Array
    place: tuple[int, int] | None  # stack and row of the listed loss; None for its own form
    apart: float  # how far that loss is at most


class Listed:
    """The protected losses of an estimator, about outcomes (m, d); UserError if none fit.

    ``stacks`` are distinct within a stack; ``offsets`` (K, A) and ``weights`` (K, A, n) are those
    of each in the ``basis``. ``net`` (N, m) has the points that are continuous actions, and
    ``steepest`` is the greatest Lipschitz constant in the action, 0 without a net.
    """

    def __init__(self, estimator: Any, outcomes: Array) -> None:
        losses, count = as_list(estimator.losses), outcomes.shape[1]
        for loss in losses:
            if loss.outcomes != count:
                raise UserError(f"Y has {count} outcomes, a loss has {loss.outcomes}; use as many")
        moving = [loss for loss in losses if isinstance(loss, ContinuousLoss)]

        def basis_of(finite: Any) -> Basis:
            return estimator.basis or default_basis(finite, error=estimator.delta, listed=FEW)

        self.net: Array | None = None
        finite: Any = losses
        if moving:  # the theorem's theta where none is given; constants are checked
            dimension, theta = moving[0].dimension, estimator.theta
            if any(loss.dimension != dimension for loss in moving):
                raise UserError("losses have actions of several dimensions; fit them apart")
            for loss in moving:
                loss.check(estimator.random_state or 0)
            if theta is None:
                basis = basis_of([own.on(nets.theta_net(COARSE, dimension)) for own in moving])
                size: Any = {"size": basis.size, "lipschitz": basis.lipschitz}
                theta = nets.theorem_theta(**size, rounds=len(outcomes), dimension=dimension)
            net = self.net = nets.theta_net(theta, dimension)
            finite = [loss.on(net) for loss in moving]
        self.basis = basis_of(finite)
        stacks = [unique_losses(loss if loss.stack else loss.as_stack())[0] for loss in finite]
        try:
            tables = [self.basis.coefficients(stack) for stack in stacks]
        except ValueError as reason:
            kind = type(self.basis).__name__
            raise UserError(f"basis {kind}: {reason}; leave basis out") from reason
        self.stacks: tuple[Loss, ...] = tuple(stacks)
        self.offsets = tuple(np.ascontiguousarray(offset) for offset, _ in tables)
        self.weights = tuple(np.ascontiguousarray(weights) for _, weights in tables)
        self.steepest = max((loss.constant for loss in moving), default=0.0)

    @property
    def singles(self) -> list[Loss]:
        """All K losses, one by one."""
        return [stack[k] for stack in self.stacks for k in range(len(stack))]

    def values(self, outcomes: Array) -> list[Array]:
        """Losses (m, K, A) of each stack at outcomes (m, d); UserError where one leaves [0, 1]."""
        tables = [stack.losses(outcomes) for stack in self.stacks]
        if not all(((t >= -ROUNDING) & (t <= 1 + ROUNDING)).all() for t in tables):
            raise UserError("losses leave [0, 1] at these outcomes; use loss.normalised()")
        return tables

    def suggested(self, policies: Sequence[Any], X: Any, rows: int) -> Indices:
        """Ask every policy about every row, once: actions (m, C), rounded to the net; UserError."""
        actions = {offset.shape[1] for offset in self.offsets}
        if policies and self.net is None and len(actions) > 1:
            raise UserError("policies need losses with one number of actions; fit them apart")
        table, columns = np.empty((rows, 0)) if X is None else X, []
        names = getattr(X, "columns", None)
        for policy in policies:
            if hasattr(policy, "predict"):
                answers = policy.predict(table)
            elif names is None:
                answers = [policy(row) for row in np.asarray(table)]
            else:
                titles, values = tuple(map(str, names)), np.asarray(table, dtype=np.float64)
                answers = [policy(Context(titles, row)) for row in values]
            if self.net is not None:
                columns.append(nets.snap(answers, self.net))
                continue
            name = getattr(policy, "__name__", type(policy).__name__)
            try:
                numbers = np.asarray(answers, dtype=np.float64).reshape(rows)
            except (TypeError, ValueError) as error:
                raise UserError(f"policy {name}: give one action per row") from error
            fine = (numbers >= 0) & (numbers < max(actions)) & (numbers % 1 == 0)
            if not fine.all():
                told = f"policy {name} suggests {numbers[~fine][0]:g}"
                raise UserError(f"{told}; actions are 0 to {max(actions) - 1}")
            columns.append(numbers.astype(np.intp))
        return np.array(columns, dtype=np.intp).reshape(len(policies), rows).T

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

    def choose(self, loss: Loss, gamma: float) -> Choice:
        """Find out how a single loss plays; UserError if the basis does not span it."""
        try:
            offset, weights = self.basis.coefficients(loss)
        except ValueError as reason:
            raise UserError(f"the fitted basis does not serve this loss: {reason}") from reason
        best, place = np.inf, (0, 0)
        for s, (offsets, tables) in enumerate(zip(self.offsets, self.weights, strict=True)):
            if offsets.shape[1] == loss.actions:
                own = {"kept_offset": offsets, "kept_weights": tables}
                cover = nearest(offset[None], weights[None], **own)
                if cover.radius[0] < best:
                    best, place = float(cover.radius[0]), (s, int(cover.representative_of[0]))
        if best > max(gamma, SAME):
            return Choice(offset, weights, None, np.inf)
        (s, k), apart = place, 0.0
        if not same(loss, self.stacks[s][k]):
            errors = [self.basis.certified_error(x.as_stack()) for x in (loss, self.stacks[s][k])]
            apart = best + float(sum(errors))
        return Choice(self.offsets[s][k], self.weights[s][k], place, apart)


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
