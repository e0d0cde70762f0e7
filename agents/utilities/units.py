"""What losses and actions of a utility are in the units of its users.

A utility is registered with a function that describes its units,

    @register.utility("firm", units=firm_units)

The assembly of a scenario calls it with the outcomes' units, the losses of all agents and the
parameters of the cohort; it returns ``Units``, by which tables and reports name actions and
convert losses. A utility without one has units of its own, and its actions are numbers.

Shapes: N agents, A actions, d coordinates of an outcome.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.losses import Loss

MAX_LISTED_PARTS = 4  # goods or orders of an action that its name lists
MIN_LISTED_HOLDING = 5e-4  # the smallest share of wealth that a name lists
COST = "cost"  # the unit of costs per piece that no currency names
QUANTITY_DECIMALS = 9  # to which quantities are rounded before they are named

Parameters = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class OutcomeUnits:
    """What the coordinates of an outcome are as they are measured."""

    names: Sequence[str]
    low: Array  # (d,), the measured value that 0 stands for
    high: Array  # (d,), the measured value that 1 stands for
    units: Sequence[str]  # empty where none is known
    known: bool  # whether the file says how outcomes are measured
    currency: str = ""  # of the cohort's costs, prices and gains; empty where none is named

    def written(self, coordinate: int, share: float) -> str:
        """Return the value at a share of a coordinate's scale as text, with its unit."""
        low = self.low[coordinate]
        high = self.high[coordinate]
        number = f"{low + (high - low) * share:.6g}"
        unit = self.units[coordinate]
        return f"{number} {unit}" if unit else number

    def of_prices(self, coordinate: int = 0) -> tuple[float, str]:
        """Return what a difference of 1 in [0, 1] is as it is measured, and its unit."""
        if not self.known:
            return 1.0, ""
        difference = float(np.abs(self.high - self.low)[coordinate])
        return difference, self.units[coordinate]

    def money_of_prices(self, coordinate: int = 0) -> tuple[float, str]:
        """Return what a difference of 1 in a price is, and the currency or else the unit of it."""
        difference, unit = self.of_prices(coordinate)
        return difference, self.currency or unit

    def has_one_scale(self) -> bool:
        """Return whether 0 and 1 stand for the same numbers in every coordinate."""
        return bool(np.ptp(self.low) == 0 and np.ptp(self.high) == 0)


@dataclass(frozen=True, eq=False)
class Units:
    """What a cohort's losses and actions are in the units of its users.

    A loss in these units is ``shift`` plus ``scale`` times that in the utility's own.
    """

    scale: float = 1.0
    shift: float = 0.0
    name: str = ""  # of the unit; empty where it is the utility's own
    quantities: Array | None = None  # (N, A, ...), or (1, A, ...) where all have the same
    text: Callable[[Array], str] = str  # writes the quantities of an action

    def names(self, agents: Indices, actions: Indices) -> Any:
        """Name an action of each agent: texts (M,) for numbers of agents and actions (M,)."""
        quantities = np.asarray(self.quantities)
        rows = np.minimum(agents, len(quantities) - 1)  # all have row 0 where there is one row
        chosen = quantities[rows, actions]
        if not len(chosen):  # nobody has played yet
            return np.empty(0, dtype=object)
        flat = np.round(chosen.reshape(len(chosen), -1), QUANTITY_DECIMALS) + 0.0  # no -0
        different, index_of_text = np.unique(flat, axis=0, return_inverse=True)
        texts = [self.text(row.reshape(chosen.shape[1:])) for row in different]
        return np.array(texts, dtype=object)[index_of_text.ravel()]

    def common(self) -> list[str]:
        """Name the actions of all agents together: by the mean quantities where they differ."""
        quantities = np.asarray(self.quantities)
        n_agents, n_actions = quantities.shape[:2]
        mean_agent = Units(quantities=quantities.mean(0, keepdims=True), text=self.text)
        only_agent = np.zeros(n_actions, dtype=np.intp)
        names = mean_agent.names(only_agent, np.arange(n_actions))
        equals_first = (quantities == quantities[:1]).reshape(n_agents, n_actions, -1)
        is_same_for_all = equals_first.all(axis=(0, 2))
        common_names = []
        for name, is_same in zip(names, is_same_for_all, strict=True):
            common_names.append(name if is_same else f"{name} (mean)")
        return common_names


