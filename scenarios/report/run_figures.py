"""Figures of a run: alternatives in hindsight, losses, regrets, agents, and the forecast.

Those of a run with a market are in ``market_figures``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.forecaster.unbiased import certificate_limit
from regretless.market.core.randomness import stream
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.counted import COUNT_COLUMN, means_of, with_counts
from regretless.scenarios import verdict as words
from regretless.scenarios.logs.reading import leading_regret, thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Run, described, figure

MOST = 4000  # agents that are drawn; beyond, a seeded sample with the worst in it
BINS = 30
SPAN = "%{customdata[0]:.4g} to %{customdata[1]:.4g}: %{y} agents<extra></extra>"
PARAMETERS = 6  # panels
KINDS = {"model": theme.BLUE, "policy": theme.VERMILLION, "action": theme.GREEN}
STYLES: dict[str, dict[str, Any]] = {  # of the courses of alternatives
    "broadcast": {"width": 3, "color": theme.INK},
    "model": {"width": 1.5},
    "policy": {"width": 1.5, "dash": "dot"},
    "action": {"width": 1.5, "dash": "dash", "color": theme.FAINT},
}
BOUNDS: dict[str, tuple[str, str]] = {
    "bound_from_bias": ("bound given the biases", "dot"),
    "bound_from_variation": ("bound given the variation", "dashdot"),
    "bound": ("bound before the run", "dash"),
}
FAR_ABOVE = 30.0  # times the worst regret at the end; a bound beyond waits in the legend


@figure("run")
def alternatives(run: Run) -> go.Figure | None:
    """Draw a panel per cohort, the best alternative on top; None with one each."""
    verdict, cohorts = run.table("verdict"), {}
    for name, rows in verdict.groupby("cohort", sort=False) if len(verdict) else ():
        if len(rows) > 2:
            cohorts[name] = words.alternatives(rows).sort_values("difference", kind="stable")
    if not cohorts:
        return None
    listed = {name: words.records(rows) for name, rows in cohorts.items()}
    slots = {name: [theme.short(words.named(own)) for own in rows] for name, rows in listed.items()}
    made = theme.slotted(slots)
    for row, (name, rows) in enumerate(cohorts.items(), 1):
        text = [
            f"{word}<br>mean loss {own['mean_loss']:.4f}<br>"
            f"{own['better_off']} of {own['agents']} agents better off with it"
            for word, own in zip(slots[name], listed[name], strict=True)
        ]
        x = rows["difference"].to_numpy(dtype=np.float64)
        reach = {"array": np.nan_to_num(rows["high"].to_numpy(np.float64) - x), **theme.WHISKER}
        style = {"color": [KINDS[kind] for kind in rows["kind"]], "size": 8}
        hover = "%{text}<br>difference %{x:+.4f}<extra></extra>"
        marks = theme.dots(x, np.arange(len(x)), hover, error_x=reach, text=text, marker=style)
        made.add_trace(marks, row=row, col=1)
        made.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    made.update_xaxes(nticks=4, tickangle=0).update_layout(showlegend=False)
    return made.update_xaxes(title_text="difference in average loss", row=len(cohorts))


@figure("run")
def loss(run: Run) -> go.Figure | None:
    """Draw the mean loss so far of each cohort, and of the alternatives, or what they came to."""
    courses = _courses(run) if run.long("course") else _levels(run)
    panels = {name: curves for name, curves in courses if curves}
    return theme.stacked(panels, each=200, y="average loss") if panels else None


def _levels(run: Run) -> Iterator[tuple[Any, list[go.Scatter]]]:
    """Yield the course of each cohort, and a level line for the best alternative of each kind."""
    curves, verdict = run.table("regret_curves"), run.table("verdict")
    long = len(verdict) and run.long("regret_curves")
    for name, rows in words.apart(verdict).groupby("cohort", sort=False) if long else ():
        curve = curves["loss"].xs(name, level="cohort").expanding().mean()
        points = thinned(curve.index[curve.index >= theme.EARLY * curve.index[-1]].to_numpy())
        drawn = [theme.line(points, curve[points], "as played", color=run.shades[name], width=3)]
        for best in words.best_of_each(rows):
            style = {"color": theme.FAINT} | STYLES[best["kind"]]
            word = theme.short(words.named(best).removesuffix(" of each agent"))
            drawn.append(theme.line(points[[0, -1]], [best["mean_loss"]] * 2, word, **style))
        yield name, drawn


def _courses(run: Run) -> Iterator[tuple[Any, list[go.Scatter]]]:
    course = run.table("course")
    names = course.loc[course["kind"].isin(["model", "policy"]), "name"].unique()
    shades, titles = theme.colours(names), {"broadcast": "as played", "action": "best fixed action"}
    for cohort, whole in course.groupby("cohort", sort=False):
        own, curves = whole[whole["round"] >= theme.EARLY * whole["round"].max()], []
        for (kind, name), rows in own.groupby(["kind", "name"], sort=False):
            style = {"color": shades.get(name, theme.FAINT)} | STYLES[str(kind)]
            word = theme.short(titles.get(str(kind), name))
            curves.append(theme.line(rows["round"], rows["mean_loss"], word, **style))
        yield cohort, curves


@figure("run")
def regret(run: Run) -> go.Figure | None:
    """Draw mean and worst regret and the bounds there are, a panel per cohort."""
    if not run.long("regret_curves"):
        return None
    curves = run.table("regret_curves").dropna(subset=["mean", "max"])
    rounds = thinned(curves.index.unique("round").to_numpy())
    curves = curves[curves.index.isin(rounds, level="round")]
    names = list(curves.index.unique("cohort"))
    if not names:
        return None
    panels = {name: [*_regrets(run, curves.loc[name], name)] for name in names}
    has_bounds = any(_draws_a_bound(panel) for panel in panels.values())
    wide = theme.spans_decades(curves["mean"]) or has_bounds
    word = "regret per round"
    return theme.stacked(panels, each=260, y=word, log=wide, shared_yaxes="all")


def _draws_a_bound(panel: Sequence[go.Scatter]) -> bool:
    """Whether more than the two lines of regret is drawn without a click on the legend."""
    drawn_lines = [line for line in panel if line.visible != theme.LEGEND_ONLY]
    return len(drawn_lines) > 2


def _regrets(run: Run, curve: pd.DataFrame, name: Any) -> Iterator[go.Scatter]:
    """Yield mean and worst regret of a cohort, and each bound as of the rounds where it is known.

    A bound far above the regret would leave it no room: it waits in the legend, and is drawn on a
    click.
    """
    for word, column, width in (("mean", "mean", 1.5), ("worst agent", "max", 3)):
        yield theme.line(curve.index, curve[column], word, color=run.shades[name], width=width)
    bounds = run.table("bounds")
    if not len(bounds):
        return
    bounds_of_cohort = bounds[bounds["cohort"] == name]
    is_regret_itself = _is_trusted(run, name, bounds_of_cohort["round"])
    highest_to_draw = FAR_ABOVE * curve["max"].iloc[-1]
    for column, (word, dash) in BOUNDS.items():
        is_drawn = bounds_of_cohort[column] < 1
        if column == "bound_from_variation":
            is_drawn &= ~is_regret_itself
        known = bounds_of_cohort[is_drawn]
        if known.empty:
            continue
        bound = theme.line(known["round"], known[column], word, color=theme.FAINT, dash=dash)
        if len(known) == 1:
            bound.update(mode="markers", marker={"color": theme.FAINT})
        if known[column].iloc[-1] > highest_to_draw > 0:
            bound.update(visible=theme.LEGEND_ONLY, name=f"{word} (far above)")
        yield bound


def _is_trusted(run: Run, cohort: Any, played: pd.Series[int]) -> pd.Series[bool]:
    """Say after which numbers of rounds the bound given the variation was the regret itself.

    It was as long as a reference was trusted: until the first correction, or to the end.
    """
    agents = run.agents[run.agents["cohort"] == cohort]
    first_correction = agents["first_correction"].min()
    if pd.notna(first_correction):
        return played.le(int(first_correction))
    return pd.Series(words.is_trusted(agents).any(), index=played.index)


@figure("run")
def windows(run: Run) -> go.Figure | None:
    """Draw each cohort's regret window by window; None where no window has ended."""
    table, agents, keys = run.table("windows"), run.agents, ["cohort", "first", "last"]
    if table.empty:
        return None
    cohort = table["agent"].map(agents.set_index("agent")["cohort"])
    rows = with_counts(table.assign(cohort=cohort, mean=leading_regret(table)), agents)
    worst = rows.groupby(keys, sort=False)["mean"].max()
    steps = means_of(rows, keys, ["mean"]).assign(max=worst).dropna()
    if steps.empty:
        return None
    names, marks = steps.index.unique("cohort"), []
    for place, name in enumerate(names):
        own = steps.loc[name].reset_index()
        own = own.iloc[thinned(own.index.to_numpy())]
        spans = np.stack([own["first"], own["last"] + 1, own["last"] + 1], axis=1).ravel()
        for column, share in {"mean": 1.25, "max": 0.5}.items():
            levels = np.repeat(own[column].to_numpy(), 3)
            levels[2::3] = np.nan  # which parts a step from the next
            width = share * theme.nested(place, len(names))
            marks.append(run.line(name, spans, levels, width=width))
    legend = len(names) > 1
    return theme.zero(theme.stacked({"": marks}, each=300, y="regret per round", legend=legend))


