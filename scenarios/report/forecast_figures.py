"""Figures of a run's forecast: what was broadcast, how well it was calibrated, certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.forecaster.unbiased import certificate_limit
from regretless.scenarios.logs.reading import thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Run, figure

WINDOW_ROUNDS = 30  # of a rolling mean, fewer in a short run
OUTCOME_COLOUR = "#b0b0b0"


@figure("run")
def forecast(run: Run) -> go.Figure | None:
    """Draw rolling means of each outcome and its drawn label forecast, a panel per coordinate."""
    rounds = run.table("rounds")
    forecasts = run.table("forecasts")
    if len(rounds) < 2 or "label_0" not in forecasts:
        return None
    data = run.config.get("data") or run.config.get("adversary") or {}
    scales = data.get("scale", {})
    units = data.get("units", {})
    drawn_forecasts = forecasts[forecasts["drawn"]].groupby("round")
    panels: dict[str, list[go.Scatter]] = {}
    axis_names = []
    range_modes = []
    for index, name in enumerate(run.goods):
        # what 0 and 1 stand for, in the data's own units
        low, high = scales.get(name, (0.0, 1.0))
        outcome = rounds.set_index("round")[f"y_{index}"]
        label = drawn_forecasts[f"label_{index}"].mean().reindex(outcome.index)
        title = f"{name}, {units[name]}" if name in units else name
        panels[title] = [
            draw_rolling_mean(
                low + (high - low) * outcome, "outcome", color=OUTCOME_COLOUR, width=4
            ),
            draw_rolling_mean(
                low + (high - low) * label, "forecast", color=theme.VERMILLION, width=1.8
            ),
        ]
        axis_names.append(theme.plain(units.get(name, "value")))
        # Plotly would begin at -1 where all is 0
        range_modes.append("normal" if min(low, high) < 0 else "nonnegative")
    rounds_name = f"round; {describe_rolling_mean(len(rounds))}"
    chart = theme.draw_panels(panels, pixels_per_panel=120, x=rounds_name, y=axis_names)
    for panel, range_mode in enumerate(range_modes, start=1):
        chart.update_yaxes(rangemode=range_mode, row=panel, col=1)
    return chart


def draw_rolling_mean(curve: pd.Series[float], name: str, **style: Any) -> go.Scatter:
    """Draw the rolling mean of a column that is indexed by round, over the rounds with a value."""
    points = thinned(curve.index.to_numpy())
    window = max(1, min(WINDOW_ROUNDS, len(curve) // 5))
    means = curve.rolling(window, min_periods=1).mean()
    is_whole_window = np.arange(len(curve)) >= window - 1
    return theme.line(points, means.where(is_whole_window)[points], name, **style)


def describe_rolling_mean(n_rounds: int) -> str:
    """Say over what a rolling mean goes."""
    window = min(WINDOW_ROUNDS, n_rounds // 5)
    return f"means of the last {window} rounds" if window > 1 else "values as they are"


@figure("run")
def certificates(run: Run) -> go.Figure | None:
    """Draw the sum so far of the positive certificates, against the tolerance."""
    rounds = run.table("rounds")
    if len(rounds) < 2 or rounds["certificate"].isna().all():
        return None
    sum_so_far = rounds["certificate"].clip(lower=0).fillna(0).cumsum().to_numpy()
    points = thinned(np.arange(len(sum_so_far)))
    drawn_rounds = rounds["round"].to_numpy()[points]
    limits = [certificate_limit(int(round_index) + 1) for round_index in drawn_rounds]
    curves = [
        theme.line(drawn_rounds, sum_so_far[points], "duality gaps", color=theme.BLUE, width=2),
        theme.line(drawn_rounds, limits, "tolerance", color=theme.FAINT, width=1.5, dash="dash"),
    ]
    return theme.draw_panels({"": curves}, pixels_per_panel=220, y="sum of the gaps")


@figure("run")
def calibration(run: Run) -> go.Figure | None:
    """Draw observed against nominal levels, a panel per outcome."""
    scores = run.table("forecast_scores")
    if scores.empty:
        return None
    return _draw_by_source(
        run,
        scores.dropna(subset="pit_0"),
        _calibration_curve,
        diagonal_name="calibrated",
        axis_name="level of the quantile",
    )


def _calibration_curve(rows: pd.DataFrame, name: str, **style: Any) -> go.Scatter:
    """Draw the share of outcomes below each quantile of the forecast."""
    shares_of_bins = rows.filter(like="pit_").iloc[0].to_numpy(dtype=np.float64)
    shares_below = np.concatenate([[0.0], shares_of_bins.cumsum()])
    curve = theme.line(np.linspace(0, 1, len(shares_below)), shares_below, name, **style)
    return curve.update(hovertemplate="at %{x:.0%}: %{y:.1%}")


@figure("run")
def reliability(run: Run) -> go.Figure | None:
    """Draw observed against predicted probabilities, a panel per outcome."""
    scores = run.table("forecast_scores")
    if scores.empty:
        return None
    return _draw_by_source(
        run,
        scores[scores["kind"] == "probability"],
        _reliability_curve,
        diagonal_name="reliable",
        axis_name="predicted probability",
    )


def _reliability_curve(rows: pd.DataFrame, name: str, **style: Any) -> go.Scatter:
    """Draw what was observed where each probability was predicted, the larger the more often."""
    curve = theme.line(rows["predicted"], rows["observed"], name, **style)
    sizes = 4 + 16 * np.sqrt(rows["share"].to_numpy())
    return curve.update(mode="lines+markers", marker={"size": sizes})


def _draw_by_source(
    run: Run,
    scores: pd.DataFrame,
    draw_curve: Callable[..., go.Scatter],
    *,
    diagonal_name: str,
    axis_name: str,
) -> go.Figure | None:
    """Draw a panel per outcome with a curve per source of forecasts, which ought to be diagonal.

    Of several blocks each has its broadcast, and the first one stands for the models.
    """
    if scores.empty:
        return None
    blocks = scores["block"].unique()
    is_broadcast = scores["source"] == "broadcast"
    is_drawn = is_broadcast | (scores["block"] == blocks[0])
    titles = scores["source"].astype(str)
    if len(blocks) > 1:
        titles = titles.mask(is_broadcast, "broadcast, " + scores["block"].astype(str))
    drawn_scores = scores.assign(title=titles)[is_drawn]
    colour_of = theme.assign_colours(drawn_scores["title"].unique())
    good_of_outcome = dict(zip(drawn_scores["outcome"].unique(), run.goods, strict=False))
    panels: dict[Any, list[go.Scatter]] = {}
    for outcome, outcome_rows in drawn_scores.groupby("outcome", sort=False):
        diagonal = theme.line([0, 1], [0, 1], diagonal_name, color=theme.FAINT, width=1, dash="dot")
        curves = [diagonal]
        for title, rows in outcome_rows.groupby("title", sort=False):
            width = 3 if title == "broadcast" else 1.5
            name = theme.shorten(title)
            curves.append(draw_curve(rows, name, width=width, color=colour_of[title]))
        panels[good_of_outcome.get(outcome, outcome)] = curves
    return theme.draw_panels(panels, pixels_per_panel=300, x=axis_name, y="share of outcomes")


@figure("run")
def decision_calibration(run: Run) -> go.Figure | None:
    """Draw a dot per cohort and action; None where nobody expects anything."""
    scores = run.table("forecast_scores")
    if scores.empty:
        return None
    decisions = scores[scores["kind"] == "decision"]
    if decisions.empty:
        return None
    losses = decisions[["expected_loss", "mean_loss"]].to_numpy()
    loss_range = [float(np.min(losses)), float(np.max(losses))]
    marks = [
        theme.line(loss_range, loss_range, "calibrated", color=theme.FAINT, width=1, dash="dot")
    ]
    for cohort, rows in decisions.groupby("cohort", sort=False):
        dots = theme.dots(
            rows["expected_loss"].to_numpy(),
            rows["mean_loss"].to_numpy(),
            "%{text}<br>expected %{x:.4f}, had %{y:.4f}",
        )
        dots.update(
            marker={
                "color": run.colour_of[cohort],
                "size": 6 + 20 * np.sqrt(rows["share"].to_numpy()),
            },
            text=[run.action_name(cohort, int(action)) for action in rows["action"]],
            name=theme.shorten(cohort),
        )
        marks.append(dots)
    return theme.draw_panels(
        {"": marks},
        pixels_per_panel=380,
        x="expected loss per round",
        y="actual loss per round",
    )
