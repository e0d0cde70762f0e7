"""The order of a table's rows in time: forwards, backwards, in none, or several rows at a time.

``order_of`` looks at a column that names rows. ``assembly.data`` sorts by it on request and says
what is strange otherwise; ``table_description`` writes the request.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.scenarios.number_texts import PLAIN
from regretless.scenarios.table_files import DATE, read_dates

SORT = "add sort = true"


@dataclass(frozen=True, eq=False)
class TimeOrder:
    """Points in time (T,), as numbers that ascend with it, and what their order is.

    ``doubt`` says why that order is not known, with the cure; then equal times are equal all the
    same.
    """

    times: Array
    doubt: str = ""

    @property
    def is_ascending(self) -> bool:
        """Whether no row is earlier than the one before it."""
        return bool((np.diff(self.times) >= 0).all())

    @property
    def is_descending(self) -> bool:
        """Whether rows run backwards: none is later than the one before it."""
        return not self.is_ascending and bool((np.diff(self.times) <= 0).all())

    @property
    def repeats(self) -> int:
        """How many rows have a time that another row before them has."""
        return len(self.times) - len(np.unique(self.times))

    @property
    def rows_per_time(self) -> int:
        """How many rows each time has if all have as many, and 1 otherwise."""
        counts = np.unique(self.times, return_counts=True)[1]
        return int(counts[0]) if (counts == counts[0]).all() else 1

    def sorted_rows(self) -> Indices:
        """Return the rows in the order of time, those of one time as they stand."""
        return np.argsort(self.times, kind="stable")

    def fault(self) -> str:
        """Say what is strange, and the cure; empty where time runs forwards, a row at a time."""
        if self.doubt:
            return self.doubt
        if self.repeats:
            n_times = len(np.unique(self.times))
            state = f"{self.repeats} rows have a time that a row before them has"
            if self.rows_per_time > 1:
                state = f"each of {n_times:,} times is there {self.rows_per_time} times"
            cure = "if they are of several series, name the column that tells them apart as series"
            return f"{state}; {cure}"
        if self.is_descending:
            return f"time runs backwards, the newest row is the first; {SORT}"
        if not self.is_ascending:
            return f"the rows are in no order of time; {SORT}"
        return ""


def order_of(date_texts: "pd.Series[str]", dates: str | None = None) -> TimeOrder | None:
    """Return the order of texts (T,) that are all dates; None if one is none.

    ``dates`` says whether they have the "day first" or the "month first", None that they tell it.
    """
    if (
        not len(date_texts)
        or not date_texts.map(lambda text: DATE.fullmatch(text) is not None).all()
    ):
        return None
    as_read = read_dates(date_texts, dates)
    orders = []
    for reading in as_read.readings:
        if reading.notna().all():
            microseconds = reading.to_numpy().astype("datetime64[us]")
            orders.append(TimeOrder(microseconds.astype(np.float64)))  # exact until 2255
    if not orders:
        return None
    ranks = [np.unique(order.times, return_inverse=True)[1] for order in orders]
    if np.array_equal(ranks[0], ranks[-1]):  # in whatever way they are read
        return orders[0]
    return TimeOrder(orders[0].times, doubt=as_read.doubt)


def sortable_order_of(row_texts: "pd.Series[str]", key: str, dates: str | None = None) -> TimeOrder:
    """Return the order of texts (T,) that are all dates, or all numbers; UserError otherwise."""
    order = order_of(row_texts, dates)
    if order is not None and order.doubt:
        raise UserError(f"{key} = true: {order.doubt}")
    if order is not None:
        return order
    are_dates = row_texts.map(lambda text: DATE.fullmatch(text) is not None).all()
    doubt = read_dates(row_texts, dates).doubt if are_dates else ""
    if doubt:
        raise UserError(f"{key} = true: {doubt}")
    numbers = np.array([PLAIN.read(text) for text in row_texts])
    for row in np.flatnonzero(~np.isfinite(numbers))[:1]:
        complaint = (
            f"{key} = true: '{row_texts.iloc[row]}' in the index is neither a date nor a number"
        )
        raise UserError(f"{complaint}; mend it, or give another index")
    return TimeOrder(numbers)
