"""Agents who join after the start: who hears which block, and whom the theorem still covers.

Late cohorts do not shape the broadcast: neither its bases nor the losses that the forecaster
protects know of them. A cohort that joins hears the first block whose basis spans its losses, an
exact basis before others. A late loss is **covered** if it lies within gamma
(``forecaster.events.cover``) of a loss that the forecaster protects for agents with the same
number of actions, the same smoothness and at least the same benchmark policies. Covered agents
play the response of that protected loss, where the forecast is unbiased, at the price of twice the
distance (``forecaster.events.bounds``, "Joining late"); all others respond in the basis with their
own loss, are served as well as the basis allows, and are promised nothing. Scalar events promise
nothing either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from regretless.agents.cohorts.responding import Cohort
from regretless.agents.responses import COMPILED, BestResponse
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.cover import Cover, nearest, paper_gamma
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.basis import Basis
from regretless.market.game.round import Block
from regretless.market.losses import Loss, unique_losses
from regretless.market.model import Guarantee
from regretless.scenarios.build.blocks import Anybody, Seat, exact_for, guarantee
from regretless.scenarios.build.rows import over_stays
from regretless.scenarios.build.rules import told
from regretless.scenarios.spec.cohort import CohortSpec
from regretless.scenarios.spec.scenario import ScenarioSpec

Array = NDArray[np.float64]
Rows = NDArray[np.bool_]
Member = tuple[Anybody, Guarantee]


def check_joins(spec: ScenarioSpec) -> None:
    """Raise UserError if a cohort comes too late or asks for what such agents cannot have."""
    for cohort in spec.cohort:
        key = f"cohort.{cohort.name}"
        there = f"there are {spec.rounds} rounds, from 0"
        if cohort.joins >= spec.rounds:
            raise UserError(f"{key}.joins = {cohort.joins}: {there}; join earlier")
        if not cohort.joins and cohort.gamma is not None:
            raise UserError(f"{key}.gamma: how near losses must be that join late; give joins")
        if cohort.joins and cohort.cover is not None:
            raise UserError(f"{key}.cover: late agents go with protected losses; drop it")
        if cohort.joins and (cohort.basis.kind != "auto" or cohort.basis.parameters):
            raise UserError(f"{key}.basis: late agents hear a basis that is there; drop it")
    if all(cohort.joins for cohort in spec.cohort):
        raise UserError(
            "all cohorts join late; leave joins out of one, the forecast is made for it"
        )


def check_leaving(spec: ScenarioSpec) -> None:
    """Raise UserError if a cohort cannot come and go one by one, or nobody is left."""
    for cohort in spec.cohort:
        key = f"cohort.{cohort.name}"
        for name, rate in {"entry_rate": cohort.entry_rate, "exit_rate": cohort.exit_rate}.items():
            if rate is not None and cohort.response not in register.response:
                cure = "agents with a memory come and go together; use joins and leaves"
                raise UserError(f"{key}.{name} = {rate}: {cure}")
        last = cohort.leaves or spec.rounds
        kept = (c.joins <= last < (c.leaves or spec.rounds) for c in spec.cohort)
        if last < spec.rounds and not any(kept):
            raise UserError(f"{key}.leaves = {last}: no cohort is left in that round; keep one")


def home(name: str, loss: Loss, blocks: Sequence[Block]) -> int:
    """Choose the block that a late cohort hears: exact if possible, else of least certified error.

    Parameters
    ----------
    name : str
        The cohort's.
    loss : stack of losses
    blocks : sequence of Block

    Raises
    ------
    UserError
        If no basis spans the losses.
    """
    loss, _ = unique_losses(loss)
    exact = [i for i, block in enumerate(blocks) if block.basis.error == 0]
    for i in exact:
        if spans(blocks[i].basis, loss):
            return i
    others = [i for i, b in enumerate(blocks) if i not in exact and spans(b.basis, loss)]
    if not others:
        known = ", ".join(block.name for block in blocks)
        raise UserError(
            f"cohort.{name}: no block of the forecast spans its losses (there are: {known}); "
            "drop joins, or let agents with such losses be there from the start"
        )
    if len(others) == 1:
        return others[0]
    return min(others, key=lambda i: blocks[i].basis.certified_error(loss))


def spans(basis: Basis, loss: Loss) -> bool:
    """Whether a basis has coefficients for a stack of losses."""
    try:
        basis.coefficients(loss)
    except ValueError:
        return False
    return True


def admitted(
    late: Sequence[tuple[Seat, CohortSpec]], blocks: Sequence[Block], *, rounds: int
) -> list[Member]:
    """Serve late cohorts through protected losses where that is possible.

    Parameters
    ----------
    late : sequence of (Seat, CohortSpec)
        Those who join late, with their own coefficients.
    blocks : sequence of Block
    rounds : int
        Length of the run, for the default gamma.

    Returns
    -------
    list of (cohort, Guarantee)
        Bounds hold with probability 0.99 for all late agents at once.
    """
    losses = sum(seat.promises for seat, _ in late)
    members: list[Member] = []
    for seat, spec in late:
        cohort, block = seat.cohort, blocks[seat.cohort.block]
        when = "before" if spec.entry_rate is None else "at a rate after"
        note = f"{spec.name}: {spec.count} agents joined {when} round {spec.joins}"
        promised = guarantee(seat, block, losses)  # if they had been there from the start
        cover = protection(cohort, block)
        if promised.label == "none" or cover is None or not isinstance(cohort, Cohort):
            note = "; ".join(filter(None, (note, promised.note)))
            members.append((cohort, Guarantee(note=note)))
            continue
        gamma = spec.gamma or paper_gamma(block.basis.size, rounds)
        at_once = seat.covers()
        covered = (cover.radius <= gamma) & (True if at_once is None else at_once)
        note += f", {covered[cohort.row_of].sum()} within {gamma:.2g} of a protected loss"
        if not covered.any():
            members.append((cohort, Guarantee(note=note)))
            continue
        member = represented(cohort, cover, covered)
        bound = bounded(replace(seat, cohort=member), block, cover, covered, losses=losses)
        members.append((member, Guarantee(promised.label, bound, note, covered)))
    return members


def protection(cohort: Anybody, block: Block) -> Cover | None:
    """Find the nearest protected loss of every row; None where none could stand in for any.

    Only coordinates are unbiased for whoever comes, and only at the prediction itself.
    """
    forecaster = block.forecaster
    if not isinstance(forecaster, UnbiasedPrediction) or not isinstance(cohort, Cohort):
        return None
    if not isinstance(forecaster.events, Events) or not isinstance(cohort.response, COMPILED):
        return None
    if not exact_for(cohort, block):
        return None
    wanted = {"eta": None, "tie": 0.0, "play": None} | told(cohort.response)
    groups = [
        group
        for group in forecaster.events.groups
        if group.offset.shape[1] == cohort.loss.actions
        and all(getattr(group, field) == value for field, value in wanted.items())
        and all(policy in group.policies for policy in cohort.policies)
    ]
    if not groups:
        return None
    return nearest(
        *cohort.coefficients,
        kept_offset=np.concatenate([group.offset for group in groups]),
        kept_weights=np.concatenate([group.weights for group in groups]),
    )


def represented(cohort: Cohort, cover: Cover, covered: Rows) -> Cohort:
    """Give covered rows the coefficients of their protected losses."""
    offset, weights = (table.copy() for table in cohort.coefficients)
    offset[covered] = cover.offset[cover.served[covered]]
    weights[covered] = cover.weights[cover.served[covered]]
    at_prediction = isinstance(cohort.response, BestResponse)
    by_proxy = None if at_prediction else covered & (cover.radius > 0)
    return replace(cohort, coefficients=(offset, weights), by_proxy=by_proxy)


def bounded(
    seat: Seat, block: Block, cover: Cover, covered: Rows, *, losses: int
) -> Callable[[], Array]:
    """Return the bound on the rows' regret over their own rounds (K,); NaN where not covered."""
    forecaster, cohort, stay = block.forecaster, seat.cohort, seat.stay
    assert isinstance(forecaster, UnbiasedPrediction)  # noqa: S101 - protection has looked
    assert isinstance(cohort, Cohort)  # noqa: S101
    assert stay is not None  # noqa: S101 - they join late
    weights, policies = cohort.coefficients[1], len(cohort.policies)

    @cache
    def error() -> float:
        return float(block.basis.certified_error(cohort.loss[np.flatnonzero(covered)]))

    def bound() -> Array:
        bias = forecaster.bias_bound()
        expected = over_stays(bias, weights, stay, policies=policies, losses=losses)
        total = expected + 2 * (cover.radius + error()) + cohort.gap()
        return np.where(covered, total, np.nan)

    return bound
