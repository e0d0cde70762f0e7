r"""What demand that falls with the price allows for prices that were not tried.

In a round a price counts as **tried** if its probability was at least ``min_propensity``. The
demand at another price b is unknown. If demand does not rise with the price, it is

- at most the demand at the nearest tried price below b, or the largest quantity if there is none,
- at least the demand at the nearest tried price above b, or 0 if there is none.

The greatest gain that is compatible with this takes the first where a unit at price b earns
something, and the second where it loses something. Both hold for all untried prices at once, since
such a demand is monotone; the greatest regret that is compatible with the log and with monotone
demand is thus the swap regret with these **stand-ins**. This is the pessimistic regret of Hartline,
Wang and Zhang (2025, arXiv:2501.09740) round by round; their estimator first adds rounds up.

Actions that are no prices have no order: an untried one has the smallest loss that a round can
have.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.scenarios.audit.bandit_log import BanditLog

MIN_EXPECTED_ROUNDS = 30  # with an action that counts as tried
MAX_SHARE_OF_EQUAL = 0.25  # of 1 / A, that the default of ``min_propensity`` is at most
NO_STAND_IN = -1


@dataclass(frozen=True, eq=False)
class StandIns:
    """What takes the place of the result of each action in each round.

    Attributes
    ----------
    action : ndarray
        Index of the action whose result is used (T, A); ``NO_STAND_IN`` where there is none.
    result : ndarray or None
        The result that is used where there is no such action (T, A); None if it is left to the
        prediction of a model.
    """

    action: Indices
    result: Array | None


def default_min_propensity(rounds: int, n_actions: int) -> float:
    """Return below which probability an action counts as untried: 30 / T, at most 1 / (4 A).

    An action with this probability in all rounds is expected to be taken 30 times. With 1 / sqrt(T)
    in its place, Hedge with an exploration of 2 % failed in 30 of 30 logs of 16,000 rounds for what
    it had hardly tried; with 30 / T it passed in 22 and failed in none.

    >>> default_min_propensity(10_000, 5), default_min_propensity(100, 5)
    (0.003, 0.05)
    """
    return min(MIN_EXPECTED_ROUNDS / rounds, MAX_SHARE_OF_EQUAL / n_actions)


def own_results(probability: Array) -> StandIns:
    """Let every action that had a chance speak for itself; a model predicts the others."""
    n_actions = probability.shape[1]
    action = np.where(probability > 0, np.arange(n_actions), NO_STAND_IN)
    return StandIns(action, result=None)


def greatest_compatible_results(
    log: BanditLog, probability: Array, margins: Array, min_propensity: float
) -> StandIns:
    """Return the stand-ins that make the regret greatest.

    Parameters
    ----------
    log : BanditLog
    probability : ndarray
        Of each action in each round (T, A).
    margins : ndarray
        What a unit is worth with each action (T, A) or (1, A).
    min_propensity : float
        Below it an action counts as untried.
    """
    n_actions = probability.shape[1]
    is_tried = probability >= min_propensity
    action_indices = np.arange(n_actions)
    if log.prices is None:
        action = np.where(is_tried, action_indices, NO_STAND_IN)
        return StandIns(action, result=np.full(probability.shape, log.smallest))

    tried_at_or_below = np.maximum.accumulate(
        np.where(is_tried, action_indices, NO_STAND_IN), axis=1
    )
    tried_reversed = np.where(is_tried, action_indices, n_actions)[:, ::-1]
    tried_at_or_above = np.minimum.accumulate(tried_reversed, axis=1)[:, ::-1]
    tried_at_or_above = np.where(tried_at_or_above == n_actions, NO_STAND_IN, tried_at_or_above)
    earns = np.broadcast_to(margins >= 0, probability.shape)
    action = np.where(earns, tried_at_or_below, tried_at_or_above)
    result = np.where(earns, log.largest, log.smallest)
    return StandIns(action, result)
