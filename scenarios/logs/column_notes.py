"""What the columns of a run mean: their names in the data beside their numbers, units and scales.

``run_directory`` passes every table through ``ColumnNotes`` before it is written. The table
``rounds`` of a scenario with data gets each outcome and context again, under the name of the data
and in its units, behind all other columns: ``demand`` beside ``y_0``
(``market.logs.named_columns``). In Parquet files columns also carry field metadata, all of it text:

    name      the column in the data of which this one is
    unit      of the data, or of the losses, where all agents have the same
    scale     JSON [a, b]: the values in that unit which 0 and 1 stand for
    meaning   a sentence
    actions   JSON, of ``regret_log.action``: the names of each cohort's actions

A reader gets back to the data's units by one line, with ``pyarrow.parquet`` as ``pq``:

    low, high = json.loads(pq.read_schema(file).field("y_0").metadata[b"scale"])

Then y_0 is low + (high - low) y_0 in the data's units.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from regretless.market.logs.named_columns import UNIT_SCALE, NamedColumn, columns_to_name

MAX_ACTION_NAMES = 10_000  # of all cohorts; more would take longer to read than the log
OF_DATA = "in the units of the data"  # the meaning of a column that has the data's own name
CENSORED = "whether the outcome was known to be at least so much only, and is an estimate here"
LOSS = "a loss, normalised: 0 is the best and 1 the worst that there can be"
REGRET = "a difference of normalised losses, average per round"
BOUND = "a bound on a regret, average per round of normalised losses"
# Losses and differences of losses by table; ``bound`` columns have bounds.
LOSSES = {
    "agents": ("mean_loss",),
    "models": ("mean_loss",),
    "verdict": ("mean_loss",),
    "regret_log": ("loss",),
}
DIFFERENCES = {
    "agents": (
        *("external_regret", "swap_regret", "omniprediction_regret", "decision_swap_regret"),
        *("contextual_swap_regret", "regret_to_models"),
    ),
    "models": ("regret_to_model",),
    "regret_log": ("external_regret", "swap_regret", "decision_swap_regret"),
    "swaps": ("contribution",),
    "verdict": ("difference", "low", "high"),
    "bounds": ("decision_swap_regret",),
}
BOUNDS = ("bound", "bound_from_bias", "bound_from_variation")


@dataclass(frozen=True, kw_only=True)
class Quantity(NamedColumn):
    """An outcome or a feature of the data, as a scenario names it."""

    unit: str
    meaning: str

    @property
    def metadata(self) -> dict[str, str]:
        """The field metadata of a column in which it is scaled into [0, 1]."""
        entries = {"name": self.name, "scale": json.dumps(self.scale), "meaning": self.meaning}
        if self.unit:
            entries["unit"] = self.unit
        return entries


class ColumnNotes:
    """Adds names, units and meanings to the tables of one run.

    Parameters
    ----------
    manifest : mapping
        The run's: its resolved configuration, and the names of its actions.
    agents : DataFrame
        The run's table of agents, which has the units of losses.
    """

    def __init__(self, manifest: Mapping[str, Any], agents: pd.DataFrame) -> None:
        config = manifest["config"]
        self._outcomes = outcomes_of(config)
        self._features = features_of(config)
        self._named_columns = named_columns_of(config)
        self._has_data = bool(config.get("data"))
        self._actions: dict[str, Any] = dict(manifest.get("actions") or {})
        self._loss_scale = _common_loss_scale(agents)

    def add(self, table: str, rows: pa.Table) -> pa.Table:
        """Return the rows of a table with named columns and field metadata."""
        if table == "rounds" and self._has_data:
            rows = self._with_named_columns(rows)
        fields = []
        for field in rows.schema:
            metadata = self._metadata_of(table, field.name)
            if metadata and field.metadata is None:
                field = field.with_metadata(metadata)  # noqa: PLW2901
            fields.append(field)
        schema = pa.schema(fields, metadata=rows.schema.metadata)
        return pa.Table.from_arrays(rows.columns, schema=schema)

    def _with_named_columns(self, rows: pa.Table) -> pa.Table:
        """Return the table of rounds with outcomes and context under their names as well."""
        for column, quantity in columns_to_name(rows.column_names, self._named_columns).items():
            low, high = quantity.scale
            values = rows[column]
            if quantity.scale != UNIT_SCALE:
                values = pc.add(pc.multiply(values, high - low), low)
            metadata = {"of": column, "meaning": f"{column}, {OF_DATA}"}
            if quantity.unit:
                metadata["unit"] = quantity.unit
            rows = rows.append_column(
                pa.field(quantity.name, values.type, metadata=metadata), values
            )
        return rows

    def _metadata_of(self, table: str, column: str) -> dict[str, str]:
        """Return the field metadata of a column; empty where there is nothing to say."""
        if table == "rounds" and column == "round":
            return {"meaning": "the number of the round, from 0"}
        if table == "rounds" and column == "censored":
            return {"meaning": CENSORED}
        kind, _, number = column.rpartition("_")
        if number.isdigit():
            index = int(number)
            is_outcome = (table, kind) in {("rounds", "y"), ("forecasts", "label")}
            if is_outcome and index < len(self._outcomes):
                return self._outcomes[index].metadata
            if (table, kind) == ("rounds", "x") and index < len(self._features):
                return self._features[index].metadata
        if column in LOSSES.get(table, ()):
            return {"meaning": LOSS, **self._loss_scale}
        if column in DIFFERENCES.get(table, ()) or (table in DIFFERENCES and column in BOUNDS):
            return {"meaning": BOUND if column in BOUNDS else REGRET, **self._difference_scale}
        if (table, column) == ("regret_log", "action"):
            return self._metadata_of_actions()
        return {}

    @property
    def _difference_scale(self) -> dict[str, str]:
        """Unit and scale of differences of losses: 0 stays 0."""
        if not self._loss_scale:
            return {}
        low, high = json.loads(self._loss_scale["scale"])
        return self._loss_scale | {"scale": json.dumps([0.0, high - low])}

    def _metadata_of_actions(self) -> dict[str, str]:
        metadata = {"meaning": "the number of the action that was played, from 0"}
        n_names = sum(len(names) for names in self._actions.values())
        if 0 < n_names <= MAX_ACTION_NAMES:
            metadata["actions"] = json.dumps(self._actions, ensure_ascii=False)
        return metadata


def outcomes_of(config: Mapping[str, Any]) -> list[Quantity]:
    """Return the outcomes of a resolved scenario that have names, in their order."""
    data = config.get("data")
    adversary = config.get("adversary") or {}
    source = data or adversary
    names = data["outcomes"] if data else adversary.get("outcome_names") or []
    quantities = []
    for name in names:
        low, high = (source.get("scale") or {}).get(name, UNIT_SCALE)
        unit = (source.get("units") or {}).get(name, "")
        meaning = f"outcome {name}, scaled: 0 stands for {low:g}, 1 for {high:g}"
        scale = (float(low), float(high))
        quantities.append(Quantity(name=name, unit=unit, scale=scale, meaning=meaning))
    return quantities


def features_of(config: Mapping[str, Any]) -> list[Quantity]:
    """Return the context of a resolved scenario's data, which is not scaled, in its order."""
    names = (config.get("data") or {}).get("context") or []
    return [
        Quantity(name=name, unit="", meaning=f"context {name}, as in the data") for name in names
    ]


def named_columns_of(config: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return the columns of the table of rounds that have names in a scenario's data."""
    if not config.get("data"):
        return {}
    columns = {f"y_{j}": outcome for j, outcome in enumerate(outcomes_of(config))}
    columns |= {f"x_{k}": feature for k, feature in enumerate(features_of(config))}
    return columns


def columns_of_data(file: Path) -> list[str]:
    """Return the columns of a table of rounds that repeat numbered ones under the data's names."""
    return [field.name for field in pq.read_schema(file) if b"of" in (field.metadata or {})]


def _common_loss_scale(agents: pd.DataFrame) -> dict[str, str]:
    """Return unit and scale of losses where all agents have the same, else nothing."""
    columns = ["loss_scale", "loss_offset", "unit"]
    if not len(agents) or not set(columns) <= set(agents):
        return {}
    scale_offset_and_unit = agents[columns].drop_duplicates()
    if len(scale_offset_and_unit) > 1:
        return {}
    scale, offset, unit = scale_offset_and_unit.iloc[0]
    if not isinstance(unit, str) or not unit:
        return {}
    return {"unit": unit, "scale": json.dumps([float(offset), float(offset + scale)])}
