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
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled
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
from regretless.market.numerics.pairwise_sum import pairwise_sum
from regretless.market.records import OutcomeDistribution

BID_DECIMALS = 12  # of bids as shares of a value: those that agree in them are equal
MAX_TABLE_ENTRIES = 2**22  # losses of all bidders at all profiles: 32 MiB


@compiled(nogil=True)
def _wins(bid: float, lot: int, rival_bid: float, rival_lot: int, floor: float) -> bool:
    """Say whether a bid wins against its rival's; the earlier lot is first among equals (compiled).

    No bid below ``floor``, the reserve price, wins.
    """
    beats_rival = bid > rival_bid or (bid == rival_bid and lot < rival_lot)
    return beats_rival and bid >= floor


@compiled(nogil=True)
def _pays(bid: float, rival_bid: float, floor: float, own_bid: bool) -> float:  # noqa: FBT001
    """Return what a bid pays where it wins: itself, or what it had to beat (compiled)."""
    if own_bid:
        return bid
    return max(rival_bid, floor)


@compiled(nogil=True)
def _write_bids(greatest_bids: Array, scale: Array, actions: Indices, bids: Array) -> None:
    """Write what agents bid in a round, ``bids`` (N,), -1 for who is absent (compiled).

    bids[i] = greatest_bids[i, actions[i]] scale[i]. ``greatest_bids`` (N, A) are those of who draws
    its greatest value, ``scale`` (N,) is what was drawn, and ``actions`` (N,) are -1 for who is
    absent.
    """
    for agent in range(len(actions)):
        bids[agent] = -1.0
        if actions[agent] >= 0:
            bids[agent] = greatest_bids[agent, actions[agent]] * scale[agent]


@compiled(nogil=True)
def _sell(
    bids: Array,
    lot: Indices,
    order: Indices,
    value: Array,
    units: int,
    floor: float,
    own_bid: bool,  # noqa: FBT001
    rival_bid: Array,
    rival_lot: Indices,
    sums: Array,
) -> tuple[float, int, float]:
    """Find every bidder's rival, sell the units, and add the round to the sums (compiled).

    The rival of a bidder is the k-th highest of the others: the one behind the last winner for a
    winner, the last winner for the rest.

    Parameters
    ----------
    bids : array (N,)
        -1 for who is absent.
    lot : int array (N,)
    order : int array (N,)
        Bidders from the highest bid to the lowest, equal ones by lot.
    value : array (N,)
        Of a unit to each bidder.
    units, floor, own_bid
        How many are sold, the reserve price, and whether winners pay what they bid.
    rival_bid : array (N,)
    rival_lot : int array (N,)
        Written: the rival's bid, -1 for none, and its lot.
    sums : array (6,)
        Rounds, revenue, values of those who won and of those who should have, bids, values; added
        to in place.

    Returns
    -------
    float, int, float
        The revenue, how many are sold, and the lowest price paid, ``floor`` if nothing is sold.
    """
    n_bidders = len(bids)
    paid = np.zeros(n_bidders)
    values_of_winners = np.empty(n_bidders)
    present_values = np.zeros(n_bidders)
    values_of_present = np.empty(n_bidders)
    bids_of_present = np.empty(n_bidders)
    n_sold = 0
    n_present = 0
    price = np.inf
    for rank in range(n_bidders):
        rank_of_rival = units if rank < units else units - 1
        rival = order[min(rank_of_rival, n_bidders - 1)]
        rival_bid[order[rank]] = bids[rival] if rank_of_rival < n_bidders else -1.0
        rival_lot[order[rank]] = lot[rival]
    for bidder in range(n_bidders):
        bid = bids[bidder]
        if bid < 0:
            continue
        present_values[bidder] = value[bidder]
        values_of_present[n_present] = value[bidder]
        bids_of_present[n_present] = bid
        n_present += 1
        if _wins(bid, lot[bidder], rival_bid[bidder], rival_lot[bidder], floor):
            paid[bidder] = _pays(bid, rival_bid[bidder], floor, own_bid)
            price = min(price, paid[bidder])
            values_of_winners[n_sold] = value[bidder]
            n_sold += 1
    highest_values = np.sort(present_values)[::-1][:units].copy()
    revenue = pairwise_sum(paid)
    sums[0] += 1
    sums[1] += revenue
    sums[2] += pairwise_sum(values_of_winners[:n_sold])
    sums[3] += pairwise_sum(highest_values)
    sums[4] += pairwise_sum(bids_of_present[:n_present])
    sums[5] += pairwise_sum(values_of_present[:n_present])
    return revenue, n_sold, price if n_sold else floor


