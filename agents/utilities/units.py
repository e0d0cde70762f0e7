"""What losses and actions of a utility are in the units of its users.

A maker is registered with a function that says so,

    @register.utility("firm", units=firm_units)

which gets the outcomes' units, the losses of all agents and their parameters, and returns
``Units``. A utility without one has units of its own, and its actions are numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.losses import Loss

MAX_LISTED_PARTS = 4  # parts of an action that its name lists
MIN_LISTED_HOLDING = 5e-4  # of a holding, to be listed


@dataclass(frozen=True, eq=False)
class OutcomeUnits:
    """What the coordinates of an outcome are as they are measured."""

    names: Sequence[str]
    low: Array  # (d,), what 0 stands for
    high: Array  # and 1
    units: Sequence[str]  # empty where none is known
    known: bool  # whether the file says how outcomes are measured

    def written(self, coordinate: int, position: float) -> str:
        """Write the value at a share of a coordinate's scale, with its unit."""
        low, high = self.low[coordinate], self.high[coordinate]
        unit = self.units[coordinate]
        return f"{low + (high - low) * position:.6g}" + (f" {unit}" if unit else "")

    def of_prices(self, coordinate: int = 0) -> tuple[float, str]:
        """Return what a difference of 1 in [0, 1] is, and its unit."""
        width = float(np.abs(self.high - self.low)[coordinate])
        return (width, self.units[coordinate]) if self.known else (1.0, "")


@dataclass(frozen=True, eq=False)
class Units:
    """What a cohort's losses and actions are in the units of its users.

    A loss in these units is ``shift`` plus ``scale`` times that in the utility's own.
    """

    scale: float = 1.0
    shift: float = 0.0
    name: str = ""  # empty where it is the utility's own
    quantities: Array | None = None  # (N, A, ...), or (1, A, ...) where all have the same
    text: Callable[[Array], str] = str  # writes the quantities of an action

    def names(self, agents: Indices, actions: Indices) -> Any:
        """Name an action of each agent: texts (M,) for numbers of agents and actions (M,)."""
        quantities = np.asarray(self.quantities)
        quantities = quantities[np.minimum(agents, len(quantities) - 1), actions]
        if not len(quantities):  # nobody has played yet
            return np.empty(0, dtype=object)
        rows = np.round(quantities.reshape(len(quantities), -1), 9) + 0.0  # no -0
        unique, row_of_text = np.unique(rows, axis=0, return_inverse=True)
        texts = [self.text(row.reshape(quantities.shape[1:])) for row in unique]
        return np.array(texts, dtype=object)[row_of_text.ravel()]

    def common(self) -> list[str]:
        """Name the actions of all agents together: by the mean quantities where they differ."""
        quantities = np.asarray(self.quantities)
        mean_units = Units(quantities=quantities.mean(0, keepdims=True), text=self.text)
        n_actions = quantities.shape[1]
        names = mean_units.names(np.zeros(n_actions, dtype=np.intp), np.arange(n_actions))
        is_same = (
            (quantities == quantities[:1]).reshape(len(quantities), n_actions, -1).all(axis=(0, 2))
        )
        return [
            name if is_same_for_all else f"{name} (mean)"
            for name, is_same_for_all in zip(names, is_same, strict=True)
        ]


Parameters = Mapping[str, Any]


def newsvendor_units(outcomes: OutcomeUnits, loss: Loss, parameters: Parameters) -> Units:
    """Say orders in units of demand; costs scale with it."""
    coordinate = parameters.get("coordinate", 0)
    orders = np.ravel(parameters.get("orders", np.linspace(0, 1, loss.actions)))
    scale, unit = outcomes.of_prices(coordinate)
    lowest, span = outcomes.low[coordinate], outcomes.high[coordinate] - outcomes.low[coordinate]
    unit_name = unit or (outcomes.names[coordinate] if outcomes.known else "")
    return Units(
        scale, 0.0, unit_name, orders[None], lambda order: f"order {lowest + span * order:.6g}"
    )


def portfolio_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say holdings; utility scales with returns where all of wealth is held, at one scale."""
    shares = np.asarray(loss.weights)
    money_units = _units_of_sums(outcomes, shares.sum(-1), "return")
    return replace(money_units, quantities=shares, text=_holding_writer(outcomes))


def sum_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say the unit of the outcomes, of who adds up shares of them."""
    shares = -np.asarray(loss.weights).sum(-1) * np.asarray(loss.unit_scale)[..., None]
    return _units_of_sums(outcomes, shares, "")


def _units_of_sums(outcomes: OutcomeUnits, shares: Array, fallback: str) -> Units:
    """Return the unit of sums of outcomes, of shares (..., A) in all, where they have one scale."""
    has_one_scale = np.ptp(outcomes.low) == 0 and np.ptp(outcomes.high) == 0 and outcomes.known
    unit_names = set(outcomes.units)
    unit = unit_names.pop() if len(unit_names) == 1 and unit_names != {""} else fallback
    adds_up = outcomes.high[0] > outcomes.low[0] and np.abs(shares - 1).max() <= 1e-9
    if not (has_one_scale and adds_up and unit):
        return Units()
    return Units(float(outcomes.high[0] - outcomes.low[0]), -float(outcomes.low[0]), unit)


