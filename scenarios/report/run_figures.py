"""Figures of a run: alternatives in hindsight, losses, regrets and the agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market.core.randomness import stream
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.welfare import COUNT, means_of, with_counts
from regretless.scenarios.logs.curves import leading_regret, thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.run_data import Run, told
from regretless.scenarios.verdict import apart, best_of_each, named, records

MOST = 4000  # agents that are drawn; beyond, a seeded sample with the worst in it
BINS = 30
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
HINDSIGHT, REGRET, FORECAST, AGENTS = "Alternatives in hindsight", "Regret", "Forecast", "Agents"


@figure(
    "run",
    "alternatives",
    section=HINDSIGHT,
    title="Difference of each alternative to the average loss per round as played",
    caption=(
        "Positive values, right of the line: the play was better than the alternative; bars are "
        "95 % intervals, simultaneous over all, stationary outcomes assumed."
    ),
)
def alternatives(run: Run) -> go.Figure | None:
    """Draw a panel per cohort, the best alternative on top; None with one each."""
    verdict = run.table("verdict")
    if verdict.empty:
        return None
    cohorts = {
        name: rows[rows["kind"] != "broadcast"].sort_values("difference", kind="stable")
        for name, rows in verdict.groupby("cohort", sort=False)
        if len(rows) > 2
    }
    if not cohorts:
        return None
    slots = {name: [theme.short(named(r)) for r in records(rows)] for name, rows in cohorts.items()}
    made = theme.slotted(slots, shared_xaxes=False)
    for row, rows in enumerate(cohorts.values(), 1):
        made.add_trace(_differences(rows), row=row, col=1)
        made.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    made.update_xaxes(nticks=4, tickangle=0).update_layout(showlegend=False)
    return made.update_xaxes(title_text="difference in average loss", row=len(cohorts))


def _differences(rows: pd.DataFrame) -> go.Scatter:
    """Draw the alternatives of a cohort, with their intervals where they are known."""
    text = [
        f"{theme.short(named(row))}<br>mean loss {row['mean_loss']:.4f}<br>"
        f"{row['better_off']} of {row['agents']} agents better off with it"
        for row in records(rows)
    ]
    halves = (rows["high"] - rows["difference"]).fillna(0.0).to_numpy(dtype=np.float64)
    return go.Scatter(
        x=rows["difference"].to_numpy(dtype=np.float64),
        y=np.arange(len(rows)),
        error_x={"type": "data", "array": halves, **theme.WHISKER},
        text=text,
        mode="markers",
        marker={"color": [KINDS[kind] for kind in rows["kind"]], "size": 8},
        hovertemplate="%{text}<br>difference %{x:+.4f}<extra></extra>",
    )


@figure(
    "run",
    "loss",
    section=HINDSIGHT,
    dated=True,
    title="Average loss per round so far, as played and with alternatives",
    caption=(
        "Where the thick line ends below another, the play was better over the whole run; the "
        "first tenth of the rounds is left out."
    ),
)
def loss(run: Run) -> go.Figure | None:
    """Draw the mean loss so far of each cohort, and of the alternatives, or what they came to."""
    courses = _courses(run) if run.long("course") else _levels(run)
    panels = {name: curves for name, curves in courses if curves}
    if not panels:
        return None
    made, seen = theme.panels(list(map(theme.heading, panels)), rows=len(panels), each=200), set()
    for row, curves in enumerate(panels.values(), 1):
        for curve in curves:
            curve.update(legendgroup=curve.name, showlegend=curve.name not in seen)
            seen.add(curve.name)
        made.add_traces(curves, rows=row, cols=1)
        theme.hold(made, row, *curves)
    theme.name_at_ends(made, 200)
    if made.layout.showlegend is not False:
        theme.grow(made, len(seen))
    made.update_yaxes(title_text="average loss")
    return made.update_xaxes(title_text="round", row=len(panels))


def _levels(run: Run) -> Iterator[tuple[Any, list[go.Scatter]]]:
    """Yield the course of each cohort, and a level line for the best alternative of each kind."""
    curves, verdict = run.table("regret_curves"), run.table("verdict")
    if verdict.empty or not run.long("regret_curves"):
        return
    for name, rows in apart(verdict).groupby("cohort", sort=False):
        curve = curves["loss"].xs(name, level="cohort").expanding().mean()
        rounds = curve.index.to_numpy()
        points = thinned(rounds[rounds >= theme.EARLY * rounds[-1]])
        drawn = [theme.line(points, curve[points], "as played", color=run.shades[name], width=3)]
        for best in best_of_each(rows):
            if best["kind"] != "broadcast":
                style = {"color": theme.FAINT} | STYLES[best["kind"]]
                word = theme.short(named(best).removesuffix(" of each agent"))
                ends = points[[0, -1]]
                drawn.append(theme.line(ends, [best["mean_loss"]] * 2, word, **style))
        yield name, drawn


def _courses(run: Run) -> Iterator[tuple[Any, list[go.Scatter]]]:
    """Yield the course of each alternative of each cohort."""
    course = run.table("course")
    names = course.loc[course["kind"].isin(["model", "policy"]), "name"].unique()
    shades, words = theme.colours(names), {"broadcast": "as played", "action": "best fixed action"}
    for cohort, whole in course.groupby("cohort", sort=False):
        own, curves = whole[whole["round"] >= theme.EARLY * whole["round"].max()], []
        for (kind, name), rows in own.groupby(["kind", "name"], sort=False):
            style = {"color": shades.get(name, theme.FAINT)} | STYLES[str(kind)]
            word = theme.short(words.get(str(kind), name))
            curves.append(theme.line(rows["round"], rows["mean_loss"], word, **style))
        yield cohort, curves


@figure(
    "run",
    "regret",
    section=REGRET,
    dated=True,
    title="Regret per round so far, and its bounds",
    caption=(
        "Decision swap regret (swap regret, where that was not measured) of each cohort, worst "
        "agent and mean; bounds of 1 or more are not drawn, and 0 is drawn at the lower edge of a "
        "logarithmic axis."
    ),
)
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
    panels = {name: [*_regrets(run, curves.loc[name], name), *_bounds(run, name)] for name in names}
    wide = theme.spans_decades(curves["mean"]) or any(len(own) > 2 for own in panels.values())
    made = theme.panels(list(map(theme.heading, names)), rows=len(names), each=260)
    made.update_yaxes(rangemode="tozero")
    if wide:
        theme.logarithmic(made, [curve.y for own in panels.values() for curve in own])
    for row, own in enumerate(panels.values(), 1):
        for curve in own:
            curve.update(legendgroup=curve.name, showlegend=row == 1)
        made.add_traces(list(map(theme.lifted, own)) if wide else own, rows=row, cols=1)
    for row in range(1, len(names) + 1):
        theme.hold(made, row, *made.data)  # alike, so that cohorts can be compared
    theme.name_at_ends(made, 260)
    made.update_yaxes(title_text="regret per round")
    return made.update_xaxes(title_text="round", row=len(names))


def _regrets(run: Run, curve: pd.DataFrame, name: Any) -> Iterator[go.Scatter]:
    for word, column, width in (("mean", "mean", 1.5), ("worst agent", "max", 3)):
        yield theme.line(curve.index, curve[column], word, color=run.shades[name], width=width)


def _bounds(run: Run, name: Any) -> Iterator[go.Scatter]:
    """Yield the bounds of a cohort: over time where that was kept, else at the end."""
    kept, agents = run.table("bounds"), run.agents
    own = kept[kept["cohort"] == name] if len(kept) else kept
    if len(own) < 2:
        last = agents.loc[agents["cohort"] == name, list(BOUNDS)].max()
        ends = run.table("regret_curves").index.unique("round")[[0, -1]]
        own = pd.DataFrame([last, last]).assign(round=ends)
    for column, (word, dash) in BOUNDS.items():
        known = own[own[column] < 1]
        if len(known) > 1:
            yield theme.line(known["round"], known[column], word, color=theme.FAINT, dash=dash)


@figure(
    "run",
    "windows",
    section=REGRET,
    dated=True,
    title="Regret per round of each window of rounds, taken alone",
    caption=(
        "Mean (thick) and worst agent (thin) of each cohort; a rise after a change of regime is "
        "the regret of those rounds alone."
    ),
)
def windows(run: Run) -> go.Figure | None:
    """Draw each cohort's regret window by window; None where no window has ended."""
    kept = run.table("windows")
    steps = pd.DataFrame() if kept.empty else _steps(kept, run.agents)
    if steps.empty:
        return None
    made = theme.panels(each=300)
    names = steps.index.unique("cohort")
    for place, name in enumerate(names):
        own = steps.loc[name].reset_index()
        own = own.iloc[thinned(own.index.to_numpy())]
        spans = np.stack([own["first"], own["last"] + 1, own["last"] + 1], axis=1).ravel()
        for column, share in {"mean": 1.25, "max": 0.5}.items():
            width = share * theme.nested(place, len(names))
            levels = np.repeat(own[column].to_numpy(), 3)
            levels[2::3] = np.nan  # which parts a step from the next
            pair = theme.line(spans, levels, theme.short(name), color=run.shades[name], width=width)
            made.add_trace(pair.update(legendgroup=str(name), showlegend=column == "mean"))
    theme.zero(made)
    made.update_xaxes(title_text="round").update_layout(showlegend=len(names) > 1)
    return made.update_yaxes(title_text="regret per round")


