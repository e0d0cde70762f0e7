"""Equal losses are computed once: the distinct losses of a stack."""

from typing import TypeVar

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.losses.base import Loss

Found = tuple[Indices, Indices]  # first of each kind, and the kind of each row

BLOCK = 4096  # rows at a time

Form = TypeVar("Form", bound=Loss)


def unique_losses(loss: Form) -> tuple[Form, Indices]:
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
    parts = list(loss.tables().values())
    first, inverse = _by_hash(parts) or _by_order(parts)
    if len(first) == len(loss):
        return loss, np.arange(len(loss))
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return loss[first[order]], rank[inverse.ravel()]


def _by_order(parts: list[Array]) -> Found:
    """Sort the rows: exact, and slow where there are many."""
    table = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
    _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first, inverse


def _by_hash(parts: list[Array]) -> Found | None:
    """Sort one number per row; None where two different rows have the same.

    The number is sum_j c_j bits_j modulo 2^64 with odd random c_j (multilinear hashing), so that
    equal rows always agree.
    """
    rng = stream(0, "distinct losses")
    keys = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        if part.strides[0] == 0:
            continue  # the same for all rows
        factors = rng.integers(1 << 63, size=part[0].size, dtype=np.uint64) * 2 + 1
        for begin in range(0, len(part), BLOCK):
            block = part[begin : begin + BLOCK]
            bits = (block.reshape(len(block), -1) + 0.0).view(np.uint64)  # no minus zero
            keys[begin : begin + BLOCK] += (bits * factors).sum(1, dtype=np.uint64)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    twin = first[inverse]
    for part in parts:
        for begin in range(0, len(part), BLOCK):
            rows = slice(begin, begin + BLOCK)
            if part.strides[0] and not np.array_equal(part[rows], part[twin[rows]]):
                return None
    return first, inverse
