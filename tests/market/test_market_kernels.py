"""The kernels of markets beside the same formulas in NumPy."""

from typing import NamedTuple

import numpy as np
import pytest

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.game.accounts import UNIT
from regretless.market.losses.trade import Trade
from regretless.market.markets import (
    aggregate,
    congestion,
    cournot,
    information_acquisition,
    inventory,
    portfolio,
    price_impact,
    sealed_bids,
)
from regretless.market.numerics import exact_sum

ADJUSTMENT = 0.3
ROUNDS_BEFORE = 4
ROUNDING = 1e-13

each_size = pytest.mark.parametrize("size", [1, 3])
each_seed = pytest.mark.parametrize("seed", [1, 2])
each_feedback = pytest.mark.parametrize("answers_at_once", [False, True])


def random_actions(rng: np.random.Generator, agents: int, actions: int) -> Indices:
    """Return actions (N,) of agents of whom a third or so are absent."""
    return rng.integers(-1, actions, agents) if actions > 1 else rng.integers(-1, 1, agents)


class Settled(NamedTuple):
    """A market before a round: its fundamental and level (d,), and moments of 4 outcomes (d,)."""

    fundamental: Array
    level: Array
    mean: Array
    squares: Array


def settled_market(rng: np.random.Generator, size: int) -> Settled:
    """Return a market whose fundamentals are near 0 or 1, so that some outcomes are cut."""
    return Settled(
        fundamental=rng.integers(0, 2, size) + rng.normal(0.0, 0.1, size),
        level=rng.random(size),
        mean=rng.random(size),
        squares=rng.random(size),
    )


def check_outcome(
    market: Settled, before: Settled, uncut: Array, *, was_cut: bool, new_level: Array, load: Array
) -> None:
    """Assert that the outcome is the one ``uncut``, cut, and was added to the moments.

    ``market`` holds what a kernel has written, its outcome in place of the fundamental.
    """
    expected_outcome = np.clip(uncut, 0.0, 1.0)
    assert market.fundamental == pytest.approx(expected_outcome, abs=ROUNDING)
    assert was_cut == (np.abs(uncut - expected_outcome) > aggregate.CLIPPING_TOLERANCE).any()
    moments = np.array([market.mean, market.squares])
    moments_before = np.array([before.mean, before.squares])
    check_moments(moments, moments_before, added=expected_outcome)
    expected_level = (1 - ADJUSTMENT) * before.level + ADJUSTMENT * load
    assert new_level == pytest.approx(expected_level, abs=ROUNDING)


def some_moments(rng: np.random.Generator, size: int) -> Array:
    """Return a mean and a sum of squared deviations of ``ROUNDS_BEFORE`` arrays: (2, size)."""
    return rng.random((2, size))


def check_moments(moments: Array, before: Array, *, added: Array) -> None:
    """Assert that a mean and a sum of squared deviations (2, size) have one more array (size,)."""
    mean_before, squares_before = before
    from_mean = added - mean_before
    observations = ROUNDS_BEFORE + 1
    expected_mean = mean_before + from_mean / observations
    expected_squares = squares_before + from_mean**2 * (1 - 1 / observations)
    assert moments[0] == pytest.approx(expected_mean, abs=ROUNDING)
    assert moments[1] == pytest.approx(expected_squares, abs=ROUNDING)


def copy_of(market: Settled) -> Settled:
    return Settled(*(part.copy() for part in market))


@each_feedback
@each_size
@each_seed
@pytest.mark.parametrize("agents", [0, 1, 7])
def test_a_crowd_that_settles_is_that_of_the_formula(
    seed: int, size: int, agents: int, *, answers_at_once: bool
) -> None:
    rng = stream(seed, "crowd")
    before = settled_market(rng, size)
    market = copy_of(before)
    counts = rng.multinomial(agents, np.full(size + 1, 1 / (size + 1))).astype(float)
    always = rng.random(size) / size
    share = np.empty(size)
    new_level = np.empty(size)

    was_cut = congestion._answer_crowd(
        counts, market.level, ADJUSTMENT, answers_at_once, always, 0.6, 0.8, market.fundamental,
        share, new_level, ROUNDS_BEFORE + 1, market.mean, market.squares,
    )  # fmt: skip

    expected_share = counts[1:] / max(agents, 1)
    level = new_level if answers_at_once else before.level
    uncut = always + 0.6 * level + 0.8 * (before.fundamental - 0.5)
    assert share == pytest.approx(expected_share, abs=ROUNDING)
    check_outcome(market, before, uncut, was_cut=was_cut, new_level=new_level, load=share)


