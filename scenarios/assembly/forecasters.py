"""From the [forecaster] table of a scenario to one forecaster per block.

``make_blocks`` is a step of ``build``: it gives planned blocks their forecasters. Events are made
with their rule of weights, and wrapped by intervals; a solver knows the hull, and may have an
objective; a reference is a model, or what several have in common. A delay makes one forecaster per
turn of all this, and the calibrated baseline announces another's predictions. Any of them goes with
any other; where no theorem covers what comes out, nothing is promised.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from regretless.forecaster.bases.indicators import WithIndicators
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.coverage import AnnouncedQuantiles
from regretless.forecaster.delayed import Delayed
from regretless.forecaster.ensemble import EnsembleBroadcast
from regretless.forecaster.events.base import EventSet, Intervals
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import Assignments, GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.events.quantile_grid import QuantileGrid
from regretless.forecaster.guarantees.draws import ASSIGNED
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.minimax.game import HullSolver
from regretless.forecaster.minimax.image import Image, ensemble_solver
from regretless.forecaster.models.aggregate import Aggregate
from regretless.forecaster.models.late_model import LateModel
from regretless.forecaster.no_forecast import NoForecast
from regretless.forecaster.quantile_forecaster import QuantileForecaster
from regretless.forecaster.reference import BAND, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.forecaster.universal import CellEvents, Line, scales_for
from regretless.forecaster.weights import rule_of
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Forecaster
from regretless.market.game.round import Block
from regretless.market.losses.basis import Basis
from regretless.market.losses.outcome_spaces import Box as OutcomeBox
from regretless.scenarios.assembly.blocks import BlockPlan
from regretless.scenarios.assembly.cohorts import ServedCohort
from regretless.scenarios.assembly.construct import construct
from regretless.scenarios.assembly.models import SharedModels, make_model
from regretless.scenarios.assembly.resolved import ResolvedScenario
from regretless.scenarios.config.forecaster import AGGREGATE, KINDS, ForecasterSpec
from regretless.scenarios.config.reasons import CURVED


def make_blocks(
    plans: Sequence[BlockPlan], cohorts: Sequence[ServedCohort], scenario: ResolvedScenario
) -> list[Block]:
    """Give the planned blocks their forecasters, which share their models of the outcome.

    ``cohorts`` are those of the whole market. UserError if a parameter does not fit.
    """
    shared_models = SharedModels(has_several_blocks=len(plans) > 1)
    return [
        _make_block(plan, cohorts, scenario, n_blocks=len(plans), shared_models=shared_models)
        for plan in plans
    ]


def _make_block(
    plan: BlockPlan,
    cohorts: Sequence[ServedCohort],
    scenario: ResolvedScenario,
    *,
    n_blocks: int,
    shared_models: SharedModels,
) -> Block:
    """Give one of so many planned blocks its forecaster.

    It protects the losses of those ``cohorts`` whom the block serves. UserError if a parameter of
    it does not fit.
    """
    by_name = {served.spec.name: served for served in cohorts}
    protected = []
    listener = None  # the first cohort that hears ensembles
    for name in (*plan.served, *plan.guests):
        served = by_name[name]
        if scenario.spec.forecaster.kind == "none" and not served.cohort.unguided:
            raise UserError(
                f"forecaster.kind 'none': agents of cohort.{name} respond to a forecast; give them "
                "a learner as response, or choose another kind"
            )
        if name in plan.served and served.protected is not None:
            protected.append(served.protected)
        if served.cohort.hears_ensemble and listener is None:
            listener = name
    maker = _ForecasterMaker(scenario, plan.basis, listener, n_blocks, shared_models)
    if plan.grid is not None:
        return Block(plan.name, plan.basis, maker.make_announcer(plan.grid), plan.relay)
    return Block(plan.name, plan.basis, maker.make(protected), plan.relay)


@dataclass(frozen=True)
class _ForecasterMaker:
    """What the forecaster of a block is put together from."""

    scenario: ResolvedScenario
    basis: Basis
    listener: str | None  # a cohort that listens to ensembles; None where points are enough
    n_blocks: int  # of the run
    shared_models: SharedModels  # with one another, and with those of other blocks

    @property
    def spec(self) -> ForecasterSpec:
        return self.scenario.spec.forecaster

    @property
    def rounds_per_turn(self) -> int:
        """How many rounds every turn of a delayed forecaster has, at most."""
        turns = self.spec.delay + 1
        rounded_up = -(-self.scenario.rounds // turns)
        return max(rounded_up, 1)

    @property
    def has_ensembles(self) -> bool:
        """Whether predictions come with their ensembles."""
        return self.listener is not None or self.spec.hull == "image"

    def make(self, protected: Sequence[ProtectedLosses]) -> Forecaster:
        """Make the forecaster that protects these losses; UserError if a parameter does not fit."""
        spec = self.spec
        if spec.kind == "none":
            return NoForecast(self.basis.size)
        if spec.kind == "decision-swap":
            return self._make_unbiased(protected, basis=self.basis)
        where = f"forecaster '{spec.kind}'"
        if spec.kind == "calibration":
            calibrated: Forecaster = construct(
                where,
                CalibratedMultiaccurate,
                protected,
                make=self._make_unbiased,
                **spec.parameters,
            )
            return self._with_ensembles(calibrated)
        model = self._make_model(where, spec.kind, spec.parameters, other_kinds=KINDS)
        if spec.delay:
            model = LateModel(model, spec.delay)
        return self._with_ensembles(model)

    def make_announcer(self, grid: QuantileGrid) -> Forecaster:
        """Make the forecaster that announces quantiles, one for each turn where outcomes are late.

        It has the models, the rule of weights and the delay of the others. Its events are of the
        whole run, its predictions means of outcomes where the basis knows what means there are.
        """
        spec = self.spec
        assert isinstance(self.basis, WithIndicators)  # noqa: S101 - as it was planned
        unit_cube = OutcomeBox(np.zeros(grid.outcomes), np.ones(grid.outcomes))
        announced = AnnouncedQuantiles(grid, self.basis, unit_cube)
        reference = self._make_reference()

        def make_turn() -> QuantileForecaster:
            try:
                solver: HullSolver = Image(self.basis.support())
            except ValueError:  # it does not know them
                solver = cube(self.basis.size, self.basis.hull)
            rule = rule_of(spec.weights, self.rounds_per_turn)
            return QuantileForecaster(announced, solver, reference, rule=rule)

        return Delayed(make_turn, spec.delay) if spec.delay else make_turn()

    def _with_ensembles(self, baseline: Forecaster) -> Forecaster:
        """Let a baseline announce its predictions with ensembles where somebody listens to them."""
        if not self.has_ensembles:
            return baseline
        return EnsembleBroadcast(baseline, self._make_solver())

    def _make_model(
        self, where: str, kind: str, parameters: dict[str, Any], other_kinds: Iterable[str] = ()
    ) -> Forecaster:
        """Make a model that predicts s(y); ``other_kinds`` could be meant by an unknown kind."""
        model = make_model(
            self.scenario.spec,
            self.basis,
            kind,
            parameters,
            where=where,
            other_kinds=other_kinds,
        )
        return self.shared_models.in_basis(model, self.basis, kind, parameters)

    def _make_unbiased(
        self, protected: Sequence[ProtectedLosses], *, basis: Basis | None = None
    ) -> Forecaster:
        """Put a forecaster together, one for each turn where outcomes are late.

        With a ``basis`` it labels its own mixtures, which are then broadcast as they are.
        """
        spec = self.spec
        reference = self._make_reference()
        make_events = partial(self._make_events, protected)

        def make_turn() -> UnbiasedPrediction:
            if spec.intervals:
                events: EventSet = Intervals(make_events, rounds=self.rounds_per_turn)
            else:
                events = make_events()
            solver = self._make_solver()
            solver.preferring = spec.objective != "none"
            return UnbiasedPrediction(events, solver, reference, basis=basis)

        return Delayed(make_turn, spec.delay) if spec.delay else make_turn()

    def _make_events(self, protected: Sequence[ProtectedLosses]) -> EventSet:
        """Make the events of a run: models are comparators beside coordinates and among gains."""
        spec = self.spec
        turns = spec.delay + 1
        rule = rule_of(spec.weights, self.rounds_per_turn)
        n_models = len(spec.models or ())
        if spec.events == "losses":
            is_in_image = self.basis.hull == "simplex" or self.has_ensembles  # p in conv s(Y)
            within = None
            greatest_regret = None
            if self.basis.proved:  # losses stay in [-error, 1 + error] in the basis
                greatest_regret = 1 + 2 * self.basis.error
                if is_in_image:
                    within = 2 * greatest_regret
            if rule.name != "adaptive" or spec.kind != "decision-swap":
                return GainEvents(
                    protected,
                    rule,
                    within=within,
                    greatest_regret=greatest_regret,
                    models=n_models,
                )
            draws_alone = any(cohort.response == "private" for cohort in self.scenario.cohorts)
            risk = None
            if not draws_alone and not spec.intervals:  # all agents have the draw in common
                risk = ASSIGNED / (turns * self.n_blocks)  # the bounds of all hold at once
            return Assignments(
                protected,
                rule,
                risk=risk,
                within=within,
                greatest_regret=greatest_regret,
                models=n_models,
            )
        events: EventSet = VectorEvents(protected, rule)
        if n_models:
            events = events + GainEvents(protected, rule, models=n_models, fixed=False)
        if spec.events == "everyone":
            events = events + CellEvents(protected, self._scales, rule, experts=events.experts)
        return events

    @property
    def _scales(self) -> int:
        """Of cells of the one number that is predicted; UserError where there are more."""
        if self.basis.size == 1 and (self.basis.convex_image or not self.has_ensembles):
            return scales_for(self.rounds_per_turn)
        raise UserError(
            f"forecaster.events 'everyone' {CURVED}; here a forecast "
            f'has {self.basis.size}, or curved ensembles: use events = "coordinates"'
        )

    def _make_solver(self) -> HullSolver:
        """Make the solver over the basis's own hull, or over conv s(Y) with ensembles."""
        off_ties = self.spec.off_ties
        if self.spec.events == "everyone":
            outcomes_at_ends = None
            if self.has_ensembles:
                outcomes_at_ends = self.basis.inverse(np.array([[0.0], [1.0]]))
            return Line(self._scales, off_ties=off_ties, ends=outcomes_at_ends)
        if not self.has_ensembles:
            return cube(self.basis.size, self.basis.hull, off_ties=off_ties)
        try:
            return ensemble_solver(self.basis, off_ties=off_ties)
        except ValueError as error:
            where = "forecaster.hull 'image'"
            if self.listener:
                where = f"cohort.{self.listener}.response 'ensemble'"
            raise UserError(f"{where}: {error}") from error

    def _make_reference(self) -> Reference | None:
        """Make the model whose forecast is kept where it is good; None without one."""
        spec = self.spec
        kind = spec.reference.kind
        if kind == "none":
            return None
        if spec.models:
            models = {}
            for name, table in spec.models.items():
                models[name] = self._make_model(f"model '{name}'", table.kind, table.parameters)
            chosen = None if kind == AGGREGATE else kind
            model: Forecaster = Aggregate(models, self.basis.size, chosen=chosen)
        else:
            where = f"forecaster.reference '{kind}'"
            model = self._make_model(where, kind, spec.reference.parameters)
        return Reference(
            model,
            band=BAND if spec.band is None else spec.band,
            give_up=1.0 if spec.give_up is None else spec.give_up,
            turns=spec.delay + 1,
            blocks=self.n_blocks,
        )
