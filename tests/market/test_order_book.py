"""The order book against a plain one, which clears again for each action, and what it must keep."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from written import Reference

from regretless import load, register
from regretless.agents import ScriptedAgent
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.report import market_figures  # noqa: F401 - registered
from regretless.scenarios.report.figures import Run, drawn
from regretless.scenarios.run import Options, run


@dataclass
class Order:
    """One order; ``units`` are what is left of it, ``entered`` its round, ``kept`` if it rests."""

    owner: int
    good: int
    side: int  # 1 bids, -1 offers
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
    """The rules, who owns what, and the open orders, oldest first: lists, and nothing compiled.

    It is played beside the market, and again for each action of each agent. All amounts are
    binary fractions of few digits, so that floats are exact.
    """

    owners: list[Owner]
    maker: float
    taker: float
    batch: bool
    tick: float
    lot: float
    last: list[float]
    orders: list[Order]
    refused: int = 0

    def at_risk(self, order: Order) -> float:
        """Cash that an open order may take, with the most that a trade may cost beside."""
        fee = max(self.maker, self.taker, 0.0)
        return order.units * max(0.0, order.side * order.limit + fee)

    def rivals(self, order: Order) -> list[Order]:
        """Orders that an order would trade with, the best price first, then the oldest."""
        others = [o for o in self.orders if (o.good, o.side) == (order.good, -order.side)]
        found = [o for o in others if order.side * (order.limit - o.limit) >= 0]
        return sorted(found, key=lambda other: order.side * other.limit)

    def now(self, order: Order) -> float:
        """Cash that an order which does not rest takes from its owner."""
        left, cost = order.units, 0.0
        for other in self.rivals(order):
            part = min(left, other.units)
            cost += part * (order.side * other.limit + self.taker)
            left -= part
        return cost

    def accepts(self, order: Order) -> bool:
        own, mine = self.owners[order.owner], [o for o in self.orders if o.owner == order.owner]
        rests = order.kept or self.batch
        cost = self.at_risk(order) if rests else self.now(order)
        alike = [o.units for o in mine if (o.good, o.side) == (order.good, order.side)]
        owned, all_alike = own.goods[order.good], sum(alike) + order.units
        fits = owned + all_alike <= own.hold if order.side > 0 else all_alike <= owned
        busy = own.traded + sum(o.units for o in mine) + order.units
        own_trade = any(other.owner == order.owner for other in self.rivals(order))
        free = own.cash - sum(map(self.at_risk, mine))
        return busy <= own.most and fits and cost <= free and not own_trade

    def settle(self, order: Order, price: float, units: float, fee: float) -> None:
        """Hand over goods and cash."""
        own = self.owners[order.owner]
        own.goods[order.good] += order.side * units
        own.cash -= order.side * units * price + units * fee
        own.traded += units
        order.units -= units

    def arrive(self, who: int, orders: list[Order], *, keeps: bool) -> None:
        """Let an agent do something; its orders trade at the prices of those that were there."""
        self.orders = [order for order in self.orders if keeps or order.owner != who]
        for order in orders:
            if not self.accepts(order):
                self.refused += 1
                continue
            for other in [] if self.batch else self.rivals(order):
                if order.units:
                    part = min(order.units, other.units)
                    self.settle(order, other.limit, part, self.taker)
                    self.settle(other, other.limit, part, self.maker)
                    self.last[order.good] = other.limit
            self.orders = [other for other in self.orders if other.units]
            if order.units and (order.kept or self.batch):
                self.orders.append(order)

    def auction(self, arrivals: list[int], number: int) -> None:
        """Clear what is open at one price for each good."""
        self.orders.sort(key=lambda order: arrivals.index(order.owner))
        for good in range(len(self.last)):
            here = [order for order in self.orders if order.good == good]
            price = self.price(here, good)
            wanting = [o for o in here if o.side * (o.limit - price) >= 0]
            sides = [[o for o in wanting if o.side == side] for side in (1, -1)]
            volume = min(sum(o.units for o in side) for side in sides)
            if volume:
                self.last[good] = price
                for side in sides:
                    self.share(side, price, volume, number)
        self.orders = [order for order in self.orders if order.units]

    def price(self, here: list[Order], good: int) -> float:
        """Return the middle of the prices at which nobody is left wanting; the last, if it may."""

        def wanted(side: int, least: float) -> float:
            return sum(o.units for o in here if o.side == side and side * o.limit >= least)

        def clears(p: float) -> bool:
            more, less = wanted(1, p + self.tick), wanted(-1, self.tick - p)
            return more <= wanted(-1, -p) and less <= wanted(1, p)

        fine = [p for p in np.arange(0, 1 + self.tick, self.tick).tolist() if clears(p)]
        low, high = min(fine), max(fine)
        crossing = any(wanted(1, o.limit) for o in here if o.side < 0)
        return (low + high) / 2 if crossing else min(max(self.last[good], low), high)

    def share(self, side: list[Order], price: float, volume: float, number: int) -> None:
        """Fill better orders, and those at the price in proportion, by running sums of lots."""
        edge = [o.units for o in side if o.limit == price]
        left = volume - sum(o.units for o in side if o.limit != price)
        sofar = 0.0
        for order in side:
            units = order.units
            if order.limit == price:
                before = sofar * left // (sum(edge) * self.lot)
                sofar += order.units
                units = (sofar * left // (sum(edge) * self.lot) - before) * self.lot
            older = order.kept and order.entered < number
            self.settle(order, price, units, self.maker if older else self.taker)

    def play(self, arrivals: list[int], sent: Callable[..., Any], number: int) -> None:
        for own in self.owners:
            own.traded = 0.0
        for who in arrivals:
            orders, keeps = sent(who)
            self.arrive(who, orders, keeps=keeps)
        if self.batch:
            self.auction(arrivals, number)

    def imagined(self, arrivals: list[int], sent: Callable[..., Any], number: int) -> list[Owner]:
        """Return what everybody would own after a round."""
        owners = [replace(own, goods=[*own.goods]) for own in self.owners]
        orders = [replace(order) for order in self.orders]
        other = replace(self, owners=owners, orders=orders, last=[*self.last])
        other.play(arrivals, sent, number)
        return owners


def people(utility: str, count: int, actions: int, response: str, **parameters: Any) -> worlds.Raw:
    own = {"utility": utility, "count": count, "actions": actions, "response": response}
    return own | {"parameters": parameters}


MENU = [[0, 0, 0, 0, 0, 0], [1, 0.5, 0, -1, 0.75, 0], [2, 0.625, 0, 1, 0.25, 0]]
MENU += [[1, 0.75, 0, -2, 0.375, 0], [0, 0.9, 0, 0, 0.2, 0]]
TWO = [[0, 0, 0] * 2, [1, 0.5, 0, -1, 0.5, 1], [1, 0.625, 1, -1, 0.375, 0], [2, 1.0, 0, 1, 0.5, 1]]
GRID = {"value": [0.2, 0.9], "low": 0.125, "high": 0.875}
TRADERS = people("orders", 4, 15, "exp3", **GRID)
MAKERS = people("quotes", 2, 5, "hedge", value=0.5, size=2.0, high=1.0)
TAKERS = people("orders", 2, 3, "hedge", common=1.0, size=3.0, rests=False)
KEEPERS = people("orders", 2, 5, "exp3", value=0.6, menu=MENU, keeps=True, most=6.0)
PAIRS = people("orders", 4, 4, "exp3", value=[0.3, 0.8], menu=TWO)
FEES = {"maker_fee": -1 / 128, "taker_fee": 1 / 64}
DEAR = {"maker_fee": 1 / 32, "taker_fee": 1 / 64}
CASES: dict[str, tuple[list[worlds.Raw], worlds.Raw, int]] = {
    "fees": ([TRADERS, MAKERS], FEES, 1),
    "makers first": ([MAKERS, TAKERS, TRADERS], FEES | {"latency": {"cohort 1": 1}}, 1),
    "poor": ([TRADERS, MAKERS, TAKERS], {"cash": 1.0, "stock": 2.0, "hold": 3.0} | DEAR, 1),
    "kept": ([KEEPERS, TRADERS, TAKERS], {"expires": 3} | FEES, 1),
    "short": ([MAKERS, TAKERS], {"expires": 1, "refresh": 4}, 1),
    "two goods": ([PAIRS, PAIRS], {"stock": [3.0, 2.0]} | FEES, 2),
    "news": ([MAKERS, TAKERS, TRADERS], {"centre": "news", "hold": {"cohort 0": 9.0}}, 1),
    "latecomers": ([TRADERS, MAKERS | {"enters": 4, "exits": 9}], {}, 1),
    "lots": ([KEEPERS, TRADERS, MAKERS], {"lots": 4}, 1),
}


def raw(cohorts: list[worlds.Raw], market: worlds.Raw, goods: int = 1, rounds: int = 11) -> Any:
    own = [{"name": f"cohort {i}"} | cohort for i, cohort in enumerate(cohorts)]
    return {"name": "book", "rounds": rounds, "seed": 4, "cohort": own} | {
        "adversary": {"kind": "iid", "outcomes": goods},
        "market": {"kind": "order-book", "cash": 8.0, "stock": 8.0, "ticks": 8} | market,
    }


def scenario(*given: Any, **keys: Any) -> Any:
    return worlds.told(raw(*given, **keys))


def owned(market: Any, agent: int) -> tuple[float, list[float]]:
    return float(market.accounts.cash[agent]), market.accounts.goods[agent].tolist()


class Beside:
    """A plain book that is played beside a market."""

    def __init__(self, model: Any) -> None:
        self.model, self.market = model, model.game.market
        market, lot = self.market, 1 / self.market.lots
        self.losses = [(c.loss, i) for c in model.game.cohorts for i in range(len(c.row_of))]
        fees = [fee * market.lots / 2**22 for fee in (market._maker_fee, market._taker_fee)]
        owners = [
            Owner(*owned(market, i), float(loss.max_units[at]), int(market._hold_limits[i]) * lot)
            for i, (loss, at) in enumerate(self.losses)
        ]
        rules = *fees, market._is_batch, 1 / market.ticks, lot
        self.book = PlainBook(owners, *rules, [0.5] * market.goods, [])

    def sent(self, actions: Any, number: int, shift: Any) -> Callable[[int], Any]:
        """Return what tells an agent's orders, and whether older ones are kept."""

        def of(agent: int) -> tuple[list[Order], bool]:
            (loss, at), action = self.losses[agent], actions[agent]
            if action < 0:
                return [], False
            orders = []
            for j in np.flatnonzero(loss.units[at, action]):
                units, good = float(loss.units[at, action, j]), int(loss.asset[at, action, j])
                limit = min(max(float(loss.limit[at, action, j]) + shift[good], 0.0), 1.0)
                one = Order(agent, good, int(np.sign(units)), limit, abs(units), number, kept=False)
                orders.append(replace(one, kept=bool(loss.rests_on_book[at, action])))
            return orders, bool(loss.keeps_open_orders[at, action])

        return of

    def step(self) -> tuple[Any, Any]:
        """Play a round; return what each action of each agent gained (N, A), and what was done."""
        model, market, book, number = self.model, self.market, self.book, self.model.played
        if market.refresh and number and number % market.refresh == 0:
            for own, cash, goods in zip(
                book.owners, market._initial_cash, market._initial_goods, strict=True
            ):
                own.cash, own.goods = float(cash), goods.tolist()
            book.orders = []
        model.step()
        f = model.rounds_frame().iloc[-1].filter(like="fundamental").to_numpy(float)
        shift = [
            round((x - 0.5) * market.ticks) * market._centre_follows_news / market.ticks for x in f
        ]
        arrivals, gains = market.arrivals.tolist(), []
        actions = np.concatenate([model.last_actions(i) for i in range(len(model.game.cohorts))])
        for i, (loss, at) in enumerate(self.losses):
            before, worth, own = (
                book.owners[i],
                loss.private_value[at, 0] + loss.common_weight[at] * f,
                [],
            )
            for a in range(loss.actions if actions[i] >= 0 else 0):
                played = actions.copy()
                played[i] = a
                after = book.imagined(arrivals, self.sent(played, number, shift), number)[i]
                goods = np.subtract(after.goods, before.goods)
                own.append(after.cash - before.cash + float(goods @ worth))
            gains.append(own)
        book.play(arrivals, self.sent(actions, number, shift), number)
        oldest = number + 2 - market.expires if market.expires else 0
        book.orders = [order for order in book.orders if order.kept and order.entered >= oldest]
        return gains, actions

    def check(self) -> None:
        """Hold what is owned and what is open against the market."""
        for i, own in enumerate(self.book.owners):
            assert owned(self.market, i) == (own.cash, own.goods)
        view = self.market.book()
        for side, told in ((1, view.bids), (-1, view.asks)):
            depth = np.zeros(np.shape(told))
            for order in self.book.orders:
                tick = round(order.limit * self.market.ticks)
                depth[order.good, tick] += order.units * (order.side == side)
            assert np.array_equal(told, depth)


