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
from regretless.agents.utilities import units as say
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import brief
from regretless.market.exploitability.bimatrix import Bimatrix
from regretless.market.losses import Linear, Loss
from regretless.market.losses.base import MANY
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
            shares, alike = laid(self.count, self.actions, self.goods), np.ones(self.goods)
            for i in range(0, self.count, MANY):  # part by part: the same numbers as at once
                part = shares[i : i + MANY]
                part[...] = self.rng.dirichlet(alike, part.shape[:2])
            return shares
        common = self.table("weights", weights)
        if concentration is None:
            return self.repeated(common)
        around = numbers("concentration", concentration, POSITIVE)
        if around.ndim:
            raise ValueError("concentration must be one number for all agents; write 40.0, say")
        if (common < 0).any() or (np.abs(common.sum(1) - 1) > 1e-6).any():
            raise ValueError("with a concentration each action's weights must sum to 1")
        rows = [self.rng.dirichlet(around * row + 1e-3, self.count) for row in common]
        return np.stack(rows, axis=1)

    def repeated(self, table: Array) -> Array:
        """Give every agent the same table: (N, ...)."""
        return np.broadcast_to(table, (self.count, *table.shape))

    def each(self, name: str, value: ArrayLike, rule: Rule = FINITE) -> Array:
        """Give every agent its number (N,); ValueError unless there is one for all or for each."""
        given = numbers(name, value, rule)
        if given.shape not in ((), (self.count,)):
            cure = "write a number, a range [low, high] or { choices = [...] }"
            raise ValueError(f"{name} = {brief(value)}: {cure}")
        return np.broadcast_to(given, self.count)

    def table(self, name: str, value: ArrayLike, rule: Rule = FINITE) -> Array:
        """Check a table (A, d) that is common to all; ValueError if it has another shape."""
        given, wanted = numbers(name, value, rule), (self.actions, self.goods)
        if given.shape != wanted:
            raise ValueError(f"{name} have shape {given.shape}; give {wanted}, actions x goods")
        return given

    def row(self, name: str, value: ArrayLike, length: int, rule: Rule = FINITE) -> Array:
        """Check a list (length,) that is common to all; ValueError if it may be a range.

        A range has become a plain array by now; a table of one row is never taken for one.
        """
        given = numbers(name, value, rule)
        drawn = isinstance(value, np.ndarray) and given.ndim == 1
        if drawn or given.shape not in ((length,), (1, length)):
            cure = f" as {name} = [[0.2, 0.8]], two plain ones are a range" if length == 2 else ""
            raise ValueError(f"{name}: give {length} numbers{cure}")
        return given.reshape(length)


@register.utility("linear", units=say.sums)
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
    power, degree = population.each("rho", rho), v if v is None else population.each("v", v)
    return forms.CES(population.shares(weights, concentration), power, degree, y_min)


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
    scale = population.each("returns", returns, POSITIVE)
    factor = population.each("productivity", productivity, POSITIVE)
    shares = population.shares(weights, concentration)
    require("weights", shares, shares >= 0, NOT_NEGATIVE.cure)
    return forms.CobbDouglas(scale[:, None, None] * shares, factor[:, None], y_min)


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
        needs = population.table("requirements", requirements)
        fine = (needs >= 0) & (needs.max(1, keepdims=True) > 0)
        require("requirements", needs, fine, "must be at least 0, and one of each action positive")
        return forms.Leontief(population.repeated(needs))
    steep = population.each("steepness", 4.0 if steepness is None else steepness)
    require("steepness", steep, steep >= 1, "must be at least 1")
    size = population.count, population.actions, population.goods
    return forms.Leontief(population.rng.uniform(1 / steep[:, None, None], 1.0, size))


@register.utility("cara", units=say.wealth)
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


@register.utility("mean-variance", units=say.portfolio)
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
    centre = population.each("reference", reference)
    return forms.MeanVariance(population.shares(weights, concentration), gamma, centre)


@register.utility("newsvendor", units=say.newsvendor)
def newsvendor_population(
    population: Population,
    *,
    underage: ArrayLike = 3.0,
    overage: ArrayLike = 1.0,
    coordinate: int = 0,
    orders: ArrayLike | None = None,
) -> Loss:
    """Sellers who order before they know demand; orders (A,) are evenly spaced by default."""
    levels = np.linspace(0, 1, population.actions)
    if orders is not None:
        levels = population.row("orders", orders, population.actions, SHARE)
    short, over = population.each("underage", underage), population.each("overage", overage)
    return forms.Newsvendor(levels, short, over, coordinate=coordinate, outcomes=population.goods)


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
    goods, power = population.goods, population.each("p", p)
    weight = np.full(goods, 1 / goods)
    if importance is not None:
        weight = population.row("importance", importance, goods, NOT_NEGATIVE)
    if targets is not None:
        return forms.LpTarget(population.table("targets", targets), power, weight)
    drawn = population.rng.random((population.count, population.actions, goods))
    return forms.LpTarget(drawn, power, weight)
