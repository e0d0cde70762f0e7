"""The built-in markets; importing this package registers their names for scenario files.

    aggregate                what markets share that answer an aggregate, in this round or the next
    price_impact             smoothed demand moves what goods yield; ``[market]`` without a ``kind``
    auction                  limit orders cleared at one price, with budgets and stocks
    cournot                  quantities against linear inverse demand
    congestion               roads on which times grow with traffic; how many do the same
    information_acquisition  traders who buy a signal, or read it off the price
    sealed_bids              first and second price, some units; losses of each bidder's own
    order_book               limit orders in event time or in batches; losses of each trader's own
    matching                 its orders and rounds, compiled
    inventory                stocks ordered before demand is known, which may be censored
    portfolio                wealth that compounds at the returns of what is held, or is won in bets

A market of one's own subclasses ``Market`` and registers itself with ``register.market("name")``.
"""

from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Market, slopes
from regretless.market.markets import (
    auction,
    congestion,
    cournot,
    information_acquisition,
    inventory,
    order_book,
    portfolio,
    price_impact,
    sealed_bids,
)

__all__ = [
    "Accounts",
    "Market",
    "auction",
    "congestion",
    "cournot",
    "information_acquisition",
    "inventory",
    "order_book",
    "portfolio",
    "price_impact",
    "sealed_bids",
    "slopes",
]
