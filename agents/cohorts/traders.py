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

from typing import Any, ClassVar

import numpy as np

from regretless.agents.cohorts.scripted_agents import HeardForecasts, ScriptedCrowd
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.losses.orders import Orders
from regretless.market.numerics.pairwise_sum import pairwise_sum
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

    # An order that gains less at its limit is left out: here one that could lose there.
    least_gain_at_limit: ClassVar[float] = 0.0

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        aggressiveness = (np.sign(self.orders.units) * self.orders.limit).sum(2)  # (N, A)
        self._score_of_limits = AGGRESSIVENESS_WEIGHT * aggressiveness
        self._idle_action = np.where(self.sends_orders, -np.inf, 0.0).argmax(1)  # (N,)

    def arrive(self) -> None:
        """UserError where there is no book to read."""
        _ = self.quotes

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> Indices:
        """Return the actions (N,): the order that gains most, or none if none gains.

        Of orders that gain equally the one with the more aggressive limit is sent.
        """
        orders = self.orders
        buying_prices, selling_prices = self.prices_to_compare()
        actions = np.empty(len(self._idle_action), dtype=np.intp)
        _choose_best_orders(
            orders.units,
            orders.limit,
            self.good_of_order,
            self._private_value,
            orders.common_weight,
            self.signals(contexts),
            buying_prices,
            selling_prices,
            self.sends_orders,
            self._score_of_limits,
            self._idle_action,
            self.least_gain_at_limit,
            actions,
        )
        return actions

    def prices_to_compare(self) -> tuple[Array, Array]:
        """Return the price of each good with which a buyer compares its value, and a seller."""
        mid = self.quotes.mid
        return mid, mid


@register.agent("sniper")
class Sniper(Informed):
    """Trades on its signal with the quotes that it sees, before they are withdrawn."""

    least_gain_at_limit: ClassVar[float] = -np.inf

    def prices_to_compare(self) -> tuple[Array, Array]:
        """Return the best quotes of the other side, out of reach where there is none."""
        quotes = self.quotes
        ask = np.where(np.isnan(quotes.ask), 2.0, quotes.ask)
        bid = np.where(np.isnan(quotes.bid), -1.0, quotes.bid)
        return ask, bid


@compiled(nogil=True)
def _choose_best_orders(
    units: Array,
    limit: Array,
    good_of_order: Indices,
    private_value: Array,
    common_weight: Array,
    fundamentals: Array,
    buying_prices: Array,
    selling_prices: Array,
    sends_orders: Mask,
    score_of_limits: Array,
    idle_action: Indices,
    least_gain_at_limit: float,
    actions: Indices,
) -> None:
    """Write the action that gains most at given prices, for each agent (compiled).

    An action gains sum_j units_j (value_j - price_j), with the value W + C f of a unit of order
    j's good. Of the actions that gain something, the one of the highest gain plus score is chosen.

    Parameters
    ----------
    units, limit : array (N, A, m)
        Of each order.
    good_of_order : int array (N, A, m)
        Its good.
    private_value : array (N, A, m)
        W, of a unit of that good.
    common_weight, fundamentals : array (N,)
        C, and what each agent takes f for.
    buying_prices, selling_prices : array (d,)
        The price of each good for an order that buys, and for one that sells.
    sends_orders : bool array (N, A)
        Which actions send an order.
    score_of_limits : array (N, A)
        Added to gains.
    idle_action : int array (N,)
        What an agent does if no action gains.
    least_gain_at_limit : float
        An action is left out if a unit of one of its orders gains less at the order's limit.
    actions : int array (N,)
        Written.
    """
    n_agents, n_actions, n_orders = units.shape
    gains = np.empty(n_orders)
    for i in range(n_agents):
        common_value = common_weight[i] * fundamentals[i]
        has_candidate = False
        best_action = 0
        best_score = -np.inf
        for a in range(n_actions):
            is_candidate = sends_orders[i, a]
            for j in range(n_orders):
                good = good_of_order[i, a, j]
                value = private_value[i, a, j] + common_value
                price = buying_prices[good] if units[i, a, j] > 0 else selling_prices[good]
                gains[j] = units[i, a, j] * (value - price)
                gain_at_limit = np.sign(units[i, a, j]) * (value - limit[i, a, j])
                if units[i, a, j] != 0 and not gain_at_limit >= least_gain_at_limit:
                    is_candidate = False
            gain = pairwise_sum(gains)
            score = 0.0
            if is_candidate and gain > 0:
                has_candidate = True
                score = gain + score_of_limits[i, a]
            if score > best_score:
                best_action = a
                best_score = score
        actions[i] = best_action if has_candidate else idle_action[i]


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
        self._units_of_action = self.orders.units.sum(2)

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> Array:
        target_units = self.strength * (self.signals(contexts) - NEUTRAL_FUNDAMENTAL)
        return np.asarray(np.abs(self._units_of_action - target_units[:, None]).argmin(1))
