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
from regretless.market.core.own_code import SUM_TOLERANCE, name_of, numbers_of, read_only
from regretless.market.game.network import DelayedForecasts
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.records import Context, Decision, Forecast, Policy, one_hot
from regretless.market.regret.ledger import Ledger


@dataclass(frozen=True, eq=False)
class HeardForecasts:
    """What each agent of a cohort hears."""

    forecasts: tuple[Forecast, ...]  # the different ones
    index_of_agent: Indices  # (N,), which of them each agent hears

    def __getitem__(self, agent: int) -> Forecast:
        return self.forecasts[int(self.index_of_agent[agent])]

    @cached_property
    def label(self) -> Array | None:
        """The forecast outcome of each agent (N, d); None where the basis has none."""
        labels = [forecast.label for forecast in self.forecasts]
        labels_that_exist = [label for label in labels if label is not None]
        return (
            read_only(np.stack(labels_that_exist)[self.index_of_agent])
            if len(labels_that_exist) == len(labels)
            else None
        )

    @cached_property
    def statistics(self) -> Array:
        """The prediction of s(y) that each agent hears (N, n)."""
        return read_only(
            np.stack([forecast.statistics for forecast in self.forecasts])[self.index_of_agent]
        )

    def losses(self, loss: Loss) -> Array:
        """Return what each of N losses would be at the forecast outcome it hears (N, A).

        UserError where the basis has no label forecast.
        """
        labels = [forecast.label for forecast in self.forecasts]
        loss_tables = [loss.losses(label) for label in labels if label is not None]
        if len(loss_tables) < len(labels):
            raise UserError("there is no forecast outcome in this basis; read forecasts.statistics")
        return np.asarray(np.stack(loss_tables)[self.index_of_agent, np.arange(len(loss))])


class UserAgents(Checkpointable):
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
        return bool(self.columns) or type(self).state is not UserAgents.state

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


class ScriptedCrowd(UserAgents):
    """All agents of a cohort, with one method for all of them."""

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


