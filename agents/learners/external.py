r"""Learners against the best fixed action, with full information or with their own loss alone.

Scenario files name them as the ``response`` of a cohort; ``agents.learners.base`` says how they are
called. All but follow the leader have a bound on their external regret.

Full information
----------------
With q the strategy, l the losses of a round, L_a the cumulative loss of action a, t the round and
x+ = max(x, 0):

    hedge                   q_a ~ exp(-rate_t L_a)
    regret-matching         q_a ~ R_a+, R_a = sum of <q, l> - l_a; uniform where no R_a is positive
    regret-matching-plus    the same with R_a <- (R_a + <q, l> - l_a)+ every round
    follow-the-leader       all on the least L_a, the lowest index where several tie
    quantal-fictitious-play q_a ~ exp(-eta L_a / (t - 1)): logit response to the mean loss

Sources: Freund and Schapire 1997, rates and bounds of Cesa-Bianchi and Lugosi 2006 (Theorems 2.2
and 2.3); Hart and Mas-Colell 2000, in expectation (the polynomial forecaster with p = 2 of
Cesa-Bianchi and Lugosi 2006, Corollary 2.1); Tammelin, Burch, Johanson and Bowling 2015;
Fudenberg and Levine 1995 for smooth fictitious play.

L and R are ``total`` in the code, q is ``strategy``.

Its own loss alone
------------------
EXP3 is exponential weights of unbiased estimates, made from the one loss that was seen. It has two
forms.

**With exploration**, as printed by Auer, Cesa-Bianchi, Freund and Schapire (2002): gains 1 - l are
estimated by (1 - l_a) [a was played] / q_a, and a share gamma = A rate (at most 1) of the strategy
is uniform. Their Theorem 3.1 bounds pseudo-regret by (e - 1) gamma T + A ln(A) / gamma. With a rate
that falls, each round costs gamma_t for exploring and (e - 2) rate_t sum_a w_a / q_a for the square
of the estimates, at most 2 (e - 2) A rate_t, because q_a >= (1 - gamma) w_a and q_a >= gamma / A;
the inequality of ``agents.learners.base`` then gives

    T x pseudo-regret <= ln(A) / rate_T + (2 e - 3) A sum_t rate_t.

**Without**, as in Bubeck and Cesa-Bianchi (2012, Theorem 3.1): losses are estimated by
l_a [a was played] / q_a. Its bound is smaller, its regret of a single run scatters more.
"""

import math
from typing import ClassVar

import numpy as np

from regretless.agents.learners.base import Actions, RatedLearner, TotalLearner
from regretless.agents.learners.kernels import add_estimates, regret_matching_step
from regretless.market import register
from regretless.market.best_response import best_response, logit_rows
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import answer_as_numbers, name_of
from regretless.market.records import one_hot


@register.learner("regret-matching")
class RegretMatching(TotalLearner):
    """Plays in proportion to positive cumulative regret, its ``total``.

    Where no regret is positive it plays uniformly. With ``floored`` it forgets negative regret.

    Examples
    --------
    >>> learner = RegretMatching()
    >>> learner.start(1, 2)
    >>> learner.learn(np.array([[0.0, 1.0]]), np.array([0]))
    >>> learner.play()  # only the first has positive regret
    array([[1., 0.]])
    """

    name: ClassVar[str] = "regret-matching"
    measure: ClassVar[str | None] = "external"
    floored: ClassVar[bool] = False

    def step(self, losses: Array, actions: Actions) -> Array:
        least_regret = 0.0 if self.floored else -math.inf
        return regret_matching_step(self.total, self.strategy, losses, least_regret)

    def bound(self, rounds: int) -> float:
        """Bound external regret per round by sqrt(A / T).

        The squares of the positive regrets sum to at most A T, because a strategy in proportion to
        them makes the cross term vanish every round.
        """
        return math.sqrt(self.actions / rounds)


@register.learner("regret-matching-plus")
class RegretMatchingPlus(RegretMatching):
    """Regret matching that forgets negative regret at once."""

    name: ClassVar[str] = "regret-matching-plus"
    floored: ClassVar[bool] = True


@register.learner("hedge")
class Hedge(RatedLearner, TotalLearner):
    """Exponential weights, at the rate sqrt(8 ln A / t), "fixed" sqrt(8 ln A / T), or a number.

    Examples
    --------
    >>> hedge = Hedge(rate=1.0)
    >>> hedge.start(1, 2)
    >>> hedge.learn(np.array([[0.0, 1.0]]), np.array([0]))
    >>> hedge.play().round(3)  # in proportion to 1 and exp(-1)
    array([[0.731, 0.269]])
    >>> round(hedge.bound(100), 4)  # ln(2) / 100 + 1 / 8
    0.1319
    """

    name: ClassVar[str] = "hedge"
    measure: ClassVar[str | None] = "external"

    def rate_scales(self) -> tuple[float, float]:
        scale = math.sqrt(8 * math.log(self.actions))
        return scale, scale

    def step(self, losses: Array, actions: Actions) -> Array:
        self.total += losses
        return logit_rows(self.total, self._rates())

    def _rates(self) -> Array:
        """Return the rate of the coming round: (1,) of all rows, or (K,), one for each.

        UserError if ``rate_at`` of a subclass returns something else.
        """
        rate = self.rate_at(self.rounds + 1)
        if isinstance(rate, float):
            return np.array([rate])
        expected = f"return a number, or one for each of {self.rows} rows"
        rates = answer_as_numbers(self.rate_at, rate, expected).astype(np.float64)
        if rates.size not in {1, self.rows}:
            raise UserError(f"{name_of(self.rate_at)} returned {brief(rate)}; {expected}")
        return rates.reshape(-1)

    def bound(self, rounds: int) -> float:
        """Bound external regret per round.

        2 sqrt(ln A / 2T) + sqrt(ln A / 8) / T for the anytime rate (Cesa-Bianchi and Lugosi 2006,
        Theorem 2.3), ln A / (rate T) + rate / 8 for a constant one (Theorem 2.2).
        """
        entropy = math.log(self.actions)
        if self.constant_rate is None:
            return 2 * math.sqrt(entropy / (2 * rounds)) + math.sqrt(entropy / 8) / rounds
        if entropy == 0:  # a single action
            return 0.0
        return entropy / (self.constant_rate * rounds) + self.constant_rate / 8


