"""What the estimator asks of a fit, whichever way it was learned."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from regretless.forecaster.offline.certificate import BatchBound, Measure
from regretless.forecaster.offline.listed import Choice, Listed
from regretless.forecaster.offline.tables import Seen
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.losses import Loss
from regretless.market.records import Mixture


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
