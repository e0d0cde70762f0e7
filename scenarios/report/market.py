"""Figure of what demand and outcomes did to each other, from the tables of a run directory.

    demand           the share of the budgets that each good gets
    concentration    the Herfindahl index of demand, against 1/d where it is spread evenly
    confirmed        by how much the market brought outcomes nearer to the forecast

``market.game.crowding`` defines them; all are drawn as rolling means.
"""

from __future__ import annotations

from itertools import cycle
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regretless.market.game.crowding import columns, crowding
from regretless.scenarios.report.figures import (
    FAINT,
    INK,
    PALETTE,
    WIDTH,
    Tables,
    rolling_window,
    short_name,
    thinned,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

CAPTION = (
    "Demand and outcomes, as rolling means: the share of the budgets that each good gets; how "
    "concentrated demand is, 1/d (dashed) where it is spread evenly over d goods and 1 where all "
    "of it goes to one; and by how much the market brought outcomes nearer to the forecast. Above "
    "zero the forecast fulfilled itself, below zero it defeated itself."
)


def market(tables: Tables, goods: Sequence[str]) -> Figure | None:
    """Draw demand, its concentration and what it confirmed; None where the run had no market.

    Parameters
    ----------
    tables : mapping of str to DataFrame
    goods : sequence of str
        Their names.
    """
    rounds, forecasts = tables.get("rounds"), tables.get("forecasts")
    if rounds is None or len(rounds) < 2 or forecasts is None or "demand_0" not in rounds:
        return None
    measured = crowding(rounds, forecasts).set_index("round")
    shares = pd.DataFrame(columns(rounds, "demand"), index=measured.index)
    answered = bool(measured["confirmed"].notna().any())  # not where nobody foretold outcomes
    figure = Figure(figsize=(WIDTH, 2.2 + 1.6 * answered + 1.6))
    panels = list(figure.subplots(2 + answered, 1, sharex=True))
    _draw(panels[0], shares, "demand")
    words = list(map(short_name, goods))
    figure.legend(panels[0].get_lines(), words, loc="outside upper left", ncols=4)
    _draw(panels[1], measured[["concentration"]], "concentration")
    panels[1].axhline(1 / len(goods), color=FAINT, linewidth=1, linestyle="--")
    if answered:
        _draw(panels[2], measured[["confirmed"]], "nearer to the\nforecast by")
        panels[2].axhline(0, color=INK, linewidth=1)
    panels[-1].set_xlabel("round")
    figure.supylabel(f"mean of the last {rolling_window(len(rounds))} rounds", fontsize=11)
    return figure


def _draw(axes: Axes, curves: pd.DataFrame, label: str) -> None:
    """Draw the rolling mean of every column."""
    points = thinned(curves.index.to_numpy())
    means = curves.rolling(rolling_window(len(curves))).mean().loc[points]
    for column, colour in zip(means, cycle(PALETTE), strict=False):
        axes.plot(points, means[column], color=colour, linewidth=1.4)
    axes.set_ylabel(label)
    axes.yaxis.set_major_locator(MaxNLocator(4))
