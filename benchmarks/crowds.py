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
from typing import Any, NamedTuple

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
from regretless.market.losses import Linear, Loss
from regretless.market.model import MarketModel
from regretless.market.regret.ledger import Ledger

Formula = Callable[[Array], Array]  # from an outcome (d,) to one agent's losses (A,)

GOODS = 16
ACTIONS = 8
OUTCOMES = 64  # different ones, which come again and again
ENDLESS = 1 << 40  # rounds of a run, and between two entries of its regret log
MIN_GOOD = 0.1  # least amount of a good, for Cobb-Douglas


class Crowd:
    """Agents with random linear losses, and the outcomes that befall them.

    Parameters
    ----------
    agents : int
        N.
    losses : int, optional
        K, how many are distinct; every agent has its own by default.
    actions, goods : int
        A and d.
    policies : int
        C; policy j always suggests action j mod A.

    Attributes
    ----------
    loss : Loss
        The distinct losses, a stack of K rows.
    row_of : int array (N,)
        The row of each agent's loss.
    outcomes : array (OUTCOMES, d)
        Played one after the other, and then again.
    size : str
        The crowd in words, for the table.
    """

    kind = ""  # of losses, in ``size``; ends in a space
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
        self.agents = agents
        self.rows = losses or agents
        self.actions = actions
        self.goods = goods
        self.loss = self._losses(rng)
        self.row_of = np.arange(agents) % self.rows
        self.outcomes = rng.random((OUTCOMES, goods))
        self.policies = tuple(partial(_always, j % actions) for j in range(policies))
        distinct = "distinct" if losses is None else str(losses)
        self.size = (
            f"{agents} agents, {actions} actions, {goods} goods, {distinct} {self.kind}losses"
        )

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
        return MarketModel(self.game(), [Guarantee()], seed=0, rounds=ENDLESS, log_every=ENDLESS)

    def in_mesa(self, mesa: Any) -> Any:
        """Build the plain Mesa model; ``mesa`` is the package."""
        outcomes = cycle(self.outcomes)
        goods = self.goods
        actions = self.actions
        loss_formula = self._loss_formula

        class Market(mesa.Model):  # type: ignore[misc]
            """One forecast and one outcome per step."""

            def __init__(self) -> None:
                super().__init__(rng=0)
                self.forecast = np.full(goods, 0.5)
                self.outcome = self.forecast
                self.rounds_played = 0

            def step(self) -> None:
                """Play one round."""
                self.outcome = next(outcomes)
                self.agents.do("step")
                self.rounds_played += 1
                surprise = self.outcome - self.forecast
                self.forecast = self.forecast + surprise / self.rounds_played

        class Grower(mesa.Agent):  # type: ignore[misc]
            """An agent with its own losses and table of sums."""

            def __init__(self, model: Any, row: int) -> None:
                super().__init__(model)
                self.losses = loss_formula(row)
                self.sums = np.zeros((actions, actions))
                self.action = 0

            def step(self) -> None:
                """Respond, suffer and record."""
                self.action = int(self.losses(self.model.forecast).argmin())
                self.sums[self.action] += self.losses(self.model.outcome)

        model = Market()
        for row in self.row_of.tolist():
            Grower(model, row)
        return model

    def _loss_formula(self, row: int) -> Formula:
        """Return the losses of one agent by NumPy alone, without a frame of Python around it."""
        formula: Formula = np.ascontiguousarray(self.loss.weights[row]).dot
        return formula


class CountedCrowd(Crowd):
    """Agents who share losses, and of whom each row is a count in place of a list."""

    def __init__(self, agents: int, losses: int) -> None:
        super().__init__(losses, losses)
        has_one_more = np.arange(losses) < agents % losses
        self.multiplicity = agents // losses + has_one_more
        _, _, size_without_count = self.size.partition(" ")
        self.size = f"{agents} counted {size_without_count}"


class NarrowCrowd(Crowd):
    """Agents with random linear losses whose weights 32 bits hold."""

    kind = "32-bit "

    def _losses(self, rng: np.random.Generator) -> Any:
        return super()._losses(rng).in_single_precision()


