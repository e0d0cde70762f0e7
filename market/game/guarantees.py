"""What a cohort is promised: the theorem that covers it, its bound, and for which rows it holds.

A bound is stated where its theorem applies and nowhere else (``forecaster.events.bounds`` computes
it).
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

    Parameters
    ----------
    label : str
        The theorem that applies, or ``none``.
    bound : callable or None
        Returns the theorem's bound on each row's decision swap regret so far (K,), for realised
        draws with probability 0.99 in all rounds at once; None without a theorem.
    note : str
        How the cohort is served, where that is worth saying.
    covers : bool array (K,) or None
        The rows to which label and bound apply; None for all of them.
    to_models : callable or None
        Returns the theorem's bound on each row's regret to every model so far (K,), likewise.
    from_variation : callable or None
        Returns what ``bound`` is at the variations of the biases so far (K,), never more.
    contextual : callable or None
        Returns the theorem's bound on each row's contextual swap regret so far (K,), likewise.
    beforehand : callable or None
        Returns what ``bound`` is at most after a number of rounds, whatever happens in them (K,).
    window : callable or None
        Returns the theorem's bound on each row's decision swap regret per round from a first to a
        last round (K,), for realised draws with probability 0.99 in all windows at once.
    unbounded : tuple of str
        Which of its regrets have no bound although the theorem covers it, and why.
    """

    label: str = "none"
    bound: Callable[[], Array] | None = None
    note: str = ""
    covers: Mask | None = None
    to_models: Callable[[], Array] | None = None
    from_variation: Callable[[], Array] | None = None
    contextual: Callable[[], Array] | None = None
    beforehand: Callable[[int], Array] | None = None
    window: Callable[[int, int], Array] | None = None
    unbounded: tuple[str, ...] = ()

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
