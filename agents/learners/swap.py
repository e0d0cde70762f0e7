r"""Learners without swap regret, for few actions and for many.

For few actions they play the stationary distribution of an A x A chain every round.

**Blum-Mansour** (2007): a copy of Hedge per action a, charged q_a l; the copies' strategies are the
rows of a chain and q is its stationary distribution, so that the loss suffered is the sum of what
the copies suffer and swap regret the sum of their external regrets. Copy a's losses lie in [0,
q_a], and sum_a q_a^2 <= 1, so with the inequality of ``agents.learners.base``

    T x swap regret <= A ln(A) / rate_T + sum_t rate_t / 8.

**Swap regret matching** (Hart and Mas-Colell 2001, section 4.1; the bound after Greenwald, Li and
Marks 2006): with R_ab = sum of q_a (l_a - l_b), q is stationary for the rates R_ab+, which makes
<R+, r> vanish for the next increment r. Its squares sum to at most
sum_a q_a^2 sum_b (l_a - l_b)^2 <= A - 1, so those of R+ stay below (A - 1) T, and

    T x swap regret = sum_a max_b R_ab+ <= sqrt(A sum_a max_b (R_ab+)^2) <= sqrt(A (A - 1) T).

**TreeSwap**, for many actions (Dagan, Daskalakis, Fishelson and Golowich 2024, Algorithm 1; with
the same tree, Peng and Rubinstein 2024). A tree of depth d and breadth M covers M^d rounds. A node
at level h = 1, ..., d lives for M steps of M^(d - h) rounds each and runs a fresh Hedge (rate
sqrt(8 ln A / M)) on the steps' mean losses; its strategy stays fixed during a step. The mixed
strategy is the plain mean of the strategies of the d nodes that are alive. Beyond M^d rounds a new
tree begins.

**Bound.** Within a step the strategy is fixed, so the best replacement costs at least the step's
best action: with OPT_h the sum over the steps of level h of their best action's loss, the swap
regret of level h is at most its own loss minus OPT_h, and its own loss is at most OPT_(h-1) plus
the regret M^(d - h) sqrt(M ln(A) / 2) of each node. Summed over the levels OPT telescopes to at
most n. Rounds after the n-th may be taken to cost nothing, so only the nodes that were born count:

    swap regret per round <= 1 / d + sqrt(M ln(A) / 2) / (d n) sum_h ceil(n / M^(d-h+1)) M^(d-h),

which is 1 / d + sqrt(ln(A) / 2M) at n = M^d. Depth and breadth default to those that make it least
at the horizon, M the least integer with M^d >= T. A row keeps 3 d A numbers.
"""

import math
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, PairLearner, RatedLearner, RowLearner
from regretless.agents.learners.kernels import copies_pass, swaps_pass
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

    def scales(self) -> tuple[float, float]:
        entropy = self.actions * math.log(self.actions)
        return math.sqrt(4 * entropy), math.sqrt(8 * entropy)

    def step(self, losses: Array, actions: Actions) -> Array:
        return copies_pass(self.total, self.strategy, losses, self.rate_at(self.rounds + 1))

    def bound(self, rounds: int) -> float:
        """Bound swap regret per round.

        sqrt(A ln A / T) for the anytime rate, A ln A / (rate T) + rate / 8 for a constant one.
        """
        entropy = self.actions * math.log(self.actions)
        if self.constant is None:
            return math.sqrt(entropy / rounds)
        return entropy / (self.constant * rounds) + self.constant / 8 if entropy else 0.0


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
        return swaps_pass(self.total, self.strategy, losses)

    def bound(self, rounds: int) -> float:
        """Bound swap regret per round by sqrt(A (A - 1) / T)."""
        return math.sqrt(self.actions * (self.actions - 1) / rounds)


@register.learner("tree-swap")
class TreeSwap(RowLearner):
    """A tree of restarted Hedges, by depth d and breadth M; without both the horizon decides."""

    name: ClassVar[str] = "tree-swap"
    measure: ClassVar[str | None] = "swap"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("pending", "total", "strategies")
    pending: Array
    total: Array
    strategies: Array
    spans: list[int]  # rounds of the tree, then of a step at each level

    def __init__(self, *, depth: int | None = None, breadth: int | None = None) -> None:
        given = depth is not None and breadth is not None and depth >= 1 and breadth >= 1
        if not given and (depth, breadth) != (None, None):
            told = f"depth = {depth}, breadth = {breadth}"
            raise UserError(f"{told}: give both, at least 1, or neither")
        self.depth, self.breadth = depth, breadth

    def begin(self) -> None:
        """Plant the tree; UserError if neither its size nor the horizon is known."""
        depth, breadth = self.shape()
        shape = (self.rows, depth, self.actions)
        self.pending, self.total = np.zeros(shape), np.zeros(shape)
        self.strategies = np.full(shape, 1.0 / self.actions)
        self.spans = [breadth ** (depth - h) for h in range(depth + 1)]
        self._rate = math.sqrt(8 * math.log(self.actions) / breadth)

    def shape(self) -> tuple[int, int]:
        """Return depth and breadth."""
        if self.depth is not None and self.breadth is not None:
            return self.depth, self.breadth
        if self.horizon is None:
            raise UserError("tree-swap needs the horizon, or depth and breadth; give one of them")
        horizon, depths = self.horizon, range(1, max(self.horizon - 1, 1).bit_length() + 1)
        shapes = [(depth, _root(horizon, depth)) for depth in depths]
        return min(shapes, key=lambda shape: _bound(horizon, self.actions, *shape))

    def step(self, losses: Array, actions: Actions) -> Array:
        self.pending += losses[:, None]
        for h, step in enumerate(self.spans[1:]):
            if self.rounds % step:
                continue
            self.total[:, h] += self.pending[:, h] / step
            self.pending[:, h] = 0.0
            if self.rounds % self.spans[h] == 0:
                self.total[:, h] = 0.0
            self.strategies[:, h] = quantal_response(self.total[:, h], self._rate)
        mean = self.strategies.sum(1)
        return np.asarray(mean / mean.sum(1, keepdims=True))

    def bound(self, rounds: int) -> float:
        return _bound(rounds, self.actions, *self.shape())


def _bound(rounds: int, actions: int, depth: int, breadth: int) -> float:
    node = math.sqrt(breadth * math.log(actions) / 2)
    steps: list[int] = [breadth ** (depth - h) for h in range(1, depth + 1)]
    born = sum(-(-rounds // (breadth * step)) * step for step in steps)
    return 1 / depth + node * born / (depth * rounds)


def _root(number: int, power: int) -> int:
    """Return the least integer whose power is at least the number."""
    root: int = max(round(number ** (1 / power)) - 1, 1)
    while root**power < number:
        root += 1
    return root
