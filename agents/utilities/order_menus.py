"""Agents who choose among orders: bidders in a sealed-bid auction, traders at an order book.

The assembly of a scenario calls the registered functions with a ``Population`` and the parameters
of the scenario file; each returns the losses of all its agents as one stack of ``Orders``. What the
orders earn is up to the market (``market.markets.sealed_bids``, ``.order_book``).

At an order book a unit is worth ``value`` + ``common`` f to an agent, f the fundamental. An action
cancels what its agent has on the book, unless it ``keeps`` it; what does not trade at once rests,
unless ``rests`` is false: such an order with the limit 1 (for a sale 0) is a market order. In a
round an agent trades, or has on the book, at most ``most`` units: by default twice what its largest
action sends. A follower takes an order to fill with a chance that moves by 1 as its limit moves by
``width``.

Shapes: N agents, A actions, m orders of an action, g goods. A menu of orders is an array (A, m, 3):
units (below 0 for a sale, 0 for no order), limit and good of each order.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import IN_UNIT_INTERVAL, POSITIVE, numbers, require
from regretless.agents.utilities.populations import Population
from regretless.agents.utilities.units import order_units
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses.orders import MAX_FEE, Orders, order_losses


@register.utility("bidder", units=order_units)
def bidder_population(
    population: Population, *, value: ArrayLike = 1.0, low: float = 0.0, high: float = 1.0
) -> Orders:
    """Bidders for one unit; ``value`` is the most that it is worth, where the auction redraws it.

    ``low`` and ``high`` are the shares of the value that the first and the last action bid.
    """
    max_value = population.each("value", value, IN_UNIT_INTERVAL)
    if population.goods != 1 or not 0 <= low < high:
        raise ValueError("a bidder bids for one good: give one outcome, and 0 <= low < high")
    shares_of_value = np.linspace(low, high, population.actions)
    bids = max_value[:, None, None] * shares_of_value[None, :, None]  # (N, A, 1)
    require("high", bids, bids <= 1, "bids are shares of the value and at most 1")
    return order_losses(
        units=np.ones_like(bids),
        limit=bids,
        asset=np.zeros_like(bids),
        keeps_open_orders=np.zeros(population.actions),
        rests_on_book=np.zeros(population.actions),
        private_value=max_value[:, None],
        common_weight=np.zeros(population.count),
        max_units=np.ones(population.count),
        fill_width=1.0,
        max_gain=np.ones(population.count),
    )


@register.utility("orders", units=order_units)
def orders_population(
    population: Population,
    *,
    value: ArrayLike = 0.0,
    common: ArrayLike = 0.0,
    size: float = 1.0,
    low: float = 0.0,
    high: float = 1.0,
    side: str = "both",
    asset: int = 0,
    keeps: bool = False,
    rests: bool = True,
    menu: ArrayLike | None = None,
    most: float | None = None,
    width: float = 1.0,
) -> Orders:
    """Traders who send one order of ``size`` units per round, or none.

    Limits are evenly spaced from ``low`` to ``high``; with both sides the first half of the actions
    after action 0 buys. A ``menu`` (A, 3 m) in their place has units (below 0 for a sale, 0 for no
    order), limit and good of up to m orders of each action.
    """
    if menu is not None:
        orders = _parse_menu(menu, population.actions)
    else:
        orders = _single_orders(
            population.actions, side=side, asset=asset, size=size, low=low, high=high
        )
    return _order_population(
        population,
        orders,
        value=value,
        common=common,
        most=most,
        width=width,
        keeps=keeps,
        rests=rests,
    )


def _single_orders(
    actions: int, *, side: str, asset: int, size: float, low: float, high: float
) -> Array:
    """Return a menu (A, 1, 3): no order, then one order per action at evenly spaced limits."""
    if side not in {"buy", "sell", "both"}:
        raise ValueError(f"side = {side!r}: give 'buy', 'sell' or 'both'")
    numbers("size", size, POSITIVE)  # ValueError unless it is one
    # of an order on each side, below 0 for sales
    signed_sizes = {"buy": [size], "sell": [-size], "both": [size, -size]}[side]
    n_order_actions = actions - 1  # the first sends no order
    n_limits, remainder = divmod(n_order_actions, len(signed_sizes))
    if remainder or not n_limits:
        raise ValueError(f"{actions} actions; give one for no order, and equal sides")
    limits = _evenly_spaced(low, high, n_limits)
    no_order = np.zeros((1, 3))
    orders_by_side = [_orders(units, limits, asset) for units in signed_sizes]
    return np.concatenate([no_order, *orders_by_side])[:, None]


def _parse_menu(menu: ArrayLike, actions: int) -> Array:
    """Return the orders (A, m, 3) of a menu (A, 3 m) as a scenario file writes it."""
    hint = f"give {actions} rows, an action each, of units, limit and good of every order"
    try:
        rows = np.asarray(menu, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"menu: {hint}, in numbers and equally many") from error
    if rows.ndim != 2 or len(rows) != actions or not rows.shape[1] or rows.shape[1] % 3:
        raise ValueError(f"menu has shape {rows.shape}; {hint}")
    return rows.reshape(actions, -1, 3)


@register.utility("quotes", units=order_units)
def quotes_population(
    population: Population,
    *,
    value: ArrayLike = 0.0,
    common: ArrayLike = 0.0,
    size: float = 1.0,
    low: float = 0.0,
    high: float = 1.0,
    middle: float = 0.5,
    asset: int = 0,
    most: float | None = None,
    width: float = 1.0,
) -> Orders:
    """Market makers who choose their spread, evenly spaced from ``low`` to ``high``."""
    numbers("size", size, POSITIVE)
    spreads = _evenly_spaced(low, high, population.actions)
    distance = spreads[:, None] / 2
    orders = _two_sided_orders(size, distance, middle=middle, asset=asset)
    return _order_population(population, orders, value=value, common=common, most=most, width=width)


@register.utility("ladder", units=order_units)
def ladder_population(
    population: Population,
    *,
    value: ArrayLike = 0.0,
    common: ArrayLike = 0.0,
    low: float = 0.0,
    high: float = 1.0,
    levels: int = 8,
    step: float = 0.015625,
    middle: float = 0.5,
    asset: int = 0,
    most: float | None = None,
    width: float = 1.0,
) -> Orders:
    """Market makers who choose their units at each of ``levels`` prices on either side.

    Units are evenly spaced from ``low`` to ``high``, prices a ``step`` apart, the first half a step
    from the middle.
    """
    numbers("step", step, POSITIVE)
    farthest = step * (levels - 0.5)
    if levels > 0 and not 0 <= middle - farthest <= middle + farthest <= 1:
        raise ValueError(f"levels = {levels} of step {step:g}: give limits in [0, 1]")
    units_per_level = _evenly_spaced(low, high, population.actions)
    distance = step * (np.arange(levels, dtype=np.float64) + 0.5)
    orders = _two_sided_orders(units_per_level[:, None], distance, middle=middle, asset=asset)
    return _order_population(population, orders, value=value, common=common, most=most, width=width)


def _orders(units: ArrayLike, limit: Array, asset: int) -> Array:
    """Return orders (..., 3) for one good; units and limits broadcast to (...)."""
    return np.stack(np.broadcast_arrays(units, limit, float(asset)), -1)


def _two_sided_orders(units: ArrayLike, distance: Array, *, middle: float, asset: int) -> Array:
    """Return a menu (A, 2 m, 3): bids for units at a distance below the middle, then asks above.

    ``units`` and ``distance`` broadcast to (A, m).
    """
    units = np.asarray(units)
    bids = _orders(units, middle - distance, asset)
    asks = _orders(-units, middle + distance, asset)
    return np.hstack([bids, asks])


def _evenly_spaced(low: float, high: float, count: int) -> Array:
    """Return evenly spaced numbers (count,) from low to high, both included."""
    interval = numbers("low, high", (low, high))
    return np.linspace(float(interval[0]), float(interval[1]), count)


def _order_population(
    population: Population,
    orders: Array,
    *,
    value: ArrayLike,
    common: ArrayLike,
    most: float | None,
    width: float,
    keeps: bool = False,
    rests: bool = True,
) -> Orders:
    """Return the losses of N traders who choose from one menu of ``orders`` (A, m, 3).

    The other parameters are those at the top of the file. ValueError where one is out of range.
    """
    private_value = population.each("value", value, IN_UNIT_INTERVAL)
    common_weight = population.each("common", common, IN_UNIT_INTERVAL)
    units = population.repeated(orders[..., 0])
    limit = population.repeated(orders[..., 1])
    asset = population.repeated(orders[..., 2])
    last_good = population.goods - 1
    is_good = np.isin(asset, np.arange(population.goods))
    require("asset", asset, is_good, f"goods are numbered 0 to {last_good}")
    require("limit", limit, (limit >= 0) & (limit <= 1), "give limits in [0, 1]")
    if not width > 0:
        raise ValueError(f"width = {width}: give a positive number")
    largest_action = float(np.abs(orders[..., 0]).sum(1).max())
    max_units = 2 * largest_action if most is None else most
    if not 0 < largest_action <= max_units:
        raise ValueError(f"most = {max_units:g}: the largest action sends {largest_action:g} units")
    # Most is at stake per unit where it trades at a limit of 0 or 1 and is worth most or least.
    max_gain_per_unit = np.maximum(private_value + common_weight, 1 - private_value) + MAX_FEE
    max_units_per_agent = np.full(population.count, float(max_units))
    return order_losses(
        units=units,
        limit=limit,
        asset=asset,
        keeps_open_orders=np.full(population.actions, float(keeps)),
        rests_on_book=np.full(population.actions, float(rests)),
        private_value=np.repeat(private_value[:, None], population.goods, axis=1),
        common_weight=common_weight,
        max_units=max_units_per_agent,
        fill_width=width,
        max_gain=max_units_per_agent * max_gain_per_unit,
    )
