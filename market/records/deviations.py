"""Deviations: single agents who play something else than their rule says, in the eyes of all.

The rule still decides, so that nobody's random numbers move; what the agent does in its place is
what the market clears, the ledger charges and an adversary foresees. Its regret stays exact. It no
longer chooses by what it expected, so that its expectation is left out, and with it its bound.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.records.decision import Decision
from regretless.market.records.records import Context, checked_suggestion

Policy = Callable[[Any], int]


@dataclass(frozen=True, eq=False)
class Deviations:
    """Who of a cohort deviates, and to what.

    Parameters
    ----------
    rows : dict of int to (int, policy)
        By the row of each, its place among the cohort's N agents and the policy that it plays: a
        call from what it sees to an action.
    actions : int
        A.
    """

    rows: Mapping[int, tuple[int, Policy]]
    actions: int

    def _told(self, context: Context) -> dict[int, int]:
        return {
            row: checked_suggestion(policy, context.of(agent), self.actions)
            for row, (agent, policy) in self.rows.items()
        }

    def decision(self, decided: Decision, context: Context) -> Decision:
        """Put the deviations in the place of what the rows would have done."""
        if not self.rows:
            return decided
        actions, predicted = decided.actions.copy(), decided.predicted
        law, choices = decided.law, decided.choices
        law = None if law is None else law.copy()
        choices = None if choices is None else choices.copy()
        predicted = None if predicted is None else predicted.copy()
        for row, action in self._told(context).items():
            agent = self.rows[row][0]
            actions[agent] = action
            if choices is not None:
                choices[row] = action
            if law is not None:
                law[row] = np.eye(self.actions)[action]
            if predicted is not None:
                predicted[row] = np.nan
        return replace(decided, actions=actions, predicted=predicted, law=law, choices=choices)

    def law(self, law: Array, context: Context) -> Array:
        """Put the deviations into a law of play (K, A)."""
        if not self.rows:
            return law
        told = self._told(context)
        law = law.copy()
        law[list(told)] = np.eye(self.actions)[list(told.values())]
        return law


NO_DEVIATIONS = Deviations({}, 0)
