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

SWITCH_TIMES = (
    0.25,
    0.5,
    0.75,
)  # of the run, at which a listed plan goes over to its second outcome
MAX_LISTED_OUTCOMES = 8  # outcomes of a support whose plans are listed
INITIAL_SPREAD = 2.0  # spread of scores at the start
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
    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last_action",)
    distributions: Any
    rounds: int
    cohort: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("rounds", self.rounds, least=1)
        self._last_action, raw_distributions = 0, self.distributions
        weight_table = numbers("distributions", raw_distributions)
        weight_table = weight_table[:, None] if weight_table.ndim == 2 else weight_table
        if (
            weight_table.ndim != 3
            or 0 in weight_table.shape
            or weight_table.shape[2] != len(self.support)
        ):
            expected_shape = f"phases x rows x {len(self.support)} outcomes of the support"
            problem = f"distributions = {brief(raw_distributions)} have shape {weight_table.shape}"
            raise ValueError(f"{problem}; give {expected_shape}")
        require("distributions", weight_table, weight_table >= 0, "give weights of at least 0")
        total = weight_table.sum(-1, keepdims=True)
        require("distributions", total, total > 0, "give each distribution a weight above 0")
        self.distributions = weight_table / total

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        phase = history.rounds % self.rounds * len(self.distributions) // self.rounds
        return OutcomeDistribution(self.support, self.distributions[phase, self._last_action])

    def learn(self, payoff: float, observation: Observation) -> None:
        """Remember what followers played most, if the plan looks at it."""
        cohort_name, n_answers = (
            self.cohort or next(iter(observation.play)),
            self.distributions.shape[1],
        )
        if cohort_name not in observation.play:
            raise UserError(
                f"adversary.cohort '{cohort_name}': {closest(cohort_name, observation.play)}"
            )
        if n_answers == 1:
            return
        mean_strategy = observation.play[cohort_name]
        if len(mean_strategy) != n_answers:
            problem = (
                f"the adversary's plan has {n_answers} rows a phase, "
                f"'{cohort_name}' {len(mean_strategy)} actions"
            )
            raise UserError(f"{problem}; give a row for each, or one for all")
        if mean_strategy.any():  # somebody was there
            self._last_action = int(mean_strategy.argmax())


def softmax(scores: Array) -> Array:
    """Return the distributions (..., m) in proportion to exp(scores)."""
    return quantal_response(-scores, 1.0)


def listed_plans(n_phases: int, n_outcomes: int) -> Array:
    """Return plans (L, P, 1, m) that do not look at play: what a bandit chooses among.

    Every outcome alone, an even draw of every two, and every outcome until a quarter, half or three
    quarters of the phases have passed, then another.
    """
    if n_outcomes > MAX_LISTED_OUTCOMES:
        problem = (
            f"exp3 lists plans over at most {MAX_LISTED_OUTCOMES} outcomes, "
            f"and there are {n_outcomes}"
        )
        raise UserError(f"{problem}; give a smaller support, or choose cma")
    pure = np.eye(n_outcomes)
    plans = [np.tile(distribution, (n_phases, 1)) for distribution in pure]
    for i, j in permutations(range(n_outcomes), 2):
        has_switched = np.arange(n_phases)[:, None] >= np.unique(
            np.round(np.array(SWITCH_TIMES) * n_phases)
        )
        plans += [np.where(switched[:, None], pure[j], pure[i]) for switched in has_switched.T]
        plans += [np.tile((pure[i] + pure[j]) / 2, (n_phases, 1))] if i < j else []
    return np.unique(np.array(plans), axis=0)[:, :, None]


