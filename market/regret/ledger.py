r"""The regret ledger: running sums from which every regret is read in a few array passes.

Each cohort has one ledger and calls ``add`` once per round; tables, verdicts and bounds read
``regret``, ``mean_loss`` and ``bound_from_bias`` whenever they are asked for. Every figure that is
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
from regretless.market.numerics.storage import prefetch, staggered_tables
from regretless.market.records import Decision

PREFETCH_DISTANCE = 32  # rows between asking memory for one and its use
MEASURES = ("external", "swap", "omniprediction", "decision_swap", "contextual_swap")
DEFAULT_MEASURES = MEASURES[:4]  # contextual swap regret takes A times as much memory
NOTHING_EXPECTED: Array = np.empty((0, 0))  # the losses that rows expect who expect none


@compiled(nogil=True)
def _add_rounds(
    strategies: Array, losses: Array, count: Array, fixed: Array, first: int, last: int
) -> None:
    """Add rounds of mixed play to the rows from ``first`` to before ``last`` (compiled).

    Parameters
    ----------
    strategies : array (T, K, A)
        Probability with which each row plays each action in each round; not modified.
    losses : array (T, K, A)
        Losses of all actions; not modified.
    count : array (K, A)
        How often each action was played, in probability; added to in place.
    fixed : array (K, A, A)
        Sums of losses by action played and by comparator; added to in place.
    first, last : int
        Span of rows.
    """
    for k in range(first, last):
        for t in range(strategies.shape[0]):
            for a in range(strategies.shape[2]):
                probability = strategies[t, k, a]
                count[k, a] += probability
                if probability != 0.0:
                    for b in range(strategies.shape[2]):
                        fixed[k, a, b] += probability * losses[t, k, b]


@compiled(nogil=True)
def _add_mixed_play(
    strategies: Array, predicted: Array, losses: Array, suggested: Indices, count: Array,
    fixed: Array, followed: Array, contextual: Array,
    surprise_fixed: Array, surprise_followed: Array, first: int, last: int,
) -> None:  # fmt: skip
    """Add a round of mixed play to the rows from ``first`` to before ``last`` (compiled).

    Parameters
    ----------
    strategies : array (K, A)
        Probability with which each row plays each action; zeros for an absent row.
    predicted : array (K, A), or empty
        Losses that the rows expected; empty where they expect none, and then the surprises are left
        alone.
    losses : array (K, A)
        Losses at the outcome.
    suggested : int array (C, 1) or (C, K)
        The action that each policy suggests to all rows, or to each.
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
    first, last : int
        Span of rows.
    """
    same_for_all = suggested.shape[1] == 1
    expects = predicted.shape[0] > 0
    for row in range(first, last):
        suggestions = suggested[:, 0 if same_for_all else row]
        for action in range(strategies.shape[1]):
            probability = strategies[row, action]
            if probability == 0.0:
                continue
            count[row, action] += probability
            for comparator in range(losses.shape[1]):
                fixed[row, action, comparator] += probability * losses[row, comparator]
                if expects:
                    surprise = predicted[row, comparator] - losses[row, comparator]
                    surprise_fixed[row, action, comparator] += probability * surprise
            for policy in range(len(suggestions)):
                suggestion = suggestions[policy]
                followed[row, action, policy] += probability * losses[row, suggestion]
                if expects:
                    surprise = predicted[row, suggestion] - losses[row, suggestion]
                    surprise_followed[row, action, policy] += probability * surprise
                if contextual.shape[0]:  # contextual sums are kept
                    for comparator in range(losses.shape[1]):
                        contextual[row, policy, suggestion, action, comparator] += (
                            probability * losses[row, comparator]
                        )


@compiled(nogil=True)
def _add_pure_play(
    choices: Indices, predicted: Array, losses: Array, suggested: Indices, count: Array,
    fixed: Array, followed: Array, surprise_fixed: Array, surprise_followed: Array,
    first: int, last: int,
) -> None:  # fmt: skip
    """Add what ``_add_mixed_play`` adds for pure play, in one pass over a span of rows (compiled).

    It touches the rows of the played actions alone. These lie far apart in memory, which is
    therefore asked for them ``PREFETCH_DISTANCE`` rows ahead.

    Parameters
    ----------
    choices : int array (K,)
        The action of each row, -1 for an absent one.
    predicted, losses : array (K, A)
        Losses that the rows expected and losses at the outcome.
    suggested : int array (C,)
        The action that each policy suggests to all rows.
    count : array (K, A)
        How often each action was played; added to in place.
    fixed, surprise_fixed : array (K, A, A)
        Sums of losses, and of expected minus realised losses, by constant comparator; added to in
        place.
    followed, surprise_followed : array (K, A, C)
        The same by policy; added to in place.
    first, last : int
        Span of rows.
    """
    for row in range(first, last):
        later_row = min(row + PREFETCH_DISTANCE, last - 1)
        prefetch(fixed, later_row, max(choices[later_row], 0))
        prefetch(surprise_fixed, later_row, max(choices[later_row], 0))
        action = choices[row]
        if action < 0:
            continue
        count[row, action] += 1.0
        for comparator in range(losses.shape[1]):
            fixed[row, action, comparator] += losses[row, comparator]
            surprise_fixed[row, action, comparator] += (
                predicted[row, comparator] - losses[row, comparator]
            )
        for policy in range(suggested.shape[0]):
            comparator = suggested[policy]
            followed[row, action, policy] += losses[row, comparator]
            surprise_followed[row, action, policy] += (
                predicted[row, comparator] - losses[row, comparator]
            )


@compiled(nogil=True)
def _write_regrets(
    fixed: Array, followed: Array, constants: bool, regrets: Array,  # noqa: FBT001
    first: int, last: int,
) -> None:  # fmt: skip
    """Write all regrets of a span of rows but the contextual one, in one pass (compiled).

    The loss suffered less that of the best comparators: of one for all rounds (external,
    omniprediction), or of one for each action played (swap, decision swap).

    Parameters
    ----------
    fixed : array (K, A, A)
        Sums by row, action played and constant comparator; the diagonal is the loss suffered.
    followed : array (K, A, C)
        Sums by row, action played and policy.
    constants : bool
        Whether constants are in the benchmark class of omniprediction and decision swap regret.
    regrets : array (4, K)
        Written, in the order of ``MEASURES``: sums over rounds, not averages. Minus infinity where
        there is no comparator.
    first, last : int
        Span of rows.
    """
    n_actions = fixed.shape[1]
    n_policies = followed.shape[2]
    for k in range(first, last):
        suffered = 0.0
        swap = 0.0
        decision_swap = 0.0
        for action in range(n_actions):
            suffered_with_action = fixed[k, action, action]
            least_fixed = np.inf
            for comparator in range(n_actions):
                least_fixed = min(least_fixed, fixed[k, action, comparator])
            least = least_fixed if constants else np.inf
            for policy in range(n_policies):
                least = min(least, followed[k, action, policy])
            suffered += suffered_with_action
            swap += suffered_with_action - least_fixed
            decision_swap += suffered_with_action - least

        least_fixed = np.inf
        for comparator in range(n_actions):
            total = 0.0
            for action in range(n_actions):
                total += fixed[k, action, comparator]
            least_fixed = min(least_fixed, total)
        least = least_fixed if constants else np.inf
        for policy in range(n_policies):
            total = 0.0
            for action in range(n_actions):
                total += followed[k, action, policy]
            least = min(least, total)
        regrets[0, k] = suffered - least_fixed
        regrets[1, k] = swap
        regrets[2, k] = suffered - least
        regrets[3, k] = decision_swap


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

    Attributes
    ----------
    rounds : int or int array (K,)
        Rounds that were added: one number while no row has ever been absent, then one per row.
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
        self.rounds = self.rounds + len(strategies)
        self.expects = False
        over_rows(_add_rounds, len(self.count), strategies, losses, self.count, self.fixed)

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
        self.rounds = self.rounds + (1 if decision.present is None else decision.present)
        n_rows = len(self.count)
        predicted = decision.predicted
        is_same_for_all = suggested.ndim == 1
        if decision.choices is not None and is_same_for_all and not len(self.contextual):
            over_rows(
                _add_pure_play,
                n_rows,
                decision.choices,
                predicted,
                losses,
                suggested,
                self.count,
                self.fixed,
                self.followed,
                self.surprise_fixed,
                self.surprise_followed,
            )
            return

        self.expects = self.expects and predicted is not None
        if predicted is None:
            predicted = NOTHING_EXPECTED
        if is_same_for_all:
            suggested = suggested[:, np.newaxis]
        over_rows(
            _add_mixed_play,
            n_rows,
            decision.probabilities,
            predicted,
            losses,
            suggested,
            self.count,
            self.fixed,
            self.followed,
            self.contextual,
            self.surprise_fixed,
            self.surprise_followed,
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
            table = vars(self)[name]
            if name in self.EXCERPT_SUMS:
                setattr(excerpt, name, np.array(table[rows]))
            else:
                setattr(excerpt, name, table[:0])
        if isinstance(self.rounds, np.ndarray):
            excerpt.rounds = np.array(self.rounds[rows])
        return excerpt

    def since(self, earlier: "Ledger") -> "Ledger":
        """Return the sums of the rounds after an earlier excerpt of the same rows."""
        window = copy(self)
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
        regret_per_round = self._summed_regrets() / np.maximum(self.rounds, 1.0)  # (4, K)
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

    def write_regret_sums(self, regrets: Array, rows: Indices | slice = slice(None)) -> None:
        """Write every regret of some rows but the contextual one, summed over rounds.

        ``regrets`` (4, k) is written, in the order of ``MEASURES``.
        """
        fixed = self.fixed
        followed = self.followed
        if isinstance(rows, np.ndarray):
            fixed = fixed[rows]
            followed = followed[rows]
        over_rows(_write_regrets, len(fixed), fixed, followed, self.constants, regrets)

    def bound_from_bias(self) -> Array | None:
        """Return the right-hand side of the module's inequality without the gap (K,).

        None for rows that formed no expectation.
        """
        if not self.expects:
            return None
        surprise_of_constants = self._sums_of_constants(self.surprise_fixed)
        surprise_of_policies = self.surprise_followed
        has_comparators = surprise_of_constants.shape[2] + surprise_of_policies.shape[2] > 0
        if not has_comparators:
            return None
        surprise_of_played = np.einsum("kaa->ka", self.surprise_fixed)
        greatest_surprise = np.maximum(  # over the comparators (K, A)
            surprise_of_constants.max(2, initial=-np.inf),
            surprise_of_policies.max(2, initial=-np.inf),
        )
        excess = greatest_surprise - surprise_of_played
        return np.asarray(excess.sum(1) / self.rounds_of_rows)

    def _contextual_swap_regret(self) -> Array | None:
        """Return the worst policy's contextual swap regret per round (K,), None of no policy.

        Where the constant policies are in the benchmark class they add plain swap regret: a
        replacement that depends on a constant suggestion depends on the action alone.
        """
        least_of_policies = self.contextual.min(4, initial=np.inf).sum((2, 3))  # (K, C)
        regret_of_policies = self.played_losses.sum(1)[:, None] - least_of_policies
        columns = [regret_of_policies]
        if self.constants:
            swap_regret = self._summed_regrets()[MEASURES.index("swap")]
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

    def _summed_regrets(self) -> Array:
        """Return all regrets but the contextual one (4, K), summed over rounds, by measure."""
        regrets = np.empty((4, len(self.count)))
        self.write_regret_sums(regrets)
        return regrets
