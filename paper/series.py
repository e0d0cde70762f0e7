"""Loss and regret on ten real series that are not in the repository.

    python -m pip install bokeh_sampledata river pmdarima plotnine
    python -m paper.series FOLDER [--rounds 500] [--rounds 1000] ... [--seeds 10] [--jobs 2]

The series are columns of tables that these packages hold, from their first row on, one with fewer
rows than rounds is left out. Outcomes are scaled by the series' least and greatest value, returns
by 0.06. Fifty agents with five actions each listen: where there is one outcome, 20 newsvendors and
30 who want it near a target, with exponent 1, 2 or 3; else ten each of CES, Cobb-Douglas,
Leontief, CARA and mean-variance. What is measured and wanted is that of `python -m paper skill`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module, resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import tomli_w
import typer

from paper.tables import STUDIES
from regretless.scenarios.studies.design import CATALOGUE

RETURN = 0.06
CONTEXT = ("hour", "half_hour", "weekend", "rose_yesterday")  # columns that are no outcomes
STUDY = {"description": "Loss and regret on real series.", "log_every": 1000} | {
    "leave_out": ["forecasts", "regret_log", "swaps", "biases"]
}
COHORT = {"actions": 5, "measures": ["external", "swap", "decision_swap"]}
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
NAMES = {"newsvendor": "sellers", "lp-target": "planners"}  # of cohorts; the utility's elsewhere


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


def outcomes(table: pd.DataFrame) -> list[str]:
    """List the columns that are foretold."""
    return [str(column) for column in table if column not in CONTEXT]


def cell(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return what a study sets to play a series."""
    told, context = outcomes(table), [column for column in table if column in CONTEXT]
    ends = {column: [float(table[column].min()), float(table[column].max())] for column in told}
    if "rose_yesterday" in table:
        ends = {column: [-RETURN, RETURN] for column in told}
    found = {"data.file": f"{name}.csv", "data.outcomes": told, "data.scale": ends}
    return found | ({"data.context": context} if context else {})


def written(folder: Path, kind: str, cells: dict[str, dict[str, Any]]) -> Path:
    """Write a study of these series and its scenario; return its path."""
    cohorts = [
        COHORT
        | {"name": NAMES.get(utility, utility), "utility": utility}
        | {"count": count, "parameters": parameters}
        for utility, (count, parameters) in LISTENERS[kind].items()
    ]
    base = {"name": "series", "rounds": 500, "cohort": cohorts}
    (folder / f"{kind}-base.toml").write_text(tomli_w.dumps(base), "utf-8")
    skill = tomllib.loads((CATALOGUE / "skill.toml").read_text("utf-8"))
    grid = {"stream": cells, "forecast": skill["grid"]["forecast"]}
    path = folder / f"{kind}.toml"
    study = STUDY | {"scenario": f"{kind}-base.toml", "grid": grid}
    path.write_text(tomli_w.dumps(study), "utf-8")
    return path


def main(
    folder: Path,
    rounds: Annotated[list[int], typer.Option()] = [500, 1000, 2000, 4000],  # noqa: B006 - never changed
    seeds: int = 10,
    jobs: int = 2,
) -> None:
    """Play all series with all forecasts, and print what is wanted of ours beside what it has."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: read() for name, read in SERIES.items()}
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    title = "mean loss and worst decision swap regret of 50 agents"
    for horizon in rounds:
        found = []
        for kind in LISTENERS:
            cells = {
                name: cell(name, table)
                for name, table in tables.items()
                if len(table) >= horizon and (len(outcomes(table)) == 1) == (kind == "one")
            }
            layout = replace(STUDIES["skill"], title=title, study=str(written(folder, kind, cells)))
            out = folder / f"{horizon}-{kind}"
            if cells:
                found.append(layout.measure(out=out, rounds=horizon, seeds=seeds, jobs=jobs))
        whole = pd.concat(found)
        whole.to_csv(folder / f"{horizon}.csv", index=False)
        typer.echo(layout.text(whole) + "\n")


if __name__ == "__main__":
    typer.run(main)
