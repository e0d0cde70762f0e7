"""Regret at each cost that is possible: plausible regret is the least of them.

A seller's cost is often known within a range only. The regret of its prices depends on the cost,
and the **plausible regret** is the least over the range (Hartline, Long and Zhang 2024,
arXiv:2401.15794): no cost in the range makes the seller look better.

The regret is a maximum of functions that are linear in the cost, and therefore convex in it. Its
minimum lies between the neighbours of the best cost of a grid, where it is searched for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.randomness import stream
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.pair_gains import PairGains, pair_gains
from regretless.scenarios.audit.propensities import Propensities
from regretless.scenarios.audit.regret_intervals import (
    N_DRAWS,
    RegretEstimate,
    estimate_swap_regret,
    mean_swap_gains,
)
from regretless.scenarios.audit.untried_actions import (
    greatest_compatible_results,
    own_results,
)

N_COSTS = 21  # of a range, at which the regret is estimated
COST_TOLERANCE = 1e-4  # of the range, in search of the cost with the least regret


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
        return min(self._upper_limits(measure, error))

    def point_of_upper_limit(self, measure: str, error: float) -> CostPoint:
        """Return the point whose upper limit is that of the plausible regret."""
        return self.points[int(np.argmin(self._upper_limits(measure, error)))]

    def _upper_limits(self, measure: str, error: float) -> list[float]:
        """Return the upper limit at each cost, all of which hold at once."""
        factor = self.quantile_factor(measure, error)
        limits = []
        for point in self.points:
            estimate: RegretEstimate = getattr(point, measure)
            limits.append(estimate.upper_limit(error, factor * estimate.quantile(error)))
        return limits

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
    has_untried = bool((probability < min_propensity).any() or not was_taken.all())

    def gains_at(cost: float | None, measure: str) -> PairGains:
        stand_ins = own_results(probability)
        if measure == "pessimistic":
            margins = log.margins(cost)
            stand_ins = greatest_compatible_results(log, probability, margins, min_propensity)
        return pair_gains(
            log, probability, cost, stand_ins, predicted, self_normalised=self_normalised
        )

    def point_at(cost: float | None) -> CostPoint:
        swap = estimate_swap_regret(gains_at(cost, "swap"), kind=kind, considered=was_taken)
        pessimistic = swap
        if has_untried:
            pessimistic = estimate_swap_regret(gains_at(cost, "pessimistic"), kind=kind)
        return CostPoint(
            cost=_shown_cost(log, cost),
            swap=swap,
            pessimistic=pessimistic,
            mean_value=float((log.margins_taken(cost) * log.result).mean() / log.scale),
        )

    if not isinstance(log.cost, tuple) or not log.has_cost_range:
        return RegretCurve([point_at(None)])
    grid = np.linspace(*log.cost, N_COSTS)
    points = [point_at(float(cost)) for cost in grid]
    for measure in ("swap", "pessimistic") if has_untried else ("swap",):
        considered = was_taken if measure == "swap" else None

        def regret_at(
            cost: float, measure: str = measure, considered: Mask | None = considered
        ) -> float:
            mean_gains = mean_swap_gains(gains_at(cost, measure), considered)
            return float(mean_gains.max(1).sum())

        best = int(np.argmin([getattr(point, measure).regret for point in points[:N_COSTS]]))
        neighbours = (grid[max(best - 1, 0)], grid[min(best + 1, N_COSTS - 1)])
        tolerance = COST_TOLERANCE * float(grid[-1] - grid[0])
        search = minimize_scalar(
            regret_at, bounds=neighbours, method="bounded", options={"xatol": tolerance}
        )
        if search.fun < getattr(points[best], measure).regret:
            points.append(point_at(float(search.x)))
    return RegretCurve(sorted(points, key=lambda point: point.cost))


def _shown_cost(log: BanditLog, cost: float | None) -> float:
    if cost is not None:
        return cost
    if log.prices is None:
        return float("nan")
    return float(np.mean(log.cost[0] if isinstance(log.cost, tuple) else log.cost))
