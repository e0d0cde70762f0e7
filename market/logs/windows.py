r"""Regret over windows of rounds, and beside its bounds as a run goes on.

**Windows.** What each agent regrets of the rounds from ``first`` to ``last`` alone: every regret is
read from the difference of the ledger after its last round and a copy taken before its first one
(``Ledger.excerpt``, ``Ledger.since``), as from a ledger that had seen nothing but the window. No
comparator is carried over, and an agent that was right for a thousand rounds before a change of
regime is not forgiven what follows. Windows do not overlap, so one copy per ledger is kept at a
time. An agent that joined within a window is averaged over its own rounds of it.

**Beside its bounds** regret is read four times in every doubling of the rounds: one row per cohort
to which a theorem applies, with the greatest value over its agents in every column.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import Cohort
from regretless.market.logs.sampling import Logged
from regretless.market.regret.ledger import Ledger

Span = tuple[int, int]

REGRETS = ("external", "swap", "decision_swap")


class Windows(Checkpointable):
    """Scores each cohort over windows of rounds, as they end.

    ``spans`` are the first and the last round of every window, in order and without overlap.
    ``logged`` says which agents get rows; guarantees are one per cohort, or none at all. ``worst``
    has by cohort the greatest regret of an agent so far, per round of its window (decision swap
    regret, or swap regret), the agent, and the window's first and last round.
    """

    REMEMBERED = ("_at", "_before", "worst")

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        logged: Sequence[Logged],
        spans: Sequence[Span],
        guarantees: Sequence[Guarantee] = (),
    ) -> None:
        self._seats, self.spans = tuple(zip(cohorts, logged, strict=True)), tuple(spans)
        self.guarantees = tuple(guarantees) or (Guarantee(),) * len(cohorts)
        self.bounded = any(own.window is not None for own in self.guarantees)
        self.worst: dict[str, list[Any]] = {}
        self._at = 0  # the window that is open, or else the next one
        self._before: tuple[Ledger, ...] = ()  # where it is open
        self._open(0)

    @property
    def shortest(self) -> int:
        """Least number of rounds between two ends of windows, the start of the game among them."""
        return int(np.diff([last for _, last in self.spans], prepend=-1).min())

    def add(self, number: int) -> list[dict[str, NDArray[Any]]]:
        """Take note of a round; return the columns of each cohort if a window ends with it."""
        parts = []
        if self._before and self.spans[self._at][1] == number:
            parts = [self._closed(place) for place in range(len(self._seats))]
            self._at, self._before = self._at + 1, ()
        self._open(number + 1)
        return [columns for columns in parts if len(columns["agent"])]

    def _open(self, number: int) -> None:
        """Keep the ledgers as they stand if a window begins with this round."""
        if self._at < len(self.spans) and self.spans[self._at][0] == number:
            self._before = self._excerpts()

    def _excerpts(self) -> tuple[Ledger, ...]:
        return tuple(cohort.ledger.excerpt(own.rows) for cohort, own in self._seats)

    def _closed(self, place: int) -> dict[str, NDArray[Any]]:
        """Read a cohort's window that ends, and remember its worst agent if none was worse."""
        (first, last), (cohort, own) = self.spans[self._at], self._seats[place]
        promise, sums = self.guarantees[place], cohort.ledger.excerpt(own.rows)
        sums = sums.since(self._before[place])
        rows = {"mean_loss": sums.mean_loss()}
        for name in REGRETS:
            known = sums.regret(name)
            rows[f"{name}_regret"] = np.full(len(sums.count), np.nan) if known is None else known
        if self.bounded:
            bound = np.nan if promise.window is None else promise.window(first, last)
            covers = True if promise.covers is None else promise.covers
            each = np.broadcast_to(np.where(covers, bound, np.nan), len(cohort.ledger.count))
            rows["bound"] = each[own.rows]
        here = sums.played[own.row_of]
        columns: dict[str, NDArray[Any]] = {"agent": own.ids[here]}
        columns |= {"first": np.full(here.sum(), first), "last": np.full(here.sum(), last)}
        columns |= {name: values[own.row_of][here] for name, values in rows.items()}
        decision, swap = columns["decision_swap_regret"], columns["swap_regret"]
        regret = np.where(np.isnan(decision), swap, decision)
        if not np.isnan(regret).all():
            at = int(np.nanargmax(regret))
            worst = [float(regret[at]), int(columns["agent"][at]), first, last]
            found = [self.worst.get(cohort.name, worst), worst]
            self.worst[cohort.name] = max(found, key=lambda one: one[0])
        return columns

    def join(self, parts: Sequence[dict[str, list[Any]]]) -> None:
        """Take over the worst of parts which together are all agents of some cohorts."""
        for name in {name for part in parts for name in part}:
            found = [part[name] for part in parts if name in part]
            self.worst[name] = max(found, key=lambda own: (own[0], -own[2], -own[1]))

    def restore(self, state: dict[str, Any]) -> None:
        self._before = self._excerpts() if state["before"] else ()
        super().restore(state)


