"""Names for the arrays that most modules pass about, all points of a grid, and draws."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.compiled import compiled

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


def grid_points(levels: NDArray[Any], dimension: int) -> NDArray[Any]:
    """List all points (k^d, d) whose coordinates are among k levels, the last axis fastest."""
    return np.stack(np.meshgrid(*[levels] * dimension, indexing="ij"), -1).reshape(-1, dimension)


def draw_rows(weights: Array, uniforms: Array, row_of: Indices | None = None) -> Indices:
    """Draw an index for each of N uniform numbers (N,) by the inverse distribution function.

    Weights (K, A) are not negative; each row is read relative to its sum, so that rounding never
    draws an index of weight 0. ``row_of`` (N,) is the row that each draw is from; None where there
    are as many rows as draws.

    >>> draw_rows(np.array([[0.2, 0.0, 0.8]]), np.array([0.1, 0.2]), np.array([0, 0])).tolist()
    [0, 2]
    """
    drawn = np.empty(len(uniforms), dtype=np.intp)
    rows = np.arange(len(drawn)) if row_of is None else row_of
    _write_draws(np.ascontiguousarray(np.cumsum(weights, axis=1)), uniforms, rows, drawn)
    return drawn


@compiled(nogil=True)
def _write_draws(sums: Array, uniforms: Array, row_of: Indices, drawn: Indices) -> None:
    last = sums.shape[1] - 1
    for i in range(drawn.shape[0]):
        row, index = sums[row_of[i]], 0
        while index < last and uniforms[i] * row[last] >= row[index]:
            index += 1
        drawn[i] = index


def draw_index(weights: Array, rng: np.random.Generator) -> int:
    """Draw an index with probabilities proportional to weights (A,), from one uniform number."""
    return int(draw_rows(np.asarray(weights, dtype=np.float64)[None], rng.random(1))[0])
