"""Figures of an order book, from ``quotes`` and ``trades``: prices, spread, depth, how prices move.

With m_t the middle of the best quotes after round t (that of the last round in which there was
one), x_t its change, and s_t the sign of the units that were bought less those that were sold by
orders that met another one in round t,

    excess kurtosis              mean (x - mean x)^4 / (mean (x - mean x)^2)^2 - 3
    autocorrelation of squares   that of x_t^2, 1 to 20 rounds apart
    impact                       mean over rounds with s_t != 0 of s_t (m_{t + l} - m_{t - 1})

(Cont 2001, Empirical properties of asset returns: stylized facts and statistical issues.)
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy.stats import kurtosis

from regretless.scenarios.logs.curves import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.forecast_figures import rolled, rolling
from regretless.scenarios.report.run_data import Run

MOST = 2000  # trades that are drawn; beyond, evenly spaced ones
LAGS = 20  # rounds
FEWEST = 100  # changes of the middle; of fewer nothing is drawn


@figure(
    "run",
    "book",
    section="Market",
    dated=True,
    title="Trades, best quotes, spread and depth of the order book",
    caption=(
        "Of the first good: each dot is a trade, the line is the middle of the best quotes after a "
        "round; below, rolling means of the spread and of the units at the best quotes."
    ),
)
def book(run: Run) -> go.Figure | None:
    """Draw prices, spread and depth; None where the run had no order book."""
    if not run.long("quotes"):
        return None
    quotes = run.table("quotes").query("good == 0").set_index("round")
    made = theme.panels(["price", "spread", "units at the best bid and ask"], rows=3)
    middle = quotes["mid"].dropna()
    if len(middle):
        shown = middle.iloc[thinned(np.arange(len(middle)))]
        style = {"color": theme.INK, "width": 1.2}
        made.add_trace(theme.line(shown.index, shown, "mid", **style), row=1, col=1)
    made.add_trace(_trades(run.table("trades")), row=1, col=1)
    spread = rolling(quotes["ask"] - quotes["bid"], "spread", color=theme.INK, width=1.6)
    made.add_trace(spread.update(showlegend=False), row=2, col=1)
    for side, colour in (("bid", theme.BLUE), ("ask", theme.VERMILLION)):
        depth = rolling(quotes[f"{side}_depth"], side, color=colour, width=1.6)
        made.add_trace(depth, row=3, col=1)
    for row, word in enumerate(("price", "price", "units"), 1):
        made.update_yaxes(title_text=word, row=row, col=1)
    return made.update_xaxes(title_text=f"round; {rolled(len(quotes))}", row=3)


def _trades(trades: pd.DataFrame) -> go.Scatter:
    """Draw trades of the first good as dots."""
    own = trades[trades["good"] == 0] if len(trades) else pd.DataFrame({"round": [], "price": []})
    own = own.iloc[np.unique(np.linspace(0, len(own) - 1, MOST).astype(int))] if len(own) else own
    style = {"size": 3, "color": theme.FAINT}
    return go.Scatter(x=own["round"], y=own["price"], name="trades", mode="markers", marker=style)


@figure(
    "run",
    "book-facts",
    section="Market",
    title="How the price of the first good changes, and what trades do to it",
    caption=(
        "Changes of the middle of the best quotes from round to round. A large kurtosis means rare "
        "large changes; autocorrelation of squared changes, that large changes follow each other; "
        "impact is how far the price has moved in the direction of a round's trades."
    ),
)
def book_facts(run: Run) -> go.Figure | None:
    """Draw the changes, autocorrelations and impact; None for fewer than 100 changes."""
    if not run.long("quotes"):
        return None
    middle, flow = _first(run)
    changes = middle.diff().dropna()
    if (changes != 0).sum() < FEWEST:
        return None
    fat = f"changes, with an excess kurtosis of {kurtosis(changes):.3g} (0 if normal)"
    titles = [fat, "autocorrelation, by rounds apart", "impact, by rounds since the trades"]
    rows = 3 if flow.any() else 2  # in a batch nobody meets an older order
    made = theme.panels(titles[:rows], rows=rows, shared_xaxes=False)
    style = {"marker_color": theme.BLUE, "showlegend": False}
    made.add_trace(go.Histogram(x=changes, nbinsx=60, **style), row=1, col=1)
    for name, of, colour in (
        ("of changes", changes, theme.FAINT),
        ("of squared changes", changes**2, theme.VERMILLION),
    ):
        along = [of.autocorr(lag) for lag in range(1, LAGS + 1)]
        made.add_trace(_by_lag(range(1, LAGS + 1), along, name, colour), row=2, col=1)
    if rows > 2:
        reach = [impact(middle, flow, lag) for lag in range(LAGS)]
        made.add_trace(_by_lag(range(LAGS), reach, "impact", theme.INK), row=3, col=1)
    for row, word in enumerate(("rounds", "correlation", "change of price")[:rows], 1):
        made.update_yaxes(title_text=word, row=row, col=1)
    return made.update_xaxes(title_text="rounds", row=rows)


def impact(middle: pd.Series[float], flow: pd.Series[float], lag: int) -> float:
    """Return the mean change from before a round to ``lag`` rounds after it, along its trades."""
    moved = np.sign(flow) * (middle.shift(-lag) - middle.shift(1))
    return float(moved[flow != 0].mean())


def _first(run: Run) -> tuple[pd.Series[float], pd.Series[float]]:
    """Return the middle after each round, and the units bought less those sold, of good 0."""
    quotes = run.table("quotes").query("good == 0").set_index("round")
    trades = run.table("trades")
    if not len(trades):
        return quotes["mid"].ffill(), 0 * quotes["bid_depth"]
    side = trades["aggressor"].map({"buyer": 1.0, "seller": -1.0}).fillna(0.0)
    signed = (side * trades["quantity"])[trades["good"] == 0]
    flow = signed.groupby(trades["round"]).sum().reindex(quotes.index, fill_value=0.0)
    return quotes["mid"].ffill(), flow


def _by_lag(lags: range, values: list[float], name: str, colour: str) -> go.Scatter:
    told = "%{x} rounds: %{y:.4g}"
    return theme.line(list(lags), values, name, color=colour).update(hovertemplate=told)
