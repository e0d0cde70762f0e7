"""Agents of a user's own, one by one or all of a cohort at once (``docs/agents.md``).

They sit beside the fast cohorts in the same ledger: ``response = "stubborn"`` in a cohort of a
scenario makes one instance of a ``ScriptedAgent`` per agent, and of a ``ScriptedCrowd`` one for
all.

    @register.agent("stubborn")
    class Stubborn(ScriptedAgent):
        def act(self, forecast, context):
            return 0
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, Mask, draw_index, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import ROUNDING, name_of, numbers_of, read_only
from regretless.market.game.network import DelayedForecasts
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast, Policy, one_hot
from regretless.market.regret.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Heard:
    """What each agent of a cohort hears."""

    forecasts: tuple[Forecast, ...]  # the different ones
    which: Indices  # (N,), which of them each agent hears

    def __getitem__(self, agent: int) -> Forecast:
        return self.forecasts[int(self.which[agent])]

    @cached_property
    def label(self) -> Array | None:
        """The forecast outcome of each agent (N, d); None where the basis has none."""
        labels = [forecast.label for forecast in self.forecasts]
        known = [label for label in labels if label is not None]
        return read_only(np.stack(known)[self.which]) if len(known) == len(labels) else None

    @cached_property
    def statistics(self) -> Array:
        """The prediction of s(y) that each agent hears (N, n)."""
        return read_only(np.stack([forecast.statistics for forecast in self.forecasts])[self.which])

    def losses(self, loss: Loss) -> Array:
        """Return what each of N losses would be at the forecast outcome it hears (N, A).

        UserError where the basis has no label forecast.
        """
        told = [forecast.label for forecast in self.forecasts]
        at = [loss.losses(label) for label in told if label is not None]
        if len(at) < len(told):
            raise UserError("there is no forecast outcome in this basis; read forecasts.statistics")
        return np.asarray(np.stack(at)[self.which, np.arange(len(loss))])


class OwnAgents(Checkpointable):
    """What a user's own agents, one or many, have in common: a loss or N, a stream, columns.

    ``columns`` name attributes that hold a number for each agent: they are columns of the table
    ``states``, are read by ``model.agents.get`` and are kept in checkpoints.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    model: Any = None  # in which it plays; known before the first round
    number: int = 0  # in the tables, the first of a crowd's
    affordable: Mask | None = None  # (A,) or (N, A), what its account pays for; None for all

    def __init__(self, loss: Loss, rng: np.random.Generator) -> None:
        self.loss, self.rng = loss, rng

    @property
    def resumable(self) -> bool:
        """Whether there is a memory for checkpoints: columns, or a ``state`` of the class's own."""
        return bool(self.columns) or type(self).state is not OwnAgents.state

    def arrive(self) -> None:
        """Look at where they play (``model``), before the first round; UserError if it is amiss."""

    @property
    def book(self) -> Any:
        """Open orders before the round, read-only (``market.markets.order_book.View``), or None."""
        market = self.model.game.market
        return None if market is None else market.book()

    def state(self) -> dict[str, Any]:
        """Return the columns; a class that remembers more writes its own, and ``restore``."""
        return {name: copy(getattr(self, name)) for name in self.columns}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        for name in self.columns:
            setattr(self, name, state[name])


class ScriptedCrowd(OwnAgents):
    """All agents of a cohort, with one method for all of them."""

    here: Mask  # (N,), who takes part in this round; what the others would do is not played

    @property
    def account(self) -> Any:
        """The agents' ``cash`` (N,) and ``goods`` (N, g); None where nobody keeps accounts."""
        return self.model.account(self.number, len(self.loss))

    def act_many(self, forecasts: Heard, contexts: Context) -> ArrayLike:
        """Return the actions (N,), or probabilities (N, A) to be charged in expectation.

        ``forecasts.label`` (N, d) are the forecast outcomes, ``forecasts.statistics`` (N, n) the
        predictions in the block's basis, ``contexts["month"]`` a feature that everybody sees and
        ``contexts["signal"]`` (N,) what each sees alone, where the cohort has a signal.
        """
        raise UserError(f"class {type(self).__name__} has no act_many(forecasts, contexts)")

    def learn_many(self, losses: Array, outcome: Array) -> None:
        """Be told the losses of all agents' actions (N, A) and the outcome (d,)."""


def _column(member: OwnAgents, name: str, size: int) -> Array:
    """Read a column of a member (size,); UserError if it is no number, or of another length."""
    where = f"column '{name}' of class {type(member).__name__}"
    if (held := getattr(member, name, None)) is None:
        raise UserError(f"{where} is missing; set self.{name} in __init__")
    try:
        values = np.asarray(held, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} holds no number; give one for each agent") from error
    if values.ndim and values.shape != (size,):
        raise UserError(f"{where} has shape {values.shape}; give {size} numbers, one per agent")
    return np.broadcast_to(values, size).copy()


class ScriptedAgent(OwnAgents):
    """One agent with a method of its own; ``self.loss.losses(y)`` gives its losses (A,)."""

    def act(self, forecast: Forecast, context: Context) -> int | ArrayLike:
        """Return the action to play, or probabilities (A,) to be charged in expectation.

        ``forecast.label`` is the forecast outcome, ``forecast.statistics`` the prediction in the
        block's basis.
        """
        raise UserError(f"class {type(self).__name__} has no act(forecast, context); write it")

    def learn(self, losses: Array, outcome: Array) -> None:
        """Be told the losses of all actions (A,) and the outcome (d,) after the round."""

    @property
    def account(self) -> Any:
        """Its ``cash`` and ``goods`` (g,); None where the market keeps no accounts."""
        return self.model.account(self.number)

    def leave(self) -> None:
        """Play no further round; UserError if it is the last agent of all."""
        self.model.view(self.number).remove()

    @property
    def neighbours(self) -> list[Any]:
        """The agents next to it in the network, as views of ``market.model``; else nobody."""
        return [] if self.model is None else list(self.model.neighbours(self.number))


