"""Names for the arrays that most modules pass about, and all points of a grid."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


def grid_points(levels: NDArray[Any], dimension: int) -> NDArray[Any]:
    """List all points (k^d, d) whose coordinates are among k levels, the last axis fastest."""
    return np.stack(np.meshgrid(*[levels] * dimension, indexing="ij"), -1).reshape(-1, dimension)
