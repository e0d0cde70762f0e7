"""The built-in markets; importing this package registers their names for scenario files.

    settling    what markets share that answer an aggregate, in the same round or the next
    prices      smoothed demand moves what goods yield; what ``[market]`` means without a ``kind``

A market of one's own subclasses ``Market`` and registers itself with ``register.market("name")``.
"""

from regretless.market.game.accounts import Accounts
from regretless.market.game.markets import Market, slopes
from regretless.market.markets import prices

__all__ = ["Accounts", "Market", "prices", "slopes"]
