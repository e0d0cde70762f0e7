r"""Bases of losses themselves: all of them, or several bases side by side.

The loss of action a of loss k, with range [low, high] over the cube, gives the function

    s(y) = (l_k(a, y) - low) / (high - low),        l_k(a, y) = low + (high - low) s(y),

so a normalised loss is its own linear form with sum |r_i| <= 1. Equal functions are listed once.

**Exact.** All functions of a finite population: error 0, lambda 1. The size enters regret only
through a logarithm; a reduced basis buys computing time and serves agents that were not listed.

**Direct sum.** Several bases side by side, for a population of several loss forms. A loss uses one
part's functions and has coefficient 0 on all others.

**Support.** A grid of cells, on each of which a function strays from its interpolant by at most its
range there, and at most a quarter of the side times the range of its slope, summed over the axes.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.minimax.support import CellBasis, CellSupport
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.losses import Loss
from regretless.market.losses.base import Range
from regretless.market.losses.basis import Basis, Support

Key = tuple[tuple[object, ...], bytes]


@register.basis("exact")
class ExactLossesBasis(CellBasis):
    """Every distinct action, not constant, of every listed loss with values in [0, 1].

    ``low`` and ``scale`` (size,) are the least loss of each function and the length of its range,
    ``index_of_key`` has the key of each, in order.
    """

    lipschitz = 1.0
    error = 0.0

    def __init__(self, losses: Sequence[Loss]) -> None:
        if len({loss.outcomes for loss in losses}) != 1:
            raise ValueError("give losses, all over the same number of outcomes")
        self.outcomes = losses[0].outcomes
        self._parts: list[tuple[Loss, Indices]] = []
        self.index_of_key: dict[Key, int] = {}
        lows = []
        highs = []
        for loss in losses:
            stack = loss.as_stack()
            rows = []
            actions = []
            low, high = stack.enclosure(np.zeros(self.outcomes), np.ones(self.outcomes))
            keys = keys_of(stack)
            for row, action in np.argwhere(high > low):
                key = keys[row][action]
                if key not in self.index_of_key:
                    self.index_of_key[key] = len(self.index_of_key)
                    rows.append(row)
                    actions.append(action)
            new_rows = np.array(rows, dtype=np.intp)
            new_actions = np.array(actions, dtype=np.intp)
            if rows:
                self._parts.append(_with_one_action_each(stack[new_rows], new_actions))
            lows.append(low[new_rows, new_actions])
            highs.append(high[new_rows, new_actions])
        self.low = np.concatenate(lows)
        high = np.concatenate(highs)
        self.scale = high - self.low
        self.size = len(high)
        if not self.size:
            raise ValueError("every loss is constant, there is nothing to forecast")

    @property
    def identity(self) -> tuple[object, ...]:
        """What decides the functions, their order and how they are computed, digested."""
        identities, coefficient_rows = zip(*self.index_of_key, strict=True)
        parts = tuple((type(loss), len(actions)) for loss, actions in self._parts)
        # equal identities that follow one another, and how many
        groups = itertools.groupby(identities)
        runs = tuple((identity, len(list(equal))) for identity, equal in groups)
        lengths = repr([len(row) for row in coefficient_rows]).encode()
        return parts, runs, sha256(lengths + b"".join(coefficient_rows)).digest()

    def chosen(self, functions: Iterable[int]) -> "ExactLossesBasis":
        """Keep only these functions, in ascending order."""
        kept_functions = sorted({int(function) for function in functions})
        subset = object.__new__(ExactLossesBasis)  # without looking for equal functions again
        subset.outcomes = self.outcomes
        subset._parts = []
        first = 0  # of the part's functions
        for loss, actions in self._parts:
            end = first + len(actions)
            kept_of_part = [index for index in kept_functions if first <= index < end]
            if kept_of_part:
                positions = np.array(kept_of_part, np.intp) - first
                subset._parts.append((loss[positions], actions[positions]))
            first = end
        new_index = {old: new for new, old in enumerate(kept_functions)}
        subset.index_of_key = {}
        for key, index in self.index_of_key.items():
            if index in new_index:
                subset.index_of_key[key] = new_index[index]
        subset.low = self.low[kept_functions]
        subset.scale = self.scale[kept_functions]
        subset.size = len(kept_functions)
        return subset

    def _of_functions(self, read: Callable[[Loss], Array]) -> Array:
        """Read every function (..., size) from what ``read`` returns of losses (..., K, A).

        A part's loss has a row for each of the part's functions, of which one action is the
        function.
        """
        values = []
        for loss, actions in self._parts:
            values_of_actions = read(loss)
            if loss.actions == 1:
                values.append(values_of_actions[..., 0])
            else:
                values.append(values_of_actions[..., np.arange(len(actions)), actions])
        if len(values) == 1:
            return values[0]
        return np.concatenate(values, axis=-1)

    def _stretched(self, losses: Array) -> Array:
        """Map losses (..., size) from their ranges onto [0, 1]."""
        return np.minimum(np.maximum((losses - self.low) / self.scale, 0.0), 1.0)

    def transform(self, y: ArrayLike) -> Array:
        outcomes = np.asarray(y, dtype=np.float64)
        return self._stretched(self._of_functions(lambda loss: loss.losses(outcomes)))

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Point at each action's own function; ValueError for a loss that was not listed."""
        self.check_outcomes(loss)
        stack = loss.as_stack()
        # the index of each action's function (K, A), -1 for an action without one
        keys = itertools.chain.from_iterable(keys_of(stack))
        indices = [self.index_of_key.get(key, -1) for key in keys]
        function_indices = np.reshape(indices, (-1, stack.actions))
        least, greatest = stack.enclosure(np.zeros(self.outcomes), np.ones(self.outcomes))
        has_no_function = function_indices < 0
        if (has_no_function & (greatest > least)).any():
            raise ValueError("a loss is not among those that this basis lists")
        # An action is low + scale s(y) of its function; without one it is the same everywhere.
        constant = stack.losses(np.zeros(self.outcomes))
        offset = np.where(has_no_function, constant, self.low[function_indices])
        is_own_function = np.arange(self.size) == function_indices[..., None]
        weights = np.where(is_own_function, self.scale, 0.0)
        return self.contiguous(offset.reshape(loss.offset.shape), weights)

    def enclosure(self, low: Array, high: Array) -> Range:
        """Ranges of all functions over boxes (T, d): (T, size) twice."""
        ranges = self._of_functions(lambda loss: np.stack(loss.enclosure(low, high)))
        return self._stretched(ranges[0]), self._stretched(ranges[1])

    def slopes(self, low: Array, high: Array) -> Range:
        """Ranges of all partial derivatives over boxes (T, d): (T, d, size) twice."""

        def coordinates_first(loss: Loss) -> Array:
            """Return a loss's ranges of slopes (2, T, d, K, A)."""
            return np.moveaxis(np.stack(loss.slopes(low, high)), -1, 2)

        ranges = self._of_functions(coordinates_first)
        return ranges[0] / self.scale, ranges[1] / self.scale

    def support(self) -> Support:
        """Cut the cube into cells, denser towards 0."""
        return CellSupport(self, 0.0, 1.0, power=2)

    def errors(self, low: Array, high: Array) -> Range:
        """Bound what interpolation misses on boxes, by the ranges of functions and slopes."""
        lowest, highest = self.enclosure(low, high)
        least_slope, greatest_slope = self.slopes(low, high)
        sides = (high - low)[..., None]
        error_by_slope = ((greatest_slope - least_slope) * sides).sum(1) / 4  # as at the top
        error_above_and_below = np.minimum(highest - lowest, error_by_slope)
        return error_above_and_below, error_above_and_below


