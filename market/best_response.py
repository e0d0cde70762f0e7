"""How a table of predicted losses becomes a choice: one kernel for agents and forecaster.

The forecaster's conditioning events are the agents' actions, so its idea of an action must equal
the agent's to the last bit. Both therefore add predicted losses up in index order, by
``expected_rows``, and break ties to the lowest index.

Quantal response (logit choice, the paper's smooth best response) plays action a with probability
proportional to exp(-eta * l(a, p)). Its expected loss exceeds the best by at most ln(A) / eta.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled, over_rows

# Losses closer than this count as equal where the two sides compute them differently: a mean of
# losses over an ensemble and the loss at its mean agree only up to rounding.
TIE = 1e-9


class SmoothResponse(Protocol):
    """An approximate best response that says how approximate and how smooth it is."""

    lipschitz: float  # how far play moves in l1 per unit of the predicted losses in sup norm

    def gap(self, actions: int) -> float:
        """Bound the excess of the predicted loss over that of a best response."""

    def play(self, predicted: Array) -> Array:
        """Return mixed strategies (K, A) for predicted losses (K, A)."""


@compiled(nogil=True)
def expected_rows(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, table: Array, point: Array, out: Array, first: int, last: int
) -> None:
    """Write offset + table (K, n, A) . point of some losses (K, A), in index order (compiled)."""
    for k in range(first, last):
        for a in range(out.shape[1]):
            out[k, a] = offset[k, a]
        for i in range(point.shape[0]):
            for a in range(out.shape[1]):  # in vectors: no order of additions changes
                out[k, a] += table[k, i, a] * point[i]


@compiled(nogil=True, inline="always")
def lowest(losses: Array, first: int, end: int, tie: float) -> int:
    """Index in [first, end) of the least loss, the lowest within ``tie`` of it (compiled)."""
    best, least = first, losses[first]
    for a in range(first + 1, end):
        lower = losses[a] < least
        best, least = a if lower else best, losses[a] if lower else least
    if tie > 0.0:
        best = first
        while losses[best] > least + tie:
            best += 1
    return best


@compiled(nogil=True)
def _respond(losses: Array, tie: float, out: Indices, first: int, last: int) -> None:
    for k in range(first, last):
        out[k] = lowest(losses[k], 0, losses.shape[1], tie)


def expected_losses(offset: Array, weights: Array, point: Array) -> Array:
    """Losses (K, A) that K agents expect at one prediction (n,).

    Offset (K, A) and weights (K, A, n) are each loss's coefficients in the basis that is predicted;
    many are read fastest where their actions lie side by side (``market.numerics.storage``).

    >>> offset, weights = np.array([[0.0, 0.3]]), np.array([[[1.0], [0.0]]])  # leave it, take it
    >>> expected_losses(offset, weights, np.array([0.25]))  # with a chance of rain of 1/4
    array([[0.25, 0.3 ]])
    """
    out = np.empty(offset.shape)
    line = np.ascontiguousarray(point, dtype=np.float64)
    over_rows(expected_rows, len(out), offset, weights.swapaxes(1, 2), line, out)
    return out


@compiled(nogil=True)
def _both_rows(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array,
    constant: Array,
    table: Array,
    point: Array,
    outcome: Array,
    expected: Array,
    losses: Array,
    first: int,
    last: int,
) -> None:
    actions = losses.shape[1]
    hoped, came = np.empty(actions), np.empty(actions)
    for k in range(first, last):
        for a in range(actions):
            hoped[a], came[a] = offset[k, a], -0.0
        for i in range(point.shape[0]):
            for a in range(actions):  # in vectors: no order of additions changes
                hoped[a] += table[k, i, a] * point[i]
                came[a] += table[k, i, a] * outcome[i]
        for a in range(actions):
            expected[k, a], losses[k, a] = hoped[a], came[a] + constant[k, a]


def expected_and_realised(
    offsets: tuple[Array, Array], weights: Array, *, point: Array, outcome: Array
) -> tuple[Array, Array]:
    """Losses at a prediction and at the outcome (K, A), in one pass over the weights of both.

    The same to the last bit as ``expected_losses`` and ``market.losses.sums.offset_sum``, whose
    offsets (K, A) are given: many losses wait for memory, and each weight is read once.
    """
    out = np.empty(offsets[0].shape), np.empty(offsets[0].shape)
    at = (np.ascontiguousarray(y, dtype=np.float64) for y in (point, outcome))
    over_rows(_both_rows, len(out[0]), *offsets, weights.swapaxes(1, 2), *at, *out)
    return out


def best_response(losses: ArrayLike, *, tie: float = 0.0) -> Indices:
    """Index of the least loss along the last axis, the lowest index within ``tie`` of the least.

    >>> best_response([[0.2, 0.1, 0.1], [0.0, 0.5, 0.5]]).tolist()
    [1, 0]
    """
    table = np.asarray(losses, dtype=np.float64)
    rows = table.reshape(-1, table.shape[-1])
    chosen = np.empty(len(rows), dtype=np.intp)
    over_rows(_respond, len(rows), rows, tie, chosen)
    return chosen.reshape(table.shape[:-1])


def quantal_response(losses: ArrayLike, eta: float | Array) -> Array:
    """Probabilities proportional to ``exp(-eta * losses)`` along the last axis (..., A).

    ``eta``, a number or (...), is positive; large values come close to a best response.

    >>> quantal_response([0.1, 0.2, 0.2], eta=5.0).round(2).tolist()
    [0.45, 0.27, 0.27]
    """
    losses = np.asarray(losses, dtype=np.float64)
    excess = losses - losses.min(axis=-1, keepdims=True)
    weights = np.exp(-np.asarray(eta)[..., None] * excess)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def quantal_gap(actions: int, eta: float) -> float:
    """Bound how much a quantal response can lose against a best response: ln(A) / eta."""
    return float(np.log(actions) / eta)
