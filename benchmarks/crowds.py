"""Crowds: agents with random linear losses, as a model of this project and of others.

Every agent has a linear loss over goods; a round is forecast (the running mean of the outcomes),
best response, outcome, and the swap ledger's sums. The plain Mesa model does it as Mesa's tutorials
do: one Python ``step`` per agent, two small NumPy products and one addition to the agent's own
table. The plain NumPy model does it in a handful of array expressions over the distinct losses,
spread over the agents at the end.

Curved losses cost powers or exponentials beside passes over memory. Their agents hear the running
mean as a label forecast and respond to their own losses there (certainty equivalent): no basis, the
form itself, at the forecast and at the outcome.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.duels import Array
from regretless.agents.adversaries import Replay
from regretless.agents.cohorts.responding import RespondingCohort
from regretless.agents.responses import BestResponse, CertaintyEquivalent, Response
from regretless.agents.utilities.forms import CARA, CES, CobbDouglas
from regretless.forecaster.bases import LinearBasis
from regretless.forecaster.models.simple import RunningMean
from regretless.market.core.randomness import stream
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import Seat
from regretless.market.losses import Linear
from regretless.market.model import MarketModel
from regretless.market.regret.ledger import Ledger

Formula = Callable[[Array], Array]

GOODS, ACTIONS, OUTCOMES = 16, 8, 64
NEVER = 1 << 40  # rounds between entries of the regret log
LEAST = 0.1  # of a good, for Cobb-Douglas


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
    multiplicity: NDArray[np.intp] | None = None  # agents of each row, where they are counted

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
        cohort = RespondingCohort(
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
            multiplicity=self.multiplicity,
        )
        block = Block("linear", basis, RunningMean(self.goods))
        return Game([block], [Seat(cohort)], adversary=Replay(self.outcomes), seed=0)

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

        alone, actions = self._alone, self.actions

        class Grower(mesa.Agent):  # type: ignore[misc]
            """An agent with its own losses and table of sums."""

            def __init__(self, model: Any, row: int) -> None:
                super().__init__(model)
                self.losses = alone(row)
                self.sums, self.action = np.zeros((actions, actions)), 0

            def step(self) -> None:
                """Respond, suffer and record."""
                self.action = int(self.losses(self.model.forecast).argmin())
                self.sums[self.action] += self.losses(self.model.outcome)

        model = Market()
        for row in self.row_of.tolist():
            Grower(model, row)
        return model

    def _alone(self, row: int) -> Formula:
        """Return the losses of one agent by NumPy alone, without a frame of Python around it."""
        formula: Formula = np.ascontiguousarray(self.loss.weights[row]).dot
        return formula


class CountedCrowd(Crowd):
    """Agents who share losses, and of whom each row is a count in place of a list."""

    def __init__(self, agents: int, losses: int) -> None:
        super().__init__(losses, losses)
        self.multiplicity = agents // losses + (np.arange(losses) < agents % losses)
        self.size = f"{agents} counted {self.size.partition(' ')[2]}"


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


def _ces_alone(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _own(loss, row)
    power, exponent = float(loss.power[row]), float(loss.exponent[row])
    return lambda y: offset + amplitude * (weights @ y**power) ** exponent


def _cara_alone(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _own(loss, row)
    return lambda y: offset + amplitude * np.exp(weights @ y)


def _cobb_douglas_alone(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _own(loss, row)
    return lambda y: offset + amplitude * np.exp(weights @ np.log(np.maximum(y, LEAST)))


def _own(loss: Any, row: int) -> tuple[Array, ...]:
    return tuple(np.array(table[row]) for table in (loss.weights, loss.offset, loss.amplitude))


FAMILIES: Mapping[str, tuple[Callable[..., Any], Callable[[Any, int], Formula]]] = {
    "CES": (lambda rng, s: CES(s, rng.uniform(0.3, 0.9, len(s)), np.ones(len(s))), _ces_alone),
    "CARA": (lambda rng, s: CARA(s, rng.uniform(0.5, 3.0, len(s))), _cara_alone),
    "Cobb-Douglas": (lambda _, s: CobbDouglas(s, y_min=LEAST), _cobb_douglas_alone),
}


class CurvedCrowd(Crowd):
    """Agents with random losses of one family, one each."""

    def __init__(self, agents: int, family: str) -> None:
        self.family, self.kind = family, f"{family} "
        super().__init__(agents)

    def _losses(self, rng: np.random.Generator) -> Any:
        shares = rng.random((self.rows, self.actions, self.goods)) / self.goods
        return FAMILIES[self.family][0](rng, shares)

    def _response(self, basis: LinearBasis) -> tuple[Response, tuple[Array, Array]]:
        unread = np.broadcast_to(0.0, self.loss.weights.shape)
        return CertaintyEquivalent(), (self.loss.offset, unread)

    def _alone(self, row: int) -> Formula:
        return FAMILIES[self.family][1](self.loss, row)
