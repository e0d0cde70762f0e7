r"""Firms face linear inverse demand: the more is supplied of a good, the lower its price.

Scenario files choose this market by the kind ``cournot``; its cohorts have losses that are linear
in the prices, from which the quantities are read.
    Q_g = sum over agents of the quantity sold,           minus the slope of the loss in y_g
    y_g = intercept_g + noise (fundamental_g - 1/2) - slope Q_g,       cut to [0, 1]

``market.markets.aggregate`` says which Q counts: the smoothed level of before the round, or of
after it. With N firms of unit costs c_i that all produce, inside their capacities, prices rest
where

    firms take the price as given (slope of the utility 0)      p = c                 competitive
    firms know their impact (the utility's slope is ours)       p = (a + sum c_i) / (N + 1)

the latter being Cournot's (1838); its output is q_i = (p - c_i) / slope. Linear demand has one
correlated equilibrium, Cournot's (Neyman 1997): where no firm regrets, mean output is that.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.compiled import compiled
from regretless.market.game.market import check_key, columns_before_clearing, slopes
from regretless.market.game.protocols import Cohort
from regretless.market.markets.aggregate import (
    Moments,
    Settling,
    add_observation,
    cut_and_add,
    follow,
)

ROUNDING = 1e-9  # relative difference that rounding may leave between a cost and its formula


def price_at_rest(
    fundamental: Any, quantity: Any, intercept: Any, slope: float, noise: float
) -> Any:
    """Return y_g, not yet cut, of a quantity supplied in each round: numbers, or arrays."""
    highest_price = intercept + noise * (fundamental - 0.5)  # at which nothing sells
    return highest_price - slope * quantity


_price_at_rest = compiled(nogil=True)(price_at_rest)  # of numbers, for the kernel


@compiled(nogil=True)
def _answer_supply(
    sums: Array,
    level: Array,
    adjustment: float,
    answers_at_once: bool,  # noqa: FBT001
    intercept: Array,
    slope: float,
    noise: float,
    outcome: Array,
    supply: Array,
    new_level: Array,
    n_outcomes: int,
    mean: Array,
    squares: Array,
    mean_supply: Array,
    squares_of_supply: Array,
) -> bool:
    """Let the level follow what is supplied in a round, and write the prices (compiled).

    y_g is that of ``price_at_rest`` at the level that ``follow`` returns, cut to [0, 1].

    Parameters
    ----------
    sums : array (2, 1 + d)
        Firms, and what they supply of each good, as ``Settling.aggregate`` returns them.
    level : array (d,)
        Before the round.
    adjustment, answers_at_once, intercept, slope, noise
        Of the market, ``intercept`` (d,).
    outcome : array (d,)
        The fundamental, which becomes the prices in place.
    supply, new_level : array (d,)
        Written: the quantities, and the level after them.
    n_outcomes, mean, squares
        Of ``Moments``: how many there are with this one; the others (d,) are updated in place.
    mean_supply, squares_of_supply : array (d,)
        Of the ``Moments`` of quantities, updated in place.

    Returns
    -------
    bool
        Whether [0, 1] cut a price.
    """
    for g in range(len(outcome)):
        supply[g] = sums[0, 1 + g] + sums[1, 1 + g]
    settled = follow(level, supply, adjustment, answers_at_once, new_level)
    for g in range(len(outcome)):
        outcome[g] = _price_at_rest(outcome[g], settled[g], intercept[g], slope, noise)
    add_observation(supply, n_outcomes, mean_supply, squares_of_supply)
    return cut_and_add(outcome, n_outcomes, mean, squares)


@register.market("cournot")
class Cournot(Settling):
    """Quantities against linear inverse demand; ``start`` is that of each good at first."""

    REMEMBERED = ("supplied",)
    answers_by_kernel = True
    supports_multiplicity = True
    level_is_mean = False
    column_labels: ClassVar[Mapping[str, str]] = {"quantity": "units supplied"}

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        slope: float,
        intercept: float | list[float] = 1.0,
        noise: float = 0.0,
        start: float = 0.0,
        feedback: str = "same-round",
        adjustment: float = 1.0,
    ) -> None:
        check_key("slope", slope, slope > 0, "a positive number")
        start_quantities = np.full(cohorts[0].loss.outcomes, float(start))
        quantities_sold = [-slopes(cohort.loss) for cohort in cohorts]  # by action, (K, A, d)
        super().__init__(
            cohorts,
            rng,
            start=start_quantities,
            feedback=feedback,
            adjustment=adjustment,
            loads_of_actions=quantities_sold,
        )
        self.slope = float(slope)
        self.noise = float(noise)
        intercepts = np.asarray(intercept, dtype=np.float64)
        self.intercept = np.broadcast_to(intercepts, start_quantities.shape).copy()
        self.supplied = Moments(self.goods)
        self.last = columns_before_clearing(
            fundamental=self.goods, quantity=self.goods, price=self.goods
        )

    def answer(self, fundamental: Array, load: Array) -> Array:
        price = self.begin_outcome(fundamental)
        supply = np.empty(self.goods)
        level = np.empty(self.goods)
        self.clipped += _answer_supply(
            load,
            self.level,
            self.adjustment,
            self.answers_at_once,
            self.intercept,
            self.slope,
            self.noise,
            price,
            supply,
            level,
            self.outcomes.count,
            self.outcomes.mean,
            self.outcomes.squares,
            self.supplied.mean,
            self.supplied.squares,
        )
        self.supplied.count = self.outcomes.count
        self.level = level
        self.last = {"fundamental": fundamental, "quantity": supply, "price": price}
        return price

    def rest(self, fundamental: Array, level: Array) -> Array:
        prices = price_at_rest(fundamental, level, self.intercept, self.slope, self.noise)
        return np.asarray(prices)

    def imputed_losses(self, cohort_index: int) -> Array:
        """Return slope q^2 / 2 of each action (K, A), normalised, where a firm's loss has it.

        It is 0 for firms that take the price as given. What a firm loses at the price 0 is its
        cost: c q, or c q + slope q^2 / 2 if it counts its impact on the price. With two actions or
        fewer the two cannot be told apart, and the loss is taken as it is.
        """
        loss = self.cohorts[cohort_index].loss
        quantities = self.loads_of_actions[cohort_index]  # (K, A, d)
        total_quantity = quantities.sum(-1)  # (K, A)
        # At the price 0 a firm loses its cost, here in the units of prices times quantities.
        normalised_cost = loss.losses(np.zeros(loss.outcomes))
        cost = loss.unit_offset[:, np.newaxis] + loss.unit_scale[:, np.newaxis] * normalised_cost
        impact_cost = self.slope * (quantities**2).sum(-1) / 2
        is_linear = _is_proportional(cost, total_quantity)
        is_linear_without_impact = _is_proportional(cost - impact_cost, total_quantity)
        has_impact_in_cost = is_linear_without_impact & ~is_linear
        imputed = impact_cost / loss.unit_scale[:, np.newaxis]
        return np.where(has_impact_in_cost[:, np.newaxis], imputed, 0.0)

    def price_impact(self, cohort_index: int) -> Array:
        return self.impact_of_one_agent(
            self.loads_of_actions[cohort_index], outcome_per_load=self.slope
        )

    def described(self) -> dict[str, Any]:
        return {**super().described(), "quantity": self.supplied.mean.tolist()}

    def summary(self) -> str:
        price = self.outcomes.mean[0]
        quantity = self.supplied.mean[0]
        means = f"mean price {price:.3f}, mean supply {quantity:.4g} units"
        return f"Market: {self.feedback} supply, {means}"


def _is_proportional(values: Array, quantities: Array) -> Mask:
    """Return for which rows values (K, A) are a constant times quantities (K, A)."""
    squares = (quantities**2).sum(1).clip(np.finfo(np.float64).tiny)
    factor = (values * quantities).sum(1) / squares
    deviation = np.abs(values - factor[:, np.newaxis] * quantities).max(1)
    return np.asarray(deviation <= ROUNDING * np.abs(values).max(1).clip(1.0))
