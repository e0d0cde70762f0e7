r"""Outcomes of a data file that were cut off: sales of what was sold out.

A row is censored where the column that ``[data] censored`` names is true: its outcome is known to
be at least the value that stands there. ``resolved`` calls ``complete_table`` once, before the
run, and all who learn, the forecaster with its models and the agents, learn the completed rows.

In place of a censored value stands the mean of what lies beyond it under the mixture of the models
of ``PANEL_OF_DISTRIBUTIONS``, which have learned the rows before it, completed in the same way:

    y*_t  =  E_D_t [y | y > c_t],      D_t = the forecast of row t from its context and rows < t.

That is what ``OnlineOmnipredictor.learn_one(x, y, censored=True)`` learns
(``forecaster.online.censoring``, where the sources are), but that the forecasts here are not
recalibrated. The panel is that of the predictor, whatever models the scenario names, since those of
a market predict statistics of the outcome and have no distribution to be redistributed. No later
row is used, so that a forecast is still made before its outcome. Nothing is guaranteed: y* is a
guess.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regretless.forecaster.bases import LinearBasis, ReLUBasis
from regretless.forecaster.models.aggregate import PANEL_OF_DISTRIBUTIONS, make_panel
from regretless.forecaster.models.pool import DistributionPool
from regretless.forecaster.online.censoring import SOLD_OUT_ROUNDS, mean_beyond
from regretless.market.core.arrays import Array, Mask
from regretless.market.losses.basis import Basis
from regretless.market.records import RoundFeedback
from regretless.scenarios.assembly.data import UNIT_SCALE, Table
from regretless.scenarios.config.data import DataSpec

HINGE_ERROR = 1 / 64  # of the basis by which the models of one outcome are weighted: 16 hinges


def complete_table(table: Table, data: DataSpec, *, rounds: int) -> Table:
    """Return a table with estimates in place of censored outcomes, and notes that say so.

    The file says of the table which outcomes are censored. Rows that a run of so many ``rounds``
    does not play stay as they are.
    """
    is_censored = np.asarray(table.is_censored)
    n_rows = len(table.outcomes)
    if data.bootstrap is None:  # otherwise each row may be drawn
        n_rows = min(n_rows, rounds)
    # Where a scale is reversed, at least y is at most so much of [0, 1].
    scales = [data.scale.get(outcome, UNIT_SCALE) for outcome in data.outcomes]
    is_reversed = np.array([low > high for low, high in scales])
    ascending = np.where(is_reversed, 1.0 - table.outcomes, table.outcomes)
    ascending[:n_rows] = completed_outcomes(
        ascending[:n_rows],
        is_censored[:n_rows],
        table.contexts[:n_rows],
        names=table.names,
    )
    completed = np.where(is_reversed, 1.0 - ascending, ascending)
    outcomes = np.where(is_censored, completed, table.outcomes)
    notes = _notes_on_censoring(is_censored[:n_rows])
    return replace(table, outcomes=outcomes, notes=(*table.notes, *notes))


def completed_outcomes(
    outcomes: Array, is_censored: Mask, contexts: Array, *, names: Sequence[str]
) -> Array:
    """Return outcomes (T, d) in which each censored value is the mean of what lies beyond it.

    Parameters
    ----------
    outcomes : array (T, d)
        In [0, 1], in their order.
    is_censored : bool array (T, d)
        Which of them are lower limits.
    contexts : array (T, f)
        What was known before each row; the models forecast from it.
    names : sequence of f str
        Of the features.

    Examples
    --------
    >>> sales = np.array([[0.2], [0.8]] * 20 + [[0.5]])
    >>> is_sold_out = np.arange(41)[:, None] == 40
    >>> demand = completed_outcomes(sales, is_sold_out, np.zeros((41, 0)), names=())
    >>> demand[-1].round(2).tolist()
    [0.63]
    """
    completed = outcomes.copy()
    n_outcomes = outcomes.shape[1]
    basis: Basis = LinearBasis(n_outcomes)
    if n_outcomes == 1:
        basis = ReLUBasis(error=HINGE_ERROR)
    models: Any = make_panel(PANEL_OF_DISTRIBUTIONS, basis.size, basis)  # all are distributions
    panel = DistributionPool(models, basis)
    rows = np.flatnonzero(is_censored.any(axis=1))
    n_rows_to_learn = rows[-1] + 1 if len(rows) else 0
    for row in range(n_rows_to_learn):
        panel.point(dict(zip(names, contexts[row].tolist(), strict=True)))
        if is_censored[row].any():
            completed[row] = mean_beyond(outcomes[row], is_censored[row], panel.distribution())
        panel.observe(RoundFeedback(basis.transform(completed[row]), completed[row]))
    return completed


def _notes_on_censoring(is_censored: Mask) -> Iterator[str]:
    """Yield what is to be said of the rows (T, d) that are played."""
    is_row_censored = np.asarray(is_censored.any(axis=1))
    n_censored = int(is_row_censored.sum())
    if n_censored:
        are = "row is" if n_censored == 1 else "rows are"
        yield (
            f"{n_censored:,} of {len(is_row_censored):,} {are} censored; in place of each the mean "
            "of what the models expect beyond it was learned, and losses are at that mean."
        )
    if len(is_row_censored) >= SOLD_OUT_ROUNDS and is_row_censored[-SOLD_OUT_ROUNDS:].all():
        yield (
            f"The last {SOLD_OUT_ROUNDS} rows are all censored: nothing is seen of what lies "
            "beyond; order more now and then."
        )
