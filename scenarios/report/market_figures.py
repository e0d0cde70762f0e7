"""Figures of what surrounds a run's agents: leaders, own measures, the market and the network.

With u_t the leader's mean payoff per agent of a cohort in round t (``leader_payoff`` of the rounds
table) and V the cohort's mean commitment value, the surplus is

    surplus_t = (u_1 + ... + u_t) / t - V,

t counted from the round in which the cohort entered. V is not a column: it is the constant that
makes the curve end at the mean ``leader_surplus`` of the agents table, mean payoff minus surplus.
Where exploitability was measured of a sample of a cohort, that mean is the sample's.

``market.markets.price_impact`` defines what demand and outcomes did to each other, and
``market.game.network.by_distance`` what is shown by distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market import register
from regretless.market.core.randomness import stream
from regretless.market.game.network import Network, by_distance, edge_list, networked, rings
from regretless.market.logs.welfare import means_of, with_counts
from regretless.market.markets import Market
from regretless.market.markets.price_impact import columns, crowding
from regretless.scenarios.logs.curves import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.forecast_figures import rolled, rolling
from regretless.scenarios.report.run_data import Run, told
from regretless.scenarios.report.run_figures import REGRET

BAR = {"title": "regret", "thickness": 10, "orientation": "h", "y": 0, "yanchor": "top"}
MOST = 2500  # edges, or agents of a network, that are drawn; beyond, a sample
OTHERS = {"y", "x", "leader_payoff", "fundamental", "demand"}  # columns that have other figures
MARKET, NETWORK = "Market", "Network"


@figure(
    "run",
    "surplus",
    section=REGRET,
    dated=True,
    title="Surplus that a leader extracted per round so far, and its cap",
    caption=(
        "What each cohort paid the leader per agent, minus the leader's commitment value, mean "
        "over agents who are faced alone; the cap (dashed) holds at the end and falls with swap "
        "regret."
    ),
)
def surplus(run: Run) -> go.Figure | None:
    """Draw each cohort's running surplus, the zero line, and its cap after the last round."""
    rounds, agents = run.table("rounds"), run.agents
    if len(rounds) < 2 or "leader_payoff" not in rounds or "leader_surplus" not in agents:
        return None
    ends = means_of(agents, ["cohort"], ["leader_surplus", "surplus_cap"]).dropna()
    paid, last = _payoffs(rounds.set_index("round"), agents), rounds["round"].iloc[[0, -1]]
    made, curves = theme.panels(each=340), []
    for i, (name, (end, cap)) in enumerate(ends.iterrows()):
        curve = paid[name].expanding().mean()
        curve = (curve - (curve.iloc[-1] - end)).dropna()
        points = thinned(curve.index.to_numpy())
        style = {"color": run.shades[name], "width": theme.nested(i, len(ends))}
        curves.append(theme.line(points, curve[points], theme.short(name), **style))
        style |= {"width": 1.5, "dash": "dash"}
        curves.append(theme.line(last, [cap] * 2, f"cap of {theme.short(name)}", **style))
    if not curves:
        return None
    theme.zero(made.add_traces(curves, rows=1, cols=1))
    theme.hold(made, 1, *curves)
    theme.name_at_ends(made, 340)
    return made.update_xaxes(title_text="round").update_yaxes(title_text="surplus per round")


def _payoffs(rounds: pd.DataFrame, agents: pd.DataFrame) -> dict[Any, pd.Series[float]]:
    """Return the payoff per round from each cohort, in the order of the agents table."""
    names = agents["cohort"].unique()
    if len(names) == 1:
        return {names[0]: rounds["leader_payoff"]}
    return {name: rounds[f"leader_payoff_{i}"] for i, name in enumerate(names)}


@figure(
    "run",
    "measures",
    section=MARKET,
    dated=True,
    title="Measures of your own, after every logged round",
    caption=(
        "A panel per registered measure: of the round as a whole, of each cohort, or the mean "
        "over the logged agents of each cohort."
    ),
)
def measures(run: Run) -> go.Figure | None:
    """Draw the user's own measures; None where none was taken twice."""
    if not run.long("measures"):
        return None
    own, agents = run.table("measures"), run.agents
    cohort = own["agent"].map(agents.set_index("agent")["cohort"]).fillna(own["cohort"])
    rows = with_counts(own.assign(cohort=cohort.replace("", "all")), agents)
    means = means_of(rows, ["measure", "cohort", "round"], ["value"]).reset_index()
    names, seen = list(means["measure"].unique()), set[str]()
    made = theme.panels(list(map(theme.heading, names)), rows=len(names))
    for (name, whose), curve in means.groupby(["measure", "cohort"], sort=False):
        shown = curve.iloc[thinned(np.arange(len(curve)))]
        style = {"color": run.shades.get(whose, theme.INK), "width": 1.6}
        drawn = theme.line(shown["round"], shown["value"], theme.short(whose), **style)
        drawn.update(legendgroup=str(whose), showlegend=whose not in seen)
        made.add_trace(drawn, row=names.index(name) + 1, col=1)
        seen.add(str(whose))
    made.update_layout(showlegend=seen != {"all"}).update_yaxes(title_text="value")
    return made.update_xaxes(title_text="round", row=len(names))