@pytest.mark.parametrize("matching", ["continuous", "batch"])
@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_clearing_again_for_each_action(case: str, matching: str) -> None:
    """Also when it goes on from a state."""
    cohorts, market, goods = CASES[case]
    chosen = scenario(cohorts, market | {"matching": matching}, goods)
    model, again = chosen.build(), chosen.build()
    beside, total, logs, trades = Beside(model), model.game.market.accounts.totals(), {}, 0
    bandit = [cohort.bandit for cohort in model.game.cohorts for _ in cohort.row_of]
    for number in range(model.rounds):
        if number == 6:
            again.restore(model.state())
            trades, model = len(model.trades_frame()), again
            beside.model, beside.market = again, again.game.market
        played = [row for cohort in model.game.cohorts for row in cohort.learner.play()]
        gains, actions = beside.step()
        for i, (loss, at) in enumerate(beside.losses):
            if actions[i] >= 0:
                row = (-np.array(gains[i]) - loss.unit_offset[at]) / loss.unit_scale[at]
                own = np.eye(len(row))[actions[i]] if bandit[i] else played[i]
                logs.setdefault(i, []).append((row, own))
        beside.check()
        assert (model.game.market.accounts.totals() == total).all()
    frame, spread = model.agents_frame(), 0.0
    for i, rows in logs.items():
        log = [np.array(part) for part in zip(*rows, strict=True)]
        spread += log[0].std(0).sum()
        found = frame.loc[i, ["external_regret", "swap_regret"]].to_numpy(float)
        assert found == pytest.approx(worlds.regrets(*log)[1:3], abs=1e-12)
    assert spread > 0
    assert trades + len(model.trades_frame()) > 5
    refused = model.game.market.described()["refused"] * model.rounds
    assert refused == pytest.approx(beside.book.refused)
    assert refused > 0 or case != "poor"


