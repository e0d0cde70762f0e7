"""Unbiased-Prediction (Noarov, Ramalingam, Roth and Xie; the paper's appendix).

Every round: weigh the events by their gains so far, solve the min-max game that those weights
define, play the mixture; then add the round's expected gains. Four parts go with one another:

    events      EventSet     what has no bias: ``VectorEvents``, ``GainEvents``, sums, intervals
    rule        WeightRule   how gains become weights, and the bound: events are made with it
    solver      HullSolver   where predictions lie: box, simplex, conv s(Y); with an objective
    reference   Reference    a model that is broadcast while it is good, and the test of it

The paper's algorithms (``DecisionSwap`` and its sisters) are that on the decision and cross events
of the losses to protect. The constant policies need no cross events: the decision events already
bound swap regret.

**Tolerance.** A round's game is solved until its certificate is at most

    tolerance(t) = min( 0.05 / sqrt(t), 1.5 / t ),        rounds t counted from 1.

so that the sum S of the positive certificates, which stands inside Lambda beside ln N
(docs/theory.md, 4), is at most 0.05 (2 sqrt(T) - 1) for T <= 900, and 1.5 ln T - 7.25 beyond, as
1 / sqrt(t) <= 2 sqrt(t) - 2 sqrt(t - 1) and 1 / t <= ln t - ln(t - 1).

Less gains nothing that can be measured (the page of decisions). A solver that gives up logs the
certificate that it has, and bounds count what was logged.
"""

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.draws import Draws
from regretless.forecaster.events.loss_table import Played, ProtectedLosses, played_of
from regretless.forecaster.events.stays import StayRecord, WindowRecord
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.minimax.cube import Box, cube
from regretless.forecaster.minimax.game import HullSolver, Solution
from regretless.forecaster.reference import PLAIN, Band, Reference
from regretless.forecaster.standing import Standing
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import BoundInputs, Moment, WeightRule, rule_of
from regretless.market.best_response import SmoothResponse, best_response, expected_losses
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.delegated import Delegated
from regretless.market.core.errors import ParameterError, UserError, brief
from regretless.market.core.own_code import is_ours, read_only
from regretless.market.core.randomness import stream
from regretless.market.core.validation import (
    check_int,
    check_outcome,
    check_positive,
    check_unit_vector,
)
from regretless.market.game.protocols import Forecaster
from regretless.market.losses import Linear, Loss
from regretless.market.losses.basis import Basis, checked_basis
from regretless.market.records import Forecast, Mixture, Policy, RoundFeedback

EARLY_TOLERANCE = 0.05  # times 1 / sqrt(t)
LATE_TOLERANCE = 1.5  # times 1 / t
LAST_EARLY_ROUND = round((LATE_TOLERANCE / EARLY_TOLERANCE) ** 2)  # 900, where the two meet
ROUNDING = 1e-12  # of sums
MAX_EXPERTS_OF_EXCERPT = 100_000  # some megabytes: of more events bounds are worked out at once


def tolerance_at(time: int) -> float:
    """Return the certificate that is let pass in a round, counted from 1."""
    return min(EARLY_TOLERANCE / math.sqrt(time), LATE_TOLERANCE / time)


def certificate_limit(rounds: int) -> float:
    """Bound S after T >= 1 rounds, if the solver never gives up.

    Examples
    --------
    >>> [round(certificate_limit(rounds), 2) for rounds in (1, 64, 1000, 1_000_000)]
    [0.05, 0.75, 3.11, 13.47]
    """
    early_sum = EARLY_TOLERANCE * (2 * math.sqrt(min(rounds, LAST_EARLY_ROUND)) - 1)
    return early_sum + LATE_TOLERANCE * math.log(max(rounds / LAST_EARLY_ROUND, 1.0))


@compiled()
def surprise_of(play_chance: Array, bias: Array, coefficients: Array, statistics: Array) -> float:
    """Return s / m, of all losses together, 0 where m is 0 (compiled).

    s is by how much losses exceed what best responses expect, and m by how much they could fall
    short of it at the best outcome. With r the coefficients, q the chances and B the biases of
    rows, and g = sum_r q_r r the slopes of all losses together,

        s = -sum_r <B_r, r>,    m = <g, s(y)> - sum_i min(g_i, 0) - s.

    Parameters
    ----------
    play_chance : array (R,)
        q.
    bias : array (R, n)
        B, zero for rows that nobody plays.
    coefficients : array (R, n)
        r.
    statistics : array (n,)
        s(y).
    """
    slopes = np.zeros(statistics.shape[0])
    excess_of_losses = 0.0
    for r in range(play_chance.shape[0]):
        if play_chance[r] > 0.0:
            for i in range(statistics.shape[0]):
                slopes[i] += play_chance[r] * coefficients[r, i]
                excess_of_losses -= bias[r, i] * coefficients[r, i]
    greatest_shortfall = -excess_of_losses
    for i in range(statistics.shape[0]):
        greatest_shortfall += slopes[i] * statistics[i] - min(slopes[i], 0.0)
    if greatest_shortfall <= ROUNDING:
        return 0.0
    return excess_of_losses / greatest_shortfall


