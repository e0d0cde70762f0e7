"""Figure of what a leader has taken, from the tables of a run directory.

With u_t the leader's mean payoff per agent of a cohort in round t (``leader_payoff`` of the rounds
table) and V the cohort's mean commitment value, the curve is

    surplus_t = (u_1 + ... + u_t) / t - V,

t counted from the round at which the cohort joined. V is not a column: it is the constant that
makes the curve end at the mean ``leader_surplus`` of the agents table, mean payoff minus surplus.
Where exploitability was measured of a sample of a cohort, that mean is the sample's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from regretless.scenarios.report.figures import (
    FAINT,
    FAR,
    INK,
    WIDTH,
    Tables,
    cohort_colours,
    short_name,
    thinned,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

CAPTION = (
    "Leader's surplus over time: what each cohort has paid the leader per agent and round so far "
    "(by the end: in the legend), less the commitment value, which it could secure by announcing "
    "the best law of outcomes to an agent who best-responds. Above zero it takes more than that. "
    "At the end no surplus exceeds its cap, a triangle, which sinks with swap regret."
)
TOGETHER = (
    " A cohort's value is the mean over its agents, each faced alone. With one law for all a "
    "leader can secure no more than that and often less: below zero it may still take more than it "
    "could secure from all of them together."
)


def surplus_over_time(tables: Tables) -> Figure | None:
    """Draw each cohort's running surplus, the zero line, and its cap after the last round."""
    rounds, agents = tables.get("rounds"), tables["agents"]
    if rounds is None or len(rounds) < 2:
        return None
    if "leader_payoff" not in rounds or "leader_surplus" not in agents:
        return None
    curves = _curves(rounds.set_index("round"), agents)
    if curves.empty:
        return None
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    colours = {name: cohort_colours(agents)[name] for name in curves}
    for i, (name, colour) in enumerate(colours.items()):
        curve = curves[name].dropna()
        points = thinned(curve.index.to_numpy())
        axes.plot(points, curve[points], color=colour, linewidth=_width(i, len(colours)))
    axes.axhline(0, color=INK, linewidth=1)
    axes.set(xlabel="round", ylabel="surplus per round so far")
    _draw_caps(axes, agents, colours, last=rounds["round"].iloc[-1])
    _legend(figure, rounds, agents, colours)
    return figure


def caption(agents: pd.DataFrame) -> str:
    """Say what the figure shows; where there are several agents, against what it is measured."""
    return CAPTION + TOGETHER * (len(agents) > 1)


def _payoffs(rounds: pd.DataFrame, agents: pd.DataFrame) -> dict[Any, pd.Series[float]]:
    """Return the payoff per round from each cohort, in the order of the agents table."""
    names = agents["cohort"].unique()
    if len(names) == 1:
        return {names[0]: rounds["leader_payoff"]}
    return {name: rounds[f"leader_payoff_{i}"] for i, name in enumerate(names)}


def _curves(rounds: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Return the running surplus, a column per cohort whose surplus was measured."""
    ends = agents.groupby("cohort", sort=False)["leader_surplus"].mean().dropna()
    paid = {name: own for name, own in _payoffs(rounds, agents).items() if name in ends}
    running = pd.DataFrame({name: own.expanding().mean() for name, own in paid.items()})
    return running - (running.iloc[-1] - ends) if len(running.columns) else running


def _width(place: int, cohorts: int) -> float:
    """Return a line's width, less from cohort to cohort: equal curves show one within the other."""
    return 2 + 3 * (1 - (place + 1) / cohorts)


def _draw_caps(
    axes: Axes, agents: pd.DataFrame, colours: Mapping[Any, str], *, last: float
) -> None:
    """Mark each cohort's cap at the right edge, or name it in words where it is far above."""
    caps = agents.groupby("cohort", sort=False)["surplus_cap"].mean().reindex(list(colours))
    top = max(axes.get_ylim()[1], 0.0)
    near, far = caps[caps <= FAR * top], caps[caps > FAR * top]
    for i, (name, cap) in enumerate(near.items()):
        size = 3 * _width(i, len(near))
        axes.plot([last], [cap], "<", color=colours[name], markersize=size, clip_on=False)
    if len(far):
        ends = sorted({f"{far.min():.3g}", f"{far.max():.3g}"}, key=float)
        title = f"caps off the axis after the last round: {' to '.join(ends)}"
        axes.set_title(title, fontsize=10, color=FAINT)


def _legend(
    figure: Figure, rounds: pd.DataFrame, agents: pd.DataFrame, colours: Mapping[Any, str]
) -> None:
    paid = _payoffs(rounds, agents)
    lines = [Line2D([], [], color=colour, linewidth=2) for colour in colours.values()]
    lines.append(Line2D([], [], color=FAINT, marker="<", markersize=8, linestyle=""))
    words = [f"{short_name(name)}: pays {paid[name].mean():.3f}" for name in colours]
    figure.legend(lines, [*words, "cap after the last round"], loc="outside upper left", ncols=3)
