r"""Budget constraints: agents who choose only among the actions that their accounts can pay for.

In every round a market says which actions S_t of an agent are affordable (``Market.affordable``),
before the draw: what an agent owns is settled by the past. The agent's rule then chooses over what
remains; a mixed strategy is conditioned on S_t. The other actions sleep. A regret counts a
replacement only in the rounds in which it was awake,

    R(phi) = sum_t [l(a_t, y_t) - l(phi(a_t), y_t)] 1[phi(a_t) in S_t],

which the ledger adds up if sleeping actions are charged what was played (Freund, Schapire, Singer
and Warmuth 1997 on specialists; Kleinberg, Niculescu-Mizil and Sharma 2010 on sleeping actions).

What is promised. Let a*_t be what the agent would have played with everything affordable, B the
theorem's bound on its regret per round, and N the rounds of T so far in which something slept. In
the other rounds a_t = a*_t, and all of phi is awake, so that

    R(phi) = sum_t [l(a*_t) - l(phi(a*_t))]  +  sum over the N rounds of two gaps in [-1, 1]
           <= T B + 2 N:            the promise becomes  B + 2 N / T  for every agent.

The bound from the biases needs no such term: what is expected of a sleeping action, too, is what is
expected of the one that was played. Exploitability knows nothing of accounts.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from regretless.market.best_response import best_response
from regretless.market.core.arrays import Array, Indices, Mask, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import Cohort
from regretless.market.records import Decision, one_hot


class Unlimited(Checkpointable):
    """Agents may choose every action, whatever it costs."""

    limits: ClassVar[bool] = False

    def limited(self, decision: Decision, awake: Mask | None, here: Mask | None) -> Decision:
        """Return what the agents who are ``here`` (N,) do with the actions that are awake (N, A).

        None for all. UserError if somebody can afford nothing, or insists on what it cannot afford.
        """
        return decision

    def charged(self, losses: Array, decision: Decision, awake: Mask | None) -> Array:
        """Return the losses (K, A) that the ledger charges."""
        return losses

    def promised(self, promise: Guarantee) -> Guarantee:
        """Return what is left of a promise."""
        return promise


UNLIMITED = Unlimited()


class BudgetConstraint(Unlimited):
    """What the agents of a cohort do within what their accounts can pay for.

    ``rng`` draws again for who drew an action that sleeps; ``scarce`` (N,) counts the rounds in
    which some action of an agent slept. UserError if agents share rows, or are told what they
    played alone: their estimates of what they did not play take every action to be possible.
    """

    REMEMBERED = ("scarce", "rng")
    limits = True

    def __init__(self, cohort: Cohort, rng: np.random.Generator) -> None:
        self.cohort, self.rng, self.scarce = cohort, rng, np.zeros(len(cohort.row_of))
        where = f"cohort.{cohort.name}.budget_constraint"
        if not np.array_equal(cohort.row_of, np.arange(len(cohort.ledger.count))):
            raise UserError(f"{where}: its agents share rows of the ledger; drop it or enters")
        if cohort.bandit:
            cure = "choose a learner that is told all losses"
            raise UserError(f"{where}: {cohort.rule} takes every action to be possible; {cure}")

    def limited(self, decision: Decision, awake: Mask | None, here: Mask | None) -> Decision:
        if awake is None:
            return decision
        awake = awake if here is None else awake | ~here[:, None]
        short = np.asarray(~awake.all(1))
        if not short.any():
            return decision
        self._check(awake.any(1), "can afford no action; give it one that costs nothing")
        self.scarce += short
        strategy, choices, predicted = None, None, decision.predicted
        best = None if predicted is None else best_response(np.where(awake, predicted, np.inf))
        if decision.choices is not None and best is not None:
            actions = choices = best
        else:
            weights = decision.probabilities * awake
            if best is not None:  # who does one thing does the best that it can pay for
                stuck = ~weights.any(1)
                weights[stuck] = one_hot(best[stuck], weights.shape[1])
            total = weights.sum(1, keepdims=True)
            self._check(total[:, 0] > 0, "chose what it cannot afford; let it read self.affordable")
            # Who drew an action that sleeps draws again, given that it is awake.
            again = ~np.take_along_axis(awake, decision.actions[:, None], axis=1)[:, 0]
            actions = np.array(decision.actions)
            actions[again] = draw_rows((weights / total)[again], self.rng.random(int(again.sum())))
            pure = one_hot(actions, weights.shape[1])
            strategy = np.where(short[:, None], pure, decision.probabilities)
        told = None if predicted is None else _held(predicted, actions, awake)
        return decision.changed(strategy=strategy, choices=choices, actions=actions, predicted=told)

    def charged(self, losses: Array, decision: Decision, awake: Mask | None) -> Array:
        return losses if awake is None else _held(losses, decision.actions, awake)

    def promised(self, promise: Guarantee) -> Guarantee:
        def plus(bound: Callable[[], Array] | None) -> Callable[[], Array] | None:
            ledger = self.cohort.ledger
            return bound and (lambda: bound() + 2 * self.scarce / np.maximum(ledger.rounds, 1))

        names = ("bound", "to_models", "from_variation", "contextual")
        added: dict[str, Any] = {name: plus(getattr(promise, name)) for name in names}
        return replace(promise, window=None, **added)

    def _check(self, fine: Any, why: str) -> None:
        if not fine.all():
            raise UserError(f"agent {int(fine.argmin()) + 1} of {self.cohort.name} {why}")


def _held(table: Array, actions: Indices, awake: Mask) -> Array:
    """Return a table (N, A) in which what sleeps is worth what was played (N,)."""
    own = np.take_along_axis(table, np.maximum(actions, 0)[:, None], axis=1)
    return np.where(awake, table, own)
