"""Simulated sellers: their true regret, and what an audit says of them."""

import numpy as np
import pytest

from paper.audit_sellers import TABLES, audited
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


def test_a_row_of_coverage_compares_the_interval_with_the_regret() -> None:
    (row,) = TABLES["audit-coverage"].rows(("hedge", "martingale"), seed=0)
    assert row["covers"] == 1.0 - row["below_low"] - row["above_high"]
    assert 0 < row["width"] < 0.2
