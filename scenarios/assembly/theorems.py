"""What is promised to whom: the theorem that covers a cohort and its bound, or ``none``.

``guarantees`` calls ``find_guarantee`` for every cohort whose losses a forecaster protects. What an
answering market and private draws leave of it is in ``market.game.caveats``.

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
from functools import cached_property, partial
from typing import Any

import numpy as np

from regretless.forecaster.events.base import EventSet, covering
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.events.stays import StayRecord, WindowRecord
from regretless.forecaster.guarantees.draws import swap_draws
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.standing import Standing
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.attendance import Attendance
from regretless.market.game.guarantee import BoundsSoFar, Guarantee
from regretless.market.game.round import Block
from regretless.market.numerics.storage import is_mapped
from regretless.scenarios.assembly.cohorts import ServedCohort

Span = tuple[int, int]  # the first and last round of a window
Stand = UnbiasedPrediction | Standing  # where a forecaster stands: now, or after some round


def find_guarantee(
    served: ServedCohort, block: Block, promises: int, windows: Sequence[Span] = ()
) -> Guarantee:
    """Say which theorem covers a cohort, with its bound; ``none`` where none does.

    ``promises``: of the whole run, for the union over all of them; ``windows``: the first and last
    rounds of those that are declared.
    """
    cohort = served.cohort
    protected = served.protected
    reason = unproved(served, block)
    notes = list(_notes(served))
    if reason or protected is None:
        for_anybody = promise_to_anybody(served, block, promises)
        if for_anybody is None:
            notes.append(f"{cohort.name}: no guarantee, since {reason}")
            return Guarantee(note="; ".join(notes))
        return replace(for_anybody, note="; ".join(notes))
    notes += _note_on_late_news(served)
    first: UnbiasedPrediction = block.forecaster.instances[0]
    is_smooth = math.isfinite(cohort.response.lipschitz)
    guarantee = Guarantee(
        label="smooth-decision-swap" if is_smooth else "decision-swap",
        note="; ".join(notes),
        covers=served.hears_at_once(),
        unbounded=tuple(unbounded(served, first, has_windows=bool(windows))),
    )
    if protected not in first.events.groups:  # a guest, of whom ``latecomers`` says more
        return guarantee
    stays = follow_stays(served, block, [protected])
    is_there_throughout = served.attendance.throughout
    followed_windows = None
    if is_there_throughout and windows:
        followed_windows = follow_windows(block, protected, windows)
    terms = Terms(served, block, [protected], promises, stays=stays, windows=followed_windows)
    has_model_regret = first.models and is_there_throughout
    has_contextual_regret = len(cohort.policies) and is_there_throughout and first.events.crossed
    has_windows = followed_windows is not None or (
        is_there_throughout and len(first.events.lengths) > 0
    )
    return replace(
        guarantee,
        bound=terms.bound,
        to_models=terms.to_models if has_model_regret else None,
        from_variation=terms.from_variation,
        take_note=terms.take_note,
        trusted=terms.trusted,
        beforehand=terms.beforehand,
        contextual=terms.contextual if has_contextual_regret else None,
        window=terms.window if has_windows else None,
    )


@dataclass(frozen=True, eq=False)
class FollowedWindows:
    """What every forecaster of a block records of declared windows, for one group of losses."""

    windows: tuple[Span, ...]
    records: Sequence[WindowRecord]  # one for each forecaster that takes turns

    def bound(self, window: Span) -> Array | None:
        """Bound the sum of expected regret over the window that has just ended (K,), or None."""
        if window not in self.windows:
            return None
        window_index = self.windows.index(window)
        total: Array | float = 0.0
        for record in self.records:
            of_turn = record.bound(window_index)
            if of_turn is None:
                return None
            total = total + of_turn
        return np.asarray(total)


def follow_windows(
    block: Block, group: ProtectedLosses, windows: Sequence[Span]
) -> FollowedWindows:
    """Let the forecasters of a block record declared windows for a group of their losses."""
    players = block.forecaster.instances
    records = []
    for turn, player in enumerate(players):
        spans = []
        for first, last in windows:  # in rounds of its own
            start = len(range(turn, first, len(players)))
            end = len(range(turn, last + 1, len(players)))
            spans.append((start, end))
        records.append(player.follow_windows(group, spans))
    return FollowedWindows(tuple(windows), records)


@dataclass(frozen=True, eq=False)
class FollowedStays:
    """What one forecaster records of the stays of some rows."""

    player: UnbiasedPrediction
    record: StayRecord
    rows: Indices  # of the cohort


def follow_stays(
    served: ServedCohort,
    block: Block,
    groups: Sequence[ProtectedLosses],
    *,
    losses_are_listed: bool = True,
) -> list[FollowedStays]:
    """Let forecasters record the stays of a cohort that comes and goes.

    Its rows are served through losses of the ``groups``, one below the other. Nothing is recorded
    of a cohort that is there throughout.
    """
    if served.attendance.throughout:
        return []
    followed = list[FollowedStays]()
    n_protected = sum(len(group.offset) for group in groups)
    index_of_row = np.arange(n_protected)[served.protected_index]
    stays = served.attendance.span(len(index_of_row))
    players = block.forecaster.instances
    for turn, player in enumerate(players):
        own_stays = stays.turn(turn, len(players))  # in rounds of its own
        events = player.events if losses_are_listed else player.events.others
        first_index = 0
        for group in groups:
            end_index = first_index + len(group.offset)
            rows = np.flatnonzero((first_index <= index_of_row) & (index_of_row < end_index))
            if len(rows):
                record = player.follow(
                    group,
                    index_of_row[rows] - first_index,
                    entered=own_stays.entered[rows],
                    left=own_stays.left[rows],
                    events=events,
                )
                followed.append(FollowedStays(player, record, rows))
            first_index = end_index
    return followed


@dataclass(frozen=True, eq=False)
class Terms:
    """What the bounds of a cohort are added up from."""

    served: ServedCohort
    block: Block
    groups: Sequence[ProtectedLosses]  # of losses through which it is served, one below the other
    promises: int  # of the whole run, for the union over all of them
    rounds_beforehand: int | None = None  # whatever happens in them; None for what happened so far
    covered: Mask | None = None  # rows that are served, of a cohort that joins late; None for all
    losses_are_listed: bool = True  # known to the forecaster, which need not serve all there are
    stays: Sequence[FollowedStays] = ()  # of rows that come and go, before every forecaster
    windows: FollowedWindows | None = None  # that are declared, of rows that are there throughout

    @cached_property
    def cohort(self) -> Any:
        """The cohort to which the bounds apply."""
        return self.served.cohort

    def beforehand(self, rounds: int) -> Array:
        """Bound what ``bound`` will be after so many rounds (K,)."""
        return replace(self, rounds_beforehand=rounds).bound()

    def bound(self) -> Array:
        """Bound each row's realised decision swap regret per round (K,) by the theorem.

        NaN for a row that is not served.
        """
        players = self._players
        return self._bound_with(players, self._regret_from_draws(players), gap=self.cohort.gap())

    def from_variation(self) -> Array:
        """Bound the same by the variations of the biases and the margins so far, too."""
        return self._so_far(self._players, gap=self.cohort.gap()).from_variation

    def take_note(self) -> Callable[[], BoundsSoFar]:
        """Return who works both bounds out, now or later; what they share is worked out once."""
        gap = self.cohort.gap()
        standings = []
        if self.served.attendance.throughout:
            for player in self._players:
                standing = player.excerpt()
                if standing is not None:
                    standings.append(standing)
        if len(standings) == len(self._players):
            return partial(self._so_far, standings, gap=gap)
        bounds = self._so_far(self._players, gap=gap)
        return lambda: bounds

    def _so_far(self, players: Sequence[Stand], *, gap: float) -> BoundsSoFar:
        """Return both bounds as the forecasters stood after some round."""
        regret_from_draws = self._regret_from_draws(players)
        bound = self._bound_with(players, regret_from_draws, gap=gap)
        if self.served.attendance.throughout:
            from_variation = self._variation_bound(players, bound, regret_from_draws)
        else:
            from_variation = self._variation_bound_over_stays(bound, regret_from_draws)
        return BoundsSoFar(bound, from_variation)

    def _bound_with(
        self, players: Sequence[Stand], regret_from_draws: Array, *, gap: float
    ) -> Array:
        """Return what ``bound`` says, given what draws add in sum over the rounds (K,)."""
        bounds = self._bounds_of(players)
        weights = self._weights
        policies = len(self.cohort.policies)
        attendance = self.served.attendance
        if attendance.throughout:
            expected = self._summed(
                bounds, lambda bound: bound.a_priori(weights, policies=policies)
            )
        else:
            weights_of_rows = weights[self.served.protected_index]
            expected = over_stays(bounds, weights_of_rows, attendance, policies=policies)
        expected = expected + regret_from_draws / self._rounds_of(players)
        if self._acts_on_broadcast and all(map(self._is_charged_as_drawn, bounds)):
            drawn = self._summed(bounds, lambda bound: bound.realised(weights, policies=policies))
            expected = np.minimum(expected, drawn)
        regret = np.asarray(expected + self._regret_from_basis + gap)
        return regret if self.covered is None else np.where(self.covered, regret, np.nan)

    def _variation_bound(
        self, players: Sequence[Stand], bound_now: Array, regret_from_draws: Array
    ) -> Array:
        """Bound the same of who is there throughout (K,).

        ``bound_now`` (K,) is the bound whatever the variations are, ``regret_from_draws`` (K,) what
        draws add in sum over the rounds.
        """
        protected_index = self.served.protected_index  # among the losses of all groups
        # Regret in sum over the rounds: of each protected loss, and then of each row (K,).
        total_by_loss = np.zeros(sum(len(group.weights) for group in self.groups))
        regrets_as_drawn = []  # of each forecaster that bounds more than expectations
        for player in players:
            others = self._others(player)
            known_bound = player.known_bound(others)
            events = others or player.events
            per_group = [events.from_variation(known_bound, group) for group in self.groups]
            total_by_loss += np.concatenate(per_group)
            if others is None and self._acts_on_broadcast:
                of_turn = events.realised(known_bound, self.groups[0])
                if of_turn is not None:
                    regrets_as_drawn.append(of_turn)
        total = total_by_loss[protected_index] + regret_from_draws
        if len(regrets_as_drawn) == len(players):
            as_drawn = np.asarray(np.sum(regrets_as_drawn, axis=0))
            total = np.minimum(total, as_drawn[protected_index])
        rounds = self._rounds_of(players)
        return np.asarray(np.minimum(bound_now, total / rounds + self._regret_from_basis))

    def _variation_bound_over_stays(self, bound_now: Array, regret_from_draws: Array) -> Array:
        """Bound the same of who comes and goes, by what is known of both ends of each stay."""
        total = np.zeros(len(self.cohort.loss))
        for followed in self.stays:
            total[followed.rows] += followed.player.over_stays(followed.record)
        total = total + regret_from_draws
        from_gains = total / self._rounds_of(self._players) + self._regret_from_basis
        # Who enters later has no bound beforehand where gains are scalar.
        return np.asarray(np.fmin(bound_now, from_gains))

    def trusted(self) -> Mask:
        """Say of which rows ``from_variation`` is the regret itself, beside errors (K,).

        So it is as long as gains are regrets: while a reference is trusted, to the end of the stay
        of who left before. What draws do is bounded beside them, where an objective prefers other
        forecasts than the reference's, and where agents draw for themselves.
        """
        n_rows = len(self.cohort.loss)
        reference = self._players[0].reference
        counts_regret = all(player.events.counts_regret for player in self._players)
        is_preferring = any(player.solver.preferring for player in self._players)
        has_draws = self.cohort.private or is_preferring
        if reference is None or not counts_regret or not self.losses_are_listed or has_draws:
            return np.zeros(n_rows, dtype=np.bool_)
        if reference.first_correction is None:
            return np.ones(n_rows, dtype=np.bool_)
        left = self.served.attendance.span(n_rows).left
        return np.asarray(left <= reference.first_correction)

    def window(self, first: int, last: int) -> Array:
        """Bound the same from a first to a last round that was played (K,).

        By the events of intervals, and where the window was declared and has just ended by what was
        known at its start, less the margins of its rounds.
        """
        rounds = last + 1 - first
        turns = len(self._players)
        weights = self._weights
        policies = len(self.cohort.policies)
        total = np.zeros(len(weights))
        for turn, player in enumerate(self._players):  # over rounds of its own
            start = len(range(turn, first, turns))
            end = len(range(turn, last + 1, turns))
            bound = player.bias_bound()
            events = player.events
            if start and not events.lengths:
                total += end - start  # no more is proved without what is known at its start
            elif start:
                lengths = list(covering(start, end, events.lengths))
                total += bound.over_window(
                    weights, lengths, run=events.planned_rounds, policies=policies
                )
            elif end:
                of_turn = replace(bound.with_inputs(rounds=end), holds_throughout=True)
                total += end * of_turn.a_priori(weights, policies=policies)
        draws_so_far = self._variance_and_range(self._players, fixed=policies == 0)
        drawn = swap_draws(
            np.minimum(draws_so_far, self._greatest_variance_and_range(rounds)),
            promises=self.promises * (first + 1) * (first + 2),  # over all first rounds
            **self._terms_of_swap_draws,
        )
        expected = np.asarray(total[self.served.protected_index]) + rounds * self.cohort.gap()
        known = None if self.windows is None else self.windows.bound((first, last))
        if known is not None:  # a response's gap is among its margins
            expected = np.fmin(expected, known[self.served.protected_index])
        return np.asarray((expected + drawn) / rounds + self._regret_from_basis)

    def contextual(self) -> Array:
        """Bound each row's realised contextual swap regret per round (K,)."""
        bounds = self._bounds_of(self._players)
        expected = self._summed(bounds, lambda bound: bound.contextual(self._weights))
        actions = self.cohort.loss.actions
        drawn = swap_draws(
            self._variance_and_range(self._players, fixed=False),
            width=self._width,
            actions=actions**2,
            comparators=actions,
            promises=self.promises * len(self.cohort.policies),
        )
        rounds = self._rounds_of(self._players)
        return np.asarray(expected + drawn / rounds + self._regret_from_basis + self.cohort.gap())

    def to_models(self) -> Array:
        """Bound each row's realised regret per round to every model (K,).

        By the least that is known: beforehand, or from variations and margins so far.
        """
        gap = self.cohort.gap()
        bounds = self._bounds_of(self._players)
        rounds = self._rounds_of(self._players)
        expected = self._summed(bounds, lambda bound: bound.to_models(self._weights)) + gap
        sums_of_players = [player.to_models(self.groups[0]) for player in self._players]
        known_sums = [sums for sums in sums_of_players if sums is not None]
        if len(known_sums) == len(sums_of_players):
            of_worst_model = np.sum(known_sums, axis=0).max(1)[self.served.protected_index]
            expected = np.minimum(expected, of_worst_model / rounds)
        drawn = swap_draws(
            self._variance_and_range(self._players, fixed=True),
            width=self._width,
            actions=0,
            comparators=1,
            promises=self.promises,
        )
        return np.asarray(expected + drawn / rounds + self._regret_from_basis)

    def _summed(
        self, bounds: Sequence[RegretBound], regret: Callable[[RegretBound], Array | None]
    ) -> Array:
        """Return the mean over the rounds of what bounds each forecaster's own (K,).

        ``bounds`` has one for each of them.
        """
        total = np.zeros(len(self._weights))
        rounds = 0
        for bound in bounds:
            if bound.inputs.rounds:
                total = total + bound.inputs.rounds * np.asarray(regret(bound))
                rounds += bound.inputs.rounds
        return np.asarray(total[self.served.protected_index] / rounds)

    @staticmethod
    def _is_charged_as_drawn(bound: RegretBound) -> bool:
        """Whether a bound holds for the predictions that were broadcast, not in expectation."""
        return bound.inputs.risk < 1 and not bound.inputs.trusted

    def _regret_from_draws(self, players: Sequence[Stand]) -> Array:
        """Bound what draws add to swap regret, in sum over the rounds (K,)."""
        has_policies = len(self.cohort.policies) > 0
        return swap_draws(
            self._variance_and_range(players, fixed=not has_policies),
            promises=self.promises,
            **self._terms_of_swap_draws,
        )

    @cached_property
    def _terms_of_swap_draws(self) -> dict[str, Any]:
        """What ``swap_draws`` is told of the cohort, beside how many promises there are."""
        actions = self.cohort.loss.actions
        comparators = actions + len(self.cohort.policies)
        return {"actions": actions, "comparators": comparators, "width": self._width}

    def _variance_and_range(self, players: Sequence[Stand], *, fixed: bool) -> Array:
        """Return V and what is sure of draws (2, K), never more than a row's rounds allow."""
        greatest = self._greatest_variance_and_range(self._rounds_of(players))
        if self.cohort.private or self.rounds_beforehand:  # see ``market.game.caveats``
            return greatest
        total: Array | float = 0.0
        for player in players:
            total = total + self._variance_and_range_of_turn(player, fixed=fixed)
        of_rows = np.asarray(total)[:, self.served.protected_index]
        return np.asarray(np.minimum(of_rows, greatest))

    def _variance_and_range_of_turn(self, player: Stand, *, fixed: bool) -> Array:
        """Return V and what is sure of one forecaster's draws, for every protected loss."""
        if not self.losses_are_listed:  # for any losses of such a range
            return np.asarray(player.draws.of_anybody(self._width))
        per_group = [player.draws.of(group, fixed=fixed) for group in self.groups]
        return np.concatenate(per_group, axis=-1)

    def _greatest_variance_and_range(self, rounds: Array | int) -> Array:
        """Return the greatest V and what is sure of so many rounds (2, K)."""
        return np.asarray(rounds * self._variance_and_range_of_round)

    @cached_property
    def _variance_and_range_of_round(self) -> Array:
        """The greatest V and what is sure of one round (2, K)."""
        return np.asarray(np.array([[1.0], [2.0]]) * self._width ** np.array([[2.0], [1.0]]))

    @cached_property
    def _regret_from_basis(self) -> Array:
        """What errors of the basis add to regret per round (K,).

        The gap of a response to the best one is not in it: it is a negative margin, where margins
        are known.
        """
        moved: float | Array = 0.0
        if not exact_for(self.cohort, self.block):
            moved = self.cohort.response.lipschitz * self._distance_to_served
        return np.asarray(2 * self._distance_to_served + moved)

    def _others(self, player: Stand) -> EventSet | None:
        """Return the events that serve losses that are not listed; None where these are."""
        return None if self.losses_are_listed else player.events.others

    @cached_property
    def _weights(self) -> Array:
        return np.concatenate([group.weights for group in self.groups])

    @cached_property
    def _players(self) -> Sequence[UnbiasedPrediction]:
        return self.block.forecaster.instances

    @property
    def _acts_on_broadcast(self) -> bool:
        """Whether its agents are there throughout and act on the prediction that is broadcast."""
        return self.served.attendance.throughout and not self.cohort.private

    def _bounds_of(self, players: Sequence[Stand]) -> list[RegretBound]:
        """Return the bound of each forecaster on its biases."""
        if self.rounds_beforehand is None:
            return [player.bias_bound(self._others(player)) for player in players]
        turns = len(self._players)
        bounds = []
        for turn, player in enumerate(self._players):
            rounds = len(range(turn, self.rounds_beforehand, turns))
            if rounds:
                bounds.append(player.beforehand(rounds))
        return bounds

    def _rounds_of(self, players: Sequence[Stand]) -> Array | int:
        """Return for how many rounds each row was there."""
        rounds = self.rounds_beforehand or sum(player.time for player in players)
        attendance = self.served.attendance
        return rounds if attendance.throughout else stayed(attendance, rounds)

    @cached_property
    def _width(self) -> Array:
        """The range of a row's losses in the basis."""
        n_rows = len(self.cohort.loss)
        return np.asarray(1 + 2 * np.broadcast_to(self._distance_to_served, n_rows))

    @cached_property
    def _distance_to_served(self) -> Array:
        """How far each row's loss is from that by which it is served."""
        cover = self.served.cover
        radius = np.zeros(1)
        if cover is not None:
            radius = cover.radius
            if self.served.loss_of_row is not None:
                radius = radius[self.served.loss_of_row]
        losses = self.cohort.loss
        if self.covered is not None:
            losses = losses[np.flatnonzero(self.covered)]
        return np.asarray(self.block.basis.certified_error(losses) + radius)


