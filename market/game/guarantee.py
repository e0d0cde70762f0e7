"""What a cohort is promised: the theorem that covers it, its bound, and for which rows it holds.

Bounds are stated where their theorems apply and nowhere else (``forecaster.guarantees``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.protocols import Cohort


class BoundsSoFar(NamedTuple):
    """What a cohort's rows regret at most, by what is known now."""

    bound: Array  # (K,)
    from_variation: Array  # the same at the variations of the biases (K,)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """What a cohort is promised.

    Bounds are per round and row (K,), for realised draws, each with probability 0.99 in all rounds
    (of ``window``, in all windows) at once. None without a theorem. While a reference is trusted,
    ``from_variation`` may be the regret that was measured, beside errors of basis and response:
    ``trusted`` says of which rows.
    """

    label: str = "none"  # the theorem that applies
    bound: Callable[[], Array] | None = None  # on decision swap regret so far
    note: str = ""  # how the cohort is served, where that is worth saying
    covers: Mask | None = None  # the rows (K,) to which label and bounds apply; None for all
    to_models: Callable[[], Array] | None = None  # on the regret to every model so far
    from_variation: Callable[[], Array] | None = None  # ``bound`` at the variations of the biases
    # Takes note of what both depend on after a round, and returns who works them out then or later.
    take_note: Callable[[], Callable[[], BoundsSoFar]] | None = None
    trusted: Callable[[], Mask] | None = None  # the rows (K,) of which that is the regret itself
    contextual: Callable[[], Array] | None = None  # on contextual swap regret so far
    beforehand: Callable[[int], Array] | None = None  # ``bound`` after so many rounds, at most
    window: Callable[[int, int], Array] | None = None  # ``bound`` from a first to a last round
    unbounded: tuple[str, ...] = ()  # which regrets have no bound despite the theorem, and why

    def part(self, rows: Indices) -> "Guarantee":
        """Return the promise to some rows (k,): the same label, with NaN in place of the bound."""
        bound = None
        if self.bound is not None:
            bound = partial(np.full, len(rows), np.nan)
        covers = self.covers
        if covers is not None:
            covers = covers[rows]
        return Guarantee(self.label, bound, covers=covers)

    def labels(self, row_of: Indices) -> NDArray[np.object_]:
        """Return each agent's label (N,), for agents in these rows."""
        labels = np.full(len(row_of), self.label, dtype=object)
        if self.covers is not None:
            labels[~self.covers[row_of]] = "none"
        return labels

    def summary(self, cohort: Cohort) -> str:
        """Return the label, with the number of agents it covers where these are not all."""
        agents = cohort.population
        counts = cohort.counts
        is_partial = self.covers is not None and self.label != "none"
        if not is_partial:
            return self.label
        covered_agents = int(counts[self.covers].sum())
        if covered_agents == agents:
            return self.label
        if covered_agents == 0:
            return "none"
        return f"{self.label} for {covered_agents} of {agents}"


def unpromised(cohorts: Sequence[Cohort], reason: str) -> tuple[Guarantee, ...]:
    """Return what cohorts are promised where a theorem's conditions fail for all: nothing."""
    return tuple(Guarantee(note=f"{cohort.name}: {reason}") for cohort in cohorts)
