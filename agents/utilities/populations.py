"""Random populations: many agents with one utility, each with parameters of its own.

The assembly of a scenario draws the parameters of a cohort, makes a ``Population`` and calls the
function that is registered under the cohort's ``utility`` with both. It returns the losses of all
agents as one stack. ``docs/utilities.md`` says what each parameter is.

One number in a scenario file is everybody's. A range ``[low, high]`` and ``{ choices = [...] }``
have been drawn by the time a function here is called, and arrive as one number per agent (N,). A
parameter that is a list of two numbers by nature is written as a table of one row, ``[[0.2,
0.8]]``, lest it be taken for a range.

Where no table of actions (A, d) is given, every agent has its own, drawn at random.

Shapes: N agents, A actions, d goods.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import (
    FINITE,
    IN_UNIT_INTERVAL,
    NOT_NEGATIVE,
    POSITIVE,
    Rule,
    numbers,
    require,
)
from regretless.agents.utilities import forms
from regretless.agents.utilities.units import (
    newsvendor_units,
    portfolio_units,
    sum_units,
    wealth_units,
)
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import brief
from regretless.market.exploitability.bimatrix import Bimatrix
from regretless.market.losses import Linear, Loss
from regretless.market.losses.base import MAX_LOSSES_AT_ONCE
from regretless.market.numerics.storage import as_unshared, zeros_in_layout

MIN_DIRICHLET = 1e-3  # added to a concentration, which must not be 0
SHARES_ROUNDING = 1e-6  # of shares that sum to 1


@dataclass(frozen=True, eq=False)
class Population:
    """Who is drawn: how many agents, from which stream, over what they choose."""

    rng: np.random.Generator
    count: int  # N, the agents
    actions: int  # A
    goods: int  # d, the coordinates of an outcome
    game: Bimatrix | None = None  # of a scenario with a table [game], led by an adversary
    # The least and the greatest loss in a market with payoffs of its own; None in others.
    loss_range: tuple[float, float] | None = None

    def shares(self, weights: ArrayLike | None, concentration: float | None) -> Array:
        """Return share parameters (N, A, d), without weights (A, d) uniform in the simplex.

        With a concentration each agent's are drawn from a Dirichlet distribution around the
        weights, the closer the larger it is; without it everybody has the same.
        """
        if weights is None:
            if concentration is not None:
                raise ValueError("a concentration needs weights to draw around; give weights too")
            return self._uniform_shares()
        common_shares = self.table("weights", weights)
        if concentration is None:
            return self.repeated(common_shares)
        concentration_value = numbers("concentration", concentration, POSITIVE)
        if concentration_value.ndim:
            raise ValueError("concentration must be one number for all agents; write 40.0, say")
        sums_to_one = np.abs(common_shares.sum(1) - 1) <= SHARES_ROUNDING
        if (common_shares < 0).any() or not sums_to_one.all():
            raise ValueError("with a concentration each action's weights must sum to 1")
        shares_by_action = []
        for action_shares in common_shares:
            dirichlet_parameters = concentration_value * action_shares + MIN_DIRICHLET
            shares_by_action.append(self.rng.dirichlet(dirichlet_parameters, self.count))
        return np.stack(shares_by_action, axis=1)

    def _uniform_shares(self) -> Array:
        """Draw shares (N, A, d) uniformly from the simplex.

        They may be more than memory holds; drawing chunk by chunk yields the same numbers as
        drawing all at once.
        """
        shares = zeros_in_layout(self.count, self.actions, self.goods)
        uniform = np.ones(self.goods)
        for start in range(0, self.count, MAX_LOSSES_AT_ONCE):
            chunk = shares[start : start + MAX_LOSSES_AT_ONCE]
            chunk[...] = self.rng.dirichlet(uniform, chunk.shape[:2])
        return shares

    def repeated(self, table: Array) -> Array:
        """Give every agent the same table: return a view (N, ...)."""
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
        values = numbers(name, value, rule)
        expected_shape = (self.actions, self.goods)
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
            hint = ""
            if length == 2:
                hint = f" as {name} = [[0.2, 0.8]], two plain ones are a range"
            raise ValueError(f"{name}: give {length} numbers{hint}")
        return values.reshape(length)


@register.utility("linear", units=sum_units)
def linear_population(
    population: Population, *, weights: ArrayLike | None = None, concentration: float | None = None
) -> Loss:
    """Risk-neutral agents."""
    shares = population.shares(weights, concentration)
    if weights is None:
        # Drawn shares need no check, and may be more than memory holds: they are negated in place.
        return Linear(as_unshared(np.negative(shares, out=shares))).normalised()
    return forms.LinearUtility(shares)


@register.utility("ces")
def ces_population(
    population: Population,
    *,
    rho: ArrayLike,
    v: ArrayLike | None = None,
    y_min: float = 0.0,
    weights: ArrayLike | None = None,
    concentration: float | None = None,
) -> Loss:
    """Agents who substitute one good for another, at an elasticity 1 / (1 - rho)."""
    rho_per_agent = population.each("rho", rho)
    v_per_agent = None if v is None else population.each("v", v)
    shares = population.shares(weights, concentration)
    return forms.CES(shares, rho_per_agent, v_per_agent, y_min)


@register.utility("cobb-douglas")
def cobb_douglas_population(
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
    require("weights", shares, shares >= 0, NOT_NEGATIVE.hint)
    elasticities = returns_per_agent[:, None, None] * shares
    return forms.CobbDouglas(elasticities, A=productivity_per_agent[:, None], y_min=y_min)


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
        needs_some_good = requirement_table.max(1, keepdims=True) > 0
        is_valid = (requirement_table >= 0) & needs_some_good
        hint = "must be at least 0, and one of each action positive"
        require("requirements", requirement_table, is_valid, hint)
        return forms.Leontief(population.repeated(requirement_table))
    if steepness is None:
        steepness = 4.0
    steepness_per_agent = population.each("steepness", steepness)
    require("steepness", steepness_per_agent, steepness_per_agent >= 1, "must be at least 1")
    lowest_requirement = 1 / steepness_per_agent[:, None, None]
    shape = (population.count, population.actions, population.goods)
    return forms.Leontief(population.rng.uniform(lowest_requirement, 1.0, shape))


@register.utility("cara", units=wealth_units)
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


@register.utility("mean-variance", units=portfolio_units)
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


@register.utility("newsvendor", units=newsvendor_units)
def newsvendor_population(
    population: Population,
    *,
    underage: ArrayLike = 3.0,
    overage: ArrayLike = 1.0,
    coordinate: int = 0,
    orders: ArrayLike | None = None,
) -> Loss:
    """Sellers who order before they know demand; orders (A,) are evenly spaced by default."""
    order_sizes = np.linspace(0, 1, population.actions)  # the same menu for all
    if orders is not None:
        order_sizes = population.row("orders", orders, population.actions, IN_UNIT_INTERVAL)
    underage_per_agent = population.each("underage", underage)
    overage_per_agent = population.each("overage", overage)
    return forms.Newsvendor(
        order_sizes,
        underage=underage_per_agent,
        overage=overage_per_agent,
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
    goods = population.goods
    p_per_agent = population.each("p", p)
    importance_of_good = np.full(goods, 1 / goods)
    if importance is not None:
        importance_of_good = population.row("importance", importance, goods, NOT_NEGATIVE)
    if targets is not None:
        target_table = population.table("targets", targets)
    else:
        target_table = population.rng.random((population.count, population.actions, goods))
    return forms.LpTarget(target_table, p=p_per_agent, weights=importance_of_good)
