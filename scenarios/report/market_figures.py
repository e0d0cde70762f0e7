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
from regretless.scenarios.report.figures import Run, describe_agent, figure
from regretless.scenarios.report.forecast_figures import describe_rolling_mean, draw_rolling_mean

COLOUR_BAR = {"title": "regret", "thickness": 10, "orientation": "h", "y": 0, "yanchor": "top"}
MAX_DRAWN_IN_NETWORK = 2500  # edges, or agents; beyond, a sample
DRAWN_ELSEWHERE = {"y", "x", "leader_payoff", "fundamental", "demand"}  # kinds of columns


@figure("run")
def surplus(run: Run) -> go.Figure | None:
    """Draw each cohort's running surplus, the zero line, and its cap after the last round."""
    rounds = run.table("rounds")
    agents = run.agents
    if len(rounds) < 2 or "leader_payoff" not in rounds or "leader_surplus" not in agents:
        return None
    final_means = means_of(agents, ["cohort"], ["leader_surplus", "surplus_cap"]).dropna()
    cohorts = list(agents["cohort"].unique())
    first_and_last_round = rounds["round"].iloc[[0, -1]]
    payoffs = rounds.set_index("round")
    curves = []
    for cohort_index, (cohort, (final_surplus, cap)) in enumerate(final_means.iterrows()):
        column = "leader_payoff"
        if len(cohorts) > 1:
            column = f"leader_payoff_{cohorts.index(cohort)}"
        mean_payoff = payoffs[column].expanding().mean()
        commitment_value = mean_payoff.iloc[-1] - final_surplus
        surplus_so_far = (mean_payoff - commitment_value).dropna()
        points = thinned(surplus_so_far.index.to_numpy())
        width = theme.nested_width(cohort_index, len(final_means))
        curves.append(run.line(cohort, points, surplus_so_far[points], width=width))
        curves.append(
            theme.line(
                first_and_last_round,
                [cap] * 2,
                f"cap of {theme.shorten(cohort)}",
                color=run.colour_of[cohort],
                width=1.5,
                dash="dash",
            )
        )
    if not curves:
        return None
    chart = theme.draw_panels({"": curves}, pixels_per_panel=340, y="surplus per round")
    return theme.draw_zero_line(chart)


@figure("run")
def measures(run: Run) -> go.Figure | None:
    """Draw the user's own measures; None where none was taken twice."""
    if not run.has_rounds("measures"):
        return None
    table = run.table("measures")
    agents = run.agents
    cohort_of_agent = agents.set_index("agent")["cohort"]
    cohort_of_row = table["agent"].map(cohort_of_agent).fillna(table["cohort"]).replace("", "all")
    rows = with_counts(table.assign(cohort=cohort_of_row), agents)
    means = means_of(rows, ["measure", "cohort", "round"], ["value"]).reset_index()
    panels: dict[str, list[go.Scatter]] = defaultdict(list)
    for (measure, cohort), curve in means.groupby(["measure", "cohort"], sort=False):
        points = curve.iloc[thinned(np.arange(len(curve)))]
        panels[str(measure)].append(run.line(cohort, points["round"], points["value"], width=1.6))
    return theme.draw_panels(panels, y="value", legend=set(means["cohort"]) != {"all"})


@figure("run")
def demand(run: Run) -> go.Figure | None:
    """Draw demand, its concentration and what it confirmed; None where the run had no market."""
    rounds = run.table("rounds")
    forecasts = run.table("forecasts")
    if len(rounds) < 2 or forecasts.empty or "demand_0" not in rounds:
        return None
    crowding_by_round = crowding(rounds, forecasts).set_index("round")
    shares = pd.DataFrame(columns(rounds, "demand"), index=crowding_by_round.index)
    panels = {"share of each good": _rolling_means(shares, run.goods)}
    title_of_column = {"concentration": "concentration"}
    # nothing is confirmed where nobody foretold outcomes
    has_confirmed = crowding_by_round["confirmed"].notna().any()
    if has_confirmed:
        title_of_column["confirmed"] = "outcomes moved towards the forecast by"
    for column, title in title_of_column.items():
        curve = draw_rolling_mean(crowding_by_round[column], title, color=theme.INK, width=1.6)
        panels[title] = [curve.update(showlegend=False)]
    rounds_name = f"round; {describe_rolling_mean(len(rounds))}"
    chart = theme.draw_panels(panels, x=rounds_name, y=["share", "index", "outcome"])
    equal_shares = {"color": theme.FAINT, "width": 1, "dash": "dash"}
    chart.add_hline(1 / len(run.goods), line=equal_shares, row=2, col=1)
    if has_confirmed:
        theme.draw_zero_line(chart, row=3, col=1)
    return chart


