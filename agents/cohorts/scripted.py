"""Agents that a user writes: subclass ``ScriptedAgent``, write ``act``, register it under a name.

    @register.agent("stubborn")
    class Stubborn(ScriptedAgent):
        def act(self, forecast, context):
            return 0

``response = "stubborn"`` in a cohort of a scenario then makes one instance per agent. They sit
beside the fast cohorts in the same ledger.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.errors import UserError
from regretless.market.game.delay import Relay
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast
from regretless.market.records.decision import one_hot
from regretless.market.records.records import draw_index
from regretless.market.regret.ledger import Ledger


class ScriptedAgent:
    """One agent with a method of its own.

    Parameters
    ----------
    loss : loss form
        Its loss; ``loss.losses(y)`` gives (A,).
    rng : numpy Generator
        Its own stream.
    """

    def __init__(self, loss: Loss, rng: np.random.Generator) -> None:
        self.loss, self.rng = loss, rng

    def act(self, forecast: Forecast, context: Context) -> int | ArrayLike:
        """Return the action to play, or probabilities (A,) to be charged in expectation.

        ``forecast.label`` is the forecast outcome, ``forecast.point`` the prediction in the
        block's basis.
        """
        raise UserError(f"class {type(self).__name__} has no act(forecast, context); write it")

    def learn(self, losses: Array, outcome: Array) -> None:
        """Be told the losses of all actions (A,) and the outcome (d,) after the round."""


class ScriptedCohort(Remembering):
    """Scripted agents side by side, one ledger row each.

    Parameters
    ----------
    name, utility, rule : str
        For the logs; ``rule`` is the registered name.
    block : int
        Which block of the broadcast they hear.
    loss : stack of N losses
    policies : tuple of callables
        Benchmark policies.
    distance : int array (N,) or None
        Of each agent from the forecaster (``market.game.network``); None where all hear at once.
    relay : Relay or None
        Holds the forecasts that come late, and the running mean that is handed to whom none has
        reached, as a forecast without an ensemble; needed with ``distance``.
    """

    REMEMBERED = ("ledger", "agents", "_streams")

    kind = "trader"

    def __init__(  # noqa: PLR0913 - keyword-only description of a cohort
        self,
        *,
        name: str,
        utility: str,
        rule: str,
        block: int,
        loss: Loss,
        agents: Sequence[ScriptedAgent],
        ledger: Ledger,
        policies: tuple[Any, ...] = (),
        distance: Indices | None = None,
        relay: Relay | None = None,
    ) -> None:
        self.name, self.utility, self.rule, self.block = name, utility, rule, block
        self.loss, self.agents, self.ledger, self.policies = loss, agents, ledger, policies
        self.row_of = np.arange(len(agents))
        self.distance = np.zeros(len(agents), dtype=np.intp) if distance is None else distance
        self.relay = relay

    @property
    def _streams(self) -> list[np.random.Generator]:
        return [agent.rng for agent in self.agents]

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Ask every agent in turn."""
        heard = [self._heard(int(hops), forecast) for hops in self.distance]
        choices = [
            self._choice(agent, own, context) for agent, own in zip(self.agents, heard, strict=True)
        ]
        actions, play = zip(*choices, strict=True)
        return Decision(np.array(play), np.array(actions, dtype=np.intp))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        """Tell every agent its losses."""
        for agent, own in zip(self.agents, losses, strict=True):
            agent.learn(own, outcome)

    def _heard(self, distance: int, forecast: Forecast) -> Forecast:
        if self.relay is None or distance == 0:
            return forecast
        return self.relay.heard(distance) or self.relay.stand_in()

    def gap(self) -> None:
        """Return None: a scripted agent promises nothing."""

    def _choice(
        self, agent: ScriptedAgent, forecast: Forecast, context: Context
    ) -> tuple[int, Array]:
        answer = np.asarray(agent.act(forecast, context))
        count = self.loss.actions
        wanted = f"return an action from 0 to {count - 1} or {count} probabilities that sum to 1"
        if answer.dtype.kind not in "biuf":
            raise UserError(f"agent '{self.rule}' returned {answer!s}; {wanted}")
        if answer.ndim == 0:
            if not np.isfinite(answer) or answer != int(answer) or not 0 <= answer < count:
                raise UserError(f"agent '{self.rule}' chose action {answer}; {wanted}")
            return int(answer), one_hot(np.array([int(answer)]), count)[0]
        if answer.shape != (count,) or not (answer >= 0).all() or abs(answer.sum() - 1) > 1e-9:
            returned = " ".join(str(answer).split())
            raise UserError(f"agent '{self.rule}' returned {returned}; {wanted}")
        return draw_index(answer, agent.rng), answer.astype(np.float64)
