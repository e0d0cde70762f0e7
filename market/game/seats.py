"""A seat at the table: one cohort, and what lies around it.

    attendance  which rows take part in a round              (``market.game.presence``)
    signal      what its agents see beside the context       (``market.game.signals``)
    budget      which actions they can afford                (``market.game.means``)
    comparison  what they would have lost by following models (``market.regret.followed``)
    deviations  who plays something else than the rule says  (``market.records.deviations``)

Each has a plain case that changes nothing, so that a round asks all seats alike. Only the signal
sees the outcome before it is revealed.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.game.means import UNLIMITED, Unlimited
from regretless.market.game.presence import ALWAYS, Attendance, seated
from regretless.market.game.protocols import Cohort
from regretless.market.game.signals import PUBLIC, NoSignal, suggestions
from regretless.market.records import Context, Decision, Forecast
from regretless.market.records.deviations import NO_DEVIATIONS, Deviations
from regretless.market.regret.followed import NOT_COMPARED, NotCompared


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
