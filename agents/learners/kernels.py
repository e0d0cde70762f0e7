r"""Compiled passes of learners that play a stationary distribution.

Each works row by row, so that K rows are K separate runs to the last bit, and returns a new array:
a strategy that was handed out never changes afterwards.

**Stationary distribution.** Given rates Q off the diagonal, find q with sum_a q_a Q_ab = q_b sum_c
Q_bc. The elimination of Grassmann, Taksar and Heyman (1985) adds, multiplies and divides but never
subtracts, so that every entry has a small relative error however close to reducible the chain is.
Where the state that is eliminated next leaves its remaining chain at a rate below ``TINY``, it is
closed within it: all mass goes there, which balances every state up to ``TINY``.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

TINY = 1e-290  # a rate that no division by it takes beyond the largest number


@compiled()
def logit(total: Array, rate: float, strategy: Array) -> None:
    """Write the strategy proportional to exp(-rate total) of one row (A,)."""
    least, weight = total.min(), 0.0
    for a in range(len(total)):
        strategy[a] = np.exp(-rate * (total[a] - least))
        weight += strategy[a]
    strategy /= weight


@compiled()
def stationary(rates: Array, strategy: Array) -> None:
    """Write a stationary distribution (A,) of rates (A, A); their upper entries are overwritten."""
    last = len(strategy) - 1
    for k in range(len(strategy) - 1):
        leaving = rates[k, k + 1 :].sum()
        if leaving < TINY:
            last = k
            break
        for i in range(k + 1, len(strategy)):
            rates[i, k] /= leaving
            for j in range(k + 1, len(strategy)):
                rates[i, j] += rates[i, k] * rates[k, j]
    strategy[:] = 0.0
    strategy[last] = 1.0
    for k in range(last - 1, -1, -1):
        for i in range(k + 1, last + 1):
            strategy[k] += strategy[i] * rates[i, k]
        if strategy[k] > 1.0:  # extreme ratios may not multiply up
            strategy[k:] /= strategy[k]
    strategy /= strategy.sum()


@compiled()
def copies_pass(total: Array, strategy: Array, losses: Array, rate: float) -> Array:
    """Charge copy a the losses times q_a, and return the stationary distributions.

    ``total`` is (K, A, A), one row of cumulative losses per copy.
    """
    new, chain = np.empty_like(strategy), np.empty(total.shape[1:])
    for k in range(len(strategy)):
        for a in range(strategy.shape[1]):
            for b in range(strategy.shape[1]):
                total[k, a, b] += strategy[k, a] * losses[k, b]
            logit(total[k, a], rate, chain[a])
        stationary(chain, new[k])
    return new


@compiled()
def swaps_pass(regret: Array, strategy: Array, losses: Array) -> Array:
    """Add q_a (l_a - l_b) to regret (K, A, A), and return what its positive parts leave."""
    new, chain = np.empty_like(strategy), np.empty(regret.shape[1:])
    for k in range(len(strategy)):
        worst = 0.0
        for a in range(strategy.shape[1]):
            for b in range(strategy.shape[1]):
                regret[k, a, b] += strategy[k, a] * (losses[k, a] - losses[k, b])
                chain[a, b] = max(regret[k, a, b], 0.0)
                worst = max(worst, chain[a, b])
        if worst > 0.0:
            stationary(chain / worst, new[k])
        else:
            new[k] = 1.0 / strategy.shape[1]
    return new
