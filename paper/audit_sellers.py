"""Audits of simulated sellers whose regret is known: verdicts, coverage of intervals, power.

``audit-sellers`` audits each kind of seller (``paper.sellers``); ``audit-coverage`` says how often
the 95 % intervals of the swap regret contain it; ``audit-power`` says how often Hedge passes and
Q-learning fails, by rounds and exploration, so that one knows before asking for data how much is
needed.

A log has either the share of many buyers who bought in a round, as the market has it, or what a
single buyer did. The second is much noisier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pandas as pd

from paper.harness import Row, Table
from paper.sellers import CHANCES, KINDS, N_PRICES, PRICES, SellerLog, play
from regretless import audit
from regretless.scenarios.audit import BanditAudit
from regretless.scenarios.audit.bandit_audit import ERROR, THRESHOLD
from regretless.scenarios.audit.bandit_log import BanditColumns, read_bandit_logs
from regretless.scenarios.audit.demand_models import predict_results
from regretless.scenarios.audit.pair_gains import DOUBLY_ROBUST
from regretless.scenarios.audit.propensities import find_propensities
from regretless.scenarios.audit.regret_curve import RegretCurve, regret_curve
from regretless.scenarios.audit.untried_actions import default_min_propensity
from regretless.scenarios.audit.verdict import FAILS, PASSES, find_verdict

EXPLORATION = 0.1  # of verdicts
ROUNDS_OF_VERDICTS = 4_000
EXPLORATION_OF_COVERAGE = 0.2
ROUNDS_OF_COVERAGE = 1_000
EXPLORATIONS = (0.05, 0.1, 0.2)
ROUNDS_OF_POWER = (4_000, 16_000)
MANY_BUYERS = "many buyers"
ONE_BUYER = "one buyer"
COLUMN_OF_PRICE = dict(zip([f"{price:g}" for price in PRICES], CHANCES, strict=True))
LOGGED: dict[str, Any] = {"propensity": COLUMN_OF_PRICE}
LOGGED_WITH_RIVAL = LOGGED | {"context": "rival"}
WAYS: dict[str, dict[str, Any]] = {  # of intervals: options of the audit
    "martingale": LOGGED,
    "martingale, rival's price known": LOGGED_WITH_RIVAL,
    "time-uniform": LOGGED | {"intervals": "time-uniform"},
    "blocks": LOGGED | {"intervals": "blocks"},
    "blocks, estimated": {},
    "blocks, estimated, last prices known": {"context": ["own_last", "rival_last"]},
}


def seen_table(log: SellerLog) -> pd.DataFrame:
    """Return what an auditor may see of a seller: its sales, and both prices before each round."""
    return log.sales.assign(
        own_last=log.sales["price"].shift(fill_value=PRICES[0]),
        rival_last=log.sales["rival"].shift(fill_value=PRICES[0]),
    )


def audit_of(log: SellerLog, options: Mapping[str, Any] = LOGGED) -> BanditAudit:
    """Audit a seller whose cost, prices and largest quantity are known."""
    return audit(
        seen_table(log),
        price="price",
        quantity="quantity",
        cost="cost",
        prices=list(PRICES),
        max_quantity=1.0,
        **options,
    )


def _verdict_row(log: SellerLog, verdict: str, regret: float) -> Row:
    """Return a verdict on a seller, and the regret that it is on, beside the true regret."""
    true_regret = log.swap_regret()
    wrong_verdict = PASSES if true_regret > THRESHOLD else FAILS
    return {
        "true_regret": true_regret,
        "regret": regret,
        "passes": float(verdict == PASSES),
        "fails": float(verdict == FAILS),
        "wrong": float(verdict == wrong_verdict),
    }


def verdicts(kind: str, seed: int) -> Iterator[Row]:
    """Audit one seller of a kind, who sells to many buyers and to one, from its whole audit."""
    played = play(kind, ROUNDS_OF_VERDICTS, EXPLORATION, seed)
    for buyers, log in ((MANY_BUYERS, played), (ONE_BUYER, played.with_buyers(1, seed))):
        audited = audit_of(log, LOGGED_WITH_RIVAL)
        verdict = audited.verdicts.iloc[0]
        estimates = audited.estimates.set_index(["measure", "estimator"])
        yield {
            "seller": kind,
            "buyers": buyers,
            "seed": seed,
            "mean_price": log.mean_price(),
            "swap": estimates.loc[("swap", DOUBLY_ROBUST), "regret"],
            **_verdict_row(log, verdict["verdict"], verdict["regret"]),
        }


def coverage(kind: str, seed: int) -> Iterator[Row]:
    """Say whether the intervals of one log, of one buyer a round, contain the regret."""
    log = play(kind, ROUNDS_OF_COVERAGE, EXPLORATION_OF_COVERAGE, seed).with_buyers(1, seed)
    regret = log.swap_regret()
    for way, options in WAYS.items():
        estimate = curve_of(log, options).points[0].swap
        low = estimate.lower_limit(ERROR)
        high = estimate.upper_limit(ERROR)
        yield {
            "seller": kind,
            "intervals": way,
            "seed": seed,
            "true_regret": regret,
            "bias": estimate.regret - regret,
            "width": high - low,
            "covers": float(low <= regret <= high),
            "below_low": float(regret < low),
            "above_high": float(regret > high),
        }


def curve_of(log: SellerLog, options: Mapping[str, Any]) -> RegretCurve:
    """Return the doubly robust estimates of a seller's regret, without the rest of an audit."""
    context = options.get("context", ())
    columns = BanditColumns(
        action="price",
        result="quantity",
        is_price=True,
        cost="cost",
        propensity=options.get("propensity"),
        context=[context] if isinstance(context, str) else context,
    )
    (seen,) = read_bandit_logs(seen_table(log), columns, menu=list(PRICES), result_range=(0.0, 1.0))
    propensities = find_propensities(seen)
    return regret_curve(
        seen,
        propensities,
        predict_results(seen, "logit" if context else "means"),
        kind=options.get("intervals", "martingale" if propensities.is_logged else "blocks"),
        min_propensity=default_min_propensity(seen.rounds, N_PRICES),
    )


