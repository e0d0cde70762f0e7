"""The table ``windows``: what each agent regrets of a span of rounds alone.

Every regret of the rounds from ``first`` to ``last`` is read from the difference of the ledger
after the window's last round and a copy that was taken before its first one (``Ledger.excerpt``,
``Ledger.since``), as from a ledger that had seen nothing but the window. No comparator is carried
over, and an agent that was right for a thousand rounds before a change of regime is not forgiven
what follows. Windows do not overlap, so that one copy per ledger is kept at a time. An agent that
entered within a window is averaged over its own rounds of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable, ForeignState
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import Cohort
from regretless.market.logs.sampling import Logged
from regretless.market.regret.ledger import Ledger

Span = tuple[int, int]  # first and last round of a window

REGRETS = ("external", "swap", "decision_swap")


@dataclass(frozen=True, eq=False)
class LoggedCohort:
    """A cohort, and which of its agents are logged."""

    cohort: Cohort
    logged: Logged


class Windows(Checkpointable):
    """Measures each cohort over windows of rounds, as they end.

    Parameters
    ----------
    cohorts, logged : sequences
        The cohorts, and which agents of each get rows.
    spans : sequence of Span
        First and last round of every window, in order and without overlap.
    guarantees : sequence of Guarantee
        One per cohort, or none at all.

    Attributes
    ----------
    worst : dict
        By cohort the greatest regret of an agent so far, per round of its window (decision swap
        regret, or swap regret where that was not kept), the agent, and the window's first and last
        round.
    """

    REMEMBERED = ("_window_index", "_ledgers_before", "worst")

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        logged: Sequence[Logged],
        spans: Sequence[Span],
        guarantees: Sequence[Guarantee] = (),
    ) -> None:
        pairs = zip(cohorts, logged, strict=True)
        self._logged_cohorts = [LoggedCohort(cohort, of_cohort) for cohort, of_cohort in pairs]
        self.spans = tuple(spans)
        self.guarantees = tuple(guarantees) or (Guarantee(),) * len(cohorts)
        # Whether there is a column of bounds, which stays when guarantees are replaced.
        self.has_bounds = any(guarantee.window is not None for guarantee in self.guarantees)
        self.worst: dict[str, list[Any]] = {}
        self._window_index = 0  # of the window that is open, or else of the next one
        self._ledgers_before: tuple[Ledger, ...] = ()  # when it opened; empty if none is open
        self._open_window(0)

    @property
    def shortest(self) -> int:
        """Least number of rounds between two ends of windows, the start of the game among them."""
        last_rounds = [last for _, last in self.spans]
        return int(np.diff(last_rounds, prepend=-1).min())

    def add(self, round_index: int) -> list[dict[str, NDArray[Any]]]:
        """Take note of a round; return the columns of each cohort if a window ends with it."""
        parts = []
        if self._ledgers_before and self.spans[self._window_index][1] == round_index:
            parts = [self._close_window(index) for index in range(len(self._logged_cohorts))]
            self._window_index += 1
            self._ledgers_before = ()
        self._open_window(round_index + 1)
        return [columns for columns in parts if len(columns["agent"])]

    def _open_window(self, round_index: int) -> None:
        """Keep the ledgers as they stand if a window begins with this round."""
        are_all_closed = self._window_index == len(self.spans)
        if not are_all_closed and self.spans[self._window_index][0] == round_index:
            self._ledgers_before = self._copy_ledgers()

    def _copy_ledgers(self) -> tuple[Ledger, ...]:
        copies = []
        for logged_cohort in self._logged_cohorts:
            logged_rows = logged_cohort.logged.rows
            copies.append(logged_cohort.cohort.ledger.excerpt(logged_rows))
        return tuple(copies)

    def _close_window(self, cohort_index: int) -> dict[str, NDArray[Any]]:
        """Read a cohort's columns of the window that ends, and remember its worst agent."""
        logged_cohort = self._logged_cohorts[cohort_index]
        logged = logged_cohort.logged
        first, last = self.spans[self._window_index]
        ledger_now = logged_cohort.cohort.ledger.excerpt(logged.rows)
        ledger = ledger_now.since(self._ledgers_before[cohort_index])

        values_per_row: dict[str, Array] = {"mean_loss": ledger.mean_loss()}
        for measure, regret in ledger.regrets(REGRETS).items():
            if regret is None:
                values_per_row[f"{measure}_regret"] = np.full(ledger.shape[0], np.nan)
            else:
                values_per_row[f"{measure}_regret"] = regret
        if self.has_bounds:
            guarantee = self.guarantees[cohort_index]
            rows = logged_cohort.cohort.ledger.shape[0]
            bounds = _window_bounds(guarantee, first, last, rows=rows)
            values_per_row["bound"] = bounds[logged.rows]

        has_played = ledger.played[logged.row_of]
        agents = logged.ids[has_played]
        columns: dict[str, NDArray[Any]] = {
            "agent": agents,
            "first": np.full(len(agents), first),
            "last": np.full(len(agents), last),
        }
        for name, values in values_per_row.items():
            columns[name] = values[logged.row_of][has_played]
        self._remember_worst(logged_cohort.cohort.name, columns)
        return columns

    def columns_without_rows(self) -> dict[str, NDArray[Any]]:
        """Return the columns of the table as long as no window has ended."""
        whole_numbers = ("agent", "first", "last")
        columns: dict[str, NDArray[Any]] = {
            name: np.zeros(0, dtype=np.intp) for name in whole_numbers
        }
        measures = ["mean_loss", *(f"{measure}_regret" for measure in REGRETS)]
        if self.has_bounds:
            measures.append("bound")
        for name in measures:
            columns[name] = np.zeros(0)
        return columns

    def _remember_worst(self, cohort_name: str, columns: dict[str, NDArray[Any]]) -> None:
        decision_swap_regret = columns["decision_swap_regret"]
        swap_regret = columns["swap_regret"]
        regret = np.where(np.isnan(decision_swap_regret), swap_regret, decision_swap_regret)
        if np.isnan(regret).all():
            return
        index = int(np.nanargmax(regret))
        agent = int(columns["agent"][index])
        first = int(columns["first"][index])
        last = int(columns["last"][index])
        earlier = self.worst.get(cohort_name)
        if earlier is None or regret[index] > earlier[0]:
            self.worst[cohort_name] = [float(regret[index]), agent, first, last]

    def join(self, parts: Sequence[dict[str, list[Any]]]) -> None:
        """Take over the worst of parts which together are all agents of some cohorts.

        Of equal regrets the earlier window counts, then the agent with the lower number.
        """

        def rank(worst: list[Any]) -> tuple[float, int, int]:
            regret, agent, first_round, _last_round = worst
            return regret, -first_round, -agent

        cohort_names = set[str]().union(*parts)
        for cohort_name in cohort_names:
            candidates = [part[cohort_name] for part in parts if cohort_name in part]
            self.worst[cohort_name] = max(candidates, key=rank)

    def state(self) -> dict[str, Any]:
        state = super().state()
        # A window may be open in a new run and none at the checkpoint, or the other way round.
        state["ledgers_before"] = ForeignState(state["ledgers_before"] or {})
        return state

    def restore(self, state: dict[str, Any]) -> None:
        # Only ledgers that are there can be restored into.
        self._ledgers_before = self._copy_ledgers() if state["ledgers_before"] else ()
        super().restore(state)


def _window_bounds(guarantee: Guarantee, first: int, last: int, *, rows: int) -> Array:
    """Return the bound of a window for every row of a cohort (K,); NaN where none holds."""
    if guarantee.window is None:
        return np.full(rows, np.nan)
    bound = guarantee.window(first, last)
    if guarantee.covers is not None:
        bound = np.where(guarantee.covers, bound, np.nan)
    return np.broadcast_to(bound, rows)
