"""Best responses of many losses to a few predictions: losses lie side by side in blocks.

Losses that depend on the same numbers of a prediction share blocks, and a block has the weights of
these numbers alone: of statistics of several families a loss needs those of its own. A processor
compares the actions of all losses of a block at once. With 200 losses of 6 actions, which depend on
3 of 9 numbers each, best responses to seven predictions took 9 us; adding up rows of all numbers
and comparing them loss by loss took 24 us.

Sums are those of ``best_response.expected_rows`` but for the sign of a zero: what is left out is a
number times the weight zero.
"""

from collections.abc import Sequence

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.fixed import Fixed
from regretless.market.numerics.storage import without_unused_numbers

LANES_OF_REGISTER = 8  # as many numbers fill a processor's registers
MAX_LANES = 32  # losses of a block


class LossesSideBySide(Fixed):
    """K losses of several groups, in B blocks of up to L losses that depend on the same m numbers.

    Parameters
    ----------
    coefficients : sequence of (offset (K_g, A_g), weights (K_g, A_g, n))
        The losses of every group, in their order among all K. Groups may have different numbers of
        actions.
    """

    def __init__(self, coefficients: Sequence[tuple[Array, Array]]) -> None:
        offset, weights = _in_one_table(coefficients)
        self._n_losses, self._n_actions, _n_numbers = weights.shape
        families = _families(weights)
        n_lanes = _lanes(max(len(losses) for losses, _numbers in families))
        blocks: list[tuple[Indices, Indices]] = []  # the losses of each, and their numbers
        for losses, numbers in families:
            ends_of_blocks = range(n_lanes, len(losses), n_lanes)
            blocks.extend((part, numbers) for part in np.split(losses, ends_of_blocks))
        n_numbers = max(len(numbers) for _losses, numbers in blocks)
        # Sums of all actions and lanes lie in one line, which fills whole registers.
        width = -(-self._n_actions * n_lanes // LANES_OF_REGISTER) * LANES_OF_REGISTER
        self._losses = np.full((len(blocks), n_lanes), -1)  # which of all K, -1 for none
        self._numbers = np.zeros((len(blocks), n_numbers), dtype=np.intp)
        self._offset = np.zeros((len(blocks), width))
        self._weights = np.zeros((len(blocks), n_numbers, width))
        for block, (losses, numbers) in enumerate(blocks):
            self._losses[block, : len(losses)] = losses
            self._numbers[block, : len(numbers)] = numbers
            for action in range(self._n_actions):
                first = action * n_lanes
                places = slice(first, first + len(losses))
                self._offset[block, places] = offset[losses, action]
                weights_of_action = weights[losses, action][:, numbers]
                self._weights[block, : len(numbers), places] = weights_of_action.T

    def best_actions(self, points: Array) -> Indices:
        """Return every loss's best response to each of M points: (K, M), ties to the lowest."""
        best_actions = np.empty((self._n_losses, len(points)), dtype=np.intp)
        _write_best_actions(
            self._offset,
            self._weights,
            self._losses,
            self._numbers,
            self._n_actions,
            np.ascontiguousarray(points, dtype=np.float64),
            best_actions,
        )
        return best_actions


def _in_one_table(coefficients: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the offset (K, A) and weights (K, A, n) of all groups' losses.

    Actions that a loss lacks have infinite offsets, so that they are never the best.
    """
    if len(coefficients) == 1:
        return coefficients[0]
    n_losses = sum(len(offset) for offset, _weights in coefficients)
    n_actions = max(offset.shape[1] for offset, _weights in coefficients)
    n_numbers = coefficients[0][1].shape[2]
    offset = np.full((n_losses, n_actions), np.inf)
    weights = np.zeros((n_losses, n_actions, n_numbers))
    first = 0
    for offset_of_group, weights_of_group in coefficients:
        end = first + len(offset_of_group)
        offset[first:end, : offset_of_group.shape[1]] = offset_of_group
        weights[first:end, : offset_of_group.shape[1]] = weights_of_group
        first = end
    return offset, weights


def _families(weights: Array) -> list[tuple[Indices, Indices]]:
    """Return which losses depend on the same numbers, and on which, of weights (K, A, n).

    Where so few losses do that blocks of their own would be larger together than blocks of all
    losses with all numbers, these are returned.
    """
    n_losses, _n_actions, n_numbers = weights.shape
    numbers_of_losses, _weights = without_unused_numbers(weights)
    numbers_of_families, family_of_loss, sizes = np.unique(
        numbers_of_losses, axis=0, return_inverse=True, return_counts=True
    )
    n_lanes = _lanes(sizes.max())
    size_of_families = (-(-sizes // n_lanes)).sum() * n_lanes * numbers_of_losses.shape[1]
    n_lanes_of_all = _lanes(n_losses)
    size_of_all = -(-n_losses // n_lanes_of_all) * n_lanes_of_all * n_numbers
    if size_of_families >= size_of_all:
        return [(np.arange(n_losses), np.arange(n_numbers))]
    return [
        ((family_of_loss.reshape(-1) == family).nonzero()[0], numbers)
        for family, numbers in enumerate(numbers_of_families)
    ]


def _lanes(n_losses: int) -> int:
    """Return how wide blocks of many losses are: whole registers, or as many as there are few."""
    if n_losses <= LANES_OF_REGISTER:
        return n_losses
    losses_of_block = -(-n_losses // -(-n_losses // MAX_LANES))
    return -(-losses_of_block // LANES_OF_REGISTER) * LANES_OF_REGISTER


@compiled()
def _write_best_actions(
    offset: Array,
    weights: Array,
    losses: Indices,
    numbers: Indices,
    n_actions: int,
    points: Array,
    best_actions: Indices,
) -> None:
    """Write the best response of each loss to each of M points, the lowest of equals (compiled).

    Whatever the losses' owners play themselves: so the kernel asks for no chances.

    Parameters
    ----------
    offset : array (B, W)
        Of B blocks of L losses: of action a of the loss in lane j at a L + j.
    weights : array (B, m, W)
        The same of weights, by number.
    losses : int array (B, L)
        Which of all K losses is in each lane, -1 for none, which only the last lanes have.
    numbers : int array (B, m)
        Which numbers of a prediction the losses of a block depend on, ascending. Weights of others
        that fill up the row are zero.
    n_actions : int
        A.
    points : array (M, n)
        Predictions.
    best_actions : int array (K, M)
        Written.
    """
    n_lanes = losses.shape[1]
    expected = np.empty(offset.shape[1])
    expected_by_action = expected[: n_actions * n_lanes].reshape((n_actions, n_lanes))
    least_loss = np.empty(n_lanes)
    best = np.empty(n_lanes, np.intp)
    for block in range(offset.shape[0]):
        for m in range(points.shape[0]):
            for w in range(offset.shape[1]):
                expected[w] = offset[block, w]
            for i in range(numbers.shape[1]):
                number = points[m, numbers[block, i]]
                for w in range(offset.shape[1]):
                    expected[w] += weights[block, i, w] * number
            for lane in range(n_lanes):
                best[lane] = 0
                least_loss[lane] = expected_by_action[0, lane]
            for action in range(1, n_actions):
                for lane in range(n_lanes):  # in vectors, without branches
                    is_lower = expected_by_action[action, lane] < least_loss[lane]
                    best[lane] = action if is_lower else best[lane]
                    least_loss[lane] = (
                        expected_by_action[action, lane] if is_lower else least_loss[lane]
                    )
            for lane in range(n_lanes):
                loss = losses[block, lane]
                if loss < 0:
                    break
                best_actions[loss, m] = best[lane]
