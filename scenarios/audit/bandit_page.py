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
    action_noun,
    estimate_cells,
    estimate_heads,
    overlap_cells,
    overlap_heads,
    scale_words,
)
from regretless.scenarios.audit.explanation import MOST_ROUNDS
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import draw_figures, figure
from regretless.scenarios.report.page import Part, charts, page, table_part

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


def page_text(audit: BanditAudit, name: str) -> str:
    """Return the page of an audit of the log with this name."""
    figures = draw_figures("audit", audit)
    sections: dict[str, list[Part]] = {
        "Verdict": [table_part(_VERDICT_HEADS, _verdict_cells(audit))],
        "What it means": [],
        "What would have to be known": [],
        "Regret": [],
        "Cost": charts(figures, "Cost"),
        "Overlap": [],
    }
    for agent, sentences in audit.texts.items():
        sections["What it means"].append(Part("head", agent))
        lines = [*audit.notes[agent], *sentences]
        sections["What it means"] += [Part("line", line) for line in lines]
        sections["What would have to be known"].append(Part("head", agent))
        unknowns = audit.unknowns[agent] or ["Nothing that this audit can name."]
        sections["What would have to be known"].append(Part("bullets", unknowns))
        heads = estimate_heads(audit)
        cells = [row[: len(heads)] for row in estimate_cells(audit, agent)]
        sections["Regret"].append(Part("head", agent))
        sections["Regret"].append(table_part(heads, cells, n_text_columns=2))
        sections["Overlap"].append(Part("head", agent))
        sections["Overlap"].append(_overlap_part(audit, agent))
    sections["Regret"] += [*charts(figures, "Regret"), Part("note", MEANING)]
    sections["Overlap"] += charts(figures, "Overlap")
    sections["Scope"] = [Part("line", OUT_OF_REACH), Part("note", SOURCES)]
    verdicts = audit.verdicts.to_dict("records")
    return page(
        "report.html",
        name=f"Audit of {name}",
        title=f"{name}, audit",
        facts=f"Regrets are shares of {scale_words(is_price=audit.is_price)}.",
        sentences=[f"{row['agent']}: {row['verdict']}." for row in verdicts],
        sections={title: parts for title, parts in sections.items() if parts},
    )


def _overlap_part(audit: BanditAudit, agent: str) -> Part:
    """Return the table of overlap, without a column that has no value."""
    heads = overlap_heads(audit)
    cells = overlap_cells(audit, agent)
    if not any(row[-1] for row in cells):  # no probability was logged: there is no deviation
        heads = heads[:-1]
        cells = [row[:-1] for row in cells]
    return table_part(heads, cells)


def write_page(audit: BanditAudit, name: str, path: Path) -> None:
    """Write the page of an audit in one step."""
    text = page_text(audit, name)
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


def _verdict_cells(audit: BanditAudit) -> list[list[str]]:
    """Return a row of texts for each decision maker."""
    cells = []
    for row in audit.verdicts.to_dict("records"):
        needed = f"{row['rounds_needed']:,.0f}"
        if np.isinf(row["rounds_needed"]):
            needed = "none tells"
        elif row["rounds_needed"] > MOST_ROUNDS:
            needed = f"more than {MOST_ROUNDS:,}"
        cells.append(
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
    return cells


@figure("audit")
def regrets(audit: BanditAudit) -> go.Figure:
    """Draw each estimate with its interval, and the threshold, a panel for each decision maker."""
    slots: dict[str, list[str]] = {}
    estimates_of_agent = {}
    for agent, estimates in audit.estimates.groupby("agent", sort=False):
        labels = estimates["measure"].map(MEASURE_WORDS) + ", " + estimates["estimator"]
        estimates_of_agent[agent] = estimates
        slots[str(agent)] = [theme.plain(label) for label in labels]
    chart = theme.make_slotted_panels(slots)
    for row, estimates in enumerate(estimates_of_agent.values(), 1):
        whiskers = theme.WHISKER | {
            "symmetric": False,
            "array": estimates["high"] - estimates["regret"],
            "arrayminus": (estimates["regret"] - estimates["low"]).clip(lower=0),
        }
        marks = theme.dots(
            estimates["regret"],
            list(range(len(estimates))),
            "%{x:.4f}<extra></extra>",
            marker={"size": 9, "color": theme.BLUE},
            error_x=whiskers,
            showlegend=False,
        )
        chart.add_trace(marks, row=row, col=1)
        threshold = float(audit.verdicts["threshold"].iloc[0])
        style = {"color": theme.VERMILLION, "width": 1.5, "dash": "dash"}
        chart.add_vline(threshold, line=style, row=row, col=1)
    return chart.update_xaxes(title_text="regret per round", row=len(slots))


@figure("audit")
def costs(audit: BanditAudit) -> go.Figure | None:
    """Draw both regrets over the range of costs; None where every cost is known."""
    panels = {}
    for agent, curve in audit.costs.groupby("agent", sort=False):
        if len(curve) < 2:
            continue
        lines = []
        for measure, colour in (("swap", theme.BLUE), ("pessimistic", theme.VERMILLION)):
            for column, width, dash in (
                ("regret", 2.5, "solid"),
                ("low", 1, "dot"),
                ("high", 1, "dot"),
            ):
                line = theme.line(
                    curve["cost"],
                    curve[f"{measure}_{column}"],
                    measure if column == "regret" else f"{measure}, limits",
                    color=colour,
                    width=width,
                    dash=dash,
                )
                hover = line.hovertemplate.replace("round", "cost")
                lines.append(line.update(hovertemplate=hover))
        threshold = float(audit.verdicts["threshold"].iloc[0])
        first_and_last = curve["cost"].iloc[[0, -1]]
        lines.append(
            theme.line(first_and_last, [threshold] * 2, "threshold", color=theme.FAINT, dash="dash")
        )
        panels[agent] = lines
    if not panels:
        return None
    return theme.draw_panels(panels, x="cost", y="regret per round", pixels_per_panel=240)


@figure("audit")
def overlap(audit: BanditAudit) -> go.Figure:
    """Draw how often each action was taken, and counted as tried."""
    panels = {}
    for agent, actions in audit.overlap.groupby("agent", sort=False):
        names = [theme.shorten(name) for name in actions["action"]]
        share_taken = actions["taken"] / actions["taken"].sum()
        hover = "%{x}: %{y:.3f}"
        panels[agent] = [
            go.Bar(
                x=names, y=share_taken, name="taken", marker_color=theme.BLUE, hovertemplate=hover
            ),
            go.Bar(
                x=names,
                y=actions["tried"],
                name="tried",
                marker_color=theme.GREEN,
                hovertemplate=hover,
            ),
        ]
    chart = theme.draw_panels(panels, x=action_noun(audit), y="share of rounds")
    return chart.update_xaxes(type="category").update_layout(barmode="group")