@figure(
    "run",
    "demand",
    section=MARKET,
    dated=True,
    title="Demand for each good, its concentration, and its effect on the forecast's error",
    caption=(
        "Concentration is 1/d (dashed) where demand is spread evenly over d goods and 1 where all "
        "goes to one; below, positive values say that the market moved outcomes towards the "
        "forecast."
    ),
)
def demand(run: Run) -> go.Figure | None:
    """Draw demand, its concentration and what it confirmed; None where the run had no market."""
    rounds, forecasts = run.table("rounds"), run.table("forecasts")
    if len(rounds) < 2 or forecasts.empty or "demand_0" not in rounds:
        return None
    measured = crowding(rounds, forecasts).set_index("round")
    shares = pd.DataFrame(columns(rounds, "demand"), index=measured.index)
    answered = bool(measured["confirmed"].notna().any())  # not where nobody foretold outcomes
    titles = ["share of each good", "concentration", "outcomes moved towards the forecast by"]
    made = theme.panels(titles[: 2 + answered], rows=2 + answered)
    for (name, colour), share in zip(theme.colours(run.goods).items(), shares, strict=True):
        curve = rolling(shares[share], theme.short(name), color=colour, width=1.6)
        made.add_trace(curve, row=1, col=1)
    for row, column in enumerate(["concentration", "confirmed"][: 1 + answered], 2):
        curve = rolling(measured[column], titles[row - 1], color=theme.INK, width=1.6)
        made.add_trace(curve.update(showlegend=False), row=row, col=1)
    even = {"color": theme.FAINT, "width": 1, "dash": "dash"}
    made.add_hline(1 / len(run.goods), line=even, row=2, col=1)
    if answered:
        theme.zero(made, row=3, col=1)
    for row, word in enumerate(["share", "index", "outcome"][: 2 + answered], 1):
        made.update_yaxes(title_text=word, row=row, col=1)
    return made.update_xaxes(title_text=f"round; {rolled(len(rounds))}", row=2 + answered)


@figure(
    "run",
    "market",
    section=MARKET,
    dated=True,
    title="What the market recorded in each round",
    caption=("Rolling means of the columns that the market adds to the table of rounds."),
)
def market(run: Run) -> go.Figure | None:
    """Draw what a market's columns of the rounds table say, a panel per kind of them."""
    rounds, kinds = run.table("rounds"), dict(_kinds(run))
    if len(rounds) < 2 or not kinds:
        return None
    kind = (run.config.get("market") or {}).get("kind", "")
    known = kind in register.market  # one of a user's own may not be imported
    clears: Any = register.market[kind] if known else Market
    titles = [clears.column_labels.get(word, word) for word in kinds]
    made, seen = theme.panels(list(map(theme.heading, titles)), rows=len(kinds)), set[str]()
    goods = list(map(str, run.agents["cohort"].unique())) if clears.by_cohort else run.goods
    indexed = rounds.set_index("round")
    for row, places in enumerate(kinds.values(), 1):
        alone = len(places) == 1  # its panel's title says it
        names = list(goods) if len(goods) == len(places) else list(map(str, range(len(places))))
        for (word, colour), column in zip(theme.colours(names).items(), places, strict=True):
            curve = rolling(indexed[column], theme.short(word), color=colour, width=1.6)
            curve.update(legendgroup=word, showlegend=word not in seen and not alone)
            made.add_trace(curve, row=row, col=1)
            seen.update([] if alone else [word])
    theme.grow(made, len(seen))
    made.update_yaxes(title_text="mean")
    return made.update_xaxes(title_text=f"round; {rolled(len(rounds))}", row=len(kinds))