def _rolling_means(table: pd.DataFrame, names: Sequence[str]) -> list[go.Scatter]:
    """Draw the rolling mean of each column of a table, by the names of what they are of."""
    colour_of = theme.assign_colours(names)
    curves = []
    for (name, colour), column in zip(colour_of.items(), table, strict=True):
        curves.append(
            draw_rolling_mean(table[column], theme.shorten(name), color=colour, width=1.6)
        )
    return curves


@figure("run")
def market(run: Run) -> go.Figure | None:
    """Draw what a market's columns of the rounds table say, a panel per kind of them."""
    rounds = run.table("rounds")
    columns_of_kind: dict[str, list[str]] = defaultdict(list)
    for column in map(str, rounds):
        column_kind, _, number = column.rpartition("_")
        if number.isdigit() and column_kind not in DRAWN_ELSEWHERE:
            columns_of_kind[column_kind].append(column)
    if len(rounds) < 2 or not columns_of_kind:
        return None
    market_kind = (run.config.get("market") or {}).get("kind", "")
    market_class: Any = Market
    if market_kind in register.market:  # one of a user's own may not be imported
        market_class = register.market[market_kind]
    names_in_market = run.goods
    if market_class.by_cohort:  # its columns are of cohorts, not of goods
        names_in_market = list(map(str, run.agents["cohort"].unique()))
    rounds_by_number = rounds.set_index("round")
    panels: dict[str, list[go.Scatter]] = {}
    for column_kind, kind_columns in columns_of_kind.items():
        names = names_in_market
        if len(names_in_market) != len(kind_columns):  # it is of something else: numbers name it
            names = list(map(str, range(len(kind_columns))))
        curves = _rolling_means(rounds_by_number[kind_columns], names)
        for curve in curves:
            curve.update(showlegend=len(kind_columns) > 1)  # else its title says it
        panels[market_class.column_labels.get(column_kind, column_kind)] = curves
    rounds_name = f"round; {describe_rolling_mean(len(rounds))}"
    return theme.draw_panels(panels, x=rounds_name, y="mean")


@figure("run")
def owned(run: Run) -> go.Figure | None:
    """Draw mean cash and goods of each cohort; None where the market keeps no accounts."""
    if not run.has_rounds("owned"):
        return None
    table = run.table("owned")
    numbers = sorted(table["which"].unique())  # the first is cash, the others are goods
    good_names = run.goods
    if len(numbers) != len(good_names) + 1:
        good_names = [f"good {number}" for number in numbers[:-1]]
    titles = ["cash", *good_names]
    panels: dict[str, list[go.Scatter]] = {title: [] for title in titles}
    for (number, cohort), rows in table.groupby(["which", "cohort"], sort=False):
        curve = run.line(cohort, rows["round"], rows["value"])
        panels[titles[numbers.index(number)]].append(curve)
    return theme.draw_panels(panels, y="mean per agent").update_yaxes(rangemode="tozero")


@figure("run")
def network(run: Run) -> go.Figure | None:
    """Draw the graph, where there is one."""
    agents = run.agents
    edge_table = run.table("edges")
    if edge_table.empty or "distance" not in agents:
        return None
    edges = edge_table[["source", "target"]].to_numpy(dtype=np.intp) - 1
    hears_forecaster = (agents["distance"] == 0).fillna(value=False).to_numpy(bool)
    subscribers = np.flatnonzero(hears_forecaster)
    positions = rings(networked(len(agents), subscribers, edge_list(len(agents), edges)))
    title = f"{len(agents):,} agents, {len(edges):,} edges"
    if max(len(edges), len(agents)) > MAX_DRAWN_IN_NETWORK:
        title += f", {MAX_DRAWN_IN_NETWORK:,} of them drawn"
    chart = theme.make_panels([title], pixels_per_panel=420)
    chart.add_trace(_edge_lines(positions, edges[_sample(len(edges))]))
    chart.add_trace(_network_dots(run, positions, _sample(len(agents))))
    chart.update_xaxes(visible=False).update_yaxes(visible=False, scaleanchor="x")
    return chart.update_layout(showlegend=False, margin_l=12)


def _edge_lines(positions: np.ndarray[Any, Any], edges: np.ndarray[Any, Any]) -> go.Scatter:
    """Draw edges (E, 2) between agents at positions (N, 2)."""
    line_ends = positions[edges]
    gaps = np.full((len(line_ends), 1, 2), np.nan)  # which part an edge from the next
    x, y = np.concatenate([line_ends, gaps], axis=1).reshape(-1, 2).T
    style = {"color": "#c9c9c9", "width": 0.5}
    return go.Scatter(x=x, y=y, mode="lines", line=style, hoverinfo="skip")


