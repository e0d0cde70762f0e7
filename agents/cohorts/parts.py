"""Cutting a cohort into parts, so that several workers play some of its agents each.

``RespondingCohort.part`` and ``LearnerCohort.part`` call this file when a run is shared out over
workers. A part plays exactly, to the last bit, what its agents would have played in the full
cohort.

Two things could make a difference, and both are taken care of here.

**Random numbers.** All that is random about agents is drawn from streams of the full cohort. A part
advances the same stream and takes its own agents' numbers out of it
(``market.core.randomness.SubsetGenerator``).

**Rounding.** Losses are computed row by row. They come out the same to the last bit only if NumPy
takes the same path for some rows as for all. NumPy asks whether there is a single row, and a loss
form asks whether all rows share one exponent. A part therefore keeps a few rows besides those of
its own agents, with which such questions have the same answer as in the full cohort
(``rows_for_same_rounding``). ``same_losses`` checks that this suffices.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from regretless.market.core.arrays import Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import SubsetGenerator, stream
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.regret.ledger import Ledger

Table = TypeVar("Table", Indices, Mask)

N_PROBES = 3  # outcomes at which a part's losses are compared with those of the full cohort


@dataclass(frozen=True, eq=False)
class CohortPart:
    """What every part of a cohort has in place of the full cohort's, whatever the cohort's kind.

    A part has k rows and the agents n of ``agents`` in ``make_part``.
    """

    loss: Loss  # a stack of the k rows' losses
    row_of: Indices  # (n,), the row of each of its agents, counted within the part
    ledger: Ledger  # empty, with k rows
    rng: np.random.Generator  # yields the numbers of its own agents (or rows) alone


def make_part(cohort: Cohort, rng: np.random.Generator, rows: Indices, agents: slice) -> CohortPart:
    """Return what a part of a cohort consists of.

    Parameters
    ----------
    cohort : Cohort
        The full cohort, before its first round; it is not modified.
    rng : Generator
        The stream from which the full cohort draws. From now on the part alone may draw from it.
    rows : (k,) ints
        Rows of the cohort's ledger, ascending: those of ``agents`` and those that
        ``rows_for_same_rounding`` names.
    agents : slice
        The agents of the part, all of whose rows are among ``rows``.

    UserError if the part's losses would be rounded otherwise than the full cohort's.
    """
    loss = same_losses(cohort.name, cohort.loss, rows)
    n_agents = len(cohort.row_of)
    one_draw_per_row = cohort.private or cohort.bandit
    drawing = rows if one_draw_per_row else np.arange(n_agents)[agents]
    ledger = Ledger(
        len(rows),
        loss.actions,
        policies=len(cohort.policies),
        measures=cohort.ledger.measures,
        constants=cohort.ledger.constants,
    )
    return CohortPart(
        loss=loss,
        row_of=np.searchsorted(rows, cohort.row_of[agents]),
        ledger=ledger,
        rng=SubsetGenerator(rng, drawing, n_agents),
    )


def rows_for_same_rounding(loss: Loss, distance: Indices | None) -> Indices:
    """Return the rows, ascending, that every part needs in order to be rounded as the full cohort.

    Rows that hear the forecast at the same ``distance`` (K,) are computed together, so that each
    distance needs rows of its own; with None all rows are computed together.
    """
    if distance is None:
        return np.array(sorted(_rows_that_show_differences(loss)))
    needed_rows = []
    for hops in np.unique(distance):
        rows_at_distance = np.flatnonzero(distance == hops)
        showing = sorted(_rows_that_show_differences(loss[rows_at_distance]))
        needed_rows.append(rows_at_distance[showing])
    return np.sort(np.concatenate(needed_rows))


def _rows_that_show_differences(loss: Loss) -> set[int]:
    """Return the first row, the last, and for each field one that differs from the first row.

    A field in which no row differs from the first adds the first row again.
    """
    rows = {0, len(loss) - 1}
    for field_values in loss.tables().values():
        is_stored_per_row = field_values.strides[0] != 0  # else one value is repeated for all
        if is_stored_per_row:
            differs = (field_values != field_values[0]).reshape(len(field_values), -1).any(1)
            rows.add(int(differs.argmax()))
    return rows


def same_losses(cohort_name: str, all_losses: Loss, rows: Indices) -> Loss:
    """Return the losses of some rows, checked to be rounded as they are among all rows.

    They are compared at ``N_PROBES`` random outcomes. UserError if a single bit differs.
    """
    some_losses = all_losses[rows]
    for outcome in stream(0, "shares").random((N_PROBES, all_losses.outcomes)):
        if not np.array_equal(all_losses.losses(outcome)[rows], some_losses.losses(outcome)):
            raise UserError(
                f"cohort.{cohort_name}: {all_losses.form} losses come out otherwise in the last "
                "digit for a part of its agents; run it on one machine"
            )
    return some_losses


def select_rows(table: Table | None, rows: Indices) -> Table | None:
    """Return some rows of a table (K, ...), or None where there is no table."""
    return None if table is None else table[rows]
