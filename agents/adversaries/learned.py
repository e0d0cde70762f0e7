r"""Plans as tables, and leaders who learn one: CMA-ES, EXP3.

``Planned`` plays a plan that a scenario file lists. ``Trained`` learns one while it plays: it cuts
the run into episodes, and tries a plan in each, which is judged in the wake of those before it.
``regretless train`` takes the same searches (``SEARCHES``) and rehearses in runs that begin anew.

A plan
------
A plan says how to draw outcomes in each phase of the run, after each of the followers' answers. It
is a table ``distributions`` (P, S, m): a run of T rounds has P equally long phases; in phase p of
round t = 0, 1, ... the leader draws from

    distributions[p, s],   p = floor(t P / T),   s = what followers played last,

a distribution over the m outcomes of its support. With S = 1 it does not look at them; with S = A,
s is the action that the cohort's agents played most in the round before (of several the lowest; 0
before the first round). So a plan is plain data: a commitment has P = S = 1, up-then-down P = 2.

What a plan looks at is named in ``looks_at``, and s counts through all of it, the last fastest:

    last-play        the action that the cohort's agents played most in the round before (A)
    announced-play   the action that they will play most, given the announced mixture (A)
    forecast         the outcome of the support that is nearest to the mean label of the mixture (m)

The announced mixture is known before the leader commits; its draw is not. So a plan that looks at
it is still an adversary of the theorem.

A search
--------
A search is asked in turn: ``propose`` returns a generation of plans, ``feedback`` tells it what
each was paid per round, ``best`` returns the plan that it would play now.

**CMA-ES** (Hansen 2016, arXiv:1604.00772; the package ``cma``) looks for the scores of a plan, of
which softmax makes distributions: it draws them from a normal distribution whose centre, spread and
variances follow the better half of each generation. There is a variance for each score (Ros and
Hansen 2008, doi:10.1007/978-3-540-87700-4_30). It starts at scores drawn from N(0, 1), with a
spread of 2. In rehearsals it begins again from other scores once it has converged, since it may
have ended in a local optimum (Auger and Hansen 2005, doi:10.1109/CEC.2005.1554902, with generations
that keep their size), and the favourite that was paid most where it converged is what it found.

**EXP3** (``agents.learners.external``) over a finite list of plans, of which eight are drawn before
it is told anything; but for that delay its theorem bounds what it loses to the best of the list.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
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
from regretless.market.game.protocols import Follower
from regretless.market.records import (
    AdversaryView,
    Context,
    History,
    Observation,
    OutcomeDistribution,
)

SWITCH_TIMES = (0.25, 0.5, 0.75)  # shares of the run at which a listed plan may change outcomes
MAX_LISTED_OUTCOMES = 8  # of a support whose plans are listed
INITIAL_SPREAD = 2.0  # of scores, at the start of CMA-ES
CONVERGED_SPREAD = 1e-3  # of the better half of a generation's payoffs, as a share of their range
CONVERGED_GENERATIONS = 3  # in a row with no greater spread
LEAST_PROBABILITY = 1e-4  # of an outcome in a suggested plan, whose scores are logarithms
ROUNDING = 1e-9  # by which a payoff may leave its range

PlanShape = tuple[int, int, int]  # phases P, answers S, outcomes of the support m

LAST_PLAY = "last-play"
ANNOUNCED_PLAY = "announced-play"
FORECAST = "forecast"
SIGHTS_OF_LOOKS = {  # what a plan must see to look at something
    LAST_PLAY: frozenset({"history"}),
    ANNOUNCED_PLAY: frozenset({"history", "mixture", "play", "losses"}),
    FORECAST: frozenset({"history", "mixture"}),
}


@register.adversary("plan")
@dataclass(eq=False, repr=False, kw_only=True)
class Planned(Leader):
    """Draws by a plan: a distribution over outcomes per phase and answer of the followers.

    ``distributions`` (P, S, m), or (P, m) for S = 1, are weights that are divided by their sum. The
    plan begins again after ``rounds``, and looks at the first cohort unless another is named.
    ``looks_at`` names what S counts through, by default what was played last.
    """

    sees = frozenset({"history"})
    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last_action", "_announced_action")
    distributions: Any
    rounds: int
    cohort: str | None = None
    looks_at: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("rounds", self.rounds, least=1)
        self._last_action = 0  # what followers played most in the round before
        self._announced_action = 0  # what they were announced to play most, when last they were
        self._commitments: dict[tuple[int, int], OutcomeDistribution] = {}  # by phase and row
        self._plan_of_commitments: Array | None = None  # the plan that they are cells of
        self._support_of_commitments: Array | None = None  # the outcomes that they are over
        weights = numbers("distributions", self.distributions)
        if weights.ndim == 2:
            weights = weights[:, None]
        n_outcomes = len(self.support)
        if weights.ndim != 3 or 0 in weights.shape or weights.shape[2] != n_outcomes:
            raise ValueError(
                f"distributions = {brief(self.distributions)} have shape {weights.shape}; "
                f"give phases x rows x {n_outcomes} outcomes of the support"
            )
        require("distributions", weights, weights >= 0, "give weights of at least 0")
        total = weights.sum(-1, keepdims=True)
        require("distributions", total, total > 0, "give each distribution a weight above 0")
        self.distributions = weights / total
        self.looks_at = _checked_looks(
            self.looks_at, n_answers=weights.shape[1], n_outcomes=n_outcomes
        )
        for look in self.looks_at:
            self.sees |= SIGHTS_OF_LOOKS[look]

    def meet(self, followers: Sequence[Follower]) -> None:
        """Note whom it plays against, if it looks at announced play: what they lose is not read."""
        self.followers = tuple(followers)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        n_phases = len(self.distributions)
        phase = history.rounds % self.rounds * n_phases // self.rounds
        return self._commitment(phase, self._row(announced))

    def _commitment(self, phase: int, row: int) -> OutcomeDistribution:
        """Return the distribution of a cell of the plan, which is checked when it is first played.

        Later rounds of the same plan play the same object: it cannot be changed. A leader who moves
        rows of data is given another support in every round.
        """
        is_of_this_plan = self._plan_of_commitments is self.distributions
        is_of_this_support = self._support_of_commitments is self.support
        if not (is_of_this_plan and is_of_this_support):
            self._plan_of_commitments = self.distributions
            self._support_of_commitments = self.support
            self._commitments.clear()
        cell = (phase, row)
        if cell not in self._commitments:
            self._commitments[cell] = OutcomeDistribution(self.support, self.distributions[cell])
        return self._commitments[cell]

    def _row(self, announced: AdversaryView) -> int:
        """Return the row of the plan for what it looks at in this round."""
        n_answers = self.distributions.shape[1]
        if n_answers == 1:
            return 0
        n_outcomes = len(self.support)
        n_actions = actions_of_rows(n_answers, self.looks_at, n_outcomes=n_outcomes)
        row = 0
        for look in self.looks_at:
            if look == LAST_PLAY:
                row = row * n_actions + self._last_action
            elif look == ANNOUNCED_PLAY:
                row = row * n_actions + self._most_announced(announced, n_actions)
            else:
                row = row * n_outcomes + self._forecast_outcome(announced)
        return row

    def _most_announced(self, announced: AdversaryView, n_actions: int) -> int:
        """Return the action that the cohort's agents are announced to play most.

        Where nobody is there, or play cannot be foreseen, it is that of the round before. UserError
        if the cohort does not exist or has another number of actions.
        """
        cohort_names = [follower.name for follower in self.followers]
        cohort_name = self._existing(cohort_names)
        cohort_index = cohort_names.index(cohort_name)
        strategy = announced.play[cohort_index]  # (K, A)
        if strategy is not None:
            mean_strategy = self.followers[cohort_index].counts @ strategy
            self._check_actions(cohort_name, len(mean_strategy), n_actions)
            if mean_strategy.any():
                self._announced_action = int(mean_strategy.argmax())
        return self._announced_action

    def _forecast_outcome(self, announced: AdversaryView) -> int:
        """Return the outcome of the support that is nearest to the mean forecast; else 0."""
        if all(block.labels is None for block in announced.blocks):
            return 0
        squared_distances = ((self.support - announced.mean_label) ** 2).sum(1)
        return int(squared_distances.argmin())

    def learn(self, payoff: float, observation: Observation) -> None:
        """Remember what followers played most, if the plan looks at it.

        UserError if the cohort that it looks at does not exist or has another number of actions.
        """
        cohort_name = self._existing(observation.play)
        n_answers = self.distributions.shape[1]
        if n_answers == 1 or LAST_PLAY not in self.looks_at:
            return
        mean_strategy = observation.play[cohort_name]
        n_actions = actions_of_rows(n_answers, self.looks_at, n_outcomes=len(self.support))
        self._check_actions(cohort_name, len(mean_strategy), n_actions)
        somebody_was_there = mean_strategy.any()
        if somebody_was_there:
            self._last_action = int(mean_strategy.argmax())

    def _existing(self, cohort_names: Iterable[str]) -> str:
        """Return the name of the cohort that it looks at; UserError if there is none."""
        names = list(cohort_names)
        cohort_name = self.cohort or names[0]
        if cohort_name not in names:
            raise UserError(f"adversary.cohort '{cohort_name}': {closest(cohort_name, names)}")
        return cohort_name

    def _check_actions(self, cohort_name: str, n_actions: int, expected: int) -> None:
        """Raise UserError unless the cohort has as many actions as the plan expects."""
        if n_actions != expected:
            n_answers = self.distributions.shape[1]
            looks = "" if self.looks_at == [LAST_PLAY] else f" (looks_at = {self.looks_at})"
            raise UserError(
                f"the adversary's plan has {n_answers} rows a phase{looks}, '{cohort_name}' "
                f"{n_actions} actions; give a row for each, or one for all"
            )


def _checked_looks(looks_at: Any, *, n_answers: int, n_outcomes: int) -> list[str]:
    """Return what a plan of so many rows looks at, by default the last play.

    ValueError if it is nothing known, or cannot have so many rows.
    """
    if looks_at is None:
        return [LAST_PLAY] if n_answers > 1 else []
    looks = list(looks_at) if isinstance(looks_at, list | tuple) else [looks_at]
    for look in looks:
        if look not in [*SIGHTS_OF_LOOKS]:
            raise ValueError(f"looks_at: unknown '{look}'; {closest(str(look), SIGHTS_OF_LOOKS)}")
        if looks.count(look) > 1:
            raise ValueError(f"looks_at = {brief(looks)}: name each once")
    if n_answers > 1:
        actions_of_rows(n_answers, looks, n_outcomes=n_outcomes)
    return looks


def actions_of_rows(n_answers: int, looks_at: Sequence[str], *, n_outcomes: int) -> int:
    """Return of how many actions a plan with so many rows a phase speaks; 1 if of none.

    ValueError if what it looks at cannot have so many rows.
    """
    n_rows_of_forecast = n_outcomes if FORECAST in looks_at else 1
    n_plays = len(looks_at) - int(FORECAST in looks_at)  # each of which is one of the actions
    n_rows_of_play, remainder = divmod(n_answers, n_rows_of_forecast)
    n_actions = math.isqrt(n_rows_of_play) if n_plays == 2 else n_rows_of_play
    if remainder or n_actions**n_plays != n_rows_of_play:
        raise ValueError(
            f"the plan has {n_answers} rows a phase, looks_at = {[*looks_at]}; give a row for each "
            "combination of what it looks at, or one for all"
        )
    return n_actions


def softmax(scores: Array) -> Array:
    """Return the distributions (..., m) in proportion to exp(scores)."""
    return quantal_response(-scores, 1.0)


def listed_plans(n_phases: int, n_outcomes: int) -> Array:
    """Return plans (L, P, 1, m) that do not look at play: what a bandit chooses among.

    Every outcome alone, an even draw of every two, and every outcome until a quarter, half or three
    quarters of the phases have passed, then another.
    """
    if n_outcomes > MAX_LISTED_OUTCOMES:
        raise UserError(
            f"exp3 lists plans over at most {MAX_LISTED_OUTCOMES} outcomes, and there are "
            f"{n_outcomes}; give a smaller support, or choose cma"
        )
    pure = np.eye(n_outcomes)
    plans = [np.tile(distribution, (n_phases, 1)) for distribution in pure]
    switch_phases = np.unique(np.round(np.array(SWITCH_TIMES) * n_phases))
    for first, second in permutations(range(n_outcomes), 2):
        for switch_phase in switch_phases:
            has_switched = np.arange(n_phases)[:, None] >= switch_phase
            plans.append(np.where(has_switched, pure[second], pure[first]))
        if first < second:
            even_draw = (pure[first] + pure[second]) / 2
            plans.append(np.tile(even_draw, (n_phases, 1)))
    return np.unique(np.array(plans), axis=0)[:, :, None]


class Search(Checkpointable):
    """What every search offers; the order of calls is at the top of the file.

    Attributes
    ----------
    generation : int
        How many plans it proposes at a time, G.
    shape : (P, S, m)
        The shape of a plan.
    rng : Generator
        The search's own stream.
    payoff_range : (float, float)
        The least and the most that a round can pay.
    takes_suggestion : bool
        Whether ``suggest`` will be called.
    begins_again : bool
        Whether a search that has converged begins again, from elsewhere: in rehearsals, where what
        is tried costs nothing.
    """

    generation: ClassVar[int]
    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng",)

    def __init__(
        self,
        shape: PlanShape,
        rng: np.random.Generator,
        *,
        payoff_range: tuple[float, float],
        takes_suggestion: bool = False,
        begins_again: bool = False,
    ) -> None:
        self.shape = shape
        self.rng = rng
        self.payoff_range = payoff_range
        self.takes_suggestion = takes_suggestion
        self.begins_again = begins_again
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Know nothing yet."""

    @abstractmethod
    def suggest(self, plan: Array) -> None:
        """Try a plan (P, S, m), too: from the first generation on, or as one of a list.

        It is called at most once, before the first ``propose``.
        """

    @abstractmethod
    def propose(self) -> Array:
        """Return a generation of plans (G, P, S, m)."""

    @abstractmethod
    def feedback(self, payoffs: Array) -> None:
        """Be told what the plans of the last proposal were paid per round (G,)."""

    @abstractmethod
    def best(self) -> Array:
        """Return the plan (P, S, m) that it would play now."""


