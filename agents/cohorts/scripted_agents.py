"""Agents that a user has written, one by one or all of a cohort at once (``docs/agents.md``).

A user subclasses ``ScriptedAgent`` (one object per agent) or ``ScriptedCrowd`` (one object for all
agents of a cohort) and registers the class under a name:

    @register.agent("stubborn")
    class Stubborn(ScriptedAgent):
        def act(self, forecast, context):
            return 0

``response = "stubborn"`` in a cohort of a scenario then makes the objects. They sit beside the fast
cohorts in the same ledger: ``ScriptedCohort`` and ``CrowdCohort`` call them in every round, hand
them read-only arrays, and check what they answer. A wrong answer is a UserError that names the
class and the method.

Shapes: N agents of a cohort, A actions, d coordinates of an outcome, n statistics of a prediction.
"""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regretless.market.core.arrays import Array, Indices, Mask, draw_index, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import SUM_TOLERANCE, answer_as_numbers, name_of, read_only
from regretless.market.game.network import DelayedForecasts
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast, Policy, one_hot
from regretless.market.regret.ledger import Ledger


@dataclass(frozen=True, eq=False)
class HeardForecasts:
    """What each agent of a cohort hears; ``heard[i]`` is the forecast that agent i hears."""

    forecasts: tuple[Forecast, ...]  # the different ones
    which: Indices  # (N,), which of them each agent hears

    def __getitem__(self, agent: int) -> Forecast:
        return self.forecasts[int(self.which[agent])]

    @cached_property
    def label(self) -> Array | None:
        """The forecast outcome of each agent (N, d); None where the basis has none."""
        labels = self._labels()
        if len(labels) < len(self.forecasts):
            return None
        return read_only(np.stack(labels)[self.which])

    @cached_property
    def statistics(self) -> Array:
        """The prediction of s(y) that each agent hears (N, n)."""
        predictions = np.stack([forecast.statistics for forecast in self.forecasts])
        return read_only(predictions[self.which])

    def losses(self, loss: Loss) -> Array:
        """Return what each of N losses would be at the forecast outcome it hears (N, A).

        UserError where the basis has no label forecast.
        """
        labels = self._labels()
        if len(labels) < len(self.forecasts):
            raise UserError("there is no forecast outcome in this basis; read forecasts.statistics")
        loss_tables = np.stack([loss.losses(label) for label in labels])
        return np.asarray(loss_tables[self.which, np.arange(len(loss))])

    def _labels(self) -> list[Array]:
        """Return the label forecasts (d,) of those forecasts that have one."""
        labels = [forecast.label for forecast in self.forecasts]
        return [label for label in labels if label is not None]


class UserAgents(Checkpointable):
    """What one scripted agent and a crowd of them have in common.

    Attributes
    ----------
    loss : Loss
        The agent's loss, or a stack of a crowd's N.
    rng : Generator
        The random stream of this object; nobody else draws from it.
    columns : tuple of str
        Names of attributes that hold a number for each agent. They are columns of the table
        ``states``, are read by ``model.agents.get`` and are kept in checkpoints.
    model : MarketModel
        The model in which it plays, known before the first round.
    number : int
        Its number in the tables, or that of a crowd's first agent.
    affordable : (A,) or (N, A) bools, or None
        The actions that its account pays for in this round; None where it may choose any.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    number: int = 0
    affordable: Mask | None = None
    has_looked: bool = False  # whether it has read ``model``
    # Brings the model up to date, while rounds are played that it has not been told of
    # (``agents.cohorts.scripted_rounds``).
    bring_up_to_date: Callable[[], None] | None = None
    _model: Any = None

    def __init__(self, loss: Loss, rng: np.random.Generator) -> None:
        self.loss = loss
        self.rng = rng

    @property
    def model(self) -> Any:
        """The model in which it plays, as it is after the last round; None before it is known."""
        self.has_looked = True
        if self.bring_up_to_date is not None:
            self.bring_up_to_date()
        return self._model

    @model.setter
    def model(self, model: Any) -> None:
        self._model = model

    @property
    def resumable(self) -> bool:
        """Whether there is a memory for checkpoints: columns, or a ``state`` of the class's own."""
        return bool(self.columns) or type(self).state is not UserAgents.state

    def arrive(self) -> None:
        """Look at where it plays (``model``), before the first round; UserError if it is amiss."""

    @property
    def book(self) -> Any:
        """Open orders before the round, read-only (``market.markets.order_book.View``), or None."""
        market = self.model.game.market
        return None if market is None else market.book()

    def state(self) -> dict[str, Any]:
        """Return the columns; a class that remembers more writes its own, and ``restore``."""
        return {name: copy(getattr(self, name)) for name in self.columns}

    def restore(self, state: dict[str, Any]) -> None:
        """Set the columns to what ``state`` returned, to continue from a checkpoint."""
        for name in self.columns:
            setattr(self, name, state[name])


