"""Slots: one instance of unbiased prediction for each forecast that is open at the same time.

The theorem of unbiased prediction is about one forecast at a time: it is told what it predicted
before it predicts again. Forecasts whose outcomes come late are open side by side, and so each open
forecast takes the lowest free **slot**. A slot is an ``UnbiasedPrediction`` of its own, with its
own events, potentials and switch test, and it has one open forecast at a time: its game is one
without delay (Weinberger and Ordentlich 2002; Joulani, Gyorgy and Szepesvari 2013), and its regret
is a supermartingale of its own while the models are calibrated. What the slots promise adds up:

    regret of all rounds  <=  sum over slots of each slot's regret  <=  sum of the slots' bounds.

The **switch tests** add up as well. Nobody knows beforehand how many slots there will be; the first
one spends alpha, as if it were alone, and slot j = 1, 2, ... spends alpha / (j (j + 1)), which is
alpha at most for all of them together. A calibrated panel is given up by some slot with at most
twice the probability of a single one.

The **models** are shared: they see every outcome once, when it comes. A slot reads what they
predict, and does not teach them.

**Predictions are means of distributions.** What the models predict is the mean of s over their
mixture D. Once a slot corrects them, its game is over conv s(Y) (``minimax.image``) where the basis
knows it: each prediction comes with outcomes whose mean it is. Where the basis does not, as that of
several families of losses, the game is over the box.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.coverage import AnnouncedQuantiles
from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.coverage_events import CoverageEvents
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.minimax.cube import Simplex, cube
from regretless.forecaster.minimax.game import Game, HullSolver, Solution
from regretless.forecaster.minimax.image import Image, WeightedOutcomes, reduced_support
from regretless.forecaster.minimax.support import BrokenLineSupport
from regretless.forecaster.models.pool import DistributionPool
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis, Support
from regretless.market.records import Ensemble, Mixture

MAX_SLOTS = 256  # beyond, forecasts share the last one, for which there is no theorem then


class SharedModel(Checkpointable, Forecaster):
    """Lets a slot read what a model predicts; the model is taught, and saved, by its owner."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ()

    points = Delegated("model")

    def __init__(self, model: DistributionPool, context_of_models: Callable[[Any], Any]) -> None:
        self.model = model
        self.made_of = model.made_of
        self._context_of_models = context_of_models

    def mixture(self, x: object = None) -> Mixture:
        return self.model.mixture(self._context_of_models(x))

    def point(self, x: object = None) -> Array:
        return self.model.point(self._context_of_models(x))

    def update(self, y: ArrayLike) -> None:
        """Learn nothing: the owner teaches the model."""


class PooledImage(Image):
    """The game over conv s(Y), in which the models' mean is a prediction with an ensemble.

    The ensemble is the models' mixture D, as it is: it is made as small as others are only where a
    game begins at it.
    """

    def __init__(self, support: Support, model: DistributionPool) -> None:
        super().__init__(support)
        self._model = model

    def single(self, point: Array) -> Solution:
        outcomes, weights, images = self._model.weighted_images()
        mixture = WeightedOutcomes(outcomes, weights, images)
        return Solution(np.array(point)[None], ensembles=(mixture,), unchanged=True)

    def _play(self, game: Game) -> Solution:
        start = game.start
        if start.ensembles:
            ensembles = tuple(smaller(ensemble, self.support) for ensemble in start.ensembles)
            game = replace(game, start=replace(start, ensembles=ensembles))
        return super()._play(game)

    def remember(self, solution: Solution) -> None:
        if not solution.unchanged:
            super().remember(solution)

    def state(self) -> dict[str, Any]:
        # before the first game there is nothing that a new object does not have
        return {"games": super().state() if self._atoms else None}

    def restore(self, state: dict[str, Any]) -> None:
        if state["games"] is not None:
            super().restore(state["games"])


def smaller(ensemble: Ensemble, support: Support) -> WeightedOutcomes:
    """Return an ensemble of at most n + 1 outcomes with the same mean of s.

    Of hinges these are the levels between which s is linear. Elsewhere it is found part by part,
    since the time that ``reduced_support`` takes grows with the cube of the outcomes that it is
    given.
    """
    assert isinstance(ensemble, WeightedOutcomes)  # noqa: S101 - those of an ``Image`` all are
    if isinstance(support, BrokenLineSupport):
        listed_outcomes, images, weights = support.spread(ensemble.outcomes, ensemble.weights)
        return WeightedOutcomes.of(listed_outcomes, images, weights)
    outcomes = ensemble.outcomes
    images = ensemble.images
    weights = np.array(ensemble.weights)
    step = images.shape[1] + 1
    kept_indices = np.zeros(0, dtype=np.intp)
    for first in range(0, len(weights), step):
        kept_indices = np.concatenate(
            [kept_indices, np.arange(first, min(first + step, len(weights)))]
        )
        weights[kept_indices] = reduced_support(images[kept_indices], weights[kept_indices])
        kept_indices = kept_indices[weights[kept_indices] > 0]
    return WeightedOutcomes.of(outcomes[kept_indices], images[kept_indices], weights[kept_indices])


def serving_solver(basis: Basis, support: Support | None, model: DistributionPool) -> HullSolver:
    """Make the solver of a slot: over conv s(Y) where a basis knows its ``support``."""
    if basis.points is not None:
        return Simplex(basis.size, cell_outcomes=basis.points)
    if support is None:
        return cube(basis.size, basis.hull)
    return PooledImage(support, model)


