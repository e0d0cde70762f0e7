"""What the players must offer, and what they may: each optional method does nothing by default.

Shapes: K rows of a cohort's ledger, N >= K agents, A actions; n statistics of a forecast, M models,
d coordinates of an outcome.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import name_of
from regretless.market.losses import Loss
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
)
from regretless.market.regret.ledger import Ledger

USUAL = frozenset({"history", "mixture"})  # what an adversary sees that declares nothing


class Forecaster(ABC):
    """Predicts a vector in [0, 1]^n every round; a subclass writes ``mixture`` and ``update``.

    One that is to be resumed has ``state`` and ``restore`` as well (``market.core.checkpoint``).
    """

    made_of: tuple[str, ...] = ()  # the models whose predictions are its ``points``
    models: tuple[str, ...] = ()  # those whose predictions are comparators of its agents
    spelled: bool = False  # whether every prediction comes with its ensemble of outcomes
    instances: Sequence[Any] = ()  # its unbiased predictions, one per turn, if it has any
    rng: np.random.Generator  # of ``predict``, for one that mixes
    ahead: int = 0  # rounds before the one asked for that are open, where outcomes come late
    newer: int = 0  # outcomes of later rounds that it knows already when it learns an old one

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

    def observe_outcome(self, outcome: Array) -> None:  # noqa: B027 - most need not know
        """See the outcome (d,) itself, just before ``update`` in the same round."""

    def drew(self, index: int) -> None:  # noqa: B027 - most need not know
        """Learn which of its open mixture's predictions was broadcast, just before ``update``."""

    @property
    def points(self) -> Array:
        """What each of the models that it is made of predicts in the open round (M, n)."""
        return np.empty((0, 0))

    def opened(self) -> object:
        """Return what is to be kept of the open round until its outcome comes, for a checkpoint."""
        return None

    def reopen(self, x: object, opened: object) -> None:
        """Go back to a round that was open, with its context, so that ``update`` learns from it."""
        self.predict(x)

    def suggested(self, group: Any) -> Indices:
        """Return what its ``models`` suggest to K losses, linear in the statistics (K, M)."""
        raise ValueError(f"{type(self).__name__} has no models that are comparators")

    def described(self) -> dict[str, object]:
        """Return what a run's manifest says of it."""
        return {}

    @property
    def latest(self) -> Mixture | None:
        """The mean of its last mixture, as a mixture of one; None where it keeps none."""
        return None

    def prefer(self, values: Callable[..., Array]) -> None:  # noqa: B027 - most choose among no mixtures
        """Prefer mixtures with a low objective among those that are good enough."""

    def event_table(self) -> Iterable[Event]:
        """Yield every event that it keeps."""
        return ()

    def event_bounds(self, occupancy: Array) -> tuple[Array, Array] | None:
        """Bound the biases of such events, in expectation and as drawn; None without a theorem."""
        return None


@dataclass(frozen=True, eq=False)
class Follower:
    """A cohort as a leader knows it."""

    name: str
    loss: Loss  # a stack of K
    row_of: Indices  # the row of each agent (N,)
    multiplicity: Indices | None = None  # how many agents each stands for (N,); None for one each

    @property
    def counts(self) -> Array:
        """How many agents each row stands for (K,)."""
        counts = np.bincount(self.row_of, self.multiplicity, minlength=len(self.loss))
        return counts.astype(np.float64)


class Payoff(ABC):
    """A leader's payoff."""

    of_losses: ClassVar[bool] = False  # whether it is read off the followers' losses alone

    @abstractmethod
    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return what it is paid (m, K, A) by followers with K losses at outcomes (m, d)."""

    def keys(self) -> dict[str, object] | None:
        """Return what a table of an adversary says of it; None where no table can."""
        return None


class Adversary(ABC):
    """Chooses what happens, in sight of the forecast's mixture but never of its draw.

    A subclass writes ``commit``. Outcomes have d = ``outcomes`` coordinates; ``rng`` is its own.
    """

    sees: frozenset[str] = USUAL  # declared, out of ``market.game.adversary_view.SIGHTS``
    # Whether it plans with what a market makes of outcomes (``announced.moved``); else one that
    # plans has no place in a market.
    minds_market: ClassVar[bool] = False
    noise: ClassVar[str | None] = None  # a parameter of which 0 stands for no noise at all
    payoff: Payoff | None = None  # None for one without a motive
    support: Array | None = None  # the outcomes (m, d) that it chooses among, where it has a list

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        self.outcomes, self.rng = outcomes, rng

    @property
    def observes_play(self) -> bool:
        """Whether it is told, or paid by, what agents do."""
        return self.payoff is not None or type(self).learn is not Adversary.learn

    @property
    def innermost(self) -> "Adversary":
        """Who decides: itself, unless it wraps another one."""
        return self

    def reachable(self, outcomes: Array) -> Array:
        """Return the nearest outcomes (T, d) that it may choose to these; by default they are."""
        return outcomes

    def context(self, history: History) -> Context:
        """Return what everybody sees before the round; an empty context by default."""
        return Context()

    def meet(self, followers: Sequence[Follower]) -> None:  # noqa: B027 - most need not know
        """Be told once whom it plays against, if it declares that it sees losses."""

    @abstractmethod
    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the distribution of this round's outcome."""

    def learn(self, payoff: float, observation: Observation) -> None:  # noqa: B027 - as above
        """Be told after the round what it was paid (NaN for nothing), and what was observed."""