@figure("run")
def spread(run: Run) -> go.Figure | None:
    """Draw a histogram of regret per cohort that measured it; None where all in each are alike."""
    return _histograms(run, run.regret, "regret per round")


@figure("run", tolerance=TOLERANCE)
def exploitability(run: Run) -> go.Figure | None:
    """Draw a histogram per cohort; None where exploitability was not measured."""
    return _histograms(run, run.agents["exploitability"], "exploitability")


def _histograms(run: Run, values: pd.Series[float], word: str) -> go.Figure | None:
    """Draw a histogram per cohort, headed by how many agents it shows and the worst of them."""
    rows = run.agents[["cohort"]].assign(value=values, count=run.agents.get(COUNT_COLUMN, 1))
    groups = {n: own for n, own in rows.groupby("cohort", sort=False) if own["value"].notna().any()}
    several = any(len(own["value"].dropna().unique()) > 1 for own in groups.values())
    if not several or not (values > 0).any():  # which the table tells in full
        return None
    low, high = min(0.0, float(values.min())), float(values.max())
    edges, titles = np.linspace(low, high if high > low else low + TOLERANCE, BINS + 1), []
    for name, own in groups.items():
        seen, every = own.dropna()["count"].sum(), own["count"].sum()
        many = f"{seen:,}" if seen == every else f"{seen:,} of {every:,}"
        idle = f"{100 * own.loc[own['value'] <= 0, 'count'].sum() / seen:.0f} % at 0"
        titles.append(f"{theme.short(name)} ({many})<br>{idle}, worst {own['value'].max():.4f}")
    made = theme.panels(titles, each=96, shared_xaxes="all")
    for row, (name, own) in enumerate(groups.items(), 1):
        known = own.dropna()
        counts, _ = np.histogram(known["value"], edges, weights=known["count"])
        bars = go.Bar(x=(edges[1:] + edges[:-1]) / 2, y=counts, hovertemplate=SPAN)
        bars.customdata = np.stack([edges[:-1], edges[1:]], axis=1)
        bars.marker = {"color": run.shades[name], "line": {"width": 0}}
        made.add_trace(bars, row=row, col=1)
        made.update_yaxes(title_text="agents", dtick=1 if counts.max() < 5 else None, row=row)
    made.update_xaxes(title_text=word, row=len(groups))
    return made.update_layout(bargap=0, showlegend=False, margin_t=44)


