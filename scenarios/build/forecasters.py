"""From the [forecaster] table of a scenario to one forecaster per block."""

from collections.abc import Sequence

from regretless.forecaster.bases import ReducedBasis
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.ensemble_broadcast import EnsembleBroadcast, ensemble_solver
from regretless.forecaster.events.intervals import IntervalEvents
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.minimax.base import PlainSolver
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.minimax.objective import WithObjective
from regretless.forecaster.reference import DEAD_ZONE, TRUST, TRUST_IN_LOSSES, Reference
from regretless.forecaster.turns import TakingTurns
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.scenarios.build.construct import construct
from regretless.scenarios.build.models import OWN, Models
from regretless.scenarios.spec.forecaster import KINDS, ForecasterSpec
from regretless.scenarios.spec.scenario import ScenarioSpec


def make_forecaster(
    scenario: ScenarioSpec,
    basis: Basis,
    groups: Sequence[LossGroup],
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
    spec = scenario.forecaster
    if listener is None and spec.hull == "basis":
        return _of_points(scenario, basis, groups)
    where = f"cohort.{listener}.response 'ensemble'" if listener else "forecaster.hull 'image'"
    if spec.delay or spec.intervals or spec.objective != "none":
        raise UserError(f"{where}: not with delay, intervals or an objective; drop one")
    if spec.reference.kind != "none":
        raise UserError(f"{where}: a reference goes with the box; drop forecaster.reference")
    try:
        solver = ensemble_solver(basis)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error
    if spec.kind == "decision-swap":
        return _of_points(scenario, basis, groups, solver=solver)
    return EnsembleBroadcast(_of_points(scenario, basis, groups), solver)


def _of_points(
    scenario: ScenarioSpec,
    basis: Basis,
    groups: Sequence[LossGroup],
    *,
    solver: PlainSolver | None = None,
) -> Forecaster:
    spec, models, rounds = scenario.forecaster, Models(scenario.data), scenario.rounds
    if spec.kind == "decision-swap":
        return _decision_swap(scenario, basis, groups, solver)
    where = f"forecaster '{spec.kind}'"
    if spec.kind == "calibration":
        for unknown in [key for key in spec.parameters if key != "cells"]:
            known = ["kind", "weights", "cells"]
            raise UserError(f"unknown key 'forecaster.{unknown}'; {closest(unknown, known)}")
        settings = {"weights": spec.weights, "horizon": rounds, "hull": basis.hull}
        recipe: Forecaster = construct(
            where, CalibratedMultiaccurate, groups, **settings, **spec.parameters
        )
        return recipe
    known = [*KINDS, *models.known()]
    if spec.kind not in known:
        raise UserError(f"unknown {where}; {closest(spec.kind, known)}; {OWN}")
    return models.made(where, spec.kind, basis, **spec.parameters)


def _decision_swap(
    scenario: ScenarioSpec, basis: Basis, groups: Sequence[LossGroup], solver: PlainSolver | None
) -> Forecaster:
    spec, models, rounds = scenario.forecaster, Models(scenario.data), scenario.rounds
    for unknown in spec.parameters:
        known = list(ForecasterSpec.model_fields)
        raise UserError(f"unknown key 'forecaster.{unknown}'; {closest(unknown, known)}")
    inside = basis.hull == "simplex" or solver is not None  # predictions in conv s(Y)
    events = _events(spec, basis, groups, inside=inside)
    if spec.reference.kind != "none":
        return _anchored(spec, basis, events, models)
    weights, hull = spec.weights, basis.hull
    if spec.intervals:
        stretches = IntervalEvents(groups, rounds=rounds)
        return UnbiasedPrediction(stretches, weights=weights, hull=hull)
    if spec.delay:
        own = max(rounds // (spec.delay + 1), 1)
        return TakingTurns(
            [
                UnbiasedPrediction(groups, weights=weights, horizon=own, hull=hull)
                for _ in range(spec.delay + 1)
            ]
        )
    solver = solver or cube(basis.size, hull, off_ties=spec.off_ties)
    game = solver if spec.objective == "none" else WithObjective(solver)
    return UnbiasedPrediction(events, weights=weights, horizon=rounds, solver=game)


def _events(
    spec: ForecasterSpec, basis: Basis, groups: Sequence[LossGroup], *, inside: bool
) -> Sequence[LossGroup] | LossEvents:
    if spec.events != "losses":
        return groups
    proved = not isinstance(basis, ReducedBasis)  # whose error is measured
    within = 2 + 4 * basis.error if inside and proved else None
    return LossEvents(groups, within=within, models=len(spec.models or ()))


def _anchored(
    spec: ForecasterSpec, basis: Basis, events: Sequence[LossGroup] | LossEvents, models: Models
) -> Forecaster:
    where = f"forecaster.reference '{spec.reference.kind}'"
    if spec.models:
        base: Forecaster = models.together(spec, basis)
    else:
        base = models.made(where, spec.reference.kind, basis, **spec.reference.parameters)
    zone = DEAD_ZONE if spec.band is None else spec.band
    usual = TRUST_IN_LOSSES if isinstance(events, LossEvents) else TRUST
    trust = usual if spec.give_up is None else spec.give_up
    reference = Reference(base, dead_zone=zone, trust=trust)
    return UnbiasedPrediction(events, hull=basis.hull, reference=reference)
