"""Seats for learners from elsewhere: the leader's for Gymnasium, the followers' for PettingZoo.

An episode is a run of the scenario, at a seed that comes of the one that ``reset`` is given; all
others play as the scenario says. Both need the extra ``rl``.
"""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.agents.adversaries.learned import softmax
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.adversary_view import earned, observed, per_agent
from regretless.market.game.protocols import numbered
from regretless.market.game.round import commit_and_draw, decide, finish, offer
from regretless.market.model import MarketModel
from regretless.market.records import AdversaryView, Round
from regretless.scenarios import load
from regretless.scenarios.assembly.branches import deviate
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.training.attack import attacks

try:
    import gymnasium
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    needed = "LeaderEnv and FollowersEnv need the extra rl"
    raise UserError(f"{needed}; python -m pip install gymnasium pettingzoo") from error

SHARP = 5.0  # scores in [-1, 1] become distributions in proportion to exp(5 score)
SEEDS = 2**31
Seen = NDArray[np.float32]


class LeaderEnv(gymnasium.Env[Seen, Any]):
    """The seat of the leader: in every round an action is a distribution over its outcomes.

    Observed before it: the share of rounds played; the mean label of the forecast's mixture, where
    it has labels; the last outcome; what each cohort played last. The reward is the leader's payoff
    per agent.

    Parameters
    ----------
    scenario : str or Scenario
        Its name or file; its adversary has a payoff, linear or the followers' loss.
    cohort : str, optional
        Who pays; the mean over all agents by default.
    pure : bool
        Whether an action is a number, an outcome of the support; else it is a score in [-1, 1] for
        each, of which ``softmax`` of five times the scores makes a distribution.
    **settings
        Keys to replace, as in ``load``.

    Raises
    ------
    UserError
        If nobody can sit there, or there is no such cohort.
    """

    def __init__(
        self,
        scenario: str | Scenario,
        *,
        cohort: str | None = None,
        pure: bool = False,
        **settings: Any,
    ) -> None:
        found = attacks(_loaded(scenario, settings), phases=1, looking=False, cohort=cohort)[0]
        self._attack = found if cohort is not None else replace(found, rehearsed=found.config)
        self._cohort, self.pure, outcomes = cohort, pure, found.shape[2]
        box = spaces.Box(-1.0, 1.0, (outcomes,), np.float32)
        self.action_space = spaces.Discrete(outcomes) if pure else box
        self._begin(0)
        self.observation_space = spaces.Box(0.0, 1.0, self._seen().shape, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Seen, dict[str, Any]]:
        """Begin a run, and return what is observed."""
        super().reset(seed=seed)
        self._begin(int(self.np_random.integers(SEEDS)))
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Commit to a distribution and play the round; with the last one the run is over."""
        scores = SHARP * np.asarray(action, dtype=np.float64)
        distribution = np.eye(len(self._leader.support))[action] if self.pure else softmax(scores)
        self._leader.distributions = distribution[None, None]
        played = self._run.finish()
        cohorts = self._run.model.game.cohorts
        paid, agents = earned(self._leader.payoff, cohorts, played)
        place = None if self._cohort is None else self._attack.place(self._run.model)
        reward = per_agent(paid, agents) if place is None else float(paid[place])
        self._shares = list(observed(cohorts, played).play.values())
        self._run.begin()
        return self._seen(), reward, self._run.over, False, {"outcome": played.outcome}

    def _begin(self, seed: int) -> None:
        self._run = _Run(self._attack.model(seed), draws=False)
        game = self._run.model.game
        self._leader: Any = game.adversary.innermost
        self._shares = [np.zeros(cohort.loss.actions) for cohort in game.cohorts]

    def _seen(self) -> Seen:
        mixtures = self._run.offered.mixtures
        labelled = any(mixture.labels is not None for mixture in mixtures)
        forecast = [AdversaryView(mixtures).mean_label] if labelled else []
        return self._run.seen(*forecast, *self._shares)


class FollowersEnv(ParallelEnv[str, Seen, Any]):  # type: ignore[misc]
    """The seats of agents who hear the forecast: in every round each chooses one of its actions.

    Observed before it: the share of rounds played, the last outcome, and the prediction that was
    drawn, in the basis that the agent hears. The reward is minus its loss in [0, 1], and 0 in
    rounds in which it is not there.

    Parameters
    ----------
    scenario : str or Scenario
        Its name or file.
    cohort : str, optional
        Whose seats; all who hear the forecast by default.
    **settings
        Keys to replace, as in ``load``.

    Raises
    ------
    UserError
        If there is no such seat.
    """

    metadata: ClassVar[dict[str, Any]] = {"name": "regretless", "render_modes": []}

    def __init__(
        self, scenario: str | Scenario, *, cohort: str | None = None, **settings: Any
    ) -> None:
        self._scenario = _loaded(scenario, settings)
        self._rng = stream(self._scenario.spec.seed, "environment")
        self._chosen: dict[str, int] = {}
        self._seats: dict[str, tuple[int, int, int]] = {}  # number, cohort's place, own place in it
        cohorts = self._scenario.build(apart=True).game.cohorts
        for place, (first, own) in enumerate(numbered(cohorts)):
            for agent in range(len(own.row_of)) if own.listens else ():
                if cohort in {None, own.name}:
                    self._seats[f"agent_{first + agent}"] = first + agent, place, agent
        if not self._seats:
            whom = "no cohort follows the forecast"
            whom = whom if cohort is None else f"'{cohort}' does not follow it"
            raise UserError(f"FollowersEnv: {whom}; name a cohort that responds to it")
        self.possible_agents, self.agents = list(self._seats), list[str]()
        self._begin(0)
        self._sees = {n: spaces.Box(0.0, 1.0, o.shape, np.float32) for n, o in self._seen().items()}
        actions = [own.loss.actions for own in cohorts]
        self._acts = {n: spaces.Discrete(actions[at]) for n, (_, at, _) in self._seats.items()}

    def observation_space(self, agent: str) -> spaces.Box:
        """Return what an agent observes."""
        return self._sees[agent]

    def action_space(self, agent: str) -> spaces.Discrete[Any]:
        """Return what an agent chooses among."""
        return self._acts[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Seen], dict[str, dict[str, Any]]]:
        """Begin a run, and return what everybody observes."""
        if seed is not None:
            self._rng = stream(seed, "environment")
        self._begin(int(self._rng.integers(SEEDS)))
        self.agents = list(self.possible_agents)
        return self._seen(), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Let everybody act and play the round; with the last one the run is over."""
        self._chosen |= {name: int(action) for name, action in actions.items()}
        played, present = self._run.finish(), self.agents
        rewards = {name: self._reward(name, played) for name in present}
        self._run.begin()
        seen, over = self._seen(), self._run.over
        self.agents = [] if over else present
        ends, no = dict.fromkeys(present, over), dict.fromkeys(present, False)
        return {n: seen[n] for n in present}, rewards, ends, no, {n: {} for n in present}

    def _reward(self, name: str, played: Round) -> float:
        _, place, agent = self._seats[name]
        decision, losses = played.decisions[place], played.losses[place]
        if decision is None or losses is None or (action := decision.actions[agent]) < 0:
            return 0.0
        return -float(losses[self._run.model.game.cohorts[place].row_of[agent], action])

    def _begin(self, seed: int) -> None:
        model = self._scenario.build(seed=seed, apart=True)
        self._chosen |= dict.fromkeys(self._seats, 0)
        seats = self._seats.items()
        deviate(model, {number: partial(self._action, name) for name, (number, _, _) in seats})
        self._run = _Run(model, draws=True)

    def _action(self, name: str, _: object) -> int:
        return self._chosen[name]

    def _seen(self) -> dict[str, Seen]:
        cohorts, drawn = self._run.model.game.cohorts, self._run.drawn
        forecasts = [] if drawn is None else [drawn.forecasts[own.block] for own in cohorts]
        heard = [self._run.seen(forecast.statistics) for forecast in forecasts]
        return {name: heard[place] for name, (_, place, _) in self._seats.items()}


