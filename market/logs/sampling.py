r"""Which agents the regret log follows: all of them, or a seeded sample.

A sample of S out of N agents gives each of C cohorts one place and shares the other S - C in
proportion to the cohorts' sizes N_c less that one,

    S_c = 1 + floor((S - C) (N_c - 1) / (N - C)),

with the places left over going to the largest remainders, the first cohort's where they tie. Within
a cohort the agents are drawn without replacement, once, from a stream of the referee's own: the
same agents are logged in every round, and no player's randomness is disturbed.
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
    """The n agents of one cohort that are logged."""

    ids: Integers  # their numbers in the tables (n,), as Mesa counts all agents from 1
    agents: Indices | slice  # their places among the cohort's agents (n,); a slice for all
    rows: Indices | slice  # of the ledger that score them (k,); a slice for all
    row_of: Indices  # the place of each agent's row among ``rows`` (n,)

    def part(self, agents: slice, row_of: Indices) -> "Logged":
        """Return those of them who are of a part of the cohort, with rows (n,) of its own."""
        if isinstance(self.agents, slice):
            return Logged(self.ids[agents], slice(None), slice(None), row_of)
        here = (agents.start <= self.agents) & (self.agents < agents.stop)
        places = self.agents[here] - agents.start
        rows, place_of = np.unique(row_of[places], return_inverse=True)
        return Logged(self.ids[here], places, rows, place_of)


def logged_agents(
    cohorts: Sequence[Cohort], most: int | None, *, seed: int = 0
) -> tuple[Logged, ...]:
    """Choose the logged agents of every cohort: ``most`` in all; None, or at least N, for all."""
    sizes = [len(cohort.row_of) for cohort in cohorts]
    firsts, chosen = np.cumsum([1, *sizes])[:-1], []
    if most is None or most >= sum(sizes):
        return tuple(
            Logged(np.arange(first, first + size), slice(None), slice(None), cohort.row_of)
            for cohort, first, size in zip(cohorts, firsts, sizes, strict=True)
        )
    rng = stream(seed, "log")
    for cohort, first, n in zip(cohorts, firsts, shares(sizes, most), strict=True):
        agents = np.sort(rng.choice(len(cohort.row_of), size=n, replace=False))
        rows, row_of = np.unique(cohort.row_of[agents], return_inverse=True)
        chosen.append(Logged(first + agents, agents, rows, row_of))
    return tuple(chosen)


def shares(sizes: Sequence[int], most: int) -> list[int]:
    """Share fewer places than agents out over cohorts of these sizes, at least one each."""
    if most < (count := len(sizes)):
        every = f"every one of {count} cohorts is logged"
        raise UserError(f"log_agents = {most}: {every}; give at least {count}")
    others = np.array(sizes) - 1
    given, left = np.divmod((most - len(sizes)) * others, max(others.sum(), 1))
    spare = most - len(sizes) - given.sum()
    given[np.argsort(-left, kind="stable")[:spare]] += 1
    return [int(places) for places in 1 + given]
