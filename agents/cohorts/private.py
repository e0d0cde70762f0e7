"""Agents who each draw a prediction of their own from the round's mixture.

The mixture is common, the draw is not: what one agent hears says nothing of what another does. The
draws come from a stream of the cohort's own that the referee holds. Agents of equal losses act
differently, so that each has a row of its own and is charged what it did.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regretless.agents.cohorts.responding import RespondingCohort
from regretless.market.core.arrays import Indices, draw_rows
from regretless.market.records import Context, Decision, Forecast, Mixture


@dataclass(eq=False)
class PrivateCohort(RespondingCohort):
    """A cohort whose rows hear draws of their own; parameters as in ``Cohort``.

    ``rng`` makes the draws, one uniform number per row and round.
    """

    private = True

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Draw a prediction for every row, and respond to it."""
        table = np.empty(self.loss.offset.shape)
        for rows, heard in self._draws(forecast.mixture):
            table[rows] = self._predicted(heard)[rows]
        return self._decision(table)

    def _draws(self, mixture: Mixture) -> Iterator[tuple[Indices, Forecast]]:
        """Yield each atom that was drawn, with the rows that drew it."""
        uniforms = self.rng.random(len(self.loss))
        drawn = draw_rows(mixture.weights[None], uniforms, np.zeros(len(uniforms), dtype=np.intp))
        for atom in np.unique(drawn):
            yield np.flatnonzero(drawn == atom), Forecast(mixture, int(atom))
