"""Loss and regret on ten real series that are not in the repository.

    python -m pip install bokeh_sampledata river pmdarima plotnine
    python -m benchmarks.series FOLDER [--rounds 500] [--rounds 1000] ... [--seeds 10] [--jobs 2]

The series are columns of tables that these packages hold, from their first row on, one with fewer
rows than rounds is left out. Outcomes are scaled by the series' least and greatest value, returns
by 0.06. Fifty agents with five actions each listen: where there is one outcome, 20 newsvendors and
30 who want it near a target, with exponent 1, 2 or 3; else ten each of CES, Cobb-Douglas,
Leontief, CARA and mean-variance. What is measured and wanted is that of `python -m paper skill`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

import regretless
from paper.tables import STUDIES

SKILL = Path(regretless.__file__).parent / "scenarios" / "studies" / "catalogue" / "skill.toml"
RETURN = 0.06
ONE = """
[[cohort]]
name = "sellers"
utility = "newsvendor"
count = 20
actions = 5
parameters = { underage = [1.0, 4.0], overage = [0.5, 2.0] }
measures = ["external", "swap", "decision_swap"]

[[cohort]]
name = "planners"
utility = "lp-target"
count = 30
actions = 5
parameters = { p = { choices = [1.0, 2.0, 3.0] } }
measures = ["external", "swap", "decision_swap"]
"""
MANY = "".join(
    f"""
[[cohort]]
name = "{utility}"
utility = "{utility}"
count = 10
actions = 5
parameters = {{ {parameters} }}
measures = ["external", "swap", "decision_swap"]
"""
    for utility, parameters in {
        "ces": "rho = { choices = [0.5, 1.0, 2.0] }",
        "cobb-douglas": "",
        "leontief": "",
        "cara": "risk_aversion = [0.5, 2.0]",
        "mean-variance": "risk_aversion = [0.5, 2.0], reference = 0.5",
    }.items()
)


@dataclass(frozen=True)
class Series:
    """A real series: ``table`` reads it; what is not an outcome is context."""

    table: Callable[[], pd.DataFrame]
    outcomes: list[str]
    reach: float | None = None  # outcomes are scaled by [-reach, reach]

    def cell(self, name: str, table: pd.DataFrame) -> dict[str, Any]:
        """Return what a study sets to play it."""
        ends = (
            {c: [float(table[c].min()), float(table[c].max())] for c in self.outcomes}
            if self.reach is None
            else {c: [-self.reach, self.reach] for c in self.outcomes}
        )
        context = [c for c in table if c not in self.outcomes]
        return {
            "data.file": f"{name}.csv",
            "data.outcomes": self.outcomes,
            "data.scale": ends,
        } | ({"data.context": context} if context else {})


def held(package: str, path: str) -> pd.DataFrame:
    """Read a table that a package holds."""
    with resources.as_file(resources.files(package) / path) as file:
        return pd.read_csv(file)


def by_hour(package: str, path: str, time: str, value: str) -> Callable[[], pd.DataFrame]:
    """Return the reader of a value with the hour of the day."""

    def read() -> pd.DataFrame:
        table = held(package, path)
        hours = table[time].str.slice(11, 13).astype(int)
        return pd.DataFrame({"hour": hours, "value": table[value]})

    return read


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
    from pmdarima.datasets import load_taylor  # noqa: PLC0415 - beside the series it is for

    value = np.asarray(load_taylor())
    at = np.arange(value.size)
    return pd.DataFrame({"half_hour": at % 48, "weekend": at // 48 % 7 // 5, "value": value})


def sunspots() -> pd.DataFrame:
    """Read the monthly number of sunspots."""
    from pmdarima.datasets import load_sunspots  # noqa: PLC0415 - beside the series it is for

    return pd.DataFrame({"value": np.asarray(load_sunspots())})


def index() -> pd.DataFrame:
    """Read the daily returns of three firms of other trades, given in per cent."""
    return returns(held("river.datasets", "sp500.csv.gz")[["JPM", "KO", "XOM"]] / 100)


def polls() -> pd.DataFrame:
    """Read what three pollsters had of a president, by the day."""
    table = held("river.datasets", "trump_approval.csv.gz")
    return table[["gallup", "rasmussen", "you_gov"]].interpolate().dropna()


def economy() -> pd.DataFrame:
    """Read the monthly rate of saving, and how long and how many were unemployed."""
    return held("plotnine.data", "economics.csv")[["psavert", "uempmed", "unemploy"]]


def cycling() -> pd.DataFrame:
    """Read the power, cadence and speed of a ride, by the second."""
    return held("bokeh_sampledata", "_data/cycling.csv.gz")[["power", "cadence", "speed"]]


SERIES = {
    "glucose": Series(
        by_hour("bokeh_sampledata", "_data/CGM.csv.gz", "datetime", "glucose"), ["value"]
    ),
    "sea": Series(
        by_hour(
            "bokeh_sampledata",
            "_data/sea_surface_temperature.csv.gz",
            "time (UTC)",
            "temperature (celsius)",
        ),
        ["value"],
    ),
    "water": Series(
        by_hour("river.datasets", "water-flow.csv", "Time", "Water flow [l/s]"), ["value"]
    ),
    "demand": Series(demand, ["value"]),
    "sunspots": Series(sunspots, ["value"]),
    "stocks": Series(stocks, ["AAPL", "IBM", "MSFT"], RETURN),
    "index": Series(index, ["JPM", "KO", "XOM"], RETURN),
    "polls": Series(polls, ["gallup", "rasmussen", "you_gov"]),
    "economy": Series(economy, ["psavert", "uempmed", "unemploy"]),
    "cycling": Series(cycling, ["power", "cadence", "speed"]),
}


def literal(value: Any) -> str:
    """Write a value as TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key!r} = {literal(v)}" for key, v in value.items()) + " }"
    return repr(value)


