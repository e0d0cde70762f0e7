r"""The tables that are bundled studies: what is measured, printed and drawn of each.

What is played is said in ``scenarios/studies/catalogue``, in a file of the table's name. Bounds
stand beside the worst agent's regret: ``bound`` the theorem's, ``bound_from_bias`` the one from the
run's own biases.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paper import figures
from paper.skill import SKILL
from paper.study_table import (
    Layout,
    Row,
    Run,
    StudyTable,
    certificate,
    combined,
    first,
    mean,
    median,
    pace,
    spread,
    worst,
)
from regretless.market.markets.crowding import MEASURES, concentration, crowding
from regretless.market.markets.prices import exposure
from regretless.scenarios.build.cohorts import covered

REGRET = "worst agent's swap regret"
TWENTY = "worst of 20 agents' swap regret per round"
BOUNDS = {name: mean(name) for name in ("bound", "bound_from_bias")}
COSTS = BOUNDS | {"certificate": mean("certificate"), "milliseconds": median("milliseconds")}


# Streams and events: a panel per stream, a column of dots per forecast.


def by_stream(by: str, table: pd.DataFrame) -> Figure:
    """Draw every run's worst agent, in blue where the theorem has a bound for it."""
    blue = table.loc[table["bound"].notna(), by].unique()
    draw = partial(figures.columns, by=by, y="swap_regret", blue=list(blue))
    return figures.panelled(figures.split(table, "stream"), draw, size=(3.2, 3.0), ylabel=REGRET)


STREAMS = StudyTable(
    study="streams",
    title=TWENTY,
    rows=combined(worst, certificate, pace),
    layouts=(
        Layout(["stream"], {}, across=("forecast", spread("swap_regret"))),
        Layout(
            ["stream", "forecast"],
            COSTS,
            only=lambda table: table["forecast"].str.startswith("decision-swap"),
            head="decision-swap: bounds, mean positive certificate, milliseconds per round",
        ),
    ),
    figure=partial(by_stream, "forecast"),
)


def numbers(run: Run) -> Row:
    """Count the accumulators that the forecaster keeps."""
    events: Any = run.unplayed.game.blocks[0].forecaster.events  # type: ignore[attr-defined]
    return {"numbers": sum(array.size for array in events.arrays.values())}


EVENTS = StudyTable(
    study="events",
    title=f"{TWENTY}; bounds and costs over all streams",
    rows=combined(worst, certificate, pace, numbers),
    layouts=(
        Layout(
            ["events"],
            COSTS | {"numbers": first("numbers")},
            across=("stream", mean("swap_regret")),
        ),
    ),
    figure=partial(by_stream, "events"),
)


# Anchoring: every anchored cell beside its base and the plain forecaster. On benign streams a cell
# should have at most FACTOR times the regret of the base alone plus MARGIN, elsewhere of the plain.

BENIGN = ("iid", "drifting")
FACTOR, MARGIN = 1.2, 0.002


def anchor(run: Run) -> Row:
    """Say which base was anchored at and with which dead zone, and how often it was kept."""
    asked, kept = run.scenario.spec.forecaster, run.manifest["blocks"][0].get("kept", np.nan)
    alone = "none" if asked.kind == "decision-swap" else asked.kind
    base = alone if asked.base.kind == "none" else asked.base.kind
    return {"base": base, "zone": asked.dead_zone, "kept": kept}


def curve(table: pd.DataFrame) -> pd.DataFrame:
    """Put the means of every anchored cell beside what it is judged by.

    There is a row per stream, base and zone, with ``alone`` the regret of the base, ``plain`` that
    of the forecaster without one, and ``wanted`` the most that is ``met``.
    """
    measured = ["swap_regret", "kept", "bound", "bound_from_bias"]
    groups = table.groupby(["stream", "base", "zone"], sort=False, dropna=False)
    means = groups[measured].mean().reset_index()
    single = means[means["zone"].isna()].set_index(["stream", "base"])["swap_regret"]
    rows: pd.DataFrame = means[means["zone"].notna()].rename(columns={"swap_regret": "regret"})
    rows["alone"] = [single[cell] for cell in zip(rows["stream"], rows["base"], strict=True)]
    rows["plain"] = [single[stream, "none"] for stream in rows["stream"]]
    judged_by = rows["alone"].where(rows["stream"].isin(BENIGN), rows["plain"])
    rows["wanted"] = FACTOR * judged_by + MARGIN
    rows["met"] = rows["regret"] <= rows["wanted"]
    return rows.reset_index(drop=True)