class UnbiasedPrediction(Checkpointable, Forecaster):
    """Predicts vectors in [0, 1]^n without bias on a set of events.

    Parameters
    ----------
    events : EventSet
    solver : HullSolver, optional
        Solves the rounds' games; over the box by default.
    reference : Reference, optional
        A model whose forecast is broadcast as it is where it is good. The events then are for as
        many models as it is made of.
    basis : Basis, optional
        Of the vectors: ``observe`` and the labels of a mixture need it.
    seed : int
        For ``predict``, which draws from the mixture by itself.

    Attributes
    ----------
    certificate_sum, time : float, int
        Sum of the positive certificates so far, and rounds learned.
    draws : Draws
        What is known of the draws of all protected losses.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("events", "draws", "certificate_sum", "time", "solver", "rng", "_own_reference"),
        *("_log_potential_at_start", "_log_variation_at_start", "stays"),
    )

    def __init__(
        self,
        events: EventSet,
        solver: HullSolver | None = None,
        reference: Reference | None = None,
        *,
        basis: Basis | None = None,
        seed: int = 0,
    ) -> None:
        check_int("seed", seed, least=0)
        check_parts(events, solver, reference, basis)
        self.events = events
        self.reference = reference
        self.basis = basis
        self.solver = solver or Box(events.size)
        self.models: tuple[str, ...] = ()  # names of those that the reference is made of (M,)
        self.switch_test: SwitchTest | None = None  # of the reference, unless it is never trusted
        if reference is not None:
            self.models = reference.model.made_of
            self.switch_test = reference.make_switch_test(events.alarms)
        self.draws = Draws(events.rows)
        self.rng = stream(seed, "forecaster")
        self.certificate_sum = 0.0  # S, of the positive certificates of all rounds
        self.time = 0  # rounds learned
        # At the first game: the logarithm of the mean potential, and the mean logarithm of 1 + the
        # variations until then, which later bounds deduct.
        self._log_potential_at_start: float | None = None
        self._log_variation_at_start = 0.0
        # The round that is open: its active events, which the event set alone reads, and the
        # solution of its game. None before a prediction.
        self._pending: tuple[Any, Solution] | None = None
        # The best response of every loss to each model's prediction of that round (K, M).
        self._suggestions_of_models: Indices | None = None
        self._drawn_atom: int | None = None  # index of the prediction that was broadcast, if known
        self._outcome: Array | None = None  # y (d,) of the round that ``update`` learns, if known
        self.instances = (self,)  # it takes turns with nobody
        is_small = events.experts <= MAX_EXPERTS_OF_EXCERPT
        self._offers_excerpts = is_small and is_ours(type(self)) and is_ours(type(events.rule))
        # what agents gain in the rounds in which they take part, and in windows
        self.stays: list[StayRecord | WindowRecord] = []

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if self._log_potential_at_start is not None:
            self._log_potential_at_start = float(self._log_potential_at_start)

    has_ensembles = Delegated("solver")
    prefer = Delegated("solver")
    event_table = Delegated("events", "table")

    @property
    def ignores_draws(self) -> bool:  # type: ignore[override]
        # A model, a policy, an objective and a user's own part may have a memory of its own.
        parts = (type(self), self.events, self.events.rule, self.solver)
        if self.reference is not None or self.solver.preferring or not all(map(is_ours, parts)):
            return False
        return self.events.rows.is_fixed and not self.events.charges_broadcast_predictions

    @property
    def _own_reference(self) -> Reference | None:
        """The reference, unless it is shared with other turns, who remember it together."""
        return None if self.reference is None or self.reference.turns > 1 else self.reference

    @property
    def points(self) -> Array:
        return np.empty((0, 0)) if self.reference is None else self.reference.model.points

    @property
    def band(self) -> Band:
        """What is not weighed of the gains."""
        return PLAIN if self.reference is None else self.reference.band

    @property
    def trusting(self) -> bool:
        """Whether a reference is trusted still."""
        return self.reference is not None and self.reference.trusted

    def mixture(self, x: object = None) -> Mixture:
        if self._log_potential_at_start is None:
            self._note_start_of_games()
        reference = self.reference
        reference_solution = None
        if reference is not None:
            reference_solution = self.solver.single(reference.advise(x, self.events.size))
        suggestions = None
        if self.models:
            suggestions = self.events.rows.best_responses(self.points)
        self._suggestions_of_models = suggestions
        active_events = self.events.active(x, suggestions)
        if reference_solution is not None and self.trusting and not self.solver.preferring:
            solution = reference_solution
        else:
            solution = self._solve_game(active_events, reference_solution)
        self._pending = active_events, solution
        return Mixture(
            solution.points,
            solution.mass,
            solution.certificate,
            ensembles=solution.ensembles,
            basis_of_labels=self.basis,
        )

    def _solve_game(self, active_events: Any, reference_solution: Solution | None) -> Solution:
        """Weigh the events that can happen and solve the min-max game of their weights.

        The reference's own forecast is a candidate, unless it was disproved before it had shown
        anything: where it is good enough, it is broadcast unchanged.
        """
        time = self.time + 1
        events = self.events
        candidate = reference_solution
        band = PLAIN
        if self.reference is not None:
            band = self.reference.band
            if self.reference.early:
                candidate = None
        signed_weights = events.table_of(active_events, Moment(time, events.experts, band))
        return self.solver.solve(
            events.rows, signed_weights, tolerance=tolerance_at(time), candidate=candidate
        )

    def _note_start_of_games(self) -> None:
        """Note from which potential the games begin, once no reference is trusted any more."""
        if self._log_potential_at_start is not None or self.trusting:
            return
        experts = self.events.experts
        if self.time:
            self._log_variation_at_start = self.events.sum_of_log_variations() / experts
        self._log_potential_at_start = self.events.log_potential(self.band) - math.log(experts)

    def predict(self, x: object = None) -> Forecast:
        forecast = super().predict(x)
        self._drawn_atom = forecast.index
        return forecast

    def observe(self, feedback: RoundFeedback) -> None:
        self._drawn_atom = feedback.drawn
        self._outcome = feedback.outcome
        statistics = feedback.statistics
        if not self._update_is_ours:
            statistics = read_only(statistics)
        self.update(statistics)

    @cached_property
    def _update_is_ours(self) -> bool:
        """Whether the method that learns s(y) comes with this project."""
        return is_ours(self.update)

    def suggested(self, group: Any) -> Indices:
        if self._pending is None:
            raise UserError("no round is open; call mixture or predict first")
        rows = self.events.rows
        if group in self.events.groups:  # groups are equal only where they are the same
            if self._suggestions_of_models is None:
                return rows.best_responses(self.points)[rows.losses(group)]
            return self._suggestions_of_models[rows.losses(group)]
        responses = [
            best_response(expected_losses(group.offset, group.weights, point))
            for point in self.points
        ]
        return np.stack(responses, axis=1)

    def update(self, y: ArrayLike) -> None:
        if self._pending is None:
            raise UserError("update before a prediction; call mixture or predict first")
        statistics = check_outcome("y", y)  # s(y), of the outcome that ``observe`` may have told
        self.solver.check(statistics)
        active_events, solution = self._pending
        outcome = self._outcome
        drawn_atom = self._drawn_atom
        self._pending = None
        self._outcome = None
        self._drawn_atom = None

        reference = self.reference
        reference_is_trusted = reference is not None and reference.trusted
        played = self._play_of_round(
            solution, statistics, drawn_atom, reference_is_trusted=reference_is_trusted
        )
        if len(solution.mass) > 1:
            self.draws.add(played.play_chance, played.realised_losses, solution.mass)
        self.events.charge(active_events, played)
        certificate = solution.certificate
        if certificate is not None and certificate > 0.0:
            self.certificate_sum += certificate
        self.solver.remember(solution)
        self.time += 1
        if reference is not None:
            evidence = {}
            if reference_is_trusted:
                evidence = self._evidence_against_reference(active_events, played)
            # The reference counts the rounds in which its forecast was broadcast unchanged.
            reference.learn(statistics, outcome, unchanged=solution.unchanged, **evidence)
        # A stay is the rounds in which an agent takes part. The bound costs time, and a record asks
        # for it only where somebody leaves in this round. The reference has judged the round first:
        # in the round in which it is given up a bias may be above the limit of one that is trusted.
        for record_of_stays in self.stays:
            record_of_stays.note(self.time, partial(self.known_bound, record_of_stays.events))

    def _play_of_round(
        self,
        solution: Solution,
        statistics: Array,
        drawn_atom: int | None,
        *,
        reference_is_trusted: bool,
    ) -> Played:
        """Return how the losses' owners played, in expectation, and the biases.

        Events that charge what was broadcast are told how they played as drawn, too.
        ``statistics`` is s(y) (n,), ``drawn_atom`` the index of what was broadcast, if it is known.
        """
        rows = self.events.rows
        expected = played_of(
            rows,
            solution.points,
            solution.mass,
            statistics,
            reference_is_trusted=reference_is_trusted,
        )
        if not self.events.charges_broadcast_predictions:
            return expected
        if len(solution.mass) == 1:
            return expected.with_drawn(expected)
        if drawn_atom is None:
            return expected
        drawn_point = solution.points[[drawn_atom]]
        broadcast = played_of(
            rows, drawn_point, np.ones(1), statistics, reference_is_trusted=reference_is_trusted
        )
        return expected.with_drawn(broadcast)

    def _evidence_against_reference(self, active_events: Any, played: Played) -> dict[str, Any]:
        """Return what the switch test says of a round in which the reference was trusted."""
        assert self.reference is not None  # noqa: S101 - it is trusted
        assert self.switch_test is not None  # noqa: S101 - a reference that is trusted has a test
        _points, _mass, statistics = played.distribution
        surprise = surprise_of(
            played.play_chance, played.bias, self.events.rows.weights, statistics
        )
        # Whether a regret is doubtful matters, and is asked, only beside bets that may convince.
        is_doubtful = self.reference.may_convince(surprise) and self.events.exceeds(
            active_events, self.switch_test, hint=True
        )
        return {
            "surprise": surprise,
            "beyond": self.events.exceeds(active_events, self.switch_test),
            "doubtful": is_doubtful,
        }

    def learn_outcome(self, outcome: ArrayLike) -> None:
        """Learn the outcome (d,); the forecaster knows its basis."""
        if self.basis is None:
            raise UserError("learn_outcome needs the basis that is predicted; use update with s(y)")
        realised_outcome = check_unit_vector("outcome", outcome, self.basis.outcomes)
        self.update(self.basis.transform(realised_outcome))

    def __repr__(self) -> str:
        kind = f"{type(self).__name__}: {self.events.size} numbers, {self.events.rule.name} weights"
        return f"<{kind}, round {self.time}>"

    def described(self) -> dict[str, Any]:
        return {} if self.reference is None else self.reference.described()

    @property
    def latest(self) -> Mixture | None:
        origin = self.solver.origin
        return Mixture(origin.points, np.ones(1), ensembles=origin.ensembles)

    def event_bounds(self, occupancy: Array) -> tuple[Array, Array] | None:
        return self.bias_bound().event_bounds(occupancy)

    def standing(self) -> Standing:
        """Return where it stands now: what its bounds are worked out from."""
        inputs = BoundInputs(
            experts=self.events.experts,
            rounds=self.time,
            certificate_sum=self.certificate_sum,
            band=self.band,
            switch_test=self.switch_test,
            trusted=self.trusting,
        )
        return Standing(
            self.events,
            self.draws,
            self.solver.hull,
            inputs,
            self._log_potential_at_start,
            self._log_variation_at_start,
        )

    def excerpt(self) -> Standing | None:
        """Return where it stands now, for who reads its bounds later; None if it cannot be kept.

        Large sums are not copied, and of a user's own part nobody knows on what its bounds depend.
        """
        if not self._offers_excerpts:
            return None
        self._note_start_of_games()
        return self.standing().excerpt()

    def bias_bound(self, events: EventSet | None = None) -> RegretBound:
        """Bound every event's bias so far; of ``others`` among the events, theirs."""
        return self.standing().bias_bound(events)

    def known_bound(self, events: EventSet | None = None) -> RegretBound:
        """Bound every event's bias, with what is known of all variations so far."""
        self._note_start_of_games()
        return self.standing().known_bound(events)

    def beforehand(self, rounds: int) -> RegretBound:
        """Bound every event's bias after so many rounds, if the solver meets its tolerance."""
        certificate_sum = max(self.certificate_sum, certificate_limit(rounds))
        return self.bias_bound().with_inputs(
            rounds=rounds, certificate_sum=certificate_sum, trusted=False
        )

    def from_variation(self, group: ProtectedLosses, events: EventSet | None = None) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,) so far.

        By ``events`` that are ``others``, of losses that are not listed.
        """
        return (events or self.events).from_variation(self.known_bound(events), group)

    def to_models(self, group: ProtectedLosses) -> Array | None:
        """Bound the sum of expected regret of a group's losses to each model so far (K, M)."""
        return self.events.to_models(self.known_bound(), group)

    def follow(
        self,
        group: ProtectedLosses,
        losses: Indices,
        *,
        entered: Indices,
        left: Indices,
        events: EventSet | None = None,
    ) -> StayRecord:
        """Record from now on what the stays of agents with some of a group's losses gain.

        The rounds are this forecaster's own, and ``events`` those that serve losses that are not
        listed. ValueError once a round was played.
        """
        if self.time:
            raise ValueError("stays are followed from the first round on; call follow before it")
        record = StayRecord(events or self.events, group, losses, entered=entered, left=left)
        self.stays.append(record)
        return record

    def follow_windows(
        self, group: ProtectedLosses, spans: Sequence[tuple[int, int]]
    ) -> WindowRecord:
        """Record from now on what a group's losses gain in windows of this forecaster's rounds.

        ValueError once a round was played.
        """
        if self.time:
            raise ValueError("windows are followed from the first round on; call it before that")
        record = WindowRecord(self.events, group, spans)
        self.stays.append(record)
        return record

    def over_stays(self, record: StayRecord) -> Array:
        """Bound the sum of expected decision swap regret of every recorded stay so far (k,)."""
        return record.bound(self.time, partial(self.known_bound, record.events))

    def realised(self, group: ProtectedLosses) -> Array | None:
        """Bound the sum of decision swap regret (K,) of who acts on what was broadcast, or None."""
        if not self.events.charges_broadcast_predictions:
            return None
        return self.events.realised(self.known_bound(), group)


