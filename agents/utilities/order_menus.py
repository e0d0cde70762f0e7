"""Agents who choose among orders: bidders in a sealed-bid auction, traders at an order book.

At an order book a unit is worth ``value`` + ``common`` f to an agent, f the fundamental. An action
cancels what its agent has on the book, unless it ``keeps`` it; what does not trade at once rests,
unless ``rests`` is false: such an order with the limit 1 (for a sale 0) is a market order. In a
round an agent trades, or has on the book, at most ``most`` units: by default twice what its largest
action sends. A follower takes an order to fill with a chance that moves by 1 as its limit moves by
``width``.

What the orders earn is up to the market (``market.markets.sealed_bids``, ``.order_book``).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import POSITIVE, SHARE, numbers, require
from regretless.agents.utilities import units as utility_units
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses.orders import MAX_FEE, Orders, order_losses


@register.utility("bidder", units=utility_units.order_units)
def bidder_population(
    population: Population, *, value: ArrayLike = 1.0, low: float = 0.0, high: float = 1.0
) -> Orders:
    """Bidders for one unit; ``value`` is the most that it is worth, where the auction redraws it.

    ``low`` and ``high`` are the shares of the value that the first and the last action bid.
    """
    max_value = population.each("value", value, SHARE)
    if population.goods != 1 or not 0 <= low < high:
        raise ValueError("a bidder bids for one good: give one outcome, and 0 <= low < high")
    bids = max_value[:, None, None] * np.linspace(low, high, population.actions)[None, :, None]
    require("high", bids, bids <= 1, "bids are shares of the value and at most 1")
    return order_losses(
        np.ones_like(bids),
        bids,
        asset=np.zeros_like(bids),
        keeps=np.zeros(population.actions),
        rests=np.zeros(population.actions),
        worth=max_value[:, None],
        common=np.zeros(population.count),
        most=np.ones(population.count),
        width=1.0,
        reach=np.ones(population.count),
    )


@register.utility("orders", units=utility_units.order_units)
def orders_population(  # noqa: PLR0913 - the parameters of a scenario file
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
        menu_orders = _parse_menu(menu, population.actions)
    else:
        if side not in {"buy", "sell", "both"}:
            raise ValueError(f"side = {side!r}: give 'buy', 'sell' or 'both'")
        numbers("size", size, POSITIVE)
        n_limits, remainder = divmod(population.actions - 1, 2 if side == "both" else 1)
        if remainder or not n_limits:
            problem = f"{population.actions} actions; give one for no order, and equal sides"
            raise ValueError(problem)
        signed_sizes = {"buy": [size], "sell": [-size], "both": [size, -size]}[side]
        orders_by_side = [
            _order_rows(signed_size, _evenly_spaced(low, high, n_limits), asset)
            for signed_size in signed_sizes
        ]
        menu_orders = np.concatenate([np.zeros((1, 3)), *orders_by_side])[:, None]
    order_parameters: Any = {"value": value, "common": common, "most": most, "width": width}
    return _order_population(population, menu_orders, keeps=keeps, rests=rests, **order_parameters)


def _parse_menu(menu: ArrayLike, actions: int) -> Array:
    """Return the orders (A, m, 3) of a menu: units, limit and good of each."""
    hint = f"give {actions} rows, an action each, of units, limit and good of every order"
    try:
        menu_rows = np.asarray(menu, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"menu: {hint}, in numbers and equally many") from error
    if (
        menu_rows.ndim != 2
        or len(menu_rows) != actions
        or not menu_rows.shape[1]
        or menu_rows.shape[1] % 3
    ):
        raise ValueError(f"menu has shape {menu_rows.shape}; {hint}")
    return menu_rows.reshape(actions, -1, 3)


@register.utility("quotes", units=utility_units.order_units)
def quotes_population(  # noqa: PLR0913 - the parameters of a scenario file
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
    half_spread = _evenly_spaced(low, high, population.actions)[:, None] / 2
    menu_orders = _two_sided_menu(size, half_spread, middle=middle, asset=asset)
    return _order_population(
        population, menu_orders, value=value, common=common, most=most, width=width
    )


@register.utility("ladder", units=utility_units.order_units)
def ladder_population(  # noqa: PLR0913 - the parameters of a scenario file
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
    units_per_level = _evenly_spaced(low, high, population.actions)[:, None]
    menu_orders = _two_sided_menu(
        units_per_level, step * (np.arange(levels) + 0.5), middle=middle, asset=asset
    )
    return _order_population(
        population, menu_orders, value=value, common=common, most=most, width=width
    )


def _order_rows(units: ArrayLike, limit: Array, asset: int) -> Array:
    return np.stack(np.broadcast_arrays(units, limit, float(asset)), -1)


def _two_sided_menu(units: ArrayLike, distance: Any, *, middle: float, asset: int) -> Array:
    """Return rows of a menu (A, 2 m, 3): bids for units at prices below the middle, then asks."""
    signed_units = np.asarray(units)
    return np.hstack(
        [
            _order_rows(signed_units, middle - distance, asset),
            _order_rows(-signed_units, middle + distance, asset),
        ]
    )


def _evenly_spaced(low: float, high: float, count: int) -> Array:
    interval = numbers("low, high", (low, high))
    return np.linspace(float(interval[0]), float(interval[1]), count)


def _order_population(  # noqa: PLR0913 - keyword-only from the third
    population: Population,
    menu_orders: Array,
    *,
    value: ArrayLike,
    common: ArrayLike,
    most: float | None,
    width: float,
    keeps: bool = False,
    rests: bool = True,
) -> Orders:
    """Return the losses of traders with one menu (A, m, 3)."""
    private_value = population.each("value", value, SHARE)
    common_weight = population.each("common", common, SHARE)
    units, limit, asset = (
        population.repeated(column) for column in np.moveaxis(menu_orders, -1, 0)
    )
    good_numbers = np.arange(population.goods)
    require(
        "asset", asset, np.isin(asset, good_numbers), f"goods are numbered 0 to {good_numbers[-1]}"
    )
    require("limit", limit, (limit >= 0) & (limit <= 1), "give limits in [0, 1]")
    if not width > 0:
        raise ValueError(f"width = {width}: give a positive number")
    largest_order = float(np.abs(menu_orders[..., 0]).sum(1).max())
    max_units = 2 * largest_order if most is None else most
    if not 0 < largest_order <= max_units:
        raise ValueError(f"most = {max_units:g}: the largest action sends {largest_order:g} units")
    max_unit_loss = np.maximum(private_value + common_weight, 1 - private_value) + MOST_FEE
    max_units_per_agent = np.full(population.count, float(max_units))
    return order_losses(
        units,
        limit,
        asset=asset,
        keeps=np.full(population.actions, float(keeps)),
        rests=np.full(population.actions, float(rests)),
        worth=np.repeat(private_value[:, None], population.goods, axis=1),
        common=common_weight,
        most=max_units_per_agent,
        width=width,
        reach=max_units_per_agent * max_unit_loss,
    )
