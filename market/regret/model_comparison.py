r"""What agents would have lost by following a model, and what they regret of not having done so.

A model predicts s(y); it would have an agent play the best response of the agent's loss to that
prediction, in every round. For row k and model m the ledger adds the loss of those actions, so that

    regret to model m   =   mean loss of the agent  -  mean loss of following m,

per round of the agent's stay. It is negative where listening to the forecast was better.

For the mean over a cohort's agents, in the units of their utilities, it keeps the difference in
batches of rounds, too. Means of long batches are nearly independent whatever the rounds'
correlation, so that a t interval over them (**batch means**) holds for a stationary difference. The
batches double when there are too many. What is added up over agents is added exactly
(``market.numerics.exact_sum``), in units of the greatest ``scale``, so that agents may be shared
out.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import stdtr, stdtrit  # scipy.stats would take as long to import as the rest

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.numerics import exact_sum
from regretless.market.records import Decision

BATCHES = 64  # at most; at least half as many once there have been so many rounds
FEWEST = 8  # batches, for an interval
LEVEL = 0.95


class NotCompared(Remembering):
    """Agents whom nobody compares with models."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ()
    names: tuple[str, ...] = ()

    def add(self, decision: Decision, losses: Array) -> None:
        """Add a round: what the rows did, and the losses (K, A) of all actions."""

    def mean_loss(self, rounds: int | Indices) -> Array:
        """Loss per round of following each model (K, M); ``rounds`` of all or of each row."""
        return np.zeros((1, 0))

    def gaps(self) -> tuple[Array, Array]:
        """Return by how much the cohort lost more per round than by each model (M,), and +-."""
        return np.zeros(0), np.zeros(0)

    def p_values(self) -> Array:
        """Return the two-sided p-values (M,) of no difference to each model."""
        return np.zeros(0)


NOT_COMPARED = NotCompared()


class Followed(NotCompared):
    """Sums of what K rows would have lost by following each of M models.

    Parameters
    ----------
    names : sequence of str
        Of the models.
    counts : array (K,)
        How many agents each row stands for.
    scale : array (K,)
        What a loss of 1 is in each row's own units.
    suggest : callable
        Returns what the models suggest in the open round, actions (K, M).
    unit : float, optional
        In which the scale is taken when it is added up; by default the greatest.

    Attributes
    ----------
    sums : array (K, M)
        Loss of following each model, over the rounds in which the row was there.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("sums", "_batches", "_length", "_rounds")

    def __init__(
        self,
        names: tuple[str, ...],
        counts: Array,
        *,
        scale: Array,
        suggest: Callable[[], Indices],
        unit: float | None = None,
    ) -> None:
        self.names, self.suggest, self._counts = names, suggest, counts
        self._unit = float(scale.max()) if unit is None else unit
        self._scale = scale / self._unit
        self.sums = np.zeros((len(self._counts), len(names)))
        self._batches = np.zeros((BATCHES, 2, len(names)))
        self._length, self._rounds = 1, 0

    def add(self, decision: Decision, losses: Array) -> None:
        """Add a round: what the rows did, and the losses (K, A) of all actions."""
        there = losses[np.arange(len(losses))[:, None], self.suggest()]
        own, counts = _suffered(decision, losses), self._counts
        if decision.present is not None:
            there = there * decision.present[:, None]
            counts = counts * decision.present
        self.sums += there
        if counts.sum():
            gaps = own[:, None] - there
            gaps *= self._scale[:, None]  # in place: a second table takes longer than the rest
            self._collect(exact_sum.total(gaps, counts) * (self._counts.sum() / counts.sum()))

    def _collect(self, gap: Array) -> None:
        """Add the sum of the differences of all agents in a round, (2, M), to its batch."""
        place = self._rounds // self._length
        if place == BATCHES:
            pairs = self._batches[0::2] + self._batches[1::2]
            self._batches = np.concatenate([pairs, np.zeros_like(pairs)])
            self._length, place = 2 * self._length, BATCHES // 2
        self._batches[place] += gap
        self._rounds += 1

    def part(self, rows: Indices, counts: Array, suggest: Callable[[], Indices]) -> Self:
        """Return one that has seen no round, for some of the rows and so many agents of each."""
        scale = self._scale[rows]
        return type(self)(self.names, counts, scale=scale, suggest=suggest, unit=1.0)

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        """Take over the batches of parts which together are all agents, from their states."""
        batches = np.sum([part["batches"] for part in parts], axis=0)
        self.restore(parts[0] | {"sums": self.sums, "batches": batches})

    def mean_loss(self, rounds: int | Indices) -> Array:
        """Loss per round of following each model (K, M); ``rounds`` of all or of each row."""
        count = np.broadcast_to(np.maximum(rounds, 1), len(self.sums))
        return np.asarray(self.sums / count[:, None])

    def gaps(self) -> tuple[Array, Array]:
        """Return by how much the cohort lost more per round than by each model, in its own units.

        Returns
        -------
        means, halves : array (M,)
            The mean over agents, and half the length of its interval at 95 %: NaN with fewer than
            8 whole batches.
        """
        batches = self._batches.sum(1) * (self._unit / self._counts.sum())
        total = batches.sum(0) / max(self._rounds, 1)
        whole = self._rounds // self._length
        if whole < FEWEST:
            return total, np.full_like(total, np.nan)
        spread = (batches[:whole] / self._length).std(0, ddof=1) / np.sqrt(whole)
        return total, np.asarray(spread * stdtrit(whole - 1, (1 + LEVEL) / 2))

    def p_values(self) -> Array:
        """Return the two-sided p-values (M,) of no difference: of the t test of the interval.

        NaN where there is no interval.
        """
        means, halves = self.gaps()
        freedom = max(self._rounds // self._length - 1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.abs(means) / (halves / stdtrit(freedom, (1 + LEVEL) / 2))
        return np.asarray(2 * stdtr(freedom, -statistic))


def _suffered(decision: Decision, losses: Array) -> Array:
    """Return what each row expects to lose by what it did (K,); 0 where it was absent."""
    if decision.choices is None:
        return np.asarray((decision.probabilities * losses).sum(1))
    own = losses[np.arange(len(losses)), np.maximum(decision.choices, 0)]
    return np.where(decision.choices < 0, 0.0, own)
