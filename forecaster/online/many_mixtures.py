"""What is forecast to many shops: the recalibrated mixture of all models of each, in arrays.

It is what ``DistributionPool`` does for one shop of one outcome.
"""

import numpy as np

from regretless.forecaster.models.aggregate import VARIATION_OFFSET
from regretless.forecaster.models.outcomes import lattice
from regretless.forecaster.models.pool import (
    MIN_WEIGHT,
    ROUNDS_TO_TAKE_OVER,
    DistributionPool,
)
from regretless.forecaster.models.recalibration import (
    N_CELLS,
    N_LEVELS,
    RATE,
    add_limit,
    add_outcome,
    levels_of,
    write_recalibrated,
)
from regretless.forecaster.online.many_bases import ManyBases
from regretless.market.core.arrays import Array, Integers, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled, over_rows


@compiled(nogil=True)
def _write_mixtures(
    outcomes: Array,
    weights: Array,
    starts: Integers,
    shares: Array,
    share_of_lattice: Array,
    levels: Array,
    probability: Array,
    mixed: Array,
    first: int,
    last: int,
) -> None:
    """Mix the models' distributions and an even lattice, and recalibrate the mixture (compiled).

    Parameters
    ----------
    outcomes : array (S, m + L)
        Of all models, one after another, and of the lattice.
    weights : array (S, m)
        Of each model's outcomes.
    starts : int array (M + 1,)
        Where each model's begin; the last one is m.
    shares : array (S, M)
        The weights of the models.
    share_of_lattice : array (S,)
        How much of the mixture is the lattice.
    levels : array (S, ``N_LEVELS`` + 1)
        G of each shop (``recalibration``).
    probability : array (S, ``N_CELLS`` + 2)
        Written: the distribution functions before they are recalibrated.
    mixed : array (S, m + L)
        Written: the weights of the mixture.
    first, last : int
        Span of shops.
    """
    n_outcomes = starts[-1]
    n_even = outcomes.shape[1] - n_outcomes
    mixture = np.empty(outcomes.shape[1])
    for s in range(first, last):
        for k in range(len(starts) - 1):
            share = (1.0 - share_of_lattice[s]) * shares[s, k]
            for j in range(starts[k], starts[k + 1]):
                mixture[j] = share * weights[s, j]
        mixture[n_outcomes:] = share_of_lattice[s] / n_even
        write_recalibrated(outcomes[s], mixture, levels[s], probability[s], mixed[s])


@compiled(nogil=True)
def _add_outcomes(
    outcomes: Array,
    limits: Array,
    probability: Array,
    is_learned: Mask,
    seen: Array,
    first: int,
    last: int,
) -> None:
    """Count how probable the forecasts found the outcomes (S,) that were learned (compiled).

    ``limits`` (S,) are NaN where outcomes were seen. ``probability`` and ``seen`` are those of
    ``add_outcome``, a row for each shop.
    """
    for s in range(first, last):
        if not is_learned[s]:
            continue
        if np.isnan(limits[s]):
            add_outcome(outcomes[s], probability[s], 1.0 - RATE, 1.0, seen[s])
        else:
            add_limit(limits[s], probability[s], 1.0 - RATE, 1.0, seen[s])


