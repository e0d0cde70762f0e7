"""Figures of a run: alternatives in hindsight, losses, regrets, agents and their actions.

Those of the forecast are in ``forecast_figures``, those of a market in ``market_figures``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from regretless.market.core.randomness import stream
from regretless.market.exploitability.tracker import TOLERANCE
from regretless.market.logs.counted import COUNT_COLUMN, mean_of, means_of, with_counts
from regretless.scenarios import verdict as wording
from regretless.scenarios.logs.reading import leading_regret, thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import Run, describe_agent, figure

MAX_DRAWN_AGENTS = 4000  # beyond, a seeded sample with the worst in it
MAX_PARAMETER_PANELS = 6
MAX_IMPULSE_PANELS = 6  # agents: the first whose actions an impulse changes
HISTOGRAM_BINS = 30
BIN_HOVER = "%{customdata[0]:.4g} to %{customdata[1]:.4g}: %{y} agents<extra></extra>"
COLOUR_OF_KIND = {"model": theme.BLUE, "policy": theme.VERMILLION, "action": theme.GREEN}
STYLE_OF_KIND: dict[str, dict[str, Any]] = {  # of the courses of alternatives
    "broadcast": {"width": 3, "color": theme.INK},
    "model": {"width": 1.5},
    "policy": {"width": 1.5, "dash": "dot"},
    "action": {"width": 1.5, "dash": "dash", "color": theme.FAINT},
}
BOUNDS: dict[str, tuple[str, str]] = {  # name and dash of each column of the table ``bounds``
    "bound_from_bias": ("bound given the biases", "dot"),
    "bound_from_variation": ("bound given the variation", "dashdot"),
    "bound": ("bound before the run", "dash"),
}
COLOUR_OF_SOLUTION = {
    "nash": theme.VERMILLION,
    "optimum": theme.GREEN,
    "ce": theme.PURPLE,
    "cce": theme.FAINT,
}
RANGE_COLOUR = "rgba(138, 138, 138, 0.15)"  # of what lies between two ends
MAX_BOUND_OVER_REGRET = 30.0  # of the worst at the end; a bound above is only in the legend


@figure("run")
def alternatives(run: Run) -> go.Figure | None:
    """Draw a panel per cohort, the best alternative on top; None with one each."""
    verdict = run.table("verdict")
    if verdict.empty:
        return None
    alternatives_of: dict[Any, pd.DataFrame] = {}
    for cohort, rows in verdict.groupby("cohort", sort=False):
        if len(rows) > 2:
            other_alternatives = wording.alternatives(rows)
            alternatives_of[cohort] = other_alternatives.sort_values("difference", kind="stable")
    if not alternatives_of:
        return None
    names_of: dict[Any, list[str]] = {}
    for cohort, rows in alternatives_of.items():
        names_of[cohort] = [
            theme.shorten(wording.name_alternative(row)) for row in wording.records(rows)
        ]
    chart = theme.make_slotted_panels(names_of)
    for panel, (cohort, rows) in enumerate(alternatives_of.items(), start=1):
        chart.add_trace(_alternative_dots(rows, names_of[cohort]), row=panel, col=1)
        chart.add_vline(0, line={"color": theme.INK, "width": 1}, row=panel, col=1)
    chart.update_xaxes(nticks=4, tickangle=0).update_layout(showlegend=False)
    return chart.update_xaxes(title_text="difference in average loss", row=len(alternatives_of))


def _alternative_dots(rows: pd.DataFrame, names: Sequence[str]) -> go.Scatter:
    """Draw a dot per alternative at its difference in loss, with its interval as whiskers."""
    texts = []
    for name, row in zip(names, wording.records(rows), strict=True):
        texts.append(
            f"{name}<br>mean loss {row['mean_loss']:.4f}<br>"
            f"{row['better_off']} of {row['agents']} agents better off with it"
        )
    differences = rows["difference"].to_numpy(dtype=np.float64)
    # Intervals are symmetric; where there is none, no whiskers are drawn.
    half_widths = np.nan_to_num(rows["high"].to_numpy(np.float64) - differences)
    return theme.dots(
        differences,
        np.arange(len(differences)),
        "%{text}<br>difference %{x:+.4f}<extra></extra>",
        error_x={"array": half_widths, **theme.WHISKER},
        text=texts,
        marker={"color": [COLOUR_OF_KIND[kind] for kind in rows["kind"]], "size": 8},
    )


@figure("run")
def loss(run: Run) -> go.Figure | None:
    """Draw the mean loss so far of each cohort, and of the alternatives, or what they came to."""
    curves_of_cohort = _loss_courses(run) if run.has_rounds("course") else _loss_levels(run)
    panels = {cohort: curves for cohort, curves in curves_of_cohort if curves}
    if not panels:
        return None
    return theme.draw_panels(panels, pixels_per_panel=200, y="average loss")


def _loss_levels(run: Run) -> Iterator[tuple[Any, list[go.Scatter]]]:
    """Yield the course of each cohort, and a level line for the best alternative of each kind."""
    verdict = run.table("verdict")
    if verdict.empty or not run.has_rounds("regret_curves"):
        return
    losses = run.table("regret_curves")["loss"]
    for cohort, rows in wording.without_everybody(verdict).groupby("cohort", sort=False):
        mean_so_far = losses.xs(cohort, level="cohort").expanding().mean()
        first_drawn = theme.EARLY * mean_so_far.index[-1]
        rounds = thinned(mean_so_far.index[mean_so_far.index >= first_drawn].to_numpy())
        played = theme.line(
            rounds, mean_so_far[rounds], "as played", color=run.colour_of[cohort], width=3
        )
        curves = [played]
        for best in wording.best_of_each_kind(rows):
            style = {"color": theme.FAINT} | STYLE_OF_KIND[best["kind"]]
            name = theme.shorten(wording.name_alternative(best).removesuffix(" of each agent"))
            level = [best["mean_loss"]] * 2
            curves.append(theme.line(rounds[[0, -1]], level, name, **style))
        yield cohort, curves


def _loss_courses(run: Run) -> Iterator[tuple[Any, list[go.Scatter]]]:
    """Yield the course of each cohort and of each of its alternatives."""
    course = run.table("course")
    is_named = course["kind"].isin(["model", "policy"])
    colour_of = theme.assign_colours(course.loc[is_named, "name"].unique())
    title_of_kind = {"broadcast": "as played", "action": "best fixed action"}
    for cohort, rows in course.groupby("cohort", sort=False):
        drawn_rows = rows[rows["round"] >= theme.EARLY * rows["round"].max()]
        curves = []
        for (kind, name), curve in drawn_rows.groupby(["kind", "name"], sort=False):
            style = {"color": colour_of.get(name, theme.FAINT)} | STYLE_OF_KIND[str(kind)]
            title = theme.shorten(title_of_kind.get(str(kind), name))
            curves.append(theme.line(curve["round"], curve["mean_loss"], title, **style))
        yield cohort, curves


@figure("run")
def solutions(run: Run) -> go.Figure | None:
    """Draw what each cohort lost on average between the solutions of the stage game.

    None where no solution was found, or fewer than two rounds were played.
    """
    table = run.table("solutions")
    if table.empty:
        return None
    panels = {}
    for cohort, rows in table[table["mean_loss"].notna()].groupby("cohort", sort=False):
        levels = rows[~rows["name"].str.startswith("play")].set_index("name")["mean_loss"]
        course = _losses_as_played(run, cohort)
        if course is not None and len(levels):
            panels[cohort] = list(_lines_between_solutions(course, levels))
    if not panels:
        return None
    return theme.draw_panels(panels, pixels_per_panel=240, y="average loss")


def _losses_as_played(run: Run, cohort: Any) -> go.Scatter | None:
    """Draw the losses of a cohort by the finest of what the run has kept.

    This is the mean loss so far where losses of single rounds were logged, else the mean loss of
    each window, else the mean of the whole run as a level. None where these are fewer than two
    rounds, or it is no cohort of agents, such as all together.
    """
    agents = run.agents[run.agents["cohort"] == cohort]
    if agents.empty:
        return None
    style = {"color": run.colour_of[cohort], "width": 3}
    if run.has_rounds("regret_curves"):
        losses = run.table("regret_curves")["loss"]
        if cohort in losses.index.unique("cohort"):
            mean_so_far = losses.xs(cohort, level="cohort").dropna().expanding().mean()
            if len(mean_so_far) > 1:
                rounds = thinned(mean_so_far.index.to_numpy())
                return theme.line(rounds, mean_so_far[rounds], "as played", **style)
    windows = run.table("windows")
    if len(windows):
        rows = with_counts(windows[windows["agent"].isin(agents["agent"])], agents)
        steps = means_of(rows, ["first", "last"], ["mean_loss"]).dropna().reset_index()
        if len(steps):
            drawn_steps = steps.iloc[thinned(steps.index.to_numpy())]
            stairs = _stairs(run, cohort, drawn_steps, "mean_loss", width=3)
            return stairs.update(name="as played, each window alone")
    mean_loss = mean_of(agents, "mean_loss")
    if run.rounds_played < 2 or np.isnan(mean_loss):
        return None
    return theme.line([0, run.rounds_played - 1], [mean_loss] * 2, "as played, whole run", **style)


def _lines_between_solutions(
    as_played: go.Scatter, levels: pd.Series[float]
) -> Iterator[go.Scatter]:
    """Yield the range of coarse correlated equilibria, the solutions, and what was played.

    Solutions that lose the same have one line, which has all their names.
    """
    first_and_last_round = [as_played.x[0], as_played.x[-1]]
    if {"best cce", "worst cce"} <= set(levels.index):
        worst = [levels["worst cce"]] * 2
        edge = theme.line(first_and_last_round, worst, "range of cce", width=0)
        yield edge.update(showlegend=False, hoverinfo="skip")
        best = [levels["best cce"]] * 2
        up_to_edge = theme.line(first_and_last_round, best, "range of cce", width=0)
        yield up_to_edge.update(fill="tonexty", fillcolor=RANGE_COLOUR, hoverinfo="skip")
    names_at_level: dict[float, list[str]] = {}
    for name, level in levels.items():
        equal_levels = [drawn for drawn in names_at_level if np.isclose(drawn, level, rtol=1e-9)]
        drawn_level = equal_levels[0] if equal_levels else level
        names_at_level.setdefault(drawn_level, []).append(str(name))
    for level, names in names_at_level.items():
        style = _style_of_solution(names[0])
        yield theme.line(first_and_last_round, [level] * 2, ", ".join(names), **style)
    yield as_played


def _style_of_solution(name: str) -> dict[str, Any]:
    """Return the line of a solution: a colour for each concept, dots for its worst end."""
    concept = name.removeprefix("best ").removeprefix("worst ")
    dash = "dot" if name.startswith("worst ") else "dash"
    return {"color": COLOUR_OF_SOLUTION.get(concept, theme.INK), "dash": dash, "width": 1.5}


@figure("run")
def regret(run: Run) -> go.Figure | None:
    """Draw mean and worst regret and the bounds there are, a panel per cohort."""
    if not run.has_rounds("regret_curves"):
        return None
    curves = run.table("regret_curves").dropna(subset=["mean", "max"])
    rounds = thinned(curves.index.unique("round").to_numpy())
    curves = curves[curves.index.isin(rounds, level="round")]
    cohorts = list(curves.index.unique("cohort"))
    if not cohorts:
        return None
    panels = {cohort: list(_regret_lines(run, curves.loc[cohort], cohort)) for cohort in cohorts}
    has_bounds = any(_draws_a_bound(panel) for panel in panels.values())
    return theme.draw_panels(
        panels,
        pixels_per_panel=260,
        y="regret per round",
        log=theme.spans_decades(curves["mean"]) or has_bounds,
        shared_yaxes="all",
    )


def _draws_a_bound(panel: Sequence[go.Scatter]) -> bool:
    """Whether more than the two lines of regret is drawn without a click on the legend."""
    drawn_lines = [line for line in panel if line.visible != theme.LEGEND_ONLY]
    return len(drawn_lines) > 2


def _regret_lines(run: Run, curve: pd.DataFrame, cohort: Any) -> Iterator[go.Scatter]:
    """Yield mean and worst regret of a cohort, and each bound as of the rounds where it is known.

    A bound far above the regret would leave it no room: it is listed in the
    legend, and is drawn on a click.
    """
    colour = run.colour_of[cohort]
    yield theme.line(curve.index, curve["mean"], "mean", color=colour, width=1.5)
    yield theme.line(curve.index, curve["max"], "worst agent", color=colour, width=3)
    bounds = run.table("bounds")
    if bounds.empty:
        return
    bounds_of_cohort = bounds[bounds["cohort"] == cohort]
    members = run.agents[run.agents["cohort"] == cohort]
    has_guarantee = members["guarantee"] != "none"
    if has_guarantee.any() and not has_guarantee.all():  # on whose regret alone the bounds are
        yield theme.line(
            bounds_of_cohort["round"],
            bounds_of_cohort["decision_swap_regret"],
            "worst agent with a guarantee",
            color=colour,
            dash="dash",
        )
    is_regret_itself = _when_bound_is_regret(run, cohort, bounds_of_cohort["round"])
    highest_drawn_bound = MAX_BOUND_OVER_REGRET * curve["max"].iloc[-1]
    for column, (name, dash) in BOUNDS.items():
        is_drawn = bounds_of_cohort[column] < 1
        if column == "bound_from_variation":
            is_drawn &= ~is_regret_itself
        drawn_bounds = bounds_of_cohort[is_drawn]
        if drawn_bounds.empty:
            continue
        bound = theme.line(
            drawn_bounds["round"], drawn_bounds[column], name, color=theme.FAINT, dash=dash
        )
        if len(drawn_bounds) == 1:
            bound.update(mode="markers", marker={"color": theme.FAINT})
        last_bound = drawn_bounds[column].iloc[-1]
        is_far_above = highest_drawn_bound > 0 and last_bound > highest_drawn_bound
        if is_far_above:
            bound.update(visible=theme.LEGEND_ONLY, name=f"{name} (far above)")
        yield bound


def _when_bound_is_regret(run: Run, cohort: Any, rounds_played: pd.Series[int]) -> pd.Series[bool]:
    """Say after which numbers of rounds the bound given the variation was the regret itself.

    It was as long as a reference was trusted: until the first correction, or to the end.
    """
    agents = run.agents[run.agents["cohort"] == cohort]
    first_correction = agents["first_correction"].min()
    if pd.notna(first_correction):
        return rounds_played.le(int(first_correction))
    return pd.Series(wording.is_trusted(agents).any(), index=rounds_played.index)


@figure("run")
def windows(run: Run) -> go.Figure | None:
    """Draw each cohort's regret window by window; None where no window has ended."""
    table = run.table("windows")
    if table.empty:
        return None
    keys = ["cohort", "first", "last"]
    cohort_of_row = table["agent"].map(run.agents.set_index("agent")["cohort"])
    regrets = table.assign(cohort=cohort_of_row, mean=leading_regret(table))
    rows = with_counts(regrets, run.agents)
    worst = rows.groupby(keys, sort=False)["mean"].max()
    steps = means_of(rows, keys, ["mean"]).assign(max=worst).dropna()
    if steps.empty:
        return None
    cohorts = steps.index.unique("cohort")
    curves = []
    for cohort_index, cohort in enumerate(cohorts):
        steps_of_cohort = steps.loc[cohort].reset_index()
        drawn_steps = steps_of_cohort.iloc[thinned(steps_of_cohort.index.to_numpy())]
        width = theme.nested_width(cohort_index, len(cohorts))
        curves.append(_stairs(run, cohort, drawn_steps, "mean", width=1.25 * width))
        curves.append(_stairs(run, cohort, drawn_steps, "max", width=0.5 * width))
    chart = theme.draw_panels(
        {"": curves}, pixels_per_panel=300, y="regret per round", legend=len(cohorts) > 1
    )
    return theme.draw_zero_line(chart)


