"""Seats for learners from elsewhere: the leader's for Gymnasium, the followers' for PettingZoo.

An episode is a run of the scenario, at a seed that comes of the one that ``reset`` is given; all
others play as the scenario says. Both need the extra ``rl``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.agents.adversaries.learned import softmax
from regretless.market.best_response import expected_losses
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.adversary_view import mean_payoffs, observed, per_agent, sums_of
from regretless.market.game.market import Market, expected_in_market
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game, commit_and_draw, decide, finish, offer
from regretless.market.model import MarketModel
from regretless.market.records import AdversaryView, Round
from regretless.scenarios import load
from regretless.scenarios.assembly.branches import deviate
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.training.attack import planner_of, prepare_attacks

try:
    import gymnasium
    from gymnasium import spaces
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    needed = "LeaderEnv and FollowersEnv need the extra rl"
    raise UserError(f"{needed}; python -m pip install gymnasium pettingzoo") from error

SCORE_FACTOR = 5.0  # a score in [-1, 1] becomes a probability in proportion to exp(5 score)
END_OF_SEEDS = 2**31  # the seeds of episodes are below it
Observation = NDArray[np.float32]


class LeaderEnv(gymnasium.Env[Observation, Any]):
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
        loaded = _load_scenario(scenario, settings)
        attack = prepare_attacks(loaded, phases=1, looking=False, cohort=cohort)[0]
        if cohort is None:  # every cohort pays, so that none may be left out of the runs
            attack = replace(attack, rehearsed=attack.config)
        self._attack = attack
        self._cohort = cohort
        self.pure = pure
        n_outcomes = attack.shape[2]
        if pure:
            self.action_space = spaces.Discrete(n_outcomes)
        else:
            self.action_space = spaces.Box(-1.0, 1.0, (n_outcomes,), np.float32)
        self._begin(0)
        self.observation_space = spaces.Box(0.0, 1.0, self._observe().shape, np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin a run, and return what is observed."""
        super().reset(seed=seed)
        self._begin(int(self.np_random.integers(END_OF_SEEDS)))
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Commit to a distribution and play the round; with the last one the run is over."""
        if self.pure:
            distribution = np.eye(len(self._leader.support))[action]
        else:
            scores = np.asarray(action, dtype=np.float64)
            distribution = softmax(SCORE_FACTOR * scores)
        self._leader.distributions = distribution[None, None]  # one phase, one row
        played = self._run.finish()
        cohorts = self._run.model.game.cohorts
        sums = sums_of(self._leader.payoff, cohorts, played)
        payoffs, agents = mean_payoffs(sums)
        if self._cohort is None:
            reward = per_agent(payoffs, agents)
        else:
            reward = float(payoffs[self._attack.cohort_index(self._run.model)])
        self._action_shares = list(observed(played, sums).play.values())
        self._run.begin()
        return self._observe(), reward, self._run.is_over, False, {"outcome": played.outcome}

    def _begin(self, seed: int) -> None:
        self._run = _PausedRun(self._attack.model(seed), pauses_after_draw=False)
        game = self._run.model.game
        self._leader: Any = planner_of(self._run.model)
        self._action_shares = [np.zeros(cohort.loss.actions) for cohort in game.cohorts]

    def _observe(self) -> Observation:
        mixtures = self._run.offered.mixtures
        parts = list(self._action_shares)
        if any(mixture.has_labels for mixture in mixtures):
            parts.insert(0, AdversaryView(mixtures).mean_label)
        return self._run.observation(*parts)


@dataclass(frozen=True)
class _FollowerSeat:
    """Where an agent sits: its number in the model, its cohort's index, its index in the cohort."""

    number: int
    cohort_index: int
    index_in_cohort: int


@dataclass(frozen=True)
class _EnvArguments:
    """The arguments that a ``FollowersEnv`` was made with."""

    scenario: str | Scenario
    cohort: str | None
    settings: dict[str, Any]


