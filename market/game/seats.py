r"""Seats at the table: one cohort each, and what lies around it.

Each part has a plain case that changes nothing, so that a round asks all seats alike. When agents
are there, ``attendance`` says.

**Multiplicity.** An entry of ``row_of`` stands for one agent, or for several: they have equal
losses, one rule and one forecast, so that what a row is charged and regrets is each one's, and all
that adds up over agents is weighed by it. Where they draw, the entry's agent in the tables is one
of them, and only action counts are stored: ``taken`` reads them.

**Signals.** Only a signal sees the outcome before it is revealed. Agent i of a cohort with a
signal sees, beside the public context,

    x_i = y_g + s_i e_i,      e_i standard normal, drawn anew for every agent and round,

of the outcome y that the referee has drawn (a market may still move it), with noise s_i of its own.
Its benchmark policies may read it, too. No theorem covers regret to those: the forecast was made in
ignorance of the signal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.own_code import read_only
from regretless.market.game.attendance import ALWAYS, Attendance
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


@dataclass(frozen=True, eq=False)
class Taken:
    """Who of a cohort took which action in a round, by rows and actions (n,)."""

    rows: Indices
    actions: Indices
    multiplicity: Array | Indices | None  # how many agents of the row (n,); None for one each

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
        many = np.ones(len(self.rows)) if self.multiplicity is None else self.multiplicity
        return exact_sum.total(table[self.rows, self.actions], np.asarray(many, np.float64))

    def per_action(self, actions: int) -> Array:
        """Return how many agents took each of so many actions (A,)."""
        counts = np.bincount(self.actions, self.multiplicity, minlength=actions)
        return np.asarray(counts, np.float64)


def taken(cohort: Cohort, actions: Indices, counts: Callable[[], Array] | None) -> Taken:
    """Say who took which action, of those who were there; arguments as in a ``Decision``."""
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
    """Yield the cohorts of which a row took part: place, cohort, decision and losses (K, A)."""
    for place, cohort in enumerate(cohorts):
        decision, losses = played.decisions[place], played.losses[place]
        if decision is not None and losses is not None:
            yield place, cohort, decision, losses


class NoSignal(Checkpointable):
    """Nobody sees more than the public context."""

    def seen(self, context: Context, outcome: Array) -> Context:
        """Return what the agents see before they decide."""
        return context


PUBLIC = NoSignal()


class Signal(NoSignal):
    """What each agent sees, under a name in its context, of coordinate g; ``noise`` is s_i (N,)."""

    REMEMBERED = ("rng",)

    def __init__(
        self, name: str, coordinate: int, *, noise: Array, rng: np.random.Generator
    ) -> None:
        self.name, self.coordinate, self.noise, self.rng = name, coordinate, noise, rng

    def seen(self, context: Context, outcome: Array) -> Context:
        drawn = outcome[self.coordinate] + self.noise * self.rng.standard_normal(len(self.noise))
        return replace(context, own=MappingProxyType({self.name: read_only(drawn)}))


def suggestions(policies: Sequence[Policy], context: Context, actions: int) -> Indices:
    """Ask benchmark policies (C,), or (C, N) for each agent where they have signals."""
    agents = len(next(iter(context.own.values()))) if context.own else 1
    each = [context.of(agent) for agent in range(agents)]
    told = np.empty((len(policies), agents), dtype=np.intp)
    for j, policy in enumerate(policies):
        told[j] = [checked_suggestion(policy, own, actions) for own in each]
    return told if context.own else told[:, 0]


@dataclass
class Seat:
    """One cohort at the table: K rows that the ledger scores, N agents."""

    cohort: Cohort
    attendance: Attendance = ALWAYS  # when its rows are there
    signal: NoSignal = PUBLIC  # what its agents see of the outcome before they decide
    budget: Unlimited = UNLIMITED  # which actions they choose among
    comparison: NotCompared = NOT_COMPARED  # the alternatives with which they are compared
    deviations: Deviations = NO_DEVIATIONS  # the rows that play something else than their rule

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
        """Let those who are here decide in a round; None where nobody is.

        They hear the forecast of the cohort's block, and see the context with their signals.
        ``affordable`` (N, A) says what each can pay for; None for all.
        """
        here = self.attendance.some(number)
        if here is not None and not here.any():
            return None
        self.cohort.attend(here, affordable)
        decision = self.deviations.decision(self.cohort.decide(forecast, context), context)
        decision = self.budget.limited(decision, affordable, here)
        if here is None:
            return decision
        strategy, choices, counts = decision.strategy, decision.choices, decision.counts
        return decision.changed(  # without what absent rows and their agents would have done
            strategy=None if strategy is None else np.where(here[:, None], strategy, 0.0),
            choices=None if choices is None else np.where(here, choices, -1),
            actions=np.where(here[self.cohort.row_of], decision.actions, -1),
            counts=None if counts is None else lambda: np.where(here[:, None], counts(), 0.0),
            present=here,
        )

    def charge(
        self, decision: Decision | None, losses: Array | None, outcome: Array, awake: Mask | None
    ) -> Array | None:
        """Return the losses (K, A) of all actions that the ledger charges.

        ``losses`` (K, A): what the market says, where they are personal; None for those at the
        outcome.
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
