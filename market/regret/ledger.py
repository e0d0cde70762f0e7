r"""The regret ledger: running sums from which every regret is read in a few array passes.

For each row k (an agent, or several agents with equal losses and equal choices) the ledger adds,
for the mixed strategy q and the losses l of a round,

    fixed[k, a, b]       += q_a l_b                  comparator: always b
    followed[k, a, j]    += q_a l_{c_j(x)}           comparator: policy j
    contextual[k, j, s, a, b] += q_a [c_j(x) = s] l_b    comparator: b, depending on (a, s)

so that fixed[k, a, a] is what playing a cost. Rows that expected losses p when they chose also
keep the same sums of p - l over the comparators. For a linear loss with coefficients r that sum
is <r(b), B_a>, the realised bias of the event "a was played" seen through comparator b (plus the
approximation error of the basis), and since p_a <= p_b + gap for the action played,

    decision swap regret <= [ sum_a max_c (surprise[a, c] - surprise[a, a]) ] / T + gap,

where c runs over the comparators: the bound from the biases, valid on every log.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled, over_rows
from regretless.market.numerics.storage import fetch, staggered
from regretless.market.records import Decision

PREFETCH_DISTANCE = 32  # rows between asking memory for one and its use
MEASURES = ("external", "swap", "omniprediction", "decision_swap", "contextual_swap")


@compiled(nogil=True)
def _add_mixed_play(
    strategies: Array, losses: Array, suggested: Indices,
    fixed: Array, followed: Array, contextual: Array, first: int, last: int,
) -> None:  # fmt: skip
    same_for_all = suggested.shape[1] == 1
    for k in range(first, last):
        suggested_actions = suggested[:, 0 if same_for_all else k]
        for a in range(strategies.shape[1]):
            probability = strategies[k, a]
            if probability == 0.0:
                continue
            for b in range(losses.shape[1]):
                fixed[k, a, b] += probability * losses[k, b]
            for j in range(len(suggested_actions)):
                followed[k, a, j] += probability * losses[k, suggested_actions[j]]
                for b in range(losses.shape[1] if contextual.shape[0] else 0):
                    contextual[k, j, suggested_actions[j], a, b] += probability * losses[k, b]


@compiled(nogil=True)
def _add_pure_play(
    choices: Indices, predicted: Array, losses: Array, suggested: Indices, count: Array,
    fixed: Array, followed: Array, surprise_fixed: Array, surprise_followed: Array,
    first: int, last: int,
) -> None:  # fmt: skip
    """Add what ``_record`` adds for pure play, touching the rows of the actions played alone."""
    for k in range(first, last):
        later_row = min(k + PREFETCH_DISTANCE, last - 1)
        fetch(fixed, later_row, max(choices[later_row], 0))
        fetch(surprise_fixed, later_row, max(choices[later_row], 0))
        a = choices[k]
        if a < 0:
            continue
        count[k, a] += 1.0
        for b in range(losses.shape[1]):
            fixed[k, a, b] += losses[k, b]
            surprise_fixed[k, a, b] += predicted[k, b] - losses[k, b]
        for j in range(suggested.shape[0]):
            b = suggested[j]
            followed[k, a, j] += losses[k, b]
            surprise_followed[k, a, j] += predicted[k, b] - losses[k, b]


@compiled(nogil=True)
def _least_sum(table: Array, k: int, first_action: int, end_action: int) -> float:
    """Least entry of a row, summed over actions from ``start`` to before ``end`` (compiled)."""
    least = np.inf
    for b in range(table.shape[2]):
        sum_over_actions = 0.0
        for a in range(first_action, end_action):
            sum_over_actions += table[k, a, b]
        least = min(least, sum_over_actions)
    return least


@compiled(nogil=True)
def _write_regrets(
    fixed: Array,
    constant_sums: Array,
    policy_sums: Array,
    actions_per_comparator: int,
    regrets: Array,
    first: int,
    last: int,
) -> None:
    """Write losses (K,) above that of the best comparator for each ``step`` actions (compiled)."""
    for k in range(first, last):
        regrets[k] = 0.0
        for first_action in range(0, fixed.shape[1], actions_per_comparator):
            end_action, suffered = first_action + actions_per_comparator, 0.0
            for a in range(first_action, end_action):
                suffered += fixed[k, a, a]
            regrets[k] += suffered - min(
                _least_sum(constant_sums, k, first_action, end_action),
                _least_sum(policy_sums, k, first_action, end_action),
            )


class Ledger(Checkpointable):
    """Counterfactual sums of K rows with A actions against C policies.

    Parameters
    ----------
    rows, actions, policies : int
        K, A, C.
    measures : sequence of str
        Which of ``MEASURES`` can be read.
    constants : bool
        Whether the constant policies belong to the benchmark class.
    """

    SUMS = "count", "fixed", "followed", "contextual", "surprise_fixed", "surprise_followed"
    REMEMBERED = (*SUMS, "expects")
    IN_PLACE = True

    def __init__(
        self,
        rows: int,
        actions: int,
        *,
        policies: int = 0,
        measures: Sequence[str] = MEASURES[:4],
        constants: bool = True,
    ) -> None:
        self.measures, self.constants = tuple(measures), constants
        self.rounds: int | Indices = 0  # one for all, or (K,) once a row was absent
        contextual_rows = rows if "contextual_swap" in measures else 0
        square_shape = rows, actions, actions
        self.fixed, self.surprise_fixed, self.count = staggered(
            square_shape, square_shape, square_shape[:2]
        )
        self.followed = np.zeros((rows, actions, policies))
        self.contextual = np.zeros((contextual_rows, policies, actions, actions, actions))
        self.surprise_followed = np.zeros((rows, actions, policies))
        self.expects = True

    def add(self, decision: Decision, losses: Array, suggested: Indices) -> None:
        """Add a round.

        Parameters
        ----------
        decision : Decision
            Of the K rows.
        losses : array (K, A)
            Losses of all actions at the outcome.
        suggested : int array (C,), or (C, K)
            What each policy suggested, or what it did to each row.
        """
        self.rounds = self.rounds + (1 if decision.present is None else decision.present)
        predicted, surprise_tables = (
            decision.predicted,
            (self.surprise_fixed, self.surprise_followed),
        )
        loss_tables, n_rows = (self.fixed, self.followed), len(self.count)
        if decision.choices is not None and suggested.ndim == 1 and not len(self.contextual):
            arguments = decision.choices, predicted, losses, suggested, self.count
            over_rows(_add_pure_play, n_rows, *arguments, *loss_tables, *surprise_tables)
            return
        strategies, self.expects = decision.probabilities, self.expects and predicted is not None
        suggested = suggested if suggested.ndim > 1 else suggested[:, None]
        self.count += strategies
        over_rows(
            _add_mixed_play, n_rows, strategies, losses, suggested, *loss_tables, self.contextual
        )
        if predicted is not None:
            no_contextual = np.zeros((0, 0, 0, 0, 0))
            over_rows(
                _add_mixed_play,
                n_rows,
                strategies,
                predicted - losses,
                suggested,
                *surprise_tables,
                no_contextual,
            )

    def state(self) -> dict[str, Any]:
        return super().state() | {"rounds": np.atleast_1d(self.rounds).copy()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        rounds = np.array(state["rounds"])
        self.rounds = int(rounds[0]) if len(rounds) == 1 else rounds

    def excerpt(self, rows: Indices | slice = slice(None)) -> "Ledger":
        """Return a copy of some rows as they stand, to be read and not added to.

        Biases and contextual sums are left out: it gives no bound and no contextual swap regret.
        """
        excerpt = copy(self)
        excerpt.expects = False
        excerpt.measures = tuple(name for name in self.measures if name != "contextual_swap")
        for name in self.SUMS:
            table, is_kept = vars(self)[name], name in ("count", "fixed", "followed")
            setattr(excerpt, name, np.array(table[rows]) if is_kept else table[:0])
        if isinstance(self.rounds, np.ndarray):
            excerpt.rounds = np.array(self.rounds[rows])
        return excerpt

    def since(self, earlier: "Ledger") -> "Ledger":
        """Return the sums of the rounds after an earlier excerpt of the same rows."""
        difference = copy(self)
        difference.rounds = self.rounds - earlier.rounds
        difference.count, difference.fixed = self.count - earlier.count, self.fixed - earlier.fixed
        difference.followed = self.followed - earlier.followed
        return difference

    def join(self, rows: Indices, part: Mapping[str, Any]) -> None:
        """Take over the state of a part, which holds some of the rows (k,)."""
        self.rounds = np.array(np.broadcast_to(self.rounds, len(self.count)))
        self.rounds[rows], self.expects = part["rounds"], self.expects and part["expects"]
        for name in self.SUMS:
            if len(table := vars(self)[name]):
                table[rows] = part[name]

    @property
    def played(self) -> Mask:
        """Which rows have played (K,)."""
        return np.broadcast_to(np.asarray(self.rounds) > 0, len(self.count))

    @property
    def rounds_of_rows(self) -> Array:
        """The rounds of each row (K,), 1 for one that has not played."""
        return np.broadcast_to(np.maximum(self.rounds, 1.0), len(self.count))

    @property
    def played_losses(self) -> Array:
        """Loss suffered while playing each action (K, A), summed over rounds."""
        return np.asarray(np.einsum("kaa->ka", self.fixed))

    def mean_loss(self) -> Array:
        """Loss suffered per round (K,)."""
        return np.asarray(self.played_losses.sum(1) / self.rounds_of_rows)

    def comparators(self) -> Array:
        """Loss of every policy of the benchmark class per played action (K, A, A + C or C)."""
        return np.concatenate(self._comparator_tables(self.fixed, self.followed), axis=2)

    def regret(self, measure: str) -> Array | None:
        """Regret per round of every row (K,); None where the measure is not kept or has no policy.

        ``measure``: one of ``MEASURES``.
        """
        if measure not in self.measures:
            return None
        no_comparators = self.fixed[..., :0]
        if measure == "contextual_swap":  # the worst policy's; the constants add the swap regret
            regret_to_policies = self.played_losses.sum(1)[:, None] - self.contextual.min(
                4, initial=np.inf
            ).sum((2, 3))
            swap_regrets = (
                [self._regret_to(self.fixed, no_comparators, swap=True)] if self.constants else []
            )
            regrets = np.column_stack([regret_to_policies, *swap_regrets])
            return regrets.max(1) / self.rounds_of_rows if regrets.shape[1] else None
        is_against_actions = measure in ("external", "swap")
        comparator_tables = (
            [self.fixed, no_comparators]
            if is_against_actions
            else self._comparator_tables(self.fixed, self.followed)
        )
        if not any(comparator_table.shape[2] for comparator_table in comparator_tables):
            return None
        return (
            self._regret_to(*comparator_tables, swap=measure.endswith("swap")) / self.rounds_of_rows
        )

    def bound_from_bias(self) -> Array | None:
        """Right-hand side of the module's inequality without the gap (K,).

        None for rows that formed no expectation.
        """
        if not self.expects:
            return None
        comparator_tables = self._comparator_tables(self.surprise_fixed, self.surprise_followed)
        if not any(table.shape[2] for table in comparator_tables):
            return None
        surprise_of_played = np.einsum("kaa->ka", self.surprise_fixed)
        greatest_surprise = [table.max(2, initial=-np.inf) for table in comparator_tables]
        return np.asarray(
            (np.maximum(*greatest_surprise) - surprise_of_played).sum(1) / self.rounds_of_rows
        )

    def _comparator_tables(self, action_sums: Array, policy_sums: Array) -> list[Array]:
        """Return sums over the benchmark class, of constants and of policies."""
        return [action_sums if self.constants else action_sums[..., :0], policy_sums]

    def _regret_to(self, constant_sums: Array, policy_sums: Array, *, swap: bool) -> Array:
        """Return the loss (K,) above that of the best comparators, for each action or for all."""
        regrets, actions_per_comparator = (
            np.empty(len(self.count)),
            1 if swap else self.count.shape[1],
        )
        over_rows(
            _write_regrets,
            len(regrets),
            self.fixed,
            constant_sums,
            policy_sums,
            actions_per_comparator,
            regrets,
        )
        return regrets
