r"""What bidders gain on average in a sealed-bid auction of k units, at given bids.

``market.markets.sealed_bids`` asks for it, so that its stage game has exact losses. Values are
either fixed, or each is v_i u_i with u_i uniform in [0, 1] and drawn independently, and the bid is
c_i u_i. Equal bids are ranked by lot.

Mathematics
-----------
With T the k-th highest bid of the others, F(t) = P(T <= t), r the reserve price and B a bid of at
least r, a bidder of value w gains

    first price     (w - B) F(B)
    second price    E[(w - max(T, r)); T < B] = (w - B) F(B) + int_r^B F(t) dt,   by parts.

For drawn values w = v u, B = c u. With t = c u and the order of integration exchanged the means are

    first price     1/c int_r^c (v t / c - t) F(t) dt
    second price    the same + int_r^c (1 - t / c) F(t) dt.

Between two neighbours among the greatest bids c_j of the others, F is a polynomial of degree at
most N - 1 (the others' chances of a bid of at most t are min(t / c_j, 1)), so that Gauss-Legendre
quadrature with N / 2 + 1 nodes or more is exact there.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array


@dataclass(frozen=True)
class ExpectedAuction:
    """The rules of an auction, and mean gains under them."""

    units: int  # that are sold, one to each of the highest bids
    reserve: float  # the lowest price
    own_bid: bool  # whether winners pay what they bid, or the highest bid that lost

    def gains_of_fixed_values(self, values: Array, bids: Array) -> Array:
        """Return mean gains (P, N) over lots, of values (N,) at bids (P, N)."""
        win_chance = self.win_chances(bids)
        price = bids
        if not self.own_bid:
            price = np.maximum(self._rival_bids(bids), self.reserve)
        gains = np.where(bids >= self.reserve, win_chance * (values - price), 0.0)
        return np.asarray(gains)

    def win_chances(self, bids: Array) -> Array:
        """Return with which chance each bid (P, N) wins, over lots."""
        higher = bids[:, np.newaxis, :] > bids[:, :, np.newaxis]  # [p, i, j]: j bids more than i
        equal = bids[:, np.newaxis, :] == bids[:, :, np.newaxis]
        units_left = np.maximum(self.units - higher.sum(2), 0)
        return np.asarray(np.minimum(units_left / equal.sum(2), 1.0))

    def _rival_bids(self, bids: Array) -> Array:
        """Return the k-th highest bid of the others (P, N); below all where there are fewer."""
        n_bidders = bids.shape[1]
        rivals = np.full(bids.shape, -np.inf)
        if self.units < n_bidders:
            for bidder in range(n_bidders):
                others = np.sort(np.delete(bids, bidder, axis=1), axis=1)
                rivals[:, bidder] = others[:, -self.units]
        return rivals

    def gains_of_drawn_values(self, values: Array, greatest_bids: Array) -> Array:
        """Return mean gains (P, N), of values up to ``values`` (N,).

        ``greatest_bids`` (P, N) are the bids of who draws its greatest value.
        """
        n_bidders = greatest_bids.shape[1]
        gains = np.zeros(greatest_bids.shape)
        nodes, node_weights = np.polynomial.legendre.leggauss(n_bidders // 2 + 2)
        for bidder in range(n_bidders):
            greatest_bid = greatest_bids[:, bidder, np.newaxis]  # (P, 1), as c
            others = np.delete(greatest_bids, bidder, axis=1)
            inner_edges = np.clip(
                np.sort(others, axis=1), self.reserve, np.maximum(greatest_bid, self.reserve)
            )
            lowest = np.full(greatest_bid.shape, self.reserve)
            highest = np.maximum(greatest_bid, self.reserve)
            edges = np.concatenate([lowest, inner_edges, highest], axis=1)
            half_widths = np.diff(edges, axis=1)[:, :, np.newaxis] / 2
            bid = edges[:, :-1, np.newaxis] + half_widths * (1 + nodes)  # (P, pieces, nodes), as t
            bid = bid.reshape(len(bid), -1)
            integration_weights = (half_widths * node_weights).reshape(len(bid), -1)
            win_chance = self._chance_to_win(bid, others)
            safe_bid = np.where(greatest_bid > 0, greatest_bid, 1.0)
            integrand = (values[bidder] * bid / safe_bid - bid) / safe_bid
            if not self.own_bid:
                integrand = integrand + 1 - bid / safe_bid
            gains[:, bidder] = (integration_weights * integrand * win_chance).sum(1)
            if self.reserve == 0:
                at_zero = self._gain_of_zero_bids(values[bidder], others)
                gains[:, bidder] = np.where(greatest_bid[:, 0] > 0, gains[:, bidder], at_zero)
        return gains

    def _chance_to_win(self, bid: Array, others: Array) -> Array:
        """Return the chance (P, Q) that fewer than k of the others (P, N - 1) bid more."""
        n_above_chances = np.zeros((self.units, *bid.shape))  # of 0 .. k - 1 higher bids so far
        n_above_chances[0] = 1.0
        for greatest_bid in others.T[:, :, np.newaxis]:
            safe_bid = np.where(greatest_bid > 0, greatest_bid, 1.0)
            is_below = np.where(greatest_bid > 0, np.minimum(bid / safe_bid, 1.0), 1.0)
            with_one_more = n_above_chances[:-1] * (1 - is_below)
            n_above_chances = n_above_chances * is_below
            n_above_chances[1:] += with_one_more
        return np.asarray(n_above_chances.sum(0))

    def _gain_of_zero_bids(self, value: float, others: Array) -> Array:
        """Return the mean gain (P,) of who always bids 0: it pays nothing, and wins by lot."""
        n_positive = (others > 0).sum(1)
        n_rivals_at_zero = others.shape[1] - n_positive
        win_chance = np.clip((self.units - n_positive) / (n_rivals_at_zero + 1), 0.0, 1.0)
        return np.asarray(win_chance * value / 2)
