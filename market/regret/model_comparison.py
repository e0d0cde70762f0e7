r"""What agents would have lost with an alternative: models, policies and fixed actions.

A seat of the game holds one ``ModelComparison`` of its cohort, which reads every round that is kept
for the cohort's ledger (``pending_rounds``); tables and the verdict read ``mean_loss`` and
``series`` from it. Where a cohort is shared out among workers each has a ``part``, whose states
``join`` puts together again: the figures are the same to the last bit however the agents were
shared out, because what is added up over agents is added exactly (``market.numerics.exact_sum``).

Mathematics
-----------
A model predicts s(y); it would have an agent play the best response of the agent's loss to that
prediction, in every round. For row k and model m the comparison adds the loss of those actions, so
that

    regret to model m   =   mean loss of the agent  -  mean loss of following m,

per round of the agent's stay. It is negative where following the forecast was better.

For the mean over a cohort's agents it keeps the difference to each model and policy over time, in
at most ``MAX_BATCHES`` batches of equally many rounds, from which intervals are computed
(``market.regret.inference``). Each agent's best fixed action is known at the end alone: for it, a
sample of rows keeps the loss of every action in every batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.numerics import exact_sum
from regretless.market.regret.pending_rounds import PlayedRounds, RoundReader, SumOfRounds
from regretless.market.regret.played_losses import fill_played_losses

NO_MODELS: Indices = np.empty((0, 0), dtype=np.intp)  # are compared with
MAX_BATCHES = 256  # at least half as many are in use once there have been so many rounds
SAMPLED_LOSSES_PER_BATCH = 1024  # rows of the sample times their actions


@dataclass(frozen=True, eq=False)
class Series:
    """Differences over time, in B batches of equally many rounds from the first of the game.

    Attributes
    ----------
    length : int
        Rounds of a batch.
    sums : ndarray
        Loss with each alternative minus loss as played, summed over rounds and agents (B, J).
    agent_rounds : ndarray
        Over how many rounds of agents each sum is (B, J).
    """

    length: int
    sums: Array
    agent_rounds: Array

    def in_batches_of(self, length: int, min_batches: int = 0) -> "Series":
        """Return the series in batches of ``length`` rounds, its own by a power of 2.

        Where it has fewer than ``min_batches`` batches, empty ones follow.
        """
        batch_length = self.length
        sums = self.sums
        agent_rounds = self.agent_rounds
        while batch_length < length:
            batch_length = 2 * batch_length
            sums = _add_pairs(sums)
            agent_rounds = _add_pairs(agent_rounds)
        later_batches = np.zeros((max(min_batches - len(sums), 0), sums.shape[1]))
        return Series(
            length=batch_length,
            sums=np.concatenate([sums, later_batches]),
            agent_rounds=np.concatenate([agent_rounds, later_batches]),
        )

    def select(self, alternatives: Indices) -> "Series":
        """Return some alternatives; for -1 what was played, which makes no difference."""
        sums = np.where(alternatives < 0, 0.0, self.sums[:, alternatives])
        return Series(self.length, sums, self.agent_rounds[:, alternatives])

    def means(self) -> Array:
        """Return a series per alternative (B, J) whose mean is that of its differences.

        Batches with fewer agents weigh less: the value of a batch is the influence that it has on
        the ratio of the sums to the rounds of agents.
        """
        rounds = np.maximum(self.agent_rounds.sum(0), 1)
        mean = self.sums.sum(0) / rounds
        deviations = self.sums - mean * self.agent_rounds
        return np.asarray(mean + deviations * (len(self.sums) / rounds))


def _add_pairs(table: Array) -> Array:
    """Add up every two batches (B, ...), so that half as many are left; the last may be alone."""
    padded = np.concatenate([table, np.zeros_like(table[: len(table) % 2])])
    return np.asarray(padded[0::2] + padded[1::2])


def _merge_batches(table: Array) -> Array:
    """Return batches (B, ...) of twice the rounds, followed by room for as many new ones."""
    pair_sums = _add_pairs(table)
    return np.concatenate([pair_sums, np.zeros_like(pair_sums)])


def _merge_full_batches(table: Array) -> None:
    """Do as ``_merge_batches`` does in an array of ``MAX_BATCHES`` batches, in place.

    Those of a sample fill megabytes: to get as much memory anew takes longer than the sums.
    """
    n_pairs = MAX_BATCHES // 2
    table[:n_pairs] = table[0::2] + table[1::2]
    table[n_pairs:] = 0.0


@compiled()
def _add_rounds(
    strategies: Array,
    choices: Indices,
    losses: Array,
    present: Mask,
    counts: Array,
    model_actions: Indices,
    suggested: Indices,
    batches: Indices,
    sample: Indices,
    sums: Array,
    differences: Array,
    agent_rounds: Array,
    sampled: Array,
) -> None:
    """Add rounds to a comparison of K rows with M models and C policies (compiled).

    Of row k, whose n_k agents lose l_k(a) with action a and l_k as they played in a round of batch
    i,

        sums[k, m] += l_k(model m),    differences[i, :, j] += sum_k n_k (l_k(alternative j) - l_k),

    where row k is present, the last sum as two numbers (``exact_sum``).

    Parameters
    ----------
    strategies, choices : arrays (T, K, A) and (T, K), one of them empty
        What each row played, mixed or pure (``fill_played_losses``).
    losses : array (T, K, A)
        Losses of all actions at the outcome.
    present : bool array (T, K), or empty
        Which rows took part; empty where all did.
    counts : array (K,)
        How many agents each row stands for.
    model_actions : int array (T, K, M)
        What each model suggests to each row.
    suggested : int array (T, C, 1) or (T, C, K)
        What each policy suggests to all rows, or to each.
    batches : int array (T,)
        The batch of each round, one of B.
    sample : int array (S,)
        Rows that keep the losses of all actions.
    sums : array (K, M)
        Losses with each model; added to in place.
    differences : array (B, 2, M + C)
        Loss with each model and policy less loss as played, over all agents; added to in place.
    agent_rounds : array (B,)
        Over how many rounds of agents that is; added to in place.
    sampled : array (B, S, A + 2)
        Losses of all actions, loss as played and rounds of the sampled rows; added to in place.
    """
    n_rows = losses.shape[1]
    n_actions = losses.shape[2]
    n_models = model_actions.shape[2]
    n_policies = suggested.shape[1]
    same_for_all = suggested.shape[2] == 1
    are_pure = len(choices) > 0
    all_rows = np.arange(n_rows)
    no_strategies = np.empty((0, 0))
    no_choices = np.empty(0, dtype=np.intp)
    is_present = np.ones(n_rows, dtype=np.bool_)
    played_losses = np.empty(n_rows)
    for t in range(len(losses)):
        if are_pure:
            fill_played_losses(no_strategies, choices[t], losses[t], all_rows, played_losses)
        else:
            fill_played_losses(strategies[t], no_choices, losses[t], all_rows, played_losses)
        if len(present):
            is_present[:] = present[t]
        batch = batches[t]
        for k in range(n_rows):
            if is_present[k]:
                agent_rounds[batch] += counts[k]
        for m in range(n_models):
            coarse_total = 0.0
            fine_total = 0.0
            for k in range(n_rows):
                if is_present[k]:
                    model_loss = losses[t, k, model_actions[t, k, m]]
                    sums[k, m] += model_loss
                    coarse, fine = exact_sum.split(model_loss - played_losses[k])
                    coarse_total += counts[k] * coarse
                    fine_total += counts[k] * fine
            differences[batch, 0, m] += coarse_total
            differences[batch, 1, m] += fine_total
        for c in range(n_policies):
            coarse_total = 0.0
            fine_total = 0.0
            for k in range(n_rows):
                if is_present[k]:
                    policy_loss = losses[t, k, suggested[t, c, 0 if same_for_all else k]]
                    coarse, fine = exact_sum.split(policy_loss - played_losses[k])
                    coarse_total += counts[k] * coarse
                    fine_total += counts[k] * fine
            differences[batch, 0, n_models + c] += coarse_total
            differences[batch, 1, n_models + c] += fine_total
        for s in range(len(sample)):
            k = sample[s]
            if is_present[k]:
                for a in range(n_actions):
                    sampled[batch, s, a] += losses[t, k, a]
                sampled[batch, s, n_actions + 1] += 1.0
            sampled[batch, s, n_actions] += played_losses[k]


class Comparison(RoundReader, Checkpointable):
    """Agents whom nobody compares with anything; ``ModelComparison`` overrides every method."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ()
    names: tuple[str, ...] = ()

    def model_actions(self) -> Indices:
        """Return the action that each model suggests to each row in the open round (K, M)."""
        return NO_MODELS

    def add_played(self, rounds: PlayedRounds) -> None:
        """Add rounds that follow those before."""

    def mean_loss(self, rounds: int | Indices) -> Array:
        """Return the loss per round of following each model (K, M).

        ``rounds`` is how many rounds all rows, or each row (K,), have played.
        """
        return np.zeros((1, 0))

    def series(self) -> Series | None:
        """Return the differences over time to models, policies and the best fixed actions.

        In this order, J = M + C + 1 of them; None before the first round in which somebody came.
        """
        return None

    def part_state(self, rows: Indices) -> dict[str, Any]:
        """Return the state of a part whose rows are these ``rows`` (k,) of the whole."""
        return {}

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        """Take over the ``part_state`` of parts which together are all agents."""