def rings(network: Network) -> np.ndarray[Any, Any]:
    """Lay a graph out in rings around the forecaster (N, 2), subscribers on the innermost.

    An agent at distance h is h further out, those who never hear are on the outermost ring; on its
    ring it stands in the order of the first neighbour that is nearer.
    """
    edges = np.zeros((0, 2), dtype=np.intp) if network.edges is None else network.edges
    outermost = network.farthest + 1
    ring_of = np.where(network.distance == NEVER, outermost, network.distance)
    turn_of = np.zeros(len(ring_of))  # in [0, 1), around the ring
    directed_edges = np.concatenate([edges, edges[:, ::-1]])
    for ring in np.unique(ring_of):
        agents = np.flatnonzero(ring_of == ring)
        leads_inwards = (ring_of[directed_edges[:, 0]] == ring) & (
            ring_of[directed_edges[:, 1]] == ring - 1
        )
        inward_edges = directed_edges[leads_inwards]
        first_turn = np.ones(len(ring_of))  # of the neighbours that are nearer
        np.minimum.at(first_turn, inward_edges[:, 0], turn_of[inward_edges[:, 1]])
        in_order = agents[np.argsort(first_turn[agents], kind="stable")]
        turn_of[in_order] = (np.arange(len(in_order)) + 0.5) / len(in_order)
    angle = 2 * np.pi * turn_of
    radius = max(1.0, outermost / 3) + ring_of
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _sample(count: int) -> np.ndarray[Any, Any]:
    """Choose which of many to draw, the same ones every time."""
    n_drawn = min(count, MAX_DRAWN_IN_NETWORK)
    return np.sort(stream(0, "network plot").choice(count, n_drawn, replace=False))


def _network_dots(
    run: Run, positions: np.ndarray[Any, Any], places: np.ndarray[Any, Any]
) -> go.Scatter:
    """Draw the agents at some places of the table, the darker the more regret.

    Those at distance 0 are ringed.
    """
    agents = run.agents.iloc[places]
    regrets = run.regret
    is_ringed = (agents["distance"] == 0).fillna(value=False).to_numpy(bool)
    distances = agents["distance"].astype(object)
    distance_words = distances.where(agents["distance"].notna(), "never hears")
    texts = []
    for agent, distance in zip(agents.to_dict("records"), distance_words, strict=True):
        texts.append(f"{describe_agent(agent)}<br>distance: {distance}")
    x, y = positions[places].T
    marks = theme.dots(
        x,
        y,
        "%{text}<extra></extra>",
        marker={
            "color": np.nan_to_num(regrets.to_numpy(np.float64)[places]),
            "cmin": min(0.0, float(regrets.min())),
            "cmax": float(regrets.max()) or 1.0,
            "colorscale": "Viridis",
            "reversescale": True,
            "colorbar": COLOUR_BAR,
            "size": np.where(is_ringed, 10, 7),
            "line": {"color": theme.INK, "width": np.where(is_ringed, 2, 0)},
        },
    )
    marks.text = texts
    return marks.update(customdata=agents["agent"].to_numpy())


@figure("run")
def distances(run: Run) -> go.Figure | None:
    """Draw regret and exploitability by distance; None where all hear alike."""
    agents = run.agents
    if "distance" not in agents or run.regret.isna().all():
        return None
    table = by_distance(agents)
    greatest = int(table["distance"].max()) if table["distance"].notna().any() else -1
    table["place"] = table["distance"].fillna(greatest + 1).astype(int)
    panels: dict[str, list[go.Scatter]] = {"regret per round": [], "exploitability": []}
    for cohort, rows in table.groupby("cohort", sort=False):
        for column in ("regret_mean", "regret_worst", "exploitability_mean"):
            width = 1.0 if column == "regret_worst" else 2.5
            curve = run.line(cohort, rows["place"], rows[column], width=width)
            hover = f"{column.replace('_', ', ')}: %{{y:.4g}}"
            curve.update(mode="lines+markers", hovertemplate=hover)
            panel = "regret per round" if "regret" in column else "exploitability"
            panels[panel].append(curve)
    chart = theme.draw_panels(
        panels, x="distance from the forecaster", y=["regret", "exploitability"]
    )
    chart.update_yaxes(rangemode="tozero")
    if table["distance"].isna().any():
        names = [*map(str, range(greatest + 1)), "never"]
        chart.update_xaxes(tickvals=list(range(len(names))), ticktext=names)
    return chart


