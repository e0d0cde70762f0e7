"""The page of a training: what attackers extract, how they learned, and what their plans do.

Drawn from the table of attackers, the curve and the files with the best plans, as ``regretless
train`` left them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import drawn, figure
from regretless.scenarios.report.page import charts, legible, page
from regretless.scenarios.training.results import CURVE, TABLE, VACUOUS_CAP, file_of, says_nothing

WINDOW = 32  # runs of the mean in the curve
HEAD = ["cohort", "commitment value", "surplus", "95 % interval", "cap of the attackers tried"]
HEAD += ["cap of any attacker"]
# The table of attackers, the curve, and the file of each best plan.
Training = tuple[pd.DataFrame, pd.DataFrame, list[dict[str, Any]]]
HOW = (
    "The surplus that was found is a lower bound on what an attacker extracts from the cohort. The "
    "cap of the attackers tried is what the swap regret of the judged runs allowed at most. The "
    "cap of any attacker is known before a run, where a theorem applies."
)


def text(folder: Path) -> str:
    """Return the page of a training's folder; UserError if its files cannot be read."""
    with legible(folder, what="what was trained", cure="train again"):
        attackers, curve = (pd.read_csv(folder / name) for name in (TABLE, CURVE))
        files = [folder / file_of(str(name)) for name in attackers["cohort"]]
        best = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
        runs = f"{len(curve) // len(attackers):,} runs of {best[0]['rounds']:,} rounds"
        rows, cells = attackers.to_dict("records"), []
        names = ["value", "surplus", "low", "high", "cap", "certified"]
        for row in rows:
            value, surplus, low, high, *caps = (_number(row[name]) for name in names)
            cells.append([str(row["cohort"]), value, surplus, f"{low} to {high}", *caps])
        figures, scenario = drawn("training", (attackers, curve, best)), best[0]["name"]
        sections = {name: charts(figures, name) for name in ("Learning", "Plans")}
        return page(
            "report.html",
            name=f"Trained against {scenario}",
            title=f"{scenario}, trained attackers",
            sections={"Surplus": [("table", HEAD, cells), ("note", HOW)]} | sections,
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
    cap = f"no attacker takes above {row['certified']:.3f}"
    if np.isnan(row["certified"]):
        cap = "no theorem limits it"
    elif says_nothing(row):
        cap = VACUOUS_CAP.format(row["most"])
    return f"{found} (95 % interval {_number(row['low'])} to {_number(row['high'])}); {cap}."


def _number(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.3f}"


@figure("training", window=WINDOW)
def learned(training: Training) -> go.Figure:
    """Draw the payments of all runs, with what the cohort's attacker could reach."""
    (attackers, curve, _), panels = training, {}
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
def plans(training: Training) -> go.Figure:
    """Draw a map per cohort: a row per outcome (and what was played last), a column per phase."""
    tables = {plan["adversary"]["cohort"]: _map(plan) for plan in training[2]}
    made = theme.slotted({name: list(found.index) for name, found in tables.items()})
    style = {"zmin": 0, "zmax": 1, "colorscale": "Blues", "showscale": False, "xgap": 1, "ygap": 1}
    for row, found in enumerate(tables.values(), 1):
        values = {"z": found.to_numpy(), "x": found.columns, "y": list(range(len(found)))}
        hover = "%{x} of the run: %{z:.3f}<extra></extra>"
        made.add_trace(go.Heatmap(**values, **style, hovertemplate=hover), row=row, col=1)
    return made.update_xaxes(title_text="part of the run", row=len(tables))


def _map(plan: dict[str, Any]) -> pd.DataFrame:
    """Return a plan's probabilities, a row per outcome and a column per phase."""
    adversary = plan["adversary"]
    distributions, support = np.array(adversary["distributions"]), np.array(adversary["support"])
    names = adversary.get("outcome_names") or [f"outcome {k}" for k in range(support.shape[1])]
    words = []
    for row in support:
        pure = row.max() == row.sum() == 1
        words.append(names[row.argmax()] if pure else f"({', '.join(f'{x:g}' for x in row)})")
    cohort = next(c for c in plan["cohort"] if c["name"] == adversary["cohort"])
    known = cohort.get("action_names") or [f"action {s}" for s in range(cohort["actions"])]
    answers = [f", after {word}" for word in known] if distributions.shape[1] > 1 else [""]
    index = [theme.short(word + answer, 40) for answer in answers for word in words]
    phases = [f"{k + 1} / {len(distributions)}" for k in range(len(distributions))]
    return pd.DataFrame(distributions.reshape(len(phases), -1).T, index=index, columns=phases)
