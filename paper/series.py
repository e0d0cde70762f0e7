"""Loss and regret on ten real series that are not in the repository.

    python -m pip install bokeh_sampledata river pmdarima plotnine

The series are columns of tables that these packages hold, from their first row on; one with fewer
rows than rounds is left out. Outcomes are scaled by the series' least and greatest value, returns
by 0.06. Fifty agents with five actions each listen: where there is one outcome, 20 newsvendors and
30 who want it near a target, with exponent 1, 2 or 3; else ten each of CES, Cobb-Douglas,
Leontief, CARA and mean-variance. What is measured and wanted is that of ``skill``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module, resources
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w

from paper.harness import Row, Table
from paper.study_table import TO_MODELS
from paper.tables import SKILL
from regretless import load
from regretless.market.model import MarketModel
from regretless.scenarios.studies.design import read_study

RETURN = 0.06
CONTEXT = ("hour", "half_hour", "weekend", "rose_yesterday")  # columns that are no outcomes
LISTENERS: dict[str, dict[str, tuple[int, dict[str, Any]]]] = {  # agents and parameters
    "one": {
        "newsvendor": (20, {"underage": [1.0, 4.0], "overage": [0.5, 2.0]}),
        "lp-target": (30, {"p": {"choices": [1.0, 2.0, 3.0]}}),
    },
    "many": {
        "ces": (10, {"rho": {"choices": [0.5, 1.0, 2.0]}}),
        "cobb-douglas": (10, {}),
        "leontief": (10, {}),
        "cara": (10, {"risk_aversion": [0.5, 2.0]}),
        "mean-variance": (10, {"risk_aversion": [0.5, 2.0], "reference": 0.5}),
    },
}


def held(package: str, path: str) -> pd.DataFrame:
    """Read a table that a package holds."""
    with resources.as_file(resources.files(package) / path) as file:
        return pd.read_csv(file)


def by_hour(package: str, path: str, time: str, value: str) -> pd.DataFrame:
    """Read a value with the hour of the day."""
    table = held(package, path)
    hours = table[time].str.slice(11, 13).astype(int)
    return pd.DataFrame({"hour": hours, "value": table[value]})


def returns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of daily returns, with whether all together rose the day before."""
    rose = (table.mean(axis=1) > 0).astype(int).shift(fill_value=0)
    return table.clip(-RETURN, RETURN).assign(rose_yesterday=rose)


def stocks() -> pd.DataFrame:
    """Read the daily returns of three firms, of days on which all three were traded."""
    table = held("bokeh_sampledata", "_data/stocks.csv.gz")
    prices = table.pivot_table(index="Date", columns="Ticker", values="Adj Close")
    return returns(prices[["AAPL", "IBM", "MSFT"]].pct_change().dropna())


def demand() -> pd.DataFrame:
    """Read the half-hourly demand for electricity in England and Wales, from a Monday on."""
    value = np.asarray(import_module("pmdarima.datasets").load_taylor())
    at = np.arange(value.size)
    return pd.DataFrame({"half_hour": at % 48, "weekend": at // 48 % 7 // 5, "value": value})


SEA = ("time (UTC)", "temperature (celsius)")
SERIES: dict[str, Callable[[], pd.DataFrame]] = {
    "glucose": lambda: by_hour("bokeh_sampledata", "_data/CGM.csv.gz", "datetime", "glucose"),
    "sea": lambda: by_hour("bokeh_sampledata", "_data/sea_surface_temperature.csv.gz", *SEA),
    "water": lambda: by_hour("river.datasets", "water-flow.csv", "Time", "Water flow [l/s]"),
    "demand": demand,
    "sunspots": lambda: pd.DataFrame(
        {"value": np.asarray(import_module("pmdarima.datasets").load_sunspots())}
    ),
    "stocks": stocks,
    "index": lambda: returns(held("river.datasets", "sp500.csv.gz")[["JPM", "KO", "XOM"]] / 100),
    "polls": lambda: (
        held("river.datasets", "trump_approval.csv.gz")[["gallup", "rasmussen", "you_gov"]]
        .interpolate()
        .dropna()
    ),
    "economy": lambda: held("plotnine.data", "economics.csv")[["psavert", "uempmed", "unemploy"]],
    "cycling": lambda: held("bokeh_sampledata", "_data/cycling.csv.gz")[
        ["power", "cadence", "speed"]
    ],
}


@cache
def tables() -> dict[str, pd.DataFrame]:
    """Read the series of the packages that are installed."""
    found = {}
    for name, read in SERIES.items():
        with suppress(ImportError, FileNotFoundError):
            found[name] = read()
    return found


def outcomes(table: pd.DataFrame) -> list[str]:
    """List the columns that are foretold."""
    return [str(column) for column in table if column not in CONTEXT]


def data_keys(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return what a scenario says of a series."""
    told, context = outcomes(table), [column for column in table if column in CONTEXT]
    ends = {column: [float(table[column].min()), float(table[column].max())] for column in told}
    if "rose_yesterday" in table:
        ends = {column: [-RETURN, RETURN] for column in told}
    return {"file": f"{name}.csv", "outcomes": told, "scale": ends, "context": context}


def market(
    name: str, table: pd.DataFrame, *, rounds: int, seed: int, keys: dict[str, Any] | None = None
) -> MarketModel:
    """Build the market of a series and its listeners, a block for each cohort."""
    listeners = LISTENERS["one" if len(outcomes(table)) == 1 else "many"]
    cohorts = [
        {"name": utility, "utility": utility, "count": count, "actions": 5}
        | {"parameters": parameters, "measures": ["external", "swap", "decision_swap"]}
        for utility, (count, parameters) in listeners.items()
    ]
    told = {"name": name, "rounds": min(rounds, len(table)), "data": data_keys(name, table)}
    with tempfile.TemporaryDirectory() as place:
        table.to_csv(Path(place) / f"{name}.csv", index=False)
        file = Path(place) / "scenario.toml"
        file.write_text(tomli_w.dumps(told | {"cohort": cohorts}), "utf-8")
        return load(str(file), **(keys or {})).build(seed=seed)


def on_series(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play a series with a forecast."""
    name, forecast = instance
    table, keys = tables()[name], read_study("skill").spec.grid["forecast"][forecast]
    if len(table) >= rounds:
        model = market(name, table, rounds=rounds, seed=seed, keys=keys)
        model.run()
        agents, told = model.agents_frame(), model.game.blocks[0].forecaster.described()
        row = {"stream": name, "forecast": forecast, "seed": seed, "rounds": rounds}
        row |= {"mean_loss": agents["mean_loss"].mean(), "kept": told.get("kept", np.nan)}
        row |= agents.reindex(columns=TO_MODELS).max()
        yield row | {"regret": agents["decision_swap_regret"].max()}


TABLES = {
    "series": Table(
        on_series,
        ["stream", "forecast"],
        lambda: list(product(tables(), read_study("skill").spec.grid["forecast"])),
        1000,
        10,
        layout=lambda table: SKILL.text(table).replace("20 agents", "50 agents"),
    )
}
