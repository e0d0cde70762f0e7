"""Agents who join after the start: whom the theorem still covers.

``guarantees`` asks what is promised to a late cohort. Who hears a block that was made for it from
the start (``blocks``) is promised what its stay allows. In a block that is made for others, a late
loss is **covered** if it lies within gamma (``forecaster.events.cover``) of a loss that is
protected by coordinates for agents with as many actions, the same smoothness and at least the same
policies. Covered agents play the response of that loss, at the price of twice the distance
(``forecaster.guarantees``, "Joining late"); all others respond with their own and are promised
nothing.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from regretless.forecaster.events.cover import Cover, nearest
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.market.core.arrays import Mask
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.round import Block
from regretless.scenarios.assembly.cohorts import ServedCohort
from regretless.scenarios.assembly.theorems import (
    Terms,
    exact_for,
    find_guarantee,
    follow_stays,
    promise_to_anybody,
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


def entry_note(spec: CohortSpec) -> str:
    """Say how many agents of a cohort came late, and when."""
    when = "before" if spec.entry_rate is None else "at a rate after"
    return f"{spec.name}: {spec.count} agents entered {when} round {spec.enters}"


def guarantee_in_own_block(served: ServedCohort, block: Block, promises: int) -> Guarantee:
    """Promise a late cohort, for which a block was made from the start, what its stay allows.

    ``promises``: of the whole run, for the union over all of them.
    """
    guarantee = find_guarantee(served, block, promises)
    note = f"{entry_note(served.spec)}, and block {block.name} is made for them from the start"
    players = block.forecaster.instances
    has_listed_losses = bool(players) and not players[0].events.joinable
    covers = guarantee.covers
    if has_listed_losses and covers is not None and not covers.any():
        note += f"; no guarantee, since {REGAINED}"
    if guarantee.note:
        note += f"; {guarantee.note}"
    return replace(guarantee, note=note)


def serve_guest(served: ServedCohort, block: Block, *, promises: int, reach: float) -> ServedCohort:
    """Serve the rows of a late cohort that are within reach of a protected loss through it.

    Returns the cohort with its guarantee; covered rows respond with the coefficients of the losses
    through which they are served. ``promises``: of the whole run, for the union over all of them.
    """
    note = entry_note(served.spec)
    for_anybody = promise_to_anybody(served, block, promises)
    if for_anybody is not None:
        return _with_guarantee(served, for_anybody, f"{note}, and every task is protected")
    from_the_start = find_guarantee(served, block, promises)  # if they had been there
    if from_the_start.label == "none":
        return _with_guarantee(served, Guarantee(), f"{note}; {from_the_start.note}")
    groups, cover = protection(served.cohort, block)
    if cover is None:
        events = block.forecaster.instances[0].events
        reason = UNMATCHED if events.joinable else UNLISTED
        return _with_guarantee(served, Guarantee(), f"{note}; no guarantee, since {reason}")
    covered = cover.radius <= reach
    hears_at_once = served.hears_at_once()
    if hears_at_once is not None:
        covered &= hears_at_once
    n_covered = int(served.cohort.counts[covered].sum())
    note = f"{note}, {n_covered} within {reach:.2g} of a protected loss"
    if not covered.any():
        return _with_guarantee(served, Guarantee(), note)
    served = replace(served, cohort=_through_cover(served.cohort, cover, covered))
    by_cover = replace(served, cover=cover, loss_of_row=None)
    stays = follow_stays(by_cover, block, groups)
    terms = Terms(by_cover, block, groups, promises, covered=covered, stays=stays)
    guarantee = Guarantee(
        label=from_the_start.label,
        bound=terms.bound,
        covers=covered,
        from_variation=terms.from_variation,
        take_note=terms.take_note,
        trusted=terms.trusted,
    )
    return _with_guarantee(served, guarantee, note)


def _with_guarantee(served: ServedCohort, guarantee: Guarantee, note: str) -> ServedCohort:
    return replace(served, guarantee=replace(guarantee, note=note))


def _through_cover(cohort: Any, cover: Cover, covered: Mask) -> Any:
    """Return a cohort whose covered rows (K,) respond as their representatives do."""
    offset, weights = cohort.coefficients
    offset = offset.copy()
    weights = weights.copy()
    offset[covered] = cover.offset[cover.representative_of[covered]]
    weights[covered] = cover.weights[cover.representative_of[covered]]
    by_proxy = None
    if not cohort.response.at_prediction:
        by_proxy = covered & (cover.radius > 0)
    return replace(cohort, coefficients=(offset, weights), by_proxy=by_proxy, expects_own=False)


def protection(cohort: Any, block: Block) -> tuple[list[ProtectedLosses], Cover | None]:
    """Find the protected losses of like actions and rule, and the nearest of them of every row.

    None where none could stand in: only coordinates are unbiased for whoever comes, and only at the
    prediction itself.
    """
    events = block.forecaster.instances[0].events
    response = ProtectedLosses(*cohort.coefficients, **cohort.response.protected()).response
    groups = []
    for group in events.groups:
        has_its_actions = group.offset.shape[1] == cohort.loss.actions
        has_its_policies = all(policy in group.policies for policy in cohort.policies)
        if has_its_actions and group.response == response and has_its_policies:
            groups.append(group)
    can_stand_in = events.joinable and cohort.response.built_in and exact_for(cohort, block)
    if not can_stand_in or not groups:
        return [], None
    kept_offset = np.concatenate([group.offset for group in groups])
    kept_weights = np.concatenate([group.weights for group in groups])
    offset, weights = cohort.coefficients
    return groups, nearest(offset, weights, kept_offset=kept_offset, kept_weights=kept_weights)
