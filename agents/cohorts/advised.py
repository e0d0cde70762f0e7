r"""Learners over advice: what they learn is whose advice to follow.

An expert is either a model of outcomes, whose advice is the best response to its prediction, or an
action, whose advice is itself. In a market with losses of its own the best response is by what the
market says that agents may expect to lose (``Market.expected_losses``). The learner of the cohort
(``agents.learners``) plays a mixed strategy over experts; the agents play the actions that these
advise. A model learns from outcomes by itself, and all agents of the cohort share it.

Advised by all models of the panel and by all actions, Hedge loses little more than the best of them
in hindsight. It is the hardest control that a forecast can be compared with: an expert learner for
each agent, who knows everything that the forecaster knows.

With E experts, q_k(e) the weight of expert e in row k and a_k(e) the action that it advises,

    strategy_k(a) = sum of q_k(e) over the experts e with a_k(e) = a,

and expert e is charged the loss of a_k(e).
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array, Indices, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.records import Context, Decision, Forecast, Mixture, RoundFeedback


class Advice(Checkpointable):
    """What E experts advise the K rows of a cohort in the open round.

    Parameters
    ----------
    basis : Basis
        The n functions s of the outcome that the models predict.
    coefficients : pair of arrays
        Offset (K, A) and weights (K, A, n) of the rows' losses in that basis.
    advisers : Forecaster or None
        Its ``points`` (M, n) are what each of M models predicts; None without models.
    with_actions : bool
        Whether every action is an expert, too. They come after the models.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("advisers",)

    def __init__(
        self,
        basis: Basis,
        coefficients: tuple[Array, Array],
        advisers: Forecaster | None,
        *,
        with_actions: bool,
    ) -> None:
        self.basis = basis
        self.advisers = advisers
        self.with_actions = with_actions
        self._offset, self._weights = coefficients

    @property
    def n_experts(self) -> int:
        """E: the models, and the actions if they are experts."""
        n_models = 0 if self.advisers is None else len(self.advisers.made_of)
        n_actions = self._offset.shape[1] if self.with_actions else 0
        return n_models + n_actions

    def advised_actions(
        self, context: Context, market_losses: Callable[[Array], Array] | None
    ) -> Indices:
        """Return the action that each expert advises each row (K, E).

        ``market_losses`` returns what the rows may expect to lose at an outcome (K, A), in a market
        with losses of its own; None where the rows' losses say that.
        """
        n_rows, n_actions = self._offset.shape
        columns = []
        if self.advisers is not None:
            self.advisers.point(context)
            for prediction in self.advisers.points:
                if market_losses is None:
                    table = expected_losses(self._offset, self._weights, prediction)
                else:
                    table = market_losses(self.basis.inverse(np.asarray(prediction)))
                columns.append(best_response(table))
        if self.with_actions:
            columns += [np.full(n_rows, action, dtype=np.intp) for action in range(n_actions)]
        return np.stack(columns, axis=1)

    def learn(self, outcome: Array) -> None:
        """Let the models learn the outcome (d,) of the round for which they were asked."""
        if self.advisers is not None:
            statistics = np.asarray(self.basis.transform(outcome))
            self.advisers.observe(RoundFeedback(statistics, outcome))

    def part(self, rows: Indices) -> "Advice":
        """Return the advice of some rows (k,), whose models learn by themselves."""
        coefficients = (self._offset[rows], self._weights[rows])
        return Advice(
            self.basis, coefficients, deepcopy(self.advisers), with_actions=self.with_actions
        )


@dataclass(eq=False, kw_only=True)
class AdvisedCohort(LearnerCohort):
    """Learners whose experts give advice; the models learn in rounds in which somebody is there."""

    REMEMBERED = ("ledger", "rng", "learner", "advice")  # type: ignore[assignment]

    advice: Advice

    def __post_init__(self) -> None:
        if self.learner.bandit:
            hint = "let a learner with full information follow it, such as hedge"
            raise UserError(f"advice: {self.rule} is told the loss of its own action alone; {hint}")
        super().__post_init__()
        self.learner.start(self.ledger.shape[0], self.advice.n_experts, horizon=self.horizon)
        self._advised: Indices | None = None

    @property
    def expects_losses(self) -> bool:
        return self.advice.advisers is not None

    @property
    def rows_apart(self) -> bool:
        return False  # rehearsals of learners alone know no advice

    def proved_swap(self, rounds: int) -> float | None:
        return None  # what the learner proves is about experts

    def part(self, rows: Indices, agents: slice) -> Self:
        part = super().part(rows, agents)
        return replace(part, advice=self.advice.part(rows))

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        self._advised = self.advice.advised_actions(context, self.market_losses)
        strategy = self._strategy_over_actions(self._advised)
        uniforms = self.rng.random(len(self.row_of))
        return Decision(strategy, draw_rows(strategy, uniforms, self.row_of))

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        return self._strategy_over_actions(self.advice.advised_actions(context, self.market_losses))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        advised = self._advised
        if advised is None:
            raise ValueError("learn comes after decide")
        losses_of_experts = np.take_along_axis(losses, advised, axis=1)
        self.learner.learn(losses_of_experts, decision.actions[self._first_agent_of_row])
        self.advice.learn(outcome)

    def _strategy_over_actions(self, advised: Indices) -> Array:
        """Return the mixed strategies (K, A) that the weights of the experts come to."""
        weights = self.learner.play()
        strategy = np.zeros((len(weights), self.loss.actions))
        rows = np.arange(len(weights))[:, np.newaxis]
        np.add.at(strategy, (rows, advised), weights)
        return strategy
