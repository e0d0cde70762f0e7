"""What is promised to whom: the theorem that covers a cohort and its bound, or ``none``.

What an answering market and private draws leave of it is in ``market.game.caveats``.

What the theorem says of a whole run is said of the rounds of each row's stay: with R(t) the bound
on regret per round after t rounds,

    (left - entered) x regret over entered..left-1  <=  left R(left) + entered R(entered)

(``forecaster.guarantees``, "Joining late"). R is taken with the sum of certificates so far,
which only grows, so that the bound of an agent that has left stays valid without any record of that
round. Where outcomes are late the forecasters take turns (``forecaster.delayed``): each one's R
covers the rounds of a stay that are its own, and what the left sides bound adds up.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from regretless.forecaster.events.base import EventSet, covering
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.events.stays import StayRecord
from regretless.forecaster.guarantees.draws import swap_draws
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.attendance import Attendance
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.round import Block
from regretless.market.numerics.storage import is_mapped
from regretless.scenarios.assembly.cohorts import Placement

Member = tuple[Placement, Guarantee]


def guarantee(seat: Placement, block: Block, losses: int) -> Guarantee:
    """Say which theorem covers a cohort, with its bound; ``none`` where none does.

    ``losses``: promises of the whole run, for the union over all of them.
    """
    cohort, group, why = seat.cohort, seat.group, unproved(seat, block)
    notes = list(_notes(seat))
    if why or group is None:
        whoever = of_anybody(seat, block, losses)
        if whoever is None:
            notes.append(f"{cohort.name}: no guarantee, since {why}")
        return replace(whoever or Guarantee(), note="; ".join(notes))
    first: UnbiasedPrediction = block.forecaster.instances[0]
    covers, throughout = seat.at_once(), seat.attendance.throughout
    given = Guarantee(
        "smooth-decision-swap" if math.isfinite(cohort.response.lipschitz) else "decision-swap",
        note="; ".join(notes),
        covers=covers,
        unbounded=tuple(unbounded(seat, first)),
    )
    if group not in first.events.groups:  # latecomers, of whom ``latecomers.served`` says more
        return given
    stays = follow_stays(seat, block, [group])
    terms = Terms(seat, block, cohort, [group], losses, stays=stays)
    crossed = len(cohort.policies) and throughout and first.events.crossed
    return replace(
        given,
        bound=terms.bound,
        to_models=terms.to_models if first.models and throughout else None,
        from_variation=terms.from_variation,
        trusted=terms.trusted,
        beforehand=terms.beforehand,
        contextual=terms.contextual if crossed else None,
        window=terms.window if throughout and len(first.events.lengths) else None,
    )


@dataclass(frozen=True, eq=False)
class FollowedStays:
    """What one forecaster records of the stays of some rows."""

    player: UnbiasedPrediction
    record: StayRecord
    rows: Indices  # of the cohort


def follow_stays(
    seat: Placement, block: Block, groups: Sequence[ProtectedLosses], *, listed: bool = True
) -> list[FollowedStays]:
    """Let forecasters record the stays of a cohort that comes and goes.

    Its rows are served through losses of the ``groups``, one below the other. Nothing is recorded
    of a cohort that is there throughout.
    """
    if seat.attendance.throughout:
        return []
    followed = list[FollowedStays]()
    line_of_row = np.arange(sum(len(group.offset) for group in groups))[seat.lines]
    stays, players = seat.attendance.span(len(line_of_row)), block.forecaster.instances
    for turn, player in enumerate(players):
        own_stays = stays.turn(turn, len(players))  # in rounds of its own
        events = player.events if listed else player.events.others
        first_line = 0
        for group in groups:
            end_line = first_line + len(group.offset)
            rows = np.flatnonzero((first_line <= line_of_row) & (line_of_row < end_line))
            if len(rows):
                record = player.follow(
                    group,
                    line_of_row[rows] - first_line,
                    entered=own_stays.entered[rows],
                    left=own_stays.left[rows],
                    events=events,
                )
                followed.append(FollowedStays(player, record, rows))
            first_line = end_line
    return followed


@dataclass(frozen=True, eq=False)
class Terms:
    """What the bounds of a cohort are added up from."""

    seat: Placement
    block: Block
    cohort: Any
    groups: Sequence[ProtectedLosses]  # of losses through which it is served, one below the other
    promises: int  # of the whole run, for the union over all of them
    horizon: int | None = None  # rounds, whatever happens in them; None for what happened so far
    covered: Mask | None = None  # rows that are served, of a cohort that joins late; None for all
    listed: bool = True  # whether the forecaster knows its losses, and need not serve all there are
    stays: Sequence["FollowedStays"] = ()  # of rows that come and go, before every forecaster

    def beforehand(self, rounds: int) -> Array:
        """Bound what ``bound`` will be after so many rounds (K,)."""
        return replace(self, horizon=rounds).bound()

    def bound(self) -> Array:
        """Bound each row's realised decision swap regret per round (K,) by the theorem.

        NaN for a row that is not served.
        """
        weights, policies, span = self._weights, len(self.cohort.policies), self.seat.attendance
        if span.throughout:
            expected = self._summed(lambda bound: bound.a_priori(weights, policies=policies))
        else:
            own = weights[self.seat.lines]
            expected = over_stays(self._bounds, own, span, policies=policies)
        expected = expected + self._drawn() / self._rounds
        if self._heard and all(self._is_charged_as_drawn(bound) for bound in self._bounds):
            drawn = self._summed(lambda bound: bound.realised(weights, policies=policies))
            expected = np.minimum(expected, drawn)
        found = np.asarray(expected + self._beside())
        return found if self.covered is None else np.where(self.covered, found, np.nan)

    def from_variation(self) -> Array:
        """Bound the same by the variations of the biases so far, too."""
        if not self.seat.attendance.throughout:
            return self._over_followed_stays()
        lines = self.seat.lines
        total = np.zeros(sum(len(group.weights) for group in self.groups))
        for player in self._players:
            others = self._others(player)
            own = [player.from_variation(group, others) for group in self.groups]
            total += np.concatenate(own)
        total = total[lines]
        total = total + self._drawn()
        drawn = [p.realised(self.groups[0]) for p in self._players] if self._heard else [None]
        known = [own for own in drawn if own is not None]
        if len(known) == len(drawn):
            total = np.minimum(total, np.sum(known, axis=0)[lines])
        return np.asarray(np.minimum(self.bound(), total / self._rounds + self._beside()))

    def _over_followed_stays(self) -> Array:
        """Bound the same of who comes and goes, by what is known of both ends of each stay."""
        total = np.zeros(len(self.cohort.loss))
        for followed in self.stays:
            total[followed.rows] += followed.player.over_stays(followed.record)
        total = total + self._drawn()
        known = total / self._rounds + self._beside()
        # Who enters later has no bound beforehand where gains are scalar.
        return np.asarray(np.fmin(self.bound(), known))

    def trusted(self) -> Mask:
        """Say of which rows ``from_variation`` is the regret itself, beside errors (K,).

        So it is as long as gains are regrets: while a reference is trusted, to the end of the stay
        of who left before. What draws do is bounded beside them, where an objective prefers other
        forecasts than the reference's, and where agents draw for themselves.
        """
        rows = len(self.cohort.loss)
        reference = self._players[0].reference
        counts_regret = all(player.events.counts_regret for player in self._players)
        has_draws = self.cohort.private or any(one.solver.preferring for one in self._players)
        if reference is None or not counts_regret or not self.listed or has_draws:
            return np.zeros(rows, dtype=np.bool_)
        if reference.first_correction is None:
            return np.ones(rows, dtype=np.bool_)
        left = self.seat.attendance.span(rows).left
        return np.asarray(left <= reference.first_correction)

    def window(self, first: int, last: int) -> Array:
        """Bound the same from a first to a last round that was played (K,)."""
        rounds, turns = last + 1 - first, len(self._players)
        total = np.zeros(len(self._weights))
        weights, policies = self._weights, len(self.cohort.policies)
        for turn, player in enumerate(self._players):  # over rounds of its own
            start = len(range(turn, first, turns))
            end = len(range(turn, last + 1, turns))
            bound, events = player.bias_bound(), player.events
            if start:
                lengths = list(covering(start, end, events.lengths))
                total += bound.over_window(weights, lengths, run=events.run, policies=policies)
            elif end:
                of_turn = replace(bound.with_inputs(rounds=end), holds_throughout=True)
                total += end * of_turn.a_priori(weights, policies=policies)
        drawn = self._drawn(self._at_most(rounds), times=(first + 1) * (first + 2))
        expected = np.asarray(total[self.seat.lines])
        return np.asarray((expected + drawn) / rounds + self._beside())

    def contextual(self) -> Array:
        """Bound each row's realised contextual swap regret per round (K,)."""
        expected = self._summed(lambda bound: bound.contextual(self._weights))
        actions, promises = self.cohort.loss.actions, self.promises * len(self.cohort.policies)
        sizes = {"actions": actions**2, "comparators": actions, "promises": promises}
        drawn = swap_draws(self._known(fixed=False), width=self._width, **sizes)
        return np.asarray(expected + drawn / self._rounds + self._beside())

    def to_models(self) -> Array:
        """Bound each row's realised regret per round to every model (K,)."""
        expected = self._summed(lambda bound: bound.to_models(self._weights))
        sizes = {"actions": 0, "comparators": 1, "promises": self.promises}
        drawn = swap_draws(self._known(fixed=True), width=self._width, **sizes)
        return np.asarray(expected + drawn / self._rounds + self._beside())

    def _summed(self, regret: Callable[[RegretBound], Array | None]) -> Array:
        """Return the mean over the rounds of what bounds each forecaster's own (K,)."""
        total = np.zeros(len(self._weights))
        rounds = 0
        for bound in self._bounds:
            if bound.inputs.rounds:
                total = total + bound.inputs.rounds * np.asarray(regret(bound))
                rounds += bound.inputs.rounds
        return np.asarray(total[self.seat.lines] / rounds)

    @staticmethod
    def _is_charged_as_drawn(bound: RegretBound) -> bool:
        """Whether a bound holds for the predictions that were broadcast, not in expectation."""
        return bound.inputs.risk < 1 and not bound.inputs.trusted

    def _drawn(self, most: float | Array = np.inf, times: int = 1) -> Array:
        """Bound what draws add to swap regret; ``times``: as many first rounds there may be."""
        actions, policies = self.cohort.loss.actions, len(self.cohort.policies)
        return swap_draws(
            np.minimum(self._known(fixed=not policies), most),
            promises=self.promises * times,
            actions=actions,
            comparators=actions + policies,
            width=self._width,
        )

    def _known(self, *, fixed: bool) -> Array:
        """Return V and what is sure (2, K), never more than a row's rounds allow."""
        most = self._at_most(self._rounds)
        if self.cohort.private or self.horizon:  # see ``market.game.caveats``
            return most
        total: Any = 0
        for player in self._players:
            if self.listed:
                own = [player.draws.of(group, fixed=fixed) for group in self.groups]
                total = total + np.concatenate(own, axis=-1)
            else:
                total = total + player.draws.of_anybody(self._width)
        return np.asarray(np.minimum(total[:, self.seat.lines], most))

    def _at_most(self, rounds: Array | int) -> Array:
        """Return the greatest V and what is sure of so many rounds (2, K)."""
        step = np.array([[1.0], [2.0]]) * self._width ** np.array([[2.0], [1.0]])
        return np.asarray(rounds * step)

    def _beside(self) -> Array:
        response, apart = self.cohort.response, self._apart
        moved = 0.0 if exact_for(self.cohort, self.block) else response.lipschitz * apart
        return np.asarray(2 * apart + self.cohort.gap() + moved)

    def _others(self, player: UnbiasedPrediction) -> EventSet | None:
        """Return the events that serve losses that are not listed; None where these are."""
        return None if self.listed else player.events.others

    @cached_property
    def _weights(self) -> Array:
        return np.concatenate([group.weights for group in self.groups])

    @cached_property
    def _players(self) -> Sequence[UnbiasedPrediction]:
        return self.block.forecaster.instances

    @property
    def _heard(self) -> bool:
        """Whether its agents are there throughout and act on the prediction that is broadcast."""
        return self.seat.attendance.throughout and not self.cohort.private

    @property
    def _bounds(self) -> list[RegretBound]:
        """The bound of each forecaster on its biases."""
        if self.horizon is None:
            return [player.bias_bound(self._others(player)) for player in self._players]
        turns = len(self._players)
        rounds = [len(range(turn, self.horizon, turns)) for turn in range(turns)]
        return [p.beforehand(own) for p, own in zip(self._players, rounds, strict=True) if own]

    @property
    def _rounds(self) -> Array | int:
        """Rounds that each row was there."""
        rounds, span = self.horizon or sum(p.time for p in self._players), self.seat.attendance
        return rounds if span.throughout else stayed(span, rounds)

    @property
    def _width(self) -> Array:
        """The range of a row's losses in the basis."""
        return np.asarray(1 + 2 * np.broadcast_to(self._apart, len(self.cohort.loss)))

    @cached_property
    def _apart(self) -> Array:
        """How far each row's loss is from that by which it is served."""
        cover, kind, loss = self.seat.cover, self.seat.kind, self.cohort.loss
        radius = np.zeros(1) if cover is None else cover.radius
        if cover is not None and kind is not None:
            radius = radius[kind]
        served = loss if self.covered is None else loss[np.flatnonzero(self.covered)]
        return np.asarray(self.block.basis.certified_error(served) + radius)


