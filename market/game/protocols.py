"""What each player of the game must offer, and in which order it is called.

Abstract methods must be written; every other method has a default, which mostly does nothing.
``market.game.round`` calls the players of a round in this order:

    adversary.context(history)             what everybody sees
    forecaster.mixture(context)            once per block
    adversary.commit(context, history, view)
    cohort.attend(present_rows, ...)       then cohort.decide(forecast, context), per cohort
    cohort.observe_actions(actions)        of cohorts that watch what all agents play
    cohort.learn(decision, losses, outcome)
    forecaster.observe(feedback)           once per block
    adversary.learn(payoff, observation)   if it writes the method

Before the first round an adversary that sees ``losses`` is told its followers (``meet``), and each
cohort the model and its agents' numbers (``enter``).

A user's own object need not inherit from these classes where ``as_forecaster`` adapts it.

Shapes: K rows of a cohort's ledger, N >= K agents, A actions; n statistics of a forecast, M models,
d coordinates of an outcome.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import is_ours, name_of, read_only
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.records import (
    AdversaryView,
    Context,
    Decision,
    Event,
    Forecast,
    History,
    Mixture,
    Observation,
    OutcomeDistribution,
    Policy,
    RoundFeedback,
)
from regretless.market.regret.ledger import Ledger

DEFAULT_SIGHTS = frozenset({"history", "mixture"})  # what an adversary sees that declares nothing


class Forecaster(ABC):
    """Predicts a vector in [0, 1]^n every round; a subclass writes ``mixture`` and ``update``.

    In a market each round calls ``mixture`` and then ``observe``. Outside a market a user calls
    ``predict``, which draws from the mixture, and then ``update`` with the vector that came true.
    A forecaster that is to be resumed has ``state`` and ``restore`` (``market.core.checkpoint``).
    """

    basis: Basis | None = None  # that of its predictions, where it adds labels to its mixtures
    made_of: tuple[str, ...] = ()  # the models whose predictions are its ``points``
    models: tuple[str, ...] = ()  # those whose predictions are comparators of its agents
    # Whether its mixtures follow from contexts and outcomes alone, whatever is drawn.
    ignores_draws: bool = False
    is_silent: bool = False  # whether nobody hears it: then nothing is drawn, recorded or learned
    has_ensembles: bool = False  # whether every prediction comes with its ensemble of outcomes
    instances: Sequence[Any] = ()  # its unbiased predictions, one per turn, if it has any
    rng: np.random.Generator  # of ``predict``, for a forecaster whose mixture has several atoms
    # Where outcomes come late: how many rounds before the one asked for are still open, and how
    # many outcomes of later rounds are known already when an old one is learned.
    ahead: int = 0
    newer: int = 0

    @abstractmethod
    def mixture(self, x: object = None) -> Mixture:
        """Return the distribution over predictions, given the context."""

    @abstractmethod
    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted."""

    def predict(self, x: object = None) -> Forecast:
        """Return the mixture and a draw from it, for use outside a market."""
        return self.mixture(x).draw(self.rng)

    def point(self, x: object = None) -> Array:
        """Return what ``predict`` draws (n,), for those who want no more."""
        return np.asarray(self.predict(x).statistics)

    def observe(self, feedback: RoundFeedback) -> None:
        """Learn from a finished round; the game calls it once a round, after ``mixture``.

        By default ``update`` is called with the statistics, read-only where it is a user's own.
        """
        update = self.update
        statistics = feedback.statistics
        if not is_ours(update):
            statistics = read_only(statistics)
        update(statistics)

    @property
    def points(self) -> Array:
        """What each of the models that it is made of predicts in the open round (M, n)."""
        return np.empty((0, 0))

    def opened(self) -> object:
        """Return what must be kept of the open round until its outcome comes: plain values."""
        return None

    def reopen(self, x: object, opened: object) -> None:
        """Go back to an open round with its context, so that ``update`` learns from it.

        ``opened`` is what the method of that name returned in that round.
        """
        self.predict(x)

    def suggested(self, group: Any) -> Indices:
        """Return the best action by each of its ``models``, for K losses of a group (K, M)."""
        raise ValueError(f"{type(self).__name__} has no models that are comparators")

    def described(self) -> dict[str, object]:
        """Return what a run's manifest says of it."""
        return {}

    @property
    def latest(self) -> Mixture | None:
        """The mean of its last mixture, as a mixture with one atom; None where it keeps none."""
        return None

    def prefer(self, values: Callable[..., Array]) -> None:  # noqa: B027 - most choose among no mixtures
        """Prefer mixtures with a low objective among those whose certificate is good enough."""

    def coverage(
        self, names: Sequence[str], *, is_proved: bool, turns: Sequence[Any] = ()
    ) -> pd.DataFrame | None:
        """Return how many outcomes, of these names, were at most its announced quantiles.

        A row per outcome and level, with bounds where they are proved here; None from a forecaster
        that announces none. ``turns`` are all forecasters that take turns with it, itself included.
        """
        return None

    def event_table(self) -> Iterable[Event]:
        """Yield every conditioning event that it keeps, with its occupancy and bias."""
        return ()

    def event_bounds(self, occupancy: Array) -> tuple[Array, Array] | None:
        """Return bounds on the biases of events with these occupancies, expected and realised.

        None without a theorem.
        """
        return None


