"""From the [forecaster] table of a scenario to one forecaster per block.

Events are made with their rule of weights, and wrapped by intervals; a solver knows the hull, and
may have an objective; a reference is a model, or what several have in common. A delay makes
one forecaster per turn of all this, and the calibrated baseline announces another's predictions.
Any of them goes with any other; where no theorem covers what comes out, nothing is promised. Models
are named, and suggest actions to the cohorts that are compared with them.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.events.base import AnyEvents, Intervals
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.draws import ASSIGNED
from regretless.forecaster.events.protected import LossTable, ProtectedLosses, best_responses
from regretless.forecaster.events.scalar import Assignments, GainEvents
from regretless.forecaster.events.weights import rule_of
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.minimax.game import HullSolver
from regretless.forecaster.minimax.image import ensemble_solver
from regretless.forecaster.models.aggregate import Aggregate
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.outcomes import ColumnForecast
from regretless.forecaster.reference import BAND, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.universal import CellEvents, Line, scales_for
from regretless.forecaster.wrapping import Delayed, EnsembleBroadcast, LateModel
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Forecaster
from regretless.market.game.round import Block
from regretless.market.losses.basis import Basis
from regretless.market.regret.model_comparison import ModelComparison, NotCompared
from regretless.scenarios.assembly.cohorts import Placement
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.forecaster import AGGREGATE, KINDS, ForecasterSpec
from regretless.scenarios.config.reasons import CURVED
from regretless.scenarios.config.scenario import ScenarioSpec

OWN = "a name of your own needs --import MODULE"


@dataclass(frozen=True)
class Models:
    """The models that a scenario may name: forecasts in its data, and registered ones."""

    data: DataSpec | None = None

    def known(self) -> list[str]:
        """Names of all models."""
        return [*(self.data.forecasts if self.data else ()), *register.forecaster.names()]

    def made(self, where: str, kind: str, basis: Basis, **parameters: Any) -> Forecaster:
        """Make a model that predicts s(y) of a basis.

        A registered maker is given the number n of functions, and the basis if it takes one.
        """
        if self.data is not None and kind in self.data.forecasts:
            for key in parameters:
                raise UserError(f"{where}: forecasts in the data take no parameters; drop '{key}'")
            columns, levels = self.data.features_of(kind), self.data.forecasts[kind].levels
            return ColumnForecast(basis, columns=columns, levels=levels)
        if kind not in register.forecaster:
            raise UserError(f"unknown {where}; {closest(kind, self.known())}; {OWN}")
        maker = register.forecaster[kind]
        asked = inspect.signature(maker).parameters
        given = {"basis": basis} if "basis" in asked and "basis" not in parameters else {}
        model = construct(where, maker, basis.size, **given, **parameters)
        try:
            return adapted(model, basis.size, basis)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error

    def together(self, spec: ForecasterSpec, basis: Basis) -> Aggregate:
        """Make the models of a forecaster, which predicts as its base: one of them, or of all."""
        models = {
            name: self.made(f"model '{name}'", table.kind, basis, **table.parameters)
            for name, table in (spec.models or {}).items()
        }
        chosen = None if spec.reference.kind == AGGREGATE else spec.reference.kind
        return Aggregate(models, basis.size, chosen=chosen)


def followed(seat: Placement, block: Block) -> NotCompared:
    """Score what a cohort would lose with the models of its block, policies and fixed actions."""
    forecaster, group, cohort = block.forecaster, seat.group, seat.cohort
    sizes = len(cohort.policies), cohort.loss.actions
    if forecaster.models and group is not None and not seat.lies:  # models would suit the report
        suggest = Suggestions(forecaster, group, seat.lines)
        return ModelComparison(forecaster.models, cohort.counts, sizes=sizes, suggest=suggest)
    return ModelComparison((), cohort.counts, sizes=sizes, suggest=Nothing(len(cohort.counts)))


@dataclass(frozen=True)
class Nothing:
    """What no models suggest to so many rows: (K, 0)."""

    rows: int

    def __call__(self) -> Indices:
        """Return the empty table."""
        return np.zeros((self.rows, 0), dtype=np.intp)

    def at(self, rows: Indices) -> Callable[[Array], Indices]:
        """Return a function that tells the same some of the rows."""
        own = Nothing(len(rows))
        return lambda _: own()


@dataclass(frozen=True, eq=False)
class Suggestions:
    """What the models of a block suggest to the rows of a cohort in the open round: (K, M).

    ``lines`` (slice or int array (K,)): which losses of the group stand for the rows.
    """

    forecaster: Forecaster
    group: ProtectedLosses
    lines: slice | Indices

    def __call__(self) -> Indices:
        """Ask the forecaster, who has worked it out for the losses that it protects."""
        return self.forecaster.suggested(self.group)[self.lines]

    def at(self, rows: slice | Indices) -> Callable[[Array], Indices]:
        """Return a function that tells what points (M, n) suggest to some of the rows."""
        lines = np.arange(len(self.group.offset))[self.lines][rows]
        own = ProtectedLosses(self.group.offset[lines], self.group.weights[lines])
        return partial(best_responses, LossTable([own]))


def make_forecaster(
    scenario: ScenarioSpec,
    basis: Basis,
    groups: Sequence[ProtectedLosses],
    *,
    listener: str | None = None,
) -> Forecaster:
    """Make the forecaster of a block.

    ``listener`` (str or None): a cohort that listens to ensembles; None where points are enough.
    """
    spec, models = scenario.forecaster, Models(scenario.data)
    spelled, where = listener is not None or spec.hull == "image", f"forecaster '{spec.kind}'"
    rounds = max(-(-scenario.rounds // (spec.delay + 1)), 1)
    parts = _Parts(scenario, spec, basis, listener, rounds, spelled=spelled)
    if spec.kind == "decision-swap":
        return parts.unbiased(groups)
    if spec.kind == "calibration":
        made = {"make": parts.unbiased} | spec.parameters
        alone: Forecaster = construct(where, CalibratedMultiaccurate, groups, **made)
    elif spec.kind in models.known():
        alone = models.made(where, spec.kind, basis, **spec.parameters)
        alone = LateModel(alone, spec.delay) if spec.delay else alone
    else:
        raise UserError(f"unknown {where}; {closest(spec.kind, [*KINDS, *models.known()])}; {OWN}")
    return EnsembleBroadcast(alone, parts.hull()) if spelled else alone


@dataclass(frozen=True)
class _Parts:
    """What the forecaster of a block is put together from."""

    scenario: ScenarioSpec
    spec: ForecasterSpec
    basis: Basis
    listener: str | None  # a cohort that listens to ensembles
    rounds: int  # of every turn
    spelled: bool  # whether predictions come with their ensembles

    def unbiased(self, groups: Sequence[ProtectedLosses]) -> Forecaster:
        """Put a forecaster together, one for each turn where outcomes are late."""
        reference = self._reference()

        def events() -> AnyEvents:
            return self._events(groups)

        def make() -> UnbiasedPrediction:
            own = Intervals(events, rounds=self.rounds) if self.spec.intervals else events()
            solver = self.hull()
            solver.preferring = self.spec.objective != "none"
            return UnbiasedPrediction(own, solver, reference)

        return Delayed(make, self.spec.delay, reference) if self.spec.delay else make()

    def _events(self, groups: Sequence[ProtectedLosses]) -> AnyEvents:
        """Make the events of a run: models are comparators beside coordinates and among gains."""
        horizon = max(self.scenario.rounds // (self.spec.delay + 1), 1)
        rule, models = rule_of(self.spec.weights, horizon), len(self.spec.models or ())
        if self.spec.events == "losses":
            inside = self.basis.hull == "simplex" or self.spelled  # predictions are in conv s(Y)
            within = 2 + 4 * self.basis.error if inside and self.basis.proved else None
            gains: dict[str, Any] = {"within": within, "models": models}
            if rule.name != "adaptive" or self.spec.kind != "decision-swap":
                return GainEvents(groups, rule, **gains)
            apart = any(cohort.response == "private" for cohort in self.scenario.cohort)
            risk = None if apart or self.spec.intervals else ASSIGNED / (self.spec.delay + 1)
            return Assignments(groups, rule, risk=risk, **gains)  # charged with common draws
        events: AnyEvents = VectorEvents(groups, rule)
        if models:
            events = events + GainEvents(groups, rule, models=models, fixed=False)
        if self.spec.events != "everyone":
            return events
        return events + CellEvents(groups, self._scales, rule, experts=events.experts)

    @property
    def _scales(self) -> int:
        """Of cells of the one number that is predicted; UserError where there are more."""
        if self.basis.size == 1 and (self.basis.convex_image or not self.spelled):
            return scales_for(self.rounds)
        raise UserError(
            f"forecaster.events 'everyone' {CURVED}; here a forecast "
            f'has {self.basis.size}, or curved ensembles: use events = "coordinates"'
        )

    def hull(self) -> HullSolver:
        """Make the solver over the basis's own hull, or over conv s(Y) with ensembles."""
        off_ties = self.spec.off_ties
        if self.spec.events == "everyone":
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

    def _reference(self) -> Reference | None:
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
