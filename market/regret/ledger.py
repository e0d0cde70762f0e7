r"""The regret ledger: running sums from which every regret is read in a few array passes.

Each cohort has one ledger, for which its seat keeps every round (``PendingRounds``); who keeps a
ledger by itself calls ``add`` once per round. Tables, verdicts and bounds read ``regret``,
``mean_loss`` and ``bound_from_bias`` whenever they are asked for. Every figure that is
read is an average per round of a row's stay, in units of losses in [0, 1], and depends on the
rounds added alone, not on when it is read. ``market.regret.definitions`` computes the same from
raw logs.

Mathematics
-----------
For each row k (an agent, or several agents with equal losses and equal choices) the ledger adds,
for the mixed strategy q and the losses l of a round,

    fixed[k, a, b]       += q_a l_b                  comparator: always b
    followed[k, a, j]    += q_a l_{c_j(x)}           comparator: policy j
    contextual[k, j, s, a, b] += q_a [c_j(x) = s] l_b    comparator: b, depending on (a, s)

so that fixed[k, a, a] is what playing a cost. Rows that expected losses p when they chose also
keep the same sums of p - l over the comparators (``surprise_fixed``, ``surprise_followed``). For a
linear loss with coefficients r that sum is <r(b), B_a>, the realised bias of the event "a was
played" seen through comparator b (plus the approximation error of the basis), and since p_a <= p_b
+ gap for the action played,

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
from regretless.market.numerics.pairwise_sum import pairwise_sum
from regretless.market.numerics.storage import prefetch, staggered_tables
from regretless.market.records import Decision
from regretless.market.regret.pending_rounds import (
    NO_REGRETS,
    NO_TABLES,
    PendingRounds,
    PlayedRounds,
    RoundReader,
    SumOfRounds,
    one_round,
)

PREFETCH_DISTANCE = 32  # rows between asking memory for one and its use
MEASURES = ("external", "swap", "omniprediction", "decision_swap", "contextual_swap")
DEFAULT_MEASURES = MEASURES[:4]  # contextual swap regret takes A times as much memory


@compiled(nogil=True, inline="always")
def _least_sums(
    row: int, action: int, fixed: Array, followed: Array, constants: bool,  # noqa: FBT001
) -> tuple[float, float]:  # fmt: skip
    """Return what the best comparators of an action would have lost in its place (compiled).

    That is the least sum of a constant comparator, and of one in the benchmark class; infinity
    where there is none. The arguments are those of ``_write_regrets_of_row``.
    """
    n_comparators = fixed.shape[2]
    n_in_fours = n_comparators - n_comparators % 4
    # Four minima side by side: one alone waits for each comparison before it begins the next.
    least_of_first = np.inf
    least_of_second = np.inf
    least_of_third = np.inf
    least_of_fourth = np.inf
    for comparator in range(0, n_in_fours, 4):
        least_of_first = min(least_of_first, fixed[row, action, comparator])
        least_of_second = min(least_of_second, fixed[row, action, comparator + 1])
        least_of_third = min(least_of_third, fixed[row, action, comparator + 2])
        least_of_fourth = min(least_of_fourth, fixed[row, action, comparator + 3])
    least_of_constants = min(least_of_first, least_of_second, least_of_third, least_of_fourth)
    for comparator in range(n_in_fours, n_comparators):
        least_of_constants = min(least_of_constants, fixed[row, action, comparator])
    least = least_of_constants if constants else np.inf
    for policy in range(followed.shape[2]):
        least = min(least, followed[row, action, policy])
    return least_of_constants, least


@compiled(nogil=True, inline="always")
def _write_regret_sums(
    row: int, fixed: Array, followed: Array, constants: bool,  # noqa: FBT001
    suffered: float, swap: float, decision_swap: float, regret_sums: Array, place: int,
) -> None:  # fmt: skip
    """Write all regrets of a row, given those that are sums over its actions (compiled).

    Parameters
    ----------
    row, fixed, followed, constants, regret_sums, place
        As in ``_write_regrets_of_row``.
    suffered, swap, decision_swap : float
        The loss suffered, and by how much it exceeds the least sums of every action.
    """
    n_actions = fixed.shape[1]
    least_of_constants = np.inf
    n_in_fours = n_actions - n_actions % 4
    for comparator in range(0, n_in_fours, 4):  # neighbours, which come from memory together
        first_total = 0.0
        second_total = 0.0
        third_total = 0.0
        fourth_total = 0.0
        for action in range(n_actions):
            first_total += fixed[row, action, comparator]
            second_total += fixed[row, action, comparator + 1]
            third_total += fixed[row, action, comparator + 2]
            fourth_total += fixed[row, action, comparator + 3]
        least_of_four = min(first_total, second_total, third_total, fourth_total)
        least_of_constants = min(least_of_constants, least_of_four)
    for comparator in range(n_in_fours, n_actions):
        total = 0.0
        for action in range(n_actions):
            total += fixed[row, action, comparator]
        least_of_constants = min(least_of_constants, total)
    least = least_of_constants if constants else np.inf
    for policy in range(followed.shape[2]):
        total = 0.0
        for action in range(n_actions):
            total += followed[row, action, policy]
        least = min(least, total)
    regret_sums[place, 0, row] = suffered - least_of_constants
    regret_sums[place, 1, row] = swap
    regret_sums[place, 2, row] = suffered - least
    regret_sums[place, 3, row] = decision_swap


@compiled(nogil=True, counts_references=False)
def _write_regrets_of_row(
    row: int, fixed: Array, followed: Array, constants: bool,  # noqa: FBT001
    regret_sums: Array, place: int,
) -> None:  # fmt: skip
    """Write all regrets of a row but the contextual one (compiled).

    The loss suffered less that of the best comparators: of one for all rounds (external,
    omniprediction), or of one for each action played (swap, decision swap).

    Parameters
    ----------
    row : int
        One of K.
    fixed : array (K, A, A)
        Sums by row, action played and constant comparator; the diagonal is the loss suffered.
    followed : array (K, A, C)
        Sums by row, action played and policy.
    constants : bool
        Whether constants are in the benchmark class of omniprediction and decision swap regret.
    regret_sums : array (n, 4, K)
        Written at the place and row, in the order of ``MEASURES``: sums over rounds, not averages.
        Minus infinity where there is no comparator.
    place : int
        One of n.
    """
    suffered = 0.0
    swap = 0.0
    decision_swap = 0.0
    for action in range(fixed.shape[1]):
        least_of_constants, least = _least_sums(row, action, fixed, followed, constants)
        suffered_with_action = fixed[row, action, action]
        suffered += suffered_with_action
        swap += suffered_with_action - least_of_constants
        decision_swap += suffered_with_action - least
    _write_regret_sums(
        row, fixed, followed, constants, suffered, swap, decision_swap, regret_sums, place
    )


@compiled(nogil=True)
def _write_regrets(
    fixed: Array, followed: Array, constants: bool, regret_sums: Array,  # noqa: FBT001
    first: int, last: int,
) -> None:  # fmt: skip
    """Write the regrets of the rows from ``first`` to before ``last`` (compiled).

    The arrays are those of ``_write_regrets_of_row``, ``regret_sums`` (1, 4, K).
    """
    for row in range(first, last):
        _write_regrets_of_row(row, fixed, followed, constants, regret_sums, 0)


@compiled(nogil=True)
def _write_excess_surprise(
    surprise_fixed: Array, surprise_followed: Array, constants: bool, excess: Array,  # noqa: FBT001
    first: int, last: int,
) -> None:  # fmt: skip
    """Write by how much surprises of comparators exceed those of play, at most (compiled).

    It is sum_a max_c (S[a, c] - S[a, a]) of each row from ``first`` to before ``last``, with S its
    surprises and c the comparators, added up in NumPy's order.

    Parameters
    ----------
    surprise_fixed : array (K, A, A)
        S by row, action played and constant comparator.
    surprise_followed : array (K, A, C)
        S by row, action played and policy.
    constants : bool
        Whether constants are comparators.
    excess : array (K,)
        Written.
    """
    n_actions = surprise_fixed.shape[1]
    excess_of_action = np.empty(n_actions)
    for row in range(first, last):
        for action in range(n_actions):
            greatest = -np.inf
            if constants:
                for comparator in range(n_actions):
                    surprise = surprise_fixed[row, action, comparator]
                    if surprise > greatest or np.isnan(surprise):
                        greatest = surprise
            for policy in range(surprise_followed.shape[2]):
                surprise = surprise_followed[row, action, policy]
                if surprise > greatest or np.isnan(surprise):
                    greatest = surprise
            excess_of_action[action] = greatest - surprise_fixed[row, action, action]
        excess[row] = pairwise_sum(excess_of_action)


@compiled(nogil=True)
def _add_mixed_play(
    strategies: Array, predicted: Array, losses: Array, suggested: Indices, is_logged: Mask,
    constants: bool,  # noqa: FBT001
    count: Array, fixed: Array, followed: Array, contextual: Array,
    surprise_fixed: Array, surprise_followed: Array, regret_sums: Array, first: int, last: int,
) -> None:  # fmt: skip
    """Add rounds of mixed play to the rows from ``first`` to before ``last`` (compiled).

    Parameters
    ----------
    strategies : array (T, K, A)
        Probability with which each row plays each action in each round; zeros for an absent row.
    predicted : array (T, K, A), or empty
        Losses that the rows expected; empty where they expect none, and then the surprises are left
        alone.
    losses : array (T, K, A)
        Losses at the outcome.
    suggested : int array (T, C, 1) or (T, C, K)
        The action that each policy suggests to all rows, or to each.
    is_logged : bool array (T,)
        After which rounds regrets are written.
    constants : bool
        As in ``_write_regrets_of_row``.
    count : array (K, A)
        How often each action was played, in probability; added to in place.
    fixed, surprise_fixed : array (K, A, A)
        Sums of losses, and of expected minus realised losses, by row, action played and constant
        comparator; added to in place.
    followed, surprise_followed : array (K, A, C)
        The same by policy; added to in place.
    contextual : array (K, C, A, A, A), or empty
        Sums of losses by row, policy, suggestion, action played and comparator; added to in place,
        and left alone where its first axis has length 0.
    regret_sums : array (n, 4, K)
        The regrets after each of the n rounds that are logged; written.
    first, last : int
        Span of rows.
    """
    same_for_all = suggested.shape[2] == 1
    expects = predicted.shape[0] > 0
    for row in range(first, last):
        n_logged = 0
        for t in range(strategies.shape[0]):
            suggestions = suggested[t, :, 0 if same_for_all else row]
            for action in range(strategies.shape[2]):
                probability = strategies[t, row, action]
                if probability == 0.0:
                    continue
                count[row, action] += probability
                for comparator in range(losses.shape[2]):
                    loss = losses[t, row, comparator]
                    fixed[row, action, comparator] += probability * loss
                    if expects:
                        surprise = predicted[t, row, comparator] - loss
                        surprise_fixed[row, action, comparator] += probability * surprise
                for policy in range(len(suggestions)):
                    suggestion = suggestions[policy]
                    loss = losses[t, row, suggestion]
                    followed[row, action, policy] += probability * loss
                    if expects:
                        surprise = predicted[t, row, suggestion] - loss
                        surprise_followed[row, action, policy] += probability * surprise
                    if contextual.shape[0]:  # contextual sums are kept
                        for comparator in range(losses.shape[2]):
                            contextual[row, policy, suggestion, action, comparator] += (
                                probability * losses[t, row, comparator]
                            )
            if is_logged[t]:
                _write_regrets_of_row(row, fixed, followed, constants, regret_sums, n_logged)
                n_logged += 1


@compiled(nogil=True)
def _add_pure_play(
    choices: Indices, predicted: Array, losses: Array, suggested: Indices, is_logged: Mask,
    constants: bool,  # noqa: FBT001
    count: Array, fixed: Array, followed: Array, contextual: Array,
    surprise_fixed: Array, surprise_followed: Array, regret_sums: Array, first: int, last: int,
) -> None:  # fmt: skip
    """Add what ``_add_mixed_play`` adds for pure play, in one pass over a span of rows (compiled).

    It touches the rows of the played actions alone, and looks for the best comparators of no other
    action again. In a large table these rows lie far apart in memory, which is therefore asked for
    them ``PREFETCH_DISTANCE`` rows ahead.

    Parameters
    ----------
    choices : int array (T, K)
        The action of each row, -1 for an absent one.
    predicted : array (T, K, A), or empty
        Losses that the rows expected; empty where they expect none, and then the surprises are left
        alone.
    losses : array (T, K, A)
        Losses at the outcome.
    suggested : int array (T, C, 1) or (T, C, K)
        The action that each policy suggests to all rows, or to each.
    is_logged : bool array (T,)
        After which rounds regrets are written.
    constants : bool
        As in ``_write_regrets_of_row``.
    count : array (K, A)
        How often each action was played; added to in place.
    fixed, surprise_fixed : array (K, A, A)
        Sums of losses, and of expected minus realised losses, by constant comparator; added to in
        place.
    followed, surprise_followed : array (K, A, C)
        The same by policy; added to in place.
    contextual : array (K, C, A, A, A), or empty
        As in ``_add_mixed_play``.
    regret_sums : array (n, 4, K)
        The regrets after each of the n rounds that are logged; written.
    first, last : int
        Span of rows.
    """
    n_actions = fixed.shape[1]
    least_of_constants = np.empty(n_actions)
    least = np.empty(n_actions)
    same_for_all = suggested.shape[2] == 1
    expects = predicted.shape[0] > 0
    keeps_contextual_sums = contextual.shape[0] > 0
    some_are_logged = is_logged.any()
    for row in range(first, last):
        later_row = min(row + PREFETCH_DISTANCE, last - 1)
        prefetch(fixed, later_row, max(choices[0, later_row], 0))
        prefetch(surprise_fixed, later_row, max(choices[0, later_row], 0))
        if some_are_logged:
            for action in range(n_actions):
                least_of_constants[action], least[action] = _least_sums(
                    row, action, fixed, followed, constants
                )
        n_logged = 0
        for t in range(choices.shape[0]):
            action = choices[t, row]
            if action >= 0:
                count[row, action] += 1.0
                for comparator in range(n_actions):
                    loss = losses[t, row, comparator]
                    fixed[row, action, comparator] += loss
                    if expects:
                        surprise = predicted[t, row, comparator] - loss
                        surprise_fixed[row, action, comparator] += surprise
                for policy in range(suggested.shape[1]):
                    suggestion = suggested[t, policy, 0 if same_for_all else row]
                    loss = losses[t, row, suggestion]
                    followed[row, action, policy] += loss
                    if expects:
                        surprise = predicted[t, row, suggestion] - loss
                        surprise_followed[row, action, policy] += surprise
                    if keeps_contextual_sums:
                        for comparator in range(n_actions):
                            contextual[row, policy, suggestion, action, comparator] += losses[
                                t, row, comparator
                            ]
                if some_are_logged:
                    least_of_constants[action], least[action] = _least_sums(
                        row, action, fixed, followed, constants
                    )
            if is_logged[t]:
                suffered = 0.0
                swap = 0.0
                decision_swap = 0.0
                for played in range(n_actions):
                    suffered_with_action = fixed[row, played, played]
                    suffered += suffered_with_action
                    swap += suffered_with_action - least_of_constants[played]
                    decision_swap += suffered_with_action - least[played]
                _write_regret_sums(
                    row, fixed, followed, constants,
                    suffered, swap, decision_swap, regret_sums, n_logged,
                )  # fmt: skip
                n_logged += 1


class Ledger(RoundReader, Checkpointable):
    """Counterfactual sums of K rows with A actions against C policies.

    Parameters
    ----------
    rows, actions, policies : int
        K, A, C.
    measures : sequence of str
        Which of ``MEASURES`` can be read.
    constants : bool
        Whether the constant policies belong to the benchmark class.

    Attributes
    ----------
    shape : (int, int)
        K and A: who needs no more reads no sum.
    pending : PendingRounds
        Rounds that are counted, and added to the sums before anybody reads one.
    rounds : int or int array (K,)
        Rounds that were counted: one number while no row has ever been absent, then one per row.
    count : array (K, A)
        How often each action was played, in probability.
    fixed, followed, contextual, surprise_fixed, surprise_followed : array
        The sums of the module's formulas.
    expects : bool
        Whether the rows expected losses in every round, so that the surprises are complete.
    """

    SUMS = "count", "fixed", "followed", "contextual", "surprise_fixed", "surprise_followed"
    EXCERPT_SUMS = "count", "fixed", "followed"  # those that ``excerpt`` copies
    REMEMBERED = (*SUMS, "expects")
    IN_PLACE = True
    writes_regrets = True

    count = SumOfRounds()
    fixed = SumOfRounds()
    followed = SumOfRounds()
    contextual = SumOfRounds()
    surprise_fixed = SumOfRounds()
    surprise_followed = SumOfRounds()

    def __init__(
        self,
        rows: int,
        actions: int,
        *,
        policies: int = 0,
        measures: Sequence[str] = DEFAULT_MEASURES,
        constants: bool = True,
    ) -> None:
        self.measures = tuple(measures)
        self.constants = constants
        self.pending = PendingRounds()
        self.shape = rows, actions
        self.rounds: int | Indices = 0
        square_shape = rows, actions, actions
        self.fixed, self.surprise_fixed, self.count = staggered_tables(
            square_shape, square_shape, (rows, actions)
        )
        self.followed = np.zeros((rows, actions, policies))
        contextual_rows = rows if "contextual_swap" in measures else 0
        self.contextual = np.zeros((contextual_rows, policies, actions, actions, actions))
        self.surprise_followed = np.zeros((rows, actions, policies))
        self.expects = True

    def add_rounds(self, strategies: Array, losses: Array) -> None:
        """Add rounds of mixed play without policies or expectations to all sums, in place.

        The sums are those of ``add`` called for one round after another. ``strategies`` and
        ``losses`` are (T, K, A); all rows were there.
        """
        n_rounds = len(strategies)
        self.rounds = self.rounds + n_rounds
        self.expects = False
        self.pending.add_up()
        self._add_mixed_play(
            strategies,
            NO_TABLES,
            losses,
            suggested=np.empty((n_rounds, 0, 1), dtype=np.intp),
            is_logged=np.zeros(n_rounds, dtype=np.bool_),
            regret_sums=NO_REGRETS,
        )

    def add(self, decision: Decision, losses: Array, suggested: Indices) -> None:
        """Add a round to all sums, in place.

        Parameters
        ----------
        decision : Decision
            Of the K rows.
        losses : array (K, A)
            Losses of all actions at the outcome.
        suggested : int array (C,), or (C, K)
            What each policy suggested, or what it did to each row.
        """
        self.count_round(decision)
        self.pending.add_up()
        self.add_played(one_round(decision, losses, suggested=suggested))

    def count_round(self, decision: Decision) -> None:
        """Count a round that is added to the sums now or later (``pending``)."""
        self.rounds = self.rounds + (1 if decision.present is None else decision.present)
        self.expects = self.expects and decision.predicted is not None

    def add_played(self, rounds: PlayedRounds) -> None:
        """Add rounds that were counted to all sums, and write the regrets that are logged."""
        if not len(rounds.choices):
            self._add_mixed_play(
                rounds.strategies,
                rounds.predicted,
                rounds.losses,
                suggested=rounds.suggested,
                is_logged=rounds.is_logged,
                regret_sums=rounds.regret_sums,
            )
            return
        over_rows(
            _add_pure_play,
            len(self.count),
            rounds.choices,
            rounds.predicted,
            rounds.losses,
            rounds.suggested,
            rounds.is_logged,
            self.constants,
            self.count,
            self.fixed,
            self.followed,
            self.contextual,
            self.surprise_fixed,
            self.surprise_followed,
            rounds.regret_sums,
        )

    def _add_mixed_play(
        self,
        strategies: Array,
        predicted: Array,
        losses: Array,
        *,
        suggested: Indices,
        is_logged: Mask,
        regret_sums: Array,
    ) -> None:
        """Add rounds to all sums; the arrays are those of the kernel of that name."""
        over_rows(
            _add_mixed_play,
            len(self.count),
            strategies,
            predicted,
            losses,
            suggested,
            is_logged,
            self.constants,
            self.count,
            self.fixed,
            self.followed,
            self.contextual,
            self.surprise_fixed,
            self.surprise_followed,
            regret_sums,
        )

    def state(self) -> dict[str, Any]:
        return super().state() | {"rounds": np.atleast_1d(self.rounds).copy()}

    def restore(self, state: dict[str, Any]) -> None:
        self.pending.add_up()  # rounds that this state replaces; others may still wait for them
        super().restore(state)
        rounds = np.array(state["rounds"])
        self.rounds = int(rounds[0]) if len(rounds) == 1 else rounds

    def excerpt(self, rows: Indices | slice = slice(None)) -> "Ledger":
        """Return a copy of some rows as they stand, to be read and not added to.

        Biases and contextual sums are left out: it gives no bound and no contextual swap regret.
        """
        self.pending.add_up()
        excerpt = copy(self)
        excerpt.pending = PendingRounds()
        excerpt.expects = False
        excerpt.measures = tuple(name for name in self.measures if name != "contextual_swap")
        for name in self.SUMS:
            table = getattr(self, name)
            if name in self.EXCERPT_SUMS:
                setattr(excerpt, name, np.array(table[rows]))
            else:
                setattr(excerpt, name, table[:0])
        if isinstance(self.rounds, np.ndarray):
            excerpt.rounds = np.array(self.rounds[rows])
        excerpt.shape = len(excerpt.count), self.shape[1]
        return excerpt

    def since(self, earlier: "Ledger") -> "Ledger":
        """Return the sums of the rounds after an earlier excerpt of the same rows."""
        window = copy(self)
        window.pending = PendingRounds()
        window.rounds = self.rounds - earlier.rounds
        window.count = self.count - earlier.count
        window.fixed = self.fixed - earlier.fixed
        window.followed = self.followed - earlier.followed
        return window

    def join(self, rows: Indices, part: Mapping[str, Any]) -> None:
        """Take over the state of a ledger that has kept only these rows (k,) of this one."""
        self.rounds = np.array(np.broadcast_to(self.rounds, len(self.count)))
        self.rounds[rows] = part["rounds"]
        self.expects = self.expects and part["expects"]
        for name in self.SUMS:
            table = getattr(self, name)
            if len(table):  # a sum that is not kept has no rows
                table[rows] = part[name]

    @property
    def played(self) -> Mask:
        """Which rows have played (K,)."""
        if isinstance(self.rounds, np.ndarray):
            return np.asarray(self.rounds > 0)
        return np.full(self.shape[0], self.rounds > 0)

    @property
    def rounds_of_rows(self) -> Array:
        """The rounds of each row (K,), 1 for one that has not played."""
        return np.broadcast_to(np.maximum(self.rounds, 1.0), len(self.count))

    @property
    def played_losses(self) -> Array:
        """Loss suffered while playing each action (K, A), summed over rounds."""
        return np.asarray(np.einsum("kaa->ka", self.fixed))

    def mean_loss(self) -> Array:
        """Return the loss suffered per round (K,)."""
        return np.asarray(self.played_losses.sum(1) / self.rounds_of_rows)

    def comparators(self) -> Array:
        """Return each benchmark policy's loss per played action (K, A, A + C or C), summed."""
        return np.concatenate([self._sums_of_constants(self.fixed), self.followed], axis=2)

    def regret(self, measure: str) -> Array | None:
        """Return the regret per round of every row (K,).

        ``measure`` is one of ``MEASURES``; None where it is not kept or has no comparator.
        """
        return self.regrets([measure])[measure]

    def regrets(self, measures: Sequence[str]) -> dict[str, Array | None]:
        """Return the regrets per round of every row (K,), by measure, as ``regret`` does."""
        regret_per_round = self.regret_sums() / np.maximum(self.rounds, 1.0)  # (4, K)
        by_measure: dict[str, Array | None] = {}
        for measure in measures:
            if not self.has_regret(measure):
                by_measure[measure] = None
            elif measure == "contextual_swap":
                by_measure[measure] = self._contextual_swap_regret()
            else:
                by_measure[measure] = regret_per_round[MEASURES.index(measure)]
        return by_measure

    def has_regret(self, measure: str) -> bool:
        """Whether one of ``MEASURES`` is kept and has a comparator."""
        if measure not in self.measures:
            return False
        has_benchmark = self.constants or self.followed.shape[2] > 0
        return has_benchmark or measure in ("external", "swap")

    def regret_sums(self, rows: Indices | slice = slice(None)) -> Array:
        """Return every regret of some rows but the contextual one, summed over rounds (4, k).

        They are in the order of ``MEASURES``.
        """
        fixed = self.fixed[rows]
        followed = self.followed[rows]
        regret_sums = np.empty((1, 4, len(fixed)))
        over_rows(_write_regrets, len(fixed), fixed, followed, self.constants, regret_sums)
        return np.asarray(regret_sums[0])

    def bound_from_bias(self) -> Array | None:
        """Return the right-hand side of the module's inequality without the gap (K,).

        None for rows that formed no expectation.
        """
        if not self.expects:
            return None
        surprise_of_policies = self.surprise_followed
        has_comparators = self.constants or surprise_of_policies.shape[2] > 0
        if not has_comparators:
            return None
        bounds = np.empty(self.shape[0])
        over_rows(
            _write_excess_surprise,
            len(bounds),
            self.surprise_fixed,
            surprise_of_policies,
            self.constants,
            bounds,
        )
        return np.asarray(bounds / np.maximum(self.rounds, 1.0))

    def _contextual_swap_regret(self) -> Array | None:
        """Return the worst policy's contextual swap regret per round (K,), None of no policy.

        Where the constant policies are in the benchmark class they add plain swap regret: a
        replacement that depends on a constant suggestion depends on the action alone.
        """
        least_of_policies = self.contextual.min(4, initial=np.inf).sum((2, 3))  # (K, C)
        regret_of_policies = self.played_losses.sum(1)[:, None] - least_of_policies
        columns = [regret_of_policies]
        if self.constants:
            swap_regret = self.regret_sums()[MEASURES.index("swap")]
            columns.append(swap_regret[:, None])
        regrets = np.concatenate(columns, axis=1)
        if not regrets.shape[1]:
            return None
        return np.asarray(regrets.max(1) / self.rounds_of_rows)

    def _sums_of_constants(self, sums_by_action: Array) -> Array:
        """Return sums (K, A, A), or (K, A, 0) where constants are not in the benchmark class."""
        if self.constants:
            return sums_by_action
        return sums_by_action[..., :0]
