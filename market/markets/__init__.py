"""The built-in markets; importing this package registers their names for scenario files.

A market of one's own subclasses ``Market`` and registers itself with ``register.market("name")``.
"""

from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Market, slopes
from regretless.market.markets import (
    call_auction,
    congestion,
    cournot,
    heterogeneous_beliefs,
    information_acquisition,
    inventory,
    order_book,
    portfolio,
    price_competition,
    price_impact,
    repeated_game,
    sealed_bids,
)

__all__ = [
    "Accounts",
    "Market",
    "call_auction",
    "congestion",
    "cournot",
    "heterogeneous_beliefs",
    "information_acquisition",
    "inventory",
    "order_book",
    "portfolio",
    "price_competition",
    "price_impact",
    "repeated_game",
    "sealed_bids",
    "slopes",
]
