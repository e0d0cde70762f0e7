"""Names for the arrays that most modules pass about."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]