def of_anybody(seat: Placement, block: Block, losses: int) -> Guarantee | None:
    """Say what a cohort is promised whatever its losses are; None where that is nothing.

    It hears the forecast and plays the best response of its own losses, with actions alone as
    comparators.
    """
    cohort, players = seat.cohort, block.forecaster.instances
    if cohort.unguided or not players or len(cohort.policies) or players[0].events.others is None:
        return None
    plain = cohort.response.protected() == {"eta": None, "tie": 0.0}
    if not cohort.expects_own or not plain or not exact_for(cohort, block):
        return None
    alone, groups = replace(seat, cover=None, kind=None), [ProtectedLosses(*cohort.coefficients)]
    stays = follow_stays(alone, block, groups, listed=False)
    terms = Terms(alone, block, cohort, groups, losses, listed=False, stays=stays)
    known = terms.from_variation
    return Guarantee("decision-swap", terms.bound, covers=seat.at_once(), from_variation=known)


def stayed(span: Attendance, rounds: int) -> Array:
    """Return for how many rounds each row was there (K,); NaN before its first."""
    spent = np.asarray(span.spent(rounds))
    return np.where(spent > 0, spent, np.nan)


def over_stays(
    bounds: Sequence[RegretBound], weights: Array, span: Attendance, *, policies: int
) -> Array:
    """Bound the expected regret per round of each row over its own rounds, without gap and error.

    ``bounds`` has one for each forecaster that takes turns; ``weights`` (K, A, n) are coefficients
    of protected losses. NaN for a row that has not played, or came late to scalar gains.
    """
    total = np.zeros(len(weights))
    for turn, bound in enumerate(bounds):
        own = span.turn(turn, len(bounds))
        spans = np.stack([own.entered, np.minimum(own.left, bound.inputs.rounds)], axis=1)
        pairs, which, sizes = np.unique(spans, axis=0, return_inverse=True, return_counts=True)
        members = np.split(np.argsort(which.ravel(), kind="stable"), np.cumsum(sizes)[:-1])
        for (first, last), rows in zip(pairs.tolist(), members, strict=True):
            if first < last:
                until_last = replace(bound.with_inputs(rounds=last), holds_throughout=True)
                regret = until_last.over_stay(weights[rows], joined=first, policies=policies)
                total[rows] += np.nan if regret is None else (last - first) * regret
    return np.asarray(total / stayed(span, sum(bound.inputs.rounds for bound in bounds)))


