r"""Traders at an order book who choose an order by a rule: they neither learn nor follow.

Each class is a ``ScriptedCrowd`` under the name that a cohort's ``response`` has in a scenario:

    zero-intelligence   any order, or any that cannot lose (Gode and Sunder 1993)
    informed            the order that gains most at the last price if a unit is worth what its
                        signal says; one with a limit that could lose is left out
    sniper              the same, at the quotes that it sees: it takes what is mispriced
    linear-insider      the order nearest to strength (signal - 1/2) units (Kyle 1985)

A trader's menu of orders is its loss, of the form ``Orders``: an action is a set of at most m
orders, each of a number of units (below 0 for a sale), a limit price and a good. A unit is worth
W + C f to an agent (``agents.utilities.order_menus``), f the fundamental. Those who are informed
have a signal of f (``signal`` of their cohort).

Shapes: N agents, A actions, m orders of an action.
"""

from typing import Any

import numpy as np

from regretless.agents.cohorts.scripted_agents import HeardForecasts, ScriptedCrowd
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.losses.orders import Orders
from regretless.market.records import Context

NEUTRAL_FUNDAMENTAL = 0.5  # what a fundamental is taken to be where nothing is known of it
AGGRESSIVENESS_WEIGHT = 1e-9  # of limits in a score: they decide only between equal gains


class Trader(ScriptedCrowd):
    """What the traders share: a menu of orders, and no memory but the random stream."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        if not isinstance(loss, Orders):
            raise UserError(f'a trader sends orders, not a {loss.form} loss; use utility "orders"')
        self.orders: Orders = loss
        self.good_of_order = loss.asset.astype(np.intp)  # (N, A, m)
        self.sends_orders: Mask = (loss.units != 0).any(2)  # which actions send an order (N, A)
        self._private_value = np.take_along_axis(loss.private_value, self.good_of_order, axis=2)

    def state(self) -> dict[str, Any]:
        return {}

    def value_of_units(self, fundamentals: Array) -> Array:
        """Return what a unit of each order's good is worth (N, A, m), given fundamentals (N,)."""
        common_value = self.orders.common_weight * fundamentals  # (N,)
        return np.asarray(self._private_value + common_value[:, None, None])

    def cannot_lose(self, value_of_units: Array) -> Mask:
        """Return which actions (N, A) send orders, none of which could lose at values (N, A, m)."""
        units = self.orders.units
        gains_at_limit = np.sign(units) * (value_of_units - self.orders.limit) >= 0
        is_harmless = gains_at_limit | (units == 0)
        return np.asarray(is_harmless.all(2) & self.sends_orders)

    @property
    def quotes(self) -> Any:
        """What is on the book; UserError without one."""
        book = self.book
        if book is None:
            name = type(self).__name__
            raise UserError(f'{name} reads an order book; give market = {{ kind = "order-book" }}')
        return book

    def signals(self, contexts: Context) -> Array:
        """Return each agent's signal (N,); UserError without one."""
        if not contexts.own:
            name = type(self).__name__
            raise UserError(f"{name} has no signal; give its cohort signal = {{ noise = 0.0 }}")
        first_signal = next(iter(contexts.own.values()))
        return np.asarray(first_signal, dtype=np.float64)


@register.agent("zero-intelligence")
class ZeroIntelligence(Trader):
    """Orders at random; ``constrained`` to those that cannot lose, at a fundamental of 1/2.

    ``constrained`` is one truth value, or one for each agent. An agent with no order to choose
    sends none. UserError if an agent has no action without an order either.
    """

    def __init__(
        self, loss: Any, rng: np.random.Generator, *, constrained: bool | Array = True
    ) -> None:
        super().__init__(loss, rng)
        value_of_units = self.value_of_units(np.full(len(loss), NEUTRAL_FUNDAMENTAL))
        is_constrained = np.reshape(constrained, (-1, 1))
        allowed = np.where(is_constrained, self.cannot_lose(value_of_units), self.sends_orders)
        may_do_something = allowed.any(1, keepdims=True)
        # whose orders may all lose sends none
        allowed = np.where(may_do_something, allowed, ~self.sends_orders)
        if not allowed.any(1).all():
            raise UserError("zero-intelligence: every order of some agent loses; add no order")
        self._fixed_strategy = allowed / allowed.sum(1, keepdims=True)

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> Array:
        return np.asarray(self._fixed_strategy)


@register.agent("informed")
class Informed(Trader):
    """Trades on its signal if the last price is wrong."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        aggressiveness = (np.sign(self.orders.units) * self.orders.limit).sum(2)  # (N, A)
        self._score_of_limits = AGGRESSIVENESS_WEIGHT * aggressiveness
        self._idle_action = np.where(self.sends_orders, -np.inf, 0.0).argmax(1)  # (N,)

    def arrive(self) -> None:
        """UserError where there is no book to read."""
        _ = self.quotes

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> Array:
        """Return the actions (N,): the order that gains most, or none if none gains.

        Of orders that gain equally the one with the more aggressive limit is sent.
        """
        orders = self.orders
        value_of_units = self.value_of_units(self.signals(contexts))
        price = self.price_to_compare(orders.units, self.good_of_order)
        gain = (orders.units * (value_of_units - price)).sum(2)
        is_candidate = self.candidates(value_of_units) & (gain > 0)
        score = np.where(is_candidate, gain + self._score_of_limits, 0.0)
        has_candidate = is_candidate.any(1)
        return np.asarray(np.where(has_candidate, score.argmax(1), self._idle_action))

    def price_to_compare(self, units: Array, asset: Indices) -> Array:
        """Return the price that each order is compared with (N, A, m).

        ``units`` and ``asset`` (N, A, m) are the orders' units and goods.
        """
        return np.asarray(self.quotes.mid[asset])

    def candidates(self, value_of_units: Array) -> Mask:
        """Return which actions (N, A) come into question, where units are worth (N, A, m)."""
        return self.cannot_lose(value_of_units)


@register.agent("sniper")
class Sniper(Informed):
    """Trades on its signal with the quotes that it sees, before they are withdrawn."""

    def price_to_compare(self, units: Array, asset: Indices) -> Array:
        """Return the best quote of the other side, out of reach where there is none (N, A, m)."""
        quotes = self.quotes
        ask = np.where(np.isnan(quotes.ask), 2.0, quotes.ask)
        bid = np.where(np.isnan(quotes.bid), -1.0, quotes.bid)
        return np.asarray(np.where(units > 0, ask[asset], bid[asset]))

    def candidates(self, value_of_units: Array) -> Mask:
        return np.asarray(self.sends_orders)


@register.agent("linear-insider")
class LinearInsider(Trader):
    """Trades in proportion to its signal: ``strength`` units for one that is 1 above 1/2.

    ``strength`` is one number, or one for each agent.
    """

    def __init__(
        self, loss: Any, rng: np.random.Generator, *, strength: float | Array = 1.0
    ) -> None:
        super().__init__(loss, rng)
        self.strength = np.broadcast_to(strength, len(loss))

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> Array:
        target_units = self.strength * (self.signals(contexts) - NEUTRAL_FUNDAMENTAL)
        units_of_action = self.orders.units.sum(2)
        return np.asarray(np.abs(units_of_action - target_units[:, None]).argmin(1))
