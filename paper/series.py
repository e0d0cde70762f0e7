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
from dataclasses import dataclass
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
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.studies.design import read_study

MAX_RETURN = 0.06  # that is told; the scale of returns
CONTEXT = (  # columns that are no outcomes
    *("hour", "half_hour", "weekend", "rose_yesterday"),
    *("workday", "weekday", "month", "day_of_five"),
)


@dataclass(frozen=True)
class Listeners:
    """A cohort: its utility, how many agents, and the utility's parameters."""

    utility: str
    count: int
    parameters: dict[str, Any]


LISTENERS_OF_ONE_OUTCOME = (
    Listeners("newsvendor", 20, {"underage": [1.0, 4.0], "overage": [0.5, 2.0]}),
    Listeners("lp-target", 30, {"p": {"choices": [1.0, 2.0, 3.0]}}),
)
LISTENERS_OF_MANY_OUTCOMES = (
    Listeners("ces", 10, {"rho": {"choices": [0.5, 1.0, 2.0]}}),
    Listeners("cobb-douglas", 10, {}),
    Listeners("leontief", 10, {}),
    Listeners("cara", 10, {"risk_aversion": [0.5, 2.0]}),
    Listeners("mean-variance", 10, {"risk_aversion": [0.5, 2.0], "reference": 0.5}),
)


def read_packaged(package: str, path: str) -> pd.DataFrame:
    """Read a table that a package holds."""
    with resources.as_file(resources.files(package) / path) as file:
        return pd.read_csv(file)


def by_hour(package: str, path: str, time: str, value: str) -> pd.DataFrame:
    """Read the column ``value`` with the hour of the day, from the column ``time``."""
    table = read_packaged(package, path)
    hours = table[time].str.slice(11, 13).astype(int)
    return pd.DataFrame({"hour": hours, "value": table[value]})


def returns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of daily returns, with whether all together rose the day before."""
    rose = (table.mean(axis=1) > 0).astype(int).shift(fill_value=0)
    return table.clip(-MAX_RETURN, MAX_RETURN).assign(rose_yesterday=rose)


def stocks() -> pd.DataFrame:
    """Read the daily returns of three firms, of days on which all three were traded."""
    table = read_packaged("bokeh_sampledata", "_data/stocks.csv.gz")
    prices = table.pivot_table(index="Date", columns="Ticker", values="Adj Close")
    return returns(prices[["AAPL", "IBM", "MSFT"]].pct_change().dropna())


def demand() -> pd.DataFrame:
    """Read the half-hourly demand for electricity in England and Wales, from a Monday on."""
    value = np.asarray(import_module("pmdarima.datasets").load_taylor())
    half_hours = np.arange(value.size)
    weekday = half_hours // 48 % 7  # 0 is a Monday
    return pd.DataFrame({"half_hour": half_hours % 48, "weekend": weekday // 5, "value": value})


def sunspots() -> pd.DataFrame:
    """Read the monthly number of sunspots."""
    return pd.DataFrame({"value": np.asarray(import_module("pmdarima.datasets").load_sunspots())})


def index() -> pd.DataFrame:
    """Read the daily returns of three firms of an index."""
    table = read_packaged("river.datasets", "sp500.csv.gz")
    return returns(table[["JPM", "KO", "XOM"]] / 100)


def polls() -> pd.DataFrame:
    """Read the approval of a president by three pollsters, interpolated between polls."""
    table = read_packaged("river.datasets", "trump_approval.csv.gz")
    return table[["gallup", "rasmussen", "you_gov"]].interpolate().dropna()


def economy() -> pd.DataFrame:
    """Read the rate of saving, the weeks of unemployment and the unemployed, by month."""
    return read_packaged("plotnine.data", "economics.csv")[["psavert", "uempmed", "unemploy"]]


def cycling() -> pd.DataFrame:
    """Read the power, cadence and speed of a cyclist."""
    table = read_packaged("bokeh_sampledata", "_data/cycling.csv.gz")
    return table[["power", "cadence", "speed"]]


SERIES: dict[str, Callable[[], pd.DataFrame]] = {
    "glucose": lambda: by_hour("bokeh_sampledata", "_data/CGM.csv.gz", "datetime", "glucose"),
    "sea": lambda: by_hour(
        "bokeh_sampledata",
        "_data/sea_surface_temperature.csv.gz",
        "time (UTC)",
        "temperature (celsius)",
    ),
    "water": lambda: by_hour("river.datasets", "water-flow.csv", "Time", "Water flow [l/s]"),
    "demand": demand,
    "sunspots": sunspots,
    "stocks": stocks,
    "index": index,
    "polls": polls,
    "economy": economy,
    "cycling": cycling,
}


@cache
def tables() -> dict[str, pd.DataFrame]:
    """Read the series of the packages that are installed."""
    tables_of_name = {}
    for name, read in SERIES.items():
        with suppress(ImportError, FileNotFoundError):
            tables_of_name[name] = read()
    return tables_of_name


def instances() -> list[tuple[str, str]]:
    """List the series that are installed, each with every forecast of ``skill``.

    UserError if there is none.
    """
    if not tables():
        cure = "python -m pip install bokeh_sampledata river pmdarima plotnine"
        raise UserError(f"the table 'series' needs one of four packages, none is installed; {cure}")
    return list(product(tables(), read_study("skill").spec.grid["forecast"]))


def outcomes(table: pd.DataFrame) -> list[str]:
    """List the columns that are foretold."""
    return [str(column) for column in table if column not in CONTEXT]


def data_keys(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return what a scenario says of a series."""
    scale = {}
    for column in outcomes(table):
        if "rose_yesterday" in table:
            scale[column] = [-MAX_RETURN, MAX_RETURN]
        else:
            scale[column] = [float(table[column].min()), float(table[column].max())]
    return {
        "file": f"{name}.csv",
        "outcomes": outcomes(table),
        "scale": scale,
        "context": [column for column in table if column in CONTEXT],
    }


