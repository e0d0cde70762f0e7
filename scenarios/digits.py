"""How many decimals the numbers of a column are written with: the same for all of them."""

import math
from collections.abc import Iterable

MOST = 9  # decimals, beyond which a number is rounding


def decimals(values: Iterable[float], digits: int) -> int:
    """Return the decimals that give the largest of some numbers so many significant digits.

    Parameters
    ----------
    values : iterable of float
        NaN does not count.
    digits : int
        Of the largest; also the answer where all are 0.

    Examples
    --------
    >>> decimals([0.0806, -4.553e-05], 3), decimals([1461.0, 2.5], 3)
    (4, 0)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest < 10.0**-MOST:
        return digits
    return min(max(digits - 1 - math.floor(math.log10(largest)), 0), MOST)
