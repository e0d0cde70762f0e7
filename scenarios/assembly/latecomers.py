"""Agents who join after the start: who hears which block, and whom the theorem still covers.

Late cohorts do not shape what others hear. One hears the first block whose basis spans its losses,
an exact one before others. Where no basis does, or the cohort names a basis, has a cover or reports
losses, a block of its own is made for it from the start, as for any other cohort, and its bound
counts from its entry. In a block that is made for others, a late loss is **covered** if it lies
within gamma (``forecaster.events.cover``) of a loss that is protected by coordinates for agents
with as many actions, the same smoothness and at least the same policies. Covered agents play the
response of that loss, at the price of twice the distance (``forecaster.guarantees``, "Joining
late"); all others respond with their own and are promised nothing.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from regretless.forecaster.events.cover import Cover, nearest, paper_gamma
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.round import Block
from regretless.market.losses import unique_losses
from regretless.scenarios.assembly.cohorts import Place, Placement, learner_cohort, seat_of
from regretless.scenarios.assembly.populations import Draft
from regretless.scenarios.assembly.theorems import (
    Member,
    Terms,
    exact_for,
    follow_stays,
    guarantee,
    of_anybody,
)
from regretless.scenarios.config.cohort import CohortSpec

UNMATCHED = (
    "no loss is protected by coordinates for agents with its actions, response rule and policies"
)
UNLISTED = (
    "forecaster.events protects listed losses alone; "
    'events = "coordinates" serves who comes with a loss near one of them'
)

REGAINED = (
    "gains of listed losses may fall before they enter and rise afterwards; "
    'events = "coordinates" bounds what comes after an entry'
)


def latecomers(
    drafts: Sequence[Draft], homes: Mapping[str, Place], blocks: Sequence[Block]
) -> list[Member]:
    """Seat those who join late, and listen, beside a broadcast that does not know of them.

    Bounds hold with probability 0.99 for all late agents at once.
    """
    late = []
    for draft in drafts:
        place = homes[draft.spec.name]
        late.append((seat_of(draft, place), draft.spec, blocks[place.block]))
    losses = sum(seat.promises for seat, _, _ in late)
    members: list[Member] = []
    for seat, spec, block in late:
        reach = spec.gamma or paper_gamma(block.basis.size, homes[spec.name].rounds)
        note = entry_note(spec)
        member, given = served(seat, block, reach=reach, losses=losses)
        members.append((member, replace(given, note=note + given.note)))
    return members


def entry_note(spec: CohortSpec) -> str:
    """Say how many agents of a cohort came late, and when."""
    when = "before" if spec.entry_rate is None else "at a rate after"
    return f"{spec.name}: {spec.count} agents entered {when} round {spec.enters}"


def in_own_block(seat: Placement, spec: CohortSpec, block: Block, losses: int) -> Member:
    """Promise a late cohort, for which a block was made from the start, what its stay allows."""
    given = guarantee(seat, block, losses)
    note = f"{entry_note(spec)}, and block {block.name} is made for them from the start"
    players = block.forecaster.instances
    listed = bool(players) and not players[0].events.joinable
    if listed and given.covers is not None and not given.covers.any():
        note += f"; no guarantee, since {REGAINED}"
    return seat, replace(given, note="; ".join(filter(None, [note, given.note])))


def idle(draft: Draft, root: int, *, rounds: int) -> Member:
    """Seat learners who sit beside a broadcast that is made for others, late or not."""
    spec, cohort = draft.spec, learner_cohort(draft, root, rounds=rounds)
    note = f"{spec.name}: no guarantee, since {cohort.unguided}"
    if spec.enters:
        note = f"{spec.name}: {spec.count} agents entered before round {spec.enters}; {note}"
    seat = Placement(cohort, None, attendance=draft.attendance_of(cohort.row_of))
    return seat, Guarantee(note=note)


def home(draft: Draft, places: Sequence[Place]) -> Place | None:
    """Choose the block that a late cohort hears: exact if possible, else of least certified error.

    None if it needs a block of its own: no basis of the others spans its losses, or it names a
    basis, has a cover or reports, so that something is to be protected for it from the start.
    """
    if draft.spec.basis.given or draft.spec.cover is not None or draft.spec.reports:
        return None
    (loss, _), able = unique_losses(draft.loss), list[Place]()
    for place in places:
        with suppress(ValueError):  # it does not span them
            place.basis.coefficients(loss)
            able.append(place)
    if not able:
        return None
    best = [place for place in able if place.basis.error == 0][:1] or able
    return best[0] if len(best) == 1 else min(best, key=lambda own: own.basis.certified_error(loss))


def served(seat: Placement, block: Block, *, reach: float, losses: int) -> Member:
    """Serve the rows of a late cohort that are within reach of a protected loss through it."""
    if whoever := of_anybody(seat, block, losses):
        return seat, replace(whoever, note=", and every task is protected")
    promised = guarantee(seat, block, losses)  # if they had been there from the start
    if promised.label == "none":
        return seat, Guarantee(note=f"; {promised.note}")
    cohort, events = seat.cohort, block.forecaster.instances[0].events
    groups, cover = protection(cohort, block)
    if cover is None:
        reason = UNMATCHED if events.joinable else UNLISTED
        return seat, Guarantee(note=f"; no guarantee, since {reason}")
    at_once = seat.at_once()
    covered = (cover.radius <= reach) & (True if at_once is None else at_once)
    note = f", {int(cohort.counts[covered].sum())} within {reach:.2g} of a protected loss"
    if not covered.any():
        return seat, Guarantee(note=note)
    offset, weights = (table.copy() for table in cohort.coefficients)  # of what serves each row
    offset[covered] = cover.offset[cover.representative_of[covered]]
    weights[covered] = cover.weights[cover.representative_of[covered]]
    by_proxy = None if cohort.response.at_prediction else covered & (cover.radius > 0)
    through = {"coefficients": (offset, weights), "by_proxy": by_proxy}
    member = replace(cohort, **through, expects_own=False)
    seat = replace(seat, cohort=member)
    alone = replace(seat, cover=cover, kind=None)
    stays = follow_stays(alone, block, groups)
    terms = Terms(alone, block, member, groups, losses, covered=covered, stays=stays)
    return seat, Guarantee(
        promised.label,
        terms.bound,
        note,
        covered,
        from_variation=terms.from_variation,
        trusted=terms.trusted,
    )


def protection(cohort: Any, block: Block) -> tuple[list[ProtectedLosses], Cover | None]:
    """Find the protected losses of like actions and rule, and the nearest of them of every row.

    None where none could stand in: only coordinates are unbiased for whoever comes, and only at the
    prediction itself.
    """
    events = block.forecaster.instances[0].events
    wanted = ProtectedLosses(*cohort.coefficients, **cohort.response.protected()).response
    groups = [
        group
        for group in events.groups
        if group.offset.shape[1] == cohort.loss.actions
        and group.response == wanted
        and all(policy in group.policies for policy in cohort.policies)
    ]
    able = events.joinable and cohort.response.built_in and exact_for(cohort, block)
    if not able or not groups:
        return [], None
    offset, weights = zip(*((group.offset, group.weights) for group in groups), strict=True)
    kept = {"kept_offset": np.concatenate(offset), "kept_weights": np.concatenate(weights)}
    return groups, nearest(*cohort.coefficients, **kept)
