"""The conditional law that an offline omnipredictor starts from: a mixture of learned ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.forecaster.omniprediction.laws.learning import Sample, candidates, centred, shares
from regretless.forecaster.omniprediction.laws.members import Predictor
from regretless.market.core.arrays import Array

LEAST = 1e-3  # share below which a member is dropped
STEPS = 101  # outcomes at which distribution functions are computed


@dataclass(frozen=True, eq=False)
class ConditionalLaw:
    """A law of the outcome given the features: weights on a support of outcomes (``members``).

    Parameters
    ----------
    outcomes : array (S, d)
        The support.
    members : dict of Predictor
        By name.
    shares : array (B,)
        In the mixture; their sum is 1.
    """

    outcomes: Array
    members: dict[str, Predictor]
    shares: Array

    def expected(self, features: Array, table: Array) -> Array:
        """Return E[f(y) | x] (m, q) from features (m, f) and values (S, q) of f."""
        parts = zip(self.shares, self.members.values(), strict=True)
        return np.asarray(sum(v * member.expected(features, table) for v, member in parts))

    def steps(self) -> list[tuple[Array, Array]]:
        """Return, for each outcome, levels (k,) and whether the support is below them (S, k).

        The conditional expectations of the second are the distribution function at the first.
        """
        found = []
        for column in self.outcomes.T:
            values = np.unique(column)
            if len(values) > STEPS:
                values = np.unique(np.quantile(column, np.linspace(0, 1, STEPS), method="higher"))
            found.append((values, (column[:, None] <= values).astype(np.float64)))
        return found


def learn(sample: Sample, tables: Sequence[Array], base: str) -> ConditionalLaw:
    """Learn a law from a sample, mixed for losses with these tables (S, K, A), a stack each."""
    functions = centred(tables, sample.rng)
    found = candidates(sample, functions, base)
    mixed = shares(found, functions[: len(sample.outcomes)], sample.weights)
    kept = [(c, v) for c, v in zip(found, mixed, strict=True) if v >= LEAST]
    own = np.array([v for _, v in kept])
    return ConditionalLaw(sample.support, {c.name: c.member for c, _ in kept}, own / own.sum())
