"""Crowds: agents with random linear losses, as a model of this project and of others.

Every agent has a linear loss over goods; a round is forecast (the running mean of the outcomes),
best response, outcome, and the swap ledger's sums. The plain Mesa model does it as Mesa's tutorials
do: one Python ``step`` per agent, two small NumPy products and one addition to the agent's own
table. The plain NumPy model does it in a handful of array expressions over the distinct losses,
spread over the agents at the end.
"""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.agents.adversaries import Replay
from regretless.agents.cohorts.responding import Cohort
from regretless.agents.responses import BestResponse, Response
from regretless.forecaster.baselines import RunningMean
from regretless.forecaster.bases import LinearBasis
from regretless.market.core.randomness import stream
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.round import Block, Game
from regretless.market.losses import Linear
from regretless.market.model import MarketModel
from regretless.market.regret.ledger import Ledger
from regretless.scenarios.bench.clock import Array

GOODS, ACTIONS, OUTCOMES = 16, 8, 64
NEVER = 1 << 40  # rounds between entries of the regret log


class Crowd:
    """Agents with random linear losses, and the outcomes that befall them.

    Parameters
    ----------
    agents : int
        N.
    losses : int, optional
        Distinct ones; every agent has its own by default.
    actions, goods : int
        A and d.
    policies : int
        C; policy j always suggests action j mod A.
    """

    kind = ""  # of losses, for the table

    def __init__(
        self,
        agents: int,
        losses: int | None = None,
        *,
        actions: int = ACTIONS,
        goods: int = GOODS,
        policies: int = 0,
    ) -> None:
        rng = stream(0, "bench", "agent-steps")
        self.agents, self.rows = agents, losses or agents
        self.actions, self.goods = actions, goods
        self.loss = self._losses(rng)
        self.row_of = np.arange(agents) % self.rows
        self.outcomes = rng.random((OUTCOMES, goods))
        self.policies = tuple(partial(_always, j % actions) for j in range(policies))
        kind = f"distinct {self.kind}losses" if losses is None else f"{losses} {self.kind}losses"
        self.size = f"{agents} agents, {actions} actions, {goods} goods, {kind}"

    def _losses(self, rng: np.random.Generator) -> Any:
        return Linear(rng.random((self.rows, self.actions, self.goods)) / self.goods)

    def _response(self, basis: LinearBasis) -> tuple[Response, tuple[Array, Array]]:
        """Return the response rule and the coefficients that it reads."""
        return BestResponse(), basis.coefficients(self.loss)

    def game(self) -> Game:
        """Set up this project's game."""
        basis = LinearBasis(self.goods)
        response, coefficients = self._response(basis)
        cohort = Cohort(
            name="crowd",
            utility="linear",
            block=0,
            loss=self.loss,
            row_of=self.row_of,
            coefficients=coefficients,
            response=response,
            ledger=Ledger(self.rows, self.actions, policies=len(self.policies)),
            rng=stream(0, "bench", "play"),
            policies=self.policies,
        )
        block = Block("linear", basis, RunningMean(self.goods))
        return Game([block], [cohort], adversary=Replay(self.outcomes), seed=0)

    def model(self) -> MarketModel:
        """Build this project's model; it logs the first round and no other."""
        return MarketModel(self.game(), [Guarantee()], seed=0, rounds=NEVER, log_every=NEVER)

    def in_mesa(self, mesa: Any) -> Any:
        """Build the plain Mesa model."""
        outcomes, goods = cycle(self.outcomes), self.goods

        class Market(mesa.Model):  # type: ignore[misc]
            """One forecast and one outcome per step."""

            def __init__(self) -> None:
                super().__init__(rng=0)
                self.forecast, self.seen = np.full(goods, 0.5), 0
                self.outcome = self.forecast

            def step(self) -> None:
                """Play one round."""
                self.outcome = next(outcomes)
                self.agents.do("step")
                self.seen += 1
                self.forecast = self.forecast + (self.outcome - self.forecast) / self.seen

        model, grower = Market(), self._grower(mesa)
        for row in self.row_of:
            grower(model, row)
        return model

    def _grower(self, mesa: Any) -> Any:
        """Define an agent of the plain Mesa model, made from the model and its row."""
        loss, actions = self.loss, self.actions

        class Grower(mesa.Agent):  # type: ignore[misc]
            """An agent with its own weights and table of sums."""

            def __init__(self, model: Any, row: int) -> None:
                super().__init__(model)
                self.weights = np.ascontiguousarray(loss.weights[row])
                self.sums, self.action = np.zeros((actions, actions)), 0

            def step(self) -> None:
                """Respond, suffer and record."""
                self.action = int((self.weights @ self.model.forecast).argmin())
                self.sums[self.action] += self.weights @ self.model.outcome

        return Grower


class NarrowCrowd(Crowd):
    """Agents with random linear losses whose weights 32 bits hold."""

    kind = "32-bit "

    def _losses(self, rng: np.random.Generator) -> Any:
        return super()._losses(rng).in_single_precision()


class PlainCrowd:
    """A crowd by NumPy's expressions alone."""

    def __init__(self, crowd: Crowd) -> None:
        self.weights, self.row_of = np.ascontiguousarray(crowd.loss.weights), crowd.row_of
        self.outcomes, self.seen = cycle(crowd.outcomes), 0
        self.forecast = np.full(crowd.goods, 0.5)
        self.fixed, self.surprise = np.zeros((2, crowd.rows, crowd.actions, crowd.actions))

    def step(self) -> NDArray[np.intp]:
        """Play a round; actions (N,)."""
        expected = self.weights @ self.forecast
        chosen = expected.argmin(1)
        outcome = next(self.outcomes)
        losses = self.weights @ outcome
        rows = np.arange(len(chosen))
        self.fixed[rows, chosen] += losses
        self.surprise[rows, chosen] += expected - losses
        self.seen += 1
        self.forecast = self.forecast + (outcome - self.forecast) / self.seen
        actions: NDArray[np.intp] = chosen[self.row_of]
        return actions


def _always(action: int, _: Any) -> int:
    return action
