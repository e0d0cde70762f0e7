r"""Seats at the table: who takes part, what they see, and how they are compared.

A seat is one cohort and what lies around it:

    attendance  which rows take part in a round              (below)
    signal      what its agents see beside the context       (below)
    budget      which actions they can afford                (``market.game.budget``)
    comparison  what they would have lost otherwise           (``market.regret.model_comparison``)
    deviations  who plays something else than the rule says  (``market.records``)

Each has a plain case that changes nothing, so that a round asks all seats alike.

**Attendance.** Cohorts and single agents may enter after the start, and leave. An agent is there in
the rounds t with ``entered <= t < left`` (rounds count from 0). Before and after it does not decide
(its action is -1), is not charged and learns nothing, and its measures are over its own rounds
alone. A ``Round`` holds None in place of a cohort of which nobody is there; a ``Decision`` says in
``present`` which rows of a cohort were, where some were not. Nobody else notices: a cohort neither
draws from another's random stream nor changes what is predicted.

Agents are listed, one entry of ``row_of`` each, or have a **multiplicity**, how many agents each
entry stands for. They have equal losses, one rule and one forecast, so that what a row is charged
and regrets is each one's, and all that adds up over agents is weighed by it.
Where they draw, the entry's agent in the tables is one of them, and only action counts are stored:
``taken`` reads them.

**Signals.** Only a signal sees the outcome before it is revealed. Agent i of a cohort with a
signal sees, beside the public context,

    x_i = y_g + s_i e_i,      e_i standard normal, drawn anew for every agent and round,

of the outcome y that the referee has drawn (a market may still move it), with noise s_i of its own;
s_i = 0 is an insider. Nobody else sees it, the forecaster and the adversary least of all. Its
benchmark policies may read it, too: they are then scored for each agent by what it saw. No theorem
covers regret to those, since the forecast was made in ignorance of the signal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.own_code import read_only
from regretless.market.game.budget import UNLIMITED, Unlimited
from regretless.market.game.protocols import Cohort
from regretless.market.numerics import exact_sum
from regretless.market.records import (
    NO_DEVIATIONS,
    Context,
    Decision,
    Deviations,
    Forecast,
    Policy,
    Round,
    checked_suggestion,
)
from regretless.market.regret.model_comparison import NOT_COMPARED, NotCompared

Rounds = Indices


FOREVER = int(np.iinfo(np.intp).max)


@dataclass(frozen=True, eq=False)
class Attendance:
    """When a cohort's rows are there: throughout, unless the rounds say otherwise.

    ValueError if a row leaves before it enters, or enters before round 0.

    Parameters
    ----------
    entered : int array (K,), or () for all
        The round before which each enters; the number of rounds of the run for a row that never
        does.
    left : int array (K,), or () for all
        The round before which it leaves.
    """

    entered: Rounds = field(default_factory=lambda: np.array(0))
    left: Rounds = field(default_factory=lambda: np.array(FOREVER))

    def __post_init__(self) -> None:
        if self.entered.shape != self.left.shape or (self.entered < 0).any():
            raise ValueError("a stay needs a round of at least 0 for each row")
        if (self.left < self.entered).any():
            raise ValueError("a row leaves before it enters")

    @property
    def throughout(self) -> bool:
        """Whether all rows are there in all rounds."""
        return not self.entered.ndim

    def some(self, number: int) -> Mask | None:
        """Say which rows take part in a round (K,); None where all do."""
        rows = np.asarray((self.entered <= number) & (number < self.left))
        return None if rows.all() else rows

    def spent(self, rounds: int) -> Rounds | int:
        """Return how many of the first rounds each row was there (K,), one number for all alike."""
        spent = np.clip(rounds, self.entered, self.left) - self.entered
        return int(spent) if self.throughout else np.asarray(spent)

    def turn(self, place: int, turns: int) -> "Attendance":
        """Return the stay in the rounds of one of several who take turns, counted by its own."""
        ends = self.entered, self.left
        return Attendance(*(np.maximum(-((place - end) // turns), 0) for end in ends))

    def awaited(self, rows: int, rounds: int) -> Mask:
        """Say who has not played yet after so many rounds, although the game has begun (K,)."""
        return np.broadcast_to((self.entered > 0) & (self.entered >= rounds), rows)

    def span(self, rows: int) -> "Attendance":
        """Return the same with a round for each of so many rows."""
        return Attendance(*(np.broadcast_to(end, rows) for end in (self.entered, self.left)))

    def of(self, rows: Indices) -> "Attendance":
        """Return when some of the rows are there."""
        return self if self.throughout else Attendance(self.entered[rows], self.left[rows])

    def watch(self) -> Indices:
        """Return rows of whom one is there whenever anybody is: while nobody is, nobody draws.

        None where everybody always is.
        """
        rows, now = list[int](), 0
        while not self.throughout and (later := self.left > np.maximum(now, self.entered)).any():
            now = max(now, int(self.entered[later].min()))
            rows.append(int(np.where(self.entered <= now, self.left, -1).argmax()))
            now = int(self.left[rows[-1]])
        return np.array(rows, dtype=np.intp)


ALWAYS = Attendance()


def together(rows: int, *, enters: int = 0) -> Attendance:
    """Return the stay of rows that come together and never go."""
    return Attendance(np.full(rows, enters), np.full(rows, FOREVER))


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
    strategy, choices, counts = decision.strategy, decision.choices, decision.counts
    return decision.changed(
        strategy=None if strategy is None else np.where(here[:, None], strategy, 0.0),
        choices=None if choices is None else np.where(here, choices, -1),
        actions=np.where(here[row_of], decision.actions, -1),
        counts=None if counts is None else lambda: np.where(here[:, None], counts(), 0.0),
        present=here,
    )


def mean_over(cohort: Cohort, values: Array, who: Mask) -> float:
    """Return the mean of what the rows have (K,) over the agents of some entries (N,)."""
    return mean_by_multiplicity(values[cohort.row_of[who]], cohort.multiplicity_of(who))


def mean_by_multiplicity(values: Array, multiplicity: Indices | None) -> float:
    """Return the mean of what entries have (n,), weighed by their multiplicity."""
    return float(
        values.mean() if multiplicity is None else np.average(values, weights=multiplicity)
    )


@dataclass(frozen=True, eq=False)
class Taken:
    """Who of a cohort took which action in a round.

    Parameters
    ----------
    rows, actions : int array (n,)
    multiplicity : array (n,) or None
        How many agents of the row took it; None for one each.
    """

    rows: Indices
    actions: Indices
    multiplicity: Array | Indices | None

    @property
    def agents(self) -> float:
        """How many took part."""
        return len(self.rows) if self.multiplicity is None else float(self.multiplicity.sum())

    def weighed(self, table: Array) -> Array:
        """Return what they have in a table (K, A, ...) by their rows and actions (n, ...)."""
        own = table[self.rows, self.actions]
        return own if self.multiplicity is None else np.asarray((own.T * self.multiplicity).T)

    def total(self, table: Array) -> Array:
        """Return the sum of what all have in a table (K, A, c), exactly: (2, c)."""
        multiplicity = (
            np.zeros(0) if self.multiplicity is None else np.asarray(self.multiplicity, np.float64)
        )
        return np.asarray(exact_sum.total_taken(table, self.rows, self.actions, multiplicity))

    def per_action(self, actions: int) -> Array:
        """Return how many agents took each of so many actions (A,)."""
        return np.asarray(
            np.bincount(self.actions, self.multiplicity, minlength=actions), np.float64
        )


def taken(cohort: Cohort, actions: Indices, counts: Callable[[], Array] | None) -> Taken:
    """Say who took which action, of the agents who were there.

    ``actions``, ``counts``: as in a ``Decision``.
    """
    if counts is not None:  # every row and action, as often as it was drawn
        multiplicity = counts()
        rows, columns = np.indices(multiplicity.shape)
        return Taken(rows.ravel(), columns.ravel(), multiplicity.ravel())
    here = actions >= 0
    if here.all():
        return Taken(cohort.row_of, actions, cohort.multiplicity)
    return Taken(cohort.row_of[here], actions[here], cohort.multiplicity_of(here))


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
) -> Attendance:
    """Draw when each agent enters and leaves: one visit, of geometric waiting and staying times.

    In every round from the first of the window an agent who has not come yet enters with the
    probability ``entry_rate``, and one who has played it leaves with the probability ``exit_rate``.
    Returns Attendance: of N rows; whoever would enter too late has entered and left at the end
    of the window.

    Parameters
    ----------
    agents : int
        N.
    window : (int, int)
        First round, and the round before which all who are left leave.
    rates : (float or None, float or None)
        Entry and exit, in (0, 1]; None for everybody at once at the end of the window in question.
    """
    first, last = window
    entry, leave = rates
    wait: ArrayLike = 0 if entry is None else rng.geometric(entry, agents) - 1
    entered = np.minimum(np.broadcast_to(first + np.asarray(wait), agents), last)
    if leave is None:
        return Attendance(entered.astype(np.intp), np.full(agents, last))
    left = np.minimum(entered + rng.geometric(leave, agents), last)
    return Attendance(entered.astype(np.intp), left.astype(np.intp))


class NoSignal(Checkpointable):
    """Nobody sees more than the public context."""

    def seen(self, context: Context, outcome: Array) -> Context:
        """Return what the agents see before they decide."""
        return context


PUBLIC = NoSignal()


class Signal(NoSignal):
    """What each agent of a cohort sees of the outcome.

    Parameters
    ----------
    name : str
        Under which its context holds it.
    coordinate : int
        g, of the outcome.
    noise : array (N,)
        s_i, at least 0.
    rng : numpy Generator
        The referee's own, for this cohort.
    """

    REMEMBERED = ("rng",)

    def __init__(
        self, name: str, coordinate: int, *, noise: Array, rng: np.random.Generator
    ) -> None:
        self.name, self.coordinate, self.noise, self.rng = name, coordinate, noise, rng

    def seen(self, context: Context, outcome: Array) -> Context:
        drawn = outcome[self.coordinate] + self.noise * self.rng.standard_normal(len(self.noise))
        return replace(context, own=MappingProxyType({self.name: read_only(drawn)}))


def suggestions(policies: Sequence[Policy], context: Context, actions: int) -> Indices:
    """Ask benchmark policies; UserError if an answer is not one of the actions.

    Returns int array (C,), or (C, N): a suggestion for everybody, or one for each agent where they
    have signals.
    """
    if not context.own:
        told = [checked_suggestion(policy, context, actions) for policy in policies]
        return np.array(told, dtype=np.intp)
    each = [context.of(agent) for agent in range(len(next(iter(context.own.values()))))]
    made = np.empty((len(policies), len(each)), dtype=np.intp)
    for j, policy in enumerate(policies):
        made[j] = [checked_suggestion(policy, own, actions) for own in each]
    return made


@dataclass
class Seat:
    """One cohort at the table.

    ValueError if the attendance is of another number of rows.

    Parameters
    ----------
    cohort : Cohort
        K rows that the ledger scores, N agents.
    attendance : Attendance
        When its rows are there.
    signal : NoSignal
        What its agents see of the outcome before they decide.
    budget : Unlimited
        Which actions they choose among.
    comparison : NotCompared
        The alternatives with which they are compared.
    deviations : Deviations
        The rows that play something else than their rule.
    """

    cohort: Cohort
    attendance: Attendance = ALWAYS
    signal: NoSignal = PUBLIC
    budget: Unlimited = UNLIMITED
    comparison: NotCompared = NOT_COMPARED
    deviations: Deviations = NO_DEVIATIONS

    def __post_init__(self) -> None:
        stay = self.attendance
        if not stay.throughout and len(stay.entered) != self.rows:
            name = self.cohort.name
            raise ValueError(f"{name} has {self.rows} rows and a stay of {len(stay.entered)}")

    @property
    def rows(self) -> int:
        """K, of the ledger."""
        return len(self.cohort.ledger.count)

    def present(self, number: int) -> bool:
        """Whether anybody takes part in a round."""
        here = self.attendance.some(number)
        return here is None or bool(here.any())

    def decide(
        self, forecast: Forecast, context: Context, *, number: int, affordable: Mask | None
    ) -> Decision | None:
        """Let those who are here decide; None where nobody is.

        Parameters
        ----------
        forecast : Forecast
            Of the block that the cohort hears.
        context : Context
            With the signal of each agent, where there is one.
        number : int
            Of the round.
        affordable : bool array (N, A) or None
            Which actions each agent can pay for; None for all.
        """
        if not self.present(number):
            return None
        here = self.attendance.some(number)
        self.cohort.attend(here, affordable)
        decision = self.deviations.decision(self.cohort.decide(forecast, context), context)
        decision = self.budget.limited(decision, affordable, here)
        return seated(decision, here, self.cohort.row_of)

    def charge(
        self, decision: Decision | None, losses: Array | None, outcome: Array, awake: Mask | None
    ) -> Array | None:
        """Return the losses (K, A) of all actions that the ledger charges.

        ``losses`` (K, A) or None: what the market says, where losses are personal; None for the
        loss at the outcome.
        """
        if decision is None:
            return None
        own = decision.losses(self.cohort.loss, outcome) if losses is None else losses
        return self.budget.charged(own, decision, awake)

    def record(
        self,
        decision: Decision | None,
        losses: Array | None,
        context: Context,
        *,
        number: int,
        outcome: Array,
    ) -> None:
        """Add the round, unless nobody was here, and let the cohort learn."""
        if decision is None or losses is None:
            return
        suggested = suggestions(self.cohort.policies, context, self.cohort.loss.actions)
        self.cohort.ledger.add(decision, losses, suggested)
        self.comparison.add(number, decision, losses, suggested)
        self.cohort.learn(decision, losses, outcome)

    def players(self) -> dict[str, object]:
        """Whatever here has a memory of its own, by name, for checkpoints."""
        name = self.cohort.name
        around = {"models": self.comparison, "signal": self.signal, "means": self.budget}
        named = {f"{what} of {name}": who for what, who in around.items() if who.REMEMBERED}
        return named | {f"cohort {name}": self.cohort}

    def awaited(self, rounds: int) -> Mask:
        """Say which rows, of those that come late, have not played after so many rounds (K,)."""
        return np.asarray(self.attendance.awaited(self.rows, rounds))
