r"""Regret of one agent, recomputed from a raw log of its losses and actions.

Users call these functions on logs of their own (``from regretless import swap_regret``), and tests
call them as the reference for ``market.regret.ledger``, which keeps running sums of the same
quantities while a run goes on. Every result is a plain average per round. Regret against policies
may be negative where the constant policies are not among them; it is reported as it is.

Mathematics
-----------
``losses[t, b]`` is the loss of action b at round t, for all actions, played or not. ``q[t, a]`` is
the probability with which action a was played (one-hot for a pure choice; ``strategies`` in the
code), and ``policies[j, t]`` the action that benchmark policy j suggests. With L(a, .) the sum over
rounds weighted by q[t, a]:

    external         sum_t <q_t, losses_t> - min_b sum_t losses[t, b]
    swap             sum_a [ L(a, a) - min_b L(a, b) ]
    omniprediction   sum_t <q_t, losses_t> - min_j sum_t losses[t, policies[j, t]]
    decision swap    sum_a [ L(a, a) - min_j L(a, policy j) ]            (paper, section 2.1)
    contextual swap  max_j of the swap regret whose replacement may depend on (a, policies[j, t])
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import ParameterError
from regretless.market.core.validation import numbers


def external_regret(losses: ArrayLike, actions: ArrayLike) -> float:
    """Return the loss above that of the best single action, per round.

    UserError if the shapes do not fit or the actions are none.

    Parameters
    ----------
    losses : array (T, A)
        Loss of every action at every round, played or not.
    actions : int array (T,) or probabilities (T, A)
        What was played.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]  # leave an umbrella, take it
    >>> round(external_regret(losses, [0, 1, 0, 0]), 3)  # always take it
    0.275
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    suffered = (strategies * loss_table).sum()
    return float((suffered - loss_table.sum(0).min()) / len(loss_table))


def swap_regret(losses: ArrayLike, actions: ArrayLike) -> float:
    """Return the loss above that of the best replacement of each action by another, per round.

    Parameters and errors are those of ``external_regret``.

    Examples
    --------
    Taking an umbrella costs 0.3, leaving it 1 if it rains; it rains on the first and last day.

    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]  # leave, take
    >>> round(swap_regret(losses, [0, 1, 0, 0]), 3)  # take it when left, leave it when taken
    0.35
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    replaced = strategies.T @ loss_table  # (A, A): loss of action b wherever a was played
    regret_per_action = np.diag(replaced) - replaced.min(1)
    return float(regret_per_action.sum() / len(loss_table))


def omniprediction_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Return the loss above that of the best policy, per round.

    Parameters and errors are those of ``external_regret``, with ``policies`` (C, T): the action
    that each suggests at each round.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> round(omniprediction_regret(losses, [0, 1, 0, 0], [[1, 1, 0, 1]]), 3)  # as the radio said
    0.35
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    policy_losses = _losses_of_policies(loss_table, policies)
    suffered = (strategies * loss_table).sum()
    return float((suffered - policy_losses.sum(0).min()) / len(loss_table))


def decision_swap_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Return the loss above that of the best policy for each action, chosen action by action.

    Parameters and errors are those of ``omniprediction_regret``; with the constant policies this is
    the swap regret.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> policies = [[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 1]]  # the constants, and the radio
    >>> round(decision_swap_regret(losses, [0, 1, 0, 0], policies), 3)
    0.425
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    suffered = (strategies * loss_table).sum()
    replaced = strategies.T @ _losses_of_policies(loss_table, policies)  # (A, C)
    return float((suffered - replaced.min(1).sum()) / len(loss_table))


def contextual_swap_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Return the worst policy's swap regret when a replacement may depend on its suggestion too.

    Parameters and errors are those of ``omniprediction_regret``.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> round(contextual_swap_regret(losses, [0, 1, 0, 0], [[1, 1, 0, 1]]), 3)  # as the radio says
    0.425
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    suffered = (strategies * loss_table).sum()
    n_actions = loss_table.shape[1]
    loss_with_best_replacements = []  # of each policy
    for suggestions in _suggested_actions(policies, loss_table.shape):
        total = 0
        for suggestion in range(n_actions):
            rounds = suggestions == suggestion
            replaced = strategies[rounds].T @ loss_table[rounds]  # (A, A)
            total += replaced.min(1).sum()
        loss_with_best_replacements.append(total)
    return float((suffered - min(loss_with_best_replacements)) / len(loss_table))


def _losses_and_strategies(losses: ArrayLike, actions: ArrayLike) -> tuple[Array, Array]:
    """Return losses and mixed strategies as arrays (T, A); ParameterError if they do not fit."""
    loss_table = numbers("losses", losses)
    if loss_table.ndim != 2 or 0 in loss_table.shape:
        raise ParameterError(f"losses have shape {loss_table.shape}; give (rounds, actions)")
    n_actions = loss_table.shape[1]
    strategies = numbers("actions", actions)
    if strategies.shape == loss_table.shape[:1]:
        strategies = np.eye(n_actions)[_as_indices("actions", strategies, n_actions)]
    if strategies.shape != loss_table.shape:
        raise ParameterError(
            f"actions have shape {strategies.shape}; give (T,) or {loss_table.shape}"
        )
    sums_to_1 = np.abs(strategies.sum(1) - 1) <= 1e-9  # (T,)
    if not (strategies >= 0).all() or not sums_to_1.all():
        raise ParameterError(
            "actions: the probabilities of a round's actions must be at least 0 and sum to 1"
        )
    return loss_table, strategies


def _suggested_actions(policies: ArrayLike, table_shape: tuple[int, ...]) -> Indices:
    """Return the actions (C, T) that policies suggest; ParameterError unless they fit (T, A)."""
    n_rounds, n_actions = table_shape
    suggested = np.atleast_2d(numbers("policies", policies))
    if suggested.ndim != 2 or suggested.shape[1] != n_rounds or not len(suggested):
        shapes = f"policies have shape {suggested.shape}; give (policies, {n_rounds})"
        raise ParameterError(shapes)
    return _as_indices("policies", suggested, n_actions)


def _losses_of_policies(loss_table: Array, policies: ArrayLike) -> Array:
    """Return the loss of following each policy at each round (T, C)."""
    suggested_actions = _suggested_actions(policies, loss_table.shape)
    return np.take_along_axis(loss_table, suggested_actions.T, axis=1)


def _as_indices(name: str, values: Array, size: int) -> Indices:
    """Return values as integers; ParameterError unless all are whole and in [0, size)."""
    if not ((values >= 0) & (values < size) & (values % 1 == 0)).all():
        raise ParameterError(f"{name} must be whole numbers from 0 to {size - 1}")
    return values.astype(np.intp)