def unproved(seat: Placement, block: Block) -> str:
    """Say why no theorem covers a cohort that hears this block; empty where one does."""
    cohort = seat.cohort
    if cohort.unguided:
        return str(cohort.unguided)
    label, smooth = cohort.response.hears_label, math.isfinite(cohort.response.lipschitz)
    by_proxy = seat.cover is None or cohort.representative_of is not None
    exact = smooth or not (label or not exact_for(cohort, block))
    reasons = {
        "no theorem covers its forecaster": not block.forecaster.instances,
        "it reports other losses than its own": seat.lies,
        "agents act on their own losses, and representatives are protected": not by_proxy,
        f"labels of block {block.name} are not the outcomes s^-1(p) of its predictions (the image "
        'of s is curved); response = "ensemble" has one': label and not block.basis.convex_image,
        "rounding and errors of the basis move best responses to what it hears": not exact,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def unbounded(seat: Placement, player: UnbiasedPrediction) -> Iterator[str]:
    """Yield why regrets that a run measures have no bound although a theorem covers the cohort."""
    cohort, throughout = seat.cohort, seat.attendance.throughout
    events, here = player.events, f"{cohort.name}: no bound on"
    if not events.joinable and (seat.attendance.entered > 0).any():
        why = "an old gain far below zero may be regained (bound_from_variation counts it)"
        yield f"{cohort.name}: no bound beforehand for agents who enter later, since {why}"
    if "contextual_swap" in cohort.ledger.measures and cohort.policies and not events.crossed:
        yield f'{here} contextual swap regret, which needs events = "coordinates"'
    if not throughout:
        of = ["regret to models"] * bool(player.models) + ["windows"] * bool(events.lengths)
        of += ["contextual swap regret"] * ("contextual_swap" in cohort.ledger.measures)
        if of:
            yield f"{here} {' and '.join(of)} of agents who enter or leave"


def exact_for(cohort: Any, block: Block) -> bool:
    """Whether a cohort expects the very losses that the forecaster thinks it expects.

    Otherwise a smooth distribution differs from the one in the basis by ``sum_a |q_a - q'_a| <=
    lipschitz x delta`` (``agents.responses``), below the paper's e^(2 eta delta) - 1, and with it
    the regret; a best response may differ altogether.
    """
    if not (cohort.response.hears_label or cohort.hears_ensemble):
        return True
    if block.basis.hull == "simplex" and cohort.hears_ensemble:
        return True
    return block.basis.error == 0 and block.basis.certified_error(cohort.loss) == 0


def _notes(seat: Placement) -> Iterator[str]:
    """Yield how many representatives serve how many losses, and that losses are on disk."""
    cohort, cover, weights = seat.cohort, seat.cover, seat.cohort.loss.lead
    if cover is not None:
        yield (
            f"{cohort.name}: {cohort.population:,} agents with {len(cover.representative_of):,} "
            f"losses served through {len(cover.offset):,} representatives within "
            f"{cover.radius.max():.3g}"
        )
    if is_mapped(weights):
        yield f"{cohort.name}: {weights.nbytes / 1e9:.3g} GB of losses are mapped from disk"
