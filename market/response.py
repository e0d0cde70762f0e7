"""How a table of predicted losses becomes a choice: one kernel for agents and forecaster.

The forecaster's conditioning events are the agents' actions, so its idea of an action must equal
the agent's to the last bit. Both therefore compute predicted losses with the same compiled row
product, which adds in index order (no reassociation), and break ties to the lowest index.

Quantal response (logit choice, the paper's smooth best response) plays action a with probability
proportional to exp(-eta * l(a, p)). Its expected loss exceeds the best by at most ln(A) / eta.
"""

from __future__ import annotations

from typing import Protocol

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from market.lanes import over_rows
from market.memory import LINE, SHORT, empty, fetch, following

Array = NDArray[np.float64]

# Losses closer than this count as equal where the two sides compute them differently: a mean of
# losses over an ensemble and the loss at its mean agree only up to rounding.
TIE = 1e-9


class SmoothResponse(Protocol):
    """An approximate best response that says how approximate and how smooth it is.

    Attributes
    ----------
    lipschitz : float
        How far its play moves in l1 per unit of the predicted losses in sup norm.
    """

    lipschitz: float

    def gap(self, actions: int) -> float:
        """Bound the excess of the predicted loss over that of a best response."""
        ...

    def play(self, predicted: Array) -> Array:
        """Return laws of play (K, A) for predicted losses (K, A)."""
        ...


@numba.njit(cache=True, inline="always")
def row_loss(offset: float, row: Array, point: Array) -> float:
    """Compute ``offset + row @ point`` in index order (compiled; the only such product)."""
    total = offset
    for i in range(row.shape[0]):
        total += row[i] * point[i]
    return total


@numba.njit(cache=True, inline="always")
def eight_sums(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    sums: tuple[float, ...], weights: Array, point: Array, k: int, a: int, first: int
) -> tuple[float, ...]:
    """Add ``weights[k, b, i] * point[i]``, i from ``first`` on, to the sums of eight actions b.

    In index order each, side by side from action ``a`` on: they need not wait for each other.
    """
    t0, t1, t2, t3, t4, t5, t6, t7 = sums
    long, (row, column), place = weights.shape[2] > SHORT, following(weights, k, a), 0
    for i in range(first, weights.shape[2]):
        if long:
            fetch(weights, row, column, place)
            place += LINE
            if place >= weights.shape[2]:
                place, column = 0, column + 1
        p = point[i]
        t0 += weights[k, a, i] * p
        t1 += weights[k, a + 1, i] * p
        t2 += weights[k, a + 2, i] * p
        t3 += weights[k, a + 3, i] * p
        t4 += weights[k, a + 4, i] * p
        t5 += weights[k, a + 5, i] * p
        t6 += weights[k, a + 6, i] * p
        t7 += weights[k, a + 7, i] * p
    return t0, t1, t2, t3, t4, t5, t6, t7


@numba.njit(cache=True, inline="always")
def _eight(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, weights: Array, point: Array, k: int, a: int, out: Array
) -> None:
    """Compute ``row_loss`` of eight actions from ``a`` on."""
    o = offset[k, a : a + 8]
    sums = eight_sums((o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7]), weights, point, k, a, 0)
    for b in range(8):
        out[k, a + b] = sums[b]


@numba.njit(cache=True, nogil=True)
def expected_rows(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, weights: Array, point: Array, out: Array, first: int, last: int
) -> None:
    """Write the expected losses of some rows (compiled)."""
    eights = offset.shape[1] // 8 * 8
    for k in range(first, last):
        for a in range(0, eights, 8):
            _eight(offset, weights, point, k, a, out)
        for a in range(eights, offset.shape[1]):
            out[k, a] = row_loss(offset[k, a], weights[k, a], point)


@numba.njit(cache=True, nogil=True)
def _least(losses: Array, out: NDArray[np.intp], first: int, last: int) -> None:
    for k in range(first, last):
        choice, least = 0, losses[k, 0]
        for a in range(1, losses.shape[1]):
            if losses[k, a] < least:
                choice, least = a, losses[k, a]
        out[k] = choice


def expected_losses(offset: Array, weights: Array, point: Array) -> Array:
    """Losses that K agents expect at one prediction.

    Parameters
    ----------
    offset : array (K, A)
    weights : array (K, A, n)
        Each loss's coefficients in the basis that is predicted.
    point : array (n,)
        The prediction.

    Returns
    -------
    array (K, A)
    """
    out = empty(*offset.shape)
    line = np.ascontiguousarray(point, dtype=np.float64)
    over_rows(expected_rows, len(out), offset, weights, line, out)
    return out


def best_response(losses: ArrayLike, *, tie: float = 0.0) -> NDArray[np.intp]:
    """Index of the least loss along the last axis, the lowest index within ``tie`` of the least."""
    table = np.asarray(losses, dtype=np.float64)
    if tie == 0.0 and table.ndim == 2 and table.size:
        chosen = empty(len(table), dtype=np.intp)
        over_rows(_least, len(table), table, chosen)
        return chosen
    if tie == 0.0:
        return np.asarray(np.argmin(table, axis=-1))
    return np.asarray(np.argmax(table <= table.min(axis=-1, keepdims=True) + tie, axis=-1))


def quantal_response(losses: ArrayLike, eta: float | Array) -> Array:
    """Probabilities proportional to ``exp(-eta * losses)`` along the last axis.

    Parameters
    ----------
    losses : array (..., A)
    eta : float or array (...)
        Smoothness, positive; large values come close to a best response.

    Returns
    -------
    array (..., A)
    """
    losses = np.asarray(losses, dtype=np.float64)
    excess = losses - losses.min(axis=-1, keepdims=True)
    weights = np.exp(-np.asarray(eta)[..., None] * excess)
    result: Array = weights / weights.sum(axis=-1, keepdims=True)
    return result


def quantal_gap(actions: int, eta: float) -> float:
    """Bound how much a quantal response can lose against a best response: ln(A) / eta."""
    return float(np.log(actions) / eta)
