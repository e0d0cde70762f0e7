r"""The tables that are bundled studies: what is measured, printed and drawn of each.

``study_table`` has the measures and cells of which they are made. What is played is said in
``scenarios/studies/catalogue``, in a file of the table's name. Bounds stand beside the worst
agent's regret: ``bound`` the theorem's, ``bound_from_bias`` the one from the run's own biases.
"""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from paper import figures
from paper.price_setters import PRICE_FORECASTS
from paper.study_table import (
    TO_MODELS,
    Layout,
    StudyTable,
    anchor,
    certificate,
    combined,
    crowd,
    errors,
    first,
    groups_of,
    mean,
    means,
    median,
    numbers,
    pace,
    played,
    served,
    spread,
    utility,
    worst,
)
from regretless.scenarios.studies.analysis.measures import interval

REGRET = "worst agent's swap regret"
WORST_OF_TWENTY = "worst of 20 agents' swap regret per round"
BOUNDS = means("bound bound_from_bias")
COSTS = {**BOUNDS, "certificate": mean("certificate"), "milliseconds": median("milliseconds")}


# Streams and events: a panel per stream, a row of dots per forecast.


def streams_figure(table: pd.DataFrame) -> Figure:
    """Draw every run's worst agent, in blue where the theorem has a bound for it."""
    bounded = table.loc[table["bound"].notna(), "forecast"].unique()
    draw = partial(figures.draw_dots, by="forecast", x="swap_regret", blue=list(bounded))
    groups = figures.split(table, "stream")
    return figures.draw_panels(groups, draw, size=(3.6, 2.2), xlabel=REGRET, sharex=True)


STREAMS = StudyTable(
    study="streams",
    title=WORST_OF_TWENTY,
    rows=combined(worst, certificate, pace),
    layouts=(
        Layout(["stream"], {}, across=("forecast", spread("swap_regret"))),
        Layout(
            ["stream", "forecast"],
            {**errors("swap_regret mean_loss"), **COSTS},
            head="means (standard errors), bounds, mean positive certificate, milliseconds a round",
        ),
    ),
    figure=streams_figure,
)


EVENTS = StudyTable(
    study="events",
    title=f"{WORST_OF_TWENTY}; bounds and costs over all streams",
    rows=combined(worst, certificate, pace, numbers),
    layouts=(
        Layout(
            ["events"],
            {**COSTS, "numbers": first("numbers")},
            across=("stream", mean("swap_regret")),
        ),
        Layout(
            ["stream", "events"],
            errors("swap_regret mean_loss"),
            head="with standard errors",
        ),
    ),
)


# Anchoring: every anchored cell beside its base and the plain forecaster. On benign streams a cell
# should have at most REGRET_FACTOR times the regret of the base alone plus REGRET_MARGIN, elsewhere
# of the plain.

BENIGN = ("iid", "drifting")
REGRET_FACTOR = 1.2
REGRET_MARGIN = 0.002


def judge_anchoring(table: pd.DataFrame) -> pd.DataFrame:
    """Put the means of every anchored cell beside what it is judged by."""
    measures = ["swap_regret", "mean_loss", "kept", "bound", "bound_from_bias"]
    groups = table.groupby(["stream", "base", "zone"], sort=False, dropna=False)
    cells = groups[measures].mean().assign(error=groups["swap_regret"].sem()).reset_index()
    is_anchored = cells["zone"].notna()
    single = cells[~is_anchored].set_index(["stream", "base"])["swap_regret"]
    rows: pd.DataFrame = cells[is_anchored].rename(columns={"swap_regret": "regret"})
    rows["alone"] = [single[cell] for cell in zip(rows["stream"], rows["base"], strict=True)]
    rows["plain"] = [single[stream, "none"] for stream in rows["stream"]]
    judged_by = rows["alone"].where(rows["stream"].isin(BENIGN), rows["plain"])
    rows["wanted"] = REGRET_FACTOR * judged_by + REGRET_MARGIN
    rows["met"] = rows["regret"] <= rows["wanted"]
    return rows.reset_index(drop=True)