class ScriptedCrowd(UserAgents):
    """All agents of a cohort, with one method for all of them; a subclass writes ``act_many``."""

    here: Mask  # (N,), who takes part in this round; what the others would do is not played

    @property
    def account(self) -> Any:
        """The agents' ``cash`` (N,) and ``goods`` (N, g); None where nobody keeps accounts."""
        return self.model.account(self.number, len(self.loss))

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> ArrayLike:
        """Return the actions (N,), or probabilities (N, A) to be charged in expectation.

        ``forecasts.label`` (N, d) are the forecast outcomes, ``forecasts.statistics`` (N, n) the
        predictions in the block's basis, ``contexts["month"]`` a feature that everybody sees and
        ``contexts["signal"]`` (N,) what each sees alone, where the cohort has a signal.
        """
        raise UserError(f"class {type(self).__name__} has no act_many(forecasts, contexts)")

    def learn_many(self, losses: Array, outcome: Array) -> None:
        """Be told the losses of all agents' actions (N, A) and the outcome (d,)."""


class ScriptedAgent(UserAgents):
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

    Attributes
    ----------
    rule : str
        The name under which the agents' class is registered.
    loss : Loss
        A stack of the N agents' losses.
    agents : list
        N ``ScriptedAgent`` objects, or one ``ScriptedCrowd`` (``CrowdCohort``).
    distance : (N,) ints or None
        Hops of each agent from the forecaster; None where all hear at once.
    relay : DelayedForecasts or None
        Holds the forecasts that come late, and the running mean, which is handed as a forecast
        without an ensemble to whom no forecast has reached. It is needed with ``distance``.
    """

    REMEMBERED = ("ledger", "agents", "_streams")
    kind = "follower"

    name: str
    utility: str
    rule: str = ""
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
        self._everybody = read_only(np.ones(len(self.loss), dtype=np.bool_))
        self._first_for_all = read_only(np.zeros(len(self.loss), dtype=np.intp))
        self.attend(None)  # everybody takes part, until an attendance is set

    @property
    def _streams(self) -> list[np.random.Generator]:
        return [agent.rng for agent in self.agents]

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of all columns that any of the agents declares, in the order of first mention."""
        names: dict[str, None] = {}
        for agent in self.agents:
            names.update(dict.fromkeys(agent.columns))
        return tuple(names)

    def column(self, name: str) -> Array:
        """Return a column of all agents (N,); UserError if an agent holds no number there."""
        agents_per_object = len(self.loss) // len(self.agents)
        return np.concatenate(
            [_read_column(agent, name, agents_per_object) for agent in self.agents]
        )

    def enter(self, model: object, first_number: int) -> None:
        """Let the agents know where they play, and their numbers; UserError without a column."""
        for row, agent in enumerate(self.agents):
            agent.model = model
            agent.number = first_number + row
            agent.arrive()
        for name in self.columns:
            self.column(name)

    def attend(self, present_rows: Mask | None, affordable_actions: Mask | None = None) -> None:
        """Note who takes part in the round (N,) and can afford what (N, A); None for all."""
        self._note_presence(present_rows)
        for row, agent in enumerate(self.agents):
            if affordable_actions is None:
                agent.affordable = None
            else:
                agent.affordable = read_only(affordable_actions)[row]

    def _note_presence(self, present_rows: Mask | None) -> None:
        if present_rows is None:
            present_rows = self._everybody
        self._is_present = present_rows

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Ask each agent that takes part; UserError at an answer that is no action or strategy."""
        forecasts = self._forecasts_heard(forecast)
        n_agents = len(self.agents)
        actions = np.zeros(n_agents, dtype=np.intp)
        strategies = np.zeros((n_agents, self.loss.actions))  # zeros of who does not take part
        for row, agent in enumerate(self.agents):
            if self._is_present[row]:
                actions[row] = self.ask_agent(
                    agent, forecasts[row], context.of(row), strategy=strategies[row]
                )
        return Decision(strategies, actions)

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        losses = read_only(losses)
        for row, agent in enumerate(self.agents):
            if self._is_present[row]:
                agent.learn(losses[row], outcome)

    def _forecasts_heard(self, forecast: Forecast) -> HeardForecasts:
        """Return what the agents hear when this forecast is broadcast."""
        if self.relay is None:
            return HeardForecasts((forecast,), self._first_for_all)
        distances, index_of_agent = np.unique(self.distance, return_inverse=True)
        forecasts = []
        for distance in distances:
            heard_forecast: Forecast | None = forecast
            if distance > 0:
                heard_forecast = self.relay.forecast_heard_at(int(distance))
            if heard_forecast is None:  # no forecast has come this far yet
                heard_forecast = self.relay.running_mean_forecast()
            forecasts.append(heard_forecast)
        return HeardForecasts(tuple(forecasts), read_only(index_of_agent))

    def ask_agent(
        self, agent: Any, forecast: Forecast, context: Context, *, strategy: Array
    ) -> int:
        """Return the action that an agent plays, and write its mixed strategy.

        ``strategy`` (A,) holds zeros and is changed in place.
        """
        n_actions = len(strategy)
        raw_answer = agent.act(forecast, context)
        if isinstance(raw_answer, int | np.integer) and 0 <= raw_answer < n_actions:
            action = int(raw_answer)
            strategy[action] = 1.0
            return action
        expected = (
            f"return an action from 0 to {n_actions - 1} or {n_actions} probabilities that sum to 1"
        )
        answer = answer_as_numbers(agent.act, raw_answer, expected)
        if answer.ndim == 0:
            is_whole = np.isfinite(answer) and answer == int(answer)
            if not is_whole or not 0 <= answer < n_actions:
                raise UserError(f"{name_of(agent.act)} chose action {answer}; {expected}")
            action = int(answer)
            strategy[action] = 1.0
            return action
        is_strategy = (
            answer.shape == (n_actions,)
            and (answer >= 0).all()
            and abs(answer.sum() - 1) <= SUM_TOLERANCE
        )
        if not is_strategy:
            raise UserError(f"{name_of(agent.act)} returned {brief(raw_answer)}; {expected}")
        strategy[:] = answer
        return draw_index(answer, agent.rng)


class CrowdCohort(ScriptedCohort):
    """A crowd that answers for all of a cohort's agents at once; ``agents`` holds it alone."""

    def attend(self, present_rows: Mask | None, affordable_actions: Mask | None = None) -> None:
        self._note_presence(present_rows)
        crowd = self.agents[0]
        crowd.here = read_only(self._is_present)
        crowd.affordable = None if affordable_actions is None else read_only(affordable_actions)

    @cached_property
    def _expected_answer(self) -> str:
        """What a crowd must return, as an error says it."""
        n_agents, n_actions = self.loss.offset.shape
        return (
            f"return {n_agents} actions from 0 to {n_actions - 1}, or {n_agents} x {n_actions} "
            "probabilities whose rows sum to 1"
        )

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Ask the crowd, and draw actions from its answer; UserError if that is no strategy."""
        crowd = self.agents[0]
        n_agents = len(self.loss)
        n_actions = self.loss.actions
        raw_answer = crowd.act_many(self._forecasts_heard(forecast), context)
        answer = answer_as_numbers(crowd.act_many, raw_answer, self._expected_answer)
        strategy = _crowd_strategy(answer, n_agents, n_actions)
        if strategy is None:
            method = name_of(crowd.act_many)
            raise UserError(f"{method} returned {brief(raw_answer)}; {self._expected_answer}")
        return Decision(strategy, draw_rows(strategy, crowd.rng.random(n_agents)))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        self.agents[0].learn_many(read_only(losses), outcome)


def _read_column(agents: UserAgents, name: str, size: int) -> Array:
    """Return the attribute ``name`` as an array (size,), repeated if it is a single number.

    ``size`` is 1 for a scripted agent and N for a crowd. UserError if the attribute is missing, is
    no number, or has another length.
    """
    column = f"column '{name}' of class {type(agents).__name__}"
    attribute = getattr(agents, name, None)
    if attribute is None:
        raise UserError(f"{column} is missing; set self.{name} in __init__")
    try:
        values = np.asarray(attribute, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{column} holds no number; give one for each agent") from error
    if values.ndim and values.shape != (size,):
        raise UserError(f"{column} has shape {values.shape}; give {size} numbers, one per agent")
    return np.broadcast_to(values, size).copy()


def _are_actions(answer: NDArray[Any], n_actions: int) -> bool:
    """Whether all of an answer's numbers (N,) are actions."""
    if answer.dtype.kind in "iu":
        return bool(_are_indices(answer, n_actions))
    return bool(np.isin(answer, np.arange(n_actions)).all())