def promise_to_anybody(served: ServedCohort, block: Block, promises: int) -> Guarantee | None:
    """Say what a cohort is promised whatever its losses are; None where that is nothing.

    It hears the forecast and plays the best response of its own losses, with actions alone as
    comparators.
    """
    cohort = served.cohort
    players = block.forecaster.instances
    if cohort.unguided or not players or len(cohort.policies) or players[0].events.others is None:
        return None
    is_best_response = cohort.response.protected() == {"eta": None, "tie": 0.0}
    if not cohort.expects_own or not is_best_response or not exact_for(cohort, block):
        return None
    by_own_losses = replace(served, cover=None, loss_of_row=None)
    groups = [ProtectedLosses(*cohort.coefficients)]
    stays = follow_stays(by_own_losses, block, groups, losses_are_listed=False)
    terms = Terms(by_own_losses, block, groups, promises, losses_are_listed=False, stays=stays)
    return Guarantee(
        label="decision-swap",
        bound=terms.bound,
        covers=served.hears_at_once(),
        from_variation=terms.from_variation,
        take_note=terms.take_note,
    )


def stayed(attendance: Attendance, rounds: int) -> Array:
    """Return for how many rounds each row was there (K,); NaN before its first."""
    spent = np.asarray(attendance.spent(rounds))
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
        own_span = span.turn(turn, len(bounds))
        own_left = np.minimum(own_span.left, bound.inputs.rounds)
        stays = np.stack([own_span.entered, own_left], axis=1)
        distinct_stays, stay_of_row, sizes = np.unique(
            stays, axis=0, return_inverse=True, return_counts=True
        )
        rows_by_stay = np.argsort(stay_of_row.ravel(), kind="stable")
        rows_of_stays = np.split(rows_by_stay, np.cumsum(sizes)[:-1])
        for (first, end), rows in zip(distinct_stays.tolist(), rows_of_stays, strict=True):
            if first < end:
                until_end = replace(bound.with_inputs(rounds=end), holds_throughout=True)
                regret = until_end.over_stay(weights[rows], joined=first, policies=policies)
                total[rows] += np.nan if regret is None else (end - first) * regret
    return np.asarray(total / stayed(span, sum(bound.inputs.rounds for bound in bounds)))


