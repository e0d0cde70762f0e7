r"""Q-learning: agents who remember what was played, and learn what each action is worth after it.

Scenario files name it as the ``response`` of a cohort, ``"q-learning"``. It is the learner of the
literature on algorithms that set prices (Calvano, Calzolari, Denicolò and Pastorello 2020) and bid
in auctions (Banchio and Skrzypacz 2022). It is told the loss of its own action alone, and no bound
on its regret holds: it may learn to collude as well as to compete.

Mathematics
-----------
A state s is what was played in the last m rounds, by everybody or by the agent itself. After action
a in state s, with the reward r = 1 - loss and the next state s' (Watkins and Dayan 1992),

    Q(s, a) <- Q(s, a) + alpha (r + gamma max_b Q(s', b) - Q(s, a)).

In round t, counted from 0, it plays the action with the greatest Q(s, .) (the lowest index where
several tie), but with probability epsilon_t = epsilon exp(-beta t) any action, all equally likely.

Losses lie in [0, 1], so that rewards do. They are profits up to a positive affine map, and so are
the values of Q: which action is greatest is the same as in units of profit.

States
------
Every agent's last action is a digit from 0 to A: 0 before it has played, or while it is absent, and
1 + a after action a. A round is one digit in base B = prod (A_i + 1), and m rounds are a number
below B^m in which the newest round has the lowest place. In the code B is ``base``.

Shapes: K rows, S = B^m states, A actions, M agents of all cohorts.
"""

import math
from copy import copy
from typing import Any, ClassVar, Literal

import numpy as np

from regretless.agents.learners.base import Actions, GameFacts, RowLearner
from regretless.agents.learners.kernels import explore, update_q_tables
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.errors import UserError, brief

MAX_TABLE_ENTRIES = 2**28  # numbers in the tables of all rows: 2 GiB
UNIFORM_PLAY = "uniform-play"


