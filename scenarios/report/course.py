"""Figures of the course of a run: what was lost, done and owned, round by round, and by one agent.

loss       per cohort: mean loss so far of listening, of every model, policy and best action
actions    per cohort: which share of the decisions each action got
owned      per cohort: mean cash and goods
path       an agent's mean loss so far, and what it would be after its best replacements
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market import register
from regretless.market.markets import Market
from regretless.scenarios.report import charts
from regretless.scenarios.report.run_figures import Tables, rolled, rolling

WORDS = {"broadcast": "as they played", "action": "best fixed action"}
OTHERS = {"y", "x", "leader_payoff", "fundamental", "demand"}  # not drawn here
LINE = 20  # pixels of a line of the legend
STYLES: dict[str, dict[str, Any]] = {
    "broadcast": {"width": 3, "color": charts.INK},
    "model": {"width": 1.5},
    "policy": {"width": 1.5, "dash": "dot"},
    "action": {"width": 1.5, "dash": "dash", "color": charts.FAINT},
}
CAPTIONS = {
    "market": "What the market made of the agents' actions, as rolling means.",
    "path": (
        "One agent: its mean loss so far (solid), and what that would be if, in hindsight, every "
        "action had been replaced by the best for it (dashed); the gap is its regret."
    ),
}


def loss(tables: Tables) -> go.Figure | None:
    """Draw the mean loss so far of each alternative, a panel per cohort."""
    course = tables.get("course")
    if course is None or course.empty or course["round"].nunique() < 2:
        return None
    groups = course.groupby("cohort", sort=False)
    figure = charts.panels([charts.heading(name) for name, _ in groups], rows=len(groups), each=260)
    named = [str(name) for name in course.loc[course["kind"] == "model", "name"].unique()]
    shades = charts.colours(named + list(course.loc[course["kind"] == "policy", "name"].unique()))
    seen = set[str]()
    for row, (_, whole) in enumerate(groups, 1):
        own, curves = whole[whole["round"] >= charts.EARLY * whole["round"].max()], []
        for (kind, name), rows in own.groupby(["kind", "name"], sort=False):
            word = WORDS.get(str(kind), str(name))
            style = {"color": shades.get(name, charts.FAINT)} | STYLES[str(kind)]
            drawn = charts.line(rows["round"], rows["mean_loss"], charts.short(word), **style)
            drawn.update(legendgroup=word, showlegend=word not in seen)
            curves.append(drawn)
            seen.add(word)
        figure.add_traces(curves, rows=row, cols=1)
        charts.hold(figure, row, *curves)
    _make_room(figure, len(seen))
    figure.update_yaxes(title_text="mean loss, in [0, 1]")
    return figure.update_xaxes(title_text="round", row=len(groups))


def _make_room(figure: go.Figure, entries: int) -> None:
    """Let a chart grow with its legend, in place of shrinking its panels."""
    figure.layout.height += LINE * (entries // 3)


def actions(tables: Tables, names: Mapping[str, Sequence[str]]) -> go.Figure | None:
    """Draw the share of each action, a panel per cohort; ``names`` says what they are called."""
    taken = tables.get("actions")
    if taken is None or taken.empty or taken["round"].nunique() < 2:
        return None
    groups = taken.groupby("cohort", sort=False)
    figure = charts.panels([charts.heading(name) for name, _ in groups], rows=len(groups), each=200)
    seen = set[str]()
    for row, (name, own) in enumerate(groups, 1):
        wide = own.pivot_table(index="round", columns="which", values="value", fill_value=0)
        shares = wide.div(wide.sum(axis=1).replace(0, np.nan), axis=0)
        called = dict(enumerate(names.get(str(name), ())))
        for which, share in zip(map(int, wide.columns), shares.to_numpy().T, strict=True):
            word = charts.short(called.get(which, f"action {which}"))
            shade = charts.PALETTE[which % len(charts.PALETTE)]
            area = charts.line(shares.index, share, word, width=0.5, color=shade)
            area.update(stackgroup=str(row), hovertemplate="round %{x}: %{y:.0%}")
            area.update(legendgroup=word, showlegend=word not in seen)
            seen.add(word)
            figure.add_trace(area, row=row, col=1)
    _make_room(figure, len(seen))
    figure.update_yaxes(range=[0, 1], tickformat=".0%", title_text="share")
    return figure.update_xaxes(title_text="round", row=len(groups))


def market(tables: Tables, goods: Sequence[str], kind: str = "") -> go.Figure | None:
    """Draw what a market's columns of the rounds table say, a panel per kind of them.

    Parameters
    ----------
    goods : sequence of str
        What the outcomes are called.
    kind : str
        Which market it is, whose class says what its columns mean.
    """
    rounds = tables.get("rounds", pd.DataFrame())
    if len(rounds) < 2:
        return None
    kinds = dict[str, list[str]]()
    for column in map(str, rounds):
        word, _, place = column.rpartition("_")
        if place.isdigit() and word not in OTHERS:
            kinds.setdefault(word, []).append(column)
    if not kinds:
        return None
    known = kind in register.market  # one of a user's own may not be imported
    clears: Any = register.market[kind] if known else Market
    titles = [clears.meant.get(word, word) for word in kinds]
    figure, seen = charts.panels(list(map(charts.heading, titles)), rows=len(kinds)), set[str]()
    if clears.by_cohort:
        goods = list(map(str, tables["agents"]["cohort"].unique()))
    indexed = rounds.set_index("round")
    for row, columns in enumerate(kinds.values(), 1):
        alone = len(columns) == 1  # its panel's title says it
        named = list(goods) if len(goods) == len(columns) else list(map(str, range(len(columns))))
        for (word, colour), column in zip(charts.colours(named).items(), columns, strict=True):
            curve = rolling(indexed[column], charts.short(word), color=colour, width=1.6)
            curve.update(legendgroup=word, showlegend=word not in seen and not alone)
            figure.add_trace(curve, row=row, col=1)
            seen.update([] if alone else [word])
    _make_room(figure, len(seen))
    return figure.update_xaxes(title_text=f"round; {rolled(len(rounds))}", row=len(kinds))


def owned(tables: Tables, goods: Sequence[str]) -> go.Figure | None:
    """Draw mean cash and goods of each cohort; None where the market keeps no accounts."""
    kept = tables.get("owned")
    if kept is None or kept.empty or kept["round"].nunique() < 2:
        return None
    things = sorted(kept["which"].unique())
    words = ["cash", *map(charts.heading, goods)] if len(things) == len(goods) + 1 else None
    words = words or ["cash", *(f"good {i}" for i in things[:-1])]
    figure = charts.panels(words, rows=len(things), each=150)
    shades = charts.colours(kept["cohort"].unique())
    for (thing, cohort), rows in kept.groupby(["which", "cohort"], sort=False):
        row = things.index(thing) + 1
        curve = charts.line(
            rows["round"], rows["value"], charts.short(cohort), color=shades[cohort]
        )
        curve.update(legendgroup=str(cohort), showlegend=row == 1)
        figure.add_trace(curve, row=row, col=1)
    figure.update_yaxes(title_text="mean per agent", rangemode="tozero")
    return figure.update_xaxes(title_text="round", row=len(things))


def path(own: pd.DataFrame) -> go.Figure | None:
    """Draw an agent's course: columns ``loss`` and ``regret``, indexed by round."""
    if len(own) < 2:
        return None
    figure = charts.panels(each=240)
    lost, best = own["loss"], own["loss"] - own["regret"]
    figure.add_trace(
        charts.line(own.index, lost, "its mean loss so far", color=charts.BLUE, width=2)
    )
    if best.notna().any():
        word = "after its best replacements"
        line = charts.line(own.index, best, word, color=charts.VERMILLION, width=2, dash="dash")
        figure.add_trace(line)
    figure.update_xaxes(title_text="round")
    return figure.update_yaxes(title_text="mean loss, in [0, 1]")