def exact_sums(rng: np.random.Generator, agents: int, size: int) -> tuple[Array, Array]:
    """Return the two numbers of each sum (2, 1 + d) over so many agents, and the loads (d,)."""
    loads = rng.random((agents, size))
    each_once = np.ones(agents)
    sums = np.zeros((2, 1 + size))
    sums[0, 0] = agents
    if agents:
        sums[:, 1:] = exact_sum.total(loads, each_once)
    return sums, loads.sum(0)


@each_feedback
@each_size
@each_seed
@pytest.mark.parametrize("drivers", [0, 1, 5])
def test_traffic_that_settles_is_that_of_the_formula(
    seed: int, size: int, drivers: int, *, answers_at_once: bool
) -> None:
    rng = stream(seed, "traffic")
    before = settled_market(rng, size)
    market = copy_of(before)
    sums, drivers_on_road = exact_sums(rng, drivers, size)
    free_times = rng.random(size)
    time_per_flow = rng.random(size)
    flow = np.empty(size)
    new_level = np.empty(size)

    flows = some_moments(rng, size)
    times = some_moments(rng, 1)
    flows_before = flows.copy()
    times_before = times.copy()
    time = np.empty(1)

    was_cut = congestion._answer_traffic(
        sums, market.level, ADJUSTMENT, answers_at_once, free_times, time_per_flow, 0.5, 0.8,
        market.fundamental, flow, new_level, time, ROUNDS_BEFORE + 1, market.mean, market.squares,
        *flows, *times,
    )  # fmt: skip

    flow_that_counts = new_level if answers_at_once else before.level
    uncut = free_times + 1.5 * time_per_flow * flow_that_counts + 0.8 * (before.fundamental - 0.5)
    travel_times = free_times + time_per_flow * flow_that_counts
    assert flow == pytest.approx(drivers_on_road / max(drivers, 1), abs=ROUNDING)
    assert time == pytest.approx(flow_that_counts @ travel_times, abs=ROUNDING)
    check_moments(flows, flows_before, added=flow)
    check_moments(times, times_before, added=time)
    check_outcome(market, before, uncut, was_cut=was_cut, new_level=new_level, load=flow)


@each_feedback
@each_size
@each_seed
@pytest.mark.parametrize("firms", [0, 4])
def test_prices_of_what_firms_supply_are_those_of_the_formula(
    seed: int, size: int, firms: int, *, answers_at_once: bool
) -> None:
    rng = stream(seed, "supply")
    before = settled_market(rng, size)
    market = copy_of(before)
    sums, quantities = exact_sums(rng, firms, size)
    intercept = 1.0 + rng.random(size)
    supply = np.empty(size)
    new_level = np.empty(size)

    supplied = some_moments(rng, size)
    supplied_before = supplied.copy()

    was_cut = cournot._answer_supply(
        sums, market.level, ADJUSTMENT, answers_at_once, intercept, 0.9, 0.2, market.fundamental,
        supply, new_level, ROUNDS_BEFORE + 1, market.mean, market.squares, *supplied,
    )  # fmt: skip

    quantity = new_level if answers_at_once else before.level
    uncut = intercept + 0.2 * (before.fundamental - 0.5) - 0.9 * quantity
    assert supply == pytest.approx(quantities, abs=ROUNDING)
    check_moments(supplied, supplied_before, added=supply)
    check_outcome(market, before, uncut, was_cut=was_cut, new_level=new_level, load=supply)


@each_feedback
@each_size
@each_seed
@pytest.mark.parametrize("buyers", [0, 1, 6])
def test_yields_of_what_is_demanded_are_those_of_the_formula(
    seed: int, size: int, buyers: int, *, answers_at_once: bool
) -> None:
    rng = stream(seed, "demand")
    before = settled_market(rng, size)
    market = copy_of(before)
    sums, spent = exact_sums(rng, buyers, size)
    demand = np.empty(size)
    new_price = np.empty(size)

    was_cut = price_impact._answer_demand(
        sums, market.level, ADJUSTMENT, answers_at_once, 0.4, market.fundamental, demand, new_price,
        ROUNDS_BEFORE + 1, market.mean, market.squares,
    )  # fmt: skip

    price = new_price if answers_at_once else before.level
    uncut = before.fundamental - 0.4 * (price - 1 / size)
    assert demand == pytest.approx(spent / max(buyers, 1), abs=ROUNDING)
    check_outcome(market, before, uncut, was_cut=was_cut, new_level=new_price, load=demand)


