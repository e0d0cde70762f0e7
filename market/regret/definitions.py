r"""Regret of one agent, recomputed from a raw log. Every number is an average per round.

``losses[t, b]`` is the loss of action b at round t (all actions, played or not), ``q[t, a]`` the
probability with which a was played (one-hot for a pure choice), ``policies[j, t]`` the action
that benchmark policy j suggests. With L(a, .) the sum over rounds weighted by q[t, a]:

    external         sum_t <q_t, losses_t> - min_b sum_t losses[t, b]
    swap             sum_a [ L(a, a) - min_b L(a, b) ]
    omniprediction   sum_t <q_t, losses_t> - min_j sum_t losses[t, policies[j, t]]
    decision swap    sum_a [ L(a, a) - min_j L(a, policy j) ]            (paper, section 2.1)
    contextual swap  max_j of the swap regret whose replacement may depend on (a, policies[j, t])

Regret against policies may be negative where the constants are not among them; it is reported
as it is. These functions are the reference for ``market.regret.ledger``, which keeps running sums.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import ParameterError
from regretless.market.core.validation import numbers


def external_regret(losses: ArrayLike, actions: ArrayLike) -> float:
    """Loss above that of the best single action, per round.

    UserError if the shapes do not fit or the actions are none.

    Parameters
    ----------
    losses : array (T, A)
    actions : int array (T,) or probabilities (T, A)

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]  # leave an umbrella, take it
    >>> round(external_regret(losses, [0, 1, 0, 0]), 3)  # always take it
    0.275
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    return float(((strategies * loss_table).sum() - loss_table.sum(0).min()) / len(loss_table))


def swap_regret(losses: ArrayLike, actions: ArrayLike) -> float:
    """Loss above that of the best replacement of each action by another; as ``external_regret``.

    Examples
    --------
    Taking an umbrella costs 0.3, leaving it 1 if it rains; it rains on the first and last day.

    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]  # leave, take
    >>> round(swap_regret(losses, [0, 1, 0, 0]), 3)  # take it when left, leave it when taken
    0.35
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    loss_of_replacement = strategies.T @ loss_table
    return float(
        (np.diag(loss_of_replacement) - loss_of_replacement.min(1)).sum() / len(loss_table)
    )


def omniprediction_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Loss above that of the best policy.

    As ``external_regret``, with ``policies`` (C, T): what each suggests at each round.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> round(omniprediction_regret(losses, [0, 1, 0, 0], [[1, 1, 0, 1]]), 3)  # as the radio said
    0.35
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    policy_losses = _losses_of_policies(loss_table, policies)
    return float(((strategies * loss_table).sum() - policy_losses.sum(0).min()) / len(loss_table))


def decision_swap_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Loss above that of the best policy for each action, chosen action by action.

    As ``omniprediction_regret``; with the constant policies this is the swap regret.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> policies = [[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 1]]  # the constants, and the radio
    >>> round(decision_swap_regret(losses, [0, 1, 0, 0], policies), 3)
    0.425
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    suffered = (strategies * loss_table).sum()
    return float(
        (suffered - (strategies.T @ _losses_of_policies(loss_table, policies)).min(1).sum())
        / len(loss_table)
    )


def contextual_swap_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Worst policy's swap regret when a replacement may depend on its suggestion too.

    As ``omniprediction_regret``.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> round(contextual_swap_regret(losses, [0, 1, 0, 0], [[1, 1, 0, 1]]), 3)  # as the radio says
    0.425
    """
    loss_table, strategies = _losses_and_strategies(losses, actions)
    suggested_actions = _suggested_actions(policies, loss_table.shape)
    suffered = (strategies * loss_table).sum()
    best_replaced = min(
        sum(
            (strategies[suggestions == suggestion].T @ loss_table[suggestions == suggestion])
            .min(1)
            .sum()
            for suggestion in range(loss_table.shape[1])
        )
        for suggestions in suggested_actions
    )
    return float((suffered - best_replaced) / len(loss_table))


def _losses_and_strategies(losses: ArrayLike, actions: ArrayLike) -> tuple[Array, Array]:
    """Losses and the mixed strategy as arrays (T, A), or ParameterError."""
    loss_table = numbers("losses", losses)
    if loss_table.ndim != 2 or 0 in loss_table.shape:
        raise ParameterError(f"losses have shape {loss_table.shape}; give (rounds, actions)")
    strategies = numbers("actions", actions)
    if strategies.shape == loss_table.shape[:1]:
        strategies = np.eye(loss_table.shape[1])[
            _as_indices("actions", strategies, loss_table.shape[1])
        ]
    if strategies.shape != loss_table.shape:
        raise ParameterError(
            f"actions have shape {strategies.shape}; give (T,) or {loss_table.shape}"
        )
    if not (strategies >= 0).all() or (np.abs(strategies.sum(1) - 1) > 1e-9).any():
        requirement = "must be at least 0 and sum to 1"
        raise ParameterError(f"actions: the probabilities of a round's actions {requirement}")
    return loss_table, strategies


def _suggested_actions(policies: ArrayLike, table_shape: tuple[int, ...]) -> Indices:
    suggested_actions = np.atleast_2d(numbers("policies", policies))
    if (
        suggested_actions.ndim != 2
        or suggested_actions.shape[1] != table_shape[0]
        or not len(suggested_actions)
    ):
        raise ParameterError(
            f"policies have shape {suggested_actions.shape}; give (policies, {table_shape[0]})"
        )
    return _as_indices("policies", suggested_actions, table_shape[1])


def _losses_of_policies(loss_table: Array, policies: ArrayLike) -> Array:
    """Loss of following each policy at each round (T, C)."""
    suggested_actions = _suggested_actions(policies, loss_table.shape)
    return np.take_along_axis(loss_table, suggested_actions.T, axis=1)


def _as_indices(name: str, values: Array, size: int) -> Indices:
    if not ((values >= 0) & (values < size) & (values % 1 == 0)).all():
        raise ParameterError(f"{name} must be whole numbers from 0 to {size - 1}")
    return values.astype(np.intp)
