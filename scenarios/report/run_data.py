"""What the figures of a run are drawn from: its tables, and names from its configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from regretless.scenarios.logs.reading import leading_regret
from regretless.scenarios.report import theme

Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True, eq=False)
class Run:
    """The tables of a run directory, or of a market in memory, and its resolved configuration.

    Beside the tables of ``market.logs`` there may be ``regret_curves`` (``logs.curves``), and of
    a market in memory ``course``, ``owned``, ``actions`` (``live.watched``).
    """

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
        return {
            ", ".join([name, units[name]] if name in units else [name]): tuple(
                scale.get(name, (0.0, 1.0))
            )
            for name in self.goods
        }

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
    numbers = {"mean utility per round, own units": utility, "mean loss": agent["mean_loss"]}
    for column in ("swap_regret", "decision_swap_regret", "exploitability"):
        numbers[column.replace("_", " ")] = agent[column]
    rule, response = theme.plain(agent["utility"]), theme.plain(agent["response"])
    lines = [f"agent {agent['agent']}, {rule}, {response}"]
    many = agent.get("count", 1)
    lines += [f"stands for {many:,} agents"] if many > 1 else []
    lines += [f"{word}: {value:.4g}" for word, value in numbers.items() if np.isfinite(value)]
    return "<br>".join(lines)