def check_parts(events: Any, solver: Any, reference: Any, basis: Any) -> None:
    """Raise ParameterError unless each part of a forecaster is one; None stands for no part."""
    if not isinstance(events, EventSet):
        raise ParameterError(f"events = {brief(events)}: give an EventSet, such as VectorEvents")
    if solver is not None and not isinstance(solver, HullSolver):
        raise ParameterError(f"solver = {brief(solver)}: give a solver of forecaster.minimax")
    if reference is not None and not isinstance(reference, Reference):
        raise ParameterError(f"reference = {brief(reference)}: give a Reference of a model")
    if basis is not None:
        checked_basis(basis)


def checked_losses(losses: Any, kind: type[Loss] = Loss) -> list[Any]:
    """Return the losses to protect as a list; ParameterError unless all are of a kind and fit."""
    protected = list(losses) if isinstance(losses, list | tuple) else [losses]
    cure = f"give a list of {kind.__name__} losses of market.losses, at least one"
    if not protected or not all(isinstance(loss, kind) for loss in protected):
        raise ParameterError(f"losses = {brief(losses)}: {cure}")
    numbers_of_outcomes = sorted({loss.outcomes for loss in protected})
    if len(numbers_of_outcomes) > 1:
        numbers = " and ".join(map(str, numbers_of_outcomes))
        raise ParameterError(f"losses are of {numbers} outcomes; give losses of equally many")
    return protected


