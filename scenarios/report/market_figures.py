"""Figures of what surrounds a run's agents: leaders, own measures, the market and the network.

With u_t the leader's mean payoff per agent of a cohort in round t (``leader_payoff`` of the rounds
table) and V the cohort's mean commitment value, the surplus is

    surplus_t = (u_1 + ... + u_t) / t - V,

t counted from the round in which the cohort entered. V is not a column: it is the constant that
makes the curve end at the mean ``leader_surplus`` of the agents table, mean payoff minus surplus.

**Order books.** With m_t the middle of the best quotes after round t (that of the last round in
which there was one), x_t its change, and s_t the sign of the units that were bought less those that
were sold by orders that met another one in round t,

    excess kurtosis              mean (x - mean x)^4 / (mean (x - mean x)^2)^2 - 3
    autocorrelation of squares   that of x_t^2, 1 to 20 rounds apart
    impact                       mean over rounds with s_t != 0 of s_t (m_{t + l} - m_{t - 1})

(Cont 2001, Empirical properties of asset returns: stylized facts and statistical issues.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import kurtosis

from regretless.market import register
from regretless.market.core.randomness import stream
from regretless.market.game.network import NEVER, Network, edge_list, networked
from regretless.market.logs.counted import means_of, with_counts
from regretless.market.logs.welfare import by_distance
from regretless.market.markets import Market
from regretless.market.markets.price_impact import columns, crowding
from regretless.scenarios.logs.reading import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Run, described, figure
from regretless.scenarios.report.run_figures import rolled, rolling

BAR = {"title": "regret", "thickness": 10, "orientation": "h", "y": 0, "yanchor": "top"}
MOST = 2500  # edges, or agents of a network, that are drawn; beyond, a sample
OTHERS = {"y", "x", "leader_payoff", "fundamental", "demand"}  # columns that have other figures


@figure("run")
def surplus(run: Run) -> go.Figure | None:
    """Draw each cohort's running surplus, the zero line, and its cap after the last round."""
    rounds, agents = run.table("rounds"), run.agents
    if len(rounds) < 2 or "leader_payoff" not in rounds or "leader_surplus" not in agents:
        return None
    ends = means_of(agents, ["cohort"], ["leader_surplus", "surplus_cap"]).dropna()
    names, last, curves = list(agents["cohort"].unique()), rounds["round"].iloc[[0, -1]], []
    for i, (name, (end, cap)) in enumerate(ends.iterrows()):
        column = f"leader_payoff_{names.index(name)}" if len(names) > 1 else "leader_payoff"
        curve = rounds.set_index("round")[column].expanding().mean()
        curve = (curve - (curve.iloc[-1] - end)).dropna()
        points = thinned(curve.index.to_numpy())
        curves.append(run.line(name, points, curve[points], width=theme.nested(i, len(ends))))
        style = {"color": run.shades[name], "width": 1.5, "dash": "dash"}
        curves.append(theme.line(last, [cap] * 2, f"cap of {theme.short(name)}", **style))
    if not curves:
        return None
    return theme.zero(theme.stacked({"": curves}, each=340, y="surplus per round"))


@figure("run")
def measures(run: Run) -> go.Figure | None:
    """Draw the user's own measures; None where none was taken twice."""
    if not run.long("measures"):
        return None
    own, agents = run.table("measures"), run.agents
    cohort = own["agent"].map(agents.set_index("agent")["cohort"]).fillna(own["cohort"])
    rows = with_counts(own.assign(cohort=cohort.replace("", "all")), agents)
    means = means_of(rows, ["measure", "cohort", "round"], ["value"]).reset_index()
    panels: dict[str, list[go.Scatter]] = defaultdict(list)
    for (name, whose), curve in means.groupby(["measure", "cohort"], sort=False):
        shown = curve.iloc[thinned(np.arange(len(curve)))]
        panels[str(name)].append(run.line(whose, shown["round"], shown["value"], width=1.6))
    return theme.stacked(panels, y="value", legend=set(means["cohort"]) != {"all"})


