"""What a branch of a run did to whom: each agent's loss with and without a change.

A branch goes on from a round of its trunk with something changed. All that differs between the two
is the change and everybody's answers to it; the random numbers are the same. Per round since the
branch began,

    gain_i = loss of agent i in the trunk - loss of agent i in the branch.

The gain of an agent from a deviation of its own is what policy regret compares
(docs/counterfactuals.md). Regret holds outcomes fixed; this does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.logs.counted import COUNT_COLUMN


@dataclass(frozen=True, eq=False)
class Fork:
    """Where a branch left its trunk, and what each agent had lost by then.

    Attributes
    ----------
    shared_rounds : int
        Rounds that trunk and branch have in common.
    trunk_losses, branch_losses : sequence of ndarray
        Losses (N,) of each cohort's agents, summed over the shared rounds, as either counts them.
    """

    shared_rounds: int
    trunk_losses: Sequence[Array]
    branch_losses: Sequence[Array]


def total_losses(cohorts: Sequence[Cohort]) -> list[Array]:
    """Return what each agent of each cohort has lost so far (N,), summed over rounds."""
    return [np.asarray(cohort.ledger.played_losses.sum(1)[cohort.row_of]) for cohort in cohorts]


def gains(trunk: Any, branch: Any) -> pd.DataFrame:
    """Compare agents in a branch with themselves in its trunk, both played to the same round.

    UserError if the second is no branch, or the two are not at the same round.

    Returns
    -------
    frame
        A row per agent: ``agent``, ``cohort``, ``loss`` and ``branch_loss`` per round since the
        branch began, in [0, 1]; ``gain`` in the utility's own units and ``loss_gain`` in [0, 1],
        above 0 for who is better off in the branch.
    """
    fork = branch.fork
    if fork is None:
        raise UserError("gains(trunk, branch): the second is no branch; make it by trunk.branch()")
    if branch.played != trunk.played or branch.played <= fork.shared_rounds:
        rounds = f"{trunk.played} and {branch.played} rounds, and parted after {fork.shared_rounds}"
        raise UserError(f"gains(trunk, branch): they have played {rounds}; run both equally far")
    rounds_apart = branch.played - fork.shared_rounds
    trunk_losses = total_losses(trunk.game.cohorts)
    branch_losses = total_losses(branch.game.cohorts)
    parts = []
    for index, (first_number, cohort) in enumerate(numbered(trunk.game.cohorts)):
        loss = (trunk_losses[index] - fork.trunk_losses[index]) / rounds_apart
        branch_loss = (branch_losses[index] - fork.branch_losses[index]) / rounds_apart
        columns = {
            "agent": np.arange(first_number, first_number + len(loss)),
            "cohort": cohort.name,
            "loss": loss,
            "branch_loss": branch_loss,
            "gain": (loss - branch_loss) * cohort.loss.unit_scale[cohort.row_of],
            "loss_gain": loss - branch_loss,
        }
        if cohort.multiplicity is not None:
            columns[COUNT_COLUMN] = cohort.multiplicity
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def policy_regret(trunk: Any, agent: int) -> pd.DataFrame:
    """Find what each fixed action would earn an agent from here on, with everybody's answers.

    The trunk is not played on, its branches are. ``agent`` is the agent's number in the tables;
    UserError if there is none with it. Returns a row per ``action``, with the agent's ``gain`` per
    round, in the utility's own units. The greatest gain is the agent's policy regret against the
    fixed actions.
    """
    unchanged = trunk.branch()
    unchanged.run()
    rows = []
    for first_number, cohort in numbered(trunk.game.cohorts):
        if not first_number <= agent < first_number + len(cohort.row_of):
            continue
        for action in range(cohort.loss.actions):
            deviation = trunk.branch({f"agent.{agent}": action})
            deviation.run()
            agent_gains = gains(unchanged, deviation)["gain"]
            rows.append((action, float(agent_gains.iloc[agent - 1])))
    if not rows:
        agents = sum(len(cohort.row_of) for cohort in trunk.game.cohorts)
        raise UserError(f"agent {agent}: there are {agents} agents; give one of them")
    return pd.DataFrame(rows, columns=["action", "gain"])
