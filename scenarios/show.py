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
from regretless.scenarios.report import (  # noqa: F401 - they register their figures
    forecast_figures,
    market_figures,
    run_figures,
)
from regretless.scenarios.report.figures import FIGURES, Run, draw_figures
from regretless.scenarios.verdict import sentences

TABLES = ("agents", "verdict", "rounds", "forecasts", "bounds", "windows", "edges", "measures")


class Figures(dict[str, go.Figure]):
    """Figures by name, which a notebook displays one below the other, under a sentence.

    The display holds Plotly's script, 5 MB, so that it works without a network.
    """

    sentence: str = ""

    def __repr__(self) -> str:
        return f"Figures({', '.join(self)})"

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.sentence)}</p>"]
        has_plotly = False
        for name, chart in self.items():
            parts.append(f"<h4>{escape(FIGURES['run'][name].title)}</h4>")
            parts.append(chart.to_html(full_html=False, include_plotlyjs=not has_plotly))
            has_plotly = True
        return "\n".join(parts)


def show(config: dict[str, Any], model: MarketModel, name: str | None) -> Any:
    """Draw one figure of a model of a resolved scenario, or all that it has something for."""
    known_names = FIGURES["run"]
    if name is not None and name not in known_names:
        raise UserError(f"show({name!r}): there is no such figure; {closest(name, known_names)}")
    if not model.played:
        raise UserError("show: no round is played yet; run() or step() first")
    tables = {table: getattr(model, f"{table}_frame")() for table in TABLES}
    tables["forecast_scores"] = model.scores_frame()
    regret_log = model.regret_frame()
    if len(regret_log):
        tables["regret_curves"] = regret_curves([regret_log], tables["agents"])
        tables["actions"] = _count_actions(regret_log, tables["agents"])
    if model.solved.names:
        tables["solutions"] = model.solutions()
    filled_tables = {name: table for name, table in tables.items() if len(table)}
    run = Run(config, filled_tables, model.called, rounds_played=model.played)
    drawn_figures = draw_figures("run", run, None if name is None else [name])
    figures = Figures({key: figure.chart for key, figure in drawn_figures.items()})
    figures.sentence = " ".join(sentences(tables["verdict"], tables["agents"]))
    if name is None:
        return figures
    if name not in figures:
        raise UserError(f"show({name!r}): nothing to draw; play more rounds, or keep its measure")
    return figures[name]


def _count_actions(regret_log: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Return how many agents chose each action, by round and cohort."""
    cohort_of_agent = agents.set_index("agent")["cohort"]
    cohorts = regret_log["agent"].map(cohort_of_agent).rename("cohort")
    keys = [regret_log["round"], cohorts, regret_log["action"].rename("which")]
    one_each = pd.Series(1, regret_log.index)
    n_agents = with_counts(regret_log, agents).get(COUNT_COLUMN, one_each)
    return n_agents.groupby(keys, sort=False).sum().rename("value").reset_index()
