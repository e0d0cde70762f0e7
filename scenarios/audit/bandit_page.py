"""The page of an audit for a regulator: one self-contained HTML file.

It has the four sentences of each verdict, estimates with intervals, overlap, the curve over costs,
and what would have to be known. The tables are complete without scripts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from regretless.market.core.checkpoint import replacing
from regretless.scenarios.audit.bandit_audit import BanditAudit
from regretless.scenarios.audit.bandit_print import (
    MEASURE_WORDS,
    estimate_cells,
    interval_head,
    overlap_cells,
    overlap_heads,
    scale_words,
)
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import draw_figures, figure
from regretless.scenarios.report.page import Part, charts, page

PAGE = "report.html"
MEANING = (
    "Regret is what the best alternative in hindsight would have gained per round. One fixed "
    "action: external regret. Another for each action: swap regret, also called calibrated regret, "
    "among the actions that were taken. Any untried action: pessimistic regret, the greatest that "
    "the log allows if demand does not rise with the price; it is the swap regret where every "
    "action was tried in every round."
)
SOURCES = (
    "Methods: calibrated and plausible regret, Hartline, Long and Zhang (2024), arXiv:2401.15794; "
    "pessimistic regret, Hartline, Wang and Zhang (2025), arXiv:2501.09740."
)
OUT_OF_REACH = (
    "Regret holds fixed what rivals and buyers did: it does not say how they would have answered "
    "other prices. It does not say whether anybody agreed on prices."
)


def page_text(found: BanditAudit, name: str) -> str:
    """Return the page of an audit of the log with this name."""
    figures = draw_figures("audit", found)
    sections: dict[str, list[Part]] = {
        "Verdict": [("table", _VERDICT_HEADS, _verdict_cells(found))],
        "What it means": [],
        "What would have to be known": [],
        "Regret": [],
        "Cost": charts(figures, "Cost"),
        "Overlap": [],
    }
    for agent, sentences in found.texts.items():
        sections["What it means"].append(("head", agent))
        sections["What it means"] += [("line", sentence) for sentence in sentences]
        sections["What would have to be known"].append(("head", agent))
        unknowns = found.unknowns[agent] or ["Nothing that this audit can name."]
        sections["What would have to be known"].append(("bullets", unknowns))
        heads = ["alternative", "estimator", "regret", interval_head(found), "cost"]
        sections["Regret"].append(("head", agent))
        sections["Regret"].append(("table", heads, estimate_cells(found, agent), 2))
        sections["Overlap"].append(("head", agent))
        heads = overlap_heads(found)
        rows = overlap_cells(found, agent)
        if not any(row[-1] for row in rows):  # no probability was logged: there is no deviation
            heads = heads[:-1]
            rows = [row[:-1] for row in rows]
        sections["Overlap"].append(("table", heads, rows))
    sections["Regret"] += [*charts(figures, "Regret"), ("note", MEANING)]
    sections["Overlap"] += charts(figures, "Overlap")
    if not sections["Cost"]:
        del sections["Cost"]
    sections["Scope"] = [("line", OUT_OF_REACH), ("note", SOURCES)]
    verdicts = found.verdicts.to_dict("records")
    return page(
        "report.html",
        name=f"Audit of {name}",
        title=f"{name}, audit",
        facts=f"Regrets are shares of {scale_words(is_price=found.is_price)}.",
        sentences=[f"{row['agent']}: {row['verdict']}." for row in verdicts],
        sections={title: parts for title, parts in sections.items() if parts},
    )


def write_page(found: BanditAudit, name: str, path: Path) -> None:
    """Write the page of an audit in one step."""
    text = page_text(found, name)
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8", newline="\n")


_VERDICT_HEADS = [
    "decision maker",
    "verdict",
    "rounds",
    "regret",
    "interval",
    "threshold",
    "p-value",
    "rounds needed",
    "scale",
    "probabilities",
]


def _verdict_cells(found: BanditAudit) -> list[list[str]]:
    """Return a row of texts for each decision maker."""
    rows = []
    for row in found.verdicts.to_dict("records"):
        needed = "none tells" if np.isinf(row["rounds_needed"]) else f"{row['rounds_needed']:,.0f}"
        rows.append(
            [
                row["agent"],
                row["verdict"],
                f"{row['rounds']:,}",
                f"{row['regret']:.4f}",
                f"{row['low']:.4f} to {row['high']:.4f}",
                f"{row['threshold']:g}",
                f"{row['p_value']:.2g}",
                needed,
                f"{row['scale']:.6g}",
                row["propensities"],
            ]
        )
    return rows


@figure("audit")
def regrets(found: BanditAudit) -> go.Figure:
    """Draw each estimate with its interval, and the threshold, a panel for each decision maker."""
    slots: dict[str, list[str]] = {}
    tables = {}
    for agent, own in found.estimates.groupby("agent", sort=False):
        words = own["measure"].map(MEASURE_WORDS) + ", " + own["estimator"]
        tables[agent] = own
        slots[str(agent)] = [theme.plain(word) for word in words]
    made = theme.make_slotted_panels(slots)
    for row, own in enumerate(tables.values(), 1):
        error = theme.WHISKER | {
            "symmetric": False,
            "array": own["high"] - own["regret"],
            "arrayminus": (own["regret"] - own["low"]).clip(lower=0),
        }
        marks = theme.dots(
            own["regret"],
            list(range(len(own))),
            "%{x:.4f}<extra></extra>",
            marker={"size": 9, "color": theme.BLUE},
            error_x=error,
            showlegend=False,
        )
        made.add_trace(marks, row=row, col=1)
        threshold = float(found.verdicts["threshold"].iloc[0])
        style = {"color": theme.VERMILLION, "width": 1.5, "dash": "dash"}
        made.add_vline(threshold, line=style, row=row, col=1)
    return made.update_xaxes(title_text="regret per round", row=len(tables))


@figure("audit")
def costs(found: BanditAudit) -> go.Figure | None:
    """Draw both regrets over the range of costs; None where every cost is known."""
    panels = {}
    for agent, own in found.costs.groupby("agent", sort=False):
        if len(own) < 2:
            continue
        curves = []
        for measure, colour in (("swap", theme.BLUE), ("pessimistic", theme.VERMILLION)):
            for column, width, dash in (
                ("regret", 2.5, "solid"),
                ("low", 1, "dot"),
                ("high", 1, "dot"),
            ):
                curve = theme.line(
                    own["cost"],
                    own[f"{measure}_{column}"],
                    measure if column == "regret" else f"{measure}, limits",
                    color=colour,
                    width=width,
                    dash=dash,
                )
                hover = curve.hovertemplate.replace("round", "cost")
                curves.append(curve.update(hovertemplate=hover))
        threshold = float(found.verdicts["threshold"].iloc[0])
        ends = own["cost"].iloc[[0, -1]]
        curves.append(
            theme.line(ends, [threshold] * 2, "threshold", color=theme.FAINT, dash="dash")
        )
        panels[agent] = curves
    if not panels:
        return None
    return theme.draw_panels(panels, x="cost", y="regret per round", pixels_per_panel=240)


@figure("audit")
def overlap(found: BanditAudit) -> go.Figure:
    """Draw how often each action was taken, and counted as tried."""
    panels = {}
    for agent, own in found.overlap.groupby("agent", sort=False):
        names = [theme.shorten(name) for name in own["action"]]
        share_taken = own["taken"] / own["taken"].sum()
        hover = "%{x}: %{y:.3f}"
        panels[agent] = [
            go.Bar(
                x=names, y=share_taken, name="taken", marker_color=theme.BLUE, hovertemplate=hover
            ),
            go.Bar(
                x=names, y=own["tried"], name="tried", marker_color=theme.GREEN, hovertemplate=hover
            ),
        ]
    word = "price" if found.is_price else "action"
    made = theme.draw_panels(panels, x=word, y="share of rounds")
    return made.update_xaxes(type="category").update_layout(barmode="group")