def written(folder: Path, base: str, cells: dict[str, dict[str, Any]]) -> Path:
    """Write a study of these series and its scenario; return its path."""
    name = "one" if base is ONE else "many"
    (folder / f"{name}-base.toml").write_text(f'name = "series"\nrounds = 500\n{base}', "utf-8")
    forecasts = tomllib.loads(SKILL.read_text("utf-8"))["grid"]["forecast"]
    lines = [
        f'claim = "Loss and regret on real series."\nscenario = "{name}-base.toml"',
        "log_every = 1000",
        'leave_out = ["forecasts", "regret_log", "swaps", "biases"]',
        "[grid.stream]",
        *(f"{key!r} = {literal(cell)}" for key, cell in cells.items()),
        "[grid.forecast]",
        *(f"{key!r} = {literal(cell)}" for key, cell in forecasts.items()),
    ]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def main(
    folder: Path,
    rounds: Annotated[list[int], typer.Option()] = [500, 1000, 2000, 4000],  # noqa: B006 - never changed
    seeds: int = 10,
    jobs: int = 2,
) -> None:
    """Play all series with all forecasts, and print what is wanted of ours beside what it has."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: series.table() for name, series in SERIES.items()}
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    for horizon in rounds:
        found = []
        for base in (ONE, MANY):
            cells = {
                name: series.cell(name, tables[name])
                for name, series in SERIES.items()
                if len(tables[name]) >= horizon and (len(series.outcomes) == 1) == (base is ONE)
            }
            if not cells:
                continue
            title = "mean loss and worst decision swap regret of 50 agents"
            layout = replace(STUDIES["skill"], title=title, study=str(written(folder, base, cells)))
            out = folder / f"{horizon}-{'one' if base is ONE else 'many'}"
            found.append(layout.measure(out=out, rounds=horizon, seeds=seeds, jobs=jobs))
        whole = pd.concat(found)
        whole.to_csv(folder / f"{horizon}.csv", index=False)
        typer.echo(layout.text(whole) + "\n")


if __name__ == "__main__":
    typer.run(main)
