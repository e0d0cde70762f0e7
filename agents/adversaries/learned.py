r"""Plans as tables, and leaders who learn one: CMA-ES, EXP3.

**A plan** says how to draw outcomes in each phase of the run, after each of the followers' answers:
it is a table ``distributions`` (P, S, m): a run of T rounds has P equally long phases; in phase p
of round t = 0, 1, ... the leader draws from

    distributions[p, s],   p = floor(t P / T),   s = what followers played last,

a distribution over the m outcomes of its support. With S = 1 it does not look at them; with S = A,
s is the action that the cohort's agents played most in the round before (of several the lowest; 0
before the first round). So a plan is plain data: a commitment has P = S = 1, up-then-down P = 2.

**A search** proposes a generation of plans and is told what each was paid per round.

**CMA-ES** (Hansen 2016, arXiv:1604.00772; the package ``cma``) looks for the scores of a plan, of
which softmax makes distributions: it draws them from a normal distribution whose centre, spread and
variances follow the better half of each generation. There is a variance for each score (Ros and
Hansen 2008, doi:10.1007/978-3-540-87700-4_30). It starts at scores drawn from N(0, 1), with a
spread of 2.

**EXP3** (``agents.learners.external``) over a finite list of plans, of which eight are drawn before
it is told anything; but for that delay its theorem bounds what it loses to the best of the list.

Leaders who learn while they play cut the run into episodes, and try a plan in each, which is judged
in the wake of those before it; ``regretless train`` rehearses in runs that begin anew.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any, ClassVar

import numpy as np

from regretless.agents.adversaries.leader import Leader, support_of
from regretless.agents.learners.external import EXP3
from regretless.agents.parameters import check_int, numbers, require
from regretless.market import register
from regretless.market.best_response import quantal_response
from regretless.market.core.arrays import Array, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.randomness import stream
from regretless.market.records import (
    AdversaryView,
    Context,
    History,
    Observation,
    OutcomeDistribution,
)

TURNS = (0.25, 0.5, 0.75)  # of the run, at which a listed plan goes over to its second outcome
WIDEST = 8  # outcomes of a support whose plans are listed
WIDE = 2.0  # spread of scores at the start
ROUNDING = 1e-9

Shape = tuple[int, int, int]  # phases, rows, outcomes of the support


@register.adversary("plan")
@dataclass(eq=False, repr=False, kw_only=True)
class Planned(Leader):
    """Draws by a plan: a distribution over outcomes per phase and answer of the followers.

    ``distributions`` (P, S, m), or (P, m) for S = 1, are weights that are divided by their sum. The
    plan begins again after ``rounds``, and looks at the first cohort unless another is named.
    """

    sees = frozenset({"history"})
    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last",)
    distributions: Any
    rounds: int
    cohort: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("rounds", self.rounds, least=1)
        self._last, given = 0, self.distributions
        table = numbers("distributions", given)
        table = table[:, None] if table.ndim == 2 else table
        if table.ndim != 3 or 0 in table.shape or table.shape[2] != len(self.support):
            wanted = f"phases x rows x {len(self.support)} outcomes of the support"
            told = f"distributions = {brief(given)} have shape {table.shape}"
            raise ValueError(f"{told}; give {wanted}")
        require("distributions", table, table >= 0, "give weights of at least 0")
        total = table.sum(-1, keepdims=True)
        require("distributions", total, total > 0, "give each distribution a weight above 0")
        self.distributions = table / total

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        phase = history.rounds % self.rounds * len(self.distributions) // self.rounds
        return OutcomeDistribution(self.support, self.distributions[phase, self._last])

    def learn(self, payoff: float, observation: Observation) -> None:
        """Remember what followers played most, if the plan looks at it."""
        whom, rows = self.cohort or next(iter(observation.play)), self.distributions.shape[1]
        if whom not in observation.play:
            raise UserError(f"adversary.cohort '{whom}': {closest(whom, observation.play)}")
        if rows == 1:
            return
        play = observation.play[whom]
        if len(play) != rows:
            told = f"the adversary's plan has {rows} rows a phase, '{whom}' {len(play)} actions"
            raise UserError(f"{told}; give a row for each, or one for all")
        if play.any():  # somebody was there
            self._last = int(play.argmax())


def softmax(scores: Array) -> Array:
    """Return the distributions (..., m) in proportion to exp(scores)."""
    return quantal_response(-scores, 1.0)


def listed_plans(phases: int, outcomes: int) -> Array:
    """Return plans (L, P, 1, m) that do not look at play: what a bandit chooses among.

    Every outcome alone, an even draw of every two, and every outcome until a quarter, half or three
    quarters of the phases have passed, then another.
    """
    if outcomes > WIDEST:
        told = f"exp3 lists plans over at most {WIDEST} outcomes, and there are {outcomes}"
        raise UserError(f"{told}; give a smaller support, or choose cma")
    pure = np.eye(outcomes)
    made = [np.tile(distribution, (phases, 1)) for distribution in pure]
    for i, j in permutations(range(outcomes), 2):
        turned = np.arange(phases)[:, None] >= np.unique(np.round(np.array(TURNS) * phases))
        made += [np.where(then[:, None], pure[j], pure[i]) for then in turned.T]
        made += [np.tile((pure[i] + pure[j]) / 2, (phases, 1))] if i < j else []
    return np.unique(np.array(made), axis=0)[:, :, None]


class Search(Checkpointable):
    """What every search offers: plans of a ``shape`` (P, S, m), ``generation`` of them at a time.

    ``paid`` has the least and the most that a round can pay.
    """

    generation: ClassVar[int]
    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self, shape: Shape, rng: np.random.Generator, *, paid: tuple[float, float]
    ) -> None:
        self.shape, self.rng, self.paid = shape, rng, paid
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Know nothing yet."""

    @abstractmethod
    def propose(self) -> Array:
        """Return a generation of plans (G, P, S, m)."""

    @abstractmethod
    def feedback(self, payoffs: Array) -> None:
        """Be told what the plans of the last proposal were paid per round (G,)."""

    @abstractmethod
    def best(self) -> Array:
        """Return the plan (P, S, m) that it would play now."""


