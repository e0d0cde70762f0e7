r"""Learners without swap regret, for few actions: a stationary law of an A x A chain per round.

**Blum-Mansour** (2007): a copy of Hedge per action a, charged q_a l; the copies' laws are the rows
of a chain and q is its stationary law, so that the loss suffered is the sum of what the copies
suffer and swap regret the sum of their external regrets. Copy a's losses lie in [0, q_a], and
sum_a q_a^2 <= 1, so with the inequality of ``agents.learners.base``

    T x swap regret <= A ln(A) / rate_T + sum_t rate_t / 8.

**Swap regret matching** (Hart and Mas-Colell 2001, section 4.1; the bound after Greenwald, Li and
Marks 2006): with R_ab = sum of q_a (l_a - l_b), q is stationary for the rates R_ab+, which makes
<R+, r> vanish for the next increment r. Its squares sum to at most
sum_a q_a^2 sum_b (l_a - l_b)^2 <= A - 1, so those of R+ stay below (A - 1) T, and

    T x swap regret = sum_a max_b R_ab+ <= sqrt(A sum_a max_b (R_ab+)^2) <= sqrt(A (A - 1) T).
"""

import math
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, RatedLearner, RowLearner
from regretless.agents.learners.kernels import copies_pass, swaps_pass
from regretless.market import register
from regretless.market.core.arrays import Array


@register.learner("blum-mansour")
class BlumMansour(RatedLearner):
    """One copy of Hedge per action, and the stationary law of what they play.

    Parameters
    ----------
    rate : "anytime", "fixed" or float
        Of every copy: sqrt(4 A ln A / t), sqrt(8 A ln A / T), or a positive number.
    """

    name: ClassVar[str] = "blum-mansour"
    measure: ClassVar[str | None] = "swap"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("total",)
    total: Array

    def begin(self) -> None:
        """Start from no losses."""
        self.total = np.zeros((self.rows, self.actions, self.actions))

    def scales(self) -> tuple[float, float]:
        """Return the numbers that make the module's bound least."""
        entropy = self.actions * math.log(self.actions)
        return math.sqrt(4 * entropy), math.sqrt(8 * entropy)

    def step(self, losses: Array, actions: Actions) -> Array:
        """Charge every copy its share of the losses."""
        return copies_pass(self.total, self.law, losses, self.rate_at(self.rounds + 1))

    def bound(self, rounds: int) -> float:
        """Bound swap regret per round.

        sqrt(A ln A / T) for the anytime rate, A ln A / (rate T) + rate / 8 for a constant one.
        """
        entropy = self.actions * math.log(self.actions)
        if self.constant is None:
            return math.sqrt(entropy / rounds)
        return entropy / (self.constant * rounds) + self.constant / 8 if entropy else 0.0


@register.learner("swap-regret-matching")
class SwapRegretMatching(RowLearner):
    """Stationary law of the positive regrets of replacing one action by another.

    It plays uniformly while no such regret is positive.
    """

    name: ClassVar[str] = "swap-regret-matching"
    measure: ClassVar[str | None] = "swap"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("regret",)
    regret: Array

    def begin(self) -> None:
        """Start from no regret."""
        self.regret = np.zeros((self.rows, self.actions, self.actions))

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the round's regrets."""
        return swaps_pass(self.regret, self.law, losses)

    def bound(self, rounds: int) -> float:
        """Bound swap regret per round by sqrt(A (A - 1) / T)."""
        return math.sqrt(self.actions * (self.actions - 1) / rounds)
