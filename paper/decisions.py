"""What decisions cost that follow from the served forecast, beside those of what people would use.

``decisions-against-rivals``: on ten public series (``paper.public_series``), one and seven steps
ahead, newsvendors at four critical ratios order what an ``OnlineOmnipredictor`` with its defaults
says, or the quantile that a rival forecasts (``paper.rivals``), rounded to the same 41 orders. The
first third of a series is not counted. ``decisions-on-unseen-series`` is the same on six series
that nobody had looked at (``paper.unseen_series``).

A row is a series, a number of steps, a rival and a critical ratio. ``cost_ratio`` is the rival's
mean cost in ratio to ours, so that above 1 we are better; ``low`` and ``high`` are its 95 %
interval by a circular block bootstrap of rounds. ``log_error`` is the standard error of the mean of
the logarithms of the four ratios. ``coverage_80``, ``_90``, ``_95`` are of central intervals,
``crps`` is the continuous ranked probability score by the pinball losses at nine levels, in units
of the scale, ``our_`` columns are ours. ``milliseconds`` are of a counted round, refits included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from paper import public_series, unseen_series
from paper.harness import Row, Table
from paper.public_series import MAX_ROUNDS, PUBLIC_SERIES, PublicSeries
from paper.rivals import LEVELS, RIVALS, USUAL_RIVALS, Task, check_rivals, check_rounds
from paper.unseen_series import UNSEEN_SERIES
from regretless import OnlineOmnipredictor
from regretless.agents.utilities import Newsvendor
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream

COSTS = {"1:9": (1.0, 9.0), "1:2": (1.0, 2.0), "2:1": (2.0, 1.0), "9:1": (9.0, 1.0)}
STEPS = (1, 7)

N_ORDERS = 41
MARGIN = 0.05  # of the range, by which the scale is wider on either side
N_RESAMPLES = 500
BLOCK = 24  # rounds
COVERAGES = {80: (2, 6), 90: (1, 7), 95: (0, 8)}  # places of the ends among the levels


@dataclass(frozen=True)
class Played:
    """What a forecast was good for: costs (R, m) by critical ratio, and quantiles (m, L)."""

    costs: Array
    quantiles: Array
    milliseconds: float


def scaled(series: PublicSeries) -> tuple[PublicSeries, float]:
    """Return a series moved so that no order is negative, and the highest value of its scale."""
    margin = MARGIN * float(np.ptp(series.outcomes))
    outcomes = series.outcomes - series.outcomes.min() + margin
    moved = PublicSeries(outcomes, series.contexts, series.periods)
    return moved, float(outcomes.max()) + margin


def costs_of(orders: Array, outcomes: Array) -> Array:
    """Return the costs (R, m) of orders (R, m)."""
    costs = []
    for ordered, (underage, overage) in zip(orders, COSTS.values(), strict=True):
        short = np.maximum(outcomes - ordered, 0.0)
        left = np.maximum(ordered - outcomes, 0.0)
        costs.append(underage * short + overage * left)
    return np.array(costs)


def serve(
    series: PublicSeries,
    highest: float,
    *,
    steps: int,
    first: int,
    seed: int,
    make_server: Callable[..., OnlineOmnipredictor] = OnlineOmnipredictor,
) -> Played:
    """Serve a series with the defaults, or with what ``make_server`` makes of the same options."""
    possible_orders = np.linspace(0.0, highest, N_ORDERS)
    losses = {}
    for name, (underage, overage) in COSTS.items():
        losses[name] = Newsvendor(orders=possible_orders, underage=underage, overage=overage)
    server = make_server(losses, scale={"y": (0.0, highest)}, steps_ahead=steps, seed=seed)
    n_rounds = len(series.outcomes)
    orders = np.full((len(COSTS), n_rounds), np.nan)
    quantiles = np.full((n_rounds, len(LEVELS)), np.nan)
    start = time.perf_counter()
    for t in range(n_rounds):
        if t == first:
            start = time.perf_counter()
        foretold = t + steps - 1
        if foretold < n_rounds:
            forecast = server.predict_one(series.contexts[foretold])
            orders[:, foretold] = [forecast.act(name) for name in COSTS]
            if foretold >= first:
                quantiles[foretold] = [forecast.quantile(level) for level in LEVELS]
        server.learn_one(series.contexts[t], float(series.outcomes[t]))
    milliseconds = 1e3 * (time.perf_counter() - start) / (n_rounds - first)
    costs = costs_of(orders[:, first:], series.outcomes[first:])
    return Played(costs, quantiles[first:], milliseconds)


def follow(name: str, series: PublicSeries, highest: float, *, steps: int, first: int) -> Played:
    """Order the quantiles that a rival forecasts."""
    start = time.perf_counter()
    quantiles = RIVALS[name](Task(series, steps, first))[first:]
    milliseconds = 1e3 * (time.perf_counter() - start) / len(quantiles)
    costs = costs_of(orders_at(quantiles, highest), series.outcomes[first:])
    return Played(costs, quantiles, milliseconds)


def orders_at(quantiles: Array, highest: float) -> Array:
    """Return the possible orders (R, m) next to the quantiles (m, L) of the critical ratios."""
    spacing = highest / (N_ORDERS - 1)
    orders = []
    for underage, overage in COSTS.values():
        level = underage / (underage + overage)
        wanted = quantiles[:, int(np.abs(LEVELS - level).argmin())]
        orders.append(np.clip(np.round(wanted / spacing) * spacing, 0.0, highest))
    return np.array(orders)


def crps(quantiles: Array, outcomes: Array) -> float:
    """Return the mean continuous ranked probability score, twice the integral of pinball losses."""
    errors = outcomes[:, None] - quantiles
    pinball = np.maximum(LEVELS * errors, (LEVELS - 1) * errors).mean(0)
    levels = np.concatenate([[0.0], LEVELS, [1.0]])
    return 2 * float(np.trapezoid(np.concatenate([[0.0], pinball, [0.0]]), levels))


def coverage(quantiles: Array, outcomes: Array, percent: int) -> float:
    """Return how often a central interval held the outcome."""
    low, high = COVERAGES[percent]
    return float(np.mean((quantiles[:, low] <= outcomes) & (outcomes <= quantiles[:, high])))


def resampled_rounds(n_rounds: int, seed: int) -> Indices:
    """Return the rounds (B, m) of resamples, in circular blocks."""
    rng = stream(seed, "paper", "decisions")
    n_blocks = -(-n_rounds // BLOCK)
    starts = rng.integers(0, n_rounds, (N_RESAMPLES, n_blocks))
    rounds = (starts[:, :, None] + np.arange(BLOCK)) % n_rounds
    return rounds.reshape(N_RESAMPLES, -1)[:, :n_rounds]


def compare(
    instance: tuple[str, int], seed: int, rounds: int, rivals: Sequence[str]
) -> Iterator[Row]:
    """Play the first rounds of a series; yield a row for each rival and critical ratio.

    ``instance`` is the name of the series, and how many steps ahead it is forecast.
    """
    check_rivals(rivals)
    name, steps = instance
    read = (PUBLIC_SERIES | UNSEEN_SERIES)[name]
    series, highest = scaled(read().first_rounds(rounds))
    first = len(series.outcomes) // 3
    check_rounds(len(series.outcomes), first, steps)
    outcomes = series.outcomes[first:]
    ours = serve(series, highest, steps=steps, first=first, seed=seed)
    resamples = resampled_rounds(len(outcomes), seed)
    our_means = ours.costs[:, resamples].mean(2)  # (R, B)
    for rival in rivals:
        played = follow(rival, series, highest, steps=steps, first=first)
        logs = np.log(played.costs[:, resamples].mean(2) / our_means)
        common: Row = {
            "series": name,
            "steps": steps,
            "rival": rival,
            "rounds": len(outcomes),
            "log_error": float(logs.mean(0).std(ddof=1)),
            "crps": crps(played.quantiles, outcomes) / highest,
            "our_crps": crps(ours.quantiles, outcomes) / highest,
            "milliseconds": played.milliseconds,
            "our_milliseconds": ours.milliseconds,
        }
        for percent in COVERAGES:
            common[f"coverage_{percent}"] = coverage(played.quantiles, outcomes, percent)
            common[f"our_coverage_{percent}"] = coverage(ours.quantiles, outcomes, percent)
        for r, ratio in enumerate(COSTS):
            low, high = np.exp(np.quantile(logs[r], [0.025, 0.975]))
            yield common | {
                "critical_ratio": ratio,
                "cost": played.costs[r].mean() / highest,
                "our_cost": ours.costs[r].mean() / highest,
                "cost_ratio": played.costs[r].mean() / ours.costs[r].mean(),
                "low": float(low),
                "high": float(high),
            }


def by_rival(table: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each number of steps and rival, over all series; ours stands last."""
    lines = []
    for steps, of_steps in table.groupby("steps", sort=False):
        for rival, rows in of_steps.groupby("rival", sort=False):
            cells = rows.drop_duplicates("series")
            mean = float(np.log(rows["cost_ratio"]).mean())
            error = float(np.sqrt((cells["log_error"] ** 2).sum())) / len(cells)
            lines.append(
                {
                    "steps": steps,
                    "forecast": rival,
                    "cost_ratio": np.exp(mean),
                    "low": np.exp(mean - 1.96 * error),
                    "high": np.exp(mean + 1.96 * error),
                    "cells": len(rows),
                    "worse": int((rows["low"] > 1).sum()),  # than ours
                    "better": int((rows["high"] < 1).sum()),
                    **{f"coverage_{p}": cells[f"coverage_{p}"].mean() for p in COVERAGES},
                    "crps_ratio": np.exp(np.log(cells["crps"] / cells["our_crps"]).mean()),
                    "milliseconds": cells["milliseconds"].median(),
                }
            )
        cells = of_steps.drop_duplicates("series")
        lines.append(
            {
                "steps": steps,
                "forecast": "regretless",
                "cost_ratio": 1.0,
                **{f"coverage_{p}": cells[f"our_coverage_{p}"].mean() for p in COVERAGES},
                "crps_ratio": 1.0,
                "milliseconds": cells["our_milliseconds"].median(),
            }
        )
    return pd.DataFrame(lines).set_index(["steps", "forecast"])


