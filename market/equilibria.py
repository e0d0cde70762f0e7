r"""How far joint play is from equilibrium: total variation to the nearest (coarse) correlated one.

A law m over action profiles is a correlated equilibrium if for every player i and actions a, b

    sum_{a_-i} m(a, a_-i) (l_i(a, a_-i) - l_i(b, a_-i)) <= 0     (Aumann 1974),

and a coarse one if no player gains by one fixed action, sum_m m (l_i(.) - l_i(b, .)) <= 0
(Moulin and Vial 1978). Both are polytopes, so the distance is a linear program. Play whose swap
regrets vanish approaches the first, play whose external regrets vanish the second.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from market.nearest import Regrets, nearest

Array = NDArray[np.float64]


def correlated_distance(joint: ArrayLike, losses: ArrayLike, tolerance: float = 0.0) -> float:
    """Total variation to the nearest correlated equilibrium.

    Parameters
    ----------
    joint : array (A_1, ..., A_n)
        Share of the rounds with each action profile.
    losses : array (n, A_1, ..., A_n)
        Loss of each player at each profile.
    tolerance : float
        Swap regret, summed over the players, that still counts as equilibrium.

    Returns
    -------
    float
        In [0, 1], 0 at an equilibrium.

    Raises
    ------
    ValueError
        If the shapes do not fit, or ``joint`` is no probability law.
    """
    law, tables = _checked(joint, losses, tolerance)
    classes: list[list[Array]] = []
    for i, table in enumerate(tables):
        for a in range(law.shape[i]):
            cells = (slice(None),) * i + (a,)
            kept = np.zeros_like(table)
            kept[cells] = 1.0
            classes.append([kept * gain for gain in _gains(table, i)])
    return _distance(law, classes, tolerance)


def coarse_correlated_distance(
    joint: ArrayLike, losses: ArrayLike, tolerance: float = 0.0
) -> float:
    """Total variation to the nearest coarse correlated equilibrium.

    Parameters
    ----------
    joint : array (A_1, ..., A_n)
        Share of the rounds with each action profile.
    losses : array (n, A_1, ..., A_n)
        Loss of each player at each profile.
    tolerance : float
        Positive parts of the external regrets, summed over the players, that still count as
        equilibrium.

    Returns
    -------
    float
        In [0, 1], at most ``correlated_distance``.

    Raises
    ------
    ValueError
        If the shapes do not fit, or ``joint`` is no probability law.
    """
    law, tables = _checked(joint, losses, tolerance)
    return _distance(law, [_gains(table, i) for i, table in enumerate(tables)], tolerance)


def _gains(table: Array, player: int) -> list[Array]:
    """Compute what the player would gain at every profile by each fixed action of its own."""
    return [
        table - np.take(table, [b], axis=player)  # broadcast along the player's axis
        for b in range(table.shape[player])
    ]


def _distance(law: Array, classes: list[list[Array]], tolerance: float) -> float:
    """Solve for regrets that are sums of the greatest gain of every class of deviations."""
    live = [[gain.ravel() for gain in gains if gain.any()] for gains in classes]
    live = [gains for gains in live if gains]
    if not live:
        return 0.0
    regrets = Regrets(
        rows=sp.csr_array(np.concatenate(live)),
        groups=np.repeat(np.arange(len(live)), [len(gains) for gains in live]),
        floors=np.zeros(len(live)),
        blocks=np.zeros(law.size, dtype=np.intp),
        addable=np.ones(law.size, dtype=bool),
    )
    return nearest(law.ravel(), regrets, (tolerance,))[0].value


def _checked(joint: ArrayLike, losses: ArrayLike, tolerance: float) -> tuple[Array, Array]:
    law = np.asarray(joint, dtype=np.float64)
    tables = np.asarray(losses, dtype=np.float64)
    if not law.size or tables.shape != (law.ndim, *law.shape):
        raise ValueError(
            f"joint has shape {law.shape}, losses {tables.shape}; give (A_1, ..., A_n) and "
            "(n, A_1, ..., A_n)"
        )
    if not np.isfinite(tables).all():
        raise ValueError("losses hold a number that is not finite")
    if not (law >= 0).all() or abs(law.sum() - 1) > 1e-9:
        raise ValueError("the joint law must be at least 0 and sum to 1")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance is {tolerance}; give a number that is at least 0")
    return law, tables
