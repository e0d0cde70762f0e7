r"""How often outcomes were below the quantiles that were announced, and what is promised of that.

``AnnouncedQuantiles`` turns a prediction into quantiles, and ``CoverageRecord`` counts. Over the
rounds so far, or those in which one value theta_a was announced, with D the step of the grid,

    coverage  = share of outcomes  <= theta_a          >=  q - bound,
    below     = share of outcomes  <= theta_a - D      <=  q + bound_below,

and coverage differs from q + overshoot by at most the bound, where overshoot is by how much the
forecast's own probability of an outcome up to theta_a exceeds q: much only at atoms, or where
the grid is coarse. The bounds are those of ``events.coverage_events``.
"""

from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless.forecaster.bases.indicators import ROUNDING, WithIndicators
from regretless.forecaster.events.coverage_events import AT, BELOW
from regretless.forecaster.events.loss_table import LossTable
from regretless.forecaster.events.quantile_grid import QuantileGrid
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.losses.outcome_spaces import Box


class AnnouncedQuantiles:
    """The quantiles that are announced of a prediction, in the user's units.

    Parameters
    ----------
    grid : QuantileGrid
    basis : WithIndicators
        With the grid's thresholds.
    space : Box
        The outcomes in the user's units.
    """

    def __init__(self, grid: QuantileGrid, basis: WithIndicators, space: Box) -> None:
        self.grid = grid
        self.space = space
        coordinates = grid.coordinate_of_loss
        self.first_indicators = np.array([basis.first_indicator(int(j)) for j in coordinates])
        self.group = grid.protected(basis.size, self.first_indicators)
        # alone in a table, the losses have the best responses that they have beside others
        self._rows = LossTable([self.group])

    def value_indices(self, statistics: Array) -> Indices:
        """Return which value is announced of each loss (K,), given the statistics (n,)."""
        return self._rows.best_responses(statistics[np.newaxis])[:, 0]

    def in_units(self, value_indices: Indices) -> Array:
        """Return values (K,) in the user's units."""
        low = self.space.low[self.grid.coordinate_of_loss]
        high = self.space.high[self.grid.coordinate_of_loss]
        return np.asarray(low + (high - low) * value_indices / self.grid.steps)

    @property
    def steps_in_units(self) -> Array:
        """The step D of each loss's outcome (K,), in the user's units."""
        length = (self.space.high - self.space.low)[self.grid.coordinate_of_loss]
        return np.asarray(length / self.grid.steps)

    def by_level(self, statistics: Array) -> dict[float, Array]:
        """Return the quantile of every outcome (d,), by level."""
        values = self.in_units(self.value_indices(statistics))
        by_coordinate = values.reshape(self.grid.outcomes, -1)
        quantiles = {}
        for index, level in enumerate(self.grid.levels):
            quantiles[level] = by_coordinate[:, index]
        return quantiles

    def promised(self, statistics: Array, value_indices: Indices) -> Array:
        """Return the forecast's probabilities (K, 2) of an outcome up to each value, and before."""
        steps = self.grid.steps
        promised = np.ones((self.grid.n_losses, 2))
        for kind, indicator in ((AT, value_indices), (BELOW, value_indices - 1)):
            columns = self.first_indicators + np.clip(indicator, 0, steps - 1)
            probabilities = np.where(indicator < steps, statistics[columns], 1.0)
            promised[:, kind] = np.where(indicator < 0, 0.0, probabilities)
        return promised


class CoverageRecord(Checkpointable):
    """Counts of rounds by announced value, and of outcomes up to it.

    ``sums`` are by loss, kind of event, and event: all rounds first, then each value.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rounds", "hits", "promised", "pinball_losses")
    IN_PLACE = True

    def __init__(self, announced: AnnouncedQuantiles) -> None:
        self.announced = announced
        grid = announced.grid
        n_events = 1 + grid.n_values
        self.rounds = np.zeros((grid.n_losses, n_events))
        self.hits = np.zeros((grid.n_losses, 2, n_events))  # outcomes up to the value, and before
        self.promised = np.zeros((grid.n_losses, 2, n_events))
        self.pinball_losses = np.zeros(grid.n_losses)  # in the user's units

    def note(self, statistics: Array, unit_outcome: Array) -> None:
        """Count a round: the prediction (n,) that was announced, and the outcome (d,)."""
        announced = self.announced
        grid = announced.grid
        value_indices = announced.value_indices(statistics)
        promised = announced.promised(statistics, value_indices)
        outcomes = unit_outcome[grid.coordinate_of_loss]
        values = grid.unit_values[value_indices]
        hits = np.empty((grid.n_losses, 2))
        hits[:, AT] = outcomes <= values + ROUNDING
        hits[:, BELOW] = outcomes <= values - 1 / grid.steps + ROUNDING
        every_loss = np.arange(grid.n_losses)
        for event in (np.zeros_like(value_indices), 1 + value_indices):
            self.rounds[every_loss, event] += 1
            self.hits[every_loss, :, event] += hits
            self.promised[every_loss, :, event] += promised
        shortfall = (outcomes - values) * announced.steps_in_units * grid.steps
        levels = grid.level_of_loss
        self.pinball_losses += np.maximum(levels * shortfall, (levels - 1) * shortfall)

    def add(self, other: "CoverageRecord") -> None:
        """Add the rounds of another record, of the same quantiles."""
        self.rounds += other.rounds
        self.hits += other.hits
        self.promised += other.promised
        self.pinball_losses += other.pinball_losses

    def table(
        self, names: Any, deviations: Array | None, *, by_value: bool, guarantee: str
    ) -> pd.DataFrame:
        """Return a row per quantile over all rounds, or per quantile and value announced.

        ``names`` are those of the outcomes; ``deviations`` (K, 2, m + 2) bound the sums of all
        biases, and are None where nothing is promised.
        """
        announced = self.announced
        grid = announced.grid
        rows = []
        for k in range(grid.n_losses):
            level = float(grid.level_of_loss[k])
            events = 1 + np.flatnonzero(self.rounds[k, 1:]) if by_value else [0]
            for event in events:
                row: dict[str, Any] = {
                    "outcome": names[grid.coordinate_of_loss[k]],
                    "quantile": level,
                }
                if by_value:
                    row["announced"] = float(
                        announced.in_units(np.full(grid.n_losses, event - 1))[k]
                    )
                rounds = float(self.rounds[k, event])
                row["rounds"] = int(rounds)
                if rounds:
                    row["coverage"] = self.hits[k, AT, event] / rounds
                    row["below"] = self.hits[k, BELOW, event] / rounds
                    row["overshoot"] = self.promised[k, AT, event] / rounds - level
                    if not by_value:
                        row["mean_pinball_loss"] = self.pinball_losses[k] / rounds
                    row["bound"] = np.nan
                    row["bound_below"] = np.nan
                    if deviations is not None:
                        row["bound"] = deviations[k, AT, event] / rounds
                        row["bound_below"] = deviations[k, BELOW, event] / rounds
                row["guarantee"] = guarantee
                rows.append(row)
        return pd.DataFrame(rows)
