"""Tables of a market that has played no round have the columns, and types, that they will have."""

from collections.abc import Callable

import pytest

from regretless import MarketModel, load

TABLES = (
    *("rounds_frame", "forecasts_frame", "regret_frame", "windows_frame"),
    *("swaps_frame", "models_frame", "verdict_frame", "scores_frame"),
)


def market_with_data() -> MarketModel:
    """Return a market of rounds with dates and contexts, whose outcomes have names."""
    return load("crop-choice", rounds=3, windows={"every": 2}).build()


def market_with_a_paid_leader() -> MarketModel:
    return load("beating-mean-based-learners", rounds=3).build()


def market_with_several_adversaries() -> MarketModel:
    return load("cartel", rounds=3).build()


MARKETS = [market_with_data, market_with_a_paid_leader, market_with_several_adversaries]


@pytest.mark.parametrize("build", MARKETS)
def test_an_empty_table_has_the_columns_of_a_later_one(build: Callable[[], MarketModel]) -> None:
    model = build()
    empty_tables = {table: getattr(model, table)() for table in TABLES}
    model.run(3)
    for table, empty in empty_tables.items():
        later = getattr(model, table)()
        assert len(empty) == 0, table
        assert dict(empty.dtypes) == dict(later.dtypes), table


def test_empty_accounts_have_the_columns_of_later_ones() -> None:
    model = load("survival", rounds=3).build()
    empty = model.accounts_frame()
    model.run(1)
    assert dict(empty.dtypes) == dict(model.accounts_frame().dtypes)


def test_looking_at_empty_tables_changes_nothing() -> None:
    looked_at = market_with_data()
    for table in TABLES:
        getattr(looked_at, table)()
    undisturbed = market_with_data()
    looked_at.run()
    undisturbed.run()
    for table in TABLES:
        assert getattr(looked_at, table)().equals(getattr(undisturbed, table)()), table


SCENARIOS_OF_MARKETS = {
    "prices": "crowding",
    "attendance": "el-farol",
    "routes": "pigou",
    "cournot": "oligopoly",
    "information": "paying-to-know",
    "shops": "shops",
    "portfolio": "survival",
    "heterogeneous-beliefs": "fundamentalists",
    "call-auction": "call-auction",
    "order-book": "zero-intelligence",
    "first-price": "sealed-bids",
    "price-competition": "pricing-algorithms",
}


@pytest.mark.parametrize("market", SCENARIOS_OF_MARKETS)
def test_a_markets_own_columns_are_known_before_it_is_cleared(market: str) -> None:
    settings = {"market.sales": True} if market == "price-competition" else {}
    model = load(SCENARIOS_OF_MARKETS[market], rounds=1, **settings).build()
    tables = ("rounds_frame", "trades_frame", "quotes_frame", "sales_frame")
    empty_tables = {table: getattr(model, table)() for table in tables}
    model.run()
    for table, empty in empty_tables.items():
        later = getattr(model, table)()
        assert len(empty) == 0, table
        assert dict(empty.dtypes) == dict(later.dtypes), table
