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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.protocols import Cohort
from regretless.market.logs.sampling import Logged
from regretless.market.regret.ledger import Ledger

Span = tuple[int, int]

REGRETS = ("external", "swap", "decision_swap")


@dataclass(frozen=True)
class Worst:
    """The window, from its first to its last round, in which an agent regretted most so far."""

    regret: float  # decision swap regret per round of the window, or swap regret
    agent: int
    first: int
    last: int


class Windows(Checkpointable):
    """Scores each cohort over windows of rounds, as they end.

    ``spans`` are the first and the last round of every window, in order and without overlap.
    ``logged`` says which agents get rows; guarantees are one per cohort.
    """

    REMEMBERED = ("_at", "_before")

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        logged: Sequence[Logged],
        spans: Sequence[Span],
        guarantees: Sequence[Guarantee] = (),
    ) -> None:
        self._seats = tuple(zip(cohorts, logged, strict=True))
        self.promise(tuple(guarantees) or (Guarantee(),) * len(cohorts))
        self.bounded = any(own.window is not None for own in self._guarantees)
        self.spans = tuple(spans)
        self.worst: dict[str, Worst] = {}
        self._at = 0  # the window that is open, or else the next one
        self._before: tuple[Ledger, ...] = ()  # where it is open
        self._open(0)

    def promise(self, guarantees: Sequence[Guarantee]) -> None:
        """Go on with other guarantees, one per cohort."""
        self._guarantees = tuple(guarantees)

    @property
    def shortest(self) -> int:
        """Least number of rounds between two ends of windows, the start of the game among them."""
        return int(np.diff([last for _, last in self.spans], prepend=-1).min())

    def add(self, number: int) -> list[dict[str, NDArray[Any]]]:
        """Take note that the ledgers have added this round.

        Returns columns of the windows table, a part per cohort; none unless a window ends.
        """
        parts: list[dict[str, NDArray[Any]]] = []
        if self._before and self.spans[self._at][1] == number:
            parts = list(self._closed())
            self._at, self._before = self._at + 1, ()
        self._open(number + 1)
        return parts

    def _open(self, number: int) -> None:
        """Keep the ledgers as they stand if a window begins with this round."""
        if self._at < len(self.spans) and self.spans[self._at][0] == number:
            self._before = self._excerpts()

    def _excerpts(self) -> tuple[Ledger, ...]:
        return tuple(cohort.ledger.excerpt(own.rows) for cohort, own in self._seats)

    def _closed(self) -> Iterator[dict[str, NDArray[Any]]]:
        first, last = self.spans[self._at]
        members = zip(self._seats, self._before, self._guarantees, strict=True)
        for (cohort, own), before, promise in members:
            sums = cohort.ledger.excerpt(own.rows).since(before)
            played = sums.played[own.row_of]
            if not played.any():
                continue
            ends = {"first": first, "last": last}
            columns: dict[str, NDArray[Any]] = {"agent": own.ids[played]}
            columns |= {name: np.full(played.sum(), end) for name, end in ends.items()}
            columns |= {name: rows[own.row_of][played] for name, rows in measures(sums).items()}
            if self.bounded:
                columns["bound"] = bounded(promise, first, last, own)[played]
            self._note(cohort.name, columns)
            yield columns

    def _note(self, name: str, columns: dict[str, NDArray[Any]]) -> None:
        """Remember the worst agent of a window that beats the worst so far."""
        wanted = columns["decision_swap_regret"]
        regret = np.where(np.isnan(wanted), columns["swap_regret"], wanted)
        if np.isnan(regret).all():
            return
        place = int(np.nanargmax(regret))
        if name not in self.worst or regret[place] > self.worst[name].regret:
            who, first, last = (int(columns[key][place]) for key in ("agent", "first", "last"))
            self.worst[name] = Worst(float(regret[place]), who, first, last)

    def join(self, parts: Sequence[dict[str, Worst]]) -> None:
        """Take over the worst of parts which together are all agents of some cohorts."""
        for name in {name for part in parts for name in part}:
            found = [part[name] for part in parts if name in part]
            self.worst[name] = max(found, key=lambda own: (own.regret, -own.first, -own.agent))

    def state(self) -> dict[str, Any]:
        worst = {name: asdict(worst) for name, worst in self.worst.items()}
        return super().state() | {"worst": worst}

    def restore(self, state: dict[str, Any]) -> None:
        self._before = self._excerpts() if state["before"] else ()
        super().restore(state)
        self.worst = {name: Worst(**worst) for name, worst in state["worst"].items()}


def bounded(promise: Guarantee, first: int, last: int, own: Logged) -> Array:
    """Return the theorem's bound on each agent's regret of a window; NaN where there is none."""
    if promise.window is None:
        return np.full(len(own.row_of), np.nan)
    bound = promise.window(first, last)
    bound = bound if promise.covers is None else np.where(promise.covers, bound, np.nan)
    return np.asarray(bound[own.rows][own.row_of])


def measures(sums: Ledger) -> dict[str, Array]:
    """Read mean loss and regrets per row (K,), NaN where one is not kept."""
    columns = {"mean_loss": sums.mean_loss()}
    for name in REGRETS:
        rows = sums.regret(name)
        columns[f"{name}_regret"] = np.full(len(sums.count), np.nan) if rows is None else rows
    return columns


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

    def join(self, parts: Sequence[tuple[Sequence[int], Array]]) -> None:
        """Take over regrets and biases of parts: their cohorts' places here, and what they kept."""
        rows = [(own[0], places[int(own[1])], own[2:4]) for places, kept in parts for own in kept]
        for mine in self._kept:
            found = [greatest for at, place, greatest in rows if (at, place) == tuple(mine[:2])]
            if found:
                mine[2:4] = np.fmax.reduce(found)

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
    here = ledger.played & (True if guarantee.covers is None else guarantee.covers)
    known = [np.nan if values is None else values for values in found]
    return [float(np.fmax.reduce(np.where(here, own, np.nan), initial=np.nan)) for own in known]