@dataclass(frozen=True, eq=False)
class Follower:
    """What a leader knows of a cohort (``Adversary.meet``)."""

    name: str
    loss: Loss  # a stack of K
    row_of: Indices  # the row of each agent (N,)
    multiplicity: Indices | None = None  # how many agents each stands for (N,); None for one each

    @cached_property
    def counts(self) -> Array:
        """How many agents each row stands for (K,)."""
        counts = np.bincount(self.row_of, self.multiplicity, minlength=len(self.loss))
        return counts.astype(np.float64)

    @cached_property
    def agents(self) -> float:
        """How many agents there are."""
        return float(self.counts.sum())


class Payoff(ABC):
    """What a leader earns from its followers' actions."""

    of_losses: ClassVar[bool] = False  # whether it is a function of the followers' losses alone
    is_loss: ClassVar[bool] = False  # whether ``values`` are the followers' losses themselves

    def __init_subclass__(cls) -> None:
        """Take a class that writes ``values`` of its own for one that pays something else."""
        super().__init_subclass__()
        if "values" not in vars(cls):
            return
        if "is_loss" not in vars(cls):
            cls.is_loss = False
        if "values_of_all" not in vars(cls):
            cls.values_of_all = Payoff.values_of_all  # type: ignore[method-assign]

    @abstractmethod
    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return what each action of followers pays the leader (m, K, A).

        ``loss`` is a stack of K losses, ``outcomes`` (m, d).
        """

    def values_of_all(self, outcome: Array) -> Array | None:
        """Return what each action pays at an outcome (d,), whoever the follower is: (A,).

        None where it depends on the follower, as by default.
        """
        return None

    def keys(self) -> dict[str, object] | None:
        """Return it as a table of a scenario's adversary; None where no table can say it."""
        return None


def depends_on_losses_alone(payoff: Payoff) -> bool:
    """Whether a payoff is a function of the followers' losses alone.

    A payoff of the user's own that has nothing but ``values`` is not taken for one.
    """
    return getattr(payoff, "of_losses", False)


