"""Agents who join after the start: who hears which block, and whom the theorem still covers.

Late cohorts do not shape the broadcast. One hears the first block whose basis spans its losses, an
exact one before others. A late loss is **covered** if it lies within gamma
(``forecaster.events.cover``) of a loss that is protected by coordinates for agents with as many
actions, the same smoothness and at least the same policies. Covered agents play the response of
that loss, at the price of twice the distance (``forecaster.events.bounds``, "Joining late"); all
others respond with their own and are promised nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from regretless.forecaster.events.base import AnyEvents
from regretless.forecaster.events.cover import Cover, nearest, paper_gamma
from regretless.forecaster.events.protected import ProtectedLosses
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.round import Block
from regretless.market.losses import Loss, unique_losses
from regretless.market.losses.basis import Basis
from regretless.scenarios.assembly.cohorts import Layout, Place, Placement, learner_cohort, seat_of
from regretless.scenarios.assembly.guarantees import Member, Terms, exact_for, guarantee, of_anybody
from regretless.scenarios.assembly.populations import Draft
from regretless.scenarios.config import reasons

UNMATCHED = (
    "no loss is protected by coordinates for agents with its actions, response rule and policies"
)
UNLISTED = (
    "forecaster.events protects listed losses alone; "
    'events = "coordinates" serves who comes with a loss near one of them'
)


def latecomers(
    drafts: Sequence[Draft],
    blocks: Sequence[Block],
    homes: Mapping[str, int],
    *,
    root: int,
    rounds: int,
) -> list[Member]:
    """Seat those who join late beside a broadcast that does not know of them.

    Bounds hold with probability 0.99 for all late agents at once.
    """
    late = []
    for draft in drafts:
        if not draft.spec.learns:
            at = homes[draft.spec.name]
            place = Place(root, rounds, at, blocks[at].basis, blocks[at].relay)
            late.append((seat_of(draft, place), draft.spec))
    losses = sum(seat.promises for seat, _ in late)
    members: list[Member] = []
    for seat, spec in late:
        block = blocks[seat.cohort.block]
        promised = guarantee(seat, block, losses)  # if they had been there from the start
        reach = spec.gamma or paper_gamma(block.basis.size, rounds)
        when = "before" if spec.entry_rate is None else "at a rate after"
        note = f"{spec.name}: {spec.count} agents entered {when} round {spec.enters}"
        member, given = served(seat, block, promised, reach=reach, losses=losses)
        members.append((member, replace(given, note=note + given.note)))
    return members + [idle(draft, root, rounds=rounds) for draft in drafts if draft.spec.learns]


def idle(draft: Draft, root: int, *, rounds: int) -> Member:
    """Seat learners who sit beside a broadcast that is made for others, late or not."""
    spec, cohort = draft.spec, learner_cohort(draft, root, rounds=rounds)
    note = f"{spec.name}: no guarantee, since {cohort.unguided}"
    if spec.enters:
        note = f"{spec.name}: {spec.count} agents entered before round {spec.enters}; {note}"
    seat = Placement(cohort, None, attendance=draft.attendance_of(cohort.row_of))
    return seat, Guarantee(note=note)


def home(draft: Draft, plan: Layout) -> int:
    """Choose the block that a late cohort hears: exact if possible, else of least certified error.

    UserError if no basis spans the losses.
    """
    loss, _ = unique_losses(draft.loss)
    able = [i for i, basis in enumerate(plan.bases) if spans(basis, loss)]
    for i in able:
        if plan.bases[i].error == 0:
            return i
    if not able:
        known = ", ".join(plan.names)
        raise UserError(
            f"cohort.{draft.spec.name}: {reasons.UNSPANNED} (there are: {known}); "
            "drop enters, or let agents with such losses be there from the start"
        )
    errors = [plan.bases[i].certified_error(loss) for i in able] if len(able) > 1 else [0.0]
    return able[int(np.argmin(errors))]


def spans(basis: Basis, loss: Loss) -> bool:
    """Whether a basis has coefficients for a stack of losses."""
    try:
        basis.coefficients(loss)
    except ValueError:
        return False
    return True


def served(
    seat: Placement, block: Block, promised: Guarantee, *, reach: float, losses: int
) -> Member:
    """Serve the rows of a late cohort that are within reach of a protected loss through it."""
    whoever = of_anybody(seat, block, losses)
    if whoever:
        return seat, replace(whoever, note=", and every task is protected")
    if promised.label == "none":
        return seat, Guarantee(note=f"; {promised.note}")
    cohort = seat.cohort
    events = block.forecaster.instances[0].events
    if (cover := protection(cohort, block)) is None:
        reason = UNMATCHED if events.joinable else UNLISTED
        return seat, Guarantee(note=f"; no guarantee, since {reason}")
    at_once = seat.at_once()
    covered = (cover.radius <= reach) & (True if at_once is None else at_once)
    note = f", {int(cohort.counts[covered].sum())} within {reach:.2g} of a protected loss"
    if not covered.any():
        return seat, Guarantee(note=note)
    member = represented(cohort, cover, covered)
    seat, group = replace(seat, cohort=member), _listed(kin(cohort, events))
    through = replace(seat, cover=cover, kind=None)
    terms = LateTerms(through, block, member, group, losses, covered=covered)
    known = terms.from_variation
    return seat, Guarantee(promised.label, terms.bound, note, covered, from_variation=known)


def protection(cohort: Any, block: Block) -> Cover | None:
    """Find the nearest protected loss of every row of responders; None where none could stand in.

    Only coordinates are unbiased for whoever comes, and only at the prediction itself.
    """
    events = block.forecaster.instances[0].events
    able = events.joinable and cohort.response.built_in and exact_for(cohort, block)
    if not able or not (groups := kin(cohort, events)):
        return None
    kept = _listed(groups)
    return nearest(*cohort.coefficients, kept_offset=kept.offset, kept_weights=kept.weights)


def _listed(groups: Sequence[ProtectedLosses]) -> ProtectedLosses:
    offsets, weights = zip(*((group.offset, group.weights) for group in groups), strict=True)
    return ProtectedLosses(np.concatenate(offsets), np.concatenate(weights))


def kin(cohort: Any, events: AnyEvents) -> list[ProtectedLosses]:
    """Return the protected losses whose owners have a cohort's actions, rule and policies."""
    wanted = ProtectedLosses(*cohort.coefficients, **cohort.response.protected()).response
    return [
        group
        for group in events.groups
        if group.offset.shape[1] == cohort.loss.actions
        and group.response == wanted
        and all(policy in group.policies for policy in cohort.policies)
    ]