def market(
    name: str, table: pd.DataFrame, *, rounds: int, seed: int, keys: dict[str, Any] | None = None
) -> MarketModel:
    """Build the market of a series and its listeners, a block for each cohort.

    ``keys`` of the scenario are replaced in it.
    """
    has_one_outcome = len(outcomes(table)) == 1
    cohorts = []
    for listeners in LISTENERS_OF_ONE_OUTCOME if has_one_outcome else LISTENERS_OF_MANY_OUTCOMES:
        cohort = {
            "name": listeners.utility,
            "utility": listeners.utility,
            "count": listeners.count,
            "actions": 5,
            "parameters": listeners.parameters,
            "measures": ["external", "swap", "decision_swap"],
        }
        cohorts.append(cohort)
    scenario = {
        "name": name,
        "rounds": min(rounds, len(table)),
        "data": data_keys(name, table),
        "cohort": cohorts,
    }
    with tempfile.TemporaryDirectory() as folder:
        table.to_csv(Path(folder) / f"{name}.csv", index=False)
        file = Path(folder) / "scenario.toml"
        file.write_text(tomli_w.dumps(scenario), "utf-8")
        return load(str(file), **(keys or {})).build(seed=seed)


def on_series(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Play a series with a forecast; nothing if it is shorter than that."""
    name, forecast = instance
    table = tables()[name]
    if len(table) < rounds:
        return
    keys = read_study("skill").spec.grid["forecast"][forecast]
    model = market(name, table, rounds=rounds, seed=seed, keys=keys)
    model.run()
    agents = model.agents_frame()
    described = model.game.blocks[0].forecaster.described()
    yield {
        "stream": name,
        "forecast": forecast,
        "seed": seed,
        "rounds": rounds,
        "mean_loss": agents["mean_loss"].mean(),
        "kept": described.get("kept", np.nan),
        **agents.reindex(columns=TO_MODELS).max(),
        "regret": agents["decision_swap_regret"].max(),
    }


TABLES = {
    "series": Table(
        on_series,
        ["stream", "forecast"],
        instances,
        rounds=1000,
        seeds=10,
        layout=lambda table: SKILL.text(table).replace("20 agents", "50 agents"),
    )
}