class Adversary(ABC):
    """Chooses what happens, in sight of the forecast's mixture but never of its draw.

    A subclass writes ``commit``. Outcomes have d = ``outcomes`` coordinates; ``rng`` is its own.
    """

    sees: frozenset[str] = DEFAULT_SIGHTS  # declared, out of ``market.game.adversary_view.SIGHTS``
    # Whether it plans with what a market makes of outcomes (``announced.moved``); else one that
    # plans has no place in a market.
    minds_market: ClassVar[bool] = False
    noise: ClassVar[str | None] = None  # a parameter of which 0 stands for no noise at all
    payoff: Payoff | None = None  # None for one without a motive
    support: Array | None = None  # the outcomes (m, d) that it chooses among, where it has a list
    # Why no theorem covers its outcomes and no bound is stated; empty where one may.
    why_no_guarantee: str = ""
    # Whether it is to be told what was played: whether its class writes ``learn``; of one that
    # passes it on, whether the other one learns.
    learns: bool = False

    def __init_subclass__(cls) -> None:
        """Note whether the class learns, since that is asked for in every round."""
        super().__init_subclass__()
        cls.learns = cls.learn is not Adversary.learn

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        self.outcomes = outcomes
        self.rng = rng

    @property
    def observes_play(self) -> bool:
        """Whether it learns, or is paid by, what agents do."""
        return self.payoff is not None or self.learns

    @property
    def innermost(self) -> "Adversary":
        """The adversary that decides: itself, unless it wraps another one."""
        return self

    def fixed_distribution(self) -> OutcomeDistribution | None:
        """Return the distribution that it commits to in every round; None if it changes."""
        return None

    def reachable(self, outcomes: Array) -> Array:
        """Return for each outcome (T, d) the nearest that it may choose; by default the outcome."""
        return outcomes

    def context(self, history: History) -> Context:
        """Return what everybody sees before the round; an empty context by default."""
        return Context()  # not one for all rounds: its dictionaries can be written into

    def context_for_tables(self) -> Context:
        """Return a context that has the features of every round, for tables without rows.

        It may be asked for at any time, and draws nothing; by default no features are known.
        """
        return Context()

    def round_columns(self, round_index: int) -> Mapping[str, Any]:
        """Return what else the table of rounds says of a round, by column; by default nothing.

        It is asked for after the round. An array (c,) under the name ``censored_`` is the columns
        ``censored_0``, ``censored_1`` and so on.
        """
        return {}

    def meet(self, followers: Sequence[Follower]) -> None:  # noqa: B027 - most need not know
        """Receive, before the first round, its followers, if it declares that it sees losses."""

    @abstractmethod
    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the distribution of this round's outcome."""

    def learn(self, payoff: float, observation: Observation) -> None:  # noqa: B027 - as above
        """Learn from a finished round: its payoff per agent, NaN without one, and the play."""


class Cohort(ABC):
    """Agents of one kind as stacked arrays; a subclass writes ``decide`` and ``rule``.

    Agents with equal losses and equal choices share a row of arrays and ledger: ``row_of`` maps the
    N agents to the K rows. Each round calls ``attend``, ``decide`` and ``learn``.
    """

    name: str
    kind: str  # "follower", "learner" or "adversary"
    utility: str
    block: int  # of the broadcast that it hears
    policies: tuple[Policy, ...]  # benchmarks, each from a context to an action
    row_of: Indices  # the row of each agent (N,)
    loss: Loss  # a stack of K
    ledger: Ledger
    multiplicity: Indices | None = None  # how many agents each stands for (N,); None for one each
    distance: Indices | None = None  # of each row from the forecaster (K,), in a network
    private: ClassVar[bool] = False  # whether each agent draws a prediction of its own
    bandit: bool = False  # whether an agent learns the loss of the action that it played alone
    # What those who respond to the forecast expect, linear in its statistics: (K, A), (K, A, n).
    coefficients: tuple[Array, Array]
    expects_own: bool = False  # whether these are the coefficients of its own losses
    # What all agents expect to lose (N, A) at an outcome (d,), if a market has losses of its own.
    market_losses: Callable[[Array], Array] | None = None
    listens: ClassVar[bool] = True  # whether its agents are told the forecast
    # Whether ``strategy`` says what is played before the draw, without side effects.
    foreseeable: ClassVar[bool] = False
    columns: tuple[str, ...] = ()  # names under which ``column`` shows numbers of a user's agents
    # Why no theorem of the forecast covers its agents; empty for those who respond to it.
    unguided: ClassVar[str] = "its agents decide for themselves"

    @property
    def rows_apart(self) -> bool:
        """Whether its agents learn from outcomes alone, and no row from another row."""
        return False

    @property
    def ignores_draws(self) -> bool:
        """Whether what it learns follows from losses alone, whatever is drawn."""
        return False

    @property
    def expects_losses(self) -> bool:
        """Whether its agents respond to predictions, by what they expect to lose there."""
        return not self.unguided

    @property
    def has_memory(self) -> bool:
        """Whether a round can change what it does in later ones."""
        return type(self).learn is not Cohort.learn

    @property
    def hears_ensemble(self) -> bool:
        """Whether it responds to the weighted outcomes of a forecast."""
        return False

    @property
    def population(self) -> int:
        """How many agents it has, here or not."""
        return len(self.row_of) if self.multiplicity is None else int(self.multiplicity.sum())

    @cached_property
    def counts(self) -> Array:
        """How many agents each row stands for (K,)."""
        return Follower(self.name, self.loss, self.row_of, self.multiplicity).counts

    def multiplicity_of(self, entries: Mask) -> Indices | None:
        """Return how many agents each of some entries (N,) stands for; None for one each."""
        return None if self.multiplicity is None else self.multiplicity[entries]

    @property
    def predictable(self) -> bool:
        """Whether it is known before the draw what all its agents would do at a prediction."""
        return self.foreseeable and not self.private

    @abstractmethod
    def decide(self, forecast: Forecast, context: Context) -> Decision:
        """Choose for every row, on hearing the block's forecast."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """Name of the response rule, for the logs."""

    def gap(self) -> float | None:
        """Return by how much its predicted loss can exceed the least one; None if unknown."""
        return None

    def proved_swap(self, rounds: int) -> float | None:
        """Return the rule's own bound on swap regret per round after so many; None without one."""
        return None

    def enter(self, model: object, first: int) -> None:  # noqa: B027 - most need not know
        """Receive, before the first round, the model and the first agent's number in the tables."""

    def attend(self, present_rows: Mask | None, affordable: Mask | None = None) -> None:  # noqa: B027 - as above
        """Receive which rows take part (K,), and what they can afford (K, A); None for all."""

    @property
    def unchanged_rounds(self) -> Integers | None:
        """For how many rounds what each row likes best has not changed (K,); None if unknown."""
        return None

    @property
    def watches_actions(self) -> bool:
        """Whether it is to be told what all agents play."""
        return False

    def observe_actions(self, actions: Indices) -> None:  # noqa: B027 - as above
        """Receive what all agents of the market played (M,), -1 for absent ones.

        It is called before ``learn``, of a cohort that ``watches_actions``.
        """

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:  # noqa: B027
        """Learn from a finished round: its decision, losses of all actions (K, A), outcome (d,)."""

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        """Return the mixed strategy (K, A), over the draw, of a ``foreseeable`` cohort."""
        raise NotImplementedError(f"{type(self).__name__} is not foreseeable")

    def rows_of_every_part(self) -> Indices:
        """Return the rows that every ``part`` needs, to compute as the whole does."""
        return np.arange(len(self.row_of))

    def part(self, rows: Indices, agents: slice) -> "Cohort":
        """Return some agents as a cohort that has played no round, to play elsewhere as here.

        ``rows`` (k,) of the ledger, ascending, are theirs and those of ``rows_of_every_part``.
        """
        raise NotImplementedError(f"{type(self).__name__} has no parts")

    def fixed_parts(self) -> Iterable[object]:
        """Return what playing never changes: a copy that plays on shares it."""
        return ()

    def column(self, name: str) -> Array:
        """Return what each agent shows under a name (N,)."""
        raise KeyError(name)