def _with_one_action_each(loss: Loss, actions: Indices) -> tuple[Loss, Indices]:
    """Return losses (K,) without all actions but one each, and the indices of these.

    What a function of the basis costs is then no more than that function.
    """
    losses_of_one_action = loss.one_action_each(actions)
    if losses_of_one_action is None:
        return loss, actions
    return losses_of_one_action, np.zeros_like(actions)


def keys_of(loss: Loss) -> list[list[Key]]:
    """One hashable key for each action of a stack; equal keys are equal functions."""
    identity = loss.identity
    coefficients = loss.rows() + 0.0  # the sign of a zero must not tell equal functions apart
    return [[(identity, row.tobytes()) for row in rows] for rows in coefficients]


class DirectSumBasis(Basis):
    """Several bases over the same outcomes; a loss is served by the first part that accepts it.

    Examples
    --------
    >>> from regretless.forecaster.bases import LinearBasis, PowerBasis
    >>> both = DirectSumBasis([LinearBasis(1), PowerBasis([0.5], 1)])
    >>> both.transform([0.25]), both.block(1)
    (array([0.25, 0.5 ]), slice(1, 2, None))
    """

    def __init__(self, parts: Sequence[Basis]) -> None:
        if len({part.outcomes for part in parts}) != 1:
            raise ValueError("the parts of a direct sum need the same number of outcomes")
        self.parts = tuple(parts)
        self.outcomes = parts[0].outcomes
        self.size = sum(part.size for part in parts)
        self.lipschitz = max(part.lipschitz for part in parts)
        self.error = max(part.error for part in parts)
        self.convex_image = len(parts) == 1 and parts[0].convex_image

    def block(self, index: int) -> slice:
        """Columns of the part with this index."""
        start = sum(part.size for part in self.parts[:index])
        return slice(start, start + self.parts[index].size)

    def served(self, loss: Loss) -> tuple[int, tuple[Array, Array]]:
        """Index of the first part with coefficients of the loss, and these; ValueError if none."""
        reasons = []
        for index, part in enumerate(self.parts):
            try:
                return index, part.coefficients(loss)
            except ValueError as reason:
                reasons.append(str(reason))
        raise ValueError("; ".join(reasons))

    def transform(self, y: ArrayLike) -> Array:
        return np.concatenate([part.transform(y) for part in self.parts], axis=-1)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        index, (offset, weights_of_part) = self.served(loss)
        weights = np.zeros((*weights_of_part.shape[:-1], self.size))
        weights[..., self.block(index)] = weights_of_part
        return offset, weights

    def certified_error(self, losses: Loss) -> float:
        return self.parts[self.served(losses)[0]].certified_error(losses)

    def inverse(self, points: Array) -> Array:
        labels = []
        for index, part in enumerate(self.parts):
            labels.append(part.inverse(points[..., self.block(index)]))
        return np.asarray(np.mean(labels, axis=0))