class Search(Checkpointable):
    """What every search offers: plans of a ``shape`` (P, S, m), ``generation`` of them at a time.

    ``paid`` has the least and the most that a round can pay.
    """

    generation: ClassVar[int]
    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self, shape: Shape, rng: np.random.Generator, *, payoff_range: tuple[float, float]
    ) -> None:
        self.shape, self.rng, self.payoff_range = shape, rng, payoff_range
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
    REMEMBERED = ("_optimiser_seed", "_payoff_history")

    def begin(self) -> None:
        self._optimiser_seed, self._payoff_history = (
            int(self.rng.integers(2**31)),
            np.zeros((0, self.generation)),
        )
        self._start_optimiser()

    def _start_optimiser(self) -> None:
        import cma  # noqa: PLC0415 - slow

        rng = stream(self._optimiser_seed, "cma")
        options = {
            "CMA_diagonal": True,
            "popsize": self.generation,
            "randn": lambda *shape: rng.standard_normal(shape),
            "seed": np.nan,  # leaves NumPy's global generator alone
            "verbose": -10,
        }
        centre = rng.normal(size=int(np.prod(self.shape)))
        self._optimiser = cma.CMAEvolutionStrategy(centre, INITIAL_SPREAD, options)
        self._proposed_scores = self._optimiser.ask()

    def propose(self) -> Array:
        return softmax(np.reshape(self._proposed_scores, (-1, *self.shape)))

    def feedback(self, payoffs: Array) -> None:
        self._payoff_history = np.vstack([self._payoff_history, payoffs])
        self._tell_optimiser(payoffs)

    def _tell_optimiser(self, payoffs: Array) -> None:
        self._optimiser.tell(self._proposed_scores, (-payoffs).tolist())  # it minimises
        self._proposed_scores = self._optimiser.ask()

    def best(self) -> Array:
        return softmax(np.reshape(self._optimiser.result.xfavorite, self.shape))

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._start_optimiser()
        for payoffs in self._payoff_history:
            self._tell_optimiser(payoffs)


class Bandit(Search):
    """EXP3 over a list of plans that do not look at play; a generation has one distribution."""

    generation = 8
    REMEMBERED = ("learner", "_drawn_arms")

    def begin(self) -> None:
        plan_list = listed_plans(self.shape[0], self.shape[2])
        self.plans = np.broadcast_to(plan_list, (len(plan_list), *self.shape))
        self.learner, self._drawn_arms = EXP3(), np.zeros(0, dtype=np.intp)
        self.learner.start(1, len(self.plans))

    def propose(self) -> Array:
        uniforms = self.rng.random(self.generation)
        self._drawn_arms = draw_rows(
            self.learner.strategy, uniforms, np.zeros(len(uniforms), dtype=np.intp)
        )
        return self.plans[self._drawn_arms]

    def feedback(self, payoffs: Array) -> None:
        (low, high), distribution = self.payoff_range, self.learner.strategy
        for arm, payoff in zip(self._drawn_arms, payoffs, strict=True):
            if not low - ROUNDING <= payoff <= high + ROUNDING:
                problem = (
                    f"exp3 was paid {payoff:g}, beyond its payoff's range, {low:g} to {high:g}"
                )
                raise UserError(f"{problem}; choose cma")
            losses = np.zeros(distribution.shape)
            losses[0, arm] = np.clip((high - payoff) / max(high - low, ROUNDING), 0.0, 1.0)
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

    REMEMBERED = (
        "search",
        "distributions",
        "_plans",
        "_payoffs",
        "_episode_sum",
        "_episode_rounds",
    )
    algorithm: ClassVar[Callable[..., Search]]
    distributions: Any = field(init=False)
    rounds: int = field(init=False)
    length: int = 50
    phases: int = 4
    rows: int = 1

    def __post_init__(self) -> None:
        for name in ("length", "phases", "rows"):
            check_int(name, getattr(self, name), least=1)
        support_size = len(support_of(self.outcomes, self.support, self.grid))
        self.distributions, self.rounds = (
            np.ones((self.phases, self.rows, support_size)),
            self.length,
        )
        super().__post_init__()
        shape = self.distributions.shape
        self.search = type(self).algorithm(shape, self.rng, payoff_range=self.payoff.range())
        self._episode_sum, self._episode_rounds, self._payoffs = 0.0, 0, np.zeros(0)
        self._plans = self.search.propose()
        self.distributions = self._plans[0]

    def learn(self, payoff: float, observation: Observation) -> None:
        super().learn(payoff, observation)
        if np.isfinite(payoff):  # somebody was there
            self._episode_sum, self._episode_rounds = (
                self._episode_sum + payoff,
                self._episode_rounds + 1,
            )
        if (observation.number + 1) % self.rounds or not self._episode_rounds:
            return
        self._payoffs = np.append(self._payoffs, self._episode_sum / self._episode_rounds)
        self._episode_sum, self._episode_rounds = 0.0, 0
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
