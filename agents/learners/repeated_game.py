r"""Many rounds of a game among built-in learners as one compiled loop.

``agents.cohorts.compiled_rounds`` calls ``play_rounds`` where a market has a table of what
everybody loses at every profile of actions, and every agent learns by a rule that has a kernel
here. It plays what the general path plays, with the same random numbers: a round draws everybody's
action, reads the losses, adds to the sums of the ledgers and lets everybody learn.

Markets do not influence each other: each is a row of every array, and ``play_rounds`` plays a span
of rows (``market.core.compiled.over_rows``), so that many seeds of one game are one call.

Rules
-----
An agent's rule is a number, and ``settings`` (N, 4) has its parameters:

    Q_LEARNING            alpha, gamma, beta, epsilon            ``agents.learners.q_learning``
    LOGIT                 discount, scale, rate, 1 for sqrt(t)   Hedge and discrete choice
    EXP3                  rate, 1 for sqrt(t), 1 if it explores  ``agents.learners.external``
    REGRET_MATCHING       1 if it forgets negative regret        the same

With ``1 for sqrt(t)`` the rate is divided by the square root of the round, counted from 1.

Shapes
------
S markets, T rounds, N agents, A actions of the agent who has most, P profiles. Shorter rows end in
entries that are not read.
"""

import numpy as np

from regretless.agents.learners.kernels import TINY, exploration, update_q_value
from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled

MARGIN = 1e-12  # from a boundary, within which sums of probabilities may round to either side
Q_LEARNING = 0
LOGIT = 1
EXP3 = 2
REGRET_MATCHING = 3


@compiled(nogil=True)
def _draw(strategy: Array, n_actions: int, uniform: float) -> int:
    """Draw an action of a mixed strategy by the inverse distribution function.

    ``strategy`` (A,) is not modified; the sums are those of ``market.core.arrays.draw_rows``.
    """
    total = 0.0
    for a in range(n_actions):
        total += strategy[a]
    threshold = uniform * total
    cumulative = 0.0
    for a in range(n_actions - 1):
        cumulative += strategy[a]
        if threshold < cumulative:
            return a
    return n_actions - 1


@compiled(nogil=True)
def _draw_exploring(n_actions: int, greedy: int, share: float, uniform: float) -> int:
    """Draw an action where ``share`` is spread over all and one of them has the rest.

    It is the action that ``_draw`` draws. It is computed and not searched for, unless the number
    lies so near a boundary that the rounding of sums decides.
    """
    part = share / n_actions
    rest = 1.0 - share
    if uniform < greedy * part:
        action = int(uniform / part)
        low = action * part
        high = low + part
    elif uniform < (greedy + 1) * part + rest:
        action = greedy
        low = greedy * part
        high = low + part + rest
    else:
        action = int((uniform - rest) / part) if part > 0.0 else n_actions - 1
        low = action * part + rest
        high = low + part
    is_clear = (action == 0 or uniform - low > MARGIN) and high - uniform > MARGIN
    if is_clear and action < n_actions:
        return action
    total = 0.0
    for a in range(n_actions):
        total += part + rest if a == greedy else part
    threshold = uniform * total
    cumulative = 0.0
    for a in range(n_actions - 1):
        cumulative += part + rest if a == greedy else part
        if threshold < cumulative:
            return a
    return n_actions - 1


@compiled(nogil=True)
def _write_logit(total: Array, n_actions: int, rate: float, strategy: Array) -> None:
    """Write the strategy in proportion to exp(-rate total).

    ``total`` (A,) is not modified; ``strategy`` (A,) receives the probabilities.
    """
    smallest = total[0]
    for a in range(1, n_actions):
        smallest = min(smallest, total[a])
    normaliser = 0.0
    for a in range(n_actions):
        strategy[a] = np.exp(-rate * (total[a] - smallest))
        normaliser += strategy[a]
    for a in range(n_actions):
        strategy[a] /= normaliser