def represented(cohort: Any, cover: Cover, covered: Mask) -> Any:
    """Give covered rows the coefficients of their protected losses."""
    offset, weights = (table.copy() for table in cohort.coefficients)
    offset[covered] = cover.offset[cover.representative_of[covered]]
    weights[covered] = cover.weights[cover.representative_of[covered]]
    by_proxy = None if cohort.response.at_prediction else covered & (cover.radius > 0)
    through = {"coefficients": (offset, weights), "by_proxy": by_proxy}
    return replace(cohort, **through, expects_own=False)


@dataclass(frozen=True, eq=False)
class LateTerms(Terms):
    """Those of a late cohort that is served through losses of others; NaN where it is not."""

    covered: Mask = field(kw_only=True)

    def bound(self) -> Array:
        """Bound the rows' regret per round over their own rounds (K,) by the theorem."""
        return np.where(self.covered, super().bound(), np.nan)

    def _varied(self, player: UnbiasedPrediction, *, stays: bool) -> Array:
        groups = kin(self.cohort, player.events)
        return np.concatenate([player.from_variation(group, stays=stays) for group in groups])

    def _spread(self, player: UnbiasedPrediction, *, fixed: bool) -> Array:
        groups = kin(self.cohort, player.events)
        return np.concatenate([player.draws.of(own, fixed=fixed) for own in groups], axis=-1)

    @cached_property
    def _apart(self) -> Array:
        assert self.seat.cover is not None  # noqa: S101 - it is how they are served
        loss = self.cohort.loss[np.flatnonzero(self.covered)]
        return np.asarray(self.block.basis.certified_error(loss) + self.seat.cover.radius)