@each_seed
@pytest.mark.parametrize("agents", [0, 1, 9])
def test_those_who_take_each_action_are_counted_without_the_absent(seed: int, agents: int) -> None:
    actions = random_actions(stream(seed, "counts"), agents, 3)
    counts_before = np.array([1.0, 2.0, 3.0])
    counts = counts_before.copy()

    aggregate._add_counts(actions, counts)

    takers = (actions[:, np.newaxis] == np.arange(3)).sum(0)
    assert np.array_equal(counts, counts_before + takers)


@each_seed
@pytest.mark.parametrize("agents", [0, 1, 9])
def test_loads_are_added_up_over_agents_who_are_there(seed: int, agents: int) -> None:
    rng = stream(seed, "loads")
    loads = rng.normal(size=(4, 3, 2))
    row_of = rng.integers(0, 4, agents)
    actions = random_actions(rng, agents, 3)
    sums = np.zeros((2, 3))

    aggregate._add_loads(row_of, actions, loads, sums)

    is_there = actions >= 0
    loads_of_agents = loads[row_of[is_there], actions[is_there]]
    expected = exact_sum.total(loads_of_agents, np.ones(len(loads_of_agents)))
    assert sums[:, 0].tolist() == [is_there.sum(), 0.0]
    assert np.array_equal(sums[:, 1:], expected)
    assert sums.sum(0)[1:] == pytest.approx(loads_of_agents.sum(0), abs=ROUNDING)


@each_seed
@pytest.mark.parametrize("cost", [0.0, 0.5])
@pytest.mark.parametrize("shops", [1, 6])
def test_shops_order_and_sell_as_the_formula_says(seed: int, shops: int, cost: float) -> None:
    rng = stream(seed, "shops")
    order_levels = rng.integers(0, 5, shops) / 4
    actions = random_actions(rng, shops, 5)
    order_levels[actions < 0] = 0.0
    cash = rng.choice([0.0, 0.1, 100.0], shops + 1)
    goods = rng.choice([0.0, 0.25, 0.75], (shops + 1, 1))
    cash_received = np.empty(shops)
    goods_received = np.empty((shops, 1))
    mean_stock = np.empty(1)
    sold = np.empty(1)
    price, holding, demand = 2.0, 0.3, 0.5

    greatest_stock = inventory._sell(
        order_levels, actions, cash, goods, demand, price, cost, holding, cash_received,
        goods_received, mean_stock, sold,
    )  # fmt: skip

    stock_before = goods[:-1, 0]
    ordered = np.maximum(order_levels - stock_before, 0.0)
    if cost > 0.0:
        ordered = np.minimum(ordered, np.floor(cash[:-1] / cost / UNIT) * UNIT)
    stock = stock_before + ordered
    is_there = actions >= 0
    sales = np.where(is_there, np.minimum(stock, demand), 0.0)
    left_over = np.where(is_there, stock - sales, 0.0)
    earned = price * sales - cost * ordered - holding * left_over
    assert cash_received == pytest.approx(earned, abs=ROUNDING)
    assert goods_received[:, 0] == pytest.approx(ordered - sales, abs=ROUNDING)
    assert greatest_stock == (stock[is_there].max() if is_there.any() else 0.0)
    expected_mean = stock[is_there].mean() if is_there.any() else 0.0
    assert mean_stock[0] == pytest.approx(expected_mean, abs=ROUNDING)
    assert sold[0] == pytest.approx(sales.sum(), abs=ROUNDING)


def test_where_every_shop_is_absent_nothing_is_sold_and_no_stock_is_shown() -> None:
    nobody = np.full(3, -1)
    sold = np.empty(1)
    mean_stock = np.empty(1)

    greatest_stock = inventory._sell(
        np.zeros(3), nobody, np.ones(4), np.ones((4, 1)), 0.5, 2.0, 1.0, 0.1, np.empty(3),
        np.empty((3, 1)), mean_stock, sold,
    )  # fmt: skip

    assert (greatest_stock, mean_stock[0], sold[0]) == (0.0, 0.0, 0.0)


