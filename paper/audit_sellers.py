"""Audits of simulated sellers whose regret is known: verdicts, coverage of intervals, power.

``audit-sellers`` audits each kind of seller (``paper.sellers``); ``audit-coverage`` says how often
the 95 % intervals of the swap regret contain it; ``audit-power`` says how often Hedge passes and
Q-learning fails, by rounds and exploration, so that one knows before asking for data how much is
needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd

from paper.harness import Row, Table
from paper.sellers import KINDS, N_PRICES, PRICES, SellerLog, play
from regretless.scenarios.audit.bandit_audit import ERROR, THRESHOLD
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.demand_models import predict_results
from regretless.scenarios.audit.propensities import find_propensities
from regretless.scenarios.audit.regret_curve import RegretCurve, regret_curve
from regretless.scenarios.audit.untried_actions import default_min_propensity
from regretless.scenarios.audit.verdict import FAILS, PASSES, Verdict, find_verdict

EXPLORATION = 0.1
ROUNDS_OF_VERDICTS = 16_000
ROUNDS_OF_COVERAGE = 2_000
EXPLORATIONS = (0.02, 0.05, 0.1, 0.2)
ROUNDS_OF_POWER = (1_000, 4_000, 16_000, 64_000)
LOGGED = "logged"
ESTIMATED = "estimated"
ESTIMATED_BY_STATE = "estimated, last prices known"
LOGGED_WITH_RIVAL = "logged, rival's price known"
WAYS = {  # of intervals: the kind, and where propensities come from
    "martingale": ("martingale", LOGGED),
    "martingale, rival's price known": ("martingale", LOGGED_WITH_RIVAL),
    "time-uniform": ("time-uniform", LOGGED),
    "blocks": ("blocks", LOGGED),
    "blocks, estimated": ("blocks", ESTIMATED),
    "blocks, estimated, last prices known": ("blocks", ESTIMATED_BY_STATE),
}


def bandit_log(log: SellerLog, propensities: str = LOGGED) -> BanditLog:
    """Return what an auditor sees of a seller."""
    rounds = len(log.chosen)
    is_logged = propensities in (LOGGED, LOGGED_WITH_RIVAL)
    context = pd.DataFrame(index=range(rounds))
    if propensities == ESTIMATED_BY_STATE:
        context["own_last"] = np.append(0, log.chosen[:-1])
        context["rival_last"] = np.append(0, log.rival[:-1])
    if propensities == LOGGED_WITH_RIVAL:
        context["rival"] = [f"{price:g}" for price in PRICES[log.rival]]
    return BanditLog(
        agent="seller",
        names=tuple(f"{price:g}" for price in PRICES),
        prices=PRICES,
        set_price=PRICES[log.chosen],
        chosen=log.chosen,
        result=log.sold[np.arange(rounds), log.chosen],
        cost=(0.0, 0.0),
        logged=log.probability if is_logged else np.full((rounds, N_PRICES), np.nan),
        context=context,
        largest=1.0,
        smallest=0.0,
        is_range_given=True,
    )


def curve_of(log: SellerLog, *, kind: str, propensities: str = LOGGED) -> RegretCurve:
    """Estimate the regret of a seller with the doubly robust estimate and the default model.

    It is ``logit`` in the own price and the context if there is one, else ``means``.
    """
    seen = bandit_log(log, propensities)
    model = "logit" if len(seen.context.columns) else "means"
    return regret_curve(
        seen,
        find_propensities(seen),
        predict_results(seen, model),
        kind=kind,
        min_propensity=default_min_propensity(seen.rounds, N_PRICES),
    )


def audited(
    log: SellerLog, *, kind: str, propensities: str = LOGGED
) -> tuple[RegretCurve, Verdict]:
    """Audit a seller whose cost is known."""
    curve = curve_of(log, kind=kind, propensities=propensities)
    return curve, find_verdict(curve, THRESHOLD, ERROR)


def verdicts(kind: str, seed: int) -> Iterator[Row]:
    """Audit one seller of a kind."""
    log = play(kind, ROUNDS_OF_VERDICTS, EXPLORATION, seed)
    curve, verdict = audited(log, kind="martingale")
    yield {
        "seller": kind,
        "seed": seed,
        "mean_price": log.mean_price(),
        "true_regret": log.swap_regret(),
        "swap": curve.points[0].swap.regret,
        "pessimistic": verdict.regret,
        "low": verdict.low,
        "high": verdict.high,
        "passes": float(verdict.verdict == PASSES),
        "fails": float(verdict.verdict == FAILS),
        "wrong": is_wrong(verdict, log.swap_regret()),
    }


def coverage(kind: str, seed: int) -> Iterator[Row]:
    """Say whether the intervals of one log contain the regret."""
    log = play(kind, ROUNDS_OF_COVERAGE, EXPLORATION, seed)
    regret = log.swap_regret()
    for way, (interval_kind, propensities) in WAYS.items():
        estimate = curve_of(log, kind=interval_kind, propensities=propensities).points[0].swap
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


def power(instance: tuple[str, float, int], seed: int) -> Iterator[Row]:
    """Audit one seller with so much exploration over so many rounds, in two ways.

    The log has the seller's own prices only, or the price of its rival as well.
    """
    kind, exploration, rounds = instance
    log = play(kind, rounds, exploration, seed)
    for way in (LOGGED, LOGGED_WITH_RIVAL):
        _, verdict = audited(log, kind="martingale", propensities=way)
        yield {
            "seller": kind,
            "log": way,
            "exploration": exploration,
            "rounds": rounds,
            "seed": seed,
            "true_regret": log.swap_regret(),
            "regret": verdict.regret,
            "low": verdict.low,
            "high": verdict.high,
            "passes": float(verdict.verdict == PASSES),
            "fails": float(verdict.verdict == FAILS),
            "wrong": is_wrong(verdict, log.swap_regret()),
        }


def is_wrong(verdict: Verdict, true_regret: float) -> float:
    """Return 1 where a verdict is on the wrong side of the threshold, else 0."""
    if true_regret > THRESHOLD:
        return float(verdict.verdict == PASSES)
    return float(verdict.verdict == FAILS)


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
    "audit-sellers": Table(verdicts, ["seller"], instances=lambda: KINDS, seeds=20),
    "audit-coverage": Table(
        coverage,
        ["seller", "intervals"],
        instances=lambda: ["hedge", "swap", "q-learning"],
        seeds=200,
    ),
    "audit-power": Table(
        power,
        ["seller", "log", "exploration", "rounds"],
        instances=lambda: list(product(("hedge", "q-learning"), EXPLORATIONS, ROUNDS_OF_POWER)),
        seeds=20,
        layout=lay_out_power,
    ),
}
