"""From the [forecaster] table of a scenario to one forecaster per block.

Events are made with their rule of weights, and wrapped by intervals; a solver knows the hull, and
may have an objective; a reference is a model, or what several have in common. A delay makes
one forecaster per turn of all this, and the calibrated baseline announces another's predictions.
Any of them goes with any other; where no theorem covers what comes out, nothing is promised. Models
are named, and suggest actions to the cohorts that are compared with them.
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.delayed import Delayed
from regretless.forecaster.ensemble import EnsembleBroadcast
from regretless.forecaster.events.base import EventSet, Intervals
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import Assignments, GainEvents
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses
from regretless.forecaster.guarantees.draws import ASSIGNED
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.minimax.game import HullSolver
from regretless.forecaster.minimax.image import ensemble_solver
from regretless.forecaster.models.aggregate import Aggregate
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.late_model import LateModel
from regretless.forecaster.models.outcomes import ColumnForecast
from regretless.forecaster.reference import BAND, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.universal import CellEvents, Line, scales_for
from regretless.forecaster.weights import rule_of
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Forecaster
from regretless.market.game.round import Block
from regretless.market.losses.basis import Basis
from regretless.market.regret.model_comparison import Comparison, ModelComparison
from regretless.scenarios.assembly.cohorts import Placement
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.config.forecaster import AGGREGATE, KINDS, ForecasterSpec
from regretless.scenarios.config.reasons import CURVED
from regretless.scenarios.config.scenario import ScenarioSpec

OWN = "a name of your own needs --import MODULE"


@dataclass(frozen=True, eq=False)
class Suggestions:
    """What the models of a block suggest to the K rows of a cohort in the open round: (K, M).

    ``lines`` (slice or int array (K,)): which losses of the group stand for the rows; nothing is
    suggested to a cohort without a group.
    """

    forecaster: Forecaster
    group: ProtectedLosses | None
    lines: slice | Indices
    rows: int

    def __call__(self) -> Indices:
        """Ask the forecaster, who has worked it out for the losses that it protects."""
        if self.group is None:
            return np.zeros((self.rows, 0), dtype=np.intp)
        return self.forecaster.suggested(self.group)[self.lines]

    def at(self, rows: slice | Indices) -> Callable[[Array], Indices]:
        """Return a function that tells what points (M, n) suggest to some of the rows."""
        if self.group is None:
            return lambda _: np.zeros((len(np.arange(self.rows)[rows]), 0), dtype=np.intp)
        lines = np.arange(len(self.group.offset))[self.lines][rows]
        own = ProtectedLosses(self.group.offset[lines], self.group.weights[lines])
        return LossTable([own]).best_responses


def followed(seat: Placement, block: Block) -> Comparison:
    """Score what a cohort would lose with the models of its block, policies and fixed actions."""
    forecaster, cohort = block.forecaster, seat.cohort
    told = bool(forecaster.models) and not seat.lies  # models would suit what it reports
    group = seat.group if told else None
    suggest = Suggestions(forecaster, group, seat.lines, len(cohort.counts))
    models, sizes = forecaster.models, (len(cohort.policies), cohort.loss.actions)
    models = () if group is None else models
    return ModelComparison(models, cohort.counts, sizes=sizes, suggest=suggest)


def make_forecaster(
    scenario: ScenarioSpec,
    basis: Basis,
    groups: Sequence[ProtectedLosses],
    *,
    listener: str | None = None,
    blocks: int = 1,
) -> Forecaster:
    """Make the forecaster of one of so many ``blocks``.

    ``listener`` (str or None): a cohort that listens to ensembles; None where points are enough.
    """
    spec, parts = scenario.forecaster, _Parts(scenario, basis, listener, blocks)
    if spec.kind == "decision-swap":
        return parts.unbiased(groups)
    where = f"forecaster '{spec.kind}'"
    if spec.kind == "calibration":
        made = {"make": parts.unbiased} | spec.parameters
        alone: Forecaster = construct(where, CalibratedMultiaccurate, groups, **made)
    else:
        alone = parts.model(where, spec.kind, spec.parameters, kinds=KINDS)
        alone = LateModel(alone, spec.delay) if spec.delay else alone
    return EnsembleBroadcast(alone, parts.hull()) if parts.spelled else alone


@dataclass(frozen=True)
class _Parts:
    """What the forecaster of a block is put together from."""

    scenario: ScenarioSpec
    basis: Basis
    listener: str | None  # a cohort that listens to ensembles
    blocks: int  # of the run

    @property
    def spec(self) -> ForecasterSpec:
        return self.scenario.forecaster

    @property
    def rounds(self) -> int:
        """Of every turn, at most."""
        return max(-(-self.scenario.rounds // (self.spec.delay + 1)), 1)

    @property
    def spelled(self) -> bool:
        """Whether predictions come with their ensembles."""
        return self.listener is not None or self.spec.hull == "image"

    def model(
        self, where: str, kind: str, parameters: dict[str, Any], kinds: Iterable[str] = ()
    ) -> Forecaster:
        """Make a model that predicts s(y): forecasts in the data, or a registered one.

        A registered maker is given the number n of functions, and the basis if it takes one.
        """
        data, basis = self.scenario.data, self.basis
        if data is not None and kind in data.forecasts:
            for key in parameters:
                raise UserError(f"{where}: forecasts in the data take no parameters; drop '{key}'")
            columns, levels = data.features_of(kind), data.forecasts[kind].levels
            return ColumnForecast(basis, columns=columns, levels=levels)
        if kind not in register.forecaster:
            known = [*kinds, *(data.forecasts if data else ()), *register.forecaster.names()]
            raise UserError(f"unknown {where}; {closest(kind, known)}; {OWN}")
        maker = register.forecaster[kind]
        takes = "basis" in inspect.signature(maker).parameters
        given = {"basis": basis} | parameters if takes else parameters
        model = construct(where, maker, basis.size, **given)
        try:
            return adapted(model, basis.size, basis)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from error

    def unbiased(self, groups: Sequence[ProtectedLosses]) -> Forecaster:
        """Put a forecaster together, one for each turn where outcomes are late."""
        spec, reference = self.spec, self._reference()
        events = partial(self._events, groups)

        def make() -> UnbiasedPrediction:
            own = Intervals(events, rounds=self.rounds) if spec.intervals else events()
            solver = self.hull()
            solver.preferring = spec.objective != "none"
            return UnbiasedPrediction(own, solver, reference)

        return Delayed(make, spec.delay) if spec.delay else make()

    def _events(self, groups: Sequence[ProtectedLosses]) -> EventSet:
        """Make the events of a run: models are comparators beside coordinates and among gains."""
        spec, basis, turns = self.spec, self.basis, self.spec.delay + 1
        rule = rule_of(spec.weights, max(self.scenario.rounds // turns, 1))
        models = len(spec.models or ())
        if spec.events == "losses":
            inside = basis.hull == "simplex" or self.spelled  # predictions are in conv s(Y)
            within = 2 + 4 * basis.error if inside and basis.proved else None
            if rule.name != "adaptive" or spec.kind != "decision-swap":
                return GainEvents(groups, rule, within=within, models=models)
            apart = any(cohort.response == "private" for cohort in self.scenario.cohort)
            risk = None if apart or spec.intervals else ASSIGNED / turns  # draws in common
            return Assignments(groups, rule, risk=risk, within=within, models=models)
        events: EventSet = VectorEvents(groups, rule)
        if models:
            events = events + GainEvents(groups, rule, models=models, fixed=False)
        if spec.events == "everyone":
            events = events + CellEvents(groups, self._scales, rule, experts=events.experts)
        return events

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
        spec, own = self.spec, self.spec.reference
        if own.kind == "none":
            return None
        if spec.models:
            models = {
                name: self.model(f"model '{name}'", table.kind, table.parameters)
                for name, table in spec.models.items()
            }
            chosen = None if own.kind == AGGREGATE else own.kind
            base: Forecaster = Aggregate(models, self.basis.size, chosen=chosen)
        else:
            base = self.model(f"forecaster.reference '{own.kind}'", own.kind, own.parameters)
        band = BAND if spec.band is None else spec.band
        give_up = 1.0 if spec.give_up is None else spec.give_up
        turns = spec.delay + 1
        return Reference(base, band=band, give_up=give_up, turns=turns, blocks=self.blocks)
