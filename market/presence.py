"""Who is at the table: cohorts may enter after the start of a game.

A cohort that joins at t_0 enters before round t_0 (rounds count from 0). Until then it does not
decide, is not charged and learns nothing, and a ``Round`` holds None in its place. Its ledger
counts its own rounds only, so its regret is over t_0..T-1. Nobody else notices it: a cohort neither
draws from another's random stream nor changes what is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from market.records import Decision, Round
from market.roles import Cohort

Array = NDArray[np.float64]


def checked_joins(joins: Sequence[int], cohorts: int) -> tuple[int, ...]:
    """Return the round before which each cohort enters, 0 for all where nothing is said.

    Raises
    ------
    ValueError
        If there is not one number of at least 0 per cohort, or nobody is there from the start.
    """
    rounds = tuple(joins) or (0,) * cohorts
    if len(rounds) != cohorts or any(entry < 0 for entry in rounds):
        raise ValueError(f"joins needs one round of at least 0 for each of {cohorts} cohorts")
    if rounds and min(rounds) > 0:
        raise ValueError("a game needs a cohort from the start")
    return rounds


def present(
    cohorts: Sequence[Cohort], played: Round
) -> Iterator[tuple[int, Cohort, Decision, Array]]:
    """Yield the cohorts that took part in a round.

    Yields
    ------
    place : int
        Among all cohorts of the game.
    cohort : Cohort
    decision : Decision
    losses : array (K, A)
    """
    for place, cohort in enumerate(cohorts):
        decision, losses = played.decisions[place], played.losses[place]
        if decision is not None and losses is not None:
            yield place, cohort, decision, losses