class CMAES(Search):
    """Lets CMA-ES look for scores; restored, it is told all payoffs again."""

    generation = 16
    REMEMBERED = ("_seed", "_told")

    def begin(self) -> None:
        self._seed, self._told = int(self.rng.integers(2**31)), np.zeros((0, self.generation))
        self._start()

    def _start(self) -> None:
        import cma  # noqa: PLC0415 - slow

        own = stream(self._seed, "cma")
        options = {
            "CMA_diagonal": True,
            "popsize": self.generation,
            "randn": lambda *shape: own.standard_normal(shape),
            "seed": np.nan,  # leaves NumPy's global generator alone
            "verbose": -10,
        }
        centre = own.normal(size=int(np.prod(self.shape)))
        self._strategy = cma.CMAEvolutionStrategy(centre, WIDE, options)
        self._asked = self._strategy.ask()

    def propose(self) -> Array:
        return softmax(np.reshape(self._asked, (-1, *self.shape)))

    def feedback(self, payoffs: Array) -> None:
        self._told = np.vstack([self._told, payoffs])
        self._tell(payoffs)

    def _tell(self, payoffs: Array) -> None:
        self._strategy.tell(self._asked, (-payoffs).tolist())  # it minimises
        self._asked = self._strategy.ask()

    def best(self) -> Array:
        return softmax(np.reshape(self._strategy.result.xfavorite, self.shape))

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._start()
        for payoffs in self._told:
            self._tell(payoffs)


class Bandit(Search):
    """EXP3 over a list of plans that do not look at play; a generation has one distribution."""

    generation = 8
    REMEMBERED = ("learner", "_arms")

    def begin(self) -> None:
        listed = listed_plans(self.shape[0], self.shape[2])
        self.plans = np.broadcast_to(listed, (len(listed), *self.shape))
        self.learner, self._arms = EXP3(), np.zeros(0, dtype=np.intp)
        self.learner.start(1, len(self.plans))

    def propose(self) -> Array:
        drawn = self.rng.random(self.generation)
        self._arms = draw_rows(self.learner.strategy, drawn, np.zeros(len(drawn), dtype=np.intp))
        return self.plans[self._arms]

    def feedback(self, payoffs: Array) -> None:
        (low, high), distribution = self.paid, self.learner.strategy
        for arm, paid in zip(self._arms, payoffs, strict=True):
            if not low - ROUNDING <= paid <= high + ROUNDING:
                beyond = f"exp3 was paid {paid:g}, beyond its payoff's range, {low:g} to {high:g}"
                raise UserError(f"{beyond}; choose cma")
            losses = np.zeros(distribution.shape)
            losses[0, arm] = np.clip((high - paid) / max(high - low, ROUNDING), 0.0, 1.0)
            self.learner.strategy = distribution  # that it was drawn from
            self.learner.learn(losses, np.array([arm]))

    def best(self) -> Array:
        return np.asarray(self.plans[int(self.learner.strategy[0].argmax())])


SEARCHES: dict[str, Callable[..., Search]] = {
    "cma": CMAES,
    "exp3": Bandit,
}


@dataclass(eq=False, repr=False, kw_only=True)
class Trained(Planned):
    """Base of the leaders who learn: plays the plans that its search proposes.

    An episode has ``length`` rounds. A plan has ``phases``, and as many ``rows`` as followers have
    actions where it is to look at play.
    """

    REMEMBERED = ("search", "distributions", "_plans", "_payoffs", "_sum", "_count")
    algorithm: ClassVar[Callable[..., Search]]
    distributions: Any = field(init=False)
    rounds: int = field(init=False)
    length: int = 50
    phases: int = 4
    rows: int = 1

    def __post_init__(self) -> None:
        for name in ("length", "phases", "rows"):
            check_int(name, getattr(self, name), least=1)
        wide = len(support_of(self.outcomes, self.support, self.grid))
        self.distributions, self.rounds = np.ones((self.phases, self.rows, wide)), self.length
        super().__post_init__()
        shape = self.distributions.shape
        self.search = type(self).algorithm(shape, self.rng, paid=self.payoff.range())
        self._sum, self._count, self._payoffs = 0.0, 0, np.zeros(0)
        self._plans = self.search.propose()
        self.distributions = self._plans[0]

    def learn(self, payoff: float, observation: Observation) -> None:
        super().learn(payoff, observation)
        if np.isfinite(payoff):  # somebody was there
            self._sum, self._count = self._sum + payoff, self._count + 1
        if (observation.number + 1) % self.rounds or not self._count:
            return
        self._payoffs = np.append(self._payoffs, self._sum / self._count)
        self._sum, self._count = 0.0, 0
        if len(self._payoffs) == len(self._plans):
            self.search.feedback(self._payoffs)
            self._plans, self._payoffs = self.search.propose(), np.zeros(0)
        self.distributions = self._plans[len(self._payoffs)]


@register.adversary("cma")
class CMALeader(Trained):
    """Learns a plan while it plays, by CMA-ES: 16 episodes, then a step."""

    algorithm = CMAES


@register.adversary("exp3")
class BanditLeader(Trained):
    """Learns while it plays which of a list of plans pays, by EXP3."""

    algorithm = Bandit
