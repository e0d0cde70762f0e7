"""Fits on growing parts of a table, each certified on the next part: prequential validation.

Rows in random order are cut into a first half and ``FITS`` equal parts. Fit j is learned from all
rows before part j and tested on part j, so that every row of the second half is held out of the fit
that it tests, and yet is learned from by later ones (Dawid 1984, doi:10.2307/2981683). All parts
are in one betting bound (``certificate``).

What the bound covers is one of the fits, drawn with equal chances, and with it whoever plays the
mean of their mixed strategies: regret is linear in these. A best response to the mean of their
predictions is another rule, of which nothing is proved; so ``GrowingFits`` averages strategies.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from regretless.forecaster.offline.conditional import ConditionalDistribution, quantiles_of
from regretless.forecaster.offline.tables import AnyLoss, Listed, Rows
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError

FITS = 4
MIN_ROWS = 16  # of which the first fit sees 8 or more, and each is tested on 2 or more


class GrowingFits:
    """The mean of the strategies of fits on growing parts of a table.

    Attributes
    ----------
    fits : list of ConditionalDistribution
        Each is learned from more rows than the one before it.
    names : list of str
        The members of the first fit: comparators, beside the constants and policies. They are
        known before any row is tested, as the union bound needs it.
    """

    def __init__(self, fits: Sequence[ConditionalDistribution]) -> None:
        self.fits = list(fits)
        self.listed: Listed = self.fits[0].listed
        self.names = list(self.fits[0].members)

    def mean(self, inputs: Array) -> Array:
        """Return the mean prediction (m, n) of s(y)."""
        return np.asarray(np.mean([fit.mean(inputs) for fit in self.fits], axis=0))

    def outcomes(self, inputs: Array) -> Array:
        """Forecast the outcome (m, d), in [0, 1]."""
        return np.asarray(np.mean([fit.outcomes(inputs) for fit in self.fits], axis=0))

    def quantiles(self, inputs: Array, levels: Sequence[float]) -> Array:
        """Return quantiles (m, d, levels) of the mean of all fits' distributions."""
        return quantiles_of(self.fits, inputs, levels)

    def play(self, loss: AnyLoss, inputs: Array) -> tuple[Array, Array]:
        """Return the mean strategies (m, A) of a single loss and the mean expected losses (m,)."""
        answers = [fit.play(loss, inputs) for fit in self.fits]
        strategies = np.mean([strategy for strategy, _expected in answers], axis=0)
        expected_losses = np.mean([expected for _strategy, expected in answers], axis=0)
        return np.asarray(strategies), np.asarray(expected_losses)

    def test_parts(self, held_out: Rows) -> Iterator[tuple[ConditionalDistribution, Rows]]:
        """Yield each fit with the rows that it is tested on.

        ``held_out`` has those of all fits, one after another, as many of each.
        """
        rows_of_part = len(held_out.seen) // len(self.fits)
        for index, fit in enumerate(self.fits):
            first = index * rows_of_part
            yield fit, held_out[first : first + rows_of_part]


def learn_growing(
    learn: Callable[[Rows], ConditionalDistribution], rows: Rows, order: Indices
) -> tuple[GrowingFits, Rows]:
    """Learn from growing parts of the rows, in this order; return the fits and the tested rows.

    UserError if there are fewer than ``MIN_ROWS``.
    """
    count = len(order)
    if count < MIN_ROWS:
        raise UserError(f"holdout = 'prequential': {count} rows; give {MIN_ROWS} or more")
    rows_of_part = count // (2 * FITS)
    first_tested = count - FITS * rows_of_part
    starts = range(first_tested, count, rows_of_part)
    fits = [learn(rows[np.sort(order[:start])]) for start in starts]
    return GrowingFits(fits), rows[order[first_tested:]]