@figure("run", agents=MAX_IMPULSE_PANELS)
def impulse(run: Run) -> go.Figure | None:
    """Draw actions around an impulse, a panel per agent who answers; None where there is none."""
    table = run.table("impulse")
    if table.empty:
        return None
    panels: dict[Any, list[go.Scatter]] = {}
    for (cohort, agent), rows in table.groupby(["cohort", "agent"], sort=False):
        path = rows[rows["action"] >= 0]
        is_changed = (path["action"] != path["action_without"]).any()
        if not is_changed or len(panels) >= MAX_IMPULSE_PANELS:
            continue
        changed = run.line(cohort, path["offset"], path["action"])
        unchanged = run.line(cohort, path["offset"], path["action_without"], dash="dot")
        changed.update(name="with the impulse", mode="lines+markers")
        unchanged.update(name="without it")
        panels[f"{cohort}, agent {agent}"] = [changed, unchanged]
    if not panels:
        return None
    return theme.draw_panels(panels, pixels_per_panel=200, y="action", x="rounds since the impulse")


def _stairs(run: Run, cohort: Any, steps: pd.DataFrame, column: str, *, width: float) -> go.Scatter:
    """Draw a level line from the ``first`` to the ``last`` round of each step."""
    last_rounds = steps["last"] + 1
    rounds = np.stack([steps["first"], last_rounds, last_rounds], axis=1).ravel()
    levels = np.repeat(steps[column].to_numpy(), 3)
    levels[2::3] = np.nan  # which parts a step from the next
    return run.line(cohort, rounds, levels, width=width)


