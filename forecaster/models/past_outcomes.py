"""The distribution of past outcomes: all of the last rounds, the newest first, or of the season.

What ``RunningMean``, ``ExponentialSmoothing``, ``LastValue`` and ``SeasonalNaive`` predict of every
statistic is its mean over past outcomes with certain weights. Here these are a distribution: of the
same outcomes and weights, as far back as the window reaches.
"""

from typing import ClassVar

import numpy as np

from regretless.forecaster.models.base import features
from regretless.forecaster.models.outcomes import Coordinates, DistributionModel
from regretless.forecaster.models.seasons import MAX_ROUNDS, PastRounds
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.own_code import read_only
from regretless.market.core.validation import check_rate, check_whole
from regretless.market.losses.basis import Basis
from regretless.market.records import Ensemble

WINDOW = 512  # outcomes
NEGLIGIBLE = 1e-4  # weight of all outcomes that are older than those that are kept


class PastOutcomes(DistributionModel):
    """Past outcomes with weights; certain of one half before there are any.

    Parameters
    ----------
    basis : Basis
        Of the statistics that are predicted.
    rate : float, optional
        In (0, 1], the weight of the newest outcome: k rounds ago it is (1 - rate)^k of it. Without
        one all have the same weight.
    seasonal : bool
        Whether only outcomes of the context's season count: of the same combination of features
        that are integers. In a season that is new, the last outcome is certain.
    window : int
        Of how many outcomes it is made at most.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_outcomes",)

    def __init__(
        self,
        basis: Basis,
        *,
        rate: float | None = None,
        seasonal: bool = False,
        window: int = WINDOW,
    ) -> None:
        super().__init__(basis)
        self.window = check_whole("window", window, least=1, most=MAX_ROUNDS)
        self.rate = None if rate is None else check_rate("rate", rate)
        self.seasonal = seasonal
        self._count = self.window  # of the outcomes that have a weight worth keeping
        if self.rate == 1.0:
            self._count = 1
        elif self.rate is not None:
            enough = int(np.ceil(np.log(NEGLIGIBLE) / np.log(1 - self.rate)))
            self._count = min(self.window, max(enough, 1))
        if seasonal:
            self._outcomes = PastRounds(basis.outcomes, of_all=1, of_season=self._count)
        else:
            self._outcomes = PastRounds(basis.outcomes, of_all=self._count)
        self._weights = np.ones(0)  # of as many outcomes as the last forecast was made of

    def distribution(self, x: object = None) -> Ensemble:
        self._open_features = features(x)
        if self.seasonal:
            outcomes = self._outcomes.last_of_season(self._open_features, self._count)
            if not len(outcomes):
                outcomes = self._outcomes.last(1)
        else:
            outcomes = self._outcomes.last(self._count)
        if not len(outcomes):
            return Ensemble(np.full((1, self.basis.outcomes), 0.5), np.ones(1))
        if len(self._weights) != len(outcomes):
            self._weights = self._weights_of(len(outcomes))
        return Ensemble(outcomes, self._weights)

    def _weights_of(self, count: int) -> Array:
        """Return the weights (count,) of the last outcomes, the newest last."""
        kept_share = 1.0 if self.rate is None else 1.0 - self.rate
        rounds_ago = np.arange(count)[::-1]
        weights = np.power(kept_share, rounds_ago, dtype=np.float64)
        return read_only(weights / weights.sum())

    def _learn_outcome(self, outcome: Array) -> None:
        seasonal_features = self._open_features if self.seasonal else {}
        self._outcomes.add(outcome, seasonal_features, newer=self.newer)


@register.forecaster("past-outcomes")
def past_outcomes(
    size: int,
    *,
    basis: Basis | None = None,
    rate: float | None = None,
    seasonal: bool = False,
    window: int = WINDOW,
) -> PastOutcomes:
    """Make the distribution of past outcomes; without a ``basis`` n = ``size`` numbers are one."""
    basis_of_statistics = Coordinates(size) if basis is None else basis
    return PastOutcomes(basis_of_statistics, rate=rate, seasonal=seasonal, window=window)
