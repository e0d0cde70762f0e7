r"""Functions on a lattice in multivariate ReLUs: the lemmas behind the Leontief basis.

Outcomes are rounded to z in {bottom..top}^d, with bottom 0 or 1. For a threshold i,

    MReLU_i(z) = max(z_1 - i_1, ..., z_d - i_d, 0).

Source: Lu, Roth and Shi, the section on Leontief functions, which extends Gopalan et al. (d = 1).

Points (lemma "indicator to MReLU"). For all integers,
    1[z = i] = sum_{sigma in {0,1}^d} (-1)^{d + |sigma|} MReLU_{i + sigma}(z)
             + sum_{sigma in {0,1}^d} (-1)^{1 + |sigma|} MReLU_{i - sigma}(z).

Lattice functions (corollary). So any g on {1..top}^d, taken as 0 elsewhere, has coefficients on
{0..top+1}^d. With the mixed difference D g(i) = sum_sigma (-1)^{|sigma|} g(i - sigma), the
printed double sum is c_i = (-1)^d (D g(i) - D g(i + (1..1))).

Orthants. D of the indicator of {z >= q} is a product over j of (1 at q_j, -1 at top + 1), so its
coefficients sum to 2^{d+1} in absolute value. And g(z) = min_j b_j z_j is a mixture of orthants
whose weights are at least 0 and sum to g(top..top) = top min_j b_j. Hence
    sum_i |c_i| <= 2^{d+1} top min_j b_j,
which grows like m^2; the printed bound 12^{d+1} m^3 is a factor m above.

Zeros. c_i = 0 where two coordinates of i lie in {2..top-1} with |b_j i_j - b_k i_k| at least
max(b_j, b_k). The statement holds. The printed proof does not: with b = (1, 1), i = (2, 4) the
forward sum over sigma_j at a fixed sigma_k is not 0 for the smaller product j (it is 2 - 3); one
has to sum over the coordinate of the larger product in both halves.

Steps. One unit of one threshold is an indicator:
    MReLU_i - MReLU_{i + e_j} = 1[z_j >= i_j + 1] prod_{k != j} 1[z_j - z_k >= i_j - i_k + 1],
a box in the turned coordinates (z_j, z_j - z_k). The printed shift z_j - z_k + m is replaced by
the one that makes the least value 0.

Thresholds top and top + 1 act alike on the lattice: a coordinate that never exceeds its threshold
drops out. Only with **all** thresholds at least top is an MReLU zero.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.market.core.arrays import Array, Indices, grid_points


def rounded(x: ArrayLike, bottom: int, top: int) -> Indices:
    """Round to the nearest integer of {bottom..top}.

    Rounding m y to the paper's {1..m-1} moves it by up to 1, to {0..m} by up to 1/2: with the
    coefficients rounded alike, (2 m - 1) / m^2 and (m - 1/4) / m^2 bound the error of the product
    of two numbers in [0, 1], and both are attained.
    """
    nearest = np.rint(np.asarray(x, dtype=np.float64))
    return np.asarray(np.clip(nearest, bottom, top), dtype=np.intp)


def lattice_points(bottom: int, top: int, dimension: int) -> Indices:
    """List {bottom..top}^d in lexicographic order, (count, d)."""
    return grid_points(np.arange(bottom, top + 1), dimension)


def mrelu(z: Indices, threshold: Indices) -> Indices:
    """MReLU of lattice points (..., d) at thresholds (..., d), broadcast."""
    return np.asarray(np.maximum((z - threshold).max(-1), 0))


def least_products(b: Sequence[int] | Indices, top: int) -> Indices:
    """Tabulate g(z) = min_j b_j z_j over {1..top}^d, an array of d axes."""
    ticks = np.arange(1, top + 1)
    table = b[0] * ticks
    for factor in b[1:]:
        table = np.minimum.outer(table, factor * ticks)
    return np.asarray(table)


def mrelu_coefficients(values: ArrayLike) -> Array:
    """Coefficients c of any lattice function in MReLUs.

    Parameters
    ----------
    values : array (top, ..., top), d axes
        The function on {1..top}^d.

    Returns
    -------
    array (top + 2, ..., top + 2)
        Over the thresholds {0..top+1}^d.
    """
    table = np.pad(np.asarray(values, dtype=np.float64), 1)
    for axis in range(table.ndim):
        table = np.diff(table, axis=axis)
    sign = (-1) ** table.ndim
    return np.asarray(sign * (np.pad(table, (1, 0)) - np.pad(table, (0, 1))))


def merged(coefficients: Array) -> Array:
    """Add the last threshold of every axis to the one before: on the lattice they act alike."""
    for axis in range(coefficients.ndim):
        rest, last = np.split(coefficients, [coefficients.shape[axis] - 1], axis=axis)
        coefficients = rest + np.pad(
            last, [(rest.shape[k] - 1 if k == axis else 0, 0) for k in range(rest.ndim)]
        )
    return coefficients


def orthant_coefficients(top: int, dimension: int) -> sparse.csr_array:
    """Tabulate the merged coefficients of all orthants {z >= q}, q in {1..top}^d.

    Returns
    -------
    sparse array (top^d, (top + 1)^d)
        Rows in the order of ``lattice_points(1, top, d)``, columns in that of the thresholds
        ``lattice_points(0, top, d)``.
    """
    corners = lattice_points(1, top, dimension)
    rows, columns, entries = [], [], []
    for sigma in itertools.product([False, True], repeat=dimension):
        sign = (-1.0) ** (dimension + sum(sigma))
        ends = np.where(sigma, top + 1, corners)
        for threshold, entry in ((ends, sign), (ends - 1, -sign)):
            rows.append(np.arange(len(corners)))
            columns.append(threshold_index(np.minimum(threshold, top), top))
            entries.append(np.full(len(corners), entry))
    place = (np.concatenate(rows), np.concatenate(columns))
    shape = (len(corners), (top + 1) ** dimension)
    return sparse.csr_array((np.concatenate(entries), place), shape=shape)


def threshold_index(threshold: Indices, top: int) -> Indices:
    """Position of thresholds (..., d) in ``lattice_points(0, top, d)``."""
    weights = (top + 1) ** np.arange(threshold.shape[-1])[::-1]
    return np.asarray(threshold @ weights)


def turned(z: Indices, axis: int, bottom: int, top: int) -> Indices:
    """Coordinates (z_j, z_j - z_k for k != j), shifted so that the least value is 0.

    Parameters
    ----------
    z : array (..., d)
        Lattice points.
    axis : int
        j.
    """
    own = z[..., axis, None]
    return np.concatenate([own - bottom, own - np.delete(z, axis, -1) + (top - bottom)], -1)


def step_lows(threshold: Indices, axis: int, bottom: int, top: int) -> Indices:
    """Lower ends of the box on which MReLU_i - MReLU_{i + e_j} is 1, in turned coordinates.

    It has no upper ends: the printed ones, m and 2m, are the greatest values.
    """
    return turned(threshold, axis, bottom, top) + 1
