"""Who is at the table: cohorts and single agents may enter after the start, and leave.

An agent is there in the rounds t with ``entered <= t < left`` (rounds count from 0). Before and
after it does not decide (its action is -1), is not charged and learns nothing, and its measures are
over its own rounds alone. A ``Round`` holds None in place of a cohort of which nobody is there; a
``Decision`` says in ``present`` which rows of a cohort were, where some were not. Nobody else
notices: a cohort neither draws from another's random stream nor changes what is predicted.

Agents are listed, one entry of ``row_of`` each, or **counted**: then a cohort has ``heads``, how
many agents each entry stands for. They have equal losses, one rule and one forecast, so that what
a row is charged and regrets is each one's, and all that adds up over agents is weighed by heads.
Where they draw, one of them is the entry's agent in the tables, and of all together it is known how
many did what: ``taken`` reads it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.protocols import Cohort
from regretless.market.kernels import exact
from regretless.market.records import Decision, Round

Rounds = Indices


class Attendance:
    """When a cohort's rows are there: throughout, unless a ``Stay`` says otherwise."""

    throughout: ClassVar[bool] = True

    def some(self, number: int) -> Mask | None:
        """Say which rows take part in a round (K,); None where all do."""
        return None

    def spent(self, rounds: int) -> Rounds | int:
        """Return how many of the first rounds each row was there (K,), one number for all alike."""
        return rounds

    def awaited(self, rows: int, rounds: int) -> Mask:
        """Say who has not played yet after so many rounds, although the game has begun (K,)."""
        return np.zeros(rows, dtype=np.bool_)

    def span(self, rows: int) -> "Stay":
        """Return the rounds before which each of so many rows enters and leaves."""
        return whole(rows)

    def of(self, rows: Indices) -> "Attendance":
        """Return when some of the rows are there."""
        return self

    def check(self, name: str, rows: int) -> None:
        """Raise ValueError unless it fits a cohort of so many rows."""


ALWAYS = Attendance()


@dataclass(frozen=True, eq=False)
class Stay(Attendance):
    """When a cohort's rows are there.

    Parameters
    ----------
    entered : int array (K,)
        The round before which each enters, at least 0; the number of rounds of the run for a row
        that never does.
    left : int array (K,)
        The round before which it leaves.

    Raises
    ------
    ValueError
        If a row leaves before it enters, or enters before round 0.
    """

    throughout: ClassVar[bool] = False

    entered: Rounds
    left: Rounds

    def __post_init__(self) -> None:
        if self.entered.shape != self.left.shape or (self.entered < 0).any():
            raise ValueError("a stay needs a round of at least 0 for each row")
        if (self.left < self.entered).any():
            raise ValueError("a row leaves before it enters")

    def here(self, number: int) -> Mask:
        """Say who takes part in a round (K,)."""
        return np.asarray((self.entered <= number) & (number < self.left))

    def some(self, number: int) -> Mask | None:
        """Say which rows take part in a round (K,); None where all do."""
        rows = self.here(number)
        return None if rows.all() else rows

    def spent(self, rounds: int) -> Rounds:
        """Return how many of the first rounds each was there (K,)."""
        return np.asarray(np.clip(rounds, self.entered, self.left) - self.entered)

    def awaited(self, rows: int, rounds: int) -> Mask:
        """Say who has not played yet after so many rounds, although the game has begun (K,)."""
        return np.asarray((self.entered > 0) & (self.entered >= rounds))

    def span(self, rows: int) -> "Stay":
        """Return itself."""
        return self

    def of(self, rows: Indices) -> "Stay":
        """Return when some of the rows are there."""
        return Stay(self.entered[rows], self.left[rows])

    def check(self, name: str, rows: int) -> None:
        """Raise ValueError unless it fits a cohort of so many rows."""
        if len(self.entered) != rows:
            raise ValueError(f"{name} has {rows} rows and a stay of {len(self.entered)}")


def whole(rows: int, *, joins: int = 0) -> Stay:
    """Return the stay of rows that come together and never go."""
    return Stay(np.full(rows, joins), np.full(rows, np.iinfo(np.intp).max))


def seated(decision: Decision, here: Mask | None, row_of: Indices) -> Decision:
    """Take out of a decision what absent rows and their agents would have done.

    Parameters
    ----------
    decision : Decision
        Of all rows.
    here : bool array (K,) or None
        Who takes part; None for all.
    row_of : int array (N,)
    """
    if here is None:
        return decision
    return replace(
        decision,
        law=None if decision.law is None else np.where(here[:, None], decision.law, 0.0),
        choices=None if decision.choices is None else np.where(here, decision.choices, -1),
        actions=np.where(here[row_of], decision.actions, -1),
        counts=None if decision.counts is None else partial(_of_those, decision.counts, here),
        present=here,
    )


def _of_those(counts: Callable[[], Array], here: Mask) -> Array:
    return np.where(here[:, None], counts(), 0.0)


def heads_of(cohort: Cohort) -> Indices | None:
    """Return how many agents each entry of ``row_of`` stands for (N,); None where each is one."""
    return cohort.heads


def population(cohort: Cohort) -> int:
    """Return how many agents a cohort has, here or not."""
    heads = heads_of(cohort)
    return len(cohort.row_of) if heads is None else int(heads.sum())


def per_row(cohort: Cohort) -> Array:
    """Return how many agents each row stands for (K,)."""
    counts = np.bincount(cohort.row_of, heads_of(cohort), minlength=len(cohort.loss))
    return counts.astype(np.float64)


