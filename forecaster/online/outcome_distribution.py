r"""One round's forecast in the units of its users, as a distribution of outcomes.

The broadcast statistics p of s(y) are all that the losses need. Of the outcome itself they leave
much open. The distribution is the one with E s(y) = p that is nearest, in relative entropy, to the
empirical one

    y ~ mean forecast + a past forecast error, each of the last rounds alike,

with the weight of a few rounds on an even grid of all outcomes. Of prior weights v_i it has
w_i ~ v_i exp(lambda . s(y_i)), with lambda from a convex program in n numbers,

    min over lambda of  ln sum_i v_i exp(lambda . (s(y_i) - p)) + (rho / 2) |lambda|^2,

solved by Newton steps (Csiszar 1975, Annals of Probability 3(1), doi:10.1214/aop/1176996454).
The ridge rho keeps it solvable where p is no mean of these outcomes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from regretless.market.best_response import best_response
from regretless.market.core.arrays import Array
from regretless.market.core.validation import check_name, check_probability
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.losses.outcome_spaces import Box
from regretless.market.records import Policy

RIDGE = 1e-4  # rho
GRADIENT_TOLERANCE = 1e-8  # of the gradient


@dataclass(frozen=True, eq=False)
class Task:
    """A loss that a forecast serves."""

    loss: Loss  # single, over the unit cube, in [0, 1], with the map to its own units
    actions: Sequence[Any]  # what they are called, or the quantities that they are
    offset: Array  # (A,), (A, n): its coefficients in the basis
    weights: Array
    policies: Sequence[Policy] = ()  # what its owner could have followed

    def expected(self, statistics: Array) -> Array:
        """Losses (A,) in [0, 1] that statistics (n,) make expect."""
        return np.asarray(self.offset + self.weights @ statistics)

    def in_units(self, loss: float) -> float:
        """Turn a loss in [0, 1] into the utility's own units."""
        return float(self.loss.unit_offset + self.loss.unit_scale * loss)


@dataclass(frozen=True, eq=False, repr=False)
class OnlineForecast:
    """What is broadcast before a round; shown as means, with the 5 % and 95 % quantiles."""

    statistics: Array  # (n,), the prediction of s(y)
    likely: Array  # (m, d), outcomes of the unit cube
    prior: Array  # (m,), their weights before the statistics count
    names: Sequence[str]  # of the outcomes
    space: Box  # outcomes in the user's units
    basis: Basis
    tasks: Mapping[str, Task]

    def __repr__(self) -> str:
        means = self.weights @ self.outcomes
        lows, highs = self._at([0.05, 0.95])
        parts = []
        for name, mean, low, high in zip(self.names, means, lows, highs, strict=True):
            parts.append(f"{name} {mean:.4g} ({low:.4g} to {high:.4g})")
        return f"<OnlineForecast: {', '.join(parts)}>"

    @cached_property
    def outcomes(self) -> Array:
        """Outcomes (m, d) in the user's units."""
        return self.space.from_unit(self.likely)

    @cached_property
    def weights(self) -> Array:
        """Probabilities (m,) of the outcomes."""
        return tilted(self.basis.transform(self.likely) - self.statistics, self.prior)

    @property
    def mean(self) -> Any:
        """Mean outcome: a number, or by name where there are several."""
        return self._by_name(self.weights @ self.outcomes)

    def quantile(self, q: float) -> Any:
        """Return the q-quantile of each outcome, q in (0, 1): a number, or by name."""
        return self._by_name(self._at(check_probability("q", q)))

    def act(self, name: str) -> Any:
        """Return the best action of a loss, by its name or quantity."""
        task = self._task(name)
        return task.actions[int(best_response(task.expected(self.statistics)))]

    def loss(self, name: str) -> float:
        """Return what a loss expects of its best action, in its own units."""
        task = self._task(name)
        return task.in_units(float(task.expected(self.statistics).min()))

    def _at(self, q: Any) -> Array:
        """Return quantiles of every outcome (d,), or (levels, d) of several levels."""
        quantiles = np.quantile(
            self.outcomes, q, axis=0, weights=self.weights, method="inverted_cdf"
        )
        return np.asarray(quantiles)

    def _task(self, name: str) -> Task:
        return self.tasks[check_name("loss", name, self.tasks)]

    def _by_name(self, values: Array) -> Any:
        """Return the number of a single outcome, or the numbers (d,) by outcome's name."""
        """Return the number of a single outcome, or the numbers (d,) by outcome's name."""
        if len(self.names) == 1:
            return float(values[0])
        return dict(zip(self.names, values.tolist(), strict=True))


def tilted(gaps: Array, prior: Array) -> Array:
    """Return the weights (m,) nearest to prior ones with which gaps (m, n) have mean 0.

    Examples
    --------
    >>> tilted(np.array([[-1.0], [0.0], [2.0]]), np.full(3, 1 / 3)).round(3)
    array([0.436, 0.346, 0.218])
    """
    log_prior = np.log(prior / prior.sum())
    size = gaps.shape[1]

    def tilted_weights(tilt: Array) -> tuple[float, Array]:
        exponents = log_prior + gaps @ tilt
        total = float(np.logaddexp.reduce(exponents))
        return total, np.exp(exponents - total)

    def objective(tilt: Array) -> tuple[float, Array]:
        total, weights = tilted_weights(tilt)
        return total + RIDGE / 2 * float(tilt @ tilt), weights @ gaps + RIDGE * tilt

    def hessian(tilt: Array) -> Array:
        _, weights = tilted_weights(tilt)
        centred = gaps - weights @ gaps
        return np.asarray(centred.T @ (weights[:, None] * centred) + RIDGE * np.eye(size))

    solution = minimize(
        objective,
        np.zeros(size),
        jac=True,
        hess=hessian,
        method="trust-exact",
        options={"gtol": GRADIENT_TOLERANCE},
    )
    _, weights = tilted_weights(solution.x)
    return np.asarray(weights / weights.sum())