class FollowersEnv(ParallelEnv[str, Observation, Any]):  # type: ignore[misc]
    """The seats of agents who hear the forecast: in every round each chooses one of its actions.

    Observed before it: the share of rounds played, the last outcome, and what the agent expects to
    lose with each of its actions at the prediction that was drawn, clipped into [0, 1]; in a market
    that does not say what its agents may expect to lose, the outcome that is forecast. So the
    space is the same for every seed, although the basis of the prediction, and with it its length
    and what its numbers mean, may depend on the population that is drawn. The reward is minus the
    loss in [0, 1], and 0 in rounds in which the agent is not there. A copy, pickled or deep, begins
    anew.

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
    render_mode: ClassVar[str | None] = None  # there is nothing to render

    def __init__(
        self, scenario: str | Scenario, *, cohort: str | None = None, **settings: Any
    ) -> None:
        self._arguments = _EnvArguments(scenario, cohort, settings)
        self._scenario = _load_scenario(scenario, settings)
        self._rng = stream(self._scenario.spec.seed, "environment")
        cohorts = self._scenario.build(apart=True).game.cohorts
        self._seats = _follower_seats(cohorts, cohort)
        if not self._seats:
            reason = "no cohort follows the forecast"
            if cohort is not None:
                reason = f"'{cohort}' does not follow it"
            raise UserError(f"FollowersEnv: {reason}; name a cohort that responds to it")
        self.possible_agents = list(self._seats)
        self.agents: list[str] = []
        self._chosen_actions: dict[str, int] = {}
        self._begin(0)
        self._observation_spaces = {
            name: spaces.Box(0.0, 1.0, observation.shape, np.float32)
            for name, observation in self._observe().items()
        }
        self._action_spaces = {
            name: spaces.Discrete(cohorts[seat.cohort_index].loss.actions)
            for name, seat in self._seats.items()
        }

    def __getstate__(self) -> _EnvArguments:
        """Return what it was made of: a copy, in another process too, begins anew."""
        return self._arguments

    def __setstate__(self, state: _EnvArguments) -> None:
        """Make it again."""
        self.__init__(state.scenario, cohort=state.cohort, **state.settings)  # type: ignore[misc]

    def observation_space(self, agent: str) -> spaces.Box:
        """Return what an agent observes."""
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Discrete[Any]:
        """Return what an agent chooses among."""
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Begin a run, and return what everybody observes."""
        if seed is not None:
            self._rng = stream(seed, "environment")
        self._begin(int(self._rng.integers(END_OF_SEEDS)))
        self.agents = list(self.possible_agents)
        return self._observe(), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Let everybody act and play the round; with the last one the run is over."""
        for name, action in actions.items():
            self._chosen_actions[name] = int(action)
        present = self.agents
        played = self._run.finish()
        rewards = {name: self._reward(name, played) for name in present}
        self._run.begin()
        everybody_observes = self._observe()
        observations = {name: everybody_observes[name] for name in present}
        is_over = self._run.is_over
        if is_over:
            self.agents = []
        terminations = dict.fromkeys(present, is_over)
        truncations = dict.fromkeys(present, False)
        infos: dict[str, dict[str, Any]] = {name: {} for name in present}
        return observations, rewards, terminations, truncations, infos

    def _reward(self, name: str, played: Round) -> float:
        seat = self._seats[name]
        decision = played.decisions[seat.cohort_index]
        losses = played.losses[seat.cohort_index]
        if decision is None or losses is None:  # nobody of the cohort was there
            return 0.0
        action = decision.actions[seat.index_in_cohort]
        if action < 0:  # this agent was not
            return 0.0
        cohort = self._run.model.game.cohorts[seat.cohort_index]
        return -float(losses[cohort.row_of[seat.index_in_cohort], action])

    def _begin(self, seed: int) -> None:
        model = self._scenario.build(seed=seed, apart=True)
        self._chosen_actions.update(dict.fromkeys(self._seats, 0))
        responses = {
            seat.number: partial(self._chosen_action, name) for name, seat in self._seats.items()
        }
        deviate(model, responses)
        self._coefficients = _coefficients_of_losses(model.game)
        self._run = _PausedRun(model, pauses_after_draw=True)

    def _chosen_action(self, name: str, _: object) -> int:
        return self._chosen_actions[name]

    def _observe(self) -> dict[str, Observation]:
        observed_by_cohort: dict[int, Array] = {}
        observations = {}
        for name, seat in self._seats.items():
            cohort_index = seat.cohort_index
            if cohort_index not in observed_by_cohort:
                observed_by_cohort[cohort_index] = self._expected_losses(cohort_index)
            expected = observed_by_cohort[cohort_index][seat.index_in_cohort]
            observations[name] = self._run.observation(expected)
        return observations

    def _expected_losses(self, cohort_index: int) -> Array:
        """Return what the agents of a cohort expect to lose at the drawn prediction (N, A)."""
        game = self._run.model.game
        cohort = game.cohorts[cohort_index]
        round_in_hand = self._run.drawn
        assert round_in_hand is not None  # noqa: S101 - this run pauses after the draw
        forecast = round_in_hand.forecasts[cohort.block]
        label = forecast.label
        if game.market is not None and game.market.has_personal_losses and label is not None:
            if type(game.market).expected_losses is Market.expected_losses:
                return np.tile(label, (len(cohort.row_of), 1))  # no more is known beforehand
            losses = expected_in_market(game.market, cohort_index, label)
        else:
            offset, weights = self._coefficients[cohort_index]
            losses = expected_losses(offset, weights, forecast.statistics)
        return np.asarray(np.clip(losses[cohort.row_of], 0.0, 1.0))


def _coefficients_of_losses(game: Game) -> dict[int, tuple[Array, Array]]:
    """Return, of each cohort that hears a forecast, its losses (K, A), (K, A, n) in its basis."""
    coefficients = {}
    for index, cohort in enumerate(game.cohorts):
        if cohort.listens and cohort.expects_own:
            coefficients[index] = cohort.coefficients
        elif cohort.listens:
            coefficients[index] = game.blocks[cohort.block].basis.coefficients(cohort.loss)
    return coefficients


def _follower_seats(cohorts: Sequence[Cohort], name: str | None) -> dict[str, _FollowerSeat]:
    """Return the seats of agents who hear the forecast, of one cohort or all, by agent's name."""
    seats = {}
    for cohort_index, (first_number, cohort) in enumerate(numbered(cohorts)):
        if not cohort.listens or name not in {None, cohort.name}:
            continue
        for index in range(len(cohort.row_of)):
            number = first_number + index
            seats[f"agent_{number}"] = _FollowerSeat(number, cohort_index, index)
    return seats