def power(instance: tuple[str, float], seed: int) -> Iterator[Row]:
    """Judge the first rounds of one seller, for each number of rounds and each kind of log."""
    kind, exploration = instance
    played = play(kind, max(ROUNDS_OF_POWER), exploration, seed)
    with_one_buyer = played.with_buyers(1, seed)
    logs = {
        MANY_BUYERS: (played, LOGGED),
        ONE_BUYER: (with_one_buyer, LOGGED),
        f"{ONE_BUYER}, rival's price known": (with_one_buyer, LOGGED_WITH_RIVAL),
    }
    for rounds, name in product(ROUNDS_OF_POWER, logs):
        whole_log, options = logs[name]
        log = whole_log.first(rounds)
        verdict = find_verdict(curve_of(log, options), THRESHOLD, ERROR)
        yield {
            "seller": kind,
            "log": name,
            "exploration": exploration,
            "rounds": rounds,
            "seed": seed,
            **_verdict_row(log, verdict.verdict, verdict.regret),
        }


def lay_out_power(table: pd.DataFrame) -> str:
    """Return how often verdicts are found, rounds by exploration.

    Of Hedge all logs count, of Q-learning those with a true regret above the threshold.
    """
    parts = [f"wrong verdicts: {table['wrong'].sum():.0f} of {len(table)}"]
    is_hedge = table["seller"] == "hedge"
    is_too_large = ~is_hedge & (table["true_regret"] > THRESHOLD)
    with_truth = table.assign(too_large=is_too_large.astype(float))
    hedge = "hedge"
    q_learning = "q-learning above the threshold"
    for heading, is_counted, column in (
        (f"{hedge}, share that passes", is_hedge, "passes"),
        (f"{q_learning}, share that fails", is_too_large, "fails"),
        (f"{hedge}, mean true regret", is_hedge, "true_regret"),
        (f"{q_learning}, mean true regret", is_too_large, "true_regret"),
        ("q-learning, share with a true regret above the threshold", ~is_hedge, "too_large"),
        ("wrong verdicts", is_hedge | ~is_hedge, "wrong"),
    ):
        counted = with_truth[is_counted]
        rows = ["rounds"] if column in ("true_regret", "too_large") else ["log", "rounds"]
        means = counted.pivot_table(index=rows, columns="exploration", values=column)
        parts.append(f"{heading}\n{means.round(4).to_string()}")
    return "\n\n".join(parts)


TABLES = {
    "audit-sellers": Table(
        verdicts,
        ["seller", "buyers"],
        instances=lambda: KINDS,
        seeds=5,
    ),
    "audit-coverage": Table(
        coverage,
        ["seller", "intervals"],
        instances=lambda: ["hedge", "q-learning"],
        seeds=200,
    ),
    "audit-power": Table(
        power,
        ["seller", "log", "exploration", "rounds"],
        instances=lambda: list(product(("hedge", "q-learning"), EXPLORATIONS)),
        seeds=5,
        layout=lay_out_power,
    ),
}
