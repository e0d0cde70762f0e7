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
from regretless.agents.utilities import units as say
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses.orders import MOST_FEE, Orders, order_losses


@register.utility("bidder", units=say.orders)
def bidder_population(
    population: Population, *, value: ArrayLike = 1.0, low: float = 0.0, high: float = 1.0
) -> Orders:
    """Bidders for one unit; ``value`` is the most that it is worth, where the auction redraws it.

    ``low`` and ``high`` are the shares of the value that the first and the last action bid.
    """
    worth = population.each("value", value, SHARE)
    if population.goods != 1 or not 0 <= low < high:
        raise ValueError("a bidder bids for one good: give one outcome, and 0 <= low < high")
    bids = worth[:, None, None] * np.linspace(low, high, population.actions)[None, :, None]
    require("high", bids, bids <= 1, "bids are shares of the value and at most 1")
    return order_losses(
        np.ones_like(bids),
        bids,
        asset=np.zeros_like(bids),
        keeps=np.zeros(population.actions),
        rests=np.zeros(population.actions),
        worth=worth[:, None],
        common=np.zeros(population.count),
        most=np.ones(population.count),
        width=1.0,
        reach=np.ones(population.count),
    )


@register.utility("orders", units=say.orders)
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
        rows = _listed(menu, population.actions)
    else:
        if side not in {"buy", "sell", "both"}:
            raise ValueError(f"side = {side!r}: give 'buy', 'sell' or 'both'")
        numbers("size", size, POSITIVE)
        each, over = divmod(population.actions - 1, 2 if side == "both" else 1)
        if over or not each:
            told = f"{population.actions} actions; give one for no order, and equal sides"
            raise ValueError(told)
        parts = {"buy": [size], "sell": [-size], "both": [size, -size]}[side]
        sent = [_menu(part, _spaced(low, high, each), asset) for part in parts]
        rows = np.concatenate([np.zeros((1, 3)), *sent])[:, None]
    own: Any = {"value": value, "common": common, "most": most, "width": width}
    return _traders(population, rows, keeps=keeps, rests=rests, **own)


def _listed(menu: ArrayLike, actions: int) -> Array:
    """Return the orders (A, m, 3) of a menu: units, limit and good of each."""
    cure = f"give {actions} rows, an action each, of units, limit and good of every order"
    try:
        rows = np.asarray(menu, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"menu: {cure}, in numbers and equally many") from error
    if rows.ndim != 2 or len(rows) != actions or not rows.shape[1] or rows.shape[1] % 3:
        raise ValueError(f"menu has shape {rows.shape}; {cure}")
    return rows.reshape(actions, -1, 3)


@register.utility("quotes", units=say.orders)
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
    half = _spaced(low, high, population.actions)[:, None] / 2
    rows = _two_sided(size, half, middle=middle, asset=asset)
    return _traders(population, rows, value=value, common=common, most=most, width=width)


@register.utility("ladder", units=say.orders)
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
    last = step * (levels - 0.5)
    if levels > 0 and not 0 <= middle - last <= middle + last <= 1:
        raise ValueError(f"levels = {levels} of step {step:g}: give limits in [0, 1]")
    depth = _spaced(low, high, population.actions)[:, None]
    rows = _two_sided(depth, step * (np.arange(levels) + 0.5), middle=middle, asset=asset)
    return _traders(population, rows, value=value, common=common, most=most, width=width)


def _menu(units: ArrayLike, limit: Array, asset: int) -> Array:
    return np.stack(np.broadcast_arrays(units, limit, float(asset)), -1)


def _two_sided(units: ArrayLike, away: Any, *, middle: float, asset: int) -> Array:
    """Return rows of a menu (A, 2 m, 3): bids for units at prices below the middle, then asks."""
    sent = np.asarray(units)
    return np.hstack([_menu(sent, middle - away, asset), _menu(-sent, middle + away, asset)])


def _spaced(low: float, high: float, count: int) -> Array:
    ends = numbers("low, high", (low, high))
    return np.linspace(float(ends[0]), float(ends[1]), count)


def _traders(  # noqa: PLR0913 - keyword-only from the third
    population: Population,
    rows: Array,
    *,
    value: ArrayLike,
    common: ArrayLike,
    most: float | None,
    width: float,
    keeps: bool = False,
    rests: bool = True,
) -> Orders:
    """Return the losses of traders with one menu (A, m, 3)."""
    worth = population.each("value", value, SHARE)
    shared = population.each("common", common, SHARE)
    units, limit, asset = (population.repeated(part) for part in np.moveaxis(rows, -1, 0))
    goods = np.arange(population.goods)
    require("asset", asset, np.isin(asset, goods), f"goods are numbered 0 to {goods[-1]}")
    require("limit", limit, (limit >= 0) & (limit <= 1), "give limits in [0, 1]")
    if not width > 0:
        raise ValueError(f"width = {width}: give a positive number")
    largest = float(np.abs(rows[..., 0]).sum(1).max())
    least = 2 * largest if most is None else most
    if not 0 < largest <= least:
        raise ValueError(f"most = {least:g}: the largest action sends {largest:g} units")
    worst = np.maximum(worth + shared, 1 - worth) + MOST_FEE
    each = np.full(population.count, float(least))
    return order_losses(
        units,
        limit,
        asset=asset,
        keeps=np.full(population.actions, float(keeps)),
        rests=np.full(population.actions, float(rests)),
        worth=np.repeat(worth[:, None], population.goods, axis=1),
        common=shared,
        most=each,
        width=width,
        reach=each * worst,
    )
