"""From the [forecaster] table of a scenario to one forecaster per block.

Events are made with their rule of weights, and wrapped by intervals; a solver knows the hull, and
is wrapped by an objective; a reference is a model, or what several have in common. A delay makes
one forecaster per turn of all this, and the calibrated baseline announces another's predictions.
Any of them goes with any other; where no theorem covers what comes out, nothing is promised.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.delayed import Delayed, LateModel
from regretless.forecaster.ensemble_broadcast import EnsembleBroadcast, ensemble_solver
from regretless.forecaster.events.assignments import Assignments
from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.cells import CellEvents, scales_for
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.draws import ASSIGNED
from regretless.forecaster.events.intervals import Intervals
from regretless.forecaster.events.protected import ProtectedLosses
from regretless.forecaster.events.rules import rule_of
from regretless.forecaster.events.scalar import GainEvents
from regretless.forecaster.minimax.base import HullSolver, PlainSolver
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.minimax.line import Line
from regretless.forecaster.minimax.objective import WithObjective
from regretless.forecaster.reference import BAND, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.assembly.models import OWN, Models
from regretless.scenarios.config.forecaster import KINDS, ForecasterSpec
from regretless.scenarios.config.scenario import ScenarioSpec


def make_forecaster(
    scenario: ScenarioSpec,
    basis: Basis,
    groups: Sequence[ProtectedLosses],
    *,
    listener: str | None = None,
) -> Forecaster:
    """Make the forecaster of a block.

    Parameters
    ----------
    listener : str or None
        A cohort that listens to ensembles; None where points are enough.

    Raises
    ------
    UserError
        If the kind is unknown, a parameter does not fit it, or it has no ensembles.
    """
    spec, models = scenario.forecaster, Models(scenario.data)
    spelled = listener is not None or spec.hull == "image"
    if spec.kind == "decision-swap":
        return _Parts(scenario, basis, listener, spelled=spelled).unbiased(groups)
    parts = _Parts(scenario, basis, listener, spelled=spelled)
    if spec.kind == "calibration":
        where, made = f"forecaster '{spec.kind}'", {"make": parts.unbiased} | spec.parameters
        alone: Forecaster = construct(where, CalibratedMultiaccurate, groups, **made)
    else:
        alone = _model(spec, basis, models)
    return EnsembleBroadcast(alone, parts.hull()) if spelled else alone


def _model(spec: ForecasterSpec, basis: Basis, models: Models) -> Forecaster:
    where, known = f"forecaster '{spec.kind}'", [*KINDS, *models.known()]
    if spec.kind not in known:
        raise UserError(f"unknown {where}; {closest(spec.kind, known)}; {OWN}")
    model = models.made(where, spec.kind, basis, **spec.parameters)
    return LateModel(model, spec.delay) if spec.delay else model


@dataclass(frozen=True)
class _Parts:
    """What the forecaster of a block is put together from.

    Parameters
    ----------
    listener : str or None
        Who listens to ensembles, for the line that says that there are none.
    spelled : bool
        Whether predictions come with their ensembles.
    """

    scenario: ScenarioSpec
    basis: Basis
    listener: str | None
    spelled: bool

    @property
    def spec(self) -> ForecasterSpec:
        """The table."""
        return self.scenario.forecaster

    @property
    def rounds(self) -> int:
        """Rounds of every turn."""
        return max(-(-self.scenario.rounds // (self.spec.delay + 1)), 1)

    def unbiased(self, groups: Sequence[ProtectedLosses]) -> Forecaster:
        """Put a forecaster together, one for each turn where outcomes are late."""
        reference = self.reference()

        def make() -> UnbiasedPrediction:
            return UnbiasedPrediction(self.events(groups), self.solver(), reference)

        return Delayed(make, self.spec.delay, reference) if self.spec.delay else make()

    def events(self, groups: Sequence[ProtectedLosses]) -> EventSet:
        """Make the events, with their rule; of intervals, too, where the file asks for them."""
        if self.spec.intervals:
            return Intervals(lambda: self._whole(groups), rounds=self.rounds)
        return self._whole(groups)

    def _whole(self, groups: Sequence[ProtectedLosses]) -> EventSet:
        """Make the events of a run: models are comparators beside coordinates and among gains."""
        rule, models = rule_of(self.spec.weights, self._horizon), len(self.spec.models or ())
        if self.spec.events == "losses":
            gains = GainEvents(groups, rule, within=self._within, models=models)
            whole = rule.name == "adaptive" and self.spec.kind == "decision-swap"  # not of cells
            return Assignments(gains, risk=self._risk) if whole else gains
        events: EventSet = VectorEvents(groups, rule)
        if models:
            events = events + GainEvents(groups, rule, models=models, fixed=False)
        if not self._everyone:
            return events
        return events + CellEvents(groups, self._scales, rule, experts=events.experts)

    @property
    def _everyone(self) -> bool:
        return self.spec.events == "everyone"

    @property
    def _scales(self) -> int:
        """Of cells of the one number that is predicted; UserError where there are more."""
        if self.basis.size == 1 and (self.basis.convex_image or not self.spelled):
            return scales_for(self.rounds)
        raise UserError(
            "forecaster.events 'everyone' is for one number in which all losses are linear; here a "
            f'forecast has {self.basis.size}, or curved ensembles: use events = "coordinates"'
        )

    @property
    def _risk(self) -> float | None:
        """Of assignments, which are charged with draws where all agents act on the same ones."""
        apart = any(cohort.response == "private" for cohort in self.scenario.cohort)
        return None if apart or self.spec.intervals else ASSIGNED / (self.spec.delay + 1)

    @property
    def _horizon(self) -> int:
        return max(self.scenario.rounds // (self.spec.delay + 1), 1)

    @property
    def _within(self) -> float | None:
        """The range of gains where predictions stay in conv s(Y)."""
        inside = self.basis.hull == "simplex" or self.spelled
        return 2 + 4 * self.basis.error if inside and self.basis.proved else None

    def solver(self) -> HullSolver:
        """Make what solves the rounds' games."""
        own = self.hull()
        return own if self.spec.objective == "none" else WithObjective(own)

    def hull(self) -> PlainSolver:
        """Make the solver over the basis's own hull, or over conv s(Y) with ensembles."""
        off_ties = self.spec.off_ties
        if self._everyone:
            ends = self.basis.inverse(np.array([[0.0], [1.0]])) if self.spelled else None
            return Line(self._scales, off_ties=off_ties, ends=ends)
        if not self.spelled:
            return cube(self.basis.size, self.basis.hull, off_ties=off_ties)
        try:
            return ensemble_solver(self.basis, off_ties=off_ties)
        except ValueError as error:
            said = f"cohort.{self.listener}.response 'ensemble'"
            where = said if self.listener else "forecaster.hull 'image'"
            raise UserError(f"{where}: {error}") from error

    def reference(self) -> Reference | None:
        """Make the model whose forecast is kept where it is good; None without one."""
        spec, models = self.spec, Models(self.scenario.data)
        if spec.reference.kind == "none":
            return None
        where = f"forecaster.reference '{spec.reference.kind}'"
        if spec.models:
            base: Forecaster = models.together(spec, self.basis)
        else:
            base = models.made(where, spec.reference.kind, self.basis, **spec.reference.parameters)
        band = BAND if spec.band is None else spec.band
        give_up = 1.0 if spec.give_up is None else spec.give_up
        return Reference(base, band=band, give_up=give_up, turns=spec.delay + 1)
