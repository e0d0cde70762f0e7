r"""The switch test: when a reference model has cost more than chance explains.

A forecaster broadcasts the forecast of its reference unchanged until this test rejects the model
(``reference.Reference``). Two things can reject it, each in at most ``FALSE_ALARMS`` of all runs
of a calibrated model: a **martingale** for everything that the forecaster protects
(``SwitchTest``), and **bets** on one number, the mean surprise of all losses (``Bets``).

**What is watched.** For a listed loss k, an action a and a comparator c, the regret so far

    R = sum_t q_t(a) (l_k(a, y_t) - l_k(c_t, y_t)) / D_k,    V = sum_t of its increments' squares,

D_k the range of the loss's gains, so that increments are in [-1, 1]; for events of coordinates,
which protect losses that nobody listed, the bias of either sign. If the model is calibrated, no
regret is expected to grow and no bias to change. So M(R, V), the mixture over ten rates
(``mixture_of_rates``), is a supermartingale that begins at 1, however skewed the increments are: by
Ville's inequality it ever exceeds x with probability 1 / x at most. The model is rejected when some

    M(R, V) > m / alpha,    which is    R > L(V),

where m counts all that can raise the alarm in a run and L is the inverse of M in its first
argument, about sqrt(2 V ln(m / alpha)). Whatever the model is, R <= L(V) holds as long as it is
trusted, and R <= L(V) + 1 when the games begin: the bounds of ``guarantees`` start there.

**Sums over actions.** A loss's greatest sum over a of R(a, phi(a)), over all C^A assignments phi of
comparators to actions, and its regret to one of M models are tested as well, with alpha shared
equally among these kinds of test. A round plays a with probability q(a), and these add up to 1, so

    exp(eta sum_a q d_a - psi sum_a q d_a^2) <= sum_a q exp(eta d_a - psi d_a^2) <= 1 + eta E gain,

d_a the increment given that a is played: V adds up q d^2, which for one action in a round is the
square of the increment.

**How alpha is shared.** Equal parts go to all blocks of a run, which have a reference each, to all
turns where outcomes are late, whose regrets and wealths are supermartingales of their own, to all
experts of the events, cells and intervals included, and to the kinds of test.

**Bets.** Thousands of experts take some fifty rounds, however hostile nature is. One number is
faster: by how much losses exceed what best responses expect,

    s_t = mean over l of l(a_t, y_t) - l(a_t, b_t)  >=  -m_t,

b_t what the model predicts and m_t the most that losses could fall short by, known before y_t. If
the model is calibrated, who bets a share h of their wealth on s_t > 0 has prod_t (1 + h s_t / m_t),
a martingale, or less where a gain above ``GREATEST_SURPRISE`` is cut; the mean over ``BET_SHARES``
exceeds 1 / alpha with probability alpha at most. An overconfident model loses such bets as well, at
no cost to anybody. So it is then rejected only if some R, or its sum over a loss's actions, exceeds
``DOUBTFUL_ROOTS`` u sqrt(V + 1) in that round.

**Width.** With u = ``give_up`` every logarithm of 1 / alpha above, that of m included, is
multiplied by u^2: about u times as much regret is let pass.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from regretless.forecaster.mixture_of_rates import RATES, greatest_gain, log_mixture
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled

FALSE_ALARMS = 0.01  # alpha: of the martingales of a run, and again of its bets
GREATEST_SHARE = 0.9
BET_SHARES = np.array([GREATEST_SHARE * 0.5**j for j in range(7)])  # h
GREATEST_SURPRISE = 2.0  # s / m that counts
DOUBTFUL_ROOTS = 1.5  # of V + 1, by which a regret is cause for doubt
GRID_RATIO = 1.01  # between neighbouring variations at which ``reach`` is found


@dataclass(frozen=True)
class SwitchTest:
    """The martingale test of everything that one forecaster protects."""

    tests: int  # among how many regrets and biases of this forecaster its part of alpha is shared
    width: float = 1.0  # u, above 0
    turns: int = 1  # how many forecasters take turns with the reference
    blocks: int = 1  # how many references a run has

    @property
    def evidence(self) -> float:
        """The ln M at which the model is rejected: u^2 ln(m / alpha)."""
        log_tests_of_run = math.log(self.tests) + math.log(self.turns * self.blocks)  # ln m
        return self.width**2 * (log_tests_of_run - math.log(FALSE_ALARMS))

    def limit(self, squares: Array | float) -> Array:
        """Return L(V), the greatest R at which the model is still trusted.

        It is the inverse of M in R: L grows and is concave in V.
        """
        return greatest_gain(squares, self.evidence)

    def most(self, squares: Array | float) -> Array:
        """Return what no R exceeds as long as the model is trusted."""
        judged_later = float(self.turns > 1)  # one more round may have been played by then
        return self.limit(squares) + judged_later

    def most_of_sizes(self, sizes: Array | float) -> Array:
        """Return min(C, ``most(C)``), which bounds R by the sum C of its increments' sizes alone.

        As L is nowhere below ``harmless``, it is inverted for larger sums only.
        """
        greatest = np.array(sizes, dtype=np.float64)
        is_large = greatest > self.harmless
        if is_large.any():
            greatest[is_large] = np.minimum(greatest[is_large], self.most(greatest[is_large]))
        return greatest

    def reach(self, rounds: int) -> float:
        """Return how many roots of its C no R exceeds in the round in which trust is lost.

        C >= V is the sum of the increments' sizes, at most ``rounds``.
        """
        return _reach(self.evidence, rounds)

    def hint(self, squares: Array | float) -> Array:
        """Return the R that is cause for doubt, at which a surprise is enough."""
        return np.asarray(self.width * DOUBTFUL_ROOTS * np.sqrt(1.0 + squares))

    @property
    def harmless(self) -> float:
        """The R up to which nothing is rejected, whatever V is: M(R, V) <= exp(eta_1 R)."""
        return self.evidence / float(RATES[0])

    def rejects(self, regret: Array, squares: Array, *, hint: bool = False) -> bool:
        """Whether some R is above its limit at V; with ``hint``, whether one is doubtful."""
        if hint:
            return bool((regret > self.hint(squares)).any())
        is_large = regret > self.harmless
        if not is_large.any():
            return False
        return bool((log_mixture(regret[is_large], squares[is_large]) > self.evidence).any())


@lru_cache(maxsize=256)
def _reach(evidence: float, rounds: int) -> float:
    """Bound min(C, L(C) + 1) / sqrt(C) over 0 < C <= rounds.

    Below C = L(0) + 1 it is sqrt(C). Above, as L never falls, the value between two points of a
    grid is at most that of the upper point's numerator over the lower point's root.
    """
    least_limit = float(greatest_gain(0.0, evidence)) + 1.0  # L(0) + 1
    if rounds <= least_limit:
        return math.sqrt(rounds)
    steps = math.ceil(math.log(rounds / least_limit) / math.log(GRID_RATIO))
    variation = np.geomspace(least_limit, rounds, steps + 1)
    numerators = np.minimum(variation[1:], greatest_gain(variation[1:], evidence) + 1.0)
    greatest_on_grid = float((numerators / np.sqrt(variation[:-1])).max())
    greatest = max(math.sqrt(least_limit), greatest_on_grid)
    return min(greatest, math.sqrt(rounds))


class Bets(Checkpointable):
    """Wealths of bets that losses exceed what the model lets expect.

    Parameters
    ----------
    width : float
        u.
    turns : int
        How many forecasters take turns with the model: each round's bet is with the wealth of its
        turn, as the outcomes of the other turns' open rounds are not known when it is placed.
    blocks : int
        How many references a run has.

    Attributes
    ----------
    wealth : ndarray
        Logarithms (turns, J) of what each share of each turn has grown to; 0 at the start.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("wealth",)

    def __init__(self, *, width: float = 1.0, turns: int = 1, blocks: int = 1) -> None:
        self.wealth: Array = np.zeros((turns, len(BET_SHARES)))
        self.evidence = width**2 * (math.log(turns * blocks) - math.log(FALSE_ALARMS))

    def add(self, surprise: float, *, turn: int = 0) -> bool:
        """Settle a round's bets at s_t / m_t; whether the turn's mean wealth exceeds its level."""
        log_wealth = self.wealth[turn]
        log_mean_wealth = _settle_bets(log_wealth, BET_SHARES, float(surprise), log_wealth)
        return log_mean_wealth > self.evidence

    def would_convince(self, surprise: float, *, turn: int = 0) -> bool:
        """Whether ``add`` would return True; no bet is settled."""
        log_wealth = self.wealth[turn]
        after = np.empty(len(BET_SHARES))
        return _settle_bets(log_wealth, BET_SHARES, float(surprise), after) > self.evidence


@compiled()
def _settle_bets(log_wealth: Array, shares: Array, surprise: float, after: Array) -> float:
    """Settle a round's bets, and return the logarithm of the mean wealth after it (compiled).

    Parameters
    ----------
    log_wealth : array (J,)
        Logarithms of the wealths before the round.
    shares : array (J,)
        h, which share of each wealth is bet.
    surprise : float
        s / m, what a bet of all wealth pays; of it ``GREATEST_SURPRISE`` at most counts.
    after : array (J,)
        Logarithms of the wealths after the round; written. It may be ``log_wealth``.
    """
    payoff = min(surprise, GREATEST_SURPRISE)
    greatest = -np.inf
    for j in range(shares.shape[0]):
        after[j] = log_wealth[j] + np.log1p(shares[j] * payoff)
        greatest = max(greatest, after[j])
    mean = 0.0
    for j in range(shares.shape[0]):
        mean += np.exp(after[j] - greatest) / shares.shape[0]
    return float(greatest + np.log(mean))
