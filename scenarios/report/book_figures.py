"""Figures of an order book: prices with trades, spread and depth (``quotes`` and ``trades``)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.scenarios.logs.curves import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.run_data import Run
from regretless.scenarios.report.run_figures import rolled, rolling

MOST = 2000  # trades that are drawn; beyond, evenly spaced ones


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
