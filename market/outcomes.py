r"""Outcomes on a finite support, collected while a run goes on, with the joint law of every row.

Exploitability needs the joint law of action and outcome on a support of at most ``most`` points.
While at most so many distinct outcomes were seen each is a point of its own and the law is exact.
From then on a point is a used cell of a dyadic grid, represented by the mean of its outcomes.
Where more than ``most`` cells are in use, the coordinate with the finest intervals gets intervals
of twice the length (of several the last one) and cells merge: what was counted stays counted, and
memory stays at K A ``most`` numbers per cohort.

Quantisation error of a loss: the average over rounds of max_a |l(a, y_t) - l(a, point of y_t)|.
The exact range of the loss over the smallest box around a cell's outcomes bounds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from market.losses import Loss

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

FINEST = 16  # halvings of a coordinate when the grid begins


class OutcomeBins:
    """Counts how often each row played each action at each point of the support.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Rows and actions (K, A) of each cohort.
    outcomes : int
        Coordinates of an outcome, d.
    most : int
        Points of the support, at most.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], outcomes: int, *, most: int = 64) -> None:
        if outcomes < 1 or most < 1:
            raise ValueError(f"outcomes is {outcomes} and most {most}; give at least 1")
        self.sizes, self.outcomes, self.most = tuple(sizes), outcomes, most
        self.halvings: Integers | None = None  # per coordinate; None while exact
        self._keys: dict[bytes, int] = {}
        self._cells = np.zeros((0, outcomes), dtype=np.int64)
        self._rounds = np.zeros(0)
        self._sum, self._low, self._high = (np.zeros((0, outcomes)) for _ in range(3))
        self._played: list[list[Array]] = [[] for _ in self.sizes]

    @property
    def exact(self) -> bool:
        """Whether every distinct outcome is a point of its own."""
        return self.halvings is None

    @property
    def points(self) -> Array:
        """Support (m, d): the outcomes seen, or the mean outcome of each used cell."""
        means = self._sum / self._rounds[:, None]
        return np.clip(np.where(self._low == self._high, self._low, means), self._low, self._high)

    @property
    def shares(self) -> Array:
        """Share of the rounds at each point (m,)."""
        shares: Array = self._rounds / max(1.0, float(self._rounds.sum()))
        return shares

    def add(self, probabilities: Sequence[Array], outcome: ArrayLike) -> None:
        """Add a round.

        Parameters
        ----------
        probabilities : sequence of arrays (K, A)
            Law of play of each cohort's rows; zeros for a row that is not present.
        outcome : array (d,)
            In [0, 1].

        Raises
        ------
        ValueError
            If a shape does not fit or the outcome leaves [0, 1].
        """
        y = np.asarray(outcome, dtype=np.float64) + 0.0  # one zero, not two
        if y.shape != (self.outcomes,) or not ((y >= 0) & (y <= 1)).all():
            raise ValueError(f"outcome is {y}; give {self.outcomes} numbers from 0 to 1")
        if tuple(np.shape(play) for play in probabilities) != self.sizes:
            raise ValueError(f"probabilities must have the shapes {self.sizes}")
        key = self._key(y)
        if key not in self._keys:
            self._open(key, y)
        i = self._keys[key]
        self._rounds[i] += 1.0
        self._sum[i] += y
        self._low[i], self._high[i] = np.minimum(self._low[i], y), np.maximum(self._high[i], y)
        for played, play in zip(self._played, probabilities, strict=True):
            played[i] += play
        if len(self._rounds) > self.most:
            self._coarsen()

    def joints(self, cohort: int) -> Array:
        """Joint law of action and point of every row of a cohort.

        Parameters
        ----------
        cohort : int
            Its position in ``sizes``.

        Returns
        -------
        array (K, A, m)
            Over the rounds in which the row was present; zeros for one that never was.
        """
        rows, actions = self.sizes[cohort]
        counts = np.zeros((rows, actions, len(self._rounds)))
        for i, played in enumerate(self._played[cohort]):
            counts[:, :, i] = played
        total = counts.sum((1, 2), keepdims=True)
        laws: Array = np.divide(counts, total, out=counts, where=total > 0)
        return laws

    def losses(self, loss: Loss) -> Array:
        """Losses of all actions at the points, (..., m, A)."""
        table: Array = np.moveaxis(loss.losses(self.points), 0, -2)
        return table

    def error(self, loss: Loss) -> Array:
        """Bound the quantisation error of each loss of a stack.

        Parameters
        ----------
        loss : Loss
            Of stack shape (...).

        Returns
        -------
        array (...)
            0 while the support is exact.
        """
        spread = np.flatnonzero((self._low < self._high).any(1))
        if not len(spread):
            return np.zeros(loss.stack)
        at = loss.losses(self.points[spread])
        least, greatest = loss.enclosure(self._low[spread], self._high[spread])
        worst = np.maximum(greatest - at, at - least).max(-1)
        return np.asarray(np.tensordot(self.shares[spread], worst, axes=1))

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs: arrays and plain values."""
        played = {str(c): self._stacked(c) for c in range(len(self.sizes))}
        return {
            "halvings": None if self.halvings is None else self.halvings.tolist(),
            "cells": self._cells.copy(),
            "rounds": self._rounds.copy(),
            "sum": self._sum.copy(),
            "low": self._low.copy(),
            "high": self._high.copy(),
            "played": played,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        halvings = state["halvings"]
        self.halvings = None if halvings is None else np.array(halvings, dtype=np.int64)
        self._cells = np.array(state["cells"], dtype=np.int64)
        self._rounds, self._sum = np.array(state["rounds"]), np.array(state["sum"])
        self._low, self._high = np.array(state["low"]), np.array(state["high"])
        self._played = [list(np.array(state["played"][str(c)])) for c in range(len(self.sizes))]
        names = self._low if self.exact else self._cells
        self._keys = {name.tobytes(): i for i, name in enumerate(names)}

    def _stacked(self, cohort: int) -> Array:
        """Return the counts of a cohort (m, K, A)."""
        counts = self._played[cohort]
        return np.array(counts).reshape(len(counts), *self.sizes[cohort])

    def _key(self, y: Array) -> bytes:
        return y.tobytes() if self.halvings is None else _cell(y, self.halvings).tobytes()

    def _open(self, key: bytes, y: Array) -> None:
        """Begin a point with no rounds yet."""
        self._keys[key] = len(self._rounds)
        cell = np.zeros(self.outcomes, np.int64) if self.exact else np.frombuffer(key, np.int64)
        self._cells = np.vstack([self._cells, cell])
        self._rounds = np.append(self._rounds, 0.0)
        self._sum = np.vstack([self._sum, np.zeros(self.outcomes)])
        self._low, self._high = np.vstack([self._low, y]), np.vstack([self._high, y])
        for played, size in zip(self._played, self.sizes, strict=True):
            played.append(np.zeros(size))

    def _coarsen(self) -> None:
        """Double intervals until few enough cells are in use, then merge what fell together."""
        if self.halvings is None:
            self.halvings = np.full(self.outcomes, FINEST)
            self._cells = _cell(self._low, self.halvings)
        place = np.arange(len(self._cells))
        while len(np.unique(place)) > self.most:
            j = self.outcomes - 1 - int(self.halvings[::-1].argmax())
            self.halvings[j] -= 1
            self._cells[:, j] >>= 1
            _, first, inverse = np.unique(
                self._cells, axis=0, return_index=True, return_inverse=True
            )
            place = np.argsort(np.argsort(first))[inverse.ravel()]  # in order of appearance
        self._merge(place)

    def _merge(self, place: NDArray[np.intp]) -> None:
        """Move every point to its new place, adding up those that share one."""
        count = int(place.max()) + 1
        cells, rounds = np.zeros((count, self.outcomes), np.int64), np.zeros(count)
        total, low = np.zeros(cells.shape), np.full(cells.shape, np.inf)
        high = np.full(cells.shape, -np.inf)
        cells[place] = self._cells
        np.add.at(rounds, place, self._rounds)
        np.add.at(total, place, self._sum)
        np.minimum.at(low, place, self._low)
        np.maximum.at(high, place, self._high)
        for c, played in enumerate(self._played):
            merged = [np.zeros(self.sizes[c]) for _ in range(count)]
            for old, new in enumerate(place):
                merged[new] += played[old]
            self._played[c] = merged
        self._cells, self._rounds, self._sum = cells, rounds, total
        self._low, self._high = low, high
        self._keys = {cell.tobytes(): i for i, cell in enumerate(cells)}


def _cell(y: Array, halvings: Integers) -> Integers:
    """Cell of the dyadic grid that holds an outcome (d,), or of many (m, d)."""
    parts = 2**halvings
    return np.asarray(np.minimum((y * parts).astype(np.int64), parts - 1))