@figure("run")
def demand(run: Run) -> go.Figure | None:
    """Draw demand, its concentration and what it confirmed; None where the run had no market."""
    rounds, forecasts = run.table("rounds"), run.table("forecasts")
    if len(rounds) < 2 or forecasts.empty or "demand_0" not in rounds:
        return None
    measured = crowding(rounds, forecasts).set_index("round")
    shares = pd.DataFrame(columns(rounds, "demand"), index=measured.index)
    panels = {"share of each good": _named(shares, run.goods)}
    titles = {"concentration": "concentration"}
    if measured["confirmed"].notna().any():  # not where nobody foretold outcomes
        titles["confirmed"] = "outcomes moved towards the forecast by"
    for column, title in titles.items():
        curve = rolling(measured[column], title, color=theme.INK, width=1.6)
        panels[title] = [curve.update(showlegend=False)]
    axes = ["share", "index", "outcome"]
    made = theme.stacked(panels, x=f"round; {rolled(len(rounds))}", y=axes)
    even = {"color": theme.FAINT, "width": 1, "dash": "dash"}
    made.add_hline(1 / len(run.goods), line=even, row=2, col=1)
    return theme.zero(made, row=3, col=1) if "confirmed" in titles else made


def _named(columns: pd.DataFrame, names: Sequence[str]) -> list[go.Scatter]:
    """Draw rolling means of columns by the names of what they are of."""
    pairs = zip(theme.colours(names).items(), columns, strict=True)
    return [
        rolling(columns[column], theme.short(name), color=colour, width=1.6)
        for (name, colour), column in pairs
    ]


@figure("run")
def market(run: Run) -> go.Figure | None:
    """Draw what a market's columns of the rounds table say, a panel per kind of them."""
    rounds = run.table("rounds")
    kinds: dict[str, list[str]] = defaultdict(list)
    for column in map(str, rounds):
        word, _, place = column.rpartition("_")
        if place.isdigit() and word not in OTHERS:
            kinds[word].append(column)
    if len(rounds) < 2 or not kinds:
        return None
    named = (run.config.get("market") or {}).get("kind", "")
    imported = named in register.market  # one of a user's own may not be
    clears: Any = register.market[named] if imported else Market
    goods = list(map(str, run.agents["cohort"].unique())) if clears.by_cohort else run.goods
    indexed, panels = rounds.set_index("round"), {}
    for kind, places in kinds.items():
        names = goods if len(goods) == len(places) else list(map(str, range(len(places))))
        several = len(places) > 1  # else its title says it
        marks = [curve.update(showlegend=several) for curve in _named(indexed[places], names)]
        panels[clears.column_labels.get(kind, kind)] = marks
    return theme.stacked(panels, x=f"round; {rolled(len(rounds))}", y="mean")


@figure("run")
def owned(run: Run) -> go.Figure | None:
    """Draw mean cash and goods of each cohort; None where the market keeps no accounts."""
    if not run.long("owned"):
        return None
    table, goods = run.table("owned"), run.goods
    things = sorted(table["which"].unique())
    listed = len(things) == len(goods) + 1
    words = ["cash", *(goods if listed else (f"good {i}" for i in things[:-1]))]
    panels: dict[str, list[go.Scatter]] = {word: [] for word in words}
    for (thing, cohort), rows in table.groupby(["which", "cohort"], sort=False):
        curve = run.line(cohort, rows["round"], rows["value"])
        panels[words[things.index(thing)]].append(curve)
    return theme.stacked(panels, y="mean per agent").update_yaxes(rangemode="tozero")


@figure("run")
def network(run: Run) -> go.Figure | None:
    """Draw the graph, where there is one."""
    agents, edges = run.agents, run.table("edges")
    if edges.empty or "distance" not in agents:
        return None
    graph = edges[["source", "target"]].to_numpy(dtype=np.intp) - 1
    subscribers = np.flatnonzero((agents["distance"] == 0).fillna(value=False).to_numpy(bool))
    whole: Network = networked(len(agents), subscribers, edge_list(len(agents), graph))
    places = rings(whole)
    cut = f", {MOST:,} of them drawn" if max(len(graph), len(agents)) > MOST else ""
    made = theme.panels([f"{len(agents):,} agents, {len(graph):,} edges{cut}"], each=420)
    ends = places[graph[_sampled(len(graph))]]
    gap = np.full((len(ends), 1, 2), np.nan)  # which parts an edge from the next
    x, y = np.concatenate([ends, gap], axis=1).reshape(-1, 2).T
    style = {"color": "#c9c9c9", "width": 0.5}
    made.add_trace(go.Scatter(x=x, y=y, mode="lines", line=style, hoverinfo="skip"))
    made.add_trace(_dots(run, places, _sampled(len(agents))))
    made.update_xaxes(visible=False).update_yaxes(visible=False, scaleanchor="x")
    return made.update_layout(showlegend=False, margin_l=12)


