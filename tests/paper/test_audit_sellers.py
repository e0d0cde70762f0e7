"""Simulated sellers: their true regret, and what an audit says of them."""

import numpy as np
import pytest

from paper import audit_sellers
from paper.audit_sellers import MANY_BUYERS, ONE_BUYER, TABLES, WAYS, audit_of
from paper.sellers import MARKET, MONOPOLY, N_PRICES, PRICES, play
from regretless import load

pytestmark = pytest.mark.slow


def test_sellers_are_in_a_market_with_a_competitive_and_a_monopoly_price() -> None:
    quantity_at = play("monopoly", 1, 0.0, seed=0).quantity_at[0]  # the rival sets 0.9
    attraction = np.exp((1.0 - PRICES) / 0.15)
    expected = attraction / (attraction + attraction[MONOPOLY] + 1.0)
    np.testing.assert_allclose(quantity_at, expected)
    profit = PRICES[:, None] * attraction[:, None] / (attraction[:, None] + attraction + 1.0)
    is_equilibrium = profit.argmax(0) == np.arange(N_PRICES)
    assert PRICES[is_equilibrium].tolist() == [0.3, 0.5]
    assert np.diag(profit).argmax() == MONOPOLY


def test_the_regret_of_a_log_is_that_of_the_market_s_own_ledger() -> None:
    """A seller who never explores has the swap regret that the run reports."""
    log = play("monopoly", 50, 0.0, seed=0)
    scale = PRICES[-1]  # of the seller's losses: the highest price at cost 0
    always_dear = {
        "cohort.sellers.response": "always",
        "cohort.sellers.settings": {"action": MONOPOLY},
    }
    own = load("pricing-algorithms", rounds=50, **MARKET, **always_dear).build(seed=0)
    own.run()
    seller = own.agents_frame().iloc[0]
    regret_in_money = seller["swap_regret"] * seller["loss_scale"]
    assert log.swap_regret() * scale == pytest.approx(regret_in_money)


def test_learners_pass_and_a_fixed_monopoly_price_fails_for_what_was_not_tried() -> None:
    for kind, expected in (("hedge", "passes"), ("swap", "passes"), ("monopoly", "fails")):
        audited = audit_of(play(kind, 4_000, 0.1, seed=0))
        assert audited.verdicts["verdict"].tolist() == [expected], kind
    assert "hardly tried" in audited.texts["all"][2]


def test_a_q_learner_at_supracompetitive_prices_fails() -> None:
    log = play("q-learning", 4_000, 0.1, seed=2)
    audited = audit_of(log, WAYS["martingale, rival's price known"])
    assert log.mean_price() > 0.55
    assert log.swap_regret() > 0.04
    assert audited.verdicts["verdict"].tolist() == ["fails"]
    assert "hardly tried" not in audited.texts["all"][2]


def test_a_few_buyers_buy_at_the_rates_of_many() -> None:
    log = play("hedge", 500, 0.2, seed=0)
    few = log.with_buyers(4, seed=0)
    assert set(few.sales["quantity"] * 4) <= {0, 1, 2, 3, 4}
    assert (np.diff(few.quantity_at, axis=1) <= 0).all()
    np.testing.assert_allclose(few.quantity_at.mean(0), log.quantity_at.mean(0), atol=0.05)


def test_rows_of_coverage_compare_intervals_with_the_regret() -> None:
    rows = list(TABLES["audit-coverage"].rows("hedge", seed=0))
    assert [row["intervals"] for row in rows] == list(WAYS)
    for row in rows:
        assert row["covers"] == 1.0 - row["below_low"] - row["above_high"]
        assert 0 < row["width"] < 0.3


def test_a_row_of_verdicts_has_the_regret_beside_the_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_sellers, "ROUNDS_OF_VERDICTS", 500)
    many_buyers, one_buyer = TABLES["audit-sellers"].rows("monopoly", seed=0)
    assert [many_buyers["buyers"], one_buyer["buyers"]] == [MANY_BUYERS, ONE_BUYER]
    for row in (many_buyers, one_buyer):
        assert row["fails"] == 1.0
        assert row["wrong"] == 0.0
        assert row["swap"] < 0.02 < row["true_regret"] < row["regret"]


def test_more_rounds_decide_what_few_leave_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_sellers, "ROUNDS_OF_POWER", (300, 3_000))
    rows = list(TABLES["audit-power"].rows(("hedge", 0.2), seed=0))
    verdict_of = {(row["log"], row["rounds"]): row["passes"] for row in rows}
    assert verdict_of[ONE_BUYER, 300] == 0.0
    assert verdict_of[MANY_BUYERS, 3_000] == 1.0
    assert sum(row["wrong"] for row in rows) == 0.0