@each_seed
@pytest.mark.parametrize("agents", [0, 1, 8])
def test_gains_of_a_portfolio_are_losses_in_own_units_turned_round(seed: int, agents: int) -> None:
    rng = stream(seed, "gains")
    losses = rng.random((3, 4))
    offset = rng.normal(size=3)
    scale = rng.random(3)
    row_of = rng.integers(0, 3, agents)
    actions = random_actions(rng, agents, 4)
    gains = np.zeros(agents + 2)

    portfolio._write_gains(losses, offset, scale, row_of, actions, 2, gains)

    in_own_units = offset[:, None] + scale[:, None] * losses
    gains_if_there = -in_own_units[row_of, np.maximum(actions, 0)]
    assert gains[:2].tolist() == [0.0, 0.0]
    assert gains[2:] == pytest.approx(np.where(actions >= 0, gains_if_there, 0.0), abs=ROUNDING)


@each_seed
@pytest.mark.parametrize("sizes", [[1], [3, 2], [2, 0, 4]])
@pytest.mark.parametrize("wealth_of_one", [1.0, 0.0])
def test_a_cohort_has_its_members_share_of_the_wealth_of_all(
    seed: int, sizes: list[int], wealth_of_one: float
) -> None:
    rng = stream(seed, "wealth")
    wealth = wealth_of_one * rng.random(sum(sizes) + 1)  # last that of the world outside
    ends = np.cumsum(sizes)
    shares = np.empty(len(sizes))

    portfolio._write_shares(wealth, ends, 0.01, shares)

    wealth_of_cohort = [part.sum() for part in np.split(wealth[:-1], ends[:-1])]
    expected = np.array(wealth_of_cohort) / max(wealth[:-1].sum(), 0.01)
    assert shares == pytest.approx(expected, abs=ROUNDING)


@each_seed
@pytest.mark.parametrize("informed_share", [0.0, 0.4, 1.0])
def test_an_assets_price_clears_the_market_for_it(seed: int, informed_share: float) -> None:
    """The edges are the formula's, and at the price demand is supply."""
    rng = stream(seed, "assets")
    theta = rng.normal(size=5)
    supply = rng.normal(size=5)
    aversion, signal, noise, supply_variance = 2.0, 0.7, 0.3, 0.5
    squared_edges = np.empty((2, 5))

    information_acquisition._write_squared_edges(
        theta, supply, informed_share, aversion, signal, noise, supply_variance, squared_edges
    )

    rho = 0.0
    expected_value = np.zeros(5)
    if informed_share:
        noise_of_price = aversion * noise / informed_share  # by which supply blurs theta
        rho = signal / (signal + noise_of_price**2 * supply_variance)
        expected_value = rho * (theta - noise_of_price * supply)
    variance = signal * (1 - rho) + noise
    informed_slope = informed_share / (aversion * noise)
    uninformed_slope = (1 - informed_share) / (aversion * variance)
    demanded_at_0 = informed_slope * theta + uninformed_slope * expected_value
    price = (demanded_at_0 - supply) / (informed_slope + uninformed_slope)
    assert squared_edges[0] == pytest.approx((theta - price) ** 2 / noise, rel=1e-10)
    assert squared_edges[1] == pytest.approx((expected_value - price) ** 2 / variance, rel=1e-10)


class Auction(NamedTuple):
    """Bids of N bidders, -1 for who is absent, on a coarse grid, so that some are equal."""

    bids: Array
    lot: Indices
    value: Array
    floor: float
    units: int

    def ranking(self) -> Indices:
        """Return bidders from the highest bid to the lowest, equal ones by lot."""
        return np.lexsort((self.lot, -self.bids))


def draw_auction(seed: int, bidders: int, units: int) -> Auction:
    rng = stream(seed, "auction")
    return Auction(
        bids=rng.integers(-1, 4, bidders).astype(np.float64),
        lot=rng.permutation(bidders),
        value=3.0 * rng.random(bidders),
        floor=1.0,
        units=units,
    )


