"""Figure of who hears the forecast, from the tables of a run directory.

On the left the graph in rings around the forecaster, an agent's ring being its distance; on the
right regret and exploitability against distance (``market.game.network.by_distance``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from regretless.market.core.randomness import stream
from regretless.market.game.network import Network, by_distance, edge_list, networked, rings
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
    from matplotlib.axes import Axes

MOST = 2500  # edges, or agents, that are drawn; beyond, a sample
CAPTION = (
    "Who hears the forecast: agents in rings by their distance from it, the ringed ones subscribe "
    "and hear it at once, one at distance h hears it h rounds late, and the outermost ring may "
    "hold those who never hear; the darker, the more regret at the end. Beside it regret (mean "
    "thick, worst thin) and mean exploitability against distance: lines that rise say that late "
    "news costs."
)


def network(tables: Tables) -> Figure | None:
    """Draw the graph, where there is one, and regret and exploitability by distance."""
    agents = tables["agents"]
    if "distance" not in agents or leading_regret(agents).isna().all():
        return None
    edges = tables.get("edges")
    linked = edges is not None and not edges.empty
    if not linked:
        figure = Figure(figsize=(WIDTH, 3.2))
        panels = list(figure.subplots(1, 2))
    else:
        assert edges is not None  # noqa: S101
        figure = Figure(figsize=(WIDTH, 4.8))
        grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
        _draw_graph(figure, figure.add_subplot(grid[:, 0]), agents, edges)
        panels = [figure.add_subplot(grid[row, 1]) for row in range(2)]
    _draw_distances(panels, agents, shared=linked)
    return figure


def _draw_graph(figure: Figure, axes: Axes, agents: pd.DataFrame, edges: pd.DataFrame) -> None:
    graph = edges[["source", "target"]].to_numpy(dtype=np.intp) - 1
    subscribers = np.flatnonzero((agents["distance"] == 0).fillna(value=False).to_numpy(bool))
    whole: Network = networked(len(agents), subscribers, edge_list(len(agents), graph))
    places = rings(whole)
    shown, titled = _sampled(len(graph)), _sampled(len(agents))
    lines = LineCollection(list(places[graph[shown]]), colors=FAINT, linewidths=0.4, alpha=0.5)
    axes.add_collection(lines)
    regret = leading_regret(agents).to_numpy(dtype=np.float64)
    ringed = np.isin(np.arange(len(agents)), subscribers)
    for mask, edge, width in ((~ringed, "none", 0.0), (ringed, INK, 1.4)):
        some = titled[mask[titled]]
        dots = axes.scatter(
            places[some, 0],
            places[some, 1],
            c=np.nan_to_num(regret[some]),
            s=28 if width else 14,
            cmap="viridis_r",
            vmin=min(0.0, float(np.nanmin(regret))),
            vmax=float(np.nanmax(regret)) or 1.0,
            edgecolors=edge,
            linewidths=width,
            zorder=2,
        )
    figure.colorbar(dots, ax=axes, shrink=0.7, label="regret per round", location="left")
    axes.set_aspect("equal")
    axes.set_axis_off()
    cut = f", {MOST:,} of them drawn" if max(len(graph), len(agents)) > MOST else ""
    axes.set_title(f"{len(agents):,} agents, {len(graph):,} edges{cut}", fontsize=10, color=FAINT)


def _sampled(count: int) -> np.ndarray[Any, Any]:
    """Choose which of many to draw, the same ones every time."""
    if count <= MOST:
        return np.arange(count)
    return np.sort(stream(0, "network plot").choice(count, MOST, replace=False))


def _draw_distances(panels: list[Axes], agents: pd.DataFrame, *, shared: bool) -> None:
    table, colours = by_distance(agents), cohort_colours(agents)
    last = int(table["distance"].max()) if table["distance"].notna().any() else -1
    never = table["distance"].isna().any()
    table["place"] = table["distance"].fillna(last + 1).astype(int)
    marks: dict[str, Any] = {"marker": "o", "markersize": 4}
    for name, rows in table.groupby("cohort", sort=False):
        colour = colours[name]
        label = short_name(name)
        panels[0].plot(
            rows["place"], rows["regret_mean"], color=colour, linewidth=2, label=label, **marks
        )
        panels[0].plot(rows["place"], rows["regret_worst"], color=colour, linewidth=0.8)
        panels[1].plot(rows["place"], rows["exploitability_mean"], color=colour, **marks)
    panels[0].set_ylabel("regret per round")
    panels[1].set_ylabel("exploitability")
    panels[1].set_ylim(bottom=0, top=max(panels[1].get_ylim()[1], 0.001))
    for axes in panels:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        if never:
            ticks = np.arange(last + 2)
            axes.set_xticks(ticks, [*map(str, ticks[:-1]), "never"])
    for axes in panels[1:] if shared else panels:
        axes.set_xlabel("distance from the forecaster")
    panels[0].legend(fontsize=9)
