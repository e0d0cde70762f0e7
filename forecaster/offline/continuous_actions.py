r"""Continuous actions: losses that are Lipschitz in an action of [0, 1]^m, played on a net.

**Net.** A theta-net of [0, 1]^m has a point within theta of every point, in sup norm. k points per
axis at (i + 1/2) / k have radius 1 / (2 k), so k = ceil(1 / (2 theta)) per axis suffice. (Multiples
of theta, as the paper has it, are 2^m times as many.)

**Error.** Let |l(a, y) - l(b, y)| <= L ||a - b||_inf. A policy into [0, 1]^m that is rounded to the
net loses at most L theta more. Decision swap regret against policies into [0, 1]^m is therefore at
most L theta above that on the net (Lu, Roth, Shi, arXiv:2502.12564, continuous action spaces).

**Choice.** The bound on the net is of the order lambda theta^(-3 m / 2) sqrt(n / T). With L theta
the sum is of least order at theta = (lambda^2 n / T)^(1 / (3 m + 2)). This ignores constants: a
finer net is often better.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, grid_points
from regretless.market.core.errors import UserError, brief
from regretless.market.core.randomness import stream
from regretless.market.core.validation import check_int, check_probability
from regretless.market.losses import Convex1D, LipschitzLoss, Loss, SeparablePower

MAX_POINTS = 20_000
MAX_DIMENSIONS = 14  # at which a net of two points an axis is within that
MIN_THETA = 1e-100
CHECKED_ACTIONS = 2000  # pairs of actions on which a declared constant is checked
ROUNDING = 1e-9


def theta_net(theta: float, dimension: int = 1) -> Array:
    """Return a theta-net of the cube in sup norm: points (N, m), lexicographic, at most 20,000."""
    is_number = isinstance(theta, int | float | np.number) and not isinstance(theta, bool)
    if not is_number or not MIN_THETA <= theta < math.inf:
        raise UserError(f"theta = {brief(theta)}: give a positive number, such as 0.05")
    check_int("dimension", dimension, least=1, below=MAX_DIMENSIONS + 1)
    cells = max(math.ceil(1 / (2 * theta) - ROUNDING), 1)
    if cells**dimension > MAX_POINTS:
        raise UserError(f"theta = {theta}: {cells}^{dimension} actions are too many; raise theta")
    ticks = (np.arange(cells) + 0.5) / cells
    return np.asarray(grid_points(ticks, dimension))


def radius(net: Array) -> float:
    """Return the theta of a net: half of its spacing."""
    return 1 / (2 * round(float(len(net) ** (1 / net.shape[1]))))


def snap(points: ArrayLike, net: Array) -> Indices:
    """Return the index (T,) of the nearest point of a net for points (T, m); UserError outside."""
    actions = np.asarray(points, dtype=np.float64).reshape(len(np.asarray(points)), -1)
    if actions.shape[1] != net.shape[1] or not ((actions >= 0) & (actions <= 1)).all():
        raise UserError(f"a policy must suggest points of [0, 1]^{net.shape[1]}; clip its output")
    cells = round(1 / (2 * radius(net)))  # per axis
    cell_of_action = np.minimum(np.floor(actions * cells), cells - 1).astype(np.intp)
    shape = (cells,) * net.shape[1]
    return np.asarray(np.ravel_multi_index(tuple(cell_of_action.T), shape), dtype=np.intp)


def theorem_theta(*, size: int, lipschitz: float, rounds: int, dimension: int = 1) -> float:
    """Return the theorem's theta (lambda^2 n / T)^(1 / (3 m + 2)), at most 1/2."""
    return float(min(0.5, (lipschitz**2 * size / rounds) ** (1 / (3 * dimension + 2))))