class Cohort(ABC):
    """Agents of one kind as stacked arrays; a subclass writes ``decide`` and ``rule``."""

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
    bandit: bool = False  # whether an agent is told the loss of what it played alone
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
        """Whether nothing but outcomes reaches its agents, and no row learns from another."""
        return False

    @property
    def hears_ensemble(self) -> bool:
        """Whether it responds to the weighted outcomes of a forecast."""
        return False

    @property
    def population(self) -> int:
        """How many agents it has, here or not."""
        return len(self.row_of) if self.multiplicity is None else int(self.multiplicity.sum())

    @property
    def counts(self) -> Array:
        """How many agents each row stands for (K,)."""
        return Follower(self.name, self.loss, self.row_of, self.multiplicity).counts

    def multiplicity_of(self, who: Mask) -> Indices | None:
        """Return how many agents each of some entries (N,) stands for; None for one each."""
        return None if self.multiplicity is None else self.multiplicity[who]

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
        """Excess over a best response to what it predicts; None where it promises nothing."""
        return None

    def proved_swap(self, rounds: int) -> float | None:
        """Bound swap regret per round of so many by what the agents' rule proves, if it does."""
        return None

    def enter(self, model: object, first: int) -> None:  # noqa: B027 - most need not know
        """Be told the model and the number of the cohort's first agent in the tables."""

    def attend(self, here: Mask | None, awake: Mask | None = None) -> None:  # noqa: B027 - as above
        """Be told which rows take part (K,), and what they can afford (K, A); None for all."""

    def learn(self, decision: Decision, losses: Array, outcome: Array) -> None:  # noqa: B027
        """Be told the losses of all actions (K, A), after the round."""

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        """Return the mixed strategy (K, A), over the draw, of a ``foreseeable`` cohort."""
        raise NotImplementedError(f"{type(self).__name__} is not foreseeable")

    def company(self) -> Indices:
        """Return the rows that every ``part`` needs, to compute as the whole does."""
        return np.arange(len(self.row_of))

    def part(self, rows: Indices, agents: slice) -> "Cohort":
        """Return some agents as a cohort that has played no round, to play elsewhere as here.

        ``rows`` (k,) of the ledger, ascending, are theirs and those of ``company``.
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


METHODS = ("mixture", "predict", "update", "observe_outcome")


class ForeignForecaster(Checkpointable, Forecaster):
    """Any object with ``predict`` and ``update``, whose ``METHODS`` stand in place of these."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("player",)

    def __init__(self, player: object) -> None:
        self.player = player
        for name in METHODS:
            if (method := getattr(player, name, None)) is not None:
                setattr(self, name, method)

    def mixture(self, x: object = None) -> Mixture:
        return self._told(x).mixture

    def point(self, x: object = None) -> Array:
        return self._told(x).statistics

    def _told(self, x: object) -> Forecast:
        told = self.predict(x)
        if not isinstance(told, Forecast):
            raise UserError(f"{name_of(self.predict)} returned {brief(told)}; return a Forecast")
        return told

    def update(self, y: ArrayLike) -> None:
        """Learn nothing: an object that learns has a method of this name."""

    def __repr__(self) -> str:
        return repr(self.player)


def as_forecaster(player: object) -> Forecaster:
    """Return a forecaster as it is, and any other object with its methods as one."""
    return player if isinstance(player, Forecaster) else ForeignForecaster(player)
