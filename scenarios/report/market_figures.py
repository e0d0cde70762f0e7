"""Figures of what surrounds a run's agents: who profits from them, what they trade, whom they hear.

    surplus      per cohort: what a leader has taken so far, above its commitment value
    demand       shares of the budgets, their concentration, and what the market confirmed
    network      the graph in rings around the forecaster, an agent's ring being its distance
    distances    per cohort: regret and exploitability against distance

With u_t the leader's mean payoff per agent of a cohort in round t (``leader_payoff`` of the rounds
table) and V the cohort's mean commitment value, the surplus is

    surplus_t = (u_1 + ... + u_t) / t - V,

t counted from the round at which the cohort joined. V is not a column: it is the constant that
makes the curve end at the mean ``leader_surplus`` of the agents table, mean payoff minus surplus.
Where exploitability was measured of a sample of a cohort, that mean is the sample's.

``market.markets.price_impact`` defines what demand and outcomes did to each other, and
``market.game.network.by_distance`` what is shown by distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market.core.randomness import stream
from regretless.market.game.network import Network, by_distance, edge_list, networked, rings
from regretless.market.logs.welfare import means_of
from regretless.market.markets.price_impact import columns, crowding
from regretless.scenarios.logs.curves import leading_regret, thinned
from regretless.scenarios.report import charts
from regretless.scenarios.report.run_figures import Tables, cohort_colours, rolled, rolling, told

BAR = {"title": "regret", "thickness": 10, "orientation": "h", "y": 0, "yanchor": "top"}
MOST = 2500  # edges, or agents of a network, that are drawn; beyond, a sample
CAPTIONS = {
    "surplus": (
        "Leader's surplus over time: what each cohort has paid the leader per agent and round so "
        "far (by the end: in the legend), less the commitment value, which it could secure by "
        "announcing the best law of outcomes to an agent who best-responds. Above zero it takes "
        "more than that. At the end no surplus exceeds its cap (dashed; those far above wait in "
        "the legend), which sinks with swap regret."
    ),
    "demand": (
        "Demand and outcomes, as rolling means: the share of the budgets that each good gets; how "
        "concentrated demand is, 1/d (dashed) where it is spread evenly over d goods and 1 where "
        "all of it goes to one; and by how much the market brought outcomes nearer to the "
        "forecast. Above zero the forecast fulfilled itself, below zero it defeated itself."
    ),
    "network": (
        "Who hears the forecast: agents in rings by their distance from it, the ringed ones "
        "subscribe and hear it at once, one at distance h hears it h rounds late, and the "
        "outermost ring may hold those who never hear; the darker, the more regret at the end."
    ),
    "distances": (
        "What late news costs: regret (mean thick, worst thin) and mean exploitability at the end "
        "against distance from the forecaster. Lines that rise say that late news costs."
    ),
}
TOGETHER = (
    " A cohort's value is the mean over its agents, each faced alone. With one law for all a "
    "leader can secure no more than that and often less: below zero it may still take more than it "
    "could secure from all of them together."
)


def surplus(tables: Tables) -> go.Figure | None:
    """Draw each cohort's running surplus, the zero line, and its cap after the last round."""
    rounds, agents = tables.get("rounds"), tables["agents"]
    if rounds is None or len(rounds) < 2 or "leader_payoff" not in rounds:
        return None
    if "leader_surplus" not in agents or agents["leader_surplus"].isna().all():
        return None
    paid, shades = _payoffs(rounds.set_index("round"), agents), cohort_colours(agents)
    ends = means_of(agents, ["cohort"], ["leader_surplus", "surplus_cap"]).dropna()
    figure, top = charts.panels(each=340), 0.0
    for i, (name, (end, _)) in enumerate(ends.iterrows()):
        curve = paid[name].expanding().mean()
        curve = (curve - (curve.iloc[-1] - end)).dropna()
        points = thinned(curve.index.to_numpy())
        label, top = f"{charts.short(name)}: pays {paid[name].mean():.3f}", max(top, curve.max())
        width = charts.nested(i, len(ends))
        figure.add_trace(charts.line(points, curve[points], label, color=shades[name], width=width))
    charts.zero(figure)
    last = rounds["round"].iloc[[0, -1]]
    caps = charts.limits("cap after the last round", ends["surplus_cap"], shades, top, last)
    figure.add_traces(list(caps))
    return figure.update_xaxes(title_text="round").update_yaxes(
        title_text="surplus per round so far"
    )


def _payoffs(rounds: pd.DataFrame, agents: pd.DataFrame) -> dict[Any, pd.Series[float]]:
    """Return the payoff per round from each cohort, in the order of the agents table."""
    names = agents["cohort"].unique()
    if len(names) == 1:
        return {names[0]: rounds["leader_payoff"]}
    return {name: rounds[f"leader_payoff_{i}"] for i, name in enumerate(names)}


def surplus_caption(agents: pd.DataFrame) -> str:
    """Say what the surplus is; where there are several agents, against what it is measured."""
    return CAPTIONS["surplus"] + TOGETHER * (len(agents) > 1)


