"""Figures of a market in memory, for a notebook: those of the report, by name."""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from regretless.market.core.errors import UserError, closest
from regretless.market.logs.counted import COUNT_COLUMN, with_counts
from regretless.market.model import MarketModel
from regretless.scenarios.logs.reading import regret_curves
from regretless.scenarios.report import market_figures  # noqa: F401 - and run_figures: registered
from regretless.scenarios.report.figures import FIGURES, Run, drawn
from regretless.scenarios.verdict import sentences


class Figures(dict[str, go.Figure]):
    """Figures by name, which a notebook displays one below the other, under a sentence.

    The display holds Plotly's script, 5 MB, so that it works without a network.
    """

    sentence: str = ""

    def __repr__(self) -> str:
        return f"Figures({', '.join(self)})"

    def _repr_html_(self) -> str:
        parts, kinds = [f"<p>{escape(self.sentence)}</p>"], FIGURES["run"]
        for place, (name, figure) in enumerate(self.items()):
            parts.append(f"<h4>{escape(kinds[name].title)}</h4>")
            parts.append(figure.to_html(full_html=False, include_plotlyjs=place == 0))
        return "\n".join(parts)


def shown(config: dict[str, Any], model: MarketModel, name: str | None) -> Any:
    """Draw one figure of a model of a resolved scenario, or all that it has something for."""
    names = FIGURES["run"]
    if name is not None and name not in names:
        raise UserError(f"show({name!r}): there is no such figure; {closest(name, names)}")
    if not model.played:
        raise UserError("show: no round is played yet; run() or step() first")
    frames = ("agents", "verdict", "rounds", "forecasts", "bounds", "windows", "edges", "measures")
    tables = {frame: getattr(model, f"{frame}_frame")() for frame in frames}
    tables["forecast_scores"], log = model.scores_frame(), model.regret_frame()
    agents = tables["agents"]
    if len(log):
        tables["regret_curves"] = regret_curves([log], agents)
        cohort = log["agent"].map(agents.set_index("agent")["cohort"]).rename("cohort")
        keys = [log["round"], cohort, log["action"].rename("which")]
        heads = with_counts(log, agents).get(COUNT_COLUMN, pd.Series(1, log.index))
        counts = heads.groupby(keys, sort=False).sum()  # of agents who chose each action
        tables["actions"] = counts.rename("value").reset_index()
    filled = {own: table for own, table in tables.items() if len(table)}
    found = drawn("run", Run(config, filled, model.called), None if name is None else [name])
    made = Figures((key, one.made) for key, one in found.items())
    made.sentence = " ".join(sentences(tables["verdict"], agents))
    if name is not None and name not in made:
        raise UserError(f"show({name!r}): nothing to draw; play more rounds, or keep its measure")
    return made if name is None else made[name]