@figure("run")
def spread(run: Run) -> go.Figure | None:
    """Draw a histogram of regret per cohort that measured it; None where all in each are alike."""
    return _histograms(run, run.regret, "regret per round")


@figure("run", tolerance=TOLERANCE)
def exploitability(run: Run) -> go.Figure | None:
    """Draw a histogram per cohort; None where exploitability was not measured."""
    return _histograms(run, run.agents["exploitability"], "exploitability")


def _histograms(run: Run, values: pd.Series[float], axis_name: str) -> go.Figure | None:
    """Draw a histogram per cohort, headed by how many agents it shows and the worst of them."""
    rows = run.agents[["cohort"]].assign(value=values, count=run.agents.get(COUNT_COLUMN, 1))
    rows_by_cohort = {
        cohort: cohort_rows
        for cohort, cohort_rows in rows.groupby("cohort", sort=False)
        if cohort_rows["value"].notna().any()
    }
    agents_differ = any(
        len(cohort_rows["value"].dropna().unique()) > 1 for cohort_rows in rows_by_cohort.values()
    )
    if not agents_differ or not (values > 0).any():  # which the table tells in full
        return None
    low = min(0.0, float(values.min()))
    high = float(values.max())
    if high <= low:
        high = low + TOLERANCE
    edges = np.linspace(low, high, HISTOGRAM_BINS + 1)
    titles = [_histogram_title(cohort, rows_by_cohort[cohort]) for cohort in rows_by_cohort]
    chart = theme.make_panels(titles, pixels_per_panel=96, shared_xaxes="all")
    for panel, (cohort, cohort_rows) in enumerate(rows_by_cohort.items(), start=1):
        measured = cohort_rows.dropna()
        counts, _ = np.histogram(measured["value"], edges, weights=measured["count"])
        bars = go.Bar(x=(edges[1:] + edges[:-1]) / 2, y=counts, hovertemplate=BIN_HOVER)
        bars.customdata = np.stack([edges[:-1], edges[1:]], axis=1)
        bars.marker = {"color": run.colour_of[cohort], "line": {"width": 0}}
        chart.add_trace(bars, row=panel, col=1)
        tick_step = 1 if counts.max() < 5 else None
        chart.update_yaxes(title_text="agents", dtick=tick_step, row=panel)
    chart.update_xaxes(title_text=axis_name, row=len(rows_by_cohort))
    return chart.update_layout(bargap=0, showlegend=False, margin_t=44)


