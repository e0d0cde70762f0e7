"""Figures of a study, drawn from its tables: means with 95 % intervals over seeds.

Regret over time is the mean over a cohort's logged agents at a round, each run being one
repetition. Logs are read run by run, and not at all where they are larger than ``MOST_BYTES``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from regretless.scenarios.logs.reading import log_parts, regret_curves, thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.studies.analysis.measures import MEASURES, REGRETS, interval, keys_of
from regretless.scenarios.studies.results import Study, run_table

VALUE = ("cohort", "baseline", "pairs", "mean", "low", "high")
WINDOW = ("cohort", "first", "last", "measure", "seeds", "mean", "low", "high")


@dataclass(frozen=True, eq=False)
class StudyData:
    """What the figures of a study are drawn from, each table computed once."""

    study: Study
    _made: dict[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def listed(self) -> bool:
        """Whether settings are listed: a line or a row for each sampled point shows nothing."""
        return self.study.sample is None

    def of(self, name: str) -> pd.DataFrame:
        """Return a table of the study, by the name of the method that makes it."""
        if name not in self._made:
            self._made[name] = getattr(self.study, name)()
        return self._made[name]

    @cached_property
    def curves(self) -> pd.DataFrame | None:
        """Regret over time by setting; None where the logs are too large."""
        if not self.listed:
            return pd.DataFrame()
        return setting_curves(self.study, setting_names(self.of("parameters")))

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Mean regret by window and setting, of the finest regret that was kept."""
        found = self.study.windows() if self.listed and self.study.has_windows else pd.DataFrame()
        for measure in (f"{regret}_mean" for regret in reversed(REGRETS)) if len(found) else ():
            if (found["measure"] == measure).any():
                shown = found[found["measure"] == measure]
                return shown.assign(setting=setting_names(shown, beside=WINDOW))
        return pd.DataFrame()


