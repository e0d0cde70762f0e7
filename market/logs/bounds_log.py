"""The table ``bounds``: worst regret and its bounds at selected rounds, per cohort.

A row is written four times in every doubling of the rounds, and after the last round, for every
cohort to which a theorem applies. Each column has the greatest value over the cohort's agents.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import Cohort

FIRST_LOGGED_ROUND = 8
ROWS_PER_DOUBLING = 4
MAX_LEDGER_ROWS = 20_000  # of larger ledgers only the last round is logged
COLUMNS = ("decision_swap_regret", "bound_from_bias", "bound_from_variation", "bound")
KEYS = 2  # columns of the array before these: rounds played, and the cohort's index


class BoundsLog(Checkpointable):
    """Collects the table of bounds.

    Parameters
    ----------
    cohorts, guarantees : sequences
        The cohorts, and one guarantee for each.
    rounds : int
        How many rounds the run has; the last one is logged.
    """

    REMEMBERED = ("_logged_rows",)

    def __init__(
        self, cohorts: Sequence[Cohort], guarantees: Sequence[Guarantee], *, rounds: int
    ) -> None:
        self._cohorts = tuple(cohorts)
        self.guarantees = tuple(guarantees)
        self._rounds_of_run = rounds
        self._next_logged = FIRST_LOGGED_ROUND  # the first logged moment that may be yet to come
        # A row for each logged moment and cohort: rounds played, the cohort's index, then COLUMNS.
        self._logged_rows = np.zeros((0, KEYS + len(COLUMNS)))

    def add(self, rounds_played: int) -> None:
        """Write the rows of this moment, if it is one of those that are logged.

        ``rounds_played`` is the number of rounds that have been played.
        """
        is_last = rounds_played == self._rounds_of_run
        while self._next_logged < rounds_played:
            self._next_logged = _logged_after(self._next_logged)
        if not is_last and rounds_played < self._next_logged:
            return
        rows_of_moment = []
        for cohort_index, (cohort, guarantee) in enumerate(
            zip(self._cohorts, self.guarantees, strict=True)
        ):
            is_too_large = cohort.ledger.shape[0] > MAX_LEDGER_ROWS and not is_last
            if guarantee.bound is None or is_too_large or not np.any(cohort.ledger.rounds):
                continue
            rows_of_moment.append([rounds_played, cohort_index, *_worst_values(cohort, guarantee)])
        if rows_of_moment:
            self._logged_rows = np.concatenate([self._logged_rows, rows_of_moment])

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._next_logged = FIRST_LOGGED_ROUND  # the checkpoint may be of an earlier round

    def join(self, parts: Sequence[tuple[Sequence[int], Array]]) -> None:
        """Take over the greatest regret and bias bound from parts of the run.

        Each part gives the indices here of its cohorts, and the array that it kept. The bounds of
        the other two columns do not depend on agents, and are known here.
        """
        part_rows: dict[tuple[float, float], list[Array]] = {}
        for cohort_indices, part_table in parts:
            for rounds_played, index_in_part, regret, bias_bound, *_ in part_table:
                cohort_index = float(cohort_indices[int(index_in_part)])
                rows_of_moment = part_rows.setdefault((rounds_played, cohort_index), [])
                rows_of_moment.append(np.array([regret, bias_bound]))
        for row in self._logged_rows:
            rounds_played, cohort_index = row[:KEYS]
            rows_of_same_moment = part_rows.get((rounds_played, cohort_index))
            if rows_of_same_moment is not None:
                row[KEYS : KEYS + 2] = np.fmax.reduce(rows_of_same_moment)

    def frame(self) -> pd.DataFrame:
        """Return a row per logged round and cohort."""
        cohort_names = [cohort.name for cohort in self._cohorts]
        table = pd.DataFrame(self._logged_rows[:, KEYS:], columns=COLUMNS)
        table.insert(0, "cohort", [cohort_names[int(index)] for index in self._logged_rows[:, 1]])
        table.insert(0, "round", self._logged_rows[:, 0].astype(np.int64))
        return table


def _logged_after(rounds_played: int) -> int:
    """Return the next logged moment: when log2 of the rounds passes a multiple of a quarter."""
    quarter = math.floor(ROWS_PER_DOUBLING * math.log2(rounds_played))
    later = rounds_played + 1
    while math.floor(ROWS_PER_DOUBLING * math.log2(later)) == quarter:
        later += 1
    return later


def _worst_values(cohort: Cohort, guarantee: Guarantee) -> list[float]:
    """Return the values of ``COLUMNS``: the greatest over the rows to which the bounds apply.

    NaN where nothing is known.
    """
    ledger = cohort.ledger
    regret = ledger.regret("decision_swap")
    if regret is None:
        regret = ledger.regret("swap")
    bound_from_bias = ledger.bound_from_bias()
    response_gap = cohort.gap()
    if bound_from_bias is not None and response_gap is not None:
        bound_from_bias = bound_from_bias + response_gap
    else:
        bound_from_bias = None
    bound = None
    bound_from_variation = None
    if guarantee.so_far is not None:
        bound, bound_from_variation = guarantee.so_far()
    else:
        bound = guarantee.bound() if guarantee.bound else None
        if guarantee.from_variation is not None:
            bound_from_variation = guarantee.from_variation()

    is_covered = ledger.played
    if guarantee.covers is not None:
        is_covered = is_covered & guarantee.covers
    worst_values = []
    for values in (regret, bound_from_bias, bound_from_variation, bound):  # as in ``COLUMNS``
        if values is None:
            worst_values.append(np.nan)
        else:
            worst_of_covered = np.fmax.reduce(values, initial=np.nan, where=is_covered)
            worst_values.append(float(worst_of_covered))
    return worst_values