@figure("run")
def agents(run: Run) -> go.Figure | None:
    """Draw a dot per agent, which tells who it is; None where no two would be apart."""
    everybody, shown = run.agents, _drawn_agents(run)
    if len(shown[["mean_loss", "regret"]].drop_duplicates()) < 2:
        return None
    part = f"{len(shown):,} of {len(everybody):,} agents"
    cohorts = shown["cohort"].unique()
    title = part if len(shown) < len(everybody) else cohorts[0] if len(cohorts) == 1 else ""
    dots, legend = {title: _dots(run, shown, "mean_loss")}, len(cohorts) > 1
    x, y = "average loss per round, in [0, 1]", "regret per round"
    return theme.zero(theme.stacked(dots, each=380, x=x, y=y, legend=legend))


@figure("run")
def regret_by_parameter(run: Run) -> go.Figure | None:
    """Draw a panel per number that differs between agents; None where none does."""
    shown = _drawn_agents(run)
    numbers = shown.filter(like="param_").select_dtypes("number")
    marks = {
        str(name).removeprefix("param_"): _dots(run, shown.dropna(subset=name), name)
        for name in list(numbers.columns[numbers.max() > numbers.min()])[:PARAMETERS]
    }
    if not marks:
        return None
    y = "regret per round"
    return theme.stacked(marks, each=240, x="", y=y, legend=False, shared_xaxes=False)


