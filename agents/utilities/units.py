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

MOST = 4  # parts of an action that its name lists
LEAST = 5e-4  # of a holding, to be listed


@dataclass(frozen=True, eq=False)
class OutcomeUnits:
    """What the coordinates of an outcome are as they are measured."""

    names: Sequence[str]
    low: Array  # (d,), what 0 stands for
    high: Array  # and 1
    units: Sequence[str]  # empty where none is known
    known: bool  # whether the file says how outcomes are measured

    def written(self, coordinate: int, share: float) -> str:
        """Write the value at a share of a coordinate's scale, with its unit."""
        low, high = self.low[coordinate], self.high[coordinate]
        unit = self.units[coordinate]
        return f"{low + (high - low) * share:.6g}" + (f" {unit}" if unit else "")

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
        found = np.asarray(self.quantities)
        found = found[np.minimum(agents, len(found) - 1), actions]
        if not len(found):  # nobody has played yet
            return np.empty(0, dtype=object)
        rows = np.round(found.reshape(len(found), -1), 9) + 0.0  # no -0
        unique, where = np.unique(rows, axis=0, return_inverse=True)
        texts = [self.text(row.reshape(found.shape[1:])) for row in unique]
        return np.array(texts, dtype=object)[where.ravel()]

    def common(self) -> list[str]:
        """Name the actions of all agents together: by the mean quantities where they differ."""
        found = np.asarray(self.quantities)
        mean = Units(quantities=found.mean(0, keepdims=True), text=self.text)
        count = found.shape[1]
        names = mean.names(np.zeros(count, dtype=np.intp), np.arange(count))
        alike = (found == found[:1]).reshape(len(found), count, -1).all(axis=(0, 2))
        return [name if same else f"{name} (mean)" for name, same in zip(names, alike, strict=True)]


Parameters = Mapping[str, Any]


def newsvendor(outcomes: OutcomeUnits, loss: Loss, parameters: Parameters) -> Units:
    """Say orders in units of demand; costs scale with it."""
    at = parameters.get("coordinate", 0)
    orders = np.ravel(parameters.get("orders", np.linspace(0, 1, loss.actions)))
    width, unit = outcomes.of_prices(at)
    low, span = outcomes.low[at], outcomes.high[at] - outcomes.low[at]
    named = unit or (outcomes.names[at] if outcomes.known else "")
    return Units(width, 0.0, named, orders[None], lambda order: f"order {low + span * order:.6g}")


def portfolio(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say holdings; utility scales with returns where all of wealth is held, at one scale."""
    shares = np.asarray(loss.weights)
    one = _of_sums(outcomes, shares.sum(-1), "return")
    return replace(one, quantities=shares, text=_holdings(outcomes))


def sums(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say the unit of the outcomes, of who adds up shares of them."""
    shares = -np.asarray(loss.weights).sum(-1) * np.asarray(loss.unit_scale)[..., None]
    return _of_sums(outcomes, shares, "")


def _of_sums(outcomes: OutcomeUnits, shares: Array, other: str) -> Units:
    """Return the unit of sums of outcomes, of shares (..., A) in all, where they have one scale."""
    one = np.ptp(outcomes.low) == 0 and np.ptp(outcomes.high) == 0 and outcomes.known
    told = set(outcomes.units)
    unit = told.pop() if len(told) == 1 and told != {""} else other
    rising = outcomes.high[0] > outcomes.low[0] and np.abs(shares - 1).max() <= 1e-9
    if not (one and rising and unit):
        return Units()
    return Units(float(outcomes.high[0] - outcomes.low[0]), -float(outcomes.low[0]), unit)


def wealth(outcomes: OutcomeUnits, loss: Any, parameters: Parameters) -> Units:
    """Say holdings of who has exponential utility, which has no unit."""
    aversion = np.asarray(parameters.get("risk_aversion", 2.0), dtype=np.float64)
    shares = np.asarray(loss.weights) / -aversion.reshape(-1, 1, 1)
    return Units(quantities=shares, text=_holdings(outcomes))


def growth(outcomes: OutcomeUnits, _: Loss, parameters: Parameters) -> Units:
    """Say holdings; utility is the logarithm of what wealth is multiplied by."""
    shares = np.asarray(parameters["weights"], dtype=np.float64)[None]
    return Units(1.0, 0.0, "log return", shares, _holdings(outcomes))


def _holdings(outcomes: OutcomeUnits) -> Callable[[Array], str]:
    def text(shares: Array) -> str:
        order = np.argsort(-np.abs(shares), kind="stable")
        held = [j for j in order if abs(shares[j]) >= LEAST]
        parts = [f"{shares[j]:.3g} of {outcomes.names[j]}" for j in held[:MOST]]
        more = f" and {len(held) - MOST} more" if len(held) > MOST else ""
        return f"hold {', '.join(parts)}{more}" if parts else "hold cash"

    return text


def firm(outcomes: OutcomeUnits, loss: Any, parameters: Parameters) -> Units:
    """Say output; profit in the unit of the price."""
    at = parameters.get("coordinate", 0)
    sold = -np.asarray(loss.weights)[..., at] * np.asarray(loss.unit_scale)[..., None]
    width, unit = outcomes.of_prices(at)
    return Units(width, 0.0, unit, sold, lambda output: f"sell {float(output):.6g}")


def trader(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say orders at a limit for one of several goods; gains in the unit of the price."""
    units = np.asarray(loss.quantity) * np.asarray(loss.unit_scale)[..., None, None]
    limit = np.broadcast_to(loss.limit, units.shape)
    good = np.broadcast_to(np.arange(units.shape[-1], dtype=np.float64), units.shape)
    return _of_orders(outcomes, np.stack([units, limit, good], axis=-1))


def orders(outcomes: OutcomeUnits, loss: Any, _: Parameters) -> Units:
    """Say orders at limits; gains in the unit of the price."""
    parts = [np.asarray(part) for part in (loss.units, loss.limit, loss.asset)]
    return _of_orders(outcomes, np.stack(parts, axis=-1))


def _of_orders(outcomes: OutcomeUnits, rows: Array) -> Units:
    several = len(outcomes.names) > 1
    width, unit = outcomes.of_prices()
    alike = np.ptp(outcomes.low) == 0 and np.ptp(outcomes.high) == 0 and len({*outcomes.units}) == 1

    def text(menu: Array) -> str:
        parts = []
        for units, limit, good in menu[np.abs(menu[:, 0]) > 1e-12]:
            what = f" of {outcomes.names[int(good)]}" if several else ""
            side, price = "buy" if units > 0 else "sell", outcomes.written(int(good), limit)
            parts.append(f"{side} {abs(units):.4g}{what} at {price}")
        more = f" and {len(parts) - MOST} more" if len(parts) > MOST else ""
        return ", ".join(parts[:MOST]) + more if parts else "no order"

    return Units(*((width, 0.0, unit) if alike else (1.0, 0.0, "")), rows, text)


def bettor(_: OutcomeUnits, loss: Loss, __: Parameters) -> Units:
    """Say shares of wealth that are bet; utility is the logarithm of growth."""
    count = loss.actions
    shares = np.arange(1, count + 1)[None] / (count + 1)
    return Units(1.0, 0.0, "log return", shares, lambda share: f"bet {float(share):.4g} of wealth")


def depositor(_: OutcomeUnits, __: Loss, ___: Parameters) -> Units:
    """Say whether to wait; gains are in deposits."""
    choices = np.arange(2.0)[None]
    return Units(1.0, 0.0, "deposits", choices, lambda taken: "withdraw" if taken else "wait")
