r"""Learners without swap regret, for few actions and for many.

Scenario files name them as the ``response`` of a cohort; ``agents.learners.base`` says how they are
called. ``BlumMansour`` and ``SwapRegretMatching`` are for few actions: they play the stationary
distribution of an A x A chain every round (``agents.learners.kernels``). ``TreeSwap`` is for many.

Below, q is the strategy, l the losses of a round, T the number of rounds.

Blum-Mansour
------------
Blum and Mansour (2007) keep a copy of Hedge per action a, which is charged q_a l. The copies'
strategies are the rows of a chain and q is its stationary distribution, so that the loss suffered
is the sum of what the copies suffer, and swap regret the sum of their external regrets. Copy a's
losses lie in [0, q_a], and sum_a q_a^2 <= 1, so with the inequality of ``agents.learners.base``

    T x swap regret <= A ln(A) / rate_T + sum_t rate_t / 8.

Swap regret matching
--------------------
Hart and Mas-Colell 2001, section 4.1; the bound after Greenwald, Li and Marks 2006. With R_ab =
sum of q_a (l_a - l_b), q is stationary for the rates R_ab+, which makes <R+, r> vanish for the next
increment r. Its squares sum to at most sum_a q_a^2 sum_b (l_a - l_b)^2 <= A - 1, so those of R+
stay below (A - 1) T, and

    T x swap regret = sum_a max_b R_ab+ <= sqrt(A sum_a max_b (R_ab+)^2) <= sqrt(A (A - 1) T).

TreeSwap
--------
Dagan, Daskalakis, Fishelson and Golowich 2024, Algorithm 1; with the same tree, Peng and Rubinstein
2024. A tree of depth d and breadth M covers M^d rounds. A node at level h = 1, ..., d lives for M
steps of M^(d - h) rounds each and runs a fresh Hedge (rate sqrt(8 ln A / M)) on the steps' mean
losses; its strategy stays fixed during a step. The mixed strategy is the plain mean of the
strategies of the d nodes that are alive. Beyond M^d rounds a new tree begins.

Its bound: within a step the strategy is fixed, so the best replacement costs at least the step's
best action. With OPT_h the sum over the steps of level h of their best action's loss, the swap
regret of level h is at most its own loss minus OPT_h, and its own loss is at most OPT_(h-1) plus
the regret M^(d - h) sqrt(M ln(A) / 2) of each node. Summed over the levels OPT telescopes to at
most n. Rounds after the n-th may be taken to cost nothing, so only the nodes that were born count:

    swap regret per round <= 1 / d + sqrt(M ln(A) / 2) / (d n) sum_h ceil(n / M^(d-h+1)) M^(d-h),

which is 1 / d + sqrt(ln(A) / 2M) at n = M^d. Depth and breadth default to those that make it least
at the horizon, M the least integer with M^d >= T. A row keeps 3 d A numbers.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, PairLearner, RatedLearner, RowLearner
from regretless.agents.learners.kernels import (
    blum_mansour_step,
    mean_of_levels,
    swap_regret_matching_step,
)
from regretless.market import register
from regretless.market.best_response import quantal_response
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError


@register.learner("blum-mansour")
class BlumMansour(RatedLearner, PairLearner):
    """One copy of Hedge per action, and the stationary distribution of what they play.

    The rate of every copy is sqrt(4 A ln A / t), "fixed" sqrt(8 A ln A / T), or a number.

    Examples
    --------
    >>> learner = BlumMansour(rate=1.0)
    >>> learner.start(1, 2)
    >>> learner.learn(np.array([[0.0, 1.0]]), np.array([0]))
    >>> learner.play().round(3)  # each copy is told half of the loss
    array([[0.622, 0.378]])
    """

    name: ClassVar[str] = "blum-mansour"

    def rate_scales(self) -> tuple[float, float]:
        entropy = self.actions * math.log(self.actions)
        anytime_scale = math.sqrt(4 * entropy)
        fixed_scale = math.sqrt(8 * entropy)
        return anytime_scale, fixed_scale

    def step(self, losses: Array, actions: Actions) -> Array:
        return blum_mansour_step(self.total, self.strategy, losses, self.rate_at(self.rounds + 1))

    def bound(self, rounds: int) -> float:
        """Bound swap regret per round.

        sqrt(A ln A / T) for the anytime rate, A ln A / (rate T) + rate / 8 for a constant one.
        """
        entropy = self.actions * math.log(self.actions)
        if self.constant_rate is None:
            return math.sqrt(entropy / rounds)
        if entropy == 0:  # a single action
            return 0.0
        return entropy / (self.constant_rate * rounds) + self.constant_rate / 8


@register.learner("swap-regret-matching")
class SwapRegretMatching(PairLearner):
    """Stationary distribution of the positive regrets of replacing one action by another.

    It plays uniformly while no such regret is positive.

    Examples
    --------
    >>> learner = SwapRegretMatching()
    >>> learner.start(1, 4)
    >>> round(learner.bound(300), 3)  # sqrt(4 x 3 / 300)
    0.2
    """

    name: ClassVar[str] = "swap-regret-matching"

    def step(self, losses: Array, actions: Actions) -> Array:
        return swap_regret_matching_step(self.total, self.strategy, losses)

    def bound(self, rounds: int) -> float:
        """Bound swap regret per round by sqrt(A (A - 1) / T)."""
        return math.sqrt(self.actions * (self.actions - 1) / rounds)


@dataclass(frozen=True)
class TreeShape:
    """The depth d and the breadth M of a tree, both at least 1; it covers M^d rounds."""

    depth: int
    breadth: int

    def span(self, level: int) -> int:
        """Return for how many rounds a step of a level lasts; level 0 is the tree itself."""
        rounds: int = self.breadth ** (self.depth - level)
        return rounds

    def bound(self, rounds: int, n_actions: int) -> float:
        """Bound swap regret per round after n ``rounds``, by the formula at the top."""
        node_regret = math.sqrt(self.breadth * math.log(n_actions) / 2)
        rounds_in_steps = 0  # sum over levels of the nodes that were born, times a step's rounds
        for level in range(1, self.depth + 1):
            step_rounds = self.span(level)
            nodes_born = -(-rounds // (self.breadth * step_rounds))  # rounded up
            rounds_in_steps += nodes_born * step_rounds
        return 1 / self.depth + node_regret * rounds_in_steps / (self.depth * rounds)


@register.learner("tree-swap")
class TreeSwap(RowLearner):
    """A tree of restarted Hedges, by depth d and breadth M; without both the horizon decides.

    Attributes
    ----------
    pending : (K, d, A)
        Losses of the open step of each level's node.
    total : (K, d, A)
        Mean losses of each level's node, summed over its closed steps.
    strategies : (K, d, A)
        The strategy that each level's node plays in its open step.
    """

    name: ClassVar[str] = "tree-swap"
    measure: ClassVar[str | None] = "swap"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("pending", "total", "strategies")
    pending: Array
    total: Array
    strategies: Array

    def __init__(self, *, depth: int | None = None, breadth: int | None = None) -> None:
        self._fixed_shape: TreeShape | None = None
        if depth is None and breadth is None:
            return
        if depth is None or breadth is None or depth < 1 or breadth < 1:
            raise UserError(
                f"depth = {depth}, breadth = {breadth}: give both, at least 1, or neither"
            )
        self._fixed_shape = TreeShape(depth, breadth)

    def begin(self) -> None:
        """Plant the tree; UserError if neither its size nor the horizon is known."""
        tree = self.tree_shape()
        state_shape = (self.rows, tree.depth, self.actions)
        self.pending = np.zeros(state_shape)
        self.total = np.zeros(state_shape)
        self.strategies = np.full(state_shape, 1.0 / self.actions)
        self._spans = [tree.span(level) for level in range(tree.depth + 1)]
        self._rate = math.sqrt(8 * math.log(self.actions) / tree.breadth)

    def tree_shape(self) -> TreeShape:
        """Return the tree that was asked for, else the one with the least bound at the horizon.

        UserError if neither the tree nor the horizon is known.
        """
        if self._fixed_shape is not None:
            return self._fixed_shape
        if self.horizon is None:
            raise UserError("tree-swap needs the horizon, or depth and breadth; give one of them")
        horizon = self.horizon
        max_depth = max(horizon - 1, 1).bit_length()  # at which a breadth of 2 suffices
        candidates = [
            TreeShape(depth, _least_root(horizon, depth)) for depth in range(1, max_depth + 1)
        ]
        return min(candidates, key=lambda tree: tree.bound(horizon, self.actions))

    def step(self, losses: Array, actions: Actions) -> Array:
        self.pending += losses[:, None]
        for node, step_rounds in enumerate(self._spans[1:]):  # along the second axis of the arrays
            if self.rounds % step_rounds:
                continue
            self.total[:, node] += self.pending[:, node] / step_rounds
            self.pending[:, node] = 0.0
            node_is_done = self.rounds % self._spans[node] == 0
            if node_is_done:
                self.total[:, node] = 0.0
            self.strategies[:, node] = quantal_response(self.total[:, node], self._rate)
        return mean_of_levels(self.strategies)

    def bound(self, rounds: int) -> float:
        return self.tree_shape().bound(rounds, self.actions)


def _least_root(number: int, power: int) -> int:
    """Return the least integer whose power is at least the number."""
    root: int = max(round(number ** (1 / power)) - 1, 1)
    while root**power < number:
        root += 1
    return root
