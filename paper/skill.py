"""The table `skill`: plain, models alone, all as one, and ours, in loss and in regret.

The **best model** of a stream is the single model with the least mean loss. On benign streams and
on real series ours should lose at most ``LOSS`` times as much as it does, and no more than the
plain forecaster; its worst decision swap regret should be at most FACTOR times the best model's
plus ``REAL_MARGIN``. On hostile streams it should lose no more than the plain forecaster, and
regret at most FACTOR times as much plus MARGIN.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paper import figures
from paper.study_table import Layout, Row, Run, StudyTable, first, mean

PLAIN, ALL, OURS = "plain", "aggregate", "ours"  # all others are models alone
HOSTILE = ("switching", "cyclic", "adaptive")
FACTOR, MARGIN, REAL_MARGIN = 1.2, 0.002, 0.003
LOSS = 1.005
MEASURED = ["mean_loss", "regret", "kept"]
COLOURS = {PLAIN: figures.BLACK, ALL: figures.GREEN, OURS: figures.BLUE}


def played(run: Run) -> Row:
    """Measure mean loss, the worst decision swap regret, and how often the base was kept."""
    return {
        "mean_loss": run.agents["mean_loss"].mean(),
        "regret": run.agents["decision_swap_regret"].max(),
        "kept": run.manifest["blocks"][0].get("kept", np.nan),
    }


def judged(table: pd.DataFrame) -> pd.DataFrame:
    """Put the means over seeds of every forecast beside what they are judged by.

    There is a row per stream and forecast: ``best`` names the best model, ``relative`` is the mean
    loss relative to its, ``most_loss`` and ``most_regret`` are what ours should have at most, and
    ``met`` says whether the row has no more.
    """
    means = table.groupby(["stream", "forecast"], sort=False)[MEASURED].mean().reset_index()
    return pd.concat([_judged(own) for _, own in means.groupby("stream", sort=False)])


def _judged(own: pd.DataFrame) -> pd.DataFrame:
    """Judge the forecasts of one stream."""
    by_name = own.set_index("forecast")
    plain = by_name.loc[PLAIN]
    name = str(by_name["mean_loss"].drop([PLAIN, ALL, OURS]).idxmin())
    best = by_name.loc[name]
    if own["stream"].iloc[0] in HOSTILE:
        loss, regret = plain["mean_loss"], FACTOR * plain["regret"] + MARGIN
    else:
        loss = min(LOSS * best["mean_loss"], plain["mean_loss"])
        regret = FACTOR * best["regret"] + REAL_MARGIN
    return own.assign(
        best=name,
        relative=own["mean_loss"] / best["mean_loss"],
        most_loss=loss,
        most_regret=regret,
        met=(own["mean_loss"] <= loss) & (own["regret"] <= regret),
    )


def figure(table: pd.DataFrame) -> Figure:
    """Draw loss against regret, means over seeds, and the forecasts that no other one beats."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        shown = rows.assign(regret=rows["regret"].clip(lower=figures.LEAST))
        front = shown.sort_values(["mean_loss", "regret"])
        ends = [*front["mean_loss"].iloc[[0]], *front["mean_loss"], front["mean_loss"].iloc[-1]]
        least = [1.0, *front["regret"].cummin(), front["regret"].min()]
        axis.step(ends, least, "--", where="post", color=figures.GREY, lw=1, label="the front")
        for row in shown.to_dict("records"):
            name = row["forecast"] if row["forecast"] in COLOURS else "a model alone"
            colour = COLOURS.get(name, figures.GREY)
            at = row["mean_loss"], row["regret"]
            axis.plot(*at, "o", color=colour, ms=8 if name == OURS else 6, label=name)
        axis.set(yscale="log", xlabel="mean loss", ylim=(figures.LEAST * 10, 1.0))
        axis.xaxis.set_major_locator(MaxNLocator(4))

    return figures.panelled(
        figures.split(judged(table), "stream"),
        draw,
        size=(3.2, 2.4),
        ylabel="worst of 20 agents' decision swap regret per round",
        legend=3,
    )


SKILL = StudyTable(
    study="skill",
    title="mean loss and worst decision swap regret of 20 agents",
    rows=lambda run: [played(run)],
    told=judged,
    layouts=(
        Layout(
            ["stream", "forecast"],
            {"mean_loss": mean("mean_loss"), "relative": mean("relative")}
            | {"regret": mean("regret"), "kept": mean("kept", ".2f", "")},
        ),
        Layout(
            ["stream", "best"],
            {name: mean(name) for name in ("mean_loss", "most_loss", "regret", "most_regret")}
            | {"met": first("met")},
            only=lambda table: table["forecast"] == OURS,
            head="ours, and the most that it should have",
        ),
    ),
    figure=figure,
)
