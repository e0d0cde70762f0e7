"""Regret at each cost that is possible: plausible regret is the least of them.

A seller's cost is often known within a range only. The regret of its prices depends on the cost,
and the **plausible regret** is the least over the range (Hartline, Long and Zhang 2024,
arXiv:2401.15794): no cost in the range makes the seller look better.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.randomness import stream
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.pair_gains import pair_gains
from regretless.scenarios.audit.propensities import Propensities
from regretless.scenarios.audit.regret_intervals import (
    N_DRAWS,
    RegretEstimate,
    estimate_swap_regret,
)
from regretless.scenarios.audit.untried_actions import (
    StandIns,
    greatest_compatible_results,
    own_results,
)

N_COSTS = 21  # of a range, at which the regret is estimated


@dataclass(frozen=True, eq=False)
class CostPoint:
    """The regrets at one cost, as shares of the log's scale.

    Attributes
    ----------
    cost : float
        The cost of a unit; the mean, where each round has its own.
    swap : RegretEstimate
        Swap regret among the actions that were taken at least once.
    pessimistic : RegretEstimate
        The greatest swap regret that is compatible with the log.
    mean_value : float
        Mean profit of a round, or mean loss with a minus.
    """

    cost: float
    swap: RegretEstimate
    pessimistic: RegretEstimate
    mean_value: float


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """The regrets over the range of costs; one point where the cost is known.

    Attributes
    ----------
    points : list of CostPoint
        In ascending order of cost.
    """

    points: Sequence[CostPoint]

    def plausible(self, measure: str) -> CostPoint:
        """Return the point with the least regret, of ``swap`` or ``pessimistic``."""
        regrets = [getattr(point, measure).regret for point in self.points]
        return self.points[int(np.argmin(regrets))]

    def quantile_factor(self, measure: str, error: float) -> float:
        """Return how much greater a quantile is that holds at all costs at once.

        The errors at different costs are correlated; draws of Student's distribution with their
        correlations say how great the greatest of them is.
        """
        if len(self.points) == 1:
            return 1.0
        estimates: list[RegretEstimate] = [getattr(point, measure) for point in self.points]
        series = np.stack([estimate.series for estimate in estimates], axis=1)
        spread = series.std(0)
        if not (spread > 0).any():
            return 1.0
        varying = series[:, spread > 0]
        correlation = np.atleast_2d(np.corrcoef(varying, rowvar=False))
        values, vectors = np.linalg.eigh(correlation)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        rng = stream(0, "audit", "costs")
        freedom = estimates[0].freedom
        draws = rng.standard_normal((N_DRAWS, len(values))) @ root.T
        draws *= np.sqrt(freedom / rng.chisquare(freedom, N_DRAWS))[:, None]
        greatest = float(np.quantile(draws.max(1), 1 - error))
        single = float(np.quantile(draws, 1 - error))
        return max(greatest / single, 1.0)

    def upper_limit(self, measure: str, error: float) -> float:
        """Return what the plausible regret exceeds with probability ``error`` at most."""
        factor = self.quantile_factor(measure, error)
        limits = []
        for point in self.points:
            estimate: RegretEstimate = getattr(point, measure)
            limits.append(estimate.upper_limit(error, factor * estimate.quantile(error)))
        return min(limits)

    def lower_limit(self, measure: str, error: float) -> float:
        """Return what the plausible regret falls below with probability ``error`` at most."""
        limits = [float(getattr(point, measure).lower_limit(error)) for point in self.points]
        return min(limits)


def regret_curve(
    log: BanditLog,
    propensities: Propensities,
    predicted: Array | None,
    *,
    kind: str,
    min_propensity: float,
    self_normalised: bool = False,
) -> RegretCurve:
    """Estimate the regrets at each cost.

    Parameters
    ----------
    log : BanditLog
    propensities : Propensities
    predicted : ndarray or None
        Results of each action by a model (T, A).
    kind : str
        Of intervals: one of ``regret_intervals.KINDS``.
    min_propensity : float
        Below it an action counts as untried.
    self_normalised : bool, optional
        Whether weights are normalised; without a model.
    """
    probability = propensities.probability
    was_taken = np.bincount(log.chosen, minlength=len(log.names)) > 0
    costs: Sequence[float | None] = [None]
    if isinstance(log.cost, tuple) and log.has_cost_range:
        costs = list(np.linspace(*log.cost, N_COSTS))
    points = []
    for cost in costs:

        def estimate(
            stand_ins: StandIns, considered: Mask | None, cost: float | None = cost
        ) -> RegretEstimate:
            gains = pair_gains(
                log, probability, cost, stand_ins, predicted, self_normalised=self_normalised
            )
            return estimate_swap_regret(gains, kind=kind, considered=considered)

        margins = log.margins(cost)
        compatible = greatest_compatible_results(log, probability, margins, min_propensity)
        swap = estimate(own_results(probability), was_taken)
        is_all_tried = bool((probability >= min_propensity).all())
        point = CostPoint(
            cost=_shown_cost(log, cost),
            swap=swap,
            pessimistic=swap if is_all_tried and was_taken.all() else estimate(compatible, None),
            mean_value=float((log.margins_taken(cost) * log.result).mean() / log.scale),
        )
        points.append(point)
    return RegretCurve(points)


def _shown_cost(log: BanditLog, cost: float | None) -> float:
    if cost is not None:
        return cost
    if log.prices is None:
        return float("nan")
    return float(np.mean(log.cost[0] if isinstance(log.cost, tuple) else log.cost))
