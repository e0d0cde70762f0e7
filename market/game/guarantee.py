"""What a cohort is promised: the theorem that covers it, its bound, and for which rows it holds.

Bounds are stated where their theorems apply and nowhere else (``forecaster.events.bounds``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.protocols import Cohort


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What a cohort is promised.

    Bounds are per round and row (K,), for realised draws, each with probability 0.99 in all rounds
    (of ``window``, in all windows) at once. None without a theorem.
    """

    label: str = "none"  # the theorem that applies
    bound: Callable[[], Array] | None = None  # on decision swap regret so far
    note: str = ""  # how the cohort is served, where that is worth saying
    covers: Mask | None = None  # the rows (K,) to which label and bounds apply; None for all
    to_models: Callable[[], Array] | None = None  # on the regret to every model so far
    from_variation: Callable[[], Array] | None = None  # ``bound`` at the variations of the biases
    contextual: Callable[[], Array] | None = None  # on contextual swap regret so far
    beforehand: Callable[[int], Array] | None = None  # ``bound`` after so many rounds, at most
    window: Callable[[int, int], Array] | None = None  # ``bound`` from a first to a last round
    unbounded: tuple[str, ...] = ()  # which regrets have no bound despite the theorem, and why

    def part(self, rows: Indices) -> "Guarantee":
        """Promise the same to some rows (k,), and say nothing of what bounds the whole."""
        bound = None if self.bound is None else lambda: np.full(len(rows), np.nan)
        covers = None if self.covers is None else self.covers[rows]
        return Guarantee(self.label, bound, covers=covers)

    def labels(self, row_of: Indices) -> NDArray[np.object_]:
        """Return each agent's label (N,), for agents in these rows."""
        own = np.full(len(row_of), self.label, dtype=object)
        if self.covers is not None:
            own[~self.covers[row_of]] = "none"
        return own

    def summary(self, cohort: Cohort) -> str:
        """Sum the labels up: one where all agents agree, else how many of them it covers."""
        agents, counts = cohort.population, cohort.counts
        voids = self.covers is not None and self.label != "none"
        covered = int(counts[self.covers].sum()) if voids else agents
        if covered == agents:
            return self.label
        return f"{self.label} for {covered} of {agents}" if covered else "none"


def unpromised(cohorts: Sequence[Cohort], why: str) -> tuple[Guarantee, ...]:
    """Return what cohorts are promised where a theorem's conditions fail for all: nothing."""
    return tuple(Guarantee(note=f"{cohort.name}: {why}") for cohort in cohorts)