FIRST = 8  # rounds before the first row
OFTEN = 4  # rows per doubling
LARGEST = 20_000  # rows of a ledger; of larger ones the last round alone is logged
COLUMNS = ("decision_swap_regret", "bound_from_bias", "bound_from_variation", "bound")


class BoundsLog(Checkpointable):
    """Collects the table of bounds, of guarantees one per cohort; the last round has a row, too."""

    REMEMBERED = ("_kept",)

    def __init__(
        self, cohorts: Sequence[Cohort], guarantees: Sequence[Guarantee], *, rounds: int
    ) -> None:
        self._cohorts, self._rounds, self.guarantees = tuple(cohorts), rounds, tuple(guarantees)
        self._kept = np.zeros((0, 2 + len(COLUMNS)))

    def add(self, played: int) -> None:
        """Take note that so many rounds have been played."""
        octaves = [math.floor(OFTEN * math.log2(max(at, 1))) for at in (played - 1, played)]
        last = played == self._rounds
        if not last and (played < FIRST or octaves[0] == octaves[1]):
            return
        for place, cohort in enumerate(self._cohorts):
            promise, ledger = self.guarantees[place], cohort.ledger
            large = len(ledger.count) > LARGEST and not last
            if promise.bound is None or large or not np.any(ledger.rounds):
                continue
            regret, bias, gap = (
                ledger.regret("decision_swap"),
                ledger.bound_from_bias(),
                cohort.gap(),
            )
            found = [
                ledger.regret("swap") if regret is None else regret,
                None if bias is None or gap is None else bias + gap,
                promise.from_variation and promise.from_variation(),
                promise.bound(),
            ]
            here = ledger.played & (True if promise.covers is None else promise.covers)
            known = [np.where(here, np.nan if own is None else own, np.nan) for own in found]
            greatest = [np.fmax.reduce(own, initial=np.nan) for own in known]
            self._kept = np.vstack([self._kept, [played, place, *greatest]])

    def join(self, parts: Sequence[tuple[Sequence[int], Array]]) -> None:
        """Take over regrets and biases of parts: their cohorts' places here, and what they kept."""
        rows = [(own[0], places[int(own[1])], own[2:4]) for places, kept in parts for own in kept]
        for mine in self._kept:
            found = [greatest for at, place, greatest in rows if (at, place) == tuple(mine[:2])]
            if found:
                mine[2:4] = np.fmax.reduce(found)

    def frame(self) -> pd.DataFrame:
        """One row per logged round and cohort: the greatest regret and the greatest bounds."""
        names = [cohort.name for cohort in self._cohorts]
        table = pd.DataFrame(self._kept[:, 2:], columns=COLUMNS)
        table.insert(0, "cohort", [names[int(place)] for place in self._kept[:, 1]])
        table.insert(0, "round", self._kept[:, 0].astype(np.int64))
        return table