class _Run:
    """A run that stops in every round for those who are asked from outside.

    It stops before the adversary commits, or with ``draws`` before the agents decide.
    """

    drawn: Round | None = None

    def __init__(self, model: MarketModel, *, draws: bool) -> None:
        self.model, self._draws = model, draws
        self.begin()

    @property
    def over(self) -> bool:
        """Whether all rounds are played."""
        return self.model.played >= self.model.rounds

    def begin(self) -> None:
        """Begin the next round, if there is one."""
        if not self.over:
            self.offered = offer(self.model.game)
            self.drawn = commit_and_draw(self.model.game, self.offered) if self._draws else None

    def finish(self) -> Round:
        """Play the round to its end; UserError if the run is over."""
        if self.over:
            raise UserError("the run is over; reset() begins another one")
        game = self.model.game
        played = finish(game, decide(game, self.drawn or commit_and_draw(game, self.offered)))
        self.model.passed(played)
        return played

    def seen(self, *parts: Array) -> Seen:
        """Return the share of rounds played, the last outcome, and further parts."""
        history = self.model.game.history
        last = history.last()[0] if history.rounds else history.mean
        played = np.array([self.model.played / self.model.rounds])
        return np.concatenate([played, last, *parts]).astype(np.float32)


def _loaded(scenario: str | Scenario, settings: dict[str, Any]) -> Scenario:
    return load(scenario, **settings) if isinstance(scenario, str) else scenario
