r"""Compiled passes of learners that play a stationary distribution.

``agents.learners.swap`` calls ``blum_mansour_step`` and ``swap_regret_matching_step`` once a round.
Each works row by row, so that K rows are K separate runs to the last bit, and returns a new array:
a strategy that was handed out never changes afterwards.

Shapes: K rows, A actions.

Stationary distribution
-----------------------
Given rates Q off the diagonal, find q with sum_a q_a Q_ab = q_b sum_c Q_bc (``rates`` and
``strategy`` in the code). The elimination of Grassmann, Taksar and Heyman (1985) adds, multiplies
and divides but never subtracts, so that every entry has a small relative error however close to
reducible the chain is. Where the state that is eliminated next leaves its remaining chain at a rate
below ``TINY``, it is closed within it: all mass goes there, which balances every state up to
``TINY``.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

TINY = 1e-290  # a rate that no division by it takes beyond the largest number


@compiled()
def logit(total: Array, rate: float, strategy: Array) -> None:
    """Write the strategy proportional to exp(-rate total) of one row.

    Parameters
    ----------
    total : (A,)
        Cumulative losses; not modified.
    rate : float
        Inverse temperature.
    strategy : (A,)
        Receives the probabilities.
    """
    smallest_total = total.min()
    normaliser = 0.0
    for a in range(len(total)):
        strategy[a] = np.exp(-rate * (total[a] - smallest_total))
        normaliser += strategy[a]
    strategy /= normaliser


@compiled()
def stationary(rates: Array, strategy: Array) -> None:
    """Write a stationary distribution of a chain in continuous time.

    Parameters
    ----------
    rates : (A, A)
        Rates at which the chain jumps from a state (row) to another (column); the diagonal does
        not matter. The entries are overwritten.
    strategy : (A,)
        Receives the probabilities.
    """
    n_states = len(strategy)
    last_state = n_states - 1
    for k in range(n_states - 1):
        rate_of_leaving = rates[k, k + 1 :].sum()
        if rate_of_leaving < TINY:
            last_state = k
            break
        for i in range(k + 1, n_states):
            rates[i, k] /= rate_of_leaving
            for j in range(k + 1, n_states):
                rates[i, j] += rates[i, k] * rates[k, j]
    strategy[:] = 0.0
    strategy[last_state] = 1.0
    for k in range(last_state - 1, -1, -1):
        for i in range(k + 1, last_state + 1):
            strategy[k] += strategy[i] * rates[i, k]
        if strategy[k] > 1.0:  # else ratios that are extreme could multiply to infinity
            strategy[k:] /= strategy[k]
    strategy /= strategy.sum()


@compiled()
def blum_mansour_step(total: Array, strategy: Array, losses: Array, rate: float) -> Array:
    """Charge copy a of Hedge the losses times q_a; return the stationary distributions (K, A).

    Parameters
    ----------
    total : (K, A, A)
        Cumulative losses of each copy (second axis) of each action (third); increased in place.
    strategy : (K, A)
        The mixed strategies q that were played; not modified.
    losses : (K, A)
        The losses of the round; not modified.
    rate : float
        The rate of all copies in the next round.
    """
    n_rows, n_actions = strategy.shape
    next_strategies = np.empty_like(strategy)
    chain = np.empty((n_actions, n_actions))
    for k in range(n_rows):
        for a in range(n_actions):
            for b in range(n_actions):
                total[k, a, b] += strategy[k, a] * losses[k, b]
            logit(total[k, a], rate, chain[a])
        stationary(chain, next_strategies[k])
    return next_strategies


@compiled()
def swap_regret_matching_step(regret: Array, strategy: Array, losses: Array) -> Array:
    """Add q_a (l_a - l_b) to the regret; return what its positive parts leave unchanged (K, A).

    Parameters
    ----------
    regret : (K, A, A)
        Cumulative regret of having played a (second axis) and not b (third); changed in place.
    strategy : (K, A)
        The mixed strategies q that were played; not modified.
    losses : (K, A)
        The losses l of the round; not modified.
    """
    n_rows, n_actions = strategy.shape
    next_strategies = np.empty_like(strategy)
    chain = np.empty((n_actions, n_actions))
    for k in range(n_rows):
        largest_regret = 0.0
        for a in range(n_actions):
            for b in range(n_actions):
                regret[k, a, b] += strategy[k, a] * (losses[k, a] - losses[k, b])
                chain[a, b] = max(regret[k, a, b], 0.0)
                largest_regret = max(largest_regret, chain[a, b])
        if largest_regret > 0.0:
            stationary(chain / largest_regret, next_strategies[k])
        else:
            next_strategies[k] = 1.0 / n_actions
    return next_strategies
