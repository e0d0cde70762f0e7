"""The protected losses, and how their owners respond to a prediction.

Losses with equal numbers of actions and equal policies form a group; all (loss, action) pairs of
all groups are the rows of one table, which the compiled kernels read. A row's response is the
probability that its action is played: one-hot for a best response (ties to the lowest index), the
logit distribution for a quantal one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from regretless.forecaster.events.side_by_side import LossesSideBySide
from regretless.market.best_response import expected_losses, expected_rows, lowest
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled
from regretless.market.core.fixed import Fixed
from regretless.market.records import Policy

# The arrays of a ``LossTable`` that compiled kernels read: offsets (B, LANES) and weights
# (B, n, LANES) of all rows in blocks, where the rows of each loss start (K + 1,), and the
# smoothness ``eta`` and the margin ``tie`` of each loss's response (K,).
RowArrays = tuple[Array, Array, Integers, Array, Array]
# Arrays that ``write_responses`` fills; ``response_scratch`` makes and describes them.
ResponseScratch = tuple[Array, Array, Integers]
# Rows of a block, whose expected losses are added up side by side: as many as there are, in whole
# registers of a processor, and at most ``MAX_LANES``. Two rows in 32 lanes of which 30 are empty
# took twice the time, of predictions of 32 numbers.
LANES_OF_REGISTER = 8
MAX_LANES = 32


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
    def best_responds(self) -> bool:
        """Whether the owners play an action that is expected to lose the least."""
        return self.play is None and self.eta is None and self.tie == 0

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
        self._offset_blocks = _in_blocks(offset[:, None])[:, 0]
        self._weight_blocks = _in_blocks(self.weights)
        self.offset = self._offset_blocks.reshape(-1)[: len(offset)]  # (R,), a view
        eta = np.repeat([np.inf if group.eta is None else group.eta for group in groups], counts)
        tie = np.repeat([group.tie for group in groups], counts)
        self.arrays: RowArrays = (self._offset_blocks, self._weight_blocks, self.start, eta, tie)
        self.custom = tuple(group for group in groups if group.play is not None)
        # Where each group's losses are among all K, and its rows among all R.
        first_losses = np.cumsum([0, *counts]).tolist()
        first_rows = np.cumsum([0, *[group.offset.size for group in groups]]).tolist()
        self._losses_of_groups = [slice(*ends) for ends in pairwise(first_losses)]
        self._rows_of_groups = [slice(*ends) for ends in pairwise(first_rows)]

    @property
    def is_fixed(self) -> bool:
        return all(group.is_fixed for group in self.groups)

    def group_index(self, group: ProtectedLosses) -> int:
        """Return the index of a group among all; ValueError if it is not protected."""
        for index, protected in enumerate(self.groups):
            if protected is group:
                return index
        raise ValueError("the group is not protected")

    def losses(self, group: ProtectedLosses) -> slice:
        """Return where a group's losses are among all K."""
        return self._losses_of_groups[self.group_index(group)]

    def slice(self, group: ProtectedLosses) -> slice:
        """Return where a group's rows are among all R."""
        return self._rows_of_groups[self.group_index(group)]

    def best_responses(self, points: Array) -> Indices:
        """Return every loss's best response to each of M points: (K, M), ties to the lowest."""
        return self._side_by_side.best_actions(points)

    @cached_property
    def _side_by_side(self) -> LossesSideBySide:
        """The losses as their best responses are found fastest; many tables are never asked."""
        return LossesSideBySide([(group.offset, group.weights) for group in self.groups])


def response_scratch(rows: RowArrays) -> ResponseScratch:
    """Make the arrays that ``write_responses`` fills.

    The expected loss of every row in blocks (B, LANES), the same memory in one line, where the
    chances that rows are played take the losses' place, and from where to where the rows of each
    loss are played (K, 2). They are made here because kernels that make or reshape arrays take
    several times as long to compile.
    """
    losses_in_blocks = np.empty(rows[0].shape)
    played_rows = np.empty((len(rows[2]) - 1, 2), np.int64)
    return losses_in_blocks, losses_in_blocks.reshape(-1), played_rows


