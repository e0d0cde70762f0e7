r"""What agents would have lost with an alternative: models, policies and fixed actions.

A model predicts s(y); it would have an agent play the best response of the agent's loss to that
prediction, in every round. For row k and model m the comparison adds the loss of those actions, so
that

    regret to model m   =   mean loss of the agent  -  mean loss of following m,

per round of the agent's stay. It is negative where following the forecast was better.

For the mean over a cohort's agents it keeps the difference to each model and policy over time, in
at most ``BATCHES`` batches of equally many rounds, from which intervals are computed
(``market.regret.inference``). Each agent's best fixed action is known at the end alone: for it, a
sample of rows keeps the loss of every action in every batch. What is added up over agents is added
exactly (``market.numerics.exact_sum``), so that agents may be shared out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.numerics import exact_sum
from regretless.market.records import Decision

BATCHES = 256  # at most; at least half as many once there have been so many rounds
SAMPLE = 1024  # losses of actions per batch


@dataclass(frozen=True, eq=False)
class Series:
    """Differences over time, in batches of ``length`` rounds from the first round of the game."""

    length: int
    sums: Array  # (B, J), loss with the alternative minus loss as played, over rounds and agents
    there: Array  # and over how many of these

    def at(self, length: int, batches: int = 0) -> "Series":
        """Return it in batches of more rounds, its own by a power of 2; at least so many."""
        own, sums, there = self.length, self.sums, self.there
        while own < length:
            own, sums, there = 2 * own, _paired(sums), _paired(there)
        later = np.zeros((max(batches - len(sums), 0), sums.shape[1]))
        return Series(own, np.concatenate([sums, later]), np.concatenate([there, later]))

    def chosen(self, alternatives: Indices) -> "Series":
        """Return some alternatives; for -1 what was played, which makes no difference."""
        sums = np.where(alternatives < 0, 0.0, self.sums[:, alternatives])
        return Series(self.length, sums, self.there[:, alternatives])

    def means(self) -> Array:
        """Return a series per alternative (B, J) with the mean of its difference.

        Batches with fewer agents weigh less: of sum / there a batch has its influence as its value.
        """
        rounds = np.maximum(self.there.sum(0), 1)
        mean = self.sums.sum(0) / rounds
        return np.asarray(mean + (self.sums - mean * self.there) * (len(self.sums) / rounds))


def _paired(table: Array) -> Array:
    """Add up every two batches, so that half as many are left."""
    even = np.concatenate([table, np.zeros_like(table[: len(table) % 2])])
    return np.asarray(even[0::2] + even[1::2])


def _halved(tables: dict[str, Array]) -> dict[str, Array]:
    """Add up every two batches, and leave room for as many new ones."""
    pairs = {name: _paired(table) for name, table in tables.items()}
    return {name: np.concatenate([own, np.zeros_like(own)]) for name, own in pairs.items()}


class NotCompared(Checkpointable):
    """Agents whom nobody compares with anything."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ()
    names: tuple[str, ...] = ()

    def add(self, number: int, decision: Decision, losses: Array, suggested: Indices) -> None:
        """Add a round, counted from 0: what rows did, losses (K, A), and actions (C,) or (C, K)."""

    def mean_loss(self, rounds: int | Indices) -> Array:
        """Loss per round of following each model (K, M); ``rounds`` of all or of each row."""
        return np.zeros((1, 0))

    def series(self) -> Series | None:
        """Return the differences to models, policies and the best fixed actions over time."""
        return None

    def part_state(self, rows: Indices) -> dict[str, Any]:
        """Return the state of a part, of so many rows of the whole."""
        return {}

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        """Take over the ``part_state`` of parts which together are all agents."""


NOT_COMPARED = NotCompared()


