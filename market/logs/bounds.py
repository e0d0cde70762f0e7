"""Regret beside its bounds, as a run goes on: four times in every doubling of the rounds.

One row per cohort to which a theorem applies, with the greatest value over its agents in every
column. The bounds hold in all rounds at once, so that one may stop a run when one of them pleases.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.protocols import Cohort

FIRST = 8  # rounds before the first row
OFTEN = 4  # rows per doubling
LARGEST = 20_000  # rows of a ledger; of larger ones the last round alone is logged
COLUMNS = ("decision_swap_regret", "bound_from_bias", "bound_from_variation", "bound")


class BoundsLog(Remembering):
    """Collects the table of bounds.

    Parameters
    ----------
    cohorts : sequence of Cohort
    guarantees : sequence of Guarantee
        One per cohort.
    rounds : int
        Of the run; the last has a row, too.
    """

    REMEMBERED = ("_kept",)

    def __init__(
        self, cohorts: Sequence[Cohort], guarantees: Sequence[Guarantee], *, rounds: int
    ) -> None:
        self._cohorts, self._rounds = tuple(cohorts), rounds
        self.promise(guarantees)
        self._kept = np.zeros((0, 2 + len(COLUMNS)))

    def promise(self, guarantees: Sequence[Guarantee]) -> None:
        """Go on with other guarantees, one per cohort, or none at all."""
        given = tuple(guarantees) or (Guarantee(),) * len(self._cohorts)
        self._members = tuple(zip(self._cohorts, given, strict=True))

    def add(self, played: int) -> None:
        """Take note that so many rounds have been played."""
        last = played == self._rounds
        if not last and (played < FIRST or _octave(played) == _octave(played - 1)):
            return
        for place, (cohort, guarantee) in enumerate(self._members):
            large = len(cohort.ledger.count) > LARGEST and not last
            if guarantee.bound is not None and np.any(cohort.ledger.rounds) and not large:
                row = [played, place, *_greatest(cohort, guarantee)]
                self._kept = np.vstack([self._kept, row])

    def frame(self) -> pd.DataFrame:
        """One row per logged round and cohort: the greatest regret and the greatest bounds."""
        names = [cohort.name for cohort, _ in self._members]
        table = pd.DataFrame(self._kept[:, 2:], columns=COLUMNS)
        table.insert(0, "cohort", [names[int(place)] for place in self._kept[:, 1]])
        table.insert(0, "round", self._kept[:, 0].astype(np.int64))
        return table


def _octave(played: int) -> int:
    return math.floor(OFTEN * math.log2(max(played, 1)))


def _greatest(cohort: Cohort, guarantee: Guarantee) -> list[float]:
    """Return the greatest of each column over the rows that are covered and have played."""
    ledger, gap = cohort.ledger, cohort.gap()
    regret = ledger.regret("decision_swap")
    bias = ledger.bound_from_bias()
    found = [
        ledger.regret("swap") if regret is None else regret,
        None if bias is None or gap is None else bias + gap,
        guarantee.from_variation() if guarantee.from_variation else None,
        guarantee.bound() if guarantee.bound else None,
    ]
    here = np.broadcast_to(np.asarray(ledger.rounds) > 0, len(ledger.count))
    here = here if guarantee.covers is None else here & guarantee.covers
    return [_top(values, here) for values in found]


def _top(values: Array | None, here: Mask) -> float:
    known = np.zeros(0) if values is None else values[here & ~np.isnan(values)]
    return float(known.max()) if len(known) else math.nan