def _steps(kept: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Return mean and worst regret, indexed by cohort, first and last round of the window."""
    cohort = kept["agent"].map(agents.set_index("agent")["cohort"])
    rows = with_counts(kept.assign(cohort=cohort, mean=leading_regret(kept)), agents)
    keys = ["cohort", "first", "last"]
    worst = rows.groupby(keys, sort=False)["mean"].max()
    return means_of(rows, keys, ["mean"]).assign(max=worst).dropna()


@figure(
    "run",
    "spread",
    section=REGRET,
    title="Number of agents by their regret per round at the end",
    caption=(
        "A row per cohort; agents at 0 would have avoided no loss by any replacement, and the "
        "rightmost bar holds the worst agent."
    ),
)
def spread(run: Run) -> go.Figure | None:
    """Draw a histogram of regret per cohort that measured it; None where all in each are alike."""
    return _histograms(run, run.regret, "regret per round")


@figure(
    "run",
    "exploitability",
    section=REGRET,
    title="Number of agents by what a leader could have gained from their play",
    caption=(
        "Exploitability in [0, 1] of a leader's payoff, whatever that payoff is; swap regret up "
        f"to {TOLERANCE} is tolerated, and an agent within that stands at 0."
    ),
)
def exploitability(run: Run) -> go.Figure | None:
    """Draw a histogram per cohort; None where exploitability was not measured."""
    return _histograms(run, run.agents["exploitability"], "exploitability")


def _histograms(run: Run, values: pd.Series[float], word: str) -> go.Figure | None:
    rows = run.agents[["cohort"]].assign(value=values, heads=run.agents.get(COUNT, 1))
    groups = rows.groupby("cohort", sort=False)
    cohorts = {name: own for name, own in groups if own["value"].notna().any()}
    several = any(len(own["value"].dropna().unique()) > 1 for own in cohorts.values())
    if not several or not (values > 0).any():  # which the table tells in full
        return None
    titles = [_title(name, own) for name, own in cohorts.items()]
    made = theme.panels(titles, rows=len(cohorts), each=96, shared_xaxes="all")
    edges = _edges(values.to_numpy(dtype=np.float64))
    for row, (name, own) in enumerate(cohorts.items(), 1):
        bars = _bars(own.dropna(), edges, run.shades[name])
        made.add_trace(bars, row=row, col=1)
        made.update_yaxes(title_text="agents", dtick=1 if bars.y.max() < 5 else None, row=row)
    made.update_xaxes(title_text=word, row=len(cohorts))
    return made.update_layout(bargap=0, showlegend=False, margin_t=44)


def _title(name: Any, rows: pd.DataFrame) -> str:
    """Head a histogram by the cohort's name, how many agents it shows, and the worst of them."""
    known, every = rows.dropna()["heads"].sum(), rows["heads"].sum()
    many = f"{known:,}" if known == every else f"{known:,} of {every:,}"
    idle = f"{100 * rows.loc[rows['value'] <= 0, 'heads'].sum() / known:.0f} % at 0"
    return f"{theme.short(name)} ({many})<br>{idle}, worst {rows['value'].max():.4f}"


def _edges(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Bins from zero, or the least value below it, to the greatest value."""
    low, high = min(0.0, float(np.nanmin(values))), float(np.nanmax(values))
    return np.linspace(low, high if high > low else low + TOLERANCE, BINS + 1)


def _bars(rows: pd.DataFrame, edges: np.ndarray[Any, Any], colour: str) -> go.Bar:
    counts, _ = np.histogram(rows["value"], edges, weights=rows["heads"])
    return go.Bar(
        x=(edges[1:] + edges[:-1]) / 2,
        y=counts,
        customdata=np.stack([edges[:-1], edges[1:]], axis=1),
        marker={"color": colour, "line": {"width": 0}},
        hovertemplate="%{customdata[0]:.4g} to %{customdata[1]:.4g}: %{y} agents<extra></extra>",
    )


@figure(
    "run",
    "agents",
    section=AGENTS,
    title="Average loss and regret of every agent at the end",
    caption=(
        "A dot per agent: the higher it is, the more loss another rule would have avoided; the "
        "further right, the larger its loss."
    ),
)
def agents(run: Run) -> go.Figure | None:
    """Draw a dot per agent, which tells who it is; None where no two would be apart."""
    everybody, shown = run.agents, drawn_agents(run)
    if len(shown[["mean_loss", "regret"]].drop_duplicates()) < 2:
        return None
    part = f"{len(shown):,} of {len(everybody):,} agents"
    cohorts = shown["cohort"].unique()
    titles = [theme.heading(cohorts[0])] if len(cohorts) == 1 else []
    made = theme.panels([part] if len(shown) < len(everybody) else titles, each=380)
    for name, members in shown.groupby("cohort", sort=False):
        dots = go.Scatter(
            x=members["mean_loss"].to_numpy(),
            y=members["regret"].to_numpy(),
            text=[told(agent) for agent in members.to_dict("records")],
            customdata=members["agent"].to_numpy(),
            name=theme.short(name),
            mode="markers",
            marker={"color": run.shades[name], "size": 7, "opacity": 0.6},
            hovertemplate="%{text}",
        )
        made.add_trace(dots)
    theme.zero(made)
    made.update_xaxes(title_text="average loss per round, in [0, 1]")
    made.update_layout(showlegend=len(cohorts) > 1)
    return made.update_yaxes(title_text="regret per round")


@figure(
    "run",
    "regret_by_parameter",
    section=AGENTS,
    title="Regret of every agent by the parameters of its utility",
    caption=("A dot per agent; a slope shows for which agents the forecast was worse."),
)
def regret_by_parameter(run: Run) -> go.Figure | None:
    """Draw a panel per number that differs between agents; None where none does."""
    shown = drawn_agents(run)
    varied = [
        str(name)
        for name in shown.filter(like="param_").select_dtypes("number")
        if len(shown[name].dropna().unique()) > 1
    ][:PARAMETERS]
    if not varied:
        return None
    made = theme.panels(
        [name.removeprefix("param_") for name in varied], rows=len(varied), each=240
    )
    for row, name in enumerate(varied, 1):
        for cohort, members in shown.dropna(subset=name).groupby("cohort", sort=False):
            dots = go.Scatter(
                x=members[name].to_numpy(),
                y=members["regret"].to_numpy(),
                text=[told(agent) for agent in members.to_dict("records")],
                name=theme.short(cohort),
                mode="markers",
                marker={"color": run.shades[cohort], "size": 6, "opacity": 0.6},
                showlegend=False,
                hovertemplate="%{text}",
            )
            made.add_trace(dots, row=row, col=1)
    return made.update_yaxes(title_text="regret per round")


def drawn_agents(run: Run) -> pd.DataFrame:
    """Return the agents that are drawn, with their ``regret``: all, or a sample with the worst."""
    known = run.agents.assign(regret=run.regret).dropna(subset=["regret", "mean_loss"])
    if len(known) <= MOST:
        return known
    worst = known["regret"].nlargest(MOST // 4).index
    rest = known.index.difference(worst).to_numpy()
    more = stream(0, "agent plot").choice(rest, MOST - len(worst), replace=False)
    return known.loc[np.sort(np.concatenate([worst.to_numpy(), more]))]


@figure(
    "run",
    "actions",
    section=AGENTS,
    dated=True,
    title="Share of each action in the decisions of a cohort",
    caption="Areas add up to all decisions of the cohort in the rounds since the point before.",
)
def actions(run: Run) -> go.Figure | None:
    """Draw the share of each action, a panel per cohort."""
    if not run.long("actions"):
        return None
    groups = run.table("actions").groupby("cohort", sort=False)
    made = theme.panels([theme.heading(name) for name, _ in groups], rows=len(groups), each=200)
    seen = set[str]()
    for row, (name, own) in enumerate(groups, 1):
        wide = own.pivot_table(index="round", columns="which", values="value", fill_value=0)
        shares = wide.div(wide.sum(axis=1).replace(0, np.nan), axis=0)
        called = dict(enumerate(run.action_names.get(str(name), ())))
        for which, share in zip(map(int, wide.columns), shares.to_numpy().T, strict=True):
            area = _area(shares.index, share, called.get(which, f"action {which}"), which)
            area.update(stackgroup=str(row), showlegend=area.name not in seen)
            seen.add(area.name)
            made.add_trace(area, row=row, col=1)
    theme.grow(made, len(seen))
    made.update_yaxes(range=[0, 1], tickformat=".0%", title_text="share of decisions")
    return made.update_xaxes(title_text="round", row=len(groups))


def _area(rounds: Any, share: Any, name: str, which: int) -> go.Scatter:
    shade = theme.PALETTE[which % len(theme.PALETTE)]
    area = theme.line(rounds, share, theme.short(name), width=0.5, color=shade)
    return area.update(legendgroup=area.name, hovertemplate="round %{x}: %{y:.0%}")


def path(own: pd.DataFrame) -> go.Figure | None:
    """Draw an agent's course: columns ``loss`` and ``regret``, indexed by round."""
    if len(own) < 2:
        return None
    made = theme.panels(each=240)
    best = own["loss"] - own["regret"]
    made.add_trace(theme.line(own.index, own["loss"], "as played", color=theme.BLUE, width=2))
    if best.notna().any():
        style = {"color": theme.VERMILLION, "width": 2, "dash": "dash"}
        made.add_trace(theme.line(own.index, best, "after its best replacements", **style))
    made.update_xaxes(title_text="round")
    return made.update_yaxes(title_text="average loss per round")