def mean_over(cohort: Cohort, values: Array, who: Mask) -> float:
    """Return the mean of what the rows have (K,) over the agents of some entries (N,)."""
    heads = heads_of(cohort)
    return mean_of_heads(values[cohort.row_of[who]], None if heads is None else heads[who])


def mean_of_heads(values: Array, heads: Indices | None) -> float:
    """Return the mean of what entries have (n,), each weighed by its heads, if there are any."""
    return float(values.mean() if heads is None else np.average(values, weights=heads))


@dataclass(frozen=True, eq=False)
class Taken:
    """Who of a cohort took which action in a round.

    Parameters
    ----------
    rows, actions : int array (n,)
    heads : array (n,) or None
        How many agents of the row took it; None for one each.
    """

    rows: Indices
    actions: Indices
    heads: Array | Indices | None

    @property
    def agents(self) -> float:
        """How many took part."""
        return len(self.rows) if self.heads is None else float(self.heads.sum())

    def weighed(self, table: Array) -> Array:
        """Return what they have in a table (K, A, ...) by their rows and actions (n, ...)."""
        own = table[self.rows, self.actions]
        return own if self.heads is None else np.asarray((own.T * self.heads).T)

    def total(self, table: Array) -> Array:
        """Return the sum of what all have in a table (K, A, c), exactly: (2, c)."""
        heads = np.zeros(0) if self.heads is None else np.asarray(self.heads, np.float64)
        return np.asarray(exact.total_taken(table, self.rows, self.actions, heads))

    def per_action(self, actions: int) -> Array:
        """Return how many agents took each of so many actions (A,)."""
        return np.asarray(np.bincount(self.actions, self.heads, minlength=actions), np.float64)


@dataclass(frozen=True, eq=False)
class Counted:
    """The same of a crowd that is counted and draws, over all rows and actions: n = K A.

    Parameters
    ----------
    heads : array (K, A)
        How many agents of each row took each action.
    """

    heads: Array

    @property
    def agents(self) -> float:
        """How many took part."""
        return float(self.heads.sum())

    def weighed(self, table: Array) -> Array:
        """Return what they have in a table (K, A, ...) by their rows and actions (n, ...)."""
        heads = self.heads.reshape(self.heads.shape + (1,) * (table.ndim - 2))
        return np.asarray((heads * table).reshape(-1, *table.shape[2:]))

    def total(self, table: Array) -> Array:
        """Return the sum of what all have in a table (K, A, c), exactly: (2, c)."""
        heads = self.heads.ravel().astype(np.float64)
        return exact.total(table.reshape(len(heads), -1), heads)

    def per_action(self, actions: int) -> Array:
        """Return how many agents took each of so many actions (A,)."""
        totals = self.heads.sum(0)
        return np.asarray(np.bincount(np.arange(len(totals)), totals, minlength=actions))


def taken(cohort: Cohort, actions: Indices, counts: Callable[[], Array] | None) -> Taken | Counted:
    """Say who took which action, of the agents who were there.

    Parameters
    ----------
    actions, counts
        As in a ``Decision``.
    """
    if counts is not None:
        return Counted(counts())
    here, heads = actions >= 0, heads_of(cohort)
    if here.all():
        return Taken(cohort.row_of, actions, heads)
    return Taken(cohort.row_of[here], actions[here], None if heads is None else heads[here])


def attending(decision: Decision, cohort: Cohort) -> Mask:
    """Say which agents of a cohort took part in a round (N,)."""
    if decision.present is None:
        return np.ones(len(cohort.row_of), dtype=np.bool_)
    return np.asarray(decision.present[cohort.row_of])


def present(
    cohorts: Sequence[Cohort], played: Round
) -> Iterator[tuple[int, Cohort, Decision, Array]]:
    """Yield the cohorts that took part in a round, with at least one row.

    Yields
    ------
    place : int
        Among all cohorts of the game.
    cohort : Cohort
    decision : Decision
    losses : array (K, A)
    """
    for place, cohort in enumerate(cohorts):
        decision, losses = played.decisions[place], played.losses[place]
        if decision is not None and losses is not None:
            yield place, cohort, decision, losses


def drawn_stays(
    rng: np.random.Generator,
    agents: int,
    *,
    window: tuple[int, int],
    rates: tuple[float | None, float | None],
) -> Stay:
    """Draw when each agent enters and leaves: one visit, of geometric waiting and staying times.

    In every round from the first of the window an agent who has not come yet enters with the
    probability ``entry_rate``, and one who has played it leaves with the probability ``exit_rate``.

    Parameters
    ----------
    agents : int
        N.
    window : (int, int)
        First round, and the round before which all who are left leave.
    rates : (float or None, float or None)
        Entry and exit, in (0, 1]; None for everybody at once at the end of the window in question.

    Returns
    -------
    Stay
        Of N rows; whoever would enter too late has entered and left at the end of the window.
    """
    first, last = window
    entry, leave = rates
    wait: ArrayLike = 0 if entry is None else rng.geometric(entry, agents) - 1
    entered = np.minimum(np.broadcast_to(first + np.asarray(wait), agents), last)
    if leave is None:
        return Stay(entered.astype(np.intp), np.full(agents, last))
    left = np.minimum(entered + rng.geometric(leave, agents), last)
    return Stay(entered.astype(np.intp), left.astype(np.intp))
