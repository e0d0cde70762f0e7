"""The table ``bounds``: worst regret and its bounds at selected rounds, per cohort.

A row is written four times in every doubling of the rounds, and after the last round, for every
cohort to which a theorem applies. Each column has the greatest value over the cohort's agents.

A round takes note of what its row depends on, and no more: the theorems' bounds are worked out when
somebody reads the table or writes a checkpoint of it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.guarantee import BoundsSoFar, Guarantee
from regretless.market.game.protocols import Cohort

FIRST_LOGGED_ROUND = 8
ROWS_PER_DOUBLING = 4
MAX_LEDGER_ROWS = 20_000  # of larger ledgers only the last round is logged
COLUMNS = ("decision_swap_regret", "bound_from_bias", "bound_from_variation", "bound")
KEYS = 2  # columns of the array before these: rounds played, and the cohort's index


@dataclass(frozen=True, eq=False)
class NotedRow:
    """What a row of the table depends on, as it was after a round."""

    rounds_played: int
    cohort_index: int
    regret: float  # the worst, NaN where nothing is known
    bound_from_bias: float
    is_covered: Mask  # the rows (K,) to which the bounds apply
    work_out: Callable[[], BoundsSoFar]


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
        self._noted_rows: list[NotedRow] = []  # which follow them, and are not worked out yet

    def add(self, rounds_played: int) -> None:
        """Take note of the rows of this moment, if it is one of those that are logged.

        ``rounds_played`` is the number of rounds that have been played.
        """
        is_last = rounds_played == self._rounds_of_run
        while self._next_logged < rounds_played:
            self._next_logged = _logged_after(self._next_logged)
        if not is_last and rounds_played < self._next_logged:
            return
        for cohort_index, (cohort, guarantee) in enumerate(
            zip(self._cohorts, self.guarantees, strict=True)
        ):
            is_too_large = cohort.ledger.shape[0] > MAX_LEDGER_ROWS and not is_last
            if guarantee.bound is None or is_too_large:
                continue
            has_played = cohort.ledger.played  # (K,)
            if has_played.any():
                noted_row = _noted_row(rounds_played, cohort_index, has_played, cohort, guarantee)
                self._noted_rows.append(noted_row)

    def work_out(self) -> None:
        """Work out the bounds of all rows so far."""
        if not self._noted_rows:
            return
        noted_rows = self._noted_rows
        self._noted_rows = []
        new_rows = []
        for noted in noted_rows:
            bounds = noted.work_out()
            new_rows.append(
                [
                    noted.rounds_played,
                    noted.cohort_index,
                    noted.regret,
                    noted.bound_from_bias,
                    _worst(bounds.from_variation, noted.is_covered),
                    _worst(bounds.bound, noted.is_covered),
                ]
            )
        self._logged_rows = np.concatenate([self._logged_rows, new_rows])

    def state(self) -> dict[str, Any]:
        self.work_out()
        return super().state()

    def restore(self, state: dict[str, Any]) -> None:
        self._noted_rows = []
        super().restore(state)
        self._next_logged = FIRST_LOGGED_ROUND  # the checkpoint may be of an earlier round

    def join(self, parts: Sequence[tuple[Sequence[int], Array]]) -> None:
        """Take over the greatest regret and bias bound from parts of the run.

        Each part gives the indices here of its cohorts, and the array that it kept. The bounds of
        the other two columns do not depend on agents, and are known here.
        """
        self.work_out()
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
        self.work_out()
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


def _noted_row(
    rounds_played: int,
    cohort_index: int,
    has_played: Mask,
    cohort: Cohort,
    guarantee: Guarantee,
) -> NotedRow:
    """Take note of a row's values: the greatest over the rows to which the bounds apply.

    ``has_played`` says which of the cohort's rows have (K,).
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
    is_covered = has_played
    if guarantee.covers is not None:
        is_covered = is_covered & guarantee.covers
    return NotedRow(
        rounds_played,
        cohort_index,
        _worst(regret, is_covered),
        _worst(bound_from_bias, is_covered),
        is_covered,
        _note_bounds(guarantee, rows=ledger.shape[0]),
    )


def _note_bounds(guarantee: Guarantee, *, rows: int) -> Callable[[], BoundsSoFar]:
    """Return who works out the bounds on so many rows' regrets so far."""
    if guarantee.take_note is not None:
        return guarantee.take_note()
    unknown = np.full(rows, np.nan)
    bound = guarantee.bound() if guarantee.bound else unknown
    from_variation = guarantee.from_variation() if guarantee.from_variation else unknown
    return partial(BoundsSoFar, bound, from_variation)


def _worst(values: Array | None, is_covered: Mask) -> float:
    """Return the greatest value of the covered rows; NaN where nothing is known."""
    if values is None:
        return math.nan
    return float(np.fmax.reduce(values, initial=np.nan, where=is_covered))