NOT_COMPARED = Comparison()


class ModelComparison(Comparison):
    """Sums of what K rows would have lost by following each of M models and C policies.

    Parameters
    ----------
    names : tuple of str
        Of the M models.
    counts : array (K,)
        How many agents stand behind each row.
    sizes : tuple of int
        C and A.
    suggest : callable
        Returns the action that each model suggests to each row in the open round (K, M).
    sample : int array (S,), optional
        Rows that keep the losses of all actions; by default as many as there is room for, spread
        evenly over all.

    Attributes
    ----------
    sums : array (K, M)
        Losses with each model, summed over the rounds in which a row was present.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "sums",
        "_batch_length",
        "_differences",
        "_agent_rounds",
        "_sampled",
    )

    sums = SumOfRounds()
    _differences = SumOfRounds()
    _agent_rounds = SumOfRounds()
    _sampled = SumOfRounds()

    def __init__(
        self,
        names: tuple[str, ...],
        counts: Array,
        *,
        sizes: tuple[int, int],
        suggest: Callable[[], Indices],
        sample: Indices | None = None,
    ) -> None:
        n_policies, n_actions = sizes
        self.sizes = sizes
        self.names = names
        self.suggest = suggest
        self._counts = counts
        self.sums = np.zeros((len(counts), len(names)))
        if sample is None:
            sample_size = max(1, min(len(counts), SAMPLED_LOSSES_PER_BATCH // n_actions))
            evenly_spaced = np.linspace(0, len(counts) - 1, sample_size)
            sample = np.unique(evenly_spaced.astype(np.intp))
        self._sample = sample
        self._no_models = np.empty((len(counts), 0), dtype=np.intp)
        self._batch_length = 1  # rounds
        # By batch: loss with each model and policy minus loss as played, summed over agents, as two
        # numbers that add up to it; over how many rounds of agents; of the sampled rows the losses
        # of all actions, the loss as played and the rounds in which they were present, summed.
        self._differences = np.zeros((MAX_BATCHES, 2, len(names) + n_policies))
        self._agent_rounds = np.zeros(MAX_BATCHES)
        self._sampled = np.zeros((MAX_BATCHES, len(sample), n_actions + 2))

    def model_actions(self) -> Indices:
        if not self.names:
            return self._no_models
        return self.suggest()

    def add_played(self, rounds: PlayedRounds) -> None:
        first = 0
        while first < len(rounds.losses):
            self._make_batch_for(int(rounds.round_indices[first]))
            batches = rounds.round_indices[first:] // self._batch_length
            # Later rounds wait until batches are longer.
            n_rounds = int(np.searchsorted(batches, MAX_BATCHES))
            last = first + n_rounds
            _add_rounds(
                rounds.strategies[first:last],
                rounds.choices[first:last],
                rounds.losses[first:last],
                rounds.present[first:last],
                self._counts,
                rounds.model_actions[first:last],
                rounds.suggested[first:last],
                batches[:n_rounds],
                self._sample,
                self.sums,
                self._differences,
                self._agent_rounds,
                self._sampled,
            )
            first = last

    def part(self, rows: Indices, counts: Array, suggest: Callable[[], Indices]) -> Self:
        """Return a comparison of some ``rows`` (k,) that has seen no round.

        ``counts`` (k,) agents of each row belong to the part, and ``suggest`` is for these rows. A
        row of the sample is in the sample of each part that has agents of it.
        """
        is_sampled = np.isin(rows, self._sample) & (counts > 0)
        return type(self)(
            self.names,
            counts,
            sizes=self.sizes,
            suggest=suggest,
            sample=np.flatnonzero(is_sampled),
        )

    def part_state(self, rows: Indices) -> dict[str, Any]:
        return self.state() | {"sample": rows[self._sample], "rows": rows}

    def join(self, parts: Sequence[dict[str, Any]]) -> None:
        longest = max(int(part["batch_length"]) for part in parts)
        self._lengthen_batches(longest)
        for part in parts:
            differences = part["differences"]
            agent_rounds = part["agent_rounds"]
            sampled = part["sampled"]
            batch_length = int(part["batch_length"])
            while batch_length < self._batch_length:  # of agents who left early
                differences = _merge_batches(differences)
                agent_rounds = _merge_batches(agent_rounds)
                sampled = _merge_batches(sampled)
                batch_length = 2 * batch_length
            self._differences += differences
            self._agent_rounds += agent_rounds
            self._sampled[:, np.searchsorted(self._sample, part["sample"])] = sampled
            self.sums[part["rows"]] = part["sums"]

    def mean_loss(self, rounds: int | Indices) -> Array:
        rounds_of_rows = np.broadcast_to(np.maximum(rounds, 1), len(self.sums))
        return np.asarray(self.sums / rounds_of_rows[:, None])

    def series(self) -> Series | None:
        batches_with_agents = np.flatnonzero(self._agent_rounds)
        if not len(batches_with_agents):
            return None
        n_batches = int(batches_with_agents[-1]) + 1
        differences = self._differences[:n_batches].sum(1)  # (B, M + C)
        action_losses = self._sampled[:n_batches, :, :-2]  # (B, S, A)
        played_losses = self._sampled[:n_batches, :, -2]
        rounds_present = self._sampled[:n_batches, :, -1]
        best_action = action_losses.sum(0).argmin(1)
        best_losses = np.take_along_axis(action_losses, best_action[None, :, None], axis=2)[..., 0]

        # The sample stands for all agents of the cohort.
        weights = self._counts[self._sample]
        weights = weights * (self._counts.sum() / weights.sum())
        sums = np.column_stack([differences, (best_losses - played_losses) @ weights])
        agent_rounds = np.repeat(self._agent_rounds[:n_batches, None], sums.shape[1], axis=1)
        agent_rounds[:, -1] = rounds_present @ weights
        return Series(length=self._batch_length, sums=sums, agent_rounds=agent_rounds)

    def _make_batch_for(self, round_index: int) -> None:
        """Lengthen batches until one of them holds a round."""
        while round_index // self._batch_length >= MAX_BATCHES:
            self._lengthen_batches(2 * self._batch_length)

    def _lengthen_batches(self, length: int) -> None:
        """Merge batches, in place, until they have at least ``length`` rounds."""
        while self._batch_length < length:
            _merge_full_batches(self._differences)
            _merge_full_batches(self._agent_rounds)
            _merge_full_batches(self._sampled)
            self._batch_length = 2 * self._batch_length