@compiled(nogil=True)
def _learn_exp3(
    total: Array, strategy: Array, n_actions: int, action: int, loss: float, rate: float,
    explores: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    """Let EXP3 learn the loss of the action that it played.

    The total of that action grows by (loss - 1) / q_a, or by loss / q_a where it does not explore;
    the next strategy q is the one of ``_write_logit``, mixed with a share A rate of uniform play
    where it does. ``total`` (A,) is added to and ``strategy`` (A,) replaced in place.
    """
    share = 0.0
    observed = loss
    if explores:
        rate = min(rate, 1.0 / n_actions)
        share = n_actions * rate
        observed = loss - 1.0
    total[action] += observed / max(strategy[action], TINY)
    _write_logit(total, n_actions, rate, strategy)
    if explores:
        for a in range(n_actions):
            strategy[a] = (1.0 - share) * strategy[a] + share / n_actions


@compiled(nogil=True)
def _match_regret(
    regrets: Array, strategy: Array, losses: Array, n_actions: int,
    forgets_negative: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    """Let regret matching learn the losses (A,) of a round.

    R_a += sum_b q_b l_b - l_a, and the next q is in proportion to max(R_a, 0), uniform where all
    are 0. ``regrets`` R (A,) are added to and ``strategy`` q (A,) is replaced in place. Where the
    learner ``forgets_negative`` regrets, none falls below 0: regret matching plus.
    """
    expected_loss = 0.0
    for a in range(n_actions):
        expected_loss += strategy[a] * losses[a]
    positive_sum = 0.0
    for a in range(n_actions):
        regrets[a] += expected_loss - losses[a]
        if forgets_negative:
            regrets[a] = max(regrets[a], 0.0)
        positive_sum += max(regrets[a], 0.0)
    for a in range(n_actions):
        if positive_sum > 0.0:
            strategy[a] = max(regrets[a], 0.0) / positive_sum
        else:
            strategy[a] = 1.0 / n_actions


@compiled(nogil=True)
def _share(settings: Array, shares: Array, n: int, round_index: int) -> float:
    """Return the probability with which Q-learner ``n`` explores in a round, counted from 0.

    ``settings`` (N, 4) and ``shares`` (N,), of which those of agents before n are of this round,
    are not modified. Agents of one schedule explore alike: an exponential is computed once.
    """
    if n > 0 and settings[n, 2] == settings[n - 1, 2] and settings[n, 3] == settings[n - 1, 3]:
        return float(shares[n - 1])
    return exploration(settings[n, 3], settings[n, 2], round_index)


@compiled(nogil=True)
def play_rounds(
    own_losses: Array, own_strides: Indices, strides: Indices, action_counts: Indices,
    rules: Indices, settings: Array,
    sees_all: Indices, bases: Integers, n_states: Integers, first_entries: Integers,
    first_states: Integers, first_round: int, patience: int, uniforms: Array, q: Array,
    greedy: Integers, state_index: Integers, changed_at: Integers, total: Array, strategy: Array,
    count: Array, fixed: Array, profiles: Integers, played: Integers, first: int, last: int,
) -> None:  # fmt: skip
    """Play up to T rounds of the markets from ``first`` to before ``last`` (compiled).

    Parameters
    ----------
    own_losses : (N, P)
        What each agent loses at each profile, in [0, 1], its own action changing fastest; not
        modified.
    own_strides : (N, N)
        By how much the action of each agent (second axis) counts there; not modified.
    strides : (N,)
        By how much each agent's action counts in the number of a profile; not modified.
    action_counts : (N,)
        How many actions each agent has; not modified.
    rules : (N,)
        By which rule each agent learns; not modified.
    settings : (N, 4)
        The parameters of its rule; not modified.
    sees_all : (N,)
        1 where a Q-learner's states have the actions of all agents, else 0; not modified.
    bases, n_states : int64 (N,)
        Joint actions that a round of a state tells apart, and the number of states; not modified.
    first_entries, first_states : int64 (N,)
        Where a Q-learner's part of ``q`` and ``greedy`` begins; not modified.
    first_round : int
        How many rounds have been played before.
    patience : int
        A market stops when for so many rounds no agent's greedy strategy has changed; 0 for never.
    uniforms : (S, T, N)
        The random number by which each agent draws in each round, in [0, 1); not modified.
    q : (S, number of values)
        The Q-learners' values; changed in place.
    greedy : int64 (S, number of states)
        Their greedy actions; changed in place.
    state_index : int64 (S, N)
        The state of each Q-learner; changed in place.
    changed_at : int64 (S, N)
        After how many rounds the greedy strategy of each agent changed last; changed in place.
    total : (S, N, A)
        What the other rules remember; changed in place.
    strategy : (S, N, A)
        The mixed strategies, before of the first and after of the next round; changed in place.
    count : (S, N, A)
        How often each action was played, in probability; added to in place.
    fixed : (S, N, A, A)
        Sums of losses by action played and by comparator, as in a ledger; added to in place.
    profiles : int64 (S, T)
        Receives the number of the profile of each round that was played.
    played : int64 (S,)
        Receives how many rounds were played.
    first, last : int
        Span of markets.
    """
    n_rounds = uniforms.shape[1]
    n_agents = len(rules)
    actions = np.empty(n_agents, dtype=np.int64)
    shares = np.empty(n_agents)
    for s in range(first, last):
        # Views are made once: each costs as much as some arithmetic.
        values = q[s]
        choices = greedy[s]
        states = state_index[s]
        changes = changed_at[s]
        counts = count[s]
        sums = fixed[s]
        strategies = strategy[s]
        played[s] = n_rounds
        for t in range(n_rounds):
            round_number = first_round + t + 1  # how many rounds have been played after this one
            profile = 0
            digit = 0
            for n in range(n_agents):
                if rules[n] == Q_LEARNING:
                    shares[n] = _share(settings, shares, n, round_number - 1)
                    choice = choices[first_states[n] + states[n]]
                    actions[n] = _draw_exploring(
                        action_counts[n], choice, shares[n], uniforms[s, t, n]
                    )
                else:
                    actions[n] = _draw(strategies[n], action_counts[n], uniforms[s, t, n])
                profile += actions[n] * strides[n]
                digit = digit * (action_counts[n] + 1) + actions[n] + 1
            profiles[s, t] = profile

            changed_last = 0
            for n in range(n_agents):
                action = actions[n]
                n_actions = action_counts[n]
                first_loss = 0
                for other in range(n_agents):
                    if other != n:
                        first_loss += own_strides[n, other] * actions[other]
                losses_now = own_losses[n, first_loss : first_loss + n_actions]
                rule = rules[n]
                if rule in (Q_LEARNING, EXP3):
                    counts[n, action] += 1.0
                    for b in range(n_actions):
                        sums[n, action, b] += losses_now[b]
                else:  # charged its strategy in expectation
                    for a in range(n_actions):
                        probability = strategies[n, a]
                        counts[n, a] += probability
                        if probability != 0.0:
                            for b in range(n_actions):
                                sums[n, a, b] += probability * losses_now[b]

                if rule == Q_LEARNING:
                    state = states[n]
                    next_state = 0
                    if n_states[n] > 1:
                        newest = digit if sees_all[n] == 1 else action + 1
                        next_state = (state * bases[n] + newest) % n_states[n]
                    is_changed = update_q_value(
                        values, choices, first_entries[n], first_states[n], n_actions, state,
                        action, 1.0 - losses_now[action], next_state, settings[n, 0],
                        settings[n, 1],
                    )  # fmt: skip
                    if is_changed:
                        changes[n] = round_number
                    states[n] = next_state
                elif rule == LOGIT:
                    rate = settings[n, 2]
                    if settings[n, 3] == 1.0:
                        rate /= np.sqrt(round_number + 1)
                    for a in range(n_actions):
                        total[s, n, a] *= settings[n, 0]
                        total[s, n, a] += losses_now[a] * settings[n, 1]
                    _write_logit(total[s, n], n_actions, rate, strategies[n])
                elif rule == EXP3:
                    rate = settings[n, 0]
                    if settings[n, 1] == 1.0:
                        rate /= np.sqrt(round_number + 1)
                    _learn_exp3(
                        total[s, n], strategies[n], n_actions, action, losses_now[action], rate,
                        settings[n, 2] == 1.0,
                    )  # fmt: skip
                else:
                    _match_regret(
                        total[s, n], strategies[n], losses_now, n_actions, settings[n, 0] == 1.0
                    )
                changed_last = max(changed_last, changes[n])
            if patience > 0 and round_number - changed_last >= patience:
                played[s] = t + 1
                break
        for n in range(n_agents):
            if rules[n] == Q_LEARNING:
                next_round = first_round + played[s]
                share = exploration(settings[n, 3], settings[n, 2], next_round)
                strategies[n, : action_counts[n]] = share / action_counts[n]
                choice = choices[first_states[n] + states[n]]
                strategies[n, choice] += 1.0 - share
