"""What listening was worth, on the page of a run: in words, as a figure and as a table.

Drawn from the table ``verdict``: every alternative that a cohort had, which is a model, a policy or
each agent's own best fixed action, against the broadcast.
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
    "What listening was worth per round, mean over the agents of a cohort in their own units, "
    "against every alternative: right of the line the broadcast served them better; with a dot on "
    "the left they would have been better off. Bars are 95 % intervals (models), for "
    "outcomes that keep their nature."
)
HEAD = ["cohort", "alternative", "mean loss", "worth a round", "better off with it"]


def compared(tables: Tables) -> pd.DataFrame:
    """Return the verdict on cohorts that are compared with models; empty without any."""
    verdict = tables.get("verdict")
    if verdict is None or verdict.empty:
        return pd.DataFrame()
    with_models = verdict.loc[verdict["kind"] == "model", "cohort"].unique()
    return verdict[verdict["cohort"].isin(with_models)]


def section(manifest: dict[str, Any], tables: Tables) -> Iterator[str]:
    """Yield a cohort's sentence each, how long bases stood, the figure and the table."""
    verdict = compared(tables)
    if verdict.empty:
        return
    yield "<h2>Was it worth listening?</h2>"
    for line in sentences(verdict, tables["agents"]):
        yield f'<p class="claim">{escape(line)}.</p>'
    base = manifest["config"].get("forecaster", {}).get("base", {}).get("kind", "a base")
    for block in manifest.get("blocks", []):
        if "trust_lost" in block:  # as no run before it was noted
            line = stood(block["name"], base, block["kept"], block["trust_lost"])
            yield f'<p class="note">{escape(line)}.</p>'
    yield charts.card(figure(verdict), "verdict", CAPTION)
    yield table([*HEAD, "listening is worth"], list(_rows(verdict)), left=2)


def figure(verdict: pd.DataFrame) -> go.Figure:
    """Draw a panel per cohort, the alternative that serves it best on top."""
    cohorts = {
        name: rows[rows["kind"] != "broadcast"].sort_values("gain", kind="stable")
        for name, rows in verdict.groupby("cohort", sort=False)
    }
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
    return drawn.update_xaxes(title_text="listening is worth, a round", row=len(cohorts))


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
        hovertemplate="%{text}<br>listening is worth %{x:+.3g}<extra></extra>",
    )


def _rows(verdict: pd.DataFrame) -> Iterator[str]:
    """Yield a line per alternative: two cells of words, then numbers."""
    for row in lines(verdict):
        told = [cell(text, left=place < 2) for place, text in enumerate(row)]
        yield f"<tr>{''.join(told)}</tr>"
