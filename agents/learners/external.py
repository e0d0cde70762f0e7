r"""Learners without external regret, and the one that has it: follow the leader.

With L_a the cumulative loss of action a, t the round and x+ = max(x, 0):

    hedge                   q_a ~ exp(-rate_t L_a)
    regret-matching         q_a ~ R_a+, R_a = sum of <q, l> - l_a; uniform where no R_a is positive
    regret-matching-plus    the same with R_a <- (R_a + <q, l> - l_a)+ every round
    follow-the-leader       all on the least L_a, the lowest index where several tie
    quantal-fictitious-play q_a ~ exp(-eta L_a / (t - 1)): logit response to the mean loss

Sources: Freund and Schapire 1997, rates and bounds of Cesa-Bianchi and Lugosi 2006 (Theorems 2.2
and 2.3); Hart and Mas-Colell 2000, in expectation (the polynomial forecaster with p = 2 of
Cesa-Bianchi and Lugosi 2006, Corollary 2.1); Tammelin, Burch, Johanson and Bowling 2015;
Fudenberg and Levine 1995 for smooth fictitious play.
"""

import math
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, RatedLearner, RowLearner, TotalLearner
from regretless.agents.learners.kernels import hedge_pass, leader_pass, matching_pass
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError


class _Matching(RowLearner):
    """Plays in proportion to positive regret."""

    measure: ClassVar[str | None] = "external"
    REMEMBERED: ClassVar[tuple[str, ...]] = ("regret",)
    floored: ClassVar[bool]
    regret: Array

    def begin(self) -> None:
        """Start from no regret."""
        self.regret = np.zeros((self.rows, self.actions))

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the round's regrets."""
        return matching_pass(self.regret, self.law, losses, self.floored)

    def bound(self, rounds: int) -> float:
        """Bound external regret per round by sqrt(A / T).

        The squares of the positive regrets sum to at most A T, because a law in proportion to
        them makes the cross term vanish every round.
        """
        return math.sqrt(self.actions / rounds)


@register.learner("hedge")
class Hedge(RatedLearner, TotalLearner):
    """Exponential weights.

    Parameters
    ----------
    rate : "anytime", "fixed" or float
        sqrt(8 ln A / t), sqrt(8 ln A / T), or a positive number.
    """

    name: ClassVar[str] = "hedge"
    measure: ClassVar[str | None] = "external"

    def scales(self) -> tuple[float, float]:
        """Return sqrt(8 ln A) for both rates."""
        scale = math.sqrt(8 * math.log(self.actions))
        return scale, scale

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the losses."""
        return hedge_pass(self.total, losses, self.rate_at(self.rounds + 1))

    def bound(self, rounds: int) -> float:
        """Bound external regret per round.

        2 sqrt(ln A / 2T) + sqrt(ln A / 8) / T for the anytime rate (Cesa-Bianchi and Lugosi 2006,
        Theorem 2.3), ln A / (rate T) + rate / 8 for a constant one (Theorem 2.2).
        """
        entropy = math.log(self.actions)
        if self.constant is None:
            return 2 * math.sqrt(entropy / (2 * rounds)) + math.sqrt(entropy / 8) / rounds
        return entropy / (self.constant * rounds) + self.constant / 8 if entropy else 0.0


@register.learner("regret-matching")
class RegretMatching(_Matching):
    """Plays in proportion to positive cumulative regret."""

    name: ClassVar[str] = "regret-matching"
    floored: ClassVar[bool] = False


@register.learner("regret-matching-plus")
class RegretMatchingPlus(_Matching):
    """Regret matching that forgets negative regret at once."""

    name: ClassVar[str] = "regret-matching-plus"
    floored: ClassVar[bool] = True


@register.learner("follow-the-leader")
class FollowTheLeader(TotalLearner):
    """Plays what has been best so far: fictitious play, with no bound. It begins with action 0."""

    name: ClassVar[str] = "follow-the-leader"

    def begin(self) -> None:
        """Start from no losses, on the lowest index."""
        super().begin()
        self.law = leader_pass(self.total, np.zeros_like(self.total))

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the losses."""
        return leader_pass(self.total, losses)


@register.learner("quantal-fictitious-play")
class QuantalFictitiousPlay(TotalLearner):
    """Fictitious play with a quantal response: logit of the mean loss so far.

    Parameters
    ----------
    eta : float
        Smoothness, positive.
    """

    name: ClassVar[str] = "quantal-fictitious-play"
    measure: ClassVar[str | None] = "external"

    def __init__(self, *, eta: float) -> None:
        if not 0 < eta < math.inf:
            raise UserError(f"eta = {eta}: give a positive number")
        self.eta = float(eta)

    def step(self, losses: Array, actions: Actions) -> Array:
        """Add the losses."""
        return hedge_pass(self.total, losses, self.eta / self.rounds)

    def bound(self, rounds: int) -> float:
        """Bound external regret per round by ln(A) / eta + eta (2 + ln T) / 8T.

        The inequality of ``agents.learners.base`` with rates eta, eta, eta / 2, ..., eta / (T - 1).
        """
        smooth = self.eta * (2 + math.log(rounds)) / (8 * rounds)
        return math.log(self.actions) / self.eta + smooth
