"""A part of a cohort: some of its agents, who play by themselves as they would in the whole.

All that is random about agents is drawn from streams of the whole cohort, of which a part takes its
own numbers (``market.core.randomness.Some``). Losses are computed row by row, and come out the same
to the last bit if NumPy takes the same path for a part of the rows as for all. It asks whether
there is one row, and a loss form whether all rows have one exponent: therefore a part keeps, beside
its agents' rows, a few that answer such questions as the whole does (``company``), and it is
checked that they do.
"""

from typing import Any

import numpy as np

from regretless.market.core.arrays import Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import Some, stream
from regretless.market.losses import Loss
from regretless.market.numerics.storage import side_by_side
from regretless.market.regret.ledger import Ledger

PROBES = 3  # outcomes at which a part's losses are compared with the whole's


def company(loss: Loss, distance: Indices | None) -> Indices:
    """Return rows that tell whether all who hear alike are alike in any field."""
    if distance is None:
        return np.array(sorted(_telling(loss)))
    groups = (np.flatnonzero(distance == hops) for hops in np.unique(distance))
    return np.sort(np.concatenate([own[sorted(_telling(loss[own]))] for own in groups]))


def _telling(loss: Loss) -> set[int]:
    """Return the first row, the last, and one that differs from the first in each field."""
    found = {0, len(loss) - 1}
    for value in loss.tables().values():
        if value.strides[0]:
            found.add(int((value != value[0]).reshape(len(value), -1).any(1).argmax()))
    return found


def common(cohort: Any, rows: Indices, agents: slice) -> dict[str, Any]:
    """Return the fields that a part has in place of the whole's, whatever the cohort's kind.

    ``rows`` (k,) are of the ledger, ascending, ``company`` among them; ``agents`` have these rows.
    """
    ledger, everybody = cohort.ledger, np.arange(len(cohort.row_of))
    loss = same_losses(cohort.name, cohort.loss, rows)
    by_row = cohort.private or cohort.bandit
    return {
        "loss": loss,
        "row_of": np.searchsorted(rows, cohort.row_of[agents]),
        "ledger": Ledger(
            len(rows),
            loss.actions,
            policies=len(cohort.policies),
            measures=ledger.measures,
            constants=ledger.constants,
        ),
        "rng": Some(cohort.rng, rows if by_row else everybody[agents], len(everybody)),
    }


def same_losses(name: str, whole: Loss, rows: Indices) -> Loss:
    """Return the losses of some rows; UserError unless they are the whole's at some outcomes."""
    part = whole[rows]
    for outcome in stream(0, "shares").random((PROBES, whole.outcomes)):
        if not np.array_equal(whole.losses(outcome)[rows], part.losses(outcome)):
            why = "come out otherwise in the last digit for a part of its agents"
            raise UserError(f"cohort.{name}: {whole.form} losses {why}; run it on one machine")
    return part


def heard(cohort: Any, loss: Loss, rows: Indices) -> dict[str, Any]:
    """Return what else a part of agents who listen has, with these losses of its own."""
    acts_on: Loss | None = loss
    if cohort.acts_on is not cohort.loss:
        acts_on = cohort.acts_on and same_losses(cohort.name, cohort.acts_on, rows)
    offset, weights = cohort.coefficients
    if cohort.representative_of is None:
        shared = cohort.loss.linear_weights is weights  # one table then, too
        own = loss.linear_weights if shared else side_by_side(weights[rows])
        offset, weights = offset[rows], own
    return {
        "acts_on": acts_on,
        "coefficients": (offset, weights),
        "representative_of": some(cohort.representative_of, rows),
        "by_proxy": some(cohort.by_proxy, rows),
        "distance": some(cohort.distance, rows),
    }


def some(table: Any, rows: Indices) -> Any:
    """Return some rows of a table; None of none."""
    return None if table is None else table[rows]