@dataclass(frozen=True, eq=False)
class Favourite:
    """Where a search converged: the scores of its plan (P S m,), and what it was paid per round."""

    scores: Array
    payoff: float


class CMAES(Search):
    """Lets CMA-ES look for scores; restored, it is told all payoffs again."""

    generation = 16
    REMEMBERED = ("_optimiser_seed", "_payoff_history", "_suggested_plans")

    def begin(self) -> None:
        self._optimiser_seed = int(self.rng.integers(2**31))
        self._payoff_history = np.zeros((0, self.generation))  # a row per generation
        self._suggested_plans = np.zeros((0, *self.shape))
        self._start_search()

    def suggest(self, plan: Array) -> None:
        self._suggested_plans = np.concatenate([self._suggested_plans, plan[None]])
        self._start_search()

    def _start_search(self) -> None:
        """Begin with the suggested plans in the first generation."""
        self._optimiser_rng = stream(self._optimiser_seed, "cma")
        self._favourites: list[Favourite] = []  # of the optimisers that have converged
        self._start_optimiser()
        if len(self._suggested_plans):
            scores = np.log(np.maximum(self._suggested_plans, LEAST_PROBABILITY))
            self._optimiser.inject(list(scores.reshape(len(scores), -1)), force=True)
        self._proposed_scores = self._optimiser.ask()

    def _start_optimiser(self) -> None:
        """Start an optimiser from scores that are drawn."""
        import cma  # noqa: PLC0415 - slow

        rng = self._optimiser_rng
        options = {
            "CMA_diagonal": True,
            "popsize": self.generation,
            "randn": lambda *shape: rng.standard_normal(shape),
            "seed": np.nan,  # leaves NumPy's global generator alone
            "verbose": -10,
        }
        n_scores = int(np.prod(self.shape))
        centre = rng.normal(size=n_scores)
        self._optimiser = cma.CMAEvolutionStrategy(centre, INITIAL_SPREAD, options)
        self._payoffs_of_optimiser: list[Array] = []  # (G,) of each of its generations

    def propose(self) -> Array:
        return softmax(np.reshape(self._proposed_scores, (-1, *self.shape)))

    def feedback(self, payoffs: Array) -> None:
        self._payoff_history = np.vstack([self._payoff_history, payoffs])
        self._tell_optimiser(payoffs)

    def _tell_optimiser(self, payoffs: Array) -> None:
        self._optimiser.tell(self._proposed_scores, (-payoffs).tolist())  # it minimises
        self._payoffs_of_optimiser.append(payoffs)
        if self.begins_again and self._has_converged():
            self._favourites.append(self._favourite())
            self._start_optimiser()
        self._proposed_scores = self._optimiser.ask()

    def _has_converged(self) -> bool:
        """Whether the better half of the plans was paid nearly the same in the last generations."""
        last_payoffs = np.array(self._payoffs_of_optimiser[-CONVERGED_GENERATIONS:])
        low, high = self.payoff_range
        spreads = last_payoffs.max(1) - np.median(last_payoffs, axis=1)
        is_narrow = spreads <= CONVERGED_SPREAD * (high - low)
        return len(last_payoffs) == CONVERGED_GENERATIONS and bool(is_narrow.all())

    def _favourite(self) -> Favourite:
        """Return the optimiser's favourite, with the median payoff of its last generations.

        A few plans of each generation are far away, and would pull a mean down.
        """
        last_payoffs = self._payoffs_of_optimiser[-CONVERGED_GENERATIONS:]
        return Favourite(self._optimiser.result.xfavorite, float(np.median(last_payoffs)))

    def best(self) -> Array:
        favourites = list(self._favourites)
        has_learned_since = bool(self._payoffs_of_optimiser)
        if has_learned_since:
            favourites.append(self._favourite())
        if favourites:
            scores = max(favourites, key=lambda favourite: favourite.payoff).scores
        else:
            scores = self._optimiser.result.xfavorite
        return softmax(np.reshape(scores, self.shape))

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._start_search()
        for payoffs in self._payoff_history:
            self._tell_optimiser(payoffs)


