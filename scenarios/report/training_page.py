"""The page of a training: what attackers take at most and surely, how they learned, what they do.

Drawn from the table of attackers, the curve and the files with the best plans, as ``regretless
train`` left them.
"""

from __future__ import annotations

import tomllib
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market.core.errors import UserError
from regretless.scenarios.report import charts
from regretless.scenarios.report.html import cell, page, save, table
from regretless.scenarios.training import CURVE, TABLE, file_of
from regretless.scenarios.training.results import SAYS_NOTHING, says_nothing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WINDOW = 32  # runs of the mean in the curve
HEAD = [
    "cohort",
    "commitment value",
    "found beyond it",
    "95 % interval",
    "cap of the attackers tried",
    "cap of any attacker",
]
CURVES = (
    "What plans were paid while the attacker learned, per round and agent: each dot is a run, the "
    f"line their mean over {WINDOW} runs. The best plan was then judged at seeds of its own."
)
PLANS = (
    "The best plan against each cohort: with which probability the leader chooses each outcome in "
    "each part of the run, and, if it looks, after what was played last."
)
CAPS = (
    "What was found is a lower bound on what an attacker takes from the cohort. The cap of the "
    "attackers tried is what the swap regret of the judged runs allowed at most. The cap of any "
    "attacker is known before a run, and stands where a theorem applies."
)


def write_training_report(folder: Path, target: Path) -> Path:
    """Write the page of a training's folder; UserError if its files cannot be read."""
    try:
        attackers, curve = (pd.read_csv(folder / name) for name in (TABLE, CURVE))
        files = [folder / file_of(str(name)) for name in attackers["cohort"]]
        plans = [tomllib.loads(path.read_text(encoding="utf-8")) for path in files]
        name = str(plans[0]["name"])
        body = "\n".join(_sections(name, attackers, curve, plans))
    except (OSError, ValueError, KeyError, IndexError) as error:
        reason = f"{folder}: what was trained cannot be read: {error}"
        raise UserError(f"{reason.splitlines()[0]}; train again") from error
    return save(page(f"{name}, trained attackers", body, charts.scripts()), target)


def _sections(
    name: str, attackers: pd.DataFrame, curve: pd.DataFrame, plans: list[dict[str, Any]]
) -> Iterator[str]:
    rows: list[dict[Any, Any]] = attackers.to_dict("records")
    yield f"<h1>Trained against {escape(name)}</h1>"
    runs = len(curve) // len(attackers)
    yield f'<p class="note">{runs:,} runs of {plans[0]["rounds"]:,} rounds for each cohort.</p>'
    yield from (f"<p>{escape(sentence(row))}</p>" for row in rows)
    lines = []
    for row in rows:
        cells = (row["value"], row["surplus"], (row["low"], row["high"]), row["cap"])
        told = "".join(cell(_number(number)) for number in (*cells, row["certified"]))
        lines.append(f"<tr>{cell(row['cohort'], left=True)}{told}</tr>")
    yield table(HEAD, lines)
    yield f'<p class="note">{CAPS}</p>'
    yield charts.card(_curves(attackers, curve), "learned", CURVES)
    yield charts.card(_plans(attackers["cohort"], plans), "plans", PLANS)


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


def _curves(attackers: pd.DataFrame, curve: pd.DataFrame) -> go.Figure:
    figure = charts.panels(list(map(charts.heading, attackers["cohort"])), rows=len(attackers))
    for place, row in enumerate(attackers.to_dict("records")):
        own = curve[curve["cohort"] == row["cohort"]]
        ends, value = own["run"].iloc[[0, -1]], row["value"]
        dots = charts.line(own["run"], own["paid"], "a run").update(
            mode="markers", marker={"size": 4, "color": charts.BLUE, "opacity": 0.35}
        )
        smooth = own["paid"].rolling(WINDOW, min_periods=1).mean()
        traces = [dots, charts.line(own["run"], smooth, f"mean of {WINDOW}", color=charts.BLUE)]
        levels = {
            "best plan, other seeds": (value + row["surplus"], charts.GREEN, "solid"),
            "commitment value": (value, charts.FAINT, "dash"),
            "cap of any attacker": (value + row["certified"], charts.VERMILLION, "dash"),
        }
        for word, (level, colour, dash) in levels.items():
            traces.append(charts.line(ends, [level] * 2, word, color=colour, dash=dash))
        for trace in traces:
            words = trace.hovertemplate.replace("round", "run")
            trace.update(showlegend=place == 0, legendgroup=trace.name, hovertemplate=words)
            figure.add_trace(trace, row=place + 1, col=1)
    figure.update_xaxes(title_text="run", row=len(attackers))
    return figure.update_yaxes(title_text="paid")


def _plans(cohorts: pd.Series[Any], plans: list[dict[str, Any]]) -> go.Figure:
    """Draw a map per cohort: a row per outcome (and what was played last), a column per phase."""
    tables = {str(name): _map(plan) for name, plan in zip(cohorts, plans, strict=True)}
    figure = charts.slotted({name: list(found.index) for name, found in tables.items()})
    for place, found in enumerate(tables.values(), 1):
        heat = go.Heatmap(
            z=found.to_numpy(),
            x=found.columns,
            y=list(range(len(found))),
            zmin=0,
            zmax=1,
            colorscale="Blues",
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate="%{x} of the run: %{z:.3f}<extra></extra>",
        )
        figure.add_trace(heat, row=place, col=1)
    return figure.update_xaxes(title_text="part of the run", row=len(tables))


def _map(plan: dict[str, Any]) -> pd.DataFrame:
    """Return a plan's probabilities, a row per outcome and a column per phase."""
    adversary = plan["adversary"]
    laws, support = np.array(adversary["laws"]), np.array(adversary["support"])
    names = adversary.get("outcome_names") or [f"outcome {k}" for k in range(support.shape[1])]
    pure = (np.sort(support, 1)[:, -1] == 1) & (support.sum(1) == 1)
    words = [
        names[row.argmax()] if one else f"({', '.join(f'{x:g}' for x in row)})"
        for row, one in zip(support, pure, strict=True)
    ]
    cohort = next(c for c in plan["cohort"] if c["name"] == adversary["cohort"])
    known = cohort.get("action_names") or [f"action {s}" for s in range(cohort["actions"])]
    answers = [f", after {word}" for word in known] if laws.shape[1] > 1 else [""]
    index = [charts.short(word + told, 40) for told in answers for word in words]
    phases = [f"{k + 1} / {len(laws)}" for k in range(len(laws))]
    return pd.DataFrame(laws.reshape(len(laws), -1).T, index=index, columns=phases)