def demand(tables: Tables, goods: Sequence[str]) -> go.Figure | None:
    """Draw demand, its concentration and what it confirmed; None where the run had no market."""
    rounds, forecasts = tables.get("rounds"), tables.get("forecasts")
    if rounds is None or len(rounds) < 2 or forecasts is None or "demand_0" not in rounds:
        return None
    measured = crowding(rounds, forecasts).set_index("round")
    shares = pd.DataFrame(columns(rounds, "demand"), index=measured.index)
    answered = bool(measured["confirmed"].notna().any())  # not where nobody foretold outcomes
    titles = ["demand", "concentration", "nearer to the forecast by"][: 2 + answered]
    figure = charts.panels(titles, rows=len(titles))
    for (name, colour), share in zip(charts.colours(goods).items(), shares, strict=True):
        curve = rolling(shares[share], charts.short(name), color=colour, width=1.6)
        figure.add_trace(curve, row=1, col=1)
    for row, column in enumerate(["concentration", "confirmed"][: 1 + answered], 2):
        curve = rolling(measured[column], titles[row - 1], color=charts.INK, width=1.6)
        figure.add_trace(curve.update(showlegend=False), row=row, col=1)
    even = {"color": charts.FAINT, "width": 1, "dash": "dash"}
    figure.add_hline(1 / len(goods), line=even, row=2, col=1)
    if answered:
        charts.zero(figure, row=3, col=1)
    return figure.update_xaxes(title_text=f"round; {rolled(len(rounds))}", row=len(titles))


def network(tables: Tables) -> go.Figure | None:
    """Draw the graph, where there is one."""
    agents, edges = tables["agents"], tables.get("edges")
    if edges is None or edges.empty or "distance" not in agents:
        return None
    graph = edges[["source", "target"]].to_numpy(dtype=np.intp) - 1
    subscribers = np.flatnonzero((agents["distance"] == 0).fillna(value=False).to_numpy(bool))
    whole: Network = networked(len(agents), subscribers, edge_list(len(agents), graph))
    places = rings(whole)
    cut = f", {MOST:,} of them drawn" if max(len(graph), len(agents)) > MOST else ""
    figure = charts.panels([f"{len(agents):,} agents, {len(graph):,} edges{cut}"], each=420)
    figure.add_trace(_edges(places[graph[_sampled(len(graph))]]))
    figure.add_trace(_dots(agents, places, _sampled(len(agents))))
    figure.update_xaxes(visible=False).update_yaxes(visible=False, scaleanchor="x")
    return figure.update_layout(showlegend=False, margin_l=12)


def _sampled(count: int) -> np.ndarray[Any, Any]:
    """Choose which of many to draw, the same ones every time."""
    if count <= MOST:
        return np.arange(count)
    return np.sort(stream(0, "network plot").choice(count, MOST, replace=False))


def _edges(ends: np.ndarray[Any, Any]) -> go.Scatter:
    """Draw edges, given both ends of each, as one line with gaps."""
    gap = np.full((len(ends), 1, 2), np.nan)
    x, y = np.concatenate([ends, gap], axis=1).reshape(-1, 2).T
    return go.Scatter(
        x=x, y=y, mode="lines", line={"color": "#c9c9c9", "width": 0.5}, hoverinfo="skip"
    )


def _dots(
    agents: pd.DataFrame, places: np.ndarray[Any, Any], shown: np.ndarray[Any, Any]
) -> go.Scatter:
    """Draw agents in their places, the darker the more regret; those at distance 0 are ringed."""
    drawn, regret = agents.iloc[shown], leading_regret(agents)
    ringed = (drawn["distance"] == 0).fillna(value=False).to_numpy(bool)
    return go.Scatter(
        x=places[shown, 0],
        y=places[shown, 1],
        text=[f"{told(agent)}<br>distance: {_place(agent)}" for agent in drawn.to_dict("records")],
        customdata=drawn["agent"].to_numpy(),
        mode="markers",
        marker={
            "color": np.nan_to_num(regret.to_numpy(np.float64)[shown]),
            "cmin": min(0.0, float(regret.min())),
            "cmax": float(regret.max()) or 1.0,
            "colorscale": "Viridis",
            "reversescale": True,
            "colorbar": BAR,
            "size": np.where(ringed, 10, 7),
            "line": {"color": charts.INK, "width": np.where(ringed, 2, 0)},
        },
        hovertemplate="%{text}<extra></extra>",
    )


def _place(agent: dict[Any, Any]) -> str:
    return "never hears" if pd.isna(agent["distance"]) else str(agent["distance"])


def distances(tables: Tables) -> go.Figure | None:
    """Draw regret and exploitability by distance; None where all hear alike."""
    agents = tables["agents"]
    if "distance" not in agents or leading_regret(agents).isna().all():
        return None
    table, shades = by_distance(agents), cohort_colours(agents)
    last = int(table["distance"].max()) if table["distance"].notna().any() else -1
    table["place"] = table["distance"].fillna(last + 1).astype(int)
    curves = {"regret_mean": (1, 2.5), "regret_worst": (1, 1.0), "exploitability_mean": (2, 2.5)}
    figure = charts.panels(["regret per round", "exploitability"], rows=2)
    for name, rows in table.groupby("cohort", sort=False):
        for column, (row, width) in curves.items():
            word = column.replace("_", ", ")
            curve = charts.line(
                rows["place"], rows[column], charts.plain(word), color=shades[name], width=width
            )
            curve.update(
                name=charts.short(name), legendgroup=str(name), showlegend=width > 1 and row == 1
            )
            curve.update(mode="lines+markers", hovertemplate=f"{word}: %{{y:.4g}}")
            figure.add_trace(curve, row=row, col=1)
    if table["distance"].isna().any():
        names = [*map(str, range(last + 1)), "never"]
        figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names)
    figure.update_xaxes(title_text="distance from the forecaster", row=2)
    return figure.update_yaxes(rangemode="tozero")
