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
    table, play = _checked(losses, actions)
    return float(((play * table).sum() - table.sum(0).min()) / len(table))


def swap_regret(losses: ArrayLike, actions: ArrayLike) -> float:
    """Loss above that of the best replacement of each action by another; as ``external_regret``.

    Examples
    --------
    Taking an umbrella costs 0.3, leaving it 1 if it rains; it rains on the first and last day.

    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]  # leave, take
    >>> round(swap_regret(losses, [0, 1, 0, 0]), 3)  # take it when left, leave it when taken
    0.35
    """
    table, play = _checked(losses, actions)
    sums = play.T @ table
    return float((np.diag(sums) - sums.min(1)).sum() / len(table))


def omniprediction_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Loss above that of the best policy.

    As ``external_regret``, with ``policies`` (C, T): what each suggests at each round.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> round(omniprediction_regret(losses, [0, 1, 0, 0], [[1, 1, 0, 1]]), 3)  # as the radio said
    0.35
    """
    table, play = _checked(losses, actions)
    followed = _followed(table, policies)
    return float(((play * table).sum() - followed.sum(0).min()) / len(table))


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
    table, play = _checked(losses, actions)
    own = (play * table).sum()
    return float((own - (play.T @ _followed(table, policies)).min(1).sum()) / len(table))


def contextual_swap_regret(losses: ArrayLike, actions: ArrayLike, policies: ArrayLike) -> float:
    """Worst policy's swap regret when a replacement may depend on its suggestion too.

    As ``omniprediction_regret``.

    Examples
    --------
    >>> losses = [[1.0, 0.3], [0.0, 0.3], [0.0, 0.3], [1.0, 0.3]]
    >>> round(contextual_swap_regret(losses, [0, 1, 0, 0], [[1, 1, 0, 1]]), 3)  # as the radio says
    0.425
    """
    table, play = _checked(losses, actions)
    suggested = _suggestions(policies, table.shape)
    own = (play * table).sum()
    best = min(
        sum((play[row == b].T @ table[row == b]).min(1).sum() for b in range(table.shape[1]))
        for row in suggested
    )
    return float((own - best) / len(table))


def _checked(losses: ArrayLike, actions: ArrayLike) -> tuple[Array, Array]:
    """Losses and the mixed strategy as arrays (T, A), or ParameterError."""
    table = numbers("losses", losses)
    if table.ndim != 2 or 0 in table.shape:
        raise ParameterError(f"losses have shape {table.shape}; give (rounds, actions)")
    play = numbers("actions", actions)
    if play.shape == table.shape[:1]:
        play = np.eye(table.shape[1])[_indices("actions", play, table.shape[1])]
    if play.shape != table.shape:
        raise ParameterError(f"actions have shape {play.shape}; give (T,) or {table.shape}")
    if not (play >= 0).all() or (np.abs(play.sum(1) - 1) > 1e-9).any():
        cure = "must be at least 0 and sum to 1"
        raise ParameterError(f"actions: the probabilities of a round's actions {cure}")
    return table, play


def _suggestions(policies: ArrayLike, shape: tuple[int, ...]) -> Indices:
    suggested = np.atleast_2d(numbers("policies", policies))
    if suggested.ndim != 2 or suggested.shape[1] != shape[0] or not len(suggested):
        raise ParameterError(f"policies have shape {suggested.shape}; give (policies, {shape[0]})")
    return _indices("policies", suggested, shape[1])


def _followed(table: Array, policies: ArrayLike) -> Array:
    """Loss of following each policy at each round (T, C)."""
    suggested = _suggestions(policies, table.shape)
    return np.take_along_axis(table, suggested.T, axis=1)


def _indices(name: str, values: Array, count: int) -> Indices:
    if not ((values >= 0) & (values < count) & (values % 1 == 0)).all():
        raise ParameterError(f"{name} must be whole numbers from 0 to {count - 1}")
    return values.astype(np.intp)
