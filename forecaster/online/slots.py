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
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.minimax.game import Solution
from regretless.forecaster.models import Aggregate
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.records import Mixture

MAX_SLOTS = 256  # beyond, forecasts share the last one, for which there is no theorem then


class SharedModel(Checkpointable, Forecaster):
    """Lets a slot read what a model predicts; the model is taught, and saved, by its owner."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ()

    points = Delegated("model")

    def __init__(self, model: Aggregate) -> None:
        self.model = model
        self.made_of = model.made_of

    def mixture(self, x: object = None) -> Mixture:
        return self.model.mixture(x)

    def point(self, x: object = None) -> Array:
        return self.model.point(x)

    def update(self, y: ArrayLike) -> None:
        """Learn nothing: the owner teaches the model."""


class Slot(UnbiasedPrediction):
    """Unbiased prediction of one open forecast at a time, whose round can be put away.

    Parameters
    ----------
    groups : sequence of ProtectedLosses
        The losses that are protected, the same objects in all slots.
    basis : Basis
        Says in which hull predictions lie.
    model : Aggregate
        The models that all slots share.
    slot_index : int
        The slot's number among all of them, from 0.
    """

    def __init__(
        self, groups: Sequence[ProtectedLosses], basis: Basis, model: Aggregate, slot_index: int
    ) -> None:
        # The chance of a false alarm is shared as among blocks: alpha / (j (j + 1)) for slot j.
        blocks = max(slot_index * (slot_index + 1), 1)
        reference = Reference(SharedModel(model), blocks=blocks)
        events = GainEvents(groups, models=len(model.made_of))
        super().__init__(events, cube(basis.size, basis.hull), reference)

    def open_game(self) -> dict[str, Any]:
        """Return the open round's game, as arrays and plain values: what ``reopen_game`` takes."""
        if self._pending is None:
            raise ValueError("no round is open; call mixture first")
        suggestions, solution = self._pending
        suggestions_by_group = {}
        for group_index, suggestions_of_group in enumerate(suggestions):
            suggestions_by_group[str(group_index)] = suggestions_of_group.copy()
        return {
            "suggestions": suggestions_by_group,
            "points": solution.points.copy(),
            "mass": solution.mass.copy(),
            "certificate": solution.certificate,
            "unchanged": solution.unchanged,
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
        )
        self._pending = suggestions, solution
