r"""The law without regret that is nearest to a given one, in total variation.

Laws m on N cells have regrets, linear functions rows[r] . m. Rows come in groups (one per action
that could be replaced), and the total regret is the sum over groups of the largest row, at least
``floors[g]``: 0 where the group holds "keep the action", minus infinity where it does not. Cells
lie in blocks whose mass is given (one block, or one per tuple of suggestions). For a law phi,

    distance(eps) = min { TV(phi, m) : total regret of m <= eps, blocks as in phi }
                  = max { <phi, u> - max_m <m, u> : 0 <= u <= 1 },

the second line by duality: u is the payoff of the leader that profits most. As a program, m is
phi less what is removed plus what is added. A block may receive less than it loses: the rest can
always be added without regret (every instance here has such a law on every block), so the mass
rows are inequalities, and cells that could only raise a regret need no column for adding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from market.programs import Optimum, Program, solver

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regrets:
    """Regrets of laws on N cells.

    Parameters
    ----------
    rows : sparse array (R, N)
        No row is zero.
    groups : int array (R,)
        Group of each row, from 0 to G - 1.
    floors : array (G,)
        0 or minus infinity.
    blocks : int array (N,)
        Block of each cell, from 0 on.
    addable : bool array (N,)
        Cells to which mass may have to be added; the others never help.
    """

    rows: sp.csr_array
    groups: NDArray[np.intp]
    floors: Array
    blocks: NDArray[np.intp]
    addable: NDArray[np.bool_]

    def total(self, law: Array) -> float:
        """Total regret of a law (N,)."""
        largest = self.floors.copy()
        np.maximum.at(largest, self.groups, self.rows @ law)
        return float(largest.sum())


@dataclass(frozen=True, eq=False)
class Distance:
    """Distance to the laws with total regret at most a tolerance.

    Parameters
    ----------
    value : float
        In [0, 1].
    payoff : array (N,)
        In [0, 1]: what a leader must be paid to gain exactly this much.
    """

    value: float
    payoff: Array


def nearest(law: Array, regrets: Regrets, tolerances: Sequence[float]) -> list[Distance]:
    """Distance of a law (N,) for each tolerance, one program solved again and again.

    Parameters
    ----------
    law : array (N,)
        A probability law.
    regrets : Regrets
    tolerances : sequence of float
        At least 0.
    """
    total = regrets.total(law)
    unit = np.count_nonzero(law)  # masses average 1: 1e-9 is then nothing beside one round's
    found = []
    program: Program | None = None
    for eps in tolerances:
        if total <= eps:
            found.append(Distance(0.0, np.zeros(len(law))))
            continue
        if program is None:
            program = _program(law * unit, regrets, eps * unit)
            optimum = solver().solve(program)
        else:
            optimum = solver().again(len(program.row_upper) - 1, eps * unit)  # type: ignore[arg-type]
        found.append(Distance(min(1.0, max(0.0, optimum.value / unit)), _payoff(optimum, regrets)))
    return found


def _program(law: Array, regrets: Regrets, tolerance: float) -> Program:
    """Columns: mass removed where there is any, mass added, the largest regret of each group.

    Rows: regrets (largest entry 1, so that a slightly worse duplicate stays apart from a tie),
    mass per block, total regret.
    """
    removed, added = np.flatnonzero(law), np.flatnonzero(regrets.addable)
    scale = 1.0 / abs(regrets.rows).max(axis=1).toarray().ravel()
    rows = sp.diags_array(scale) @ regrets.rows
    count, groups = rows.shape[0], len(regrets.floors)
    slack = sp.csr_array((-scale, (np.arange(count), regrets.groups)), shape=(count, groups))
    mass = sp.csr_array((np.ones(len(law)), (regrets.blocks, np.arange(len(law)))))
    matrix = sp.block_array(
        [
            [-rows[:, removed], rows[:, added], slack],
            [-mass[:, removed], mass[:, added], None],
            [None, None, np.ones((1, groups))],
        ],
        format="csr",
    )
    # No solution is near these bounds; the value that duals prove is finite because of them.
    most = 2.0 * float(law.sum())
    largest = groups * most * float(abs(regrets.rows).max()) + tolerance
    lower = np.concatenate(
        [np.zeros(len(removed) + len(added)), np.maximum(regrets.floors, -largest)]
    )
    upper = np.concatenate([law[removed], np.full(len(added), most), np.full(groups, largest)])
    cost = np.concatenate([np.ones(len(removed)), np.zeros(len(added) + groups)])
    above = np.concatenate([-(rows @ law), np.zeros(mass.shape[0]), [tolerance]])
    return Program(cost, matrix, -np.inf, above, lower, upper)


def _payoff(optimum: Optimum, regrets: Regrets) -> Array:
    """Leader's payoff from the duals: min(1, regrets weighted by them + price of the block)."""
    count = regrets.rows.shape[0]
    scale = abs(regrets.rows).max(axis=1).toarray().ravel()
    weights = -optimum.duals[:count] / scale
    price = -optimum.duals[count:-1]
    payoff: Array = np.clip(weights @ regrets.rows + price[regrets.blocks], 0.0, 1.0)
    return payoff
