"""How weights lie in memory, so that a pass over many losses reads little and adds up fast.

A table of weights (K, A, n) is read action by action or, where many losses have one, number by
number with the actions side by side in memory: still of shape (K, A, n), but the last axis but one
has the step of one number, and actions fill vector registers (``market.response.expected_rows``).

Reading is all that such a pass waits for. Weights that 32 bits hold to the last bit are read at
half the width (``narrowed``) and widened before they are multiplied: the same sums again.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.kernels.memory import is_mapped, room
from regretless.market.kernels.threads import FEWEST

MANY = 1000  # losses; fewer are in cache whatever their order


class Fresh(np.ndarray[Any, np.dtype[np.float64]]):
    """A table that was made to be handed over: nobody else holds it, so that it is not copied."""


def fresh(table: Array) -> Fresh:
    """Hand a table over that lies well and of which nobody keeps a view."""
    return table.view(Fresh)


def lies_well(weights: Array) -> bool:
    """Whether many losses' weights have their actions side by side, few losses' their numbers."""
    many = weights.ndim == 3 and len(weights) > MANY
    return bool((weights.swapaxes(1, 2) if many else weights).flags.c_contiguous)


def laid(losses: int, actions: int, numbers: int) -> Array:
    """Return a table of zeros (K, A, n) that lies well, in a file where ``on_disk`` says so."""
    if losses > MANY:
        return room(losses, numbers, actions).swapaxes(1, 2)
    return room(losses, actions, numbers)


def copied(weights: Array) -> Array:
    """Copy weights (K, A, n) so that they lie well; a file, or a fresh table, is nobody else's."""
    if weights.ndim != 3:
        return np.array(weights, order="C")
    if (is_mapped(weights) or isinstance(weights, Fresh)) and lies_well(weights):
        return np.asarray(weights)
    table = laid(*weights.shape)
    table[...] = weights
    return table


def side_by_side(weights: Array) -> Array:
    """Return weights (K, A, n) that lie well: the same table where it does already."""
    return weights if lies_well(weights) else copied(weights)


def narrowed(weights: Array) -> NDArray[Any]:
    """Return weights that lie well in memory in 32 bits where that loses nothing, else as is."""
    if len(weights) < FEWEST or not lies_well(weights) or is_mapped(weights):
        return weights
    with np.errstate(over="ignore"):
        narrow = weights.astype(np.float32, order="K")
    return narrow if np.array_equal(narrow, weights) else weights
