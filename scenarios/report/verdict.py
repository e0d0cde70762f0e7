"""What agents did beside what else they could have done, on the page of a run: figure and table.

Drawn from the table ``verdict``: every alternative that a cohort had, which is a model, a policy or
each agent's own best fixed action.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.scenarios.report import charts
from regretless.scenarios.report.html import cell, table
from regretless.scenarios.report.run_figures import Tables
from regretless.scenarios.verdict import KINDS, lines, sentences, stood

COLOURS = {"model": charts.BLUE, "policy": charts.VERMILLION, "action": charts.GREEN}
CAPTION = (
    "What they did against every alternative: by how much it was worth more per round, mean over "
    "the agents of a cohort in their own units. Right of the line they did better as they did; "
    "with a dot on the left they would have been better off. Bars are 95 % intervals (models), for "
    "outcomes that keep their nature. Outcomes are taken as they came."
)
ALONE = (
    'No models were compared. Under kind = "decision-swap", models = ["panel"] in [forecaster] '
    "compares seven, and protects against each."
)
HEAD = ["cohort", "alternative", "mean loss", "worth a round", "better off with it"]


def told(tables: Tables) -> list[str]:
    """Return the sentences on every cohort, from the tables of the run."""
    verdict = tables.get("verdict", pd.DataFrame())
    return [] if verdict.empty else list(sentences(verdict, tables["agents"]))


def section(manifest: dict[str, Any], tables: Tables) -> Iterator[str]:
    """Yield how long bases stood, the figure and the table."""
    verdict = tables.get("verdict")
    if verdict is None or verdict.empty:
        return
    yield "<h2>What else they could have done</h2>"
    notes = [] if (verdict["kind"] == "model").any() else [ALONE]
    base = manifest["config"].get("forecaster", {}).get("base", {}).get("kind", "a base")
    notes += [
        f"{stood(block['name'], base, block['kept'], block['trust_lost'])}."
        for block in manifest.get("blocks", [])
        if "trust_lost" in block  # as no run before it was noted
    ]
    yield from (f'<p class="note">{escape(line)}</p>' for line in notes)
    drawn = figure(verdict)
    if drawn is not None:
        yield charts.card(drawn, "verdict", CAPTION)
    yield table([*HEAD, "what they did is worth"], list(_rows(verdict)), left=2)


def figure(verdict: pd.DataFrame) -> go.Figure | None:
    """Draw a panel per cohort, the alternative that serves it best on top; None with one each."""
    cohorts = {
        name: rows[rows["kind"] != "broadcast"].sort_values("gain", kind="stable")
        for name, rows in verdict.groupby("cohort", sort=False)
        if len(rows) > 2
    }
    if not cohorts:
        return None
    slots = {name: list(map(_named, _records(rows))) for name, rows in cohorts.items()}
    drawn = charts.slotted(slots, shared_xaxes=False)
    seen = set[str]()
    for row, rows in enumerate(cohorts.values(), 1):
        places = np.arange(len(rows))
        for kind in [kind for kind in COLOURS if (rows["kind"] == kind).any()]:
            chosen = (rows["kind"] == kind).to_numpy()
            marks = _marks(rows[chosen], places[chosen], kind)
            drawn.add_trace(marks.update(showlegend=kind not in seen), row=row, col=1)
            seen.add(kind)
        drawn.add_vline(0, line={"color": charts.INK, "width": 1}, row=row, col=1)
    drawn.update_xaxes(nticks=5, tickangle=0)
    return drawn.update_xaxes(title_text="what they did is worth, a round", row=len(cohorts))


def _records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(key): value for key, value in row.items()} for row in rows.to_dict("records")]


def _named(row: dict[str, Any]) -> str:
    return charts.short("best fixed action" if row["kind"] == "action" else row["name"])


def _marks(rows: pd.DataFrame, places: Any, kind: str) -> go.Scatter:
    """Draw the alternatives of a kind, with their intervals where they are known."""
    told = [
        f"{_named(row)}<br>mean loss {row['mean_loss']:.4f}, worth {row['worth']:.4g} a round<br>"
        f"{row['better_off']} of {row['agents']} better off with it"
        for row in _records(rows)
    ]
    halves = rows["gain_half"].fillna(0.0).to_numpy(dtype=np.float64)
    return go.Scatter(
        x=rows["gain"].to_numpy(dtype=np.float64),
        y=places,
        error_x={"type": "data", "array": halves, "thickness": 1.5, "width": 4},
        text=told,
        name=KINDS[kind],
        legendgroup=kind,
        mode="markers",
        marker={"color": COLOURS[kind], "size": 8},
        hovertemplate="%{text}<br>what they did is worth %{x:+.3g}<extra></extra>",
    )


def _rows(verdict: pd.DataFrame) -> Iterator[str]:
    """Yield a line per alternative: two cells of words, then numbers."""
    for row in lines(verdict):
        told = [cell(text, left=place < 2) for place, text in enumerate(row)]
        yield f"<tr>{''.join(told)}</tr>"
