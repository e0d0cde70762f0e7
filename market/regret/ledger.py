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

AHEAD = 32  # rows between asking memory for one and its use
MEASURES = ("external", "swap", "omniprediction", "decision_swap", "contextual_swap")


@compiled(nogil=True)
def _record(
    play: Array, losses: Array, suggested: Indices,
    fixed: Array, followed: Array, contextual: Array, first: int, last: int,
) -> None:  # fmt: skip
    alike = suggested.shape[1] == 1
    for k in range(first, last):
        told = suggested[:, 0 if alike else k]
        for a in range(play.shape[1]):
            q = play[k, a]
            if q == 0.0:
                continue
            for b in range(losses.shape[1]):
                fixed[k, a, b] += q * losses[k, b]
            for j in range(len(told)):
                followed[k, a, j] += q * losses[k, told[j]]
                for b in range(losses.shape[1] if contextual.shape[0] else 0):
                    contextual[k, j, told[j], a, b] += q * losses[k, b]


@compiled(nogil=True)
def _record_choices(
    choices: Indices, predicted: Array, losses: Array, suggested: Indices, count: Array,
    fixed: Array, followed: Array, surprise_fixed: Array, surprise_followed: Array,
    first: int, last: int,
) -> None:  # fmt: skip
    """Add what ``_record`` adds for pure play, touching the rows of the actions played alone."""
    for k in range(first, last):
        ahead = min(k + AHEAD, last - 1)
        fetch(fixed, ahead, max(choices[ahead], 0))
        fetch(surprise_fixed, ahead, max(choices[ahead], 0))
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
def _least(table: Array, k: int, start: int, end: int) -> float:
    """Least entry of a row, summed over actions from ``start`` to before ``end`` (compiled)."""
    least = np.inf
    for b in range(table.shape[2]):
        total = 0.0
        for a in range(start, end):
            total += table[k, a, b]
        least = min(least, total)
    return least


@compiled(nogil=True)
def _above(
    fixed: Array, constant: Array, followed: Array, step: int, out: Array, first: int, last: int
) -> None:
    """Write losses (K,) above that of the best comparator for each ``step`` actions (compiled)."""
    for k in range(first, last):
        out[k] = 0.0
        for start in range(0, fixed.shape[1], step):
            end, own = start + step, 0.0
            for a in range(start, end):
                own += fixed[k, a, a]
            out[k] += own - min(_least(constant, k, start, end), _least(followed, k, start, end))


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
        contextual = rows if "contextual_swap" in measures else 0
        square = rows, actions, actions
        self.fixed, self.surprise_fixed, self.count = staggered(square, square, square[:2])
        self.followed = np.zeros((rows, actions, policies))
        self.contextual = np.zeros((contextual, policies, actions, actions, actions))
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
        predicted, surprises = decision.predicted, (self.surprise_fixed, self.surprise_followed)
        sums, rows = (self.fixed, self.followed), len(self.count)
        if decision.choices is not None and suggested.ndim == 1 and not len(self.contextual):
            played = decision.choices, predicted, losses, suggested, self.count
            over_rows(_record_choices, rows, *played, *sums, *surprises)
            return
        play, self.expects = decision.probabilities, self.expects and predicted is not None
        suggested = suggested if suggested.ndim > 1 else suggested[:, None]
        self.count += play
        over_rows(_record, rows, play, losses, suggested, *sums, self.contextual)
        if predicted is not None:
            nothing = np.zeros((0, 0, 0, 0, 0))
            over_rows(_record, rows, play, predicted - losses, suggested, *surprises, nothing)

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
        part = copy(self)
        part.expects = False
        part.measures = tuple(name for name in self.measures if name != "contextual_swap")
        for name in self.SUMS:
            own, kept = vars(self)[name], name in ("count", "fixed", "followed")
            setattr(part, name, np.array(own[rows]) if kept else own[:0])
        if isinstance(self.rounds, np.ndarray):
            part.rounds = np.array(self.rounds[rows])
        return part

    def since(self, earlier: "Ledger") -> "Ledger":
        """Return the sums of the rounds after an earlier excerpt of the same rows."""
        span = copy(self)
        span.rounds = self.rounds - earlier.rounds
        span.count, span.fixed = self.count - earlier.count, self.fixed - earlier.fixed
        span.followed = self.followed - earlier.followed
        return span

    def join(self, rows: Indices, part: Mapping[str, Any]) -> None:
        """Take over the state of a part, which holds some of the rows (k,)."""
        self.rounds = np.array(np.broadcast_to(self.rounds, len(self.count)))
        self.rounds[rows], self.expects = part["rounds"], self.expects and part["expects"]
        for name in self.SUMS:
            if len(own := vars(self)[name]):
                own[rows] = part[name]

    @property
    def played(self) -> Mask:
        """Which rows have played (K,)."""
        return np.broadcast_to(np.asarray(self.rounds) > 0, len(self.count))

    @property
    def each_rounds(self) -> Array:
        """The rounds of each row (K,), 1 for one that has not played."""
        return np.broadcast_to(np.maximum(self.rounds, 1.0), len(self.count))

    @property
    def own(self) -> Array:
        """Loss suffered while playing each action (K, A), summed over rounds."""
        return np.asarray(np.einsum("kaa->ka", self.fixed))

    def mean_loss(self) -> Array:
        """Loss suffered per round (K,)."""
        return np.asarray(self.own.sum(1) / self.each_rounds)

    def comparators(self) -> Array:
        """Loss of every policy of the benchmark class per played action (K, A, A + C or C)."""
        return np.concatenate(self._benchmark(self.fixed, self.followed), axis=2)

    def regret(self, measure: str) -> Array | None:
        """Regret per round of every row (K,); None where the measure is not kept or has no policy.

        ``measure``: one of ``MEASURES``.
        """
        if measure not in self.measures:
            return None
        nobody = self.fixed[..., :0]
        if measure == "contextual_swap":  # the worst policy's; the constants add the swap regret
            own = self.own.sum(1)[:, None] - self.contextual.min(4, initial=np.inf).sum((2, 3))
            plain = [self._above(self.fixed, nobody, swap=True)] if self.constants else []
            regrets = np.column_stack([own, *plain])
            return regrets.max(1) / self.each_rounds if regrets.shape[1] else None
        plainly = measure in ("external", "swap")
        against = [self.fixed, nobody] if plainly else self._benchmark(self.fixed, self.followed)
        if not any(table.shape[2] for table in against):
            return None
        return self._above(*against, swap=measure.endswith("swap")) / self.each_rounds

    def bound_from_bias(self) -> Array | None:
        """Right-hand side of the module's inequality without the gap (K,).

        None for rows that formed no expectation.
        """
        if not self.expects:
            return None
        against = self._benchmark(self.surprise_fixed, self.surprise_followed)
        if not any(table.shape[2] for table in against):
            return None
        own = np.einsum("kaa->ka", self.surprise_fixed)
        most = [table.max(2, initial=-np.inf) for table in against]
        return np.asarray((np.maximum(*most) - own).sum(1) / self.each_rounds)

    def _benchmark(self, fixed: Array, followed: Array) -> list[Array]:
        """Return sums over the benchmark class, of constants and of policies."""
        return [fixed if self.constants else fixed[..., :0], followed]

    def _above(self, constant: Array, followed: Array, *, swap: bool) -> Array:
        """Return the loss (K,) above that of the best comparators, for each action or for all."""
        out, step = np.empty(len(self.count)), 1 if swap else self.count.shape[1]
        over_rows(_above, len(out), self.fixed, constant, followed, step, out)
        return out