class Slot(UnbiasedPrediction):
    """Unbiased prediction of one open forecast at a time, whose round can be put away.

    Parameters
    ----------
    groups : sequence of ProtectedLosses
        The losses that are protected, the same objects in all slots.
    solver : HullSolver
        Says in which hull predictions lie; its own, as it has a memory.
    model : DistributionPool
        The models that all slots share.
    context_of_models : callable
        Returns what the models read of a context; policies read the context itself.
    slot_index : int
        The slot's number among all of them, from 0.
    announced : AnnouncedQuantiles, optional
        Quantiles that are announced, whose pinball losses are protected beside the groups.

    Attributes
    ----------
    coverage_events : CoverageEvents or None
        Those of the announced quantiles.
    """

    def __init__(
        self,
        groups: Sequence[ProtectedLosses],
        solver: HullSolver,
        model: DistributionPool,
        *,
        context_of_models: Callable[[Any], Any],
        slot_index: int,
        announced: AnnouncedQuantiles | None = None,
    ) -> None:
        # The chance of a false alarm is shared as among blocks: alpha / (j (j + 1)) for slot j.
        blocks = max(slot_index * (slot_index + 1), 1)
        reference = Reference(SharedModel(model, context_of_models), blocks=blocks)
        all_groups = list(groups)
        if announced is not None:
            all_groups.append(announced.group)
        self._gains = GainEvents(all_groups, models=len(model.made_of))
        self.coverage_events: CoverageEvents | None = None
        events: EventSet = self._gains
        if announced is not None:
            self.coverage_events = CoverageEvents(
                self._gains.rows,
                announced.group,
                announced.grid,
                first_indicators=announced.first_indicators,
            )
            events = self._gains + self.coverage_events
        super().__init__(events, solver, reference)

    def coverage_deviations(self) -> Array:
        """Bound the sums of all biases of coverage so far, in expectation over draws."""
        if self.coverage_events is None:
            raise ValueError("no quantiles are announced")
        return self.coverage_events.deviation(self.known_bound(self.coverage_events))

    @property
    def is_unchanged(self) -> bool:
        """Whether the open round's prediction is the models' own."""
        return self._pending is not None and self._pending[1].unchanged

    def correction(self, drawn: int) -> Ensemble | None:
        """Return outcomes whose mean of s is the open round's drawn prediction.

        None where the prediction is the models' own, or the game knows no outcomes.
        """
        assert self._pending is not None  # noqa: S101 - a round is open
        solution = self._pending[1]
        if solution.unchanged or solution.ensembles is None:
            return None
        return solution.ensembles[drawn]

    def open_game(self) -> dict[str, Any]:
        """Return the open round's game, as arrays and plain values: what ``reopen_game`` takes."""
        if self._pending is None:
            raise ValueError("no round is open; call mixture first")
        active_events, solution = self._pending
        suggestions = active_events
        if (
            self.coverage_events is not None
        ):  # the active events of two sets, those of the gains first
            suggestions = active_events[0][1]
        suggestions_by_group = {}
        for group_index, suggestions_of_group in enumerate(suggestions):
            suggestions_by_group[str(group_index)] = suggestions_of_group.copy()
        return {
            "suggestions": suggestions_by_group,
            "points": solution.points.copy(),
            "mass": solution.mass.copy(),
            "certificate": solution.certificate,
            "unchanged": solution.unchanged,
            "ensembles": kept_ensembles(solution),
        }

    def reopen_game(self, game: dict[str, Any]) -> None:
        """Go back to a round that was open, so that ``update`` learns the outcome of that round."""
        suggestions_by_group = game["suggestions"]
        suggestions = []
        for group_index in range(len(suggestions_by_group)):
            suggestions_of_group = suggestions_by_group[str(group_index)]
            suggestions.append(np.asarray(suggestions_of_group, dtype=np.intp))
        solution = Solution(
            points=game["points"],
            mass=game["mass"],
            certificate=game["certificate"],
            unchanged=bool(game["unchanged"]),
            ensembles=restored_ensembles(game["ensembles"]),
        )
        active_events: Any = suggestions
        if self.coverage_events is not None:
            active_events = [(self._gains, suggestions), (self.coverage_events, None)]
        self._pending = active_events, solution


def kept_ensembles(solution: Solution) -> dict[str, Array] | None:
    """Return the ensembles of a game over conv s(Y) in arrays, one after another; None if none."""
    if solution.unchanged or solution.ensembles is None:
        return None
    ensembles = [
        ensemble for ensemble in solution.ensembles if isinstance(ensemble, WeightedOutcomes)
    ]
    if not ensembles:
        return None
    return {
        "sizes": np.array([len(ensemble.weights) for ensemble in ensembles]),
        "outcomes": np.vstack([ensemble.outcomes for ensemble in ensembles]),
        "weights": np.concatenate([ensemble.weights for ensemble in ensembles]),
        "images": np.vstack([ensemble.images for ensemble in ensembles]),
    }


def restored_ensembles(arrays: dict[str, Array] | None) -> tuple[WeightedOutcomes, ...] | None:
    """Return the ensembles that ``kept_ensembles`` put into arrays."""
    if arrays is None:
        return None
    begins_of_next = np.cumsum(arrays["sizes"])[:-1]
    outcomes = np.split(np.asarray(arrays["outcomes"]), begins_of_next)
    weights = np.split(np.asarray(arrays["weights"]), begins_of_next)
    images = np.split(np.asarray(arrays["images"]), begins_of_next)
    return tuple(map(WeightedOutcomes, outcomes, weights, images))
