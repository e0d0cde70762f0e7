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
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.cost_of_draws import Draws
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, played_of
from regretless.forecaster.events.stays import StayRecord
from regretless.forecaster.events.weights import Moment, rule_of
from regretless.forecaster.minimax.cube import Box, cube
from regretless.forecaster.minimax.game import HullSolver, Solution
from regretless.forecaster.reference import PLAIN, Band, Reference
from regretless.market.best_response import SmoothResponse
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.core.errors import ParameterError, brief
from regretless.market.core.randomness import stream
from regretless.market.core.validation import check_int, check_positive
from regretless.market.game.protocols import Forecaster
from regretless.market.losses import Linear, Loss
from regretless.market.losses.basis import Basis
from regretless.market.records import Forecast, Mixture, Policy

EARLY, LATE = 0.05, 1.5
START = round((LATE / EARLY) ** 2)  # 900, where the two meet
ROUNDING = 1e-12  # of sums


def tolerance_at(time: int) -> float:
    """Return the certificate that is let pass in a round, counted from 1."""
    return min(EARLY / math.sqrt(time), LATE / time)


def certificate_limit(rounds: int) -> float:
    """Bound S after T >= 1 rounds, if the solver never gives up.

    Examples
    --------
    >>> [round(certificate_limit(rounds), 2) for rounds in (1, 64, 1000, 1_000_000)]
    [0.05, 0.75, 3.11, 13.47]
    """
    early = EARLY * (2 * math.sqrt(min(rounds, START)) - 1)
    return early + LATE * math.log(max(rounds / START, 1.0))


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
        *("_start", "_spent", "stays"),
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
        self.events, self.reference, self.basis = events, reference, basis
        self.solver = solver or Box(events.size)
        self.models = () if reference is None else reference.model.made_of
        self.trust = None if reference is None else reference.trust(events.alarms)
        self.draws, self.rng = Draws(events.rows), stream(seed, "forecaster")
        self.certificate_sum, self.time = 0.0, 0
        # Logarithm of the mean potential, and mean logarithm, at the first game.
        self._start: float | None = None
        self._spent = 0.0
        self._pending: tuple[Any, Solution] | None = None  # the round whose outcome is to come
        self._drawn: int | None = None
        self.instances = (self,)
        self.stays: list[StayRecord] = []  # of agents that come and go

    spelled = Delegated("solver")
    prefer = Delegated("solver")
    event_table = Delegated("events", "table")

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
        self._settle()
        events, rows, time, solution = self.events, self.events.rows, self.time + 1, None
        if self.reference is not None:
            solution = self.solver.single(self.reference.advise(x, events.size))
        suggestions = rows.best_responses(self.points) if self.models else None
        active = events.active(x, suggestions)
        if solution is None or not self.trusting or self.solver.preferring:
            candidate = None if self.reference is None or self.reference.early else solution
            table = events.table_of(active, Moment(time, events.experts, self.band))
            told: dict[str, Any] = {"tolerance": tolerance_at(time), "candidate": candidate}
            solution = self.solver.solve(rows, table, **told)
        self._pending = active, solution
        labels = None if self.basis is None else self.basis.inverse(solution.points)
        atoms = solution.points, solution.mass, solution.certificate
        return Mixture(*atoms, labels=labels, ensembles=solution.ensembles)

    def _settle(self) -> None:
        """Note from which potential the games begin, once no reference is trusted any more."""
        if self._start is not None or self.trusting:
            return
        experts = self.events.experts
        if self.time:
            self._spent = self.events.spent() / experts
        self._start = self.events.log_potential(self.band) - math.log(experts)

    def predict(self, x: object = None) -> Forecast:
        forecast = super().predict(x)
        self.drew(forecast.index)
        return forecast

    def drew(self, index: int) -> None:
        self._drawn = index

    def observe_outcome(self, outcome: Array) -> None:
        if self.reference is not None:
            self.reference.model.observe_outcome(outcome)

    def suggested(self, group: Any) -> Indices:
        if self._pending is None:
            raise ValueError("no round is open; call mixture or predict first")
        rows = self.events.rows
        if any(listed is group for listed in self.events.groups):
            return rows.best_responses(self.points)[rows.losses(group)]
        apart = ProtectedLosses(group.offset, group.weights)
        return LossTable([apart]).best_responses(self.points)

    def update(self, y: ArrayLike) -> None:
        if self._pending is None:
            raise ValueError("update before a prediction; call mixture or predict first")
        truth = np.asarray(y, dtype=np.float64)
        self.solver.check(truth)
        (active, solution), self._pending = self._pending, None
        drawn, self._drawn, rows, mass = self._drawn, None, self.events.rows, solution.mass
        came = rows.offset + rows.times(truth) if self.trusting else None
        played = played_of(rows, solution.points, mass, truth)._replace(losses=came)
        if len(mass) == 1:
            played = played._replace(drawn=played)
        elif self.events.drawn and drawn is not None:
            one = played_of(rows, solution.points[[drawn]], np.ones(1), truth)
            played = played._replace(drawn=one._replace(losses=came))
        if len(mass) > 1:
            self.draws.add(played.seen, truth, mass)
        self.events.charge(active, played)
        self.certificate_sum += max(solution.certificate or 0.0, 0.0)
        self.solver.remember(solution)
        self.time += 1
        for record in self.stays:
            record.note(self.time, partial(self.known_bound, record.events))
        if self.reference is None:
            return

        evidence: dict[str, Any] = {"unchanged": solution.unchanged}
        if self.trust is not None and came is not None:
            # s_t / m_t, in the terms of ``switch_test``
            cost, slopes = -float((played.bias * rows.weights).sum()), played.seen @ rows.weights
            most = float(slopes @ truth - np.minimum(slopes, 0.0).sum()) - cost
            evidence["surprise"] = cost / most if most > ROUNDING else 0.0
            evidence["beyond"] = self.events.exceeds(active, self.trust)
            evidence["doubtful"] = self.events.exceeds(active, self.trust, hint=True)
        self.reference.learn(truth, **evidence)

    def observe(self, outcome: ArrayLike) -> None:
        """Learn the outcome (d,); the forecaster knows its basis."""
        if self.basis is None:
            raise ValueError("observe needs the basis that is predicted; use update with s(y)")
        self.update(self.basis.transform(outcome))

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
        return self.bias_bound().of_events(occupancy)

    def bias_bound(self, events: EventSet | None = None) -> BiasBound:
        """Bound on every event's bias so far; of ``others`` among the events, on theirs."""
        counts = self.events.experts, self.time, self.certificate_sum, self.band, self.trust
        known: dict[str, Any] = {"hull": self.solver.hull, "trusted": self.trusting}
        stand = BiasBound(self.events.rule, *counts, **known)
        return (events or self.events).bound(stand)

    def known_bound(self, events: EventSet | None = None) -> BiasBound:
        """Bound on every event's bias, with what is known of all variations so far."""
        self._settle()
        spent = self.events.spent() / self.events.experts - self._spent
        return replace(self.bias_bound(events), start=self._start, spent=spent)

    def beforehand(self, rounds: int) -> BiasBound:
        """Bound every event's bias after so many rounds, if the solver meets its tolerance."""
        most = max(self.certificate_sum, certificate_limit(rounds))
        return replace(self.bias_bound(), rounds=rounds, certificate_sum=most, trusted=False)

    def from_variation(self, group: ProtectedLosses, events: EventSet | None = None) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,) so far.

        By ``events`` that are ``others``, of losses that are not listed.
        """
        return (events or self.events).from_variation(self.known_bound(events), group)

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
        promising = events or self.events
        record = StayRecord(promising, group, losses, entered=entered, left=left)
        self.stays.append(record)
        return record

    def over_stays(self, record: StayRecord) -> Array:
        """Bound the sum of expected decision swap regret of every recorded stay so far (k,)."""
        return record.bound(self.time, partial(self.known_bound, record.events))

    def realised(self, group: ProtectedLosses) -> Array | None:
        """Bound the sum of decision swap regret (K,) of who acts on what was broadcast, or None."""
        return self.events.realised(self.known_bound(), group)


def checked_losses(losses: Any, kind: type[Loss] = Loss) -> list[Any]:
    """Return the losses to protect as a list; ParameterError unless all are of a kind and fit."""
    listed = list(losses) if isinstance(losses, list | tuple) else [losses]
    cure = f"give a list of {kind.__name__} losses of market.losses, at least one"
    if not listed or not all(isinstance(loss, kind) for loss in listed):
        raise ParameterError(f"losses = {brief(losses)}: {cure}")
    sizes = sorted({loss.outcomes for loss in listed})
    if len(sizes) > 1:
        told = " and ".join(map(str, sizes))
        raise ParameterError(f"losses are of {told} outcomes; give losses of equally many")
    return listed


def checked_policies(policies: Any) -> list[Policy]:
    """Return benchmark policies as a list; ParameterError unless each can be called."""
    if not isinstance(policies, list | tuple) or not all(map(callable, policies)):
        cure = "give a list of functions, from a context to the number of an action"
        raise ParameterError(f"policies = {brief(policies)}: {cure}")
    return list(policies)


def checked_basis(basis: Any) -> Basis:
    """Return a basis; ParameterError if it is none."""
    if not isinstance(basis, Basis):
        raise ParameterError(f"basis = {brief(basis)}: give a basis of forecaster.bases")
    return basis


def coefficients_of(basis: Basis, losses: Sequence[Loss]) -> list[tuple[Array, Array]]:
    """Return each loss's coefficients; ParameterError where the basis does not span it."""
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
    weights : "adaptive", "second-order" or "exponential"
    horizon : int or None
        For the exponential rate.
    """

    def __init__(
        self,
        losses: Sequence[Linear],
        policies: Sequence[Policy] = (),
        *,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        protected = checked_losses(losses, Linear)
        forms = [(loss.offset, loss.weights) for loss in protected]
        groups = grouped(forms, checked_policies(policies))
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

    def __init__(  # noqa: PLR0913 - the names are promised to users
        self,
        losses: Sequence[Loss],
        policies: Sequence[Policy] = (),
        *,
        eta: float | None = None,
        response: SmoothResponse | None = None,
        basis: Basis | None = None,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        if (eta is None) == (response is None):
            raise ParameterError("eta, response: give exactly one of them")
        if eta is not None:
            check_positive("eta", eta)
        if response is not None and not callable(getattr(response, "play", None)):
            raise ParameterError(f"response = {brief(response)}: give a SmoothResponse")
        losses = checked_losses(losses, Linear if basis is None else Loss)
        policies = checked_policies(policies)
        basis = LinearBasis(losses[0].outcomes) if basis is None else checked_basis(basis)
        if not basis.convex_image:
            raise ParameterError(
                f"basis: the image of {type(basis).__name__} is curved, so that a prediction of "
                "s(y) has no label forecast; broadcast ensembles, or use NonLinearDecisionSwap"
            )
        tables = coefficients_of(basis, losses)
        groups = grouped(tables, policies, eta=eta, play=response.play if response else None)
        super().__init__(VectorEvents(groups, rule_of(weights, horizon)), basis=basis, seed=seed)


class NonLinearDecisionSwap(UnbiasedPrediction):
    """No decision swap regret for agents with any losses that a basis spans.

    It predicts s(y), and ``update`` takes s(y); ``observe`` takes the outcome itself. ``losses``
    are single or stacks; the rest is as in ``DecisionSwap``.
    """

    def __init__(  # noqa: PLR0913 - the names are promised to users
        self,
        losses: Sequence[Loss],
        basis: Basis,
        policies: Sequence[Policy] = (),
        *,
        weights: str = "adaptive",
        horizon: int | None = None,
        seed: int = 0,
    ) -> None:
        tables = coefficients_of(checked_basis(basis), checked_losses(losses))
        groups = grouped(tables, checked_policies(policies))
        events = VectorEvents(groups, rule_of(weights, horizon))
        super().__init__(events, cube(basis.size, basis.hull), basis=basis, seed=seed)


def grouped(
    tables: Sequence[tuple[Array, Array]], policies: Sequence[Policy], **rule: Any
) -> list[ProtectedLosses]:
    """Collect coefficient tables, (A,) with (A, n) or stacked, by their number of actions.

    ``rule`` are the fields of ``ProtectedLosses`` that say how the losses' owners respond.
    """
    stacks: dict[int, list[tuple[Array, Array]]] = {}
    for offset, weights in tables:
        stack = np.atleast_2d(offset), weights.reshape(-1, *weights.shape[-2:])
        stacks.setdefault(offset.shape[-1], []).append(stack)
    found = []
    for own in stacks.values():
        offset, weights = (np.concatenate(parts) for parts in zip(*own, strict=True))
        found.append(ProtectedLosses(offset, weights, policies, **rule))
    return found