@compiled(counts_references=False)
def write_responses(
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    point: Array,
    losses_in_blocks: Array,
    play_chance: Array,
    played_rows: Integers,
) -> None:
    """Write which rows are played at a prediction, and with which chance (compiled).

    Arrays are arguments by themselves: a kernel that calls this at many points unpacks the table
    once. Unpacking it at every point, which counts references to eight arrays, took twice the time
    of everything else.

    Parameters
    ----------
    offset, weights, start, eta, tie : arrays
        The loss table, as in ``RowArrays``.
    point : array (n,)
        The prediction.
    losses_in_blocks, play_chance, played_rows : arrays
        ``ResponseScratch``, written; the first two must share their memory, as those of
        ``response_scratch`` do. Of loss k the rows from ``played_rows[k, 0]`` to before
        ``played_rows[k, 1]`` are played, each with its ``play_chance``; other entries of
        ``play_chance`` mean nothing.
    """
    # ``play_chance`` is the memory of ``losses_in_blocks`` in one line: this writes every row's
    # expected loss into both, and below the rows' chances replace the losses, loss by loss.
    expected_rows(offset, weights, point, losses_in_blocks, 0, offset.shape[0])
    row_losses = play_chance
    for k in range(start.shape[0] - 1):
        first = start[k]
        end = start[k + 1]
        is_best_response = eta[k] == math.inf
        margin = tie[k] if is_best_response else 0.0
        best = lowest(row_losses, first, end, margin)
        if is_best_response:  # only the row ``best`` is played; chances of others are not read
            play_chance[best] = 1.0
            played_rows[k, 0] = best
            played_rows[k, 1] = best + 1
            continue
        total = 0.0
        least_loss = row_losses[best]
        for r in range(first, end):
            play_chance[r] = math.exp(-eta[k] * (row_losses[r] - least_loss))
            total += play_chance[r]
        for r in range(first, end):
            play_chance[r] /= total
        played_rows[k, 0] = first
        played_rows[k, 1] = end


