"""Figures of a study, drawn from its tables: means with 95 % intervals over seeds.

Where one seed alone gives no interval, its mean stands as a bare dot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.study_data import StudyData
from regretless.scenarios.studies.analysis.measures import MEASURES

SHOWN = {  # measures of the effects, with their units
    "gain": "gain in utility per round, own units",
    "loss_gain": "gain in average loss per round, in [0, 1]",
    "decision_swap_regret_worst": "decision swap regret per round, worst",
    "decision_swap_regret_mean": "decision swap regret per round, mean",
    "mean_loss": "average loss per round, in [0, 1]",
    "welfare_mean": "welfare: mean utility per round, own units",
    "welfare_gini": "Gini of welfare",
    "exploitability_worst": "exploitability, worst",
}
MOST_PAIRS = 12  # panels of interactions
NAMED = 16  # settings that a legend can hold
WIDE = 90  # letters where a pointer or a legend tells a setting
INTERVAL = "<br>95 % interval %{customdata[0]:.5g} to %{customdata[1]:.5g}"


def setting_colours(labels: Sequence[str]) -> dict[str, str]:
    """Give each setting its colour: told apart where there are few, else a scale in their order."""
    if len(labels) < len(theme.PALETTE):
        return theme.colours(labels)
    scale = sample_colorscale("Viridis", list(np.linspace(0, 0.85, len(labels))))
    return dict(zip(labels, scale, strict=True))


@figure(
    "study",
    "effects",
    section="Effects",
    title="What each value changes, against the first value of its key",
    caption=(
        "Mean differences of runs with the same seed, averaged over all other keys, with 95 % "
        "intervals over seeds; the menu chooses the measure."
    ),
)
def effects(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key; None without any."""
    return marked(data.contrasts)