def setting_names(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> pd.Series:
    """Name the setting of each row by the values of its keys."""
    keys = keys_of(frame, beside=beside)
    rows = frame[keys].astype(str).agg(", ".join, axis=1) if keys else "the scenario as it is"
    names = pd.Series("" if frame.empty else rows, index=frame.index, dtype="str")
    return names.set_axis(frame["run"]) if "run" in frame else names


MOST_BYTES = 400_000_000
FEWEST, POINTS = 20, 120  # of a curve
TOGETHER = 12_000  # points of all settings, so that a page of many stays small
COLUMNS = ["setting", "cohort", "round", "seeds", "mean", "low", "high"]


def setting_curves(study: Study, settings: pd.Series[str]) -> pd.DataFrame | None:
    """Average the regret logs of a study: ``COLUMNS``, a row per setting, cohort and round.

    ``settings`` names each run's setting, by run. None where the logs are too large.
    """
    homes = study.homes()
    logs = (home / "regret_log.parquet" for home in homes.values())
    if sum(log.stat().st_size for log in logs if log.exists()) > MOST_BYTES:
        return None
    points = int(np.clip(TOGETHER // max(settings.nunique(), 1), FEWEST, POINTS))
    parts = []
    for run, home in homes.items():
        curve = regret_curves(log_parts(home), run_table(home, "agents"))
        if len(curve):
            rounds = thinned(curve.index.unique("round").to_numpy(), points)
            mean = curve["mean"][curve.index.isin(rounds, level="round")].dropna().reset_index()
            parts.append(mean.assign(setting=settings[run]))
    if not parts or max(part["round"].nunique() for part in parts) < 2:
        return pd.DataFrame(columns=COLUMNS)
    groups = pd.concat(parts).groupby(["setting", "cohort", "round"], sort=False)["mean"]
    rows = [[*place, len(own), *interval(own.to_numpy())] for place, own in groups]
    return pd.DataFrame(rows, columns=COLUMNS)


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


@figure("study")
def effects(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key; None without any."""
    return marked(data.of("contrasts"))


@figure("study")
def by_parameter(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key and range of a parameter; None without any."""
    table = data.of("contrasts_by_parameter")
    words = [table[name] for name in ("cohort", "parameter", "range")]
    return marked(table.assign(cohort=words[0] + ", " + words[1] + " " + words[2]))


@figure("study")
def interactions(data: StudyData) -> go.Figure | None:
    """Draw means by two keys, a panel per pair and cohort; None with fewer than two keys."""
    table = data.of("pair_effects").query("measure in @SHOWN").dropna(subset="mean")
    measures = [name for name in SHOWN if (table["measure"] == name).any()]
    groups = list(table.groupby(["key", "other_key", "cohort"], sort=False))[:MOST_PAIRS]
    if not groups:
        return None
    names = [f"{cohort}: {key} by {other}" for (key, other, cohort), _ in groups]
    made = theme.panels(list(map(theme.heading, names)), rows=len(groups), each=230)
    for row, ((_, other, _), own) in enumerate(groups, 1):
        made.update_yaxes(title_text=SHOWN[measures[0]], row=row, col=1)
        slots = {value: i for i, value in enumerate(own["value"].unique())}
        shades = setting_colours(list(own["other_value"].unique()))
        words = [theme.short(value, 30) for value in slots]
        made.update_xaxes(tickvals=list(slots.values()), ticktext=words, row=row, col=1)
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
    buttons = [_button(made, measure, *axes) for measure in measures]
    theme.choose(made, buttons, direction="down")
    theme.grow(made, len(made.data) // len(measures))
    return made


def _button(made: go.Figure, measure: str, *axes: str) -> dict[str, Any]:
    """Return the entry that shows the marks of one measure and names it on the axes."""
    words = SHOWN.get(measure, measure)
    shown = {"visible": [mark.meta == measure for mark in made.data]}
    titles = {f"{axis}.title.text": words for axis in axes}
    return {"label": words, "method": "update", "args": [shown, titles]}


@figure("study")
def sensitivity(data: StudyData) -> go.Figure | None:
    """Draw the sensitivities of a sampled study; None of any other."""
    if data.listed:
        return None
    return marked(data.of("sensitivity").rename(columns={"runs": "seeds"}))


def marked(
    table: pd.DataFrame, *, panel: str = "key", slot: str = "value", label: str = "cohort"
) -> go.Figure | None:
    """Draw a panel per key; a menu chooses the measure, one's own first. None without any."""
    found = table["measure"].unique()
    shown = {name: name for name in found if name not in (*MEASURES, *SHOWN)} | SHOWN
    own = table[table["measure"].isin(shown)].dropna(subset="mean")
    measures = [name for name in shown if (own["measure"] == name).any()]
    if not measures:
        return None
    slots = {key: list(rows[slot].unique()) for key, rows in own.groupby(panel, sort=False)}
    shades, seen = theme.colours(own[label].unique()), set[Any]()
    words = {key: [theme.short(name, 40) for name in values] for key, values in slots.items()}
    made = theme.slotted(words, marks=len(shades))
    for row, (key, values) in enumerate(slots.items(), 1):
        groups = own[own[panel] == key].groupby(["measure", label], sort=False)
        for (measure, name), points in groups:
            at = [values.index(value) for value in points[slot]]
            marks = go.Scatter(
                x=points["mean"].to_numpy(),
                y=np.array(at) + _shift(list(shades).index(name), len(shades)),
                error_x=_reach(points),
                text=[theme.short(value, WIDE) for value in points[slot]],
                customdata=points[["low", "high", "seeds"]].to_numpy(dtype=np.float64),
                name=theme.short(name, 40),
                legendgroup=name,
                mode="markers",
                marker={"color": shades[name], "size": 8},
                meta=measure,
                visible=measure == measures[0],
                showlegend=(measure, name) not in seen,
                hovertemplate="%{text}<br>mean %{x:.5g}" + INTERVAL + "<br>%{customdata[2]} seeds",
            )
            made.add_trace(marks, row=row, col=1)
            seen.add((measure, name))
        made.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    axis = made.get_subplot(len(slots), 1).xaxis.update(title_text=shown[measures[0]]).plotly_name
    if len(measures) > 1:
        theme.choose(made, [_button(made, m, axis) for m in measures], direction="down")
    return made


@figure("study")
def value(data: StudyData) -> go.Figure | None:
    """Draw the value of the forecast; None without a baseline."""
    table = data.of("value").assign(measure="difference of welfare, own units")
    table["setting"] = setting_names(data.of("value"), beside=VALUE)
    table["against"] = "against " + table["baseline"].astype(str)
    named = table.rename(columns={"pairs": "seeds"})
    return marked(named, panel="cohort", slot="setting", label="against")


def _shift(place: int, count: int) -> float:
    """Set marks side by side within a slot of width 1."""
    return 0.6 * ((place + 0.5) / count - 0.5)


def _reach(points: pd.DataFrame) -> dict[str, Any]:
    reach = np.nan_to_num((points["high"] - points["mean"]).to_numpy())
    return {"type": "data", "array": reach, **theme.WHISKER}


@figure("study")
def curves(data: StudyData) -> go.Figure | None:
    """Draw regret over time; None where the logs have none or are too large."""
    table = data.curves
    if table is None or table.empty:
        return None

    def line(own: pd.DataFrame, place: int, colour: str) -> go.Scatter:
        style = {"color": colour, "width": min(theme.nested(place, settings), 3.0)}
        curve = theme.line(own["round"], own["mean"].clip(lower=theme.LEAST), "", **style)
        text = {"text": own["mean"].map("{:.5g}".format)}
        return curve.update(text, hovertemplate="round %{x}: %{text}" + INTERVAL)

    settings = table["setting"].nunique()
    made = _by_setting(table, line, each=240)
    if theme.spans_decades(table["mean"]):
        theme.logarithmic(made, [table["mean"]])
    return made


@figure("study")
def windows(data: StudyData) -> go.Figure | None:
    """Draw regret by window; None where no windows were kept."""
    table = data.windows
    if table.empty:
        return None
    count = table["setting"].nunique()
    spans = sorted({(row["first"], row["last"]) for row in table.to_dict("records")})

    def dots(own: pd.DataFrame, place: int, colour: str) -> go.Scatter:
        places = [spans.index(span) for span in zip(own["first"], own["last"], strict=True)]
        return go.Scatter(
            x=[at + _shift(place, count) for at in places],
            y=own["mean"].to_numpy(),
            error_y=_reach(own),
            text=["rounds {} to {}".format(*spans[at]) for at in places],
            mode="markers",
            marker={"color": colour, "size": 7},
            hovertemplate="%{text}: %{y:.5g}" + INTERVAL,
        )

    made = _by_setting(table, dots, each=200, x="rounds of the window")
    theme.zero(made)
    shown = range(0, len(spans), -(-len(spans) // 8))
    names = ["{} to {}".format(*spans[i]) for i in shown]
    return made.update_xaxes(tickvals=list(shown), ticktext=names)


def _by_setting(
    table: pd.DataFrame, draw: Callable[[pd.DataFrame, int, str], go.Scatter], **layout: Any
) -> go.Figure:
    """Draw the rows of each setting in a panel per cohort; too many for a legend have none."""
    shades = setting_colours(list(table["setting"].unique()))
    panels: dict[Any, list[go.Scatter]] = {cohort: [] for cohort in table["cohort"].unique()}
    for (cohort, setting), own in table.groupby(["cohort", "setting"], sort=False):
        mark = draw(own, list(shades).index(str(setting)), shades[str(setting)])
        label = {"name": theme.short(setting, WIDE), "customdata": own[["low", "high"]].to_numpy()}
        panels[cohort].append(mark.update(label))
    legend = len(shades) <= NAMED
    return theme.stacked(panels, y="regret per round", legend=legend, **layout)
