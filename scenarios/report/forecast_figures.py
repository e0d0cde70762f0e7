"""Figures of the forecast of a run: the outcome beside it, its solver, and how calibrated it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.forecaster.unbiased import certificate_limit
from regretless.scenarios.logs.reading import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.run_data import Run

WINDOW = 30  # rounds of a rolling mean, fewer in a short run


@figure("run")
def forecast(run: Run) -> go.Figure | None:
    """Draw rolling means of each outcome and its drawn label forecast, a panel per coordinate."""
    rounds, forecasts, names = run.table("rounds"), run.table("forecasts"), run.outcome_ends
    if len(rounds) < 2 or "label_0" not in forecasts:
        return None
    drawn = forecasts[forecasts["drawn"]].groupby("round")
    pairs = {"outcome": ("#b0b0b0", 4), "forecast": (theme.VERMILLION, 1.8)}
    panels = {}
    for i, (name, (low, high)) in enumerate(names.items()):
        truth = rounds.set_index("round")[f"y_{i}"]
        panels[name] = [
            rolling(low + (high - low) * curve, word, color=colour, width=width)
            for curve, (word, (colour, width)) in zip(
                (truth, drawn[f"label_{i}"].mean().reindex(truth.index)), pairs.items(), strict=True
            )
        ]
    units = [theme.plain(next(iter(name.split(", ")[1:]), "value")) for name in names]
    made = theme.stacked(panels, each=120, x=f"round; {rolled(len(rounds))}", y=units)
    for row, ends in enumerate(names.values(), 1):
        mode = "normal" if min(ends) < 0 else "nonnegative"  # no axis from -1 on for 0 alone
        made.update_yaxes(rangemode=mode, row=row, col=1)
    return made


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


@figure("run")
def certificates(run: Run) -> go.Figure | None:
    """Draw the sum so far of the positive certificates, against the tolerance."""
    rounds = run.table("rounds")
    if len(rounds) < 2 or rounds["certificate"].isna().all():
        return None
    total = rounds["certificate"].clip(lower=0).fillna(0).cumsum().to_numpy()
    points = thinned(np.arange(len(total)))
    number = rounds["round"].to_numpy()[points]
    allowed = np.array([certificate_limit(int(t) + 1) for t in number])
    solver = theme.line(number, total[points], "duality gaps", color=theme.BLUE, width=2)
    limit = theme.line(number, allowed, "tolerance", color=theme.FAINT, width=1.5, dash="dash")
    return theme.stacked({"": [solver, limit]}, each=220, y="sum of the gaps")


@figure("run")
def calibration(run: Run) -> go.Figure | None:
    """Draw observed against nominal levels, a panel per outcome."""

    def curve(rows: pd.DataFrame, name: str, **style: Any) -> go.Scatter:
        pits = rows.filter(like="pit_").iloc[0].to_numpy(dtype=np.float64)
        shares = np.concatenate([[0.0], pits.cumsum()])
        drawn = theme.line(np.linspace(0, 1, len(shares)), shares, name, **style)
        return drawn.update(hovertemplate="at %{x:.0%}: %{y:.1%}")

    scores = run.table("forecast_scores")
    known = scores.dropna(subset="pit_0") if len(scores) else scores
    return by_source(run, known, curve, ("calibrated", "level of the quantile"))


@figure("run")
def reliability(run: Run) -> go.Figure | None:
    """Draw observed against predicted probabilities, a panel per outcome."""

    def curve(rows: pd.DataFrame, name: str, **style: Any) -> go.Scatter:
        drawn = theme.line(rows["predicted"], rows["observed"], name, **style)
        size = 4 + 16 * np.sqrt(rows["share"].to_numpy())
        return drawn.update(mode="lines+markers", marker={"size": size})

    scores = run.table("forecast_scores")
    known = scores[scores["kind"] == "probability"] if len(scores) else scores
    return by_source(run, known, curve, ("reliable", "predicted probability"))


def by_source(
    run: Run, known: pd.DataFrame, curve: Callable[..., go.Scatter], said: tuple[str, str]
) -> go.Figure | None:
    """Draw a curve per source, which ought to be the diagonal; a panel per outcome and block.

    ``curve`` draws the rows of a source; ``said`` is what the diagonal is called, and the axis.
    """
    if known.empty:
        return None
    panels, several = {}, len(set(known["block"])) > 1
    shades = theme.colours(known["source"].unique())
    names = dict(zip(known["outcome"].unique(), run.goods, strict=False))
    for (outcome, block), own in known.groupby(["outcome", "block"], sort=False):
        even = theme.line([0, 1], [0, 1], said[0], color=theme.FAINT, width=1, dash="dot")
        panels[f"{names.get(outcome, outcome)}{f', {block}' * several}"] = curves = [even]
        for source, rows in own.groupby("source", sort=False):
            style = {"width": 3 if source == "broadcast" else 1.5, "color": shades[source]}
            curves.append(curve(rows, theme.short(str(source)), **style))
    return theme.stacked(panels, each=300, x=said[1], y="share of outcomes")


@figure("run")
def decision_calibration(run: Run) -> go.Figure | None:
    """Draw a dot per cohort and action; None where nobody expects anything."""
    scores = run.table("forecast_scores")
    taken = scores[scores["kind"] == "decision"] if len(scores) else scores
    if taken.empty:
        return None
    ends = taken[["expected_loss", "mean_loss"]].to_numpy()
    style = {"color": theme.FAINT, "width": 1, "dash": "dot"}
    corners = [float(ends.min()), float(ends.max())]
    marks = [theme.line(corners, corners, "calibrated", **style)]
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
        marks.append(dots)
    expected, actual = "expected loss per round", "actual loss per round"
    return theme.stacked({"": marks}, each=380, x=expected, y=actual)