def anchoring_figure(table: pd.DataFrame) -> Figure:
    """Draw every base's curve, the base alone (dotted), no base (grey), and what is wanted."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        named = rows.assign(base="anchored at " + rows["base"])
        colours = dict(zip(named["base"].unique(), (figures.VERMILION, figures.BLUE), strict=True))
        axis.axhline(rows["plain"].iloc[0], color=figures.GREY, label="no base")
        figures.lines(axis, named, "zone", "regret", by="base", styles=colours, dots=False)
        for (base, own), colour in zip(
            rows.groupby("base", sort=False), figures.COLOURS[1::-1], strict=True
        ):
            axis.axhline(own["alone"].iloc[0], ls=":", color=colour, label=f"{base} alone")
            axis.plot(own["zone"], own["wanted"], "_", color=colour, label=f"wanted, {base}")
        axis.set(xlabel="dead zone z", yscale="log")

    groups = figures.split(curve(table), "stream")
    return figures.panelled(groups, draw, size=(3.2, 2.6), ylabel=REGRET, legend=2)


ANCHORING = StudyTable(
    study="anchoring",
    title=TWENTY,
    rows=combined(worst, certificate, pace, anchor),
    told=curve,
    layouts=(
        Layout(
            ["stream", "base", "zone"],
            {name: mean(name) for name in ("regret", "alone", "plain", "wanted")}
            | {"met": first("met"), "kept": mean("kept")}
            | BOUNDS,
        ),
    ),
    figure=anchoring_figure,
)


# Covers: regret against radius.

FINEST = 1e-4  # the logarithmic axis starts here; smaller radii are drawn on it


def served(run: Run) -> Row:
    """Count the losses that the forecaster protects, and how far the agents' are from them."""
    (cohort,), game = run.scenario.spec.cohort, run.unplayed.game
    own = game.cohorts[0].loss
    if cohort.cover is None:
        told: Row = {"cover": "none", "play": "own", "representatives": len(own), "radius": 0.0}
    else:
        coefficients = game.blocks[0].basis.coefficients(own)
        cover = covered(cohort.cover, coefficients, run.manifest["rounds"])
        told = {"cover": cohort.cover.kind, "play": cohort.cover.play}
        told |= {"representatives": len(cover.offset), "radius": float(cover.radius.max())}
    agents = run.agents
    told |= {"swap_regret": agents["swap_regret"].max(), "bound": agents["bound"].max()}
    return told | {"mean_swap_regret": agents["swap_regret"].mean()}


def covers_figure(table: pd.DataFrame) -> Figure:
    """Draw every run, lines through the means, and what twice the radius would allow."""
    shown = table.assign(radius=table["radius"].clip(lower=FINEST))
    shown["who"] = shown["cover"] + ", plays " + shown["play"]
    top = 1.1 * float(shown["swap_regret"].max())  # twice the radius may leave the panel

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        alone = float(rows.loc[rows["cover"] == "none", "value"].mean())
        covers = rows[rows["cover"] != "none"]
        centres = covers.groupby("served")["radius"].transform("mean")
        figures.lines(axis, covers.assign(radius=centres), "radius", "value", by="who")
        radii = np.geomspace(covers["radius"].min(), covers["radius"].max(), 50)
        axis.axhline(alone, color=figures.BLACK, lw=1, label="no cover")
        axis.plot(
            radii, alone + 2 * radii, ":", color=figures.GREY, label="no cover, plus two radii"
        )
        axis.set(xscale="log", xlabel="greatest radius of the cover", ylim=(0.0, top))

    names = {"worst agent": "swap_regret", "mean agent": "mean_swap_regret"}
    groups = [(title, shown.assign(value=shown[column])) for title, column in names.items()]
    return figures.panelled(groups, draw, size=(3.2, 3.4), ylabel="swap regret per round", legend=2)


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
                "bound": mean("bound", ".3f", ""),
                "ms": median("milliseconds"),
            },
        ),
    ),
    figure=covers_figure,
)


# Crowding: `even` and `ceiling` are the concentrations of a demand that is spread evenly and of one
# in which all agents choose the same basket, the worst one.


def crowd(run: Run) -> Row:
    """Average ``crowding.MEASURES`` over the rounds, with loss, regret and bounds."""
    found = crowding(run.table("rounds"), run.table("forecasts"))
    (cohort,), agents = run.unplayed.game.cohorts, run.agents
    together = exposure(cohort.loss)[cohort.row_of].mean(0)
    return {
        "guarantee": agents["guarantee"].iloc[0],
        **{name: found[name].mean() for name in MEASURES},
        "even": 1 / together.shape[-1],
        "ceiling": float(concentration(together).max()),
        "mean_loss": agents["mean_loss"].mean(),
        **{name: agents[name].max() for name in ("swap_regret", "bound", "bound_from_bias")},
        "clipped": run.manifest["market"]["clipped_share"],
    }


def answers(table: pd.DataFrame) -> list[str]:
    """Answer in one line per market: who crowds, and what it does to them."""
    cell = table.groupby(["market", "listener"], sort=False).mean(numeric_only=True)
    even, most = cell["even"].mean(), cell["ceiling"].mean()
    ends = f"(evenly spread {even:.2f}, all agents alike {most:.2f}):"
    told = ["", f"Does trusting one broadcast make everybody crowd? Concentration of demand {ends}"]
    for market in cell.index.unique("market"):
        trust, alone = cell.loc[(market, "best response")], cell.loc[(market, "hedge")]
        told.append(
            f"  {market}: {trust['concentration']:.2f} by trust, {alone['concentration']:.2f} by "
            f"learning alone; {trust['churn']:.0%} and {alone['churn']:.0%} of all budgets change "
            f"goods a round; mean loss {trust['mean_loss']:.3f} and {alone['mean_loss']:.3f}; the "
            f"market moved outcomes {abs(trust['confirmed']):.3f} "
            f"{'towards' if trust['confirmed'] >= 0 else 'away from'} the forecast"
        )
    return told


