"""What an estimator is given: tables and losses; and what it asks of a fit.

Features, outcomes, weights and groups are checked, policies are asked about the rows. A policy is a
fitted classifier or any other object with ``predict``, which is asked about the whole table at
once, or a callable, which is asked row by row: with the row as an array or, where the table has
column names, as a ``Context`` that also answers ``row["month"]``. Choose a policy on other rows
than those of ``fit``: otherwise the rows are no independent sample given the policies, and no bound
holds.

**Losses** are in the basis in which they are linear, on their net of actions. A loss that is asked
for plays the best response of its own linear form, or that of a listed loss whose form is within
``gamma``, for which a bound holds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from regretless.forecaster.bases import default_basis
from regretless.forecaster.bases.of_losses import keys_of
from regretless.forecaster.events.cover import nearest
from regretless.forecaster.offline import continuous_actions as nets
from regretless.forecaster.offline.certificate import BatchBound, Measure
from regretless.forecaster.offline.continuous_actions import ContinuousLoss, snap
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis
from regretless.market.records import Context, Mixture

SAME = 1e-12  # linear forms closer than this are equal
FEW = 24  # losses' actions that are a basis themselves
COARSE = 0.25  # net on which the size of a basis is found out
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Seen:
    """What a predictor sees of some rows: features (m, f) and the policies' suggestions (m, C)."""

    features: Array
    suggestions: Indices

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> "Seen":
        return Seen(self.features[rows], self.suggestions[rows])

    @property
    def joined(self) -> Array:
        """Features and suggestions (m, f + C)."""
        return np.concatenate([self.features, self.suggestions.astype(np.float64)], axis=1)


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows with their outcomes (m, d) in [0, 1], weights (m,) and groups (m,) or None."""

    seen: Seen
    outcomes: Array
    weights: Array
    groups: Any = None

    def __getitem__(self, rows: Mask | Indices) -> "Examples":
        groups = None if self.groups is None else self.groups[rows]
        return Examples(self.seen[rows], self.outcomes[rows], self.weights[rows], groups)

    @property
    def exchangeable(self) -> bool:
        """Whether neither groups nor weights say that the rows are not i.i.d. draws."""
        return self.groups is None and bool((self.weights == self.weights[0]).all())


def checked_features(estimator: Any, X: Any, *, rows: int | None = None) -> Array:
    """Return the features (m, f), by scikit-learn's rules; None and [] are no features."""
    fitting = rows is not None
    if fitting and (X is None or (isinstance(X, list) and not X)):
        X = np.empty((rows, 0))  # noqa: N806 - scikit-learn's name
    try:
        given: Array = validate_data(
            estimator, X, reset=fitting, dtype="float64", ensure_min_features=0
        )
    except ValueError as error:
        raise UserError(f"X: {' '.join(str(error).split())}") from error
    if fitting and len(given) != rows:
        raise UserError(f"X has {len(given)} rows and Y {rows}; give as many")
    return given


def checked_outcomes(Y: Any) -> Array:
    """Return outcomes (m, d) as numbers; a one-dimensional list is d = 1, UserError for others."""
    if Y is None:
        raise UserError("fit requires y to be passed, but the target y is None; give outcomes")
    try:
        table = check_array(Y, ensure_2d=False, dtype="float64", input_name="Y")
    except ValueError as error:
        raise UserError(f"Y: {' '.join(str(error).split())}") from error
    return np.asarray(table.reshape(len(table), -1))


def checked_rows(sample_weight: Any, groups: Any, rows: int) -> tuple[Array, Any]:
    """Return ``sample_weight`` (m,), ones if it is None, and ``groups`` (m,) or None.

    UserError where they do not fit the rows, or say nothing of them.
    """
    weights = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, np.float64)
    fine = weights.shape == (rows,) and np.isfinite(weights).all()
    if not (fine and (weights >= 0).all() and weights.any()):
        raise UserError("sample_weight: give one number of at least 0 for each row, not all zero")
    if groups is None:
        return weights, None
    named = np.asarray(groups)
    if named.shape != (rows,):
        raise UserError(f"groups has shape {named.shape} and Y {rows} rows; give one each")
    if (named == named[0]).all():
        raise UserError("groups: all rows are in one group; give at least two, or leave groups out")
    return weights, named


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


