r"""One round's forecast in the units of its users, as a distribution of outcomes.

The broadcast statistics p are all that the losses need. While the models' own mean is broadcast, p
= E_D s(y) of their mixture D, and D is the distribution that is shown. Once they are corrected, p
is another point of conv s(Y), the mean of s over a few outcomes that the game names. The
distribution shown then is the one with E s(y) = p that is nearest, in relative entropy, to D with
a tenth of its weight on those outcomes and on an even lattice: by ``mass_tilting`` where s is
linear between knots, as that of newsvendors is, else by ``tilting``. Where none is found, as p may
lie on the border of conv s(Y), the game's own outcomes are the distribution. Either way its mean of
s is p, up to ``PRECISION`` of these modules.

A basis that does not know conv s(Y) may correct p to what no distribution has; the distribution
then is the nearest with a ridge, and its mean of s differs from p.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from regretless.forecaster.bases.convex import ReLUBasis
from regretless.forecaster.coverage import AnnouncedQuantiles
from regretless.forecaster.models.outcomes import lattice
from regretless.forecaster.online.mass_tilting import masses_at_knots, tilted_to_masses
from regretless.forecaster.online.tilting import exactly_tilted, tilted
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array
from regretless.market.core.validation import check_name, check_probability
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.losses.outcome_spaces import Box
from regretless.market.records import Ensemble, Policy

SHARE_OF_CORRECTION = 0.1  # of the game's outcomes in the prior, and half as much of the lattice
ROUNDING = 1e-12  # of sums of probabilities


@dataclass(frozen=True, eq=False)
class Task:
    """A loss that a forecast serves."""

    loss: Loss  # single, over the unit cube, in [0, 1], with the map to its own units
    actions: Sequence[Any]  # what they are called, or the quantities that they are
    offset: Array  # (A,), (A, n): its coefficients in the basis
    weights: Array
    policies: Sequence[Policy] = ()  # what its owner could have followed

    def expected(self, statistics: Array) -> Array:
        """Losses (A,) in [0, 1] that statistics (n,) make expect.

        Actions that are alike expect the same to the last bit, so that the first of them is best.
        """
        offset = self.offset[np.newaxis]
        weights = self.weights[np.newaxis]
        return np.asarray(expected_losses(offset, weights, statistics)[0])

    def in_units(self, loss: float) -> float:
        """Turn a loss in [0, 1] into the utility's own units."""
        return float(self.loss.unit_offset + self.loss.unit_scale * loss)


