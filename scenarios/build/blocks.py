"""Which cohorts share a block of the broadcast, and which theorem covers which cohort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.agents.cohorts.responding import Cohort
from regretless.agents.cohorts.scripted import ScriptedCohort
from regretless.agents.responses import ExpectedLoss
from regretless.forecaster.bases import DirectSumBasis
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.ensemble_broadcast import has_ensembles
from regretless.forecaster.events.bounds import GainBound, draw_term
from regretless.forecaster.events.cover import Cover, clustered, paper_gamma, snapped
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.errors import UserError
from regretless.market.game.basis import Basis
from regretless.market.game.presence import Stay
from regretless.market.game.round import Block
from regretless.market.kernels.layout import side_by_side
from regretless.market.losses import Loss
from regretless.market.model import Guarantee
from regretless.scenarios.build.bases import make, natural_kind, variant
from regretless.scenarios.build.rows import over_stays
from regretless.scenarios.spec.cohort import BasisSpec, CoverSpec

Array = NDArray[np.float64]
Anybody = Cohort | ScriptedCohort | LearnerCohort
Key = tuple[str, tuple[float, ...], str]
Member = tuple[str, Loss, BasisSpec]


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of a broadcast.

    Parameters
    ----------
    names : tuple of str
        One name per block, in the order of the direct sum's parts.
    basis : DirectSumBasis
    block_of : tuple of int
        The block of each cohort.
    """

    names: tuple[str, ...]
    basis: DirectSumBasis
    block_of: tuple[int, ...]


def layout(members: Sequence[Member]) -> Layout:
    """Put cohorts whose losses live in the same basis into one block.

    Parameters
    ----------
    members : sequence of (name, stack of losses, BasisSpec)
        One per cohort, with what the file says of its basis.

    Raises
    ------
    UserError
        If a basis that is asked for does not serve the losses.
    """
    groups: dict[Key, list[int]] = {}
    for place, (_, loss, wish) in enumerate(members):
        kind = natural_kind(loss) if wish.kind == "auto" else wish.kind
        key = kind, variant(kind, loss), repr(sorted(wish.parameters.items()))
        groups.setdefault(key, []).append(place)
    kinds = [key[0] for key in groups]
    names = [
        kind if kinds.count(kind) == 1 else f"{kind}-{1 + kinds[:i].count(kind)}"
        for i, kind in enumerate(kinds)
    ]
    parts = []
    for kind, places in zip(kinds, groups.values(), strict=True):
        where = f"cohort.{members[places[0]][0]}.basis"
        losses = [members[place][1] for place in places]
        parts.append(make(where, kind, losses, **members[places[0]][2].parameters))
    block_of = {place: block for block, places in enumerate(groups.values()) for place in places}
    order = tuple(block_of[place] for place in range(len(members)))
    return Layout(tuple(names), DirectSumBasis(parts), order)


def coefficients(name: str, basis: Basis, loss: Loss) -> tuple[Array, Array]:
    """Return a cohort's coefficients; UserError where the basis does not span its losses."""
    try:
        offset, weights = basis.coefficients(loss)
    except ValueError as reason:
        raise UserError(
            f"cohort.{name}.basis: {reason}; leave the basis out for the default"
        ) from reason
    return offset, side_by_side(weights)


def covered(spec: CoverSpec, coefficients: tuple[Array, Array], rounds: int) -> Cover:
    """Return the cover of a cohort's coefficients that its file asks for."""
    offset, weights = coefficients
    if spec.kind == "snap":
        gamma = spec.gamma or paper_gamma(weights.shape[-1], rounds)
        return snapped(offset, weights, gamma=gamma)
    return clustered(offset, weights, radius=spec.radius or 0.0, count=spec.count)


@dataclass(frozen=True, eq=False)
class Seat:
    """A cohort in the game, and what the forecaster promises it.

    Parameters
    ----------
    cohort : Cohort, ScriptedCohort or LearnerCohort
    group : LossGroup
        What the forecaster protects on its behalf.
    cover : Cover or None
        How its losses are served through fewer.
    kind : int array (K,) or None
        The distinct loss of each row; None where every row has its own.
    stay : Stay or None
        When each row is there; None for throughout.
    """

    cohort: Anybody
    group: LossGroup
    cover: Cover | None = None
    kind: NDArray[np.intp] | None = None
    stay: Stay | None = None

    @property
    def promises(self) -> int:
        """How many events a promise to all rows is about: distinct losses, or losses and stays."""
        rows = len(self.cohort.loss)
        return rows if self.kind is None or self.stay is not None else int(self.kind.max()) + 1

    @property
    def lines(self) -> NDArray[np.intp] | slice:
        """The line of the group's losses through which each row is served."""
        if self.cover is None:
            return slice(None) if self.kind is None else self.kind
        return self.cover.served if self.kind is None else self.cover.served[self.kind]

    def covers(self) -> NDArray[np.bool_] | None:
        """Return the rows that hear every forecast at once (K,); None for all."""
        distance = getattr(self.cohort, "distance", None)
        return None if distance is None else np.asarray(distance == 0)


def guarantee(seat: Seat, block: Block, losses: int) -> Guarantee:
    """Say which theorem covers a cohort, with its bound; ``none`` where none does.

    Parameters
    ----------
    seat : Seat
    block : Block
        What it hears.
    losses : int
        Promises of the whole run, for the union over all of them.
    """
    forecaster, cohort, cover = block.forecaster, seat.cohort, seat.cover
    notes = "" if cover is None else served_note(seat, cover), curved_note(cohort, block)
    note = "; ".join(filter(None, notes))
    if not isinstance(cohort, Cohort) or not isinstance(forecaster, UnbiasedPrediction):
        return Guarantee(note=note)
    if not promised(seat, block):
        return Guarantee(note=note)
    response, faithful = cohort.response, exact_for(cohort, block)
    policies, actions = len(cohort.policies), cohort.loss.actions
    comparators = actions + policies
    covers = seat.covers()
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
        bias, weights = forecaster.bias_bound(), seat.group.weights
        if seat.stay is None:
            expected = bias.regret(weights, policies=policies)[seat.lines]
            expected += draw_term(bias.rounds, losses, actions=actions, comparators=comparators)
        else:
            own = weights[seat.lines]
            expected = over_stays(bias, own, seat.stay, policies=policies, losses=losses)
        moved = 0.0 if faithful else response.lipschitz * apart()
        return np.asarray(expected + 2 * apart() + cohort.gap() + moved)

    label = "smooth-decision-swap" if math.isfinite(response.lipschitz) else "decision-swap"
    return Guarantee(label, bound, note, covers)


def promised(seat: Seat, block: Block) -> bool:
    """Whether a theorem covers a cohort that hears this block."""
    forecaster, cohort = block.forecaster, seat.cohort
    if isinstance(forecaster, CalibratedMultiaccurate):  # it bounds no decision swap regret
        return False
    if not isinstance(forecaster, UnbiasedPrediction) or not isinstance(cohort, Cohort):
        return False
    if seat.cover is not None and cohort.served is None:  # it plays its own best response
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


def served_note(seat: Seat, cover: Cover) -> str:
    """Say how many representatives serve how many losses, and from how far."""
    agents, losses = len(seat.cohort.row_of), len(cover.served)
    return (
        f"{seat.cohort.name}: {agents} agents with {losses} losses served through "
        f"{len(cover.offset)} representatives within {cover.radius.max():.3g}"
    )
