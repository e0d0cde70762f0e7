"""How a table of predicted losses becomes a choice: one kernel for agents and forecaster.

Cohorts call ``expected_losses`` and ``best_response`` to act, and the forecaster calls them to know
how agents will act. Its conditioning events are the agents' actions, so its idea of an action must
equal the agent's to the last bit. Both therefore add predicted losses up in index order, by
``expected_rows``, and break ties to the lowest index.

Quantal response (logit choice, the paper's smooth best response) plays action a with probability
proportional to exp(-eta * l(a, p)). Its expected loss exceeds the best by at most ln(A) / eta.
"""

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled, over_rows
from regretless.market.losses.sums import weighted_rows
from regretless.market.numerics.pairwise_sum import pairwise_sum

# Losses closer than this count as equal where the two sides compute them differently: a mean of
# losses over an ensemble and the loss at its mean agree only up to rounding.
TIE = 1e-9


class SmoothResponse(Protocol):
    """An approximate best response that says how approximate and how smooth it is.

    Attributes
    ----------
    lipschitz : float
        How far play moves in l1 norm per unit of the predicted losses in sup norm.
    """

    lipschitz: float

    def gap(self, actions: int) -> float:
        """Bound the excess of the predicted loss over that of a best response."""

    def play(self, predicted: Array) -> Array:
        """Return mixed strategies (K, A) for predicted losses (K, A)."""


@compiled(nogil=True)
def expected_rows(
    offset: Array, weights: Array, point: Array, out: Array, first: int, last: int
) -> None:
    """Write offset + weights . point of a span of losses, in index order (compiled).

    The inner loop over actions runs in vector registers, which changes no order of additions.

    Parameters
    ----------
    offset : array (K, A)
        Added first.
    weights : array (K, n, A)
        By loss, number of the prediction and action.
    point : array (n,)
        The prediction.
    out : array (K, A)
        Written.
    first, last : int
        Span of losses.
    """
    for k in range(first, last):
        for a in range(out.shape[1]):
            out[k, a] = offset[k, a]
        for i in range(point.shape[0]):
            for a in range(out.shape[1]):
                out[k, a] += weights[k, i, a] * point[i]


@compiled(nogil=True, inline="always")
def lowest(losses: Array, first: int, end: int, tie: float) -> int:
    """Return the index in [first, end) of the least loss, the lowest within ``tie`` of it.

    It is the first a with l_a <= min_b l_b + tie; a and b go from ``first`` to before ``end``.
    ``losses`` (A,) are those of one row. It is written into the kernel that calls it, which then
    reads rows of one length almost three times as fast.
    """
    best = first
    least_loss = losses[first]
    for a in range(first + 1, end):  # without branches, which a processor would guess wrongly
        is_lower = losses[a] < least_loss
        best = a if is_lower else best
        least_loss = losses[a] if is_lower else least_loss
    if tie > 0.0:
        best = first
        while losses[best] > least_loss + tie:
            best += 1
    return best


@compiled(nogil=True)
def _write_best_responses(
    losses: Array, tie: float, actions: Indices, first: int, last: int
) -> None:
    """Write the best responses of a span of rows to ``losses`` (K, A) into ``actions`` (K,).

    Compiled; ``tie`` is that of ``lowest``.
    """
    for k in range(first, last):
        actions[k] = lowest(losses[k], 0, losses.shape[1], tie)


def expected_losses(offset: Array, weights: Array, point: Array) -> Array:
    """Return the losses (K, A) that K agents expect at one prediction (n,).

    Offset (K, A) and weights (K, A, n) are each loss's coefficients in the basis that is predicted;
    many are read fastest where their actions lie side by side (``market.numerics.storage``).

    >>> offset, weights = np.array([[0.0, 0.3]]), np.array([[[1.0], [0.0]]])  # leave it, take it
    >>> expected_losses(offset, weights, np.array([0.25]))  # with a chance of rain of 1/4
    array([[0.25, 0.3 ]])
    """
    expected = np.empty(offset.shape)
    prediction = np.ascontiguousarray(point, dtype=np.float64)
    by_number = weights.swapaxes(1, 2)  # (K, n, A)
    over_rows(expected_rows, len(expected), offset, by_number, prediction, expected)
    return expected