def crowding_figure(table: pd.DataFrame) -> Figure:
    """Draw every cell's mean as a bar and every run as a dot."""
    names = {
        "concentration of demand": "concentration",
        "share of budgets that moved a round": "churn",
        "mean loss": "mean_loss",
    }
    draw = partial(figures.bars, groups="market", by="listener", y="value")
    groups = [(title, table.assign(value=table[column])) for title, column in names.items()]
    figure = figures.panelled(groups, draw, size=(6.4, 2.6), across=1, sharey=False, legend=2)
    for name, style in (("even", ":"), ("ceiling", "--")):
        figure.axes[0].axhline(table[name].mean(), ls=style, color="#333333", lw=1)
    return figure


CROWDING = StudyTable(
    study="crowding",
    title="40 agents, 3 goods, worst agent's swap regret and bound",
    rows=combined(crowd),
    layouts=(
        Layout(
            ["market", "listener"],
            {
                name: mean(name)
                for name in ("concentration", "churn", "confirmed", "mean_loss", "swap_regret")
            }
            | {"bound": mean("bound"), "guarantee": first("guarantee")},
        ),
    ),
    answers=answers,
    figure=crowding_figure,
)


# Unseen: `named` losses are protected; `covered` ones are within gamma of a protected loss, whose
# best response they play; `unseen` ones are further away and promised nothing.

GAMMA = "cohort.others.gamma"


def groups_of(run: Run) -> list[Row]:
    """Measure each group: how many agents, worst and mean swap regret, the greatest bound."""
    block, agents = run.manifest["blocks"][0], run.agents
    promised = agents["guarantee"] != "none"
    group = agents["cohort"].where(agents["cohort"] == "named", "unseen")
    group = group.mask((group == "unseen") & promised, "covered")
    rows = []
    for name in ("named", "covered", "unseen"):
        own = agents[group == name]
        row = {"group": name, "size": block["size"], "lipschitz": block["lipschitz"]}
        row |= {"agents": len(own), "bound": own["bound"].max() if name != "unseen" else np.nan}
        rows.append(row | {"worst": own["swap_regret"].max(), "mean": own["swap_regret"].mean()})
    return rows


def unseen_figure(table: pd.DataFrame) -> Figure:
    """Draw every run's worst agent and the means over seeds, one panel per population."""
    shown = table[table["agents"] > 0].rename(columns={GAMMA: "gamma"})
    sizes = shown["size"].astype(str) + ", lambda = " + shown["lipschitz"].map("{:.3g}".format)
    styles = {"named": figures.BLACK, "covered": figures.BLUE, "unseen": figures.VERMILION}

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        figures.lines(axis, rows, "gamma", "worst", by="group", styles=styles)
        axis.set_xlabel("gamma")

    groups = figures.split(shown.assign(panel=shown["population"] + "\nn = " + sizes), "panel")
    return figures.panelled(groups, draw, size=(3.2, 2.6), ylabel=REGRET, legend=3)


UNSEEN = StudyTable(
    study="unseen",
    title="swap regret per round of the worst and of the mean agent, breaker",
    rows=groups_of,
    layouts=(
        Layout(
            ["population", "size", "lipschitz", GAMMA, "group"],
            {"agents": mean("agents", ".0f")}
            | {name: mean(name, empty="") for name in ("worst", "mean")}
            | {"bound": mean("bound")},
        ),
    ),
    figure=unseen_figure,
)


# Speculator: whoever foretells what usually comes is foreseen. Half of each good loses one half.


def speculator_figure(table: pd.DataFrame) -> Figure:
    """Draw a bar per forecast: the mean loss of those who follow it, over seeds."""
    means = table.groupby("forecast", sort=False)["mean_loss"].mean()[::-1]
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    axis = figure.subplots()
    own = means.index == "Decision-Swap"
    bars = axis.barh(means.index, means, color=np.where(own, figures.BLUE, figures.GREY))
    axis.bar_label(bars, fmt="%.2f", padding=3)
    axis.axvline(0.5, color="#333333", ls=":", lw=1.2)
    axis.set(xlim=(0, 1.08), xlabel="mean loss a round; dotted: half of each good, always")
    axis.set_title("What followers of each forecast lose to a speculator", loc="left", fontsize=11)
    axis.spines[["top", "right"]].set_visible(False)
    return figure


SPECULATOR = StudyTable(
    study="speculator",
    title="40 traders against a speculator: mean loss, worst agent's swap regret",
    rows=combined(worst, lambda run: {"mean_loss": run.agents["mean_loss"].mean()}),
    layouts=(Layout(["forecast"], {n: mean(n) for n in ("mean_loss", "swap_regret")}),),
    figure=speculator_figure,
)

ALL = (STREAMS, EVENTS, ANCHORING, SKILL, COVERS, CROWDING, UNSEEN, SPECULATOR)
STUDIES = {table.study: table for table in ALL}