class Bandit(Search):
    """EXP3 over a list of plans that do not look at play; a generation has one distribution."""

    generation = 8
    REMEMBERED = ("learner", "_drawn_arms", "_suggested_plans")

    def begin(self) -> None:
        n_phases, _, n_outcomes = self.shape
        listed = listed_plans(n_phases, n_outcomes)
        n_arms = len(listed) + int(self.takes_suggestion)
        self.plans = np.full((n_arms, *self.shape), 1 / n_outcomes)  # a place for a suggestion
        self.plans[: len(listed)] = listed
        self._suggested_plans = np.zeros((0, *self.shape))
        self.learner = EXP3()
        self.learner.start(1, n_arms)
        self._drawn_arms = np.zeros(0, dtype=np.intp)

    def suggest(self, plan: Array) -> None:
        self._suggested_plans = np.concatenate([self._suggested_plans, plan[None]])
        self._list_suggestion()

    def _list_suggestion(self) -> None:
        """Let the last arm be the plan that was suggested, if there is one."""
        for plan in self._suggested_plans:
            self.plans[-1] = plan

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._list_suggestion()

    def propose(self) -> Array:
        uniforms = self.rng.random(self.generation)
        only_row = np.zeros(self.generation, dtype=np.intp)
        self._drawn_arms = draw_rows(self.learner.strategy, uniforms, only_row)
        return self.plans[self._drawn_arms]

    def feedback(self, payoffs: Array) -> None:
        """Be told the payoffs (G,); UserError if one lies outside the payoff's range."""
        low, high = self.payoff_range
        distribution = self.learner.strategy
        for arm, payoff in zip(self._drawn_arms, payoffs, strict=True):
            if not low - ROUNDING <= payoff <= high + ROUNDING:
                raise UserError(
                    f"exp3 was paid {payoff:g}, beyond its payoff's range, {low:g} to {high:g}; "
                    "choose cma"
                )
            losses = np.zeros(distribution.shape)
            losses[0, arm] = np.clip((high - payoff) / max(high - low, ROUNDING), 0.0, 1.0)
            # All arms of a generation were drawn from one distribution, by which the estimates
            # divide.
            self.learner.strategy = distribution
            self.learner.learn(losses, np.array([arm]))

    def best(self) -> Array:
        return np.asarray(self.plans[int(self.learner.strategy[0].argmax())])


