r"""Traders at an order book who choose an order by a rule: they neither learn nor follow.

    zero-intelligence   any order, or any that cannot lose (Gode and Sunder 1993)
    informed            the order that gains most at the last price if a unit is worth what its
                        signal says; one with a limit that could lose is left out
    sniper              the same, at the quotes that it sees: it takes what is mispriced
    linear-insider      the order nearest to strength (value - 1/2) units (Kyle 1985)

A unit is worth W + C f to an agent (``agents.utilities.order_menus``). Those who are informed have
a signal of f (``signal`` of their cohort).
"""

from typing import Any

import numpy as np

from regretless.agents.cohorts.own_agents import Heard, ScriptedCrowd
from regretless.market import register
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.market.losses.orders import Orders
from regretless.market.records import Context


class Trader(ScriptedCrowd):
    """What they share: a menu of orders, and no memory but the random stream."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        if not isinstance(loss, Orders):
            raise UserError(f'a trader sends orders, not a {loss.form} loss; use utility "orders"')
        self.orders: Orders = loss

    def state(self) -> dict[str, Any]:
        return {}

    def worth(self, f: Array) -> Array:
        """Return what a unit of each action's goods is worth (N, A, m), at fundamentals (N,)."""
        loss = self.orders
        own = np.take_along_axis(loss.worth, loss.asset.astype(np.intp), axis=2)
        return np.asarray(own + (loss.common * f)[:, None, None])

    def safe(self, worth: Array) -> Mask:
        """Say which actions send orders, and none that could lose (N, A)."""
        units = self.orders.units
        fine = (np.sign(units) * (worth - self.orders.limit) >= 0) | (units == 0)
        return np.asarray(fine.all(2) & self.sends)

    @property
    def sends(self) -> Mask:
        """Which actions send an order (N, A)."""
        return np.asarray((self.orders.units != 0).any(2))

    @property
    def quotes(self) -> Any:
        """What is on the book; UserError without one."""
        if self.book is None:
            name = type(self).__name__
            raise UserError(f'{name} reads an order book; give market = {{ kind = "order-book" }}')
        return self.book

    def signals(self, contexts: Context) -> Array:
        """Return each agent's signal (N,); UserError without one."""
        if not contexts.own:
            name = type(self).__name__
            raise UserError(f"{name} has no signal; give its cohort signal = {{ noise = 0.0 }}")
        return np.asarray(next(iter(contexts.own.values())), dtype=np.float64)


@register.agent("zero-intelligence")
class ZeroIntelligence(Trader):
    """Orders at random; ``constrained`` to those that cannot lose, at a fundamental of 1/2."""

    def __init__(
        self, loss: Any, rng: np.random.Generator, *, constrained: bool | Array = True
    ) -> None:
        super().__init__(loss, rng)
        worth = self.worth(np.full(len(loss), 0.5))
        among = np.where(np.reshape(constrained, (-1, 1)), self.safe(worth), self.sends)
        among = np.where(among.any(1, keepdims=True), among, ~self.sends)
        if not among.any(1).all():
            raise UserError("zero-intelligence: every order of some agent loses; add no order")
        self._strategy = among / among.sum(1, keepdims=True)

    def act_many(self, forecasts: Heard, contexts: Context) -> Array:
        return np.asarray(self._strategy)


@register.agent("informed")
class Informed(Trader):
    """Trades on its signal if the last price is wrong."""

    def arrive(self) -> None:
        """UserError where there is no book to read."""
        _ = self.quotes

    def act_many(self, forecasts: Heard, contexts: Context) -> Array:
        loss, worth = self.orders, self.worth(self.signals(contexts))
        reference = self.reference(loss.units, loss.asset.astype(np.intp))
        gain = (loss.units * (worth - reference)).sum(2)
        eager = np.sign(loss.units) * loss.limit
        fine = self.fits(worth) & (gain > 0)
        score = np.where(fine, gain + 1e-9 * eager.sum(2), 0.0)
        idle = np.where(self.sends, -np.inf, 0.0)
        return np.asarray(np.where(fine.any(1), score.argmax(1), idle.argmax(1)))

    def reference(self, units: Array, asset: Array) -> Array:
        """Return the price that each order is compared with (N, A, m)."""
        return np.asarray(self.quotes.mid[asset])

    def fits(self, worth: Array) -> Mask:
        """Say which actions come into question (N, A)."""
        return self.safe(worth)


@register.agent("sniper")
class Sniper(Informed):
    """Trades on its signal with the quotes that it sees, before they are withdrawn."""

    def reference(self, units: Array, asset: Array) -> Array:
        """Return the best quote of the other side, out of reach where there is none (N, A, m)."""
        ask, bid = np.nan_to_num(self.quotes.ask, nan=2.0), np.nan_to_num(self.quotes.bid, nan=-1.0)
        return np.asarray(np.where(units > 0, ask[asset], bid[asset]))

    def fits(self, worth: Array) -> Mask:
        return np.asarray(self.sends)


@register.agent("linear-insider")
class LinearInsider(Trader):
    """Trades in proportion to its signal: ``strength`` units for one that is 1 above 1/2."""

    def __init__(
        self, loss: Any, rng: np.random.Generator, *, strength: float | Array = 1.0
    ) -> None:
        super().__init__(loss, rng)
        self.strength = np.broadcast_to(strength, len(loss))

    def act_many(self, forecasts: Heard, contexts: Context) -> Array:
        wanted = self.strength * (self.signals(contexts) - 0.5)
        return np.asarray(np.abs(self.orders.units.sum(2) - wanted[:, None]).argmin(1))