def unproved(served: ServedCohort, block: Block) -> str:
    """Say why no theorem covers a cohort that hears this block; empty where one does."""
    cohort = served.cohort
    if cohort.unguided:
        return str(cohort.unguided)
    if not block.forecaster.instances:
        return "no theorem covers this forecaster"
    if served.misreports:
        return "agents report other losses than their own"
    if served.cover is not None and cohort.representative_of is None:
        return "agents act on their own losses, and representatives are protected"
    hears_label = cohort.response.hears_label
    if hears_label and not block.basis.convex_image:
        return (
            f"labels of block {block.name} are not the outcomes s^-1(p) of its predictions (the "
            'image of s is curved); response = "ensemble" has one'
        )
    is_smooth = math.isfinite(cohort.response.lipschitz)
    if not is_smooth and (hears_label or not exact_for(cohort, block)):
        return "rounding and errors of the basis move best responses to what it hears"
    return ""


def unbounded(
    served: ServedCohort, player: UnbiasedPrediction, *, has_windows: bool
) -> Iterator[str]:
    """Yield why regrets that a run measures have no bound although a theorem covers the cohort.

    ``has_windows`` says whether windows of rounds were declared, whose regrets are measured too.
    """
    cohort = served.cohort
    events = player.events
    no_bound = f"{cohort.name}: no bound on"
    if not events.joinable and (served.attendance.entered > 0).any():
        reason = "an old gain far below zero may be regained (bound_from_variation counts it)"
        yield f"{cohort.name}: no bound beforehand for agents who enter later, since {reason}"
    measures_contextual = "contextual_swap" in cohort.ledger.measures
    if measures_contextual and cohort.policies and not events.crossed:
        yield f'{no_bound} contextual swap regret, which needs events = "coordinates"'
    if served.attendance.throughout:
        return
    regrets = []
    if player.models:
        regrets.append("regret to models")
    if events.lengths or has_windows:
        regrets.append("windows")
    if measures_contextual:
        regrets.append("contextual swap regret")
    if regrets:
        yield f"{no_bound} {' and '.join(regrets)} of agents who enter or leave"


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


def _note_on_late_news(served: ServedCohort) -> Iterator[str]:
    """Yield how many agents no theorem covers, since others pass the forecast on to them."""
    cohort = served.cohort
    hears_at_once = served.hears_at_once()
    if hears_at_once is None or hears_at_once.all():
        return
    late_agents = int(cohort.counts[~hears_at_once].sum())
    yield (
        f"{cohort.name}: no guarantee for {late_agents:,} of {cohort.population:,} agents, "
        "who hear the forecast late or never"
    )


def _notes(served: ServedCohort) -> Iterator[str]:
    """Yield how many representatives serve how many losses, and that losses are on disk."""
    cohort = served.cohort
    cover = served.cover
    weights = cohort.loss.lead
    if cover is not None:
        yield (
            f"{cohort.name}: {cohort.population:,} agents with {len(cover.representative_of):,} "
            f"losses served through {len(cover.offset):,} representatives within "
            f"{cover.radius.max():.3g}"
        )
    if is_mapped(weights):
        yield f"{cohort.name}: {weights.nbytes / 1e9:.3g} GB of losses are mapped from disk"
