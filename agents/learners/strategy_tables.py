r"""Strategy tables: agents who hold a few fixed strategies and play the one that did best so far.

Scenario files name it as the ``response`` of a cohort, ``"strategy-tables"``. It is how agents
choose in the minority game (Challet and Zhang 1997, after Arthur 1994), where it shows how much
a crowd coordinates by chance differences alone. No bound on its regret to actions holds: its
strategies are few, and drawn before the first round.

Mathematics
-----------
The history h is which action was best in each of the last m rounds, one of P = A^m. Every agent
holds S strategies, each a table of an action for every history, drawn uniformly. A strategy scores
1 in a round in which it named the best action (the first of those that lost least), whether or not
it was played. The agent plays what its strategy of the highest score names; of several that tie it
takes one at random.

Shapes: K rows, S strategies, P histories, A actions. A row is an agent: its tables are its own.
"""

from copy import copy
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, GameFacts, RowLearner
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.core.validation import check_int

MAX_TABLE_ENTRIES = 2**28  # actions in the tables of all rows


@register.learner("strategy-tables")
class StrategyTables(RowLearner):
    """Plays the best so far of a few strategies, each of which answers the last best actions.

    Parameters
    ----------
    memory : int
        m, how many rounds a history has.
    strategies : int
        S, how many strategies an agent holds.

    Attributes
    ----------
    tables : int array (K, S, P)
        The action that each strategy names after each history.
    scores : int array (K, S)
        In how many rounds each named the best action.
    history : int array (K,)
        The number of the present history, its newest round in the lowest place.

    Examples
    --------
    >>> learner = StrategyTables(memory=1, strategies=2)
    >>> learner.start(1, 2)
    >>> learner.tables = np.array([[[0, 1], [1, 1]]])
    >>> learner.learn(np.array([[0.9, 0.1]]), np.array([0]))  # the second action was best
    >>> learner.scores, learner.history
    (array([[0, 1]]), array([1]))
    """

    name: ClassVar[str] = "strategy-tables"
    has_distinct_rows: ClassVar[bool] = True
    REMEMBERED: ClassVar[tuple[str, ...]] = ("tables", "scores", "history")

    def __init__(self, *, memory: int = 5, strategies: int = 2) -> None:
        self.memory = check_int("memory", memory, least=0)
        self.strategies = check_int("strategies", strategies, least=1)
        # The tables (K, S, histories) of some agents of a run that is shared out among workers;
        # None where the learner draws its own.
        self._given_tables: Integers | None = None

    def begin(self) -> None:
        # By logarithms: the number of histories may have more digits than Python writes.
        n_tables = self.rows * self.strategies
        if self.memory * np.log(self.actions) + np.log(n_tables) > np.log(MAX_TABLE_ENTRIES):
            raise UserError(
                f"memory = {self.memory}: {self.actions}^{self.memory} histories of {n_tables} "
                "strategies are too many; lower memory"
            )
        self._draw_tables(stream(0, "strategy-tables"))
        self.scores = np.zeros((self.rows, self.strategies), dtype=np.int64)
        self.history = np.zeros(self.rows, dtype=np.int64)
        self.strategy = self._mixed_strategies()

    def meet(self, facts: GameFacts) -> None:
        if facts.rng is not None:
            self._draw_tables(facts.rng)
            self.strategy = self._mixed_strategies()

    def part(self, rows: Indices) -> "StrategyTables":
        # The tables of all agents are drawn at once, by whoever builds the whole run.
        part = copy(self)
        part._given_tables = self.tables[rows]  # noqa: SLF001 - its own class
        return part

    def _draw_tables(self, rng: np.random.Generator) -> None:
        if self._given_tables is not None:
            self.tables: Integers = self._given_tables
            return
        n_histories = self.actions**self.memory
        shape = (self.rows, self.strategies, n_histories)
        self.tables = rng.integers(self.actions, size=shape)

    def step(self, losses: Array, actions: Actions) -> Array:
        best_actions = losses.argmin(1)
        self.scores += self._named_actions() == best_actions[:, np.newaxis]
        n_histories = self.tables.shape[2]
        self.history = (self.history * self.actions + best_actions) % n_histories
        return self._mixed_strategies()

    def _named_actions(self) -> Integers:
        """Return the action that each strategy names after the present history (K, S)."""
        return np.asarray(self.tables[np.arange(self.rows), :, self.history])

    def _mixed_strategies(self) -> Array:
        """Return the strategies (K, A): equal chances for each table of the highest score."""
        is_best = self.scores == self.scores.max(1, keepdims=True)
        weights = is_best / is_best.sum(1, keepdims=True)
        strategy = np.zeros((self.rows, self.actions))
        rows = np.arange(self.rows)[:, np.newaxis]
        np.add.at(strategy, (rows, self._named_actions()), weights)
        return strategy
