r"""The smallest basis known here for convex losses of one coordinate, found by linear programs.

A convex f with slopes in [-L, L] is const + b y + sum_k m_k |y - t_k| with |b| + sum_k m_k <= L
(a limit of such sums). So functions s_1 = y, s_2, ..., s_n that approximate every |y - t|,

    | c_0(t) + sum_i c_i(t) s_i(y) - |y - t| | <= e        for all y and t in [0, 1],

approximate every f within L e, with coefficients b + sum_k m_k c_1(t_k), sum_k m_k c_i(t_k), and
sum |r_i| <= L max(1, max_t sum_i |c_i(t)|). This is low-rank approximation of the matrix |y - t|
in the largest entry. It starts from the leading singular functions modulo affine ones and
alternates two families of sup-norm programs: a row of coefficients for each t given the
functions, with sum_i |c_i(t)| <= cap, and the values in [0, 1] at each y given the coefficients.

All is on an even grid and linear in between. In a cell off the diagonal the distance is bilinear
like |y - t| itself, so greatest at a corner. In a cell on the diagonal it is affine plus bilinear
on each side, so greatest at a corner or on the diagonal, where |y - t| = 0 and the form is
(1 - u)^2 A_00 + u (1 - u) (A_01 + A_10) + u^2 A_11 for corner values A: at most the largest of
|A_00|, |A_01 + A_10| / 2 and |A_11|. So the certificate holds for all y and t, not on a grid.

With the cap 1, lambda is L as for ``ReLUBasis``, and n about 1.8 to 2.4 times smaller; larger
caps buy a smaller n (2.2 to 2.8 times for cap 3) and cost more in lambda sqrt(n).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COARSEST = 65
SWEEPS = 6  # on each grid; more gain little
FREE_SWEEPS = 5  # without the cap, to find where to start
RESOLVED = 0.6  # a cell is to be shorter than this share of the error
MOST = 64
# n that the search starts from: FIRST * (FIRST_ERROR / e) ** RATE, as measured
FIRST, FIRST_ERROR, RATE = 7, 0.0185, 0.83


@dataclass(frozen=True)
class Table:
    """Functions and coefficients that approximate |y - t|, linear between the grid's points.

    Attributes
    ----------
    functions : array (G, n)
        Values at y_g; the first is y.
    rows : array (G, n + 1)
        Constant and coefficients for t_g.
    """

    functions: Array
    rows: Array

    @property
    def lipschitz(self) -> float:
        """Greatest sum of absolute coefficients, at least 1 for y alone."""
        return max(1.0, float(np.abs(self.rows[:, 1:]).sum(1).max()))

    @functools.cached_property
    def error(self) -> float:
        """Greatest distance from |y - t| over all y and t."""
        points = np.linspace(0, 1, len(self.rows))
        form = self.rows[:, 0] + self.functions @ self.rows[:, 1:].T
        corners = np.abs(form - np.abs(points[:, None] - points)).max()
        diagonal = np.abs(np.diag(form, 1) + np.diag(form, -1)).max() / 2
        return float(max(corners, diagonal)) + 1e-12