def _histogram_title(cohort: Any, rows: pd.DataFrame) -> str:
    """Say how many agents of a cohort are shown, how many are at 0, and which is the worst."""
    n_shown = rows.dropna()["count"].sum()
    n_agents = rows["count"].sum()
    agents_shown = f"{n_shown:,}" if n_shown == n_agents else f"{n_shown:,} of {n_agents:,}"
    n_at_zero = rows.loc[rows["value"] <= 0, "count"].sum()
    share_at_zero = f"{100 * n_at_zero / n_shown:.0f} % at 0"
    worst = f"worst {rows['value'].max():.4f}"
    return f"{theme.shorten(cohort)} ({agents_shown})<br>{share_at_zero}, {worst}"


@figure("run")
def agents(run: Run) -> go.Figure | None:
    """Draw a dot per agent, which tells who it is; None where no two would be apart."""
    drawn_agents = _agents_to_draw(run)
    if len(drawn_agents[["mean_loss", "regret"]].drop_duplicates()) < 2:
        return None
    cohorts = drawn_agents["cohort"].unique()
    title = ""
    if len(drawn_agents) < len(run.agents):
        title = f"{len(drawn_agents):,} of {len(run.agents):,} agents"
    elif len(cohorts) == 1:
        title = cohorts[0]
    chart = theme.draw_panels(
        {title: _agent_dots(run, drawn_agents, "mean_loss")},
        pixels_per_panel=380,
        x="average loss per round, in [0, 1]",
        y="regret per round",
        legend=len(cohorts) > 1,
    )
    return theme.draw_zero_line(chart)