def wealth_units(outcomes: OutcomeUnits, loss: Any, parameters: Parameters) -> Units:
    """Say holdings of who has exponential utility, which has no unit."""
    aversion = np.asarray(parameters.get("risk_aversion", 2.0), dtype=np.float64)
    shares = np.asarray(loss.weights) / -aversion.reshape(-1, 1, 1)
    return Units(quantities=shares, text=_holding_writer(outcomes))


def growth_units(outcomes: OutcomeUnits, _: Loss, parameters: Parameters) -> Units:
    """Say holdings; utility is the logarithm of what wealth is multiplied by."""
    shares = np.asarray(parameters["weights"], dtype=np.float64)[None]
    return Units(1.0, 0.0, "log return", shares, _holding_writer(outcomes))


def _holding_writer(outcomes: OutcomeUnits) -> Callable[[Array], str]:
    def write_holdings(shares: Array) -> str:
        order = np.argsort(-np.abs(shares), kind="stable")
        held_goods = [j for j in order if abs(shares[j]) >= MIN_LISTED_HOLDING]
        descriptions = [
            f"{shares[j]:.3g} of {outcomes.names[j]}" for j in held_goods[:MAX_LISTED_PARTS]
        ]
        rest_of_list = (
            f" and {len(held_goods) - MAX_LISTED_PARTS} more"
            if len(held_goods) > MAX_LISTED_PARTS
            else ""
        )
        return f"hold {', '.join(descriptions)}{rest_of_list}" if descriptions else "hold cash"

    return write_holdings


def firm_units(outcomes: OutcomeUnits, loss: Any, parameters: Parameters) -> Units:
    """Say output; profit in the unit of the price."""
    coordinate = parameters.get("coordinate", 0)
    output = -np.asarray(loss.weights)[..., coordinate] * np.asarray(loss.unit_scale)[..., None]
    scale, unit = outcomes.of_prices(coordinate)
    return Units(scale, 0.0, unit, output, lambda output: f"sell {float(output):.6g}")


def trader_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say orders at a limit for one of several goods; gains in the unit of the price."""
    signed_quantity = np.asarray(loss.quantity) * np.asarray(loss.unit_scale)[..., None, None]
    limits = np.broadcast_to(loss.limit, signed_quantity.shape)
    goods = np.broadcast_to(
        np.arange(signed_quantity.shape[-1], dtype=np.float64), signed_quantity.shape
    )
    return _units_of_orders(outcomes, np.stack([signed_quantity, limits, goods], axis=-1))


def order_units(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say orders at limits; gains in the unit of the price."""
    columns = [np.asarray(column) for column in (loss.units, loss.limit, loss.asset)]
    return _units_of_orders(outcomes, np.stack(columns, axis=-1))


def _units_of_orders(outcomes: OutcomeUnits, menus: Array) -> Units:
    has_several_goods = len(outcomes.names) > 1
    scale, unit = outcomes.of_prices()
    has_one_scale = (
        np.ptp(outcomes.low) == 0 and np.ptp(outcomes.high) == 0 and len({*outcomes.units}) == 1
    )

    def write_orders(menu: Array) -> str:
        descriptions = []
        for units, limit, good in menu[np.abs(menu[:, 0]) > 1e-12]:
            of_good = f" of {outcomes.names[int(good)]}" if has_several_goods else ""
            side, price = "buy" if units > 0 else "sell", outcomes.written(int(good), limit)
            descriptions.append(f"{side} {abs(units):.4g}{of_good} at {price}")
        rest_of_list = (
            f" and {len(descriptions) - MAX_LISTED_PARTS} more"
            if len(descriptions) > MAX_LISTED_PARTS
            else ""
        )
        return (
            ", ".join(descriptions[:MAX_LISTED_PARTS]) + rest_of_list
            if descriptions
            else "no order"
        )

    return Units(*((scale, 0.0, unit) if has_one_scale else (1.0, 0.0, "")), menus, write_orders)


def bettor_units(_: OutcomeUnits, loss: Loss, __: Parameters) -> Units:
    """Say shares of wealth that are bet; utility is the logarithm of growth."""
    n_actions = loss.actions
    shares = np.arange(1, n_actions + 1)[None] / (n_actions + 1)
    return Units(1.0, 0.0, "log return", shares, lambda share: f"bet {float(share):.4g} of wealth")


def depositor_units(_: OutcomeUnits, __: Loss, ___: Parameters) -> Units:
    """Say whether to wait; gains are in deposits."""
    choices = np.arange(2.0)[None]
    return Units(1.0, 0.0, "deposits", choices, lambda taken: "withdraw" if taken else "wait")
