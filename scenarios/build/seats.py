"""Giving a draft its seat: the cohort that plays, and the losses protected on its behalf."""

from __future__ import annotations

from dataclasses import dataclass

from regretless.agents.cohorts.responding import Cohort
from regretless.agents.cohorts.scripted import ScriptedCohort
from regretless.forecaster.events.protected import LossGroup
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.game.basis import Basis
from regretless.market.game.delay import Relay
from regretless.market.kernels.layout import side_by_side
from regretless.market.losses import unique_losses
from regretless.scenarios.build.blocks import Seat, coefficients, covered
from regretless.scenarios.build.construct import construct
from regretless.scenarios.build.drafts import Draft, ledger
from regretless.scenarios.build.learners import learner_cohort, learns
from regretless.scenarios.build.rows import distance_of_rows, split, stay_of_rows
from regretless.scenarios.build.rules import response_of, told


@dataclass(frozen=True, eq=False)
class Place:
    """Where a cohort sits.

    Parameters
    ----------
    root : int
        Root seed.
    rounds : int
        Length of the run.
    block : int
        Which block of the broadcast it hears.
    basis : Basis
        Of that block.
    relay : Relay or None
        Of that block, where there is a network.
    """

    root: int
    rounds: int
    block: int
    basis: Basis
    relay: Relay | None = None


def seat(draft: Draft, place: Place) -> Seat:
    """Seat a cohort, by what its response names."""
    if draft.spec.response in register.response:
        return _trusting(draft, place)
    if learns(draft.spec):
        member = learner_cohort(draft, place.root, rounds=place.rounds, block=place.block)
        told_of = coefficients(draft.spec.name, place.basis, unique_losses(draft.loss)[0])
        return Seat(member, LossGroup(*told_of, draft.policies))
    return _scripted(draft, place)


def _trusting(draft: Draft, place: Place) -> Seat:
    """Seat agents who respond to the forecast."""
    spec = draft.spec
    types, type_of = unique_losses(draft.loss)
    kind, row_of = split(draft, type_of)
    own_coefficients = coefficients(spec.name, place.basis, types)
    cover = None
    if spec.cover is not None:
        cover = covered(spec.cover, own_coefficients, place.rounds)
    protected = own_coefficients if cover is None else (cover.offset, cover.weights)
    own = cover is None or (spec.cover is not None and spec.cover.play == "own")
    rule = response_of(spec, place.basis, types, rounds=place.rounds)
    whole = len(kind) == len(types)  # a row for each loss, in order: nothing to copy
    offset, weights = own_coefficients
    by_kind = own_coefficients if whole else (offset[kind], side_by_side(weights[kind]))
    cohort = Cohort(
        name=spec.name,
        utility=spec.utility,
        block=place.block,
        loss=types if whole else types[kind],
        row_of=row_of,
        coefficients=by_kind if own else protected,
        response=rule,
        ledger=ledger(draft, len(kind)),
        rng=stream(place.root, "cohort", spec.name, "play"),
        policies=draft.policies,
        served=None if own or cover is None else cover.served[kind],
        distance=distance_of_rows(draft, row_of),
        relay=place.relay,
    )
    group = LossGroup(*protected, draft.policies, **told(rule))
    return Seat(cohort, group, cover, kind, stay_of_rows(draft, row_of))


def _scripted(draft: Draft, place: Place) -> Seat:
    """Seat agents with a method of their own."""
    spec = draft.spec
    if spec.response not in register.agent:
        known = [
            *register.response.names(),
            *register.learner.names(),
            *register.agent.names(),
        ]
        raise UserError(
            f"cohort.{spec.name}.response: unknown '{spec.response}'; "
            f"{closest(spec.response, known)}; a name of your own needs --import MODULE"
        )
    agent = register.agent[spec.response]
    players = [
        construct(
            f"agent '{spec.response}'",
            agent,
            draft.loss[i],
            stream(place.root, "cohort", spec.name, "agent", str(i)),
        )
        for i in range(spec.count)
    ]
    cohort = ScriptedCohort(
        name=spec.name,
        utility=spec.utility,
        rule=spec.response,
        block=place.block,
        loss=draft.loss,
        agents=players,
        ledger=ledger(draft, spec.count),
        policies=draft.policies,
        distance=draft.distance,
        relay=place.relay,
    )
    told_of = coefficients(spec.name, place.basis, draft.loss)
    return Seat(cohort, LossGroup(*told_of, draft.policies))
