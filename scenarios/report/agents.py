"""Figures of the agents at the end of a run, from the agents table.

    exploitability     per cohort: what the worst leader could have gained from each agent
    agents             one dot per agent: mean loss against regret

Exploitability forgives some swap regret (``market.exploitability.tracker.TOLERANCE``) and lies in
[0, 1], in units of a leader's payoff. Beyond ``MOST`` agents a seeded sample is drawn, with the
worst in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regretless.market.core.randomness import stream
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.scenarios.report.figures import (
    FAINT,
    INK,
    WIDTH,
    Tables,
    cohort_colours,
    leading_regret,
    short_name,
)

if TYPE_CHECKING:
    import pandas as pd

MOST = 4000  # agents that are drawn
BINS = 30
CAPTIONS = {
    "exploitability": (
        "Exploitability, a row per cohort: how far each agent's play is from play that no leader "
        "could have gained from, whatever the leader's payoffs in [0, 1] and commitment; swap "
        f"regret up to {TOLERANCE} is forgiven, and an agent within that stands at 0."
    ),
    "agents": (
        "Every agent at the end, mean loss against regret: a dot far above the others is an agent "
        "who would have gained from another rule; one far to the right did badly, whether or not "
        "it could have helped it."
    ),
}


def exploitability(tables: Tables) -> Figure | None:
    """Draw a histogram per cohort; None where exploitability was not measured."""
    agents = tables["agents"].dropna(subset="exploitability")
    if agents.empty:
        return None
    cohorts, everybody = agents.groupby("cohort", sort=False), tables["agents"]
    colours, sizes = cohort_colours(everybody), everybody["cohort"].value_counts()
    edges = np.linspace(0, float(agents["exploitability"].max()) or TOLERANCE, BINS + 1)
    figure = Figure(figsize=(WIDTH, 1.0 + 1.5 * cohorts.ngroups))
    grid = figure.subplots(cohorts.ngroups, 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, members) in zip(grid, cohorts, strict=True):
        values = members["exploitability"]
        axes.hist(values, bins=edges.tolist(), color=colours[name])
        count = len(members) if len(members) == sizes[name] else f"{len(members)} of {sizes[name]}"
        worst = f"{(values == 0).mean():.0%} at 0, worst {values.max():.4f}"
        axes.set(ylabel="agents", title=f"{short_name(name)} ({count} measured; {worst})")
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.grid(visible=False, axis="x")
    grid[-1].set_xlabel(f"exploitability, {TOLERANCE} of swap regret forgiven")
    return figure


def agents(tables: Tables) -> Figure | None:
    """Draw every agent's mean loss and regret; None where no swap regret was measured."""
    shown = drawn_agents(tables["agents"])
    if shown.empty:
        return None
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    colours = cohort_colours(tables["agents"])
    for name, members in shown.groupby("cohort", sort=False):
        dots: dict[str, Any] = {"s": 16, "alpha": 0.6, "linewidths": 0, "label": short_name(name)}
        axes.scatter(members["mean_loss"], members["regret"], color=colours[name], **dots)
    axes.axhline(0, color=INK, linewidth=1)
    axes.set(xlabel="mean loss, in [0, 1]", ylabel="regret per round")
    if len(shown) < len(tables["agents"]):
        title = f"{len(shown):,} of {len(tables['agents']):,} agents"
        axes.set_title(title, fontsize=10, color=FAINT)
    figure.legend(loc="outside upper left", ncols=3)
    return figure


def drawn_agents(agents: pd.DataFrame) -> pd.DataFrame:
    """Return the agents that are drawn, with their ``regret``: all, or a sample with the worst."""
    known = agents.assign(regret=leading_regret(agents)).dropna(subset=["regret", "mean_loss"])
    if len(known) <= MOST:
        return known
    worst = known["regret"].nlargest(MOST // 4).index
    rest = known.index.difference(worst).to_numpy()
    more = stream(0, "agent plot").choice(rest, MOST - len(worst), replace=False)
    return known.loc[np.sort(np.concatenate([worst.to_numpy(), more]))]