@figure("run")
def regret_by_parameter(run: Run) -> go.Figure | None:
    """Draw a panel per number that differs between agents; None where none does."""
    drawn_agents = _agents_to_draw(run)
    numbers = drawn_agents.filter(like="param_").select_dtypes("number")
    differing = list(numbers.columns[numbers.max() > numbers.min()])
    panels = {}
    for column in differing[:MAX_PARAMETER_PANELS]:
        title = str(column).removeprefix("param_")
        panels[title] = _agent_dots(run, drawn_agents.dropna(subset=column), column)
    if not panels:
        return None
    return theme.draw_panels(
        panels,
        pixels_per_panel=240,
        x="",
        y="regret per round",
        legend=False,
        shared_xaxes=False,
    )


def _agent_dots(run: Run, drawn_agents: pd.DataFrame, x_column: str) -> Iterator[go.Scatter]:
    """Yield the dots of each cohort's agents, at their regret over a column."""
    for cohort, members in drawn_agents.groupby("cohort", sort=False):
        marks = theme.dots(members[x_column].to_numpy(), members["regret"].to_numpy(), "%{text}")
        yield marks.update(
            text=[describe_agent(agent) for agent in members.to_dict("records")],
            customdata=members["agent"].to_numpy(),
            name=theme.shorten(cohort),
            marker={"color": run.colour_of[cohort], "size": 7, "opacity": 0.6},
        )


