"""The protected losses, and how their owners respond to a prediction.

Losses with equal numbers of actions and equal policies form a group; all (loss, action) pairs of
all groups are the rows of one table, which the compiled kernels read. A row's response is the
probability that its action is played: one-hot for a best response (ties to the lowest index), the
logit distribution for a quantal one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regretless.market.best_response import expected_losses, expected_rows, lowest
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled
from regretless.market.core.fixed import Fixed
from regretless.market.records import Policy

RowArrays = tuple[Array, Array, Integers, Array, Array]  # a ``LossTable`` spelled out
Room = tuple[Array, Array, Integers]  # what ``choose`` writes, as ``room_for`` describes it
LANES = 32  # rows of a block, whose expected losses are added up side by side


@dataclass(frozen=True, eq=False)
class ProtectedLosses(Fixed):
    """Distinct losses with a common number of actions and common benchmark policies."""

    offset: Array  # (K, A)
    weights: Array  # (K, A, n), in the predicted basis, exactly as the agents use them
    policies: Sequence[Policy] = ()  # each maps a context to an action index
    eta: float | None = None  # smoothness of a quantal response; None for a best response
    tie: float = 0.0  # a best response is the lowest index among those within this of the best
    # another rule in place of both: from predicted losses (K, A) to mixed strategies (K, A)
    play: Callable[[Array], Array] | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether nothing in them has a memory, as a policy or a user's rule may."""
        return self.play is None and not self.policies

    @property
    def response(self) -> tuple[object, ...]:
        """How the owners respond."""
        return self.eta, self.tie, self.play


class LossTable(Fixed):
    """All (loss, action) pairs of all groups: one row each, R in all, as kernels read them.

    Loss k owns rows start[k] to start[k + 1] - 1; ``custom`` groups have a rule of their own.
    """

    def __init__(self, groups: Sequence[ProtectedLosses]) -> None:
        if not groups:
            raise ValueError("a forecaster needs at least one loss to protect")
        self.groups = tuple(groups)
        self.size = groups[0].weights.shape[-1]
        counts = [len(group.offset) for group in groups]
        tables = [group.weights.reshape(-1, self.size) for group in groups]
        self.weights = tables[0] if len(tables) == 1 else np.concatenate(tables)  # (R, n)
        offset = np.concatenate([group.offset.ravel() for group in groups])
        actions = np.repeat([group.offset.shape[1] for group in groups], counts)
        self.start = np.cumsum([0, *actions])
        self.shape: tuple[int, int] = int(self.start[-1]), self.size
        # (B, LANES), (B, n, LANES), the last filled up with zeros
        self._blocks = _blocks(offset[:, None])[:, 0], _blocks(self.weights)
        self.offset = self._blocks[0].reshape(-1)[: len(offset)]  # (R,), a view
        eta = np.repeat([np.inf if group.eta is None else group.eta for group in groups], counts)
        tie = np.repeat([group.tie for group in groups], counts)
        self.arrays: RowArrays = *self._blocks, self.start, eta, tie
        # the same rows, whose owners all play the best response, the lowest of those that tie
        hard = np.full(len(eta), np.inf), np.zeros(len(tie))
        self._hard_arrays: RowArrays = *self._blocks, self.start, *hard
        self.custom = tuple(group for group in groups if group.play is not None)

    @property
    def is_fixed(self) -> bool:
        return all(group.is_fixed for group in self.groups)

    def place(self, group: ProtectedLosses) -> int:
        """Return the place of a group; ValueError if it is not protected."""
        if group not in self.groups:
            raise ValueError("the group is not protected")
        return self.groups.index(group)

    def losses(self, group: ProtectedLosses) -> slice:
        """Return the places of a group's losses among all K."""
        first = sum(len(own.offset) for own in self.groups[: self.place(group)])
        return slice(first, first + len(group.offset))

    def slice(self, group: ProtectedLosses) -> slice:
        """Return the places of a group's rows among all R."""
        first = sum(own.offset.size for own in self.groups[: self.place(group)])
        return slice(first, first + group.offset.size)

    def best_responses(self, points: Array) -> Indices:
        """Return every loss's best response to each of M points: (K, M), ties to the lowest."""
        best = np.empty((len(self.start) - 1, len(points)), dtype=np.intp)
        room = room_for(self._hard_arrays)
        played = room[2]
        for j, point in enumerate(np.ascontiguousarray(points, dtype=np.float64)):
            choose(self._hard_arrays, point, room)
            best[:, j] = played[:, 0] - self.start[:-1]
        return best

    def times(self, vector: Array) -> Array:
        """Return ``weights @ vector`` (R,) without the copy."""
        return np.asarray((vector @ self._blocks[1]).reshape(-1)[: self.start[-1]])


