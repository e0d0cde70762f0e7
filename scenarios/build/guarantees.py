"""What is promised to whom: the theorem that covers a cohort and its bound, or ``none``.

What the theorem says of a whole run is said of the rounds of each row's stay: with R(t) the bound
on regret per round after t rounds,

    (left - entered) x regret over entered..left-1  <=  left R(left) + entered R(entered)

(``forecaster.events.bounds``, "Joining late"). R is taken with the solver's slack so far, which
only grows, so that the bound of an agent that has left stays valid without any record of that
round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from regretless.agents.cohorts.responding import Cohort
from regretless.agents.responses import ExpectedLoss
from regretless.forecaster.anchored import AnchoredPrediction
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.ensemble_broadcast import has_ensembles
from regretless.forecaster.events.bounds import BiasBound, GainBound, draw_term, regret_since
from regretless.forecaster.events.protected import best_responses, rows_of
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Indices
from regretless.market.core.errors import UserError
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.presence import Stay
from regretless.market.game.round import Block
from regretless.market.regret.followed import Followed
from regretless.scenarios.build.cohorts import Anybody, Seat

Array = NDArray[np.float64]
Member = tuple[Seat, Guarantee]


def guarantee(seat: Seat, block: Block, losses: int) -> Guarantee:
    """Say which theorem covers a cohort, with its bound; ``none`` where none does.

    Parameters
    ----------
    losses : int
        Promises of the whole run, for the union over all of them.
    """
    forecaster, cohort, group, cover = block.forecaster, seat.cohort, seat.group, seat.cover
    note = "; ".join(
        filter(None, (served_note(seat), curved_note(cohort, block), lying_note(seat)))
    )
    if not isinstance(cohort, Cohort) or not isinstance(forecaster, UnbiasedPrediction):
        return Guarantee(note=note)
    if group is None or not promised(seat, block):
        return Guarantee(note=note)
    response, faithful = cohort.response, exact_for(cohort, block)
    policies, actions = len(cohort.policies), cohort.loss.actions
    comparators = actions + policies
    covers = seat.at_once()
    if seat.stay is not None and isinstance(forecaster.bias_bound(), GainBound):
        there = seat.stay.entered == 0  # scalar gains promise nothing to who comes later
        covers = there if covers is None else covers & there

    @cache
    def apart() -> Array:
        radius = np.zeros(1) if cover is None else cover.radius
        if cover is not None and seat.kind is not None:
            radius = radius[seat.kind]
        return np.asarray(block.basis.certified_error(cohort.loss) + radius)

    def bound() -> Array:
        bias, weights = forecaster.bias_bound(), group.weights
        if seat.stay is None:
            expected = bias.regret(weights, policies=policies)[seat.lines]
            expected += draw_term(bias.rounds, losses, actions=actions, comparators=comparators)
        else:
            own = weights[seat.lines]
            expected = over_stays(bias, own, seat.stay, policies=policies, losses=losses)
        return np.asarray(expected + beside())

    def beside() -> Array:
        moved = 0.0 if faithful else response.lipschitz * apart()
        return np.asarray(2 * apart() + cohort.gap() + moved)

    def to_models() -> Array:
        bias, models = forecaster.bias_bound(), len(getattr(forecaster, "models", ()))
        expected = bias.regret_to_models(group.weights)[seat.lines]
        drawn = draw_term(bias.rounds, losses * models, actions=0, comparators=models)
        return np.asarray(expected + drawn + beside())

    compared = bool(getattr(forecaster, "models", ())) and seat.stay is None
    label = "smooth-decision-swap" if math.isfinite(response.lipschitz) else "decision-swap"
    return Guarantee(label, bound, note, covers, to_models if compared else None)


def followed(seat: Seat, block: Block) -> Followed | None:
    """Score what a cohort would lose by following the models of its block; None without any."""
    forecaster, group, lines = block.forecaster, seat.group, seat.lines
    if not isinstance(forecaster, AnchoredPrediction) or not forecaster.models or group is None:
        return None
    if seat.lies:  # models would suggest what suits the report
        return None
    known = [i for i, own in enumerate(forecaster.events.groups) if own is group]
    late = None if known else rows_of([group])  # of whom the forecaster knows nothing

    def suggest() -> Indices:
        if late is None:
            return forecaster.suggested(known[0])[lines]
        return best_responses(late, forecaster.base.points)[lines]

    return Followed(
        forecaster.models,
        seat.cohort.row_of,
        scale=seat.cohort.loss.unit_scale,
        suggest=suggest,
    )


def over_stays(bias: BiasBound, weights: Array, stay: Stay, *, policies: int, losses: int) -> Array:
    """Bound the realised regret per round of each row over its own rounds, without gap and error.

    Parameters
    ----------
    weights : array (K, A, n)
        Coefficients of protected losses.
    losses : int
        Rows of the whole run, for the union over all of them.

    Returns
    -------
    array (K,)
        NaN for a row that has not played, and for one that came late where the gains are scalar.
    """
    total = np.full(len(weights), np.nan)
    left, actions = np.minimum(stay.left, bias.rounds), weights.shape[1]
    spans = np.stack([stay.entered, left], axis=1)
    pairs, which, sizes = np.unique(spans, axis=0, return_inverse=True, return_counts=True)
    members = np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(sizes)[:-1])
    for (first, last), rows in zip(pairs.tolist(), members, strict=True):
        if first >= last or (first and isinstance(bias, GainBound)):
            continue
        whole = replace(bias, rounds=last)
        if first:
            expected = regret_since(whole, weights[rows], joined=first, policies=policies)
        else:
            expected = whole.regret(weights[rows], policies=policies)
        drawn = draw_term(last - first, losses, actions=actions, comparators=actions + policies)
        total[rows] = expected + drawn
    return total


def promised(seat: Seat, block: Block) -> bool:
    """Whether a theorem covers a cohort that hears this block."""
    forecaster, cohort = block.forecaster, seat.cohort
    if isinstance(forecaster, CalibratedMultiaccurate):  # it bounds no decision swap regret
        return False
    if not isinstance(forecaster, UnbiasedPrediction) or not isinstance(cohort, Cohort):
        return False
    if seat.lies or (seat.cover is not None and cohort.served is None):  # it plays its own best
        return False
    response = cohort.response
    smooth = math.isfinite(response.lipschitz)
    if response.hears_label:
        return smooth and block.basis.convex_image
    return smooth or exact_for(cohort, block)


def exact_for(cohort: Cohort, block: Block) -> bool:
    """Whether a cohort expects the very losses that the forecaster thinks it expects.

    Sophisticated agents do. Naive ones, at a label or over an ensemble, do where the basis has no
    error, and where ensembles consist of the very outcomes at which an inexact basis reads the
    losses. Otherwise a smooth law differs from the one in the basis by ``sum_a |q_a - q'_a| <=
    lipschitz x delta`` (see ``agents.responses``), below the paper's e^(2 eta delta) - 1, and with
    it the regret; a best response may differ altogether.
    """
    if not (cohort.response.hears_label or hears_ensemble(cohort)):
        return True
    if block.basis.hull == "simplex" and hears_ensemble(cohort):
        return True
    return block.basis.error == 0 and block.basis.certified_error(cohort.loss) == 0


def listener(seats: Sequence[Seat]) -> str | None:
    """Name a cohort that listens to ensembles, if there is one."""
    names = (seat.cohort.name for seat in seats if hears_ensemble(seat.cohort))
    return next(names, None)


def hears_ensemble(cohort: Anybody) -> bool:
    """Whether a cohort responds to the ensemble forecast."""
    return isinstance(cohort, Cohort) and isinstance(cohort.response, ExpectedLoss)


def check_hearing(cohorts: Sequence[Anybody], blocks: Sequence[Block]) -> None:
    """Raise UserError where a cohort listens to ensembles that are not broadcast."""
    for cohort in cohorts:
        if hears_ensemble(cohort) and not has_ensembles(blocks[cohort.block].forecaster):
            raise UserError(
                f"cohort.{cohort.name}.response 'ensemble': block '{blocks[cohort.block].name}' "
                "has no ensembles, because nobody listened from the start; drop joins"
            )


def curved_note(cohort: Anybody, block: Block) -> str:
    """Say why a label forecast promises nothing, and what would; empty where that is not so."""
    if not isinstance(cohort, Cohort) or not isinstance(block.forecaster, UnbiasedPrediction):
        return ""
    if block.basis.convex_image or not cohort.response.hears_label:
        return ""
    return (
        f"{cohort.name}: no promise, since labels of block {block.name} are no outcomes s^-1(p) of "
        'its predictions (the image of s is curved); response = "ensemble" has one'
    )


def lying_note(seat: Seat) -> str:
    """Say that a cohort reports other losses than its own; empty where it does not."""
    name = seat.cohort.name
    return f"{name}: no promise, since they report other losses than theirs" if seat.lies else ""


def served_note(seat: Seat) -> str:
    """Say how many representatives serve how many losses, and from how far; empty without any."""
    cover = seat.cover
    if cover is None:
        return ""
    agents, losses = len(seat.cohort.row_of), len(cover.served)
    return (
        f"{seat.cohort.name}: {agents} agents with {losses} losses served through "
        f"{len(cover.offset)} representatives within {cover.radius.max():.3g}"
    )
