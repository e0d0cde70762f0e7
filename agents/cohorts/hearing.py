"""Who of a cohort hears what: rows at one distance from the forecaster form a party.

A party that hears a prediction, of now or of h rounds ago, expects the losses that its response
rule reads from it. One that no prediction has reached expects the linear form of its losses at the
running mean of s(y), as ``market.game.delay`` says, and its rule responds to that table.
"""

from dataclasses import dataclass

import numpy as np

from regretless.agents.responses import Response
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.losses import Loss
from regretless.market.records import Forecast
from regretless.market.response import expected_losses


@dataclass(frozen=True, eq=False)
class Party:
    """Rows of a cohort that hear the same.

    Parameters
    ----------
    distance : int
        From the forecaster.
    rows : int array (P,) or slice
        Their places among the cohort's.
    loss : stack of P losses
    coefficients, served, by_proxy
        As in ``agents.cohorts.responding.Cohort``, of these rows; with ``served`` the coefficients
        are those of all representatives.
    """

    distance: int
    rows: Indices | slice
    loss: Loss
    coefficients: tuple[Array, Array]
    served: Indices | None = None
    by_proxy: Mask | None = None

    def from_mean(self, mean: Array) -> Array:
        """Return the losses (P, A) expected where the mean of s(y) is all that is known."""
        table = expected_losses(*self.coefficients, mean)
        return table if self.served is None else table[self.served]


def parted(whole: Party, distance: Indices) -> tuple[Party, ...]:
    """Part the rows of a cohort by their distance (K,), the nearest first."""
    offset, weights = whole.coefficients
    parties = []
    for hops in np.unique(distance):
        rows = np.flatnonzero(distance == hops)
        own = whole.coefficients if whole.served is not None else (offset[rows], weights[rows])
        parties.append(
            Party(
                int(hops),
                rows,
                whole.loss[rows],
                own,
                None if whole.served is None else whole.served[rows],
                None if whole.by_proxy is None else whole.by_proxy[rows],
            )
        )
    return tuple(parties)


def expected(response: Response, party: Party, forecast: Forecast) -> Array:
    """Return the losses (P, A) that a party expects on hearing a forecast.

    Parameters
    ----------
    forecast : Forecast
        What it hears.
    """
    predicted = response.predicted(forecast, party.loss, party.coefficients)
    if party.served is not None:
        predicted = predicted[party.served]
    if party.by_proxy is not None:
        proxies = expected_losses(*party.coefficients, forecast.point)
        predicted = np.where(party.by_proxy[:, None], proxies, predicted)
    return predicted
