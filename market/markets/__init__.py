"""The built-in markets; importing this package registers their names for scenario files.

    settling    what markets share that answer an aggregate, in the same round or the next
    prices      smoothed demand moves what goods yield; what ``[market]`` means without a ``kind``
    auction     limit orders cleared at one price, with budgets and stocks
    cournot     quantities against linear inverse demand
    sealed_bids first and second price, some units; losses of each bidder's own
    routes      roads on which times grow with traffic
    attendance  how many do the same: bars, banks
    information traders who buy a signal, or read it off the price
    shops       stocks that are ordered before demand is known, which may be censored
    portfolio   wealth that compounds at the returns of what is held, or is won in bets

A market of one's own subclasses ``Market`` and registers itself with ``register.market("name")``.
"""

from regretless.market.game.accounts import Accounts
from regretless.market.game.markets import Market, slopes
from regretless.market.markets import (
    attendance,
    auction,
    cournot,
    information,
    portfolio,
    prices,
    routes,
    sealed_bids,
    shops,
)

__all__ = [
    "Accounts",
    "Market",
    "attendance",
    "auction",
    "cournot",
    "information",
    "portfolio",
    "prices",
    "routes",
    "sealed_bids",
    "shops",
    "slopes",
]
