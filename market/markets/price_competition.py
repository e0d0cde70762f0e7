r"""Sellers set prices, and buyers choose among them.

Scenario files choose this market by the kind ``price-competition``; its cohorts have the utility
``seller``, whose actions are prices p. Seller i has the unit cost c_i and the quality k_i, sells
q_i(p) units to a unit mass of buyers and earns (p_i - c_i) q_i(p). By ``demand``:

    logit                q_i = exp((k_i - p_i) / mu) / (sum_j exp((k_j - p_j) / mu) + O),
                         O = exp(outside / mu), 0 without an outside good (McFadden 1974; Anderson,
                         de Palma and Thisse 1992, chapter 7)
    linear               q_i = max(0, k_i - slope p_i + cross x mean price of the others)
                         (Singh and Vives 1984)
    winner-takes-all     all buy where k_i - p_i is greatest, split equally where several tie, and
                         nobody where it is below ``outside`` (Bertrand 1883)

mu is ``differentiation`` in the code. The outcome is the mean of the sellers' places on their
menus, from 0 where all charge their lowest price to 1 where all charge their highest. What the
adversary draws does not matter.

What a seller earns is a function of what all play: ``profile_losses`` has it for any profile, and
where profiles are few enough they are all computed once, at the start.

With ``sales = true`` the table ``sales`` says what each seller did, and with which probability: a
log that ``regretless audit`` reads, of sellers whose regret is known.

Landmarks
---------
``nash_price`` and ``monopoly_price`` are found on the continuum of prices, for demand that is
smooth: where each seller's price is best against the others', and where joint profit is greatest.
The *profit gain* of Calvano et al. (2020) is (mean profit - profit at the former) / (profit at the
latter - profit at the former). Where sellers enter or leave, each round has the landmarks of the
sellers S_t that were there, and with joint profits Pi

    profit gain = sum_t (Pi_t - Pi_nash(S_t)) / sum_t (Pi_monopoly(S_t) - Pi_nash(S_t)),

which is the same where all sellers are always there. A round with a single seller adds nothing to
the denominator.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.errors import UserError
from regretless.market.game.market import Decisions, Market, check_key, columns_before_clearing
from regretless.market.game.profiles import (
    ProfileTable,
    agents_action_counts,
    all_profiles,
    number_of_profiles,
    profile_strides,
)
from regretless.market.game.protocols import Cohort
from regretless.market.losses.price_menu import PriceMenu

MAX_TABLE_ENTRIES = 2**22  # numbers in the table of all profiles: 32 MiB
ROUNDS_TO_EQUILIBRIUM = 1000  # of best responses, at most
PRICE_TOLERANCE = 1e-10  # within which prices are at rest
NO_MONOPOLY = "without an outside good everybody buys at any price: no monopoly price"
MIN_COMPETITORS = 2  # sellers, of which Nash and monopoly prices differ
MAX_PRESENCE_SETS = 32  # whose landmarks are computed, each by a search over its sellers' prices
TOO_MANY_SETS = f"more than {MAX_PRESENCE_SETS} different sets of sellers were there"
TIE = 1e-12  # of the greatest number, by which two sellers' offers may differ and be equally good


@dataclass(frozen=True)
class SellerMeans:
    """Averages of each of M sellers over the rounds in which it was there; 0 if it never was.

    ``was_there`` says which sellers were there at all.
    """

    was_there: Mask
    price: Array
    quantity: Array
    profit: Array


@register.market("price-competition")
class PriceCompetition(Market):
    """Sellers set prices; buyers choose by logit, linear or winner-takes-all demand.

    Parameters
    ----------
    demand : str
        "logit", "linear" or "winner-takes-all".
    differentiation : float
        mu of logit demand, above 0: the smaller, the more a lower price attracts.
    outside : float, optional
        What buying nothing is worth to buyers; without it everybody buys, at any price, and there
        is no monopoly price. Not for linear demand.
    slope, cross : float
        Of linear demand: by how much the own price lowers, and that of the others raises it.
    sales : bool
        Whether the table ``sales`` is written.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("sums", "profile_counts", "rounds_by_presence")
    has_own_payoffs = True
    own_utility = "seller"
    column_labels: ClassVar[Mapping[str, str]] = {
        "price": "price of each seller",
        "quantity": "units that each seller sells",
    }

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        demand: Literal["logit", "linear", "winner-takes-all"] = "logit",
        differentiation: float = 0.25,
        outside: float | None = None,
        slope: float = 1.0,
        cross: float = 0.0,
        sales: bool = False,
    ) -> None:
        super().__init__(cohorts, rng)
        check_key("differentiation", differentiation, differentiation > 0, "a positive number")
        check_key("slope", slope, slope > 0, "a positive number")
        check_key("cross", cross, 0 <= cross < slope, "a number of at least 0 and below slope")
        if demand == "linear" and outside is not None:
            raise UserError("market.outside: linear demand has no outside good; drop it")
        self.demand = demand
        self.differentiation = differentiation
        self.outside = outside
        self.slope = slope
        self.cross = cross
        self.sales = sales
        self._sales_of_round: dict[str, NDArray[Any]] = {}  # columns of the table
        self._read_menus()
        self.profile_table = self._make_profile_table()
        # Of each seller (4, M): rounds, and the sums over them of its price, quantity and profit.
        # Only rounds in which somebody was absent, or whose profile is not counted below.
        self.sums = np.zeros((4, self.n_sellers))
        # How often each profile of ``profile_table`` was played, while everybody was there.
        n_profiles = 0 if self.profile_table is None else len(self.profile_table.losses)
        self.profile_counts = np.zeros(n_profiles, dtype=np.int64)
        # In how many of the rounds of ``sums`` which sellers were there: a 0 or 1 for each seller.
        self.rounds_by_presence: dict[str, int] = {}
        self.last = columns_before_clearing(price=self.n_sellers, quantity=self.n_sellers)
        if self.sales:
            self._sales_of_round = self._sales_columns([None] * len(self.cohorts))  # no rows

    def _read_menus(self) -> None:
        """Read every seller's prices, cost and quality off its cohort's loss."""
        prices = []
        costs = []
        qualities = []
        for cohort in self.cohorts:
            loss = cohort.loss
            if not isinstance(loss, PriceMenu):
                reason = f"a {loss.form} loss of cohort.{cohort.name} has no prices"
                raise UserError(f'market: {reason}; use utility = "seller"')
            prices += list(loss.price)
            costs.append(loss.cost)
            qualities.append(loss.quality)
        self.cost = np.concatenate(costs)  # (M,)
        self.quality = np.concatenate(qualities)
        self.n_sellers = len(self.cost)
        self.action_counts = agents_action_counts(self.cohorts)
        # Menus that are shorter than the longest end in copies of their highest price.
        self._menus = np.empty((self.n_sellers, int(self.action_counts.max())))
        for seller, menu in enumerate(prices):
            self._menus[seller] = menu[-1]
            self._menus[seller, : len(menu)] = menu
        # The number of a profile is a sum over sellers: what each action adds, (M, longest menu).
        own_actions = np.minimum(np.arange(self._menus.shape[1]), self.action_counts[:, None] - 1)
        self._profile_part_of_action = own_actions * profile_strides(self.action_counts)[:, None]
        self._seller_column = np.arange(self.n_sellers)[:, None]
        if self.demand == "linear":
            most = self.quality - self.slope * self._menus.min(1)
            if self.n_sellers > 1:
                # Where rivals may be absent, the mean of the others' prices is at most the highest.
                highest = self._menus.max(1)
                of_others = np.array([np.delete(highest, i).max() for i in range(self.n_sellers)])
                most = most + self.cross * of_others
            check_key(
                "demand",
                "linear",
                most.max() <= 1 + 1e-12,
                "quality, slope and prices by which a seller sells at most 1 unit, not "
                f"{most.max():.4g}: divide quality, slope and cross by that",
            )

    def _make_profile_table(self) -> ProfileTable | None:
        """Compute what happens at every profile; None where these are too many."""
        entries = number_of_profiles(self.action_counts) * self.n_sellers
        if entries > MAX_TABLE_ENTRIES:
            return None
        profiles = all_profiles(self.action_counts)
        self._profile_prices = self._prices_of(profiles)
        self._profile_quantities = self.quantities(self._profile_prices)
        margins = self._profile_prices - self.cost
        return ProfileTable(
            action_counts=self.action_counts,
            strides=profile_strides(self.action_counts),
            losses=self._normalised(margins * self._profile_quantities),
            outcomes=self._places_of(profiles).mean(1, keepdims=True),
        )

    # Demand.

    def quantities(self, prices: Array, present: Array | None = None) -> Array:
        """Return what each seller sells (..., M) at prices (..., M).

        ``present`` (..., M) is 1 for who is there and 0 for who is absent: these sell nothing, and
        all others as if they were not there.
        """
        presence = np.ones_like(prices) if present is None else present
        if self.demand == "logit":
            return self._logit(prices, presence)
        if self.demand == "linear":
            return self._linear(prices, presence)
        return self._winner_takes_all(prices, presence)

    def _logit(self, prices: Array, present: Array) -> Array:
        exponents = np.where(present > 0, (self.quality - prices) / self.differentiation, -np.inf)
        outside = -np.inf if self.outside is None else self.outside / self.differentiation
        greatest = np.maximum(exponents.max(-1, keepdims=True), outside)  # against overflow
        greatest = np.where(np.isfinite(greatest), greatest, 0.0)  # where nobody is there
        attractions = np.exp(exponents - greatest) * present
        total = attractions.sum(-1, keepdims=True) + np.exp(outside - greatest)
        return np.asarray(attractions / np.where(total > 0, total, 1.0))

    def _linear(self, prices: Array, present: Array) -> Array:
        charged = prices * present
        others = present.sum(-1, keepdims=True) - present
        price_of_others = (charged.sum(-1, keepdims=True) - charged) / np.maximum(others, 1)
        units = self.quality - self.slope * prices + self.cross * price_of_others
        return np.asarray(np.maximum(units, 0.0) * present)

    def _winner_takes_all(self, prices: Array, present: Array) -> Array:
        surplus = np.where(present > 0, self.quality - prices, -np.inf)
        greatest = surplus.max(-1, keepdims=True)
        # A tie in decimals, such as 2.0 - 0.3 and 1.9 - 0.2, is none in binary fractions.
        rounding = TIE * max(1.0, float(np.abs(self.quality).max()), float(np.abs(prices).max()))
        wins = (surplus >= greatest - rounding) & (present > 0)
        if self.outside is not None:
            wins &= surplus >= self.outside - rounding
        return np.asarray(wins / np.maximum(wins.sum(-1, keepdims=True), 1))

    def profits(self, prices: Array, present: Array | None = None) -> Array:
        """Return what each seller earns (..., M) at prices (..., M)."""
        return (prices - self.cost) * self.quantities(prices, present)

    # What the game asks for.

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Sell at the prices of the round, and return the mean place of prices on their menus."""
        outcome = self._sell(self.actions_of_agents(decisions))
        if self.sales:
            self._sales_of_round = self._sales_columns(decisions)
        return outcome

    def _sell(self, actions: Indices) -> Array:
        """Sell at the prices of actions (M,), -1 for who is absent, and return the outcome."""
        table = self.profile_table
        if table is not None and actions.min() >= 0:
            profile = int(actions @ table.strides)
            self.profile_counts[profile] += 1
            self.last = {
                "price": self._profile_prices[profile],
                "quantity": self._profile_quantities[profile],
            }
            return np.asarray(table.outcomes[profile])
        present = (actions >= 0).astype(np.float64)
        prices = self._prices_of(np.maximum(actions, 0))
        quantities = self.quantities(prices, present)
        self._count_presence(present)
        sums_of_rounds, sums_of_prices, sums_of_quantities, sums_of_profits = self.sums
        sums_of_rounds += present
        sums_of_prices += prices * present
        sums_of_quantities += quantities
        sums_of_profits += (prices - self.cost) * quantities
        self.last = {"price": np.where(present > 0, prices, np.nan), "quantity": quantities}
        places = self._places_of(np.maximum(actions, 0))
        return np.array([(places * present).sum() / max(present.sum(), 1.0)])

    def _sales_columns(self, decisions: Decisions) -> dict[str, NDArray[Any]]:
        """Return the columns of ``sales`` for a round that has been sold: a row for each seller."""
        actions = self.actions_of_agents(decisions)
        chances = np.full(self._menus.shape, np.nan)  # (M, longest menu)
        first = 0
        for cohort, decision in zip(self.cohorts, decisions, strict=True):
            last = first + len(cohort.row_of)
            if decision is not None:
                chances[first:last, : cohort.loss.actions] = decision.chances[cohort.row_of]
            first = last
        is_present = actions >= 0
        sellers = np.arange(self.n_sellers)
        columns: dict[str, NDArray[Any]] = {
            "agent": sellers + 1,
            "price": self.last["price"],
            "quantity": self.last["quantity"],
            "cost": self.cost,
            "chance": chances[sellers, actions],
        }
        for action in range(chances.shape[1]):
            columns[f"chance_{action}"] = chances[:, action]
        return {name: values[is_present] for name, values in columns.items()}

    def extra_tables(self) -> Mapping[str, Mapping[str, NDArray[Any]]]:
        return {"sales": self._sales_of_round} if self.sales else {}

    def _count_presence(self, present: Array) -> None:
        """Count a round of the sellers that are present (M,), unless there are too many sets."""
        presence = "".join(present.astype(np.int64).astype(str))
        if presence not in self.rounds_by_presence:
            if len(self.rounds_by_presence) > MAX_PRESENCE_SETS:
                return  # no profit gain is computed any more, and memory stays bounded
            self.rounds_by_presence[presence] = 0
        self.rounds_by_presence[presence] += 1

    def count_profiles(self, profiles: Integers) -> None:
        self.profile_counts += np.bincount(profiles, minlength=len(self.profile_counts))

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return what every price of every seller would have lost against the others' prices."""
        actions = self.actions_of_agents(decisions)
        losses = self._losses_of_deviations(actions)
        tables = []
        first = 0
        for cohort in self.cohorts:
            last = first + len(cohort.row_of)
            tables.append(np.ascontiguousarray(losses[first:last, : cohort.loss.actions]))
            first = last
        return tables

    def profile_losses(self, profiles: Indices) -> Array:
        """Return every seller's loss at each profile (P, M), in [0, 1].

        ``profiles`` (P, M) are the sellers' actions, in the order of the tables.
        """
        if self.profile_table is None:
            return self._normalised(self.profits(self._prices_of(profiles)))
        return np.asarray(self.profile_table.losses[profiles @ self.profile_table.strides])

    def expected_losses(self, cohort_index: int, outcome: Array) -> Array:
        """Return what each price loses (N, A) if all others charge the forecast place on a menu."""
        first_seller = sum(len(cohort.row_of) for cohort in self.cohorts[:cohort_index])
        cohort = self.cohorts[cohort_index]
        width = self._menus[:, -1] - self._menus[:, 0]
        forecast_prices = self._menus[:, 0] + width * float(outcome[0])
        losses = np.empty((len(cohort.row_of), cohort.loss.actions))
        for row in range(len(losses)):
            seller = first_seller + row
            prices = np.repeat(forecast_prices[None], cohort.loss.actions, axis=0)
            prices[:, seller] = self._menus[seller, : cohort.loss.actions]
            losses[row] = self._normalised(self.profits(prices))[:, seller]
        return losses

    def _prices_of(self, actions: Indices) -> Array:
        """Return the prices (..., M) of actions (..., M)."""
        return np.asarray(self._menus[np.arange(self.n_sellers), actions])

    def _places_of(self, actions: Indices) -> Array:
        """Return the places of actions (..., M) on their menus, from 0 to 1."""
        return np.asarray(actions / np.maximum(self.action_counts - 1, 1))

    def _normalised(self, profits: Array) -> Array:
        """Turn profits (..., M) into losses in [0, 1]."""
        scales = np.concatenate([cohort.loss.unit_scale for cohort in self.cohorts])
        offsets = np.concatenate([cohort.loss.unit_offset for cohort in self.cohorts])
        return np.asarray(np.clip((-profits - offsets) / scales, 0.0, 1.0))

    def _losses_of_deviations(self, actions: Indices) -> Array:
        """Return what each seller would have lost by each price of the menus (M, longest menu)."""
        n_actions = self._menus.shape[1]
        table = self.profile_table
        if table is not None and actions.min() >= 0:
            profile_of_others = actions @ table.strides - actions * table.strides
            deviations = profile_of_others[:, None] + self._profile_part_of_action
            return np.asarray(table.losses[deviations, self._seller_column])
        present = (actions >= 0).astype(np.float64)
        prices = self._prices_of(np.maximum(actions, 0))
        losses = np.empty((self.n_sellers, n_actions))
        for seller in range(self.n_sellers):
            prices_if = np.repeat(prices[None], n_actions, axis=0)
            prices_if[:, seller] = self._menus[seller]
            present_if = np.repeat(present[None], n_actions, axis=0)
            present_if[:, seller] = 1.0
            profits = self.profits(prices_if, present_if)
            losses[seller] = self._normalised(profits)[:, seller]
        return losses

    # Landmarks.

    def nash_price(self, present: Array | None = None) -> Array:
        """Return prices (M,) of which each is the best against the others', by best responses.

        Of the sellers that are ``present`` (M,), by default all; prices of others do not matter.
        UserError where demand is not smooth or a lone seller's price has no limit, or best
        responses do not come to rest.
        """
        self._check_smooth()
        sellers = self._sellers(present)
        if len(sellers) == 1:
            self._check_outside()
        prices = np.asarray(self._menus.mean(1))
        for _ in range(ROUNDS_TO_EQUILIBRIUM):
            before = prices.copy()
            for seller in sellers:
                prices[seller] = self._best_price(seller, prices, present)
            if np.abs(prices - before).max() < PRICE_TOLERANCE:
                return prices
        raise UserError("market: best responses of prices do not come to rest; no Nash price")

    def monopoly_price(self, present: Array | None = None) -> Array:
        """Return the prices (M,) at which the sellers that are ``present`` earn most together.

        UserError as above, and without an outside good: buyers then pay any price.
        """
        self._check_smooth()
        self._check_outside()
        sellers = self._sellers(present)
        prices = np.asarray(self._menus.mean(1))

        def joint_loss(prices_of_sellers: Array) -> float:
            prices[sellers] = prices_of_sellers
            return -float(self.profits(prices, present).sum())

        found = minimize(
            joint_loss,
            prices[sellers],
            method="Nelder-Mead",
            options={"xatol": PRICE_TOLERANCE, "fatol": 1e-14, "maxiter": 200_000},
        )
        prices[sellers] = found.x
        return prices

    def _sellers(self, present: Array | None) -> Indices:
        """Return the numbers of the sellers that are present, by default of all."""
        return np.arange(self.n_sellers) if present is None else np.flatnonzero(present)

    def _best_price(self, seller: int, prices: Array, present: Array | None) -> float:
        """Return the price of a seller that earns most against the others' prices (M,)."""

        def loss_at(price: float) -> float:
            charged = prices.copy()
            charged[seller] = price
            return -float(self.profits(charged, present)[seller])

        widest = np.ptp(self._menus) + 1.0
        bounds = (self.cost[seller], self._menus.max() + widest)
        found = minimize_scalar(loss_at, bounds=bounds, method="bounded", options={"xatol": 1e-12})
        return float(found.x)

    def _check_smooth(self) -> None:
        if self.demand == "winner-takes-all":
            raise UserError('market: demand "winner-takes-all" has no smooth best response')

    def _check_outside(self) -> None:
        if self.demand == "logit" and self.outside is None:
            raise UserError(f"market.outside: {NO_MONOPOLY}; give a number, such as 0.0")

    @cached_property
    def landmark_profits(self) -> tuple[float, float] | None:
        """The mean profit of a seller at the Nash and at the monopoly price, all being there.

        None where demand is not smooth, or there is no Nash or no monopoly price.
        """
        try:
            at_nash, at_monopoly = self._joint_landmarks(None)
        except UserError:
            return None
        return at_nash / self.n_sellers, at_monopoly / self.n_sellers

    def _joint_landmarks(self, present: Array | None) -> tuple[float, float]:
        """Return the joint profit at the Nash and at the monopoly price of those present (M,).

        UserError where there is no such price.
        """
        at_monopoly = self.profits(self.monopoly_price(present), present).sum()
        at_nash = self.profits(self.nash_price(present), present).sum()
        return float(at_nash), float(at_monopoly)

    def profit_gain(self, mean_profit: float) -> float | None:
        """Return the share of the way from Nash to monopoly profit that a mean profit has gone.

        None where the two are not known, or the same.
        """
        if self.landmark_profits is None:
            return None
        at_nash, at_monopoly = self.landmark_profits
        if at_monopoly - at_nash <= 1e-9:
            return None
        return (mean_profit - at_nash) / (at_monopoly - at_nash)

    def _profit_gain_of_play(self) -> float | None:
        """Return the profit gain of all rounds so far, by the sellers that were there in each.

        None where there is none; ``_why_no_profit_gain`` says why.
        """
        rounds, _, _, profits = self._totals()
        if self._everybody_always_was_there:
            if not rounds.any():
                return None
            return self.profit_gain(float((profits / np.maximum(rounds, 1)).mean()))
        if len(self.rounds_by_presence) > MAX_PRESENCE_SETS:
            return None
        total_at_nash = 0.0
        total_at_monopoly = 0.0
        for present, n_rounds in self._rounds_of_sets():
            try:
                at_nash, at_monopoly = self._joint_landmarks(present)
            except UserError:
                return None
            total_at_nash += n_rounds * at_nash
            total_at_monopoly += n_rounds * at_monopoly
        if total_at_monopoly - total_at_nash <= 1e-9 * rounds.sum():
            return None
        return float((profits.sum() - total_at_nash) / (total_at_monopoly - total_at_nash))

    @property
    def _everybody_always_was_there(self) -> bool:
        return set(self.rounds_by_presence) <= {"1" * self.n_sellers}

    def _rounds_of_sets(self) -> Iterator[tuple[Array, int]]:
        """Yield which sellers were there (M,), 1 or 0 each, and for how many rounds."""
        n_counted = int(self.profile_counts.sum())  # in which everybody was there
        if n_counted:
            yield np.ones(self.n_sellers), n_counted
        for presence, n_rounds in self.rounds_by_presence.items():
            if "1" in presence:
                yield np.array([float(mark) for mark in presence]), n_rounds

    def _why_no_profit_gain(self) -> str:
        """Say why there is no profit gain; "" where demand has none, or nothing was played."""
        if len(self.rounds_by_presence) > MAX_PRESENCE_SETS:
            return TOO_MANY_SETS
        if self.demand == "logit" and self.outside is None:
            return f"{NO_MONOPOLY} (market.outside)"
        if self.demand == "winner-takes-all" or self._everybody_always_was_there:
            return ""
        n_present = [present.sum() for present, _ in self._rounds_of_sets()]
        if max(n_present, default=0) < MIN_COMPETITORS:
            return "no two sellers were there at a time"
        return ""

    def _totals(self) -> Array:
        """Return rounds, and sums of each seller's price, quantity and profit, in all (4, M)."""
        if self.profile_table is None:
            return self.sums
        n_rounds = self.profile_counts.sum()
        margins = self._profile_prices - self.cost
        of_profiles = np.stack(
            [
                np.full(self.n_sellers, float(n_rounds)),
                self.profile_counts @ self._profile_prices,
                self.profile_counts @ self._profile_quantities,
                self.profile_counts @ (margins * self._profile_quantities),
            ]
        )
        return np.asarray(self.sums + of_profiles)

    def _seller_means(self) -> SellerMeans:
        """Return every seller's averages over the rounds in which it was there."""
        rounds, prices, quantities, profits = self._totals()
        divisor = np.maximum(rounds, 1)
        return SellerMeans(
            was_there=rounds > 0,
            price=prices / divisor,
            quantity=quantities / divisor,
            profit=profits / divisor,
        )

    def described(self) -> dict[str, Any]:
        means = self._seller_means()
        return {
            "price": means.price.tolist(),
            "quantity": means.quantity.tolist(),
            "profit": means.profit.tolist(),
            "profit_gain": self._profit_gain_of_play(),
        }

    def summary(self) -> str:
        means = self._seller_means()
        gain = self._profit_gain_of_play()
        text = "Market: no seller was there yet"
        if means.was_there.any():
            mean_price = float(means.price[means.was_there].mean())
            mean_profit = float(means.profit[means.was_there].mean())
            text = (
                f"Market: mean price {mean_price:.4g}, mean profit "
                f"{mean_profit:.4g} per seller and round"
            )
        if gain is not None:
            text += f", {100 * gain:.0f} % of the way from Nash to monopoly profit"
            if not self._everybody_always_was_there:
                text += " of those present"
        elif self._why_no_profit_gain():
            text += f"; no profit gain, since {self._why_no_profit_gain()}"
        return text