def newsvendor_units(outcomes: OutcomeUnits, loss: Loss, parameters: Parameters) -> Units:
    """Return orders in units of demand; costs per unit of it, which are money, scale with it."""
    coordinate = parameters.get("coordinate", 0)
    evenly_spaced = np.linspace(0, 1, loss.actions)
    orders = np.ravel(parameters.get("orders", evenly_spaced))
    scale, _ = outcomes.of_prices(coordinate)
    name = outcomes.currency
    if not name and outcomes.known:
        name = COST
    low = outcomes.low[coordinate]
    width = outcomes.high[coordinate] - low

    def write_order(order: Array) -> str:
        return f"order {low + width * order:.6g}"

    return Units(scale=scale, name=name, quantities=orders[None], text=write_order)


def portfolio_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Return holdings; utility scales with returns where all of wealth is held, at one scale."""
    holdings = np.asarray(loss.weights)
    units = _units_of_sums(outcomes, holdings.sum(-1), fallback="return")
    return replace(units, quantities=holdings, text=_holding_writer(outcomes))


def sum_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Return the unit of the outcomes, for those who add up shares of them."""
    shares = -np.asarray(loss.weights).sum(-1) * np.asarray(loss.unit_scale)[..., None]
    return _units_of_sums(outcomes, shares, fallback="")


def _units_of_sums(outcomes: OutcomeUnits, shares: Array, *, fallback: str) -> Units:
    """Return the unit of sums of outcomes, where outcomes have one scale and shares sum to 1.

    ``shares`` (..., A) are the sums of an action's shares. Without a unit that all outcomes have
    it is named by the ``fallback``; with an empty one the utility has a unit of its own.
    """
    unit = fallback
    different_units = set(outcomes.units)
    if len(different_units) == 1 and different_units != {""}:
        unit = different_units.pop()
    if not fallback and outcomes.currency:
        unit = outcomes.currency
    is_rising = outcomes.high[0] > outcomes.low[0]
    sums_to_one = np.abs(shares - 1).max() <= 1e-9
    if not (outcomes.known and outcomes.has_one_scale() and is_rising and sums_to_one and unit):
        return Units()
    low = float(outcomes.low[0])
    return Units(scale=float(outcomes.high[0] - outcomes.low[0]), shift=-low, name=unit)


def wealth_units(outcomes: OutcomeUnits, loss: Any, parameters: Parameters) -> Units:
    """Return holdings of those with exponential utility, which has no unit."""
    risk_aversion = np.asarray(parameters.get("risk_aversion", 2.0), dtype=np.float64)
    holdings = np.asarray(loss.weights) / -risk_aversion.reshape(-1, 1, 1)
    return Units(quantities=holdings, text=_holding_writer(outcomes))


def growth_units(outcomes: OutcomeUnits, _: Loss, parameters: Parameters) -> Units:
    """Return holdings; utility is the logarithm of what wealth is multiplied by."""
    holdings = np.asarray(parameters["weights"], dtype=np.float64)[None]
    return Units(name="log return", quantities=holdings, text=_holding_writer(outcomes))


def _holding_writer(outcomes: OutcomeUnits) -> Callable[[Array], str]:
    """Return a function that writes holdings (d,), the largest first."""

    def write_holdings(holdings: Array) -> str:
        largest_first = np.argsort(-np.abs(holdings), kind="stable")
        held = [j for j in largest_first if abs(holdings[j]) >= MIN_LISTED_HOLDING]
        if not held:
            return "hold cash"
        parts = [f"{holdings[j]:.3g} of {outcomes.names[j]}" for j in held]
        return f"hold {_listed(parts)}"

    return write_holdings


