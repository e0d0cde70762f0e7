r"""Compiled passes of learners: regret matching, stationary distributions, and Q-learning.

Each learner calls one of them a round: ``agents.learners.external`` calls ``regret_matching_step``
and ``add_estimates``, ``agents.learners.swap`` calls ``blum_mansour_step``,
``swap_regret_matching_step`` and ``mean_of_levels``. They work row by row, so that K rows are K
separate runs to the last bit, and strategies are a new array: one that was handed out never changes
afterwards. ``agents.learners.q_learning`` calls ``update_q_tables`` and then ``explore``.

Shapes: K rows, A actions, S states.

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

from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled
from regretless.market.numerics.pairwise_sum import pairwise_sum

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
def regret_matching_step(total: Array, strategy: Array, losses: Array, least: float) -> Array:
    """Add <q, l> - l_a to the regrets; return strategies in proportion to the positive ones (K, A).

    A row without positive regret plays uniformly. Sums are those of NumPy, bit for bit.

    Parameters
    ----------
    total : (K, A)
        Cumulative regret of each action; changed in place.
    strategy : (K, A)
        The mixed strategies q that were played; not modified.
    losses : (K, A)
        The losses l of the round; not modified.
    least : float
        Regret below it is forgotten: 0, or minus infinity.
    """
    n_rows, n_actions = strategy.shape
    next_strategies = np.empty_like(strategy)
    charged = np.empty(n_actions)  # q_a l_a
    for k in range(n_rows):
        for a in range(n_actions):
            charged[a] = strategy[k, a] * losses[k, a]
        expected_loss = pairwise_sum(charged)
        positive = next_strategies[k]
        for a in range(n_actions):
            total[k, a] = max(total[k, a] + (expected_loss - losses[k, a]), least)
            positive[a] = max(total[k, a], 0.0)
        positive_sum = pairwise_sum(positive)
        for a in range(n_actions):
            positive[a] = positive[a] / positive_sum if positive_sum > 0 else 1.0 / n_actions
    return next_strategies


@compiled()
def add_estimates(
    total: Array, strategy: Array, losses: Array, actions: Indices, baseline: float
) -> None:
    """Add (l_a - baseline) / q_a to the total of the action a that each row played.

    Parameters
    ----------
    total : (K, A)
        Cumulative estimates; one entry of each row is changed in place.
    strategy : (K, A)
        The mixed strategies q that were played; not modified.
    losses : (K, A)
        The losses l of the round, of which those of ``actions`` are read; not modified.
    actions : (K,)
        What each row played. IndexError if there is no such action: the total is not checked again.
    baseline : float
        1 where estimates are of gains, with a minus, and 0 where they are of losses.
    """
    n_actions = total.shape[1]
    for k in range(len(actions)):
        action = actions[k]
        if not -n_actions <= action < n_actions:
            raise IndexError("a row played an action that it does not have")
        total[k, action] += (losses[k, action] - baseline) / max(strategy[k, action], TINY)


@compiled()
def mean_of_levels(strategies: Array) -> Array:
    """Return the mean (K, A) over the levels of a tree of strategies (K, d, A), which sums to 1."""
    n_rows, depth, n_actions = strategies.shape
    mean = np.zeros((n_rows, n_actions))
    for k in range(n_rows):
        for level in range(depth):
            for a in range(n_actions):
                mean[k, a] += strategies[k, level, a]
        total = pairwise_sum(mean[k])
        for a in range(n_actions):
            mean[k, a] /= total
    return mean


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
        rates_of_pivot = rates[k, k + 1 :]
        rate_of_leaving = rates_of_pivot.sum()
        if rate_of_leaving < TINY:
            last_state = k
            break
        for i in range(k + 1, n_states):
            if rates[i, k] == 0.0:  # as half of the rates and more are in regret matching
                continue
            rates[i, k] /= rate_of_leaving
            share = rates[i, k]
            rates_of_row = rates[i, k + 1 :]
            for j in range(len(rates_of_pivot)):  # in vectors: no order of additions changes
                rates_of_row[j] += share * rates_of_pivot[j]
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

    L_ab += q_a l_b is the total of copy a, which plays p_ab in proportion to exp(-rate L_ab). The
    next q is the one that copies leave unchanged, q_b = sum_a q_a p_ab.

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

    With the regrets R, the next q has sum_a q_a max(R_ab, 0) = q_b sum_c max(R_bc, 0) for every b;
    it is uniform where no regret is positive.

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
    largest_of_replacement = np.empty(n_actions)
    for k in range(n_rows):
        largest_of_replacement[:] = 0.0
        for a in range(n_actions):
            probability = strategy[k, a]
            for b in range(n_actions):  # in vectors
                regret_of_pair = regret[k, a, b] + probability * (losses[k, a] - losses[k, b])
                regret[k, a, b] = regret_of_pair
                positive = max(regret_of_pair, 0.0)
                chain[a, b] = positive
                largest_of_replacement[b] = max(largest_of_replacement[b], positive)
        largest_regret = largest_of_replacement.max()
        if largest_regret > 0.0:
            chain /= largest_regret
            stationary(chain, next_strategies[k])
        else:
            next_strategies[k] = 1.0 / n_actions
    return next_strategies


@compiled()
def update_q_value(
    q: Array, greedy: Integers, first_entry: int, first_state: int, n_actions: int,
    state: int, action: int, reward: float, next_state: int, alpha: float, gamma: float,
) -> bool:  # fmt: skip
    """Move one value of one agent towards its newest estimate; return whether ``greedy`` changed.

    Q(s, a) += alpha (reward + gamma max_b Q(s', b) - Q(s, a)), s' the next state.

    The tables of several agents lie behind one another in flat arrays, those of an agent by state
    and action.

    Parameters
    ----------
    q : (number of values,)
        The values; one entry is changed in place.
    greedy : int64 (number of states,)
        The lowest action of greatest value in each state; one entry may be changed in place.
    first_entry, first_state : int
        Where the agent's part of ``q`` and of ``greedy`` begins.
    n_actions : int
        A, of the agent.
    state, action : int
        Where the agent was, and what it played there.
    reward : float
        What it earned.
    next_state : int
        Where it is now.
    alpha, gamma : float
        The learning rate and the discount factor.
    """
    row = first_entry + state * n_actions
    old_choice = greedy[first_state + state]
    best_next = q[first_entry + next_state * n_actions + greedy[first_state + next_state]]
    old_value = q[row + action]
    value = old_value + alpha * (reward + gamma * best_next - old_value)
    q[row + action] = value
    choice = old_choice
    if action != old_choice:
        best_value = q[row + old_choice]
        if value > best_value or (value == best_value and action < old_choice):
            choice = action
    elif value < old_value:  # another action may be better now; one that rose stays the best
        for b in range(n_actions):
            if q[row + b] > q[row + choice] or (q[row + b] == q[row + choice] and b < choice):
                choice = b
    greedy[first_state + state] = choice
    return bool(choice != old_choice)


@compiled()
def update_q_tables(
    q: Array, greedy: Integers, states: Integers, actions: Integers, rewards: Array,
    next_states: Integers, alpha: float, gamma: float, changed_at: Integers, round_number: int,
) -> None:  # fmt: skip
    """Move one value of each row towards its newest estimate.

    Parameters
    ----------
    q : (K, S, A)
        The values of each row; changed in place.
    greedy : int64 (K, S)
        The lowest action of greatest value in each state; changed in place.
    states, actions, next_states : int64 (K,)
        Where each row was, what it played there, and where it is now; not modified.
    rewards : (K,)
        What each row earned; not modified.
    alpha, gamma : float
        The learning rate and the discount factor.
    changed_at : int64 (K,)
        The number of rounds after which ``greedy`` of each row changed last; changed in place.
    round_number : int
        How many rounds it has learned from, this one among them.
    """
    n_rows, n_states, n_actions = q.shape
    values = q.reshape(-1)
    choices = greedy.reshape(-1)
    for k in range(n_rows):
        is_changed = update_q_value(
            values, choices, k * n_states * n_actions, k * n_states, n_actions,
            states[k], actions[k], rewards[k], next_states[k], alpha, gamma,
        )  # fmt: skip
        if is_changed:
            changed_at[k] = round_number


@compiled()
def exploration(epsilon: float, beta: float, round_index: int) -> float:
    """Return the probability of exploring in a round, counted from 0: epsilon exp(-beta t)."""
    return float(epsilon * np.exp(-beta * round_index))


@compiled()
def explore(
    greedy: Integers, states: Integers, epsilon: float, beta: float, round_index: int,
    strategy: Array,
) -> None:  # fmt: skip
    """Write the mixed strategies of a round: mostly greedy, else uniform.

    With the share e of ``exploration``, the greedy action has 1 - e + e / A and others e / A.

    Parameters
    ----------
    greedy : int64 (K, S)
        The greedy action of each row in each state; not modified.
    states : int64 (K,)
        The state of each row; not modified.
    epsilon, beta : float
        Of ``exploration``.
    round_index : int
        The round, counted from 0.
    strategy : (K, A)
        Receives the probabilities.
    """
    share = exploration(epsilon, beta, round_index)
    n_actions = strategy.shape[1]
    for k in range(len(states)):
        strategy[k, :] = share / n_actions
        strategy[k, greedy[k, states[k]]] += 1.0 - share
