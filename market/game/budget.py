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

    restricts: ClassVar[bool] = False

    def restrict(
        self, decision: Decision, affordable: Mask | None, present_rows: Mask | None
    ) -> Decision:
        """Return what agents do among the actions that they can pay for.

        Parameters
        ----------
        decision : Decision
            What they would do with all actions affordable; it is not modified.
        affordable : bool array (N, A) or None
            Which actions each agent can pay for; None for all.
        present_rows : bool array (N,) or None
            Who takes part; None for all.

        Raises
        ------
        UserError
            If somebody can afford nothing, or insists on what it cannot afford.
        """
        return decision

    def charged_losses(self, losses: Array, decision: Decision, affordable: Mask | None) -> Array:
        """Return the losses (K, A) that the ledger charges."""
        return losses

    def with_limited_rounds(self, guarantee: Guarantee) -> Guarantee:
        """Return what is left of a guarantee once the rounds in which actions slept are added."""
        return guarantee


UNLIMITED = Unlimited()


class BudgetConstraint(Unlimited):
    """What the agents of a cohort do within what their accounts can pay for.

    ``rng`` draws again for who drew an action that sleeps; ``limited_rounds`` (N,) counts the
    rounds in which some action of an agent slept. UserError if agents share rows, or are told what
    they played alone: their estimates of what they did not play take every action to be possible.
    """

    REMEMBERED = ("limited_rounds", "rng")
    restricts = True

    def __init__(self, cohort: Cohort, rng: np.random.Generator) -> None:
        self.cohort = cohort
        self.rng = rng
        self.limited_rounds = np.zeros(len(cohort.row_of))
        key = f"cohort.{cohort.name}.budget_constraint"
        if not np.array_equal(cohort.row_of, np.arange(cohort.ledger.shape[0])):
            raise UserError(f"{key}: its agents share rows of the ledger; drop it or enters")
        if cohort.bandit:
            hint = "choose a learner that is told all losses"
            raise UserError(f"{key}: {cohort.rule} takes every action to be possible; {hint}")

    def restrict(
        self, decision: Decision, affordable: Mask | None, present_rows: Mask | None
    ) -> Decision:
        if affordable is None:
            return decision
        if present_rows is not None:  # who is absent plays nothing and needs no restriction
            affordable = affordable | ~present_rows[:, None]
        is_restricted = np.asarray(~affordable.all(1))
        if not is_restricted.any():
            return decision
        self._check_agents(
            affordable.any(1), "can afford no action; give it one that costs nothing"
        )
        self.limited_rounds += is_restricted
        best_affordable = None
        if decision.predicted is not None:
            best_affordable = best_response(np.where(affordable, decision.predicted, np.inf))
        if decision.choices is not None and best_affordable is not None:
            restricted = decision.changed(
                strategy=None, choices=best_affordable, actions=best_affordable
            )
        else:
            restricted = self._restrict_strategy(
                decision, affordable, is_restricted, best_affordable
            )
        if decision.predicted is None:
            return restricted
        # The ledger charges a sleeping action what was played; so much is expected of it, too.
        expected_losses = _replace_sleeping_by_played(
            decision.predicted, restricted.actions, affordable
        )
        return restricted.changed(predicted=expected_losses)

    def _restrict_strategy(
        self,
        decision: Decision,
        affordable: Mask,
        is_restricted: Mask,
        best_affordable: Indices | None,
    ) -> Decision:
        """Return mixed play among affordable actions (N, A), where some are too dear (N,).

        An agent for whom some action sleeps is charged for the action that it drew, since the
        others count as what was played; the other agents are charged their strategy.
        """
        affordable_strategy = self._affordable_strategy(decision, affordable, best_affordable)
        actions = self._redraw_sleeping(decision.actions, affordable_strategy, affordable)
        drawn_strategy = one_hot(actions, affordable_strategy.shape[1])
        strategy = np.where(is_restricted[:, None], drawn_strategy, decision.probabilities)
        return decision.changed(strategy=strategy, choices=None, actions=actions, drawn_from=None)

    def _affordable_strategy(
        self, decision: Decision, affordable: Mask, best_affordable: Indices | None
    ) -> Array:
        """Return each agent's mixed strategy (N, A), given that its action is affordable (N, A).

        Who would do one thing that it cannot pay for does the best that it can (N,), where it
        knows what to expect of the actions; otherwise UserError.
        """
        weights = decision.probabilities * affordable
        if best_affordable is not None:
            has_no_weight = ~weights.any(1)
            weights[has_no_weight] = one_hot(best_affordable[has_no_weight], weights.shape[1])
        total_weight = weights.sum(1, keepdims=True)
        self._check_agents(
            total_weight[:, 0] > 0, "chose what it cannot afford; let it read self.affordable"
        )
        return np.asarray(weights / total_weight)

    def _redraw_sleeping(self, actions: Indices, strategy: Array, affordable: Mask) -> Indices:
        """Return the agents' actions (N,); who drew one that sleeps draws again by ``strategy``."""
        must_redraw = ~np.take_along_axis(affordable, actions[:, None], axis=1)[:, 0]
        redrawn = np.array(actions)
        redrawn[must_redraw] = draw_rows(
            strategy[must_redraw], self.rng.random(int(must_redraw.sum()))
        )
        return redrawn

    def charged_losses(self, losses: Array, decision: Decision, affordable: Mask | None) -> Array:
        if affordable is None:
            return losses
        return _replace_sleeping_by_played(losses, decision.actions, affordable)

    def with_limited_rounds(self, guarantee: Guarantee) -> Guarantee:
        def add_limited_rounds(bound: Callable[[], Array] | None) -> Callable[[], Array] | None:
            if bound is None:
                return None

            def weaker_bound() -> Array:
                # B + 2 N / T of the module's proof: a round in which something slept adds two gaps
                # between losses in [0, 1].
                rounds = np.maximum(self.cohort.ledger.rounds, 1)
                return bound() + 2 * self.limited_rounds / rounds

            return weaker_bound

        return replace(
            guarantee,
            bound=add_limited_rounds(guarantee.bound),
            to_models=add_limited_rounds(guarantee.to_models),
            from_variation=add_limited_rounds(guarantee.from_variation),
            take_note=None,  # what is added is added to each of both
            contextual=add_limited_rounds(guarantee.contextual),
            window=None,  # rounds are not counted by window
        )

    def _check_agents(self, is_valid: Any, fault: str) -> None:
        if not is_valid.all():
            raise UserError(f"agent {int(is_valid.argmin()) + 1} of {self.cohort.name} {fault}")


def _replace_sleeping_by_played(table: Array, actions: Indices, affordable: Mask) -> Array:
    """Return a table (N, A) in which what sleeps is worth what was played (N,)."""
    value_of_played = np.take_along_axis(table, np.maximum(actions, 0)[:, None], axis=1)
    return np.where(affordable, table, value_of_played)
