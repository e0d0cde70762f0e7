"""Profiles: what all agents of a market may play together in a round.

A profile is a row of M actions, one per agent in the order of the tables. Where a market knows
every agent's loss at every profile (``Market.profile_losses``), it is a game in normal form, and
learners, solutions and compiled rounds read its table.

**Numbering.** Profiles are numbered in C order: the last agent's action changes fastest. With
``strides`` s, profile a has the number sum_i s_i a_i.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort

MAX_PROFILES = 2**20  # that are listed, of all agents
MAX_COUNTERS_PER_ROUND = 8  # of profiles, where rounds are not sorted to count them


class KnowsProfiles(Protocol):
    """A market that says what profiles lose (``Market.profile_losses``)."""

    def profile_losses(self, profiles: Indices) -> Array:
        """Return the loss of each agent at each profile (P, M)."""


@dataclass(frozen=True, eq=False)
class ProfileTable:
    """What happens at every profile, in a market where nothing else matters.

    Attributes
    ----------
    action_counts, strides : int array (M,)
        How many actions each agent has, and by how much one counts in the number of a profile.
    losses : array (P, M)
        What each agent loses, in [0, 1].
    outcomes : array (P, d)
        The outcome.
    """

    action_counts: Indices
    strides: Indices
    losses: Array
    outcomes: Array


def agents_action_counts(cohorts: Sequence[Cohort]) -> Indices:
    """Return how many actions each agent of the cohorts has (M,)."""
    counts = [np.full(len(cohort.row_of), cohort.loss.actions) for cohort in cohorts]
    return np.concatenate(counts).astype(np.intp)


def profile_strides(action_counts: Indices) -> Indices:
    """Return by how much each agent's action (M,) counts in the number of a profile."""
    strides = np.ones(len(action_counts), dtype=np.intp)
    strides[:-1] = np.cumprod(action_counts[:0:-1])[::-1]
    return strides


def number_of_profiles(action_counts: Indices) -> float:
    """Return the product of the numbers of actions; a float, for it may be large."""
    return float(np.prod(action_counts.astype(np.float64)))


def all_profiles(action_counts: Indices) -> Indices:
    """Return all profiles (P, M), in the order of their numbers."""
    profiles = np.indices(tuple(action_counts)).reshape(len(action_counts), -1).T
    return np.ascontiguousarray(profiles, dtype=np.intp)


def count_numbers(numbers: Integers, n_profiles: int) -> tuple[Integers, Integers]:
    """Return which of the numbers of profiles (T,) occur, ascending, and how often each does.

    >>> count_numbers(np.array([3, 1, 3]), n_profiles=4)
    (array([1, 3]), array([1, 2]))
    """
    if n_profiles > MAX_COUNTERS_PER_ROUND * len(numbers):
        return np.unique(numbers, return_counts=True)
    times = np.bincount(numbers, minlength=n_profiles)  # sorting takes ten times as long
    distinct = np.flatnonzero(times)
    return distinct, times[distinct]


def mean_losses(market: KnowsProfiles | None, cohorts: Sequence[Cohort], agents: Indices) -> Array:
    """Return what each action costs agents on average over all that the others may play (k, A).

    ``agents`` (k,) are numbered from 0 through all cohorts, and have one number of actions.
    UserError where no market knows the losses of profiles, or the profiles are too many.
    """
    if market is None:
        raise UserError("the losses of profiles are known in a market alone; add [market]")
    action_counts = agents_action_counts(cohorts)
    if number_of_profiles(action_counts) > MAX_PROFILES:
        raise UserError(f"there are more than {MAX_PROFILES} profiles of actions; give numbers")
    profiles = all_profiles(action_counts)
    losses = market.profile_losses(profiles)
    means = np.empty((len(agents), action_counts[agents[0]]))
    for row, agent in enumerate(agents):
        for action in range(means.shape[1]):
            means[row, action] = losses[profiles[:, agent] == action, agent].mean()
    return means
