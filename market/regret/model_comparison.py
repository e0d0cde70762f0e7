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

MAX_BATCHES = 256  # at most; at least half as many once there have been so many rounds
SAMPLED_LOSSES_PER_BATCH = 1024  # losses of actions per batch


@dataclass(frozen=True, eq=False)
class Series:
    """Differences over time, in batches of ``length`` rounds from the first round of the game."""

    length: int
    sums: Array  # (B, J), loss with the alternative minus loss as played, over rounds and agents
    agent_rounds: Array  # and over how many of these

    def in_batches_of(self, length: int, min_batches: int = 0) -> "Series":
        """Return it in batches of more rounds, its own by a power of 2; at least so many."""
        batch_length, sums, agent_rounds = self.length, self.sums, self.agent_rounds
        while batch_length < length:
            batch_length, sums, agent_rounds = (
                2 * batch_length,
                _add_pairs(sums),
                _add_pairs(agent_rounds),
            )
        later_batches = np.zeros((max(min_batches - len(sums), 0), sums.shape[1]))
        return Series(
            batch_length,
            np.concatenate([sums, later_batches]),
            np.concatenate([agent_rounds, later_batches]),
        )

    def select(self, alternatives: Indices) -> "Series":
        """Return some alternatives; for -1 what was played, which makes no difference."""
        sums = np.where(alternatives < 0, 0.0, self.sums[:, alternatives])
        return Series(self.length, sums, self.agent_rounds[:, alternatives])

    def means(self) -> Array:
        """Return a series per alternative (B, J) with the mean of its difference.

        Batches with fewer agents weigh less: of sum / there a batch has its influence as its value.
        """
        rounds = np.maximum(self.agent_rounds.sum(0), 1)
        mean = self.sums.sum(0) / rounds
        return np.asarray(mean + (self.sums - mean * self.agent_rounds) * (len(self.sums) / rounds))


def _add_pairs(table: Array) -> Array:
    """Add up every two batches, so that half as many are left."""
    padded = np.concatenate([table, np.zeros_like(table[: len(table) % 2])])
    return np.asarray(padded[0::2] + padded[1::2])


def _halve_batches(tables: dict[str, Array]) -> dict[str, Array]:
    """Add up every two batches, and leave room for as many new ones."""
    paired = {name: _add_pairs(table) for name, table in tables.items()}
    return {
        name: np.concatenate([pair_sums, np.zeros_like(pair_sums)])
        for name, pair_sums in paired.items()
    }


class Comparison(Checkpointable):
    """Agents whom nobody compares with anything."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ()
    names: tuple[str, ...] = ()

    def add(self, round_index: int, decision: Decision, losses: Array, suggested: Indices) -> None:
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


NOT_COMPARED = Comparison()


class ModelComparison(Comparison):
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
        n_policies, n_actions = self.sizes = sizes
        self.names, self.suggest, self._counts = names, suggest, counts
        self.sums = np.zeros((len(counts), len(names)))  # over the rounds in which a row was there
        sample_size = max(1, min(len(counts), SAMPLED_LOSSES_PER_BATCH // n_actions))
        evenly_spaced = np.unique(np.linspace(0, len(counts) - 1, sample_size).astype(np.intp))
        self._sample = evenly_spaced if sample is None else sample
        self._length = 1  # rounds of a batch
        self._kept = {  # by batch: differences, agents over its rounds, and of the sample
            "gaps": np.zeros((MAX_BATCHES, 2, len(names) + n_policies)),
            "there": np.zeros(MAX_BATCHES),
            # the losses of all actions, the own loss, and rounds
            "sampled": np.zeros((MAX_BATCHES, len(self._sample), n_actions + 2)),
        }

    def add(self, round_index: int, decision: Decision, losses: Array, suggested: Indices) -> None:
        rows, counts, n_models = np.arange(len(losses))[:, None], self._counts, len(self.names)
        model_losses, present = losses[rows, self.suggest()], decision.present
        if decision.choices is None:
            played_losses = (decision.probabilities * losses).sum(1)
        else:
            played_losses = losses[rows[:, 0], np.maximum(decision.choices, 0)]
            played_losses = np.where(decision.choices < 0, 0.0, played_losses)
        if present is not None:
            model_losses, counts = model_losses * present[:, None], counts * present
        self.sums += model_losses

        while round_index // self._length >= MAX_BATCHES:
            self._kept, self._length = _halve_batches(self._kept), 2 * self._length
        batch_index = round_index // self._length
        batch_differences, sampled_batch = (
            self._kept["gaps"][batch_index],
            self._kept["sampled"][batch_index],
        )
        self._kept["there"][batch_index] += counts.sum()
        if model_losses.size:
            model_losses -= played_losses[
                :, None
            ]  # in place: another table takes longer than the rest
            batch_differences[:, :n_models] += exact_sum.total(model_losses, counts)
        if len(suggested):
            batch_differences[:, n_models:] += exact_sum.total(
                losses[rows, suggested.T] - played_losses[:, None], counts
            )
        sample = self._sample
        sample_present = (
            np.ones(len(sample)) if present is None else present[sample].astype(np.float64)
        )
        sampled_batch[:, :-2] += losses[sample] * sample_present[:, None]
        sampled_batch[:, -2] += played_losses[sample]
        sampled_batch[:, -1] += sample_present

    def part(self, rows: Indices, counts: Array, suggest: Callable[[], Indices]) -> Self:
        """Return one that has seen no round, for some of the rows and so many agents of each."""
        is_sampled = np.isin(rows, self._sample) & (counts > 0)
        return type(self)(
            self.names, counts, sizes=self.sizes, suggest=suggest, sample=np.flatnonzero(is_sampled)
        )

    def part_state(self, rows: Indices) -> dict[str, Any]:
        return self.state() | {"sample": rows[self._sample], "rows": rows}

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        length = max(int(part["length"]) for part in parts)
        joined = self.state() | {"length": length}
        for part in parts:
            tables, part_length = part["kept"], int(part["length"])
            while part_length < length:  # of agents who left early
                tables, part_length = _halve_batches(tables), 2 * part_length
            for name in ("gaps", "there"):
                joined["kept"][name] = joined["kept"][name] + tables[name]
            sample_indices = np.searchsorted(self._sample, part["sample"])
            joined["kept"]["sampled"][:, sample_indices] = tables["sampled"]
            joined["sums"][part["rows"]] = part["sums"]
        self.restore(joined)

    def mean_loss(self, rounds: int | Indices) -> Array:
        count = np.broadcast_to(np.maximum(rounds, 1), len(self.sums))
        return np.asarray(self.sums / count[:, None])

    def series(self) -> Series | None:
        batches_with_agents = np.flatnonzero(self._kept["there"])
        if not len(batches_with_agents):
            return None
        n_batches = int(batches_with_agents[-1]) + 1
        differences, batch_agent_rounds, sampled = (
            self._kept[name][:n_batches] for name in ("gaps", "there", "sampled")
        )
        losses = sampled[..., :-2]
        best_action = losses.sum(0).argmin(1)
        best_action_differences = (
            np.take_along_axis(losses, best_action[None, :, None], axis=2)[..., 0]
            - sampled[..., -2]
        )
        weights = self._counts[self._sample]
        weights = weights * (self._counts.sum() / weights.sum())
        sums = np.column_stack([differences.sum(1), best_action_differences @ weights])
        agent_rounds = np.repeat(batch_agent_rounds[:, None], sums.shape[1], axis=1)
        agent_rounds[:, -1] = sampled[..., -1] @ weights
        return Series(self._length, sums, agent_rounds)
