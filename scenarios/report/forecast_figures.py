"""Figures of the forecast of a run: the outcome beside it, its solver, and how calibrated it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.forecaster.tolerance import slack_limit
from regretless.scenarios.logs.curves import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.run_data import Run
from regretless.scenarios.report.run_figures import FORECAST

WINDOW = 30  # rounds of a rolling mean, fewer in a short run


@figure(
    "run",
    "forecast",
    section=FORECAST,
    dated=True,
    title="Forecast and realised outcome, rolling means",
    caption=(
        "The forecast is the outcome that belongs to the drawn prediction; where losses are "
        "curved, a steady gap is no error."
    ),
)
def forecast(run: Run) -> go.Figure | None:
    """Draw rolling means of each outcome and its drawn label forecast, a panel per coordinate."""
    rounds, forecasts, names = run.table("rounds"), run.table("forecasts"), run.outcome_ends
    if len(rounds) < 2 or "label_0" not in forecasts:
        return None
    labels = [f"label_{i}" for i in range(len(names))]
    said = forecasts[forecasts["drawn"]].groupby("round")[labels].mean()
    truth = rounds.set_index("round")[[f"y_{i}" for i in range(len(names))]]
    made = theme.panels(list(map(theme.heading, names)), rows=len(names), each=120)
    pairs = {"outcome": ("#b0b0b0", 4), "forecast": (theme.VERMILLION, 1.8)}
    for row, (low, high) in enumerate(names.values(), 1):
        curves = truth.iloc[:, row - 1], said[labels[row - 1]].reindex(truth.index)
        for (word, (colour, width)), curve in zip(pairs.items(), curves, strict=True):
            drawn = rolling(low + (high - low) * curve, word, color=colour, width=width)
            made.add_trace(drawn.update(legendgroup=word, showlegend=row == 1), row=row, col=1)
        mode = "normal" if min(low, high) < 0 else "nonnegative"  # no axis from -1 on for 0 alone
        unit = next(iter(list(names)[row - 1].split(", ")[1:]), "value")
        made.update_yaxes(rangemode=mode, title_text=theme.plain(unit), row=row, col=1)
    return made.update_xaxes(title_text=f"round; {rolled(len(rounds))}", row=len(names))


def rolling(curve: pd.Series[float], name: str, **style: Any) -> go.Scatter:
    """Draw the rolling mean of a column that is indexed by round, over the rounds with a value."""
    points = thinned(curve.index.to_numpy())
    window = _window(len(curve))
    means = curve.rolling(window, min_periods=1).mean().where(np.arange(len(curve)) >= window - 1)
    return theme.line(points, means[points], name, **style)


def rolled(rounds: int) -> str:
    """Say over what a rolling mean goes."""
    window = _window(rounds)
    return f"means of the last {window} rounds" if window > 1 else "values as they are"


def _window(rounds: int) -> int:
    return max(1, min(WINDOW, rounds // 5))


@figure(
    "run",
    "certificates",
    section=FORECAST,
    dated=True,
    title="Duality gaps of the rounds' games, summed so far",
    caption=(
        "Sum of the positive certificates; below the dashed line they are within the tolerance "
        "that the bounds allow for."
    ),
)
def certificates(run: Run) -> go.Figure | None:
    """Draw the sum so far of the positive certificates, against the tolerance."""
    rounds = run.table("rounds")
    if len(rounds) < 2 or rounds["certificate"].isna().all():
        return None
    total = rounds["certificate"].clip(lower=0).fillna(0).cumsum().to_numpy()
    points = thinned(np.arange(len(total)))
    number = rounds["round"].to_numpy()[points]
    allowed = np.array([slack_limit(int(t) + 1) for t in number])
    solver = theme.line(number, total[points], "duality gaps", color=theme.BLUE, width=2)
    limit = theme.line(number, allowed, "tolerance", color=theme.FAINT, width=1.5, dash="dash")
    made = theme.panels(each=220).add_traces([solver, limit], rows=1, cols=1)
    theme.hold(made, 1, *made.data)
    theme.name_at_ends(made, 220)
    made.update_xaxes(title_text="round")
    return made.update_yaxes(title_text="sum of the gaps")


@figure(
    "run",
    "calibration",
    section=FORECAST,
    title="Share of outcomes below each quantile of the forecast",
    caption=(
        "On the diagonal the share of outcomes below a quantile equals its level; the "
        "distribution is the label forecast with its own past errors."
    ),
)
def calibration(run: Run) -> go.Figure | None:
    """Draw observed against nominal levels, a panel per outcome."""
    scores = run.table("forecast_scores")
    known = scores.dropna(subset="pit_0") if len(scores) else scores
    if known.empty:
        return None
    names = dict(zip(known["outcome"].unique(), run.goods, strict=False))
    shades = theme.colours(known["source"].unique())
    made = theme.panels(
        [str(names.get(name, name)) for name in known["outcome"].unique()],
        rows=len(known["outcome"].unique()),
        each=300,
    )
    levels = np.linspace(0, 1, len(known.filter(like="pit_").columns) + 1)
    for row, (_, own) in enumerate(known.groupby("outcome", sort=False), 1):
        even = theme.line(levels, levels, "calibrated", color=theme.FAINT, width=1, dash="dot")
        made.add_trace(even.update(showlegend=row == 1), row=row, col=1)
        for source, pits in own.set_index("source").filter(like="pit_").iterrows():
            shares = np.concatenate([[0.0], pits.to_numpy(dtype=np.float64).cumsum()])
            style = {"width": 3 if source == "broadcast" else 1.5, "color": shades[source]}
            curve = theme.line(levels, shares, theme.short(str(source)), **style)
            told = "at %{x:.0%}: %{y:.1%}"
            made.add_trace(curve.update(showlegend=row == 1, hovertemplate=told), row=row, col=1)
    theme.grow(made, len(shades) + 1)
    made.update_yaxes(title_text="share of outcomes")
    return made.update_xaxes(title_text="level of the quantile", row=len(names))


@figure(
    "run",
    "reliability",
    section=FORECAST,
    title="Reliability of the probability that an outcome is above its median",
    caption=(
        "On the diagonal, the outcome was above its median as often as the forecast said; a dot "
        "per tenth of probability, its size the number of rounds."
    ),
)
def reliability(run: Run) -> go.Figure | None:
    """Draw observed against predicted probabilities, a panel per outcome."""
    scores = run.table("forecast_scores")
    told = scores[scores["kind"] == "probability"] if len(scores) else scores
    if told.empty:
        return None
    outcomes, shades = told["outcome"].unique(), theme.colours(told["source"].unique())
    names = dict(zip(outcomes, run.goods, strict=False))
    made = theme.panels([str(names.get(n, n)) for n in outcomes], rows=len(outcomes), each=300)
    for row, outcome in enumerate(outcomes, 1):
        even = theme.line([0, 1], [0, 1], "reliable", color=theme.FAINT, width=1, dash="dot")
        made.add_trace(even.update(showlegend=row == 1), row=row, col=1)
        for source, own in told[told["outcome"] == outcome].groupby("source", sort=False):
            style = {"width": 3 if source == "broadcast" else 1.5, "color": shades[source]}
            curve = theme.line(own["predicted"], own["observed"], theme.short(str(source)), **style)
            size = 4 + 16 * np.sqrt(own["share"].to_numpy())
            curve.update(mode="lines+markers", marker={"size": size}, showlegend=row == 1)
            made.add_trace(curve, row=row, col=1)
    theme.grow(made, len(shades) + 1)
    made.update_yaxes(title_text="share of outcomes")
    return made.update_xaxes(title_text="predicted probability", row=len(outcomes))


@figure(
    "run",
    "decision_calibration",
    section=FORECAST,
    title="Expected and actual loss of each action, when it was taken",
    caption=(
        "A dot per cohort and action, its size how often the action was taken; on the diagonal "
        "agents had the loss that they expected."
    ),
)
def decision_calibration(run: Run) -> go.Figure | None:
    """Draw a dot per cohort and action; None where nobody expects anything."""
    scores = run.table("forecast_scores")
    taken = scores[scores["kind"] == "decision"] if len(scores) else scores
    if taken.empty:
        return None
    made, ends = theme.panels(each=380), taken[["expected_loss", "mean_loss"]].to_numpy()
    corners = [float(ends.min()), float(ends.max())]
    style = {"color": theme.FAINT, "width": 1, "dash": "dot"}
    made.add_trace(theme.line(corners, corners, "calibrated", **style))
    for cohort, own in taken.groupby("cohort", sort=False):
        called = dict(enumerate(run.action_names.get(str(cohort), ())))
        dots = go.Scatter(
            x=own["expected_loss"].to_numpy(),
            y=own["mean_loss"].to_numpy(),
            text=[called.get(int(which), f"action {which}") for which in own["action"]],
            name=theme.short(cohort),
            mode="markers",
            marker={"color": run.shades[cohort], "size": 6 + 20 * np.sqrt(own["share"].to_numpy())},
            hovertemplate="%{text}<br>expected %{x:.4f}, had %{y:.4f}",
        )
        made.add_trace(dots)
    made.update_xaxes(title_text="expected loss per round")
    return made.update_yaxes(title_text="actual loss per round")
