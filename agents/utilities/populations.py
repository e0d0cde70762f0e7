"""Random populations: many agents with one utility, each with parameters of its own.

A maker is registered under the name that scenario files use; ``docs/utilities.md`` says what each
parameter is. It gets a ``Population`` and the parameters of the file. One number is everybody's; a
range ``[low, high]`` and ``{ choices = [...] }`` have been drawn and arrive as one number per agent
(N,). A parameter that is a list of two numbers by nature is written as a table of one row,
``[[0.2, 0.8]]``, lest it be taken for a range.

Where no table of actions (A, d) is given, every agent has its own, drawn at random.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import (
    FINITE,
    NOT_NEGATIVE,
    POSITIVE,
    SHARE,
    Rule,
    numbers,
    require,
)
from regretless.agents.utilities import forms
from regretless.agents.utilities import units as utility_units
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import brief
from regretless.market.exploitability.bimatrix import Bimatrix
from regretless.market.losses import Linear, Loss
from regretless.market.losses.base import MAX_LOSSES_AT_ONCE
from regretless.market.numerics.storage import fresh, laid


@dataclass(frozen=True, eq=False)
class Population:
    """What is drawn: N = ``count`` agents with A ``actions`` over d ``goods``; maybe the game."""

    rng: np.random.Generator
    count: int
    actions: int
    goods: int
    game: Bimatrix | None = None

    def shares(self, weights: ArrayLike | None, concentration: float | None) -> Array:
        """Share parameters (N, A, d), without weights (A, d) uniform in the simplex.

        With a concentration each agent's are drawn from a Dirichlet distribution around the
        weights, the closer the larger it is; without it everybody has the same.
        """
        if weights is None:
            if concentration is not None:
                raise ValueError("a concentration needs weights to draw around; give weights too")
            shares, uniform_concentration = (
                laid(self.count, self.actions, self.goods),
                np.ones(self.goods),
            )
            for start in range(0, self.count, MANY):  # part by part: the same numbers as at once
                chunk = shares[start : start + MANY]
                chunk[...] = self.rng.dirichlet(uniform_concentration, chunk.shape[:2])
            return shares
        common_shares = self.table("weights", weights)
        if concentration is None:
            return self.repeated(common_shares)
        concentration_value = numbers("concentration", concentration, POSITIVE)
        if concentration_value.ndim:
            raise ValueError("concentration must be one number for all agents; write 40.0, say")
        if (common_shares < 0).any() or (np.abs(common_shares.sum(1) - 1) > 1e-6).any():
            raise ValueError("with a concentration each action's weights must sum to 1")
        shares_by_action = [
            self.rng.dirichlet(concentration_value * action_shares + 1e-3, self.count)
            for action_shares in common_shares
        ]
        return np.stack(shares_by_action, axis=1)

    def repeated(self, table: Array) -> Array:
        """Give every agent the same table: (N, ...)."""
        return np.broadcast_to(table, (self.count, *table.shape))

    def each(self, name: str, value: ArrayLike, rule: Rule = FINITE) -> Array:
        """Give every agent its number (N,); ValueError unless there is one for all or for each."""
        values = numbers(name, value, rule)
        if values.shape not in ((), (self.count,)):
            hint = "write a number, a range [low, high] or { choices = [...] }"
            raise ValueError(f"{name} = {brief(value)}: {hint}")
        return np.broadcast_to(values, self.count)

    def table(self, name: str, value: ArrayLike, rule: Rule = FINITE) -> Array:
        """Check a table (A, d) that is common to all; ValueError if it has another shape."""
        values, expected_shape = numbers(name, value, rule), (self.actions, self.goods)
        if values.shape != expected_shape:
            raise ValueError(
                f"{name} have shape {values.shape}; give {expected_shape}, actions x goods"
            )
        return values

    def row(self, name: str, value: ArrayLike, length: int, rule: Rule = FINITE) -> Array:
        """Check a list (length,) that is common to all; ValueError if it may be a range.

        A range has become a plain array by now; a table of one row is never taken for one.
        """
        values = numbers(name, value, rule)
        is_drawn_range = isinstance(value, np.ndarray) and values.ndim == 1
        if is_drawn_range or values.shape not in ((length,), (1, length)):
            hint = f" as {name} = [[0.2, 0.8]], two plain ones are a range" if length == 2 else ""
            raise ValueError(f"{name}: give {length} numbers{hint}")
        return values.reshape(length)


@register.utility("linear", units=utility_units.sum_units)
def linear_population(
    population: Population, *, weights: ArrayLike | None = None, concentration: float | None = None
) -> Loss:
    """Risk-neutral agents."""
    shares = population.shares(weights, concentration)
    if weights is None:  # they are as they should be, and maybe more than memory holds
        return Linear(fresh(np.negative(shares, out=shares))).normalised()
    return forms.LinearUtility(shares)


@register.utility("ces")
def ces_population(  # noqa: PLR0913 - the parameters of a scenario file
    population: Population,
    *,
    rho: ArrayLike,
    v: ArrayLike | None = None,
    y_min: float = 0.0,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> Loss:
    """Agents who substitute one good for another, at an elasticity 1 / (1 - rho)."""
    rho_per_agent, v_per_agent = (
        population.each("rho", rho),
        v if v is None else population.each("v", v),
    )
    return forms.CES(population.shares(weights, concentration), rho_per_agent, v_per_agent, y_min)


@register.utility("cobb-douglas")
def cobb_douglas_population(  # noqa: PLR0913 - the parameters of a scenario file
    population: Population,
    *,
    returns: ArrayLike = 1.0,
    y_min: float = 0.01,
    productivity: ArrayLike = 1.0,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> Loss:
    """Agents with Cobb-Douglas utility or output; the returns to scale multiply the shares."""
    returns_per_agent = population.each("returns", returns, POSITIVE)
    productivity_per_agent = population.each("productivity", productivity, POSITIVE)
    shares = population.shares(weights, concentration)
    require("weights", shares, shares >= 0, NOT_NEGATIVE.cure)
    return forms.CobbDouglas(
        returns_per_agent[:, None, None] * shares, productivity_per_agent[:, None], y_min
    )


@register.utility("leontief")
def leontief_population(
    population: Population,
    *,
    steepness: ArrayLike | None = None,
    requirements: ArrayLike | None = None,
) -> Loss:
    """Agents who need goods in fixed proportions: requirements (A, d), or uniform in [1 / L, 1].

    The ``steepness`` L is at least 1, by default 4.
    """
    if requirements is not None:
        if steepness is not None:
            raise ValueError("steepness and requirements exclude each other; give one of them")
        requirement_table = population.table("requirements", requirements)
        is_valid = (requirement_table >= 0) & (requirement_table.max(1, keepdims=True) > 0)
        require(
            "requirements",
            requirement_table,
            is_valid,
            "must be at least 0, and one of each action positive",
        )
        return forms.Leontief(population.repeated(requirement_table))
    steepness_per_agent = population.each("steepness", 4.0 if steepness is None else steepness)
    require("steepness", steepness_per_agent, steepness_per_agent >= 1, "must be at least 1")
    shape = population.count, population.actions, population.goods
    return forms.Leontief(
        population.rng.uniform(1 / steepness_per_agent[:, None, None], 1.0, shape)
    )


@register.utility("cara", units=utility_units.wealth_units)
def cara_population(
    population: Population,
    *,
    risk_aversion: ArrayLike = 2.0,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> Loss:
    """Investors whose aversion to risk does not depend on their wealth."""
    gamma = population.each("risk_aversion", risk_aversion)
    return forms.CARA(population.shares(weights, concentration), gamma)


@register.utility("mean-variance", units=utility_units.portfolio_units)
def mean_variance_population(
    population: Population,
    *,
    risk_aversion: ArrayLike = 1.0,
    reference: ArrayLike = 0.0,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> Loss:
    """Investors who dislike variance about the return ``reference``.

    About 0, a risk aversion of 1 is the most at which a higher return is never worse.
    """
    gamma = population.each("risk_aversion", risk_aversion)
    reference_per_agent = population.each("reference", reference)
    return forms.MeanVariance(population.shares(weights, concentration), gamma, reference_per_agent)


@register.utility("newsvendor", units=utility_units.newsvendor_units)
def newsvendor_population(
    population: Population,
    *,
    underage: ArrayLike = 3.0,
    overage: ArrayLike = 1.0,
    coordinate: int = 0,
    orders: ArrayLike | None = None,
) -> Loss:
    """Sellers who order before they know demand; orders (A,) are evenly spaced by default."""
    order_sizes = np.linspace(0, 1, population.actions)
    if orders is not None:
        order_sizes = population.row("orders", orders, population.actions, SHARE)
    underage_per_agent, overage_per_agent = (
        population.each("underage", underage),
        population.each("overage", overage),
    )
    return forms.Newsvendor(
        order_sizes,
        underage_per_agent,
        overage_per_agent,
        coordinate=coordinate,
        outcomes=population.goods,
    )


@register.utility("lp-target")
def lp_target_population(
    population: Population,
    *,
    p: ArrayLike = 2.0,
    targets: ArrayLike | None = None,
    importance: ArrayLike | None = None,
) -> Loss:
    """Agents who want the outcome near a target: forecasters, planners, voters.

    ``targets`` (A, d) are everybody's own by default, the ``importance`` (d,) 1 / d.
    """
    goods, p_per_agent = population.goods, population.each("p", p)
    importance_weights = np.full(goods, 1 / goods)
    if importance is not None:
        importance_weights = population.row("importance", importance, goods, NOT_NEGATIVE)
    if targets is not None:
        return forms.LpTarget(population.table("targets", targets), p_per_agent, importance_weights)
    drawn_targets = population.rng.random((population.count, population.actions, goods))
    return forms.LpTarget(drawn_targets, p_per_agent, importance_weights)