def firm_units(outcomes: OutcomeUnits, loss: Any, parameters: Parameters) -> Units:
    """Return output; profit in the unit of the price."""
    coordinate = parameters.get("coordinate", 0)
    unit_scale = np.asarray(loss.unit_scale)[..., None]
    output = -np.asarray(loss.weights)[..., coordinate] * unit_scale
    scale, unit = outcomes.money_of_prices(coordinate)

    def write_output(quantity: Array) -> str:
        return f"sell {float(quantity):.6g}"

    return Units(scale=scale, name=unit, quantities=output, text=write_output)


def trader_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Return orders at a limit for one of several goods; gains in the unit of the price."""
    units_per_quantity = np.asarray(loss.unit_scale)  # (N,), of each agent
    units = np.asarray(loss.quantity) * units_per_quantity[..., None, None]  # (N, A, goods)
    limits = np.broadcast_to(loss.limit, units.shape)
    good_numbers = np.arange(units.shape[-1], dtype=np.float64)
    goods = np.broadcast_to(good_numbers, units.shape)
    return _units_of_orders(outcomes, np.stack([units, limits, goods], axis=-1))


def order_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Return orders at limits; gains in the unit of the price."""
    columns = [np.asarray(loss.units), np.asarray(loss.limit), np.asarray(loss.asset)]
    return _units_of_orders(outcomes, np.stack(columns, axis=-1))


def _units_of_orders(outcomes: OutcomeUnits, orders: Array) -> Units:
    """Return the units of menus of orders (N, A, m, 3): units, limit and good of each order."""
    has_several_goods = len(outcomes.names) > 1

    def write_orders(menu: Array) -> str:
        parts = []
        for units, limit, good in menu:
            if abs(units) <= 1e-12:  # no order
                continue
            side = "buy" if units > 0 else "sell"
            quantity = f"{abs(units):.4g}"
            if has_several_goods:
                quantity += f" of {outcomes.names[int(good)]}"
            parts.append(f"{side} {quantity} at {outcomes.written(int(good), limit)}")
        return _listed(parts) if parts else "no order"

    scale = 1.0
    unit = ""
    if outcomes.has_one_scale() and len(set(outcomes.units)) == 1:
        scale, unit = outcomes.money_of_prices()
    return Units(scale=scale, name=unit, quantities=orders, text=write_orders)


def _listed(parts: list[str]) -> str:
    """Return the first ``MAX_LISTED_PARTS`` parts as a list, and how many more there are."""
    text = ", ".join(parts[:MAX_LISTED_PARTS])
    n_unlisted = len(parts) - MAX_LISTED_PARTS
    return f"{text} and {n_unlisted} more" if n_unlisted > 0 else text


def seller_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Return prices; profit in the unit of the prices on the menu."""

    def write_price(price: Array) -> str:
        return f"price {float(price):.6g}"

    return Units(name=outcomes.currency, quantities=np.asarray(loss.price), text=write_price)


def bettor_units(_: OutcomeUnits, loss: Loss, __: Parameters) -> Units:
    """Return shares of wealth that are bet; utility is the logarithm of growth."""
    shares = np.arange(1, loss.actions + 1)[None] / (loss.actions + 1)

    def write_share(share: Array) -> str:
        return f"bet {float(share):.4g} of wealth"

    return Units(name="log return", quantities=shares, text=write_share)


def depositor_units(_: OutcomeUnits, __: Loss, ___: Parameters) -> Units:
    """Return whether to wait; gains are in deposits."""

    def write_choice(withdraws: Array) -> str:
        return "withdraw" if withdraws else "wait"

    return Units(name="deposits", quantities=np.arange(2.0)[None], text=write_choice)