def rings(network: Network) -> np.ndarray[Any, Any]:
    """Lay a graph out in rings around the forecaster (N, 2), subscribers on the innermost.

    An agent at distance h is h further out, those who never hear are on the outermost ring; on its
    ring it stands in the order of the first neighbour that is nearer.
    """
    edges = np.zeros((0, 2), dtype=np.intp) if network.edges is None else network.edges
    never = network.farthest + 1
    ring = np.where(network.distance == NEVER, never, network.distance)
    turn = np.zeros(len(ring))
    ways = np.concatenate([edges, edges[:, ::-1]])
    for hops in np.unique(ring):
        here = np.flatnonzero(ring == hops)
        wanted = np.ones(len(ring))
        nearer = ways[(ring[ways[:, 0]] == hops) & (ring[ways[:, 1]] == hops - 1)]
        np.minimum.at(wanted, nearer[:, 0], turn[nearer[:, 1]])
        order = here[np.argsort(wanted[here], kind="stable")]
        turn[order] = (np.arange(len(order)) + 0.5) / len(order)
    angle, radius = 2 * np.pi * turn, max(1.0, never / 3) + ring
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _sampled(count: int) -> np.ndarray[Any, Any]:
    """Choose which of many to draw, the same ones every time."""
    picks = stream(0, "network plot").choice(count, min(count, MOST), replace=False)
    return np.sort(picks)


def _dots(run: Run, places: np.ndarray[Any, Any], shown: np.ndarray[Any, Any]) -> go.Scatter:
    """Draw agents in their places, the darker the more regret; those at distance 0 are ringed."""
    drawn, regret = run.agents.iloc[shown], run.regret
    ringed = (drawn["distance"] == 0).fillna(value=False).to_numpy(bool)
    where = drawn["distance"].astype(object).where(drawn["distance"].notna(), "never hears")
    pairs = zip(drawn.to_dict("records"), where, strict=True)
    style = {
        "color": np.nan_to_num(regret.to_numpy(np.float64)[shown]),
        "cmin": min(0.0, float(regret.min())),
        "cmax": float(regret.max()) or 1.0,
        "colorscale": "Viridis",
        "reversescale": True,
        "colorbar": BAR,
        "size": np.where(ringed, 10, 7),
        "line": {"color": theme.INK, "width": np.where(ringed, 2, 0)},
    }
    x, y = places[shown].T
    marks = theme.dots(x, y, "%{text}<extra></extra>", marker=style)
    marks.text = [f"{described(agent)}<br>distance: {distance}" for agent, distance in pairs]
    return marks.update(customdata=drawn["agent"].to_numpy())


@figure("run")
def distances(run: Run) -> go.Figure | None:
    """Draw regret and exploitability by distance; None where all hear alike."""
    agents = run.agents
    if "distance" not in agents or run.regret.isna().all():
        return None
    table = by_distance(agents)
    last = int(table["distance"].max()) if table["distance"].notna().any() else -1
    table["place"] = table["distance"].fillna(last + 1).astype(int)
    panels: dict[str, list[go.Scatter]] = {"regret per round": [], "exploitability": []}
    for name, rows in table.groupby("cohort", sort=False):
        for column in ("regret_mean", "regret_worst", "exploitability_mean"):
            width = 1.0 if column == "regret_worst" else 2.5
            curve = run.line(name, rows["place"], rows[column], width=width)
            hover = f"{column.replace('_', ', ')}: %{{y:.4g}}"
            curve.update(mode="lines+markers", hovertemplate=hover)
            panels["regret per round" if "regret" in column else "exploitability"].append(curve)
    x, y = "distance from the forecaster", ["regret", "exploitability"]
    made = theme.stacked(panels, x=x, y=y).update_yaxes(rangemode="tozero")
    if table["distance"].isna().any():
        names = [*map(str, range(last + 1)), "never"]
        made.update_xaxes(tickvals=list(range(len(names))), ticktext=names)
    return made


