r"""Sealed-bid auctions of k equal units, a unit for each of the k highest bids.

Scenario files choose these markets by the kinds ``first-price`` and ``second-price``; their cohorts
have the utility ``bidder``. Values and lots are drawn from the market's own stream.
    first-price    winners pay what they bid; (n - 1) / n of a uniform value is the equilibrium bid
                   of n bidders for one unit (Vickrey 1961; Krishna 2010, section 2.3)
    second-price   winners pay the highest bid that lost: to bid one's value is dominant

An action bids a share of the bidder's value. With ``redraw`` each round gives every bidder a number
u, uniform in [0, 1], by which its value and all its bids are multiplied: an action is then a
strategy, and swap regret is that of a game with private information. Equal bids are ranked by
lot, or with ``ties = "split"`` they share the units that they tie for, each with the chance that a
lot would give it. Nothing is drawn then if values are fixed, and what everybody loses is a function
of the actions: long games of learners are played as compiled loops. The fundamental, times
``reserve``, is the seller's reserve price.

Losses are exact: against the k-th highest bid T of the others, which does not depend on its own, a
bid b wins where b > T, or b = T and its lot comes first, and pays b or max(T, reserve).
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.errors import UserError
from regretless.market.game.market import (
    Decisions,
    Market,
    check_key,
    check_word,
    columns_before_clearing,
)
from regretless.market.game.profiles import (
    ProfileTable,
    agents_action_counts,
    all_profiles,
    number_of_profiles,
    profile_strides,
)
from regretless.market.game.protocols import Cohort
from regretless.market.losses.orders import Orders
from regretless.market.markets.expected_auction import ExpectedAuction
from regretless.market.records import OutcomeDistribution

BID_DECIMALS = 12  # of bids as shares of a value: those that agree in them are equal
MAX_TABLE_ENTRIES = 2**22  # losses of all bidders at all profiles: 32 MiB


class SealedBids(Market):
    """What both auctions share.

    ``value`` (N,) is what the unit is worth to each bidder in this round, ``lot`` (N,) who is first
    among equal bids: the least.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("sums",)
    is_anonymous = True
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
        ties: Literal["lot", "split"] = "lot",
    ) -> None:
        super().__init__(cohorts, rng)
        check_key("units", units, type(units) is int and units >= 1, "a whole number from 1 on")
        check_key("reserve", reserve, 0 <= reserve <= 1, "a number in [0, 1]")
        self.units = units
        self.redraw = redraw
        self.reserve = reserve
        self.last = columns_before_clearing(revenue=1, sold=1)
        self._bids_of_cohorts = list[Array]()  # of who draws its greatest value (N, A)
        greatest_values = []
        for cohort in cohorts:
            loss = cohort.loss
            if not isinstance(loss, Orders) or loss.units.shape[-1] != 1 or (loss.units != 1).any():
                reason = f"a {loss.form} loss of cohort.{cohort.name} has no bids"
                raise UserError(f'market: {reason}; use utility = "bidder"')
            # Equal bids in decimals, as 0.3 and 3 x 0.1, are a tie.
            self._bids_of_cohorts.append(np.round(loss.limit[..., 0], BID_DECIMALS))
            greatest_values.append(loss.private_value[:, 0, 0])
        self._greatest_value = np.concatenate(greatest_values)
        max_actions = max(bids.shape[1] for bids in self._bids_of_cohorts)
        self._greatest_bids = np.concatenate(
            [_padded_with_zeros(bids, max_actions) for bids in self._bids_of_cohorts]
        )
        # Rounds, revenue, values of those who won and of those who should have, bids, values.
        self.sums = np.zeros(6)
        check_word("ties", ties, ("lot", "split"))
        if ties == "split":
            self._make_profile_table()

    def _make_profile_table(self) -> None:
        """Compute what happens at every profile where equal bids share the units.

        UserError where something is drawn, or the profiles are too many.
        """
        key = 'market.ties = "split"'
        if self.redraw or self.reserve > 0:
            raise UserError(f"{key} is of fixed values without a reserve; give redraw = false")
        action_counts = agents_action_counts(self.cohorts)
        if number_of_profiles(action_counts) * self.agents > MAX_TABLE_ENTRIES:
            raise UserError(f"{key}: there are too many profiles; give fewer bidders or actions")
        profiles = all_profiles(action_counts)
        bids = self._greatest_bids[np.arange(self.agents), profiles]
        auction = ExpectedAuction(units=self.units, reserve=0.0, own_bid=self.own_bid)
        win_chance = auction.win_chances(bids)
        gains = auction.gains_of_fixed_values(self._greatest_value, bids)
        paid = win_chance * self._greatest_value - gains
        n_sold = min(self.units, self.agents)
        highest_values = np.sort(self._greatest_value)[::-1][:n_sold]
        self._prices = paid.sum(1) / n_sold
        # By profile, what a round adds to ``sums``.
        self._sums_of_profile = np.stack(
            [
                np.ones(len(profiles)),
                paid.sum(1),
                (win_chance * self._greatest_value).sum(1),
                np.full(len(profiles), highest_values.sum()),
                bids.sum(1),
                np.full(len(profiles), self._greatest_value.sum()),
            ],
            axis=1,
        )
        self.profile_table = ProfileTable(
            action_counts=action_counts,
            strides=profile_strides(action_counts),
            losses=np.clip(self._normalised(gains), 0.0, 1.0),
            outcomes=np.clip(self._prices, 0.0, 1.0)[:, np.newaxis],
        )

    def _normalised(self, gains: Array) -> Array:
        """Return the losses (..., N) of gains (..., N)."""
        unit_offset = np.concatenate([cohort.loss.unit_offset for cohort in self.cohorts])
        unit_scale = np.concatenate([cohort.loss.unit_scale for cohort in self.cohorts])
        return np.asarray((-gains - unit_offset) / unit_scale)

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Draw values and lots, rank the bids, and return the price of the last unit.

        Where equal bids share the units nothing is drawn, and the mean price is returned.
        """
        if self.profile_table is not None:
            return self._clear_by_table(self.profile_table, decisions)
        self._scale = self.rng.random(self.agents) if self.redraw else np.ones(self.agents)
        self.lot = self.rng.permutation(self.agents)
        self.value = self._scale * self._greatest_value
        self._floor = self.reserve * float(fundamental[0])
        bid_tables = [bids[..., None] for bids in self._bids_of_cohorts]
        chosen_bids = self.chosen(bid_tables, decisions)[:, 0] * self._scale
        is_present = self.actions_of_agents(decisions) >= 0

        # The rival of a bidder is the k-th highest of the others: the one behind the last winner
        # for a winner, the last winner for the rest.
        bids = np.where(is_present, chosen_bids, -1.0)
        order = np.lexsort((self.lot, -bids))
        rank = np.argsort(order)
        rank_of_rival = np.where(rank < self.units, self.units, self.units - 1)
        has_rival = rank_of_rival < len(bids)
        rival = order[np.minimum(rank_of_rival, len(bids) - 1)]
        self._rival_bid = np.where(has_rival, bids[rival], -1.0)
        self._rival_lot = self.lot[rival]

        is_winner = self._wins(chosen_bids[:, None])[:, 0] & is_present
        paid = np.where(is_winner, self._pays(chosen_bids[:, None])[:, 0], 0.0)
        present_values = np.where(is_present, self.value, 0.0)
        highest_values = np.sort(present_values)[::-1][: self.units]
        self.sums += (
            1,
            paid.sum(),
            self.value[is_winner].sum(),
            highest_values.sum(),
            chosen_bids[is_present].sum(),
            self.value[is_present].sum(),
        )
        self.last = {"revenue": paid.sum(keepdims=True), "sold": np.array([is_winner.sum()], float)}
        return np.array([paid[is_winner].min() if is_winner.any() else self._floor])

    def _clear_by_table(self, table: ProfileTable, decisions: Decisions) -> Array:
        self._actions = self.actions_of_agents(decisions)
        if self._actions.min() < 0:
            raise UserError('market.ties = "split" needs all bidders; drop enters, exits and rates')
        profile = int(self._actions @ table.strides)
        self.sums += self._sums_of_profile[profile]
        n_sold = min(self.units, self.agents)
        revenue = self._sums_of_profile[profile, 1:2]
        self.last = {"revenue": revenue, "sold": np.array([n_sold], float)}
        return np.asarray(table.outcomes[profile])

    def count_profiles(self, profiles: Integers) -> None:
        self.sums += self._sums_of_profile[profiles].sum(0)

    def _losses_by_table(self, table: ProfileTable) -> list[Array]:
        """Return the losses of all own actions, by cohort (N, A)."""
        others = self._actions @ table.strides - self._actions * table.strides
        tables = []
        first = 0
        for cohort in self.cohorts:
            own_actions = np.arange(cohort.loss.actions)
            agents = np.arange(first, first + len(cohort.row_of))[:, np.newaxis]
            profiles = others[agents] + own_actions * table.strides[agents]
            tables.append(np.ascontiguousarray(table.losses[profiles, agents]))
            first += len(cohort.row_of)
        return tables

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return what every bid of every bidder would have lost against the others' bids."""
        if self.profile_table is not None:
            return self._losses_by_table(self.profile_table)
        bids = self._greatest_bids * self._scale[:, None]
        gains = self._wins(bids) * (self.value[:, None] - self._pays(bids))
        return self.losses_of(gains)

    def profile_losses(self, profiles: Indices) -> Array:
        """Return what bidders lose at profiles, as ``Market.profile_losses`` says.

        Losses are expected over values, where they are redrawn, and over lots.
        """
        greatest_bids = self._greatest_bids[np.arange(self.agents), profiles]  # (P, N)
        reserves = OutcomeDistribution.pure(np.zeros(self.goods))
        if self.reserve > 0:
            reserves = self.expected_fundamentals()
        gains = np.zeros(profiles.shape)
        for fundamental, weight in zip(reserves.points, reserves.weights, strict=True):
            auction = ExpectedAuction(
                units=self.units, reserve=self.reserve * float(fundamental[0]), own_bid=self.own_bid
            )
            if self.redraw:
                gains += weight * auction.gains_of_drawn_values(self._greatest_value, greatest_bids)
            else:
                gains += weight * auction.gains_of_fixed_values(self._greatest_value, greatest_bids)
        return self._normalised(gains)

    def described(self) -> dict[str, Any]:
        rounds, revenue, won, best, bid, worth = self.sums.tolist()
        return {
            "revenue": revenue / max(rounds, 1),
            "efficiency": won / best if best else 1.0,
            "bid_share": bid / worth if worth else 1.0,
        }

    def summary(self) -> str:
        means = self.described()
        return (
            f"Market: {self.units} sold per round for {means['revenue']:.4g} in all, to bidders "
            f"with {100 * means['efficiency']:.4g} % of the greatest value; bids were "
            f"{100 * means['bid_share']:.4g} % of the values"
        )

    def _wins(self, bids: Array) -> Mask:
        """Return which bids (N, A) win against the others' bids of the round."""
        rival_bid = self._rival_bid[:, None]
        has_earlier_lot = (self.lot < self._rival_lot)[:, None]
        beats_rival = (bids > rival_bid) | ((bids == rival_bid) & has_earlier_lot)
        return np.asarray(beats_rival & (bids >= self._floor))

    def _pays(self, bids: Array) -> Array:
        """Return what a bid pays where it wins (N, A)."""
        if self.own_bid:
            return bids
        return np.broadcast_to(np.maximum(self._rival_bid, self._floor)[:, None], bids.shape)


def _padded_with_zeros(shares: Array, n_actions: int) -> Array:
    """Return a table (N, A) with so many actions; those beyond A have zeros."""
    return np.pad(shares, ((0, 0), (0, n_actions - shares.shape[1])))


@register.market("first-price")
class FirstPrice(SealedBids):
    """Winners pay their bids."""

    own_bid = True


@register.market("second-price")
class SecondPrice(SealedBids):
    """Winners pay the highest bid that lost, or the reserve."""

    own_bid = False
