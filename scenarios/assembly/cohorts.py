"""Giving a draft its seat: the block that it hears, the cohort that plays, and who is protected.

Cohorts whose losses live in the same basis share a **block** of the broadcast. Learners do not
listen, shape the broadcast or have promises. Where nobody else is there from the start, the
forecast is made for their losses all the same, as if they trusted it: a forecaster needs losses to
protect, and adversaries that answer to the forecast need one. Learners with full information and
equal losses share a row, unless all agents are to be apart; a bandit, told its own draw alone, has
one.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.agents.cohorts.responding import PrivateCohort, RespondingCohort
from regretless.agents.cohorts.scripted_agents import CrowdCohort, ScriptedCohort, ScriptedCrowd
from regretless.agents.learners import LearnersByStay, RowLearner
from regretless.agents.responses import BUILT_IN, Checked, Response
from regretless.forecaster.bases.default import natural_kind, variant
from regretless.forecaster.events.cover import Cover, clustered, paper_gamma, snapped
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.guarantees.norms import recommended_eta
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.core.randomness import stream
from regretless.market.game.attendance import ALWAYS, Attendance
from regretless.market.game.network import DelayedForecasts, Network
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis
from regretless.market.numerics.storage import in_layout
from regretless.scenarios.assembly.construct import construct, drawn_values, offering
from regretless.scenarios.assembly.populations import Draft, first_of
from regretless.scenarios.config.cohort import AnyCoverSpec, ClusterSpec, CohortSpec


class Place(NamedTuple):
    """A block of the broadcast, in which cohorts sit, and its relay in a network."""

    root: int
    rounds: int
    block: int
    name: str
    basis: Basis
    relay: DelayedForecasts | None


def layout(
    drafts: Sequence[Draft],
    root: int,
    rounds: int,
    network: Network | None,
    *,
    existing: Sequence[Place] = (),
) -> list[tuple[Draft, Place]]:
    """Put cohorts whose losses live in the same basis into one block.

    The blocks are new. They are numbered after the ``existing`` ones and have other names.
    """
    groups: dict[tuple[Any, ...], list[Draft]] = {}
    for draft in drafts:
        wish = draft.spec.basis
        kind = natural_kind(draft.declared) if wish.kind == "auto" else wish.kind
        key = kind, variant(kind, draft.declared), repr(sorted(wish.parameters.items()))
        groups.setdefault(key, []).append(draft)
    kinds, sits = [key[0] for key in groups], dict[str, Place]()
    taken_names = {place.name for place in existing}
    for at, (kind, own) in enumerate(zip(kinds, groups.values(), strict=True)):
        name = kind if kinds.count(kind) == 1 else f"{kind}-{1 + kinds[:at].count(kind)}"
        if existing:
            name = _new_name(kind, taken_names)
        taken_names.add(name)
        losses = [draft.declared for draft in own]
        losses += [draft.loss for draft in own if draft.reported is not None]
        given, where = own[0].spec.basis.parameters, f"cohort.{own[0].spec.name}.basis"
        if kind not in register.basis:
            known = closest(kind, ["auto", *register.basis.names()])
            raise UserError(f"{where}: unknown basis '{kind}'; {known}")
        if isinstance(error := given.get("error"), int | float) and error <= 0:
            raise UserError(f"{where}: error = {error!r}; give a positive number")
        basis: Basis = construct(f"{where} '{kind}'", register.basis[kind], losses, **given)
        relay = None if network is None else network.relay(basis)
        block = len(existing) + at
        sits |= {one.spec.name: Place(root, rounds, block, name, basis, relay) for one in own}
    return [(draft, sits[draft.spec.name]) for draft in drafts]


def _new_name(kind: str, taken_names: Container[str]) -> str:
    """Return the kind of a basis as the name of a block, numbered from 2 if it is taken."""
    if kind not in taken_names:
        return kind
    return next(f"{kind}-{i}" for i in count(2) if f"{kind}-{i}" not in taken_names)


def coefficients(name: str, basis: Basis, loss: Loss) -> tuple[Array, Array]:
    """Return a cohort's coefficients; UserError where the basis does not span its losses."""
    try:
        offset, weights = basis.coefficients(loss)
    except ValueError as reason:
        raise UserError(
            f"cohort.{name}.basis: {reason}; leave the basis out for the default"
        ) from reason
    return offset, in_layout(weights)


RULE = ("name", "hears_label", "lipschitz", "gap", "predicted", "play")  # must offer


