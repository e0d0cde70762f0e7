"""Learners in the market: they hear no forecast, play, and are told their losses.

Full-information learners with equal losses play the same strategy, so they share a row, and the row
is charged its strategy in expectation. A bandit learner's state depends on its own draws: a row
each, charged for the action played.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from regretless.agents.cohorts import parts
from regretless.agents.learners.base import RowLearner
from regretless.market.core.arrays import Array, Indices, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.own_code import handed, is_ours, strategies_of
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast, Mixture, Policy, one_hot
from regretless.market.regret.ledger import Ledger


@dataclass(eq=False, kw_only=True)
class LearnerCohort(Cohort, Checkpointable):
    """Learners of one rule and one number of actions, on distinct losses.

    The block scores them, they do not listen. Bandit learners have a row each; a row without an
    agent is there for company, where agents are shared out. ``learner`` is started here, ``rng``
    draws the actions.
    """

    REMEMBERED = ("ledger", "rng", "learner")
    unguided = "learners do not act on the forecast"
    listens = False
    foreseeable = True

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
        rows = len(self.ledger.count)
        held, first = np.unique(self.row_of, return_index=True)
        if held[-1] >= rows:
            raise ValueError(f"row_of names row {held[-1]}; the ledger has {rows}")
        if self.learner.bandit and len(held) < len(self.row_of):
            raise ValueError(f"{self.rule} learns from its own draws; give every agent a row")
        self._first = np.zeros(rows, dtype=np.intp)
        self._first[held] = first
        self._alone = np.array_equal(self.row_of, np.arange(rows))
        self.learner.start(rows, self.loss.actions, horizon=self.horizon)

    @property
    def rule(self) -> str:
        return self.learner.name

    @property
    def bandit(self) -> bool:  # type: ignore[override]
        return self.learner.bandit

    @property
    def rows_apart(self) -> bool:
        return is_ours(type(self.learner))  # a user's own may mix rows

    def proved_swap(self, rounds: int) -> float | None:
        proves = self.learner.measure == "swap" and not self.bandit
        return self.learner.bound(rounds) if proves else None

    def fixed_parts(self) -> tuple[object, ...]:
        return self.loss, self.ledger, self.row_of, self.policies

    def company(self) -> Indices:
        return parts.company(self.loss, None)

    def part(self, rows: Indices, agents: slice) -> Self:
        return replace(self, **parts.common(self, rows, agents), learner=deepcopy(self.learner))

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        strategy = self.learner.play()
        if not is_ours(type(self.learner)):
            strategy = strategies_of(self.learner.play, strategy, self.ledger.count.shape)
        if self.learner.bandit:
            played = draw_rows(strategy, self.rng.random(len(strategy)))
            actions = played if self._alone else played[self.row_of]
            return Decision(one_hot(played, strategy.shape[1]), actions)
        return Decision(
            strategy, draw_rows(strategy, self.rng.random(len(self.row_of)), self.row_of)
        )

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        return self.learner.play()

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        if self.learner.bandit and not self._alone:  # rows for company have no agent
            played = decision.probabilities.argmax(1)
        else:
            played = decision.actions[self._first]
        learn = self.learner.learn
        learn(handed(learn, losses), handed(learn, played))
