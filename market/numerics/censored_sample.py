r"""A sample of which some values are lower limits, and the mean of what lies beyond such a limit.

Kaplan and Meier (1958, Journal of the American Statistical Association 53(282), 457-481,
doi:10.1080/01621459.1958.10501452) estimate the distribution of values z_1, ..., z_n of which some
are censored, known to be at least z_i. In the order of their values, with censored ones last among
equals, the weight of each of them is redistributed evenly to all that follow (Efron 1967,
Proceedings of the Fifth Berkeley Symposium 4, 831-853):

    w_(i) = delta_(i) / (n - i + 1)  prod_(j < i) ((n - j) / (n - j + 1))^delta_(j),

delta = 1 for a value that was seen. What is left behind the last value stays undistributed: it is
spread evenly from there to the greatest possible value, 1.
"""

from typing import Any, ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.checkpoint import Checkpointable

EVEN_SHARE = 0.002  # of an even part beyond a limit, so that something always lies there
FIRST_ROOM = 64  # values for which there is room at first


class CensoredSample(Checkpointable):
    """Values in [0, 1] of which some are lower limits, in the order in which they came.

    A value is added in amortised constant time: the room is doubled when it is full.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("values", "is_limit")

    def __init__(self) -> None:
        self._size = 0
        self._room_for_values: Array = np.zeros(FIRST_ROOM)
        self._room_for_limits: Mask = np.zeros(FIRST_ROOM, dtype=np.bool_)

    @property
    def values(self) -> Array:
        """Return the values (n,), limits among them: a view that later values may not reach."""
        return self._room_for_values[: self._size]

    @values.setter
    def values(self, values: Array) -> None:
        self._room_for_values = np.array(values, dtype=np.float64)
        self._size = len(values)

    @property
    def is_limit(self) -> Mask:
        """Return which of the values are limits (n,)."""
        return self._room_for_limits[: self._size]

    @is_limit.setter
    def is_limit(self, is_limit: Mask) -> None:
        self._room_for_limits = np.array(is_limit, dtype=np.bool_)

    def add(self, value: float, *, is_limit: bool) -> None:
        """Add a value, or a limit that the value is known to reach."""
        if self._size == len(self._room_for_values):
            room = max(FIRST_ROOM, 2 * self._size)
            self._room_for_values = with_room(self.values, room)
            self._room_for_limits = with_room(self.is_limit, room)
        self._room_for_values[self._size] = value
        self._room_for_limits[self._size] = is_limit
        self._size += 1

    def mean_beyond(self, limit: float) -> float:
        """Return the mean of values above a limit, by the estimate of Kaplan and Meier.

        Examples
        --------
        >>> sample = CensoredSample()
        >>> for value in (0.2, 0.4, 0.8):
        ...     sample.add(value, is_limit=False)
        >>> round(sample.mean_beyond(0.3), 2)
        0.6
        """
        order = np.lexsort((self.is_limit, self.values))  # limits are last among equal values
        values = self.values[order]
        weights, weight_left = kaplan_meier(self.is_limit[order])
        is_beyond = values > limit
        greatest = max(limit, values[-1]) if len(values) else limit
        weight_beyond = float(weights[is_beyond].sum()) + weight_left
        sum_beyond = float(weights[is_beyond] @ values[is_beyond])
        sum_beyond += weight_left * (greatest + 1.0) / 2
        even_mean = (limit + 1.0) / 2
        mean = even_mean if weight_beyond == 0 else sum_beyond / weight_beyond
        share = EVEN_SHARE / (EVEN_SHARE + (1 - EVEN_SHARE) * weight_beyond)
        return float(share * even_mean + (1 - share) * mean)


def with_room(values: Any, room: int) -> Any:
    """Return a copy of an array (n,) with zeros behind it, ``room`` entries in all."""
    larger = np.zeros(room, dtype=values.dtype)
    larger[: len(values)] = values
    return larger


def kaplan_meier(is_limit: Mask) -> tuple[Array, float]:
    """Return the weights (n,) of sorted values of which some are limits, and what is left over.

    Examples
    --------
    >>> weights, left = kaplan_meier(np.array([False, True, False]))
    >>> weights.round(3).tolist(), round(left, 3)
    ([0.333, 0.0, 0.667], 0.0)
    """
    n_values = len(is_limit)
    at_risk = n_values - np.arange(n_values)  # values that are at least as great
    share_that_survives = np.where(is_limit, 1.0, 1.0 - 1.0 / np.maximum(at_risk, 1))
    survival = np.concatenate([[1.0], np.cumprod(share_that_survives)])
    return np.asarray(survival[:-1] - survival[1:]), float(survival[-1])