@register.learner("q-learning")
class QLearning(RowLearner):
    """Learns the value of each action after what was played last, and mostly plays the best.

    Parameters
    ----------
    memory : int
        m, how many rounds a state has; with 0 there is one state.
    sees : "own" or "all"
        Whose actions a state has: the agent's own, or those of all agents of the market.
    alpha : float
        The share of the newest estimate in a value, in (0, 1].
    gamma : float
        The discount factor, in [0, 1).
    beta : float
        The rate at which exploration fades, at least 0.
    epsilon : float, optional
        The probability of exploring in the first round; by default 1 where ``beta`` lets it fade,
        else 0.1.
    initial : float, list of float, or "uniform-play"
        The first value of all actions, or of each. "uniform-play" is what each action would earn
        for ever if all others played each of their actions equally often; it needs a market with
        ``profile_losses``.

    Attributes
    ----------
    q : (K, S, A)
        The values.
    greedy : (K, S)
        The action of greatest value in each state.
    state_index : (K,)
        The state in which each row is.
    changed_at : (K,)
        After how many rounds some greedy action of each row changed last.

    Examples
    --------
    >>> learner = QLearning(memory=0, alpha=0.5, gamma=0.0, epsilon=0.0)
    >>> learner.start(1, 2)
    >>> learner.learn(np.array([[0.2, 0.9]]), np.array([0]))  # a reward of 0.8
    >>> learner.q[0, 0]
    array([0.4, 0. ])
    """

    name: ClassVar[str] = "q-learning"
    bandit: ClassVar[bool] = True
    REMEMBERED: ClassVar[tuple[str, ...]] = ("q", "greedy", "state_index", "changed_at")

    def __init__(
        self,
        *,
        memory: int = 1,
        sees: Literal["own", "all"] = "own",
        alpha: float = 0.15,
        gamma: float = 0.95,
        beta: float = 0.0,
        epsilon: float | None = None,
        initial: float | list[float] | str = 0.0,
    ) -> None:
        if epsilon is None:
            epsilon = 1.0 if beta > 0 else 0.1
        _check("memory", memory, memory >= 0, "a whole number of at least 0")
        _check("alpha", alpha, 0 < alpha <= 1, "a number above 0 and at most 1")
        _check("gamma", gamma, 0 <= gamma < 1, "a number of at least 0 and below 1")
        _check("beta", beta, 0 <= beta < math.inf, "a number of at least 0")
        _check("epsilon", epsilon, 0 <= epsilon <= 1, "a number in [0, 1]")
        if isinstance(initial, str):
            _check("initial", initial, initial == UNIFORM_PLAY, f"numbers or '{UNIFORM_PLAY}'")
        self.memory = memory
        self.sees = sees
        self.alpha = float(alpha)
        self.gamma = float(gamma)
        self.beta = float(beta)
        self.epsilon = float(epsilon)
        self.initial = initial
        self._action_counts: tuple[int, ...] | None = None  # of all agents, known in a market
        self._mean_losses: Array | None = None  # (K, A), where the first values need them
        self._actions_of_all: Indices | None = None

    @property
    def watches_actions(self) -> bool:
        return self.sees == "all" and self.memory > 0

    def meet(self, facts: GameFacts) -> None:
        self._action_counts = tuple(int(count) for count in facts.action_counts)
        if self.initial == UNIFORM_PLAY:
            self._mean_losses = facts.mean_losses()
        self.begin()

    def part(self, rows: Indices) -> "QLearning":
        part = copy(self)
        if self._mean_losses is not None:
            part._mean_losses = self._mean_losses[rows]  # noqa: SLF001 - its own class
        return part

    def begin(self) -> None:
        self.base = self._base()
        # By logarithms: the number of states may have more digits than Python writes.
        log_entries = self.memory * math.log(self.base) + math.log(self.rows * self.actions)
        if log_entries > math.log(MAX_TABLE_ENTRIES):
            cure = "lower memory"
            if self.watches_actions:
                cure += ", or set sees = 'own'"
            raise UserError(
                f"memory = {self.memory}: {self.base}^{self.memory} states of {self.actions} "
                f"actions for {self.rows} agents are too many; {cure}"
            )
        states = self.base**self.memory
        self.q = np.empty((self.rows, states, self.actions))
        self.q[:] = self._initial_values()[:, np.newaxis, :]
        self.greedy = self.q.argmax(2).astype(np.int64)
        self.state_index = np.zeros(self.rows, dtype=np.int64)
        self.changed_at = np.zeros(self.rows, dtype=np.int64)
        self.strategy = np.empty((self.rows, self.actions))
        explore(self.greedy, self.state_index, self.epsilon, self.beta, self.rounds, self.strategy)

    def _base(self) -> int:
        """Return how many joint actions of a round a state tells apart."""
        if not self.watches_actions:
            return self.actions + 1
        if self._action_counts is None:  # not in a market yet, whose agents are in the states
            return 1
        return math.prod(count + 1 for count in self._action_counts)

    def _initial_values(self) -> Array:
        """Return the first values (K, A) of the actions."""
        shape = (self.rows, self.actions)
        if self.initial == UNIFORM_PLAY:
            if self._mean_losses is None:  # ``meet`` begins again
                return np.zeros(shape)
            return np.asarray((1.0 - self._mean_losses) / (1.0 - self.gamma))
        values = np.asarray(self.initial, dtype=np.float64)
        fits = values.shape in ((), (self.actions,)) and bool(np.isfinite(values).all())
        _check("initial", self.initial, fits, f"a number, {self.actions} of them, or a word")
        return np.broadcast_to(values, shape)

    @property
    def unchanged_rounds(self) -> Integers:
        return self.rounds - self.changed_at

    def observe_actions(self, actions: Indices) -> None:
        self._actions_of_all = actions

    def step(self, losses: Array, actions: Actions) -> Array:
        rewards = 1.0 - losses[np.arange(self.rows), actions]
        next_state_index = self._next_states(actions)
        update_q_tables(
            self.q,
            self.greedy,
            self.state_index,
            np.asarray(actions, dtype=np.int64),
            rewards,
            next_state_index,
            self.alpha,
            self.gamma,
            self.changed_at,
            self.rounds,
        )
        self.state_index = next_state_index
        strategy = np.empty((self.rows, self.actions))
        explore(self.greedy, self.state_index, self.epsilon, self.beta, self.rounds, strategy)
        return strategy

    def _next_states(self, actions: Actions) -> Integers:
        """Return the states (K,) after a round in which the rows played ``actions`` (K,)."""
        if self.memory == 0:
            return np.zeros(self.rows, dtype=np.int64)
        digit: Any = actions + 1
        if self.watches_actions:
            if self._action_counts is None or self._actions_of_all is None:
                raise ValueError("sees = 'all': call meet, and observe_actions in every round")
            digit = 0
            for action, count in zip(self._actions_of_all, self._action_counts, strict=True):
                digit = digit * (count + 1) + int(action) + 1
        states = self.base**self.memory
        return np.asarray((self.state_index * self.base + digit) % states, dtype=np.int64)


def _check(key: str, value: object, is_valid: bool, expected: str) -> None:  # noqa: FBT001
    """Raise UserError that names a parameter of the learner, unless it is fine."""
    if not is_valid:
        raise UserError(f"{key} = {brief(value)}: give {expected}")
