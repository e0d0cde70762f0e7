"""What a branch did to whom: losses with and without a change, from the round at which it was made.

    gain_i = loss of agent i in the trunk - in the branch, per round since the branch began,

in the utility's own units: above 0 for who is better off in the branch. All that differs between
the two is the change and everybody's answers to it; the random numbers are the same. The gain of
an agent from a deviation of its own is what policy regret compares (Arora, Dekel and Tewari 2012,
Online bandit learning against an adaptive adversary): regret holds outcomes fixed, this does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.presence import heads_of
from regretless.market.game.protocols import Cohort
from regretless.market.logs.heads import COUNT

COLUMNS = ("agent", "cohort", "loss", "branch_loss", "gain", "loss_gain")


@dataclass(frozen=True, eq=False)
class Fork:
    """Where a branch left its trunk.

    Parameters
    ----------
    at : int
        Rounds that both share.
    trunk, branch : sequence of array (N,)
        What each agent of each cohort had lost by then, as either counts it.
    """

    at: int
    trunk: Sequence[Array]
    branch: Sequence[Array]


def suffered(cohorts: Sequence[Cohort]) -> list[Array]:
    """Return what each agent of each cohort has lost so far (N,), in all."""
    return [np.asarray(cohort.ledger.own.sum(1)[cohort.row_of]) for cohort in cohorts]


def gains(trunk: Any, branch: Any) -> pd.DataFrame:
    """Compare agents in a branch with themselves in its trunk.

    Parameters
    ----------
    trunk, branch : MarketModel
        Both played to the same round; ``branch`` is ``trunk.branch(...)`` or of a twin of it.

    Returns
    -------
    frame
        A row per agent: ``agent``, ``cohort``, ``loss`` and ``branch_loss`` per round since the
        branch began, in [0, 1]; ``gain`` in the utility's own units and ``loss_gain`` in [0, 1],
        above 0 for who is better off in the branch.

    Raises
    ------
    UserError
        If the second is no branch, or the two are not at the same round.
    """
    fork = branch.fork
    if fork is None:
        raise UserError("gains(trunk, branch): the second is no branch; make it by trunk.branch()")
    if branch.played != trunk.played or branch.played <= fork.at:
        rounds = f"{trunk.played} and {branch.played} rounds, and parted after {fork.at}"
        raise UserError(f"gains(trunk, branch): they have played {rounds}; run both equally far")
    parts, span = [], branch.played - fork.at
    ends = suffered(trunk.game.cohorts), suffered(branch.game.cohorts)
    for place, cohort in enumerate(trunk.game.cohorts):
        loss = (ends[0][place] - fork.trunk[place]) / span
        other = (ends[1][place] - fork.branch[place]) / span
        scale = cohort.loss.unit_scale[cohort.row_of]
        values = loss, other, (loss - other) * scale, loss - other
        parts.append(pd.DataFrame(dict(zip(COLUMNS[2:], values, strict=True))))
        parts[-1].insert(0, "cohort", cohort.name)
        if (heads := heads_of(cohort)) is not None:
            parts[-1][COUNT] = heads
    table = pd.concat(parts, ignore_index=True)
    table.insert(0, "agent", np.arange(1, len(table) + 1))
    return table


def policy_regret(trunk: Any, agent: int) -> pd.DataFrame:
    """Find what each action alone would earn an agent from here on, with everybody's answers.

    Parameters
    ----------
    trunk : MarketModel
        As far as it is to be left as it is; it is not played on, its branches are.
    agent : int
        By number in the tables.

    Returns
    -------
    frame
        A row per ``action``, with the agent's ``gain`` per round, in the utility's own units. The
        greatest is the agent's policy regret against the fixed actions.
    """
    twin, rows = trunk.branch(), []
    twin.run()
    first = 1
    for cohort in trunk.game.cohorts:
        if first <= agent < first + len(cohort.row_of):
            for action in range(cohort.loss.actions):
                other = trunk.branch({f"agent.{agent}": action})
                other.run()
                rows.append((action, float(gains(twin, other)["gain"].iloc[agent - 1])))
        first += len(cohort.row_of)
    if not rows:
        raise UserError(f"agent {agent}: there are {first - 1} agents; give one of them")
    return pd.DataFrame(rows, columns=["action", "gain"])
