r"""A seat at the table: one cohort, and what lies around it.

    attendance  which rows take part in a round              (``market.game.presence``)
    signal      what its agents see beside the context       (below)
    budget      which actions they can afford                (``market.game.means``)
    comparison  what they would have lost by following models (``market.regret.followed``)
    deviations  who plays something else than the rule says  (``market.records.deviations``)

Each has a plain case that changes nothing, so that a round asks all seats alike.

**Signals.** Only a signal sees the outcome before it is revealed. Agent i of a cohort with a
signal sees, beside the public context,

    x_i = y_g + s_i e_i,      e_i standard normal, drawn anew for every agent and round,

of the outcome y that the referee has drawn (a market may still move it), with noise s_i of its own;
s_i = 0 is an insider. Nobody else sees it, the forecaster and the adversary least of all. Its
benchmark policies may read it, too: they are then scored for each agent by what it saw. No theorem
covers regret to those, since the forecast was made in ignorance of the signal.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.read_only import sealed
from regretless.market.game.means import UNLIMITED, Unlimited
from regretless.market.game.presence import ALWAYS, Attendance, seated
from regretless.market.game.protocols import Cohort
from regretless.market.records import Context, Decision, Forecast
from regretless.market.records.deviations import NO_DEVIATIONS, Deviations
from regretless.market.records.records import checked_suggestion
from regretless.market.regret.followed import NOT_COMPARED, NotCompared


class NoSignal(Remembering):
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
        """Draw a round's signals, and add them to the context of the cohort."""
        drawn = outcome[self.coordinate] + self.noise * self.rng.standard_normal(len(self.noise))
        return replace(context, own={self.name: sealed(drawn)})


def suggestions(policies: Any, context: Context, actions: int) -> Indices:
    """Ask benchmark policies; UserError if an answer is not one of the actions.

    Returns
    -------
    int array (C,), or (C, N)
        A suggestion for everybody, or one for each agent where they have signals.
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
        The models with which they are compared.
    deviations : Deviations
        The rows that play something else than their rule.

    Raises
    ------
    ValueError
        If the attendance is of another number of rows.
    """

    cohort: Cohort
    attendance: Attendance = ALWAYS
    signal: NoSignal = PUBLIC
    budget: Unlimited = UNLIMITED
    comparison: NotCompared = NOT_COMPARED
    deviations: Deviations = NO_DEVIATIONS

    def __post_init__(self) -> None:
        self.attendance.check(self.cohort.name, self.rows)

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

        Parameters
        ----------
        losses : array (K, A) or None
            What the market says, where losses are personal; None for the loss at the outcome.
        """
        if decision is None:
            return None
        own = self.cohort.loss.losses(outcome) if losses is None else losses
        return self.budget.charged(own, decision, awake)

    def record(
        self, decision: Decision, losses: Array, context: Context, *, outcome: Array
    ) -> None:
        """Add the round to the ledger and the comparison, and let the cohort learn."""
        suggested = suggestions(self.cohort.policies, context, self.cohort.loss.actions)
        self.cohort.ledger.add(decision, losses, suggested)
        self.comparison.add(decision, losses)
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
