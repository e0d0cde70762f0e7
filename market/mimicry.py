r"""Mimic regret: what a type of buyer loses by not copying another, and what a seller gains.

A seller faces one of several types v, drawn with known frequencies, each played by an agent of
its own. Per round and type, x(v) is the average allocation and p(v) the average payment. If no
type would gain more than eps by copying another type's actions, or by staying out, then

    v x(v) - p(v) >= v x(w) - p(w) - eps,      v x(v) - p(v) >= -eps,

so revenue is at most the value of a linear program over (x, p). At eps = 0 that is Myerson's
revenue (1981); beyond, it grows by at most a constant times eps. With the values 1/4, 1/2, 1 of
Braverman, Mao, Schneider and Weinberg (2018) it is 1/4 + 1.75 eps. Small swap regret of every type
by itself does not bound mimic regret; a shared forecast that is decision calibrated for all does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from market.programs import Program, solver

Array = NDArray[np.float64]


def mimic_regret(losses: ArrayLike, actions: ArrayLike, *, outside: int | None = None) -> Array:
    """Average loss of each type above the loss that it would have had copying each other type.

    Parameters
    ----------
    losses : array (V, T, A)
        Losses of all actions of each type.
    actions : int array (V, T) or probabilities (V, T, A)
        What each type played.
    outside : int, optional
        The action of staying out; it adds a last column to the result.

    Returns
    -------
    array (V, V) or (V, V + 1)
        Row: the type that pays, column: the one it copies; the diagonal is 0. The regret that
        caps a seller's revenue is the largest entry, in the units of utility.

    Raises
    ------
    ValueError
        If the shapes do not fit or the actions are none.
    """
    table = np.asarray(losses, dtype=np.float64)
    if table.ndim != 3 or 0 in table.shape:
        raise ValueError(f"losses have shape {table.shape}; give (types, rounds, actions)")
    play = np.asarray(actions)
    if play.shape == table.shape[:2]:
        if not np.isin(play, np.arange(table.shape[2])).all():
            raise ValueError(f"actions must be whole numbers from 0 to {table.shape[2] - 1}")
        play = np.eye(table.shape[2])[play.astype(np.intp)]
    if play.shape != table.shape:
        raise ValueError(f"actions have shape {play.shape}; give (V, T) or {table.shape}")
    copied = np.einsum("vta,wta->vw", table, play) / table.shape[1]
    if outside is not None:
        copied = np.column_stack([copied, table[:, :, outside].mean(1)])
    regret: Array = np.diag(copied)[:, None] - copied
    return regret


def revenue_cap(values: ArrayLike, frequencies: ArrayLike, regret: float = 0.0) -> float:
    """Most that a seller of one good can earn per round from types with this mimic regret.

    Parameters
    ----------
    values : array (V,)
        What the good is worth to each type.
    frequencies : array (V,)
        How often each type comes; they sum to 1.
    regret : float
        Largest mimic regret, staying out included, in the units of ``values``.

    Returns
    -------
    float
        At regret 0 Myerson's revenue, the best posted price.

    Raises
    ------
    ValueError
        If the shapes differ or the frequencies are no probability law.
    """
    worth = np.asarray(values, dtype=np.float64)
    share = np.asarray(frequencies, dtype=np.float64)
    if worth.ndim != 1 or worth.shape != share.shape or not len(worth):
        raise ValueError(f"values have shape {worth.shape}, frequencies {share.shape}")
    if not (share >= 0).all() or abs(share.sum() - 1) > 1e-9 or not regret >= 0:
        raise ValueError("frequencies must sum to 1, and regret be at least 0")
    count = len(worth)
    one, other = np.nonzero(~np.eye(count, dtype=bool))
    unit = np.eye(count)
    allocation = np.vstack([worth[one, None] * (unit[one] - unit[other]), np.diag(worth)])
    payment = np.vstack([unit[other] - unit[one], -unit])
    program = Program(
        cost=np.concatenate([np.zeros(count), -share]),
        matrix=np.hstack([allocation, payment]),
        row_lower=-regret,
        lower=np.concatenate([np.zeros(count), np.full(count, -np.inf)]),
        upper=np.concatenate([np.ones(count), np.full(count, np.inf)]),
    )
    return -solver().solve(program).value
