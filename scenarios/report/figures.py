"""The registry of figures, and what those of a run are drawn from.

    @figure("run")
    def regret(run: Run) -> go.Figure | None: ...

Each figure is one small function, and its texts stand in ``figures.toml``. ``run`` names the kind
of page, and what the function is handed: a ``Run``, a ``study_data.StudyData`` or a
``training_page.Training``. A function returns None where its data are not there. Reports, the live
page and notebooks draw from here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.io import to_json

from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.report import theme
from regretless.scenarios.report.theme import NamesOfRounds

Draw = Callable[[Any], go.Figure | None]


@dataclass(frozen=True)
class Figure:
    """A figure of a page.

    Attributes
    ----------
    name, section, title, caption : str
        Its name, where it stands, and its texts.
    draw : callable
        Draws it from the data of a page; None where they have nothing for it.
    dated : bool
        Whether its horizontal axis is rounds, which may have dates.
    chart : plotly.graph_objects.Figure or None
        What was drawn; None before.
    """

    name: str
    draw: Draw
    section: str
    title: str
    caption: str
    dated: bool = False
    chart: Any = None

    @property
    def json(self) -> str:
        """The chart as JSON that cannot end the element that it stands in."""
        text = str(to_json(self.chart, engine="json"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e")


TEXTS = tomllib.loads(Path(__file__).with_name("figures.toml").read_text(encoding="utf-8"))
FIGURES: dict[str, dict[str, Figure]] = {page: {} for page in TEXTS}


def figure(page: str, name: str = "", **numbers: Any) -> Callable[[Draw], Draw]:
    """Register a figure of a kind of page, under its function's name or another one.

    ``numbers`` stand in its caption.
    """

    def register(draw: Draw) -> Draw:
        figure_name = name or draw.__name__
        texts = TEXTS[page][figure_name]
        texts = texts | {"caption": texts["caption"].format(**numbers)}
        FIGURES[page][figure_name] = Figure(figure_name, draw, **texts)
        return draw

    return register


def draw_figures(
    page: str, data: Any, names: Collection[str] | None = None, *, undated: Collection[str] = ()
) -> dict[str, Figure]:
    """Draw the figures of a page that the data have something for, in the order of their texts.

    Parameters
    ----------
    names : collection of str, optional
        Which figures are drawn; all by default.
    undated : collection of str
        Which figures keep the numbers of rounds although the data have their dates.
    """
    figures = {}
    for name in TEXTS[page]:
        if names is not None and name not in names:
            continue
        undrawn = FIGURES[page][name]
        chart = undrawn.draw(data)
        if chart is None:
            continue
        if undrawn.dated and name not in undated and data.dates is not None:
            theme.show_dates(chart, data.dates)
        figures[name] = replace(undrawn, chart=chart)
    return figures


@dataclass(frozen=True, eq=False)
class Run:
    """What the figures of a run are drawn from.

    Attributes
    ----------
    config : mapping
        The resolved scenario.
    tables : mapping
        The tables of a run directory, or of a market in memory (``live.course``), by name.
    action_names : mapping
        Names of the actions of cohorts, where the market gives them others than the scenario.
    rounds_played : int
        How many rounds were played, logged or not; 0 if that is not known.
    """

    config: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    action_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    rounds_played: int = 0

    def action_name(self, cohort: Any, action: int) -> str:
        """Name an action of a cohort."""
        names_of_cohort: dict[str, Any] = {}
        for spec in self.config.get("cohort", []):
            names_of_cohort[spec["name"]] = spec.get("action_names")
        names_of_cohort.update(self.action_names)
        names: Sequence[str] = names_of_cohort.get(str(cohort)) or ()
        return names[action] if action < len(names) else f"action {action}"

    def table(self, name: str) -> pd.DataFrame:
        """Return a table; an empty one if it was not kept."""
        return self.tables.get(name, pd.DataFrame())

    def has_rounds(self, name: str) -> bool:
        """Whether a table has at least two rounds."""
        table = self.table(name)
        if table.empty:
            return False
        # Where the round is no column, it is the last level of the index.
        rounds = table["round"] if "round" in table else table.index.get_level_values(-1)
        return len(np.unique(rounds)) > 1

    @property
    def agents(self) -> pd.DataFrame:
        """The table ``agents``."""
        return self.tables["agents"]

    @cached_property
    def colour_of(self) -> dict[Any, str]:
        """Colour of each cohort, the same in all figures."""
        return theme.assign_colours(self.agents["cohort"].unique())

    def line(self, cohort: Any, x: object, y: Any, **style: Any) -> go.Scatter:
        """Draw a curve of a cohort in its colour."""
        style = {"color": self.colour_of.get(cohort, theme.INK)} | style
        return theme.line(x, y, theme.shorten(cohort), **style)

    @cached_property
    def regret(self) -> pd.Series[float]:
        """Decision swap regret of each agent, swap regret where the first was not kept."""
        return leading_regret(self.agents)

    @property
    def goods(self) -> list[str]:
        """Names of the outcomes, which in a market are what the goods yield."""
        data = self.config.get("data") or {}
        adversary = self.config.get("adversary") or {}
        names = data.get("outcomes") or adversary.get("outcome_names")
        if names:
            return list(names)
        n_outcomes = sum(str(column).startswith("y_") for column in self.table("rounds"))
        return [f"outcome {index}" for index in range(n_outcomes)]

    @property
    def dates(self) -> NamesOfRounds | None:
        """What the rounds are called in the data, where there is anything."""
        data = self.config.get("data") or {}
        index = data.get("index")
        rounds = self.table("rounds")
        if index not in rounds:
            return None
        return NamesOfRounds(rounds.set_index("round")[index], str(index), data.get("dates"))


def describe_agent(agent: Mapping[Any, Any]) -> str:
    """Write what is known of an agent, a line each; what was not measured is left out.

    ``agent`` is a row of the table ``agents``.
    """
    utility_name = theme.plain(agent["utility"])
    response = theme.plain(agent["response"])
    lines = [f"agent {agent['agent']}, {utility_name}, {response}"]
    n_agents = agent.get("count", 1)
    if n_agents > 1:
        lines.append(f"stands for {n_agents:,} agents")
    mean_utility = -(agent["loss_offset"] + agent["loss_scale"] * agent["mean_loss"])
    numbers = {"mean utility per round, own units": mean_utility}
    for column in ("mean_loss", "swap_regret", "decision_swap_regret", "exploitability"):
        numbers[column.replace("_", " ")] = agent[column]
    for name, value in numbers.items():
        if np.isfinite(value):
            lines.append(f"{name}: {value:.4g}")
    return "<br>".join(lines)
