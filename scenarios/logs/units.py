"""A run's tables in the units of its data and of its agents, with the names of the data's columns.

    read_run(DIR).in_units().rounds     precipitation, temp_max in place of y_0, y_1
    read_run(DIR).in_units().agents     mean_loss and regrets in the agent's ``unit``

In the files outcomes are scaled into [0, 1], and losses are normalised. An outcome that was clipped
stays at the end of its scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

UNIT_SCALE = (0.0, 1.0)
REGRETS = (  # columns of agents that are differences of losses, or bounds on them
    *("external_regret", "swap_regret", "omniprediction_regret", "decision_swap_regret"),
    *("contextual_swap_regret", "bound_from_bias", "bound_from_variation", "bound"),
    *("contextual_swap_bound", "regret_to_models", "regret_to_models_bound"),
)  # exploitability is of a leader with payoffs in [0, 1]; it is in no unit of the agents


@dataclass(frozen=True, eq=False)
class RunInUnits:
    """Two tables of a run in their own units.

    Parameters
    ----------
    rounds : DataFrame
        A row per round. Of a scenario with data, outcomes and context have the names of their
        columns, and outcomes their units; all else is as in the run's table.
    agents : DataFrame
        A row per agent: average loss, regrets and bounds in its ``unit``, per round.
    """

    rounds: pd.DataFrame
    agents: pd.DataFrame


def rounds_in_units(rounds: pd.DataFrame, config: Mapping[str, Any]) -> pd.DataFrame:
    """Return the table of rounds with the names and units of the data of a resolved scenario.

    A name that the table has already stays with it, and the data's column keeps its number.
    """
    data = config.get("data")
    if not data:
        return rounds
    in_units = rounds.copy()
    new_names: dict[str, str] = {}
    scales = data.get("scale") or {}
    for j, outcome in enumerate(data["outcomes"]):
        column = f"y_{j}"
        if column in in_units:
            low, high = scales.get(outcome, UNIT_SCALE)
            in_units[column] = low + (high - low) * in_units[column]
            new_names[column] = outcome
    for k, feature in enumerate(data.get("context") or []):
        if f"x_{k}" in in_units:
            new_names[f"x_{k}"] = feature
    taken = [*rounds.columns]
    free_names: dict[str, str] = {}
    for column, name in new_names.items():
        if name not in taken:
            free_names[column] = name
            taken.append(name)
    return in_units.rename(columns=free_names)


def agents_in_units(agents: pd.DataFrame) -> pd.DataFrame:
    """Return the table of agents with losses and regrets in the units of each agent's utility."""
    in_units = agents.copy()
    scale = agents["loss_scale"]
    in_units["mean_loss"] = agents["loss_offset"] + scale * agents["mean_loss"]
    for column in REGRETS:
        if column in agents:
            in_units[column] = scale * agents[column]
    return in_units
