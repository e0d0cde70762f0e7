"""Interactive figures of one run: regret over time, and a dot per agent.

They show what ``plots.regret_over_time`` and ``agent_plot.agents`` draw; zoom by dragging, show and
hide by clicking in the legend, and read numbers by pointing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from regretless.scenarios.report.agents import drawn_agents
from regretless.scenarios.report.figures import (
    FAR,
    Tables,
    cohort_colours,
    measured,
    spans_decades,
    thinned,
)
from regretless.scenarios.report.interactive import figure_of, plain, scale, scale_menu

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd


def regret_over_time(tables: Tables) -> go.Figure:
    """Return mean, worst agent and bound of each cohort; a bound far above waits in the legend."""
    agents, curves = tables["agents"], tables["regret_curves"].dropna()
    rounds = curves.index.unique("round").to_numpy()
    curves = curves[curves.index.isin(thinned(rounds), level="round")]
    logarithmic = spans_decades(curves["mean"])
    traces = list(_curves(curves, agents))
    return figure_of(
        traces,
        height=460 + 10 * len(traces),
        xaxis={"title": "round"},
        yaxis={"title": f"{measured(curves)} per round"} | scale(logarithmic=logarithmic),
        updatemenus=[scale_menu(logarithmic=logarithmic)],
    )


def _curves(curves: pd.DataFrame, agents: pd.DataFrame) -> Iterator[go.Scatter]:
    colours, top = cohort_colours(agents), float(curves["max"].max())
    for name in curves.index.unique("cohort"):
        curve, colour = curves.loc[name], colours[name]
        rounds = curve.index.to_numpy()
        for column, word, width in (("mean", "mean", 2.5), ("max", "worst agent", 1.0)):
            yield _line(f"{name}, {word}", rounds, curve[column], color=colour, width=width)
        bound = float(agents.loc[agents["cohort"] == name, "bound"].max())
        if np.isfinite(bound):
            ends, values = rounds[[0, -1]], np.full(2, bound)
            label = f"{name}, bound {bound:.3g} after the last round"
            line = _line(label, ends, values, color=colour, width=1.5, dash="dash")
            yield line.update(visible=True if bound <= FAR * top else "legendonly")


def _line(name: str, rounds: Any, values: Any, **line: Any) -> go.Scatter:
    return go.Scatter(
        x=np.asarray(rounds),
        y=np.asarray(values, dtype=np.float64),
        name=plain(name),
        mode="lines",
        line=line,
        hovertemplate="round %{x}: %{y:.5f}<extra>%{fullData.name}</extra>",
    )


def agents(tables: Tables) -> go.Figure:
    """Return a dot per agent, which tells who it is when pointed at."""
    colours = cohort_colours(tables["agents"])
    traces = [
        go.Scatter(
            x=members["mean_loss"].to_numpy(),
            y=members["regret"].to_numpy(),
            text=[_told(agent) for agent in members.to_dict("records")],
            name=plain(name),
            mode="markers",
            marker={"color": colours[name], "size": 7, "opacity": 0.6},
            hovertemplate="%{text}<extra>%{fullData.name}</extra>",
        )
        for name, members in drawn_agents(tables["agents"]).groupby("cohort", sort=False)
    ]
    return figure_of(
        traces,
        height=480,
        showlegend=True,
        xaxis={"title": "mean loss, in [0, 1]"},
        yaxis={"title": "regret per round"},
    )


def _told(agent: dict[Any, Any]) -> str:
    """Write what is known of an agent, a line each; what was not measured is left out."""
    welfare = -(agent["loss_offset"] + agent["loss_scale"] * agent["mean_loss"])
    numbers = {
        "mean utility per round, own units": welfare,
        "mean loss": agent["mean_loss"],
        "swap regret": agent["swap_regret"],
        "decision swap regret": agent["decision_swap_regret"],
        "exploitability": agent["exploitability"],
    }
    lines = [f"agent {agent['agent']}, {plain(agent['utility'])}, {plain(agent['response'])}"]
    lines += [f"{word}: {value:.4g}" for word, value in numbers.items() if np.isfinite(value)]
    return "<br>".join(lines)
