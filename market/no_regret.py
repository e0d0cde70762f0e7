r"""The laws of an agent without swap regret, and how far a log's law is from them.

A law m(s, a, y) is over tuples s of the policies' suggestions, actions and outcomes. Its regret
for action a and policy j is sum m(s, a, y) (l(a, y) - l(s_j, y)); its decision swap regret is the
sum over actions of the largest over policies. Without contexts there is one tuple, in which policy
j suggests j, and this is the swap regret.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from market.leaders import EQUAL
from market.nearest import Distance, Regrets, nearest

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

COMPARED = 500  # outcomes; beyond, comparing all pairs costs more than the columns it saves


def distances(
    law: Array, loss: Array, suggested: Indices, tolerances: Sequence[float]
) -> list[Distance]:
    """Distances of a law (S, A, m), one for each tolerance; nothing is checked.

    Parameters
    ----------
    law : array (S, A, m)
    loss : array (m, A)
    suggested : int array (S, C)
    tolerances : sequence of float
    """
    return nearest(law.ravel(), _regrets(law, loss, suggested), tolerances)


def _regrets(law: Array, loss: Array, suggested: Indices) -> Regrets:
    """Regrets sum m(s, a, y) (l(a, y) - l(s_j, y)) for every action a and policy j.

    Actions never played, if they cannot have negative regret, need neither rows nor added mass.
    """
    tuples, actions, outcomes = law.shape
    gains = loss.T[None, :, None] - loss.T[suggested][:, None]  # (S, A, C, m)
    gains[np.abs(gains) < EQUAL] = 0.0
    # (A, C): where following the policy is not the same as keeping the action
    moves = np.asarray((gains != 0).any((0, 3)))
    floors = np.where(moves.all(1), -np.inf, 0.0)
    kept = (law > 0).any((0, 2)) | np.isinf(floors)
    groups, policies = np.nonzero(moves & kept[:, None])
    cells = np.arange(law.size).reshape(law.shape)
    columns = cells[:, groups].transpose(1, 0, 2).reshape(len(groups), tuples * outcomes)
    rows = sp.csr_array(
        (
            gains[:, groups, policies].transpose(1, 0, 2).ravel(),
            columns.ravel(),
            np.arange(len(groups) + 1) * columns.shape[1],
        ),
        shape=(len(groups), law.size),
    )
    addable = kept[:, None] & _worth_adding(gains)
    blocks = np.repeat(np.arange(tuples), actions * outcomes)
    return Regrets(rows, groups, floors, blocks, addable.ravel())


def _worth_adding(gains: Array) -> NDArray[np.bool_]:
    """Cells (S, A, m) at which added mass lowers regrets more than at any other outcome."""
    worth = np.asarray((gains < 0).any(2))
    if gains.shape[-1] > COMPARED:
        return worth
    first = np.tri(gains.shape[-1], k=-1, dtype=bool)  # [y, z]: z comes before y
    for s, of_tuple in enumerate(gains):  # (A, C, m)
        no_worse = (of_tuple[..., None, :] <= of_tuple[..., :, None]).all(1)  # [a, y, z]
        strictly = ~no_worse.swapaxes(1, 2)
        worth[s] &= ~(no_worse & (strictly | first)).any(2)
    return worth