def _in_blocks(rows: Array) -> Array:
    """Put the rows of a table (R, n) side by side in blocks (B, n, LANES)."""
    n_registers = -(-len(rows) // LANES_OF_REGISTER)
    lanes = min(n_registers * LANES_OF_REGISTER, MAX_LANES)
    filled = np.zeros((-(-len(rows) // lanes) * lanes, rows.shape[1]))
    filled[: len(rows)] = rows
    return np.ascontiguousarray(filled.reshape(-1, lanes, rows.shape[1]).swapaxes(1, 2))


def responses_at(rows: LossTable, point: Array) -> Array:
    """Compute every row's response (R,) to one prediction, rules of other kinds included."""
    no_outcome = np.zeros(len(point))  # only how rows are played is read
    play_chance, _bias, _losses = _play_and_bias(rows, point[None], np.ones(1), no_outcome)
    for group in rows.custom:
        assert group.play is not None  # noqa: S101 - that is what custom groups are
        strategies = group.play(expected_losses(group.offset, group.weights, point))
        play_chance[rows.slice(group)] = strategies.ravel()
    return np.asarray(play_chance)


class Played(NamedTuple):
    """How the owners of all losses play a round, and the bias of that, in expectation.

    The expectation E is over the mixture of predictions p; q (R,) are the rows' responses.
    """

    play_chance: Array  # (R,) E[q], the chance that each row's action is played
    bias: Array  # (R, n) E[q (p - s)]; zero for rows that nobody plays
    distribution: tuple[Array, Array, Array]  # the mixture's points (m, n) and mass (m,), s(y) (n,)
    realised_losses: Array  # (R,) of every row's action at s(y)
    as_drawn: "Played | None" = None  # the same of the prediction that was broadcast, if known
    reference_is_trusted: bool = (
        False  # whether a reference is: gains of listed losses are regrets then
    )

    def with_drawn(self, as_drawn: "Played") -> "Played":
        """Return this, and how the prediction that was broadcast is played."""
        return Played(  # ``_replace`` takes twice as long
            self.play_chance,
            self.bias,
            self.distribution,
            self.realised_losses,
            as_drawn,
            self.reference_is_trusted,
        )


def played_of(
    rows: LossTable,
    points: Array,
    mass: Array,
    statistics: Array,
    *,
    reference_is_trusted: bool = False,
) -> Played:
    """Compute how rows are played under a mixture (m, n), (m,), where s(y) is ``statistics``.

    ``reference_is_trusted`` says whether a model is broadcast unchanged.
    """
    play_chance, bias, realised_losses = _play_and_bias(rows, points, mass, statistics)
    if rows.custom:
        responses = np.stack([responses_at(rows, point) for point in points])
        chance_per_point = responses * mass[:, None]  # (m, R)
        play_chance = chance_per_point.sum(0)
        chance_weighted_points = chance_per_point.T @ points  # (R, n) E[q p]
        bias = chance_weighted_points - np.outer(play_chance, statistics)
    distribution = (points, mass, statistics)
    return Played(play_chance, bias, distribution, realised_losses, None, reference_is_trusted)


def _play_and_bias(
    rows: LossTable, points: Array, mass: Array, statistics: Array
) -> tuple[Array, Array, Array]:
    """Return how rows are played (R,), their bias (R, n) and their losses (R,)."""
    n_rows = rows.shape[0]
    play_chance = np.empty(n_rows)
    bias = np.empty(rows.shape)
    realised_losses = np.empty(n_rows)
    # A kernel that made these three itself would take 1 us more to return them.
    write_play_and_bias(*rows.arrays, points, mass, statistics, play_chance, bias, realised_losses)
    return play_chance, bias, realised_losses


@compiled()
def write_play_and_bias(
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    points: Array,
    mass: Array,
    statistics: Array,
    play_chance: Array,
    bias: Array,
    realised_losses: Array,
) -> None:
    """Write how rows are played under a mixture, their bias, and their losses (compiled).

    Parameters
    ----------
    offset, weights, start, eta, tie : arrays
        The loss table, as in ``RowArrays``.
    points, mass : array (m, n), array (m,)
        The mixture.
    statistics : array (n,)
        s(y).
    play_chance : array (R,)
        Written: E[q].
    bias : array (R, n)
        Written: E[q (p - s)].
    realised_losses : array (R,)
        Written: offset + weights . s(y), added up in the order in which agents add expected losses.
    """
    n_rows = start[-1]
    # ``response_scratch``; the losses in one line are its chances, until these take their place
    chance_at_point = np.empty(offset.size)
    losses_in_blocks = chance_at_point.reshape(offset.shape)
    played_rows = np.empty((eta.shape[0], 2), np.int64)
    expected_rows(offset, weights, statistics, losses_in_blocks, 0, offset.shape[0])
    for r in range(n_rows):
        realised_losses[r] = chance_at_point[r]
        play_chance[r] = 0.0
        for i in range(points.shape[1]):
            bias[r, i] = 0.0
    for j in range(points.shape[0]):
        write_responses(
            offset,
            weights,
            start,
            eta,
            tie,
            points[j],
            losses_in_blocks,
            chance_at_point,
            played_rows,
        )
        for k in range(played_rows.shape[0]):
            for r in range(played_rows[k, 0], played_rows[k, 1]):
                chance = mass[j] * chance_at_point[r]
                if chance > 0.0:
                    play_chance[r] += chance
                    for i in range(points.shape[1]):
                        bias[r, i] += chance * points[j, i]
    for r in range(n_rows):
        if play_chance[r] > 0.0:
            for i in range(points.shape[1]):
                bias[r, i] -= play_chance[r] * statistics[i]