@compiled(nogil=True)
def _write_expected_and_realised(
    offset: Array,
    constant: Array,
    weights: Array,
    point: Array,
    outcome: Array,
    expected: Array,
    realised: Array,
    choices: Indices,
    first: int,
    last: int,
) -> None:
    """Write what a span of rows expects, chooses and loses at the outcome (compiled).

    expected[k, a] = offset[k, a] + sum_i weights[k, i, a] point[i],
    realised[k, a] = sum_i weights[k, i, a] outcome[i] + constant[k, a].

    The sums are those of ``expected_rows`` and ``market.losses.sums.weighted_rows`` to the last
    bit: the first adds the offset first, the second last.

    Parameters
    ----------
    offset, constant : array (K, A)
        What is added to the expected and to the realised losses.
    weights : array (K, n, A)
        By loss, number of the prediction and action.
    point, outcome : array (n,)
        The prediction and the outcome.
    expected, realised : array (K, A)
        Written.
    choices : int array (K,)
        Written: the best responses to the expected losses.
    first, last : int
        Span of rows.
    """
    n_actions = realised.shape[1]
    row_expected = np.empty(n_actions)
    row_realised = np.empty(n_actions)
    for k in range(first, last):
        for a in range(n_actions):
            row_expected[a] = offset[k, a]
            row_realised[a] = -0.0  # changes no sum, not even the sign of a zero
        for i in range(point.shape[0]):
            for a in range(n_actions):  # in vectors: no order of additions changes
                row_expected[a] += weights[k, i, a] * point[i]
                row_realised[a] += weights[k, i, a] * outcome[i]
        for a in range(n_actions):
            expected[k, a] = row_expected[a]
            realised[k, a] = row_realised[a] + constant[k, a]
        choices[k] = lowest(row_expected, 0, n_actions, 0.0)


@compiled(nogil=True)
def _write_expected_and_chosen(
    offset: Array,
    weights: Array,
    point: Array,
    expected: Array,
    choices: Indices,
    first: int,
    last: int,
) -> None:
    """Write what a span of rows expects, as ``expected_rows`` does, and chooses (compiled).

    Parameters are those of ``expected_rows``; ``choices`` (K,) is written, too: the best responses
    to the expected losses.
    """
    expected_rows(offset, weights, point, expected, first, last)
    for k in range(first, last):
        choices[k] = lowest(expected[k], 0, expected.shape[1], 0.0)


@compiled(nogil=True)
def _write_responses_to_points(
    offset: Array,
    weights: Array,
    points: Array,
    point_of_row: Indices,
    expected: Array,
    choices: Indices,
    first: int,
    last: int,
) -> None:
    """Write what a span of rows expects and chooses, each at a prediction of its own (compiled).

    Parameters are those of ``_write_expected_and_chosen``, with predictions ``points`` (m, n) and
    the index of each row's, ``point_of_row`` (K,).
    """
    for k in range(first, last):
        point = points[point_of_row[k]]
        _write_expected_and_chosen(offset, weights, point, expected, choices, k, k + 1)


@compiled(nogil=True)
def _add_responses_to_mixture(
    offset: Array,
    weights: Array,
    points: Array,
    probabilities: Array,
    expected: Array,
    strategies: Array,
    first: int,
    last: int,
) -> None:
    """Add up what a span of rows plays over the predictions of a mixture (compiled).

    strategies[k, a] += sum of probabilities[j] over the j whose best response is a.

    Parameters
    ----------
    offset, weights
        As in ``expected_rows``.
    points : array (m, n)
        The predictions.
    probabilities : array (m,)
        Of each.
    expected : array (K, A)
        Written: the expected losses at the last prediction.
    strategies : array (K, A)
        The probability of a prediction is added to the best response to it, in their order.
    first, last : int
        Span of rows.
    """
    for atom in range(len(probabilities)):
        expected_rows(offset, weights, points[atom], expected, first, last)
        for k in range(first, last):
            choice = lowest(expected[k], 0, expected.shape[1], 0.0)
            strategies[k, choice] += probabilities[atom]