TRADES = 2000  # trades that are drawn; beyond, evenly spaced ones
LAGS = 20  # rounds
FEWEST = 100  # changes of the middle; of fewer nothing is drawn


@figure("run")
def book(run: Run) -> go.Figure | None:
    """Draw prices, spread and depth; None where the run had no order book."""
    if not run.long("quotes"):
        return None
    quotes = run.table("quotes").query("good == 0").set_index("round")
    middle, marks = quotes["mid"].dropna(), []
    if len(middle):
        shown = middle.iloc[thinned(np.arange(len(middle)))]
        marks.append(theme.line(shown.index, shown, "mid", color=theme.INK, width=1.2))
    own = run.table("trades")
    own = own[own["good"] == 0] if len(own) else pd.DataFrame({"round": [], "price": []})
    own = own.iloc[np.unique(np.linspace(0, len(own) - 1, TRADES).astype(int))] if len(own) else own
    dots = {"name": "trades", "mode": "markers", "marker": {"size": 3, "color": theme.FAINT}}
    marks.append(go.Scatter(x=own["round"], y=own["price"], **dots))
    spread = rolling(quotes["ask"] - quotes["bid"], "spread", color=theme.INK, width=1.6)
    depths = quotes[["bid_depth", "ask_depth"]]
    panels = {
        "price": marks,
        "spread": [spread.update(showlegend=False)],
        "units at the best bid and ask": _named(depths, ["bid", "ask"]),
    }
    axes = ["price", "price", "units"]
    return theme.stacked(panels, x=f"round; {rolled(len(quotes))}", y=axes)


@figure("run", "book-facts")
def book_facts(run: Run) -> go.Figure | None:
    """Draw the changes, autocorrelations and impact; None for fewer than 100 changes."""
    if not run.long("quotes"):
        return None
    quotes, trades = run.table("quotes").query("good == 0").set_index("round"), run.table("trades")
    middle, flow = quotes["mid"].ffill(), 0 * quotes["bid_depth"]
    if len(trades):
        side = trades["aggressor"].map({"buyer": 1.0, "seller": -1.0}).fillna(0.0)
        signed = (side * trades["quantity"])[trades["good"] == 0]
        flow = signed.groupby(trades["round"]).sum().reindex(quotes.index, fill_value=0.0)
    changes = middle.diff().dropna()
    if (changes != 0).sum() < FEWEST:
        return None
    fat = f"changes, with an excess kurtosis of {kurtosis(changes):.3g}"
    bars = go.Histogram(x=changes, nbinsx=60, marker_color=theme.BLUE, showlegend=False)
    lags, squares = range(1, LAGS + 1), changes**2
    plain = _by_lag(lags, changes.autocorr, "of changes", theme.FAINT)
    squared = _by_lag(lags, squares.autocorr, "of squared changes", theme.VERMILLION)
    panels = {fat: [bars], "autocorrelation, by rounds apart": [plain, squared]}
    if flow.any():  # in a batch nobody meets an older order
        along = [np.sign(flow) * (middle.shift(-lag) - middle.shift(1)) for lag in range(LAGS)]
        impact = _by_lag(range(LAGS), lambda lag: along[lag][flow != 0].mean(), "impact", theme.INK)
        panels["impact, by rounds since the trades"] = [impact]
    axes = ["rounds", "correlation", "change of price"]
    return theme.stacked(panels, x="rounds", y=axes, shared_xaxes=False)


def _by_lag(lags: range, of: Callable[[int], float], name: str, colour: str) -> go.Scatter:
    curve = theme.line(list(lags), list(map(of, lags)), name, color=colour)
    return curve.update(hovertemplate="%{x} rounds: %{y:.4g}")