@figure(
    "study",
    "by_parameter",
    section="By parameter",
    title="What each value changes, among agents alike in a parameter",
    caption=(
        "As above, for the thirds of each cohort by a parameter of its utility, or for its values "
        "where it has few; bars are 95 % intervals over seeds."
    ),
)
def by_parameter(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key and range of a parameter; None without any."""
    table = data.by_parameter
    words = [table[name] for name in ("cohort", "parameter", "range")]
    return marked(table.assign(cohort=words[0] + ", " + words[1] + " " + words[2]))


@figure(
    "study",
    "interactions",
    section="Interactions",
    title="Mean of a measure at each pair of values of two keys",
    caption=(
        "A line per value of the second key, with 95 % intervals over seeds: where lines are not "
        "parallel, the effect of one key depends on the other; the menu chooses the measure."
    ),
)
def interactions(data: StudyData) -> go.Figure | None:
    """Draw means by two keys, a panel per pair and cohort; None with fewer than two keys."""
    table = data.pairs[data.pairs["measure"].isin(SHOWN)].dropna(subset="mean")
    measures = [name for name in SHOWN if (table["measure"] == name).any()]
    groups = list(table.groupby(["key", "other_key", "cohort"], sort=False))[:MOST_PAIRS]
    if not groups:
        return None
    names = [f"{cohort}: {key} by {other}" for (key, other, cohort), _ in groups]
    made = theme.panels([theme.heading(theme.short(n, 80)) for n in names], rows=len(groups),
                        each=230)  # fmt: skip
    for row, ((_, other, _), own) in enumerate(groups, 1):
        made.update_yaxes(title_text=SHOWN[measures[0]], row=row, col=1)
        slots = {value: i for i, value in enumerate(own["value"].unique())}
        shades = setting_colours(list(own["other_value"].unique()))
        made.update_xaxes(tickvals=list(slots.values()), row=row, col=1)
        made.update_xaxes(ticktext=[theme.short(v, 30) for v in slots], row=row, col=1)
        for (measure, value), line in own.groupby(["measure", "other_value"], sort=False):
            curve = go.Scatter(
                x=line["value"].map(slots).to_numpy(),
                y=line["mean"].to_numpy(),
                error_y=_reach(line),
                customdata=line[["low", "high"]].to_numpy(),
                name=theme.short(f"{str(other).rpartition('.')[2]} = {value}", WIDE),
                legendgroup=f"{row} {value}",
                meta=measure,
                visible=measure == measures[0],
                line={"color": shades[str(value)]},
                hovertemplate="mean %{y:.5g}" + INTERVAL,
            )
            made.add_trace(curve, row=row, col=1)
    axes = [made.get_subplot(row + 1, 1).yaxis.plotly_name for row in range(len(groups))]
    buttons = [_button(made, measure, SHOWN[measure], *axes) for measure in measures]
    theme.choose(made, buttons, direction="down")
    theme.grow(made, len(made.data) // len(measures))
    return made


def _shown(made: go.Figure, measure: str) -> dict[str, Any]:
    """Return the entry that shows the marks of one measure."""
    shown = {"visible": [mark.meta == measure for mark in made.data]}
    return {"label": SHOWN.get(measure, measure), "method": "update", "args": [shown]}


@figure(
    "study",
    "sensitivity",
    section="Sensitivity",
    title="How strongly each sampled key moves a measure",
    caption=(
        "Rank correlations from -1 to 1, or Sobol's indices: the share of a measure's variance "
        "that the key explains alone (first order) and with all interactions (total order); bars "
        "are 95 % intervals."
    ),
)
def sensitivity(data: StudyData) -> go.Figure | None:
    """Draw the sensitivities of a sampled study; None of any other."""
    return None if data.sensitivity is None else marked(data.sensitivity)


def marked(table: pd.DataFrame) -> go.Figure | None:
    """Draw a panel per key; a menu chooses the measure, one's own first. None without any."""
    found = table["measure"].unique()
    shown = {name: name for name in found if name not in (*MEASURES, *SHOWN)} | SHOWN
    own = table[table["measure"].isin(shown)].dropna(subset="mean")
    measures = [name for name in shown if (own["measure"] == name).any()]
    if not measures:
        return None
    slots = {key: list(rows["value"].unique()) for key, rows in own.groupby("key", sort=False)}
    shades = theme.colours(own["cohort"].unique())
    words = {key: [theme.short(name, 40) for name in told] for key, told in slots.items()}
    made = theme.slotted(words, marks=len(shades))
    for row, (key, values) in enumerate(slots.items(), 1):
        for measure in measures:
            for i, (cohort, colour) in enumerate(shades.items()):
                chosen = (own["key"] == key) & (own["cohort"] == cohort)
                points = own[chosen & (own["measure"] == measure)]
                at = [values.index(v) + _shift(i, len(shades)) for v in points["value"]]
                marks = _marks(points, at, points["value"], cohort, colour)
                marks.update(meta=measure, visible=measure == measures[0])
                made.add_trace(marks.update(showlegend=row == 1), row=row, col=1)
        made.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    axis = made.get_subplot(len(slots), 1).xaxis.update(title_text=shown[measures[0]]).plotly_name
    buttons = [_button(made, measure, shown[measure], axis) for measure in measures]
    theme.choose(made, buttons, direction="down")
    return made


def _button(made: go.Figure, measure: str, words: str, *axes: str) -> dict[str, Any]:
    """Return the entry that shows the marks of one measure and names it on the axes."""
    entry = _shown(made, measure) | {"label": words}
    return entry | {"args": [*entry["args"], {f"{axis}.title.text": words for axis in axes}]}


@figure(
    "study",
    "value",
    section="Value of the forecast",
    title="Welfare with Decision-Swap minus welfare with another forecaster",
    caption=(
        "Means and 95 % intervals over seeds of runs with the same seed, in the utility's own "
        "units; positive values: welfare is higher with Decision-Swap."
    ),
)
def value(data: StudyData) -> go.Figure | None:
    """Draw the value of the forecast; None without a baseline."""
    table, labels = data.value, data.value_names
    if table.empty or table["mean"].isna().all():
        return None
    shades = theme.colours(table["baseline"].unique())
    cohorts = dict(iter(table.groupby("cohort", sort=False)))
    slots = {name: list(labels[own.index].unique()) for name, own in cohorts.items()}
    words = {name: list(map(theme.short, told)) for name, told in slots.items()}
    made = theme.slotted(words, marks=len(shades))
    for row, (cohort, own) in enumerate(cohorts.items(), 1):
        for i, (baseline, colour) in enumerate(shades.items()):
            points = own[own["baseline"] == baseline]
            names = labels[points.index]
            at = [slots[cohort].index(name) + _shift(i, len(shades)) for name in names]
            marks = _marks(points, at, names, f"against {baseline}", colour)
            made.add_trace(marks.update(showlegend=row == 1), row=row, col=1)
        made.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    title = "difference of welfare, own units"
    return made.update_xaxes(title_text=title, row=len(slots))


def _shift(place: int, count: int) -> float:
    """Set marks side by side within a slot of width 1."""
    return 0.6 * ((place + 0.5) / count - 0.5)


def _marks(
    points: pd.DataFrame, at: Sequence[float], names: Iterable[Any], label: str, colour: str
) -> go.Scatter:
    """Draw means and intervals at the given places of a vertical axis, each with its name."""
    known = [column for column in ("low", "high", "seeds", "pairs") if column in points]
    return go.Scatter(
        x=points["mean"].to_numpy(),
        y=at,
        error_x=_reach(points),
        text=[theme.short(name, WIDE) for name in names],
        customdata=points[known].to_numpy(dtype=np.float64),
        name=theme.short(label, 40),
        legendgroup=label,
        mode="markers",
        marker={"color": colour, "size": 8},
        hovertemplate="%{text}<br>mean %{x:.5g}" + INTERVAL + "<br>%{customdata[2]} " + known[-1],
    )


def _reach(points: pd.DataFrame) -> dict[str, Any]:
    reach = np.nan_to_num((points["high"] - points["mean"]).to_numpy())
    return {"type": "data", "array": reach, **theme.WHISKER}


@figure(
    "study",
    "curves",
    section="Regret",
    title="Regret per round so far, by setting",
    caption=(
        "Mean over agents and seeds of decision swap regret (swap regret, where that was not "
        "measured); 0 is drawn at the lower edge of a logarithmic axis."
    ),
)
def curves(data: StudyData) -> go.Figure | None:
    """Draw regret over time; None where the logs have none or are too large."""
    table = data.curves
    if table is None or table.empty:
        return None
    made = _by_cohort(table, each=240)
    settings = table["setting"].nunique()
    for row, place, colour, own, style in _settings(table):
        width = min(theme.nested(place, settings), 3.0)
        curve = theme.line(
            own["round"], own["mean"].clip(lower=theme.LEAST), "", color=colour, width=width
        )
        curve.update(style, text=own["mean"].map("{:.5g}".format))
        curve.update(hovertemplate="round %{x}: %{text}" + INTERVAL)
        made.add_trace(curve, row=row, col=1)
    if theme.spans_decades(table["mean"]):
        theme.logarithmic(made, [table["mean"]])
    return made.update_xaxes(title_text="round", row=table["cohort"].nunique())


@figure(
    "study",
    "windows",
    section="Regret",
    title="Regret per round of each window of rounds, by setting",
    caption="Each window taken alone, mean over agents, with 95 % intervals over seeds.",
)
def windows(data: StudyData) -> go.Figure | None:
    """Draw regret by window; None where no windows were kept."""
    table = data.windows
    if table.empty:
        return None
    made, count = _by_cohort(table, each=200), table["setting"].nunique()
    spans = sorted({(row["first"], row["last"]) for row in table.to_dict("records")})
    for row, place, colour, own, style in _settings(table):
        places = [spans.index(span) for span in zip(own["first"], own["last"], strict=True)]
        marks = go.Scatter(
            x=[at + _shift(place, count) for at in places],
            y=own["mean"].to_numpy(),
            error_y=_reach(own),
            text=["rounds {} to {}".format(*spans[at]) for at in places],
            mode="markers",
            marker={"color": colour, "size": 7},
            hovertemplate="%{text}: %{y:.5g}" + INTERVAL,
        )
        made.add_trace(marks.update(style), row=row, col=1)
    theme.zero(made)
    shown = range(0, len(spans), -(-len(spans) // 8))
    names = ["{} to {}".format(*spans[i]) for i in shown]
    made.update_xaxes(tickvals=list(shown), ticktext=names)
    return made.update_xaxes(title_text="rounds of the window", row=table["cohort"].nunique())


def _by_cohort(table: pd.DataFrame, each: int) -> go.Figure:
    """Make a panel per cohort; settings that are too many for a legend have none."""
    cohorts = table["cohort"].unique()
    made = theme.panels(list(map(theme.heading, cohorts)), rows=len(cohorts), each=each)
    made.update_layout(showlegend=table["setting"].nunique() <= NAMED)
    return made.update_yaxes(title_text="regret per round")


def _settings(
    table: pd.DataFrame,
) -> Iterator[tuple[int, int, str, pd.DataFrame, dict[str, Any]]]:
    """Yield a cohort's row, a setting's place, its colour, part of the table, name and interval."""
    shades, seen = setting_colours(list(table["setting"].unique())), set[str]()
    for row, (_, cohort) in enumerate(table.groupby("cohort", sort=False), 1):
        for place, (setting, colour) in enumerate(shades.items()):
            own = cohort[cohort["setting"] == setting]
            if len(own):
                style = {
                    "name": theme.short(setting, WIDE),
                    "customdata": own[["low", "high"]].to_numpy(),
                }
                shown = {"legendgroup": setting, "showlegend": setting not in seen}
                seen.add(setting)
                yield row, place, colour, own, style | shown
