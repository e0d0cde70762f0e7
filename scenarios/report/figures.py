"""The registry of figures, and what those of a run are drawn from.

    @figure("run")
    def regret(run: Run) -> go.Figure | None: ...

Each figure is one small function, and its texts stand in ``figures.toml``. ``run`` names the kind
of page, and what the function is handed: a ``Run``, a ``study_figures.StudyData`` or a
``training_page.Training``. A function returns None where its data are not there. Reports, the live
page and notebooks draw from here.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.io import to_json

from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.report import theme

Draw = Callable[[Any], go.Figure | None]


@dataclass(frozen=True)
class Figure:
    """A kind of figure: its texts, and whether its horizontal axis is rounds, which have dates."""

    name: str
    draw: Draw
    section: str
    title: str
    caption: str
    dated: bool = False


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn, for a template."""

    kind: Figure
    made: go.Figure

    @property
    def data(self) -> str:
        """The figure as JSON that cannot end the element that it stands in."""
        text = str(to_json(self.made, engine="json"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e")


TEXTS = tomllib.loads(Path(__file__).with_name("figures.toml").read_text(encoding="utf-8"))
FIGURES: dict[str, dict[str, Figure]] = {page: {} for page in TEXTS}
MODULES = {
    "run": ("run_figures", "market_figures"),
    "study": ("study_figures",),
    "training": ("training_page",),
}


def figure(page: str, name: str = "", **numbers: Any) -> Callable[[Draw], Draw]:
    """Register a figure of a kind of page, under its function's name; its caption has numbers."""

    def register(draw: Draw) -> Draw:
        texts = TEXTS[page][name or draw.__name__]
        texts = texts | {"caption": texts["caption"].format(**numbers)}
        FIGURES[page][name or draw.__name__] = Figure(name or draw.__name__, draw, **texts)
        return draw

    return register


def known(page: str) -> dict[str, Figure]:
    """Return the figures of a kind of page by name, in the order of ``figures.toml``."""
    for module in MODULES[page]:
        importlib.import_module(f"regretless.scenarios.report.{module}")
    return {name: FIGURES[page][name] for name in TEXTS[page]}


def drawn(page: str, data: Any, names: Collection[str] | None = None) -> dict[str, Drawn]:
    """Draw the figures of a page that the data have something for; all by default."""
    wanted = {n: kind for n, kind in known(page).items() if names is None or n in names}
    made = {name: kind.draw(data) for name, kind in wanted.items()}
    return {name: Drawn(wanted[name], one) for name, one in made.items() if one is not None}


Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Run:
    """The tables of a run directory, or of a market in memory (``live.session``), and its file."""

    config: Mapping[str, Any]
    tables: Tables
    called: Mapping[str, Sequence[str]] = field(default_factory=dict)  # actions, by cohort

    @property
    def action_names(self) -> dict[str, Sequence[str]]:
        """Names of the actions of each cohort whose actions have names."""
        cohorts = self.config.get("cohort", [])
        listed = {c["name"]: c["action_names"] for c in cohorts if c.get("action_names")}
        return listed | dict(self.called)

    def table(self, name: str) -> pd.DataFrame:
        """Return a table; an empty one if it was not kept."""
        return self.tables.get(name, pd.DataFrame())

    @property
    def agents(self) -> pd.DataFrame:
        """The table ``agents``."""
        return self.tables["agents"]

    @cached_property
    def shades(self) -> dict[Any, str]:
        """Colour of each cohort, the same in all figures."""
        return theme.colours(self.agents["cohort"].unique())

    def line(self, cohort: Any, x: object, y: Any, **style: Any) -> go.Scatter:
        """Draw a curve of a cohort in its colour."""
        style = {"color": self.shades.get(cohort, theme.INK)} | style
        return theme.line(x, y, theme.short(cohort), **style)

    @cached_property
    def regret(self) -> pd.Series[float]:
        """Decision swap regret of each agent, swap regret where the first was not kept."""
        return leading_regret(self.agents)

    @property
    def goods(self) -> list[str]:
        """Names of the outcomes, which in a market are what the goods yield."""
        data, adversary = self.config.get("data") or {}, self.config.get("adversary") or {}
        named = data.get("outcomes") or adversary.get("outcome_names")
        width = sum(str(column).startswith("y_") for column in self.table("rounds"))
        return list(named or (f"outcome {i}" for i in range(width)))

    @property
    def outcome_ends(self) -> dict[str, tuple[float, float]]:
        """What 0 and 1 stand for, of each outcome by name and unit, in the data's own units."""
        data = self.config.get("data") or self.config.get("adversary") or {}
        scale, units = data.get("scale", {}), data.get("units", {})
        called = {n: f"{n}, {units[n]}" if n in units else n for n in self.goods}
        return {word: tuple(scale.get(name, (0.0, 1.0))) for name, word in called.items()}

    @property
    def days(self) -> tuple[Any, pd.Series[Any]] | None:
        """Names of the rounds in the data, with what they are called, where there are any."""
        index = (self.config.get("data") or {}).get("index")
        rounds = self.table("rounds")
        return (index, rounds.set_index("round")[index]) if index in rounds else None

    def long(self, name: str) -> bool:
        """Whether a table has at least two rounds."""
        table = self.table(name)
        rounds = table["round"] if "round" in table else table.index.get_level_values(-1)
        return len(np.unique(rounds)) > 1 if len(table) else False


def described(agent: Mapping[Any, Any]) -> str:
    """Write what is known of an agent, a line each; what was not measured is left out."""
    utility = -(agent["loss_offset"] + agent["loss_scale"] * agent["mean_loss"])
    numbers = {"mean utility per round, own units": utility}
    for column in ("mean_loss", "swap_regret", "decision_swap_regret", "exploitability"):
        numbers[column.replace("_", " ")] = agent[column]
    rule, response = theme.plain(agent["utility"]), theme.plain(agent["response"])
    lines = [f"agent {agent['agent']}, {rule}, {response}"]
    many = agent.get("count", 1)
    lines += [f"stands for {many:,} agents"] if many > 1 else []
    lines += [f"{word}: {value:.4g}" for word, value in numbers.items() if np.isfinite(value)]
    return "<br>".join(lines)
