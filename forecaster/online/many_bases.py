"""The bases of many shops whose losses are convex and piecewise linear, in arrays."""

from collections.abc import Sequence

import numpy as np

from regretless.forecaster.bases.convex import ReLUBasis
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.compiled import compiled, over_rows
from regretless.market.losses.basis import Basis


@compiled(nogil=True)
def _write_statistics(
    outcomes: Array,
    weights: Array,
    starts: Integers,
    knots: Array,
    distances: Array,
    sizes: Integers,
    means: Array,
    first: int,
    last: int,
) -> None:
    """Write the means of s over distributions: of y, and of its distances from knots (compiled).

    Parameters
    ----------
    outcomes, weights : array (S, m)
        The distributions of all models, one after another.
    starts : int array (M + 1,)
        Where each begins.
    knots, distances : array (S, n - 1)
        Of each shop, ascending, and the greatest distances from them.
    sizes : int array (S,)
        How many statistics a shop has.
    means : array (S, M, n)
        Written, kept to [0, 1]; 0 beyond the shop's own.
    first, last : int
        Span of shops.
    """
    n_models = len(starts) - 1
    # of the outcomes between two knots: their weight, and the sum of weights times outcomes
    mass = np.empty(knots.shape[1] + 1)
    moment = np.empty(knots.shape[1] + 1)
    for s in range(first, last):
        n_knots = sizes[s] - 1
        for k in range(n_models):
            mass[:] = 0.0
            moment[:] = 0.0
            for j in range(starts[k], starts[k + 1]):
                if weights[s, j] == 0.0:
                    continue
                low = 0
                high = n_knots
                while low < high:
                    middle = (low + high) // 2
                    if knots[s, middle] <= outcomes[s, j]:
                        low = middle + 1
                    else:
                        high = middle
                mass[low] += weights[s, j]
                moment[low] += weights[s, j] * outcomes[s, j]
            total = mass.sum()
            total_moment = moment.sum()
            means[s, k, :] = 0.0
            means[s, k, 0] = min(max(total_moment, 0.0), 1.0)
            below = 0.0
            moment_below = 0.0
            for i in range(n_knots):
                below += mass[i]
                moment_below += moment[i]
                distance = knots[s, i] * below - moment_below
                distance += total_moment - moment_below - knots[s, i] * (total - below)
                means[s, k, 1 + i] = min(max(distance / distances[s, i], 0.0), 1.0)


class ManyBases:
    """The ``ReLUBasis`` of each of S shops.

    Attributes
    ----------
    sizes : int array (S,)
        How many statistics each shop has.
    n_statistics : int
        The greatest of these, n.
    """

    def __init__(self, bases: Sequence[Basis]) -> None:
        n_shops = len(bases)
        self.sizes = np.array([basis.size for basis in bases])
        self.n_statistics = int(self.sizes.max())
        self._knots = np.ones((n_shops, self.n_statistics - 1))
        self._distances = np.ones((n_shops, self.n_statistics - 1))
        for shop, basis in enumerate(bases):
            assert isinstance(basis, ReLUBasis)  # noqa: S101 - or shops are served one by one
            inner_knots = basis.knots[1:-1]
            self._knots[shop, : basis.size - 1] = inner_knots
            self._distances[shop, : basis.size - 1] = np.maximum(inner_knots, 1 - inner_knots)

    def write_means(self, outcomes: Array, weights: Array, starts: Integers, means: Array) -> None:
        """Write the means (S, M, n) of s over M distributions of each shop, kept to [0, 1].

        ``outcomes`` and ``weights`` (S, m) are all distributions side by side, of which each begins
        at one of the ``starts`` (M + 1,).
        """
        over_rows(
            _write_statistics,
            len(outcomes),
            outcomes,
            weights,
            starts,
            self._knots,
            self._distances,
            self.sizes,
            means,
        )

    def statistics_of(self, outcomes: Array) -> Array:
        """Return s(y) of each shop's outcome in [0, 1] (S, n)."""
        statistics = np.zeros((len(outcomes), 1, self.n_statistics))
        certain = np.ones((len(outcomes), 1))
        self.write_means(outcomes[:, np.newaxis], certain, np.array([0, 1]), statistics)
        return statistics[:, 0]
