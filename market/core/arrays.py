"""Names for the types of arrays that most modules pass about, points of a grid, and draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.compiled import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


def grid_points(levels: NDArray[Any], dimension: int) -> NDArray[Any]:
    """Return all points (k^d, d) whose coordinates are among k levels, the last axis fastest.

    >>> grid_points(np.array([0, 1]), dimension=2).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    axes = np.meshgrid(*[levels] * dimension, indexing="ij")
    return np.stack(axes, axis=-1).reshape(-1, dimension)


def repeated(rows: Array, count: int) -> Array:
    """Return rows (m, A) as (m, count, A), each so many times, without a copy: read-only.

    It is what ``numpy.broadcast_to`` returns, in a third of its time.

    >>> repeated(np.array([[1.0, 2.0]]), 3).tolist()
    [[[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]]]
    """
    rows = np.ascontiguousarray(rows)
    row_stride, entry_stride = rows.strides
    view: Array = np.ndarray(
        (rows.shape[0], count, rows.shape[1]),
        rows.dtype,
        rows,
        strides=(row_stride, 0, entry_stride),
    )
    view.setflags(write=False)
    return view


def is_within_unit_cube(numbers: Array) -> bool:
    """Whether all numbers are in [0, 1]; none is NaN then.

    It is compiled, since every round asks several times, mostly about a few numbers; of a single
    one Python says it sooner than a compiled function is called.

    >>> is_within_unit_cube(np.array([[0.0, 1.0]])), is_within_unit_cube(np.array([0.5, np.nan]))
    (True, False)
    """
    if numbers.size == 1:
        return 0.0 <= numbers.item() <= 1.0
    return _are_within_unit_interval(numbers if numbers.ndim == 1 else numbers.reshape(-1))


@compiled(nogil=True)
def _are_within_unit_interval(numbers: Array) -> bool:
    """Whether 0 <= x <= 1 for each of ``numbers`` (n,), which is false of NaN."""
    for number in numbers:  # noqa: SIM110 - the compiler takes no generator
        if not 0.0 <= number <= 1.0:
            return False
    return True


def draw_rows(weights: Array, uniforms: Array, row_of: Indices | None = None) -> Indices:
    """Draw an index for each of N uniform numbers by the inverse distribution function.

    Parameters
    ----------
    weights : array (K, A)
        Not negative; each row is read relative to its sum, so that rounding never draws an index
        of weight 0.
    uniforms : array (N,)
        Numbers in [0, 1).
    row_of : int array (N,), optional
        The row that each draw is from; left out where there are as many rows as draws.

    Returns
    -------
    int array (N,)
        Indices from 0 to A - 1.

    Examples
    --------
    >>> draw_rows(np.array([[0.2, 0.0, 0.8]]), np.array([0.1, 0.2]), np.array([0, 0])).tolist()
    [0, 2]
    """
    if row_of is None:
        row_of = np.arange(len(uniforms))
    drawn = np.empty(len(uniforms), dtype=np.intp)
    _draw_rows(weights, uniforms, row_of, drawn)
    return drawn


@compiled(nogil=True)
def _draw_rows(weights: Array, uniforms: Array, row_of: Indices, drawn: Indices) -> None:
    """Write the first index whose cumulative weight exceeds the uniform share of the row's total.

    ``weights`` (K, A), ``uniforms`` (N,) and ``row_of`` (N,) are read; ``drawn`` (N,) is written.
    """
    cumulative_weights = np.empty(weights.shape)
    for row in range(weights.shape[0]):
        total = 0.0
        for index in range(weights.shape[1]):
            total += weights[row, index]
            cumulative_weights[row, index] = total

    last = weights.shape[1] - 1
    for draw in range(len(drawn)):
        cumulative = cumulative_weights[row_of[draw]]
        index = 0
        while index < last and uniforms[draw] * cumulative[last] >= cumulative[index]:
            index += 1
        drawn[draw] = index


def draw_index(weights: Array, rng: np.random.Generator) -> int:
    """Draw an index with probabilities proportional to weights (A,), from one uniform number."""
    uniform = rng.random()  # drawn where there is no choice, too: later draws stay what they are
    if len(weights) == 1:
        return 0
    return int(_index_at_share(weights, uniform))


@compiled(nogil=True)
def _index_at_share(weights: Array, uniform: float) -> int:
    """Return the first index whose cumulative weight exceeds the uniform share of the total.

    ``weights`` (A,) are read; the answer is the last index where rounding leaves no other.
    """
    total = 0.0
    for weight in weights:
        total += weight
    share = uniform * total
    cumulative = 0.0
    for index in range(len(weights) - 1):
        cumulative += weights[index]
        if cumulative > share:
            return index
    return len(weights) - 1
