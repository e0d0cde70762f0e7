"""An adversary on top of data: it moves the rows of a table within a budget.

A scenario makes ``MovedRows`` where ``[data]`` stands beside an ``[adversary]`` with ``moves``. In
every round the table has a row x in [0, 1]^d, and the adversary, who knows it, may move each
coordinate j by at most its budget m_j. A move is a point z of the cube, 1/2 for none:

    y = clip(x + m (2 z - 1)),    the outcome, within [0, 1]^d

**An adversary without a list of outcomes** plays moves as if they were outcomes. The past that it
is shown are the moves that were played, and the labels of the forecast those to which a move would
have to lead: (label - x + m) / 2 m, clipped. One that sees losses is told, by ``meet``, what
followers lose after a move, on average over the rows of the run.

**A leader** (``agents.adversaries.leader``) chooses from a list. Its list is one of moves, and in
every round what they make of the row takes its place, so that it works with outcomes themselves:
with the history and the labels as they are, and with payoffs of the outcomes that are possible in
this round. What it commits to beside its list is clipped into the budget. When it meets its
followers, before any row is known, what moves pay and cost is averaged over the rows of the run; a
committer (``StackelbergCommitter``) commits to the mixture of moves that is best on this average.

**A coalition** moves rows by its members, each of which moves the coordinates that it is in charge
of, as above. For a member that needs full outcomes those of the others stand at the row.

A payoff is paid at the outcome y. There is no list of outcomes for all rounds: the value of a
commitment, which ``leader_surplus`` is measured from, is over the outcomes that occurred.

Shapes: d coordinates of an outcome, m outcomes of a list, K rows and A actions of a cohort.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.agents.adversaries.leader import Leader
from regretless.agents.adversaries.nature import Replay
from regretless.agents.adversaries.wrappers import Coalition, CoalitionMember
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.adversary_view import sight_of, translated_view
from regretless.market.game.protocols import (
    Adversary,
    Follower,
    Payoff,
    depends_on_losses_alone,
)
from regretless.market.losses import LipschitzLoss, Loss
from regretless.market.records import (
    AdversaryView,
    Context,
    History,
    Observation,
    OutcomeDistribution,
)

MAX_AVERAGED_ROWS = 256  # of the table, evenly spaced, in averages of what moves pay and cost


@dataclass(frozen=True, eq=False)
class Budget:
    """By how much each coordinate may be moved: ``moves`` (d,), in the scale of outcomes."""

    moves: Array

    def outcomes_of(self, moves: Array, row: Array) -> Array:
        """Return the outcomes (..., d) that moves in the cube (..., d) make of a row (..., d)."""
        return np.clip(row + self.moves * (2 * moves - 1), 0.0, 1.0)

    def moves_to(self, outcomes: Array, row: Array) -> Array:
        """Return the moves (..., d) that come nearest to outcomes; 1/2 where there is no budget."""
        has_budget = self.moves > 0
        width = np.where(has_budget, 2 * self.moves, 1.0)
        moves = np.clip((outcomes - row) / width + 0.5, 0.0, 1.0)
        return np.where(has_budget, moves, 0.5)

    def confined(self, outcomes: Array, row: Array) -> Array:
        """Return the nearest outcomes (..., d) that a move can make of a row."""
        lowest = self.outcomes_of(np.zeros_like(row), row)
        highest = self.outcomes_of(np.ones_like(row), row)
        return np.clip(outcomes, lowest, highest)


class HistoryOfMoves(History):
    """The past as moves: those that come nearest to the outcomes of each round."""

    def __init__(self, full_history: History, rows: Replay, budget: Budget) -> None:
        self._full_history = full_history
        self._rows = rows
        self._budget = budget
        self.rounds = full_history.rounds

    @property
    def mean(self) -> Array:
        """The move from the mean row to the mean outcome (d,); one half before the first round."""
        if not self.rounds:
            return self._full_history.mean
        return self._budget.moves_to(self._full_history.mean, self._rows.mean_of_first(self.rounds))

    def last(self, count: int = 1) -> Array:
        outcomes = self._full_history.last(count)
        rounds = np.arange(self.rounds - len(outcomes), self.rounds)
        return self._budget.moves_to(outcomes, self._rows.rows_of(rounds))


class AveragedPayoff(Payoff):
    """What moves pay on average over rows of a table."""

    def __init__(self, payoff: Payoff, rows: Array, budget: Budget) -> None:
        self.payoff = payoff
        self._rows = rows
        self._budget = budget
        self.of_losses = depends_on_losses_alone(payoff)  # type: ignore[misc]
        self.loss_of_outcomes: dict[int, Loss] = {}  # by the identity of an averaged loss

    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return the mean payoff (m, K, A) of moves (m, d) against an averaged loss."""
        original = self.loss_of_outcomes[id(loss)]
        return _mean_over_rows(
            lambda points: self.payoff.values(original, points), outcomes, self._rows, self._budget
        )