@register.learner("follow-the-leader")
class FollowTheLeader(TotalLearner):
    """Plays what has been best so far: fictitious play, with no bound. It begins with action 0."""

    name: ClassVar[str] = "follow-the-leader"

    def begin(self) -> None:
        super().begin()
        self.strategy = self.step(self.total, np.zeros(self.rows, dtype=np.intp))

    def step(self, losses: Array, actions: Actions) -> Array:
        self.total += losses
        return one_hot(best_response(self.total), self.actions)


@register.learner("quantal-fictitious-play")
class QuantalFictitiousPlay(TotalLearner):
    """Fictitious play with a quantal response of smoothness eta: logit of the mean loss so far."""

    name: ClassVar[str] = "quantal-fictitious-play"
    measure: ClassVar[str | None] = "external"

    def __init__(self, *, eta: float) -> None:
        if not 0 < eta < math.inf:
            raise UserError(f"eta = {eta}: give a positive number")
        self.eta = float(eta)

    def step(self, losses: Array, actions: Actions) -> Array:
        self.total += losses
        return logit_rows(self.total, np.array([self.eta / self.rounds]))

    def bound(self, rounds: int) -> float:
        """Bound external regret per round by ln(A) / eta + eta (2 + ln T) / 8T.

        The inequality of ``agents.learners.base`` with rates eta, eta, eta / 2, ..., eta / (T - 1).
        """
        variation_term = self.eta * (2 + math.log(rounds)) / (8 * rounds)
        return math.log(self.actions) / self.eta + variation_term


@register.learner("exp3")
class EXP3(RatedLearner, TotalLearner):
    """Exponential weights of importance-weighted estimates.

    The rate is sqrt(ln A / (A t)), "fixed" sqrt(ln A / (A T)), or sqrt(2 ln A / (A T)) without
    ``exploration``, or a number. With it a share A x rate, at most 1, of the strategy is uniform.

    Examples
    --------
    >>> bandit = EXP3(rate=0.5, exploration=False)
    >>> bandit.start(1, 2)
    >>> bandit.learn(np.array([[1.0, 0.0]]), np.array([0]))  # reads the loss of action 0 alone
    >>> bandit.play().round(3)  # estimates 1 / 0.5 and 0: in proportion to exp(-1) and 1
    array([[0.269, 0.731]])
    """

    name: ClassVar[str] = "exp3"
    bandit: ClassVar[bool] = True
    measure: ClassVar[str | None] = "external"

    def __init__(self, *, rate: str | float = "anytime", exploration: bool = True) -> None:
        super().__init__(rate=rate)
        self.exploration = exploration

    def start(self, rows: int, actions: int, *, horizon: int | None = None) -> None:
        super().start(rows, actions, horizon=horizon)
        if self.exploration and isinstance(self.rate, float) and self.rate > 1 / actions:
            raise UserError(f"rate = {self.rate}: with exploration it is at most 1 / {actions}")

    def rate_scales(self) -> tuple[float, float]:
        anytime_squared = math.log(self.actions) / self.actions
        fixed_squared = anytime_squared if self.exploration else 2 * anytime_squared
        return math.sqrt(anytime_squared), math.sqrt(fixed_squared)

    def step(self, losses: Array, actions: Actions) -> Array:
        rate = self.rate_at(self.rounds + 1)
        exploration_share = 0.0
        if self.exploration:
            rate = min(rate, 1 / self.actions)
            exploration_share = self.actions * rate
        # With exploration estimates are of gains 1 - l, which enter with a minus.
        baseline = 1.0 if exploration_share else 0.0
        add_estimates(self.total, self.strategy, losses, actions, baseline)
        strategy = logit_rows(self.total, np.array([rate]))
        strategy *= 1 - exploration_share
        strategy += exploration_share / self.actions
        return strategy

    def bound(self, rounds: int) -> float:
        """Bound external pseudo-regret per round: in expectation, against each fixed action.

        (4 e - 5) sqrt(A ln A / T) for the anytime rate, 2 sqrt(A ln A / T) without exploration;
        (e - 1) A rate + ln A / (rate T) for a constant one, A rate / 2 + ln A / (rate T) without.
        """
        entropy = math.log(self.actions)
        if self.constant_rate is None:
            factor = 4 * math.e - 5 if self.exploration else 2
            return factor * math.sqrt(self.actions * entropy / rounds)
        if entropy == 0:  # a single action
            return 0.0
        rate = self.constant_rate
        variance_factor = 0.5
        if self.exploration:
            rate = min(rate, 1 / self.actions)
            variance_factor = math.e - 1
        return variance_factor * self.actions * rate + entropy / (rate * rounds)
