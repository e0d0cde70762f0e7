r"""A seat: one cohort with its attendance, signal, budget, comparisons and deviations.

``Game`` holds one seat per cohort and calls its methods in every round, in this order: ``decide``,
``charge``, ``record``. Each part of a seat has a plain case that changes nothing, so that a round
treats all seats alike.

**Multiplicity.** An entry of ``row_of`` stands for one agent, or for several. Such agents have
equal losses, one rule and one forecast. What a row is charged and regrets is that of each of them,
and sums over agents are weighed by their number. Where they draw, the entry's agent in the tables
is one of them, and only action counts are stored: ``taken_actions`` reads them.

**Signals.** Only a signal sees the outcome before it is revealed. Agent i of a cohort with a
signal sees, beside the public context,

    x_i = y_g + s_i e_i,      e_i standard normal, drawn anew for every agent and round,

of the outcome y that the referee has drawn (a market may still move it), with noise s_i of its own.
Its benchmark policies may read the signal, too. No theorem covers regret to these policies: the
forecast was made in ignorance of the signal.
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
    suggestions_to_all,
)
from regretless.market.regret.model_comparison import NOT_COMPARED, Comparison
from regretless.market.regret.pending_rounds import RoundReader


@dataclass(frozen=True, eq=False)
class TakenActions:
    """Which action each entry of a cohort took in a round, absent ones left out."""

    rows: Indices  # of the ledger (n,)
    actions: Indices  # (n,)
    multiplicity: Array | Indices | None  # how many agents each stands for (n,); None for one each

    @property
    def agents(self) -> float:
        """How many agents took part."""
        if self.multiplicity is None:
            return len(self.rows)
        return float(self.multiplicity.sum())

    def values_times_multiplicity(self, table: Array) -> Array:
        """Return the entries of a table (K, A, ...) at the actions, times multiplicity (n, ...)."""
        values = table[self.rows, self.actions]
        if self.multiplicity is None:
            return values
        return np.asarray((values.T * self.multiplicity).T)

    def total(self, table: Array) -> Array:
        """Return the exact sum over agents of a table's entries (K, A, c) as two numbers (2, c)."""
        values = table[self.rows, self.actions]
        if self.multiplicity is None:
            return exact_sum.total(values, np.ones(len(self.rows)))
        return exact_sum.total(values, np.asarray(self.multiplicity, np.float64))

    def per_action(self, actions: int) -> Array:
        """Return how many agents took each of so many actions (A,)."""
        counts = np.bincount(self.actions, self.multiplicity, minlength=actions)
        return np.asarray(counts, np.float64)


def taken_actions(
    cohort: Cohort, actions: Indices, counts: Callable[[], Array] | None
) -> TakenActions:
    """Return who took which action, of those who were there; arguments as in a ``Decision``."""
    if counts is not None:  # every row and action is an entry, as often as it was drawn
        drawn_counts = counts()
        rows, actions_of_entries = np.indices(drawn_counts.shape)
        return TakenActions(rows.ravel(), actions_of_entries.ravel(), drawn_counts.ravel())
    is_present = actions >= 0
    if is_present.all():
        return TakenActions(cohort.row_of, actions, cohort.multiplicity)
    return TakenActions(
        rows=cohort.row_of[is_present],
        actions=actions[is_present],
        multiplicity=cohort.multiplicity_of(is_present),
    )


def actions_of_agents(cohorts: Sequence[Cohort], decisions: Sequence[Decision | None]) -> Indices:
    """Return the action of each agent of all cohorts (M,); -1 for who is absent."""
    actions_by_cohort = []
    for cohort, decision in zip(cohorts, decisions, strict=True):
        if decision is None:
            actions_by_cohort.append(np.full(len(cohort.row_of), -1))
        else:
            actions_by_cohort.append(decision.actions)
    return np.concatenate(actions_by_cohort).astype(np.intp, copy=False)


def is_taking_part(decision: Decision, cohort: Cohort) -> Mask:
    """Return which agents of a cohort took part in a round (N,)."""
    if decision.present is None:
        return np.ones(len(cohort.row_of), dtype=np.bool_)
    return np.asarray(decision.present[cohort.row_of])


def present_cohorts(
    cohorts: Sequence[Cohort], played: Round
) -> Iterator[tuple[int, Cohort, Decision, Array]]:
    """Yield the cohorts of which a row took part: index, cohort, decision and losses (K, A)."""
    for cohort_index, cohort in enumerate(cohorts):
        decision = played.decisions[cohort_index]
        losses = played.losses[cohort_index]
        if decision is not None and losses is not None:
            yield cohort_index, cohort, decision, losses


class NoSignal(Checkpointable):
    """Agents see the public context alone."""

    def seen(self, context: Context, outcome: Array) -> Context:
        """Return what the agents see before they decide, given the drawn outcome (d,)."""
        return context


PUBLIC = NoSignal()