def numbered(cohorts: Iterable[Cohort]) -> Iterator[tuple[int, Cohort]]:
    """Yield each cohort with its first agent's number in the tables: from 1 through all cohorts."""
    first = 1
    for cohort in cohorts:
        yield first, cohort
        first += len(cohort.row_of)


FORECASTER_METHODS = ("mixture", "predict", "update", "observe")


class ForeignForecaster(Checkpointable, Forecaster):
    """A user's object with ``predict`` and ``update``, as a forecaster.

    Those of ``FORECASTER_METHODS`` that the object has are called in place of the defaults.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("player",)

    def __init__(self, player: object) -> None:
        self.player = player
        for name in FORECASTER_METHODS:
            method = getattr(player, name, None)
            if method is not None:
                setattr(self, name, method)

    def mixture(self, x: object = None) -> Mixture:
        """Return the player's mixture in arrays of its own: the player may write into its later."""
        return self._checked_forecast(x).mixture.copied()

    def point(self, x: object = None) -> Array:
        return self._checked_forecast(x).statistics

    def _checked_forecast(self, x: object) -> Forecast:
        forecast = self.predict(x)
        if not isinstance(forecast, Forecast):
            raise UserError(
                f"{name_of(self.predict)} returned {brief(forecast)}; return a Forecast"
            )
        return forecast

    def update(self, y: ArrayLike) -> None:
        """Learn nothing: an object that learns has a method of this name."""

    def __repr__(self) -> str:
        return repr(self.player)


def as_forecaster(player: object) -> Forecaster:
    """Return a forecaster as it is, and any other object with its methods as one."""
    if isinstance(player, Forecaster):
        return player
    return ForeignForecaster(player)
