"""A run's tables in the units of its data and of its agents, with the names of the data's columns.

    read_run(DIR).in_units().rounds     precipitation, temp_max in place of y_0, y_1
    read_run(DIR).in_units().agents     mean_loss and regrets in the agent's ``unit``

In the files outcomes are scaled into [0, 1], and losses are normalised. An outcome that was clipped
stays at the end of its scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from regretless.scenarios.logs.column_notes import named_columns_of

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
    quantities = named_columns_of(config)
    if not quantities:
        return rounds
    in_units = rounds.copy()
    free_names: dict[str, str] = {}
    for column, quantity in quantities.items():
        if column not in rounds:
            continue
        low, high = quantity.scale
        in_units[column] = low + (high - low) * rounds[column]
        if quantity.name in in_units and _are_equal(in_units[quantity.name], in_units[column]):
            in_units = in_units.drop(columns=quantity.name)  # it stands behind all other columns
        if quantity.name not in in_units and quantity.name not in free_names.values():
            free_names[column] = quantity.name
    return in_units.rename(columns=free_names)


def _are_equal(column: "pd.Series[Any]", other: "pd.Series[Any]") -> bool:
    """Whether two columns have the same numbers, up to rounding."""
    if not pd.api.types.is_numeric_dtype(column):
        return False
    return bool(np.allclose(column, other, equal_nan=True))


def agents_in_units(agents: pd.DataFrame) -> pd.DataFrame:
    """Return the table of agents with losses and regrets in the units of each agent's utility."""
    in_units = agents.copy()
    scale = agents["loss_scale"]
    in_units["mean_loss"] = agents["loss_offset"] + scale * agents["mean_loss"]
    for column in REGRETS:
        if column in agents:
            in_units[column] = scale * agents[column]
    return in_units