class ModelComparison(NotCompared):
    """Sums of what K rows would have lost by following each of M models and C policies.

    ``counts`` (K,) agents stand behind the rows, ``sizes`` are C and A, ``suggest`` returns what
    the models suggest in the open round, (K, M), and ``sample`` (S,) are the rows that keep the
    losses of all actions, by default as many as there is room for.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("sums", "_kept", "_length")

    def __init__(
        self,
        names: tuple[str, ...],
        counts: Array,
        *,
        sizes: tuple[int, int],
        suggest: Callable[[], Indices],
        sample: Indices | None = None,
    ) -> None:
        policies, actions = self.sizes = sizes
        self.names, self.suggest, self._counts = names, suggest, counts
        self.sums = np.zeros((len(counts), len(names)))  # over the rounds in which a row was there
        many = max(1, min(len(counts), SAMPLE // actions))
        evenly = np.unique(np.linspace(0, len(counts) - 1, many).astype(np.intp))
        self._sample = evenly if sample is None else sample
        self._length = 1  # rounds of a batch
        self._kept = {  # by batch: differences, agents over its rounds, and of the sample
            "gaps": np.zeros((BATCHES, 2, len(names) + policies)),
            "there": np.zeros(BATCHES),
            # the losses of all actions, the own loss, and rounds
            "sampled": np.zeros((BATCHES, len(self._sample), actions + 2)),
        }

    def add(self, number: int, decision: Decision, losses: Array, suggested: Indices) -> None:
        rows, counts, models = np.arange(len(losses))[:, None], self._counts, len(self.names)
        there, present = losses[rows, self.suggest()], decision.present
        if decision.choices is None:
            own = (decision.probabilities * losses).sum(1)
        else:
            own = losses[rows[:, 0], np.maximum(decision.choices, 0)]
            own = np.where(decision.choices < 0, 0.0, own)
        if present is not None:
            there, counts = there * present[:, None], counts * present
        self.sums += there

        while number // self._length >= BATCHES:
            self._kept, self._length = _halved(self._kept), 2 * self._length
        place = number // self._length
        gaps, batch = self._kept["gaps"][place], self._kept["sampled"][place]
        self._kept["there"][place] += counts.sum()
        if there.size:
            there -= own[:, None]  # in place: another table takes longer than the rest
            gaps[:, :models] += exact_sum.total(there, counts)
        if len(suggested):
            gaps[:, models:] += exact_sum.total(losses[rows, suggested.T] - own[:, None], counts)
        sample = self._sample
        here = np.ones(len(sample)) if present is None else present[sample].astype(np.float64)
        batch[:, :-2] += losses[sample] * here[:, None]
        batch[:, -2] += own[sample]
        batch[:, -1] += here

    def part(self, rows: Indices, counts: Array, suggest: Callable[[], Indices]) -> Self:
        """Return one that has seen no round, for some of the rows and so many agents of each."""
        mine = np.isin(rows, self._sample) & (counts > 0)
        return type(self)(
            self.names, counts, sizes=self.sizes, suggest=suggest, sample=np.flatnonzero(mine)
        )

    def part_state(self, rows: Indices) -> dict[str, Any]:
        return self.state() | {"sample": rows[self._sample], "rows": rows}

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        length = max(int(part["length"]) for part in parts)
        own = self.state() | {"length": length}
        for part in parts:
            tables, step = part["kept"], int(part["length"])
            while step < length:  # of agents who left early
                tables, step = _halved(tables), 2 * step
            for name in ("gaps", "there"):
                own["kept"][name] = own["kept"][name] + tables[name]
            places = np.searchsorted(self._sample, part["sample"])
            own["kept"]["sampled"][:, places] = tables["sampled"]
            own["sums"][part["rows"]] = part["sums"]
        self.restore(own)

    def mean_loss(self, rounds: int | Indices) -> Array:
        count = np.broadcast_to(np.maximum(rounds, 1), len(self.sums))
        return np.asarray(self.sums / count[:, None])

    def series(self) -> Series | None:
        known = np.flatnonzero(self._kept["there"])
        if not len(known):
            return None
        last = int(known[-1]) + 1
        gaps, agents, sampled = (self._kept[name][:last] for name in ("gaps", "there", "sampled"))
        losses = sampled[..., :-2]
        best = losses.sum(0).argmin(1)
        taken = np.take_along_axis(losses, best[None, :, None], axis=2)[..., 0] - sampled[..., -2]
        weights = self._counts[self._sample]
        weights = weights * (self._counts.sum() / weights.sum())
        sums = np.column_stack([gaps.sum(1), taken @ weights])
        there = np.repeat(agents[:, None], sums.shape[1], axis=1)
        there[:, -1] = sampled[..., -1] @ weights
        return Series(self._length, sums, there)