def anchoring_figure(table: pd.DataFrame) -> Figure:
    """Draw every base's curve, the base alone, no base, and what is wanted."""
    rows_of_cells = judge_anchoring(table)
    base = rows_of_cells["base"]
    parts = [
        rows_of_cells.assign(who="reference: " + base, value=rows_of_cells["regret"]),
        rows_of_cells.assign(who="alone: " + base, value=rows_of_cells["alone"]),
        rows_of_cells.assign(who="aim with " + base, value=rows_of_cells["wanted"]),
        rows_of_cells.assign(who="no reference", value=rows_of_cells["plain"]),
    ]

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        figures.draw_lines(axis, rows, "zone", "value", by="who")
        axis.set(xlabel="tolerance band z", yscale="log")

    groups = figures.split(pd.concat(parts), "stream")
    return figures.draw_panels(groups, draw, size=(3.2, 2.8), ylabel=REGRET, legend=2)


ANCHORING = StudyTable(
    study="anchoring",
    title=WORST_OF_TWENTY,
    rows=combined(worst, certificate, pace, anchor),
    shown=judge_anchoring,
    layouts=(
        Layout(
            ["stream", "base", "zone"],
            {
                **means("regret error mean_loss alone plain wanted"),
                "met": first("met"),
                **means("kept bound bound_from_bias"),
            },
        ),
    ),
    figure=anchoring_figure,
)


# Skill: plain, models alone, all as one, and ours, in loss and in regret. The best model of a
# stream is the single one with the least mean loss. On benign streams and real series ours should
# lose at most LOSS_FACTOR times as much as it does and no more than plain; its worst decision swap
# regret should be at most REGRET_FACTOR times the best model's plus REAL_REGRET_MARGIN. On hostile
# streams it should lose no more than plain, and regret at most REGRET_FACTOR times as much plus
# REGRET_MARGIN.

PLAIN = "plain"
TOGETHER = "aggregate"
OURS = "ours"  # all other forecasts are models alone
HOSTILE = ("switching", "cyclic", "adaptive")
REAL_REGRET_MARGIN = 0.003
LOSS_FACTOR = 1.005
COLOURS = {PLAIN: figures.BLACK, TOGETHER: figures.GREEN, OURS: figures.BLUE}


def judge_skill(table: pd.DataFrame) -> pd.DataFrame:
    """Put the means over seeds of every forecast beside what they are judged by."""
    measures = ["mean_loss", "regret", "kept", *TO_MODELS]
    means_of_cells = table.groupby(["stream", "forecast"], sort=False)[measures].mean()
    streams = means_of_cells.reset_index().groupby("stream", sort=False)
    return pd.concat([_judge_stream(forecasts) for _, forecasts in streams])


def _judge_stream(forecasts: pd.DataFrame) -> pd.DataFrame:
    """Judge the forecasts of one stream, a row each."""
    by_name = forecasts.set_index("forecast")
    plain = by_name.loc[PLAIN]
    best_name = str(by_name["mean_loss"].drop([PLAIN, TOGETHER, OURS]).idxmin())
    best = by_name.loc[best_name]
    if forecasts["stream"].iloc[0] in HOSTILE:
        max_loss = plain["mean_loss"]
        max_regret = REGRET_FACTOR * plain["regret"] + REGRET_MARGIN
    else:
        max_loss = min(LOSS_FACTOR * best["mean_loss"], plain["mean_loss"])
        max_regret = REGRET_FACTOR * best["regret"] + REAL_REGRET_MARGIN
    return forecasts.assign(
        best=best_name,
        relative=forecasts["mean_loss"] / best["mean_loss"],
        most_loss=max_loss,
        most_regret=max_regret,
        met=(forecasts["mean_loss"] <= max_loss) & (forecasts["regret"] <= max_regret),
    )