def _dots(run: Run, shown: pd.DataFrame, x: str) -> Iterator[go.Scatter]:
    for name, members in shown.groupby("cohort", sort=False):
        marks = theme.dots(members[x].to_numpy(), members["regret"].to_numpy(), "%{text}")
        text = [described(agent) for agent in members.to_dict("records")]
        marks.update(text=text, customdata=members["agent"].to_numpy(), name=theme.short(name))
        yield marks.update(marker={"color": run.shades[name], "size": 7, "opacity": 0.6})


def _drawn_agents(run: Run) -> pd.DataFrame:
    """Return the agents that are drawn, with their ``regret``: all, or a sample with the worst."""
    known = run.agents.assign(regret=run.regret).dropna(subset=["regret", "mean_loss"])
    if len(known) <= MOST:
        return known
    worst = known["regret"].nlargest(MOST // 4).index
    rest = known.index.difference(worst).to_numpy()
    more = stream(0, "agent plot").choice(rest, MOST - len(worst), replace=False)
    return known.loc[np.sort(np.concatenate([worst.to_numpy(), more]))]


@figure("run")
def actions(run: Run) -> go.Figure | None:
    """Draw the share of each action, a panel per cohort."""
    if not run.long("actions"):
        return None
    panels: dict[Any, list[go.Scatter]] = {}
    for row, (name, own) in enumerate(run.table("actions").groupby("cohort", sort=False)):
        wide = own.pivot_table(index="round", columns="which", values="value", fill_value=0)
        shares = wide.div(wide.sum(axis=1).replace(0, np.nan), axis=0)
        panels[name] = []
        for which in map(int, wide.columns):
            style = {"width": 0.5, "color": theme.PALETTE[which % len(theme.PALETTE)]}
            word = theme.short(run.action(name, which))
            area = theme.line(shares.index, shares[which], word, **style)
            area.update(stackgroup=str(row), hovertemplate="round %{x}: %{y:.0%}")
            panels[name].append(area)
    made = theme.stacked(panels, each=200, y="share of decisions")
    return made.update_yaxes(range=[0, 1], tickformat=".0%")


def path(own: pd.DataFrame) -> go.Figure | None:
    """Draw an agent's course: columns ``loss`` and ``regret``, indexed by round."""
    if len(own) < 2:
        return None
    best = own["loss"] - own["regret"]
    marks = [theme.line(own.index, own["loss"], "as played", color=theme.BLUE, width=2)]
    if best.notna().any():
        style = {"color": theme.VERMILLION, "width": 2, "dash": "dash"}
        marks.append(theme.line(own.index, best, "after its best replacements", **style))
    return theme.stacked({"": marks}, each=240, y="average loss per round")


WINDOW = 30  # rounds of a rolling mean, fewer in a short run


@figure("run")
def forecast(run: Run) -> go.Figure | None:
    """Draw rolling means of each outcome and its drawn label forecast, a panel per coordinate."""
    rounds, forecasts = run.table("rounds"), run.table("forecasts")
    if len(rounds) < 2 or "label_0" not in forecasts:
        return None
    data = run.config.get("data") or run.config.get("adversary") or {}
    scale, units = data.get("scale", {}), data.get("units", {})
    drawn = forecasts[forecasts["drawn"]].groupby("round")
    pairs = {"outcome": ("#b0b0b0", 4), "forecast": (theme.VERMILLION, 1.8)}
    panels, axes, modes = {}, [], []
    for i, name in enumerate(run.goods):
        low, high = scale.get(name, (0.0, 1.0))  # what 0 and 1 stand for, in the data's own units
        truth = rounds.set_index("round")[f"y_{i}"]
        curves = truth, drawn[f"label_{i}"].mean().reindex(truth.index)
        panels[f"{name}, {units[name]}" if name in units else name] = [
            rolling(low + (high - low) * curve, word, color=colour, width=width)
            for curve, (word, (colour, width)) in zip(curves, pairs.items(), strict=True)
        ]
        axes.append(theme.plain(units.get(name, "value")))
        modes.append("normal" if min(low, high) < 0 else "nonnegative")  # not from -1 for 0 alone
    made = theme.stacked(panels, each=120, x=f"round; {rolled(len(rounds))}", y=axes)
    for row, mode in enumerate(modes, 1):
        made.update_yaxes(rangemode=mode, row=row, col=1)
    return made


def rolling(curve: pd.Series[float], name: str, **style: Any) -> go.Scatter:
    """Draw the rolling mean of a column that is indexed by round, over the rounds with a value."""
    points = thinned(curve.index.to_numpy())
    window = max(1, min(WINDOW, len(curve) // 5))
    means = curve.rolling(window, min_periods=1).mean().where(np.arange(len(curve)) >= window - 1)
    return theme.line(points, means[points], name, **style)


def rolled(rounds: int) -> str:
    """Say over what a rolling mean goes."""
    window = min(WINDOW, rounds // 5)
    return f"means of the last {window} rounds" if window > 1 else "values as they are"


@figure("run")
def certificates(run: Run) -> go.Figure | None:
    """Draw the sum so far of the positive certificates, against the tolerance."""
    rounds = run.table("rounds")
    if len(rounds) < 2 or rounds["certificate"].isna().all():
        return None
    total = rounds["certificate"].clip(lower=0).fillna(0).cumsum().to_numpy()
    points = thinned(np.arange(len(total)))
    number = rounds["round"].to_numpy()[points]
    allowed = [certificate_limit(int(t) + 1) for t in number]
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
    """Draw a curve per source, which ought to be the diagonal; ``said`` names that and the axis.

    Of several blocks each has its broadcast, and the first one stands for the models.
    """
    if known.empty:
        return None
    panels, blocks, sent = {}, known["block"].unique(), known["source"] == "broadcast"
    known = known[sent | (known["block"] == blocks[0])]
    title = known["source"].astype(str)
    if len(blocks) > 1:
        title = title.mask(sent, "broadcast, " + known["block"].astype(str))
    known, shades = known.assign(title=title), theme.colours(title.unique())
    names = dict(zip(known["outcome"].unique(), run.goods, strict=False))
    for outcome, own in known.groupby("outcome", sort=False):
        even = theme.line([0, 1], [0, 1], said[0], color=theme.FAINT, width=1, dash="dot")
        panels[names.get(outcome, outcome)] = curves = [even]
        for word, rows in own.groupby("title", sort=False):
            style = {"width": 3 if word == "broadcast" else 1.5, "color": shades[word]}
            curves.append(curve(rows, theme.short(word), **style))
    return theme.stacked(panels, each=300, x=said[1], y="share of outcomes")


@figure("run")
def decision_calibration(run: Run) -> go.Figure | None:
    """Draw a dot per cohort and action; None where nobody expects anything."""
    scores = run.table("forecast_scores")
    taken = scores[scores["kind"] == "decision"] if len(scores) else scores
    if taken.empty:
        return None
    columns = ["expected_loss", "mean_loss"]
    ends = [float(end(taken[columns].to_numpy())) for end in (np.min, np.max)]
    marks = [theme.line(ends, ends, "calibrated", color=theme.FAINT, width=1, dash="dot")]
    for cohort, own in taken.groupby("cohort", sort=False):
        text = [run.action(cohort, int(which)) for which in own["action"]]
        size = 6 + 20 * np.sqrt(own["share"].to_numpy())
        expected, had = own[columns].to_numpy().T
        dots = theme.dots(expected, had, "%{text}<br>expected %{x:.4f}, had %{y:.4f}")
        dots.update(marker={"color": run.shades[cohort], "size": size})
        marks.append(dots.update(text=text, name=theme.short(cohort)))
    axes = "expected loss per round", "actual loss per round"
    return theme.stacked({"": marks}, each=380, x=axes[0], y=axes[1])