MAX_DRAWN_TRADES = 2000  # beyond, evenly spaced ones
MAX_LAG_ROUNDS = 20
MIN_CHANGES = 100  # of the middle; of fewer nothing is drawn


@figure("run")
def book(run: Run) -> go.Figure | None:
    """Draw prices, spread and depth; None where the run had no order book."""
    if not run.has_rounds("quotes"):
        return None
    quotes = run.table("quotes").query("good == 0").set_index("round")
    prices = []
    middle = quotes["mid"].dropna()
    if len(middle):
        points = middle.iloc[thinned(np.arange(len(middle)))]
        prices.append(theme.line(points.index, points, "mid", color=theme.INK, width=1.2))
    trades = _trades_to_draw(run.table("trades"))
    prices.append(
        go.Scatter(
            x=trades["round"],
            y=trades["price"],
            name="trades",
            mode="markers",
            marker={"size": 3, "color": theme.FAINT},
        )
    )
    spread = draw_rolling_mean(quotes["ask"] - quotes["bid"], "spread", color=theme.INK, width=1.6)
    panels = {
        "price": prices,
        "spread": [spread.update(showlegend=False)],
        "units at the best bid and ask": _rolling_means(
            quotes[["bid_depth", "ask_depth"]], ["bid", "ask"]
        ),
    }
    rounds_name = f"round; {describe_rolling_mean(len(quotes))}"
    return theme.draw_panels(panels, x=rounds_name, y=["price", "price", "units"])


def _trades_to_draw(trades: pd.DataFrame) -> pd.DataFrame:
    """Return trades in the first good, evenly spaced ones where there are too many."""
    if trades.empty:
        return pd.DataFrame({"round": [], "price": []})
    trades = trades[trades["good"] == 0]
    if trades.empty:
        return trades
    places = np.linspace(0, len(trades) - 1, MAX_DRAWN_TRADES).astype(int)
    return trades.iloc[np.unique(places)]


@figure("run", "book-facts")
def book_facts(run: Run) -> go.Figure | None:
    """Draw the changes, autocorrelations and impact; None for fewer than 100 changes."""
    if not run.has_rounds("quotes"):
        return None
    quotes = run.table("quotes").query("good == 0").set_index("round")
    middle = quotes["mid"].ffill()
    changes = middle.diff().dropna()
    if (changes != 0).sum() < MIN_CHANGES:
        return None
    histogram_title = f"changes, with an excess kurtosis of {kurtosis(changes):.3g}"
    lags = range(1, MAX_LAG_ROUNDS + 1)
    squared_changes = changes**2
    panels: dict[str, list[Any]] = {
        histogram_title: [
            go.Histogram(x=changes, nbinsx=60, marker_color=theme.BLUE, showlegend=False)
        ],
        "autocorrelation, by rounds apart": [
            _curve_by_lag(lags, changes.autocorr, "of changes", theme.FAINT),
            _curve_by_lag(lags, squared_changes.autocorr, "of squared changes", theme.VERMILLION),
        ],
    }
    net_purchases = _net_purchases(run.table("trades"), quotes)
    if net_purchases.any():  # in a batch nobody meets an older order
        has_purchases = net_purchases != 0

        def impact(lag: int) -> float:
            """Mean change of the middle, in the direction of the purchases so many rounds ago."""
            change = middle.shift(-lag) - middle.shift(1)
            return float((np.sign(net_purchases) * change)[has_purchases].mean())

        curve = _curve_by_lag(range(MAX_LAG_ROUNDS), impact, "impact", theme.INK)
        panels["impact, by rounds since the trades"] = [curve]
    axis_names = ["rounds", "correlation", "change of price"]
    return theme.draw_panels(panels, x="rounds", y=axis_names, shared_xaxes=False)


def _net_purchases(trades: pd.DataFrame, quotes: pd.DataFrame) -> pd.Series[float]:
    """Return what was bought less what was sold by those who met an older order, by round."""
    if trades.empty:
        return 0 * quotes["bid_depth"]
    sign = trades["aggressor"].map({"buyer": 1.0, "seller": -1.0}).fillna(0.0)
    quantities = (sign * trades["quantity"])[trades["good"] == 0]
    return quantities.groupby(trades["round"]).sum().reindex(quotes.index, fill_value=0.0)


def _curve_by_lag(
    lags: range, value_at: Callable[[int], float], name: str, colour: str
) -> go.Scatter:
    """Draw a value for each lag, in rounds."""
    curve = theme.line(list(lags), [value_at(lag) for lag in lags], name, color=colour)
    return curve.update(hovertemplate="%{x} rounds: %{y:.4g}")