def _kinds(run: Run) -> Iterator[tuple[str, list[str]]]:
    """Yield each kind of a market's columns of the rounds table, with its columns."""
    words = [str(column).rpartition("_") for column in run.table("rounds")]
    kinds = [word for word, _, place in words if place.isdigit() and word not in OTHERS]
    for kind in dict.fromkeys(kinds):
        yield kind, [f"{kind}_{place}" for word, _, place in words if word == kind]


@figure(
    "run",
    "owned",
    section=MARKET,
    dated=True,
    title="Cash and goods that the agents of each cohort own",
    caption="Means per agent of a cohort, by the accounts of the market.",
)
def owned(run: Run) -> go.Figure | None:
    """Draw mean cash and goods of each cohort; None where the market keeps no accounts."""
    if not run.long("owned"):
        return None
    kept, goods = run.table("owned"), run.goods
    things = sorted(kept["which"].unique())
    words = ["cash", *map(theme.heading, goods)] if len(things) == len(goods) + 1 else None
    words = words or ["cash", *(f"good {i}" for i in things[:-1])]
    made = theme.panels(words, rows=len(things), each=150)
    for (thing, cohort), rows in kept.groupby(["which", "cohort"], sort=False):
        row, shade = things.index(thing) + 1, run.shades[cohort]
        curve = theme.line(rows["round"], rows["value"], theme.short(cohort), color=shade)
        curve.update(legendgroup=str(cohort), showlegend=row == 1)
        made.add_trace(curve, row=row, col=1)
    made.update_yaxes(title_text="mean per agent", rangemode="tozero")
    return made.update_xaxes(title_text="round", row=len(things))


@figure(
    "run",
    "network",
    section=NETWORK,
    title="Who hears the forecast, and when",
    caption=(
        "Agents in rings by their distance from the forecaster: an outlined agent hears it at "
        "once, one at distance h hears it h rounds late, the outermost ring may never hear it, "
        "and a darker agent has more regret at the end."
    ),
)
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
    made.add_trace(_edges(places[graph[_sampled(len(graph))]]))
    made.add_trace(_dots(run, places, _sampled(len(agents))))
    made.update_xaxes(visible=False).update_yaxes(visible=False, scaleanchor="x")
    return made.update_layout(showlegend=False, margin_l=12)


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


def _dots(run: Run, places: np.ndarray[Any, Any], shown: np.ndarray[Any, Any]) -> go.Scatter:
    """Draw agents in their places, the darker the more regret; those at distance 0 are ringed."""
    drawn, regret = run.agents.iloc[shown], run.regret
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
            "line": {"color": theme.INK, "width": np.where(ringed, 2, 0)},
        },
        hovertemplate="%{text}<extra></extra>",
    )


def _place(agent: dict[Any, Any]) -> str:
    return "never hears" if pd.isna(agent["distance"]) else str(agent["distance"])


@figure(
    "run",
    "distances",
    section=NETWORK,
    title="Regret and exploitability by distance from the forecaster",
    caption=(
        "Mean (thick) and worst (thin) at the end; lines that rise show the cost of late news."
    ),
)
def distances(run: Run) -> go.Figure | None:
    """Draw regret and exploitability by distance; None where all hear alike."""
    agents = run.agents
    if "distance" not in agents or run.regret.isna().all():
        return None
    table = by_distance(agents)
    last = int(table["distance"].max()) if table["distance"].notna().any() else -1
    table["place"] = table["distance"].fillna(last + 1).astype(int)
    curves = {"regret_mean": (1, 2.5), "regret_worst": (1, 1.0), "exploitability_mean": (2, 2.5)}
    made = theme.panels(["regret per round", "exploitability"], rows=2)
    for name, rows in table.groupby("cohort", sort=False):
        for column, (row, width) in curves.items():
            word = column.replace("_", ", ")
            style = {"color": run.shades[name], "width": width}
            curve = theme.line(rows["place"], rows[column], theme.short(name), **style)
            curve.update(legendgroup=str(name), showlegend=width > 1 and row == 1)
            curve.update(mode="lines+markers", hovertemplate=f"{word}: %{{y:.4g}}")
            made.add_trace(curve, row=row, col=1)
    if table["distance"].isna().any():
        names = [*map(str, range(last + 1)), "never"]
        made.update_xaxes(tickvals=list(range(len(names))), ticktext=names)
    made.update_xaxes(title_text="distance from the forecaster", row=2)
    made.update_yaxes(title_text="regret", row=1).update_yaxes(title_text="exploitability", row=2)
    return made.update_yaxes(rangemode="tozero")
