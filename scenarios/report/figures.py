"""The registry of figures: each is one small function, and its texts stand in ``figures.toml``.

    @figure("run")
    def regret(run: Run) -> go.Figure | None: ...

``run`` names the kind of page, and what the function is handed: a ``run_data.Run``, a
``studies.Study`` or a ``training_page.Training``. A function returns None where its data are not
there. Reports, the live page and notebooks draw from here.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_json

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
    "run": ("run_figures", "forecast_figures", "market_figures"),
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
