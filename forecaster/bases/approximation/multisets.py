"""Multisets of coordinates, the index set of the monomials of an expanded power of a sum.

    (v_1 t_1 + ... + v_d t_d)^m = sum over multisets c of size m of (m! / c_1! ... c_d!) v^c t^c,

where c_j counts how often coordinate j occurs and t^c = prod_j t_j ** c_j. There are
C(d + m - 1, m) multisets of size m, where the paper counts d^m ordered tuples: equal monomials
once for every order of their factors.
"""

import itertools
import math

import numpy as np
from scipy.special import comb

from regretless.market.core.arrays import Array, Indices

Counts = Indices

MOST_MULTISETS = 50_000


def multisets(coordinates: int, sizes: range) -> Counts:
    """List all multisets of some sizes, by size and then as sorted tuples.

    Parameters
    ----------
    coordinates : int
        d, how many different members there are.
    sizes : range
        Sizes, each at least 1.

    Returns
    -------
    int array (n, d)
        How often each coordinate occurs in each multiset.

    Raises
    ------
    ValueError
        If there are more than ``MOST_MULTISETS``.
    """
    number = sum(math.comb(coordinates + size - 1, size) for size in sizes)
    if number > MOST_MULTISETS:
        raise ValueError(
            f"{number} monomials of {coordinates} coordinates up to degree {sizes[-1]} exceed "
            f"{MOST_MULTISETS}; allow a greater error, or a smaller degree, reach or outcome"
        )
    members = np.arange(coordinates)
    tuples = [itertools.combinations_with_replacement(range(coordinates), m) for m in sizes]
    counts = [(np.array(list(rows))[..., None] == members).sum(1) for rows in tuples]
    return np.concatenate(counts).astype(np.intp)


def multinomials(counts: Counts) -> Array:
    """Return how many ordered tuples each multiset (n, d) stands for, m! / prod_j c_j!: (n,)."""
    return np.asarray(comb(counts.cumsum(-1), counts).prod(-1), dtype=np.float64)


def monomials(values: Array, counts: Counts) -> Array:
    """Evaluate t^c for values t (..., d) and multisets (n, d): (..., n)."""
    powers = np.ones((*values.shape, int(counts.max()) + 1))
    for power in range(1, powers.shape[-1]):  # products, so that signs and [0, 1] are kept exactly
        powers[..., power] = powers[..., power - 1] * values
    result = np.ones((*values.shape[:-1], len(counts)))
    for j in range(values.shape[-1]):
        result *= powers[..., j, counts[:, j]]
    return result