SEARCHES: dict[str, Callable[..., Search]] = {"cma": CMAES, "exp3": Bandit}  # by name


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
        n_outcomes = len(support_of(self.outcomes, self.support, self.grid))
        # The base asks for a plan, which is an even draw until the search proposes others.
        self.distributions = np.ones((self.phases, self.rows, n_outcomes))
        self.rounds = self.length
        super().__post_init__()
        plan_shape = self.distributions.shape
        self.search = type(self).algorithm(plan_shape, self.rng, payoff_range=self.payoff.range())
        self._episode_sum = 0.0
        self._episode_rounds = 0
        self._payoffs = np.zeros(0)  # per round, of those plans of the generation that were tried
        self._plans = self.search.propose()
        self.distributions = self._plans[0]

    def learn(self, payoff: float, observation: Observation) -> None:
        """Count the payoff, and go over to the next plan at the end of an episode.

        An episode in which nobody was there is played once more.
        """
        super().learn(payoff, observation)
        somebody_was_there = np.isfinite(payoff)
        if somebody_was_there:
            self._episode_sum += payoff
            self._episode_rounds += 1
        is_last_of_episode = (observation.number + 1) % self.rounds == 0
        if not is_last_of_episode or not self._episode_rounds:
            return
        self._payoffs = np.append(self._payoffs, self._episode_sum / self._episode_rounds)
        self._episode_sum = 0.0
        self._episode_rounds = 0
        if len(self._payoffs) == len(self._plans):
            self.search.feedback(self._payoffs)
            self._plans = self.search.propose()
            self._payoffs = np.zeros(0)
        self.distributions = self._plans[len(self._payoffs)]


@register.adversary("cma")
class CMALeader(Trained):
    """Learns a plan while it plays, by CMA-ES: 16 episodes, then a step."""

    algorithm = CMAES


@register.adversary("exp3")
class BanditLeader(Trained):
    """Learns while it plays which of a list of plans pays, by EXP3."""

    algorithm = Bandit
