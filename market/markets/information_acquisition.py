r"""Who pays to know: traders buy a signal or read it off a price that it moves.

Scenario files choose this market by the kind ``information``. The signals and the supply are drawn
from the market's own stream, the same whatever agents do.

An asset pays u = theta + e. Who is informed knows theta; e, with variance ``noise``, nobody does.
Supply x is random, so that the price tells theta only in part (Grossman and Stiglitz 1980, whose
symbols these are, with mean returns and mean supply 0). With constant risk aversion a and a share
lambda informed, all demand by mean over a times variance and the price P clears

    lambda (theta - P) / (a var_e) + (1 - lambda) (E[u | P] - P) / (a var(u | P)) = x,
    E[u | P] = rho w,  w = theta - (a var_e / lambda) x,  var(u | P) = var_theta (1 - rho) + var_e,
    rho = var_theta / (var_theta + (a var_e / lambda)^2 var_x).

The outcome is what each side may expect of its trade, exp(-a W) with e integrated out, in the mean
over ``assets`` that are drawn alike:

    y_0 = exp(-(theta - P)^2 / (2 var_e))                   informed
    y_1 = exp(-(E[u | P] - P)^2 / (2 var(u | P)))           uninformed

so that with utility ``affine`` not to know costs y_1 and to know, at the price c, exp(a c) y_0.
lambda is the smoothed share who buy (``market.markets.aggregate``). Those who know are as well off
as the others if and only if exp(2 a c) = var(u | P) / var_e.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.market import columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.markets.aggregate import Moments, Settling


@compiled(nogil=True)
def _write_squared_edges(
    theta: Array,
    supply: Array,
    informed_share: float,
    aversion: float,
    signal: float,
    noise: float,
    supply_variance: float,
    squared_edges: Array,
) -> None:
    """Write by how much assets differ from their price to who knows and who does not (compiled).

    Row 0 is (theta - P)^2 / var_e, row 1 is (E[u | P] - P)^2 / var(u | P).

    Parameters
    ----------
    theta, supply : array (m,)
        What each asset's signal and supply are.
    informed_share, aversion, signal, noise, supply_variance : float
        lambda, a, var_theta, var_e and var_x.
    squared_edges : array (2, m)
        Written.
    """
    informed_weight = informed_share / (aversion * noise)  # demand per unit of theta
    variance_from_theta = informed_weight**2 * signal  # of demand
    rho = variance_from_theta / (variance_from_theta + supply_variance)
    variance = signal * (1 - rho) + noise  # var(u | P)
    uninformed_weight = (1 - informed_share) / (aversion * variance)
    for asset in range(len(theta)):
        expected_value = 0.0  # E[u | P]
        if informed_share:
            expected_value = rho * (theta[asset] - supply[asset] / informed_weight)
        demand_at_price_0 = informed_weight * theta[asset] + uninformed_weight * expected_value
        price = (demand_at_price_0 - supply[asset]) / (informed_weight + uninformed_weight)
        squared_edges[0, asset] = (theta[asset] - price) ** 2 / noise
        squared_edges[1, asset] = (expected_value - price) ** 2 / variance


@register.market("information")
class Information(Settling):
    """An asset market in which action 1 is to buy the signal.

    The market's stream draws signals and supply, with variances ``signal``, ``noise`` and
    ``supply``, of ``assets`` in a round; ``start`` is the share informed before the first.
    """

    REMEMBERED = ("informed",)
    supports_multiplicity = True
    column_labels: ClassVar[Mapping[str, str]] = {"share": "share who buy"}

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        aversion: float = 1.0,
        signal: float = 1.0,
        noise: float = 1.0,
        supply: float = 1.0,
        start: float = 0.5,
        assets: int = 1,
        feedback: str = "lagged",
        adjustment: float = 0.05,
    ) -> None:
        start_share = np.array([float(start)])
        super().__init__(cohorts, rng, start=start_share, feedback=feedback, adjustment=adjustment)
        if self.goods != 2 or any(cohort.loss.actions != 2 for cohort in cohorts):
            raise UserError("market 'information': give 2 outcomes, and 2 actions to all")
        if min(aversion, signal, noise, supply) <= 0 or not 0 <= start <= 1 or assets < 1:
            hint = "give a share as market.start, and positive numbers for the others"
            raise UserError(f"market 'information': {hint}")
        self.aversion = float(aversion)
        self.signal = float(signal)
        self.noise = float(noise)
        self.supply = float(supply)
        self.assets = assets
        self._deviations = np.sqrt([[self.signal], [self.supply]])  # of theta and x
        self.informed = Moments(1)  # the share of informed agents
        self.last = columns_before_clearing(share=1)

    def answer(self, fundamental: Array, load: Array) -> Array:
        share_who_buy = load[1:] / max(np.add.reduce(load), 1)
        level = self.settle(share_who_buy)
        self.informed.add(level)
        self.last = {"share": share_who_buy}
        theta, supply = self.rng.normal(size=(2, self.assets)) * self._deviations
        squared_edges = np.empty((2, self.assets))
        _write_squared_edges(
            theta,
            supply,
            float(level[0]),
            self.aversion,
            self.signal,
            self.noise,
            self.supply,
            squared_edges,
        )
        means = np.add.reduce(np.exp(-squared_edges / 2), axis=1) / self.assets
        return self.within_cube(means)

    def described(self) -> dict[str, Any]:
        return {**super().described(), "informed": float(self.informed.mean[0])}

    def summary(self) -> str:
        return f"Market: {100 * self.informed.mean[0]:.1f} % of the traders are informed on average"
