"""What agents expect and what comes, in one pass over the weights.

A loss that is linear in its basis has one table of weights for both. Many losses are bound by
memory: reading the table once a round in place of twice is most of what can be saved.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.kernels.memory import empty
from regretless.market.kernels.simd import write_sums
from regretless.market.kernels.threads import over_rows


@compiled(nogil=True)
def _both_rows(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array,
    table: Array,
    point: Array,
    constant: Array,
    values: Array,
    predicted: Array,
    losses: Array,
    first: int,
    last: int,
) -> None:
    for k in range(first, last):
        own = values[min(k, values.shape[0] - 1)]
        sums = (predicted, offset, point, None), (losses, None, own, constant)
        write_sums(table, sums, k)


def expected_and_true(
    coefficients: Array, weights: Array, point: Array, *, offset: Array, values: Array
) -> tuple[Array, Array]:
    """Losses that K agents expect at a prediction, and losses at an outcome, in one pass.

    The same as ``expected_losses`` and ``market.losses.sums.weighted_sums`` to the last bit, where
    both have the same weights: many losses are bound by memory, and these are read once.

    Parameters
    ----------
    coefficients : array (K, A)
        Constant part of the expected losses.
    weights : array (K, A, n)
    point : array (n,)
        The prediction.
    offset : array (K, A)
        Constant part of the losses at the outcome.
    values : array (1, n) or (K, n)
        The outcome, in the functions that the weights belong to.

    Returns
    -------
    arrays (K, A), (K, A)
    """
    predicted, losses = empty(*offset.shape), empty(*offset.shape)
    line = np.ascontiguousarray(point, dtype=np.float64)
    tables = coefficients, weights.swapaxes(1, 2), line, offset, values, predicted, losses
    over_rows(_both_rows, len(predicted), *tables)
    return predicted, losses
