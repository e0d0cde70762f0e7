"""The order book against a plain one, which clears again for each action, and what it must keep."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from plain_book import Order, Owner, PlainBook
from resuming import check_resumes
from written import Reference

from regretless import register
from regretless.agents import ScriptedAgent
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.report import market_figures  # noqa: F401 - registered
from regretless.scenarios.report.figures import Run, drawn

GRID = {"low": 0.125, "high": 0.875}
TRADERS = {"utility": "orders", "count": 4, "actions": 15, "response": "exp3"} | {
    "parameters": {"value": [0.2, 0.9]} | GRID
}
MAKERS = {"utility": "quotes", "count": 2, "actions": 5, "response": "hedge"} | {
    "parameters": {"value": 0.5, "size": 2.0, "high": 1.0}
}
TAKERS = {"utility": "orders", "count": 2, "actions": 3, "response": "hedge"} | {
    "parameters": {"common": 1.0, "size": 3.0, "rests": False}
}
MENU = [[0, 0, 0, 0, 0, 0], [1, 0.5, 0, -1, 0.75, 0], [2, 0.625, 0, 1, 0.25, 0]]
MENU += [[1, 0.75, 0, -2, 0.375, 0], [0, 0.9, 0, 0, 0.2, 0]]
KEEPERS = {"utility": "orders", "count": 2, "actions": 5, "response": "exp3"} | {
    "parameters": {"value": 0.6, "menu": MENU, "keeps": True, "most": 6.0}
}
TWO = [[0, 0, 0] * 2, [1, 0.5, 0, -1, 0.5, 1], [1, 0.625, 1, -1, 0.375, 0], [2, 1.0, 0, 1, 0.5, 1]]
PAIRS = {"utility": "orders", "count": 4, "actions": 4, "response": "exp3"} | {
    "parameters": {"value": [0.3, 0.8], "menu": TWO}
}
FEES = {"maker_fee": -1 / 128, "taker_fee": 1 / 64}
CASES: dict[str, tuple[list[worlds.Raw], worlds.Raw, int]] = {
    "fees": ([TRADERS, MAKERS], FEES, 1),
    "makers first": ([MAKERS, TAKERS, TRADERS], FEES | {"latency": {"cohort 1": 1}}, 1),
    "poor": ([TRADERS, MAKERS, TAKERS], {"cash": 1.0, "stock": 2.0, "hold": 3.0} | FEES, 1),
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
        config, lot = self.market, 1 / self.market.lots
        self.losses = [(c.loss, i) for c in model.game.cohorts for i in range(len(c.row_of))]
        fees = [fee * config.lots / 2**22 for fee in config._fees]
        owners = [
            Owner(*owned(config, i), float(loss.most[at]), int(config._hold[i]) * lot)
            for i, (loss, at) in enumerate(self.losses)
        ]
        prices, tick = [0.5] * config.goods, 1 / config.ticks
        self.book = PlainBook(owners, *fees, config._batch, tick, lot, prices, [])

    def sent(self, agent: int, action: int, number: int, shift: Any) -> tuple[list[Order], bool]:
        """Return the orders of an action, and whether older ones are kept."""
        if action < 0:
            return [], False
        loss, at = self.losses[agent]
        orders = []
        for j in np.flatnonzero(loss.units[at, action]):
            units, good = float(loss.units[at, action, j]), int(loss.asset[at, action, j])
            limit = min(max(float(loss.limit[at, action, j]) + shift[good], 0.0), 1.0)
            rests = bool(loss.rests[at, action])
            orders.append(Order(agent, good, units > 0, limit, abs(units), number, rests))
        return orders, bool(loss.keeps[at, action])

    def step(self) -> tuple[Any, Any]:
        """Play a round; return what each action of each agent gained (N, A), and what was done."""
        model, market, number = self.model, self.market, self.model.played
        if market.refresh and number and number % market.refresh == 0:
            for own, cash, goods in zip(self.book.owners, *market._begun, strict=True):
                own.cash, own.goods = float(cash), goods.tolist()
            self.book.orders = []
        model.step()
        f = model.rounds_frame().iloc[-1].filter(like="fundamental").to_numpy(float)
        shift = [round((x - 0.5) * market.ticks) * market._news / market.ticks for x in f]
        arrivals = market.arrivals.tolist()
        actions = np.concatenate([model.last_actions(i) for i in range(len(model.game.cohorts))])
        gains: list[list[float]] = []
        for i, (loss, at) in enumerate(self.losses):
            before, worth = self.book.owners[i], loss.worth[at, 0] + loss.common[at] * f
            own = []
            for a in range(loss.actions if actions[i] >= 0 else 0):
                played = actions.copy()
                played[i] = a
                after = self.book.imagined(
                    arrivals, lambda who, p=played: self.sent(who, int(p[who]), number, shift),
                    number,
                ).owners[i]  # fmt: skip
                goods = np.subtract(after.goods, before.goods)
                own.append(after.cash - before.cash + float(goods @ worth))
            gains.append(own)
        self.book.play(
            arrivals, lambda who: self.sent(who, int(actions[who]), number, shift), number
        )
        self.book.end(number, market.expires)
        return gains, actions


@pytest.mark.parametrize("matching", ["continuous", "batch"])
@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_clearing_again_for_each_action(case: str, matching: str) -> None:
    cohorts, market, goods = CASES[case]
    model = scenario(cohorts, market | {"matching": matching}, goods).build()
    beside, total = Beside(model), model.game.market.accounts.totals()
    bandit = [cohort.bandit for cohort in model.game.cohorts for _ in cohort.row_of]
    logs: dict[int, list[Any]] = {}
    for _ in range(model.rounds):
        played = [row for cohort in model.game.cohorts for row in cohort.learner.play()]
        gains, actions = beside.step()
        for i, (loss, at) in enumerate(beside.losses):
            if actions[i] >= 0:
                row = (-np.array(gains[i]) - loss.unit_offset[at]) / loss.unit_scale[at]
                own = np.eye(len(row))[actions[i]] if bandit[i] else played[i]
                logs.setdefault(i, []).append((row, own))
            owner = beside.book.owners[i]
            assert owned(model.game.market, i) == (owner.cash, owner.goods)
        assert (model.game.market.accounts.totals() == total).all()
        _same_depth(model.game.market.book(), beside.book)
    frame, spread = model.agents_frame(), 0.0
    for i, rows in logs.items():
        log = [np.array(part) for part in zip(*rows, strict=True)]
        spread += log[0].std(0).sum()
        found = frame.loc[i, ["external_regret", "swap_regret"]].to_numpy(float)
        assert found == pytest.approx(worlds.regrets(*log)[1:3], abs=1e-12)
    assert spread > 0
    assert len(model.trades_frame()) > 5


def _same_depth(view: Any, plain: PlainBook) -> None:
    for good, (bids, asks) in enumerate(zip(view.bids, view.asks, strict=True)):
        for side, buys in ((bids, True), (asks, False)):
            depth = dict.fromkeys(view.prices.tolist(), 0.0)
            for order in plain.orders:
                if (order.good, order.buys) == (good, buys):
                    depth[float(order.limit)] += float(order.units)
            assert side.tolist() == list(depth.values())


def test_trades_add_up_to_what_changed_hands() -> None:
    model = scenario(*CASES["two goods"], rounds=30).build()
    before = model.game.market.accounts.of(slice(0, 8))
    cash, stock = before.cash.copy(), before.goods.copy()
    model.run()
    trades = model.trades_frame()
    for row in trades.to_dict("records"):
        paid = row["price"] * row["quantity"]
        other = {"buyer": "seller", "seller": "buyer"}[row["aggressor"]]
        cash[row["buyer"] - 1] -= paid
        cash[row["seller"] - 1] += paid
        cash[row[row["aggressor"]] - 1] -= row["quantity"] / 64
        cash[row[other] - 1] += row["quantity"] / 128
        stock[row["buyer"] - 1, row["good"]] += row["quantity"]
        stock[row["seller"] - 1, row["good"]] -= row["quantity"]
    after = model.game.market.accounts.of(slice(0, 8))
    assert (after.cash == cash).all()
    assert (after.goods == stock).all()
    assert (trades["buyer"] != trades["seller"]).all()
    by_round = trades.groupby("round")["sequence"]
    assert (by_round.max() + 1 == by_round.count()).all()
    quotes = model.quotes_frame()
    assert len(quotes) == 60
    assert (quotes["bid"].dropna() < quotes["ask"][quotes["bid"].notna()].fillna(2)).all()


@pytest.mark.parametrize("matching", ["continuous", "batch"])
def test_a_stopped_run_goes_on_to_the_same_tables(matching: str, tmp_path: Path) -> None:
    cohorts, market, _ = CASES["kept"]
    chosen = scenario(cohorts, market | {"matching": matching}, rounds=40)
    model = check_resumes(chosen.build, 23, tmp_path)
    assert (model.trades_frame()["round"] >= 23).sum() > 5
    quotes = model.quotes_frame()  # of which one side may be empty
    spread = (quotes["ask"] - quotes["bid"]).mean()
    assert model.game.market.described()["spread"] == pytest.approx(spread)


def test_an_order_that_cannot_be_paid_is_refused() -> None:
    model = worlds.played(scenario([TRADERS], {"cash": 0.0, "stock": 1.0}))
    assert model.trades_frame().empty  # all may sell, nobody may buy
    assert model.game.market.described()["refused"] > 0
    assert np.isfinite(model.agents_frame()["swap_regret"]).all()


def shown(tables: Any, name: str) -> Any:
    found = drawn("run", Run({}, tables), [name])
    return found[name].made if found else None


def trace(figure: Any, name: str) -> Any:
    return next(trace for trace in figure.data if trace.name == name)


def test_a_report_shows_the_book_and_others_do_not(reference: Reference) -> None:
    _, tables = read_run(reference(raw(*CASES["makers first"], rounds=300)))
    dots = trace(shown(tables, "book"), "trades")
    assert sorted(dots.y) == sorted(tables["trades"]["price"])
    gapped = tables["quotes"].copy()
    gapped.loc[::7, "ask"] = np.nan  # nobody sells after some rounds: others still have a spread
    spread = trace(shown(tables | {"quotes": gapped}, "book"), "spread")
    assert np.isfinite(np.asarray(spread.y)[-5:]).all()
    del tables["quotes"]
    assert shown(tables, "book") is None


def test_a_report_tells_how_prices_move(reference: Reference) -> None:
    """Against formulas over lists; where nobody trades there is no figure."""
    _, tables = read_run(reference(raw(*CASES["makers first"], rounds=300)))
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


def test_followers_choose_price_and_side_by_the_forecast() -> None:
    """Whose unit is worth more than the price that is forecast bids for it, others offer it."""
    crowd = TRADERS | {"response": "best-response", "count": 8}
    crowd |= {"parameters": GRID | {"value": [0.2, 0.9], "width": 0.25}}
    model = scenario([crowd | {"actions": 15}, MAKERS], {}, rounds=60).build()
    loss, seen = model.game.cohorts[0].loss, set()
    for _ in range(model.rounds):
        model.step()
        heard = model.forecasts_frame().iloc[-1].filter(regex="^p").to_numpy(float)
        for agent, action in enumerate(model.last_actions(0)):
            units, limit = loss.units[agent, action, 0], loss.limit[agent, action, 0]
            edge = loss.worth[agent, 0, 0] - heard[0]
            assert units * edge >= 0 or abs(edge) < 1 / 8  # a tick: limits are that far apart
            seen.add((float(units), float(limit)))
    assert {side for side, _ in seen} >= {-1.0, 1.0}
    assert len({limit for side, limit in seen if side}) > 2
    assert len(model.trades_frame()) > 0
    assert (model.agents_frame()["guarantee"] == "none").all()


@register.agent("book-reader")
class BookReader(ScriptedAgent):
    """Notes what it sees, and tries to change it."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
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
    reader = {"utility": "orders", "count": 1, "actions": 3, "response": "book-reader"}
    model = worlds.played(scenario([reader, TRADERS, MAKERS], {}, rounds=30))
    quotes = model.quotes_frame()
    seen = np.array(model.game.cohorts[0].agents[0].seen)
    assert np.isnan(seen[0]).all()
    assert np.array_equal(seen[1:], quotes[["bid", "ask"]].to_numpy()[:-1], equal_nan=True)
    assert np.isfinite(seen).any(0).all()
