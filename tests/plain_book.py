"""An order book in plain Python: lists, no slots, no queues, nothing compiled.

It is played beside the market, and played again for each action of each agent. All amounts are
binary fractions of few digits, so that floats are exact.
"""

from dataclasses import dataclass, replace
from typing import Any, Self


@dataclass
class Order:
    """One order; ``units`` are what is left of it, ``entered`` its round, ``kept`` if it rests."""

    owner: int
    good: int
    buys: bool
    limit: float
    units: float
    entered: int
    kept: bool


@dataclass
class Owner:
    """What an agent owns and may do."""

    cash: float
    goods: list[float]
    most: float
    hold: float
    traded: float = 0.0


@dataclass
class PlainBook:
    """The rules, who owns what, and the open orders, oldest first."""

    owners: list[Owner]
    maker: float
    taker: float
    batch: bool
    tick: float
    lot: float
    last: list[float]
    orders: list[Order]

    @property
    def fee(self) -> float:
        """The most that a trade may cost beside its price."""
        return max(self.maker, self.taker, 0.0)

    def mine(self, who: int) -> list[Order]:
        return [order for order in self.orders if order.owner == who]

    def at_risk(self, limit: float, *, buys: bool) -> float:
        """Cash that a unit of an open order may take."""
        return limit + self.fee if buys else max(0.0, self.fee - limit)

    def rivals(self, order: Order) -> list[Order]:
        """Orders that an order would trade with, the best price first, then the oldest."""
        found = [
            other
            for other in self.orders
            if other.good == order.good and other.buys != order.buys
            and (order.limit >= other.limit if order.buys else order.limit <= other.limit)
        ]  # fmt: skip
        return sorted(found, key=lambda other: other.limit if order.buys else -other.limit)

    def now(self, order: Order) -> float:
        """Cash that an order which does not rest takes from its owner."""
        left, cost = order.units, 0.0
        for other in self.rivals(order):
            part = min(left, other.units)
            cost += part * ((other.limit if order.buys else -other.limit) + self.taker)
            left -= part
        return cost

    def accepts(self, order: Order) -> bool:
        own, open_ = self.owners[order.owner], self.mine(order.owner)
        here = [other for other in open_ if other.good == order.good]
        aside = sum(o.units * self.at_risk(o.limit, buys=o.buys) for o in open_)
        if order.kept or self.batch:
            cost = order.units * self.at_risk(order.limit, buys=order.buys)
        else:
            cost = self.now(order)
        bid = sum(o.units for o in here if o.buys)
        offered = sum(o.units for o in here if not o.buys)
        owned = own.goods[order.good]
        fits = owned + bid + order.units <= own.hold if order.buys else (
            offered + order.units <= owned)  # fmt: skip
        busy = own.traded + sum(o.units for o in open_) + order.units
        own_trade = any(other.owner == order.owner for other in self.rivals(order))
        return busy <= own.most and fits and cost <= own.cash - aside and not own_trade

    def trade(self, first: Order, second: Order, price: float, units: float) -> None:
        """Hand over goods and cash; the first order is the one that arrived now."""
        for order, fee in ((first, self.taker), (second, self.maker)):
            own, sign = self.owners[order.owner], 1 if order.buys else -1
            own.goods[order.good] += sign * units
            own.cash -= sign * units * price + units * fee
            own.traded += units
            order.units -= units
        self.orders = [order for order in self.orders if order.units]

    def arrive(self, who: int, orders: list[Order], *, keeps: bool) -> None:
        """Let an agent do something."""
        if not keeps:
            self.orders = [order for order in self.orders if order.owner != who]
        for order in orders:
            if not self.accepts(order):
                continue
            for other in [] if self.batch else self.rivals(order):
                if order.units:
                    part = min(order.units, other.units)
                    self.trade(order, other, other.limit, part)
                    self.last[order.good] = other.limit
            if order.units and (order.kept or self.batch):
                self.orders.append(order)

    def auction(self, order: list[int], number: int) -> None:
        """Clear what is open at one price for each good."""
        for good in range(len(self.last)):
            here = [o for who in order for o in self.mine(who) if o.good == good]
            price = self.price(here, good)
            sides = [[o for o in here if o.buys == buys] for buys in (True, False)]
            wanting = [
                [o for o in side if (o.limit >= price if buys else o.limit <= price)]
                for side, buys in zip(sides, (True, False), strict=True)
            ]
            volume = min(sum(o.units for o in side) for side in wanting)
            if volume:
                self.last[good] = price
                for side in wanting:
                    self.share(side, price, volume, number)
        self.orders = [order for order in self.orders if order.units]

    def price(self, here: list[Order], good: int) -> float:
        """Return the middle of the prices at which nobody is left wanting; the last, if it may."""
        steps = [self.tick * i for i in range(int(1 / self.tick) + 1)]

        def clears(p: float) -> bool:
            more = sum(o.units for o in here if o.buys and o.limit > p)
            less = sum(o.units for o in here if not o.buys and o.limit < p)
            bid = sum(o.units for o in here if o.buys and o.limit >= p)
            ask = sum(o.units for o in here if not o.buys and o.limit <= p)
            return more <= ask and less <= bid

        fine = [p for p in steps if clears(p)]
        low, high = min(fine), max(fine)
        crossing = any(a.buys and not b.buys and a.limit >= b.limit for a in here for b in here)
        return (low + high) / 2 if crossing else min(max(self.last[good], low), high)

    def share(self, side: list[Order], price: float, volume: float, number: int) -> None:
        """Fill better orders, and those at the price in proportion, by running sums of lots."""
        edge = [o for o in side if o.limit == price]
        left = volume - sum(o.units for o in side if o.limit != price)
        total, sofar = sum(o.units for o in edge), 0.0
        for order in side:
            units = order.units
            if order.limit == price:
                before = sofar * left // (total * self.lot)
                sofar += order.units
                units = (sofar * left // (total * self.lot) - before) * self.lot
            own, sign = self.owners[order.owner], 1 if order.buys else -1
            fee = self.maker if order.kept and order.entered < number else self.taker
            own.goods[order.good] += sign * units
            own.cash -= sign * units * price + units * fee
            order.units -= units

    def play(self, arrivals: list[int], sent: Any, number: int) -> None:
        for own in self.owners:
            own.traded = 0.0
        for who in arrivals:
            orders, keeps = sent(who)
            self.arrive(who, orders, keeps=keeps)
        if self.batch:
            self.auction(arrivals, number)

    def end(self, number: int, expires: int) -> None:
        """Take off what does not rest, or is old."""
        self.orders = [
            order
            for order in self.orders
            if order.kept and not (expires and order.entered + expires <= number + 1)
        ]

    def imagined(self, arrivals: list[int], sent: Any, number: int) -> Self:
        """Return a copy in which a round was played."""
        owners = [replace(own, goods=[*own.goods]) for own in self.owners]
        orders = [replace(order) for order in self.orders]
        other = replace(self, owners=owners, orders=orders, last=[*self.last])
        other.play(arrivals, sent, number)
        return other
