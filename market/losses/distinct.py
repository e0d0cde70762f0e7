"""Equal losses are computed once: the distinct losses of a stack."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from market.losses.base import Loss

Form = TypeVar("Form", bound=Loss)


def unique_losses(loss: Form) -> tuple[Form, NDArray[np.intp]]:
    """Keep one of each loss of a stack, so that equal agents are computed once.

    Parameters
    ----------
    loss : a stack of K losses

    Returns
    -------
    types : the distinct losses in order of first appearance
    type_of : array (K,)
        For each loss of the stack the row of its equal in ``types``.
    """
    parts = [getattr(loss, name).reshape(len(loss), -1) for name in loss.AXES]
    table = np.concatenate(parts, axis=1)
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return loss[first[order]], rank[inverse.ravel()]
