r"""Models that are distributions, pooled with one weight each.

Every model k forecasts a distribution D_k of the outcome. With one weight w_k for each model the
pool is their mixture,

    D = sum_k w_k D_k,        E_D s(y) = sum_k w_k E_(D_k) s(y),

so that its prediction is the mean of s over D: quantiles, statistics and decisions agree. Weights
that differ from number to number, as an ``Aggregate`` has, may predict what no distribution has.

The weights are the common ones of ``aggregate``: ML-Poly with the squared error of the predicted
statistics, averaged over them, for a loss. Where the statistics are hinges or indicators of one
outcome this is a continuous ranked probability score, and weights learned by it are those of CRPS
learning (Berrisch and Ziel 2023, J. of Econometrics 237(2), arXiv:2102.00968). The bound of
``aggregate`` on common weights holds.

Before any outcome is known, D is an even lattice of all outcomes; the models take over within
``ROUNDS_TO_TAKE_OVER`` rounds.

Of one outcome the pool may be recalibrated (``recalibration``): D is then the mixture with the
weights of its outcomes mended by how probable earlier mixtures found what came. The models' weights
are learned from their mixture as it was before. Where an outcome is an estimate in place of a
censored one (``RoundFeedback.limits``), the models learn the estimate, and the recalibration the
limit.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.models.aggregate import Aggregate, Shares, combine
from regretless.forecaster.models.base import check
from regretless.forecaster.models.outcomes import DistributionModel, lattice
from regretless.forecaster.models.recalibration import (
    Recalibration,
    distribution_function,
    steps_of,
)
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.losses.basis import Basis
from regretless.market.records import Ensemble, RoundFeedback

ROUNDS_TO_TAKE_OVER = 8
MIN_WEIGHT = 1e-6  # of a model: one that has less is left out of D


class WeightedImages(NamedTuple):
    """A distribution of outcomes with their images."""

    outcomes: Array  # (m, d), of the unit cube
    weights: Array  # (m,)
    images: Array  # (m, n), s of the outcomes


class DistributionPool(Aggregate):
    """The mixture of models that are distributions, by name.

    Parameters
    ----------
    models : mapping of str to DistributionModel
        For the same basis.
    basis : Basis
        Of the statistics that are predicted.
    recalibrated : bool
        Whether the mixture is recalibrated, where there is one outcome; of several it never is.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_recalibration",)

    basis: Basis

    def __init__(
        self,
        models: Mapping[str, DistributionModel],
        basis: Basis,
        *,
        recalibrated: bool = False,
    ) -> None:
        for name, model in models.items():
            expected = "a model of outcomes, such as WithErrors"
            check(isinstance(model, DistributionModel), f"models['{name}']", model, expected)
        # of the choice between weights of each number and common ones, the common ones have all
        self._common_alone = np.repeat([[0.0], [1.0]], basis.size, axis=1)
        super().__init__(models, basis.size)
        self.basis = basis
        self._models = tuple(models.values())
        self._lattice = lattice(basis.outcomes)
        self._images_of_lattice = basis.transform(self._lattice)
        self._distributions_of_models: list[Ensemble] = []  # of the open round, a model's each
        self._images_of_models: list[Array] = []  # s of their outcomes
        # outcomes of all models of the open round, one model behind the other, and s of them
        self._all_outcomes = self._lattice[:0]
        self._all_images = self._images_of_lattice[:0]
        self._mixture: WeightedImages | None = None  # D of the open round, once it is asked for
        self._recalibration: Recalibration | None = None
        if recalibrated and basis.outcomes == 1:
            self._recalibration = Recalibration()
        # the open round's distribution function before it was recalibrated, and how many outcomes
        # before that of the round were not known when it was forecast
        self._probability: Array | None = None
        self._unknown_before = 0
        # what the outcome that is learned is known to exceed; None where it was seen
        self._limit: float | None = None

    def _points_of_models(self, x: object) -> Array:
        self._tell_lead_to_models()
        self._mixture = None
        self._distributions_of_models = []
        for name, model in zip(self.made_of, self._models, strict=True):
            try:
                self._distributions_of_models.append(model.distribution(x))
            except UserError as error:
                raise UserError(f"models['{name}']: {error}") from error
        all_outcomes = np.concatenate(
            [forecast.outcomes for forecast in self._distributions_of_models]
        )
        all_images = self.basis.transform(all_outcomes)
        self._all_outcomes = all_outcomes
        self._all_images = all_images
        self._images_of_models = []
        points = np.empty((len(self._models), self.size))
        first = 0
        for k, forecast in enumerate(self._distributions_of_models):
            end = first + len(forecast.weights)
            images = all_images[first:end]
            self._images_of_models.append(images)
            points[k] = forecast.weights @ images
            first = end
        return points

    def _combined(self) -> Array:
        weights = self._common.shares
        weights = np.where(weights < MIN_WEIGHT, 0.0, weights)
        self._shares = Shares(self._own.shares, weights / weights.sum(), self._common_alone)
        prediction = np.empty(self.size)
        combine(self._points, *self._shares, prediction)
        return prediction

    @property
    def _share_of_lattice(self) -> float:
        """Return how much of D is the lattice, before the next outcome is learned."""
        return max(1.0 - self.time / ROUNDS_TO_TAKE_OVER, 0.0)

    def _predicted(self, x: object) -> Array:
        mean_of_models = super()._predicted(x)
        if self._recalibration is not None:
            mixture = self.weighted_images()
            return np.asarray(mixture.weights @ mixture.images)
        share = self._share_of_lattice
        if not share:
            return mean_of_models
        return np.asarray((1 - share) * mean_of_models + share * self._images_of_lattice.mean(0))

    def distribution(self) -> Ensemble:
        """Return D of the open round: outcomes of the unit cube (m, d), and their weights (m,).

        The prediction that was asked for last is the mean of s over it.
        """
        mixture = self.weighted_images()
        return Ensemble(mixture.outcomes, mixture.weights)

    def weighted_images(self) -> WeightedImages:
        """Return D of the open round with the images of its outcomes."""
        if self._mixture is None:
            self._mixture = self._mixed()
        return self._mixture

    def opened(self) -> Any:
        opened = super().opened()
        if self._recalibration is not None:
            steps = None if self._probability is None else steps_of(self._probability)
            opened["probability"] = steps
            opened["unknown_before"] = self._unknown_before
        return opened

    def reopen(self, x: object, opened: Any) -> None:
        super().reopen(x, opened)
        if self._recalibration is not None:
            probability = opened["probability"]
            if isinstance(probability, Mapping):  # files of format 5 have the whole function
                probability = distribution_function(probability)
            self._probability = probability
            self._unknown_before = opened.get("unknown_before", 0)  # older files lack it

    def observe(self, feedback: RoundFeedback) -> None:
        if feedback.limits is not None and self.basis.outcomes == 1:
            self._limit = float(feedback.limits[0])
        super().observe(feedback)
        self._limit = None

    def _learn(self, statistics: Array) -> None:
        if self._recalibration is not None and self._probability is not None:
            number = self.time + self.ahead
            if self._limit is not None:
                self._recalibration.learn_limit(
                    self._limit,
                    self._probability,
                    number=number,
                    unknown_before=self._unknown_before,
                )
            else:
                assert self._outcome is not None  # noqa: S101 - a pool is told the outcome
                outcome = float(self._outcome[0])
                self._recalibration.learn(
                    outcome,
                    self._probability,
                    number=number,
                    unknown_before=self._unknown_before,
                )
        super()._learn(statistics)

    def _mixed(self) -> WeightedImages:
        """Mix the models' distributions, and recalibrate the mixture."""
        share = self._share_of_lattice
        outcomes = []
        weights = []
        images = []
        shares_of_models = self._shares.common[:, 0]
        is_of_all_models = share == 0 and bool((shares_of_models > 0).all())
        for share_of_model, forecast, images_of_model in zip(
            shares_of_models, self._distributions_of_models, self._images_of_models, strict=True
        ):
            if share_of_model > 0 and share < 1:
                outcomes.append(forecast.outcomes)
                weights.append((1 - share) * share_of_model * forecast.weights)
                images.append(images_of_model)
        if share > 0:
            outcomes.append(self._lattice)
            weights.append(np.full(len(self._lattice), share / len(self._lattice)))
            images.append(self._images_of_lattice)
        all_weights = np.concatenate(weights)
        if is_of_all_models:  # as they stand one behind the other already
            all_outcomes = self._all_outcomes
            all_images = self._all_images
        else:
            all_outcomes = np.concatenate(outcomes)
            all_images = np.concatenate(images)
        if self._recalibration is not None:
            all_weights, self._probability = self._recalibration.apply(
                all_outcomes[:, 0], all_weights
            )
            self._unknown_before = self.ahead
        return WeightedImages(all_outcomes, all_weights, all_images)
