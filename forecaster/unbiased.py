r"""Unbiased-Prediction (Noarov, Ramalingam, Roth and Xie; the paper's appendix).

Every round: weigh the events by their biases so far (``weights``), solve the min-max game that
those weights define (``minimax``), play the mixture; then add the round's expected biases
(``events``). With the adaptive weights every event's bias stays below

    sqrt(3 n_T(E) Lambda),   Lambda = ln(2 n |E| (1 + .488 ln(1 + T))) + slack terms,

see ``bounds``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.lemma import LOGARITHM
from regretless.forecaster.events.protected import (
    LossGroup,
    best_responses,
    moved_mass,
    rows_of,
)
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.events.second_order import SecondOrderWeights
from regretless.forecaster.events.weights import AdaptiveWeights, ExponentialWeights, WeightRule
from regretless.forecaster.minimax.base import HullSolver, Solution
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.reference import Evidence, Reference
from regretless.forecaster.tolerance import slack_limit, tolerance_at
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Hull
from regretless.market.records import Mixture

WEIGHTS = ("adaptive", "second-order", "exponential")


class UnbiasedPrediction(Remembering, Forecaster):
    """Predicts vectors in [0, 1]^n without bias on a collection of events.

    Parameters
    ----------
    groups : sequence of LossGroup, or Events, or LossEvents
        The losses to protect, with their policies: the paper's vector events are made of them. Or
        ready-made events.
    weights : "adaptive", "second-order" or "exponential"
    horizon : int or None
        Number of rounds, which the exponential rate may use.
    hull : "box" or "simplex"
        Where the predicted vectors lie, and the predictions with them.
    solver : HullSolver, optional
        Solves the rounds' games, over a hull of its own; over ``hull`` by default.
    off_ties : bool
        Whether predictions keep off ties (``minimax.cube``), without a solver of one's own.
    reference : Reference, optional
        A model whose forecast is broadcast as it is where it is good. Ready-made events must then
        be for as many models as it is made of.
    seed : int
        For ``predict``, which draws from the mixture by itself.

    Attributes
    ----------
    events : Events or LossEvents
    rule : WeightRule
    slack : float
        Sum of the positive certificates so far.
    time : int
        Rounds learned.

    Raises
    ------
    ValueError
        If the weights' name is unknown or a call is out of order.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "events", "slack", "time", "solver", "rng", "reference", "_start", "_spent"
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - keyword-only description of an instance
        self,
        groups: Sequence[LossGroup] | Events | LossEvents,
        *,
        weights: str = "adaptive",
        horizon: int | None = None,
        hull: Hull = "box",
        solver: HullSolver | None = None,
        off_ties: bool = False,
        reference: Reference | None = None,
        seed: int = 0,
    ) -> None:
        self.reference = reference
        self.models = () if reference is None else reference.model.made_of
        made = Events(groups, models=len(self.models)) if isinstance(groups, Sequence) else groups
        self.events: Events | LossEvents = made
        self._weights, self._horizon = weights, horizon
        self.rule = self._rule(weights, horizon)
        self.slack, self.time = 0.0, 0
        self._start, self._spent = 0.0, 0.0  # mean potential and logarithm at the first game
        self.rng = stream(seed, "forecaster")
        self.solver = solver or cube(self.events.size, hull, off_ties=off_ties)
        self._pending: _Open | None = None
        self._settle()

    def _rule(self, name: str, horizon: int | None) -> WeightRule:
        if name == "adaptive":
            return AdaptiveWeights(0.0 if self.reference is None else self.reference.band.zone)
        if name == "second-order":
            return SecondOrderWeights()
        if name == "exponential":
            return ExponentialWeights(self.events.experts, horizon)
        raise ValueError(f"weights '{name}' are unknown; choose from {', '.join(WEIGHTS)}")

    @property
    def instances(self) -> "tuple[UnbiasedPrediction, ...]":  # type: ignore[override]
        """Itself."""
        return (self,)

    @property
    def spelled(self) -> bool:  # type: ignore[override]
        """Whether every prediction comes with its ensemble of outcomes."""
        return self.solver.spelled

    @property
    def points(self) -> Array:
        """What each model that is a comparator predicts in the open round (M, n)."""
        return np.empty((0, 0)) if self.reference is None else self.reference.model.points

    def mixture(self, x: Any = None) -> Mixture:
        """Return the law over predictions given the context, with its certificate."""
        self._settle()
        single = self._advised(x)
        awake: Any = self.events.awake(x, self.points if self.models else None)
        solution = self._answer(awake, single)
        self._pending = _Open(awake, solution, single)
        return Mixture(
            solution.points, solution.mass, solution.certificate, ensembles=solution.ensembles
        )

    def _advised(self, x: Any) -> Solution | None:
        """Return the reference's forecast, moved into the hull; None without one."""
        if self.reference is None:
            return None
        return self.solver.single(self.reference.advise(x, self.events.size))

    def _answer(self, awake: Any, single: Solution | None) -> Solution:
        """Broadcast what is trusted, or solve the round's game."""
        if single is not None and self._trusting and not self.solver.preferring:
            return single
        table = self.events.weighted(awake, self.rule, self.time + 1)
        candidate = None if single is None else single.points[0]
        tolerance = tolerance_at(self.time + 1)
        return self.solver.solve(self.events.rows, table, tolerance=tolerance, candidate=candidate)

    @property
    def _trusting(self) -> bool:
        return self.reference is not None and self.reference.trusted

    def _settle(self) -> None:
        """Note from which potential the games begin, once nobody is trusted any more."""
        if self._start or self._trusting:
            return
        self._start = 1.0
        if self.reference is not None:
            band = self.reference.band
            self.rule = self._rule(self._weights, self._horizon)
            self.events.widen(band.models)
            if self.time:
                self._spent = self.events.spent()
                self._start = self.events.potential(self.rule.dead_zone)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        super().restore(state)
        if self.reference is not None:
            self.rule = self._rule(self._weights, self._horizon)
            self.events.widen(self.reference.band.models)

    def witness(self, outcome: Array) -> None:
        """Pass the outcome (d,) on to the reference."""
        if self.reference is not None:
            self.reference.model.witness(outcome)

    def suggested(self, group: LossGroup) -> Indices:
        """Return what the models suggest to the losses of a group (K, M) in the open round."""
        place = next((i for i, own in enumerate(self.events.groups) if own is group), None)
        if place is None:
            return best_responses(rows_of([group]), self.points)
        if self._pending is None:
            raise ValueError("no round is open; call mixture or predict first")
        return self.events.suggested(self._pending.awake, place)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted, in [0, 1]."""
        if self._pending is None:
            raise ValueError("update before a prediction; call mixture or predict first")
        truth = np.asarray(y, dtype=np.float64)
        self.solver.check(truth)
        open_round, self._pending = self._pending, None
        self._charge(open_round, truth)
        if self.reference is not None and open_round.single is not None:
            self.reference.judge(self._evidence(open_round, truth))
            self._settle()
            self.reference.learn(truth)

    def _charge(self, played: "_Open", truth: Array) -> None:
        solution, squared = played.solution, self.rule.squared
        self.events.charge(played.awake, solution.points, solution.mass, truth, squared=squared)
        self.slack += max(solution.certificate or 0.0, 0.0)
        self.solver.remember(solution)
        self.time += 1

    def _evidence(self, played: "_Open", truth: Array) -> Evidence:
        """Return what a round says for or against the reference."""
        reference, told, rows = self.reference, played.single, self.events.rows
        assert reference is not None  # noqa: S101 - there is one to be judged
        assert told is not None  # noqa: S101
        unchanged = played.solution.unchanged
        if not reference.trusted:
            return Evidence(unchanged, beyond=True, surprise=0.0)
        seen, _ = moved_mass(rows, told.points, told.mass)
        worse = float(seen @ rows.times(truth - told.points[0])) / (len(rows.start) - 1)
        return Evidence(unchanged, self.events.exceeds(played.awake, reference.trust), worse)

    def __repr__(self) -> str:
        kind = f"{type(self).__name__}: {self.events.size} numbers, {self.rule.name} weights"
        return f"<{kind}, round {self.time}>"

    def described(self) -> dict[str, Any]:
        """Return what a run's manifest says of it."""
        return {} if self.reference is None else self.reference.described()

    def event_table(self) -> Iterator[tuple[Any, ...]]:
        """Yield loss, action, policy, suggestion, occupancy and bias of every event."""
        return self.events.table()

    def event_bounds(self, occupancy: Array) -> tuple[Array, Array] | None:
        """Bound the biases of events of this occupancy, in expectation and as drawn."""
        return self.bias_bound().of_events(occupancy)

    def known_bound(self) -> BiasBound:
        """Bound on every event's bias, with what is known of all variations so far."""
        spent = self.events.spent() - self._spent
        return replace(self.bias_bound(), growth=(self._start or 1.0) + LOGARITHM * spent)

    def beforehand(self, rounds: int) -> BiasBound:
        """Bound on every event's bias after so many rounds, as known before the first one.

        It holds if the solver meets its tolerance in every round.
        """
        slack = max(self.slack, slack_limit(rounds))
        return replace(self.bias_bound(), rounds=rounds, slack=slack, trusted=False)

    def bias_bound(self) -> BiasBound:
        """Bound on every event's bias so far."""
        return self.events.bound(
            rounds=self.time,
            slack=self.slack,
            weights=self.rule.name,
            horizon=self.rule.horizon,
            hull=self.solver.hull,
            dead_zone=self.rule.dead_zone,
            trust=0.0 if self.reference is None else self.reference.trust,
            trusted=self._trusting,
        )


@dataclass(frozen=True, eq=False)
class _Open:
    """A round whose outcome is to come.

    Parameters
    ----------
    single : Solution or None
        The reference's forecast, moved into the hull.
    """

    awake: Any
    solution: Solution
    single: Solution | None