class ManyMixtures(Checkpointable):
    """The mixtures of S shops.

    Parameters
    ----------
    bases : ManyBases
        Of the statistics.
    starts : int array (M + 1,)
        Where each model's outcomes begin among those of all models.

    Attributes
    ----------
    outcomes : array (S, m + L)
        Of the open round, in [0, 1]: models write theirs; behind them is the even lattice.
    weights_of_models : array (S, m)
        Of the models' outcomes, written by the models.
    weights : array (S, m + L)
        Of the mixtures.
    points : array (S, M, n)
        What each model predicts.
    statistics : array (S, n)
        What the mixtures predict.
    regret, variation : array (S, M)
        Of the models' weights (``models.aggregate``).
    seen : array (S, ``N_LEVELS``)
        How probable forecasts found outcomes (``models.recalibration``).
    """

    REMEMBERED = ("regret", "variation", "seen")

    def __init__(self, bases: ManyBases, starts: Integers) -> None:
        self._bases = bases
        self._starts = starts
        n_shops = len(bases.sizes)
        n_models = len(starts) - 1
        n_outcomes = int(starts[-1])
        self._even = lattice(1)[:, 0]
        self._starts_of_mixture = np.array([0, n_outcomes + len(self._even)])
        self.outcomes = np.zeros((n_shops, n_outcomes + len(self._even)))
        self.outcomes[:, n_outcomes:] = self._even
        self.weights_of_models = np.zeros((n_shops, n_outcomes))
        self.weights = np.zeros(self.outcomes.shape)
        self.points = np.zeros((n_shops, n_models, bases.n_statistics))
        self.statistics = np.zeros((n_shops, bases.n_statistics))
        self._probability = np.zeros((n_shops, N_CELLS + 2))
        self._mean_of_models = np.zeros((n_shops, bases.n_statistics))
        self.regret = np.zeros((n_shops, n_models))
        self.variation = np.zeros((n_shops, n_models))
        self.seen = np.zeros((n_shops, N_LEVELS))

    def mix(self, times: Integers) -> None:
        """Mix what the models have written, of shops that have learned so many rounds (S,)."""
        self._bases.write_means(self.outcomes, self.weights_of_models, self._starts, self.points)
        shares = self._shares()
        self._mean_of_models = np.einsum("sm,smn->sn", shares, self.points)
        over_rows(
            _write_mixtures,
            len(self.outcomes),
            self.outcomes,
            self.weights_of_models,
            self._starts,
            shares,
            np.maximum(1.0 - times / ROUNDS_TO_TAKE_OVER, 0.0),
            levels_of(self.seen),
            self._probability,
            self.weights,
        )
        statistics = np.empty((len(self.outcomes), 1, self.statistics.shape[1]))
        self._bases.write_means(self.outcomes, self.weights, self._starts_of_mixture, statistics)
        self.statistics = statistics[:, 0]

    def _shares(self) -> Array:
        """Return ML-Poly's weights (S, M), without those of less than ``MIN_WEIGHT``."""
        shares = np.maximum(self.regret, 0.0) / (VARIATION_OFFSET + self.variation)
        total = shares.sum(1, keepdims=True)
        n_models = shares.shape[1]
        shares = np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / n_models)
        shares = np.where(shares < MIN_WEIGHT, 0.0, shares)
        return np.asarray(shares / shares.sum(1, keepdims=True))

    def learn(self, outcomes: Array, statistics: Array, is_learned: Mask, *, limits: Array) -> None:
        """Learn the outcomes (S,) of some shops, whose statistics are (S, n).

        ``limits`` (S,) are what outcomes are known to exceed that are estimates in place of
        censored ones, NaN where they were seen.
        """
        errors = (self._mean_of_models - statistics)[:, np.newaxis]
        gains = (errors * (self._mean_of_models[:, np.newaxis] - self.points)).sum(2)
        gains /= self._bases.sizes[:, np.newaxis]
        self.regret[is_learned] += gains[is_learned]
        self.variation[is_learned] += gains[is_learned] ** 2
        over_rows(
            _add_outcomes,
            len(outcomes),
            outcomes,
            limits,
            self._probability,
            is_learned,
            self.seen,
        )

    def write_to(self, pool: DistributionPool, shop: int) -> None:
        """Put what a shop has learned into a pool of its own, whose ``time`` is known."""
        pool._common._regret[:, 0] = self.regret[shop]
        pool._common._variation[:, 0] = self.variation[shop]
        recalibration = pool._recalibration
        assert recalibration is not None  # noqa: S101 - that of a server has one
        recalibration._seen[:] = self.seen[shop]
        recalibration._newest = max(pool.time - 1, 0)