@dataclass(eq=False, kw_only=True)
class ScriptedCohort(Cohort, Checkpointable):
    """Scripted agents side by side, one ledger row each.

    ``relay`` holds the forecasts that come late, and the running mean that is handed to whom none
    has reached, as a forecast without an ensemble; it is needed with ``distance``.
    """

    REMEMBERED = ("ledger", "agents", "_streams")
    kind = "follower"

    name: str
    utility: str
    rule: str = ""  # the registered name
    block: int
    loss: Loss
    agents: list[Any]
    ledger: Ledger
    policies: tuple[Policy, ...] = ()
    distance: Any = None
    relay: DelayedForecasts | None = None

    def __post_init__(self) -> None:
        self.row_of = np.arange(len(self.loss))
        if self.distance is None:
            self.distance = np.zeros(len(self.loss), np.intp)
        self._idle = np.zeros(self.loss.actions)
        self.attend(None)

    @property
    def _streams(self) -> list[np.random.Generator]:
        return [agent.rng for agent in self.agents]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of what the agents show of themselves."""
        declared = (agent.columns for agent in self.agents)
        return tuple(dict.fromkeys(name for names in declared for name in names))

    def column(self, name: str) -> Array:
        """Return what the agents show under a name (N,); UserError if it is no number."""
        size = len(self.loss) // len(self.agents)
        return np.concatenate([_column(agent, name, size) for agent in self.agents])

    def enter(self, model: object, first: int) -> None:
        """Let the agents know where they play, and their numbers; UserError without a column."""
        for place, agent in enumerate(self.agents):
            agent.model, agent.number = model, first + place
            agent.arrive()
        for name in self.columns:
            self.column(name)

    def attend(self, here: Mask | None, awake: Mask | None = None) -> None:
        """Note who takes part in the round (N,) and can afford what (N, A); None for all."""
        self._here = np.ones(len(self.loss), dtype=np.bool_) if here is None else here
        for place, agent in enumerate(self.agents):
            agent.affordable = None if awake is None else read_only(awake)[place]

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        heard = self._heard(forecast)
        choices = [
            self._choice(agent, heard[place], context.of(place)) if here else (0, self._idle)
            for place, (agent, here) in enumerate(zip(self.agents, self._here, strict=True))
        ]
        actions, play = zip(*choices, strict=True)
        return Decision(np.array(play), np.array(actions, dtype=np.intp))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        losses = read_only(losses)
        for place in np.flatnonzero(self._here):
            self.agents[place].learn(losses[place], outcome)

    def _heard(self, forecast: Forecast) -> Heard:
        if self.relay is None:
            return Heard((forecast,), read_only(np.zeros(len(self.loss), dtype=np.intp)))
        (hops, which), relay = np.unique(self.distance, return_inverse=True), self.relay
        come = [forecast if h == 0 else relay.heard(int(h)) or relay.stand_in() for h in hops]
        return Heard(tuple(come), read_only(which))

    def _choice(self, agent: Any, forecast: Forecast, context: Context) -> tuple[int, Array]:
        count, given = self.loss.actions, agent.act(forecast, context)
        wanted = f"return an action from 0 to {count - 1} or {count} probabilities that sum to 1"
        answer = numbers_of(agent.act, given, wanted)
        if answer.ndim == 0:
            if not np.isfinite(answer) or answer != int(answer) or not 0 <= answer < count:
                raise UserError(f"{name_of(agent.act)} chose action {answer}; {wanted}")
            return int(answer), one_hot(np.array([int(answer)]), count)[0]
        if answer.shape != (count,) or not (answer >= 0).all() or abs(answer.sum() - 1) > ROUNDING:
            raise UserError(f"{name_of(agent.act)} returned {brief(given)}; {wanted}")
        return draw_index(answer, agent.rng), answer.astype(np.float64)


class CrowdCohort(ScriptedCohort):
    """A crowd that answers for all of a cohort's agents at once; ``agents`` holds it alone."""

    def attend(self, here: Mask | None, awake: Mask | None = None) -> None:
        super().attend(here)
        self.agents[0].here = read_only(self._here)
        self.agents[0].affordable = None if awake is None else read_only(awake)

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Ask the crowd, and draw actions from its answer; UserError if that is no strategy."""
        crowd, agents, count = self.agents[0], len(self.loss), self.loss.actions
        answer = crowd.act_many(self._heard(forecast), context)
        wanted = f"return {agents} actions from 0 to {count - 1}, or {agents} x {count} "
        wanted += "probabilities whose rows sum to 1"
        strategy = strategy_of(numbers_of(crowd.act_many, answer, wanted), agents, count)
        if strategy is None:
            raise UserError(f"{name_of(crowd.act_many)} returned {brief(answer)}; {wanted}")
        return Decision(strategy, draw_rows(strategy, crowd.rng.random(agents)))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        self.agents[0].learn_many(read_only(losses), outcome)


def strategy_of(answer: ArrayLike, agents: int, count: int) -> Array | None:
    """Spell out actions (agents,) or strategies (agents, count) as strategies, else None."""
    given = np.asarray(answer)
    if given.shape == (agents,) and np.isin(given, np.arange(count)).all():
        return one_hot(given.astype(np.intp), count)
    if given.shape != (agents, count) or given.dtype.kind not in "biuf":
        return None
    lawful = (given >= 0).all() and (abs(given.sum(1) - 1) <= ROUNDING).all()
    return given.astype(np.float64) if lawful else None