def by_series(table: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the cost ratios of each series and number of steps, by rival."""
    logs = table.assign(log_ratio=np.log(table["cost_ratio"]))
    means = logs.pivot_table(
        index=["steps", "series"], columns="rival", values="log_ratio", sort=False
    )
    return means.apply(np.exp)


def text(table: pd.DataFrame) -> str:
    """Lay the table out: over all series, and for each of them."""
    over_all = by_rival(table).round(3).to_string(na_rep="")
    return (
        "mean cost in ratio to ours, geometric mean over series and ratios; cells in which "
        "the\nrival is worse or better than ours with the whole 95 % interval\n\n"
        f"{over_all}\n\nby series, geometric mean over critical ratios\n\n"
        f"{by_series(table).round(3).to_string()}"
    )


def attachments(table: pd.DataFrame) -> dict[str, Any]:
    """Return both summaries, to be written beside the rows."""
    return {
        "by-rival.csv": by_rival(table).reset_index(),
        "by-series.csv": by_series(table).reset_index(),
    }


def table_of_series(names: Iterable[str], packages: Sequence[str]) -> Table:
    """Return the table of these series of packages, one and seven steps ahead."""
    return Table(
        rows=compare,
        by=("series", "steps", "rival", "critical_ratio"),
        instances=lambda: list(product(names, STEPS)),
        rounds=MAX_ROUNDS,
        seeds=1,
        rivals=USUAL_RIVALS,
        layout=text,
        attachments=attachments,
        packages=packages,
    )


TABLES = {
    "decisions-against-rivals": table_of_series(PUBLIC_SERIES, public_series.PACKAGES),
    "decisions-on-unseen-series": table_of_series(UNSEEN_SERIES, unseen_series.PACKAGES),
}