class MovedRows(Checkpointable, Adversary):
    """Plays the rows of a table, each moved by another adversary within a budget.

    Parameters
    ----------
    rows : Replay
        The table, whose contexts everybody sees.
    mover : Adversary
        Who moves the rows.
    moves : (d,)
        The budget of each coordinate, at least 0, in the scale of outcomes.
    rounds : int, optional
        The length of the run. Averages are over the rows that are played in it; without a length,
        over the whole table.

    The members of a coalition are replaced by such who move rows of their coordinates.
    """

    REMEMBERED = ("mover",)

    def __init__(
        self, rows: Replay, mover: Adversary, moves: Array, *, rounds: int | None = None
    ) -> None:
        self.rows = rows
        self.mover = mover
        self.outcomes = rows.outcomes
        self.sees = sight_of(mover)
        self.learns = mover.learns
        self.payoff = mover.payoff
        self.why_no_guarantee = rows.why_no_guarantee
        self._budget = Budget(np.asarray(moves, dtype=np.float64))
        self._rounds = rounds
        self._listed_moves: Array | None = None  # of a leader
        if isinstance(mover, Leader):
            self._listed_moves = np.asarray(mover.support)
        if isinstance(mover, Coalition):
            mover.members = [self._moving(member) for member in mover.members]

    def _moving(self, member: CoalitionMember) -> CoalitionMember:
        """Return a member of a coalition that moves the rows of its own coordinates."""
        own_rows = self.rows.of_coordinates(member.coordinates)
        own_moves = self._budget.moves[member.coordinates]
        mover = MovedRows(own_rows, member.adversary, own_moves, rounds=self._rounds)
        return replace(member, adversary=mover)

    @property
    def minds_market(self) -> bool:  # type: ignore[override]
        """Whether it plans with what a market makes of outcomes, as a leader may."""
        return self._listed_moves is not None and self.mover.minds_market

    @property
    def observes_play(self) -> bool:
        return self.mover.observes_play

    def fixed_distribution(self) -> OutcomeDistribution | None:
        """Return the distribution of the rows where nothing can be moved."""
        return None if self._budget.moves.any() else self.rows.fixed_distribution()

    def context(self, history: History) -> Context:
        return self.rows.context(history)

    def context_for_tables(self) -> Context:
        return self.rows.context_for_tables()

    def round_columns(self, round_index: int) -> Mapping[str, Any]:
        return self.rows.round_columns(round_index)

    def meet(self, followers: Sequence[Follower]) -> None:
        """Introduce followers by what they lose on average over the rows that are played."""
        table = self.rows.table[: self._rounds]
        n_averaged = min(len(table), MAX_AVERAGED_ROWS)
        chosen_rows = np.linspace(0, len(table) - 1, n_averaged).round().astype(np.intp)
        rows = table[chosen_rows]
        mover = self.mover
        if isinstance(mover, Coalition):
            mover.place_others(table.mean(0))
            mover.meet(followers)
            return
        averaged_followers = [self._averaged(follower, rows) for follower in followers]
        if not isinstance(mover, Leader):
            mover.meet(tuple(averaged_followers))
            return
        payoff = mover.payoff
        averaged_payoff = AveragedPayoff(payoff, rows, self._budget)
        for averaged, follower in zip(averaged_followers, followers, strict=True):
            averaged_payoff.loss_of_outcomes[id(averaged.loss)] = follower.loss
        mover.payoff = averaged_payoff
        try:
            mover.meet(tuple(averaged_followers))
        finally:
            mover.payoff = payoff
        mover.followers = tuple(followers)

    def _averaged(self, follower: Follower, rows: Array) -> Follower:
        """Return a follower whose losses are functions of moves, averaged over rows (T, d)."""
        loss = follower.loss
        low, high = loss.range()
        # A move of 1 moves an outcome by twice the budget.
        steepest = np.minimum(loss.lipschitz(), np.finfo(np.float64).max / 2)
        averaged_loss = LipschitzLoss(
            lambda moves: _mean_over_rows(loss.losses, moves, rows, self._budget),
            constant=steepest * min(1.0, 2 * float(self._budget.moves.max())),
            shape=loss.offset.shape,
            dimension=self.outcomes,
            low=low,
            high=high,
        )
        return replace(follower, loss=averaged_loss)

    def learn(self, payoff: float, observation: Observation) -> None:
        plays_moves = self._listed_moves is None and not isinstance(self.mover, Coalition)
        if plays_moves:
            row = self.rows.rows_of(observation.number)
            move = self._budget.moves_to(observation.outcome, row)
            observation = replace(observation, outcome=move)
        self.mover.learn(payoff, observation)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        row = self.rows.rows_of(history.rounds)
        mover = self.mover
        if isinstance(mover, Coalition):
            mover.place_others(row)
            return mover.commit(context, history, announced)
        if isinstance(mover, Leader):
            assert self._listed_moves is not None  # noqa: S101 - a leader has a list
            mover.choose_among(self._budget.outcomes_of(self._listed_moves, row))
            committed = mover.commit(context, history, announced)
            outcomes = self._budget.confined(committed.points, row)
        else:
            history_of_moves = HistoryOfMoves(history, self.rows, self._budget)
            view = translated_view(
                announced,
                self.sees,
                labels_for_it=lambda labels: self._budget.moves_to(labels, row),
                outcome_of=lambda move: self._budget.outcomes_of(move, row),
            )
            committed = mover.commit(context, history_of_moves, view)
            outcomes = self._budget.outcomes_of(committed.points, row)
        return OutcomeDistribution(outcomes, committed.weights)


def _mean_over_rows(
    function: Callable[[Array], Array], moves: Array, rows: Array, budget: Budget
) -> Array:
    """Return the mean over rows (T, d) of a function of the outcomes that moves (m, d) make."""
    total = np.zeros(())
    for row in rows:
        total = total + function(budget.outcomes_of(moves, row))
    return np.asarray(total / len(rows))
