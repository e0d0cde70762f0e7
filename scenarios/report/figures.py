"""The registry of figures, and what those of a run are drawn from.

    @figure("run")
    def regret(run: Run) -> go.Figure | None: ...

Each figure is one small function, and its texts stand in ``figures.toml``. ``run`` names the kind
of page, and what the function is handed: a ``Run``, a ``study_page.StudyData`` or a
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

Draw = Callable[[Any], go.Figure | None]


@dataclass(frozen=True)
class Figure:
    """A figure: its texts, whether its horizontal axis is rounds, which have dates, and ``made``.

    ``made`` is a ``plotly.graph_objects.Figure``, None before it is drawn.
    """

    name: str
    draw: Draw
    section: str
    title: str
    caption: str
    dated: bool = False
    made: Any = None

    @property
    def data(self) -> str:
        """The figure as JSON that cannot end the element that it stands in."""
        text = str(to_json(self.made, engine="json"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e")


TEXTS = tomllib.loads(Path(__file__).with_name("figures.toml").read_text(encoding="utf-8"))
FIGURES: dict[str, dict[str, Figure]] = {page: {} for page in TEXTS}


def figure(page: str, name: str = "", **numbers: Any) -> Callable[[Draw], Draw]:
    """Register a figure of a kind of page, under its function's name; its caption has numbers."""

    def register(draw: Draw) -> Draw:
        texts = TEXTS[page][name or draw.__name__]
        texts = texts | {"caption": texts["caption"].format(**numbers)}
        FIGURES[page][name or draw.__name__] = Figure(name or draw.__name__, draw, **texts)
        return draw

    return register


def drawn(
    page: str, data: Any, names: Collection[str] | None = None, *, undated: Collection[str] = ()
) -> dict[str, Figure]:
    """Draw the figures of a page that the data have something for, in the order of their texts.

    All by default; of a run with dates where the data have them, but for ``undated``.
    """
    found = {}
    for name in TEXTS[page]:
        kind = FIGURES[page][name]
        made = kind.draw(data) if names is None or name in names else None
        if made is not None:
            if kind.dated and name not in undated and data.days is not None:
                theme.dated(made, *data.days)
            found[name] = replace(kind, made=made)
    return found


Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Run:
    """The tables of a run directory, or of a market in memory (``live.session``), and its file."""

    config: Mapping[str, Any]
    tables: Tables
    called: Mapping[str, Sequence[str]] = field(default_factory=dict)  # actions, by cohort

    def action(self, cohort: Any, which: int) -> str:
        """Name an action of a cohort."""
        listed = {own["name"]: own.get("action_names") for own in self.config.get("cohort", [])}
        names: Sequence[str] = (listed | dict(self.called)).get(str(cohort)) or ()
        return names[which] if which < len(names) else f"action {which}"

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
    def days(self) -> tuple[pd.Series[Any], Any] | None:
        """What the rounds are called in the data, and the name of that, where there are any."""
        index = (self.config.get("data") or {}).get("index")
        rounds = self.table("rounds")
        return (rounds.set_index("round")[index], index) if index in rounds else None

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
    if (many := agent.get("count", 1)) > 1:
        lines.append(f"stands for {many:,} agents")
    lines += [f"{word}: {value:.4g}" for word, value in numbers.items() if np.isfinite(value)]
    return "<br>".join(lines)
