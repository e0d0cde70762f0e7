"""The page of a training: what attackers extract, how they learned, and what their plans do.

Drawn from the table of attackers, the curve and the files with the best plans, as ``regretless
train`` left them.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import drawn, figure
from regretless.scenarios.report.page import charts, legible, report
from regretless.scenarios.training.results import (
    CURVE,
    SAYS_NOTHING,
    TABLE,
    file_of,
    says_nothing,
)

WINDOW = 32  # runs of the mean in the curve
HEAD = ["cohort", "commitment value", "surplus", "95 % interval", "cap of the attackers tried"]
HEAD += ["cap of any attacker"]
HOW = (
    "The surplus that was found is a lower bound on what an attacker extracts from the cohort. The "
    "cap of the attackers tried is what the swap regret of the judged runs allowed at most. The "
    "cap of any attacker is known before a run, where a theorem applies."
)


@dataclass(frozen=True, eq=False)
class Training:
    """What a training left behind: the table, the curve, and the file of each best plan."""

    attackers: pd.DataFrame
    curve: pd.DataFrame
    plans: list[dict[str, Any]]


def text(folder: Path) -> str:
    """Return the page of a training's folder; UserError if its files cannot be read."""
    with legible(folder, what="what was trained", cure="train again"):
        attackers, curve = (pd.read_csv(folder / name) for name in (TABLE, CURVE))
        files = [folder / file_of(str(name)) for name in attackers["cohort"]]
        best = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
        runs = f"{len(curve) // len(attackers):,} runs of {best[0]['rounds']:,} rounds"
        rows = attackers.to_dict("records")
        names = ("value", "surplus", "ends", "cap", "certified")
        ends = [row | {"ends": (row["low"], row["high"])} for row in rows]
        cells = [[str(row["cohort"]), *(_number(row[name]) for name in names)] for row in ends]
        figures, name = drawn("training", Training(attackers, curve, best)), str(best[0]["name"])
        return report(
            f"Trained against {name}",
            {
                "Surplus": [("table", HEAD, cells), ("note", HOW)],
                "Learning": charts(figures, "Learning"),
                "Plans": charts(figures, "Plans"),
            },
            title=f"{name}, trained attackers",
            facts=f"{runs} for each cohort.",
            sentences=map(sentence, rows),
        )


def sentence(row: dict[Any, Any]) -> str:
    """Say what was found against a cohort, and what a theorem says of those who try more."""
    if row["low"] > 0:
        found = f"The attacker takes {row['surplus']:.3f} per round and agent from {row['cohort']}"
        found += " beyond what it could commit to"
    elif row["high"] < 0:
        found = f"No plan that was tried takes anything from {row['cohort']}: the best gets "
        found += f"{-row['surplus']:.3f} per round and agent less than what it could commit to"
    else:
        found = f"Whether a plan takes anything from {row['cohort']} is open"
    low, high = _number((row["low"], row["high"])).split(" to ")
    return f"{found} (95 % interval {low} to {high}); {_cap(row)}."


def _cap(row: dict[Any, Any]) -> str:
    if np.isnan(row["certified"]):
        return "no theorem limits it"
    if says_nothing(row):
        return SAYS_NOTHING.format(row["most"])
    return f"no attacker takes above {row['certified']:.3f}"


def _number(value: float | tuple[float, float]) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(_number, value))
    return "none" if np.isnan(value) else f"{value:.3f}"


@figure("training", window=WINDOW)
def learned(data: Training) -> go.Figure:
    """Draw the payments of all runs, with what the cohort's attacker could reach."""
    attackers, curve = data.attackers, data.curve
    panels = {}
    for row in attackers.to_dict("records"):
        own = curve[curve["cohort"] == row["cohort"]]
        ends, value = own["run"].iloc[[0, -1]], row["value"]
        smooth = own["paid"].rolling(WINDOW, min_periods=1).mean()
        style = {"size": 4, "color": theme.BLUE, "opacity": 0.35}
        dots = theme.line(own["run"], own["paid"], "a run").update(mode="markers", marker=style)
        traces = [dots, theme.line(own["run"], smooth, f"mean of {WINDOW}", color=theme.BLUE)]
        levels = {
            "best plan, other seeds": (value + row["surplus"], theme.GREEN, "solid"),
            "commitment value": (value, theme.FAINT, "dash"),
            "cap of any attacker": (value + row["certified"], theme.VERMILLION, "dash"),
        }
        for word, (level, colour, dash) in levels.items():
            traces.append(theme.line(ends, [level] * 2, word, color=colour, dash=dash))
        for trace in traces:
            trace.update(hovertemplate=trace.hovertemplate.replace("round", "run"))
        panels[row["cohort"]] = traces
    return theme.stacked(panels, x="run", y="paid per round")


@figure("training")
def plans(data: Training) -> go.Figure:
    """Draw a map per cohort: a row per outcome (and what was played last), a column per phase."""
    tables = {
        str(name): _map(plan)
        for name, plan in zip(data.attackers["cohort"], data.plans, strict=True)
    }
    made = theme.slotted({name: list(found.index) for name, found in tables.items()})
    for place, found in enumerate(tables.values(), 1):
        values = {"z": found.to_numpy(), "x": found.columns, "y": list(range(len(found)))}
        style = {"zmin": 0, "zmax": 1, "colorscale": "Blues", "showscale": False}
        hover = "%{x} of the run: %{z:.3f}<extra></extra>"
        heat = go.Heatmap(**values, **style, xgap=1, ygap=1, hovertemplate=hover)
        made.add_trace(heat, row=place, col=1)
    return made.update_xaxes(title_text="part of the run", row=len(tables))


def _map(plan: dict[str, Any]) -> pd.DataFrame:
    """Return a plan's probabilities, a row per outcome and a column per phase."""
    adversary = plan["adversary"]
    distributions, support = np.array(adversary["distributions"]), np.array(adversary["support"])
    names = adversary.get("outcome_names") or [f"outcome {k}" for k in range(support.shape[1])]
    pure = (np.sort(support, 1)[:, -1] == 1) & (support.sum(1) == 1)
    words = [
        names[row.argmax()] if one else f"({', '.join(f'{x:g}' for x in row)})"
        for row, one in zip(support, pure, strict=True)
    ]
    cohort = next(c for c in plan["cohort"] if c["name"] == adversary["cohort"])
    known = cohort.get("action_names") or [f"action {s}" for s in range(cohort["actions"])]
    answers = [f", after {word}" for word in known] if distributions.shape[1] > 1 else [""]
    index = [theme.short(word + answer, 40) for answer in answers for word in words]
    phases = [f"{k + 1} / {len(distributions)}" for k in range(len(distributions))]
    return pd.DataFrame(
        distributions.reshape(len(distributions), -1).T, index=index, columns=phases
    )