def _agents_to_draw(run: Run) -> pd.DataFrame:
    """Return the agents that are drawn, with their ``regret``: all, or a sample with the worst."""
    measured = run.agents.assign(regret=run.regret).dropna(subset=["regret", "mean_loss"])
    if len(measured) <= MAX_DRAWN_AGENTS:
        return measured
    worst = measured["regret"].nlargest(MAX_DRAWN_AGENTS // 4).index
    not_worst = measured.index.difference(worst).to_numpy()
    n_to_sample = MAX_DRAWN_AGENTS - len(worst)
    sample = stream(0, "agent plot").choice(not_worst, n_to_sample, replace=False)
    return measured.loc[np.sort(np.concatenate([worst.to_numpy(), sample]))]


@figure("run")
def actions(run: Run) -> go.Figure | None:
    """Draw the share of each action, a panel per cohort."""
    if not run.has_rounds("actions"):
        return None
    panels: dict[Any, list[go.Scatter]] = {}
    for panel_index, (cohort, rows) in enumerate(
        run.table("actions").groupby("cohort", sort=False)
    ):
        # In this table ``which`` is the index of the action that ``value`` counts.
        counts = rows.pivot_table(index="round", columns="which", values="value", fill_value=0)
        shares = counts.div(counts.sum(axis=1).replace(0, np.nan), axis=0)
        panels[cohort] = []
        for action in map(int, counts.columns):
            colour = theme.PALETTE[action % len(theme.PALETTE)]
            name = theme.shorten(run.action_name(cohort, action))
            area = theme.line(shares.index, shares[action], name, width=0.5, color=colour)
            area.update(stackgroup=str(panel_index), hovertemplate="round %{x}: %{y:.0%}")
            panels[cohort].append(area)
    chart = theme.draw_panels(panels, pixels_per_panel=200, y="share of decisions")
    return chart.update_yaxes(range=[0, 1], tickformat=".0%")


def draw_path(path: pd.DataFrame) -> go.Figure | None:
    """Draw an agent's course: columns ``loss`` and ``regret``, indexed by round."""
    if len(path) < 2:
        return None
    curves = [theme.line(path.index, path["loss"], "as played", color=theme.BLUE, width=2)]
    best_loss = path["loss"] - path["regret"]
    if best_loss.notna().any():
        curves.append(
            theme.line(
                path.index,
                best_loss,
                "after its best replacements",
                color=theme.VERMILLION,
                width=2,
                dash="dash",
            )
        )
    return theme.draw_panels({"": curves}, pixels_per_panel=240, y="average loss per round")
