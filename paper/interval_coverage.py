"""Intervals of served forecasts: how often they cover, and how wide they are.

``interval-coverage``: on ten public series of at least 500 rounds (``paper.public_series``; tree
rings in place of monthly electricity, which is shorter), one step ahead, the central 80, 90 and
95 % intervals of an ``OnlineOmnipredictor`` with its defaults, whose losses are the newsvendors of
``decisions-against-rivals``, after round ``FIRST``. Beside them are those of the autoregression
with the quantiles of its residuals (``paper.rivals``).

``coverage`` is the share of rounds whose outcome lies in the interval, ends included, ``rival``
that of the autoregression, ``width`` the ratio of the mean widths, ours over the rival's. ``p`` is
that of a two-sided t-test of the coverages of blocks of ``BLOCK`` rounds against the nominal one,
adjusted by Holm's method over the series of a level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy import stats

from paper.decisions import BLOCK, COVERAGES, follow, scaled, serve
from paper.harness import Row, Table
from paper.public_series import (
    MAX_ROUNDS,
    PACKAGES,
    PUBLIC_SERIES,
    PublicSeries,
    series_of,
    table_of,
)
from paper.rivals import check_rounds
from regretless.market.core.arrays import Mask
from regretless.market.regret.inference import holm

FIRST = 200  # rounds that are not counted
RISK = 0.01  # below which an adjusted p-value rejects


def tree_rings() -> PublicSeries:
    """Read the yearly widths of tree rings, which have no context."""
    rings = table_of("datasets", "treering")["value"]
    return series_of(rings, pd.DataFrame(index=rings.index), (10,))


SERIES: dict[str, Callable[[], PublicSeries]] = {
    **{name: read for name, read in PUBLIC_SERIES.items() if name != "monthly electricity"},
    "yearly tree rings": tree_rings,
}


def p_value(covered: Mask, nominal: float) -> float:
    """Return the p-value of a coverage (m,), by the means of blocks of rounds.

    Examples
    --------
    >>> covered = np.tile([True, True, True, True, False], 96)
    >>> p_value(covered, 0.8) > 0.5, p_value(covered, 0.95) < 1e-6
    (True, True)
    """
    n_blocks = len(covered) // BLOCK
    means = covered[: n_blocks * BLOCK].reshape(n_blocks, BLOCK).mean(1)
    return float(stats.ttest_1samp(means, nominal).pvalue)


def measure(name: str, rounds: int, seed: int) -> Iterator[Row]:
    """Serve a series, and yield a row for each level."""
    series, highest = scaled(SERIES[name]().first_rounds(rounds))
    first = min(FIRST, rounds // 3)
    check_rounds(len(series.outcomes), first, steps=1)
    outcomes = series.outcomes[first:]
    ours = serve(series, highest, steps=1, first=first, seed=seed).quantiles
    theirs = follow("autoregression", series, highest, steps=1, first=first).quantiles
    for percent, (low, high) in COVERAGES.items():
        covered = (outcomes >= ours[:, low]) & (outcomes <= ours[:, high])
        covered_by_rival = (outcomes >= theirs[:, low]) & (outcomes <= theirs[:, high])
        width = (ours[:, high] - ours[:, low]).mean()
        width_of_rival = (theirs[:, high] - theirs[:, low]).mean()
        yield {
            "series": name,
            "percent": percent,
            "coverage": covered.mean(),
            "rival": covered_by_rival.mean(),
            "width": width / width_of_rival,
            "p": p_value(covered, percent / 100),
        }


def text(table: pd.DataFrame) -> str:
    """Lay the table out, a line per series, and means below."""
    table = table.assign(p=table.groupby("percent")["p"].transform(lambda p: holm(p.to_numpy())))
    columns = ["coverage", "rival", "width", "p"]
    wide = table.pivot_table(index="series", columns="percent", values=columns, sort=False)
    wide = wide.swaplevel(axis=1).reindex(
        columns=[(percent, column) for percent in COVERAGES for column in columns]
    )
    means = table.groupby("percent")[["coverage", "rival"]].mean().round(3)
    means["width"] = np.exp(np.log(table["width"]).groupby(table["percent"]).mean()).round(3)
    means["rejected"] = (table["p"] < RISK).groupby(table["percent"]).sum()
    return f"{wide.round(3).to_string()}\n\nmean, geometric of widths\n{means.to_string()}"


TABLES = {
    "interval-coverage": Table(
        rows=measure,
        by=("series", "percent"),
        instances=lambda: list(SERIES),
        rounds=MAX_ROUNDS,
        seeds=1,
        digits=3,
        layout=text,
        packages=PACKAGES,
    )
}
