r"""Agents whose actions a market clears, buyers of a seller, and followers of a matrix game.

The assembly of a scenario calls the registered functions with a ``Population`` and the parameters
of the scenario file; each returns the losses of all its agents as one stack. ``docs/utilities.md``
has the formulas and parameters of trader, firm, depositor, growth, bettor and affine. A ValueError
names the parameter and the cure.

Shapes: N agents, A actions, d goods or other coordinates of an outcome.

Firms
-----
A firm with slope 0 takes the price as given. One that is told the slope b of inverse demand is
aware of its impact: with p the price at its output q and c its unit cost, selling q' instead would
have earned it

    q' (p - b (q' - q) - c) - q (p - c) = [q' (p - c) - b q'^2 / 2] - [q (p - c) - b q^2 / 2]
                                          - (b / 2) (q' - q)^2.

So what it regrets by its loss, taking the price as given, is at least what it would have gained by
any other output, its own effect on the price included; and it sells where marginal revenue at the
forecast price is marginal cost, p - b q = c (Cournot 1838).

Depositors
----------
A bank promises r to who withdraws early and has 1 for each; what stays in grows to R > r > 1
(Diamond and Dybvig 1983); r and R are ``early`` and ``late``. With a share y who withdraw, they and
those who wait get, on average,

    min(r, 1 / y)    and    R max(0, 1 - r y) / (1 - y),

so that waiting is better if and only if  y < (R - r) / (r (R - 1)).

Followers in a game of a file
-----------------------------
The outcome is the leader's action, as a one-hot vector. A loss that is linear in the outcome y,
``l_a(y) = sum_i y_i l[i, a]``, is the follower's expected loss when y is a mixed action of the
leader. Since the y_i sum to 1, any constant c_a may be taken off the weights and added to the
offset; the middle of the losses of a is, which keeps weights, and with them the forecaster's
bounds, small. The loss lies in [0, 1] wherever y is a mixed action.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.fixed_plans import buyer_losses
from regretless.agents.parameters import IN_UNIT_INTERVAL, NOT_NEGATIVE, POSITIVE, check_int
from regretless.agents.utilities.populations import Population
from regretless.agents.utilities.units import (
    bettor_units,
    depositor_units,
    firm_units,
    growth_units,
    trader_units,
)
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.losses import Linear, LipschitzLoss, Trade

TICKS_PER_UNIT = 1024  # limits are multiples of 1 / TICKS_PER_UNIT, as an auction takes them


@register.utility("trader", units=trader_units)
def trader_population(
    population: Population, *, value: ArrayLike, size: ArrayLike = 1.0, spread: float = 0.0
) -> Trade:
    """Buyers and sellers with limit orders at what a unit is worth to them.

    Action 0 stays out; action 1 + k d + g trades (k + 1) / K of ``size``, below 0 for sellers, of
    good g, with K = (A - 1) / d. Values for the single goods are uniform within ``spread`` of the
    agent's.
    """
    n_actions_that_trade = population.actions - 1
    sizes_per_good, remainder = divmod(n_actions_that_trade, population.goods)
    if remainder or not sizes_per_good:
        raise ValueError(
            f"{population.actions} actions for {population.goods} goods; give one to stay out and "
            "the same number for each good"
        )
    value_per_agent = population.each("value", value, IN_UNIT_INTERVAL)
    size_per_agent = population.each("size", size)
    deviations = population.rng.uniform(-1.0, 1.0, (population.count, population.goods))
    value_of_good = value_per_agent[:, None] + spread * deviations  # (N, d)
    limit = np.rint(np.clip(value_of_good, 0.0, 1.0) * TICKS_PER_UNIT) / TICKS_PER_UNIT
    fractions_of_size = np.arange(1, sizes_per_good + 1) / sizes_per_good
    # A block of d rows for each fraction: it is traded of one good after the other.
    trades = np.kron(fractions_of_size[:, None], np.eye(population.goods))
    no_trade = np.zeros(population.goods)
    fractions_of_actions = np.vstack([no_trade, trades])  # (A, d)
    return Trade(
        quantity=size_per_agent[:, None, None] * fractions_of_actions,
        limit=np.repeat(limit[:, None], population.actions, axis=1),  # the same for all actions
    )


@register.utility("firm", units=firm_units)
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
    max_output = population.each("capacity", capacity, POSITIVE)
    unit_cost = population.each("cost", cost)
    price_slope = population.each("slope", slope, NOT_NEGATIVE)
    output = max_output[:, None] * np.linspace(0.0, 1.0, population.actions)  # (N, A)
    price_coordinate = check_int("coordinate", coordinate, least=0, below=population.goods)
    weights = np.zeros((*output.shape, population.goods))
    weights[:, :, price_coordinate] = -output
    production_cost = output * unit_cost[:, None]
    impact_on_price = price_slope[:, None] * output**2 / 2
    return Linear(weights, production_cost + impact_on_price)


@register.utility("bettor", units=bettor_units)
def bettor_population(population: Population, *, coordinate: int = 0) -> Linear:
    """Bettors with logarithmic utility on whether an outcome is 1.

    Examples
    --------
    >>> from regretless.agents.utilities.populations import Population
    >>> bettor = Population(np.random.default_rng(0), 1, 3, 1)  # says 1/4, 1/2 or 3/4
    >>> bettor_population(bettor).losses([1.0]).round(3)  # minus the logarithm
    array([[1.386, 0.693, 0.288]])
    """
    stakes = np.arange(1, population.actions + 1) / (population.actions + 1)
    weights = np.zeros((population.actions, population.goods))
    outcome_index = check_int("coordinate", coordinate, least=0, below=population.goods)
    weights[:, outcome_index] = np.log1p(-stakes) - np.log(stakes)
    return Linear(population.repeated(weights), -np.log1p(-stakes))


@register.utility("affine")
def affine_population(
    population: Population, *, weights: ArrayLike, gains: ArrayLike | None = None
) -> Linear:
    """Agents with one table (A, d) of gains and fixed ones (A,): drivers on routes, bar guests."""
    gain_table = population.table("weights", weights)
    fixed_gains = np.zeros(population.actions)
    if gains is not None:
        fixed_gains = population.row("gains", gains, population.actions)
    return Linear(population.repeated(-gain_table), -fixed_gains)


@compiled(nogil=True)
def _write_depositor_losses(
    outcomes: Array, coordinate: int, early: float, late: float, losses: Array
) -> None:
    """Write what a depositor loses, by the formula at the top (compiled).

    Parameters
    ----------
    outcomes : array (T, d)
        One coordinate is the share of depositors who withdraw.
    coordinate : int
        Which one.
    early, late : float
        r and R.
    losses : array (T, 1, 2)
        Written: the losses of waiting and of withdrawing.
    """
    for t in range(len(outcomes)):
        withdrawn_share = outcomes[t, coordinate]
        early_payment = min(early, 1 / max(withdrawn_share, 1 / early))
        # Once a share of 1 / early withdraws the bank is empty: the limits keep divisors above 0.
        share_left = max(0.0, 1 - early * withdrawn_share)
        deposit_left = share_left / max(1 - withdrawn_share, 1 - 1 / early)
        losses[t, 0, 0] = 1 - late * deposit_left / late
        losses[t, 0, 1] = 1 - early_payment / late


@register.utility("depositor", units=depositor_units)
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
        depositor_losses = np.empty((len(outcomes), 1, 2))
        _write_depositor_losses(outcomes, coordinate, float(early), float(late), depositor_losses)
        return depositor_losses

    highest_payment = np.array([float(late)])
    depositor_loss = LipschitzLoss(
        losses,
        constant=np.array([early**2 / (early - 1)]),
        shape=(1, 2),
        dimension=population.goods,
        unit_scale=highest_payment,
        unit_offset=-highest_payment,
    )
    return depositor_loss[np.zeros(population.count, dtype=np.intp)]


@register.utility("growth", units=growth_units)
def growth_population(
    population: Population, *, weights: ArrayLike, low: float, high: float
) -> LipschitzLoss:
    """Investors who want their wealth to grow: logarithmic utility (Kelly 1956).

    ``weights`` (A, d) are shares of wealth, the rest is cash; ``low`` and ``high`` the return of an
    asset where its outcome is 0 and 1.
    """
    shares = population.table("weights", weights)
    min_growth = 1 + np.minimum(shares * low, shares * high).sum(1)  # (A,)
    if not low < high or min_growth.min() <= 0:
        raise ValueError(f"low = {low}, high = {high}: give low < high, and no action that ruins")

    def losses(outcomes: Array) -> Array:
        returns = low + outcomes * (high - low)
        return -np.log1p(returns @ shares.T)[:, None]

    max_growth = 1 + np.maximum(shares * low, shares * high).sum(1)
    steepest_slope = ((high - low) * np.abs(shares).sum(1) / min_growth).max()
    investor_loss = LipschitzLoss(
        losses,
        constant=np.array([steepest_slope]),
        shape=(1, population.actions),
        dimension=population.goods,
        low=np.array([-np.log(max_growth.max())]),
        high=np.array([-np.log(min_growth.min())]),
    )
    return investor_loss[np.zeros(population.count, dtype=np.intp)]


@register.utility("buyer")
def buyer_population(population: Population, *, value: ArrayLike) -> Linear:
    """Buyers of one good, worth ``value`` to each; the actions are the seller's arms."""
    if population.goods != 2 * population.actions:
        raise ValueError(
            f"{population.actions} arms and {population.goods} outcomes; an offer is an "
            f"allocation and a price: give outcomes = {2 * population.actions}"
        )
    value_per_agent = population.each("value", value, IN_UNIT_INTERVAL)
    weights, offset = buyer_losses(value_per_agent, population.actions)
    # A loss is (1 - gain) / 2, so that the gain is 1 - 2 losses.
    return Linear(
        weights,
        population.repeated(offset),
        unit_scale=np.full(population.count, 2.0),
        unit_offset=np.full(population.count, -1.0),
    )


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
    mid_loss = (game.follower_loss.max(0) + game.follower_loss.min(0)) / 2  # (A,)
    weights = population.repeated((game.follower_loss - mid_loss).T)
    return Linear(
        weights,
        population.repeated(mid_loss),
        unit_scale=np.full(population.count, float(game.unit_scale)),
        unit_offset=np.full(population.count, float(game.unit_offset)),
    )


@register.utility("payoffs")
def payoffs_population(population: Population) -> Linear:
    """Agents who want nothing but what a market with payoffs of its own charges them."""
    if population.loss_range is None:
        raise ValueError("no market has payoffs of its own; name another utility")
    least, greatest = population.loss_range
    scale = greatest - least if greatest > least else 1.0
    return Linear(
        np.zeros((population.count, population.actions, population.goods)),
        np.zeros((population.count, population.actions)),
        unit_scale=np.full(population.count, scale),
        unit_offset=np.full(population.count, least),
    )
