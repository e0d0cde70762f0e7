"""Which column of a table says that all was sold: told by what stands in it, whatever its name.

Sales are the smaller of demand and stock. A column of yes and no that is yes only in rows in which
one column of numbers equals another, and in nearly all of these, while the first is at most the
second in every row, says when sales were cut off at the stock. Days on which there was no stock, as
holidays, say nothing: nothing is sold then. Numbers below 0, as temperatures, are no sales.

Few rows say nothing, either: two columns that are often equal, as the least and the greatest of a
day are in fog, may be equal in all of a few rows that say yes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from regretless.market.core.arrays import Array, Mask

# Rows of each kind, sold out and not, that are needed. If two columns are equal in half of the rows
# that say yes, they are so in all of ten of them once in 1,024 times.
MIN_ROWS = 10
# Of the rows in which sales equal the stock, how many must say yes: demand may equal it, too.
MIN_SHARE_SAID = 0.8


@dataclass(frozen=True)
class CutOff:
    """The names of the columns of sales, and of the stock that they cannot exceed."""

    sales: str
    stock: str


def find_cut_off(
    is_sold_out: Mask,
    is_known: Mask,
    numbers: Mapping[str, Array],
    *,
    possible_sales: Collection[str] | None = None,
) -> CutOff | None:
    """Return the first two columns of which one is cut off at the other where all was sold.

    Parameters
    ----------
    is_sold_out : bool array (T,)
        Which rows say yes.
    is_known : bool array (T,)
        Which rows say yes or no.
    numbers : mapping of str to array (T,)
        The columns of numbers by name, NaN where a value is missing.
    possible_sales : collection of str, optional
        Which of these may be sales; without it all may.

    Examples
    --------
    >>> stock = np.tile([5.0, 8.0], 10)
    >>> sold = np.tile([5.0, 7.0], 10)
    >>> empty = sold == stock
    >>> find_cut_off(empty, np.ones(20, dtype=bool), {"stock": stock, "sold": sold})
    CutOff(sales='sold', stock='stock')
    """
    rows_sold_out = np.flatnonzero(is_sold_out & is_known)
    if not len(rows_sold_out):
        return None
    if possible_sales is None:
        possible_sales = list(numbers)
    for sales, stock in product(possible_sales, numbers):
        if sales == stock:
            continue
        row = rows_sold_out[0]
        if abs(numbers[sales][row] - numbers[stock][row]) > 0:  # as it is in nearly all pairs
            continue
        is_present = is_known & np.isfinite(numbers[sales]) & np.isfinite(numbers[stock])
        says_yes = is_sold_out[is_present]
        sold = numbers[sales][is_present]
        available = numbers[stock][is_present]
        is_equal = sold == available
        n_sold_out = (says_yes & (sold > 0)).sum()
        has_both = n_sold_out >= MIN_ROWS and (~says_yes).sum() >= MIN_ROWS
        are_sales = (sold >= 0).all() and (sold <= available).all()
        is_cut_off = has_both and are_sales and is_equal[says_yes].all()
        if is_cut_off and says_yes[is_equal].mean() >= MIN_SHARE_SAID:
            return CutOff(sales, stock)
    return None
