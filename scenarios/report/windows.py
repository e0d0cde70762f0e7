"""Figure of regret over windows, from the tables of a run directory.

Every window (``market.logs.windows``) is a step from its first to its last round, per cohort: the
mean over the agents thick, the worst agent thin. Where regret over the whole run averages a change
of regime away, the window after it shows what it cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from regretless.scenarios.report.figures import (
    FAINT,
    INK,
    WIDTH,
    Tables,
    cohort_colours,
    leading_regret,
    short_name,
    thinned,
)

if TYPE_CHECKING:
    import pandas as pd

CAPTION = (
    "Regret per window of rounds, each taken alone, mean (thick) and worst agent (thin) of each "
    "cohort: a step that rises after a change of regime is what agents regret of those rounds, "
    "whatever they did well before."
)


def regret_per_window(tables: Tables) -> Figure | None:
    """Draw each cohort's regret window by window; None where no window has ended."""
    windows, agents = tables.get("windows"), tables["agents"]
    if windows is None or windows.empty:
        return None
    steps = _steps(windows, agents)
    if steps.empty:
        return None
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    shown = {name: cohort_colours(agents)[name] for name in steps.index.unique("cohort")}
    for name, colour in shown.items():
        own = steps.loc[name].reset_index()
        own = own.iloc[thinned(own.index.to_numpy())]
        for column, width in (("mean", 2.0), ("max", 0.8)):
            axes.hlines(own[column], own["first"], own["last"] + 1, color=colour, linewidth=width)
    axes.axhline(0, color=INK, linewidth=1)
    axes.set(xlabel="round", ylabel="regret per round of the window")
    lines = [Line2D([], [], color=colour, linewidth=2) for colour in shown.values()]
    lines += [Line2D([], [], color=FAINT, linewidth=width) for width in (2, 0.8)]
    words = [*map(short_name, shown), "mean over agents", "worst agent of the window"]
    figure.legend(lines, words, loc="outside upper left", ncols=3)
    return figure


def _steps(windows: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Return mean and worst regret, indexed by cohort, first and last round of the window."""
    cohort = windows["agent"].map(agents.set_index("agent")["cohort"]).rename("cohort")
    regret = leading_regret(windows)
    keys = [cohort, windows["first"], windows["last"]]
    return regret.groupby(keys, sort=False).agg(["mean", "max"]).dropna()