@dataclass(frozen=True, eq=False)
class Placement:
    """A cohort in the game, and what the forecaster promises it."""

    cohort: Any
    group: ProtectedLosses | None  # what is protected on its behalf; None where nothing is
    cover: Cover | None = None  # how its losses are served through fewer
    kind: NDArray[np.intp] | None = None  # (K,) distinct loss of each row; None for its own
    attendance: Attendance = ALWAYS  # of each row
    lies: bool = False  # whether some of its agents report other losses than their own

    @property
    def promises(self) -> int:
        """How many events a promise to all rows is about: distinct losses, stays and draws."""
        rows = len(self.cohort.loss)
        if self.kind is None or not self.attendance.throughout or self.cohort.private:
            return rows
        return int(self.kind.max()) + 1

    @property
    def lines(self) -> NDArray[np.intp] | slice:
        """The line of the group's losses through which each row is served."""
        lines = slice(None) if self.kind is None else self.kind
        return lines if self.cover is None else self.cover.representative_of[lines]

    def at_once(self) -> NDArray[np.bool_] | None:
        """Return the rows that hear every forecast at once (K,); None for all."""
        distance = self.cohort.distance
        return None if distance is None else np.asarray(distance == 0)


def seat_of(draft: Draft, place: Place) -> Placement:
    """Seat a cohort for whom a forecast is made, by what its response names."""
    if draft.spec.response in register.response:
        return _responding(draft, place)
    if not draft.spec.learns:
        return _scripted(draft, place)
    member = learner_cohort(draft, place.root, rounds=place.rounds, block=place.block)
    types, type_of = unique_losses(draft.loss)
    group = ProtectedLosses(*coefficients(draft.spec.name, place.basis, types), draft.policies)
    kind = type_of[first_of(member.row_of)] if len(member.loss) > len(types) else None
    return Placement(member, group, kind=kind, attendance=draft.attendance_of(member.row_of))


def _responding(draft: Draft, place: Place) -> Placement:
    spec = draft.spec
    types, type_of = unique_losses(draft.declared)
    kind, row_of = draft.split(type_of)
    own = coefficients(spec.name, place.basis, types)
    cover = None if spec.cover is None else covered(spec.cover, own, place.rounds)
    protected = own if cover is None else (cover.offset, cover.weights)
    by_proxy = cover if spec.cover is not None and spec.cover.play != "own" else None
    rule = response_of(spec, place.basis, types, rounds=place.rounds)
    said, by_kind = types, own
    if len(kind) != len(types):  # else there is a row for each loss, in order: nothing to copy
        said, by_kind = types[kind], (own[0][kind], in_layout(own[1][kind]))
    loss = said if draft.reported is None else draft.loss[first_of(row_of)]
    if draft.reported is not None and spec.acts_on == "truth":
        said, by_kind = loss, coefficients(spec.name, place.basis, loss)
    multiplicity = None
    if draft.multiplicity is not None:
        multiplicity = np.bincount(row_of, draft.multiplicity).astype(np.intp)
    alone = spec.draws_alone
    cohort = (PrivateCohort if alone else RespondingCohort)(
        name=spec.name,
        utility=spec.utility,
        block=place.block,
        loss=loss,
        row_of=row_of if multiplicity is None else np.arange(len(kind)),
        coefficients=by_kind if by_proxy is None else protected,
        response=rule,
        ledger=draft.ledger(len(kind)),
        rng=stream(place.root, "referee" if alone else "cohort", spec.name, "play"),
        policies=draft.policies,
        representative_of=None if by_proxy is None else by_proxy.representative_of[kind],
        distance=None if draft.distance is None else draft.distance[first_of(row_of)],
        relay=place.relay,
        acts_on=said,
        multiplicity=multiplicity,
        expects_own=said is loss and by_proxy is None,
    )
    group = ProtectedLosses(*protected, draft.policies, **rule.protected())
    lies, attendance = draft.reported is not None, draft.attendance_of(row_of)
    return Placement(cohort, group, cover, kind, attendance, lies=lies)


