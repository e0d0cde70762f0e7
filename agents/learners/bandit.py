r"""A learner that sees no more than the loss of its own action.

EXP3: exponential weights of unbiased estimates, made from the one loss that was seen. Two forms:

**With exploration**, as printed by Auer, Cesa-Bianchi, Freund and Schapire (2002): gains 1 - l are
estimated by (1 - l_a) [a was played] / q_a, and a share gamma = A rate (at most 1) of the law is
uniform. Their Theorem 3.1 bounds pseudo-regret by (e - 1) gamma T + A ln(A) / gamma. With a rate
that falls, each round costs gamma_t for exploring and (e - 2) rate_t sum_a w_a / q_a for the
square of the estimates, at most 2 (e - 2) A rate_t, because q_a >= (1 - gamma) w_a and
q_a >= gamma / A; the inequality of ``agents.learners.base`` then gives

    T x pseudo-regret <= ln(A) / rate_T + (2 e - 3) A sum_t rate_t.

**Without**, as in Bubeck and Cesa-Bianchi (2012, Theorem 3.1): losses are estimated by
l_a [a was played] / q_a. Its bound is smaller, its regret of a single run scatters more.
"""

import math
from typing import ClassVar

from regretless.agents.learners.base import Actions, RatedLearner, TotalLearner
from regretless.agents.learners.kernels import bandit_pass
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError


@register.learner("exp3")
class EXP3(RatedLearner, TotalLearner):
    """Exponential weights of importance-weighted estimates.

    Parameters
    ----------
    rate : "anytime", "fixed" or float
        sqrt(ln A / (A t)), sqrt(ln A / (A T)), or a positive number, at most 1 / A with
        exploration; the fixed rate without exploration is sqrt(2 ln A / (A T)).
    exploration : bool
        Whether a share A x rate of the law is uniform.
    """

    name: ClassVar[str] = "exp3"
    bandit: ClassVar[bool] = True
    measure: ClassVar[str | None] = "external"

    def __init__(self, *, rate: str | float = "anytime", exploration: bool = True) -> None:
        super().__init__(rate=rate)
        self.exploration = exploration

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        """Forget everything and prepare, as every learner does.

        Raises
        ------
        UserError
            If a number is out of its range, or the horizon is needed and missing.
        """
        super().start(rows, actions, horizon=horizon)
        number = not isinstance(self.rate, str)
        if number and self.exploration and self.rate_at(1) > 1 / actions:
            raise UserError(f"rate = {self.rate}: with exploration it is at most 1 / {actions}")

    def scales(self) -> tuple[float, float]:
        """Return sqrt(ln A / A) twice, or sqrt(2 ln A / A) for the fixed rate by itself."""
        each = math.log(self.actions) / self.actions
        return math.sqrt(each), math.sqrt(each if self.exploration else 2 * each)

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the estimate from the own action's loss."""
        rate, share = self.rate_at(self.rounds + 1), 0.0
        if self.exploration:
            rate = min(rate, 1 / self.actions)
            share = self.actions * rate
        return bandit_pass(self.total, self.law, losses, actions, rate, share)

    def bound(self, rounds: int) -> float:
        """Bound external pseudo-regret per round: in expectation, against each fixed action.

        (4 e - 5) sqrt(A ln A / T) for the anytime rate, 2 sqrt(A ln A / T) without exploration;
        (e - 1) A rate + ln A / (rate T) for a constant one, A rate / 2 + ln A / (rate T) without.
        """
        entropy = math.log(self.actions)
        if self.constant is None:
            factor = 4 * math.e - 5 if self.exploration else 2
            return factor * math.sqrt(self.actions * entropy / rounds)
        if not entropy:
            return 0.0
        rate = min(self.constant, 1 / self.actions) if self.exploration else self.constant
        slope = math.e - 1 if self.exploration else 0.5
        return slope * self.actions * rate + entropy / (rate * rounds)