class ResponseTable:
    """What K rows expect and choose at predictions, and lose at outcomes, by one table of weights.

    It is made before the first round; what does not change is laid out for the kernels then. Its
    answers are the same to the last bit as those of ``expected_losses``, of ``best_response`` to
    what is expected, and of ``market.losses.sums.offset_sum``.

    Parameters
    ----------
    offset : array (K, A)
        Weighted predictions are added to it.
    weights : array (K, A, n)
        By loss, action and number of the prediction, or coordinate of the outcome.
    loss_offset : array (K, A) or None
        Added to weighted outcomes last; None where losses at outcomes are no such sums.

    Attributes
    ----------
    has_losses : bool
        Whether it says what rows lose at an outcome, too.
    """

    def __init__(self, offset: Array, weights: Array, *, loss_offset: Array | None = None) -> None:
        self._offset = offset
        # (K, n, A), as many losses' weights lie in memory; those of few are copied.
        self._weights = np.ascontiguousarray(weights.swapaxes(1, 2))
        self._loss_offset = loss_offset
        self.has_losses = loss_offset is not None

    def respond(self, point: Array) -> tuple[Array, Indices]:
        """Return expected losses (K, A) at a prediction (n,), and best responses (K,) to them."""
        expected = np.empty(self._offset.shape)
        choices = np.empty(len(expected), dtype=np.intp)
        over_rows(
            _write_expected_and_chosen,
            len(expected),
            self._offset,
            self._weights,
            np.ascontiguousarray(point, dtype=np.float64),
            expected,
            choices,
        )
        return expected, choices

    def respond_to_points(self, points: Array, point_of_row: Indices) -> tuple[Array, Indices]:
        """Return what ``respond`` does, where row k hears ``points[point_of_row[k]]``.

        Predictions are (m, n), and the index of each row's (K,).
        """
        expected = np.empty(self._offset.shape)
        choices = np.empty(len(expected), dtype=np.intp)
        over_rows(
            _write_responses_to_points,
            len(expected),
            self._offset,
            self._weights,
            np.ascontiguousarray(points, dtype=np.float64),
            point_of_row,
            expected,
            choices,
        )
        return expected, choices

    def respond_to_mixture(self, points: Array, probabilities: Array) -> Array:
        """Return mixed strategies (K, A): best responses to predictions (m, n) drawn by (m,)."""
        strategies = np.zeros(self._offset.shape)
        over_rows(
            _add_responses_to_mixture,
            len(strategies),
            self._offset,
            self._weights,
            np.ascontiguousarray(points, dtype=np.float64),
            np.ascontiguousarray(probabilities, dtype=np.float64),
            np.empty(self._offset.shape),
            strategies,
        )
        return strategies

    def realise(self, outcome: Array) -> Array:
        """Return the losses (K, A) at an outcome (n,), where the table ``has_losses``."""
        realised = np.empty(self._offset.shape)
        over_rows(
            weighted_rows,
            len(realised),
            self._loss_offset,
            self._weights,
            np.ascontiguousarray(outcome, dtype=np.float64).reshape(1, -1),
            realised,
        )
        return realised

    def respond_and_realise(self, point: Array, outcome: Array) -> tuple[Array, Indices, Array]:
        """Return what ``respond`` returns at a prediction, and what ``realise`` does at an outcome.

        Many losses wait for memory: here each weight is read once for all.
        """
        expected = np.empty(self._offset.shape)
        realised = np.empty(self._offset.shape)
        choices = np.empty(len(expected), dtype=np.intp)
        over_rows(
            _write_expected_and_realised,
            len(expected),
            self._offset,
            self._loss_offset,
            self._weights,
            np.ascontiguousarray(point, dtype=np.float64),
            np.ascontiguousarray(outcome, dtype=np.float64),
            expected,
            realised,
            choices,
        )
        return expected, choices, realised


def best_response(losses: ArrayLike, *, tie: float = 0.0) -> Indices:
    """Return the index of the least loss along the last axis.

    Of several within ``tie`` of the least it is the lowest.

    >>> best_response([[0.2, 0.1, 0.1], [0.0, 0.5, 0.5]]).tolist()
    [1, 0]
    """
    table = np.asarray(losses, dtype=np.float64)
    rows = table.reshape(-1, table.shape[-1])
    chosen = np.empty(len(rows), dtype=np.intp)
    over_rows(_write_best_responses, len(rows), rows, tie, chosen)
    return chosen.reshape(table.shape[:-1])


@compiled(nogil=True)
def _write_exponents(losses: Array, eta: Array, exponents: Array) -> None:
    """Write -eta_k (l_ka - min_b l_kb) for rows of ``losses`` (K, A), compiled.

    ``eta`` (K,), or (1,) for all rows, is read; ``exponents`` (K, A) is written.
    """
    same_for_all = len(eta) == 1
    for k in range(losses.shape[0]):
        least_loss = losses[k, 0]
        for a in range(1, losses.shape[1]):
            least_loss = min(least_loss, losses[k, a])
        negative_eta = -eta[0 if same_for_all else k]
        for a in range(losses.shape[1]):
            exponents[k, a] = negative_eta * (losses[k, a] - least_loss)


def quantal_response(losses: ArrayLike, eta: float | Array) -> Array:
    """Return probabilities proportional to ``exp(-eta * losses)`` along the last axis (..., A).

    ``eta``, a number or (...), is positive; large values come close to a best response.

    >>> quantal_response([0.1, 0.2, 0.2], eta=5.0).round(2).tolist()
    [0.45, 0.27, 0.27]
    """
    table = np.asarray(losses, dtype=np.float64)
    etas = np.asarray(eta, dtype=np.float64)
    if etas.ndim:
        etas = np.broadcast_to(etas, table.shape[:-1])
    rows = table.reshape(-1, table.shape[-1])
    return logit_rows(rows, etas.reshape(-1)).reshape(table.shape)


def logit_rows(losses: Array, eta: Array) -> Array:
    """Return the quantal response (K, A) to ``losses`` (K, A) at ``eta``: (K,), or (1,) for all.

    Learners call it in every round.
    """
    probabilities = np.empty(losses.shape)
    _write_exponents(losses, eta, probabilities)
    np.exp(probabilities, out=probabilities)  # not compiled: NumPy's digits are others than C's
    _divide_by_sums(probabilities)
    return probabilities


@compiled(nogil=True)
def _divide_by_sums(weights: Array) -> None:
    """Divide each row of ``weights`` (K, A) by its sum, in place (compiled)."""
    for k in range(weights.shape[0]):
        total = pairwise_sum(weights[k])
        for a in range(weights.shape[1]):
            weights[k, a] /= total


def quantal_gap(actions: int, eta: float) -> float:
    """Bound how much a quantal response can lose against a best response: ln(A) / eta."""
    return float(np.log(actions) / eta)