class Signal(NoSignal):
    """Each agent sees one coordinate of the outcome with noise.

    Parameters
    ----------
    name : str
        Under which the context has the signal.
    coordinate : int
        g, of the outcome.
    noise : array (N,)
        s_i, the standard deviation of each agent's noise.
    rng : numpy Generator
        Draws the noise.
    """

    REMEMBERED = ("rng",)

    def __init__(
        self, name: str, coordinate: int, *, noise: Array, rng: np.random.Generator
    ) -> None:
        self.name = name
        self.coordinate = coordinate
        self.noise = noise
        self.rng = rng

    def seen(self, context: Context, outcome: Array) -> Context:
        errors = self.noise * self.rng.standard_normal(len(self.noise))
        signals = outcome[self.coordinate] + errors
        return replace(context, own=MappingProxyType({self.name: read_only(signals)}))


NO_SUGGESTIONS: Indices = np.empty(0, dtype=np.intp)  # of a cohort without policies


def suggestions(policies: Sequence[Policy], context: Context, actions: int) -> Indices:
    """Return what benchmark policies suggest (C,), or (C, N) where agents have signals.

    UserError if a suggestion is none of the actions.
    """
    if not context.own:
        if not policies:
            return NO_SUGGESTIONS
        return suggestions_to_all(policies, context, actions)
    agents = len(next(iter(context.own.values())))
    suggested = np.empty((len(policies), agents), dtype=np.intp)
    contexts = [context.of(agent) for agent in range(agents)] if policies else []
    for j, policy in enumerate(policies):
        suggested[j] = [checked_suggestion(policy, seen, actions) for seen in contexts]
    return suggested


@dataclass
class Seat:
    """One cohort at the table: K rows that the ledger scores, N agents."""

    cohort: Cohort
    attendance: Attendance = ALWAYS  # when its rows are there
    signal: NoSignal = PUBLIC  # what its agents see of the outcome before they decide
    budget: Unlimited = UNLIMITED  # which actions they choose among
    comparison: Comparison = NOT_COMPARED  # the alternatives with which they are compared
    deviations: Deviations = NO_DEVIATIONS  # the rows that play something else than their rule

    @property
    def rows(self) -> int:
        """K, of the ledger."""
        return self.cohort.ledger.shape[0]

    def is_present(self, round_index: int) -> bool:
        """Whether anybody takes part in a round."""
        present_rows = self.attendance.present_rows(round_index)
        return present_rows is None or bool(present_rows.any())

    def decide(
        self, forecast: Forecast, context: Context, *, round_index: int, affordable: Mask | None
    ) -> Decision | None:
        """Return what those who are present do in a round; None if nobody is.

        Parameters
        ----------
        forecast : Forecast
            Of the cohort's block.
        context : Context
            With the agents' signals.
        round_index : int
            Counted from 0.
        affordable : bool array (N, A) or None
            Which actions each agent can pay for; None for all.
        """
        present_rows = None  # nobody enters or leaves
        if self.attendance is not ALWAYS:
            present_rows = self.attendance.present_rows(round_index)
            if present_rows is not None and not present_rows.any():
                return None
        self.cohort.attend(present_rows, affordable)
        decision = self.cohort.decide(forecast, context)
        if self.deviations is not NO_DEVIATIONS:
            decision = self.deviations.apply(decision, context)
        if self.budget is not UNLIMITED:
            decision = self.budget.restrict(decision, affordable, present_rows)
        if present_rows is None:
            return decision
        return decision.masked(present_rows, self.cohort.row_of)

    def charge(
        self,
        decision: Decision | None,
        losses: Array | None,
        outcome: Array,
        affordable: Mask | None,
    ) -> Array | None:
        """Return the losses (K, A) of all actions that the ledger charges; None without a decision.

        ``losses`` (K, A) is what the market says where losses are personal; None for the losses at
        the outcome (d,). ``affordable`` is as in ``decide``.
        """
        if decision is None:
            return None
        if losses is None:
            losses = decision.losses(self.cohort.loss, outcome)
        if self.budget is UNLIMITED:
            return losses
        return self.budget.charged_losses(losses, decision, affordable)

    def record(
        self,
        decision: Decision | None,
        losses: Array | None,
        context: Context,
        *,
        round_index: int,
        outcome: Array,
    ) -> None:
        """Keep a round to be added up, and let the cohort learn; not if nobody was there.

        ``losses`` (K, A) are those that ``charge`` returned.
        """
        if decision is None or losses is None:
            return
        cohort = self.cohort
        ledger = cohort.ledger
        readers: tuple[RoundReader, ...] = (ledger, self.comparison)
        if self.comparison is NOT_COMPARED:
            readers = (ledger,)
        ledger.count_round(decision)
        ledger.pending.add(
            decision,
            losses,
            suggested=suggestions(cohort.policies, context, cohort.loss.actions),
            model_actions=self.comparison.model_actions(),
            round_index=round_index,
            outcome=outcome,
            readers=readers,
        )
        cohort.learn(decision, losses, outcome)

    def players(self) -> dict[str, object]:
        """Return every part that has a memory of its own, by name, for checkpoints."""
        name = self.cohort.name
        parts: dict[str, Checkpointable] = {
            f"models of {name}": self.comparison,
            f"signal of {name}": self.signal,
            f"means of {name}": self.budget,
        }
        players: dict[str, object] = {
            part_name: part for part_name, part in parts.items() if part.REMEMBERED
        }
        players[f"cohort {name}"] = self.cohort
        return players
