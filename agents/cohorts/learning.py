"""Learners in the market: they hear no forecast, play, and are told their losses.

The assembly of a scenario makes a ``LearnerCohort`` for every cohort whose response is a learner
(``agents.learners``). The round calls ``decide`` and, once the outcome is known, ``learn``.

Full-information learners with equal losses play the same strategy. They share a row, which is
charged its strategy in expectation. The state of a bandit learner depends on its own draws: each
such agent has a row of its own, which is charged for the action played.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from regretless.agents.cohorts.parts import make_part, rows_for_same_rounding
from regretless.agents.learners.base import GameFacts, RowLearner
from regretless.market.core.arrays import Array, Indices, Integers, Mask, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import answer_as_strategies, is_ours, read_only
from regretless.market.game.profiles import agents_action_counts, mean_losses
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast, Mixture, Policy, one_hot
from regretless.market.regret.ledger import Ledger


@dataclass(eq=False, kw_only=True)
class LearnerCohort(Cohort, Checkpointable):
    """Learners of one rule and one number of actions, on distinct losses.

    The forecaster's block scores them; they do not listen to it. A row without an agent may exist
    where agents are shared out over workers (``agents.cohorts.parts``).

    Attributes
    ----------
    loss : Loss
        A stack of K losses, one per row.
    row_of : (N,) ints
        The row of each agent; all different where the learner is a bandit.
    learner : RowLearner
        Plays all K rows. The cohort starts it.
    rng : Generator
        Draws the actions that are played.
    horizon : int or None
        The number of rounds, for learners whose rate depends on it.
    """

    REMEMBERED = ("ledger", "rng", "learner")
    unguided = "learners do not act on the forecast"
    listens = False

    name: str
    utility: str
    block: int
    loss: Loss
    row_of: Indices
    learner: RowLearner
    ledger: Ledger
    rng: np.random.Generator
    policies: tuple[Policy, ...] = ()
    horizon: int | None = None
    kind: str = field(default="learner", init=False)

    def __post_init__(self) -> None:
        n_rows = self.ledger.shape[0]
        rows_with_agents, first_agents = np.unique(self.row_of, return_index=True)
        if rows_with_agents[-1] >= n_rows:
            raise ValueError(f"row_of names row {rows_with_agents[-1]}; the ledger has {n_rows}")
        if self.learner.bandit and len(rows_with_agents) < len(self.row_of):
            raise ValueError(f"{self.rule} learns from its own draws; give every agent a row")
        self._first_agent_of_row = np.zeros(n_rows, dtype=np.intp)
        self._first_agent_of_row[rows_with_agents] = first_agents
        self._one_agent_per_row = np.array_equal(self.row_of, np.arange(n_rows))
        self.learner.start(n_rows, self.loss.actions, horizon=self.horizon)
        self._learner_is_ours = is_ours(self.learner.rule_class)
        self._learn_is_ours = is_ours(self.learner.learn)

    @property
    def rule(self) -> str:
        return self.learner.name

    @property
    def foreseeable(self) -> bool:  # type: ignore[override]
        # What it plays next depends on what others do, of whom a look ahead may not know.
        return not self.learner.watches_actions

    @property
    def ignores_draws(self) -> bool:
        return self._learner_is_ours and not (self.bandit or self.watches_actions)

    @property
    def unchanged_rounds(self) -> Integers | None:
        return self.learner.unchanged_rounds

    @property
    def watches_actions(self) -> bool:
        return self.learner.watches_actions

    def observe_actions(self, actions: Indices) -> None:
        self.learner.observe_actions(actions)

    def enter(self, model: Any, first: int) -> None:
        game = model.game
        first_agents = first - 1 + self._first_agent_of_row
        facts = GameFacts(
            action_counts=agents_action_counts(game.cohorts),
            unit_scale=np.broadcast_to(self.loss.unit_scale, len(first_agents)),
            mean_losses=partial(mean_losses, game.market, game.cohorts, first_agents),
            rng=self.rng,
        )
        self.learner.meet(facts)

    @property
    def bandit(self) -> bool:  # type: ignore[override]
        return self.learner.bandit

    @property
    def rows_apart(self) -> bool:
        return self._learner_is_ours  # a learner of the user's own may mix rows

    def proved_swap(self, rounds: int) -> float | None:
        # A bandit's bound holds for its expected regret, not for the run that was played.
        if self.learner.measure != "swap" or self.bandit:
            return None
        return self.learner.bound(rounds)

    def fixed_parts(self) -> tuple[object, ...]:
        return self.loss, self.ledger, self.row_of, self.policies

    def rows_of_every_part(self) -> Indices:
        return rows_for_same_rounding(self.loss, distance=None)

    def part(self, rows: Indices, agents: slice) -> Self:
        if self.learner.watches_actions:
            raise UserError(
                f"cohort.{self.name} sees what all agents play, which no worker knows alone; "
                'drop workers, or set sees = "own"'
            )
        part = make_part(self, self.rng, rows, agents)
        return replace(
            self,
            loss=part.loss,
            row_of=part.row_of,
            ledger=part.ledger,
            rng=part.rng,
            learner=self.learner.part(rows),
        )

    def attend(self, present_rows: Mask | None, affordable: Mask | None = None) -> None:
        self.learner.attend(present_rows)

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        strategy = self.learner.play()
        if not self._learner_is_ours:
            strategy = answer_as_strategies(self.learner.play, strategy, self.ledger.shape)
        if not self.learner.bandit:
            uniforms = self.rng.random(len(self.row_of))
            return Decision(strategy, draw_rows(strategy, uniforms, self.row_of))
        played_by_row = draw_rows(strategy, self.rng.random(len(strategy)))
        actions = played_by_row if self._one_agent_per_row else played_by_row[self.row_of]
        played = one_hot(played_by_row, strategy.shape[1])
        return Decision(played, actions, drawn_from=strategy)

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        return self.learner.play()

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        learner = self.learner
        if self._one_agent_per_row:
            played_by_row = decision.actions
        elif learner.bandit:
            # Some rows have no agent; what such a row played is in its one-hot strategy alone.
            played_by_row = decision.probabilities.argmax(1)
        else:
            played_by_row = decision.actions[self._first_agent_of_row]
        if not self._learn_is_ours:  # a user's own learner must not write into these arrays
            losses = read_only(losses)
            played_by_row = read_only(played_by_row)
        learner.learn(losses, played_by_row)
