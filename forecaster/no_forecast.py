"""No forecast: what a scenario has whose agents hear none.

A scenario file asks for it by ``[forecaster] kind = "none"``. Nothing is predicted, drawn,
broadcast, recorded or learned, so that a round costs little. Agents of a user's own class are
handed a forecast all the same, whose only number is 1/2 for every function of the basis, and which
has no label; agents who respond to a forecast are refused when the market is built.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Mixture, RoundFeedback


class NoForecast(Checkpointable, Forecaster):
    """Announces nothing about ``size`` numbers."""

    REMEMBERED = ()
    is_silent = True

    def __init__(self, size: int) -> None:
        self._mixture = Mixture(np.full((1, size), 0.5), np.ones(1))

    def mixture(self, x: object = None) -> Mixture:
        return self._mixture

    def update(self, y: ArrayLike) -> None:
        """Learn nothing."""

    def observe(self, feedback: RoundFeedback) -> None:
        """Learn nothing."""
