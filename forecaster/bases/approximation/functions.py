r"""Functions of the outcome that are single actions of real losses, each stretched onto [0, 1].

The loss of action a of loss k, with range [low, high] over the cube, gives the function

    s(y) = (l_k(a, y) - low) / (high - low),        l_k(a, y) = low + (high - low) s(y),

so a normalised loss is its own linear form with sum |r_i| <= 1. Equal functions are listed once.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.losses import Loss

Key = tuple[tuple[object, ...], bytes]


class LossFunctions:
    """The distinct actions of several stacks of losses.

    Parameters
    ----------
    losses : sequence of Loss
        Each a stack (K, A) or a single loss, all over outcomes of the same length.

    Attributes
    ----------
    size : int
        Number of distinct functions that are not constant.
    outcomes : int
        Coordinates of an outcome, d.
    low, scale : array (size,)
        Least loss of each function and the length of its range.
    """

    def __init__(self, losses: Sequence[Loss]) -> None:
        if not losses:
            raise ValueError("give at least one loss")
        if len({loss.outcomes for loss in losses}) != 1:
            raise ValueError("the losses need the same number of outcomes")
        self.outcomes = losses[0].outcomes
        self._parts: list[tuple[Loss, Indices]] = []
        self._found: dict[Key, int] = {}
        self.low, high = np.concatenate([self._list(stacked(loss)) for loss in losses], axis=1)
        self.scale = high - self.low
        self.size = len(self.low)
        if not self.size:
            raise ValueError("every loss is constant, there is nothing to forecast")

    def _list(self, loss: Loss) -> Array:
        """Find the new functions of one stack; their least and greatest loss (2, count)."""
        low, high = loss.enclosure(np.zeros(self.outcomes), np.ones(self.outcomes))
        keys, picked = keys_of(loss), []
        for place in np.argwhere(high > low):
            key = keys[place[0]][place[1]]
            if key not in self._found:
                self._found[key] = len(self._found)
                picked.append(place)
        rows, actions = np.array(picked, dtype=np.intp).reshape(-1, 2).T
        if len(rows):
            self._parts.append((loss[rows], actions))
        return np.stack([low[rows, actions], high[rows, actions]])

    def index(self, loss: Loss) -> Indices:
        """Find each action of a loss in the list: (K, A), or -1 where it is not there."""
        return np.array(
            [[self._found.get(key, -1) for key in row] for row in keys_of(stacked(loss))]
        )

    def values(self, y: ArrayLike) -> Array:
        """Compute all functions at outcomes (..., d): (..., size) in [0, 1]."""
        outcomes = np.asarray(y, dtype=np.float64)
        columns = [
            loss.losses(outcomes)[..., np.arange(len(actions)), actions]
            for loss, actions in self._parts
        ]
        return self._stretched(columns)

    def enclosure(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ranges of all functions over boxes (T, d): (T, size) twice."""
        ends: tuple[list[Array], list[Array]] = ([], [])
        for loss, actions in self._parts:
            for end, part in zip(ends, loss.enclosure(low, high), strict=True):
                end.append(part[..., np.arange(len(actions)), actions])
        return self._stretched(ends[0]), self._stretched(ends[1])

    def _stretched(self, columns: list[Array]) -> Array:
        table = np.concatenate(columns, axis=-1)
        return np.asarray(np.clip((table - self.low) / self.scale, 0.0, 1.0))

    def slopes(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ranges of all partial derivatives over boxes (T, d): (T, d, size) twice."""
        ends: tuple[list[Array], list[Array]] = ([], [])
        for loss, actions in self._parts:
            for end, part in zip(ends, loss.slopes(low, high), strict=True):
                end.append(part[:, np.arange(len(actions)), actions])
        least, greatest = (
            np.moveaxis(np.concatenate(end, axis=1), 1, -1) / self.scale for end in ends
        )
        return least, greatest

    def chosen(self, functions: Iterable[int]) -> "LossFunctions":
        """Keep only these functions, in ascending order."""
        order = sorted({int(function) for function in functions})
        kept = object.__new__(LossFunctions)
        kept.outcomes, kept._parts, start = self.outcomes, [], 0
        for loss, actions in self._parts:
            inside = np.array([i - start for i in order if 0 <= i - start < len(actions)], np.intp)
            if len(inside):
                kept._parts.append((loss[inside], actions[inside]))
            start += len(actions)
        renamed = {old: new for new, old in enumerate(order)}
        kept._found = {k: renamed[v] for k, v in self._found.items() if v in renamed}
        kept.low, kept.scale, kept.size = self.low[order], self.scale[order], len(order)
        return kept


def stacked(loss: Loss) -> Loss:
    """View a single loss as a stack of one."""
    return loss if loss.stack else loss.as_stack()


def keys_of(loss: Loss) -> list[list[Key]]:
    """One hashable key for each action of a stack; equal keys are equal functions."""
    identity = loss.identity
    table = loss.rows() + 0.0  # the sign of a zero must not tell equal functions apart
    return [[(identity, row.tobytes()) for row in rows] for rows in table]
