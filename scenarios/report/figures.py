"""The registry of figures: each is one small function, registered once with what it shows.

    @figure("run", "regret", section="Regret", title="...", caption="...")
    def regret(run: Run) -> go.Figure | None: ...

``run`` names the kind of page, and what the function is handed: a ``run_data.Run``, a
``studies.Study`` or a ``training_page.Training``. A function returns None where its data are not
there. Reports, the live page and notebooks draw from here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_json

Draw = Callable[[Any], go.Figure | None]


@dataclass(frozen=True)
class Figure:
    """A kind of figure.

    Parameters
    ----------
    section : str
        Heading of the page under which it stands.
    title : str
        What it shows.
    caption : str
        How to read it, in a sentence.
    dated : bool
        Whether its horizontal axis is rounds, which the data may have dates for.
    """

    name: str
    section: str
    title: str
    caption: str
    draw: Draw
    dated: bool = False


@dataclass(frozen=True)
class Drawn:
    """A figure that was drawn, for a template."""

    kind: Figure
    made: go.Figure
    caption: str

    @property
    def data(self) -> str:
        """The figure as JSON that cannot end the element that it stands in."""
        text = str(to_json(self.made, engine="json"))
        return text.replace("<", "\\u003c").replace(">", "\\u003e")


FIGURES: dict[str, dict[str, Figure]] = {"run": {}, "study": {}, "training": {}}
MODULES = {
    "run": ("run_figures", "forecast_figures", "market_figures", "book_figures"),
    "study": ("study_figures",),
    "training": ("training_page",),
}


def figure(page: str, name: str, **told: Any) -> Callable[[Draw], Draw]:
    """Register a figure of a kind of page; ``told`` are the fields of ``Figure``."""

    def register(draw: Draw) -> Draw:
        FIGURES[page][name] = Figure(name, draw=draw, **told)
        return draw

    return register


def known(page: str) -> dict[str, Figure]:
    """Return the figures of a kind of page by name, in the order in which they stand there."""
    for module in MODULES[page]:
        importlib.import_module(f"regretless.scenarios.report.{module}")
    return FIGURES[page]


def drawn(page: str, data: Any, names: Collection[str] | None = None) -> dict[str, Drawn]:
    """Draw the figures of a page that the data have something for; all by default."""
    found = {}
    for name, kind in known(page).items():
        if (names is None or name in names) and (made := kind.draw(data)) is not None:
            found[name] = Drawn(kind, made, kind.caption)
    return found
