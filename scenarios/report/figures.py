"""Figures of one run, each drawn from the tables of its run directory.

    regret_over_time          per cohort: mean over the agents, and the worst agent, round by round
    regret_spread             per cohort: swap and decision swap regret of every agent at the end
    forecast_against_outcome  per outcome: rolling means of the drawn label forecast and the truth
    certificates              what the forecaster's solver left open, added up, and its tolerance

Figures are plain objects without global state; ``styled`` fixes the settings they are made under,
so the same tables give the same drawing. A function returns None where the tables lack what it
would show.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib import style
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from regretless.scenarios.logs.curves import regret_curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Tables = Mapping[str, pd.DataFrame]

# Okabe and Ito's palette, told apart with any common colour vision; the faint yellow comes last.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000", "#F0E442")
INK, FAINT = "#333333", "#8a8a8a"
WIDTH = 9.0  # inches
MOST_POINTS = 1500  # of a curve; longer ones are thinned evenly
WINDOW = 30  # rounds of a rolling mean, fewer in a short run
FAR = 1.5  # a bound this many times the axis's end is put in words
DEPTH = 3000  # what lies further below the top of a logarithmic axis is cut off
TOLERANCE = 0.1  # the solver's, in units of sqrt(rounds)
MEASURES = {"swap_regret": "swap regret", "decision_swap_regret": "decision swap regret"}
STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "regretless",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "ytick.color": INK,
}


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save under this module's settings, whatever the user's are; they come back after."""
    with style.context(STYLE, after_reset=True):
        yield


def svg(figure: Figure, name: str) -> str:
    """Write a figure as an SVG element that can stand in a page beside others.

    Parameters
    ----------
    figure : Figure
    name : str
        Unique within the page; put before every id of the drawing.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with warnings.catch_warnings():  # text stays text: the reader's fonts decide
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata=nothing)
    markup = buffer.getvalue()
    return re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{name}-", markup[markup.index("<svg") :])


def leading_regret(frame: pd.DataFrame) -> pd.Series[float]:
    """Decision swap regret of each row, swap regret where the first was not kept."""
    return frame["decision_swap_regret"].fillna(frame["swap_regret"])


def regret_over_time(tables: Tables) -> Figure | None:
    """Draw the running regret: each cohort's mean as a line, its worst agent as a thinner one."""
    curves, agents = tables.get("regret_curves"), tables["agents"]
    if curves is None and "regret_log" in tables:
        curves = regret_curves([tables["regret_log"]], agents)
    if curves is None or len(curves) < 2 or curves.index.unique("round").size < 2:
        return None
    rounds = curves.index.unique("round").to_numpy()
    curves = curves[curves.index.isin(thinned(rounds), level="round")].dropna()
    if curves.empty:
        return None
    shown = {name: cohort_colours(agents)[name] for name in curves.index.unique("cohort")}
    figure = Figure(figsize=(WIDTH, 4.2))
    axes = figure.subplots()
    for name, colour in shown.items():
        curve = curves.loc[name]
        axes.plot(curve.index, curve["mean"], color=colour, linewidth=2)
        axes.plot(curve.index, curve["max"], color=colour, linewidth=0.8)
    scale_regret(axes, curves["mean"])
    axes.set(xlabel="round", ylabel=f"{measured(curves)} per round")
    _note_bounds(axes, agents, shown)
    _regret_legend(figure, shown)
    return figure


def thinned(rounds: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pick at most ``MOST_POINTS`` of a curve's rounds, evenly, both ends among them."""
    picks = np.linspace(0, len(rounds) - 1, min(len(rounds), MOST_POINTS))
    kept: np.ndarray[Any, Any] = rounds[picks.astype(int)]
    return kept


def cohort_colours(agents: pd.DataFrame) -> dict[Any, str]:
    """Give each cohort of an ``agents`` table its colour, the same in all figures."""
    names = agents["cohort"].unique()
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def measured(curves: pd.DataFrame) -> str:
    """Name the regret that curves show."""
    if (curves["kept"] == curves["count"]).all():
        return "decision swap regret"
    return "decision swap or swap regret" if curves["kept"].any() else "swap regret"


def scale_regret(axes: Axes, means: pd.Series[float]) -> None:
    """Use a logarithmic axis where the means are positive and span more than a factor of twenty."""
    if spans_decades(means):
        axes.set_yscale("log", nonpositive="mask")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], axes.get_ylim()[1] / DEPTH))
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())


def spans_decades(means: pd.Series[float]) -> bool:
    """Say whether a curve is positive and spans more than a factor of twenty."""
    positive = means[means > 0]
    return len(positive) > 0.95 * len(means) and bool(positive.max() > 20 * positive.min())


def _note_bounds(axes: Axes, agents: pd.DataFrame, colours: Mapping[Any, str]) -> None:
    """Draw each cohort's bound as a dashed line, or name it in words where it is far above."""
    bounds = agents.groupby("cohort", sort=False)["bound"].max().reindex(list(colours)).dropna()
    top = axes.get_ylim()[1]
    near, far = bounds[bounds <= FAR * top], bounds[bounds > FAR * top]
    for name, bound in near.items():
        axes.axhline(bound, color=colours[name], linewidth=1, linestyle="--")
    words = []
    if len(near):
        words.append("dashed")
    if len(far):
        ends = sorted({f"{far.min():.3g}", f"{far.max():.3g}"}, key=float)
        words.append(f"off the axis, {' to '.join(ends)}")
    if words:
        title = f"the theorem's bound after the last round: {'; '.join(words)}"
        axes.set_title(title, fontsize=10, color=FAINT)