class ContinuousLoss(ABC):
    """A loss l(a, y) in [0, 1] of an action in [0, 1]^m, Lipschitz in the action."""

    dimension: int  # coordinates of an action, m
    outcomes: int  # coordinates of an outcome, d
    constant: float  # L: |l(a, y) - l(b, y)| <= L ||a - b||_inf

    @abstractmethod
    def on(self, net: Array) -> Loss:
        """Return the loss whose actions are the points (N, m) of a net."""

    def check(self, seed: int = 0) -> None:
        """Compare the declared constant and range with a sample; UserError where they are wrong."""
        rng = stream(seed, "net", "check")
        actions = rng.random((CHECKED_ACTIONS // 2, self.dimension))
        neighbours = np.clip(actions + rng.uniform(-0.01, 0.01, actions.shape), 0.0, 1.0)
        outcomes = rng.random((16, self.outcomes))
        losses = self.on(np.concatenate([actions, neighbours])).losses(outcomes)
        if not ((losses >= -ROUNDING) & (losses <= 1 + ROUNDING)).all():
            raise UserError(f"{type(self).__name__}: its values leave [0, 1]; scale the loss")
        losses_of_actions, losses_of_neighbours = np.split(losses, 2, axis=1)
        next_actions = np.roll(actions, 1, axis=0)
        losses_of_next = np.roll(losses_of_actions, 1, axis=1)
        for others, losses_of_others in (
            (neighbours, losses_of_neighbours),
            (next_actions, losses_of_next),
        ):
            changes = np.abs(losses_of_actions - losses_of_others) - ROUNDING
            slopes = changes / np.abs(actions - others).max(1)
            if slopes.max() > self.constant:
                raise UserError(
                    f"{type(self).__name__}: constant = {self.constant:g}, but between two actions "
                    f"the loss has slope {slopes.max():.4g}; declare at least that"
                )


@dataclass(frozen=True)
class SquaredError(ContinuousLoss):
    """The mean over coordinates of (a_j - y_j)^2: a forecast of the mean, m = d = ``outcomes``."""

    outcomes: int = 1
    constant = 2.0

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """As many coordinates as the outcome has."""
        return self.outcomes

    def on(self, net: Array) -> SeparablePower:
        weights = np.full(net.shape, 1 / self.outcomes)
        return SeparablePower(weights, np.array(2.0), centre=net)


@dataclass(frozen=True)
class Pinball(ContinuousLoss):
    """The pinball loss of a forecast of a quantile, divided by its greatest value.

    ``level (y_j - a)`` above the forecast and ``(1 - level) (a - y_j)`` below, for ``level`` in
    (0, 1), j the ``coordinate`` from 0 and ``outcomes`` coordinates; 1/2 is absolute error.
    """

    level: float
    coordinate: int = 0
    outcomes: int = 1
    dimension = 1
    constant = 1.0  # after the division

    def __post_init__(self) -> None:
        check_probability("level", self.level)
        check_int("outcomes", self.outcomes, least=1)
        check_int("coordinate", self.coordinate, least=0, below=self.outcomes)

    def on(self, net: Array) -> Convex1D:
        under = self.level
        over = 1 - self.level
        scale = max(under, over)
        return Convex1D(
            kinks=np.full((len(net), 1), 1 / scale),
            knots=net,
            slope=np.full(len(net), -over / scale),
            offset=over / scale * net[:, 0],
            coordinate=self.coordinate,
            dimension=self.outcomes,
        )


@dataclass(frozen=True)
class Restricted:
    """A function on a net, given by its bytes and shape; equal where both are: bases know it."""

    function: Callable[[Array, Array], Any]
    points: bytes
    shape: tuple[int, ...]

    def __call__(self, y: Array) -> Array:
        net = np.frombuffer(self.points).reshape(self.shape)
        return np.asarray(self.function(net, y), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ActionLoss(ContinuousLoss):
    """Any loss of a continuous action, as a function. A model with one cannot be saved."""

    function: Callable[[Array, Array], Any]  # actions (N, m), outcomes (T, d) to losses (T, N)
    constant: float  # L in the action, in sup norm; it is checked on a sample
    outcome_constant: float  # the same in the outcome; it is believed
    dimension: int = 1  # m
    outcomes: int = 1  # d

    def on(self, net: Array) -> LipschitzLoss:
        function = Restricted(self.function, net.tobytes(), net.shape)
        return LipschitzLoss(function, np.array(self.outcome_constant), (len(net),), self.outcomes)