each_auction = pytest.mark.parametrize(("bidders", "units"), [(1, 1), (2, 1), (5, 1), (6, 3)])


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("own_bid", [False, True])
@each_auction
def test_units_go_to_the_highest_bids_at_what_the_rule_says(
    seed: int, bidders: int, units: int, *, own_bid: bool
) -> None:
    auction = draw_auction(seed, bidders, units)
    ranking = auction.ranking()
    rival_bid = np.empty(bidders)
    rival_lot = np.empty(bidders, dtype=np.intp)
    sums = np.ones(6)

    revenue, n_sold, price = sealed_bids._sell(
        auction.bids, auction.lot, ranking, auction.value, units, auction.floor, own_bid,
        rival_bid, rival_lot, sums,
    )  # fmt: skip

    winners = [bidder for bidder in ranking[:units] if auction.bids[bidder] >= auction.floor]
    highest_loser = -1.0 if bidders <= units else auction.bids[ranking[units]]
    paid = auction.bids[winners] if own_bid else np.full(len(winners), max(highest_loser, 1.0))
    is_there = auction.bids >= 0
    present_values = np.sort(auction.value[is_there])[::-1]
    assert revenue == pytest.approx(paid.sum(), abs=ROUNDING)
    assert n_sold == len(winners)
    assert price == (paid.min() if winners else auction.floor)
    expected_sums = [
        1,
        paid.sum(),
        auction.value[winners].sum(),
        present_values[:units].sum(),
        auction.bids[is_there].sum(),
        present_values.sum(),
    ]
    assert sums == pytest.approx(1.0 + np.array(expected_sums), abs=ROUNDING)
    for bidder in range(bidders):
        rivals = [other for other in ranking if other != bidder]
        if len(rivals) < units:
            assert rival_bid[bidder] == -1.0
        else:
            assert rival_bid[bidder] == auction.bids[rivals[units - 1]]
            assert rival_lot[bidder] == auction.lot[rivals[units - 1]]


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("own_bid", [False, True])
@each_auction
def test_a_bid_loses_what_selling_again_with_it_would_cost(
    seed: int, bidders: int, units: int, *, own_bid: bool
) -> None:
    auction = draw_auction(seed, bidders, units)
    greatest_bids = np.tile([0.0, 1.0, 2.0], (bidders, 1))
    scale = np.full(bidders, 1.0)
    unit_offset = np.linspace(-1.0, 0.5, bidders)
    unit_scale = np.linspace(1.0, 2.0, bidders)
    rival_bid = np.empty(bidders)
    rival_lot = np.empty(bidders, dtype=np.intp)
    sealed_bids._sell(
        auction.bids, auction.lot, auction.ranking(), auction.value, units, auction.floor, own_bid,
        rival_bid, rival_lot, np.zeros(6),
    )  # fmt: skip
    losses = np.empty((bidders, 3))

    sealed_bids._write_losses(
        greatest_bids, scale, auction.lot, auction.value, rival_bid, rival_lot, auction.floor,
        own_bid, unit_offset, unit_scale, losses,
    )  # fmt: skip

    for bidder in range(bidders):
        for action, bid in enumerate(greatest_bids[bidder]):
            bids = auction.bids.copy()
            bids[bidder] = bid
            sold_again = auction._replace(bids=bids)
            ranking = sold_again.ranking()
            gain = 0.0
            if bidder in ranking[:units] and bid >= auction.floor:
                highest_loser = bids[ranking[units]] if bidders > units else -1.0
                gain = auction.value[bidder] - (bid if own_bid else max(highest_loser, 1.0))
            expected = (-gain - unit_offset[bidder]) / unit_scale[bidder]
            assert losses[bidder, action] == pytest.approx(expected, abs=ROUNDING)


@each_seed
def test_bids_are_shares_of_what_was_drawn_and_none_of_who_is_absent(seed: int) -> None:
    rng = stream(seed, "bids")
    greatest_bids = rng.random((6, 3))
    scale = rng.random(6)
    actions = random_actions(rng, 6, 3)
    bids = np.empty(6)

    sealed_bids._write_bids(greatest_bids, scale, actions, bids)

    chosen = greatest_bids[np.arange(6), np.maximum(actions, 0)] * scale
    assert np.array_equal(bids, np.where(actions >= 0, chosen, -1.0))


@each_seed
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 4, 2)])
def test_orders_lose_what_trading_gains_turned_round(
    seed: int, shape: tuple[int, int, int]
) -> None:
    rng = stream(seed, "orders")
    quantity = rng.integers(-1, 2, shape) * rng.random(shape)  # some trade nothing
    limit = rng.random(shape)
    prices = rng.random((5, shape[2]))

    losses = Trade(quantity, limit).losses(prices)

    gains = np.maximum(quantity * (limit - prices[:, None, None, :]), 0.0).sum(-1)
    assert losses == pytest.approx(-gains, abs=ROUNDING)


@each_seed
@each_size
def test_a_rounds_concentration_and_churn_are_those_of_the_table(seed: int, size: int) -> None:
    rng = stream(seed, "demand of rounds")
    demand = rng.random((2, size))

    of_round = price_impact._concentration_and_churn(demand[1], demand[0])

    expected = (price_impact.concentration(demand)[1], price_impact.churn(demand)[1])
    assert of_round == pytest.approx(expected, abs=ROUNDING)
