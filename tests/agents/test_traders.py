"""Traders who choose the order that gains most, against the formula in NumPy."""

from types import MappingProxyType

import numpy as np
import pytest

from regretless.agents.cohorts.traders import Informed, Sniper
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.randomness import stream
from regretless.market.losses.orders import Orders
from regretless.market.markets.order_book import View
from regretless.market.records import Context

AGENTS = 30
ACTIONS = 6
GOODS = 2
ORDERS = 2  # of an action


def draw_menus(rng: np.random.Generator) -> Orders:
    """Draw menus of orders, the first action of each without any."""
    shape = (AGENTS, ACTIONS, ORDERS)
    units = rng.integers(-1, 2, shape).astype(np.float64)
    units[:, 0] = 0.0
    private_value = np.broadcast_to(rng.random((AGENTS, 1, GOODS)) / 2, (AGENTS, ACTIONS, GOODS))
    return Orders(
        np.zeros((AGENTS, ACTIONS, GOODS)),
        units=units,
        limit=rng.integers(0, 9, shape) / 8,
        asset=rng.integers(0, GOODS, shape),
        keeps_open_orders=np.zeros(shape[:2]),
        rests_on_book=np.ones(shape[:2]),
        private_value=private_value,
        common_weight=rng.random(AGENTS) / 2,
        max_units=np.ones(AGENTS),
    )


def best_of_candidates(menus: Orders, gain: Array, is_candidate: Mask) -> Indices:
    """Return the candidate that gains most and something, else an action without an order."""
    sends_orders = (menus.units != 0).any(2)
    aggressiveness = (np.sign(menus.units) * menus.limit).sum(2)
    is_candidate = is_candidate & sends_orders & (gain > 0)
    score = np.where(is_candidate, gain + 1e-9 * aggressiveness, 0.0)
    return np.where(is_candidate.any(1), score.argmax(1), sends_orders.argmin(1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", [Informed, Sniper])
def test_a_trader_sends_the_order_that_gains_most(
    kind: type[Informed], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = stream(seed, "traders")
    menus = draw_menus(rng)
    no_depth = np.zeros((GOODS, 1))
    quotes = View(
        prices=np.zeros(1),
        bids=no_depth,
        asks=no_depth,
        bid=np.array([0.375, np.nan]),
        ask=np.array([0.5, 0.625]),
        last=np.array([0.25, 0.75]),
    )
    monkeypatch.setattr(kind, "quotes", quotes)
    signals = rng.random(AGENTS)
    context = Context(own=MappingProxyType({"signal": signals}))

    actions = kind(menus, rng).act_many(None, context)  # type: ignore[arg-type]

    good = menus.asset.astype(np.intp)
    private_value = np.take_along_axis(menus.private_value, good, axis=2)
    value = private_value + (menus.common_weight * signals)[:, None, None]
    if kind is Informed:
        price = np.array([0.4375, 0.75])[good]  # the middle, and the last price without a bid
        at_limit = np.sign(menus.units) * (value - menus.limit)
        is_candidate = ((at_limit >= 0) | (menus.units == 0)).all(2)
    else:
        price = np.where(menus.units > 0, quotes.ask[good], np.array([0.375, -1.0])[good])
        is_candidate = np.ones((AGENTS, ACTIONS), dtype=np.bool_)
    gain = (menus.units * (value - price)).sum(2)
    assert actions.tolist() == best_of_candidates(menus, gain, is_candidate).tolist()
    assert len(set(actions.tolist())) > 2  # they do not all do the same