def _read_column(agents: UserAgents, name: str, size: int) -> Array:
    """Read a column of a member (size,); UserError if it is no number, or of another length."""
    column_name = f"column '{name}' of class {type(agents).__name__}"
    if (attribute := getattr(agents, name, None)) is None:
        raise UserError(f"{column_name} is missing; set self.{name} in __init__")
    try:
        values = np.asarray(attribute, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{column_name} holds no number; give one for each agent") from error
    if values.ndim and values.shape != (size,):
        raise UserError(
            f"{column_name} has shape {values.shape}; give {size} numbers, one per agent"
        )
    return np.broadcast_to(values, size).copy()


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
        self._idle_strategy = np.zeros(self.loss.actions)
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
        agents_per_script = len(self.loss) // len(self.agents)
        return np.concatenate(
            [_read_column(agent, name, agents_per_script) for agent in self.agents]
        )

    def enter(self, model: object, first_number: int) -> None:
        """Let the agents know where they play, and their numbers; UserError without a column."""
        for row, agent in enumerate(self.agents):
            agent.model, agent.number = model, first_number + row
            agent.arrive()
        for name in self.columns:
            self.column(name)

    def attend(self, present_rows: Mask | None, affordable_actions: Mask | None = None) -> None:
        """Note who takes part in the round (N,) and can afford what (N, A); None for all."""
        self._is_present = (
            np.ones(len(self.loss), dtype=np.bool_) if present_rows is None else present_rows
        )
        for row, agent in enumerate(self.agents):
            agent.affordable = (
                None if affordable_actions is None else read_only(affordable_actions)[row]
            )

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        forecasts = self._forecasts_heard(forecast)
        answers = [
            self._ask_agent(agent, forecasts[row], context.of(row))
            if is_present
            else (0, self._idle_strategy)
            for row, (agent, is_present) in enumerate(
                zip(self.agents, self._is_present, strict=True)
            )
        ]
        actions, play = zip(*answers, strict=True)
        return Decision(np.array(play), np.array(actions, dtype=np.intp))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        losses = read_only(losses)
        for row in np.flatnonzero(self._is_present):
            self.agents[row].learn(losses[row], outcome)

    def _forecasts_heard(self, forecast: Forecast) -> HeardForecasts:
        if self.relay is None:
            return HeardForecasts((forecast,), read_only(np.zeros(len(self.loss), dtype=np.intp)))
        (distances, index_of_agent), relay = (
            np.unique(self.distance, return_inverse=True),
            self.relay,
        )
        forecasts = [
            forecast if distance == 0 else relay.heard(int(distance)) or relay.stand_in()
            for distance in distances
        ]
        return HeardForecasts(tuple(forecasts), read_only(index_of_agent))

    def _ask_agent(self, agent: Any, forecast: Forecast, context: Context) -> tuple[int, Array]:
        n_actions, answer = self.loss.actions, agent.act(forecast, context)
        expected = (
            f"return an action from 0 to {n_actions - 1} or {n_actions} probabilities that sum to 1"
        )
        numeric_answer = numbers_of(agent.act, answer, expected)
        if numeric_answer.ndim == 0:
            if (
                not np.isfinite(numeric_answer)
                or numeric_answer != int(numeric_answer)
                or not 0 <= numeric_answer < n_actions
            ):
                raise UserError(f"{name_of(agent.act)} chose action {numeric_answer}; {expected}")
            return int(numeric_answer), one_hot(np.array([int(numeric_answer)]), n_actions)[0]
        if (
            numeric_answer.shape != (n_actions,)
            or not (numeric_answer >= 0).all()
            or abs(numeric_answer.sum() - 1) > ROUNDING
        ):
            raise UserError(f"{name_of(agent.act)} returned {brief(answer)}; {expected}")
        return draw_index(numeric_answer, agent.rng), numeric_answer.astype(np.float64)


class CrowdCohort(ScriptedCohort):
    """A crowd that answers for all of a cohort's agents at once; ``agents`` holds it alone."""

    def attend(self, present_rows: Mask | None, affordable_actions: Mask | None = None) -> None:
        super().attend(present_rows)
        self.agents[0].here = read_only(self._is_present)
        self.agents[0].affordable = (
            None if affordable_actions is None else read_only(affordable_actions)
        )

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Ask the crowd, and draw actions from its answer; UserError if that is no strategy."""
        crowd, n_agents, n_actions = self.agents[0], len(self.loss), self.loss.actions
        answer = crowd.act_many(self._forecasts_heard(forecast), context)
        expected = (
            f"return {n_agents} actions from 0 to {n_actions - 1}, or {n_agents} x {n_actions} "
        )
        expected += "probabilities whose rows sum to 1"
        strategy = spell_out_strategies(
            numbers_of(crowd.act_many, answer, expected), n_agents, n_actions
        )
        if strategy is None:
            raise UserError(f"{name_of(crowd.act_many)} returned {brief(answer)}; {expected}")
        return Decision(strategy, draw_rows(strategy, crowd.rng.random(n_agents)))

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:
        self.agents[0].learn_many(read_only(losses), outcome)


def spell_out_strategies(answer: ArrayLike, n_agents: int, n_actions: int) -> Array | None:
    """Spell out actions (agents,) or strategies (agents, count) as strategies, else None."""
    numeric_answer = np.asarray(answer)
    if numeric_answer.shape == (n_agents,) and np.isin(numeric_answer, np.arange(n_actions)).all():
        return one_hot(numeric_answer.astype(np.intp), n_actions)
    if numeric_answer.shape != (n_agents, n_actions) or numeric_answer.dtype.kind not in "biuf":
        return None
    is_strategy = (numeric_answer >= 0).all() and (abs(numeric_answer.sum(1) - 1) <= ROUNDING).all()
    return numeric_answer.astype(np.float64) if is_strategy else None
