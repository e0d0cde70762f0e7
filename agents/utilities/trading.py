r"""Agents whose actions a market clears, buyers of a seller, and followers of a matrix game.

``docs/utilities.md`` has the formulas and parameters of trader, firm, depositor, growth, bettor and
affine.

A firm with slope 0 takes the price as given. One that is told the slope b of inverse demand is
aware of its impact: with p the price at its output q, selling q' instead would have earned it

    q' (p - b (q' - q) - c) - q (p - c) = [q' (p - c) - b q'^2 / 2] - [q (p - c) - b q^2 / 2]
                                          - (b / 2) (q' - q)^2.

So what it regrets by its loss, taking the price as given, is at least what it would have gained by
any other output, its own effect on the price included; and it sells where marginal revenue at the
forecast price is marginal cost, p - b q = c (Cournot 1838).

A bank promises r to who withdraws early and has 1 for each; what stays in grows to R > r > 1
(Diamond and Dybvig 1983). With a share y who withdraw, they and those who wait get, on average,

    min(r, 1 / y)    and    R max(0, 1 - r y) / (1 - y),

so that waiting is better if and only if  y < (R - r) / (r (R - 1)).

**Followers in a game of a file.** The outcome is the leader's action, as a one-hot vector. A loss
that is linear in the outcome y, ``l_a(y) = sum_i y_i l[i, a]``, is the follower's expected loss
when y is a mixed action of the leader. Since the y_i sum to 1, any constant c_a may be taken off
the weights and added to the offset; the middle of the losses of a is, which keeps weights, and with
them the forecaster's bounds, small. The loss lies in [0, 1] wherever y is a mixed action.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.fixed_plans import buyer_losses
from regretless.agents.parameters import NOT_NEGATIVE, POSITIVE, SHARE, check_int
from regretless.agents.utilities import units as say
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear, LipschitzLoss, Trade

TICKS = 1024  # limits are multiples of 1 / TICKS, as an auction takes them


@register.utility("trader", units=say.trader)
def trader_population(
    population: Population, *, value: ArrayLike, size: ArrayLike = 1.0, spread: float = 0.0
) -> Trade:
    """Buyers and sellers with limit orders at what a unit is worth to them.

    Action 0 stays out; action 1 + k d + g trades (k + 1) / levels of ``size``, below 0 for sellers,
    of good g. Values for the single goods are uniform within ``spread`` of the agent's.
    """
    levels, over = divmod(population.actions - 1, population.goods)
    if over or not levels:
        raise ValueError(
            f"{population.actions} actions for {population.goods} goods; give one to stay out and "
            "the same number for each good"
        )
    worth, units = population.each("value", value, SHARE), population.each("size", size)
    shape = population.count, population.goods
    around = worth[:, None] + spread * population.rng.uniform(-1.0, 1.0, shape)
    limit = np.rint(np.clip(around, 0.0, 1.0) * TICKS) / TICKS
    parts = np.arange(1, levels + 1) / levels
    traded = np.kron(parts[:, None], np.eye(population.goods))
    table = np.vstack([np.zeros(population.goods), traded])
    return Trade(units[:, None, None] * table, np.repeat(limit[:, None], len(table), axis=1))


@register.utility("firm", units=say.firm)
def firm_population(
    population: Population,
    *,
    cost: ArrayLike = 0.0,
    capacity: ArrayLike = 1.0,
    slope: ArrayLike = 0.0,
    coordinate: int = 0,
) -> Linear:
    """Firms that choose how much to sell, from nothing to their capacity.

    Examples
    --------
    >>> from regretless.agents.utilities.populations import Population
    >>> firm = Population(np.random.default_rng(0), 1, 3, 1)  # sells 0, 1/2 or 1
    >>> firm_population(firm, cost=0.25).losses([0.75])  # minus its profit at the price 0.75
    array([[ 0.  , -0.25, -0.5 ]])
    """
    most = population.each("capacity", capacity, POSITIVE)
    unit, impact = population.each("cost", cost), population.each("slope", slope, NOT_NEGATIVE)
    sold = most[:, None] * np.linspace(0.0, 1.0, population.actions)
    weights = np.zeros((*sold.shape, population.goods))
    weights[:, :, check_int("coordinate", coordinate, least=0, below=population.goods)] = -sold
    return Linear(weights, sold * unit[:, None] + impact[:, None] * sold**2 / 2)


@register.utility("bettor", units=say.bettor)
def bettor_population(population: Population, *, coordinate: int = 0) -> Linear:
    """Bettors with logarithmic utility on whether an outcome is 1.

    Examples
    --------
    >>> from regretless.agents.utilities.populations import Population
    >>> bettor = Population(np.random.default_rng(0), 1, 3, 1)  # says 1/4, 1/2 or 3/4
    >>> bettor_population(bettor).losses([1.0]).round(3)  # minus the logarithm
    array([[1.386, 0.693, 0.288]])
    """
    levels = np.arange(1, population.actions + 1) / (population.actions + 1)
    weights = np.zeros((population.actions, population.goods))
    at = check_int("coordinate", coordinate, least=0, below=population.goods)
    weights[:, at] = np.log1p(-levels) - np.log(levels)
    return Linear(population.repeated(weights), -np.log1p(-levels))


@register.utility("affine")
def affine_population(
    population: Population, *, weights: ArrayLike, gains: ArrayLike | None = None
) -> Linear:
    """Agents with one table (A, d) of gains and fixed ones (A,): drivers on routes, bar guests."""
    common = population.table("weights", weights)
    fixed = np.zeros(population.actions)
    if gains is not None:
        fixed = population.row("gains", gains, population.actions)
    return Linear(population.repeated(-common), -fixed)


@register.utility("depositor", units=say.depositor)
def depositor_population(
    population: Population, *, early: float, late: float, coordinate: int = 0
) -> LipschitzLoss:
    """Depositors who wait or withdraw, r = ``early`` and R = ``late``.

    Examples
    --------
    >>> from regretless.agents.utilities.populations import Population
    >>> depositor = Population(np.random.default_rng(0), 1, 2, 1)
    >>> depositor_population(depositor, early=1.25, late=2.0).losses([0.0])  # waiting pays 2
    array([[0.   , 0.375]])
    """
    if population.actions != 2:
        raise ValueError(f"{population.actions} actions; give 2, to wait and to withdraw")
    if not 1 < early < late:
        raise ValueError(f"early = {early}, late = {late}; give 1 < early < late")
    check_int("coordinate", coordinate, least=0, below=population.goods)

    def losses(outcomes: Array) -> Array:
        share = outcomes[:, coordinate]
        at_once = np.minimum(early, 1 / np.maximum(share, 1 / early))
        left = np.maximum(0.0, 1 - early * share) / np.maximum(1 - share, 1 - 1 / early)
        return 1 - np.stack([late * left, at_once], axis=1)[:, None] / late

    units, steepest = np.array([float(late)]), np.array([early**2 / (early - 1)])
    own = {"unit_scale": units, "unit_offset": -units}
    one = LipschitzLoss(losses, steepest, (1, 2), population.goods, **own)
    return one[np.zeros(population.count, dtype=np.intp)]


@register.utility("growth", units=say.growth)
def growth_population(
    population: Population, *, weights: ArrayLike, low: float, high: float
) -> LipschitzLoss:
    """Investors who want their wealth to grow: logarithmic utility (Kelly 1956).

    ``weights`` (A, d) are shares of wealth, the rest is cash; ``low`` and ``high`` the return of an
    asset where its outcome is 0 and 1.
    """
    shares = population.table("weights", weights)
    least = 1 + np.minimum(shares * low, shares * high).sum(1)
    if not low < high or least.min() <= 0:
        raise ValueError(f"low = {low}, high = {high}: give low < high, and no action that ruins")

    def losses(outcomes: Array) -> Array:
        returns = low + outcomes * (high - low)
        return -np.log1p(returns @ shares.T)[:, None]

    most = 1 + np.maximum(shares * low, shares * high).sum(1)
    steepest = np.array([((high - low) * np.abs(shares).sum(1) / least).max()])
    ends = {"low": np.array([-np.log(most.max())]), "high": np.array([-np.log(least.min())])}
    one = LipschitzLoss(losses, steepest, (1, population.actions), population.goods, **ends)
    return one[np.zeros(population.count, dtype=np.intp)]


@register.utility("buyer")
def buyer_population(population: Population, *, value: ArrayLike) -> Linear:
    """Buyers of one good, worth ``value`` to each; the actions are the seller's arms."""
    if population.goods != 2 * population.actions:
        raise ValueError(
            f"{population.actions} arms and {population.goods} outcomes; an offer is an "
            f"allocation and a price: give outcomes = {2 * population.actions}"
        )
    worth, units = population.each("value", value, SHARE), np.ones(population.count)
    weights, offset = buyer_losses(worth, population.actions)
    own = {"unit_scale": 2.0 * units, "unit_offset": -units}
    return Linear(weights, population.repeated(offset), **own)


@register.utility("game")
def game_population(population: Population) -> Linear:
    """Followers of the scenario's [game], all alike."""
    game = population.game
    if game is None:
        raise ValueError("there is no game; add a table [game] with its file")
    outcomes, actions = game.follower_loss.shape
    if (population.goods, population.actions) != (outcomes, actions):
        raise ValueError(
            f"the game has {outcomes} actions of the leader and {actions} of the follower; "
            f"give actions = {actions}"
        )
    middle = (game.follower_loss.max(0) + game.follower_loss.min(0)) / 2
    weights = population.repeated((game.follower_loss - middle).T)
    units = np.ones(population.count)
    own = {"unit_scale": game.unit_scale * units, "unit_offset": game.unit_offset * units}
    return Linear(weights, population.repeated(middle), **own)
