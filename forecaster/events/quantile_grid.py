r"""Quantiles that are announced: the best responses of pinball losses on a grid of values.

With m ``steps`` the values of a coordinate are theta_i = i / m, i = 0..m, in units of its scale. Of
an outcome y let z be the least of them that is not below y. The pinball loss at level q,

    l(i, y) = q max(z - theta_i, 0) + (1 - q) max(theta_i - z, 0),
    l(i + 1, y) - l(i, y) = (1[y <= theta_i] - q) / m,

is linear in the indicators s_j = 1[y <= theta_j]. Its best response to a prediction p of these, the
lowest where several are, therefore has

    p_i >= q    and    p_(i - 1) < q,

with p_m = 1 and p_(-1) = 0, whatever p is: it is the q-quantile of the forecast, rounded up to the
grid. What is promised of it is in ``events.coverage_events`` and docs/theory.md, 19.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief
from regretless.market.core.validation import numbers

DEFAULT_STEPS = 40  # of the grid of each outcome, from end to end of its scale
MAX_STEPS = 1_000
MAX_LEVELS = 20


@dataclass(frozen=True)
class QuantileGrid:
    """The levels whose quantiles are announced of every outcome, and the values that they have.

    The losses are numbered coordinate by coordinate, and within a coordinate level by level.
    """

    levels: tuple[float, ...]
    outcomes: int
    steps: int = DEFAULT_STEPS  # m

    @property
    def n_losses(self) -> int:
        """How many quantiles are announced in a round."""
        return self.outcomes * len(self.levels)

    @property
    def n_values(self) -> int:
        """How many values a quantile can have."""
        return self.steps + 1

    @property
    def events_shape(self) -> tuple[int, int, int]:
        """The shape (K, 2, m + 2) of what is kept of coverage.

        By loss; at the value or below it; over all rounds, and by announced value.
        """
        return self.n_losses, 2, 1 + self.n_values

    @property
    def unit_values(self) -> Array:
        """The values (m + 1,) in [0, 1]."""
        return np.arange(self.n_values) / self.steps

    @property
    def coordinate_of_loss(self) -> Indices:
        """The outcome of each loss (K,)."""
        return np.repeat(np.arange(self.outcomes), len(self.levels))

    @property
    def level_of_loss(self) -> Array:
        """The level of each loss (K,)."""
        return np.tile(np.array(self.levels), self.outcomes)

    def protected(self, size: int, first_indicators: Indices) -> ProtectedLosses:
        """Return the pinball losses as the forecaster protects them: values are their actions.

        They are linear in ``size`` statistics, among which the m indicators of each loss's outcome
        begin at ``first_indicators`` (K,).
        """
        offset = np.zeros((self.n_losses, self.n_values))
        weights = np.zeros((self.n_losses, self.n_values, size))
        # z - theta_i adds up 1 - s_j over j >= i, and theta_i - z adds up s_j over j < i.
        value_index = np.arange(self.n_values)[:, np.newaxis]
        is_below_value = np.arange(self.steps) < value_index  # (m + 1, m)
        for k, level in enumerate(self.level_of_loss):
            first = int(first_indicators[k])
            slopes = np.where(is_below_value, 1 - level, -level) / self.steps
            weights[k, :, first : first + self.steps] = slopes
            offset[k] = level * (self.steps - value_index[:, 0]) / self.steps
        return ProtectedLosses(offset, weights)


def checked_levels(name: str, levels: object) -> tuple[float, ...]:
    """Return the levels of quantiles in ascending order; UserError unless all are between 0 and 1.

    None, or an empty list, is no level.
    """
    if levels is None:
        return ()
    cure = f"give at most {MAX_LEVELS} different numbers between 0 and 1, such as [0.05, 0.95]"
    fault = f"{name} = {brief(levels)}: {cure}"
    if isinstance(levels, str) or not isinstance(levels, Sequence | np.ndarray):
        raise UserError(fault)
    if not len(levels):
        return ()
    try:
        given = numbers(name, list(levels))
    except UserError as error:
        raise UserError(fault) from error
    distinct = np.unique(given)
    is_fine = given.ndim == 1 and len(distinct) == len(given) <= MAX_LEVELS
    if not is_fine or not (distinct[0] > 0 and distinct[-1] < 1):
        raise UserError(fault)
    return tuple(distinct.tolist())
