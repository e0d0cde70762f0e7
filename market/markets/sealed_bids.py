r"""Sealed-bid auctions of k equal units, a unit for each of the k highest bids.

    first-price    winners pay what they bid; (n - 1) / n of a uniform value is the equilibrium bid
                   of n bidders for one unit (Vickrey 1961; Krishna 2010, section 2.3)
    second-price   winners pay the highest bid that lost: to bid one's value is dominant

An action bids a share of the bidder's value. With ``redraw`` each round gives every bidder a number
u, uniform in [0, 1], by which its value and all its bids are multiplied: an action is then a
strategy, and swap regret is that of a game with private information. Equal bids are ranked by
lot. The fundamental, times ``reserve``, is the seller's reserve price.

Losses are exact: against the k-th highest bid T of the others, which does not depend on its own, a
bid b wins where b > T, or b = T and its lot comes first, and pays b or max(T, reserve).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions, Market, check_key
from regretless.market.game.protocols import Cohort
from regretless.market.losses.orders import Orders


class SealedBids(Market):
    """What both auctions share.

    ``value`` (N,) is what the unit is worth to each bidder in this round, ``lot`` (N,) who is first
    among equal bids: the least.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("sums",)
    utility_is_expected = True  # what a bid gains at a forecast price
    own_bid: ClassVar[bool]  # whether winners pay what they bid

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        units: int = 1,
        redraw: bool = True,
        reserve: float = 0.0,
    ) -> None:
        super().__init__(cohorts, rng)
        check_key("units", units, type(units) is int and units >= 1, "a whole number from 1 on")
        check_key("reserve", reserve, 0 <= reserve <= 1, "a number in [0, 1]")
        self.units, self.redraw, self.reserve = units, redraw, reserve
        bids = list[Orders]()
        for cohort in cohorts:
            loss = cohort.loss
            if not isinstance(loss, Orders) or loss.units.shape[-1] != 1 or (loss.units != 1).any():
                why = f"a {loss.form} loss of cohort.{cohort.name} has no bids"
                raise UserError(f'market: {why}; use utility = "bidder"')
            bids.append(loss)
        self._shares, most = [loss.limit[..., 0] for loss in bids], max(b.actions for b in bids)
        padded = [np.pad(own, ((0, 0), (0, most - own.shape[1]))) for own in self._shares]
        self._all_shares = np.concatenate(padded)
        self._most = np.concatenate([loss.worth[:, 0, 0] for loss in bids])
        self.sums = np.zeros(6)  # rounds, revenue, value of who won and should have, bids, values

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Draw values and lots, rank the bids, and return the price of the last unit."""
        drawn = self.rng.random(self.agents) if self.redraw else np.ones(self.agents)
        self.lot, self.value = self.rng.permutation(self.agents), drawn * self._most
        self._scale, self._floor = drawn, self.reserve * float(fundamental[0])
        played = self.chosen([share[..., None] for share in self._shares], decisions)[:, 0] * drawn
        here = self.acted(decisions) >= 0
        bids, k = np.where(here, played, -1.0), self.units
        order = np.lexsort((self.lot, -bids))
        at = np.where(np.argsort(order) < k, k, k - 1)  # the k-th of the others, -1 for none
        rival = order[np.minimum(at, len(bids) - 1)]
        self._rival, self._rival_lot = np.where(at < len(bids), bids[rival], -1.0), self.lot[rival]
        wins = self._wins(played[:, None])[:, 0] & here
        paid = np.where(wins, self._pays(played[:, None])[:, 0], 0.0)
        best = np.sort(np.where(here, self.value, 0.0))[::-1][: self.units]
        bid, worth = played[here].sum(), self.value[here].sum()
        self.sums += (1, paid.sum(), self.value[wins].sum(), best.sum(), bid, worth)
        self.last = {"revenue": paid.sum(keepdims=True), "sold": np.array([wins.sum()], float)}
        return np.array([paid[wins].min() if wins.any() else self._floor])

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return what every bid of every bidder would have lost against the others' bids."""
        bids = self._all_shares * self._scale[:, None]
        return self.losses_of(self._wins(bids) * (self.value[:, None] - self._pays(bids)))

    def described(self) -> dict[str, Any]:
        rounds, revenue, won, best, bid, worth = self.sums.tolist()
        return {
            "revenue": revenue / max(rounds, 1),
            "efficiency": won / best if best else 1.0,
            "bid_share": bid / worth if worth else 1.0,
        }

    def summary(self) -> str:
        now = self.described()
        return (
            f"Market: {self.units} sold per round for {now['revenue']:.4g} in all, to bidders with "
            f"{100 * now['efficiency']:.4g} % of the greatest value; bids were "
            f"{100 * now['bid_share']:.4g} % of the values"
        )

    def _wins(self, bids: Array) -> Mask:
        """Say which bids (N, A) win."""
        rival, first = self._rival[:, None], (self.lot < self._rival_lot)[:, None]
        return np.asarray(((bids > rival) | ((bids == rival) & first)) & (bids >= self._floor))

    def _pays(self, bids: Array) -> Array:
        """Return what a bid pays where it wins (N, A)."""
        if self.own_bid:
            return bids
        return np.broadcast_to(np.maximum(self._rival, self._floor)[:, None], bids.shape)


@register.market("first-price")
class FirstPrice(SealedBids):
    """Winners pay their bids."""

    own_bid = True


@register.market("second-price")
class SecondPrice(SealedBids):
    """Winners pay the highest bid that lost, or the reserve."""

    own_bid = False
