r"""Private signals: what an agent alone learns of the outcome before it decides.

Agent i of a cohort with a signal sees, beside the public context,

    x_i = y_g + s_i e_i,      e_i standard normal, drawn anew for every agent and round,

of the outcome y that the referee has drawn (a market may still move it), with noise s_i of its own;
s_i = 0 is an insider. Nobody else sees it, the forecaster and the adversary least of all. Its
benchmark policies may read it, too: they are then scored for each agent by what it saw. No theorem
covers regret to those, since the forecast was made in ignorance of the signal.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.read_only import sealed
from regretless.market.records import Context
from regretless.market.records.records import checked_suggestion


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