class _PausedRun:
    """A run that waits in every round for those who are asked from outside.

    It waits before the adversary commits; with ``pauses_after_draw``, before the agents decide.
    """

    drawn: Round | None = None

    def __init__(self, model: MarketModel, *, pauses_after_draw: bool) -> None:
        self.model = model
        self._pauses_after_draw = pauses_after_draw
        self.begin()

    @property
    def is_over(self) -> bool:
        """Whether all rounds are played."""
        return self.model.played >= self.model.rounds

    def begin(self) -> None:
        """Begin the next round, if there is one."""
        if self.is_over:
            return
        self.offered = offer(self.model.game)
        self.drawn = None
        if self._pauses_after_draw:
            self.drawn = commit_and_draw(self.model.game, self.offered)

    def finish(self) -> Round:
        """Play the round to its end; UserError if the run is over."""
        if self.is_over:
            raise UserError("the run is over; reset() begins another one")
        game = self.model.game
        drawn = self.drawn
        if drawn is None:
            drawn = commit_and_draw(game, self.offered)
        played = finish(game, decide(game, drawn))
        self.model.passed(played)
        return played

    def observation(self, *parts: Array) -> Observation:
        """Return the share of rounds played, the last outcome, and further parts, in one row."""
        history = self.model.game.history
        last_outcome = history.last()[0] if history.rounds else history.mean
        share_played = np.array([self.model.played / self.model.rounds])
        return np.concatenate([share_played, last_outcome, *parts]).astype(np.float32)


def _load_scenario(scenario: str | Scenario, settings: dict[str, Any]) -> Scenario:
    return load(scenario, **settings) if isinstance(scenario, str) else scenario