class PlainCrowd:
    """A crowd by NumPy's expressions alone.

    Attributes
    ----------
    fixed : array (K, A, A)
        Entry [k, a, b] is what action b would have lost in the rounds in which a was played.
    surprise : array (K, A, A)
        The same of expected losses minus losses.
    """

    def __init__(self, crowd: Crowd) -> None:
        self.weights = np.ascontiguousarray(crowd.loss.weights)
        self.row_of = crowd.row_of
        self.outcomes = cycle(crowd.outcomes)
        self.rounds_played = 0
        self.forecast = np.full(crowd.goods, 0.5)
        self.fixed = np.zeros((crowd.rows, crowd.actions, crowd.actions))
        self.surprise = np.zeros_like(self.fixed)

    def step(self) -> NDArray[np.intp]:
        """Play a round; return the actions (N,)."""
        expected_losses = self.weights @ self.forecast
        action_of_row = expected_losses.argmin(axis=1)
        outcome = next(self.outcomes)
        losses = self.weights @ outcome
        rows = np.arange(len(action_of_row))
        self.fixed[rows, action_of_row] += losses
        self.surprise[rows, action_of_row] += expected_losses - losses
        self.rounds_played += 1
        self.forecast = self.forecast + (outcome - self.forecast) / self.rounds_played
        actions: NDArray[np.intp] = action_of_row[self.row_of]
        return actions


def _always(action: int, _: Any) -> int:
    return action


class Family(NamedTuple):
    """A family of curved losses.

    Attributes
    ----------
    draw : callable
        From shares of the goods that actions buy (K, A, d) and a random stream to a stack of K
        losses.
    formula : callable
        From such a stack and a row to the losses of that row by NumPy alone.
    """

    draw: Callable[[Array, np.random.Generator], Loss]
    formula: Callable[[Any, int], Formula]


def _draw_ces(shares: Array, rng: np.random.Generator) -> Loss:
    losses = len(shares)
    return CES(shares, rng.uniform(0.3, 0.9, losses), np.ones(losses))


def _ces_formula(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _coefficients(loss, row)
    power = float(loss.power[row])
    exponent = float(loss.exponent[row])
    return lambda y: offset + amplitude * (weights @ y**power) ** exponent


def _draw_cara(shares: Array, rng: np.random.Generator) -> Loss:
    return CARA(shares, rng.uniform(0.5, 3.0, len(shares)))


def _cara_formula(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _coefficients(loss, row)
    return lambda y: offset + amplitude * np.exp(weights @ y)


def _draw_cobb_douglas(shares: Array, _: np.random.Generator) -> Loss:
    return CobbDouglas(shares, y_min=MIN_GOOD)


def _cobb_douglas_formula(loss: Any, row: int) -> Formula:
    weights, offset, amplitude = _coefficients(loss, row)
    return lambda y: offset + amplitude * np.exp(weights @ np.log(np.maximum(y, MIN_GOOD)))


def _coefficients(loss: Any, row: int) -> tuple[Array, Array, Array]:
    """Return copies of a row's weights (A, d), offsets (A,) and amplitudes (A,)."""
    return (
        np.array(loss.weights[row]),
        np.array(loss.offset[row]),
        np.array(loss.amplitude[row]),
    )


FAMILIES: Mapping[str, Family] = {
    "CES": Family(draw=_draw_ces, formula=_ces_formula),
    "CARA": Family(draw=_draw_cara, formula=_cara_formula),
    "Cobb-Douglas": Family(draw=_draw_cobb_douglas, formula=_cobb_douglas_formula),
}


class CurvedCrowd(Crowd):
    """Agents with random losses of one family, one each."""

    def __init__(self, agents: int, family: str) -> None:
        self.family = FAMILIES[family]
        self.kind = f"{family} "
        super().__init__(agents)

    def _losses(self, rng: np.random.Generator) -> Any:
        shares = rng.random((self.rows, self.actions, self.goods)) / self.goods
        return self.family.draw(shares, rng)

    def _response(self, basis: LinearBasis) -> tuple[Response, tuple[Array, Array]]:
        unread = np.broadcast_to(0.0, self.loss.weights.shape)
        return CertaintyEquivalent(), (self.loss.offset, unread)

    def _loss_formula(self, row: int) -> Formula:
        return self.family.formula(self.loss, row)