@compiled(nogil=True)
def _write_losses(
    greatest_bids: Array,
    scale: Array,
    lot: Indices,
    value: Array,
    rival_bid: Array,
    rival_lot: Indices,
    floor: float,
    own_bid: bool,  # noqa: FBT001
    unit_offset: Array,
    unit_scale: Array,
    losses: Array,
) -> None:
    """Write what every bid of every bidder would have lost, normalised (compiled).

    A bid that wins gains the value less what it pays, another one nothing, and

        loss = (-gain - unit_offset) / unit_scale.

    Parameters
    ----------
    greatest_bids : array (N, A)
    scale : array (N,)
        By which the bids are multiplied.
    lot, value, rival_bid, rival_lot, floor, own_bid
        As in ``_sell``.
    unit_offset, unit_scale : array (N,)
        Of the bidders' losses.
    losses : array (N, A)
        Written.
    """
    for bidder in range(losses.shape[0]):
        for action in range(losses.shape[1]):
            bid = greatest_bids[bidder, action] * scale[bidder]
            wins = _wins(bid, lot[bidder], rival_bid[bidder], rival_lot[bidder], floor)
            gain = wins * (value[bidder] - _pays(bid, rival_bid[bidder], floor, own_bid))
            losses[bidder, action] = (-gain - unit_offset[bidder]) / unit_scale[bidder]


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
        self._unit_offset = np.concatenate([cohort.loss.unit_offset for cohort in cohorts])
        self._unit_scale = np.concatenate([cohort.loss.unit_scale for cohort in cohorts])
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
        return np.asarray((-gains - self._unit_offset) / self._unit_scale)

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Draw values and lots, rank the bids, and return the price of the last unit.

        Where equal bids share the units nothing is drawn, and the mean price is returned.
        """
        if self.profile_table is not None:
            return self._clear_by_table(self.profile_table, decisions)
        n_bidders = len(self._greatest_value)
        self._scale = self.rng.random(n_bidders) if self.redraw else np.ones(n_bidders)
        self.lot = self.rng.permutation(n_bidders)
        self.value = self._scale * self._greatest_value
        self._floor = self.reserve * float(fundamental[0])
        bids = np.empty(n_bidders)
        _write_bids(self._greatest_bids, self._scale, self.actions_of_agents(decisions), bids)
        self._rival_bid = np.empty(n_bidders)
        self._rival_lot = np.empty(n_bidders, dtype=np.intp)
        revenue, n_sold, price = _sell(
            bids,
            self.lot,
            np.lexsort((self.lot, -bids)),
            self.value,
            self.units,
            self._floor,
            self.own_bid,
            self._rival_bid,
            self._rival_lot,
            self.sums,
        )
        self.last = {"revenue": np.array([revenue]), "sold": np.array([n_sold], float)}
        return np.array([price])

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
        losses = np.empty(self._greatest_bids.shape)
        _write_losses(
            self._greatest_bids,
            self._scale,
            self.lot,
            self.value,
            self._rival_bid,
            self._rival_lot,
            self._floor,
            self.own_bid,
            self._unit_offset,
            self._unit_scale,
            losses,
        )
        tables = []
        first = 0
        for cohort in self.cohorts:
            end = first + len(cohort.row_of)
            tables.append(np.ascontiguousarray(losses[first:end, : cohort.loss.actions]))
            first = end
        return tables

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
