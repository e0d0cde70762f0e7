"""A part of a cohort: some of its agents, who play by themselves as they would in the whole.

All that is random about agents is drawn from streams of the whole cohort, of which a part takes its
own numbers (``randomness.SubsetGenerator``). Losses are computed row by row, and come out the same
to the last bit if NumPy takes the same path for a part of the rows as for all. It asks whether
there is one row, and a loss form whether all rows have one exponent: therefore a part keeps, beside
its agents' rows, a few that answer such questions as the whole does (``company``), and it is
checked that they do.
"""

from typing import Any

import numpy as np

from regretless.market.core.arrays import Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import SubsetGenerator, stream
from regretless.market.losses import Loss
from regretless.market.numerics.storage import side_by_side
from regretless.market.regret.ledger import Ledger

N_PROBES = 3  # outcomes at which a part's losses are compared with the whole's


def rows_for_same_rounding(loss: Loss, distance: Indices | None) -> Indices:
    """Return rows that tell whether all who hear alike are alike in any field."""
    if distance is None:
        return np.array(sorted(_rows_that_show_differences(loss)))
    rows_by_distance = (np.flatnonzero(distance == hops) for hops in np.unique(distance))
    return np.sort(
        np.concatenate(
            [
                rows_of_group[sorted(_rows_that_show_differences(loss[rows_of_group]))]
                for rows_of_group in rows_by_distance
            ]
        )
    )


def _rows_that_show_differences(loss: Loss) -> set[int]:
    """Return the first row, the last, and one that differs from the first in each field."""
    rows = {0, len(loss) - 1}
    for field_values in loss.tables().values():
        if field_values.strides[0]:
            rows.add(
                int(
                    (field_values != field_values[0]).reshape(len(field_values), -1).any(1).argmax()
                )
            )
    return rows


def common(cohort: Any, rows: Indices, agents: slice) -> dict[str, Any]:
    """Return the fields that a part has in place of the whole's, whatever the cohort's kind.

    ``rows`` (k,) are of the ledger, ascending, ``company`` among them; ``agents`` have these rows.
    """
    ledger, all_agents = cohort.ledger, np.arange(len(cohort.row_of))
    loss = same_losses(cohort.name, cohort.loss, rows)
    draws_per_row = cohort.private or cohort.bandit
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
        "rng": Some(cohort.rng, rows if draws_per_row else all_agents[agents], len(all_agents)),
    }


def same_losses(cohort_name: str, all_losses: Loss, rows: Indices) -> Loss:
    """Return the losses of some rows; UserError unless they are the whole's at some outcomes."""
    some_losses = all_losses[rows]
    for outcome in stream(0, "shares").random((N_PROBES, all_losses.outcomes)):
        if not np.array_equal(all_losses.losses(outcome)[rows], some_losses.losses(outcome)):
            problem = "come out otherwise in the last digit for a part of its agents"
            raise UserError(
                f"cohort.{cohort_name}: {all_losses.form} losses {problem}; run it on one machine"
            )
    return some_losses


def heard(cohort: Any, loss: Loss, rows: Indices) -> dict[str, Any]:
    """Return what else a part of agents who listen has, with these losses of its own."""
    acts_on: Loss | None = loss
    if cohort.acts_on is not cohort.loss:
        acts_on = cohort.acts_on and same_losses(cohort.name, cohort.acts_on, rows)
    offset, weights = cohort.coefficients
    if cohort.representative_of is None:
        is_one_table = cohort.loss.linear_weights is weights  # one table then, too
        own_weights = loss.linear_weights if is_one_table else side_by_side(weights[rows])
        offset, weights = offset[rows], own_weights
    return {
        "acts_on": acts_on,
        "coefficients": (offset, weights),
        "representative_of": select_rows(cohort.representative_of, rows),
        "by_proxy": select_rows(cohort.by_proxy, rows),
        "distance": select_rows(cohort.distance, rows),
    }


def select_rows(table: Any, rows: Indices) -> Any:
    """Return some rows of a table; None of none."""
    return None if table is None else table[rows]