def _scripted(draft: Draft, place: Place) -> Placement:
    """Seat a cohort of the user's class, each agent with its own settings and stream."""
    spec, at, root = draft.spec, f"cohort.{draft.spec.name}.settings", place.root
    maker, where = register.agent[spec.response], f"agent '{spec.response}'"
    rng = stream(root, "cohort", spec.name, "settings")
    drawn = {k: drawn_values(f"{at}.{k}", v, rng, spec.count) for k, v in spec.settings.items()}
    kind, agents = ScriptedCohort, list[Any]()
    if isinstance(maker, type) and issubclass(maker, ScriptedCrowd):
        own, kind = stream(root, "cohort", spec.name, "agents"), CrowdCohort
        agents.append(offering(where, construct(where, maker, draft.loss, own, **drawn), ("rng",)))
    for i in range(spec.count if kind is ScriptedCohort else 0):
        own = stream(root, "cohort", spec.name, "agent", str(i))
        mine = {k: v[i].item() if isinstance(v, np.ndarray) else v for k, v in drawn.items()}
        agent = construct(where, maker, draft.loss[i], own, **mine)
        agents.append(offering(where, agent, ("rng", "act", "learn")))
    cohort = kind(
        name=spec.name,
        utility=spec.utility,
        rule=spec.response,
        block=place.block,
        loss=draft.loss,
        agents=agents,
        ledger=draft.ledger(spec.count),
        policies=draft.policies,
        distance=draft.distance,
        relay=place.relay,
    )
    protected = coefficients(spec.name, place.basis, draft.declared)
    cover = None
    if spec.cover is not None:
        cover = covered(spec.cover, protected, place.rounds)
        protected = cover.offset, cover.weights
    group = ProtectedLosses(*protected, draft.public)
    return Placement(
        cohort,
        group,
        cover,
        attendance=draft.attendance_of(cohort.row_of),
        lies=draft.reported is not None,
    )


def covered(spec: AnyCoverSpec, own: tuple[Array, Array], rounds: int) -> Cover:
    """Return the cover of a cohort's coefficients that its file asks for."""
    if isinstance(spec, ClusterSpec):
        return clustered(*own, radius=spec.radius or 0.0, count=spec.count)
    return snapped(*own, gamma=spec.gamma or paper_gamma(own[1].shape[-1], rounds))


def response_of(spec: CohortSpec, basis: Basis, losses: Loss, *, rounds: int) -> Response:
    """Make a cohort's response rule; the error of its block's basis sets a recommended eta."""
    eta = spec.eta
    if eta == "recommended":
        error = 0.0 if basis.hull == "simplex" else float(basis.certified_error(losses))
        eta = recommended_eta(spec.actions, error=error, rounds=rounds)
    given = {} if eta is None else {"eta": eta}
    where = f"response '{spec.response}' of cohort.{spec.name}"
    made = construct(where, register.response[spec.response], **given)
    rule = offering(where, made, RULE)
    if type(rule) in BUILT_IN:
        return rule  # type: ignore[no-any-return]
    if isinstance(rule, BUILT_IN) and rule.hears_ensemble:
        raise UserError(f"{where}: a rule of your own hears no ensembles; use BestResponse's table")
    return Checked(rule)


def learner_cohort(draft: Draft, root: int, *, rounds: int, block: int = 0) -> LearnerCohort:
    """Seat learners, who tune themselves to the part of the rounds in which they are there."""
    spec, maker = draft.spec, register.learner[draft.spec.response]
    where = f"cohort.{spec.name}.settings of learner '{spec.response}'"
    types, row_of = unique_losses(draft.loss)
    try:
        learner = construct(where, maker, **spec.settings)
        if not isinstance(learner, RowLearner):
            told = f"learner '{spec.response}' is no learner; inherit from RowLearner"
            raise UserError(told)  # noqa: TRY301 - the rest is told below
        offering(f"learner '{spec.response}'", learner, ("name",))
        has_own_stays = spec.entry_rate is not None or spec.exit_rate is not None
        if learner.bandit or spec.budget_constraint or draft.apart:
            types, row_of = draft.loss, np.arange(spec.count)
        elif has_own_stays:  # who has learned for as long, and lost the same, shares a row
            type_of_row, row_of = draft.split(row_of)
            types = types[type_of_row]
        if has_own_stays:
            stays = draft.attendance_of(row_of)
            learner = LearnersByStay(learner, entered=stays.entered, left=stays.left)
        return LearnerCohort(
            name=spec.name,
            utility=spec.utility,
            block=block,
            loss=types,
            row_of=row_of,
            learner=learner,
            ledger=draft.ledger(len(types)),
            rng=stream(root, "cohort", spec.name, "play"),
            policies=draft.policies,
            horizon=(spec.exits or rounds) - spec.enters,
        )
    except UserError as error:
        known = str(error).startswith((where, "learner"))
        raise UserError(str(error) if known else f"{where}: {error}") from error