def test_trades_add_up_to_what_changed_hands() -> None:
    model = scenario(*CASES["two goods"], rounds=30).build()
    before = model.game.market.accounts.of(slice(0, 8))
    cash, stock = before.cash.copy(), before.goods.copy()
    model.run()
    trades = model.trades_frame()
    for row in trades.to_dict("records"):
        for who, sign in (("buyer", 1), ("seller", -1)):
            fee = 1 / 64 if row["aggressor"] == who else -1 / 128
            cash[row[who] - 1] -= row["quantity"] * (sign * row["price"] + fee)
            stock[row[who] - 1, row["good"]] += sign * row["quantity"]
    after = model.game.market.accounts.of(slice(0, 8))
    assert (after.cash == cash).all()
    assert (after.goods == stock).all()
    assert (trades["buyer"] != trades["seller"]).all()
    by_round = trades.groupby("round")["sequence"]
    assert (by_round.max() + 1 == by_round.count()).all()
    quotes = model.quotes_frame()
    assert len(quotes) == 60
    assert (quotes["bid"].dropna() < quotes["ask"][quotes["bid"].notna()].fillna(2)).all()


def shown(tables: Any, name: str) -> Any:
    found = drawn("run", Run({}, tables), [name])
    return found[name].made if found else None


def trace(figure: Any, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def test_a_report_shows_the_book_and_tells_how_prices_move(reference: Reference) -> None:
    """Against formulas over lists; where nobody trades there is no figure."""
    _, tables = read_run(reference(raw(*CASES["makers first"], rounds=300)))
    dots = trace(shown(tables, "book"), "trades")
    assert sorted(dots.y) == sorted(tables["trades"]["price"])
    gapped = tables["quotes"].copy()
    gapped.loc[::7, "ask"] = np.nan  # nobody sells after some rounds: others still have a spread
    spread = trace(shown(tables | {"quotes": gapped}, "book"), "spread")
    assert np.isfinite(np.asarray(spread.y)[-5:]).all()
    made = shown(tables, "book-facts")
    x = tables["quotes"].set_index("round")["mid"].ffill()
    change = x.diff().dropna().to_numpy()
    centred = change - change.mean()
    fat = (centred**4).mean() / (centred**2).mean() ** 2 - 3
    assert f"{fat:.3g}" in made.layout.annotations[0].text
    squares = trace(made, "of squared changes")
    for lag in range(1, 21):
        pair = np.corrcoef(change[lag:] ** 2, change[:-lag] ** 2)[0, 1]
        assert squares.y[lag - 1] == pytest.approx(pair)
    trades = tables["trades"].query("aggressor != ''")
    sides = trades["aggressor"].map({"buyer": 1, "seller": -1}) * trades["quantity"]
    flow = sides.groupby(trades["round"]).sum()
    for lag in (0, 7):
        moved = [
            np.sign(units) * (x[now + lag] - x[now - 1])
            for now, units in flow.items()
            if units and now > x.index[0] and now + lag in x.index
        ]
        assert trace(made, "impact").y[lag] == pytest.approx(np.nanmean(moved))
    few = {name: table.query("round < 30") for name, table in tables.items() if "round" in table}
    assert shown(tables | few, "book-facts") is None
    del tables["quotes"]
    assert shown(tables, "book") is None


def test_a_book_without_trades_has_a_table_with_its_columns_and_types(tmp_path: Path) -> None:
    """Nobody has cash, so that nobody trades."""
    played = load("zero-intelligence", rounds=5, seed=1, **{"market.cash": 0})
    model = played.build()
    model.run()
    of_those_who_trade = load("zero-intelligence", rounds=30).build(seed=1)
    of_those_who_trade.run()
    trades = model.trades_frame()
    assert len(trades) == 0
    assert trades.dtypes.equals(of_those_who_trade.trades_frame().dtypes)
    assert trades["quantity"].sum() == 0
    run(played, Options(tmp_path / "run"))
    written = read_run(tmp_path / "run")[1]["trades"]
    assert len(written) == 0
    assert written.dtypes.equals(trades.dtypes)


def test_followers_choose_price_and_side_by_the_forecast() -> None:
    """Whose unit is worth more than the price that is forecast bids for it, others offer it."""
    crowd = people("orders", 8, 15, "best-response", **GRID, width=0.25)
    model = scenario([crowd, MAKERS], {}, rounds=60).build()
    loss, seen = model.game.cohorts[0].loss, set()
    for _ in range(model.rounds):
        model.step()
        heard = model.forecasts_frame().iloc[-1].filter(regex="^p").to_numpy(float)
        for agent, action in enumerate(model.last_actions(0)):
            units, limit = loss.units[agent, action, 0], loss.limit[agent, action, 0]
            edge = loss.private_value[agent, 0, 0] - heard[0]
            assert units * edge >= 0 or abs(edge) < 1 / 8  # a tick: limits are that far apart
            seen.add((float(units), float(limit)))
    assert {side for side, _ in seen} >= {-1.0, 1.0}
    assert len({limit for side, limit in seen if side}) > 2
    assert len(model.trades_frame()) > 0
    assert (model.agents_frame()["guarantee"] == "none").all()


@register.agent("book-reader")
class BookReader(ScriptedAgent):
    """Notes what it sees, and tries to change it."""

    def arrive(self) -> None:
        self.seen: list[tuple[float, float]] = []

    def act(self, forecast: Any, context: Any) -> int:
        book = self.book
        self.seen.append((float(book.bid[0]), float(book.ask[0])))
        for values in (book.bid, book.ask, book.bids, book.asks, book.last, book.prices):
            with pytest.raises(ValueError, match="read-only"):
                values[...] = 0.0
        with pytest.raises(FrozenInstanceError):
            book.bid = book.ask
        return 0


def test_an_agent_of_ones_own_reads_the_book_and_cannot_write_it() -> None:
    reader = people("orders", 1, 3, "book-reader")
    model = worlds.played(scenario([reader, TRADERS, MAKERS], {}, rounds=30))
    quotes = model.quotes_frame()
    spread = (quotes["ask"] - quotes["bid"]).mean()  # of which one side may be empty
    assert model.game.market.described()["spread"] == pytest.approx(spread)
    seen = np.array(model.game.cohorts[0].agents[0].seen)
    assert np.isnan(seen[0]).all()
    assert np.array_equal(seen[1:], quotes[["bid", "ask"]].to_numpy()[:-1], equal_nan=True)
    assert np.isfinite(seen).any(0).all()
