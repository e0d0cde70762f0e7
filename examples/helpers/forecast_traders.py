"""The agents of ``spreads.py``: two kinds of traders who price by the forecast if they hear it.

Importing the module registers them: a cohort with ``response = "centred-maker"`` or ``"needy"``
consists of them, and ``settings = { hears = false }`` takes the forecast from it. Both are crowds:
one object acts for all N agents of a cohort, each of whom has A actions, which are orders.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from regretless import register
from regretless.agents.cohorts.scripted_agents import HeardForecasts
from regretless.agents.cohorts.traders import Trader
from regretless.market.losses.orders import Orders
from regretless.market.records import Context

VALUE_UNHEARD = 0.5  # of a unit, expected by who does not hear the forecast
PREMIUM = 0.15  # that the needy pay at most, beyond what they expect a unit to be worth
CENTRES = np.arange(2, 15) / 16  # of a maker's quotes
SPREADS = np.arange(1, 13) / 32  # between its bid and its ask
LIMITS = np.arange(33) / 32  # of the orders of the others


class ForecastTrader(Trader):
    """Expects a unit to be worth what the forecast says, or 1/2 if it does not hear it."""

    def __init__(self, loss: Orders, rng: np.random.Generator, *, hears: ArrayLike = True) -> None:
        super().__init__(loss, rng)
        self.hears = np.broadcast_to(hears, len(loss))

    def expected_values(self, forecasts: HeardForecasts) -> np.ndarray:
        """Return what each agent expects a unit to be worth (N,)."""
        return np.where(self.hears, forecasts.label[:, 0], VALUE_UNHEARD)


@register.agent("centred-maker")
class CentredMaker(ForecastTrader):
    """Quotes around what it expects, at a spread that it learns by regret matching (plus)."""

    def __init__(self, loss: Orders, rng: np.random.Generator, *, hears: ArrayLike = True) -> None:
        super().__init__(loss, rng, hears=hears)
        self.regret = np.zeros((len(loss), len(SPREADS)))

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> np.ndarray:
        """Return probabilities of all pairs of a centre and a spread (N, A)."""
        agents = np.arange(len(self.loss))
        distances = np.abs(CENTRES[:, np.newaxis] - self.expected_values(forecasts))
        self.centre = distances.argmin(axis=0)
        regret = self.regret + 1e-12  # all spreads are equally likely at the start
        self.strategy = regret / regret.sum(axis=1, keepdims=True)
        probabilities = np.zeros((len(agents), len(CENTRES), len(SPREADS)))
        probabilities[agents, self.centre] = self.strategy
        return probabilities.reshape(len(agents), -1)

    def learn_many(self, losses: np.ndarray, outcome: np.ndarray) -> None:
        """Learn from the exact losses (N, A), of which those at the centre that it chose count."""
        agents = np.arange(len(losses))
        losses_of_pairs = losses.reshape(len(losses), len(CENTRES), len(SPREADS))
        losses_of_spreads = losses_of_pairs[agents, self.centre]
        mean_losses = (self.strategy * losses_of_spreads).sum(axis=1, keepdims=True)
        self.regret = np.maximum(self.regret + (mean_losses - losses_of_spreads), 0.0)

    def state(self) -> dict[str, np.ndarray]:
        """Return what a checkpoint has to keep."""
        return {"regret": self.regret}

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """Go on from a checkpoint."""
        self.regret = state["regret"]


@register.agent("needy")
class NeedyTrader(ForecastTrader):
    """Has to buy or to sell, by the toss of a coin, at up to 0.15 from what it expects."""

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> np.ndarray:
        """Return the order with the limit that trades most (N,)."""
        is_buyer = self.rng.random(len(self.loss)) < 0.5
        side = np.where(is_buyer, 1.0, -1.0)[:, np.newaxis]
        worst_price = self.expected_values(forecasts)[:, np.newaxis] + PREMIUM * side
        units = self.orders.units[..., 0]  # (N, A), of the one order of an action
        limit = self.orders.limit[..., 0]
        is_acceptable = (units == side) & (side * (worst_price - limit) >= 0)
        return np.where(is_acceptable, side * limit, -np.inf).argmax(axis=1)


def describe_cohorts(*, makers_hear: bool, needy_hear: bool) -> list[dict[str, object]]:
    """Describe two makers, four informed and six needy traders, as a scenario file would."""
    quotes = _menu_of_quotes()
    makers: dict[str, object] = {
        "name": "makers",
        "utility": "orders",
        "count": 2,
        "actions": len(quotes),
        "response": "centred-maker",
        "settings": {"hears": makers_hear},
        "parameters": {"common": 1.0, "menu": quotes, "rests": True, "most": 20.0},
        "measures": ["swap"],
    }
    orders = _menu_of_orders()
    informed: dict[str, object] = {
        "name": "informed",
        "utility": "orders",
        "count": 4,
        "actions": len(orders),
        "response": "informed",
        "signal": {"noise": 0.0},
        "parameters": {"common": 1.0, "menu": orders, "rests": False},
        "measures": ["swap"],
    }
    needy: dict[str, object] = {
        "name": "needy",
        "utility": "orders",
        "count": 6,
        "actions": len(orders),
        "response": "needy",
        "settings": {"hears": needy_hear},
        "parameters": {"common": 1.0, "menu": orders, "rests": False},
        "measures": ["swap"],
    }
    return [makers, informed, needy]


def _menu_of_quotes() -> list[list[float]]:
    """List a maker's actions: a bid and an ask for ten units each, around a centre."""
    menu = []
    for centre in CENTRES:
        for spread in SPREADS:
            bid = [10.0, max(float(centre - spread / 2), 0.0), 0.0]  # units, limit, good
            ask = [-10.0, min(float(centre + spread / 2), 1.0), 0.0]
            menu.append([*bid, *ask])
    return menu


def _menu_of_orders() -> list[list[float]]:
    """List the actions of the others: nothing, or to buy or to sell one unit at a limit."""
    menu = [[0.0, 0.0, 0.0]]
    for units in (1.0, -1.0):
        menu += [[units, float(limit), 0.0] for limit in LIMITS]
    return menu