@dataclass(frozen=True, eq=False, repr=False)
class OnlineForecast:
    """What is broadcast before a round; shown as means, with the 5 % and 95 % quantiles."""

    statistics: Array  # (n,), the prediction p of s(y)
    models: Ensemble  # D, in the unit cube
    correction: Ensemble | None  # outcomes whose mean of s is p, where that is not D's
    names: Sequence[str]  # of the outcomes
    space: Box  # outcomes in the user's units
    basis: Basis
    tasks: Mapping[str, Task]
    is_unchanged: bool = True  # whether p is the mean of s over D
    exploring: Mapping[str, int] = field(default_factory=dict)  # orders of a round that explores
    announced: AnnouncedQuantiles | None = None  # quantiles that are announced with a promise

    def __repr__(self) -> str:
        means = self.weights @ self.outcomes
        lows, highs = self._quantiles([0.05, 0.95])
        parts = []
        for name, mean, low, high in zip(self.names, means, lows, highs, strict=True):
            parts.append(f"{name} {mean:.4g} ({low:.4g} to {high:.4g})")
        return f"<OnlineForecast: {', '.join(parts)}>"

    @cached_property
    def likely(self) -> Array:
        """Outcomes (m, d) of the unit cube."""
        parts = [self.models.outcomes]
        if not self.is_unchanged:
            parts.append(lattice(len(self.names)))
        if self.correction is not None:
            parts.append(self.correction.outcomes)
        return np.concatenate(parts)

    @cached_property
    def outcomes(self) -> Array:
        """Outcomes (m, d) in the user's units."""
        return self.space.from_unit(self.likely)

    @cached_property
    def weights(self) -> Array:
        """Probabilities (m,) of the outcomes."""
        if self.is_unchanged:
            return np.asarray(self.models.weights)
        n_models = len(self.models.weights)
        prior = np.full(len(self.likely), SHARE_OF_CORRECTION / 2)
        prior[:n_models] = self.models.weights
        prior[n_models:] /= len(prior) - n_models
        if self.correction is None:
            return tilted(self._gaps, prior)
        weights = None
        if isinstance(self.basis, ReLUBasis) and self.basis.outcomes == 1:
            weights = self._with_masses_of(self.correction, prior)
        if weights is None:
            weights = exactly_tilted(self._gaps, prior)
        if weights is None:  # the game's outcomes alone
            weights = np.zeros(len(prior))
            weights[-len(self.correction.weights) :] = self.correction.weights
        return weights

    @property
    def _gaps(self) -> Array:
        """By how much s of the outcomes (m, n) differs from what was broadcast."""
        return self.basis.transform(self.likely) - self.statistics

    def _with_masses_of(self, correction: Ensemble, prior: Array) -> Array | None:
        """Return the weights (m,) nearest to prior ones with the masses of others at the knots.

        The mean of s, which is linear between knots, is that of these masses.
        """
        assert isinstance(self.basis, ReLUBasis)  # noqa: S101 - or there are no knots
        knots = self.basis.knots
        masses = masses_at_knots(correction.outcomes[:, 0], correction.weights, knots)
        return tilted_to_masses(self.likely[:, 0], prior, knots, masses)

    @cached_property
    def _distribution_functions(self) -> tuple[Array, Array]:
        """The outcomes of every coordinate in ascending order, and the probability up to each."""
        order = np.argsort(self.outcomes, axis=0, kind="stable")
        ascending = np.take_along_axis(self.outcomes, order, axis=0)
        return ascending, np.cumsum(self.weights[order], axis=0)

    @property
    def mean(self) -> Any:
        """Mean outcome: a number, or by name where there are several."""
        return self._by_name(self.weights @ self.outcomes)

    def quantile(self, q: float) -> Any:
        """Return the q-quantile of each outcome, q in (0, 1): a number, or by name."""
        return self._by_name(self._quantiles(check_probability("q", q)))

    @property
    def quantiles(self) -> dict[float, Any]:
        """The announced quantiles by level: numbers, or by outcome's name; empty without any.

        They are those of the distribution, rounded up to the grid, and ``coverage`` of the
        omnipredictor says how many outcomes were at most these.
        """
        if self.announced is None:
            return {}
        by_level = self.announced.by_level(self.statistics)
        return {level: self._by_name(values) for level, values in by_level.items()}

    @property
    def explores(self) -> bool:
        """Whether ``act`` returns orders that probably are not sold out, not the best ones."""
        return bool(self.exploring)

    def act(self, name: str) -> Any:
        """Return the best action of a loss, by its name or quantity; where it explores, another."""
        task = self._task(name)
        action = int(best_response(task.expected(self.statistics)))
        return task.actions[self.exploring.get(name, action)]

    def loss(self, name: str) -> float:
        """Return what a loss expects of its best action, in its own units."""
        task = self._task(name)
        return task.in_units(float(task.expected(self.statistics).min()))

    def _quantiles(self, q: Any) -> Array:
        """Return quantiles of every outcome (d,), or (levels, d) of several levels.

        The q-quantile is the least outcome up to which the probability is at least q.
        """
        ascending, probability = self._distribution_functions
        levels = np.atleast_1d(q)
        quantiles = np.empty((len(levels), len(self.names)))
        for j in range(len(self.names)):
            places = np.searchsorted(probability[:, j], levels - ROUNDING)
            quantiles[:, j] = ascending[np.minimum(places, len(ascending) - 1), j]
        return quantiles[0] if np.ndim(q) == 0 else quantiles

    def _task(self, name: str) -> Task:
        return self.tasks[check_name("loss", name, self.tasks)]

    def _by_name(self, values: Array) -> Any:
        """Return the number of a single outcome, or the numbers (d,) by outcome's name."""
        if len(self.names) == 1:
            return float(values[0])
        return dict(zip(self.names, values.tolist(), strict=True))