def _regret_legend(figure: Figure, shown: Mapping[Any, str]) -> None:
    lines = [Line2D([], [], color=colour, linewidth=2) for colour in shown.values()]
    lines += [Line2D([], [], color=FAINT, linewidth=width) for width in (2, 0.8)]
    words = [*map(short_name, shown), "mean over agents", "worst agent of the round"]
    figure.legend(lines, words, loc="outside upper left", ncols=3)


def short_name(name: Any) -> str:
    """Fit a name into a legend, which would drop one that starts with an underscore."""
    text = textwrap.shorten(str(name), 28, placeholder="...") or "..."
    return f" {text}" if text.startswith("_") else text


def regret_spread(tables: Tables) -> Figure | None:
    """Draw histograms over the agents: a row per cohort, a column per measure that was kept."""
    agents = tables["agents"]
    agents = agents[agents[list(MEASURES)].notna().any(axis=1)]
    kept = {column: word for column, word in MEASURES.items() if agents[column].notna().any()}
    if not kept:
        return None
    colours = cohort_colours(tables["agents"])
    cohorts = agents.groupby("cohort", sort=False)
    edges = _edges(agents[list(kept)].to_numpy(dtype=np.float64))
    figure = Figure(figsize=(WIDTH, 0.8 + 1.9 * cohorts.ngroups))
    grid = figure.subplots(cohorts.ngroups, len(kept), sharex=True, sharey="row", squeeze=False)
    for row, (name, members) in zip(grid, cohorts, strict=True):
        for axes, column in zip(row, kept, strict=True):
            _histogram(axes, members[column].dropna(), edges, colours[name])
        row[0].set(ylabel="agents", title=f"{short_name(name)} ({len(members)})")
    for axes, word in zip(grid[-1], kept.values(), strict=True):
        axes.set_xlabel(f"{word} per round")
    return figure


def _histogram(axes: Axes, values: pd.Series[float], edges: list[float], colour: str) -> None:
    axes.hist(values, bins=edges, color=colour)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.grid(visible=False, axis="x")
    if values.empty:
        centre = (0.5, 0.5)
        axes.annotate("not measured", centre, xycoords="axes fraction", ha="center", color=FAINT)


def _edges(values: np.ndarray[Any, Any], bins: int = 30) -> list[float]:
    """Bins from zero, or the least value below it, to the greatest value."""
    low, high = min(0.0, float(np.nanmin(values))), float(np.nanmax(values))
    edges: list[float] = np.linspace(low, max(high, low + 1e-6), bins + 1).tolist()
    return edges


def forecast_against_outcome(tables: Tables, names: Sequence[str]) -> Figure | None:
    """Draw rolling means of each outcome and its drawn label forecast, a panel per coordinate.

    Parameters
    ----------
    tables : mapping of str to DataFrame
    names : sequence of str
        Titles of the panels, one per outcome.
    """
    rounds, forecasts = tables.get("rounds"), tables.get("forecasts")
    if rounds is None or len(rounds) < 2 or forecasts is None or "label_0" not in forecasts:
        return None
    labels = [f"label_{i}" for i in range(len(names))]
    drawn = forecasts[forecasts["drawn"]].groupby("round")[labels].mean()
    window = rolling_window(len(rounds))
    truth = rounds.set_index("round")[[f"y_{i}" for i in range(len(names))]]
    truth, said = (f.rolling(window).mean() for f in (truth, drawn.reindex(truth.index)))
    points = thinned(truth.index.to_numpy())
    figure, panels = _panels(names)
    for axes, y, label in zip(panels, truth, labels, strict=True):
        axes.plot(points, truth[y][points], color="#000000", linewidth=2.0, label="outcome")
        axes.plot(points, said[label][points], color=VERMILLION, linewidth=1.2, label="forecast")
    figure.supylabel(f"mean of the last {window} rounds" if window > 1 else "value", fontsize=11)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper right", ncols=2)
    return figure


def rolling_window(rounds: int) -> int:
    """Return the rounds of a rolling mean."""
    return max(1, min(WINDOW, rounds // 5))


def _panels(names: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Stack a panel per name, in two columns where there are many."""
    columns = 1 if len(names) <= 4 else 2
    height = -(-len(names) // columns)
    figure = Figure(figsize=(WIDTH, 1.1 + 1.5 * height))
    grid = figure.subplots(height, columns, sharex=True, squeeze=False)
    panels, spare = list(grid.flat[: len(names)]), grid.flat[len(names) :]
    for axes, name in zip(panels, names, strict=True):
        axes.set_title(name)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    for axes in spare:
        axes.set_visible(False)
    for axes in panels[-columns:]:
        axes.set_xlabel("round")
        axes.xaxis.set_tick_params(labelbottom=True)
    return figure, panels


def certificates(tables: Tables) -> Figure | None:
    """Draw the sum so far of the positive certificates, against the tolerance 0.1 sqrt(t)."""
    rounds = tables.get("rounds")
    if rounds is None or len(rounds) < 2 or rounds["certificate"].isna().all():
        return None
    total = rounds["certificate"].clip(lower=0).fillna(0).cumsum().to_numpy()
    points = thinned(np.arange(len(total)))
    figure = Figure(figsize=(WIDTH, 3.0))
    axes = figure.subplots()
    number = rounds["round"].to_numpy()[points]
    axes.plot(number, total[points], color=BLUE, linewidth=2, label="left open by the solver")
    allowed = TOLERANCE * np.sqrt(number + 1)
    axes.plot(number, allowed, "--", color=FAINT, label=f"tolerance {TOLERANCE:g} √t")
    axes.set(xlabel="round", ylabel="sum of certificates", ylim=(0, None))
    axes.legend(loc="upper left")
    return figure