def checked_policies(policies: Any) -> list[Policy]:
    """Return benchmark policies as a list; ParameterError unless each can be called."""
    if not isinstance(policies, list | tuple) or not all(map(callable, policies)):
        cure = "give a list of functions, from a context to the number of an action"
        raise ParameterError(f"policies = {brief(policies)}: {cure}")
    return list(policies)


def coefficients_of(basis: Basis, losses: Sequence[Loss]) -> list[tuple[Array, Array]]:
    """Return each loss's offset and weights; ParameterError where the basis does not span it."""
    try:
        return [basis.coefficients(loss) for loss in losses]
    except ValueError as error:
        raise ParameterError(f"losses: {error}; give another basis") from error


class DecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with linear losses who best-respond.

    Parameters
    ----------
    losses : sequence of Linear
        The losses it protects, each single (A, d) or a stack (K, A, d), in [0, 1].
    policies : sequence of callables
        Benchmark policies, each from a context to an action index.
    weights : "adaptive", "second-order", "exponential", or a WeightRule
    horizon : int or None
        For the exponential rate.
    """

    def __init__(
        self,
        losses: Sequence[Linear],
        policies: Sequence[Policy] = (),
        *,
        weights: str | WeightRule = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        coefficients = [(loss.offset, loss.weights) for loss in checked_losses(losses, Linear)]
        groups = protected_groups(coefficients, checked_policies(policies))
        super().__init__(VectorEvents(groups, rule_of(weights, horizon)), seed=seed)


class SmoothDecisionSwap(UnbiasedPrediction):
    """No decision swap regret beyond their gap for naive agents whose response is smooth.

    Without a basis the losses are linear and it predicts the outcome itself. With one it is the
    paper's algorithm for naive agents: it predicts s(y), and every prediction comes with its label
    forecast s^-1(p). ValueError if the basis's image {s(y)} is not convex, which that needs, or if
    not exactly one of eta and response is given.

    Parameters
    ----------
    losses : sequence of loss forms
        Each single or a stack; ``Linear`` without a basis. The rest is as in ``DecisionSwap``.
    eta : float or None
        Smoothness of agents who play quantal, at an excess of at most ln(A) / eta;
        ``bounds.recommended_eta`` balances it against the basis's error.
    response : SmoothResponse or None
        Another rule.
    basis : Basis, optional
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        policies: Sequence[Policy] = (),
        *,
        eta: float | None = None,
        response: SmoothResponse | None = None,
        basis: Basis | None = None,
        weights: str | WeightRule = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        if (eta is None) == (response is None):
            raise ParameterError("eta, response: give exactly one of them")
        if eta is not None:
            check_positive("eta", eta)
        if response is not None and not callable(getattr(response, "play", None)):
            raise ParameterError(f"response = {brief(response)}: give a SmoothResponse")
        form = Linear if basis is None else Loss  # of s(y) = y only linear losses are linear
        losses = checked_losses(losses, form)
        policies = checked_policies(policies)
        basis = LinearBasis(losses[0].outcomes) if basis is None else checked_basis(basis)
        if not basis.convex_image:
            raise ParameterError(
                f"basis: the image of {type(basis).__name__} is curved, so that a prediction of "
                "s(y) has no label forecast; broadcast ensembles, or use NonLinearDecisionSwap"
            )
        coefficients = coefficients_of(basis, losses)
        if response is None:
            groups = protected_groups(coefficients, policies, eta=eta)
        else:
            groups = protected_groups(coefficients, policies, play=response.play)
        super().__init__(VectorEvents(groups, rule_of(weights, horizon)), basis=basis, seed=seed)


class NonLinearDecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with any losses that a basis spans.

    It predicts s(y), and ``update`` takes s(y); ``observe`` takes the outcome itself. ``losses``
    are single or stacks; the rest is as in ``DecisionSwap``.
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        basis: Basis,
        policies: Sequence[Policy] = (),
        *,
        weights: str | WeightRule = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        coefficients = coefficients_of(checked_basis(basis), checked_losses(losses))
        groups = protected_groups(coefficients, checked_policies(policies))
        events = VectorEvents(groups, rule_of(weights, horizon))
        super().__init__(events, cube(basis.size, basis.hull), basis=basis, seed=seed)


def protected_groups(
    coefficients: Sequence[tuple[Array, Array]], policies: Sequence[Policy], **response: Any
) -> list[ProtectedLosses]:
    """Collect losses with equal numbers of actions into one group each.

    ``coefficients`` are offset and weights of each loss: (A,) with (A, n) of one, (K, A) with
    (K, A, n) of a stack. ``response`` are the fields of ``ProtectedLosses`` that say how the
    losses' owners respond.
    """
    offsets_by_actions: dict[int, list[Array]] = {}
    weights_by_actions: dict[int, list[Array]] = {}
    for offset, weights in coefficients:
        n_actions = offset.shape[-1]
        stacked_weights = weights.reshape(-1, *weights.shape[-2:])
        offsets_by_actions.setdefault(n_actions, []).append(np.atleast_2d(offset))
        weights_by_actions.setdefault(n_actions, []).append(stacked_weights)
    groups = []
    for n_actions, offsets in offsets_by_actions.items():
        group_weights = np.concatenate(weights_by_actions[n_actions])
        groups.append(ProtectedLosses(np.concatenate(offsets), group_weights, policies, **response))
    return groups