def suggested(
    policies: Sequence[Any], X: Any, rows: int, *, actions: int | None, net: Array | None = None
) -> Indices:
    """Ask every policy about every row, once: actions (m, C), rounded to a net where there is one.

    UserError if a policy suggests what is no action; ``actions`` is None where losses have
    different numbers of them.
    """
    if policies and net is None and actions is None:
        raise UserError("policies need losses with one number of actions; fit them apart")
    columns = []
    for policy in policies:
        answers = _answers(policy, X, rows)
        if net is not None:
            columns.append(snap(answers, net))
            continue
        name = getattr(policy, "__name__", type(policy).__name__)
        try:
            numbers = np.asarray(answers, dtype=np.float64).reshape(rows)
        except (TypeError, ValueError) as error:
            raise UserError(f"policy {name}: give one action per row") from error
        fine = (numbers >= 0) & (numbers < (actions or 0)) & (numbers % 1 == 0)
        if not fine.all():
            told = f"policy {name} suggests {numbers[~fine][0]:g}"
            raise UserError(f"{told}; actions are 0 to {(actions or 0) - 1}")
        columns.append(numbers.astype(np.intp))
    return np.array(columns, dtype=np.intp).reshape(len(policies), rows).T


def _answers(policy: Any, X: Any, rows: int) -> Any:
    table = np.empty((rows, 0)) if X is None else X
    if hasattr(policy, "predict"):
        return np.asarray(policy.predict(table))
    values, names = np.asarray(table), getattr(X, "columns", None)
    if names is None:
        return np.array([policy(row) for row in values])
    columns = tuple(str(name) for name in names)
    return np.array([policy(Context(columns, row)) for row in values.astype(np.float64)])


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


AnyLoss = Loss | ContinuousLoss


@dataclass(frozen=True, eq=False)
class Choice:
    """How a loss plays: by the best response of a linear form (A,), (A, n)."""

    offset: Array
    weights: Array
    place: tuple[int, int] | None  # stack and row of the listed loss; None for its own form
    apart: float  # how far that loss is at most


class Listed:
    """The protected losses of an estimator, which outcomes (m, d) are about; UserError if none fit.

    ``stacks`` are distinct within a stack, with values in [0, 1]; ``offsets`` (K, A) and
    ``weights`` (K, A, n) are those of each in the ``basis``. ``net`` (N, m) has the points that are
    actions, where these are continuous, and ``steepest`` is the greatest Lipschitz constant in the
    action, 0 without a net.
    """

    def __init__(self, estimator: Any, outcomes: Array) -> None:
        losses = as_list(estimator.losses)
        for loss in losses:
            if loss.outcomes != outcomes.shape[1]:
                count = outcomes.shape[1]
                raise UserError(f"Y has {count} outcomes, a loss has {loss.outcomes}; use as many")
        moving = [loss for loss in losses if isinstance(loss, ContinuousLoss)]
        self.net = _net(estimator, moving, len(outcomes)) if moving else None
        finite: Any = losses if self.net is None else [loss.on(self.net) for loss in moving]
        fitting = estimator.basis or default_basis(finite, error=estimator.delta, listed=FEW)
        self.basis: Basis = fitting
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
        forms = enumerate(zip(self.offsets, self.weights, strict=True))
        return [Choice(r0[k], r[k], (s, k), 0.0) for s, (r0, r) in forms for k in range(len(r))]

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
    return keys_of(loss.as_stack()) == keys_of(other.as_stack())


class Fit(ABC):
    """A predictor of s(y) that was learned from a table, of so many ``rounds``: rows that count."""

    listed: Listed
    rounds: int

    @abstractmethod
    def mixtures(self, seen: Seen) -> tuple[Indices, list[Mixture]]:
        """Return the prediction for each row: its place (m,) in a list of mixtures."""

    @abstractmethod
    def play(self, loss: Loss, seen: Seen, *, gamma: float = 0.0) -> tuple[Array, Array]:
        """Return the mixed strategies (m, A) of a single loss and the losses (m,) it expects."""

    @abstractmethod
    def outcomes(self, seen: Seen) -> Array:
        """Forecast the outcome (m, d), in [0, 1]."""

    def mean(self, seen: Seen) -> Array:
        """Return the mean prediction (m, n)."""
        place, mixtures = self.mixtures(seen)
        return np.array([mixture.mean for mixture in mixtures])[place]

    def quantiles(self, seen: Seen, levels: Sequence[float]) -> Array:
        """Return quantiles (m, d, levels) of the outcome, in [0, 1]."""
        raise UserError("base = 'none' has no distribution of outcomes; fit with base='auto'")

    def alternatives(self, loss: Loss, seen: Seen) -> Indices:
        """Return the actions (B, m) of comparators beside the constants and the policies."""
        return np.empty((0, len(seen)), dtype=np.intp)

    def theorem(
        self, choice: Choice, measure: Measure, *, kappa: float, net: float
    ) -> BatchBound | None:
        """Bound the regret on fresh examples of a listed loss, with the error of a net; or None."""
        return None

    def online_bound(self, choice: Choice) -> float | None:
        """Bound a listed loss's expected regret in the online run, from the run's certificates."""
        return None
