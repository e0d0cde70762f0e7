"""Simulated sellers: their true regret, and what an audit says of them."""

import numpy as np
import pytest

from paper.audit_sellers import TABLES, WAYS, audited
from paper.sellers import MONOPOLY, PRICES, demand_table, play

pytestmark = pytest.mark.slow


def test_sellers_are_in_a_market_with_two_competitive_prices_and_a_monopoly_price() -> None:
    profit = PRICES[:, None] * demand_table()
    best_responses = profit.argmax(0)
    assert [best_responses[price] == price for price in range(5)] == [
        False,
        True,
        True,
        False,
        False,
    ]
    assert np.diag(profit).argmax() == MONOPOLY


def test_hedge_passes_and_a_fixed_monopoly_price_fails_for_what_was_not_tried() -> None:
    _, hedge = audited(play("hedge", 16_000, 0.1, seed=0), kind="martingale")
    _, monopoly = audited(play("monopoly", 16_000, 0.1, seed=0), kind="martingale")
    assert hedge.verdict == "passes"
    assert monopoly.verdict == "fails"
    assert monopoly.is_decided_by_untried


def test_a_q_learner_at_supracompetitive_prices_fails() -> None:
    log = play("q-learning", 16_000, 0.1, seed=1)
    _, verdict = audited(log, kind="martingale")
    assert log.mean_price() > 0.65
    assert log.swap_regret() > 0.1
    assert verdict.verdict == "fails"
    assert not verdict.is_decided_by_untried


def test_rows_of_coverage_compare_intervals_with_the_regret() -> None:
    rows = list(TABLES["audit-coverage"].rows("hedge", seed=0))
    assert [row["intervals"] for row in rows] == list(WAYS)
    for row in rows:
        assert row["covers"] == 1.0 - row["below_low"] - row["above_high"]
        assert 0 < row["width"] < 0.3


def test_the_rivals_price_shortens_the_interval_of_a_q_learner() -> None:
    rows = list(TABLES["audit-power"].rows(("q-learning", 0.1, 4_000), seed=3))
    own_prices, with_rival = rows
    assert with_rival["high"] - with_rival["low"] < 0.9 * (own_prices["high"] - own_prices["low"])