@compiled(nogil=True)
def _are_indices(numbers: Indices, end: int) -> bool:
    """Whether all of ``numbers`` (N,) are at least 0 and below ``end`` (compiled)."""
    are_all = True
    for number in numbers:
        are_all &= 0 <= number < end
    return are_all


def _crowd_strategy(answer: NDArray[Any], n_agents: int, n_actions: int) -> Array | None:
    """Return a crowd's answer as mixed strategies (N, A); None if it is none.

    ``answer`` has an action of each agent (N,), or probabilities (N, A).
    """
    if answer.shape == (n_agents,) and _are_actions(answer, n_actions):
        return one_hot(answer.astype(np.intp), n_actions)
    if answer.shape != (n_agents, n_actions):
        return None
    strategy = np.array(answer, dtype=np.float64)
    return strategy if _are_distributions(strategy) else None


@compiled(nogil=True)
def _are_distributions(strategies: Array) -> bool:
    """Whether each row of ``strategies`` (N, A) has probabilities that sum to 1 (compiled)."""
    are_all = True
    for row in range(strategies.shape[0]):
        total = 0.0
        for action in range(strategies.shape[1]):
            are_all &= strategies[row, action] >= 0  # false of NaN
            total += strategies[row, action]
        are_all &= abs(total - 1) <= SUM_TOLERANCE
    return are_all