def skill_figure(table: pd.DataFrame) -> Figure:
    """Draw loss against regret, means over seeds, and the forecasts that no other one beats."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        rows = rows.assign(regret=rows["regret"].clip(lower=figures.MIN_DRAWN))
        by_loss = rows.sort_values(["mean_loss", "regret"])
        losses = by_loss["mean_loss"].to_list()
        least_regret = by_loss["regret"].cummin().to_list()  # of all that lose no more
        axis.step(
            [losses[0], *losses, losses[-1]],
            [1.0, *least_regret, least_regret[-1]],
            "--",
            where="post",
            color=figures.GREY,
            lw=1,
            label="the front",
        )
        for row in rows.to_dict("records"):
            name = row["forecast"] if row["forecast"] in COLOURS else "a model alone"
            axis.plot(
                row["mean_loss"],
                row["regret"],
                "o",
                color=COLOURS.get(name, figures.GREY),
                ms=8 if name == OURS else 6,
                label=name,
            )
        axis.set(yscale="log", xlabel="mean loss", ylim=(figures.MIN_DRAWN * 10, 1.0))
        axis.xaxis.set_major_locator(MaxNLocator(2))

    return figures.draw_panels(
        figures.split(judge_skill(table), "stream"),
        draw,
        size=(3.2, 2.4),
        ylabel="worst of 20 agents' decision swap regret per round",
        legend=3,
    )


SKILL = StudyTable(
    study="skill",
    title="mean loss and worst decision swap regret of 20 agents",
    rows=combined(played),
    shown=judge_skill,
    layouts=(
        Layout(
            ["stream", "forecast"],
            {**means("mean_loss relative regret"), "kept": mean("kept", ".2f", empty="")},
        ),
        Layout(
            ["stream", "best"],
            {
                **means("mean_loss most_loss regret most_regret"),
                "met": first("met"),
                **means(" ".join(TO_MODELS)),
            },
            counts=lambda table: table["forecast"] == OURS,
            head="ours, and the most that it should have",
        ),
    ),
    figure=skill_figure,
)


# Covers: regret against radius.

COVERS = StudyTable(
    study="covers",
    title="swap regret per round of 400 agents, worst agent (least-greatest run)",
    rows=combined(served, pace),
    layouts=(
        Layout(
            ["served"],
            {
                "representatives": mean("representatives", ".0f"),
                "radius": mean("radius"),
                "worst agent": spread("swap_regret"),
                "mean agent": mean("mean_swap_regret"),
                "bound": mean("bound", ".3f", empty=""),
                "ms": median("milliseconds"),
            },
        ),
    ),
)


# Crowding: `even` and `ceiling` are the concentrations of a demand that is spread evenly and of one
# in which all agents choose the same basket, the worst one.


CROWDING = StudyTable(
    study="crowding",
    title="40 agents, 3 goods, worst agent's swap regret and bound",
    rows=combined(crowd),
    layouts=(
        Layout(
            ["market", "listener"],
            {
                **means("even concentration ceiling churn confirmed mean_loss swap_regret bound"),
                "guarantee": first("guarantee"),
            },
        ),
    ),
)


# Unseen: `named` losses are protected; `covered` ones are within gamma of a protected loss, whose
# best response they play; `unseen` ones are further away and promised nothing.

UNSEEN = StudyTable(
    study="unseen",
    title="swap regret per round of the worst and of the mean agent, anti-forecast adversary",
    rows=groups_of,
    layouts=(
        Layout(
            ["population", "size", "lipschitz", "cohort.others.gamma", "group"],
            {
                "agents": mean("agents", ".0f"),
                "worst": mean("worst", empty=""),
                "mean": mean("mean", empty=""),
                "bound": mean("bound"),
            },
        ),
    ),
)


# Speculator: a forecast of what usually happens can be predicted. Half of each good loses one half.


def speculator_figure(table: pd.DataFrame) -> Figure:
    """Draw a bar per forecast: the mean loss of those who follow it, over seeds."""
    mean_losses = table.groupby("forecast", sort=False)["mean_loss"].mean()[::-1]
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    axis = figure.subplots()
    colours = np.where(mean_losses.index == "Decision-Swap", figures.BLUE, figures.GREY)
    bars = axis.barh(mean_losses.index, mean_losses, color=colours)
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.axvline(0.5, color="#333333", ls=":", lw=1.2)
    axis.set(xlim=(0, 1.15), xlabel="average loss per round (dotted: half of each good)")
    figure.suptitle("Average loss of followers, against a speculator", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


SPECULATOR = StudyTable(
    study="speculator",
    title="40 traders against a speculator: mean loss, worst agent's swap regret",
    rows=combined(worst),
    layouts=(Layout(["forecast"], means("mean_loss swap_regret")),),
    figure=speculator_figure,
)

# Two sellers: one exploits learners, the other who repeats a model. A point shows both at once.

OURS_AMONG_BUYERS = "Decision-Swap"
NEIGHBOUR_DISTANCE = 0.1  # of points that have one label, in units of utility


def utilities_by_seller(table: pd.DataFrame) -> pd.DataFrame:
    """Return mean and 95 % interval of the utility of each kind of buyer, against each seller.

    The columns are pairs of a seller and of ``mean``, ``low`` and ``high``; a row is a kind of
    buyers, in the order of the table.
    """
    columns: dict[tuple[str, str], dict[str, float]] = {}
    for (buyers, seller), rows in table.groupby(["buyers", "seller"], sort=False):
        ends = interval(rows["utility"].to_numpy())
        for name, value in zip(("mean", "low", "high"), ends, strict=True):
            columns.setdefault((str(seller), name), {})[str(buyers)] = value
    return pd.DataFrame(columns)


def two_sellers_figure(table: pd.DataFrame) -> Figure:
    """Draw a point per kind of buyers: its utility against one seller, and against the other."""
    utilities = utilities_by_seller(table)
    across, up = utilities.columns.unique(level=0)
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axis = figure.subplots()
    for buyers, row in utilities.iterrows():
        x = row[across, "mean"]
        y = row[up, "mean"]
        x_error = [[x - row[across, "low"]], [row[across, "high"] - x]]
        y_error = [[y - row[up, "low"]], [row[up, "high"] - y]]
        colour = figures.BLUE if is_ours(str(buyers)) else figures.GREY
        axis.errorbar(
            x,
            y,
            xerr=x_error,
            yerr=y_error,
            fmt="o",
            ms=5,
            lw=1,
            color=colour,
            zorder=4,  # no label hides a point
        )
    means_of_sellers = utilities[[(across, "mean"), (up, "mean")]]
    for names in groups_of_neighbours(means_of_sellers):
        # A label beside its points would lie on those of another group; the side of the horizontal
        # line is free.
        if utilities.loc[names, (up, "mean")].mean() >= 0:
            height = utilities.loc[names, (up, "low")].min()
            distance_in_points = -4
            vertical_alignment = "top"
        else:
            height = utilities.loc[names, (up, "high")].max()
            distance_in_points = 4
            vertical_alignment = "bottom"
        left_end = utilities.loc[names, (across, "low")].min()
        has_ours = any(is_ours(name) for name in names)
        axis.annotate(
            "\n".join(names),
            (left_end, height),
            xytext=(3, distance_in_points),
            textcoords="offset points",
            va=vertical_alignment,
            fontsize=7.5,
            color="#1a1a1a" if has_ours else "#555555",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},  # over the dotted lines
        )
    axis.axhline(0, color="#333333", ls=":", lw=1)
    axis.axvline(0, color="#333333", ls=":", lw=1)
    axis.set(
        xlabel=f"utility per round, seller {across}",
        ylabel=f"utility per round,\nseller {up}",
    )
    low, high = axis.get_xlim()
    axis.set_xlim(low, high + 0.4 * (high - low))  # the labels stand on the right
    axis.set_title("Buyers of two sellers: safe from both is top right", loc="left", fontsize=11)
    axis.margins(y=0.08)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def is_ours(buyers: str) -> bool:
    """Whether these buyers follow a forecast of Decision-Swap."""
    return buyers.startswith(OURS_AMONG_BUYERS)


def groups_of_neighbours(points: pd.DataFrame) -> list[list[str]]:
    """Return the names of points (a row each) in groups that lie near the first of each group."""
    groups: list[list[str]] = []
    for name, point in points.iterrows():
        for group in groups:
            distance = np.abs(points.loc[group[0]].to_numpy() - point.to_numpy()).max()
            if distance < NEIGHBOUR_DISTANCE:
                group.append(str(name))
                break
        else:
            groups.append([str(name)])
    return groups


TWO_SELLERS = StudyTable(
    study="two-sellers",
    title="20 buyers of two sellers, utility per round",
    rows=combined(utility),
    layouts=(Layout(["seller", "buyers"], means("utility mean_loss first_correction")),),
    figure=two_sellers_figure,
)

NEWCOMERS = StudyTable(
    study="newcomers",
    title="buyers of two sellers who stay for fifty rounds on average, utility per round",
    rows=combined(utility),
    layouts=(Layout(["seller", "buyers"], means("utility mean_loss first_correction")),),
    figure=two_sellers_figure,
)

STUDY_TABLES = (
    PRICE_FORECASTS,
    STREAMS,
    EVENTS,
    ANCHORING,
    SKILL,
    COVERS,
    CROWDING,
    UNSEEN,
    SPECULATOR,
    TWO_SELLERS,
    NEWCOMERS,
)
TABLES = {table.study: table for table in STUDY_TABLES}
