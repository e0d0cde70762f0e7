r"""Which agents the regret log follows: all of them, or a seeded sample.

The model of a run calls ``logged_agents`` once; the journal, windows and users' columns read the
regrets of these agents. The same agents are logged in every round: they are drawn once, from a
stream of the referee's own, so that no player's randomness is disturbed.

A sample of S out of N agents gives each of C cohorts one place and shares the other S - C in
proportion to the cohorts' sizes N_c less that one,

    S_c = 1 + floor((S - C) (N_c - 1) / (N - C)),

with the places left over going to the largest remainders, the first cohort's where they tie. Within
a cohort the agents are drawn without replacement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Indices, Integers
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Cohort


@dataclass(frozen=True, eq=False)
class Logged:
    """The n agents of one cohort that are logged.

    Attributes
    ----------
    ids : ndarray of int
        Their numbers in the tables (n,), as Mesa counts all agents from 1.
    agents : ndarray of int, or slice
        Their indices among the cohort's agents (n,); a slice for all.
    rows : ndarray of int, or slice
        The k rows of the ledger that score them (k,); a slice for all.
    row_of : ndarray of int
        The place of each agent's row among ``rows`` (n,).
    """

    ids: Integers
    agents: Indices | slice
    rows: Indices | slice
    row_of: Indices

    def part(self, agents: slice, row_of: Indices) -> "Logged":
        """Return those of them who are of a part of the cohort.

        ``agents`` are the part's among the cohort's, and ``row_of`` (N,) is the row of each of them
        in the part.
        """
        if isinstance(self.agents, slice):
            return Logged(self.ids[agents], slice(None), slice(None), row_of)
        is_in_part = (agents.start <= self.agents) & (self.agents < agents.stop)
        agents_of_part = self.agents[is_in_part] - agents.start
        rows, row_of_agent = np.unique(row_of[agents_of_part], return_inverse=True)
        return Logged(
            ids=self.ids[is_in_part], agents=agents_of_part, rows=rows, row_of=row_of_agent
        )


def logged_agents(
    cohorts: Sequence[Cohort], max_agents: int | None, *, seed: int = 0
) -> tuple[Logged, ...]:
    """Return the logged agents of every cohort.

    ``max_agents`` is how many are logged in all; None, or as many as there are, for all.
    UserError where there are more cohorts than that.
    """
    sizes = [len(cohort.row_of) for cohort in cohorts]
    first_ids = np.cumsum([1, *sizes])[:-1]
    logged = []
    if max_agents is None or max_agents >= sum(sizes):
        for cohort, first_id, size in zip(cohorts, first_ids, sizes, strict=True):
            ids = np.arange(first_id, first_id + size)
            logged.append(Logged(ids, slice(None), slice(None), cohort.row_of))
        return tuple(logged)
    rng = stream(seed, "log")
    sample_sizes = shares(sizes, max_agents)
    for cohort, first_id, sample_size in zip(cohorts, first_ids, sample_sizes, strict=True):
        agents = np.sort(rng.choice(len(cohort.row_of), size=sample_size, replace=False))
        rows, row_of = np.unique(cohort.row_of[agents], return_inverse=True)
        logged.append(Logged(ids=first_id + agents, agents=agents, rows=rows, row_of=row_of))
    return tuple(logged)


def shares(sizes: Sequence[int], total: int) -> list[int]:
    """Return how many of each cohort are logged, ``total`` in all, at least one of each.

    UserError where there are more cohorts than that.
    """
    n_cohorts = len(sizes)
    if total < n_cohorts:
        reason = f"every one of {n_cohorts} cohorts is logged"
        raise UserError(f"log_agents = {total}: {reason}; give at least {n_cohorts}")
    # One agent of each cohort is logged; of its other agents so many as is proportional, rounded by
    # largest remainders.
    other_agents = np.array(sizes) - 1
    numerators = (total - n_cohorts) * other_agents
    logged_others, remainders = np.divmod(numerators, max(other_agents.sum(), 1))
    n_left_over = total - n_cohorts - logged_others.sum()
    largest_remainders = np.argsort(-remainders, kind="stable")[:n_left_over]
    logged_others[largest_remainders] += 1
    return [int(number) for number in 1 + logged_others]