def room_for(rows: RowArrays) -> Room:
    """Make room for what ``choose`` writes.

    A number for every place of the blocks (B, LANES), the same numbers in one line (a view of
    them), and from where to where rows are played (K, 2). It is made here because kernels that
    make or reshape arrays take several times as long to compile.
    """
    losses = np.empty(rows[0].shape)
    played = np.empty((len(rows[2]) - 1, 2), np.int64)
    return losses, losses.reshape(-1), played


@compiled()
def choose(rows: RowArrays, point: Array, room: Room) -> None:
    """Write which rows are played at a prediction, [k, 0] to before [k, 1], with probabilities."""
    offset, weights, start, eta, tie = rows
    losses, chances, played = room  # ``chances`` are the expected losses at first
    expected_rows(offset, weights, point, losses, 0, offset.shape[0])
    for k in range(start.shape[0] - 1):
        first = start[k]
        end = start[k + 1]
        best = lowest(chances, first, end, tie[k] if eta[k] == math.inf else 0.0)
        if eta[k] == math.inf:
            chances[best] = 1.0
            played[k, 0], played[k, 1] = best, best + 1
            continue
        total = 0.0
        least = chances[best]
        for r in range(first, end):
            chances[r] = math.exp(-eta[k] * (chances[r] - least))
            total += chances[r]
        for r in range(first, end):
            chances[r] /= total
        played[k, 0], played[k, 1] = first, end


def _blocks(rows: Array) -> Array:
    """Put the rows of a table (R, n) side by side in blocks (B, n, LANES)."""
    filled = np.zeros((-(-len(rows) // LANES) * LANES, rows.shape[1]))
    filled[: len(rows)] = rows
    return np.ascontiguousarray(filled.reshape(-1, LANES, rows.shape[1]).swapaxes(1, 2))


def responses_at(rows: LossTable, point: Array) -> Array:
    """Compute every row's response (R,) to one prediction, rules of other kinds included."""
    seen, _ = _moved(rows.arrays, point[None], np.ones(1), np.zeros(len(point)))
    for group in rows.custom:
        assert group.play is not None  # noqa: S101 - that is what custom groups are
        play = group.play(expected_losses(group.offset, group.weights, point))
        seen[rows.slice(group)] = play.ravel()
    return np.asarray(seen)


class Played(NamedTuple):
    """What a round adds to the events, in expectation over the mixture."""

    seen: Array  # (R,) E[q], how much every row was played
    bias: Array  # (R, n) E[q (p - s)]; zero for rows that nobody plays
    distribution: tuple[Array, Array, Array]  # the mixture's points (m, n) and mass (m,), s(y) (n,)
    drawn: "Played | None" = None  # the same of the prediction that was broadcast, if known
    losses: Array | None = None  # (R,) charged while a reference was trusted


def played_of(rows: LossTable, points: Array, mass: Array, truth: Array) -> Played:
    """Compute what a mixture (m, n), (m,) of predictions adds where s(y) is ``truth`` (n,)."""
    if rows.custom:
        shares = np.stack([responses_at(rows, point) for point in points]) * mass[:, None]
        seen = shares.sum(0)
        bias = shares.T @ points - np.outer(seen, truth)
    else:
        seen, bias = _moved(rows.arrays, points, mass, truth)
    return Played(seen, bias, (points, mass, truth))


def _moved(rows: RowArrays, points: Array, mass: Array, truth: Array) -> tuple[Array, Array]:
    """Return every row's E[q] (R,) and E[q (p - s)] (R, n)."""
    seen = np.zeros(rows[2][-1])
    moved = np.zeros((len(seen), points.shape[1]))
    _add_played(rows, points, mass, truth, room_for(rows), seen, moved)
    return seen, moved


@compiled()
def _add_played(
    rows: RowArrays, points: Array, mass: Array, truth: Array, room: Room, seen: Array, moved: Array
) -> None:
    """Add a mixture (m, n), (m,) to E[q] (R,) and E[q (p - s)] (R, n), which are 0, in place.

    ``truth`` is s (n,); ``room`` is written by ``choose``.
    """
    _, chances, played = room
    for j in range(points.shape[0]):
        choose(rows, points[j], room)
        for k in range(played.shape[0]):
            for r in range(played[k, 0], played[k, 1]):
                share = mass[j] * chances[r]
                if share > 0.0:
                    seen[r] += share
                    for i in range(points.shape[1]):
                        moved[r, i] += share * points[j, i]
    for r in range(seen.shape[0]):
        if seen[r] > 0.0:
            for i in range(points.shape[1]):
                moved[r, i] -= seen[r] * truth[i]
