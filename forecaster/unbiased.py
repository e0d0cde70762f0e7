r"""Unbiased-Prediction (Noarov, Ramalingam, Roth and Xie; the paper's appendix).

Every round: weigh the events by their biases so far (``weights``), solve the min-max game that
those weights define (``minimax``), play the mixture; then add the round's expected biases
(``events``). With the adaptive weights every event's bias stays below

    sqrt(3 n_T(E) Lambda),   Lambda = ln(2 n |E| (1 + 3/(2 ln 2) ln(1 + T))) + slack terms,

see ``bounds``.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.events.bounds import LOGARITHM, BiasBound
from regretless.forecaster.events.coordinate import Events
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.events.second_order import SecondOrderWeights
from regretless.forecaster.events.weights import AdaptiveWeights, ExponentialWeights, WeightRule
from regretless.forecaster.minimax.base import HullSolver, Solution
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.tolerance import slack_limit, tolerance_at
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.randomness import stream
from regretless.market.losses.basis import Hull
from regretless.market.records import Forecast, Mixture

WEIGHTS = ("adaptive", "second-order", "exponential")


class UnbiasedPrediction(Remembering):
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

    REMEMBERED: ClassVar[tuple[str, ...]] = ("events", "slack", "time", "solver", "_rng")
    models: tuple[str, ...] = ()  # whose predictions are comparators

    def __init__(  # noqa: PLR0913 - keyword-only description of an instance
        self,
        groups: Sequence[LossGroup] | Events | LossEvents,
        *,
        weights: str = "adaptive",
        horizon: int | None = None,
        hull: Hull = "box",
        solver: HullSolver | None = None,
        off_ties: bool = False,
        seed: int = 0,
    ) -> None:
        self.events = Events(groups) if isinstance(groups, Sequence) else groups
        self.rule = self._rule(weights, horizon)
        self.slack, self.time = 0.0, 0
        self._start, self._spent = 1.0, 0.0  # mean potential and logarithm at the first game
        self._rng = stream(seed, "forecaster")
        self.solver = solver or cube(self.events.size, hull, off_ties=off_ties)
        self._pending: tuple[Any, Solution] | None = None

    def _rule(self, name: str, horizon: int | None) -> WeightRule:
        if name == "adaptive":
            return AdaptiveWeights()
        if name == "second-order":
            return SecondOrderWeights()
        if name == "exponential":
            return ExponentialWeights(self.events.experts, horizon)
        raise ValueError(f"weights '{name}' are unknown; choose from {', '.join(WEIGHTS)}")

    def mixture(self, x: Any = None) -> Mixture:
        """Return the law over predictions given the context, with its certificate."""
        awake: Any = self.events.awake(x, self._advice(x))
        solution = self._answer(awake)
        self._pending = awake, solution
        return Mixture(
            solution.points, solution.mass, solution.certificate, ensembles=solution.ensembles
        )

    def _advice(self, x: Any) -> Array | None:
        """Return what the models that are comparators predict (M, n); None without any."""
        return None

    def _answer(self, awake: Any) -> Solution:
        """Solve the round's game."""
        table = self.events.weighted(awake, self.rule, self.time + 1)
        return self._solve(table, tolerance_at(self.time + 1))

    def _solve(self, table: Array, tolerance: float) -> Solution:
        return self.solver.solve(self.events.rows, table, tolerance=tolerance)

    def predict(self, x: Any = None) -> Forecast:
        """Return the mixture and a draw from it."""
        return self.mixture(x).draw(self._rng)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted, in [0, 1]."""
        if self._pending is None:
            raise ValueError("update before a prediction; call mixture or predict first")
        truth = np.asarray(y, dtype=np.float64)
        self.solver.check(truth)
        awake, solution = self._pending
        self._pending = None
        squared = self.rule.squared
        self.events.charge(awake, solution.points, solution.mass, truth, squared=squared)
        self.slack += max(solution.certificate or 0.0, 0.0)
        self.solver.remember(solution)
        self.time += 1

    def __repr__(self) -> str:
        kind = f"{type(self).__name__}: {self.events.size} numbers, {self.rule.name} weights"
        return f"<{kind}, round {self.time}>"

    def known_bound(self) -> BiasBound:
        """Bound on every event's bias, with what is known of all variations so far."""
        spent = self.events.spent() - self._spent
        return replace(self.bias_bound(), growth=self._start + LOGARITHM * spent)

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
        )
